//! What stands before sequencers, so that they need not be reached by everybody: relays and gateways.
//!
//! A **relay** follows the feed of a sequencer (or of another relay, or of a full node), verifies what it can without
//! executing anything, and hands it on to as many subscribers as it is asked by. It keeps the newest batches, so that whoever
//! lost a connection asks it for what is missing, and answers the public reads. It has no state that matters: it may be
//! killed, and any number of them stand beside each other.
//!
//! | what | how it is verified |
//! |---|---|
//! | headers and items | the signature of the sequencer that L1 names for the header's origin, the root over items and verdicts; one that L1 made, by L1 |
//! | certificates | the members' signatures, by the keys that L1 registers for the epoch |
//! | hints | each by encrypting again, as a full node does |
//! | releases | their form: what they open proves itself |
//! | encryption keys | against L1's registration |
//! | blocks, receipts, fee accounts | not at all: who executes nothing knows nothing of them. They are the source's word |
//!
//! A **gateway** is a relay of the sequencer's operator that takes envelopes as well: it verifies signature and proof, counts
//! what each address sends, and forwards what stands to whichever sequencer leads, many in one call. It answers when the
//! sequencer has: what it acknowledges is durable, and a promise is the sequencer's own. The sequencer verifies again what
//! gateways forward, so a gateway that is taken over can fill its part of the queue and nothing more.
//!
//! | module | does |
//! |---|---|
//! | `follow`; `source`, `window`, `check`, `hints` | follows the feed, verifies, keeps, hands on |
//! | `reads`; `coalesce`, `line` | JSON-RPC: reads, subscriptions; what is asked of the source for them |
//! | `admission`, `forward`; `shared` | envelopes: checked, counted, and forwarded to whoever leads |
//! | `start`, `config`, `metrics`, `limits` | |

mod admission;
mod check;
mod coalesce;
mod config;
mod follow;
mod forward;
mod hints;
pub mod limits;
mod line;
mod metrics;
mod reads;
mod shared;
mod source;
mod start;
mod window;

pub use admission::{GatewayRefusal, REFUSAL_REASONS, SharedLimits};
pub use config::{ConfigError, GatewayConfig, RelayConfig};
pub use metrics::GatewayMetrics;
pub use shared::RedisLimits;
pub use start::{GatewayDeps, GatewayHandle, Relay, RelayDeps, StartError};

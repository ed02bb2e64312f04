//! The sequencer: admits envelopes that it cannot read, commits an order, collects the committee's certificates and
//! the helper's hints, drives the execution client and posts to L1.
//!
//! Everything it answers for is durable before it says so: an envelope before its id is answered, a header before it is
//! announced, a certificate before it is used. It may be killed at any instant; [`Sequencer::start`] goes on from the
//! disk. Ordering never waits for the helper, for execution or for L1; for the committee it waits once
//! `sealing.max_uncertified_headers` headers lack a certificate.
//!
//! | module | does |
//! |---|---|
//! | `admission`, `verifier`, `mempool`, `sources`, `promises` | every check of an envelope, durable, acknowledged |
//! | `sealer`, `clock`, `l1_cache` | the header of each slot |
//! | `certifier`, `hints`, `gate` | what members and helpers send |
//! | `poster` | runs of certified headers to L1 |
//! | `accusations` | answers on L1 to accusations of broken promises |
//! | `outputs` | claims of executed blocks on L1 |
//! | `rpc`, `keeper`, `metrics` | JSON-RPC, the feed, readiness, counts |

mod accusations;
mod admission;
mod certifier;
mod clock;
mod config;
mod core;
mod gate;
mod hints;
mod keeper;
mod l1_cache;
mod lock;
mod mempool;
mod metrics;
mod outputs;
mod poster;
mod promises;
mod refusal;
mod rpc;
mod sealer;
mod sources;
mod start;
mod verifier;

pub use accusations::L1Accusations;
pub use clock::{Clock, SystemClock};
pub use config::{
    AccusationsConfig, AdmissionConfig, ConfigError, MempoolConfig, OutputsConfig, PeerConfig, PostingConfig,
    SealingConfig, SequencerConfig,
};
pub use core::FatalFault;
pub use lock::{DataLock, LOCK_FILE, LockError};
pub use outputs::{L1Outputs, OutputStanding};
pub use poster::{L1Poster, PostFault, PostedHead, Run};
pub use refusal::{ADMISSION_REASONS, AdmissionRefusal, SUBMISSION_REASONS, SubmissionRefusal};
pub use start::{Sequencer, SequencerDeps, SequencerHandle, StartError};

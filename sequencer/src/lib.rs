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
//! | `admission`, `backlog`, `verifier`, `mempool`, `sources`, `promises`, `reservations` | every check of an envelope, durable, acknowledged |
//! | `recover`, `members` | what was signed before, asked of the committee and L1 before the first header |
//! | `sealer`, `choice`, `clock`, `l1_cache` | the header of each slot |
//! | `certifier`, `hints`, `gate` | what members and helpers send |
//! | `poster` | runs of certified headers to L1 |
//! | `accusations` | answers on L1 to accusations of broken promises |
//! | `outputs` | claims of executed blocks on L1 |
//! | `rpc`, `keeper`, `metrics` | JSON-RPC, the feed, readiness, counts |

mod accusations;
mod admission;
mod backlog;
mod certifier;
mod choice;
mod config;
mod core;
mod gate;
mod hints;
mod introduce;
mod keeper;
mod l1_cache;
mod lock;
mod members;
mod mempool;
mod metrics;
mod outputs;
mod poster;
mod promises;
mod rebuild;
mod recover;
mod refusal;
mod reservations;
mod rpc;
mod sealer;
mod sources;
mod start;
mod supplier;
mod verifier;

pub use accusations::L1Accusations;
pub use blindfold_runtime::{Clock, SteadyClock};
pub use config::{
    AccusationsConfig, AdmissionConfig, ConfigError, MemberUrl, MempoolConfig, OutputsConfig, PeerConfig,
    PostingConfig, RecoveryConfig, SealingConfig, SequencerConfig,
};
pub use introduce::introduction;
pub use lock::{DataLock, LOCK_FILE, LockError};
pub use members::{Committee, CommitteeClient, HeldBatch, MemberFault};
pub use outputs::{L1Outputs, OutputStanding};
pub use poster::{DataStanding, L1Poster, PostFault, PostedHead, Receipt};
pub use refusal::{ADMISSION_REASONS, AdmissionRefusal, SUBMISSION_REASONS, SubmissionRefusal};
pub use start::{Sequencer, SequencerDeps, SequencerHandle, StartError};

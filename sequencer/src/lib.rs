//! The sequencer: admits envelopes that it cannot read, commits an order, collects the committee's certificates and
//! the hint publisher's hints, drives the execution client and posts to L1.
//!
//! Everything it answers for is durable before it says so: an envelope before its id is answered, a header before it is
//! announced, a certificate before it is used. It may be killed at any instant; [`Sequencer::start`] goes on from the
//! disk. Ordering never waits for the hint publisher, for execution or for L1; for the committee it waits once
//! `sealing.max_uncertified_headers` headers lack a certificate.
//!
//! Each part owns its state and names the parts that it works with; `start` puts them together.
//!
//! | module | part | does |
//! |---|---|---|
//! | `context` | `Context` | handles that all parts have: settings, chain, disk, key, clock, feed, counts |
//! | `admission`, `promises` | `Admission` | every check of an envelope, durable, acknowledged |
//! | `pool`; `mempool`, `ranks`, `reservations` | `Pool` | what waits for a batch |
//! | `backlog` | `Backlog` | how much more may be admitted |
//! | `queue` | `Queue` | how long what is admitted would wait for its certificate |
//! | `recover`; `members` | `Recovery` | what was signed before, asked of the committee and L1 before the first header |
//! | `sealer`; `choice` | `Sealer` | the header of each slot |
//! | `displaced` | `Displaced` | headers that gave way to others, and the mempool from the disk |
//! | `l1_follower`; `l1_cache` | `L1Follower` | what L1 says, offered to the sealer; the headers that L1 made |
//! | `certifier`; `gate` | `Certifier` | members' acknowledgements to certificates |
//! | `hints` | `HintReceiver` | releases and hints |
//! | `poster` | `Poster` | runs of certified headers to L1 |
//! | `supplier`; `opened`, `attestations` | `Supplier` | data that L1 lacks, once its hints stand there and members read it |
//! | `accusations` | `Answerer` | answers on L1 to accusations of broken promises |
//! | `outputs` | `Proposer` | claims of executed blocks on L1 |
//! | `housekeeping` | `Housekeeping` | headers announced again, old outcomes forgotten, readiness |
//! | `rpc`, `introduce`, `metrics` | | JSON-RPC, the feed, who is who, counts |
//! | `candidate` | `CandidateHandle` | one of several sequencers on one store: stands by, and leads while it has the lease |
//! | `lock`, `rebuild` | | one process a folder; `--rebuild-from-l1` |

mod accusations;
mod admission;
mod attestations;
mod backlog;
mod candidate;
mod certifier;
mod choice;
mod config;
mod context;
mod displaced;
mod gate;
mod hints;
mod housekeeping;
mod introduce;
mod l1_cache;
mod l1_follower;
mod lock;
mod members;
mod mempool;
mod metrics;
mod opened;
mod outputs;
mod pool;
mod poster;
mod promises;
mod queue;
mod ranks;
mod rebuild;
mod recover;
mod refusal;
mod reservations;
mod rpc;
mod sealer;
mod start;
mod supplier;
mod watched_signer;

pub use blindfold_runtime::{Clock, SteadyClock};
pub use candidate::{CandidateDeps, CandidateHandle, CandidateState, Prepare, PrepareError};
pub use config::{
    AccusationsConfig, AdmissionConfig, ConfigError, MemberUrl, MempoolConfig, OutputsConfig, PeerConfig,
    PostingConfig, RecoveryConfig, SealingConfig, SequencerConfig,
};
pub use introduce::introduction;
pub use lock::{DataLock, LOCK_FILE, LockError};
pub use members::{AttestError, Committee, CommitteeClient, HeldBatch, MemberError};
pub use refusal::{ADMISSION_REASONS, AdmissionRefusal, SUBMISSION_REASONS, SubmissionError};
pub use start::{ROLE, Sequencer, SequencerDeps, SequencerHandle, StartError};

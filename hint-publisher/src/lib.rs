//! The hint publisher beside the sequencer: it decrypts batches and publishes the hints by which everyone verifies.
//!
//! [`HintPublisher::start`] follows the sequencer's feed. Pre-decryption, most of the work, begins when a batch is
//! sealed; on its certificate the members are asked for their shares, the batch is opened, malformed envelopes get
//! their singleton releases, and the hints go to the sequencer until it has them.
//!
//! Nobody has to trust it: a hint proves itself, and without hints a node decrypts locally. It keeps nothing of the
//! chain on disk: after a restart it asks the sequencer which certified batches have no hints and makes them, oldest
//! first. Those are opened at once, without pre-decryption, which is less work in all.
//!
//! Several hint publishers may share the batches over Redis (`share/`), each opening a part of them.

mod backlog;
mod config;
mod follow;
mod introduce;
pub mod l1;
mod metrics;
mod publish;
mod publisher;
mod share;
mod status;
mod watch;
mod work;

pub use config::{ConfigError, HintPublisherConfig, HintPublisherLimits, MemberUrl};
pub use metrics::HintPublisherMetrics;
pub use publisher::{HintPublisher, HintPublisherDeps, HintPublisherHandle, L1PostingDeps, StartError};
pub use status::HintPublisherStatus;
pub use work::WorkError;

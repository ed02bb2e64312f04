//! Posting hints to L1, where contracts read them and where they make a run's execution certain.
//!
//! For every run that is final in `BlindedInbox` and has an item, some hint publisher posts the hints of all its batches to
//! `HintRegistry` with a bond, and makes them final when nobody could show them to be wrong. A wrong entry costs that
//! bond, so everything the sequencer gives is verified before ([`gather`]).
//!
//! L1 is the record of what is posted: nothing is kept on disk, and after a restart the events of `HintRegistry` say
//! what is left to do ([`HintPoster`]). Several hint publishers can serve beside each other: what one has posted the others
//! leave alone, and a second one waits `takeover_ms` before it posts what nobody posted.

mod config;
mod gather;
mod poster;
mod source;

pub use config::{L1PostingConfig, L1PostingConfigError};
pub use gather::{GatherError, PostedRun, gather};
pub(crate) use poster::L1_POSTING;
pub use poster::{HintPoster, HintPosterDeps, PostingError, Round};
pub use source::{BatchSource, SourcedBatch};

//! Watching L1: hints posted there, outputs claimed there, and headers that the sequencer signed twice.
//!
//! What a node verified itself is the measure. A posting of hints that says something else than the node's own hints is
//! wrong; where the node has none, because members withhold the release for one, each key and each singleton release is
//! verified against its ciphertext. Whoever shows it takes half of its publisher's bond; two headers for one number cost the sequencer its
//! bond. With an L1 key the node does so by itself: it commits to the evidence, waits for a block, shows it, and takes
//! the reward. Without one it counts, and says in its log what to do.
//!
//! With that key it also posts certified headers that the sequencer keeps from L1 for long.
//!
//! What a dispute needs is on disk before its commitment goes out, and L1 is asked before every step, so a node that is
//! killed goes on where it was ([`Watcher`]).

mod compare;
mod config;
mod evidence;
mod judge;
mod watcher;

pub use compare::{Fault, FaultKind, Finding, compare};
pub use config::{WatchConfig, WatchConfigError};
pub use evidence::{Claim, DamagedEvidence, EvidenceError, EvidenceStore};
pub use judge::Judge;
pub use watcher::{WatchRound, Watcher, WatcherDeps};

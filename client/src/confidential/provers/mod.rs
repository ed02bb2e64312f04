//! The four circuits with their keys: what a wallet proves with, what a coprocessor verifies with.
//!
//! Nothing here is generic: the proof system is compiled with this crate, at its level of optimisation, and not once
//! more by whoever calls it.

mod circuit;
mod files;
mod fresh;
mod proving;

pub use circuit::ConfidentialCircuit;
pub(crate) use files::write_keys;
pub use files::{KeysError, Pinned, check_circuits, development, pinned_in, verifiers};
pub use fresh::{absent, write_new};
pub use proving::{Progress, Proving, ProvingError, ProvingKeys, Witness};

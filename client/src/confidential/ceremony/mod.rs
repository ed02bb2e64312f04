//! Ceremonies that make the circuits' keys, as states that contributors hand on: [`blindfold_groth16::setup`] over
//! BLS12-381 for all four circuits.
//!
//! | phase | state | secrets | begins with |
//! |---|---|---|---|
//! | 1 | [`PowersState`] | τ, α, β | [`PowersState::new`]: the size of the largest circuit; or [`PowersState::import`]: where a published ceremony ended |
//! | 2 | [`KeysState`] | δ, σ of each circuit | [`KeysState::new`]: the end of phase 1, and the circuits |
//!
//! A contribution multiplies the secrets by factors that nobody keeps; a beacon closes a phase. Each phase needs at least one
//! contribution and a beacon: phase 2 begins with a finished phase 1 only, and the keys' origin counts both. [`KeysState::verify`]
//! checks both phases from nothing but the two states and this program's circuits, and gives the keys.
//!
//! **Guaranteed** of a verified key: whoever wants to forge proofs must know what every contributor of a phase forgot,
//! for phase 1 or for phase 2. **Not guaranteed**: who contributed. A transcript holds no names; contributors publish
//! the hashes that they were told, and whoever verifies compares.

mod keys;
mod powers;
#[cfg(test)]
mod tests;

use alloy_primitives::B256;
use blindfold_groth16::setup::{Entry, ImportError, SetupDecodeError, SetupError};
use blindfold_groth16::{OriginError, ProvingKey};
use rand::rand_core::{TryRng, UnwrapErr};
use rand::rngs::SysRng;
use serde::Serialize;

pub use keys::{KeysState, VerifiedKeys};
pub use powers::{ImportedPowers, PowersState};

use super::provers::{ConfidentialCircuit, KeysError};

/// Why a ceremony does not go on.
#[derive(Debug, thiserror::Error)]
pub enum CeremonyError {
    /// Bytes that are no state. The sender's fault, or the transport's.
    #[error("this is no state of such a ceremony: {0}; ask whoever sent it to send it again")]
    Decode(#[from] SetupDecodeError),
    /// A file of another kind, or one that was cut.
    #[error("this is no state of such a ceremony: {0}; ask whoever sent it to send it again")]
    Container(&'static str),
    /// Phase 1 is not what its transcript says, or cannot go on.
    #[error("phase 1: {0}")]
    Powers(SetupError),
    /// Phase 1 holds and is not at its end.
    #[error("{0}; contribute first, then close phase 1 with a beacon")]
    UnfinishedPowers(OriginError),
    /// A published transcript of powers.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Phase 2 of a circuit is not what its transcript says, or cannot go on.
    #[error("phase 2, {circuit}: {fault}")]
    Keys {
        /// Name of the circuit.
        circuit: &'static str,
        /// What is wrong with its key.
        fault: SetupError,
    },
    /// A ceremony that holds and is not at its end.
    #[error("{circuit}: {fault}; contribute first, then close the ceremony with a beacon")]
    Unfinished {
        /// Name of the circuit.
        circuit: &'static str,
        /// What its key lacks.
        fault: OriginError,
    },
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness: {0}")]
    NoRandomness(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    Files(#[from] KeysError),
}

/// One contribution, as whoever verifies compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contributed {
    /// Its place in the transcript, from 1.
    pub place: usize,
    /// The transcript's hash with this contribution as the last: what the contributor was told.
    pub hash: B256,
    /// The beacon, where it is one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacon: Option<Beacon>,
}

/// A public value that nobody could choose, to close a phase with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Beacon {
    /// The public value that nobody could know before.
    pub value: B256,
    /// It is hashed 2^this many times, 30 at most.
    pub log_iterations: u8,
}

/// What a verification or a start is at: told before each part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The powers of phase 1 are checked.
    Powers,
    /// Phase 1 in the Lagrange basis of so many rows: the longest part.
    Lagrange(usize),
    /// The key of one circuit.
    Circuit(ConfidentialCircuit),
}

type Key = ProvingKey<ark_bls12_381::Bls12_381>;

fn contributed(entries: Vec<Entry>) -> Vec<Contributed> {
    let entries = entries.into_iter().enumerate();
    entries
        .map(|(index, entry)| Contributed {
            place: index + 1,
            hash: B256::from(entry.hash),
            beacon: entry.beacon.map(|beacon| Beacon {
                value: B256::from(beacon.value),
                log_iterations: beacon.log_iterations,
            }),
        })
        .collect()
}

/// The operating system's randomness, with no state that could outlive a contribution.
fn entropy() -> Result<UnwrapErr<SysRng>, CeremonyError> {
    // Where it works once it works: what follows cannot fail for want of it.
    let mut probe = [0; 32];
    let drawn = SysRng.try_fill_bytes(&mut probe);
    drawn.map_err(|error| CeremonyError::NoRandomness(error.to_string()))?;
    Ok(UnwrapErr(SysRng))
}

//! Making keys.
//!
//! Whoever knows τ, α, β, δ or σ of a key can forge proofs (never read witnesses: D, A and B are uniform whatever the
//! key). [`development`] takes them from a seed and says so in the key. Otherwise they are products of many people's
//! factors, and one who forgot theirs is enough:
//!
//! | phase | secrets | depends on | here |
//! |---|---|---|---|
//! | 1 | τ, α, β | a size only | [`Powers`], [`PowersCeremony`] |
//! | 2 | δ, σ | phase 1 and the circuit | [`KeyCeremony`] |
//!
//! The method is BGM17 (ePrint 2017/1050) with γ = 1, as analysed in "Snarky Ceremonies" (ePrint 2021/219): every
//! contribution multiplies the secrets by factors of its own and proves that it knows them, bound to the hash of all
//! that came before. The proof here is Schnorr's, whose challenge is SHA-256. A last contribution whose factors follow
//! from a public beacon takes away the last contributor's choice; 2021/219 shows that security does not need it.
//!
//! Phase 1 may go on from a published transcript of powers of τ ([`PowersTranscript`]): then its contributions count.
//! A finished key has at least one contribution to each phase, and each ends with a beacon; its [origin](crate::Origin)
//! counts them, so that whoever holds the key sees it. One contributor who forgot is enough, none is not: with
//! τ = α = β = 1 anyone can forge.
//!
//! Anyone checks the end of a ceremony with [`PowersCeremony::verify`] and [`KeyCeremony::verify`], from the
//! transcript, the circuit and nothing else.

mod chain;
mod development;
mod encoding;
pub(crate) mod hash_to_g2;
mod import;
mod phase2;
mod powers;
mod prepare;

pub use chain::{Beacon, ChainError, Contribution, Entry, Fault, Transcript};
pub use development::development;
#[cfg(test)]
pub(crate) use development::{Secrets, generate};
pub use encoding::SetupDecodeError;
pub use import::{ImportError, PowersTranscript, TranscriptError};
pub use phase2::KeyCeremony;
pub use powers::{Imported, Powers, PowersCeremony};
pub use prepare::{LagrangePoints, prepare};

use crate::qap::DomainError;
use crate::r1cs::SynthesisError;

/// Why a set-up was refused or could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The circuit cannot be written down.
    #[error(transparent)]
    Synthesis(#[from] SynthesisError),
    /// The circuit is too large for the field.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The powers of tau are for smaller circuits.
    #[error("the powers of tau reach {got} rows, the circuit needs {want}: take a larger phase 1")]
    TooFewPowers {
        /// How many rows the powers are enough for.
        got: usize,
        /// Rows of the circuit's domain.
        want: usize,
    },
    /// The ceremony goes on from a transcript that was not checked here, or from another one: import it, and verify again.
    #[error("phase 1 goes on from another transcript than the one that was checked here, or from none")]
    Imported,
    /// A contribution is not one.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The state is not the last one with one contribution more: ask the contributor to start from the last state.
    #[error("the state is not built on the last one")]
    NotBuiltOnLast,
    /// Elements are not what the transcript's secrets make them: refuse the contributor's state.
    #[error("{0} of the state are not what the transcript makes of the last ones")]
    Inconsistent(&'static str),
    /// An element that phase 2 must not touch differs from what phase 1 and the circuit make it.
    #[error("an element that no contribution may change was changed")]
    Foreign,
    /// A beacon asks for more hashing than supported.
    #[error("a beacon of 2^{0} iterations is more than 2^{max}", max = chain::MAX_LOG_ITERATIONS)]
    Beacon(u8),
}

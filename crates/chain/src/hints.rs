//! Verifying the hints of a batch: every key by re-encryption, every claim of malformedness by pairing.

use std::fmt;

use blindfold_bte::{self as bte, Backend, CiphertextPoint, SessionKey};
use blindfold_protocol::validity::Verdict;
use blindfold_protocol::{BatchHints, Canonical, Envelope, EnvelopeFault, HintEntry, SealedBatch};

use crate::EpochParameters;

/// What became of one item of a batch.
#[derive(Clone, PartialEq, Eq)]
pub enum ItemOutcome {
    /// Invalid by the validity rule; never decrypted.
    Skipped(EnvelopeFault),
    /// Decrypted to this message, padding included.
    Message(Vec<u8>),
    /// A ciphertext that decrypts to nothing.
    Malformed,
}

impl fmt::Debug for ItemOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(fault) => write!(f, "Skipped({})", fault.as_str()),
            Self::Message(message) => write!(f, "Message({} bytes, redacted)", message.len()),
            Self::Malformed => f.write_str("Malformed"),
        }
    }
}

/// Hints that are not the truth about the batch. The fault of whoever published them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintsFault {
    /// For another number or header.
    #[error("the hints are for another header")]
    OtherHeader,
    /// Not one entry per item.
    #[error("{found} hints for {expected} items")]
    Count {
        /// Items of the batch.
        expected: usize,
        /// Entries that came.
        found: usize,
    },
    /// An accepted item is claimed to be skipped.
    #[error("item {index} was accepted, its hint says skipped")]
    NotSkipped {
        /// Item index.
        index: u32,
    },
    /// A skipped item has a hint.
    #[error("item {index} was skipped, yet it has a hint")]
    Skipped {
        /// Item index.
        index: u32,
    },
    /// The key does not re-encrypt to the ciphertext.
    #[error("the key of item {index} does not re-encrypt to its ciphertext")]
    WrongKey {
        /// Item index.
        index: u32,
    },
    /// The singleton release is not τ·C.
    #[error("the singleton release of item {index} is not the one of its ciphertext")]
    WrongSingleton {
        /// Item index.
        index: u32,
    },
    /// The singleton release shows that the ciphertext is well-formed.
    #[error("item {index} is claimed to be malformed and is not")]
    FalseMalformed {
        /// Item index.
        index: u32,
    },
    /// An accepted item does not decode; impossible for verdicts that we computed.
    #[error("item {index} was accepted but does not decode")]
    Undecodable {
        /// Item index.
        index: u32,
    },
}

impl HintsFault {
    /// A stable name, in snake case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::OtherHeader => "other_header",
            Self::Count { .. } => "wrong_count",
            Self::NotSkipped { .. } => "not_skipped",
            Self::Skipped { .. } => "hint_for_skipped",
            Self::WrongKey { .. } => "wrong_key",
            Self::WrongSingleton { .. } => "wrong_singleton",
            Self::FalseMalformed { .. } => "false_malformed",
            Self::Undecodable { .. } => "undecodable",
        }
    }
}

/// Verifies the hints of a batch and opens its envelopes with them.
///
/// Nothing of the publisher's is believed: a key is right only if the message it gives encrypts to exactly the
/// ciphertext, both C and D; a malformed claim needs the singleton release τ·C (checked by pairing), under which the
/// decryption must fail. `verdicts` are our own.
///
/// Cost: two fixed-base exponentiations per key, two pairings per malformed claim. Blocking.
pub fn verify_hints(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    sealed: &SealedBatch,
    verdicts: &[Verdict],
    hints: &BatchHints,
) -> Result<Vec<ItemOutcome>, HintsFault> {
    let _ = (backend, parameters, sealed, verdicts, hints);
    unimplemented!()
}

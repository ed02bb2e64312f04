//! Verifying the hints of a batch: every key by re-encryption, every claim of malformedness by pairing.

use std::fmt;

use blindfold_bte::{
    Backend, Blinding, Ciphertext, G1_BYTES, Opening, SessionKey, SingletonError, SingletonItem,
};
use blindfold_protocol::validity::{Verdict, sub_batches};
use blindfold_protocol::{BatchHints, Canonical, Envelope, EnvelopeError, HintEntry, Release, SealedBatch};
use blindfold_runtime::rng;

use crate::EpochParameters;

/// What became of one item of a batch.
#[derive(Clone, PartialEq, Eq)]
pub enum ItemOutcome {
    /// Invalid by the validity rule; never decrypted.
    Skipped(EnvelopeError),
    /// Decrypted to this message, padding included.
    Message(Vec<u8>),
    /// A ciphertext that decrypts to nothing.
    Malformed,
    /// A transaction in the clear, forced in through L1.
    ForcedTransaction,
    /// It would have to be opened, and its batch is void.
    Void,
}

impl fmt::Debug for ItemOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(fault) => write!(f, "Skipped({})", fault.as_str()),
            Self::Message(message) => write!(f, "Message({} bytes, redacted)", message.len()),
            Self::Malformed => f.write_str("Malformed"),
            Self::ForcedTransaction => f.write_str("ForcedTransaction"),
            Self::Void => f.write_str("Void"),
        }
    }
}

/// Hints that are not the truth about the batch. The fault of whoever published them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintsError {
    /// For another number or header.
    #[error("the hints are for another header")]
    OtherHeader,
    /// Not one entry per item.
    #[error("{found} hints for {expected} items")]
    Count {
        /// How many items the batch has.
        expected: usize,
        /// How many entries the hints have.
        found: usize,
    },
    /// Not one point per sub-batch.
    #[error("the release has {found} points for {expected} sub-batches")]
    SubBatches {
        /// How many sub-batches the batch has.
        expected: usize,
        /// How many points the release has.
        found: usize,
    },
    /// An accepted item is claimed to be skipped.
    #[error("item {index} was accepted, its hint says skipped")]
    NotSkipped {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
    /// A skipped item, or a forced transaction, has a hint.
    #[error("item {index} was skipped, yet it has a hint")]
    Skipped {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
    /// The key does not re-encrypt to the ciphertext.
    #[error("the key of item {index} does not re-encrypt to its ciphertext")]
    WrongKey {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
    /// The singleton release is not τ·C.
    #[error("the singleton release of item {index} is not the one of its ciphertext")]
    WrongSingleton {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
    /// Blinding factors are stated, and are not those of all singleton releases. Which one is wrong is not found out.
    #[error("the stated blinding factors are not those of the singleton releases")]
    WrongBlinding,
    /// The singleton release shows that the ciphertext is well-formed.
    #[error("item {index} is claimed to be malformed and is not")]
    FalseMalformed {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
    /// An accepted item does not decode; impossible for verdicts that we computed.
    #[error("item {index} was accepted but does not decode")]
    Undecodable {
        /// Index of the item in the batch, from 0.
        index: u32,
    },
}

impl HintsError {
    /// A stable name, in snake case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::OtherHeader => "other_header",
            Self::Count { .. } => "wrong_count",
            Self::SubBatches { .. } => "wrong_sub_batches",
            Self::NotSkipped { .. } => "not_skipped",
            Self::Skipped { .. } => "hint_for_skipped",
            Self::WrongKey { .. } => "wrong_key",
            Self::WrongSingleton { .. } => "wrong_singleton",
            Self::WrongBlinding => "wrong_blinding",
            Self::FalseMalformed { .. } => "false_malformed",
            Self::Undecodable { .. } => "undecodable",
        }
    }
}

/// Keys that are tried before all of a large batch are.
const SAMPLED_KEYS: usize = 4;

/// Verifies the hints of a batch and opens its envelopes with them.
///
/// Nothing of the publisher's is believed: a key is right only if the message it gives encrypts to exactly the
/// ciphertext, both C and D; a malformed claim needs the singleton release τ·C (checked by pairing), under which the
/// decryption must fail. `verdicts` are our own.
///
/// Cost: two fixed-base exponentiations per key; per malformed claim a multiplication and a pairing, or a third of that
/// where 128 and more state their blinding factors. Blocking.
pub fn verify_hints(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    sealed: &SealedBatch,
    verdicts: &[Verdict],
    hints: &BatchHints,
) -> Result<Vec<ItemOutcome>, HintsError> {
    let header = &sealed.header;
    if hints.number != header.number || hints.header_hash != header.hash() {
        return Err(HintsError::OtherHeader);
    }
    let (expected, found) = (sealed.items.len(), hints.entries.len());
    if found != expected || verdicts.len() != expected {
        return Err(HintsError::Count { expected, found });
    }
    let mut outcomes: Vec<Option<ItemOutcome>> = vec![None; expected];
    let (mut keys, mut claims) = (Vec::new(), Vec::new());
    for ((index, item), (verdict, entry)) in
        (0u32..).zip(&sealed.items).zip(verdicts.iter().zip(&hints.entries))
    {
        match (verdict, entry) {
            (Verdict::Skipped(fault), HintEntry::Skipped) => {
                outcomes[index as usize] = Some(ItemOutcome::Skipped(*fault));
            }
            (Verdict::ForcedTransaction, HintEntry::Skipped) => {
                outcomes[index as usize] = Some(ItemOutcome::ForcedTransaction);
            }
            (Verdict::Skipped(_) | Verdict::ForcedTransaction, _) => {
                return Err(HintsError::Skipped { index });
            }
            (Verdict::Accepted { .. }, HintEntry::Skipped) => return Err(HintsError::NotSkipped { index }),
            (Verdict::Accepted { .. }, HintEntry::Key(key)) => {
                let claim = Claim::decode(index, item)?;
                keys.push((claim, SessionKey::from_bytes(*key)));
            }
            (Verdict::Accepted { .. }, HintEntry::Malformed(release)) => {
                claims.push((Claim::decode(index, item)?, *release));
            }
        }
    }
    for (index, message) in open_keys(backend, parameters, &keys)? {
        outcomes[index as usize] = Some(ItemOutcome::Message(message));
    }
    check_malformed(backend, parameters, &claims, &hints.blindings)?;
    for (claim, _) in &claims {
        outcomes[claim.index as usize] = Some(ItemOutcome::Malformed);
    }
    // Every entry took one of the branches above.
    Ok(outcomes.into_iter().flatten().collect())
}

/// Whether a release has the form its batch asks for: this header, one point per sub-batch. Whether the points are the
/// right ones shows in the hints that they give.
pub fn check_release_shape(
    parameters: &EpochParameters,
    sealed: &SealedBatch,
    verdicts: &[Verdict],
    release: &Release,
) -> Result<(), HintsError> {
    if release.number != sealed.header.number || release.header_hash != sealed.header.hash() {
        return Err(HintsError::OtherHeader);
    }
    let expected = sub_batches(verdicts, parameters.epoch().max_batch).len();
    let found = release.pds.len();
    if found == expected { Ok(()) } else { Err(HintsError::SubBatches { expected, found }) }
}

/// An accepted item about which the hints say something.
pub(crate) struct Claim {
    pub(crate) index: u32,
    pub(crate) ad: [u8; 32],
    pub(crate) ciphertext: Ciphertext,
}

impl Claim {
    fn decode(index: u32, item: &[u8]) -> Result<Self, HintsError> {
        let envelope = Envelope::decode(item).map_err(|_| HintsError::Undecodable { index })?;
        Ok(Self { index, ad: envelope.header.hash().0, ciphertext: envelope.ciphertext })
    }
}

pub(crate) fn open_keys(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    keys: &[(Claim, SessionKey)],
) -> Result<Vec<(u32, Vec<u8>)>, HintsError> {
    let items: Vec<_> = keys.iter().map(|(claim, key)| (&claim.ad, &claim.ciphertext, key)).collect();
    // A few at random first: whoever makes keys up has all of them wrong, and costs us no more than these.
    if keys.len() > 8 * SAMPLED_KEYS {
        for index in rand::seq::index::sample(&mut rng(), keys.len(), SAMPLED_KEYS) {
            let opened = backend.open_hints(parameters.encryption_key(), &items[index..=index]);
            if opened.iter().any(Result::is_err) {
                return Err(HintsError::WrongKey { index: keys[index].0.index });
            }
        }
    }
    let opened = backend.open_hints(parameters.encryption_key(), &items);
    keys.iter()
        .zip(opened)
        .map(|((claim, _), message)| match message {
            Ok(message) => Ok((claim.index, message)),
            Err(_) => Err(HintsError::WrongKey { index: claim.index }),
        })
        .collect()
}

pub(crate) fn check_malformed(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    claims: &[(Claim, [u8; G1_BYTES])],
    blindings: &[Blinding],
) -> Result<(), HintsError> {
    if !blindings.is_empty() && blindings.len() != claims.len() {
        return Err(HintsError::WrongBlinding);
    }
    let items: Vec<SingletonItem<'_>> = claims
        .iter()
        .enumerate()
        .map(|(position, (claim, release))| SingletonItem {
            ad: &claim.ad,
            ciphertext: &claim.ciphertext,
            release,
            blinding: blindings.get(position),
        })
        .collect();
    let opened = backend.open_singletons(&mut rng(), parameters.parameters(), &items);
    let mut wrong_blinding = false;
    for ((Claim { index, .. }, _), opened) in claims.iter().zip(opened) {
        let index = *index;
        match opened {
            Ok(Opening::Malformed) => {}
            Ok(Opening::WellFormed { .. }) => return Err(HintsError::FalseMalformed { index }),
            Err(SingletonError::Header(_)) => return Err(HintsError::Undecodable { index }),
            // Of all that are right; a wrong release is the graver fault.
            Err(SingletonError::Blinding) => wrong_blinding = true,
            Err(_) => return Err(HintsError::WrongSingleton { index }),
        }
    }
    if wrong_blinding { Err(HintsError::WrongBlinding) } else { Ok(()) }
}

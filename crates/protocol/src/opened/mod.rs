//! Batches as what their envelopes were opened to: the body of run data of kind 2.
//!
//! Encryption is deterministic, so ad, K and M give an envelope's ciphertext back, byte for byte, and its proof too where
//! that is a derived one. K stands on L1 in the hints. What is left of an envelope is what the header chooses, the message
//! without its padding, and the payer's signature; of one that was not opened, or that a header field sets apart, all its
//! bytes.
//!
//! Fields stand in columns, all of a kind together, because they are compressed afterwards: what wallets agree on then takes
//! next to nothing. Decoding believes nothing: whether the restored items are those of a header is for its data hash to say.

mod columns;
mod decode;
mod encode;
mod item;
mod restore;
mod transaction;

use crate::bte::{EncryptionKey, ProofForm, SessionKey};
use crate::eip712::Deployment;
use crate::limits::{ENVELOPE_OVERHEAD_BYTES, MAX_BATCH_ITEMS};
use crate::signature::Signature65;
use alloy_primitives::B256;

pub use encode::encode;
pub use restore::RestoreError;

use item::OpenedItem;

/// The longest body, in bytes (OD-1): a second's worth of items as they are, and what they take in columns.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// What the items of one body may take together, in bytes: an item is a few bytes here, and may be long.
pub const MAX_ITEM_BYTES: u64 = 16 << 20;
/// The most items of one body: those of sixteen full batches.
pub const MAX_ITEMS: usize = 16 * MAX_BATCH_ITEMS;
/// The most batches of one body.
pub const MAX_BATCHES: usize = 4_096;

/// What all envelopes of a chain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTerms {
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
}

/// What the envelopes of a batch have in common, if they are of its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchTerms {
    /// The batch's number.
    pub number: u64,
    /// Its epoch.
    pub epoch: u64,
    /// SHA-256 of that epoch's encryption key.
    pub encryption_key_hash: B256,
}

/// A batch that is to be encoded.
#[derive(Clone, Copy, Debug)]
pub struct OpenBatch<'a> {
    /// Number, epoch, encryption key.
    pub terms: BatchTerms,
    /// The sequencer's signature over the header.
    pub signature: &'a Signature65,
    /// Verdict code of each item.
    pub codes: &'a [u8],
    /// Bytes of each item.
    pub items: &'a [Vec<u8>],
    /// Session key of each item that was opened.
    pub keys: &'a [Option<SessionKey>],
}

/// A decoded body, of which nothing is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedRun {
    /// One entry for each batch, in order.
    pub batches: Vec<OpenedBatch>,
}

/// The data of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedBatch {
    /// The sequencer's signature over the header.
    pub signature: Signature65,
    items: Vec<(u8, Stored)>,
}

/// An item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    /// As it is.
    Raw(Vec<u8>),
    /// As what it was opened to.
    Opened(Box<OpenedItem>),
}

impl Stored {
    /// Length of the item itself.
    fn item_bytes(&self) -> u64 {
        match self {
            Self::Raw(bytes) => bytes.len() as u64,
            Self::Opened(item) => (ENVELOPE_OVERHEAD_BYTES + item.bucket_bytes()) as u64,
        }
    }
}

impl OpenedBatch {
    /// How many items it has.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Bytes that its items will have: known before any is restored.
    pub fn item_bytes(&self) -> u64 {
        self.items.iter().map(|(_, stored)| stored.item_bytes()).sum()
    }

    /// Whether each opened item has a derived proof (ρ of K, ad and M). Then the keys that it was made with
    /// ([`OpenedRun::of`]) are seen to be right without a point touched: the response of a proof that the item has is a
    /// function of K, ad, M and the hash of the whole ciphertext.
    pub fn is_derived(&self) -> bool {
        self.items.iter().all(|(_, stored)| match stored {
            Stored::Raw(_) => true,
            Stored::Opened(item) => item.proof == ProofForm::Derived,
        })
    }

    /// How many of its items need a key.
    pub fn opened(&self) -> usize {
        self.items.iter().filter(|(_, stored)| matches!(stored, Stored::Opened(_))).count()
    }
}

impl OpenedRun {
    /// Reads the body of a chain's data. Takes memory for the body, for the items that it may restore to
    /// ([`MAX_ITEM_BYTES`]), and some dozens of bytes an item.
    ///
    /// # Errors
    /// [`DecodeError`](crate::DecodeError): the fault of whoever posted it.
    pub fn decode(chain_id: u64, body: &[u8]) -> Result<Self, crate::DecodeError> {
        decode::decode(chain_id, body)
    }
}

impl OpenedBatch {
    /// Verdict code and bytes of each item. `keys` has an entry for each item, as the hints have it. Look at
    /// [`item_bytes`](Self::item_bytes) first: a short body may restore to much. Three exponentiations for each opened item,
    /// and the recovery of a key where the payer signed the first transaction; in parallel on the current pool.
    ///
    /// # Errors
    /// [`RestoreError`]: the data do not belong to these terms and keys.
    pub fn restore(
        &self,
        run: &RunTerms,
        batch: &BatchTerms,
        encryption_key: &EncryptionKey,
        keys: &[Option<SessionKey>],
    ) -> Result<Vec<(u8, Vec<u8>)>, RestoreError> {
        restore::restore(self, run, batch, encryption_key, keys)
    }

    /// Whether `keys` restore it to the items that somebody has already, seen without encrypting anything: it says of each
    /// what its owner would say. `own` has keys only of items whose proof is right and that they open rightly. False says
    /// nothing: it may restore to the same in other words. Hashes, and the recovery of a key where the payer signed the first
    /// transaction; no exponentiation.
    pub fn is_of(&self, run: &RunTerms, own: &OpenBatch<'_>, keys: &[Option<SessionKey>]) -> bool {
        let counts = [own.codes.len(), own.items.len(), own.keys.len(), keys.len()];
        if counts.iter().any(|count| *count != self.items.len()) {
            return false;
        }
        let mut opened = Vec::with_capacity(self.items.len());
        let owned = own.codes.iter().zip(own.items).zip(own.keys);
        for (((code, stored), key), ((own_code, bytes), own_key)) in self.items.iter().zip(keys).zip(owned) {
            let is_same = match stored {
                Stored::Raw(stored) => stored == bytes,
                Stored::Opened(stored) => match own_key {
                    Some(own_key) if key.as_ref() == Some(own_key) => {
                        opened.push((stored, bytes.as_slice(), own_key));
                        true
                    }
                    _ => false,
                },
            };
            if !is_same || code != own_code {
                return false;
            }
        }
        let own = OpenedItem::of_all(run, &own.terms, opened.iter().map(|(_, bytes, key)| (*bytes, *key)));
        own.iter().zip(&opened).all(|(own, (stored, ..))| own.as_ref() == Some(&***stored))
    }
}

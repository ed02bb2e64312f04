//! From what was opened to the items.

use crate::bte::{EncryptionKey, ReencryptItem, SessionKey};
use crate::codec::Canonical;
use crate::envelope::{Envelope, EnvelopeHeader};
use crate::opened::item::OpenedItem;
use crate::opened::{BatchTerms, OpenedBatch, RunTerms, Stored};
use alloy_primitives::B256;

/// Why opened data give no items. The fault of whoever posted them, or of the hints that they refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The keys are not those of a batch of this length.
    #[error("{keys} keys for {items} items")]
    Count {
        /// Items of the batch.
        items: usize,
        /// Keys that there are.
        keys: usize,
    },
    /// An item that is said to be opened has no key.
    #[error("item {0} is said to be opened, and there is no key to it")]
    Key(usize),
    /// The payer is to be the sender of a transaction that nobody signed.
    #[error("item {0} names the sender of a transaction as payer, and nobody signed it")]
    Payer(usize),
    /// The proof's response is not below r.
    #[error("the proof of item {0} has no response below r")]
    Proof(usize),
}

/// An opened item, ready to be encrypted again.
struct Plain<'a> {
    index: usize,
    item: &'a OpenedItem,
    header: EnvelopeHeader,
    ad: B256,
    message: Vec<u8>,
    key: &'a SessionKey,
}

pub(super) fn restore(
    data: &OpenedBatch,
    run: &RunTerms,
    batch: &BatchTerms,
    encryption_key: &EncryptionKey,
    keys: &[Option<SessionKey>],
) -> Result<Vec<(u8, Vec<u8>)>, RestoreError> {
    if keys.len() != data.items.len() {
        return Err(RestoreError::Count { items: data.items.len(), keys: keys.len() });
    }
    let mut plain = Vec::with_capacity(data.opened());
    for (index, ((_, stored), key)) in data.items.iter().zip(keys).enumerate() {
        let Stored::Opened(item) = stored else { continue };
        let key = key.as_ref().ok_or(RestoreError::Key(index))?;
        let header = item.header(run, batch).ok_or(RestoreError::Payer(index))?;
        let message = item.padded_message();
        plain.push(Plain { index, item, header, ad: header.hash(), message, key });
    }
    let again: Vec<ReencryptItem<'_>> = plain
        .iter()
        .map(|Plain { ad, message, key, item, .. }| ReencryptItem {
            ad: &ad.0,
            message,
            key,
            proof: item.proof,
        })
        .collect();
    let made = encryption_key.reencrypt(&again);
    let mut envelopes = Vec::with_capacity(made.len());
    for (made, plain) in made.into_iter().zip(&plain) {
        let (ciphertext, proof) = made.ok_or(RestoreError::Proof(plain.index))?;
        let envelope =
            Envelope { header: plain.header, ciphertext, proof, fee_signature: plain.item.fee_signature() };
        envelopes.push(envelope.encode());
    }
    let mut envelopes = envelopes.into_iter();
    let item = |(code, stored): &(u8, Stored)| match stored {
        Stored::Raw(bytes) => (*code, bytes.clone()),
        // One was made for each.
        Stored::Opened(_) => (*code, envelopes.next().unwrap_or_default()),
    };
    Ok(data.items.iter().map(item).collect())
}

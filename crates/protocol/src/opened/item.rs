//! One opened envelope.

use crate::bte::{ProofForm, SessionKey};
use crate::bundle::{Bundle, BundleItem, KIND_TRANSACTION};
use crate::codec::Canonical;
use crate::envelope::{Envelope, EnvelopeHeader};
use crate::expiry::Expiry;
use crate::limits::SIZE_BUCKETS;
use crate::opened::columns::{add_difference, difference};
use crate::opened::transaction::Structured;
use crate::opened::{BatchTerms, RunTerms};
use crate::signature::Signature65;
use alloy_primitives::Address;

/// What its chain, its batch and its key do not say of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenedItem {
    /// None: who signed the first transaction inside.
    pub payer: Option<Address>,
    pub fee_nonce: u64,
    pub max_fee: u128,
    pub priority_fee: u128,
    pub max_gas_fee: u128,
    pub gas_limit: u64,
    pub generation: u16,
    /// From the batch's number to that of the expiry, as [`difference`] has it.
    pub expiry_difference: u64,
    /// Index of the message's length in [`SIZE_BUCKETS`].
    pub bucket: u8,
    pub message: Message,
    /// r ‖ s of the payer's signature.
    pub signature: [u8; 64],
    pub odd_y: bool,
    pub proof: ProofForm,
}

/// A message without its padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Bundle(Vec<Inner>),
    /// One that is no bundle, up to its last byte that is not zero.
    Bytes(Vec<u8>),
}

/// One item of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    Transaction(Structured),
    Other(BundleItem),
}

impl OpenedItem {
    /// The envelope with these bytes, opened with this key, if it can be restored from that. A wrong key gives one that
    /// restores to something else.
    pub fn of(run: &RunTerms, batch: &BatchTerms, bytes: &[u8], key: &SessionKey) -> Option<Self> {
        let envelope = Envelope::decode(bytes).ok()?;
        let header = &envelope.header;
        let common = header.chain_id == run.chain_id
            && header.deployment == run.deployment
            && header.epoch == batch.epoch
            && header.encryption_key_hash == batch.encryption_key_hash
            && header.flags == 0;
        let bucket = SIZE_BUCKETS.iter().position(|bucket| *bucket == envelope.ciphertext.e.len())?;
        let (signature, [v]) = envelope.fee_signature.0.split_last_chunk::<1>()?;
        let odd_y = match v {
            27 => false,
            28 => true,
            _ => return None,
        };
        if !common {
            return None;
        }
        let ad = header.hash();
        let message = key.message(&ad.0, &envelope.ciphertext.e);
        let proof = ProofForm::of(&ad.0, &envelope.ciphertext, &envelope.proof, &message, key);
        let message = Message::of(run.chain_id, &message);
        let is_sender = message.first_sender(run.chain_id) == Some(header.payer);
        Some(Self {
            payer: (!is_sender).then_some(header.payer),
            fee_nonce: header.fee_nonce,
            max_fee: header.max_fee,
            priority_fee: header.priority_fee,
            max_gas_fee: header.max_gas_fee,
            gas_limit: header.gas_limit,
            generation: header.expiry.generation(),
            expiry_difference: difference(batch.number, header.expiry.number()),
            bucket: u8::try_from(bucket).ok()?,
            message,
            signature: signature.try_into().ok()?,
            odd_y,
            proof,
        })
    }

    /// Length of the padded message.
    pub fn bucket_bytes(&self) -> usize {
        SIZE_BUCKETS.get(usize::from(self.bucket)).copied().unwrap_or_default()
    }

    /// The envelope's header, unless its payer is to be the sender of a transaction that nobody signed.
    pub fn header(&self, run: &RunTerms, batch: &BatchTerms) -> Option<EnvelopeHeader> {
        let payer = match self.payer {
            Some(payer) => payer,
            None => self.message.first_sender(run.chain_id)?,
        };
        Some(EnvelopeHeader {
            chain_id: run.chain_id,
            deployment: run.deployment,
            epoch: batch.epoch,
            encryption_key_hash: batch.encryption_key_hash,
            payer,
            fee_nonce: self.fee_nonce,
            max_fee: self.max_fee,
            priority_fee: self.priority_fee,
            max_gas_fee: self.max_gas_fee,
            gas_limit: self.gas_limit,
            expiry: Expiry::new(self.generation, add_difference(batch.number, self.expiry_difference)),
            flags: 0,
        })
    }

    /// The padded message, unless it does not fit its length.
    pub fn padded_message(&self, run: &RunTerms) -> Option<Vec<u8>> {
        let length = self.bucket_bytes();
        match &self.message {
            Message::Bundle(items) => {
                let item = |inner: &Inner| match inner {
                    Inner::Transaction(fields) => BundleItem::transaction(fields.encode(run.chain_id)),
                    Inner::Other(item) => item.clone(),
                };
                Bundle { items: items.iter().map(item).collect() }.encode_padded_to(length).ok()
            }
            Message::Bytes(bytes) => {
                let mut message = bytes.clone();
                if message.len() > length {
                    return None;
                }
                message.resize(length, 0);
                Some(message)
            }
        }
    }

    pub fn fee_signature(&self) -> Signature65 {
        let mut signature = [27 + u8::from(self.odd_y); 65];
        signature[..64].copy_from_slice(&self.signature);
        Signature65(signature)
    }
}

impl Message {
    fn of(chain_id: u64, message: &[u8]) -> Self {
        let Ok(bundle) = Bundle::decode(message) else {
            let length = message.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return Self::Bytes(message.iter().take(length).copied().collect());
        };
        let inner = |item: &BundleItem| {
            let structured = match item.kind {
                KIND_TRANSACTION => Structured::of(chain_id, &item.bytes),
                _ => None,
            };
            structured.map_or_else(|| Inner::Other(item.clone()), Inner::Transaction)
        };
        Self::Bundle(bundle.items.iter().map(inner).collect())
    }

    fn first_sender(&self, chain_id: u64) -> Option<Address> {
        match self {
            Self::Bundle(items) => match items.first()? {
                Inner::Transaction(transaction) => transaction.sender(chain_id),
                Inner::Other(_) => None,
            },
            Self::Bytes(_) => None,
        }
    }
}

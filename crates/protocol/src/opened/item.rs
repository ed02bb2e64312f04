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
use crate::signature::{Signature65, recover_all};
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
    /// The message without its padding.
    pub message: Vec<u8>,
    /// The first transaction inside, where it is the payer's.
    pub first: Option<Box<Structured>>,
    /// r ‖ s of the payer's signature.
    pub signature: [u8; 64],
    pub odd_y: bool,
    pub proof: ProofForm,
}

/// One item of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    Transaction(Structured),
    Other(BundleItem),
}

impl OpenedItem {
    /// The envelopes of a batch with these bytes, opened with these keys, each if it can be restored from that. A wrong key
    /// gives one that restores to something else.
    pub fn of_all<'a>(
        run: &RunTerms,
        batch: &BatchTerms,
        items: impl Iterator<Item = (&'a [u8], &'a SessionKey)>,
    ) -> Vec<Option<Self>> {
        let mut found: Vec<_> = items.map(|(bytes, key)| Self::drafted(run, batch, bytes, key)).collect();
        let first = |item: &Self| item.first.as_ref().map(|first| first.signed(run.chain_id));
        let signed: Vec<_> = found.iter().flatten().filter_map(first).collect();
        let mut senders = recover_all(&signed).into_iter();
        for item in found.iter_mut().flatten().filter(|item| item.first.is_some()) {
            // One sender for each first transaction.
            if item.payer.is_some() && senders.next().and_then(Result::ok) == item.payer {
                item.payer = None;
            } else {
                item.first = None;
            }
        }
        found
    }

    /// One of them, with its payer and with its first transaction, whoever signed that.
    fn drafted(run: &RunTerms, batch: &BatchTerms, bytes: &[u8], key: &SessionKey) -> Option<Self> {
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
        let mut message = key.message(&ad.0, &envelope.ciphertext.e);
        let proof = ProofForm::of(&ad.0, &envelope.ciphertext, &envelope.proof, &message, key);
        let first = match inner(run.chain_id, &message).and_then(|items| items.into_iter().next()) {
            Some(Inner::Transaction(first)) => Some(Box::new(first)),
            _ => None,
        };
        strip_padding(&mut message);
        Some(Self {
            payer: Some(header.payer),
            first,
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
            None => self.first.as_ref()?.sender(run.chain_id)?,
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

    /// The padded message.
    pub fn padded_message(&self) -> Vec<u8> {
        let mut message = self.message.clone();
        message.resize(self.bucket_bytes(), 0);
        message
    }

    pub fn fee_signature(&self) -> Signature65 {
        let mut signature = [27 + u8::from(self.odd_y); 65];
        signature[..64].copy_from_slice(&self.signature);
        Signature65(signature)
    }
}

/// Takes the zeros off a message's end, the padding among them: its bucket says how many there were.
pub(super) fn strip_padding(message: &mut Vec<u8>) {
    let length = message.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    message.truncate(length);
}

/// The items of a bundle, by their fields where those give them back; `None` for a message that is no bundle.
pub(super) fn inner(chain_id: u64, message: &[u8]) -> Option<Vec<Inner>> {
    let bundle = Bundle::decode(message).ok()?;
    let inner = |item: &BundleItem| {
        let structured = match item.kind {
            KIND_TRANSACTION => Structured::of(chain_id, &item.bytes),
            _ => None,
        };
        structured.map_or_else(|| Inner::Other(item.clone()), Inner::Transaction)
    };
    Some(bundle.items.iter().map(inner).collect())
}

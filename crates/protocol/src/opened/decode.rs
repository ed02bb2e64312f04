//! From columns to batches.

use crate::bte::ProofForm;
use crate::bundle::{BundleItem, KIND_TRANSACTION};
use crate::codec::DecodeError;
use crate::limits::{MAX_BATCH_ITEMS, MAX_BUNDLE_ITEMS, SIZE_BUCKETS, VERSION};
use crate::opened::columns::{Column, KnownAddresses, Reader};
use crate::opened::item::{Inner, OpenedItem, strip_padding};
use crate::opened::transaction::{Structured, from_decimal};
use crate::opened::{MAX_BATCHES, MAX_BODY_BYTES, MAX_ITEM_BYTES, MAX_ITEMS, OpenedBatch, OpenedRun, Stored};
use crate::signature::{SIGNATURE_BYTES, Signature65};

/// An item's form: bits (OD-3). None set: its bytes follow as they are.
pub(super) const IS_OPENED: u8 = 1;
/// Who pays is who signed the first transaction.
pub(super) const PAYER_SENDS: u8 = 1 << 1;
/// Challenge and response of the proof follow.
pub(super) const IS_STATED: u8 = 1 << 2;
/// The message is a bundle.
pub(super) const IS_BUNDLE: u8 = 1 << 3;
/// The signature's point has an odd y. Also of transactions.
pub(super) const ODD_Y: u8 = 1 << 4;
const ITEM_FORM: u8 = IS_OPENED | PAYER_SENDS | IS_STATED | IS_BUNDLE | ODD_Y;

/// An inner item's form. None set: kind and bytes follow as they are.
pub(super) const IS_STRUCTURED: u8 = 1;
/// A transaction without a recipient.
pub(super) const CREATES: u8 = 1 << 1;
const INNER_FORM: u8 = IS_STRUCTURED | CREATES | ODD_Y;

pub(super) fn decode(chain_id: u64, body: &[u8]) -> Result<OpenedRun, DecodeError> {
    if body.len() > MAX_BODY_BYTES {
        let (got, limit) = (body.len() as u64, MAX_BODY_BYTES as u64);
        return Err(DecodeError::TooLarge { field: "opened data", got, limit });
    }
    let mut decoder = Decoder {
        chain_id,
        item_bytes: 0,
        items_left: MAX_ITEMS,
        columns: Reader::new(body)?,
        payers: KnownAddresses::default(),
        recipients: KnownAddresses::default(),
    };
    let mut batches = Vec::new();
    while decoder.columns.left(Column::BatchItems) > 0 {
        if batches.len() == MAX_BATCHES {
            let limit = MAX_BATCHES as u64;
            return Err(DecodeError::TooLarge { field: "batches", got: limit + 1, limit });
        }
        batches.push(decoder.batch()?);
    }
    decoder.columns.finish()?;
    Ok(OpenedRun { batches })
}

/// A message is no longer than what it is padded to.
fn fits(message: &[u8], limit: usize) -> Result<(), DecodeError> {
    let (got, limit) = (message.len() as u64, limit as u64);
    if got > limit { Err(DecodeError::TooLarge { field: "message", got, limit }) } else { Ok(()) }
}

struct Decoder<'a> {
    chain_id: u64,
    /// What the items read so far will take.
    item_bytes: u64,
    items_left: usize,
    columns: Reader<'a>,
    payers: KnownAddresses,
    recipients: KnownAddresses,
}

impl Decoder<'_> {
    fn batch(&mut self) -> Result<OpenedBatch, DecodeError> {
        let count = self.count("items", Column::BatchItems, MAX_BATCH_ITEMS.min(self.items_left))?;
        self.items_left -= count;
        let signature = Signature65(self.columns.array::<SIGNATURE_BYTES>(Column::BatchSignatures)?);
        // Grows with what is there: every item has a verdict code.
        let mut items = Vec::new();
        for _ in 0..count {
            let code = self.columns.byte(Column::Codes)?;
            let stored = self.stored()?;
            self.item_bytes = self.item_bytes.saturating_add(stored.item_bytes());
            if self.item_bytes > MAX_ITEM_BYTES {
                let (got, limit) = (self.item_bytes, MAX_ITEM_BYTES);
                return Err(DecodeError::TooLarge { field: "item bytes", got, limit });
            }
            items.push((code, stored));
        }
        Ok(OpenedBatch { signature, items })
    }

    fn count(&mut self, field: &'static str, column: Column, limit: usize) -> Result<usize, DecodeError> {
        let got = self.columns.u64(column)?;
        let limit = limit as u64;
        if got > limit { Err(DecodeError::TooLarge { field, got, limit }) } else { Ok(got as usize) }
    }

    fn stored(&mut self) -> Result<Stored, DecodeError> {
        let form = self.columns.byte(Column::Forms)?;
        if form == 0 {
            let bytes = self.columns.prefixed(Column::RawLengths, Column::RawBytes)?;
            return Ok(Stored::Raw(bytes.to_vec()));
        }
        if form & !ITEM_FORM != 0 || form & IS_OPENED == 0 {
            return Err(DecodeError::UnknownTag { field: "form of an item", value: form });
        }
        self.opened(form).map(|item| Stored::Opened(Box::new(item)))
    }

    fn opened(&mut self, form: u8) -> Result<OpenedItem, DecodeError> {
        let columns = &mut self.columns;
        let payer = match form & PAYER_SENDS {
            0 => Some(self.payers.take(columns, Column::Payers, Column::PayerTable)?),
            _ => None,
        };
        let fee_nonce = u64::from_be_bytes(columns.array(Column::FeeNonces)?);
        let max_fee = columns.u128(Column::MaxFees)?;
        let priority_fee = columns.u128(Column::PriorityFees)?;
        let max_gas_fee = columns.u128(Column::MaxGasFees)?;
        let gas_limit = columns.u64(Column::GasLimits)?;
        let generation = columns.u64(Column::Generations)?;
        let generation = u16::try_from(generation).map_err(|_| {
            let limit = u16::MAX.into();
            DecodeError::TooLarge { field: "generation", got: generation, limit }
        })?;
        let expiry_difference = columns.u64(Column::Expiries)?;
        let bucket = columns.byte(Column::Buckets)?;
        if usize::from(bucket) >= SIZE_BUCKETS.len() {
            return Err(DecodeError::UnknownTag { field: "size bucket", value: bucket });
        }
        let signature = columns.array(Column::FeeSignatures)?;
        let proof = match form & IS_STATED {
            0 => ProofForm::Derived,
            _ => ProofForm::Stated {
                challenge: columns.array(Column::Challenges)?,
                s: columns.array(Column::Responses)?,
            },
        };
        let limit = SIZE_BUCKETS.get(usize::from(bucket)).copied().unwrap_or_default();
        let (mut message, mut first) = (Vec::new(), None);
        if form & IS_BUNDLE == 0 {
            message = columns.prefixed(Column::MessageLengths, Column::MessageBytes)?.to_vec();
        } else {
            let count = self.count("items of a bundle", Column::BundleItems, MAX_BUNDLE_ITEMS)?;
            message.push(VERSION);
            // At most `MAX_BUNDLE_ITEMS`.
            message.extend_from_slice(&(count as u16).to_be_bytes());
            for index in 0..count {
                let inner = self.inner()?;
                let (kind, bytes) = match &inner {
                    Inner::Transaction(fields) => (KIND_TRANSACTION, &fields.encode(self.chain_id)),
                    Inner::Other(item) => (item.kind, &item.bytes),
                };
                message.push(kind);
                message.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                message.extend_from_slice(bytes);
                fits(&message, limit)?;
                if let (0, Inner::Transaction(fields)) = (index, inner) {
                    first = Some(Box::new(fields));
                }
            }
        }
        fits(&message, limit)?;
        // A bundle may end in zeros of its own.
        strip_padding(&mut message);
        if payer.is_some() {
            first = None;
        }
        Ok(OpenedItem {
            payer,
            fee_nonce,
            max_fee,
            priority_fee,
            max_gas_fee,
            gas_limit,
            generation,
            expiry_difference,
            bucket,
            message,
            first,
            signature,
            odd_y: form & ODD_Y != 0,
            proof,
        })
    }

    fn inner(&mut self) -> Result<Inner, DecodeError> {
        let columns = &mut self.columns;
        let form = columns.byte(Column::ItemForms)?;
        if form == 0 {
            let kind = columns.byte(Column::OtherBytes)?;
            let bytes = columns.prefixed(Column::OtherLengths, Column::OtherBytes)?.to_vec();
            return Ok(Inner::Other(BundleItem { kind, bytes }));
        }
        if form & !INNER_FORM != 0 || form & IS_STRUCTURED == 0 {
            return Err(DecodeError::UnknownTag { field: "form of a transaction", value: form });
        }
        let nonce = columns.u64(Column::Nonces)?;
        let max_priority_fee_per_gas = columns.u128(Column::MaxPriorityFeesPerGas)?;
        let max_fee_per_gas = columns.u128(Column::MaxFeesPerGas)?;
        let gas_limit = columns.u64(Column::TransactionGasLimits)?;
        let to = match form & CREATES {
            0 => Some(self.recipients.take(columns, Column::Recipients, Column::RecipientTable)?),
            _ => None,
        };
        let exponent = columns.byte(Column::ValueExponents)?;
        let mantissa = columns.wide(Column::ValueMantissas)?;
        let value = from_decimal(exponent, mantissa)
            .ok_or(DecodeError::UnknownTag { field: "exponent of a value", value: exponent })?;
        Ok(Inner::Transaction(Structured {
            nonce,
            max_priority_fee_per_gas,
            max_fee_per_gas,
            gas_limit,
            to,
            value,
            input: columns.prefixed(Column::InputLengths, Column::InputBytes)?.to_vec(),
            signature: columns.array(Column::Signatures)?,
            odd_y: form & ODD_Y != 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::columns::Writer;

    /// A body of one batch after another with so many items, each written by `item`.
    fn body(batches: &[usize], item: impl Fn(&mut Writer)) -> Vec<u8> {
        let mut out = Writer::new();
        for count in batches {
            out.number(Column::BatchItems, *count as u64);
            out.bytes(Column::BatchSignatures, &[0; SIGNATURE_BYTES]);
            for _ in 0..*count {
                out.bytes(Column::Codes, &[0]);
                item(&mut out);
            }
        }
        out.finish()
    }

    /// An opened item with a bundle of so many empty items of a kind that means nothing.
    fn bundle(out: &mut Writer, bucket: u8, inner: usize) {
        out.bytes(Column::Forms, &[IS_OPENED | IS_BUNDLE]);
        for column in [Column::Payers, Column::MaxFees, Column::PriorityFees, Column::MaxGasFees] {
            out.number(column, 0u64);
        }
        for column in [Column::GasLimits, Column::Generations, Column::Expiries] {
            out.number(column, 0u64);
        }
        out.bytes(Column::PayerTable, &[7; 20]);
        out.bytes(Column::FeeNonces, &[0; 8]);
        out.bytes(Column::Buckets, &[bucket]);
        out.bytes(Column::FeeSignatures, &[0; 64]);
        out.number(Column::BundleItems, inner as u64);
        for _ in 0..inner {
            out.bytes(Column::ItemForms, &[0]);
            out.bytes(Column::OtherBytes, &[9]);
            out.number(Column::OtherLengths, 0u64);
        }
    }

    fn too_large(body: &[u8]) -> Option<&'static str> {
        match decode(1, body) {
            Err(DecodeError::TooLarge { field, .. }) => Some(field),
            _ => None,
        }
    }

    /// A few bytes of a body stand for many of memory: as many as fit what they restore to, and no more.
    #[test]
    fn a_body_takes_no_more_memory_than_what_it_restores_to() {
        // 3 + 5 · 50 bytes fit 256, one more does not.
        assert!(decode(1, &body(&[1], |out| bundle(out, 0, 50))).is_ok());
        assert_eq!(too_large(&body(&[1], |out| bundle(out, 0, 51))), Some("message"));
        assert!(decode(1, &body(&[400], |out| bundle(out, 7, 0))).is_ok());
        assert_eq!(too_large(&body(&[600], |out| bundle(out, 7, 0))), Some("item bytes"));
        let empty = |out: &mut Writer| {
            out.bytes(Column::Forms, &[0]);
            out.number(Column::RawLengths, 0u64);
        };
        let full = [MAX_BATCH_ITEMS; 16];
        assert!(decode(1, &body(&full, empty)).is_ok());
        assert_eq!(too_large(&body(&[&full[..], &[1]].concat(), empty)), Some("items"));
    }
}

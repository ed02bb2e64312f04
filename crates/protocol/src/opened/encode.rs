//! From batches to columns.

use crate::bte::ProofForm;
use crate::opened::columns::{Column, KnownAddresses, Writer};
use crate::opened::decode::{CREATES, IS_BUNDLE, IS_OPENED, IS_STATED, IS_STRUCTURED, ODD_Y, PAYER_SENDS};
use crate::opened::item::{Inner, OpenedItem, inner};
use crate::opened::transaction::{Structured, decimal};
use crate::opened::{OpenBatch, OpenedBatch, OpenedRun, RunTerms, Stored};

/// The body that holds these batches, as [`OpenedRun::of`] and [`OpenedRun::encode`].
pub fn encode(run: &RunTerms, batches: &[OpenBatch<'_>]) -> Vec<u8> {
    OpenedRun::of(run, batches).encode(run.chain_id)
}

impl OpenedRun {
    /// What a body will hold of these batches. Items without a key stand as they are, and so do those that would not come
    /// back from their fields. There must be a code and an entry of keys for each item; a batch with fewer loses the rest, and
    /// then fits no header. A recovery of a secp256k1 key for each opened item.
    pub fn of(run: &RunTerms, batches: &[OpenBatch<'_>]) -> Self {
        let batch = |batch: &OpenBatch<'_>| {
            let keyed = batch.items.iter().zip(batch.keys);
            let keyed = keyed.filter_map(|(item, key)| Some((item.as_slice(), key.as_ref()?)));
            let mut opened = OpenedItem::of_all(run, &batch.terms, keyed).into_iter();
            let items = batch.items.iter().zip(batch.codes).zip(batch.keys);
            let stored = items.map(|((item, code), key)| {
                // One for each key.
                let opened = key.as_ref().and_then(|_| opened.next().flatten());
                let stored = opened
                    .map_or_else(|| Stored::Raw(item.clone()), |opened| Stored::Opened(Box::new(opened)));
                (*code, stored)
            });
            OpenedBatch { signature: *batch.signature, items: stored.collect() }
        };
        Self { batches: batches.iter().map(batch).collect() }
    }

    /// The body that [`decode`](Self::decode) reads.
    pub fn encode(&self, chain_id: u64) -> Vec<u8> {
        let mut out = Encoder {
            columns: Writer::new(),
            payers: KnownAddresses::default(),
            recipients: KnownAddresses::default(),
        };
        for batch in &self.batches {
            out.columns.number(Column::BatchItems, batch.items.len() as u64);
            out.columns.bytes(Column::BatchSignatures, &batch.signature.0);
            for (code, stored) in &batch.items {
                out.columns.bytes(Column::Codes, &[*code]);
                match stored {
                    Stored::Opened(opened) => out.opened(chain_id, opened),
                    Stored::Raw(item) => out.raw(item),
                }
            }
        }
        out.columns.finish()
    }
}

struct Encoder {
    columns: Writer,
    payers: KnownAddresses,
    recipients: KnownAddresses,
}

impl Encoder {
    fn raw(&mut self, item: &[u8]) {
        self.columns.bytes(Column::Forms, &[0]);
        self.prefixed(Column::RawLengths, Column::RawBytes, item);
    }

    fn prefixed(&mut self, lengths: Column, bytes: Column, value: &[u8]) {
        self.columns.number(lengths, value.len() as u64);
        self.columns.bytes(bytes, value);
    }

    fn opened(&mut self, chain_id: u64, item: &OpenedItem) {
        let mut form = IS_OPENED;
        let columns = &mut self.columns;
        match item.payer {
            Some(payer) => self.payers.put(columns, Column::Payers, Column::PayerTable, payer),
            None => form |= PAYER_SENDS,
        }
        columns.bytes(Column::FeeNonces, &item.fee_nonce.to_be_bytes());
        columns.number(Column::MaxFees, item.max_fee);
        columns.number(Column::PriorityFees, item.priority_fee);
        columns.number(Column::MaxGasFees, item.max_gas_fee);
        columns.number(Column::GasLimits, item.gas_limit);
        columns.number(Column::Generations, item.generation);
        columns.number(Column::Expiries, item.expiry_difference);
        columns.bytes(Column::Buckets, &[item.bucket]);
        columns.bytes(Column::FeeSignatures, &item.signature);
        if item.odd_y {
            form |= ODD_Y;
        }
        if let ProofForm::Stated { challenge, s } = &item.proof {
            form |= IS_STATED;
            columns.bytes(Column::Challenges, challenge);
            columns.bytes(Column::Responses, s);
        }
        let inner = inner(chain_id, &item.padded_message());
        if inner.is_some() {
            form |= IS_BUNDLE;
        }
        columns.bytes(Column::Forms, &[form]);
        match inner {
            None => self.prefixed(Column::MessageLengths, Column::MessageBytes, &item.message),
            Some(items) => {
                self.columns.number(Column::BundleItems, items.len() as u64);
                for inner in &items {
                    match inner {
                        Inner::Transaction(transaction) => self.transaction(transaction),
                        Inner::Other(item) => {
                            self.columns.bytes(Column::ItemForms, &[0]);
                            self.columns.bytes(Column::OtherBytes, &[item.kind]);
                            self.prefixed(Column::OtherLengths, Column::OtherBytes, &item.bytes);
                        }
                    }
                }
            }
        }
    }

    fn transaction(&mut self, transaction: &Structured) {
        let mut form = IS_STRUCTURED;
        let columns = &mut self.columns;
        columns.number(Column::Nonces, transaction.nonce);
        columns.number(Column::MaxPriorityFeesPerGas, transaction.max_priority_fee_per_gas);
        columns.number(Column::MaxFeesPerGas, transaction.max_fee_per_gas);
        columns.number(Column::TransactionGasLimits, transaction.gas_limit);
        match transaction.to {
            Some(to) => self.recipients.put(columns, Column::Recipients, Column::RecipientTable, to),
            None => form |= CREATES,
        }
        let (exponent, mantissa) = decimal(transaction.value);
        columns.bytes(Column::ValueExponents, &[exponent]);
        columns.wide(Column::ValueMantissas, mantissa);
        columns.bytes(Column::Signatures, &transaction.signature);
        if transaction.odd_y {
            form |= ODD_Y;
        }
        columns.bytes(Column::ItemForms, &[form]);
        self.prefixed(Column::InputLengths, Column::InputBytes, &transaction.input);
    }
}

//! Headers made by L1 (`BlindedInbox.postL1Header`): L1's word certifies them, and they take the forced items alone.

use super::check::item_leaf;
use super::facts::{AppliedBatch, Verdict};
use super::faults::{HeaderError, InputError, SealError};
use super::head::Head;
use super::state::{ChainState, check_rules, compare};
use crate::block::block_second;
use crate::epoch::Epoch;
use crate::fault::EnvelopeError;
use crate::forced::forced_transaction_gas;
use crate::header::BatchHeader;
use crate::ledger::LedgerDelta;
use crate::limits::{MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS, RULES};
use crate::merkle;
use alloy_primitives::{B256, keccak256};

impl ChainState {
    /// The header that L1 makes on top of the head out of these items, the next entries of the forced queue (O-5).
    ///
    /// Origin, base fees and fee ledger are the parent's, and the data hash is zero: no deposit is credited and no nonce pruned. Transactions have
    /// the code 0xff; envelopes have the code 0xfe and the id zero, for nobody certified them and so nobody opens them.
    /// `timestamp_ms` is L1's choice. Sums over the second do not bind L1.
    pub fn l1_header<T: AsRef<[u8]>>(
        &self,
        timestamp_ms: u64,
        items: &[T],
        epoch: &Epoch,
    ) -> Result<BatchHeader, SealError> {
        let head = &self.head;
        let number = head.number.checked_add(1).ok_or(InputError::Exhausted)?;
        if timestamp_ms <= head.timestamp_ms {
            return Err(SealError::Time { timestamp_ms, parent_ms: head.timestamp_ms });
        }
        // No number need be of the epoch: the last one serves where none is registered.
        let count = items.len();
        if count > MAX_FORCED_ITEMS {
            return Err(SealError::ForcedCap(count as u64));
        }
        let (mut gas, mut bytes) = (0u64, 0u32);
        let mut leaves = Vec::with_capacity(count);
        for (index, item) in items.iter().enumerate() {
            let item = item.as_ref();
            // Saturating: refused just below.
            let length = u32::try_from(item.len()).unwrap_or(u32::MAX);
            if length as usize > MAX_ENVELOPE_BYTES {
                return Err(SealError::ItemTooLong { index, bytes: length });
            }
            bytes += length;
            // Bounded by the queue; sixteen limits of 64 bits do not fit for sure.
            gas = gas.saturating_add(forced_transaction_gas(item).unwrap_or(0));
            leaves.push(item_leaf(&B256::ZERO, &keccak256(item), l1_verdict(item).code()));
        }
        Ok(BatchHeader {
            number,
            parent_hash: head.hash,
            timestamp_ms,
            l1_origin_number: head.l1_origin,
            l1_origin_hash: head.l1_origin_hash,
            l1_origin_time: head.l1_origin_time,
            envelope_root: merkle::root(&leaves),
            // L1 has the items' hashes, not their bytes.
            data_hash: B256::ZERO,
            envelope_count: count as u32,
            envelope_bytes: bytes,
            gas,
            base_fee: head.base_fee,
            gas_base_fee: head.gas_base_fee,
            fee_ledger_root: self.ledger.root(),
            // Saturating: there are not 2^64 entries.
            forced_cursor: head.forced_cursor.saturating_add(count as u64),
            epoch: epoch.epoch,
            rules: RULES,
        })
    }

    /// Checks a header that L1 made against its recomputation and applies it. The caller knows from L1 that it made
    /// this header in block `made_at`, which the next header's origin has to reach; `items` are the entries it took. All
    /// or nothing.
    pub fn apply_l1_header<T: AsRef<[u8]>>(
        &mut self,
        header: &BatchHeader,
        items: &[T],
        epoch: &Epoch,
        made_at: u64,
    ) -> Result<AppliedBatch, HeaderError> {
        let previous_head = self.head;
        let expected =
            previous_head.number.checked_add(1).ok_or(HeaderError::Input(InputError::Exhausted))?;
        if header.number != expected {
            return Err(HeaderError::Number { got: header.number, expected });
        }
        if header.parent_hash != previous_head.hash {
            return Err(HeaderError::Parent { got: header.parent_hash, expected: previous_head.hash });
        }
        if header.epoch != epoch.epoch {
            return Err(HeaderError::Epoch { got: header.epoch, expected: epoch.epoch });
        }
        check_rules(header.rules)?;
        let recomputed = self.l1_header(header.timestamp_ms, items, epoch)?;
        let (number, hash) = (header.l1_origin_number, header.l1_origin_hash);
        let origin = (recomputed.l1_origin_number, recomputed.l1_origin_hash, recomputed.l1_origin_time);
        if (number, hash, header.l1_origin_time) != origin {
            return Err(HeaderError::L1Origin { number, hash });
        }
        compare(header, &recomputed)?;
        let totals = self.second_totals(block_second(header.timestamp_ms));
        let transactions =
            items.iter().map(AsRef::as_ref).filter(|item| forced_transaction_gas(item).is_some());
        let load_bytes: u64 = transactions.map(|item| item.len() as u64).sum();
        self.head = Head {
            number: header.number,
            hash: header.hash(),
            timestamp_ms: header.timestamp_ms,
            l1_origin: header.l1_origin_number,
            l1_origin_hash: header.l1_origin_hash,
            l1_origin_time: header.l1_origin_time,
            base_fee: header.base_fee,
            gas_base_fee: header.gas_base_fee,
            second_gas: totals.gas.saturating_add(header.gas),
            second_bytes: totals.bytes.saturating_add(u64::from(header.envelope_bytes)),
            second_load_bytes: totals.load_bytes.saturating_add(load_bytes),
            forced_cursor: header.forced_cursor,
            made_at,
            generation: previous_head.generation.wrapping_add(1),
        };
        Ok(AppliedBatch {
            number: header.number,
            header_hash: self.head.hash,
            verdicts: items.iter().map(|item| l1_verdict(item.as_ref())).collect(),
            ledger_delta: LedgerDelta::default(),
            previous_head,
            head: self.head,
        })
    }
}

/// The verdict of an item of a header that L1 made.
fn l1_verdict(item: &[u8]) -> Verdict {
    match forced_transaction_gas(item) {
        Some(_) => Verdict::ForcedTransaction,
        None => Verdict::Skipped(EnvelopeError::Void),
    }
}

//! The mempool as admission and the sealer share it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use blindfold_protocol::{
    Address, B256, Canonical, Envelope, EnvelopeError,
    validity::{ChainState, CheckedEnvelope, Verdict},
};
use blindfold_runtime::Instant;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{
    config::SealingConfig,
    context::Context,
    mempool::{Mempool, Meta, NextHeader, rank},
    reservations::Demand,
};

/// What a batch takes of an envelope: its bytes as they came, and the result of the expensive checks.
#[derive(Clone)]
pub(crate) struct PoolItem {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) checked: Arc<CheckedEnvelope>,
    /// When it came, or was taken back from the disk.
    pub(crate) arrived: Instant,
}

/// What waits for a batch. Its lock comes before the tracker's.
pub(crate) struct Pool {
    cx: Arc<Context>,
    mempool: Mutex<Mempool<PoolItem>>,
    /// Wakes the sealer before its slot ends.
    pub(crate) full: Notify,
    /// What was admitted since the sealer looked last; envelopes that it left in the pool make no batch full.
    pub(crate) arrived: Arrived,
}

impl Pool {
    /// An empty one, in which so much of a batch may be promised.
    pub(crate) fn new(cx: Arc<Context>, promised: Demand) -> Self {
        let mempool = Mutex::new(Mempool::new(cx.config.mempool.clone(), promised));
        Self { cx, mempool, full: Notify::new(), arrived: Arrived::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Mempool<PoolItem>> {
        self.mempool.lock()
    }

    /// Shows the mempool's size in the metrics.
    pub(crate) fn show(&self, pool: &Mempool<PoolItem>) {
        self.cx.metrics.envelopes_pending.set(pool.len() as u64);
        self.cx.metrics.envelopes_pending_bytes.set(pool.bytes() as u64);
    }

    /// The header that comes next.
    pub(crate) fn next_header(&self) -> NextHeader {
        let (head, fees) = self.cx.tracker.with_state(|state| (*state.head(), state.next_base_fees()));
        let number = head.number.saturating_add(1);
        let epoch = self.cx.tracker.registered_epoch(number);
        NextHeader { number, epoch, generation: head.generation, fees }
    }

    /// What ordering needs to know of an envelope. It ranks by the tip that it would pay now, not by what it names.
    pub(crate) fn meta_of(&self, envelope: &Envelope, id: B256, bytes: usize, seal_by: Option<u64>) -> Meta {
        let header = &envelope.header;
        // An envelope has at most MAX_ENVELOPE_BYTES.
        let item_bytes = bytes as u32;
        let above = header.max_fee.saturating_sub(self.cx.tracker.next_base_fees().base_fee);
        let tip = header.priority_fee.min(above);
        Meta {
            id,
            payer: header.payer,
            fee_nonce: header.fee_nonce,
            epoch: header.epoch,
            expiry: header.expiry.number(),
            generation: header.expiry.generation(),
            max_fee: header.max_fee,
            max_gas_fee: header.max_gas_fee,
            priority_fee: header.priority_fee,
            gas_limit: header.gas_limit,
            item_bytes,
            rank: rank(tip, item_bytes, header.gas_limit, self.cx.chain.second_gas_limit()),
            seal_by,
        }
    }

    /// What the payer's pending envelopes will cost at the next base fees.
    pub(crate) fn committed(&self, pool: &Mempool<PoolItem>, state: &ChainState, payer: &Address) -> u128 {
        let number = state.head().number + 1;
        // A live fee nonce is an envelope that was paid for.
        let paid = |nonce: u64| state.ledger().nonce(payer, nonce).is_some_and(|by| by >= number);
        pool.committed(payer, state.next_base_fees(), self.cx.chain.malformed_surcharge, paid)
    }
}

/// Takes out what batch `number` is the end of: the very bytes, not a copy with their id, accepted, or with a verdict that
/// keeps their promise. Forced too early, for one, an envelope is skipped, and waits on.
pub(crate) fn done_in<'i>(
    pool: &mut Mempool<PoolItem>,
    number: u64,
    items: impl IntoIterator<Item = &'i (impl AsRef<[u8]> + 'i)>,
    verdicts: &[Verdict],
) {
    for (bytes, verdict) in items.into_iter().map(AsRef::as_ref).zip(verdicts) {
        let Ok(envelope) = Envelope::decode(bytes) else { continue };
        let id = envelope.id();
        let Some(item) = pool.item(&id) else {
            // It may be on its way back from the disk.
            if verdict.is_accepted() {
                pool.note_gone(&id);
            }
            continue;
        };
        let promised = pool.get(&id).and_then(|meta| meta.seal_by);
        let done = match verdict {
            Verdict::Skipped(EnvelopeError::Duplicate) => true,
            Verdict::Skipped(fault) => fault.spoilt_by_payer() && promised.is_some_and(|by| by <= number),
            _ => true,
        };
        if done && item.bytes[..] == *bytes {
            pool.remove(&id);
        }
    }
}

/// Envelopes and their bytes, counted up by admission and back to zero by the sealer.
#[derive(Default)]
pub(crate) struct Arrived {
    items: AtomicU64,
    bytes: AtomicU64,
}

impl Arrived {
    /// Adds an envelope; true when what arrived fills a batch.
    pub(crate) fn add(&self, bytes: usize, limits: &SealingConfig) -> bool {
        let items = self.items.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = bytes as u64;
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        items >= u64::from(limits.max_batch_items) || total >= u64::from(limits.max_batch_bytes)
    }

    /// Counts from nothing again, for the next batch.
    pub(crate) fn clear(&self) {
        self.items.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_fills_a_batch_by_items_or_by_bytes() {
        let limits = SealingConfig { max_batch_items: 3, max_batch_bytes: 100, ..SealingConfig::default() };
        let arrived = Arrived::default();
        assert!(!arrived.add(10, &limits) && !arrived.add(10, &limits) && arrived.add(10, &limits));
        arrived.clear();
        assert!(!arrived.add(60, &limits) && arrived.add(40, &limits));
    }
}

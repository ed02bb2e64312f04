//! The mempool: admitted envelopes that wait for a batch. Bounded by count, bytes and payer; never evicts, because
//! every envelope in it was acknowledged. Pure data structure: no clock, no disk, no locks.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
};

use blindfold_protocol::{Address, B256};

use crate::config::MempoolConfig;

/// What ordering and accounting need to know of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Envelope id.
    pub id: B256,
    /// Fee payer.
    pub payer: Address,
    /// The payer's fee nonce, used once.
    pub fee_nonce: u64,
    /// Key epoch: only batches of this epoch may hold it.
    pub epoch: u64,
    /// Last batch number that may hold it.
    pub expiry: u64,
    /// Most the payer gives per byte, in wei.
    pub max_fee: u128,
    /// What the payer gives per byte above the base fee, in wei.
    pub priority_fee: u128,
    /// Gas limit of its inner transactions together.
    pub gas_limit: u64,
    /// Bytes it takes in a batch.
    pub item_bytes: u32,
    /// Batch number promised to its user.
    pub seal_by: Option<u64>,
}

impl Meta {
    /// Ordering fee at this base fee, in wei; saturating, because a fee that large fails every balance check anyway.
    pub fn fee(&self, base_fee: u128) -> u128 {
        let per_byte = self.max_fee.min(base_fee.saturating_add(self.priority_fee));
        per_byte.saturating_mul(self.item_bytes.into())
    }
}

/// Why an envelope finds no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolRefusal {
    /// The same id is pending.
    Known,
    /// Another pending envelope of the payer uses this fee nonce.
    NoncePending,
    /// Count or bytes are at their limit.
    Full,
    /// The payer has as many pending envelopes as one payer may.
    PayerLimit,
}

/// What the sealer says of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Into the batch.
    Take,
    /// Not into this batch; ask about the next candidate.
    Leave,
    /// The batch is full.
    Stop,
}

/// Position in the order: priority fee, then arrival.
type Place = (Reverse<u128>, u64, B256);

struct Entry<T> {
    meta: Meta,
    arrival: u64,
    ready: bool,
    item: T,
}

#[derive(Default)]
struct PayerPending {
    nonces: HashSet<u64>,
    ids: BTreeSet<B256>,
}

/// Pending envelopes with the item `T` that a batch takes of each.
pub struct Mempool<T> {
    limits: MempoolConfig,
    entries: HashMap<B256, Entry<T>>,
    payers: HashMap<Address, PayerPending>,
    order: BTreeSet<Place>,
    promised: BTreeSet<(u64, u64, B256)>,
    expiries: BTreeSet<(u64, B256)>,
    bytes: usize,
    arrivals: u64,
}

impl<T: Clone> Mempool<T> {
    /// An empty pool with these limits.
    pub fn new(limits: MempoolConfig) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            payers: HashMap::new(),
            order: BTreeSet::new(),
            promised: BTreeSet::new(),
            expiries: BTreeSet::new(),
            bytes: 0,
            arrivals: 0,
        }
    }

    /// Pending envelopes.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all pending envelopes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is known of a pending envelope.
    pub fn get(&self, id: &B256) -> Option<&Meta> {
        self.entries.get(id).map(|entry| &entry.meta)
    }

    /// What a batch would take of a pending envelope.
    pub fn item(&self, id: &B256) -> Option<&T> {
        self.entries.get(id).map(|entry| &entry.item)
    }

    /// Whether an envelope with these fields would find a place (without looking at its fee).
    pub fn check(&self, meta: &Meta) -> Result<(), PoolRefusal> {
        if self.entries.contains_key(&meta.id) {
            return Err(PoolRefusal::Known);
        }
        if let Some(pending) = self.payers.get(&meta.payer) {
            if pending.nonces.contains(&meta.fee_nonce) {
                return Err(PoolRefusal::NoncePending);
            }
            if pending.ids.len() >= self.limits.max_per_payer {
                return Err(PoolRefusal::PayerLimit);
            }
        }
        let bytes = self.bytes.saturating_add(meta.item_bytes as usize);
        if self.entries.len() >= self.limits.max_envelopes || bytes > self.limits.max_bytes {
            return Err(PoolRefusal::Full);
        }
        Ok(())
    }

    /// Takes a place for an envelope. It is not offered to a batch before [`Mempool::ready`].
    pub fn reserve(&mut self, meta: Meta, item: T) -> Result<(), PoolRefusal> {
        self.check(&meta)?;
        self.insert(meta, item);
        Ok(())
    }

    /// Takes an envelope back that was acknowledged before a restart: limits do not apply to it.
    /// False when the id or the payer's nonce is already there.
    pub fn restore(&mut self, meta: Meta, item: T) -> bool {
        if matches!(self.check(&meta), Err(PoolRefusal::Known | PoolRefusal::NoncePending)) {
            return false;
        }
        let id = meta.id;
        self.insert(meta, item);
        self.ready(&id);
        true
    }

    fn insert(&mut self, meta: Meta, item: T) {
        let pending = self.payers.entry(meta.payer).or_default();
        pending.nonces.insert(meta.fee_nonce);
        pending.ids.insert(meta.id);
        self.bytes += meta.item_bytes as usize;
        self.expiries.insert((meta.expiry, meta.id));
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.entries.insert(meta.id, Entry { meta, arrival, ready: false, item });
    }

    /// The envelope is durable: batches may take it.
    pub fn ready(&mut self, id: &B256) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.ready = true;
            self.order.insert((Reverse(entry.meta.priority_fee), entry.arrival, *id));
            if let Some(seal_by) = entry.meta.seal_by {
                self.promised.insert((seal_by, entry.arrival, *id));
            }
        }
    }

    /// Records a promise given after admission; the first promise stands. Returns the one that stands.
    pub fn promise(&mut self, id: &B256, seal_by: u64) -> Option<u64> {
        let entry = self.entries.get_mut(id)?;
        let standing = *entry.meta.seal_by.get_or_insert(seal_by);
        if entry.ready {
            self.promised.insert((standing, entry.arrival, *id));
        }
        Some(standing)
    }

    /// Takes an envelope out, with its item.
    pub fn remove(&mut self, id: &B256) -> Option<(Meta, T)> {
        let entry = self.entries.remove(id)?;
        let meta = entry.meta;
        self.bytes -= meta.item_bytes as usize;
        self.expiries.remove(&(meta.expiry, meta.id));
        self.order.remove(&(Reverse(meta.priority_fee), entry.arrival, meta.id));
        if let Some(seal_by) = meta.seal_by {
            self.promised.remove(&(seal_by, entry.arrival, meta.id));
        }
        if let Some(pending) = self.payers.get_mut(&meta.payer) {
            pending.nonces.remove(&meta.fee_nonce);
            pending.ids.remove(&meta.id);
            if pending.ids.is_empty() {
                self.payers.remove(&meta.payer);
            }
        }
        Some((meta, entry.item))
    }

    /// What a payer's pending envelopes would cost together: each its fee at `base_fee` plus `surcharge`. Saturating.
    /// Envelopes whose fee nonce is `paid` already (sealed, but not removed yet) do not count.
    pub fn committed(
        &self,
        payer: &Address,
        base_fee: u128,
        surcharge: u128,
        paid: impl Fn(u64) -> bool,
    ) -> u128 {
        let Some(pending) = self.payers.get(payer) else { return 0 };
        pending
            .ids
            .iter()
            .filter_map(|id| self.entries.get(id))
            .filter(|entry| !paid(entry.meta.fee_nonce))
            .fold(0, |sum, entry| sum.saturating_add(entry.meta.fee(base_fee)).saturating_add(surcharge))
    }

    /// Ready envelopes whose expiry lies before `number`, at most `limit`.
    pub fn expired(&self, number: u64, limit: usize) -> Vec<B256> {
        self.expiries
            .iter()
            .take_while(|(expiry, _)| *expiry < number)
            .filter(|(_, id)| self.entries.get(id).is_some_and(|entry| entry.ready))
            .map(|(_, id)| *id)
            .take(limit)
            .collect()
    }

    /// Offers the ready envelopes of `epoch` to `pick`, promises due until `urgent` first (earliest promise first),
    /// then by priority fee and arrival, until it says stop. Returns what it took; nothing is removed.
    pub fn select(&self, epoch: u64, urgent: u64, mut pick: impl FnMut(&Meta) -> Pick) -> Vec<(Meta, T)> {
        let mut taken = Vec::new();
        let mut offered = HashSet::new();
        let promised = self.promised.iter().take_while(|(by, ..)| *by <= urgent).map(|(.., id)| id);
        for id in promised.chain(self.order.iter().map(|(.., id)| id)) {
            let Some(entry) = self.entries.get(id) else { continue };
            if entry.meta.epoch != epoch
                || (entry.meta.seal_by.is_some_and(|by| by <= urgent) && !offered.insert(*id))
            {
                continue;
            }
            match pick(&entry.meta) {
                Pick::Take => taken.push((entry.meta.clone(), entry.item.clone())),
                Pick::Leave => {}
                Pick::Stop => break,
            }
        }
        taken
    }

    /// Ready envelopes, over all epochs: a cheap bound for "is a batch full".
    pub fn ready_len(&self) -> usize {
        self.order.len()
    }

    /// Whether an envelope of an epoch after `epoch` waits.
    pub fn waits_for_epoch_after(&self, epoch: u64) -> bool {
        self.entries.values().any(|entry| entry.ready && entry.meta.epoch > epoch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> MempoolConfig {
        MempoolConfig { max_envelopes: 4, max_bytes: 1_000, max_per_payer: 3 }
    }

    fn meta(id: u8, payer: u8, nonce: u64, priority_fee: u128) -> Meta {
        Meta {
            id: B256::repeat_byte(id),
            payer: Address::repeat_byte(payer),
            fee_nonce: nonce,
            epoch: 1,
            expiry: 100,
            max_fee: 1_000,
            priority_fee,
            gas_limit: 21_000,
            item_bytes: 100,
            seal_by: None,
        }
    }

    fn all(pool: &Mempool<u8>, urgent: u64) -> Vec<u8> {
        pool.select(1, urgent, |_| Pick::Take).into_iter().map(|(_, item)| item).collect()
    }

    fn put(pool: &mut Mempool<u8>, meta: Meta) {
        let (id, item) = (meta.id, meta.id.0[0]);
        pool.reserve(meta, item).unwrap();
        pool.ready(&id);
    }

    #[test]
    fn order_is_priority_then_arrival_and_only_ready_ones() {
        let mut pool = Mempool::new(limits());
        put(&mut pool, meta(1, 1, 1, 5));
        put(&mut pool, meta(2, 2, 1, 9));
        put(&mut pool, meta(3, 3, 1, 5));
        pool.reserve(meta(4, 4, 1, 100), 4).unwrap();
        assert_eq!(all(&pool, 0), [2, 1, 3]);
        pool.ready(&B256::repeat_byte(4));
        assert_eq!(all(&pool, 0), [4, 2, 1, 3]);
        assert_eq!(pool.ready_len(), 4);
    }

    #[test]
    fn promises_due_go_first() {
        let mut pool = Mempool::new(limits());
        put(&mut pool, meta(1, 1, 1, 9));
        put(&mut pool, Meta { seal_by: Some(10), ..meta(2, 2, 1, 1) });
        put(&mut pool, meta(3, 3, 1, 2));
        assert_eq!(all(&pool, 9), [1, 3, 2]);
        assert_eq!(all(&pool, 10), [2, 1, 3]);
        assert_eq!(pool.promise(&B256::repeat_byte(3), 8), Some(8));
        assert_eq!(pool.promise(&B256::repeat_byte(3), 20), Some(8), "the first promise stands");
        assert_eq!(pool.promise(&B256::repeat_byte(9), 20), None);
        assert_eq!(all(&pool, 10), [3, 2, 1]);
        pool.remove(&B256::repeat_byte(3)).unwrap();
        assert_eq!(all(&pool, 10), [2, 1]);
    }

    #[test]
    fn each_refusal() {
        let mut pool = Mempool::new(limits());
        put(&mut pool, meta(1, 1, 1, 1));
        assert_eq!(pool.reserve(meta(1, 1, 1, 1), 1), Err(PoolRefusal::Known));
        assert_eq!(pool.reserve(meta(2, 1, 1, 1), 2), Err(PoolRefusal::NoncePending));
        put(&mut pool, meta(2, 1, 2, 1));
        put(&mut pool, meta(3, 1, 3, 1));
        assert_eq!(pool.reserve(meta(4, 1, 4, 1), 4), Err(PoolRefusal::PayerLimit));
        let large = Meta { item_bytes: 701, ..meta(4, 2, 1, 1) };
        assert_eq!(pool.reserve(large, 4), Err(PoolRefusal::Full), "by bytes");
        put(&mut pool, meta(4, 2, 1, 1));
        assert_eq!(pool.reserve(meta(5, 3, 1, 1), 5), Err(PoolRefusal::Full), "by count");
        assert!(
            pool.restore(meta(5, 3, 1, 1), 5),
            "what was acknowledged comes back whatever the limits say"
        );
        assert!(!pool.restore(meta(5, 3, 1, 1), 5));
    }

    #[test]
    fn expiry_and_epochs() {
        let mut pool = Mempool::new(limits());
        put(&mut pool, Meta { expiry: 5, ..meta(1, 1, 1, 1) });
        put(&mut pool, Meta { epoch: 2, ..meta(2, 1, 2, 1) });
        pool.reserve(Meta { expiry: 5, ..meta(3, 1, 3, 1) }, 3).unwrap();
        assert_eq!(all(&pool, 0), [1]);
        assert!(pool.expired(5, 10).is_empty());
        assert_eq!(pool.expired(6, 10), [B256::repeat_byte(1)]);
        assert!(pool.expired(6, 0).is_empty());
    }

    #[test]
    fn committed_follows_the_base_fee() {
        let mut pool = Mempool::new(limits());
        put(&mut pool, Meta { max_fee: 20, ..meta(1, 1, 1, 5) });
        put(&mut pool, Meta { max_fee: 8, ..meta(2, 1, 2, 5) });
        let payer = Address::repeat_byte(1);
        assert_eq!(pool.committed(&payer, 10, 3, |_| false), (15 + 8) * 100 + 6);
        assert_eq!(pool.committed(&payer, 10, 3, |nonce| nonce == 2), 15 * 100 + 3);
        assert_eq!(pool.committed(&payer, u128::MAX, 0, |_| false), (20 + 8) * 100);
        assert_eq!(pool.committed(&Address::repeat_byte(2), 10, 3, |_| false), 0);
    }

    proptest! {
        #[test]
        fn indexes_agree_after_any_sequence(ops in proptest::collection::vec((0u8..4, 0u8..12, 0u8..3, 0u128..4), 0..200)) {
            let mut pool = Mempool::new(MempoolConfig { max_envelopes: 8, max_bytes: 900, max_per_payer: 4 });
            for (op, id, payer, fee) in ops {
                let meta = meta(id, payer, id.into(), fee);
                match op {
                    0 => { let _ = pool.reserve(meta, id); }
                    1 => pool.ready(&meta.id),
                    2 => { pool.promise(&meta.id, fee as u64); }
                    _ => { pool.remove(&meta.id); }
                }
                prop_assert!(pool.len() <= 8 && pool.bytes() == pool.len() * 100);
                prop_assert_eq!(pool.payers.values().map(|p| p.ids.len()).sum::<usize>(), pool.len());
                prop_assert_eq!(pool.expiries.len(), pool.len());
                let ready = pool.entries.values().filter(|e| e.ready).count();
                prop_assert_eq!(pool.ready_len(), ready);
                prop_assert_eq!(all(&pool, 2).len(), ready, "each ready envelope is offered once");
            }
        }
    }
}

//! The mempool: admitted envelopes that wait for a batch. Bounded by count, bytes and payer. When it is full, one that
//! ranks higher takes the place of those that rank lowest; never of one that was promised. Pure data structure: no disk, no
//! locks, and of the clock no more than since when an envelope waits.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    ops::RangeInclusive,
};

use blindfold_protocol::{Address, B256, BaseFees, limits::MAX_SECOND_BYTES};
use blindfold_runtime::{Instant, now};

use crate::{
    config::MempoolConfig,
    ranks::Ranks,
    reservations::{Demand, Reservations},
};

/// What ordering and accounting need to know of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Id of the envelope.
    pub id: B256,
    /// The account that pays its fee.
    pub payer: Address,
    /// The payer's fee nonce, used once.
    pub fee_nonce: u64,
    /// Key epoch: only batches of this epoch may hold it.
    pub epoch: u64,
    /// Last batch number that may hold it.
    pub expiry: u64,
    /// The chain's generation: only batches of it may hold it.
    pub generation: u16,
    /// Most the payer gives per byte, in wei.
    pub max_fee: u128,
    /// Most the payer gives per unit of the gas limit, in wei.
    pub max_gas_fee: u128,
    /// What the payer gives per byte above the base fee, in wei.
    pub priority_fee: u128,
    /// Gas limit of its inner transactions together.
    pub gas_limit: u64,
    /// Bytes it takes in a batch.
    pub item_bytes: u32,
    /// Its place in the order, see [`rank`].
    pub rank: u128,
    /// Batch number promised to its user.
    pub seal_by: Option<u64>,
}

impl Meta {
    /// Ordering fee at these base fees, in wei; saturating, because a fee that large fails every balance check anyway.
    pub fn fee(&self, fees: BaseFees) -> u128 {
        let per_byte = self.max_fee.min(fees.base_fee.saturating_add(self.priority_fee));
        let per_gas = self.max_gas_fee.min(fees.gas_base_fee);
        let gas = per_gas.saturating_mul(self.gas_limit.into());
        per_byte.saturating_mul(self.item_bytes.into()).saturating_add(gas)
    }

    /// Whether its caps cover these base fees.
    fn pays(&self, fees: BaseFees) -> bool {
        self.max_fee >= fees.base_fee && self.max_gas_fee >= fees.gas_base_fee
    }

    /// What it takes of a header.
    pub(crate) fn demand(&self) -> Demand {
        Demand { bytes: self.item_bytes.into(), gas: self.gas_limit, items: 1 }
    }
}

/// What an envelope gives above the base fee for the share that it takes of a second, in picowei for a byte: its bytes, or
/// the bytes that its gas limit would leave no room for, whichever is more.
pub fn rank(priority_fee: u128, item_bytes: u32, gas_limit: u64, second_gas: u64) -> u128 {
    let by_gas = u128::from(gas_limit) * u128::from(MAX_SECOND_BYTES) / u128::from(second_gas.max(1));
    let bytes = u128::from(item_bytes).max(1);
    priority_fee.saturating_mul(bytes).saturating_mul(PICO) / bytes.max(by_gas)
}

/// The header that comes next, as far as it decides which envelopes it could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHeader {
    pub(crate) number: u64,
    /// None where none is registered for the number.
    pub(crate) epoch: Option<u64>,
    pub(crate) generation: u16,
    pub(crate) fees: BaseFees,
}

impl NextHeader {
    /// Whether it could take an envelope whose payer has enough.
    fn could_take(&self, meta: &Meta) -> bool {
        self.epoch == Some(meta.epoch)
            && self.generation == meta.generation
            && self.number <= meta.expiry
            && meta.pays(self.fees)
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
    /// It goes into the batch.
    Take,
    /// Not into this batch; ask about the next candidate.
    Leave,
    /// The batch is full; no further candidate is looked at.
    Stop,
}

/// Parts of a wei in which ranks are told apart.
const PICO: u128 = 1_000_000_000_000;
/// A newcomer takes places in a full pool only of envelopes that rank at least a tenth lower.
const EVICTION_TENTHS: (u128, u128) = (10, 11);
/// Envelopes that one newcomer takes the places of, at most.
const MAX_EVICTED: usize = 128;

/// Position in the order: rank, then arrival.
type Place = (Reverse<u128>, u64, B256);

struct Entry<T> {
    meta: Meta,
    arrival: u64,
    ready: bool,
    /// The rule would have skipped it when it was looked at last, for what its payer has or did.
    skipped: bool,
    /// Whether its rank is counted.
    counted: bool,
    /// Since when it is, where it was not when it came.
    since: Option<Instant>,
    /// Its promise was signed, so it stands whatever comes.
    signed: bool,
    /// Somebody was told that it is admitted, so it is on disk.
    acknowledged: bool,
    item: T,
}

impl<T> Entry<T> {
    /// Whether a header could take it.
    fn goes_into(&self, next: &NextHeader) -> bool {
        self.ready && !self.skipped && next.could_take(&self.meta)
    }

    /// Counts its rank, from this time on where that is not when it came; or does so no longer.
    fn count(&mut self, ranks: &mut Ranks, next: &NextHeader, since: Option<Instant>) {
        let counts = self.goes_into(next);
        match (self.counted, counts) {
            (false, true) => {
                ranks.add(self.meta.rank);
                self.since = since;
            }
            (true, false) => ranks.remove(self.meta.rank),
            _ => {}
        }
        self.counted = counts;
    }
}

/// What became of a promise that is about to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It stands from now on, for this number: sign it.
    Tell(u64),
    /// Its header is being sealed, or is: if nobody was told of it, it is taken back.
    TooLate,
    /// The envelope is not pending any more: a batch has it, or it was taken out.
    Gone,
}

#[derive(Default)]
struct PayerPending {
    nonces: HashSet<u64>,
    ids: BTreeSet<B256>,
    gas: u64,
}

/// Pending envelopes with the item `T` that a batch takes of each.
pub struct Mempool<T> {
    limits: MempoolConfig,
    entries: HashMap<B256, Entry<T>>,
    payers: HashMap<Address, PayerPending>,
    order: BTreeSet<Place>,
    /// Ranks of what the next header could take.
    ranks: Ranks,
    next: NextHeader,
    promised: BTreeSet<(u64, u64, B256)>,
    /// By generation, and by expiry within one.
    expiries: BTreeSet<(u16, u64, B256)>,
    reservations: Reservations,
    /// Envelopes that gave their places to others and are still on disk.
    leaving: HashSet<B256>,
    /// What has left, or is in a batch, since envelopes are being taken back from the disk; `None` while none are.
    gone: Option<HashSet<B256>>,
    /// The header that was chosen for last, whether or not it was sealed.
    chosen: u64,
    bytes: usize,
    arrivals: u64,
}

impl<T: Clone> Mempool<T> {
    /// An empty pool with these limits. `promised` is what may be promised of one header.
    pub(crate) fn new(limits: MempoolConfig, promised: Demand) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            payers: HashMap::new(),
            order: BTreeSet::new(),
            ranks: Ranks::new(),
            next: NextHeader {
                number: 0,
                epoch: None,
                generation: 0,
                fees: BaseFees { base_fee: 0, gas_base_fee: 0 },
            },
            promised: BTreeSet::new(),
            expiries: BTreeSet::new(),
            reservations: Reservations::new(promised),
            leaving: HashSet::new(),
            gone: None,
            chosen: 0,
            bytes: 0,
            arrivals: 0,
        }
    }

    /// How many envelopes are pending.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many envelopes came in so far, and which of those that are pending came first.
    pub(crate) fn arrivals(&self) -> (u64, Option<u64>) {
        (self.arrivals, self.entries.values().map(|entry| entry.arrival).min())
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

    /// Whether an envelope with these fields would find a place, perhaps that of others.
    pub fn check(&self, meta: &Meta) -> Result<(), PoolRefusal> {
        self.places(meta).map(|_| ())
    }

    /// The envelopes whose places one with these fields would take.
    fn places(&self, meta: &Meta) -> Result<Vec<B256>, PoolRefusal> {
        if self.entries.contains_key(&meta.id) {
            return Err(PoolRefusal::Known);
        }
        if self.leaving.contains(&meta.id) {
            // Written down again now, it would be taken off the disk with its first copy.
            return Err(PoolRefusal::Full);
        }
        if let Some(pending) = self.payers.get(&meta.payer) {
            if pending.nonces.contains(&meta.fee_nonce) {
                return Err(PoolRefusal::NoncePending);
            }
            let gas = pending.gas.saturating_add(meta.gas_limit);
            if pending.ids.len() >= self.limits.max_per_payer || gas > self.limits.max_gas_per_payer {
                return Err(PoolRefusal::PayerLimit);
            }
        }
        let mut bytes = self.bytes.saturating_add(meta.item_bytes as usize);
        let mut count = self.entries.len() + 1;
        let mut evicted = Vec::new();
        let (low, high) = EVICTION_TENTHS;
        let mut lowest = self.order.iter().rev().filter_map(|(.., id)| self.entries.get(id));
        while count > self.limits.max_envelopes || bytes > self.limits.max_bytes {
            let next = lowest.find(|entry| entry.meta.seal_by.is_none());
            match next.filter(|entry| entry.meta.rank < meta.rank / high * low) {
                Some(entry) if evicted.len() < MAX_EVICTED => {
                    evicted.push(entry.meta.id);
                    bytes -= entry.meta.item_bytes as usize;
                    count -= 1;
                }
                _ => return Err(PoolRefusal::Full),
            }
        }
        Ok(evicted)
    }

    /// Takes a place for an envelope, with the room of the header it is promised for taken before. It is not offered to
    /// a batch before [`Mempool::ready`]. Gives the envelopes whose places it took: they are out.
    pub fn reserve(&mut self, meta: Meta, item: T) -> Result<Vec<B256>, PoolRefusal> {
        let evicted = self.places(&meta)?;
        for id in &evicted {
            self.remove(id);
            self.leaving.insert(*id);
        }
        self.insert(meta, item);
        Ok(evicted)
    }

    /// The disk has forgotten these envelopes, or keeps them until a restart.
    pub(crate) fn left(&mut self, ids: &[B256]) {
        for id in ids {
            self.leaving.remove(id);
        }
    }

    /// Header `number` is chosen for now: what is not offered yet cannot be part of it.
    pub(crate) fn choosing(&mut self, number: u64) {
        self.chosen = number;
    }

    /// Somebody is told that the envelope is admitted.
    pub(crate) fn acknowledge(&mut self, id: &B256) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.acknowledged = true;
        }
    }

    /// Takes out an envelope that could not be written down. False where somebody else wrote the same one down meanwhile,
    /// and told so: then it stays.
    pub(crate) fn withdraw(&mut self, id: &B256) -> bool {
        let stays = self.entries.get(id).is_some_and(|entry| entry.acknowledged);
        if !stays {
            self.remove(id);
        }
        !stays
    }

    /// Decides whether the promise that an envelope has may be signed. `head` is the last sealed header.
    pub(crate) fn tell(&mut self, id: &B256, head: u64) -> Telling {
        let reached = self.chosen.max(head);
        let Some(entry) = self.entries.get_mut(id) else { return Telling::Gone };
        match entry.meta.seal_by {
            Some(seal_by) if entry.ready && seal_by > reached => {
                entry.signed = true;
                Telling::Tell(seal_by)
            }
            _ => {
                self.take_back(id);
                Telling::TooLate
            }
        }
    }

    /// Takes the room of the first of these headers that has enough of it, for a promise.
    pub(crate) fn reserve_number(&mut self, numbers: RangeInclusive<u64>, demand: Demand) -> Option<u64> {
        self.reservations.reserve(numbers, demand)
    }

    /// Gives back the room that a promise took of a number.
    pub(crate) fn release_number(&mut self, number: u64, demand: Demand) {
        self.reservations.release(number, demand);
    }

    /// What may be promised of one header.
    pub(crate) fn promised_capacity(&self) -> Demand {
        self.reservations.capacity()
    }

    /// What promises for headers up to `number` take.
    pub(crate) fn due(&self, number: u64) -> Demand {
        self.reservations.due(number)
    }

    /// Takes an envelope back that was acknowledged before a restart: limits do not apply to it.
    /// False when the id or the payer's nonce is already there.
    pub fn restore(&mut self, meta: Meta, item: T) -> bool {
        if matches!(self.check(&meta), Err(PoolRefusal::Known | PoolRefusal::NoncePending)) {
            return false;
        }
        let id = meta.id;
        if let Some(seal_by) = meta.seal_by {
            self.reservations.take(seal_by, meta.demand());
        }
        self.insert(meta, item);
        if let Some(entry) = self.entries.get_mut(&id) {
            // Whoever asked may have it.
            (entry.signed, entry.acknowledged) = (entry.meta.seal_by.is_some(), true);
        }
        self.ready(&id);
        true
    }

    fn insert(&mut self, meta: Meta, item: T) {
        let pending = self.payers.entry(meta.payer).or_default();
        pending.nonces.insert(meta.fee_nonce);
        pending.ids.insert(meta.id);
        pending.gas = pending.gas.saturating_add(meta.gas_limit);
        self.bytes += meta.item_bytes as usize;
        self.expiries.insert((meta.generation, meta.expiry, meta.id));
        let arrival = self.arrivals;
        self.arrivals += 1;
        let entry = Entry {
            meta,
            arrival,
            ready: false,
            skipped: false,
            counted: false,
            since: None,
            signed: false,
            acknowledged: false,
            item,
        };
        self.entries.insert(entry.meta.id, entry);
    }

    /// Whether the envelope is here and durable.
    pub fn is_ready(&self, id: &B256) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.ready)
    }

    /// The envelope is durable: batches may take it.
    pub fn ready(&mut self, id: &B256) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.ready = true;
            entry.count(&mut self.ranks, &self.next, None);
            self.order.insert((Reverse(entry.meta.rank), entry.arrival, *id));
            if let Some(seal_by) = entry.meta.seal_by {
                self.promised.insert((seal_by, entry.arrival, *id));
            }
        }
    }

    /// Promises a pending envelope the first of these headers that has room; a promise that it has stands.
    pub fn promise(&mut self, id: &B256, numbers: RangeInclusive<u64>) -> Option<u64> {
        let entry = self.entries.get_mut(id)?;
        if let Some(standing) = entry.meta.seal_by {
            return Some(standing);
        }
        let seal_by = self.reservations.reserve(numbers, entry.meta.demand())?;
        entry.meta.seal_by = Some(seal_by);
        if entry.ready {
            self.promised.insert((seal_by, entry.arrival, *id));
        }
        Some(seal_by)
    }

    /// Takes back a promise that was not told to anybody.
    pub fn take_back(&mut self, id: &B256) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| !entry.signed) else { return };
        if let Some(seal_by) = entry.meta.seal_by.take() {
            self.promised.remove(&(seal_by, entry.arrival, *id));
            self.reservations.release(seal_by, entry.meta.demand());
        }
    }

    /// Envelopes are about to be read from the disk and taken back: what leaves meanwhile is remembered, and what has left
    /// and may still be read there.
    pub fn begin_restoring(&mut self) {
        self.gone = Some(self.leaving.clone());
    }

    /// All of them are back.
    pub fn end_restoring(&mut self) {
        self.gone = None;
    }

    /// Whether an envelope that was read from the disk has left since.
    pub fn is_gone(&self, id: &B256) -> bool {
        self.gone.as_ref().is_some_and(|gone| gone.contains(id))
    }

    /// An envelope is in a batch, or has left for good, whether or not it is here.
    pub fn note_gone(&mut self, id: &B256) {
        if let Some(gone) = &mut self.gone {
            gone.insert(*id);
        }
    }

    /// Takes an envelope out, with its item.
    pub fn remove(&mut self, id: &B256) -> Option<(Meta, T)> {
        self.note_gone(id);
        let entry = self.entries.remove(id)?;
        let meta = entry.meta;
        self.bytes -= meta.item_bytes as usize;
        self.expiries.remove(&(meta.generation, meta.expiry, meta.id));
        self.order.remove(&(Reverse(meta.rank), entry.arrival, meta.id));
        if entry.counted {
            self.ranks.remove(meta.rank);
        }
        if let Some(seal_by) = meta.seal_by {
            self.promised.remove(&(seal_by, entry.arrival, meta.id));
            self.reservations.release(seal_by, meta.demand());
        }
        if let Some(pending) = self.payers.get_mut(&meta.payer) {
            pending.nonces.remove(&meta.fee_nonce);
            pending.gas = pending.gas.saturating_sub(meta.gas_limit);
            pending.ids.remove(&meta.id);
            if pending.ids.is_empty() {
                self.payers.remove(&meta.payer);
            }
        }
        Some((meta, entry.item))
    }

    /// What a payer's pending envelopes would cost together: each its fee at `fees` plus `surcharge`. Saturating.
    /// Envelopes whose fee nonce is `paid` already (sealed, but not removed yet) do not count.
    pub fn committed(
        &self,
        payer: &Address,
        fees: BaseFees,
        surcharge: u128,
        paid: impl Fn(u64) -> bool,
    ) -> u128 {
        let Some(pending) = self.payers.get(payer) else { return 0 };
        pending
            .ids
            .iter()
            .filter_map(|id| self.entries.get(id))
            .filter(|entry| !paid(entry.meta.fee_nonce))
            .fold(0, |sum, entry| sum.saturating_add(entry.meta.fee(fees)).saturating_add(surcharge))
    }

    /// Ready envelopes of this generation whose expiry lies before `number`, at most `limit`.
    pub fn expired(&self, generation: u16, number: u64, limit: usize) -> Vec<B256> {
        let expired = self.expiries.range((generation, 0, B256::ZERO)..(generation, number, B256::ZERO));
        expired.map(|(.., id)| *id).filter(|id| self.is_ready(id)).take(limit).collect()
    }

    /// Ready envelopes of any other generation, at most `limit`: no batch after this one's parent takes them.
    pub fn outdated(&self, generation: u16, limit: usize) -> Vec<B256> {
        let earlier = self.expiries.range(..(generation, 0, B256::ZERO));
        let later = generation.checked_add(1).map(|next| self.expiries.range((next, 0, B256::ZERO)..));
        let outdated = earlier.chain(later.into_iter().flatten());
        outdated.map(|(.., id)| *id).filter(|id| self.is_ready(id)).take(limit).collect()
    }

    /// Offers the ready envelopes of `epoch` and `generation` to `pick`, promises due until `urgent` first (earliest promise first),
    /// then by rank and arrival, until it says stop. Returns what it took; nothing is removed.
    pub fn select(
        &self,
        (epoch, generation): (u64, u16),
        urgent: u64,
        mut pick: impl FnMut(&Meta) -> Pick,
    ) -> Vec<(Meta, T)> {
        let mut taken = Vec::new();
        let mut offered = HashSet::new();
        let promised = self.promised.iter().take_while(|(by, ..)| *by <= urgent).map(|(.., id)| id);
        for id in promised.chain(self.order.iter().map(|(.., id)| id)) {
            let Some(entry) = self.entries.get(id) else { continue };
            if entry.meta.epoch != epoch
                || entry.meta.generation != generation
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

    /// Another header is the next one. Where anything of it differs, all envelopes are looked at.
    pub(crate) fn set_next(&mut self, next: NextHeader) {
        if self.next == next {
            return;
        }
        self.next = next;
        let now = now();
        for entry in self.entries.values_mut() {
            let counts = entry.goes_into(&next);
            if counts && !entry.counted {
                entry.since = Some(now);
            }
            entry.counted = counts;
        }
        let counted = self.entries.values().filter(|entry| entry.counted);
        self.ranks.count(counted.map(|entry| entry.meta.rank));
    }

    /// Notes whether the rule would skip an envelope that the next header was chosen from. Whoever offers less than the base
    /// fee is not meant: it falls, and nobody looks at them for that.
    pub(crate) fn set_skipped(&mut self, id: &B256, skipped: bool) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.skipped = skipped && self.next.could_take(&entry.meta);
            entry.count(&mut self.ranks, &self.next, Some(now()));
        }
    }

    /// Since when an envelope that came at this time has waited for others: not before the next header could take it.
    pub(crate) fn waits_since(&self, id: &B256, arrived: Instant) -> Instant {
        match self.entries.get(id) {
            Some(entry) if entry.counted => entry.since.map_or(arrived, |since| since.max(arrived)),
            _ => now(),
        }
    }

    /// How many envelopes the next header could take, if there was room for all.
    pub(crate) fn takeable(&self) -> u64 {
        self.ranks.as_high_as(0)
    }

    /// How many of the envelopes that the next header could take go before one of this rank.
    pub(crate) fn before(&self, rank: u128) -> u64 {
        self.ranks.as_high_as(rank)
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
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::time::advance;

    use super::*;

    const ROOM: Demand = Demand { bytes: 200, gas: 1 << 40, items: 100 };

    fn limits() -> MempoolConfig {
        MempoolConfig { max_envelopes: 4, max_bytes: 1_000, max_per_payer: 3, max_gas_per_payer: 1_000_000 }
    }

    fn meta(id: u8, payer: u8, nonce: u64, priority_fee: u128) -> Meta {
        Meta {
            id: B256::repeat_byte(id),
            payer: Address::repeat_byte(payer),
            fee_nonce: nonce,
            epoch: 1,
            expiry: 100,
            generation: 0,
            max_fee: 1_000,
            max_gas_fee: 1_000,
            priority_fee,
            gas_limit: 21_000,
            item_bytes: 100,
            rank: priority_fee,
            seal_by: None,
        }
    }

    fn next(fees: BaseFees) -> NextHeader {
        NextHeader { number: 10, epoch: Some(1), generation: 0, fees }
    }

    fn all(pool: &Mempool<u8>, urgent: u64) -> Vec<u8> {
        pool.select((1, 0), urgent, |_| Pick::Take).into_iter().map(|(_, item)| item).collect()
    }

    fn put(pool: &mut Mempool<u8>, meta: Meta) {
        let (id, item) = (meta.id, meta.id.0[0]);
        pool.reserve(meta, item).unwrap();
        pool.ready(&id);
    }

    #[test]
    fn order_is_priority_then_arrival_and_only_ready_ones() {
        let mut pool = Mempool::new(limits(), ROOM);
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
        let mut pool = Mempool::new(limits(), ROOM);
        put(&mut pool, meta(1, 1, 1, 9));
        put(&mut pool, Meta { seal_by: Some(10), ..meta(2, 2, 1, 1) });
        put(&mut pool, meta(3, 3, 1, 2));
        assert_eq!(all(&pool, 9), [1, 3, 2]);
        assert_eq!(all(&pool, 10), [2, 1, 3]);
        assert_eq!(pool.promise(&B256::repeat_byte(3), 8..=9), Some(8));
        assert_eq!(pool.promise(&B256::repeat_byte(3), 20..=20), Some(8), "the first promise stands");
        assert_eq!(pool.promise(&B256::repeat_byte(9), 20..=20), None);
        assert_eq!(all(&pool, 10), [3, 2, 1]);
        pool.remove(&B256::repeat_byte(3)).unwrap();
        assert_eq!(all(&pool, 10), [2, 1]);
    }

    #[test]
    fn each_refusal() {
        let mut pool = Mempool::new(limits(), ROOM);
        put(&mut pool, meta(1, 1, 1, 1));
        assert_eq!(pool.reserve(meta(1, 1, 1, 1), 1), Err(PoolRefusal::Known));
        assert_eq!(pool.reserve(meta(2, 1, 1, 1), 2), Err(PoolRefusal::NoncePending));
        put(&mut pool, meta(2, 1, 2, 1));
        put(&mut pool, meta(3, 1, 3, 1));
        assert_eq!(pool.reserve(meta(4, 1, 4, 1), 4), Err(PoolRefusal::PayerLimit));
        let greedy = Meta { gas_limit: 1_000_001 - 3 * 21_000, ..meta(4, 1, 4, 1) };
        let one_less = MempoolConfig { max_per_payer: 4, ..limits() };
        pool.limits = one_less;
        assert_eq!(pool.reserve(greedy, 4), Err(PoolRefusal::PayerLimit), "by gas");
        pool.limits = limits();
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

    /// Signed after its header was chosen without the envelope, a promise would cost the bond.
    #[test]
    fn a_promise_is_told_only_while_its_header_is_to_come() {
        let mut pool = Mempool::new(limits(), ROOM);
        for id in 1..=3 {
            let promised = Meta { seal_by: Some(7), item_bytes: 50, ..meta(id, id, 0, 5) };
            pool.reserve_number(7..=7, promised.demand()).unwrap();
            pool.reserve(promised, ()).unwrap();
            pool.ready(&B256::repeat_byte(id));
        }
        let unready = Meta { seal_by: Some(9), item_bytes: 50, ..meta(4, 4, 0, 5) };
        pool.reserve_number(9..=9, unready.demand()).unwrap();
        pool.reserve(unready, ()).unwrap();
        let id = B256::repeat_byte;
        assert_eq!(pool.tell(&id(4), 5), Telling::TooLate, "no batch is offered it");
        pool.choosing(6);
        assert_eq!(pool.tell(&id(1), 5), Telling::Tell(7));
        assert_eq!(pool.tell(&id(1), 5), Telling::Tell(7));
        assert_eq!(pool.tell(&id(2), 7), Telling::TooLate, "its header is sealed");
        pool.choosing(7);
        assert_eq!(pool.tell(&id(3), 6), Telling::TooLate, "its header is being sealed");
        assert_eq!(pool.get(&id(3)).unwrap().seal_by, None);
        assert_eq!(pool.due(7), pool.get(&id(1)).unwrap().demand(), "room is taken for what was told alone");
        // What was told stands, and is told again until its header is chosen.
        pool.take_back(&id(1));
        assert_eq!(pool.tell(&id(1), 6), Telling::TooLate);
        assert_eq!(pool.get(&id(1)).unwrap().seal_by, Some(7));
        pool.remove(&id(1));
        assert_eq!(pool.tell(&id(1), 6), Telling::Gone);
    }

    /// Its record would go with the first copy's.
    #[test]
    fn what_gave_its_place_away_comes_back_only_when_the_disk_has_forgotten_it() {
        let mut pool = Mempool::new(limits(), ROOM);
        for id in 1..=4 {
            pool.reserve(meta(id, id, 0, 5), ()).unwrap();
            pool.ready(&B256::repeat_byte(id));
        }
        let evicted = pool.reserve(meta(5, 5, 0, 50), ()).unwrap();
        assert_eq!(evicted.len(), 1);
        let again = Meta { id: evicted[0], ..meta(6, 6, 0, 500) };
        assert_eq!(pool.check(&again), Err(PoolRefusal::Full));
        pool.left(&evicted);
        assert_eq!(pool.check(&again), Ok(()));
    }

    /// It was taken back from the disk, which forgot it then: whoever sent it again was told that it is admitted.
    #[test]
    fn what_gave_its_place_away_is_not_taken_back_from_the_disk() {
        let mut pool = Mempool::new(limits(), ROOM);
        for id in 1..=4 {
            pool.reserve(meta(id, id, 0, 5), ()).unwrap();
            pool.ready(&B256::repeat_byte(id));
        }
        let evicted = pool.reserve(meta(5, 5, 0, 50), ()).unwrap();
        pool.begin_restoring();
        assert!(pool.is_gone(&evicted[0]), "the disk still has it");
        pool.left(&evicted);
        assert!(pool.is_gone(&evicted[0]), "it was read before the disk forgot it");
        pool.end_restoring();
        assert!(!pool.is_gone(&evicted[0]));
    }

    #[test]
    fn what_somebody_was_told_of_stays_when_another_call_fails_to_write_it() {
        let mut pool = Mempool::new(limits(), ROOM);
        for id in 1..=2 {
            pool.reserve(meta(id, id, 0, 5), ()).unwrap();
        }
        pool.acknowledge(&B256::repeat_byte(1));
        assert!(!pool.withdraw(&B256::repeat_byte(1)) && pool.withdraw(&B256::repeat_byte(2)));
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn a_full_pool_gives_the_lowest_places_to_one_that_ranks_higher() {
        let mut pool = Mempool::new(limits(), ROOM);
        put(&mut pool, meta(1, 1, 1, 50));
        put(&mut pool, Meta { seal_by: Some(9), ..meta(2, 2, 1, 0) });
        put(&mut pool, meta(3, 3, 1, 20));
        put(&mut pool, meta(4, 4, 1, 30));
        assert_eq!(pool.reserve(meta(5, 5, 1, 21), 5), Err(PoolRefusal::Full), "not a tenth higher");
        assert_eq!(pool.reserve(meta(5, 5, 1, 33), 5), Ok(vec![B256::repeat_byte(3)]));
        let large = |rank| Meta { item_bytes: 800, ..meta(6, 6, 1, rank) };
        assert_eq!(
            pool.reserve(large(45), 6),
            Err(PoolRefusal::Full),
            "one that is not ready keeps its place"
        );
        pool.ready(&B256::repeat_byte(5));
        let evicted = [4, 5].map(B256::repeat_byte).to_vec();
        assert_eq!(pool.reserve(large(45), 6), Ok(evicted), "the lowest first, as many as it takes");
        assert!(pool.get(&B256::repeat_byte(2)).is_some(), "what was promised stays");
        assert_eq!((pool.len(), pool.bytes()), (3, 1_000));
    }

    #[test]
    fn who_reserves_gas_for_nothing_comes_last() {
        let second = 191_000_000;
        let plain = rank(10, 700, 21_000, second);
        // A full second of gas for a small envelope's fee.
        assert!(rank(10, 500, second, second) < plain / 1_000);
        assert_eq!(
            rank(10, 32_768, 21_000, second),
            10 * PICO,
            "bytes count where they are the larger share"
        );
        assert!(rank(u128::MAX, 700, 21_000, second) >= plain);
        assert_eq!(rank(0, 0, 0, 0), 0);
    }

    #[test]
    fn generations_expire_as_a_whole() {
        let mut pool = Mempool::new(limits(), ROOM);
        let of = |id: u8, generation| Meta { generation, expiry: 9, ..meta(id, id, 1, 10) };
        let promised = Meta { seal_by: pool.reserve_number(7..=7, meta(1, 1, 1, 10).demand()), ..of(1, 4) };
        for meta in [promised, of(2, 5), of(3, 6)] {
            put(&mut pool, meta);
        }
        pool.reserve(of(4, 4), 4).unwrap();
        let ids = |ids: &[u8]| ids.iter().map(|id| B256::repeat_byte(*id)).collect::<Vec<_>>();
        assert_eq!(pool.outdated(5, 10), ids(&[1, 3]), "neither its own nor what is not on disk yet");
        assert_eq!((pool.outdated(5, 1), pool.outdated(u16::MAX, 10)), (ids(&[1]), ids(&[1, 2, 3])));
        assert_eq!((pool.expired(5, 10, 9), pool.expired(5, 9, 9)), (ids(&[2]), ids(&[])));
        // None of another generation is offered, not even one whose promise is due.
        let taken = |generation| {
            let taken = pool.select((1, generation), 9, |_| Pick::Take);
            taken.into_iter().map(|(meta, _)| meta.id).collect::<Vec<_>>()
        };
        assert_eq!([taken(5), taken(4), taken(7)], [ids(&[2]), ids(&[1]), ids(&[])]);
        pool.ready(&B256::repeat_byte(4));
        assert_eq!(pool.outdated(5, 10), ids(&[1, 4, 3]));
        for id in pool.outdated(5, 10) {
            pool.remove(&id);
        }
        assert_eq!((pool.outdated(5, 10), pool.len(), pool.due(9)), (ids(&[]), 1, Demand::default()));
    }

    #[test]
    fn expiry_and_epochs() {
        let mut pool = Mempool::new(limits(), ROOM);
        put(&mut pool, Meta { expiry: 5, ..meta(1, 1, 1, 1) });
        put(&mut pool, Meta { epoch: 2, ..meta(2, 1, 2, 1) });
        pool.reserve(Meta { expiry: 5, ..meta(3, 1, 3, 1) }, 3).unwrap();
        assert_eq!(all(&pool, 0), [1]);
        assert!(pool.expired(0, 5, 10).is_empty());
        assert_eq!(pool.expired(0, 6, 10), [B256::repeat_byte(1)]);
        assert!(pool.expired(0, 6, 0).is_empty());
    }

    #[test]
    fn only_what_the_next_header_could_take_goes_before_another_one() {
        let mut pool = Mempool::new(MempoolConfig { max_envelopes: 9, ..limits() }, ROOM);
        let first = next(BaseFees { base_fee: 1_000, gas_base_fee: 1_000 });
        pool.set_next(first);
        put(&mut pool, meta(1, 1, 1, 5));
        put(&mut pool, Meta { epoch: 2, ..meta(2, 1, 2, 9) });
        put(&mut pool, Meta { generation: 1, ..meta(3, 1, 3, 9) });
        put(&mut pool, Meta { expiry: 9, ..meta(4, 2, 1, 9) });
        put(&mut pool, Meta { max_fee: 999, ..meta(5, 2, 2, 9) });
        put(&mut pool, Meta { max_gas_fee: 999, ..meta(6, 2, 3, 9) });
        pool.reserve(meta(7, 3, 1, 9), 7).unwrap();
        assert_eq!((pool.before(5), pool.before(6)), (1, 0));
        let fees = BaseFees { base_fee: 999, gas_base_fee: 999 };
        pool.set_next(NextHeader { fees, ..first });
        assert_eq!(pool.before(5), 3);
        pool.set_next(NextHeader { epoch: Some(2), ..first });
        assert_eq!(pool.before(5), 1, "the one of the next epoch, in its place");
        pool.set_next(NextHeader { epoch: None, ..first });
        assert_eq!(pool.before(0), 0);
        // What its payer cannot pay for, until he can. Whoever is below the base fee is counted as soon as it falls.
        pool.set_next(first);
        for id in [1, 5, 6] {
            pool.set_skipped(&B256::repeat_byte(id), true);
        }
        assert_eq!(pool.before(0), 0);
        pool.set_next(NextHeader { number: 11, fees, ..first });
        assert_eq!(pool.before(0), 2);
        pool.set_skipped(&B256::repeat_byte(1), false);
        assert_eq!(pool.before(0), 3);
        pool.remove(&B256::repeat_byte(1));
        pool.set_skipped(&B256::repeat_byte(1), false);
        assert_eq!(pool.before(0), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_header_could_take_waits_from_when_one_can() {
        const HOUR: Duration = Duration::from_secs(3_600);
        let mut pool = Mempool::new(limits(), ROOM);
        let first = next(BaseFees { base_fee: 1_000, gas_base_fee: 1_000 });
        pool.set_next(first);
        let came = now();
        put(&mut pool, meta(1, 1, 1, 5));
        put(&mut pool, Meta { max_fee: 999, ..meta(2, 2, 1, 5) });
        put(&mut pool, Meta { epoch: 2, ..meta(3, 3, 1, 5) });
        let since = |pool: &Mempool<u8>, id: u8| pool.waits_since(&B256::repeat_byte(id), came);
        advance(HOUR).await;
        assert_eq!([1, 2, 3].map(|id| since(&pool, id)), [came, came + HOUR, came + HOUR]);
        let fees = BaseFees { base_fee: 999, gas_base_fee: 999 };
        pool.set_next(NextHeader { fees, ..first });
        advance(HOUR).await;
        pool.set_next(NextHeader { number: 11, fees, ..first });
        assert_eq!([1, 2].map(|id| since(&pool, id)), [came, came + HOUR], "since the base fee fell");
        // Its payer has nothing for an hour.
        pool.set_skipped(&B256::repeat_byte(1), true);
        advance(HOUR).await;
        pool.set_skipped(&B256::repeat_byte(1), false);
        pool.set_skipped(&B256::repeat_byte(2), false);
        assert_eq!([1, 2].map(|id| since(&pool, id)), [came + HOUR * 3, came + HOUR]);
        pool.set_next(NextHeader { epoch: Some(2), fees, ..first });
        advance(HOUR).await;
        assert_eq!(since(&pool, 3), came + HOUR * 3, "since its epoch began");
    }

    #[test]
    fn committed_follows_the_base_fees() {
        let mut pool = Mempool::new(limits(), ROOM);
        let at = |base_fee| BaseFees { base_fee, gas_base_fee: 0 };
        put(&mut pool, Meta { max_fee: 20, ..meta(1, 1, 1, 5) });
        put(&mut pool, Meta { max_fee: 8, ..meta(2, 1, 2, 5) });
        let payer = Address::repeat_byte(1);
        assert_eq!(pool.committed(&payer, at(10), 3, |_| false), (15 + 8) * 100 + 6);
        assert_eq!(pool.committed(&payer, at(10), 3, |nonce| nonce == 2), 15 * 100 + 3);
        assert_eq!(pool.committed(&payer, at(u128::MAX), 0, |_| false), (20 + 8) * 100);
        let gas = BaseFees { gas_base_fee: 5, ..at(10) };
        assert_eq!(pool.committed(&payer, gas, 0, |_| false), (15 + 8) * 100 + 2 * 5 * 21_000);
        assert_eq!(pool.committed(&Address::repeat_byte(2), at(10), 3, |_| false), 0);
    }

    proptest! {
        #[test]
        fn indexes_agree_after_any_sequence(ops in proptest::collection::vec((0u8..4, 0u8..12, 0u8..3, 0u128..4), 0..200)) {
            let mut pool = Mempool::new(MempoolConfig { max_envelopes: 8, max_bytes: 900, ..limits() }, ROOM);
            for (op, id, payer, fee) in ops {
                let meta = meta(id, payer, id.into(), fee);
                match op {
                    0 => { let _ = pool.reserve(meta, id); }
                    1 => pool.ready(&meta.id),
                    2 => { pool.promise(&meta.id, fee as u64..=fee as u64 + 3); }
                    _ => { pool.remove(&meta.id); }
                }
                prop_assert!(pool.len() <= 8 && pool.bytes() == pool.len() * 100);
                prop_assert_eq!(pool.payers.values().map(|p| p.ids.len()).sum::<usize>(), pool.len());
                prop_assert_eq!(pool.expiries.len(), pool.len());
                let ready = pool.entries.values().filter(|e| e.ready).count();
                prop_assert_eq!(pool.ready_len(), ready);
                // Every other time they are counted anew.
                pool.set_next(next(BaseFees { base_fee: fee % 2, gas_base_fee: 0 }));
                prop_assert_eq!(pool.before(0), ready as u64);
                let as_high = pool.entries.values().filter(|e| e.ready && e.meta.rank >= 2).count();
                prop_assert_eq!(pool.before(2), as_high as u64);
                prop_assert_eq!(all(&pool, 2).len(), ready, "each ready envelope is offered once");
            }
        }
    }
}

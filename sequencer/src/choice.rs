//! What goes into the next header: promises that are due, whatever they pay; then promises that will be soon; then by
//! rank. Pure: the caller says what an envelope costs its payer and how much room there is.

use std::collections::HashMap;

use blindfold_protocol::{Address, B256};

use crate::{
    mempool::{Mempool, Meta, Pick},
    reservations::Demand,
};

/// How far before its number a promise goes ahead of the others, in batches.
const PROMISE_LEAD_BATCHES: u64 = 4;

/// Gas, bytes and items that a batch may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// What the validity rule leaves.
    pub(crate) rule: Demand,
    /// What the settings leave to envelopes without a promise that is due.
    pub(crate) settings: Demand,
}

impl Capacity {
    fn fits(&self, demand: Demand, due: bool) -> bool {
        demand.fits(self.rule) && (due || demand.fits(self.settings))
    }

    /// Whether the next header of the same second could still take it: the rule's bytes and gas are for the second.
    fn fits_the_second(&self, demand: Demand) -> bool {
        demand.bytes <= self.rule.bytes && demand.gas <= self.rule.gas
    }

    fn take(&mut self, demand: Demand) {
        for room in [&mut self.rule, &mut self.settings] {
            room.bytes = room.bytes.saturating_sub(demand.bytes);
            room.gas = room.gas.saturating_sub(demand.gas);
            room.items = room.items.saturating_sub(demand.items);
        }
    }
}

/// What goes into the next header.
#[derive(Debug)]
pub(crate) struct Choice<T> {
    /// In the order to commit.
    pub(crate) taken: Vec<(Meta, T)>,
    /// An envelope was left that the next header of the same second has room for.
    pub(crate) full: bool,
    /// A promise that is due was left for want of room: a header with this number would break it.
    pub(crate) due_left: bool,
    /// There was room for these, and the rule would skip them.
    pub(crate) skipped: Vec<B256>,
}

/// Chooses for header `number` of `epoch` and `generation`. `cost` says what an envelope costs its payer after he has spent so much in
/// this header; `None` if the rule would skip it (A-1, P-3).
pub(crate) fn choose<T: Clone>(
    pool: &Mempool<T>,
    (number, epoch, generation): (u64, u64, u16),
    mut room: Capacity,
    mut cost: impl FnMut(&Meta, u128) -> Option<u128>,
) -> Choice<T> {
    let mut spent: HashMap<Address, u128> = HashMap::new();
    let (mut full, mut due_left, mut skipped) = (false, false, Vec::new());
    let taken = pool.select((epoch, generation), number.saturating_add(PROMISE_LEAD_BATCHES), |meta| {
        // At its last number a promised envelope goes in whatever its fee: if the rule skips it for what its payer did
        // meanwhile, the batch itself shows that the promise was kept.
        let due = meta.seal_by.is_some_and(|by| by <= number);
        let demand = meta.demand();
        // First, for it costs nothing: however many ask for more than there is, they keep out nobody behind them.
        if !room.fits(demand, due) {
            full |= room.fits_the_second(demand);
            due_left |= due;
            return if due || room.rule.items == 0 { Pick::Stop } else { Pick::Leave };
        }
        let before = spent.get(&meta.payer).copied().unwrap_or_default();
        let costs = cost(meta, before);
        if costs.is_none() && !due {
            skipped.push(meta.id);
            return Pick::Leave;
        }
        room.take(demand);
        if let Some(costs) = costs {
            spent.insert(meta.payer, before.saturating_add(costs));
        }
        Pick::Take
    });
    Choice { taken, full, due_left, skipped }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{config::MempoolConfig, mempool::PoolRefusal};

    /// What a header may hold; half of it may be promised.
    const SECOND: Demand = Demand { bytes: 1_000, gas: 1_000, items: 20 };
    const HALF: Demand = Demand { bytes: 500, gas: 500, items: 10 };

    fn meta(id: u32, bytes: u32, gas_limit: u64, rank: u128) -> Meta {
        let mut name = [0u8; 32];
        name[..4].copy_from_slice(&id.to_be_bytes());
        Meta {
            id: B256::from(name),
            payer: Address::from_slice(&name[..20]),
            fee_nonce: 0,
            epoch: 1,
            expiry: 10_000,
            generation: 0,
            max_fee: 1_000,
            max_gas_fee: 1_000,
            priority_fee: rank,
            gas_limit,
            item_bytes: bytes,
            rank,
            seal_by: None,
        }
    }

    proptest! {
        // Promises asked for at any moment, among better paying envelopes, with any part of the other half of a header
        // taken by what L1 forces: every promise that was given is kept (P-3).
        #[test]
        fn every_promise_that_is_given_is_kept(
            steps in proptest::collection::vec(
                (proptest::collection::vec((1u32..600, 1u64..600, any::<bool>()), 0..12), 0u64..500, 0u64..500),
                1..60,
            )
        ) {
            let limits = MempoolConfig { max_envelopes: 400, ..MempoolConfig::default() };
            let mut pool = Mempool::new(limits, HALF);
            let (mut id, mut refused) = (0u32, 0u32);
            let mut promised: HashMap<B256, u64> = HashMap::new();
            for (number, (asked, forced_bytes, forced_gas)) in (1u64..).zip(steps) {
                for (bytes, gas, promise) in asked {
                    id += 1;
                    // Promises pay nothing, the others a lot.
                    let mut meta = meta(id, bytes, gas, if promise { 0 } else { 1_000 });
                    if promise {
                        match pool.reserve_number(number + 3..=number + 11, meta.demand()) {
                            Some(by) => {
                                meta.seal_by = Some(by);
                                promised.insert(meta.id, by);
                            }
                            None => {
                                refused += 1;
                                continue;
                            }
                        }
                    }
                    match pool.reserve(meta.clone(), ()) {
                        Ok(evicted) => {
                            prop_assert!(evicted.iter().all(|id| !promised.contains_key(id)));
                            pool.ready(&meta.id);
                        }
                        Err(refusal) => {
                            prop_assert_eq!(refusal, PoolRefusal::Full);
                            if let Some(by) = promised.remove(&meta.id) {
                                pool.release_number(by, meta.demand());
                            }
                        }
                    }
                }
                let rule = Demand {
                    bytes: SECOND.bytes - forced_bytes,
                    gas: SECOND.gas - forced_gas,
                    items: SECOND.items,
                };
                let choice = choose(&pool, (number, 1, 0), Capacity { rule, settings: rule }, |_, _| Some(1));
                prop_assert!(!choice.due_left, "a header always has room for what is due");
                let sum = choice.taken.iter().fold((0, 0), |(bytes, gas), (meta, ())| {
                    (bytes + u64::from(meta.item_bytes), gas + meta.gas_limit)
                });
                prop_assert!(sum.0 <= rule.bytes && sum.1 <= rule.gas);
                for (meta, ()) in choice.taken {
                    pool.remove(&meta.id);
                    if let Some(by) = promised.remove(&meta.id) {
                        prop_assert!(number <= by, "sealed in time");
                    }
                }
                prop_assert!(promised.values().all(|by| *by > number), "nothing due is left");
            }
            prop_assert!(refused <= id);
        }
    }

    /// Somebody queued many that asked for nearly a whole second's gas, and kept that from being free with small ones.
    #[test]
    fn envelopes_that_find_no_room_keep_nobody_out() {
        let mut pool = Mempool::new(MempoolConfig::default(), HALF);
        let large = (2..602).map(|id| (id, 950, 8));
        for (id, gas, rank) in [(1, 100, 9), (602, 100, 7)].into_iter().chain(large) {
            let meta = meta(id, 10, gas, rank);
            pool.reserve(meta.clone(), id).unwrap();
            pool.ready(&meta.id);
        }
        let mut asked = 0;
        let choice = choose(&pool, (7, 1, 0), Capacity { rule: SECOND, settings: SECOND }, |_, _| {
            asked += 1;
            Some(1)
        });
        // The next header of this second has no room for them either: nobody has to hurry.
        assert!(!choice.full && !choice.due_left);
        assert_eq!(choice.taken.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), [1, 602]);
        assert_eq!(asked, 2, "what finds no room costs nothing");
    }

    #[test]
    fn what_the_settings_leave_goes_into_the_next_header_at_once() {
        let mut pool = Mempool::new(MempoolConfig::default(), HALF);
        for id in 1..=3 {
            let meta = meta(id, 100, 100, u128::from(10 - id));
            pool.reserve(meta.clone(), id).unwrap();
            pool.ready(&meta.id);
        }
        for settings in [Demand { items: 2, ..SECOND }, Demand { bytes: 200, ..SECOND }] {
            let choice = choose(&pool, (7, 1, 0), Capacity { rule: SECOND, settings }, |_, _| Some(1));
            assert_eq!((choice.taken.len(), choice.full), (2, true));
        }
        let rule = Demand { gas: 200, ..SECOND };
        let choice = choose(&pool, (7, 1, 0), Capacity { rule, settings: SECOND }, |_, _| Some(1));
        assert_eq!((choice.taken.len(), choice.full), (2, false));
    }

    #[test]
    fn a_due_promise_goes_first_even_if_the_rule_would_skip_it() {
        let mut pool = Mempool::new(MempoolConfig::default(), HALF);
        for (id, seal_by) in [(1, None), (2, Some(7)), (3, Some(30))] {
            let meta = Meta { seal_by, ..meta(id, 100, 100, u128::from(10 - id)) };
            pool.reserve(meta.clone(), id).unwrap();
            pool.ready(&meta.id);
        }
        let room = Capacity { rule: SECOND, settings: SECOND };
        let taken = |choice: Choice<u32>| choice.taken.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        assert_eq!(taken(choose(&pool, (7, 1, 0), room, |_, _| Some(1))), [2, 1, 3]);
        assert_eq!(taken(choose(&pool, (7, 1, 0), room, |_, _| None)), [2]);
        let skipped = choose(&pool, (7, 1, 0), room, |_, _| None).skipped;
        assert_eq!(skipped, [meta(1, 100, 100, 9).id, meta(3, 100, 100, 7).id]);
        assert!(choose(&pool, (7, 1, 0), room, |_, _| Some(1)).skipped.is_empty());
        assert_eq!(taken(choose(&pool, (6, 1, 0), room, |_, _| None)), [0u32; 0]);
        // What is due may exceed the settings, never the rule.
        let none = Capacity { rule: SECOND, settings: Demand::default() };
        assert_eq!(taken(choose(&pool, (7, 1, 0), none, |_, _| Some(1))), [2]);
        let none = Capacity { rule: Demand::default(), settings: Demand::default() };
        let choice = choose(&pool, (7, 1, 0), none, |_, _| Some(1));
        assert!(choice.due_left && !choice.full && choice.taken.is_empty());
    }
}

//! Room that promises have taken, number by number. A promise names the number whose room it took, so every promise that
//! was given can be kept whatever else comes: the sum for each number stays below what one header can hold.
//!
//! Pure data structure: no clock, no disk, no locks.

use std::{collections::BTreeMap, ops::RangeInclusive};

/// What envelopes take of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) bytes: u64,
    pub(crate) gas: u64,
    pub(crate) items: u32,
}

impl Demand {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            gas: self.gas.saturating_add(other.gas),
            items: self.items.saturating_add(other.items),
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            gas: self.gas.saturating_sub(other.gas),
            items: self.items.saturating_sub(other.items),
        }
    }

    /// Whether it fits into `room` in every respect.
    pub(crate) fn fits(self, room: Self) -> bool {
        self.bytes <= room.bytes && self.gas <= room.gas && self.items <= room.items
    }
}

/// The room of numbers to come that may be promised, and what of it is taken.
#[derive(Clone, Debug)]
pub(crate) struct Reservations {
    capacity: Demand,
    taken: BTreeMap<u64, Demand>,
}

impl Reservations {
    /// Nothing is taken; of each number this much may be.
    pub(crate) fn new(capacity: Demand) -> Self {
        Self { capacity, taken: BTreeMap::new() }
    }

    /// What may be promised of one number.
    pub(crate) fn capacity(&self) -> Demand {
        self.capacity
    }

    /// Takes the first number of these that has room (P-1).
    pub(crate) fn reserve(&mut self, numbers: RangeInclusive<u64>, demand: Demand) -> Option<u64> {
        let fits = |number: &u64| {
            let taken = self.taken.get(number).copied().unwrap_or_default();
            taken.plus(demand).fits(self.capacity)
        };
        let number = numbers.into_iter().find(fits)?;
        self.take(number, demand);
        Some(number)
    }

    /// Takes room that was promised before a restart, whether there is any.
    pub(crate) fn take(&mut self, number: u64, demand: Demand) {
        let taken = self.taken.entry(number).or_default();
        *taken = taken.plus(demand);
    }

    /// Gives room back: the envelope left the mempool.
    pub(crate) fn release(&mut self, number: u64, demand: Demand) {
        if let Some(taken) = self.taken.get_mut(&number) {
            *taken = taken.less(demand);
            if *taken == Demand::default() {
                self.taken.remove(&number);
            }
        }
    }

    /// What is taken of the numbers up to `number`.
    pub(crate) fn due(&self, number: u64) -> Demand {
        self.taken.range(..=number).fold(Demand::default(), |sum, (_, taken)| sum.plus(*taken))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: Demand = Demand { bytes: 100, gas: 100, items: 3 };

    #[test]
    fn the_first_number_with_room_is_taken_until_there_is_none() {
        let mut reservations = Reservations::new(CAPACITY);
        let half = Demand { bytes: 50, gas: 1, items: 1 };
        for expected in [5, 5, 6, 6] {
            assert_eq!(reservations.reserve(5..=6, half), Some(expected));
        }
        assert_eq!(reservations.reserve(5..=6, half), None);
        assert_eq!(reservations.due(5), Demand { bytes: 100, gas: 2, items: 2 });
        reservations.release(5, half);
        assert_eq!(reservations.reserve(5..=6, half), Some(5));
        assert_eq!(reservations.reserve(5..=1_000, Demand { gas: 101, ..half }), None, "never fits");
        assert_eq!(reservations.reserve(RangeInclusive::new(7, 6), half), None);
    }

    proptest! {
        #[test]
        fn no_number_ever_holds_more_than_its_room(
            asked in proptest::collection::vec((0u64..12, 0u64..6, 0u64..120, 0u64..120, any::<bool>()), 0..300)
        ) {
            let mut reservations = Reservations::new(CAPACITY);
            let mut held: Vec<(u64, Demand)> = Vec::new();
            for (from, span, bytes, gas, give_back) in asked {
                if give_back && let Some((number, demand)) = held.pop() {
                    reservations.release(number, demand);
                    continue;
                }
                let demand = Demand { bytes, gas, items: 1 };
                if let Some(number) = reservations.reserve(from..=from + span, demand) {
                    prop_assert!((from..=from + span).contains(&number));
                    held.push((number, demand));
                }
            }
            for number in 0..20 {
                let sum = held.iter().filter(|(at, _)| *at == number);
                let sum = sum.fold(Demand::default(), |sum, (_, demand)| sum.plus(*demand));
                prop_assert!(sum.fits(CAPACITY));
                prop_assert_eq!(reservations.taken.get(&number).copied().unwrap_or_default(), sum);
            }
        }
    }
}

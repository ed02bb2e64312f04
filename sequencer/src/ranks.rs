//! How many ranks are as high as another one or higher, for the price of a few additions: counts by bucket, in a Fenwick tree.
//! Ranks of one bucket count as equal; it is at most a sixty-fourth of its lowest rank wide.

/// Bits below its highest by which a rank's bucket is told.
const STEP_BITS: u32 = 6;
const BUCKETS: usize = ((u128::BITS - STEP_BITS + 1) << STEP_BITS) as usize;

/// Counts ranks.
pub(crate) struct Ranks {
    /// The tree over all buckets, the highest first, at places from 1.
    sums: Vec<u64>,
}

impl Ranks {
    /// None.
    pub(crate) fn new() -> Self {
        Self { sums: vec![0; BUCKETS + 1] }
    }

    /// Counts these and no others.
    pub(crate) fn count(&mut self, ranks: impl Iterator<Item = u128>) {
        self.sums.fill(0);
        for rank in ranks {
            if let Some(sum) = self.sums.get_mut(place(rank)) {
                *sum += 1;
            }
        }
        for at in 1..=BUCKETS {
            let sum = self.sums.get(at).copied().unwrap_or_default();
            if let Some(above) = self.sums.get_mut(parent(at)) {
                *above += sum;
            }
        }
    }

    pub(crate) fn add(&mut self, rank: u128) {
        self.change(rank, |sum| sum + 1);
    }

    /// Takes one away that is counted.
    pub(crate) fn remove(&mut self, rank: u128) {
        self.change(rank, |sum| sum.saturating_sub(1));
    }

    fn change(&mut self, rank: u128, change: impl Fn(u64) -> u64) {
        let mut at = place(rank);
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = change(*sum);
            at = parent(at);
        }
    }

    /// How many are as high as this one, or higher.
    pub(crate) fn as_high_as(&self, rank: u128) -> u64 {
        self.up_to(place(rank))
    }

    fn up_to(&self, mut at: usize) -> u64 {
        let mut count = 0;
        while at > 0 {
            count += self.sums.get(at).copied().unwrap_or_default();
            at &= at - 1;
        }
        count
    }
}

/// The place of a rank's bucket.
fn place(rank: u128) -> usize {
    let length = u128::BITS - rank.leading_zeros();
    let shift = length.saturating_sub(STEP_BITS + 1);
    // Below twice the steps of a power of two, and the bucket below all of them.
    let bucket = ((shift as usize) << STEP_BITS) + (rank >> shift) as usize;
    BUCKETS - bucket
}

/// The next place whose sum has this one in it.
const fn parent(at: usize) -> usize {
    at + (at & at.wrapping_neg())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_rank_has_a_place_and_higher_ones_come_first() {
        assert_eq!((place(0), place(u128::MAX)), (BUCKETS, 1));
        for rank in 0..=1_000_u128 {
            let (this, next) = (place(rank), place(rank + 1));
            assert!(this == next || this == next + 1, "{rank}");
        }
        assert!((0..128).all(|rank| place(rank) == BUCKETS - rank as usize), "small ones are told apart");
    }

    proptest! {
        #[test]
        fn it_counts_to_a_sixty_fourth(
            ranks in proptest::collection::vec((any::<u128>(), 0u32..128, any::<bool>()), 0..200),
            asked in (any::<u128>(), 0u32..128),
        ) {
            let (mut counts, mut kept) = (Ranks::new(), Vec::new());
            for (rank, shift, stays) in ranks {
                let rank = rank >> shift;
                counts.add(rank);
                if stays { kept.push(rank) } else { counts.remove(rank) }
            }
            let asked = asked.0 >> asked.1;
            let from = |lowest: u128| kept.iter().filter(|rank| **rank >= lowest).count() as u64;
            let (least, most) = (from(asked), from(asked - asked / 64));
            prop_assert!((least..=most).contains(&counts.as_high_as(asked)));
            prop_assert_eq!(counts.as_high_as(0), kept.len() as u64);
            let before = counts.sums.clone();
            counts.count(kept.iter().copied());
            prop_assert_eq!(counts.sums, before);
        }
    }
}

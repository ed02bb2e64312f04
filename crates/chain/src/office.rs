//! Whose turn it is to seal. L1 names a key from a block on, and headers are signed with the key that counts at their
//! origin; the moment at which one sequencer stops and the next one begins is theirs to keep.
//!
//! With E the first block of the next key, and L1's newest final block:
//!
//! - K-4: while L1's newest block, final or not, is less than [`HANDOVER_BLOCKS`] before E, the earlier one promises
//!   nothing. From E on it admits nothing, and seals what it has admitted with origins before E; from E +
//!   [`HANDOVER_BLOCKS`] / 2 on it seals nothing.
//! - K-5: from E + [`HANDOVER_BLOCKS`] on members vote for nothing of its.
//! - K-6: from E + [`HANDOVER_BLOCKS`] · 3 / 2 on the next one asks what was signed, and begins.

use std::ops::RangeInclusive;

use blindfold_protocol::limits::HANDOVER_BLOCKS;

/// What a key may do, by the term that L1 gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Office {
    /// L1 never named it.
    Stranger,
    /// It is named, and the one before it may still be at work.
    Awaits {
        /// The first L1 origin of headers that it signs.
        from: u64,
        /// It begins when this L1 block is final.
        begins: u64,
    },
    /// It admits envelopes and seals.
    Holds {
        /// The L1 origins of its headers.
        term: RangeInclusive<u64>,
    },
    /// It seals what it has admitted, and admits nothing.
    Leaves {
        /// The L1 origins of its headers.
        term: RangeInclusive<u64>,
    },
    /// Its time is over: another one seals.
    Left {
        /// The last L1 origin of its headers.
        until: u64,
    },
}

impl Office {
    /// Of a key with this term, when L1 is final up to a block.
    pub fn of(term: Option<RangeInclusive<u64>>, finalized: u64) -> Self {
        let Some(term) = term else { return Self::Stranger };
        let (from, until) = (*term.start(), *term.end());
        // The chain's first sequencer has nobody before it.
        let begins = if from == 0 { 0 } else { from.saturating_add(HANDOVER_BLOCKS * 3 / 2) };
        if finalized < begins {
            Self::Awaits { from, begins }
        } else if finalized <= until {
            Self::Holds { term }
        } else if finalized <= until.saturating_add(HANDOVER_BLOCKS / 2) {
            Self::Leaves { term }
        } else {
            Self::Left { until }
        }
    }

    /// Whether it admits envelopes: only while its term lasts.
    pub fn admits(&self) -> bool {
        matches!(self, Self::Holds { .. })
    }

    /// Whether promises are given, where L1's newest block, final or not, is this one: before the term's end lie the
    /// numbers that a promise names, however finality jumps.
    pub fn promises(&self, newest: u64) -> bool {
        match self {
            Self::Holds { term } => newest.saturating_add(HANDOVER_BLOCKS) <= *term.end(),
            _ => false,
        }
    }

    /// The L1 origins that it may seal with; `None` while it seals nothing.
    pub fn origins(&self) -> Option<&RangeInclusive<u64>> {
        match self {
            Self::Holds { term } | Self::Leaves { term } => Some(term),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stops_before_the_next_begins() {
        let (earlier, next) = (Some(0..=999), Some(1_000..=u64::MAX));
        for finalized in 0..2_000 {
            let (earlier, next) =
                (Office::of(earlier.clone(), finalized), Office::of(next.clone(), finalized));
            assert!(earlier.origins().is_none() || next.origins().is_none(), "{finalized}");
            assert!(!earlier.admits() || finalized < 1_000, "{finalized}");
            assert_eq!(next.admits(), finalized >= 1_096, "{finalized}");
        }
        assert_eq!(Office::of(Some(0..=999), 999), Office::Holds { term: 0..=999 });
        assert_eq!(Office::of(Some(0..=999), 1_000), Office::Leaves { term: 0..=999 });
        assert_eq!(Office::of(Some(0..=999), 1_032), Office::Left { until: 999 });
        assert_eq!(Office::of(None, 5), Office::Stranger);
        let holds = Office::of(Some(0..=999), 800);
        assert_eq!([935, 936].map(|newest| holds.promises(newest)), [true, false]);
        assert!(Office::of(Some(0..=u64::MAX), 5).promises(u64::MAX));
        // Finality may jump over a whole stretch: it is seen at its end, and never as another's.
        assert_eq!(Office::of(Some(1_000..=1_010), 1_096), Office::Left { until: 1_010 });
    }
}

//! The last blocks of an epoch whose end at the head is announced (rule E-11).
//!
//! Once that end is due L1 takes nothing certified of the epoch any more, however young it is, and makes the epoch's last
//! header itself. What is certified and not posted by then is lost, and what was opened of it is public. So the last
//! blocks before it are for posting alone. With U the last block before the end is due, and m the margin:
//!
//! - from U − m on nothing of the epoch is sealed, counted by L1's newest block; members vote for no header of it with
//!   such an origin; and whoever posts in the sequencer's place begins;
//! - from U − m/2 on no header of it is voted for or certified, whatever its origin, and members open nothing of it that
//!   is not posted. What they opened before has the other half for its posting.

use blindfold_l1::AnnouncedEnd;

use crate::TrackerError;
use crate::limits::{CLOSING_NOTICE_PART, POSTING_MARGIN};

/// An epoch whose end at the head is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Number of the epoch that ends.
    pub epoch: u64,
    /// After this L1 block the end is due.
    pub until: u64,
    /// How many blocks before that are for posting alone.
    margin: u64,
}

impl Closing {
    /// Of an announced end. The margin is what has to be left for posting when a header is voted for (rule C-4), or a
    /// part of the notice, if that is less.
    pub fn of(end: &AnnouncedEnd, posting_deadline: u32) -> Self {
        let notice = end.until.saturating_sub(end.announced_at);
        let margin = (u64::from(posting_deadline) / POSTING_MARGIN).min(notice / CLOSING_NOTICE_PART);
        Self { epoch: end.epoch, until: end.until, margin }
    }

    /// The first L1 block from which on nothing more is sealed, and with which as its origin no header is voted for.
    pub fn closed_from(&self) -> u64 {
        self.until.saturating_sub(self.margin)
    }

    /// The first L1 block from which on nothing more is voted for, certified, or opened before it is posted.
    pub fn settled_from(&self) -> u64 {
        self.until.saturating_sub(self.margin / 2)
    }

    /// Nothing more is voted for or certified of its epoch.
    pub(crate) fn refusal(&self, number: u64) -> TrackerError {
        TrackerError::EpochEnds { number, epoch: self.epoch, until: self.until }
    }

    /// Whether the end is due, where L1's newest block is this one.
    pub fn is_due(&self, newest: u64) -> bool {
        newest > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closing(notice: u64, posting_deadline: u32) -> Closing {
        let end = AnnouncedEnd { epoch: 1, announced_at: 1_000, until: 1_000 + notice, for_silence: false };
        Closing::of(&end, posting_deadline)
    }

    #[test]
    fn the_last_blocks_are_for_posting_alone() {
        let week = closing(50_400, 14_400);
        assert_eq!((week.until - week.closed_from(), week.until - week.settled_from()), (1_800, 900));
        assert!(!week.is_due(week.until) && week.is_due(week.until + 1));
        // A short notice is mostly for sealing, a long deadline or none.
        let short = closing(40, 14_400);
        assert_eq!((short.until - short.closed_from(), short.until - short.settled_from()), (10, 5));
        for closing in [closing(0, 14_400), closing(3, u32::MAX), closing(u64::MAX - 1_000, 0)] {
            assert_eq!((closing.closed_from(), closing.settled_from()), (closing.until, closing.until));
        }
        // Not what the registry could say.
        let end = AnnouncedEnd { epoch: 1, announced_at: 9, until: 3, for_silence: true };
        assert_eq!(Closing::of(&end, 14_400).closed_from(), 3);
    }
}

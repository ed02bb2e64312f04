//! Opened data that was looked at before, so that it need not be decompressed, or encrypted again, to say what it holds.

use blindfold_protocol::{B256, DecodeError};
use parking_lot::Mutex;

use crate::{posting::opened_data::HintsReference, reader::remembered::Remembered};

/// How much of each kind is remembered; the oldest goes first.
const KEPT: usize = 16_384;

/// The number that a `RunData` begins with, keccak256 of it, and the hash of a header.
type Place = (u64, B256, B256);

/// Why data is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// It does not decode.
    Undecodable(DecodeError),
    /// No batch of it can be one of the headers whose hashes have this hash together.
    Unfit(B256),
}

/// Only what stays so: an id that L1 gave can come to mean other hints before its block is final.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Whether the data holds the header's batch.
    kept: Mutex<Remembered<Place, bool, KEPT>>,
    /// By the number that it begins with, and its hash.
    useless: Mutex<Remembered<(u64, B256), Useless, KEPT>>,
    /// Ids and blocks of hints that are not there.
    absent: Mutex<Remembered<(u64, u64), (), KEPT>>,
}

impl Compared {
    /// Whether data with this hash, from this number on, holds the batches of these headers.
    pub fn note(&self, from: u64, data: B256, headers: impl IntoIterator<Item = (B256, bool)>) {
        let mut kept = self.kept.lock();
        for (header, holds) in headers {
            kept.note((from, data, header), holds);
        }
    }

    /// Whether they hold this header's batch, if that is known.
    pub fn holds(&self, from: u64, data: &B256, header: &B256) -> Option<bool> {
        self.kept.lock().get(&(from, *data, *header)).copied()
    }

    /// Nothing is to be had of this data.
    pub fn note_useless(&self, from: u64, data: B256, why: Useless) {
        self.useless.lock().note((from, data), why);
    }

    /// Why nothing was to be had of it.
    pub fn useless(&self, from: u64, data: &B256) -> Option<Useless> {
        self.useless.lock().get(&(from, *data)).copied()
    }

    /// A final block has no such hints.
    pub fn note_absent(&self, hints: HintsReference) {
        self.absent.lock().note((hints.id, hints.l1_block), ());
    }

    /// Whether that is known.
    pub fn is_absent(&self, hints: HintsReference) -> bool {
        self.absent.lock().get(&(hints.id, hints.l1_block)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_the_oldest_go_first() {
        let compared = Compared::default();
        let header = |number: usize| B256::left_padding_from(&number.to_be_bytes());
        let (data, other) = (B256::repeat_byte(1), B256::repeat_byte(2));
        compared.note(1, data, (0..KEPT).map(|number| (header(number), true)));
        compared.note(1, data, [(header(0), false)]);
        assert_eq!(compared.holds(1, &data, &header(0)), Some(false));
        assert_eq!(compared.holds(1, &data, &header(1)), Some(true));
        assert_eq!(compared.holds(0, &data, &header(1)), None, "from another number on it is of others");
        assert_eq!(compared.holds(1, &data, &header(KEPT)), None);
        assert_eq!(compared.holds(1, &other, &header(1)), None);
        compared.note(1, other, [(header(0), true)]);
        assert_eq!(compared.holds(1, &data, &header(0)), None);
    }

    #[test]
    fn what_is_useless_and_what_is_absent_are_known_apart() {
        let compared = Compared::default();
        let data = B256::repeat_byte(1);
        let why = Useless::Undecodable(DecodeError::Compressed);
        compared.note_useless(1, data, why);
        assert_eq!((compared.useless(1, &data), compared.useless(2, &data)), (Some(why), None));
        assert_eq!(compared.holds(1, &data, &B256::ZERO), None);
        let hints = HintsReference { id: 3, l1_block: 9 };
        compared.note_absent(hints);
        assert!(compared.is_absent(hints));
        assert!(!compared.is_absent(HintsReference { l1_block: 8, ..hints }));
    }
}

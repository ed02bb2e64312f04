//! Opened data that was compared with headers before, so that it need not be encrypted again to say whether it is there.

use std::collections::{BTreeMap, VecDeque};

use blindfold_protocol::B256;
use parking_lot::Mutex;

/// Batches that are remembered; the oldest go first.
const KEPT: usize = 16_384;

/// The number that a `RunData` begins with, keccak256 of it, and the hash of a header.
type Place = (u64, B256, B256);

/// Only of data whose hints are final: an id that L1 gave can come to mean others before that.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Whether the data holds the header's batch.
    kept: Mutex<(BTreeMap<Place, bool>, VecDeque<Place>)>,
}

impl Compared {
    /// Whether data with this hash, from this number on, holds the batches of these headers.
    pub fn note(&self, from: u64, data: B256, headers: impl IntoIterator<Item = (B256, bool)>) {
        let mut kept = self.kept.lock();
        let (known, order) = &mut *kept;
        for (header, holds) in headers {
            let place = (from, data, header);
            if known.insert(place, holds).is_none() {
                order.push_back(place);
            }
        }
        while order.len() > KEPT
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
    }

    /// Whether they hold this header's batch, if that is known.
    pub fn holds(&self, from: u64, data: &B256, header: &B256) -> Option<bool> {
        self.kept.lock().0.get(&(from, *data, *header)).copied()
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
}

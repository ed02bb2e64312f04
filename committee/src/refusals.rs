//! What this member refused and why: the last of them, for its status, each told to the sequencer once.

use std::collections::VecDeque;

use blindfold_protocol::B256;
use blindfold_rpc::types::RefusedHeader;
use parking_lot::Mutex;

/// Refused headers kept for the status.
const MAX_KEPT_REFUSALS: usize = 64;

/// The last refused headers, oldest first.
#[derive(Default)]
pub(crate) struct Refusals {
    kept: Mutex<VecDeque<RefusedHeader>>,
}

impl Refusals {
    /// Keeps a refusal; false if this header was refused for this reason before, as far as is still remembered.
    pub(crate) fn note(&self, number: u64, header_hash: B256, reason: &str) -> bool {
        let mut kept = self.kept.lock();
        let known = |entry: &RefusedHeader| {
            entry.number == number && entry.header_hash == header_hash && entry.reason == reason
        };
        if kept.iter().any(known) {
            return false;
        }
        if kept.len() == MAX_KEPT_REFUSALS {
            kept.pop_front();
        }
        kept.push_back(RefusedHeader { number, header_hash, reason: reason.to_owned() });
        true
    }

    pub(crate) fn list(&self) -> Vec<RefusedHeader> {
        self.kept.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_known_and_memory_is_bounded() {
        let refusals = Refusals::default();
        let hash = B256::repeat_byte(1);
        assert!(refusals.note(1, hash, "clock_ahead"));
        assert!(!refusals.note(1, hash, "clock_ahead"));
        assert!(refusals.note(1, hash, "second_header"));
        for number in 2..200 {
            assert!(refusals.note(number, hash, "second_header"));
        }
        let list = refusals.list();
        assert_eq!(list.len(), MAX_KEPT_REFUSALS);
        assert_eq!(list.last().map(|entry| entry.number), Some(199));
    }
}

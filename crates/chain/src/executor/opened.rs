//! Opened batches on their way from verification to execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::ItemOutcome;
use crate::limits::{MAX_OPENED_BATCHES, MAX_OPENED_BYTES};

/// A bounded shelf of opened batches by number. What does not fit is opened again from the stored hints.
pub struct OpenedBatches {
    shelf: Mutex<Shelf>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Shelf {
    batches: BTreeMap<u64, Arc<Vec<ItemOutcome>>>,
    bytes: usize,
}

impl Default for OpenedBatches {
    fn default() -> Self {
        Self { shelf: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl OpenedBatches {
    /// Says that the hints of batch `number` are verified and stored, and hands over what they opened, if at hand.
    pub fn put(&self, number: u64, outcomes: Option<Vec<ItemOutcome>>) {
        if let Some(outcomes) = outcomes {
            self.shelf.lock().put(number, Arc::new(outcomes));
        }
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes a batch off the shelf.
    pub(crate) fn take(&self, number: u64) -> Option<Arc<Vec<ItemOutcome>>> {
        self.shelf.lock().take(number)
    }

    /// Changes whenever hints of a batch are verified and stored.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Shelf {
    fn put(&mut self, number: u64, outcomes: Arc<Vec<ItemOutcome>>) {
        self.take(number);
        self.bytes += bytes_of(&outcomes);
        self.batches.insert(number, outcomes);
        // The oldest are needed first, so the newest make room.
        while self.batches.len() > MAX_OPENED_BATCHES || self.bytes > MAX_OPENED_BYTES {
            let Some((_, dropped)) = self.batches.pop_last() else { return };
            self.bytes -= bytes_of(&dropped);
        }
    }

    fn take(&mut self, number: u64) -> Option<Arc<Vec<ItemOutcome>>> {
        let outcomes = self.batches.remove(&number)?;
        self.bytes -= bytes_of(&outcomes);
        Some(outcomes)
    }
}

fn bytes_of(outcomes: &[ItemOutcome]) -> usize {
    let messages = outcomes.iter().map(|outcome| match outcome {
        ItemOutcome::Message(message) => message.len(),
        ItemOutcome::Skipped(_)
        | ItemOutcome::Malformed
        | ItemOutcome::ForcedTransaction
        | ItemOutcome::Void => 0,
    });
    size_of_val(outcomes) + messages.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shelf_is_bounded_and_keeps_the_oldest() {
        let opened = OpenedBatches::default();
        for number in (0..2 * MAX_OPENED_BATCHES as u64).rev() {
            opened.put(number, Some(vec![ItemOutcome::Malformed]));
        }
        assert!(opened.take(0).is_some() && opened.take(0).is_none());
        assert!(opened.take(2 * MAX_OPENED_BATCHES as u64 - 1).is_none());
        opened.put(7, Some(vec![ItemOutcome::Message(vec![0; MAX_OPENED_BYTES + 1])]));
        assert!(opened.take(7).is_none(), "one batch may not fill all memory");
        assert!(opened.take(1).is_some());
    }

    #[test]
    fn putting_wakes_a_watcher() {
        let opened = OpenedBatches::default();
        let watch = opened.watch();
        opened.put(1, None);
        assert!(watch.has_changed().unwrap());
    }
}

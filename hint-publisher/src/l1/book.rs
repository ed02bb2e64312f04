//! Which runs have no final hints, and which postings are open for them: folded from L1's events.

use std::collections::BTreeMap;

use super::seam::{HintEvent, HintPosting, PostedRun};

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunEntry {
    pub(super) run: PostedRun,
    /// Its open postings, oldest first.
    pub(super) open: Vec<HintPosting>,
    /// Whether it has its final hints, or is void.
    pub(super) settled: bool,
}

/// Runs by last number. A run leaves it when its being settled is final, so it holds at most what was posted within the
/// deadlines, and whatever nobody posted hints for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) runs: BTreeMap<u64, RunEntry>,
}

impl Book {
    pub(super) fn add_run(&mut self, run: PostedRun) {
        let fresh = || RunEntry { run, open: Vec::new(), settled: false };
        self.runs.entry(run.last).or_insert_with(fresh);
    }

    /// Events of runs that are not here concern nobody.
    pub(super) fn apply(&mut self, event: &HintEvent) {
        let run_last = match event {
            HintEvent::Posted(posting) => posting.run_last,
            HintEvent::Struck { publisher, .. } => {
                // Its other postings are dead: never final, and in nobody's way.
                self.runs
                    .values_mut()
                    .for_each(|entry| entry.open.retain(|open| open.publisher != *publisher));
                return;
            }
            HintEvent::Finalized { run_last, .. }
            | HintEvent::Released { run_last, .. }
            | HintEvent::Voided { run_last } => *run_last,
        };
        let Some(entry) = self.runs.get_mut(&run_last) else { return };
        match event {
            HintEvent::Posted(posting) => entry.open.push(*posting),
            HintEvent::Struck { .. } => {}
            HintEvent::Released { id, .. } => {
                entry.open.retain(|posting| posting.id != *id);
            }
            HintEvent::Finalized { id, .. } => {
                entry.open.retain(|posting| posting.id != *id);
                entry.settled = true;
            }
            HintEvent::Voided { .. } => entry.settled = true,
        }
    }

    /// Forgets runs that are settled and have no posting left that is not closed. Only for a book of final events.
    pub(super) fn forget_settled(&mut self) {
        self.runs.retain(|_, entry| !(entry.settled && entry.open.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{Address, B256};

    use super::*;

    fn run(last: u64) -> PostedRun {
        PostedRun { first: last, last, posted_at: 1, head_hash: B256::ZERO, header_root: B256::ZERO }
    }

    fn posting(id: u64, run_last: u64) -> HintPosting {
        let (publisher, root) = (Address::with_last_byte(id as u8), B256::with_last_byte(id as u8));
        HintPosting { id, run_last, publisher, block: 1, root }
    }

    #[test]
    fn a_run_is_there_until_it_is_settled_and_nothing_is_open() {
        let mut book = Book::default();
        book.add_run(run(4));
        for event in [
            HintEvent::Posted(posting(1, 4)),
            HintEvent::Posted(posting(2, 4)),
            HintEvent::Posted(posting(3, 4)),
            HintEvent::Posted(posting(4, 9)),
            HintEvent::Struck { id: 1, run_last: 4, publisher: posting(1, 4).publisher },
        ] {
            book.apply(&event);
        }
        let open = |book: &Book| book.runs.get(&4).map(|entry| entry.open.len());
        assert_eq!((open(&book), book.runs.len()), (Some(2), 1));
        book.apply(&HintEvent::Finalized { id: 2, run_last: 4 });
        book.forget_settled();
        assert_eq!(open(&book), Some(1), "a bond answers for the third");
        book.apply(&HintEvent::Released { id: 3, run_last: 4 });
        book.forget_settled();
        assert_eq!(open(&book), None);
        book.add_run(run(5));
        book.apply(&HintEvent::Voided { run_last: 5 });
        book.forget_settled();
        assert!(book.runs.is_empty());
    }

    #[test]
    fn a_strike_ends_all_open_postings_of_a_publisher() {
        let mut book = Book::default();
        [4, 5].into_iter().for_each(|last| book.add_run(run(last)));
        let publisher = Address::repeat_byte(9);
        let of = |id, last| HintEvent::Posted(HintPosting { publisher, ..posting(id, last) });
        let strike = HintEvent::Struck { id: 2, run_last: 5, publisher };
        for event in [of(1, 4), of(2, 5), HintEvent::Posted(posting(3, 5)), strike, of(4, 4)] {
            book.apply(&event);
        }
        let open = |last: u64| book.runs[&last].open.iter().map(|open| open.id).collect::<Vec<_>>();
        assert_eq!((open(4), open(5)), (vec![4], vec![3]));
    }
}

//! Ledgers at hand that accounts are proved in, and whose turn it is to make another one.

use std::collections::{BTreeMap, VecDeque};

use blindfold_protocol::LedgerTree;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::HeaderId;
use crate::limits::MAX_WAITING_PROOFS;

/// A header, and the ledger after it.
pub(super) type LedgerAfter = (HeaderId, LedgerTree);

/// Ledgers kept at hand that were asked for last. They share what they have in common with the newest.
const RECENT_LEDGERS: usize = 4;

/// Ledgers kept at hand that others were made from on the way back.
const PASSED_LEDGERS: usize = 8;

/// How far the proofs of each lane go back at most, in batches: at four a second a minute, a quarter of an hour, hours, and
/// what is left.
const LANE_BATCHES: [u64; 4] = [256, 4_096, 65_536, u64::MAX];

/// Ledgers that accounts are proved in, each as it stays: whoever proves holds up no header, and waits for none.
pub(super) struct Ledgers {
    /// That of the newest header that is shown, which is on disk. Never further than the disk.
    newest: parking_lot::RwLock<LedgerAfter>,
    kept: parking_lot::Mutex<Kept>,
    /// One ledger is made at a time in each: who goes back a little does not wait for who goes back far.
    lanes: [Lane; LANE_BATCHES.len()],
}

/// Ledgers of certified headers, which no others can replace.
#[derive(Default)]
struct Kept {
    /// Those that were asked for, the latest first.
    recent: VecDeque<LedgerAfter>,
    /// Those that were passed, by number.
    passed: BTreeMap<u64, LedgerAfter>,
}

struct Lane {
    /// Of the proof whose turn it is and those that wait.
    places: Semaphore,
    turn: Mutex<()>,
}

impl Default for Lane {
    fn default() -> Self {
        Self { places: Semaphore::new(1 + MAX_WAITING_PROOFS), turn: Mutex::default() }
    }
}

/// The turn to make a ledger, for as long as it is held.
pub(super) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _place: SemaphorePermit<'a>,
}

impl Ledgers {
    pub(super) fn new(header: HeaderId, tree: LedgerTree) -> Self {
        let newest = parking_lot::RwLock::new((header, tree));
        Self { newest, kept: parking_lot::Mutex::default(), lanes: Default::default() }
    }

    /// Another header is the newest.
    pub(super) fn show(&self, header: HeaderId, tree: LedgerTree) {
        let left = std::mem::replace(&mut *self.newest.write(), (header, tree));
        // Its own part is freed while nobody waits.
        drop(left);
    }

    pub(super) fn newest(&self) -> LedgerAfter {
        self.newest.read().clone()
    }

    pub(super) fn of(&self, number: u64) -> Option<LedgerAfter> {
        let kept = self.kept.lock();
        let recent = kept.recent.iter().find(|(of, _)| of.number == number);
        recent.or_else(|| kept.passed.get(&number)).cloned()
    }

    /// The one with the least number above.
    pub(super) fn next_after(&self, number: u64) -> LedgerAfter {
        let next = self.kept.lock().next_after(number);
        next.unwrap_or_else(|| self.newest())
    }

    /// The turn to go back so many batches, when it comes; `None` where as many wait for it as may.
    pub(super) async fn turn(&self, batches: u64) -> Option<Turn<'_>> {
        let (_, lane) = LANE_BATCHES.iter().zip(&self.lanes).find(|(most, _)| batches <= **most)?;
        let place = lane.places.try_acquire().ok()?;
        Some(Turn { _turn: lane.turn.lock().await, _place: place })
    }

    /// Keeps a ledger that was asked for, and those that were passed on the way to it. Nobody is shown any before `floor`.
    pub(super) fn keep(&self, asked: LedgerAfter, passed: Vec<LedgerAfter>, floor: u64) {
        let newest = self.newest.read().0.number;
        let mut kept = self.kept.lock();
        kept.recent.push_front(asked);
        let most = kept.recent.len().min(RECENT_LEDGERS);
        let left = kept.recent.split_off(most);
        kept.passed.extend(passed.into_iter().map(|ledger| (ledger.0.number, ledger)));
        let thinned_out = kept.thin_out(floor, newest);
        drop(kept);
        drop((left, thinned_out));
    }
}

impl Kept {
    fn next_after(&self, number: u64) -> Option<LedgerAfter> {
        let recent = self.recent.iter().filter(|(of, _)| of.number > number);
        let passed = self.passed.range(number.saturating_add(1)..).next().map(|(_, ledger)| ledger);
        recent.chain(passed).min_by_key(|(of, _)| of.number).cloned()
    }

    /// Leaves out those that nobody is shown any more, and, while there are too many, the one whose neighbours are nearest to
    /// each other: wherever somebody goes back to, one of those that stay is not far.
    fn thin_out(&mut self, floor: u64, newest: u64) -> Vec<LedgerAfter> {
        let shown = self.passed.split_off(&floor);
        let mut left: Vec<LedgerAfter> = std::mem::replace(&mut self.passed, shown).into_values().collect();
        while self.passed.len() > PASSED_LEDGERS {
            let kept = self.passed.keys().copied();
            let numbers: Vec<u64> = std::iter::once(floor).chain(kept).chain([newest]).collect();
            let apart = numbers.windows(3).filter_map(|near| match near {
                [before, number, after] => Some((after.saturating_sub(*before), *number)),
                _ => None,
            });
            let Some((_, number)) = apart.min() else { break };
            left.extend(self.passed.remove(&number));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use futures::FutureExt;

    use super::*;

    fn ledger(number: u64) -> LedgerAfter {
        (HeaderId { number, hash: B256::ZERO }, LedgerTree::default())
    }

    fn passed(ledgers: &Ledgers) -> Vec<u64> {
        ledgers.kept.lock().passed.keys().copied().collect()
    }

    #[test]
    fn those_that_are_passed_lie_apart_from_each_other() {
        let (newest, tree) = ledger(100_000);
        let ledgers = Ledgers::new(newest, tree);
        let near = (1..=100).map(|place| ledger(1_000 + place));
        ledgers.keep(ledger(1_000), near.chain([ledger(40_000), ledger(80_000)]).collect(), 500);
        let stay = passed(&ledgers);
        assert_eq!(stay.len(), PASSED_LEDGERS);
        assert!(stay.contains(&40_000) && stay.contains(&80_000), "{stay:?}");
        assert_eq!(ledgers.next_after(30_000).0.number, 40_000);
        assert_eq!(ledgers.next_after(80_000).0.number, 100_000);
        assert_eq!(ledgers.of(80_000).map(|(of, _)| of.number), Some(80_000));
    }

    #[test]
    fn what_nobody_is_shown_any_more_makes_room() {
        let (newest, tree) = ledger(1_000);
        let ledgers = Ledgers::new(newest, tree);
        ledgers.keep(ledger(10), vec![ledger(20), ledger(30), ledger(500)], 5);
        ledgers.keep(ledger(40), vec![], 30);
        assert_eq!(passed(&ledgers), [30, 500]);
        // One that was asked for is shown for as long as it is at hand.
        assert!(ledgers.of(10).is_some());
    }

    #[test]
    fn who_goes_back_a_little_does_not_wait_for_who_goes_back_far() {
        let (newest, tree) = ledger(1_000_000);
        let ledgers = Ledgers::new(newest, tree);
        let far = ledgers.turn(1_000_000).now_or_never().flatten();
        let near = ledgers.turn(256).now_or_never().flatten();
        assert!(far.is_some() && near.is_some());
        assert!(ledgers.turn(999_999).now_or_never().is_none(), "one at a time");
        drop(far);
        assert!(ledgers.turn(999_999).now_or_never().flatten().is_some());
    }
}

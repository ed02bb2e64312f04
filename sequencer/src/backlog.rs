//! Credit of admission: no more bytes are admitted than posting, hints and execution may be behind by. Beyond its deadline
//! L1 declares void what was not posted or not opened, and what was paid for it is lost.

use std::{collections::BTreeMap, time::Duration};

use blindfold_rpc::Pace;
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

/// Batches read at a time at a restart.
const PAGE_BATCHES: usize = 64;

/// Which part of the limit has to be free again for whoever was refused.
const PART_TO_COME_BACK: u64 = 8;

/// How far each stage has come, as a batch number; `None` for one that is not this process's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stages {
    pub(crate) posted: Option<u64>,
    pub(crate) hinted: u64,
    pub(crate) executed: u64,
}

impl Stages {
    fn named(self) -> impl Iterator<Item = (&'static str, u64)> {
        let posted = self.posted.map(|number| ("posting", number));
        posted.into_iter().chain([("hints", self.hinted), ("execution", self.executed)])
    }

    fn lowest(self) -> u64 {
        self.named().map(|(_, number)| number).min().unwrap_or_default()
    }
}

#[derive(Default)]
struct State {
    /// Item bytes of the headers that some stage has not taken yet.
    bytes: BTreeMap<u64, u64>,
    stages: Stages,
    /// Bytes that each stage takes.
    paces: BTreeMap<&'static str, Pace>,
}

/// What is sealed and not yet posted, opened and executed.
pub(crate) struct Backlog {
    limit: u64,
    state: Mutex<State>,
}

impl Backlog {
    /// At most `limit` bytes may be on their way.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// Reads what lies between the lowest stage and the head; stops when that is more than the limit anyway.
    pub(crate) async fn restore(
        &self,
        store: &dyn Store,
        stages: Stages,
        head: u64,
    ) -> Result<(), StoreError> {
        let (mut from, mut sum) = (stages.lowest() + 1, 0u64);
        while from <= head && sum <= self.limit {
            let page = store.batches(from, PAGE_BATCHES).await?;
            let Some(last) = page.last() else { break };
            from = last.number + 1;
            for record in &page {
                sum = sum.saturating_add(record.sealed.header.envelope_bytes.into());
                self.sealed(record.number, record.sealed.header.envelope_bytes);
            }
        }
        self.advance(stages);
        Ok(())
    }

    /// A header was sealed, with so many bytes of items.
    pub(crate) fn sealed(&self, number: u64, bytes: u32) {
        if bytes > 0 {
            self.state.lock().bytes.insert(number, bytes.into());
        }
    }

    /// Headers from a number on gave way to others.
    pub(crate) fn forget_from(&self, number: u64) {
        self.state.lock().bytes.split_off(&number);
    }

    /// The stages have come so far.
    pub(crate) fn advance(&self, stages: Stages) {
        let mut state = self.state.lock();
        let State { bytes, stages: before, paces } = &mut *state;
        let before: BTreeMap<_, _> = before.named().collect();
        for (name, number) in stages.named() {
            let from = before.get(name).copied().unwrap_or(number);
            let taken = bytes.range(from + 1..).take_while(|(other, _)| **other <= number);
            paces.entry(name).or_default().note(taken.map(|(_, bytes)| bytes).sum());
        }
        state.stages = stages;
        state.bytes = state.bytes.split_off(&(stages.lowest() + 1));
    }

    /// When a stage that is too far behind may give credit again, at its pace of the last seconds.
    pub(crate) fn time_to_come_back(&self, stage: &str) -> Option<Duration> {
        self.state.lock().paces.get(stage)?.time_for(self.limit / PART_TO_COME_BACK)
    }

    /// The stage that is so far behind that no envelope of so many bytes is admitted beside `pending` ones.
    pub(crate) fn behind(&self, pending: u64, bytes: u64) -> Option<&'static str> {
        let state = self.state.lock();
        let waits = |number: u64| {
            let sum =
                state.bytes.range(number + 1..).fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
            sum.saturating_add(pending).saturating_add(bytes)
        };
        state.stages.named().find(|(_, number)| waits(*number) > self.limit).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_refused_comes_back_when_the_stage_has_taken_an_eighth() {
        let backlog = Backlog::new(800);
        let stages = |posted| Stages { posted: Some(posted), hinted: 9, executed: 9 };
        backlog.advance(stages(0));
        for number in 1..=9 {
            backlog.sealed(number, 100);
        }
        assert_eq!((backlog.behind(0, 1), backlog.time_to_come_back("posting")), (Some("posting"), None));
        for posted in 1..=4 {
            backlog.advance(stages(posted));
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(backlog.time_to_come_back("posting"), Some(Duration::from_millis(500)));
        assert_eq!(backlog.time_to_come_back("nothing"), None);
    }

    #[test]
    fn each_stage_gives_credit_by_itself() {
        let backlog = Backlog::new(100);
        let stages = |posted, hinted, executed| Stages { posted: Some(posted), hinted, executed };
        backlog.advance(stages(0, 0, 0));
        assert_eq!(backlog.behind(60, 40), None);
        assert_eq!(backlog.behind(60, 41), Some("posting"));
        for number in 1..=3 {
            backlog.sealed(number, 30);
        }
        assert_eq!(backlog.behind(0, 11), Some("posting"));
        backlog.advance(stages(3, 1, 2));
        assert_eq!(backlog.behind(0, 40), None);
        assert_eq!(backlog.behind(0, 41), Some("hints"));
        backlog.advance(stages(3, 3, 2));
        assert_eq!((backlog.behind(0, 70), backlog.behind(0, 71)), (None, Some("execution")));
        backlog.advance(Stages { posted: None, ..stages(0, 3, 3) });
        assert_eq!(backlog.behind(0, 100), None, "who does not post is not held up by it");
        backlog.sealed(4, 90);
        backlog.forget_from(4);
        assert_eq!(backlog.behind(0, 100), None);
    }
}

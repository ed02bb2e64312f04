//! Fetching certified batches from members, of whom some may be slow.

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::pin;
use std::time::Duration;

use blindfold_runtime::{Hedge, Pace, now};
use futures::{FutureExt, Stream, StreamExt, stream};
use parking_lot::Mutex;

use crate::limits::{MAX_ASK_STEP_MS, MAX_ASKED_AT_ONCE, MAX_ROUND_BYTES, MAX_RUN_TIMEOUTS};

/// Consecutive batches that one certificate covers, as a member gave them.
pub trait GivenRun {
    /// The number of the last batch.
    fn last(&self) -> u64;

    /// The bytes of its items.
    fn bytes(&self) -> usize;
}

/// What members gave in one round of asking.
#[derive(Debug)]
pub struct FetchedRuns<R> {
    /// Consecutive runs from the number asked for, and whose each is.
    pub runs: Vec<(u16, R)>,
    /// Members that claimed to hold more than they gave.
    pub failed: Vec<u16>,
    /// Members that were overtaken, or gave nothing before the deadline.
    pub slow: Vec<u16>,
}

impl<R> Default for FetchedRuns<R> {
    fn default() -> Self {
        Self { runs: Vec::new(), failed: Vec::new(), slow: Vec::new() }
    }
}

impl<R> FetchedRuns<R> {
    /// Members that are better left alone for a while.
    pub fn left_alone(&self) -> impl Iterator<Item = u16> + '_ {
        self.failed.iter().chain(&self.slow).copied()
    }
}

/// Rounds in which members are asked for runs. The first one to give a run counts: each is asked beside the one before
/// when that one has not given it for a while, so that one that is true and slow holds nobody up.
#[derive(Debug)]
pub struct RunFetcher {
    pace: Mutex<Pace>,
    run_timeout: Duration,
}

impl RunFetcher {
    /// Members have this long for one answer.
    pub fn new(answer_timeout: Duration) -> Self {
        let run_timeout = answer_timeout.saturating_mul(MAX_RUN_TIMEOUTS);
        let shortest = (answer_timeout / MAX_RUN_TIMEOUTS).min(Duration::from_millis(MAX_ASK_STEP_MS));
        Self { pace: Mutex::new(Pace::new(shortest, run_timeout)), run_timeout }
    }

    /// How members are asked from now on.
    pub fn hedge(&self) -> Hedge {
        let deadline = now() + self.run_timeout;
        Hedge { step: self.pace.lock().step(), at_most: MAX_ASKED_AT_ONCE, deadline }
    }

    /// Runs from number `first` on, at most `limit` numbers and so many bytes that they can be held in memory, of those who
    /// claim to hold them: `claims` says who does and up to which number. It ends when nobody is left to ask, and as late
    /// as one run may take.
    pub async fn runs<R: GivenRun, F: Future<Output = Option<R>>>(
        &self,
        claims: impl Stream<Item = (u16, u64)>,
        run_of: impl Fn(u16, u64) -> F,
        first: u64,
        limit: u64,
    ) -> FetchedRuns<R> {
        let hedge = self.hedge();
        let mut claims = pin!(claims.fuse());
        let mut holders: VecDeque<(u16, u64)> = VecDeque::new();
        let mut fetched = FetchedRuns::default();
        let (mut number, mut bytes) = (first, 0);
        while number - first < limit && bytes <= MAX_ROUND_BYTES {
            while let Some(Some(claim)) = claims.next().now_or_never() {
                holders.push_back(claim);
            }
            if !fetched.runs.is_empty() && !holders.iter().any(|(_, up_to)| *up_to >= number) {
                // What there is does not wait for members that have not said what they hold.
                break;
            }
            let mut claimed = Vec::new();
            let known = stream::iter(holders.iter().copied());
            let new = claims.by_ref().inspect(|claim| claimed.push(*claim));
            let asked = known.chain(new).filter(|(_, up_to)| ready(*up_to >= number));
            let hedged = hedge.first(asked.map(|(member, _)| (member, run_of(member, number)))).await;
            fetched.failed.extend(hedged.failed);
            fetched.slow.extend(hedged.slow);
            let Some((member, run)) = hedged.first else { break };
            holders.extend(claimed);
            holders.retain(|(holder, _)| fetched.left_alone().all(|other| other != *holder));
            // The next run is asked of another one first: whoever takes most of a step each time costs its share alone.
            if let Some(place) = holders.iter().position(|(holder, _)| *holder == member) {
                holders.rotate_left(place + 1);
            }
            bytes += run.bytes();
            number = run.last().max(number).saturating_add(1);
            fetched.runs.push((member, run));
        }
        match fetched.runs.is_empty() {
            false => self.pace.lock().succeeded(),
            true if now() >= hedge.deadline => self.pace.lock().failed(),
            true => {}
        }
        fetched
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::future::BoxFuture;

    use super::*;

    const NEVER: Duration = Duration::from_secs(3_000);
    const ALL: u64 = 1_000;

    #[derive(Debug, PartialEq, Eq)]
    struct Run {
        last: u64,
        bytes: usize,
    }

    impl GivenRun for Run {
        fn last(&self) -> u64 {
            self.last
        }

        fn bytes(&self) -> usize {
            self.bytes
        }
    }

    /// Every member gives single numbers, but the first one gives nothing.
    fn first_hangs(member: u16, number: u64) -> BoxFuture<'static, Option<Run>> {
        match member {
            1 => pending().boxed(),
            _ => ready(Some(Run { last: number, bytes: 1 })).boxed(),
        }
    }

    fn givers(fetched: &FetchedRuns<Run>) -> Vec<u16> {
        fetched.runs.iter().map(|(member, _)| *member).collect()
    }

    #[tokio::test]
    async fn who_is_slow_is_asked_once_and_the_others_take_turns() {
        let fetcher = RunFetcher::new(NEVER);
        let claims = stream::iter([(1, ALL), (2, ALL), (3, ALL)]);
        let fetched = fetcher.runs(claims, first_hangs, 11, 4).await;
        assert_eq!((givers(&fetched), &fetched.slow), (vec![2, 3, 2, 3], &vec![1]));
        assert_eq!(fetched.runs.last().map(|(_, run)| run.last), Some(14));
        assert_eq!(fetched.left_alone().collect::<Vec<_>>(), [1]);
    }

    #[tokio::test]
    async fn what_there_is_waits_for_nobody_and_stays_within_the_bytes() {
        let fetcher = RunFetcher::new(NEVER);
        let silent = || stream::pending::<(u16, u64)>();
        let fetched = fetcher.runs(stream::iter([(2, 3)]).chain(silent()), first_hangs, 1, ALL).await;
        assert_eq!(givers(&fetched), [2, 2, 2]);
        let large = |_, number| ready(Some(Run { last: number, bytes: MAX_ROUND_BYTES }));
        let fetched = fetcher.runs(stream::iter([(2, ALL)]).chain(silent()), large, 1, ALL).await;
        assert_eq!(givers(&fetched), [2, 2]);
    }

    #[tokio::test]
    async fn where_nobody_is_quick_enough_more_time_passes_before_the_next_is_asked() {
        let fetcher = RunFetcher::new(Duration::from_millis(8));
        let before = fetcher.hedge().step;
        let fetched = fetcher.runs(stream::iter([(1, ALL)]), first_hangs, 1, ALL).await;
        assert_eq!((fetched.runs.len(), fetched.slow), (0, vec![1]));
        assert_eq!(fetcher.hedge().step, before * 2);
        fetcher.runs(stream::iter([(2, ALL)]), first_hangs, 1, ALL).await;
        assert_eq!(fetcher.hedge().step, before);
    }
}

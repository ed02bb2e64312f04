//! How long what is admitted now would wait for its certificate, and whether that is too long: by Little's law, those
//! before it, of what the next header could take, over the pace at which envelopes are certified. Asked before anything is verified, so that under overload
//! refusals cost little and those who were admitted wait no longer than set.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blindfold_rpc::Pace;
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;

use crate::mempool::Mempool;

/// So many groups of verification are never too many: the pace of those that come one by one says nothing of a crowd's.
pub(crate) const MIN_QUEUE_GROUPS: u64 = 2;
/// Which part of the time that envelopes may wait those before them must have waited, for the queue to be looked at.
const PART_OF_WAIT: u32 = 2;

/// What is between its admission and its certificate.
pub(crate) struct Queue {
    /// How long an envelope may wait; none: as long as it takes.
    max_wait: Option<Duration>,
    min_envelopes: u64,
    state: Mutex<State>,
    certified: Pace,
    refused: Pace,
}

struct State {
    /// On their way into the mempool: verified, or written down.
    entering: u64,
    /// Sealed, and without a certificate.
    sealed: BTreeMap<u64, Sealed>,
    /// How long those that were certified last had waited, on average.
    waited: Duration,
    /// Since when nothing was certified, while there was something that could be.
    still_since: Instant,
}

impl State {
    /// On their way into the mempool, or out of it and without a certificate.
    fn outside(&self) -> u64 {
        self.entering + self.sealed.values().map(|sealed| sealed.envelopes).sum::<u64>()
    }
}

#[derive(Clone, Copy)]
struct Sealed {
    envelopes: u64,
    /// Since when they have waited, on average.
    arrived: Instant,
}

/// An envelope on its way into the mempool.
pub(crate) struct Entering(Arc<Queue>);

impl Drop for Entering {
    fn drop(&mut self) {
        self.0.state.lock().entering -= 1;
    }
}

impl Queue {
    /// An envelope may wait so long, in milliseconds; 0: as long as it takes. So many may wait in any case.
    pub(crate) fn new(max_wait_ms: u64, min_envelopes: u64) -> Arc<Self> {
        let state =
            State { entering: 0, sealed: BTreeMap::new(), waited: Duration::ZERO, still_since: now() };
        let max_wait = (max_wait_ms > 0).then(|| Duration::from_millis(max_wait_ms));
        let (certified, refused) = (Pace::new(), Pace::new());
        Arc::new(Self { max_wait, min_envelopes, state: Mutex::new(state), certified, refused })
    }

    /// An envelope is verified and written down from now on, until this is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Entering {
        self.state.lock().entering += 1;
        Entering(Arc::clone(self))
    }

    /// A header was sealed with envelopes that have waited since these times.
    pub(crate) fn sealed(&self, number: u64, arrivals: impl ExactSizeIterator<Item = Instant>) {
        let (now, envelopes) = (now(), arrivals.len() as u64);
        let ages = arrivals.map(|arrived| now.saturating_duration_since(arrived));
        let mean = ages.sum::<Duration>().checked_div(u32::try_from(envelopes).unwrap_or(u32::MAX));
        let Some(arrived) = mean.and_then(|mean| now.checked_sub(mean)) else { return };
        self.state.lock().sealed.insert(number, Sealed { envelopes, arrived });
    }

    /// A header that this process did not seal stands without a certificate, with so many envelopes: since when they have
    /// waited is not known, so since now at least.
    pub(crate) fn found(&self, number: u64, envelopes: u64) {
        if envelopes > 0 {
            let found = Sealed { envelopes, arrived: now() };
            self.state.lock().sealed.entry(number).or_insert(found);
        }
    }

    /// Headers from a number on gave way to others.
    pub(crate) fn forget_from(&self, number: u64) {
        self.state.lock().sealed.split_off(&number);
    }

    /// All headers up to a number have a certificate.
    pub(crate) fn certified(&self, number: u64) {
        let mut state = self.state.lock();
        let above = state.sealed.split_off(&(number + 1));
        let certified = std::mem::replace(&mut state.sealed, above);
        if let Some(newest) = certified.values().next_back() {
            state.still_since = now();
            state.waited = newest.arrived.elapsed();
            self.certified.note(certified.values().map(|sealed| sealed.envelopes).sum());
        }
    }

    /// Where nothing waits that the next header could take, nothing has waited for long: whatever else there is in the mempool
    /// may be there for hours.
    pub(crate) fn look_at<T: Clone>(&self, pool: &Mempool<T>) {
        let mut state = self.state.lock();
        if state.outside() == 0 && pool.takeable() == 0 {
            (state.still_since, state.waited) = (now(), Duration::ZERO);
        }
    }

    /// When to come back, if an envelope of this rank had to wait too long now.
    pub(crate) fn too_long<T: Clone>(&self, pool: &Mempool<T>, rank: u128) -> Option<Duration> {
        let max_wait = self.max_wait?;
        self.look_at(pool);
        let (outside, waited) = {
            let state = self.state.lock();
            (state.outside(), state.waited.max(state.still_since.elapsed()))
        };
        if waited <= max_wait / PART_OF_WAIT {
            return None;
        }
        let per_second = self.certified.per_second();
        let room = ((per_second * max_wait.as_secs_f64()) as u64).max(self.min_envelopes);
        let before = outside.saturating_add(pool.before(rank));
        let above = before.checked_sub(room)?;
        self.refused.note(1);
        // Whoever was refused in the last second comes back, too.
        let crowd = above as f64 + self.refused.per_second();
        // What has stood still for so long may do so for as long again.
        Some(Duration::try_from_secs_f64(crowd / per_second).unwrap_or(waited))
    }

    /// When there may be room for those who were refused for want of it.
    pub(crate) fn time_to_come_back(&self) -> Option<Duration> {
        self.refused.note(1);
        self.certified.time_for(self.refused.per_second().ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{Address, B256, BaseFees};
    use tokio::time::{advance, sleep};

    use super::*;
    use crate::{
        config::MempoolConfig,
        mempool::{Meta, NextHeader},
        reservations::Demand,
    };

    const NEXT: NextHeader = NextHeader {
        number: 1,
        epoch: Some(1),
        generation: 0,
        fees: BaseFees { base_fee: 10, gas_base_fee: 1 },
    };
    const MIN: u64 = 128;
    const SLOT: Duration = Duration::from_millis(250);

    /// A mempool with so many envelopes that give so much.
    fn pool(groups: &[(u64, u128, u128)]) -> Mempool<()> {
        let limits = MempoolConfig { max_envelopes: 1 << 20, ..MempoolConfig::default() };
        let mut pool = Mempool::new(limits, Demand { bytes: 0, gas: 0, items: 0 });
        let mut made = 0u64;
        for (count, rank, max_fee) in groups {
            for _ in 0..*count {
                made += 1;
                let mut payer = [0; 20];
                payer[..8].copy_from_slice(&made.to_be_bytes());
                let id = B256::left_padding_from(&made.to_be_bytes());
                let meta = Meta {
                    id,
                    payer: Address::from(payer),
                    fee_nonce: 1,
                    epoch: 1,
                    expiry: 100,
                    generation: 0,
                    max_fee: *max_fee,
                    max_gas_fee: 1,
                    priority_fee: 0,
                    gas_limit: 1,
                    item_bytes: 1,
                    rank: *rank,
                    seal_by: None,
                };
                pool.reserve(meta, ()).unwrap();
                pool.ready(&id);
            }
        }
        pool.set_next(NEXT);
        pool
    }

    /// For two seconds a batch of so many is certified in each slot, each a second after it came.
    async fn certify(queue: &Queue, envelopes: usize) {
        for number in 1..=8 {
            let arrived = now() - Duration::from_secs(1);
            queue.sealed(number, std::iter::repeat_n(arrived, envelopes));
            queue.certified(number);
            sleep(SLOT).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_taken_than_are_certified_within_the_time() {
        let queue = Queue::new(1_000, MIN);
        advance(Duration::from_secs(10)).await;
        assert_eq!(
            queue.too_long(&pool(&[(9_999, 0, 20)]), 0),
            Some(Duration::from_secs(10)),
            "it stands still"
        );
        certify(&queue, 50).await;
        let ask = |groups: &[(u64, u128, u128)], rank| queue.too_long(&pool(groups), rank);
        assert_eq!(ask(&[(199, 0, 20)], 0), None, "200 a second");
        let time = ask(&[(400, 0, 20)], 0).expect("too many");
        assert!((1_000..1_100).contains(&time.as_millis()), "200 of them have to go first: {time:?}");
        assert_eq!(ask(&[(400, 0, 20)], 1), None, "it goes before them");
        assert!(ask(&[(400, 1, 20)], 1).is_some() && ask(&[(400, 1, 20)], 0).is_some());
        assert_eq!(ask(&[(400, 5, 9), (1, 0, 20)], 0), None, "what cannot pay holds nobody up");
        let entering: Vec<_> = (0..150).map(|_| queue.enter()).collect();
        assert!(ask(&[(60, 0, 20)], 0).is_some());
        drop(entering);
        assert_eq!(ask(&[(60, 0, 20)], 0), None);
        queue.sealed(9, std::iter::repeat_n(now(), 150));
        assert!(ask(&[(60, 0, 20)], 0).is_some());
        queue.forget_from(9);
        assert_eq!(ask(&[(60, 0, 20)], 0), None);
        let crowd = ask(&[(100_000, 0, 20)], 0).expect("too many");
        assert!(crowd > Duration::from_secs(400), "all of them go first");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sample_says_nothing_of_those_that_rank_lower_or_are_behind_it() {
        let queue = Queue::new(1_000, MIN);
        certify(&queue, 250).await;
        let ask = |groups: &[(u64, u128, u128)], rank| queue.too_long(&pool(groups), rank);
        assert_eq!(ask(&[(600, 5, 20), (9_000, 0, 20)], 5), None, "600 go before it, and 1,000 a second");
        assert!(ask(&[(600, 5, 20), (9_000, 0, 20)], 0).is_some());
        assert!(ask(&[(512, 5, 9), (9_000, 0, 20)], 0).is_some(), "behind those that cannot pay");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_pay_makes_no_crowd_wait() {
        const HOUR: Duration = Duration::from_secs(3_600);
        let queue = Queue::new(1_000, MIN);
        let stuck = pool(&[(1, 0, 9)]);
        assert_eq!(queue.too_long(&stuck, 0), None);
        sleep(HOUR).await;
        assert_eq!(queue.too_long(&stuck, 0), None);
        let burst: Vec<_> = (0..MIN).map(|_| queue.enter()).collect();
        assert_eq!(queue.too_long(&stuck, 0), None, "nothing has waited before it");
        drop(burst);
        // The base fee falls at last, when many come. Whoever seals has looked meanwhile.
        sleep(HOUR).await;
        queue.look_at(&stuck);
        assert_eq!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0), None);
        sleep(Duration::from_millis(600)).await;
        queue.look_at(&pool(&[(9_999, 0, 20)]));
        assert!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0).is_some(), "now they do");
    }

    /// One that was sealed when the base fee had fallen told of a queue that is an hour long.
    #[tokio::test(start_paused = true)]
    async fn one_that_could_not_be_taken_for_an_hour_has_waited_for_nobody() {
        let queue = Queue::new(1_000, MIN);
        let (mut stuck, came) = (pool(&[(1, 0, 9)]), now());
        sleep(Duration::from_secs(3_600)).await;
        queue.look_at(&stuck);
        stuck.set_next(NextHeader { fees: BaseFees { base_fee: 9, gas_base_fee: 1 }, ..NEXT });
        let id = B256::left_padding_from(&1_u64.to_be_bytes());
        queue.sealed(1, std::iter::once(stuck.waits_since(&id, came)));
        queue.certified(1);
        assert_eq!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0), None, "a crowd that comes now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_at_a_queue_that_moves_fast_enough_is_taken() {
        let queue = Queue::new(1_000, MIN);
        assert_eq!(queue.too_long(&pool(&[]), 0), None);
        sleep(Duration::from_millis(400)).await;
        assert_eq!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0), None);
        sleep(Duration::from_millis(200)).await;
        assert!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0).is_some());
        assert_eq!(queue.too_long(&pool(&[(MIN - 1, 0, 20)]), 0), None);
        assert_eq!(queue.too_long(&pool(&[]), 0), None, "empty again");
        assert_eq!(queue.too_long(&pool(&[(9_999, 0, 20)]), 0), None);
        let unlimited = Queue::new(0, MIN);
        advance(Duration::from_secs(100)).await;
        assert_eq!(unlimited.too_long(&pool(&[(9_999, 0, 20)]), 0), None);
    }
}

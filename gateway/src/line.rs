//! Turns at the source. It counts all users of this server as one caller, so what it grants that caller is dealt out here:
//! those who wait come one after the other, however much each of them asks for, and none has more than half of it under way.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use blindfold_rpc::{
    READ_METHODS, RpcError,
    limits::{MAX_READS_PER_ADDRESS, TURN_WAIT_MS},
};
use blindfold_runtime::{Instant, Stop, now, until};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::limits::{PACE_MS, PARALLEL_QUESTIONS};

/// Whose share is used; none where no address is known.
type Caller = Option<IpAddr>;

/// How long a question waits for its turn.
const PATIENCE: Duration = Duration::from_millis(TURN_WAIT_MS);

/// What the source grants, dealt out among callers.
#[derive(Clone)]
pub(crate) struct Lines {
    questions: Arc<Line>,
    /// Of reads at its execution client, which are among them.
    reads: Arc<Line>,
}

/// What a question holds until it is answered.
pub(crate) struct Turns {
    _question: Turn,
    _read: Option<Turn>,
}

impl Lines {
    /// So many questions per second; 0: no limit.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            questions: Line::new(PARALLEL_QUESTIONS, per_second),
            reads: Line::new(MAX_READS_PER_ADDRESS, 0),
        }
    }

    /// The caller's turn, if it comes in time.
    pub(crate) async fn turn(&self, caller: Caller, method: &str) -> Result<Turns, RpcError> {
        let read = match READ_METHODS.contains(&method) {
            true => Some(self.reads.turn(caller).await?),
            false => None,
        };
        Ok(Turns { _question: self.questions.turn(caller).await?, _read: read })
    }

    /// Goes on with those who wait for the pace alone, until it is to stop.
    pub(crate) async fn keep_pace(self, mut stop: Stop) {
        loop {
            tokio::select! {
                () = until(&mut stop) => return,
                () = self.questions.short.notified() => {}
            }
            tokio::time::sleep(Duration::from_millis(PACE_MS)).await;
            self.questions.deal();
        }
    }
}

struct Line {
    at_once: usize,
    /// Of one caller.
    of_caller: usize,
    /// 0: as many as come.
    per_second: f64,
    state: Mutex<State>,
    /// Somebody waits for the pace.
    short: Notify,
}

struct State {
    under_way: usize,
    shares: HashMap<Caller, Share>,
    /// Callers who may have a turn and wait for one, each once, whoever comes next first.
    order: VecDeque<Caller>,
    /// Turns that the pace allows now.
    allowance: f64,
    counted: Instant,
}

#[derive(Default)]
struct Share {
    under_way: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
    /// Whether it stands in the order.
    queued: bool,
}

/// One question at the source; dropping it lets the next one go on.
struct Turn {
    line: Arc<Line>,
    caller: Caller,
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.line.state.lock();
            state.under_way = state.under_way.saturating_sub(1);
            if let Some(share) = state.shares.get_mut(&self.caller) {
                share.under_way = share.under_way.saturating_sub(1);
            }
            state.settle(self.caller, self.line.of_caller);
        }
        self.line.deal();
    }
}

/// Whoever waits; it leaves nothing behind when it goes away.
struct Waiting<'a>(&'a Line, Caller);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if let Some(share) = state.shares.get_mut(&self.1) {
            share.waiting.retain(|waiting| !waiting.is_closed());
        }
        state.settle(self.1, self.0.of_caller);
    }
}

impl Line {
    fn new(at_once: usize, per_second: u32) -> Arc<Self> {
        let per_second = f64::from(per_second);
        let state = State {
            under_way: 0,
            shares: HashMap::new(),
            order: VecDeque::new(),
            allowance: per_second,
            counted: now(),
        };
        let of_caller = at_once.div_ceil(2);
        Arc::new(Self { at_once, of_caller, per_second, state: Mutex::new(state), short: Notify::new() })
    }

    async fn turn(self: &Arc<Self>, caller: Caller) -> Result<Turn, RpcError> {
        let _waiting = Waiting(self, caller);
        let (give, given) = oneshot::channel();
        {
            let mut state = self.state.lock();
            state.shares.entry(caller).or_default().waiting.push_back(give);
            state.settle(caller, self.of_caller);
        }
        self.deal();
        match tokio::time::timeout(PATIENCE, given).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let message =
                    "too much is asked of what stands behind this server, by this address or by all";
                Err(RpcError::busy("busy", message).after(PATIENCE))
            }
        }
    }

    /// Gives those who come next their turns, as far as there is room.
    fn deal(self: &Arc<Self>) {
        while let Some((caller, waiting)) = self.next() {
            // Whoever has gone away meanwhile gives it back at once.
            drop(waiting.send(Turn { line: Arc::clone(self), caller }));
        }
    }

    /// Whoever comes next, counted as under way.
    fn next(&self) -> Option<(Caller, oneshot::Sender<Turn>)> {
        let state = &mut *self.state.lock();
        state.refill(self.per_second);
        while state.under_way < self.at_once {
            let caller = *state.order.front()?;
            let share = state.shares.entry(caller).or_default();
            share.waiting.retain(|waiting| !waiting.is_closed());
            if self.per_second > 0.0 && state.allowance < 1.0 && !share.waiting.is_empty() {
                self.short.notify_one();
                return None;
            }
            share.queued = false;
            let next = share.waiting.pop_front();
            share.under_way += usize::from(next.is_some());
            state.order.pop_front();
            state.settle(caller, self.of_caller);
            if let Some(next) = next {
                state.under_way += 1;
                if self.per_second > 0.0 {
                    state.allowance -= 1.0;
                }
                return Some((caller, next));
            }
        }
        None
    }
}

impl State {
    /// Queues a caller who waits and may have a turn, and forgets one who has nothing.
    fn settle(&mut self, caller: Caller, of_caller: usize) {
        let Some(share) = self.shares.get_mut(&caller) else { return };
        if share.waiting.is_empty() && share.under_way == 0 {
            if share.queued {
                self.order.retain(|queued| *queued != caller);
            }
            self.shares.remove(&caller);
        } else if !share.queued && !share.waiting.is_empty() && share.under_way < of_caller {
            share.queued = true;
            self.order.push_back(caller);
        }
    }

    /// A second's worth at most: the source lets several be used at once.
    fn refill(&mut self, per_second: f64) {
        let now = now();
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.allowance = (self.allowance + passed * per_second).min(per_second.max(1.0));
        self.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    fn caller(last: u8) -> Caller {
        Some(Ipv4Addr::new(192, 0, 2, last).into())
    }

    #[tokio::test]
    async fn whoever_asks_for_little_waits_for_no_crowd() {
        let line = Line::new(4, 0);
        let (much, little) = (caller(1), caller(2));
        let mut crowd: Vec<_> = (0..50).map(|_| Box::pin(line.turn(much))).collect();
        let mut held: Vec<_> = crowd.iter_mut().filter_map(|turn| turn.now_or_never()).collect();
        assert_eq!(held.len(), 2, "half of what there is");
        let first = line.turn(little).now_or_never().expect("there is room for others");
        let second = line.turn(little).now_or_never().expect("for as much");
        let mut third = Box::pin(line.turn(caller(3)));
        assert!((&mut third).now_or_never().is_none(), "all places are taken");
        // Each place that becomes free is the next one's.
        drop(held.pop());
        let third = third.now_or_never().expect("it is its turn");
        assert!(crowd.iter_mut().skip(2).all(|turn| turn.now_or_never().is_none()));
        drop((first, second, third));
        let more: Vec<_> = crowd.iter_mut().skip(2).filter_map(|turn| turn.now_or_never()).collect();
        assert_eq!(more.len(), 1, "never more than half");
        drop((held, more, crowd));
        let state = line.state.lock();
        assert_eq!((state.under_way, state.shares.len(), state.order.len()), (0, 0, 0), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pace_is_dealt_out_as_well() {
        let line = Line::new(100, 10);
        for _ in 0..10 {
            line.turn(caller(1)).now_or_never().expect("a second's worth").expect("a turn");
        }
        let mut crowd: Vec<_> = (0..20).map(|_| Box::pin(line.turn(caller(1)))).collect();
        assert!(crowd.iter_mut().all(|turn| turn.now_or_never().is_none()));
        let mut other = Box::pin(line.turn(caller(2)));
        assert!((&mut other).now_or_never().is_none());
        line.short.notified().now_or_never().expect("somebody is to look again");
        advance(Duration::from_millis(201)).await;
        line.deal();
        assert!((&mut other).now_or_never().is_some_and(|turn| turn.is_ok()), "the second one is its");
        assert_eq!(crowd.iter_mut().filter_map(|turn| turn.now_or_never()).count(), 1);
        // Nobody waits for ever, and whoever gave up has no part in it any more.
        advance(PATIENCE).await;
        assert!(crowd.pop().expect("one").await.is_err());
        drop(crowd);
        assert!(line.state.lock().shares.is_empty());
    }
}

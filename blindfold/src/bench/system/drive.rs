//! An open-loop load: a call leaves at each tick, whatever became of those before it.

use std::{collections::VecDeque, sync::Arc};

use blindfold_rpc::{Encoded, HttpClient, ReceivedError, SequencerApiClient};
use blindfold_runtime::now;
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Duration, MissedTickBehavior, interval},
};

use super::{super::observe::Observed, supply::Made};

/// What says that an earlier try was taken, whose answer was lost.
const TAKEN_BEFORE: &str = "already_known";

/// Envelopes that wait, by account, and the accounts that have no call under way. An account's next transaction leaves once
/// the one before it is admitted, for their nonces have an order.
struct Waiting {
    queues: Vec<VecDeque<Made>>,
    idle: VecDeque<usize>,
}

impl Waiting {
    fn next(&mut self) -> Option<(usize, Made)> {
        loop {
            let account = self.idle.pop_front()?;
            if let Some(made) = self.queues.get_mut(account).and_then(VecDeque::pop_front) {
                return Some((account, made));
            }
        }
    }

    /// The account may send again; first what was refused, if something was.
    fn answered(&mut self, account: usize, refused: Option<Made>) {
        if let (Some(made), Some(queue)) = (refused, self.queues.get_mut(account)) {
            queue.push_front(made);
        }
        self.idle.push_back(account);
    }
}

/// Sends for so long at that rate, each account by the client whose turn it is. An envelope that is refused is offered again
/// when its account's turn comes, however soon that is: nobody here obeys the time to come back that he is told.
/// Gives how many ticks found no account that could send.
pub(super) async fn offer(
    fronts: &[HttpClient],
    queues: Vec<VecDeque<Made>>,
    (rate, seconds): (f64, u64),
    observed: &Arc<Mutex<Observed>>,
) -> usize {
    let idle = (0..queues.len()).collect();
    let waiting = Arc::new(Mutex::new(Waiting { queues, idle }));
    let mut tick = interval(Duration::from_secs_f64(1.0 / rate));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut calls, mut skipped) = (JoinSet::new(), 0);
    for _ in 0..(rate * seconds as f64).round() as usize {
        tick.tick().await;
        while calls.try_join_next().is_some() {}
        let Some((account, made)) = waiting.lock().next() else {
            skipped += 1;
            continue;
        };
        let Some(front) = fronts.get(account % fronts.len().max(1)).cloned() else { return skipped };
        observed.lock().offers(made.id);
        let (observed, waiting) = (observed.clone(), waiting.clone());
        calls.spawn(async move {
            let answer = front.send_envelope(Encoded::from_bytes(made.bytes.clone()), None).await;
            let refused = match answer.map_err(ReceivedError::from) {
                Ok(_) => {
                    observed.lock().admitted.insert(made.id, now());
                    None
                }
                Err(error) if error.reason() == TAKEN_BEFORE => {
                    observed.lock().admitted.entry(made.id).or_insert_with(now);
                    None
                }
                Err(error) => {
                    observed.lock().refuses(&error);
                    Some(made)
                }
            };
            waiting.lock().answered(account, refused);
        });
    }
    while calls.join_next().await.is_some() {}
    skipped
}

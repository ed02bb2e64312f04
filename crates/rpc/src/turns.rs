//! Turns: no caller has more calls under way than his own, so that whoever asks for little waits for himself only.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    Pace,
    limits::{MAX_WAITING_CALLS_PER_ADDRESS, TURN_WAIT_MS},
    peers::Account,
};

/// Counts what each account has under way; further calls of the same account wait for those before them.
#[derive(Debug)]
pub(crate) struct Turns {
    of_account: usize,
    accounts: Mutex<HashMap<Account, Line>>,
}

/// What an account has under way, and how fast that ends.
#[derive(Clone, Debug)]
struct Line {
    places: Arc<Semaphore>,
    ended: Arc<Pace>,
}

/// One call; dropping it lets the next of its account go on.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    account: Account,
    line: Line,
    place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// So many at a time of each account.
    pub(crate) fn new(of_account: usize) -> Arc<Self> {
        Arc::new(Self { of_account, accounts: Mutex::default() })
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Account, Line>> {
        // Nothing panics while the lock is held.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account's turn, if it comes in time and not too many wait already; else when to come back.
    pub(crate) async fn take(
        self: &Arc<Self>,
        account: Account,
        patience: Duration,
    ) -> Result<Turn, Duration> {
        let turn = {
            let mut accounts = self.accounts();
            let line = accounts.entry(account).or_insert_with(|| Line {
                places: Arc::new(Semaphore::new(self.of_account)),
                ended: Arc::default(),
            });
            // The table holds it once, and twice every call: itself, and its place or its wait for one.
            if Arc::strong_count(&line.places) > 2 * (self.of_account + MAX_WAITING_CALLS_PER_ADDRESS) {
                return Err(line.time_to_come_back());
            }
            Turn { turns: Arc::clone(self), account, line: line.clone(), place: None }
        };
        turn.within(patience).await
    }
}

impl Line {
    /// Until all that wait now have had their turn.
    fn time_to_come_back(&self) -> Duration {
        // One of each call is its wait, or its place.
        let calls = Arc::strong_count(&self.places) / 2;
        self.ended.time_for(calls as u64).unwrap_or(TURN_WAIT)
    }
}

/// Where none ended lately: no call waits longer for its turn.
const TURN_WAIT: Duration = Duration::from_millis(TURN_WAIT_MS);

impl Turn {
    async fn within(mut self, patience: Duration) -> Result<Self, Duration> {
        let place = Arc::clone(&self.line.places).acquire_owned();
        match tokio::time::timeout(patience, place).await {
            Ok(Ok(place)) => self.place = Some(place),
            _ => return Err(self.line.time_to_come_back()),
        }
        Ok(self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut accounts = self.turns.accounts();
        if self.place.take().is_some() {
            self.line.ended.note(1);
        }
        // Nobody else waits or is under way: the table's and ours are the last.
        if Arc::strong_count(&self.line.places) == 2 {
            accounts.remove(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::future::join_all;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn account(last: u8) -> Account {
        Account::of(Ipv4Addr::new(192, 0, 2, last).into())
    }

    #[tokio::test]
    async fn an_account_waits_for_its_own_calls_only() {
        let turns = Turns::new(3);
        let mut under_way = Vec::new();
        for _ in 0..3 {
            under_way.push(turns.take(account(1), PATIENCE).await.expect("a place"));
        }
        assert!(turns.take(account(1), Duration::ZERO).await.is_err(), "it waits, and not for ever");
        let other = turns.take(account(2), PATIENCE).await.expect("another account");
        let (next, ()) = tokio::join!(turns.take(account(1), PATIENCE), async { drop(under_way.pop()) });
        assert!(next.is_ok());
        drop((under_way, next, other));
        assert!(turns.accounts().is_empty());
    }

    #[tokio::test]
    async fn not_everybody_may_wait() {
        let turns = Turns::new(1);
        let calls = (0..2 * MAX_WAITING_CALLS_PER_ADDRESS).map(|_| async {
            let turn = turns.take(account(1), PATIENCE).await;
            tokio::task::yield_now().await;
            turn.is_ok()
        });
        let served = join_all(calls).await.into_iter().filter(|served| *served).count();
        assert_eq!(served, MAX_WAITING_CALLS_PER_ADDRESS + 1);
        assert!(turns.accounts().is_empty());
    }
}

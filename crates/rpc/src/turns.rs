//! Turns: no caller has more calls under way than his own, so that whoever asks for little waits for himself only.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{limits::MAX_WAITING_CALLS_PER_ADDRESS, peers::Account};

/// Counts what each account has under way; further calls of the same account wait for those before them.
#[derive(Debug)]
pub(crate) struct Turns {
    of_account: usize,
    accounts: Mutex<HashMap<Account, Arc<Semaphore>>>,
}

/// One call; dropping it lets the next of its account go on.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    account: Account,
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// So many at a time of each account.
    pub(crate) fn new(of_account: usize) -> Arc<Self> {
        Arc::new(Self { of_account, accounts: Mutex::default() })
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Account, Arc<Semaphore>>> {
        // Nothing panics while the lock is held.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account's turn, if it comes in time and not too many wait already.
    pub(crate) async fn take(self: &Arc<Self>, account: Account, patience: Duration) -> Option<Turn> {
        let turn = {
            let mut accounts = self.accounts();
            let places = accounts.entry(account).or_insert_with(|| Arc::new(Semaphore::new(self.of_account)));
            // The table holds it once, and twice every call: itself, and its place or its wait for one.
            if Arc::strong_count(places) > 2 * (self.of_account + MAX_WAITING_CALLS_PER_ADDRESS) {
                return None;
            }
            Turn { turns: Arc::clone(self), account, places: Arc::clone(places), place: None }
        };
        turn.within(patience).await
    }
}

impl Turn {
    async fn within(mut self, patience: Duration) -> Option<Self> {
        let place = Arc::clone(&self.places).acquire_owned();
        self.place = Some(tokio::time::timeout(patience, place).await.ok()?.ok()?);
        Some(self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut accounts = self.turns.accounts();
        self.place.take();
        // Nobody else waits or is under way: the table's and ours are the last.
        if Arc::strong_count(&self.places) == 2 {
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
        assert!(turns.take(account(1), Duration::ZERO).await.is_none(), "it waits, and not for ever");
        let other = turns.take(account(2), PATIENCE).await.expect("another account");
        let (next, ()) = tokio::join!(turns.take(account(1), PATIENCE), async { drop(under_way.pop()) });
        assert!(next.is_some());
        drop((under_way, next, other));
        assert!(turns.accounts().is_empty());
    }

    #[tokio::test]
    async fn not_everybody_may_wait() {
        let turns = Turns::new(1);
        let calls = (0..2 * MAX_WAITING_CALLS_PER_ADDRESS).map(|_| async {
            let turn = turns.take(account(1), PATIENCE).await;
            tokio::task::yield_now().await;
            turn.is_some()
        });
        let served = join_all(calls).await.into_iter().filter(|served| *served).count();
        assert_eq!(served, MAX_WAITING_CALLS_PER_ADDRESS + 1);
        assert!(turns.accounts().is_empty());
    }
}

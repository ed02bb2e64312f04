//! Turns at the execution client: no caller has more than his own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{limits::MAX_READS_PER_ADDRESS, peers::Account};

/// Counts the reads that each account has under way at the execution client; further ones of the same account wait for
/// those before them.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Account, Arc<Semaphore>>>);

/// One read; dropping it lets the next of its account go on.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    account: Account,
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    fn accounts(&self) -> MutexGuard<'_, HashMap<Account, Arc<Semaphore>>> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account's turn, if it comes in time.
    pub(crate) async fn take(self: &Arc<Self>, account: Account, patience: Duration) -> Option<Turn> {
        let places = Arc::clone(
            self.accounts().entry(account).or_insert_with(|| Arc::new(Semaphore::new(MAX_READS_PER_ADDRESS))),
        );
        // From here on dropped in order, also when the caller hangs up.
        let mut turn = Turn { turns: Arc::clone(self), account, places, place: None };
        let place = Arc::clone(&turn.places).acquire_owned();
        turn.place = Some(tokio::time::timeout(patience, place).await.ok()?.ok()?);
        Some(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut accounts = self.turns.accounts();
        self.place.take();
        // Nobody else waits or reads: the table's and ours are the last.
        if Arc::strong_count(&self.places) == 2 {
            accounts.remove(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn account(last: u8) -> Account {
        Account::of(Ipv4Addr::new(192, 0, 2, last).into())
    }

    #[tokio::test]
    async fn an_account_waits_for_its_own_reads_only() {
        let turns = Arc::new(Turns::default());
        let (mut under_way, patience) = (Vec::new(), Duration::from_secs(60));
        for _ in 0..MAX_READS_PER_ADDRESS {
            under_way.push(turns.take(account(1), patience).await.expect("a place"));
        }
        assert!(turns.take(account(1), Duration::ZERO).await.is_none(), "it waits, and not for ever");
        let other = turns.take(account(2), patience).await.expect("another account");
        let (next, ()) = tokio::join!(turns.take(account(1), patience), async { drop(under_way.pop()) });
        assert!(next.is_some());
        drop((under_way, next, other));
        assert!(turns.accounts().is_empty());
    }
}

//! A disk in memory that outlives its stores, with the same SQL and no thread: for simulations.
//!
//! Every write is a transaction of its own that is committed at once, between two moments in which whoever asked for it may
//! be ended. So an end at any time leaves what was committed last, as a kill does, whether or not the caller has heard of it.

use std::{
    io::Cursor,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rusqlite::{Connection, MAIN_DB};
use tokio::{sync::watch, task::yield_now, time::sleep};

use super::{Durability, MEMORY, prepare, schema};
use crate::{StoreError, sql::session::Session};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    connection: Mutex<Connection>,
    /// The store that has the disk: an earlier one writes no more.
    owner: AtomicU64,
    commits: AtomicU64,
    condition: Mutex<Condition>,
}

/// How a disk in memory behaves: how long it takes, and what it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// How long a write waits before it is committed.
    pub before_commit: Duration,
    /// How long it takes until its caller hears of it.
    pub after_commit: Duration,
    /// What it answers to writes, if not what they come to.
    pub fault: Option<DiskFault>,
}

/// Why a disk does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// It is full, until it is emptied.
    Full,
    /// An input/output error: the store that meets it writes no more.
    Broken,
}

impl Disk {
    /// An empty disk with the schema on it.
    ///
    /// # Errors
    /// [`StoreError::Open`].
    pub fn new() -> Result<Self, StoreError> {
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        prepare(&connection, Durability::Memory).map_err(failed)?;
        schema::migrate(&mut connection)?;
        Ok(Self(Arc::new(Shared {
            connection: Mutex::new(connection),
            owner: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            condition: Mutex::default(),
        })))
    }

    /// What is on it now.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn image(&self) -> Result<Vec<u8>, StoreError> {
        Ok(self.0.connection.lock().serialize(MAIN_DB)?.to_vec())
    }

    /// Replaces what is on it by an earlier image. For when no store has it.
    ///
    /// # Errors
    /// For what is no image; what is on it stays then.
    pub fn restore(&self, image: &[u8]) -> Result<(), StoreError> {
        let mut connection = Connection::open_in_memory().map_err(failed)?;
        connection.deserialize_read_exact(MAIN_DB, Cursor::new(image), image.len(), false).map_err(failed)?;
        prepare(&connection, Durability::Memory).map_err(failed)?;
        schema::migrate(&mut connection)?;
        *self.0.connection.lock() = connection;
        Ok(())
    }

    /// From now on it does so.
    pub fn set_condition(&self, condition: Condition) {
        *self.0.condition.lock() = condition;
    }

    /// How many writes have been committed.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::SeqCst)
    }
}

fn failed(error: rusqlite::Error) -> StoreError {
    super::failed(MEMORY, &error)
}

/// A store's side of a disk in memory.
#[derive(Clone, Debug)]
pub(crate) struct Inline {
    disk: Disk,
    owner: u64,
    stopped: watch::Sender<Option<String>>,
}

impl Inline {
    /// Takes the disk from whoever had it.
    pub(crate) fn take(disk: &Disk) -> Self {
        let owner = disk.0.owner.fetch_add(1, Ordering::SeqCst) + 1;
        Self { disk: disk.clone(), owner, stopped: watch::Sender::new(None) }
    }

    pub(crate) fn stopped(&self) -> watch::Receiver<Option<String>> {
        self.stopped.subscribe()
    }

    pub(crate) async fn write<T>(
        &self,
        operation: impl FnOnce(&dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let condition = *self.disk.0.condition.lock();
        pause(condition.before_commit).await;
        let outcome = self.commit(condition.fault, operation);
        pause(condition.after_commit).await;
        outcome
    }

    pub(crate) async fn read<T>(
        &self,
        query: impl FnOnce(&dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        yield_now().await;
        self.owned()?;
        query(&*self.disk.0.connection.lock())
    }

    fn owned(&self) -> Result<(), StoreError> {
        match self.disk.0.owner.load(Ordering::SeqCst) == self.owner {
            true => Ok(()),
            false => Err(StoreError::Closed),
        }
    }

    fn commit<T>(
        &self,
        fault: Option<DiskFault>,
        operation: impl FnOnce(&dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.owned()?;
        if let Some(reason) = self.stopped.borrow().clone() {
            return Err(StoreError::Stopped(reason));
        }
        match fault {
            None => {}
            Some(DiskFault::Full) => return Err(StoreError::Failed("database or disk is full".to_owned())),
            Some(DiskFault::Broken) => return Err(self.stop("disk I/O error".to_owned())),
        }
        let mut connection = self.disk.0.connection.lock();
        let transaction = connection.transaction()?;
        match operation(&*transaction) {
            Ok(value) => {
                transaction.commit()?;
                self.disk.0.commits.fetch_add(1, Ordering::SeqCst);
                Ok(value)
            }
            Err(StoreError::Stopped(reason)) => Err(self.stop(reason)),
            // Dropping the transaction takes it back.
            Err(error) => Err(error),
        }
    }

    fn stop(&self, reason: String) -> StoreError {
        self.stopped.send_replace(Some(reason.clone()));
        StoreError::Stopped(reason)
    }
}

/// A moment in which the caller may be ended.
async fn pause(duration: Duration) {
    if duration.is_zero() {
        yield_now().await;
    } else {
        sleep(duration).await;
    }
}

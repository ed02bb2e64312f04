//! The one thread that writes.
//!
//! Writes that are queued at the same time share a transaction and so an fsync. One that is refused leaves the others
//! untouched: each behind the first that stays runs in a savepoint of its own; before that the transaction itself is one,
//! and costs no copies of pages. Nobody hears of success before the commit.

use std::thread;

use blindfold_runtime::{Instant, now};
use blindfold_telemetry::Metrics;
use tokio::sync::{mpsc, oneshot, watch};

use super::session::{Connection, Session};
use crate::{StoreError, StoreMetrics, metrics::Counting, sqlite::Inline};

/// Most writes that wait for the writer; further callers wait for a place.
pub const WRITE_QUEUE_LIMIT: usize = 4_096;
/// Most writes that share one transaction: bounds how long the first of them waits.
pub const MAX_GROUP_WRITES: usize = 256;
/// Tells the caller its outcome once it is known whether the transaction stands.
pub(crate) type Finish = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// A queued write. Given a connection it runs and says what is to become of what it wrote; without one it does nothing.
/// The finish then answers its caller.
pub(crate) type Job = Box<dyn FnOnce(Option<&dyn Session>) -> (Written, Finish) + Send>;

/// What is to become of what a job wrote.
pub(crate) enum Written {
    Keep,
    Undo,
    /// The disk failed under it, or the store is another's: nothing is to be written any more.
    Stop(StoreError),
}

/// The callers' side of the writer.
#[derive(Clone, Debug)]
pub(crate) enum Writer {
    Thread {
        jobs: mpsc::Sender<Job>,
        /// Why nothing is written any more. Its sender is gone when the thread has closed everything.
        stopped: watch::Receiver<Option<StoreError>>,
        /// When the last transaction that stands began.
        renewed: watch::Receiver<Instant>,
        counting: Counting,
    },
    Inline(Inline),
}

/// Says why nothing is written any more, also when the thread ends in the middle of something.
struct Stop(watch::Sender<Option<StoreError>>);

impl Drop for Stop {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.send_replace(Some(StoreError::Stopped("its writer panicked".to_owned())));
        }
    }
}

impl Writer {
    /// Starts the thread, which ends when the last clone is gone and everything queued is written. The connection is
    /// dropped with it.
    pub(crate) fn start(mut connection: Box<dyn Connection>) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(WRITE_QUEUE_LIMIT);
        let (stop, stopped) = watch::channel(None);
        let (renew, renewed) = watch::channel(now());
        let counting = Counting::default();
        let counts = counting.clone();
        thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let stop = Stop(stop);
            write_all(&mut *connection, queue, &stop.0, &renew, &counts);
            drop(connection);
            drop(stop);
        })?;
        Ok(Self::Thread { jobs, stopped, renewed, counting })
    }

    /// Counts its transactions there from now on. Gives where, if it is the first to count there.
    pub(crate) fn count_in(&self, metrics: &Metrics) -> Option<StoreMetrics> {
        let Self::Thread { counting, .. } = self else { return None };
        let metrics = StoreMetrics::new(metrics).ok()?;
        counting.begin(metrics.clone());
        Some(metrics)
    }

    /// Gives this clone up and waits for the end of the thread.
    pub(crate) async fn close(self) {
        let Self::Thread { jobs, mut stopped, .. } = self else { return };
        drop(jobs);
        // What is awaited is the loss of the sender.
        while stopped.changed().await.is_ok() {}
    }

    /// [`Store::stopped`](crate::Store::stopped).
    pub(crate) fn stopped(&self) -> impl Future<Output = String> + Send + 'static {
        let stopped = match self {
            Self::Thread { stopped, .. } => Ok(stopped.clone()),
            Self::Inline(inline) => Err(inline.stopped()),
        };
        async move {
            let reason = match stopped {
                Ok(mut stopped) => stopped.wait_for(Option::is_some).await.ok().and_then(|it| it.clone()),
                Err(mut stopped) => {
                    let reason = stopped.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
                    reason.map(StoreError::Stopped)
                }
            };
            match reason {
                Some(reason) => reason.to_string(),
                // Closed in good order.
                None => std::future::pending().await,
            }
        }
    }

    /// When the last transaction that stands began.
    pub(crate) fn renewed(&self) -> Instant {
        match self {
            Self::Thread { renewed, .. } => *renewed.borrow(),
            Self::Inline(_) => now(),
        }
    }

    /// Whether another process has taken the store, as far as this one was told.
    pub(crate) fn is_fenced(&self) -> bool {
        match self {
            Self::Thread { stopped, .. } => *stopped.borrow() == Some(StoreError::Fenced),
            Self::Inline(_) => false,
        }
    }

    /// Queues a write and waits until it is committed.
    pub(crate) async fn write<T, F>(&self, operation: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Session) -> Result<T, StoreError> + Send + 'static,
    {
        let jobs = match self {
            Self::Thread { jobs, .. } => jobs,
            Self::Inline(inline) => return inline.write(operation).await,
        };
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |session| {
            let outcome = session.map_or(Err(StoreError::Closed), operation);
            let written = match &outcome {
                Ok(_) => Written::Keep,
                Err(failure @ (StoreError::Stopped(_) | StoreError::Fenced)) => {
                    Written::Stop(failure.clone())
                }
                Err(_) => Written::Undo,
            };
            let finish: Finish = Box::new(move |committed| {
                // A caller that went away does not want to know.
                let _ = answer.send(match (outcome, committed) {
                    (Ok(_) | Err(StoreError::Closed), Err(failure)) => Err(failure),
                    (outcome, _) => outcome,
                });
            });
            (written, finish)
        });
        jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

fn write_all(
    connection: &mut dyn Connection,
    mut queue: mpsc::Receiver<Job>,
    stop: &watch::Sender<Option<StoreError>>,
    renew: &watch::Sender<Instant>,
    counting: &Counting,
) {
    // After an input/output error it is unknown what the disk holds, and a second attempt can seem to succeed
    // without having written anything. So the first such error is the last write.
    let mut stopped: Option<StoreError> = None;
    while let Some(first) = queue.blocking_recv() {
        let (mut finishes, begun) = (Vec::new(), now());
        let outcome = match &stopped {
            Some(reason) => {
                first(None).1(Err(reason.clone()));
                continue;
            }
            None => write_group(connection, first, &mut queue, &mut finishes),
        };
        if outcome.is_ok() {
            renew.send_replace(begun);
        }
        if let Some(metrics) = counting.get() {
            metrics.queue.set(queue.len() as u64);
            metrics.group_writes.observe(finishes.len() as f64);
            match &outcome {
                Ok(()) => metrics.commit_seconds.observe_duration(begun.elapsed()),
                Err(_) => metrics.failed.increment(),
            }
            metrics.log_bytes.set(connection.log_bytes());
        }
        if let Err(error) = &outcome {
            connection.roll_back();
            tracing::error!(%error, "nothing of this group of writes is stored");
            if matches!(error, StoreError::Stopped(_) | StoreError::Fenced) {
                stopped = Some(error.clone());
                stop.send_replace(stopped.clone());
            }
        }
        for finish in finishes {
            finish(outcome.clone());
        }
        if stopped.is_none() {
            connection.after_group();
        }
    }
}

fn write_group(
    connection: &mut dyn Connection,
    first: Job,
    queue: &mut mpsc::Receiver<Job>,
    finishes: &mut Vec<Finish>,
) -> Result<(), StoreError> {
    let mut next = Some(first);
    if let Err(error) = connection.begin() {
        // Its caller is told with the group.
        finishes.extend(next.take().map(|job| job(None).1));
        return Err(error);
    }
    let mut keeps_others = false;
    while let Some(job) = next.take() {
        let began = if keeps_others { connection.begin_write() } else { Ok(()) };
        let (written, finish) = job(began.is_ok().then_some(connection.session()));
        finishes.push(finish);
        began?;
        match (written, keeps_others) {
            (Written::Keep, true) => connection.end_write(true)?,
            (Written::Keep, false) => {
                connection.stands()?;
                keeps_others = true;
            }
            (Written::Undo, true) => connection.end_write(false)?,
            (Written::Undo, false) => {
                connection.roll_back();
                connection.begin()?;
            }
            (Written::Stop(failure), _) => return Err(failure),
        }
        if finishes.len() < MAX_GROUP_WRITES {
            next = queue.try_recv().ok();
        }
    }
    connection.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqlStore, Store};

    /// Every write was answered with [`StoreError::Closed`] from then on, and the role went on for minutes.
    #[tokio::test]
    async fn whoever_asks_is_told_of_a_writer_that_panicked() {
        let store = SqlStore::in_memory().expect("memory");
        let stopped = store.stopped();
        let written: Result<(), StoreError> = store.write(|_| panic!("a mistake")).await;
        assert_eq!(written, Err(StoreError::Closed));
        assert!(stopped.await.contains("panicked"));
        assert!(store.stopped().await.contains("panicked"), "later, too");
        store.close().await;
    }
}

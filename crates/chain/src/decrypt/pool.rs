//! The heavy work, in order of number, on a bounded number of workers.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use blindfold_runtime::{Stop, Tasks, blocking, until};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::DecryptError;

type Job = Box<dyn FnOnce() + Send>;

/// Pre-decryption, and decryption at once. Jobs wait by number: what is sealed first is wanted first. The queue holds as
/// many jobs as batches are in work, which the caller bounds. Each job has all threads of the backend, so that a second
/// one at the same time only delays the first.
pub struct Pool {
    jobs: Mutex<BTreeMap<u64, VecDeque<Job>>>,
    available: Semaphore,
}

impl Pool {
    /// Starts `workers` workers in `tasks`.
    pub fn start(workers: usize, tasks: &Tasks) -> Arc<Self> {
        let pool = Arc::new(Self { jobs: Mutex::default(), available: Semaphore::new(0) });
        for _ in 0..workers {
            tasks.spawn("pool", Arc::clone(&pool).work(tasks.stop()));
        }
        pool
    }

    /// Runs `work` for the batch `number` on the blocking pool, when a worker is free. Dropping the future takes the job
    /// back, unless it runs already.
    pub async fn run<T: Send + 'static>(
        &self,
        number: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, DecryptError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(move || {
            if !reply.is_closed() {
                // Nobody waits any more when the batch gave way to another: then nothing is lost.
                let _ = reply.send(work());
            }
        });
        self.jobs.lock().entry(number).or_default().push_back(job);
        self.available.add_permits(1);
        answer.await.map_err(|_| DecryptError::Stopped)
    }

    async fn work(self: Arc<Self>, mut stop: Stop) {
        loop {
            tokio::select! {
                () = until(&mut stop) => return,
                permit = self.available.acquire() => match permit {
                    Ok(permit) => permit.forget(),
                    Err(_) => return,
                },
            }
            let Some(job) = self.first() else { continue };
            if blocking(job).await.is_err() {
                return;
            }
        }
    }

    fn first(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        let mut entry = jobs.first_entry()?;
        let job = entry.get_mut().pop_front();
        if entry.get().is_empty() {
            entry.remove();
        }
        job
    }
}

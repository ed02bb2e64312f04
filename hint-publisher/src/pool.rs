//! Pre-decryption in order of number, on a bounded number of workers.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use blindfold_bte::{Backend, BatchError, Parameters, PreDecrypted};
use blindfold_telemetry::Histogram;
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
};

use crate::{BatchView, WorkFault};

/// The pre-decrypted sub-batches of a batch.
pub(crate) type Predecrypted = Arc<Vec<PreDecrypted>>;

struct Job {
    view: Arc<BatchView>,
    parameters: Arc<Parameters>,
    reply: oneshot::Sender<Result<Predecrypted, BatchError>>,
}

/// Jobs wait by number: what is sealed first is wanted first. The queue holds as many jobs as batches are in work,
/// which the caller bounds.
pub(crate) struct Pool {
    jobs: Mutex<BTreeMap<u64, VecDeque<Job>>>,
    available: Semaphore,
}

impl Pool {
    /// Starts `workers` workers in `tasks`.
    pub(crate) fn start(
        backend: &Arc<dyn Backend>,
        workers: usize,
        seconds: &Histogram,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Self> {
        let pool = Arc::new(Self { jobs: Mutex::default(), available: Semaphore::new(0) });
        for _ in 0..workers {
            tasks.spawn(Arc::clone(&pool).work(Arc::clone(backend), seconds.clone()));
        }
        pool
    }

    /// Pre-decrypts all sub-batches of a batch. Dropping the future takes the job back, unless it runs already.
    pub(crate) async fn predecrypt(
        &self,
        view: Arc<BatchView>,
        parameters: Arc<Parameters>,
    ) -> Result<Predecrypted, WorkFault> {
        let (reply, answer) = oneshot::channel();
        let number = view.number;
        self.jobs.lock().entry(number).or_default().push_back(Job { view, parameters, reply });
        self.available.add_permits(1);
        match answer.await {
            Ok(result) => result.map_err(WorkFault::Batch),
            Err(_) => Err(WorkFault::Stopped),
        }
    }

    async fn work(self: Arc<Self>, backend: Arc<dyn Backend>, seconds: Histogram) {
        loop {
            match self.available.acquire().await {
                Ok(permit) => permit.forget(),
                Err(_) => return,
            }
            let Some(job) = self.first() else { continue };
            if job.reply.is_closed() {
                continue;
            }
            let (backend, seconds) = (Arc::clone(&backend), seconds.clone());
            let Job { view, parameters, reply } = job;
            let done = tokio::task::spawn_blocking(move || {
                let started = Instant::now();
                let result = (0..view.sub_batches())
                    .map(|sub_batch| backend.predecrypt(&parameters, &view.points(sub_batch)))
                    .collect::<Result<Vec<_>, _>>();
                seconds.observe_duration(started.elapsed());
                result.map(Arc::new)
            })
            .await;
            if let Ok(result) = done {
                // Nobody waits any more when the batch gave way to another: then nothing is lost.
                let _ = reply.send(result);
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

//! Verification of fee signatures and proofs in small groups: one multi-scalar multiplication serves a whole group,
//! on a bounded number of blocking threads. What sequencer and gateway both do with an envelope that comes in.

use std::sync::Arc;
use std::time::Duration;

use blindfold_bte::on_this_thread;
use blindfold_protocol::validity::{CheckedEnvelope, check_proofs, check_static_all};
use blindfold_protocol::{ChainConfig, EnvelopeError, Epoch};
use blindfold_rpc::Pace;
use blindfold_runtime::{Cancelled, Spawner, blocking, now, rng, until};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout_at;

/// With fewer, a group costs as much as each by itself.
const WORTH_A_WAIT: f64 = 4.0;

/// How groups are formed, and how much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifierLimits {
    /// Envelopes of one group at most.
    pub group_items: usize,
    /// How long the first envelope of a group waits for others, where others come: it does not wait where fewer than four do
    /// in that time.
    pub group_wait: Duration,
    /// Envelopes that wait for a group at most.
    pub queue_items: usize,
    /// Groups that are verified at the same time at most.
    pub threads: usize,
}

/// Why an envelope was not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifierError {
    /// As many wait as may.
    #[error("too many envelopes wait for verification")]
    Full,
    /// The role is stopping.
    #[error("shutting down")]
    Stopped,
}

/// Is told of each group's size.
type Watch = Arc<dyn Fn(usize) + Send + Sync>;

/// A valid envelope, or the first rule it breaks.
type Verified = Result<CheckedEnvelope, EnvelopeError>;

struct Job {
    bytes: Arc<[u8]>,
    epoch: Arc<Epoch>,
    number: u64,
    answer: oneshot::Sender<Verified>,
}

/// The queue in front of the verifying threads.
#[derive(Clone)]
pub struct Verifier {
    queue: mpsc::Sender<Job>,
    verified: Arc<Pace>,
}

impl Verifier {
    /// Starts the task that forms the groups.
    /// `watch` is told how many envelopes each group has.
    pub fn start(
        chain: Arc<ChainConfig>,
        limits: VerifierLimits,
        watch: impl Fn(usize) + Send + Sync + 'static,
        spawner: &Spawner,
    ) -> Self {
        let (queue, jobs) = mpsc::channel(limits.queue_items);
        let verified = Arc::new(Pace::new());
        let work = form_groups(chain, limits, Arc::new(watch), jobs, Arc::clone(&verified), spawner.clone());
        let mut stop = spawner.stop();
        spawner.spawn("verifier", async move {
            tokio::select! {
                () = work => {}
                () = until(&mut stop) => {}
            }
        });
        Self { queue, verified }
    }

    /// How long it takes until those that wait now are verified, at the pace of the last seconds.
    pub fn time_to_come_back(&self) -> Option<Duration> {
        let waiting = self.queue.max_capacity() - self.queue.capacity();
        self.verified.time_for(waiting as u64)
    }

    /// Checks one envelope of `epoch` for batch `number`: everything that does not depend on the fee ledger.
    ///
    /// # Errors
    /// [`VerifierError`]: nothing was checked. The fault of an envelope that was is the inner result.
    pub async fn verify(
        &self,
        bytes: Arc<[u8]>,
        epoch: Arc<Epoch>,
        number: u64,
    ) -> Result<Verified, VerifierError> {
        let (answer, checked) = oneshot::channel();
        self.queue.try_send(Job { bytes, epoch, number, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => VerifierError::Full,
            mpsc::error::TrySendError::Closed(_) => VerifierError::Stopped,
        })?;
        checked.await.map_err(|_| VerifierError::Stopped)
    }
}

async fn form_groups(
    chain: Arc<ChainConfig>,
    limits: VerifierLimits,
    watch: Watch,
    mut jobs: mpsc::Receiver<Job>,
    verified: Arc<Pace>,
    spawner: Spawner,
) {
    let threads = Arc::new(Semaphore::new(limits.threads));
    while let Some(first) = jobs.recv().await {
        let mut group = Vec::with_capacity(limits.group_items);
        group.push(first);
        let come = verified.per_second() * limits.group_wait.as_secs_f64();
        let wait = if come < WORTH_A_WAIT { Duration::ZERO } else { limits.group_wait };
        let deadline = now() + wait;
        while group.len() < limits.group_items {
            match timeout_at(deadline, jobs.recv()).await {
                Ok(Some(job)) => group.push(job),
                Ok(None) | Err(_) => break,
            }
        }
        // A closed semaphore is impossible: this task owns it.
        let Ok(permit) = Arc::clone(&threads).acquire_owned().await else { return };
        watch(group.len());
        verified.note(group.len() as u64);
        let chain = Arc::clone(&chain);
        let work = blocking(move || {
            on_this_thread(|| check_group(&chain, group));
            drop(permit);
        });
        // Watched: whoever asked would take the end of the work for the end of the role.
        spawner.run("verifier", async move {
            let (Ok(()) | Err(Cancelled)) = work.await;
        });
    }
}

/// All signatures at once, then all proofs. Whoever asked may have gone away; nothing is lost then.
fn check_group(chain: &ChainConfig, group: Vec<Job>) {
    let items: Vec<_> =
        group.iter().map(|job| (job.epoch.as_ref(), job.number, job.bytes.as_ref())).collect();
    let checked = check_static_all(chain, &items);
    let mut asking = Vec::with_capacity(group.len());
    let mut passed = Vec::with_capacity(group.len());
    for (job, checked) in group.into_iter().zip(checked) {
        match checked {
            Ok(envelope) => {
                passed.push(envelope);
                asking.push(job.answer);
            }
            Err(fault) => drop(job.answer.send(Err(fault))),
        }
    }
    for (answer, checked) in asking.into_iter().zip(check_proofs(passed, &mut rng())) {
        drop(answer.send(checked.map_err(|rejected| rejected.fault)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Who comes alone is not kept waiting; of a crowd, many are looked at together.
    #[tokio::test(start_paused = true)]
    async fn only_a_crowd_waits_for_each_other() {
        let epoch = Arc::new(blindfold_kit::epoch());
        let group_wait = Duration::from_millis(50);
        let limits = VerifierLimits { group_items: 64, group_wait, queue_items: 64, threads: 1 };
        let tasks = blindfold_runtime::Tasks::new();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sizes);
        let watch = move |size| seen.lock().unwrap().push(size);
        let verifier = Verifier::start(blindfold_kit::chain_config(), limits, watch, &tasks.spawner());
        let ask = || verifier.verify(Arc::from([0u8].as_slice()), Arc::clone(&epoch), 1);
        let began = now();
        ask().await.unwrap().unwrap_err();
        assert_eq!(now(), began, "alone");
        for _ in 0..20 {
            let crowd = (0..20).map(|n| async move {
                tokio::time::sleep(Duration::from_millis(2 * n)).await;
                ask().await.unwrap().unwrap_err()
            });
            futures::future::join_all(crowd).await;
        }
        assert_eq!(sizes.lock().unwrap().last(), Some(&20));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_the_rest_is_answered() {
        let epoch = Arc::new(blindfold_kit::epoch());
        let (group_wait, threads) = (Duration::from_micros(1), 1);
        let limits = VerifierLimits { group_items: 1, group_wait, queue_items: 1, threads };
        let tasks = blindfold_runtime::Tasks::new();
        let verifier = Verifier::start(blindfold_kit::chain_config(), limits, |_| {}, &tasks.spawner());
        let ask = || verifier.verify(Arc::from([0u8].as_slice()), Arc::clone(&epoch), 1);
        // On one thread the queue's task has not run before both have asked.
        let (first, second) = tokio::join!(ask(), ask());
        assert!(matches!(first, Ok(Err(EnvelopeError::Undecodable))));
        assert_eq!(second.map(drop), Err(VerifierError::Full));
        let time = verifier.time_to_come_back();
        assert_eq!(time, Some(Duration::ZERO), "one was verified, and nothing waits any more");
    }
}

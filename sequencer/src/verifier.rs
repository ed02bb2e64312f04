//! Verification of fee signatures and proofs in small groups: one multi-scalar multiplication serves a whole group,
//! on a bounded number of blocking threads.

use std::{sync::Arc, time::Duration};

use blindfold_protocol::{
    ChainConfig, EnvelopeError, Epoch,
    validity::{CheckedEnvelope, check_proofs, check_static},
};
use blindfold_runtime::{Cancelled, Spawner, blocking, now, rng, until};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout_at,
};

use crate::{config::AdmissionConfig, metrics::SequencerMetrics, refusal::AdmissionRefusal};

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
}

impl Verifier {
    /// Starts the task that forms the groups.
    pub fn start(
        chain: Arc<ChainConfig>,
        limits: &AdmissionConfig,
        metrics: Arc<SequencerMetrics>,
        spawner: &Spawner,
    ) -> Self {
        let (queue, jobs) = mpsc::channel(limits.proof_queue_items);
        let (work, mut stop) =
            (form_groups(chain, limits.clone(), metrics, jobs, spawner.clone()), spawner.stop());
        spawner.spawn("verifier", async move {
            tokio::select! {
                () = work => {}
                () = until(&mut stop) => {}
            }
        });
        Self { queue }
    }

    /// Checks one envelope of `epoch` for batch `number`: everything that does not depend on the fee ledger.
    pub async fn verify(
        &self,
        bytes: Arc<[u8]>,
        epoch: Arc<Epoch>,
        number: u64,
    ) -> Result<Verified, AdmissionRefusal> {
        let (answer, checked) = oneshot::channel();
        self.queue.try_send(Job { bytes, epoch, number, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AdmissionRefusal::Overloaded,
            mpsc::error::TrySendError::Closed(_) => AdmissionRefusal::ShuttingDown,
        })?;
        checked.await.map_err(|_| AdmissionRefusal::ShuttingDown)
    }
}

async fn form_groups(
    chain: Arc<ChainConfig>,
    limits: AdmissionConfig,
    metrics: Arc<SequencerMetrics>,
    mut jobs: mpsc::Receiver<Job>,
    spawner: Spawner,
) {
    let threads = Arc::new(Semaphore::new(limits.proof_threads));
    while let Some(first) = jobs.recv().await {
        let mut group = Vec::with_capacity(limits.proof_batch_items);
        group.push(first);
        let deadline = now() + Duration::from_micros(limits.proof_wait_us);
        while group.len() < limits.proof_batch_items {
            match timeout_at(deadline, jobs.recv()).await {
                Ok(Some(job)) => group.push(job),
                Ok(None) | Err(_) => break,
            }
        }
        // A closed semaphore is impossible: this task owns it.
        let Ok(permit) = Arc::clone(&threads).acquire_owned().await else { return };
        metrics.proof_group_items.observe(group.len() as f64);
        let chain = Arc::clone(&chain);
        let work = blocking(move || {
            check_group(&chain, group);
            drop(permit);
        });
        // Watched: whoever asked would take the end of the work for the end of the role.
        spawner.run("verifier", async move {
            let (Ok(()) | Err(Cancelled)) = work.await;
        });
    }
}

/// Signatures one by one, then all proofs at once. Whoever asked may have gone away; nothing is lost then.
fn check_group(chain: &ChainConfig, group: Vec<Job>) {
    let mut asking = Vec::with_capacity(group.len());
    let mut passed = Vec::with_capacity(group.len());
    for job in group {
        match check_static(chain, &job.epoch, job.number, &job.bytes) {
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
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_and_the_rest_is_answered() {
        let epoch = Arc::new(blindfold_kit::epoch());
        let limits = AdmissionConfig { proof_queue_items: 1, ..AdmissionConfig::default() };
        let metrics = Arc::new(SequencerMetrics::new().unwrap());
        let tasks = blindfold_runtime::Tasks::new();
        let verifier = Verifier::start(blindfold_kit::chain_config(), &limits, metrics, &tasks.spawner());
        let ask = || verifier.verify(Arc::from([0u8].as_slice()), Arc::clone(&epoch), 1);
        // On one thread the queue's task has not run before both have asked.
        let (first, second) = tokio::join!(ask(), ask());
        assert!(matches!(first, Ok(Err(EnvelopeError::Undecodable))));
        assert_eq!(second.map(drop), Err(AdmissionRefusal::Overloaded));
    }
}

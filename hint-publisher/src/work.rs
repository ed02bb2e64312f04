//! One batch, from its sealing to its published hints.

use std::{sync::Arc, time::Duration};

use blindfold_bte::{
    Backend, BatchError, Blinding, Check, CombineError, Opening, PreDecrypted, STATED_MIN, SingletonError,
};
use blindfold_chain::{EpochParameters, ParameterSet};
use blindfold_protocol::{BatchHints, Certificate, HintEntry, Release};
use blindfold_rpc::HttpClient;
use blindfold_runtime::now;
use tokio::sync::{Semaphore, watch};

use crate::{
    BatchView, HintPublisherConfig, HintPublisherMetrics, ViewFault,
    members::Members,
    pool::Pool,
    publish::publish,
    release::{Released, Releaser},
    singleton::prove_malformed,
};

/// Why a batch could not be opened or published. It is tried again from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkFault {
    /// What the sequencer says of the batch contradicts itself.
    #[error("the sequencer's batch contradicts itself: {0}")]
    View(#[from] ViewFault),
    /// The header is not signed by the sequencer.
    #[error("the header is not signed by the sequencer")]
    NotTheSequencer,
    /// More shares fail than members can be lying: the sequencer's verdicts are wrong.
    #[error(
        "{failing} shares do not fit the sequencer's verdicts: nobody is named, the batch is fetched again"
    )]
    VerdictsDisputed {
        /// Shares that do not fit.
        failing: usize,
    },
    /// Not enough members gave a right share.
    #[error("{given} right shares, {needed} are needed")]
    TooFewShares {
        /// Right shares, as far as is known.
        given: usize,
        /// The threshold.
        needed: usize,
    },
    /// The scheme refused the batch: its parameters do not fit.
    #[error("the scheme refused the batch: {0}")]
    Batch(BatchError),
    /// Right shares did not combine.
    #[error("right shares did not combine: {0}")]
    Combine(CombineError),
    /// A verified singleton release did not open.
    #[error("singleton release: {0}")]
    Singleton(SingletonError),
    /// The sequencer refused the hints for good.
    #[error("the sequencer refused the hints: {reason}")]
    NotTaken {
        /// What it said.
        reason: String,
    },
    /// The process is stopping, or its view of the batch is inconsistent.
    #[error("stopped")]
    Stopped,
}

/// What all batches share.
pub(crate) struct Workshop {
    pub(crate) config: HintPublisherConfig,
    pub(crate) parameters: Arc<ParameterSet>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) members: Members,
    pub(crate) sequencer: HttpClient,
    pub(crate) pool: Arc<Pool>,
    /// One permit for each ciphertext that may be held pre-decrypted.
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) metrics: HintPublisherMetrics,
}

impl Workshop {
    /// Works on a batch until the sequencer has its hints. The certificate may come later.
    pub(crate) async fn work(
        &self,
        view: Arc<BatchView>,
        parameters: EpochParameters,
        mut certificate: watch::Receiver<Option<Certificate>>,
    ) -> Result<(), WorkFault> {
        if view.accepted.is_empty() {
            wait_for(&mut certificate).await?;
            return self
                .publish(&view, Released { pds: Vec::new(), openings: Vec::new() }, Vec::new(), Vec::new())
                .await;
        }
        let held = u32::try_from(view.accepted.len()).unwrap_or(u32::MAX);
        let _held = self.memory.acquire_many(held).await.map_err(|_| WorkFault::Stopped)?;
        // Certified already, the batch is behind: its shares can be had first, and opening it at once is less work.
        let behind = certificate.borrow().is_some();
        let predecrypted = if behind { None } else { Some(self.predecrypt(&view, &parameters).await?) };
        let certificate = wait_for(&mut certificate).await?;
        let certified = now();
        let releaser = Releaser {
            view: &view,
            parameters: &parameters,
            backend: &self.backend,
            members: &self.members,
            pool: &self.pool,
            metrics: &self.metrics,
        };
        let released = releaser.release(predecrypted, &certificate).await?;
        let malformed = released
            .openings
            .iter()
            .enumerate()
            .filter(|(_, opening)| matches!(opening, Opening::Malformed))
            .map(|(position, _)| position)
            .collect::<Vec<_>>();
        let parallel = self.config.limits.parallel_singletons;
        let proofs = prove_malformed(&view, malformed, &parameters, &self.members, parallel).await?;
        let opened = proofs.values().filter(|(entry, _)| matches!(entry, HintEntry::Key(_))).count();
        self.metrics.overruled.get(&[Check::Opening.name()]).add(opened as u64);
        let entries = released
            .openings
            .iter()
            .enumerate()
            .map(|(position, opening)| match (opening, proofs.get(&position)) {
                (Opening::WellFormed { key, .. }, _) => Ok(HintEntry::Key(*key.as_bytes())),
                (Opening::Malformed, Some((entry, _))) => Ok(*entry),
                (Opening::Malformed, None) => Err(WorkFault::Stopped),
            })
            .collect::<Result<Vec<_>, _>>()?;
        // Positions are in order, and so are the entries.
        let malformed = proofs.values().filter(|(entry, _)| matches!(entry, HintEntry::Malformed(_)));
        let mut blindings: Vec<Blinding> = malformed.map(|(_, blinding)| *blinding).collect();
        if blindings.len() < STATED_MIN {
            blindings.clear();
        }
        self.publish(&view, released, entries, blindings).await?;
        self.metrics.certificate_to_hints_seconds.observe_duration(certified.elapsed());
        Ok(())
    }

    /// The pre-decrypted sub-batches.
    async fn predecrypt(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
    ) -> Result<Vec<PreDecrypted>, WorkFault> {
        let (number, view, scheme) = (view.number, Arc::clone(view), Arc::clone(parameters.parameters()));
        let (backend, seconds) = (Arc::clone(&self.backend), self.metrics.predecrypt_seconds.clone());
        let work = move || {
            let started = now();
            let result = (0..view.sub_batches())
                .map(|sub_batch| backend.predecrypt(&scheme, &view.points(sub_batch)))
                .collect::<Result<Vec<_>, _>>();
            seconds.observe_duration(started.elapsed());
            result
        };
        self.pool.run(number, work).await?.map_err(WorkFault::Batch)
    }

    /// `entries` are those of the accepted items in order; all others are skipped. `blindings` are those of all malformed
    /// ones, or none.
    async fn publish(
        &self,
        view: &BatchView,
        released: Released,
        entries: Vec<HintEntry>,
        blindings: Vec<Blinding>,
    ) -> Result<(), WorkFault> {
        let (number, header_hash) = (view.number, view.hash);
        let (mut keys, mut malformed) = (0, 0);
        let mut all = vec![HintEntry::Skipped; view.items];
        for (item, entry) in view.accepted.iter().zip(entries) {
            match entry {
                HintEntry::Key(_) => keys += 1,
                HintEntry::Malformed(_) => malformed += 1,
                HintEntry::Skipped => {}
            }
            let place = usize::try_from(item.index).ok().and_then(|index| all.get_mut(index));
            *place.ok_or(WorkFault::Stopped)? = entry;
        }
        let release = Release { number, header_hash, pds: released.pds };
        let hints = BatchHints { number, header_hash, entries: all, blindings };
        let retry = Duration::from_millis(self.config.limits.publish_retry_ms);
        publish(&self.sequencer, &release, hints, retry).await?;
        self.metrics.batches.increment();
        self.metrics.hints.add(keys);
        self.metrics.malformed.add(malformed);
        tracing::info!(number, keys, malformed, "hints published");
        Ok(())
    }
}

async fn wait_for(certificate: &mut watch::Receiver<Option<Certificate>>) -> Result<Certificate, WorkFault> {
    let certificate = certificate.wait_for(Option::is_some).await.map_err(|_| WorkFault::Stopped)?;
    certificate.ok_or(WorkFault::Stopped)
}

//! One batch, from its sealing to its published hints.

use std::{sync::Arc, time::Duration};

use blindfold_bte::Backend;
use blindfold_chain::{BatchView, Begun, DecryptError, Decryption, EpochParameters, ParameterSet, ViewError};
use blindfold_protocol::{BatchHints, Certificate, HintEntry, Release};
use blindfold_rpc::HttpClient;
use blindfold_runtime::{Instant, now};
use blindfold_telemetry::traces;
use tokio::sync::{Semaphore, watch};

use crate::{
    HintPublisherConfig, HintPublisherMetrics,
    publish::publish,
    share::{Shared, SharedBatch, Sharing},
};

/// Why a batch could not be opened or published. It is tried again from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// What the sequencer says of the batch contradicts itself.
    #[error("the sequencer's batch contradicts itself: {0}")]
    View(#[from] ViewError),
    /// The header is not signed by the sequencer.
    #[error("the header is not signed by the sequencer")]
    NotTheSequencer,
    /// It does not open now.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    /// The sequencer refused the hints for good.
    #[error("the sequencer refused the hints: {reason}")]
    NotTaken {
        /// What the sequencer answered.
        reason: String,
    },
    /// The process is stopping; nothing is wrong with the batch.
    #[error("stopped")]
    Stopped,
}

/// What the work on all batches shares.
pub(crate) struct Workshop {
    pub(crate) config: HintPublisherConfig,
    pub(crate) parameters: Arc<ParameterSet>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) decryption: Decryption,
    pub(crate) sequencer: HttpClient,
    /// Where batches are shared with other hint publishers.
    pub(crate) sharing: Option<Sharing>,
    /// One permit for each ciphertext that may be held pre-decrypted.
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) metrics: HintPublisherMetrics,
}

impl Workshop {
    /// Works on a batch until the sequencer has its hints. The certificate may come later. True where they are of this
    /// process, and not of another hint publisher that shares its batches.
    pub(crate) async fn work(
        &self,
        view: Arc<BatchView>,
        parameters: EpochParameters,
        certificate: watch::Receiver<Option<Certificate>>,
    ) -> Result<bool, WorkError> {
        let held = u32::try_from(view.accepted.len()).unwrap_or(u32::MAX);
        let _held = self.memory.acquire_many(held).await.map_err(|_| WorkError::Stopped)?;
        let sharing = self.sharing.as_ref().filter(|sharing| sharing.shares(&view));
        let (release, hints, certified) = match sharing {
            None => self.open(&view, &parameters, certificate).await?,
            Some(sharing) => {
                match SharedBatch::new(self, sharing, &view, &parameters, certificate).open().await? {
                    Shared::Opened(release, hints, certified) => (release, hints, certified),
                    Shared::Published => return Ok(false),
                }
            }
        };
        traces::batch(view.number, "open", certified);
        let started = now();
        let published = self.publish(release, hints).await;
        if published.is_ok() {
            traces::batch(view.number, "publish hints", started);
        }
        if let Some(sharing) = sharing {
            match &published {
                Ok(()) => sharing.published(&view).await,
                Err(_) => sharing.refused(view.number),
            }
        }
        published?;
        if !view.accepted.is_empty() {
            self.metrics.certificate_to_hints_seconds.observe_duration(certified.elapsed());
        }
        Ok(true)
    }

    /// Opens a batch that is not shared.
    async fn open(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        mut certificate: watch::Receiver<Option<Certificate>>,
    ) -> Result<(Release, BatchHints, Instant), WorkError> {
        // Certified already, the batch is behind: its shares can be had first, and opening it at once is less work.
        let at_once = certificate.borrow().is_some() || view.accepted.is_empty();
        let begun = match at_once {
            true => Begun::Nothing,
            false => {
                let started = now();
                let predecrypted = self.decryption.predecrypt(view, parameters).await?;
                traces::batch(view.number, "predecrypt", started);
                Begun::Predecrypted(predecrypted)
            }
        };
        let certificate = wait_for(&mut certificate).await?;
        let certified = now();
        let (release, hints) = self.decryption.decrypt(view, parameters, begun, &certificate).await?;
        Ok((release, hints, certified))
    }

    async fn publish(&self, release: Release, hints: BatchHints) -> Result<(), WorkError> {
        let number = hints.number;
        let count =
            |of: fn(&HintEntry) -> bool| hints.entries.iter().filter(|entry| of(entry)).count() as u64;
        let keys = count(|entry| matches!(entry, HintEntry::Key(_)));
        let malformed = count(|entry| matches!(entry, HintEntry::Malformed(_)));
        let retry = Duration::from_millis(self.config.limits.publish_retry_ms);
        publish(&self.sequencer, &release, hints, retry).await?;
        self.metrics.batches.increment();
        self.metrics.hints.add(keys);
        self.metrics.malformed.add(malformed);
        tracing::info!(number, keys, malformed, "hints published");
        Ok(())
    }
}

async fn wait_for(certificate: &mut watch::Receiver<Option<Certificate>>) -> Result<Certificate, WorkError> {
    let certificate = certificate.wait_for(Option::is_some).await.map_err(|_| WorkError::Stopped)?;
    certificate.ok_or(WorkError::Stopped)
}

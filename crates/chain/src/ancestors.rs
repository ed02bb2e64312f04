//! Taking a certified batch whose ancestors differ from ours: they are fetched and go with it.

use std::sync::Arc;

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_protocol::{Certificate, SealedBatch};

use crate::limits::MAX_UNCERTIFIED_RUN;
use crate::{Applied, CertificateOutcome, Tracker, TrackerError};

/// Where headers come from that a certified batch builds on. Nothing it gives is believed.
#[async_trait]
pub trait HeaderSource: Send + Sync {
    /// The batch of this number and header hash, if it can be had.
    async fn header(&self, number: u64, hash: B256) -> Option<Arc<SealedBatch>>;

    /// Is shown every header that is about to be offered, while ours, which may give way to it, is still stored.
    async fn about_to_offer(&self, _sealed: &SealedBatch) {}
}

/// What was taken together with a certified batch.
#[derive(Debug)]
pub struct TakenRun {
    /// The batches, ancestors first, and what became of each.
    pub batches: Vec<(Arc<SealedBatch>, Applied)>,
    /// What the certificate changed here.
    pub outcome: CertificateOutcome,
}

impl Tracker {
    /// Takes a certified batch; where ancestors of it differ from ours, they are fetched from `source`, at most
    /// [`MAX_UNCERTIFIED_RUN`] in all, and go with it.
    pub async fn accept_with_ancestors(
        &self,
        source: &dyn HeaderSource,
        mut run: Vec<Arc<SealedBatch>>,
        certificate: &Certificate,
    ) -> Result<TakenRun, TrackerError> {
        loop {
            for sealed in &run {
                source.about_to_offer(sealed).await;
            }
            match self.accept_certified_run(&run, certificate).await {
                Ok((applied, outcome)) => {
                    return Ok(TakenRun { batches: run.into_iter().zip(applied).collect(), outcome });
                }
                Err(TrackerError::AncestorDiffers { number, parent })
                    if run.len() < MAX_UNCERTIFIED_RUN as usize =>
                {
                    match source.header(number, parent).await {
                        Some(ancestor) => run.insert(0, ancestor),
                        None => return Err(TrackerError::AncestorDiffers { number, parent }),
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }
}

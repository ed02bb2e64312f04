//! Decrypting a batch locally, from the committee's shares, when nobody publishes true hints.

use std::sync::Arc;
use std::time::Duration;

use blindfold_bte::Check;
use blindfold_chain::{
    BatchView, Begun, DecryptError, Decryption, DecryptionWatch, EpochParameters, MemberWatch, ParameterSet,
    Step, Tracker, ViewError, verdicts,
};
use blindfold_protocol::{BatchHints, Certificate, Release};
use blindfold_store::{BatchRecord, StoreError};

use crate::counters::Counters;

/// Why a batch could not be decrypted now.
#[derive(Debug, thiserror::Error)]
pub enum LocalDecryptionError {
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The batch or its certificate is not here.
    #[error("batch {0} is not certified here")]
    NotCertified(u64),
    /// The parameters of its epoch are not configured.
    #[error("no parameters are configured for batch {0}")]
    NoParameters(u64),
    /// An accepted item does not decode.
    #[error("batch {number}: our disk is damaged: {fault}")]
    Damaged {
        /// Number of the batch.
        number: u64,
        /// What is wrong with it.
        fault: ViewError,
    },
    /// It does not open now.
    #[error("batch {number}: {error}")]
    Decrypt {
        /// Number of the batch.
        number: u64,
        /// Why it was not decrypted.
        error: DecryptError,
    },
}

impl LocalDecryptionError {
    /// Whether a release that was published did not open the batch.
    pub(crate) fn lacks_release(&self) -> bool {
        matches!(self, Self::Decrypt { error, .. } if error.lacks_release())
    }
}

/// Decrypts batches of our chain with what the members give.
pub struct LocalDecryption {
    /// The chain of headers and its store.
    pub tracker: Tracker,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// How members are asked and their shares combined.
    pub decryption: Decryption,
}

impl LocalDecryption {
    /// The hints of a certified batch, made here. `published` is a release that somebody published, if any: it saves
    /// asking the members when it proves itself.
    pub async fn decrypt(
        &self,
        number: u64,
        published: Option<Release>,
    ) -> Result<(Release, BatchHints), LocalDecryptionError> {
        let record =
            self.tracker.store().batch(number).await?.ok_or(LocalDecryptionError::NotCertified(number))?;
        let certificate = self.certificate(&record).await?;
        let parameters = self.parameters.at(number).ok_or(LocalDecryptionError::NoParameters(number))?;
        let view = view(record, &parameters).await?;
        let begun = published.map_or(Begun::Nothing, Begun::Claimed);
        let opened = self.decryption.decrypt(&view, &parameters, begun, &certificate).await;
        opened.map_err(|error| LocalDecryptionError::Decrypt { number, error })
    }

    /// The batch's own certificate or that of the next descendant that has one: it certifies its ancestors.
    async fn certificate(&self, record: &BatchRecord) -> Result<Certificate, LocalDecryptionError> {
        let certified = self.tracker.certified().number;
        if let Some(certificate) = record.certificate {
            return Ok(certificate);
        }
        for number in record.number + 1..=certified {
            let descendant = self.tracker.store().batch(number).await?;
            if let Some(certificate) = descendant.and_then(|descendant| descendant.certificate) {
                return Ok(certificate);
            }
        }
        Err(LocalDecryptionError::NotCertified(record.number))
    }
}

async fn view(
    record: BatchRecord,
    parameters: &EpochParameters,
) -> Result<Arc<BatchView>, LocalDecryptionError> {
    let (number, verdicts) = (record.number, verdicts(&record)?);
    let max_batch = parameters.epoch().max_batch;
    let read = move || BatchView::of_verdicts(&record.sealed, &verdicts, max_batch);
    let stopped = |_| LocalDecryptionError::Decrypt { number, error: DecryptError::Stopped };
    let view = blindfold_runtime::blocking(read).await.map_err(stopped)?;
    view.map(Arc::new).map_err(|fault| LocalDecryptionError::Damaged { number, fault })
}

impl MemberWatch for Counters {
    fn faulty(&self, member: u16) {
        self.faulty_members.add(&member.to_string());
    }

    fn failed(&self, _: u16) {}
}

impl DecryptionWatch for Counters {
    fn took(&self, _: Step, _: usize, _: Duration) {}

    fn overruled(&self, items: usize) {
        self.overruled.get(&[Check::Opening.name()]).add(items as u64);
    }
}

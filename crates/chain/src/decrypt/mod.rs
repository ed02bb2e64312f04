//! Opening batches with what the members give: one way for whoever makes hints, to publish them or for itself.
//!
//! [`Decryption::decrypt`] asks t members for their shares, another for each that fails and all of them after a while,
//! and combines any t without verifying them: one ciphertext that opens proves its sub-batch's release right. Only where
//! none opens are shares verified, faulty members named, and others' shares taken. Items that did not open are proved
//! malformed by their singleton releases.
//!
//! A batch of several sub-batches can be opened in parts ([`Part`]), by several processes: each part proves itself.

mod members;
mod parts;
mod pool;
mod release;
mod singleton;
mod view;

use std::sync::Arc;
use std::time::Duration;

use blindfold_bte::{Backend, BatchError, CombineError, PointError, PreDecrypted, SingletonError};
use blindfold_protocol::{BatchHints, Certificate, Release};

use crate::EpochParameters;

pub use members::{MemberLimits, MemberWatch, ShareMembers};
pub use parts::{CheckedPart, Part, PartFault, assemble};
pub use pool::Pool;
pub use release::HeldShares;
pub use view::{AcceptedItem, BatchView, ViewError, told_verdicts};

/// What [`DecryptError::TooFewShares`] is about.
const SHARES: &str = "shares";
const SINGLETON_SHARES: &str = "singleton shares";

/// Why a batch could not be opened now. It may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// More shares fail than members can be faulty: the verdicts on the batch's items are wrong.
    #[error("{failing} shares do not fit the verdicts on the batch: nobody is named")]
    VerdictsDisputed {
        /// Shares that do not fit.
        failing: usize,
    },
    /// Too few members gave a right one; they may come back.
    #[error("{given} members gave right {what}, {needed} are needed")]
    TooFewShares {
        /// `shares` or `singleton shares`.
        what: &'static str,
        /// Right ones, as far as is known.
        given: usize,
        /// The threshold.
        needed: usize,
    },
    /// The ciphertext header of an accepted item is no point of the group: whoever said that it is accepted is at fault.
    #[error("item {index} is said to be accepted and its ciphertext has no valid point: {fault}")]
    Point {
        /// Index of the item in the batch.
        index: u32,
        /// What is wrong with it.
        fault: PointError,
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
    /// The process is stopping.
    #[error("stopped")]
    Stopped,
}

impl DecryptError {
    /// Whether it was shares of the batch that were missing or wrong: what was claimed to be its release did not open it.
    pub fn lacks_release(&self) -> bool {
        match self {
            Self::TooFewShares { what, .. } => *what == SHARES,
            Self::VerdictsDisputed { .. } => true,
            Self::Point { .. } | Self::Batch(_) | Self::Combine(_) | Self::Singleton(_) | Self::Stopped => {
                false
            }
        }
    }
}

/// What there is of a batch before its members are asked.
#[derive(Debug)]
pub enum Begun {
    /// Nothing: it is opened at once, which is less work in all.
    Nothing,
    /// Its sub-batches are pre-decrypted ([`Decryption::predecrypt`]).
    Predecrypted(Vec<PreDecrypted>),
    /// Somebody gave its release, which counts where it proves itself.
    Claimed(Release),
}

/// A part of the work on one batch, by what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Pre-decrypting it.
    Predecrypt,
    /// Combining shares and opening what was pre-decrypted.
    Finalize,
    /// Combining shares and opening what was not.
    Decrypt,
}

/// Who wants to know how the work goes.
pub trait DecryptionWatch: MemberWatch {
    /// A step of so many sub-batches of a batch took so long, without the time that it waited for its turn or for members.
    fn took(&self, step: Step, sub_batches: usize, time: Duration);

    /// So many items of a batch did not open by the backend, and do by their singleton releases: the backend erred.
    fn overruled(&self, items: usize);
}

/// Opens batches with what the members give.
pub struct Decryption {
    backend: Arc<dyn Backend>,
    members: ShareMembers,
    pool: Arc<Pool>,
    watch: Arc<dyn DecryptionWatch>,
    parallel_singletons: usize,
}

impl Decryption {
    /// Singleton shares are asked for of at most `parallel_singletons` items of a batch at a time.
    pub fn new(
        backend: Arc<dyn Backend>,
        members: ShareMembers,
        pool: Arc<Pool>,
        watch: Arc<dyn DecryptionWatch>,
        parallel_singletons: usize,
    ) -> Self {
        Self { backend, members, pool, watch, parallel_singletons }
    }

    /// The larger part of the work, which needs no release: it can be done while the batch waits for its certificate.
    ///
    /// # Errors
    /// [`DecryptError::Point`], [`DecryptError::Batch`], [`DecryptError::Stopped`].
    pub async fn predecrypt(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
    ) -> Result<Vec<PreDecrypted>, DecryptError> {
        self.predecrypt_part(view, parameters, view.places()).await
    }

    /// The release and the hints of a certified batch. `certificate` is its own, or that of a descendant.
    ///
    /// Blinding factors are stated where there are enough malformed items for them to save work.
    ///
    /// # Errors
    /// [`DecryptError`].
    pub async fn decrypt(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        begun: Begun,
        certificate: &Certificate,
    ) -> Result<(Release, BatchHints), DecryptError> {
        let held = HeldShares::default();
        let part = self.open_part(view, parameters, view.places(), begun, certificate, &held).await?;
        parts::assemble(view, &[part]).ok_or(DecryptError::Stopped)
    }
}

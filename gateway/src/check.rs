//! What of a source's word can be checked without executing anything. Each check runs off the async threads.

use std::sync::Arc;

use blindfold_bte::Backend;
use blindfold_chain::{
    EpochParameters, HintsError, L1Error, L1Reader, ParameterSet, ViewError, check_release_shape,
    told_verdicts, verify_hints,
};
use blindfold_protocol::{
    BatchHints, Certificate, ChainConfig, Release, SealedBatch, certificate, certificate::CertificateError,
};
use blindfold_runtime::blocking;

use crate::window::Held;

/// What a source said, and is not so. Its fault, unless L1 does not answer or the settings lack an epoch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("the header is not signed by the sequencer in office")]
    Signature,
    #[error("L1 made no such header")]
    NotOfL1,
    #[error(transparent)]
    View(#[from] ViewError),
    #[error("the source's {0} does not decode")]
    Undecodable(&'static str),
    #[error("the source gives another number")]
    OtherNumber,
    #[error("the source contradicts what is certified")]
    Contradiction,
    #[error(
        "no parameters are configured for the epoch of batch {0}: add the file to `parameters` and restart"
    )]
    NoParameters(u64),
    #[error("the certificate: {0}")]
    Certificate(#[from] CertificateError),
    #[error("the hints: {0}")]
    Hints(#[from] HintsError),
    #[error("L1: {0}")]
    L1(#[from] L1Error),
    #[error("shutting down")]
    Stopped,
}

impl CheckError {
    /// Whether the source may be right all the same.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(self, Self::L1(_) | Self::NoParameters(_) | Self::Stopped)
    }
}

/// What is needed to check anything.
pub(crate) struct Checks {
    pub(crate) chain: Arc<ChainConfig>,
    pub(crate) parameters: Arc<ParameterSet>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) l1: Arc<dyn L1Reader>,
}

impl Checks {
    fn parameters(&self, number: u64) -> Result<EpochParameters, CheckError> {
        self.parameters.at(number).ok_or(CheckError::NoParameters(number))
    }

    /// A batch whose header stands, whose items and verdicts are those that it commits to.
    pub(crate) async fn header(
        &self,
        sealed: SealedBatch,
        verdicts: Vec<Option<String>>,
    ) -> Result<Held, CheckError> {
        if sealed.claims_l1() {
            let of_l1 = self.l1.l1_header(sealed.header.number).await?;
            if of_l1.is_none_or(|made| made.header.hash() != sealed.header.hash()) {
                return Err(CheckError::NotOfL1);
            }
        }
        let origin = sealed.header.l1_origin_number;
        let sequencer = self.parameters.sequencer_at(origin).unwrap_or(self.chain.sequencer);
        let deployment = self.chain.deployment;
        let checked = blocking(move || {
            if !sealed.claims_l1() && sealed.signed_header().signer(&deployment) != Ok(sequencer) {
                return Err(CheckError::Signature);
            }
            let verdicts = told_verdicts(&sealed, &verdicts)?;
            Ok(Held::new(sealed, verdicts))
        });
        checked.await.map_err(|_| CheckError::Stopped)?
    }

    /// Whether enough members signed it, by the keys of the number's epoch.
    pub(crate) async fn certificate(&self, certificate: Certificate) -> Result<(), CheckError> {
        let parameters = self.parameters(certificate.number)?;
        let deployment = self.chain.deployment;
        let verified = blocking(move || certificate::verify(&certificate, parameters.epoch(), &deployment));
        Ok(verified.await.map_err(|_| CheckError::Stopped)??)
    }

    /// Whether a release has the form of one of this batch.
    pub(crate) fn release(&self, held: &Held, release: &Release) -> Result<(), CheckError> {
        let parameters = self.parameters(held.number())?;
        Ok(check_release_shape(&parameters, &held.sealed, &held.verdicts, release)?)
    }

    /// Whether each hint opens its ciphertext.
    pub(crate) async fn hints(&self, held: &Held, hints: Arc<BatchHints>) -> Result<(), CheckError> {
        let parameters = self.parameters(held.number())?;
        let (backend, held) = (Arc::clone(&self.backend), held.clone());
        let verified = blocking(move || {
            verify_hints(backend.as_ref(), &parameters, &held.sealed, &held.verdicts, &hints).map(drop)
        });
        Ok(verified.await.map_err(|_| CheckError::Stopped)??)
    }
}

//! Counts what comes of asking a signer in another process.

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_chain::{HeaderSigner, SignerError};
use blindfold_protocol::{Address, B256, BatchHeader, Promise, Signature65};
use blindfold_runtime::now;

use crate::metrics::{SIGNER_REFUSED, SIGNER_UNAVAILABLE, SequencerMetrics};

struct WatchedSigner {
    inner: Arc<dyn HeaderSigner>,
    metrics: Arc<SequencerMetrics>,
}

/// The same signer, counted where it is elsewhere.
pub(crate) fn watched(
    signer: Arc<dyn HeaderSigner>,
    metrics: &Arc<SequencerMetrics>,
) -> Arc<dyn HeaderSigner> {
    if signer.key().is_some() {
        return signer;
    }
    Arc::new(WatchedSigner { inner: signer, metrics: Arc::clone(metrics) })
}

impl WatchedSigner {
    async fn count<T>(&self, asked: impl Future<Output = Result<T, SignerError>>) -> Result<T, SignerError> {
        let since = now();
        let signed = asked.await;
        match &signed {
            Ok(_) => self.metrics.signer_seconds.observe_duration(since.elapsed()),
            Err(SignerError::Refused(_) | SignerError::SecondHeader(_)) => {
                self.metrics.signer_failures.get(&[SIGNER_REFUSED]).increment();
            }
            Err(SignerError::Unavailable(_)) => {
                self.metrics.signer_failures.get(&[SIGNER_UNAVAILABLE]).increment();
            }
        }
        signed
    }
}

#[async_trait]
impl HeaderSigner for WatchedSigner {
    fn address(&self) -> Address {
        self.inner.address()
    }

    async fn sign_header(&self, header: &BatchHeader) -> Result<Signature65, SignerError> {
        self.count(self.inner.sign_header(header)).await
    }

    async fn sign_promise(&self, id: B256, item_hash: B256, seal_by: u64) -> Result<Promise, SignerError> {
        self.count(self.inner.sign_promise(id, item_hash, seal_by)).await
    }
}

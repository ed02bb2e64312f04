//! Who signs headers and promises.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;
use blindfold_protocol::{BatchHeader, Deployment, Promise, Signature65, SigningKey};

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// It was asked for something that it does not sign. Asking again does not help; whoever asked is at fault, or has to be
    /// told something first.
    #[error("the signer refuses: {0}")]
    Refused(String),
    /// It signed another header for this number: this one is never signed, whoever asks.
    #[error("the signer refuses: {0}")]
    SecondHeader(String),
    /// It cannot be reached, or cannot work now. May succeed later.
    #[error("the signer does not answer: {0}")]
    Unavailable(String),
}

/// Signs for one sequencer key, of one deployment.
///
/// A header is signed only after its number, its hash and everything in it are durable: what was signed has to be found by
/// whoever seals next. The same header gets the same signature, however often it is asked for.
#[async_trait]
pub trait HeaderSigner: Send + Sync {
    /// Address of the key.
    fn address(&self) -> Address;

    /// The key, where it is in this process: a signature that was made and went nowhere binds nobody then, and a header
    /// may be signed in the same step that makes it durable, on a disk that nobody else sees.
    fn key(&self) -> Option<&SigningKey> {
        None
    }

    /// Signs a header that is durable.
    async fn sign_header(&self, header: &BatchHeader) -> Result<Signature65, SignerError>;

    /// Signs a promise that is durable: that the envelope stands at the latest in batch `seal_by`.
    async fn sign_promise(
        &self,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
    ) -> Result<Promise, SignerError>;
}

/// A key in this process's memory.
#[derive(Clone)]
pub struct KeySigner {
    key: Arc<SigningKey>,
    deployment: Deployment,
}

impl KeySigner {
    /// Signs for this deployment.
    #[must_use]
    pub const fn new(key: Arc<SigningKey>, deployment: Deployment) -> Self {
        Self { key, deployment }
    }
}

#[async_trait]
impl HeaderSigner for KeySigner {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn key(&self) -> Option<&SigningKey> {
        Some(&self.key)
    }

    async fn sign_header(&self, header: &BatchHeader) -> Result<Signature65, SignerError> {
        Ok(self.key.sign(&header.signing_digest(&self.deployment)))
    }

    async fn sign_promise(
        &self,
        envelope_id: B256,
        item_hash: B256,
        seal_by: u64,
    ) -> Result<Promise, SignerError> {
        Ok(Promise::sign(&self.key, &self.deployment, envelope_id, item_hash, seal_by))
    }
}

//! From a bundle to a signed envelope: what a wallet does.

use crate::bundle::{Bundle, BundleError};
use crate::eip712::Deployment;
use crate::envelope::{Envelope, EnvelopeHeader};
use crate::expiry::Expiry;
use crate::signature::SigningKey;
use crate::tags;
use alloy_primitives::B256;
use blindfold_bte::{EncryptError, EncryptionKey, SessionKey};
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The header fields a wallet chooses; the rest follows from the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeFields {
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
    /// Key epoch of the encryption key.
    pub epoch: u64,
    /// Random number, used once by this payer until the expiry.
    pub fee_nonce: u64,
    /// Most the payer gives per item byte, in wei.
    pub max_fee: u128,
    /// What the payer gives above the base fee per item byte, in wei.
    pub priority_fee: u128,
    /// Most the payer gives per unit of gas that the envelope reserves, in wei.
    pub max_gas_fee: u128,
    /// Sum of the inner transactions' gas limits that may run.
    pub gas_limit: u64,
    /// The last batch number that may hold the envelope.
    pub expiry: u64,
    /// The chain's generation, see [`Expiry`]: only a batch of it may hold the envelope.
    pub generation: u16,
}

/// Why no envelope was made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The bundle does not fit. The caller's fault.
    #[error("the bundle does not fit an envelope: {0}")]
    Bundle(#[from] BundleError),
    /// Encryption failed.
    #[error("encryption failed: {0}")]
    Encrypt(#[from] EncryptError),
}

/// Encrypts and signs a bundle. `key` pays.
pub fn build<R: CryptoRng + ?Sized>(
    encryption_key: &EncryptionKey,
    fields: &EnvelopeFields,
    bundle: &Bundle,
    key: &SigningKey,
    rng: &mut R,
) -> Result<Envelope, BuildError> {
    build_with_key(encryption_key, fields, bundle, key, rng).map(|(envelope, _)| envelope)
}

/// Like [`build`], and gives the session key too: with it the user can refute a false claim that the envelope is
/// malformed.
pub fn build_with_key<R: CryptoRng + ?Sized>(
    encryption_key: &EncryptionKey,
    fields: &EnvelopeFields,
    bundle: &Bundle,
    key: &SigningKey,
    rng: &mut R,
) -> Result<(Envelope, SessionKey), BuildError> {
    let message = Zeroizing::new(bundle.encode_padded()?);
    let header = EnvelopeHeader {
        chain_id: fields.chain_id,
        deployment: fields.deployment,
        epoch: fields.epoch,
        encryption_key_hash: B256::from(encryption_key.hash()),
        payer: key.address(),
        fee_nonce: fields.fee_nonce,
        max_fee: fields.max_fee,
        priority_fee: fields.priority_fee,
        max_gas_fee: fields.max_gas_fee,
        gas_limit: fields.gas_limit,
        expiry: Expiry::new(fields.generation, fields.expiry),
        flags: 0,
    };
    let ad = header.hash();
    let secret = wallet_secret(key);
    let (ciphertext, proof, session_key) = encryption_key.encrypt(&ad.0, &message, secret.as_slice(), rng)?;
    Ok((Envelope::sign(header, ciphertext, proof, key), session_key))
}

/// The secret mixed into session keys, so that weak randomness alone does not repeat one.
fn wallet_secret(key: &SigningKey) -> Zeroizing<[u8; 32]> {
    let scalar = key.to_bytes();
    let mut hasher = Sha256::new();
    hasher.update(tags::WALLET_SECRET);
    hasher.update(scalar.as_slice());
    let mut secret = Zeroizing::new([0u8; 32]);
    secret.copy_from_slice(&hasher.finalize());
    secret
}

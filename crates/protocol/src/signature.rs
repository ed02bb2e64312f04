//! secp256k1 signatures: payers sign envelopes, the sequencer signs headers and promises.

use crate::recovery::{self, Signed};
use alloy_primitives::{Address, B256, hex};
use k256::ecdsa::{SigningKey as Secp256k1Key, VerifyingKey};
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// Length of a signature, in bytes.
pub const SIGNATURE_BYTES: usize = 65;

/// The group order, big-endian.
const ORDER: [u8; 32] = hex!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
/// The largest `s` of its lower half.
const HALF_ORDER: [u8; 32] = hex!("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0");

/// `r ‖ s ‖ v` with `v` 27 or 28, as it came: [`recover`] judges it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature65(pub [u8; SIGNATURE_BYTES]);

impl Signature65 {
    /// What stands where nobody has signed: headers that L1 made, and those that are to be signed.
    pub const NONE: Self = Self([0; SIGNATURE_BYTES]);
}

impl fmt::Debug for Signature65 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature65({})", alloy_primitives::hex::encode_prefixed(self.0))
    }
}

/// Why a signature names no signer. The fault of whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// `v` is neither 27 nor 28.
    #[error("v is {0}, not 27 or 28")]
    RecoveryId(u8),
    /// `r` or `s` is zero or not below the group order.
    #[error("r or s is zero or not below the group order")]
    OutOfRange,
    /// `s` is in the upper half of the group order, so the signature is not the unique one.
    #[error("s is in the upper half of the group order")]
    HighS,
    /// No public key fits signature and digest.
    #[error("no public key fits the signature")]
    NoKey,
}

/// The address that signed the digest (EN-4). About 40 µs.
///
/// Exactly one of the two signatures that plain ECDSA would accept is valid: the one with low `s`.
///
/// # Errors
/// [`SignatureError`]: the fault of whoever sent it.
pub fn recover(digest: &B256, signature: &Signature65) -> Result<Address, SignatureError> {
    recover_all(&[(*digest, *signature)]).pop().unwrap_or(Err(SignatureError::NoKey))
}

/// [`recover`] of each: where the processor has AVX-512 IFMA, a fifth of the time for eight and more.
pub fn recover_all(signed: &[(B256, Signature65)]) -> Vec<Result<Address, SignatureError>> {
    let read: Vec<_> = signed.iter().map(|(digest, signature)| read(digest, signature)).collect();
    let legible: Vec<Signed> = read.iter().filter_map(|read| read.as_ref().ok().copied()).collect();
    let mut keys = recovery::keys(&legible).into_iter();
    let found = |read: Result<Signed, SignatureError>| {
        // One for each that was legible.
        let key = read.and_then(|_| keys.next().ok_or(SignatureError::NoKey))?;
        let key = key.map_err(|recovery::OutOfRange| SignatureError::OutOfRange)?;
        key.map(|key| Address::from_raw_public_key(&key)).ok_or(SignatureError::NoKey)
    };
    read.into_iter().map(found).collect()
}

/// What has to be known to recover the key, of a signature that may have one.
fn read(digest: &B256, signature: &Signature65) -> Result<Signed, SignatureError> {
    let [rs @ .., v] = &signature.0;
    let odd = match v {
        27 => false,
        28 => true,
        other => return Err(SignatureError::RecoveryId(*other)),
    };
    // Which error is told when both are wrong: the range comes first.
    let (r, s) = rs.split_at(32);
    if [r, s].iter().any(|half| !is_scalar(half)) {
        return Err(SignatureError::OutOfRange);
    }
    if s > HALF_ORDER.as_slice() {
        return Err(SignatureError::HighS);
    }
    Ok(Signed { digest: digest.0, rs: *rs, odd })
}

/// Whether these bytes are above zero and below the group order.
fn is_scalar(half: &[u8]) -> bool {
    half.iter().any(|byte| *byte != 0) && half < ORDER.as_slice()
}

fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    Address::from_raw_public_key(&point.as_bytes()[1..])
}

/// A secp256k1 signing key; wiped when dropped and never printed.
#[derive(Clone)]
pub struct SigningKey {
    key: Secp256k1Key,
    address: Address,
}

/// The bytes are no signing key: zero, or not below the group order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signing key is 32 bytes, not zero and below the group order")]
pub struct InvalidSigningKey;

impl SigningKey {
    /// A fresh key from the caller's randomness.
    pub fn random<R: CryptoRng + ?Sized>(rng: &mut R) -> Self {
        let mut bytes = Zeroizing::new([0u8; 32]);
        loop {
            rng.fill_bytes(bytes.as_mut_slice());
            // All but about 2^-128 of all strings are keys.
            if let Ok(key) = Self::from_bytes(&bytes) {
                return key;
            }
        }
    }

    /// Reads a key from its scalar, big-endian.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidSigningKey> {
        let key = Secp256k1Key::from_slice(bytes).map_err(|_| InvalidSigningKey)?;
        let address = address_of(key.verifying_key());
        Ok(Self { key, address })
    }

    /// The scalar, big-endian, for a key store.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        let mut bytes = self.key.to_bytes();
        let mut out = Zeroizing::new([0u8; 32]);
        out.copy_from_slice(&bytes);
        zeroize::Zeroize::zeroize(bytes.as_mut_slice());
        out
    }

    /// The address that [`recover`] gives for this key's signatures.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Signs a digest: deterministic (RFC 6979), with low `s`.
    pub fn sign(&self, digest: &B256) -> Signature65 {
        let (signature, id) = self.key.sign_prehash_recoverable(digest.as_slice());
        // With a normalized s the recovery id belongs to the normalized signature.
        let low = signature.normalize_s();
        let odd = id.is_y_odd() ^ (low != signature);
        let mut out = [0u8; SIGNATURE_BYTES];
        out[..64].copy_from_slice(&low.to_bytes());
        out[64] = 27 + u8::from(odd);
        Signature65(out)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {}, redacted)", self.address)
    }
}

//! BLS signatures over BLS12-381: signatures in G1 (48 bytes), keys in G2 (96 bytes).
//!
//! draft-irtf-cfrg-bls-signature, proof-of-possession scheme: members sign their acknowledgements of one header with
//! it, and the signatures of any t add up to one. **Aggregates are sound only over keys whose possession has been
//! proved** ([`PublicKey::verify_possession`]).

use blst::BLST_ERROR;
use blst::min_sig as blst_bls;

use crate::curve::{PointError, point_error};
use crate::tags::{BLS_POSSESSION, BLS_SIGNATURE};
use crate::{G1_BYTES, G2_BYTES, SCALAR_BYTES};

/// Bytes of a G1 point as EIP-2537 precompiles take it: x, y, each padded to 64.
pub const EIP2537_G1_BYTES: usize = 128;
/// Bytes of a G2 point as EIP-2537 precompiles take it: x.c0, x.c1, y.c0, y.c1, each padded to 64.
pub const EIP2537_G2_BYTES: usize = 256;
/// Least bytes of key material for [`SecretKey::generate`].
pub const MIN_KEY_MATERIAL_BYTES: usize = 32;

const FP_BYTES: usize = 48;
const PADDED_FP_BYTES: usize = 64;

/// What was refused, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlsError {
    /// Too little key material; the caller's fault.
    #[error("{0} bytes of key material, at least {MIN_KEY_MATERIAL_BYTES} are needed")]
    KeyMaterial(usize),
    /// Not a secret key: zero or not below r.
    #[error("secret key is not a canonical non-zero scalar")]
    SecretKey,
    /// The bytes are no public key.
    #[error("BLS public key: {0}")]
    PublicKey(PointError),
    /// The bytes are no signature.
    #[error("BLS signature: {0}")]
    Signature(PointError),
    /// Nothing to aggregate; the caller's fault.
    #[error("an aggregate needs at least one element")]
    Empty,
    /// The signature does not verify.
    #[error("BLS signature does not verify")]
    Invalid,
}

/// A signing key. Printed redacted, wiped on drop.
#[derive(Clone)]
pub struct SecretKey(blst_bls::SecretKey);

/// A verification key: a point of G2 of order r, never the identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(blst_bls::PublicKey);

/// A signature or an aggregate of signatures: a point of G1 of order r, never the identity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(blst_bls::Signature);

impl SecretKey {
    /// Derives a key from at least 32 bytes of uniformly random key material.
    ///
    /// # Errors
    /// [`BlsError::KeyMaterial`].
    pub fn generate(key_material: &[u8]) -> Result<Self, BlsError> {
        blst_bls::SecretKey::key_gen(key_material, &[])
            .map(Self)
            .map_err(|_| BlsError::KeyMaterial(key_material.len()))
    }

    /// Reads 32 big-endian bytes.
    ///
    /// # Errors
    /// [`BlsError::SecretKey`].
    pub fn from_bytes(bytes: &[u8; SCALAR_BYTES]) -> Result<Self, BlsError> {
        blst_bls::SecretKey::from_bytes(bytes).map(Self).map_err(|_| BlsError::SecretKey)
    }

    /// The 32 big-endian bytes, wiped on drop.
    pub fn to_bytes(&self) -> zeroize::Zeroizing<[u8; SCALAR_BYTES]> {
        zeroize::Zeroizing::new(self.0.to_bytes())
    }

    /// The key that verifies this key's signatures.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.sk_to_pk())
    }

    /// Signs a 32-byte hash. Deterministic, constant-time, about 0.2 ms.
    pub fn sign(&self, hash: &[u8; 32]) -> Signature {
        Signature(self.0.sign(hash, BLS_SIGNATURE, &[]))
    }

    /// Proves possession of this key: signs the compressed public key under its own domain.
    pub fn prove_possession(&self) -> Signature {
        Signature(self.0.sign(&self.public_key().to_bytes(), BLS_POSSESSION, &[]))
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

impl PublicKey {
    /// Decodes a compressed key and checks curve, subgroup and that it is not the identity.
    ///
    /// # Errors
    /// [`BlsError::PublicKey`].
    pub fn from_bytes(bytes: &[u8; G2_BYTES]) -> Result<Self, BlsError> {
        let refuse = |code| BlsError::PublicKey(point_error(code));
        let key = blst_bls::PublicKey::uncompress(bytes).map_err(refuse)?;
        key.validate().map_err(refuse)?;
        Ok(Self(key))
    }

    /// The compressed encoding in G2, 96 bytes.
    pub fn to_bytes(&self) -> [u8; G2_BYTES] {
        self.0.compress()
    }

    /// Verifies a signature over a 32-byte hash. About 0.8 ms.
    ///
    /// # Errors
    /// [`BlsError::Invalid`].
    pub fn verify(&self, hash: &[u8; 32], signature: &Signature) -> Result<(), BlsError> {
        verified(signature.0.verify(false, hash, BLS_SIGNATURE, &[], &self.0, false))
    }

    /// Verifies a proof of possession of this key.
    ///
    /// # Errors
    /// [`BlsError::Invalid`].
    pub fn verify_possession(&self, proof: &Signature) -> Result<(), BlsError> {
        verified(proof.0.verify(false, &self.to_bytes(), BLS_POSSESSION, &[], &self.0, false))
    }

    /// The encoding that EIP-2537 precompiles take: x.c0, x.c1, y.c0, y.c1, each padded to 64 bytes.
    pub fn to_eip2537(&self) -> [u8; EIP2537_G2_BYTES] {
        // blst serialises c1 before c0.
        let raw = self.0.serialize();
        let mut out = [0; EIP2537_G2_BYTES];
        for (slot, source) in [1, 0, 3, 2].into_iter().enumerate() {
            pad_coordinate(&mut out, slot, &raw, source);
        }
        out
    }
}

impl Signature {
    /// Decodes a compressed signature and checks curve, subgroup and that it is not the identity.
    ///
    /// # Errors
    /// [`BlsError::Signature`].
    pub fn from_bytes(bytes: &[u8; G1_BYTES]) -> Result<Self, BlsError> {
        let refuse = |code| BlsError::Signature(point_error(code));
        let signature = blst_bls::Signature::uncompress(bytes).map_err(refuse)?;
        signature.validate(true).map_err(refuse)?;
        Ok(Self(signature))
    }

    /// The compressed encoding in G1, 48 bytes.
    pub fn to_bytes(&self) -> [u8; G1_BYTES] {
        self.0.compress()
    }

    /// The encoding that EIP-2537 precompiles take: x, y, each padded to 64 bytes.
    pub fn to_eip2537(&self) -> [u8; EIP2537_G1_BYTES] {
        let raw = self.0.serialize();
        let mut out = [0; EIP2537_G1_BYTES];
        for slot in 0..2 {
            pad_coordinate(&mut out, slot, &raw, slot);
        }
        out
    }
}

/// Copies field element `source` of `raw` into the 64-byte `slot` of `out`, right-aligned.
fn pad_coordinate(out: &mut [u8], slot: usize, raw: &[u8], source: usize) {
    let end = (slot + 1) * PADDED_FP_BYTES;
    out[end - FP_BYTES..end].copy_from_slice(&raw[source * FP_BYTES..(source + 1) * FP_BYTES]);
}

/// Adds up signatures over one message.
///
/// # Errors
/// [`BlsError::Empty`].
pub fn aggregate(signatures: &[Signature]) -> Result<Signature, BlsError> {
    let signatures: Vec<&blst_bls::Signature> = signatures.iter().map(|s| &s.0).collect();
    // The subgroup was checked when each was decoded.
    let sum = blst_bls::AggregateSignature::aggregate(&signatures, false).map_err(|_| BlsError::Empty)?;
    Ok(Signature(sum.to_signature()))
}

/// Verifies an aggregate of the signatures of all `keys` over one 32-byte hash. **The keys' possession must have been
/// proved**; the caller sees to it that they are distinct. About 0.8 ms.
///
/// # Errors
/// [`BlsError::Empty`], [`BlsError::Invalid`].
pub fn verify_aggregate(keys: &[PublicKey], hash: &[u8; 32], signature: &Signature) -> Result<(), BlsError> {
    let keys: Vec<&blst_bls::PublicKey> = keys.iter().map(|key| &key.0).collect();
    if keys.is_empty() {
        return Err(BlsError::Empty);
    }
    verified(signature.0.fast_aggregate_verify(false, hash, BLS_SIGNATURE, &keys))
}

fn verified(code: BLST_ERROR) -> Result<(), BlsError> {
    match code {
        BLST_ERROR::BLST_SUCCESS => Ok(()),
        _ => Err(BlsError::Invalid),
    }
}

macro_rules! debug_as_hex {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "("))?;
                for byte in self.to_bytes() {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(")")
            }
        }
    )*};
}

debug_as_hex!(PublicKey, Signature);

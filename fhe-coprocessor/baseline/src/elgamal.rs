//! Keys and ciphertexts.

use std::fmt;
use std::ops::{Add, Sub};

use curve25519_dalek::{RistrettoPoint, Scalar, traits::Identity};
use rand_core::CryptoRng;
use tari_bulletproofs_plus::{
    generators::pedersen_gens::ExtensionDegree, range_parameters::RangeParameters,
    ristretto::create_pedersen_gens_with_extension_degree,
};
use zeroize::Zeroize;

/// Bits of an amount and of a balance in range proofs.
pub const AMOUNT_BITS: usize = 64;
/// Commitments in the largest range proof: the amount, and what is left.
pub const MAX_RANGES: usize = 2;

/// No generators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the library refused the generators of {AMOUNT_BITS}-bit range proofs: this is a fault of ours")]
pub struct GeneratorsError;

/// The points that all keys, ciphertexts and proofs share.
#[derive(Clone)]
pub struct Generators {
    /// G: of keys and of what blinds.
    pub blinding: RistrettoPoint,
    /// H: of values. The group's base point; nobody knows its logarithm to G, which is a hash.
    pub value: RistrettoPoint,
    pub(crate) range: RangeParameters<RistrettoPoint>,
}

impl fmt::Debug for Generators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generators").finish_non_exhaustive()
    }
}

impl Generators {
    /// Hashes 256 points and makes tables of their multiples.
    ///
    /// # Errors
    /// [`GeneratorsError`], never with the constants as they are.
    pub fn new() -> Result<Self, GeneratorsError> {
        let pedersen = create_pedersen_gens_with_extension_degree(ExtensionDegree::DefaultPedersen);
        let blinding = *pedersen.g_base_vec.first().ok_or(GeneratorsError)?;
        let value = pedersen.h_base;
        let range = RangeParameters::init(AMOUNT_BITS, MAX_RANGES, pedersen).map_err(|_| GeneratorsError)?;
        Ok(Self { blinding, value, range })
    }

    /// r·G + v·H.
    #[must_use]
    pub fn commit(&self, value: u64, blinding: &Scalar) -> RistrettoPoint {
        self.blinding * blinding + self.value * Scalar::from(value)
    }
}

/// A public key t·G.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub RistrettoPoint);

/// A secret t. Not zero.
#[derive(Clone)]
pub struct SecretKey(pub(crate) Scalar);

impl SecretKey {
    /// A random one.
    #[must_use]
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        loop {
            let secret = Scalar::random(rng);
            if secret != Scalar::ZERO {
                return Self(secret);
            }
        }
    }

    /// t·G: one multiplication.
    #[must_use]
    pub fn public_key(&self, generators: &Generators) -> PublicKey {
        PublicKey(generators.blinding * self.0)
    }

    /// v·H: one inversion and one multiplication.
    pub(crate) fn open(&self, ciphertext: &Ciphertext) -> RistrettoPoint {
        let mut inverse = self.0.invert();
        let blinding = ciphertext.handle * inverse;
        inverse.zeroize();
        ciphertext.commitment - blinding
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

/// A value for one key: X = r·pk and Y = r·G + v·H.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ciphertext {
    /// X.
    pub handle: RistrettoPoint,
    /// Y.
    pub commitment: RistrettoPoint,
}

impl Ciphertext {
    /// Zero, unblinded: what an account begins with.
    #[must_use]
    pub fn zero() -> Self {
        Self { handle: RistrettoPoint::identity(), commitment: RistrettoPoint::identity() }
    }

    /// Y = v·H: a value that everybody knows.
    #[must_use]
    pub fn public(generators: &Generators, value: u64) -> Self {
        Self { commitment: generators.value * Scalar::from(value), ..Self::zero() }
    }

    /// 64 bytes: X, Y.
    #[must_use]
    pub fn encode(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(self.handle.compress().as_bytes());
        bytes[32..].copy_from_slice(self.commitment.compress().as_bytes());
        bytes
    }
}

impl Add for Ciphertext {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { handle: self.handle + other.handle, commitment: self.commitment + other.commitment }
    }
}

impl Sub for Ciphertext {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { handle: self.handle - other.handle, commitment: self.commitment - other.commitment }
    }
}

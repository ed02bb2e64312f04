//! The two kinds of hints of the "Phone a Friend" article on helper-aided decryption, rebuilt for this scheme.
//!
//! **Baselines for `blindfold bench bte`, never used in production**: there a hint is the 16-byte session key, and two
//! fixed-base exponentiations check it without any of the conditions below (`verify_hint` is its naive form).
//!
//! | mode of the article | hint | bytes |
//! |---|---|---|
//! | bandwidth-optimized | k, the randomness of the encryption | 32 |
//! | verification-optimized | z = ek^k, the blinding factor | 576 |
//!
//! Both yield M or prove that the ciphertext was not made by the encryption algorithm. Batches are checked with one
//! random linear combination, whose weights must be drawn by the verifier after it has received the hints. It says
//! only that some hint is wrong, not which: halve the batch to find it.
//!
//! A weighted product in the target field says nothing about a factor of small order: the order of the cyclotomic
//! subgroup is r times a cofactor whose smallest prime is 4513. So every z is tested for membership in GT first.

use ark_bls12_381::{Config, Fq12, Fr, G1Affine, G1Projective};
use ark_ec::bls12::Bls12Config;
use ark_ec::{CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{CyclotomicMultSubgroup, Field, Zero};

use crate::encode::{self, DecodeError};
use crate::encryption::{randomness, unmask};
use crate::{Ciphertext, Gt, Reference};

#[cfg(test)]
mod tests;

/// Associated data, ciphertext, k (big-endian).
pub type RandomnessItem<'a> = (&'a [u8; 32], &'a Ciphertext, &'a [u8; 32]);
/// Associated data, ciphertext, z.
pub type TargetItem<'a> = (&'a [u8; 32], &'a Ciphertext, &'a [u8; 576]);
/// A random weight of 128 bits, little-endian: a false batch passes with probability 2^−128.
pub type Weight = [u8; 16];

/// Why hints were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// Not a canonical scalar, or not an element of the target field.
    #[error("the hint at position {position}: {source}")]
    Encoding {
        /// Position from 0.
        position: usize,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// An element of the target field outside the subgroup of order r.
    #[error("the hint at position {position} is not in GT")]
    NotInGroup {
        /// Position from 0.
        position: usize,
    },
    /// k is not what encrypting M under K would have used: wrong, or the ciphertext is malformed.
    #[error("the hint at position {position} is not the randomness of an encryption")]
    Randomness {
        /// Position from 0.
        position: usize,
    },
    /// \[k\]₁ is not the header, or the weighted sums differ: at least one hint is wrong or one ciphertext malformed.
    #[error("the hints do not belong to the ciphertexts")]
    Equation,
}

/// The decoded headers of a batch. A verifier has them from admission, where each was checked to be in G1: so decoding
/// is no part of what verifying hints costs.
pub struct Headers {
    bytes: Vec<[u8; 48]>,
    points: Vec<G1Affine>,
}

impl Headers {
    /// Decodes and checks each: a square root and a subgroup check.
    ///
    /// # Errors
    /// [`DecodeError::G1`].
    pub fn decode(headers: &[[u8; 48]]) -> Result<Self, DecodeError> {
        let points = headers.iter().map(encode::g1).collect::<Result<_, _>>()?;
        Ok(Self { bytes: headers.to_vec(), points })
    }

    /// # Panics
    /// If these are not the headers of `ciphertexts`, or there is not one weight for each.
    fn assert_match<'a>(&self, ciphertexts: impl Iterator<Item = &'a Ciphertext>, weights: &[Weight]) {
        assert!(ciphertexts.map(|ciphertext| &ciphertext.c).eq(&self.bytes), "headers of another batch");
        assert_eq!(weights.len(), self.points.len(), "one weight for each ciphertext");
    }
}

/// The bandwidth-optimized hint of a ciphertext: k, which whoever opened it derives from K and M. Three hashes.
pub fn randomness_hint(ad: &[u8; 32], message: &[u8], key: &[u8; 16]) -> [u8; 32] {
    encode::scalar_bytes(&randomness(key, ad, message))
}

impl Reference {
    /// Verifies one bandwidth-optimized hint and returns M: \[k\]₁ = C, and k is what M and K, recovered with ek^k,
    /// give. One exponentiation in G1 and one in GT, both naive.
    ///
    /// # Errors
    /// [`HintError`], with position 0.
    pub fn verify_randomness_hint(&self, item: RandomnessItem<'_>) -> Result<Vec<u8>, HintError> {
        let k = scalar_at(0, item.2)?;
        if encode::g1_bytes(&(G1Projective::generator() * k).into_affine()) != item.1.c {
            return Err(HintError::Equation);
        }
        self.message_of(0, &item, k)
    }

    /// Verifies bandwidth-optimized hints and returns each M. On the G1 side one combination,
    /// Σ wᵢ·Cᵢ = \[Σ wᵢ·kᵢ\]₁: sound, for the Cᵢ are in the group of prime order. The GT side cannot be combined, for
    /// ek^kᵢ must be known to recover Mᵢ: a naive exponentiation in GT for each item, a multi-scalar multiplication
    /// with 128-bit scalars, one exponentiation in G1.
    ///
    /// # Errors
    /// [`HintError`].
    ///
    /// # Panics
    /// If `headers` or `weights` are not those of `items`.
    pub fn verify_randomness_hints(
        &self,
        headers: &Headers,
        items: &[RandomnessItem<'_>],
        weights: &[Weight],
    ) -> Result<Vec<Vec<u8>>, HintError> {
        headers.assert_match(items.iter().map(|item| item.1), weights);
        let scalars = items.iter().enumerate().map(|(position, item)| scalar_at(position, item.2));
        let scalars = scalars.collect::<Result<Vec<Fr>, _>>()?;
        if !headers_have_exponents(headers, &scalars, weights) {
            return Err(HintError::Equation);
        }
        let items = items.iter().zip(scalars).enumerate();
        items.map(|(position, (item, k))| self.message_of(position, item, k)).collect()
    }

    /// Verifies verification-optimized hints and returns each M. Kᵢ, Mᵢ and kᵢ follow from zᵢ by hashing; then
    /// Π zᵢ^wᵢ = ek^(Σ wᵢ·kᵢ) and Σ wᵢ·Cᵢ = \[Σ wᵢ·kᵢ\]₁ show zᵢ = ek^kᵢ and Cᵢ = \[kᵢ\]₁ for all i. A membership test
    /// for each item (an exponentiation by the 64-bit x), a multi-exponentiation in GT and one in G1 with 128-bit
    /// exponents, one single exponentiation in each.
    ///
    /// # Errors
    /// [`HintError`].
    ///
    /// # Panics
    /// If `headers` or `weights` are not those of `items`.
    pub fn verify_target_hints(
        &self,
        headers: &Headers,
        items: &[TargetItem<'_>],
        weights: &[Weight],
    ) -> Result<Vec<Vec<u8>>, HintError> {
        headers.assert_match(items.iter().map(|item| item.1), weights);
        let factors = items.iter().enumerate().map(|(position, (_, _, hint))| {
            let z = encode::gt(hint).map_err(|source| HintError::Encoding { position, source })?;
            if in_target_group(&z.0) { Ok(z) } else { Err(HintError::NotInGroup { position }) }
        });
        let factors = factors.collect::<Result<Vec<Gt>, _>>()?;
        self.target_equations(headers, items, &factors, weights).ok_or(HintError::Equation)
    }

    /// The equations of [`Reference::verify_target_hints`]: **sound only for factors in GT**.
    fn target_equations(
        &self,
        headers: &Headers,
        items: &[TargetItem<'_>],
        factors: &[Gt],
        weights: &[Weight],
    ) -> Option<Vec<Vec<u8>>> {
        let opened = items.iter().zip(factors).map(|((ad, ciphertext, _), z)| unmask(z, ad, ciphertext));
        let (messages, scalars): (Vec<_>, Vec<_>) = opened.map(|(_, message, k)| (message, k)).unzip();
        let factors_have_exponents =
            weighted_sum::<Gt>(factors, weights) == self.ek * exponent(&scalars, weights);
        (factors_have_exponents && headers_have_exponents(headers, &scalars, weights)).then_some(messages)
    }

    /// M of a ciphertext whose header is known to be \[k\]₁.
    fn message_of(&self, position: usize, item: &RandomnessItem<'_>, k: Fr) -> Result<Vec<u8>, HintError> {
        let (_, message, expected) = unmask(&(self.ek * k), item.0, item.1);
        if expected == k { Ok(message) } else { Err(HintError::Randomness { position }) }
    }
}

fn scalar_at(position: usize, bytes: &[u8; 32]) -> Result<Fr, HintError> {
    encode::scalar(bytes).map_err(|source| HintError::Encoding { position, source })
}

/// Σ wᵢ·kᵢ.
fn exponent(scalars: &[Fr], weights: &[Weight]) -> Fr {
    scalars.iter().zip(weights).map(|(k, weight)| *k * Fr::from(u128::from_le_bytes(*weight))).sum()
}

/// Σ wᵢ·Cᵢ = \[Σ wᵢ·kᵢ\]₁?
fn headers_have_exponents(headers: &Headers, scalars: &[Fr], weights: &[Weight]) -> bool {
    weighted_sum::<G1Projective>(&headers.points, weights)
        == G1Projective::generator() * exponent(scalars, weights)
}

/// Σ wᵢ·Pᵢ (in GT: Π zᵢ^wᵢ) in two halves of 64 bits; for full-width scalars arkworks would also walk through the
/// empty upper half.
fn weighted_sum<G: VariableBaseMSM>(bases: &[G::MulBase], weights: &[Weight]) -> G {
    let values = weights.iter().map(|weight| u128::from_le_bytes(*weight));
    let (low, high): (Vec<u64>, Vec<u64>) = values.map(|w| (w as u64, (w >> 64) as u64)).unzip();
    let mut sum = G::msm_u64(bases, &high);
    for _ in 0..64 {
        sum.double_in_place();
    }
    sum + G::msm_u64(bases, &low)
}

/// In the subgroup of order r? First in the cyclotomic subgroup, z^(p⁴)·z = z^(p²), then z^p = z^x: for
/// gcd(p⁴ − p² + 1, p − x) = r. (Scott, ePrint 2021/1130.)
fn in_target_group(z: &Fq12) -> bool {
    let square = frobenius(z, 2);
    // The faster squarings of the exponentiation are right in the cyclotomic subgroup only.
    !z.is_zero() && frobenius(&square, 2) * z == square && frobenius(z, 1) == power_x(z)
}

fn frobenius(z: &Fq12, power: usize) -> Fq12 {
    let mut out = *z;
    out.frobenius_map_in_place(power);
    out
}

/// z^x, z cyclotomic.
fn power_x(z: &Fq12) -> Fq12 {
    let mut power = z.cyclotomic_exp(Config::X);
    if Config::X_IS_NEGATIVE {
        power.cyclotomic_inverse_in_place();
    }
    power
}

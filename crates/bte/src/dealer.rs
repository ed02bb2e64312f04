//! Set-up by one trusted party: **for development only**.
//!
//! Whoever runs the dealer learns τ for a moment and could keep it: it can then open every ciphertext ever made under
//! these parameters, without the committee and without trace. Production keys come from a ceremony in which no party
//! ever knows τ.
//!
//! τ and the shares are wiped. \[τ^(B+1)\]₂ is never computed, not even on the way: ek comes from e(\[τ\]₁, h_B), and
//! the powers continue from τ^B·τ².

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::curve::{G1, G2, Scalar, miller_loop};
use crate::key::DEFAULT_WINDOW_BITS;
use crate::parameters::{Elements, check_shape};
use crate::{EncryptionKey, MemberKey, Parameters, ParametersError, SCALAR_BYTES, par};

/// Why no keys were dealt; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DealError {
    /// B, n or t out of range.
    #[error(transparent)]
    Shape(#[from] ParametersError),
    /// τ is zero or not below r.
    #[error("the secret is not a canonical non-zero scalar")]
    Secret,
    /// Shares given for another number of exponents or members, or not below r.
    #[error("shares of power {power} are missing, too many, or not canonical scalars")]
    Shares {
        /// The exponent i, from 1.
        power: usize,
    },
}

/// Deals fresh parameters and the keys of members 1..=n. **Development only**, see the module's words. Costs about
/// 0.25 ms for each of the (2 + n)·B points, in parallel.
///
/// # Errors
/// [`DealError::Shape`].
pub fn deal(
    max_batch: u32,
    members: u16,
    threshold: u16,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<(Parameters, Vec<MemberKey>), DealError> {
    check_shape(max_batch, members, threshold)?;
    let mut tau = Zeroizing::new(Scalar::random(rng));
    while tau.is_zero() {
        *tau = Scalar::random(rng);
    }
    let powers = powers(&tau, max_batch as usize);
    let shares =
        powers[..max_batch as usize].iter().map(|power| share(power, members, threshold, rng)).collect();
    Ok(assemble(max_batch, members, threshold, &tau, &powers, shares))
}

/// Parameters and keys from a given τ and given shares (`shares[i−1][j−1]` = σ_j^i): for conformance vectors.
///
/// # Errors
/// [`DealError`].
#[doc(hidden)]
pub fn from_secrets(
    max_batch: u32,
    members: u16,
    threshold: u16,
    tau: &[u8; SCALAR_BYTES],
    shares: &[Vec<[u8; SCALAR_BYTES]>],
) -> Result<(Parameters, Vec<MemberKey>), DealError> {
    check_shape(max_batch, members, threshold)?;
    let tau = Scalar::from_bytes(tau).filter(|tau| !tau.is_zero()).ok_or(DealError::Secret)?;
    let tau = Zeroizing::new(tau);
    if shares.len() != max_batch as usize {
        return Err(DealError::Shares { power: shares.len().min(max_batch as usize) + 1 });
    }
    let mut scalars = Vec::with_capacity(shares.len());
    for (row, power) in shares.iter().zip(1..) {
        let row: Option<Vec<Scalar>> = row.iter().map(Scalar::from_bytes).collect();
        let row = row.filter(|row| row.len() == usize::from(members)).ok_or(DealError::Shares { power })?;
        scalars.push(Zeroizing::new(row));
    }
    let powers = powers(&tau, max_batch as usize);
    Ok(assemble(max_batch, members, threshold, &tau, &powers, scalars))
}

/// τ^1 … τ^B, τ^(B+2) … τ^2B.
fn powers(tau: &Scalar, max_batch: usize) -> Zeroizing<Vec<Scalar>> {
    let mut powers = Zeroizing::new(Vec::with_capacity(2 * max_batch - 1));
    let square = Zeroizing::new(tau.mul(tau));
    let mut power = Zeroizing::new(*tau);
    for i in 1..2 * max_batch {
        powers.push(*power);
        *power = power.mul(if i == max_batch { &square } else { tau });
    }
    powers
}

/// Shamir shares for members 1..=n of a polynomial of degree t−1 whose value at 0 is `secret`.
fn share(
    secret: &Scalar,
    members: u16,
    threshold: u16,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Zeroizing<Vec<Scalar>> {
    let mut coefficients = Zeroizing::new(Vec::with_capacity(usize::from(threshold)));
    coefficients.push(*secret);
    for _ in 1..threshold {
        coefficients.push(Scalar::random(rng));
    }
    let mut shares = Zeroizing::new(Vec::with_capacity(usize::from(members)));
    for member in 1..=members {
        let at = Scalar::from_u64(u64::from(member));
        shares.push(coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum.mul(&at).add(c)));
    }
    shares
}

fn assemble(
    max_batch: u32,
    members: u16,
    threshold: u16,
    tau: &Scalar,
    powers: &[Scalar],
    shares: Vec<Zeroizing<Vec<Scalar>>>,
) -> (Parameters, Vec<MemberKey>) {
    let batch = max_batch as usize;
    let h = G2::to_affine_batch(&par::map(powers.len(), |i| G2::generator().mul(&powers[i])));
    let keys = par::map(usize::from(members) * batch, |index| {
        G2::generator().mul(&shares[index % batch][index / batch])
    });
    let tau_g1 = G1::generator().mul_secret(tau);
    let powers_g1 = [tau_g1.to_affine(), tau_g1.mul_secret(tau).to_affine()];
    let ek = miller_loop(&powers_g1[0], &h[batch - 1]).easy_part().hard_part();
    let parameters = Parameters::from_elements(Elements {
        max_batch: batch,
        members,
        threshold,
        powers_g1,
        ek: EncryptionKey::from_element(ek, DEFAULT_WINDOW_BITS),
        h,
        verification_keys: G2::to_affine_batch(&keys),
    });
    let member_keys = (1..=members)
        .map(|member| {
            let mut own = Zeroizing::new(Vec::with_capacity(batch));
            own.extend(shares.iter().map(|row| row[usize::from(member) - 1]));
            MemberKey::from_scalars(member, own)
        })
        .collect();
    (parameters, member_keys)
}

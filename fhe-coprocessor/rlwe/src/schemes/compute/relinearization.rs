//! The key that turns c0 + c1·s + c2·s² back into two parts.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::ComputeError;
use crate::ring::{DecodeError, Poly, Ring, Spectrum};
use crate::rlwe::{
    Parameters, PublicPolynomial, SEED_BYTES, SecretKey, Xof, pack_rows, row_bytes, uniform, unpack_poly,
};
use crate::tags;

/// Digits for each prime: the residue is cut in two halves of w = 27 bits.
const HALVES: usize = 2;

/// For each prime q_i and each half h of a residue: b_ih = −a_ih·s + e_ih + (q/q_i)·2^(w·h)·s², a_ih from the
/// deployment's seed.
///
/// Halves, because whole residues as digits would bring the most noise of a product by far: 2^26 more, which
/// [`mask`](super::Compute::mask) would lack to drown it.
#[derive(Clone, PartialEq, Eq)]
pub struct RelinearizationKey {
    parameters: Arc<Parameters>,
    b: Vec<Poly>,
    /// Of b_ih and a_ih.
    spectra: Vec<(Spectrum, Spectrum)>,
    /// (q/q_i)^(−1) mod q_i.
    inverses: Vec<u64>,
}

impl fmt::Debug for RelinearizationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelinearizationKey").field("parts", &self.b.len()).finish_non_exhaustive()
    }
}

impl RelinearizationKey {
    /// The key of a secret and its wallet's seed: the same seed always gives it back, as two keys of different errors
    /// would show more of the secret than one. Costs 8·k² + 4·k transforms for k primes.
    #[must_use]
    pub fn derive(secret: &SecretKey, seed: &[u8; SEED_BYTES]) -> Self {
        let public = secret.public_polynomial();
        let parameters = public.parameters();
        let ring = parameters.ring();
        let context = public.context();
        let small = Zeroizing::new(ring.from_small(secret.coefficients()));
        let square = Zeroizing::new(ring.mul_small(&ring.forward(&small), secret.coefficients()));
        let part = |part: usize| {
            let (index, half) = (part / HALVES, part % HALVES);
            let a = part_a(public, &context, part);
            let mut xof = Xof::new(tags::RELINEARIZATION_ERROR, &[&context, &[part as u8], seed]);
            let error = xof.small(ring.degree(), parameters.literal().error_bound);
            // q/q_i vanishes modulo every other prime.
            let modulus = ring.moduli().nth(index).copied();
            let factor =
                modulus.map_or(0, |m| m.mul(cofactor(ring, index), 1 << (half_bits(m.bits()) * half as u32)));
            let scaled = square.residues().chunks(ring.degree()).enumerate().flat_map(|(row, residues)| {
                residues
                    .iter()
                    .map(move |&x| modulus.filter(|_| row == index).map_or(0, |m| m.mul(x, factor)))
            });
            let mut b = ring.from_residues(scaled.collect()).unwrap_or_else(|| ring.zero());
            ring.add_assign(&mut b, &Zeroizing::new(ring.from_small(&error)));
            ring.sub_assign(&mut b, &Zeroizing::new(ring.mul_small(&a, secret.coefficients())));
            b
        };
        let b = (0..parts(parameters)).map(part).collect();
        Self::from_parts(public, b)
    }

    fn from_parts(public: &PublicPolynomial, b: Vec<Poly>) -> Self {
        let parameters = public.parameters();
        let ring = parameters.ring();
        let context = public.context();
        let spectra =
            b.iter().enumerate().map(|(i, b)| (ring.forward(b), part_a(public, &context, i))).collect();
        let inverses =
            ring.moduli().enumerate().map(|(i, modulus)| modulus.inverse(cofactor(ring, i))).collect();
        Self { parameters: Arc::clone(parameters), b, spectra, inverses }
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// The two parts that stand for c2·s²: Σ d_ih·b_ih and Σ d_ih·a_ih, where d_i0 + 2^w·d_i1 = \[c2·(q/q_i)^(−1)\]
    /// centred modulo q_i and |d_ih| ≤ 2^(w−1). Costs 2·k² + 2·k transforms for k primes.
    pub(super) fn apply(&self, c2: &Poly) -> (Poly, Poly) {
        let ring = self.parameters.ring();
        let mut sums: Option<(Spectrum, Spectrum)> = None;
        let rows = c2.residues().chunks(ring.degree()).zip(ring.moduli());
        for (((row, modulus), &inverse), spectra) in
            rows.zip(&self.inverses).zip(self.spectra.chunks_exact(HALVES))
        {
            let width = half_bits(modulus.bits());
            let digits = row.iter().map(|&x| halves(modulus.centre(modulus.mul(x, inverse)), width));
            let (low, high): (Vec<i64>, Vec<i64>) = digits.unzip();
            for (digit, (b, a)) in [low, high].iter().zip(spectra) {
                let digit = ring.forward(&ring.from_signed(digit));
                let (mut first, mut second) = (digit.clone(), digit);
                ring.mul_assign(&mut first, b);
                ring.mul_assign(&mut second, a);
                match &mut sums {
                    Some((sum_b, sum_a)) => {
                        ring.add_spectrum(sum_b, &first);
                        ring.add_spectrum(sum_a, &second);
                    }
                    None => sums = Some((first, second)),
                }
            }
        }
        sums.map_or_else(|| (ring.zero(), ring.zero()), |(b, a)| (ring.inverse(&b), ring.inverse(&a)))
    }

    /// t·Σ_i N·B·2·2^(w−1).
    pub(super) fn noise(parameters: &Parameters) -> Option<u128> {
        let literal = parameters.literal();
        let digits: u128 = parameters.ring().moduli().map(|q| 1 << half_bits(q.bits())).sum();
        let factor = literal.degree as u128 * u128::from(literal.error_bound);
        digits.checked_mul(factor)?.checked_mul(literal.plaintext_modulus.into())
    }

    /// Length of an encoding: 2·k² packed rows of N residues, 221,184 bytes for `compute`.
    #[must_use]
    pub fn encoded_bytes(parameters: &Parameters) -> usize {
        parts(parameters) * row_bytes(parameters, parameters.degree())
    }

    /// Every b_ih packed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_bytes(&self.parameters));
        self.b.iter().for_each(|b| pack_rows(&self.parameters, b.residues(), &mut bytes));
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else. That it belongs to a secret is not checked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(public: &PublicPolynomial, bytes: &[u8]) -> Result<Self, DecodeError> {
        let parameters = public.parameters();
        let expected = Self::encoded_bytes(parameters);
        if bytes.len() != expected {
            return Err(DecodeError::Length { expected, found: bytes.len() });
        }
        let rows = bytes.chunks(row_bytes(parameters, parameters.degree()));
        let b = rows.map(|part| unpack_poly(parameters, part)).collect::<Result<_, _>>()?;
        Ok(Self::from_parts(public, b))
    }

    pub(super) fn check(&self, parameters: &Parameters) -> Result<(), ComputeError> {
        if *self.parameters == *parameters { Ok(()) } else { Err(ComputeError::Parameters) }
    }
}

/// How many b_ih there are.
fn parts(parameters: &Parameters) -> usize {
    HALVES * parameters.literal().primes.len()
}

/// w for a prime of so many bits.
const fn half_bits(bits: u32) -> u32 {
    bits.div_ceil(2)
}

/// low + 2^w·high = x with −2^(w−1) ≤ low < 2^(w−1), and |high| ≤ 2^(w−1) for |x| < 2^(2w−1).
const fn halves(x: i64, w: u32) -> (i64, i64) {
    let middle = 1 << (w - 1);
    let low = ((x + middle) & ((1 << w) - 1)) - middle;
    (low, (x - low) >> w)
}

/// a_ih, as it is used.
fn part_a(public: &PublicPolynomial, context: &[u8], part: usize) -> Spectrum {
    let mut xof = Xof::new(tags::RELINEARIZATION, &[context, &[part as u8]]);
    public.parameters().ring().forward(&uniform(public.parameters(), &mut xof))
}

/// q/q_i mod q_i.
fn cofactor(ring: &Ring, index: usize) -> u64 {
    let Some(modulus) = ring.moduli().nth(index) else { return 0 };
    let others = ring.moduli().filter(|other| *other != modulus);
    others.fold(1, |product, other| modulus.mul(product, modulus.reduce(other.value())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_the_digit_again_and_stay_small() {
        let largest = 18_014_398_492_704_769_i64 / 2;
        for x in
            [0, 1, -1, largest, -largest, (1 << 26) - 1, 1 << 26, -(1 << 26), -(1 << 26) - 1, (1 << 53) - 1]
        {
            let (low, high) = halves(x, 27);
            assert_eq!(low + (high << 27), x);
            assert!(low.abs() <= 1 << 26 && high.abs() <= 1 << 26, "{x}: {low}, {high}");
        }
    }
}

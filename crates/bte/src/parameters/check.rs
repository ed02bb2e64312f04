//! Do the elements of the parameters fit together? Batched with random 128-bit weights.

use rand_core::CryptoRng;

use super::{Parameters, ParametersError};
use crate::curve::{G1Affine, G2, G2Affine, Scalar, miller_product};
use crate::par;
use crate::weights::random_weights;

/// Which relation does not hold. Whoever made the parameters is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// e(\[τ\]₁, h_i) ≠ e(g1, h_(i+1)) for some i ∉ {B, B+1} (h₀ = g2).
    #[error("consecutive powers in G2 are not multiples by the same secret")]
    Powers,
    /// e(\[τ²\]₁, g2) ≠ e(\[τ\]₁, h₁).
    #[error("the second power in G1 is not the square of the first")]
    SquareInG1,
    /// e(\[τ²\]₁, h_B) ≠ e(g1, h_(B+2)).
    #[error("the powers in G2 do not continue over the gap")]
    Gap,
    /// ek ≠ e(\[τ\]₁, h_B).
    #[error("the encryption key does not belong to the powers")]
    EncryptionKey,
    /// The v_j^i of some t members do not interpolate to h_i.
    #[error("verification keys do not share the powers with the stated threshold")]
    VerificationKeys,
}

impl Parameters {
    /// Checks all relations of the public parameters: the powers, the step over the missing h_(B+1), ek, and that the
    /// verification keys of any t members interpolate to the powers. A wrong file passes with probability 2^−128.
    /// Costs n + 3 multi-scalar multiplications of length B in G2 and a few pairings.
    ///
    /// # Errors
    /// [`ParametersError::Check`].
    pub fn check(&self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), ParametersError> {
        self.check_powers(rng)?;
        self.check_verification_keys(rng)?;
        Ok(())
    }

    fn check_powers(&self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), CheckError> {
        let batch = self.max_batch();
        let [tau, tau_squared] = *self.powers_g1();
        let minus_g1 = G1Affine::generator().neg();
        let g2 = G2Affine::generator();
        // Present for every index the relations name: see the length check of the file.
        let h = |i: usize| if i == 0 { Some(&g2) } else { self.h_point(i) };

        let (mut from, mut to) = (Vec::new(), Vec::new());
        for i in (0..2 * batch).filter(|i| *i != batch && *i != batch + 1) {
            if let (Some(low), Some(high)) = (h(i), h(i + 1)) {
                from.push(*low);
                to.push(*high);
            }
        }
        assert_eq!(from.len(), if batch == 1 { 1 } else { 2 * batch - 2 });
        let weights = random_weights(from.len(), rng);
        let (from, to) = par::join(|| G2::multi_scalar(&from, &weights), || G2::multi_scalar(&to, &weights));
        if !product_is_one(&[(tau, from.to_affine()), (minus_g1, to.to_affine())]) {
            return Err(CheckError::Powers);
        }
        if let Some(first) = h(1)
            && !product_is_one(&[(tau_squared, g2), (tau.neg(), *first)])
        {
            return Err(CheckError::SquareInG1);
        }
        if let (Some(below), Some(above)) = (h(batch), h(batch + 2))
            && !product_is_one(&[(tau_squared, *below), (minus_g1, *above)])
        {
            return Err(CheckError::Gap);
        }
        let last = h(batch).map(|last| miller_product(&[(tau, *last)]).easy_part().hard_part());
        if last.as_ref() != Some(self.ek().element()) {
            return Err(CheckError::EncryptionKey);
        }
        Ok(())
    }

    /// For each i the points (0, h_i), (1, v_1^i) … (n, v_n^i) lie on a polynomial of degree below t iff they are
    /// orthogonal to the dual code; a random codeword of it decides (SCRAPE, ePrint 2017/216, section 2.1), and random
    /// weights take all i at once.
    fn check_verification_keys(&self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), CheckError> {
        let (members, threshold) = (u64::from(self.members()), u64::from(self.threshold()));
        let weights = random_weights(self.max_batch(), rng);
        let polynomial: Vec<Scalar> = (0..=members - threshold).map(|_| Scalar::random(rng)).collect();
        let powers: Vec<G2Affine> = (1..=self.max_batch()).filter_map(|i| self.h_point(i).copied()).collect();
        let terms = par::map(members as usize + 1, |j| {
            let row = if j == 0 { Some(&powers[..]) } else { self.verification_keys(j as u16) };
            let sum = row.map_or_else(G2::default, |row| G2::multi_scalar(row, &weights));
            let j = j as u64;
            let at = Scalar::from_u64(j);
            let value = polynomial.iter().rev().fold(Scalar::ZERO, |sum, c| sum.mul(&at).add(c));
            let denominator = (0..=members)
                .filter(|l| *l != j)
                .fold(Scalar::one(), |product, l| product.mul(&at.sub(&Scalar::from_u64(l))));
            sum.mul(&value.mul(&denominator.inverse()))
        });
        let sum = terms.iter().fold(G2::default(), |sum, term| sum.add(term));
        if sum.is_identity() { Ok(()) } else { Err(CheckError::VerificationKeys) }
    }
}

/// Π e(p, q) = 1?
pub(crate) fn product_is_one(pairs: &[(G1Affine, G2Affine)]) -> bool {
    miller_product(pairs).easy_part().hard_part().is_one()
}

//! Showing a result to the holder of the secret without showing how it was computed.

use zeroize::Zeroizing;

use super::ciphertext::bounded;
use super::{Compute, ComputeCiphertext, ComputeError};
use crate::rlwe::{PublicKey, PublicPolynomial, SEED_BYTES, Xof};
use crate::tags;

impl Compute {
    /// Adds an encryption of zero whose noise takes all that is left: c1 += a·u + e1, c0 += b·u + f at the kept
    /// coefficients, f uniform in −R..=R, R = (q/2 − 1 − W)/t − 2·N·B. All of it is a function of seed and context.
    ///
    /// Who holds s, knows one operand with its randomness and sees the result learns the kept coefficients of the
    /// message and, under two conditions, nothing else: seed and operands stay hidden from him, and his key is an
    /// honest one. For f drowns e·u + e1·s and the noise of the result (for each kept coefficient, the statistical
    /// distance to a result without them is at most (2·N·B + W/t + 1)/(2R + 1)); then u is met in c1 alone, where a·u + e1
    /// hides what stood there (decision RLWE). This is the noise flooding of Gentry (A fully homomorphic encryption
    /// scheme, 2009, section 5.2). [`keep`](ComputeCiphertext::keep) what is to be shown before, and mask last: nothing
    /// can be added afterwards.
    ///
    /// **One context, one result**: two results under one mask differ by what it was to hide. Give everything that the
    /// result depends on as the context. Costs four transforms for each prime, and N products for each kept
    /// coefficient and prime.
    ///
    /// # Errors
    /// [`ComputeError::Parameters`]; [`ComputeError::Noise`] where no noise is left to add.
    pub fn mask(
        &self,
        result: &mut ComputeCiphertext,
        (public, key): (&PublicPolynomial, &PublicKey),
        seed: &[u8; SEED_BYTES],
        context: &[&[u8]],
    ) -> Result<(), ComputeError> {
        let parameters = self.parameters();
        let same = *result.parameters == **parameters
            && **public.parameters() == **parameters
            && **key.parameters() == **parameters;
        if !same {
            return Err(ComputeError::Parameters);
        }
        let literal = parameters.literal();
        let (t, small) = (
            u128::from(literal.plaintext_modulus),
            2 * literal.degree as u128 * u128::from(literal.error_bound),
        );
        let room = (parameters.modulus() / 2 - 1).saturating_sub(result.noise) / t;
        let range = room.checked_sub(small).filter(|&range| range > 0).ok_or(ComputeError::Noise)?;
        let noise = bounded(parameters, t.checked_mul(room).and_then(|more| more.checked_add(result.noise)))?;

        let own = public.context();
        let parts: Vec<&[u8]> = [&own[..], seed].into_iter().chain(context.iter().copied()).collect();
        let mut xof = Xof::new(tags::MASK, &parts);
        let u = xof.small(literal.degree, 1);
        let e1 = xof.small(literal.degree, literal.error_bound);
        let flood = xof.wide(result.kept, 2 * range);

        let ring = parameters.ring();
        ring.add_assign(&mut result.c1, &Zeroizing::new(ring.mul_small(public.spectrum(), &u)));
        ring.add_assign(&mut result.c1, &Zeroizing::new(ring.from_small(&e1)));
        let shared = Zeroizing::new(ring.leading_of_product(key.polynomial(), &u, result.kept));
        let mut residues = result.c0.residues().to_vec();
        let rows = residues.chunks_exact_mut(ring.degree()).zip(shared.chunks_exact(result.kept));
        for ((row, shared), modulus) in rows.zip(ring.moduli()) {
            let least = modulus.reduce_wide(range);
            for ((c0, &product), &flood) in row.iter_mut().zip(shared).zip(flood.iter()) {
                let error = modulus.sub(modulus.reduce_wide(flood), least);
                *c0 = modulus.add(*c0, modulus.add(product, error));
            }
        }
        result.c0 = ring.from_residues(residues).ok_or(ComputeError::Parameters)?;
        result.noise = noise;
        Ok(())
    }
}

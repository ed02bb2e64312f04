//! Keys from a seed, and keys from known secrets.

use ark_ec::scalar_mul::{BatchMulPreprocessing, ScalarMul};
use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{Field, PrimeField, Zero};
use ark_poly::EvaluationDomain;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::SetupError;
use crate::circuit::Circuit;
use crate::key::{Origin, ProvingKey, Specific, VerifyingKey, query};
use crate::r1cs::R1cs;
use crate::{hash, par, qap, tags};

/// The secrets of a key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Secrets<F: PrimeField> {
    pub(crate) tau: F,
    pub(crate) alpha: F,
    pub(crate) beta: F,
    pub(crate) delta: F,
    pub(crate) sigma: F,
}

/// A development key: the secrets follow from the seed and the circuit, so whoever has the seed can forge proofs. The
/// key is marked [`Origin::Development`]. One multiplication of a generator for each element of the key.
///
/// # Errors
/// [`SetupError::Synthesis`] and [`SetupError::Domain`].
pub fn development<E: Pairing, C: Circuit<E::ScalarField>>(
    circuit: &C,
    seed: &[u8; 32],
) -> Result<ProvingKey<E>, SetupError> {
    let r1cs = R1cs::of(circuit)?;
    let domain = qap::domain(&r1cs)?;
    let mut counter = 0u32;
    loop {
        let message: [&[u8]; 3] = [seed, r1cs.digest(), &counter.to_be_bytes()];
        let scalars = Zeroizing::new(hash::to_field::<E::ScalarField>(tags::DEVELOPMENT, &message, 5));
        if let [tau, alpha, beta, delta, sigma] = scalars[..] {
            let zero_of_z = domain.evaluate_vanishing_polynomial(tau).is_zero();
            if !zero_of_z && scalars.iter().all(|scalar| !scalar.is_zero()) {
                let secrets = Secrets { tau, alpha, beta, delta, sigma };
                return generate(&r1cs, &secrets, Origin::Development);
            }
        }
        counter += 1;
    }
}

/// The key of known secrets, none of them 0 and τ no root of unity of the domain.
pub(crate) fn generate<E: Pairing>(
    r1cs: &R1cs<E::ScalarField>,
    secrets: &Secrets<E::ScalarField>,
    origin: Origin,
) -> Result<ProvingKey<E>, SetupError> {
    let Secrets { tau, alpha, beta, delta, sigma } = *secrets;
    let domain = qap::domain(r1cs)?;
    let lagrange = Zeroizing::new(domain.evaluate_all_lagrange_coefficients(tau));
    let [u, v, w] = qap::at_point(r1cs, &lagrange).map(Zeroizing::new);
    let k: Zeroizing<Vec<E::ScalarField>> = Zeroizing::new(
        u.iter().zip(v.iter()).zip(w.iter()).map(|((u, v), w)| beta * u + alpha * v + w).collect(),
    );
    let delta_inverse = delta.inverse().unwrap_or_default();
    let first = domain.evaluate_vanishing_polynomial(tau) * delta_inverse;
    let powers = std::iter::successors(Some(first), |last| Some(*last * tau)).take(domain.size() - 1);
    let powers: Zeroizing<Vec<E::ScalarField>> = Zeroizing::new(powers.collect());
    let (public, witness) = k.split_at(r1cs.shape().public());
    let (committed, private) = witness.split_at(r1cs.committed());
    let scaled = |values: &[E::ScalarField], factor: E::ScalarField| {
        Zeroizing::new(values.iter().map(|value| *value * factor).collect::<Vec<_>>())
    };

    let g1 = Multiples::<E::G1>::new(4 * r1cs.variables() + domain.size());
    let g2 = Multiples::<E::G2>::new(r1cs.variables());
    let blinding_base = ProvingKey::<E>::blinding_base();
    let verifying = VerifyingKey {
        origin,
        shape: *r1cs.shape(),
        circuit: *r1cs.digest(),
        alpha: (E::G1Affine::generator() * alpha).into_affine(),
        beta: (E::G2Affine::generator() * beta).into_affine(),
        delta: (E::G2Affine::generator() * delta).into_affine(),
        sigma: (E::G2Affine::generator() * sigma).into_affine(),
        public: g1.times(public),
    };
    let b = query(g2.times(&v));
    let at_b: Vec<E::ScalarField> = b.variables.iter().map(|variable| v[*variable as usize]).collect();
    Ok(ProvingKey {
        verifying,
        beta: (E::G1Affine::generator() * beta).into_affine(),
        delta: (E::G1Affine::generator() * delta).into_affine(),
        a: query(g1.times(&u)),
        b_g1: g1.times(&at_b),
        b,
        committed: g1.times(committed),
        specific: Specific {
            quotient: g1.times(&powers),
            private: g1.times(&scaled(private, delta_inverse)),
            unblind: (blinding_base * delta_inverse).into_affine(),
            knowledge: g1.times(&scaled(committed, sigma)),
            knowledge_blinding: (blinding_base * sigma).into_affine(),
        },
    })
}

/// A table of the generator's multiples.
struct Multiples<G: CurveGroup>(BatchMulPreprocessing<G>);

impl<G: CurveGroup> Multiples<G> {
    fn new(count: usize) -> Self {
        Self(BatchMulPreprocessing::new(G::generator(), count.max(1)))
    }

    fn times(&self, scalars: &[G::ScalarField]) -> Vec<<G as CurveGroup>::Affine>
    where
        G: ScalarMul<MulBase = <G as CurveGroup>::Affine>,
    {
        par::pieces(scalars.len(), 4, 64, |range| self.0.batch_mul(&scalars[range])).concat()
    }
}

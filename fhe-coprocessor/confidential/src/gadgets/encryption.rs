//! That a ciphertext is a fresh encryption of an amount to given keys.
//!
//! c1 = a·u + e1 is a [`NoisyProduct`]. For recipient i and limb j, with P_i = b_i·u ([`FullProduct`]) over the integers:
//!
//! c0_ij = P_ij − P_i(N+j) + e0_ij + Δ·v_j − q·k_ij, with e0 in [−16, 16], v_j a byte, |k_ij| ≤ 2^15: |terms| < 2^70 in all.
//!
//! The v_j are the same variables for every recipient. The equations of all recipients are one modulo r: each is
//! multiplied by P^i with P = 2^80 and added. As a difference D_i of both sides is below 2^79 in absolute value,
//! D_0 + P·D_1 + P²·D_2 = 0 modulo r holds over the integers, and modulo P, so D_0 = 0, then D_1 = 0 and D_2 = 0. The sums
//! over j are taken with powers of τ: all v_j, e0_ij, k_ij and P are committed before τ is known.
//!
//! c0 may be any words here: what is proved of them is proved modulo q.

use ark_ff::Field;
use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::lookup::Tables;
use super::polynomial::{
    FullProduct, NoisyProduct, NoisyProductWitness, QUOTIENT_BYTES, Ternary, errors, evaluate, exact_quotient,
};
use crate::statement::FreshCiphertext;
use crate::{Fr, LIMBS, Ring};

/// log₂ of the factor between recipients.
pub(crate) const PACKING_BITS: u32 = 80;
/// Recipients that fit below r.
pub(crate) const RECIPIENTS_MAX: usize = 3;

/// P^0, P^1, P^2.
pub(crate) fn packing() -> impl Iterator<Item = Fr> + Clone {
    let factor = Fr::from(1u128 << PACKING_BITS);
    std::iter::successors(Some(Fr::ONE), move |power| Some(*power * factor)).take(RECIPIENTS_MAX)
}

/// The randomness of a fresh ciphertext for K recipients. Wiped.
#[derive(Clone)]
pub struct Randomness<const K: usize> {
    /// u, ternary.
    pub u: Zeroizing<Vec<i8>>,
    /// Error of c1.
    pub e1: Zeroizing<Vec<i8>>,
    /// Errors of each recipient's c0 at the limbs.
    pub e0: [Zeroizing<[i8; LIMBS]>; K],
}

/// A committed encryption of committed limbs.
pub(crate) struct Encryption {
    pub(crate) u: Ternary,
    pub(crate) c1: NoisyProduct,
    pub(crate) keys: FullProduct,
    pub(crate) copies: Vec<Share>,
    amount: [Variable; LIMBS],
}

/// What is committed of one recipient's c0.
pub(crate) struct Share {
    pub(crate) errors: Vec<Variable>,
    pub(crate) quotients: Vec<LinearCombination<Fr>>,
}

impl Encryption {
    /// Commits it; `amount` is committed already, with its values.
    pub(crate) fn commit<const K: usize>(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        amount: &[Variable; LIMBS],
        witness: Option<(&FreshCiphertext<K>, &Randomness<K>)>,
    ) -> Result<Self, SynthesisError> {
        const { assert!(K <= RECIPIENTS_MAX) };
        let u = Ternary::commit(cs, tables, ring, witness.map(|(_, randomness)| &**randomness.u))?;
        let y: Option<Vec<i64>> =
            witness.map(|(public, _)| public.c1.coefficients().iter().map(|c| *c as i64).collect());
        let product = witness.zip(y.as_ref()).map(|((public, randomness), y)| NoisyProductWitness {
            x: public.a.coefficients(),
            w: &randomness.u,
            e: &randomness.e1,
            y,
        });
        let c1 = NoisyProduct::commit(cs, tables, ring, product.as_ref())?;
        let xs = witness.map(|(public, _)| public.keys.each_ref().map(|key| key.coefficients()));
        let product = witness.zip(xs.as_ref()).map(|((_, randomness), xs)| (&xs[..], &**randomness.u));
        let keys = FullProduct::commit(cs, ring, packing(), product)?;

        let mut copies = Vec::with_capacity(K);
        for i in 0..K {
            let e0 = witness.map(|(_, randomness)| &randomness.e0[i][..]);
            let errors = errors(cs, tables, LIMBS, e0)?;
            let mut quotients = Vec::with_capacity(LIMBS);
            for j in 0..LIMBS {
                let c0 = witness.map(|(public, _)| i128::from(public.c0[i][j]));
                let terms = LinearCombination::from(errors[j]) + (Fr::from(ring.delta()), amount[j]);
                let quotient = match (c0, keys.limb_value(i, j), cs.evaluate(&terms)) {
                    (Some(c0), Some(product), Some(terms)) => {
                        Some(exact_quotient(product + small_value(terms)? - c0, ring)?)
                    }
                    _ => None,
                };
                quotients.push(tables.signed(cs, quotient, QUOTIENT_BYTES)?);
            }
            copies.push(Share { errors, quotients });
        }
        Ok(Self { u, c1, keys, copies, amount: *amount })
    }

    /// The equations at τ, given [`FreshCiphertext::derived`]. 5N rows.
    pub(crate) fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        ring: &Ring,
        point: Variable,
        [a, c1, keys, c0]: [Variable; 4],
    ) -> Result<(), SynthesisError> {
        let u = self.u.at(cs, point)?;
        self.c1.constrain(cs, ring, point, [a.into(), u.clone(), c1.into()])?;
        self.keys.constrain(cs, point, keys, u)?;
        let limbs: Vec<_> = (0..LIMBS).map(|j| self.limb(ring, j)).collect();
        let sum = evaluate(cs, &limbs, point)?;
        cs.enforce(sum, Variable::ONE, c0)
    }

    /// Σ P^i·c0_ij over recipients, what it must be.
    fn limb(&self, ring: &Ring, j: usize) -> LinearCombination<Fr> {
        let (delta, modulus) = (Fr::from(ring.delta()), Fr::from(ring.modulus()));
        packing().zip(&self.copies).fold(self.keys.limb(j), |sum, (factor, copy)| {
            let terms = LinearCombination::from(copy.errors[j]) + (delta, self.amount[j]);
            sum + (terms - copy.quotients[j].clone() * modulus) * factor
        })
    }
}

/// A committed value as an integer; those asked for here are below 2^64 in absolute value.
fn small_value(value: Fr) -> Result<i128, SynthesisError> {
    let limbs = |value: Fr| ark_ff::BigInt::<4>::from(value).0;
    match (limbs(value), limbs(-value)) {
        ([low, 0, 0, 0], _) => Ok(i128::from(low)),
        (_, [low, 0, 0, 0]) => Ok(-i128::from(low)),
        _ => Err(SynthesisError::Witness("a limb is out of range")),
    }
}

/// Commits an amount as limbs of 8 bits, lowest first.
pub(crate) fn amount_limbs(
    cs: &mut Synthesis<Fr>,
    tables: &mut Tables,
    amount: Option<u64>,
) -> Result<[Variable; LIMBS], SynthesisError> {
    let mut limbs = [Variable::ONE; LIMBS];
    for (limb, place) in limbs.iter_mut().zip(0..) {
        *limb = cs.witness(amount.map(|amount| Fr::from(amount >> (8 * place) & 0xff)))?;
        tables.bytes.look_up(*limb);
    }
    Ok(limbs)
}

/// Σ limb_j·2^(8j).
pub(crate) fn amount_sum(limbs: &[Variable; LIMBS]) -> LinearCombination<Fr> {
    let mut sum = LinearCombination::zero();
    for (place, limb) in limbs.iter().enumerate() {
        sum.push(Fr::from(1u64 << (8 * place)), *limb);
    }
    sum
}

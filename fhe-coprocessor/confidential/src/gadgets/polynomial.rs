//! Polynomials over the integers, compared at a random point of the field.
//!
//! Polynomials of degree below 2N over F_r that differ agree at a point τ drawn after their coefficients were committed
//! with probability at most 2N/r (Schwartz and Zippel). So both equations here hold modulo r, coefficient by coefficient:
//!
//! - [`FullProduct`], P = x·w with public x and ternary w: P is thereby determined modulo r and needs no range. Its true
//!   coefficients are at most N·(q − 1) in absolute value, so as integers they are the only small ones that fit.
//! - [`NoisyProduct`], x·w + e − y = q·k + (X^N + 1)·h with deg k < N and deg h < N − 1. At X^(N+i) only x·w and h have
//!   coefficients, so h is determined: the upper part of x·w, without a range. At X^i, i < N, there remains
//!   (x·w mod X^N + 1)_i + e_i − y_i = q·k_i modulo r. Here k needs its range, for modulo r every number is a multiple of
//!   q: with |k_i| ≤ 2^15 and |e_i| ≤ 16 both sides are below 2^70, and the equation holds over the integers.

use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};
use zeroize::Zeroizing;

use super::lookup::Tables;
use crate::{Fr, Ring};

/// Bytes of a quotient by q. |k| ≤ N + 2 where the witness is right, so two bytes are enough for N ≤ 2^14.
pub(crate) const QUOTIENT_BYTES: usize = 2;

const LENGTH: SynthesisError =
    SynthesisError::Witness("a polynomial has another length than the ring's degree");

/// Σ cᵢ·τ^i by Horner's rule: a row for each coefficient but the last.
pub(crate) fn evaluate(
    cs: &mut Synthesis<Fr>,
    coefficients: &[LinearCombination<Fr>],
    point: Variable,
) -> Result<LinearCombination<Fr>, SynthesisError> {
    let Some((last, rest)) = coefficients.split_last() else { return Ok(LinearCombination::zero()) };
    let mut sum = last.clone();
    for coefficient in rest.iter().rev() {
        let product = cs.product(sum, point)?;
        sum = coefficient.clone() + product;
    }
    Ok(sum)
}

/// A committed polynomial with coefficients in {−1, 0, 1}: a secret, or the randomness of an encryption.
pub(crate) struct Ternary {
    pub(crate) coefficients: Vec<Variable>,
}

impl Ternary {
    /// One look-up for each coefficient.
    pub(crate) fn commit(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        values: Option<&[i8]>,
    ) -> Result<Self, SynthesisError> {
        let coefficients = small(cs, ring.degree(), values)?;
        coefficients.iter().for_each(|coefficient| tables.trits.look_up(*coefficient));
        Ok(Self { coefficients })
    }

    /// Its value at a point.
    pub(crate) fn at(
        &self,
        cs: &mut Synthesis<Fr>,
        point: Variable,
    ) -> Result<LinearCombination<Fr>, SynthesisError> {
        let coefficients: Vec<_> = self.coefficients.iter().map(|c| LinearCombination::from(*c)).collect();
        evaluate(cs, &coefficients, point)
    }
}

/// Commits `count` errors, each in [−16, 16].
pub(crate) fn errors(
    cs: &mut Synthesis<Fr>,
    tables: &mut Tables,
    count: usize,
    values: Option<&[i8]>,
) -> Result<Vec<Variable>, SynthesisError> {
    let errors = small(cs, count, values)?;
    errors.iter().for_each(|error| tables.errors.look_up(*error));
    Ok(errors)
}

fn small(
    cs: &mut Synthesis<Fr>,
    count: usize,
    values: Option<&[i8]>,
) -> Result<Vec<Variable>, SynthesisError> {
    if values.is_some_and(|values| values.len() != count) {
        return Err(LENGTH);
    }
    (0..count).map(|i| cs.witness(values.map(|values| Fr::from(values[i])))).collect()
}

/// x·w + e ≡ y modulo q and X^N + 1, for public x and y, committed ternary w and error e.
pub(crate) struct NoisyProduct {
    pub(crate) error: Vec<Variable>,
    pub(crate) quotient: Vec<LinearCombination<Fr>>,
    pub(crate) high: Vec<Variable>,
}

/// What [`NoisyProduct`] relates; y below q in absolute value.
pub(crate) struct NoisyProductWitness<'a> {
    pub(crate) x: &'a [u64],
    pub(crate) w: &'a [i8],
    pub(crate) e: &'a [i8],
    pub(crate) y: &'a [i64],
}

impl NoisyProduct {
    /// Three look-ups for each coefficient.
    pub(crate) fn commit(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        witness: Option<&NoisyProductWitness<'_>>,
    ) -> Result<Self, SynthesisError> {
        let degree = ring.degree();
        let error = errors(cs, tables, degree, witness.map(|witness| witness.e))?;
        let parts = witness.map(|witness| split(witness, ring)).transpose()?;
        let mut quotient = Vec::with_capacity(degree);
        for i in 0..degree {
            quotient.push(tables.signed(
                cs,
                parts.as_ref().map(|parts| parts.quotient[i]),
                QUOTIENT_BYTES,
            )?);
        }
        let mut high = Vec::with_capacity(degree - 1);
        for i in degree..2 * degree - 1 {
            high.push(cs.witness(parts.as_ref().map(|parts| Fr::from(parts.product[i])))?);
        }
        Ok(Self { error, quotient, high })
    }

    /// The equation at `point`, given the values of x, w and y there. 2N − 1 rows.
    pub(crate) fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        ring: &Ring,
        point: Variable,
        [x, w, y]: [LinearCombination<Fr>; 3],
    ) -> Result<(), SynthesisError> {
        // q·k − e + h at the lower half, h at the upper one.
        let high = || self.high.iter().map(|h| LinearCombination::from(*h));
        let low = self.quotient.iter().zip(&self.error).zip(high().chain([LinearCombination::zero()]));
        let mut sum: Vec<_> = low.map(|((k, e), h)| k.clone() * Fr::from(ring.modulus()) - *e + h).collect();
        sum.extend(high());
        let sum = evaluate(cs, &sum, point)?;
        cs.enforce(x, w, sum + y)
    }
}

/// k of a [`NoisyProduct`], and x·w, whose upper part is h. Wiped.
struct Split {
    quotient: Zeroizing<Vec<i64>>,
    product: Zeroizing<Vec<i128>>,
}

fn split(witness: &NoisyProductWitness<'_>, ring: &Ring) -> Result<Split, SynthesisError> {
    let degree = ring.degree();
    if [witness.x.len(), witness.w.len(), witness.y.len()].iter().any(|length| *length != degree) {
        return Err(LENGTH);
    }
    let product = full_product(witness.x, witness.w);
    let mut quotient = Zeroizing::new(Vec::with_capacity(degree));
    for i in 0..degree {
        let high = product.get(degree + i).copied().unwrap_or(0);
        let rest = product[i] - high + i128::from(witness.e[i]) - i128::from(witness.y[i]);
        quotient.push(exact_quotient(rest, ring)?);
    }
    Ok(Split { quotient, product })
}

/// `value / q`, refused where that is no integer: then the witness does not belong to the statement.
pub(crate) fn exact_quotient(value: i128, ring: &Ring) -> Result<i64, SynthesisError> {
    let modulus = i128::from(ring.modulus());
    match i64::try_from(value / modulus) {
        Ok(quotient) if value % modulus == 0 => Ok(quotient),
        _ => Err(SynthesisError::Witness("an equation does not hold modulo q")),
    }
}

/// The product over the integers: 2N − 1 coefficients below 2^54·N in absolute value. N² products.
pub(crate) fn full_product(x: &[u64], w: &[i8]) -> Zeroizing<Vec<i128>> {
    let mut product = Zeroizing::new(vec![0i128; x.len() + w.len() - 1]);
    for (j, factor) in w.iter().enumerate() {
        // Not skipped where the factor is 0: how long this takes says nothing about a secret.
        let factor = i128::from(*factor);
        for (sum, coefficient) in product[j..].iter_mut().zip(x) {
            *sum += factor * i128::from(*coefficient);
        }
    }
    product
}

/// x·w over the integers for public x and committed ternary w: 2N − 1 committed coefficients.
///
/// Several x may share the coefficients: then x stands for Σ P^i·x_i with a constant P far above all coefficients, which
/// costs no row more. The equation is the same; who reads a coefficient must know that it is a sum.
pub(crate) struct FullProduct {
    pub(crate) coefficients: Vec<Variable>,
    degree: usize,
    values: Vec<Zeroizing<Vec<i128>>>,
}

impl FullProduct {
    /// Commits Σ factorᵢ·xᵢ·w.
    pub(crate) fn commit(
        cs: &mut Synthesis<Fr>,
        ring: &Ring,
        factors: impl Iterator<Item = Fr> + Clone,
        witness: Option<(&[&[u64]], &[i8])>,
    ) -> Result<Self, SynthesisError> {
        let degree = ring.degree();
        let mut values = Vec::new();
        if let Some((xs, w)) = witness {
            if w.len() != degree || xs.iter().any(|x| x.len() != degree) {
                return Err(LENGTH);
            }
            values.extend(xs.iter().map(|x| full_product(x, w)));
        }
        let mut coefficients = Vec::with_capacity(2 * degree - 1);
        for i in 0..2 * degree - 1 {
            let sum = factors.clone().zip(&values).map(|(factor, values)| factor * Fr::from(values[i])).sum();
            coefficients.push(cs.witness(witness.map(|_| sum))?);
        }
        Ok(Self { coefficients, degree, values })
    }

    /// Coefficient `i` < N − 1 modulo X^N + 1.
    pub(crate) fn limb(&self, i: usize) -> LinearCombination<Fr> {
        LinearCombination::from(self.coefficients[i]) - self.coefficients[self.degree + i]
    }

    /// Its value in the product with x number `which`.
    pub(crate) fn limb_value(&self, which: usize, i: usize) -> Option<i128> {
        self.values.get(which).map(|values| values[i] - values[self.degree + i])
    }

    /// The equation at `point`, given the values of x and w there. 2N − 1 rows.
    pub(crate) fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        point: Variable,
        x: Variable,
        w: LinearCombination<Fr>,
    ) -> Result<(), SynthesisError> {
        let coefficients: Vec<_> = self.coefficients.iter().map(|c| LinearCombination::from(*c)).collect();
        let sum = evaluate(cs, &coefficients, point)?;
        cs.enforce(x, w, sum)
    }
}

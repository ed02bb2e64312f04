//! From rows to polynomials: the quadratic arithmetic program of Groth16, section 3.2, over a domain of 2^k roots of
//! unity. After the circuit's rows come rows xᵢ · 0 = 0, one for each public variable, which make the polynomials of
//! the public variables independent of each other.

use ark_ff::PrimeField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use zeroize::Zeroizing;

use crate::par;
use crate::r1cs::R1cs;

/// The circuit has more rows than the field has roots of unity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} rows are more than the field's roots of unity allow")]
pub struct DomainError(pub usize);

/// The domain: a power of two, at least rows plus public variables.
pub(crate) fn domain<F: PrimeField>(r1cs: &R1cs<F>) -> Result<Radix2EvaluationDomain<F>, DomainError> {
    let rows = r1cs.constraints() + r1cs.shape().public();
    Radix2EvaluationDomain::new(rows).ok_or(DomainError(rows))
}

/// The polynomials uᵢ, vᵢ, wᵢ of all variables at one point, given the Lagrange polynomials there.
pub(crate) fn at_point<F: PrimeField>(r1cs: &R1cs<F>, lagrange: &[F]) -> [Vec<F>; 3] {
    let mut columns = r1cs.matrices.each_ref().map(|matrix| {
        let mut column = vec![F::ZERO; r1cs.variables()];
        matrix.combine(lagrange, &mut column);
        column
    });
    for (i, u) in columns[0].iter_mut().enumerate().take(r1cs.shape().public()) {
        *u += lagrange[r1cs.constraints() + i];
    }
    columns
}

/// The first row that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsatisfied(pub usize);

/// Coefficients of h = (u·v − w)/Z, of degree n − 2, for an assignment z. Seven transforms of the domain's size, three
/// of them at a time.
pub(crate) fn quotient<F: PrimeField>(
    r1cs: &R1cs<F>,
    domain: &Radix2EvaluationDomain<F>,
    z: &[F],
) -> Result<Zeroizing<Vec<F>>, Unsatisfied> {
    let [mut a, mut b, mut c] = rows(r1cs, domain.size(), z)?;
    let coset = domain.get_coset(F::GENERATOR).unwrap_or(*domain);
    let on_coset = |values: &mut Vec<F>| {
        domain.ifft_in_place(values);
        coset.fft_in_place(values);
    };
    par::join(|| on_coset(&mut a), || par::join(|| on_coset(&mut b), || on_coset(&mut c)));
    // Z is constant on the coset, and not 0 there.
    let inverse = domain.evaluate_vanishing_polynomial(F::GENERATOR).inverse().unwrap_or(F::ZERO);
    for ((a, b), c) in a.iter_mut().zip(b.iter()).zip(c.iter()) {
        *a = (*a * b - c) * inverse;
    }
    coset.ifft_in_place(&mut *a);
    debug_assert!(a.last().is_none_or(|top| top.is_zero()));
    a.truncate(domain.size() - 1);
    Ok(a)
}

/// ⟨aᵢ, z⟩, ⟨bᵢ, z⟩ and ⟨cᵢ, z⟩ of every row, checked, and padded to the domain.
fn rows<F: PrimeField>(r1cs: &R1cs<F>, size: usize, z: &[F]) -> Result<[Zeroizing<Vec<F>>; 3], Unsatisfied> {
    let count = r1cs.constraints();
    let parts = par::pieces(count, 2, 1 << 8, |range| {
        range
            .map(|row| {
                let [a, b, c] = r1cs.matrices.each_ref().map(|matrix| matrix.product(row, z));
                if a * b == c { Ok([a, b, c]) } else { Err(Unsatisfied(row)) }
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Zeroizing::new)
    });
    let mut out = [(); 3].map(|()| Zeroizing::new(Vec::with_capacity(size)));
    for part in parts {
        for row in part?.iter() {
            for (column, value) in out.iter_mut().zip(row) {
                column.push(*value);
            }
        }
    }
    out[0].extend_from_slice(&z[..r1cs.shape().public()]);
    for column in &mut out {
        column.resize(size, F::ZERO);
    }
    Ok(out)
}

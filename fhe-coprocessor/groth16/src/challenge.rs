//! The challenges, and the public part of the assignment that follows from them.

use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};

use crate::circuit::{Shape, Statement};
use crate::{hash, points, tags};

/// A statement gave another number of public inputs than its circuit has; the statement's code is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the statement gives {got} {which} inputs, its circuit has {want}")]
pub struct StatementError {
    which: &'static str,
    got: usize,
    want: usize,
}

/// The statement's inputs, their number checked.
pub(crate) fn inputs<F: PrimeField>(
    shape: &Shape,
    statement: &(impl Statement<F> + ?Sized),
) -> Result<Vec<F>, StatementError> {
    let inputs = statement.inputs();
    check("public", inputs.len(), shape.inputs)?;
    Ok(inputs)
}

/// The inputs derived from the challenges, their number checked.
pub(crate) fn derived<F: PrimeField>(
    shape: &Shape,
    statement: &(impl Statement<F> + ?Sized),
    challenges: &[F],
) -> Result<Vec<F>, StatementError> {
    let derived = statement.derived(challenges);
    check("derived", derived.len(), shape.derived)?;
    Ok(derived)
}

fn check(which: &'static str, got: usize, want: usize) -> Result<(), StatementError> {
    if got == want { Ok(()) } else { Err(StatementError { which, got, want }) }
}

/// The challenges: hash of verifying key, circuit, statement, inputs and commitment to the field. All lengths but the
/// number of inputs are fixed, and that number is fixed by the key.
pub(crate) fn challenges<F: PrimeField>(
    key_hash: &[u8; 32],
    shape: &Shape,
    digest: &[u8; 32],
    inputs: &[F],
    commitment: &impl AffineRepr,
) -> Vec<F> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|input| input.into_bigint().to_bytes_be()).collect();
    let commitment = points::compressed(commitment);
    let message: [&[u8]; 5] = [key_hash, &shape.id, digest, &inputs, &commitment];
    hash::to_field(tags::CHALLENGE, &message, shape.challenges)
}

/// The public part of the assignment, the constant 1 first.
pub(crate) fn public<F: PrimeField>(
    key_hash: &[u8; 32],
    shape: &Shape,
    statement: &(impl Statement<F> + ?Sized),
    commitment: &impl AffineRepr,
) -> Result<Vec<F>, StatementError> {
    let inputs = inputs(shape, statement)?;
    let challenges = challenges(key_hash, shape, &statement.digest(), &inputs, commitment);
    let derived = derived(shape, statement, &challenges)?;
    let mut public = Vec::with_capacity(shape.public());
    public.push(F::ONE);
    public.extend(inputs);
    public.extend(challenges);
    public.extend(derived);
    Ok(public)
}

//! Two circuits: one with a commitment, one without.

use ark_ff::{BigInteger, PrimeField};

use crate::{Circuit, LinearCombination, Shape, Statement, Synthesis, SynthesisError, Variable, hash};

/// a · u = c as polynomials over the integers, with u secret and its coefficients 0 or 1, and Σ uᵢ public: checked at
/// one random point. u is committed; a(τ) and c(τ) are derived.
pub(crate) struct Product {
    pub(crate) name: &'static str,
    pub(crate) degree: usize,
}

#[derive(Clone)]
pub(crate) struct ProductStatement {
    pub(crate) a: Vec<u64>,
    pub(crate) c: Vec<u64>,
    pub(crate) sum: u64,
}

impl ProductStatement {
    /// The statement that holds for `u`.
    pub(crate) fn of(a: &[u64], u: &[u64]) -> Self {
        let mut c = vec![0; a.len() + u.len() - 1];
        for (i, a) in a.iter().enumerate() {
            for (j, u) in u.iter().enumerate() {
                c[i + j] += a * u;
            }
        }
        Self { a: a.to_vec(), c, sum: u.iter().sum() }
    }
}

fn at<F: PrimeField>(polynomial: &[u64], point: F) -> F {
    polynomial.iter().rev().fold(F::ZERO, |sum, coefficient| sum * point + F::from(*coefficient))
}

impl<F: PrimeField> Statement<F> for ProductStatement {
    fn digest(&self) -> [u8; 32] {
        let lengths = [self.a.len() as u64, self.c.len() as u64, self.sum];
        let bytes: Vec<u8> =
            [&lengths[..], &self.a, &self.c].concat().iter().flat_map(|value| value.to_be_bytes()).collect();
        hash::sha256(&[b"test statement", &bytes])
    }

    fn inputs(&self) -> Vec<F> {
        vec![F::from(self.sum)]
    }

    fn derived(&self, challenges: &[F]) -> Vec<F> {
        vec![at(&self.a, challenges[0]), at(&self.c, challenges[0])]
    }
}

impl<F: PrimeField> Circuit<F> for Product {
    type Statement = ProductStatement;
    type Witness = Vec<u64>;
    type Committed = Vec<Variable>;

    fn shape(&self) -> Shape {
        let id = hash::sha256(&[self.name.as_bytes()]);
        Shape { id, inputs: 1, challenges: 1, derived: 2 }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<F>,
        witness: Option<&Vec<u64>>,
    ) -> Result<Vec<Variable>, SynthesisError> {
        if witness.is_some_and(|witness| witness.len() != self.degree) {
            return Err(SynthesisError::Witness("u has another degree"));
        }
        let mut sum = LinearCombination::zero();
        let u = (0..self.degree)
            .map(|i| {
                let u = cs.witness(witness.map(|witness| F::from(witness[i])))?;
                cs.enforce(u, u, u)?;
                sum.push(F::ONE, u);
                Ok(u)
            })
            .collect::<Result<_, _>>()?;
        cs.enforce(sum, Variable::ONE, cs.input(0))?;
        Ok(u)
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<F>,
        u: Vec<Variable>,
        _: Option<&Vec<u64>>,
    ) -> Result<(), SynthesisError> {
        let tau = cs.challenge(0);
        let mut value = LinearCombination::zero();
        for u in u.iter().rev() {
            value = LinearCombination::from(cs.product(value, tau)?) + *u;
        }
        cs.enforce(value, cs.derived(0), cs.derived(1))
    }
}

/// wᵢ₊₁ = wᵢ² + 7·wᵢ + i from a secret w₀, the last of them public. No commitment.
pub(crate) struct Chain(pub(crate) usize);

#[derive(Clone)]
pub(crate) struct ChainStatement<F>(pub(crate) F);

impl Chain {
    /// All witness values in the circuit's order, and the public input.
    pub(crate) fn values<F: PrimeField>(&self, first: F) -> (Vec<F>, F) {
        let mut values = vec![first];
        let mut w = first;
        for i in 0..self.0 {
            let square = w * w;
            values.push(square);
            w = square + F::from(7u64) * w + F::from(i as u64);
        }
        (values, w)
    }
}

impl<F: PrimeField> Statement<F> for ChainStatement<F> {
    fn digest(&self) -> [u8; 32] {
        hash::sha256(&[&self.0.into_bigint().to_bytes_be()])
    }

    fn inputs(&self) -> Vec<F> {
        vec![self.0]
    }

    fn derived(&self, _: &[F]) -> Vec<F> {
        Vec::new()
    }
}

impl<F: PrimeField> Circuit<F> for Chain {
    type Statement = ChainStatement<F>;
    type Witness = F;
    type Committed = ();

    fn shape(&self) -> Shape {
        Shape { id: hash::sha256(&[b"chain"]), inputs: 1, challenges: 0, derived: 0 }
    }

    fn commit(&self, _: &mut Synthesis<F>, _: Option<&F>) -> Result<(), SynthesisError> {
        Ok(())
    }

    fn constrain(&self, cs: &mut Synthesis<F>, (): (), first: Option<&F>) -> Result<(), SynthesisError> {
        let mut w = LinearCombination::from(cs.witness(first.copied())?);
        for i in 0..self.0 {
            let square = cs.product(w.clone(), w.clone())?;
            w = w * F::from(7u64) + square + LinearCombination::constant(F::from(i as u64));
        }
        cs.enforce(w, Variable::ONE, cs.input(0))
    }
}

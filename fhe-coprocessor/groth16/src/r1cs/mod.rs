//! Rank-one constraint systems: ⟨aᵢ, z⟩ · ⟨bᵢ, z⟩ = ⟨cᵢ, z⟩ for every row i.
//!
//! z = (1, inputs, challenges, derived, committed, private): the first four are public, `committed` is the part of the
//! witness whose values do not depend on the challenges and which the commitment D fixes before these are drawn.
//!
//! The rows are recorded once, at set-up and when a prover is made; a proof only computes values. This is why there is
//! an interface of our own here and not `ark-relations`, which builds every row again for every proof and knows
//! nothing of a witness in two phases.

mod linear;
mod matrix;
mod synthesis;

pub use linear::{LinearCombination, Variable};
pub use synthesis::{Synthesis, SynthesisError};

use ark_ff::PrimeField;
use zeroize::Zeroizing;

pub(crate) use matrix::Matrix;

use crate::circuit::{Circuit, Shape, Statement};
use crate::{hash, tags};

/// The rows of a circuit.
#[derive(Debug, Clone)]
pub struct R1cs<F> {
    shape: Shape,
    committed: usize,
    private: usize,
    pub(crate) matrices: [Matrix<F>; 3],
    digest: [u8; 32],
}

impl<F: PrimeField> R1cs<F> {
    /// Records the rows of a circuit: runs its two methods without a witness.
    ///
    /// # Errors
    /// [`SynthesisError`] where the circuit asks for what it may not.
    pub fn of<C: Circuit<F>>(circuit: &C) -> Result<Self, SynthesisError> {
        let shape = circuit.shape();
        let mut cs = Synthesis::record(shape)?;
        let committed = circuit.commit(&mut cs, None)?;
        cs.end_commitment();
        circuit.constrain(&mut cs, committed, None)?;
        let (committed, private, matrices) = cs.into_rows();
        let digest = digest(&shape, committed, private, &matrices);
        Ok(Self { shape, committed, private, matrices, digest })
    }

    /// The whole assignment of a witness for given challenges, in the order of [`Variable::index`]: for tests of
    /// circuits, which alter it and see what rows notice. A proof's challenges come from its commitment instead.
    ///
    /// # Errors
    /// As the circuit's two methods.
    ///
    /// # Panics
    /// Where the statement has other numbers of inputs than the circuit, or the challenges another number.
    pub fn assignment<C: Circuit<F>>(
        &self,
        circuit: &C,
        statement: &C::Statement,
        witness: &C::Witness,
        challenges: &[F],
    ) -> Result<Zeroizing<Vec<F>>, SynthesisError> {
        let mut cs = Synthesis::assign(self.shape, &statement.inputs(), self.variables());
        let committed = circuit.commit(&mut cs, Some(witness))?;
        cs.set_challenges(challenges, &statement.derived(challenges));
        circuit.constrain(&mut cs, committed, Some(witness))?;
        let (_, _, _, values) = cs.into_values();
        Ok(values)
    }

    /// What the circuit says of itself.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many rows the circuit has.
    pub fn constraints(&self) -> usize {
        self.matrices[0].rows()
    }

    /// Number of variables, the constant 1 included.
    pub fn variables(&self) -> usize {
        self.shape.public() + self.committed + self.private
    }

    /// Number of committed witness variables.
    pub fn committed(&self) -> usize {
        self.committed
    }

    /// Number of witness variables outside the commitment.
    pub fn private(&self) -> usize {
        self.private
    }

    /// SHA-256 of the circuit's identity, its counts and every coefficient: what a key is made for.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The terms of one row: its three linear combinations.
    ///
    /// # Panics
    /// When `row` is not below [`Self::constraints`].
    pub fn row(&self, row: usize) -> [LinearCombination<F>; 3] {
        self.matrices.each_ref().map(|matrix| {
            LinearCombination(
                matrix.row(row).map(|(coefficient, i)| (coefficient, Variable(i as u32))).collect(),
            )
        })
    }
}

fn digest<F: PrimeField>(
    shape: &Shape,
    committed: usize,
    private: usize,
    matrices: &[Matrix<F>; 3],
) -> [u8; 32] {
    let mut bytes = Vec::new();
    for count in [shape.inputs, shape.challenges, shape.derived, committed, private, matrices[0].rows()] {
        bytes.extend((count as u64).to_be_bytes());
    }
    for matrix in matrices {
        matrix.write(&mut bytes);
    }
    hash::sha256(&[tags::CIRCUIT, &shape.id, &bytes])
}

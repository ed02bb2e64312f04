//! What a circuit writes into: rows once, values for every proof.

use ark_ff::PrimeField;
use zeroize::Zeroizing;

use super::{LinearCombination, Matrix, Variable};
use crate::circuit::Shape;
use crate::hash;

/// Most rows or variables of a circuit: 2^26 (the two-adicity of the smaller field leaves 2^28).
const MAX_SIZE: usize = 1 << 26;

/// Why a circuit could not be written down or filled in; the circuit's code, or a witness that is not for it, is at
/// fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SynthesisError {
    /// A value is missing while a proof is made, or was asked for before it exists.
    #[error(
        "variable {0} got no value: give one for every variable, and use no challenge before `constrain`"
    )]
    MissingValue(usize),
    /// More rows, variables or challenges than supported.
    #[error("the circuit is too large: {0}")]
    TooLarge(&'static str),
    /// The circuit refuses the witness: it cannot be one of the statement.
    #[error("the witness does not fit the circuit: {0}")]
    Witness(&'static str),
}

enum Mode<F: PrimeField> {
    /// Rows, no values.
    Record([Matrix<F>; 3]),
    /// Values, no rows. Public values known so far come first.
    Assign { values: Zeroizing<Vec<F>>, known: usize, rows: usize },
}

/// A constraint system under construction, handed to [`crate::Circuit::commit`] and [`crate::Circuit::constrain`].
///
/// The same code runs in two modes and must ask for the same variables and rows in the same order in both: while rows
/// are recorded no variable has a value ([`Self::value`] is `None`), while a proof is made rows are not looked at.
pub struct Synthesis<F: PrimeField> {
    shape: Shape,
    committed: usize,
    private: usize,
    committing: bool,
    mode: Mode<F>,
}

impl<F: PrimeField> Synthesis<F> {
    pub(crate) fn record(shape: Shape) -> Result<Self, SynthesisError> {
        check_shape::<F>(&shape)?;
        Ok(Self::new(shape, Mode::Record([Matrix::new(), Matrix::new(), Matrix::new()])))
    }

    /// Room for `variables` values in all, so that the secret ones are never copied by a growing vector.
    pub(crate) fn assign(shape: Shape, inputs: &[F], variables: usize) -> Self {
        let mut values = Zeroizing::new(Vec::with_capacity(variables));
        values.push(F::ONE);
        values.extend_from_slice(inputs);
        values.resize(shape.public(), F::ZERO);
        Self::new(shape, Mode::Assign { values, known: 1 + shape.inputs, rows: 0 })
    }

    fn new(shape: Shape, mode: Mode<F>) -> Self {
        Self { shape, committed: 0, private: 0, committing: true, mode }
    }

    /// Whether rows are recorded and variables have no values. Gadgets may spare the work of building long sums where
    /// they are not; the variables and the number of rows must be the same.
    pub fn is_recording(&self) -> bool {
        matches!(self.mode, Mode::Record(_))
    }

    /// The public input `i` of the statement.
    ///
    /// # Panics
    /// When `i` is not below the shape's `inputs`.
    pub fn input(&self, i: usize) -> Variable {
        assert!(i < self.shape.inputs, "input {i} of {}", self.shape.inputs);
        Variable((1 + i) as u32)
    }

    /// The challenge `i`. It has a value only in [`crate::Circuit::constrain`].
    ///
    /// # Panics
    /// When `i` is not below the shape's `challenges`.
    pub fn challenge(&self, i: usize) -> Variable {
        assert!(i < self.shape.challenges, "challenge {i} of {}", self.shape.challenges);
        Variable((1 + self.shape.inputs + i) as u32)
    }

    /// The public input `i` that the statement derives from the challenges. It has a value only in
    /// [`crate::Circuit::constrain`].
    ///
    /// # Panics
    /// When `i` is not below the shape's `derived`.
    pub fn derived(&self, i: usize) -> Variable {
        assert!(i < self.shape.derived, "derived input {i} of {}", self.shape.derived);
        Variable((1 + self.shape.inputs + self.shape.challenges + i) as u32)
    }

    /// A new witness variable: committed while [`crate::Circuit::commit`] runs, private afterwards.
    ///
    /// # Errors
    /// [`SynthesisError::MissingValue`] when a proof is made and `value` is `None`.
    pub fn witness(&mut self, value: Option<F>) -> Result<Variable, SynthesisError> {
        let index = self.shape.public() + self.committed + self.private;
        if index >= MAX_SIZE {
            return Err(SynthesisError::TooLarge("variables"));
        }
        if let Mode::Assign { values, .. } = &mut self.mode {
            values.push(value.ok_or(SynthesisError::MissingValue(index))?);
        }
        if self.committing {
            self.committed += 1
        } else {
            self.private += 1
        }
        Ok(Variable(index as u32))
    }

    /// The value of a variable; `None` while rows are recorded, and for challenges and derived inputs before
    /// [`crate::Circuit::constrain`].
    pub fn value(&self, variable: Variable) -> Option<F> {
        match &self.mode {
            Mode::Record(_) => None,
            Mode::Assign { values, known, .. } => {
                let index = variable.index();
                let unknown = (*known..self.shape.public()).contains(&index);
                if unknown { None } else { values.get(index).copied() }
            }
        }
    }

    /// The value of a linear combination; `None` where one of its variables has none.
    pub fn evaluate(&self, sum: &LinearCombination<F>) -> Option<F> {
        let mut value = F::ZERO;
        for (coefficient, variable) in sum.terms() {
            value += self.value(*variable)? * coefficient;
        }
        Some(value)
    }

    /// The row a · b = c.
    ///
    /// # Errors
    /// [`SynthesisError::TooLarge`] after 2^26 rows or terms.
    pub fn enforce(
        &mut self,
        a: impl Into<LinearCombination<F>>,
        b: impl Into<LinearCombination<F>>,
        c: impl Into<LinearCombination<F>>,
    ) -> Result<(), SynthesisError> {
        match &mut self.mode {
            Mode::Assign { rows, .. } => *rows += 1,
            Mode::Record(matrices) => {
                if matrices[0].rows() >= MAX_SIZE || matrices.iter().any(|matrix| matrix.terms() > MAX_SIZE) {
                    return Err(SynthesisError::TooLarge("constraints"));
                }
                for (matrix, row) in matrices.iter_mut().zip([a.into(), b.into(), c.into()]) {
                    matrix.push(row);
                }
            }
        }
        Ok(())
    }

    /// A new witness variable that holds a · b. One row.
    ///
    /// # Errors
    /// As [`Self::witness`] and [`Self::enforce`].
    pub fn product(
        &mut self,
        a: impl Into<LinearCombination<F>>,
        b: impl Into<LinearCombination<F>>,
    ) -> Result<Variable, SynthesisError> {
        let (a, b) = (a.into(), b.into());
        let value = self.evaluate(&a).zip(self.evaluate(&b)).map(|(a, b)| a * b);
        let product = self.witness(value)?;
        self.enforce(a, b, product)?;
        Ok(product)
    }

    pub(crate) fn end_commitment(&mut self) {
        self.committing = false;
    }

    /// The committed values.
    pub(crate) fn committed_values(&self) -> &[F] {
        match &self.mode {
            Mode::Record(_) => &[],
            Mode::Assign { values, .. } => &values[self.shape.public()..][..self.committed],
        }
    }

    /// Fills in what follows from the commitment. The slices have the lengths the shape names.
    pub(crate) fn set_challenges(&mut self, challenges: &[F], derived: &[F]) {
        if let Mode::Assign { values, known, .. } = &mut self.mode {
            let start = 1 + self.shape.inputs;
            let middle = start + self.shape.challenges;
            values[start..middle].copy_from_slice(challenges);
            values[middle..middle + self.shape.derived].copy_from_slice(derived);
            *known = self.shape.public();
        }
        self.end_commitment();
    }

    /// Numbers of committed and private variables, and the rows.
    pub(crate) fn into_rows(self) -> (usize, usize, [Matrix<F>; 3]) {
        let matrices = match self.mode {
            Mode::Record(matrices) => matrices,
            Mode::Assign { .. } => [Matrix::new(), Matrix::new(), Matrix::new()],
        };
        (self.committed, self.private, matrices)
    }

    /// Numbers of committed variables, private ones and rows asked for, and the whole assignment.
    pub(crate) fn into_values(self) -> (usize, usize, usize, Zeroizing<Vec<F>>) {
        match self.mode {
            Mode::Assign { values, rows, .. } => (self.committed, self.private, rows, values),
            Mode::Record(_) => (self.committed, self.private, 0, Zeroizing::default()),
        }
    }
}

fn check_shape<F: PrimeField>(shape: &Shape) -> Result<(), SynthesisError> {
    if shape.challenges > hash::most_scalars::<F>() {
        return Err(SynthesisError::TooLarge("challenges"));
    }
    let total = shape.inputs.checked_add(shape.derived).and_then(|sum| sum.checked_add(shape.challenges));
    match total {
        Some(total) if total < MAX_SIZE => Ok(()),
        _ => Err(SynthesisError::TooLarge("public inputs")),
    }
}

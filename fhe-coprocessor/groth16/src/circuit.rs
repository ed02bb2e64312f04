//! What a caller writes: a circuit, and the public side of what it proves.

use ark_ff::PrimeField;

use crate::r1cs::{Synthesis, SynthesisError};

/// What a circuit says of itself before any row is written. Part of every verifying key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Identity of the circuit: a hash of its name, version and parameters. Proofs of one circuit are never proofs of
    /// another, even where their rows coincide.
    pub id: [u8; 32],
    /// Number of public inputs that the statement gives at once.
    pub inputs: usize,
    /// Number of challenges drawn after the commitment; at most 170 over BLS12-381 and BN254.
    pub challenges: usize,
    /// Number of public inputs that the statement computes from the challenges.
    pub derived: usize,
}

impl Shape {
    /// Number of public places in the assignment, the constant 1 included.
    pub fn public(&self) -> usize {
        1 + self.inputs + self.challenges + self.derived
    }
}

/// The public side of what is proved. Prover and verifier hold the same.
pub trait Statement<F: PrimeField> {
    /// Hash of **everything** public: chain, accounts, nonces, keys, ciphertexts, whatever [`Self::derived`] reads.
    /// The challenges depend on it; what it leaves out could be chosen after they are known.
    fn digest(&self) -> [u8; 32];

    /// The public inputs that do not depend on the challenges, as many as [`Shape::inputs`].
    fn inputs(&self) -> Vec<F>;

    /// The public inputs that do, as many as [`Shape::derived`]: say, public polynomials evaluated at a challenge.
    fn derived(&self, challenges: &[F]) -> Vec<F>;
}

/// A circuit. The value holds its parameters, not a witness.
///
/// The two methods run once without witness, when the rows are recorded, and once with one for every proof; both times
/// they must ask for the same variables and rows. `commit` comes first and makes the committed variables; the
/// challenges are drawn; `constrain` makes all others. Both may add rows.
pub trait Circuit<F: PrimeField> {
    /// What proofs of the circuit state.
    type Statement: Statement<F>;
    /// What a prover of the circuit knows.
    type Witness;
    /// What `commit` hands to `constrain`: variables, mostly.
    type Committed;

    /// Identity and public counts.
    fn shape(&self) -> Shape;

    /// Makes the committed variables: all values that must be fixed before the challenges are known.
    ///
    /// # Errors
    /// [`SynthesisError::Witness`] where the witness cannot be one.
    fn commit(
        &self,
        cs: &mut Synthesis<F>,
        witness: Option<&Self::Witness>,
    ) -> Result<Self::Committed, SynthesisError>;

    /// Makes all other variables; the challenges are known.
    ///
    /// # Errors
    /// [`SynthesisError::Witness`] where the witness cannot be one.
    fn constrain(
        &self,
        cs: &mut Synthesis<F>,
        committed: Self::Committed,
        witness: Option<&Self::Witness>,
    ) -> Result<(), SynthesisError>;
}

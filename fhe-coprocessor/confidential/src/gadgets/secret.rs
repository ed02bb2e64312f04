//! An account's secret in a circuit, and its commitment.
//!
//! The digits that the sponge absorbs are the looked-up coefficients plus one, in {0, 1, 2}; 160 of them are below
//! 3^160 < r, so an element determines its digits, and the commitment binds the secret as far as Poseidon resists
//! collisions.

use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};

use super::lookup::Tables;
use super::polynomial::Ternary;
use crate::poseidon::{TRITS, config, tag};
use crate::{Fr, Ring};

/// A committed ternary secret s.
pub(crate) struct Secret {
    pub(crate) polynomial: Ternary,
}

impl Secret {
    pub(crate) fn commit(
        cs: &mut Synthesis<Fr>,
        tables: &mut Tables,
        ring: &Ring,
        values: Option<&[i8]>,
    ) -> Result<Self, SynthesisError> {
        Ok(Self { polynomial: Ternary::commit(cs, tables, ring, values)? })
    }

    /// Demands that the secret's commitment is `expected`: see [`crate::poseidon::secret_commitment`].
    pub(crate) fn constrain(&self, cs: &mut Synthesis<Fr>, expected: Variable) -> Result<(), SynthesisError> {
        let mut sponge = Sponge::new();
        sponge.absorb(cs, LinearCombination::constant(tag(self.polynomial.coefficients.len())))?;
        for digits in self.polynomial.coefficients.chunks(TRITS) {
            let mut packed = LinearCombination::zero();
            let mut weight = Fr::from(1u64);
            let mut offset = Fr::from(0u64);
            for digit in digits {
                packed.push(weight, *digit);
                offset += weight;
                weight *= Fr::from(3u64);
            }
            sponge.absorb(cs, packed + LinearCombination::constant(offset))?;
        }
        let output = sponge.squeeze(cs)?;
        cs.enforce(output, Variable::ONE, expected)
    }
}

/// arkworks' Poseidon sponge, row by row: three rows for each S-box.
struct Sponge {
    state: Vec<LinearCombination<Fr>>,
    absorbed: usize,
}

impl Sponge {
    fn new() -> Self {
        let width = config().rate + config().capacity;
        Self { state: vec![LinearCombination::zero(); width], absorbed: 0 }
    }

    fn absorb(
        &mut self,
        cs: &mut Synthesis<Fr>,
        element: LinearCombination<Fr>,
    ) -> Result<(), SynthesisError> {
        if self.absorbed == config().rate {
            self.permute(cs)?;
            self.absorbed = 0;
        }
        let place = config().capacity + self.absorbed;
        self.state[place] = std::mem::take(&mut self.state[place]) + element;
        self.absorbed += 1;
        Ok(())
    }

    fn squeeze(mut self, cs: &mut Synthesis<Fr>) -> Result<LinearCombination<Fr>, SynthesisError> {
        self.permute(cs)?;
        Ok(self.state.swap_remove(config().capacity))
    }

    fn permute(&mut self, cs: &mut Synthesis<Fr>) -> Result<(), SynthesisError> {
        let config = config();
        let half = config.full_rounds / 2;
        for (round, constants) in config.ark.iter().enumerate() {
            for (element, constant) in self.state.iter_mut().zip(constants) {
                element.push(*constant, Variable::ONE);
            }
            let full = round < half || round >= half + config.partial_rounds;
            let boxes = if full { self.state.len() } else { 1 };
            for element in &mut self.state[..boxes] {
                *element = fifth_power(cs, element)?.into();
            }
            self.mix(cs, &config.mds);
        }
        Ok(())
    }

    /// Multiplies the state by the matrix. The sums stay short, for equal variables are put together: a partial round
    /// adds one variable to them, a full one replaces them all.
    fn mix(&mut self, cs: &Synthesis<Fr>, matrix: &[Vec<Fr>]) {
        if !cs.is_recording() {
            // Only values count: one constant for each element says all.
            let values: Vec<Fr> = self.state.iter().filter_map(|element| cs.evaluate(element)).collect();
            if values.len() == self.state.len() {
                for (element, row) in self.state.iter_mut().zip(matrix) {
                    let value = row.iter().zip(&values).map(|(factor, value)| *factor * value).sum();
                    *element = LinearCombination::constant(value);
                }
                return;
            }
        }
        let mixed = matrix.iter().map(|row| {
            let terms = row
                .iter()
                .zip(&self.state)
                .fold(LinearCombination::zero(), |sum, (factor, element)| sum + element.clone() * *factor);
            terms.combined()
        });
        self.state = mixed.collect();
    }
}

/// a^5 in three rows.
fn fifth_power(cs: &mut Synthesis<Fr>, a: &LinearCombination<Fr>) -> Result<Variable, SynthesisError> {
    let square = cs.product(a.clone(), a.clone())?;
    let fourth = cs.product(square, square)?;
    cs.product(fourth, a.clone())
}

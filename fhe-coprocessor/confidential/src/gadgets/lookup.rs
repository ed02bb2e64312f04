//! Range checks by looking values up in small tables.
//!
//! The values x₁ … x_m all stand in the table t₁ … t_n exactly if Σᵢ 1/(X − xᵢ) = Σⱼ mⱼ/(X − tⱼ) as rational functions for
//! some mⱼ; it is tested at a challenge α that is drawn after the xᵢ and the mⱼ are committed (logarithmic derivatives;
//! Haböck, ePrint 2022/1530). One row for each value, one for each entry of the table. A value outside the table is a
//! pole of the left side whose residue, how often it occurs, is at most m and thus not 0 modulo r, and no pole of the
//! right side; so the two differ, and agree at α with probability at most (m + n)/r. Values need not be small for that:
//! any element of the field is either in the table or not.

use ark_ff::batch_inversion;
use blindfold_groth16::{LinearCombination, Synthesis, SynthesisError, Variable};

use crate::{ERROR_BOUND, Fr};

const OUT_OF_RANGE: SynthesisError = SynthesisError::Witness("a value is out of range");

/// A table of all integers from `low` to `low + size − 1`, and what was looked up in it.
pub(crate) struct Table {
    low: i64,
    size: usize,
    values: Vec<LinearCombination<Fr>>,
    counts: Vec<Variable>,
}

impl Table {
    pub(crate) fn new(low: i64, size: usize) -> Self {
        Self { low, size, values: Vec::new(), counts: Vec::new() }
    }

    /// Demands that `value` stands in the table. Costs one row later.
    pub(crate) fn look_up(&mut self, value: impl Into<LinearCombination<Fr>>) {
        self.values.push(value.into());
    }

    /// Commits how often each entry was looked up: after the last [`Table::look_up`], before the challenges.
    pub(crate) fn commit_counts(&mut self, cs: &mut Synthesis<Fr>) -> Result<(), SynthesisError> {
        let mut counts = vec![0u64; self.size];
        let mut known = true;
        for value in &self.values {
            match cs.evaluate(value) {
                Some(value) => match self.place(value) {
                    Some(place) => counts[place] += 1,
                    None if tests_cheat() => {}
                    None => return Err(OUT_OF_RANGE),
                },
                None => known = false,
            }
        }
        for count in counts {
            self.counts.push(cs.witness(known.then(|| Fr::from(count)))?);
        }
        Ok(())
    }

    /// Writes the rows; `alpha` has its value now.
    pub(crate) fn constrain(&self, cs: &mut Synthesis<Fr>, alpha: Variable) -> Result<(), SynthesisError> {
        let alpha_value = cs.value(alpha);
        let entries: Vec<Fr> = (0..self.size).map(|place| self.entry(place)).collect();
        let mut inverses: Vec<Fr> = Vec::new();
        if let Some(alpha) = alpha_value {
            for value in &self.values {
                inverses
                    .push(alpha - cs.evaluate(value).ok_or(SynthesisError::Witness("a value is missing"))?);
            }
            inverses.extend(entries.iter().map(|entry| alpha - entry));
            if inverses.iter().any(|difference| *difference == Fr::from(0u64)) {
                return Err(SynthesisError::Witness("the challenge is one of the values: prove again"));
            }
            batch_inversion(&mut inverses);
        }
        let mut balance = LinearCombination::zero();
        for (i, value) in self.values.iter().enumerate() {
            let inverse = cs.witness(inverses.get(i).copied())?;
            cs.enforce(inverse, LinearCombination::from(alpha) - value.clone(), Variable::ONE)?;
            balance.push(Fr::from(1u64), inverse);
        }
        for (place, count) in self.counts.iter().enumerate() {
            let share = inverses.get(self.values.len() + place).zip(cs.value(*count)).map(|(i, m)| *i * m);
            let share = cs.witness(share)?;
            let difference = LinearCombination::from(alpha) - LinearCombination::constant(entries[place]);
            cs.enforce(share, difference, *count)?;
            balance.push(-Fr::from(1u64), share);
        }
        cs.enforce(balance, Variable::ONE, LinearCombination::zero())
    }

    fn entry(&self, place: usize) -> Fr {
        Fr::from(self.low + place as i64)
    }

    fn place(&self, value: Fr) -> Option<usize> {
        // Tables are small: their entries differ in the lowest limb once they are shifted to start at 0.
        let shifted: ark_ff::BigInt<4> = (value - Fr::from(self.low)).into();
        let [low, rest @ ..] = shifted.0;
        (rest == [0; 3] && low < self.size as u64).then_some(low as usize)
    }
}

/// The tables that every circuit here uses.
pub(crate) struct Tables {
    /// {−1, 0, 1}: secrets.
    pub(crate) trits: Table,
    /// [−16, 16]: errors.
    pub(crate) errors: Table,
    /// [0, 255].
    pub(crate) bytes: Table,
}

impl Tables {
    pub(crate) fn new() -> Self {
        let bound = i64::from(ERROR_BOUND);
        Self {
            trits: Table::new(-1, 3),
            errors: Table::new(-bound, 2 * bound as usize + 1),
            bytes: Table::new(0, 256),
        }
    }

    /// See [`Table::commit_counts`].
    pub(crate) fn commit_counts(&mut self, cs: &mut Synthesis<Fr>) -> Result<(), SynthesisError> {
        self.trits.commit_counts(cs)?;
        self.errors.commit_counts(cs)?;
        self.bytes.commit_counts(cs)
    }

    /// See [`Table::constrain`].
    pub(crate) fn constrain(&self, cs: &mut Synthesis<Fr>, alpha: Variable) -> Result<(), SynthesisError> {
        self.trits.constrain(cs, alpha)?;
        self.errors.constrain(cs, alpha)?;
        self.bytes.constrain(cs, alpha)
    }

    /// A committed integer in [0, 256^bytes), byte by byte.
    pub(crate) fn unsigned(
        &mut self,
        cs: &mut Synthesis<Fr>,
        value: Option<u64>,
        bytes: usize,
    ) -> Result<LinearCombination<Fr>, SynthesisError> {
        let mut sum = LinearCombination::zero();
        for place in 0..bytes {
            // The highest byte takes what is left, so that a value out of range is found by the table.
            let byte = value.map(|value| {
                let rest = value >> (8 * place);
                if place + 1 == bytes { rest } else { rest & 0xff }
            });
            let byte = cs.witness(byte.map(Fr::from))?;
            self.bytes.look_up(byte);
            sum.push(Fr::from(1u128 << (8 * place)), byte);
        }
        Ok(sum)
    }

    /// A committed integer in [−256^bytes/2, 256^bytes/2).
    pub(crate) fn signed(
        &mut self,
        cs: &mut Synthesis<Fr>,
        value: Option<i64>,
        bytes: usize,
    ) -> Result<LinearCombination<Fr>, SynthesisError> {
        let offset = 1i64 << (8 * bytes - 1);
        let shifted = match value.map(|value| u64::try_from(value.saturating_add(offset))) {
            Some(Ok(shifted)) => Some(shifted),
            Some(Err(_)) => return Err(OUT_OF_RANGE),
            None => None,
        };
        Ok(self.unsigned(cs, shifted, bytes)? - LinearCombination::constant(Fr::from(offset)))
    }
}

/// Whether values out of range are handed on, so that tests see the rows refuse them.
#[cfg(test)]
use cheating::tests_cheat;

#[cfg(not(test))]
const fn tests_cheat() -> bool {
    false
}

#[cfg(test)]
pub(crate) mod cheating;

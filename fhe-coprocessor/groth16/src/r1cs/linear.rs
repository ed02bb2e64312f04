//! Variables and their linear combinations.

use std::ops::{Add, Mul, Sub};

use ark_ff::PrimeField;

/// A variable: its place in the assignment z = (1, public, committed, private).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub(crate) u32);

impl Variable {
    /// The constant 1.
    pub const ONE: Self = Self(0);

    /// Its place in the assignment.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A sum of variables with coefficients. Built with `+`, `-` and `*` from variables and constants:
/// `LinearCombination::from(x) - y + (coefficient, z)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearCombination<F>(pub(crate) Vec<(F, Variable)>);

impl<F> Default for LinearCombination<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: PrimeField> LinearCombination<F> {
    /// The empty sum.
    pub fn zero() -> Self {
        Self::default()
    }

    /// A constant.
    pub fn constant(value: F) -> Self {
        Self(vec![(value, Variable::ONE)])
    }

    /// Adds `coefficient · variable` in place.
    pub fn push(&mut self, coefficient: F, variable: Variable) {
        self.0.push((coefficient, variable));
    }

    /// The terms, in the order in which they were added.
    pub fn terms(&self) -> &[(F, Variable)] {
        &self.0
    }

    /// The same sum with its variables in order, each once, none with coefficient 0: what a long sum that is used again
    /// should be brought to.
    pub fn combined(self) -> Self {
        Self(self.canonical())
    }

    /// The terms of [`Self::combined`].
    pub(crate) fn canonical(mut self) -> Vec<(F, Variable)> {
        self.0.sort_by_key(|(_, variable)| *variable);
        let mut out: Vec<(F, Variable)> = Vec::with_capacity(self.0.len());
        for (coefficient, variable) in self.0 {
            match out.last_mut() {
                Some((sum, last)) if *last == variable => *sum += coefficient,
                _ => out.push((coefficient, variable)),
            }
        }
        out.retain(|(coefficient, _)| !coefficient.is_zero());
        out
    }
}

impl<F: PrimeField> From<Variable> for LinearCombination<F> {
    fn from(variable: Variable) -> Self {
        Self(vec![(F::ONE, variable)])
    }
}

impl<F: PrimeField> From<(F, Variable)> for LinearCombination<F> {
    fn from(term: (F, Variable)) -> Self {
        Self(vec![term])
    }
}

impl<F: PrimeField, T: Into<LinearCombination<F>>> Add<T> for LinearCombination<F> {
    type Output = Self;

    fn add(mut self, other: T) -> Self {
        self.0.extend(other.into().0);
        self
    }
}

impl<F: PrimeField, T: Into<LinearCombination<F>>> Sub<T> for LinearCombination<F> {
    type Output = Self;

    fn sub(mut self, other: T) -> Self {
        self.0.extend(other.into().0.into_iter().map(|(coefficient, variable)| (-coefficient, variable)));
        self
    }
}

impl<F: PrimeField> Mul<F> for LinearCombination<F> {
    type Output = Self;

    fn mul(mut self, factor: F) -> Self {
        for (coefficient, _) in &mut self.0 {
            *coefficient *= factor;
        }
        self
    }
}

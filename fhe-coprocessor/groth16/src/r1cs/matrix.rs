//! A sparse matrix by rows.

use ark_ff::{BigInteger, PrimeField};

use super::LinearCombination;

/// One of the three matrices: of row i the coefficients `starts[i]..starts[i + 1]` at their columns.
#[derive(Debug, Clone)]
pub(crate) struct Matrix<F> {
    starts: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<F>,
}

impl<F: PrimeField> Matrix<F> {
    pub(crate) fn new() -> Self {
        Self { starts: vec![0], columns: Vec::new(), coefficients: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: LinearCombination<F>) {
        for (coefficient, variable) in row.canonical() {
            self.columns.push(variable.0);
            self.coefficients.push(coefficient);
        }
        self.starts.push(self.columns.len() as u32);
    }

    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn terms(&self) -> usize {
        self.columns.len()
    }

    /// Coefficients and columns of one row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = (F, usize)> + '_ {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        let columns = self.columns[range.clone()].iter().map(|column| *column as usize);
        self.coefficients[range].iter().copied().zip(columns)
    }

    /// ⟨row, z⟩; most coefficients are 1 or −1, and those cost an addition only.
    pub(crate) fn product(&self, row: usize, z: &[F]) -> F {
        let minus_one = -F::ONE;
        let mut sum = F::ZERO;
        for (coefficient, column) in self.row(row) {
            let value = z[column];
            if coefficient == F::ONE {
                sum += value;
            } else if coefficient == minus_one {
                sum -= value;
            } else if !value.is_zero() {
                sum += value * coefficient;
            }
        }
        sum
    }

    /// Σᵢ weightsᵢ · rowᵢ, added to `out`.
    pub(crate) fn combine(&self, weights: &[F], out: &mut [F]) {
        for (row, weight) in weights.iter().enumerate().take(self.rows()) {
            for (coefficient, column) in self.row(row) {
                out[column] += *weight * coefficient;
            }
        }
    }

    /// Appends the canonical encoding: of each row its number of terms, then column and coefficient of each.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for row in 0..self.rows() {
            out.extend((self.starts[row + 1] - self.starts[row]).to_be_bytes());
            for (coefficient, column) in self.row(row) {
                out.extend((column as u32).to_be_bytes());
                out.extend(coefficient.into_bigint().to_bytes_be());
            }
        }
    }
}

//! The negacyclic transform modulo one prime: Harvey's lazy butterflies over Longa and Naehrig's order.

use super::{Modulus, ModulusError};

/// Tables for Z_q\[X\]/(X^N + 1), q ≡ 1 mod 2N: 4N words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ntt {
    modulus: Modulus,
    /// ψ^bitrev(k) and its companion.
    roots: Vec<(u64, u64)>,
    /// ψ^(−bitrev(k)) and its companion.
    inverse_roots: Vec<(u64, u64)>,
    /// N^(−1) and its companion.
    inverse_degree: (u64, u64),
}

impl Ntt {
    /// Tables for a power of two `degree` ≥ 2. ψ = g^((q−1)/2N) for the smallest g > 1 for which it has order 2N.
    /// Costs 2N products and divisions.
    ///
    /// # Errors
    /// [`ModulusError::NotCyclotomic`].
    ///
    /// # Panics
    /// If `degree` is not a power of two above 1.
    pub fn new(modulus: Modulus, degree: usize) -> Result<Self, ModulusError> {
        assert!(degree > 1 && degree.is_power_of_two(), "the degree is a power of two");
        let (q, order) = (modulus.value(), 2 * degree as u64);
        if q % order != 1 {
            return Err(ModulusError::NotCyclotomic { modulus: q, order });
        }
        // ψ^N = −1 for every g that is no square, so half of all g will do.
        let psi =
            (2..q).map(|g| modulus.pow(g, (q - 1) / order)).find(|&psi| modulus.pow(psi, order / 2) == q - 1);
        let psi = psi.ok_or(ModulusError::NotCyclotomic { modulus: q, order })?;
        let companion = |w| (w, modulus.shoup(w));
        let table = |base| {
            let mut powers = vec![(0, 0); degree];
            let mut power = 1;
            for exponent in 0..degree {
                powers[bit_reverse(exponent, degree)] = companion(power);
                power = modulus.mul(power, base);
            }
            powers
        };
        Ok(Self {
            modulus,
            roots: table(psi),
            inverse_roots: table(modulus.inverse(psi)),
            inverse_degree: companion(modulus.inverse(degree as u64)),
        })
    }

    /// The prime that it computes modulo.
    #[must_use]
    pub const fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// In place, from N coefficients below q to values: entry k becomes the value at ψ^(2·bitrev(k)+1).
    /// Costs N/2·log₂ N butterflies of two word products.
    pub fn forward(&self, values: &mut [u64]) {
        let (modulus, twice) = (&self.modulus, 2 * self.modulus.value());
        let mut half = values.len();
        let mut blocks = 1;
        while half > 1 {
            half /= 2;
            for (block, &(w, companion)) in
                values.chunks_exact_mut(2 * half).zip(&self.roots[blocks..2 * blocks])
            {
                let (low, high) = block.split_at_mut(half);
                // Values stay below 4q < 2^64.
                for (x, y) in low.iter_mut().zip(high) {
                    let u = reduce_to(*x, twice);
                    let v = modulus.mul_shoup_lazy(*y, w, companion);
                    *x = u + v;
                    *y = u + twice - v;
                }
            }
            blocks *= 2;
        }
        for value in values {
            *value = modulus.reduce_once(reduce_to(*value, twice));
        }
    }

    /// In place, the inverse of [`forward`](Self::forward). Costs N/2·log₂ N butterflies and N products.
    pub fn inverse(&self, values: &mut [u64]) {
        let (modulus, twice) = (&self.modulus, 2 * self.modulus.value());
        let mut half = 1;
        let mut blocks = values.len() / 2;
        while blocks >= 1 {
            let roots = &self.inverse_roots[blocks..2 * blocks];
            for (block, &(w, companion)) in values.chunks_exact_mut(2 * half).zip(roots) {
                let (low, high) = block.split_at_mut(half);
                // Values stay below 2q.
                for (x, y) in low.iter_mut().zip(high) {
                    let (u, v) = (*x, *y);
                    *x = reduce_to(u + v, twice);
                    *y = modulus.mul_shoup_lazy(u + twice - v, w, companion);
                }
            }
            half *= 2;
            blocks /= 2;
        }
        let (w, companion) = self.inverse_degree;
        for value in values {
            *value = modulus.reduce_once(modulus.mul_shoup_lazy(*value, w, companion));
        }
    }
}

/// x − bound if x ≥ bound, for x < 2·bound.
#[inline(always)]
const fn reduce_to(x: u64, bound: u64) -> u64 {
    let reduced = x.wrapping_sub(bound);
    reduced.wrapping_add(bound & ((x < bound) as u64).wrapping_neg())
}

/// The log₂ `degree` bits of `index` in reverse order.
pub(crate) const fn bit_reverse(index: usize, degree: usize) -> usize {
    index.reverse_bits() >> (usize::BITS - degree.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_evaluates_at_odd_powers_of_the_root() {
        for (q, degree) in [(17, 2), (17, 8), (65_537, 64), (18_014_398_492_704_769, 32)] {
            let modulus = Modulus::new(q).unwrap();
            let ntt = Ntt::new(modulus, degree).unwrap();
            let coefficients: Vec<u64> =
                (0..degree as u64).map(|i| modulus.reduce((i + 1).pow(5) + q - 1)).collect();
            let mut values = coefficients.clone();
            ntt.forward(&mut values);
            let psi = ntt.roots[bit_reverse(1, degree)].0;
            for (k, &value) in values.iter().enumerate() {
                let point = modulus.pow(psi, 2 * bit_reverse(k, degree) as u64 + 1);
                let horner =
                    coefficients.iter().rev().fold(0, |sum, &c| modulus.add(modulus.mul(sum, point), c));
                assert_eq!(value, horner, "q {q}, N {degree}, entry {k}");
            }
            ntt.inverse(&mut values);
            assert_eq!(values, coefficients);
        }
    }

    #[test]
    fn a_prime_without_the_root_is_refused() {
        let error = Ntt::new(Modulus::new(17).unwrap(), 16).unwrap_err();
        assert_eq!(error, ModulusError::NotCyclotomic { modulus: 17, order: 32 });
    }
}

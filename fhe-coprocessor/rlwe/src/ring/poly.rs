//! Polynomials, their spectra, and the ring that they belong to.

use zeroize::{Zeroize, Zeroizing};

use super::{Modulus, ModulusError, Ntt};

/// N coefficients below q_i for each prime q_i, prime after prime.
#[derive(Debug, Clone, PartialEq, Eq, Zeroize)]
pub struct Poly(Vec<u64>);

/// The values of a polynomial at the primitive 2N-th roots of unity, in the order of [`Ntt::forward`], prime after
/// prime.
#[derive(Debug, Clone, PartialEq, Eq, Zeroize)]
pub struct Spectrum(Vec<u64>);

impl Poly {
    /// All residues, prime after prime.
    #[must_use]
    pub fn residues(&self) -> &[u64] {
        &self.0
    }
}

/// Z_q\[X\]/(X^N + 1) for q = ∏ q_i, with the tables of its transforms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    degree: usize,
    primes: Vec<Ntt>,
}

impl Ring {
    /// Tables for each of `primes`.
    ///
    /// # Errors
    /// [`ModulusError`].
    ///
    /// # Panics
    /// If `degree` is not a power of two above 1.
    pub fn new(degree: usize, primes: &[u64]) -> Result<Self, ModulusError> {
        let primes = primes.iter().map(|&q| Ntt::new(Modulus::new(q)?, degree)).collect::<Result<_, _>>()?;
        Ok(Self { degree, primes })
    }

    /// N, how many coefficients a polynomial has.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// The primes q_i in order.
    pub fn moduli(&self) -> impl ExactSizeIterator<Item = &Modulus> + Clone {
        self.primes.iter().map(Ntt::modulus)
    }

    /// 0.
    #[must_use]
    pub fn zero(&self) -> Poly {
        Poly(vec![0; self.degree * self.primes.len()])
    }

    /// From residues, prime after prime; `None` unless there are N for each prime and each is below its prime.
    #[must_use]
    pub fn from_residues(&self, residues: Vec<u64>) -> Option<Poly> {
        let whole = residues.len() == self.degree * self.primes.len();
        let mut rows = residues.chunks(self.degree).zip(self.moduli());
        let reduced = rows.all(|(row, modulus)| row.iter().all(|&x| x < modulus.value()));
        (whole && reduced).then_some(Poly(residues))
    }

    /// From N signed coefficients, each smaller in absolute value than every prime.
    #[must_use]
    pub fn from_signed(&self, coefficients: &[i64]) -> Poly {
        assert_eq!(coefficients.len(), self.degree, "one coefficient for each power");
        Poly(self.moduli().flat_map(|modulus| coefficients.iter().map(|&x| modulus.lift(x))).collect())
    }

    /// From N small coefficients.
    #[must_use]
    pub fn from_small(&self, coefficients: &[i8]) -> Poly {
        assert_eq!(coefficients.len(), self.degree, "one coefficient for each power");
        Poly(self.moduli().flat_map(|modulus| coefficients.iter().map(|&x| modulus.lift(x.into()))).collect())
    }

    /// The residues modulo prime `index`.
    pub(crate) fn row<'a>(&self, poly: &'a Poly, index: usize) -> &'a [u64] {
        &poly.0[index * self.degree..(index + 1) * self.degree]
    }

    fn combine(&self, x: &mut [u64], y: &[u64], operation: impl Fn(&Modulus, u64, u64) -> u64) {
        assert!(x.len() == self.degree * self.primes.len() && x.len() == y.len(), "polynomials of this ring");
        let rows = x.chunks_exact_mut(self.degree).zip(y.chunks_exact(self.degree));
        for ((x, y), modulus) in rows.zip(self.moduli()) {
            for (x, &y) in x.iter_mut().zip(y) {
                *x = operation(modulus, *x, y);
            }
        }
    }

    /// x += y. Costs N additions for each prime.
    pub fn add_assign(&self, x: &mut Poly, y: &Poly) {
        self.combine(&mut x.0, &y.0, Modulus::add);
    }

    /// x −= y. Costs N subtractions for each prime.
    pub fn sub_assign(&self, x: &mut Poly, y: &Poly) {
        self.combine(&mut x.0, &y.0, Modulus::sub);
    }

    /// x = −x.
    pub fn neg_assign(&self, x: &mut Poly) {
        for (row, modulus) in x.0.chunks_exact_mut(self.degree).zip(self.moduli()) {
            row.iter_mut().for_each(|x| *x = modulus.neg(*x));
        }
    }

    /// Values from coefficients: one transform for each prime.
    #[must_use]
    pub fn forward(&self, poly: &Poly) -> Spectrum {
        let mut values = poly.0.clone();
        values.chunks_exact_mut(self.degree).zip(&self.primes).for_each(|(row, ntt)| ntt.forward(row));
        Spectrum(values)
    }

    /// Coefficients from values: one transform for each prime.
    #[must_use]
    pub fn inverse(&self, spectrum: &Spectrum) -> Poly {
        let mut values = spectrum.0.clone();
        values.chunks_exact_mut(self.degree).zip(&self.primes).for_each(|(row, ntt)| ntt.inverse(row));
        Poly(values)
    }

    /// x = x·y, value by value.
    pub fn mul_assign(&self, x: &mut Spectrum, y: &Spectrum) {
        self.combine(&mut x.0, &y.0, Modulus::mul);
    }

    /// x += y, value by value.
    pub fn add_spectrum(&self, x: &mut Spectrum, y: &Spectrum) {
        self.combine(&mut x.0, &y.0, Modulus::add);
    }

    /// poly·small for a polynomial whose spectrum is known: two transforms for each prime. The copies of the small
    /// factor are wiped; the product is the caller's to wipe where it is secret.
    #[must_use]
    pub fn mul_small(&self, spectrum: &Spectrum, small: &[i8]) -> Poly {
        let small = Zeroizing::new(self.from_small(small));
        let mut product = Zeroizing::new(self.forward(&small));
        self.mul_assign(&mut product, spectrum);
        self.inverse(&product)
    }

    /// The first `count` coefficients of poly·small for each prime, each by a sum of N products: cheaper than
    /// transforms for few coefficients.
    #[must_use]
    pub fn leading_of_product(&self, poly: &Poly, small: &[i8], count: usize) -> Vec<u64> {
        assert!(small.len() == self.degree && count <= self.degree, "a factor of this ring");
        let mut leading = Vec::with_capacity(count * self.primes.len());
        for (index, modulus) in self.moduli().enumerate() {
            let row = self.row(poly, index);
            for j in 0..count {
                // X^N = −1: what passes the end comes back with the other sign. |sum| < N·q·2^7 < 2^100.
                let below: i128 = dot(&row[..=j], &small[..=j]);
                let beyond: i128 = dot(&row[j + 1..], &small[j + 1..]);
                let shift = i128::from(modulus.value()) << 48;
                leading.push(modulus.reduce_wide((below - beyond + shift) as u128));
            }
        }
        leading
    }
}

/// Σ x_k·y_(n−1−k).
fn dot(x: &[u64], y: &[i8]) -> i128 {
    x.iter().zip(y.iter().rev()).map(|(&x, &y)| i128::from(x as i64) * i128::from(y)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRIMES: [u64; 2] = [18_014_398_492_704_769, 18_014_398_207_492_097];
    const N: usize = 16;

    /// The product by the definition, modulo one prime.
    fn schoolbook(x: &[u64], y: &[i8], q: u64) -> Vec<u64> {
        let mut product = vec![0_i128; N];
        for (i, &x) in x.iter().enumerate() {
            for (j, &y) in y.iter().enumerate() {
                let sign = if i + j < N { 1 } else { -1 };
                product[(i + j) % N] += sign * i128::from(x) * i128::from(y);
            }
        }
        product.into_iter().map(|x| x.rem_euclid(i128::from(q)) as u64).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..Default::default() })]
        #[test]
        fn products_follow_the_definition(
            x in prop::collection::vec(prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)], 2 * N),
            y in prop::collection::vec(any::<i8>(), N),
        ) {
            let ring = Ring::new(N, &PRIMES).unwrap();
            let x: Vec<u64> = x.iter().enumerate().map(|(i, x)| if *x == u64::MAX { PRIMES[i / N] - 1 } else { x % PRIMES[i / N] }).collect();
            let poly = ring.from_residues(x.clone()).unwrap();
            let expected: Vec<u64> = PRIMES.iter().zip(x.chunks(N)).flat_map(|(&q, x)| schoolbook(x, &y, q)).collect();
            let product = ring.mul_small(&ring.forward(&poly), &y);
            prop_assert_eq!(product.residues(), &expected[..]);
            for count in [0, 1, 7, N] {
                let leading = ring.leading_of_product(&poly, &y, count);
                let rows: Vec<u64> = expected.chunks(N).flat_map(|row| row[..count].to_vec()).collect();
                prop_assert_eq!(leading, rows);
            }
            let mut sum = product.clone();
            ring.add_assign(&mut sum, &poly);
            ring.sub_assign(&mut sum, &product);
            prop_assert_eq!(&sum, &poly);
            ring.neg_assign(&mut sum);
            ring.add_assign(&mut sum, &poly);
            prop_assert_eq!(sum, ring.zero());
        }
    }

    #[test]
    fn residues_are_checked() {
        let ring = Ring::new(2, &PRIMES).unwrap();
        assert!(ring.from_residues(vec![1, PRIMES[0] - 1, 0, PRIMES[1] - 1]).is_some());
        assert!(ring.from_residues(vec![1, PRIMES[0], 0, 0]).is_none());
        assert!(ring.from_residues(vec![1, 2, PRIMES[1], 0]).is_none());
        assert!(ring.from_residues(vec![1, 2, 0]).is_none());
        assert!(ring.from_residues(vec![1, 2, 0, 0, 0]).is_none());
    }
}

//! Exponentiation in GT.

use zeroize::Zeroizing;

use super::{Rows, equal_mask, sign_mask};
use crate::curve::{Gt, Scalar, Torus, TorusProduct};
use crate::digits::{X, base_x};
use crate::platform::prefetch;

/// Powers of one element of GT in torus form.
pub(crate) struct GtComb(Rows<Torus>);

impl GtComb {
    /// Costs for each entry two F_p6 products and an inversion but for its F_p part, which many share.
    /// Memory: ⌈65/w⌉·2^(w−1)·288 bytes at most.
    pub(crate) fn new(base: &Gt, window_bits: u32) -> Self {
        let largest = u128::from(X - 1);
        let count = Rows::<Torus>::lengths(largest, window_bits).len();
        let row_base = |previous: &Gt| Some((0..window_bits).fold(*previous, |power, _| power.square()));
        let bases: Vec<Gt> = std::iter::successors(Some(*base), row_base).take(count).collect();
        Self(Rows::new(largest, window_bits, |(i, length)| powers(&bases[i], length)))
    }

    #[allow(dead_code)] // only lanes use it
    pub(crate) fn window_bits(&self) -> u32 {
        self.0.window_bits
    }

    /// Entry d−1 of row i is base^(d·2^(w·i)).
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Torus]> {
        self.0.rows.iter().map(Vec::as_slice)
    }

    /// base^k, not divided yet, in variable time.
    pub(crate) fn product_public(&self, k: &Scalar) -> TorusProduct {
        self.lookup(k).product()
    }

    /// base^k for each k, not divided yet, in variable time. Fetches the factors of one product during the one before.
    pub(crate) fn products_public(&self, scalars: &[Scalar]) -> Vec<TorusProduct> {
        let mut found = scalars.iter().map(|k| self.lookup(k));
        let mut next = found.next();
        let products = std::iter::from_fn(|| {
            let current = std::mem::replace(&mut next, found.next())?;
            Some(current.product())
        });
        products.collect()
    }

    /// Looks the factors up and starts to fetch them.
    fn lookup(&self, k: &Scalar) -> Found<'_> {
        Found(
            base_x(k).map(|digit| {
                self.0.lookup(u128::from(digit)).inspect(|(power, _)| prefetch(*power)).collect()
            }),
        )
    }

    /// base^k in constant time: every lookup reads its whole row. For secret k and a small window.
    pub(crate) fn pow_secret(&self, k: &Scalar) -> Gt {
        let digits = base_x(k).map(|digit| {
            self.0.scan(u128::from(digit)).map(|(row, magnitude, sign)| {
                let mut power = Torus::default(); // 1, if no entry is chosen
                for (entry, value) in row.iter().zip(1..) {
                    power.or_masked(entry, equal_mask(magnitude, value));
                }
                let (mut factor, negative) = (Torus::default(), sign_mask(sign));
                factor.or_masked(&power.inverse(), negative);
                factor.or_masked(&power, !negative);
                factor
            })
        });
        Zeroizing::new(product(digits)).quotient()
    }
}

/// For each digit of an exponent, the powers that make it up, and whether each is to be inverted.
struct Found<'a>([Vec<(&'a Torus, bool)>; 4]);

impl Found<'_> {
    fn product(&self) -> TorusProduct {
        let signed = |(power, invert): &(&Torus, bool)| if *invert { power.inverse() } else { **power };
        product(self.0.each_ref().map(|digit| digit.iter().map(signed)))
    }
}

/// The product of all factors, those of digit j to the power |x|^j. Branches on their number only.
///
/// Two at a time: (1+a·w)·(1+b·w) is one F_p6 product, and a product by it three that share their reductions, against
/// two for each factor alone: measured 1.45 against 1.65 `blst` F_p12 products a pair.
fn product(digits: [impl Iterator<Item = Torus>; 4]) -> TorusProduct {
    let mut product: Option<TorusProduct> = None;
    for mut factors in digits.into_iter().rev() {
        product = product.map(|product| product.power_of_x());
        while let Some(factor) = factors.next() {
            product = Some(match (&product, factors.next()) {
                (Some(product), Some(other)) => product.mul(&factor.times(&other)),
                (Some(product), None) => product.mul_torus(&factor),
                (None, Some(other)) => factor.times(&other),
                (None, None) => (&factor).into(),
            });
        }
    }
    product.unwrap_or_else(TorusProduct::one)
}

/// base^1 … base^length, each block from the one before it and its last element.
fn powers(base: &Gt, length: usize) -> Vec<Torus> {
    /// Elements that share an inversion: bounds the memory for the denominators.
    const BLOCK: usize = 256;
    let mut powers = vec![Torus::new(base)];
    while powers.len() < length {
        let block = powers.len().min(BLOCK).min(length - powers.len());
        let last = powers[powers.len() - 1];
        powers.extend(last.times_each(&powers[..block]));
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comb::tests::edges;
    use crate::curve::{G1Affine, G2Affine, miller_loop};

    #[test]
    fn tables_agree_with_plain_exponentiation() {
        let g = miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part();
        for window_bits in [2, 3, 4, 5, 8, 11, 13] {
            let comb = GtComb::new(&g, window_bits);
            let scalars = edges();
            let products: Vec<TorusProduct> = scalars.iter().map(|k| comb.product_public(k)).collect();
            let together = TorusProduct::quotients(&products);
            for ((k, product), quotient) in scalars.iter().zip(&products).zip(together) {
                let want = g.pow_public(k);
                assert!(quotient == want && product.quotient() == want && product.is(&want));
                assert!(!product.is(&want.mul(&g)));
                assert!(window_bits > 8 || comb.pow_secret(k) == want);
            }
        }
    }
}

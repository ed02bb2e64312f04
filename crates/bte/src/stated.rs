//! Blinding factors that whoever publishes a singleton release states beside it.
//!
//! To see a decryption fail takes z_m = e(pd'_m, h_B): a pairing for each malformed ciphertext, several times what a good
//! one costs. Whoever made the release knows z_m already. Stated, all of a batch are checked at once:
//!
//! 1. Each is an element of the cyclotomic subgroup of F_p12, of order Φ₁₂(p).
//! 2. With random weights of 16 digits of 8 bits, the product of all elements to their digits lies in GT, for each place of
//!    the digits. The order of the quotient, Φ₁₂(p)/r, has no prime factor below 4,513, so one element outside GT passes
//!    one place with probability at most 2^−8, and all of them with 2^−128.
//! 3. The product of all elements to their weights is e(Σ weights·pd', h_B): with 1 and 2, wrong ones pass with
//!    probability 2^−128.
//!
//! Fewer than 128 are not looked at: the pairings are computed then, as they are where nothing is stated.

use std::fmt;

use crate::curve::{Gt, Torus, TorusProduct};
use crate::par;
use crate::weights::{WEIGHT_BYTES, Weight};

/// Bytes of a stated blinding factor.
pub const BLINDING_BYTES: usize = 288;

/// How many must be stated to be looked at: below it the pairings are as fast.
pub const STATED_MIN: usize = 128;
/// Elements that one task multiplies up at most: its buckets cost what 512 elements do.
pub(crate) const PIECE: usize = 4096;
/// Elements that share a field inversion.
pub(crate) const QUOTIENTS: usize = 64;
/// Buckets of a place, one for each value of its digit but 0.
pub(crate) const BUCKETS: usize = 255;

/// e(pd', h_B) of a singleton release, as its publisher states it: the six coefficients of a, 48 big-endian bytes each in
/// tower order, of the element (1 + a·w)/(1 − a·w). Public.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blinding([u8; BLINDING_BYTES]);

impl Blinding {
    /// Takes any bytes: what they are worth shows where they are used.
    pub fn from_bytes(bytes: [u8; BLINDING_BYTES]) -> Self {
        Self(bytes)
    }

    /// The 288 bytes as they travel, unchecked.
    pub fn as_bytes(&self) -> &[u8; BLINDING_BYTES] {
        &self.0
    }

    pub(crate) fn new(z: &Gt) -> Self {
        Self(Torus::new(z).encode())
    }

    fn decode(&self) -> Option<Torus> {
        Torus::decode(&self.0)
    }

    /// 1 + a·w; `None` where a coefficient is not below p.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn numerator(&self) -> Option<Gt> {
        self.decode().map(|torus| TorusProduct::from(&torus).numerator())
    }
}

impl fmt::Debug for Blinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blinding(..)")
    }
}

/// The elements that are stated; `None` where one is none of the cyclotomic subgroup.
pub(crate) fn elements(stated: &[&Blinding]) -> Option<(Vec<Torus>, Vec<Gt>)> {
    let decoded = par::pieces(stated.len(), QUOTIENTS, 1, |range| {
        let tori: Option<Vec<Torus>> = stated[range].iter().map(|blinding| blinding.decode()).collect();
        let Some(tori) = tori else { return vec![None] };
        let products: Vec<TorusProduct> = tori.iter().map(TorusProduct::from).collect();
        let elements = TorusProduct::quotients(&products);
        if !elements.iter().all(Gt::is_cyclotomic) {
            return vec![None];
        }
        tori.into_iter().zip(elements).map(Some).collect()
    });
    decoded.into_iter().collect::<Option<Vec<_>>>().map(|pairs| pairs.into_iter().unzip())
}

/// Whether these elements of the cyclotomic subgroup, to these weights, give `expected`, and all of them lie in GT.
pub(crate) fn holds(elements: &[Torus], weights: &[Weight], expected: &Gt) -> bool {
    let places = par::pieces(elements.len(), PIECE, 1, |range| {
        vec![products_of_places(&elements[range.clone()], &weights[range])]
    });
    let mut places = places.into_iter();
    let Some(mut product) = places.next() else { return expected.is_one() };
    for other in places {
        for (product, other) in product.iter_mut().zip(&other) {
            *product = product.mul(other);
        }
    }
    places_hold(&TorusProduct::quotients(&product), expected)
}

/// Whether the places' products lie in GT and, each to 256 to the power of its place, give `expected`.
pub(crate) fn places_hold(places: &[Gt], expected: &Gt) -> bool {
    let in_group = par::map(places.len(), |i| places[i].in_group());
    in_group.into_iter().all(|holds| holds) && weighted(places) == *expected
}

/// For each place of the digits, the product of all elements to their digits.
fn products_of_places(elements: &[Torus], weights: &[Weight]) -> Vec<TorusProduct> {
    let mut products = Vec::with_capacity(WEIGHT_BYTES);
    let mut buckets: Vec<Option<TorusProduct>> = Vec::new();
    for place in 0..WEIGHT_BYTES {
        buckets.clear();
        buckets.resize(BUCKETS, None);
        for (element, weight) in elements.iter().zip(weights) {
            if let Some(bucket) = usize::from(weight[place]).checked_sub(1) {
                let bucket = &mut buckets[bucket];
                *bucket = Some(match bucket {
                    None => TorusProduct::from(element),
                    Some(product) => product.mul_torus(element),
                });
            }
        }
        // Π of bucket d to the power d: the products of all buckets from d on, multiplied up.
        let (mut above, mut product): (Option<TorusProduct>, Option<TorusProduct>) = (None, None);
        let times = |a: Option<TorusProduct>, b: Option<TorusProduct>| match (a, b) {
            (Some(a), Some(b)) => Some(a.mul(&b)),
            (one, None) | (None, one) => one,
        };
        for bucket in buckets.iter().rev() {
            above = times(above, *bucket);
            product = times(product, above);
        }
        products.push(product.unwrap_or_else(TorusProduct::one));
    }
    products
}

fn weighted(places: &[Gt]) -> Gt {
    places.iter().rev().fold(Gt::one(), |product, place| {
        let shifted = (0..8).fold(product, |product, _| product.square());
        shifted.mul(place)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::curve::{G1, G1Affine, G2Affine, Scalar, miller_loop};

    /// As many powers of a pairing, and its exponents.
    pub(crate) fn powers(count: usize) -> (Vec<Gt>, Vec<Scalar>) {
        let pairing = miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part();
        let scalars: Vec<Scalar> = (0..count).map(|i| Scalar::from_u64(5 * i as u64 + 1)).collect();
        (scalars.iter().map(|k| pairing.pow_public(k)).collect(), scalars)
    }

    /// Weights with digits 0 and 255, and all of one bucket.
    pub(crate) fn weights(count: usize) -> Vec<Weight> {
        let digit = |i: usize, place: usize| match i {
            0 => 0,
            1 => 255,
            2 | 3 => 7,
            _ => (i * 31 + place * 7) as u8,
        };
        (0..count).map(|i| std::array::from_fn(|place| digit(i, place))).collect()
    }

    pub(crate) fn expected(scalars: &[Scalar], weights: &[Weight]) -> Gt {
        let term = |(k, weight): (&Scalar, &Weight)| k.mul(&crate::weights::as_scalar(weight));
        let sum = scalars.iter().zip(weights).map(term).fold(Scalar::ZERO, |a, b| a.add(&b));
        miller_loop(&G1::generator().mul_public(&sum).to_affine(), &G2Affine::generator())
            .easy_part()
            .hard_part()
    }

    /// Of the cyclotomic subgroup, not of GT.
    pub(crate) fn outside() -> Gt {
        miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part()
    }

    #[test]
    fn right_ones_hold_and_wrong_ones_do_not() {
        let (values, scalars) = powers(20);
        let (weights, blindings) = (weights(20), values.iter().map(Blinding::new).collect::<Vec<_>>());
        let expected = expected(&scalars, &weights);
        let read = |blindings: &[Blinding]| elements(&blindings.iter().collect::<Vec<_>>());
        let (right, gts) = read(&blindings).unwrap();
        assert!(gts == values && holds(&right, &weights, &expected));
        assert!(!holds(&right, &weights, &expected.square()));
        let with = |i: usize, value: &Gt| {
            let mut changed = blindings.clone();
            changed[i] = Blinding::new(value);
            changed
        };
        for wrong in [values[5], Gt::one(), values[4].conjugate(), values[4].mul(&outside())] {
            let (wrong, _) = read(&with(4, &wrong)).unwrap();
            assert!(!holds(&wrong, &weights, &expected));
        }
        // Two that make up for each other under equal weights of theirs do not under these.
        let mut swapped = blindings.clone();
        swapped.swap(4, 9);
        assert!(!holds(&read(&swapped).unwrap().0, &weights, &expected));
        assert!(holds(&[], &[], &Gt::one()) && !holds(&[], &[], &expected));
    }

    #[test]
    fn what_is_no_element_of_the_cyclotomic_subgroup_is_not_read() {
        let (values, _) = powers(2);
        let good = Blinding::new(&values[1]);
        let mut not_canonical = *good.as_bytes();
        not_canonical[48..96].fill(0xff);
        let mut another = *good.as_bytes();
        another[287] ^= 1;
        for bad in [not_canonical, another] {
            assert!(elements(&[&good, &Blinding::from_bytes(bad)]).is_none());
        }
        // All zeros stand for 1.
        let (_, one) = elements(&[&Blinding::from_bytes([0; BLINDING_BYTES])]).unwrap();
        assert!(one[0].is_one());
        assert!(elements(&[&Blinding::new(&outside())]).is_some());
    }

    /// What the probability of a wrong one rests on: Φ₁₂(p)/r has no prime factor below 4,513. Prime factors of Φ₁₂(p) that
    /// do not divide 12 are 1 modulo 12.
    #[test]
    fn the_cofactor_of_gt_has_no_small_factor() {
        // p and r modulo q, from p = (x−1)²·r/3 + x and r = x⁴ − x² + 1.
        let divides = |q: u64| {
            let m = u128::from(q) * 9;
            let x = m - u128::from(crate::digits::X) % m;
            let square = x * x % m;
            let r = (square * square % m + m - square + 1) % m;
            let (r_q, below) = (r % u128::from(q), (x + m - 1) % m);
            // 3·(p − x) = (x−1)²·r.
            let triple = below * below % m * r % m;
            let p = (triple / 3 + x) % u128::from(q);
            let phi = (p * p % u128::from(q) * (p * p % u128::from(q)) + u128::from(q) * u128::from(q)
                - p * p % u128::from(q)
                + 1)
                % u128::from(q);
            (phi == 0, r_q == 0)
        };
        for q in (2..4513).filter(|q| (2..*q).take_while(|d| d * d <= *q).all(|d| q % d != 0)) {
            assert!(!divides(q).0, "{q}");
        }
        assert_eq!(divides(4513), (true, false));
    }
}

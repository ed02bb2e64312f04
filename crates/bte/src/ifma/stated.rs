//! Stated blinding factors in eight lanes; see [`crate::stated`].

use super::field::{Fp, Packed};
use super::opening::open_all;
use super::target::{ONE12, Packed12, quotients};
use super::tower::Fp12;
use super::vector::{LANES, lanes};
use crate::curve::Gt;
use crate::stated::{BUCKETS, Blinding, PIECE, QUOTIENTS};
use crate::weights::{WEIGHT_BYTES, Weight};
use crate::{Ciphertext, EncryptionKey, Opening, par};

/// See [`crate::stated::elements`].
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests; so for all functions here.
pub(super) unsafe fn elements(stated: &[&Blinding]) -> Option<Vec<Packed12>> {
    let decoded = par::pieces(stated.len(), QUOTIENTS, LANES, |range| {
        let numerators: Option<Vec<Gt>> = stated[range].iter().map(|blinding| blinding.numerator()).collect();
        // SAFETY: by this function's contract.
        match numerators.and_then(|numerators| unsafe { elements_of(&numerators) }) {
            Some(elements) => elements.into_iter().map(Some).collect(),
            None => vec![None],
        }
    });
    decoded.into_iter().collect()
}

/// For each place of the digits, the product of all elements to their digits.
pub(super) unsafe fn places(elements: &[Packed12], weights: &[Weight]) -> Vec<Gt> {
    let pieces = par::pieces(elements.len(), PIECE, 1, |range| {
        // SAFETY: by this function's contract.
        vec![unsafe { places_of(&elements[range.clone()], &weights[range]) }]
    });
    let mut pieces = pieces.into_iter();
    let mut product = pieces.next().unwrap_or_default();
    for piece in pieces {
        product = product.iter().zip(&piece).map(|(a, b)| a.mul(b)).collect();
    }
    product
}

/// Opens ciphertexts with these blinding factors.
pub(super) unsafe fn open(
    key: &EncryptionKey,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
    elements: &[Packed12],
) -> Vec<Opening> {
    par::pieces(ciphertexts.len(), QUOTIENTS, LANES, |range| {
        // SAFETY: by this function's contract.
        unsafe { open_all(key, &ciphertexts[range.clone()], &gathered(&elements[range])) }
    })
}

lanes! {
    /// (1 + a·w)/(1 − a·w) of numerators 1 + a·w; `None` where one is not in the cyclotomic subgroup.
    fn elements_of(numerators: &[Gt]) -> Option<Vec<Packed12>> {
        let vector = |numerators: &[Gt]| {
            let lanes: [Gt; LANES] = std::array::from_fn(|lane| *numerators.get(lane).unwrap_or(&numerators[0]));
            Fp12::from_gt(lanes.each_ref())
        };
        let mut values: Vec<Fp12> = numerators.chunks(LANES).map(vector).collect();
        quotients(&mut values);
        let mut elements = vec![ONE12; LANES * values.len()];
        for (value, rows) in values.iter().zip(elements.chunks_exact_mut(LANES)) {
            if cyclotomic_lanes(value) != 0xff {
                return None;
            }
            put(value, rows);
        }
        elements.truncate(numerators.len());
        Some(elements)
    }

    fn gathered(elements: &[Packed12]) -> Vec<Fp12> {
        let vector = |rows: &[Packed12]| {
            Fp12::gather(std::array::from_fn(|lane| rows.get(lane).unwrap_or(&rows[0])))
        };
        elements.chunks(LANES).map(vector).collect()
    }

    /// Lanes where z^(p⁴)·z = z^(p²).
    fn cyclotomic_lanes(z: &Fp12) -> u8 {
        let power = z.frobenius(2);
        let product = power.frobenius(2).mul(z);
        let one = Fp::splat(&Packed::ONE.0);
        let coefficients = power.coefficients().into_iter().zip(product.coefficients());
        coefficients.fold(0xff, |mask, (a, b)| mask & a.sub_n(b).mul(&one).zero_lanes())
    }

    /// Eight places at a time, each lane with buckets of its own.
    fn places_of(elements: &[Packed12], weights: &[Weight]) -> Vec<Gt> {
        let mut out = Vec::with_capacity(WEIGHT_BYTES);
        for first in (0..WEIGHT_BYTES).step_by(LANES) {
            // Those of digit 0 are not read.
            let mut buckets = vec![ONE12; LANES * (BUCKETS + 1)];
            for (element, weight) in elements.iter().zip(weights) {
                let element = Fp12::gather([element; LANES]);
                let at: [usize; LANES] = std::array::from_fn(|lane| bucket(lane, usize::from(weight[first + lane])));
                let product = Fp12::gather(at.map(|at| &buckets[at])).mul(&element);
                let mut rows = buckets.chunks_exact_mut(BUCKETS + 1).zip(at);
                let rows: [&mut Packed12; LANES] = std::array::from_fn(|_| match rows.next() {
                    Some((rows, at)) => &mut rows[at % (BUCKETS + 1)],
                    None => unreachable!("each lane has buckets"),
                });
                product.scatter(rows);
            }
            let (mut above, mut product) = (Fp12::one(), Fp12::one());
            for digit in (1..=BUCKETS).rev() {
                let rows = std::array::from_fn(|lane| &buckets[bucket(lane, digit)]);
                above = above.mul(&Fp12::gather(rows));
                product = product.mul(&above);
            }
            out.extend(product.to_gt());
        }
        out
    }

    fn put(value: &Fp12, rows: &mut [Packed12]) {
        let mut rows = rows.iter_mut();
        value.scatter(std::array::from_fn(|_| match rows.next() {
            Some(row) => row,
            None => unreachable!("a row for each lane"),
        }));
    }
}

fn bucket(lane: usize, digit: usize) -> usize {
    lane * (BUCKETS + 1) + digit
}

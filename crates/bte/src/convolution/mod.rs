//! The convolution behind the cross-terms, over a domain made of cosets whose twists cost nothing.
//!
//! # What is computed
//!
//! With positions counted from 0, X_i = Π_(l≠i) e(C_l, g_(i−l)) for 0 ≤ i < b, where g_d = h_(B+1−d) and g_0, which
//! would be h_(B+1), is empty. Write L for a length fixed by the domain (not by b), reverse the inputs and shift the
//! kernel: C'_m = C_(L−1−m), g'_s = g_(s−L+1). Then, additively,
//!
//! > X_i = Σ_m g'_(i+m)·C'_m,   0 ≤ i < L,   0 ≤ m ≤ L.
//!
//! Slot m = L is position −1. Its coefficient in X_i is g_(i+1) = h_(B−i), the very point that the release is paired
//! with for position i: with −pd there, output i is X_i·e(pd, h_(B−i))^(−1), the inverse of the blinding factor, and
//! no pairing is left to do for each ciphertext (*fused* decryption).
//!
//! # How
//!
//! The matrix (g'_(i+m)) is Hankel: it is the transpose of multiplication by a polynomial. Let z_0 … z_(n−1) be
//! distinct points, V the matrix of the z_k^m, and let w solve Vᵀ·w = g', that is Σ_k w_k·z_k^s = g'_s for 0 ≤ s < n.
//! As long as i + m < n,
//!
//! > X = Vᵀ·(w ∘ V·C'):   evaluate C', multiply point by point, apply the transpose of evaluation
//!
//! (transposition principle; Hanrot, Quercia and Zimmermann, "The middle product algorithm I", 2004). With i < L and
//! m ≤ L this takes n ≥ 2L points. Here w_k are points of G2, computed once and for all; the products are pairings.
//!
//! # The points
//!
//! c cosets of the group of M-th roots of unity, M = 2^k: the points are ζ^j·ω^f, 0 ≤ j < c ≤ 3, 0 ≤ f < M, with ζ a
//! primitive cube root of unity; n = c·M. All powers of ζ are **free**: p ≡ x (mod r) for the curve parameter x, and
//! x² is a primitive sixth root of unity, so ζ = −x² acts on (x, y) in G1 as (βx, y), one field product, and on GT as
//! the square of the Frobenius map and a conjugation. For c = 3 the points are all 3M-th roots of unity, and this is
//! the Good–Thomas (prime factor) transform; for c = 2 it is the same transform with a coset left out.
//!
//! - *Forward*, for each coset j: v_l = Σ_q ζ^(j(l+qM))·C'_(l+qM), 0 ≤ l < M (the input folded to M slots), then a
//!   length-M transform of v.
//! - *Back*, for each coset: Y^(j)_i = Σ_f ω^(if)·(w ∘ V·C')_(j,f), 0 ≤ i < M; then X_i = Σ_j ζ^(ji)·Y^(j)_(i mod M).
//! - *Fixed side*: see [`fixed`].
//!
//! # Why not 2^(k+1) points in one
//!
//! A radix-2 transform of length M has N(M) = (M/2)·log₂M − (M−1) twiddles that are not 1, so two of length M have
//! M − 1 fewer than one of length 2M, whose first level is what disappears. Twiddle products are most of the work, and
//! a third coset serves batches up to 1.5·2^k without going to the next power of two. Twiddles in G1 / in GT (there
//! split radix, whose fourth roots are free, see [`target`]):
//!
//! | b | one transform of 2^⌈log₂ 2b⌉ | c transforms of M |
//! |---|---|---|
//! | 96 | 769 / 456 | 387 / 216 |
//! | 128 | 769 / 456 | 642 / 372 |
//! | 512 | 4097 / 2504 | 3586 / 2164 |
//! | 2048 | 20481 / 12744 | 18434 / 11380 |
//! | 65536 | 983041 / 626234 | 917506 / 582544 |
//!
//! The number of points, hence of pairings, is exactly 2b for b = 2^k and b = 1.5·2^k.

mod budget;
mod fixed;
mod points;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use budget::Budget;
pub(crate) use fixed::FixedSide;

use crate::MAX_BATCH;
use crate::curve::{G1, G1Affine, Gt, Scalar};
use crate::digits::X;

/// Largest k with 2^k dividing r − 1.
const TWO_ADICITY: u32 = 32;

/// Transforms below this length stay on their thread.
const PARALLEL_MIN: usize = 16;

/// M and c: which points a domain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// log₂ M, at least 1.
    pub log_size: u32,
    /// c: 2 or 3.
    pub cosets: usize,
}

impl Shape {
    /// Shapes that batches of 2..=[`MAX_BATCH`] use; bounds [`Shape::index`].
    pub(crate) const COUNT: usize = 2 * MAX_BATCH.ilog2() as usize;

    /// The fewest points for `batch` ≥ 2 ciphertexts and a release.
    pub(crate) fn for_batch(batch: usize) -> Self {
        assert!((2..=MAX_BATCH).contains(&batch), "one ciphertext needs no convolution");
        let log_size = batch.next_power_of_two().ilog2();
        let three_halves = Self { log_size: log_size - 1, cosets: 3 };
        if log_size >= 2 && batch <= three_halves.capacity() {
            three_halves
        } else {
            Self { log_size, cosets: 2 }
        }
    }

    /// M: length of one transform.
    pub fn size(self) -> usize {
        1 << self.log_size
    }

    /// n = c·M: points in all, each a pairing.
    pub fn points(self) -> usize {
        self.cosets * self.size()
    }

    /// L = n/2: most ciphertexts in one batch.
    pub fn capacity(self) -> usize {
        self.points() / 2
    }

    /// Numbers the shapes without gaps from 0.
    pub(crate) fn index(self) -> usize {
        2 * (self.log_size as usize - 1) + self.cosets - 2
    }

    /// Input folding, first half: ciphertext `position` of a batch (from 0) is C'_slot.
    pub fn slot(self, position: usize) -> usize {
        self.capacity() - 1 - position
    }

    /// Input folding, first half: −pd is C'_slot; there are one more slots than [`Shape::capacity`].
    pub fn release_slot(self) -> usize {
        self.capacity()
    }

    /// Input folding, second half, and output rule: in coset j, C'_m is multiplied by ζ^twist(j, m) and added to
    /// element m mod M of the transform's input; element i mod M of the transform's output is raised to
    /// ζ^twist(j, i) for output i.
    pub fn twist(self, coset: usize, exponent: usize) -> usize {
        coset * exponent % 3
    }
}

/// A shape with its twiddles.
pub(crate) struct Domain {
    shape: Shape,
    /// 1, ω, ω² … ω^(M−1).
    roots: Vec<Scalar>,
}

impl Domain {
    pub(crate) fn new(shape: Shape) -> Self {
        assert!((1..TWO_ADICITY).contains(&shape.log_size) && (2..=3).contains(&shape.cosets));
        let mut root = two_adic_root();
        for _ in shape.log_size..TWO_ADICITY {
            root = root.mul(&root);
        }
        let mut roots = Vec::with_capacity(shape.size());
        let mut power = Scalar::one();
        for _ in 0..shape.size() {
            roots.push(power);
            power = power.mul(&root);
        }
        Self { shape, roots }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// ω^power, any power.
    pub(crate) fn root(&self, power: usize) -> &Scalar {
        &self.roots[power % self.roots.len()]
    }

    /// All powers of ω, in order. The level of a forward transform that has blocks of length 2h multiplies element i
    /// of each block's second half by ω^(i·M/2h).
    pub(crate) fn roots(&self) -> &[Scalar] {
        &self.roots
    }

    /// Is the cube of Frobenius exponentiation by ω^(M/4), or by its opposite? Without meaning for M = 2, which has no
    /// fourth root.
    pub(crate) fn frobenius_is_fourth_root(&self) -> bool {
        let x = Scalar::from_u64(X).neg();
        x.mul(&x).mul(&x) == *self.root(self.shape.size() / 4)
    }
}

/// The cross-terms X_i of `inputs` up to the hard part of the final exponentiation, in batch order. With a release pd,
/// X_i·e(pd, h_(B−i))^(−1) instead: inverses of the blinding factors.
///
/// `inputs` are at most as many as the shape's capacity. Costs n Miller loops and easy parts, and the twiddle products
/// of the table above. Variable time: inputs are public.
pub(crate) fn convolve(
    fixed: &FixedSide,
    budget: &Budget,
    inputs: &[G1Affine],
    release: Option<&G1Affine>,
) -> Vec<Gt> {
    let domain = fixed.domain();
    let shape = domain.shape();
    assert!(inputs.len() <= shape.capacity(), "more inputs than the domain is made for");
    let mut slots = vec![G1::default(); shape.capacity() + 1];
    for (position, input) in inputs.iter().enumerate() {
        slots[shape.slot(position)] = G1::from(input);
    }
    if let Some(release) = release {
        slots[shape.release_slot()] = G1::from(&release.neg());
    }
    let values = points::forward(domain, &slots);
    let products = fixed.multiply(budget, &values);
    target::back(domain, &products, inputs.len())
}

/// ζ = −x².
fn cube_root() -> Scalar {
    let x = Scalar::from_u64(X);
    x.mul(&x).neg()
}

/// A primitive 2^32-th root of unity: 7^((r−1)/2^32), 7 a generator of the multiplicative group.
fn two_adic_root() -> Scalar {
    let mut limbs = Scalar::one().neg().to_limbs(); // r − 1
    for i in 0..4 {
        let above = limbs.get(i + 1).copied().unwrap_or(0);
        limbs[i] = limbs[i] >> TWO_ADICITY | above << (64 - TWO_ADICITY);
    }
    Scalar::from_u64(7).pow(&limbs)
}

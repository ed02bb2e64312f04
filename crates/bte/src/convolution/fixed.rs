//! The fixed side of the convolution: w with Σ_k w_k·z_k^s = g'_s for 0 ≤ s < n.
//!
//! w = V^(−T)·g', the transpose of interpolation. Interpolation on c cosets is c inverse transforms, which give the
//! residues modulo z^M − θ_j, θ_j = ζ^(jM), and for each element a c×c inverse Vandermonde matrix in the θ_j, which
//! puts the residues together. Transposed, the same steps come in the opposite order. Write u_j(l) = Σ_f w_(j,f)·ω^(fl)
//! and y_j(l) = ζ^(jl)·u_j(l); then what is asked for is Σ_j θ_j^q·y_j(l) = g'_(l+qM) for 0 ≤ l < M, 0 ≤ q < c:
//!
//! 1. y from g'. For c = 3 the θ_j are all cube roots of unity, so y_j(l) = (1/3)·Σ_q θ_j^(−q)·g'_(l+qM); for c = 2,
//!    y_0(l) = (θ_1·g'_l − g'_(l+M))/(θ_1 − 1) and y_1(l) = (g'_(l+M) − g'_l)/(θ_1 − 1). The divisor is the same for
//!    all elements, and what remains are powers of ζ;
//! 2. u_j(l) = ζ^(−jl)·y_j(l);
//! 3. w_j = (1/M)·(inverse transform of u_j).
//!
//! All constants are multiplied into g' at the start. They would cost an exponentiation in GT for each output of each
//! batch otherwise.

use std::sync::OnceLock;

use super::{Budget, Domain, Shape, cube_root, points};
use crate::curve::{G1Affine, G2, G2Affine, Gt, Lines, Scalar, miller_loop};
use crate::derived::Derived;
use crate::par;

/// The fixed side for one domain: all batches that fit share it.
pub(crate) struct FixedSide {
    domain: Domain,
    /// w in order [coset][bit-reversed frequency].
    points: Vec<G2Affine>,
    /// Miller lines of the points, made at first use; `None` if there was no memory for them.
    lines: OnceLock<Option<Vec<Lines>>>,
    derived: Derived,
}

impl FixedSide {
    /// Computes w for the kernel g'_s = `kernel(s − L + 1)`; `None` is the identity. Costs n·(1 + log₂M / 2)
    /// multiplications in G2.
    pub(crate) fn compute<'a>(
        shape: Shape,
        kernel: impl Fn(isize) -> Option<&'a G2Affine> + Sync,
    ) -> Vec<G2Affine> {
        let domain = Domain::new(shape);
        let scale = scale(shape).inverse();
        let values = par::map(shape.points(), |s| {
            let point = kernel(s as isize + 1 - shape.capacity() as isize);
            point.map_or_else(G2::default, |point| G2::from(point).mul(&scale))
        });
        let mut values = residues(shape, &values);
        par::for_each_chunk(&mut values, shape.size(), |coset| points::inverse_g2(&domain, coset));
        G2::to_affine_batch(&values)
    }

    /// Takes w as [`FixedSide::compute`] gave it.
    pub(crate) fn new(shape: Shape, points: Vec<G2Affine>) -> Self {
        assert_eq!(points.len(), shape.points());
        Self { domain: Domain::new(shape), points, lines: OnceLock::new(), derived: Derived::default() }
    }

    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// w in order [coset][bit-reversed frequency].
    pub(crate) fn points(&self) -> &[G2Affine] {
        &self.points
    }

    /// The Miller lines of the points, n times [`Lines::BYTES`] bytes, if `budget` has them.
    pub(crate) fn lines(&self, budget: &Budget) -> Option<&[Lines]> {
        let make = || par::map(self.points.len(), |i| Lines::new(&self.points[i]));
        budget.keep(&self.lines, self.points.len() * Lines::BYTES, make).map(Vec::as_slice)
    }

    /// What a backend keeps beside it.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// The pairings of w with the transformed inputs, up to the hard part.
    pub(super) fn multiply(&self, budget: &Budget, values: &[G1Affine]) -> Vec<Gt> {
        assert_eq!(values.len(), self.points.len());
        let lines = self.lines(budget);
        par::map(values.len(), |index| {
            let miller = match lines {
                Some(lines) => lines[index].miller_loop(&values[index]),
                None => miller_loop(&values[index], &self.points[index]),
            };
            miller.easy_part()
        })
    }
}

/// What step 1 and step 3 divide by together.
fn scale(shape: Shape) -> Scalar {
    let size = Scalar::from_u64(shape.size() as u64);
    match shape.cosets {
        2 => {
            let zeta = cube_root();
            let theta = if shape.twist(1, shape.size()) == 1 { zeta } else { zeta.mul(&zeta) };
            size.mul(&theta.sub(&Scalar::one()))
        }
        _ => size.mul(&Scalar::from_u64(3)),
    }
}

/// Steps 1 and 2, without the divisor: the u_j, coset by coset.
fn residues(shape: Shape, kernel: &[G2]) -> Vec<G2> {
    let size = shape.size();
    par::map(shape.points(), |index| {
        let (coset, element) = (index / size, index % size);
        let block = |q: usize| &kernel[element + q * size];
        let theta = shape.twist(1, size);
        let y = match (shape.cosets, coset) {
            (2, 0) => block(0).times_zeta(theta).add(&block(1).neg()),
            (2, _) => block(1).add(&block(0).neg()),
            _ => (1..3)
                .fold(*block(0), |sum, q| sum.add(&block(q).times_zeta(minus(shape.twist(coset, size * q))))),
        };
        y.times_zeta(minus(shape.twist(coset, element)))
    })
}

/// Powers of ζ are taken modulo 3.
fn minus(power: usize) -> usize {
    (3 - power) % 3
}

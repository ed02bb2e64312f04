//! Transforms in GT (or, before the hard part of the final exponentiation, in the cyclotomic subgroup).
//!
//! Split radix, since fourth roots of unity are free: p ≡ x (mod r) has order 12, so g^(p³), one Frobenius map, is g
//! to a primitive fourth root of unity. Third roots, for the twists between cosets, are free for the same reason.

use super::{Domain, PARALLEL_MIN};
use crate::curve::Gt;
use crate::par;

/// X_i = Π_j (Π_f values_(j,f)^(ω^(if)))^(ζ^(ji)) for 0 ≤ i < `outputs`.
///
/// `values` are in the order that the forward transform gives: [coset][bit-reversed frequency].
pub(super) fn back(domain: &Domain, values: &[Gt], outputs: usize) -> Vec<Gt> {
    let (shape, size) = (domain.shape(), domain.shape().size());
    assert_eq!(values.len(), shape.points());
    let transform = Transform::new(domain);
    let cosets = par::map(shape.cosets, |coset| transform.run(&values[coset * size..(coset + 1) * size], 1));
    par::map(outputs, |i| {
        let twisted = |coset: usize| cosets[coset][i % size].pow_zeta(shape.twist(coset, i));
        (1..shape.cosets).fold(cosets[0][i % size], |product, coset| product.mul(&twisted(coset)))
    })
}

struct Transform<'a> {
    domain: &'a Domain,
    /// See [`Domain::frobenius_is_fourth_root`].
    frobenius_is_fourth_root: bool,
}

impl<'a> Transform<'a> {
    fn new(domain: &'a Domain) -> Self {
        Self { domain, frobenius_is_fourth_root: domain.frobenius_is_fourth_root() }
    }

    /// The transform with root ω^stride of a bit-reversed input. In that order even elements are the first half, and
    /// those 1 and 3 modulo 4 are the last two quarters.
    fn run(&self, values: &[Gt], stride: usize) -> Vec<Gt> {
        match values {
            [single] => return vec![*single],
            [a, b] => return vec![a.mul(b), a.mul(&b.conjugate())],
            _ => {}
        }
        let quarter = values.len() / 4;
        let (even, odd) = values.split_at(2 * quarter);
        let (first, third) = odd.split_at(quarter);
        let even = || self.run(even, 2 * stride);
        let first = || self.run(first, 4 * stride);
        let third = || self.run(third, 4 * stride);
        let parts: Vec<[Gt; 4]> = if values.len() >= PARALLEL_MIN {
            let (even, (first, third)) = par::join(even, || par::join(first, third));
            par::map(quarter, |k| {
                self.combine([&even[k], &even[k + quarter]], &first[k], &third[k], k * stride)
            })
        } else {
            let (even, first, third) = (even(), first(), third());
            let part = |k| self.combine([&even[k], &even[k + quarter]], &first[k], &third[k], k * stride);
            (0..quarter).map(part).collect()
        };
        (0..4).flat_map(|block| parts.iter().map(move |part| part[block])).collect()
    }

    /// Outputs k, k + quarter, k + 2·quarter, k + 3·quarter, where `power` is k times the stride.
    fn combine(&self, even: [&Gt; 2], first: &Gt, third: &Gt, power: usize) -> [Gt; 4] {
        let (a, b) = (self.twiddle(first, power), self.twiddle(third, 3 * power));
        let sum = a.mul(&b);
        let difference = self.fourth_root_power(&a.mul(&b.conjugate()));
        [
            even[0].mul(&sum),
            even[1].mul(&difference),
            even[0].mul(&sum.conjugate()),
            even[1].mul(&difference.conjugate()),
        ]
    }

    /// g^(ω^power).
    fn twiddle(&self, g: &Gt, power: usize) -> Gt {
        if power == 0 { *g } else { g.pow_public(self.domain.root(power)) }
    }

    /// g^(ω^(M/4)).
    fn fourth_root_power(&self, g: &Gt) -> Gt {
        let cube = g.frobenius(3);
        if self.frobenius_is_fourth_root { cube } else { cube.conjugate() }
    }
}

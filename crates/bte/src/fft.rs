//! Fast Fourier transforms whose elements are group elements and whose twiddles are scalars.
//!
//! Points: radix 2, decimation in frequency, natural order in, bit-reversed out.
//! GT: the inverse transform as split radix, since fourth roots of unity are free there: p ≡ x (mod r) has order
//! 12, so g^(p³), one Frobenius map, is g to a primitive fourth root of unity. The factor 1/n is not applied: the
//! caller has folded it into the fixed side of the convolution.

use crate::curve::{G1, G2, Gt, Scalar};
use crate::digits::X;
use crate::par;

/// Largest k with 2^k dividing r − 1.
const TWO_ADICITY: u32 = 32;

/// Below this length a transform stays on its thread.
const PARALLEL_MIN: usize = 16;

/// The powers of a primitive n-th root of unity, n a power of two, at least 4.
pub(crate) struct Domain {
    roots: Vec<Scalar>,
    /// Is the cube of Frobenius exponentiation by the *inverse* root's (n/4)-th power, or by its opposite?
    frobenius_is_inverse_fourth_root: bool,
}

impl Domain {
    pub(crate) fn new(log_size: u32) -> Self {
        assert!((2..TWO_ADICITY).contains(&log_size), "domain sizes lie between 4 and 2^31");
        let size = 1usize << log_size;
        let mut root = two_adic_root();
        for _ in log_size..TWO_ADICITY {
            root = root.mul(&root);
        }
        let mut roots = Vec::with_capacity(size);
        let mut power = Scalar::one();
        for _ in 0..size {
            roots.push(power);
            power = power.mul(&root);
        }
        let x = Scalar::from_u64(X).neg();
        let frobenius_is_inverse_fourth_root = x.mul(&x).mul(&x) == roots[3 * size / 4];
        Self { roots, frobenius_is_inverse_fourth_root }
    }

    pub(crate) fn size(&self) -> usize {
        self.roots.len()
    }

    fn inverse_root(&self, power: usize) -> &Scalar {
        &self.roots[(self.size() - power % self.size()) % self.size()]
    }

    /// G1: variable time, inputs are public. Identities cost nothing.
    pub(crate) fn transform_g1(&self, values: &mut [G1]) {
        assert_eq!(values.len(), self.size());
        self.decimate(values, 1, &|low, high, twiddle| {
            if high.is_identity() {
                *high = *low; // the zero half of the input
            } else {
                let difference = low.sub(high);
                *low = low.add(high);
                *high = difference;
            }
            if let Some(twiddle) = twiddle
                && !high.is_identity()
            {
                *high = high.mul_public(twiddle);
            }
        });
    }

    /// G2: for the fixed parameters, once for each domain.
    pub(crate) fn transform_g2(&self, values: &mut [G2]) {
        assert_eq!(values.len(), self.size());
        self.decimate(values, 1, &|low, high, twiddle| {
            let difference = low.add(&high.neg());
            *low = low.add(high);
            *high = twiddle.map_or(difference, |twiddle| difference.mul(twiddle));
        });
    }

    fn decimate<T: Send>(
        &self,
        values: &mut [T],
        stride: usize,
        butterfly: &(impl Fn(&mut T, &mut T, Option<&Scalar>) + Sync),
    ) {
        if values.len() < 2 {
            return;
        }
        let parallel = values.len() >= PARALLEL_MIN;
        let (low, high) = values.split_at_mut(values.len() / 2);
        let step = |i: usize, a: &mut T, b: &mut T| butterfly(a, b, (i > 0).then(|| &self.roots[i * stride]));
        if parallel {
            par::zip_mut(low, high, step);
            par::join(
                || self.decimate(low, 2 * stride, butterfly),
                || self.decimate(high, 2 * stride, butterfly),
            );
        } else {
            low.iter_mut().zip(high.iter_mut()).enumerate().for_each(|(i, (a, b))| step(i, a, b));
            self.decimate(low, 2 * stride, butterfly);
            self.decimate(high, 2 * stride, butterfly);
        }
    }

    /// The first half of n·IDFT(values): output i is Π_k values_k^(ω^(−ik)), i < n/2.
    pub(crate) fn inverse_gt_first_half(&self, values: &[Gt]) -> Vec<Gt> {
        assert_eq!(values.len(), self.size());
        let mut out = self.split_radix(values, 0, 1);
        out.truncate(self.size() / 2);
        out
    }

    /// The transform of values[offset], values[offset + stride], …
    fn split_radix(&self, values: &[Gt], offset: usize, stride: usize) -> Vec<Gt> {
        let length = self.size() / stride;
        match length {
            1 => return vec![values[offset]],
            2 => {
                let (a, b) = (&values[offset], &values[offset + stride]);
                return vec![a.mul(b), a.mul(&b.conjugate())];
            }
            _ => {}
        }
        let even = || self.split_radix(values, offset, 2 * stride);
        let first = || self.split_radix(values, offset + stride, 4 * stride);
        let third = || self.split_radix(values, offset + 3 * stride, 4 * stride);
        let quarter = length / 4;
        let combine = |even: &[Gt], first: &Gt, third: &Gt, k: usize| {
            let a = self.twist(first, k * stride);
            let b = self.twist(third, 3 * k * stride);
            let sum = a.mul(&b);
            let difference = self.inverse_fourth_root_power(&a.mul(&b.conjugate()));
            [
                even[k].mul(&sum),
                even[k + quarter].mul(&difference),
                even[k].mul(&sum.conjugate()),
                even[k + quarter].mul(&difference.conjugate()),
            ]
        };
        let parts: Vec<[Gt; 4]> = if length >= PARALLEL_MIN {
            let (even, (first, third)) = par::join(even, || par::join(first, third));
            par::map(quarter, |k| combine(&even, &first[k], &third[k], k))
        } else {
            let (even, first, third) = (even(), first(), third());
            (0..quarter).map(|k| combine(&even, &first[k], &third[k], k)).collect()
        };
        (0..4).flat_map(|block| parts.iter().map(move |part| part[block])).collect()
    }

    /// g^(ω^(−power)).
    fn twist(&self, g: &Gt, power: usize) -> Gt {
        if power.is_multiple_of(self.size()) { *g } else { g.pow_public(self.inverse_root(power)) }
    }

    /// g^(ω^(−n/4)): one Frobenius map.
    fn inverse_fourth_root_power(&self, g: &Gt) -> Gt {
        let cube = g.frobenius(3);
        if self.frobenius_is_inverse_fourth_root { cube } else { cube.conjugate() }
    }
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

/// The bit-reversal permutation: element i of the result is element reverse(i) of the input.
pub(crate) fn bit_reversed<T: Copy>(values: &[T]) -> Vec<T> {
    let log_size = values.len().trailing_zeros();
    (0..values.len()).map(|i| values[i.reverse_bits() >> (usize::BITS - log_size)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{G1Affine, G2Affine, miller_loop};

    fn naive(domain: &Domain, coefficients: &[Scalar], inverse: bool) -> Vec<Scalar> {
        let n = domain.size();
        (0..n)
            .map(|i| {
                coefficients.iter().enumerate().fold(Scalar::ZERO, |sum, (k, c)| {
                    let power = i * k % n;
                    let root = if inverse { domain.inverse_root(power) } else { &domain.roots[power] };
                    sum.add(&c.mul(root))
                })
            })
            .collect()
    }

    #[test]
    fn transforms_agree_with_their_definition() {
        let g = miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part();
        for log_size in 2..=6 {
            let domain = Domain::new(log_size);
            let n = domain.size();
            assert!(domain.roots[n / 2] == Scalar::one().neg());
            let mut coefficients: Vec<Scalar> = (0..n).map(|i| Scalar::reduce(&[i as u8 + 1; 40])).collect();
            coefficients[n / 2..].fill(Scalar::ZERO);
            coefficients[1] = Scalar::one().neg();

            let want = naive(&domain, &coefficients, false);
            let mut points: Vec<G1> = coefficients.iter().map(|c| G1::generator().mul_secret(c)).collect();
            domain.transform_g1(&mut points);
            let points = bit_reversed(&points);
            assert!((0..n).all(|i| points[i] == G1::generator().mul_secret(&want[i])));

            let mut points: Vec<G2> = coefficients.iter().map(|c| G2::generator().mul(c)).collect();
            domain.transform_g2(&mut points);
            let points = bit_reversed(&points);
            assert!((0..n).all(|i| points[i] == G2::generator().mul(&want[i])));

            let want = naive(&domain, &want, true);
            let powers: Vec<Gt> =
                naive(&domain, &coefficients, false).iter().map(|c| g.pow_public(c)).collect();
            let out = domain.inverse_gt_first_half(&powers);
            assert_eq!(out.len(), n / 2);
            assert!((0..n / 2).all(|i| out[i] == g.pow_public(&want[i])));
        }
    }
}

//! Transforms of points: radix 2, decimation in frequency, natural order in, bit-reversed out.

use super::{Domain, PARALLEL_MIN};
use crate::curve::{G1, G1Affine, G2};
use crate::par;

/// Evaluates Σ_m slots_m·z^m in all points of the domain, in order [coset][bit-reversed frequency].
///
/// `slots` are at most 2M. Identities among them cost nothing, otherwise c·N(M) multiplications by twiddles.
pub(super) fn forward(domain: &Domain, slots: &[G1]) -> Vec<G1Affine> {
    let mut values = fold(domain, slots);
    par::for_each_chunk(&mut values, domain.shape().size(), |coset| transform_g1(domain, coset));
    G1::to_affine_batch(&values)
}

/// For each coset j, element l: Σ_q ζ^(j(l+qM))·slots_(l+qM), q = 0, 1.
fn fold(domain: &Domain, slots: &[G1]) -> Vec<G1> {
    let (shape, size) = (domain.shape(), domain.shape().size());
    assert!(slots.len() <= 2 * size);
    let twisted =
        |coset, slot: usize| slots.get(slot).map(|point| point.times_zeta(shape.twist(coset, slot)));
    par::map(shape.points(), |index| {
        let (coset, element) = (index / size, index % size);
        let value = twisted(coset, element).unwrap_or_default();
        match twisted(coset, element + size) {
            Some(beyond) if !beyond.is_identity() => value.add(&beyond),
            _ => value,
        }
    })
}

/// Variable time, inputs are public.
fn transform_g1(domain: &Domain, values: &mut [G1]) {
    let twiddle = |power| domain.root(power);
    decimate(values, 1, &|low: &mut G1, high: &mut G1, power| {
        if high.is_identity() {
            *high = *low;
        } else {
            let difference = low.sub(high);
            *low = low.add(high);
            *high = difference;
        }
        if power > 0 && !high.is_identity() {
            *high = high.mul_public(twiddle(power));
        }
    });
}

/// The inverse transform without its factor 1/M. For the fixed parameters.
pub(super) fn inverse_g2(domain: &Domain, values: &mut [G2]) {
    let inverse_twiddle = |power| domain.root(domain.shape().size() - power);
    decimate(values, 1, &|low: &mut G2, high: &mut G2, power| {
        let difference = low.add(&high.neg());
        *low = low.add(high);
        *high = if power > 0 { difference.mul(inverse_twiddle(power)) } else { difference };
    });
}

/// `butterfly(a, b, power)` puts a + b in place of a and (a − b) times the root's `power` in place of b.
fn decimate<T: Send>(values: &mut [T], stride: usize, butterfly: &(impl Fn(&mut T, &mut T, usize) + Sync)) {
    if values.len() < 2 {
        return;
    }
    let parallel = values.len() >= PARALLEL_MIN;
    let (low, high) = values.split_at_mut(values.len() / 2);
    let step = |i: usize, a: &mut T, b: &mut T| butterfly(a, b, i * stride);
    if parallel {
        par::zip_mut(low, high, step);
        par::join(|| decimate(low, 2 * stride, butterfly), || decimate(high, 2 * stride, butterfly));
    } else {
        low.iter_mut().zip(high.iter_mut()).enumerate().for_each(|(i, (a, b))| step(i, a, b));
        decimate(low, 2 * stride, butterfly);
        decimate(high, 2 * stride, butterfly);
    }
}

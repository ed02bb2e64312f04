//! The algebra against its definition, on points with known discrete logarithms, for every small domain.

use super::*;
use crate::curve::{G2, G2Affine, miller_loop};

fn shapes() -> impl Iterator<Item = Shape> {
    (1..=4).flat_map(|log_size| [2, 3].map(|cosets| Shape { log_size, cosets }))
}

fn scalar(seed: usize) -> Scalar {
    Scalar::reduce(&[(seed % 251) as u8 + 1; 40]).mul(&Scalar::from_u64(seed as u64 + 3))
}

fn sum(terms: impl Iterator<Item = Scalar>) -> Scalar {
    terms.fold(Scalar::ZERO, |sum, term| sum.add(&term))
}

fn pairing() -> Gt {
    miller_loop(&G1Affine::generator(), &G2Affine::generator()).easy_part().hard_part()
}

fn g2(k: &Scalar) -> G2Affine {
    G2::generator().mul(k).to_affine()
}

/// The points of the domain in the order of the transforms.
fn evaluation_points(domain: &Domain) -> Vec<Scalar> {
    let shape = domain.shape();
    let reversed = |k: usize| k.reverse_bits() >> (usize::BITS - shape.log_size);
    let point = |j: usize, k| cube_root().pow(&[j as u64]).mul(domain.root(reversed(k)));
    (0..shape.cosets).flat_map(|j| (0..shape.size()).map(move |k| point(j, k))).collect()
}

fn power(base: &Scalar, exponent: usize) -> Scalar {
    base.pow(&[exponent as u64])
}

#[test]
fn the_smallest_domain_that_fits_is_taken() {
    let points: Vec<usize> = (2..=17).map(|batch| Shape::for_batch(batch).points()).collect();
    assert_eq!(points, [4, 6, 8, 12, 12, 16, 16, 24, 24, 24, 24, 32, 32, 32, 32, 48]);
    let mut seen = vec![None; Shape::COUNT];
    for batch in 2..=MAX_BATCH {
        let shape = Shape::for_batch(batch);
        assert!(batch <= shape.capacity() && 2 * shape.capacity() <= 3 * batch);
        assert!(seen[shape.index()].replace(shape).is_none_or(|other| other == shape));
        assert!(shape.slot(batch - 1) < shape.slot(0) && shape.slot(0) < shape.release_slot());
    }
    assert_eq!(Shape::for_batch(MAX_BATCH), Shape { log_size: 16, cosets: 2 });
    for log_batch in 1..=15 {
        let batch = 1 << log_batch;
        assert_eq!(Shape::for_batch(batch).points(), 2 * batch);
        assert_eq!(Shape::for_batch(batch + batch / 2).points(), 3 * batch);
    }
}

#[test]
fn points_are_distinct_and_roots_have_their_order() {
    assert!(cube_root() != Scalar::one() && power(&cube_root(), 3) == Scalar::one());
    for shape in shapes() {
        let domain = Domain::new(shape);
        assert!(*domain.root(shape.size() / 2) == Scalar::one().neg());
        assert_eq!(domain.roots().len(), shape.size());
        let points = evaluation_points(&domain);
        assert!((0..points.len()).all(|i| (0..i).all(|j| points[i] != points[j])));
    }
}

#[test]
fn the_forward_transform_evaluates() {
    for shape in shapes() {
        let domain = Domain::new(shape);
        let mut coefficients: Vec<Scalar> = (0..=shape.capacity()).map(scalar).collect();
        coefficients[1] = coefficients[0].neg();
        coefficients[2] = Scalar::ZERO;
        for length in [shape.capacity() + 1, shape.capacity(), 2, 1, 0] {
            let slots: Vec<G1> =
                coefficients[..length].iter().map(|c| G1::generator().mul_secret(c)).collect();
            let values = points::forward(&domain, &slots);
            for (value, z) in values.iter().zip(evaluation_points(&domain)) {
                let want = sum(coefficients[..length].iter().enumerate().map(|(m, c)| c.mul(&power(&z, m))));
                assert!(*value == G1::generator().mul_secret(&want).to_affine());
            }
        }
    }
}

#[test]
fn the_fixed_side_interpolates_transposed() {
    for shape in shapes() {
        let kernel: Vec<Scalar> = (0..shape.points()).map(|s| scalar(3 * s + 1)).collect();
        let mut points: Vec<Option<G2Affine>> = kernel.iter().map(|k| Some(g2(k))).collect();
        points[2] = None;
        let offset = shape.capacity() as isize - 1;
        let w = FixedSide::compute(shape, |d| points[(d + offset) as usize].as_ref());
        let z = evaluation_points(&Domain::new(shape));
        for (s, point) in points.iter().enumerate() {
            let terms = w.iter().zip(&z).map(|(w, z)| G2::from(w).mul(&power(z, s)));
            let found = terms.fold(G2::default(), |sum, term| sum.add(&term));
            assert!(found == point.as_ref().map_or_else(G2::default, G2::from), "{shape:?} {s}");
        }
    }
}

#[test]
fn the_way_back_is_transposed_evaluation() {
    let g = pairing();
    for shape in shapes() {
        let domain = Domain::new(shape);
        let values: Vec<Scalar> = (0..shape.points()).map(|k| scalar(5 * k)).collect();
        let powers: Vec<Gt> = values.iter().map(|value| g.pow_public(value)).collect();
        let z = evaluation_points(&domain);
        let out = target::back(&domain, &powers, shape.capacity());
        assert_eq!(out.len(), shape.capacity());
        for (i, found) in out.iter().enumerate() {
            let want = sum(values.iter().zip(&z).map(|(value, z)| value.mul(&power(z, i))));
            assert!(*found == g.pow_public(&want), "{shape:?} {i}");
        }
    }
}

#[test]
fn the_convolution_is_its_definition_for_every_batch_that_fits() {
    let g = pairing();
    for shape in shapes() {
        let reach = shape.capacity() as isize;
        // g_0 is empty; the entry for the release at the last position is g_L.
        let entry = |d: isize| if d == 0 { Scalar::ZERO } else { scalar((d + reach) as usize) };
        let kernel: Vec<G2Affine> = (-reach..=reach).map(|d| g2(&entry(d))).collect();
        let points = FixedSide::compute(shape, |d| (d != 0).then(|| &kernel[(d + reach) as usize]));
        let fixed = FixedSide::new(shape, points);
        let budget = Budget::new(if shape.cosets == 2 { usize::MAX } else { 0 });
        let release = scalar(1000);
        for batch in 1..=shape.capacity() {
            let inputs: Vec<Scalar> = (0..batch).map(|l| scalar(7 * l + batch)).collect();
            let points: Vec<G1Affine> =
                inputs.iter().map(|c| G1::generator().mul_secret(c).to_affine()).collect();
            let pd = G1::generator().mul_secret(&release).to_affine();
            let cross = convolve(&fixed, &budget, &points, None);
            let fused = convolve(&fixed, &budget, &points, Some(&pd));
            assert_eq!((cross.len(), fused.len()), (batch, batch));
            for i in 0..batch {
                let products = inputs.iter().enumerate().map(|(l, c)| c.mul(&entry(i as isize - l as isize)));
                let want = sum(products);
                assert!(cross[i].hard_part() == g.pow_public(&want), "{shape:?} {batch} {i}");
                let want = want.sub(&release.mul(&entry(i as isize + 1)));
                assert!(fused[i].hard_part() == g.pow_public(&want), "{shape:?} {batch} {i}");
            }
        }
    }
}

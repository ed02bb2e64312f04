//! BLS12-381 by `blst`. Both libraries keep field elements in the same Montgomery form (R = 2^384) and build F_p12 by the
//! same tower, so that nothing is converted but the order of structures' fields.

use ark_bls12_381::{Bls12_381, Config, Fq, Fq2, Fq6, Fq12, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::AffineRepr;
use ark_ec::bls12::G2Prepared;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{AdditiveGroup, BigInt};
use blst::{
    BLST_ERROR, blst_fp, blst_fp2, blst_fp6, blst_fp12, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine,
};

use super::sums::{self, Buckets};
use super::{Curve, Integer};
use crate::points::PointError;

const G1_BYTES: usize = 48;
const G2_BYTES: usize = 96;

impl Curve for Bls12_381 {
    fn read_g1(bytes: &[u8]) -> Result<G1Affine, PointError> {
        let bytes: &[u8; G1_BYTES] = bytes.try_into().map_err(|_| PointError::Encoding)?;
        let mut point = blst_p1_affine::default();
        // SAFETY: `bytes` has the 48 bytes that are read, `point` is initialised.
        checked(unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) })?;
        // SAFETY: an initialised point, on the curve.
        if !unsafe { blst::blst_p1_affine_in_g1(&point) } {
            return Err(PointError::Subgroup);
        }
        Ok(ark_g1(&point))
    }

    fn read_g2(bytes: &[u8]) -> Result<G2Affine, PointError> {
        let bytes: &[u8; G2_BYTES] = bytes.try_into().map_err(|_| PointError::Encoding)?;
        let mut point = blst_p2_affine::default();
        // SAFETY: `bytes` has the 96 bytes that are read, `point` is initialised.
        checked(unsafe { blst::blst_p2_uncompress(&mut point, bytes.as_ptr()) })?;
        // SAFETY: an initialised point, on the curve.
        if !unsafe { blst::blst_p2_affine_in_g2(&point) } {
            return Err(PointError::Subgroup);
        }
        Ok(ark_g2(&point))
    }

    fn weigh(points: &[G1Affine], weights: &[u128]) -> Vec<G1Affine> {
        debug_assert_eq!(points.len(), weights.len());
        let weighed: Vec<blst_p1> =
            points.iter().zip(weights).map(|(point, weight)| times(&blst_g1(point), *weight)).collect();
        let mut affine = vec![blst_p1_affine::default(); weighed.len()];
        let contiguous = [weighed.as_ptr(), std::ptr::null()];
        if !weighed.is_empty() {
            // SAFETY: after a pointer and a null follow consecutive points, as many as given; as many are written.
            unsafe { blst::blst_p1s_to_affine(affine.as_mut_ptr(), contiguous.as_ptr(), weighed.len()) };
        }
        affine.iter().map(ark_g1).collect()
    }

    fn add_all(points: &[G1Affine]) -> G1Projective {
        Buckets::add_all(points)
    }

    fn sum_weighted(points: &[G1Affine], weights: &[u128]) -> G1Projective {
        debug_assert_eq!(points.len(), weights.len());
        let (points, weights): (Vec<G1Affine>, Vec<[u8; 16]>) = points
            .iter()
            .zip(weights)
            .filter(|(point, _)| !point.is_zero())
            .map(|(point, weight)| (*point, weight.to_le_bytes()))
            .unzip();
        G1Affine::buckets(&points, weights.as_flattened(), 16)
    }

    fn sum_g1(bases: &[G1Affine], scalars: &[Integer<Self>]) -> G1Projective {
        sums::sum(bases, scalars)
    }

    fn sum_g2(bases: &[G2Affine], scalars: &[Integer<Self>]) -> G2Projective {
        sums::sum(bases, scalars)
    }

    fn miller_loops(pairs: &[(G1Affine, G2Affine)]) -> Fq12 {
        // e(P, Q) = 1 where one is the identity, which `blst` would have to be told.
        let (p, q): (Vec<blst_p1_affine>, Vec<blst_p2_affine>) = pairs
            .iter()
            .filter(|(p, q)| !p.is_zero() && !q.is_zero())
            .map(|(p, q)| (blst_g1(p), blst_g2(q)))
            .unzip();
        let mut product = blst_fp12::default(); // 1
        if !p.is_empty() {
            let (ps, qs) = ([p.as_ptr(), std::ptr::null()], [q.as_ptr(), std::ptr::null()]);
            // SAFETY: after a pointer and a null follow consecutive points, `p.len()` of each.
            unsafe { blst::blst_miller_loop_n(&mut product, qs.as_ptr(), ps.as_ptr(), p.len()) };
        }
        ark_fp12(&product)
    }

    fn prepared_loops(pairs: &[(G1Affine, G2Affine)], prepared: &[(G1Affine, &G2Prepared<Config>)]) -> Fq12 {
        let fresh = pairs.iter().filter(|(p, q)| !p.is_zero() && !q.is_zero());
        let prepared = prepared.iter().filter(|(p, q)| !p.is_zero() && !q.infinity);
        let lines: Vec<Lines> =
            fresh.map(|(p, q)| Lines::new(p, q)).chain(prepared.map(|(p, q)| Lines::of(p, q))).collect();
        loops(&lines)
    }

    fn finish(loops: Fq12) -> Fq12 {
        let mut product = blst_fp12_of(&loops);
        // SAFETY: initialised field elements; input and output may coincide.
        unsafe { blst::blst_final_exp(&mut product, &product) };
        ark_fp12(&product)
    }
}

/// |x|, the length of the Miller loop; x itself is negative.
const LOOP: u64 = 0xd201_0000_0001_0000;
/// Lines of a point's loop: one for each bit of |x| but the first, one more for each that is 1.
const LINES: usize = (LOOP.ilog2() + LOOP.count_ones() - 1) as usize;

/// A pair of a Miller loop: the lines of its point of G2, and what their second and third coefficients are multiplied by
/// to take their values at its point of G1. The products differ from `blst`'s own by factors of F_p2, which the final
/// exponentiation takes away.
struct Lines {
    lines: Vec<blst_fp6>,
    x: blst_fp,
    y: blst_fp,
}

impl Lines {
    /// The lines by `blst`, which keeps factors of −2 and 2 out of them. Neither point is the identity.
    fn new(p: &G1Affine, q: &G2Affine) -> Self {
        let mut lines = vec![blst_fp6::default(); LINES];
        // SAFETY: the function writes the 68 elements that there are.
        unsafe { blst::blst_precompute_lines(lines.as_mut_ptr(), &blst_g2(q)) };
        Self { lines, x: blst_fp_of(&-p.x.double()), y: blst_fp_of(&p.y.double()) }
    }

    /// The lines by arkworks. Neither point is the identity.
    fn of(p: &G1Affine, q: &G2Prepared<Config>) -> Self {
        let line = |(a, b, c): &(Fq2, Fq2, Fq2)| blst_fp6 { fp2: [a, b, c].map(blst_fp2_of) };
        Self { lines: q.ell_coeffs.iter().map(line).collect(), x: blst_fp_of(&p.x), y: blst_fp_of(&p.y) }
    }

    fn multiply(&self, product: &mut blst_fp12, step: usize) {
        let mut line = self.lines[step];
        let [_, second, third] = &mut line.fp2;
        // SAFETY: initialised field elements; inputs and outputs may coincide.
        unsafe {
            for (coefficient, by) in [(second, &self.x), (third, &self.y)] {
                for part in &mut coefficient.fp {
                    blst::blst_fp_mul(part, part, by);
                }
            }
            blst::blst_fp12_mul_by_xy00z0(product, product, &line);
        }
    }
}

/// ∏ of the pairs' Miller loops.
fn loops(pairs: &[Lines]) -> Fq12 {
    let mut product = blst_fp12::default(); // 1
    if pairs.is_empty() {
        return ark_fp12(&product);
    }
    let mut step = 0;
    for bit in (0..LOOP.ilog2()).rev() {
        if step > 0 {
            // SAFETY: an initialised field element; input and output may coincide.
            unsafe { blst::blst_fp12_sqr(&mut product, &product) };
        }
        for _ in 0..1 + (LOOP >> bit & 1) {
            pairs.iter().for_each(|pair| pair.multiply(&mut product, step));
            step += 1;
        }
    }
    // SAFETY: an initialised field element.
    unsafe { blst::blst_fp12_conjugate(&mut product) };
    ark_fp12(&product)
}

/// What `blst` says of bytes. Those of x = 0, a point of order 3 in G1, it does not read at all.
fn checked(answer: BLST_ERROR) -> Result<(), PointError> {
    match answer {
        BLST_ERROR::BLST_SUCCESS => Ok(()),
        BLST_ERROR::BLST_POINT_NOT_IN_GROUP => Err(PointError::Subgroup),
        _ => Err(PointError::Encoding),
    }
}

/// weight·point.
fn times(point: &blst_p1_affine, weight: u128) -> blst_p1 {
    let (mut out, mut projective) = (blst_p1::default(), blst_p1::default());
    let weight = weight.to_le_bytes();
    // SAFETY: initialised points, and the 16 bytes of 128 bits.
    unsafe {
        blst::blst_p1_from_affine(&mut projective, point);
        blst::blst_p1_mult(&mut out, &projective, weight.as_ptr(), 128);
    }
    out
}

/// The same code for G1 and G2: the names of the functions and types differ.
macro_rules! buckets {
    ($point:ty, $affine:ty, $sum:ty, $from:ident, $into:ident, $add:ident, $scratch:ident, $pippenger:ident) => {
        impl Buckets for $point {
            fn add_all(points: &[Self]) -> Self::Group {
                let points: Vec<$affine> = points.iter().map($from).collect();
                let mut out = <$sum>::default();
                if !points.is_empty() {
                    let at = [points.as_ptr(), std::ptr::null()];
                    // SAFETY: after a pointer and a null follow consecutive points, as many as given.
                    unsafe { blst::$add(&mut out, at.as_ptr(), points.len()) };
                }
                $into(&out)
            }

            fn buckets(points: &[Self], scalars: &[u8], bytes: usize) -> Self::Group {
                assert_eq!(points.len() * bytes, scalars.len(), "a scalar for each point");
                let points: Vec<$affine> = points.iter().map($from).collect();
                let mut out = <$sum>::default();
                if points.is_empty() {
                    return $into(&out);
                }
                // SAFETY: a pure function of a number.
                let scratch = unsafe { blst::$scratch(points.len()) };
                let mut scratch = vec![0u64; scratch.div_ceil(8)];
                let at = [points.as_ptr(), std::ptr::null()];
                let by = [scalars.as_ptr(), std::ptr::null()];
                // SAFETY: after a pointer and a null follow consecutive points, and consecutive scalars of `bytes`
                // bytes, as many as given; the scratch space is as large as asked for.
                unsafe {
                    blst::$pippenger(
                        &mut out,
                        at.as_ptr(),
                        points.len(),
                        by.as_ptr(),
                        8 * bytes,
                        scratch.as_mut_ptr(),
                    );
                }
                $into(&out)
            }
        }
    };
}

buckets!(
    Affine<ark_bls12_381::g1::Config>,
    blst_p1_affine,
    blst_p1,
    blst_g1,
    ark_group,
    blst_p1s_add,
    blst_p1s_mult_pippenger_scratch_sizeof,
    blst_p1s_mult_pippenger
);
buckets!(
    Affine<ark_bls12_381::g2::Config>,
    blst_p2_affine,
    blst_p2,
    blst_g2,
    ark_twin_group,
    blst_p2s_add,
    blst_p2s_mult_pippenger_scratch_sizeof,
    blst_p2s_mult_pippenger
);

fn blst_fp_of(x: &Fq) -> blst_fp {
    blst_fp { l: x.0.0 }
}

fn ark_fp(x: &blst_fp) -> Fq {
    Fq::new_unchecked(BigInt(x.l))
}

fn blst_fp2_of(x: &Fq2) -> blst_fp2 {
    blst_fp2 { fp: [blst_fp_of(&x.c0), blst_fp_of(&x.c1)] }
}

fn ark_fp2(x: &blst_fp2) -> Fq2 {
    Fq2::new(ark_fp(&x.fp[0]), ark_fp(&x.fp[1]))
}

fn blst_fp12_of(x: &Fq12) -> blst_fp12 {
    let six = |x: &Fq6| blst_fp6 { fp2: [&x.c0, &x.c1, &x.c2].map(blst_fp2_of) };
    blst_fp12 { fp6: [six(&x.c0), six(&x.c1)] }
}

fn ark_fp12(x: &blst_fp12) -> Fq12 {
    let six = |x: &blst_fp6| {
        let [c0, c1, c2] = x.fp2.each_ref().map(ark_fp2);
        Fq6::new(c0, c1, c2)
    };
    Fq12::new(six(&x.fp6[0]), six(&x.fp6[1]))
}

/// `blst` writes the identity as zeros.
fn blst_g1(point: &G1Affine) -> blst_p1_affine {
    point.xy().map_or_else(blst_p1_affine::default, |(x, y)| blst_p1_affine {
        x: blst_fp_of(&x),
        y: blst_fp_of(&y),
    })
}

fn blst_g2(point: &G2Affine) -> blst_p2_affine {
    point.xy().map_or_else(blst_p2_affine::default, |(x, y)| blst_p2_affine {
        x: blst_fp2_of(&x),
        y: blst_fp2_of(&y),
    })
}

fn ark_g1(point: &blst_p1_affine) -> G1Affine {
    // SAFETY: an initialised point.
    if unsafe { blst::blst_p1_affine_is_inf(point) } {
        return G1Affine::zero();
    }
    G1Affine::new_unchecked(ark_fp(&point.x), ark_fp(&point.y))
}

fn ark_g2(point: &blst_p2_affine) -> G2Affine {
    // SAFETY: an initialised point.
    if unsafe { blst::blst_p2_affine_is_inf(point) } {
        return G2Affine::zero();
    }
    G2Affine::new_unchecked(ark_fp2(&point.x), ark_fp2(&point.y))
}

fn ark_twin_group(point: &blst_p2) -> G2Projective {
    G2Projective::new_unchecked(ark_fp2(&point.x), ark_fp2(&point.y), ark_fp2(&point.z))
}

/// Both keep Jacobian coordinates, with Z = 0 for the identity.
fn ark_group(point: &blst_p1) -> G1Projective {
    G1Projective::new_unchecked(ark_fp(&point.x), ark_fp(&point.y), ark_fp(&point.z))
}

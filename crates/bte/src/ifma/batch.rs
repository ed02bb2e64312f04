//! Opening a batch in eight lanes.

use std::ops::Range;

use super::convolve::convolve;
use super::kept;
use super::opening::{self, open_all};
use super::pairing::{Arguments, LaneLines};
use super::points::{PackedPoint, Points};
use super::target::{Packed12, easy_parts, hard_parts};
use super::tower::Fp12;
use super::vector::{LANES, lanes};
use crate::batch::{Cross, Terms, check_headers};
use crate::curve::{G1Affine, G2Affine, Gt};
use crate::{
    BatchError, Ciphertext, CiphertextPoint, EncryptionKey, Opening, Parameters, PreDecrypted, Release, par,
};

/// Ciphertexts that one task opens.
const PIECE: usize = 64;

/// Makes the tables of batches of this size.
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests; so for all functions here.
pub(super) unsafe fn prepare(parameters: &Parameters, batch: usize) {
    // SAFETY: by this function's contract.
    let make = |points: &[G2Affine]| unsafe { LaneLines::new(points) };
    if batch >= 2 {
        kept::lane_lines(parameters.fixed_side(batch), parameters.budget(), make);
    }
    if kept::keeps_h_lane_lines(parameters) {
        par::map(batch.div_ceil(LANES), |group| kept::with_h_lane_lines(parameters, group, make, |_| ()));
    }
    // SAFETY: by this function's contract.
    unsafe { opening::prepare(parameters.ek()) };
}

/// See [`crate::Backend::predecrypt`].
pub(super) unsafe fn predecrypt(
    parameters: &Parameters,
    points: &[CiphertextPoint],
) -> Result<PreDecrypted, BatchError> {
    parameters.check_batch(points.len())?;
    let cross = match points {
        [_] => vec![Gt::one()],
        // SAFETY: by this function's contract.
        _ => unsafe { unpacked_cross_terms(parameters, points) },
    };
    Ok(PreDecrypted::new(parameters, points, Cross::Cyclotomic(cross)))
}

/// The X_i of 2..=B ciphertexts up to the hard part.
pub(super) unsafe fn unpacked_cross_terms(parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
    // SAFETY: by this function's contract.
    let cross = unsafe { cross_terms(parameters, points, None) };
    par::pieces(cross.len(), PIECE, LANES, |range| {
        // SAFETY: likewise.
        unsafe { unpacked(&cross[range]) }
    })
}

unsafe fn cross_terms(
    parameters: &Parameters,
    points: &[CiphertextPoint],
    release: Option<&Release>,
) -> Vec<Packed12> {
    let points: Vec<G1Affine> = points.iter().map(|point| point.0).collect();
    let fixed = parameters.fixed_side(points.len());
    // SAFETY: by this function's contract.
    unsafe { convolve(fixed, parameters.budget(), &points, release.map(|release| &release.0)) }
}

/// See [`crate::Backend::finalize`].
pub(super) unsafe fn finalize(
    parameters: &Parameters,
    predecrypted: &PreDecrypted,
    release: &Release,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<Vec<Opening>, BatchError> {
    predecrypted.check(parameters, ciphertexts)?;
    // SAFETY: by this function's contract.
    let argument = unsafe { argument(&release.0) };
    let terms = predecrypted.cross().terms();
    Ok(par::pieces(ciphertexts.len(), PIECE, LANES, |range| {
        // SAFETY: likewise.
        unsafe {
            let blindings = blindings(parameters, &terms, &argument, range.clone());
            open_all(parameters.ek(), &ciphertexts[range], &blindings)
        }
    }))
}

/// See [`crate::Backend::decrypt`].
pub(super) unsafe fn decrypt(
    parameters: &Parameters,
    points: &[CiphertextPoint],
    release: &Release,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<Vec<Opening>, BatchError> {
    parameters.check_batch(points.len())?;
    check_headers(points, ciphertexts)?;
    if points.len() == 1 {
        // SAFETY: by this function's contract.
        return unsafe { finalize(parameters, &predecrypt(parameters, points)?, release, ciphertexts) };
    }
    // SAFETY: likewise.
    let inverses = unsafe { cross_terms(parameters, points, Some(release)) };
    Ok(par::pieces(ciphertexts.len(), PIECE, LANES, |range| {
        // SAFETY: likewise.
        unsafe { open_all(parameters.ek(), &ciphertexts[range.clone()], &inverted(&inverses[range])) }
    }))
}

/// Opens ciphertexts with their verified singleton releases; see [`Parameters::open_singletons`].
pub(super) unsafe fn open_singletons(
    parameters: &Parameters,
    releases: &[G1Affine],
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Vec<Opening> {
    // Every parameter set has h_B; the same in each lane.
    let Some(h) = parameters.h_point(parameters.max_batch()) else { return Vec::new() };
    // SAFETY: by this function's contract.
    let lines = unsafe { LaneLines::new(&[*h; LANES]) };
    par::pieces(ciphertexts.len(), PIECE, LANES, |range| {
        // SAFETY: likewise.
        unsafe {
            let blindings = singleton_blindings(&lines, &releases[range.clone()]);
            open_all(parameters.ek(), &ciphertexts[range], &blindings)
        }
    })
}

/// Opens a piece of a batch, given its blinding factors.
pub(super) unsafe fn open_given(
    key: &EncryptionKey,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
    blindings: &[Gt],
) -> Vec<Opening> {
    // SAFETY: by this function's contract.
    unsafe { open_all(key, ciphertexts, &packed(blindings)) }
}

lanes! {
    fn packed(elements: &[Gt]) -> Vec<Fp12> {
        let vector = |elements: &[Gt]| {
            let lanes: [Gt; LANES] = std::array::from_fn(|lane| *elements.get(lane).unwrap_or(&elements[0]));
            Fp12::from_gt(lanes.each_ref())
        };
        elements.chunks(LANES).map(vector).collect()
    }

    fn argument(release: &G1Affine) -> Arguments {
        let packed = PackedPoint::pack(&[*release])[0];
        match Points::gather(&[&packed; LANES]).arguments().pop() {
            Some(argument) => argument,
            None => unreachable!("one vector in, one out"),
        }
    }

    fn unpacked(elements: &[Packed12]) -> Vec<Gt> {
        let vectors = elements.chunks(LANES);
        let all = vectors.flat_map(|vector| {
            Fp12::gather(std::array::from_fn(|lane| vector.get(lane).unwrap_or(&vector[0]))).to_gt()
        });
        all.take(elements.len()).collect()
    }

    /// z_i from z_i^(−1) up to the hard part, eight to a vector.
    fn inverted(elements: &[Packed12]) -> Vec<Fp12> {
        let conjugate = |vector: &[Packed12]| {
            let lanes = std::array::from_fn(|lane| vector.get(lane).unwrap_or(&vector[0]));
            Fp12::gather(lanes).conjugate()
        };
        let mut values: Vec<Fp12> = elements.chunks(LANES).map(conjugate).collect();
        hard_parts(&mut values);
        values
    }

    /// e(pd', h_B) of each release, eight to a vector.
    fn singleton_blindings(lines: &LaneLines, releases: &[G1Affine]) -> Vec<Fp12> {
        let packed = PackedPoint::pack(releases);
        let arguments = Points::gather(&packed.iter().collect::<Vec<_>>()).arguments();
        let mut values: Vec<Fp12> = arguments.iter().map(|argument| lines.miller_loop(argument)).collect();
        easy_parts(&mut values);
        hard_parts(&mut values);
        values
    }

    /// z_i = e(pd, h_(B−i))/X_i of the positions of a range that begins at a whole vector, eight to a vector.
    fn blindings(parameters: &Parameters, terms: &Terms<'_>, release: &Arguments, range: Range<usize>) -> Vec<Fp12> {
        let groups = range.start / LANES..range.end.div_ceil(LANES);
        let make = |points: &[G2Affine]| LaneLines::new(points);
        let mut values: Vec<Fp12> = groups
            .map(|group| kept::with_h_lane_lines(parameters, group, make, |lines| lines.miller_loop(release)))
            .collect();
        easy_parts(&mut values);
        let over = |value: &Fp12, vector: usize, x: &[Gt]| {
            let start = range.start + LANES * vector;
            let lanes: [Gt; LANES] = std::array::from_fn(|lane| x[(start + lane).min(range.end - 1)]);
            value.mul(&Fp12::from_gt(lanes.each_ref()).conjugate())
        };
        match terms {
            Terms::Cyclotomic(x) => {
                values.iter_mut().enumerate().for_each(|(vector, value)| *value = over(value, vector, x));
                hard_parts(&mut values);
            }
            Terms::Full(x) => {
                hard_parts(&mut values);
                values.iter_mut().enumerate().for_each(|(vector, value)| *value = over(value, vector, x));
            }
        }
        values
    }
}

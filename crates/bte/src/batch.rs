//! Decrypting a batch: cross-terms before the release (pre-decryption), one pairing for each ciphertext after it; or all
//! at once.
//!
//! z_i = e(pd, h_(B+1−i)) · X_i^(−1), X_i = Π_(l≠i) e(C_l, h_(l+B+1−i)). The X_i do not depend on the release and are
//! 80 to 90 % of the work. They are a convolution of the C_l with the fixed h: a transform in G1, one pairing with the
//! transformed h for each of its points, a transform in GT (Simple BTE, ePrint 2026/760; [`crate::convolution`]).
//!
//! When throughput matters more than the time from release to plaintexts, the release is one more input of the same
//! convolution, whose outputs are then the z_i^(−1): no pairing for each ciphertext (*fused*, [`decrypt`]).
//!
//! Only the easy part of the final exponentiation is done before the transform in GT, which then runs in the
//! cyclotomic subgroup; the hard part is an endomorphism of it and is done once for each ciphertext, at the end.

use std::sync::Arc;

use crate::accelerator::Resident;
use crate::convolution::convolve;
use crate::curve::{G1Affine, Gt};
use crate::opening::open_all;
use crate::{Ciphertext, CiphertextPoint, GT_BYTES, Opening, Parameters, Release, par};

/// Ciphertexts that one task opens.
const PIECE: usize = 32;

/// Why a batch operation was refused; always the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The batch has no ciphertext.
    #[error("a batch has at least one ciphertext")]
    Empty,
    /// More ciphertexts than the key allows: cut the slot into sub-batches.
    #[error("a batch of {batch} ciphertexts, the key allows {max}")]
    TooLarge {
        /// How many ciphertexts were given.
        batch: usize,
        /// B, the most that the parameters take.
        max: usize,
    },
    /// Another number of ciphertexts than of points, or than was pre-decrypted.
    #[error("{actual} ciphertexts given for {expected} points")]
    Length {
        /// How many points were given or pre-decrypted.
        expected: usize,
        /// How many ciphertexts were given.
        actual: usize,
    },
    /// A ciphertext's header is not the point given or pre-decrypted at this position (from 0).
    #[error("the ciphertext at position {position} has another header than the point at that position")]
    Header {
        /// Position in the batch, from 0.
        position: usize,
    },
    /// The batch was pre-decrypted under other parameters.
    #[error("pre-decrypted under other parameters")]
    Parameters,
}

/// The X_i, as the backend that computed them leaves them; every backend finalizes either.
#[derive(Clone)]
pub(crate) enum Cross {
    /// Up to the hard part of the final exponentiation.
    Cyclotomic(Vec<Gt>),
    /// In GT.
    #[cfg_attr(not(feature = "reference"), allow(dead_code))]
    // the backends of every build leave the hard part
    Full(Vec<Gt>),
    /// In a device's memory.
    Resident(Arc<Resident>),
}

/// The X_i in this process's memory.
pub(crate) enum Terms<'a> {
    /// Up to the hard part of the final exponentiation.
    Cyclotomic(&'a [Gt]),
    /// In GT.
    Full(&'a [Gt]),
}

impl Cross {
    /// Brings them here if a device has them: not within a task that others wait for.
    pub(crate) fn terms(&self) -> Terms<'_> {
        match self {
            Self::Cyclotomic(x) => Terms::Cyclotomic(x),
            Self::Full(x) => Terms::Full(x),
            Self::Resident(resident) => Terms::Cyclotomic(resident.on_host()),
        }
    }
}

/// The cross-terms of one batch, waiting for its release.
#[derive(Clone)]
pub struct PreDecrypted {
    parameters: [u8; 32],
    headers: Vec<CiphertextPoint>,
    cross: Cross,
}

impl PreDecrypted {
    /// One cross-term for each point.
    pub(crate) fn new(parameters: &Parameters, points: &[CiphertextPoint], cross: Cross) -> Self {
        Self { parameters: parameters.hash(), headers: points.to_vec(), cross }
    }

    pub(crate) fn cross(&self) -> &Cross {
        &self.cross
    }

    pub(crate) fn headers(&self) -> &[CiphertextPoint] {
        &self.headers
    }

    /// How many ciphertexts were pre-decrypted.
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Never true: a batch has at least one ciphertext.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// The cross-terms X_i, in batch order.
    pub fn cross_terms(&self) -> Vec<[u8; GT_BYTES]> {
        match self.cross.terms() {
            Terms::Cyclotomic(cross) => par::map(cross.len(), |i| cross[i].hard_part().encode()),
            Terms::Full(cross) => cross.iter().map(Gt::encode).collect(),
        }
    }

    /// The blinding factors z_i = ek^(k_i) under a release, in batch order (meaningless if the release is wrong).
    ///
    /// # Errors
    /// [`BatchError::Parameters`].
    pub fn unblind(
        &self,
        parameters: &Parameters,
        release: &Release,
    ) -> Result<Vec<[u8; GT_BYTES]>, BatchError> {
        self.check_parameters(parameters)?;
        let terms = self.cross.terms();
        Ok(par::map(self.len(), |i| blinding(parameters, &terms, release, i).encode()))
    }

    fn check_parameters(&self, parameters: &Parameters) -> Result<(), BatchError> {
        if self.parameters == parameters.hash() { Ok(()) } else { Err(BatchError::Parameters) }
    }

    /// Refuses other parameters and other ciphertexts than those that were pre-decrypted.
    pub(crate) fn check(
        &self,
        parameters: &Parameters,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<(), BatchError> {
        self.check_parameters(parameters)?;
        check_headers(&self.headers, ciphertexts)
    }
}

impl std::fmt::Debug for PreDecrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PreDecrypted({} ciphertexts)", self.len())
    }
}

/// z_i, position from 0.
fn blinding(parameters: &Parameters, terms: &Terms<'_>, release: &Release, position: usize) -> Gt {
    let i = parameters.max_batch() - position;
    let miller = parameters.miller_loop_h(i, &release.0);
    match terms {
        Terms::Cyclotomic(x) => miller.easy_part().mul(&x[position].conjugate()).hard_part(),
        Terms::Full(x) => miller.easy_part().hard_part().mul(&x[position].conjugate()),
    }
}

/// Computes the cross-terms.
pub(crate) fn predecrypt(
    parameters: &Parameters,
    points: &[CiphertextPoint],
) -> Result<PreDecrypted, BatchError> {
    parameters.check_batch(points.len())?;
    let cross = match points {
        [_] => vec![Gt::one()],
        _ => cross_terms(parameters, points, None),
    };
    Ok(PreDecrypted::new(parameters, points, Cross::Cyclotomic(cross)))
}

/// The X_i of 2..=B ciphertexts up to the hard part; with a release the z_i^(−1).
pub(crate) fn cross_terms(
    parameters: &Parameters,
    points: &[CiphertextPoint],
    release: Option<&Release>,
) -> Vec<Gt> {
    let points: Vec<G1Affine> = points.iter().map(|point| point.0).collect();
    convolve(
        parameters.fixed_side(points.len()),
        parameters.budget(),
        &points,
        release.map(|release| &release.0),
    )
}

/// Opens every ciphertext of the batch.
pub(crate) fn finalize(
    parameters: &Parameters,
    predecrypted: &PreDecrypted,
    release: &Release,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<Vec<Opening>, BatchError> {
    predecrypted.check(parameters, ciphertexts)?;
    let terms = predecrypted.cross.terms();
    Ok(open_pieces(parameters, ciphertexts, |position| blinding(parameters, &terms, release, position)))
}

/// Opens every ciphertext of the batch without pre-decryption.
pub(crate) fn decrypt(
    parameters: &Parameters,
    points: &[CiphertextPoint],
    release: &Release,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<Vec<Opening>, BatchError> {
    parameters.check_batch(points.len())?;
    check_headers(points, ciphertexts)?;
    if points.len() == 1 {
        return finalize(parameters, &predecrypt(parameters, points)?, release, ciphertexts);
    }
    let inverses = cross_terms(parameters, points, Some(release));
    Ok(open_pieces(parameters, ciphertexts, |position| inverses[position].conjugate().hard_part()))
}

/// Opens all, given their blinding factors, in pieces that share inversions.
fn open_pieces(
    parameters: &Parameters,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
    blinding: impl Fn(usize) -> Gt + Sync + Send,
) -> Vec<Opening> {
    par::pieces(ciphertexts.len(), PIECE, 1, |range| {
        let blindings: Vec<Gt> = range.clone().map(&blinding).collect();
        open_all(parameters.ek(), &ciphertexts[range], &blindings)
    })
}

/// Are these the ciphertexts with those headers?
pub(crate) fn check_headers(
    headers: &[CiphertextPoint],
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<(), BatchError> {
    if ciphertexts.len() != headers.len() {
        return Err(BatchError::Length { expected: headers.len(), actual: ciphertexts.len() });
    }
    let mut pairs = headers.iter().zip(ciphertexts);
    match pairs.position(|(header, (_, ciphertext))| header.to_bytes() != ciphertext.c) {
        Some(position) => Err(BatchError::Header { position }),
        None => Ok(()),
    }
}

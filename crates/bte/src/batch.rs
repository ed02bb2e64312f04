//! Decrypting a batch: cross-terms before the release (pre-decryption), one pairing for each ciphertext after it.
//!
//! z_i = e(pd, h_(B+1−i)) · X_i^(−1), X_i = Π_(l≠i) e(C_l, h_(l+B+1−i)). The X_i do not depend on the release and are
//! 80 to 90 % of the work. They are a convolution of the C_l with the fixed h: a transform in G1, one pairing with the
//! transformed h for each of its points, an inverse transform in GT (Simple BTE, ePrint 2026/760).
//!
//! Only the easy part of the final exponentiation is done before the inverse transform, which then runs in the
//! cyclotomic subgroup; the hard part is an endomorphism of it and is done once for each ciphertext, at the end.

use crate::curve::{G1, Gt, miller_loop};
use crate::fft::bit_reversed;
use crate::opening::open;
use crate::{Ciphertext, CiphertextPoint, GT_BYTES, Opening, Parameters, Release, par};

/// Why a batch operation was refused; always the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// No ciphertexts.
    #[error("a batch has at least one ciphertext")]
    Empty,
    /// More ciphertexts than the key allows: cut the slot into sub-batches.
    #[error("a batch of {batch} ciphertexts, the key allows {max}")]
    TooLarge {
        /// Ciphertexts given.
        batch: usize,
        /// B.
        max: usize,
    },
    /// Another number of ciphertexts than was pre-decrypted.
    #[error("{actual} ciphertexts given, {expected} were pre-decrypted")]
    Length {
        /// Ciphertexts pre-decrypted.
        expected: usize,
        /// Ciphertexts given.
        actual: usize,
    },
    /// A ciphertext's header is not the one pre-decrypted at this position (from 0).
    #[error("the ciphertext at position {position} is not the one that was pre-decrypted")]
    Header {
        /// Position from 0.
        position: usize,
    },
    /// Pre-decrypted under other parameters.
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

    /// Number of ciphertexts.
    pub fn len(&self) -> usize {
        self.headers.len()
    }

    /// Never true: a batch has at least one ciphertext.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// The cross-terms X_i, in batch order.
    pub fn cross_terms(&self) -> Vec<[u8; GT_BYTES]> {
        match &self.cross {
            Cross::Cyclotomic(cross) => par::map(cross.len(), |i| cross[i].hard_part().encode()),
            Cross::Full(cross) => cross.iter().map(Gt::encode).collect(),
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
        Ok(par::map(self.len(), |i| self.blinding(parameters, release, i).encode()))
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
        if ciphertexts.len() != self.len() {
            return Err(BatchError::Length { expected: self.len(), actual: ciphertexts.len() });
        }
        let mut pairs = self.headers.iter().zip(ciphertexts);
        match pairs.position(|(header, (_, ciphertext))| header.to_bytes() != ciphertext.c) {
            Some(position) => Err(BatchError::Header { position }),
            None => Ok(()),
        }
    }

    /// z_i, position from 0.
    fn blinding(&self, parameters: &Parameters, release: &Release, position: usize) -> Gt {
        let i = parameters.max_batch() - position;
        let miller = match parameters.h_point(i) {
            Some(h) if !parameters.keeps_lines() => miller_loop(&release.0, h),
            _ => parameters.lines(i).miller_loop(&release.0),
        };
        match &self.cross {
            Cross::Cyclotomic(x) => miller.easy_part().mul(&x[position].conjugate()).hard_part(),
            Cross::Full(x) => miller.easy_part().hard_part().mul(&x[position].conjugate()),
        }
    }
}

impl std::fmt::Debug for PreDecrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PreDecrypted({} ciphertexts)", self.len())
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
        _ => cross_terms(parameters, points),
    };
    Ok(PreDecrypted::new(parameters, points, Cross::Cyclotomic(cross)))
}

fn cross_terms(parameters: &Parameters, points: &[CiphertextPoint]) -> Vec<Gt> {
    let prepared = parameters.prepared(points.len());
    let size = prepared.domain.size();
    let mut values = vec![G1::default(); size];
    for (value, point) in values.iter_mut().zip(points) {
        *value = G1::from(&point.0);
    }
    prepared.domain.transform_g1(&mut values);
    let values = G1::to_affine_batch(&values);
    let products = par::map(size, |i| prepared.miller_loop(i, &values[i]).easy_part());
    let mut cross = prepared.domain.inverse_gt_first_half(&bit_reversed(&products));
    cross.truncate(points.len());
    cross
}

/// Opens every ciphertext of the batch.
pub(crate) fn finalize(
    parameters: &Parameters,
    predecrypted: &PreDecrypted,
    release: &Release,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
) -> Result<Vec<Opening>, BatchError> {
    predecrypted.check(parameters, ciphertexts)?;
    Ok(par::map(ciphertexts.len(), |position| {
        let (ad, ciphertext) = ciphertexts[position];
        let blinding = predecrypted.blinding(parameters, release, position);
        open(parameters.ek(), ad, ciphertext, &blinding)
    }))
}

//! What pre-decryption needs of the parameters, for one transform size: computed once, kept in memory.

use super::Parameters;
use crate::curve::{G1Affine, G2, G2Affine, Gt, Lines, Scalar, miller_loop};
use crate::fft::Domain;
use crate::par;

/// Most memory that the Miller lines of one table may take; larger tables compute them anew for each batch, which
/// makes their Miller loops about a third slower. 128 MiB is enough for batches of 2048.
pub(crate) const LINES_MAX_BYTES: usize = 128 << 20;

pub(crate) fn lines_fit(points: usize) -> bool {
    points.saturating_mul(Lines::BYTES) <= LINES_MAX_BYTES
}

/// The fixed side of the convolution for batches of up to n/2 ciphertexts, n the domain size.
///
/// With positions counted from 0, X_i = Π_l e(C_l, g_(i−l)) where g_d = h_(B+1−d) and g_0 is empty, so the cross-terms
/// are a cyclic convolution of length n ≥ 2b−1. Only 2b−1 of the h around the gap take part.
pub(crate) struct Prepared {
    pub(crate) domain: Domain,
    /// The transform of (1/n)·g, bit-reversed; the factor saves n exponentiations in GT for each batch.
    transformed: Vec<G2Affine>,
    lines: Option<Vec<Lines>>,
}

impl Prepared {
    /// log₂ of domain sizes 1 (unused) to 2·[`MAX_BATCH`](super::MAX_BATCH).
    pub(crate) const DOMAINS: usize = super::MAX_BATCH.ilog2() as usize + 2;

    /// log₂ of the smallest domain for `batch` ≥ 2 ciphertexts.
    pub(crate) fn log_size(batch: usize) -> u32 {
        (2 * batch - 1).next_power_of_two().ilog2()
    }

    pub(super) fn new(parameters: &Parameters, log_size: u32) -> Self {
        let domain = Domain::new(log_size);
        let size = domain.size();
        let reach = (size / 2).min(parameters.max_batch());
        let inverse_size = Scalar::from_u64(size as u64).inverse();
        let mut values = par::map(size, |index| {
            // Index d or n − d, 0 < d < reach; everything else is empty.
            let source = match index {
                0 => None,
                _ if index < reach => parameters.h_point(parameters.max_batch() + 1 - index),
                _ if size - index < reach => parameters.h_point(parameters.max_batch() + 1 + (size - index)),
                _ => None,
            };
            source.map_or_else(G2::default, |point| G2::from(point).mul(&inverse_size))
        });
        domain.transform_g2(&mut values);
        let transformed = G2::to_affine_batch(&values);
        let lines = lines_fit(size).then(|| par::map(size, |i| Lines::new(&transformed[i])));
        Self { domain, transformed, lines }
    }

    /// The Miller value of (point, element `index` of the transform).
    pub(crate) fn miller_loop(&self, index: usize, point: &G1Affine) -> Gt {
        match &self.lines {
            Some(lines) => lines[index].miller_loop(point),
            None => miller_loop(point, &self.transformed[index]),
        }
    }
}

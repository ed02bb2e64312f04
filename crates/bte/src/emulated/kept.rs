//! Tables made anew for each use: keys and parameters keep those of the true lanes.

use super::comb::LaneComb;
use super::pairing::LaneLines;
use super::vector::LANES;
use crate::comb::GtComb;
use crate::convolution::{Budget, FixedSide};
use crate::curve::G2Affine;
use crate::{EncryptionKey, Parameters};

/// Small, and leaked: tests ask for few.
const WINDOW_BITS: u32 = 5;

pub(super) fn comb(key: &EncryptionKey, make: impl FnOnce(&GtComb) -> LaneComb) -> &'static LaneComb {
    Box::leak(Box::new(make(&GtComb::new(key.element(), WINDOW_BITS))))
}

pub(super) fn lane_lines<'a>(
    _fixed: &'a FixedSide,
    _budget: &Budget,
    _make: impl Fn(&[G2Affine]) -> LaneLines,
) -> Option<&'a [LaneLines]> {
    None
}

pub(super) fn keeps_h_lane_lines(_parameters: &Parameters) -> bool {
    false
}

pub(super) fn with_h_lane_lines<T>(
    parameters: &Parameters,
    group: usize,
    make: impl Fn(&[G2Affine]) -> LaneLines,
    with: impl FnOnce(&LaneLines) -> T,
) -> T {
    let start = LANES * group;
    let end = (start + LANES).min(parameters.max_batch());
    with(&make(&parameters.h_points(start..end).copied().collect::<Vec<_>>()))
}

//! The tables that keys and parameters keep for this backend.

use super::comb::LaneComb;
use super::pairing::LaneLines;
use crate::comb::GtComb;
use crate::convolution::{Budget, FixedSide};
use crate::curve::G2Affine;
use crate::{EncryptionKey, Parameters};

pub(super) fn comb(key: &EncryptionKey, make: impl FnOnce(&GtComb) -> LaneComb) -> &LaneComb {
    key.lane_comb(make)
}

pub(super) fn lane_lines<'a>(
    fixed: &'a FixedSide,
    budget: &Budget,
    make: impl Fn(&[G2Affine]) -> LaneLines + Sync + Send,
) -> Option<&'a [LaneLines]> {
    fixed.lane_lines(budget, make)
}

pub(super) fn with_h_lane_lines<T>(
    parameters: &Parameters,
    group: usize,
    make: impl Fn(&[G2Affine]) -> LaneLines,
    with: impl FnOnce(&LaneLines) -> T,
) -> T {
    parameters.with_h_lane_lines(group, make, with)
}

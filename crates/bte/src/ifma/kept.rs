//! The tables that keys and parameters keep for this backend.

use std::sync::OnceLock;

use super::comb::LaneComb;
use super::pairing::LaneLines;
use super::vector::LANES;
use crate::comb::GtComb;
use crate::convolution::{Budget, FixedSide};
use crate::curve::G2Affine;
use crate::{EncryptionKey, Parameters, par};

/// Lines of the points of a fixed side, eight by eight; `None` if there was no memory for them.
type FixedLines = OnceLock<Option<Vec<LaneLines>>>;

/// Lines of h_(B−8g) … h_(B−8g−7), those of eight consecutive positions, at g; `None` likewise.
type ReleaseLines = OnceLock<Option<Vec<OnceLock<LaneLines>>>>;

/// The table for public exponents; `make` converts it.
pub(super) fn comb(key: &EncryptionKey, make: impl FnOnce(&GtComb) -> LaneComb) -> &LaneComb {
    key.derived().get::<OnceLock<LaneComb>>().get_or_init(|| key.read_comb(make))
}

/// The Miller lines of the fixed points, if `budget` has their bytes; `make` gives those of the points it is given.
pub(super) fn lane_lines<'a>(
    fixed: &'a FixedSide,
    budget: &Budget,
    make: impl Fn(&[G2Affine]) -> LaneLines + Sync + Send,
) -> Option<&'a [LaneLines]> {
    let points = fixed.points();
    let make = || par::map_chunks(points, LANES, |points| vec![make(points)]);
    let kept = fixed.derived().get::<FixedLines>();
    budget.keep(kept, points.len().div_ceil(LANES) * LaneLines::BYTES, make).map(Vec::as_slice)
}

/// Is there memory for what [`with_h_lane_lines`] makes?
pub(super) fn keeps_h_lane_lines(parameters: &Parameters) -> bool {
    h_lane_lines(parameters).is_some()
}

/// Gives the Miller lines of h_(B−8·group) … h_(B−8·group−7), as many as there are, to `with`; `make` makes them.
pub(super) fn with_h_lane_lines<T>(
    parameters: &Parameters,
    group: usize,
    make: impl Fn(&[G2Affine]) -> LaneLines,
    with: impl FnOnce(&LaneLines) -> T,
) -> T {
    let new = || make(&h_group(parameters, group));
    match h_lane_lines(parameters) {
        Some(lines) => with(lines[group].get_or_init(new)),
        None => with(&new()),
    }
}

/// h_(B−8·group) … h_(B−8·group−7), as many as there are.
pub(super) fn h_group(parameters: &Parameters, group: usize) -> Vec<G2Affine> {
    let start = LANES * group;
    parameters.h_points(start..(start + LANES).min(parameters.max_batch())).copied().collect()
}

fn h_lane_lines(parameters: &Parameters) -> Option<&[OnceLock<LaneLines>]> {
    let groups = parameters.max_batch().div_ceil(LANES);
    let make = || (0..groups).map(|_| OnceLock::new()).collect();
    let kept = parameters.derived().get::<ReleaseLines>();
    parameters.budget().keep(kept, groups * LaneLines::BYTES, make).map(Vec::as_slice)
}

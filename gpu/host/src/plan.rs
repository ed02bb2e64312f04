//! What a domain takes of a device's memory, and what is done where that is not enough.
//!
//! Miller lines are nearly all of it: 13,056 bytes for each of the n fixed points and each of the up to L points that
//! releases are paired with. Where they do not fit, they are computed anew for each batch, in tiles: first those of the
//! fixed points, whose time nobody waits for, then those of a release.

use blindfold_bte::accelerator::{DeviceError, G1Limbs, G2Limbs, GtLimbs, Shape};

use crate::digits;
use crate::exponents;

/// Lines of one Miller loop: 63 tangents and 5 chords.
pub const STEPS: u64 = 68;
/// A line: its slope and its constant, in F_p2.
pub const LINE_BYTES: u64 = 4 * FP_BYTES;
const FP_BYTES: u64 = 48;
/// Numbers of elements and exponents.
const WORD_BYTES: u64 = 4;
/// Homogeneous coordinates.
const POINT_BYTES: u64 = 3 * FP_BYTES;
const G1_BYTES: u64 = size_of::<G1Limbs>() as u64;
const G2_BYTES: u64 = size_of::<G2Limbs>() as u64;
const GT_BYTES: u64 = size_of::<GtLimbs>() as u64;
/// Points of one tile, unless limits say otherwise: 214 MB of lines, and enough for every device to be full.
pub const DEFAULT_TILE: u32 = 16_384;
/// Batches that may wait for their releases at once.
const WAITING: u64 = 4;

/// How the lines of one set of points are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTable {
    /// All are kept.
    Kept,
    /// Computed for so many points at a time, for each batch.
    Tiles(u32),
}

/// The memory that one domain takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The lines of the fixed points.
    pub fixed: LineTable,
    /// The lines of the points that a release is paired with.
    pub release: LineTable,
    /// As long as the domain is loaded: points, lines or tiles, twiddles.
    pub loaded_bytes: u64,
    /// While a batch is worked on, one for cross-terms and one for a release.
    pub working_bytes: u64,
    /// Of one batch that waits for its release.
    pub waiting_bytes: u64,
}

impl Plan {
    /// The plan for a domain whose releases are paired with `release` ≤ L points, in `free_bytes` of memory, with tiles
    /// of so many points (all, if there are fewer).
    ///
    /// # Errors
    /// [`DeviceError::Memory`], with what the most modest plan needs.
    pub fn new(shape: Shape, release: usize, free_bytes: u64, tile: u32) -> Result<Self, DeviceError> {
        let (n, h) = (shape.points() as u64, release as u64);
        let tile = |points: u64| LineTable::Tiles(points.min(u64::from(tile.max(1))) as u32);
        let tables = [(LineTable::Kept, LineTable::Kept), (tile(n), LineTable::Kept), (tile(n), tile(h))];
        let mut modest = u64::MAX;
        for (fixed, release) in tables {
            let plan = Self::with(shape, h, fixed, release);
            modest = plan.map_or(u64::MAX, |plan| plan.bytes());
            if let Some(plan) = plan.filter(|plan| plan.bytes() <= free_bytes) {
                return Ok(plan);
            }
        }
        Err(DeviceError::Memory { needed_bytes: modest, free_bytes })
    }

    /// `None` if a size does not fit 64 bits.
    fn with(shape: Shape, release_points: u64, fixed: LineTable, release: LineTable) -> Option<Self> {
        let (n, m) = (shape.points() as u64, shape.size() as u64);
        let capacity = shape.capacity() as u64;
        // Half of the twiddles serve points, all serve the target group, in two forms each.
        let twiddle_bytes = digits::POSITIONS * digits::HALVES + 2 * exponents::POSITIONS * 4;
        let twiddles = m.checked_mul(twiddle_bytes as u64)?;
        // Twiddled elements and beginnings of transforms: at most a third of the elements at each length, two numbers
        // each, and as many beginnings as elements.
        let schedule = n.checked_mul((u64::from(shape.log_size) + 1) * WORD_BYTES)?;
        let loaded = [table_bytes(n, fixed)?, table_bytes(release_points, release)?, twiddles, schedule];
        let waiting_bytes = capacity.checked_mul(GT_BYTES)?;
        // Transformed points; elements with their denominators, and the room to invert those.
        let batch =
            n.checked_mul(POINT_BYTES + GT_BYTES + 2 * FP_BYTES)?.checked_add(slots_bytes(capacity)?)?;
        let finish = capacity.checked_mul(2 * (GT_BYTES + FP_BYTES))?.checked_add(POINT_BYTES)?;
        Some(Self {
            fixed,
            release,
            loaded_bytes: loaded.into_iter().try_fold(0u64, u64::checked_add)?,
            working_bytes: batch.checked_add(finish)?,
            waiting_bytes,
        })
    }

    /// All that has to be free before the domain is loaded.
    pub fn bytes(&self) -> u64 {
        let waiting = WAITING.saturating_mul(self.waiting_bytes);
        self.loaded_bytes.saturating_add(self.working_bytes).saturating_add(waiting)
    }
}

/// Inputs of a batch and its release.
fn slots_bytes(capacity: u64) -> Option<u64> {
    capacity.checked_add(1)?.checked_mul(G1_BYTES)
}

/// Of a number of points: all lines, or the points and the lines of one tile.
fn table_bytes(points: u64, table: LineTable) -> Option<u64> {
    match table {
        LineTable::Kept => lines_bytes(points),
        LineTable::Tiles(tile) => points.checked_mul(G2_BYTES)?.checked_add(lines_bytes(u64::from(tile))?),
    }
}

/// Of the lines of so many points.
pub fn lines_bytes(points: u64) -> Option<u64> {
    points.checked_mul(STEPS * LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: Shape = Shape { log_size: 16, cosets: 2 };

    #[test]
    fn lines_are_most_of_the_memory_and_go_first() {
        let roomy = Plan::new(LARGEST, 65536, u64::MAX, 2048).expect("fits");
        assert_eq!((roomy.fixed, roomy.release), (LineTable::Kept, LineTable::Kept));
        assert_eq!(lines_bytes(1), Some(13056));
        let lines = lines_bytes(3 * 65536).expect("fits");
        assert!(roomy.loaded_bytes > lines && roomy.loaded_bytes < lines + (80 << 20));
        assert_eq!(Plan::new(LARGEST, 65536, roomy.bytes(), 2048), Ok(roomy));

        let tiled = Plan::new(LARGEST, 65536, roomy.bytes() - 1, 2048).expect("fits");
        assert_eq!((tiled.fixed, tiled.release), (LineTable::Tiles(2048), LineTable::Kept));
        let modest = Plan::new(LARGEST, 65536, tiled.bytes() - 1, 2048).expect("fits");
        assert_eq!((modest.fixed, modest.release), (LineTable::Tiles(2048), LineTable::Tiles(2048)));
        assert!(modest.bytes() < 1 << 30);
        let none = Plan::new(LARGEST, 65536, modest.bytes() - 1, 2048);
        let free_bytes = modest.bytes() - 1;
        assert_eq!(none, Err(DeviceError::Memory { needed_bytes: modest.bytes(), free_bytes }));
    }

    #[test]
    fn small_domains_have_small_tiles() {
        let shape = Shape { log_size: 1, cosets: 3 };
        let roomy = Plan::new(shape, 3, u64::MAX, DEFAULT_TILE).expect("fits");
        assert_eq!(roomy.loaded_bytes, 9 * 13056 + 2 * (258 + 520) + 6 * 2 * 4);
        let tiled = Plan::with(shape, 3, LineTable::Tiles(6), LineTable::Tiles(3)).expect("fits");
        assert_eq!(tiled.loaded_bytes, roomy.loaded_bytes + 9 * 192);
        assert_eq!(roomy.waiting_bytes, 3 * 576);
    }

    #[test]
    fn the_schedule_has_the_room_that_the_plan_gives_it() {
        for log_size in 1..=16 {
            for cosets in [2, 3] {
                let (size, points) = (1usize << log_size, cosets << log_size);
                let words: usize = crate::split_radix::levels(size, cosets)
                    .iter()
                    .map(|level| level.starts.len() + 2 * level.twiddles.len())
                    .sum();
                assert!(words <= points * (log_size + 1), "{log_size} {cosets}: {words}");
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let shape = Shape { log_size: 62, cosets: 3 };
        assert_eq!(
            Plan::new(shape, 1 << 40, u64::MAX, DEFAULT_TILE),
            Err(DeviceError::Memory { needed_bytes: u64::MAX, free_bytes: u64::MAX })
        );
    }
}

//! The Miller lines of fixed points: kept, or computed tile by tile for each batch.

use std::ffi::c_void;
use std::ops::Range;

use blindfold_bte::accelerator::{DeviceError, G2Limbs};

use crate::device::done;
use crate::ffi;
use crate::memory::{Buffer, Index, Queue};
use crate::plan::{LineTable, STEPS};

/// λ' and λ'x' − y', each in F_p2.
type LineLimbs = G2Limbs;

/// The lines of points on a device.
pub(crate) struct Table {
    /// Where lines are not kept.
    points: Option<Buffer<G2Limbs>>,
    lines: Buffer<LineLimbs>,
    /// Points whose lines there is room for.
    tile: usize,
}

impl Table {
    /// Uploads points, and computes their lines if they are to be kept.
    pub(crate) fn load(
        device: Index,
        queue: &mut Queue,
        points: &[G2Limbs],
        plan: LineTable,
    ) -> Result<Self, DeviceError> {
        let tile = match plan {
            LineTable::Kept => points.len(),
            LineTable::Tiles(tile) => tile as usize,
        };
        let lines = Buffer::new(device, tile * STEPS as usize)?;
        let points = Buffer::filled(device, queue, points)?;
        let mut table = Self { points: None, lines, tile };
        if plan != LineTable::Kept {
            table.points = Some(points);
            return Ok(table);
        }
        let prepared = table.prepare(queue, &points, 0, points.len());
        queue.wait()?; // the points are freed here
        prepared.map(|()| table)
    }

    fn prepare(
        &self,
        queue: &mut Queue,
        points: &Buffer<G2Limbs>,
        first: usize,
        count: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: so many points from there, and the lines of a tile.
        let code = unsafe {
            ffi::blindfold_prepare_lines(queue.raw(), points.at(first), self.lines.raw(), count as u32)
        };
        done(code, 0)
    }

    /// Queues `work` for points: once for all, or tile after tile. It is given the first point's number, how many points,
    /// and the address of their lines.
    pub(crate) fn each_tile(
        &self,
        queue: &mut Queue,
        of: Range<usize>,
        mut work: impl FnMut(&mut Queue, usize, usize, *const c_void) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(points) = &self.points else {
            assert!(of.end <= self.tile, "lines of all points");
            return work(queue, of.start, of.len(), self.lines.at(of.start * STEPS as usize));
        };
        assert!(of.end <= points.len(), "as many points as were loaded");
        for first in of.clone().step_by(self.tile) {
            let tile = self.tile.min(of.end - first);
            self.prepare(queue, points, first, tile)?;
            work(queue, first, tile, self.lines.raw())?;
        }
        Ok(())
    }
}

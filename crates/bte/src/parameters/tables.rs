//! What is computed from the parameters at first use and kept in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Elements, Parameters};
use crate::convolution::{FixedSide, Shape};
use crate::curve::{G1Affine, G2Affine, Gt, Lines, miller_loop};
use crate::par;

/// Memory for Miller lines unless [`Parameters::with_memory_limit`] says otherwise: enough for B = 8192.
pub const DEFAULT_LINES_MAX_BYTES: usize = 512 << 20;

/// Shared by all clones of parameters.
pub(super) struct Tables {
    /// Bytes of Miller lines that may still be added.
    lines_left_bytes: AtomicUsize,
    /// By [`Shape::index`].
    fixed: [OnceLock<FixedSide>; Shape::COUNT],
    /// Miller lines of h_i at i−1, i ≤ B, for finalization; `None` if there was no memory for them.
    h_lines: OnceLock<Option<Vec<OnceLock<Lines>>>>,
}

impl Tables {
    pub(super) fn new(lines_max_bytes: usize) -> Self {
        Self {
            lines_left_bytes: AtomicUsize::new(lines_max_bytes),
            fixed: std::array::from_fn(|_| OnceLock::new()),
            h_lines: OnceLock::new(),
        }
    }

    /// Takes memory for the lines of so many points, if there is enough.
    fn reserve(&self, points: usize) -> bool {
        let take = |left: usize| left.checked_sub(points.saturating_mul(Lines::BYTES));
        // Only a count: nothing is read on the strength of it.
        self.lines_left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Keeps the fixed side, unless another thread was faster or the table is there already.
    fn keep(&self, shape: Shape, points: Vec<G2Affine>) -> &FixedSide {
        let keep_lines = self.reserve(shape.points());
        // Made outside the cell: a thread that waits in rayon may pick up another task that needs this cell.
        let made = FixedSide::new(shape, points, keep_lines);
        let mut kept = false;
        let fixed = self.fixed[shape.index()].get_or_init(|| {
            kept = true;
            made
        });
        if keep_lines && !kept {
            self.lines_left_bytes.fetch_add(shape.points() * Lines::BYTES, Ordering::Relaxed);
        }
        fixed
    }

    fn h_lines(&self, max_batch: usize) -> Option<&[OnceLock<Lines>]> {
        let make = || self.reserve(max_batch).then(|| (0..max_batch).map(|_| OnceLock::new()).collect());
        self.h_lines.get_or_init(make).as_deref()
    }
}

impl Elements {
    /// g_d = h_(B+1−d), the kernel of the convolution; empty at 0 and where there is no such h.
    fn kernel(&self, d: isize) -> Option<&G2Affine> {
        let index = (self.max_batch as isize + 1).checked_sub(d)?;
        self.h_point(usize::try_from(index).ok()?)
    }
}

impl Parameters {
    /// The same parameters with empty tables of their own, whose Miller lines may take so many bytes in all; without
    /// this, [`DEFAULT_LINES_MAX_BYTES`].
    ///
    /// Lines take 19.6 KB for each point of a table. Batches of b use a table of 2b points (b rounded up to 2^k or
    /// 1.5·2^k) and [`finalize`](crate::Backend::finalize) one of B points. Memory goes to tables in the order in which
    /// they are first used or prepared; a table that does not find enough keeps its points only (192 bytes each), and
    /// its Miller loops compute the lines anew for each batch. Results are the same.
    #[must_use]
    pub fn with_memory_limit(self, lines_max_bytes: usize) -> Self {
        Self { tables: Arc::new(Tables::new(lines_max_bytes)), ..self }
    }

    /// The fixed side of the convolution for batches of `batch` ciphertexts, 2 ≤ batch ≤ B; computed at first use.
    pub(crate) fn fixed_side(&self, batch: usize) -> &FixedSide {
        let shape = Shape::for_batch(batch);
        match self.tables.fixed[shape.index()].get() {
            Some(fixed) => fixed,
            None => self.tables.keep(shape, FixedSide::compute(shape, |d| self.elements.kernel(d))),
        }
    }

    /// The fixed side for a shape, if it has been computed or imported.
    pub(super) fn known_fixed_side(&self, shape: Shape) -> Option<&FixedSide> {
        self.tables.fixed[shape.index()].get()
    }

    /// Keeps an imported fixed side.
    pub(super) fn keep_fixed_side(&self, shape: Shape, points: Vec<G2Affine>) {
        self.tables.keep(shape, points);
    }

    /// The Miller value of (point, h_i), 1 ≤ i ≤ B.
    pub(crate) fn miller_loop_h(&self, i: usize, point: &G1Affine) -> Gt {
        let h = &self.elements.h[i - 1];
        match self.tables.h_lines(self.max_batch()) {
            Some(lines) => lines[i - 1].get_or_init(|| Lines::new(h)).miller_loop(point),
            None => miller_loop(point, h),
        }
    }

    /// Computes all tables for batches of `batch` ciphertexts now instead of at the first such batch. Sizes up to the
    /// next 2^k or 1.5·2^k share their tables. Costs about `batch`·log₂(`batch`) multiplications in G2, unless the
    /// table was imported ([`Parameters::import_table`]). Nothing happens outside 1..=B.
    pub fn prepare(&self, batch: usize) {
        if !(1..=self.max_batch()).contains(&batch) {
            return;
        }
        if batch >= 2 {
            self.fixed_side(batch);
        }
        if let Some(lines) = self.tables.h_lines(self.max_batch()) {
            par::map(batch, |position| {
                let index = self.max_batch() - 1 - position;
                lines[index].get_or_init(|| Lines::new(&self.elements.h[index]));
            });
        }
    }
}

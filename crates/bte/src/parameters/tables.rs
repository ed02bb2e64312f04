//! What is computed from the parameters at first use and kept in memory.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{Elements, Parameters};
use crate::comb::generator_times;
use crate::convolution::{Budget, FixedSide, Shape};
use crate::curve::{G1Affine, G2Affine, Gt, Lines, Scalar, miller_loop};
use crate::derived::Derived;
use crate::par;

/// Memory for Miller lines unless [`Parameters::with_memory_limit`] says otherwise: enough for B = 8192.
pub const DEFAULT_LINES_MAX_BYTES: usize = 512 << 20;

/// Shared by all clones of parameters.
pub(super) struct Tables {
    /// For Miller lines.
    budget: Budget,
    /// By [`Shape::index`].
    fixed: [OnceLock<FixedSide>; Shape::COUNT],
    /// Miller lines of h_i at i−1, i ≤ B, for finalization; `None` if there was no memory for them.
    h_lines: OnceLock<Option<Vec<OnceLock<Lines>>>>,
    derived: Derived,
}

impl Tables {
    pub(super) fn new(lines_max_bytes: usize) -> Self {
        Self {
            budget: Budget::new(lines_max_bytes),
            fixed: std::array::from_fn(|_| OnceLock::new()),
            h_lines: OnceLock::new(),
            derived: Derived::default(),
        }
    }

    /// Keeps the fixed side, unless another thread was faster or the table is there already.
    fn keep(&self, shape: Shape, points: Vec<G2Affine>) -> &FixedSide {
        self.fixed[shape.index()].get_or_init(|| FixedSide::new(shape, points))
    }

    fn h_lines(&self, max_batch: usize) -> Option<&[OnceLock<Lines>]> {
        let make = || (0..max_batch).map(|_| OnceLock::new()).collect();
        self.budget.keep(&self.h_lines, max_batch * Lines::BYTES, make).map(Vec::as_slice)
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

    pub(crate) fn budget(&self) -> &Budget {
        &self.tables.budget
    }

    /// What a backend keeps beside them.
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn derived(&self) -> &Derived {
        &self.tables.derived
    }

    /// The points that the release is paired with at the positions of `range`, counted from 0 and below B, in this order:
    /// h_(B−position).
    #[allow(dead_code)] // only lanes use it
    pub(crate) fn h_points(&self, range: Range<usize>) -> impl Iterator<Item = &G2Affine> {
        let b = self.max_batch();
        self.elements.h[b.saturating_sub(range.end)..b - range.start].iter().rev()
    }

    /// Computes all tables for batches of `batch` ciphertexts, and those that opening and verifying need, now instead of at
    /// the first such batch. Sizes up to the
    /// next 2^k or 1.5·2^k share their tables. Costs about `batch`·log₂(`batch`) multiplications in G2, unless the
    /// table was imported ([`Parameters::import_table`]). Nothing happens outside 1..=B.
    pub fn prepare(&self, batch: usize) {
        if !(1..=self.max_batch()).contains(&batch) {
            return;
        }
        if batch >= 2 {
            self.fixed_side(batch).lines(self.budget());
        }
        if let Some(lines) = self.tables.h_lines(self.max_batch()) {
            par::map(batch, |position| {
                let index = self.max_batch() - 1 - position;
                lines[index].get_or_init(|| Lines::new(&self.elements.h[index]));
            });
        }
        self.ek().prepare();
        generator_times(&Scalar::one());
    }
}

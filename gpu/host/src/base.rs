//! Powers of one element by a table, and sums of multiples of points.

use std::sync::{Arc, Mutex};

use blindfold_bte::accelerator::{Base, DeviceError, G1Limbs, GtLimbs, ScalarLimbs};

use crate::cuda::{Shared, Stream, lock};
use crate::device::done;
use crate::exponents;
use crate::ffi;
use crate::memory::{Buffer, Index, Pinned, in_pieces};

/// Window of the table: 5 rows, 19,747 elements, 11.4 MB, which stay in a device's cache.
const WINDOW_BITS: u32 = 13;
/// Windows of an exponent.
const CODES: usize = exponents::DIGITS * (64u32.div_ceil(WINDOW_BITS)) as usize;

/// An element of GT with its table.
pub(crate) struct Comb {
    shared: Arc<Shared>,
    entries: Buffer<GtLimbs>,
    buffers: Mutex<Option<Buffers>>,
}

/// For so many exponents as were asked for at once.
struct Buffers {
    up: Pinned<i32>,
    codes: Buffer<i32>,
    powers: Buffer<GtLimbs>,
}

impl Buffers {
    fn new(index: Index, exponents: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            up: Pinned::new(index, CODES * exponents)?,
            codes: Buffer::new(index, CODES * exponents)?,
            powers: Buffer::new(index, exponents)?,
        })
    }
}

impl Comb {
    /// Fills the table, a product for each of its elements.
    pub(crate) fn new(shared: Arc<Shared>, base: &GtLimbs) -> Result<Self, DeviceError> {
        // SAFETY: a pure function.
        let entries =
            Buffer::new(shared.index, unsafe { ffi::blindfold_comb_entries(WINDOW_BITS) } as usize)?;
        let mut stream = shared.batches();
        let base = Buffer::filled(shared.index, &mut stream.queue, &[*base])?;
        stream.run(|stream| {
            // SAFETY: as many entries as were asked for, and one element.
            let code = unsafe {
                ffi::blindfold_fill_comb(stream.queue.raw(), entries.raw(), WINDOW_BITS, base.raw())
            };
            done(code, 0)
        })?;
        drop(stream);
        Ok(Self { shared, entries, buffers: Mutex::default() })
    }
}

impl Base for Comb {
    fn powers(&self, exponents: &[ScalarLimbs]) -> Result<Vec<GtLimbs>, DeviceError> {
        let count = exponents.len();
        let mut stream = self.shared.releases();
        let mut buffers = lock(&self.buffers);
        let buffers = match &mut *buffers {
            Some(buffers) if buffers.powers.len() >= count => buffers,
            small => {
                *small = None; // frees first
                small.insert(Buffers::new(self.shared.index, count.next_power_of_two())?)
            }
        };
        in_pieces(&mut buffers.up.values_mut()[..CODES * count], CODES, exponents, |codes, exponents| {
            for (codes, k) in codes.chunks_exact_mut(CODES).zip(exponents) {
                codes.copy_from_slice(&exponents::comb(exponents::base_x(*k), WINDOW_BITS));
            }
        });
        stream.run(|stream| {
            stream.queue.upload(&buffers.codes, &buffers.up, CODES * count)?;
            // SAFETY: the table, the codes of so many exponents, and room for as many powers.
            let code = unsafe {
                let (entries, codes, powers) =
                    (self.entries.raw(), buffers.codes.raw(), buffers.powers.raw());
                ffi::blindfold_comb_powers(
                    stream.queue.raw(),
                    entries,
                    WINDOW_BITS,
                    codes,
                    powers,
                    count as u32,
                )
            };
            done(code, 0)?;
            stream.download(&buffers.powers, count)
        })?;
        Ok(stream.down(count))
    }
}

/// Working memory of sums, kept between them.
#[derive(Default)]
pub(crate) struct Sums(Option<SumBuffers>);

struct SumBuffers {
    points: Buffer<G1Limbs>,
    up: Pinned<ScalarLimbs>,
    scalars: Buffer<ScalarLimbs>,
    workspace: Buffer<u8>,
    out: Buffer<G1Limbs>,
    down: Pinned<G1Limbs>,
}

/// The kernels' own working memory for so many points; not always more for more points.
fn sum_bytes(count: usize) -> usize {
    // SAFETY: a pure function.
    unsafe { ffi::blindfold_sum_bytes(count as u32) as usize }
}

impl SumBuffers {
    fn new(index: Index, count: usize, bytes: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            points: Buffer::new(index, count)?,
            up: Pinned::new(index, count)?,
            scalars: Buffer::new(index, count)?,
            workspace: Buffer::new(index, bytes)?,
            out: Buffer::new(index, 1)?,
            down: Pinned::new(index, 1)?,
        })
    }
}

impl Sums {
    /// Fewer points than this.
    pub(crate) const LIMIT: usize = 1 << 26;

    pub(crate) fn sum(
        &mut self,
        index: Index,
        stream: &mut Stream,
        points: &[G1Limbs],
        scalars: &[ScalarLimbs],
    ) -> Result<G1Limbs, DeviceError> {
        let count = points.len();
        assert!(
            count == scalars.len() && (1..Self::LIMIT).contains(&count),
            "a scalar for each of some points"
        );
        let bytes = sum_bytes(count);
        let buffers = match &mut self.0 {
            Some(buffers) if buffers.points.len() >= count && buffers.workspace.len() >= bytes => buffers,
            small => {
                *small = None; // frees first
                small.insert(SumBuffers::new(index, count.next_power_of_two(), bytes.next_power_of_two())?)
            }
        };
        buffers.up.values_mut()[..count].copy_from_slice(scalars);
        stream.up(count)?.copy_from_slice(points);
        stream.run(|stream| {
            stream.upload(&buffers.points, count)?;
            stream.queue.upload(&buffers.scalars, &buffers.up, count)?;
            // SAFETY: so many points and scalars, the workspace that was asked for, and a point.
            let code = unsafe {
                let (points, scalars) = (buffers.points.raw(), buffers.scalars.raw());
                let (workspace, out) = (buffers.workspace.raw(), buffers.out.raw());
                ffi::blindfold_sum(stream.queue.raw(), points, scalars, count as u32, workspace, out)
            };
            done(code, 0)?;
            stream.queue.download(&mut buffers.down, &buffers.out, 1)
        })?;
        Ok(buffers.down.values()[0])
    }
}

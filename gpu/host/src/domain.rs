//! A domain on a device, and the batches that are computed in it.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use blindfold_bte::accelerator::{
    CrossTerms, DeviceError, Domain, FpLimbs, G1Limbs, GtLimbs, Setup, Shape, Twiddle,
};

use crate::cuda::{Shared, Stream, lock};
use crate::device::done;
use crate::digits::{self, Form, point_digits};
use crate::exponents::{self, NAF_ENTRIES, WINDOW_ENTRIES};
use crate::ffi;
use crate::memory::{Buffer, Index, Pinned, Queue};
use crate::plan::Plan;
use crate::split_radix;
use crate::table::Table;

/// Homogeneous coordinates.
type PointLimbs = [FpLimbs; 3];

/// Lanes of a warp: as many threads that share a scalar walk its digits together.
const WARP_THREADS: usize = 32;
/// Elements of F_p12, or points in lanes, that a warp holds.
const WARP_ELEMENTS: usize = 5;

/// R mod p: 1 in Montgomery form.
const ONE: FpLimbs = [
    0x7609_0000_0002_fffd,
    0xebf4_000b_c40c_0002,
    0x5f48_9857_53c7_58ba,
    0x77ce_5853_7052_5745,
    0x5c07_1a97_a256_ec6d,
    0x15f6_5ec3_fa80_e493,
];

/// One length of the transform back: where its numbers are in the schedule.
struct Level {
    length: usize,
    starts: (usize, usize),
    twiddles: (usize, usize),
    /// Whether neighbouring twiddled elements share their exponent.
    shares: bool,
    /// Whether the digits of an exponent are walked apart.
    digits_apart: bool,
}

/// A domain with the working memory of a batch.
pub(crate) struct Loaded {
    shared: Arc<Shared>,
    shape: Shape,
    /// Whether points are spread over lanes.
    in_lanes: bool,
    frobenius_is_fourth_root: bool,
    fixed: Table,
    release: Table,
    /// Twiddles for points, [`Form::Sparse`] and [`Form::Aligned`].
    sparse: Buffer<i8>,
    aligned: Buffer<i8>,
    /// Twiddles for elements, shared by neighbours and not.
    naf: Buffer<u32>,
    windows: Buffer<u32>,
    levels: Vec<Level>,
    schedule: Buffer<u32>,
    buffers: Mutex<Buffers>,
    finish: Mutex<Finish>,
    /// Buffers that held cross-terms: allocating on a device stops it.
    idle: Mutex<Vec<Buffer<GtLimbs>>>,
}

/// Working memory of a convolution.
struct Buffers {
    /// The inputs, and the release after them.
    inputs: Buffer<G1Limbs>,
    points: Buffer<PointLimbs>,
    elements: Buffer<GtLimbs>,
    denominators: Buffer<FpLimbs>,
    scratch: Buffer<FpLimbs>,
    /// Of powers whose digits are walked apart.
    factors: Buffer<GtLimbs>,
}

/// Working memory of a release.
struct Finish {
    up: Pinned<PointLimbs>,
    release: Buffer<PointLimbs>,
    numerators: Buffer<GtLimbs>,
    denominators: Buffer<FpLimbs>,
    scratch: Buffer<FpLimbs>,
    blindings: Buffer<GtLimbs>,
}

impl Buffers {
    fn new(index: Index, shape: Shape, levels: &[Level]) -> Result<Self, DeviceError> {
        let n = shape.points();
        let apart = levels.iter().filter(|level| level.digits_apart).map(|level| level.twiddles.1).max();
        Ok(Self {
            inputs: Buffer::new(index, shape.capacity() + 1)?,
            points: Buffer::new(index, n)?,
            elements: Buffer::new(index, n)?,
            denominators: Buffer::new(index, n)?,
            scratch: Buffer::new(index, n)?,
            factors: Buffer::new(index, exponents::DIGITS * apart.unwrap_or(0).max(1))?,
        })
    }
}

impl Finish {
    fn new(index: Index, capacity: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            up: Pinned::new(index, 1)?,
            release: Buffer::new(index, 1)?,
            numerators: Buffer::new(index, capacity)?,
            denominators: Buffer::new(index, capacity)?,
            scratch: Buffer::new(index, capacity)?,
            blindings: Buffer::new(index, capacity)?,
        })
    }
}

/// The levels with all their numbers in one array; the digits of up to `digits_apart` exponents are walked apart.
fn schedule(shape: Shape, digits_apart: usize) -> (Vec<Level>, Vec<u32>) {
    let mut numbers: Vec<u32> = Vec::new();
    let mut put = |values: &[u32]| {
        let at = numbers.len();
        numbers.extend(values);
        at
    };
    let level = |level: split_radix::Level| Level {
        length: level.length,
        starts: (put(&level.starts), level.starts.len()),
        twiddles: (put(level.twiddles.as_flattened()), level.twiddles.len()),
        shares: level.starts.len() >= WARP_ELEMENTS,
        digits_apart: level.twiddles.len() <= digits_apart,
    };
    let levels = split_radix::levels(shape.size(), shape.cosets).into_iter().map(level).collect();
    (levels, numbers)
}

fn codes(twiddles: &[Twiddle], recode: fn([u64; 4]) -> [u32; exponents::POSITIONS]) -> Vec<u32> {
    twiddles.iter().flat_map(|twiddle| recode(twiddle.digits)).collect()
}

impl Loaded {
    pub(crate) fn new(shared: Arc<Shared>, setup: &Setup, plan: Plan) -> Result<Self, DeviceError> {
        let (index, shape) = (shared.index, setup.shape);
        let [in_lanes, digits_apart] = shared.small();
        let (levels, numbers) = schedule(shape, digits_apart);
        let mut stream = shared.batches();
        let queue = &mut stream.queue;
        let halves = &setup.twiddles[..shape.size() / 2];
        let buffers = Buffers::new(index, shape, &levels)?;
        let loaded = Self {
            shape,
            in_lanes: shape.points() / 2 <= in_lanes,
            frobenius_is_fourth_root: setup.frobenius_is_fourth_root,
            fixed: Table::load(index, queue, &setup.fixed, plan.fixed)?,
            release: Table::load(index, queue, &setup.release, plan.release)?,
            sparse: Buffer::filled(index, queue, &point_digits(halves, Form::Sparse))?,
            aligned: Buffer::filled(index, queue, &point_digits(halves, Form::Aligned))?,
            naf: Buffer::filled(index, queue, &codes(&setup.twiddles, exponents::naf))?,
            windows: Buffer::filled(index, queue, &codes(&setup.twiddles, exponents::windows))?,
            levels,
            schedule: Buffer::filled(index, queue, &numbers)?,
            buffers: Mutex::new(buffers),
            finish: Mutex::new(Finish::new(index, shape.capacity())?),
            idle: Mutex::new(vec![Buffer::new(index, shape.capacity())?]),
            shared: Arc::clone(&shared),
        };
        drop(stream);
        Ok(loaded)
    }

    /// A buffer for the outputs of a batch.
    fn outputs(&self) -> Result<Buffer<GtLimbs>, DeviceError> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| Buffer::new(self.shared.index, self.shape.capacity()), Ok)
    }

    /// Queues a whole convolution; the first outputs go to `outputs`.
    fn convolve(
        &self,
        stream: &mut Stream,
        buffers: &Buffers,
        inputs: &[G1Limbs],
        release: Option<&G1Limbs>,
        outputs: &Buffer<GtLimbs>,
    ) -> Result<(), DeviceError> {
        let count = inputs.len() + usize::from(release.is_some());
        let up = stream.up(count)?;
        up[..inputs.len()].copy_from_slice(inputs);
        if let (Some(release), Some(last)) = (release, up.last_mut()) {
            *last = *release;
        }
        stream.upload(&buffers.inputs, count)?;
        stream.mark("upload")?;
        self.forward(&mut stream.queue, buffers, inputs.len(), release.is_some())?;
        stream.mark("point transform")?;
        self.multiply(&mut stream.queue, buffers)?;
        stream.mark("pairings")?;
        self.back(&mut stream.queue, buffers, outputs, inputs.len())?;
        stream.mark("target transform")
    }

    fn forward(
        &self,
        queue: &mut Queue,
        buffers: &Buffers,
        count: usize,
        release: bool,
    ) -> Result<(), DeviceError> {
        let (log_size, cosets) = (self.shape.log_size, self.shape.cosets as u32);
        let release = if release { buffers.inputs.at(count).cast_const() } else { std::ptr::null() };
        // SAFETY: `count` inputs, the release after them, and room for all points of the domain.
        let code = unsafe {
            let (inputs, points) = (buffers.inputs.raw(), buffers.points.raw());
            ffi::blindfold_fold_points(queue.raw(), log_size, cosets, inputs, count as u32, release, points)
        };
        done(code, 0)?;
        // As many butterflies in a row share a twiddle as there are blocks.
        let together = if self.in_lanes { WARP_ELEMENTS } else { WARP_THREADS };
        let mut half = self.shape.size() / 2;
        while half > 0 {
            let shares = self.shape.points() / (2 * half) >= together;
            let digits = if shares { &self.sparse } else { &self.aligned };
            // SAFETY: the digits of M/2 twiddles, and all points of the domain.
            let code = unsafe {
                ffi::blindfold_transform_points(
                    queue.raw(),
                    log_size,
                    cosets,
                    half as u32,
                    digits.raw(),
                    digits::POSITIONS as u32,
                    i32::from(shares),
                    i32::from(self.in_lanes),
                    buffers.points.raw(),
                )
            };
            done(code, 0)?;
            half /= 2;
        }
        Ok(())
    }

    fn multiply(&self, queue: &mut Queue, buffers: &Buffers) -> Result<(), DeviceError> {
        self.fixed.each_tile(queue, 0..self.shape.points(), |queue, first, count, lines| {
            // SAFETY: so many points, elements and denominators from there, and their lines.
            let code = unsafe {
                ffi::blindfold_pair(
                    queue.raw(),
                    buffers.points.at(first),
                    1,
                    lines,
                    count as u32,
                    buffers.elements.at(first),
                    buffers.denominators.at(first),
                    buffers.scratch.at(first),
                )
            };
            done(code, 0)
        })
    }

    fn back(
        &self,
        queue: &mut Queue,
        buffers: &Buffers,
        outputs: &Buffer<GtLimbs>,
        count: usize,
    ) -> Result<(), DeviceError> {
        let elements = buffers.elements.raw();
        for level in &self.levels {
            let (starts, transforms) = (self.schedule.at(level.starts.0), level.starts.1 as u32);
            if level.length == 2 {
                // SAFETY: the schedule names elements of the domain only; so below.
                let code = unsafe { ffi::blindfold_butterflies(queue.raw(), elements, starts, transforms) };
                done(code, 0)?;
                continue;
            }
            let (codes, entries) =
                if level.shares { (&self.naf, NAF_ENTRIES) } else { (&self.windows, WINDOW_ENTRIES) };
            // SAFETY: the schedule names exponents below M, which both tables have.
            let code = unsafe {
                ffi::blindfold_raise(
                    queue.raw(),
                    elements,
                    self.schedule.at(level.twiddles.0),
                    level.twiddles.1 as u32,
                    codes.raw(),
                    exponents::POSITIONS as u32,
                    entries,
                    i32::from(level.shares),
                    if level.digits_apart { buffers.factors.raw() } else { std::ptr::null_mut() },
                )
            };
            done(code, 0)?;
            let (quarter, frobenius) = (level.length as u32 / 4, i32::from(self.frobenius_is_fourth_root));
            // SAFETY: as above.
            let code = unsafe {
                ffi::blindfold_combine(queue.raw(), elements, starts, transforms, quarter, frobenius)
            };
            done(code, 0)?;
        }
        let (size, cosets) = (self.shape.size() as u32, self.shape.cosets as u32);
        // SAFETY: all elements of the domain, and at most L outputs.
        let code = unsafe {
            ffi::blindfold_unfold(queue.raw(), elements, size, cosets, outputs.raw(), count as u32)
        };
        done(code, 0)
    }

    /// Queues the blinding factors of a part of a batch whose cross-terms are there; the first goes to the beginning.
    fn blind(
        &self,
        queue: &mut Queue,
        finish: &Finish,
        terms: &Buffer<GtLimbs>,
        of: Range<usize>,
    ) -> Result<(), DeviceError> {
        let start = of.start;
        self.release.each_tile(queue, of, |queue, first, count, lines| {
            // SAFETY: so many elements and denominators from there, the lines, and one point.
            let code = unsafe {
                ffi::blindfold_blind(
                    queue.raw(),
                    finish.release.raw(),
                    lines,
                    count as u32,
                    terms.at(first),
                    finish.numerators.at(first),
                    finish.denominators.at(first),
                    finish.scratch.at(first),
                    finish.blindings.at(first - start),
                )
            };
            done(code, 0)
        })
    }

    fn check(&self, inputs: &[G1Limbs]) {
        assert!((2..=self.shape.capacity()).contains(&inputs.len()), "a batch that the domain is made for");
    }
}

/// What the backend holds of a domain.
pub(crate) struct Handle(pub(crate) Arc<Loaded>);

impl Domain for Handle {
    fn cross_terms(&self, inputs: &[G1Limbs]) -> Result<Box<dyn CrossTerms>, DeviceError> {
        self.0.check(inputs);
        let terms =
            Terms { buffer: Some(self.0.outputs()?), domain: Arc::clone(&self.0), count: inputs.len() };
        let mut stream = self.0.shared.batches();
        let buffers = lock(&self.0.buffers);
        let phases = stream.run(|stream| self.0.convolve(stream, &buffers, inputs, None, terms.buffer()))?;
        self.0.shared.phases().batch = phases;
        Ok(Box::new(terms))
    }

    fn blinding_factors(&self, inputs: &[G1Limbs], release: &G1Limbs) -> Result<Vec<GtLimbs>, DeviceError> {
        self.0.check(inputs);
        let count = inputs.len();
        let terms = Terms { buffer: Some(self.0.outputs()?), domain: Arc::clone(&self.0), count };
        let mut stream = self.0.shared.batches();
        let buffers = lock(&self.0.buffers);
        let phases = stream.run(|stream| {
            let outputs = terms.buffer();
            self.0.convolve(stream, &buffers, inputs, Some(release), outputs)?;
            // The outputs are inverses.
            // SAFETY: so many elements.
            let code =
                unsafe { ffi::blindfold_hard_parts(stream.queue.raw(), outputs.raw(), 1, count as u32) };
            done(code, 0)?;
            stream.mark("hard parts")?;
            stream.download(outputs, count)?;
            stream.mark("download")
        })?;
        self.0.shared.phases().batch = phases;
        Ok(stream.down(count))
    }
}

/// Cross-terms that wait on the device.
struct Terms {
    domain: Arc<Loaded>,
    /// Goes back to the domain when dropped.
    buffer: Option<Buffer<GtLimbs>>,
    count: usize,
}

impl Terms {
    fn buffer(&self) -> &Buffer<GtLimbs> {
        match &self.buffer {
            Some(buffer) => buffer,
            None => unreachable!("taken only when dropped"),
        }
    }
}

impl Drop for Terms {
    fn drop(&mut self) {
        lock(&self.domain.idle).extend(self.buffer.take());
    }
}

impl CrossTerms for Terms {
    fn download(&self) -> Result<Vec<GtLimbs>, DeviceError> {
        let mut stream = self.domain.shared.releases();
        stream.run(|stream| stream.download(self.buffer(), self.count))?;
        Ok(stream.down(self.count))
    }

    fn blinding_factors(&self, release: &G1Limbs, of: Range<usize>) -> Result<Vec<GtLimbs>, DeviceError> {
        assert!(of.end <= self.count, "ciphertexts of the batch");
        let (first, count) = (of.start, of.len());
        let domain = &self.domain;
        let mut stream = domain.shared.releases();
        let mut finish = lock(&domain.finish);
        finish.up.values_mut()[0] = homogeneous(release);
        let phases = stream.run(|stream| {
            stream.queue.upload(&finish.release, &finish.up, 1)?;
            stream.mark("upload")?;
            domain.blind(&mut stream.queue, &finish, self.buffer(), of)?;
            stream.mark("blinding factors")?;
            stream.download(&finish.blindings, count)?;
            stream.mark("download")
        })?;
        let known = &mut domain.shared.phases().release;
        if first == 0 {
            known.clear();
        }
        match known.is_empty() {
            true => *known = phases,
            false => known.iter_mut().zip(phases).for_each(|(known, more)| known.ms += more.ms),
        }
        Ok(stream.down(count))
    }
}

fn homogeneous([x, y]: &G1Limbs) -> PointLimbs {
    let zero: FpLimbs = [0; 6];
    if *x == zero && *y == zero { [zero, ONE, zero] } else { [*x, *y, ONE] }
}

//! One device as an [`Accelerator`].
//!
//! A device has two streams, each a queue with memory of the host that it copies by itself: one for batches, one, urgent,
//! for releases. A release in hand has users waiting for it, so its work overtakes that of the next batch. Batches of
//! one kind follow each other: one fills the device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blindfold_bte::accelerator::{
    Accelerator, Base, DeviceError, Domain, G1Limbs, GtLimbs, Operation, ScalarLimbs, Setup,
};

use crate::base::{Comb, Sums};
use crate::device::{Device, devices};
use crate::domain::{Handle, Loaded};
use crate::memory::{Event, Index, Pinned, Plain, Queue, in_pieces};
use crate::phases::{Phase, Phases};
use crate::plan::{DEFAULT_TILE, Plan};

/// Memory that no plan counts: what the driver takes for each process, the stacks of as many threads as a device holds
/// (up to 3 KB each), tables of keys, factors of powers in small batches (3 MB), and what is fragmented.
const RESERVE_BYTES: u64 = 1 << 30;

/// From how many items on a device is given work, and how much of its memory it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The fewest ciphertexts of a batch that goes to the device.
    pub batch_min: usize,
    /// Powers of an encryption key at once.
    pub powers_min: usize,
    /// The fewest points of a sum that goes to the device.
    pub sum_min: usize,
    /// Bytes of device memory for one domain; what is free, if that is less.
    pub domain_max_bytes: u64,
    /// Points whose lines are computed at a time, where there is no memory for those of all.
    pub tile: u32,
    /// Ciphertexts from which on the processor opens one half of a batch while the device computes the other.
    pub halves_from: usize,
    /// Butterflies of points, for each multiprocessor, up to which they are spread over lanes.
    pub in_lanes_max: usize,
    /// Powers of a level, for each multiprocessor, up to which the digits of an exponent are walked apart.
    pub digits_apart_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Measured on an H200 beside 16 cores with AVX-512 IFMA (docs/gpu.md); fewer cores are overtaken earlier.
        Self {
            batch_min: 32,
            powers_min: 1024,
            sum_min: 8192,
            domain_max_bytes: u64::MAX,
            tile: DEFAULT_TILE,
            halves_from: 32768,
            in_lanes_max: 125,
            digits_apart_max: 10,
        }
    }
}

/// A device that computes batches. Clones are the same device.
#[derive(Clone)]
pub struct Cuda(Arc<Shared>);

/// What everything on a device uses.
pub(crate) struct Shared {
    device: Device,
    pub(crate) index: Index,
    limits: Limits,
    batches: Mutex<Stream>,
    releases: Mutex<Stream>,
    sums: Mutex<Sums>,
    phases: Mutex<Phases>,
}

/// A stream: its queue, the host's end of its copies, and its clock.
pub(crate) struct Stream {
    pub(crate) queue: Queue,
    index: Index,
    up: Pinned<G1Limbs>,
    down: Pinned<GtLimbs>,
    marks: Vec<(&'static str, Event)>,
    /// Of the marks, those of the work in hand.
    used: usize,
}

impl Cuda {
    /// Takes a device of [`devices`].
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn new(device: Device, limits: Limits) -> Result<Self, DeviceError> {
        let index = device.index as Index;
        Ok(Self(Arc::new(Shared {
            device,
            index,
            limits,
            batches: Mutex::new(Stream::new(index, false)?),
            releases: Mutex::new(Stream::new(index, true)?),
            sums: Mutex::default(),
            phases: Mutex::default(),
        })))
    }

    /// The device as it was found.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Where the time of the last batch went.
    pub fn phases(&self) -> Phases {
        lock(&self.0.phases).clone()
    }

    /// Bytes that a domain may take now.
    fn free_bytes(&self) -> u64 {
        // If the device does not say, its next allocation will.
        let free =
            devices().ok().and_then(|all| all.into_iter().find(|other| other.index == self.0.device.index));
        let free = free.map_or(self.0.device.free_bytes, |device| device.free_bytes);
        free.saturating_sub(RESERVE_BYTES).min(self.0.limits.domain_max_bytes)
    }
}

/// What is behind these locks is whole between two statements, whatever panics.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Up to how many butterflies are spread over lanes, and up to how many powers over groups.
    pub(crate) fn small(&self) -> [usize; 2] {
        let each = [self.limits.in_lanes_max, self.limits.digits_apart_max];
        each.map(|each| each.saturating_mul(self.device.processors as usize))
    }

    /// For batches.
    pub(crate) fn batches(&self) -> MutexGuard<'_, Stream> {
        lock(&self.batches)
    }

    /// For what somebody waits for.
    pub(crate) fn releases(&self) -> MutexGuard<'_, Stream> {
        lock(&self.releases)
    }

    pub(crate) fn phases(&self) -> MutexGuard<'_, Phases> {
        lock(&self.phases)
    }
}

impl Stream {
    fn new(index: Index, urgent: bool) -> Result<Self, DeviceError> {
        let (up, down) = (Pinned::new(index, 1)?, Pinned::new(index, 1)?);
        Ok(Self { queue: Queue::new(index, urgent)?, index, up, down, marks: vec![], used: 0 })
    }

    /// Runs what `work` queues, and returns once it is done, with the time between its marks.
    pub(crate) fn run(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<Vec<Phase>, DeviceError> {
        self.used = 0;
        let queued = self.mark("start").and_then(|()| work(self));
        // Also after an error: nothing may run on when memory is freed or used again.
        let waited = self.queue.wait();
        queued.and(waited)?;
        let pairs = self.marks[..self.used].windows(2);
        pairs.map(|pair| Ok(Phase { name: pair[1].0, ms: pair[1].1.ms_since(&pair[0].1)? })).collect()
    }

    /// Ends a phase.
    pub(crate) fn mark(&mut self, name: &'static str) -> Result<(), DeviceError> {
        if self.used == self.marks.len() {
            self.marks.push((name, Event::new(self.index)?));
        }
        let (own, event) = &mut self.marks[self.used];
        *own = name;
        self.used += 1;
        self.queue.record(event)
    }

    /// Room for `count` points on their way up.
    pub(crate) fn up(&mut self, count: usize) -> Result<&mut [G1Limbs], DeviceError> {
        grow(self.index, &mut self.up, count)?;
        Ok(&mut self.up.values_mut()[..count])
    }

    /// Queues the first points that [`Stream::up`] gave.
    pub(crate) fn upload(
        &mut self,
        to: &crate::memory::Buffer<G1Limbs>,
        count: usize,
    ) -> Result<(), DeviceError> {
        self.queue.upload(to, &self.up, count)
    }

    /// Queues elements on their way down.
    pub(crate) fn download(
        &mut self,
        from: &crate::memory::Buffer<GtLimbs>,
        count: usize,
    ) -> Result<(), DeviceError> {
        grow(self.index, &mut self.down, count)?;
        self.queue.download(&mut self.down, from, count)
    }

    /// The elements that came down, after [`Stream::run`].
    pub(crate) fn down(&self, count: usize) -> Vec<GtLimbs> {
        let from = &self.down.values()[..count];
        let mut elements = Vec::with_capacity(count);
        in_pieces(&mut elements.spare_capacity_mut()[..count], 1, from, |to, from| {
            for (to, from) in to.iter_mut().zip(from) {
                to.write(*from);
            }
        });
        // SAFETY: all of them have just been written.
        unsafe { elements.set_len(count) };
        elements
    }
}

/// Only while nothing that is queued uses it.
fn grow<T: Plain>(index: Index, pinned: &mut Pinned<T>, count: usize) -> Result<(), DeviceError> {
    if pinned.len() < count {
        *pinned = Pinned::new(index, count.next_power_of_two())?;
    }
    Ok(())
}

impl Accelerator for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn takes(&self, operation: Operation, items: usize) -> bool {
        let limits = &self.0.limits;
        match operation {
            // Cross-terms on the device are finalized there.
            Operation::Load | Operation::Finalize => true,
            Operation::Batch => items >= limits.batch_min,
            Operation::Powers => items >= limits.powers_min,
            Operation::Sum => (limits.sum_min..Sums::LIMIT).contains(&items),
        }
    }

    fn halves_from(&self) -> usize {
        self.0.limits.halves_from
    }

    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        let plan = Plan::new(setup.shape, setup.release.len(), self.free_bytes(), self.0.limits.tile)?;
        Ok(Arc::new(Handle(Arc::new(Loaded::new(Arc::clone(&self.0), setup, plan)?))))
    }

    fn load_base(&self, base: &GtLimbs) -> Result<Arc<dyn Base>, DeviceError> {
        Ok(Arc::new(Comb::new(Arc::clone(&self.0), base)?))
    }

    fn sum(&self, points: &[G1Limbs], scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        let mut stream = self.0.batches();
        lock(&self.0.sums).sum(self.0.index, &mut stream, points, scalars)
    }
}

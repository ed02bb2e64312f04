//! A test double (feature `reference`): a "device" that computes on the CPU what a device has to, from what crosses
//! the seam and nothing else. It checks [`super::Offload`] and the seam itself, and can be told to fail. Not a backend:
//! no configuration reaches it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{
    Accelerator, Base, CrossTerms, DeviceError, Domain, G1Limbs, GtLimbs, Operation, ScalarLimbs, Setup,
    scalar,
};
use crate::convolution::{Budget, FixedSide, convolve};
use crate::curve::{G1, G1Affine, G2Affine, Gt, miller_loop};
use crate::par;

/// The test double. Clones are the same device.
#[derive(Clone, Default)]
pub struct Double(Arc<State>);

#[derive(Default)]
struct State {
    calls: AtomicUsize,
    /// This call and all after it fail; 0 for none.
    fails_from: AtomicUsize,
    /// Fails once with a lack of memory.
    short_once: AtomicBool,
    /// Returns limbs that are no values.
    corrupt: AtomicBool,
    /// Batches of so many are finalized in halves; 0 for none.
    halves_from: AtomicUsize,
}

impl Double {
    /// A device that never fails.
    pub fn new() -> Self {
        Self::default()
    }

    /// One whose `call`-th call, counted from 1, and all later ones fail.
    pub fn failing_from(call: usize) -> Self {
        let double = Self::default();
        double.0.fails_from.store(call, Ordering::Relaxed);
        double
    }

    /// How many calls it has had so far.
    pub fn calls(&self) -> usize {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// The next call finds too little memory.
    pub fn run_short_once(&self) {
        self.0.short_once.store(true, Ordering::Relaxed);
    }

    /// From now on batches of so many ciphertexts are finalized in halves.
    pub fn finalize_in_halves_from(&self, count: usize) {
        self.0.halves_from.store(count, Ordering::Relaxed);
    }

    /// From now on all elements of GT that come back are out of range.
    pub fn return_garbage(&self) {
        self.0.corrupt.store(true, Ordering::Relaxed);
    }
}

impl State {
    fn call(&self) -> Result<(), DeviceError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.short_once.swap(false, Ordering::Relaxed) {
            return Err(DeviceError::Memory { needed_bytes: 2, free_bytes: 1 });
        }
        match self.fails_from.load(Ordering::Relaxed) {
            0 => Ok(()),
            first if call < first => Ok(()),
            _ => Err(DeviceError::Failed { code: 719, message: "told to fail".to_owned() }),
        }
    }

    fn returned(&self, elements: &[Gt]) -> Vec<GtLimbs> {
        let limbs = |element: &Gt| element.limbs().map(|limbs| *limbs);
        let mut returned: Vec<GtLimbs> = elements.iter().map(limbs).collect();
        if self.corrupt.load(Ordering::Relaxed) {
            returned[0][11] = [u64::MAX; 6];
        }
        returned
    }
}

impl Accelerator for Double {
    fn name(&self) -> &'static str {
        "double"
    }

    fn takes(&self, _operation: Operation, items: usize) -> bool {
        items >= 2
    }

    fn halves_from(&self) -> usize {
        match self.0.halves_from.load(Ordering::Relaxed) {
            0 => usize::MAX,
            count => count,
        }
    }

    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        self.0.call()?;
        let points = setup.fixed.iter().map(G2Affine::from_limbs).collect();
        let release = setup.release.iter().map(G2Affine::from_limbs).collect();
        let fixed = FixedSide::new(setup.shape, points);
        Ok(Arc::new(Held { state: Arc::clone(&self.0), fixed, release: Arc::new(release) }))
    }

    fn load_base(&self, base: &GtLimbs) -> Result<Arc<dyn Base>, DeviceError> {
        self.0.call()?;
        Ok(Arc::new(HeldBase { state: Arc::clone(&self.0), base: Gt::from_limbs(base) }))
    }

    fn sum(&self, points: &[G1Limbs], scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        self.0.call()?;
        let terms = points.iter().zip(scalars).filter_map(|(point, k)| {
            Some(G1::from(&G1Affine::from_limbs(point[0], point[1])).mul_public(&scalar(k)?))
        });
        let sum = terms.fold(G1::default(), |sum, term| sum.add(&term)).to_affine();
        Ok(super::point_limbs(&sum))
    }
}

struct Held {
    state: Arc<State>,
    fixed: FixedSide,
    release: Arc<Vec<G2Affine>>,
}

impl Held {
    fn convolve(&self, inputs: &[G1Limbs], release: Option<&G1Limbs>) -> Vec<Gt> {
        let affine = |point: &G1Limbs| G1Affine::from_limbs(point[0], point[1]);
        let inputs: Vec<G1Affine> = inputs.iter().map(affine).collect();
        convolve(&self.fixed, &Budget::new(0), &inputs, release.map(affine).as_ref())
    }
}

impl Domain for Held {
    fn cross_terms(&self, inputs: &[G1Limbs]) -> Result<Box<dyn CrossTerms>, DeviceError> {
        self.state.call()?;
        let (state, release) = (Arc::clone(&self.state), Arc::clone(&self.release));
        Ok(Box::new(HeldTerms { state, release, terms: self.convolve(inputs, None) }))
    }

    fn blinding_factors(&self, inputs: &[G1Limbs], release: &G1Limbs) -> Result<Vec<GtLimbs>, DeviceError> {
        self.state.call()?;
        let inverses = self.convolve(inputs, Some(release));
        Ok(self.state.returned(&par::map(inverses.len(), |i| inverses[i].conjugate().hard_part())))
    }
}

struct HeldTerms {
    state: Arc<State>,
    release: Arc<Vec<G2Affine>>,
    terms: Vec<Gt>,
}

impl CrossTerms for HeldTerms {
    fn download(&self) -> Result<Vec<GtLimbs>, DeviceError> {
        self.state.call()?;
        Ok(self.state.returned(&self.terms))
    }

    fn blinding_factors(&self, release: &G1Limbs, of: Range<usize>) -> Result<Vec<GtLimbs>, DeviceError> {
        self.state.call()?;
        let pd = G1Affine::from_limbs(release[0], release[1]);
        let blinding = |i: usize| {
            let miller = miller_loop(&pd, &self.release[i]);
            miller.easy_part().mul(&self.terms[i].conjugate()).hard_part()
        };
        Ok(self.state.returned(&par::map(of.len(), |i| blinding(of.start + i))))
    }
}

struct HeldBase {
    state: Arc<State>,
    base: Gt,
}

impl Base for HeldBase {
    fn powers(&self, exponents: &[ScalarLimbs]) -> Result<Vec<GtLimbs>, DeviceError> {
        self.state.call()?;
        let powers: Option<Vec<Gt>> =
            exponents.iter().map(|k| Some(self.base.pow_public(&scalar(k)?))).collect();
        powers.map(|powers| self.state.returned(&powers)).ok_or(DeviceError::Corrupt)
    }
}

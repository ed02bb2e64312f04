//! A device behind the backend seam, with the CPU for all that the device does not do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand_core::CryptoRng;

use super::{
    Accelerator, Base, DeviceError, Domain, G1Limbs, Operation, Resident, ScalarLimbs, Setup, Shape,
    elements, point, point_limbs,
};
use crate::batch::{Cross, check_headers};
use crate::bulk::Bulk;
use crate::cpu::Cpu;
use crate::curve::{G1, G1Affine, Gt, PointError, Scalar};
use crate::hash::mask;
use crate::hint::{HintItem, check_masked_key, message_and_randomness};
use crate::opening::{checked, unmask};
use crate::proof::{ProofItem, verify_proofs_with};
use crate::weights::{Expanded, Weight};
use crate::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, KnownBatch,
    MemberKey, Opening, Parameters, PreDecrypted, ProofError, Release, SingletonError, SingletonItem, par,
};

/// Told whenever the CPU does what the device failed to do: for a line in the log.
pub type Fallback = dyn Fn(Operation, &DeviceError) + Send + Sync;

/// [`Backend`] that leaves to a device what it [takes](Accelerator::takes) and does the rest on the CPU, with the
/// fastest backend of this machine. A device that fails costs time, never a batch: the CPU finishes with the same
/// results. Member keys stay on the CPU.
pub struct Offload {
    accelerator: Arc<dyn Accelerator>,
    cpu: Cpu,
    fallback: Arc<Fallback>,
    listeners: Arc<Mutex<Listeners>>,
    loaded: Mutex<Loaded>,
}

/// Who else is told of failures.
type Listeners = Vec<Box<dyn Fn(Operation) + Send + Sync>>;

/// What the device keeps from batch to batch.
#[derive(Default)]
struct Loaded {
    /// By hash of the parameters.
    domains: HashMap<([u8; 32], Shape), Arc<dyn Domain>>,
    /// By hash of the encryption key.
    bases: HashMap<[u8; 32], Arc<dyn Base>>,
}

impl Offload {
    /// With `threads` threads (0: one for each core) beside the device. `fallback` is told what the device failed to do.
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub fn new(
        accelerator: Arc<dyn Accelerator>,
        threads: usize,
        fallback: impl Fn(Operation, &DeviceError) + Send + Sync + 'static,
    ) -> Self {
        let listeners = Arc::new(Mutex::<Listeners>::default());
        let shared = Arc::clone(&listeners);
        let fallback = move |operation, error: &DeviceError| {
            fallback(operation, error);
            locked(&shared).iter().for_each(|listener| listener(operation));
        };
        let cpu = Cpu::new(threads);
        Self { accelerator, cpu, fallback: Arc::new(fallback), listeners, loaded: Mutex::default() }
    }

    /// What the device makes of it; `None` if the CPU has to.
    fn offer<T>(
        &self,
        operation: Operation,
        items: usize,
        work: impl Fn() -> Result<T, DeviceError>,
    ) -> Option<T> {
        if !self.accelerator.takes(operation, items) {
            return None;
        }
        let done = match work() {
            // What was loaded for other batches comes back when they do.
            Err(DeviceError::Memory { .. }) if self.forget() => work(),
            done => done,
        };
        done.inspect_err(|error| (self.fallback)(operation, error)).ok()
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        locked(&self.loaded)
    }

    /// Drops what the device keeps, as soon as no batch uses it; was there anything?
    fn forget(&self) -> bool {
        let Loaded { domains, bases } = std::mem::take(&mut *self.loaded());
        !domains.is_empty() || !bases.is_empty()
    }

    /// The domain for so many ciphertexts; others wait while it is loaded, and find it.
    fn domain(&self, parameters: &Parameters, batch: usize) -> Result<Arc<dyn Domain>, DeviceError> {
        let key = (parameters.hash(), Shape::for_batch(batch));
        let mut loaded = self.loaded();
        if let Some(domain) = loaded.domains.get(&key) {
            return Ok(Arc::clone(domain));
        }
        let setup = self.cpu.install(|| Setup::new(parameters, batch));
        let domain = self.accelerator.load(&setup)?;
        loaded.domains.insert(key, Arc::clone(&domain));
        Ok(domain)
    }

    fn base(&self, key: &EncryptionKey) -> Result<Arc<dyn Base>, DeviceError> {
        let mut loaded = self.loaded();
        if let Some(base) = loaded.bases.get(&key.hash()) {
            return Ok(Arc::clone(base));
        }
        let base = self.accelerator.load_base(&key.element().limbs().map(|limbs| *limbs))?;
        loaded.bases.insert(key.hash(), Arc::clone(&base));
        Ok(base)
    }

    /// ek^k for each k, if the device does that.
    fn powers(&self, key: &EncryptionKey, scalars: &[Scalar]) -> Option<Vec<Gt>> {
        self.offer(Operation::Powers, scalars.len(), || {
            let exponents: Vec<ScalarLimbs> = scalars.iter().map(|k| k.to_limbs()).collect();
            let returned = self.base(key)?.powers(&exponents)?;
            self.cpu.install(|| elements(&returned, scalars.len()))
        })
    }

    /// The same, and the encodings of \[k\]₁, which the CPU computes meanwhile. Not on its threads: one that waits for the
    /// device would be missing there.
    fn powers_and_headers(
        &self,
        key: &EncryptionKey,
        scalars: &[Scalar],
    ) -> Option<(Vec<Gt>, Vec<[u8; G1_BYTES]>)> {
        std::thread::scope(|scope| {
            let headers = scope.spawn(|| self.cpu.headers(scalars));
            let powers = self.powers(key, scalars);
            let headers = headers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            powers.map(|powers| (powers, headers))
        })
    }

    /// Opens ciphertexts, given their blinding factors.
    fn open(
        &self,
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Gt],
    ) -> Vec<Opening> {
        if !self.accelerator.takes(Operation::Powers, ciphertexts.len()) {
            return self.cpu.open(key, ciphertexts, blindings);
        }
        let unmasked = self.cpu.install(|| {
            par::map(ciphertexts.len(), |i| {
                let (ad, ciphertext) = ciphertexts[i];
                unmask(ad, ciphertext, &mask(&blindings[i]))
            })
        });
        let scalars: Vec<Scalar> = unmasked.iter().map(|(.., k)| *k).collect();
        let Some((powers, headers)) = self.powers_and_headers(key, &scalars) else {
            return self.cpu.open(key, ciphertexts, blindings);
        };
        let equal = self.cpu.install(|| par::map(powers.len(), |i| powers[i] == blindings[i]));
        checked(ciphertexts, unmasked, &headers, equal.into_iter())
    }

    /// Opens a batch whose cross-terms are on the device, unless that fails. Of a large batch the CPU opens one half while
    /// the device computes the blinding factors of the other.
    fn open_resident(
        &self,
        key: &EncryptionKey,
        resident: &Resident,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Option<Vec<Opening>> {
        let count = ciphertexts.len();
        let part = if count < self.accelerator.halves_from() { count } else { count.div_ceil(2) };
        std::thread::scope(|scope| {
            let mut running = vec![];
            for first in (0..count).step_by(part) {
                let of = first..count.min(first + part);
                let work = || resident.blinding_factors(release, of.clone(), &self.cpu);
                let blindings = self.offer(Operation::Finalize, of.len(), work)?;
                let ciphertexts = &ciphertexts[of];
                if ciphertexts.len() == count {
                    return Some(self.open(key, ciphertexts, &blindings));
                }
                running.push(scope.spawn(move || self.open(key, ciphertexts, &blindings)));
            }
            let joined = running.into_iter().map(|part| part.join());
            Some(
                joined
                    .flat_map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect(),
            )
        })
    }

    fn bulk(&self) -> DeviceBulk<'_> {
        DeviceBulk { offload: self, cpu: self.cpu.bulk() }
    }
}

/// A panic elsewhere leaves what these locks guard whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inputs(points: &[CiphertextPoint]) -> Vec<G1Limbs> {
    points.iter().map(|point| point_limbs(&point.0)).collect()
}

impl std::fmt::Debug for Offload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Offload({}, {})", self.accelerator.name(), self.cpu.backend().name())
    }
}

impl Backend for Offload {
    fn name(&self) -> &'static str {
        self.accelerator.name()
    }

    fn threads(&self) -> usize {
        self.cpu.backend().threads()
    }

    fn on_device_failure(&self, listener: Box<dyn Fn(Operation) + Send + Sync>) {
        locked(&self.listeners).push(listener);
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        parameters.check_batch(batch)?;
        if batch == 1 || !self.accelerator.takes(Operation::Batch, batch) {
            return self.cpu.backend().prepare(parameters, batch);
        }
        self.offer(Operation::Load, batch, || self.domain(parameters, batch).map(drop));
        if self.accelerator.takes(Operation::Powers, batch) {
            self.offer(Operation::Load, batch, || self.base(parameters.ek()).map(drop));
        }
        Ok(())
    }

    fn decode_headers(&self, headers: &[&[u8; G1_BYTES]]) -> Vec<Result<CiphertextPoint, PointError>> {
        self.cpu.backend().decode_headers(headers)
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        parameters.check_batch(points.len())?;
        if points.len() == 1 {
            return self.cpu.backend().predecrypt(parameters, points);
        }
        let inputs = inputs(points);
        let work = || self.domain(parameters, points.len())?.cross_terms(&inputs);
        match self.offer(Operation::Batch, points.len(), work) {
            Some(terms) => {
                let resident = Resident::new(parameters, points, terms, Arc::clone(&self.fallback));
                Ok(PreDecrypted::new(parameters, points, Cross::Resident(Arc::new(resident))))
            }
            None => self.cpu.backend().predecrypt(parameters, points),
        }
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        predecrypted.check(parameters, ciphertexts)?;
        if let Cross::Resident(resident) = predecrypted.cross() {
            if let Some(openings) = self.open_resident(parameters.ek(), resident, release, ciphertexts) {
                return Ok(openings);
            }
            resident.on_host_or(|| self.cpu.cross_terms(parameters, predecrypted.headers()));
        }
        self.cpu.backend().finalize(parameters, predecrypted, release, ciphertexts)
    }

    fn decrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        release: &Release,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        parameters.check_batch(points.len())?;
        check_headers(points, ciphertexts)?;
        if points.len() == 1 {
            return self.cpu.backend().decrypt(parameters, points, release, ciphertexts);
        }
        let inputs = inputs(points);
        let work = || {
            let domain = self.domain(parameters, points.len())?;
            let returned = domain.blinding_factors(&inputs, &point_limbs(&release.0))?;
            self.cpu.install(|| elements(&returned, points.len()))
        };
        match self.offer(Operation::Batch, points.len(), work) {
            Some(blindings) => Ok(self.open(parameters.ek(), ciphertexts, &blindings)),
            None => self.cpu.backend().decrypt(parameters, points, release, ciphertexts),
        }
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        if !self.accelerator.takes(Operation::Powers, items.len()) {
            return self.cpu.backend().open_hints(key, items);
        }
        let recovered = self.cpu.install(|| {
            par::map(items.len(), |i| message_and_randomness(items[i].0, &items[i].1.e, items[i].2))
        });
        let (messages, scalars): (Vec<_>, Vec<Scalar>) = recovered.into_iter().unzip();
        let Some((powers, headers)) = self.powers_and_headers(key, &scalars) else {
            return self.cpu.backend().open_hints(key, items);
        };
        let masks = self.cpu.install(|| par::map(powers.len(), |i| mask(&powers[i])));
        let checked = items.iter().zip(messages).zip(headers.iter().zip(masks));
        checked
            .map(|(((_, ciphertext, hint), message), (header, pad))| {
                if *header != ciphertext.c {
                    return Err(HintError::Header);
                }
                check_masked_key(ciphertext, hint, &pad)?;
                Ok(message)
            })
            .collect()
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        let mut rng = Expanded::new(rng);
        self.cpu.install(|| verify_proofs_with(&self.bulk(), &mut rng, items))
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.cpu.backend().release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        self.cpu.backend().invalid_shares(rng, parameters, points, shares)
    }

    fn wrong_releases(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        self.cpu.backend().wrong_releases(rng, parameters, batches)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        let mut rng = Expanded::new(rng);
        self.cpu.install(|| parameters.verify_singletons_with(&self.bulk(), &mut rng, items))
    }

    fn open_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        self.cpu.backend().open_singletons(rng, parameters, items)
    }
}

/// Sums on the device where it takes them; the rest on the CPU.
struct DeviceBulk<'a> {
    offload: &'a Offload,
    cpu: Box<dyn Bulk>,
}

impl DeviceBulk<'_> {
    fn sum(&self, points: &[G1Affine], scalars: impl Fn() -> Vec<ScalarLimbs>) -> Option<G1> {
        self.offload.offer(Operation::Sum, points.len(), || {
            let points: Vec<G1Limbs> = points.iter().map(point_limbs).collect();
            Ok(G1::from(&point(&self.offload.accelerator.sum(&points, &scalars())?)?))
        })
    }
}

impl Bulk for DeviceBulk<'_> {
    fn decode(&self, encodings: &[&[u8; 48]]) -> Vec<Result<G1Affine, PointError>> {
        self.cpu.decode(encodings)
    }

    fn weighted_sum(&self, points: &[G1Affine], weights: &[Weight], start: &Scalar) -> G1 {
        let limbs = |weight: &Weight| {
            let value = u128::from_le_bytes(*weight);
            [value as u64, (value >> 64) as u64, 0, 0]
        };
        let sum = self.sum(points, || weights.iter().map(limbs).collect());
        sum.unwrap_or_else(|| self.cpu.weighted_sum(points, weights, start))
    }

    fn multi_scalar(&self, points: &[G1Affine], scalars: &[Scalar], start: &Scalar) -> G1 {
        let sum = self.sum(points, || scalars.iter().map(|k| k.to_limbs()).collect());
        sum.unwrap_or_else(|| self.cpu.multi_scalar(points, scalars, start))
    }
}

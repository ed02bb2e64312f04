//! Several devices as one: each batch goes to the device with the least to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use blindfold_bte::accelerator::{
    Accelerator, Base, CrossTerms, DeviceError, Domain, G1Limbs, GtLimbs, Operation, ScalarLimbs, Setup,
};

/// Told when a device is taken out of service: its number, and why.
pub type OutOfService = dyn Fn(usize, &DeviceError) + Send + Sync;

/// [`Accelerator`] over devices of one kind. Every device holds every domain. A device that fails is taken out of
/// service for as long as the process lives, and another does its work; once none is left, the CPU does.
pub struct Several {
    name: &'static str,
    devices: Vec<Arc<Member>>,
}

/// One of the devices, and how much it is working on.
struct Member {
    number: usize,
    accelerator: Box<dyn Accelerator>,
    /// Items it is working on.
    load: AtomicUsize,
    out: AtomicBool,
    listener: Arc<OutOfService>,
}

impl Several {
    /// Takes the devices, numbered from 0; with none it takes no work.
    pub fn new(
        name: &'static str,
        devices: Vec<Box<dyn Accelerator>>,
        out_of_service: impl Fn(usize, &DeviceError) + Send + Sync + 'static,
    ) -> Self {
        let listener: Arc<OutOfService> = Arc::new(out_of_service);
        let member = |(number, accelerator)| {
            let (load, out) = (AtomicUsize::new(0), AtomicBool::new(false));
            Arc::new(Member { number, accelerator, load, out, listener: Arc::clone(&listener) })
        };
        Self { name, devices: devices.into_iter().enumerate().map(member).collect() }
    }

    fn in_service(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.devices.iter().filter(|member| member.in_service())
    }
}

impl Member {
    fn in_service(&self) -> bool {
        !self.out.load(Ordering::Relaxed)
    }

    /// Runs work of so many items on the device.
    fn run<T>(&self, items: usize, work: impl FnOnce() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        self.load.fetch_add(items, Ordering::Relaxed);
        let done = work();
        self.load.fetch_sub(items, Ordering::Relaxed);
        if let Err(error @ (DeviceError::Failed { .. } | DeviceError::Corrupt)) = &done
            && !self.out.swap(true, Ordering::Relaxed)
        {
            (self.listener)(self.number, error);
        }
        done
    }
}

/// Of `held`, one on each device, tries those in service from the least loaded on. An error that another device would
/// meet as well is final.
fn on_least_loaded<H, T>(
    held: &[(Arc<Member>, H)],
    items: usize,
    work: impl Fn(&Member, &H) -> Result<T, DeviceError>,
) -> Result<T, DeviceError> {
    let mut order: Vec<&(Arc<Member>, H)> = held.iter().filter(|(member, _)| member.in_service()).collect();
    order.sort_by_key(|(member, _)| member.load.load(Ordering::Relaxed));
    let mut last = none_left();
    for (member, held) in order {
        match member.run(items, || work(member, held)) {
            Err(error @ DeviceError::NotOffered(_)) => return Err(error),
            Err(error) => last = error,
            done => return done,
        }
    }
    Err(last)
}

fn none_left() -> DeviceError {
    DeviceError::Failed { code: 0, message: "no device is left in service".to_owned() }
}

impl Accelerator for Several {
    fn name(&self) -> &'static str {
        self.name
    }

    fn takes(&self, operation: Operation, items: usize) -> bool {
        self.in_service().next().is_some_and(|member| member.accelerator.takes(operation, items))
    }

    fn halves_from(&self) -> usize {
        self.in_service().next().map_or(usize::MAX, |member| member.accelerator.halves_from())
    }

    /// Loads on all devices at once.
    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        let loaded: Vec<(Arc<Member>, Result<_, DeviceError>)> = thread::scope(|scope| {
            let load = |member: &Arc<Member>| {
                let member = Arc::clone(member);
                scope.spawn(move || {
                    let loaded = member.run(0, || member.accelerator.load(setup));
                    (member, loaded)
                })
            };
            let threads: Vec<_> = self.in_service().map(load).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let mut last = none_left();
        let mut domains = Vec::new();
        for (member, loaded) in loaded {
            match loaded {
                Ok(domain) => domains.push((member, domain)),
                Err(error) => last = error,
            }
        }
        if domains.is_empty() { Err(last) } else { Ok(Arc::new(SeveralDomains(domains))) }
    }

    fn load_base(&self, base: &GtLimbs) -> Result<Arc<dyn Base>, DeviceError> {
        let mut last = none_left();
        let mut bases = Vec::new();
        for member in self.in_service() {
            match member.run(0, || member.accelerator.load_base(base)) {
                Ok(base) => bases.push((Arc::clone(member), base)),
                Err(error) => last = error,
            }
        }
        if bases.is_empty() { Err(last) } else { Ok(Arc::new(SeveralBases(bases))) }
    }

    fn sum(&self, points: &[G1Limbs], scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        let members: Vec<_> = self.devices.iter().map(|member| (Arc::clone(member), ())).collect();
        on_least_loaded(&members, points.len(), |member, ()| member.accelerator.sum(points, scalars))
    }
}

struct SeveralDomains(Vec<(Arc<Member>, Arc<dyn Domain>)>);

impl Domain for SeveralDomains {
    fn cross_terms(&self, inputs: &[G1Limbs]) -> Result<Box<dyn CrossTerms>, DeviceError> {
        on_least_loaded(&self.0, inputs.len(), |_, domain| domain.cross_terms(inputs))
    }

    fn blinding_factors(&self, inputs: &[G1Limbs], release: &G1Limbs) -> Result<Vec<GtLimbs>, DeviceError> {
        on_least_loaded(&self.0, inputs.len(), |_, domain| domain.blinding_factors(inputs, release))
    }
}

struct SeveralBases(Vec<(Arc<Member>, Arc<dyn Base>)>);

impl Base for SeveralBases {
    fn powers(&self, exponents: &[ScalarLimbs]) -> Result<Vec<GtLimbs>, DeviceError> {
        on_least_loaded(&self.0, exponents.len(), |_, base| base.powers(exponents))
    }
}

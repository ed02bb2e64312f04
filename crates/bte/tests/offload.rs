//! A device that fails, at whatever call, changes no result; and what reaches a device is what the seam says.

#[path = "common/answers.rs"]
mod answers;
mod common;

use std::sync::{Arc, Mutex};

use answers::Questions;
use blindfold_bte::accelerator::{
    Accelerator, CrossTerms, DeviceError, Domain, Double, G1Limbs, Offload, Operation, Setup, Twiddle,
};
use blindfold_bte::{Backend, MemberKey, Opening, Parameters, Release, auto};
use common::{Made, batch, deal, inputs, points, shares};

/// What a device failed to do, in order.
type Failures = Arc<Mutex<Vec<(Operation, DeviceError)>>>;

fn offload(device: impl Accelerator + 'static) -> (Offload, Failures) {
    let failures = Failures::default();
    let shared = Arc::clone(&failures);
    let note = move |operation, error: &DeviceError| {
        shared.lock().expect("no panic meanwhile").push((operation, error.clone()));
    };
    (Offload::new(Arc::new(device), 1, note), failures)
}

fn taken(failures: &Failures) -> Vec<(Operation, DeviceError)> {
    std::mem::take(&mut *failures.lock().expect("no panic meanwhile"))
}

struct Case {
    parameters: Parameters,
    keys: Vec<MemberKey>,
    batch: Vec<Made>,
    release: Release,
}

impl Case {
    fn new(size: usize, seed: u64) -> Self {
        let (parameters, keys) = deal(size as u32, 4, 3, seed);
        let mut batch = batch(&parameters, size, seed + 1);
        batch[1].ciphertext.d[0] ^= 1;
        let release = parameters.combine(&shares(&keys, &points(&batch))).expect("enough");
        Self { parameters, keys, batch, release }
    }

    /// Everything that `backend` says about the batch.
    fn results(&self, backend: &dyn Backend) -> (Vec<Opening>, Vec<Opening>, answers::Answers) {
        let (parameters, points) = (&self.parameters, points(&self.batch));
        let predecrypted = backend.predecrypt(parameters, &points).expect("within limits");
        let finalized = backend.finalize(parameters, &predecrypted, &self.release, &inputs(&self.batch));
        let at_once = backend.decrypt(parameters, &points, &self.release, &inputs(&self.batch));
        let questions =
            Questions::honest(parameters, &self.keys, &self.batch).with_forgeries(&self.batch).ask(backend);
        (finalized.expect("valid"), at_once.expect("valid"), questions)
    }
}

#[test]
fn a_device_that_fails_at_any_call_changes_nothing_and_is_reported() {
    let case = Case::new(5, 70);
    let want = case.results(&*auto(1));
    assert_eq!(want.0.iter().filter(|opening| **opening == Opening::Malformed).count(), 1);
    let mut calls = 8;
    // At once, and in halves of three and of two.
    for halves_from in [0, 5] {
        let sound = Double::new();
        sound.finalize_in_halves_from(halves_from);
        let (backend, failures) = offload(sound.clone());
        assert_eq!(case.results(&backend), want);
        assert!(taken(&failures).is_empty());
        assert!(sound.calls() >= calls, "{} calls", sound.calls());
        calls = sound.calls();
        for call in 1..=calls {
            let failing = Double::failing_from(call);
            failing.finalize_in_halves_from(halves_from);
            let (backend, failures) = offload(failing);
            assert_eq!(case.results(&backend), want, "from call {call}");
            let failures = taken(&failures);
            assert!(!failures.is_empty(), "call {call}");
            assert!(failures.iter().all(|(_, error)| matches!(error, DeviceError::Failed { code: 719, .. })));
        }
        calls += 1; // the second half
    }
}

#[test]
fn every_failure_is_told_to_all_who_listen() {
    let case = Case::new(4, 71);
    let (backend, failures) = offload(Double::failing_from(1));
    let heard = [Arc::new(Mutex::new(vec![])), Arc::new(Mutex::new(vec![]))];
    for shared in heard.clone() {
        let note =
            move |operation: Operation| shared.lock().expect("no panic meanwhile").push(operation.name());
        backend.on_device_failure(Box::new(note));
    }
    assert_eq!(case.results(&backend), case.results(&*auto(1)));
    let names: Vec<_> = taken(&failures).into_iter().map(|(operation, _)| operation.name()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| Operation::NAMES.contains(name)));
    for shared in heard {
        assert_eq!(*shared.lock().expect("no panic meanwhile"), names);
    }
}

#[test]
fn a_batch_outlives_the_device_that_holds_its_cross_terms() {
    let case = Case::new(4, 72);
    let want = case.results(&*auto(1)).0;
    let points = points(&case.batch);
    // Load and cross-terms work; nothing after them does.
    let (backend, failures) = offload(Double::failing_from(3));
    let predecrypted = backend.predecrypt(&case.parameters, &points).expect("within limits");
    assert!(taken(&failures).is_empty());
    let copy = predecrypted.clone();
    let here = backend.finalize(&case.parameters, &predecrypted, &case.release, &inputs(&case.batch));
    assert_eq!(here.as_ref(), Ok(&want));
    let operations: Vec<Operation> = taken(&failures).into_iter().map(|(operation, _)| operation).collect();
    assert_eq!(operations[..2], [Operation::Finalize, Operation::Batch]);
    // The copy has what was computed again, and any backend can go on with it.
    let there = auto(1).finalize(&case.parameters, &copy, &case.release, &inputs(&case.batch));
    assert_eq!(there.as_ref(), Ok(&want));
    assert!(taken(&failures).is_empty());

    let (backend, failures) = offload(Double::failing_from(3));
    let predecrypted = backend.predecrypt(&case.parameters, &points).expect("within limits");
    let there = auto(1).finalize(&case.parameters, &predecrypted, &case.release, &inputs(&case.batch));
    assert_eq!(there.as_ref(), Ok(&want));
    assert_eq!(taken(&failures).len(), 1);
    let direct = auto(1).predecrypt(&case.parameters, &points).expect("within limits");
    assert_eq!(predecrypted.cross_terms(), direct.cross_terms());
}

#[test]
fn a_device_that_computes_nonsense_is_not_believed() {
    let case = Case::new(4, 74);
    let want = case.results(&*auto(1));
    let device = Double::new();
    device.return_garbage();
    let (backend, failures) = offload(device);
    assert_eq!(case.results(&backend), want);
    let failures = taken(&failures);
    assert!(failures.iter().all(|(_, error)| *error == DeviceError::Corrupt));
    assert!(failures.len() >= 3);
}

#[test]
fn memory_is_made_by_dropping_what_is_loaded() {
    let case = Case::new(4, 76);
    let want = case.results(&*auto(1)).1;
    let device = Double::new();
    let (backend, failures) = offload(device.clone());
    let points = points(&case.batch);
    let decrypt = || backend.decrypt(&case.parameters, &points, &case.release, &inputs(&case.batch));
    // Nothing is loaded yet: nothing can be dropped, the CPU does it.
    device.run_short_once();
    assert_eq!(decrypt().as_ref(), Ok(&want));
    let short = (Operation::Batch, DeviceError::Memory { needed_bytes: 2, free_bytes: 1 });
    assert_eq!(taken(&failures), [short]);
    backend.prepare(&case.parameters, 4).expect("within limits");
    let before = device.calls();
    device.run_short_once();
    assert_eq!(decrypt().as_ref(), Ok(&want));
    assert!(taken(&failures).is_empty());
    // The refused call, the domain and the base loaded again, the batch, the powers.
    assert_eq!(device.calls() - before, 5);
}

/// Takes nothing; panics when asked.
struct Unused;

impl Accelerator for Unused {
    fn name(&self) -> &'static str {
        "unused"
    }

    fn takes(&self, _: Operation, _: usize) -> bool {
        false
    }

    fn load(&self, _: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        panic!("not taken")
    }
}

#[test]
fn what_a_device_does_not_take_stays_on_the_cpu() {
    let case = Case::new(3, 78);
    let (backend, failures) = offload(Unused);
    backend.prepare(&case.parameters, 3).expect("within limits");
    assert_eq!(case.results(&backend), case.results(&*auto(1)));
    assert!(taken(&failures).is_empty());
    assert_eq!((backend.name(), backend.threads()), ("unused", 1));
    assert_eq!(Unused.load_base(&[[0; 6]; 12]).err(), Some(DeviceError::NotOffered(Operation::Powers)));
    assert_eq!(Unused.sum(&[], &[]), Err(DeviceError::NotOffered(Operation::Sum)));
}

/// Keeps what it is given and computes nothing.
#[derive(Default)]
struct Listener(Arc<Mutex<Vec<Setup>>>);

impl Accelerator for Listener {
    fn name(&self) -> &'static str {
        "listener"
    }

    fn takes(&self, operation: Operation, _: usize) -> bool {
        operation == Operation::Batch
    }

    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        self.0.lock().expect("no panic meanwhile").push(setup.clone());
        Ok(Arc::new(Silent))
    }
}

struct Silent;

impl Domain for Silent {
    fn cross_terms(&self, inputs: &[G1Limbs]) -> Result<Box<dyn CrossTerms>, DeviceError> {
        assert!(inputs.iter().all(|point| *point != [[0; 6]; 2]), "headers are never the identity");
        Err(DeviceError::Corrupt)
    }

    fn blinding_factors(&self, _: &[G1Limbs], _: &G1Limbs) -> Result<Vec<[[u64; 6]; 12]>, DeviceError> {
        Err(DeviceError::Corrupt)
    }
}

#[test]
fn a_device_is_loaded_once_for_each_domain_with_everything_it_needs() {
    let case = Case::new(5, 80);
    let heard = Arc::new(Mutex::new(vec![]));
    let (backend, failures) = offload(Listener(Arc::clone(&heard)));
    // Five and six ciphertexts share a domain of 3·4 points, three have one of 3·2.
    for size in [5, 4, 5, 3] {
        let points = &points(&case.batch)[..size];
        let predecrypted = backend.predecrypt(&case.parameters, points).expect("within limits");
        let direct = auto(1).predecrypt(&case.parameters, points).expect("within limits");
        assert_eq!(predecrypted.cross_terms(), direct.cross_terms());
    }
    assert_eq!(taken(&failures).len(), 4);
    let heard = heard.lock().expect("no panic meanwhile");
    let shapes: Vec<_> = heard.iter().map(|setup| (setup.shape.log_size, setup.shape.cosets)).collect();
    assert_eq!(shapes, [(2, 3), (2, 2), (1, 3)]);
    for setup in heard.iter() {
        let shape = setup.shape;
        assert_eq!(setup.fixed.len(), shape.points());
        assert_eq!(setup.release.len(), shape.capacity().min(5));
        assert_eq!(setup.twiddles.len(), shape.size());
        assert_eq!(Some(setup.twiddles[0]), Twiddle::of(&[1, 0, 0, 0]));
        assert!(
            setup
                .twiddles
                .iter()
                .all(|twiddle| twiddle.digits.iter().all(|digit| *digit < 0xd201_0000_0001_0000))
        );
    }
    assert_eq!(Twiddle::of(&[u64::MAX; 4]), None);
    assert_eq!(Twiddle::of(&[7, 0, 0, 0]).map(|seven| seven.digits), Some([7, 0, 0, 0]));
}

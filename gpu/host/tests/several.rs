//! Several devices as one, over test doubles that can fail.

use std::sync::{Arc, Mutex};

use blindfold_bte::accelerator::{Accelerator, DeviceError, Double, Offload, Operation};
use blindfold_bte::{Backend, Ciphertext, CiphertextPoint, Opening, Parameters, Release, dealer};
use blindfold_gpu::several::Several;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Devices that were taken out of service, in order.
type Out = Arc<Mutex<Vec<usize>>>;

fn several(doubles: &[Double]) -> (Several, Out) {
    let out = Out::default();
    let shared = Arc::clone(&out);
    let devices = doubles.iter().map(|double| Box::new(double.clone()) as Box<dyn Accelerator>).collect();
    let note = move |number, _: &DeviceError| shared.lock().expect("no panic meanwhile").push(number);
    (Several::new("several", devices, note), out)
}

struct Case {
    parameters: Parameters,
    ciphertexts: Vec<Ciphertext>,
    release: Release,
}

impl Case {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1000);
        let (parameters, members) = dealer::deal(3, 1, 1, &mut rng).expect("a valid shape");
        let ek = parameters.encryption_key();
        let encrypt = |_| ek.encrypt(&[7; 32], b"m", b"", &mut rng).expect("a short message").0;
        let ciphertexts: Vec<Ciphertext> = (0..3).map(encrypt).collect();
        let share = members[0].release_share(&points(&ciphertexts)).expect("within limits");
        let release = parameters.combine(&[(1, share)]).expect("enough");
        Self { parameters, ciphertexts, release }
    }

    fn opens(&self, backend: &dyn Backend) {
        let inputs: Vec<_> = self.ciphertexts.iter().map(|ciphertext| (&[7; 32], ciphertext)).collect();
        let opened = backend.decrypt(&self.parameters, &points(&self.ciphertexts), &self.release, &inputs);
        let opened = opened.expect("valid");
        assert!(opened.iter().all(|opening| matches!(opening, Opening::WellFormed { .. })));
    }
}

fn points(ciphertexts: &[Ciphertext]) -> Vec<CiphertextPoint> {
    ciphertexts.iter().map(|ciphertext| ciphertext.header().expect("a point")).collect()
}

#[test]
fn a_device_that_fails_is_left_out_and_the_other_does_its_work() {
    let case = Case::new();
    // The first device loads domain and base, and fails from its first batch on.
    let (failing, sound) = (Double::failing_from(3), Double::new());
    let (several, out) = several(&[failing.clone(), sound.clone()]);
    let backend = Offload::new(Arc::new(several), 1, |operation, error| panic!("{operation:?}: {error}"));
    backend.prepare(&case.parameters, 3).expect("within limits");
    assert_eq!((failing.calls(), sound.calls()), (2, 2));
    for _ in 0..3 {
        case.opens(&backend);
    }
    assert_eq!(*out.lock().expect("no panic meanwhile"), [0]);
    assert_eq!(failing.calls(), 3);
    assert_eq!(sound.calls(), 8);
}

#[test]
fn without_a_device_in_service_the_processor_does_everything() {
    let case = Case::new();
    let (several, out) = several(&[Double::failing_from(1), Double::failing_from(2)]);
    let several = Arc::new(several);
    assert!(several.takes(Operation::Batch, 3));
    let failures = Arc::new(Mutex::new(0));
    let shared = Arc::clone(&failures);
    let backend =
        Offload::new(several.clone(), 1, move |_, _| *shared.lock().expect("no panic meanwhile") += 1);
    for _ in 0..3 {
        case.opens(&backend);
    }
    assert_eq!(*out.lock().expect("no panic meanwhile"), [0, 1]);
    assert_eq!(*failures.lock().expect("no panic meanwhile"), 1);
    assert!(!several.takes(Operation::Batch, 3));
    let none = Several::new("none", vec![], |_, _| ());
    assert!(!none.takes(Operation::Batch, 65536));
    assert!(matches!(none.sum(&[], &[]), Err(DeviceError::Failed { .. })));
}

#[test]
fn work_goes_to_the_device_with_less_of_it() {
    let case = Case::new();
    let doubles = [Double::new(), Double::new()];
    let (several, _) = several(&doubles);
    let backend = Offload::new(Arc::new(several), 1, |operation, error| panic!("{operation:?}: {error}"));
    backend.prepare(&case.parameters, 3).expect("within limits");
    // One after the other, the first is free each time.
    case.opens(&backend);
    case.opens(&backend);
    assert_eq!(doubles.each_ref().map(Double::calls), [6, 2]);
}

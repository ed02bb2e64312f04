//! The whole backend on a device: the emulated one, or, with the feature `cuda`, the first of this machine. It gives
//! what the portable backend gives, and what a device holds is enough for it.

use std::io::Write as _;
use std::sync::Arc;

use blindfold_bte::accelerator::{Accelerator, Offload, Operation, Twiddle};
use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, MemberKey, Opening, Parameters, Portable, Release, SessionKey,
    dealer,
};
use blindfold_gpu::plan::{LineTable, Plan};
use blindfold_gpu::several::Several;
use blindfold_gpu::{Cuda, Limits, devices};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Everything goes to the device.
const ALL: Limits = Limits {
    batch_min: 2,
    powers_min: 1,
    sum_min: 1,
    domain_max_bytes: u64::MAX,
    tile: 7,
    halves_from: 24,
    in_lanes_max: 0,
    digits_apart_max: 0,
};
/// The same with the kernels for small batches.
const SMALL: Limits = Limits { in_lanes_max: usize::MAX, digits_apart_max: usize::MAX, ..ALL };

/// The device, unless this build is for devices and the machine has none.
fn device(limits: Limits) -> Option<Cuda> {
    match devices() {
        Ok(all) => {
            let first = all.into_iter().next().expect("at least one");
            println!("on device {first}");
            Some(Cuda::new(first, limits).expect("a device that can be used"))
        }
        Err(why) => {
            if cfg!(feature = "cuda") {
                not_run(&why.to_string());
                return None;
            }
            panic!("the emulated device is always there: {why}")
        }
    }
}

/// A line in the file that `BLINDFOLD_NOT_RUN` names, if it names one: what a test that passes prints, nobody sees.
fn not_run(why: &str) {
    println!("NOT RUN: {why}");
    if let Some(path) = std::env::var_os("BLINDFOLD_NOT_RUN") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.expect("BLINDFOLD_NOT_RUN names a file"), "the kernels on a device: {why}")
            .expect("it can be written");
    }
}

fn offload(device: impl Accelerator + 'static) -> Offload {
    Offload::new(Arc::new(device), 2, |operation, error| panic!("{operation:?} failed: {error}"))
}

struct Case {
    parameters: Parameters,
    ads: Vec<[u8; 32]>,
    ciphertexts: Vec<Ciphertext>,
    keys: Vec<SessionKey>,
    release: Release,
}

impl Case {
    /// An honest batch, changed by `change` before its release.
    fn new(size: usize, seed: u64, change: impl FnOnce(&mut Vec<Ciphertext>, &mut [[u8; 32]])) -> Self {
        println!("{size} ciphertexts, seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (parameters, members) = dealer::deal(size as u32, 1, 1, &mut rng).expect("a valid shape");
        let ek = parameters.encryption_key();
        let (mut ads, mut ciphertexts, mut keys) = (vec![], vec![], vec![]);
        for number in 0..size {
            let mut ad = [number as u8; 32];
            rng.fill_bytes(&mut ad[1..]);
            let (ciphertext, _, key) = ek.encrypt(&ad, &ad, b"", &mut rng).expect("a short message");
            ads.push(ad);
            ciphertexts.push(ciphertext);
            keys.push(key);
        }
        change(&mut ciphertexts, &mut ads);
        let points = points(&ciphertexts);
        let share = |key: &MemberKey| (key.index(), key.release_share(&points).expect("within limits"));
        let release = parameters.combine(&members.iter().map(share).collect::<Vec<_>>()).expect("enough");
        Self { parameters, ads, ciphertexts, keys, release }
    }

    fn inputs(&self) -> Vec<(&[u8; 32], &Ciphertext)> {
        self.ads.iter().zip(&self.ciphertexts).collect()
    }

    /// Compares `backend` with the portable one, pipelined and fused. Returns the openings.
    fn agree(&self, backend: &dyn Backend) -> Vec<Opening> {
        let (parameters, points) = (&self.parameters, points(&self.ciphertexts));
        let portable = Portable::new(2);
        let own = portable.predecrypt(parameters, &points).expect("within limits");
        let want = portable.finalize(parameters, &own, &self.release, &self.inputs()).expect("valid");
        let predecrypted = backend.predecrypt(parameters, &points).expect("within limits");
        let opened = backend.finalize(parameters, &predecrypted, &self.release, &self.inputs());
        assert_eq!(opened.as_ref(), Ok(&want), "pipelined");
        // Also where another backend goes on, and in every value.
        assert!(predecrypted.cross_terms() == own.cross_terms(), "cross-terms");
        let there = portable.finalize(parameters, &predecrypted, &self.release, &self.inputs());
        assert_eq!(there.as_ref(), Ok(&want), "finalized elsewhere");
        let at_once = backend.decrypt(parameters, &points, &self.release, &self.inputs());
        assert_eq!(at_once.as_ref(), Ok(&want), "fused");
        want
    }
}

fn points(ciphertexts: &[Ciphertext]) -> Vec<CiphertextPoint> {
    ciphertexts.iter().map(|ciphertext| ciphertext.header().expect("a point")).collect()
}

fn well_formed(opened: &[Opening]) -> usize {
    opened.iter().filter(|opening| opening.key().is_some()).count()
}

fn negated(ciphertext: &Ciphertext) -> Ciphertext {
    let mut negated = ciphertext.clone();
    negated.c[0] ^= 0x20;
    negated
}

#[test]
fn batches_of_1_3_and_64_are_those_of_the_portable_backend() {
    let Some(device) = device(ALL) else { return };
    let backend = offload(device.clone());
    for size in [1, 3, 64] {
        let case = Case::new(size, 900 + size as u64, |_, _| ());
        backend.prepare(&case.parameters, size).expect("within limits");
        assert_eq!(well_formed(&case.agree(&backend)), size);
    }
    let phases = device.phases();
    let names = |phases: &[blindfold_gpu::Phase]| phases.iter().map(|phase| phase.name).collect::<Vec<_>>();
    assert_eq!(names(&phases.release), ["upload", "blinding factors", "download"]);
    assert_eq!(
        names(&phases.batch),
        ["upload", "point transform", "pairings", "target transform", "hard parts", "download"]
    );
    assert!(phases.batch.iter().all(|phase| phase.ms >= 0.0));
}

#[test]
fn a_batch_of_100_with_malformed_ciphertexts() {
    let case = Case::new(100, 910, |ciphertexts, ads| {
        ciphertexts[0].d[3] ^= 4;
        ciphertexts[50].e[0] ^= 1;
        ads[99][0] ^= 1;
    });
    for limits in [ALL, SMALL] {
        let Some(device) = device(limits) else { return };
        let opened = case.agree(&offload(device));
        assert_eq!(well_formed(&opened), 97);
        assert!([0, 50, 99].iter().all(|i| opened[*i] == Opening::Malformed));
    }
}

#[test]
fn equal_and_opposite_points_do_not_disturb_the_others() {
    for limits in [ALL, SMALL] {
        let Some(device) = device(limits) else { return };
        equal_and_opposite_points(&offload(device));
    }
}

fn equal_and_opposite_points(backend: &dyn Backend) {
    let case = Case::new(8, 920, |ciphertexts, ads| {
        ciphertexts[4] = ciphertexts[0].clone();
        ads[4] = ads[0];
        ciphertexts[5] = negated(&ciphertexts[1]);
        ciphertexts[6] = negated(&ciphertexts[2]);
    });
    assert_eq!(well_formed(&case.agree(backend)), 6);
    let all_equal = Case::new(12, 921, |ciphertexts, ads| {
        let one = ciphertexts[7].clone();
        ciphertexts.fill(one);
        ads.fill(ads[7]);
    });
    assert_eq!(well_formed(&all_equal.agree(backend)), 12);
    let alternating = Case::new(7, 922, |ciphertexts, _| {
        let first = ciphertexts[0].clone();
        for (i, ciphertext) in ciphertexts.iter_mut().enumerate() {
            *ciphertext = if i % 2 == 0 { first.clone() } else { negated(&first) };
        }
    });
    assert_eq!(well_formed(&alternating.agree(backend)), 1);
}

#[test]
fn a_wrong_release_opens_nothing() {
    let Some(device) = device(ALL) else { return };
    let backend = offload(device);
    let mut case = Case::new(5, 930, |_, _| ());
    let mut identity = [0; 48];
    identity[0] = 0xc0;
    for wrong in [identity, case.ciphertexts[2].c] {
        case.release = Release::from_bytes(&wrong).expect("a point");
        assert_eq!(well_formed(&case.agree(&backend)), 0);
    }
}

#[test]
fn hints_and_proofs_are_checked_on_the_device() {
    let Some(device) = device(ALL) else { return };
    let (backend, portable) = (offload(device), Portable::new(2));
    let mut case = Case::new(20, 940, |_, _| ());
    case.keys[3] = SessionKey::from_bytes([9; 16]);
    case.ciphertexts[5].d[0] ^= 1;
    let ek = case.parameters.encryption_key();
    let items: Vec<_> =
        case.ads.iter().zip(&case.ciphertexts).zip(&case.keys).map(|((ad, c), key)| (ad, c, key)).collect();
    let opened = backend.open_hints(&ek, &items);
    assert_eq!(opened, portable.open_hints(&ek, &items));
    assert_eq!(opened.iter().filter(|message| message.is_err()).count(), 2);

    let mut rng = ChaCha20Rng::seed_from_u64(941);
    let mut proved: Vec<_> = (0..20u8)
        .map(|number| {
            let (ciphertext, proof, _) = ek.encrypt(&[number; 32], b"m", b"", &mut rng).expect("short");
            ([number; 32], ciphertext, proof)
        })
        .collect();
    for wrong in [None, Some(4), Some(19)] {
        if let Some(wrong) = wrong {
            proved[wrong].2.s[31] ^= 1;
        }
        let items: Vec<_> = proved.iter().map(|(ad, ciphertext, proof)| (ad, ciphertext, proof)).collect();
        let verified = backend.verify_proofs(&mut rng, &items);
        assert_eq!(verified, portable.verify_proofs(&mut rng, &items));
    }
}

#[test]
fn lines_that_do_not_fit_are_computed_in_tiles() {
    // 48 fixed points and 24 of releases, seven at a time: the last tiles are shorter.
    let case = Case::new(24, 950, |_, _| ());
    let shape = blindfold_bte::accelerator::Shape { log_size: 4, cosets: 3 };
    let mut limits = ALL;
    let roomy = Plan::new(shape, 24, u64::MAX, limits.tile).expect("fits");
    let mut seen = vec![(roomy.fixed, roomy.release)];
    while let Ok(plan) = Plan::new(shape, 24, limits.domain_max_bytes, limits.tile) {
        if !seen.contains(&(plan.fixed, plan.release)) {
            seen.push((plan.fixed, plan.release));
            let Some(device) = device(limits) else { return };
            assert_eq!(well_formed(&case.agree(&offload(device))), 24);
        }
        limits.domain_max_bytes = plan.bytes() - 1;
    }
    use LineTable::{Kept, Tiles};
    assert_eq!(seen, [(Kept, Kept), (Tiles(7), Kept), (Tiles(7), Tiles(7))]);
}

#[test]
fn several_devices_share_the_batches() {
    let (Some(one), Some(two)) = (device(ALL), device(ALL)) else { return };
    let devices: Vec<Box<dyn Accelerator>> = vec![Box::new(one.clone()), Box::new(two.clone())];
    let several = Several::new("cuda", devices, |number, error| panic!("device {number}: {error}"));
    let backend = offload(several);
    let case = Case::new(3, 960, |_, _| ());
    assert_eq!(well_formed(&case.agree(&backend)), 3);
    assert_eq!(backend.name(), "cuda");
}

#[test]
fn small_work_stays_on_the_processor() {
    let Some(device) = device(Limits::default()) else { return };
    assert!(!device.takes(Operation::Batch, 2) && device.takes(Operation::Batch, 65536));
    assert!(!device.takes(Operation::Sum, 2) && !device.takes(Operation::Powers, 2));
    assert!(Twiddle::of(&[3, 0, 0, 0]).is_some());
}

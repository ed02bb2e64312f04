//! Sums on an ICICLE device against arkworks, and checks of proofs against the portable backend. On ICICLE's backend for
//! processors, or on the device that `BLINDFOLD_ICICLE_DEVICE` names.

use std::path::PathBuf;
use std::sync::Arc;

use ark_bls12_381::{Fr, G1Affine, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, PrimeField};
use blindfold_bte::accelerator::{Accelerator, DeviceError, G1Limbs, Offload, Operation, ScalarLimbs};
use blindfold_bte::{Backend, Portable, ProofItem, dealer};
use blindfold_icicle::{Icicle, IcicleError, Settings};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn settings() -> Settings {
    let device = std::env::var("BLINDFOLD_ICICLE_DEVICE").unwrap_or_else(|_| "CPU".to_owned());
    Settings { device, sum_min: 1, ..Settings::default() }
}

fn device() -> Icicle {
    Icicle::new(&settings()).expect("the device works")
}

fn seeded(seed: u64) -> ChaCha20Rng {
    println!("seed {seed}");
    ChaCha20Rng::seed_from_u64(seed)
}

fn scalar(rng: &mut ChaCha20Rng) -> Fr {
    let mut bytes = [0; 64];
    rng.fill_bytes(&mut bytes);
    Fr::from_le_bytes_mod_order(&bytes)
}

fn weight(rng: &mut ChaCha20Rng) -> Fr {
    Fr::from(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
}

fn points(rng: &mut ChaCha20Rng, count: usize) -> Vec<G1Projective> {
    (0..count).map(|_| G1Projective::generator() * scalar(rng)).collect()
}

fn point_limbs(point: &G1Affine) -> G1Limbs {
    point.xy().map_or([[0; 6]; 2], |(x, y)| [x.0.0, y.0.0])
}

fn scalar_limbs(k: &Fr) -> ScalarLimbs {
    k.into_bigint().0
}

fn check(device: &Icicle, points: &[G1Projective], k: &[Fr]) {
    let want = points.iter().zip(k).map(|(point, k)| *point * k).sum::<G1Projective>().into_affine();
    let limbs: Vec<G1Limbs> = points.iter().map(|point| point_limbs(&point.into_affine())).collect();
    let scalars: Vec<ScalarLimbs> = k.iter().map(scalar_limbs).collect();
    let got = device.sum(&limbs, &scalars).expect("the device works");
    assert_eq!(got, point_limbs(&want), "{} points", points.len());
}

#[test]
fn sums_of_scalars_and_weights_are_those_of_arkworks() {
    let device = device();
    for count in [1, 2, 3, 5, 16, 64, 255, 1000, 4097] {
        let mut rng = seeded(1000 + count as u64);
        let all = points(&mut rng, count);
        let scalars: Vec<Fr> = (0..count).map(|_| scalar(&mut rng)).collect();
        check(&device, &all, &scalars);
        let weights: Vec<Fr> = (0..count).map(|_| weight(&mut rng)).collect();
        check(&device, &all, &weights);
    }
}

#[test]
fn extreme_scalars() {
    let device = device();
    let point = points(&mut seeded(2000), 1)[0];
    let top = Fr::from(u128::MAX);
    let half = -Fr::from(1) / Fr::from(2);
    for k in [1.into(), 2.into(), -Fr::from(1), half, half + Fr::from(1), top, top + Fr::from(1)] {
        check(&device, &[point], &[k]);
        for count in [3, 64, 300] {
            check(&device, &vec![point; count], &vec![k; count]);
        }
    }
}

#[test]
fn identities_zeros_equal_and_opposite_points() {
    let device = device();
    let mut rng = seeded(3000);
    let point = points(&mut rng, 1)[0];
    let k = scalar(&mut rng);
    assert_eq!(device.sum(&[], &[]), Ok([[0; 6]; 2]));
    for count in [1, 3, 64] {
        check(&device, &vec![G1Projective::ZERO; count], &vec![k; count]);
        check(&device, &vec![point; count], &vec![Fr::ZERO; count]);
        check(&device, &vec![point; count], &vec![k; count]);
        for k in [k, Fr::from(1), weight(&mut rng)] {
            let signs: Vec<_> = (0..count).map(|i| if i % 2 == 0 { point } else { -point }).collect();
            check(&device, &signs, &vec![k; count]);
        }
        // One after the other vanishes in a bucket.
        let opposite: Vec<Fr> = (0..count).map(|i| if i % 2 == 0 { k } else { -k }).collect();
        check(&device, &vec![point; count], &opposite);
    }
    let mut mixed = points(&mut rng, 40);
    mixed[0] = G1Projective::ZERO;
    mixed[39] = G1Projective::ZERO;
    mixed[7] = -mixed[8];
    let mut scalars: Vec<Fr> = (0..40).map(|_| scalar(&mut rng)).collect();
    (scalars[3], scalars[8]) = (Fr::ZERO, scalars[7]);
    check(&device, &mixed, &scalars);
    check(&device, &[G1Projective::generator(); 2], &[Fr::from(5), -Fr::from(4)]);
}

/// Any point of the curve in place of one's own must show: so must coordinates that are swapped or not converted.
#[test]
fn another_point_gives_another_sum() {
    let device = device();
    let mut rng = seeded(4000);
    let all: Vec<G1Limbs> = points(&mut rng, 9).iter().map(|p| point_limbs(&p.into_affine())).collect();
    let k: Vec<ScalarLimbs> = (0..9).map(|_| scalar_limbs(&scalar(&mut rng))).collect();
    let sum = device.sum(&all, &k).expect("the device works");
    let mut other = all.clone();
    other[4] = all[5];
    assert_ne!(device.sum(&other, &k).expect("the device works"), sum);
}

#[test]
fn checks_of_proofs_are_those_of_the_portable_backend() {
    let failed = |operation: Operation, fault: &DeviceError| panic!("{operation:?} failed: {fault}");
    let backend = Offload::new(Arc::new(device()), 2, failed);
    assert_eq!(backend.name(), "icicle");
    let portable = Portable::new(2);
    let mut rng = seeded(5000);
    let (parameters, _) = dealer::deal(2, 1, 1, &mut rng).expect("a valid shape");
    let key = parameters.encryption_key();
    let mut proved: Vec<_> = (0..1000u32)
        .map(|number| {
            let mut ad = [0; 32];
            ad[..4].copy_from_slice(&number.to_le_bytes());
            let (ciphertext, proof, _) = key.encrypt(&ad, b"m", b"", &mut rng).expect("short");
            (ad, ciphertext, proof)
        })
        .collect();
    // Equal headers and commitments.
    proved[11] = proved[10].clone();
    for size in [1, 3, 64, 1000] {
        for wrong in [None, Some(0), Some(size - 1)] {
            if let Some(wrong) = wrong {
                proved[wrong].2.s[31] ^= 1;
            }
            let items: Vec<ProofItem<'_>> =
                proved[..size].iter().map(|(ad, c, proof)| (ad, c, proof)).collect();
            let verified = backend.verify_proofs(&mut rng, &items);
            assert_eq!(verified, portable.verify_proofs(&mut rng, &items), "{size} proofs, {wrong:?} wrong");
            assert_eq!(verified.iter().filter(|proof| proof.is_err()).count(), usize::from(wrong.is_some()));
            if let Some(wrong) = wrong {
                proved[wrong].2.s[31] ^= 1;
            }
        }
    }
}

#[test]
fn sums_from_several_threads_do_not_mix() {
    let device = device();
    std::thread::scope(|scope| {
        for seed in 6000..6004 {
            let device = &device;
            scope.spawn(move || {
                let mut rng = seeded(seed);
                let all = points(&mut rng, 50);
                let scalars: Vec<Fr> = (0..50).map(|_| scalar(&mut rng)).collect();
                check(device, &all, &scalars);
            });
        }
    });
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_what_to_do() {
    let with = |device: &str| Settings { device: device.to_owned(), ..settings() };
    let missing = Icicle::new(&with("NOSUCH")).unwrap_err();
    let IcicleError::Missing { name, registered } = &missing else { panic!("{missing}") };
    assert!(name == "NOSUCH" && registered.contains("CPU"));
    assert!(missing.to_string().contains("ICICLE_BACKEND_INSTALL_DIR"), "{missing}");
    for name in ["", "CU\0DA", "A name", &"X".repeat(64)] {
        assert!(matches!(Icicle::new(&with(name)), Err(IcicleError::Name(_))), "{name:?}");
    }
    let nowhere = Settings { backends: Some(PathBuf::from("/nonexistent/backends")), ..with("NOSUCH") };
    assert!(matches!(Icicle::new(&nowhere), Err(IcicleError::Folder(_))));
    // The backend for processors has one device.
    let second = Icicle::new(&Settings { index: 1, ..with("CPU") }).unwrap_err();
    assert!(matches!(second, IcicleError::Device { index: 1, .. }), "{second}");
}

#[test]
fn only_sums_are_offered() {
    let few = Icicle::new(&Settings { sum_min: 4096, ..settings() }).expect("the device works");
    assert!(!few.takes(Operation::Sum, 4095) && few.takes(Operation::Sum, 4096));
    assert!(!few.takes(Operation::Sum, (1 << 26) + 1));
    let all = device();
    assert!(!all.takes(Operation::Sum, 0) && all.takes(Operation::Sum, 1));
    for operation in [Operation::Load, Operation::Batch, Operation::Finalize, Operation::Powers] {
        assert!(!all.takes(operation, 65536), "{operation:?}");
    }
    assert_eq!(all.load_base(&[[0; 6]; 12]).err(), Some(DeviceError::NotOffered(Operation::Powers)));
}

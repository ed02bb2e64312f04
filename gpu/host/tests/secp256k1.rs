//! Recovery of public keys on secp256k1 against k256, its fields against arkworks.

mod common;
mod curve;

use ark_ff::{BigInteger, Field, Fp256, MontBackend, MontConfig, PrimeField};
use common::random_field;
use curve::rng;
use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};

#[derive(MontConfig)]
#[modulus = "115792089237316195423570985008687907853269984665640564039457584007908834671663"]
#[generator = "3"]
struct CoordinateConfig;
type Coordinate = Fp256<MontBackend<CoordinateConfig, 4>>;

#[derive(MontConfig)]
#[modulus = "115792089237316195423570985008687907852837564279074904382605163141518161494337"]
#[generator = "7"]
struct ScalarConfig;
type Scalar = Fp256<MontBackend<ScalarConfig, 4>>;

/// The x-coordinate of the generator.
const GENERATOR_X: [u8; 32] = [
    0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b, 0x07, 0x02,
    0x9b, 0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17, 0x98,
];

unsafe extern "C" {
    fn blindfold_test_secp256k1_field(a: *const u8, b: *const u8, scalars: bool, out: *mut [u8; 32]);
    fn blindfold_test_secp256k1_recover(
        signatures: *const [u8; 65],
        digests: *const [u8; 32],
        keys: *mut [u8; 64],
        valid: *mut u32,
        count: u32,
    );
}

fn bytes<F: PrimeField>(a: F) -> [u8; 32] {
    a.into_bigint().to_bytes_be().try_into().expect("256 bits")
}

fn check_field<F: PrimeField>(scalars: bool) {
    let mut rng = rng();
    let two = F::from(2u64);
    let mut all =
        vec![F::ZERO, F::ONE, -F::ONE, -two, two.pow([255]), two.pow([128]) - F::ONE, -two.pow([224])];
    all.extend((0..8).map(|_| random_field::<F>(&mut rng)));
    for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
        let mut out = [[0; 32]; 4];
        // SAFETY: 32 bytes each, four results.
        unsafe {
            blindfold_test_secp256k1_field(bytes(a).as_ptr(), bytes(b).as_ptr(), scalars, out.as_mut_ptr())
        };
        let inverse = a.inverse().unwrap_or(F::ZERO);
        assert_eq!(out, [a + b, a - b, a * b, inverse].map(bytes), "{a} and {b}, scalars {scalars}");
    }
}

#[test]
fn field_operations() {
    check_field::<Coordinate>(false);
    check_field::<Scalar>(true);
}

/// What crates/protocol accepts, by k256: x‖y of the key.
fn expected(signature: &[u8; 65], digest: &[u8; 32]) -> Option<[u8; 64]> {
    let id = match signature[64] {
        27 => RecoveryId::new(false, false),
        28 => RecoveryId::new(true, false),
        _ => return None,
    };
    let parsed = Signature::from_slice(&signature[..64]).ok()?;
    if parsed.normalize_s() != parsed {
        return None;
    }
    let key = VerifyingKey::recover_from_prehash(digest, &parsed, id).ok()?;
    key.to_sec1_point(false).as_bytes()[1..].try_into().ok()
}

fn check(signatures: &[[u8; 65]], digests: &[[u8; 32]]) -> Vec<u32> {
    let count = signatures.len();
    let (mut keys, mut valid) = (vec![[0; 64]; count], vec![7; count]);
    // SAFETY: `count` elements each.
    unsafe {
        let (keys, valid) = (keys.as_mut_ptr(), valid.as_mut_ptr());
        blindfold_test_secp256k1_recover(signatures.as_ptr(), digests.as_ptr(), keys, valid, count as u32);
    }
    for i in 0..count {
        let want = expected(&signatures[i], &digests[i]);
        assert_eq!(
            (valid[i], keys[i]),
            (u32::from(want.is_some()), want.unwrap_or([0; 64])),
            "{i} of {count}"
        );
    }
    valid
}

/// r‖s‖v.
fn join(r: [u8; 32], s: [u8; 32], v: u8) -> [u8; 65] {
    let mut signature = [v; 65];
    signature[..32].copy_from_slice(&r);
    signature[32..64].copy_from_slice(&s);
    signature
}

#[test]
fn signatures_and_what_is_none() {
    let mut rng = rng();
    for count in [1, 3, 64, 100] {
        let digests: Vec<[u8; 32]> = (0..count)
            .map(|i| match i {
                3 => [0; 32],
                4 => [0xff; 32],
                _ => bytes(random_field::<Scalar>(&mut rng)),
            })
            .collect();
        let mut signatures = Vec::new();
        for (i, digest) in digests.iter().enumerate() {
            let key = SigningKey::from_slice(&bytes(random_field::<Scalar>(&mut rng))).expect("a key");
            let (signature, id) = key.sign_prehash_recoverable(digest);
            let low = signature.normalize_s();
            let v = 27 + u8::from(id.is_y_odd() ^ (low != signature));
            let mut bytes: [u8; 65] = [v; 65];
            bytes[..64].copy_from_slice(&low.to_bytes());
            match i % 8 {
                5 => bytes[64] = 27 + 28 - v, // another key, or none
                6 => bytes[..32].copy_from_slice(&digests[0]),
                7 => bytes[64] = v - 27,
                _ => {}
            }
            signatures.push(bytes);
        }
        let valid = check(&signatures, &digests);
        assert!(valid.iter().step_by(8).all(|valid| *valid == 1));
    }
}

#[test]
fn edges_of_r_and_s() {
    let one = bytes(Scalar::ONE);
    let order: [u8; 32] = Scalar::MODULUS.to_bytes_be().try_into().expect("256 bits");
    let half = Scalar::from(2u64).inverse().expect("not 0"); // (n + 1)/2: the smallest s that is high
    let largest = bytes(half - Scalar::ONE);
    let (r, five) = (GENERATOR_X, bytes(Scalar::from(5u64)));
    let mut cases = Vec::new();
    for v in [27, 28, 26, 29, 0, 1] {
        for s in [[0; 32], one, five, largest, bytes(half), bytes(-Scalar::ONE), order, [0xff; 32]] {
            for r in [[0; 32], one, r, five, order, bytes(-Scalar::ONE), [0xff; 32]] {
                // The digest 5 with s = 5 and the generator as nonce gives the identity, which is no key.
                cases.push((join(r, s, v), five));
                cases.push((join(r, s, v), order));
            }
        }
    }
    let (signatures, digests): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let valid = check(&signatures, &digests);
    assert!(valid.contains(&1));
    assert_eq!(check(&[join(r, five, 27)], &[five]), [0]);
    assert_eq!(check(&[join(r, five, 28)], &[five]), [1]);
}

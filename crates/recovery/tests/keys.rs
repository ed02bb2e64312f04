//! Keys in lanes against libsecp256k1, signature by signature.

use blindfold_recovery::{OutOfRange, Signed, in_lanes, key, keys};
use k256::{
    FieldBytes, ProjectivePoint, Scalar,
    ecdsa::SigningKey,
    elliptic_curve::{
        Group,
        ff::{Field, PrimeField},
        sec1::ToSec1Point,
    },
};
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

fn bytes<const N: usize>(rng: &mut ChaCha20Rng) -> [u8; N] {
    let mut out = [0; N];
    rng.fill_bytes(&mut out);
    out
}

/// By keys, as wallets sign.
fn honest(rng: &mut ChaCha20Rng) -> Signed {
    let key = SigningKey::from_slice(&bytes::<32>(rng)).expect("almost every string is a key");
    let digest = bytes(rng);
    let (signature, id) = key.sign_prehash_recoverable(&digest);
    Signed { digest, rs: signature.to_bytes().into(), odd: id.is_y_odd() }
}

/// Says so where the processor lacks the instructions; fails there if `BLINDFOLD_EXPECT_IFMA` is 1.
fn supported() -> bool {
    let supported = in_lanes(&[]).is_some();
    if !supported {
        let expected = std::env::var("BLINDFOLD_EXPECT_IFMA").is_ok_and(|value| value == "1");
        assert!(!expected, "this processor has no AVX-512 IFMA, and BLINDFOLD_EXPECT_IFMA=1 says it has");
        println!("NOT RUN: this processor has no AVX-512 IFMA");
    }
    supported
}

fn same(signed: &[Signed]) -> usize {
    let expected: Vec<_> = signed.iter().map(key).collect();
    assert_eq!(keys(signed), expected);
    let Some(found) = in_lanes(signed) else { return 0 };
    for ((signed, expected), found) in signed.iter().zip(&expected).zip(&found) {
        if let Some(found) = found {
            assert_eq!(Ok(Some(*found)), *expected, "{signed:?}");
        }
    }
    found.iter().flatten().count()
}

#[test]
fn the_lanes_find_the_key_of_every_signature_that_a_wallet_makes() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let signed: Vec<_> = (0..1_003).map(|_| honest(&mut rng)).collect();
    let decided = same(&signed);
    if supported() {
        assert_eq!(decided, signed.len());
    }
    for length in 0..20 {
        same(&signed[..length]);
    }
}

#[test]
fn strings_that_nobody_signed_have_the_same_key_or_none() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut signed = Vec::new();
    for _ in 0..500 {
        let (digest, rs) = (bytes(&mut rng), bytes(&mut rng));
        signed.extend([false, true].map(|odd| Signed { digest, rs, odd }));
    }
    let decided = same(&signed);
    // Half of all x are of no point.
    assert!(!supported() || (300..700).contains(&decided), "{decided}");
}

#[test]
fn one_bad_signature_harms_no_neighbour() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let zero = Signed { digest: [1; 32], rs: [0; 64], odd: false };
    let high = Signed { digest: [1; 32], rs: [0xff; 64], odd: true };
    for place in 0..8 {
        let mut signed: Vec<_> = (0..8).map(|_| honest(&mut rng)).collect();
        signed[place] = if place % 2 == 0 { zero } else { high };
        let decided = same(&signed);
        assert!(!supported() || decided == 7);
        assert_eq!(keys(&signed)[place], Err(OutOfRange));
    }
}

fn scalar_bytes(scalar: &Scalar) -> [u8; 32] {
    scalar.to_bytes().into()
}

/// A signature with nonce k·G as R whose key is a·G + b·R: digits of both multipliers are chosen.
fn chosen(nonce: &Scalar, of_generator: &Scalar, of_r: &Scalar) -> Option<Signed> {
    let point = (ProjectivePoint::GENERATOR * nonce).to_affine().to_sec1_point(false);
    let (x, y) = (point.x()?, point.y()?);
    let r = Scalar::from_repr(FieldBytes::from(<[u8; 32]>::try_from(&x[..]).ok()?)).into_option()?;
    let (s, z) = (r * of_r, -(r * of_generator));
    let mut rs = [0; 64];
    rs[..32].copy_from_slice(&scalar_bytes(&r));
    rs[32..].copy_from_slice(&scalar_bytes(&s));
    Some(Signed { digest: scalar_bytes(&z), rs, odd: y[31] & 1 == 1 })
}

#[test]
fn multipliers_of_every_shape_give_the_same_key() {
    let two = Scalar::from(2u64);
    let half = two.invert().into_option().expect("two is invertible");
    let mut edges = vec![Scalar::ZERO, half, half - Scalar::ONE, -Scalar::ONE];
    for bits in (0..256).step_by(3) {
        let power = two.pow_vartime([bits]);
        edges.extend([power, -power, power - Scalar::ONE, power + Scalar::from(8u64)]);
    }
    let mut signed = Vec::new();
    for (i, edge) in edges.iter().enumerate() {
        let other = edges[(i * 7 + 3) % edges.len()];
        signed.extend(chosen(&Scalar::from(i as u64 + 2), edge, &other));
        // R is ±G, and with it what is kept of the generator.
        signed.extend(chosen(&Scalar::ONE, edge, &other));
        signed.extend(chosen(&-Scalar::ONE, &other, edge));
    }
    same(&signed);
}

/// The point from which the lanes start is so many times the generator.
const START: u64 = 0x6269_6e64_666f_6c64;

#[test]
fn sums_that_meet_their_own_points_are_decided_by_the_library() {
    let start = Scalar::from(START);
    let mut signed = Vec::new();
    for factor in -9i64..=9 {
        let magnitude = Scalar::from(factor.unsigned_abs());
        let factor = if factor < 0 { -magnitude } else { magnitude };
        if factor == Scalar::ZERO {
            continue;
        }
        // R such that its multiples are the fixed point's, at the first addition and after doublings.
        for doublings in [0u64, 4, 8, 64, 128] {
            let fixed = start * Scalar::from(2u64).pow_vartime([doublings]);
            let nonce = fixed * factor.invert().into_option().expect("not zero");
            for digit in 1u64..=9 {
                let top = Scalar::from(digit) * Scalar::from(2u64).pow_vartime([128 - doublings]);
                signed.extend(chosen(&nonce, &Scalar::ZERO, &top));
                signed.extend(chosen(&nonce, &fixed, &-top));
            }
        }
    }
    // The key is the point at infinity: a·G + b·(k·G) with a = −b·k.
    for k in 1u64..20 {
        let (nonce, of_r) = (Scalar::from(k), Scalar::from(k * 1_000_003));
        let infinity = chosen(&nonce, &-(of_r * nonce), &of_r).expect("a scalar");
        assert_eq!(key(&infinity), Ok(None));
        signed.push(infinity);
    }
    let decided = same(&signed);
    assert!(!supported() || decided < signed.len(), "some of these meet");
    assert!(bool::from(!ProjectivePoint::GENERATOR.is_identity()));
}

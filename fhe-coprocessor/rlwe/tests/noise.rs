//! The noise bound is reached, and the limit of additions holds with the worst noise and the worst message there are.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use blindfold_rlwe::rlwe::{
    Ciphertext, EncryptionWitness, OpenError, Parameters, ParametersLiteral, PublicPolynomial, SecretKey,
    SumError,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn signs(rng: &mut ChaCha20Rng, count: usize) -> Vec<i8> {
    (0..count).map(|_| if rng.next_u32() & 1 == 0 { 1 } else { -1 }).collect()
}

/// What a factor must be for coefficient 0 of the product with `other` (all ±1) to be N·bound: X^N = −1.
fn aligned(other: &[i8], bound: i8) -> Vec<i8> {
    let n = other.len();
    (0..n).map(|k| if k == 0 { bound * other[0] } else { -bound * other[n - k] }).collect()
}

/// A key and a ciphertext whose noise in coefficient 0 is `sign` times the bound, with the message all `limb`.
fn extreme(parameters: &Arc<Parameters>, sign: i8, limb: i64) -> (SecretKey, Ciphertext) {
    let literal = parameters.literal();
    let (n, bound) = (literal.degree, literal.error_bound as i8);
    let public = PublicPolynomial::insecure(parameters, &[1; 32]);
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let (s, u) = (signs(&mut rng, n), signs(&mut rng, n));
    let (e, e1) = (aligned(&u, bound * sign), aligned(&s, bound * sign));
    let secret = SecretKey::from_coefficients(&public, s, e).unwrap();
    let message = vec![limb; literal.used];
    let e0 = vec![vec![bound * sign; literal.used]];
    let witness = EncryptionWitness::from_parts(parameters, &message, u, e1, e0).unwrap();
    let ciphertext = witness.encrypt(&public, &[&secret.public_key()]).unwrap();
    (secret, ciphertext.for_recipient(0).unwrap())
}

#[test]
fn the_limit_of_worst_case_additions_decrypts_right() {
    let parameters = Parameters::balance().unwrap();
    let limit = parameters.literal().max_additions;
    assert_eq!(limit, 4096);
    for (sign, limb) in [(1, 255), (-1, -255), (1, -255), (-1, 255)] {
        let (secret, one) = extreme(&parameters, sign, limb);
        // The bound of one encryption is reached: 16·(2·2048 + 1).
        let opening = secret.open(&one).unwrap();
        assert_eq!(opening.noise()[0], i64::from(sign) * 65_552);
        assert_eq!(opening.noise()[0].unsigned_abs(), parameters.fresh_noise() as u64);

        let (mut sum, mut difference) = (Ciphertext::zero(&parameters), Ciphertext::zero(&parameters));
        for _ in 0..limit {
            sum.add(&one).unwrap();
            difference.sub(&one).unwrap();
        }
        for (total, times) in [(&sum, 4096), (&difference, -4096)] {
            let opening = secret.open(total).unwrap();
            assert_eq!(opening.message(), vec![times * limb; 8]);
            // The bound of the sum is reached too, and is below Δ/2.
            assert_eq!(opening.noise()[0], times * i64::from(sign) * 65_552);
            assert!(2 * opening.noise()[0].unsigned_abs() < parameters.delta() as u64);
        }
        // One more is refused, and changes nothing.
        let before = sum.clone();
        let error = SumError::Limit { terms: 4097, limit };
        assert_eq!(sum.add(&one), Err(error));
        assert_eq!(sum.sub(&one), Err(error));
        assert_eq!(sum.add_public(&[0; 8]), Err(error));
        assert_eq!(sum.sub_public(&[0; 8]), Err(error));
        assert_eq!(sum, before);
    }
}

#[test]
fn twice_the_limit_would_not_decrypt() {
    let balance = Parameters::balance().unwrap();
    // 8190 terms of 65,552 stay below Δ/2 and 8191 do not: the set refuses a limit that could fail.
    let literal = |max_additions| ParametersLiteral { max_additions, ..balance.literal().clone() };
    let parameters = Parameters::new(literal(8190)).unwrap();
    assert!(Parameters::new(literal(8191)).is_err());
    // And it does fail: two sums of 4096 terms, put together past the counter.
    let (secret, one) = extreme(&parameters, 1, 255);
    let mut sum = Ciphertext::zero(&parameters);
    for _ in 0..8190 {
        sum.add(&one).unwrap();
    }
    assert_eq!(secret.open(&sum).unwrap().message(), [8190 * 255; 8]);
    let mut encoded = sum.encode();
    let counter = encoded.len() - 2;
    encoded[counter..].copy_from_slice(&8189_u16.to_le_bytes());
    let mut forged = Ciphertext::decode(&parameters, &encoded).unwrap();
    assert_eq!(secret.open(&forged).unwrap_err(), OpenError::Beyond);
    forged.add(&one).unwrap();
    // Coefficient 0 has crossed to the next message, where its noise has the other sign.
    assert_eq!(secret.open(&forged).unwrap_err(), OpenError::Beyond);
}

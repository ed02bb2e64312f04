//! Balances from keys to sums, and every error on the way.
#![allow(clippy::unwrap_used)]

use blindfold_rlwe::ring::integer_product;
use blindfold_rlwe::rlwe::{
    Ciphertext, EncryptError, EncryptionWitness, HedgedRng, KeyError, MAX_RECIPIENTS, MultiCiphertext,
    OpenError, Parameters, ParametersError, ParametersLiteral, PublicPolynomial, SecretKey, SumError,
};
use blindfold_rlwe::schemes::balance::{self, BalanceError, LIMBS, limbs};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(7)
}

#[test]
fn one_ciphertext_opens_for_each_recipient_and_nobody_else() {
    let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &[9; 32]).unwrap();
    let keys: Vec<SecretKey> = (0..4).map(|i| SecretKey::derive(&public, &[i; 32])).collect();
    let publics: Vec<_> = keys.iter().map(SecretKey::public_key).collect();
    for amount in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let (ciphertext, witness) =
            balance::encrypt(&public, &[&publics[0], &publics[1], &publics[2]], amount, &mut rng()).unwrap();
        assert_eq!(ciphertext.recipients(), 3);
        for (i, key) in keys[..3].iter().enumerate() {
            let share = ciphertext.for_recipient(i).unwrap();
            assert_eq!(share.additions(), 1);
            assert_eq!(balance::decrypt(key, &share), Ok(amount));
            assert_eq!(balance::decrypt(&keys[3], &share), Err(BalanceError::Open(OpenError::Beyond)));
        }
        assert!(ciphertext.for_recipient(3).is_none());
        assert!(!format!("{witness:?} {:?}", keys[0]).contains('['), "secrets are redacted");
    }
}

#[test]
fn random_credits_and_debits_add_up() {
    let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &[9; 32]).unwrap();
    let key = SecretKey::derive(&public, &[1; 32]);
    let owner = key.public_key();
    let mut rng = rng();
    let mut sum = Ciphertext::zero(public.parameters());
    let mut expected = 0_i128;
    for step in 0..60 {
        let amount = rng.next_u64() >> 6;
        match step % 4 {
            3 => {
                sum.sub_public(&limbs(amount / 4)).unwrap();
                expected -= i128::from(amount / 4);
            }
            2 => {
                let (debit, _) = balance::encrypt(&public, &[&owner], amount / 4, &mut rng).unwrap();
                sum.sub(&debit.for_recipient(0).unwrap()).unwrap();
                expected -= i128::from(amount / 4);
            }
            1 => {
                sum.add_public(&limbs(amount)).unwrap();
                expected += i128::from(amount);
            }
            _ => {
                let (credit, _) = balance::encrypt(&public, &[&owner], amount, &mut rng).unwrap();
                sum.add(&credit.for_recipient(0).unwrap()).unwrap();
                expected += i128::from(amount);
            }
        }
    }
    assert_eq!(sum.additions(), 60);
    assert_eq!(i128::from(balance::decrypt(&key, &sum).unwrap()), expected);
    assert_eq!(Ciphertext::decode(public.parameters(), &sum.encode()).unwrap(), sum);
}

#[test]
fn a_negative_sum_and_one_beyond_the_supply_are_named() {
    let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &[9; 32]).unwrap();
    let key = SecretKey::derive(&public, &[1; 32]);
    let mut sum = Ciphertext::zero(public.parameters());
    sum.sub_public(&limbs(1)).unwrap();
    assert_eq!(balance::decrypt(&key, &sum), Err(BalanceError::Negative));
    for _ in 0..2 {
        sum.add_public(&limbs(u64::MAX)).unwrap();
    }
    assert_eq!(balance::decrypt(&key, &sum), Err(BalanceError::Overflow));
    assert_eq!(sum.add_public(&[256, 0, 0, 0, 0, 0, 0, 0]), Err(SumError::Message));
    assert_eq!(sum.add_public(&[0; 7]), Err(SumError::Message));
}

#[test]
fn keys_come_back_from_the_seed_and_differ_between_deployments() {
    let parameters = Parameters::balance().unwrap();
    let here = PublicPolynomial::new(&parameters, &[9; 32]).unwrap();
    let there = PublicPolynomial::new(&parameters, &[8; 32]).unwrap();
    let key = SecretKey::derive(&here, &[1; 32]);
    let again = SecretKey::derive(
        &PublicPolynomial::new(&Parameters::balance().unwrap(), &[9; 32]).unwrap(),
        &[1; 32],
    );
    assert_eq!((key.coefficients(), key.error()), (again.coefficients(), again.error()));
    assert_eq!(key.public_key(), again.public_key());
    assert_ne!(key.coefficients(), SecretKey::derive(&there, &[1; 32]).coefficients());
    assert_ne!(key.coefficients(), SecretKey::derive(&here, &[2; 32]).coefficients());
    assert_ne!(here.polynomial(), there.polynomial());
}

/// The identities over the integers that a proof of a transfer shows, from what encryption and opening return.
#[test]
fn witnesses_satisfy_the_identities_of_the_proofs() {
    let parameters = Parameters::toy().unwrap();
    let public = PublicPolynomial::insecure(&parameters, &[3; 32]);
    let key = SecretKey::derive(&public, &[4; 32]);
    let owner = key.public_key();
    let (ciphertext, witness) =
        balance::encrypt(&public, &[&owner], 0xfedc_ba98_7654_3210, &mut rng()).unwrap();
    let (n, q) = (parameters.degree(), i128::try_from(parameters.modulus()).unwrap());
    let delta = i128::try_from(parameters.delta()).unwrap();
    let negacyclic = |product: &[i128], j: usize| product[j] - product.get(n + j).copied().unwrap_or(0);

    let product = integer_product(public.polynomial().residues(), witness.u());
    for (j, (&c1, &e1)) in ciphertext.c1().residues().iter().zip(witness.e1()).enumerate() {
        let difference = negacyclic(&product, j) + i128::from(e1) - i128::from(c1);
        assert_eq!(difference % q, 0);
        assert!((difference / q).abs() <= n as i128);
    }
    let product = integer_product(owner.polynomial().residues(), witness.u());
    let e0 = witness.e0().next().unwrap().to_vec();
    for (j, &c0) in ciphertext.c0(0).unwrap().iter().enumerate() {
        let right = negacyclic(&product, j) + i128::from(e0[j]) + delta * i128::from(witness.message()[j]);
        assert_eq!((right - i128::from(c0)) % q, 0);
    }
    let share = ciphertext.for_recipient(0).unwrap();
    let opening = key.open(&share).unwrap();
    let product = integer_product(share.c1().residues(), key.coefficients());
    for j in 0..LIMBS {
        let left = i128::from(share.c0()[j]) + negacyclic(&product, j);
        let right = delta * i128::from(opening.message()[j]) + i128::from(opening.noise()[j]);
        assert_eq!((left - right) % q, 0);
        assert!(2 * i128::from(opening.noise()[j]).abs() < delta);
    }
}

#[test]
fn encodings_have_the_stated_lengths() {
    let parameters = Parameters::balance().unwrap();
    assert_eq!(MultiCiphertext::encoded_bytes(&parameters, 3), 13_986);
    assert_eq!(Ciphertext::encoded_bytes(&parameters), 13_880);
    assert_eq!(blindfold_rlwe::rlwe::PublicKey::encoded_bytes(&parameters), 13_824);
}

#[test]
fn parameters_enter_by_one_door() {
    let good = || Parameters::balance().unwrap().literal().clone();
    let error = |literal: ParametersLiteral| Parameters::new(literal).unwrap_err();
    for degree in [0, 1, 3, 1 << 16] {
        assert_eq!(error(ParametersLiteral { degree, ..good() }), ParametersError::Degree { degree });
    }
    let q = good().primes[0];
    for primes in [vec![], vec![q, q], vec![q; 9]] {
        assert_eq!(error(ParametersLiteral { primes, ..good() }), ParametersError::Primes);
    }
    let modulus = |primes| error(ParametersLiteral { primes, ..good() });
    assert!(matches!(modulus(vec![q - 1]), ParametersError::Modulus(_)));
    assert!(matches!(modulus(vec![(1 << 61) - 1]), ParametersError::Modulus(_)), "no root of order 4096");
    for plaintext_modulus in [0, 1, q] {
        assert!(matches!(
            error(ParametersLiteral { plaintext_modulus, ..good() }),
            ParametersError::PlaintextModulus { .. }
        ));
    }
    for used in [0, 2049] {
        assert_eq!(error(ParametersLiteral { used, ..good() }), ParametersError::Used { used });
    }
    for error_bound in [0, 128] {
        assert_eq!(
            error(ParametersLiteral { error_bound, ..good() }),
            ParametersError::ErrorBound { error_bound }
        );
    }
    for max_additions in [0, 8191] {
        assert!(matches!(
            error(ParametersLiteral { max_additions, ..good() }),
            ParametersError::NoiseBudget { fresh_noise: 65_552, .. }
        ));
    }
    assert!(matches!(
        error(ParametersLiteral { message_bound: Some(1 << 11), ..good() }),
        ParametersError::MessageBudget { .. }
    ));
    for weak in [
        ParametersLiteral { degree: 1024, ..good() },
        ParametersLiteral { error_bound: 5, ..good() },
        ParametersLiteral { primes: vec![4_611_686_018_326_724_609], ..good() },
    ] {
        assert!(matches!(error(weak), ParametersError::Security { .. }));
    }
}

#[test]
fn insecure_parameters_refuse_production() {
    let toy = Parameters::toy().unwrap();
    assert_eq!(PublicPolynomial::new(&toy, &[0; 32]).unwrap_err(), KeyError::Insecure { name: "toy" });
}

#[test]
fn mistakes_of_a_caller_are_named() {
    let (balance, toy) = (Parameters::balance().unwrap(), Parameters::toy().unwrap());
    let public = PublicPolynomial::new(&balance, &[9; 32]).unwrap();
    let other = PublicPolynomial::insecure(&toy, &[9; 32]);
    let key = SecretKey::derive(&public, &[1; 32]).public_key();
    let stranger = SecretKey::derive(&other, &[1; 32]).public_key();
    let sample =
        |recipients, message: &[i64]| EncryptionWitness::sample(&balance, recipients, message, &mut rng());
    for recipients in [0, MAX_RECIPIENTS + 1] {
        assert_eq!(sample(recipients, &[0; 8]).unwrap_err(), EncryptError::Recipients { recipients });
    }
    for message in [&[0; 7][..], &[0, 0, 0, 256, 0, 0, 0, 0], &[-256, 0, 0, 0, 0, 0, 0, 0]] {
        assert_eq!(sample(1, message).unwrap_err(), EncryptError::Message);
    }
    let witness = sample(1, &[1; 8]).unwrap();
    assert_eq!(witness.encrypt(&public, &[]).unwrap_err(), EncryptError::Recipients { recipients: 0 });
    assert_eq!(witness.encrypt(&public, &[&stranger]).unwrap_err(), EncryptError::Parameters);
    assert_eq!(witness.encrypt(&other, &[&key]).unwrap_err(), EncryptError::Parameters);
    for (u, e1, e0) in [(2, 0, 0), (0, 17, 0), (0, 0, -17), (0, -128, 0)] {
        let parts = EncryptionWitness::from_parts(
            &balance,
            &[0; 8],
            vec![u; 2048],
            vec![e1; 2048],
            vec![vec![e0; 8]],
        );
        assert_eq!(parts.unwrap_err(), EncryptError::Witness);
    }
    for (secret, error, count) in [(2, 0, 2048), (0, 17, 2048), (0, 0, 2047)] {
        let key = SecretKey::from_coefficients(&public, vec![secret; count], vec![error; count]);
        assert_eq!(key.unwrap_err(), KeyError::Coefficients);
    }
    let mut sum = Ciphertext::zero(&balance);
    assert_eq!(sum.add(&Ciphertext::zero(&toy)), Err(SumError::Parameters));
    let opened = SecretKey::derive(&other, &[1; 32]).open(&sum);
    assert_eq!(opened.unwrap_err(), OpenError::Parameters);
}

/// A generator that gives the same bytes again: what is encrypted under one witness twice differs by a public amount, and
/// whoever knows one message reads the other.
#[test]
fn a_generator_that_repeats_itself_shares_no_randomness_between_messages() {
    let public = PublicPolynomial::new(&Parameters::balance().unwrap(), &[9; 32]).unwrap();
    let key = SecretKey::derive(&public, &[1; 32]).public_key();
    let encrypted = |amount, rng: &mut HedgedRng| balance::encrypt(&public, &[&key], amount, rng).unwrap().0;
    let plain = |amount| balance::encrypt(&public, &[&key], amount, &mut rng()).unwrap().0;
    assert_ne!(plain(5).c1(), plain(6).c1(), "the message is hashed in");
    let hedged = |secret: &[u8], message: &[&[u8]]| HedgedRng::new(secret, message, &mut rng());
    let uses: [(&[u8], &[&[u8]]); 5] =
        [(b"s", &[b"ab"]), (b"t", &[b"ab"]), (b"s", &[b"ac"]), (b"s", &[b"a", b"b"]), (b"s", &[])];
    let of = |(secret, message): &(&[u8], &[&[u8]])| encrypted(5, &mut hedged(secret, message));
    for (place, one) in uses.iter().enumerate() {
        assert_eq!(of(one), of(one), "the same use");
        for other in &uses[..place] {
            assert_ne!(of(one).c1(), of(other).c1(), "{place}");
        }
    }
    let mut fresh = rng();
    let mut twice = || encrypted(5, &mut HedgedRng::new(b"s", &[b"ab"], &mut fresh));
    assert_ne!(twice().c1(), twice().c1(), "fresh bytes");
    assert!(!format!("{:?}", hedged(b"s", &[])).contains('['), "redacted");
}

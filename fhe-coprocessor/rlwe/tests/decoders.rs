//! Decoders take canonical bytes only, and panic on none.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use blindfold_rlwe::ring::DecodeError;
use blindfold_rlwe::rlwe::{Ciphertext, MultiCiphertext, Parameters, PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn samples(parameters: &Arc<Parameters>) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let public = PublicPolynomial::insecure(parameters, &[9; 32]);
    let key = SecretKey::derive(&public, &[1; 32]).public_key();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let (multi, _) = balance::encrypt(&public, &[&key, &key, &key], 77, &mut rng).unwrap();
    (key.encode(), multi.encode(), multi.for_recipient(1).unwrap().encode())
}

/// Decodes as each structure; whatever is taken must encode to the same bytes.
fn decode_all(parameters: &Arc<Parameters>, bytes: &[u8]) -> [Result<(), DecodeError>; 3] {
    let same = |encoded: Vec<u8>| assert_eq!(encoded, bytes, "one form only");
    [
        PublicKey::decode(parameters, bytes).map(|value| same(value.encode())),
        MultiCiphertext::decode(parameters, 3, bytes).map(|value| same(value.encode())),
        Ciphertext::decode(parameters, bytes).map(|value| same(value.encode())),
    ]
}

#[test]
fn what_was_encoded_decodes_as_itself_only() {
    for parameters in [Parameters::balance().unwrap(), Parameters::toy().unwrap()] {
        let (key, multi, one) = samples(&parameters);
        for (i, bytes) in [&key, &multi, &one].into_iter().enumerate() {
            for (j, result) in decode_all(&parameters, bytes).into_iter().enumerate() {
                if i == j {
                    assert_eq!(result, Ok(()));
                } else {
                    assert!(matches!(result, Err(DecodeError::Length { .. })));
                }
            }
        }
        let wrong = MultiCiphertext::decode(&parameters, 2, &multi);
        assert!(matches!(wrong, Err(DecodeError::Length { .. })));
        for recipients in [0, 17, usize::MAX] {
            assert!(matches!(
                MultiCiphertext::decode(&parameters, recipients, &multi),
                Err(DecodeError::Length { .. })
            ));
        }
    }
}

#[test]
fn a_coefficient_of_q_and_a_counter_past_the_limit_are_refused() {
    let parameters = Parameters::balance().unwrap();
    let (_, multi, one) = samples(&parameters);
    // The first coefficient becomes q = 2^54 − 2^24·k + 1, of 54 bits.
    let raise = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let q = (parameters.modulus() as u64).to_le_bytes();
        bytes[..6].copy_from_slice(&q[..6]);
        bytes[6] = (bytes[6] & 0xc0) | q[6];
        bytes
    };
    assert_eq!(Ciphertext::decode(&parameters, &raise(&one)), Err(DecodeError::Coefficient { index: 0 }));
    assert_eq!(
        MultiCiphertext::decode(&parameters, 3, &raise(&multi)),
        Err(DecodeError::Coefficient { index: 0 })
    );
    let mut late = one;
    let counter = late.len() - 2;
    late[counter..].copy_from_slice(&4097_u16.to_le_bytes());
    assert_eq!(
        Ciphertext::decode(&parameters, &late),
        Err(DecodeError::Counter { count: 4097, limit: 4096 })
    );
    late[counter..].copy_from_slice(&4096_u16.to_le_bytes());
    assert_eq!(Ciphertext::decode(&parameters, &late).unwrap().additions(), 4096);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(5), ..Default::default() })]
    #[test]
    fn any_bytes_are_refused_or_canonical(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        let _ = decode_all(&Parameters::toy().unwrap(), &bytes);
    }

    #[test]
    fn altered_encodings_are_refused_or_canonical(
        which in 0_usize..3, cut in 0_usize..12, flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
    ) {
        let parameters = Parameters::toy().unwrap();
        let (key, multi, one) = samples(&parameters);
        let mut bytes = [key, multi, one][which].clone();
        bytes.truncate(bytes.len() - cut / 8);
        for (at, flip) in flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        let taken = decode_all(&parameters, &bytes);
        prop_assert!(cut / 8 == 0 || taken.iter().all(Result::is_err));
    }
}

/// Keys and ciphertexts of products: altered encodings of the real set, seeds 5.
mod products {
    use std::sync::LazyLock;

    use blindfold_rlwe::schemes::invoice::Invoices;

    use super::*;

    static INVOICES: LazyLock<(Invoices, [Vec<u8>; 3])> = LazyLock::new(|| {
        let invoices = Invoices::new(&[9; 32]).unwrap();
        let key = invoices.key(&invoices.secret(&[1; 32]));
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let prices = invoices.encrypt_prices(&key, &[3, 4], &mut rng).unwrap();
        let quantities = invoices.encrypt_quantities(&key, &[5], &mut rng).unwrap();
        let total = invoices.total(&key, &quantities, &prices, &[0; 32]).unwrap();
        (invoices, [key.encode(), prices.encode(), total.encode()])
    });

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(5), cases: 24, ..Default::default() })]
        #[test]
        fn altered_encodings_are_refused_or_canonical(
            which in 0_usize..3, cut in 0_usize..2, flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        ) {
            let (invoices, samples) = &*INVOICES;
            let mut bytes = samples[which].clone();
            bytes.truncate(bytes.len() - cut);
            for (at, flip) in flips {
                let at = at % bytes.len();
                bytes[at] ^= flip;
            }
            let taken = [
                invoices.decode_key(&bytes).map(|key| key.encode()),
                invoices.decode_ciphertext(&bytes).map(|ciphertext| ciphertext.encode()),
                invoices.decode_total(&bytes).map(|total| total.encode()),
            ];
            for (kind, result) in taken.into_iter().enumerate() {
                prop_assert!(result.is_err() || (kind == which && cut == 0));
                if let Ok(encoded) = result {
                    prop_assert!(encoded == bytes, "one form only");
                }
            }
        }
    }
}

//! A batch's data and their hash.

use crate::common::rng;
use alloy_primitives::{B256, keccak256};
use blindfold_protocol::data::{KIND_RAW, MAX_DATA_BYTES, decode, encode, hash, hash_items};
use blindfold_protocol::{DecodeError, limits, merkle};
use proptest::prelude::*;
use rand_chacha::rand_core::Rng;

/// The Merkle root over chunks of 65,536 bytes, written apart.
fn by_hand(data: &[u8]) -> B256 {
    let leaves: Vec<B256> = data.chunks(65_536).map(|chunk| keccak256([&[0u8], chunk].concat())).collect();
    merkle::root(&leaves)
}

#[test]
fn data_are_codes_lengths_and_bytes() {
    let items = [vec![7, 8], vec![]];
    let data = encode(&[0, 11], &items);
    assert_eq!(data, [0, 0, 0, 2, 0, 0, 0, 0, 2, 7, 8, 11, 0, 0, 0, 0]);
    assert_eq!(decode(&data), Ok(vec![(0, vec![7, 8]), (11, vec![])]));
    assert_eq!(hash_items(&[0, 11], &items), by_hand(&data));
    // An empty batch has data: their count.
    let none: [&[u8]; 0] = [];
    assert_eq!(hash_items(&[], &none), keccak256([0; 5]));
    assert_eq!(KIND_RAW, 1);
}

/// Rule HS-5.
#[test]
fn chunks_are_hashed_by_themselves_at_every_edge() {
    for length in [0, 1, 65_526, 65_527, 65_528, 131_062, 131_063, 131_064, 200_000] {
        let mut bytes = vec![0; length];
        rng(length as u64).fill_bytes(&mut bytes);
        let items: Vec<&[u8]> = bytes.chunks(33_000).collect();
        let codes = vec![3; items.len()];
        let data = encode(&codes, &items);
        assert_eq!(hash_items(&codes, &items), by_hand(&data), "{length}");
        assert_eq!(hash(&data), by_hand(&data), "{length}");
    }
}

#[test]
fn faults_are_named() {
    let data = encode(&[1, 2], &[vec![1, 2, 3], vec![]]);
    let with = |at: usize, byte: u8| {
        let mut data = data.clone();
        data[at] = byte;
        decode(&data).unwrap_err()
    };
    assert_eq!(with(3, 3), DecodeError::Short { field: "verdict code", needed: 1, left: 0 });
    assert_eq!(with(2, 0x10), DecodeError::TooLarge { field: "items", got: 0x1002, limit: 4_096 });
    assert!(matches!(with(5, 1), DecodeError::TooLarge { field: "item", .. }));
    assert!(matches!(decode(&data[..data.len() - 1]), Err(DecodeError::Short { .. })));
    assert_eq!(decode(&[data.as_slice(), &[0]].concat()), Err(DecodeError::Trailing(1)));
    assert_eq!(decode(&[]), Err(DecodeError::Short { field: "items", needed: 4, left: 0 }));
    let heavy = vec![vec![0; limits::MAX_ENVELOPE_BYTES]; 254];
    assert!(matches!(
        decode(&encode(&[0; 254], &heavy)),
        Err(DecodeError::TooLarge { field: "item bytes", .. })
    ));
    assert_eq!(MAX_DATA_BYTES, 4 + 5 * 4_096 + 15 * 524_288);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(3), ..Default::default() })]

    #[test]
    fn data_come_back_and_any_change_shows(
        given in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..50)), 1..6),
        at in any::<prop::sample::Index>(), flip in 0u8..8,
    ) {
        let (codes, items): (Vec<u8>, Vec<Vec<u8>>) = given.iter().cloned().unzip();
        let mut data = encode(&codes, &items);
        prop_assert_eq!(decode(&data), Ok(given));
        prop_assert_eq!(hash_items(&codes, &items), hash(&data));
        let right = hash(&data);
        let at = at.index(data.len());
        data[at] ^= 1 << flip;
        prop_assert_ne!(hash(&data), right);
        if let Ok(read) = decode(&data) {
            let (codes, items): (Vec<u8>, Vec<Vec<u8>>) = read.into_iter().unzip();
            prop_assert_eq!(encode(&codes, &items), data);
        }
    }
}

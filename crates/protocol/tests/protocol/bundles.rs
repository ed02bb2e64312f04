//! Bundles: strict in both directions.

use blindfold_protocol::bundle::{Bundle, BundleError, BundleItem, bucket_for};
use blindfold_protocol::limits::{MAX_BUNDLE_ITEMS, SIZE_BUCKETS};
use proptest::collection::vec;
use proptest::prelude::*;

fn message(count: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = [&[2], count.to_be_bytes().as_slice(), rest].concat();
    bytes.resize(256, 0);
    bytes
}

#[test]
fn every_fault() {
    assert_eq!(Bundle::decode(&[]), Err(BundleError::BadLength(0)));
    assert_eq!(Bundle::decode(&[1; 257]), Err(BundleError::BadLength(257)));
    assert_eq!(Bundle::decode(&[0; 256]), Err(BundleError::Version(0)));
    assert_eq!(Bundle::decode(&message(513, &[])), Err(BundleError::TooManyItems(513)));
    let long = [[0].as_slice(), &300u32.to_be_bytes()].concat();
    assert_eq!(Bundle::decode(&message(1, &long)), Err(BundleError::Short(0)));
    let huge = [[0].as_slice(), &u32::MAX.to_be_bytes()].concat();
    assert_eq!(Bundle::decode(&message(1, &huge)), Err(BundleError::Short(0)));
    // 50 empty items take 250 of 253 bytes; a 51st has no room for its head.
    assert_eq!(Bundle::decode(&message(51, &[])), Err(BundleError::Short(50)));
    assert_eq!(Bundle::decode(&message(50, &[])).unwrap().items.len(), 50);
    assert_eq!(Bundle::decode(&message(0, &[1])), Err(BundleError::Padding));
    let mut last = message(0, &[]);
    last[255] = 1;
    assert_eq!(Bundle::decode(&last), Err(BundleError::Padding));
    assert_eq!(Bundle::decode(&message(0, &[])), Ok(Bundle::default()));

    let big = Bundle::of_transactions([vec![1; 32_768]]);
    assert_eq!(big.encode_padded(), Err(BundleError::TooLong { got: 32_776, limit: 32_768 }));
    let small = Bundle::of_transactions([vec![1; 256]]);
    assert_eq!(small.encode_padded_to(256), Err(BundleError::TooLong { got: 264, limit: 256 }));
    assert_eq!(small.encode_padded_to(300), Err(BundleError::BadLength(300)));
    let many = Bundle::of_transactions(vec![Vec::new(); MAX_BUNDLE_ITEMS + 1]);
    assert_eq!(many.encode_padded(), Err(BundleError::TooManyItems(513)));
    assert_eq!(BundleError::Padding.as_str(), "bad_bundle");
}

/// Rule EN-6.
#[test]
fn buckets() {
    assert_eq!(bucket_for(0), Some(256));
    assert_eq!(bucket_for(256), Some(256));
    assert_eq!(bucket_for(257), Some(512));
    assert_eq!(bucket_for(32_768), Some(32_768));
    assert_eq!(bucket_for(32_769), None);
    // Exactly full, and one more.
    assert_eq!(Bundle::of_transactions([vec![1; 248]]).encode_padded().unwrap().len(), 256);
    assert_eq!(Bundle::of_transactions([vec![1; 249]]).encode_padded().unwrap().len(), 512);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(3), ..Default::default() })]

    #[test]
    fn round_trip(items in vec((any::<u8>(), vec(any::<u8>(), 0..200)), 0..20)) {
        let items = items.into_iter().map(|(kind, bytes)| BundleItem { kind, bytes }).collect();
        let bundle = Bundle { items };
        let message = bundle.encode_padded().unwrap();
        prop_assert!(SIZE_BUCKETS.contains(&message.len()));
        prop_assert_eq!(&Bundle::decode(&message).unwrap(), &bundle);
        let wider = bundle.encode_padded_to(32_768).unwrap();
        prop_assert_eq!(Bundle::decode(&wider).unwrap(), bundle);
    }

    #[test]
    fn arbitrary_messages(count in 0u16..4, rest in vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 253), cut in 0usize..300) {
        let bytes = message(count, &rest);
        if let Ok(bundle) = Bundle::decode(&bytes) {
            prop_assert_eq!(bundle.encode_padded_to(256).unwrap(), bytes.clone());
        }
        let _ = Bundle::decode(&bytes[..cut.min(256)]);
    }
}

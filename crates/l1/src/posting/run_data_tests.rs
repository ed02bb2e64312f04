#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use crate::contracts::BlindedInbox;
use alloy_primitives::Bytes;
use alloy_sol_types::SolCall;
use proptest::prelude::*;

fn run_data() -> impl Strategy<Value = RunData> {
    let item = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..80));
    let batch = (prop::collection::vec(any::<u8>(), 65), prop::collection::vec(item, 0..5)).prop_map(
        |(signature, items)| BatchData { signature: Signature65(signature.try_into().unwrap()), items },
    );
    prop::collection::vec(batch, 0..5).prop_map(|batches| RunData { batches })
}

fn part() -> impl Strategy<Value = DataPart> {
    let bytes = prop::collection::vec(any::<u8>(), 0..80);
    (any::<u64>(), any::<u64>(), any::<[u8; 32]>(), 0..MAX_PARTS, bytes).prop_flat_map(
        |(first, last, whole, part, bytes)| {
            (part + 1..=MAX_PARTS).prop_map(move |parts| DataPart {
                first,
                last,
                whole: B256::new(whole),
                part,
                parts,
                bytes: bytes.clone(),
            })
        },
    )
}

proptest! {
    #[test]
    fn run_data_reads_what_it_wrote(data in run_data()) {
        prop_assert_eq!(RunData::decode(&data.encode()), Ok(data));
    }

    #[test]
    fn a_part_reads_what_it_wrote(part in part()) {
        prop_assert_eq!(DataPart::decode(&part.encode()), Ok(part));
    }

    #[test]
    fn arbitrary_bytes_are_read_back_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(data) = RunData::decode(&bytes) {
            prop_assert_eq!(data.encode(), bytes.clone());
        }
        if let Ok(part) = DataPart::decode(&bytes) {
            prop_assert_eq!(part.encode(), bytes);
        }
    }

    #[test]
    fn changed_encodings_never_panic(data in run_data(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = data.encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(read) = RunData::decode(&bytes) {
            prop_assert_eq!(read.encode(), bytes);
        }
    }

    #[test]
    fn parts_join_to_what_was_split(data in prop::collection::vec(any::<u8>(), 1..3_000), room in 1usize..500) {
        let parts = split_run_data(3, 4, &data, PART_OVERHEAD_BYTES + room);
        if data.len().div_ceil(room) > usize::from(MAX_PARTS) {
            prop_assert_eq!(parts, None);
        } else {
            let parts = parts.unwrap();
            prop_assert!(parts.iter().all(|part| part.encode().len() <= PART_OVERHEAD_BYTES + room));
            prop_assert_eq!(join(parts.iter().rev()), Some(data));
        }
    }
}

#[test]
fn faults_are_named() {
    let data = RunData {
        batches: vec![BatchData {
            signature: Signature65([7; 65]),
            items: vec![(0, vec![1, 2, 3]), (1, vec![])],
        }],
    };
    let bytes = data.encode();
    assert_eq!(RunData::decode(&[]), Err(DecodeError::Short { field: "version", needed: 1, left: 0 }));
    assert_eq!(RunData::decode(&[&[1], &bytes[1..]].concat()), Err(DecodeError::Version(1)));
    let opened = RunData::decode(&[&bytes[..1], &[2], &bytes[2..]].concat());
    assert_eq!(opened, Err(DecodeError::UnknownTag { field: "kind of data", value: 2 }));
    assert_eq!(RunData::decode(&[bytes.as_slice(), &[0]].concat()), Err(DecodeError::Trailing(1)));
    assert!(matches!(RunData::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Short { .. })));
    for (at, field) in [(2, "batches"), (71, "data"), (75, "items"), (80, "item")] {
        let mut changed = bytes.clone();
        changed[at] = 0xff;
        match RunData::decode(&changed) {
            Err(DecodeError::TooLarge { field: found, .. }) => assert_eq!(found, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    let part = DataPart { first: 1, last: 2, whole: B256::ZERO, part: 1, parts: 2, bytes: vec![9] };
    let beyond = DataPart { part: 2, ..part.clone() };
    assert_eq!(
        DataPart::decode(&beyond.encode()),
        Err(DecodeError::TooLarge { field: "part", got: 2, limit: 2 })
    );
    let many = DataPart { parts: MAX_PARTS + 1, ..part };
    assert!(matches!(DataPart::decode(&many.encode()), Err(DecodeError::TooLarge { .. })));
}

/// What these parts of one poster give.
fn join<'a>(parts: impl Iterator<Item = &'a DataPart>) -> Option<Vec<u8>> {
    let mut kept = crate::posting::parts::Parts::default();
    parts.fold(None, |whole, part| whole.or(kept.complete(alloy_primitives::Address::ZERO, part.clone())))
}

#[test]
fn parts_that_do_not_belong_together_do_not_join() {
    let data = vec![5; 100];
    let parts = split_run_data(1, 2, &data, PART_OVERHEAD_BYTES + 40).unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!(join(parts[..2].iter()), None);
    assert_eq!(join([].iter()), None);
    let mut forged = parts.clone();
    forged[1].bytes[0] ^= 1;
    assert_eq!(join(forged.iter()), None);
    let mut mixed = parts.clone();
    mixed[2].whole = B256::ZERO;
    assert_eq!(join(mixed.iter()), None);
    assert_eq!(split_run_data(1, 2, &data, PART_OVERHEAD_BYTES), None);
}

/// Rule L-9.
#[test]
fn a_call_without_data_says_which_part_is_in_its_blobs() {
    let call = |first| BlindedInbox::postDataCall { firstNumber: first, data: Bytes::new() }.abi_encode();
    let name = PartName { first: 7, last: 300, part: 1, parts: 3 };
    let input = [call(7).as_slice(), &name.behind_call()].concat();
    assert_eq!(PartName::of_call(7, &input), Some(name));
    // Whoever takes the call apart finds its arguments as ever.
    let decoded = BlindedInbox::postDataCall::abi_decode(&input).unwrap();
    assert!(decoded.firstNumber == 7 && decoded.data.is_empty());
    assert_eq!(PartName::of_call(7, &call(7)), None);
    assert_eq!(PartName::of_call(7, &input[..input.len() - 1]), None);
    assert_eq!(PartName::of_call(7, &[input.as_slice(), &[0]].concat()), None);
    let filled = BlindedInbox::postDataCall { firstNumber: 7, data: vec![1; 12].into() }.abi_encode();
    assert_eq!(PartName::of_call(7, &filled), None, "the data itself");
    for wrong in [
        PartName { last: 6, ..name },
        PartName { last: 7 + MAX_RUN_BATCHES as u64, ..name },
        PartName { part: 3, ..name },
        PartName { parts: MAX_PARTS + 1, ..name },
    ] {
        let input = [call(7).as_slice(), &wrong.behind_call()].concat();
        assert_eq!(PartName::of_call(7, &input), None, "{wrong:?}");
    }
}

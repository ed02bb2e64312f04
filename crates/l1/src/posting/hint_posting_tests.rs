#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;

use super::*;

const HASH: B256 = B256::repeat_byte(7);

fn hints(number: u64) -> BatchHints {
    let entries = vec![
        HintEntry::Key([1; 16]),
        HintEntry::Malformed([2; 48]),
        HintEntry::Skipped,
        HintEntry::Malformed([3; 48]),
    ];
    BatchHints { number, header_hash: HASH, entries, blindings: vec![] }
}

#[test]
fn hints_come_back_from_their_posting() {
    let empty = BatchHints { number: 6, header_hash: HASH, entries: vec![], blindings: vec![] };
    let posting = HintPosting::of(&[hints(5), empty.clone()]);
    let bytes = posting.encode();
    assert_eq!(bytes.len(), 5 + (4 + 4 * 17 + 4 + 2 * 48) + (4 + 4));
    assert_eq!(&bytes[..9], &[2, 0, 0, 0, 2, 0, 0, 0, 4]);
    let decoded = HintPosting::decode(&bytes).unwrap();
    assert_eq!(decoded, posting);
    assert_eq!(decoded.batch(5, 5).unwrap().to_hints(5, HASH), Ok(hints(5)));
    assert_eq!(decoded.batch(5, 6).unwrap().to_hints(6, HASH), Ok(empty));
    assert_eq!(decoded.malformed(5), [(5, 1), (5, 3)]);
    for outside in [4, 7] {
        assert_eq!(decoded.batch(5, outside), None);
    }
    assert!(!format!("{decoded:?}").contains("[1, 1"), "no key in a log");
}

#[test]
fn entries_that_cannot_be_hints_are_named() {
    let with = |change: fn(&mut PostedBatch)| {
        let mut batch = PostedBatch::of(&hints(5));
        change(&mut batch);
        batch.to_hints(5, HASH).unwrap_err()
    };
    let unknown = with(|batch| batch.entries[2].kind = 3);
    assert_eq!(unknown, PostedError::Kind { index: 2, kind: 3 });
    assert_eq!(with(|batch| batch.entries[2].key[0] = 1), PostedError::StrayKey(2));
    let missing = with(|batch| batch.singletons.truncate(1));
    assert_eq!(missing, PostedError::NoRelease { index: 3, singletons: 1 });
    let beyond = with(|batch| batch.entries[1] = PostedEntry::malformed(2));
    assert_eq!(beyond, PostedError::NoRelease { index: 1, singletons: 2 });
    let far = with(|batch| batch.entries[1].key = [0xff; 16]);
    assert_eq!(far, PostedError::NoRelease { index: 1, singletons: 2 });
}

#[test]
fn a_malformed_entry_says_which_release_is_its_own() {
    let mut batch = PostedBatch::of(&hints(5));
    assert_eq!([1, 3].map(|index: usize| batch.entries[index].release_place()), [Some(0), Some(1)]);
    batch.singletons.reverse();
    batch.singletons.push([9; 48]);
    batch.entries[1] = PostedEntry::malformed(1);
    batch.entries[3] = PostedEntry::malformed(0);
    assert_eq!(batch.to_hints(5, HASH), Ok(hints(5)), "in any order, and one that nobody names");
}

#[test]
fn other_bytes_are_named() {
    let bytes = HintPosting::of(&[hints(5)]).encode();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        HintPosting::decode(&bytes).unwrap_err()
    };
    assert_eq!(with(0, 1), DecodeError::Version(1));
    assert!(matches!(with(4, 2), DecodeError::Short { .. }));
    assert!(matches!(with(5, 0xff), DecodeError::Short { .. }), "a count far above the input");
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(HintPosting::decode(&longer), Err(DecodeError::Trailing(1)));
    assert!(matches!(HintPosting::decode(&[]), Err(DecodeError::Short { .. })));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_back_or_refused(mut bytes: Vec<u8>, versioned: bool) {
        if let Some(first) = bytes.first_mut().filter(|_| versioned) {
            *first = VERSION;
        }
        if let Ok(posting) = HintPosting::decode(&bytes) {
            prop_assert_eq!(posting.encode(), bytes);
        }
    }
}

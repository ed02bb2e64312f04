#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;

use alloy_primitives::hex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::posting::{
    blobs::verify_element,
    hint_posting::{KEY, SKIPPED},
};

const FIRST: u64 = 7;
/// \[τ·k\]₁ for τ = 0x7a0 and k = 2, 6, 10: the contracts' tests have the ciphertexts \[k\]₁.
const RELEASES: [[u8; SINGLETON_BYTES]; 3] = [
    hex!("9327cea3840faf9c7006514057c7e9586db79429b6dda55b970bdb058b87f0ce45deb1b6f61cdab477343aaec59c2553"),
    hex!("843947a81da12fca18473815166d238a06b203eb4606ad5f98155a1fbe37deb9d4138e5d745a452c08c19caf7e7db906"),
    hex!("948f38d3d2013ebf1c8f1b2f82e6bdea1408b25bdbdacc35fbbc3154a84410b491ed89daef9587093600d92398fe9f81"),
];

/// Entries of every kind, 12 of them.
fn sample() -> PostedBatch {
    let entry = |place: u8| match place % 4 {
        1 => PostedEntry::malformed(usize::from(place / 4)),
        2 => PostedEntry { kind: SKIPPED, key: [0; KEY_BYTES] },
        _ => PostedEntry { kind: KEY, key: [place + 1; KEY_BYTES] },
    };
    PostedBatch { entries: (0..12).map(entry).collect(), singletons: RELEASES.to_vec() }
}

fn skipped(count: usize) -> PostedBatch {
    let entries = vec![PostedEntry { kind: SKIPPED, key: [0; KEY_BYTES] }; count];
    PostedBatch { entries, singletons: Vec::new() }
}

fn small() -> HintBlobs {
    HintBlobs::of(&HintPosting { batches: vec![sample()] }).unwrap()
}

/// The first two releases in the other order.
fn swapped() -> HintBlobs {
    let mut batch = sample();
    batch.singletons.swap(0, 1);
    HintBlobs::of(&HintPosting { batches: vec![batch] }).unwrap()
}

/// The ninth entry of the second batch lies in two blobs.
fn in_two_blobs() -> HintBlobs {
    HintBlobs::of(&HintPosting { batches: vec![skipped(7_460), sample()] }).unwrap()
}

/// Writes to the first blob and names it anew.
fn damaged(mut blobs: HintBlobs, byte: usize, value: u8) -> HintBlobs {
    let mut blob = blobs.blobs[0].to_vec();
    blob[byte] = value;
    blobs.hashes[0] = versioned_hash(&blob).unwrap();
    blobs.blobs[0] = blob.into();
    blobs
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    hex::encode_prefixed(bytes)
}

/// A posting with the evidence for every item of its last batch.
fn vector(blobs: &HintBlobs, entries: &[PostedEntry]) -> Value {
    let place = blobs.index.batches.len() - 1;
    let shown = (0u32..).zip(entries).map(|(item, entry)| {
        let evidence = blobs.evidence(place, item).unwrap();
        let opening = |opening: &contract::Opening| {
            let value = text(opening.value.to_be_bytes::<32>());
            json!({ "value": value, "commitment": text(&opening.commitment), "proof": text(&opening.proof) })
        };
        let openings: Vec<Value> = evidence.openings.iter().map(opening).collect();
        let releases: Vec<Value> = evidence.releaseOpenings.iter().map(opening).collect();
        let entry = if entry.kind == MALFORMED { UNNAMED } else { *entry };
        json!({
            "kind": entry.kind,
            "key": text(entry.key),
            "elements": openings.len(),
            "openings": openings,
            "releaseElements": releases.len(),
            "releaseOpenings": releases,
        })
    });
    let shown: Vec<Value> = shown.collect();
    json!({
        "index": text(blobs.index.encode()),
        "blobs": blobs.hashes.len(),
        "versionedHashes": blobs.hashes.iter().map(text).collect::<Vec<_>>(),
        "root": text(blobs.root(FIRST)),
        "shown": shown,
    })
}

/// Everything in the file follows from what is above. The test fails when the file differs from what the code gives;
/// with `BLINDFOLD_WRITE_VECTORS=1` it is written instead. The contracts' tests read it.
#[test]
fn vectors_are_what_the_code_gives() {
    let unread = damaged(small(), 32, 1);
    let file = json!({
        "first": FIRST,
        "small": vector(&small(), &sample().entries),
        "twoBlobs": vector(&in_two_blobs(), &sample().entries),
        // The second element, which holds the third entry and parts of its neighbours, is none of the encoding.
        "damaged": vector(&unread, &unread.hints().batches[0].entries),
        // The ninth element, which holds the end of the first release and the beginning of the second, is none either.
        "damagedReleases": vector(&damaged(small(), 8 * 32, 1), &sample().entries),
        "swappedReleases": vector(&swapped(), &sample().entries),
    });
    let written = serde_json::to_string_pretty(&file).unwrap() + "\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/vectors/hints/blobs.json");
    if std::env::var_os("BLINDFOLD_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == written, "{} differs from what the code gives", path.display());
}

#[test]
fn openings_prove_the_elements_of_an_entry() {
    let blobs = in_two_blobs();
    for (item, elements) in [(0, 1), (1, 2), (8, 2)] {
        let evidence = blobs.evidence(1, item).unwrap();
        assert_eq!(evidence.openings.len(), elements, "{item}");
        let at = (7_460 + u64::from(item)) * ENTRY_BYTES as u64;
        for (opening, element) in evidence.openings.iter().zip(BlobContent::elements(at, ENTRY_BYTES)) {
            let value = opening.value.to_be_bytes::<32>();
            let verify = |value| verify_element(element, value, &opening.commitment, &opening.proof).unwrap();
            assert!(verify(value));
            assert!(!verify((opening.value ^ U256::ONE).to_be_bytes()), "another value");
        }
    }
    // The release of a malformed item, behind all entries, in two or three elements.
    for (item, release, elements) in [(1, 0, 3), (5, 1, 2), (9, 2, 3)] {
        let openings = blobs.evidence(1, item).unwrap().releaseOpenings;
        assert_eq!(openings.len(), elements, "{item}");
        let at = (7_472 * ENTRY_BYTES + release * SINGLETON_BYTES) as u64;
        for (opening, element) in openings.iter().zip(BlobContent::elements(at, SINGLETON_BYTES)) {
            let value = opening.value.to_be_bytes::<32>();
            assert!(verify_element(element, value, &opening.commitment, &opening.proof).unwrap());
        }
    }
    assert!(blobs.evidence(1, 2).unwrap().releaseOpenings.is_empty());
    // The entry in two blobs is shown by both.
    let [left, right] = &blobs.evidence(1, 8).unwrap().openings[..] else { panic!("two") };
    assert_ne!(left.commitment, right.commitment);
    // Behind the end of the blobs there is nothing to show.
    assert_eq!(blobs.evidence(1, 7_500).unwrap().openings.len(), 0);
}

#[test]
fn what_cannot_be_read_or_contradicts_the_index_is_no_entry() {
    let wrong = |blobs: &HintBlobs| {
        let batch = blobs.hints().batches.remove(0);
        let entries = (0usize..).zip(batch.entries).zip(sample().entries);
        entries
            .filter(|((_, entry), right)| entry != right)
            .map(|((at, entry), _)| (at, entry.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(wrong(&small()), []);
    assert_eq!(wrong(&damaged(small(), 32, 1)), [(1, 0xff), (2, 0xff), (3, 0xff)]);
    // A malformed entry names no release: the index does.
    assert_eq!(wrong(&damaged(small(), 1 + 4 + 17 + 1, 1)), [(1, 0xff)]);
    let mut other = small();
    other.index.batches[0].malformed = vec![0, 5, 9];
    assert_eq!(wrong(&other), [(0, 0xff), (1, 0xff)]);
    // Counts that no run has are shown as far as they are wrong.
    let mut other = small();
    let huge = IndexedBatch { count: u32::MAX, malformed: vec![] };
    other.index.batches = vec![huge.clone(), huge];
    let counts: Vec<usize> = other.hints().batches.iter().map(|batch| batch.entries.len()).collect();
    assert_eq!(counts, [MAX_BATCH_ITEMS + 1, 0]);
}

#[test]
fn roots_differ_in_everything_they_commit_to() {
    let blobs = small();
    let root = blobs.root(FIRST);
    assert_ne!(blobs.root(FIRST + 1), root);
    let mut other = blobs.clone();
    other.index.batches[0].malformed.pop();
    assert_ne!(other.root(FIRST), root);
    let mut other = blobs.clone();
    other.hashes.push(B256::ZERO);
    assert_ne!(other.root(FIRST), root);
    assert_ne!(crate::posting::hint_tree::HintTree::new(&blobs.hints(), FIRST).root(), root);
}

#[test]
fn an_index_of_another_form_is_refused() {
    let good = HintIndex::of(&HintPosting { batches: vec![sample(), skipped(0)] });
    let bytes = good.encode();
    assert_eq!(HintIndex::decode(&bytes, 2), Ok(good));
    for batches in [0, 1, 3] {
        assert!(HintIndex::decode(&bytes, batches).is_err(), "{batches}");
    }
    for cut in 0..bytes.len() {
        assert!(HintIndex::decode(&bytes[..cut], 2).is_err(), "{cut}");
    }
    // Places 1, 5 and 9 of 12: not ascending, or beyond the count.
    for (at, value) in [(15, 1), (15, 9), (19, 12), (3, 9)] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        assert!(HintIndex::decode(&bytes, 2).is_err(), "{at}");
    }
    assert!(HintIndex::decode(&vec![0; MAX_INDEX_BYTES + 8], 4_097).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn hints_come_back_from_their_blobs(counts in prop::collection::vec(0usize..300, 1..6), kinds: u64) {
        let mut batches = Vec::new();
        for count in counts {
            let mut malformed = 0;
            let entry = |place: usize| match (kinds >> (2 * (place % 32))) & 3 {
                0 => PostedEntry { kind: SKIPPED, key: [0; KEY_BYTES] },
                1 => {
                    malformed += 1;
                    PostedEntry::malformed(malformed - 1)
                }
                _ => PostedEntry { kind: KEY, key: [place as u8; KEY_BYTES] },
            };
            let entries: Vec<PostedEntry> = (0..count).map(entry).collect();
            let singletons = (0..malformed).map(|place| [place as u8; SINGLETON_BYTES]).collect();
            batches.push(PostedBatch { entries, singletons });
        }
        let hints = HintPosting { batches };
        let blobs = HintBlobs::of(&hints).unwrap();
        prop_assert_eq!(blobs.index.malformed(FIRST), hints.malformed(FIRST));
        prop_assert_eq!(blobs.hints(), hints);
    }
}

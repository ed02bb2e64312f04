#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use alloy_primitives::U256;
use alloy_sol_types::SolValue;

use super::*;
use crate::posting::hint_posting::PostedEntry;

fn posting(counts: &[usize]) -> HintPosting {
    let entry = |index: usize| PostedEntry { kind: 1, key: [index as u8; 16] };
    let batch = |count: &usize| PostedBatch {
        entries: (0..*count).map(entry).collect(),
        singletons: vec![[5; 48]; count % 3],
    };
    HintPosting { batches: counts.iter().map(batch).collect() }
}

/// Rule L-11.
#[test]
fn every_entry_is_in_a_chunk_that_leads_to_the_root() {
    let counts = [0, 1, 127, 128, 129, 300, 0];
    let posting = posting(&counts);
    let tree = HintTree::new(&posting, 40);
    let chunks = 1 + 1 + 1 + 1 + 2 + 3 + 1;
    let mut places = Vec::new();
    for (number, count) in (40..).zip(counts) {
        for index in 0..count.max(1) as u32 {
            let chunk = tree.chunk(number, index).unwrap();
            let in_chunk = index as usize % CHUNK_ENTRIES;
            if count > 0 {
                assert_eq!(chunk.bytes[in_chunk * ENTRY_BYTES], 1);
                assert_eq!(chunk.bytes[in_chunk * ENTRY_BYTES + 1], index as u8);
            } else {
                assert!(chunk.bytes.is_empty());
            }
            assert_eq!((chunk.count as usize, chunk.leaf_count), (count, chunks));
            let hashes = release_hashes(&posting.batches[(number - 40) as usize]);
            assert_eq!(hashes.len(), usize::from(!count.is_multiple_of(3)));
            let releases = keccak256(hashes.concat());
            assert_eq!(chunk.releases, releases);
            let leaf = leaf(number, count, chunk.chunk_index, &chunk.bytes, releases);
            let root = merkle::root(&tree.leaves);
            assert!(merkle::verify(&root, chunks.into(), chunk.leaf_index.into(), &leaf, &chunk.proof));
            assert_eq!(tree.root(), keccak256((U256::from(chunks), root).abi_encode()));
            places.push(chunk.leaf_index);
        }
    }
    places.dedup();
    assert_eq!(places, (0..chunks).collect::<Vec<_>>());
    assert_eq!(tree.chunk(39, 0), None);
    assert_eq!(tree.chunk(47, 0), None);
    // An index that no entry has: its challenge is about the count.
    assert_eq!(tree.chunk(44, 5_000).unwrap().chunk_index, 1);
}

// The same as `HintData.postingRoot` of the contracts gives; the test of the contracts on a node compares more.
#[test]
fn the_tree_of_one_empty_batch_is_one_empty_chunk() {
    let posting = posting(&[0]);
    let none = keccak256([]);
    let data = [&9u64.to_be_bytes()[..], &[0; 8], none.as_slice(), none.as_slice()].concat();
    let root = keccak256((U256::from(1), merkle::leaf(&data)).abi_encode());
    assert_eq!(HintTree::new(&posting, 9).root(), root);
}

#[test]
fn postings_that_differ_in_their_releases_only_have_other_roots() {
    let right = posting(&[300, 2]);
    let root = |change: fn(&mut HintPosting)| {
        let mut posting = right.clone();
        change(&mut posting);
        HintTree::new(&posting, 1).root()
    };
    let roots = [
        root(|_| {}),
        root(|posting| posting.batches[1].singletons.clear()),
        root(|posting| posting.batches[1].singletons[1][47] ^= 1),
        root(|posting| posting.batches[0].singletons.push([5; 48])),
    ];
    assert!((1..4).all(|index| !roots[..index].contains(&roots[index])));
}

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use alloy_primitives::{Address, keccak256};
use blindfold_protocol::{B256, BatchHeader, Signature65, merkle};

use super::*;
use crate::{
    posting::evidence::{GivenPromise, ItemLeaf, OmissionAnswer},
    test_header::plain_header,
};

/// A batch of two items that are no envelopes, the first of which passes for accepted.
fn batch(number: u64, codes: &[u8]) -> SealedBatch {
    let items: Vec<Vec<u8>> = (0..codes.len()).map(|index| vec![index as u8 + 1; 50]).collect();
    let leaf = |(item, code): (&Vec<u8>, &u8)| {
        merkle::leaf(&[B256::ZERO.as_slice(), keccak256(item).as_slice(), &[*code]].concat())
    };
    let leaves: Vec<B256> = items.iter().zip(codes).map(leaf).collect();
    let header = BatchHeader {
        parent_hash: B256::repeat_byte(1),
        timestamp_ms: 1_000 + number,
        envelope_root: merkle::root(&leaves),
        data_hash: blindfold_protocol::data::hash_items(codes, &items),
        envelope_count: items.len() as u32,
        envelope_bytes: 50 * items.len() as u32,
        ..plain_header(number)
    };
    SealedBatch { header, signature: Signature65([0; 65]), items }
}

fn truth(batch: &SealedBatch) -> BatchHints {
    let entries = vec![HintEntry::Key([9; 16]), HintEntry::Skipped];
    BatchHints { number: batch.header.number, header_hash: batch.header.hash(), entries, blindings: vec![] }
}

const CODES: [u8; 2] = [0, 1];

fn run(batches: &[SealedBatch]) -> PostedRun {
    PostedRun::new(batches.iter().map(|batch| batch.header).collect(), 77).unwrap()
}

#[test]
fn the_first_wrong_entry_is_found() {
    let batches = [batch(4, &CODES), batch(5, &CODES)];
    let truth: Vec<BatchHints> = batches.iter().map(truth).collect();
    let right = HintPosting::of(&truth);
    assert_eq!(first_wrong_entry(&right, &truth), None);
    let with = |change: fn(&mut HintPosting)| {
        let mut posting = right.clone();
        change(&mut posting);
        first_wrong_entry(&posting, &truth)
    };
    assert_eq!(with(|posting| posting.batches[1].entries[0].key[3] = 1), Some((5, 0)));
    assert_eq!(with(|posting| posting.batches[0].entries[1].kind = 2), Some((4, 1)));
    assert_eq!(with(|posting| posting.batches[1].entries[1].key[0] = 1), Some((5, 1)));
    assert_eq!(with(|posting| posting.batches[1].entries.truncate(1)), Some((5, 0)));
    assert_eq!(with(|posting| posting.batches[1].singletons.push([0; 48])), None);
}

#[test]
fn of_a_malformed_item_the_release_that_is_named_is_compared() {
    let entries = vec![HintEntry::Malformed([7; 48]), HintEntry::Malformed([8; 48])];
    let truth = [BatchHints { number: 4, header_hash: B256::ZERO, entries, blindings: vec![] }];
    let with = |change: fn(&mut crate::posting::hint_posting::PostedBatch)| {
        let mut posting = HintPosting::of(&truth);
        change(&mut posting.batches[0]);
        first_wrong_entry(&posting, &truth)
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|batch| batch.singletons.reverse()), Some((4, 0)));
    assert_eq!(with(|batch| batch.singletons[1][0] ^= 1), Some((4, 1)));
    assert_eq!(with(|batch| batch.singletons.truncate(1)), Some((4, 1)));
    let both = |batch: &mut crate::posting::hint_posting::PostedBatch| {
        batch.singletons.reverse();
        batch.entries.reverse();
    };
    assert_eq!(with(both), None, "another order, and entries that follow it");
}

#[test]
fn a_challenge_holds_what_l1_asks_for() {
    let batches = [batch(4, &CODES), batch(5, &CODES)];
    let run = run(&batches);
    let truth = truth(&batches[1]);
    let mut posting = HintPosting::of(&[truth.clone(), truth.clone()]);
    posting.batches[1].entries[0].kind = MALFORMED;
    posting.batches[1].entries[0].key = [0; 16];
    let challenge = Challenge::new(&run, &batches[1], &CODES, &posting, &truth, 0).unwrap();
    assert_eq!((challenge.number(), challenge.index()), (5, 0));
    let call = &challenge.call;
    assert_eq!((call.key.0, call.item.as_ref()), ([9; 16], batches[1].items[0].as_slice()));
    assert_eq!((call.leafIndex, call.leafCount, call.count, call.code), (1, 2, 2, 0));
    let root = &run.run.header_root;
    let leaf = merkle::leaf(batches[1].header.hash().as_slice());
    assert!(merkle::verify(root, 2, 1, &leaf, &call.headerProof));
    let leaf = merkle::leaf(&[call.id.as_slice(), call.itemHash.as_slice(), &[0]].concat());
    assert!(merkle::verify(&batches[1].header.envelope_root, 2, 0, &leaf, &call.itemProof));

    // What was not accepted needs no ciphertext.
    let challenge = Challenge::new(&run, &batches[1], &CODES, &posting, &truth, 1).unwrap();
    assert!(challenge.call.item.is_empty());
    // Nor does a wrong count, which is wrong without items.
    let more = posting.batches[1].entries[0];
    posting.batches[1].entries.push(more);
    let challenge = Challenge::new(&run, &batches[1], &[], &posting, &truth, 0).unwrap();
    assert_eq!((challenge.call.count, challenge.call.itemProof.len()), (3, 0));
}

#[test]
fn what_does_not_belong_together_is_named() {
    let batches = [batch(4, &CODES), batch(5, &CODES)];
    let run = run(&batches);
    let truth = truth(&batches[1]);
    let posting = HintPosting::of(&[truth.clone(), truth.clone()]);
    let new = |batch: &SealedBatch, codes: &[u8], index| {
        Challenge::new(&run, batch, codes, &posting, &truth, index).unwrap_err()
    };
    assert_eq!(new(&batches[1], &[0, 0], 0), ChallengeError::OtherItems(5));
    assert_eq!(new(&batches[1], &[0], 0), ChallengeError::OtherItems(5));
    assert_eq!(new(&batches[1], &CODES, 2), ChallengeError::NoItem { number: 5, index: 2 });
    assert_eq!(new(&batch(6, &CODES), &CODES, 0), ChallengeError::NoBatch(6));
    assert_eq!(new(&batch(5, &[0, 2]), &[0, 2], 0), ChallengeError::NoBatch(5));
    let shorter = HintPosting::of(std::slice::from_ref(&truth));
    let fault = Challenge::new(&run, &batches[1], &CODES, &shorter, &truth, 0).unwrap_err();
    assert_eq!(fault, ChallengeError::NoBatch(5));
}

#[test]
fn only_an_envelope_of_the_batch_answers_an_accusation() {
    let batches = [batch(4, &CODES)];
    let answer = |id| {
        let promise = GivenPromise {
            sequencer: Address::ZERO,
            envelope_id: id,
            item_hash: keccak256(&batches[0].items[0]),
            seal_by: 9,
        };
        OmissionAnswer::new(run(&batches), &batches[0], &CODES, promise)
    };
    // The id of what is no envelope is zero, and nobody was promised that.
    assert_eq!(answer(B256::ZERO), None);
    assert_eq!(answer(B256::repeat_byte(1)), None);
    assert_eq!(ItemLeaf::new(b"item", 0xff).id, B256::ZERO);
}

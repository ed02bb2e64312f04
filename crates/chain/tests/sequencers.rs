//! Sequencers that follow each other: whose signature counts at which L1 origin, and whose votes and fees they are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blindfold_chain::limits::EPOCHS_PATIENCE_MS;
use blindfold_chain::{HeaderSigner, KeySigner, L1Error, NextStep, SealingError, Tracker, TrackerError};
use blindfold_kit::*;
use blindfold_protocol::limits::{HANDOVER_BLOCKS, MAX_UNCERTIFIED_HEADERS};
use blindfold_protocol::validity::HeaderError;
use blindfold_protocol::{Canonical, Epoch, Epochs, RulesChange, SealedBatch, SequencerChange, SigningKey};

/// The first L1 block of the next key.
const FROM: u64 = 5;

fn next_key() -> Arc<SigningKey> {
    Arc::new(SigningKey::from_bytes(&[10; 32]).unwrap())
}

/// L1 where the next key counts from block [`FROM`] on.
fn l1_with_two() -> Arc<ScriptedL1> {
    let l1 = l1();
    *l1.sequencers.lock() = vec![
        SequencerChange { from_block: 0, sequencer: sequencer_key().address() },
        SequencerChange { from_block: FROM, sequencer: next_key().address() },
    ];
    *l1.finalized.lock() = FROM;
    l1
}

async fn seal(
    tracker: &Tracker,
    origin: u64,
    key: &Arc<SigningKey>,
    items: Vec<Vec<u8>>,
) -> Result<Arc<SealedBatch>, SealingError> {
    let checked = check(&chain_config(), &epoch(), &items);
    let ms = START_MS + tracker.head().number * 1_000;
    let items = items.into_iter().zip(checked).collect();
    let signer: Arc<dyn HeaderSigner> = Arc::new(KeySigner::new(Arc::clone(key), chain_config().deployment));
    tracker.seal(ms, 0, items, &l1_block(origin), &signer).await.map(|sealed| sealed.batch)
}

/// The same header under another signature.
fn signed_by(batch: &SealedBatch, key: &SigningKey) -> Arc<SealedBatch> {
    let signature = key.sign(&batch.header.signing_digest(&chain_config().deployment));
    Arc::new(SealedBatch { signature, ..batch.clone() })
}

/// Rule K-1.
#[tokio::test]
async fn a_header_bears_the_signature_of_the_key_that_counts_at_its_origin() {
    let l1 = l1_with_two();
    let (sealer, node) = (tracker_on(memory(), &l1).await, tracker_on(memory(), &l1).await);
    for (origin, right, wrong) in
        [(FROM - 1, sequencer_key(), next_key()), (FROM, next_key(), sequencer_key())]
    {
        let refused = seal(&sealer, origin, &wrong, vec![]).await.unwrap_err();
        assert!(matches!(refused, SealingError::NotOurs { sequencer, .. } if sequencer == right.address()));
        let batch = seal(&sealer, origin, &right, vec![]).await.unwrap();
        let refused = node.apply_sealed(&signed_by(&batch, &wrong)).await.unwrap_err();
        let TrackerError::Invalid { fault: HeaderError::Signer(signer), .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!((*signer, refused.next_step()), (wrong.address(), NextStep::Reject));
        assert!(node.is_signed(&batch) && !node.is_signed(&signed_by(&batch, &wrong)));
        node.apply_sealed(&batch).await.unwrap();
    }
    // Its term is over: no later header goes back to an origin of it, and none is its to sign.
    assert!(seal(&sealer, FROM, &sequencer_key(), vec![]).await.is_err());
}

#[tokio::test]
async fn the_priority_fee_is_the_sealers() {
    let l1 = l1_with_two();
    let tracker = tracker_on(memory(), &l1).await;
    let tip = |key: &SigningKey| {
        tracker
            .with_state(|state| state.ledger().account(&key.address()).map_or(0, |account| account.balance))
    };
    seal(&tracker, FROM - 1, &sequencer_key(), vec![envelope(1, 1).encode()]).await.unwrap();
    let first = tip(&sequencer_key());
    assert!(first > 0 && tip(&next_key()) == 0);
    seal(&tracker, FROM, &next_key(), vec![envelope(1, 2).encode()]).await.unwrap();
    assert_eq!((tip(&sequencer_key()), tip(&next_key())), (first, first));
}

/// What L1 said before the origin can still change: a key may have been named since.
#[tokio::test]
async fn a_header_waits_until_its_origins_key_is_known() {
    let l1 = l1_with_two();
    let (sealer, node) = (tracker_on(memory(), &l1).await, tracker_on(memory(), &l1).await);
    let batch = seal(&sealer, FROM, &next_key(), vec![]).await.unwrap();
    // A node that read the keys before, and whose L1 has not got there.
    *l1.finalized.lock() = FROM - 1;
    let early = tracker_on(memory(), &l1).await;
    let refused = early.apply_sealed(&batch).await.unwrap_err();
    assert!(matches!(refused, TrackerError::OriginNotFinal { number: 1, origin: FROM }), "{refused}");
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    let refused = early.apply_sealed(&batch).await.unwrap_err();
    assert_eq!((refused.as_str(), refused.next_step()), ("l1_unavailable", NextStep::Retry));
    *l1.fault.lock() = None;
    *l1.finalized.lock() = FROM;
    early.apply_sealed(&batch).await.unwrap();
    node.apply_sealed(&batch).await.unwrap();
}

/// With old origins an earlier key could go on signing beside the next one (K-5).
#[tokio::test]
async fn an_earlier_sequencer_gets_no_votes_when_the_next_one_has_begun() {
    let l1 = l1_with_two();
    let node = tracker_on(memory(), &l1).await;
    let batch = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    let until = FROM - 1;
    for finalized in [FROM, until + HANDOVER_BLOCKS] {
        *l1.finalized.lock() = finalized;
        node.epoch(1).await.unwrap();
        node.may_be_voted_for(&batch.header).await.unwrap();
    }
    *l1.finalized.lock() = FROM + HANDOVER_BLOCKS;
    node.epoch(1).await.unwrap();
    let refused = node.may_be_voted_for(&batch.header).await.unwrap_err();
    assert_eq!((refused.as_str(), refused.next_step()), ("out_of_office", NextStep::Reject));
    // Certified by others it is followed like any other.
    node.accept_certificate(&certificate_of(&batch)).await.unwrap();
    let next = seal(&node, FROM, &next_key(), vec![]).await.unwrap();
    node.may_be_voted_for(&next.header).await.unwrap();
}

#[tokio::test]
async fn only_two_headers_of_one_key_are_evidence() {
    let l1 = l1_with_two();
    let node = tracker_on(memory(), &l1).await;
    let batch = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    let ours = batch.signed_header();
    let theirs = signed_by(&batch, &next_key()).signed_header();
    let strangers = signed_by(&batch, &payer(1)).signed_header();
    assert!(node.signed_by_one(&ours, &ours) && node.signed_by_one(&theirs, &theirs));
    assert!(!node.signed_by_one(&ours, &theirs) && !node.signed_by_one(&strangers, &strangers));
}

/// Headers of an earlier sequencer that a part of the committee acknowledged: the next one seals above them, and its
/// certificate covers them.
#[tokio::test]
async fn what_an_earlier_sequencer_leaves_uncertified_keeps_nobody_from_sealing() {
    let l1 = l1_with_two();
    let (sealer, node) = (tracker_on(memory(), &l1).await, tracker_on(memory(), &l1).await);
    for _ in 0..MAX_UNCERTIFIED_HEADERS {
        let batch = seal(&sealer, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
        node.apply_sealed(&batch).await.unwrap();
    }
    let full = seal(&sealer, FROM - 1, &sequencer_key(), vec![]).await.unwrap_err();
    assert!(matches!(full, SealingError::TooManyUncertified { .. }), "{full}");
    let mut last = None;
    for _ in 0..MAX_UNCERTIFIED_HEADERS {
        let batch = seal(&sealer, FROM, &next_key(), vec![]).await.unwrap();
        node.apply_sealed(&batch).await.unwrap();
        last = Some(batch);
    }
    let full = seal(&sealer, FROM, &next_key(), vec![]).await.unwrap_err();
    assert!(matches!(full, SealingError::TooManyUncertified { .. }), "{full}");
    let last = last.unwrap();
    node.accept_certificate(&certificate_of(&last)).await.unwrap();
    assert_eq!(node.certified().number, 2 * MAX_UNCERTIFIED_HEADERS as u64);
}

/// The last header of an epoch needs a certificate of its own: the next committee's covers none of it.
#[tokio::test]
async fn the_last_header_of_an_epoch_is_voted_for_whoever_sealed_it() {
    let l1 = l1_with_two();
    *l1.epochs.lock() = Epochs::new(vec![Epoch { last: 2, ..epoch() }]).unwrap();
    let node = tracker_on(memory(), &l1).await;
    let first = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    let last = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    *l1.finalized.lock() = FROM + HANDOVER_BLOCKS;
    node.epoch(1).await.unwrap();
    assert_eq!(node.may_be_voted_for(&first.header).await.unwrap_err().as_str(), "out_of_office");
    node.may_be_voted_for(&last.header).await.unwrap();
}

/// So does the last one of a rule set, which the sealer waits for before it seals the next.
#[tokio::test]
async fn the_last_header_of_a_rule_set_is_voted_for_whoever_sealed_it() {
    let l1 = l1_with_two();
    let rules = vec![RulesChange { first: 3, rules: 2 }];
    *l1.epochs.lock() = Epochs::new(vec![epoch()]).unwrap().with_rules(rules).unwrap();
    let node = tracker_on(memory(), &l1).await;
    let first = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    let last = seal(&node, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
    *l1.finalized.lock() = FROM + HANDOVER_BLOCKS;
    node.epoch(1).await.unwrap();
    assert!(node.rules_begin(3));
    assert_eq!(node.may_be_voted_for(&first.header).await.unwrap_err().as_str(), "out_of_office");
    node.may_be_voted_for(&last.header).await.unwrap();
}

/// Nobody makes a node ask L1 by a signature of his own.
#[tokio::test]
async fn a_strangers_header_costs_no_question_to_l1() {
    let l1 = l1_with_two();
    let node = tracker_on(memory(), &l1).await;
    let batch = seal(&tracker_on(memory(), &l1).await, FROM, &next_key(), vec![]).await.unwrap();
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    let mut far = (*batch).clone();
    far.header.l1_origin_number = u64::MAX;
    let refused = node.apply_sealed(&signed_by(&far, &payer(1))).await.unwrap_err();
    assert_eq!(refused.next_step(), NextStep::Reject, "{refused}");
}

/// With its key an earlier sequencer's headers still reach who follows it. They get no votes, and stand in nobody's way.
#[tokio::test]
async fn a_header_of_an_earlier_sequencer_gives_way_to_the_next_ones() {
    let l1 = l1_with_two();
    let (earlier, next) = (tracker_on(memory(), &l1).await, tracker_on(memory(), &l1).await);
    let node = tracker_on(memory(), &l1).await;
    for _ in 0..2 {
        let left = seal(&earlier, FROM - 1, &sequencer_key(), vec![]).await.unwrap();
        node.apply_sealed(&left).await.unwrap();
    }
    let sealed = seal(&next, FROM, &next_key(), vec![envelope(1, 1).encode()]).await.unwrap();
    let refused = node.apply_sealed(&sealed).await.unwrap_err();
    assert_eq!(refused.as_str(), "second_header", "members may still vote for the earlier one's");
    *l1.finalized.lock() = FROM + HANDOVER_BLOCKS;
    node.epoch(1).await.unwrap();
    assert!(node.apply_sealed(&sealed).await.unwrap().is_new());
    assert_eq!((node.head().number, node.head().hash), (1, sealed.header.hash()));
    node.may_be_voted_for(&sealed.header).await.unwrap();
    // What is certified gives way to nothing.
    node.accept_certificate(&certificate_of(&sealed)).await.unwrap();
    let other = signed_by(&sealed, &sequencer_key());
    assert!(node.apply_sealed(&other).await.is_err());
}

/// A header of L1's ended the epoch with number 1. Reading the registry takes longer than is waited for where something is
/// known: a header for the epoch that is over could never be taken back.
#[tokio::test]
async fn a_header_is_sealed_for_the_epoch_that_l1_names_at_its_origin() {
    let l1 = l1_with_two();
    let tracker = tracker_on(memory(), &l1).await;
    seal(&tracker, FROM, &next_key(), vec![]).await.unwrap();
    let (ended, next) = (Epoch { last: 1, ..epoch() }, Epoch { epoch: 2, first: 2, ..epoch() });
    *l1.epochs.lock() = Epochs::new(vec![ended, next]).unwrap();
    *l1.finalized.lock() = FROM + 1;
    l1.slow_ms.store(EPOCHS_PATIENCE_MS + 100, Ordering::SeqCst);
    let batch = seal(&tracker, FROM + 1, &next_key(), vec![]).await.unwrap();
    assert_eq!(batch.header.epoch, 2);
}

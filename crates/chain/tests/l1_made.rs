//! What L1 forces on the chain: forced items, L1 deposits, headers that L1 made, void runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use blindfold_chain::limits::POSTING_MARGIN;
use blindfold_chain::{
    AnnouncedEnd, CertificateOutcome, EnvelopeOutcome, ExecutionState, ExecutorStatus, HaltLimits, HeaderId,
    L1Error, NewBlock, NextStep, PendingFallbackHeader, ReadApi, ReadContext, RoleView, Sealed, SealingError,
    Settled, TrackerError, VoidRun,
};
use blindfold_engine::ExecutionClient;
use blindfold_kit::*;
use blindfold_protocol::validity::Verdict;
use blindfold_protocol::{B256, Canonical, CertifiedBatch, EnvelopeError, ForcedEntry, SealedBatch};
use blindfold_rpc::types::{BatchState, EnvelopeState};
use blindfold_rpc::{BlindApiServer, Hub};
use blindfold_store::Store;
use tokio::sync::broadcast;

async fn next_block(blocks: &mut broadcast::Receiver<Arc<NewBlock>>) -> Arc<NewBlock> {
    within("a block", blocks.recv()).await.expect("the executor lives")
}

struct Role;

impl RoleView for Role {
    fn role(&self) -> &'static str {
        "full_node"
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

fn reads(machine: &Machine) -> ReadApi {
    ReadApi::new(ReadContext {
        tracker: machine.tracker.clone(),
        parameters: parameter_set(),
        executor: machine.executor.clone(),
        hub: Hub::default(),
        role: Arc::new(Role),
    })
}

fn force_transaction(l1: &ScriptedL1, nonce: u64) -> ForcedEntry {
    l1.force(|index, at| ForcedEntry::transaction(index, 50_000, transaction(1, nonce), at))
}

fn force_envelope(l1: &ScriptedL1, nonce: u64) -> ForcedEntry {
    l1.force(|index, at| ForcedEntry::envelope(index, envelope(1, nonce).encode(), at))
}

#[tokio::test]
async fn forced_items_are_sealed_followed_and_executed() {
    let l1 = l1();
    force_transaction(&l1, 7);
    force_envelope(&l1, 8);
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let mut blocks = node.executor.subscribe();
    let sealed = sequencer.seal_forced(0, 2, vec![envelope(1, 9).encode()]).await;
    assert_eq!(
        sealed.verdicts,
        [Verdict::ForcedTransaction, Verdict::Accepted { position: 0 }, Verdict::Accepted { position: 1 }]
    );
    assert_eq!(sealed.batch.header.forced_cursor, 2);
    let closing = sequencer.seal(1_000, vec![]).await;
    for sealed in [&sealed, &closing] {
        node.take(sealed).await;
    }
    assert_eq!(node.tracker.head(), sequencer.tracker.head());
    node.hint(&sealed).await;
    let block = next_block(&mut blocks).await;
    let expected: Vec<_> = (7..=9).map(|nonce| alloy_primitives::keccak256(transaction(1, nonce))).collect();
    assert_eq!(block.details.transactions, expected);
    let first = block.details.envelope(1, 0).unwrap();
    assert_eq!((first.id, &first.outcome), (B256::ZERO, &EnvelopeOutcome::Executed));
    assert_eq!(first.transactions[0].hash, Some(expected[0]));
    // A restart reads the same verdicts.
    let again = node.tracker.apply_sealed(&sealed.batch).await.unwrap();
    assert_eq!(again.verdicts, sealed.verdicts);
}

#[tokio::test]
async fn zero_has_no_receipt_and_what_is_asked_for_twice_is_looked_up_once() {
    use blindfold_rpc::ReceiptApiServer as _;

    let (l1, store) = (l1(), FaultyStore::new(memory()));
    force_transaction(&l1, 7);
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(store.clone(), &l1, &ScriptedExecution::new()).await;
    let sealed = sequencer.seal_forced(0, 1, vec![envelope(1, 1).encode()]).await;
    node.take(&sealed).await;
    let (reads, id, before) = (reads(&node), envelope(1, 1).id(), store.calls("envelope_location"));
    let receipts = reads.get_receipts(vec![id, B256::ZERO, id]).await.unwrap();
    assert_eq!(store.calls("envelope_location"), before + 1);
    assert_eq!(receipts[0].as_ref().map(|receipt| receipt.state), Some(EnvelopeState::Certified));
    assert_eq!((&receipts[0], &receipts[1]), (&receipts[2], &None));
    assert_eq!(reads.get_receipt(B256::ZERO).await.unwrap(), None);
    assert_eq!(store.calls("envelope_location"), before + 1);
}

#[tokio::test]
async fn a_header_that_leaves_out_what_is_due_is_refused() {
    let l1 = l1();
    let entry = force_transaction(&l1, 7);
    let sequencer = Sealer::new(&l1).await;
    let due = entry.due_at(chain_config().timing.forced_delay);
    *l1.finalized.lock() = due;
    let (origin, key) = (l1_block(due), signer_of(&sequencer.tracker));
    let refused = sequencer.tracker.seal(START_MS, 0, vec![], &origin, &key).await.unwrap_err();
    assert!(matches!(refused, SealingError::Rule(fault) if fault.as_str() == "forced_item_ignored"));
    let ahead = sequencer.tracker.seal(START_MS, 2, vec![], &origin, &key).await.unwrap_err();
    assert!(matches!(ahead, SealingError::Rule(fault) if fault.as_str() == "forced_cursor_ahead"));
    // A sequencer that does not see the queue makes a header that a node refuses by name.
    l1.forced.lock().clear();
    let blind = sequencer.seal(0, vec![]).await;
    l1.forced.lock().push(entry);
    let node = tracker_on(memory(), &l1).await;
    let refused = node.apply_sealed(&blind.batch).await.unwrap_err();
    assert_eq!((refused.as_str(), refused.next_step()), ("forced_item_ignored", NextStep::Reject));
}

#[tokio::test]
async fn a_forced_transaction_alone_makes_a_block_without_hints() {
    let l1 = l1();
    l1.force(|index, at| ForcedEntry::transaction(index, 20_000, transaction(1, 1), at));
    force_transaction(&l1, 2);
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let mut blocks = node.executor.subscribe();
    let sealed = sequencer.seal_forced(0, 2, vec![]).await;
    let closing = sequencer.seal(1_000, vec![]).await;
    // Void or not: it needs no hints.
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    for sealed in [&sealed, &closing] {
        node.take(sealed).await;
    }
    let block = next_block(&mut blocks).await;
    let reasons = [0, 1].map(|index| {
        block.details.envelope(1, index).unwrap().transactions[0].skipped.clone().unwrap_or_default()
    });
    assert_eq!(reasons, ["gas_above_remaining", ""]);
    assert_eq!(block.details.transactions.len(), 1);
}

/// Rule X-4.
#[tokio::test]
async fn deposits_from_l1_come_first_and_make_a_block() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.sqlite");
    let raw: Vec<_>;
    {
        let node = Machine::start(disk(&path).await, &l1, &client).await;
        let mut blocks = node.executor.subscribe();
        raw = vec![l1.bridge(100), l1.bridge(200)];
        let empty = sequencer.seal(0, vec![]).await;
        assert_eq!(sequencer.tracker.head().second_gas, 0, "no sum over the second has them");
        let closing = sequencer.seal(1_000, vec![]).await;
        for sealed in [&empty, &closing] {
            node.take(sealed).await;
        }
        let block = next_block(&mut blocks).await;
        assert_eq!((block.record.number, block.record.first_batch), (1, 1));
        assert_eq!(client.executed.lock()[0].l1_deposits, raw);
        node.executor.stop().await;
    }
    // After a restart they do not come again; later ones do, with the batch's own transactions after them.
    let node = Machine::start(disk(&path).await, &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let later = l1.bridge(1);
    let full = sequencer.seal_envelopes(2_000, &[envelope(1, 1)]).await;
    let closing = sequencer.seal(3_000, vec![]).await;
    node.take(&full).await;
    node.hint(&full).await;
    node.take(&closing).await;
    next_block(&mut blocks).await;
    assert_eq!(client.executed.lock()[1].l1_deposits, [later]);
}

/// Rule O-7.
#[tokio::test]
async fn a_header_made_by_l1_moves_the_certified_head() {
    let l1 = l1();
    let entries = [force_transaction(&l1, 7), force_envelope(&l1, 8)];
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.sqlite");
    let made = truth.l1_header(5_000, entries.iter().map(|entry| entry.item.clone()).collect());
    let shown = other.seal_envelopes(250, &[envelope(1, 1)]).await;
    {
        let node = tracker_on(disk(&path).await, &l1).await;
        let behind = node.accept_l1_header(&made).await.unwrap_err();
        assert!(matches!(behind, TrackerError::Behind { expected: 1, offered: 2 }));
        node.accept_certified(&certified(&first.batch)).await.unwrap();
        // An uncertified header gives way to it; what nobody signed is believed only from L1.
        node.apply_sealed(&shown.batch).await.unwrap();
        let claimed = Arc::new(made.batch());
        let refused = node.apply_sealed(&claimed).await.unwrap_err();
        assert_eq!((refused.as_str(), refused.next_step()), ("not_made_by_l1", NextStep::Retry));
        assert!(node.follow_l1().await.unwrap().is_empty());
        l1.l1_headers.lock().push(made.clone());
        let watch = node.watch_certified();
        let taken = node.follow_l1().await.unwrap();
        assert_eq!(taken.len(), 1);
        assert!(watch.has_changed().unwrap());
        let verdicts = [Verdict::ForcedTransaction, Verdict::Skipped(EnvelopeError::Void)];
        assert_eq!(taken[0].1.verdicts, verdicts);
        assert!(!node.apply_sealed(&claimed).await.unwrap().is_new());
        assert!(node.follow_l1().await.unwrap().is_empty());
    }
    let node = tracker_on(disk(&path).await, &l1).await;
    let hash = made.header.hash();
    assert_eq!((node.certified().number, node.certified().hash), (2, hash));
    assert_eq!((node.head().number, node.head().forced_cursor), (2, 2));
    // The voided header is no second one, and its certificate says nothing.
    let replaced = |refusal: &TrackerError| {
        matches!(refusal, TrackerError::ReplacedByL1 { number: 2, made, .. } if *made == hash)
            && refusal.next_step() == NextStep::Reject
    };
    assert!(replaced(&node.apply_sealed(&shown.batch).await.unwrap_err()));
    assert!(replaced(&node.accept_certificate(&certificate_of(&shown.batch)).await.unwrap_err()));
    assert!(replaced(&node.accept_certified(&certified(&shown.batch)).await.unwrap_err()));
    let displaced = other.seal(500, vec![]).await;
    assert_eq!(
        node.accept_certified(&certified(&displaced.batch)).await.unwrap_err().as_str(),
        "wrong_parent"
    );
    // The chain goes on from what L1 made, with certificates.
    truth.tracker.accept_l1_header(&made).await.unwrap();
    let next = truth.seal(6_000, vec![]).await;
    let batch = CertifiedBatch { sealed: (*next.batch).clone(), certificate: certificate_of(&next.batch) };
    assert_eq!(node.accept_certified(&batch).await.unwrap().1, CertificateOutcome::Advanced);
    // Votes for what followed the voided header may come together late: nobody is at fault.
    for refused in [
        node.accept_certificate(&certificate_of(&displaced.batch)).await.unwrap_err(),
        node.accept_certified(&certified(&displaced.batch)).await.unwrap_err(),
    ] {
        assert!(replaced(&refused), "{refused}");
    }
    assert!(node.follow_l1().await.unwrap().is_empty());
}

/// G-1 over what keeps and hands on the state: L1's header itself, a restart, a node that comes later, and one that takes
/// its own header back.
#[tokio::test]
async fn what_l1_displaced_is_accepted_by_nobody_again() {
    let l1 = l1();
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    // Certified and opened somewhere, and never posted.
    let lost = other.seal_envelopes(250, &[envelope(1, 1)]).await;
    assert_eq!(lost.verdicts, [Verdict::Accepted { position: 0 }]);
    *l1.finalized.lock() += 1;
    let made = truth.l1_header(5_000, vec![]);
    l1.l1_headers.lock().push(made.clone());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.sqlite");
    {
        let node = tracker_on(disk(&path).await, &l1).await;
        node.accept_certified(&certified(&first.batch)).await.unwrap();
        node.follow_l1().await.unwrap();
    }
    truth.tracker.accept_l1_header(&made).await.unwrap();
    assert_eq!(truth.tracker.head().generation, 1);

    force_envelope(&l1, 2);
    let renewed = envelope_with(1, 3, |fields| fields.generation = 1);
    let items = vec![envelope(1, 1).encode(), renewed.encode()];
    let barred = Verdict::Skipped(EnvelopeError::WrongGeneration);
    let next = truth.seal_forced(6_000, 1, items).await;
    assert_eq!(next.verdicts, [barred, barred, Verdict::Accepted { position: 0 }]);
    // The same header and generation on a disk that was reopened, and at a node that has seen nothing of it.
    for (node, before) in
        [(tracker_on(disk(&path).await, &l1).await, 2), (tracker_on(memory(), &l1).await, 0)]
    {
        assert_eq!((node.head().number, node.head().generation), (before, u16::from(before > 0)));
        if before == 0 {
            node.accept_certified(&certified(&first.batch)).await.unwrap();
            node.follow_l1().await.unwrap();
        }
        node.apply_sealed(&next.batch).await.unwrap();
        assert_eq!(node.head(), truth.tracker.head());
    }
    // Taken back, a header leaves the generation that it was sealed in.
    l1.l1_headers.lock().clear();
    let late = tracker_on(memory(), &l1).await;
    late.accept_certified(&certified(&first.batch)).await.unwrap();
    late.apply_sealed(&lost.batch).await.unwrap();
    l1.l1_headers.lock().push(made);
    late.follow_l1().await.unwrap();
    assert_eq!((late.head().number, late.head().generation), (2, 1));
    late.apply_sealed(&next.batch).await.unwrap();
    assert_eq!(late.head(), truth.tracker.head());
}

/// Acknowledged before L1's header was taken here, it would be a misdeed with the one that follows L1's: nothing excuses
/// two headers of one number with origins after what L1 made.
#[tokio::test]
async fn a_header_that_passes_over_what_l1_made_is_refused() {
    let l1 = l1();
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.accept_certified(&certified(&first.batch)).await.unwrap();
    node.apply_sealed(&other.seal(250, vec![]).await.batch).await.unwrap();
    *l1.finalized.lock() += 1;
    let made = truth.l1_header(5_000, vec![]);
    l1.l1_headers.lock().push(made.clone());
    let shown = other.seal(500, vec![]).await;
    let refused = node.apply_sealed(&shown.batch).await.unwrap_err();
    assert_eq!((refused.as_str(), refused.next_step()), ("replaced_by_l1", NextStep::Reject));
    assert_eq!(node.follow_l1().await.unwrap().len(), 1);
    truth.tracker.accept_l1_header(&made).await.unwrap();
    let next = truth.seal(6_000, vec![]).await;
    assert!(node.apply_sealed(&next.batch).await.unwrap().is_new());
}

/// A certificate that came after L1's header and before that is final would be void for everybody who took it.
#[tokio::test]
async fn what_l1_went_past_is_certified_only_if_l1_takes_its_header_back() {
    let l1 = l1();
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    let (lost, child) = (other.seal(250, vec![]).await, other.seal(500, vec![]).await);
    let made = truth.l1_header(5_000, vec![]);
    let pending = not_final(HeaderId { number: 2, hash: made.header.hash() });
    let node = tracker_on(memory(), &l1).await;
    node.accept_certified(&certified(&first.batch)).await.unwrap();
    for sealed in [&lost, &child] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    l1.not_final.lock().push(pending);
    assert!(node.follow_l1().await.unwrap().is_empty(), "L1 may take it back");
    let overruled = |refusal: TrackerError| {
        assert_eq!((refusal.as_str(), refusal.next_step()), ("overruled_by_l1", NextStep::Retry));
        assert!(
            matches!(refusal, TrackerError::OverruledByL1 { number: 2, made } if made == pending.header.hash)
        );
    };
    // Neither its own certificate, nor one of what follows it, in whatever way it comes.
    for sealed in [&lost, &child] {
        overruled(node.may_be_certified(sealed.batch.header.number).await.unwrap_err());
        overruled(node.accept_certificate(&certificate_of(&sealed.batch)).await.unwrap_err());
        overruled(node.accept_certified(&certified(&sealed.batch)).await.unwrap_err());
    }
    assert_eq!((node.certified().number, node.head().hash), (1, child.hash), "nothing was taken back");
    // It is final now, and nobody has followed it yet.
    l1.not_final.lock().clear();
    l1.l1_headers.lock().push(made.clone());
    let fresh = tracker_on(memory(), &l1).await;
    for sealed in [&first, &lost] {
        fresh.apply_sealed(&sealed.batch).await.unwrap();
    }
    fresh.accept_certificate(&certificate_of(&first.batch)).await.unwrap();
    overruled(fresh.accept_certificate(&certificate_of(&lost.batch)).await.unwrap_err());
    assert_eq!(node.follow_l1().await.unwrap().len(), 1);
    // L1 has made another one since, and the certificate is for more than the number that it made first.
    truth.tracker.accept_l1_header(&made).await.unwrap();
    let child_of_l1 = truth.l1_header(6_000, vec![]);
    l1.l1_headers.lock().push(child_of_l1);
    let behind = tracker_on(memory(), &l1).await;
    let run = [Arc::clone(&first.batch), Arc::clone(&lost.batch)];
    overruled(behind.accept_certified_run(&run, &certificate_of(&lost.batch)).await.unwrap_err());
    assert_eq!(behind.head().number, 0);
    assert_eq!(
        behind.accept_certified_run(&run[..1], &certificate_of(&first.batch)).await.unwrap().0.len(),
        1
    );
    assert_eq!(behind.follow_l1().await.unwrap().len(), 2);
    // And here L1 took it back.
    let other_l1 = blindfold_kit::l1();
    other_l1.not_final.lock().push(pending);
    let node = tracker_on(memory(), &other_l1).await;
    for sealed in [&first, &lost] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    node.accept_certificate(&certificate_of(&first.batch)).await.unwrap();
    overruled(node.accept_certificate(&certificate_of(&lost.batch)).await.unwrap_err());
    other_l1.not_final.lock().clear();
    other_l1.shown.lock().insert(pending.l1_block, B256::repeat_byte(0xbb));
    assert!(node.follow_l1().await.unwrap().is_empty());
    let outcome = node.accept_certificate(&certificate_of(&lost.batch)).await.unwrap();
    assert_eq!(outcome, CertificateOutcome::Advanced);
    // An L1 that does not answer holds nobody up.
    let away = blindfold_kit::l1();
    let node = tracker_on(memory(), &away).await;
    for sealed in [&first, &lost] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    *away.fault.lock() = Some(L1Error::no_answer("away"));
    let outcome = node.accept_certificate(&certificate_of(&lost.batch)).await.unwrap();
    assert_eq!(outcome, CertificateOutcome::Advanced);
}

/// What L1 made in its block 9, which is not final.
fn not_final(header: HeaderId) -> PendingFallbackHeader {
    PendingFallbackHeader { header, l1_block: 9, l1_hash: B256::repeat_byte(0xaa) }
}

/// O-1: only another block in the place of the one that made it says that L1 took a header back.
#[tokio::test]
async fn a_server_that_lags_behind_makes_nobody_forget_what_l1_made() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let sealed = sequencer.seal(0, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.apply_sealed(&sealed.batch).await.unwrap();
    let made = not_final(HeaderId { number: 1, hash: B256::repeat_byte(0x11) });
    l1.not_final.lock().push(made);
    l1.shown.lock().insert(made.l1_block, made.l1_hash);
    node.follow_l1().await.unwrap();
    let overruled = async |why: &str| {
        let refused = node.may_be_certified(1).await.unwrap_err();
        assert!(matches!(refused, TrackerError::OverruledByL1 { number: 1, .. }), "{why}: {refused}");
    };
    overruled("it is there").await;
    // Whoever answers now has not seen that block, however often it is asked.
    l1.not_final.lock().clear();
    l1.shown.lock().clear();
    for _ in 0..5 {
        node.follow_l1().await.unwrap();
        overruled("nobody showed another block").await;
    }
    // The block is there, and the logs are another server's.
    l1.shown.lock().insert(made.l1_block, made.l1_hash);
    node.follow_l1().await.unwrap();
    overruled("its block is there").await;
    // Another block stands in its place.
    l1.shown.lock().insert(made.l1_block, B256::repeat_byte(0xbb));
    node.follow_l1().await.unwrap();
    node.may_be_certified(1).await.unwrap();
    // Final, and not among what L1 made: that is L1's last word.
    l1.not_final.lock().push(made);
    node.follow_l1().await.unwrap();
    l1.not_final.lock().clear();
    l1.shown.lock().clear();
    node.follow_l1().await.unwrap();
    overruled("not final").await;
    *l1.finalized.lock() = made.l1_block;
    node.follow_l1().await.unwrap();
    node.may_be_certified(1).await.unwrap();
}

/// Certified, it would only stand in the way of the header that L1 makes (C-4).
#[tokio::test]
async fn what_nobody_could_post_in_time_is_not_voted_for() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let first = sequencer.seal(0, vec![]).await;
    let node = tracker_on(memory(), &l1).await;
    node.apply_sealed(&first.batch).await.unwrap();
    let origin = first.batch.header.l1_origin_number;
    let deadline = u64::from(node.config().timing.posting_deadline);
    *l1.finalized.lock() = origin + deadline - deadline / POSTING_MARGIN;
    node.follow_l1().await.unwrap();
    node.may_be_certified(1).await.unwrap();
    *l1.finalized.lock() += 1;
    sequencer.tracker.follow_l1().await.unwrap();
    node.follow_l1().await.unwrap();
    // Nor what follows it, however new its origin.
    let second = sequencer.seal(3_000_000, vec![]).await;
    node.apply_sealed(&second.batch).await.unwrap();
    for number in [1, 2] {
        let refused = node.may_be_certified(number).await.unwrap_err();
        assert_eq!((refused.as_str(), refused.next_step()), ("too_old_for_l1", NextStep::Retry));
        assert!(matches!(refused, TrackerError::TooOldForL1 { number: 1, .. }), "{refused}");
    }
    // Whoever certified it all the same had the means to post it.
    let outcome = node.accept_certificate(&certificate_of(&first.batch)).await.unwrap();
    assert_eq!(outcome, CertificateOutcome::Advanced);
    node.may_be_certified(2).await.unwrap();
}

/// Once the end of its epoch is due L1 takes nothing certified of it, however young it is (E-11).
#[tokio::test]
async fn what_may_not_be_posted_before_its_epoch_ends_gets_no_vote() {
    const CLOSED: u64 = 9_000;
    const SETTLED: u64 = 9_500;
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = tracker_on(memory(), &l1).await;
    let at = async |l1_block: u64| {
        *l1.finalized.lock() = l1_block;
        node.follow_l1().await.unwrap();
    };
    // A quarter of its notice is less than an eighth of the posting deadline.
    let end = AnnouncedEnd { epoch: 1, announced_at: 6_000, until: 10_000, for_silence: false };
    at(CLOSED - 1).await;
    let last = sequencer.seal(0, vec![]).await;
    at(CLOSED).await;
    let late = sequencer.seal(1_000, vec![]).await;
    for sealed in [&last, &late] {
        node.apply_sealed(&sealed.batch).await.unwrap();
    }
    let vote = async |sealed: &Sealed| {
        let vote = node.may_be_voted_for(&sealed.batch.header).await;
        vote.map_err(|refused| (refused.as_str(), refused.next_step()))
    };
    let refused = Err(("epoch_ends", NextStep::Retry));
    *l1.ending.lock() = Some(AnnouncedEnd { epoch: 2, ..end });
    at(CLOSED).await;
    assert_eq!((vote(&last).await, vote(&late).await), (Ok(()), Ok(())), "another epoch ends");
    *l1.ending.lock() = Some(end);
    at(CLOSED).await;
    assert_eq!((vote(&last).await, vote(&late).await), (Ok(()), refused));
    at(SETTLED - 1).await;
    assert_eq!(vote(&last).await, Ok(()), "its own origin decides");
    at(SETTLED).await;
    assert_eq!(vote(&last).await, refused);
    let uncertified = node.may_be_certified(1).await.unwrap_err();
    assert!(
        matches!(uncertified, TrackerError::EpochEnds { number: 1, epoch: 1, until: 10_000 }),
        "{uncertified}"
    );
    // Whoever certified it all the same had the means to post it.
    let outcome = node.accept_certificate(&certificate_of(&late.batch)).await.unwrap();
    assert_eq!(outcome, CertificateOutcome::Advanced);
    *l1.ending.lock() = None;
    at(SETTLED).await;
    let next = sequencer.seal(2_000, vec![]).await;
    node.apply_sealed(&next.batch).await.unwrap();
    assert_eq!(vote(&next).await, Ok(()), "it was taken back");
}

/// Rule O-8.
#[tokio::test]
async fn what_contradicts_a_certified_header_is_named() {
    let l1 = l1();
    let (truth, other) = (Sealer::new(&l1).await, Sealer::new(&l1).await);
    let first = truth.seal(0, vec![]).await;
    other.seal(0, vec![]).await;
    let made = truth.l1_header(5_000, vec![]);
    let shown = other.seal_envelopes(250, &[envelope(1, 1)]).await;
    let node = tracker_on(memory(), &l1).await;
    for sealed in [&first, &shown] {
        node.accept_certified(&certified(&sealed.batch)).await.unwrap();
    }
    let voided = |refusal: TrackerError| {
        assert_eq!((refusal.as_str(), refusal.next_step()), ("voided_by_l1", NextStep::Stop));
        assert!(matches!(refusal, TrackerError::VoidedByL1 { number: 2, .. }), "{refusal}");
    };
    voided(node.accept_l1_header(&made).await.unwrap_err());
    // One that L1 built on it, too.
    truth.tracker.accept_l1_header(&made).await.unwrap();
    let child = truth.l1_header(6_000, vec![]);
    voided(node.accept_l1_header(&child).await.unwrap_err());
    l1.l1_headers.lock().push(made.clone());
    voided(node.follow_l1().await.unwrap_err());
    assert_eq!(node.head().hash, shown.hash, "nothing was taken back");
    // And a header that L1 cannot have made of this chain.
    let fresh = tracker_on(memory(), &l1).await;
    fresh.apply_sealed(&first.batch).await.unwrap();
    let mut wrong = made;
    wrong.header.gas += 1;
    assert_eq!(fresh.accept_l1_header(&wrong).await.unwrap_err().as_str(), "wrong_gas");
    let mut other_parent = child;
    other_parent.header.number = 2;
    let refused = fresh.accept_l1_header(&other_parent).await.unwrap_err();
    assert!(matches!(refused, TrackerError::AncestorDiffers { number: 1, .. }));
    let unsigned = SealedBatch::by_l1(wrong.header, vec![]);
    let refused = fresh.apply_sealed(&Arc::new(unsigned)).await.unwrap_err();
    assert_eq!(refused.as_str(), "replaced_by_l1");
}

/// Rule ST-2.
#[tokio::test]
async fn forced_transactions_of_a_header_made_by_l1_execute_and_envelopes_are_void() {
    let l1 = l1();
    let entries = [force_transaction(&l1, 7), force_envelope(&l1, 8)];
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let mut blocks = node.executor.subscribe();
    let first = sequencer.seal(0, vec![]).await;
    node.take(&first).await;
    let items = entries.iter().map(|entry| entry.item.clone()).collect();
    for (ms, items) in [(5_000, items), (6_000, vec![])] {
        let made = sequencer.l1_header(ms, items);
        sequencer.tracker.accept_l1_header(&made).await.unwrap();
        node.tracker.accept_l1_header(&made).await.unwrap();
    }
    let block = next_block(&mut blocks).await;
    assert_eq!((block.record.first_batch, block.record.last_batch), (2, 2));
    assert_eq!(block.details.envelope(2, 0).unwrap().outcome, EnvelopeOutcome::Executed);
    let void = block.details.envelope(2, 1).unwrap();
    assert_eq!((void.id, &void.outcome), (B256::ZERO, &EnvelopeOutcome::Void));
    assert!(node.tracker.store().envelope_location(envelope(1, 8).id()).await.unwrap().is_none());
}

/// Rule VR-2.
#[tokio::test]
async fn a_forced_transaction_in_a_void_batch_executes() {
    let l1 = l1();
    force_transaction(&l1, 7);
    let sequencer = Sealer::new(&l1).await;
    let store = memory();
    let client = ScriptedExecution::new();
    let node = Machine::start(Arc::clone(&store), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let sealed = sequencer.seal_forced(0, 1, vec![envelope(1, 1).encode(), vec![9]]).await;
    let closing = sequencer.seal(1_000, vec![]).await;
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    for sealed in [&sealed, &closing] {
        node.take(sealed).await;
    }
    // Hints that come too late change nothing.
    let block = next_block(&mut blocks).await;
    assert_eq!(block.details.transactions.len(), 1);
    let outcomes = [0, 1, 2].map(|index| block.details.envelope(1, index).unwrap().outcome.clone());
    let skipped = EnvelopeOutcome::Skipped("undecodable".into());
    assert_eq!(outcomes, [EnvelopeOutcome::Executed, EnvelopeOutcome::Void, skipped]);
    let api = reads(&node);
    let batch = api.get_batch(1).await.unwrap().unwrap();
    assert_eq!(batch.state, BatchState::Void);
    assert_eq!(batch.verdicts[0].as_deref(), Some("forced_transaction"));
    let receipt = api.get_receipt(envelope(1, 1).id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.transactions), (EnvelopeState::Void, None));
    assert!(api.get_hints(1).await.unwrap().is_none());
    assert_eq!(api.get_status().await.unwrap().hinted, 1, "nobody is to make any");
    // A restart executes nothing else, and does not take it for a contradiction.
    node.executor.stop().await;
    let node = Machine::start(store, &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let full = sequencer.seal_envelopes(2_000, &[envelope(1, 2)]).await;
    let closing = sequencer.seal(3_000, vec![]).await;
    node.take(&full).await;
    node.hint(&full).await;
    node.take(&closing).await;
    assert_eq!(next_block(&mut blocks).await.details.transactions.len(), 1);
}

/// A node that executed batch 1, and 2 above it, when L1 declares batch 1 void; and its blocks from then on.
async fn voided_after_execution(
    l1: &Arc<ScriptedL1>,
    client: &Arc<ScriptedExecution>,
    store: Arc<dyn Store>,
) -> (Machine, ReadApi, broadcast::Receiver<Arc<NewBlock>>) {
    let sequencer = Sealer::new(l1).await;
    let node = Machine::start(store, l1, client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(1_000, &[envelope(1, 2)]).await;
    let three = sequencer.seal(2_000, vec![]).await;
    for sealed in [&one, &two, &three] {
        node.take(sealed).await;
    }
    for sealed in [&one, &two] {
        node.hint(sealed).await;
    }
    for number in [1, 2] {
        assert_eq!(next_block(&mut blocks).await.record.number, number);
    }
    let reads = reads(&node);
    let receipt = reads.get_receipt(envelope(1, 1).id()).await.ok().flatten().expect("its receipt");
    assert_eq!(receipt.state, EnvelopeState::Executed);
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    let full = sequencer.seal_envelopes(3_000, &[envelope(1, 3)]).await;
    node.take(&full).await;
    node.hint(&full).await;
    node.take(&sequencer.seal(4_000, vec![]).await).await;
    (node, reads, blocks)
}

/// Rule VR-2.
#[tokio::test]
async fn what_becomes_void_after_its_execution_is_taken_back_and_executed_anew() {
    let (l1, client, store) = (l1(), ScriptedExecution::new(), memory());
    let (node, reads, mut blocks) = voided_after_execution(&l1, &client, Arc::clone(&store)).await;
    // The block of batch 3 may have come before the news.
    let mut block = next_block(&mut blocks).await;
    while block.record.number != 1 {
        block = next_block(&mut blocks).await;
    }
    assert_eq!(block.details.envelope(1, 0).unwrap().outcome, EnvelopeOutcome::Void);
    for number in [2, 3] {
        block = next_block(&mut blocks).await;
        assert_eq!((block.record.number, block.details.transactions.len()), (number, 1));
    }
    let receipt = reads.get_receipt(envelope(1, 1).id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.transactions), (EnvelopeState::Void, None));
    let status = node.executor.status();
    assert!(status.taken_back_blocks >= 2 && !matches!(status.state, ExecutionState::Halted { .. }));
    assert_eq!(client.head().await.unwrap().hash, block.record.hash, "the client has the new blocks");
    assert_eq!(store.heads().await.unwrap().block, Some((3, block.record.hash)));
}

/// Rule VR-2. What is void is known late, and that the batch is final on L1 before: no mark may keep the client from taking
/// the block back.
#[tokio::test]
async fn no_block_is_marked_before_it_is_compared_with_what_is_void() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    for sealed in [&one, &two] {
        node.take(sealed).await;
    }
    node.hint(&one).await;
    assert_eq!(next_block(&mut blocks).await.record.number, 1);
    l1.set_down(true);
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    node.executor.settle(Settled { posted: 1, safe: 1, finalized: 1 }, 0);
    l1.set_down(false);
    node.executor.settle(Settled { posted: 2, safe: 2, finalized: 2 }, 0);
    let block = next_block(&mut blocks).await;
    assert_eq!(block.details.envelope(1, 0).unwrap().outcome, EnvelopeOutcome::Void);
    let mut status = node.executor.watch_status();
    let marked = Some((1, block.record.hash));
    within("the marks", status.wait_for(|status| status.finalized == marked)).await.unwrap();
    assert_eq!(*client.finality.lock(), Some((block.record.hash, block.record.hash)));
}

/// Rule VR-2. A client that is busy or away holds the way back up, and nobody is told meanwhile that it was executed.
#[tokio::test]
async fn the_receipt_of_what_became_void_says_so_before_its_block_is_taken_back() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    for sealed in [&one, &two] {
        node.take(sealed).await;
    }
    node.hint(&one).await;
    assert_eq!(next_block(&mut blocks).await.record.number, 1);
    client.down.store(true, Ordering::SeqCst);
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    node.executor.settle(Settled { posted: 1, safe: 1, finalized: 1 }, 0);
    let mut status = node.executor.watch_status();
    within("the news", status.wait_for(|status| !status.void_runs.is_empty())).await.unwrap();
    let reads = reads(&node);
    let receipt = reads.get_receipt(envelope(1, 1).id()).await.unwrap().unwrap();
    let told = (receipt.state, receipt.transactions, receipt.block_number);
    assert_eq!(told, (EnvelopeState::Void, None, None));
    client.down.store(false, Ordering::SeqCst);
    let block = next_block(&mut blocks).await;
    assert_eq!(block.details.envelope(1, 0).unwrap().outcome, EnvelopeOutcome::Void);
    let receipt = reads.get_receipt(envelope(1, 1).id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.block_hash), (EnvelopeState::Void, Some(block.record.hash)));
}

/// Rule VR-2. Killed when its disk has gone back, and its client has not.
#[tokio::test]
async fn a_node_killed_while_it_takes_blocks_back_goes_on_from_its_disk() {
    let (l1, client, store) = (l1(), ScriptedExecution::new(), memory());
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(Arc::clone(&store), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(1_000, &[envelope(1, 2)]).await;
    let three = sequencer.seal(2_000, vec![]).await;
    for sealed in [&one, &two, &three] {
        node.take(sealed).await;
    }
    for sealed in [&one, &two] {
        node.hint(sealed).await;
        next_block(&mut blocks).await;
    }
    node.executor.stop().await;
    store.revert_blocks(1).await.unwrap();
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    assert_eq!(client.head().await.unwrap().number, 2, "of the blocks of before");

    let node = Machine::start(Arc::clone(&store), &l1, &client).await;
    let mut status = node.executor.watch_status();
    let there = |status: &ExecutorStatus| status.block.is_some_and(|block| block.number == 2);
    let head = within("both blocks", status.wait_for(there)).await.unwrap().block.unwrap();
    assert_eq!(client.head().await.unwrap(), head);
    let receipt = reads(&node).get_receipt(envelope(1, 1).id()).await.unwrap().unwrap();
    assert_eq!(receipt.state, EnvelopeState::Void);
}

/// Rule VR-2. A start compares all void runs anew, and the batches of the first ones are pruned by then.
#[tokio::test]
async fn a_pruned_node_starts_with_void_runs_of_long_ago() {
    let (l1, client, store) = (l1(), ScriptedExecution::new(), memory());
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    store.bind(&chain_config().deployment, "full_node").await.unwrap();
    store.keep_ledgers_from(0).await.unwrap();
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(Arc::clone(&store), &l1, &client).await;
    for number in 1..=3 {
        let one = sequencer.seal_envelopes((number - 1) * 1_000, &[envelope(1, number)]).await;
        node.take(&one).await;
        if number > 1 {
            node.hint(&one).await;
        }
    }
    node.executed(2).await;
    node.executor.stop().await;
    store.keep_ledgers_from(3).await.unwrap();
    assert_eq!(store.prune(u64::MAX, 0).await.unwrap().through, 2);

    let node = Machine::start(store, &l1, &client).await;
    node.take(&sequencer.seal(3_000, vec![]).await).await;
    node.executed(3).await;
}

/// Rule VR-2. A block is taken back whole, so all of its batches have to be there.
#[tokio::test]
async fn a_pruned_node_takes_back_a_block_of_which_only_a_part_is_final() {
    let (l1, store) = (l1(), memory());
    store.bind(&chain_config().deployment, "full_node").await.unwrap();
    store.keep_ledgers_from(0).await.unwrap();
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(250, &[envelope(1, 2)]).await;
    for sealed in [&one, &two, &sequencer.seal(1_000, vec![]).await] {
        node.take(sealed).await;
    }
    for sealed in [&one, &two] {
        node.hint(sealed).await;
    }
    assert_eq!(next_block(&mut blocks).await.record.last_batch, 2);
    store.keep_ledgers_from(2).await.unwrap();
    store.prune(1, 0).await.unwrap();
    l1.void_runs.lock().push(VoidRun { first: 2, last: 2 });
    node.executor.settle(Settled { posted: 1, ..Settled::default() }, 0);
    let block = next_block(&mut blocks).await;
    let outcomes = [1, 2].map(|number| block.details.envelope(number, 0).unwrap().outcome.clone());
    assert_eq!(outcomes, [EnvelopeOutcome::Executed, EnvelopeOutcome::Void]);
}

async fn state(machine: &Machine, what: &str, mut holds: impl FnMut(&ExecutionState) -> bool) {
    let mut status = machine.executor.watch_status();
    within(what, status.wait_for(|status| holds(&status.state))).await.expect("the executor lives");
}

/// Rule VR-2. Two batches of one second: the first is opened, the second never gets hints, and L1 declares both void while
/// the node waits.
#[tokio::test]
async fn a_batch_opened_before_its_run_was_void_is_not_executed() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(250, &[envelope(1, 2)]).await;
    let closing = sequencer.seal(1_000, vec![]).await;
    for sealed in [&one, &two, &closing] {
        node.take(sealed).await;
    }
    node.hint(&one).await;
    state(&node, "waiting", |state| *state == ExecutionState::WaitingForHints { number: 2 }).await;
    l1.void_runs.lock().push(VoidRun { first: 1, last: 2 });
    let closes = sequencer.seal_envelopes(2_000, &[envelope(1, 3)]).await;
    node.take(&closes).await;
    node.executor.settle(Settled { posted: 1, ..Settled::default() }, 0);
    // A block without anything to execute is left out, so the next one tells what stood in this second.
    node.hint(&closes).await;
    node.take(&sequencer.seal(3_000, vec![]).await).await;
    let block = next_block(&mut blocks).await;
    for number in [1, 2] {
        assert_eq!(block.details.envelope(number, 0).unwrap().outcome, EnvelopeOutcome::Void);
    }
    assert!(block.details.transactions.is_empty());
}

/// What is executed on a block that is void is wrong as well: where it cannot be taken back, the role ends.
#[tokio::test]
async fn nothing_is_executed_on_a_void_block_that_cannot_be_taken_back() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    client.final_number.store(1, Ordering::SeqCst);
    let sequencer = Sealer::new(&l1).await;
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 1, exit_ms: 300 };
    let node = Machine::start_with(memory(), &l1, &client, halt).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    for sealed in [&one, &two] {
        node.take(sealed).await;
    }
    node.hint(&one).await;
    next_block(&mut blocks).await;
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    state(&node, "the halt", |state| matches!(state, ExecutionState::Halted { .. })).await;
    for second in 2..6 {
        let next = sequencer.seal_envelopes(second * 1_000, &[envelope(1, second)]).await;
        node.take(&next).await;
        node.hint(&next).await;
    }
    within("the end", node.executor.ended()).await;
    assert_eq!(node.executor.status().block.map(|block| block.number), Some(1));
}

#[tokio::test]
async fn a_halt_that_l1_caused_is_over_when_l1_is_well_whatever_is_waited_for() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 1, exit_ms: 600_000 };
    let node = Machine::start_with(memory(), &l1, &ScriptedExecution::new(), halt).await;
    for sealed in [sequencer.seal_envelopes(0, &[envelope(1, 1)]).await, sequencer.seal(1_000, vec![]).await]
    {
        node.take(&sealed).await;
    }
    let waits = |state: &ExecutionState| *state == ExecutionState::WaitingForHints { number: 1 };
    state(&node, "waiting", waits).await;
    *l1.fault.lock() = Some(L1Error::nonsense("scripted"));
    state(&node, "the halt", |state| matches!(state, ExecutionState::Halted { .. })).await;
    *l1.fault.lock() = None;
    state(&node, "waiting again", waits).await;
}

/// Marks that were on disk before a start are of an L1 block that the server of after it may not have yet.
#[tokio::test]
async fn marks_wait_for_an_l1_that_is_as_far_as_they_are() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    for sealed in [&one, &sequencer.seal(1_000, vec![]).await] {
        node.take(sealed).await;
    }
    node.hint(&one).await;
    next_block(&mut blocks).await;
    let (as_of, asked) = (*l1.finalized.lock() + 64, l1.asked.load(Ordering::SeqCst));
    node.executor.settle(Settled { posted: 2, safe: 2, finalized: 2 }, as_of);
    let answered = async {
        while l1.asked.load(Ordering::SeqCst) == asked {
            tokio::task::yield_now().await;
        }
    };
    within("an answer of a server that is behind", answered).await;
    l1.advance(64);
    l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    node.executor.settle(Settled { posted: 3, safe: 2, finalized: 2 }, as_of);
    let block = next_block(&mut blocks).await;
    assert_eq!(block.details.envelope(1, 0).unwrap().outcome, EnvelopeOutcome::Void);
    let mut status = node.executor.watch_status();
    let marked = Some((1, block.record.hash));
    within("the marks", status.wait_for(|status| status.finalized == marked)).await.unwrap();
}

/// Rule VR-2.
#[tokio::test]
async fn what_the_client_holds_for_final_is_not_taken_back() {
    let (l1, client) = (l1(), ScriptedExecution::new());
    client.final_number.store(1, Ordering::SeqCst);
    let (node, _, _blocks) = voided_after_execution(&l1, &client, memory()).await;
    let mut status = node.executor.watch_status();
    let halted = |state: &ExecutionState| matches!(state, ExecutionState::Halted { reason } if reason.contains("batch 1 void") && reason.contains("holds block 1 for final"));
    within("the halt", status.wait_for(|status| halted(&status.state))).await.unwrap();
}

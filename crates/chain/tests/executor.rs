//! The executor: seconds, skips, a client that fails or loses its head, restarts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blindfold_chain::{
    EnvelopeOutcome, ExecutionState, HaltLimits, L1Error, NewBlock, Sealed, announce, warm_up,
};
use blindfold_engine::ExecutionClient;
use blindfold_kit::*;
use blindfold_protocol::block::prev_randao;
use blindfold_protocol::{Bundle, BundleItem};
use blindfold_rpc::FeedEvent;
use tokio::sync::broadcast;

async fn next_block(blocks: &mut broadcast::Receiver<Arc<NewBlock>>) -> Arc<NewBlock> {
    within("a block", blocks.recv()).await.expect("the executor lives")
}

async fn state(machine: &Machine, what: &str, holds: impl FnMut(&ExecutionState) -> bool) {
    let mut holds = holds;
    let mut status = machine.executor.watch_status();
    within(what, status.wait_for(|status| holds(&status.state))).await.expect("the executor lives");
}

/// Takes batches with certificates and honest hints.
async fn feed(machine: &Machine, batches: &[&Sealed]) {
    for sealed in batches {
        machine.take(sealed).await;
        if sealed.verdicts.iter().any(|verdict| verdict.is_accepted()) {
            machine.hint(sealed).await;
        }
    }
}

/// Rule X-2.
#[tokio::test]
async fn a_second_closes_with_the_first_certified_header_of_a_later_one() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1), envelope(1, 2)]).await;
    let two = sequencer.seal_envelopes(250, &[envelope(1, 3)]).await;
    let later = sequencer.seal_envelopes(2_000, &[envelope(1, 4)]).await;
    let closing = sequencer.seal(3_000, vec![]).await;

    feed(&node, &[&one, &two]).await;
    // The header of a later second is here but not certified: the second stays open.
    node.tracker.apply_sealed(&later.batch).await.unwrap();
    assert!(client.executed.lock().is_empty());
    node.take(&later).await;
    let block = next_block(&mut blocks).await;
    assert_eq!((block.record.number, block.record.first_batch, block.record.last_batch), (1, 1, 2));
    assert_eq!(block.record.second, START_MS / 1_000);
    let expected: Vec<_> = (1..=3).map(|nonce| alloy_primitives::keccak256(transaction(1, nonce))).collect();
    assert_eq!(block.details.transactions, expected);

    // The next second has all certificates and waits for its hints alone.
    node.take(&closing).await;
    state(&node, "waiting for hints", |state| *state == ExecutionState::WaitingForHints { number: 3 }).await;
    node.hint(&later).await;
    let block = next_block(&mut blocks).await;
    assert_eq!((block.record.number, block.record.first_batch, block.record.last_batch), (2, 3, 3));

    let inputs = client.executed.lock().clone();
    assert_eq!(inputs[0].timestamp, START_MS / 1_000);
    assert_eq!(inputs[0].prev_randao, prev_randao(&two.hash));
    assert_eq!(inputs[0].fee_recipient, chain_config().fee_recipient);
    assert_eq!(inputs[0].gas_limit, chain_config().block_gas_limit);
    assert_eq!(inputs[0].l1_origin, l1_block(2));
    assert!(inputs[0].l1_deposits.is_empty());
    assert_eq!(inputs.iter().map(|inputs| inputs.sequence_number).collect::<Vec<_>>(), vec![0, 1]);
    assert_eq!(node.executor.status().last_batch, 3);
    node.executor.stop().await;
    assert_eq!(node.executor.status().state, ExecutionState::Stopped);
}

#[tokio::test]
async fn seconds_without_accepted_items_make_no_block() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let empty = sequencer.seal(0, vec![]).await;
    let garbage = sequencer.seal(1_000, vec![vec![1, 2, 3]]).await;
    // A new origin begins the sequence numbers anew.
    l1.deposit(payer(1).address(), 1);
    let full =
        sequencer.seal(2_000, vec![vec![9], blindfold_protocol::Canonical::encode(&envelope(1, 1))]).await;
    let closing = sequencer.seal(3_000, vec![]).await;
    feed(&node, &[&empty, &garbage, &full, &closing]).await;
    let block = next_block(&mut blocks).await;
    assert_eq!((block.record.number, block.record.first_batch), (1, 3));
    assert_eq!(block.details.l1_origin_number, 3);
    assert_eq!(block.details.envelopes[0].outcome, EnvelopeOutcome::Skipped("undecodable".into()));
    assert_eq!(client.executed.lock().len(), 1);
}

#[tokio::test]
async fn every_kind_of_skip_is_told() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    client.refused.lock().insert(transaction(1, 11).into());
    let node = Machine::start(memory(), &l1, &client).await;
    let mut blocks = node.executor.subscribe();
    let many = Bundle {
        items: vec![
            BundleItem::transaction(transaction(1, 10)),
            BundleItem::transaction(transaction(1, 11)),
            BundleItem::transaction(transaction_on(CHAIN_ID + 1, 1, 12)),
            BundleItem::transaction(vec![0xff, 1, 2]),
            BundleItem { kind: 3, bytes: vec![1] },
            BundleItem::confidential([1]),
            BundleItem::transaction(transaction(1, 13)),
        ],
    };
    let tight = envelope_of(1, 5, &many, |fields| fields.gas_limit = 50_000);
    let envelopes = [tight, malformed(1, 6), envelope(1, 1), envelope(1, 1)];
    let sealed = sequencer.seal_envelopes(0, &envelopes).await;
    let closing = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&sealed, &closing]).await;
    let block = next_block(&mut blocks).await;

    let first = block.details.envelope(1, 0).unwrap();
    assert_eq!((first.id, &first.outcome), (envelopes[0].id(), &EnvelopeOutcome::Executed));
    let reasons: Vec<_> = first.transactions.iter().map(|inner| inner.skipped.as_deref()).collect();
    assert_eq!(
        reasons,
        vec![
            None,
            Some("nonce_too_low"),
            Some("wrong_chain_id"),
            Some("undecodable"),
            Some("reserved_kind"),
            Some("confidential"),
            Some("gas_above_remaining"),
        ]
    );
    let hashes: Vec<_> = first.transactions.iter().map(|inner| inner.hash.is_some()).collect();
    assert_eq!(hashes, vec![true, true, true, false, false, true, true]);
    assert_eq!(block.details.envelope(1, 1).unwrap().outcome, EnvelopeOutcome::Malformed);
    assert_eq!(block.details.envelope(1, 2).unwrap().outcome, EnvelopeOutcome::Executed);
    assert_eq!(block.details.envelope(1, 3).unwrap().outcome, EnvelopeOutcome::Skipped("duplicate".into()));
    assert!(block.details.envelope(1, 4).is_none());

    let FeedEvent::Block(announced) = announce::block(&block) else { panic!("a block") };
    assert_eq!(announced.transactions.len(), 2);
    let skipped: Vec<_> =
        announced.skipped.iter().map(|skipped| (skipped.index, skipped.reason.as_str())).collect();
    assert_eq!(
        skipped,
        vec![
            (Some(1), "nonce_too_low"),
            (Some(2), "wrong_chain_id"),
            (Some(3), "undecodable"),
            (Some(4), "reserved_kind"),
            (Some(5), "confidential"),
            (Some(6), "gas_above_remaining"),
            (None, "duplicate"),
        ]
    );
}

#[tokio::test]
async fn a_message_that_is_no_bundle_skips_its_envelope() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let mut blocks = node.executor.subscribe();
    // A message of the right length, encrypted as any other, which no bundle encodes to.
    let whole = envelope(1, 1);
    let mut rng = <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::seed_from_u64(4);
    let (ciphertext, proof, _) = committee()
        .encryption_key
        .encrypt(&whole.header.hash().0, &[0xee; 256], b"secret", &mut rng)
        .unwrap();
    let garbage = blindfold_protocol::Envelope::sign(whole.header, ciphertext, proof, &payer(1));
    let sealed = sequencer.seal_envelopes(0, &[garbage]).await;
    assert!(sealed.verdicts[0].is_accepted());
    let closing = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&sealed, &closing]).await;
    let block = next_block(&mut blocks).await;
    assert_eq!(block.details.envelopes[0].outcome, EnvelopeOutcome::Skipped("bad_bundle".into()));
}

#[tokio::test]
async fn a_client_that_is_away_is_waited_for() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    client.down.store(true, Ordering::SeqCst);
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&one, &two]).await;
    state(&node, "a retry", |state| matches!(state, ExecutionState::Retrying { .. })).await;
    // Headers go on meanwhile.
    let three = sequencer.seal_envelopes(2_000, &[envelope(1, 2)]).await;
    feed(&node, &[&three]).await;
    assert_eq!(node.tracker.certified().number, 3);
    client.down.store(false, Ordering::SeqCst);
    node.executed(1).await;
    assert!(node.executor.status().retries > 0);
}

#[tokio::test]
async fn l1_that_lags_behind_the_committee_is_waited_for() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&one]).await;
    node.take(&two).await;
    node.executed(1).await;
    // The next second's origin, a new one, is unknown when it is to be executed.
    *l1.finalized.lock() += 1;
    let newest = *l1.finalized.lock();
    let three = sequencer.seal_envelopes(2_000, &[envelope(1, 2)]).await;
    let four = sequencer.seal(3_000, vec![]).await;
    node.take(&three).await;
    // Before the second is closed: from then on the block's origin is looked up.
    *l1.finalized.lock() = newest - 1;
    node.take(&four).await;
    node.hint(&three).await;
    state(
        &node,
        "a retry",
        |state| matches!(state, ExecutionState::Retrying { reason } if reason.contains("final")),
    )
    .await;
    *l1.finalized.lock() = newest;
    node.executed(2).await;
}

#[tokio::test]
async fn a_client_that_lost_its_head_gets_it_back() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    let mut sealed = Vec::new();
    for second in 0..4 {
        sealed.push(sequencer.seal_envelopes(second * 1_000, &[envelope(1, second + 1)]).await);
        sequencer.certify(sealed.last().unwrap()).await;
    }
    feed(&node, &sealed.iter().collect::<Vec<_>>()).await;
    node.executed(3).await;
    let head = client.head_now();
    client.lose_blocks_above(1);
    // With the next block to execute, the parent is missing.
    let closing = sequencer.seal(4_000, vec![]).await;
    feed(&node, &[&closing]).await;
    node.executed(4).await;
    assert_eq!(client.imported.load(Ordering::SeqCst), 2);
    assert_eq!(node.executor.status().replayed_blocks, 2);
    // While nothing is to be executed, an idle look notices as well.
    client.lose_blocks_above(2);
    within("a replay", async {
        while client.head_now().number < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_ne!(client.head_now(), head);
}

#[tokio::test]
async fn a_client_far_ahead_of_the_records_goes_back_and_is_given_the_same_blocks_again() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    *client.states.lock() = Some(3);
    let mut sealed = Vec::new();
    for second in 0..8 {
        sealed.push(sequencer.seal_envelopes(second * 1_000, &[envelope(1, second + 1)]).await);
        sequencer.certify(sealed.last().unwrap()).await;
    }
    sealed.push(sequencer.seal(8_000, vec![]).await);
    let all: Vec<_> = sealed.iter().collect();
    let node = Machine::start(memory(), &l1, &client).await;
    feed(&node, &all).await;
    node.executed(8).await;
    node.executor.stop().await;
    let head = client.head_now();

    // Records that end two blocks in, as a backup's do; the client keeps what it has.
    let store = memory();
    let before = Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await;
    feed(&before, &all[..3]).await;
    before.executed(2).await;
    before.executor.stop().await;
    let node = Machine::start(store, &l1, &client).await;
    feed(&node, &all[3..]).await;
    node.executed(8).await;
    assert_eq!(client.head_now(), head);
    node.executor.stop().await;

    // With none at all somebody may have mistaken the folder: the client keeps what it has, and a person looks.
    let node = Machine::start(memory(), &l1, &client).await;
    feed(&node, &all).await;
    halts_with(&node, "no records").await;
    assert_eq!(client.head_now(), head);
}

#[tokio::test]
async fn a_client_that_builds_something_else_stops_execution_alone() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    client.give_up.store(true, Ordering::SeqCst);
    let node = Machine::start(memory(), &l1, &client).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&one, &two]).await;
    state(
        &node,
        "the halt",
        |state| matches!(state, ExecutionState::Halted { reason } if reason.contains("transactions")),
    )
    .await;
    let three = sequencer.seal_envelopes(2_000, &[envelope(1, 2)]).await;
    feed(&node, &[&three]).await;
    assert_eq!(node.tracker.certified().number, 3);
    // It stops on request like any other, and the reason stays to be read.
    node.executor.stop().await;
    assert!(matches!(node.executor.status().state, ExecutionState::Halted { .. }));
}

/// A halt was for good: execution stood until somebody restarted the process.
#[tokio::test]
async fn what_halted_execution_is_tried_again() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    client.give_up.store(true, Ordering::SeqCst);
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 5, exit_ms: 600_000 };
    let node = Machine::start_with(memory(), &l1, &client, halt).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(1_000, &[envelope(1, 2)]).await;
    let three = sequencer.seal(2_000, vec![]).await;
    feed(&node, &[&one, &two]).await;
    halts_with(&node, "transactions").await;
    client.give_up.store(false, Ordering::SeqCst);
    node.executed(1).await;
    feed(&node, &[&three]).await;
    node.executed(2).await;
    state(&node, "it waits again", |state| *state == ExecutionState::Waiting).await;
}

#[tokio::test]
async fn a_halt_that_does_not_pass_ends_the_executor() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    client.give_up.store(true, Ordering::SeqCst);
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 1, exit_ms: 20 };
    let node = Machine::start_with(memory(), &l1, &client, halt).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;
    feed(&node, &[&one, &two]).await;
    let why = within("its end", node.executor.ended()).await;
    assert!(why.contains("transactions"), "{why}");
    assert!(matches!(node.executor.status().state, ExecutionState::Halted { .. }), "what shows stays");
}

/// Where nothing is to be executed, an answer of L1 that is of no use now and then is none that does not pass.
#[tokio::test]
async fn halts_that_passed_do_not_add_up_on_an_idle_chain() {
    let l1 = l1();
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 1, exit_ms: 20 };
    let node = Machine::start_with(memory(), &l1, &ScriptedExecution::new(), halt).await;
    for _ in 0..2 {
        *l1.fault.lock() = Some(L1Error::nonsense("scripted"));
        halts_with(&node, "scripted").await;
        *l1.fault.lock() = None;
        state(&node, "it waits again", |state| *state == ExecutionState::Waiting).await;
    }
}

/// A server behind the endpoint that is on another fork than the block that it is asked about refuses, and the next one
/// does not.
#[tokio::test]
async fn an_error_of_l1_that_may_pass_is_waited_out() {
    for question in ["origin", "bridge_deposits"] {
        let l1 = l1();
        let sequencer = Sealer::new(&l1).await;
        let halt = HaltLimits { pause_ms: 1, max_pause_ms: 1, exit_ms: 20 };
        let node = Machine::start_with(memory(), &l1, &ScriptedExecution::new(), halt).await;
        let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
        let two = sequencer.seal(1_000, vec![]).await;
        feed(&node, &[&one]).await;
        // Asked again when the second is closed.
        *l1.fault_of.lock() = Some((question, L1Error::refused("scripted")));
        feed(&node, &[&two]).await;
        state(&node, question, |state| match state {
            ExecutionState::Retrying { reason } => reason.contains("scripted"),
            ExecutionState::Halted { reason } => panic!("{question}: execution halted: {reason}"),
            _ => false,
        })
        .await;
        *l1.fault_of.lock() = None;
        node.executed(1).await;
    }
}

/// Every batch asked L1 whether it was void, so that an outage stopped execution with the first.
#[tokio::test]
async fn execution_goes_on_while_l1_is_away() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(1_000, &[envelope(1, 2)]).await;
    let three = sequencer.seal_envelopes(2_000, &[envelope(1, 3)]).await;
    let four = sequencer.seal(3_000, vec![]).await;
    feed(&node, &[&one, &two]).await;
    node.executed(1).await;
    *l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    feed(&node, &[&three, &four]).await;
    node.executed(3).await;
}

#[tokio::test]
async fn a_restart_goes_on_where_execution_stood() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let client = ScriptedExecution::new();
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal_envelopes(1_000, &[envelope(1, 2)]).await;
    let three = sequencer.seal_envelopes(2_000, &[envelope(1, 3)]).await;
    let four = sequencer.seal(3_000, vec![]).await;
    {
        let node = Machine::start(disk(&path).await, &l1, &client).await;
        feed(&node, &[&one, &two]).await;
        node.executed(1).await;
        // Certified and hinted on disk, not executed: the second is still open.
        feed(&node, &[&three]).await;
        node.executed(2).await;
        node.executor.stop().await;
    }
    // The client lost everything meanwhile.
    client.lose_blocks_above(0);
    let node = Machine::start(disk(&path).await, &l1, &client).await;
    node.take(&four).await;
    node.executed(3).await;
    assert_eq!(client.imported.load(Ordering::SeqCst), 2);
    let numbers: Vec<_> = client.executed.lock().iter().map(|inputs| inputs.sequence_number).collect();
    assert_eq!(numbers, vec![0, 1, 2]);

    // Another node on another client computes the same blocks.
    let other = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    feed(&other, &[&one, &two, &three, &four]).await;
    other.executed(3).await;
    assert_eq!(other.executor.status().block, node.executor.status().block);
}

async fn halts_with(node: &Machine, words: &str) {
    state(node, words, |state| matches!(state, ExecutionState::Halted { reason } if reason.contains(words)))
        .await;
}

#[tokio::test]
async fn each_fault_that_stops_execution_is_named() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let one = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let two = sequencer.seal(1_000, vec![]).await;

    // The client is of another version, until it is replaced.
    let client = ScriptedExecution::new();
    client.other_rules.store(true, Ordering::SeqCst);
    let halt = HaltLimits { pause_ms: 1, max_pause_ms: 5, exit_ms: 600_000 };
    let node = Machine::start_with(memory(), &l1, &client, halt).await;
    feed(&node, &[&one, &two]).await;
    halts_with(&node, "skip rule differs from ours: scripted: not the rules of chain").await;
    assert!(client.executed.lock().is_empty());
    client.other_rules.store(false, Ordering::SeqCst);
    node.executed(1).await;

    // The client names a transaction outside the list.
    let client = ScriptedExecution::new();
    client.skips_outside.store(true, Ordering::SeqCst);
    let node = Machine::start(memory(), &l1, &client).await;
    feed(&node, &[&one, &two]).await;
    halts_with(&node, "skipped transaction 1 of a list of 1").await;

    // The client has no genesis.
    let client = Arc::new(ScriptedExecution::default());
    let node = Machine::start(memory(), &l1, &client).await;
    feed(&node, &[&one, &two]).await;
    halts_with(&node, "no block 0").await;

    // The client forgets what it was just given, again and again.
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    let (three, four) =
        (sequencer.seal_envelopes(2_000, &[envelope(1, 3)]).await, sequencer.seal(3_000, vec![]).await);
    feed(&node, &[&one, &two, &three]).await;
    node.executed(1).await;
    client.forgets.store(true, Ordering::SeqCst);
    feed(&node, &[&four]).await;
    halts_with(&node, "lost its head again").await;

    // L1 shows another block than the certified one, or nothing usable.
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    node.take(&one).await;
    node.take(&two).await;
    *l1.fault.lock() = Some(L1Error::nonsense("scripted"));
    node.hint(&one).await;
    halts_with(&node, "unusable").await;
    *l1.fault.lock() = None;
    let node = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    node.take(&one).await;
    // Before the second is closed: from then on the block's origin is known.
    l1.reorganised.store(true, Ordering::SeqCst);
    node.take(&two).await;
    node.hint(&one).await;
    halts_with(&node, "has not the hash").await;
    l1.reorganised.store(false, Ordering::SeqCst);

    // Hints on disk that do not stand, put there behind the door's back.
    let store = memory();
    let node = Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await;
    node.take(&one).await;
    node.take(&two).await;
    let (_, mut hints) = open_batch(&one.batch, &one.verdicts);
    hints.entries[0] = blindfold_protocol::HintEntry::Key([1; 16]);
    store.put_hints(&hints).await.unwrap();
    node.executor.opened().put(1, None);
    halts_with(&node, "stored hints of batch 1").await;
}

/// The client of a process that stands by for another one that executes.
#[tokio::test]
async fn a_client_that_nobody_drives_is_given_what_was_executed() {
    let (l1, store) = (l1(), memory());
    let sequencer = Sealer::new(&l1).await;
    let (client, other) = (ScriptedExecution::new(), ScriptedExecution::new());
    assert_eq!(warm_up(&store, &*other).await.unwrap().imported, 0, "there is no block yet");
    let node = Machine::start(Arc::clone(&store), &l1, &client).await;
    for second in 1..=3 {
        let batch = sequencer.seal_envelopes(second * 1_000, &[envelope(1, second)]).await;
        let closing = sequencer.seal(second * 1_000 + 900, vec![]).await;
        feed(&node, &[&batch, &closing]).await;
    }
    node.executed(2).await;
    let report = warm_up(&store, &*other).await.unwrap();
    assert_eq!((report.common, report.imported), (0, 2));
    assert_eq!(other.head().await.unwrap(), client.head().await.unwrap());
    assert_eq!(warm_up(&store, &*other).await.unwrap().imported, 0);
    node.executor.stop().await;
}

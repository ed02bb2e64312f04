//! What people see of L1 who act there by hand: up to the newest block, before anything is final.

use blindfold_l1::{
    Accusation, AccusationState, DEFAULT_FORCED_FEE_PER_BYTE_WEI, DEFAULT_FORCED_GAS_PRICE_WEI, GivenPromise,
    HintPosting, L1HeaderDue, Portal, PostingState, SequencerEvent, omission_evidence,
};
use blindfold_protocol::{Address, B256, BatchHints, Promise, SequencerChange, U256};

use crate::stage::{GOVERNOR, POSTER, SEQUENCER, Stage, TIMING, USER, key, plain, reverted};

const EPOCH_LAST: u64 = 1_000_000;
const SALT: B256 = B256::repeat_byte(0x5a);

#[tokio::test]
async fn a_forced_item_is_followed_into_a_header_that_l1_makes() {
    let stage = Stage::new().await;
    let epochs = stage.register(EPOCH_LAST).await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    assert_eq!(client.head_header().await.unwrap(), None);
    assert_eq!(client.timing().await.unwrap(), TIMING);

    let batches = plain(&stage.batches(None, &[10, 20]));
    let run = stage.post(&epochs, &batches).await;
    assert_eq!(client.head_run().await.unwrap(), Some(run.clone()));
    assert_eq!(client.head_header().await.unwrap(), Some(batches[1].header));
    assert_eq!(client.run_of(1, 0).await.unwrap(), Some(run.clone()));
    assert_eq!(client.run_of(3, 0).await.unwrap(), None);

    let sent = writer.force_transaction(50_000, b"raw").await.unwrap();
    assert_eq!(client.forced_index(&sent).await.unwrap(), 0);
    let second = writer.force_transaction(60_000, b"raw").await.unwrap();
    assert_eq!(client.forced_index(&second).await.unwrap(), 1);
    let standing = client.standing().await.unwrap();
    assert_eq!((standing.head.number, standing.head_posted_at), (2, run.run.posted_at));
    assert_eq!((standing.last_certified_at, standing.l1_made), (run.run.posted_at, 0));
    assert_eq!((standing.forced_length, standing.forced_due()), (2, 0));
    assert_eq!(standing.forced_next.len(), 1, "the first that is not due ends the list");
    let first = standing.forced_next[0];
    assert_eq!((first.index, first.enqueued_at, first.gas_limit), (0, sent.block, 50_000));
    assert_eq!(standing.due_at(&first), sent.block + u64::from(TIMING.forced_delay));
    let from = run.run.posted_at + u64::from(TIMING.posting_deadline) + 1;
    assert_eq!(standing.l1_header_due(2), L1HeaderDue::From(from));

    stage.anvil.mine(from - standing.block).await.unwrap();
    let standing = client.standing().await.unwrap();
    assert_eq!(standing.l1_header_due(0), L1HeaderDue::Now { items: 2 });
    writer.post_l1_header(&batches[1].header).await.unwrap();
    let made = client.head_header().await.unwrap().unwrap();
    assert_eq!((made.number, made.envelope_count, made.forced_cursor), (3, 2, 2));
    let standing = client.standing().await.unwrap();
    assert_eq!((standing.l1_made, standing.forced_next.len()), (1, 0));
    assert_eq!(client.run_of(3, 0).await.unwrap().unwrap().headers, [made]);
    let runs = client.recent_runs(0, standing.block).await.unwrap();
    assert_eq!(runs.iter().map(|run| (run.first, run.last)).collect::<Vec<_>>(), [(1, 2), (3, 3)]);
}

#[tokio::test]
async fn postings_become_final_and_runs_without_them_void() {
    let stage = Stage::new().await;
    let epochs = stage.register(EPOCH_LAST).await;
    let one = stage.coded(None, vec![], &[], |_| {});
    let run = stage.post(&epochs, std::slice::from_ref(&one)).await;
    let two = stage.coded(Some(&one.header), vec![], &[], |_| {});
    let late = stage.post(&epochs, std::slice::from_ref(&two)).await;
    let writer = stage.writer(POSTER).await;
    let client = writer.client();
    let (bond, _) = client.hint_stakes().await.unwrap();
    writer.deposit_publisher_bond(bond).await.unwrap();
    let hints = HintPosting::of(&[BatchHints {
        number: 1,
        header_hash: one.header.hash(),
        entries: vec![],
        blindings: vec![],
    }]);
    let sent = writer.post_hints(&run.run, &hints).await.unwrap();

    let seen = async || client.recent_hints(0, client.newest_block().await.unwrap()).await.unwrap();
    let found = seen().await;
    let posting = *found.open_posting(1).unwrap();
    assert_eq!((posting.id, posting.first, posting.last), (1, 1, 1));
    assert_eq!((posting.publisher, posting.l1_block), (writer.address(), sent.block));
    assert!(found.covers(1) && !found.covers(2));
    assert_eq!(client.standing().await.unwrap().hint_postings, 1);

    stage.anvil.mine(u64::from(TIMING.hint_deadline)).await.unwrap();
    writer.finalize_hints(1).await.unwrap();
    writer.void_unreleased(&late.run).await.unwrap();
    let found = seen().await;
    assert_eq!(found.posting(1).unwrap().state, PostingState::Final);
    assert_eq!(found.void_runs().collect::<Vec<_>>(), [(2, 2)]);
    assert!(found.covers(2));
    writer.withdraw_publisher_bond(bond).await.unwrap();
    assert_eq!(client.publisher_bond(writer.address()).await.unwrap().total, 0);
    assert_eq!(client.hint_reward(writer.address()).await.unwrap(), U256::ZERO);
}

#[tokio::test]
async fn an_accusation_is_seen_from_the_first_block_on() {
    let stage = Stage::new().await;
    let epochs = stage.register(EPOCH_LAST).await;
    stage.post(&epochs, &plain(&stage.batches(None, &[10, 20]))).await;
    let accuser = stage.writer(USER).await;
    let client = accuser.client();
    accuser.deposit_bond(key(SEQUENCER).address(), 1_000).await.unwrap();
    let (envelope, item) = (B256::repeat_byte(0x11), B256::repeat_byte(0x12));
    let promise = Promise::sign(&key(SEQUENCER), &stage.deployment(), envelope, item, 2);
    let given = GivenPromise::new(&promise, key(SEQUENCER).address());
    assert_eq!(client.accusation(&given).await.unwrap().state, AccusationState::None);
    accuser.commit(omission_evidence(envelope, item, 2), SALT).await.unwrap();
    stage.anvil.mine(1).await.unwrap();
    let sent = accuser.accuse_omission(&promise, SALT).await.unwrap();
    let answer_until = sent.block + u64::from(TIMING.answer_window);
    let expected = Accusation { state: AccusationState::Open, accuser: accuser.address(), answer_until };
    assert_eq!(client.accusation(&given).await.unwrap(), expected);
    assert_eq!(client.standing().await.unwrap().open_accusations, 1);
    let faults = client.recent_faults(0, sent.block).await.unwrap();
    assert!(matches!(faults[..], [SequencerEvent::Accused { promise, .. }] if promise == given));

    stage.anvil.mine(u64::from(TIMING.answer_window) + 1).await.unwrap();
    accuser.slash_omission(&given).await.unwrap();
    assert_eq!(client.accusation(&given).await.unwrap().state, AccusationState::Slashed);
    assert_eq!(client.standing().await.unwrap().bond.amount, U256::ZERO);
    assert!(client.reward(accuser.address()).await.unwrap() > U256::from(500));
}

#[tokio::test]
async fn requests_to_withdraw_are_counted_by_the_vault() {
    let stage = Stage::new().await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    let before = client.vault_account(writer.address()).await.unwrap();
    assert_eq!((before.requested, before.first_request), (0, 0));
    assert_eq!(before.withdrawal_delay, TIMING.withdrawal_delay);
    let first = writer.request_withdrawal(5).await.unwrap();
    let last = writer.request_withdrawal(7).await.unwrap();
    let after = client.vault_account(writer.address()).await.unwrap();
    assert_eq!((after.requested, after.first_request, after.last_request), (12, first.block, last.block));
    assert_eq!(after.paid, U256::ZERO);
    let (one, ten) =
        (client.forced_transaction_fee(21_000, &[0]), client.forced_transaction_fee(21_000, &[0; 10]));
    let (one, ten) = (one.await.unwrap(), ten.await.unwrap());
    assert_eq!(ten - one, U256::from(9) * U256::from(DEFAULT_FORCED_FEE_PER_BYTE_WEI));
    let gas = U256::from(DEFAULT_FORCED_GAS_PRICE_WEI);
    assert_eq!(client.forced_transaction_fee(22_000, &[0]).await.unwrap() - one, gas * U256::from(1_000));
    assert_eq!(client.portal().await.unwrap(), Portal { outlet: None, takes_deposits_without_outlet: true });
}

#[tokio::test]
async fn the_next_sequencers_key_is_read_when_it_is_final() {
    let stage = Stage::new().await;
    stage.register(EPOCH_LAST).await;
    let (governor, client) = (stage.writer(GOVERNOR).await, stage.writer(USER).await.client().clone());
    let (first, next) = (key(SEQUENCER).address(), Address::repeat_byte(0x77));
    stage.finalize().await;
    let before = client.epochs().await.unwrap();
    assert_eq!(before.sequencers(), [SequencerChange { from_block: 0, sequencer: first }]);
    let sent = governor.name_sequencer(next).await.unwrap();
    let from_block = sent.block + u64::from(TIMING.answer_window);
    assert_eq!(client.epochs().await.unwrap().sequencers(), before.sequencers(), "not final yet");
    stage.finalize().await;
    let epochs = client.epochs().await.unwrap();
    assert!(epochs.read_at() >= sent.block);
    assert_eq!(epochs.sequencers()[1..], [SequencerChange { from_block, sequencer: next }]);
    assert_eq!(epochs.sequencer_at(from_block - 1), Some(first));
    // L1's newest block says who proposes outputs and who is paid for forced bytes.
    let until = from_block.saturating_sub(client.newest_block().await.unwrap());
    stage.anvil.mine(until).await.unwrap();
    assert_eq!(client.sequencer().await.unwrap(), next);
    reverted(stage.writer(USER).await.name_sequencer(first).await, "NotGovernor");
}

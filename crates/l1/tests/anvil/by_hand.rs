//! What people see of L1 who act there by hand: up to the newest block, before anything is final.

use blindfold_l1::{
    Accusation, AccusationState, DEFAULT_FORCED_FEE_PER_BYTE_WEI, DEFAULT_FORCED_GAS_PRICE_WEI, HintPosting,
    L1HeaderDue, Portal, PostingState, SequencerEvent, omission_evidence,
};
use blindfold_protocol::{B256, BatchHints, Promise, U256};

use crate::stage::{POSTER, SEQUENCER, Stage, TIMING, USER, key, plain};

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
    let hints = HintPosting::of(&[BatchHints { number: 1, header_hash: one.header.hash(), entries: vec![] }]);
    let sent = writer.post_hints(&run.run, &hints).await.unwrap();

    let seen = async || client.recent_hints(0, client.newest_block().await.unwrap()).await.unwrap();
    let found = seen().await;
    let posting = found.postings[0];
    assert_eq!((posting.id, posting.first, posting.last), (1, 1, 1));
    assert_eq!((posting.publisher, posting.posted_at), (writer.address(), sent.block));
    assert_eq!(posting.state, PostingState::Open);
    assert!(found.covers(1) && !found.covers(2));
    assert_eq!(client.standing().await.unwrap().hint_postings, 1);

    stage.anvil.mine(u64::from(TIMING.hint_deadline)).await.unwrap();
    writer.finalize_hints(1).await.unwrap();
    writer.void_unreleased(&late.run).await.unwrap();
    let found = seen().await;
    assert_eq!(found.postings[0].state, PostingState::Final);
    assert_eq!(found.void, [(2, 2)]);
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
    accuser.deposit_bond(1_000).await.unwrap();
    let (envelope, item) = (B256::repeat_byte(0x11), B256::repeat_byte(0x12));
    let promise = Promise::sign(&key(SEQUENCER), &stage.deployment(), envelope, item, 2);
    let name = promise.hash();
    assert_eq!(client.accusation(name).await.unwrap().state, AccusationState::None);
    accuser.commit(omission_evidence(envelope, item, 2), SALT).await.unwrap();
    stage.anvil.mine(1).await.unwrap();
    let sent = accuser.accuse_omission(&promise, SALT).await.unwrap();
    let answer_until = sent.block + u64::from(TIMING.answer_window);
    let expected = Accusation { state: AccusationState::Open, accuser: accuser.address(), answer_until };
    assert_eq!(client.accusation(name).await.unwrap(), expected);
    assert_eq!(client.standing().await.unwrap().open_accusations, 1);
    let faults = client.recent_faults(0, sent.block).await.unwrap();
    assert!(matches!(faults[..], [SequencerEvent::Accused { envelope_id, .. }] if envelope_id == envelope));

    stage.anvil.mine(u64::from(TIMING.answer_window) + 1).await.unwrap();
    accuser.slash_omission(name).await.unwrap();
    assert_eq!(client.accusation(name).await.unwrap().state, AccusationState::Slashed);
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

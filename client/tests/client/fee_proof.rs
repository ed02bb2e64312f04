//! From a server's proof of a fee account to the ether on L1: the real contracts on anvil, a scripted server.

use alloy_primitives::{Address, B256, U256};
use blindfold_client::{FeeProof, FeeProofError};
use blindfold_l1::L1Error;
use blindfold_protocol::{Account, BatchHeader, Epochs, FeeLedger, LiveNonce};
use blindfold_rpc::types::{FeeAccountProof, LedgerAt, LedgerTag};

use crate::{
    common::World,
    stage::{CLAIM_DELAY, Stage, TIMING, USER, key},
};

const LATEST: LedgerAt = LedgerAt::Tag(LedgerTag::Latest);
const BALANCE: u128 = 600;
const WITHDRAWN: u128 = 400;

/// A ledger in which the user has withdrawn something.
fn ledger() -> FeeLedger {
    let account = |balance, withdrawn| Account { balance, withdrawn };
    let accounts = [
        (Address::repeat_byte(1), account(5, 0)),
        (payer(), account(BALANCE, WITHDRAWN)),
        (Address::repeat_byte(0xee), account(9, 2)),
    ];
    FeeLedger::from_parts(accounts, [LiveNonce { payer: payer(), nonce: 7, expiry: 90 }], [])
}

fn payer() -> Address {
    key(USER).address()
}

/// What a server says whose newest header this is.
fn shown(header: &BatchHeader) -> FeeAccountProof {
    let ledger = ledger();
    let (account, proof) = (ledger.account(&payer()).unwrap(), ledger.prove(&payer()).unwrap());
    FeeAccountProof {
        address: payer(),
        balance: account.balance,
        withdrawn: account.withdrawn,
        siblings: proof.siblings,
        number: header.number,
        header_hash: header.hash(),
    }
}

async fn posted(stage: &Stage, epochs: &Epochs, parent: Option<&BatchHeader>, root: B256) -> BatchHeader {
    let batch = stage.coded(parent, vec![], &[], |header| header.fee_ledger_root = root);
    stage.post(epochs, std::slice::from_ref(&batch)).await;
    batch.header
}

#[tokio::test]
async fn a_withdrawal_is_claimed_once_its_header_is_posted() {
    let (stage, world) = (Stage::new().await, World::start().await);
    let epochs = stage.register(1_000).await;
    let writer = stage.writer(USER).await;
    let l1 = writer.client();
    writer.deposit(payer(), 1_000).await.unwrap();
    let first = posted(&stage, &epochs, None, B256::repeat_byte(4)).await;
    let next = stage.coded(Some(&first), vec![], &[], |header| header.fee_ledger_root = ledger().root());

    let fetch = async || FeeProof::fetch(&world.node.url(), payer(), LATEST).await;
    assert!(matches!(fetch().await, Err(FeeProofError::NoAccount(account)) if account == payer()));
    world.node.state.lock().fee_proof = Some(shown(&next.header));
    let proof = fetch().await.unwrap();
    assert_eq!((proof.account.withdrawn, proof.fee_ledger_root), (WITHDRAWN, ledger().root()));
    assert_eq!(proof.against_posted(l1).await.unwrap(), None, "not posted yet");

    stage.post(&epochs, std::slice::from_ref(&next)).await;
    let at_head = proof.against_head(l1).await.unwrap().unwrap();
    assert_eq!((at_head.number, at_head.payer), (2, payer()));
    // A later header with another ledger: the proof is still good for its own.
    posted(&stage, &epochs, Some(&next.header), B256::repeat_byte(5)).await;
    assert_eq!(proof.against_head(l1).await.unwrap(), None);
    let found = proof.against_posted(l1).await.unwrap().unwrap();
    assert_eq!(found, at_head);
    writer.claim_withdrawal(&found).await.unwrap();
    assert_eq!(l1.paid(payer()).await.unwrap(), U256::from(WITHDRAWN));
}

/// A rollup that is gone posts nothing any more, and what was withdrawn by its last header is still owed.
#[tokio::test]
async fn a_withdrawal_is_claimed_however_long_ago_the_last_header_was_posted() {
    let (stage, world) = (Stage::new().await, World::start().await);
    let epochs = stage.register(1_000).await;
    let writer = stage.writer(USER).await;
    let l1 = writer.client();
    writer.deposit(payer(), 1_000).await.unwrap();
    let header = posted(&stage, &epochs, None, ledger().root()).await;
    world.node.state.lock().fee_proof = Some(shown(&header));
    const SEARCHED: u64 = 10;
    let url = world.node.url();
    let payable = async || FeeProof::fetch_payable_within(SEARCHED, &url, payer(), l1).await.unwrap();
    stage.anvil.mine(u64::from(CLAIM_DELAY)).await.unwrap();
    let (_, soon) = payable().await.unwrap();
    stage.anvil.mine(2 * SEARCHED).await.unwrap();
    let (proved, late) = payable().await.unwrap();
    assert_eq!((proved.account.withdrawn, &late), (WITHDRAWN, &soon));
    writer.claim_withdrawal(&late).await.unwrap();
    assert_eq!(l1.paid(payer()).await.unwrap(), U256::from(WITHDRAWN));
}

#[tokio::test]
async fn an_exit_goes_by_the_ledger_of_the_last_header_whatever_its_number() {
    let (stage, world) = (Stage::new().await, World::start().await);
    let epochs = stage.register(1_000).await;
    let writer = stage.writer(USER).await;
    let l1 = writer.client();
    writer.deposit(payer(), 1_000).await.unwrap();
    let first = posted(&stage, &epochs, None, ledger().root()).await;
    writer.request_withdrawal(u128::MAX).await.unwrap();
    // The server shows the ledger of L1's header whatever it has sealed since.
    assert!(FeeProof::fetch_posted(&world.node.url(), payer(), l1).await.is_err(), "nothing to show");
    world.node.state.lock().fee_proof = Some(shown(&first));
    let posted = FeeProof::fetch_posted(&world.node.url(), payer(), l1).await.unwrap().unwrap();
    assert_eq!(
        (posted.number, posted.against_head(l1).await.unwrap().map(|proof| proof.number)),
        (1, Some(1))
    );
    // The server is some headers ahead that were never posted and left the ledger as it was.
    let ahead = BatchHeader { number: first.number + 3, ..first };
    world.node.state.lock().fee_proof = Some(shown(&ahead));
    let proof = FeeProof::fetch(&world.node.url(), payer(), LATEST).await.unwrap();
    let proof = proof.against_head(l1).await.unwrap().unwrap();
    assert_eq!(proof.number, first.number);
    stage.anvil.mine(u64::from(TIMING.withdrawal_delay)).await.unwrap();
    writer.exit(&proof).await.unwrap();
    assert_eq!(l1.paid(payer()).await.unwrap(), U256::from(WITHDRAWN + BALANCE));
    assert!(matches!(writer.exit(&proof).await, Err(L1Error::Reverted { .. })));
}

#[tokio::test]
async fn a_deposit_waits_until_a_header_has_its_block_as_origin() {
    let (stage, world) = (Stage::new().await, World::start().await);
    let epochs = stage.register(1_000).await;
    let writer = stage.writer(USER).await;
    let l1 = writer.client();
    writer.deposit(payer(), 1_000).await.unwrap();
    let first = posted(&stage, &epochs, None, ledger().root()).await;
    world.node.state.lock().fee_proof = Some(shown(&first));
    let waits = async || {
        let shown = FeeProof::fetch(&world.node.url(), payer(), LATEST).await.unwrap();
        let at_head = shown.against_head(l1).await.unwrap().unwrap();
        shown.deposit_waits(&at_head, l1).await.unwrap()
    };
    assert!(waits().await, "the first header's origin is an earlier block");
    writer.deposit(Address::repeat_byte(1), 5).await.unwrap();
    let counted = l1.finalized().await.unwrap().number;
    let next = stage.coded(Some(&first), vec![], &[], |header| {
        (header.fee_ledger_root, header.l1_origin_number) = (ledger().root(), counted);
    });
    stage.post(&epochs, std::slice::from_ref(&next)).await;
    world.node.state.lock().fee_proof = Some(shown(&next.header));
    assert!(!waits().await, "another account's does not matter");
    writer.deposit(payer(), 5).await.unwrap();
    assert!(waits().await);
}

#[tokio::test]
async fn what_does_not_lead_to_l1s_header_is_refused_before_anything_is_paid() {
    let (stage, world) = (Stage::new().await, World::start().await);
    let epochs = stage.register(1_000).await;
    let l1 = stage.client().await;
    let first = posted(&stage, &epochs, None, B256::repeat_byte(4)).await;
    let set = |change: &dyn Fn(&mut FeeAccountProof)| {
        let mut said = shown(&first);
        change(&mut said);
        world.node.state.lock().fee_proof = Some(said);
    };
    let fetch = async || FeeProof::fetch(&world.node.url(), payer(), LATEST).await;
    set(&|said| said.address = Address::ZERO);
    assert!(matches!(fetch().await, Err(FeeProofError::NotAProof(_))));
    set(&|said| said.siblings = vec![B256::ZERO; 257]);
    assert!(matches!(fetch().await, Err(FeeProofError::NotAProof(_))));
    set(&|said| (said.balance, said.withdrawn) = (0, 0));
    assert!(matches!(fetch().await, Err(FeeProofError::NotAProof(_))));
    // Proofs in themselves, of ledgers that header 1 does not have.
    let changes: [&dyn Fn(&mut FeeAccountProof); 3] =
        [&|said| said.withdrawn += 1, &|said| said.siblings.push(B256::ZERO), &|said| {
            said.siblings.pop();
        }];
    for change in changes {
        set(change);
        let proof = fetch().await.unwrap();
        let refused = proof.against_posted(&l1).await;
        assert!(matches!(refused, Err(FeeProofError::OtherHeader { number: 1, .. })), "{refused:?}");
    }
}

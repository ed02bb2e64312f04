//! Fee accounts on their way out, and what the sequencer claims of L2.

use blindfold_l1::{AccountProof, Output};
use blindfold_protocol::{
    Account, Address, B256, Deposit, FeeLedger, LedgerEvent, LiveNonce, U256, Withdrawal,
};

use crate::stage::{SEQUENCER, Stage, TIMING, USER, key, reverted};

const BALANCE: u128 = 600;
const WITHDRAWN: u128 = 400;

/// A ledger in which the user stands beside others, with live nonces between them.
fn ledger() -> FeeLedger {
    let other = |index| (Address::repeat_byte(index), Account { balance: 7, withdrawn: 0 });
    let own = (key(USER).address(), Account { balance: BALANCE, withdrawn: WITHDRAWN });
    let nonces = (0..9).map(|nonce| LiveNonce { payer: own.0, nonce, expiry: 90 });
    FeeLedger::from_parts((1..9).map(other).chain([own]), nonces, [])
}

#[tokio::test]
async fn what_the_ledger_shows_as_withdrawn_is_paid() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    let start = client.finalized().await.unwrap().number;
    let payer = key(USER).address();
    let deposit = writer.deposit(payer, 1_000).await.unwrap();
    let request = writer.request_withdrawal(WITHDRAWN).await.unwrap();
    // An origin is a final block.
    stage.finalize().await;
    let ledger = ledger();
    let batch = stage.coded(None, vec![], &[], |header| {
        header.fee_ledger_root = ledger.root();
        header.l1_origin_number = request.block;
    });
    let run = stage.post(&epochs, &[batch]).await;
    let through = client.finalized().await.unwrap().number;
    let events = client.ledger_events(start, through).await.unwrap();
    let expected = [
        LedgerEvent::Deposit(Deposit { payer, amount: 1_000, l1_block: deposit.block }),
        LedgerEvent::Withdrawal(Withdrawal { payer, amount: WITHDRAWN, l1_block: request.block }),
    ];
    assert_eq!(events, expected);

    let proof = AccountProof {
        payer,
        balance: BALANCE,
        withdrawn: WITHDRAWN,
        siblings: ledger.prove(&payer).unwrap().siblings,
        run,
        number: 1,
    };
    let wrong = AccountProof { withdrawn: WITHDRAWN + 1, ..proof.clone() };
    reverted(writer.claim_withdrawal(&wrong).await, "NotInLedger");
    writer.claim_withdrawal(&proof).await.unwrap();
    assert_eq!(client.paid(payer).await.unwrap(), U256::from(WITHDRAWN));
    reverted(writer.claim_withdrawal(&proof).await, "NothingToPay");

    // A request that the rollup leaves unprocessed is paid without it.
    writer.request_withdrawal(u128::MAX).await.unwrap();
    reverted(writer.exit(&proof).await, "DelayNotOver");
    stage.anvil.mine(u64::from(TIMING.withdrawal_delay)).await.unwrap();
    writer.exit(&proof).await.unwrap();
    assert_eq!(client.paid(payer).await.unwrap(), U256::from(WITHDRAWN + BALANCE));
}

#[tokio::test]
async fn claims_of_l2_state_are_read_back() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batch = stage.coded(None, vec![], &[], |header| header.timestamp_ms = 50_000);
    stage.post(&epochs, &[batch]).await;
    let output = |l2_block: u64| Output {
        l2_block,
        batch: 1,
        timestamp: 30 + l2_block,
        block_hash: B256::repeat_byte(l2_block as u8),
        state_root: B256::repeat_byte(0xee),
    };
    let writer = stage.writer(SEQUENCER).await;
    let client = writer.client();
    writer.propose_outputs(&[output(1), output(2)]).await.unwrap();
    writer.propose_outputs(&[output(3)]).await.unwrap();
    reverted(writer.propose_outputs(&[output(5)]).await, "WrongBlock { expected: 4, given: 5 }");
    reverted(stage.writer(USER).await.propose_outputs(&[output(4)]).await, "NotSequencer");
    let through = stage.finalize().await;
    assert_eq!(client.outputs(0, through).await.unwrap(), [output(1), output(2), output(3)]);
    let found = async |from, limit| client.final_outputs(from, limit).await.unwrap();
    assert_eq!(found(3, 9).await, [output(3)]);
    assert_eq!(found(2, 9).await, [output(2), output(3)], "from within a proposal");
    assert_eq!(found(1, 2).await, [output(1), output(2)]);
    assert_eq!(found(4, 2).await, []);
    writer.propose_outputs(&[output(4)]).await.unwrap();
    stage.finalize().await;
    assert_eq!(found(2, 9).await, [output(2), output(3), output(4)]);
    assert_eq!(client.last_output().await.unwrap(), 4);
}

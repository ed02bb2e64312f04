//! L1 deposits: each is executed once, in L1 order, and none can stop the chain.

use std::sync::Arc;

use blindfold_chain::{DepositCursor, NewBlock, Sealed};
use blindfold_kit::*;
use blindfold_protocol::Bytes;
use tokio::sync::broadcast;

async fn next_block(blocks: &mut broadcast::Receiver<Arc<NewBlock>>) -> Arc<NewBlock> {
    within("a block", blocks.recv()).await.expect("the executor lives")
}

/// What a scripted deposit mints.
fn wei(raw: &Bytes) -> u64 {
    u64::from_be_bytes(raw[9..].try_into().expect("eight bytes"))
}

/// Five deposits in three L1 blocks, which need three L2 blocks.
fn deposit_more_than_two_blocks_hold(l1: &ScriptedL1) -> Vec<Bytes> {
    vec![
        l1.bridge(5_000_000),
        l1.bridge_again(3_000_000),
        l1.bridge_again(1),
        l1.bridge(7_999_999),
        l1.bridge(1_000_000),
    ]
}

async fn take_all(node: &Machine, sealed: &[Sealed]) {
    for sealed in sealed {
        node.take(sealed).await;
    }
}

/// Rule DP-2.
#[tokio::test]
async fn what_one_block_does_not_hold_goes_into_the_next_ones() {
    let l1 = l1();
    let raw = deposit_more_than_two_blocks_hold(&l1);
    let first_l1_block = l1.bridge.lock()[0].l1_block;
    let sequencer = Sealer::new(&l1).await;
    let mut sealed = Vec::new();
    for second in 0..5 {
        sealed.push(sequencer.seal(second * 1_000, vec![]).await);
    }
    // Without a break, and with a restart after each block.
    let whole = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let mut blocks = whole.executor.subscribe();
    take_all(&whole, &sealed).await;
    let mut cursors = Vec::new();
    for number in 1..=3 {
        let block = next_block(&mut blocks).await;
        assert_eq!(block.record.number, number);
        cursors.push(block.details.deposits);
    }
    let cursor = |through, then, more| DepositCursor { through, then, more };
    let expected = [
        cursor(first_l1_block - 1, 2, true),
        cursor(first_l1_block + 1, 0, true),
        cursor(first_l1_block + 2, 0, false),
    ];
    assert_eq!(cursors, expected);
    let lists: Vec<Vec<Bytes>> =
        whole.client.executed.lock().iter().map(|inputs| inputs.l1_deposits.clone()).collect();
    assert_eq!(lists, [raw[..2].to_vec(), raw[2..4].to_vec(), raw[4..].to_vec()]);
    // The last closed second had none left: no block for it.
    whole.executor.stop().await;
    assert_eq!(whole.executor.status().block.map(|block| block.number), Some(3));
    assert!(!whole.executor.status().deposits_wait);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.sqlite");
    let client = ScriptedExecution::new();
    for (block, waits) in [(1, true), (2, true), (3, false)] {
        let node = Machine::start(disk(&path).await, &l1, &client).await;
        assert_eq!(node.executor.status().deposits_wait, block > 1);
        if block == 1 {
            node.take(&sealed[0]).await;
        }
        node.take(&sealed[block]).await;
        node.executed(block as u64).await;
        node.executor.stop().await;
        assert_eq!(node.executor.status().deposits_wait, waits);
    }
    assert_eq!(client.head_now(), whole.client.head_now());
}

#[tokio::test]
async fn what_the_blocks_mint_is_what_the_portal_was_given() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let client = ScriptedExecution::new();
    let node = Machine::start(memory(), &l1, &client).await;
    // Deposits of any size, at any time, with headers that jump over hundreds of L1 blocks, and batches in between.
    let mut seed = 7u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut nonce = 0;
    for second in 0..30u64 {
        for _ in 0..draw(4) {
            l1.bridge(21_000 + draw(7_900_000));
        }
        *l1.finalized.lock() += draw(300);
        let sealed = if second % 3 == 0 {
            nonce += 1;
            sequencer.seal_envelopes(second * 1_000, &[envelope(1, nonce)]).await
        } else {
            sequencer.seal(second * 1_000, vec![]).await
        };
        sequencer.certify(&sealed).await;
        node.take(&sealed).await;
        if sealed.verdicts.iter().any(|verdict| verdict.is_accepted()) {
            node.hint(&sealed).await;
        }
    }
    let total: u64 = (1..=l1.bridge.lock().len() as u64).sum();
    let mut second = 30;
    let minted = || -> Vec<Bytes> {
        client.executed.lock().iter().flat_map(|inputs| inputs.l1_deposits.clone()).collect()
    };
    within("all deposits", async {
        while minted().len() < l1.bridge.lock().len() {
            let sealed = sequencer.seal(second * 1_000, vec![]).await;
            sequencer.certify(&sealed).await;
            node.take(&sealed).await;
            second += 1;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(minted().iter().map(wei).sum::<u64>(), total);
    let order: Vec<Bytes> = l1.bridge.lock().iter().map(|deposit| deposit.raw.clone()).collect();
    assert_eq!(minted(), order);
    let gas = |raw: &Bytes| l1.bridge.lock()[wei(raw) as usize - 1].gas;
    for inputs in client.executed.lock().iter() {
        assert!(inputs.l1_deposits.iter().map(gas).sum::<u64>() <= 8_000_000);
    }
}

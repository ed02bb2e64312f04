//! Items that L1 makes the rollup take, headers that L1 makes itself, and deposits for L2.

use blindfold_engine::{BridgeDeposit, bridge_deposit};
use blindfold_l1::{L1Error, L2Call};
use blindfold_protocol::{Address, Bytes, ForcedEntry, SealedBatch, Signature65, U256};

use crate::stage::{POSTER, SEQUENCER, Stage, TIMING, USER, key, reverted};

const EPOCH_LAST: u64 = 1_000_000;

fn envelope() -> Vec<u8> {
    // L1 looks at length, first byte and gas limit only.
    let mut bytes = vec![7; 639];
    bytes[0] = 2;
    bytes[153..161].copy_from_slice(&1_000_000u64.to_be_bytes());
    bytes
}

#[tokio::test]
async fn forced_items_are_seen_as_they_stand_in_a_batch() {
    let stage = Stage::new().await;
    let epochs = stage.register(EPOCH_LAST).await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    let through = client.finalized().await.unwrap().number;
    assert_eq!(client.forced_entries(0, 17, through).await.unwrap(), []);

    let first = writer.force_envelope(&envelope()).await.unwrap().block;
    let second = writer.force_transaction(50_000, b"raw transaction").await.unwrap().block;
    let third = writer.force_envelope(&envelope()).await.unwrap().block;
    let finalized = client.finalized().await.unwrap().number;
    let early = client.forced_entries(0, 17, third).await;
    assert_eq!(early, Err(L1Error::NotFinal { number: third, finalized }));
    let through = stage.finalize().await;
    let entries = vec![
        ForcedEntry::envelope(0, envelope(), first),
        ForcedEntry::transaction(1, 50_000, b"raw transaction", second),
        ForcedEntry::envelope(2, envelope(), third),
    ];
    assert_eq!(client.forced_entries(0, 17, through).await.unwrap(), entries);
    assert_eq!(client.forced_entries(1, 1, through).await.unwrap(), entries[1..2]);
    assert_eq!(client.forced_entries(1, 17, second).await.unwrap(), entries[1..2]);
    assert_eq!(client.forced_entries(3, 17, through).await.unwrap(), []);
    assert_eq!(client.forced_entries(0, 0, through).await.unwrap(), []);
    assert_eq!(client.forced_length().await.unwrap(), 3);
    reverted(writer.force_transaction(20_999, b"raw").await, "BadGasLimit");

    // A header whose origin is the delay later must take it.
    let due = first + u64::from(TIMING.forced_delay);
    stage.anvil.mine(20).await.unwrap();
    let without = stage.coded(None, vec![], &[], |header| header.l1_origin_number = due);
    let poster = stage.writer(POSTER).await;
    let certificate = stage.certify(&epochs, &without.header);
    reverted(
        poster.post_headers(&[without.header], &[], &certificate).await,
        "ForcedItemIgnored { number: 1, index: 0 }",
    );
    let with = stage.coded(None, vec![envelope()], &[0], |header| {
        header.l1_origin_number = due;
        header.forced_cursor = 1;
    });
    stage.post(&epochs, &[with]).await;
    assert_eq!(client.posted_head().await.unwrap().forced_cursor, 1);

    let before = stage.balance(SEQUENCER).await;
    writer.collect_forced_fees().await.unwrap();
    assert!(stage.balance(SEQUENCER).await > before);
}

#[tokio::test]
async fn headers_that_l1_makes_are_read_with_their_items() {
    let stage = Stage::new().await;
    let epochs = stage.register(EPOCH_LAST).await;
    let head = stage.coded(None, vec![], &[], |_| {});
    stage.post(&epochs, std::slice::from_ref(&head)).await;
    let writer = stage.writer(USER).await;
    writer.force_envelope(&envelope()).await.unwrap();
    writer.force_transaction(50_000, b"raw").await.unwrap();
    reverted(writer.post_l1_header(&head.header).await, "");
    stage.anvil.mine(u64::from(TIMING.posting_deadline) + 1).await.unwrap();
    let sent = writer.post_l1_header(&head.header).await.unwrap();
    let through = stage.finalize().await;

    let client = writer.client();
    let made = client.l1_headers(0, through).await.unwrap();
    assert_eq!(made.len(), 1);
    let header = made[0].header;
    assert_eq!((made[0].l1_block, made[0].transaction), (sent.block, sent.transaction));
    assert_eq!((header.number, header.parent_hash), (2, head.header.hash()));
    assert_eq!((header.envelope_count, header.forced_cursor, header.gas), (2, 2, 50_000));
    assert_eq!(client.all_l1_headers().await.unwrap(), made);
    assert_eq!(client.posted_at(2).await.unwrap(), Some(sent.block));
    let postings = client.postings(0, through).await.unwrap();
    assert_eq!(postings.len(), 2);
    assert_eq!(postings[1].certificate, None);
    assert_eq!(postings[1].headers, [header]);
    let items = client.forced_entries(0, 2, through).await.unwrap();
    let items: Vec<Vec<u8>> = items.into_iter().map(|entry| entry.item.to_vec()).collect();
    let expected = SealedBatch { header, signature: Signature65([0; 65]), items: items.clone() };
    assert_eq!(postings[1].data.whole(), Ok(vec![expected]));
    // The tree that L1 built is ours.
    let ours = stage.coded(Some(&head.header), items, &[0xfe, 0xff], |_| {});
    assert_eq!(header.envelope_root, ours.header.envelope_root);
    assert_eq!(header.envelope_bytes, ours.header.envelope_bytes);
}

/// Rule DP-1.
#[tokio::test]
async fn deposits_for_l2_are_the_op_stacks_transactions() {
    let stage = Stage::new().await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    let start = client.finalized().await.unwrap().number;
    let to = Address::repeat_byte(0xcc);
    let call = L2Call {
        to: Some(to),
        mint: U256::from(1_000),
        value: U256::from(7),
        gas: 100_000,
        data: Bytes::from_static(b"data"),
    };
    let sent = writer.deposit_transaction(&call).await.unwrap();
    let creation = L2Call { to: None, data: Bytes::from_static(&[0xfe]), gas: 60_000, ..call.clone() };
    writer.deposit_transaction(&creation).await.unwrap();
    let poor = L2Call { gas: 20_999, ..call };
    reverted(writer.deposit_transaction(&poor).await, "GasLimitTooLow");
    let through = stage.finalize().await;

    let deposits = client.bridge_deposits(start, through).await.unwrap();
    assert_eq!(deposits.iter().map(|deposit| deposit.gas).collect::<Vec<_>>(), [100_000, 60_000]);
    assert_eq!(deposits[0].l1_block, sent.block);
    let opaque = [
        &U256::from(1_000).to_be_bytes::<32>()[..],
        &U256::from(7).to_be_bytes::<32>(),
        &100_000u64.to_be_bytes(),
        &[0],
        b"data",
    ]
    .concat();
    let expected = bridge_deposit(&BridgeDeposit {
        l1_block_hash: client.origin(sent.block).await.unwrap().unwrap().hash,
        log_index: 0,
        from: key(USER).address(),
        to,
        opaque_data: &opaque,
    });
    assert_eq!(deposits[0].raw, expected.unwrap().raw);
    assert_eq!(client.bridge_deposits(through, through).await.unwrap(), []);
}

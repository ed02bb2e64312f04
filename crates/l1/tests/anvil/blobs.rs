//! Data in blobs, with the real commitments and proofs.

use blindfold_l1::{
    CodedBatch, DataError, DataPlace, L1Client, L1Error, L1Writer, MAX_BLOB_DATA_BYTES, RunData,
};
use blindfold_protocol::{Address, Canonical};
use serde_json::json;

use crate::stage::{POSTER, Stage, key, plain};

async fn blob_writer(stage: &Stage) -> L1Writer {
    stage.writer(POSTER).await.with_data_in(DataPlace::Blobs)
}

#[tokio::test]
async fn data_in_blobs_is_read_back_through_the_beacon_node() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = blob_writer(&stage).await;
    let batches = stage.batches(None, &[20_000, 30_000, 33_000]);
    let certificate = stage.certify(&epochs, &batches[2].sealed.header);
    let sent = writer.post(&batches, &certificate).await.unwrap();
    assert!(sent.gas_used < 300_000, "{}", sent.gas_used);
    let through = stage.finalize().await;

    let client = writer.client();
    let posting = client.postings(0, through).await.unwrap().remove(0);
    assert!(posting.data.whole() == Ok(plain(&batches)), "{:?}", posting.data.fault);
    assert_eq!(posting.certificate, Some(certificate));
    // Without a beacon node the rest is still there.
    let mut config = stage.config();
    config.beacon_url = None;
    let client = L1Client::connect(config).await.unwrap();
    let posting = client.postings(0, through).await.unwrap().remove(0);
    assert_eq!(posting.data.whole(), Err(DataError::NoBeacon));
    assert_eq!(posting.headers.len(), 3);
}

#[tokio::test]
async fn data_of_more_than_six_blobs_follows_in_parts() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = blob_writer(&stage).await;
    let batches: Vec<CodedBatch> = stage.batches(None, &[33_000; 12]);
    assert!(RunData::of(&batches).encode().len() > MAX_BLOB_DATA_BYTES);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    writer.post(&batches, &stage.certify(&epochs, &headers[11])).await.unwrap();
    let through = stage.finalize().await;

    let client = writer.client();
    assert_eq!(client.postings(0, through).await.unwrap()[0].data.whole(), Err(DataError::Absent));
    assert!(client.reposted_data(&headers, 0, through).await.unwrap().batches == plain(&batches));
}

#[tokio::test]
async fn stuck_transactions_with_blobs_are_replaced_by_their_kind() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100]);
    let certificate = stage.certify(&epochs, &batches[0].sealed.header);
    stage.anvil.call("evm_setAutomine", json!([false])).await.unwrap();
    let mut config = stage.config();
    config.confirmation_timeout_ms = 1;
    let client = L1Client::connect(config).await.unwrap();
    let writer = L1Writer::new(client, key(POSTER)).with_data_in(DataPlace::Blobs);
    for _ in 0..2 {
        let error = writer.post(&batches, &certificate).await.unwrap_err();
        assert!(matches!(error, L1Error::Unconfirmed { call: "post", .. }), "{error}");
    }
    // What has no blobs waits until one with blobs that does nothing took its place.
    let error = writer.deposit(Address::repeat_byte(1), 5).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { call: "replacement", .. }), "{error}");
    stage.anvil.mine(1).await.unwrap();
    let error = writer.deposit(Address::repeat_byte(1), 5).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { call: "deposit", .. }), "{error}");
    let through = stage.finalize().await;
    let client = writer.client();
    assert_eq!(client.postings(0, through).await.unwrap(), []);
    assert_eq!(client.deposits(0, through).await.unwrap().len(), 1);
}

//! Data in blobs, with the real commitments and proofs.

use blindfold_l1::{
    CodedBatch, DataError, DataPlace, DataPolicy, L1Client, L1Error, L1Writer, MAX_BLOB_DATA_BYTES, RunData,
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

/// Whether two sums differ by no more than a fifth.
fn are_close(one: u128, other: u128) -> bool {
    one.abs_diff(other) * 5 <= one.max(other)
}

/// What it costs decides, and after an eighth of the time that there is to post a header what is sure.
#[tokio::test]
async fn data_goes_where_it_is_cheaper_and_near_its_deadline_into_calldata() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(POSTER).await.with_data_policy(DataPolicy::Auto);
    assert!(writer.may_post_blobs());
    let batches = stage.batches(None, &[20_000, 20_000, 20_000]);
    let certificates: Vec<_> =
        batches.iter().map(|batch| stage.certify(&epochs, &batch.sealed.header)).collect();
    writer.post(&batches[..1], &certificates[0]).await.unwrap();
    let costs = writer.data_costs();
    let estimate = costs.estimate.unwrap();
    assert_eq!((costs.blobs.transactions, costs.calldata.transactions), (1, 0));
    assert!(are_close(estimate.blobs_wei.unwrap(), costs.blobs.wei), "{costs:?}");

    // What the same would have cost, and did not.
    let in_calldata = writer.clone().with_data_in(DataPlace::Calldata);
    in_calldata.post(&batches[1..2], &certificates[1]).await.unwrap();
    let costs = writer.data_costs();
    assert_eq!((costs.calldata.transactions, costs.calldata.bytes), (1, costs.blobs.bytes));
    assert!(are_close(estimate.calldata_wei, costs.calldata.wei), "{costs:?}");
    assert!(costs.calldata.wei > 2 * costs.blobs.wei);

    stage.anvil.mine(60).await.unwrap();
    writer.post(&batches[2..], &certificates[2]).await.unwrap();
    let costs = writer.data_costs();
    assert_eq!((costs.blobs.transactions, costs.calldata.transactions), (1, 2));
    let through = stage.finalize().await;
    let postings = writer.client().postings(0, through).await.unwrap();
    let read = postings.iter().flat_map(|posting| posting.data.whole().unwrap()).collect::<Vec<_>>();
    assert!(read == plain(&batches));

    // What cannot be read back is not posted.
    let mut config = stage.config();
    config.beacon_url = None;
    let client = L1Client::connect(config).await.unwrap();
    let blind = L1Writer::new(client, key(POSTER)).with_data_policy(DataPolicy::Auto);
    assert!(!blind.may_post_blobs());
}

#[tokio::test]
async fn headers_near_their_deadline_do_not_wait_for_blobs() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = blob_writer(&stage).await;
    let batches = stage.batches(None, &[20_000]);
    stage.anvil.mine(60).await.unwrap();
    writer.post(&batches, &stage.certify(&epochs, &batches[0].sealed.header)).await.unwrap();
    let through = stage.finalize().await;
    let client = writer.client();
    let posting = client.postings(0, through).await.unwrap().remove(0);
    assert_eq!(posting.data.whole(), Err(DataError::Absent));
    let found = client.reposted_data(&posting.headers, 0, through).await.unwrap();
    assert!(found.batches == plain(&batches), "it followed them");
    assert_eq!(writer.data_costs().blobs.transactions, 1);
}

/// L1 takes back the blocks with the data, and the transactions with them.
#[tokio::test]
async fn data_that_l1_takes_back_is_posted_again_in_either_place() {
    for place in [DataPlace::Calldata, DataPlace::Blobs] {
        let stage = Stage::new().await;
        let epochs = stage.register(100).await;
        let writer = stage.writer(POSTER).await.with_data_in(place);
        let batches: Vec<CodedBatch> = stage.batches(None, &[20_000; 4]);
        let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
        let certificate = stage.certify(&epochs, &headers[3]);
        writer.post_headers(&headers, &[], &certificate).await.unwrap();
        let posted = writer.client().newest_block().await.unwrap();
        writer.post_data(&batches).await.unwrap();
        let depth = writer.client().newest_block().await.unwrap() - posted;
        assert_eq!(depth, if place == DataPlace::Calldata { 2 } else { 1 });
        stage.anvil.call("anvil_reorg", json!([depth, []])).await.unwrap();
        stage.finalize().await;
        assert_eq!(writer.data_standing(0, 0).await.unwrap().lacking, [(1, 4)]);
        writer.post_data(&batches).await.unwrap();
        let through = stage.finalize().await;
        let found = writer.client().reposted_data(&headers, 0, through).await.unwrap();
        assert!(found.batches == plain(&batches));
    }
}

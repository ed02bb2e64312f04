//! Somebody posts headers in front of the sequencer's transaction, which then finds them there.

use alloy_sol_types::SolCall;
use blindfold_l1::{CodedBatch, DataFault, DataPlace, PostedRun, RunData, contracts::BlindedInbox};
use blindfold_protocol::{BatchHeader, Bytes, Canonical};
use serde_json::json;

use crate::stage::{POSTER, Stage, USER, key, plain, reverted};

fn headers(batches: &[CodedBatch]) -> Vec<BatchHeader> {
    batches.iter().map(|batch| batch.sealed.header).collect()
}

#[tokio::test]
async fn data_of_a_run_posted_in_front_is_read_from_the_later_transaction() {
    for place in [DataPlace::Calldata, DataPlace::Blobs] {
        let stage = Stage::new().await;
        let epochs = stage.register(100).await;
        let batches = stage.batches(None, &[100, 200, 300, 400, 500]);
        let all = headers(&batches);
        let somebody = stage.writer(USER).await;
        somebody.post_headers(&all[..2], &[], &stage.certify(&epochs, &all[1])).await.unwrap();
        let writer = stage.writer(POSTER).await.with_data_in(place);
        let sent = writer.post(&batches, &stage.certify(&epochs, &all[4])).await.unwrap();
        let through = stage.finalize().await;

        let client = writer.client();
        let postings = client.postings(0, through).await.unwrap();
        let numbers: Vec<_> = postings.iter().map(|posting| posting.numbers()).collect();
        assert_eq!(numbers, [(1, 2), (3, 5)]);
        assert_eq!(postings[0].batches, Err(DataFault::Absent));
        assert_eq!(client.reposted_data(&all[..2], 0, through).await.unwrap(), [plain(&batches[..2])]);
        assert_eq!(postings[1].batches, Ok(plain(&batches[2..])), "{place:?}");
        assert_eq!(client.postings_without_data(0).await.unwrap(), []);
        let rest = postings[1].runs[0];
        assert_eq!(client.headers_of(&rest).await.unwrap(), PostedRun::new(all[2..].to_vec(), sent.block));
    }
}

/// What was posted in front may be more than the transaction has: only the rest of the data is lacking then.
#[tokio::test]
async fn data_of_a_part_counts_and_the_rest_is_named() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300, 400]);
    let all = headers(&batches);
    let somebody = stage.writer(USER).await;
    somebody.post_headers(&all, &[], &stage.certify(&epochs, &all[3])).await.unwrap();
    let writer = stage.writer(POSTER).await;
    let client = writer.client();
    let head = client.posted_head().await.unwrap();
    writer.post(&batches[..3], &stage.certify(&epochs, &all[2])).await.unwrap();
    assert_eq!(client.posted_head().await.unwrap(), head);
    let through = stage.finalize().await;
    assert_eq!(client.reposted_data(&all, 0, through).await.unwrap().len(), 0);
    assert_eq!(client.postings_without_data(0).await.unwrap(), [(4, 4)]);

    // The same items without the sequencer's signature are none: somebody else is to supply them.
    let mut forged = batches[3..].to_vec();
    forged[0].sealed.signature.0[0] ^= 1;
    somebody.post_data(&forged).await.unwrap();
    stage.finalize().await;
    assert_eq!(client.postings_without_data(0).await.unwrap(), [(4, 4)]);
    writer.post_data(&batches[3..]).await.unwrap();
    let through = stage.finalize().await;
    assert_eq!(client.postings_without_data(0).await.unwrap(), []);
    let found = client.reposted_data(&all, 0, through).await.unwrap();
    assert_eq!(found, [plain(&batches)]);

    // Nor do they count beside the headers.
    let more = stage.batches(Some(&all[3]), &[500, 600]);
    let mut forged = more.clone();
    forged[1].sealed.signature.0 = [0; 65];
    somebody.post(&forged, &stage.certify(&epochs, &more[1].sealed.header)).await.unwrap();
    stage.finalize().await;
    assert_eq!(client.postings_without_data(0).await.unwrap(), [(6, 6)]);

    // Another header in the place of the head is no posted one.
    let other = stage.batches(Some(&more[0].sealed.header), &[41]);
    let certificate = stage.certify(&epochs, &other[0].sealed.header);
    reverted(writer.post(&other, &certificate).await, "WrongNumber { expected: 7, given: 6 }");
}

/// Headers that are passed over are not looked at: whatever stands in their place, readers find the others.
#[tokio::test]
async fn what_stands_in_the_place_of_posted_headers_misleads_nobody() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300]);
    let all = headers(&batches);
    let writer = stage.writer(POSTER).await;
    writer.post(&batches[..2], &stage.certify(&epochs, &all[1])).await.unwrap();
    let certificate = stage.certify(&epochs, &all[2]);
    let signature = blindfold_bte::bls::Signature::from_bytes(&certificate.signature).unwrap();
    let mut given: Vec<BlindedInbox::BatchHeader> = all.iter().map(Into::into).collect();
    (given[1].number, given[1].gas) = (3, 77);
    let call = BlindedInbox::postCall {
        headers: given,
        data: RunData::of(&batches).encode().into(),
        certificate: BlindedInbox::Certificate {
            signers: certificate.signers,
            signature: Bytes::copy_from_slice(&signature.to_eip2537()),
        },
    };
    let mut input = call.abi_encode();
    // Bytes that a number has no room for: selector, three offsets, length, then the first header.
    let filler_of_rules = 4 + 32 * 4 + 32 * 17;
    input[filler_of_rules] = 0xff;
    let transaction = json!({
        "from": key(USER).address(),
        "to": stage.deployment().inbox,
        "data": Bytes::from(input),
        "gas": "0x1000000",
    });
    stage.anvil.call("eth_sendTransaction", json!([transaction])).await.unwrap();
    let through = stage.finalize().await;

    let client = writer.client();
    assert_eq!(client.posted_head().await.unwrap().number, 3);
    let postings = client.postings(0, through).await.unwrap();
    assert_eq!(postings[1].headers, all[2..]);
    assert_eq!(postings[1].batches, Ok(plain(&batches[2..])));
    let run = client.run_of(3, 0).await.unwrap().unwrap();
    assert_eq!(run.headers, all[2..]);
    assert_eq!(client.reposted_data(&all[..2], 0, through).await.unwrap(), [plain(&batches[..2])]);
}

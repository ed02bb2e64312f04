//! Somebody posts headers in front of the sequencer's transaction, which then finds them there.

use alloy_sol_types::SolCall;
use blindfold_l1::{
    CodedBatch, DataError, DataPlace, L1Client, L1Submitter, L1Writer, PostedHead, PostedRun, RunData,
    Supplier, UNREAD_PATIENCE_BLOCKS, contracts::BlindedInbox,
};
use blindfold_protocol::{BatchHeader, Bytes, Canonical};
use serde_json::json;

use crate::stage::{POSTER, Stage, USER, key, plain, reverted};

fn headers(batches: &[CodedBatch]) -> Vec<BatchHeader> {
    batches.iter().map(|batch| batch.sealed.header).collect()
}

/// All numbers whose data is not there.
async fn lacking(client: &L1Client) -> Vec<(u64, u64)> {
    let (mut above, mut block, mut lacking) = (0, 0, Vec::new());
    loop {
        let standing = client.data_standing(above, block, Supplier::default()).await.unwrap();
        lacking.extend(standing.lacking);
        if standing.through == above {
            return lacking;
        }
        (above, block) = (standing.through, standing.block);
    }
}

/// Rule L-5.
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
        assert_eq!(postings[0].data.whole(), Err(DataError::Absent));
        assert_eq!(client.reposted_data(&all[..2], 0, through).await.unwrap().batches, plain(&batches[..2]));
        assert_eq!(postings[1].data.whole(), Ok(plain(&batches[2..])), "{place:?}");
        assert_eq!(lacking(client).await, []);
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
    let after = client.posted_head().await.unwrap();
    assert!(after.block > head.block);
    assert_eq!(PostedHead { block: head.block, ..after }, head);
    let through = stage.finalize().await;
    assert_eq!(client.reposted_data(&all, 0, through).await.unwrap().batches, plain(&batches[..3]));
    assert_eq!(lacking(client).await, [(4, 4)]);

    // The same items without the sequencer's signature are none: somebody else is to supply them.
    let mut forged = batches[3..].to_vec();
    forged[0].sealed.signature.0[0] ^= 1;
    somebody.post_data(&forged).await.unwrap();
    stage.finalize().await;
    assert_eq!(lacking(client).await, [(4, 4)]);
    writer.post_data(&batches[3..]).await.unwrap();
    let through = stage.finalize().await;
    assert_eq!(lacking(client).await, []);
    let found = client.reposted_data(&all, 0, through).await.unwrap().batches;
    assert_eq!(found, plain(&batches));

    // Nor do they count beside the headers.
    let more = stage.batches(Some(&all[3]), &[500, 600]);
    let mut forged = more.clone();
    forged[1].sealed.signature.0 = [0; 65];
    somebody.post(&forged, &stage.certify(&epochs, &more[1].sealed.header)).await.unwrap();
    stage.finalize().await;
    assert_eq!(lacking(client).await, [(6, 6)]);

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
    assert_eq!(postings[1].data.whole(), Ok(plain(&batches[2..])));
    let run = client.run_of(3, 0).await.unwrap().unwrap();
    assert_eq!(run.headers, all[2..]);
    assert_eq!(client.reposted_data(&all[..2], 0, through).await.unwrap().batches, plain(&batches[..2]));
}

/// Somebody posts the headers with data of which one batch bears no signature: the sequencer supplies that one, and a
/// reader puts both together (PD-1, PD-2).
#[tokio::test]
async fn a_partly_signed_posting_is_completed() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300]);
    let mut forged = batches.clone();
    forged[1].sealed.signature.0 = [0; 65];
    let certificate = stage.certify(&epochs, &batches[2].sealed.header);
    stage.writer(USER).await.post(&forged, &certificate).await.unwrap();
    let writer = stage.writer(POSTER).await;
    let client = writer.client();
    let through = stage.finalize().await;
    let posting = client.postings(0, through).await.unwrap().remove(0);
    assert_eq!(posting.data.whole(), Err(DataError::Unsigned));
    assert_eq!(lacking(client).await, [(2, 2)]);
    writer.post_data(&batches[1..2]).await.unwrap();
    let through = stage.finalize().await;
    assert_eq!(lacking(client).await, []);
    let found = client.posted_data(&posting.runs[0], Vec::new(), through).await.unwrap();
    assert!(found.batches.into_iter().eq(plain(&batches).into_iter().map(Some)));
}

/// L1 cuts a call with many hints into runs; each waits for its own data alone.
#[tokio::test]
async fn the_data_of_a_run_is_not_that_of_its_call() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let mut batches = stage.batches(None, &[100]);
    batches[0].sealed.header.envelope_count = 1_500;
    let mut next = stage.batches(Some(&batches[0].sealed.header), &[200]);
    next[0].sealed.header.envelope_count = 1_500;
    batches.append(&mut next);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let writer = stage.writer(POSTER).await;
    writer.post_headers(&headers, &[], &stage.certify(&epochs, &headers[1])).await.unwrap();
    let through = stage.finalize().await;
    let client = writer.client();
    let posting = client.postings(0, through).await.unwrap().remove(0);
    let runs: Vec<_> = posting.runs.iter().map(|run| (run.first, run.last)).collect();
    assert_eq!(runs, [(1, 1), (2, 2)]);
    for run in &posting.runs {
        let found = client.posted_data(run, Vec::new(), through).await.unwrap();
        assert_eq!((found.batches.len(), found.fault), (1, Some(DataError::Absent)));
    }
}

/// Somebody posts the headers with blobs of which the sequencer, which has no beacon node, cannot know what they hold.
/// Rule PD-3.
#[tokio::test]
async fn what_cannot_be_read_is_lacking() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100]);
    let header = batches[0].sealed.header;
    let somebody = stage.writer(USER).await.with_data_in(DataPlace::Blobs);
    somebody.post_headers(&[header], b"garbage", &stage.certify(&epochs, &header)).await.unwrap();
    stage.finalize().await;
    let mut config = stage.config();
    config.beacon_url = None;
    let blind = L1Client::connect(config).await.unwrap();
    assert_eq!(lacking(&blind).await, [(1, 1)]);
}

/// L1 is read in steps: headers and their data may stand far from each other, and from the next ones (PD-2).
#[tokio::test]
async fn data_far_behind_its_headers_is_found() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300, 400]);
    let all = headers(&batches);
    let (somebody, writer) = (stage.writer(USER).await, stage.writer(POSTER).await);
    let client = writer.client();
    somebody.post_headers(&all[..2], &[], &stage.certify(&epochs, &all[1])).await.unwrap();
    stage.anvil.mine(100).await.unwrap();
    writer.post_data(&batches[1..2]).await.unwrap();
    somebody.post_headers(&all[2..3], &[], &stage.certify(&epochs, &all[2])).await.unwrap();
    stage.anvil.mine(200).await.unwrap();
    writer.post(&batches[3..], &stage.certify(&epochs, &all[3])).await.unwrap();
    let through = stage.finalize().await;
    assert_eq!(lacking(client).await, [(1, 1), (3, 3)]);
    let first = client.data_standing(0, 0, Supplier::default()).await.unwrap();
    assert_eq!((first.through, first.lacking.as_slice()), (2, [(1, 1)].as_slice()));
    assert!(first.block < through, "{first:?}");
    for lacking in [&batches[..1], &batches[2..3]] {
        writer.post_data(lacking).await.unwrap();
    }
    let through = stage.finalize().await;
    assert_eq!(lacking(client).await, []);
    assert_eq!(client.reposted_data(&all[..3], 0, through).await.unwrap().batches, plain(&batches[..3]));
}

/// A beacon node that does not answer leaves out what it should give, and stops nobody.
#[tokio::test]
async fn a_beacon_node_that_is_away_stops_no_reader() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100]);
    let header = batches[0].sealed.header;
    let writer = stage.writer(POSTER).await.with_data_in(DataPlace::Blobs);
    writer.post(&batches, &stage.certify(&epochs, &header)).await.unwrap();
    let through = stage.finalize().await;
    let mut config = stage.config();
    config.beacon_url = Some("http://127.0.0.1:1".to_owned());
    let client = L1Client::connect(config).await.unwrap();
    let postings = client.postings(0, through).await.unwrap();
    assert!(matches!(postings[0].data.whole(), Err(DataError::Beacon(_))), "{:?}", postings[0].data);
    let found = client.posted_data(&postings[0].runs[0], Vec::new(), through).await.unwrap();
    assert_eq!(found.batches, [None]);
    assert!(found.fault.is_some_and(|fault| fault.may_pass(through)));
    // It has an hour before the data counts as lacking.
    assert_eq!(client.data_standing(0, 0, Supplier::default()).await.unwrap().through, 0);
    stage.anvil.mine(300).await.unwrap();
    assert_eq!(lacking(&client).await, [(1, 1)]);
    assert_eq!(lacking(writer.client()).await, []);
}

/// PD-7: what a beacon node does not give just now may be the data, wherever it stands.
#[tokio::test]
async fn a_beacon_node_has_an_hour_for_data_that_was_posted_again() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300]);
    let all = headers(&batches);
    let (somebody, writer) =
        (stage.writer(USER).await, stage.writer(POSTER).await.with_data_in(DataPlace::Blobs));
    let posted = somebody.post_headers(&all, &[], &stage.certify(&epochs, &all[2])).await.unwrap();
    writer.post_data(&batches[1..2]).await.unwrap();
    let through = stage.finalize().await;
    let mut config = stage.config();
    config.beacon_url = Some("http://127.0.0.1:1".to_owned());
    let client = L1Client::connect(config).await.unwrap();
    // Which numbers are in the blobs nobody can say.
    assert_eq!(lacking(&client).await, []);
    assert_eq!(lacking(writer.client()).await, [(1, 1), (3, 3)]);
    let found = client.reposted_data(&all, posted.block - 1, through).await.unwrap();
    assert!(found.batches.is_empty() && matches!(found.unread, Some(DataError::Beacon(_))), "{found:?}");
    let found = writer.client().reposted_data(&all, posted.block - 1, through).await.unwrap();
    assert_eq!((found.batches, found.unread), (plain(&batches[1..2]), None));
    stage.anvil.mine(300).await.unwrap();
    stage.finalize().await;
    assert_eq!(lacking(&client).await, [(1, 3)]);
}

/// What the supplier itself posted in blobs is there, whatever its beacon node says.
#[tokio::test]
async fn nobody_pays_for_his_own_blobs_again_because_a_beacon_node_is_away() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300]);
    let all = headers(&batches);
    let somebody = stage.writer(USER).await;
    somebody.post_headers(&all[..1], &[], &stage.certify(&epochs, &all[0])).await.unwrap();
    let writer = stage.writer(POSTER).await.with_data_in(DataPlace::Blobs);
    writer.post(&batches, &stage.certify(&epochs, &all[2])).await.unwrap();
    stage.anvil.mine(300).await.unwrap();
    stage.finalize().await;
    let mut config = stage.config();
    config.beacon_url = Some("http://127.0.0.1:1".to_owned());
    let client = L1Client::connect(config).await.unwrap();
    assert_eq!(lacking(&client).await, [(1, 3)]);
    let supplier = Supplier { account: writer.address(), blobs_expire: true };
    let standing = client.data_standing(0, 0, supplier).await.unwrap();
    assert_eq!((standing.through, standing.lacking), (3, vec![]));
}

/// A reader whose beacon node does not answer.
async fn without_beacon(stage: &Stage) -> L1Client {
    let mut config = stage.config();
    config.beacon_url = Some("http://127.0.0.1:1".to_owned());
    L1Client::connect(config).await.unwrap()
}

/// PD-8: the same of data that followed its headers, in one transaction, in several, or with headers that were there.
#[tokio::test]
async fn own_blobs_that_followed_their_headers_are_there() {
    for (items, again) in [(vec![100; 3], false), (vec![33_000; 12], false), (vec![100; 3], true)] {
        let stage = Stage::new().await;
        let epochs = stage.register(100).await;
        let batches = stage.batches(None, &items);
        let (all, last) = (headers(&batches), batches.len() as u64);
        let certificate = stage.certify(&epochs, &all[all.len() - 1]);
        let writer = stage.writer(POSTER).await.with_data_in(DataPlace::Blobs);
        writer.post_headers(&all, &[], &certificate).await.unwrap();
        if again {
            writer.post(&batches, &certificate).await.unwrap();
        } else {
            writer.post_data(&batches).await.unwrap();
        }
        let supplier = Supplier { account: writer.address(), blobs_expire: true };
        let client = without_beacon(&stage).await;
        stage.finalize().await;
        for blocks in [1, 300] {
            stage.anvil.mine(blocks).await.unwrap();
            let standing = client.data_standing(0, 0, supplier).await.unwrap();
            assert_eq!((standing.through, standing.lacking), (last, vec![]), "{items:?}, again: {again}");
        }
        assert_eq!(lacking(&client).await, [(1, last)], "nobody else relies on it");
        assert_eq!(lacking(writer.client()).await, []);
    }
}

/// PD-8: what stands beside one's own blobs is seen to be lacking.
#[tokio::test]
async fn own_blobs_hide_nothing_that_is_lacking() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200, 300, 400]);
    let all = headers(&batches);
    let writer = stage.writer(POSTER).await.with_data_in(DataPlace::Blobs);
    writer.post_headers(&all, &[], &stage.certify(&epochs, &all[3])).await.unwrap();
    writer.post_data(&batches[1..3]).await.unwrap();
    let supplier = Supplier { account: writer.address(), blobs_expire: true };
    stage.finalize().await;
    let client = without_beacon(&stage).await;
    let standing = client.data_standing(0, 0, supplier).await.unwrap();
    assert_eq!((standing.through, standing.lacking), (4, vec![(1, 1), (4, 4)]));
}

/// PD-7: whoever posts what cannot be read, again each hour, puts off what is supplied for some hours, and no longer.
#[tokio::test]
async fn what_cannot_be_read_does_not_keep_data_from_being_supplied_for_ever() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100]);
    let all = headers(&batches);
    let writer = stage.writer(POSTER).await;
    writer.post_headers(&all, &[], &stage.certify(&epochs, &all[0])).await.unwrap();
    let somebody = stage.writer(USER).await.with_data_in(DataPlace::Blobs);
    let client = without_beacon(&stage).await;
    let standing = async || {
        somebody.post_data(&batches).await.unwrap();
        stage.finalize().await;
        let standing = client.data_standing(0, 0, Supplier::default()).await.unwrap();
        (standing.through, standing.lacking)
    };
    assert_eq!(standing().await, (0, vec![]));
    stage.anvil.mine(2 * UNREAD_PATIENCE_BLOCKS).await.unwrap();
    assert_eq!(standing().await, (0, vec![]));
    stage.anvil.mine(2 * UNREAD_PATIENCE_BLOCKS).await.unwrap();
    assert_eq!(standing().await, (1, vec![(1, 1)]));
}

/// PD-7: whoever owes data does not take for it what somebody posted and cannot be read.
#[tokio::test]
async fn data_that_is_owed_is_not_there_before_it_can_be_read() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100]);
    let all = headers(&batches);
    let writer = stage.writer(POSTER).await;
    writer.post_headers(&all, &[], &stage.certify(&epochs, &all[0])).await.unwrap();
    let somebody = stage.writer(USER).await.with_data_in(DataPlace::Blobs);
    somebody.post_data(&batches).await.unwrap();
    stage.finalize().await;
    assert_eq!(L1Submitter::lacks_data(&writer, &all[0]).await, Ok(false));
    let blind = L1Writer::new(without_beacon(&stage).await, key(POSTER));
    let fault = L1Submitter::lacks_data(&blind, &all[0]).await.unwrap_err();
    assert!(fault.is_transient(), "{fault}");
    stage.anvil.mine(UNREAD_PATIENCE_BLOCKS).await.unwrap();
    stage.finalize().await;
    assert_eq!(L1Submitter::lacks_data(&blind, &all[0]).await, Ok(true));
}

/// PD-5: data in blocks that are not final is not there yet, and is not to be posted again.
#[tokio::test]
async fn data_that_is_not_final_is_awaited() {
    for place in [DataPlace::Calldata, DataPlace::Blobs] {
        let stage = Stage::new().await;
        let epochs = stage.register(100).await;
        let batches = stage.batches(None, &[100, 200]);
        let all = headers(&batches);
        let somebody = stage.writer(USER).await;
        somebody.post_headers(&all, &[], &stage.certify(&epochs, &all[1])).await.unwrap();
        stage.finalize().await;
        let writer = stage.writer(POSTER).await.with_data_in(place);
        let sent = writer.post_data(&batches[1..]).await.unwrap();
        let supplier = Supplier { account: writer.address(), blobs_expire: false };
        let standing = writer.client().data_standing(0, 0, supplier).await.unwrap();
        assert_eq!(standing.through, 2, "{place:?}");
        assert_eq!(standing.lacking, [(1, 1)], "{place:?}");
        assert!(standing.awaited.is_some_and(|block| block >= sent.block), "{standing:?}");
        stage.finalize().await;
        let standing = writer.client().data_standing(0, 0, supplier).await.unwrap();
        assert_eq!((standing.lacking, standing.awaited), (vec![(1, 1)], None));
    }
}

/// After a restart: whether the data of one's newest run followed its headers shows before they are final.
#[tokio::test]
async fn whether_data_followed_is_seen_in_blocks_that_are_not_final() {
    for place in [DataPlace::Calldata, DataPlace::Blobs] {
        let stage = Stage::new().await;
        let epochs = stage.register(100).await;
        let batches = stage.batches(None, &[100, 200, 300]);
        let all = headers(&batches);
        let writer = stage.writer(POSTER).await.with_data_in(place);
        writer.post_headers(&all[..2], &[], &stage.certify(&epochs, &all[1])).await.unwrap();
        assert!(writer.lacks_new_data(&all[..2]).await.unwrap(), "{place:?}");
        writer.post_data(&batches[..2]).await.unwrap();
        assert!(!writer.lacks_new_data(&all[..2]).await.unwrap(), "{place:?}");
        writer.post(&batches[2..], &stage.certify(&epochs, &all[2])).await.unwrap();
        // A beacon node gives the blobs of a block when there is another one.
        stage.anvil.mine(1).await.unwrap();
        assert!(!writer.lacks_new_data(&all[2..]).await.unwrap(), "{place:?}");
        stage.finalize().await;
        assert!(!writer.lacks_new_data(&all).await.unwrap(), "final ones are not its business");
    }
}

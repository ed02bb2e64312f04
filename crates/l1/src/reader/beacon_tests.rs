#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::json;

use super::*;
use crate::{
    posting::blobs::encode_blobs,
    test_server::{Answer as Reply, serve},
};

fn origin(number: u64, parent_beacon_block_root: B256) -> L1Origin {
    L1Origin {
        number,
        hash: B256::repeat_byte(1),
        timestamp: 12 * number,
        base_fee: 1,
        blob_base_fee: 1,
        parent_beacon_block_root,
    }
}

fn beacon(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Beacon {
    let url = serve(move |method, path| {
        assert_eq!(method, "GET");
        reply(path.as_str().unwrap())
    });
    Beacon::new(&url, 5_000).unwrap()
}

fn blob(fill: u8) -> (Bytes, B256) {
    let blob = Bytes::copy_from_slice(encode_blobs(&[fill; 100]).unwrap()[0].as_slice());
    let hash = versioned_hash(&blob).unwrap();
    (blob, hash)
}

fn data(blobs: &[Bytes]) -> serde_json::Value {
    json!({ "execution_optimistic": false, "finalized": true, "data": blobs })
}

#[tokio::test]
async fn blobs_count_by_their_versioned_hash() {
    let ((one, first), (two, second)) = (blob(1), blob(2));
    // In another order, with one that was not asked for, and with something that is no blob.
    let mut answer = data(&[blob(3).0, two.clone(), one.clone()]);
    answer["data"].as_array_mut().unwrap().push(json!("0x1234"));
    answer["data"].as_array_mut().unwrap().push(json!(Bytes::from(vec![0xff; BYTES_PER_BLOB])));
    let root = B256::repeat_byte(0xbe);
    let expected = format!("/eth/v1/beacon/blobs/{root}?versioned_hashes={first}&versioned_hashes={second}");
    let node = beacon(move |path| {
        assert_eq!(path, expected);
        Reply::Result(answer.clone())
    });
    let (holder, child) = (origin(7, B256::ZERO), origin(8, root));
    assert_eq!(node.blobs(&holder, &child, &[first, second]).await.unwrap(), Some(vec![one.clone(), two]));

    let answer = data(std::slice::from_ref(&one));
    let development = beacon(move |path| {
        // It does not understand the filter.
        assert!(path.starts_with("/eth/v1/beacon/blobs/7"), "{path}");
        Reply::Result(if path.contains('?') { data(&[]) } else { answer.clone() })
    });
    let child = origin(8, B256::ZERO);
    assert_eq!(development.blobs(&holder, &child, &[first]).await.unwrap(), Some(vec![one]));
    assert_eq!(development.blobs(&holder, &child, &[second]).await.unwrap(), None, "another blob");
    assert_eq!(development.blobs(&holder, &child, &[]).await.unwrap(), None);
}

#[tokio::test]
async fn a_node_that_refuses_the_list_of_hashes_is_asked_for_the_whole_block() {
    let (holder, child) = (origin(7, B256::ZERO), origin(8, B256::ZERO));
    let (one, hash) = blob(1);
    for refusal in [Reply::Status(400), Reply::Status(500), Reply::Raw("{}")] {
        let answer = data(std::slice::from_ref(&one));
        let strict = beacon(
            move |path| {
                if path.contains('?') { refusal.clone() } else { Reply::Result(answer.clone()) }
            },
        );
        assert_eq!(strict.blobs(&holder, &child, &[hash]).await.unwrap(), Some(vec![one.clone()]));
    }
}

#[tokio::test]
async fn what_a_node_does_not_have_is_none_and_nonsense_is_an_error() {
    let (holder, child, hashes) = (origin(7, B256::ZERO), origin(8, B256::ZERO), [blob(1).1]);
    let ask = async |reply: fn(&str) -> Reply| beacon(reply).blobs(&holder, &child, &hashes).await;
    assert_eq!(ask(|_| Reply::Status(404)).await.unwrap(), None);
    assert_eq!(ask(|_| Reply::Result(json!({ "data": [] }))).await.unwrap(), None);
    assert!(matches!(ask(|_| Reply::Status(500)).await, Err(L1Error::HttpStatus { status: 500, .. })));
    let many = |_: &str| Reply::Result(json!({ "data": vec!["0x"; MAX_ANSWER_BLOBS + 1] }));
    assert!(matches!(ask(many).await, Err(L1Error::Malformed { .. })));
    assert!(matches!(ask(|_| Reply::Raw("{}")).await, Err(L1Error::Malformed { .. })));
}

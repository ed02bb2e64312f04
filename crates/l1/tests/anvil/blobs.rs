//! Data in blobs, with the real commitments and proofs.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use blindfold_l1::{
    CodedBatch, DataError, DataPlace, DataPolicy, L1Client, L1Error, L1Writer, MAX_BLOB_DATA_BYTES, Recovery,
    RunData,
};
use blindfold_protocol::{Address, Canonical};
use serde_json::{Value, json};

use crate::stage::{POSTER, Stage, USER, key, plain};

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

/// A server in front of an L1 node that takes no transactions with blobs, as some providers, and passes everything else on.
fn without_blobs(url: &str) -> String {
    let node = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, node) = (stream.unwrap(), node.clone());
            // A client that leaves in the middle ends its connection, nothing more.
            std::thread::spawn(move || pass_on(stream, &node));
        }
    });
    url
}

fn pass_on(mut stream: TcpStream, node: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length: usize = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let call: Value = serde_json::from_slice(&body).unwrap_or_default();
    let raw = call["params"][0].as_str().unwrap_or_default();
    if call["method"] == "eth_sendRawTransaction" && raw.starts_with("0x03") {
        let error = json!({ "code": -32_000, "message": "transaction type not supported" });
        let answer = json!({ "jsonrpc": "2.0", "id": call["id"], "error": error }).to_string();
        let length = answer.len();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
        );
    }
    let mut node = TcpStream::connect(node)?;
    write!(node, "POST / HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\n")?;
    write!(node, "content-length: {length}\r\nconnection: close\r\n\r\n")?;
    node.write_all(&body)?;
    std::io::copy(&mut node, &mut stream).map(drop)
}

/// A beacon node that passes on what it is asked for, and how often it was asked.
fn counting_beacon(node: &str) -> (String, Arc<AtomicUsize>) {
    let node = node.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let Some(asks) = head.first() else { continue };
            counts.fetch_add(1, Ordering::SeqCst);
            let mut node = TcpStream::connect(&node).unwrap();
            write!(node, "{asks}\r\nhost: node\r\nconnection: close\r\n\r\n").unwrap();
            // Whoever asked may have left.
            let _ = std::io::copy(&mut node, &mut stream);
        }
    });
    (url, asked)
}

/// Whoever pays for blobs of no use has readers fetch them once, and compute their commitments. Rule PD-3.
#[tokio::test]
async fn blobs_of_no_use_are_not_fetched_with_each_look() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[100, 200]);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let certificate = stage.certify(&epochs, &headers[1]);
    let writer = blob_writer(&stage).await;
    let somebody = stage.writer(USER).await.with_data_in(DataPlace::Blobs);
    writer.post_headers(&headers, &[], &certificate).await.unwrap();
    // Data that does not fit, and bytes that are none.
    let mut forged = batches.clone();
    forged.iter_mut().for_each(|batch| batch.sealed.items[0][0] ^= 1);
    somebody.post_data(&forged).await.unwrap();
    somebody.post_headers(&headers, b"no data", &certificate).await.unwrap();
    let (url, asked) = counting_beacon(stage.anvil.url());
    let mut config = stage.config();
    config.beacon_url = Some(url);
    let reader = L1Client::connect(config).await.unwrap();
    let look = async || {
        let through = stage.finalize().await;
        let found = reader.reposted_data(&headers, 0, through).await.unwrap();
        assert_eq!(found.unread, None);
        (found.batches, asked.load(Ordering::SeqCst))
    };
    let (found, times) = look().await;
    assert!(found.is_empty() && times >= 2, "{times}");
    assert_eq!(look().await, (vec![], times));
    writer.post_data(&batches).await.unwrap();
    let (found, _) = look().await;
    assert!(found == plain(&batches), "{} batches", found.len());
}

/// Rule DC-5.
#[tokio::test]
async fn data_goes_into_calldata_where_the_node_takes_no_blobs() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let mut config = stage.config();
    config.url = without_blobs(stage.anvil.url());
    let client = L1Client::connect(config).await.unwrap();
    let writer = L1Writer::new(client, key(POSTER)).with_data_policy(DataPolicy::Auto);
    let batches = stage.batches(None, &[20_000, 20_000]);
    let [first, second] = [0, 1].map(|index: usize| batches[index].sealed.header);
    writer.post_headers(&[first], &[], &stage.certify(&epochs, &first)).await.unwrap();
    let mut tries = 1;
    while let Err(error) = writer.post_data(&batches[..1]).await {
        assert!(tries < 10, "{error}");
        tries += 1;
    }
    let costs = writer.data_costs();
    assert_eq!((costs.calldata.transactions, costs.blobs.transactions), (1, 0));
    assert_eq!((tries, costs.blob_refusals), (3, 3));

    // It is not tried again at once.
    writer.post(&batches[1..], &stage.certify(&epochs, &second)).await.unwrap();
    let costs = writer.data_costs();
    assert_eq!((costs.calldata.transactions, costs.blob_refusals), (2, 3));
    let through = stage.finalize().await;
    let found = writer.client().reposted_data(&[first], 0, through).await.unwrap();
    assert!(found.batches == plain(&batches[..1]));

    // Where nothing but blobs is wanted, the operator has to choose.
    let stubborn = writer.with_data_in(DataPlace::Blobs);
    let error = stubborn.post_data(&batches[..1]).await.unwrap_err();
    assert!(matches!(error, L1Error::BlobsRefused { .. }), "{error}");
    assert!(error.recovery() == Recovery::GiveUp && error.to_string().contains("sequencer.posting.data"));
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

/// An L1 that is too dear for data is not too dear for headers. Rule DC-3.
#[tokio::test]
async fn headers_near_their_deadline_go_alone_where_their_data_is_too_dear() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let batches = stage.batches(None, &[60_000]);
    let certificate = stage.certify(&epochs, &batches[0].sealed.header);
    let post = async || {
        let mut config = stage.config();
        // Enough for headers, and not for the three million gas of their data.
        config.max_transaction_fee_wei = stage.client().await.gas_offer().await.unwrap() * 1_500_000;
        let client = L1Client::connect(config).await.unwrap();
        let writer = L1Writer::new(client.clone(), key(POSTER));
        let fault = writer.post(&batches, &certificate).await.unwrap_err();
        let L1Error::FeeAboveLimit { call, .. } = fault else { panic!("{fault}") };
        (call, client.posted_head().await.unwrap().number)
    };
    assert_eq!(post().await, ("post", 0));
    stage.anvil.mine(60).await.unwrap();
    assert_eq!(post().await, ("postData", 1));
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

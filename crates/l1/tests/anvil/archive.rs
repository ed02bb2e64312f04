//! Data that L1 only names.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use blindfold_l1::{
    CodedBatch, DataError, DataPolicy, L1Client, L1Error, L1Writer, RunData, Supplier,
    UNREAD_PATIENCE_BLOCKS, split_run_data,
};
use blindfold_protocol::Canonical;

use crate::stage::{POSTER, Stage, USER, key, plain};

type Held = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// An archive that keeps whatever it is given, until a test takes it out.
fn archive() -> (String, Held) {
    let (url, held, _) = counting_archive();
    (url, held)
}

/// The same, and how often it was asked for something.
fn counting_archive() -> (String, Held, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (held, asked) = (Held::default(), Arc::new(AtomicUsize::new(0)));
    let (keeps, counts) = (Arc::clone(&held), Arc::clone(&asked));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
                    break;
                }
                lines.push(line.trim().to_lowercase());
            }
            let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            reader.read_exact(&mut body).unwrap();
            let (method, rest) = lines[0].split_once(' ').unwrap();
            let path = rest.split(' ').next().unwrap().to_owned();
            let mut held = keeps.lock().unwrap();
            let (status, body) = if method == "put" {
                held.insert(path, body);
                (200, Vec::new())
            } else {
                counts.fetch_add(1, Ordering::SeqCst);
                held.get(&path).map_or((404, Vec::new()), |data| (200, data.clone()))
            };
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
                .and_then(|()| stream.write_all(&body))
                .unwrap();
        }
    });
    (url, held, asked)
}

async fn client(stage: &Stage, urls: &[&String]) -> L1Client {
    let mut config = stage.config();
    config.archive_urls = urls.iter().map(|url| (*url).clone()).collect();
    L1Client::connect(config).await.unwrap()
}

/// DA-1 to DA-3.
#[tokio::test]
async fn data_in_an_archive_is_read_back_by_its_hash() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let (url, held) = archive();
    let writer = L1Writer::new(client(&stage, &[&url]).await, key(POSTER));
    let writer = writer.with_data_policy(DataPolicy::Archive);
    let batches = stage.batches(None, &[20_000, 30_000, 33_000]);
    let certificate = stage.certify(&epochs, &batches[2].sealed.header);
    let sent = writer.post(&batches, &certificate).await.unwrap();
    let costs = writer.data_costs();
    assert_eq!(
        (costs.archive.transactions, costs.calldata.transactions, held.lock().unwrap().len()),
        (1, 0, 1)
    );
    assert!(costs.archive.bytes > 166_000 && sent.gas_used < 300_000, "{costs:?}");
    let through = stage.finalize().await;

    let posting = writer.client().postings(0, through).await.unwrap().remove(0);
    assert!(posting.data.whole() == Ok(plain(&batches)), "{:?}", posting.data.fault);
    let told = async |urls: &[&String]| {
        let posting = client(&stage, urls).await.postings(0, through).await.unwrap().remove(0);
        posting.data.whole()
    };
    assert_eq!(told(&[]).await, Err(DataError::NoArchive));
    // Another archive is asked where the first one has lost it, or gives something else.
    let (other, empty) = archive();
    assert!(told(&[&other, &url]).await == Ok(plain(&batches)));
    assert!(matches!(told(&[&other]).await, Err(DataError::Withheld { .. })));
    let path = held.lock().unwrap().keys().next().unwrap().clone();
    empty.lock().unwrap().insert(path, vec![0; 10]);
    let forged = told(&[&other]).await.unwrap_err();
    assert!(
        matches!(&forged, DataError::Withheld { fault, .. } if matches!(**fault, L1Error::NotArchived { .. }))
    );
    assert!(!forged.may_pass(through));
}

/// What is lost is supplied anew: the archive is given it before L1 names it once more.
#[tokio::test]
async fn data_that_archives_lost_is_lacking_and_comes_back() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let (url, held) = archive();
    let writer = L1Writer::new(client(&stage, &[&url]).await, key(POSTER));
    let writer = writer.with_data_policy(DataPolicy::Archive);
    let batches: Vec<CodedBatch> = stage.batches(None, &[100, 100]);
    writer.post(&batches, &stage.certify(&epochs, &batches[1].sealed.header)).await.unwrap();
    stage.finalize().await;
    let standing = async || writer.data_standing(0, 0).await.unwrap();
    assert_eq!((standing().await.through, standing().await.lacking), (2, vec![]));
    held.lock().unwrap().clear();
    assert_eq!((standing().await.through, standing().await.lacking), (2, vec![(1, 2)]), "at once");
    // One that does not answer has an hour.
    let gone = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let deaf = client(&stage, &[&gone]).await;
    let heard = async || deaf.data_standing(0, 0, Supplier::default()).await.unwrap();
    assert_eq!((heard().await.through, heard().await.lacking), (0, vec![]));
    stage.anvil.mine(UNREAD_PATIENCE_BLOCKS + 1).await.unwrap();
    assert_eq!((heard().await.through, heard().await.lacking), (2, vec![(1, 2)]));
    // Whoever has no archive sees at once that L1 has no data.
    let blind = client(&stage, &[]).await.data_standing(0, 0, Supplier::default()).await.unwrap();
    assert_eq!((blind.through, blind.lacking), (2, vec![(1, 2)]));

    writer.post_data(&batches).await.unwrap();
    let through = stage.finalize().await;
    assert_eq!(standing().await.lacking, []);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let found = writer.client().reposted_data(&headers, 0, through).await.unwrap();
    assert!(found.batches == plain(&batches));
    // An archive that does not answer keeps a posting from going out, and L1 from naming what nobody has.
    let blocked = L1Writer::new(client(&stage, &[&gone]).await, key(POSTER));
    let blocked = blocked.with_data_policy(DataPolicy::Archive);
    let newest = writer.client().newest_block().await.unwrap();
    let fault = blocked.post_data(&batches).await.unwrap_err();
    assert!(fault.is_transient() && !fault.may_be_done(), "{fault}");
    assert_eq!(writer.client().newest_block().await.unwrap(), newest);
}

/// Rule DA-4.
#[tokio::test]
async fn a_name_costs_one_answer_however_often_it_is_posted() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let (url, held, asked) = counting_archive();
    let of = async |account| {
        let writer = L1Writer::new(client(&stage, &[&url]).await, key(account));
        writer.with_data_policy(DataPolicy::Archive)
    };
    let (writer, somebody) = (of(POSTER).await, of(USER).await);
    let batches = stage.batches(None, &[100, 200]);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    writer.post_headers(&headers, &[], &stage.certify(&epochs, &headers[1])).await.unwrap();
    let reader = client(&stage, &[&url]).await;
    let look = async || {
        let through = stage.finalize().await;
        let found = reader.reposted_data(&headers, 0, through).await.unwrap();
        assert_eq!(found.unread, None);
        (found.batches, asked.load(Ordering::SeqCst))
    };

    // Data that does not fit, again and again.
    let mut forged = batches.clone();
    forged.iter_mut().for_each(|batch| batch.sealed.items[0][0] ^= 1);
    for _ in 0..20 {
        somebody.post_data(&forged).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(look().await, (vec![], 1));
    }
    // A name of nothing.
    forged[0].sealed.items[0][0] ^= 2;
    somebody.post_data(&forged).await.unwrap();
    somebody.post_data(&forged).await.unwrap();
    held.lock().unwrap().clear();
    for _ in 0..2 {
        assert_eq!(look().await, (vec![], 2));
    }
    // What counts is found behind them.
    writer.post_data(&batches[1..]).await.unwrap();
    assert_eq!(look().await, (plain(&batches[1..]), 3));
    writer.post_data(&batches).await.unwrap();
    let (found, _) = look().await;
    assert!(found == plain(&batches), "{} batches", found.len());
}

/// What will be posted many know before, and so its name. Rule DA-4.
#[tokio::test]
async fn who_names_data_before_it_is_archived_keeps_nobody_from_it() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let ((url, _), (elsewhere, _)) = (archive(), archive());
    let of = async |account, url: &String| {
        let writer = L1Writer::new(client(&stage, &[url]).await, key(account));
        writer.with_data_policy(DataPolicy::Archive)
    };
    let (writer, somebody) = (of(POSTER, &url).await, of(USER, &elsewhere).await);
    let batches = stage.batches(None, &[100, 200]);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    writer.post_headers(&headers, &[], &stage.certify(&epochs, &headers[1])).await.unwrap();
    let reader = client(&stage, &[&url]).await;
    let look = async || {
        let through = stage.finalize().await;
        reader.reposted_data(&headers, 0, through).await.unwrap().batches
    };
    somebody.post_data(&batches).await.unwrap();
    for _ in 0..2 {
        assert!(look().await.is_empty());
    }
    writer.post_data(&batches).await.unwrap();
    let found = look().await;
    assert!(found == plain(&batches), "{} batches", found.len());
}

/// A part of data is no data that stands beside headers: whoever names it there, before its poster does, hides nothing.
/// Rule DA-4.
#[tokio::test]
async fn who_names_a_part_as_a_whole_keeps_nobody_from_it() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let (url, _) = archive();
    let of = async |account| {
        let writer = L1Writer::new(client(&stage, &[&url]).await, key(account));
        writer.with_data_policy(DataPolicy::Archive)
    };
    let (writer, somebody) = (of(POSTER).await, of(USER).await);
    let batches = stage.batches(None, &[100, 200]);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let certificate = stage.certify(&epochs, &headers[1]);
    writer.post_headers(&headers, &[], &certificate).await.unwrap();
    let data = RunData::of(&batches).encode();
    let parts = split_run_data(1, 2, &data, data.len() + 1_000).unwrap();
    assert_eq!(parts.len(), 1);
    somebody.post_headers(&headers, &parts[0].encode(), &certificate).await.unwrap();
    writer.post_data(&batches).await.unwrap();
    let through = stage.finalize().await;
    // The supplier pays for nothing twice, and a reader goes on.
    let standing = client(&stage, &[&url]).await.data_standing(0, 0, Supplier::default()).await.unwrap();
    assert_eq!((standing.through, standing.lacking), (2, vec![]));
    let found = client(&stage, &[&url]).await.reposted_data(&headers, 0, through).await.unwrap();
    assert!(found.batches == plain(&batches), "{} batches", found.batches.len());
}

/// More than is kept of data in which nothing was found. Rule DA-4.
#[tokio::test]
async fn much_data_of_no_use_is_not_fetched_with_each_look() {
    const LENGTH: usize = 16 << 20;
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let (url, _, asked) = counting_archive();
    let of = async |account| {
        let writer = L1Writer::new(client(&stage, &[&url]).await, key(account));
        writer.with_data_policy(DataPolicy::Archive)
    };
    let (writer, somebody) = (of(POSTER).await, of(USER).await);
    let batches = stage.batches(None, &[100, 200]);
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let certificate = stage.certify(&epochs, &headers[1]);
    writer.post_headers(&headers, &[], &certificate).await.unwrap();
    for fill in 3..=7u8 {
        somebody.post_headers(&headers, &vec![fill; LENGTH], &certificate).await.unwrap();
    }
    let reader = client(&stage, &[&url]).await;
    let look = async || {
        let through = stage.finalize().await;
        let found = reader.reposted_data(&headers, 0, through).await.unwrap();
        assert_eq!(found.unread, None);
        (found.batches, asked.load(Ordering::SeqCst))
    };
    for _ in 0..2 {
        assert_eq!(look().await, (vec![], 5));
    }
    writer.post_data(&batches).await.unwrap();
    assert_eq!(look().await, (plain(&batches), 6));
}

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path as FilePath,
};

use blindfold_l1::{Archive, ArchivedData, L1Error};

use super::*;

fn args(dir: &FilePath, max_bytes: u64) -> ArchiveArgs {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    ArchiveArgs { dir: dir.to_owned(), read_addr: any, write_addr: any, max_bytes }
}

async fn started(dir: &FilePath, max_bytes: u64) -> Running {
    Running::start(args(dir, max_bytes)).await.unwrap()
}

/// Begins to write data of a thousand bytes; returns when the server waits for the first of them.
async fn begun(server: &ServerHandle) -> TcpStream {
    let addr = server.local_addr();
    let begun = blocking(move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        let path = ArchivedData::of(b"never sent").unwrap().path();
        let head =
            format!("PUT {path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // It says so when it begins to read the body.
        let mut told = [0; 25];
        stream.read_exact(&mut told).unwrap();
        assert_eq!(told, *b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    });
    begun.await.unwrap()
}

fn url(server: &ServerHandle) -> String {
    format!("http://{}", server.local_addr())
}

fn of(urls: &[String]) -> Archive {
    Archive::new(urls, 10_000).unwrap()
}

/// The status of a request as it stands.
async fn status(server: &ServerHandle, request: Vec<u8>) -> u16 {
    let addr = server.local_addr();
    let answer = blocking(move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        // A server that has heard enough may close before it has read all.
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    let answer = answer.await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_written_at_one_address_and_read_at_both() {
    let dir = tempfile::tempdir().unwrap();
    let running = started(dir.path(), 1 << 30).await;
    let data = vec![7; 1_000_000];
    let named = of(&[url(&running.writes)]).publish(&data).await.unwrap();
    for server in [&running.reads, &running.writes] {
        assert_eq!(of(&[url(server)]).fetch(&named).await.unwrap(), data);
    }
    let fault = of(&[url(&running.reads)]).publish(b"some data").await.unwrap_err();
    assert!(matches!(fault, L1Error::HttpStatus { status: 405, .. }), "{fault}");
    assert_eq!(status(&running.writes, request("GET", "/healthz", b"")).await, 200);
    // It is there after a kill, too: nothing was left to be done.
    running.reads.shutdown().await;
    running.writes.shutdown().await;
    let running = started(dir.path(), 1 << 30).await;
    assert_eq!(of(&[url(&running.reads)]).fetch(&named).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_stall_keep_nobody_from_reading() {
    let dir = tempfile::tempdir().unwrap();
    let running = started(dir.path(), 1 << 20).await;
    let named = of(&[url(&running.writes)]).publish(b"some data").await.unwrap();
    let mut uploads = Vec::new();
    for _ in 0..MAX_AT_ONCE {
        let mut upload = begun(&running.writes).await;
        upload.write_all(b"x").unwrap();
        uploads.push(upload);
    }
    for server in [&running.reads, &running.writes] {
        let readers = Archive::new(&[url(server)], 3_000).unwrap();
        assert_eq!(readers.fetch(&named).await.unwrap(), b"some data".to_vec());
    }
    drop(uploads);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_stall_are_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start_with(args(dir.path(), 1 << 20), Duration::from_secs(1)).await.unwrap();
    let mut uploads = Vec::new();
    for _ in 0..MAX_AT_ONCE {
        uploads.push(begun(&running.writes).await);
    }
    for mut upload in uploads {
        let answer = blocking(move || {
            let mut answer = String::new();
            upload.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = answer.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    // Their places are free.
    of(&[url(&running.writes)]).publish(b"some data").await.unwrap();
}

#[test]
fn patience_ends_for_whoever_sends_too_little() {
    let (patience, start) = (Duration::from_secs(10), now());
    let second = MIN_UPLOAD_BYTES_PER_SECOND as usize;
    let mut until = start + patience;
    // Slow and steady.
    for seconds in 1..=100 {
        until = put_off(until, second, patience, start + Duration::from_secs(seconds));
        assert_eq!(until, start + Duration::from_secs(seconds) + patience);
    }
    // A byte now and then.
    let now = start + Duration::from_secs(109);
    assert!(put_off(until, 1, patience, now) < now + Duration::from_millis(1_001));
    // Much at once is no credit.
    assert_eq!(put_off(until, 100 * second, patience, now), now + patience);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let running = started(dir.path(), 20).await;
    let path = |data: &[u8]| ArchivedData::of(data).unwrap().path();
    let put = async |path: &str, body: &[u8]| status(&running.writes, request("PUT", path, body)).await;
    assert_eq!(put(&path(b"other"), b"some data").await, 400);
    assert_eq!(put("/data/abc", b"some data").await, 400);
    assert_eq!(put("/data/%2e%2e%2flock", b"some data").await, 400);
    assert_eq!(put("/elsewhere", b"some data").await, 404);
    assert_eq!(put(&path(b"a"), &vec![0; MAX_ARCHIVED_BYTES + 1]).await, 413);
    assert_eq!(put(&path(b"some data"), b"some data").await, 200);
    assert_eq!(put(&path(&[1; 12]), &[1; 12]).await, 507);
    assert_eq!(put(&path(b"some data"), b"some data").await, 200, "it has that");
    assert_eq!(status(&running.reads, request("GET", &path(&[1; 12]), b"")).await, 404);
    assert_eq!(status(&running.reads, request("GET", &path(b"some data"), b"")).await, 200);
}

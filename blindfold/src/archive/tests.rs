use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path as FilePath,
};

use blindfold_l1::{Archive, ArchivedData, L1Error};
use tokio::net::TcpSocket;

use super::*;

fn args(dir: &FilePath, max_bytes: u64) -> ArchiveArgs {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    ArchiveArgs {
        dir: dir.to_owned(),
        read_addr: any,
        write_addr: any,
        token_file: None,
        max_readers_per_address: MAX_READERS_PER_ADDRESS,
        max_bytes,
    }
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
    answer(server, request).await.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The whole answer to a request as it stands.
async fn answer(server: &ServerHandle, request: Vec<u8>) -> String {
    let addr = server.local_addr();
    let answer = blocking(move || {
        let mut stream = TcpStream::connect(addr).unwrap();
        // A server that has heard enough may close before it has read all.
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    answer.await.unwrap()
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
async fn whoever_writes_shows_the_token_and_whoever_reads_needs_none() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "the-token-of-this-archive\nand a note\n").unwrap();
    let running = Running::start(ArchiveArgs { token_file: Some(file.clone()), ..args(dir.path(), 1 << 30) });
    let running = running.await.unwrap();
    let shows = |text| of(&[url(&running.writes)]).with_tokens(&[ArchiveToken::new(text).unwrap()]);
    let (knows, guesses) = (shows("the-token-of-this-archive"), shows("the-token-of-some-archive"));
    let named = knows.publish(b"some data").await.unwrap();
    for server in [&running.reads, &running.writes] {
        assert_eq!(of(&[url(server)]).fetch(&named).await.unwrap(), b"some data".to_vec());
    }
    for stranger in [guesses, of(&[url(&running.writes)])] {
        let fault = stranger.publish(b"other data").await.unwrap_err();
        assert!(matches!(fault, L1Error::HttpStatus { status: 401, .. }) && fault.is_transient(), "{fault}");
        let fault = stranger.room().await.unwrap_err();
        assert!(matches!(fault, L1Error::HttpStatus { status: 401, .. }), "{fault}");
    }
    assert_eq!(knows.room().await.unwrap(), ArchiveRoom { used_bytes: 9, max_bytes: 1 << 30 });
    let told = of(&[url(&running.reads)]).room().await.unwrap_err();
    assert!(matches!(told, L1Error::HttpStatus { status: 404, .. }), "not where everybody reads: {told}");
    // Who has none takes no place of those who have it: nothing of what they send is awaited.
    let (path, mut strangers) = (named.path(), Vec::new());
    for _ in 0..=MAX_AT_ONCE {
        let head =
            format!("PUT {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n");
        strangers.push(status(&running.writes, head.into_bytes()).await);
    }
    assert_eq!(strangers, [401; MAX_AT_ONCE + 1]);

    std::fs::write(&file, "short\n").unwrap();
    let fault = Running::start(ArchiveArgs { token_file: Some(file), ..args(&dir.path().join("other"), 1) });
    let fault = format!("{:#}", fault.await.err().unwrap());
    assert!(fault.starts_with("--token-file: ") && !fault.contains("short"), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_keeps_no_other_from_reading() {
    let dir = tempfile::tempdir().unwrap();
    let running = started(dir.path(), 1 << 30).await;
    let named = of(&[url(&running.writes)]).publish(b"some data").await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..MAX_READERS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
        silent.push(socket.connect(running.reads.local_addr()).await.unwrap());
    }
    assert_eq!(of(&[url(&running.reads)]).fetch(&named).await.unwrap(), b"some data".to_vec());
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_holds_and_does_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let max_bytes = MAX_ARCHIVED_BYTES as u64 + 10;
    let running = started(dir.path(), max_bytes).await;
    let ready = async || status(&running.writes, request("GET", "/readyz", b"")).await;
    let path = |data: &[u8]| ArchivedData::of(data).unwrap().path();
    assert_eq!(ready().await, 200);
    let asked: [(&str, String, &[u8], u16); 5] = [
        ("PUT", path(b"some data"), b"some data", 200),
        ("PUT", path(b"some data"), b"other", 400),
        ("GET", path(b"some data"), b"", 200),
        ("GET", path(b"other"), b"", 404),
        ("GET", "/data/abc".to_owned(), b"", 400),
    ];
    for (method, path, body, expected) in asked {
        assert_eq!(status(&running.writes, request(method, &path, body)).await, expected, "{method} {path}");
    }
    assert_eq!(ready().await, 200);
    assert_eq!(status(&running.writes, request("PUT", &path(b"ab"), b"ab")).await, 200);
    let told = answer(&running.writes, request("GET", "/readyz", b"")).await;
    assert!(told.contains(" 503 ") && told.contains("11 of 16777226 bytes are held"), "{told}");
    let metrics = answer(&running.writes, request("GET", "/metrics", b"")).await;
    for (name, value) in [
        ("archive_writes_total{outcome=\"kept\",role=\"archive\"}", 2),
        ("archive_writes_total{outcome=\"refused\",role=\"archive\"}", 1),
        ("archive_reads_total{outcome=\"given\",role=\"archive\"}", 1),
        ("archive_reads_total{outcome=\"absent\",role=\"archive\"}", 1),
        ("archive_reads_total{outcome=\"refused\",role=\"archive\"}", 1),
        ("archive_read_bytes_total{role=\"archive\"}", 9),
        ("archive_used_bytes{role=\"archive\"}", 11),
        ("archive_max_bytes{role=\"archive\"}", max_bytes),
    ] {
        assert!(metrics.contains(&format!("blindfold_{name} {value}\n")), "{name} {value}: {metrics}");
    }
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

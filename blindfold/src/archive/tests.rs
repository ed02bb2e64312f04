use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path as FilePath,
};

use blindfold_l1::{Archive, ArchivedData, L1Error};

use super::*;

async fn started(dir: &FilePath, max_bytes: u64) -> Running {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let args = ArchiveArgs { dir: dir.to_owned(), read_addr: any, write_addr: any, max_bytes };
    Running::start(args).await.unwrap()
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

//! What is made of archives' answers, and of real ones.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
};

use super::*;

const ROOM: ArchiveRoom = ArchiveRoom { used_bytes: 1 << 20, max_bytes: 1 << 30 };

fn status(status: u16) -> L1Error {
    L1Error::HttpStatus { method: "GET /room".to_owned(), status }
}

fn away() -> L1Error {
    L1Error::Unreachable { method: "GET /data".to_owned(), reason: "refused".to_owned() }
}

fn answer(gives: Result<(), L1Error>, room: Option<Result<ArchiveRoom, L1Error>>) -> Answer {
    Answer { url: "http://archive".to_owned(), gives, room }
}

/// The levels of what is found.
fn levels(answers: &[Answer], writes: bool) -> Vec<Level> {
    judged(answers, writes).iter().map(|finding| finding.level).collect()
}

#[test]
fn one_archive_that_takes_data_is_enough_and_none_is_not() {
    let takes = || answer(Ok(()), Some(Ok(ROOM)));
    let refuses = || answer(Ok(()), Some(Err(status(401))));
    let is_away = || answer(Err(away()), None);
    assert_eq!(levels(&[takes()], true), [Level::Ok]);
    assert_eq!(levels(&[takes(), is_away(), refuses()], true), [Level::Ok, Level::Warning, Level::Warning]);
    assert_eq!(levels(&[is_away(), refuses()], true), [Level::Error, Level::Error]);
    // Whoever reads goes on without.
    assert_eq!(levels(&[is_away()], false), [Level::Warning]);
    assert_eq!(levels(&[answer(Ok(()), None)], false), [Level::Ok]);
    // Another program's, or the address that is for readers.
    let [told] = judged(&[answer(Ok(()), Some(Err(status(404))))], true).try_into().unwrap();
    assert_eq!((told.level, told.subject.as_str()), (Level::Warning, "l1.archive_urls[0]"));
    assert!(told.next.is_some_and(|next| next.contains("--write-addr")));
    let none = L1Error::Url { reason: "it is no URL" };
    assert_eq!(levels(&[takes(), answer(Err(none), None)], true), [Level::Ok, Level::Error]);
}

#[test]
fn an_archive_that_fills_is_told_before_it_is_full() {
    let level = |used_bytes| {
        let room = ArchiveRoom { used_bytes, max_bytes: 1 << 30 };
        levels(&[answer(Ok(()), Some(Ok(room)))], true)[0]
    };
    let part = (1 << 30) / FREE_PART;
    assert_eq!(level((1 << 30) - part), Level::Ok);
    assert_eq!(level((1 << 30) - part + 1), Level::Warning);
    assert_eq!(level((1 << 30) - MAX_ARCHIVED_BYTES as u64), Level::Warning);
    assert_eq!(level((1 << 30) - MAX_ARCHIVED_BYTES as u64 + 1), Level::Error, "none takes a long piece");
}

/// An archive without data that has this token.
fn archive(token: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), Vec::new());
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                asked.extend(byte);
            }
            let asked = String::from_utf8(asked).unwrap();
            let room = r#"{"usedBytes":0,"maxBytes":1073741824}"#;
            let (status, body) = match asked.split(' ').nth(1) {
                Some("/room") if asked.contains(&format!("Bearer {token}\r\n")) => (200, room),
                Some("/room") => (401, ""),
                _ => (404, ""),
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    url
}

#[tokio::test]
async fn an_archive_is_asked_as_the_sequencer_would_write_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let url = archive("the-token-of-this-archive");
    let settings = L1Settings { archive_urls: vec![url], ..L1Settings::new("http://127.0.0.1:1") };
    let patience = Patience { answer_ms: 10_000 };
    let found = async |tokens| {
        let findings = look(settings.clone(), tokens, patience).await;
        findings.iter().map(|found| (found.area, found.level)).collect::<Vec<_>>()
    };
    assert_eq!(found(None).await, [(Area::L1, Level::Ok)]);
    assert_eq!(found(Some(Vec::new())).await, [(Area::L1, Level::Error)]);
    let right = file("right", "the-token-of-this-archive\n");
    assert_eq!(found(Some(vec![right])).await, [(Area::Files, Level::Ok), (Area::L1, Level::Ok)]);
    let wrong = file("wrong", "the-token-of-some-archive\n");
    assert_eq!(found(Some(vec![wrong])).await, [(Area::Files, Level::Ok), (Area::L1, Level::Error)]);
    for bad in [file("short", "short\n"), dir.path().join("missing")] {
        assert_eq!(found(Some(vec![bad])).await, [(Area::Files, Level::Error), (Area::L1, Level::Error)]);
    }
    assert!(look(L1Settings::new("http://127.0.0.1:1"), Some(Vec::new()), patience).await.is_empty());
}

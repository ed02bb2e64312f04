use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::Mutex,
    thread::sleep,
    time::Duration,
};

use super::*;

type Held = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Where an archive of these tests holds what whoever wrote last showed.
const SHOWN: &str = "authorization";

/// An archive that holds whatever it is given, and says so with this status.
fn archive(held: &Held, status: u16) -> String {
    archive_that_waits(held, status, Duration::ZERO)
}

/// The same, each of whose answers takes so long.
fn archive_that_waits(held: &Held, status: u16, wait: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let held = Arc::clone(held);
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
            let mut asked = lines[0].split(' ');
            let (method, path) = (asked.next().unwrap(), asked.next().unwrap().to_owned());
            let shown = lines.iter().find_map(|line| line.strip_prefix("authorization: "));
            let mut held = held.lock().unwrap();
            let (status, body) = match method {
                "put" => {
                    if status == 200 {
                        held.insert(path, body);
                        held.extend(shown.map(|shown| (SHOWN.to_owned(), shown.as_bytes().to_vec())));
                    }
                    (status, Vec::new())
                }
                _ => held.get(&path).map_or((404, Vec::new()), |data| (200, data.clone())),
            };
            sleep(wait);
            // Whoever asked may have left.
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            )
            .and_then(|()| stream.write_all(&body));
        }
    });
    url
}

/// An archive that begins to give forty bytes, one by one with pauses, and stays silent after so many of them.
fn slow_archive(bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 40\r\n\r\n").unwrap();
        for _ in 0..bytes {
            sleep(Duration::from_millis(50));
            stream.write_all(&[7]).unwrap();
        }
        // Until the client leaves.
        let _ = lines.next();
    });
    url
}

fn of(urls: &[&String]) -> Archive {
    let urls: Vec<String> = urls.iter().map(|url| (*url).clone()).collect();
    Archive::new(&urls, 3_000).unwrap()
}

/// A port at which nobody listens.
fn nobody() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

#[tokio::test]
async fn data_comes_back_from_whichever_archive_has_it() {
    let (one, two) = (Held::default(), Held::default());
    let (first, second) = (archive(&one, 200), archive(&two, 200));
    let data = vec![7; 100_000];
    let named = of(&[&nobody(), &first, &second]).publish(&data).await.unwrap();
    assert_eq!((one.lock().unwrap().len(), two.lock().unwrap().len()), (1, 1), "in all that take it");
    let archives = of(&[&nobody(), &first, &second]);
    assert_eq!(archives.fetch(&named).await.unwrap(), data);
    // One that lost it, and one that has something else of the same length.
    one.lock().unwrap().clear();
    assert_eq!(archives.fetch(&named).await.unwrap(), data);
    one.lock().unwrap().insert(named.path(), vec![8; 100_000]);
    assert_eq!(of(&[&first, &second]).fetch(&named).await.unwrap(), data);
}

#[tokio::test]
async fn a_token_is_shown_to_the_archive_that_it_is_for_and_to_no_other() {
    let [one, two, three] = [Held::default(), Held::default(), Held::default()];
    let urls = [archive(&one, 200), archive(&two, 200), archive(&three, 200)];
    let token = |text| ArchiveToken::new(text).unwrap();
    let tokens = [token("first-archives-token"), token("other-archives-token")];
    Archive::new(&urls, 3_000).unwrap().with_tokens(&tokens).publish(b"some data").await.unwrap();
    let shown =
        |held: &Held| held.lock().unwrap().get(SHOWN).cloned().map(|shown| String::from_utf8(shown).unwrap());
    assert_eq!(shown(&one).unwrap(), "bearer first-archives-token");
    assert_eq!(shown(&two).unwrap(), "bearer other-archives-token");
    assert_eq!(shown(&three), None);
}

#[test]
fn a_token_is_told_from_others_and_is_not_printed() {
    let token = ArchiveToken::new("sixteen-letters!").unwrap();
    assert!(token.is_shown_by(b"Bearer sixteen-letters!") && token.is_shown_by(b"bearer sixteen-letters!"));
    for other in [
        "",
        "Bearer ",
        "sixteen-letters!",
        "Bearer sixteen-letters",
        "Bearer  sixteen-letters!",
        "Basic: sixteen-letters!",
    ] {
        assert!(!token.is_shown_by(other.as_bytes()), "{other}");
    }
    assert!(!format!("{token:?} {:?}", token.0).contains("sixteen"));
    let archives = Archive::new(&[nobody()], 3_000).unwrap().with_tokens(&[token]);
    assert!(!format!("{archives:?}").contains("sixteen"), "{archives:?}");
    for bad in [
        "",
        "short",
        "fifteen-letters",
        "with a space in it",
        "sixteen-letters\n",
        "sixteen-lëtters!",
        &"x".repeat(1_025),
    ] {
        assert!(ArchiveToken::new(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn what_archives_withhold_or_forge_is_named() {
    let held = Held::default();
    let url = archive(&held, 200);
    let named = of(&[&url]).publish(b"some data").await.unwrap();
    let fault = async || of(&[&url]).fetch(&named).await.unwrap_err();
    for forged in [b"some dat4".as_slice(), b"some", b""] {
        held.lock().unwrap().insert(named.path(), forged.to_vec());
        let fault = fault().await;
        assert!(matches!(fault, L1Error::NotArchived { .. }), "{fault}");
    }
    held.lock().unwrap().insert(named.path(), vec![0; 1_000]);
    assert!(matches!(fault().await, L1Error::ResponseTooLarge { limit_bytes: 9, .. }), "no more is read");
    held.lock().unwrap().clear();
    assert!(matches!(fault().await, L1Error::HttpStatus { status: 404, .. }));
    assert!(matches!(of(&[]).fetch(&named).await, Err(L1Error::NotArchived { .. })));
    // One that does not answer may have it.
    for urls in [[&nobody(), &url], [&url, &nobody()]] {
        let fault = of(&urls).fetch(&named).await.unwrap_err();
        assert!(fault.is_transient(), "{fault}");
    }
}

#[tokio::test]
async fn a_slow_archive_that_keeps_giving_is_read_to_its_end() {
    let named = ArchivedData::of(&[7; 40]).unwrap();
    let archives = Archive::new(&[slow_archive(40)], 1_000).unwrap();
    assert_eq!(archives.fetch(&named).await.unwrap(), vec![7u8; 40]);
}

#[tokio::test]
async fn an_archive_that_stalls_is_given_up() {
    let named = ArchivedData::of(&[7; 40]).unwrap();
    for bytes in [0, 4] {
        let archives = Archive::new(&[slow_archive(bytes)], 300).unwrap();
        let fault = archives.fetch(&named).await.unwrap_err();
        assert_eq!(fault, L1Error::Timeout { method: GET_DATA.to_owned(), timeout_ms: 300 });
        assert!(fault.is_transient());
    }
}

/// Anybody can name what is nowhere, as often as he pays for. Rule DA-4.
#[tokio::test]
async fn a_silent_archive_is_not_waited_for_with_each_name() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = Held::default();
    let urls = [format!("http://{}", silent.local_addr().unwrap()), archive(&held, 200)];
    let paused = Arc::new(parking_lot::Mutex::new(Pauses::new(600_000, 600_000)));
    let archives = Archive { silent: paused, ..Archive::new(&urls, 3_000).unwrap() };
    for number in 0..5u8 {
        let fault = archives.fetch(&ArchivedData::of(&[number]).unwrap()).await.unwrap_err();
        assert!(fault.is_transient(), "it may have it: {fault}");
    }
    let named = of(&[&urls[1]]).publish(b"some data").await.unwrap();
    assert_eq!(archives.fetch(&named).await.unwrap(), b"some data".to_vec());
    silent.set_nonblocking(true).unwrap();
    assert_eq!(std::iter::from_fn(|| silent.accept().ok()).count(), 1);
}

/// Anybody can name data by its hash and another length. Rule DA-4.
#[tokio::test]
async fn of_data_of_another_length_nothing_is_read() {
    for length in [39, 41] {
        let named = ArchivedData { length, ..ArchivedData::of(&[7; 40]).unwrap() };
        // Whoever waits for its bytes waits in vain, and that long.
        let archives = Archive::new(&[slow_archive(0)], 60_000).unwrap();
        let fault = archives.fetch(&named).await.unwrap_err();
        assert!(!fault.is_transient(), "{fault}");
    }
}

/// One archive that has the data is enough to name it on L1 (DA-1), and of what another one does not take only so much is kept.
#[tokio::test]
async fn an_archive_that_stalls_holds_up_nothing_that_another_one_took() {
    // It takes connections, and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = Held::default();
    let urls = [format!("http://{}", silent.local_addr().unwrap()), archive(&held, 200)];
    let archives = Archive { lag: Duration::from_millis(10), ..Archive::new(&urls, 600_000).unwrap() };
    for number in 1..=MAX_UPLOADS + 2 {
        let data = number.to_be_bytes().to_vec();
        let published = tokio::time::timeout(Duration::from_secs(60), archives.publish(&data));
        let named = published.await.expect("nothing waits for the silent one").unwrap();
        assert_eq!(held.lock().unwrap().get(&named.path()), Some(&data));
    }
    assert_eq!(archives.archives[0].uploads.available_permits(), 0);
}

/// What goes out has the time that its bytes take.
#[tokio::test]
async fn long_data_may_take_longer_to_an_archive_than_a_call() {
    let held = Held::default();
    let url = archive_that_waits(&held, 200, Duration::from_millis(300));
    let archives = Archive::new(&[url], 100).unwrap();
    let fault = archives.publish(b"some data").await.unwrap_err();
    assert_eq!(fault, L1Error::Timeout { method: PUT_DATA.to_owned(), timeout_ms: 100 });
    archives.publish(&vec![7; 1 << 20]).await.unwrap();
}

#[tokio::test]
async fn data_that_no_archive_takes_is_not_published() {
    let held = Held::default();
    let full = archive(&held, 507);
    let fault = of(&[&nobody(), &full]).publish(b"some data").await.unwrap_err();
    assert!(matches!(fault, L1Error::HttpStatus { status: 507, .. }) && fault.is_transient(), "{fault}");
    assert!(matches!(of(&[]).publish(b"some data").await, Err(L1Error::NotArchived { .. })));
    let long = vec![0; crate::posting::archived::MAX_ARCHIVED_BYTES + 1];
    let fault = of(&[&full]).publish(&long).await.unwrap_err();
    assert!(matches!(fault, L1Error::NotArchived { .. }) && !fault.is_transient(), "{fault}");
}

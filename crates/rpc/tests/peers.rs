//! What is kept for peers that prove who they are, while others take everything else.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use blindfold_protocol::{Address, Deployment, Hello, Party, PartyKey, SigningKey};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Doorkeeper, HELLO_HEADER, Hub, Introduction, ServerHandle, http_client,
    limits::{HELLO_PAUSE_MS, MAX_BAD_HELLOS, MAX_PEER_REQUEST_BYTES, WAITING_CONNECTIONS},
    serve, ws_client,
};
use blindfold_runtime::now;
use common::{config, error, methods, raw};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const NOW_MS: u64 = 1_000_000;

fn deployment() -> Deployment {
    Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(7) }
}

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32]).unwrap()
}

fn hello(key: &SigningKey, server: Party, at_ms: u64, nonce: u8) -> Hello {
    Hello::of_sequencer(key, &deployment(), server, at_ms, [nonce; 16].into())
}

/// A client that says it is the sequencer, to member 1.
fn introduced(key_byte: u8) -> ClientConfig {
    let nonces = AtomicU64::new(1);
    let introduction = Introduction::new(move || {
        let nonce = u8::try_from(nonces.fetch_add(1, Ordering::Relaxed)).unwrap();
        hello(&key(key_byte), Party::Member(1), NOW_MS, nonce)
    });
    ClientConfig { introduction: Some(introduction), ..ClientConfig::default() }
}

/// Member 1, who knows the sequencer's key; counts how often he looks it up. Few places.
async fn member() -> (ServerHandle, Arc<AtomicUsize>) {
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked_up);
    let key_of = move |party| {
        count.fetch_add(1, Ordering::Relaxed);
        let key = (party == Party::Sequencer).then(|| PartyKey::Address(key(1).address()));
        Box::pin(std::future::ready(key)) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    let mut config = config(0);
    config.max_connections = 4;
    config.inbound.max_calls_per_address_per_second = 1;
    config.doorkeeper = Some(Doorkeeper::new(deployment(), Party::Member(1), key_of, || NOW_MS));
    (serve(config, methods(Hub::default()), None).await.unwrap(), looked_up)
}

async fn call_with(addr: SocketAddr, hello: &str) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#;
    let text = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n{HELLO_HEADER}: {hello}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(addr, text.as_bytes()).await
}

async fn limited(addr: SocketAddr, hello: &str) -> bool {
    call_with(addr, hello).await.contains("rate_limited")
}

async fn use_up(addr: SocketAddr) {
    while !limited(addr, "nobody").await {}
}

/// Whether whoever shows this hello has nothing but the allowance of nobody in particular. It may grow meanwhile; one
/// of his own would have given five calls.
async fn counts_as_nobody(addr: SocketAddr, hello: &str) -> bool {
    use_up(addr).await;
    for _ in 0..4 {
        if limited(addr, hello).await {
            return true;
        }
    }
    false
}

/// Idle connections of anybody kept the sequencer and the members out (H-2).
#[tokio::test]
async fn anonymous_connections_do_not_keep_peers_out() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(addr).await.unwrap());
    }
    let url = format!("http://{addr}");
    // Nobody else gets in, whatever he says.
    for config in [ClientConfig::default(), introduced(2)] {
        assert!(http_client(&url, &config).unwrap().get_status().await.is_err());
    }
    let peer = http_client(&url, &introduced(1)).unwrap();
    assert_eq!(peer.get_status().await.unwrap(), common::status());
    let feed = ws_client(&format!("ws://{addr}"), &introduced(1)).await.unwrap();
    assert_eq!(feed.get_status().await.unwrap(), common::status());
    drop(idle);
}

/// Many callers at once, each from an address of his own, pushed each other out before they were told anything (J-8).
#[tokio::test]
async fn who_gives_way_to_another_that_waits_is_told_that_there_is_no_place() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(TcpStream::connect(addr).await.unwrap());
    }
    let mut waiting = Vec::new();
    for last in 0..=WAITING_CONNECTIONS {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("127.0.1.{}:0", last + 1).parse().unwrap()).unwrap();
        waiting.push(socket.connect(addr).await.unwrap());
    }
    // They are taken in their order: when the last one is answered, the first has given way to it.
    for index in [WAITING_CONNECTIONS, 0] {
        let request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        waiting[index].write_all(request).await.unwrap();
        let mut answer = Vec::new();
        waiting[index].read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{index}: {answer}");
        assert!(answer.contains("connections_full") && answer.contains("retry_after_ms"), "{answer}");
    }
    drop(idle);
}

/// A key in another process may not be to be asked: calls go without a hello then, and with the last one for a while.
#[tokio::test]
async fn a_hello_may_come_from_elsewhere_or_not_at_all() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(addr).await.unwrap());
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let from_elsewhere = |answers: usize| {
        let asked = Arc::clone(&asked);
        asked.store(0, Ordering::SeqCst);
        let introduction = Introduction::from_elsewhere(Party::Sequencer, move || {
            let answers = asked.fetch_add(1, Ordering::SeqCst) < answers;
            let hello = answers.then(|| hello(&key(1), Party::Member(1), NOW_MS, 9));
            Box::pin(async move { hello })
        });
        ClientConfig { introduction: Some(introduction), ..ClientConfig::default() }
    };
    let url = format!("http://{addr}");
    let away = from_elsewhere(0);
    assert!(http_client(&url, &away).unwrap().get_status().await.is_err(), "nobody in particular");
    assert!(ws_client(&format!("ws://{addr}"), &away).await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 1, "not asked again at once");
    let there = from_elsewhere(1);
    let client = http_client(&url, &there).unwrap();
    for _ in 0..3 {
        assert_eq!(client.get_status().await.unwrap(), common::status());
    }
    assert!(ws_client(&format!("ws://{addr}"), &there).await.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 1, "one for all of them");
    drop(idle);
}

#[tokio::test]
async fn a_flood_of_calls_does_not_use_up_a_peers_allowance() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    use_up(addr).await;
    let answer = call_with(addr, &hello(&key(1), Party::Member(1), NOW_MS, 1).to_string()).await;
    assert!(answer.contains("\"result\""), "{answer}");
}

/// The largest hint lists are for those who publish them.
#[tokio::test]
async fn peers_may_send_larger_requests() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    let size = common::MAX_REQUEST_BYTES as usize;
    let sized = |hello: &str, size: usize| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":["{}"]}}"#, "a".repeat(size));
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n{HELLO_HEADER}: {hello}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        async move { raw(addr, format!("{head}{body}").as_bytes()).await }
    };
    let known = hello(&key(1), Party::Member(1), NOW_MS, 9).to_string();
    let answer = sized(&known, size).await;
    assert!(answer.contains("unknown_method"), "{answer}");
    let largest = sized(&known, MAX_PEER_REQUEST_BYTES as usize).await;
    assert!(!largest.contains("unknown_method"), "{largest}");
    let stranger = sized("nobody", size).await;
    assert!(!stranger.contains("unknown_method"), "{stranger}");
}

/// Only what could be right costs a signature, and each hello one.
#[tokio::test]
async fn hellos_are_judged_cheaply_and_are_worth_nothing_elsewhere() {
    let (server, looked_up) = member().await;
    let addr = server.local_addr();
    let old = hello(&key(1), Party::Member(1), NOW_MS - 60_001, 1);
    let early = hello(&key(1), Party::Member(1), NOW_MS + 60_001, 2);
    for cheap in [old.to_string(), early.to_string(), "sequencer".to_owned(), "x".repeat(2_000)] {
        assert!(counts_as_nobody(addr, &cheap).await, "{cheap}");
    }
    assert_eq!(looked_up.load(Ordering::Relaxed), 0);
    let good = hello(&key(1), Party::Member(1), NOW_MS, 3).to_string();
    for _ in 0..3 {
        assert!(call_with(addr, &good).await.contains("\"result\""));
    }
    assert_eq!(looked_up.load(Ordering::Relaxed), 1, "judged once");
    // Made for another server: shown here by somebody who got it there.
    let relayed = hello(&key(1), Party::Member(2), NOW_MS, 4).to_string();
    assert!(counts_as_nobody(addr, &relayed).await);
    assert!(call_with(addr, &good).await.contains("\"result\""), "what is known to be good stays so");
}

/// Somebody who read a hello on its way shows it from elsewhere (H-1).
#[tokio::test]
async fn a_hello_belongs_to_the_address_that_showed_it_first() {
    let (server, _) = member().await;
    let addr = server.local_addr();
    let good = hello(&key(1), Party::Member(1), NOW_MS, 5).to_string();
    assert!(call_with(addr, &good).await.contains("\"result\""));
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.3:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(addr).await.unwrap();
    // Batches of calls use up the thief's own allowance, not the peer's.
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#;
    let mut limited = false;
    for _ in 0..10 {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let text = format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{HELLO_HEADER}: {good}\r\ncontent-length: {}\r\n\r\n{one}",
            one.len()
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4_096];
        let bytes = stream.read(&mut answer).await.unwrap();
        limited |= String::from_utf8_lossy(&answer[..bytes]).contains("rate_limited");
    }
    assert!(limited);
    let busy = common::call(addr, "blind_getBatch", "[0]").await;
    assert_eq!(error(&busy).1, "not_certified");
}

/// Whoever closed each connection as soon as a bad hello was sent on it had them all verified.
#[tokio::test]
async fn bad_hellos_on_connections_that_are_closed_at_once_are_not_all_verified() {
    let (server, looked_up) = member().await;
    let addr = server.local_addr();
    let began = now();
    for nonce in 0..200 {
        let hello = hello(&key(9), Party::Member(1), NOW_MS, nonce);
        let request = format!("GET / HTTP/1.1\r\nhost: x\r\n{HELLO_HEADER}: {hello}\r\n\r\n");
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
    }
    // Those for whom there was a place have one no longer when the server has stopped.
    assert!(server.shutdown().await);
    let pauses = began.elapsed().as_millis() as u64 / HELLO_PAUSE_MS;
    let allowed = u64::from(MAX_BAD_HELLOS) * (pauses + 1);
    assert!(looked_up.load(Ordering::Relaxed) as u64 <= allowed, "{looked_up:?} of {allowed}");
}

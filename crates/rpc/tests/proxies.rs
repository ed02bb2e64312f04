//! Limits by address behind reverse proxies.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::net::SocketAddr;

use blindfold_rpc::{Hub, Inbound, ServeError, ServerHandle, serve};
use common::{config, methods, raw};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// One call a second, five at once.
async fn start(trusted: &[&str], proxy_protocol: bool) -> ServerHandle {
    let mut config = config(0);
    config.inbound = Inbound {
        trusted_proxies: trusted.iter().map(|text| text.parse().unwrap()).collect(),
        proxy_protocol,
        tls: None,
        max_connections_per_address: 2,
        max_calls_per_address_per_second: 1,
    };
    serve(config, methods(Hub::default()), None).await.unwrap()
}

/// One call; whether it was refused for its rate.
async fn limited(addr: SocketAddr, before: &str, headers: &str) -> bool {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#;
    let text = format!(
        "{before}POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(addr, text.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.contains("rate_limited")
}

/// Calls until the caller's allowance is used up.
async fn use_up(addr: SocketAddr, before: &str, headers: &str) {
    for _ in 0..100 {
        if limited(addr, before, headers).await {
            return;
        }
    }
    panic!("no limit: {before}{headers}");
}

/// Whether a call counts as one of the caller of `used`, whose allowance is used up first. It may grow meanwhile; one
/// of its own would have given five calls. Both are what stands before the call, and its headers.
async fn counts_as(addr: SocketAddr, used: (&str, &str), call: (&str, &str)) -> bool {
    use_up(addr, used.0, used.1).await;
    for _ in 0..4 {
        if limited(addr, call.0, call.1).await {
            return true;
        }
    }
    false
}

/// Behind a local TLS proxy, every limit by address had gone.
#[tokio::test]
async fn loopback_is_limited_and_its_headers_are_not_read_unless_trusted() {
    let server = start(&[], false).await;
    for forged in ["x-forwarded-for: 203.0.113.1\r\n", "forwarded: for=203.0.113.1\r\n"] {
        assert!(counts_as(server.local_addr(), ("", ""), ("", forged)).await);
    }
}

/// All users behind one proxy shared one bucket.
#[tokio::test]
async fn users_behind_one_proxy_have_limits_of_their_own() {
    let server = start(&["127.0.0.1", "10.0.0.0/8"], false).await;
    let addr = server.local_addr();
    let first = ("", "x-forwarded-for: 203.0.113.1\r\n");
    use_up(addr, first.0, first.1).await;
    assert!(!limited(addr, "", "x-forwarded-for: 203.0.113.2\r\n").await);
    assert!(!limited(addr, "", "forwarded: for=203.0.113.3\r\n").await);
    // What the user wrote himself stands before what the proxy appends.
    for same in [
        "x-forwarded-for: 203.0.113.9, 203.0.113.1\r\n",
        "x-forwarded-for: 203.0.113.9, 203.0.113.1, 10.0.0.7\r\n",
        "forwarded: for=203.0.113.1\r\n",
    ] {
        assert!(counts_as(addr, first, ("", same)).await, "{same}");
    }
}

#[tokio::test]
async fn websockets_behind_a_proxy_count_by_their_callers() {
    let server = start(&["127.0.0.1"], false).await;
    let open = async |caller: &str| {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        let upgrade = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        stream.write_all(format!("{upgrade}x-forwarded-for: {caller}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        (String::from_utf8_lossy(&answer[9..]).into_owned(), stream)
    };
    let (first, second) = (open("203.0.113.1").await, open("203.0.113.1").await);
    assert_eq!((first.0.as_str(), second.0.as_str()), ("101", "101"));
    assert_eq!(open("203.0.113.1").await.0, "429");
    assert_eq!(open("203.0.113.2").await.0, "101");
    drop(first);
    while open("203.0.113.1").await.0 != "101" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_proxy_header_says_who_connects() {
    let server = start(&["127.0.0.1"], true).await;
    let addr = server.local_addr();
    let from = |caller: &str| format!("PROXY TCP4 {caller} 127.0.0.1 4711 443\r\n");
    let first = from("203.0.113.1");
    use_up(addr, &first, "").await;
    assert!(!limited(addr, &from("203.0.113.2"), "").await);
    let headers = "x-forwarded-for: 203.0.113.9\r\n";
    assert!(counts_as(addr, (&first, ""), (&first, headers)).await, "it is no proxy");
    assert_eq!(raw(addr, b"POST / HTTP/1.1\r\nhost: x\r\n\r\n").await, "", "a trusted proxy must send it");
}

/// A header in front of a connection that nobody vouches for is no HTTP.
#[tokio::test]
async fn proxy_headers_of_others_are_not_read() {
    let server = start(&["10.0.0.0/8"], true).await;
    let answer = raw(server.local_addr(), b"PROXY TCP4 203.0.113.1 127.0.0.1 4711 443\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let mut config = config(0);
    config.inbound.proxy_protocol = true;
    let refused = serve(config, methods(Hub::default()), None).await;
    assert!(matches!(refused, Err(ServeError::NoTrustedProxy)));
}

//! The server over real sockets: bad input, limits, pass-through, pages, shutdown.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{Arc, Mutex};

use blindfold_protocol::{B256, Canonical};
use blindfold_rpc::{
    AdminConfig, AllowedOrigins, BlindApiClient, ClientBuildError, ClientConfig, Encoded, Hub, Readiness,
    ReceivedError, SequencerApiClient, ServeError, admin, code, http_client,
    limits::{
        MAX_CALLS_PER_ADDRESS, MAX_CALLS_PER_CONNECTION, MAX_WAITING_CALLS_PER_ADDRESS,
        TURNED_AWAY_PER_ADDRESS,
    },
    serve,
    types::Refusal,
    types::SendOptions,
    ws_client,
};
use blindfold_runtime::spawn;
use common::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
};

fn refused(code: i64, reason: &str, retry: bool) -> (i64, String, bool) {
    (code, reason.to_owned(), retry)
}

#[tokio::test]
async fn typed_calls() {
    let server = start(Hub::default()).await;
    let url = format!("http://{}", server.local_addr());
    let client = http_client(&url, &ClientConfig::default()).unwrap();
    assert_eq!(client.get_status().await.unwrap(), status());
    assert_eq!(client.get_receipt(B256::ZERO).await.unwrap().unwrap().reason.as_deref(), Some("expired"));
    assert_eq!(client.get_receipt(B256::repeat_byte(1)).await.unwrap(), None);
    assert_eq!(client.get_fee_account(Default::default()).await.unwrap().malformed_surcharge, u128::MAX);
    let sent = client.send_envelope(Encoded::from_bytes(vec![7; 100]), None).await.unwrap();
    assert_eq!(sent.id, alloy_primitives::keccak256([7; 100]));
    let busy =
        client.send_envelope(Encoded::from_bytes(vec![7; 100]), Some(SendOptions { promise: true })).await;
    let busy = ReceivedError::from(busy.unwrap_err());
    assert_eq!((busy.reason(), busy.retry()), ("mempool_full", true));
    let later = ReceivedError::from(client.get_batch(0).await.unwrap_err());
    assert_eq!((later.reason(), later.retry()), ("not_certified", true));
    let refusal = Refusal { number: 1, header_hash: B256::ZERO, member: 2, reason: "clock_skew".to_owned() };
    assert!(client.submit_refusal(refusal).await.unwrap());
    let hints = blindfold_protocol::BatchHints {
        number: 1,
        header_hash: B256::ZERO,
        entries: vec![],
        blindings: vec![],
    };
    let release = blindfold_protocol::Release { number: 1, header_hash: B256::ZERO, pds: vec![] };
    assert!(client.submit_hints(Encoded::new(&release), Encoded::new(&hints)).await.unwrap());
    assert_eq!(Encoded::new(&release).decode().unwrap(), release);
    assert!(server.shutdown().await);
    let gone = ReceivedError::from(client.get_status().await.unwrap_err());
    assert!(matches!(gone, ReceivedError::NoAnswer(_)));
}

/// Rule J-3.
#[tokio::test]
async fn malformed_requests() {
    let server = start(Hub::default()).await;
    let addr = server.local_addr();
    assert_eq!(post(addr, "{").await["error"]["code"], -32700);
    assert_eq!(post(addr, r#"{"id":1}"#).await["error"]["code"], -32600);
    assert_eq!(post(addr, "[]").await["error"]["code"], -32600);
    assert_eq!(post(addr, "[1]").await[0]["error"]["code"], -32600);
    let (head, body) = request(addr, "POST /", "", "\"x\"").await;
    assert!(head.starts_with("http/1.1 400") && body.contains("-32700"), "{head} {body}");
    for below in ["{", r#"{"id":1}"#, "[]"] {
        let answer = post(addr, below).await;
        assert!(
            answer["error"]["data"]["reason"].is_null(),
            "the library's error, and no reason of ours: {answer}"
        );
    }
    let (head, _) = request(addr, "GET /", "", "").await;
    assert!(head.starts_with("http/1.1 405"), "{head}");
    let text = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    assert!(raw(addr, text.as_bytes()).await.starts_with("HTTP/1.1 415"));
    assert!(raw(addr, b"\x16\x03\x01 not http\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert_eq!(
        call(addr, "blind_getStatus", "[]").await["result"]["certified"],
        4,
        "others are not disturbed"
    );
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let server = start(Hub::default()).await;
    let addr = server.local_addr();
    let long_envelope = format!("[\"0x{}\"]", "00".repeat(34_176));
    let long_reason = format!(
        r#"[{{"number":1,"headerHash":"0x{}","member":1,"reason":"{}"}}]"#,
        "00".repeat(32),
        "x".repeat(257)
    );
    let unknown_field =
        format!(r#"[{{"number":1,"headerHash":"0x{}","member":1,"reason":"x","more":1}}]"#, "00".repeat(32));
    let control = unknown_field.replace(r#","more":1"#, "").replace(r#""x""#, r#""\u0007""#);
    for (method, params) in [
        ("blind_getReceipt", "[]"),
        ("blind_getReceipt", "[1]"),
        ("blind_getReceipt", "[\"0x00\"]"),
        ("blind_getReceipt", "[\"zz\"]"),
        ("blind_getBatch", "[\"1\"]"),
        ("blind_getBatch", "[-1]"),
        ("blind_getBatch", "[18446744073709551616]"),
        ("blind_getBatch", "[1.5]"),
        ("blind_getFeeAccount", "[\"0x0000\"]"),
        ("blind_sendEnvelope", "[\"00\"]"),
        ("blind_sendEnvelope", "[\"0x0\"]"),
        ("blind_sendEnvelope", "[\"0xAA\"]"),
        ("blind_sendEnvelope", "[\"0x0x00\"]"),
        ("blind_sendEnvelope", "[5]"),
        ("blind_sendEnvelope", "[\"0x00\", {\"promise\": 1}]"),
        ("blind_sendEnvelope", "[\"0x00\", {\"promis\": true}]"),
        ("blind_sendEnvelope", long_envelope.as_str()),
        ("blind_submitRefusal", long_reason.as_str()),
        ("blind_submitRefusal", unknown_field.as_str()),
        ("blind_submitRefusal", control.as_str()),
    ] {
        let answer = call(addr, method, params).await;
        assert_eq!(
            error(&answer),
            refused(-32602, "invalid_params", false),
            "{method} {params:.80} {answer}"
        );
    }
    let answer = call(addr, "blind_sendEnvelope", &long_envelope).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("34176 bytes, at most 34175"), "{message}");
    let answer = call(addr, "blind_submitAcknowledgement", "[\"0x02\"]").await;
    assert_eq!(error(&answer), refused(-32602, "undecodable", false));
    let named = call(addr, "blind_getBatch", r#"{"number": 5}"#).await;
    assert!(named["result"].is_null() && named["error"].is_null(), "parameters by name: {named}");
}

/// Rule J-3.
#[tokio::test]
async fn sizes_and_batches_are_limited() {
    let server = start(Hub::default()).await;
    let addr = server.local_addr();
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":["{}"]}}"#,
        "a".repeat(MAX_REQUEST_BYTES as usize)
    );
    let (head, body) = request(addr, "POST /", "", &long).await;
    assert!(head.starts_with("http/1.1 413") || body.contains("-32007"), "{head} {body}");

    let one = r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#;
    let answers = post(addr, &format!("[{one},{one},{one}]")).await;
    assert_eq!(answers.as_array().unwrap().len(), 3);
    let answer = post(addr, &format!("[{one},{one},{one},{one}]")).await;
    assert_eq!(answer["error"]["code"], -32010);
    assert!(answer["error"]["data"]["reason"].is_null(), "{answer}");
    let mixed = r#"{"jsonrpc":"2.0","id":2,"method":"eth_sendRawTransaction","params":["0x"]}"#;
    let notification = r#"{"jsonrpc":"2.0","method":"blind_getStatus"}"#;
    let answers = post(addr, &format!("[{mixed},{notification},5]")).await;
    assert_eq!(
        error(&answers[0]),
        refused(-38002, "plaintext_refused", false),
        "the middleware sees batches, too"
    );
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers.as_array().unwrap().len(), 2);
}

/// Rule J-1, and J-3 where the execution client refuses.
#[tokio::test]
async fn what_is_served_and_what_is_refused() {
    let server = start(Hub::default()).await;
    let addr = server.local_addr();
    assert_eq!(call(addr, "eth_chainId", "[1]").await["result"], serde_json::json!(["eth_chainId", [1]]));
    let answer = call(addr, "eth_getLogs", "[]").await;
    assert_eq!(
        answer["error"],
        serde_json::json!({"code": 3, "message": "execution reverted", "data": "0x01"})
    );
    assert_eq!(error(&call(addr, "eth_syncing", "[]").await), refused(-38003, "execution_client_away", true));
    for method in
        ["eth_sendRawTransaction", "eth_call", "eth_estimateGas", "eth_createAccessList", "eth_simulateV1"]
    {
        assert_eq!(error(&call(addr, method, "[]").await), refused(-38002, "plaintext_refused", false));
    }
    // Allowed nowhere: not passed through although the execution client would answer.
    for method in ["eth_getBalance", "debug_setHead", "admin_peers", "blind_x", "rpc_modules"] {
        assert_eq!(
            error(&call(addr, method, "[]").await),
            refused(-32601, "unknown_method", false),
            "{method}"
        );
    }
    assert_eq!(
        call(addr, "blind_subscribe", "[\"headers\"]").await["error"]["code"],
        -32603,
        "needs a WebSocket"
    );
}

#[tokio::test]
async fn web_pages_need_permission() {
    let closed = start(Hub::default()).await;
    let mut config = config(0);
    config.allowed_origins = AllowedOrigins::List(vec!["https://good.example".to_owned()]);
    let open = serve(config, methods(Hub::default()), None).await.unwrap();
    let good = "origin: https://good.example\r\n";
    let bad = "origin: https://bad.example\r\n";
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#;
    let allow = "access-control-allow-origin: https://good.example";

    let (head, _) = request(closed.local_addr(), "OPTIONS /", good, "").await;
    assert!(head.starts_with("http/1.1 403"), "{head}");
    let (head, _) = request(open.local_addr(), "OPTIONS /", bad, "").await;
    assert!(head.starts_with("http/1.1 403"), "{head}");
    let (head, _) = request(open.local_addr(), "OPTIONS /", good, "").await;
    assert!(head.starts_with("http/1.1 204") && head.contains(allow), "{head}");
    let (head, _) = request(open.local_addr(), "POST /", good, body).await;
    assert!(head.contains(allow), "{head}");
    let (head, _) = request(open.local_addr(), "POST /", bad, body).await;
    assert!(!head.contains("access-control"), "{head}");

    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (origin, expected) in [(bad, "403"), ("origin: null\r\n", "403"), (good, "101"), ("", "101")] {
        let mut stream = TcpStream::connect(open.local_addr()).await.unwrap();
        let text = format!("GET / HTTP/1.1\r\nhost: x\r\n{upgrade}{origin}\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {expected}"), "{origin}");
    }
    let any = AllowedOrigins::Any;
    assert!(any.allows("https://x") && !AllowedOrigins::None.allows("https://x"));
}

#[tokio::test]
async fn connections_are_limited_and_come_back() {
    let mut config = config(0);
    config.max_connections = 1;
    let server = serve(config, methods(Hub::default()), None).await.unwrap();
    let url = format!("ws://{}", server.local_addr());
    let first = ws_client(&url, &ClientConfig::default()).await.unwrap();
    assert_eq!(first.get_status().await.unwrap(), status());
    let second = ws_client(&url, &ClientConfig::default()).await;
    assert!(
        matches!(second, Err(ClientBuildError::Connect { .. })),
        "the WebSocket still counts as a connection"
    );
    drop(first);
    // The place is free when the server has seen the end of the first connection.
    loop {
        if let Ok(next) = ws_client(&url, &ClientConfig::default()).await {
            assert_eq!(next.get_status().await.unwrap(), status());
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// Beyond the limits a connection was closed without a word (J-8).
#[tokio::test]
async fn a_connection_without_a_place_is_told_when_to_come_back() {
    for (connections, of_address, status_line, reason) in
        [(1, 256, "http/1.1 503", "connections_full"), (8, 1, "http/1.1 429", "too_many_connections")]
    {
        let mut config = config(0);
        config.max_connections = connections;
        config.inbound.max_connections_per_address = of_address;
        let server = serve(config, methods(Hub::default()), None).await.unwrap();
        let addr = server.local_addr();
        let url = format!("ws://{addr}");
        let place = ws_client(&url, &ClientConfig::default()).await.unwrap();
        let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(90_000));
        for body in [r#"{"jsonrpc":"2.0","id":1,"method":"blind_getStatus"}"#, long.as_str()] {
            let (head, body) = request(addr, "POST /", "", body).await;
            assert!(head.starts_with(status_line), "{head}");
            assert!(head.contains("retry-after: 15") && head.contains("connection: close"), "{head}");
            let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(error(&answer), refused(-38001, reason, true));
            assert_eq!(answer["error"]["data"]["retry_after_ms"], 15_000, "nobody left lately");
        }
        let client = http_client(&format!("http://{addr}"), &ClientConfig::default()).unwrap();
        let received = ReceivedError::from(client.get_status().await.unwrap_err());
        assert_eq!((received.reason(), received.retry()), (reason, true));
        assert_eq!(received.retry_after(), Some(std::time::Duration::from_secs(15)));
        assert!(ws_client(&url, &ClientConfig::default()).await.is_err());
        assert_eq!(place.get_status().await.unwrap(), status(), "who has a place keeps it");
        drop(place);
        // The place is free when the server has seen the end of the connection.
        while let Err(error) = client.get_status().await {
            assert_eq!(ReceivedError::from(error).reason(), reason);
        }
        assert!(server.shutdown().await);
    }
}

/// Those that say nothing are told nothing for ever, and do not keep out who speaks.
#[tokio::test]
async fn connections_that_are_refused_and_silent_are_few_and_end() {
    let mut config = config(0);
    config.max_connections = 1;
    let server = serve(config, methods(Hub::default()), None).await.unwrap();
    let addr = server.local_addr();
    let place = ws_client(&format!("ws://{addr}"), &ClientConfig::default()).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..TURNED_AWAY_PER_ADDRESS + 8 {
        silent.push(TcpStream::connect(addr).await.unwrap());
    }
    for stream in &mut silent {
        let mut byte = [0];
        // An end, or a reset: but no answer.
        assert!(matches!(stream.read(&mut byte).await, Ok(0) | Err(_)));
    }
    assert_eq!(place.get_status().await.unwrap(), status());
}

#[tokio::test]
async fn observers_hear_of_every_call() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut config = config(0);
    let record = Arc::clone(&heard);
    config.observer = Some(Arc::new(move |call: blindfold_rpc::CallRecord<'_>| {
        record.lock().unwrap().push((call.method.to_owned(), call.error_code));
    }));
    let server = serve(config, methods(Hub::default()), None).await.unwrap();
    call(server.local_addr(), "blind_getStatus", "[]").await;
    call(server.local_addr(), "nothing", "[]").await;
    let expected = [("blind_getStatus".to_owned(), None), ("nothing".to_owned(), Some(-32601))];
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[tokio::test]
async fn faults_of_the_configuration() {
    let server = start(Hub::default()).await;
    let taken = serve(config(server.local_addr().port()), methods(Hub::default()), None).await;
    assert!(matches!(taken, Err(ServeError::Bind { addr, .. }) if addr == server.local_addr()));
    let mut zero = config(0);
    zero.max_request_bytes = 0;
    let refused = serve(zero, methods(Hub::default()), None).await;
    assert!(matches!(refused, Err(ServeError::ZeroLimit("max_request_bytes"))));

    let client = ClientConfig::default();
    let error = http_client("ws://u:secret@x", &client).err().unwrap();
    assert!(matches!(&error, ClientBuildError::Scheme { .. }) && !error.to_string().contains("secret"));
    assert!(matches!(ws_client("http://x", &client).await.err().unwrap(), ClientBuildError::Scheme { .. }));
    let error = ws_client("ws://u:secret@127.0.0.1:1/secretsecretsecretsecret", &client).await.err().unwrap();
    assert!(
        matches!(&error, ClientBuildError::Connect { .. }) && !error.to_string().contains("secret"),
        "{error}"
    );
}

#[tokio::test]
async fn admin_endpoints() {
    let readiness = Readiness::new(&["l1", "store"]);
    let server = admin(AdminConfig::loopback(0), readiness.clone(), || "blindfold_x 1\n".to_owned(), None)
        .await
        .unwrap();
    assert!(server.local_addr().ip().is_loopback());
    let get = async |path: &str| request(server.local_addr(), &format!("GET {path}"), "", "").await;
    assert_eq!(get("/healthz").await.1, "ok\n");
    let (head, body) = get("/readyz").await;
    assert!(head.starts_with("http/1.1 503"));
    assert_eq!(body, r#"{"ready":false,"reasons":{"l1":"starting","store":"starting"}}"#);
    readiness.set_ready("l1");
    readiness.set_not_ready("store", "disk full");
    assert_eq!(get("/readyz").await.1, r#"{"ready":false,"reasons":{"store":"disk full"}}"#);
    readiness.set_ready("store");
    assert!(readiness.is_ready());
    let (head, body) = get("/readyz").await;
    assert!(head.starts_with("http/1.1 200") && body == r#"{"ready":true}"#);
    let (head, body) = get("/metrics").await;
    assert!(head.contains("text/plain; version=0.0.4") && body == "blindfold_x 1\n");
    assert!(get("/else").await.0.starts_with("http/1.1 404"));
    let ended = server.ended();
    assert!(server.shutdown().await);
    assert!(ended.await.contains("no connections"));
}

/// A task that had ended left the role ready.
#[tokio::test]
async fn a_part_that_failed_makes_a_role_unready_whatever_else_is_said() {
    let tasks = blindfold_runtime::Tasks::new();
    let readiness = Readiness::new(&["l1"]).of(tasks.spawner());
    readiness.set_ready("l1");
    assert!(readiness.is_ready());
    tasks.spawn("follower", async {});
    tasks.spawner().failed().await;
    readiness.set_ready("follower");
    assert_eq!(readiness.reasons().get("follower").map(String::as_str), Some("ended by itself"));
}

/// A bug in a call was told to its caller at most: the role went on, and was ready.
#[tokio::test]
async fn a_call_that_panics_ends_the_role() {
    use blindfold_rpc::jsonrpsee::{RpcModule, core::client::ClientT, rpc_params};
    use jsonrpsee_ws_client::WsClientBuilder;
    let mut module = RpcModule::new(());
    module
        .register_async_method("work", |_, _, _| async {
            blindfold_runtime::blocking(|| -> u8 { panic!("a bug") }).await.unwrap_or_default()
        })
        .unwrap();
    for websocket in [false, true] {
        let server = serve(config(0), module.clone(), None).await.unwrap();
        let tasks = blindfold_runtime::Tasks::new();
        let readiness = Readiness::new(&[]).of(tasks.spawner());
        tasks.guard("rpc", server.ended());
        assert!(readiness.is_ready());
        if websocket {
            let url = format!("ws://{}", server.local_addr());
            let client = WsClientBuilder::default().build(url).await.unwrap();
            assert!(client.request::<u8, _>("work", rpc_params![]).await.is_err());
        } else {
            assert_eq!(call(server.local_addr(), "work", "[]").await["error"]["data"]["reason"], "internal");
        }
        assert_eq!(tasks.spawner().failed().await.cause, "work panicked: a bug");
        assert_eq!(readiness.reasons().get("rpc").map(String::as_str), Some("work panicked: a bug"));
        server.shutdown().await;
    }
}

/// Rules J-2 and J-8.
#[tokio::test]
async fn more_calls_of_one_address_than_may_wait_are_told_when_to_come_back() {
    use blindfold_rpc::jsonrpsee::{RpcModule, core::client::ClientT, rpc_params};
    use futures::{StreamExt, stream::FuturesUnordered};
    let may_end = watch::Sender::new(false);
    let mut module = RpcModule::new(may_end.subscribe());
    module
        .register_async_method("slow", |_, may_end, _| async move {
            let mut may_end = watch::Receiver::clone(&may_end);
            let _ = may_end.wait_for(|may_end| *may_end).await;
            "done"
        })
        .unwrap();
    let server = serve(config(0), module, None).await.unwrap();
    let url = format!("ws://{}", server.local_addr());
    let mut clients = Vec::new();
    // One connection more than those whose calls have their turn, or wait for it.
    let places = MAX_CALLS_PER_ADDRESS + MAX_WAITING_CALLS_PER_ADDRESS;
    for _ in 0..=places / MAX_CALLS_PER_CONNECTION {
        clients.push(ws_client(&url, &ClientConfig::default()).await.unwrap());
    }
    let mut calls: FuturesUnordered<_> = clients
        .iter()
        .flat_map(|client| {
            (0..MAX_CALLS_PER_CONNECTION).map(move |_| client.request::<String, _>("slow", rpc_params![]))
        })
        .collect();
    for _ in 0..MAX_CALLS_PER_CONNECTION {
        let answer = calls.next().await.unwrap();
        let ReceivedError::Refused(error) = answer.unwrap_err().into() else { panic!("an answer") };
        assert_eq!((error.reason.as_ref(), error.code, error.retry), ("busy", code::BUSY, true));
        assert!(error.retry_after_ms.is_some_and(|ms| (100..=30_000).contains(&ms)), "{error:?}");
    }
    may_end.send_replace(true);
    assert_eq!(calls.next().await.unwrap().unwrap(), "done", "whoever waits has his turn");
}

/// A call under way is answered although the server is told to stop meanwhile.
#[tokio::test]
async fn shutdown_is_graceful() {
    use blindfold_rpc::jsonrpsee::RpcModule;
    let begun = Arc::new(tokio::sync::Notify::new());
    let may_end = Arc::new(tokio::sync::Notify::new());
    let mut module = RpcModule::new((Arc::clone(&begun), Arc::clone(&may_end)));
    module
        .register_async_method("slow", |_, context, _| async move {
            context.0.notify_one();
            context.1.notified().await;
            "done"
        })
        .unwrap();
    let server = serve(config(0), module, None).await.unwrap();
    let addr = server.local_addr();
    let calling = spawn(async move { call(addr, "slow", "[]").await });
    begun.notified().await;
    let stopping = spawn(server.shutdown());
    // The listener is gone once connections are refused; only then may the call end.
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    may_end.notify_one();
    assert_eq!(calling.await.unwrap()["result"], "done");
    assert!(stopping.await.unwrap());
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 200, rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..Default::default() })]

    /// Whatever text a peer sends for a structure or a quantity is read or refused, and reads back the same.
    #[test]
    fn hex_of_peers(text in "(0x)?[0-9a-fxA-F]{0,40}") {
        let json = serde_json::to_string(&text).unwrap();
        if let Ok(encoded) = serde_json::from_str::<Encoded<blindfold_rpc::RawEnvelope>>(&json) {
            proptest::prop_assert_eq!(serde_json::to_string(&encoded).unwrap(), json.clone());
        }
        #[derive(serde::Deserialize)]
        struct Quantity(#[serde(with = "blindfold_rpc::encoded::quantity")] u128);
        if let Ok(Quantity(value)) = serde_json::from_str(&json) {
            proptest::prop_assert_eq!(format!("{value:#x}"), text.to_ascii_lowercase());
        }
        for topic in blindfold_rpc::Topic::ALL {
            let parsed = blindfold_rpc::FeedEvent::parse(topic, &json);
            proptest::prop_assert!(parsed.is_err());
        }
    }

    #[test]
    fn structures_of_peers(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let encoded = Encoded::<blindfold_protocol::Certificate>::from_bytes(bytes.clone());
        if let Ok(certificate) = encoded.decode() {
            proptest::prop_assert_eq!(certificate.encode(), bytes);
        }
    }
}

//! Clients that ask and do not read, or hang up: their answers are bounded in memory and in time, their calls in number,
//! and others are served meanwhile.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{net::SocketAddr, sync::Arc};

use blindfold_rpc::{
    FeedEvent, Hub, ServerConfig, ServerHandle, jsonrpsee::RpcModule, limits::LARGE_ANSWERS_OF_SHARE_EIGHTHS,
    serve, types::BlockNotification,
};
use blindfold_runtime::spawn;
use common::{call, config, error, methods};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, unbounded_channel},
    },
};

/// More than the sockets of both sides buffer.
const BATCH_BYTES: usize = 16 << 20;
/// Room for two batches of peers, one of others: parts are kept for peers and for small answers.
const BUDGET_BYTES: u64 = (40 << 20) / 3 * 4;
/// Too little for a batch and a second answer.
const LARGE_OF_ADDRESS_BYTES: u64 = (16 << 20) + (64 << 10);
/// With what is kept for notifications and for small answers.
const OF_ADDRESS_BYTES: u64 = (LARGE_OF_ADDRESS_BYTES * 8).div_ceil(LARGE_ANSWERS_OF_SHARE_EIGHTHS);

/// Serves a batch as large as they come, and a small answer.
async fn serve_batches(adjust: impl FnOnce(&mut ServerConfig)) -> ServerHandle {
    let mut module = RpcModule::new("x".repeat(BATCH_BYTES));
    module.register_method("blind_getBatch", |_, batch, _| batch.clone()).unwrap();
    module.register_method("blind_getReceipt", |_, batch, _| batch[..1_000].to_owned()).unwrap();
    module.register_method("blind_getStatus", |_, batch, _| batch[..BATCH_BYTES / 2].to_owned()).unwrap();
    module.register_method("blind_getFeeAccount", |_, batch, _| batch[..100_000].to_owned()).unwrap();
    let mut config = config(0);
    config.max_response_bytes = u32::try_from(LARGE_OF_ADDRESS_BYTES).unwrap();
    config.max_answer_bytes = BUDGET_BYTES;
    config.max_answer_bytes_per_address = OF_ADDRESS_BYTES;
    adjust(&mut config);
    serve(config, module, None).await.unwrap()
}

async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn open_websocket(from: &str, to: SocketAddr) -> TcpStream {
    let mut stream = connect(from, to).await;
    let upgrade = "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

/// A text message as a client frames it, masked with zeros.
fn message(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    frame
}

fn request(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[1]}}"#)
}

/// The next text message of the server.
async fn receive(stream: &mut TcpStream) -> serde_json::Value {
    loop {
        let (kind, length) = (stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap());
        let length = match length {
            126 => u64::from(stream.read_u16().await.unwrap()),
            127 => stream.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).await.unwrap();
        if kind == 0x81 {
            return serde_json::from_slice(&payload).unwrap();
        }
    }
}

async fn ask_over_http(stream: &mut TcpStream, method: &str) {
    let body = request(method);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

/// Reads until the server has closed the connection, with whatever fault.
async fn drain(stream: &mut TcpStream) -> u64 {
    let (mut taken, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        taken += bytes as u64;
    }
    taken
}

/// Rule J-2.
#[tokio::test]
async fn batches_are_not_given_over_websocket() {
    let server = serve_batches(|_| ()).await;
    let mut stream = open_websocket("127.0.0.1", server.local_addr()).await;
    for method in ["blind_getBatch", "blind_getFeeAccount"] {
        stream.write_all(&message(&request(method))).await.unwrap();
        assert_eq!(error(&receive(&mut stream).await), (-38000, "use_http".to_owned(), false), "{method}");
    }
    let small = request("blind_getReceipt");
    stream.write_all(&message(&small)).await.unwrap();
    assert_eq!(receive(&mut stream).await["result"].as_str().map(str::len), Some(1_000));
    let several = format!("[{small},{}]", request("blind_getBatch"));
    stream.write_all(&message(&several)).await.unwrap();
    let answers = receive(&mut stream).await;
    assert_eq!(answers[0]["result"].as_str().map(str::len), Some(1_000));
    assert_eq!(error(&answers[1]).1, "use_http");
    let batch = call(server.local_addr(), "blind_getBatch", "[1]").await;
    assert_eq!(batch["result"].as_str().map(str::len), Some(BATCH_BYTES));
}

/// Took memory without bound: every call over a WebSocket that was not read became an answer in memory.
#[tokio::test]
async fn unread_websocket() {
    let server = serve_batches(|config| config.write_patience_ms = 300).await;
    let mut stream = open_websocket("127.0.0.1", server.local_addr()).await;
    let calls = message(&request("blind_getReceipt"));
    // The server stops reading when its answers are not taken, and then it ends the connection.
    let mut asked = 0;
    while stream.write_all(&calls).await.is_ok() {
        asked += 1;
        assert!(asked < 1_000_000, "the connection is still read");
    }
    assert_eq!(call(server.local_addr(), "blind_getReceipt", "[1]").await["error"], serde_json::Value::Null);
}

#[tokio::test]
async fn unread_answers_over_http_are_bounded_and_dropped() {
    let server = serve_batches(|config| config.write_patience_ms = 5_000).await;
    let addr = server.local_addr();
    let mut unread = connect("127.0.0.1", addr).await;
    ask_over_http(&mut unread, "blind_getBatch").await;
    let refused = async || {
        let answer = call(addr, "blind_getStatus", "[1]").await;
        !answer["error"].is_null() && error(&answer) == (-38001, "too_many_answers".to_owned(), true)
    };
    // When the answer is there its address has no share left; another address has.
    while !refused().await {}
    let mut other = connect("127.0.0.2", addr).await;
    ask_over_http(&mut other, "blind_getFeeAccount").await;
    let mut answer = vec![0; 100_000];
    other.read_exact(&mut answer).await.unwrap();
    // Whoever reads nothing loses the connection, and its part of the budget is free again.
    while refused().await {}
    assert!(drain(&mut unread).await < BATCH_BYTES as u64);
    let batch = call(addr, "blind_getBatch", "[1]").await;
    assert_eq!(batch["result"].as_str().map(str::len), Some(BATCH_BYTES));
}

/// Rule J-2.
#[tokio::test]
async fn beyond_the_budget_calls_are_refused_for_now() {
    let server = serve_batches(|config| {
        config.max_answer_bytes_per_address = 3_000;
    })
    .await;
    let answer = call(server.local_addr(), "blind_getFeeAccount", "[1]").await;
    assert_eq!(error(&answer), (-38001, "too_many_answers".to_owned(), true));
    assert_eq!(call(server.local_addr(), "blind_getReceipt", "[1]").await["error"], serde_json::Value::Null);
}

/// Addresses that keep slow reads under way, whose answers may be large, took all answers of everybody.
#[tokio::test]
async fn slow_reads_leave_others_their_small_answers() {
    let (entered, mut under_way) = tokio::sync::mpsc::unbounded_channel();
    let mut module = RpcModule::new(entered);
    module
        .register_async_method("eth_getLogs", |_, entered, _| async move {
            entered.send(()).unwrap();
            std::future::pending::<()>().await;
        })
        .unwrap();
    module.register_method("blind_sendEnvelope", |_, _, _| true).unwrap();
    let server = serve(ServerConfig::new(common::loopback(0)), module, None).await.unwrap();
    let addr = server.local_addr();
    let mut asking = Vec::new();
    for address in 1..=5 {
        for _ in 0..4 {
            let mut stream = connect(&format!("127.0.1.{address}"), addr).await;
            ask_over_http(&mut stream, "eth_getLogs").await;
            asking.push(stream);
        }
    }
    // As many as large answers have room for.
    for _ in 0..8 {
        under_way.recv().await.unwrap();
    }
    for _ in 0..10 {
        assert_eq!(call(addr, "blind_sendEnvelope", "[]").await["result"], true);
    }
}

/// Closes a connection, and returns when the server has given it up.
async fn hang_up(mut stream: TcpStream) {
    stream.shutdown().await.unwrap();
    drain(&mut stream).await;
}

/// Work under a call went on when its caller hung up, and all that bounds such work was free again.
#[tokio::test]
async fn a_call_goes_on_to_its_end_in_its_connections_place_when_its_caller_hangs_up() {
    for websocket in [false, true] {
        let (begun, mut under_way) = unbounded_channel();
        let (ended, mut done) = unbounded_channel();
        let may_end = Arc::new(Semaphore::new(0));
        let mut module = RpcModule::new((begun, ended, Arc::clone(&may_end)));
        module
            .register_async_method("work", |_, context, _| async move {
                let (begun, ended, may_end) = context.as_ref();
                begun.send(()).unwrap();
                may_end.acquire().await.unwrap().forget();
                ended.send(()).unwrap();
            })
            .unwrap();
        module.register_method("rest", |_, _, _| true).unwrap();
        let mut config = config(0);
        config.max_connections = 1;
        let server = serve(config, module, None).await.unwrap();
        let addr = server.local_addr();
        let begin_and_hang_up = async |under_way: &mut UnboundedReceiver<()>| {
            let stream = if websocket {
                let mut stream = open_websocket("127.0.0.1", addr).await;
                stream.write_all(&message(&request("work"))).await.unwrap();
                stream
            } else {
                let mut stream = connect("127.0.0.1", addr).await;
                ask_over_http(&mut stream, "work").await;
                stream
            };
            under_way.recv().await.unwrap();
            hang_up(stream).await;
        };
        let rest = request("rest");
        let ask = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{rest}",
            rest.len()
        );
        begin_and_hang_up(&mut under_way).await;
        let is_turned_away = async || common::raw(addr, ask.as_bytes()).await.starts_with("HTTP/1.1 503 ");
        assert!(is_turned_away().await, "all places are taken");
        may_end.add_permits(1);
        done.recv().await.unwrap();
        while is_turned_away().await {}
        // A server that stops waits for such calls, too.
        begin_and_hang_up(&mut under_way).await;
        let stopping = spawn(server.shutdown());
        while TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!stopping.is_finished());
        may_end.add_permits(1);
        assert!(stopping.await.unwrap());
        done.try_recv().unwrap();
    }
}

/// Notifications that a subscriber does not take count, too: he loses his subscription, and others get theirs.
#[tokio::test]
async fn unread_notifications_are_bounded() {
    let hub = Hub::default();
    let mut config = config(0);
    config.max_answer_bytes_per_address = 1 << 20;
    config.write_patience_ms = 5_000;
    let server = serve(config, methods(hub.clone()), None).await.unwrap();
    let mut unread = open_websocket("127.0.0.2", server.local_addr()).await;
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"blind_subscribe","params":["blocks"]}"#;
    unread.write_all(&message(subscribe)).await.unwrap();
    receive(&mut unread).await;
    let mut read = open_websocket("127.0.0.1", server.local_addr()).await;
    read.write_all(&message(subscribe)).await.unwrap();
    receive(&mut read).await;
    let mut number = 0;
    while hub.subscribers(blindfold_rpc::Topic::Blocks) == 2 {
        number += 1;
        hub.publish(&FeedEvent::Block(BlockNotification {
            number,
            hash: Default::default(),
            parent_hash: Default::default(),
            state_root: Default::default(),
            timestamp: 5,
            first_batch: 1,
            last_batch: 2,
            transactions: vec![Default::default(); 5_000],
            skipped: vec![],
        }));
        assert_eq!(receive(&mut read).await["params"]["result"]["number"], number);
    }
}

//! Subscriptions over real sockets: round trip, limits, slow consumers, reconnecting.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::time::Duration;

use blindfold_protocol::{B256, Certificate};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, FEED_SUBPROTOCOL, Feed, FeedConfig, FeedEvent, FeedFrame,
    FeedItem, FeedRequest, Hub, ReceivedError, Topic,
    limits::FEED_FRAME_BYTES,
    serve,
    types::{BlockNotification, CertificateNotification, HeaderNotification, SkippedItem},
    ws_client,
};
use blindfold_runtime::spawn;
use common::*;
use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

fn certificate(number: u64) -> FeedEvent {
    let hash = B256::with_last_byte(number as u8);
    let certificate = Certificate { epoch: 1, number, header_hash: hash, signers: 7, signature: [1; 48] };
    FeedEvent::Certificate(CertificateNotification { number, hash, certificate: Encoded::new(&certificate) })
}

fn block(number: u64, transactions: usize) -> FeedEvent {
    FeedEvent::Block(BlockNotification {
        number,
        hash: B256::repeat_byte(1),
        parent_hash: B256::ZERO,
        state_root: B256::ZERO,
        timestamp: 5,
        first_batch: 1,
        last_batch: 2,
        transactions: vec![B256::repeat_byte(3); transactions],
        skipped: vec![SkippedItem { envelope: B256::ZERO, index: None, reason: "bad_bundle".to_owned() }],
    })
}

/// Whatever holds of a feed holds of it in both forms (J-9).
macro_rules! in_both_forms {
    ($($test:ident)*) => {
        mod json {
            $(#[tokio::test] async fn $test() { super::$test(super::Form::Json).await })*
        }
        mod binary {
            $(#[tokio::test] async fn $test() { super::$test(super::Form::Binary).await })*
        }
    };
}

in_both_forms! {
    events_of_several_topics_arrive_in_order
    a_feed_reconnects_and_says_so
    slow_subscribers_are_dropped_and_learn_it
    whoever_missed_something_is_told_to_catch_up
}

/// An end of all subscriptions (a relay that skipped batches) is an end of the connection.
async fn whoever_missed_something_is_told_to_catch_up(form: Form) {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, form), methods(hub.clone()), None).await.unwrap();
    let mut feed = feed(&format!("ws://{}", server.local_addr()), &[Topic::Certificates]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    hub.publish(&certificate(1));
    assert_eq!(feed.next().await, Some(FeedItem::Event(certificate(1))));
    hub.end_all();
    assert_eq!(feed.next().await, Some(FeedItem::Reconnected));
    hub.publish(&certificate(2));
    assert_eq!(feed.next().await, Some(FeedItem::Event(certificate(2))));
}

fn header(number: u64, items: usize) -> FeedEvent {
    let mut verdicts = vec![None; items];
    verdicts.iter_mut().step_by(3).for_each(|verdict| *verdict = Some("expired".to_owned()));
    let (hash, sealed) = (B256::repeat_byte(9), Encoded::from_bytes(vec![7; items * 600]));
    FeedEvent::Header(HeaderNotification { number, hash, sealed, verdicts })
}

/// A WebSocket that speaks whatever a test has it speak.
async fn socket(url: &str) -> WebSocketStream<TcpStream> {
    try_socket(url).await.expect("it speaks the binary feed")
}

/// None where the server has no place for it.
async fn try_socket(url: &str) -> Option<WebSocketStream<TcpStream>> {
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", FEED_SUBPROTOCOL.parse().unwrap());
    let stream = TcpStream::connect(url.strip_prefix("ws://").unwrap()).await.unwrap();
    Some(client_async(request, stream).await.ok()?.0)
}

/// The next message's bytes; none when the connection ends.
async fn bytes(socket: &mut WebSocketStream<TcpStream>) -> Option<Vec<u8>> {
    loop {
        match socket.next().await? {
            Ok(Message::Binary(bytes)) => return Some(bytes.into()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

/// Rule J-9: what is sent is the structure's own encoding, once; nothing is written as text for it.
#[tokio::test]
async fn a_consumer_of_the_binary_feed_is_sent_each_batch_once_and_as_it_is() {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, Form::Binary), methods(hub.clone()), None).await.unwrap();
    let mut socket = socket(&format!("ws://{}", server.local_addr())).await;
    let request = FeedRequest::new(&[Topic::Certificates, Topic::Headers]).unwrap();
    socket.send(Message::binary(request.encode())).await.unwrap();
    assert_eq!(bytes(&mut socket).await, Some(FeedFrame::Subscribed.encode()));
    assert_eq!((hub.subscribers(Topic::Headers), hub.subscribers(Topic::Blocks)), (1, 0));
    // As many clients do, it pings with something in it.
    socket.send(Message::Ping(vec![9; 125].into())).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong(vec![9; 125].into()));
    let (batch, of_it) = (header(7, 100), certificate(7));
    assert_eq!((hub.publish(&batch), hub.publish(&block(1, 1)), hub.publish(&of_it)), (1, 0, 1));
    let first = bytes(&mut socket).await.unwrap();
    assert_eq!(FeedFrame::decode(&first.clone().into()), Ok(FeedFrame::Event(batch)));
    assert!(first.len() < 100 * 600 + 1_000, "{} bytes for a batch of {}", first.len(), 100 * 600);
    let second = bytes(&mut socket).await.unwrap();
    assert_eq!(FeedFrame::decode(&second.clone().into()), Ok(FeedFrame::Event(of_it)), "after its header");
    assert!(second.len() < 300, "a certificate repeats nothing of its batch: {} bytes", second.len());
    socket.close(None).await.unwrap();
    assert_eq!(bytes(&mut socket).await, None);
    while hub.subscribers(Topic::Headers) > 0 {
        tokio::task::yield_now().await;
    }
}

/// What is written at once is held once more, for each consumer, for as long as its connection lasts.
#[tokio::test]
async fn a_large_message_comes_in_frames_of_bounded_size() {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, Form::Binary), methods(hub.clone()), None).await.unwrap();
    let url = format!("ws://{}", server.local_addr());
    let mut request = url.as_str().into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", FEED_SUBPROTOCOL.parse().unwrap());
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let limits = WebSocketConfig::default().max_frame_size(Some(FEED_FRAME_BYTES));
    let (mut socket, _) = client_async_with_config(request, stream, Some(limits)).await.unwrap();
    let request = FeedRequest::new(&[Topic::Headers]).unwrap();
    socket.send(Message::binary(request.encode())).await.unwrap();
    assert_eq!(bytes(&mut socket).await, Some(FeedFrame::Subscribed.encode()));
    for items in [1, 100, 110, 1_000] {
        let event = header(7, items);
        hub.publish(&event);
        let message = bytes(&mut socket).await.expect("no frame is too large");
        assert_eq!(FeedFrame::decode(&message.into()), Ok(FeedFrame::Event(event)));
    }
}

#[tokio::test]
async fn what_is_no_request_for_topics_ends_the_connection_and_subscribes_nothing() {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, Form::Binary), methods(hub.clone()), None).await.unwrap();
    let url = format!("ws://{}", server.local_addr());
    let none: Vec<Message> = [&[][..], &[1], &[1, 0], &[1, 0b10_0000], &[2, 1], &[1, 1, 1]]
        .map(|it| Message::binary(it.to_vec()))
        .into();
    for wrong in none.into_iter().chain([Message::text("headers")]) {
        let mut socket = socket(&url).await;
        socket.send(wrong.clone()).await.unwrap();
        assert_eq!(bytes(&mut socket).await, None, "{wrong:?}");
    }
    // One request, and nothing after it.
    let mut twice = socket(&url).await;
    let request = FeedRequest::new(&[Topic::Hints]).unwrap().encode();
    for _ in 0..2 {
        twice.send(Message::binary(request.clone())).await.unwrap();
    }
    assert_eq!(bytes(&mut twice).await, Some(FeedFrame::Subscribed.encode()));
    assert_eq!(bytes(&mut twice).await, None);
}

/// What a consumer of the binary feed sends first, with more headers.
fn handshake(more: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: {FEED_SUBPROTOCOL}\r\n{more}\r\n"
    )
}

/// Rule J-8: an address that opens feeds too often is told when to come back, as in every other refusal for want of room.
#[tokio::test]
async fn who_opens_feeds_too_often_is_told_when_to_come_back() {
    let hub = Hub::default();
    let mut config = feeding(0, &hub, Form::Binary);
    config.inbound.max_calls_per_address_per_second = 1;
    let server = serve(config, methods(hub), None).await.unwrap();
    let request = handshake("Sec-WebSocket-Version: 13\r\nConnection: close\r\n");
    let refused = loop {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_buf(&mut answer).await.unwrap();
        if !answer.starts_with(b"HTTP/1.1 101") {
            stream.read_to_end(&mut answer).await.unwrap();
            break String::from_utf8(answer).unwrap();
        }
    };
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 429") && head.contains("\r\nretry-after: 1\r\n"), "{head}");
    let answer: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(error(&answer), (-38001, "rate_limited".to_owned(), true));
    assert_eq!((&answer["id"], &answer["error"]["data"]["retry_after_ms"]), (&json!(null), &json!(1_000)));
}

#[tokio::test]
async fn the_binary_feed_is_under_the_limits_of_its_port() {
    let hub = Hub::default();
    let mut config = feeding(0, &hub, Form::Binary);
    config.inbound.max_connections_per_address = 2;
    let server = serve(config, methods(hub.clone()), None).await.unwrap();
    let addr = server.local_addr();
    let of_a_page =
        handshake("Sec-WebSocket-Version: 13\r\nOrigin: https://a.example\r\nConnection: close\r\n");
    let refused = raw(addr, of_a_page.as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let old = handshake("Sec-WebSocket-Version: 8\r\nConnection: close\r\n");
    let refused = raw(addr, old.as_bytes()).await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let url = format!("ws://{addr}");
    let mut places = vec![place(&url).await, place(&url).await];
    assert!(try_socket(&url).await.is_none(), "no place for a third connection");
    let mut third = feed(&url, &[Topic::Blocks]);
    assert!(timeout(Duration::from_millis(100), third.next()).await.is_err(), "nor for a feed");
    places.pop();
    place(&url).await;
}

/// A place for the binary feed. Whoever left may hold it for a moment still.
async fn place(url: &str) -> WebSocketStream<TcpStream> {
    let waiting = async {
        loop {
            match try_socket(url).await {
                Some(socket) => return socket,
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    timeout(Duration::from_secs(60), waiting).await.expect("a place is given back with its connection")
}

/// A server that has no room for anybody, and counts who comes.
async fn without_room(headers: &str, body: &str) -> (String, watch::Receiver<usize>) {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let (came, count) = watch::channel(0);
    spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            came.send_modify(|count| *count += 1);
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.unwrap_or(0) > 0 {}
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, count)
}

const IN_HALF_A_MINUTE: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-38001,"message":"full","data":{"reason":"connections_full","retry":true,"retry_after_ms":30000}}}"#;

/// Rule J-8.
#[tokio::test]
async fn a_feed_stays_away_for_the_time_that_it_is_told() {
    for (headers, body) in [("", IN_HALF_A_MINUTE), ("Retry-After: 30\r\n", "full")] {
        let (url, mut count) = without_room(headers, body).await;
        let _feed = feed(&url, &[Topic::Blocks]);
        count.wait_for(|count| *count > 0).await.unwrap();
        let again = timeout(Duration::from_millis(300), count.wait_for(|count| *count > 1)).await;
        assert!(again.is_err(), "{headers}{body}");
    }
    let (url, mut count) = without_room("", "full").await;
    let _feed = feed(&url, &[Topic::Blocks]);
    count.wait_for(|count| *count > 3).await.expect("nobody says when, so it comes when it thinks fit");
}

/// Rule J-8: of several servers it stays away from the one alone that has no room.
#[tokio::test]
async fn a_feed_that_has_another_server_goes_there_and_does_not_come_back_too_soon() {
    let (full, count) = without_room("", IN_HALF_A_MINUTE).await;
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, Form::Binary), methods(hub.clone()), None).await.unwrap();
    let config = FeedConfig { backoff_initial_ms: 1, backoff_max_ms: 20, ..FeedConfig::default() };
    let urls = vec![full, format!("ws://{}", server.local_addr())];
    let mut feed = Feed::start_at_any(urls, [Topic::Blocks], config);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    for _ in 0..3 {
        hub.end_all();
        assert_eq!(feed.next().await, Some(FeedItem::Reconnected));
    }
    assert_eq!(*count.borrow(), 1);
}

fn feed(url: &str, topics: &[Topic]) -> Feed {
    let config = FeedConfig { backoff_initial_ms: 1, backoff_max_ms: 20, ..FeedConfig::default() };
    Feed::start(url, topics, config)
}

async fn events_of_several_topics_arrive_in_order(form: Form) {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, form), methods(hub.clone()), None).await.unwrap();
    let mut feed = feed(&format!("ws://{}", server.local_addr()), &[Topic::Certificates, Topic::Blocks]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    assert_eq!((hub.subscribers(Topic::Certificates), hub.subscribers(Topic::Headers)), (1, 0));
    assert_eq!(hub.publish(&certificate(1)), 1);
    assert_eq!(hub.publish(&certificate(2)), 1);
    assert_eq!(hub.publish(&block(9, 1)), 1);
    let (mut certificates, mut blocks) = (vec![], vec![]);
    for _ in 0..3 {
        let Some(FeedItem::Event(event)) = feed.next().await else { panic!("an event") };
        if event.topic() == Topic::Blocks { blocks.push(event) } else { certificates.push(event) }
    }
    assert_eq!((certificates, blocks), (vec![certificate(1), certificate(2)], vec![block(9, 1)]));
    assert_eq!(certificate(5).number(), 5);
}

async fn a_feed_reconnects_and_says_so(form: Form) {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, form), methods(hub.clone()), None).await.unwrap();
    let addr = server.local_addr();
    let mut feed = feed(&format!("ws://{addr}"), &[Topic::Certificates]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    assert!(server.shutdown().await);
    hub.publish(&certificate(1));
    // The same port, so that the feed finds the new server; the old one may still hold it for a moment.
    let server = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            match serve(feeding(addr.port(), &hub, form), methods(hub.clone()), None).await {
                Ok(server) => return server,
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    })
    .await
    .expect("its port is free again");
    assert_eq!(feed.next().await, Some(FeedItem::Reconnected), "what was published meanwhile is gone");
    hub.publish(&certificate(2));
    assert_eq!(feed.next().await, Some(FeedItem::Event(certificate(2))));
    drop(feed);
    assert!(server.shutdown().await);
}

#[tokio::test]
async fn a_feed_waits_for_a_server_that_is_not_there_yet() {
    let (server, mut feed) = loop {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let feed = feed(&format!("ws://127.0.0.1:{port}"), &[Topic::Blocks]);
        // Somebody else may have been given the port meanwhile: then it is another one.
        if let Ok(server) = serve(config(port), methods(Hub::default()), None).await {
            break (server, feed);
        }
    };
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    drop(server);
}

#[tokio::test]
async fn subscriptions_are_limited_and_topics_checked() {
    let hub = Hub::default();
    let server = start(hub.clone()).await;
    let url = format!("ws://{}", server.local_addr());
    let client = ws_client(&url, &ClientConfig::default()).await.unwrap();
    let unknown = ReceivedError::from(client.subscribe_topic("rumours".to_owned()).await.unwrap_err());
    assert_eq!((unknown.reason(), unknown.retry()), ("unknown_topic", false));
    let first = client.subscribe_topic("blocks".to_owned()).await.unwrap();
    let _second = client.subscribe_topic("headers".to_owned()).await.unwrap();
    let third = ReceivedError::from(client.subscribe_topic("hints".to_owned()).await.unwrap_err());
    assert_eq!(third.reason(), "too_many_subscriptions");
    first.unsubscribe().await.unwrap();
    let _third = client.subscribe_topic("hints".to_owned()).await.unwrap();
    assert_eq!(client.get_status().await.unwrap(), status());
}

/// A subscriber that does not read is dropped, while another one gets everything.
async fn slow_subscribers_are_dropped_and_learn_it(form: Form) {
    const EVENTS: u64 = 400;
    let hub = Hub::new(8);
    let mut config = feeding(0, &hub, form);
    config.connection_buffer_messages = 1;
    let server = serve(config, methods(hub.clone()), None).await.unwrap();
    let url = format!("ws://{}", server.local_addr());
    let slow_config = FeedConfig {
        client: ClientConfig { subscription_buffer_messages: 1, ..ClientConfig::default() },
        buffer_events: 1,
        backoff_initial_ms: 1,
        ..FeedConfig::default()
    };
    let mut slow = Feed::start(url.clone(), [Topic::Blocks], slow_config);
    assert_eq!(slow.next().await, Some(FeedItem::Connected));
    let mut quick = feed(&url, &[Topic::Blocks]);
    assert_eq!(quick.next().await, Some(FeedItem::Connected));
    for number in 0..EVENTS {
        // Large enough to fill the sockets' buffers of whoever does not read.
        hub.publish(&block(number, 1_000));
        assert!(matches!(quick.next().await, Some(FeedItem::Event(event)) if event.number() == number));
    }
    let mut expected = 0;
    loop {
        match slow.next().await.unwrap() {
            FeedItem::Event(event) => {
                assert!(event.number() >= expected);
                expected = event.number() + 1;
            }
            FeedItem::Reconnected => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(expected < EVENTS);
}

#[tokio::test]
async fn what_is_no_notification_is_reported() {
    use blindfold_rpc::jsonrpsee::{RpcModule, SubscriptionMessage};
    let mut module = RpcModule::new(());
    module
        .register_subscription(
            "blind_subscribe",
            "blind_subscription",
            "blind_unsubscribe",
            |_, pending, _, _| async {
                let sink = pending.accept().await.unwrap();
                let raw = serde_json::value::to_raw_value(&serde_json::json!({"number": "x"})).unwrap();
                sink.send(SubscriptionMessage::from(raw)).await.unwrap();
                sink.closed().await;
                Ok(())
            },
        )
        .unwrap();
    let server = serve(config(0), module, None).await.unwrap();
    let mut feed = feed(&format!("ws://{}", server.local_addr()), &[Topic::Hints]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    let Some(FeedItem::Invalid { topic, reason }) = feed.next().await else { panic!("a fault") };
    assert!(topic == Topic::Hints && reason.contains("invalid type"), "{reason}");
}

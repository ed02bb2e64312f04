//! Subscriptions over real sockets: round trip, limits, slow consumers, reconnecting.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::time::Duration;

use blindfold_protocol::{B256, Certificate};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, Feed, FeedConfig, FeedEvent, FeedItem, Hub, ReceivedError, Topic,
    serve,
    types::{BlockNotification, CertificateNotification, SkippedItem},
    ws_client,
};
use common::*;

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

fn feed(url: &str, topics: &[Topic]) -> Feed {
    let config = FeedConfig { backoff_initial_ms: 1, backoff_max_ms: 20, ..FeedConfig::default() };
    Feed::start(url, topics, config)
}

#[tokio::test]
async fn events_of_several_topics_arrive_in_order() {
    let hub = Hub::default();
    let server = start(hub.clone()).await;
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

#[tokio::test]
async fn a_feed_reconnects_and_says_so() {
    let hub = Hub::default();
    let server = start(hub.clone()).await;
    let addr = server.local_addr();
    let mut feed = feed(&format!("ws://{addr}"), &[Topic::Certificates]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    assert!(server.shutdown().await);
    hub.publish(&certificate(1));
    // The same port, so that the feed finds the new server; the old one may still hold it for a moment.
    let server = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            match serve(config(addr.port()), methods(hub.clone()), None).await {
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
#[tokio::test]
async fn slow_subscribers_are_dropped_and_learn_it() {
    const EVENTS: u64 = 400;
    let hub = Hub::new(8);
    let mut config = config(0);
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

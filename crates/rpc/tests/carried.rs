//! Calls without sockets: the same methods, errors and feeds, carried by somebody else.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use blindfold_protocol::B256;
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Feed, FeedConfig, FeedEvent, FeedItem, Hub, Topic,
    carrier::{Answer, Call, Carrier, NotCarried, Server, carry},
    http_client,
    jsonrpsee::core::ClientError,
    serve,
    types::BlockNotification,
};
use common::*;
use futures::{FutureExt, future::BoxFuture};

/// Brings every call to the server at the port that its URL ends with, but for those whose answers it loses.
#[derive(Default)]
struct Porter {
    servers: Mutex<BTreeMap<u16, Server>>,
    lost: Mutex<usize>,
}

impl Carrier for Porter {
    fn bind(&self, addr: SocketAddr, server: Server) -> io::Result<()> {
        match self.servers.lock().unwrap().entry(addr.port()) {
            Entry::Occupied(_) => Err(io::ErrorKind::AddrInUse.into()),
            Entry::Vacant(place) => {
                place.insert(server);
                Ok(())
            }
        }
    }

    fn unbind(&self, addr: SocketAddr) {
        self.servers.lock().unwrap().remove(&addr.port());
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, NotCarried>> {
        let port: u16 = call.url.rsplit(':').next().unwrap().parse().unwrap();
        let server = self.servers.lock().unwrap().get(&port).cloned();
        let mut lost = self.lost.lock().unwrap();
        let loses = *lost > 0;
        *lost = lost.saturating_sub(1);
        async move {
            let answer =
                server.ok_or(NotCarried("nobody listens"))?.answer(&call, ([1, 2, 3, 4], 5).into()).await;
            if loses { std::future::pending().await } else { answer }
        }
        .boxed()
    }
}

fn block(number: u64) -> FeedEvent {
    FeedEvent::Block(BlockNotification {
        number,
        hash: B256::repeat_byte(1),
        parent_hash: B256::ZERO,
        state_root: B256::ZERO,
        timestamp: 5,
        first_batch: 1,
        last_batch: 2,
        transactions: vec![],
        skipped: vec![],
    })
}

#[tokio::test(start_paused = true)]
async fn calls_errors_and_lost_answers_are_carried() {
    let porter = Arc::new(Porter::default());
    let _carrying = carry(porter.clone());
    let patient = ClientConfig { request_timeout_ms: 3_600_000, ..ClientConfig::default() };
    let client = http_client("http://a.b:7", &patient).unwrap();
    let nobody = client.get_status().await.unwrap_err();
    assert!(matches!(&nobody, ClientError::Transport(error) if error.to_string().contains("nobody listens")));

    let server = serve(config(7), methods(Hub::default()), None).await.unwrap();
    assert!(serve(config(7), methods(Hub::default()), None).await.is_err(), "the address is taken");
    assert_eq!(client.get_status().await.unwrap(), status());

    // An hour of virtual time.
    *porter.lost.lock().unwrap() = 1;
    assert!(matches!(client.get_status().await, Err(ClientError::RequestTimeout)));
    assert!(server.shutdown().await);
    assert!(client.get_status().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_carried_and_ends_with_its_server() {
    let _carrying = carry(Arc::new(Porter::default()));
    let hub = Hub::default();
    let server = serve(config(7), methods(hub.clone()), None).await.unwrap();
    let mut feed = Feed::start("ws://a.b:7", [Topic::Blocks], FeedConfig::default());
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    assert_eq!(hub.publish(&block(9)), 1);
    assert_eq!(feed.next().await, Some(FeedItem::Event(block(9))));
    assert!(server.shutdown().await);
    drop(hub);
    let hub = Hub::default();
    let _server = serve(config(7), methods(hub.clone()), None).await.unwrap();
    assert_eq!(feed.next().await, Some(FeedItem::Reconnected));
    hub.publish(&block(10));
    assert_eq!(feed.next().await, Some(FeedItem::Event(block(10))));
    tokio::time::timeout(Duration::from_secs(1), feed.next()).await.unwrap_err();
}

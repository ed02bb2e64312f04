//! Several sequencers, one of which leads (J-5), over real sockets: who is asked, who is left, and what is said when nobody
//! leads.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use blindfold_protocol::B256;
use blindfold_rpc::{
    BlindApiClient, BlindApiServer, ClientBuildError, ClientConfig, Encoded, Feed, FeedConfig, FeedEvent,
    FeedItem, FeedSource, HttpClient, Hub, READ_METHODS, RawEnvelope, ReceivedError, RpcError,
    SequencerApiClient, SequencerApiServer, SequencerUrls, ServerConfig, ServerHandle, Topic, http_client,
    http_client_of,
    jsonrpsee::{RpcModule, core::client::ClientT, rpc_params},
    serve, standing_by,
    types::{BlockNotification, SendOptions, SentEnvelope},
    ws_client,
};
use blindfold_runtime::spawn;
use common::*;
use tokio::{net::TcpSocket, sync::watch};

fn http(addr: SocketAddr) -> String {
    format!("http://{addr}")
}

/// A port that refuses connections: taken, so that nobody else is given it, and not listened on.
fn dead() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(loopback(0)).unwrap();
    let url = http(socket.local_addr().unwrap());
    (socket, url)
}

async fn waiting(leader: Option<&str>) -> (ServerHandle, watch::Sender<Option<String>>) {
    waiting_in(Form::Json, leader).await
}

async fn waiting_in(form: Form, leader: Option<&str>) -> (ServerHandle, watch::Sender<Option<String>>) {
    let (knows, leader) = watch::channel(leader.map(str::to_owned));
    let feed = (form == Form::Binary).then(|| FeedSource::StandingBy(leader.clone()));
    let config = ServerConfig { feed, ..config(0) };
    (serve(config, standing_by(leader), None).await.unwrap(), knows)
}

fn client<const N: usize>(urls: [&str; N]) -> HttpClient {
    http_client_of(&SequencerUrls::new(urls), &ClientConfig::default()).unwrap()
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
        transactions: Vec::new(),
        skipped: Vec::new(),
    })
}

/// Counts the calls of a method and answers them so.
fn counting(method: &'static str, answer: Result<u64, RpcError>) -> (RpcModule<()>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let mut module = RpcModule::new(());
    module
        .register_method(method, move |_, _, _| {
            count.fetch_add(1, Ordering::SeqCst);
            answer.clone()
        })
        .unwrap();
    (module, calls)
}

#[tokio::test]
async fn a_dead_server_is_passed_by_and_not_asked_again_while_another_answers() {
    let (_kept, dead) = dead();
    let server = start(Hub::default()).await;
    let live = http(server.local_addr());
    let client = client([&dead, &live]);
    assert_eq!(client.get_status().await.unwrap(), status());
    let sent = client.send_envelope(Encoded::from_bytes(vec![7; 100]), None).await.unwrap();
    assert_eq!(sent.id, alloy_primitives::keccak256([7; 100]));
    // Who leads has the last word: a refusal is no reason to ask around.
    let busy = Some(SendOptions { promise: true });
    let busy = client.send_envelope(Encoded::<RawEnvelope>::from_bytes(vec![7; 100]), busy).await;
    assert_eq!(ReceivedError::from(busy.unwrap_err()).reason(), "mempool_full");
    assert!(client.subscribe_topic("blocks".to_owned()).await.is_err(), "there are none over HTTP");
}

#[tokio::test]
async fn who_refuses_is_asked_once_and_who_answered_last_is_asked_first() {
    let (refusing, refused) = counting("blind_getStatus", Err(RpcError::unavailable("recovering", "later")));
    let (other, asked) = counting("blind_getStatus", Ok(1));
    let refusing = serve(config(0), refusing, None).await.unwrap();
    let other = serve(config(0), other, None).await.unwrap();
    let client = client([&http(refusing.local_addr()), &http(other.local_addr())]);
    for _ in 0..3 {
        let error = client.request::<u64, _>("blind_getStatus", rpc_params![]).await.unwrap_err();
        assert_eq!(ReceivedError::from(error).reason(), "recovering");
    }
    assert_eq!((refused.load(Ordering::SeqCst), asked.load(Ordering::SeqCst)), (3, 0));
    assert!(refusing.shutdown().await);
    for _ in 0..3 {
        assert_eq!(client.request::<u64, _>("blind_getStatus", rpc_params![]).await.unwrap(), 1);
    }
    assert_eq!((refused.load(Ordering::SeqCst), asked.load(Ordering::SeqCst)), (3, 3));
}

#[tokio::test]
async fn one_that_stands_by_hands_on_to_whom_it_names_if_that_one_is_known() {
    let server = start(Hub::default()).await;
    let (between, between_asked) = counting("blind_getStatus", Err(RpcError::standing_by(None)));
    let between = serve(config(0), between, None).await.unwrap();
    let live = http(server.local_addr());
    // Named in other letters, and as `localhost`: still the same server.
    let named = format!("HTTP://LOCALHOST:{}/", server.local_addr().port());
    let (first, knows) = waiting(Some(&named)).await;
    let urls = [http(first.local_addr()), http(between.local_addr()), live];
    let urls = urls.each_ref().map(String::as_str);
    assert_eq!(client(urls).get_status().await.unwrap(), status());
    assert_eq!(between_asked.load(Ordering::SeqCst), 0, "the one that leads comes first");

    // A URL that is not in the client's own list is never asked, whoever names it.
    let (stranger, asked) = counting("blind_getStatus", Ok(1));
    let stranger = serve(config(0), stranger, None).await.unwrap();
    knows.send_replace(Some(http(stranger.local_addr())));
    assert_eq!(client(urls).get_status().await.unwrap(), status());
    assert_eq!((asked.load(Ordering::SeqCst), between_asked.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn what_went_wrong_everywhere_is_told_with_every_url_and_no_secret() {
    let (_kept, dead) = dead();
    let (first, _) = waiting(None).await;
    let (second, _) = waiting(Some("http://nobody.example")).await;
    let [one, other] = [&first, &second].map(|server| http(server.local_addr()));
    let none = ReceivedError::from(client([&one, &other]).get_status().await.unwrap_err());
    let ReceivedError::Refused(refusal) = &none else { panic!("{none}") };
    assert!(refusal.is_standing_by() && refusal.retry);
    assert!(refusal.message.contains(&one) && refusal.message.contains(&other), "{refusal}");

    let secret = dead.replace("http://", "http://me:hunter2@");
    for urls in [[one.as_str(), &secret], [&secret, &one]] {
        let none = ReceivedError::from(client(urls).get_status().await.unwrap_err());
        // What became of the call at the dead one, nobody knows.
        let ReceivedError::NoAnswer(what) = &none else { panic!("{none}") };
        assert!(what.contains(&one) && what.contains("[redacted]@") && !what.contains("hunter2"), "{what}");
        assert!(none.retry());
    }
    let none = http_client_of(&SequencerUrls::default(), &ClientConfig::default());
    assert!(matches!(none, Err(ClientBuildError::Scheme { .. })));
}

#[tokio::test]
async fn a_port_that_stands_by_refuses_every_method_of_a_sequencer_and_has_no_other() {
    let (server, knows) = waiting(Some("http://a.example")).await;
    let addr = server.local_addr();
    let role = Role { hub: Hub::default() };
    let common = BlindApiServer::into_rpc(role.clone());
    let own = SequencerApiServer::into_rpc(role);
    let mut methods: Vec<&str> = common.method_names().chain(own.method_names()).collect();
    methods.extend(READ_METHODS);
    assert!(methods.len() > 30);
    for method in methods {
        for params in ["[]", "[\"no parameter of it\"]"] {
            let answer = call(addr, method, params).await;
            assert_eq!(error(&answer), (-38003, "standing_by".to_owned(), true), "{method}");
            assert_eq!(answer["error"]["data"]["leader"], "http://a.example", "{method}");
        }
    }
    knows.send_replace(None);
    let answer = call(addr, "blind_getStatus", "[]").await;
    assert!(answer["error"]["data"].get("leader").is_none(), "{answer}");
    assert_eq!(error(&call(addr, "eth_sendRawTransaction", "[\"0x\"]").await).1, "plaintext_refused");
    assert_eq!(error(&call(addr, "admin_peers", "[]").await).1, "unknown_method");
    let over_websocket = ws_client(&format!("ws://{addr}"), &ClientConfig::default()).await.unwrap();
    let refused = over_websocket.subscribe_topic("blocks".to_owned()).await.unwrap_err();
    assert_eq!(ReceivedError::from(refused).reason(), "standing_by");
    let single = http_client(&http(addr), &ClientConfig::default()).unwrap();
    let refused: Result<SentEnvelope, _> = single.send_envelope(Encoded::from_bytes(vec![1]), None).await;
    assert_eq!(ReceivedError::from(refused.unwrap_err()).reason(), "standing_by");
}

fn feed(urls: &[&str]) -> Feed {
    let config = FeedConfig { backoff_initial_ms: 1, backoff_max_ms: 20, ..FeedConfig::default() };
    let urls = SequencerUrls::new(urls.iter().copied());
    Feed::start_at_any(urls.feeds(), [Topic::Blocks], config)
}

#[tokio::test]
async fn a_feed_goes_to_the_next_server_when_its_own_ends() {
    for forms in [[Form::Json; 2], [Form::Binary; 2], [Form::Binary, Form::Json]] {
        a_feed_goes_to_the_next_when_one_ends(forms).await;
    }
}

/// Whichever form each of them has.
async fn a_feed_goes_to_the_next_when_one_ends([form, next_form]: [Form; 2]) {
    let (_kept, dead) = dead();
    let (hub, next_hub) = (Hub::default(), Hub::default());
    let server = serve(feeding(0, &hub, form), methods(hub.clone()), None).await.unwrap();
    let next = serve(feeding(0, &next_hub, next_form), methods(next_hub.clone()), None).await.unwrap();
    let mut feed = feed(&[&dead, &http(server.local_addr()), &http(next.local_addr())]);
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    hub.publish(&block(1));
    assert_eq!(feed.next().await, Some(FeedItem::Event(block(1))));
    assert!(server.shutdown().await);
    hub.publish(&block(2));
    assert_eq!(feed.next().await, Some(FeedItem::Reconnected), "what was published meanwhile is gone");
    next_hub.publish(&block(3));
    assert_eq!(feed.next().await, Some(FeedItem::Event(block(3))));
}

#[tokio::test]
async fn a_feed_goes_where_the_one_that_stands_by_says_and_waits_while_nobody_leads() {
    for form in FORMS {
        a_feed_goes_where_it_is_told(form).await;
    }
}

async fn a_feed_goes_where_it_is_told(form: Form) {
    let hub = Hub::default();
    let server = serve(feeding(0, &hub, form), methods(hub.clone()), None).await.unwrap();
    let (first, knows) = waiting_in(form, None).await;
    let (second, _) = waiting_in(form, None).await;
    let urls = [&first, &second, &server].map(|server| http(server.local_addr()));
    knows.send_replace(Some(urls[2].clone()));
    let mut led = feed(&[&urls[0], &urls[1], &urls[2]]);
    assert_eq!(led.next().await, Some(FeedItem::Connected));
    drop(led);

    let mut waits = feed(&[&urls[0], &urls[1]]);
    let connected = spawn(async move { waits.next().await.map(|item| (item, waits)) });
    let port = first.local_addr().port();
    assert!(first.shutdown().await);
    // The one that stood by leads from now on, at its own address.
    let leads = loop {
        match serve(config(port), methods(hub.clone()), None).await {
            Ok(server) => break server,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let (item, _waits) = connected.await.unwrap().unwrap();
    assert_eq!(item, FeedItem::Connected);
    drop(leads);
}

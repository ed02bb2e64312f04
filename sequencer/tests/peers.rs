//! The port for peers alone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_certificates::{Authority, Pair, Said};
use blindfold_kit::within;
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Feed, FeedConfig, FeedItem, PeerListener, RunningRole, Topic, http_client,
    jsonrpsee::core::client::ClientT,
};
use blindfold_tls::{ClientTls, TlsSettings};
use common::World;
use tokio::net::TcpStream;

/// Peers with a certificate have a port of their own, whatever happens at the public one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_get_through_on_their_own_port_while_the_public_one_is_full() {
    let authority = Authority::new();
    let Pair { cert_file, key_file } = authority.pair("sequencer", Said::default());
    let world = World::with(|config, _| {
        config.peer_listener = Some(PeerListener {
            addr: ([127, 0, 0, 1], 0).into(),
            cert_file,
            key_file,
            client_ca_file: authority.ca_file(),
            max_connections: 8,
        });
        config.inbound.max_connections_per_address = 1;
    });
    let running = world.start().await;
    // A stranger from here has the one place that this address has.
    let stranger = TcpStream::connect(running.handle.rpc_addr()).await.unwrap();
    let shown = authority.pair("member", Said::default());
    let settings = TlsSettings {
        ca_file: Some(authority.ca_file()),
        cert_file: Some(shown.cert_file),
        key_file: Some(shown.key_file),
    };
    let tls = Some(ClientTls::open(&settings).unwrap());
    let config = ClientConfig { tls, ..ClientConfig::default() };
    let addr = running.handle.peers_addr().unwrap();
    let member = http_client(&format!("https://{addr}"), &config).unwrap();
    assert_eq!(within("a status", member.get_status()).await.unwrap().role, "sequencer");
    let mut feed = Feed::start(
        format!("wss://{addr}"),
        vec![Topic::Headers],
        FeedConfig { client: config, ..FeedConfig::default() },
    );
    assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
    // What goes on to the execution client is for the public port.
    let read: Result<String, _> = ClientT::request(&member, "eth_chainId", Vec::<u8>::new()).await;
    assert!(read.unwrap_err().to_string().contains("does not exist"));
    drop(stranger);
    running.handle.shutdown().await;
}

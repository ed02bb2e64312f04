//! TLS on a port, and clients that trust, show and do what they should, or do not.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use blindfold_certificates::{Authority, Pair, Said};
use blindfold_protocol::{Address, B256, Certificate, Deployment, Party};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Doorkeeper, Encoded, Feed, FeedConfig, FeedEvent, FeedItem, Hub,
    PeerListener, ServeError, ServerHandle, Topic, http_client, limits::MAX_REQUEST_BYTES, serve,
    types::CertificateNotification, ws_client,
};
use blindfold_tls::{ClientTls, Refreshing, ServerTlsFiles, TlsSettings};
use common::{FORMS, Form, config, feeding, loopback, methods};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A client that trusts an authority and shows a certificate, or none.
fn client(authority: &Authority, shown: Option<&Pair>) -> ClientConfig {
    let settings = TlsSettings {
        ca_file: Some(authority.ca_file()),
        cert_file: shown.map(|pair| pair.cert_file.clone()),
        key_file: shown.map(|pair| pair.key_file.clone()),
    };
    ClientConfig { tls: Some(ClientTls::open(&settings).unwrap()), ..ClientConfig::default() }
}

async fn public(pair: &Pair) -> ServerHandle {
    let mut config = config(0);
    config.inbound.tls = Some(ServerTlsFiles {
        cert_file: pair.cert_file.clone(),
        key_file: pair.key_file.clone(),
        client_ca_file: None,
    });
    serve(config, methods(Hub::default()), None).await.unwrap()
}

fn listener(pair: &Pair, authority: &Authority) -> PeerListener {
    PeerListener {
        addr: loopback(0),
        cert_file: pair.cert_file.clone(),
        key_file: pair.key_file.clone(),
        client_ca_file: authority.ca_file(),
        max_connections: 4,
    }
}

fn doorkeeper() -> Doorkeeper {
    let deployment = Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(7) };
    Doorkeeper::new(deployment, Party::Sequencer, |_| Box::pin(std::future::ready(None)), || 1_000_000)
}

async fn for_peers(pair: &Pair, authority: &Authority) -> ServerHandle {
    serve(listener(pair, authority).server(Some(doorkeeper())), methods(Hub::default()), None).await.unwrap()
}

/// What a call over HTTP, and a connection over WebSocket, come to.
async fn asked(server: &ServerHandle, scheme: &str, config: &ClientConfig) -> [Result<(), String>; 2] {
    let addr = server.local_addr();
    let over_http = async {
        let client =
            http_client(&format!("http{scheme}://{addr}"), config).map_err(|fault| fault.to_string())?;
        client
            .get_status()
            .await
            .map(|status| assert_eq!(status, common::status()))
            .map_err(|fault| blindfold_rpc::ReceivedError::from(fault).to_string())
    };
    let over_websocket = async {
        let client =
            ws_client(&format!("ws{scheme}://{addr}"), config).await.map_err(|fault| fault.to_string())?;
        client
            .get_status()
            .await
            .map(|status| assert_eq!(status, common::status()))
            .map_err(|fault| blindfold_rpc::ReceivedError::from(fault).to_string())
    };
    [over_http.await, over_websocket.await]
}

fn all_say(answers: [Result<(), String>; 2], words: &str) {
    for answer in answers {
        let said = answer.expect_err("refused");
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn calls_and_feeds_go_over_tls() {
    for form in FORMS {
        calls_and_a_feed_go_over_tls(form).await;
    }
}

async fn calls_and_a_feed_go_over_tls(form: Form) {
    let authority = Authority::new();
    let hub = Hub::default();
    let mut config = feeding(0, &hub, form);
    let pair = authority.pair("server", Said::default());
    config.inbound.tls =
        Some(ServerTlsFiles { cert_file: pair.cert_file, key_file: pair.key_file, client_ca_file: None });
    let server = serve(config, methods(hub.clone()), None).await.unwrap();
    let client = client(&authority, None);
    assert_eq!(asked(&server, "s", &client).await, [Ok(()), Ok(())]);

    let url = format!("wss://{}", server.local_addr());
    let mut feed =
        Feed::start(url, vec![Topic::Certificates], FeedConfig { client, ..FeedConfig::default() });
    assert_eq!(feed.next().await, Some(FeedItem::Connected));
    let hash = B256::repeat_byte(1);
    let certificate = Certificate { epoch: 1, number: 1, header_hash: hash, signers: 7, signature: [1; 48] };
    let certificate = Encoded::new(&certificate);
    let event = FeedEvent::Certificate(CertificateNotification { number: 1, hash, certificate });
    assert_eq!(hub.publish(&event), 1);
    assert_eq!(feed.next().await, Some(FeedItem::Event(event)));
}

#[tokio::test]
async fn a_server_that_is_not_the_right_one_is_refused_and_the_reason_said() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = public(&authority.pair("good", Said::default())).await;
    all_say(asked(&good, "s", &client(&other, None)).await, "name its authority in tls.ca_file");
    let wrong = public(&authority.pair("wrong", Said { names: &["example.org"], ..Said::default() })).await;
    all_say(asked(&wrong, "s", &client(&authority, None)).await, "is for another name");
    let expired = public(&authority.pair("expired", Said { days: -1, ..Said::default() })).await;
    all_say(asked(&expired, "s", &client(&authority, None)).await, "has expired");
}

#[tokio::test]
async fn plain_and_tls_that_meet_say_what_to_do() {
    let authority = Authority::new();
    let client = client(&authority, None);
    let secure = public(&authority.pair("server", Said::default())).await;
    all_say(asked(&secure, "", &client).await, "use https://");
    let (head, body) = common::request(secure.local_addr(), "GET /", "", "").await;
    assert!(head.starts_with("http/1.1 426") && body.contains("speaks TLS"), "{head} {body}");
    let plain = common::start(Hub::default()).await;
    all_say(asked(&plain, "s", &client).await, "does not speak TLS there: use http://");
}

#[tokio::test]
async fn a_port_for_peers_takes_those_with_a_certificate_of_its_authority() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = for_peers(&ours.pair("server", Said::default()), &ours).await;
    let member = ours.pair("member", Said::default());
    assert_eq!(asked(&server, "s", &client(&ours, Some(&member))).await, [Ok(()), Ok(())]);

    all_say(asked(&server, "s", &client(&ours, None)).await, "set tls.cert_file and tls.key_file");
    let stranger = theirs.pair("stranger", Said::default());
    all_say(asked(&server, "s", &client(&ours, Some(&stranger))).await, "client_ca_file has to name it");
    let expired = ours.pair("expired", Said { days: -1, ..Said::default() });
    all_say(asked(&server, "s", &client(&ours, Some(&expired))).await, "finds our certificate expired");
    assert_eq!(server.tls().unwrap().failed(), 6);
}

/// A certificate that is renewed counts at once, on both sides, for clients that exist already.
#[tokio::test]
async fn certificates_are_renewed_while_all_runs() {
    let (before, after) = (Authority::new(), Authority::new());
    let (of_server, of_member) =
        (before.pair("server", Said::default()), before.pair("member", Said::default()));
    let server = for_peers(&of_server, &before).await;
    let config = client(&before, Some(&of_member));
    let tls = config.tls.clone().unwrap().refreshing();
    let url = format!("https://{}", server.local_addr());
    let existing = http_client(&url, &config).unwrap();
    existing.get_status().await.unwrap();

    // The client's authority and pair are exchanged first, and it is another one's for the server until it follows.
    let (cert, key) = after.sign(Said::default());
    of_member.write(&cert, &key);
    std::fs::copy(after.ca_file(), before.ca_file()).unwrap();
    assert!(tls.refresh(false));
    let fresh = http_client(&url, &config).unwrap();
    let refused = blindfold_rpc::ReceivedError::from(fresh.get_status().await.unwrap_err()).to_string();
    assert!(refused.contains("name its authority"), "{refused}");

    let (cert, key) = after.sign(Said::default());
    of_server.write(&cert, &key);
    assert!(server.tls().unwrap().refresh(false));
    fresh.get_status().await.unwrap();
    assert_eq!(asked(&server, "s", &config).await, [Ok(()), Ok(())]);
    // Connections that stand go on.
    existing.get_status().await.unwrap();
}

/// A handshake that never ends holds a place for seconds, whatever came of it.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_ends_is_cut_off() {
    let authority = Authority::new();
    let pair = authority.pair("server", Said::default());
    let mut config = config(0);
    config.max_connections = 2;
    config.inbound.tls =
        Some(ServerTlsFiles { cert_file: pair.cert_file, key_file: pair.key_file, client_ca_file: None });
    let server = serve(config, methods(Hub::default()), None).await.unwrap();
    // One says nothing, one begins a handshake.
    for begun in [&[][..], &[22, 3, 1, 2, 0, 1]] {
        let mut silent = TcpStream::connect(server.local_addr()).await.unwrap();
        silent.write_all(begun).await.unwrap();
        let mut rest = Vec::new();
        // Closed, or reset because bytes were not read.
        let _ = silent.read_to_end(&mut rest).await;
    }
    while server.tls().unwrap().failed() < 2 {
        tokio::task::yield_now().await;
    }
}

/// Whoever fills the public port takes nothing of what members have at theirs.
#[tokio::test]
async fn a_flood_at_the_public_port_does_not_reach_that_of_peers() {
    let authority = Authority::new();
    let pair = authority.pair("server", Said::default());
    let mut open = config(0);
    open.max_connections = 4;
    open.inbound.max_calls_per_address_per_second = 1;
    let public = serve(open, methods(Hub::default()), None).await.unwrap();
    let peers = for_peers(&pair, &authority).await;
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(TcpStream::connect(public.local_addr()).await.unwrap());
    }
    let stranger = http_client(&format!("http://{}", public.local_addr()), &ClientConfig::default()).unwrap();
    assert!(stranger.get_status().await.is_err(), "the public port is full");
    let member = client(&authority, Some(&authority.pair("member", Said::default())));
    assert_eq!(asked(&peers, "s", &member).await, [Ok(()), Ok(())]);
    drop(idle);

    // Strangers at the peers' own port get no further than a handshake, and give their places back.
    for _ in 0..8 {
        let nobody =
            http_client(&format!("https://{}", peers.local_addr()), &client(&authority, None)).unwrap();
        assert!(nobody.get_status().await.is_err());
    }
    assert_eq!(asked(&peers, "s", &member).await, [Ok(()), Ok(())]);
}

/// Everybody there may send what a peer may.
#[tokio::test]
async fn peers_send_larger_requests_without_a_hello() {
    let authority = Authority::new();
    let server = for_peers(&authority.pair("server", Said::default()), &authority).await;
    let mut member = client(&authority, Some(&authority.pair("member", Said::default())));
    member.max_request_bytes = 2 * MAX_REQUEST_BYTES;
    let client = http_client(&format!("https://{}", server.local_addr()), &member).unwrap();
    let large = "a".repeat(MAX_REQUEST_BYTES as usize + 1);
    let answer: Result<bool, _> =
        blindfold_rpc::jsonrpsee::core::client::ClientT::request(&client, "x", [large]).await;
    assert!(answer.unwrap_err().to_string().contains("does not exist here"));
}

/// Each new connection costs a handshake: it counts as a call.
#[tokio::test]
async fn connections_by_tls_count_towards_an_addresss_rate() {
    let authority = Authority::new();
    let pair = authority.pair("server", Said::default());
    let mut config = config(0);
    config.inbound.max_calls_per_address_per_second = 1;
    config.inbound.tls =
        Some(ServerTlsFiles { cert_file: pair.cert_file, key_file: pair.key_file, client_ca_file: None });
    let server = serve(config, methods(Hub::default()), None).await.unwrap();
    let client = client(&authority, None);
    let mut refused = false;
    for _ in 0..50 {
        let once = http_client(&format!("https://{}", server.local_addr()), &client).unwrap();
        refused |= once.get_status().await.is_err();
    }
    assert!(refused);
}

#[tokio::test]
async fn a_port_without_its_certificate_is_not_opened() {
    let authority = Authority::new();
    let pair = authority.pair("server", Said::default());
    let gone = Pair { cert_file: authority.folder().join("gone.pem"), ..pair };
    let server = listener(&gone, &authority).server(Some(doorkeeper()));
    let fault = serve(server, methods(Hub::default()), None).await.unwrap_err();
    assert!(matches!(fault, ServeError::Tls { .. }) && fault.to_string().contains("gone.pem"), "{fault}");
}

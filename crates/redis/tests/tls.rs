//! A Redis server that is spoken to over TLS.

mod common;

use std::{net::TcpListener, path::Path};

use blindfold_certificates::{Authority, Said};
use blindfold_redis::{RedisError, redis::cmd};
use blindfold_servers::Redis as Server;
use blindfold_tls::{ClientTls, TlsSettings, install};
use common::Client;

/// A server with a certificate of this authority, and its URL.
fn serve(authority: &Authority, names: &[&str]) -> Option<(Server, String)> {
    let pair = authority.pair("server", Said { names, ..Said::default() });
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port().to_string();
    let path = |path: &Path| path.display().to_string();
    let (cert, key, ca) = (path(&pair.cert_file), path(&pair.key_file), path(&authority.ca_file()));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let settings =
        [&["--tls-port", &port, "--bind", "127.0.0.1", "--tls-auth-clients", "no"][..], &files].concat();
    Some((Server::for_test_with(&settings)?, format!("rediss://127.0.0.1:{port}")))
}

/// One test, because a process trusts one authority.
#[tokio::test]
async fn over_tls_only_the_right_server_is_believed() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let settings = TlsSettings { ca_file: Some(ours.ca_file()), ..TlsSettings::default() };
    assert!(install(ClientTls::open(&settings).expect("an authority")));
    let Some((right, url)) = serve(&ours, &["127.0.0.1"]) else { return };
    let client = Client::with(url, "a", None);
    let mut set = cmd("SET");
    assert_eq!(client.redis.query(set.arg(client.redis.key("count")).arg(7)).await, Ok(()));
    assert_eq!(right.run(&["GET", "blindfold:a:count"]).expect("answers"), "7");
    for (authority, names) in [(&ours, "example.org"), (&theirs, "127.0.0.1")] {
        let (_server, url) = serve(authority, &[names]).expect("it is installed");
        let client = Client::with(url, "a", None);
        assert_eq!(client.redis.query::<()>(&cmd("PING")).await, Err(RedisError::Down));
        assert!(client.errors("lost") >= 1);
    }
}

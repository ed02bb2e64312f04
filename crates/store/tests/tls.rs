//! A PostgreSQL server that is spoken to over TLS.
#![allow(clippy::unwrap_used, missing_docs)]

use std::net::TcpListener;

use blindfold_certificates::{Authority, Said};
use blindfold_servers::Postgres;
use blindfold_store::{PostgresUrl, SqlStore};
use blindfold_tls::{ClientTls, TlsSettings, install};

fn serve(server: &mut Postgres, port: u16, authority: &Authority, names: &[&str]) {
    server.end().unwrap();
    let (certificate, key) = authority.sign(Said { names, ..Said::default() });
    server.resume_start_over_tls(port, &certificate, &key).unwrap();
}

/// One test, because a process trusts one authority.
#[tokio::test]
async fn a_store_over_tls_is_that_of_the_right_server_alone() {
    // The shared one says whether there is any.
    if Postgres::shared().is_none() {
        return;
    }
    let (ours, theirs) = (Authority::new(), Authority::new());
    let settings = TlsSettings { ca_file: Some(ours.ca_file()), ..TlsSettings::default() };
    assert!(install(ClientTls::open(&settings).unwrap()));
    let mut server = Postgres::start().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = |mode: &str| -> PostgresUrl {
        format!("postgres://blindfold@127.0.0.1:{port}/blindfold?sslmode={mode}").parse().unwrap()
    };

    serve(&mut server, port, &ours, &["127.0.0.1"]);
    for mode in ["require", "verify-full"] {
        let store = SqlStore::connect(&url(mode)).await.unwrap();
        store.close().await;
    }
    let sessions = "SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()";
    let store = SqlStore::connect(&url("verify-full")).await.unwrap();
    assert_eq!(server.run(sessions).unwrap(), "5", "one that writes and four that read");
    store.close().await;
    // In libpq `require` would take both of these.
    serve(&mut server, port, &ours, &["example.org"]);
    let refused = SqlStore::connect(&url("require")).await.unwrap_err().to_string();
    assert!(refused.contains("is for another name"), "{refused}");
    serve(&mut server, port, &theirs, &["127.0.0.1"]);
    let refused = SqlStore::connect(&url("require")).await.unwrap_err().to_string();
    assert!(refused.contains("name its authority in tls.ca_file"), "{refused}");
    // Whoever asks for none is not kept from it.
    SqlStore::connect(&url("disable")).await.unwrap().close().await;
}

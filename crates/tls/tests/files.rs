//! Files that are wrong, and files that change.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, process::Command, sync::Arc, task::Poll};

use blindfold_certificates::{Authority, Pair, Said};
use blindfold_tls::{
    ClientTls, Refreshing, ServerTls, ServerTlsFiles, TlsError, TlsSettings, look_at_pair, look_at_roots,
    watch,
};
use futures::poll;

fn files(pair: &Pair, client_ca_file: Option<&Authority>) -> ServerTlsFiles {
    ServerTlsFiles {
        cert_file: pair.cert_file.clone(),
        key_file: pair.key_file.clone(),
        client_ca_file: client_ca_file.map(Authority::ca_file),
    }
}

#[test]
fn each_fault_of_a_file_has_a_name_and_says_what_to_do() {
    let authority = Authority::new();
    let (one, two) = (authority.pair("one", Said::default()), authority.pair("two", Said::default()));
    let open = |cert_file: &std::path::Path, key_file: &std::path::Path| {
        let files = ServerTlsFiles {
            cert_file: cert_file.to_owned(),
            key_file: key_file.to_owned(),
            client_ca_file: None,
        };
        ServerTls::open(&files).unwrap_err()
    };
    let nowhere = authority.folder().join("nowhere.pem");
    let empty = authority.folder().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let torn = authority.folder().join("torn.pem");
    fs::write(&torn, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for (error, words) in [
        (open(&nowhere, &one.key_file), "name a PEM file"),
        (open(&one.cert_file, &nowhere), "name a PEM file"),
        (open(&empty, &one.key_file), "no certificate in it"),
        (open(&one.key_file, &one.key_file), "no certificate in it"),
        (open(&torn, &one.key_file), "cannot be used"),
        (open(&one.cert_file, &one.cert_file), "no private key"),
        (open(&one.cert_file, &two.key_file), "is not that of the certificate"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    let half = |cert: bool| TlsSettings {
        cert_file: cert.then(|| one.cert_file.clone()),
        key_file: (!cert).then(|| one.key_file.clone()),
        ca_file: None,
    };
    for settings in [half(true), half(false)] {
        assert!(matches!(ClientTls::open(&settings).unwrap_err(), TlsError::Half { .. }));
    }
    let no_ca = TlsSettings { ca_file: Some(empty), ..TlsSettings::default() };
    assert!(matches!(ClientTls::open(&no_ca).unwrap_err(), TlsError::NoCertificate { .. }));
    assert_eq!(look_at_roots(&authority.ca_file()), Ok(1));
    let facts = look_at_pair(&one.cert_file, &one.key_file).unwrap();
    assert_eq!((facts.not_after - facts.not_before) / 86_400, 765);
}

#[test]
fn what_cannot_be_used_does_not_take_the_place_of_what_can() {
    let authority = Authority::new();
    let pair = authority.pair("server", Said::default());
    let server = ServerTls::open(&files(&pair, None)).unwrap();
    let (first, until) = (server.config(), server.expires());
    assert!(!server.refresh(false), "nothing has changed");

    let other = authority.sign(Said::default());
    fs::write(&pair.cert_file, &other.0).unwrap();
    assert!(!server.refresh(false), "half of a new pair");
    assert!(!server.refresh(false));
    assert_eq!(server.files().refused(), 1, "told once");
    pair.write("", "");
    assert!(!server.refresh(false));
    let expired = authority.sign(Said { days: -1, ..Said::default() });
    pair.write(&expired.0, &expired.1);
    assert!(!server.refresh(false));
    assert!(!server.refresh(true));
    assert_eq!(server.files().refused(), 4);
    assert!(Arc::ptr_eq(&first, &server.config()), "the old one stays");

    let longer = authority.sign(Said { days: 500, ..Said::default() });
    pair.write(&longer.0, &longer.1);
    assert!(server.refresh(false));
    assert!(server.expires() > until && !Arc::ptr_eq(&first, &server.config()));
    // At a start an expired one is better than none.
    pair.write(&expired.0, &expired.1);
    ServerTls::open(&files(&pair, None)).unwrap();
}

#[tokio::test]
async fn a_hangup_reads_the_files_again() {
    let authority = Authority::new();
    let pair = authority.pair("client", Said::default());
    let settings = TlsSettings {
        ca_file: Some(authority.ca_file()),
        cert_file: Some(pair.cert_file.clone()),
        key_file: Some(pair.key_file.clone()),
    };
    let client = ClientTls::open(&settings).unwrap();
    let files = client.refreshing();
    let until = files.expires();
    let mut watching = Box::pin(watch(Arc::clone(&files)));
    // From here on the signal does not end the process.
    assert_eq!(poll!(&mut watching), Poll::Pending);
    let longer = authority.sign(Said { days: 500, ..Said::default() });
    pair.write(&longer.0, &longer.1);
    let id = std::process::id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    tokio::select! {
        () = watching => {}
        () = async { while files.expires() == until { tokio::task::yield_now().await } } => {}
    }
}

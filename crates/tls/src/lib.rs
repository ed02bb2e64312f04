//! TLS in and out: whom we trust, what we show, and certificates that change while a role runs.
//!
//! - [`ClientTls`]: for connections that we open. The system's roots and those of `tls.ca_file` are trusted; to a server
//!   that asks for one, the certificate of `tls.cert_file` is shown. [`process`] is the one that a program's clients use
//!   unless they are given another.
//! - [`ServerTls`]: for connections that we take; with a `client_ca_file` only from whoever shows a certificate of that
//!   authority.
//! - [`watch`]: reads the files again when they change or the process gets SIGHUP. What cannot be used is refused, logged and
//!   counted, and what was there before stays.
//! - [`advice`]: what to do about a handshake that failed.
//!
//! The protocol is rustls's, TLS 1.2 and 1.3, with ring: it builds with a C compiler alone. The roots are the system's and
//! not compiled in: they are the operator's to choose (`SSL_CERT_FILE` replaces them), and change without a new program.
//!
//! What this does not do: revocation lists and OCSP are not looked at; certificates of peers are short-lived, or their
//! authority is changed.

mod advice;
mod client;
mod error;
mod pair;
mod server;
mod settings;
mod watch;

pub use advice::advice;
pub use client::{ClientTls, install, nothing_trusted, process};
pub use error::TlsError;
pub use pair::{PairFacts, look_at_pair, look_at_roots};
pub use rustls;
pub use server::ServerTls;
pub use settings::{ServerTlsFiles, TlsSettings};
pub use watch::{FILES_POLL_MS, Refreshing, watch};

use std::sync::Arc;

/// The cryptography of all of it.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Makes ring the provider of libraries that ask for none by name. Harmless when repeated.
fn install_provider() {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

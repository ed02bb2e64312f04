//! What is wrong with files, and what to do about it.

use std::{
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

/// Why there is no TLS. The operator's to mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {cause}; name a PEM file that this process may read", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        cause: String,
    },
    /// A file has no certificate.
    #[error(
        "{}: no certificate in it; it must be PEM, with -----BEGIN CERTIFICATE-----, the own one first and then those \
         between it and its authority",
        file.display()
    )]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// A file has no private key.
    #[error(
        "{}: no private key in it that can be used; it must be PEM without a password (PKCS#8, PKCS#1 or SEC1; RSA, \
         ECDSA secp256r1 or secp384r1, or Ed25519)",
        file.display()
    )]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// A certificate cannot be read.
    #[error("{}: a certificate in it cannot be used: {reason}", file.display())]
    BadCertificate {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Key and certificate belong to different pairs.
    #[error(
        "the key in {} is not that of the certificate in {}; put the two of one pair there",
        key_file.display(),
        cert_file.display()
    )]
    KeyDoesNotFit {
        /// The certificate's file.
        cert_file: PathBuf,
        /// The key's file.
        key_file: PathBuf,
    },
    /// A new certificate is of no use any more.
    #[error("{}: the certificate expired on {}; renew it", file.display(), date(*unix_seconds))]
    Expired {
        /// The file.
        file: PathBuf,
        /// When.
        unix_seconds: u64,
    },
    /// Nobody is trusted.
    #[error(
        "no certificate authority is known: this system has none ({reason}); install its package (ca-certificates), or name \
         a file in tls.ca_file"
    )]
    NoRoots {
        /// What the search for the system's came to.
        reason: String,
    },
    /// One of a pair of settings without the other.
    #[error(
        "{there} is set and {missing} is not: a certificate is of use only with its key; set both or neither"
    )]
    Half {
        /// The setting that is there.
        there: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
    /// What the library says of the whole.
    #[error("TLS cannot be set up: {reason}")]
    SetUp {
        /// Its words.
        reason: String,
    },
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::SetUp { reason: error.to_string() }
    }
}

/// A time as people write it.
pub(crate) fn date(unix_seconds: u64) -> String {
    // Beyond what can be written: a certificate without an end.
    let last = 253_402_300_799;
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_seconds.min(last)))
}

//! Certificates and keys in files.

use std::{fs, path::Path, sync::Arc};

use blindfold_runtime::wall_ms;
use rustls::{
    InconsistentKeys, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use x509_cert::{Certificate, der::Decode};
use zeroize::Zeroizing;

use crate::{TlsError, provider};

/// When a certificate counts, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairFacts {
    /// It counts from then on.
    pub not_before: u64,
    /// It counts no longer after this.
    pub not_after: u64,
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub certified: Arc<CertifiedKey>,
    pub facts: PairFacts,
}

/// What is in two files, if they fit together: for whoever looks whether a role could start.
///
/// # Errors
/// As a role would have them: see [`TlsError`]. One that is expired is none.
pub fn look_at_pair(cert_file: &Path, key_file: &Path) -> Result<PairFacts, TlsError> {
    Pair::read(cert_file, key_file).map(|pair| pair.facts)
}

/// How many authorities a file names.
///
/// # Errors
/// A file that cannot be read, or has none.
pub fn look_at_roots(file: &Path) -> Result<usize, TlsError> {
    let mut roots = RootCertStore::empty();
    add_roots(&mut roots, file)?;
    Ok(roots.len())
}

impl Pair {
    pub fn read(cert_file: &Path, key_file: &Path) -> Result<Self, TlsError> {
        let chain = certificates(cert_file)?;
        let facts = facts(cert_file, &chain)?;
        let no_key = || TlsError::NoKey { file: key_file.to_owned() };
        let key = {
            let bytes = Zeroizing::new(bytes_of(key_file)?);
            PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| no_key())?
        };
        let key = provider().key_provider.load_private_key(key).map_err(|_| no_key())?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // Some keys do not tell their public half: the handshake would show it.
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let (cert_file, key_file) = (cert_file.to_owned(), key_file.to_owned());
                return Err(TlsError::KeyDoesNotFit { cert_file, key_file });
            }
            Err(error) => {
                return Err(TlsError::BadCertificate {
                    file: cert_file.to_owned(),
                    reason: error.to_string(),
                });
            }
        }
        Ok(Self { certified: Arc::new(certified), facts })
    }

    /// The same, refused if it has expired: what takes another one's place must be of use.
    pub fn read_fresh(cert_file: &Path, key_file: &Path) -> Result<Self, TlsError> {
        let pair = Self::read(cert_file, key_file)?;
        if pair.facts.not_after < wall_ms() / 1_000 {
            let unix_seconds = pair.facts.not_after;
            return Err(TlsError::Expired { file: cert_file.to_owned(), unix_seconds });
        }
        Ok(pair)
    }
}

fn facts(file: &Path, chain: &[CertificateDer<'_>]) -> Result<PairFacts, TlsError> {
    let own = chain.first().ok_or_else(|| TlsError::NoCertificate { file: file.to_owned() })?;
    let parsed = Certificate::from_der(own)
        .map_err(|error| TlsError::BadCertificate { file: file.to_owned(), reason: error.to_string() })?;
    let validity = parsed.tbs_certificate.validity;
    Ok(PairFacts {
        not_before: validity.not_before.to_unix_duration().as_secs(),
        not_after: validity.not_after.to_unix_duration().as_secs(),
    })
}

/// Adds the authorities that a file names.
pub(crate) fn add_roots(roots: &mut RootCertStore, file: &Path) -> Result<(), TlsError> {
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::BadCertificate { file: file.to_owned(), reason: error.to_string() })?;
    }
    Ok(())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes_of(file)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let read =
        read.map_err(|error| TlsError::BadCertificate { file: file.to_owned(), reason: error.to_string() })?;
    if read.is_empty() { Err(TlsError::NoCertificate { file: file.to_owned() }) } else { Ok(read) }
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|error| TlsError::Unreadable { file: file.to_owned(), cause: error.to_string() })
}

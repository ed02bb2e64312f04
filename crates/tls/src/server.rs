//! Connections that we take.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustls::{
    RootCertStore, ServerConfig,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    sign::SingleCertAndKey,
};

use crate::{
    ServerTlsFiles, TlsError, install_provider,
    pair::{Pair, add_roots},
    provider,
    watch::{Files, Refreshing},
};

/// What a listener shows, and whom it takes.
pub struct ServerTls {
    named: ServerTlsFiles,
    files: Files,
    now: RwLock<Now>,
    failed: AtomicU64,
}

#[derive(Clone)]
struct Now {
    config: Arc<ServerConfig>,
    expires: u64,
}

impl ServerTls {
    /// Reads the files. A certificate that has expired is taken, with a warning: a role whose other work goes on is better
    /// than none.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn open(named: &ServerTlsFiles) -> Result<Arc<Self>, TlsError> {
        let files = [Some(&named.cert_file), Some(&named.key_file), named.client_ca_file.as_ref()];
        let files = Files::new(files.into_iter().flatten().cloned().collect());
        let pair = Pair::read(&named.cert_file, &named.key_file)?;
        if let Err(fault) = Pair::read_fresh(&named.cert_file, &named.key_file) {
            tracing::warn!(%fault, "nobody will connect before it is renewed; it is read again when the files change");
        }
        let now = RwLock::new(Now::of(pair, named)?);
        Ok(Arc::new(Self { named: named.clone(), files, now, failed: AtomicU64::new(0) }))
    }

    /// For the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.now().config
    }

    /// Counts a handshake that failed.
    pub fn count_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// How many handshakes failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether it takes only those who show a certificate.
    pub fn knows_its_clients(&self) -> bool {
        self.named.client_ca_file.is_some()
    }

    fn now(&self) -> Now {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("files", &self.named).finish_non_exhaustive()
    }
}

impl Now {
    fn of(pair: Pair, named: &ServerTlsFiles) -> Result<Self, TlsError> {
        install_provider();
        let builder =
            ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = match &named.client_ca_file {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                add_roots(&mut roots, file)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|error| TlsError::SetUp { reason: error.to_string() })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let expires = pair.facts.not_after;
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(pair.certified)));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if named.client_ca_file.is_some() {
            // A session that is taken up again shows no certificate, which may have expired since.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self { config: Arc::new(config), expires })
    }
}

impl Refreshing for ServerTls {
    fn name(&self) -> &'static str {
        if self.knows_its_clients() { "peers" } else { "public" }
    }

    fn files(&self) -> &Files {
        &self.files
    }

    fn take(&self) -> Result<(), TlsError> {
        let now = Now::of(Pair::read_fresh(&self.named.cert_file, &self.named.key_file)?, &self.named)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(())
    }

    fn expires(&self) -> Option<u64> {
        Some(self.now().expires)
    }
}

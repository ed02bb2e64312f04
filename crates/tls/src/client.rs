//! Connections that we open.

use std::{
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        ResolvesClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::CertifiedKey,
};

use crate::{
    TlsError, TlsSettings, install_provider,
    pair::{Pair, add_roots},
    provider,
    watch::{Files, Refreshing},
};

/// Whom the connections that we open trust, and what they show. Clones share it; files that are read again count for all
/// connections that are opened later, whoever has them.
#[derive(Clone)]
pub struct ClientTls(Arc<Inner>);

struct Inner {
    settings: TlsSettings,
    files: Files,
    /// Read at the first use: who speaks plainly only needs no system with roots.
    trust: RwLock<Option<Arc<WebPkiServerVerifier>>>,
    pair: RwLock<Option<Pair>>,
}

impl ClientTls {
    /// Reads the files of the settings.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn open(settings: &TlsSettings) -> Result<Self, TlsError> {
        let files = [&settings.ca_file, &settings.cert_file, &settings.key_file];
        let files = Files::new(files.into_iter().flatten().cloned().collect());
        let pair = settings.pair()?.map(|(cert, key)| Pair::read(cert, key)).transpose()?;
        if let Some(file) = &settings.ca_file {
            add_roots(&mut RootCertStore::empty(), file)?;
        }
        let (trust, pair) = (RwLock::default(), RwLock::new(pair));
        Ok(Self(Arc::new(Inner { settings: settings.clone(), files, trust, pair })))
    }

    /// The system's roots, and nothing to show.
    #[must_use]
    pub fn of_the_system() -> Self {
        let files = Files::new(Vec::new());
        let (settings, trust, pair) = (TlsSettings::default(), RwLock::default(), RwLock::default());
        Self(Arc::new(Inner { settings, files, trust, pair }))
    }

    /// For a client of peers: it shows our certificate to whoever asks for one.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`] where nobody is trusted.
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        Ok(self.verifying()?.with_client_cert_resolver(Arc::new(Shown(Arc::clone(&self.0)))))
    }

    /// For a client of strangers, as an L1 provider: they do not learn who we are.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`] where nobody is trusted.
    pub fn anonymous_config(&self) -> Result<ClientConfig, TlsError> {
        Ok(self.verifying()?.with_no_client_auth())
    }

    fn verifying(
        &self,
    ) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, TlsError> {
        install_provider();
        self.0.trusted()?;
        Ok(ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusted(Arc::clone(&self.0)))))
    }

    /// What [`watch`](crate::watch) watches.
    #[must_use]
    pub fn refreshing(&self) -> Arc<dyn Refreshing> {
        Arc::clone(&self.0) as Arc<dyn Refreshing>
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ClientTls {}

impl Inner {
    fn trusted(&self) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        if let Some(known) = &*self.trust.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(known));
        }
        let read = self.read_trust()?;
        *self.trust.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    fn read_trust(&self) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        let mut roots = RootCertStore::empty();
        if let Some(file) = &self.settings.ca_file {
            add_roots(&mut roots, file)?;
        }
        let system = rustls_native_certs::load_native_certs();
        // Some that cannot be read are common, and no reason to trust none.
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            let reasons: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
            let reason = if reasons.is_empty() { "none were found".to_owned() } else { reasons.join("; ") };
            return Err(TlsError::NoRoots { reason });
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| TlsError::SetUp { reason: error.to_string() })
    }

    fn pair(&self) -> Option<Pair> {
        self.pair.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Refreshing for Inner {
    fn name(&self) -> &'static str {
        "client"
    }

    fn files(&self) -> &Files {
        &self.files
    }

    fn take(&self) -> Result<(), TlsError> {
        let pair = self.settings.pair()?.map(|(cert, key)| Pair::read_fresh(cert, key)).transpose()?;
        // What nobody has used yet is read at its first use.
        let was_read = self.trust.read().unwrap_or_else(PoisonError::into_inner).is_some();
        let trust = was_read.then(|| self.read_trust()).transpose()?;
        *self.pair.write().unwrap_or_else(PoisonError::into_inner) = pair;
        *self.trust.write().unwrap_or_else(PoisonError::into_inner) = trust;
        Ok(())
    }

    fn expires(&self) -> Option<u64> {
        self.pair().map(|pair| pair.facts.not_after)
    }
}

/// Judges servers by whom we trust now.
struct Trusted(Arc<Inner>);

impl Trusted {
    fn now(&self) -> Result<Arc<WebPkiServerVerifier>, Error> {
        self.0.trusted().map_err(|fault| Error::General(fault.to_string()))
    }
}

impl fmt::Debug for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trusted")
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.now()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.now()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.now()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Shows the certificate that we have now.
struct Shown(Arc<Inner>);

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let pair = self.0.pair()?;
        pair.certified.key.choose_scheme(schemes).is_some().then_some(pair.certified)
    }

    fn only_raw_public_keys(&self) -> bool {
        false
    }

    fn has_certs(&self) -> bool {
        self.0.pair().is_some()
    }
}

/// What the process's clients use that are given no other.
static PROCESS: OnceLock<ClientTls> = OnceLock::new();

/// Makes `tls` what [`process`] gives. False where something was asked for before, which has settled it.
pub fn install(tls: ClientTls) -> bool {
    PROCESS.set(tls).is_ok()
}

/// What the process's clients use that are given no other: what was [installed](install), or the system's roots.
pub fn process() -> ClientTls {
    PROCESS.get_or_init(ClientTls::of_the_system).clone()
}

/// For clients of plain HTTP whose library wants a configuration all the same: it trusts nobody, so that a URL with TLS
/// cannot be reached by it.
///
/// # Errors
/// None that is known.
pub fn nothing_trusted() -> Result<ClientConfig, TlsError> {
    install_provider();
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

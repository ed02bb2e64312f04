//! Certificates that tests and development chains make: an authority, and pairs of certificate and key that it signed, in files.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// An authority with a folder for what it signs.
pub struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// Files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate's file, PEM.
    pub cert_file: PathBuf,
    /// The key's file, PEM.
    pub key_file: PathBuf,
}

/// What a certificate says.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Names and addresses of the server that it is for.
    pub names: &'a [&'a str],
    /// Days from now until it expires; below zero it has.
    pub days: i64,
}

impl Default for Said<'_> {
    /// For 127.0.0.1 and `localhost`, and a year.
    fn default() -> Self {
        Self { names: &["127.0.0.1", "localhost"], days: 365 }
    }
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// When no key can be made.
    #[must_use]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // Two with one name would be taken for each other until a signature is looked at.
        let name = key.public_key_raw().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signs itself").pem();
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Self { folder, issuer: Issuer::new(params, key), certificate };
        fs::write(authority.ca_file(), &authority.certificate).expect("the folder is ours");
        authority
    }

    /// The file with its certificate.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate and its key as texts.
    ///
    /// # Panics
    /// When what it is to say cannot be said.
    #[must_use]
    pub fn sign(&self, said: Said<'_>) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = said.names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let now = OffsetDateTime::now_utc();
        params.not_before = now - Duration::days(400);
        // An hour more, so that the days are whole ones.
        params.not_after = now + Duration::days(said.days) + Duration::hours(1);
        (params.signed_by(&key, &self.issuer).expect("signs").pem(), key.serialize_pem())
    }

    /// The same, in files of this name.
    ///
    /// # Panics
    /// As [`sign`](Self::sign).
    #[must_use]
    pub fn pair(&self, name: &str, said: Said<'_>) -> Pair {
        let (certificate, key) = self.sign(said);
        let file = |end: &str| self.folder.path().join(format!("{name}{end}"));
        let pair = Pair { cert_file: file(".pem"), key_file: file("-key.pem") };
        pair.write(&certificate, &key);
        pair
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// Puts another pair there.
    ///
    /// # Panics
    /// When the files cannot be written.
    pub fn write(&self, certificate: &str, key: &str) {
        fs::write(&self.cert_file, certificate).expect("the folder is ours");
        fs::write(&self.key_file, key).expect("the folder is ours");
        fs::set_permissions(&self.key_file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    }
}

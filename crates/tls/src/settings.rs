//! Settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::TlsError;

/// Settings of the connections that a process opens; a table of the configuration file. Unknown keys are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    /// PEM file with certificates of authorities that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file with the certificate that is shown to servers that ask for one, and those between it and its authority.
    pub cert_file: Option<PathBuf>,
    /// PEM file with its key.
    pub key_file: Option<PathBuf>,
}

impl TlsSettings {
    /// The certificate's and the key's file.
    ///
    /// # Errors
    /// [`TlsError::Half`] where one stands without the other.
    pub fn pair(&self) -> Result<Option<(&PathBuf, &PathBuf)>, TlsError> {
        match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(TlsError::Half { there: "tls.cert_file", missing: "tls.key_file" }),
            (None, Some(_)) => Err(TlsError::Half { there: "tls.key_file", missing: "tls.cert_file" }),
        }
    }
}

/// Files of what a server shows, and of whom it takes; a table of the configuration file. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTlsFiles {
    /// PEM file with the server's certificate, and those between it and its authority.
    pub cert_file: PathBuf,
    /// PEM file with its key.
    pub key_file: PathBuf,
    /// PEM file with certificates of the authorities of those who may connect; with none everybody may.
    #[serde(skip)]
    pub client_ca_file: Option<PathBuf>,
}

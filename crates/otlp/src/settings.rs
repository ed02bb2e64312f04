//! Where traces go, as operators set it.

use std::{fs, path::PathBuf};

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Longest file of headers, in bytes.
const MAX_HEADERS_BYTES: u64 = 16 << 10;

/// Settings of a process's traces; a table of the configuration file. Unknown keys are refused. Without a URL there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceSettings {
    /// Where the collector takes traces by OTLP over HTTP, for example `http://127.0.0.1:4318/v1/traces`.
    pub url: Option<String>,
    /// Share of all envelopes that are traced, from 0 to 1: those whose ids are the lowest, so that roles with the same
    /// share trace the same ones.
    pub share: f64,
    /// What this process is called among those of its role.
    pub instance: Option<String>,
    /// File with headers for the collector, as `name: value`, each on a line; for those that want a token.
    pub headers_file: Option<PathBuf>,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self { url: None, share: 0.01, instance: None, headers_file: None }
    }
}

/// Why no traces can be sent. All of them are faults of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The URL is none of HTTP, or lacks its path.
    #[error("traces.url is no URL of HTTP with a path, as http://127.0.0.1:4318/v1/traces")]
    Url,
    /// The URL holds a user's name or password.
    #[error(
        "traces.url: a password does not stand in the URL: name a file with the header in traces.headers_file"
    )]
    Credentials,
    /// The share is none.
    #[error("traces.share is {0}: it is a share of all envelopes, from 0 to 1")]
    Share(f64),
    /// The file of headers cannot be read.
    #[error("traces.headers_file {}: {error}", path.display())]
    HeadersFile {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A line of the file of headers is none. The line itself is not shown: it may hold a token.
    #[error("traces.headers_file {}: line {line} is not `name: value`", path.display())]
    Header {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// The files of the TLS settings do not serve.
    #[error("traces.url: {0}")]
    Tls(#[from] blindfold_tls::TlsError),
    /// No client can be made for it.
    #[error("traces.url: no client can be made for it")]
    Client,
}

impl TraceSettings {
    /// Finds what cannot be used, without opening a connection.
    ///
    /// # Errors
    /// The first fault, by the name of its setting.
    pub fn check(&self) -> Result<(), OtlpError> {
        if !(0.0..=1.0).contains(&self.share) {
            return Err(OtlpError::Share(self.share));
        }
        if self.checked_url()?.is_some() {
            self.headers()?;
        }
        Ok(())
    }

    /// Where it is sent to.
    pub(crate) fn checked_url(&self) -> Result<Option<Url>, OtlpError> {
        let Some(url) = &self.url else { return Ok(None) };
        let url = Url::parse(url).map_err(|_| OtlpError::Url)?;
        if !["http", "https"].contains(&url.scheme()) || !url.has_host() || url.path() == "/" {
            return Err(OtlpError::Url);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OtlpError::Credentials);
        }
        Ok(Some(url))
    }

    /// The headers of the file, as they stand there.
    pub(crate) fn headers(&self) -> Result<HeaderMap, OtlpError> {
        let Some(path) = &self.headers_file else { return Ok(HeaderMap::new()) };
        let failed = |error| OtlpError::HeadersFile { path: path.clone(), error };
        if fs::metadata(path).map_err(failed)?.len() > MAX_HEADERS_BYTES {
            let limit = format!("it is longer than {MAX_HEADERS_BYTES} bytes");
            return Err(failed(std::io::Error::other(limit)));
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let mut headers = HeaderMap::new();
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let header = text.split_once(':').and_then(|(name, value)| {
                let name = name.trim().parse::<HeaderName>().ok()?;
                let mut value = value.trim().parse::<HeaderValue>().ok()?;
                value.set_sensitive(true);
                Some((name, value))
            });
            let (name, value) = header.ok_or_else(|| OtlpError::Header { path: path.clone(), line })?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> TraceSettings {
        TraceSettings { url: Some(url.to_owned()), ..TraceSettings::default() }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        TraceSettings::default().check().unwrap();
        at("http://127.0.0.1:4318/v1/traces").check().unwrap();
        at("HTTPS://collector.example/otlp/v1/traces ").check().unwrap();
        let nowhere = ["", "collector:4318", "grpc://collector:4317", "http://", "unix:///run/otlp"];
        for url in nowhere.into_iter().chain(["http://127.0.0.1:4318", "http://127.0.0.1:4318/"]) {
            assert!(matches!(at(url).check(), Err(OtlpError::Url)), "{url}");
        }
        let error = at("https://user:secret@collector.example/v1/traces").check().unwrap_err();
        assert!(matches!(error, OtlpError::Credentials) && !error.to_string().contains("secret"), "{error}");
        for share in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
            let settings = TraceSettings { share, ..TraceSettings::default() };
            assert!(matches!(settings.check(), Err(OtlpError::Share(_))), "{share}");
        }
    }

    #[test]
    fn headers_are_read_and_a_token_is_in_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("headers");
        let settings =
            TraceSettings { headers_file: Some(path.clone()), ..at("http://127.0.0.1:4318/v1/traces") };
        assert!(matches!(settings.check(), Err(OtlpError::HeadersFile { .. })));

        fs::write(&path, "Authorization: Bearer abc:def\n\nX-Scope-OrgID: 7\n").unwrap();
        let headers = settings.headers().unwrap();
        assert_eq!(headers["authorization"], "Bearer abc:def");
        assert_eq!(headers["x-scope-orgid"], "7");

        fs::write(&path, "x-a: b\nBearer abc").unwrap();
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("abc"), "{error}");

        fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert!(matches!(settings.check(), Err(OtlpError::HeadersFile { .. })));
    }
}

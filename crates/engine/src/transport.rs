//! JSON-RPC over HTTP with bounded answers, and the Engine API's token.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use blindfold_runtime::wall_ms;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::TransportError;

/// How long to wait for a connection.
const CONNECT_TIMEOUT_MS: u64 = 2_000;

/// Connections kept open while idle, per endpoint.
const IDLE_CONNECTIONS_LIMIT: usize = 16;

/// Longest error text taken over from the other side, in characters.
const ERROR_TEXT_LIMIT_CHARS: usize = 512;

/// A secret that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JwtSecretError {
    /// The file cannot be read or written.
    #[error("cannot use the secret file {path}: {cause}")]
    File {
        /// Path of the secret's file.
        path: String,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The text is not 64 hex digits.
    #[error("the Engine API secret must be 64 hex digits, with or without 0x")]
    NotHex,
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system")]
    NoRandomness,
}

/// The 32-byte secret shared with the execution client (HS256). Never printed; wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct JwtSecret([u8; 32]);

impl JwtSecret {
    /// A fresh secret from the operating system's randomness.
    pub fn generate() -> Result<Self, JwtSecretError> {
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).map_err(|_| JwtSecretError::NoRandomness)?;
        Ok(Self(secret))
    }

    /// From 64 hex digits, `0x` optional, surrounding white space ignored.
    pub fn from_hex(text: &str) -> Result<Self, JwtSecretError> {
        let digits = text.trim();
        let mut secret = [0u8; 32];
        hex::decode_to_slice(digits.strip_prefix("0x").unwrap_or(digits), &mut secret)
            .map_err(|_| JwtSecretError::NotHex)?;
        Ok(Self(secret))
    }

    /// From a file of 64 hex digits, as execution clients keep it.
    pub fn from_file(path: &Path) -> Result<Self, JwtSecretError> {
        let text = Zeroizing::new(
            fs::read_to_string(path)
                .map_err(|cause| JwtSecretError::File { path: path.display().to_string(), cause })?,
        );
        Self::from_hex(&text)
    }

    /// The secret as 64 hex digits, without `0x`.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(self.0))
    }

    /// A token for the present moment: header `{"alg":"HS256","typ":"JWT"}`, claim `iat` in seconds.
    fn token(&self, issued_at_s: u64) -> String {
        let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
        let claims = URL_SAFE_NO_PAD.encode(format!("{{\"iat\":{issued_at_s}}}"));
        let signed = format!("{header}.{claims}");
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("{signed}.{signature}")
    }
}

impl fmt::Debug for JwtSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JwtSecret(redacted)")
    }
}

/// The `error` member of a JSON-RPC answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    pub data: Option<Value>,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u8,
    method: &'a str,
    params: P,
}

#[derive(Deserialize)]
struct Response<R> {
    result: Option<R>,
    error: Option<RpcError>,
}

/// One JSON-RPC server, and how it is called.
pub(crate) struct Endpoint {
    client: reqwest::Client,
    url: String,
    secret: Option<Mutex<JwtSecret>>,
    /// Where the secret is read anew when it is refused.
    secret_file: Option<PathBuf>,
    timeout_ms: u64,
    response_limit_bytes: usize,
}

impl Endpoint {
    /// No connection is made before the first call.
    pub fn new(url: &str, secret: Option<JwtSecret>, timeout_ms: u64, response_limit_bytes: usize) -> Self {
        // The client is on this machine or beside it: proxies of the environment and redirects would only
        // carry the token elsewhere.
        let nobody = blindfold_tls::nothing_trusted().expect("ring has the protocol's versions");
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(nobody)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
            .timeout(Duration::from_millis(timeout_ms))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_LIMIT)
            .build()
            .expect("a plain HTTP client has nothing to load that could fail");
        let secret = secret.map(Mutex::new);
        Self { client, url: url.to_owned(), secret, secret_file: None, timeout_ms, response_limit_bytes }
    }

    /// Reads the secret from this file again whenever the server refuses it: it may have been renewed.
    pub fn with_secret_file(self, secret_file: Option<PathBuf>) -> Self {
        Self { secret_file, ..self }
    }

    fn renew_secret(&self) {
        let (Some(secret), Some(path)) = (&self.secret, &self.secret_file) else { return };
        // A file that cannot be read now may be in the middle of being written; the next refusal looks again.
        if let Ok(renewed) = JwtSecret::from_file(path) {
            *secret.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        }
    }

    /// Calls `method`. The inner error is the server's own.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<Result<R, RpcError>, TransportError> {
        let malformed =
            |reason: String| TransportError::Malformed { method: method.to_owned(), reason: shorten(reason) };
        let body = serde_json::to_vec(&Request { jsonrpc: "2.0", id: 1, method, params })
            .map_err(|error| malformed(format!("the request has no JSON form: {error}")))?;
        let mut request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        if let Some(secret) = &self.secret {
            let now = wall_ms() / 1_000;
            let token = secret.lock().unwrap_or_else(PoisonError::into_inner).token(now);
            request = request.bearer_auth(token);
        }
        let failed = |error: reqwest::Error| self.broken(method, error);
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        match status {
            200 => {}
            401 | 403 => {
                self.renew_secret();
                return Err(TransportError::Unauthorized { method: method.to_owned(), status });
            }
            _ => return Err(TransportError::HttpStatus { method: method.to_owned(), status }),
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > self.response_limit_bytes {
                return Err(TransportError::ResponseTooLarge {
                    method: method.to_owned(),
                    limit_bytes: self.response_limit_bytes,
                });
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Response<R> =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match (answer.result, answer.error) {
            (_, Some(mut error)) => {
                error.message = shorten(error.message);
                Ok(Err(error))
            }
            (Some(result), None) => Ok(Ok(result)),
            // A null result: right where the type has room for it.
            (None, None) => serde_json::from_value(Value::Null)
                .map(Ok)
                .map_err(|_| malformed("neither result nor error".to_owned())),
        }
    }

    fn broken(&self, method: &str, error: reqwest::Error) -> TransportError {
        let method = method.to_owned();
        if error.is_timeout() {
            return TransportError::Timeout { method, timeout_ms: self.timeout_ms };
        }
        // The innermost cause is the telling one ("connection refused"); URLs may hold secrets.
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        TransportError::Unreachable { method, reason: shorten(cause.to_string()) }
    }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(ERROR_TEXT_LIMIT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;

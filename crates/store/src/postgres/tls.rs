//! TLS towards the server.

use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresUrl;
use crate::StoreError;

/// The option of a URL that says whether TLS is spoken.
const OPTION: &str = "sslmode";

/// What stands under `sslmode` in a URL, and the URL without it.
///
/// `require` and `verify-full` mean the same here: the server's certificate is checked, and the name in it. In libpq `require`
/// checks nothing unless there is a root file, which keeps out whoever listens, and nobody who answers in the server's place.
pub(super) fn mode_of(url: &str) -> Result<(SslMode, String), &'static str> {
    let Some((place, options)) = url.split_once('?') else { return Ok((SslMode::Disable, url.to_owned())) };
    let (mode, rest): (Vec<&str>, Vec<&str>) =
        options.split('&').partition(|option| option.split('=').next() == Some(OPTION));
    let mode = match mode.as_slice() {
        // Opportunistic TLS keeps nobody out, and a server's self-signed certificate would now be refused.
        [] | ["sslmode=disable" | "sslmode=prefer" | "sslmode=allow"] => SslMode::Disable,
        ["sslmode=require" | "sslmode=verify-full"] => SslMode::Require,
        ["sslmode=verify-ca"] => {
            return Err("sslmode=verify-ca would take any server of the authority: use verify-full");
        }
        [_] => return Err("sslmode is one of disable, require and verify-full"),
        _ => return Err("the URL names sslmode twice"),
    };
    let options = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((mode, format!("{place}{options}")))
}

/// What connects to the server: over TLS with what the process trusts and shows, where the URL wants it.
pub(super) fn connector(server: &PostgresUrl) -> Result<MakeRustlsConnect, StoreError> {
    let secure = server.is_secure();
    let config = if secure { blindfold_tls::process().config() } else { blindfold_tls::nothing_trusted() };
    config
        .map(MakeRustlsConnect::new)
        .map_err(|fault| StoreError::Open { store: server.to_string(), reason: fault.to_string() })
}

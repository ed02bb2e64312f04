//! Keeping secrets out of what is printed.

use std::{convert::Infallible, fmt, str::FromStr};

use serde::{Deserialize, Deserializer};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// From this length on a path segment made only of key characters counts as an API key
/// (`https://host/v3/<32 hex digits>` is how L1 providers carry theirs).
const KEY_SEGMENT_MIN_CHARS: usize = 20;

/// A value that prints as `[redacted]` in `Debug` and `Display`. It has no `Serialize`, so it cannot leave by JSON
/// either. It does not wipe itself: keys belong in types that zeroize.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Hides a value from whatever prints.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself; call it only where the secret is used.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Gives the value itself back, which prints again.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<T> for Redacted<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

impl<T> fmt::Display for Redacted<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Redacted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

/// A URL of the configuration; prints through [`redact_url`].
#[derive(Clone, PartialEq, Eq)]
pub struct RedactedUrl(String);

impl RedactedUrl {
    /// Wraps a URL; nothing is checked here, the client that connects does.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL with its secrets; call it only to connect.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for RedactedUrl {
    type Err = Infallible;

    fn from_str(url: &str) -> Result<Self, Infallible> {
        Ok(Self::new(url))
    }
}

impl fmt::Debug for RedactedUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&redact_url(&self.0), formatter)
    }
}

impl fmt::Display for RedactedUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&redact_url(&self.0))
    }
}

impl<'de> Deserialize<'de> for RedactedUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// The URL as it may be logged: credentials before `@`, every query value, the fragment, and path segments that look
/// like API keys become `[redacted]`; scheme, host, port and the rest of the path stay, so that the line is of use.
/// Text that has no `scheme://host` form is not understood and so hidden whole.
///
/// ```
/// # use blindfold_telemetry::redact_url;
/// assert_eq!(redact_url("https://me:pw@l1.example/rpc?apikey=77"), "https://[redacted]@l1.example/rpc?apikey=[redacted]");
/// ```
pub fn redact_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return REDACTED.to_owned();
    };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return REDACTED.to_owned();
    }
    // A backslash ends the authority, too: URL parsers for http and ws treat it as a slash.
    let (authority, rest) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    let (before_fragment, fragment) = match rest.split_once('#') {
        Some((before, _)) => (before, true),
        None => (rest, false),
    };
    let (path, query) = match before_fragment.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (before_fragment, None),
    };

    let mut shown = format!("{scheme}://");
    match authority.rsplit_once('@') {
        Some((_, host)) => {
            shown.push_str(REDACTED);
            shown.push('@');
            shown.push_str(host);
        }
        None => shown.push_str(authority),
    }
    for (position, segment) in path.split('/').enumerate() {
        if position > 0 {
            shown.push('/');
        }
        shown.push_str(if path_segment_is_public(segment) { segment } else { REDACTED });
    }
    if let Some(query) = query {
        shown.push('?');
        for (position, pair) in query.split('&').enumerate() {
            if position > 0 {
                shown.push('&');
            }
            match pair.split_once('=') {
                Some((key, _)) => {
                    shown.push_str(key);
                    shown.push('=');
                    shown.push_str(REDACTED);
                }
                // A bare word may itself be the token.
                None if pair.is_empty() => {}
                None => shown.push_str(REDACTED),
            }
        }
    }
    if fragment {
        shown.push('#');
        shown.push_str(REDACTED);
    }
    shown
}

/// Short segments and ordinary words may be shown; long runs of key characters, and anything with an `@` (credentials
/// of a URL that parsers disagree about), may not.
fn path_segment_is_public(segment: &str) -> bool {
    segment.len() < KEY_SEGMENT_MIN_CHARS && !segment.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn redacted_hides_in_debug_and_display_and_inside_structs() {
        #[derive(Debug)]
        #[allow(dead_code)]
        struct Config {
            password: Redacted<String>,
        }
        let secret = Redacted::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?} {secret}"), "[redacted] [redacted]");
        let config = Config { password: secret.clone() };
        assert_eq!(format!("{config:?}"), "Config { password: [redacted] }");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(secret.into_inner(), "hunter2");
    }

    #[test]
    fn urls() {
        let cases = [
            ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
            ("ws://node:9545/path/x", "ws://node:9545/path/x"),
            ("https://u:p@h:1/", "https://[redacted]@h:1/"),
            ("https://u@p@h/", "https://[redacted]@h/"),
            ("https://h/v3/0123456789abcdef0123456789abcdef", "https://h/v3/[redacted]"),
            ("https://h/rpc?key=s&b", "https://h/rpc?key=[redacted]&[redacted]"),
            ("https://h?key=a/b@c", "https://h?key=[redacted]"),
            ("https://h/p#tok", "https://h/p#[redacted]"),
            ("https://h\\u:p@other/", "https://h[redacted]/"),
            ("postgres://bob:pw@db/blindfold", "postgres://[redacted]@db/blindfold"),
            ("not a url with secret", "[redacted]"),
            ("se cret://h", "[redacted]"),
            ("", "[redacted]"),
        ];
        for (url, shown) in cases {
            assert_eq!(redact_url(url), shown, "{url}");
            assert_eq!(RedactedUrl::new(url).to_string(), shown);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_accepted(text in ".{0,200}") {
            let _ = redact_url(&text);
        }

        #[test]
        fn secrets_never_show(user in "[a-z]{8}", password in "[A-Z0-9:@]{9,30}", token in "[a-zA-Z0-9_]{10,40}", key in "[0-9a-f]{24,64}") {
            let url = format!("https://{user}:{password}@host.example:81/v2/{key}?apikey={token}&{token}#{token}");
            let shown = redact_url(&url);
            prop_assert!(shown.starts_with("https://[redacted]@host.example:81/v2/[redacted]?"));
            for secret in [&password, &token, &key] {
                prop_assert!(!shown.contains(secret.as_str()), "{shown}");
            }
        }
    }
}

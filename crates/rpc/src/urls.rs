//! URLs of servers that stand for one another.

use std::fmt;

use blindfold_telemetry::redact_url;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::limits::MAX_SEQUENCER_URLS;

/// The JSON-RPC of every sequencer of a chain: one leads, the others stand by. Usually there is one.
///
/// In a settings file it is a list; where a setting can only be text (a variable of the environment, `--set`), it is the
/// URLs with commas between them. Printed without secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SequencerUrls(Vec<String>);

/// Why a list of sequencers cannot be used. The operator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequencerUrlsError {
    /// There is none.
    #[error("sequencer_urls: at least one http:// or https:// URL is needed")]
    Empty,
    /// More than anybody runs.
    #[error("sequencer_urls: {given} URLs are more than {MAX_SEQUENCER_URLS}")]
    TooMany {
        /// So many are given.
        given: usize,
    },
    /// Not an `http://` or `https://` URL.
    #[error("sequencer_urls[{place}]: an http:// or https:// URL is needed")]
    Url {
        /// Its place in the list, from 0.
        place: usize,
    },
    /// The server of another entry.
    #[error("sequencer_urls[{place}] leads to the same server as an entry before it")]
    Twice {
        /// Its place in the list, from 0.
        place: usize,
    },
}

impl SequencerUrls {
    /// These URLs, in the order in which they are asked. Nothing is checked here.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(urls.into_iter().map(Into::into).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The URLs with their secrets, in the order in which they are asked.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Checks what can be checked without a connection.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SequencerUrlsError> {
        match self.0.len() {
            0 => return Err(SequencerUrlsError::Empty),
            given if given > MAX_SEQUENCER_URLS => return Err(SequencerUrlsError::TooMany { given }),
            _ => {}
        }
        for (place, url) in self.0.iter().enumerate() {
            let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            if host.is_none_or(|host| host.is_empty() || host.contains(char::is_whitespace)) {
                return Err(SequencerUrlsError::Url { place });
            }
            if self.0.iter().take(place).any(|other| same_server(other, url)) {
                return Err(SequencerUrlsError::Twice { place });
            }
        }
        Ok(())
    }

    /// The WebSocket of each: the same address under `ws://` or `wss://`.
    pub fn feeds(&self) -> Vec<String> {
        self.0.iter().map(|url| url.replacen("http", "ws", 1)).collect()
    }
}

impl fmt::Debug for SequencerUrls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|url| redact_url(url))).finish()
    }
}

impl From<&str> for SequencerUrls {
    fn from(url: &str) -> Self {
        Self::new([url])
    }
}

impl From<String> for SequencerUrls {
    fn from(url: String) -> Self {
        Self::new([url])
    }
}

impl<'de> Deserialize<'de> for SequencerUrls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Urls;

        impl<'de> de::Visitor<'de> for Urls {
            type Value = SequencerUrls;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of URLs")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(SequencerUrls::new(text.split(',').map(str::trim)))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut urls = Vec::new();
                while let Some(url) = list.next_element::<String>()? {
                    urls.push(url);
                }
                Ok(SequencerUrls(urls))
            }
        }

        deserializer.deserialize_any(Urls)
    }
}

/// Whether two URLs are written for the same server: a slash at the end, capitals, `localhost` and a scheme's own port
/// make no other of it.
pub fn same_server(one: &str, other: &str) -> bool {
    comparable(one) == comparable(other)
}

fn comparable(url: &str) -> String {
    let url = url.trim().trim_end_matches('/').to_ascii_lowercase();
    let url = url.replacen("://localhost", "://127.0.0.1", 1).replacen("://[::1]", "://127.0.0.1", 1);
    for (scheme, port) in [("http://", ":80"), ("https://", ":443")] {
        if let Some(host) = url.strip_prefix(scheme).and_then(|rest| rest.strip_suffix(port)) {
            return format!("{scheme}{host}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_text_with_commas_are_the_same() {
        let list: SequencerUrls = serde_json::from_str(r#"["http://a", "https://b:1"]"#).unwrap();
        let text: SequencerUrls = serde_json::from_str(r#""http://a, https://b:1""#).unwrap();
        assert_eq!(list, text);
        assert_eq!(serde_json::to_string(&list).unwrap(), r#"["http://a","https://b:1"]"#);
        assert_eq!(list.feeds(), ["ws://a", "wss://b:1"]);
        assert_eq!(SequencerUrls::from("https://http.example").feeds(), ["wss://http.example"]);
        let wrong = serde_json::from_str::<SequencerUrls>("5").unwrap_err().to_string();
        assert!(wrong.contains("a list of URLs"), "{wrong}");
    }

    #[test]
    fn every_fault_is_named() {
        assert_eq!(SequencerUrls::from("http://a").check(), Ok(()));
        assert_eq!(SequencerUrls::default().check(), Err(SequencerUrlsError::Empty));
        for url in ["", "http://", "ws://a", "http://a b"] {
            let urls = SequencerUrls::new(["http://a", url]);
            assert_eq!(urls.check(), Err(SequencerUrlsError::Url { place: 1 }), "{url}");
        }
        for url in ["http://LOCALHOST:80/", "http://127.0.0.1"] {
            let urls = SequencerUrls::new(["http://127.0.0.1:80", url]);
            assert_eq!(urls.check(), Err(SequencerUrlsError::Twice { place: 1 }), "{url}");
        }
        let many = SequencerUrls::new((0..=MAX_SEQUENCER_URLS).map(|port| format!("http://a:{port}")));
        assert_eq!(many.check(), Err(SequencerUrlsError::TooMany { given: MAX_SEQUENCER_URLS + 1 }));
    }

    #[test]
    fn secrets_are_not_printed() {
        let urls = SequencerUrls::from("http://me:hunter2@a.example/");
        assert!(!format!("{urls:?}").contains("hunter2"));
    }

    #[test]
    fn the_same_server_has_many_urls() {
        assert!(same_server("https://a.example:443/", "HTTPS://A.example"));
        assert!(same_server("http://localhost:9545", "http://127.0.0.1:9545/"));
        assert!(!same_server("http://a", "https://a"));
        assert!(!same_server("http://a:1", "http://a:2"));
    }
}

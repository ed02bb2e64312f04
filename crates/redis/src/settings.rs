//! Settings.

use std::{fs, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{RedisError, RedisUrl};

/// Settings of the Redis server that processes of one deployment share; a table of the configuration file. Unknown keys are
/// refused. Without a URL there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisSettings {
    /// `redis://[user@]host:port/database`, `rediss://…` over TLS, or `unix:///path`.
    pub url: Option<String>,
    /// File whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// How long opening a connection may take.
    pub connect_timeout_ms: u64,
    /// How long a call may take before it is given up and the connection opened anew.
    pub answer_timeout_ms: u64,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self { url: None, password_file: None, connect_timeout_ms: 1_000, answer_timeout_ms: 250 }
    }
}

/// Checked settings: what [`Redis::start`](crate::Redis::start) takes.
#[derive(Clone)]
pub struct RedisOptions {
    pub(crate) url: RedisUrl,
    pub(crate) password: Option<Zeroizing<String>>,
    pub(crate) prefix: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) answer_timeout: Duration,
}

impl RedisSettings {
    /// Checks them and reads the password; `None` without a URL. Names of keys will begin with that of the deployment, so that
    /// several share a server.
    ///
    /// # Errors
    /// What cannot be used, by the name of its setting.
    pub fn options(&self, deployment: &str) -> Result<Option<RedisOptions>, RedisError> {
        let least =
            [("connect_timeout_ms", self.connect_timeout_ms), ("answer_timeout_ms", self.answer_timeout_ms)];
        if let Some((setting, _)) = least.into_iter().find(|(_, value)| *value == 0) {
            return Err(RedisError::TooSmall { setting, least: 1 });
        }
        let Some(url) = &self.url else { return Ok(None) };
        let url = url.parse()?;
        let read = |file: &PathBuf| match fs::read_to_string(file).map(Zeroizing::new) {
            Ok(text) => Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned())),
            Err(error) => Err(RedisError::PasswordFile { file: file.clone(), reason: error.to_string() }),
        };
        Ok(Some(RedisOptions {
            url,
            password: self.password_file.as_ref().map(read).transpose()?,
            prefix: format!("blindfold:{deployment}"),
            connect_timeout: Duration::from_millis(self.connect_timeout_ms),
            answer_timeout: Duration::from_millis(self.answer_timeout_ms),
        }))
    }
}

impl std::fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions")
            .field("url", &self.url)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_url_there_is_none_and_every_fault_is_named() {
        assert!(matches!(RedisSettings::default().options("d"), Ok(None)));
        let with = |url: &str| RedisSettings { url: Some(url.to_owned()), ..RedisSettings::default() };
        let options = with("redis://h").options("d").expect("good settings").expect("a server");
        assert_eq!(options.prefix, "blindfold:d");
        assert!(matches!(with("h").options("d"), Err(RedisError::Url { .. })));
        let missing = RedisSettings { password_file: Some("/nowhere".into()), ..with("redis://h") };
        let fault = missing.options("d").expect_err("no such file").to_string();
        assert!(fault.contains("redis.password_file = /nowhere"), "{fault}");
        let never = RedisSettings { answer_timeout_ms: 0, ..RedisSettings::default() };
        assert_eq!(
            never.options("d").expect_err("no time"),
            RedisError::TooSmall { setting: "answer_timeout_ms", least: 1 }
        );
    }

    #[test]
    fn the_password_is_the_first_line_and_is_not_printed() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "secret\nmore").expect("written");
        let settings = RedisSettings {
            url: Some("redis://h".to_owned()),
            password_file: Some(file.path().to_owned()),
            ..RedisSettings::default()
        };
        let options = settings.options("d").expect("good settings").expect("a server");
        assert_eq!(options.password.as_ref().map(|text| text.as_str()), Some("secret"));
        assert!(!format!("{options:?}").contains("secret"));
    }
}

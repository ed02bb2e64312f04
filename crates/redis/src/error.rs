//! What goes wrong with Redis.

use std::path::PathBuf;

use blindfold_tls::TlsError;

/// Longest part of a server's words that is repeated, in characters.
const MAX_WORDS: usize = 200;

/// Why Redis cannot be used, or a call to it brought nothing.
///
/// Of a call, every one means the same to its caller: go on without Redis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// The operator's fault: not a URL of a server. The URL is not repeated, since a password may stand in it.
    #[error("redis.url: {reason}")]
    Url {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operator's fault: the file with the password cannot be read.
    #[error("redis.password_file = {}: {reason}", file.display())]
    PasswordFile {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The operator's fault: a setting below what works.
    #[error("redis.{setting} must be at least {least}")]
    TooSmall {
        /// Name of the setting.
        setting: &'static str,
        /// The least value that works.
        least: u64,
    },
    /// Nobody is trusted over TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no connection. It is being tried again, and no caller waits for that.
    #[error("Redis is not connected; it is being tried again")]
    Down,
    /// There was no answer in time. The connection is opened anew.
    #[error("Redis did not answer within {within_ms} ms")]
    Slow {
        /// The time that it had.
        within_ms: u64,
    },
    /// The connection could not be opened, or ended before the answer.
    #[error("the connection to Redis failed: {reason}")]
    Lost {
        /// What happened to it.
        reason: String,
    },
    /// The server refused the command: its memory is full, a key holds a value of another type, the user may not.
    #[error("Redis refused: {reason}")]
    Refused {
        /// What the server said, shortened.
        reason: String,
    },
    /// What is stored there is nothing that this program writes.
    #[error("Redis holds something else than expected: {reason}")]
    Unreadable {
        /// What does not fit, shortened.
        reason: String,
    },
}

/// A server's words, fit for a log: short, on one line.
pub(crate) fn words(said: &str) -> String {
    said.chars().take(MAX_WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl RedisError {
    /// Every value of the label `kind`.
    pub(crate) const KINDS: [&str; 5] = ["down", "slow", "lost", "refused", "unreadable"];

    /// That which this is counted under; faults of settings come before anything is counted.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Url { .. } | Self::PasswordFile { .. } | Self::TooSmall { .. } | Self::Down => "down",
            Self::Slow { .. } => "slow",
            Self::Lost { .. } | Self::Tls(_) => "lost",
            Self::Refused { .. } => "refused",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// What a command came to, by the library's words.
    pub(crate) fn of(fault: &redis::RedisError) -> Self {
        let reason = words(&fault.to_string());
        match fault.kind() {
            redis::ErrorKind::UnexpectedReturnType | redis::ErrorKind::Parse => Self::Unreadable { reason },
            redis::ErrorKind::Server(_)
            | redis::ErrorKind::Extension
            | redis::ErrorKind::AuthenticationFailed => Self::Refused { reason },
            _ => Self::Lost { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_does_not_fill_or_break_the_log() {
        let said = words(&format!("a\nb\u{7}{}", "x".repeat(1_000)));
        assert!(said.starts_with("a b x") && said.len() == MAX_WORDS, "{said}");
    }

    #[test]
    fn every_kind_has_a_series() {
        let (file, reason) = (PathBuf::new(), String::new());
        for fault in [
            RedisError::Url { reason: "" },
            RedisError::PasswordFile { file, reason: reason.clone() },
            RedisError::TooSmall { setting: "", least: 0 },
            RedisError::Tls(TlsError::NoRoots { reason: reason.clone() }),
            RedisError::Down,
            RedisError::Slow { within_ms: 1 },
            RedisError::Lost { reason: reason.clone() },
            RedisError::Refused { reason: reason.clone() },
            RedisError::Unreadable { reason },
        ] {
            assert!(RedisError::KINDS.contains(&fault.kind()));
        }
    }
}

//! The process's log subscriber.

use std::{str::FromStr, time::Duration};

use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

use crate::limit::{LINE_WINDOW_SECONDS, LineLimit};

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Text,
    /// One JSON object per event, for log collectors.
    Json,
}

impl FromStr for LogFormat {
    type Err = LoggingError;

    fn from_str(name: &str) -> Result<Self, LoggingError> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(LoggingError::UnknownFormat(other.to_owned())),
        }
    }
}

/// Why logging could not be set up. All of them are faults of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The format is neither `text` nor `json`.
    #[error("unknown log format {0:?}: use text or json")]
    UnknownFormat(String),
    /// The filter does not parse.
    #[error("log filter {filter:?} is not valid: {reason}")]
    InvalidFilter {
        /// The filter as it was given.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A subscriber is installed already; a process has one.
    #[error("logging was already set up in this process")]
    AlreadySet,
}

/// Installs the log subscriber of this process; lines go to standard error, so that standard output stays free for
/// results.
///
/// `filter` has the syntax of `RUST_LOG` (`info`, `blindfold_sequencer=debug,info`). The environment is not read
/// here: the caller resolves flags, environment and file in its own order of precedence.
///
/// One place in the program writes at most [`MAX_LINES_PER_WINDOW`](crate::MAX_LINES_PER_WINDOW) warnings or errors in
/// a [`LINE_WINDOW_SECONDS`](crate::LINE_WINDOW_SECONDS), and [`MAX_INFO_LINES_PER_WINDOW`](crate::MAX_INFO_LINES_PER_WINDOW)
/// lines of `info`; how many were suppressed is told afterwards.
pub fn init_logging(format: LogFormat, filter: &str) -> Result<(), LoggingError> {
    let env_filter = EnvFilter::try_new(filter).map_err(|error| LoggingError::InvalidFilter {
        filter: filter.to_owned(),
        reason: error.to_string(),
    })?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(env_filter).with_writer(std::io::stderr).with_target(true);
    let limit = LineLimit::new(Duration::from_secs(LINE_WINDOW_SECONDS));
    let installed = match format {
        LogFormat::Text => builder.finish().with(limit).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).finish().with(limit).try_init(),
    };
    installed.map_err(|_| LoggingError::AlreadySet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names() {
        assert_eq!("text".parse::<LogFormat>().ok(), Some(LogFormat::Text));
        assert_eq!("json".parse::<LogFormat>().ok(), Some(LogFormat::Json));
        assert!(
            matches!("JSON".parse::<LogFormat>(), Err(LoggingError::UnknownFormat(name)) if name == "JSON")
        );
    }

    // One test, because the subscriber is global to the process.
    #[test]
    fn bad_filter_then_first_then_second() {
        let refused = init_logging(LogFormat::Text, "blindfold=loud");
        assert!(
            matches!(refused, Err(LoggingError::InvalidFilter { filter, .. }) if filter == "blindfold=loud")
        );
        assert!(init_logging(LogFormat::Json, "warn,blindfold_telemetry=info").is_ok());
        tracing::info!(answer = 42, "logging works");
        assert!(matches!(init_logging(LogFormat::Text, "info"), Err(LoggingError::AlreadySet)));
    }
}

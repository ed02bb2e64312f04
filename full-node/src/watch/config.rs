//! Settings of watching L1.

use serde::{Deserialize, Serialize};

/// How and how often L1 is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchConfig {
    /// Pause between two looks at L1, in milliseconds.
    pub interval_ms: u64,
    /// Longest pause after trouble with L1, in milliseconds; it begins at `interval_ms` and doubles.
    pub max_retry_ms: u64,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self { interval_ms: 12_000, max_retry_ms: 60_000 }
    }
}

/// The longest pause that can be set, in milliseconds: an hour, a fraction of every window.
const MAX_MS: u64 = 3_600_000;

/// A setting that no node can run with. The fault of whoever wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("watch.{key} is {value}, allowed are {min} to {max}")]
pub struct WatchConfigError {
    /// Name of the setting.
    pub key: &'static str,
    /// The value that it has.
    pub value: u64,
    /// The least value that works.
    pub min: u64,
    /// The greatest value that works.
    pub max: u64,
}

impl WatchConfig {
    /// Checks what can be checked without opening anything.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn validate(&self) -> Result<(), WatchConfigError> {
        let keys =
            [("interval_ms", self.interval_ms, 1), ("max_retry_ms", self.max_retry_ms, self.interval_ms)];
        match keys.into_iter().find(|(_, value, min)| !(*min..=MAX_MS).contains(value)) {
            Some((key, value, min)) => Err(WatchConfigError { key, value, min, max: MAX_MS }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_usable_and_a_fault_is_named() {
        let good = WatchConfig::default();
        assert_eq!(good.validate(), Ok(()));
        let named = |config: WatchConfig| config.validate().map_err(|fault| fault.key);
        assert_eq!(named(WatchConfig { interval_ms: 0, ..good.clone() }), Err("interval_ms"));
        assert_eq!(named(WatchConfig { max_retry_ms: 11_999, ..good }), Err("max_retry_ms"));
    }
}

//! Settings of posting hints to L1.

use serde::{Deserialize, Serialize};

/// How hints are posted to L1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct L1PostingConfig {
    /// Up to what the bond is filled at the start, in wei; 0 leaves it as it is. One bond of
    /// `HintRegistry.publisherBond` answers for all postings, however many are open.
    pub bond_wei: u128,
    /// Pause between two looks at L1, in milliseconds.
    pub interval_ms: u64,
    /// How long a final run is left to other hint publishers before this one posts its hints, in milliseconds; 0 for the
    /// first hint publisher.
    pub takeover_ms: u64,
    /// First pause after trouble with L1 or the sequencer, in milliseconds; it doubles up to `max_retry_ms`.
    pub retry_ms: u64,
    /// Longest pause after trouble, in milliseconds.
    pub max_retry_ms: u64,
}

impl Default for L1PostingConfig {
    fn default() -> Self {
        Self { bond_wei: 0, interval_ms: 12_000, takeover_ms: 0, retry_ms: 1_000, max_retry_ms: 60_000 }
    }
}

/// The longest time that can be set, in milliseconds: a day.
const MAX_MS: u64 = 86_400_000;

/// A setting that cannot be used. The operator's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum L1PostingConfigError {
    /// A time out of its bounds.
    #[error("l1_posting.{setting} is {value}, allowed are {least} to {most}")]
    Range {
        /// Name of the setting.
        setting: &'static str,
        /// The value that it has.
        value: u64,
        /// The least value that works.
        least: u64,
        /// The greatest value that works.
        most: u64,
    },
}

impl L1PostingConfig {
    /// Checks everything that can be checked by itself.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), L1PostingConfigError> {
        let times = [
            ("interval_ms", self.interval_ms, 1),
            ("takeover_ms", self.takeover_ms, 0),
            ("retry_ms", self.retry_ms, 1),
            ("max_retry_ms", self.max_retry_ms, self.retry_ms),
        ];
        match times.into_iter().find(|(_, value, least)| !(*least..=MAX_MS).contains(value)) {
            Some((setting, value, least)) => {
                Err(L1PostingConfigError::Range { setting, value, least, most: MAX_MS })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_usable_and_a_fault_is_named() {
        assert_eq!(L1PostingConfig::default().check(), Ok(()));
        let named = |config: L1PostingConfig| match config.check() {
            Err(L1PostingConfigError::Range { setting, .. }) => setting,
            Ok(()) => "nothing",
        };
        let good = L1PostingConfig::default();
        assert_eq!(named(L1PostingConfig { interval_ms: 0, ..good.clone() }), "interval_ms");
        assert_eq!(named(L1PostingConfig { takeover_ms: MAX_MS + 1, ..good.clone() }), "takeover_ms");
        assert_eq!(named(L1PostingConfig { retry_ms: 0, ..good.clone() }), "retry_ms");
        assert_eq!(named(L1PostingConfig { max_retry_ms: 999, ..good }), "max_retry_ms");
    }
}

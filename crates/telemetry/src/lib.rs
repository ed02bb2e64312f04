//! What every role reports about itself: logs, metrics, and the rule that secrets never reach either.
//!
//! - [`init_logging`] installs the one log subscriber of the process (text or JSON lines on standard error).
//! - [`Metrics`] is a role's registry; every name starts with `blindfold_` and every series exists, at zero, from
//!   registration on.
//! - [`traces`] follows single envelopes through all roles, where the process has somebody to tell.
//! - [`Redacted`] and [`redact_url`] keep plaintexts, keys and credentials out of whatever is printed.

mod limit;
mod logging;
mod metrics;
mod redact;
pub mod traces;

pub use limit::{LINE_WINDOW_SECONDS, MAX_INFO_LINES_PER_WINDOW, MAX_LINES_PER_WINDOW};
pub use logging::{LogFormat, LoggingError, init_logging};
pub use metrics::{
    BYTES_BUCKETS, Counter, CounterSet, Gauge, GaugeSet, Histogram, HistogramSet, MAX_SERIES_PER_METRIC,
    Metrics, MetricsError, OTHER_LABEL, PREFIX, SECONDS_BUCKETS,
};
pub use redact::{REDACTED, Redacted, RedactedUrl, redact_url};

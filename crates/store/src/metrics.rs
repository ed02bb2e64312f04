//! What a store is counted by.

use std::sync::{Arc, OnceLock};

use blindfold_telemetry::{Counter, Gauge, Histogram, Metrics, MetricsError};

/// From a disk with a battery to a replica across an ocean.
const COMMIT_SECONDS: &[f64] = &[0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const GROUP_ITEMS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Metrics of a role's records, the same for every role that keeps any.
#[derive(Clone)]
pub struct StoreMetrics {
    pub(crate) commit_seconds: Histogram,
    pub(crate) group_writes: Histogram,
    pub(crate) queue: Gauge,
    pub(crate) log_bytes: Gauge,
    pub(crate) failed: Counter,
    pub(crate) followers: Gauge,
    pub(crate) replication_lag_ms: Gauge,
}

impl StoreMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When a name is taken.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        Ok(Self {
            commit_seconds: metrics.histogram(
                "store_commit_seconds",
                "A transaction of writes, from its begin until it is durable",
                COMMIT_SECONDS,
            )?,
            group_writes: metrics.histogram(
                "store_commit_writes",
                "Writes that shared a transaction",
                GROUP_ITEMS,
            )?,
            queue: metrics.gauge("store_queue_writes", "Writes that wait for the writer")?,
            log_bytes: metrics
                .gauge("store_log_bytes", "Length of SQLite's write-ahead log; 0 for a database elsewhere")?,
            failed: metrics
                .counter("store_commits_failed_total", "Transactions of writes that were undone")?,
            followers: metrics.gauge(
                "store_followers",
                "Database servers that follow the one that takes writes; 0 for SQLite",
            )?,
            replication_lag_ms: metrics.gauge(
                "store_replication_lag_ms",
                "How far the last of them is behind with showing what is committed",
            )?,
        })
    }
}

/// Where the writer counts, once a role has said where.
#[derive(Clone, Default)]
pub(crate) struct Counting(Arc<OnceLock<StoreMetrics>>);

impl std::fmt::Debug for Counting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counting")
    }
}

impl Counting {
    /// Counts there from now on. The first one stays: a role that begins anew has the same process.
    pub(crate) fn begin(&self, metrics: StoreMetrics) {
        // Whoever came first is counted by.
        drop(self.0.set(metrics));
    }

    pub(crate) fn get(&self) -> Option<&StoreMetrics> {
        self.0.get()
    }
}

//! What an archive counts. Every series exists from the start, at zero.

use axum::http::StatusCode;
use blindfold_telemetry::{Counter, CounterSet, Gauge, Metrics, MetricsError};

/// What became of a question for data.
const READS: &[&str] = &["given", "absent", "refused", "failed"];
/// What became of data that came.
const WRITES: &[&str] = &["kept", "no_token", "refused", "full", "failed"];

/// The metrics of an archive, under the prefix `blindfold_archive_`.
#[derive(Clone)]
pub(super) struct ArchiveMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    reads: CounterSet,
    read_bytes: Counter,
    writes: CounterSet,
    /// Bytes of all data.
    pub used: Gauge,
    /// So many at most.
    pub limit: Gauge,
}

impl ArchiveMetrics {
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Metrics::new("archive", env!("CARGO_PKG_VERSION"))?;
        Ok(Self {
            reads: registry.counters(
                "archive_reads_total",
                "Questions for data, by what became of them",
                &[("outcome", READS)],
            )?,
            read_bytes: registry.counter("archive_read_bytes_total", "Bytes of data that were given")?,
            writes: registry.counters(
                "archive_writes_total",
                "Pieces of data that came, by what became of them",
                &[("outcome", WRITES)],
            )?,
            used: registry.gauge("archive_used_bytes", "Bytes of all data")?,
            limit: registry.gauge("archive_max_bytes", "Bytes of data at most")?,
            registry,
        })
    }

    /// A question was answered so, with so many bytes of data.
    pub fn read(&self, code: StatusCode, bytes: usize) {
        let outcome = match code {
            StatusCode::OK => "given",
            StatusCode::NOT_FOUND => "absent",
            code if code.is_client_error() => "refused",
            _ => "failed",
        };
        self.reads.get(&[outcome]).increment();
        self.read_bytes.add(bytes as u64);
    }

    /// Data that came was answered so.
    pub fn written(&self, code: StatusCode) {
        let outcome = match code {
            StatusCode::OK => "kept",
            StatusCode::UNAUTHORIZED => "no_token",
            StatusCode::INSUFFICIENT_STORAGE => "full",
            code if code.is_client_error() => "refused",
            _ => "failed",
        };
        self.writes.get(&[outcome]).increment();
    }
}

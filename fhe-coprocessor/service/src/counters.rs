//! What the coprocessor counts: shown by `/metrics` and by `counters` of `confidential_getStatus`.

use std::collections::BTreeMap;

use blindfold_bte::Check;
use blindfold_telemetry::{Counter, CounterSet, Gauge, Metrics, MetricsError};

/// The coprocessor's counts since the start of the process.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Headers checked completely and taken.
    pub headers_verified: Counter,
    /// Headers, certificates and hints that were refused.
    pub rejected: Counter,
    /// Hint entries verified against their ciphertexts.
    pub hints_verified: Counter,
    /// Batches that were executed.
    pub batches_executed: Counter,
    /// Confidential transactions that were applied.
    pub transactions_applied: Counter,
    /// Confidential transactions that were refused.
    pub transactions_refused: Counter,
    /// Totals of invoices that were computed.
    pub invoices_computed: Counter,
    /// Attempts that failed and were repeated.
    pub retries: Counter,
    /// Refusals by the fast backend that the portable one overruled, by what was checked.
    pub overruled: CounterSet,
    /// Number of the newest certified batch.
    pub certified: Gauge,
    /// Number of the newest executed batch.
    pub batch: Gauge,
    /// Confidential transactions applied up to now.
    pub version: Gauge,
    /// How many confidential accounts there are.
    pub accounts: Gauge,
}

impl Counters {
    /// Registers all of them, at zero.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        let counter = |name: &str, help: &str| metrics.counter(&format!("coprocessor_{name}_total"), help);
        let gauge = |name: &str, help: &str| metrics.gauge(&format!("coprocessor_{name}"), help);
        Ok(Self {
            headers_verified: counter("headers_verified", "Headers checked completely and taken")?,
            rejected: counter("rejected", "Headers, certificates and hints that were refused")?,
            hints_verified: counter("hints_verified", "Hint entries verified against their ciphertexts")?,
            batches_executed: counter("batches_executed", "Batches executed")?,
            transactions_applied: counter("transactions_applied", "Confidential transactions applied")?,
            transactions_refused: counter("transactions_refused", "Confidential transactions refused")?,
            invoices_computed: counter("invoices_computed", "Totals of invoices computed")?,
            retries: counter("retries", "Attempts that failed and were repeated")?,
            overruled: metrics.counters(
                "coprocessor_overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            certified: gauge("certified_batch", "Newest certified batch")?,
            batch: gauge("executed_batch", "Newest executed batch")?,
            version: gauge("version", "Confidential transactions applied up to now")?,
            accounts: gauge("accounts", "Confidential accounts")?,
        })
    }

    /// All counts by stable name.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let named = [
            ("headers_verified", &self.headers_verified),
            ("rejected", &self.rejected),
            ("hints_verified", &self.hints_verified),
            ("batches_executed", &self.batches_executed),
            ("transactions_applied", &self.transactions_applied),
            ("transactions_refused", &self.transactions_refused),
            ("invoices_computed", &self.invoices_computed),
            ("retries", &self.retries),
        ];
        named.into_iter().map(|(name, counter)| (name.to_owned(), counter.get())).collect()
    }
}

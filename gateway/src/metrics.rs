//! What relays and gateways count. Every series exists from the start, at zero.

use blindfold_bte::{BACKEND_NAMES, Check, accelerator::Operation};
use blindfold_redis::RedisMetrics;
use blindfold_telemetry::{
    Counter, CounterSet, Gauge, GaugeSet, Histogram, Metrics, MetricsError, SECONDS_BUCKETS,
};

use crate::admission::REFUSAL_REASONS;

/// Buckets for counts of envelopes.
const ITEMS_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The metrics of a relay, under the prefix `blindfold_relay_`, and of a gateway besides, under `blindfold_gateway_`.
#[derive(Clone)]
pub struct GatewayMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    pub(crate) head: Gauge,
    pub(crate) certified: Gauge,
    pub(crate) window_batches: Gauge,
    pub(crate) refused: Counter,
    pub(crate) relayed: CounterSet,
    pub(crate) source_failures: Counter,
    pub(crate) reads: Counter,
    pub(crate) backend_threads: GaugeSet,
    pub(crate) device_failures: CounterSet,
    pub(crate) overruled: CounterSet,
    pub(crate) envelopes_forwarded: Counter,
    pub(crate) envelopes_refused: CounterSet,
    pub(crate) envelopes_waiting: Gauge,
    pub(crate) forwarded_items: Histogram,
    pub(crate) forward_failures: Counter,
    pub(crate) admission_seconds: Histogram,
    pub(crate) shared_limits_failures: Counter,
    pub(crate) redis: RedisMetrics,
}

/// The topics, as labels.
pub(crate) const TOPICS: &[&str] = &["headers", "certificates", "releases", "hints", "blocks"];

impl GatewayMetrics {
    /// Registers all of them, for a role of this name.
    ///
    /// # Errors
    /// A mistake in this list, found by the first test that starts one.
    pub fn new(role: &str) -> Result<Self, MetricsError> {
        let m = Metrics::new(role, env!("CARGO_PKG_VERSION"))?;
        Ok(Self {
            head: m.gauge("relay_head_number", "Number of the newest verified header")?,
            certified: m.gauge("relay_certified_number", "Newest number that is known to be certified")?,
            window_batches: m.gauge("relay_window_batches", "Batches that are kept")?,
            refused: m.counter(
                "relay_refused_total",
                "What the source said and was not so",
            )?,
            relayed: m.counters(
                "relay_notifications_total",
                "Verified notifications handed on, by topic",
                &[("topic", TOPICS)],
            )?,
            source_failures: m.counter("relay_source_failures_total", "Looks at the source that came to nothing")?,
            reads: m.counter("relay_reads_total", "Reads that were asked of this relay")?,
            backend_threads: m.gauges(
                "relay_backend_threads",
                "Threads of the backend in use; 0 for the others",
                &[("backend", BACKEND_NAMES)],
            )?,
            device_failures: m.counters(
                "relay_device_failures_total",
                "Operations that a device failed at and the processor did",
                &[("operation", Operation::NAMES)],
            )?,
            overruled: m.counters(
                "relay_overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            envelopes_forwarded: m.counter(
                "gateway_envelopes_forwarded_total",
                "Envelopes that a sequencer took from this gateway",
            )?,
            envelopes_refused: m.counters(
                "gateway_envelopes_refused_total",
                "Envelopes that this gateway refused itself, by reason; `by_sequencer`: that the sequencer refused",
                &[("reason", REFUSAL_REASONS)],
            )?,
            envelopes_waiting: m.gauge("gateway_envelopes_waiting", "Envelopes that wait for an answer of the sequencer")?,
            forwarded_items: m.histogram(
                "gateway_forwarded_items",
                "Envelopes in one call to the sequencer",
                ITEMS_BUCKETS,
            )?,
            forward_failures: m.counter(
                "gateway_forward_failures_total",
                "Calls with envelopes that no sequencer answered as the one that leads; they are made again",
            )?,
            admission_seconds: m.histogram(
                "gateway_admission_seconds",
                "From request to answer of an envelope that was taken",
                SECONDS_BUCKETS,
            )?,
            shared_limits_failures: m.counter(
                "gateway_shared_limits_failures_total",
                "Envelopes that were counted by this gateway alone, because Redis did not answer",
            )?,
            redis: RedisMetrics::new(&m)?,
            registry: m,
        })
    }
}

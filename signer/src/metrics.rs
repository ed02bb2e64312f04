//! What the signer counts. Every series exists from the start, at zero.

use blindfold_telemetry::{CounterSet, Gauge, Histogram, Metrics, MetricsError, SECONDS_BUCKETS};

use crate::refusal::SIGNING_REASONS;

/// What is signed.
pub(crate) const HEADER: &str = "header";
/// See [`HEADER`].
pub(crate) const PROMISE: &str = "promise";
/// See [`HEADER`].
pub(crate) const HELLO: &str = "hello";

/// The metrics of a signer, under the prefix `blindfold_signer_`.
#[derive(Clone)]
pub struct SignerMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    pub(crate) signed: CounterSet,
    pub(crate) refusals: CounterSet,
    pub(crate) number: Gauge,
    pub(crate) term: Gauge,
    pub(crate) header_seconds: Histogram,
}

impl SignerMetrics {
    /// Registers all of them.
    ///
    /// # Errors
    /// A mistake in this list, found by the first test that starts a signer.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Metrics::new("signer", env!("CARGO_PKG_VERSION"))?;
        Ok(Self {
            signed: registry.counters(
                "signer_signed_total",
                "Signatures given, those given again included",
                &[("what", &[HEADER, PROMISE, HELLO])],
            )?,
            refusals: registry.counters(
                "signer_refusals_total",
                "Requests for a signature that were refused, by reason",
                &[("reason", SIGNING_REASONS)],
            )?,
            number: registry.gauge("signer_number", "Newest number that a header was signed for")?,
            term: registry.gauge("signer_term", "Highest term that a request came with")?,
            header_seconds: registry.histogram(
                "signer_header_seconds",
                "Time to make a header's number durable and sign it",
                SECONDS_BUCKETS,
            )?,
            registry,
        })
    }
}

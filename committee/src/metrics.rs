//! What a member counts. Every series exists from the start, at zero.

use blindfold_bte::Check;
use blindfold_telemetry::{Counter, CounterSet, Gauge, Histogram, Metrics, MetricsError, SECONDS_BUCKETS};

/// Reasons under which a header is refused or waits, as they appear in `blindfold_committee_refusals_total`; one that
/// is not listed counts as `other`.
const REFUSAL_REASONS: &[&str] = &[
    "abstains",
    "already_acknowledged",
    "bad_signature",
    "clock_ahead",
    "inputs",
    "item_too_long",
    "l1_unavailable",
    "no_epoch",
    "not_a_member",
    "origin_back",
    "origin_before_l1_header",
    "origin_not_final",
    "origin_stale",
    "origin_too_old",
    "second_bytes",
    "second_gas",
    "second_header",
    "storage",
    "time_before_origin",
    "time_not_after_parent",
    "too_many_items",
    "too_many_uncertified",
    "undecodable",
    "wrong_base_fee",
    "wrong_bytes",
    "wrong_count",
    "wrong_data_hash",
    "wrong_envelope_root",
    "wrong_epoch",
    "wrong_fee_ledger_root",
    "wrong_forced_cursor",
    "wrong_gas",
    "wrong_gas_base_fee",
    "wrong_number",
    "wrong_origin_time",
    "wrong_parent",
    "wrong_rules",
    "wrong_signer",
];

const SHARE_OUTCOMES: &[&str] = &["given", "refused", "busy"];

/// The metrics of a member, under the prefix `blindfold_committee_`.
#[derive(Clone)]
pub struct MemberMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    pub(crate) acknowledged: Gauge,
    pub(crate) certified: Gauge,
    pub(crate) acknowledgements: Counter,
    pub(crate) acknowledgement_failures: Counter,
    pub(crate) refusals: CounterSet,
    pub(crate) second_headers: Counter,
    pub(crate) bad_certificates: Counter,
    pub(crate) followed_other_certificate: Counter,
    pub(crate) runs_posted: Counter,
    pub(crate) posting_failures: Counter,
    pub(crate) shares: CounterSet,
    pub(crate) singletons: CounterSet,
    pub(crate) attestations: CounterSet,
    pub(crate) check_seconds: Histogram,
    pub(crate) share_seconds: Histogram,
    pub(crate) overruled: CounterSet,
}

impl MemberMetrics {
    /// Registers all of them.
    ///
    /// # Errors
    /// A mistake in this list, found by the first test that starts a member.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Metrics::new("committee", env!("CARGO_PKG_VERSION"))?;
        let counter = |name: &str, help| registry.counter(&format!("committee_{name}"), help);
        Ok(Self {
            acknowledged: registry.gauge("committee_acknowledged_number", "Newest number acknowledged")?,
            certified: registry.gauge("committee_certified_number", "Newest certified number held")?,
            acknowledgements: counter("acknowledgements_total", "Headers acknowledged")?,
            acknowledgement_failures: counter(
                "acknowledgement_failures_total",
                "Acknowledgements that the sequencer did not take",
            )?,
            refusals: registry.counters(
                "committee_refusals_total",
                "Headers refused, for now or for good, by reason",
                &[("reason", REFUSAL_REASONS)],
            )?,
            second_headers: counter("second_headers_refused_total", "Second headers for a number, refused")?,
            bad_certificates: counter("bad_certificates_total", "Certificates that did not verify")?,
            followed_other_certificate: counter(
                "followed_other_certificate_total",
                "Certificates for another header than the acknowledged one",
            )?,
            runs_posted: counter(
                "runs_posted_total",
                "Runs of certified headers that the sequencer kept from L1, posted by this member",
            )?,
            posting_failures: counter(
                "posting_failures_total",
                "Looks at L1, and postings of such headers, that failed",
            )?,
            shares: registry.counters(
                "committee_shares_total",
                "Calls for shares",
                &[("outcome", SHARE_OUTCOMES)],
            )?,
            singletons: registry.counters(
                "committee_singletons_total",
                "Calls for singleton shares",
                &[("outcome", SHARE_OUTCOMES)],
            )?,
            attestations: registry.counters(
                "committee_attestations_total",
                "Calls to read data before the sequencer posts them",
                &[("outcome", SHARE_OUTCOMES)],
            )?,
            check_seconds: registry.histogram(
                "committee_check_seconds",
                "Time to check a header and make it durable",
                SECONDS_BUCKETS,
            )?,
            share_seconds: registry.histogram(
                "committee_share_seconds",
                "Time to compute the shares of a batch",
                SECONDS_BUCKETS,
            )?,
            overruled: registry.counters(
                "committee_overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            registry,
        })
    }
}

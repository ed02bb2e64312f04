//! What the hint publisher counts. Every series exists from the start, at zero.

use blindfold_bte::accelerator::Operation;
use blindfold_bte::{BACKEND_NAMES, Check};
use blindfold_redis::RedisMetrics;
use blindfold_telemetry::{
    Counter, CounterSet, Gauge, GaugeSet, Histogram, Metrics, MetricsError, SECONDS_BUCKETS,
};

/// The members' label values: as many as a committee can have.
const MEMBERS: [&str; 64] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36",
    "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53",
    "54", "55", "56", "57", "58", "59", "60", "61", "62", "63", "64",
];

/// The metrics of the hint publisher, under the prefix `blindfold_hint_publisher_`.
#[derive(Clone)]
pub struct HintPublisherMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    pub(crate) faulty_members: CounterSet,
    pub(crate) member_failures: CounterSet,
    pub(crate) batches: Counter,
    pub(crate) hints: Counter,
    pub(crate) malformed: Counter,
    pub(crate) failures: Counter,
    pub(crate) bad_certificates: Counter,
    pub(crate) backend_threads: GaugeSet,
    pub(crate) device_failures: CounterSet,
    pub(crate) overruled: CounterSet,
    pub(crate) in_work: Gauge,
    pub(crate) backlog: Gauge,
    pub(crate) predecrypt_seconds: Histogram,
    pub(crate) finalize_seconds: Histogram,
    pub(crate) decrypt_seconds: Histogram,
    pub(crate) certificate_to_hints_seconds: Histogram,
    pub(crate) share: ShareMetrics,
    pub(crate) redis: RedisMetrics,
    pub(crate) l1_postings: Counter,
    pub(crate) l1_finalized: Counter,
    pub(crate) l1_slashed: Counter,
    pub(crate) l1_failures: Counter,
    pub(crate) l1_refused_batches: Counter,
    pub(crate) l1_waiting_runs: Gauge,
    pub(crate) l1_oldest_waiting_blocks: Gauge,
    pub(crate) l1_looked: Gauge,
    pub(crate) l1_open_postings: Gauge,
    pub(crate) l1_bond_covers: Gauge,
}

/// What is counted of batches that are shared with other hint publishers.
#[derive(Clone)]
pub(crate) struct ShareMetrics {
    pub(crate) claimed: Counter,
    pub(crate) taken_over: Counter,
    pub(crate) lost: Counter,
    pub(crate) used: Counter,
    pub(crate) refused: Counter,
    pub(crate) gave_up: Counter,
    pub(crate) alone: Counter,
}

impl HintPublisherMetrics {
    /// Registers all of them.
    ///
    /// # Errors
    /// A mistake in this list, found by the first test that starts a hint publisher.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Metrics::new("hint_publisher", env!("CARGO_PKG_VERSION"))?;
        let counter = |name: &str, help| registry.counter(&format!("hint_publisher_{name}"), help);
        let histogram =
            |name: &str, help| registry.histogram(&format!("hint_publisher_{name}"), help, SECONDS_BUCKETS);
        let members: &[(&'static str, &[&'static str])] = &[("member", &MEMBERS)];
        Ok(Self {
            faulty_members: registry.counters(
                "hint_publisher_faulty_members_total",
                "Batches for which a member gave a wrong share",
                members,
            )?,
            member_failures: registry.counters(
                "hint_publisher_member_failures_total",
                "Calls to a member that brought no share",
                members,
            )?,
            batches: counter("batches_published_total", "Batches whose hints the sequencer took")?,
            hints: counter("hints_published_total", "Session keys published")?,
            malformed: counter("malformed_total", "Envelopes published as malformed")?,
            failures: counter("batch_failures_total", "Attempts at a batch that failed and are made again")?,
            bad_certificates: counter("bad_certificates_total", "Certificates that did not verify")?,
            backend_threads: registry.gauges(
                "hint_publisher_backend_threads",
                "Threads of the backend in use; 0 for the others",
                &[("backend", BACKEND_NAMES)],
            )?,
            device_failures: registry.counters(
                "hint_publisher_device_failures_total",
                "Operations that a device failed at and the processor did",
                &[("operation", Operation::NAMES)],
            )?,
            overruled: registry.counters(
                "hint_publisher_overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            in_work: registry.gauge("hint_publisher_batches_in_work", "Batches being worked on")?,
            backlog: registry
                .gauge("hint_publisher_backlog_batches", "Certified batches waiting to be worked on")?,
            predecrypt_seconds: histogram("predecrypt_seconds", "Time to pre-decrypt a batch")?,
            finalize_seconds: histogram(
                "finalize_seconds",
                "Time to combine shares and open a pre-decrypted batch",
            )?,
            decrypt_seconds: histogram(
                "decrypt_seconds",
                "Time to combine shares and open a batch that was not pre-decrypted",
            )?,
            certificate_to_hints_seconds: histogram(
                "certificate_to_hints_seconds",
                "Time from a batch's certificate to its published hints",
            )?,
            share: ShareMetrics {
                claimed: counter("jobs_claimed_total", "Parts of batches that were claimed first")?,
                taken_over: counter(
                    "jobs_taken_over_total",
                    "Parts that were claimed after another hint publisher that had been silent",
                )?,
                lost: counter(
                    "jobs_lost_total",
                    "Parts that another hint publisher took over from this one",
                )?,
                used: counter("shared_parts_used_total", "Parts by others that were checked and published")?,
                refused: counter("shared_parts_refused_total", "Parts by others that did not stand")?,
                gave_up: counter(
                    "shared_waits_given_up_total",
                    "Batches in which others were waited for in vain; the rest was done here",
                )?,
                alone: counter(
                    "shared_batches_alone_total",
                    "Batches that were done alone for want of Redis, or after others were no help",
                )?,
            },
            redis: RedisMetrics::new(&registry)?,
            l1_postings: counter("l1_postings_total", "Runs whose hints were posted to L1")?,
            l1_finalized: counter("l1_finalized_total", "Postings that were made final on L1")?,
            l1_slashed: counter("l1_slashed_total", "Postings of ours that were slashed on L1")?,
            l1_failures: counter("l1_failures_total", "Looks at L1 and transactions that failed")?,
            l1_refused_batches: counter(
                "l1_refused_batches_total",
                "Runs of which a batch from the sequencer did not stand",
            )?,
            l1_waiting_runs: registry
                .gauge("hint_publisher_l1_waiting_runs", "Final runs without the right hints on L1")?,
            l1_oldest_waiting_blocks: registry.gauge(
                "hint_publisher_l1_oldest_waiting_blocks",
                "L1 blocks since the run was posted that waits for hints longest; 0 for none",
            )?,
            l1_looked: registry.gauge(
                "hint_publisher_l1_looked_timestamp_seconds",
                "When that was looked at last, in Unix seconds",
            )?,
            l1_open_postings: registry
                .gauge("hint_publisher_l1_open_postings", "Postings of ours that are not final")?,
            l1_bond_covers: registry.gauge(
                "hint_publisher_l1_bond_covers",
                "1 when the bond in HintRegistry suffices for postings",
            )?,
            registry,
        })
    }
}

/// The label value of a member.
pub(crate) fn member_label(member: u16) -> &'static str {
    usize::from(member).checked_sub(1).and_then(|index| MEMBERS.get(index)).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_its_label() {
        for member in 1..=64u16 {
            assert_eq!(member_label(member), member.to_string());
        }
        assert_eq!((member_label(0), member_label(65)), ("other", "other"));
    }
}

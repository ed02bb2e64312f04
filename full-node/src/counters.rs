//! What a full node counts: shown by `/metrics` and by `counters` of `blind_getStatus`.

use std::collections::BTreeMap;

use blindfold_bte::accelerator::Operation;
use blindfold_bte::{BACKEND_NAMES, Check};
use blindfold_telemetry::{Counter, CounterSet, Gauge, GaugeSet, Metrics, MetricsError};

/// Reasons for which hints are refused, as they are labelled.
const HINT_REASONS: &[&str] = &[
    "undecodable",
    "unknown_batch",
    "no_parameters",
    "other_header",
    "wrong_count",
    "wrong_sub_batches",
    "not_skipped",
    "hint_for_skipped",
    "wrong_key",
    "wrong_singleton",
    "wrong_blinding",
    "false_malformed",
];

/// Reasons for which certificates are refused.
const CERTIFICATE_REASONS: &[&str] = &[
    "undecodable",
    "wrong_epoch",
    "wrong_number",
    "too_few_signers",
    "unknown_signers",
    "bad_point",
    "bad_signature",
    "certificate_mismatch",
    "conflicting_certificates",
];

/// Reasons for which headers are refused.
const HEADER_REASONS: &[&str] = &[
    "undecodable",
    "second_header",
    "bad_signature",
    "wrong_signer",
    "wrong_number",
    "wrong_parent",
    "origin_not_final",
    "wrong_epoch",
    "time_not_after_parent",
    "time_before_origin",
    "origin_back",
    "origin_too_old",
    "origin_before_l1_header",
    "too_many_items",
    "item_too_long",
    "second_gas",
    "second_bytes",
    "wrong_count",
    "wrong_bytes",
    "wrong_gas",
    "wrong_base_fee",
    "wrong_gas_base_fee",
    "wrong_data_hash",
    "wrong_origin_time",
    "wrong_rules",
    "wrong_envelope_root",
    "wrong_fee_ledger_root",
    "wrong_forced_cursor",
];

/// Members have indices 1 to 64.
const MEMBERS: &[&str] = &[
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36",
    "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53",
    "54", "55", "56", "57", "58", "59", "60", "61", "62", "63", "64",
];

/// A count with a total and a reason for each.
#[derive(Clone, Debug)]
pub struct ByReason {
    total: Counter,
    reasons: CounterSet,
}

impl ByReason {
    fn new(
        metrics: &Metrics,
        name: &str,
        help: &str,
        label: &'static str,
        values: &'static [&'static str],
    ) -> Result<Self, MetricsError> {
        let total =
            metrics.counter(&format!("full_node_{name}_all_total"), &format!("{help}, all together"))?;
        let reasons = metrics.counters(&format!("full_node_{name}_total"), help, &[(label, values)])?;
        Ok(Self { total, reasons })
    }

    /// Counts one more under this reason.
    pub fn add(&self, reason: &str) {
        self.total.increment();
        self.reasons.get(&[reason]).increment();
    }

    /// The sum over all reasons.
    pub fn get(&self) -> u64 {
        self.total.get()
    }
}

/// A full node's counts since the start of the process.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Headers checked completely and taken.
    pub headers_verified: Counter,
    /// Headers that were refused, by reason.
    pub headers_rejected: ByReason,
    /// Second headers for a number, signed by the sequencer, that were refused.
    pub second_headers_refused: Counter,
    /// Certificates that were verified and taken.
    pub certificates_verified: Counter,
    /// Certificates that were refused, by reason.
    pub bad_certificates_rejected: ByReason,
    /// Hint entries verified against their ciphertexts.
    pub hints_verified: Counter,
    /// Sets of hints refused, by reason.
    pub bad_hints_rejected: ByReason,
    /// Releases that turned out wrong.
    pub bad_releases_rejected: Counter,
    /// Batches that the node decrypted by itself.
    pub batches_decrypted_locally: Counter,
    /// Shares that were proved wrong, by member.
    pub faulty_members: ByReason,
    /// L2 blocks that were executed.
    pub blocks_executed: Counter,
    /// Blocks compared with the sequencer's.
    pub blocks_compared: Counter,
    /// Blocks of the sequencer's that differ from ours.
    pub block_divergences: Counter,
    /// Feed connections that were lost and made again.
    pub feed_reconnections: Counter,
    /// Notifications of the feed that cannot be read.
    pub invalid_notifications: Counter,
    /// Certified batches that a member gave because the sequencer did not.
    pub batches_from_members: Counter,
    /// Postings of hints on L1 that were judged.
    pub watch_postings_checked: Counter,
    /// Postings of hints on L1 that say something wrong.
    pub watch_wrong_postings: Counter,
    /// Challenges for which a posting was slashed.
    pub watch_challenges: Counter,
    /// Numbers for which the sequencer signed two headers.
    pub watch_equivocations: Counter,
    /// Pairs of headers shown on L1.
    pub watch_slashings: Counter,
    /// Rewards that were taken from the contracts.
    pub watch_rewards: Counter,
    /// Claims in `OutputRegistry` compared with our blocks.
    pub watch_outputs_compared: Counter,
    /// Claims in `OutputRegistry` that differ from our blocks.
    pub watch_output_mismatches: Counter,
    /// Runs of certified headers that the sequencer kept from L1, posted from here.
    pub watch_runs_posted: Counter,
    /// Looks at L1 and transactions that failed.
    pub watch_failures: Counter,
    /// Wrong postings that are open now.
    pub watch_wrong_postings_open: Gauge,
    /// Open postings whose batches are not opened here yet.
    pub watch_unchecked_postings: Gauge,
    /// Cases that are not settled.
    pub watch_open_cases: Gauge,
    /// 1 where the node follows from L1 alone.
    pub source_l1: Gauge,
    /// Runs of headers that were taken from L1.
    pub from_l1_runs: Counter,
    /// Postings of hints on L1 that were passed over, whole or in part.
    pub from_l1_wrong_postings: Counter,
    /// The L1 block up to which runs were taken.
    pub from_l1_block: Gauge,
    /// The L1 block up to which hints were taken.
    pub from_l1_hints_block: Gauge,
    /// Threads of the backend in use, by backend; 0 for the others.
    pub backend_threads: GaugeSet,
    /// What a device failed to do and the processor did, by operation.
    pub device_failures: CounterSet,
    /// Refusals by the fast backend that the portable one overruled, by what was checked.
    pub overruled: CounterSet,
    /// Number of the newest header here.
    pub head: Gauge,
    /// Number of the newest certified header here.
    pub certified: Gauge,
    /// Number of the newest L2 block here.
    pub block: Gauge,
    /// Newest header that stands in a final L1 block.
    pub posted: Gauge,
    /// Newest block that is safe.
    pub safe_block: Gauge,
    /// Newest block that is finalized.
    pub finalized_block: Gauge,
    /// Blocks that were taken back since the start: L1 declared void what they had executed.
    pub blocks_taken_back: Gauge,
}

impl Counters {
    /// Registers every series, at zero.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        let counter = |name: &str, help: &str| metrics.counter(&format!("full_node_{name}_total"), help);
        let gauge = |name: &str, help: &str| metrics.gauge(&format!("full_node_{name}"), help);
        let by = |name: &str, help: &str, label, values| ByReason::new(metrics, name, help, label, values);
        Ok(Self {
            headers_verified: counter("headers_verified", "Headers checked completely and taken")?,
            headers_rejected: by("headers_rejected", "Headers refused", "reason", HEADER_REASONS)?,
            second_headers_refused: counter("second_headers_refused", "Second headers for a number refused")?,
            certificates_verified: counter("certificates_verified", "Certificates verified and taken")?,
            bad_certificates_rejected: by(
                "bad_certificates_rejected",
                "Certificates refused",
                "reason",
                CERTIFICATE_REASONS,
            )?,
            hints_verified: counter("hints_verified", "Hint entries verified against their ciphertexts")?,
            bad_hints_rejected: by("bad_hints_rejected", "Sets of hints refused", "reason", HINT_REASONS)?,
            bad_releases_rejected: counter("bad_releases_rejected", "Releases that turned out wrong")?,
            batches_decrypted_locally: counter(
                "batches_decrypted_locally",
                "Batches that the node decrypted itself",
            )?,
            faulty_members: by("faulty_members", "Wrong shares", "member", MEMBERS)?,
            blocks_executed: counter("blocks_executed", "Blocks executed")?,
            blocks_compared: counter("blocks_compared", "Blocks compared with the sequencer's")?,
            block_divergences: counter(
                "block_divergences",
                "Blocks of the sequencer's that differ from ours",
            )?,
            feed_reconnections: counter("feed_reconnections", "Feed connections lost and made again")?,
            invalid_notifications: counter("invalid_notifications", "Notifications that are none")?,
            batches_from_members: counter("batches_from_members", "Certified batches that a member gave")?,
            watch_postings_checked: counter("watch_postings_checked", "Postings of hints on L1 judged")?,
            watch_wrong_postings: counter(
                "watch_wrong_postings",
                "Postings of hints on L1 that say something wrong",
            )?,
            watch_challenges: counter("watch_challenges", "Challenges for which a posting was slashed")?,
            watch_equivocations: counter(
                "watch_equivocations",
                "Numbers for which the sequencer signed two headers",
            )?,
            watch_slashings: counter("watch_slashings", "Pairs of headers shown on L1")?,
            watch_rewards: counter("watch_rewards", "Rewards taken on L1")?,
            watch_outputs_compared: counter(
                "watch_outputs_compared",
                "Outputs on L1 compared with our blocks",
            )?,
            watch_output_mismatches: counter(
                "watch_output_mismatches",
                "Outputs on L1 that differ from our blocks",
            )?,
            watch_runs_posted: counter("watch_runs_posted", "Runs of headers kept from L1 that were posted")?,
            watch_failures: counter("watch_failures", "Looks at L1 and transactions that failed")?,
            watch_wrong_postings_open: gauge("watch_wrong_postings_open", "Wrong postings open on L1")?,
            watch_unchecked_postings: gauge(
                "watch_unchecked_postings",
                "Open postings on L1 whose batches are not opened here yet",
            )?,
            watch_open_cases: gauge("watch_open_cases", "Cases that are not settled")?,
            source_l1: gauge("source_l1", "1 where the node follows from L1 alone")?,
            from_l1_runs: counter("from_l1_runs", "Runs taken from L1")?,
            from_l1_wrong_postings: counter(
                "from_l1_wrong_postings",
                "Postings of hints on L1 that were passed over",
            )?,
            from_l1_block: gauge("from_l1_block", "The L1 block up to which runs were taken")?,
            from_l1_hints_block: gauge("from_l1_hints_block", "The L1 block up to which hints were taken")?,
            backend_threads: metrics.gauges(
                "full_node_backend_threads",
                "Threads of the backend in use; 0 for the others",
                &[("backend", BACKEND_NAMES)],
            )?,
            device_failures: metrics.counters(
                "full_node_device_failures_total",
                "Operations that a device failed at and the processor did",
                &[("operation", Operation::NAMES)],
            )?,
            overruled: metrics.counters(
                "full_node_overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            head: gauge("head_number", "Newest header")?,
            certified: gauge("certified_number", "Newest certified header")?,
            block: gauge("block_number", "Newest block")?,
            posted: gauge("posted_number", "Newest header in a final L1 block")?,
            safe_block: gauge("safe_block_number", "Newest block that is safe")?,
            finalized_block: gauge("finalized_block_number", "Newest block that is finalized")?,
            blocks_taken_back: gauge(
                "blocks_taken_back",
                "Blocks taken back since the start: L1 declared void what they had executed",
            )?,
        })
    }

    /// The counts of `blind_getStatus`.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        // A gauge may be negative; these never are.
        let gauge = |gauge: &Gauge| u64::try_from(gauge.get()).unwrap_or_default();
        [
            ("headers_verified", self.headers_verified.get()),
            ("headers_rejected", self.headers_rejected.get()),
            ("second_headers_refused", self.second_headers_refused.get()),
            ("certificates_verified", self.certificates_verified.get()),
            ("bad_certificates_rejected", self.bad_certificates_rejected.get()),
            ("hints_verified", self.hints_verified.get()),
            ("bad_hints_rejected", self.bad_hints_rejected.get()),
            ("bad_releases_rejected", self.bad_releases_rejected.get()),
            ("batches_decrypted_locally", self.batches_decrypted_locally.get()),
            ("faulty_members", self.faulty_members.get()),
            ("blocks_executed", self.blocks_executed.get()),
            ("blocks_compared", self.blocks_compared.get()),
            ("block_divergences", self.block_divergences.get()),
            ("feed_reconnections", self.feed_reconnections.get()),
            ("invalid_notifications", self.invalid_notifications.get()),
            ("batches_from_members", self.batches_from_members.get()),
            ("source_l1", gauge(&self.source_l1)),
            ("from_l1_runs", self.from_l1_runs.get()),
            ("from_l1_wrong_postings", self.from_l1_wrong_postings.get()),
            ("from_l1_block", gauge(&self.from_l1_block)),
            ("from_l1_hints_block", gauge(&self.from_l1_hints_block)),
            ("watch_postings_checked", self.watch_postings_checked.get()),
            ("watch_wrong_postings", self.watch_wrong_postings.get()),
            ("watch_challenges", self.watch_challenges.get()),
            ("watch_equivocations", self.watch_equivocations.get()),
            ("watch_outputs_compared", self.watch_outputs_compared.get()),
            ("watch_runs_posted", self.watch_runs_posted.get()),
            ("watch_output_mismatches", self.watch_output_mismatches.get()),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_there_at_zero_and_reasons_add_up() {
        let metrics = Metrics::new("full_node", "test").unwrap();
        let counters = Counters::new(&metrics).unwrap();
        assert!(counters.by_name().values().all(|count| *count == 0));
        counters.bad_hints_rejected.add("wrong_key");
        counters.bad_hints_rejected.add("a reason nobody registered");
        assert_eq!(counters.by_name()["bad_hints_rejected"], 2);
        let text = metrics.render();
        assert!(text.contains(
            r#"blindfold_full_node_bad_hints_rejected_total{reason="wrong_key",role="full_node"} 1"#
        ));
        assert!(text.contains(r#"blindfold_full_node_block_divergences_total{role="full_node"} 0"#));
    }
}

//! What the sequencer counts. Every series exists, at zero, from the start; labels come from fixed lists.

use blindfold_bte::accelerator::Operation;
use blindfold_bte::{BACKEND_NAMES, Check};
use blindfold_l1::DataCosts;
use blindfold_telemetry::{
    BYTES_BUCKETS, Counter, CounterSet, Gauge, GaugeSet, Histogram, Metrics, MetricsError, SECONDS_BUCKETS,
};

use crate::refusal::{ADMISSION_REASONS, SUBMISSION_REASONS};

/// Buckets for counts of items, from 1 to the most a batch holds.
const ITEMS_BUCKETS: &[f64] = &[1.0, 4.0, 16.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

/// What a request to a signer came to.
pub(crate) const SIGNER_REFUSED: &str = "refused";
/// See [`SIGNER_REFUSED`].
pub(crate) const SIGNER_UNAVAILABLE: &str = "unavailable";

/// Where data of runs is on L1.
pub(crate) const IN_CALLDATA: &str = "calldata";
/// See [`IN_CALLDATA`].
pub(crate) const IN_BLOBS: &str = "blobs";
/// See [`IN_CALLDATA`]: L1 only names it.
pub(crate) const IN_ARCHIVES: &str = "archive";
const DATA_PLACES: &[&str] = &[IN_CALLDATA, IN_BLOBS, IN_ARCHIVES];
/// Where it may be by what it costs.
const PRICED_PLACES: &[&str] = &[IN_CALLDATA, IN_BLOBS];

/// What a sequencer counts, and shows at `/metrics`.
#[derive(Clone, Debug)]
pub struct SequencerMetrics {
    /// The registry that all of them are registered in, for `/metrics`.
    pub registry: Metrics,
    /// 1: this sequencer has the store.
    pub leads: Gauge,
    /// How often the store was taken, where several sequencers take it.
    pub term: Gauge,
    /// Envelopes acknowledged to their sender.
    pub envelopes_admitted: Counter,
    /// Envelopes refused, by reason.
    pub envelopes_refused: CounterSet,
    /// Envelopes whose expiry passed in the mempool, or that L1 made a header before.
    pub envelopes_expired: Counter,
    /// Envelopes that gave their places in a full mempool to others.
    pub envelopes_evicted: Counter,
    /// Promises that were signed.
    pub promises: Counter,
    /// Envelopes in the mempool.
    pub envelopes_pending: Gauge,
    /// Bytes of the envelopes in the mempool.
    pub envelopes_pending_bytes: Gauge,
    /// From request to answer of an admitted envelope.
    pub admission_seconds: Histogram,
    /// How many envelopes were verified together.
    pub proof_group_items: Histogram,
    /// Batches sealed, closing ones included.
    pub batches_sealed: Counter,
    /// Empty batches sealed to close a second.
    pub closing_headers: Counter,
    /// How many items a sealed batch has.
    pub batch_items: Histogram,
    /// How many bytes of items a sealed batch has.
    pub batch_bytes: Histogram,
    /// From choosing the items to durable.
    pub seal_seconds: Histogram,
    /// Attempts to seal that failed (L1 or disk).
    pub seal_failures: Counter,
    /// Requests to a signer in another process that came to nothing, by what it was.
    pub signer_failures: CounterSet,
    /// From asking such a signer to its signature.
    pub signer_seconds: Histogram,
    /// Slots in which nothing was sealed because too many headers lack a certificate.
    pub seal_waits: Counter,
    /// Number of the newest sealed header.
    pub head_number: Gauge,
    /// Number of the newest certified header.
    pub certified_number: Gauge,
    /// Base fee of the next batch, in wei per byte.
    pub base_fee_wei: Gauge,
    /// Gas base fee of the next batch, in wei per unit of gas.
    pub gas_base_fee_wei: Gauge,
    /// Acknowledgements counted towards a certificate.
    pub acknowledgements: Counter,
    /// Acknowledgements refused, by reason.
    pub acknowledgements_refused: CounterSet,
    /// Certificates that were made of acknowledgements.
    pub certificates: Counter,
    /// From a header's sealing to its certificate, in seconds.
    pub certify_seconds: Histogram,
    /// Milliseconds from a header's sealing to each member's latest acknowledgement.
    pub acknowledged_after_ms: GaugeSet,
    /// Number of each member's latest acknowledgement.
    pub acknowledged_number: GaugeSet,
    /// How long the envelope has waited that waits longest, in milliseconds.
    pub oldest_envelope_ms: Gauge,
    /// Refusals of headers that members reported.
    pub member_refusals: Counter,
    /// Batches whose hints were verified and stored.
    pub hints: Counter,
    /// Hints refused, by reason.
    pub hints_refused: CounterSet,
    /// Number of the newest header posted to L1.
    pub posted_number: Gauge,
    /// Runs that were posted to L1.
    pub postings: Counter,
    pub opened_postings: Counter,
    /// What the committee said of such data before it was posted.
    pub attestations: CounterSet,
    /// Transactions with data of runs that came into blocks, by where the data is.
    pub posted_data_transactions: CounterSet,
    /// Bytes of that data.
    pub posted_data_bytes: CounterSet,
    /// What these transactions cost, in gwei.
    pub posted_data_fees_gwei: CounterSet,
    /// What the data that was posted last would cost in each place, by which the place was chosen, in gwei.
    pub posted_data_estimate_gwei: GaugeSet,
    /// Transactions with blobs that the L1 node refused for being such.
    pub blob_refusals: Counter,
    /// Postings that failed and are tried again.
    pub posting_failures: Counter,
    /// Accusations on L1 that wait for an answer.
    pub accusations_open: Gauge,
    /// Of them those that cannot be answered: each costs the bond.
    pub accusations_lost: Gauge,
    /// Accusations that were answered on L1.
    pub accusations_answered: Counter,
    /// Rounds or answers that failed.
    pub accusation_failures: Counter,
    /// Newest L2 block claimed on L1.
    pub output_block_number: Gauge,
    /// L2 blocks claimed on L1.
    pub outputs_proposed: Counter,
    /// Claims of L2 blocks that failed and are tried again.
    pub output_failures: Counter,
    /// Number of the newest final L1 block.
    pub l1_final_number: Gauge,
    /// Lookups on L1 that failed.
    pub l1_failures: Counter,
    pub l1_looked: Gauge,
    /// L2 blocks that were executed.
    pub blocks: Counter,
    /// Number of the newest L2 block.
    pub block_number: Gauge,
    /// L2 blocks that were taken back since the start: L1 declared void what they had executed.
    pub blocks_taken_back: Gauge,
    /// Threads of the backend in use, by backend; 0 for the others.
    pub backend_threads: GaugeSet,
    /// What a device failed to do and the processor did, by operation.
    pub device_failures: CounterSet,
    /// Refusals by the fast backend that the portable one overruled, by what was checked.
    pub overruled: CounterSet,
}

/// The members' label values: as many as a committee can have.
pub(crate) const MEMBERS: &[&str] = &[
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36",
    "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53",
    "54", "55", "56", "57", "58", "59", "60", "61", "62", "63", "64",
];

impl SequencerMetrics {
    /// Registers every series, at zero.
    pub fn new() -> Result<Self, MetricsError> {
        let m = Metrics::new("sequencer", env!("CARGO_PKG_VERSION"))?;
        Ok(Self {
            leads: m.gauge("leads", "1 while this sequencer has the store, 0 while it stands by")?,
            term: m.gauge("term", "How often the store was taken")?,
            envelopes_admitted: m
                .counter("envelopes_admitted_total", "Envelopes acknowledged to their sender")?,
            envelopes_refused: m.counters(
                "envelopes_refused_total",
                "Envelopes refused at admission",
                &[("reason", ADMISSION_REASONS)],
            )?,
            envelopes_evicted: m.counter(
                "envelopes_evicted_total",
                "Envelopes that gave their places in a full mempool to others",
            )?,
            envelopes_expired: m
                .counter("envelopes_expired_total", "Envelopes that expired in the mempool")?,
            promises: m.counter("promises_total", "Promises signed")?,
            envelopes_pending: m.gauge("envelopes_pending", "Envelopes in the mempool")?,
            envelopes_pending_bytes: m
                .gauge("envelopes_pending_bytes", "Bytes of the envelopes in the mempool")?,
            admission_seconds: m.histogram(
                "admission_seconds",
                "From request to answer of an admitted envelope",
                SECONDS_BUCKETS,
            )?,
            proof_group_items: m.histogram(
                "proof_group_items",
                "Envelopes verified together",
                ITEMS_BUCKETS,
            )?,
            batches_sealed: m.counter("batches_sealed_total", "Batches sealed, closing ones included")?,
            closing_headers: m.counter("closing_headers_total", "Empty batches sealed to close a second")?,
            batch_items: m.histogram("batch_items", "Items of sealed batches", ITEMS_BUCKETS)?,
            batch_bytes: m.histogram("batch_bytes", "Bytes of sealed batches", BYTES_BUCKETS)?,
            seal_seconds: m.histogram(
                "seal_seconds",
                "From choosing the items to durable",
                SECONDS_BUCKETS,
            )?,
            seal_failures: m.counter("seal_failures_total", "Attempts to seal that failed")?,
            signer_failures: m.counters(
                "signer_failures_total",
                "Requests to the remote signer that it refused or did not answer",
                &[("outcome", &[SIGNER_REFUSED, SIGNER_UNAVAILABLE])],
            )?,
            signer_seconds: m.histogram(
                "signer_seconds",
                "From asking the remote signer to its signature",
                SECONDS_BUCKETS,
            )?,
            seal_waits: m
                .counter("seal_waits_total", "Slots without a batch because certificates are missing")?,
            head_number: m.gauge("head_number", "Number of the newest sealed header")?,
            certified_number: m.gauge("certified_number", "Number of the newest certified header")?,
            base_fee_wei: m.gauge("base_fee_wei", "Base fee of the next batch in wei per byte")?,
            gas_base_fee_wei: m
                .gauge("gas_base_fee_wei", "Gas base fee of the next batch in wei per unit of gas")?,
            acknowledgements: m
                .counter("acknowledgements_total", "Acknowledgements counted to a certificate")?,
            acknowledgements_refused: m.counters(
                "acknowledgements_refused_total",
                "Acknowledgements refused",
                &[("reason", SUBMISSION_REASONS)],
            )?,
            certificates: m.counter("certificates_total", "Certificates aggregated")?,
            acknowledged_after_ms: m.gauges(
                "acknowledged_after_ms",
                "Milliseconds from a header's sealing to the member's latest acknowledgement",
                &[("member", MEMBERS)],
            )?,
            acknowledged_number: m.gauges(
                "acknowledged_number",
                "Number of the member's latest acknowledgement",
                &[("member", MEMBERS)],
            )?,
            oldest_envelope_ms: m.gauge(
                "oldest_envelope_ms",
                "How long the envelope has waited that waits longest, in milliseconds",
            )?,
            certify_seconds: m.histogram("certify_seconds", "From sealed to certified", SECONDS_BUCKETS)?,
            member_refusals: m.counter("member_refusals_total", "Refusals that members reported")?,
            hints: m.counter("hints_total", "Batches whose hints were verified and stored")?,
            hints_refused: m.counters(
                "hints_refused_total",
                "Hints refused",
                &[("reason", SUBMISSION_REASONS)],
            )?,
            posted_number: m.gauge("posted_number", "Number of the newest header posted to L1")?,
            postings: m.counter("postings_total", "Runs posted to L1")?,
            opened_postings: m
                .counter("opened_postings_total", "Postings of data as what it was opened to, of those")?,
            attestations: m.counters(
                "data_attestations_total",
                "Data as what it was opened to that members were asked to read before it was posted",
                &[("outcome", &["attested", "refuted", "never", "silent"])],
            )?,
            posted_data_transactions: m.counters(
                "posted_data_transactions_total",
                "Transactions with data of runs that came into L1 blocks",
                &[("place", DATA_PLACES)],
            )?,
            posted_data_bytes: m.counters(
                "posted_data_bytes_total",
                "Bytes of the data in these transactions",
                &[("place", DATA_PLACES)],
            )?,
            posted_data_fees_gwei: m.counters(
                "posted_data_fees_gwei_total",
                "What these transactions cost in gwei, headers and blobs included",
                &[("place", DATA_PLACES)],
            )?,
            posted_data_estimate_gwei: m.gauges(
                "posted_data_estimate_gwei",
                "What the data that was posted last would cost there in gwei; 0 where nothing was to be chosen",
                &[("place", PRICED_PLACES)],
            )?,
            blob_refusals: m.counter(
                "blob_refusals_total",
                "Transactions with blobs that the L1 node refused, whatever they offered",
            )?,
            posting_failures: m.counter("posting_failures_total", "Postings that failed")?,
            accusations_open: m.gauge("accusations_open", "Accusations on L1 that wait for an answer")?,
            accusations_lost: m
                .gauge("accusations_lost", "Open accusations without an answer: the bond will be lost")?,
            accusations_answered: m.counter("accusations_answered_total", "Accusations answered")?,
            accusation_failures: m
                .counter("accusation_failures_total", "Looks for accusations and answers that failed")?,
            output_block_number: m.gauge("output_block_number", "Newest L2 block claimed on L1")?,
            outputs_proposed: m.counter("outputs_proposed_total", "L2 blocks claimed on L1")?,
            output_failures: m.counter("output_failures_total", "Claims of L2 blocks that failed")?,
            l1_final_number: m.gauge("l1_final_number", "Number of the newest final L1 block")?,
            l1_failures: m.counter("l1_failures_total", "Lookups on L1 that failed")?,
            l1_looked: m
                .gauge("l1_looked_timestamp_seconds", "When L1 answered a lookup last, in Unix seconds")?,
            blocks: m.counter("blocks_total", "L2 blocks executed")?,
            block_number: m.gauge("block_number", "Number of the newest L2 block")?,
            blocks_taken_back: m.gauge(
                "blocks_taken_back",
                "L2 blocks taken back since the start: L1 declared void what they had executed",
            )?,
            backend_threads: m.gauges(
                "backend_threads",
                "Threads of the backend in use; 0 for the others",
                &[("backend", BACKEND_NAMES)],
            )?,
            device_failures: m.counters(
                "device_failures_total",
                "Operations that a device failed at and the processor did",
                &[("operation", Operation::NAMES)],
            )?,
            overruled: m.counters(
                "overruled_total",
                "Refusals by the fast backend that the portable one overruled",
                &[("check", Check::NAMES)],
            )?,
            registry: m,
        })
    }

    /// Counts what data cost on L1 beyond what was counted before.
    pub(crate) fn count_data_costs(&self, before: &DataCosts, now: &DataCosts) {
        for (place, before, costs) in [
            (IN_CALLDATA, before.calldata, now.calldata),
            (IN_BLOBS, before.blobs, now.blobs),
            (IN_ARCHIVES, before.archive, now.archive),
        ] {
            let labels = &[place];
            self.posted_data_transactions
                .get(labels)
                .add(costs.transactions.saturating_sub(before.transactions));
            self.posted_data_bytes.get(labels).add(costs.bytes.saturating_sub(before.bytes));
            // In whole gwei of the sum, so that nothing is lost by rounding each.
            self.posted_data_fees_gwei.get(labels).add(gwei(costs.wei).saturating_sub(gwei(before.wei)));
        }
        self.blob_refusals.add(now.blob_refusals.saturating_sub(before.blob_refusals));
        let estimate = now.estimate.unwrap_or_default();
        let in_blobs = estimate.blobs_wei.unwrap_or_default();
        for (place, wei) in [(IN_CALLDATA, estimate.calldata_wei), (IN_BLOBS, in_blobs)] {
            self.posted_data_estimate_gwei.get(&[place]).set(gwei(wei));
        }
    }
}

fn gwei(wei: u128) -> u64 {
    u64::try_from(wei / 1_000_000_000).unwrap_or(u64::MAX)
}

/// What a sequencer shows while it stands by.
pub(crate) struct StandbyMetrics {
    /// The registry that all of them are registered in.
    pub(crate) registry: Metrics,
    /// How often the store was taken.
    pub(crate) term: Gauge,
    /// Number of the newest L2 block that the execution client has.
    pub(crate) block_number: Gauge,
    /// L2 blocks that the execution client was given.
    pub(crate) blocks_given: Counter,
}

impl StandbyMetrics {
    /// Registers every series, at zero.
    pub(crate) fn new() -> Result<Self, MetricsError> {
        let m = Metrics::new("sequencer", env!("CARGO_PKG_VERSION"))?;
        // Zero for as long as this registry is the one that is shown.
        m.gauge("leads", "1 while this sequencer has the store, 0 while it stands by")?;
        Ok(Self {
            term: m.gauge("term", "How often the store was taken")?,
            block_number: m.gauge(
                "standby_block_number",
                "Newest L2 block that the execution client of a \
                                  sequencer that stands by was given",
            )?,
            blocks_given: m.counter(
                "standby_blocks_given_total",
                "L2 blocks that the execution client was given while this sequencer stands by",
            )?,
            registry: m,
        })
    }
}

#[cfg(test)]
mod tests {
    use blindfold_l1::{DataEstimate, PlaceCosts};

    use super::*;

    #[test]
    fn what_data_cost_is_counted_once_by_where_it_is() {
        let metrics = SequencerMetrics::new().unwrap();
        let gwei = 1_000_000_000;
        let costs = |transactions, bytes, wei| PlaceCosts { transactions, bytes, wei };
        let first = DataCosts { blobs: costs(1, 700, 3 * gwei / 2), ..DataCosts::default() };
        let estimate = DataEstimate { calldata_wei: 7 * gwei, blobs_wei: Some(2 * gwei) };
        let then = DataCosts {
            calldata: costs(2, 90, gwei),
            archive: costs(1, 4, gwei),
            blobs: costs(3, 1_000, 3 * gwei),
            estimate: Some(estimate),
            blob_refusals: 3,
        };
        metrics.count_data_costs(&DataCosts::default(), &first);
        metrics.count_data_costs(&first, &then);
        metrics.count_data_costs(&then, &then);
        let counted =
            |set: &CounterSet| [IN_CALLDATA, IN_BLOBS, IN_ARCHIVES].map(|place| set.get(&[place]).get());
        assert_eq!(counted(&metrics.posted_data_transactions), [2, 3, 1]);
        assert_eq!(counted(&metrics.posted_data_bytes), [90, 1_000, 4]);
        assert_eq!(counted(&metrics.posted_data_fees_gwei), [1, 3, 1], "nothing is lost by rounding");
        let shown =
            [IN_CALLDATA, IN_BLOBS].map(|place| metrics.posted_data_estimate_gwei.get(&[place]).get());
        assert_eq!(shown, [7, 2]);
        assert_eq!(metrics.blob_refusals.get(), 3);
    }

    #[test]
    fn all_series_exist_from_the_start() {
        let metrics = SequencerMetrics::new().unwrap();
        let text = metrics.registry.render();
        for reason in ADMISSION_REASONS {
            assert!(
                text.contains(&format!("blindfold_envelopes_refused_total{{reason=\"{reason}\"")),
                "{reason}"
            );
        }
        assert!(text.contains("blindfold_batches_sealed_total"));
    }
}

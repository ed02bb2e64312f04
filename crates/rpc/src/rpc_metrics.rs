//! What a role's calls are counted by.

use blindfold_telemetry::{CounterSet, HistogramSet, Metrics, MetricsError};

use crate::{CallObserver, CallRecord, READ_METHODS, code};

/// Every method of ours, and the reads that are handed on, as labels; anything else counts under `other`.
const METHODS: &[&str] = &[
    "blind_getBatch",
    "blind_getEncryptionKey",
    "blind_getFeeAccount",
    "blind_getFeeAccountProof",
    "blind_getHints",
    "blind_getReceipt",
    "blind_getReceipts",
    "blind_getStatus",
    "blind_sendEnvelope",
    "blind_sendEnvelopeSync",
    "blind_sendEnvelopes",
    "blind_submitAcknowledgement",
    "blind_submitHints",
    "blind_submitRefusal",
    "committee_getCertified",
    "committee_getSealed",
    "committee_getShare",
    "committee_getSingleton",
    "committee_attestData",
    "committee_getStatus",
    "confidential_getAccount",
    "confidential_getInvoiceTotal",
    "confidential_getParameters",
    "confidential_getPublicBalance",
    "confidential_getStateRoot",
    "confidential_getStatus",
    "confidential_getTransaction",
    "confidential_getTransfers",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionSync",
    "proxy_getEnvelope",
    "signer_getStatus",
    "signer_signHeader",
    "signer_signHello",
    "signer_signPromise",
    HANDED_ON,
];
/// What is handed on to the execution client.
const HANDED_ON: &str = "reads";
/// Kinds of answers, as labels.
const OUTCOMES: &[&str] =
    &["result", "refused", "busy", "unavailable", "conflict", "invalid", "plaintext", "internal"];
/// From a call that memory answers to one that waits for a disk, a committee, or a timeout.
const BUCKETS: &[f64] = &[0.001, 0.01, 0.1, 1.0, 10.0];

/// Calls by method, the same for every role. Clones share the counts.
#[derive(Clone)]
pub struct RpcMetrics {
    answers: CounterSet,
    seconds: HistogramSet,
}

impl RpcMetrics {
    /// Registers them.
    ///
    /// # Errors
    /// When a name is taken.
    pub fn new(metrics: &Metrics) -> Result<Self, MetricsError> {
        Ok(Self {
            answers: metrics.counters(
                "rpc_answers_total",
                "Calls that were answered, by what the answer was",
                &[("outcome", OUTCOMES)],
            )?,
            seconds: metrics.histograms(
                "rpc_seconds",
                "From a call's arrival to its answer, by method; `reads`: what the execution client answers",
                BUCKETS,
                &[("method", METHODS)],
            )?,
        })
    }

    /// Counts every call of a server.
    pub fn observer(&self) -> CallObserver {
        let metrics = self.clone();
        std::sync::Arc::new(move |call: CallRecord<'_>| {
            metrics.answers.get(&[outcome(call.error_code)]).increment();
            let method = if READ_METHODS.contains(&call.method) { HANDED_ON } else { call.method };
            metrics.seconds.get(&[method]).observe_duration(call.elapsed);
        })
    }
}

const fn outcome(error_code: Option<i32>) -> &'static str {
    match error_code {
        None => "result",
        Some(code::REFUSED) => "refused",
        Some(code::BUSY) => "busy",
        Some(code::UNAVAILABLE | code::NO_RECEIPT_YET) => "unavailable",
        Some(code::CONFLICT) => "conflict",
        Some(code::PLAINTEXT_REFUSED) => "plaintext",
        Some(code::INTERNAL) => "internal",
        Some(_) => "invalid",
    }
}

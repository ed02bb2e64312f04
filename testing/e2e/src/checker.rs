//! What a smoke run has to show, computed from evidence that the sender of the traffic cannot have made up: the full
//! node's RPC, L1's logs, the relay's recording and a scan of the sequencer's disk.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::AhoCorasick;
use blindfold_bte::{EncryptionKey, SessionKey};
use blindfold_protocol::{
    B256, BatchHints, Envelope, HintEntry, SealedBatch, bundle::Bundle, codec::Canonical,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::relay::{Direction, Recorded};

/// Everything a check looks at.
pub struct Evidence {
    /// The relay's recording, oldest first.
    pub recording: Vec<Recorded>,
    /// `blind_getBatch` of the full node for 1 ..= its head.
    pub batches: Vec<Value>,
    /// `blind_getReceipt` of the full node for every envelope id that the recording shows as admitted.
    pub receipts: BTreeMap<B256, Value>,
    /// `blind_getStatus` of the full node.
    pub status: Value,
    /// Block number and hash as the full node's execution client has them.
    pub blocks: BTreeMap<u64, B256>,
    /// The same of the node that follows from L1 alone.
    pub blocks_from_l1: BTreeMap<u64, B256>,
    /// The blocks that the full node, the node from L1 and the sequencer show as safe.
    pub safe: [u64; 3],
    /// The block that the full node shows as finalized.
    pub finalized: u64,
    /// When the full node announced each block, in Unix milliseconds.
    pub block_seen_ms: BTreeMap<u64, u64>,
    /// `blind_getFeeAccount` of the full node for every account that L1 or a batch names.
    pub accounts: Vec<Value>,
    /// Headers in L1's final logs whose envelopes are on L1 and match them.
    pub headers_on_l1: u64,
    /// Postings of data as what it was opened to.
    pub opened_postings: u64,
    /// Sum of the `Deposited` logs that the head's L1 origin covers, in wei.
    pub l1_deposits: u128,
    /// Places on the sequencer's disk where a plaintext stood before its certificate.
    pub disk_plaintexts: u64,
    /// The committee's encryption key, from L1.
    pub encryption_key: EncryptionKey,
}

/// `target/devnet/summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Envelopes by what became of them.
    pub envelopes: EnvelopeCounts,
    /// Inner transactions by what became of them.
    pub transactions: TransactionCounts,
    /// Batches the full node has certified.
    pub batches: u64,
    /// Headers that L1's final logs hold with their envelopes.
    pub headers_on_l1: u64,
    /// Postings of data as what it was opened to.
    pub opened_postings: u64,
    /// Hints the full node verified by re-encryption or pairing.
    pub hints_verified: u64,
    /// Wrong hints the full node refused.
    pub bad_hints_rejected: u64,
    /// Wrong certificates the full node refused.
    pub bad_certificates_rejected: u64,
    /// Second headers that members refused.
    pub second_headers_refused: u64,
    /// Plaintexts seen at the sequencer, on the wire or on disk, before the certificate of their batch.
    pub plaintext_seen_before_certificate: u64,
    /// Whether every block of the full node has the hash the sequencer announced.
    pub full_node_matches: bool,
    /// Whether the node from L1 alone has the same blocks.
    pub node_from_l1_matches: bool,
    /// The last block.
    pub last_block: u64,
    /// The newest block that is safe at the full node, at the node from L1 and at the sequencer.
    pub safe_block: u64,
    /// The newest block that is finalized at the full node.
    pub finalized_block: u64,
    /// Claims of L2 blocks on L1 that the full node compared with its own.
    pub outputs_compared: u64,
    /// Of them those that differ.
    pub output_mismatches: u64,
    /// Whether deposits equal balances plus held surcharges.
    pub funds_conserved: bool,
    /// From the envelope's request at the relay to the first certificate that covers it.
    pub submit_to_certified_ms: Percentiles,
    /// From the envelope's request at the relay to the full node's announcement of its block.
    pub submit_to_executed_ms: Percentiles,
}

/// Envelopes by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeCounts {
    /// `blind_sendEnvelope` requests the relay saw.
    pub submitted: u64,
    /// Of them, answered with an id (each id once).
    pub admitted: u64,
    /// Of them, answered with an error, by its reason.
    pub refused: BTreeMap<String, u64>,
    /// Envelopes that the hints prove malformed.
    pub malformed: u64,
}

/// Inner transactions by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionCounts {
    /// In a block of the full node.
    pub executed: u64,
    /// Skipped by rule, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// Two percentiles of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
}

impl Percentiles {
    /// Of unsorted samples; zero of none.
    #[must_use]
    pub fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |percent: usize| match samples.len() {
            0 => 0,
            count => samples[((count - 1) * percent).div_ceil(100)],
        };
        Self { p50: at(50), p99: at(99) }
    }
}

/// Evidence that cannot be read, or that shows something was lost.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A field the full node or the relay should have shown is missing or unreadable.
    #[error("evidence unreadable: {0}")]
    Unreadable(String),
    /// An admitted envelope has no final state at the full node.
    #[error("admitted envelope {id} has no outcome at the full node (state {state})")]
    Lost {
        /// The envelope.
        id: B256,
        /// What the full node says of it.
        state: String,
    },
}

fn unreadable(what: impl Into<String>) -> CheckError {
    CheckError::Unreadable(what.into())
}

/// One `blind_sendEnvelope` and its answer.
#[derive(Debug)]
pub struct Submission {
    /// When the relay had the request.
    pub at_ms: u64,
    /// The answer, if one came: the id, or the error's reason.
    pub answer: Option<Result<B256, String>>,
}

/// Pairs every `blind_sendEnvelope` of the recording with its answer.
#[must_use]
pub fn submissions(recording: &[Recorded]) -> Vec<Submission> {
    let mut open: BTreeMap<(u64, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (record, message) in messages(recording) {
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else { continue };
        let key = (record.exchange, id.to_string());
        match record.direction {
            Direction::ToSequencer if message["method"] == "blind_sendEnvelope" => {
                open.insert(key, found.len());
                found.push(Submission { at_ms: record.at_ms, answer: None });
            }
            Direction::ToSequencer => {
                open.remove(&key);
            }
            Direction::FromSequencer => {
                let Some(index) = open.remove(&key) else { continue };
                found[index].answer =
                    Some(match message["result"]["id"].as_str().and_then(|id| id.parse().ok()) {
                        Some(id) => Ok(id),
                        None => {
                            Err(message["error"]["data"]["reason"].as_str().unwrap_or("unnamed").to_owned())
                        }
                    });
            }
        }
    }
    found
}

/// Every JSON-RPC message of the recording, batches taken apart.
fn messages(recording: &[Recorded]) -> impl Iterator<Item = (&Recorded, Value)> {
    recording.iter().flat_map(|record| {
        let list = match serde_json::from_str(&record.text) {
            Ok(Value::Array(list)) => list,
            Ok(single) => vec![single],
            Err(_) => Vec::new(),
        };
        list.into_iter().map(move |message| (record, message))
    })
}

/// Notifications of one topic on the sequencer's feed, with the time of arrival.
fn notifications<'a>(recording: &'a [Recorded], field: &'a str) -> impl Iterator<Item = (u64, Value)> + 'a {
    messages(recording).filter_map(move |(record, message)| {
        let result = &message["params"]["result"];
        (record.direction == Direction::FromSequencer
            && message["method"] == "blind_subscription"
            && !result[field].is_null())
        .then(|| (record.at_ms, result.clone()))
    })
}

/// When each number was first covered by a certificate on the feed (a certificate certifies all ancestors).
fn certified_at(recording: &[Recorded]) -> BTreeMap<u64, u64> {
    let mut at: BTreeMap<u64, u64> = BTreeMap::new();
    for (at_ms, notification) in notifications(recording, "certificate") {
        if let Some(number) = notification["number"].as_u64() {
            at.entry(number).and_modify(|known| *known = at_ms.min(*known)).or_insert(at_ms);
        }
    }
    at
}

fn covered_at(certified: &BTreeMap<u64, u64>, number: u64) -> Option<u64> {
    certified.range(number..).map(|(_, at_ms)| *at_ms).min()
}

/// What must not be seen before a time: the tail of a bundle item (for a transaction: its signature, which no other has).
struct Needle {
    bytes: Vec<u8>,
    visible_from_ms: u64,
}

/// Length of the tail of an item that is searched for, in bytes.
const NEEDLE_BYTES: usize = 32;

/// The tails of all items of a decrypted message.
#[must_use]
pub fn needles(message: &[u8]) -> Vec<Vec<u8>> {
    let Ok(bundle) = Bundle::decode(message) else { return Vec::new() };
    bundle
        .items
        .iter()
        .filter(|item| item.bytes.len() >= NEEDLE_BYTES)
        .map(|item| item.bytes[item.bytes.len() - NEEDLE_BYTES..].to_vec())
        .collect()
}

/// Counts occurrences of any needle, raw or as hex, in `haystack`.
#[must_use]
pub fn count_plaintexts(haystack: &[u8], needles: &[Vec<u8>]) -> u64 {
    let patterns: Vec<Vec<u8>> =
        needles.iter().flat_map(|needle| [needle.clone(), hex::encode(needle).into_bytes()]).collect();
    // A search that cannot be made must not look like one that found nothing.
    let Ok(search) = AhoCorasick::new(&patterns) else { return u64::MAX };
    search.find_iter(haystack).count() as u64
}

/// Decodes one batch of the full node, its hints and its envelopes.
struct Batch {
    number: u64,
    sealed: SealedBatch,
    hints: Option<BatchHints>,
}

fn decode_batches(batches: &[Value]) -> Result<Vec<Batch>, CheckError> {
    batches
        .iter()
        .map(|batch| {
            let number = batch["number"].as_u64().ok_or_else(|| unreadable("batch without number"))?;
            let sealed = batch["sealed"]
                .as_str()
                .and_then(|text| SealedBatch::from_hex(text).ok())
                .ok_or_else(|| unreadable(format!("batch {number}: sealed")))?;
            let hints = match batch["hints"].as_str() {
                Some(text) => Some(
                    BatchHints::from_hex(text)
                        .map_err(|error| unreadable(format!("hints {number}: {error}")))?,
                ),
                None => None,
            };
            Ok(Batch { number, sealed, hints })
        })
        .collect()
}

fn plaintexts_on_the_wire(evidence: &Evidence, batches: &[Batch], certified: &BTreeMap<u64, u64>) -> u64 {
    let mut visible: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for batch in batches {
        let Some(hints) = &batch.hints else { continue };
        let from_ms = covered_at(certified, batch.number).unwrap_or(u64::MAX);
        for (item, entry) in batch.sealed.items.iter().zip(&hints.entries) {
            let (HintEntry::Key(key), Ok(envelope)) = (entry, Envelope::decode(item)) else { continue };
            let ad = envelope.header.hash();
            let key = SessionKey::from_bytes(*key);
            let Ok(message) = evidence.encryption_key.open_hint(&ad.0, &envelope.ciphertext, &key) else {
                continue;
            };
            for needle in needles(&message) {
                // The same transaction may travel in several envelopes; it is public from the first certificate on.
                visible.entry(needle).and_modify(|known| *known = from_ms.min(*known)).or_insert(from_ms);
            }
        }
    }
    let needles: Vec<Needle> =
        visible.into_iter().map(|(bytes, visible_from_ms)| Needle { bytes, visible_from_ms }).collect();
    let patterns: Vec<String> = needles.iter().map(|needle| hex::encode(&needle.bytes)).collect();
    let Ok(search) = AhoCorasick::builder().ascii_case_insensitive(true).build(&patterns) else {
        return u64::MAX;
    };
    let mut seen = 0;
    for record in &evidence.recording {
        for hit in search.find_iter(&record.text) {
            if record.at_ms < needles[hit.pattern().as_usize()].visible_from_ms {
                seen += 1;
            }
        }
    }
    seen
}

/// Computes the summary.
///
/// # Errors
/// Evidence that cannot be read, and admitted envelopes without an outcome at the full node.
pub fn summarize(evidence: &Evidence) -> Result<Summary, CheckError> {
    let batches = decode_batches(&evidence.batches)?;
    let certified = certified_at(&evidence.recording);
    let submissions = submissions(&evidence.recording);
    let mut summary = Summary {
        batches: batches.len() as u64,
        headers_on_l1: evidence.headers_on_l1,
        opened_postings: evidence.opened_postings,
        plaintext_seen_before_certificate: plaintexts_on_the_wire(evidence, &batches, &certified)
            .saturating_add(evidence.disk_plaintexts),
        ..Summary::default()
    };

    let mut first_submitted: BTreeMap<B256, u64> = BTreeMap::new();
    summary.envelopes.submitted = submissions.len() as u64;
    for submission in &submissions {
        match &submission.answer {
            Some(Ok(id)) => {
                first_submitted.entry(*id).or_insert(submission.at_ms);
            }
            Some(Err(reason)) => *summary.envelopes.refused.entry(reason.clone()).or_default() += 1,
            None => *summary.envelopes.refused.entry("unanswered".to_owned()).or_default() += 1,
        }
    }
    summary.envelopes.admitted = first_submitted.len() as u64;
    summary.envelopes.malformed = batches
        .iter()
        .flat_map(|batch| batch.hints.iter().flat_map(|hints| &hints.entries))
        .filter(|entry| matches!(entry, HintEntry::Malformed(_)))
        .count() as u64;

    let (mut to_certified, mut to_executed) = (Vec::new(), Vec::new());
    for (id, submitted_ms) in &first_submitted {
        let receipt = evidence.receipts.get(id).unwrap_or(&Value::Null);
        let state = receipt["state"].as_str().unwrap_or("unknown");
        if !matches!(state, "executed" | "skipped" | "malformed" | "expired" | "void") {
            return Err(CheckError::Lost { id: *id, state: state.to_owned() });
        }
        for transaction in receipt["transactions"].as_array().into_iter().flatten() {
            if transaction["included"] == true {
                summary.transactions.executed += 1;
            } else {
                let reason = transaction["reason"].as_str().unwrap_or("unnamed").to_owned();
                *summary.transactions.skipped.entry(reason).or_default() += 1;
            }
        }
        if let Some(at_ms) = receipt["number"].as_u64().and_then(|number| covered_at(&certified, number)) {
            to_certified.push(at_ms.saturating_sub(*submitted_ms));
        }
        if let Some(at_ms) =
            receipt["blockNumber"].as_u64().and_then(|block| evidence.block_seen_ms.get(&block))
        {
            to_executed.push(at_ms.saturating_sub(*submitted_ms));
        }
    }
    summary.submit_to_certified_ms = Percentiles::of(to_certified);
    summary.submit_to_executed_ms = Percentiles::of(to_executed);

    let counter = |name: &str| evidence.status["counters"][name].as_u64().ok_or_else(|| unreadable(name));
    summary.hints_verified = counter("hints_verified")?;
    summary.bad_hints_rejected = counter("bad_hints_rejected")?;
    summary.bad_certificates_rejected = counter("bad_certificates_rejected")?;
    summary.second_headers_refused = second_headers_refused(&evidence.recording);
    summary.full_node_matches = full_node_matches(evidence);
    summary.node_from_l1_matches = evidence.blocks_from_l1 == evidence.blocks;
    summary.last_block = evidence.blocks.keys().next_back().copied().unwrap_or_default();
    summary.safe_block = evidence.safe.into_iter().min().unwrap_or_default();
    summary.finalized_block = evidence.finalized;
    summary.outputs_compared = counter("watch_outputs_compared")?;
    summary.output_mismatches = counter("watch_output_mismatches")?;
    summary.funds_conserved = funds_conserved(evidence)?;
    Ok(summary)
}

/// Members that told the sequencer they refuse a second header, each header and member once.
fn second_headers_refused(recording: &[Recorded]) -> u64 {
    let refusals: BTreeSet<String> = messages(recording)
        .filter(|(record, message)| {
            record.direction == Direction::ToSequencer && message["method"] == "blind_submitRefusal"
        })
        .filter_map(|(_, message)| {
            let refusal = match &message["params"] {
                Value::Array(list) => list.first().cloned().unwrap_or_default(),
                named => named.get("refusal").cloned().unwrap_or_default(),
            };
            (refusal["reason"] == "second_header")
                .then(|| format!("{}{}", refusal["headerHash"], refusal["member"]))
        })
        .collect();
    refusals.len() as u64
}

/// Whether every block the sequencer announced is, by hash, the full node's block of that number, and there are some.
fn full_node_matches(evidence: &Evidence) -> bool {
    let mut compared = 0;
    for (_, block) in notifications(&evidence.recording, "stateRoot") {
        let (Some(number), Some(hash)) =
            (block["number"].as_u64(), block["hash"].as_str().and_then(|hash| hash.parse::<B256>().ok()))
        else {
            return false;
        };
        if evidence.blocks.get(&number) != Some(&hash) {
            return false;
        }
        compared += 1;
    }
    compared > 0 && evidence.status["counters"]["block_divergences"].as_u64() == Some(0)
}

fn funds_conserved(evidence: &Evidence) -> Result<bool, CheckError> {
    let quantity = |value: &Value| {
        value
            .as_str()
            .and_then(|text| u128::from_str_radix(text.trim_start_matches("0x"), 16).ok())
            .ok_or_else(|| unreadable("fee account"))
    };
    let mut total: u128 = 0;
    for account in &evidence.accounts {
        total =
            total.saturating_add(quantity(&account["balance"])?).saturating_add(quantity(&account["held"])?);
    }
    Ok(total == evidence.l1_deposits && total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plaintext_is_found_raw_and_as_hex_and_nothing_else_is() {
        let needle: Vec<u8> = (0..32).map(|i| i * 7 + 1).collect();
        let needles = [needle.clone()];
        let raw = [&b"before"[..], &needle, b"after"].concat();
        assert_eq!(count_plaintexts(&raw, &needles), 1);
        assert_eq!(count_plaintexts(hex::encode(&raw).as_bytes(), &needles), 1);
        assert_eq!(count_plaintexts(&raw[..raw.len() - 6], &needles), 0);
    }

    #[test]
    fn percentiles_are_of_the_samples() {
        assert_eq!(Percentiles::of(vec![]), Percentiles { p50: 0, p99: 0 });
        assert_eq!(Percentiles::of((1..=100).rev().collect()), Percentiles { p50: 51, p99: 100 });
    }
}

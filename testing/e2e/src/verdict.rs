//! What a smoke run must show, and the proof that the checker is not blind.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use blindfold::devnet::MEMBERS;
use blindfold_bte::SessionKey;
use blindfold_protocol::{BatchHints, Bundle, Canonical, Envelope, HintEntry, SealedBatch};
use serde_json::json;

use crate::{
    checker::{CheckError, Evidence, Summary, summarize},
    relay::{Direction, Recorded},
};

/// Malformed envelopes that the run sends: proved, with a D that opens to nothing.
pub const MALFORMED: u64 = 5;

/// What is not as it must be.
pub fn verdict(summary: &Summary, envelopes: u64) -> Vec<String> {
    let refused = BTreeMap::from(
        [("already_known", 1), ("insufficient_funds", 1), ("invalid_proof", 1)]
            .map(|(reason, count)| (reason.to_owned(), count)),
    );
    let skipped = BTreeMap::from(
        [
            ("insufficient_funds", 2),
            ("nonce_too_high", 1),
            ("nonce_too_low", 2),
            ("type_not_allowed", 3),
            ("undecodable", 2),
        ]
        .map(|(reason, count)| (reason.to_owned(), count)),
    );
    let mut problems = Vec::new();
    let mut check = |right: bool, what: String| {
        if !right {
            problems.push(what);
        }
    };
    let counts = &summary.envelopes;
    check(
        counts.submitted >= envelopes,
        format!("{} envelopes were submitted, not {envelopes}", counts.submitted),
    );
    // The proxy sends an envelope again when a killed sequencer left its answer open: the first may stay unanswered, and
    // the second is known when the first had arrived. Everything else is refused exactly as often as it was provoked.
    let mut without_retries = counts.refused.clone();
    without_retries.remove("unanswered");
    without_retries.entry("already_known".to_owned()).and_modify(|count| *count = (*count).min(1));
    check(without_retries == refused, format!("refused {:?}, expected {refused:?}", counts.refused));
    let answered = counts.admitted + counts.refused.values().sum::<u64>();
    check(answered <= counts.submitted, format!("{answered} answers for {} envelopes", counts.submitted));
    check(counts.malformed == MALFORMED, format!("{} malformed, expected {MALFORMED}", counts.malformed));
    let transactions = &summary.transactions;
    check(
        transactions.skipped == skipped,
        format!("skipped {:?}, expected {skipped:?}", transactions.skipped),
    );
    check(
        transactions.executed > envelopes / 2,
        format!("only {} transactions executed", transactions.executed),
    );
    check(summary.batches > 0, "no batches".to_owned());
    check(
        summary.headers_on_l1 >= summary.batches,
        format!("{} headers on L1, {} batches", summary.headers_on_l1, summary.batches),
    );
    check(summary.opened_postings > 0, "no data was posted as what it was opened to".to_owned());
    check(summary.hints_verified > 0, "no hints verified".to_owned());
    check(summary.bad_hints_rejected > 0, "the forged hint was not noticed".to_owned());
    check(summary.bad_certificates_rejected > 0, "the forged certificate was not noticed".to_owned());
    let refusals = summary.second_headers_refused;
    check(
        refusals == u64::from(MEMBERS),
        format!("{refusals} of {MEMBERS} members refused the second header"),
    );
    let seen = summary.plaintext_seen_before_certificate;
    check(seen == 0, format!("{seen} plaintexts seen before their certificate"));
    check(summary.full_node_matches, "the full node's blocks differ from the sequencer's".to_owned());
    check(
        summary.node_from_l1_matches,
        "the blocks of the node from L1 differ from the full node's".to_owned(),
    );
    let (last, safe, finalized) = (summary.last_block, summary.safe_block, summary.finalized_block);
    check(last > 0 && safe == last, format!("block {safe} is safe everywhere, the last is {last}"));
    check((1..=safe).contains(&finalized), format!("block {finalized} is finalized, block {safe} is safe"));
    let (compared, differ) = (summary.outputs_compared, summary.output_mismatches);
    check(compared > 0 && differ == 0, format!("{compared} claims on L1 compared, {differ} differ"));
    check(summary.funds_conserved, "deposits are not balances plus held surcharges".to_owned());
    problems
}

/// The checker must not be blind: one plaintext, one other block and one lost envelope are put into the evidence, and
/// have to be found.
pub fn self_test(mut evidence: Evidence) -> Vec<String> {
    let mut problems = Vec::new();
    let Some(plaintext) = some_plaintext(&evidence) else {
        return vec!["self-test: no plaintext to plant".to_owned()];
    };
    let planted = |text: String| Recorded {
        at_ms: 0,
        role: "self-test".to_owned(),
        exchange: u64::MAX,
        direction: Direction::ToSequencer,
        text,
    };
    evidence.recording.insert(0, planted(json!({"method": "eth_call", "params": [plaintext]}).to_string()));
    match summarize(&evidence) {
        Ok(summary) if summary.plaintext_seen_before_certificate > 0 => {}
        Ok(_) => problems.push("self-test: a planted plaintext was not found".to_owned()),
        Err(error) => problems.push(format!("self-test: {error}")),
    }
    evidence.recording.remove(0);

    let block = evidence.blocks_from_l1.insert(1, B256::repeat_byte(0x5b));
    match summarize(&evidence) {
        Ok(summary) if !summary.node_from_l1_matches => {}
        other => {
            problems.push(format!("self-test: another block of the node from L1 was not found: {other:?}"))
        }
    }
    evidence.blocks_from_l1.extend(block.map(|hash| (1, hash)));

    let lost = B256::repeat_byte(0x5a);
    evidence.recording.push(planted(json!({"id": 1, "method": "blind_sendEnvelope"}).to_string()));
    let answer = json!({"id": 1, "result": {"id": lost}}).to_string();
    evidence.recording.push(Recorded { direction: Direction::FromSequencer, ..planted(answer) });
    match summarize(&evidence) {
        Err(CheckError::Lost { id, .. }) if id == lost => {}
        other => problems.push(format!("self-test: a lost envelope was not found: {other:?}")),
    }
    problems
}

/// The raw bytes, as hex, of an item of the first batch that has a hint.
fn some_plaintext(evidence: &Evidence) -> Option<String> {
    for batch in &evidence.batches {
        let sealed = SealedBatch::from_hex(batch["sealed"].as_str()?).ok()?;
        let Some(hints) = batch["hints"].as_str() else { continue };
        let hints = BatchHints::from_hex(hints).ok()?;
        for (item, entry) in sealed.items.iter().zip(&hints.entries) {
            let (HintEntry::Key(key), Ok(envelope)) = (entry, Envelope::decode(item)) else { continue };
            let key = SessionKey::from_bytes(*key);
            let ad = envelope.header.hash();
            let message = evidence.encryption_key.open_hint(&ad.0, &envelope.ciphertext, &key).ok()?;
            if let Some(item) = Bundle::decode(&message).ok()?.items.first() {
                return Some(format!("0x{}", hex::encode(&item.bytes)));
            }
        }
    }
    None
}

//! Notifications of the topics, from what is stored.

use alloy_primitives::B256;
use blindfold_protocol::validity::Verdict;
use blindfold_protocol::{BatchHints, Certificate, Release, SealedBatch};
use blindfold_rpc::types::{
    BlockNotification, CertificateNotification, HeaderNotification, HintsNotification, ReleaseNotification,
    SkippedItem,
};
use blindfold_rpc::{Encoded, FeedEvent};

use crate::{EnvelopeOutcome, NewBlock};

/// Verdicts as they travel: null for accepted, else the reason.
pub fn verdict_names(verdicts: &[Verdict]) -> Vec<Option<String>> {
    verdicts.iter().map(|verdict| verdict.reason().map(str::to_owned)).collect()
}

/// A sealed header, for the topic `headers`.
pub fn header(sealed: &SealedBatch, hash: B256, verdicts: &[Verdict]) -> FeedEvent {
    FeedEvent::Header(HeaderNotification {
        number: sealed.header.number,
        hash,
        sealed: Encoded::new(sealed),
        verdicts: verdict_names(verdicts),
    })
}

/// A certificate, for the topic `certificates`.
pub fn certificate(certificate: &Certificate) -> FeedEvent {
    FeedEvent::Certificate(CertificateNotification {
        number: certificate.number,
        hash: certificate.header_hash,
        certificate: Encoded::new(certificate),
    })
}

/// A combined release, for the topic `releases`.
pub fn release(release: &Release) -> FeedEvent {
    FeedEvent::Release(ReleaseNotification {
        number: release.number,
        hash: release.header_hash,
        release: Encoded::new(release),
    })
}

/// Verified hints, for the topic `hints`.
pub fn hints(hints: &BatchHints) -> FeedEvent {
    FeedEvent::Hints(HintsNotification {
        number: hints.number,
        hash: hints.header_hash,
        hints: Encoded::new(hints),
    })
}

/// An executed block, for the topic `blocks` (ST-2, ST-3).
pub fn block(block: &NewBlock) -> FeedEvent {
    let NewBlock { record, details } = block;
    let mut skipped = Vec::new();
    for entry in &details.envelopes {
        let reason = match &entry.outcome {
            EnvelopeOutcome::Skipped(reason) => Some(reason.as_str()),
            EnvelopeOutcome::Void => Some("void"),
            EnvelopeOutcome::Executed | EnvelopeOutcome::Malformed => None,
        };
        if let Some(reason) = reason {
            skipped.push(SkippedItem { envelope: entry.id, index: None, reason: reason.to_owned() });
        }
        for (index, transaction) in (0u16..).zip(&entry.transactions) {
            if let Some(reason) = &transaction.skipped {
                skipped.push(SkippedItem { envelope: entry.id, index: Some(index), reason: reason.clone() });
            }
        }
    }
    FeedEvent::Block(BlockNotification {
        number: record.number,
        hash: record.hash,
        parent_hash: record.parent_hash,
        state_root: record.state_root,
        timestamp: record.second,
        first_batch: record.first_batch,
        last_batch: record.last_batch,
        transactions: details.transactions.clone(),
        skipped,
    })
}

//! Code and retry of every reason, as the servers give them: typed refusals are made and converted, the others are read
//! from the calls that make them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, bail};
use blindfold_chain::{DataError, L1Error, TrackerError};
use blindfold_committee::{AttestationRefusal, ShareRequestError};
use blindfold_protocol::{Address, B256, DecodeError, EnvelopeError, certificate::CertificateError};
use blindfold_rpc::{
    RpcError,
    jsonrpsee::types::{ErrorCode, ErrorObjectOwned},
};
use blindfold_sequencer::{AdmissionRefusal, SUBMISSION_REASONS, SubmissionError};
use blindfold_signer::SigningRefusal;
use blindfold_store::StoreError;

use crate::source::read;

/// Where a caller's reasons come from that have no type: by trait, the files that make them.
const UNTYPED: &[(&str, &[&str])] = &[
    ("BlindApi", &["crates/chain/src/read.rs", "crates/rpc/src/hub.rs"]),
    ("ForwardApi", &["sequencer/src/rpc.rs"]),
    ("ReceiptApi", &["crates/rpc/src/receipts.rs"]),
    ("SyncApi", &["crates/rpc/src/receipts.rs"]),
    ("ConfidentialApi", &["fhe-coprocessor/service/src/api.rs", "fhe-coprocessor/service/src/invoices.rs"]),
    (
        EVERY,
        &[
            "crates/rpc/src/middleware.rs",
            "crates/rpc/src/encoded.rs",
            "crates/rpc/src/turned_away.rs",
            "gateway/src/coalesce.rs",
        ],
    ),
];

/// In place of a trait: what every method may answer.
pub const EVERY: &str = "every method";

/// Every refusal of a trait's methods.
///
/// # Errors
/// A file cannot be read.
pub fn refusals(api: &str) -> Result<Vec<RpcError>> {
    let mut refusals: Vec<RpcError> = match api {
        "SequencerApi" => {
            let admission = admission_refusals().into_iter().map(RpcError::from);
            admission.chain(submission_errors().into_iter().map(RpcError::from)).collect()
        }
        "SignerApi" => signing_refusals().into_iter().map(RpcError::from).collect(),
        "CommitteeApi" => {
            let shares = share_request_errors().into_iter().map(RpcError::from);
            shares.chain(attestation_refusals().into_iter().map(RpcError::from)).collect()
        }
        // What the JSON-RPC library says by itself, and a sequencer that stands by.
        EVERY => [ErrorCode::InvalidParams, ErrorCode::InternalError]
            .map(|code| RpcError::from(ErrorObjectOwned::from(code)))
            .into_iter()
            .chain([RpcError::standing_by(None)])
            .collect(),
        _ => Vec::new(),
    };
    for (_, paths) in UNTYPED.iter().filter(|(of, _)| *of == api) {
        for path in *paths {
            refusals.extend(made_in(&read(path)?)?);
        }
    }
    Ok(refusals)
}

/// Codes of the reasons of a trait's methods, each with whether to retry.
///
/// # Errors
/// A file cannot be read.
pub fn outcomes(api: &str) -> Result<BTreeMap<String, BTreeSet<(i32, bool)>>> {
    let mut outcomes: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
    for refusal in refusals(api)? {
        outcomes.entry(refusal.reason.into_owned()).or_default().insert((refusal.code, refusal.retry));
    }
    Ok(outcomes)
}

/// `RpcError::busy("reason", …)` and its like, in the part of a source that is no test.
fn made_in(source: &str) -> Result<Vec<RpcError>> {
    let product = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut made = Vec::new();
    for call in product.split("RpcError::").skip(1) {
        let Some((constructor, rest)) = call.split_once('(') else { continue };
        let Some((reason, _)) = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
        else {
            continue;
        };
        let reason = reason.to_owned();
        made.push(match constructor {
            "refused" => RpcError::refused(reason, ""),
            "busy" => RpcError::busy(reason, ""),
            "unavailable" => RpcError::unavailable(reason, ""),
            "conflict" => RpcError::conflict(reason, ""),
            "invalid_params" => RpcError::invalid_params(reason, ""),
            "internal" => continue,
            other => bail!("RpcError::{other} is not known here"),
        });
    }
    Ok(made)
}

/// One of each kind.
pub fn admission_refusals() -> Vec<AdmissionRefusal> {
    let faults = EnvelopeError::ALL.map(|fault| AdmissionRefusal::Fault { fault, detail: String::new() });
    let others = [
        AdmissionRefusal::TooLarge { bytes: 1, limit: 1 },
        AdmissionRefusal::AlreadyKnown,
        AdmissionRefusal::QueueTooLong { time: Duration::from_secs(1) },
        AdmissionRefusal::PoolFull,
        AdmissionRefusal::PayerLimit { limit: 1 },
        AdmissionRefusal::SourceLimit,
        AdmissionRefusal::Overloaded,
        AdmissionRefusal::NoEpoch,
        AdmissionRefusal::EpochEnds { epoch: 1, until: 1 },
        AdmissionRefusal::PromiseTerms { detail: String::new() },
        AdmissionRefusal::PromiseCapacity { batches: 1 },
        AdmissionRefusal::Backlogged { behind: "posting" },
        AdmissionRefusal::Recovering,
        AdmissionRefusal::OutOfOffice,
        AdmissionRefusal::Storage,
        AdmissionRefusal::Signer,
        AdmissionRefusal::ShuttingDown,
    ];
    others.into_iter().chain(faults).collect()
}

/// One of each kind; where a kind has several reasons, one of each reason.
pub fn submission_errors() -> Vec<SubmissionError> {
    let hash = B256::ZERO;
    let mut errors = vec![
        SubmissionError::UnknownBatch { number: 1, newest: 0 },
        SubmissionError::WrongHeader { number: 1, known: hash, offered: hash },
        SubmissionError::WrongEpoch { number: 1, known: 1, offered: 2 },
        SubmissionError::UnknownMember { member: 9, members: 4 },
        SubmissionError::InvalidSignature { member: 1 },
        SubmissionError::DuplicateAcknowledgement { number: 1, member: 1 },
        SubmissionError::AlreadyCertified { number: 1 },
        SubmissionError::NotCertified { number: 1 },
        SubmissionError::ReleaseMismatch,
        SubmissionError::InvalidRelease { index: 0 },
        SubmissionError::Overloaded,
        SubmissionError::Storage,
        SubmissionError::ShuttingDown,
    ];
    let known: BTreeSet<&str> = errors.iter().map(SubmissionError::reason).collect();
    // The others are those of hints; what does not decode never comes so far.
    let of_hints =
        SUBMISSION_REASONS.iter().filter(|reason| **reason != "undecodable" && !known.contains(*reason));
    errors.extend(of_hints.map(|reason| SubmissionError::Hints { reason, detail: String::new() }));
    errors
}

/// One of each kind.
pub fn signing_refusals() -> Vec<SigningRefusal> {
    let (number, hash) = (1, B256::ZERO);
    vec![
        SigningRefusal::NotBegun { number },
        SigningRefusal::WrongNumber(0),
        SigningRefusal::BelowFirst { number, first: 2 },
        SigningRefusal::SecondHeader { number, signed: hash, offered: hash },
        SigningRefusal::DoesNotFollow { number, parent: hash, newest: 0 },
        SigningRefusal::OlderThanL1 { number, posted: 2 },
        SigningRefusal::NotOurs { origin: 1, sequencer: Address::ZERO },
        SigningRefusal::OlderTerm { offered: 1, seen: 2 },
        SigningRefusal::UnknownParty,
        SigningRefusal::L1Behind { number, origin: 2, finalized: 1 },
        SigningRefusal::L1(L1Error::NoStakes),
        SigningRefusal::Store(StoreError::Certified(number)),
    ]
}

/// One of each kind; where a kind has several reasons, one of each that a caller can get.
pub fn share_request_errors() -> Vec<ShareRequestError> {
    let (number, hash) = (1, B256::ZERO);
    let bad = |fault| ShareRequestError::BadCertificate(TrackerError::Certificate { number, fault });
    let replaced = TrackerError::ReplacedByL1 { number, made: hash, offered: hash };
    let conflicting = TrackerError::ConflictingCertificates { number, known: hash, offered: hash };
    vec![
        ShareRequestError::BadCertificate(TrackerError::NoEpoch { number }),
        ShareRequestError::BadCertificate(replaced),
        bad(CertificateError::Epoch { got: 1, expected: 2 }),
        bad(CertificateError::Number(1)),
        bad(CertificateError::TooFew { got: 1, needed: 2 }),
        bad(CertificateError::Signers(1)),
        bad(CertificateError::Point),
        bad(CertificateError::Signature),
        ShareRequestError::DoesNotCover { number, certificate: 0 },
        ShareRequestError::NotValidatedHere { number },
        ShareRequestError::NotCertified { number },
        ShareRequestError::NotAMember { number },
        ShareRequestError::NoSuchItem { number, index: 1, count: 1 },
        ShareRequestError::ItemSkipped { number, index: 0, reason: String::new() },
        ShareRequestError::UnreleasedTooLong { number, posted_at: 1 },
        ShareRequestError::UnpostedTooLong { number, origin: 1 },
        ShareRequestError::EpochEnds { number, until: 1 },
        ShareRequestError::OverruledByL1 { number, made: hash },
        ShareRequestError::Busy,
        ShareRequestError::Unavailable(TrackerError::L1(L1Error::NoStakes)),
        ShareRequestError::Unavailable(TrackerError::UnknownRules { number, rules: 2 }),
        ShareRequestError::Unavailable(conflicting),
        ShareRequestError::Unavailable(TrackerError::Store(StoreError::Certified(number))),
        ShareRequestError::Unavailable(TrackerError::Stopped),
        ShareRequestError::Store(StoreError::Certified(number)),
        ShareRequestError::Internal(String::new()),
    ]
}

/// One of each kind; where a kind has several reasons, one of each that a caller can get.
pub fn attestation_refusals() -> Vec<AttestationRefusal> {
    let (number, first, last) = (1, 1, 2);
    vec![
        AttestationRefusal::NotTheSequencer,
        AttestationRefusal::TooLarge { bytes: 1 },
        AttestationRefusal::BadRange { first, last },
        AttestationRefusal::WrongEpoch { first, last },
        AttestationRefusal::NotAMember { number },
        AttestationRefusal::NotCertified { number },
        AttestationRefusal::Unreadable(DataError::Decode(DecodeError::Compressed)),
        AttestationRefusal::Unreadable(DataError::Mismatch),
        AttestationRefusal::Unreadable(DataError::Unsigned),
        AttestationRefusal::Unreadable(DataError::Hints(1)),
        AttestationRefusal::Unreadable(DataError::NoBeacon),
        AttestationRefusal::Busy,
        AttestationRefusal::L1(L1Error::NoStakes),
        AttestationRefusal::Unavailable(TrackerError::NoEpoch { number }),
        AttestationRefusal::Unavailable(TrackerError::L1(L1Error::NoStakes)),
        AttestationRefusal::Unavailable(TrackerError::UnknownRules { number, rules: 2 }),
        AttestationRefusal::Unavailable(TrackerError::Stopped),
        AttestationRefusal::Store(StoreError::Certified(number)),
    ]
}

//! What the sequencer refuses, why, and whether to try again. Each has a stable snake_case reason.

use std::time::Duration;

use blindfold_chain::VerifierError;
use blindfold_protocol::{B256, EnvelopeError};
use blindfold_rpc::RpcError;
use thiserror::Error;

/// Every reason for which an envelope is refused at admission, for metrics and documentation.
pub const ADMISSION_REASONS: &[&str] = &[
    "undecodable",
    "wrong_chain",
    "wrong_deployment",
    "wrong_epoch",
    "wrong_encryption_key",
    "unknown_flags",
    "bad_size",
    "gas_limit_too_high",
    "expired",
    "expiry_too_far",
    "duplicate",
    "invalid_fee_signature",
    "invalid_point",
    "invalid_proof",
    "fee_nonce_used",
    "fee_too_low",
    "insufficient_funds",
    "wrong_generation",
    "too_large",
    "already_known",
    "queue_too_long",
    "pool_full",
    "payer_limit",
    "source_limit",
    "overloaded",
    "no_epoch",
    "epoch_ends",
    "promise_terms",
    "promise_capacity",
    "backlogged",
    "recovering",
    "out_of_office",
    "storage",
    "signer",
    "shutting_down",
];

/// Every reason for which something that members or hint publishers send is refused.
pub const SUBMISSION_REASONS: &[&str] = &[
    "undecodable",
    "unknown_batch",
    "wrong_header",
    "wrong_epoch",
    "unknown_member",
    "invalid_signature",
    "duplicate_acknowledgement",
    "already_certified",
    "not_certified",
    "release_mismatch",
    "invalid_release",
    "wrong_sub_batches",
    "no_parameters",
    "wrong_count",
    "not_skipped",
    "hint_for_skipped",
    "wrong_key",
    "wrong_singleton",
    "wrong_blinding",
    "false_malformed",
    "other_header",
    "second_hints",
    "overloaded",
    "storage",
    "shutting_down",
];

/// An envelope that is not admitted. Nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// Longer than any envelope.
    #[error("{bytes} bytes; an envelope has at most {limit}")]
    TooLarge {
        /// How many bytes were received.
        bytes: usize,
        /// The most that there may be.
        limit: usize,
    },
    /// A rule of validity would make it a skipped item. The sender's fault.
    #[error("{detail}")]
    Fault {
        /// The fault by the validity rule.
        fault: EnvelopeError,
        /// What exactly is wrong.
        detail: String,
    },
    /// It is in a batch already; its receipt says where.
    #[error("the envelope is in a batch already or has expired; ask for its receipt")]
    AlreadyKnown,
    /// It would wait longer for its certificate than envelopes may.
    #[error("more envelopes wait than are certified within the time that one may wait")]
    QueueTooLong {
        /// When fewer may wait.
        time: Duration,
    },
    /// No room for anybody's envelope.
    #[error("the mempool is full")]
    PoolFull,
    /// No more room for this payer.
    #[error("the payer has {limit} pending envelopes, the most one payer may have")]
    PayerLimit {
        /// The most that there may be.
        limit: usize,
    },
    /// Too many envelopes from one network address.
    #[error("too many envelopes from this address")]
    SourceLimit,
    /// More envelopes wait for verification than may.
    #[error("too many envelopes wait for verification")]
    Overloaded,
    /// L1 has registered no epoch for the next number.
    #[error("no epoch is registered for the next batch")]
    NoEpoch,
    /// The end of the epoch is near: the header that L1 makes then bars the envelope.
    #[error(
        "epoch {epoch} ends after L1 block {until}, and nothing more is sealed for it: make another envelope then"
    )]
    EpochEnds {
        /// Number of the epoch that ends.
        epoch: u64,
        /// The last L1 block before its end is due.
        until: u64,
    },
    /// The envelope's own terms do not allow a promise: send it without asking for one, or change them.
    #[error("no promise is given for this envelope: {detail}")]
    PromiseTerms {
        /// What stands in the way.
        detail: String,
    },
    /// Everything that may be promised is promised.
    #[error("no promise is given now: the room of the next {batches} batches that may be promised is taken")]
    PromiseCapacity {
        /// How far ahead promises are given.
        batches: u64,
    },
    /// Posting, hints or execution are behind.
    #[error("{behind} is behind; what is admitted waits for it")]
    Backlogged {
        /// What is behind: posting, hints or execution.
        behind: &'static str,
    },
    /// The committee has not told yet what this sequencer signed before.
    #[error("this sequencer is still finding out what was signed before")]
    Recovering,
    /// L1 names another sequencer's key.
    #[error("another sequencer's key counts on L1: send the envelope to that one")]
    OutOfOffice,
    /// Our disk did not take it.
    #[error("the envelope could not be stored")]
    Storage,
    /// The envelope waits, and its promise is kept; whoever signs did not sign it.
    #[error("the envelope waits and is promised, and the promise could not be signed: ask for it again")]
    Signer,
    /// The sequencer is shutting down.
    #[error("the sequencer is shutting down")]
    ShuttingDown,
}

impl AdmissionRefusal {
    /// The reason as callers get it: a word that does not change.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Fault { fault, .. } => fault.as_str(),
            Self::AlreadyKnown => "already_known",
            Self::QueueTooLong { .. } => "queue_too_long",
            Self::PoolFull => "pool_full",
            Self::PayerLimit { .. } => "payer_limit",
            Self::SourceLimit => "source_limit",
            Self::Overloaded => "overloaded",
            Self::NoEpoch => "no_epoch",
            Self::EpochEnds { .. } => "epoch_ends",
            Self::PromiseTerms { .. } => "promise_terms",
            Self::PromiseCapacity { .. } => "promise_capacity",
            Self::Backlogged { .. } => "backlogged",
            Self::Recovering => "recovering",
            Self::OutOfOffice => "out_of_office",
            Self::Storage => "storage",
            Self::Signer => "signer",
            Self::ShuttingDown => "shutting_down",
        }
    }
}

impl From<VerifierError> for AdmissionRefusal {
    fn from(error: VerifierError) -> Self {
        match error {
            VerifierError::Full => Self::Overloaded,
            VerifierError::Stopped => Self::ShuttingDown,
        }
    }
}

impl From<AdmissionRefusal> for RpcError {
    fn from(refusal: AdmissionRefusal) -> Self {
        let reason = refusal.reason();
        match refusal {
            AdmissionRefusal::TooLarge { .. } => Self::invalid_params(reason, refusal),
            AdmissionRefusal::Fault { fault: EnvelopeError::Undecodable, .. } => {
                Self::invalid_params(reason, refusal)
            }
            AdmissionRefusal::Fault { fault, .. } => {
                Self::new(blindfold_rpc::code::REFUSED, reason, fault.may_pass_later(), refusal)
            }
            AdmissionRefusal::AlreadyKnown => Self::conflict(reason, refusal),
            AdmissionRefusal::QueueTooLong { time } => Self::busy(reason, refusal).after(time),
            AdmissionRefusal::PoolFull
            | AdmissionRefusal::PayerLimit { .. }
            | AdmissionRefusal::SourceLimit
            | AdmissionRefusal::PromiseCapacity { .. }
            | AdmissionRefusal::Backlogged { .. }
            | AdmissionRefusal::Overloaded => Self::busy(reason, refusal),
            AdmissionRefusal::PromiseTerms { .. } => Self::refused(reason, refusal),
            AdmissionRefusal::NoEpoch
            | AdmissionRefusal::EpochEnds { .. }
            | AdmissionRefusal::Recovering
            | AdmissionRefusal::OutOfOffice
            | AdmissionRefusal::Storage
            | AdmissionRefusal::Signer
            | AdmissionRefusal::ShuttingDown => Self::unavailable(reason, refusal),
        }
    }
}

/// An acknowledgement, refusal or hint list that is not taken. Nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SubmissionError {
    /// No batch of this number is here, or it was sealed only just now.
    #[error("no batch {number} here yet; the newest is {newest}")]
    UnknownBatch {
        /// The number that was named.
        number: u64,
        /// Our newest, or our newest certified one.
        newest: u64,
    },
    /// It names another header than ours.
    #[error("batch {number} has header {known}, not {offered}")]
    WrongHeader {
        /// Number of the batch.
        number: u64,
        /// Hash of the header that is sealed here.
        known: B256,
        /// Hash of the header that was named.
        offered: B256,
    },
    /// Another epoch than the number's.
    #[error("batch {number} is of epoch {known}, not {offered}")]
    WrongEpoch {
        /// Number of the batch.
        number: u64,
        /// Number of the epoch that the batch is of.
        known: u64,
        /// Number of the epoch that was named.
        offered: u64,
    },
    /// The committee has no such member.
    #[error("the committee has no member {member}, only 1 to {members}")]
    UnknownMember {
        /// The index that was named.
        member: u16,
        /// How many members the committee has.
        members: usize,
    },
    /// The BLS signature is not the member's.
    #[error("the signature is not member {member}'s")]
    InvalidSignature {
        /// The member that it names, from 1.
        member: u16,
    },
    /// The member's acknowledgement is here already.
    #[error("the acknowledgement of member {member} for batch {number} is here already")]
    DuplicateAcknowledgement {
        /// Number of the batch.
        number: u64,
        /// Index of the member, from 1.
        member: u16,
    },
    /// Certified long ago; nothing is collected for it any more.
    #[error("batch {number} was certified long ago")]
    AlreadyCertified {
        /// Number of the batch.
        number: u64,
    },
    /// Hints came before the batch had a certificate.
    #[error("batch {number} has no certificate yet")]
    NotCertified {
        /// Number of the batch.
        number: u64,
    },
    /// Release and hints are for different batches.
    #[error("the release is for another batch than the hints")]
    ReleaseMismatch,
    /// A release point is no point of the group.
    #[error("point {index} of the release is not in the group")]
    InvalidRelease {
        /// Place of the point among the sub-batches, from 0.
        index: usize,
    },
    /// The hints are not the truth about the batch.
    #[error("{detail}")]
    Hints {
        /// The reason as callers get it: a word that does not change.
        reason: &'static str,
        /// What exactly is wrong.
        detail: String,
    },
    /// Too many submissions wait.
    #[error("too many submissions wait for verification")]
    Overloaded,
    /// Our disk did not take it.
    #[error("it could not be stored")]
    Storage,
    /// The sequencer is shutting down.
    #[error("the sequencer is shutting down")]
    ShuttingDown,
}

impl SubmissionError {
    /// The reason as callers get it: a word that does not change.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownBatch { .. } => "unknown_batch",
            Self::WrongHeader { .. } => "wrong_header",
            Self::WrongEpoch { .. } => "wrong_epoch",
            Self::UnknownMember { .. } => "unknown_member",
            Self::InvalidSignature { .. } => "invalid_signature",
            Self::DuplicateAcknowledgement { .. } => "duplicate_acknowledgement",
            Self::AlreadyCertified { .. } => "already_certified",
            Self::NotCertified { .. } => "not_certified",
            Self::ReleaseMismatch => "release_mismatch",
            Self::InvalidRelease { .. } => "invalid_release",
            Self::Hints { reason, .. } => reason,
            Self::Overloaded => "overloaded",
            Self::Storage => "storage",
            Self::ShuttingDown => "shutting_down",
        }
    }
}

impl From<SubmissionError> for RpcError {
    fn from(refusal: SubmissionError) -> Self {
        let reason = refusal.reason();
        match refusal {
            SubmissionError::UnknownBatch { .. }
            | SubmissionError::NotCertified { .. }
            | SubmissionError::Storage
            | SubmissionError::ShuttingDown => Self::unavailable(reason, refusal),
            SubmissionError::WrongHeader { .. } | SubmissionError::DuplicateAcknowledgement { .. } => {
                Self::conflict(reason, refusal)
            }
            SubmissionError::Overloaded => Self::busy(reason, refusal),
            _ => Self::refused(reason, refusal),
        }
    }
}

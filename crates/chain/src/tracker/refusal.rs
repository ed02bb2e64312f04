//! Why a header or a certificate is not taken, and what to do about it.

use alloy_primitives::B256;
use blindfold_protocol::certificate::CertificateError;
use blindfold_protocol::validity::HeaderError;
use blindfold_store::{StoreError, What};

use super::OpenError;
use crate::L1Error;

/// What the holder of a refused header or certificate should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Offer the same thing again after a pause: nobody is at fault.
    Retry,
    /// Fetch what is missing, then offer it again.
    CatchUp,
    /// Whoever sent it is at fault: drop it, count it, and get a copy elsewhere.
    Reject,
    /// Our own disk or settings are at fault: an operator has to look.
    Stop,
}

/// A header, or a certificate, that the tracker does not take. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    /// The L1 origin is not final here yet.
    #[error("header {number}: L1 block {origin} is not final here yet")]
    OriginNotFinal {
        /// Number of the header in question.
        number: u64,
        /// L1 block number that the header names.
        origin: u64,
    },
    /// L1 cannot be asked, or answered with an error.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// As many headers wait for a certificate as may.
    #[error("header {number}: {limit} headers wait for a certificate already")]
    TooManyUncertified {
        /// Number of the header in question.
        number: u64,
        /// How many may wait.
        limit: u64,
    },
    /// Something before it is missing here.
    #[error("number {offered} is ahead of us: {expected} comes next")]
    Behind {
        /// The number to fetch first.
        expected: u64,
        /// The number that was offered.
        offered: u64,
    },
    /// The parent is another header than ours, and ours is not certified: fetch the certified one of that number first.
    #[error("header {number} needs {parent} before it, which is another header than ours")]
    AncestorDiffers {
        /// The number to fetch, with its certificate.
        number: u64,
        /// The header it must have.
        parent: B256,
    },
    /// The certificate is for another header of that number than ours: fetch the certified batch.
    #[error("the certificate of {number} names {certified}, ours is {known}")]
    OtherHeaderCertified {
        /// The number to fetch, with its certificate.
        number: u64,
        /// Hash of the header that is held here.
        known: B256,
        /// The header that the certificate names.
        certified: B256,
    },
    /// A second header, signed by the sequencer, for a number that has one.
    #[error("second header {offered} for number {number}, the first is {known}")]
    Second {
        /// Number of the header in question.
        number: u64,
        /// Hash of the header that is held here.
        known: B256,
        /// Hash of the header that was offered.
        offered: B256,
    },
    /// The header breaks a rule.
    #[error("header {number} is invalid: {fault}")]
    Invalid {
        /// Number of the header in question.
        number: u64,
        /// The rule that it breaks.
        fault: HeaderError,
    },
    /// No registered epoch contains the number.
    #[error("no epoch is registered for number {number}")]
    NoEpoch {
        /// Number of the header in question.
        number: u64,
    },
    /// L1 does not have the epoch that a header of its own names.
    #[error("L1 made a header of epoch {epoch}, which is not registered")]
    UnknownEpoch {
        /// Number of the epoch that L1 named.
        epoch: u64,
    },
    /// From this number on the chain has other rules than this build knows.
    #[error("number {number} has the rule set {rules}, which this build does not know: install a newer one")]
    UnknownRules {
        /// Number of the header in question.
        number: u64,
        /// The rule set that L1 schedules.
        rules: u16,
    },
    /// The origin is older than the epoch's notice: its certificates do not count on L1 yet.
    #[error("header {number}: epoch {epoch} counts from L1 block {counts_from} on, its origin is {origin}")]
    EpochNotInForce {
        /// Number of the header in question.
        number: u64,
        /// Number of its epoch.
        epoch: u64,
        /// The L1 block from which on the epoch counts.
        counts_from: u64,
        /// L1 origin of the header.
        origin: u64,
    },
    /// The certificate does not stand.
    #[error("certificate of {number}: {fault}")]
    Certificate {
        /// Number of the header in question.
        number: u64,
        /// What is wrong with it.
        fault: CertificateError,
    },
    /// The certificate is for another header than the one it came with.
    #[error("the certificate of {number} names {certified}, not {offered}")]
    CertificateMismatch {
        /// Number of the header in question.
        number: u64,
        /// Hash of the header that it came with.
        offered: B256,
        /// Hash of the header that it names.
        certified: B256,
    },
    /// Two certificates that exclude each other: more members are dishonest than the scheme bears.
    #[error("number {number} is certified as {known} and now also as {offered}: the committee is broken")]
    ConflictingCertificates {
        /// Number of the header in question.
        number: u64,
        /// Hash of the header that is certified here.
        known: B256,
        /// Hash of the header that was offered.
        offered: B256,
    },
    /// Nobody signed the header, and L1 did not make it as far as it is final here.
    #[error("header {number} is not signed, and L1 has not made it")]
    NotMadeByL1 {
        /// Number of the header in question.
        number: u64,
    },
    /// L1 made the header of that number itself: another one is void, even with a certificate.
    #[error("L1 made header {made} for number {number}, so {offered} is void")]
    ReplacedByL1 {
        /// Number of the header in question.
        number: u64,
        /// Hash of the header that L1 made.
        made: B256,
        /// Hash of the header that was offered.
        offered: B256,
    },
    /// L1 made a header of a number up to this one's, in a block that may not be final yet, and ours is another: nothing is
    /// voted for or certified in its place.
    #[error("L1 made header {made} for number {number}, which is not on this chain yet")]
    OverruledByL1 {
        /// Number of the header that L1 made.
        number: u64,
        /// Hash of that header.
        made: B256,
    },
    /// The oldest header without a certificate has an origin with which nobody could post it in time any more: L1 makes
    /// another one in its place.
    #[error("header {number} cannot be posted in time: its origin is {origin}, and L1 is at {newest}")]
    TooOldForL1 {
        /// Number of the header in question.
        number: u64,
        /// L1 origin of that header, the oldest without a certificate.
        origin: u64,
        /// L1's newest block, final or not.
        newest: u64,
    },
    /// The end of the header's epoch is announced, and what is not posted by then L1 takes no more.
    #[error(
        "header {number}: the end of epoch {epoch} is due after L1 block {until}, and it may not be posted by then"
    )]
    EpochEnds {
        /// Number of the header in question.
        number: u64,
        /// Number of its epoch.
        epoch: u64,
        /// The last L1 block before the end is due.
        until: u64,
    },
    /// L1 made a header in place of one that is certified here: nobody posted ours in time. What follows it here is
    /// void; begin anew from what L1 has.
    #[error(
        "L1 made header {made} for number {number}, and {known} is certified here: resynchronise from L1 (sequencer \
         and members with --rebuild-from-l1)"
    )]
    VoidedByL1 {
        /// Number of the header in question.
        number: u64,
        /// Hash of the header that is certified here.
        known: B256,
        /// The header that L1 made, or its parent.
        made: B256,
    },
    /// Its sequencer's time is over: the next one seals.
    #[error("header {number}: its sequencer's last L1 origin is {until}, and L1 is final up to {read_at}")]
    OutOfOffice {
        /// Number of the header in question.
        number: u64,
        /// The last origin of headers that this sequencer signs.
        until: u64,
        /// L1's newest final block.
        read_at: u64,
    },
    /// The disk did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The process is shutting down.
    #[error("shutting down")]
    Stopped,
}

impl TrackerError {
    /// A state that cannot be read back after headers were taken back.
    pub(super) fn reloading(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => Self::Store(error),
            OpenError::L1(fault) => Self::L1(fault),
            OpenError::DamagedLedger { number } => Self::Store(StoreError::Inconsistent {
                what: What::Account,
                number,
                reason: "the fee ledger does not have the root that the header commits to",
            }),
        }
    }

    /// What whoever offered it, or holds it, does about it.
    pub fn next_step(&self) -> NextStep {
        match self {
            Self::L1(fault) if !fault.may_pass() => NextStep::Stop,
            Self::OriginNotFinal { .. } | Self::L1(_) | Self::TooManyUncertified { .. } => NextStep::Retry,
            Self::Behind { .. } | Self::AncestorDiffers { .. } | Self::OtherHeaderCertified { .. } => {
                NextStep::CatchUp
            }
            // Our own facts contradict each other; L1 may have moved between two questions.
            Self::Invalid { fault, .. } if fault.is_ours() => NextStep::Retry,
            // A new epoch may have been registered since we read the list.
            Self::NoEpoch { .. } => NextStep::Retry,
            // L1 may be further for whoever sent it.
            Self::NotMadeByL1 { .. } => NextStep::Retry,
            // Final soon, and then followed; or taken back by L1.
            Self::OverruledByL1 { .. } | Self::TooOldForL1 { .. } => NextStep::Retry,
            // The governor may take the announcement back.
            Self::EpochEnds { .. } => NextStep::Retry,
            Self::ReplacedByL1 { .. } => NextStep::Reject,
            Self::VoidedByL1 { .. } => NextStep::Stop,
            Self::UnknownEpoch { .. } => NextStep::Retry,
            Self::UnknownRules { .. } => NextStep::Stop,
            Self::Second { .. }
            | Self::EpochNotInForce { .. }
            | Self::OutOfOffice { .. }
            | Self::Invalid { .. }
            | Self::Certificate { .. }
            | Self::CertificateMismatch { .. } => NextStep::Reject,
            Self::ConflictingCertificates { .. } | Self::Store(_) | Self::Stopped => NextStep::Stop,
        }
    }

    /// A stable name, in snake case, for refusals, counters and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::OriginNotFinal { .. } => "origin_not_final",
            Self::L1(_) => "l1_unavailable",
            Self::TooManyUncertified { .. } => "too_many_uncertified",
            Self::Behind { .. } => "behind",
            Self::AncestorDiffers { .. } => "ancestor_differs",
            Self::OtherHeaderCertified { .. } => "other_header_certified",
            Self::Second { .. } => "second_header",
            Self::Invalid { fault, .. } => fault.as_str(),
            Self::NoEpoch { .. } => "no_epoch",
            Self::UnknownEpoch { .. } => "unknown_epoch",
            Self::UnknownRules { .. } => "unknown_rules",
            Self::EpochNotInForce { .. } => "epoch_not_in_force",
            Self::Certificate { fault, .. } => certificate_fault_name(fault),
            Self::CertificateMismatch { .. } => "certificate_mismatch",
            Self::ConflictingCertificates { .. } => "conflicting_certificates",
            Self::NotMadeByL1 { .. } => "not_made_by_l1",
            Self::ReplacedByL1 { .. } => "replaced_by_l1",
            Self::OverruledByL1 { .. } => "overruled_by_l1",
            Self::TooOldForL1 { .. } => "too_old_for_l1",
            Self::EpochEnds { .. } => "epoch_ends",
            Self::OutOfOffice { .. } => "out_of_office",
            Self::VoidedByL1 { .. } => "voided_by_l1",
            Self::Store(_) => "storage",
            Self::Stopped => "shutting_down",
        }
    }
}

/// A stable name for what is wrong with a certificate, in snake case.
pub fn certificate_fault_name(fault: &CertificateError) -> &'static str {
    match fault {
        CertificateError::Epoch { .. } => "wrong_epoch",
        CertificateError::Number(_) => "wrong_number",
        CertificateError::Member(_) => "unknown_member",
        CertificateError::Duplicate(_) => "duplicate_member",
        CertificateError::Mixed(_) => "mixed_headers",
        CertificateError::TooFew { .. } => "too_few_signers",
        CertificateError::Signers(_) => "unknown_signers",
        CertificateError::Point => "bad_point",
        CertificateError::Signature => "bad_signature",
    }
}

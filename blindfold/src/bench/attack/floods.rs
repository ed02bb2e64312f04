//! What is sent.

use clap::ValueEnum;
use serde::Serialize;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Flood {
    /// Transfers.
    #[value(skip)]
    Honest,
    /// Transfers for which promises are asked.
    Promised,
    /// Paid envelopes that open to a message which is no bundle.
    Junk,
    /// Paid envelopes that open to nothing.
    Malformed,
    /// Envelopes whose proof of knowledge is damaged.
    DamagedProof,
    /// Envelopes of payers without a fee account.
    Unfunded,
    /// One honest envelope, again and again.
    Repeated,
    /// As many bytes that are no envelope.
    Undecodable,
    /// Acknowledgements of a certified header with a signature of nobody's, to the sequencer: it has the members' own.
    Acknowledgements,
    /// Wrong hints of the newest batch, to the sequencer, which has right ones.
    Hints,
    /// Calls for a release share against a forged certificate, to all members in turn.
    Shares,
    /// Calls for the release shares of old batches with a certificate that stands, to all members in turn.
    OldShares,
    /// Calls for the singleton share of a good envelope, to all members in turn.
    Singletons,
    /// Calls for a batch over WebSockets from which nothing is read, to the sequencer.
    UnreadSockets,
    /// Bytes that are no transaction, forced through L1.
    Forced,
    /// The data of a posted batch, given to L1 again.
    PostedData,
    /// Confidential withdrawals.
    #[value(skip)]
    Withdrawals,
    /// Confidential withdrawals whose proofs do not hold, against withdrawals.
    BadProofs,
}

impl Flood {
    /// Those held against honest transfers.
    pub(super) const PLAIN: [Self; 15] = [
        Self::Promised,
        Self::Junk,
        Self::Malformed,
        Self::DamagedProof,
        Self::Unfunded,
        Self::Repeated,
        Self::Undecodable,
        Self::Acknowledgements,
        Self::Hints,
        Self::Shares,
        Self::OldShares,
        Self::Singletons,
        Self::UnreadSockets,
        Self::Forced,
        Self::PostedData,
    ];

    /// Messages in place of one envelope: small ones cost so little that fewer would be lost in what the system counts by.
    pub(super) const fn messages(self) -> usize {
        match self {
            Self::Acknowledgements
            | Self::Hints
            | Self::Shares
            | Self::OldShares
            | Self::Singletons
            | Self::UnreadSockets => 10,
            _ => 1,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Promised => "promised",
            Self::Junk => "junk",
            Self::Malformed => "malformed",
            Self::DamagedProof => "damaged_proof",
            Self::Unfunded => "unfunded",
            Self::Repeated => "repeated",
            Self::Undecodable => "undecodable",
            Self::Acknowledgements => "acknowledgements",
            Self::Hints => "hints",
            Self::Shares => "shares",
            Self::OldShares => "old_shares",
            Self::Singletons => "singletons",
            Self::UnreadSockets => "unread_sockets",
            Self::Forced => "forced",
            Self::PostedData => "posted_data",
            Self::Withdrawals => "withdrawals",
            Self::BadProofs => "bad_proofs",
        }
    }
}

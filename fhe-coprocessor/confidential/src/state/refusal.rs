//! Why a transaction changes nothing.

use std::fmt;

/// Why a transaction was refused. The names are stable; `docs/coprocessor.md` has the order of looking for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// The bytes are no transaction, or not its one encoding. The sender's software is at fault.
    Undecodable,
    /// The signature is not that of the address that must sign, for this deployment.
    InvalidSignature,
    /// The address has an account.
    AlreadyRegistered,
    /// No index is left for another account.
    TooManyAccounts,
    /// The account that is to act has never been registered.
    UnknownAccount,
    /// The account that is to be credited has never been registered.
    UnknownReceiver,
    /// Sender and receiver are one account.
    SameAccount,
    /// The nonce was used before.
    NonceTooLow,
    /// A transaction before this one is missing.
    NonceTooHigh,
    /// The fee is below the operator's minimum: make the transfer again with more.
    FeeTooLow,
    /// A public amount of 0, or a deposit below the minimum fee.
    AmountTooLow,
    /// The public balance does not cover the amount.
    InsufficientFunds,
    /// `available` cannot take another term: refresh it.
    AvailableFull,
    /// The receiver's `pending` cannot take another term: the receiver must roll over.
    PendingFull,
    /// `available` and `pending` together have too many terms: refresh, then roll over.
    RolloverFull,
    /// More would leave the accounts than ever went in. Proofs exclude it; this is the last line if they fail.
    ConfidentialSupply,
    /// A public balance, or the sum of confidential ones, would exceed 64 bits.
    SupplyOverflow,
    /// The proof does not prove the transaction from this state.
    InvalidProof,
    /// Too many bad proofs for this nonce, this account or in all stood before it in its batch: it was not looked at, and can
    /// be sent again.
    TooManyAttempts,
}

impl Refusal {
    /// Every reason that a receipt may give.
    pub const ALL: [Self; 19] = [
        Self::Undecodable,
        Self::InvalidSignature,
        Self::AlreadyRegistered,
        Self::TooManyAccounts,
        Self::UnknownAccount,
        Self::UnknownReceiver,
        Self::SameAccount,
        Self::NonceTooLow,
        Self::NonceTooHigh,
        Self::FeeTooLow,
        Self::AmountTooLow,
        Self::InsufficientFunds,
        Self::AvailableFull,
        Self::PendingFull,
        Self::RolloverFull,
        Self::ConfidentialSupply,
        Self::SupplyOverflow,
        Self::InvalidProof,
        Self::TooManyAttempts,
    ];

    /// The name in receipts; it never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::InvalidSignature => "invalid_signature",
            Self::AlreadyRegistered => "already_registered",
            Self::TooManyAccounts => "too_many_accounts",
            Self::UnknownAccount => "unknown_account",
            Self::UnknownReceiver => "unknown_receiver",
            Self::SameAccount => "same_account",
            Self::NonceTooLow => "nonce_too_low",
            Self::NonceTooHigh => "nonce_too_high",
            Self::FeeTooLow => "fee_too_low",
            Self::AmountTooLow => "amount_too_low",
            Self::InsufficientFunds => "insufficient_funds",
            Self::AvailableFull => "available_full",
            Self::PendingFull => "pending_full",
            Self::RolloverFull => "rollover_full",
            Self::ConfidentialSupply => "confidential_supply",
            Self::SupplyOverflow => "supply_overflow",
            Self::InvalidProof => "invalid_proof",
            Self::TooManyAttempts => "too_many_attempts",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

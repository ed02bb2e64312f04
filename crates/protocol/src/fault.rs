//! Why an item of a batch is skipped.

use serde::{Serialize, Serializer};
use std::fmt;

/// Verdict code of an accepted envelope.
pub const CODE_ACCEPTED: u8 = 0;
/// Verdict code of an envelope forced into a header that L1 made.
pub const CODE_VOID: u8 = 0xfe;
/// Verdict code of a forced transaction.
pub const CODE_FORCED_TRANSACTION: u8 = 0xff;

/// Whether an item that stands in batch `number` with this verdict code keeps the promise that was given for its bytes up
/// to batch `seal_by`: accepted there or in that batch already, or, in the last batch that keeps it, spoilt by its payer
/// ([`EnvelopeError::spoilt_by_payer`]). An earlier batch that says so may be older than the promise. `Promises` of the
/// contracts has the same rule (P-4).
pub fn keeps_promise(code: u8, number: u64, seal_by: u64) -> bool {
    match EnvelopeError::from_code(code) {
        None => code == CODE_ACCEPTED && number <= seal_by,
        Some(EnvelopeError::Duplicate) => number <= seal_by,
        Some(fault) => fault.spoilt_by_payer() && number == seal_by,
    }
}

/// Why an envelope is skipped, in the order in which the rule looks: the first that applies counts (V-10, V-11).
///
/// Always the fault of the envelope's maker or payer, never a fault of the header that holds it; but for
/// [`EnvelopeError::Void`], which is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EnvelopeError {
    /// The bytes are no envelope.
    Undecodable,
    /// The chain id is not the rollup's.
    WrongChain,
    /// L1 chain id or inbox are not the deployment's.
    WrongDeployment,
    /// Not the epoch of the batch number.
    WrongEpoch,
    /// Not the epoch's encryption key.
    WrongEncryptionKey,
    /// A flag that the rule set does not know.
    UnknownFlags,
    /// E is not a size bucket.
    BadSize,
    /// More gas than a whole second may ask for.
    GasLimitTooHigh,
    /// The expiry is below the batch number.
    Expired,
    /// The expiry is beyond the window or the epoch.
    ExpiryTooFar,
    /// An item with this id was accepted in this batch before.
    Duplicate,
    /// The signature is not the payer's.
    InvalidFeeSignature,
    /// C is not a point it may be.
    InvalidPoint,
    /// The proof of knowledge does not hold.
    InvalidProof,
    /// The payer's fee nonce is in use.
    FeeNonceUsed,
    /// The maximal fee is below the base fee or the priority fee, or the maximal gas fee below the gas base fee.
    FeeTooLow,
    /// The payer's balance does not cover fee and surcharge.
    InsufficientFunds,
    /// Not the generation of the batch's parent: L1 has made a header since the envelope was made.
    WrongGeneration,
    /// Forced into a header that L1 made: nobody certified it, so nobody opens it. Never the rule's own answer.
    Void,
}

impl EnvelopeError {
    /// Every fault in the rule's order, which leaves out [`EnvelopeError::Void`].
    pub const ALL: [Self; 18] = [
        Self::Undecodable,
        Self::WrongChain,
        Self::WrongDeployment,
        Self::WrongEpoch,
        Self::WrongEncryptionKey,
        Self::UnknownFlags,
        Self::BadSize,
        Self::GasLimitTooHigh,
        Self::Expired,
        Self::ExpiryTooFar,
        Self::Duplicate,
        Self::InvalidFeeSignature,
        Self::InvalidPoint,
        Self::InvalidProof,
        Self::FeeNonceUsed,
        Self::FeeTooLow,
        Self::InsufficientFunds,
        Self::WrongGeneration,
    ];

    /// The stable name in receipts and errors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::WrongChain => "wrong_chain",
            Self::WrongDeployment => "wrong_deployment",
            Self::WrongEpoch => "wrong_epoch",
            Self::WrongEncryptionKey => "wrong_encryption_key",
            Self::UnknownFlags => "unknown_flags",
            Self::BadSize => "bad_size",
            Self::GasLimitTooHigh => "gas_limit_too_high",
            Self::Expired => "expired",
            Self::ExpiryTooFar => "expiry_too_far",
            Self::Duplicate => "duplicate",
            Self::InvalidFeeSignature => "invalid_fee_signature",
            Self::InvalidPoint => "invalid_point",
            Self::InvalidProof => "invalid_proof",
            Self::FeeNonceUsed => "fee_nonce_used",
            Self::FeeTooLow => "fee_too_low",
            Self::InsufficientFunds => "insufficient_funds",
            Self::WrongGeneration => "wrong_generation",
            Self::Void => "void",
        }
    }

    /// The fault with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Void]).find(|fault| fault.as_str() == name)
    }

    /// The verdict code in the envelope tree: the fault's place in the rule's list, from 1, or 0xfe for void.
    pub const fn code(self) -> u8 {
        match self {
            Self::Void => CODE_VOID,
            // The variants stand in the rule's order.
            fault => fault as u8 + 1,
        }
    }

    /// The fault with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Void]).find(|fault| fault.code() == code)
    }

    /// Whether the payer of a promised envelope has brought this about: he used its fee nonce, or spent what it costs.
    pub const fn spoilt_by_payer(self) -> bool {
        matches!(self, Self::FeeNonceUsed | Self::InsufficientFunds)
    }

    /// Whether the same envelope may pass later: the fault depends on the ledger's state, not on the envelope alone.
    pub const fn may_pass_later(self) -> bool {
        matches!(self, Self::FeeTooLow | Self::InsufficientFunds)
    }
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for EnvelopeError {}

impl Serialize for EnvelopeError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

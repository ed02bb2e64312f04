//! Why a committed transaction is not in the block: the enumerated part of the skip rule that needs state.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A name that is no [`SkipReason`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a skip reason")]
pub struct UnknownSkipReason(pub String);

macro_rules! skip_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a transaction cannot execute where it stands in the committed list.
        ///
        /// The names ([`SkipReason::as_str`]) are stable: the filter of the execution client, receipts and
        /// metrics use them. Whatever the reason, a skipped transaction changes no state and pays no L2 gas.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum SkipReason {
            $($(#[$doc])* $variant,)*
        }

        impl SkipReason {
            /// Every reason, in the order in which the filter lists them.
            pub const ALL: &'static [SkipReason] = &[$(Self::$variant,)*];

            /// The stable name, in snake case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

skip_reasons! {
    /// Not one canonical EIP-2718 transaction and nothing more.
    Undecodable = "undecodable",
    /// A type other than 0, 1, 2 and 4. Type 0x7e would mint money, type 0x03 needs blobs.
    TypeNotAllowed = "type_not_allowed",
    /// A legacy transaction without replay protection (EIP-155).
    Unprotected = "unprotected",
    /// It was signed for another chain.
    WrongChainId = "wrong_chain_id",
    /// No sender can be recovered, or s is in the upper half.
    InvalidSignature = "invalid_signature",
    /// The very same transaction is in this block already.
    Duplicate = "duplicate",
    /// The sender's nonce has passed this one.
    NonceTooLow = "nonce_too_low",
    /// A transaction of the sender is missing before this one.
    NonceTooHigh = "nonce_too_high",
    /// The sender's nonce cannot rise any more.
    NonceMax = "nonce_max",
    /// Gas limit above 2^24 (EIP-7825).
    GasLimitTooHigh = "gas_limit_too_high",
    /// The sender is a contract (EIP-3607).
    SenderNotEoa = "sender_not_eoa",
    /// Fee cap above 2^256 - 1.
    FeeCapTooLarge = "fee_cap_too_large",
    /// Priority fee above 2^256 - 1.
    TipTooLarge = "tip_too_large",
    /// Priority fee above the fee cap.
    TipAboveFeeCap = "tip_above_fee_cap",
    /// Fee cap below the block's base fee.
    FeeCapBelowBaseFee = "fee_cap_below_base_fee",
    /// A type-4 transaction without authorizations.
    AuthorizationListEmpty = "authorization_list_empty",
    /// A type-4 transaction that creates a contract.
    AuthorizationCreate = "authorization_create",
    /// The sender cannot pay gas limit × fee cap + value.
    InsufficientFunds = "insufficient_funds",
    /// The sender cannot pay the value once gas is paid.
    InsufficientFundsForTransfer = "insufficient_funds_for_transfer",
    /// Gas limit above what the block has left.
    BlockGasExhausted = "block_gas_exhausted",
    /// The block would exceed the client's limit on its encoded size (EIP-7934).
    BlockSizeExhausted = "block_size_exhausted",
    /// Gas limit below the intrinsic cost.
    IntrinsicGas = "intrinsic_gas",
    /// Gas limit below the floor for call data (EIP-7623).
    FloorDataGas = "floor_data_gas",
    /// The intrinsic cost exceeds 64 bits.
    GasOverflow = "gas_overflow",
    /// Init code above 48 KiB (EIP-3860).
    InitCodeTooLarge = "init_code_too_large",
    /// The client refused it for a reason not listed here; its log has the words.
    Other = "other",
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SkipReason {
    type Err = UnknownSkipReason;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == name)
            .ok_or_else(|| UnknownSkipReason(name.chars().take(64).collect()))
    }
}

impl Serialize for SkipReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SkipReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_round_trip() {
        let mut seen = HashSet::new();
        for &reason in SkipReason::ALL {
            assert!(seen.insert(reason.as_str()), "{reason} twice");
            assert_eq!(reason.to_string().parse::<SkipReason>().unwrap(), reason);
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(json, format!("\"{reason}\""));
            assert_eq!(serde_json::from_str::<SkipReason>(&json).unwrap(), reason);
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!("Nonce".parse::<SkipReason>(), Err(UnknownSkipReason("Nonce".into())));
        assert!(serde_json::from_str::<SkipReason>("\"nonce-too-low\"").is_err());
        assert!(serde_json::from_str::<SkipReason>("7").is_err());
    }
}

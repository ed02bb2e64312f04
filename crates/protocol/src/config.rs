//! The chain's settings, the same for every party: the file `rollup.json`.

use crate::eip712::Deployment;
use crate::limits::{
    FORCED_ENVELOPE_GAS_DIVISOR, MAX_FORCED_GAS, MAX_FORCED_ITEMS, RESERVED_BLOCK_GAS, RESERVED_DEPOSIT_GAS,
};
use alloy_primitives::Address;
use serde::{Deserialize, Serialize};

/// The least block gas limit: the reserves, and a header full of forced transactions. Were it less, a header that must
/// take them all could break the sum over its second, and no header would be valid.
pub const MIN_BLOCK_GAS: u64 =
    RESERVED_BLOCK_GAS + RESERVED_DEPOSIT_GAS + MAX_FORCED_ITEMS as u64 * MAX_FORCED_GAS;

/// W unless the chain sets another: four hours. An origin is final, which takes L1 a quarter of an hour at best, before a
/// header can name it; while L1's finality stands still, headers go on for W.
pub const DEFAULT_MAX_ORIGIN_AGE_SECONDS: u32 = 14_400;

/// Everything that validity depends on besides the protocol's own limits.
///
/// Unknown keys are refused, and [`ChainConfig::validate`] runs before any use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainConfig {
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
    /// The `CommitteeRegistry`: epochs, rule sets and the sequencer's key.
    pub registry: Address,
    /// The `FeeVault`: deposits and withdrawals of fee accounts.
    pub fee_vault: Address,
    /// The `ForcedQueue`: items that headers must take.
    pub forced_queue: Address,
    /// The `HintRegistry`: posted hints and their disputes.
    pub hint_registry: Address,
    /// The `HintVerifier`, which judges one hint.
    pub hint_verifier: Address,
    /// The `DepositPortal`: ether and calls from L1 to L2.
    pub deposit_portal: Address,
    /// The `OutputRegistry`: the sequencer's claims of L2 state.
    pub output_registry: Address,
    /// The deadlines that L1 holds everyone to.
    pub timing: L1Timing,
    /// Signs headers and promises, and earns the ordering fees, until L1 names another key.
    pub sequencer: Address,
    /// Receives the fees of L2 blocks.
    pub fee_recipient: Address,
    /// Credited with the base parts of the ordering fees. From the zero address nobody can withdraw: they are burnt.
    pub base_fee_recipient: Address,
    /// Gas limit of an L2 block.
    pub block_gas_limit: u64,
    /// Ordering fee per item byte of the first batch, in wei.
    #[serde(with = "quantity")]
    pub initial_base_fee: u128,
    /// The base fee never falls below this, in wei per item byte.
    #[serde(with = "quantity")]
    pub min_base_fee: u128,
    /// Ordering fee per unit of gas that an envelope of the first batch reserves, in wei.
    #[serde(with = "quantity")]
    pub initial_gas_base_fee: u128,
    /// The gas base fee never falls below this, in wei per unit of gas.
    #[serde(with = "quantity")]
    pub min_gas_base_fee: u128,
    /// Held for each accepted envelope until it is known to be well-formed, in wei. Zero switches it off.
    #[serde(with = "quantity")]
    pub malformed_surcharge: u128,
    /// The L1 block from which on deposits count (exclusive).
    pub genesis_l1_origin: u64,
}

/// The shortest `postingDeadline` that leaves members time to give shares, in L1 blocks. They give none of a batch whose
/// L1 origin is half of it old while it is not posted, and an origin is final, so already some 65 to 100 blocks old, when
/// it is sealed.
pub const MIN_SOUND_POSTING_DEADLINE: u32 = 400;

/// `Timing` of the contracts, fixed at deployment, in L1 blocks unless the name says another unit (L-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct L1Timing {
    /// Without a certified header posted for so long, anyone may have L1 make one.
    pub posting_deadline: u32,
    /// A header whose origin is so far behind an item of the forced queue must have taken it.
    pub forced_delay: u32,
    /// How long an accused sequencer may answer.
    pub answer_window: u32,
    /// Without hints on L1 for so long after its posting, a run may be declared void.
    pub hint_deadline: u32,
    /// How long posted hints may be challenged.
    pub challenge_window: u32,
    /// How long a withdrawal from a fee account waits.
    pub withdrawal_delay: u32,
    /// W: how far a header's time may be ahead of its L1 origin's.
    pub max_origin_age_seconds: u32,
}

impl Default for L1Timing {
    /// What the deploy command proposes: two days, one hour, one day, half a day, one day and five days of 12 s blocks;
    /// four hours.
    fn default() -> Self {
        Self {
            posting_deadline: 14_400,
            forced_delay: 300,
            answer_window: 7_200,
            hint_deadline: 3_600,
            challenge_window: 7_200,
            withdrawal_delay: 36_000,
            max_origin_age_seconds: DEFAULT_MAX_ORIGIN_AGE_SECONDS,
        }
    }
}

impl L1Timing {
    /// The checks of `BlindedInbox`'s constructor.
    pub fn validate(&self) -> Result<(), ChainConfigError> {
        let fields = [
            ("timing.postingDeadline", self.posting_deadline),
            ("timing.forcedDelay", self.forced_delay),
            ("timing.answerWindow", self.answer_window),
            ("timing.hintDeadline", self.hint_deadline),
            ("timing.challengeWindow", self.challenge_window),
            ("timing.withdrawalDelay", self.withdrawal_delay),
            ("timing.maxOriginAgeSeconds", self.max_origin_age_seconds),
        ];
        for (name, blocks) in fields {
            if blocks == 0 {
                return Err(ChainConfigError::ZeroTiming(name));
            }
        }
        if self.forced_delay >= self.posting_deadline {
            return Err(ChainConfigError::ForcedDelay);
        }
        if u64::from(self.withdrawal_delay)
            <= u64::from(self.posting_deadline) + u64::from(self.challenge_window)
        {
            return Err(ChainConfigError::WithdrawalDelay);
        }
        Ok(())
    }
}

/// A setting that no chain can run with. The fault of whoever wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainConfigError {
    /// A chain id is zero.
    #[error("{0} is zero")]
    ZeroChainId(&'static str),
    /// The address of this name is zero.
    #[error("{0} is the zero address")]
    ZeroAddress(&'static str),
    /// Rollup and L1 share a chain id, so that a transaction for one is one for the other.
    #[error("rollup and L1 have the same chain id {0}")]
    SameChainId(u64),
    /// The block gas limit does not hold the reserves and the forced items of one header, which must be taken together.
    #[error("blockGasLimit {0} is below {MIN_BLOCK_GAS}, which a header's forced transactions may take")]
    BlockGas(u64),
    /// A deadline of no blocks.
    #[error("{0} is zero")]
    ZeroTiming(&'static str),
    /// Forced items would be due only after L1 has made a header itself.
    #[error("timing.forcedDelay is not below timing.postingDeadline")]
    ForcedDelay,
    /// A withdrawal could be paid before what it is checked against is settled.
    #[error("timing.withdrawalDelay is not above timing.postingDeadline + timing.challengeWindow")]
    WithdrawalDelay,
    /// The base fee starts below its minimum.
    #[error("initialBaseFee is below minBaseFee")]
    BaseFee,
    /// A minimum of zero lets the base fee reach zero, from which it can hardly rise.
    #[error("minBaseFee is zero")]
    ZeroMinBaseFee,
    /// The gas base fee starts below its minimum.
    #[error("initialGasBaseFee is below minGasBaseFee")]
    GasBaseFee,
    /// A minimum of zero lets the gas base fee reach zero, from which it can hardly rise.
    #[error("minGasBaseFee is zero")]
    ZeroMinGasBaseFee,
}

impl ChainConfig {
    /// Checks what can be checked without L1.
    pub fn validate(&self) -> Result<(), ChainConfigError> {
        for (name, id) in [("chainId", self.chain_id), ("l1ChainId", self.deployment.l1_chain_id)] {
            if id == 0 {
                return Err(ChainConfigError::ZeroChainId(name));
            }
        }
        if self.chain_id == self.deployment.l1_chain_id {
            return Err(ChainConfigError::SameChainId(self.chain_id));
        }
        let addresses = [
            ("inbox", self.deployment.inbox),
            ("registry", self.registry),
            ("feeVault", self.fee_vault),
            ("forcedQueue", self.forced_queue),
            ("hintRegistry", self.hint_registry),
            ("hintVerifier", self.hint_verifier),
            ("depositPortal", self.deposit_portal),
            ("outputRegistry", self.output_registry),
            ("sequencer", self.sequencer),
            ("feeRecipient", self.fee_recipient),
        ];
        for (name, address) in addresses {
            if address.is_zero() {
                return Err(ChainConfigError::ZeroAddress(name));
            }
        }
        self.timing.validate()?;
        if self.block_gas_limit < MIN_BLOCK_GAS {
            return Err(ChainConfigError::BlockGas(self.block_gas_limit));
        }
        if self.min_base_fee == 0 {
            return Err(ChainConfigError::ZeroMinBaseFee);
        }
        if self.initial_base_fee < self.min_base_fee {
            return Err(ChainConfigError::BaseFee);
        }
        if self.min_gas_base_fee == 0 {
            return Err(ChainConfigError::ZeroMinGasBaseFee);
        }
        if self.initial_gas_base_fee < self.min_gas_base_fee {
            return Err(ChainConfigError::GasBaseFee);
        }
        Ok(())
    }

    /// Gas that one forced envelope may ask for (FI-5).
    pub fn forced_envelope_gas_limit(&self) -> u64 {
        self.second_gas_limit() / FORCED_ENVELOPE_GAS_DIVISOR
    }

    /// Gas that the items of one whole second may ask for together. L1 deposits have gas of their own beside it.
    pub fn second_gas_limit(&self) -> u64 {
        // A valid configuration never saturates; an unvalidated one must not wrap round.
        self.block_gas_limit.saturating_sub(RESERVED_BLOCK_GAS + RESERVED_DEPOSIT_GAS)
    }
}

/// Serde adapter for wei amounts: a JSON-RPC quantity, `0x` and hexadecimal digits without leading zeros.
pub mod quantity {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the amount as a `0x` quantity.
    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:#x}"))
    }

    /// Reads the amount from a `0x` quantity.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").ok_or_else(|| D::Error::custom("a quantity starts with 0x"))?;
        let canonical = digits == "0" || !digits.starts_with('0');
        if !canonical || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(D::Error::custom("a quantity has hexadecimal digits without leading zeros"));
        }
        u128::from_str_radix(digits, 16)
            .map_err(|_| D::Error::custom("a quantity of wei has at most 128 bits"))
    }
}

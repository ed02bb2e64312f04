//! Bringing up the contracts of a new deployment.

use alloy_primitives::Address;
use blindfold_protocol::{Deployment, L1Timing};
use serde::{Deserialize, Serialize};

use crate::{
    config::{L1Config, L1Contracts},
    contracts::BlindedInbox,
};

/// What a forced byte costs unless said otherwise, in wei: the 40 gas of a posted byte at 1 gwei.
pub const DEFAULT_FORCED_FEE_PER_BYTE_WEI: u128 = 40_000_000_000;
/// The least price of the gas that a forced item reserves unless said otherwise, in wei: 10,000,000 gas cost 0.0001 ether.
pub const DEFAULT_FORCED_GAS_PRICE_WEI: u64 = 10_000_000;
/// The least bond of a publisher with open postings unless said otherwise, in wei: half of it pays the dearest challenge
/// at 100 gwei many times over, and the other half is what killing one's own right postings costs.
pub const DEFAULT_PUBLISHER_BOND_WEI: u128 = 10_000_000_000_000_000_000;
/// What a challenge stakes unless said otherwise, in wei.
pub const DEFAULT_CHALLENGE_STAKE_WEI: u128 = 100_000_000_000_000_000;

/// How long after its posting a header's ledger pays out unless said otherwise, in L1 blocks: a day.
pub const DEFAULT_CLAIM_DELAY: u32 = 7_200;

/// `RegistrySettings` of the contracts, fixed at deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitteeSettings {
    /// How long after its registration an epoch, but the first, certifies; in L1 blocks.
    pub epoch_notice: u32,
    /// How far ahead of the posted head a change must begin, in batch numbers.
    pub switch_lead: u64,
    /// The fewest members of a committee.
    pub min_members: u16,
    /// The least threshold of a committee.
    pub min_threshold: u16,
}

impl Default for CommitteeSettings {
    /// A week; as many batches of 250 ms as may be certified and not posted (two days and an hour); three of four.
    fn default() -> Self {
        Self { epoch_notice: 50_400, switch_lead: 705_600, min_members: 4, min_threshold: 3 }
    }
}

/// What is fixed at deployment for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployConfig {
    /// Chain id that the endpoint must have.
    pub l1_chain_id: u64,
    /// Who may append epochs and schedule changes.
    pub governor: Address,
    /// Whose signature stands under headers, and whose bond is at stake, until the governor names another.
    pub sequencer: Address,
    /// The deadlines of the contracts.
    pub timing: L1Timing,
    /// What is fixed about committees.
    pub committees: CommitteeSettings,
    /// How long after its posting a header's ledger pays out, in L1 blocks.
    pub claim_delay: u32,
    /// What a byte of a forced item costs, in wei.
    pub forced_fee_per_byte_wei: u128,
    /// The least price of the gas that a forced item reserves, in wei.
    pub forced_gas_price_wei: u64,
    /// Whether the portal takes deposits before there is a way back for them.
    pub deposits_without_outlet: bool,
    /// What each member of a committee has at stake at least, in wei; 0 for nothing.
    pub member_stake_wei: u128,
    /// The least bond of a publisher with open postings, in wei.
    pub publisher_bond_wei: u128,
    /// What a challenge of them stakes, in wei.
    pub challenge_stake_wei: u128,
}

impl DeployConfig {
    /// With the default deadlines, fees, bonds and stakes.
    pub fn new(l1_chain_id: u64, governor: Address, sequencer: Address) -> Self {
        Self {
            l1_chain_id,
            governor,
            sequencer,
            timing: L1Timing::default(),
            committees: CommitteeSettings::default(),
            claim_delay: DEFAULT_CLAIM_DELAY,
            forced_fee_per_byte_wei: DEFAULT_FORCED_FEE_PER_BYTE_WEI,
            forced_gas_price_wei: DEFAULT_FORCED_GAS_PRICE_WEI,
            deposits_without_outlet: false,
            member_stake_wei: 0,
            publisher_bond_wei: DEFAULT_PUBLISHER_BOND_WEI,
            challenge_stake_wei: DEFAULT_CHALLENGE_STAKE_WEI,
        }
    }
}

/// Where the contracts of a deployment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Addresses {
    /// Chain id of the L1 they stand on.
    pub l1_chain_id: u64,
    /// `CommitteeRegistry`: epochs, rule sets and sequencers.
    pub registry: Address,
    /// `ForcedQueue`: items that headers must take.
    pub forced_queue: Address,
    /// `BlindedInbox`: the one chain of headers.
    pub inbox: Address,
    /// `FeeVault`: deposits and withdrawals of fee accounts.
    pub fee_vault: Address,
    /// `HintVerifier`: the judge of one hint.
    pub hint_verifier: Address,
    /// `HintRegistry`: posted hints and their disputes.
    pub hint_registry: Address,
    /// `DepositPortal`: ether and calls from L1 to L2.
    pub deposit_portal: Address,
    /// `OutputRegistry`: the sequencer's claims of L2 state.
    pub output_registry: Address,
    /// The first block that can hold one of them: nothing happened before it.
    pub block: u64,
}

impl Addresses {
    /// The deployment id: L1 chain id and inbox.
    pub fn deployment(&self) -> Deployment {
        Deployment { l1_chain_id: self.l1_chain_id, inbox: self.inbox }
    }

    /// The contracts beside the inbox.
    pub fn contracts(&self) -> L1Contracts {
        L1Contracts {
            registry: self.registry,
            fee_vault: self.fee_vault,
            forced_queue: self.forced_queue,
            hint_registry: self.hint_registry,
            hint_verifier: self.hint_verifier,
            deposit_portal: self.deposit_portal,
            output_registry: self.output_registry,
        }
    }

    /// The configuration of a client for these contracts.
    pub fn client_config(&self, url: impl Into<String>) -> L1Config {
        L1Config::with_contracts(url, self.deployment(), self.contracts())
    }
}

pub(crate) fn timing(timing: &L1Timing) -> BlindedInbox::Timing {
    BlindedInbox::Timing {
        postingDeadline: timing.posting_deadline,
        forcedDelay: timing.forced_delay,
        answerWindow: timing.answer_window,
        hintDeadline: timing.hint_deadline,
        challengeWindow: timing.challenge_window,
        withdrawalDelay: timing.withdrawal_delay,
        maxOriginAgeSeconds: timing.max_origin_age_seconds,
    }
}

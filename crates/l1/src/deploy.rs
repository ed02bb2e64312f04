//! Bringing up the contracts of a new deployment.

use alloy_primitives::{Address, Bytes, TxKind, U256, Uint};
use alloy_sol_types::SolConstructor;
use blindfold_protocol::{Deployment, L1Timing, SigningKey};
use serde::{Deserialize, Serialize};

use crate::{
    L1Client, L1Config, L1Contracts, L1Error,
    config::DEFAULT_CONFIRMATION_TIMEOUT_MS,
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, EncryptionKeyVerifier, FeeVault, ForcedQueue,
        HintRegistry, HintVerifier, MemberStakes, OutputRegistry,
    },
    sender::{Call, Sender},
    transport::Rpc,
};

/// Calls during a deployment may take this long.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
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
    /// The least threshold.
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
    /// All deadlines.
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
    /// L1 chain id.
    pub l1_chain_id: u64,
    /// `CommitteeRegistry`.
    pub registry: Address,
    /// `ForcedQueue`.
    pub forced_queue: Address,
    /// `BlindedInbox`.
    pub inbox: Address,
    /// `FeeVault`.
    pub fee_vault: Address,
    /// `HintVerifier`.
    pub hint_verifier: Address,
    /// `HintRegistry`.
    pub hint_registry: Address,
    /// `DepositPortal`.
    pub deposit_portal: Address,
    /// `OutputRegistry`.
    pub output_registry: Address,
    /// The block in which the first of them was deployed: nothing happened before it.
    pub block: u64,
}

impl Addresses {
    /// The deployment id.
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

/// Deploys the contracts from the account of `key`, which must send nothing else meanwhile: some are told the
/// address of another before that one exists.
///
/// # Errors
/// [`L1Error::WrongChain`]; [`L1Error::NoContract`] or [`L1Error::OtherDeployment`] when the account sent something in
/// between; [`L1Error::Reverted`] for settings that a contract refuses; the errors of a call.
pub async fn deploy(url: &str, key: &SigningKey, config: DeployConfig) -> Result<Addresses, L1Error> {
    let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
    let given = rpc.chain_id().await?;
    if given != config.l1_chain_id {
        return Err(L1Error::WrongChain { expected: config.l1_chain_id, given });
    }
    let sender = Sender::new(rpc, config.l1_chain_id, key.clone(), DEFAULT_CONFIRMATION_TIMEOUT_MS);
    let nonce = sender.nonce().await?;
    let [registry, queue, inbox, vault, verifier, hints, portal, outputs, key_verifier, stakes] =
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|later| key.address().create(nonce + later));

    let committees = config.committees;
    let settings = CommitteeRegistry::RegistrySettings {
        epochNotice: committees.epoch_notice,
        switchLead: committees.switch_lead,
        minMembers: committees.min_members,
        minThreshold: committees.min_threshold,
    };
    let arguments = CommitteeRegistry::constructorCall {
        governor_: config.governor,
        inbox_: inbox,
        sequencer_: config.sequencer,
        keyVerifier_: key_verifier,
        stakes_: if config.member_stake_wei == 0 { Address::ZERO } else { stakes },
        settings,
    };
    let code = &CommitteeRegistry::BYTECODE;
    let block = create(&sender, "CommitteeRegistry", code, &arguments.abi_encode()).await?;
    let arguments = ForcedQueue::constructorCall {
        inbox_: inbox,
        registry_: registry,
        feePerByteWei_: config.forced_fee_per_byte_wei,
        minGasPriceWei_: config.forced_gas_price_wei,
    };
    create(&sender, "ForcedQueue", &ForcedQueue::BYTECODE, &arguments.abi_encode()).await?;
    let arguments =
        BlindedInbox::constructorCall { registry_: registry, queue_: queue, timing_: timing(&config.timing) };
    create(&sender, "BlindedInbox", &BlindedInbox::BYTECODE, &arguments.abi_encode()).await?;
    let arguments =
        FeeVault::constructorCall { inbox_: inbox, registry_: registry, claimDelay_: config.claim_delay };
    create(&sender, "FeeVault", &FeeVault::BYTECODE, &arguments.abi_encode()).await?;
    create(&sender, "HintVerifier", &HintVerifier::BYTECODE, &[]).await?;
    let arguments = HintRegistry::constructorCall {
        inbox_: inbox,
        registry_: registry,
        verifier_: verifier,
        publisherBond_: config.publisher_bond_wei,
        challengeStake_: config.challenge_stake_wei,
    };
    create(&sender, "HintRegistry", &HintRegistry::BYTECODE, &arguments.abi_encode()).await?;
    let arguments = DepositPortal::constructorCall {
        governor_: config.governor,
        takesDepositsWithoutOutlet_: config.deposits_without_outlet,
    };
    create(&sender, "DepositPortal", &DepositPortal::BYTECODE, &arguments.abi_encode()).await?;
    let arguments = OutputRegistry::constructorCall { inbox_: inbox };
    create(&sender, "OutputRegistry", &OutputRegistry::BYTECODE, &arguments.abi_encode()).await?;
    create(&sender, "EncryptionKeyVerifier", &EncryptionKeyVerifier::BYTECODE, &[]).await?;
    if config.member_stake_wei != 0 {
        let arguments = MemberStakes::constructorCall {
            registry_: registry,
            inbox_: inbox,
            stakeWei_: Uint::<96, 2>::saturating_from(config.member_stake_wei),
        };
        create(&sender, "MemberStakes", &MemberStakes::BYTECODE, &arguments.abi_encode()).await?;
    }

    let addresses = Addresses {
        l1_chain_id: config.l1_chain_id,
        registry,
        forced_queue: queue,
        inbox,
        fee_vault: vault,
        hint_verifier: verifier,
        hint_registry: hints,
        deposit_portal: portal,
        output_registry: outputs,
        block,
    };
    // That each is where it should be and names the others.
    L1Client::connect(addresses.client_config(url)).await?;
    Ok(addresses)
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

async fn create(sender: &Sender, name: &'static str, code: &Bytes, arguments: &[u8]) -> Result<u64, L1Error> {
    let input = [code.as_ref(), arguments].concat().into();
    let (to, value, blobs) = (TxKind::Create, U256::ZERO, Vec::new());
    Ok(sender.send(Call { name, to, value, input, blobs, size_limit_bytes: None }).await?.block)
}

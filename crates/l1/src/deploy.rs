//! Bringing up the contracts of a new deployment.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolConstructor;
use blindfold_protocol::{Deployment, L1Timing, SigningKey};
use serde::{Deserialize, Serialize};

use crate::{
    L1Client, L1Config, L1Contracts, L1Error,
    config::DEFAULT_CONFIRMATION_TIMEOUT_MS,
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, FeeVault, ForcedQueue, HintRegistry, HintVerifier,
        OutputRegistry,
    },
    sender::{Call, Sender},
    transport::Rpc,
};

/// Calls during a deployment may take this long.
const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// What a forced byte costs unless said otherwise, in wei: the 40 gas of a posted byte at 1 gwei.
pub const DEFAULT_FORCED_FEE_PER_BYTE_WEI: u128 = 40_000_000_000;
/// The least bond of a publisher with open postings unless said otherwise, in wei: half of it pays the dearest challenge
/// at 100 gwei many times over, and the other half is what killing one's own right postings costs.
pub const DEFAULT_PUBLISHER_BOND_WEI: u128 = 10_000_000_000_000_000_000;
/// What a challenge stakes unless said otherwise, in wei.
pub const DEFAULT_CHALLENGE_STAKE_WEI: u128 = 100_000_000_000_000_000;

/// What is fixed at deployment for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployConfig {
    /// Chain id that the endpoint must have.
    pub l1_chain_id: u64,
    /// Who may append epochs.
    pub governor: Address,
    /// Whose signature stands under headers, and whose bond is at stake.
    pub sequencer: Address,
    /// All deadlines.
    pub timing: L1Timing,
    /// What a byte of a forced item costs, in wei.
    pub forced_fee_per_byte_wei: u128,
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
            forced_fee_per_byte_wei: DEFAULT_FORCED_FEE_PER_BYTE_WEI,
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

/// Deploys the eight contracts from the account of `key`, which must send nothing else meanwhile: some are told the
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
    let [registry, queue, inbox, vault, verifier, hints, portal, outputs] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|later| key.address().create(nonce + later));

    let arguments = CommitteeRegistry::constructorCall { governor_: config.governor, inbox_: inbox };
    let code = &CommitteeRegistry::BYTECODE;
    let block = create(&sender, "CommitteeRegistry", code, &arguments.abi_encode()).await?;
    let arguments = ForcedQueue::constructorCall {
        inbox_: inbox,
        registry_: registry,
        feePerByteWei_: config.forced_fee_per_byte_wei,
    };
    create(&sender, "ForcedQueue", &ForcedQueue::BYTECODE, &arguments.abi_encode()).await?;
    let arguments = BlindedInbox::constructorCall {
        registry_: registry,
        queue_: queue,
        sequencer_: config.sequencer,
        timing_: timing(&config.timing),
    };
    create(&sender, "BlindedInbox", &BlindedInbox::BYTECODE, &arguments.abi_encode()).await?;
    let arguments = FeeVault::constructorCall { inbox_: inbox };
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
    create(&sender, "DepositPortal", &DepositPortal::BYTECODE, &[]).await?;
    let arguments = OutputRegistry::constructorCall { inbox_: inbox };
    create(&sender, "OutputRegistry", &OutputRegistry::BYTECODE, &arguments.abi_encode()).await?;

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

fn timing(timing: &L1Timing) -> BlindedInbox::Timing {
    BlindedInbox::Timing {
        postingDeadline: timing.posting_deadline,
        forcedDelay: timing.forced_delay,
        answerWindow: timing.answer_window,
        hintDeadline: timing.hint_deadline,
        challengeWindow: timing.challenge_window,
        withdrawalDelay: timing.withdrawal_delay,
    }
}

async fn create(sender: &Sender, name: &'static str, code: &Bytes, arguments: &[u8]) -> Result<u64, L1Error> {
    let input = [code.as_ref(), arguments].concat().into();
    let (to, value, blobs) = (TxKind::Create, U256::ZERO, Vec::new());
    Ok(sender.send(Call { name, to, value, input, blobs, size_limit_bytes: None }).await?.block)
}

//! Bringing up the contracts of a new deployment.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolConstructor;
use blindfold_protocol::{Deployment, SigningKey};
use serde::{Deserialize, Serialize};

use crate::{
    L1Config, L1Error,
    client::DEFAULT_CONFIRMATION_TIMEOUT_MS,
    contracts::{BlindedInbox, CommitteeRegistry, FeeVault},
    sender::{Call, Sender},
    transport::Rpc,
};

/// Calls during a deployment may take this long.
const REQUEST_TIMEOUT_MS: u64 = 30_000;

/// What is fixed at deployment for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployConfig {
    /// Chain id that the endpoint must have.
    pub l1_chain_id: u64,
    /// Who may append epochs.
    pub governor: Address,
    /// Whose signature stands under headers, and whose bond is at stake.
    pub sequencer: Address,
}

/// Where the contracts of a deployment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Addresses {
    /// L1 chain id.
    pub l1_chain_id: u64,
    /// `CommitteeRegistry`.
    pub registry: Address,
    /// `BlindedInbox`.
    pub inbox: Address,
    /// `FeeVault`.
    pub fee_vault: Address,
    /// The block in which the last of them was deployed: nothing happened before it.
    pub block: u64,
}

impl Addresses {
    /// The deployment id.
    pub fn deployment(&self) -> Deployment {
        Deployment { l1_chain_id: self.l1_chain_id, inbox: self.inbox }
    }

    /// The configuration of a client for these contracts.
    pub fn client_config(&self, url: impl Into<String>) -> L1Config {
        L1Config::with_contracts(url, self.deployment(), self.registry, self.fee_vault)
    }
}

/// Deploys the three contracts from the account of `key`, which must send nothing else meanwhile: the registry is
/// told the inbox's address before the inbox exists.
///
/// # Errors
/// [`L1Error::WrongChain`]; [`L1Error::OtherDeployment`] when the account sent something in between; the errors of a
/// call.
pub async fn deploy(url: &str, key: &SigningKey, config: DeployConfig) -> Result<Addresses, L1Error> {
    let rpc = Rpc::new(url, REQUEST_TIMEOUT_MS)?;
    let given = rpc.chain_id().await?;
    if given != config.l1_chain_id {
        return Err(L1Error::WrongChain { expected: config.l1_chain_id, given });
    }
    let sender = Sender::new(rpc.clone(), config.l1_chain_id, key.clone(), DEFAULT_CONFIRMATION_TIMEOUT_MS);
    let nonce = sender.nonce().await?;
    let [registry, inbox, fee_vault] = [0, 1, 2].map(|later| key.address().create(nonce + later));

    let arguments = CommitteeRegistry::constructorCall { governor_: config.governor, inbox_: inbox };
    create(&sender, "CommitteeRegistry", &CommitteeRegistry::BYTECODE, &arguments.abi_encode()).await?;
    let arguments = BlindedInbox::constructorCall { registry_: registry, sequencer_: config.sequencer };
    create(&sender, "BlindedInbox", &BlindedInbox::BYTECODE, &arguments.abi_encode()).await?;
    let block = create(&sender, "FeeVault", &FeeVault::BYTECODE, &[]).await?;

    let given = rpc.view("registry", inbox, &BlindedInbox::registryCall {}, "latest").await?;
    if given != registry {
        let (contract, role) = ("BlindedInbox", "registry");
        return Err(L1Error::OtherDeployment { contract, role, expected: registry, given });
    }
    Ok(Addresses { l1_chain_id: config.l1_chain_id, registry, inbox, fee_vault, block })
}

async fn create(sender: &Sender, name: &'static str, code: &Bytes, arguments: &[u8]) -> Result<u64, L1Error> {
    let input = [code.as_ref(), arguments].concat().into();
    let call = Call { name, to: TxKind::Create, value: U256::ZERO, input };
    Ok(sender.send(call, None).await?.block)
}

//! How the coprocessor starts.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{Address, B256, Bytes};
use anyhow::Context;
use blindfold_coprocessor::{Coprocessor, CoprocessorConfig, CoprocessorDeps, Machine};
use blindfold_rpc::confidential::ConfidentialParameters;

use super::World;
use crate::{
    Life, Role,
    confidential::{HashChain, NoAccounts},
    l1::View,
    plants::{OtherMachine, Plant},
};

/// How long without news before it asks its node, in milliseconds.
const POLL_INTERVAL_MS: u64 = 500;
/// For how many versions back it keeps accounts.
const KEPT_VERSIONS: u64 = 4;

impl World {
    /// From its disk, with its own view of L1.
    pub(super) async fn start_coprocessor(&self, life: &Life, l1: Arc<View>) -> anyhow::Result<Coprocessor> {
        let role = life.role;
        let followed = self.plan.coprocessor.context("no coprocessor takes part")?;
        let config = CoprocessorConfig {
            rpc_addr: role.addr(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            node_url: life.url(Role::Node(followed)),
            poll_interval_ms: POLL_INTERVAL_MS,
            kept_versions: KEPT_VERSIONS,
            inbound: Default::default(),
        };
        let store = self.open_disk(role);
        let state = Arc::new(self.store(role).context("its disk is open")?);
        let found = HashChain::open(state.as_ref()).await?;
        let machine: Box<dyn Machine> = match self.plan.plant {
            Some(Plant::CoprocessorOtherOrder) => Box::new(OtherMachine(found)),
            Some(Plant::CoprocessorForgets) => Box::new(found.forgotten()),
            _ => Box::new(found),
        };
        let deps = CoprocessorDeps {
            chain: Arc::clone(&self.chain),
            store,
            state,
            settlement: Some(l1.clone()),
            l1,
            parameters: Arc::clone(&self.parameters),
            backend: self.backend(role),
            machine,
            view: Arc::new(NoAccounts),
            deployment: self.confidential_parameters(),
        };
        let coprocessor = Coprocessor::start(config, deps).await?;
        *self.execution.lock() = Some(coprocessor.watch_status());
        Ok(coprocessor)
    }

    /// What it tells of a deployment; nothing of it is used here.
    fn confidential_parameters(&self) -> ConfidentialParameters {
        ConfidentialParameters {
            l1_chain_id: self.chain.deployment.l1_chain_id,
            chain_id: self.chain.chain_id,
            contract: Address::repeat_byte(0x31),
            seed: B256::repeat_byte(1),
            auditor_key: Bytes::new(),
            operator: Address::repeat_byte(0x32),
            minimum_fee: 0,
            counter_limit: 1,
            verifying_keys: BTreeMap::new(),
            development_setup: true,
        }
    }
}

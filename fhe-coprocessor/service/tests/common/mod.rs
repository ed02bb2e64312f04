//! A node in this process, reached over real sockets; a state machine that counts; a disk that hangs.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod disk;
pub mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use blindfold_bte::Backend;
use blindfold_chain::{L1Reader, ReadApi, ReadContext, RoleView, Sealed, announce};
use blindfold_coprocessor::{Coprocessor, CoprocessorConfig, CoprocessorDeps, StartError};
use blindfold_kit::*;
use blindfold_protocol::{Address, B256, Bundle, BundleItem, Bytes, Envelope};
use blindfold_rpc::confidential::ConfidentialParameters;
use blindfold_rpc::{BlindApiServer, Hub, ServerConfig, ServerHandle, serve};
use blindfold_store::{ConfidentialStore, Store};
use tally::{Tally, TallyView};

struct NodeRole;

impl RoleView for NodeRole {
    fn role(&self) -> &'static str {
        "full_node"
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// The node that is followed: seals on a tracker of its own, serves and announces.
pub struct World {
    pub l1: Arc<ScriptedL1>,
    pub sequencer: Sealer,
    pub machine: Machine,
    pub hub: Hub,
    pub config: CoprocessorConfig,
    pub settlement: Option<Arc<dyn L1Reader>>,
    pub backend: Arc<dyn Backend>,
    _server: ServerHandle,
}

impl World {
    pub async fn new() -> Self {
        let l1 = l1();
        let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
        let sequencer = Sealer { tracker: machine.tracker.clone(), l1: Arc::clone(&l1) };
        let hub = Hub::default();
        let reads = ReadApi::new(ReadContext {
            tracker: machine.tracker.clone(),
            parameters: parameter_set(),
            executor: machine.executor.clone(),
            hub: hub.clone(),
            role: Arc::new(NodeRole),
        });
        let server = serve(ServerConfig::new(([127, 0, 0, 1], 0).into()), reads.into_rpc(), None)
            .await
            .expect("it serves");
        let config = CoprocessorConfig {
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            admin_addr: ([127, 0, 0, 1], 0).into(),
            node_url: format!("http://{}", server.local_addr()),
            poll_interval_ms: NEVER_MS,
            kept_versions: 0,
            inbound: Default::default(),
        };
        Self { l1, sequencer, machine, hub, config, settlement: None, backend: backend(), _server: server }
    }

    /// Seals, certifies and opens a batch, and tells of it.
    pub async fn batch(&self, ms: u64, envelopes: &[Envelope]) -> Sealed {
        let sealed = self.certified(ms, envelopes).await;
        self.hint(&sealed).await;
        sealed
    }

    pub async fn certified(&self, ms: u64, envelopes: &[Envelope]) -> Sealed {
        let sealed = self.sequencer.seal_envelopes(ms, envelopes).await;
        let certificate = self.sequencer.certify(&sealed).await;
        self.hub.publish(&announce::certificate(&certificate));
        sealed
    }

    pub async fn hint(&self, sealed: &Sealed) {
        let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
        self.machine.intake.submit(Some(release), hints.clone()).await.expect("honest hints");
        self.hub.publish(&announce::hints(&hints));
    }

    pub async fn try_start(
        &self,
        store: Arc<dyn Store>,
        state: Arc<dyn ConfidentialStore>,
    ) -> Result<Coprocessor, StartError> {
        let machine = Box::new(Tally::open(state.as_ref()).await);
        let deps = CoprocessorDeps {
            chain: chain_config(),
            store,
            state,
            l1: Arc::clone(&self.l1) as _,
            settlement: self.settlement.clone(),
            parameters: parameter_set(),
            backend: self.backend.clone(),
            machine,
            view: Arc::new(TallyView),
            deployment: deployment(),
        };
        Coprocessor::start(self.config.clone(), deps).await
    }
}

pub fn deployment() -> ConfidentialParameters {
    ConfidentialParameters {
        l1_chain_id: 900,
        chain_id: CHAIN_ID,
        contract: Address::repeat_byte(0x31),
        seed: B256::repeat_byte(1),
        auditor_key: Bytes::from_static(&[1, 2, 3]),
        operator: Address::repeat_byte(0x32),
        minimum_fee: 1,
        counter_limit: 4_096,
        verifying_keys: BTreeMap::new(),
        development_setup: true,
    }
}

/// An envelope with one transaction of the execution client and these items of kind 1.
pub fn confidential(nonce: u64, items: &[&[u8]]) -> Envelope {
    let mut bundle = Bundle::of_transactions([transaction(1, nonce)]);
    bundle.items.extend(items.iter().map(|bytes| BundleItem { kind: 1, bytes: bytes.to_vec() }));
    envelope_of(1, nonce, &bundle, |_| {})
}

pub async fn executed(coprocessor: &Coprocessor, number: u64) {
    let mut status = coprocessor.watch_status();
    let reached = status.wait_for(|status| status.head.number >= number);
    let reached = tokio::time::timeout(std::time::Duration::from_secs(60), reached).await.is_ok();
    let status = coprocessor.watch_status().borrow().clone();
    assert!(reached, "batch {number}: {status:?}, {:?}", coprocessor.counters().by_name());
}

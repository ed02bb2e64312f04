//! Reading L1: the newest final block, origins, and the checks when the connection is made.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use alloy_eips::{BlockId, eip7840::BlobParams};
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_eth::Block;
use alloy_sol_types::SolCall;
use blindfold_bte::EncryptionKey;
use blindfold_engine::L1Origin;
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;

use crate::{
    archive::Archive,
    config::{DeployedWith, L1Config},
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, EncryptionKeyVerifier, FeeVault, ForcedQueue,
        HintRegistry, MemberStakes, OutputRegistry,
    },
    error::L1Error,
    posting::opened_data::RunKeys,
    reader::{beacon::Beacon, compared::Compared, fetched::Fetched, state_at::StateAt},
    transport::Rpc,
};

/// How many final blocks are kept; the oldest go first.
const KEPT_ORIGINS: usize = 4_096;
/// A reader of L1. Clones share the connection and what is kept.
#[derive(Clone, Debug)]
pub struct L1Client {
    pub(crate) inner: Arc<Inner>,
}

/// What L1 answered last, asked for its newest final block.
#[derive(Debug, Default)]
struct Finalized {
    /// The block, and when it was told.
    known: Option<(Instant, L1Origin)>,
    /// The newest failure, and when the call ended.
    failed: Option<(Instant, L1Error)>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub rpc: Rpc,
    pub beacon: Option<Beacon>,
    /// `None` without any.
    pub archive: Option<Archive>,
    pub config: L1Config,
    /// Locked across the call, so that callers share one.
    finalized: tokio::sync::Mutex<Finalized>,
    /// Final blocks that were read, by number.
    origins: Mutex<BTreeMap<u64, L1Origin>>,
    /// What the registry held when it was last read. Locked across the reading, so that callers share it.
    pub registry: tokio::sync::Mutex<Option<Arc<crate::reader::committee::Registry>>>,
    /// By first L2 block, the L1 block of proposals of outputs that were met. Locked across the reading.
    pub proposals: tokio::sync::Mutex<BTreeMap<u64, u64>>,
    /// What happened to batches. Locked while it is brought up to date, so that callers share the work.
    pub journal: tokio::sync::Mutex<crate::events::journal::Journal>,
    /// The block up to which the journal on disk speaks.
    pub journal_saved: Mutex<u64>,
    /// Encryption keys by their hashes, the newest last. Locked across the reading.
    pub encryption_keys: tokio::sync::Mutex<Vec<(B256, Arc<EncryptionKey>)>>,
    /// Hints of final blocks that data was opened with, the newest last. Locked across the reading.
    pub posted_hints: tokio::sync::Mutex<Vec<RunKeys>>,
    /// What is known of opened data.
    pub compared: Compared,
    /// What archives gave, and did not give.
    pub fetched: Fetched,
}

impl L1Client {
    /// Connects and checks chain id and contracts.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`], [`L1Error::NoContract`], [`L1Error::OtherContract`], [`L1Error::OtherDeployment`],
    /// [`L1Error::OtherSetting`], [`L1Error::OriginAhead`] when this is not the configured deployment; the errors of a call.
    pub async fn connect(config: L1Config) -> Result<Self, L1Error> {
        let client = Self::open(config)?;
        client.check_deployment().await?;
        Ok(client)
    }

    /// A client that has not looked at L1 yet.
    pub(crate) fn open(config: L1Config) -> Result<Self, L1Error> {
        let rpc = Rpc::new(&config.url, config.request_timeout_ms)?;
        let beacon = config
            .beacon_url
            .as_deref()
            .map(|url| Beacon::new(url, config.request_timeout_ms))
            .transpose()?;
        let archive = match config.archive_urls.as_slice() {
            [] => None,
            urls => Some(Archive::new(urls, config.request_timeout_ms)?.with_tokens(&config.archive_tokens)),
        };
        let inner = Inner {
            rpc,
            beacon,
            archive,
            config,
            finalized: tokio::sync::Mutex::default(),
            origins: Mutex::default(),
            registry: tokio::sync::Mutex::default(),
            proposals: tokio::sync::Mutex::default(),
            journal: tokio::sync::Mutex::default(),
            journal_saved: Mutex::default(),
            encryption_keys: tokio::sync::Mutex::default(),
            posted_hints: tokio::sync::Mutex::default(),
            compared: Compared::default(),
            fetched: Fetched::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the client was made with.
    pub fn config(&self) -> &L1Config {
        &self.inner.config
    }

    async fn check_deployment(&self) -> Result<(), L1Error> {
        let Inner { rpc, config, .. } = &*self.inner;
        let expected = config.deployment.l1_chain_id;
        let given = rpc.chain_id().await?;
        if given != expected {
            return Err(L1Error::WrongChain { expected, given });
        }
        let state = match config.checked_at {
            Some(number) => StateAt::new(rpc, number),
            None => StateAt::newest(rpc).await?,
        };
        let inbox = config.deployment.inbox;
        let contracts = &config.contracts;
        let addresses = [
            ("BlindedInbox", inbox),
            ("CommitteeRegistry", contracts.registry),
            ("FeeVault", contracts.fee_vault),
            ("ForcedQueue", contracts.forced_queue),
            ("HintRegistry", contracts.hint_registry),
            ("HintVerifier", contracts.hint_verifier),
            ("DepositPortal", contracts.deposit_portal),
            ("OutputRegistry", contracts.output_registry),
        ];
        for (name, address) in addresses {
            if !state.has_code(address).await? {
                return Err(L1Error::NoContract { name, address });
            }
        }
        let registry = contracts.registry;
        let call = CommitteeRegistry::inboxCall {};
        state.check_role("CommitteeRegistry", registry, "inbox", call, inbox).await?;
        state.check_role("BlindedInbox", inbox, "registry", BlindedInbox::registryCall {}, registry).await?;
        let queue = contracts.forced_queue;
        state.check_role("BlindedInbox", inbox, "queue", BlindedInbox::queueCall {}, queue).await?;
        state.check_role("ForcedQueue", queue, "inbox", ForcedQueue::inboxCall {}, inbox).await?;
        let vault = contracts.fee_vault;
        state.check_role("FeeVault", vault, "inbox", FeeVault::inboxCall {}, inbox).await?;
        state.check_role("FeeVault", vault, "registry", FeeVault::registryCall {}, registry).await?;
        // Several contracts have an inbox and a registry.
        state.ask("FeeVault", vault, "claimDelay", FeeVault::claimDelayCall {}).await?;
        let hints = contracts.hint_registry;
        state.check_role("HintRegistry", hints, "inbox", HintRegistry::inboxCall {}, inbox).await?;
        let verifier = contracts.hint_verifier;
        let call = HintRegistry::verifierCall {};
        state.check_role("HintRegistry", hints, "verifier", call, verifier).await?;
        let outputs = contracts.output_registry;
        state.check_role("OutputRegistry", outputs, "inbox", OutputRegistry::inboxCall {}, inbox).await?;
        let call = OutputRegistry::lastProposedAtCall {};
        state.ask("OutputRegistry", outputs, "lastProposedAt", call).await?;
        // The portal names no other contract; it has the registry's governor.
        let portal = contracts.deposit_portal;
        let call = DepositPortal::takesDepositsWithoutOutletCall {};
        state.ask("DepositPortal", portal, "takesDepositsWithoutOutlet", call).await?;
        let call = CommitteeRegistry::governorCall {};
        let governor = state.ask("CommitteeRegistry", registry, "governor", call).await?;
        let call = DepositPortal::governorCall {};
        state.check_role("DepositPortal", portal, "governor", call, governor).await?;
        check_what_the_registry_names(&state, registry).await?;
        let (origin, newest) = (config.start_block, state.number);
        if origin > newest {
            return Err(L1Error::OriginAhead { origin, newest });
        }
        let Some(expected) = config.deployed_with else { return Ok(()) };
        let call = CommitteeRegistry::firstSequencerCall {};
        let sequencer = rpc.view_at("firstSequencer", registry, &call, state.number).await?;
        compare(&expected, &DeployedWith { timing: self.timing_at(state.number.into()).await?, sequencer })
    }

    /// Calls a view on the state after the newest final block; `None` before the contract's own block is final.
    pub(crate) async fn final_view<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        call: &C,
    ) -> Result<Option<C::Return>, L1Error> {
        let block = self.finalized().await?.number;
        match self.inner.rpc.view_at(name, to, call, block).await {
            Ok(value) => Ok(Some(value)),
            Err(L1Error::Undecodable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The newest final block; at most `poll_interval_ms` old, and never older than one given before.
    ///
    /// # Errors
    /// [`L1Error::FinalityBroken`] when the endpoint replaces a final block; the errors of a call.
    pub async fn finalized(&self) -> Result<L1Origin, L1Error> {
        let called = now();
        let mut finalized = self.inner.finalized.lock().await;
        let poll_interval = Duration::from_millis(self.inner.config.poll_interval_ms);
        if let Some((asked, origin)) = finalized.known
            && asked.elapsed() < poll_interval
        {
            return Ok(origin);
        }
        // Whoever waited for another's question has its answer, or each of many would wait for its own in turn.
        if let Some((failed, error)) = &finalized.failed
            && *failed >= called
        {
            return Err(error.clone());
        }
        let newest = match self.block(BlockId::finalized()).await {
            Ok(newest) => newest,
            Err(error) => {
                finalized.failed = Some((now(), error.clone()));
                return Err(error);
            }
        };
        let newest = newest.ok_or_else(|| L1Error::Malformed {
            method: "eth_getBlockByNumber".to_owned(),
            reason: "no block is final yet".to_owned(),
        })?;
        let newest = match finalized.known {
            // One of several servers behind the endpoint is behind: what was final stays so.
            Some((_, before)) if newest.number < before.number => before,
            Some((_, before)) if newest.number == before.number && newest.hash != before.hash => {
                let (number, before, now) = (before.number, before.hash, newest.hash);
                return Err(L1Error::FinalityBroken { number, before, now });
            }
            _ => newest,
        };
        self.keep(newest)?;
        finalized.known = Some((now(), newest));
        Ok(newest)
    }

    /// When the newest block was made, final or not, in seconds.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn newest_time(&self) -> Result<u64, L1Error> {
        let newest = self.block(BlockId::latest()).await?.ok_or_else(|| L1Error::Malformed {
            method: "eth_getBlockByNumber".to_owned(),
            reason: "there is no newest block".to_owned(),
        })?;
        Ok(newest.timestamp)
    }

    /// The block of this number; `None` while it is not final.
    ///
    /// # Errors
    /// [`L1Error::FinalityBroken`]; the errors of a call.
    pub async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        if let Some(origin) = self.inner.origins.lock().get(&number) {
            return Ok(Some(*origin));
        }
        let finalized = self.finalized().await?.number;
        if number > finalized {
            return Ok(None);
        }
        // One of several servers behind the endpoint may be behind the one that told the final block.
        let found = self.block(number).await?;
        let origin = found.ok_or(L1Error::NotFinal { number, finalized })?;
        self.keep_final(number, origin)?;
        Ok(Some(origin))
    }

    /// Keeps the final block that the endpoint gave for this number.
    pub(crate) fn keep_final(&self, number: u64, origin: L1Origin) -> Result<(), L1Error> {
        if origin.number != number {
            return Err(L1Error::Malformed {
                method: "eth_getBlockByNumber".to_owned(),
                reason: format!("block {} instead of {number}", origin.number),
            });
        }
        self.keep(origin)
    }

    /// The hash of the block of this number, final or not; `None` where the endpoint has none.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        Ok(self.block(number).await?.map(|block| block.hash))
    }

    /// A block by number or tag.
    pub(crate) async fn block(&self, which: impl Into<BlockId>) -> Result<Option<L1Origin>, L1Error> {
        self.inner.rpc.block(which).await?.map(origin_of).transpose()
    }

    fn keep(&self, origin: L1Origin) -> Result<(), L1Error> {
        let mut origins = self.inner.origins.lock();
        if let Some(before) = origins.get(&origin.number)
            && before.hash != origin.hash
        {
            let (number, before, now) = (origin.number, before.hash, origin.hash);
            return Err(L1Error::FinalityBroken { number, before, now });
        }
        origins.insert(origin.number, origin);
        while origins.len() > KEPT_ORIGINS {
            origins.pop_first();
        }
        Ok(())
    }
}

/// What a block says as an origin; the blob base fee by the one update fraction that all parties use (L-13).
pub(crate) fn origin_of(block: Block) -> Result<L1Origin, L1Error> {
    let header = block.header;
    let missing = |field: &str| L1Error::Malformed {
        method: "eth_getBlockByNumber".to_owned(),
        reason: format!("block {} has no {field}", header.number),
    };
    let base_fee = header.base_fee_per_gas.ok_or_else(|| missing("base fee"))?;
    let excess = header.excess_blob_gas.ok_or_else(|| missing("excess blob gas"))?;
    let parent_beacon_block_root =
        header.parent_beacon_block_root.ok_or_else(|| missing("parent beacon block root"))?;
    Ok(L1Origin {
        number: header.number,
        hash: header.hash,
        timestamp: header.timestamp,
        base_fee: base_fee.into(),
        // A function of the block alone, so that all parties agree whatever blob schedule their clients know.
        blob_base_fee: BlobParams::osaka().calc_blob_fee(excess),
        parent_beacon_block_root,
    })
}

/// The contracts that only the registry names: the last ones of a deployment. No committee can be registered without the
/// first, nor without the second where it asks for stakes.
async fn check_what_the_registry_names(state: &StateAt<'_>, registry: Address) -> Result<(), L1Error> {
    let call = CommitteeRegistry::keyVerifierCall {};
    let verifier = state.ask("CommitteeRegistry", registry, "keyVerifier", call).await?;
    let call = CommitteeRegistry::stakesCall {};
    let stakes = state.ask("CommitteeRegistry", registry, "stakes", call).await?;
    for (name, address) in [("EncryptionKeyVerifier", verifier), ("MemberStakes", stakes)] {
        let is_there = address == Address::ZERO || state.has_code(address).await?;
        if !is_there {
            return Err(L1Error::NoContract { name, address });
        }
    }
    // Without settings: only its kind answers.
    let call = EncryptionKeyVerifier::isEncryptionKeyCall { encoded: Bytes::new() };
    state.ask("EncryptionKeyVerifier", verifier, "isEncryptionKey", call).await?;
    if stakes != Address::ZERO {
        let call = MemberStakes::registryCall {};
        state.check_role("MemberStakes", stakes, "registry", call, registry).await?;
    }
    Ok(())
}

/// Whether the settings say what the contracts say; else the first field that differs.
fn compare(settings: &DeployedWith, contracts: &DeployedWith) -> Result<(), L1Error> {
    let (expected, given) = (&settings.timing, &contracts.timing);
    let timing = [
        ("timing.postingDeadline", expected.posting_deadline, given.posting_deadline),
        ("timing.forcedDelay", expected.forced_delay, given.forced_delay),
        ("timing.answerWindow", expected.answer_window, given.answer_window),
        ("timing.hintDeadline", expected.hint_deadline, given.hint_deadline),
        ("timing.challengeWindow", expected.challenge_window, given.challenge_window),
        ("timing.withdrawalDelay", expected.withdrawal_delay, given.withdrawal_delay),
        ("timing.maxOriginAgeSeconds", expected.max_origin_age_seconds, given.max_origin_age_seconds),
    ];
    for (field, expected, given) in timing {
        if expected != given {
            let (expected, given) = (expected.to_string(), given.to_string());
            return Err(L1Error::OtherSetting { field, expected, given });
        }
    }
    if settings.sequencer != contracts.sequencer {
        let (expected, given) = (settings.sequencer.to_string(), contracts.sequencer.to_string());
        return Err(L1Error::OtherSetting { field: "sequencer", expected, given });
    }
    Ok(())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

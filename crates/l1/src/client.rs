//! Reading L1: origins, deposits, and the checks when the connection is made.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_eth::{Block, Log};
use alloy_sol_types::SolEvent;
use blindfold_engine::L1Origin;
use blindfold_protocol::{ChainConfig, Deployment, Deposit};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    L1Error,
    contracts::{BlindedInbox, CommitteeRegistry, FeeVault},
    transport::Rpc,
};

/// How long an answer about the newest final block is taken for current, unless the configuration says otherwise.
const DEFAULT_POLL_INTERVAL_MS: u64 = 1_000;
/// How long one call may take, unless the configuration says otherwise.
const DEFAULT_REQUEST_TIMEOUT_MS: u64 = 10_000;
/// How long to wait for a transaction to get into a block, unless the configuration says otherwise.
pub(crate) const DEFAULT_CONFIRMATION_TIMEOUT_MS: u64 = 60_000;
/// Blocks in one query for logs. Halved when the endpoint finds it too much.
const LOG_RANGE_BLOCKS: u64 = 1_000;
/// Origins that are kept.
const KEPT_ORIGINS: usize = 4_096;
/// JSON-RPC code of "limit exceeded" (EIP-1474).
const RPC_LIMIT_EXCEEDED: i64 = -32005;
/// JSON-RPC code of "invalid parameters", which some endpoints give for a range they find too long.
const RPC_INVALID_PARAMS: i64 = -32602;

/// Where L1 and the contracts are.
#[derive(Clone)]
pub struct L1Config {
    /// `http://` (or, with the feature `tls`, `https://`) URL of the endpoint. May hold a secret, so it is not printed.
    pub url: String,
    /// L1 chain id and `BlindedInbox`.
    pub deployment: Deployment,
    /// `CommitteeRegistry`.
    pub registry: Address,
    /// `FeeVault`.
    pub fee_vault: Address,
    /// How long an answer about the newest final block is taken for current, in milliseconds.
    pub poll_interval_ms: u64,
    /// How long one call may take, in milliseconds.
    pub request_timeout_ms: u64,
    /// How long to wait for a transaction to get into a block, in milliseconds.
    pub confirmation_timeout_ms: u64,
}

impl L1Config {
    /// With the contracts of a chain and the default intervals.
    pub fn new(url: impl Into<String>, chain: &ChainConfig) -> Self {
        Self::with_contracts(url, chain.deployment, chain.registry, chain.fee_vault)
    }

    /// With contracts given one by one and the default intervals.
    pub fn with_contracts(
        url: impl Into<String>,
        deployment: Deployment,
        registry: Address,
        fee_vault: Address,
    ) -> Self {
        Self {
            url: url.into(),
            deployment,
            registry,
            fee_vault,
            poll_interval_ms: DEFAULT_POLL_INTERVAL_MS,
            request_timeout_ms: DEFAULT_REQUEST_TIMEOUT_MS,
            confirmation_timeout_ms: DEFAULT_CONFIRMATION_TIMEOUT_MS,
        }
    }
}

impl std::fmt::Debug for L1Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("L1Config")
            .field("url", &"redacted")
            .field("deployment", &self.deployment)
            .field("registry", &self.registry)
            .field("fee_vault", &self.fee_vault)
            .field("poll_interval_ms", &self.poll_interval_ms)
            .field("request_timeout_ms", &self.request_timeout_ms)
            .field("confirmation_timeout_ms", &self.confirmation_timeout_ms)
            .finish()
    }
}

/// A reader of L1. Clones share the connection and what is kept.
#[derive(Clone, Debug)]
pub struct L1Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub rpc: Rpc,
    pub config: L1Config,
    /// The newest final block and when it was asked for. Locked across the call, so that callers share one.
    finalized: tokio::sync::Mutex<Option<(Instant, L1Origin)>>,
    /// Final blocks by number.
    origins: Mutex<BTreeMap<u64, L1Origin>>,
    /// Registered epochs never change; new ones are appended.
    pub epochs: tokio::sync::Mutex<Vec<crate::EpochRecord>>,
}

impl L1Client {
    /// Connects and checks chain id and contracts.
    ///
    /// # Errors
    /// [`L1Error::WrongChain`], [`L1Error::NoContract`], [`L1Error::OtherDeployment`] when this is not the
    /// configured deployment; the errors of a call.
    pub async fn connect(config: L1Config) -> Result<Self, L1Error> {
        let client = Self::open(config)?;
        client.check_deployment().await?;
        Ok(client)
    }

    /// A client that has not looked at L1 yet.
    pub(crate) fn open(config: L1Config) -> Result<Self, L1Error> {
        let rpc = Rpc::new(&config.url, config.request_timeout_ms)?;
        let inner = Inner {
            rpc,
            config,
            finalized: tokio::sync::Mutex::default(),
            origins: Mutex::default(),
            epochs: tokio::sync::Mutex::default(),
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
        let inbox = config.deployment.inbox;
        let contracts =
            [("BlindedInbox", inbox), ("CommitteeRegistry", config.registry), ("FeeVault", config.fee_vault)];
        for (name, address) in contracts {
            let code: Bytes = rpc.call("eth_getCode", json!([address, "latest"])).await?;
            if code.is_empty() {
                return Err(L1Error::NoContract { name, address });
            }
        }
        let given = rpc.view("inbox", config.registry, &CommitteeRegistry::inboxCall {}, "latest").await?;
        if given != inbox {
            let (contract, role) = ("CommitteeRegistry", "inbox");
            return Err(L1Error::OtherDeployment { contract, role, expected: inbox, given });
        }
        let given = rpc.view("registry", inbox, &BlindedInbox::registryCall {}, "latest").await?;
        if given != config.registry {
            let (contract, role) = ("BlindedInbox", "registry");
            return Err(L1Error::OtherDeployment { contract, role, expected: config.registry, given });
        }
        Ok(())
    }

    /// The newest final block; at most `poll_interval_ms` old, and never older than one given before.
    ///
    /// # Errors
    /// [`L1Error::FinalityBroken`] when the endpoint replaces a final block; the errors of a call.
    pub async fn finalized(&self) -> Result<L1Origin, L1Error> {
        let mut known = self.inner.finalized.lock().await;
        let poll_interval = Duration::from_millis(self.inner.config.poll_interval_ms);
        if let Some((asked, origin)) = *known
            && asked.elapsed() < poll_interval
        {
            return Ok(origin);
        }
        let newest = self.block("finalized").await?.ok_or_else(|| L1Error::Malformed {
            method: "eth_getBlockByNumber".to_owned(),
            reason: "no block is final yet".to_owned(),
        })?;
        let newest = match *known {
            // One of several servers behind the endpoint is behind: what was final stays so.
            Some((_, before)) if newest.number < before.number => before,
            Some((_, before)) if newest.number == before.number && newest.hash != before.hash => {
                let (number, before, now) = (before.number, before.hash, newest.hash);
                return Err(L1Error::FinalityBroken { number, before, now });
            }
            _ => newest,
        };
        self.keep(newest)?;
        *known = Some((Instant::now(), newest));
        Ok(newest)
    }

    /// The block of this number; `None` while it is not final.
    ///
    /// # Errors
    /// [`L1Error::FinalityBroken`]; the errors of a call.
    pub async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        if let Some(origin) = self.inner.origins.lock().get(&number) {
            return Ok(Some(*origin));
        }
        if number > self.finalized().await?.number {
            return Ok(None);
        }
        let origin = self.block(&format!("{number:#x}")).await?.ok_or_else(|| L1Error::Malformed {
            method: "eth_getBlockByNumber".to_owned(),
            reason: format!("final block {number} is missing"),
        })?;
        if origin.number != number {
            return Err(L1Error::Malformed {
                method: "eth_getBlockByNumber".to_owned(),
                reason: format!("block {} instead of {number}", origin.number),
            });
        }
        self.keep(origin)?;
        Ok(Some(origin))
    }

    /// Deposits into `FeeVault` in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`], [`L1Error::FinalityBroken`] when a log is of another block than the final one; the
    /// errors of a call.
    pub async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Error> {
        let logs = self
            .final_logs(self.inner.config.fee_vault, FeeVault::Deposited::SIGNATURE_HASH, after, through)
            .await?;
        let mut deposits = Vec::with_capacity(logs.len());
        for FinalLog { block, log, .. } in logs {
            let event = FeeVault::Deposited::decode_log(&log.inner).map_err(|error| malformed_log(&error))?;
            let amount = u128::try_from(event.amount)
                .map_err(|_| malformed_log(&"a deposit of more than 128 bits"))?;
            deposits.push(Deposit { payer: event.payer, amount, l1_block: block });
        }
        Ok(deposits)
    }

    /// Logs of `address` with that first topic in blocks `after + 1 ..= through`, in order, each checked to be of
    /// the final block of its number.
    pub(crate) async fn final_logs(
        &self,
        address: Address,
        topic: B256,
        after: u64,
        through: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        if after >= through {
            return Ok(Vec::new());
        }
        let finalized = self.finalized().await?.number;
        if through > finalized {
            return Err(L1Error::NotFinal { number: through, finalized });
        }
        let mut found = Vec::new();
        let mut from = after.saturating_add(1);
        let mut range = LOG_RANGE_BLOCKS;
        while from <= through {
            let to = through.min(from.saturating_add(range - 1));
            match self.logs(address, topic, from, to).await {
                Ok(logs) => found.extend(logs),
                Err(error) if to > from && is_too_much(&error) => {
                    range = (range / 2).max(1);
                    continue;
                }
                Err(error) => return Err(error),
            }
            from = to.saturating_add(1);
        }
        let mut previous = None;
        for log in &found {
            let position = (log.block, log.index);
            if previous >= Some(position) {
                return Err(malformed_log(&"logs out of order"));
            }
            previous = Some(position);
            let origin = self.origin(log.block).await?;
            let before = origin.map_or(B256::ZERO, |origin| origin.hash);
            if before != log.block_hash {
                return Err(L1Error::FinalityBroken { number: log.block, before, now: log.block_hash });
            }
        }
        Ok(found)
    }

    async fn logs(
        &self,
        address: Address,
        topic: B256,
        from: u64,
        to: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        let filter = json!([{
            "address": address,
            "topics": [topic],
            "fromBlock": format!("{from:#x}"),
            "toBlock": format!("{to:#x}"),
        }]);
        let logs: Vec<Log> = self.inner.rpc.call("eth_getLogs", filter).await?;
        logs.into_iter()
            .map(|log| {
                let fits = log.inner.address == address
                    && log.inner.topics().first() == Some(&topic)
                    && !log.removed;
                match (log.block_number, log.block_hash, log.transaction_hash, log.log_index) {
                    (Some(block), Some(block_hash), Some(transaction), Some(index))
                        if fits && (from..=to).contains(&block) =>
                    {
                        Ok(FinalLog { block, block_hash, transaction, index, log })
                    }
                    _ => Err(malformed_log(&"a log that was not asked for")),
                }
            })
            .collect()
    }

    /// A block by number or tag.
    async fn block(&self, which: &str) -> Result<Option<L1Origin>, L1Error> {
        let block: Option<Block> = self.inner.rpc.call("eth_getBlockByNumber", json!([which, false])).await?;
        let Some(block) = block else { return Ok(None) };
        let header = block.header;
        let missing = |field: &str| L1Error::Malformed {
            method: "eth_getBlockByNumber".to_owned(),
            reason: format!("block {} has no {field}", header.number),
        };
        let base_fee = header.base_fee_per_gas.ok_or_else(|| missing("base fee"))?;
        let excess = header.excess_blob_gas.ok_or_else(|| missing("excess blob gas"))?;
        let parent_beacon_block_root =
            header.parent_beacon_block_root.ok_or_else(|| missing("parent beacon block root"))?;
        Ok(Some(L1Origin {
            number: header.number,
            hash: header.hash,
            timestamp: header.timestamp,
            base_fee: base_fee.into(),
            // A function of the block alone, so that all parties agree whatever blob schedule their clients know.
            blob_base_fee: BlobParams::osaka().calc_blob_fee(excess),
            parent_beacon_block_root,
        }))
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

/// A log of a final block.
pub(crate) struct FinalLog {
    pub block: u64,
    pub block_hash: B256,
    pub transaction: B256,
    pub index: u64,
    pub log: Log,
}

pub(crate) fn malformed_log(reason: &impl std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: "eth_getLogs".to_owned(), reason: reason.to_string() }
}

/// Whether a shorter range of blocks may do.
fn is_too_much(error: &L1Error) -> bool {
    matches!(
        error,
        L1Error::ResponseTooLarge { .. }
            | L1Error::Timeout { .. }
            | L1Error::Rpc { code: RPC_LIMIT_EXCEEDED | RPC_INVALID_PARAMS, .. }
    )
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

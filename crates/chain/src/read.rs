//! The reads of `blind_*` over the store: the same for the sequencer and for a full node.

mod cache;
mod receipt;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_engine::{ExecutionClient, ReadError};
use blindfold_protocol::BatchHints;
use blindfold_rpc::jsonrpsee::core::SubscriptionResult;
use blindfold_rpc::jsonrpsee::types::ErrorObjectOwned;
use blindfold_rpc::jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule};
use blindfold_rpc::limits::MAX_RECEIPTS;
use blindfold_rpc::types::{
    BatchHead, BatchInfo, BatchState, BlockHead, EncryptionKeyInfo, EnvelopeState, FeeAccount,
    FeeAccountProof, LedgerAt, LedgerTag, Receipt, Status,
};
use blindfold_rpc::{
    BlindApiServer, Encoded, Hub, Passthrough, ReceiptApiServer, ReceiptBoard, RpcError, too_many_ids,
};
use blindfold_runtime::{Stop, until};
use blindfold_store::{BatchRecord, StoreError};
use serde_json::value::RawValue;

use crate::{AccountProofError, Executor, ExecutorStatus, ParameterSet, ProvedAccount, Tracker, accepted};
use receipt::Receipts;

/// What a role adds to the shared reads.
pub trait RoleView: Send + Sync + 'static {
    /// `sequencer` or `full_node`, as `blind_getStatus` says it.
    fn role(&self) -> &'static str;

    /// Counts for `blind_getStatus`, by stable name.
    fn counters(&self) -> BTreeMap<String, u64>;

    /// Envelopes that wait to be sealed, for a role that has a pool.
    fn pending_envelopes(&self) -> Option<u64> {
        None
    }

    /// The newest number on L1, where known.
    fn posted(&self) -> Option<u64> {
        None
    }

    /// Wei of `payer`'s balance that envelopes in the pool will take.
    fn reserved(&self, _payer: &Address) -> u128 {
        0
    }

    /// State and reason of an envelope that is in no batch, where the role knows of such.
    fn unsealed(&self, _id: &B256) -> Option<(EnvelopeState, Option<String>)> {
        None
    }
}

/// What the reads are made of.
#[derive(Clone)]
pub struct ReadContext {
    /// The chain of headers and its store.
    pub tracker: Tracker,
    /// The epochs' keys, for `blind_getEncryptionKey`.
    pub parameters: Arc<ParameterSet>,
    /// How far execution is.
    pub executor: Executor,
    /// Where subscribers get the topics' notifications.
    pub hub: Hub,
    /// What the role adds to these reads.
    pub role: Arc<dyn RoleView>,
}

/// The reads of `blind_*`; [`into_module`](Self::into_module) makes methods of them. Cheap to clone.
#[derive(Clone)]
pub struct ReadApi {
    context: ReadContext,
    receipts: Receipts,
    board: ReceiptBoard,
}

impl ReadContext {
    async fn stored_batch(&self, number: u64) -> Result<Option<BatchRecord>, RpcError> {
        let tracker = &self.tracker;
        let record =
            tracker.for_caller(tracker.store().batch(number)).await.map_err(|error| match error {
                pruned @ StoreError::Pruned { .. } => RpcError::refused("pruned", pruned),
                error => RpcError::internal(error),
            })?;
        // What is still to be signed is nobody's to know.
        Ok(record.filter(BatchRecord::is_signed))
    }
}

impl ReadApi {
    /// Reads that all have this context.
    pub fn new(context: ReadContext) -> Self {
        let receipts = Receipts::new(context.clone());
        let board = ReceiptBoard::new(Arc::new(receipts.clone()));
        Self { context, receipts, board }
    }

    /// All methods in one table.
    pub fn into_module(self) -> RpcModule<Self> {
        let mut module = BlindApiServer::into_rpc(self.clone());
        let merged = module.merge(ReceiptApiServer::into_rpc(self));
        assert!(merged.is_ok(), "the traits name different methods");
        module
    }

    /// The receipts that are followed here.
    pub fn board(&self) -> &ReceiptBoard {
        &self.board
    }

    /// Tells receipts that are followed as they change, until it is to stop.
    pub async fn tell_receipts(self, mut stop: Stop) {
        let ReadContext { tracker, executor, .. } = &self.context;
        let (mut sealed, mut certified) = (tracker.watch_sealed(), tracker.watch_certified());
        let mut executed = executor.watch_status();
        // Of an executor's status more changes than receipts tell of.
        let of_receipts = |status: &ExecutorStatus| {
            (status.block.map(|block| block.hash), status.last_batch, Arc::clone(&status.void_runs))
        };
        let moving = async {
            let mut known = of_receipts(&executed.borrow_and_update());
            loop {
                let (alive, of_execution) = tokio::select! {
                    changed = sealed.changed() => (changed, false),
                    changed = certified.changed() => (changed, false),
                    changed = executed.changed() => (changed, true),
                };
                if alive.is_err() {
                    // What it is read from ends, and this with it: when the board has told so.
                    return std::future::pending().await;
                }
                let status = of_receipts(&executed.borrow());
                if !of_execution || status != known {
                    known = status;
                    self.board.moved();
                }
            }
        };
        tokio::select! {
            biased;
            () = self.board.clone().run(stop.clone()) => {}
            () = moving => {}
        }
        until(&mut stop).await;
    }

    fn batch_state(&self, record: &BatchRecord) -> BatchState {
        let number = record.number;
        let runs = self.context.executor.status().void_runs;
        if accepted(record) > 0 && runs.iter().any(|run| run.contains(number)) {
            BatchState::Void
        } else if number <= self.executed_through() {
            BatchState::Executed
        } else if number <= self.context.tracker.certified().number {
            BatchState::Certified
        } else {
            BatchState::Sealed
        }
    }

    /// The last batch whose second is executed; later ones may be closed without a block.
    fn executed_through(&self) -> u64 {
        self.context.executor.status().last_batch
    }

    /// The header that an account is asked for after.
    fn ledger_number(&self, at: Option<LedgerAt>) -> Result<Option<u64>, RpcError> {
        let ReadContext { tracker, executor, role, .. } = &self.context;
        match at.unwrap_or(LedgerAt::Tag(LedgerTag::Posted)) {
            LedgerAt::Number(number) => Ok(Some(number)),
            LedgerAt::Tag(LedgerTag::Latest) => Ok(None),
            LedgerAt::Tag(LedgerTag::Certified) => Ok(Some(tracker.certified().number)),
            LedgerAt::Tag(LedgerTag::Posted) => {
                let posted = role.posted().unwrap_or_default().max(executor.status().settled.posted);
                // A header that was posted by somebody else may not be here yet.
                match posted.min(tracker.certified().number) {
                    0 => Err(RpcError::unavailable("nothing_posted", "no header of this chain is on L1 yet")),
                    posted => Ok(Some(posted)),
                }
            }
        }
    }

    fn batch_info(&self, number: u64, record: BatchRecord) -> BatchInfo {
        BatchInfo {
            number,
            hash: record.hash,
            timestamp_ms: record.sealed.header.timestamp_ms,
            state: self.batch_state(&record),
            sealed: Encoded::new(&record.sealed),
            certificate: record.certificate.as_ref().map(Encoded::new),
            release: record.release.as_ref().map(Encoded::new),
            hints: record.hints.as_ref().map(Encoded::new),
            verdicts: record.items.into_iter().map(|item| item.fault).collect(),
        }
    }
}

/// The keys that envelopes for number `next` and for later ones may be encrypted to: that of its epoch, and of the one after
/// it where its parameters are here.
#[must_use]
pub fn encryption_keys(parameters: &ParameterSet, next: u64) -> Vec<EncryptionKeyInfo> {
    let known = parameters.all();
    let of_these = known.iter().filter(|entry| entry.epoch().last >= next).take(2);
    let info = of_these.map(|entry| {
        let epoch = entry.epoch();
        EncryptionKeyInfo {
            epoch: epoch.epoch,
            first_number: epoch.first,
            last_number: epoch.last,
            encryption_key: Bytes::from(entry.encryption_key().to_bytes().to_vec()),
            encryption_key_hash: epoch.encryption_key_hash,
            parameters_hash: epoch.parameters_hash,
            parameters_location: entry.parameters_location().to_owned(),
        }
    });
    info.collect()
}

#[async_trait]
impl BlindApiServer for ReadApi {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        let next = self.context.tracker.head().number + 1;
        Ok(encryption_keys(&self.context.parameters, next))
    }

    async fn get_receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        Ok(self.receipts.of(vec![id]).await?.pop().flatten())
    }

    async fn get_batch(&self, number: u64) -> Result<Option<BatchInfo>, RpcError> {
        let record = self.context.stored_batch(number).await?;
        Ok(record.map(|record| self.batch_info(number, record)))
    }

    async fn get_hints(&self, number: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        let record = self.context.stored_batch(number).await?;
        Ok(record.and_then(|record| record.hints).map(|hints| Encoded::new(&hints)))
    }

    async fn get_fee_account(&self, address: Address) -> Result<FeeAccount, RpcError> {
        let tracker = &self.context.tracker;
        let (account, live_nonces, held, fees) = tracker.with_state(|state| {
            let ledger = state.ledger();
            (
                ledger.account(&address).copied().unwrap_or_default(),
                ledger.live_nonces(&address) as u64,
                ledger.held_of(&address),
                state.next_base_fees(),
            )
        });
        Ok(FeeAccount {
            address,
            balance: account.balance.saturating_sub(self.context.role.reserved(&address)),
            held,
            live_nonces,
            base_fee: fees.base_fee,
            gas_base_fee: fees.gas_base_fee,
            malformed_surcharge: tracker.config().malformed_surcharge,
        })
    }

    async fn get_fee_account_proof(
        &self,
        address: Address,
        at: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        let ReadContext { tracker, .. } = &self.context;
        let found = match self.ledger_number(at)? {
            Some(number) => tracker.prove_account(&address, number).await.map_err(proof_refused)?,
            None => tracker.prove_newest_account(&address),
        };
        Ok(found.map(|ProvedAccount { account, proof, header }| FeeAccountProof {
            address,
            balance: account.balance,
            withdrawn: account.withdrawn,
            siblings: proof.siblings,
            number: header.number,
            header_hash: header.hash,
        }))
    }

    async fn get_status(&self) -> Result<Status, RpcError> {
        let ReadContext { tracker, executor, role, .. } = &self.context;
        let (config, head) = (tracker.config(), tracker.head());
        let heads = tracker.for_caller(tracker.store().heads()).await.map_err(RpcError::internal)?;
        let executed = executor.status();
        // What is executed needs no hints, or never gets any: L1 made it, or declared it void.
        let hinted = heads.hinted_through.unwrap_or(0).max(executed.last_batch);
        let (block, fees) = (executed.block, tracker.next_base_fees());
        Ok(Status {
            role: role.role().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            chain_id: config.chain_id,
            l1_chain_id: config.deployment.l1_chain_id,
            inbox: config.deployment.inbox,
            head: BatchHead {
                number: head.number,
                hash: head.hash,
                timestamp_ms: head.timestamp_ms,
                generation: head.generation,
            },
            certified: tracker.certified().number,
            hinted,
            posted: role
                .posted()
                .or_else(|| Some(executor.status().settled.posted).filter(|posted| *posted > 0)),
            block: block.map_or(BlockHead { number: 0, hash: B256::ZERO, timestamp: 0 }, |block| BlockHead {
                number: block.number,
                hash: block.hash,
                timestamp: block.timestamp,
            }),
            pending_envelopes: role.pending_envelopes(),
            base_fee: fees.base_fee,
            gas_base_fee: fees.gas_base_fee,
            counters: role.counters(),
        })
    }

    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        topic: String,
    ) -> SubscriptionResult {
        self.context.hub.attach(pending, extensions, &topic).await
    }
}

#[async_trait]
impl ReceiptApiServer for ReadApi {
    async fn get_receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        match ids.len() {
            1..=MAX_RECEIPTS => self.receipts.of(ids).await,
            count => Err(too_many_ids(count)),
        }
    }

    async fn subscribe_receipts(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        ids: Vec<B256>,
    ) -> SubscriptionResult {
        self.board.serve(pending, extensions, ids).await
    }
}

fn proof_refused(refusal: AccountProofError) -> RpcError {
    match refusal {
        AccountProofError::NoHeader { .. } => RpcError::unavailable("unknown_batch", refusal),
        AccountProofError::Forgotten(_) => RpcError::refused("ledger_forgotten", refusal),
        AccountProofError::Busy => RpcError::busy("proofs_busy", refusal),
        AccountProofError::Changed => RpcError::busy("chain_changed", refusal),
        AccountProofError::Store(error) => RpcError::internal(error),
    }
}

/// Hands reads of public state on to the execution client. `allowed` is the role's list:
/// [`blindfold_rpc::READ_METHODS`], and for a full node [`blindfold_rpc::NODE_ONLY_METHODS`] beside (J-4).
pub fn passthrough(
    client: Arc<dyn ExecutionClient>,
    allowed: impl IntoIterator<Item = &'static str>,
) -> Passthrough {
    Passthrough::new(allowed, move |method, params| {
        let client = Arc::clone(&client);
        async move { read_through(client.as_ref(), &method, params).await }
    })
}

async fn read_through(
    client: &dyn ExecutionClient,
    method: &str,
    params: Option<Box<RawValue>>,
) -> Result<Box<RawValue>, ErrorObjectOwned> {
    let params = match params {
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|error| RpcError::invalid_params("malformed_params", error))?,
        None => serde_json::Value::Array(Vec::new()),
    };
    let result = client.read(method, params).await.map_err(|error| match error {
        ReadError::NotAllowed { method } => ErrorObjectOwned::from(RpcError::unknown_method(&method)),
        error @ ReadError::Busy { .. } => RpcError::busy("reads_busy", error).into(),
        // The client's own words, as a wallet knows them.
        ReadError::Rpc { code, message, data } => ErrorObjectOwned::owned(
            i32::try_from(code).unwrap_or(blindfold_rpc::code::INTERNAL),
            message,
            data,
        ),
        ReadError::Transport(error) => RpcError::unavailable("execution_client_unavailable", error).into(),
    })?;
    serde_json::value::to_raw_value(&result).map_err(|error| RpcError::internal(error).into())
}

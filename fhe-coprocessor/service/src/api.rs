//! The reads of `confidential_*` over the store.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_chain::{Settled, Tracker};
use blindfold_rpc::RpcError;
use blindfold_rpc::confidential::{
    ConfidentialAccount, ConfidentialApiServer, ConfidentialParameters, ConfidentialStatus,
    ConfidentialTransactionInfo, PublicBalance, Standing,
};
use blindfold_store::{
    ConfidentialAccountRecord, ConfidentialHead, ConfidentialStore, StoreError,
    StoredConfidentialTransaction, TreeName,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::counters::Counters;
use crate::invoices::{InvoiceDesk, Request};
use crate::limits::MAX_TRANSFERS_PER_CALL;
use crate::{ExecutionState, ExecutionStatus};

/// Levels of the account tree.
const TREE_DEPTH: u8 = 32;

/// What is stored of a transaction beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    /// The transaction's kind, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why it was refused; none where it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Receipt {
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings always have a JSON form")
    }
}

/// Turns stored accounts into what is served; the encoding is the state machine's.
pub trait AccountView: Send + Sync + 'static {
    /// The account with its ciphertexts, without proof and roots: `siblings` is empty and every root zero.
    ///
    /// # Errors
    /// Bytes that are no account: the disk is damaged.
    fn account(&self, record: &ConfidentialAccountRecord) -> Result<ConfidentialAccount, String>;

    /// The root of an empty subtree of this level; level 0 is an empty leaf.
    fn empty_root(&self, level: u8) -> B256;
}

/// What the reads are made of.
#[derive(Clone)]
pub(crate) struct ReadApi {
    pub(crate) store: Arc<dyn ConfidentialStore>,
    pub(crate) tracker: Tracker,
    pub(crate) status: watch::Receiver<ExecutionStatus>,
    pub(crate) marks: watch::Receiver<Settled>,
    pub(crate) counters: Counters,
    pub(crate) parameters: Arc<ConfidentialParameters>,
    pub(crate) view: Arc<dyn AccountView>,
    pub(crate) invoices: InvoiceDesk,
}

impl ReadApi {
    /// The state at a version that ends a batch; the newest where none is named.
    async fn head_at(&self, version: Option<u64>) -> Result<ConfidentialHead, RpcError> {
        let newest = self.status.borrow().head;
        let Some(version) = version.filter(|version| *version != newest.version) else { return Ok(newest) };
        if version > newest.version {
            let message = format!("version {version} is not reached; the newest is {}", newest.version);
            return Err(RpcError::unavailable("version_not_reached", message));
        }
        if let Some(head) = self.store.confidential_head_at(version).await.map_err(internal)? {
            return Ok(head);
        }
        Err(self.not_kept(version).await)
    }

    async fn not_kept(&self, version: u64) -> RpcError {
        let end = match self.store.confidential_batch_end(version).await {
            Ok(end) => end.unwrap_or(self.status.borrow().head.version),
            Err(error) => return internal(error),
        };
        let message = format!(
            "accounts of version {version} are not kept: they are at the ends of batches; the next kept version is {end}"
        );
        RpcError::invalid_params("version_not_kept", message)
    }

    /// Refuses what was read of a state that was forgotten meanwhile: old ones are, beside callers.
    async fn still_kept(&self, head: &ConfidentialHead) -> Result<(), RpcError> {
        match self.store.confidential_head_at(head.version).await.map_err(internal)? {
            Some(_) => Ok(()),
            None => Err(self.not_kept(head.version).await),
        }
    }

    fn info(&self, stored: StoredConfidentialTransaction) -> Result<ConfidentialTransactionInfo, RpcError> {
        let StoredConfidentialTransaction { number, record } = stored;
        let Receipt { kind, reason } = serde_json::from_str(&record.receipt).map_err(RpcError::internal)?;
        let marks = *self.marks.borrow();
        let standing = match number {
            number if number <= marks.finalized => Standing::Finalized,
            number if number <= marks.safe => Standing::Safe,
            _ => Standing::Latest,
        };
        Ok(ConfidentialTransactionInfo {
            id: record.id,
            sequence: record.sequence,
            version: record.version,
            number,
            standing,
            item: record.item,
            position: record.position,
            kind,
            applied: record.applied,
            reason,
            transaction: Bytes::from(record.bytes),
            state_root: record.state_root,
        })
    }

    async fn siblings(&self, index: u32, version: u64) -> Result<Vec<B256>, StoreError> {
        let places: Vec<(u8, u32)> = (0..TREE_DEPTH).map(|level| (level, (index >> level) ^ 1)).collect();
        let nodes = self.store.confidential_nodes(TreeName::Accounts, &places, version).await?;
        let filled = (0..TREE_DEPTH).zip(nodes);
        Ok(filled.map(|(level, node)| node.unwrap_or_else(|| self.view.empty_root(level))).collect())
    }
}

#[async_trait]
impl ConfidentialApiServer for ReadApi {
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError> {
        let ExecutionStatus { head, state } = self.status.borrow().clone();
        let marks = *self.marks.borrow();
        let (state, reason) = match state {
            ExecutionState::Waiting => ("waiting", None),
            ExecutionState::WaitingForHints(number) => {
                ("waiting_for_hints", Some(format!("hints of batch {number}")))
            }
            ExecutionState::Executing => ("executing", None),
            ExecutionState::Retrying(reason) => ("retrying", Some(reason)),
            ExecutionState::Halted(reason) => ("halted", Some(reason)),
            ExecutionState::Stopped => ("stopped", None),
        };
        Ok(ConfidentialStatus {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            certified: self.tracker.certified().number,
            safe: marks.safe.min(head.number),
            finalized: marks.finalized.min(head.number),
            batch: head.number,
            batch_hash: head.hash,
            sequence: head.sequence,
            version: head.version,
            accounts: head.accounts,
            confidential: head.confidential,
            state_root: head.state_root,
            state: state.to_owned(),
            reason,
            counters: self.counters.by_name(),
        })
    }

    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError> {
        Ok((*self.parameters).clone())
    }

    async fn get_account(
        &self,
        owner: Address,
        version: Option<u64>,
    ) -> Result<Option<ConfidentialAccount>, RpcError> {
        let head = self.head_at(version).await?;
        let record = self.store.confidential_account(owner, head.version).await.map_err(internal)?;
        let siblings = match &record {
            Some(record) => self.siblings(record.index, head.version).await.map_err(internal)?,
            None => Vec::new(),
        };
        self.still_kept(&head).await?;
        let Some(record) = record else { return Ok(None) };
        let account = self.view.account(&record).map_err(RpcError::internal)?;
        Ok(Some(ConfidentialAccount {
            siblings,
            version: head.version,
            accounts: head.accounts,
            accounts_root: head.accounts_root,
            public_accounts: head.public_accounts,
            public_root: head.public_root,
            state_root: head.state_root,
            ..account
        }))
    }

    async fn get_public_balance(&self, owner: Address) -> Result<PublicBalance, RpcError> {
        let record = self.store.public_balance(owner).await.map_err(internal)?;
        let (balance, nonce) = record.map_or((0, 0), |record| (record.balance, record.nonce));
        Ok(PublicBalance { owner, balance, nonce })
    }

    async fn get_transaction(&self, id: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError> {
        let found = self.store.confidential_transaction(id).await.map_err(internal)?;
        found.map(|stored| self.info(stored)).transpose()
    }

    async fn get_transfers(
        &self,
        owner: Address,
        from: u64,
        limit: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError> {
        let limit =
            limit.map_or(MAX_TRANSFERS_PER_CALL, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let limit = limit.min(MAX_TRANSFERS_PER_CALL);
        let found = self.store.confidential_transactions_of(owner, from, limit).await.map_err(internal)?;
        found.into_iter().map(|stored| self.info(stored)).collect()
    }

    async fn get_state_root(&self, version: u64) -> Result<Option<B256>, RpcError> {
        self.store.confidential_state_root(version).await.map_err(internal)
    }

    async fn get_invoice_total(
        &self,
        key: Bytes,
        quantities: Bytes,
        prices: Bytes,
        mask_seed: B256,
    ) -> Result<Bytes, RpcError> {
        self.invoices.total(Request { key, quantities, prices, mask_seed }).await
    }
}

fn internal(error: StoreError) -> RpcError {
    RpcError::internal(error)
}

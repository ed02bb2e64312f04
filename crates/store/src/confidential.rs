//! The seam of the coprocessor: confidential accounts, their tree, and what became of each confidential transaction.
//!
//! A **sequence** counts confidential transactions in committed order, applied and refused ones alike; a **version**
//! counts the applied ones, and version 0 is the genesis. The state root of every version is kept. Accounts, tree nodes
//! and public balances are kept as they stand at the end of each batch, which is stored in one step.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use async_trait::async_trait;

use crate::StoreError;

/// Where confidential execution stands after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfidentialHead {
    /// The batch number; 0 for the genesis.
    pub number: u64,
    /// Hash of that batch's header.
    pub hash: B256,
    /// Confidential transactions up to and with it.
    pub sequence: u64,
    /// Those of them that were applied.
    pub version: u64,
    /// How many confidential accounts there are.
    pub accounts: u32,
    /// How many public balances there are.
    pub public_accounts: u32,
    /// Root of the tree of accounts.
    pub accounts_root: B256,
    /// Root of the tree of public balances.
    pub public_root: B256,
    /// What all confidential accounts hold together, in base units.
    pub confidential: u64,
    /// The state root over all of these.
    pub state_root: B256,
}

/// A confidential account as a version left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfidentialAccountRecord {
    /// Its place in the tree: the order of registration.
    pub index: u32,
    /// Address of the owner.
    pub owner: Address,
    /// The account in the caller's encoding.
    pub state: Vec<u8>,
}

/// One of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TreeName {
    /// The tree of confidential accounts.
    Accounts,
    /// The tree of public balances.
    Public,
}

/// A node of a tree. Level 0 are the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeNodeRecord {
    /// The tree that the node is in.
    pub tree: TreeName,
    /// Level above the leaves, which are at 0.
    pub level: u8,
    /// Place in its level, from 0.
    pub index: u32,
    /// Hash of the node.
    pub hash: B256,
}

/// A public balance of the coprocessor's ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicBalanceRecord {
    /// Address of the owner.
    pub owner: Address,
    /// Its place in the tree: the order of the first credit.
    pub index: u32,
    /// The balance, in base units.
    pub balance: u64,
    /// Deposits that it has signed.
    pub nonce: u64,
}

/// A confidential transaction in its place, with what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfidentialTransactionRecord {
    /// Its place in the order of all confidential transactions, from 1.
    pub sequence: u64,
    /// The state's version after it.
    pub version: u64,
    /// Id of the transaction.
    pub id: B256,
    /// The batch item that holds it.
    pub item: u32,
    /// Its place in that item's bundle, from 0.
    pub position: u16,
    /// Whether it was applied to the state.
    pub applied: bool,
    /// The transaction's bytes as they were committed.
    pub bytes: Vec<u8>,
    /// What became of it, JSON of the caller's form.
    pub receipt: String,
    /// The state root after it.
    pub state_root: B256,
    /// Accounts whose owners look for it.
    pub parties: Vec<Address>,
}

/// A confidential transaction with the batch it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConfidentialTransaction {
    /// Number of the batch that holds it.
    pub number: u64,
    /// The transaction, and what became of it.
    pub record: ConfidentialTransactionRecord,
}

/// What one batch changes, stored in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfidentialBatchRecord {
    /// Where execution stands after it.
    pub head: ConfidentialHead,
    /// Its confidential transactions in committed order.
    pub transactions: Vec<ConfidentialTransactionRecord>,
    /// The accounts that changed, as they are now.
    pub accounts: Vec<ConfidentialAccountRecord>,
    /// The nodes of both trees that changed, as they are now.
    pub nodes: Vec<TreeNodeRecord>,
    /// The public balances that changed, as they are now.
    pub balances: Vec<PublicBalanceRecord>,
}

/// The durable record of the coprocessor. As for [`Store`](crate::Store): a write is durable when its future returns
/// `Ok`, and nothing of it is stored when it returns an error.
#[async_trait]
pub trait ConfidentialStore: Send + Sync {
    /// Stores what a batch changes. The first one is the genesis, number 0; every other follows the newest.
    ///
    /// The same batch again is no error; another outcome for a stored number is refused. Shared, for it is large and may
    /// have to be offered more than once.
    async fn put_confidential_batch(&self, batch: Arc<ConfidentialBatchRecord>) -> Result<(), StoreError>;

    /// The newest batch; none before the genesis.
    async fn confidential_head(&self) -> Result<Option<ConfidentialHead>, StoreError>;

    /// The newest batch that ends at this version; none where no batch ends there, or where it is pruned.
    async fn confidential_head_at(&self, version: u64) -> Result<Option<ConfidentialHead>, StoreError>;

    /// The first kept version, not below this one, that ends a batch: where accounts can be read.
    async fn confidential_batch_end(&self, version: u64) -> Result<Option<u64>, StoreError>;

    /// The place of an owner's account in the tree, as it stands now; none where there is no account.
    async fn confidential_index(&self, owner: Address) -> Result<Option<u32>, StoreError>;

    /// An account as it stands at a version that ends a batch.
    async fn confidential_account(
        &self,
        owner: Address,
        version: u64,
    ) -> Result<Option<ConfidentialAccountRecord>, StoreError>;

    /// Accounts as they stand now, by index from `from` on; at most `limit` and at most the implementation's page.
    async fn confidential_accounts(
        &self,
        from: u32,
        limit: usize,
    ) -> Result<Vec<ConfidentialAccountRecord>, StoreError>;

    /// Nodes as they stand at a version that ends a batch, in the order asked for; none for an empty subtree.
    async fn confidential_nodes(
        &self,
        tree: TreeName,
        places: &[(u8, u32)],
        version: u64,
    ) -> Result<Vec<Option<B256>>, StoreError>;

    /// All public balances as they stand now, by owner, for a restart.
    async fn public_balances(&self) -> Result<Vec<PublicBalanceRecord>, StoreError>;

    /// One public balance as it stands now.
    async fn public_balance(&self, owner: Address) -> Result<Option<PublicBalanceRecord>, StoreError>;

    /// A transaction by its id: where it was applied, else where it was refused last.
    async fn confidential_transaction(
        &self,
        id: B256,
    ) -> Result<Option<StoredConfidentialTransaction>, StoreError>;

    /// Transactions that an account's owner looks for, by sequence from `from` on; at most `limit` and at most the
    /// implementation's page.
    async fn confidential_transactions_of(
        &self,
        party: Address,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredConfidentialTransaction>, StoreError>;

    /// All transactions, applied and refused ones, by sequence from `from` on; at most `limit` and at most the
    /// implementation's page.
    async fn confidential_transactions_from(
        &self,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredConfidentialTransaction>, StoreError>;

    /// How many confidential transactions a batch holds, applied and refused ones.
    async fn confidential_transactions_in(&self, number: u64) -> Result<u64, StoreError>;

    /// The state root of a version.
    async fn confidential_state_root(&self, version: u64) -> Result<Option<B256>, StoreError>;

    /// Forgets a few of the accounts, nodes and balances that a later version up to `version` has replaced, and of the batches
    /// before it, and says whether there are more. State roots and transactions stay. A step is one transaction over what at
    /// most [`PRUNE_STEP_ROWS`](crate::PRUNE_STEP_ROWS) new rows of each table have replaced, or those of one batch; it is
    /// called again while there are more, after a restart too.
    async fn prune_confidential(&self, version: u64) -> Result<bool, StoreError>;
}

//! The stored state as the state machine reads it.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_confidential::executor::Executed;
use blindfold_confidential::state::{Account, PublicAccount, Settings, Storage, Tree};
use blindfold_confidential::tree::Place;
use blindfold_store::{ConfidentialStore, StoreError, TreeName, What};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::limits::MAX_CACHED_ACCOUNTS;

/// The newest version, read from the store at first need and kept in memory from then on: nodes and public balances
/// all, accounts, which are large, as many as [`MAX_CACHED_ACCOUNTS`].
///
/// Reads block, so they belong on threads that may: those of the executor.
pub(crate) struct StoredState {
    store: Arc<dyn ConfidentialStore>,
    settings: Arc<Settings>,
    runtime: Handle,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    nodes: HashMap<(Tree, Place), Option<B256>>,
    public: HashMap<Address, Option<PublicAccount>>,
    accounts: HashMap<Address, Option<Arc<Account>>>,
}

impl StoredState {
    pub(crate) fn new(store: Arc<dyn ConfidentialStore>, settings: Arc<Settings>, runtime: Handle) -> Self {
        Self { store, settings, runtime, cache: Mutex::default() }
    }

    /// Takes over what a batch changed; it is in the store before the next one is executed.
    pub(crate) fn apply(&self, executed: &Executed) {
        let mut cache = self.cache.lock();
        // Versions ascend: the last one of a place stays.
        for (tree, nodes) in
            [(Tree::Accounts, &executed.account_nodes), (Tree::Public, &executed.public_nodes)]
        {
            cache.nodes.extend(nodes.iter().map(|node| ((tree, node.place), Some(node.hash))));
        }
        cache.public.extend(executed.public.iter().map(|(address, account)| (*address, Some(*account))));
        if cache.accounts.len() > MAX_CACHED_ACCOUNTS {
            cache.accounts.clear();
        }
        let changed = executed.accounts.iter();
        cache.accounts.extend(changed.map(|account| (account.identity.owner, Some(Arc::clone(account)))));
    }

    fn damaged(fault: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt { what: What::ConfidentialAccount, fault: fault.to_string() }
    }
}

impl Storage for StoredState {
    type Error = StoreError;

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, StoreError> {
        if let Some(known) = self.cache.lock().accounts.get(owner) {
            return Ok(known.clone());
        }
        let record = self.runtime.block_on(self.store.confidential_account(*owner, u64::MAX))?;
        let account = record.map(|record| Account::decode(&self.settings, &record.state)).transpose();
        let account = account.map_err(|fault| Self::damaged(&fault))?.map(Arc::new);
        self.cache.lock().accounts.insert(*owner, account.clone());
        Ok(account)
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, StoreError> {
        if let Some(known) = self.cache.lock().public.get(address) {
            return Ok(*known);
        }
        let record = self.runtime.block_on(self.store.public_balance(*address))?;
        let account = record.map(|record| PublicAccount {
            index: record.index,
            balance: record.balance,
            nonce: record.nonce,
        });
        self.cache.lock().public.insert(*address, account);
        Ok(account)
    }

    /// Of the newest version only, which is the one that a batch is executed on.
    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, StoreError> {
        if let Some(known) = self.cache.lock().nodes.get(&(tree, place)) {
            return Ok(*known);
        }
        let places = [(place.level, place.index)];
        let found = self.store.confidential_nodes(tree_name(tree), &places, version);
        let hash = self.runtime.block_on(found)?.into_iter().next().flatten();
        self.cache.lock().nodes.insert((tree, place), hash);
        Ok(hash)
    }
}

pub(crate) const fn tree_name(tree: Tree) -> TreeName {
    match tree {
        Tree::Accounts => TreeName::Accounts,
        Tree::Public => TreeName::Public,
    }
}

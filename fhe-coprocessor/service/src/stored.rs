//! The stored state as the state machine reads it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_confidential::executor::Executed;
use blindfold_confidential::state::{Account, PublicAccount, Settings, Storage, Tree};
use blindfold_confidential::tree::Place;
use blindfold_store::{ConfidentialStore, StoreError, TreeName, What};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::limits::{MAX_CACHED_ACCOUNTS, MAX_CACHED_NODES, MAX_CACHED_PUBLIC_ACCOUNTS};

/// The newest version, read from the store at first need and kept in memory from then on, each kind up to its limit. What
/// does not exist is not kept: anybody can name addresses without end.
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
    nodes: HashMap<(Tree, Place), B256>,
    public: HashMap<Address, PublicAccount>,
    accounts: HashMap<Address, Arc<Account>>,
}

/// Keeps this one too; at the limit everything else is forgotten first, for it is in the store.
fn keep<K: Eq + Hash, V>(cache: &mut HashMap<K, V>, limit: usize, key: K, value: V) {
    if cache.len() >= limit && !cache.contains_key(&key) {
        cache.clear();
    }
    cache.insert(key, value);
}

impl Cache {
    fn keep_node(&mut self, tree: Tree, place: Place, hash: B256) {
        keep(&mut self.nodes, MAX_CACHED_NODES, (tree, place), hash);
    }

    fn keep_public(&mut self, address: Address, account: PublicAccount) {
        keep(&mut self.public, MAX_CACHED_PUBLIC_ACCOUNTS, address, account);
    }

    fn keep_account(&mut self, account: &Arc<Account>) {
        keep(&mut self.accounts, MAX_CACHED_ACCOUNTS, account.identity.owner, Arc::clone(account));
    }
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
            nodes.iter().for_each(|node| cache.keep_node(tree, node.place, node.hash));
        }
        executed.public.iter().for_each(|(address, account)| cache.keep_public(*address, *account));
        executed.accounts.iter().for_each(|account| cache.keep_account(account));
    }

    fn damaged(fault: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt { what: What::ConfidentialAccount, fault: fault.to_string() }
    }
}

impl Storage for StoredState {
    type Error = StoreError;

    fn is_registered(&self, owner: &Address) -> Result<bool, StoreError> {
        if self.cache.lock().accounts.contains_key(owner) {
            return Ok(true);
        }
        Ok(self.runtime.block_on(self.store.confidential_index(*owner))?.is_some())
    }

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, StoreError> {
        if let Some(known) = self.cache.lock().accounts.get(owner) {
            return Ok(Some(Arc::clone(known)));
        }
        let record = self.runtime.block_on(self.store.confidential_account(*owner, u64::MAX))?;
        let account = record.map(|record| Account::decode(&self.settings, &record.state)).transpose();
        let account = account.map_err(|fault| Self::damaged(&fault))?.map(Arc::new);
        if let Some(account) = &account {
            self.cache.lock().keep_account(account);
        }
        Ok(account)
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, StoreError> {
        if let Some(known) = self.cache.lock().public.get(address) {
            return Ok(Some(*known));
        }
        let record = self.runtime.block_on(self.store.public_balance(*address))?;
        let account = record.map(|record| PublicAccount {
            index: record.index,
            balance: record.balance,
            nonce: record.nonce,
        });
        if let Some(account) = account {
            self.cache.lock().keep_public(*address, account);
        }
        Ok(account)
    }

    /// Of the newest version only, which is the one that a batch is executed on.
    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, StoreError> {
        if let Some(known) = self.cache.lock().nodes.get(&(tree, place)) {
            return Ok(Some(*known));
        }
        let places = [(place.level, place.index)];
        let found = self.store.confidential_nodes(tree_name(tree), &places, version);
        let hash = self.runtime.block_on(found)?.into_iter().next().flatten();
        if let Some(hash) = hash {
            self.cache.lock().keep_node(tree, place, hash);
        }
        Ok(hash)
    }
}

pub(crate) const fn tree_name(tree: Tree) -> TreeName {
    match tree {
        Tree::Accounts => TreeName::Accounts,
        Tree::Public => TreeName::Public,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use blindfold_confidential::Fr;
    use blindfold_confidential::state::{Genesis, Head, Identity};
    use blindfold_confidential::statement::Domain;
    use blindfold_confidential::tree::Written;
    use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
    use blindfold_store::{ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, SqlStore};

    use super::*;

    fn address(number: usize) -> Address {
        Address::left_padding_from(&(number as u64 + 1).to_be_bytes())
    }

    /// A batch that credits so many public accounts.
    fn crediting(head: Head, count: usize) -> Executed {
        let public = |index| (address(index as usize), PublicAccount { index, balance: 1, nonce: 0 });
        let node = |index| Written { place: Place { level: 0, index }, version: 1, hash: B256::ZERO };
        Executed {
            receipts: vec![],
            head,
            accounts: vec![],
            public: (0..count as u32).map(public).collect(),
            account_nodes: vec![],
            public_nodes: (0..count as u32).map(node).collect(),
        }
    }

    fn settings() -> Settings {
        let parameters = Parameters::toy().unwrap();
        let public = PublicPolynomial::insecure(&parameters, &[7; 32]);
        let auditor = SecretKey::derive(&public, &[0xaa; 32]).public_key();
        let domain = Domain { l1_chain_id: 1, chain_id: 42, contract: address(1) };
        Settings::new(domain, &public, &auditor, address(2), 3).unwrap()
    }

    #[test]
    fn what_is_kept_in_memory_exists_and_is_bounded() {
        let settings = settings();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqlStore::open(folder.path().join("store.sqlite")).unwrap());
        let state = StoredState::new(store, Arc::new(settings), runtime.handle().clone());
        let kept = || {
            let cache = state.cache.lock();
            [cache.nodes.len(), cache.public.len(), cache.accounts.len()]
        };
        for number in 0..100 {
            assert!(state.account(&address(number)).unwrap().is_none());
            assert!(state.public_account(&address(number)).unwrap().is_none());
            let place = Place { level: 0, index: number as u32 };
            assert_eq!(state.node(Tree::Accounts, place, 0).unwrap(), None);
        }
        assert_eq!(kept(), [0, 0, 0], "nothing of what does not exist");

        let head = Genesis::new(&[]).unwrap().head;
        state.apply(&crediting(head, 10));
        assert_eq!(kept(), [10, 10, 0]);
        assert_eq!(state.public_account(&address(5)).unwrap().map(|account| account.index), Some(5));
        // One batch that changes more than is kept.
        state.apply(&crediting(head, MAX_CACHED_PUBLIC_ACCOUNTS.max(MAX_CACHED_NODES) + 3));
        let [nodes, public, _] = kept();
        assert!((1..=MAX_CACHED_NODES).contains(&nodes), "{nodes}");
        assert!((1..=MAX_CACHED_PUBLIC_ACCOUNTS).contains(&public), "{public}");
    }

    /// A batch can name far more accounts than are kept, and change them.
    #[test]
    fn accounts_are_kept_up_to_the_limit_within_a_batch() {
        const MANY: usize = MAX_CACHED_ACCOUNTS + 3;
        let settings = settings();
        let account = |index| {
            let (owner, key) = (address(index), settings.auditor().clone());
            let secret_commitment = Fr::from(index as u64);
            let identity = Identity { index: index as u32, owner, key, secret_commitment };
            Arc::new(Account::new(&settings, identity))
        };
        let accounts: Vec<Arc<Account>> = (0..MANY).map(account).collect();
        let genesis = Genesis::new(&[]).unwrap().head;
        let record = |account: &Arc<Account>| ConfidentialAccountRecord {
            index: account.identity.index,
            owner: account.identity.owner,
            state: account.encode(&settings),
        };
        let batch = ConfidentialBatchRecord {
            head: ConfidentialHead {
                number: 0,
                hash: B256::ZERO,
                sequence: 0,
                version: 0,
                accounts: MANY as u32,
                public_accounts: 0,
                accounts_root: genesis.accounts_root,
                public_root: genesis.public_root,
                confidential: 0,
                state_root: genesis.state_root(),
            },
            transactions: vec![],
            accounts: accounts.iter().map(record).collect(),
            nodes: vec![],
            balances: vec![],
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = Arc::new(SqlStore::in_memory().unwrap());
        runtime.block_on(store.put_confidential_batch(batch.into())).unwrap();
        let state = StoredState::new(store, Arc::new(settings.clone()), runtime.handle().clone());
        let kept = || state.cache.lock().accounts.len();

        assert!(accounts.iter().all(|account| state.is_registered(&account.identity.owner).unwrap()));
        assert!(!state.is_registered(&address(MANY)).unwrap());
        assert_eq!(kept(), 0, "whether there is an account is known without it");
        for account in &accounts {
            assert_eq!(state.account(&account.identity.owner).unwrap().as_ref(), Some(account));
            assert!((1..=MAX_CACHED_ACCOUNTS).contains(&kept()), "{}", kept());
        }
        state.apply(&Executed { accounts: accounts.clone(), ..crediting(genesis, 0) });
        assert!((1..=MAX_CACHED_ACCOUNTS).contains(&kept()), "{}", kept());
        assert_eq!(state.account(&address(0)).unwrap().as_ref(), Some(&accounts[0]), "read again");
    }
}

//! The state as a transaction sees it: what is stored, under what the transactions before it changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{Address, B256, Keccak256};

use super::{Account, Effects, PublicAccount, Settings};
use crate::tags;
use crate::tree::{self, Place};

/// Which of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tree {
    /// The accounts with encrypted balances.
    Accounts,
    /// The accounts of the public ledger.
    Public,
}

/// Where the state is kept. What is read is the newest version, but for nodes of the trees.
pub trait Storage: Sync {
    /// Why nothing could be read.
    type Error: Send;

    /// Whether an owner has an account: cheaper than the account.
    ///
    /// # Errors
    /// The store's.
    fn is_registered(&self, owner: &Address) -> Result<bool, Self::Error>;

    /// The account of an owner.
    ///
    /// # Errors
    /// The store's.
    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, Self::Error>;

    /// The public account of an address.
    ///
    /// # Errors
    /// The store's.
    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, Self::Error>;

    /// A node, as [`tree::Nodes::node`].
    ///
    /// # Errors
    /// The store's.
    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, Self::Error>;
}

/// The nodes of one tree of a store.
pub(crate) struct NodesOf<'a, S: Storage>(pub(crate) &'a S, pub(crate) Tree);

impl<S: Storage> tree::Nodes for NodesOf<'_, S> {
    type Error = S::Error;

    fn node(&self, place: Place, version: u64) -> Result<Option<B256>, S::Error> {
        self.0.node(self.1, place, version)
    }
}

/// What names a version of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many transactions were applied since genesis.
    pub version: u64,
    /// How many accounts have encrypted balances.
    pub accounts: u32,
    /// How many accounts the public ledger has.
    pub public_accounts: u32,
    /// Root of the accounts' tree.
    pub accounts_root: B256,
    /// Root of the public ledger's tree.
    pub public_root: B256,
    /// What all accounts hold together, in base units: deposits less withdrawals and fees. With the public balances it is
    /// the supply, which never changes.
    pub confidential: u64,
}

impl Head {
    /// keccak256(0x02 ‖ accounts u32 ‖ root of the accounts ‖ root of the public ledger).
    #[must_use]
    pub fn state_root(&self) -> B256 {
        let mut hash = Keccak256::new();
        hash.update([tags::STATE_ROOT]);
        hash.update(self.accounts.to_be_bytes());
        hash.update(self.accounts_root);
        hash.update(self.public_root);
        hash.finalize()
    }
}

/// A store that is asked once for each public account and for each account that is not there, which a batch can name again
/// and again. Accounts that are there are large, and a batch can name any number: how many to keep is the store's to know.
pub(crate) struct Remembered<'a, S> {
    storage: &'a S,
    registered: Mutex<HashMap<Address, bool>>,
    public: Mutex<HashMap<Address, Option<PublicAccount>>>,
}

impl<'a, S> Remembered<'a, S> {
    pub(crate) fn new(storage: &'a S) -> Self {
        Self { storage, registered: Mutex::default(), public: Mutex::default() }
    }
}

/// What is remembered, or what is read now.
fn remembered<T: Clone, E>(
    memory: &Mutex<HashMap<Address, T>>,
    address: &Address,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let lock = || memory.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(address) {
        return Ok(found.clone());
    }
    let found = read()?;
    lock().insert(*address, found.clone());
    Ok(found)
}

impl<S: Storage> Storage for Remembered<'_, S> {
    type Error = S::Error;

    fn is_registered(&self, owner: &Address) -> Result<bool, S::Error> {
        remembered(&self.registered, owner, || self.storage.is_registered(owner))
    }

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, S::Error> {
        let registered = || self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if registered().get(owner) == Some(&false) {
            return Ok(None);
        }
        let account = self.storage.account(owner)?;
        registered().insert(*owner, account.is_some());
        Ok(account)
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, S::Error> {
        remembered(&self.public, address, || self.storage.public_account(address))
    }

    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, S::Error> {
        self.storage.node(tree, place, version)
    }
}

/// A ledger as the store of what is assumed on top of it.
pub(crate) struct Beneath<'a, S>(pub(crate) &'a Ledger<'a, S>);

impl<S: Storage> Storage for Beneath<'_, S> {
    type Error = S::Error;

    fn is_registered(&self, owner: &Address) -> Result<bool, S::Error> {
        self.0.is_registered(owner)
    }

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, S::Error> {
        match self.0.accounts.get(owner) {
            Some(known) => Ok(known.clone()),
            None => self.0.storage.account(owner),
        }
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, S::Error> {
        match self.0.public.get(address) {
            Some(known) => Ok(*known),
            None => self.0.storage.public_account(address),
        }
    }

    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, S::Error> {
        self.0.storage.node(tree, place, version)
    }
}

/// A store's newest version with changes over it.
pub(crate) struct Ledger<'a, S> {
    pub(crate) settings: &'a Settings,
    storage: &'a S,
    pub(crate) head: Head,
    accounts: HashMap<Address, Option<Arc<Account>>>,
    public: HashMap<Address, Option<PublicAccount>>,
}

impl<'a, S: Storage> Ledger<'a, S> {
    pub(crate) fn new(settings: &'a Settings, storage: &'a S, head: Head) -> Self {
        Self { settings, storage, head, accounts: HashMap::new(), public: HashMap::new() }
    }

    pub(crate) fn is_registered(&self, owner: &Address) -> Result<bool, S::Error> {
        match self.accounts.get(owner) {
            Some(known) => Ok(known.is_some()),
            None => self.storage.is_registered(owner),
        }
    }

    pub(crate) fn account(&mut self, owner: &Address) -> Result<Option<Arc<Account>>, S::Error> {
        if let Some(known) = self.accounts.get(owner) {
            return Ok(known.clone());
        }
        let account = self.storage.account(owner)?;
        self.accounts.insert(*owner, account.clone());
        Ok(account)
    }

    /// The public account of an address; one that was never credited has no index yet.
    pub(crate) fn public_account(&mut self, address: &Address) -> Result<Option<PublicAccount>, S::Error> {
        if let Some(known) = self.public.get(address) {
            return Ok(*known);
        }
        let account = self.storage.public_account(address)?;
        self.public.insert(*address, account);
        Ok(account)
    }

    /// Puts what a transaction made in place.
    pub(crate) fn put(&mut self, effects: &Effects) {
        // Judging has seen to it that neither bound is met.
        self.head.confidential =
            self.head.confidential.saturating_add(effects.paid_in).saturating_sub(effects.paid_out);
        self.place(effects);
    }

    /// Likewise what an open proof claims, but for what it takes out of the accounts: who proves nothing could claim all
    /// that they hold, and nothing would be allowed behind it.
    pub(crate) fn put_open(&mut self, effects: &Effects) {
        self.place(effects);
    }

    fn place(&mut self, effects: &Effects) {
        self.head.version += 1;
        for account in &effects.accounts {
            self.head.accounts = self.head.accounts.max(account.identity.index + 1);
            self.accounts.insert(account.identity.owner, Some(Arc::clone(account)));
        }
        for (address, account) in &effects.public {
            self.head.public_accounts = self.head.public_accounts.max(account.index + 1);
            self.public.insert(*address, Some(*account));
        }
    }
}

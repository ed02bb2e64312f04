//! The first state, and a state in memory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use alloy_primitives::{Address, B256};

use super::{Account, Head, PublicAccount, Storage, Tree};
use crate::executor::Executed;
use crate::tree::{self, Change, MemoryNodes, Nodes, Place, Proof, Written};

/// The first state of a deployment: public balances, no account.
#[derive(Debug, Clone)]
pub struct Genesis {
    /// What names version 0: counts and roots.
    pub head: Head,
    /// The public accounts, by index.
    pub public: Vec<(Address, PublicAccount)>,
    /// Nodes of the public ledger's tree.
    pub public_nodes: Vec<Written>,
}

/// Allocations that make no first state; whoever configures is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// An address is named twice.
    #[error("{0} is named twice: add its allocations up")]
    Twice(Address),
    /// The balances do not fit the limbs of an amount together.
    #[error("the allocations sum to 2^64 base units or more: choose larger units")]
    Supply,
    /// More than the index holds.
    #[error("{0} allocations, more than the tree has places")]
    Count(usize),
}

impl Genesis {
    /// Public balances in the given order, which is that of their indices.
    ///
    /// # Errors
    /// [`GenesisError`].
    pub fn new(allocations: &[(Address, u64)]) -> Result<Self, GenesisError> {
        let count = u32::try_from(allocations.len()).map_err(|_| GenesisError::Count(allocations.len()))?;
        let mut seen = BTreeMap::new();
        let mut supply = 0u64;
        for (address, balance) in allocations {
            supply = supply.checked_add(*balance).ok_or(GenesisError::Supply)?;
            if seen.insert(*address, ()).is_some() {
                return Err(GenesisError::Twice(*address));
            }
        }
        let public: Vec<(Address, PublicAccount)> = (0..count)
            .zip(allocations)
            .map(|(index, (address, balance))| {
                (*address, PublicAccount { index, balance: *balance, nonce: 0 })
            })
            .collect();
        let leaves = public.iter().map(|(address, account)| (account.index, account.leaf(address))).collect();
        let Ok(update) = tree::update(&MemoryNodes::default(), 0, 0, &[Change { version: 0, leaves }]);
        let head = Head {
            version: 0,
            accounts: 0,
            public_accounts: count,
            accounts_root: tree::empty(tree::DEPTH),
            public_root: update.roots.first().copied().unwrap_or_default(),
            confidential: 0,
        };
        Ok(Self { head, public, public_nodes: update.written })
    }
}

/// A state in memory with all its versions: for tests, and as the model of a store's.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    head: Head,
    accounts: HashMap<Address, Arc<Account>>,
    public: HashMap<Address, PublicAccount>,
    nodes: [MemoryNodes; 2],
}

impl MemoryStorage {
    /// A storage in memory that holds the first state.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        let mut nodes = [MemoryNodes::default(), MemoryNodes::default()];
        nodes[1].write(&genesis.public_nodes);
        Self {
            head: genesis.head,
            accounts: HashMap::new(),
            public: genesis.public.iter().copied().collect(),
            nodes,
        }
    }

    /// The newest version.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Puts an executed batch in place.
    pub fn commit(&mut self, executed: &Executed) {
        self.head = executed.head;
        for account in &executed.accounts {
            self.accounts.insert(account.identity.owner, Arc::clone(account));
        }
        self.public.extend(executed.public.iter().copied());
        self.nodes[0].write(&executed.account_nodes);
        self.nodes[1].write(&executed.public_nodes);
    }

    /// All accounts, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values()
    }

    /// All public accounts, in no order.
    pub fn public(&self) -> impl Iterator<Item = (&Address, &PublicAccount)> {
        self.public.iter()
    }

    /// The proof of an index in a version whose tree has `count` leaves.
    #[must_use]
    pub fn prove(&self, tree: Tree, version: u64, count: u32, index: u32) -> Proof {
        let Ok(proof) = tree::prove(self.nodes_of(tree), version, count, index);
        proof
    }

    const fn nodes_of(&self, tree: Tree) -> &MemoryNodes {
        match tree {
            Tree::Accounts => &self.nodes[0],
            Tree::Public => &self.nodes[1],
        }
    }
}

impl Storage for MemoryStorage {
    type Error = Infallible;

    fn is_registered(&self, owner: &Address) -> Result<bool, Infallible> {
        Ok(self.accounts.contains_key(owner))
    }

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, Infallible> {
        Ok(self.accounts.get(owner).cloned())
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, Infallible> {
        Ok(self.public.get(address).copied())
    }

    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, Infallible> {
        self.nodes_of(tree).node(place, version)
    }
}

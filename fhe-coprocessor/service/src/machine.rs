//! The seam to what is executed.

use alloy_primitives::{Address, B256};
use blindfold_store::{ConfidentialAccountRecord, PublicBalanceRecord, StoreError, TreeNodeRecord};

/// A bundle item of kind 1 in its committed place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedItem {
    /// The batch item that holds it.
    pub item: u32,
    /// Its place in that item's bundle.
    pub position: u16,
    /// The transaction's bytes, as they were committed.
    pub bytes: Vec<u8>,
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The transaction's id: the hash of its bytes.
    pub id: B256,
    /// Its kind, where it is one.
    pub kind: Option<&'static str>,
    /// Why it is refused; `None` where it was applied.
    pub refusal: Option<String>,
    /// The version after it: the one before it, where it was refused.
    pub version: u64,
    /// The state root after it.
    pub state_root: B256,
    /// Accounts whose owners look for it.
    pub parties: Vec<Address>,
}

/// What names a state: counts and roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Transactions applied since the genesis.
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
    /// The state root over counts and roots.
    pub state_root: B256,
}

/// What a batch changed. Each account, node and balance stands here once, as the batch left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// One for each item, in order.
    pub outcomes: Vec<Outcome>,
    /// The accounts that changed, as they are now.
    pub accounts: Vec<ConfidentialAccountRecord>,
    /// The tree nodes that changed, as they are now.
    pub nodes: Vec<TreeNodeRecord>,
    /// The public balances that changed, as they are now.
    pub balances: Vec<PublicBalanceRecord>,
    /// What names the state afterwards.
    pub roots: Roots,
}

/// A deterministic state machine in memory: the same items on the same state give the same [`Execution`] on every
/// machine. What it gives is stored by the service, which opens it again from there.
pub trait Machine: Send {
    /// What is stored before the first batch: the genesis.
    fn genesis(&self) -> Execution;

    /// Executes the items of one batch in order. Blocking: proofs are verified here. Whatever the items are, it ends
    /// with an outcome for each, and one that is refused changes nothing.
    ///
    /// # Errors
    /// The store's, where state is read from there; nothing has changed then.
    fn execute(&mut self, items: &[CommittedItem]) -> Result<Execution, StoreError>;
}

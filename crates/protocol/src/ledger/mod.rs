//! The fee ledger: who has what for ordering fees, and which fee nonces are in use.
//!
//! Deposits come from L1, fees leave at sealing. The malformed surcharge is *held* beside the accounts until L1 shows
//! whether the envelope was well-formed. A withdrawal moves from an account's balance to what it has withdrawn in all,
//! which `FeeVault` pays out. Nothing is created or lost: Σ deposits = Σ balances + Σ held + Σ withdrawn.

mod changes;
mod tree;

pub use changes::LedgerChanges;

use crate::codec::{Canonical, DecodeError, Reader, Writer, serde_as_hex};
use crate::{merkle, tags};
use alloy_primitives::{Address, B256, Keccak256};
use std::collections::{BTreeMap, BTreeSet};
use tree::LedgerTree;

/// One payer's part of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Account {
    /// What can be spent, in wei.
    pub balance: u128,
    /// What was withdrawn so far, in wei. Never falls: `FeeVault` pays what is above what it has paid.
    pub withdrawn: u128,
    /// Fee nonces in use, each with the expiry of the envelope that used it.
    pub nonces: BTreeMap<u64, u64>,
}

impl Account {
    /// Whether the account has no leaf: no balance, nothing withdrawn and no live nonce.
    pub fn is_empty(&self) -> bool {
        self.balance == 0 && self.withdrawn == 0 && self.nonces.is_empty()
    }

    /// keccak256 of the nonces in use, each followed by its expiry, ascending.
    pub fn nonces_hash(&self) -> B256 {
        let mut nonces = Keccak256::new();
        for (nonce, expiry) in &self.nonces {
            nonces.update(nonce.to_be_bytes());
            nonces.update(expiry.to_be_bytes());
        }
        nonces.finalize()
    }

    /// The Merkle leaf of this account.
    pub fn leaf(&self, payer: &Address) -> B256 {
        self.as_leaf(payer).hash()
    }

    /// The account as the ledger's tree sees it.
    pub fn as_leaf(&self, payer: &Address) -> AccountLeaf {
        let (balance, withdrawn, nonces_hash) = (self.balance, self.withdrawn, self.nonces_hash());
        AccountLeaf { payer: *payer, balance, withdrawn, nonces_hash }
    }
}

/// An account as the ledger's tree and `FeeVault` see it: without the nonces themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountLeaf {
    /// Whose account it is.
    pub payer: Address,
    /// What can be spent, in wei.
    pub balance: u128,
    /// What was withdrawn so far, in wei.
    pub withdrawn: u128,
    /// [`Account::nonces_hash`].
    pub nonces_hash: B256,
}

impl AccountLeaf {
    /// The Merkle leaf.
    pub fn hash(&self) -> B256 {
        let mut data = [0u8; 84];
        data[..20].copy_from_slice(self.payer.as_slice());
        data[20..36].copy_from_slice(&self.balance.to_be_bytes());
        data[36..52].copy_from_slice(&self.withdrawn.to_be_bytes());
        data[52..].copy_from_slice(self.nonces_hash.as_slice());
        merkle::leaf(&data)
    }
}

/// version · balance u128 · withdrawn u128 · u32 count · count × (feeNonce u64 · expiry u64), nonces ascending.
impl Canonical for Account {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::versioned(37 + 16 * self.nonces.len());
        out.u128(self.balance).u128(self.withdrawn).count(self.nonces.len());
        for (nonce, expiry) in &self.nonces {
            out.u64(*nonce).u64(*expiry);
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::versioned(bytes)?;
        let balance = reader.u128("balance")?;
        let withdrawn = reader.u128("withdrawn")?;
        // Bounded by the input itself: each nonce takes 16 bytes.
        let count = reader.count("live nonces", reader_limit(bytes))?;
        let mut nonces = BTreeMap::new();
        for _ in 0..count {
            let (nonce, expiry) = (reader.u64("fee nonce")?, reader.u64("expiry")?);
            if nonces.last_key_value().is_some_and(|(last, _)| *last >= nonce) {
                return Err(DecodeError::Unordered { field: "fee nonce" });
            }
            nonces.insert(nonce, expiry);
        }
        reader.finish()?;
        Ok(Self { balance, withdrawn, nonces })
    }
}

fn reader_limit(bytes: &[u8]) -> usize {
    bytes.len() / 16
}

serde_as_hex!(Account);

/// A surcharge kept back for one accepted item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Index of the item in its batch, from 0, skipped items counted.
    pub item: u32,
    /// Who paid it.
    pub payer: Address,
    /// Wei.
    pub amount: u128,
}

/// One account before and after; `None` is no leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountChange {
    /// The account.
    pub payer: Address,
    /// As it was.
    pub before: Option<Account>,
    /// As it is.
    pub after: Option<Account>,
}

/// What is held for one batch before and after; empty is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// Batch number.
    pub number: u64,
    /// As it was.
    pub before: Vec<Held>,
    /// As it is.
    pub after: Vec<Held>,
}

/// Everything one step changed, enough to go forth and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerDelta {
    /// Changed accounts, by payer.
    pub accounts: Vec<AccountChange>,
    /// Changed surcharges, by number.
    pub held: Vec<HeldChange>,
}

/// Why the ledger refuses a step. Always the fault of the caller's facts, never of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// A credit takes a balance above 128 bits, which FeeVault's own limit excludes.
    #[error("a credit of {amount} wei takes the balance of {payer} above 128 bits")]
    Overflow {
        /// The account credited.
        payer: Address,
        /// Wei.
        amount: u128,
    },
    /// A debit above the balance.
    #[error("{payer} has less than {amount} wei")]
    Insufficient {
        /// The account debited.
        payer: Address,
        /// Wei.
        amount: u128,
    },
    /// The delta does not start from what the ledger holds.
    #[error("the delta does not fit the present state of {0}")]
    Account(Address),
    /// The delta does not start from what is held.
    #[error("the delta does not fit what is held for batch {0}")]
    Held(u64),
    /// Nothing is held for the batch: released before, or never.
    #[error("nothing is held for batch {0}")]
    NothingHeld(u64),
    /// A malformed item for which nothing is held.
    #[error("nothing is held for item {item} of batch {number}")]
    UnknownItem {
        /// Batch number.
        number: u64,
        /// Item index.
        item: u32,
    },
}

/// A proof that an account stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProof {
    /// Index of the leaf.
    pub index: u64,
    /// Number of leaves.
    pub count: u64,
    /// Siblings from the leaf up.
    pub siblings: Vec<B256>,
}

impl LedgerProof {
    /// Whether the account stands in the ledger with this `feeLedgerRoot`.
    pub fn verify(&self, fee_ledger_root: &B256, payer: &Address, account: &Account) -> bool {
        self.root_with(&account.leaf(payer)).is_some_and(|root| root == *fee_ledger_root)
    }

    /// The `feeLedgerRoot` that this leaf leads to; `None` for a proof that is none.
    pub fn root_with(&self, leaf: &B256) -> Option<B256> {
        let (mut hash, mut at) = (*leaf, self.index);
        if self.index >= self.count || self.siblings.len() != merkle::depth(self.count) {
            return None;
        }
        for sibling in &self.siblings {
            hash = if at & 1 == 0 { merkle::node(&hash, sibling) } else { merkle::node(sibling, &hash) };
            at >>= 1;
        }
        Some(fee_root(self.count, &hash))
    }
}

/// `keccak256(0x02 ‖ count u64 ‖ root)`.
fn fee_root(count: u64, root: &B256) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update([tags::FEE_LEDGER_ROOT]);
    hasher.update(count.to_be_bytes());
    hasher.update(root);
    hasher.finalize()
}

/// All accounts, what is held, and the Merkle tree over them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeeLedger {
    accounts: BTreeMap<Address, Account>,
    held: BTreeMap<u64, Vec<Held>>,
    /// Live nonces by expiry, so that pruning reads only what it removes.
    expiries: BTreeMap<u64, BTreeSet<(Address, u64)>>,
    tree: LedgerTree,
}

/// The tree of a ledger that is not the newest, for proofs alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierLedger {
    tree: LedgerTree,
}

impl EarlierLedger {
    /// Its `feeLedgerRoot`.
    pub fn root(&self) -> B256 {
        fee_root(self.tree.len() as u64, &self.tree.root())
    }

    /// Proof of an account against [`EarlierLedger::root`].
    pub fn prove(&self, payer: &Address) -> Option<LedgerProof> {
        let (index, siblings) = self.tree.prove(payer)?;
        Some(LedgerProof { index: index as u64, count: self.tree.len() as u64, siblings })
    }
}

impl FeeLedger {
    /// The ledger of stored accounts and held surcharges. Empty accounts are left out; of a payer named twice the last
    /// counts.
    pub fn from_parts(
        accounts: impl IntoIterator<Item = (Address, Account)>,
        held: impl IntoIterator<Item = (u64, Vec<Held>)>,
    ) -> Self {
        let accounts: BTreeMap<_, _> = accounts.into_iter().collect();
        let mut ledger = Self::default();
        ledger.set_accounts(accounts.into_iter().map(|(payer, account)| (payer, Some(account))));
        ledger.held = held.into_iter().filter(|(_, held)| !held.is_empty()).collect();
        ledger
    }

    /// The account, if it has a leaf.
    pub fn account(&self, payer: &Address) -> Option<&Account> {
        self.accounts.get(payer)
    }

    /// All accounts, by payer.
    pub fn accounts(&self) -> &BTreeMap<Address, Account> {
        &self.accounts
    }

    /// All held surcharges, by batch number.
    pub fn held(&self) -> &BTreeMap<u64, Vec<Held>> {
        &self.held
    }

    /// What is held of one payer over all batches, in wei. Costs a walk over everything held.
    pub fn held_of(&self, payer: &Address) -> u128 {
        // Saturating: a report only; deposits of 2^128 wei do not exist.
        self.held.values().flatten().filter(|held| held.payer == *payer).fold(0, |sum, held| {
            let sum: u128 = sum;
            sum.saturating_add(held.amount)
        })
    }

    /// `feeLedgerRoot`: binds the number of accounts and their tree.
    pub fn root(&self) -> B256 {
        fee_root(self.tree.len() as u64, &self.tree.root())
    }

    /// Proof of an account against [`FeeLedger::root`].
    pub fn prove(&self, payer: &Address) -> Option<LedgerProof> {
        let (index, siblings) = self.tree.prove(payer)?;
        Some(LedgerProof { index: index as u64, count: self.tree.len() as u64, siblings })
    }

    /// The tree of an earlier ledger: this one's, with these accounts as they were then. Costs a copy of the tree, a
    /// path for each account that changed, and the tree from the first on that came or went.
    pub fn tree_with<'a>(
        &self,
        then: impl IntoIterator<Item = (Address, Option<&'a AccountLeaf>)>,
    ) -> EarlierLedger {
        let leaves = then.into_iter().map(|(payer, leaf)| (payer, leaf.map(AccountLeaf::hash))).collect();
        let mut tree = self.tree.clone();
        tree.update(&leaves);
        EarlierLedger { tree }
    }

    /// Starts a step; the ledger changes only with [`FeeLedger::apply`].
    pub fn changes(&self) -> LedgerChanges<'_> {
        LedgerChanges::new(self)
    }

    /// Returns what is held for a batch: to the payers of well-formed items, and to `beneficiary` (the sequencer) for
    /// the malformed ones. Applied at once; the delta undoes it.
    pub fn release_held(
        &mut self,
        number: u64,
        malformed: &[u32],
        beneficiary: Address,
    ) -> Result<LedgerDelta, LedgerFault> {
        let mut changes = self.changes();
        changes.release_held(number, malformed, beneficiary)?;
        let delta = changes.finish();
        self.apply(&delta)?;
        Ok(delta)
    }

    /// Goes one step forth. Nothing changes when the delta does not fit.
    pub fn apply(&mut self, delta: &LedgerDelta) -> Result<(), LedgerFault> {
        self.step(delta, |change| (&change.before, &change.after), |change| (&change.before, &change.after))
    }

    /// Goes one step back: the exact undo of [`FeeLedger::apply`]. Nothing changes when the delta does not fit.
    pub fn revert(&mut self, delta: &LedgerDelta) -> Result<(), LedgerFault> {
        self.step(delta, |change| (&change.after, &change.before), |change| (&change.after, &change.before))
    }

    fn step(
        &mut self,
        delta: &LedgerDelta,
        account: impl Fn(&AccountChange) -> (&Option<Account>, &Option<Account>),
        held: impl Fn(&HeldChange) -> (&Vec<Held>, &Vec<Held>),
    ) -> Result<(), LedgerFault> {
        for change in &delta.accounts {
            if self.accounts.get(&change.payer) != account(change).0.as_ref() {
                return Err(LedgerFault::Account(change.payer));
            }
        }
        for change in &delta.held {
            if self.held.get(&change.number).map_or(&[][..], Vec::as_slice) != held(change).0.as_slice() {
                return Err(LedgerFault::Held(change.number));
            }
        }
        self.set_accounts(delta.accounts.iter().map(|change| (change.payer, account(change).1.clone())));
        for change in &delta.held {
            let to = held(change).1;
            if to.is_empty() {
                self.held.remove(&change.number);
            } else {
                self.held.insert(change.number, to.clone());
            }
        }
        Ok(())
    }

    fn set_accounts(&mut self, changes: impl Iterator<Item = (Address, Option<Account>)>) {
        let mut leaves = BTreeMap::new();
        for (payer, account) in changes {
            let account = account.filter(|account| !account.is_empty());
            leaves.insert(payer, account.as_ref().map(|account| account.leaf(&payer)));
            for (nonce, expiry) in account.iter().flat_map(|account| &account.nonces) {
                self.expiries.entry(*expiry).or_default().insert((payer, *nonce));
            }
            let old = match &account {
                Some(account) => self.accounts.insert(payer, account.clone()),
                None => self.accounts.remove(&payer),
            };
            for (nonce, expiry) in old.into_iter().flat_map(|old| old.nonces) {
                let kept = account.as_ref().and_then(|account| account.nonces.get(&nonce)) == Some(&expiry);
                if !kept {
                    self.forget_expiry(expiry, payer, nonce);
                }
            }
        }
        self.tree.update(&leaves);
    }

    fn forget_expiry(&mut self, expiry: u64, payer: Address, nonce: u64) {
        if let Some(nonces) = self.expiries.get_mut(&expiry) {
            nonces.remove(&(payer, nonce));
            if nonces.is_empty() {
                self.expiries.remove(&expiry);
            }
        }
    }
}

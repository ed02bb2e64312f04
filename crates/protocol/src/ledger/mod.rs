//! The fee ledger: who has what for ordering fees, and which fee nonces are in use.
//!
//! Deposits come from L1, fees leave at sealing. The malformed surcharge is *held* beside the accounts until L1 shows
//! whether the envelope was well-formed. A withdrawal moves from an account's balance to what it has withdrawn in all,
//! which `FeeVault` pays out. Nothing is created or lost: Σ deposits = Σ balances + Σ held + Σ withdrawn.
//!
//! A header commits to accounts and live nonces by one tree ([`LedgerTree`]), each an entry of its own
//! ([`LedgerEntry`]). A batch costs time, memory and disk by what it touches, however many accounts there are and
//! however many nonces of one payer are alive. What an account's proof shows, and why nothing else passes for one, is
//! written in [`LedgerProof`]'s module.

mod before;
mod builder;
mod changes;
mod delta;
mod entry;
mod proof;
mod tree;

pub use before::LedgerBefore;
pub use builder::LedgerBuilder;
pub use changes::LedgerChanges;
pub use delta::{AccountChange, HeldChange, LedgerDelta, LedgerDeltaError, NonceChange};
pub use entry::LedgerEntry;
pub use proof::LedgerProof;
pub use tree::LedgerTree;

use alloy_primitives::{Address, B256};
use std::collections::{BTreeMap, BTreeSet};

/// What one payer has, and has taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Account {
    /// What can be spent, in wei.
    pub balance: u128,
    /// What was withdrawn so far, in wei. Never falls: `FeeVault` pays what is above what it has paid.
    pub withdrawn: u128,
}

impl Account {
    /// Whether the account has no leaf: no balance and nothing withdrawn.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A surcharge kept back for one accepted item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// Index of the item in its batch, from 0, skipped items counted.
    pub item: u32,
    /// Who paid it, and gets it back.
    pub payer: Address,
    /// What is held, in wei.
    pub amount: u128,
}

/// A fee nonce in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LiveNonce {
    /// The payer whose nonce it is.
    pub payer: Address,
    /// The fee nonce itself.
    pub nonce: u64,
    /// Expiry of the envelope that used it: the last batch in which it is in use.
    pub expiry: u64,
}

/// All accounts, live nonces and what is held, and the tree over accounts and nonces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeeLedger {
    accounts: BTreeMap<Address, Account>,
    /// Live nonces with their expiries.
    nonces: BTreeMap<Address, BTreeMap<u64, u64>>,
    /// Live nonces by expiry, so that pruning reads only what it removes.
    expiries: BTreeMap<u64, BTreeSet<(Address, u64)>>,
    held: BTreeMap<u64, Vec<Held>>,
    /// What is held of each payer over all batches, in wei.
    held_of: BTreeMap<Address, u128>,
    tree: LedgerTree,
}

impl FeeLedger {
    /// The ledger of these parts, as [`LedgerBuilder`] makes it.
    pub fn from_parts(
        accounts: impl IntoIterator<Item = (Address, Account)>,
        nonces: impl IntoIterator<Item = LiveNonce>,
        held: impl IntoIterator<Item = (u64, Vec<Held>)>,
    ) -> Self {
        let mut builder = LedgerBuilder::default();
        accounts.into_iter().for_each(|(payer, account)| builder.account(payer, account));
        nonces.into_iter().for_each(|nonce| builder.nonce(nonce));
        held.into_iter().for_each(|(number, held)| builder.held(number, held));
        builder.finish()
    }

    /// The account, if it has a leaf.
    pub fn account(&self, payer: &Address) -> Option<&Account> {
        self.accounts.get(payer)
    }

    /// All accounts that have a leaf, by payer.
    pub fn accounts(&self) -> &BTreeMap<Address, Account> {
        &self.accounts
    }

    /// The expiry until which a payer's fee nonce is in use; `None` for a free one.
    pub fn nonce(&self, payer: &Address, nonce: u64) -> Option<u64> {
        self.nonces.get(payer)?.get(&nonce).copied()
    }

    /// How many fee nonces of a payer are in use.
    pub fn live_nonces(&self, payer: &Address) -> usize {
        self.nonces.get(payer).map_or(0, BTreeMap::len)
    }

    /// All nonces in use, by payer and nonce.
    pub fn nonces(&self) -> impl Iterator<Item = LiveNonce> {
        self.nonces.iter().flat_map(|(payer, nonces)| {
            nonces.iter().map(|(nonce, expiry)| LiveNonce { payer: *payer, nonce: *nonce, expiry: *expiry })
        })
    }

    /// All held surcharges, by batch number.
    pub fn held(&self) -> &BTreeMap<u64, Vec<Held>> {
        &self.held
    }

    /// What is held of one payer over all batches, in wei.
    pub fn held_of(&self, payer: &Address) -> u128 {
        self.held_of.get(payer).copied().unwrap_or_default()
    }

    /// The root that headers name as `feeLedgerRoot`.
    pub fn root(&self) -> B256 {
        self.tree.root()
    }

    /// Proof of an account against [`FeeLedger::root`]; `None` where there is no such leaf.
    pub fn prove(&self, payer: &Address) -> Option<LedgerProof> {
        self.tree.prove(payer).map(|(_, proof)| proof)
    }

    /// The tree as it is now. A clone of it costs nothing and stays as it is.
    pub fn tree(&self) -> &LedgerTree {
        &self.tree
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
    ) -> Result<LedgerDelta, LedgerDeltaError> {
        let mut changes = self.changes();
        changes.release_held(number, malformed, beneficiary)?;
        let delta = changes.finish();
        self.apply(&delta)?;
        Ok(delta)
    }

    /// Goes one step forth. Nothing changes when the delta does not fit.
    pub fn apply(&mut self, delta: &LedgerDelta) -> Result<(), LedgerDeltaError> {
        self.step(
            delta,
            |change| (change.before, change.after),
            |change| (change.before, change.after),
            |change| (&change.before, &change.after),
        )
    }

    /// Goes one step back: the exact undo of [`FeeLedger::apply`]. Nothing changes when the delta does not fit.
    pub fn revert(&mut self, delta: &LedgerDelta) -> Result<(), LedgerDeltaError> {
        self.step(
            delta,
            |change| (change.after, change.before),
            |change| (change.after, change.before),
            |change| (&change.after, &change.before),
        )
    }

    fn step(
        &mut self,
        delta: &LedgerDelta,
        account: impl Fn(&AccountChange) -> (Option<Account>, Option<Account>),
        nonce: impl Fn(&NonceChange) -> (Option<u64>, Option<u64>),
        held: impl Fn(&HeldChange) -> (&Vec<Held>, &Vec<Held>),
    ) -> Result<(), LedgerDeltaError> {
        for change in &delta.accounts {
            if self.accounts.get(&change.payer).copied() != account(change).0 {
                return Err(LedgerDeltaError::Account(change.payer));
            }
        }
        for change in &delta.nonces {
            let NonceChange { payer, nonce: of, .. } = *change;
            if self.nonce(&payer, of) != nonce(change).0 {
                return Err(LedgerDeltaError::Nonce { payer, nonce: of });
            }
        }
        for change in &delta.held {
            if self.held.get(&change.number).map_or(&[][..], Vec::as_slice) != held(change).0.as_slice() {
                return Err(LedgerDeltaError::Held(change.number));
            }
        }
        let accounts = delta
            .accounts
            .iter()
            .map(|change| LedgerEntry::Account { payer: change.payer, account: account(change).1 });
        let nonces = delta.nonces.iter().map(|change| {
            let NonceChange { payer, nonce: of, .. } = *change;
            LedgerEntry::Nonce { payer, nonce: of, expiry: nonce(change).1 }
        });
        let entries: Vec<LedgerEntry> = accounts.chain(nonces).collect();
        let tree = self.tree.with(entries.iter().copied());
        self.set_entries(&entries, tree);
        for change in &delta.held {
            self.set_held(change.number, held(change).1.clone());
        }
        Ok(())
    }

    /// Sets entries with the tree that they lead to.
    fn set_entries(&mut self, entries: &[LedgerEntry], tree: LedgerTree) {
        for entry in entries {
            match *entry {
                LedgerEntry::Account { payer, account } => self.set_account(payer, account),
                LedgerEntry::Nonce { payer, nonce, expiry } => self.set_nonce(payer, nonce, expiry),
            }
        }
        self.tree = tree;
    }

    fn set_account(&mut self, payer: Address, account: Option<Account>) {
        match account.filter(|account| !account.is_empty()) {
            Some(account) => self.accounts.insert(payer, account),
            None => self.accounts.remove(&payer),
        };
    }

    fn set_nonce(&mut self, payer: Address, nonce: u64, expiry: Option<u64>) {
        let nonces = self.nonces.entry(payer).or_default();
        let old = match expiry {
            Some(expiry) => nonces.insert(nonce, expiry),
            None => nonces.remove(&nonce),
        };
        if nonces.is_empty() {
            self.nonces.remove(&payer);
        }
        if let Some(old) = old
            && let Some(expiring) = self.expiries.get_mut(&old)
        {
            expiring.remove(&(payer, nonce));
            if expiring.is_empty() {
                self.expiries.remove(&old);
            }
        }
        if let Some(expiry) = expiry {
            self.expiries.entry(expiry).or_default().insert((payer, nonce));
        }
    }

    fn set_held(&mut self, number: u64, held: Vec<Held>) {
        for entry in self.held.remove(&number).into_iter().flatten() {
            if let Some(sum) = self.held_of.get_mut(&entry.payer) {
                *sum = sum.saturating_sub(entry.amount);
                if *sum == 0 {
                    self.held_of.remove(&entry.payer);
                }
            }
        }
        for entry in held.iter().filter(|entry| entry.amount > 0) {
            // Saturating: a report only; deposits of 2^128 wei do not exist.
            let sum = self.held_of.entry(entry.payer).or_default();
            *sum = sum.saturating_add(entry.amount);
        }
        if !held.is_empty() {
            self.held.insert(number, held);
        }
    }
}

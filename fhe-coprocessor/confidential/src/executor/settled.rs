//! What is certain about the first transactions of a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use rayon::prelude::*;

use super::MAX_UNHASHED_TRANSACTIONS;
use super::batch::{Batch, turn};
use super::known::Known;
use super::limits::Attempts;
use crate::state::{
    Account, Beneath, Effects, Head, Ledger, PublicAccount, Refusal, Remembered, Settings, Storage, Sum,
};

/// Index and hash of a leaf.
type Leaf = (u32, B256);

/// What an applied transaction leaves in the trees.
pub(super) struct Leaves {
    pub(super) accounts: Vec<Leaf>,
    pub(super) public: Vec<Leaf>,
}

/// The first transactions of a batch: what became of them, and the state after them.
pub(super) struct Settled<'a, S> {
    ledger: Ledger<'a, Remembered<'a, S>>,
    attempts: Attempts,
    outcomes: Vec<Result<Leaves, Refusal>>,
    /// The newest, not hashed yet.
    recent: Vec<Result<Effects, Refusal>>,
    /// Accounts that are new or changed, by index, as they are now: of earlier states only the leaves are kept.
    accounts: BTreeMap<u32, Arc<Account>>,
    public: BTreeMap<u32, (Address, PublicAccount)>,
}

/// What a whole batch made, before the trees.
pub(super) struct Made {
    /// For each transaction.
    pub(super) outcomes: Vec<Result<Leaves, Refusal>>,
    /// The newest version, roots aside.
    pub(super) head: Head,
    pub(super) accounts: Vec<Arc<Account>>,
    pub(super) public: Vec<(Address, PublicAccount)>,
}

impl<'a, S: Storage> Settled<'a, S> {
    pub(super) fn new(settings: &'a Settings, storage: &'a Remembered<'a, S>, head: Head) -> Self {
        Self {
            ledger: Ledger::new(settings, storage, head),
            attempts: Attempts::default(),
            outcomes: Vec::new(),
            recent: Vec::new(),
            accounts: BTreeMap::new(),
            public: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.outcomes.len() + self.recent.len()
    }

    /// Transactions whose states are kept.
    #[cfg(test)]
    pub(super) const fn unhashed(&self) -> usize {
        self.recent.len()
    }

    pub(super) const fn head(&self) -> &Head {
        &self.ledger.head
    }

    pub(super) const fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// The state, to look ahead from.
    pub(super) const fn beneath(&self) -> Beneath<'_, Remembered<'a, S>> {
        Beneath(&self.ledger)
    }

    /// Takes what became of the next transactions.
    pub(super) fn take(
        &mut self,
        batch: &Batch<'_>,
        outcomes: Vec<Result<Effects, Refusal>>,
        known: &mut Known,
    ) {
        for outcome in outcomes {
            let (place, item) = (self.len(), &batch.items[self.len()]);
            match (&outcome, turn(item)) {
                (Ok(effects), _) => {
                    self.put(effects);
                    known.forget(&item.id, place);
                }
                // A copy may come, with the same premises.
                (Err(Refusal::InvalidProof), Some(turn)) => self.attempts.failed(turn),
                // One may when the accounts hold more.
                (Err(Refusal::ConfidentialSupply), _) => {}
                (Err(_), _) => known.forget(&item.id, place),
            }
            self.recent.push(outcome);
            if self.recent.len() >= MAX_UNHASHED_TRANSACTIONS {
                self.hash();
            }
        }
    }

    fn put(&mut self, effects: &Effects) {
        self.ledger.put(effects);
        let accounts = effects.accounts.iter();
        self.accounts.extend(accounts.map(|account| (account.identity.index, Arc::clone(account))));
        self.public.extend(effects.public.iter().map(|entry| (entry.1.index, *entry)));
    }

    /// Ciphertexts and leaves of the newest, on all threads.
    fn hash(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        let accounts = recent.iter().flatten().flat_map(|effects| &effects.accounts);
        Sum::hash_all(accounts.flat_map(|account| [&account.available, &account.pending]));
        let hashed = recent.into_par_iter().map(|outcome| outcome.map(|effects| Leaves::of(&effects)));
        self.outcomes.par_extend(hashed);
    }

    /// What the batch made, when all of it is settled.
    pub(super) fn finish(mut self) -> Made {
        self.hash();
        Made {
            outcomes: self.outcomes,
            head: self.ledger.head,
            accounts: self.accounts.into_values().collect(),
            public: self.public.into_values().collect(),
        }
    }
}

impl Leaves {
    fn of(effects: &Effects) -> Self {
        Self {
            accounts: effects
                .accounts
                .iter()
                .map(|account| (account.identity.index, account.leaf()))
                .collect(),
            public: effects
                .public
                .iter()
                .map(|(address, account)| (account.index, account.leaf(address)))
                .collect(),
        }
    }
}

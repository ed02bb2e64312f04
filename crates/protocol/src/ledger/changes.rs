//! One step of the ledger under way: reads through to the ledger, keeps what changes to itself.

use super::{
    Account, AccountChange, FeeLedger, Held, HeldChange, LedgerDelta, LedgerDeltaError, NonceChange,
};
use crate::limits::MAX_PRUNED_NONCES;
use alloy_primitives::Address;
use std::collections::{BTreeMap, BTreeSet};

/// Collects the changes of one step without touching the ledger.
pub struct LedgerChanges<'a> {
    ledger: &'a FeeLedger,
    accounts: BTreeMap<Address, Account>,
    nonces: BTreeMap<(Address, u64), Option<u64>>,
    held: BTreeMap<u64, Vec<Held>>,
}

impl<'a> LedgerChanges<'a> {
    pub(super) fn new(ledger: &'a FeeLedger) -> Self {
        Self { ledger, accounts: BTreeMap::new(), nonces: BTreeMap::new(), held: BTreeMap::new() }
    }

    /// The account as it stands in this step; empty where there is none.
    pub fn account(&self, payer: &Address) -> Account {
        self.accounts.get(payer).or_else(|| self.ledger.account(payer)).copied().unwrap_or_default()
    }

    /// Balance in this step, in wei.
    pub fn balance(&self, payer: &Address) -> u128 {
        self.account(payer).balance
    }

    /// Whether the payer's fee nonce is in use in batch `number`. One whose expiry has passed is free, forgotten or not.
    pub fn nonce_used(&self, payer: &Address, nonce: u64, number: u64) -> bool {
        let changed = self.nonces.get(&(*payer, nonce)).copied();
        changed.unwrap_or_else(|| self.ledger.nonce(payer, nonce)).is_some_and(|expiry| expiry >= number)
    }

    fn account_mut(&mut self, payer: Address) -> &mut Account {
        let ledger = self.ledger;
        self.accounts.entry(payer).or_insert_with(|| ledger.account(&payer).copied().unwrap_or_default())
    }

    /// Adds wei to a balance, which must stay within 128 bits.
    pub fn credit(&mut self, payer: Address, amount: u128) -> Result<(), LedgerDeltaError> {
        let sum =
            self.balance(&payer).checked_add(amount).ok_or(LedgerDeltaError::Overflow { payer, amount })?;
        self.account_mut(payer).balance = sum;
        Ok(())
    }

    /// Takes wei from a balance, which must cover it.
    pub fn debit(&mut self, payer: Address, amount: u128) -> Result<(), LedgerDeltaError> {
        let rest = self
            .balance(&payer)
            .checked_sub(amount)
            .ok_or(LedgerDeltaError::Insufficient { payer, amount })?;
        self.account_mut(payer).balance = rest;
        Ok(())
    }

    /// Moves up to `amount` from the balance to what is withdrawn; gives what was moved. An account without a balance
    /// stays as it is (F-11).
    pub fn withdraw(&mut self, payer: Address, amount: u128) -> Result<u128, LedgerDeltaError> {
        let moved = amount.min(self.balance(&payer));
        if moved == 0 {
            return Ok(0);
        }
        let withdrawn = self.account(&payer).withdrawn.checked_add(moved);
        let withdrawn = withdrawn.ok_or(LedgerDeltaError::Overflow { payer, amount: moved })?;
        self.debit(payer, moved)?;
        self.account_mut(payer).withdrawn = withdrawn;
        Ok(moved)
    }

    /// Releases everything held for batches `first ..= last`. Claims about items for which nothing is held change
    /// nothing: what L1 made final may be wrong about them, and must not halt the chain (F-8, F-9).
    pub fn settle(
        &mut self,
        first: u64,
        last: u64,
        malformed: &[(u64, u32)],
        beneficiary: Address,
    ) -> Result<(), LedgerDeltaError> {
        if first > last {
            return Ok(());
        }
        let stored = self.ledger.held.range(first..=last);
        let numbers: BTreeSet<u64> =
            stored.map(|(number, _)| *number).chain(self.held.range(first..=last).map(|(n, _)| *n)).collect();
        let malformed: BTreeSet<(u64, u32)> = malformed.iter().copied().collect();
        for number in numbers {
            let held = self.held_mut(number);
            if held.is_empty() {
                continue;
            }
            let malformed: Vec<u32> = held
                .iter()
                .map(|held| held.item)
                .filter(|item| malformed.contains(&(number, *item)))
                .collect();
            self.release_held(number, &malformed, beneficiary)?;
        }
        Ok(())
    }

    /// Marks a fee nonce as used until the expiry.
    pub fn use_nonce(&mut self, payer: Address, nonce: u64, expiry: u64) {
        self.nonces.insert((payer, nonce), Some(expiry));
    }

    /// Forgets nonces with expiry below the number, the least (expiry, payer, nonce) first and at most
    /// [`MAX_PRUNED_NONCES`], so that no batch pays for what many batches have used. Comes before nonces are used in the
    /// same step (F-10).
    pub fn prune(&mut self, number: u64) {
        let ledger = self.ledger;
        let expired = ledger.expiries.range(..number).flat_map(|(_, nonces)| nonces);
        self.nonces.extend(expired.take(MAX_PRUNED_NONCES).map(|nonce| (*nonce, None)));
    }

    /// Moves an amount from the payer's balance to what is held for an item.
    pub fn hold(
        &mut self,
        number: u64,
        item: u32,
        payer: Address,
        amount: u128,
    ) -> Result<(), LedgerDeltaError> {
        self.debit(payer, amount)?;
        self.held_mut(number).push(Held { item, payer, amount });
        Ok(())
    }

    fn held_mut(&mut self, number: u64) -> &mut Vec<Held> {
        let ledger = self.ledger;
        self.held.entry(number).or_insert_with(|| ledger.held.get(&number).cloned().unwrap_or_default())
    }

    /// As [`FeeLedger::release_held`], as part of this step.
    pub fn release_held(
        &mut self,
        number: u64,
        malformed: &[u32],
        beneficiary: Address,
    ) -> Result<(), LedgerDeltaError> {
        let held = self.held_mut(number).clone();
        if held.is_empty() {
            return Err(LedgerDeltaError::NothingHeld(number));
        }
        let items: BTreeSet<u32> = held.iter().map(|held| held.item).collect();
        if let Some(item) = malformed.iter().find(|item| !items.contains(item)) {
            return Err(LedgerDeltaError::UnknownItem { number, item: *item });
        }
        let malformed: BTreeSet<u32> = malformed.iter().copied().collect();
        for entry in held {
            let to = if malformed.contains(&entry.item) { beneficiary } else { entry.payer };
            self.credit(to, entry.amount)?;
        }
        self.held_mut(number).clear();
        Ok(())
    }

    /// What changed, without what ended as it began.
    pub fn finish(self) -> LedgerDelta {
        let Self { ledger, accounts, nonces, held } = self;
        let accounts = accounts
            .into_iter()
            .map(|(payer, account)| AccountChange {
                payer,
                before: ledger.account(&payer).copied(),
                after: Some(account).filter(|account| !account.is_empty()),
            })
            .filter(|change| change.before != change.after)
            .collect();
        let nonces = nonces
            .into_iter()
            .map(|((payer, nonce), after)| {
                let before = ledger.nonce(&payer, nonce);
                NonceChange { payer, nonce, before, after }
            })
            .filter(|change| change.before != change.after)
            .collect();
        let held = held
            .into_iter()
            .map(|(number, after)| HeldChange {
                number,
                before: ledger.held.get(&number).cloned().unwrap_or_default(),
                after,
            })
            .filter(|change| change.before != change.after)
            .collect();
        LedgerDelta { accounts, nonces, held }
    }
}

//! A ledger of what was stored.

use super::{Account, FeeLedger, Held, LedgerEntry, LedgerTree, LiveNonce};
use alloy_primitives::Address;
use std::collections::BTreeSet;

/// A [`FeeLedger`] under way: takes what was stored one by one and in any order, so that whoever reads it need not hold
/// all of it a second time.
#[derive(Debug, Default)]
pub struct LedgerBuilder {
    ledger: FeeLedger,
}

impl LedgerBuilder {
    /// Adds an account; an empty one is left out. Of a payer named twice the last counts.
    pub fn account(&mut self, payer: Address, account: Account) {
        self.ledger.set_account(payer, Some(account));
    }

    /// Adds a nonce in use. Of a nonce named twice the last counts.
    pub fn nonce(&mut self, LiveNonce { payer, nonce, expiry }: LiveNonce) {
        self.ledger.set_nonce(payer, nonce, Some(expiry));
    }

    /// Adds what is held for a batch. Of a batch named twice the last counts.
    pub fn held(&mut self, number: u64, held: Vec<Held>) {
        self.ledger.set_held(number, held);
    }

    /// The ledger. Costs a few hashes for each entry, and 65 bytes for each while it is made.
    pub fn finish(self) -> FeeLedger {
        let Self { mut ledger } = self;
        let accounts = ledger.accounts.iter();
        let accounts =
            accounts.map(|(payer, account)| LedgerEntry::Account { payer: *payer, account: Some(*account) });
        let nonces = ledger.nonces().map(|LiveNonce { payer, nonce, expiry }| LedgerEntry::Nonce {
            payer,
            nonce,
            expiry: Some(expiry),
        });
        let count = ledger.accounts.len() + ledger.expiries.values().map(BTreeSet::len).sum::<usize>();
        ledger.tree = LedgerTree::of(accounts.chain(nonces), count);
        ledger
    }
}

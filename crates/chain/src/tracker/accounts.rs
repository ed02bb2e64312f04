//! Proofs of fee accounts against the ledger of a header that L1 has, which need not be the newest.

use std::collections::VecDeque;

use alloy_primitives::{Address, B256};
use blindfold_protocol::{Account, LedgerProof, LedgerTree};
use blindfold_store::StoreError;

use super::{HeaderId, Tracker};

/// A fee account after a header, with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedAccount {
    /// The account as that ledger has it.
    pub account: Account,
    /// The proof that it stands in the ledger.
    pub proof: LedgerProof,
    /// The header after which the ledger is so.
    pub header: HeaderId,
}

/// Why an account is not shown.
#[derive(Debug, thiserror::Error)]
pub enum AccountProofError {
    /// No header of this number is here.
    #[error("there is no header {number} here, the newest is {newest}")]
    NoHeader {
        /// The number that was asked for.
        number: u64,
        /// The newest number that is here.
        newest: u64,
    },
    /// The ledger of this header is forgotten.
    #[error("the ledger after header {0} is not kept any more: ask for a later one that is posted")]
    Forgotten(u64),
    /// The chain changed while it was read. Ask again.
    #[error("the chain changed meanwhile; ask again")]
    Changed,
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Ledgers kept at hand that are not the newest. They share what they have in common with it.
const RECENT_LEDGERS: usize = 4;

/// Ledgers that were asked for lately and are not the newest.
#[derive(Default)]
pub(super) struct EarlierLedgers {
    /// Of certified headers alone, which no others can replace. The latest that was made comes first.
    recent: parking_lot::Mutex<VecDeque<(HeaderId, LedgerTree)>>,
    /// Held while one is made, so that whoever asks for many makes one at a time.
    making: tokio::sync::Mutex<()>,
}

impl EarlierLedgers {
    fn of(&self, number: u64) -> Option<(HeaderId, LedgerTree)> {
        self.recent.lock().iter().find(|(of, _)| of.number == number).cloned()
    }

    /// The one with the least number above.
    fn next_after(&self, number: u64) -> Option<(HeaderId, LedgerTree)> {
        let recent = self.recent.lock();
        recent.iter().filter(|(of, _)| of.number > number).min_by_key(|(of, _)| of.number).cloned()
    }

    fn put(&self, header: HeaderId, tree: LedgerTree) {
        let mut recent = self.recent.lock();
        recent.push_front((header, tree));
        recent.truncate(RECENT_LEDGERS);
    }
}

impl Tracker {
    /// The fee account of `payer` in the ledger after header `number`; `None` for one that is not in it.
    ///
    /// Cost: one path for the newest header and for those asked for last; for another one a path for each account and
    /// nonce that changed between it and the next of them, beside whatever the chain does meanwhile.
    ///
    /// # Errors
    /// [`AccountProofError`]. A proof that does not lead to the header's `feeLedgerRoot` is never given.
    pub async fn prove_account(
        &self,
        payer: &Address,
        number: u64,
    ) -> Result<Option<ProvedAccount>, AccountProofError> {
        let (header, tree) = self.ledger_after(number).await?;
        Ok(tree.prove(payer).map(|(account, proof)| ProvedAccount { account, proof, header }))
    }

    fn newest_ledger(&self) -> (HeaderId, LedgerTree) {
        self.with_state(|state| {
            let head = state.head();
            (HeaderId { number: head.number, hash: head.hash }, state.ledger().tree().clone())
        })
    }

    async fn ledger_after(&self, number: u64) -> Result<(HeaderId, LedgerTree), AccountProofError> {
        let newest = self.newest_ledger();
        if newest.0.number == number {
            return Ok(newest);
        }
        let earlier = &self.shared.earlier;
        if let Some(found) = earlier.of(number) {
            return Ok(found);
        }
        let missing = AccountProofError::NoHeader { number, newest: newest.0.number };
        // Asked before the header is read: one that is certified by then is the one that stays.
        let certified = self.certified().number;
        // A turn for each read, and none while it waits for other proofs or for the chain: nobody else's would come.
        let record = self.for_caller(self.store().batch(number)).await?;
        let Some(record) = record else { return Err(missing) };
        let header = HeaderId { number, hash: record.hash };
        let _making = earlier.making.lock().await;
        if let Some(found) = earlier.of(number) {
            return Ok(found);
        }
        let base = match earlier.next_after(number) {
            Some(base) => base,
            None => {
                // Memory and disk agree while nobody writes.
                let _writer = self.shared.writer.lock().await;
                self.newest_ledger()
            }
        };
        let tree = self.ledger_back(base, number, record.sealed.header.fee_ledger_root).await?;
        if number <= certified {
            earlier.put(header, tree.clone());
        }
        Ok((header, tree))
    }

    /// The ledger after an earlier header, from one after a later one and the disk.
    async fn ledger_back(
        &self,
        (later, tree): (HeaderId, LedgerTree),
        number: u64,
        root: B256,
    ) -> Result<LedgerTree, AccountProofError> {
        let changed = self.for_caller(self.store().entries_changed_after(number, later.number)).await?;
        let changed = changed.ok_or(AccountProofError::Forgotten(number))?;
        // A large ledger takes a while.
        let made = blindfold_runtime::blocking(move || tree.with(changed)).await;
        // Another root: headers gave way to others, or rows were forgotten in between. An error: shutting down.
        made.ok().filter(|tree| tree.root() == root).ok_or(AccountProofError::Changed)
    }
}

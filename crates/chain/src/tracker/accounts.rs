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

/// Batches whose changes are read at once on the way to an earlier ledger: what that takes of memory and of the disk's time
/// has a bound, however far the way.
const STEP_BATCHES: u64 = 256;

/// Ledgers that accounts are proved in, each as it stays: whoever proves holds up no header, and waits for none.
pub(super) struct Ledgers {
    /// That of the newest header that is shown, which is on disk. Never further than the disk.
    newest: parking_lot::RwLock<(HeaderId, LedgerTree)>,
    /// Those that were asked for lately, of certified headers alone, which no others can replace. The latest that was made
    /// comes first.
    recent: parking_lot::Mutex<VecDeque<(HeaderId, LedgerTree)>>,
    /// Held while one is made, so that whoever asks for many makes one at a time.
    making: tokio::sync::Mutex<()>,
}

impl Ledgers {
    pub(super) fn new(header: HeaderId, tree: LedgerTree) -> Self {
        let newest = parking_lot::RwLock::new((header, tree));
        Self { newest, recent: parking_lot::Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    /// Another header is the newest.
    pub(super) fn show(&self, header: HeaderId, tree: LedgerTree) {
        let left = std::mem::replace(&mut *self.newest.write(), (header, tree));
        // Its own part is freed while nobody waits.
        drop(left);
    }

    fn newest(&self) -> (HeaderId, LedgerTree) {
        self.newest.read().clone()
    }

    fn of(&self, number: u64) -> Option<(HeaderId, LedgerTree)> {
        self.recent.lock().iter().find(|(of, _)| of.number == number).cloned()
    }

    /// The one with the least number above.
    fn next_after(&self, number: u64) -> (HeaderId, LedgerTree) {
        let recent = self.recent.lock();
        let later = recent.iter().filter(|(of, _)| of.number > number).min_by_key(|(of, _)| of.number);
        later.cloned().unwrap_or_else(|| self.newest())
    }

    fn put(&self, header: HeaderId, tree: LedgerTree) {
        let mut recent = self.recent.lock();
        recent.push_front((header, tree));
        let kept = recent.len().min(RECENT_LEDGERS);
        let left = recent.split_off(kept);
        drop(recent);
        drop(left);
    }
}

impl Tracker {
    /// The fee account of `payer` in the ledger after header `number`; `None` for one that is not in it.
    ///
    /// Cost: one path for the newest header and for those asked for last; for another one a path for each account and
    /// nonce that changed between it and the next of them. No header waits for it.
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

    /// The fee account of `payer` in the ledger after the newest header that is shown.
    pub fn prove_newest_account(&self, payer: &Address) -> Option<ProvedAccount> {
        let (header, tree) = self.shared.ledgers.newest();
        tree.prove(payer).map(|(account, proof)| ProvedAccount { account, proof, header })
    }

    async fn ledger_after(&self, number: u64) -> Result<(HeaderId, LedgerTree), AccountProofError> {
        let ledgers = &self.shared.ledgers;
        let newest = ledgers.newest();
        if newest.0.number == number {
            return Ok(newest);
        }
        if let Some(found) = ledgers.of(number) {
            return Ok(found);
        }
        let newest = newest.0.number;
        if number > newest {
            return Err(AccountProofError::NoHeader { number, newest });
        }
        // Asked before the header is read: one that is certified by then is the one that stays.
        let certified = self.certified().number;
        // A turn for each read, and none while it waits for other proofs: nobody else's would come.
        let record = match self.for_caller(self.store().batch(number)).await {
            Err(pruned) if pruned.is_pruned() => return Err(AccountProofError::Forgotten(number)),
            record => record?.ok_or(AccountProofError::NoHeader { number, newest })?,
        };
        let header = HeaderId { number, hash: record.hash };
        let _making = ledgers.making.lock().await;
        if let Some(found) = ledgers.of(number) {
            return Ok(found);
        }
        // The disk may be further by now, or back: rows up to that one's number are its own, or lead to another root.
        let base = ledgers.next_after(number);
        let tree = self.ledger_back(base, number, record.sealed.header.fee_ledger_root).await?;
        if number <= certified {
            ledgers.put(header, tree.clone());
        }
        Ok((header, tree))
    }

    /// The ledger after an earlier header, from one after a later one and the disk.
    async fn ledger_back(
        &self,
        (later, mut tree): (HeaderId, LedgerTree),
        number: u64,
        root: B256,
    ) -> Result<LedgerTree, AccountProofError> {
        let mut at = later.number;
        while at > number {
            let before = number.max(at.saturating_sub(STEP_BATCHES));
            let changed = self.for_caller(self.store().entries_changed_after(before, at)).await?;
            let changed = changed.ok_or(AccountProofError::Forgotten(number))?;
            // A large ledger takes a while. An error: shutting down.
            let made = blindfold_runtime::blocking(move || tree.with(changed)).await;
            tree = made.map_err(|_| AccountProofError::Changed)?;
            at = before;
        }
        // Another root: headers gave way to others, or rows were forgotten in between.
        if tree.root() == root { Ok(tree) } else { Err(AccountProofError::Changed) }
    }
}

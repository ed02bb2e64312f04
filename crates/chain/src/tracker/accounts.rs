//! Proofs of fee accounts against the ledger of a header that L1 has, which need not be the newest.

use alloy_primitives::{Address, B256};
use blindfold_protocol::{Account, LedgerProof, LedgerTree};
use blindfold_store::StoreError;

use super::{HeaderId, Tracker, ledgers::LedgerAfter};

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
    /// As many as may wait to go about as far back.
    #[error("too many proofs wait that go about as far back; ask again")]
    Busy,
    /// The chain changed while it was read. Ask again.
    #[error("the chain changed meanwhile; ask again")]
    Changed,
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Batches whose changes are read at once on the way to an earlier ledger: what that takes of memory and of the disk's time
/// has a bound, however far the way.
const STEP_BATCHES: u64 = 256;

/// Of the ledgers that are passed on the way, the next one that is kept is one part of the rest of it away in so many.
const PASSED_PART: u64 = 4;

/// Ledgers that are nearer to the one that is asked for are not kept.
const LEAST_REST_BATCHES: u64 = 64;

impl Tracker {
    /// The fee account of `payer` in the ledger after header `number`; `None` for one that is not in it.
    ///
    /// Cost: one path for the newest header and for those asked for last; for another one a path for each account and
    /// nonce that changed between it and the next one at hand. No header waits for it, and no proof that goes back less far by
    /// much.
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

    async fn ledger_after(&self, number: u64) -> Result<LedgerAfter, AccountProofError> {
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
        // A turn for each read, and none while it waits for other proofs: nobody else's would come.
        let floor = self.for_caller(self.store().ledger_floor()).await?.unwrap_or_default();
        if number < floor {
            return Err(AccountProofError::Forgotten(number));
        }
        // Asked before the header is read: one that is certified by then is the one that stays.
        let certified = self.certified().number;
        let found = self.header_with_root(number).await?;
        let (header, root) = found.ok_or(AccountProofError::NoHeader { number, newest })?;
        let batches = ledgers.next_after(number).0.number.saturating_sub(number);
        let _turn = ledgers.turn(batches).await.ok_or(AccountProofError::Busy)?;
        if let Some(found) = ledgers.of(number) {
            return Ok(found);
        }
        // The disk may be further by now, or back: rows up to that one's number are its own, or lead to another root.
        let base = ledgers.next_after(number);
        let (tree, passed) = self.ledger_back(base, number, root).await?;
        if number <= certified {
            let passed = self.certain(passed, certified).await;
            ledgers.keep((header, tree.clone()), passed, floor);
        }
        Ok((header, tree))
    }

    /// A stored header, and the root of the ledger after it.
    async fn header_with_root(&self, number: u64) -> Result<Option<(HeaderId, B256)>, AccountProofError> {
        match self.for_caller(self.store().batch(number)).await {
            Ok(record) => Ok(record.map(|record| {
                (HeaderId { number, hash: record.hash }, record.sealed.header.fee_ledger_root)
            })),
            Err(pruned) if pruned.is_pruned() => Err(AccountProofError::Forgotten(number)),
            Err(error) => Err(error.into()),
        }
    }

    /// The ledger after an earlier header, from one after a later one and the disk; and some that were passed, which lie the
    /// nearer to each other the nearer they are to it.
    async fn ledger_back(
        &self,
        (later, mut tree): LedgerAfter,
        number: u64,
        root: B256,
    ) -> Result<(LedgerTree, Vec<(u64, LedgerTree)>), AccountProofError> {
        let mut at = later.number;
        let (mut passed, mut next) = (Vec::new(), at.saturating_sub(number) / PASSED_PART);
        while at > number {
            let before = number.max(at.saturating_sub(STEP_BATCHES));
            let changed = self.for_caller(self.store().entries_changed_after(before, at)).await?;
            let changed = changed.ok_or(AccountProofError::Forgotten(number))?;
            // A large ledger takes a while. An error: shutting down.
            let made = blindfold_runtime::blocking(move || tree.with(changed)).await;
            tree = made.map_err(|_| AccountProofError::Changed)?;
            at = before;
            let rest = at - number;
            if (LEAST_REST_BATCHES..=next).contains(&rest) {
                passed.push((at, tree.clone()));
                next = rest / PASSED_PART;
            }
        }
        // Another root: headers gave way to others, or rows were forgotten in between.
        if tree.root() == root { Ok((tree, passed)) } else { Err(AccountProofError::Changed) }
    }

    /// Those of the ledgers after these numbers that are what certified headers say. Where headers gave way to others in
    /// between, one that was passed can be wrong although the last one is right.
    async fn certain(&self, passed: Vec<(u64, LedgerTree)>, certified: u64) -> Vec<LedgerAfter> {
        let mut certain = Vec::with_capacity(passed.len());
        for (number, tree) in passed.into_iter().filter(|(number, _)| *number <= certified) {
            // What cannot be read now is not kept.
            if let Ok(Some((header, root))) = self.header_with_root(number).await
                && tree.root() == root
            {
                certain.push((header, tree));
            }
        }
        certain
    }
}

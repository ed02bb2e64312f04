//! Proofs of fee accounts against the ledger of a header that L1 has, which need not be the newest.

use std::sync::Arc;

use alloy_primitives::Address;
use blindfold_protocol::ledger::EarlierLedger;
use blindfold_protocol::{AccountLeaf, LedgerProof};
use blindfold_store::StoreError;

use super::{HeaderId, Tracker};

/// A fee account after a header, with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedAccount {
    /// The account.
    pub leaf: AccountLeaf,
    /// Its place in the ledger.
    pub proof: LedgerProof,
    /// The header after which the ledger is so.
    pub header: HeaderId,
}

/// Why an account is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ProofRefusal {
    /// No header of this number is here.
    #[error("there is no header {number} here, the newest is {newest}")]
    NoHeader {
        /// Asked for.
        number: u64,
        /// The newest here.
        newest: u64,
    },
    /// The ledger of this header is forgotten.
    #[error("the ledger after header {0} is not kept any more: ask for a later one that is posted")]
    Forgotten(u64),
    /// The chain changed while it was read. Ask again.
    #[error("the chain changed meanwhile; ask again")]
    Changed,
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The ledger that was asked for last and is not the newest.
pub(super) type Cached = parking_lot::Mutex<Option<(HeaderId, Arc<EarlierLedger>)>>;

impl Tracker {
    /// The fee account of `payer` in the ledger after header `number`; `None` for one that is not in it.
    ///
    /// Cost: one path for the newest header and for the one asked for last; for another one a copy of the tree, with
    /// the accounts that changed since.
    ///
    /// # Errors
    /// [`ProofRefusal`]. A proof that does not lead to the header's `feeLedgerRoot` is never given.
    pub async fn prove_account(
        &self,
        payer: &Address,
        number: u64,
    ) -> Result<Option<ProvedAccount>, ProofRefusal> {
        let newest = self.with_state(|state| {
            let (head, ledger) = (state.head(), state.ledger());
            let header = HeaderId { number: head.number, hash: head.hash };
            let account = ledger.account(payer).map(|account| account.as_leaf(payer));
            (header, account.zip(ledger.prove(payer)))
        });
        let (head, found) = newest;
        if number == head.number {
            return Ok(found.map(|(leaf, proof)| ProvedAccount { leaf, proof, header: head }));
        }
        let store = self.store();
        let missing = ProofRefusal::NoHeader { number, newest: head.number };
        let Some(record) = store.batch(number).await? else { return Err(missing) };
        let header = HeaderId { number, hash: record.hash };
        let root = record.sealed.header.fee_ledger_root;
        let ledger = self.ledger_after(header).await?;
        if ledger.root() != root {
            return Err(ProofRefusal::Changed);
        }
        match (store.leaf_after(*payer, number).await?, ledger.prove(payer)) {
            (None, None) => Ok(None),
            (Some(leaf), Some(proof)) if proof.root_with(&leaf.hash()) == Some(root) => {
                Ok(Some(ProvedAccount { leaf, proof, header }))
            }
            // The account changed with a header that is being written, or rows were forgotten in between.
            _ => Err(ProofRefusal::Changed),
        }
    }

    async fn ledger_after(&self, header: HeaderId) -> Result<Arc<EarlierLedger>, ProofRefusal> {
        let cached = self.shared.earlier.lock().clone();
        if let Some((_, ledger)) = cached.filter(|(of, _)| *of == header) {
            return Ok(ledger);
        }
        // Memory and disk agree while nobody writes.
        let writer = self.shared.writer.lock().await;
        let then = self.store().leaves_changed_after(header.number).await?;
        let then = then.ok_or(ProofRefusal::Forgotten(header.number))?;
        let ledger = self.with_state(|state| {
            state.ledger().tree_with(then.iter().map(|(payer, leaf)| (*payer, leaf.as_ref())))
        });
        drop(writer);
        let ledger = Arc::new(ledger);
        *self.shared.earlier.lock() = Some((header, Arc::clone(&ledger)));
        Ok(ledger)
    }
}

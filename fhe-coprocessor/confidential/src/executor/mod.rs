//! Batches of transactions: proofs verified together and in parallel, the result that of one after the other.
//!
//! What a proof must prove depends on the state at its transaction's turn, which depends on whether the proofs before it
//! hold. So a batch is gone through from the first transaction that is not settled, *assuming* that proofs hold: this costs
//! additions only, and says what proofs must prove. These are verified together. What was made under assumptions that turn
//! out right is settled; from the first that does not the batch is gone through anew, with what is known by now about pairs
//! of transaction and [premises](crate::state::Premises).
//!
//! 1. **Assumed** is that every proof holds. If one does not, and no other transaction behind it asks for its turn, its
//!    account stays at that nonce to the end of the batch: only an account's own transactions move its nonce and its
//!    available balance, always together. What was verified of the account behind it has no turn then. What it takes out of
//!    the accounts is left there until the proof is known, or one that withdraws all would stop everything behind it.
//! 2. **Resting** are proofs that can still have a turn, with other premises: those behind a rollover of a credit whose
//!    proof is open, behind their account's registration, or behind a turn that another transaction asks for as well, a
//!    rollover too. In one batch no more of them turn out bad than a quarter of all proofs that held. Where that is used
//!    up, nothing is asked about them, nor assumed at a turn that several ask for: then all of these are verified
//!    together, for their premises are the same, whichever of them is applied.
//! 3. **Bounded** are the proofs that are verified together: were all of them bad, no more were bad so far than
//!    [`MAX_INVALID_PER_BATCH`] and a quarter of those that held, and of one account [`MAX_INVALID_PER_ACCOUNT`] and as
//!    many as held. One there always is: the first, whose premises are certain, and which counts as an attempt (below) if
//!    it is bad. So of a batch no more are verified than 5/4 of the proofs that hold, and twice [`MAX_INVALID_PER_BATCH`].
//! 4. **Looking ahead** ends where it finds too little: 64 transactions behind the first open proof, and 8 more for each
//!    that is to be verified. So what is gone through again costs a few additions for each proof.
//! 5. **Nothing of this shows.** A transaction is settled when all verdicts before it, and its own, are those of its
//!    premises at its turn, and not before.
//!
//! Bad proofs are limited for each turn, account and batch ([`MAX_INVALID_PER_NONCE`], [`MAX_INVALID_PER_ACCOUNT`],
//! [`MAX_INVALID_PER_BATCH`]), counted at their turn in committed order; what comes after in the batch is refused as
//! [`TooManyAttempts`](Refusal::TooManyAttempts) without being looked at, changes nothing, and can be sent again.
//!
//! So receipts and roots do not depend on threads or on the order of verification, nor, while no limit is reached, on how
//! transactions are cut into batches. States of accounts are hashed in pieces, and of each only the last one is kept.
//!
//! Run inside a rayon pool (`pool.install`) to choose the threads.

mod ahead;
mod batch;
mod commit;
mod known;
mod limits;
mod open;
mod proofs;
mod screen;
mod settled;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use rayon::prelude::*;

use crate::Polynomial;
use crate::keccak::keccak256_on_all_threads;
use crate::state::{Account, Claim, Head, PublicAccount, Refusal, Remembered, Settings, Storage};
use crate::tree::Written;

use batch::{Batch, turn};
use known::{Known, Question};
use limits::Verdicts;
pub use proofs::{Check, Groth16Proofs, Proofs};
use screen::Screened;
use settled::Settled;

/// Bad proofs that are looked at for one nonce of an account in a batch, or for its registration.
pub const MAX_INVALID_PER_NONCE: usize = 32;
/// Bad proofs that are looked at for one account in a batch.
pub const MAX_INVALID_PER_ACCOUNT: usize = 64;
/// Bad proofs that are looked at at their turn in a batch: a second of processor time or two.
pub const MAX_INVALID_PER_BATCH: usize = 1_024;
/// Most transactions that are gone through before what was found is verified and settled.
const MAX_AHEAD_TRANSACTIONS: usize = 1_024;
/// Most transactions that are gone through behind an open proof and find nothing to verify with it.
const MAX_IDLE_TRANSACTIONS: usize = 64;
/// How many more for each proof to verify.
const MAX_TRANSACTIONS_PER_QUESTION: usize = 8;
/// Settled transactions whose states are kept until they are hashed together.
const MAX_UNHASHED_TRANSACTIONS: usize = 512;

/// What became of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the transaction: keccak256 of its bytes.
    pub id: B256,
    /// Whether it was applied, or why it was refused.
    pub outcome: Result<(), Refusal>,
    /// The version after it: the one before it, if it was refused.
    pub version: u64,
    /// The state root after it.
    pub root: B256,
}

/// What a batch makes of the state: to be stored as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// One for each transaction, in order.
    pub receipts: Vec<Receipt>,
    /// The newest version.
    pub head: Head,
    /// Accounts that are new or changed, as they are in the newest version, by index.
    pub accounts: Vec<Arc<Account>>,
    /// Public accounts that are new or changed, likewise.
    pub public: Vec<(Address, PublicAccount)>,
    /// Nodes of the accounts' tree, of every version.
    pub account_nodes: Vec<Written>,
    /// Nodes of the public ledger's tree, of every version.
    pub public_nodes: Vec<Written>,
}

/// Executes encoded transactions on the newest version of a state.
///
/// For each transaction, on all threads: decoding, a signature or a proof, up to five hashes of 14 KB, up to 96 of 65
/// bytes. On one: two sums of N coefficients.
///
/// # Errors
/// The store's; then nothing is known about any transaction.
pub fn execute<S: Storage, P: Proofs + ?Sized>(
    settings: &Settings,
    storage: &S,
    proofs: &P,
    head: Head,
    batch: &[impl AsRef<[u8]> + Sync],
) -> Result<Executed, S::Error> {
    let screened: Vec<Screened> = batch
        .par_iter()
        .zip(keccak256_on_all_threads(batch))
        .map(|(bytes, id)| Screened::new(settings, bytes.as_ref(), id))
        .collect();
    let batch = Batch::new(settings, screened);
    let storage = Remembered::new(storage);
    let mut settled = Settled::new(settings, &storage, head);
    let (mut known, mut verdicts) = (Known::default(), Verdicts::default());
    while settled.len() < batch.items.len() {
        let mut found = ahead::look(&settled, &batch, &known, &verdicts)?;
        if let Some(bad) = verify(proofs, &batch, found.questions, &mut known, &mut verdicts) {
            found.outcomes.truncate(bad - settled.len());
        }
        settled.take(&batch, found.outcomes, &mut known);
    }
    commit::commit(&storage, head, &batch, settled.finish())
}

/// Verifies proofs together. Gives the place of the first that does not hold.
fn verify<P: Proofs + ?Sized>(
    proofs: &P,
    batch: &Batch<'_>,
    questions: Vec<Question>,
    known: &mut Known,
    verdicts: &mut Verdicts,
) -> Option<usize> {
    let item = |place: usize| &batch.items[place];
    let claims: Vec<Option<Claim>> =
        questions.par_iter().map(|asked| item(asked.place).claim(batch.settings, &asked.premises)).collect();
    Polynomial::hash_all(claims.iter().flatten().flat_map(Claim::polynomials));
    let checks: Vec<Check<'_>> = questions
        .iter()
        .zip(&claims)
        .filter_map(|(asked, claim)| item(asked.place).check(claim.as_ref()?))
        .collect();
    let mut answers = if checks.is_empty() { vec![] } else { proofs.verify(&checks) }.into_iter();
    let mut bad = None;
    for (asked, claim) in questions.into_iter().zip(&claims) {
        let item = item(asked.place);
        // What makes no claim proves nothing.
        let holds = claim.is_some() && answers.next().unwrap_or(false);
        if let Some((account, _)) = turn(item) {
            verdicts.add(account, asked.rests, holds);
        }
        if !holds {
            bad = bad.or(Some(asked.place));
        }
        known.insert(item.id, asked, holds);
    }
    bad
}

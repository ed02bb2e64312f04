//! Batches of transactions: proofs verified together and in parallel, the result that of one after the other.
//!
//! What a proof must prove depends on the state at its transaction's turn, which depends on whether the proofs before it
//! hold. So a batch is gone through *assuming* that every proof holds; this costs additions only, and says for every
//! transaction what its proof must prove. Then all these proofs are verified as one batch. If all hold, the assumption was
//! right, and what was made under it is the result.
//!
//! Another account's proof can decide what an account has: a credit that does not come about, before a rollover. What
//! rests on such a proof is not verified with it, for all of it would be verified in vain, but when the proof is known: the
//! batch is gone through anew, up to eight times, under the assumption that all that is not known holds. A chain behind
//! one bad credit, or behind a turn that several ask for, is one batch that way.
//!
//! Where a proof was bad, the batch is gone through once more, with what is known by now about pairs of transaction and
//! [premises](crate::state::Premises). Credits touch no premises, and only an account's own transactions move its nonce and
//! its available balance, always together; so the premises at a turn (an account at a nonce) are the same whichever of
//! the transactions that ask for it is applied. Where a verdict is missing, the proofs of **all** transactions that ask
//! for a turn at which their account stands are verified together, every account's: the alternatives at a nonce cost one
//! batch, and each of them is verified at most once more. Transactions of which several ask for one turn are not assumed
//! to hold in the first place.
//!
//! Bad proofs are limited for each turn, account and batch ([`MAX_INVALID_PER_NONCE`], [`MAX_INVALID_PER_ACCOUNT`],
//! [`MAX_INVALID_PER_BATCH`]); what comes after in the batch is refused as
//! [`TooManyAttempts`](Refusal::TooManyAttempts) without being looked at, changes nothing, and can be sent again.
//!
//! A verdict is used only if it is that of the transaction's premises at its turn, so receipts and roots do not depend on
//! threads or on the order of verification, nor, while no limit is reached, on how transactions are cut into batches.
//!
//! Run inside a rayon pool (`pool.install`) to choose the threads.

mod commit;
mod limits;
mod pass;
mod proofs;
mod screen;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use rayon::prelude::*;

use crate::Polynomial;
use crate::keccak::keccak256_on_all_threads;
use crate::state::{Account, Claim, Head, PublicAccount, Refusal, Settings, Storage};
use crate::tree::Written;

use pass::{Known, Pass, Question};
pub use proofs::{Check, Groth16Proofs, Proofs};
use screen::Screened;

/// Bad proofs that are looked at for one nonce of an account in a batch, or for its registration.
pub const MAX_INVALID_PER_NONCE: usize = 32;
/// Bad proofs that are looked at for one account in a batch.
pub const MAX_INVALID_PER_ACCOUNT: usize = 64;
/// Bad proofs that are looked at in a batch: a second of processor time or two.
pub const MAX_INVALID_PER_BATCH: usize = 1_024;
/// Most proofs that are verified together ahead of their turn.
const MAX_QUESTIONS: usize = 512;

/// How often a batch is gone through under the assumption that proofs hold: as deep as premises may rest on one another.
const MAX_LEVELS: usize = 8;

/// What became of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// keccak256 of the bytes.
    pub id: B256,
    /// Applied, or why not.
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
    let mut known = Known::default();
    for _ in 0..MAX_LEVELS {
        let (pass, questions) = Pass::assuming(settings, storage, head, &screened, &known)?;
        let all = settle(settings, proofs, &screened, &questions, &mut known);
        if let Some(pass) = pass.filter(|_| all) {
            return commit::commit(storage, head, &screened, pass);
        }
        if questions.is_empty() {
            break;
        }
    }
    let pass = Pass::settling(settings, storage, head, &screened, &mut known, |questions, known| {
        settle(settings, proofs, &screened, questions, known);
    })?;
    commit::commit(storage, head, &screened, pass)
}

/// Verifies proofs together; whether all of them hold.
fn settle<P: Proofs + ?Sized>(
    settings: &Settings,
    proofs: &P,
    screened: &[Screened],
    questions: &[Question],
    known: &mut Known,
) -> bool {
    let claims: Vec<Option<Claim>> =
        questions.par_iter().map(|(place, premises)| screened[*place].claim(settings, premises)).collect();
    Polynomial::hash_all(claims.iter().flatten().flat_map(Claim::polynomials));
    let checks: Vec<Check<'_>> = questions
        .iter()
        .zip(&claims)
        .filter_map(|((place, _), claim)| screened[*place].check(claim.as_ref()?))
        .collect();
    let mut verdicts = if checks.is_empty() { vec![] } else { proofs.verify(&checks) }.into_iter();
    let mut all = true;
    for ((place, premises), claim) in questions.iter().zip(&claims) {
        // What makes no claim proves nothing.
        let holds = claim.is_some() && verdicts.next().unwrap_or(false);
        known.insert(screened[*place].id, premises.clone(), holds);
        all &= holds;
    }
    all
}

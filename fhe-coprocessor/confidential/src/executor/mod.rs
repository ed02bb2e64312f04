//! Batches of transactions: proofs verified together and in parallel, the result that of one after the other.
//!
//! What a proof must prove depends on the state at its transaction's turn, which depends on whether the proofs before it
//! hold. So a batch is gone through *assuming* that every proof not yet looked at holds; this costs additions only, and
//! says for every transaction what its proof must prove. Then all these proofs are verified as one batch. If all hold, the
//! assumption was right, and what was made under it is the result. If some do not, the batch is gone through again with
//! what is now known about pairs of transaction and [premises](crate::state::Premises): again everything unknown is assumed and
//! verified, until nothing had to be assumed. Each round settles at least the first transaction that was not; after
//! [`MAX_ROUNDS`] proofs are verified one by one at their turn, so that a batch of bad ones cannot cost more than that.
//!
//! Credits touch no premises, so a round's assumption is wrong only about those who act again in the same batch after a
//! transaction of their own was refused, or roll over a payment that was.
//!
//! A result was used only if it is that of the transaction's premises at its turn, so receipts and roots do not depend on
//! threads, on rounds or on how transactions are cut into batches.
//!
//! Run inside a rayon pool (`pool.install`) to choose the threads.

mod commit;
mod pass;
mod proofs;
mod screen;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use rayon::prelude::*;

use crate::Polynomial;
use crate::keccak::keccak256_on_all_threads;
use crate::state::{Account, Claim, Head, PublicAccount, Refusal, Settings, Storage};
use crate::tree::Written;

use pass::{Known, Pass};
pub use proofs::{Check, Groth16Proofs, Proofs};
use screen::Screened;

/// Times that a batch is gone through with proofs verified together, before they are verified one by one.
pub const MAX_ROUNDS: usize = 4;

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
    let mut known = Known::new(screened.len());
    let mut round = 0;
    loop {
        // One proof at a time is verified in the pass itself.
        let singly = (round >= MAX_ROUNDS).then_some(proofs);
        let pass = Pass::run(settings, storage, head, &screened, &known, singly)?;
        if settle(settings, proofs, &screened, &pass, &mut known) {
            return commit::commit(storage, head, &screened, pass);
        }
        // Ends: a pass that verifies singly assumes nothing.
        round += 1;
    }
}

/// Verifies what a pass assumed; whether all of it was right.
fn settle<P: Proofs + ?Sized>(
    settings: &Settings,
    proofs: &P,
    screened: &[Screened],
    pass: &Pass,
    known: &mut Known,
) -> bool {
    let claims: Vec<Option<Claim>> =
        pass.assumed.par_iter().map(|(place, premises)| screened[*place].claim(settings, premises)).collect();
    Polynomial::hash_all(claims.iter().flatten().flat_map(Claim::polynomials));
    let checks: Vec<Check<'_>> = pass
        .assumed
        .iter()
        .zip(&claims)
        .filter_map(|((place, _), claim)| screened[*place].check(claim.as_ref()?))
        .collect();
    let mut verdicts = if checks.is_empty() { vec![] } else { proofs.verify(&checks) }.into_iter();
    let mut all = true;
    for ((place, premises), claim) in pass.assumed.iter().zip(&claims) {
        // What makes no claim proves nothing.
        let holds = claim.is_some() && verdicts.next().unwrap_or(false);
        known.insert(*place, premises.clone(), holds);
        all &= holds;
    }
    all
}

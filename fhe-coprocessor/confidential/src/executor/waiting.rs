//! Transactions by the account that they speak for.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256};

use super::MAX_QUESTIONS;
use super::limits::Attempts;
use super::pass::{Known, Question, turn};
use super::screen::Screened;
use crate::state::{Ledger, Premises, Storage};
use crate::transaction::ConfidentialTransaction as T;

/// The places of transactions with proofs, by account, in order.
pub(super) struct Waiting(BTreeMap<Address, Vec<usize>>);

impl Waiting {
    pub(super) fn of(screened: &[Screened]) -> Self {
        let mut places: BTreeMap<Address, Vec<usize>> = BTreeMap::new();
        for (place, item) in screened.iter().enumerate() {
            if let Some((account, _)) = turn(item) {
                places.entry(account).or_default().push(place);
            }
        }
        Self(places)
    }

    /// What transactions from `from` on must prove to act at the turn at which their account stands now: the one at
    /// `from`, and those of all accounts that nothing is known about and that may still be looked at.
    pub(super) fn at_their_turn<S: Storage>(
        &self,
        ledger: &mut Ledger<'_, S>,
        screened: &[Screened],
        from: usize,
        known: &Known,
        attempts: &Attempts,
    ) -> Result<Vec<Question>, S::Error> {
        let mut questions: Vec<Question> = Vec::new();
        for places in self.0.values() {
            let mut asked: Vec<B256> = Vec::new();
            for &place in places.iter().filter(|place| **place >= from) {
                let item = &screened[place];
                let (Some(turn), Ok(transaction)) = (turn(item), &item.transaction) else { continue };
                let Some(premises) = premises(ledger, transaction)? else { continue };
                if known.get(&item.id, &premises).is_some() || asked.contains(&item.id) {
                    continue;
                }
                let room = attempts.left(&turn) > asked.len() && questions.len() < MAX_QUESTIONS;
                if place == from || room {
                    asked.push(item.id);
                    questions.push((place, premises));
                }
            }
        }
        Ok(questions)
    }
}

/// What a transaction's proof would depend on now; `None` where it is not its turn.
fn premises<S: Storage>(ledger: &mut Ledger<'_, S>, transaction: &T) -> Result<Option<Premises>, S::Error> {
    let Some((owner, nonce)) = transaction.turn() else { return Ok(None) };
    let account = ledger.account(&owner)?;
    Ok(match (transaction, account) {
        (T::Register(_), None) => Some(Premises::None),
        (T::Transfer(transfer), Some(sender)) if Some(sender.nonce) == nonce => {
            let receiver = ledger.account(&transfer.receiver)?;
            receiver.map(|receiver| Premises::Payment(sender, receiver.identity.key.clone()))
        }
        (T::Refresh(_) | T::Withdraw(_), Some(account)) if Some(account.nonce) == nonce => {
            Some(Premises::Account(account))
        }
        _ => None,
    })
}

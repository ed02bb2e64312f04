//! Going on from what is settled, assuming that proofs hold.

use std::collections::HashMap;

use alloy_primitives::Address;

use super::batch::{Batch, Turn};
use super::known::{Known, Question};
use super::limits::{Attempts, Verdicts};
use super::open::{Open, Taken};
use super::settled::Settled;
use super::{MAX_AHEAD_TRANSACTIONS, MAX_IDLE_TRANSACTIONS, MAX_TRANSACTIONS_PER_QUESTION};
use crate::state::{Beneath, Effects, Judged, Ledger, Premises, Refusal, Stop, Storage, judge};
use crate::transaction::ConfidentialTransaction;

/// What is found behind the settled part of a batch.
pub(super) struct Found {
    /// What becomes of the next transactions if all questions about them are answered with yes; up to the first that
    /// nothing was assumed about.
    pub(super) outcomes: Vec<Result<Effects, Refusal>>,
    /// What proofs must prove, by ascending place. The first is certain.
    pub(super) questions: Vec<Question>,
}

/// Goes on from what is settled with what is known, and says what is to be verified next. It changes nothing: the settled
/// part grows by what turns out to be right.
pub(super) fn look<S: Storage>(
    settled: &Settled<'_, S>,
    batch: &Batch<'_>,
    known: &Known,
    verdicts: &Verdicts,
) -> Result<Found, S::Error> {
    let beneath = settled.beneath();
    let mut ahead = Ahead {
        batch,
        known,
        verdicts,
        ledger: Ledger::new(batch.settings, &beneath, *settled.head()),
        attempts: settled.attempts().clone(),
        open: Open::default(),
        asked: HashMap::new(),
        claimed: 0,
        resting: 0,
        unsettled: 0,
        passed_over: false,
        found: Found { outcomes: Vec::new(), questions: Vec::new() },
    };
    let all = settled.len()..batch.items.len();
    for place in all.take(MAX_AHEAD_TRANSACTIONS) {
        if ahead.is_enough() {
            break;
        }
        ahead.step(place)?;
        // Outcomes are those of the first transactions: behind one without an outcome there is none.
        ahead.passed_over |= ahead.found.outcomes.len() <= place - settled.len();
    }
    Ok(ahead.found)
}

struct Ahead<'a, S> {
    batch: &'a Batch<'a>,
    known: &'a Known,
    verdicts: &'a Verdicts,
    ledger: Ledger<'a, Beneath<'a, S>>,
    attempts: Attempts,
    open: Open,
    /// Questions of each account.
    asked: HashMap<Address, usize>,
    /// What open proofs take out of the accounts, in base units; the ledger has it in them still.
    claimed: u64,
    /// Questions that rest on others.
    resting: usize,
    /// Transactions since the first question. They are gone through again if its answer is no.
    unsettled: usize,
    /// Whether there was a transaction that nothing was assumed about.
    passed_over: bool,
    found: Found,
}

impl<S: Storage> Ahead<'_, S> {
    /// Whether as much is asked as may be, or too little found to go on.
    fn is_enough(&self) -> bool {
        let questions = self.found.questions.len();
        let worth = MAX_IDLE_TRANSACTIONS + MAX_TRANSACTIONS_PER_QUESTION * questions;
        questions >= self.verdicts.room() || self.unsettled >= worth
    }

    fn step(&mut self, place: usize) -> Result<(), S::Error> {
        let batch = self.batch;
        self.unsettled += usize::from(!self.found.questions.is_empty());
        let transaction = match &batch.items[place].transaction {
            Ok(transaction) => transaction,
            Err(refusal) => {
                self.becomes(Err(*refusal));
                return Ok(());
            }
        };
        match transaction.turn() {
            Some(turn) if self.open.is_stalled(&turn.0) => self.waiting(place, turn, transaction),
            Some(turn) => self.proved(place, turn, transaction),
            None => {
                self.open.unproved(transaction);
                let outcome = self.judged(transaction)?.map(|judged| judged.effects);
                self.becomes(outcome);
                Ok(())
            }
        }
    }

    /// A transaction with a proof, of an account that is where it would be if all open proofs held.
    fn proved(
        &mut self,
        place: usize,
        turn: Turn,
        transaction: &ConfidentialTransaction,
    ) -> Result<(), S::Error> {
        if self.open.lacks_receiver(transaction) {
            self.pass_over(turn, transaction);
            return Ok(());
        }
        let judged = match self.judged(transaction)? {
            Ok(judged) => judged,
            Err(refusal) => {
                self.becomes(Err(refusal));
                return Ok(());
            }
        };
        // Behind open proofs it was judged with more in the accounts than they leave there.
        let held = self.ledger.head.confidential.saturating_sub(self.claimed);
        self.passed_over |= judged.effects.paid_out > held;
        if !self.attempts.allow(&turn) {
            self.becomes(Err(Refusal::TooManyAttempts));
            return Ok(());
        }
        match self.known.get(&self.batch.items[place].id, &judged.premises) {
            Some(true) => self.becomes(Ok(judged.effects)),
            Some(false) => {
                self.attempts.failed(turn);
                self.becomes(Err(Refusal::InvalidProof));
            }
            None if !self.may_ask(&turn.0) => self.pass_over(turn, transaction),
            None if self.batch.is_rivalled(place) && !self.may_rest() => {
                self.pass_over(turn, transaction);
                self.ask(place, turn, judged.premises);
            }
            None => {
                self.ask(place, turn, judged.premises);
                self.open.proved(self.batch.settings.operator(), transaction, Taken::Assumed);
                if self.batch.is_rivalled(place) {
                    self.open.rest(turn.0);
                }
                self.claimed = self.claimed.saturating_add(judged.effects.paid_out);
                self.ledger.put_open(&judged.effects);
                self.record(Ok(judged.effects));
            }
        }
        Ok(())
    }

    /// A transaction with a proof, of an account of which something was passed over: an alternative to that, or unknown.
    fn waiting(
        &mut self,
        place: usize,
        turn: Turn,
        transaction: &ConfidentialTransaction,
    ) -> Result<(), S::Error> {
        self.passed_over = true;
        let id = self.batch.items[place].id;
        let left = self.attempts.left(&turn);
        let asked = self.open.asked_at(&turn);
        let alternative = asked.is_some_and(|asked| asked.len() < left && !asked.contains(&id));
        if alternative
            && self.may_ask(&turn.0)
            && !self.open.lacks_receiver(transaction)
            && let Ok(judged) = self.judged(transaction)?
            && self.known.get(&id, &judged.premises).is_none()
        {
            self.ask(place, turn, judged.premises);
        }
        self.open.proved(self.batch.settings.operator(), transaction, Taken::PassedOver);
        Ok(())
    }

    fn judged(&mut self, transaction: &ConfidentialTransaction) -> Result<Result<Judged, Refusal>, S::Error> {
        match judge(&mut self.ledger, transaction) {
            Ok(judged) => Ok(Ok(judged)),
            Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
            Err(Stop::Storage(error)) => Err(error),
        }
    }

    /// Whether one more proof of the account may be verified now.
    fn may_ask(&self, account: &Address) -> bool {
        let asked = self.asked.get(account).copied().unwrap_or(0);
        asked < self.verdicts.room_of(account) && (!self.open.is_resting(account) || self.may_rest())
    }

    /// Whether one more that rests on others may.
    const fn may_rest(&self) -> bool {
        self.resting < self.verdicts.room_to_rest()
    }

    fn ask(&mut self, place: usize, turn: Turn, premises: Premises) {
        *self.asked.entry(turn.0).or_default() += 1;
        let rests = self.open.is_resting(&turn.0);
        self.resting += usize::from(rests);
        if let Some(asked) = self.open.asked_at(&turn) {
            asked.push(self.batch.items[place].id);
        }
        self.found.questions.push(Question { place, premises, rests });
    }

    /// Nothing is assumed about this transaction, and nothing found out about its account's next ones.
    fn pass_over(&mut self, turn: Turn, transaction: &ConfidentialTransaction) {
        self.passed_over = true;
        self.open.stall(turn);
        self.open.proved(self.batch.settings.operator(), transaction, Taken::PassedOver);
    }

    fn becomes(&mut self, outcome: Result<Effects, Refusal>) {
        match &outcome {
            Ok(effects) => self.ledger.put(effects),
            // Open proofs may have left so little in the accounts that this is not what is met first, or is not met.
            Err(Refusal::SupplyOverflow | Refusal::TooManyAccounts) => {
                self.passed_over |= !self.found.questions.is_empty();
            }
            Err(_) => {}
        }
        self.record(outcome);
    }

    fn record(&mut self, outcome: Result<Effects, Refusal>) {
        if !self.passed_over {
            self.found.outcomes.push(outcome);
        }
    }
}

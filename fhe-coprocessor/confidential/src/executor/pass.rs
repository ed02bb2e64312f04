//! Going through a batch in order.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256};

use super::limits::Attempts;
use super::screen::Screened;
use super::waiting::Waiting;
use crate::state::{Effects, Head, Judged, Ledger, Premises, Refusal, Settings, Stop, Storage, judge};
use crate::transaction::ConfidentialTransaction;

/// Verdicts on proofs, by the transaction's id and premises: copies of one transaction cost one verification.
#[derive(Default)]
pub(super) struct Known(HashMap<B256, Vec<(Premises, bool)>>);

impl Known {
    pub(super) fn insert(&mut self, id: B256, premises: Premises, holds: bool) {
        self.0.entry(id).or_default().push((premises, holds));
    }

    pub(super) fn get(&self, id: &B256, premises: &Premises) -> Option<bool> {
        self.0.get(id)?.iter().find(|(known, _)| known == premises).map(|(_, holds)| *holds)
    }
}

/// A proof that is to be verified: the transaction's place, and what the proof depends on.
pub(super) type Question = (usize, Premises);

/// What one way through a batch made.
pub(super) struct Pass {
    /// For each transaction.
    pub(super) outcomes: Vec<Result<Effects, Refusal>>,
    /// The newest version, roots aside.
    pub(super) head: Head,
}

/// What is to be done with a transaction that the state allows if its proof holds.
enum Verdict {
    /// Apply it.
    Holds,
    /// Refuse it.
    Refused(Refusal),
}

impl Pass {
    /// Goes through the batch with what is known, assuming that every other proof holds, and says what those must prove
    /// whose premises rest on no other account's open proof. `None` for the pass where it cannot be the result, even if all
    /// of them do: a proof is known to be bad, premises rest on open proofs, or several transactions ask for the same turn
    /// of an account. None of these last is applied; what their proofs must prove is said of as many as may be looked at.
    pub(super) fn assuming<S: Storage>(
        settings: &Settings,
        storage: &S,
        head: Head,
        screened: &[Screened],
        known: &Known,
    ) -> Result<(Option<Self>, Vec<Question>), S::Error> {
        let contested = contested(screened);
        let mut questions: Vec<Question> = Vec::new();
        let mut asked: HashMap<Turn, Vec<B256>> = HashMap::new();
        let mut open = Open::default();
        let mut attempts = Attempts::default();
        let mut whole = true;
        let pass = Self::run(settings, storage, head, screened, |_, place, judged| {
            let item = &screened[place];
            let Some(turn) = turn(item) else { return Ok(Verdict::Refused(Refusal::Undecodable)) };
            if !attempts.allow(&turn) {
                whole = false;
                return Ok(Verdict::Refused(Refusal::TooManyAttempts));
            }
            open.up_to(screened, place);
            match known.get(&item.id, &judged.premises) {
                Some(true) => return Ok(Verdict::Holds),
                Some(false) => {
                    whole = false;
                    attempts.failed(turn);
                    return Ok(Verdict::Refused(Refusal::InvalidProof));
                }
                None => {}
            }
            let rests = open.rests(item);
            open.unsettled(item);
            if rests {
                whole = false;
                return Ok(Verdict::Holds);
            }
            if !contested.contains(&turn) {
                questions.push((place, judged.premises.clone()));
                return Ok(Verdict::Holds);
            }
            whole = false;
            let ids = asked.entry(turn).or_default();
            if ids.len() < attempts.left(&turn) && !ids.contains(&item.id) {
                ids.push(item.id);
                questions.push((place, judged.premises.clone()));
            }
            // It stands for "not known yet": the pass is thrown away.
            Ok(Verdict::Refused(Refusal::InvalidProof))
        })?;
        Ok((whole.then_some(pass), questions))
    }

    /// Goes through the batch with what is known. Where a verdict is missing, `verify` is given that question together with
    /// those of all accounts for the turns that they stand at: their premises are certain, so no proof is verified for
    /// them twice.
    pub(super) fn settling<S: Storage>(
        settings: &Settings,
        storage: &S,
        head: Head,
        screened: &[Screened],
        known: &mut Known,
        mut verify: impl FnMut(&[Question], &mut Known),
    ) -> Result<Self, S::Error> {
        let waiting = Waiting::of(screened);
        let mut attempts = Attempts::default();
        Self::run(settings, storage, head, screened, |ledger, place, judged| {
            let item = &screened[place];
            let Some(turn) = turn(item) else { return Ok(Verdict::Refused(Refusal::Undecodable)) };
            if !attempts.allow(&turn) {
                return Ok(Verdict::Refused(Refusal::TooManyAttempts));
            }
            if known.get(&item.id, &judged.premises).is_none() {
                let questions = waiting.at_their_turn(ledger, screened, place, known, &attempts)?;
                verify(&questions, known);
            }
            if known.get(&item.id, &judged.premises) == Some(true) {
                return Ok(Verdict::Holds);
            }
            attempts.failed(turn);
            Ok(Verdict::Refused(Refusal::InvalidProof))
        })
    }

    /// Judges and applies in order; `verdict` is asked about transactions with a proof.
    fn run<S: Storage>(
        settings: &Settings,
        storage: &S,
        head: Head,
        screened: &[Screened],
        mut verdict: impl FnMut(&mut Ledger<'_, S>, usize, &Judged) -> Result<Verdict, S::Error>,
    ) -> Result<Self, S::Error> {
        let mut ledger = Ledger::new(settings, storage, head);
        let mut outcomes = Vec::with_capacity(screened.len());
        for (place, item) in screened.iter().enumerate() {
            let judged = match &item.transaction {
                Ok(transaction) => match judge(&mut ledger, transaction) {
                    Ok(judged) if transaction.proof().is_some() => {
                        match verdict(&mut ledger, place, &judged)? {
                            Verdict::Holds => Ok(judged.effects),
                            Verdict::Refused(refusal) => Err(refusal),
                        }
                    }
                    Ok(judged) => Ok(judged.effects),
                    Err(Stop::Refused(refusal)) => Err(refusal),
                    Err(Stop::Storage(error)) => return Err(error),
                },
                Err(refusal) => Err(*refusal),
            };
            if let Ok(effects) = &judged {
                ledger.put(effects);
            }
            outcomes.push(judged);
        }
        Ok(Self { outcomes, head: ledger.head })
    }
}

/// What rests on proofs that nothing is known about, as a batch is gone through. More than the state would show: what is
/// refused later counts as well.
#[derive(Default)]
struct Open {
    /// The place up to which transactions without a proof were looked at.
    next: usize,
    /// Accounts with a credit, or a registration, that may not come about.
    credited: HashSet<Address>,
    /// Accounts whose available balance or nonce may be another.
    accounts: HashSet<Address>,
    /// Public accounts that may hold less.
    public: HashSet<Address>,
}

impl Open {
    /// Takes the transactions without a proof before this place.
    fn up_to(&mut self, screened: &[Screened], place: usize) {
        for item in &screened[self.next..place] {
            match &item.transaction {
                Ok(ConfidentialTransaction::Rollover(rollover))
                    if self.credited.contains(&rollover.account) =>
                {
                    self.accounts.insert(rollover.account);
                }
                Ok(ConfidentialTransaction::Deposit(deposit)) if self.public.contains(&deposit.from) => {
                    self.credited.insert(deposit.account);
                    // The next ones of that public account ask for the turn after it.
                    self.public.insert(deposit.from);
                }
                _ => {}
            }
        }
        self.next = place;
    }

    /// Whether the premises of this transaction rest on another account's.
    fn rests(&self, item: &Screened) -> bool {
        let Ok(transaction) = &item.transaction else { return false };
        let of_account = transaction.turn().is_some_and(|(account, _)| self.accounts.contains(&account));
        // Whoever pays to an account that may not be there may not pay.
        let receiver = match transaction {
            ConfidentialTransaction::Transfer(transfer) => Some(transfer.receiver),
            _ => None,
        };
        of_account || receiver.is_some_and(|receiver| self.accounts.contains(&receiver))
    }

    /// Takes a transaction whose proof nothing is known about.
    fn unsettled(&mut self, item: &Screened) {
        let rests = self.rests(item);
        let Ok(transaction) = &item.transaction else { return };
        match transaction {
            ConfidentialTransaction::Register(register) => {
                self.accounts.insert(register.owner);
            }
            ConfidentialTransaction::Transfer(transfer) => {
                self.credited.insert(transfer.receiver);
                if rests {
                    self.accounts.insert(transfer.sender);
                }
            }
            ConfidentialTransaction::Withdraw(withdraw) => {
                self.public.insert(withdraw.recipient);
            }
            _ => {}
        }
    }
}

/// The account that a transaction with a proof speaks for, and its nonce; none for the one that opens it.
pub(super) type Turn = (Address, Option<u64>);

pub(super) fn turn(item: &Screened) -> Option<Turn> {
    item.transaction.as_ref().ok()?.turn()
}

/// The turns that several transactions with proofs ask for, copies not counted.
fn contested(screened: &[Screened]) -> HashSet<Turn> {
    let mut first: HashMap<Turn, B256> = HashMap::new();
    let asking = screened.iter().filter_map(|item| Some((turn(item)?, item.id)));
    asking.filter(|(turn, id)| first.entry(*turn).or_insert(*id) != id).map(|(turn, _)| turn).collect()
}

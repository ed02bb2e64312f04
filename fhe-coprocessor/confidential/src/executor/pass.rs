//! Going through a batch in order.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256};

use super::limits::Attempts;
use super::screen::Screened;
use super::waiting::Waiting;
use crate::state::{Effects, Head, Judged, Ledger, Premises, Refusal, Settings, Stop, Storage, judge};

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
    /// Goes through the batch assuming that every proof holds, and says what each must prove. `None` for the pass where it
    /// cannot be the result, even if all of them do: several transactions ask for the same turn of an account. None of
    /// these is applied; what their proofs must prove is said of as many as may be looked at.
    pub(super) fn assuming<S: Storage>(
        settings: &Settings,
        storage: &S,
        head: Head,
        screened: &[Screened],
    ) -> Result<(Option<Self>, Vec<Question>), S::Error> {
        let contested = contested(screened);
        let mut questions: Vec<Question> = Vec::new();
        let mut asked: HashMap<Turn, Vec<B256>> = HashMap::new();
        let mut whole = true;
        let pass = Self::run(settings, storage, head, screened, |_, place, judged| {
            let item = &screened[place];
            let turn = turn(item);
            if turn.is_none_or(|turn| !contested.contains(&turn)) {
                questions.push((place, judged.premises.clone()));
                return Ok(Verdict::Holds);
            }
            whole = false;
            let ids = turn.map(|turn| asked.entry(turn).or_default());
            if let Some(ids) =
                ids.filter(|ids| ids.len() < super::MAX_INVALID_PER_NONCE && !ids.contains(&item.id))
            {
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

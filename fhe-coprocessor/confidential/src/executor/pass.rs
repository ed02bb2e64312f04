//! Going through a batch in order.

use super::screen::Screened;
use super::{Check, Proofs};
use crate::state::{Effects, Head, Ledger, Premises, Refusal, Settings, Stop, Storage, judge};

/// Verified pairs of a transaction's place in the batch and premises.
pub(super) struct Known(Vec<Vec<(Premises, bool)>>);

impl Known {
    pub(super) fn new(count: usize) -> Self {
        Self(vec![Vec::new(); count])
    }

    pub(super) fn insert(&mut self, place: usize, premises: Premises, holds: bool) {
        self.0[place].push((premises, holds));
    }

    fn get(&self, place: usize, premises: &Premises) -> Option<bool> {
        self.0[place].iter().find(|(known, _)| known == premises).map(|(_, holds)| *holds)
    }
}

/// What one way through a batch made.
pub(super) struct Pass {
    /// For each transaction.
    pub(super) outcomes: Vec<Result<Effects, Refusal>>,
    /// Places and premises of proofs that were taken to hold without having been verified.
    pub(super) assumed: Vec<(usize, Premises)>,
    /// The newest version, roots aside.
    pub(super) head: Head,
}

impl Pass {
    /// Judges and applies in order. Proofs that are not known are assumed to hold, or verified one by one with `singly`.
    pub(super) fn run<S: Storage, P: Proofs + ?Sized>(
        settings: &Settings,
        storage: &S,
        head: Head,
        screened: &[Screened],
        known: &Known,
        singly: Option<&P>,
    ) -> Result<Self, S::Error> {
        let mut ledger = Ledger::new(settings, storage, head);
        let mut outcomes = Vec::with_capacity(screened.len());
        let mut assumed = Vec::new();
        for (place, item) in screened.iter().enumerate() {
            let judged = match &item.transaction {
                Ok(transaction) => match judge(&mut ledger, transaction) {
                    Ok(judged) if transaction.proof().is_some() => {
                        let holds = known.get(place, &judged.premises).unwrap_or_else(|| match singly {
                            Some(proofs) => verify(settings, proofs, item, &judged.premises),
                            None => {
                                assumed.push((place, judged.premises));
                                true
                            }
                        });
                        if holds { Ok(judged.effects) } else { Err(Refusal::InvalidProof) }
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
        Ok(Self { outcomes, assumed, head: ledger.head })
    }
}

fn verify<P: Proofs + ?Sized>(settings: &Settings, proofs: &P, item: &Screened, premises: &Premises) -> bool {
    let claim = item.claim(settings, premises);
    let check: Option<Check<'_>> = claim.as_ref().and_then(|claim| item.check(claim));
    check.is_some_and(|check| proofs.verify(&[check]).first() == Some(&true))
}

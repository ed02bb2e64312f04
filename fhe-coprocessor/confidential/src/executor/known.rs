//! Verdicts that may still be needed.

use std::collections::HashMap;

use alloy_primitives::B256;

use crate::state::Premises;

/// A proof that is to be verified.
pub(super) struct Question {
    /// The transaction's place.
    pub(super) place: usize,
    /// What the proof depends on.
    pub(super) premises: Premises,
    /// Whether the premises can turn out wrong and the transaction still have its turn.
    pub(super) rests: bool,
}

struct Verdict {
    place: usize,
    premises: Premises,
    holds: bool,
}

/// Verdicts on proofs, by the transaction's id and premises: copies of one transaction cost one verification.
#[derive(Default)]
pub(super) struct Known(HashMap<B256, Vec<Verdict>>);

impl Known {
    pub(super) fn insert(&mut self, id: B256, question: Question, holds: bool) {
        let Question { place, premises, .. } = question;
        self.0.entry(id).or_default().push(Verdict { place, premises, holds });
    }

    pub(super) fn get(&self, id: &B256, premises: &Premises) -> Option<bool> {
        self.0.get(id)?.iter().find(|known| known.premises == *premises).map(|known| known.holds)
    }

    /// Drops what was asked for a place that is settled, with the accounts in it.
    pub(super) fn forget(&mut self, id: &B256, place: usize) {
        if let Some(verdicts) = self.0.get_mut(id) {
            verdicts.retain(|known| known.place != place);
            if verdicts.is_empty() {
                self.0.remove(id);
            }
        }
    }
}

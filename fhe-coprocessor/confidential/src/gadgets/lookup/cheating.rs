//! What a malicious prover of the tests does with look-ups.

use std::cell::Cell;

use super::Tables;
use crate::Fr;

thread_local!(static CHEATING: Cell<bool> = const { Cell::new(false) });

/// Runs a task in which values that are in no table are handed on.
pub(crate) fn cheat<T>(task: impl FnOnce() -> T) -> T {
    CHEATING.set(true);
    let result = task();
    CHEATING.set(false);
    result
}

pub(super) fn tests_cheat() -> bool {
    CHEATING.get()
}

impl Tables {
    /// Sets all counts to what the looked-up values of an assignment make them.
    pub(crate) fn recount(&self, assignment: &mut [Fr]) {
        for table in [&self.trits, &self.errors, &self.bytes] {
            let mut counts = vec![0u64; table.size];
            for value in &table.values {
                let terms = value.terms().iter();
                let value =
                    terms.map(|(coefficient, variable)| assignment[variable.index()] * coefficient).sum();
                if let Some(place) = table.place(value) {
                    counts[place] += 1;
                }
            }
            for (variable, count) in table.counts.iter().zip(counts) {
                assignment[variable.index()] = Fr::from(count);
            }
        }
    }
}

//! A batch as its transactions ask for turns.

use std::collections::HashMap;

use alloy_primitives::{Address, B256};

use super::screen::Screened;
use crate::state::Settings;
use crate::transaction::ConfidentialTransaction as T;

/// A transaction's account and its nonce; none for the one that opens it.
pub(super) type Turn = (Address, Option<u64>);

/// The transactions of a batch.
pub(super) struct Batch<'a> {
    pub(super) settings: &'a Settings,
    pub(super) items: Vec<Screened>,
    rivalled: Vec<bool>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(settings: &'a Settings, items: Vec<Screened>) -> Self {
        let rivalled = rivalled(&items);
        Self { settings, items, rivalled }
    }

    /// Whether another transaction behind this one asks for the same turn. Where none does and this one is refused, its
    /// account stays where it is to the end of the batch.
    pub(super) fn is_rivalled(&self, place: usize) -> bool {
        self.rivalled[place]
    }
}

/// The turn that a transaction with a proof asks for.
pub(super) fn turn(item: &Screened) -> Option<Turn> {
    item.transaction.as_ref().ok()?.turn()
}

/// The turn that any transaction takes if it is applied: rollovers, which are signed, as well.
fn taken(item: &Screened) -> Option<Turn> {
    match item.transaction.as_ref().ok()? {
        T::Rollover(rollover) => Some((rollover.account, Some(rollover.nonce))),
        transaction => transaction.turn(),
    }
}

/// From behind, with what is known of each turn: the one transaction that asks for it, or that there are several.
fn rivalled(items: &[Screened]) -> Vec<bool> {
    let mut behind: HashMap<Turn, Option<B256>> = HashMap::new();
    let mut rivalled = vec![false; items.len()];
    for (place, item) in items.iter().enumerate().rev() {
        let Some(turn) = taken(item) else { continue };
        let only = behind.entry(turn).or_insert(Some(item.id));
        // Copies are no rivals.
        rivalled[place] = *only != Some(item.id);
        if rivalled[place] {
            *only = None;
        }
    }
    rivalled
}

//! What a batch holds for the coprocessor: bundle items of kind 1 in committed order.

use blindfold_chain::ItemOutcome;
use blindfold_protocol::Bundle;
use blindfold_protocol::bundle::KIND_CONFIDENTIAL;

use crate::CommittedItem;

/// The confidential transactions of an opened batch. A bundle that does not parse holds none, as for every other item.
pub(crate) fn confidential_items(outcomes: &[ItemOutcome]) -> Vec<CommittedItem> {
    let mut found = Vec::new();
    for (item, outcome) in (0u32..).zip(outcomes) {
        let ItemOutcome::Message(message) = outcome else { continue };
        let Ok(bundle) = Bundle::decode(message) else { continue };
        for (position, entry) in (0u16..).zip(&bundle.items) {
            if entry.kind == KIND_CONFIDENTIAL {
                found.push(CommittedItem { item, position, bytes: entry.bytes.clone() });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use blindfold_protocol::BundleItem;

    fn message(kinds: &[u8]) -> ItemOutcome {
        let items = kinds.iter().map(|kind| BundleItem { kind: *kind, bytes: vec![*kind; 3] }).collect();
        ItemOutcome::Message(Bundle { items }.encode_padded().unwrap())
    }

    #[test]
    fn items_of_kind_one_keep_their_order_and_place() {
        let outcomes = [
            message(&[0, 1, 2]),
            ItemOutcome::Malformed,
            ItemOutcome::ForcedTransaction,
            ItemOutcome::Void,
            ItemOutcome::Message(vec![1; 256]),
            message(&[]),
            message(&[1, 1]),
        ];
        let found = confidential_items(&outcomes);
        assert_eq!(
            found.iter().map(|one| (one.item, one.position)).collect::<Vec<_>>(),
            [(0, 1), (6, 0), (6, 1)]
        );
        assert!(found.iter().all(|one| one.bytes == [1; 3]));
    }
}

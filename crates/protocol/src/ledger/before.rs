//! Going back over many steps at once.

use super::{FeeLedger, Held, LedgerEntry};
use alloy_primitives::B256;

/// What steps changed, as it was before the first of them: the way back over all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerBefore {
    /// Changed accounts and nonces as they were, each once.
    pub entries: Vec<LedgerEntry>,
    /// What was held for batches for which something else is held since, each once; empty is nothing.
    pub held: Vec<(u64, Vec<Held>)>,
}

impl FeeLedger {
    /// Goes back to the ledger with this root, over all that `before` names. False, and nothing has changed, where that leads
    /// elsewhere. What is held has no root: it is taken as it is named.
    #[must_use]
    pub fn go_back(&mut self, before: LedgerBefore, root: B256) -> bool {
        let LedgerBefore { entries, held } = before;
        let tree = self.tree.with(entries.iter().copied());
        if tree.root() != root {
            return false;
        }
        self.set_entries(&entries, tree);
        for (number, held) in held {
            self.set_held(number, held);
        }
        true
    }
}

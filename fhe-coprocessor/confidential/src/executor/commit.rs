//! From what a batch changes to roots and nodes.

use alloy_primitives::B256;

use super::batch::Batch;
use super::settled::{Leaves, Made};
use super::{Executed, Receipt};
use crate::state::{Head, NodesOf, Storage, Tree};
use crate::tree::{self, Change};

/// Nodes hashed on all threads.
pub(super) fn commit<S: Storage>(
    storage: &S,
    head: Head,
    batch: &Batch<'_>,
    made: Made,
) -> Result<Executed, S::Error> {
    let applied = || made.outcomes.iter().flatten();
    let changes = versions(head.version, applied().map(|leaves: &Leaves| leaves.accounts.clone()));
    let public_changes = versions(head.version, applied().map(|leaves| leaves.public.clone()));
    let (accounts, public) = rayon::join(
        || tree::update(&NodesOf(storage, Tree::Accounts), head.version, head.accounts, &changes),
        || tree::update(&NodesOf(storage, Tree::Public), head.version, head.public_accounts, &public_changes),
    );
    let (accounts, public) = (accounts?, public?);

    let mut at = head;
    let mut receipts = Vec::with_capacity(batch.items.len());
    let mut root = head.state_root();
    let mut roots = accounts.roots.iter().zip(&public.roots);
    for (item, outcome) in batch.items.iter().zip(&made.outcomes) {
        if let Ok(leaves) = outcome
            && let Some((accounts_root, public_root)) = roots.next()
        {
            let registered = leaves.accounts.iter().map(|(index, _)| index + 1);
            at.accounts = registered.fold(at.accounts, u32::max);
            (at.accounts_root, at.public_root) = (*accounts_root, *public_root);
            at.version += 1;
            root = at.state_root();
        }
        let outcome = outcome.as_ref().map(|_| ()).map_err(|refusal| *refusal);
        receipts.push(Receipt { id: item.id, outcome, version: at.version, root });
    }
    Ok(Executed {
        receipts,
        head: Head { accounts_root: at.accounts_root, public_root: at.public_root, ..made.head },
        accounts: made.accounts,
        public: made.public,
        account_nodes: accounts.written,
        public_nodes: public.written,
    })
}

/// Leaves of consecutive versions after `version`.
fn versions(version: u64, leaves: impl IntoIterator<Item = Vec<(u32, B256)>>) -> Vec<Change> {
    (version + 1..).zip(leaves).map(|(version, leaves)| Change { version, leaves }).collect()
}

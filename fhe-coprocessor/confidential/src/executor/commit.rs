//! From what a batch changes to roots and nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use rayon::prelude::*;

use super::pass::Pass;
use super::screen::Screened;
use super::{Executed, Receipt};
use crate::state::{Effects, Head, NodesOf, Storage, Sum, Tree};
use crate::tree::{self, Change};

/// Ciphertexts, leaves and nodes hashed on all threads.
pub(super) fn commit<S: Storage>(
    storage: &S,
    head: Head,
    screened: &[Screened],
    pass: Pass,
) -> Result<Executed, S::Error> {
    let applied: Vec<&Effects> = pass.outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let changed = applied.iter().flat_map(|effects| &effects.accounts);
    Sum::hash_all(changed.flat_map(|account| [&account.available, &account.pending]));
    let leaves: Vec<Vec<(u32, B256)>> = applied
        .par_iter()
        .map(|effects| {
            effects.accounts.iter().map(|account| (account.identity.index, account.leaf())).collect()
        })
        .collect();
    let public_leaves = applied.iter().map(|effects| {
        effects.public.iter().map(|(address, account)| (account.index, account.leaf(address))).collect()
    });
    let (changes, public_changes) = (versions(head.version, leaves), versions(head.version, public_leaves));
    let (accounts, public) = rayon::join(
        || tree::update(&NodesOf(storage, Tree::Accounts), head.version, head.accounts, &changes),
        || tree::update(&NodesOf(storage, Tree::Public), head.version, head.public_accounts, &public_changes),
    );
    let (accounts, public) = (accounts?, public?);

    let mut at = head;
    let mut receipts = Vec::with_capacity(screened.len());
    let mut root = head.state_root();
    let mut roots = accounts.roots.iter().zip(&public.roots);
    for (item, outcome) in screened.iter().zip(&pass.outcomes) {
        if let Ok(effects) = outcome
            && let Some((accounts_root, public_root)) = roots.next()
        {
            let registered = effects.accounts.iter().map(|account| account.identity.index + 1);
            at.accounts = registered.fold(at.accounts, u32::max);
            (at.accounts_root, at.public_root) = (*accounts_root, *public_root);
            at.version += 1;
            root = at.state_root();
        }
        let outcome = outcome.as_ref().map(|_| ()).map_err(|refusal| *refusal);
        receipts.push(Receipt { id: item.id, outcome, version: at.version, root });
    }
    let head = Head { accounts_root: at.accounts_root, public_root: at.public_root, ..pass.head };

    let mut changed = BTreeMap::new();
    let mut public_changed = BTreeMap::new();
    for effects in applied {
        changed.extend(effects.accounts.iter().map(|account| (account.identity.index, Arc::clone(account))));
        public_changed.extend(effects.public.iter().map(|entry| (entry.1.index, *entry)));
    }
    Ok(Executed {
        receipts,
        head,
        accounts: changed.into_values().collect(),
        public: public_changed.into_values().collect(),
        account_nodes: accounts.written,
        public_nodes: public.written,
    })
}

/// Leaves of consecutive versions after `version`.
fn versions(version: u64, leaves: impl IntoIterator<Item = Vec<(u32, B256)>>) -> Vec<Change> {
    (version + 1..).zip(leaves).map(|(version, leaves)| Change { version, leaves }).collect()
}

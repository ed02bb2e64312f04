//! What the coprocessor executes, and what must hold of it: its items are what users sent, in committed order, and its state
//! is a hash chain over them. Users send whatever they like: every fourth item is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use alloy_primitives::{B256, keccak256};
use blindfold_coprocessor::{AccountView, CommittedItem, Execution, Machine, Outcome, Roots};
use blindfold_rpc::confidential::ConfidentialAccount;
use blindfold_store::{
    BatchRecord, ConfidentialAccountRecord, ConfidentialStore, SqlStore, Store, StoreError,
    StoredConfidentialTransaction,
};
use parking_lot::Mutex;

use crate::{Role, checks::Rule, world::World};

/// Records that are read at once.
const PAGE: usize = 256;
/// In which place of a bundle its item stands: behind the transaction.
const POSITION: u16 = 1;

/// A state machine: what it executed, hashed one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashChain {
    version: u64,
    root: B256,
}

impl HashChain {
    /// From what is stored.
    ///
    /// # Errors
    /// The disk's.
    pub async fn open(store: &dyn ConfidentialStore) -> Result<Self, StoreError> {
        let head = store.confidential_head().await?;
        Ok(head.map_or_else(Self::default, |head| Self { version: head.version, root: head.state_root }))
    }

    /// One that knows how much it executed, and not what.
    #[must_use]
    pub fn forgotten(self) -> Self {
        Self { root: B256::ZERO, ..self }
    }

    /// Whether an item is applied; one that is refused changes nothing.
    fn apply(&mut self, bytes: &[u8]) -> bool {
        let is_applied = bytes.last().is_some_and(|last| last % 4 != 3);
        if is_applied {
            *self =
                Self { version: self.version + 1, root: keccak256([self.root.as_slice(), bytes].concat()) };
        }
        is_applied
    }

    fn execution(self, outcomes: Vec<Outcome>) -> Execution {
        let roots = Roots {
            version: self.version,
            accounts: 0,
            public_accounts: 0,
            accounts_root: B256::ZERO,
            public_root: B256::ZERO,
            confidential: 0,
            state_root: self.root,
        };
        Execution { outcomes, accounts: Vec::new(), nodes: Vec::new(), balances: Vec::new(), roots }
    }
}

impl Machine for HashChain {
    fn genesis(&self) -> Execution {
        self.execution(Vec::new())
    }

    fn execute(&mut self, items: &[CommittedItem]) -> Result<Execution, StoreError> {
        let outcome = |item: &CommittedItem| {
            let is_applied = self.apply(&item.bytes);
            Outcome {
                id: keccak256(&item.bytes),
                kind: Some("link"),
                refusal: (!is_applied).then(|| "every_fourth".to_owned()),
                version: self.version,
                state_root: self.root,
                parties: Vec::new(),
            }
        };
        let outcomes = items.iter().map(outcome).collect();
        Ok(self.execution(outcomes))
    }
}

/// A view of a state without accounts.
pub struct NoAccounts;

impl AccountView for NoAccounts {
    fn account(&self, _: &ConfidentialAccountRecord) -> Result<ConfidentialAccount, String> {
        Err("there are no accounts".to_owned())
    }

    fn empty_root(&self, _: u8) -> B256 {
        B256::ZERO
    }
}

/// What users send to the coprocessor, and what was seen of it. Clones are the same.
#[derive(Clone, Default)]
pub struct Confidential(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    items: u32,
    /// The item of each envelope.
    sent: BTreeMap<B256, Vec<u8>>,
    /// Which of them were executed at some time.
    executed: BTreeSet<Vec<u8>>,
    /// The root of each version since the disk was empty.
    roots: BTreeMap<u64, B256>,
}

impl Confidential {
    /// An item like no other.
    pub fn next_item(&self) -> Vec<u8> {
        let mut state = self.0.lock();
        state.items += 1;
        state.items.to_be_bytes().to_vec()
    }

    /// An envelope with this item is about to be sent.
    pub fn sends(&self, id: B256, item: Vec<u8>) {
        self.0.lock().sent.insert(id, item);
    }

    /// The coprocessor has an empty disk.
    pub fn begin_anew(&self) {
        self.0.lock().roots.clear();
    }

    /// The items of a batch in committed order, with their place, unless the batch is void: those of accepted envelopes.
    fn items_of(&self, record: &BatchRecord) -> Vec<Item> {
        let state = self.0.lock();
        let accepted = (0..).zip(&record.items).filter(|(_, item)| item.fault.is_none());
        let sent = accepted.filter_map(|(place, item)| Some((place, state.sent.get(&item.id)?.clone())));
        sent.map(|(item, bytes)| Item { number: record.number, item, position: POSITION, bytes }).collect()
    }

    /// Takes down what was executed; gives what is wrong with its roots.
    fn wrong_roots(&self, executed: &[StoredConfidentialTransaction]) -> Option<String> {
        let mut state = self.0.lock();
        let mut chain = HashChain::default();
        for StoredConfidentialTransaction { number, record } in executed {
            let is_applied = chain.apply(&record.bytes);
            let found = HashChain { version: record.version, root: record.state_root };
            if is_applied != record.applied || found != chain {
                return Some(format!("an item of batch {number} gave {found:?}, not {chain:?}"));
            }
            let known = *state.roots.entry(chain.version).or_insert(chain.root);
            if known != chain.root {
                let HashChain { version, root } = chain;
                return Some(format!("version {version} has root {root}, and had {known}"));
            }
            state.executed.insert(record.bytes.clone());
        }
        None
    }
}

/// An item in its committed place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    number: u64,
    item: u32,
    position: u16,
    bytes: Vec<u8>,
}

impl From<StoredConfidentialTransaction> for Item {
    fn from(StoredConfidentialTransaction { number, record }: StoredConfidentialTransaction) -> Self {
        Self { number, item: record.item, position: record.position, bytes: record.bytes }
    }
}

/// Everything that a disk has as executed, in its order.
async fn all_executed(store: &SqlStore) -> Result<Vec<StoredConfidentialTransaction>, StoreError> {
    let mut all = Vec::new();
    loop {
        let read = store.confidential_transactions_from(all.len() as u64 + 1, PAGE).await?;
        if read.is_empty() {
            return Ok(all);
        }
        all.extend(read);
    }
}

/// The newest batch that the coprocessor executed, where one takes part and has a disk at this moment.
pub async fn executed(world: &World) -> Option<u64> {
    let store = world.store(Role::Coprocessor)?;
    store.confidential_head().await.ok().flatten().map(|head| head.number)
}

/// Looks at what is executed: each item must be in its batch as that stands on the same disk. One that is killed meanwhile is
/// looked at later.
pub async fn look(world: &World) {
    let Some(store) = world.store(Role::Coprocessor) else { return };
    let Ok(executed) = all_executed(&store).await else { return };
    if let Some(wrong) = world.confidential.wrong_roots(&executed) {
        world.checks.broken(Rule::ConfidentialRoots, wrong);
    }
    world.checks.confidential(world.confidential.0.lock().executed.len());
    let mut committed: Vec<Item> = Vec::new();
    let executed: Vec<Item> = executed.into_iter().map(Item::from).collect();
    let numbers: BTreeSet<u64> = executed.iter().map(|item| item.number).collect();
    for number in numbers {
        let Ok(record) = store.batch(number).await else { return };
        committed.extend(record.iter().flat_map(|record| world.confidential.items_of(record)));
    }
    if executed != committed {
        let detail = format!("{executed:?} is executed, committed is {committed:?}");
        world.checks.broken(Rule::ConfidentialItems, detail);
    }
}

/// What is not as the full nodes have it: how far the coprocessor is, of which batches, and what it executed of them. Whatever
/// went wrong before, nothing should be in the end.
pub async fn difference(world: &World) -> Option<String> {
    let failed = |error: StoreError| error.to_string();
    for node in (1..=world.plan.nodes).map(Role::Node) {
        match difference_to(world, node).await.map_err(failed) {
            Ok(None) => {}
            Ok(difference) => return difference,
            Err(error) => return Some(error),
        }
    }
    None
}

async fn difference_to(world: &World, node: Role) -> Result<Option<String>, StoreError> {
    let (Some(ours), Some(theirs)) = (world.store(Role::Coprocessor), world.store(node)) else {
        return Ok(Some(format!("the coprocessor or {node} is down")));
    };
    let head = ours.confidential_head().await?.map_or(0, |head| head.number);
    let heads = theirs.heads().await?;
    let block = theirs.block(heads.block.map_or(0, |(number, _)| number)).await?;
    let reached = block.map_or(0, |block| block.last_batch);
    if head < reached {
        return Ok(Some(format!("the coprocessor executed {head}, {node} {reached}")));
    }
    let last = head.min(heads.certified.unwrap_or_default());
    let void = world.l1.void_runs();
    let mut committed = Vec::new();
    let mut next = 1;
    while next <= last {
        let read = theirs.batches(next, PAGE).await?;
        let Some(newest) = read.last() else { break };
        next = newest.number + 1;
        for record in read.iter().filter(|record| record.number <= last) {
            let number = record.number;
            if ours.header_hash(number).await? != Some(record.hash) {
                return Ok(Some(format!("the coprocessor has another batch {number} than {node}")));
            }
            if !void.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
                committed.extend(world.confidential.items_of(record));
            }
        }
    }
    let executed: Vec<Item> = all_executed(&ours).await?.into_iter().map(Item::from).collect();
    let executed: Vec<Item> = executed.into_iter().filter(|item| item.number <= last).collect();
    Ok((executed != committed)
        .then(|| format!("{executed:?} is executed, {node} has {committed:?} up to {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(lasts: &[u8]) -> Vec<CommittedItem> {
        let item = |last: &u8| CommittedItem { item: 0, position: POSITION, bytes: vec![*last] };
        lasts.iter().map(item).collect()
    }

    #[test]
    fn order_counts_and_what_is_refused_does_not() {
        let root = |lasts: &[u8]| HashChain::default().execute(&items(lasts)).unwrap().roots.state_root;
        assert_ne!(root(&[1, 2]), root(&[2, 1]));
        assert_eq!(root(&[1, 3, 2]), root(&[1, 2]));
        let mut in_two = HashChain::default();
        in_two.execute(&items(&[1])).unwrap();
        assert_eq!(in_two.execute(&items(&[2])).unwrap().roots.state_root, root(&[1, 2]));
    }
}

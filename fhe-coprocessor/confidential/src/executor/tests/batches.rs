//! Batches: the result of one after the other, on any number of threads.

use std::sync::Mutex;

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::world::{MINIMUM_FEE, World};
use crate::executor::{Check, Executed, Proofs, Receipt, execute};
use crate::state::{MemoryStorage, Refusal};

/// What an owner does; amounts may be more than there is.
#[derive(Debug, Clone)]
enum Operation {
    Register(usize),
    Deposit {
        from: usize,
        to: usize,
        amount: u64,
    },
    Transfer {
        from: usize,
        to: usize,
        amount: u64,
        fee: u64,
    },
    Rollover(usize),
    Refresh(usize),
    Withdraw {
        from: usize,
        to: usize,
        amount: u64,
    },
    /// The last transaction once more.
    Again,
    /// The last transaction with another proof or signature.
    Broken(usize),
}

const OWNERS: usize = 4;

fn operation() -> impl Strategy<Value = Operation> {
    let owner = 0..OWNERS;
    let amount = prop_oneof![0u64..20, 0u64..100_000];
    prop_oneof![
        1 => owner.clone().prop_map(Operation::Register),
        3 => (owner.clone(), owner.clone(), amount.clone())
            .prop_map(|(from, to, amount)| Operation::Deposit { from, to, amount }),
        6 => (owner.clone(), owner.clone(), amount.clone(), 0u64..8)
            .prop_map(|(from, to, amount, fee)| Operation::Transfer { from, to, amount, fee }),
        3 => owner.clone().prop_map(Operation::Rollover),
        1 => owner.clone().prop_map(Operation::Refresh),
        2 => (owner.clone(), owner, amount).prop_map(|(from, to, amount)| Operation::Withdraw { from, to, amount }),
        1 => Just(Operation::Again),
        2 => (0usize..1000).prop_map(Operation::Broken),
    ]
}

/// Plain balances beside the encrypted ones.
#[derive(Debug, Clone, Default)]
struct Model {
    registered: [bool; OWNERS],
    available: [u64; OWNERS],
    pending: [u64; OWNERS],
    public: [u64; OWNERS],
    fees: u64,
}

impl Model {
    /// Whether the operation succeeds, and what it does.
    fn apply(&mut self, operation: &Operation) -> bool {
        let plain = self.clone();
        let done = self.try_apply(operation).is_some();
        if !done {
            *self = plain;
        }
        done
    }

    fn try_apply(&mut self, operation: &Operation) -> Option<()> {
        let check = |holds: bool| holds.then_some(());
        match *operation {
            Operation::Register(owner) => {
                check(!self.registered[owner])?;
                self.registered[owner] = true;
            }
            Operation::Deposit { from, to, amount } => {
                check(self.registered[to] && amount >= MINIMUM_FEE)?;
                self.public[from] = self.public[from].checked_sub(amount)?;
                self.pending[to] += amount;
            }
            Operation::Transfer { from, to, amount, fee } => {
                check(from != to && self.registered[from] && self.registered[to] && fee >= MINIMUM_FEE)?;
                self.available[from] = self.available[from].checked_sub(amount)?.checked_sub(fee)?;
                self.pending[to] += amount;
                self.fees += fee;
            }
            Operation::Rollover(owner) => {
                check(self.registered[owner])?;
                self.available[owner] += std::mem::take(&mut self.pending[owner]);
            }
            Operation::Refresh(owner) => check(self.registered[owner])?,
            Operation::Withdraw { from, to, amount } => {
                check(self.registered[from] && amount > 0)?;
                self.available[from] = self.available[from].checked_sub(amount)?;
                self.public[to] += amount;
            }
            Operation::Again | Operation::Broken(_) => return None,
        }
        Some(())
    }
}

/// The transaction of an operation in the state as it is; `None` where nobody could even make it.
fn transaction(world: &mut World, operation: &Operation, last: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    let registered = |world: &World, owner: usize| {
        crate::state::Storage::account(&world.storage, &world.address(owner)).unwrap().is_some()
    };
    let made = match *operation {
        Operation::Register(owner) => world.register(owner),
        Operation::Deposit { from, to, amount } => world.deposit(from, to, amount),
        Operation::Transfer { from, to, amount, fee } if registered(world, from) => {
            world.transfer(from, to, amount, fee)
        }
        Operation::Rollover(owner) if registered(world, owner) => world.rollover(owner),
        Operation::Refresh(owner) if registered(world, owner) => world.refresh(owner),
        Operation::Withdraw { from, to, amount } if registered(world, from) => {
            world.withdraw(from, world.address(to), amount)
        }
        Operation::Again => return last.cloned(),
        Operation::Broken(place) => {
            let mut bytes = last?.clone();
            // Within proof or signature.
            let end = bytes.len();
            bytes[end - 1 - place % 60] ^= 1;
            return Some(bytes);
        }
        _ => return None,
    };
    Some(made.encode())
}

/// All receipts and the storage after executing in batches of the given sizes.
fn in_batches(
    world: &World,
    start: &MemoryStorage,
    all: &[Vec<u8>],
    sizes: &[usize],
) -> (Vec<Receipt>, MemoryStorage) {
    let (mut storage, mut receipts, mut rest) = (start.clone(), Vec::new(), all);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (batch, tail) = rest.split_at((*size).min(rest.len()));
        let Ok(executed) = execute(&world.settings, &storage, &super::world::Double, *storage.head(), batch);
        storage.commit(&executed);
        receipts.extend(executed.receipts);
        rest = tail;
    }
    (receipts, storage)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(12), ..Default::default()
    })]

    /// Random operations of owners with honest keys: balances are those of a plain model, the supply is constant, and
    /// batches of any size on any number of threads do what one after the other does.
    #[test]
    fn sequences_do_what_the_model_does(
        operations in prop::collection::vec(operation(), 1..60), sizes in prop::collection::vec(1usize..30, 1..4),
    ) {
        let mut world = World::new(OWNERS as u8);
        let mut model = Model::default();
        for owner in 0..OWNERS {
            model.public[owner] = world.public_balance(&world.address(owner));
        }
        let start = world.storage.clone();
        let (mut all, mut receipts) = (Vec::new(), Vec::new());
        // The first owners register at once, or little would happen.
        let operations = (0..3).map(Operation::Register).chain(operations);
        for operation in operations {
            let Some(bytes) = transaction(&mut world, &operation, all.last()) else { continue };
            let executed = world.execute(std::slice::from_ref(&bytes));
            world.storage.commit(&executed);
            let receipt = executed.receipts[0];
            // A broken copy of a refused transaction may be refused for either reason; it is never applied.
            prop_assert_eq!(receipt.outcome.is_ok(), model.apply(&operation), "{:?}: {:?}", operation, receipt);
            all.push(bytes);
            receipts.push(receipt);
        }
        for owner in 0..OWNERS {
            prop_assert_eq!(world.public_balance(&world.address(owner)), model.public[owner]);
            if model.registered[owner] {
                prop_assert_eq!(world.balances(owner), [model.available[owner], model.pending[owner]]);
            }
        }
        prop_assert_eq!(world.public_balance(&world.operator), model.fees);
        world.check_invariants();
        for threads in [1, 2, 3] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (batched, storage) = pool.install(|| in_batches(&world, &start, &all, &sizes));
            prop_assert_eq!(&batched, &receipts, "{} threads", threads);
            prop_assert_eq!(storage.head(), world.storage.head());
        }
    }
}

/// Keeps the sizes of the batches that were verified.
#[derive(Default)]
struct Counting(Mutex<Vec<usize>>);

impl Proofs for Counting {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        self.0.lock().unwrap().push(checks.len());
        super::world::Double.verify(checks)
    }
}

fn counted(world: &World, batch: &[Vec<u8>]) -> (Executed, Vec<usize>) {
    let counting = Counting::default();
    let Ok(executed) = execute(&world.settings, &world.storage, &counting, *world.storage.head(), batch);
    (executed, counting.0.into_inner().unwrap())
}

/// Transfers of owner 0 that build on each other, made before any of them is executed.
fn chain(world: &mut World, count: usize) -> Vec<Vec<u8>> {
    let mut ahead = World { storage: world.storage.clone(), ..World::new(world.owners.len() as u8) };
    (0..count)
        .map(|_| {
            let transfer = ahead.transfer(0, 1, 10, MINIMUM_FEE);
            ahead.apply(transfer.clone());
            transfer.encode()
        })
        .collect()
}

#[test]
fn several_transfers_of_one_sender_are_verified_together() {
    let mut world = World::funded(3, 1000);
    let mut batch = chain(&mut world, 5);
    batch.push(world.transfer(2, 0, 10, MINIMUM_FEE).encode());
    let (executed, calls) = counted(&world, &batch);
    assert!(executed.receipts.iter().all(|receipt| receipt.outcome == Ok(())));
    assert_eq!(calls, [6]);
}

#[test]
fn a_refused_proof_refuses_what_builds_on_it_and_nothing_else() {
    let mut world = World::funded(3, 1000);
    let mut batch = chain(&mut world, 4);
    let end = batch[1].len();
    batch[1][end - 1] ^= 1;
    batch.push(world.transfer(2, 0, 10, MINIMUM_FEE).encode());
    // A rollover of a payment that is refused, and a transfer by the one who was to be paid.
    batch.push(world.rollover(1).encode());
    let (executed, calls) = counted(&world, &batch);
    let outcomes: Vec<_> = executed.receipts.iter().map(|receipt| receipt.outcome).collect();
    let (bad, gap) = (Err(Refusal::InvalidProof), Err(Refusal::NonceTooHigh));
    assert_eq!(outcomes, [Ok(()), bad, gap, gap, Ok(()), Ok(())]);
    assert_eq!(calls, [5], "the second way through the batch knows all it needs");
}

#[test]
fn many_bad_proofs_at_one_nonce_are_settled_one_by_one_in_the_end() {
    let mut world = World::funded(2, 1000);
    let mut batch: Vec<Vec<u8>> = Vec::new();
    for _ in 0..10 {
        let mut bytes = world.transfer(0, 1, 10, MINIMUM_FEE).encode();
        let end = bytes.len();
        bytes[end - 1] ^= 1;
        batch.push(bytes);
    }
    batch.push(world.transfer(0, 1, 10, MINIMUM_FEE).encode());
    let (executed, calls) = counted(&world, &batch);
    let refused = executed.receipts.iter().filter(|receipt| receipt.outcome == Err(Refusal::InvalidProof));
    assert_eq!(refused.count(), 10);
    assert_eq!(executed.receipts[10].outcome, Ok(()));
    assert_eq!(calls, [1; 11]);
}

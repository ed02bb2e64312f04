//! Batches: the result of one after the other, on any number of threads.

use std::sync::Mutex;

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::world::{MINIMUM_FEE, World};
use crate::executor::{
    Check, Executed, MAX_INVALID_PER_ACCOUNT, MAX_INVALID_PER_BATCH, MAX_INVALID_PER_NONCE, Proofs, Receipt,
    execute,
};
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

pub(super) fn counted(world: &World, batch: &[Vec<u8>]) -> (Executed, Vec<usize>) {
    let counting = Counting::default();
    let Ok(executed) = execute(&world.settings, &world.storage, &counting, *world.storage.head(), batch);
    (executed, counting.0.into_inner().unwrap())
}

/// Transfers of owner 0 that build on each other, made before any of them is executed.
pub(super) fn chain(world: &mut World, count: usize) -> Vec<Vec<u8>> {
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

/// With another proof, which does not hold.
pub(super) fn bad(bytes: &[u8], number: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let end = bytes.len();
    bytes[end - 1] ^= 1;
    bytes[end - 2] ^= number;
    bytes
}

pub(super) fn outcomes(executed: &Executed) -> Vec<Result<(), Refusal>> {
    executed.receipts.iter().map(|receipt| receipt.outcome).collect()
}

#[test]
fn alternatives_at_one_nonce_are_verified_together() {
    let mut world = World::funded(2, 1000);
    let good = world.transfer(0, 1, 10, MINIMUM_FEE).encode();
    let mut batch: Vec<Vec<u8>> = (0..10).map(|number| bad(&good, number)).collect();
    // Two more that hold, and copies, which cost nothing.
    batch.extend([good.clone(), world.transfer(0, 1, 20, MINIMUM_FEE).encode(), good, batch[3].clone()]);
    let (executed, calls) = counted(&world, &batch);
    let (bad, late) = (Err(Refusal::InvalidProof), Err(Refusal::NonceTooLow));
    assert_eq!(outcomes(&executed), [vec![bad; 10], vec![Ok(()), late, late, late]].concat());
    assert_eq!(calls, [12]);
}

/// 300 bad withdrawals of one account fill 104 KB: as many are looked at as may be, all at once, and the account's owner,
/// if his was among the others, sends it again.
#[test]
fn a_flood_of_bad_proofs_for_one_nonce_is_looked_at_up_to_the_limit() {
    let world = World::funded(2, 1000);
    let good = world.withdraw(0, world.address(0), 10).encode();
    let mut batch: Vec<Vec<u8>> = (0..150).map(|number| bad(&good, number)).collect();
    batch.extend((0..150).map(|number| bad(&world.withdraw(0, world.address(1), 10).encode(), number)));
    batch.push(good.clone());
    batch.push(world.withdraw(1, world.address(1), 10).encode());
    let (executed, calls) = counted(&world, &batch);
    let (bad, unseen) = (Err(Refusal::InvalidProof), Err(Refusal::TooManyAttempts));
    let looked_at = MAX_INVALID_PER_NONCE;
    let want = [vec![bad; looked_at], vec![unseen; 301 - looked_at], vec![Ok(())]].concat();
    assert_eq!(outcomes(&executed), want);
    assert_eq!(calls, [looked_at + 1]);
    assert_eq!(outcomes(&counted(&world, &[good]).0), [Ok(())], "in the next batch");
}

/// Whether a credit comes about decides what its payee has after a rollover: what rests on that is verified when it is known,
/// once, and together.
#[test]
fn what_rests_on_a_credit_is_verified_after_it_and_together() {
    for holds in [true, false] {
        let mut world = World::funded(3, 1000);
        let (pay, rollover) = (world.transfer(1, 0, 10, MINIMUM_FEE), world.rollover(0));
        let mut ahead = World { storage: world.storage.clone(), ..World::new(world.owners.len() as u8) };
        if holds {
            ahead.apply(pay.clone());
        }
        ahead.apply(rollover.clone());
        let credit = if holds { pay.encode() } else { bad(&pay.encode(), 1) };
        let batch = [vec![credit, rollover.encode()], chain(&mut ahead, 8)].concat();
        let (executed, calls) = counted(&world, &batch);
        let first = if holds { Ok(()) } else { Err(Refusal::InvalidProof) };
        assert_eq!(outcomes(&executed), [vec![first], vec![Ok(()); 9]].concat());
        assert_eq!(calls, [1, 8], "{holds}");
    }
}

/// The same behind a turn that two ask for.
#[test]
fn what_follows_a_contested_turn_is_verified_together() {
    let mut world = World::funded(2, 1000);
    let mut batch = chain(&mut world, 8);
    batch.insert(0, bad(&batch[0], 1));
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(outcomes(&executed), [vec![Err(Refusal::InvalidProof)], vec![Ok(()); 8]].concat());
    assert_eq!(calls, [2, 7]);
}

/// A bad proof in front of a good one at each nonce: each is verified once, and the more have held the more together.
#[test]
fn a_bad_alternative_at_every_nonce_costs_one_verification_each() {
    let mut world = World::funded(3, 1000);
    let good = chain(&mut world, 8);
    let mut batch: Vec<Vec<u8>> = good.iter().flat_map(|good| [bad(good, 1), good.clone()]).collect();
    batch.push(world.transfer(2, 1, 10, MINIMUM_FEE).encode());
    let (executed, calls) = counted(&world, &batch);
    let pair = [Err(Refusal::InvalidProof), Ok(())];
    assert_eq!(outcomes(&executed), [&[pair; 8].concat()[..], &[Ok(())]].concat());
    assert_eq!(calls, [3, 2, 2, 2, 4, 2, 1, 1]);
}

#[test]
fn bad_proofs_are_limited_for_each_account_and_batch() {
    let accounts = MAX_INVALID_PER_BATCH / MAX_INVALID_PER_ACCOUNT + 1;
    let mut world = World::funded(accounts as u8, 1000);
    let mut batch = Vec::new();
    let turns = MAX_INVALID_PER_ACCOUNT / MAX_INVALID_PER_NONCE;
    for account in 0..accounts {
        let mut ahead = World { storage: world.storage.clone(), ..World::new(accounts as u8) };
        for _ in 0..turns {
            let good = ahead.withdraw(account, ahead.address(account), 10);
            ahead.apply(good.clone());
            // One is left of each nonce, for the good one.
            batch.extend((1..MAX_INVALID_PER_NONCE).map(|number| bad(&good.encode(), number as u8)));
            batch.push(good.encode());
        }
        let good = ahead.withdraw(account, ahead.address(account), 10).encode();
        batch.extend((0..=turns).map(|number| bad(&good, number as u8)));
        batch.push(good);
    }
    let (executed, calls) = counted(&world, &batch);
    let refused = |refusal| outcomes(&executed).iter().filter(|outcome| **outcome == Err(refusal)).count();
    assert_eq!(refused(Refusal::InvalidProof), MAX_INVALID_PER_BATCH);
    // Of each account the last bad one and the good one behind it; of the last account all at its first nonce, which it
    // never leaves.
    assert_eq!(refused(Refusal::TooManyAttempts), (accounts - 1) * 2 + MAX_INVALID_PER_NONCE);
    assert_eq!(refused(Refusal::NonceTooHigh), (turns - 1) * MAX_INVALID_PER_NONCE + turns + 2);
    let applied = executed.receipts.iter().filter(|receipt| receipt.outcome.is_ok()).count();
    assert_eq!(applied, (accounts - 1) * turns);
    assert!(calls.iter().sum::<usize>() <= batch.len(), "none is verified twice: {calls:?}");
    world.storage.commit(&executed);
    world.check_invariants();
}

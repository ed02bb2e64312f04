//! What somebody puts into a batch to have much verified or kept: counted, and without an effect on the result.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, Weak};

use alloy_primitives::{Address, B256, keccak256};
use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::batches::{bad, chain, counted, outcomes};
use super::world::{Double, MINIMUM_FEE, SUPPLY, World, domain, honest, no_proof};
use crate::executor::batch::Batch;
use crate::executor::known::Known;
use crate::executor::limits::Verdicts;
use crate::executor::screen::Screened;
use crate::executor::settled::Settled;
use crate::executor::{
    Check, MAX_AHEAD_TRANSACTIONS, MAX_IDLE_TRANSACTIONS, MAX_INVALID_PER_ACCOUNT, MAX_INVALID_PER_BATCH,
    MAX_INVALID_PER_NONCE, MAX_TRANSACTIONS_PER_QUESTION, MAX_UNHASHED_TRANSACTIONS, Proofs, Receipt, ahead,
    execute,
};
use crate::state::{
    Account, Identity, MemoryStorage, Premises, PublicAccount, Refusal, Remembered, Storage, Tree,
};
use crate::transaction::{ConfidentialTransaction as T, Deposit, Withdraw};
use crate::tree::Place;

/// What anybody can send in the name of an account: a withdrawal that nothing proves.
fn garbage(world: &World, owner: usize, nonce: u64, number: u64) -> Vec<u8> {
    let mut proof = no_proof();
    proof.0[..8].copy_from_slice(&number.to_be_bytes());
    let (account, recipient) = (world.address(owner), world.address(0));
    T::Withdraw(Box::new(Withdraw { account, nonce, amount: 1, recipient, proof })).encode()
}

fn applied(outcomes: &[Result<(), Refusal>]) -> usize {
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

/// The account's rollovers take the turns that garbage in front of them does not, and what is behind has other premises.
#[test]
fn garbage_between_rollovers_is_looked_at_up_to_the_limit() {
    let world = World::funded(2, 100_000);
    let (count, first) = (500, world.account(0).nonce);
    let batch: Vec<Vec<u8>> = (first..first + count)
        .flat_map(|nonce| [garbage(&world, 0, nonce, nonce), world.rollover_at(0, nonce).encode()])
        .collect();
    let (executed, calls) = counted(&world, &batch);
    let outcomes = outcomes(&executed);
    let refused = |refusal| outcomes.iter().filter(|outcome| **outcome == Err(refusal)).count();
    assert_eq!(applied(&outcomes), count as usize);
    assert_eq!(refused(Refusal::InvalidProof), MAX_INVALID_PER_ACCOUNT);
    assert_eq!(calls, [1; MAX_INVALID_PER_ACCOUNT]);
}

/// An account waits behind its open registration, without that anything was passed over before. What is behind keeps its own
/// outcome.
#[test]
fn each_transaction_has_its_own_outcome_behind_one_that_waits() {
    let mut world = World::new(3);
    let other = world.register(2);
    world.apply(other);
    let batch = [
        world.register(1).encode(),
        world.deposit_at(1, 1, 255, 0).encode(),
        world.rollover_at(1, 0).encode(),
        garbage(&world, 1, 1, 7),
        world.deposit_at(0, 2, 255, 0).encode(),
    ];
    let (executed, _) = counted(&world, &batch);
    let (want, _) = one_by_one(&world, &batch);
    assert_eq!(executed.receipts, want);
    assert_eq!(outcomes(&executed), [Ok(()), Ok(()), Ok(()), Err(Refusal::InvalidProof), Ok(())]);
}

#[test]
fn garbage_at_consecutive_nonces_is_looked_at_up_to_the_limit() {
    let world = World::funded(2, 100_000);
    let first = world.account(0).nonce;
    let nonces = first..first + 2 * MAX_INVALID_PER_BATCH as u64;
    let batch: Vec<Vec<u8>> = nonces.map(|nonce| garbage(&world, 0, nonce, nonce)).collect();
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(applied(&outcomes(&executed)), 0);
    assert_eq!(calls, [MAX_INVALID_PER_ACCOUNT]);
}

/// The same in the name of many: all accounts together waste what a batch may, and then each bad proof is one attempt.
#[test]
fn garbage_in_the_name_of_many_is_looked_at_up_to_the_limit() {
    let accounts = 3 * MAX_INVALID_PER_BATCH / MAX_INVALID_PER_ACCOUNT;
    let mut world = World::funded(accounts as u8, 1000);
    let honest = chain(&mut world, 40);
    let chains = (1..accounts).flat_map(|owner| {
        let first = world.account(owner).nonce;
        (first..first + 2 * MAX_INVALID_PER_ACCOUNT as u64).map(move |nonce| (owner, nonce))
    });
    let mut batch: Vec<Vec<u8>> = chains.map(|(owner, nonce)| garbage(&world, owner, nonce, nonce)).collect();
    batch.extend(honest);
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(applied(&outcomes(&executed)), 40);
    let verified: usize = calls.iter().sum();
    assert!(verified <= MAX_INVALID_PER_BATCH + accounts + 40 * 5 / 4, "{verified}: {calls:?}");
}

/// Garbage for the first nonces of a long chain, in front of it or behind it, holds it up for as many calls at most.
#[test]
fn garbage_at_some_nonces_of_a_chain_leaves_the_rest_together() {
    let mut world = World::funded(2, 100_000);
    let good = chain(&mut world, 72);
    let first = world.account(0).nonce;
    let others: Vec<Vec<u8>> = (0..8).map(|at| garbage(&world, 0, first + at, at)).collect();
    let copies: Vec<Vec<u8>> = good[..8].iter().map(|good| bad(good, 1)).collect();
    for garbage in [others, copies] {
        for batch in [[&garbage[..], &good].concat(), [&good[..], &garbage].concat()] {
            let (executed, calls) = counted(&world, &batch);
            assert_eq!(applied(&outcomes(&executed)), 72);
            assert!(calls.len() <= 9, "{calls:?}");
            assert!(calls.iter().sum::<usize>() <= batch.len(), "none is verified twice: {calls:?}");
        }
    }
}

/// Garbage behind each transaction of a chain, at its nonce: it is never an attempt, and hardly looked at.
#[test]
fn garbage_at_every_nonce_of_a_chain_leaves_most_of_it_together() {
    let mut world = World::funded(2, 1_000_000);
    let good = chain(&mut world, 400);
    let first = world.account(0).nonce;
    let mut batch = good;
    batch.extend((0..400).map(|at| garbage(&world, 0, first + at, at)));
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(applied(&outcomes(&executed)), 400);
    assert!(calls.len() <= 32, "{} calls: {calls:?}", calls.len());
    assert!(calls.iter().sum::<usize>() <= 400 * 5 / 4, "{calls:?}");
}

/// A withdrawal of all that all accounts hold, which nothing proves, says nothing about what is behind it.
#[test]
fn garbage_that_withdraws_everything_holds_nothing_up() {
    const ACCOUNTS: usize = 20;
    let mut world = World::funded(ACCOUNTS as u8, 100_000);
    let good = chain(&mut world, ACCOUNTS);
    let all = world.storage.head().confidential;
    let everything = |owner: usize| {
        let T::Withdraw(mut withdraw) = world.withdraw(owner, world.address(owner), 1) else {
            panic!("a withdrawal")
        };
        withdraw.amount = all - 1000;
        T::Withdraw(withdraw).encode()
    };
    let batch: Vec<Vec<u8>> =
        (1..ACCOUNTS).zip(good).flat_map(|(owner, good)| [everything(owner), good]).collect();
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(applied(&outcomes(&executed)), ACCOUNTS - 1);
    assert_eq!(calls, [batch.len()]);
}

/// Were proofs forged: what all accounts hold leaves them once, however many proofs are verified together.
#[test]
fn more_than_all_accounts_hold_never_leaves_them() {
    let mut world = World::funded(3, 1000);
    let forged = |owner: usize, amount: u64| {
        let T::Withdraw(mut withdraw) = world.withdraw(owner, world.address(owner), 1) else {
            panic!("a withdrawal")
        };
        withdraw.amount = amount;
        let claim = world.claim(&T::Withdraw(withdraw.clone()), &Premises::Account(world.account(owner)));
        withdraw.proof = honest(&claim);
        T::Withdraw(withdraw).encode()
    };
    let batch = [forged(0, 2500), forged(1, 600), forged(2, 500)];
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(outcomes(&executed), [Ok(()), Err(Refusal::ConfidentialSupply), Ok(())]);
    assert_eq!((calls, executed.head.confidential), (vec![3], 0));
    world.storage.commit(&executed);
    assert_eq!([0, 1, 2].map(|owner| world.account(owner).nonce), [2, 1, 2]);
}

/// A bad withdrawal comes again behind an open one, after which the accounts hold too little for it: it is refused for that,
/// as one after the other refuses it, and it is no attempt.
#[test]
fn what_is_known_to_be_bad_is_no_attempt_where_the_accounts_hold_too_little() {
    let world = World::funded(2, 1000);
    let T::Withdraw(mut withdraw) = world.withdraw(0, world.address(0), 1) else { panic!("a withdrawal") };
    withdraw.amount = 1500;
    let bad = T::Withdraw(withdraw).encode();
    // The one behind it is found when this one is known.
    let idle = vec![vec![0]; MAX_IDLE_TRANSACTIONS + 2 * MAX_TRANSACTIONS_PER_QUESTION];
    let open = world.withdraw(1, world.address(1), 900).encode();
    // As many as make the last ones one too many, were they attempts.
    for copies in [1, MAX_INVALID_PER_NONCE + 1] {
        let batch =
            [&[bad.clone()][..], &idle, std::slice::from_ref(&open), &vec![bad.clone(); copies]].concat();
        let (executed, calls) = counted(&world, &batch);
        let (want, _) = one_by_one(&world, &batch);
        assert_eq!(executed.receipts, want);
        assert_eq!(executed.receipts.last().unwrap().outcome, Err(Refusal::ConfidentialSupply));
        assert_eq!(calls, [1, 1]);
    }
}

/// A verdict that came ahead of a turn at which the accounts held too little is kept for a copy that comes when they hold
/// enough: its premises are the same.
#[test]
fn what_is_known_to_be_bad_is_not_verified_again_when_the_accounts_hold_enough() {
    let world = World::funded(2, 1000);
    let T::Withdraw(mut withdraw) = world.withdraw(0, world.address(0), 1) else { panic!("a withdrawal") };
    withdraw.amount = 1500;
    let bad = T::Withdraw(withdraw).encode();
    let first =
        [world.withdraw(1, world.address(1), 900).encode(), bad.clone(), world.deposit(0, 0, 500).encode()];
    let batch = [&first[..], &vec![vec![0]; MAX_AHEAD_TRANSACTIONS], &[bad]].concat();
    let (executed, calls) = counted(&world, &batch);
    let (want, _) = one_by_one(&world, &batch);
    assert_eq!(executed.receipts, want);
    assert_eq!(executed.receipts[1].outcome, Err(Refusal::ConfidentialSupply));
    assert_eq!(executed.receipts.last().unwrap().outcome, Err(Refusal::InvalidProof));
    assert_eq!(calls, [2]);
}

/// Payments from account to account, each of which pays from what it got: the first one by one, then ever more together.
#[test]
fn a_chain_across_accounts_is_verified_together() {
    const DEPTH: usize = 60;
    let mut world = World::funded(DEPTH as u8 + 2, 100_000);
    let mut ahead = World { storage: world.storage.clone(), ..World::new(DEPTH as u8 + 2) };
    let mut batch = Vec::new();
    for owner in 0..DEPTH {
        let pay = ahead.transfer(owner, owner + 1, 10, MINIMUM_FEE);
        ahead.apply(pay.clone());
        let rollover = ahead.rollover(owner + 1);
        ahead.apply(rollover.clone());
        batch.extend([pay.encode(), rollover.encode()]);
    }
    for _ in 0..40 {
        let pay = ahead.transfer(DEPTH, DEPTH + 1, 10, MINIMUM_FEE);
        ahead.apply(pay.clone());
        batch.push(pay.encode());
    }
    let (executed, calls) = counted(&world, &batch);
    assert_eq!(applied(&outcomes(&executed)), batch.len());
    world.storage.commit(&executed);
    assert!(calls.len() <= 20, "{} calls: {calls:?}", calls.len());
    assert_eq!(calls.iter().sum::<usize>(), DEPTH + 40);
}

/// A rollover of nothing changes the nonce and keeps every ciphertext.
#[test]
fn a_rollover_of_nothing_makes_no_ciphertext() {
    let mut world = World::funded(1, 1000);
    let before = world.account(0);
    let batch: Vec<Vec<u8>> =
        (before.nonce..before.nonce + 100).map(|nonce| world.rollover_at(0, nonce).encode()).collect();
    let executed = world.execute(&batch);
    assert_eq!(applied(&outcomes(&executed)), 100);
    world.storage.commit(&executed);
    let after = world.account(0);
    assert_eq!((after.nonce, world.balances(0)), (before.nonce + 100, [1000, 0]));
    assert!(Arc::ptr_eq(&after.available, &before.available));
    assert!(Arc::ptr_eq(&after.pending, world.settings.zero()));
}

/// However long a batch is, the states of some hundred transactions are kept at a time.
#[test]
fn states_are_kept_until_they_are_hashed() {
    let world = World::funded(2, 1000);
    let count = 3 * MAX_UNHASHED_TRANSACTIONS;
    let items = (0..count as u64).map(|number| {
        let bytes = world.deposit_at(0, 1, 255, 1 + number).encode();
        Screened::new(&world.settings, &bytes, keccak256(&bytes))
    });
    let batch = Batch::new(&world.settings, items.collect());
    let storage = Remembered::new(&world.storage);
    let mut settled = Settled::new(&world.settings, &storage, *world.storage.head());
    let (mut known, verdicts) = (Known::default(), Verdicts::default());
    while settled.len() < count {
        let Ok(found) = ahead::look(&settled, &batch, &known, &verdicts);
        assert!(!found.outcomes.is_empty() && found.outcomes.len() <= 2 * MAX_UNHASHED_TRANSACTIONS);
        settled.take(&batch, found.outcomes, &mut known);
        assert!(settled.unhashed() < MAX_UNHASHED_TRANSACTIONS);
    }
    let made = settled.finish();
    assert_eq!((made.outcomes.iter().flatten().count(), made.accounts.len()), (count, 1));
}

/// A store in which every address has an account, made when it is read. It counts those that are kept.
struct Everybody<'a> {
    world: &'a World,
    read: Mutex<(usize, Vec<Weak<Account>>, usize)>,
}

impl Storage for Everybody<'_> {
    type Error = Infallible;

    fn is_registered(&self, _: &Address) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn account(&self, owner: &Address) -> Result<Option<Arc<Account>>, Infallible> {
        let like = self.world.account(0);
        let identity = Arc::new(Identity { owner: *owner, ..Identity::clone(&like.identity) });
        let account = Arc::new(Account { identity, ..Account::clone(&like) });
        let mut read = self.read.lock().unwrap();
        let (count, kept, most) = &mut *read;
        kept.retain(|account| account.strong_count() > 0);
        kept.push(Arc::downgrade(&account));
        *count += 1;
        *most = kept.len().max(*most);
        Ok(Some(account))
    }

    fn public_account(&self, address: &Address) -> Result<Option<PublicAccount>, Infallible> {
        self.world.storage.public_account(address)
    }

    fn node(&self, tree: Tree, place: Place, version: u64) -> Result<Option<B256>, Infallible> {
        self.world.storage.node(tree, place, version)
    }
}

/// What a batch is refused for, how many accounts are read for it, and how many of them are kept at a time.
fn naming_everybody(
    world: &World,
    transaction: impl Fn(Address) -> T,
) -> (HashSet<Option<Refusal>>, usize, usize) {
    let everybody = Everybody { world, read: Mutex::default() };
    let address = |number: usize| Address::left_padding_from(&number.to_be_bytes());
    let count = 3 * MAX_AHEAD_TRANSACTIONS;
    let batch: Vec<Vec<u8>> = (1..=count).map(|number| transaction(address(number)).encode()).collect();
    let Ok(executed) = execute(&world.settings, &everybody, &Double, *world.storage.head(), &batch);
    let (read, _, most) = everybody.read.into_inner().unwrap();
    (outcomes(&executed).into_iter().map(Result::err).collect(), read, most)
}

/// For the bytes of a withdrawal without its turn an account is read, which is many times as large: of all that a batch names
/// so, some are kept at a time.
#[test]
fn accounts_that_a_batch_only_names_are_not_kept() {
    let world = World::funded(1, 1000);
    let T::Withdraw(withdraw) = world.withdraw(0, world.address(0), 10) else { panic!("a withdrawal") };
    let early = |account| T::Withdraw(Box::new(Withdraw { account, nonce: 99, ..(*withdraw).clone() }));
    let (refused, read, most) = naming_everybody(&world, early);
    assert_eq!(refused, HashSet::from([Some(Refusal::NonceTooHigh)]));
    assert_eq!(read, 3 * MAX_AHEAD_TRANSACTIONS);
    assert!(most <= MAX_AHEAD_TRANSACTIONS, "{most} are kept");
}

/// Nor are accounts read for deposits that their payer's public account refuses: anybody can sign one.
#[test]
fn a_deposit_that_nobody_can_pay_reads_no_account() {
    let world = World::funded(1, 1000);
    for (amount, more, refusal) in [
        (255, 1, Refusal::NonceTooHigh),
        (MINIMUM_FEE - 1, 0, Refusal::AmountTooLow),
        (SUPPLY, 0, Refusal::InsufficientFunds),
    ] {
        let T::Deposit(deposit) = world.deposit(0, 0, amount) else { panic!("a deposit") };
        let to = |account| {
            let nonce = deposit.nonce + more;
            let mut transaction = T::Deposit(Deposit { account, nonce, ..deposit.clone() });
            transaction.sign(&domain(), &world.owners[0].signing);
            transaction
        };
        let (refused, read, _) = naming_everybody(&world, to);
        assert_eq!((refused, read), (HashSet::from([Some(refusal)]), 0));
    }
}

const OWNERS: usize = 4;

/// What somebody does to a batch. What is honest is made on top of all that is honest before it.
#[derive(Debug, Clone)]
enum Step {
    Pay {
        from: usize,
        to: usize,
    },
    Withdraw {
        from: usize,
        to: usize,
    },
    Deposit {
        from: usize,
        to: usize,
    },
    Refresh(usize),
    Rollover(usize),
    Register,
    /// An honest one, which others will not build on.
    Alternative(usize),
    /// A payment that others build on, and whose proof is bad.
    Hollow {
        from: usize,
        to: usize,
    },
    /// A rollover for another nonce.
    Early(usize, u64),
    /// Garbage for one nonce, so many times.
    Flood {
        owner: usize,
        ahead: u64,
        count: u64,
        place: prop::sample::Index,
    },
    /// Garbage for so many nonces.
    Row {
        owner: usize,
        count: u64,
        place: prop::sample::Index,
    },
    /// A bad copy of something.
    Copy {
        of: prop::sample::Index,
        place: prop::sample::Index,
    },
    /// Something once more.
    Again {
        of: prop::sample::Index,
        place: prop::sample::Index,
    },
    /// An honest withdrawal of so many eighths of what all accounts held at first, if the account has as much.
    Large {
        owner: usize,
        eighths: u64,
    },
    /// A withdrawal that nothing proves, of so many eighths of what all accounts held at first: in some places, with so
    /// much that does not decode behind the first of them that it is known there.
    Greedy {
        owner: usize,
        eighths: u64,
        idle: usize,
        places: Vec<prop::sample::Index>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (owner, index) = (0..OWNERS - 1, any::<prop::sample::Index>());
    let pair = (owner.clone(), 0..OWNERS).prop_filter("somebody else", |(from, to)| from != to);
    prop_oneof![
        8 => pair.clone().prop_map(|(from, to)| Step::Pay { from, to }),
        3 => (owner.clone(), owner.clone()).prop_map(|(from, to)| Step::Withdraw { from, to }),
        3 => (owner.clone(), 0..OWNERS).prop_map(|(from, to)| Step::Deposit { from, to }),
        1 => owner.clone().prop_map(Step::Refresh),
        4 => owner.clone().prop_map(Step::Rollover),
        1 => Just(Step::Register),
        2 => owner.clone().prop_map(Step::Alternative),
        1 => pair.prop_map(|(from, to)| Step::Hollow { from, to }),
        2 => (owner.clone(), 0u64..4).prop_map(|(owner, ahead)| Step::Early(owner, ahead)),
        2 => (owner.clone(), 0u64..4, 1u64..40, index.clone())
            .prop_map(|(owner, ahead, count, place)| Step::Flood { owner, ahead, count, place }),
        1 => (owner.clone(), 1u64..90, index.clone())
            .prop_map(|(owner, count, place)| Step::Row { owner, count, place }),
        3 => (index.clone(), index.clone()).prop_map(|(of, place)| Step::Copy { of, place }),
        2 => (index.clone(), index.clone()).prop_map(|(of, place)| Step::Again { of, place }),
        2 => (owner.clone(), 1u64..3).prop_map(|(owner, eighths)| Step::Large { owner, eighths }),
        2 => (owner, 3u64..9, 0usize..80, prop::collection::vec(index, 1..40))
            .prop_map(|(owner, eighths, idle, places)| Step::Greedy { owner, eighths, idle, places }),
    ]
}

/// The batch that these steps make.
fn mixed(world: &World, steps: &[Step]) -> Vec<Vec<u8>> {
    let mut ahead = World { storage: world.storage.clone(), ..World::new(OWNERS as u8) };
    let (mut batch, mut later): (Vec<Vec<u8>>, Vec<_>) = Default::default();
    let eighth = world.storage.head().confidential / 8;
    for (number, step) in steps.iter().enumerate() {
        let made = match *step {
            Step::Large { owner, eighths } => ahead.withdraw(owner, ahead.address(owner), eighths * eighth),
            Step::Greedy { owner, eighths, idle, ref places } => {
                let mut withdrawal = ahead.withdraw(owner, ahead.address(owner), 1);
                let T::Withdraw(withdraw) = &mut withdrawal else { panic!("a withdrawal") };
                withdraw.amount = eighths * eighth + number as u64;
                batch.push(withdrawal.encode());
                let behind = batch.len();
                batch.extend(vec![vec![0; 2]; idle]);
                later.extend(places.iter().map(|place| (behind, *place, withdrawal.encode())));
                continue;
            }
            Step::Pay { from, to } | Step::Hollow { from, to } => ahead.transfer(from, to, 10, MINIMUM_FEE),
            Step::Withdraw { from, to } => ahead.withdraw(from, ahead.address(to), 10),
            Step::Deposit { from, to } => ahead.deposit(from, to, 10),
            Step::Refresh(owner) => ahead.refresh(owner),
            Step::Rollover(owner) => ahead.rollover(owner),
            Step::Register => ahead.register(OWNERS - 1),
            Step::Alternative(owner) => {
                batch.push(ahead.withdraw(owner, ahead.address(owner), 20 + number as u64).encode());
                continue;
            }
            Step::Early(owner, more) => {
                batch.push(ahead.rollover_at(owner, ahead.account(owner).nonce + more).encode());
                continue;
            }
            Step::Flood { owner, ahead: more, count, place } => {
                let nonce = (world.account(owner).nonce + ahead.account(owner).nonce) / 2 + more;
                let place = place.index(batch.len() + 1);
                let flood = (0..count).map(|at| garbage(world, owner, nonce, 1000 * number as u64 + at));
                batch.splice(place..place, flood);
                continue;
            }
            Step::Row { owner, count, place } => {
                let nonce = ahead.account(owner).nonce;
                let place = place.index(batch.len() + 1);
                let row = (0..count).map(|at| garbage(world, owner, nonce + at, number as u64));
                batch.splice(place..place, row);
                continue;
            }
            Step::Copy { of, place } if !batch.is_empty() => {
                let copy = bad(&batch[of.index(batch.len())], number as u8);
                batch.insert(place.index(batch.len() + 1), copy);
                continue;
            }
            Step::Again { of, place } if !batch.is_empty() => {
                let copy = batch[of.index(batch.len())].clone();
                batch.insert(place.index(batch.len() + 1), copy);
                continue;
            }
            Step::Copy { .. } | Step::Again { .. } => continue,
        };
        ahead.submit(&made);
        let bytes = made.encode();
        batch.push(if matches!(step, Step::Hollow { .. }) { bad(&bytes, 9) } else { bytes });
    }
    // Somewhere behind the first of them.
    for (behind, place, copy) in later {
        let place = behind + place.index(batch.len() + 1 - behind);
        batch.insert(place, copy);
    }
    batch
}

/// One after the other, each a batch of its own, and attempts counted as the rule says.
fn one_by_one(world: &World, batch: &[Vec<u8>]) -> (Vec<Receipt>, MemoryStorage) {
    let mut alone = World { storage: world.storage.clone(), ..World::new(OWNERS as u8) };
    let mut attempts: [HashMap<Vec<u8>, usize>; 2] = Default::default();
    let mut receipts = Vec::new();
    for bytes in batch {
        let before = *alone.storage.head();
        let executed = alone.execute(std::slice::from_ref(bytes));
        let mut receipt = executed.receipts[0];
        let turn =
            T::decode(world.settings.parameters(), bytes).ok().and_then(|transaction| transaction.turn());
        if let (Some((account, nonce)), Ok(()) | Err(Refusal::InvalidProof)) = (turn, receipt.outcome) {
            let keys = [format!("{account}{nonce:?}").into_bytes(), account.to_vec()];
            let limits = [MAX_INVALID_PER_NONCE, MAX_INVALID_PER_ACCOUNT];
            let mut counters: Vec<&mut usize> =
                attempts.iter_mut().zip(keys).map(|(counts, key)| counts.entry(key).or_default()).collect();
            if counters.iter().zip(limits).any(|(count, limit)| **count >= limit) {
                let outcome = Err(Refusal::TooManyAttempts);
                receipts.push(Receipt {
                    outcome,
                    version: before.version,
                    root: before.state_root(),
                    ..receipt
                });
                continue;
            }
            if receipt.outcome.is_err() {
                counters.iter_mut().for_each(|count| **count += 1);
            }
        }
        alone.storage.commit(&executed);
        receipt.version = alone.storage.head().version;
        receipts.push(receipt);
    }
    (receipts, alone.storage)
}

/// Keeps what was verified: proof and statement, and whether it held.
#[derive(Default)]
struct Seen(Mutex<Vec<(B256, [u8; 32], bool)>>);

impl Proofs for Seen {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        let verdicts = Double.verify(checks);
        let seen = checks.iter().zip(&verdicts);
        self.0.lock().unwrap().extend(
            seen.map(|(check, holds)| (keccak256(check.proof.0), check.claim.statement().digest(), *holds)),
        );
        verdicts
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(21), ..Default::default()
    })]

    /// Whatever good and bad proofs, rollovers, payments and registrations a batch mixes, it does what one after the other
    /// does; and hardly a proof is verified twice.
    #[test]
    fn mixed_batches_do_what_one_after_the_other_does(steps in prop::collection::vec(step(), 10..120)) {
        let mut world = World::new(OWNERS as u8);
        for owner in 0..OWNERS - 1 {
            for made in [world.register(owner), world.deposit(owner, owner, 100_000)] {
                world.submit(&made);
            }
        }
        for owner in 0..OWNERS - 1 {
            // A registration is executed before this is made.
            let deposit = world.deposit(owner, owner, 100_000);
            world.apply(deposit);
            let rollover = world.rollover(owner);
            world.apply(rollover);
        }
        let batch = mixed(&world, &steps);
        let (want, after) = one_by_one(&world, &batch);
        let mut runs = Vec::new();
        for threads in [1, 3] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let seen = Seen::default();
            let Ok(executed) = pool.install(|| {
                execute(&world.settings, &world.storage, &seen, *world.storage.head(), &batch)
            });
            prop_assert_eq!(&executed.receipts, &want);
            prop_assert_eq!(&executed.head, after.head());
            runs.push(seen.0.into_inner().unwrap());
        }
        prop_assert_eq!(&runs[0], &runs[1], "what is verified does not depend on threads");
        let seen = &runs[0];
        let held = seen.iter().filter(|(_, _, holds)| *holds).count();
        let statements: HashSet<_> = seen.iter().collect();
        prop_assert_eq!(statements.len(), seen.len(), "nothing is asked twice");
        let transactions = batch.iter().map(keccak256).collect::<HashSet<_>>().len();
        prop_assert!(seen.len() <= transactions + held / 4, "{} for {}, {} held", seen.len(), transactions, held);
        world.storage = after;
        world.check_invariants();
    }
}

//! The fee ledger: roots against the definition, proofs, undo, conservation, every refusal.

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::ledger::{
    Account, AccountChange, FeeLedger, Held, HeldChange, LedgerDelta, LedgerFault,
};
use blindfold_protocol::merkle;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SEQUENCER: Address = Address::repeat_byte(0x5e);

fn payer(index: u8) -> Address {
    // Spread, so that insertions fall anywhere.
    Address::from_word(keccak256([index]))
}

/// The root by its definition.
fn slow_root(accounts: &BTreeMap<Address, Account>) -> B256 {
    let leaves: Vec<B256> = accounts
        .iter()
        .map(|(payer, account)| {
            let nonces: Vec<u8> = account
                .nonces
                .iter()
                .flat_map(|(n, e)| [n.to_be_bytes(), e.to_be_bytes()].concat())
                .collect();
            let (balance, withdrawn) = (account.balance.to_be_bytes(), account.withdrawn.to_be_bytes());
            merkle::leaf(&[payer.as_slice(), &balance, &withdrawn, keccak256(nonces).as_slice()].concat())
        })
        .collect();
    let count = (leaves.len() as u64).to_be_bytes();
    keccak256([&[2], count.as_slice(), merkle::root(&leaves).as_slice()].concat())
}

fn total(ledger: &FeeLedger) -> u128 {
    let accounts = ledger.accounts().values();
    let balances: u128 = accounts.map(|account| account.balance + account.withdrawn).sum();
    balances + ledger.held().values().flatten().map(|held| held.amount).sum::<u128>()
}

fn consistent(ledger: &FeeLedger) {
    assert_eq!(ledger.root(), slow_root(ledger.accounts()));
    assert!(ledger.accounts().values().all(|account| !account.is_empty()));
    let rebuilt = FeeLedger::from_parts(ledger.accounts().clone(), ledger.held().clone());
    assert_eq!(&rebuilt, ledger, "every index and level is what a fresh ledger has");
}

#[derive(Clone, Debug)]
enum Step {
    Deposit(u8, u64),
    Spend(u8, u64),
    Nonce(u8, u64, u64),
    Prune(u64),
    Hold(u8, u64, u64),
    Release(u64, bool),
    Withdraw(u8, u64),
    Settle(u64, u64, Vec<(u64, u32)>),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0u8..24;
    prop_oneof![
        3 => (who.clone(), 0u64..1_000).prop_map(|(p, a)| Step::Deposit(p, a)),
        2 => (who.clone(), 0u64..1_000).prop_map(|(p, a)| Step::Spend(p, a)),
        3 => (who.clone(), 0u64..50, 0u64..20).prop_map(|(p, n, e)| Step::Nonce(p, n, e)),
        1 => (0u64..20).prop_map(Step::Prune),
        1 => (who.clone(), 0u64..1_500).prop_map(|(p, a)| Step::Withdraw(p, a)),
        1 => (0u64..6, 0u64..3, vec((0u64..8, 0u32..30), 0..4)).prop_map(|(n, l, bad)| Step::Settle(n, l, bad)),
        2 => (who, 0u64..6, 0u64..100).prop_map(|(p, n, a)| Step::Hold(p, n, a)),
        1 => (0u64..6, any::<bool>()).prop_map(|(n, m)| Step::Release(n, m)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(5), ..Default::default() })]

    #[test]
    fn forth_and_back(batches in vec(vec(step(), 0..30), 1..12)) {
        let mut ledger = FeeLedger::default();
        let mut deposited = 0u128;
        let mut past = Vec::new();
        for batch in batches {
            let mut changes = ledger.changes();
            for (item, step) in (0u32..).zip(batch) {
                // Each refusal leaves the step as it was.
                let _ = match step {
                    Step::Deposit(p, amount) => {
                        deposited += u128::from(amount);
                        changes.credit(payer(p), amount.into())
                    }
                    Step::Spend(p, amount) => match changes.debit(payer(p), amount.into()) {
                        Ok(()) => changes.credit(SEQUENCER, amount.into()),
                        refused => refused,
                    },
                    Step::Nonce(p, nonce, expiry) => {
                        if !changes.nonce_used(&payer(p), nonce) {
                            changes.use_nonce(payer(p), nonce, expiry);
                        }
                        Ok(())
                    }
                    Step::Prune(number) => {
                        changes.prune(number);
                        Ok(())
                    }
                    Step::Hold(p, number, amount) => changes.hold(number, item, payer(p), amount.into()),
                    Step::Release(number, malformed) => {
                        let item = ledger.held().get(&number).and_then(|held| held.first()).map(|held| held.item);
                        let bad: Vec<u32> = item.into_iter().filter(|_| malformed).collect();
                        changes.release_held(number, &bad, SEQUENCER)
                    }
                    Step::Withdraw(p, amount) => changes.withdraw(payer(p), amount.into()).map(|_| ()),
                    Step::Settle(first, length, bad) => changes.settle(first, first + length, &bad, SEQUENCER),
                };
            }
            let delta = changes.finish();
            let before = ledger.clone();
            ledger.apply(&delta).unwrap();
            consistent(&ledger);
            prop_assert_eq!(total(&ledger), deposited);
            past.push((before, delta));
        }
        while let Some((before, delta)) = past.pop() {
            let after = ledger.clone();
            ledger.revert(&delta).unwrap();
            prop_assert_eq!(&ledger, &before);
            ledger.apply(&delta).unwrap();
            prop_assert_eq!(&ledger, &after);
            ledger.revert(&delta).unwrap();
        }
        prop_assert_eq!(ledger, FeeLedger::default());
    }

    #[test]
    fn proofs(count in 1u8..40, probe in 0u8..40) {
        let accounts = (0..count).map(|i| (payer(i), Account { balance: 1 + u128::from(i), ..Account::default() }));
        let ledger = FeeLedger::from_parts(accounts, []);
        let (root, who) = (ledger.root(), payer(probe));
        match ledger.prove(&who) {
            Some(proof) => {
                let account = ledger.account(&who).unwrap();
                prop_assert!(proof.verify(&root, &who, account));
                let richer = Account { balance: 1_000, ..account.clone() };
                prop_assert!(!proof.verify(&root, &who, &richer));
                let mut other = proof.clone();
                other.count += 1;
                prop_assert!(!other.verify(&root, &who, account), "the root binds the count");
                let mut outside = proof;
                outside.index = outside.count;
                prop_assert!(!outside.verify(&root, &who, account));
            }
            None => prop_assert!(probe >= count),
        }
    }
}

#[test]
fn pruning_follows_expiry_alone() {
    let nonces = BTreeMap::from([(1, 5), (2, 6), (3, 7)]);
    let accounts = [
        (payer(1), Account { nonces, ..Account::default() }),
        (payer(2), Account { balance: 9, withdrawn: 0, nonces: BTreeMap::from([(1, 5)]) }),
    ];
    let mut ledger = FeeLedger::from_parts(accounts, []);
    let prune = |ledger: &mut FeeLedger, number| {
        let mut changes = ledger.changes();
        changes.prune(number);
        let delta = changes.finish();
        ledger.apply(&delta).unwrap();
        delta.accounts.len()
    };
    assert_eq!(prune(&mut ledger, 5), 0, "an expiry equal to the number is alive");
    assert_eq!(prune(&mut ledger, 7), 2);
    assert_eq!(ledger.account(&payer(1)).unwrap().nonces, BTreeMap::from([(3, 7)]));
    assert_eq!(ledger.account(&payer(2)).unwrap().nonces, BTreeMap::new());
    assert_eq!(prune(&mut ledger, 8), 1);
    assert_eq!(ledger.account(&payer(1)), None, "nothing is left, so there is no leaf");
    consistent(&ledger);
}

#[test]
fn surcharges_return_or_are_lost() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, ..Account::default() })], []);
    let mut changes = ledger.changes();
    changes.hold(4, 0, payer(1), 30).unwrap();
    changes.hold(4, 2, payer(1), 30).unwrap();
    assert_eq!(
        changes.hold(4, 3, payer(1), 41),
        Err(LedgerFault::Insufficient { payer: payer(1), amount: 41 })
    );
    let delta = changes.finish();
    ledger.apply(&delta).unwrap();
    assert_eq!(ledger.held_of(&payer(1)), 60);
    assert_eq!(ledger.account(&payer(1)).unwrap().balance, 40);
    let before = ledger.clone();

    assert_eq!(ledger.release_held(5, &[], SEQUENCER), Err(LedgerFault::NothingHeld(5)));
    let unknown = LedgerFault::UnknownItem { number: 4, item: 1 };
    assert_eq!(ledger.release_held(4, &[1], SEQUENCER), Err(unknown));
    assert_eq!(ledger, before, "a refusal changes nothing");

    let released = ledger.release_held(4, &[2], SEQUENCER).unwrap();
    assert_eq!(ledger.account(&payer(1)).unwrap().balance, 70);
    assert_eq!(ledger.account(&SEQUENCER).unwrap().balance, 30);
    assert!(ledger.held().is_empty());
    assert_eq!(ledger.release_held(4, &[], SEQUENCER), Err(LedgerFault::NothingHeld(4)), "once only");
    ledger.revert(&released).unwrap();
    assert_eq!(ledger, before);
}

#[test]
fn withdrawals_take_what_is_there_and_keep_the_leaf() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, ..Account::default() })], []);
    let mut changes = ledger.changes();
    assert_eq!(changes.withdraw(payer(1), 30), Ok(30));
    assert_eq!(changes.withdraw(payer(1), 1_000), Ok(70));
    assert_eq!(changes.withdraw(payer(1), 1), Ok(0));
    assert_eq!(changes.withdraw(payer(2), 5), Ok(0));
    let delta = changes.finish();
    assert_eq!(delta.accounts.len(), 1, "who has nothing gets no leaf");
    ledger.apply(&delta).unwrap();
    let spent = Account { withdrawn: 100, ..Account::default() };
    assert_eq!(ledger.account(&payer(1)), Some(&spent));
    consistent(&ledger);
    let full = Account { balance: 1, withdrawn: u128::MAX, ..Account::default() };
    let ledger = FeeLedger::from_parts([(payer(3), full)], []);
    assert_eq!(
        ledger.changes().withdraw(payer(3), 1),
        Err(LedgerFault::Overflow { payer: payer(3), amount: 1 })
    );
}

#[test]
fn settling_a_run_ignores_what_is_not_held() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, ..Account::default() })], []);
    let mut changes = ledger.changes();
    for (number, item) in [(4, 0), (4, 2), (5, 1), (9, 0)] {
        changes.hold(number, item, payer(1), 10).unwrap();
    }
    let delta = changes.finish();
    ledger.apply(&delta).unwrap();
    let mut changes = ledger.changes();
    // A batch and an item that hold nothing, and a malformed item of a batch outside the run.
    changes.settle(3, 5, &[(3, 0), (4, 1), (4, 2), (9, 0)], SEQUENCER).unwrap();
    changes.settle(7, 3, &[], SEQUENCER).unwrap();
    changes.settle(3, 5, &[(5, 1)], SEQUENCER).unwrap();
    let delta = changes.finish();
    ledger.apply(&delta).unwrap();
    assert_eq!(ledger.account(&SEQUENCER).unwrap().balance, 10);
    assert_eq!(ledger.account(&payer(1)).unwrap().balance, 80);
    assert_eq!(ledger.held().keys().collect::<Vec<_>>(), [&9]);
}

#[test]
fn refusals() {
    let mut ledger =
        FeeLedger::from_parts([(payer(1), Account { balance: u128::MAX, ..Account::default() })], []);
    let mut changes = ledger.changes();
    assert_eq!(changes.credit(payer(1), 1), Err(LedgerFault::Overflow { payer: payer(1), amount: 1 }));
    assert_eq!(changes.debit(payer(2), 1), Err(LedgerFault::Insufficient { payer: payer(2), amount: 1 }));
    assert_eq!(changes.finish(), LedgerDelta::default(), "touched is not changed");

    let change = AccountChange { payer: payer(2), before: Some(Account::default()), after: None };
    let delta = LedgerDelta { accounts: vec![change], held: vec![] };
    assert_eq!(ledger.apply(&delta), Err(LedgerFault::Account(payer(2))));
    let held = vec![Held { item: 0, payer: payer(1), amount: 1 }];
    let delta =
        LedgerDelta { accounts: vec![], held: vec![HeldChange { number: 8, before: held, after: vec![] }] };
    assert_eq!(ledger.apply(&delta), Err(LedgerFault::Held(8)));
    assert!(ledger.revert(&delta).is_ok(), "backwards it fits");
    assert_eq!(ledger.held_of(&payer(1)), 1);
}

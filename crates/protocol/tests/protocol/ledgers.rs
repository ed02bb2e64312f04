//! The fee ledger: undo, conservation, every refusal. Roots and proofs are in `ledger_tree.rs`.

use crate::ledger_tree::{leaves_of, slow_root};
use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::ledger::{
    Account, AccountChange, FeeLedger, Held, HeldChange, LedgerBefore, LedgerDelta, LedgerDeltaError,
    LedgerEntry, LiveNonce, NonceChange,
};
use blindfold_protocol::limits::MAX_PRUNED_NONCES;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SEQUENCER: Address = Address::repeat_byte(0x5e);

fn payer(index: u8) -> Address {
    // Spread, so that insertions fall anywhere.
    Address::from_word(keccak256([index]))
}

fn total(ledger: &FeeLedger) -> u128 {
    let accounts = ledger.accounts().values();
    let balances: u128 = accounts.map(|account| account.balance + account.withdrawn).sum();
    balances + ledger.held().values().flatten().map(|held| held.amount).sum::<u128>()
}

fn consistent(ledger: &FeeLedger) {
    assert_eq!(ledger.root(), slow_root(&leaves_of(ledger), 0));
    assert!(ledger.accounts().values().all(|account| !account.is_empty()));
    let rebuilt = FeeLedger::from_parts(ledger.accounts().clone(), ledger.nonces(), ledger.held().clone());
    assert_eq!(&rebuilt, ledger, "every index and node is what a fresh ledger has");
    for payer in ledger.held().values().flatten().map(|held| held.payer) {
        let held = ledger.held().values().flatten().filter(|held| held.payer == payer);
        assert_eq!(ledger.held_of(&payer), held.map(|held| held.amount).sum());
    }
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
                        if !changes.nonce_used(&payer(p), nonce, 7) {
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
        for (first, (target, _)) in past.iter().enumerate() {
            let before = before(&past[first..]);
            let mut back = ledger.clone();
            prop_assert!(!back.go_back(before.clone(), B256::repeat_byte(1)));
            prop_assert_eq!(&back, &ledger, "no way back to another root");
            prop_assert!(back.go_back(before, target.root()));
            prop_assert_eq!(&back, target);
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
}

/// What all these steps changed, as it was before the first of them.
fn before(steps: &[(FeeLedger, LedgerDelta)]) -> LedgerBefore {
    let (mut accounts, mut nonces, mut held) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (_, delta) in steps {
        for AccountChange { payer, before, .. } in &delta.accounts {
            accounts.entry(*payer).or_insert(*before);
        }
        for NonceChange { payer, nonce, before, .. } in &delta.nonces {
            nonces.entry((*payer, *nonce)).or_insert(*before);
        }
        for HeldChange { number, before, .. } in &delta.held {
            held.entry(*number).or_insert_with(|| before.clone());
        }
    }
    let accounts = accounts.into_iter().map(|(payer, account)| LedgerEntry::Account { payer, account });
    let nonces =
        nonces.into_iter().map(|((payer, nonce), expiry)| LedgerEntry::Nonce { payer, nonce, expiry });
    LedgerBefore { entries: accounts.chain(nonces).collect(), held: held.into_iter().collect() }
}

fn live(payer: Address, nonce: u64, expiry: u64) -> LiveNonce {
    LiveNonce { payer, nonce, expiry }
}

fn prune(ledger: &mut FeeLedger, number: u64) -> LedgerDelta {
    let mut changes = ledger.changes();
    changes.prune(number);
    let delta = changes.finish();
    ledger.apply(&delta).unwrap();
    delta
}

#[test]
fn pruning_follows_expiry_alone() {
    let nonces = [live(payer(1), 1, 5), live(payer(1), 2, 6), live(payer(1), 3, 7), live(payer(2), 1, 5)];
    let rich = Account { balance: 9, withdrawn: 0 };
    let mut ledger = FeeLedger::from_parts([(payer(2), rich)], nonces, []);
    assert_eq!(prune(&mut ledger, 5), LedgerDelta::default(), "an expiry equal to the number is alive");
    assert_eq!(prune(&mut ledger, 7).nonces.len(), 3);
    assert_eq!(ledger.nonces().collect::<Vec<_>>(), [nonces[2]]);
    assert_eq!((ledger.live_nonces(&payer(1)), ledger.live_nonces(&payer(2))), (1, 0));
    assert_eq!(prune(&mut ledger, 8).nonces.len(), 1);
    assert_eq!(ledger, FeeLedger::from_parts([(payer(2), rich)], [], []));
    consistent(&ledger);
}

/// Whoever lets very many nonces expire at once does not make one batch pay for it (F-10).
#[test]
fn a_batch_forgets_a_bounded_number_of_nonces() {
    let many = MAX_PRUNED_NONCES as u64 + 10;
    let nonces = (0..many).map(|nonce| live(payer(1), nonce, 5 + nonce % 2));
    let mut ledger = FeeLedger::from_parts([], nonces, []);
    let root = ledger.root();
    let first = prune(&mut ledger, 7);
    assert_eq!(first.nonces.len(), MAX_PRUNED_NONCES);
    // The least expiry first: all of 5, the lower ones of 6.
    let left: Vec<u64> = ledger.nonces().map(|left| left.nonce).collect();
    assert_eq!(left, (0..10).rev().map(|place| many - 1 - 2 * place).collect::<Vec<_>>());
    // One that waits to be forgotten is free, and can be used anew.
    let mut changes = ledger.changes();
    assert!(!changes.nonce_used(&payer(1), left[0], 7));
    assert!(changes.nonce_used(&payer(1), left[0], 6));
    changes.use_nonce(payer(1), left[0], 9);
    assert!(changes.nonce_used(&payer(1), left[0], 9));
    let again = changes.finish();
    let change = NonceChange { payer: payer(1), nonce: left[0], before: Some(6), after: Some(9) };
    assert_eq!(again.nonces, [change]);
    ledger.apply(&again).unwrap();
    assert_eq!(prune(&mut ledger, 7).nonces.len(), 9);
    assert_eq!(ledger.nonces().collect::<Vec<_>>(), [live(payer(1), left[0], 9)]);
    let delta = prune(&mut ledger, 10);
    assert_eq!(ledger, FeeLedger::default());
    ledger.revert(&delta).unwrap();
    assert_eq!(ledger.revert(&first), Ok(()), "they are other nonces");
    assert_ne!(ledger.root(), root);
}

/// Rule F-8.
#[test]
fn surcharges_return_or_are_lost() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, withdrawn: 0 })], [], []);
    let mut changes = ledger.changes();
    changes.hold(4, 0, payer(1), 30).unwrap();
    changes.hold(4, 2, payer(1), 30).unwrap();
    assert_eq!(
        changes.hold(4, 3, payer(1), 41),
        Err(LedgerDeltaError::Insufficient { payer: payer(1), amount: 41 })
    );
    let delta = changes.finish();
    ledger.apply(&delta).unwrap();
    assert_eq!(ledger.held_of(&payer(1)), 60);
    assert_eq!(ledger.account(&payer(1)).unwrap().balance, 40);
    let before = ledger.clone();

    assert_eq!(ledger.release_held(5, &[], SEQUENCER), Err(LedgerDeltaError::NothingHeld(5)));
    let unknown = LedgerDeltaError::UnknownItem { number: 4, item: 1 };
    assert_eq!(ledger.release_held(4, &[1], SEQUENCER), Err(unknown));
    assert_eq!(ledger, before, "a refusal changes nothing");

    let released = ledger.release_held(4, &[2], SEQUENCER).unwrap();
    assert_eq!(ledger.account(&payer(1)).unwrap().balance, 70);
    assert_eq!(ledger.account(&SEQUENCER).unwrap().balance, 30);
    assert!(ledger.held().is_empty());
    assert_eq!(ledger.release_held(4, &[], SEQUENCER), Err(LedgerDeltaError::NothingHeld(4)), "once only");
    ledger.revert(&released).unwrap();
    assert_eq!(ledger, before);
}

/// Rule F-11.
#[test]
fn withdrawals_take_what_is_there_and_keep_the_leaf() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, withdrawn: 0 })], [], []);
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
    let full = Account { balance: 1, withdrawn: u128::MAX };
    let ledger = FeeLedger::from_parts([(payer(3), full)], [], []);
    assert_eq!(
        ledger.changes().withdraw(payer(3), 1),
        Err(LedgerDeltaError::Overflow { payer: payer(3), amount: 1 })
    );
}

/// Rule F-9.
#[test]
fn settling_a_run_ignores_what_is_not_held() {
    let mut ledger = FeeLedger::from_parts([(payer(1), Account { balance: 100, withdrawn: 0 })], [], []);
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
        FeeLedger::from_parts([(payer(1), Account { balance: u128::MAX, withdrawn: 0 })], [], []);
    let mut changes = ledger.changes();
    assert_eq!(changes.credit(payer(1), 1), Err(LedgerDeltaError::Overflow { payer: payer(1), amount: 1 }));
    assert_eq!(
        changes.debit(payer(2), 1),
        Err(LedgerDeltaError::Insufficient { payer: payer(2), amount: 1 })
    );
    assert_eq!(changes.finish(), LedgerDelta::default(), "touched is not changed");

    let change = AccountChange { payer: payer(2), before: Some(Account::default()), after: None };
    let delta = LedgerDelta { accounts: vec![change], ..LedgerDelta::default() };
    assert_eq!(ledger.apply(&delta), Err(LedgerDeltaError::Account(payer(2))));
    let change = NonceChange { payer: payer(2), nonce: 4, before: Some(1), after: None };
    let delta = LedgerDelta { nonces: vec![change], ..LedgerDelta::default() };
    assert_eq!(ledger.apply(&delta), Err(LedgerDeltaError::Nonce { payer: payer(2), nonce: 4 }));
    let held = vec![Held { item: 0, payer: payer(1), amount: 1 }];
    let change = HeldChange { number: 8, before: held, after: vec![] };
    let delta = LedgerDelta { held: vec![change], ..LedgerDelta::default() };
    assert_eq!(ledger.apply(&delta), Err(LedgerDeltaError::Held(8)));
    assert!(ledger.revert(&delta).is_ok(), "backwards it fits");
    assert_eq!(ledger.held_of(&payer(1)), 1);
}

//! The fee ledger's tree: the root by its definition, whatever the history, and everything that must not pass for an
//! account.

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::ledger::{Account, FeeLedger, LedgerEntry, LedgerProof, LedgerTree, LiveNonce};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Keys with the bytes that their leaves hash.
pub type Leaves = BTreeMap<B256, Vec<u8>>;

pub fn account_key(payer: &Address) -> B256 {
    keccak256([&[0], payer.as_slice()].concat())
}

pub fn nonce_key(payer: &Address, nonce: u64) -> B256 {
    keccak256([&[1], payer.as_slice(), &nonce.to_be_bytes()].concat())
}

/// The leaves of a ledger, as docs/protocol.md says.
pub fn leaves_of(ledger: &FeeLedger) -> Leaves {
    let accounts = ledger.accounts().iter().map(|(payer, account)| {
        let key = account_key(payer);
        let value = [account.balance.to_be_bytes(), account.withdrawn.to_be_bytes()].concat();
        (key, [&[0], key.as_slice(), &value].concat())
    });
    let nonces = ledger.nonces().map(|LiveNonce { payer, nonce, expiry }| {
        let key = nonce_key(&payer, nonce);
        (key, [&[0], key.as_slice(), &expiry.to_be_bytes()].concat())
    });
    accounts.chain(nonces).collect()
}

fn bit(key: &B256, depth: usize) -> bool {
    key[depth / 8] & (0x80 >> (depth % 8)) != 0
}

/// The root by its definition.
pub fn slow_root(leaves: &Leaves, depth: usize) -> B256 {
    match leaves.len() {
        0 => B256::ZERO,
        1 => leaves.values().map(keccak256).next().unwrap(),
        _ => {
            let (right, left): (Leaves, Leaves) =
                leaves.clone().into_iter().partition(|(key, _)| bit(key, depth));
            let (left, right) = (slow_root(&left, depth + 1), slow_root(&right, depth + 1));
            keccak256([&[1], left.as_slice(), right.as_slice()].concat())
        }
    }
}

/// Siblings from the root down to any key's leaf, by the definition.
fn slow_siblings(leaves: &Leaves, key: &B256) -> Vec<B256> {
    let (mut leaves, mut siblings) = (leaves.clone(), Vec::new());
    while leaves.len() > 1 {
        let depth = siblings.len();
        let (same, other): (Leaves, Leaves) =
            leaves.into_iter().partition(|(found, _)| bit(found, depth) == bit(key, depth));
        siblings.push(slow_root(&other, depth + 1));
        leaves = same;
    }
    siblings
}

/// Whoever has spent all and whoever never had anything look the same.
#[test]
fn an_account_that_has_nothing_has_no_leaf() {
    let payer = Address::repeat_byte(1);
    let mut ledger = FeeLedger::default();
    for (credit, debit) in [(5, 5), (0, 0)] {
        let mut changes = ledger.changes();
        changes.credit(payer, credit).unwrap();
        let delta = changes.finish();
        ledger.apply(&delta).unwrap();
        assert_eq!(ledger.root() == B256::ZERO, credit == 0);
        let mut changes = ledger.changes();
        changes.debit(payer, debit).unwrap();
        let delta = changes.finish();
        ledger.apply(&delta).unwrap();
        assert_eq!((ledger.root(), ledger.accounts().len()), (B256::ZERO, 0));
    }
    let nothing = LedgerEntry::Account { payer, account: Some(Account::default()) };
    assert_eq!(LedgerTree::default().with([nothing]).root(), B256::ZERO);
}

/// Payers whose accounts share the first `bits` bits of their keys with that of the first.
fn close_payers(bits: u32) -> [Address; 2] {
    let payer = |index: u64| Address::left_padding_from(&index.to_be_bytes());
    let first = account_key(&payer(1));
    let close = (2u64..)
        .map(payer)
        .find(|other| {
            let both = u64::from_be_bytes(first[..8].try_into().unwrap())
                ^ u64::from_be_bytes(account_key(other)[..8].try_into().unwrap());
            both.leading_zeros() >= bits
        })
        .unwrap();
    [payer(1), close]
}

fn account(balance: u128, withdrawn: u128) -> Account {
    Account { balance, withdrawn }
}

fn entry() -> impl Strategy<Value = LedgerEntry> {
    let payer = (0u8..12).prop_map(Address::repeat_byte);
    prop_oneof![
        (payer.clone(), prop::option::of((0u128..3, 0u128..3))).prop_map(|(payer, held)| {
            let account = held.map(|(balance, withdrawn)| account(balance, withdrawn));
            LedgerEntry::Account { payer, account }
        }),
        (payer, 0u64..6, prop::option::of(0u64..4)).prop_map(|(payer, nonce, expiry)| LedgerEntry::Nonce {
            payer,
            nonce,
            expiry
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(7), ..Default::default() })]

    /// Whatever came and went in between, and in whatever portions: entries alone make the root.
    #[test]
    fn the_root_does_not_know_its_history(steps in vec(vec(entry(), 0..12), 0..12)) {
        let mut tree = LedgerTree::default();
        let mut last = BTreeMap::new();
        for step in steps {
            let earlier = (tree.clone(), tree.root());
            tree = tree.with(step.iter().copied());
            prop_assert_eq!(earlier.0.root(), earlier.1, "a tree never changes");
            last.extend(step.into_iter().map(|entry| (entry.key(), entry)));
            let at_once = LedgerTree::default().with(last.values().copied());
            prop_assert_eq!(&tree, &at_once);
            let one_by_one = last.values().rev().fold(LedgerTree::default(), |tree, entry| tree.with([*entry]));
            prop_assert_eq!(&tree, &one_by_one);
            let accounts = last.values().filter_map(|entry| match entry {
                LedgerEntry::Account { payer, account } => account.map(|account| (*payer, account)),
                LedgerEntry::Nonce { .. } => None,
            });
            let nonces = last.values().filter_map(|entry| match *entry {
                LedgerEntry::Nonce { payer, nonce, expiry } => expiry.map(|expiry| LiveNonce { payer, nonce, expiry }),
                LedgerEntry::Account { .. } => None,
            });
            let ledger = FeeLedger::from_parts(accounts, nonces, []);
            prop_assert_eq!(ledger.tree(), &tree);
            prop_assert_eq!(tree.root(), slow_root(&leaves_of(&ledger), 0));
        }
        let gone = last.into_values().map(|entry| match entry {
            LedgerEntry::Account { payer, .. } => LedgerEntry::Account { payer, account: None },
            LedgerEntry::Nonce { payer, nonce, .. } => LedgerEntry::Nonce { payer, nonce, expiry: None },
        });
        prop_assert_eq!(tree.with(gone), LedgerTree::default());
    }

    /// An account is proved as it is, and by its own path alone (F-6).
    #[test]
    fn proofs_hold_for_their_account_alone(
        held in btree_map(0u8..40, (0u128..4, 0u128..4), 1..40),
        nonces in vec((0u8..40, 0u64..9, 0u64..9), 0..60),
        seed: u64,
    ) {
        let payer = |index: u8| Address::from_word(keccak256([index]));
        let accounts = held.iter().map(|(index, (balance, withdrawn))| (payer(*index), account(*balance, *withdrawn)));
        let nonces = nonces.into_iter().map(|(index, nonce, expiry)| LiveNonce { payer: payer(index), nonce, expiry });
        let ledger = FeeLedger::from_parts(accounts, nonces, []);
        let (root, leaves) = (ledger.root(), leaves_of(&ledger));
        for who in (0..40).map(payer) {
            let Some(of) = ledger.account(&who) else {
                prop_assert_eq!(ledger.prove(&who), None);
                continue;
            };
            let proof = ledger.prove(&who).unwrap();
            prop_assert_eq!(&proof.siblings, &slow_siblings(&leaves, &account_key(&who)));
            prop_assert!(proof.verify(&root, &who, of));
            for wrong in [account(of.balance + 1, of.withdrawn), account(of.withdrawn, of.balance), account(0, 0)] {
                prop_assert!(wrong == *of || !proof.verify(&root, &who, &wrong));
            }
            // Another's path, and this one damaged in every way.
            for other in (0..40).map(payer).filter(|other| *other != who) {
                prop_assert!(!proof.verify(&root, &other, of));
            }
            for damaged in damaged(&proof.siblings, seed) {
                let proof = LedgerProof { siblings: damaged };
                prop_assert!(!proof.verify(&root, &who, of));
            }
        }
    }
}

/// Paths that are not this one: cut, lengthened and reordered at every place, with a bit flipped, and far too long.
fn damaged(path: &[B256], seed: u64) -> Vec<Vec<B256>> {
    let junk = keccak256(seed.to_be_bytes());
    let mut found = vec![[path, &vec![B256::ZERO; 300]].concat(), vec![junk; 257], vec![B256::ZERO; 256]];
    for at in 0..=path.len() {
        for extra in [B256::ZERO, junk] {
            let mut longer = path.to_vec();
            longer.insert(at, extra);
            found.push(longer);
        }
        let Some(sibling) = path.get(at) else { continue };
        found.push(path[..at].to_vec());
        found.push(path[at + 1..].to_vec());
        found.push([&path[..at], &path[at + 1..]].concat());
        let mut flipped = path.to_vec();
        flipped[at][seed as usize % 32] ^= 1 << (seed >> 8 & 7);
        found.push(flipped);
        for with in at + 1..path.len() {
            let mut swapped = path.to_vec();
            swapped.swap(at, with);
            found.push(swapped);
        }
        let mut doubled = path.to_vec();
        doubled.insert(at, *sibling);
        found.push(doubled);
    }
    found.push(path.iter().rev().copied().collect());
    found.retain(|damaged| damaged != path);
    found
}

/// Rule F-5.
#[test]
fn small_ledgers_have_the_roots_of_the_definition() {
    assert_eq!(FeeLedger::default().root(), B256::ZERO);
    let payer = Address::repeat_byte(7);
    let one = FeeLedger::from_parts([(payer, account(5, 6))], [], []);
    let leaf = [&[0], account_key(&payer).as_slice(), &5u128.to_be_bytes(), &6u128.to_be_bytes()].concat();
    assert_eq!((one.root(), one.prove(&payer).unwrap().siblings), (keccak256(leaf), vec![]));
    // A payer without an account can have a live nonce, which proves nothing.
    let live = LiveNonce { payer, nonce: 8, expiry: 9 };
    let alone = FeeLedger::from_parts([], [live], []);
    let leaf = [&[0], nonce_key(&payer, 8).as_slice(), &9u64.to_be_bytes()].concat();
    assert_eq!((alone.root(), alone.prove(&payer)), (keccak256(leaf), None));
    // Last named counts.
    let twice = FeeLedger::from_parts(
        [(payer, account(1, 1)), (payer, account(5, 6))],
        [LiveNonce { expiry: 3, ..live }, live],
        [],
    );
    assert_eq!(twice, FeeLedger::from_parts([(payer, account(5, 6))], [live], []));
    assert_eq!(twice.root(), slow_root(&leaves_of(&twice), 0));
}

/// Two accounts whose keys share 16 bits: their paths are long, with empty siblings, and each proves its own alone.
#[test]
fn accounts_with_a_long_common_prefix_are_told_apart() {
    let [one, other] = close_payers(16);
    let ledger = FeeLedger::from_parts([(one, account(10, 1)), (other, account(20, 2))], [], []);
    let root = ledger.root();
    assert_eq!(root, slow_root(&leaves_of(&ledger), 0));
    let proof = |payer| ledger.prove(payer).unwrap();
    for (payer, own) in [(&one, account(10, 1)), (&other, account(20, 2))] {
        let path = proof(payer).siblings;
        assert!(path.len() > 16 && path[..16].iter().all(B256::is_zero), "{path:?}");
        assert!(proof(payer).verify(&root, payer, &own));
        for damaged in damaged(&path, 3) {
            assert!(!LedgerProof { siblings: damaged }.verify(&root, payer, &own));
        }
    }
    assert!(!proof(&one).verify(&root, &other, &account(20, 2)));
    assert!(!proof(&other).verify(&root, &one, &account(20, 2)));
    assert!(!proof(&one).verify(&root, &one, &account(20, 2)));
}

/// What stands in the tree beside accounts is offered in their place, each on its right path (F-7).
#[test]
fn nothing_else_in_the_tree_passes_for_an_account() {
    let payer = |index: u8| Address::from_word(keccak256([index]));
    let live = |index| LiveNonce { payer: payer(index), nonce: u64::from(index), expiry: 1 << 60 };
    let accounts = (0..30).map(|index| (payer(index), account(7, u128::from(index))));
    let ledger = FeeLedger::from_parts(accounts, (0..60).map(live), []);
    let (root, leaves) = (ledger.root(), leaves_of(&ledger));
    // Every nonce's path, and every inner node on every path, for payers with and without an account.
    for index in 0..60 {
        let key = nonce_key(&payer(index), u64::from(index));
        let path = slow_siblings(&leaves, &key);
        let mut numbers = vec![0, 1, 7, 1 << 60, u128::from(index), u128::MAX, (1 << 60) << 64];
        // The bytes of a node, read as an account's value.
        numbers.extend(path.iter().map(|node| u128::from_be_bytes(node[..16].try_into().unwrap())));
        for claimed in [0, index, 59] {
            let own = ledger.account(&payer(claimed)).copied();
            for (balance, withdrawn) in numbers.iter().zip(numbers.iter().rev()) {
                let wrong = account(*balance, *withdrawn);
                for length in 0..=path.len() {
                    let proof = LedgerProof { siblings: path[..length].to_vec() };
                    assert!(Some(wrong) == own || !proof.verify(&root, &payer(claimed), &wrong));
                }
            }
        }
    }
}

//! Leaves, records and old versions.

use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::DecodeError;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};

use super::world::{MINIMUM_FEE, World, domain};
use crate::state::{Account, AccountError, Head, Settings, SettingsError, Storage, Tree};
use crate::transaction::codec::element_bytes;

#[test]
fn leaves_and_roots_are_those_of_the_specification() {
    let mut world = World::funded(2, 1000);
    let transfer = world.transfer(0, 1, 300, MINIMUM_FEE);
    world.apply(transfer);
    let account = world.account(1);
    let packed = |record: &[u8]| keccak256(&record[..record.len() - 2]);
    let [available, pending] = [&account.available, &account.pending].map(|sum| sum.ciphertext());
    let data = [
        &[0][..],
        account.identity.owner.as_slice(),
        &account.nonce.to_be_bytes(),
        &*keccak256(world.owners[1].secret.public_key().encode()),
        &element_bytes(&account.identity.secret_commitment),
        &available.additions().to_be_bytes(),
        &pending.additions().to_be_bytes(),
        &*packed(&available.encode()),
        &*packed(&pending.encode()),
    ];
    assert_eq!(account.leaf(), keccak256(data.concat()));
    let public = world.storage.public_account(&world.operator).unwrap().unwrap();
    let data = [&[3][..], world.operator.as_slice(), &MINIMUM_FEE.to_be_bytes(), &[0; 8]];
    assert_eq!(public.leaf(&world.operator), keccak256(data.concat()));
    let head = *world.storage.head();
    let data = [&[2][..], &[0, 0, 0, 2], &*head.accounts_root, &*head.public_root];
    assert_eq!(head.state_root(), keccak256(data.concat()));
}

#[test]
fn every_version_of_a_batch_can_be_proved() {
    let mut world = World::funded(3, 1000);
    let (mut versions, mut batch) = (Vec::<(Head, Vec<B256>)>::new(), Vec::new());
    let start = world.storage.clone();
    for amount in 1..6 {
        let transfer = world.transfer(0, 1, amount, MINIMUM_FEE);
        batch.push(transfer.encode());
        world.apply(transfer);
        let leaves = (0..3).map(|owner| world.account(owner).leaf()).collect();
        versions.push((*world.storage.head(), leaves));
    }
    world.storage = start;
    let executed = world.execute(&batch);
    world.storage.commit(&executed);
    for (receipt, (head, leaves)) in executed.receipts.iter().zip(&versions) {
        assert_eq!((receipt.version, receipt.root), (head.version, head.state_root()));
        for (index, leaf) in (0..).zip(leaves) {
            let proof = world.storage.prove(Tree::Accounts, head.version, head.accounts, index);
            assert_eq!(proof.root(index, leaf), head.accounts_root);
        }
    }
}

#[test]
fn a_record_gives_the_account_back_and_nothing_else_does() {
    let mut world = World::funded(2, 1000);
    let transfer = world.transfer(0, 1, 300, MINIMUM_FEE);
    world.apply(transfer);
    let account = world.account(1);
    let record = account.encode(&world.settings);
    let read = Account::decode(&world.settings, &record).unwrap();
    assert_eq!((&read, read.leaf()), (&*account, account.leaf()));
    // What is nothing takes no room.
    let sender = Account::decode(&world.settings, &world.account(0).encode(&world.settings)).unwrap();
    assert_eq!(&sender, &*world.account(0));
    assert!(Arc::ptr_eq(&sender.pending, world.settings.zero()));
    assert!(!Arc::ptr_eq(&sender.available, world.settings.zero()));
    for cut in 0..record.len() {
        assert!(matches!(
            Account::decode(&world.settings, &record[..cut]),
            Err(AccountError::Structure(DecodeError::Short { .. })
                | AccountError::Field(crate::transaction::InvalidTransaction::Structure(
                    DecodeError::Short { .. }
                )))
        ));
    }
    let longer = [record.as_slice(), &[0]].concat();
    let trailing = AccountError::Structure(DecodeError::Trailing(1));
    assert_eq!(Account::decode(&world.settings, &longer), Err(trailing));
    let mut full = record;
    let end = full.len();
    // A counter above the limit.
    full[end - 2..].fill(0xff);
    assert!(matches!(
        Account::decode(&world.settings, &full),
        Err(AccountError::Ciphertext { field: "pending", .. })
    ));
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let world = World::new(1);
    let operator = Address::repeat_byte(1);
    let settings = |public: &PublicPolynomial, auditor: &PublicPolynomial, seed| {
        let auditor = PublicPolynomial::insecure(auditor.parameters(), auditor.seed());
        let key = SecretKey::derive(&auditor, &[seed; 32]).public_key();
        Settings::new(domain(), public, &key, operator, 1).map(|_| ())
    };
    let balance = PublicPolynomial::new(&Parameters::balance().unwrap(), &[1; 32]).unwrap();
    let compute = PublicPolynomial::new(&Parameters::compute().unwrap(), &[1; 32]).unwrap();
    assert_eq!(settings(&balance, &balance, 1), Ok(()));
    assert_eq!(settings(&balance, &world.public, 1), Err(SettingsError::Auditor));
    assert_eq!(settings(&compute, &compute, 1), Err(SettingsError::Parameters));
    // The key of s = 0: it is its own error, and decrypts for everybody.
    let settings = |error: i8| {
        let error = vec![error; balance.parameters().degree()];
        let secret = vec![0; error.len()];
        let key = SecretKey::from_coefficients(&balance, secret, error).unwrap().public_key();
        Settings::new(domain(), &balance, &key, operator, 1).map(|_| ())
    };
    for error in [0, 1, -1, 16, -16] {
        assert_eq!(settings(error), Err(SettingsError::AuditorHidesNothing), "{error}");
    }
}

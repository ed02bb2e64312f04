//! The confidential wallet against a coprocessor that may show anything.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use blindfold_client::confidential::provers::{self, KeysError, Pinned, Progress, ProvingError, ProvingKeys};
use blindfold_client::confidential::{AccountClaimFault, Auditor, ConfidentialError, ConfidentialWallet};
use blindfold_confidential::Ring;
use blindfold_groth16::{KeyError, ProverError};
use blindfold_protocol::SigningKey;
use blindfold_rpc::confidential::ConfidentialAccount;

use crate::common::key;
use crate::coprocessor::{ALLOCATION, AUDITOR_SEED, Coprocessor, MINIMUM_FEE};

fn alice() -> SigningKey {
    key(1)
}

fn bob() -> SigningKey {
    key(2)
}

/// Keys for what must fail before any is read.
fn no_keys() -> ProvingKeys {
    ProvingKeys::new("no folder".into(), Pinned::new())
}

fn quiet() -> Progress {
    Box::new(|_| ())
}

/// Alice and Bob with accounts, and 500 on their way into Alice's.
async fn funded() -> (Coprocessor, ConfidentialWallet) {
    let coprocessor = Coprocessor::start().await;
    coprocessor.register(&alice(), &alice());
    coprocessor.register(&bob(), &bob());
    let wallet = coprocessor.wallet(alice());
    coprocessor.apply(&wallet.deposit(wallet.address(), 500).await.unwrap().bytes);
    (coprocessor, wallet)
}

#[tokio::test]
async fn the_key_alone_recovers_an_account() {
    let (coprocessor, wallet) = funded().await;
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes);
    coprocessor.pay(&alice(), &bob(), 120);

    let recovered = coprocessor.wallet(alice());
    let balances = recovered.balances().await.unwrap();
    assert_eq!(balances, wallet.balances().await.unwrap());
    assert_eq!((balances.available, balances.pending), (500 - 120 - MINIMUM_FEE, 0));
    assert_eq!((balances.public, balances.nonce), (ALLOCATION - 500, 2));
    assert_eq!((balances.available_terms, balances.pending_terms, balances.advice), (3, 0, None));
    let history = recovered.history().await.unwrap();
    let told: Vec<_> = history.iter().map(|entry| (entry.kind, entry.change, entry.with)).collect();
    let to_bob = -120 - i128::from(MINIMUM_FEE);
    let want = [
        ("register", 0, None),
        ("deposit", 500, None),
        ("rollover", 0, None),
        ("transfer", to_bob, Some(bob().address())),
    ];
    assert_eq!(told, want);

    let of_bob = coprocessor.wallet(bob());
    assert_eq!(of_bob.balances().await.unwrap().pending, 120);
    let last = of_bob.history().await.unwrap().pop().unwrap();
    assert_eq!((last.change, last.with), (120, Some(alice().address())));
}

#[tokio::test]
async fn an_account_must_stand_under_the_root_that_is_shown_with_it() {
    let (coprocessor, wallet) = funded().await;
    let honest = wallet.balances().await.unwrap();
    assert_eq!(honest.pending, 500);
    let fault = async |alter: fn(&mut ConfidentialAccount)| {
        coprocessor.show(alter);
        match wallet.balances().await {
            Err(ConfidentialError::Account(fault)) => fault,
            other => panic!("{other:?}"),
        }
    };
    let elsewhere: [fn(&mut ConfidentialAccount); 7] = [
        |account| account.nonce += 1,
        |account| account.pending.counter += 1,
        |account| std::mem::swap(&mut account.available, &mut account.pending),
        |account| account.siblings[3] = B256::repeat_byte(3),
        |account| account.state_root = B256::repeat_byte(4),
        |account| account.version += 1,
        |account| account.index ^= 1,
    ];
    for (place, alter) in elsewhere.into_iter().enumerate() {
        // A version is not in the state root: it names the root, which is what is compared.
        if place == 5 {
            coprocessor.show(alter);
            assert_eq!(wallet.balances().await.unwrap(), honest);
            continue;
        }
        assert!(matches!(fault(alter).await, AccountClaimFault::WrongRoot), "{place}");
    }
    assert!(matches!(
        fault(|account| account.siblings.truncate(31)).await,
        AccountClaimFault::ProofLength(31)
    ));
    let undecodable: [fn(&mut ConfidentialAccount); 3] = [
        |account| account.pending.counter = 1 << 16,
        |account| account.public_key = Bytes::from_static(&[0; 7]),
        |account| account.available.c1 = Bytes::from(vec![0xff; account.available.c1.len()]),
    ];
    for alter in undecodable {
        assert!(matches!(fault(alter).await, AccountClaimFault::Undecodable(_)));
    }
    // Whatever is made would be made for what is shown.
    coprocessor.show(|account| account.nonce += 1);
    assert!(matches!(wallet.rollover().await, Err(ConfidentialError::Account(_))));
}

#[tokio::test]
async fn an_account_of_another_secret_cannot_be_used() {
    let coprocessor = Coprocessor::start().await;
    coprocessor.register(&alice(), &bob());
    let wallet = coprocessor.wallet(alice());
    let owner = wallet.address();
    assert!(matches!(wallet.balances().await, Err(ConfidentialError::OtherSecret(who)) if who == owner));
    assert!(matches!(wallet.rollover().await, Err(ConfidentialError::OtherSecret(_))));
    let refreshed = wallet.refresh(&no_keys(), quiet()).await;
    assert!(matches!(refreshed, Err(ConfidentialError::OtherSecret(_))));
}

#[tokio::test]
async fn accounts_are_opened_once_and_before_they_are_used() {
    let coprocessor = Coprocessor::start().await;
    let wallet = coprocessor.wallet(alice());
    let owner = wallet.address();
    assert!(matches!(wallet.balances().await, Err(ConfidentialError::NotRegistered(who)) if who == owner));
    assert!(matches!(wallet.deposit(owner, 1).await, Err(ConfidentialError::NotRegistered(_))));
    assert_eq!(wallet.history().await.unwrap(), []);
    coprocessor.register(&alice(), &alice());
    let again = wallet.register(&no_keys(), quiet()).await;
    assert!(matches!(again, Err(ConfidentialError::Registered(who)) if who == owner));
    let unknown = wallet.send(bob().address(), 1, None, &no_keys(), quiet()).await;
    assert!(matches!(unknown, Err(ConfidentialError::NotRegistered(who)) if who == bob().address()));
}

#[tokio::test]
async fn who_lacks_something_is_told_what_would_help() {
    let (coprocessor, wallet) = funded().await;
    let lacking = |error| match error {
        ConfidentialError::Insufficient { available, needed, advice } => (available, needed, advice),
        error => panic!("{error}"),
    };
    let send = async |amount, fee| {
        let sent = wallet.send(bob().address(), amount, fee, &no_keys(), quiet()).await;
        lacking(sent.unwrap_err())
    };
    let roll_over = ": roll over what is pending first";
    assert_eq!(send(100, None).await, (0, 110, roll_over));
    let withdrawn = wallet.withdraw(wallet.address(), 7, &no_keys(), quiet()).await;
    assert_eq!(lacking(withdrawn.unwrap_err()), (0, 7, roll_over));
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes);
    assert_eq!(send(491, None).await, (500, 501, ""));
    assert_eq!(send(u64::MAX, Some(1)).await, (500, 1 << 64, ""));
    let deposited = wallet.deposit(wallet.address(), 501).await.unwrap_err();
    assert_eq!(lacking(deposited), (500, 501, " in the public ledger"));
}

#[tokio::test]
async fn only_the_deployments_auditor_reads_amounts() {
    let (coprocessor, wallet) = funded().await;
    let rolled = coprocessor.apply(&wallet.rollover().await.unwrap().bytes);
    let paid = coprocessor.pay(&alice(), &bob(), 77);
    let auditor = |seed| Auditor::new(Arc::clone(&coprocessor.settings), &coprocessor.public, seed);
    assert!(matches!(auditor(&[1; 32]), Err(ConfidentialError::OtherAuditor)));
    let auditor = auditor(&AUDITOR_SEED).unwrap();
    let read = auditor.read(&paid).unwrap().unwrap();
    assert_eq!((read.amount, read.fee, read.sender), (77, MINIMUM_FEE, alice().address()));
    assert_eq!((read.receiver, read.id, read.sequence), (bob().address(), paid.id, paid.sequence));
    assert_eq!(auditor.read(&rolled).unwrap(), None);
    let mut refused = paid;
    refused.applied = false;
    assert_eq!(auditor.read(&refused).unwrap(), None);
    (refused.applied, refused.transaction) = (true, Bytes::from_static(&[1, 3]));
    assert!(matches!(auditor.read(&refused), Err(ConfidentialError::Claim(_))));
}

#[tokio::test]
async fn other_keys_than_the_deployments_are_refused() {
    let (coprocessor, wallet) = funded().await;
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    // Of another ring, which is quick.
    let ring = Ring::new(16, Ring::BALANCE.modulus()).unwrap();
    let pinned = provers::development(&folder, ring, &[7; 32], &mut |_| ()).unwrap();
    let refused = async |dir: &std::path::Path, pinned: &Pinned| {
        let keys = ProvingKeys::new(dir.to_owned(), pinned.clone());
        match wallet.withdraw(wallet.address(), 5, &keys, quiet()).await {
            Err(ConfidentialError::Proving(ProvingError::Keys(error))) => error,
            other => panic!("{other:?}"),
        }
    };
    let path = folder.join("withdrawal.proving");
    let error = refused(&folder, &pinned).await;
    assert!(matches!(error, KeysError::Prover(ProverError::Circuit)), "{error}");
    let mut other = pinned.clone();
    other.get_mut("withdrawal").unwrap().proving.0[0] ^= 1;
    let error = refused(&folder, &other).await;
    assert!(matches!(error, KeysError::Key { path: at, fault: KeyError::Hash } if at == path));
    assert!(matches!(refused(&folder, &Pinned::new()).await, KeysError::NotPinned("withdrawal")));
    let error = refused(dir.path(), &pinned).await;
    assert!(matches!(error, KeysError::File { path: at, .. } if at == dir.path().join("withdrawal.proving")));

    // The verifying keys, likewise.
    let mut other = pinned.clone();
    other.get_mut("transfer").unwrap().verifying.0[0] ^= 1;
    let error = provers::verifiers(&folder, &other, true).map(drop).unwrap_err();
    assert!(matches!(error, KeysError::Hash { path, .. } if path == folder.join("transfer.verifying")));
    let mut bytes = std::fs::read(folder.join("refresh.verifying")).unwrap();
    bytes.pop();
    std::fs::write(folder.join("refresh.verifying"), bytes).unwrap();
    let error = provers::verifiers(&folder, &pinned, true).map(drop).unwrap_err();
    assert!(matches!(error, KeysError::Key { fault: KeyError::Truncated, .. }), "{error}");
}

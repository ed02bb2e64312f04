//! The confidential wallet over what was executed here, and a coprocessor elsewhere that may show anything.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use blindfold_client::confidential::provers::{self, KeysError, Pinned, Progress, ProvingError, ProvingKeys};
use blindfold_client::confidential::{
    AccountClaimError, Auditor, ConfidentialError, ConfidentialWallet, OpenPayment, VerifiedError,
    VerifiedState, checked,
};
use blindfold_confidential::Ring;
use blindfold_confidential::state::Genesis;
use blindfold_confidential::transaction::{ConfidentialTransaction, Transfer};
use blindfold_coprocessor::{AccountView, LedgerView};
use blindfold_groth16::{KeyError, ProverError};
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::{MultiCiphertext, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_rpc::confidential::{ConfidentialAccount, ConfidentialTransactionInfo, Standing};
use blindfold_store::{ConfidentialStore, SqlStore, TreeName};

use crate::common::key;
use crate::coprocessor::{
    ALLOCATION, AUDITOR_SEED, Believed, Coprocessor, DISBELIEVED, MINIMUM_FEE, NO_PROOF, deployment,
};

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
    coprocessor.register(&alice(), &alice()).await;
    coprocessor.register(&bob(), &bob()).await;
    let wallet = coprocessor.wallet(alice());
    coprocessor.apply(&wallet.deposit(wallet.address(), 500).await.unwrap().bytes).await;
    (coprocessor, wallet)
}

#[tokio::test]
async fn the_key_alone_recovers_an_account() {
    let (coprocessor, wallet) = funded().await;
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    coprocessor.pay(&alice(), &bob(), 120).await;

    let recovered = coprocessor.wallet(alice());
    let balances = recovered.balances().await.unwrap();
    assert_eq!(balances, wallet.balances().await.unwrap());
    assert_eq!((balances.available, balances.pending), (500 - 120 - MINIMUM_FEE, 0));
    assert_eq!((balances.public, balances.nonce), (ALLOCATION - 500, 2));
    assert_eq!((balances.available_terms, balances.pending_terms, balances.advice), (3, 0, None));
    let history = recovered.history().await.unwrap();
    let listed: Vec<_> = history.iter().map(|entry| (entry.kind, entry.change, entry.with)).collect();
    let to_bob = -120 - i128::from(MINIMUM_FEE);
    let want = [
        ("register", 0, None),
        ("deposit", 500, None),
        ("rollover", 0, None),
        ("transfer", to_bob, Some(bob().address())),
    ];
    assert_eq!(listed, want);

    let of_bob = coprocessor.wallet(bob());
    assert_eq!(of_bob.balances().await.unwrap().pending, 120);
    let last = of_bob.history().await.unwrap().pop().unwrap();
    assert_eq!((last.change, last.with), (120, Some(alice().address())));
}

#[tokio::test]
async fn an_account_of_another_secret_cannot_be_used() {
    let coprocessor = Coprocessor::start().await;
    coprocessor.register(&alice(), &bob()).await;
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
    coprocessor.register(&alice(), &alice()).await;
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
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    assert_eq!(send(491, None).await, (500, 501, ""));
    assert_eq!(send(u64::MAX, Some(1)).await, (500, 1 << 64, ""));
    let deposited = wallet.deposit(wallet.address(), 501).await.unwrap_err();
    assert_eq!(lacking(deposited), (500, 501, " in the public ledger"));
}

/// What a coprocessor elsewhere shows of a transaction, as applied.
pub fn shown(transaction: &ConfidentialTransaction) -> ConfidentialTransactionInfo {
    ConfidentialTransactionInfo {
        id: transaction.id(),
        sequence: 1,
        version: 1,
        number: 1,
        standing: Standing::Finalized,
        item: 0,
        position: 0,
        kind: Some(transaction.kind_name().to_owned()),
        applied: true,
        reason: None,
        transaction: Bytes::from(transaction.encode()),
        state_root: B256::ZERO,
    }
}

fn auditor(coprocessor: &Coprocessor, seed: &[u8; 32]) -> Result<Auditor, ConfidentialError> {
    Auditor::new(&coprocessor.settings, &coprocessor.public, seed)
}

/// Transfers that were never made, for recipient `place`: c1 = Δ·Σ 3^k·X^(−8k−40i) picks five coefficients of the secret for
/// each limb, so that the amount that is read is forty of them.
fn invented(coprocessor: &Coprocessor, place: usize) -> Vec<Transfer> {
    let parameters = coprocessor.settings.parameters();
    let (degree, q, delta) = (parameters.degree(), parameters.modulus() as u64, parameters.delta() as u64);
    let packed = |numbers: &[u64]| {
        let mut bytes = Vec::new();
        blindfold_rlwe::ring::pack(numbers, coprocessor.settings.ring().modulus_bits(), &mut bytes);
        bytes
    };
    let transfer = |number: usize| {
        let mut c1 = vec![0; degree];
        for (k, weight) in [1, 3, 9, 27, 81].into_iter().enumerate() {
            let at = 40 * number + 8 * k;
            match at {
                0 => c1[0] = delta * weight,
                at if at < degree => c1[degree - at] = q - delta * weight,
                _ => (),
            }
        }
        let zero_and_up = [delta * 121; 8];
        let mut encoded = packed(&c1);
        (0..3).for_each(|_| encoded.extend(packed(&zero_and_up)));
        let amount = MultiCiphertext::decode(parameters, 3, &encoded).unwrap();
        let parties = [alice().address(), bob().address()];
        let (sender, receiver) = if place == 0 { (parties[0], parties[1]) } else { (parties[1], parties[0]) };
        Transfer { sender, receiver, nonce: number as u64, fee: MINIMUM_FEE, amount, proof: NO_PROOF }
    };
    (0..degree.div_ceil(40)).map(transfer).collect()
}

/// What the amounts say of the secret.
fn given_back(secret: &SecretKey, transfers: &[Transfer], place: usize) -> Vec<i8> {
    let mut coefficients = vec![0; 40 * transfers.len()];
    for (number, transfer) in transfers.iter().enumerate() {
        let part = transfer.amount.for_recipient(place).unwrap();
        let amount = balance::decrypt(secret, &part).unwrap();
        for (j, limb) in amount.to_le_bytes().into_iter().enumerate() {
            let mut limb = limb;
            for k in 0..5 {
                coefficients[40 * number + 8 * k + j] = (limb % 3) as i8 - 1;
                limb /= 3;
            }
        }
    }
    coefficients
}

#[tokio::test]
async fn fifty_two_invented_transfers_do_not_give_back_a_secret() {
    let (coprocessor, wallet) = funded().await;
    let before = wallet.history().await.unwrap();
    // What decrypting them would do, to auditor and owner alike.
    let of_auditor = SecretKey::derive(&coprocessor.public, &AUDITOR_SEED);
    let of_alice =
        blindfold_client::confidential::account_secret(&coprocessor.settings, &coprocessor.public, &alice());
    for (secret, place) in [(&of_auditor, 2), (&of_alice, 0), (&of_alice, 1)] {
        let transfers = invented(&coprocessor, place);
        assert_eq!(transfers.len(), 52);
        assert_eq!(given_back(secret, &transfers, place)[..2048], *secret.coefficients());
        // A coprocessor marks them applied: none of them gets to where amounts are read.
        for transfer in transfers {
            let transaction = ConfidentialTransaction::Transfer(Box::new(transfer));
            let id = transaction.id();
            let refused = coprocessor.state.confirm(&shown(&transaction)).await.unwrap_err();
            assert!(matches!(refused, VerifiedError::NotApplied(found) if found == id), "{refused}");
        }
    }
    // One whose proof does not hold, in a certified batch: refused here, whatever others say of it.
    let mut transfer = coprocessor.payment(&alice(), &bob(), 1).await;
    transfer.proof = DISBELIEVED;
    let transaction = ConfidentialTransaction::Transfer(Box::new(transfer));
    assert!(coprocessor.execute(&transaction.encode()).await.is_some());
    assert!(matches!(
        coprocessor.state.confirm(&shown(&transaction)).await,
        Err(VerifiedError::NotApplied(_))
    ));
    // The bytes of another one under the id of one that was applied.
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    let paid = coprocessor.pay(&alice(), &bob(), 7).await;
    let mut altered = shown(paid.transaction());
    altered.transaction = shown(&transaction).transaction;
    assert!(matches!(coprocessor.state.confirm(&altered).await, Err(VerifiedError::NotApplied(_))));
    assert_eq!(wallet.history().await.unwrap().len(), before.len() + 2);
}

#[tokio::test]
async fn only_the_deployments_auditor_reads_amounts() {
    let (coprocessor, wallet) = funded().await;
    let rolled = coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    let paid = coprocessor.pay(&alice(), &bob(), 77).await;
    assert!(matches!(auditor(&coprocessor, &[1; 32]), Err(ConfidentialError::OtherAuditor)));
    let auditor = auditor(&coprocessor, &AUDITOR_SEED).unwrap();
    let read = auditor.read(&paid).unwrap().unwrap();
    assert_eq!((read.amount, read.fee, read.sender), (77, MINIMUM_FEE, alice().address()));
    assert_eq!((read.receiver, read.id, read.sequence), (bob().address(), paid.id(), paid.sequence()));
    assert_eq!(auditor.read(&rolled).unwrap(), None);
    // A refused one is not read, although it is known here: nobody has looked at its proof.
    let full = coprocessor.payment(&alice(), &bob(), 5).await;
    let refused = Transfer { fee: 0, proof: DISBELIEVED, ..full };
    let refused = ConfidentialTransaction::Transfer(Box::new(refused));
    assert_eq!(coprocessor.execute(&refused.encode()).await.as_deref(), Some("fee_too_low"));
    let known = coprocessor.state.refused_for(alice().address()).await.unwrap();
    assert_eq!((known.len(), known[0].refusal()), (1, Some("fee_too_low")));
    assert_eq!(auditor.read(&known[0]).unwrap(), None);
}

#[tokio::test]
async fn a_wallet_says_which_payments_can_still_be_applied() {
    let (coprocessor, wallet) = funded().await;
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    // To somebody who is not registered yet, and one that another made in the owner's name.
    let transfer = coprocessor.payment(&alice(), &key(3), 30).await;
    let (nonce, owed) = (transfer.nonce, ConfidentialTransaction::Transfer(Box::new(transfer.clone())));
    let foreign = ConfidentialTransaction::Transfer(Box::new(Transfer { proof: DISBELIEVED, ..transfer }));
    for refused in [&owed, &foreign, &owed] {
        assert_eq!(coprocessor.execute(&refused.encode()).await.as_deref(), Some("unknown_receiver"));
    }
    let open = async || wallet.open_payments(&Believed).await.unwrap();
    assert_eq!(open().await, [], "no statement without the receiver's key");
    coprocessor.register(&key(3), &key(3)).await;
    let expected = OpenPayment {
        id: owed.id(),
        sequence: open().await[0].sequence,
        kind: "transfer",
        to: Some(key(3).address()),
        reason: "unknown_receiver".to_owned(),
        nonce,
    };
    assert_eq!(open().await, [expected]);
    // The same bytes, now applied; or the nonce used by something else.
    let elsewhere = coprocessor.payment(&alice(), &bob(), 1).await;
    assert_eq!(elsewhere.nonce, nonce);
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
    assert_eq!(open().await, []);
    assert_eq!(coprocessor.execute(&owed.encode()).await.as_deref(), Some("nonce_too_low"));
}

#[tokio::test]
async fn what_is_shown_as_somebodys_account_must_be_his_and_stand_under_its_root() {
    let (coprocessor, _) = funded().await;
    let view = LedgerView::new(Arc::clone(&coprocessor.settings));
    let head = coprocessor.store.confidential_head().await.unwrap().unwrap();
    let owner = alice().address();
    let claim = async |of| {
        let record = coprocessor.store.confidential_account(of, head.version).await.unwrap().unwrap();
        let places: Vec<(u8, u32)> = (0..32).map(|level| (level, (record.index >> level) ^ 1)).collect();
        let nodes =
            coprocessor.store.confidential_nodes(TreeName::Accounts, &places, head.version).await.unwrap();
        let filled = (0..32).zip(nodes).map(|(level, node)| node.unwrap_or_else(|| view.empty_root(level)));
        ConfidentialAccount {
            siblings: filled.collect(),
            version: head.version,
            accounts: head.accounts,
            accounts_root: head.accounts_root,
            public_accounts: head.public_accounts,
            public_root: head.public_root,
            state_root: head.state_root,
            ..view.account(&record).unwrap()
        }
    };
    let honest = claim(owner).await;
    assert_eq!(checked(&coprocessor.settings, owner, &honest).unwrap().identity.owner, owner);
    let fault = |alter: &dyn Fn(&mut ConfidentialAccount)| {
        let mut claim = honest.clone();
        alter(&mut claim);
        checked(&coprocessor.settings, owner, &claim).unwrap_err()
    };
    // A whole and right account, of somebody else: who is paid by its key is not the one that was meant.
    let other = claim(bob().address()).await;
    assert!(matches!(
        checked(&coprocessor.settings, owner, &other),
        Err(AccountClaimError::OtherOwner { asked, found }) if (asked, found) == (owner, bob().address())
    ));
    assert!(matches!(fault(&|claim| claim.owner = bob().address()), AccountClaimError::OtherOwner { .. }));
    let elsewhere: [&dyn Fn(&mut ConfidentialAccount); 6] = [
        &|account| account.nonce += 1,
        &|account| account.pending.counter += 1,
        &|account| std::mem::swap(&mut account.available, &mut account.pending),
        &|account| account.siblings[3] = B256::repeat_byte(3),
        &|account| account.state_root = B256::repeat_byte(4),
        &|account| account.index ^= 1,
    ];
    for (place, alter) in elsewhere.into_iter().enumerate() {
        assert!(matches!(fault(alter), AccountClaimError::WrongRoot), "{place}");
    }
    assert!(matches!(fault(&|claim| claim.siblings.truncate(31)), AccountClaimError::ProofLength(31)));
    let undecodable: [&dyn Fn(&mut ConfidentialAccount); 3] = [
        &|account| account.pending.counter = 1 << 16,
        &|account| account.public_key = Bytes::from_static(&[0; 7]),
        &|account| account.available.c1 = Bytes::from(vec![0xff; account.available.c1.len()]),
    ];
    for alter in undecodable {
        assert!(matches!(fault(alter), AccountClaimError::Undecodable(_)));
    }
}

#[tokio::test]
async fn a_folder_without_a_state_or_of_another_deployment_is_refused() {
    let coprocessor = Coprocessor::start().await;
    let open = async |genesis: &Genesis, store| {
        VerifiedState::open(Arc::clone(&coprocessor.settings), genesis, store).await.map(drop)
    };
    let empty: Arc<dyn ConfidentialStore> = Arc::new(SqlStore::in_memory().unwrap());
    let genesis = deployment().genesis().unwrap();
    assert!(matches!(open(&genesis, empty).await, Err(VerifiedError::Empty)));
    let other = Genesis::new(&[(alice().address(), 1)]).unwrap();
    let refused = open(&other, Arc::clone(&coprocessor.store)).await;
    assert!(matches!(refused, Err(VerifiedError::OtherDeployment { .. })));
    assert!(open(&genesis, Arc::clone(&coprocessor.store)).await.is_ok());
}

#[tokio::test]
async fn other_keys_than_the_deployments_are_refused() {
    let (coprocessor, wallet) = funded().await;
    coprocessor.apply(&wallet.rollover().await.unwrap().bytes).await;
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
    // The pinned proving key, with another verifying key in it than executors have.
    let mut other = pinned.clone();
    other.get_mut("withdrawal").unwrap().verifying.0[0] ^= 1;
    let error = refused(&folder, &other).await;
    assert!(matches!(error, KeysError::Hash { path: at, .. } if at == path));
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

//! What the state machine must refuse, each with its reason and no trace.

use alloy_primitives::Address;
use blindfold_protocol::Signature65;
use blindfold_rlwe::schemes::balance;

use super::world::{MINIMUM_FEE, SUPPLY, World, domain, honest, no_proof};
use crate::state::{Genesis, GenesisError, Premises, Refusal, Settings};
use crate::statement::Domain;
use crate::transaction::ConfidentialTransaction as T;

#[test]
fn every_kind_does_what_it_says() {
    let mut world = World::funded(3, 1000);
    assert_eq!(world.balances(0), [1000, 0]);
    let transfer = world.transfer(0, 1, 300, MINIMUM_FEE);
    let T::Transfer(sent) = &transfer else { panic!("a transfer") };
    let audited = sent.amount.for_recipient(2).unwrap();
    world.apply(transfer);
    assert_eq!(balance::decrypt(&world.auditor, &audited), Ok(300));
    assert_eq!((world.balances(0), world.balances(1)), ([697, 0], [1000, 300]));
    assert_eq!(world.public_balance(&world.operator), MINIMUM_FEE);
    let rollover = world.rollover(1);
    world.apply(rollover);
    assert_eq!(world.balances(1), [1300, 0]);
    let refresh = world.refresh(1);
    world.apply(refresh);
    assert_eq!((world.balances(1), world.account(1).nonce), ([1300, 0], 3));
    let stranger = Address::repeat_byte(0x99);
    let withdrawal = world.withdraw(1, stranger, 1300);
    world.apply(withdrawal);
    assert_eq!((world.balances(1), world.public_balance(&stranger)), ([0, 0], 1300));
    world.check_invariants();
}

#[test]
fn a_second_time_is_refused() {
    let mut world = World::funded(2, 1000);
    let kinds = [
        world.transfer(0, 1, 10, MINIMUM_FEE),
        world.refresh(0),
        world.withdraw(0, world.address(0), 10),
        world.rollover(0),
    ];
    for (place, transaction) in kinds.into_iter().enumerate() {
        // All were made for the first nonce: after the first none fits.
        if place == 0 {
            world.apply(transaction.clone());
        }
        world.refuse(&transaction, Refusal::NonceTooLow);
    }
    let deposit = world.deposit(0, 1, 50);
    world.apply(deposit.clone());
    world.refuse(&deposit, Refusal::NonceTooLow);
    let ahead = world.deposit_at(0, 1, 50, 99);
    world.refuse(&ahead, Refusal::NonceTooHigh);
    let ahead = world.rollover_at(1, 99);
    world.refuse(&ahead, Refusal::NonceTooHigh);
    let again = world.register(0);
    world.refuse(&again, Refusal::AlreadyRegistered);
    world.check_invariants();
}

#[test]
fn credits_do_not_spoil_proofs() {
    let mut world = World::funded(3, 1000);
    let proved =
        [world.transfer(0, 1, 100, MINIMUM_FEE), world.refresh(0), world.withdraw(0, world.address(2), 100)];
    for transaction in proved {
        let mut world = World { storage: world.storage.clone(), ..World::new(3) };
        for amount in [7, 8] {
            let credit = world.transfer(1, 0, amount, MINIMUM_FEE);
            world.apply(credit);
            let credit = world.deposit(2, 0, amount);
            world.apply(credit);
        }
        world.apply(transaction);
        assert_eq!(world.balances(0)[1], 30);
        world.check_invariants();
    }
}

#[test]
fn proofs_are_for_one_account_and_deployment() {
    let mut world = World::funded(3, 1000);
    // The proof of owner 0, in transactions that differ from it in one thing.
    let T::Transfer(transfer) = world.transfer(0, 1, 100, MINIMUM_FEE) else { panic!("a transfer") };
    let changed = [
        {
            let mut t = transfer.clone();
            t.receiver = world.address(2);
            t
        },
        {
            let mut t = transfer.clone();
            t.sender = world.address(2);
            t
        },
        {
            let mut t = transfer.clone();
            t.fee += 1;
            t
        },
        {
            let mut t = transfer.clone();
            t.proof.0[287] ^= 1;
            t
        },
    ];
    for transaction in changed {
        world.refuse(&T::Transfer(transaction), Refusal::InvalidProof);
    }
    let T::Withdraw(withdrawal) = world.withdraw(0, world.address(0), 100) else { panic!("a withdrawal") };
    let mut other = withdrawal.clone();
    other.recipient = world.address(1);
    world.refuse(&T::Withdraw(other), Refusal::InvalidProof);
    let mut other = withdrawal;
    other.amount += 1;
    world.refuse(&T::Withdraw(other), Refusal::InvalidProof);

    // The same accounts, nonces and ciphertexts in another deployment.
    for other in [
        Domain { l1_chain_id: 2, ..domain() },
        Domain { chain_id: 43, ..domain() },
        Domain { contract: Address::repeat_byte(0xcd), ..domain() },
    ] {
        let mut elsewhere = World { storage: world.storage.clone(), ..World::new(3) };
        let auditor = elsewhere.auditor.public_key();
        elsewhere.settings =
            Settings::new(other, &elsewhere.public, &auditor, elsewhere.operator, MINIMUM_FEE).unwrap();
        elsewhere.refuse(&T::Transfer(transfer.clone()), Refusal::InvalidProof);
        elsewhere.refuse(&world.refresh(0), Refusal::InvalidProof);
        elsewhere.refuse(&world.withdraw(0, world.address(0), 5), Refusal::InvalidProof);
        // What is signed is signed for the first deployment.
        elsewhere.refuse(&world.rollover(0), Refusal::InvalidSignature);
        elsewhere.refuse(&world.deposit(0, 1, 50), Refusal::InvalidSignature);
    }
    let mut before = World::new(3);
    before.settings = Settings::new(
        Domain { chain_id: 43, ..domain() },
        &before.public,
        &before.auditor.public_key(),
        before.operator,
        MINIMUM_FEE,
    )
    .unwrap();
    before.refuse(&World::new(3).register(0), Refusal::InvalidSignature);
    world.apply(T::Transfer(transfer));
}

#[test]
fn keys_come_from_the_state() {
    let mut world = World::funded(3, 1000);
    // Encrypted to owner 2, sent to owner 1, with a proof that is right for these keys.
    let T::Transfer(mut transfer) = world.transfer(0, 2, 100, MINIMUM_FEE) else { panic!("a transfer") };
    transfer.receiver = world.address(1);
    let foreign = world.account(2).identity.key.clone();
    let transaction = T::Transfer(transfer.clone());
    let claim = world.claim(&transaction, &Premises::Payment(world.account(0), foreign));
    transfer.proof = honest(&claim);
    world.refuse(&T::Transfer(transfer), Refusal::InvalidProof);
    // Another sender's available ciphertext and commitment.
    let T::Withdraw(mut withdrawal) = world.withdraw(0, world.address(0), 100) else {
        panic!("a withdrawal")
    };
    let claim = world.claim(&T::Withdraw(withdrawal.clone()), &Premises::Account(world.account(2)));
    withdrawal.proof = honest(&claim);
    world.refuse(&T::Withdraw(withdrawal), Refusal::InvalidProof);
}

#[test]
fn spending_more_than_there_is_has_no_proof() {
    let mut world = World::funded(2, 1000);
    for (amount, fee) in [(998, MINIMUM_FEE), (u64::MAX, MINIMUM_FEE), (0, 1001)] {
        let transfer = world.transfer(0, 1, amount, fee);
        world.refuse(&transfer, Refusal::InvalidProof);
    }
    let withdrawal = world.withdraw(0, world.address(0), 1001);
    world.refuse(&withdrawal, Refusal::InvalidProof);
    let exact = world.transfer(0, 1, 997, MINIMUM_FEE);
    world.apply(exact);
    assert_eq!(world.balances(0), [0, 0]);
    // Were a proof forged: more than all accounts hold cannot leave them.
    let T::Withdraw(mut forged) = world.withdraw(1, world.address(0), 5000) else { panic!("a withdrawal") };
    let claim = world.claim(&T::Withdraw(forged.clone()), &Premises::Account(world.account(1)));
    forged.proof = honest(&claim);
    world.refuse(&T::Withdraw(forged), Refusal::ConfidentialSupply);
}

#[test]
fn amounts_accounts_and_signatures() {
    let mut world = World::funded(2, 1000);
    let cheap = world.transfer(0, 1, 10, MINIMUM_FEE - 1);
    world.refuse(&cheap, Refusal::FeeTooLow);
    let own = world.transfer(0, 0, 10, MINIMUM_FEE);
    world.refuse(&own, Refusal::SameAccount);
    for amount in [0, MINIMUM_FEE - 1] {
        let dust = world.deposit(0, 1, amount);
        world.refuse(&dust, Refusal::AmountTooLow);
    }
    let nothing = world.withdraw(0, world.address(0), 0);
    world.refuse(&nothing, Refusal::AmountTooLow);
    let large = world.deposit(0, 1, SUPPLY);
    world.refuse(&large, Refusal::InsufficientFunds);

    let stranger = Address::repeat_byte(0x77);
    let T::Transfer(transfer) = world.transfer(0, 1, 10, MINIMUM_FEE) else { panic!("a transfer") };
    let mut to = transfer.clone();
    to.receiver = stranger;
    world.refuse(&T::Transfer(to), Refusal::UnknownReceiver);
    let mut from = transfer;
    from.sender = stranger;
    world.refuse(&T::Transfer(from), Refusal::UnknownAccount);
    let T::Deposit(mut deposit) = world.deposit(0, 1, 10) else { panic!("a deposit") };
    deposit.account = stranger;
    let mut transaction = T::Deposit(deposit.clone());
    world.refuse(&transaction, Refusal::InvalidSignature);
    transaction.sign(&domain(), &world.owners[0].signing);
    world.refuse(&transaction, Refusal::UnknownReceiver);
    // Who has no public account can pay nothing.
    let broke = blindfold_protocol::SigningKey::from_bytes(&[0x55; 32]).unwrap();
    deposit.from = broke.address();
    deposit.account = world.address(1);
    deposit.nonce = 0;
    let mut transaction = T::Deposit(deposit);
    transaction.sign(&domain(), &broke);
    world.refuse(&transaction, Refusal::InsufficientFunds);

    for mut transaction in [world.rollover(0), world.deposit(0, 1, 10)] {
        transaction.sign(&domain(), &world.owners[1].signing);
        world.refuse(&transaction, Refusal::InvalidSignature);
    }
    let mut unsigned = world.rollover(0);
    let T::Rollover(rollover) = &mut unsigned else { panic!("a rollover") };
    rollover.signature = Signature65([0; 65]);
    world.refuse(&unsigned, Refusal::InvalidSignature);
}

#[test]
fn a_registration_needs_its_proof_and_its_owner() {
    let mut world = World::new(2);
    let T::Register(register) = world.register(0) else { panic!("a registration") };
    // The other's key, under the own name and signature.
    let mut stolen = register.clone();
    stolen.key = world.owners[1].secret.public_key();
    let mut transaction = T::Register(stolen);
    world.refuse(&transaction, Refusal::InvalidSignature);
    transaction.sign(&domain(), &world.owners[0].signing);
    world.refuse(&transaction, Refusal::InvalidProof);
    // A commitment that is not the secret's.
    let mut other = register.clone();
    other.secret_commitment += crate::Fr::from(1u64);
    let mut transaction = T::Register(other);
    transaction.sign(&domain(), &world.owners[0].signing);
    world.refuse(&transaction, Refusal::InvalidProof);
    // Somebody else's name.
    let mut other = register.clone();
    other.owner = world.address(1);
    world.refuse(&T::Register(other), Refusal::InvalidSignature);
    let mut unproved = register.clone();
    unproved.proof = no_proof();
    world.refuse(&T::Register(unproved), Refusal::InvalidProof);
    world.apply(T::Register(register));
}

#[test]
fn bytes_in_another_form_are_refused() {
    let mut world = World::funded(2, 1000);
    let bytes = world.transfer(0, 1, 10, MINIMUM_FEE).encode();
    let c1 = 2 + 20 + 20 + 8 + 8;
    let mut raised = bytes.clone();
    // The first coefficient of c1 becomes 2^54 − 1, above q.
    raised[c1..c1 + 6].fill(0xff);
    raised[c1 + 6] |= 0x3f;
    world.refuse_bytes(&raised, Refusal::Undecodable);
    for cut in [0, 1, 2, c1, bytes.len() - 1] {
        world.refuse_bytes(&bytes[..cut], Refusal::Undecodable);
    }
    world.refuse_bytes(&[bytes.as_slice(), &[0]].concat(), Refusal::Undecodable);
    world.refuse_bytes(&[bytes.as_slice(), &vec![0; 1 << 20]].concat(), Refusal::Undecodable);
    for (place, value) in [(0, 0), (0, 2), (1, 0), (1, 7)] {
        let mut other = bytes.clone();
        other[place] = value;
        world.refuse_bytes(&other, Refusal::Undecodable);
    }
    let decoded = T::decode(world.settings.parameters(), &bytes).unwrap();
    world.apply(decoded);
}

#[test]
fn the_supply_fits_an_amount() {
    let [one, two] = [1, 2].map(Address::repeat_byte);
    assert_eq!(Genesis::new(&[(one, u64::MAX), (two, 1)]).unwrap_err(), GenesisError::Supply);
    assert_eq!(Genesis::new(&[(one, 1), (one, 1)]).unwrap_err(), GenesisError::Twice(one));
    let genesis = Genesis::new(&[(one, u64::MAX - 1), (two, 1)]).unwrap();
    assert_eq!((genesis.head.public_accounts, genesis.head.accounts), (2, 0));
}

#[test]
fn reasons_have_stable_names() {
    let names = Refusal::ALL.map(Refusal::as_str);
    assert_eq!(names.first().zip(names.last()), Some((&"undecodable", &"too_many_attempts")));
    let mut unique = names.to_vec();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())));
}

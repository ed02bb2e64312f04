use crate::decrypt::{LIMIT, OutOfReach};
use crate::elgamal::Ciphertext;
use crate::ledger::Refusal;
use crate::spend::{MessageError, Outlay, Spend, SpendError};

use super::*;

#[test]
fn a_life_of_an_account() {
    let mut world = World::new(1);
    let transfer = world.transfer(0, 1, 250_000);
    world.submit(&transfer).unwrap();
    assert_eq!(world.balances(0), [750_000 - FEE, 0]);
    assert_eq!(world.balances(1), [1_000_000, 250_000]);
    assert_eq!(world.ledger.public_balance(&OPERATOR), FEE);
    // The auditor reads the amount, the receiver spends it.
    let Outlay::Transfer { amount, .. } = &transfer.outlay else { panic!("a transfer") };
    assert_eq!(TABLE.decrypt(&world.auditor, &amount.for_recipient(2).unwrap()), Ok(250_000));
    assert_eq!(amount.for_recipient(3), None);
    world.rollover(1).unwrap();
    assert_eq!(world.balances(1), [1_250_000, 0]);
    let all = world.transfer(1, 2, 1_250_000 - FEE);
    world.submit(&all).unwrap();
    assert_eq!(world.balances(1), [0, 0]);
    let withdraw = world.withdraw(2, [9; 20], 400_000);
    world.submit(&withdraw).unwrap();
    assert_eq!(world.balances(2), [600_000, 1_250_000 - FEE]);
    assert_eq!(world.ledger.public_balance(&[9; 20]), 400_000);
}

#[test]
fn batches_end_where_their_parts_do_on_any_number_of_threads() {
    let mut world = World::new(2);
    let mut one_by_one = world.ledger.clone();
    let before = world.ledger.clone();
    let mut batch = vec![];
    for (from, to, amount) in [(0, 1, 5), (0, 2, 0), (1, 2, 1_000_000 - FEE), (2, 0, 77), (0, 1, 6)] {
        let spend = world.transfer(from, to, amount);
        world.submit(&spend).unwrap();
        batch.push(spend.encode());
    }
    // One that is refused, and one that depends on it.
    batch.insert(1, world.transfer(0, 1, 1).encode());
    let mut results = vec![];
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut ledger = before.clone();
        let mut rng = ChaCha20Rng::seed_from_u64(threads as u64);
        results.push((pool.install(|| ledger.execute(&batch, &mut rng)), ledger.digest()));
    }
    let single = batch.iter().map(|bytes| one_by_one.execute(std::slice::from_ref(bytes), &mut world.rng)[0]);
    results.push((single.collect(), one_by_one.digest()));
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    assert_eq!(results[0].1, world.ledger.digest());
    assert_eq!(results[0].0[1], Err(Refusal::Nonce { expected: 2 }));
}

#[test]
fn a_wrong_proof_costs_the_others_of_its_batch_nothing() {
    let mut world = World::new(3);
    let good = world.transfer(0, 1, 5);
    let mut wrong = world.transfer(1, 2, 5);
    wrong.public += 1;
    let results = world.ledger.execute(&[good.encode(), wrong.encode()], &mut world.rng);
    assert_eq!(results, [Ok(()), Err(Refusal::Proof)]);
    assert_eq!(world.balances(1), [1_000_000, 5]);
}

#[test]
fn encodings_are_read_back_and_nothing_else_is() {
    let mut world = World::new(4);
    let transfer = world.transfer(0, 1, 5);
    let withdraw = world.withdraw(0, [9; 20], 5);
    assert_eq!(transfer.encode().len(), 57 + 4 * 32 + transfer.proof_bytes());
    println!("transfer {} bytes, proof {}", transfer.encode().len(), transfer.proof_bytes());
    for spend in [transfer, withdraw] {
        let bytes = spend.encode();
        assert_eq!(Spend::decode(&bytes), Ok(spend.clone()));
        for cut in [0, 1, 56, 57, 88, 200, bytes.len() - 1] {
            assert!(Spend::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(Spend::decode(&[bytes.clone(), vec![0]].concat()).is_err());
        let with = |place: usize, value: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[place..place + value.len()].copy_from_slice(value);
            Spend::decode(&bytes)
        };
        assert_eq!(with(0, &[7]), Err(MessageError::Kind(7)));
        assert_eq!(with(57, &[0xff; 32]), Err(MessageError::Point));
        let scalar = bytes.len() - spend.range.to_bytes().len() - 32;
        assert_eq!(with(scalar, &[0xff; 32]), Err(MessageError::Scalar));
        assert_eq!(with(scalar + 32, &[0xff; 8]), Err(MessageError::RangeProof));
    }
}

#[test]
fn values_are_read_below_the_limit_only() {
    let world = World::new(5);
    let secret = &world.secrets[0];
    for value in [0, 1, 65_535, 65_536, LIMIT - 1] {
        assert_eq!(TABLE.decrypt(secret, &Ciphertext::public(&GENERATORS, value)), Ok(value));
    }
    assert_eq!(TABLE.decrypt(secret, &Ciphertext::public(&GENERATORS, LIMIT)), Err(OutOfReach));
}

#[test]
fn an_honest_sender_learns_what_it_cannot_do() {
    let mut world = World::new(6);
    let mut try_to = |to, public, balance: Option<u64>| {
        let mut order = world.order(0, to, public);
        order.balance = balance.unwrap_or(order.balance);
        let premises = world.ledger.premises(&order.account, None).unwrap();
        Spend::new(&GENERATORS, &order, &premises, &world.secrets[0], &mut world.rng).map(|_| ())
    };
    assert_eq!(try_to((owner(1), None), 1_000_001, None), Err(SpendError::Balance));
    assert_eq!(try_to((owner(1), Some(u64::MAX)), 1, Some(u64::MAX)), Err(SpendError::Balance));
    assert_eq!(try_to((owner(1), Some(1)), FEE, None), Err(SpendError::Receiver));
}

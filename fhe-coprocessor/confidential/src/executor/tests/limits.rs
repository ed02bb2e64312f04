//! The counters: what is refused one term past the limit, and that the owner always has a way on.

use super::world::{MINIMUM_FEE, World};
use crate::state::{Refusal, Storage};

/// Deposits of 255 from owner 0 to owner 1, one after the other.
fn deposits(world: &mut World, count: u64) {
    let nonce = world.storage.public_account(&world.address(0)).unwrap().unwrap().nonce;
    let batch: Vec<Vec<u8>> =
        (0..count).map(|more| world.deposit_at(0, 1, 255, nonce + more).encode()).collect();
    let executed = world.execute(&batch);
    assert!(executed.receipts.iter().all(|receipt| receipt.outcome == Ok(())));
    world.storage.commit(&executed);
}

#[test]
fn one_term_past_the_limit_is_refused_and_refreshing_helps() {
    let mut world = World::funded(2, 1000);
    let rollover = world.refresh(1);
    world.apply(rollover);
    // One term in `available`, 4095 in `pending`: the most that others can do to an account.
    deposits(&mut world, 4095);
    let (deposit, transfer) = (world.deposit(0, 1, 255), world.transfer(0, 1, 5, MINIMUM_FEE));
    world.refuse(&deposit, Refusal::PendingFull);
    world.refuse(&transfer, Refusal::PendingFull);

    let rollover = world.rollover(1);
    world.apply(rollover);
    let account = world.account(1);
    assert_eq!(
        (account.available.ciphertext().additions(), account.pending.ciphertext().additions()),
        (4096, 0)
    );
    let held = 1000 + 4095 * 255;
    assert_eq!(world.balances(1), [held, 0]);

    // The debits.
    let (transfer, withdrawal) =
        (world.transfer(1, 0, 5, MINIMUM_FEE), world.withdraw(1, world.address(1), 5));
    world.refuse(&transfer, Refusal::AvailableFull);
    world.refuse(&withdrawal, Refusal::AvailableFull);
    // The rollover, with a single credit pending.
    deposits(&mut world, 1);
    let rollover = world.rollover(1);
    world.refuse(&rollover, Refusal::RolloverFull);
    deposits(&mut world, 4094);
    let rollover = world.rollover(1);
    world.refuse(&rollover, Refusal::RolloverFull);

    let refresh = world.refresh(1);
    world.apply(refresh);
    assert_eq!(world.account(1).available.ciphertext().additions(), 1);
    let rollover = world.rollover(1);
    world.apply(rollover);
    assert_eq!(world.balances(1), [held + 4095 * 255, 0]);
    let refresh = world.refresh(1);
    world.apply(refresh);
    let withdrawal = world.withdraw(1, world.address(1), held);
    world.apply(withdrawal);
    world.check_invariants();
}

#[test]
fn a_transfer_counts_copy_and_fee() {
    let mut world = World::funded(2, 1000);
    let before = world.account(0).available.ciphertext().additions();
    let transfer = world.transfer(0, 1, 5, MINIMUM_FEE);
    world.apply(transfer);
    assert_eq!(world.account(0).available.ciphertext().additions(), before + 2);
    assert_eq!(world.account(1).pending.ciphertext().additions(), 1);
}

//! The base fees: by time and accepted load only, at most an eighth a second.

use crate::common::*;
use alloy_primitives::Address;
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::limits::{MAX_SECOND_BYTES, TARGET_SECOND_BYTES};
use blindfold_protocol::validity::{Load, next_fee};
use blindfold_protocol::*;
use proptest::collection::vec;
use proptest::prelude::*;

const TIME_MS: u64 = 2_000_000;

fn state() -> ChainState {
    let account = Account { balance: 1 << 100, ..Account::default() };
    let accounts = (1..=9).map(|i| (signing_key(i).address(), account));
    ChainState::from_parts(config(), Head::genesis(&config()), FeeLedger::from_parts(accounts, [], []))
}

fn seal(state: &mut ChainState, time: u64, items: &[CheckedItem]) -> BatchHeader {
    let (header, _) = state.seal(time, items, &raw(items), 0, &epoch(), &quiet(101)).unwrap();
    header
}

fn fees(header: &BatchHeader) -> (u128, u128) {
    (header.base_fee, header.gas_base_fee)
}

/// Rule F-3.
#[test]
fn a_step_is_eip_1559_within_an_eighth() {
    let target = TARGET_SECOND_BYTES;
    let next = |fee, load, minimum| next_fee(fee, load, target, minimum);
    assert_eq!(next(1_000, target, 10), 1_000);
    assert_eq!(next(1_000, 2 * target, 10), 1_125);
    assert_eq!(next(1_000, MAX_SECOND_BYTES, 10), 1_125, "never more than an eighth");
    assert_eq!(next(1_000, target / 2, 10), 938);
    assert_eq!(next(1_000, 0, 10), 875);
    assert_eq!(next(1, target + 1, 1), 2, "it can leave a low minimum");
    assert_eq!(next(10, 0, 10), 10);
    assert_eq!(next(5, 0, 10), 10);
    assert_eq!(next(u128::MAX, u64::MAX, 10), u128::MAX, "no overflow");
    assert_eq!(next(u128::MAX, 0, 10), u128::MAX - (u128::MAX >> 3));
    assert_eq!(next_fee(7, 0, 0, 1), 7, "no target, no load");
}

/// Batches of skipped items, as many bytes as a second holds: they cost nothing, so they must not raise what others pay.
/// Rule F-4.
#[test]
fn a_second_full_of_garbage_moves_no_fee() {
    let most = limits::MAX_ENVELOPE_BYTES;
    let garbage: Vec<Vec<u8>> =
        (0..237u32).map(|i| [i.to_be_bytes().to_vec(), vec![9; most - 4]].concat()).collect();
    let items = checked(&garbage);
    let (mut stuffed, mut empty) = (state(), state());
    let first = checked_envelopes(&[envelope(&fields(), &signing_key(1), 1)]);
    for state in [&mut stuffed, &mut empty] {
        seal(state, TIME_MS, &first);
    }
    let header = seal(&mut stuffed, TIME_MS + 1_000, &items);
    assert!(u64::from(header.envelope_bytes) > MAX_SECOND_BYTES - most as u64, "no room for more");
    assert_eq!(header.gas, 0);
    seal(&mut empty, TIME_MS + 1_000, &[]);
    assert_eq!(stuffed.next_base_fees(), empty.next_base_fees());
    for second in 2..40 {
        let at = TIME_MS + second * 1_000;
        assert_eq!(fees(&seal(&mut stuffed, at, &[])), fees(&seal(&mut empty, at, &[])));
    }
}

/// Rule F-3.
#[test]
fn fees_stand_still_within_a_second_and_fall_with_time() {
    let mut state = state();
    // A third of a second's gas each, so both are above the target together.
    let make = |payer: u8| {
        let fields = EnvelopeFields { gas_limit: 64_000_000, max_gas_fee: 1_000, ..fields() };
        checked_envelopes(&[envelope(&fields, &signing_key(payer), 1)])
    };
    let first = seal(&mut state, TIME_MS, &make(1));
    assert_eq!(fees(&first), (1_000, 3), "the chain's initial ones");
    assert_eq!(fees(&seal(&mut state, TIME_MS + 250, &make(2))), (1_000, 3));
    assert_eq!(fees(&seal(&mut state, TIME_MS + 999, &[])), (1_000, 3));
    // 1,278 bytes of 524,288; 128 million gas of 95.5 million: at least 1 wei more.
    let next = state.next_base_fees();
    assert_eq!(next, BaseFees { base_fee: 1_000 - 124, gas_base_fee: 4 });
    assert_eq!(fees(&seal(&mut state, TIME_MS + 1_000, &[])), (876, 4));
    // An empty second each is a step, whether there was a header in it or not.
    let mut slow = state.clone();
    for second in 2..=9 {
        seal(&mut slow, TIME_MS + second * 1_000, &[]);
    }
    assert_eq!(
        fees(&seal(&mut state, TIME_MS + 9_000, &[])),
        (slow.head().base_fee, slow.head().gas_base_fee)
    );
    // A gap of any length ends at the minima, and costs no time.
    let far = state.base_fees_at(u64::MAX);
    assert_eq!(far, BaseFees { base_fee: 10, gas_base_fee: 4 }, "an eighth of 4 wei is nothing");
}

/// Rule F-2.
#[test]
fn the_base_part_of_the_zero_address_is_out_of_reach() {
    let burning = ChainConfig { base_fee_recipient: Address::ZERO, ..config() };
    let account = Account { balance: 1 << 100, ..Account::default() };
    let payer = signing_key(1).address();
    let mut state = ChainState::from_parts(
        burning.clone(),
        Head::genesis(&burning),
        FeeLedger::from_parts([(payer, account)], [], []),
    );
    let items = checked_envelopes(&[envelope(&fields(), &signing_key(1), 1)]);
    seal(&mut state, TIME_MS, &items);
    let burnt = state.ledger().account(&Address::ZERO).unwrap().balance;
    assert_eq!(burnt, 639 * 1_000 + 1_000_000 * 3);
    let earned = state.ledger().account(&burning.sequencer).unwrap().balance;
    assert_eq!(earned + burnt, (1 << 100) - state.ledger().account(&payer).unwrap().balance);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(8), ..Default::default() })]

    #[test]
    fn a_step_is_monotone_and_at_most_an_eighth(
        fee in prop_oneof![0u128..10_000, any::<u128>()], loads in any::<[u64; 2]>(), target in 1u64..1 << 40, minimum in 1u128..1_000,
    ) {
        let fee = fee.max(minimum);
        let [low, high] = [loads[0].min(loads[1]), loads[0].max(loads[1])];
        let [under, over] = [low, high].map(|load| next_fee(fee, load, target, minimum));
        prop_assert!(under <= over, "more load, no lower a fee");
        for next in [under, over] {
            prop_assert!(next >= minimum);
            prop_assert!(next.abs_diff(fee) <= (fee / 8).max(1));
        }
        prop_assert!(next_fee(fee.saturating_add(1), low, target, minimum) >= under, "a higher fee stays higher");
    }

    /// However a stretch of time is cut into headers, its fees are the same: only seconds and their loads count.
    #[test]
    fn fees_depend_on_seconds_and_loads_alone(gaps in vec(0u64..4, 1..12), load in any::<u32>(), start in 10u128..1 << 70) {
        let config = config();
        let fees = BaseFees { base_fee: start, gas_base_fee: start / 7 + 1 };
        let load = Load { bytes: load.into(), gas: u64::from(load) * 40 };
        let whole: u64 = gaps.iter().sum();
        let mut cut = fees;
        let mut load_left = load;
        for gap in gaps {
            cut = cut.after(load_left, gap, &config);
            if gap > 0 {
                load_left = Load::default();
            }
        }
        prop_assert_eq!(cut, fees.after(load, whole, &config));
        prop_assert_eq!(fees.after(load, 0, &config), fees);
    }

    /// What payers lose is what the two receivers get, to the wei, whatever fees they offer (F-11).
    #[test]
    fn what_is_paid_is_what_is_received(max_fee in 0u128..3_000, tip in 0u128..3_000, max_gas_fee in 0u128..6, gas_limit in 0u64..2_000_000) {
        let fields = EnvelopeFields { max_fee, priority_fee: tip, max_gas_fee, gas_limit, ..fields() };
        let items = checked_envelopes(&[envelope(&fields, &signing_key(1), 1)]);
        let mut state = state();
        let (header, applied) = state.seal(TIME_MS, &items, &raw(&items), 0, &epoch(), &quiet(101)).unwrap();
        let balance = |who: &Address| state.ledger().account(who).map_or(0, |account| account.balance);
        let lost = (1 << 100) - balance(&signing_key(1).address());
        let (burnt, earned) = (balance(&config().base_fee_recipient), balance(&config().sequencer));
        prop_assert_eq!(lost, burnt + earned);
        let payable = max_fee >= 1_000 && max_fee >= tip && max_gas_fee >= 3;
        prop_assert_eq!(applied.verdicts[0].is_accepted(), payable);
        if payable {
            prop_assert_eq!(burnt, 639 * header.base_fee + u128::from(gas_limit) * header.gas_base_fee);
            prop_assert_eq!(lost, 639 * max_fee.min(header.base_fee + tip) + u128::from(gas_limit) * header.gas_base_fee);
        }
    }
}

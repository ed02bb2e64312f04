//! Every fault of a header, every refusal to seal, every fault that depends on the chain.

use crate::common::*;
use alloy_primitives::{Address, B256};
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::limits::MAX_SECOND_BYTES;
use blindfold_protocol::validity::{InputError, RejectedItem};
use blindfold_protocol::*;

const TIME_MS: u64 = 2_000_000;

fn rich() -> u128 {
    10u128.pow(18)
}

/// Genesis with rich payers 1..=9.
fn state() -> ChainState {
    state_with(config())
}

fn state_with(config: ChainConfig) -> ChainState {
    let head = Head::genesis(&config);
    let account = Account { balance: rich(), ..Account::default() };
    let accounts = (1..=9).map(|i| (signing_key(i).address(), account));
    ChainState::from_parts(config, head, FeeLedger::from_parts(accounts, [], []))
}

fn good(payer: u8) -> Envelope {
    envelope(&fields(), &signing_key(payer), u64::from(payer))
}

fn seal(
    state: &mut ChainState,
    time: u64,
    items: &[CheckedItem],
) -> Result<(BatchHeader, AppliedBatch), SealError> {
    state.seal(time, items, &raw(items), 0, &epoch(), &quiet(101))
}

fn verdicts(state: &ChainState, items: &[CheckedItem]) -> Vec<Verdict> {
    state.preview(TIME_MS, items, 0, &epoch(), &quiet(101)).unwrap()
}

fn skipped(fault: EnvelopeError) -> Verdict {
    Verdict::Skipped(fault)
}

/// Rules F-1, F-2.
#[test]
fn base_parts_and_tips_go_to_different_accounts() {
    let mut sealing = state();
    let items = checked_envelopes(&[good(1), good(2)]);
    let (header, applied) = seal(&mut sealing, TIME_MS, &items).unwrap();
    // 639 bytes at 1000 wei, 1,000,000 gas at 3 wei; 5 wei a byte above that.
    let (base, tip) = (639 * 1_000 + 3_000_000, 639 * 5);
    let ledger = sealing.ledger();
    assert_eq!(ledger.account(&signing_key(1).address()).unwrap().balance, rich() - base - tip);
    assert_eq!(ledger.account(&sequencer().address()).unwrap().balance, 2 * tip);
    assert_eq!(ledger.account(&config().base_fee_recipient).unwrap().balance, 2 * base);
    let live = LiveNonce { payer: signing_key(1).address(), nonce: 1, expiry: 100 };
    assert!(ledger.nonces().any(|nonce| nonce == live));
    assert_eq!((header.envelope_count, header.envelope_bytes, header.gas), (2, 1_278, 2_000_000));
    assert_eq!((header.number, header.base_fee, header.epoch), (1, 1_000, 3));
    assert_eq!(header.parent_hash, deployment().genesis_hash());
    assert_eq!(header.fee_ledger_root, ledger.root());
    assert_eq!(applied.accepted(), 2);
    assert_eq!(applied.header_hash, header.hash());
    assert_eq!(sealing.head().hash, header.hash());

    let mut following = state();
    assert_eq!(following.apply(&header, &items, &raw(&items), &epoch(), &quiet(101)), Ok(applied.clone()));
    assert_eq!(following, sealing);
    following.revert(applied.clone()).unwrap();
    assert_eq!(following, state());
    assert_eq!(
        following.revert(applied).unwrap_err().to_string(),
        "batch 1 is not the last one applied (the head is 0)"
    );
}

/// Rules V-1, V-5.
#[test]
fn a_changed_header_is_refused_and_changes_nothing() {
    let items = checked_envelopes(&[good(1), good(2)]);
    let (header, _) = seal(&mut state(), TIME_MS, &items).unwrap();
    let try_header = |header: &BatchHeader, origin: &OriginFacts, epoch: &Epoch| {
        let mut state = state();
        let fault = state
            .apply(header, &items, &raw(&items), epoch, &L1Facts::quiet(*origin, sequencer().address()))
            .unwrap_err();
        assert_eq!(state, self::state(), "all or nothing");
        assert!(!fault.as_str().is_empty() && !fault.to_string().is_empty());
        fault
    };
    let with = |change: &dyn Fn(&mut BatchHeader)| {
        let mut header = header;
        change(&mut header);
        try_header(&header, &origin(101), &epoch())
    };
    let zero = B256::ZERO;
    assert_eq!(with(&|h| h.number = 2), HeaderError::Number { got: 2, expected: 1 });
    assert_eq!(with(&|h| h.number = 0), HeaderError::Number { got: 0, expected: 1 });
    let expected = deployment().genesis_hash();
    assert_eq!(with(&|h| h.parent_hash = zero), HeaderError::Parent { got: zero, expected });
    assert_eq!(
        with(&|h| h.timestamp_ms = 0),
        HeaderError::Rule(SealError::Time { timestamp_ms: 0, parent_ms: 0 })
    );
    assert_eq!(
        with(&|h| h.timestamp_ms = 1_100_999),
        HeaderError::Rule(SealError::TimeBeforeOrigin { second: 1_100, origin: 1_101 })
    );
    let hash = header.l1_origin_hash;
    assert_eq!(with(&|h| h.l1_origin_number = 102), HeaderError::Origin { number: 102, hash });
    assert_eq!(with(&|h| h.l1_origin_hash = zero), HeaderError::Origin { number: 101, hash: zero });
    let fault = HeaderError::OriginTime { got: 1_102, expected: 1_101 };
    assert_eq!(with(&|h| h.l1_origin_time += 1), fault);
    assert_eq!(with(&|h| h.rules = 2), HeaderError::Rules { got: 2, expected: 1 });
    assert_eq!(with(&|h| h.gas_base_fee = 2), HeaderError::GasBaseFee { got: 2, expected: 3 });
    let expected = header.data_hash;
    assert_eq!(with(&|h| h.data_hash = zero), HeaderError::DataHash { got: zero, expected });
    assert_eq!(with(&|h| h.epoch = 4), HeaderError::Epoch { got: 4, expected: 3 });
    assert_eq!(with(&|h| h.envelope_count = 3), HeaderError::Count { got: 3, expected: 2 });
    assert_eq!(with(&|h| h.envelope_bytes += 1), HeaderError::Bytes { got: 1_279, expected: 1_278 });
    assert_eq!(with(&|h| h.gas -= 1), HeaderError::Gas { got: 1_999_999, expected: 2_000_000 });
    assert_eq!(with(&|h| h.base_fee -= 1), HeaderError::BaseFee { got: 999, expected: 1_000 });
    let expected = header.envelope_root;
    assert_eq!(with(&|h| h.envelope_root = zero), HeaderError::EnvelopeRoot { got: zero, expected });
    let expected = header.fee_ledger_root;
    assert_eq!(with(&|h| h.fee_ledger_root = zero), HeaderError::FeeLedgerRoot { got: zero, expected });
    assert_eq!(with(&|h| h.forced_cursor = 1), HeaderError::Rule(SealError::ForcedAhead { index: 0 }));

    // An origin older than the parent's.
    let old = OriginFacts { number: 99, ..origin(99) };
    let time = old.timestamp;
    let back = BatchHeader { l1_origin_number: 99, l1_origin_hash: old.hash, l1_origin_time: time, ..header };
    let fault = HeaderError::Rule(SealError::OriginBack { origin: 99, parent: 100 });
    assert_eq!(try_header(&back, &old, &epoch()), fault);
    // The number is not in the epoch given.
    let later = Epoch { first: 2, ..epoch() };
    let fault = HeaderError::Rule(SealError::Epoch { number: 1, epoch: 3 });
    assert_eq!(try_header(&header, &origin(101), &later), fault);
    // Other items under the same header.
    let swapped = checked_envelopes(&[good(2), good(1)]);
    let fault = state().apply(&header, &swapped, &raw(&swapped), &epoch(), &quiet(101)).unwrap_err();
    assert!(matches!(fault, HeaderError::EnvelopeRoot { .. }));
    // Other bytes than those that were checked: the data hash tells, and their lengths before that.
    let mut bytes = raw(&items);
    bytes[1][7] ^= 1;
    let fault = state().apply(&header, &items, &bytes, &epoch(), &quiet(101)).unwrap_err();
    assert!(matches!(fault, HeaderError::DataHash { .. }));
    // Another deposit.
    let deposit = Deposit { payer: Address::ZERO, amount: 1, l1_block: 101 };
    let fault =
        state().apply(&header, &items, &raw(&items), &epoch(), &deposited(101, &[deposit])).unwrap_err();
    assert!(matches!(fault, HeaderError::FeeLedgerRoot { .. }));
    assert!(!fault.is_ours());
}

/// Who holds origins back holds back deposits and forced items: a header's time is at most W ahead of its origin's.
/// Rule V-2.
#[test]
fn an_origin_may_be_as_old_as_w() {
    let limit = config().timing.max_origin_age_seconds;
    let at = |age: u64| {
        let timestamp = TIME_MS / 1_000 - age;
        let facts = L1Facts::quiet(OriginFacts { timestamp, ..origin(101) }, sequencer().address());
        let mut config = config();
        config.timing.max_origin_age_seconds = 60;
        state_with(config).seal(TIME_MS + 999, &[], NONE, 0, &epoch(), &facts).map(|_| ())
    };
    assert_eq!(limit, 14_400);
    assert_eq!(at(60), Ok(()));
    let fault = SealError::OriginTooOld { second: TIME_MS / 1_000, origin: TIME_MS / 1_000 - 61, limit: 60 };
    assert_eq!(at(61), Err(fault));
    assert_eq!(HeaderError::from(fault).as_str(), "origin_too_old");
}

#[test]
fn wrong_facts_are_ours() {
    let (header, _) = seal(&mut state(), TIME_MS, &[]).unwrap();
    for l1_block in [100, 102] {
        let deposit = Deposit { payer: Address::ZERO, amount: 1, l1_block };
        let fault = InputError::Event { l1_block, after: 100, up_to: 101 };
        let refused = state().apply(&header, &[], NONE, &epoch(), &deposited(101, &[deposit])).unwrap_err();
        assert_eq!(refused, HeaderError::Input(fault));
        assert!(refused.is_ours());
    }
    let payer = signing_key(1).address();
    let deposit = Deposit { payer, amount: u128::MAX, l1_block: 101 };
    let fault = InputError::Ledger(LedgerDeltaError::Overflow { payer, amount: u128::MAX });
    let mut state = state();
    assert_eq!(
        state.seal(TIME_MS, &[], NONE, 0, &epoch(), &deposited(101, &[deposit])),
        Err(SealError::Input(fault))
    );
    assert_eq!(state, self::state());
    let two = checked_envelopes(&[good(1), good(2)]);
    for (bytes, index) in [(&raw(&two)[..1], 1), (&[vec![0; 639], vec![0; 638]], 1), (&[], 0)] {
        let fault = SealError::Input(InputError::Bytes { index });
        assert_eq!(state.seal(TIME_MS, &two, bytes, 0, &epoch(), &quiet(101)), Err(fault));
        assert_eq!(state, self::state());
    }
    let end = Head { number: u64::MAX, ..Head::genesis(&config()) };
    let mut ended = ChainState::from_parts(config(), end, FeeLedger::default());
    let exhausted = SealError::Input(InputError::Exhausted);
    assert_eq!(ended.seal(TIME_MS, &[], NONE, 0, &epoch(), &quiet(101)), Err(exhausted));
    assert_eq!(
        ended.apply(&header, &[], NONE, &epoch(), &quiet(101)),
        Err(HeaderError::Input(InputError::Exhausted))
    );
}

/// An item of any length, as `check_items` would describe it.
fn undecodable(item_bytes: u32) -> CheckedItem {
    let (fault, id, item_hash) = (EnvelopeError::Undecodable, B256::ZERO, B256::ZERO);
    Err(RejectedItem { fault, id, item_bytes, item_hash, expiry: None, gas_limit: 0 })
}

/// Rules V-6, V-7.
#[test]
fn sizes_are_bounded() {
    let long = [undecodable(0), undecodable(33_152)];
    let fault = SealError::ItemTooLong { index: 1, bytes: 33_152 };
    assert_eq!(seal(&mut state(), TIME_MS, &long).unwrap_err(), fault);
    let many = vec![undecodable(1); 4_097];
    assert_eq!(seal(&mut state(), TIME_MS, &many).unwrap_err(), SealError::TooManyItems(4_097));
    assert!(seal(&mut state(), TIME_MS, &many[1..]).is_ok());

    // A second's bytes, over several batches.
    let mut state = state();
    let items = vec![undecodable(32_768); 200];
    seal(&mut state, TIME_MS, &items).unwrap();
    assert_eq!(state.room(TIME_MS / 1_000).1, MAX_SECOND_BYTES - 200 * 32_768);
    let over = vec![undecodable(32_768); 41];
    let fault = SealError::SecondBytes { bytes: 241 * 32_768 };
    assert_eq!(seal(&mut state, TIME_MS + 1, &over).unwrap_err(), fault);
    seal(&mut state, TIME_MS + 999, &over[1..]).unwrap();
    assert_eq!(state.room(TIME_MS / 1_000).1, 0);
    assert_eq!(state.room(TIME_MS / 1_000 + 1), (191_000_000, MAX_SECOND_BYTES));
    seal(&mut state, TIME_MS + 1_000, &over).unwrap();
}

/// Rule V-6.
#[test]
fn gas_of_a_second_is_bounded() {
    let make = |payer: u8, gas_limit: u64| {
        checked_envelopes(&[envelope(&EnvelopeFields { gas_limit, ..fields() }, &signing_key(payer), 1)])
    };
    let mut state = state();
    seal(&mut state, TIME_MS, &make(1, 150_000_000)).unwrap();
    let fault = SealError::SecondGas { gas: 191_000_001, limit: 191_000_000 };
    assert_eq!(seal(&mut state, TIME_MS + 1, &make(2, 41_000_001)).unwrap_err(), fault);
    seal(&mut state, TIME_MS + 1, &make(2, 41_000_000)).unwrap();
    assert_eq!(state.room(TIME_MS / 1_000).0, 0);
    // A skipped item asks for nothing.
    seal(&mut state, TIME_MS + 2, &make(1, 1_000_000)).unwrap();
    seal(&mut state, TIME_MS + 1_000, &make(3, 49_000_001)).unwrap();
}

/// Rules V-2, V-3, V-4.
#[test]
fn faults_of_the_chain_in_their_order() {
    let state = state();
    let many = [good(1), good(1), good(2)];
    assert_eq!(
        verdicts(&state, &checked_envelopes(&many)),
        [
            Verdict::Accepted { position: 0 },
            skipped(EnvelopeError::Duplicate),
            Verdict::Accepted { position: 1 }
        ]
    );
    // The id counts, whatever the signature; a duplicate comes before its signature.
    let mut unsigned = good(1);
    unsigned.fee_signature.0[5] ^= 1;
    let pair = [good(1), unsigned.clone(), unsigned.clone()];
    assert_eq!(verdicts(&state, &checked_envelopes(&pair))[1], skipped(EnvelopeError::Duplicate));
    // But only of what was accepted: copies that are skipped keep nobody out.
    let three = [unsigned.clone(), unsigned, good(1)];
    assert_eq!(
        verdicts(&state, &checked_envelopes(&three)),
        [
            skipped(EnvelopeError::InvalidFeeSignature),
            skipped(EnvelopeError::InvalidFeeSignature),
            Verdict::Accepted { position: 0 }
        ]
    );
    // Items that do not decode have no id to repeat.
    let garbage = [undecodable(3), undecodable(3)];
    assert_eq!(verdicts(&state, &garbage), [skipped(EnvelopeError::Undecodable); 2]);

    let make = |change: EnvelopeFields| envelope(&change, &signing_key(3), 3);
    let one = |envelope: Envelope| verdicts(&state, &checked_envelopes(&[envelope]))[0];
    assert_eq!(one(make(EnvelopeFields { expiry: 0, ..fields() })), skipped(EnvelopeError::Expired));
    let far = make(EnvelopeFields { expiry: 4_098, ..fields() });
    assert_eq!(one(far.clone()), skipped(EnvelopeError::ExpiryTooFar));
    let mut bad = far;
    bad.proof.s[31] ^= 1;
    assert_eq!(one(bad), skipped(EnvelopeError::ExpiryTooFar), "before the proof");
    assert_eq!(one(make(EnvelopeFields { max_fee: 999, ..fields() })), skipped(EnvelopeError::FeeTooLow));
    let low = EnvelopeFields { max_fee: 1_000, priority_fee: 1_001, ..fields() };
    assert_eq!(one(make(low)), skipped(EnvelopeError::FeeTooLow));
    let exact = EnvelopeFields { max_fee: 1_000, priority_fee: 1_000, ..fields() };
    assert_eq!(one(make(exact)), Verdict::Accepted { position: 0 });
    assert_eq!(one(envelope(&fields(), &signing_key(77), 1)), skipped(EnvelopeError::InsufficientFunds));
    let gas = |max_gas_fee| make(EnvelopeFields { max_gas_fee, ..fields() });
    assert_eq!(one(gas(2)), skipped(EnvelopeError::FeeTooLow), "the gas base fee is 3");
    assert_eq!(one(gas(3)), Verdict::Accepted { position: 0 });
    let huge = EnvelopeFields { max_fee: u128::MAX, priority_fee: u128::MAX, ..fields() };
    assert_eq!(one(make(huge)), skipped(EnvelopeError::InsufficientFunds), "no overflow");

    // Two envelopes with one fee nonce: the second one is another id.
    let twice = [good(4), make_other(4)];
    assert_eq!(verdicts(&state, &checked_envelopes(&twice))[1], skipped(EnvelopeError::FeeNonceUsed));
    // Fee nonce before fee, fee before funds.
    let poor = envelope(&EnvelopeFields { max_fee: 1, ..fields() }, &signing_key(77), 1);
    assert_eq!(one(poor), skipped(EnvelopeError::FeeTooLow));
    let cheap = envelope(&EnvelopeFields { max_fee: 1, priority_fee: 0, ..fields() }, &signing_key(4), 9);
    let pair = [good(4), cheap];
    assert_eq!(verdicts(&state, &checked_envelopes(&pair))[1], skipped(EnvelopeError::FeeNonceUsed));
}

fn make_other(payer: u8) -> Envelope {
    envelope(&fields(), &signing_key(payer), 1_000)
}

#[test]
fn funds_are_spent_in_order_and_credited_at_once() {
    // Enough for one fee of 639 · 1005 wei and a million gas at 3 wei, not for two.
    let fee = 639 * 1_005u128 + 3_000_000;
    let payer = signing_key(1).address();
    let poor = |balance| {
        let account = Account { balance, ..Account::default() };
        let ledger = FeeLedger::from_parts([(payer, account)], [], []);
        ChainState::from_parts(config(), Head::genesis(&config()), ledger)
    };
    let two = [good(1), envelope(&EnvelopeFields { fee_nonce: 2, ..fields() }, &signing_key(1), 2)];
    let items = checked_envelopes(&two);
    assert_eq!(verdicts(&poor(2 * fee - 1), &items)[1], skipped(EnvelopeError::InsufficientFunds));
    assert_eq!(verdicts(&poor(2 * fee), &items)[1], Verdict::Accepted { position: 1 });
    assert_eq!(verdicts(&poor(fee - 1), &items), [skipped(EnvelopeError::InsufficientFunds); 2]);
    // A deposit of the same header counts.
    let deposit = [Deposit { payer, amount: 1, l1_block: 101 }];
    let found = poor(2 * fee - 1).preview(TIME_MS, &items, 0, &epoch(), &deposited(101, &deposit)).unwrap();
    assert_eq!(found[1], Verdict::Accepted { position: 1 });
    // The sequencer can spend at once what it has just earned: tips of 2,000 wei a byte pay a fee at the base.
    let own = |nonce| {
        let fields =
            EnvelopeFields { fee_nonce: nonce, gas_limit: 0, max_fee: 1_000, priority_fee: 0, ..fields() };
        envelope(&fields, &sequencer(), nonce)
    };
    let generous = EnvelopeFields { max_fee: 3_000, priority_fee: 2_000, gas_limit: 0, ..fields() };
    let generous = envelope(&generous, &signing_key(1), 1);
    let items = checked_envelopes(&[own(1), generous, own(2), own(3), own(4)]);
    let found = verdicts(&poor(639 * 3_000), &items);
    assert_eq!(found.iter().map(Verdict::is_accepted).collect::<Vec<_>>(), [false, true, true, true, false]);
}

/// Rule F-8.
#[test]
fn surcharges_are_held() {
    let config = ChainConfig { malformed_surcharge: 500, ..config() };
    let mut state = state_with(config.clone());
    let items = checked_envelopes(&[unproved_envelope(), good(1)]);
    let (header, applied) = seal(&mut state, TIME_MS, &items).unwrap();
    let payer = signing_key(1).address();
    let fee = 639 * 1_005 + 3_000_000;
    assert_eq!(state.ledger().account(&payer).unwrap().balance, rich() - fee - 500);
    assert_eq!(state.ledger().held()[&1], [Held { item: 1, payer, amount: 500 }]);
    let mut follower = state_with(config.clone());
    follower.apply(&header, &items, &raw(&items), &epoch(), &quiet(101)).unwrap();
    assert_eq!(follower, state);
    follower.revert(applied).unwrap();
    assert_eq!(follower, state_with(config.clone()));
    // Fee without surcharge is not enough.
    let account = Account { balance: fee + 499, ..Account::default() };
    let ledger = FeeLedger::from_parts([(payer, account)], [], []);
    let poor = ChainState::from_parts(config.clone(), Head::genesis(&config), ledger);
    assert_eq!(verdicts(&poor, &items)[1], skipped(EnvelopeError::InsufficientFunds));
}

fn unproved_envelope() -> Envelope {
    let mut envelope = good(9);
    envelope.proof.s = [0; 32];
    envelope
}

#[test]
fn nonces_live_until_their_expiry() {
    let mut state = state();
    let short = EnvelopeFields { expiry: 2, ..fields() };
    let first = checked_envelopes(&[envelope(&short, &signing_key(1), 1)]);
    seal(&mut state, TIME_MS, &first).unwrap();
    let again = checked_envelopes(&[make_other(1)]);
    let Ok(checked) = &again[0] else { panic!("valid by itself") };
    assert_eq!(state.admissible(checked, TIME_MS / 1_000), Err(EnvelopeError::FeeNonceUsed));
    let (_, applied) = seal(&mut state, TIME_MS + 1, &again).unwrap();
    assert_eq!(applied.verdicts, [skipped(EnvelopeError::FeeNonceUsed)]);
    // Number 3 prunes expiry 2 before it takes items.
    assert_eq!(state.admissible(checked, TIME_MS / 1_000), Ok(()));
    let (_, applied) = seal(&mut state, TIME_MS + 2, &again).unwrap();
    assert_eq!(applied.verdicts, [Verdict::Accepted { position: 0 }]);
}

#[test]
fn admission_looks_at_the_head() {
    let state = state();
    let admit = |fields: EnvelopeFields, payer: u8| {
        let mut items = checked_envelopes(&[envelope(&fields, &signing_key(payer), 1)]);
        state.admissible(&items.remove(0).unwrap(), TIME_MS / 1_000)
    };
    assert_eq!(admit(fields(), 1), Ok(()));
    assert_eq!(admit(EnvelopeFields { expiry: 0, ..fields() }, 1), Err(EnvelopeError::Expired));
    assert_eq!(admit(EnvelopeFields { expiry: 4_098, ..fields() }, 1), Err(EnvelopeError::ExpiryTooFar));
    assert_eq!(admit(EnvelopeFields { max_fee: 999, ..fields() }, 1), Err(EnvelopeError::FeeTooLow));
    assert_eq!(admit(fields(), 77), Err(EnvelopeError::InsufficientFunds));
}

#[test]
fn checks_of_another_epoch_do_not_pass() {
    let items = checked_envelopes(&[good(1)]);
    let next = Epoch { epoch: 4, ..epoch() };
    let found = state().preview(TIME_MS, &items, 0, &next, &quiet(101)).unwrap();
    assert_eq!(found, [skipped(EnvelopeError::WrongEpoch)]);
}

/// Rule V-13.
#[test]
fn accepted_items_are_cut_in_order() {
    let bad = skipped(EnvelopeError::Expired);
    let mut position = 0;
    let verdicts: Vec<Verdict> = [1, 0, 1, 1, 0, 0, 1, 1]
        .map(|accepted| {
            position += accepted;
            if accepted == 1 { Verdict::Accepted { position: position - 1 } } else { bad }
        })
        .to_vec();
    assert_eq!(sub_batches(&verdicts, 2), [vec![0, 2], vec![3, 6], vec![7]]);
    assert_eq!(sub_batches(&verdicts, 5), [vec![0, 2, 3, 6, 7]]);
    assert_eq!(sub_batches(&verdicts, 0).len(), 5);
    assert!(sub_batches(&[bad], 2).is_empty());
    assert!(sub_batches(&[], 2).is_empty());
    assert_eq!(bad.reason(), Some("expired"));
    assert_eq!(verdicts[0].reason(), None);
}

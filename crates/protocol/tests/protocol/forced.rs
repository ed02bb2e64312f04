//! Forced items, withdrawals, settled surcharges, gas of L1 deposits, and headers that L1 makes.

use crate::common::*;
use alloy_primitives::{Address, B256};
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::validity::InputError;
use blindfold_protocol::*;

const TIME_MS: u64 = 2_000_000;
const RICH: u128 = 1_000_000_000_000_000_000;

fn state() -> ChainState {
    let account = Account { balance: RICH, ..Account::default() };
    let accounts = (1..=9).map(|i| (signing_key(i).address(), account));
    ChainState::from_parts(config(), Head::genesis(&config()), FeeLedger::from_parts(accounts, [], []))
}

fn transaction(index: u64, gas_limit: u64, at: u64) -> ForcedEntry {
    ForcedEntry::transaction(index, gas_limit, vec![2, index as u8], at)
}

fn forced(envelope: &Envelope, index: u64, at: u64) -> ForcedEntry {
    ForcedEntry::envelope(index, envelope.encode(), at)
}

fn facts(origin: u64, entries: &[ForcedEntry]) -> L1Facts {
    L1Facts { forced: entries.iter().take(17).cloned().collect(), ..quiet(origin) }
}

fn items(entries: &[ForcedEntry]) -> Vec<CheckedItem> {
    checked(&entries.iter().map(|entry| entry.item.to_vec()).collect::<Vec<_>>())
}

/// A payer without money, expiring with the epoch.
fn poor(nonce: u64) -> EnvelopeFields {
    EnvelopeFields { fee_nonce: nonce, max_fee: 0, priority_fee: 7, expiry: LAST, ..fields() }
}

/// Rules FI-1, FI-4, FI-5.
#[test]
fn forced_items_come_first_and_cost_nothing() {
    let config = ChainConfig { malformed_surcharge: 500, ..config() };
    let account = Account { balance: RICH, ..Account::default() };
    let begin = || {
        let accounts = [(signing_key(1).address(), account)];
        ChainState::from_parts(
            config.clone(),
            Head::genesis(&config),
            FeeLedger::from_parts(accounts, [], []),
        )
    };
    let free = envelope(&EnvelopeFields { expiry: 100, ..poor(1) }, &signing_key(77), 1);
    let entries = [transaction(0, 21_000, 101), forced(&free, 1, 101), transaction(2, 30_000, 102)];
    let mut given = items(&entries[..2]);
    given.extend(checked_envelopes(&[envelope(&fields(), &signing_key(1), 2), free.clone()]));
    let facts = facts(102, &entries);
    let mut state = begin();
    let (header, applied) = state.seal(TIME_MS, &given, &raw(&given), 2, &epoch(), &facts).unwrap();
    assert_eq!(
        applied.verdicts,
        [
            Verdict::ForcedTransaction,
            Verdict::Accepted { position: 0 },
            Verdict::Accepted { position: 1 },
            Verdict::Skipped(EnvelopeError::Duplicate),
        ]
    );
    assert_eq!(applied.verdicts.iter().map(Verdict::code).collect::<Vec<_>>(), [0xff, 0, 0, 11]);
    assert_eq!((header.forced_cursor, state.head().forced_cursor), (2, 2));
    assert_eq!(header.gas, 21_000 + 2 * 1_000_000);
    // Whatever came in makes the bytes dearer, a forced transaction too; what was skipped does not.
    let load: usize = given[..3].iter().zip(raw(&given)).map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(state.head().second_load_bytes, load as u64);
    assert_eq!(state.head().second_bytes, (load + raw(&given)[3].len()) as u64);
    assert_eq!((applied.accepted(), sub_batches(&applied.verdicts, 1)), (2, vec![vec![1], vec![2]]));
    // Fee nonce used, nothing paid, nothing held.
    let payer = signing_key(77).address();
    assert_eq!((state.ledger().account(&payer), state.ledger().nonce(&payer, 1)), (None, Some(100)));
    assert_eq!(state.ledger().held()[&1].iter().map(|held| held.item).collect::<Vec<_>>(), [2]);
    let again = forced(&envelope(&poor(1), &signing_key(77), 3), 2, 102);
    let other = L1Facts { forced: vec![again.clone()], ..facts.clone() };
    let used = state.preview(TIME_MS + 1, &items(&[again]), 1, &epoch(), &other).unwrap();
    assert_eq!(used, [Verdict::Skipped(EnvelopeError::FeeNonceUsed)]);

    let mut follower = begin();
    assert_eq!(follower.apply(&header, &given, &raw(&given), &epoch(), &facts), Ok(applied.clone()));
    assert_eq!(follower, state);
    follower.revert(applied).unwrap();
    assert_eq!(follower, begin());
}

/// Anybody who sees an envelope on its way into the forced queue can enqueue a copy with one bit of its proof flipped in
/// front of it. The copy has the same id (V-10).
#[test]
fn a_mangled_copy_forced_first_keeps_nobody_out() {
    let fields = EnvelopeFields { expiry: 100, ..poor(1) };
    let genuine = envelope(&fields, &signing_key(77), 1);
    let mut mangled = genuine.clone();
    mangled.proof.s[31] ^= 1;
    assert_eq!(mangled.id(), genuine.id());
    let entries = [forced(&mangled, 0, 101), forced(&genuine, 1, 101), forced(&mangled, 2, 101)];
    let facts = facts(101, &entries);
    let mut given = items(&entries);
    // The same copy once more, not forced: now there is an accepted one before it.
    given.extend(checked_envelopes(&[mangled]));
    let found = state().preview(TIME_MS, &given, 3, &epoch(), &facts).unwrap();
    assert_eq!(
        found,
        [
            Verdict::Skipped(EnvelopeError::InvalidProof),
            Verdict::Accepted { position: 0 },
            Verdict::Skipped(EnvelopeError::Duplicate),
            Verdict::Skipped(EnvelopeError::Duplicate),
        ]
    );
}

/// Rule EN-5.
#[test]
fn a_forced_transaction_elsewhere_does_not_decode() {
    let entries = [transaction(0, 21_000, 101)];
    let found = state().preview(TIME_MS, &items(&entries), 0, &epoch(), &facts(101, &entries)).unwrap();
    assert_eq!(found, [Verdict::Skipped(EnvelopeError::Undecodable)]);
    assert_eq!(found[0].code(), 1);
}

/// Rule FI-5.
#[test]
fn forced_envelopes_obey_the_rest_of_the_rule() {
    let one = |envelope: Envelope| {
        let entries = [forced(&envelope, 0, 101)];
        state().preview(TIME_MS, &items(&entries), 1, &epoch(), &facts(101, &entries)).unwrap()[0]
    };
    let make = |fields: EnvelopeFields| envelope(&fields, &signing_key(77), 1);
    let skipped = Verdict::Skipped;
    assert_eq!(one(make(poor(1))), Verdict::Accepted { position: 0 });
    assert_eq!(one(make(EnvelopeFields { expiry: 0, ..poor(1) })), skipped(EnvelopeError::Expired));
    let far = EnvelopeFields { expiry: LAST + 1, ..poor(1) };
    assert_eq!(one(make(far)), skipped(EnvelopeError::ExpiryTooFar));
    let share = config().second_gas_limit() / 16;
    let at = |gas_limit| make(EnvelopeFields { gas_limit, ..poor(1) });
    assert_eq!(one(at(share)), Verdict::Accepted { position: 0 });
    assert_eq!(one(at(share + 1)), skipped(EnvelopeError::GasLimitTooHigh));
    // In the rule's order: gas before expiry, both before signature and proof.
    let mut bad = make(EnvelopeFields { gas_limit: share + 1, expiry: 0, ..poor(1) });
    assert_eq!(one(bad.clone()), skipped(EnvelopeError::GasLimitTooHigh));
    bad.fee_signature.0[5] ^= 1;
    assert_eq!(one(bad), skipped(EnvelopeError::GasLimitTooHigh));
    let mut unproved = make(EnvelopeFields { expiry: LAST + 1, ..poor(1) });
    unproved.proof.s[31] ^= 1;
    assert_eq!(one(unproved), skipped(EnvelopeError::ExpiryTooFar));
    let mut unproved = make(poor(1));
    unproved.proof.s[31] ^= 1;
    assert_eq!(one(unproved), skipped(EnvelopeError::InvalidProof));
    let mut foreign = at(share + 1);
    foreign.header.chain_id += 1;
    assert_eq!(one(foreign), skipped(EnvelopeError::WrongChain), "before the gas limit");
    let garbage = [ForcedEntry::envelope(0, vec![1, 2, 3], 101)];
    let found = state().preview(TIME_MS, &items(&garbage), 1, &epoch(), &facts(101, &garbage)).unwrap();
    assert_eq!(found, [skipped(EnvelopeError::Undecodable)]);
}

/// Rules FI-1, V-8.
#[test]
fn what_is_due_cannot_be_left_out() {
    // Enqueued at 101, due with origin 401.
    let entries = [transaction(0, 21_000, 101), transaction(1, 21_000, 102)];
    let delay = u64::from(config().timing.forced_delay);
    let early = facts(100 + delay, &entries);
    let (header, _) = state().seal(TIME_MS, &[], NONE, 0, &epoch(), &early).unwrap();
    let due = facts(101 + delay, &entries);
    let fault = SealError::ForcedIgnored { index: 0, due: 101 + delay };
    assert_eq!(state().seal(TIME_MS, &[], NONE, 0, &epoch(), &due).unwrap_err(), fault);
    let OriginFacts { number, hash, timestamp } = due.origin;
    let late =
        BatchHeader { l1_origin_number: number, l1_origin_hash: hash, l1_origin_time: timestamp, ..header };
    let refused = state().apply(&late, &[], NONE, &epoch(), &due).unwrap_err();
    assert_eq!((refused, refused.as_str()), (HeaderError::Rule(fault), "forced_item_ignored"));
    assert!(!refused.is_ours());
    state().seal(TIME_MS, &items(&entries[..1]), &raw(&items(&entries[..1])), 1, &epoch(), &due).unwrap();
    let both = facts(102 + delay, &entries);
    let fault = SealError::ForcedIgnored { index: 1, due: 102 + delay };
    assert_eq!(
        state()
            .seal(TIME_MS, &items(&entries[..1]), &raw(&items(&entries[..1])), 1, &epoch(), &both)
            .unwrap_err(),
        fault
    );
    state().seal(TIME_MS, &items(&entries), &raw(&items(&entries)), 2, &epoch(), &both).unwrap();
}

/// Rules FI-1, V-8.
#[test]
fn a_header_takes_sixteen_at_most() {
    let entries: Vec<ForcedEntry> = (0..20).map(|index| transaction(index, 10_000_000, 101)).collect();
    let due = facts(1_000, &entries);
    let mut state = state();
    // All are due; sixteen are enough, fifteen are not.
    let fault = SealError::ForcedIgnored { index: 15, due: 401 };
    assert_eq!(
        state
            .seal(TIME_MS, &items(&entries[..15]), &raw(&items(&entries[..15])), 15, &epoch(), &due)
            .unwrap_err(),
        fault
    );
    let fault = SealError::ForcedCap(17);
    assert_eq!(
        state
            .seal(TIME_MS, &items(&entries[..17]), &raw(&items(&entries[..17])), 17, &epoch(), &due)
            .unwrap_err(),
        fault
    );
    let (header, applied) = state
        .seal(TIME_MS, &items(&entries[..16]), &raw(&items(&entries[..16])), 16, &epoch(), &due)
        .unwrap();
    assert_eq!(header.gas, 160_000_000);
    state.revert(applied).unwrap();
    let greedy = BatchHeader { forced_cursor: 17, ..header };
    let refused = state
        .apply(&greedy, &items(&entries[..16]), &raw(&items(&entries[..16])), &epoch(), &due)
        .unwrap_err();
    assert_eq!((refused, refused.as_str()), (HeaderError::Rule(fault), "forced_cap_exceeded"));
    state.apply(&header, &items(&entries[..16]), &raw(&items(&entries[..16])), &epoch(), &due).unwrap();
    let back = BatchHeader { forced_cursor: 15, number: 2, parent_hash: header.hash(), ..header };
    let due = L1Facts { forced: entries[16..].to_vec(), ..due };
    let refused = state.apply(&back, &[], NONE, &epoch(), &due).unwrap_err();
    assert_eq!(refused, HeaderError::ForcedCursor { got: 15, expected: 16 });
}

/// Rules FI-1, V-8.
#[test]
fn forced_items_are_the_queue_s_in_order() {
    let entries = [transaction(0, 21_000, 101), transaction(1, 21_000, 101)];
    let facts = facts(101, &entries);
    let swapped = [entries[1].clone(), entries[0].clone()];
    let seal = |items: &[CheckedItem], forced| {
        let fault = state().seal(TIME_MS, items, &raw(items), forced, &epoch(), &facts).unwrap_err();
        (fault, fault.as_str())
    };
    let wrong = |item, index| (SealError::ForcedItem { item, index }, "wrong_forced_item");
    assert_eq!(seal(&items(&swapped), 2), wrong(0, 0));
    assert_eq!(seal(&items(&entries[..1]), 2), wrong(1, 1), "one is missing");
    assert_eq!(seal(&[], 1), wrong(0, 0));
    let ahead = (SealError::ForcedAhead { index: 2 }, "forced_cursor_ahead");
    assert_eq!(seal(&items(&entries), 3), ahead);
    // Facts that contradict themselves are ours.
    let of = |entries: &[ForcedEntry]| {
        let facts = L1Facts { forced: entries.to_vec(), ..facts.clone() };
        state().seal(TIME_MS, &[], NONE, 0, &epoch(), &facts).unwrap_err()
    };
    let ours = |index| SealError::Input(InputError::Forced { index });
    assert_eq!(of(&entries[1..]), ours(1), "not from the cursor on");
    assert_eq!(of(&[transaction(0, 1, 102)]), ours(0), "after the origin");
    assert_eq!(of(&[transaction(0, 1, 101), transaction(1, 1, 100)]), ours(1), "out of order");
    assert!(HeaderError::from(ours(1)).is_ours());
}

/// Rule F-9.
#[test]
fn withdrawals_and_surcharges_follow_l1() {
    let config = ChainConfig { malformed_surcharge: 500, ..config() };
    let [payer, other] = [1u8, 2].map(|i| signing_key(i).address());
    let account = Account { balance: 10_000_000, ..Account::default() };
    let accounts = [(payer, account), (other, account)];
    let mut state = ChainState::from_parts(
        config.clone(),
        Head::genesis(&config),
        FeeLedger::from_parts(accounts, [], []),
    );
    let two = checked_envelopes(&[
        envelope(&fields(), &signing_key(1), 1),
        envelope(&fields(), &signing_key(2), 2),
    ]);
    state.seal(TIME_MS, &two, &raw(&two), 0, &epoch(), &quiet(101)).unwrap();
    let (fee, tips) = (639 * 1_005 + 3_000_000, 2 * 639 * 5);
    let rest = 10_000_000 - fee - 500;
    let withdrawal = |amount| LedgerEvent::Withdrawal(Withdrawal { payer, amount, l1_block: 102 });
    let deposit = LedgerEvent::Deposit(Deposit { payer, amount: 7, l1_block: 102 });
    let settled = |void| {
        let malformed = vec![(1, 1), (1, 9), (8, 0)];
        LedgerEvent::Settled(Settled { first: 1, last: 1, malformed, void, l1_block: 102 })
    };
    let after = |events: Vec<LedgerEvent>| {
        let mut state = state.clone();
        let facts = L1Facts { ledger: events, ..quiet(102) };
        let (header, _) = state.seal(TIME_MS + 1, &[], NONE, 0, &epoch(), &facts).unwrap();
        let account = |who: &Address| {
            let account = state.ledger().account(who).cloned().unwrap_or_default();
            (account.balance, account.withdrawn)
        };
        assert_eq!(header.fee_ledger_root, state.ledger().root());
        [account(&payer), account(&other), account(&config.sequencer)]
    };
    // In L1 order: what is deposited after the request is not withdrawn. Surcharges come last, wherever they stand.
    let found = after(vec![settled(false), withdrawal(u128::MAX), deposit.clone()]);
    assert_eq!(found, [(7 + 500, rest), (rest, 0), (tips + 500, 0)]);
    let found = after(vec![deposit, withdrawal(10), settled(true)]);
    assert_eq!(found, [(rest + 7 - 10 + 500, 10), (rest + 500, 0), (tips, 0)]);
}

#[test]
fn deposits_have_gas_beside_the_items() {
    let most = config().second_gas_limit();
    assert_eq!(most, 200_000_000 - 1_000_000 - 8_000_000);
    let with = |gas_limit| EnvelopeFields { gas_limit, ..fields() };
    let items = checked_envelopes(&[envelope(&with(most), &signing_key(1), 1)]);
    let mut state = state();
    let (header, applied) = state.seal(TIME_MS, &items, &raw(&items), 0, &epoch(), &quiet(900)).unwrap();
    assert_eq!((header.gas, applied.accepted()), (most, 1), "however far the origin jumps");
    assert_eq!(state.room(TIME_MS / 1_000).0, 0);
}

/// Rule O-5.
#[test]
fn l1_makes_headers_of_the_queue_alone() {
    let mut state = state();
    let deposit = Deposit { payer: Address::repeat_byte(1), amount: 5, l1_block: 101 };
    state.seal(TIME_MS, &[], NONE, 0, &epoch(), &deposited(101, &[deposit])).unwrap();
    let before = state.clone();
    let free = envelope(&poor(1), &signing_key(77), 1);
    let entries = [transaction(0, 10_000_000, 101), forced(&free, 1, 101)];
    let items: Vec<Vec<u8>> = entries.iter().map(|entry| entry.item.to_vec()).collect();
    let header = state.l1_header(TIME_MS + 5_000, &items, &epoch()).unwrap();
    let parent = before.head();
    assert_eq!((header.number, header.parent_hash), (2, parent.hash));
    assert_eq!((header.l1_origin_number, header.l1_origin_hash), (101, origin(101).hash));
    assert_eq!((header.base_fee, header.fee_ledger_root), (parent.base_fee, before.ledger().root()));
    assert_eq!((header.gas_base_fee, header.l1_origin_time), (parent.gas_base_fee, origin(101).timestamp));
    assert_eq!(header.data_hash, B256::ZERO, "L1 does not have the bytes");
    assert_eq!((header.forced_cursor, header.gas, header.envelope_count), (2, 10_000_000, 2));
    let leaf = |index: usize, code| validity::item_leaf(&B256::ZERO, &entries[index].item_hash(), code);
    assert_eq!(header.envelope_root, merkle::root(&[leaf(0, 0xff), leaf(1, 0xfe)]));

    let altered = |change: &dyn Fn(&mut BatchHeader)| {
        let (mut state, mut header) = (before.clone(), header);
        change(&mut header);
        let fault = state.apply_l1_header(&header, &items, &epoch(), 103).unwrap_err();
        assert_eq!(state, before, "all or nothing");
        fault.as_str()
    };
    let zero = B256::ZERO;
    assert_eq!(altered(&|h| h.number = 3), "wrong_number");
    assert_eq!(altered(&|h| h.parent_hash = zero), "wrong_parent");
    assert_eq!(altered(&|h| h.timestamp_ms = TIME_MS), "time_not_after_parent");
    assert_eq!(altered(&|h| h.l1_origin_number = 102), "wrong_l1_origin");
    assert_eq!(altered(&|h| h.l1_origin_hash = zero), "wrong_l1_origin");
    assert_eq!(altered(&|h| h.envelope_root = zero), "wrong_envelope_root");
    assert_eq!(altered(&|h| h.envelope_count = 1), "wrong_count");
    assert_eq!(altered(&|h| h.envelope_bytes += 1), "wrong_bytes");
    assert_eq!(altered(&|h| h.gas += 1), "wrong_gas");
    assert_eq!(altered(&|h| h.base_fee += 1), "wrong_base_fee");
    assert_eq!(altered(&|h| h.fee_ledger_root = zero), "wrong_fee_ledger_root");
    assert_eq!(altered(&|h| h.forced_cursor = 1), "wrong_forced_cursor");
    assert_eq!(altered(&|h| h.l1_origin_time += 1), "wrong_l1_origin");
    assert_eq!(altered(&|h| h.gas_base_fee += 1), "wrong_gas_base_fee");
    assert_eq!(altered(&|h| h.data_hash.0[0] = 1), "wrong_data_hash");
    assert_eq!(altered(&|h| h.rules = 2), "wrong_rules");
    assert_eq!(altered(&|h| h.epoch = 4), "wrong_epoch");
    let fewer = before.clone().apply_l1_header(&header, &items[..1], &epoch(), 103).unwrap_err();
    assert_eq!(fewer.as_str(), "wrong_count");
    // Where no epoch is registered for a number, L1 makes headers in the name of the last one.
    let ended = Epoch { first: 1, last: 1, ..epoch() };
    before.clone().apply_l1_header(&header, &items, &ended, 103).unwrap();
    let many = vec![items[0].clone(); 17];
    assert_eq!(before.l1_header(TIME_MS + 1, &many, &epoch()).unwrap_err(), SealError::ForcedCap(17));
    let long = [vec![2; 33_152]];
    assert_eq!(before.l1_header(TIME_MS + 1, &long, &epoch()).unwrap_err().as_str(), "item_too_long");

    let applied = state.apply_l1_header(&header, &items, &epoch(), 103).unwrap();
    assert_eq!(applied.verdicts, [Verdict::ForcedTransaction, Verdict::Skipped(EnvelopeError::Void)]);
    assert_eq!((applied.ledger_delta.clone(), state.head().hash), (LedgerDelta::default(), header.hash()));
    assert_eq!(state.ledger().nonce(&signing_key(77).address(), 1), None, "its fee nonce is free");
    state.revert(applied).unwrap();
    assert_eq!(state, before);
}

/// Rule O-5.
#[test]
fn l1_is_not_bound_by_the_sums_of_a_second() {
    let mut state = state();
    let full = fields();
    let items = checked_envelopes(&[envelope(
        &EnvelopeFields { gas_limit: 191_000_000, ..full },
        &signing_key(1),
        1,
    )]);
    state.seal(TIME_MS, &items, &raw(&items), 0, &epoch(), &quiet(101)).unwrap();
    let forced = [transaction(0, 10_000_000, 101).item];
    let header = state.l1_header(TIME_MS + 1, &forced, &epoch()).unwrap();
    state.apply_l1_header(&header, &forced, &epoch(), 103).unwrap();
    assert_eq!(state.room(TIME_MS / 1_000).0, 0);
    let second = state.seal(TIME_MS + 2, &[], NONE, 0, &epoch(), &quiet(103)).unwrap_err();
    assert_eq!(second.as_str(), "second_gas");
    state.seal(TIME_MS + 1_000, &[], NONE, 0, &epoch(), &quiet(103)).unwrap();
}

/// Rule O-6.
#[test]
fn the_header_after_one_that_l1_made_has_seen_it() {
    let mut state = state();
    state.seal(TIME_MS, &[], NONE, 0, &epoch(), &quiet(101)).unwrap();
    for (ms, made_at) in [(1_000, 105), (2_000, 109)] {
        let made = state.l1_header::<Vec<u8>>(TIME_MS + ms, &[], &epoch()).unwrap();
        state.apply_l1_header::<Vec<u8>>(&made, &[], &epoch(), made_at).unwrap();
        assert_eq!((state.head().made_at, state.head().l1_origin), (made_at, 101));
    }
    for origin in [101, 108] {
        let fault = state.seal(TIME_MS + 3_000, &[], NONE, 0, &epoch(), &quiet(origin)).unwrap_err();
        assert_eq!(fault, SealError::OriginBeforeL1Header { origin, made_at: 109 });
        assert_eq!(fault.as_str(), "origin_before_l1_header");
    }
    state.seal(TIME_MS + 3_000, &[], NONE, 0, &epoch(), &quiet(109)).unwrap();
    assert_eq!(state.head().made_at, 0, "for the next header alone");
}

//! G-1: no envelope that could have been sealed before a header that L1 made is accepted after it.

use crate::common::*;
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const TIME_MS: u64 = 2_000_000;

fn state() -> ChainState {
    let account = Account { balance: 1_000_000_000_000_000_000, ..Account::default() };
    let accounts = (1..=9).map(|i| (signing_key(i).address(), account));
    ChainState::from_parts(config(), Head::genesis(&config()), FeeLedger::from_parts(accounts, [], []))
}

fn of(generation: u16, nonce: u64) -> Envelope {
    envelope(&EnvelopeFields { generation, fee_nonce: nonce, ..fields() }, &signing_key(1), nonce)
}

/// L1 makes the next header, in a block after everything that the tests know of.
fn made_by_l1(state: &mut ChainState, items: &[Vec<u8>]) -> AppliedBatch {
    let timestamp_ms = state.head().timestamp_ms.max(TIME_MS) + 1;
    let header = state.l1_header(timestamp_ms, items, &epoch()).unwrap();
    state.apply_l1_header(&header, items, &epoch(), 103).unwrap()
}

const WRONG: Verdict = Verdict::Skipped(EnvelopeError::WrongGeneration);

#[test]
fn g1_what_l1_displaced_is_never_accepted_again() {
    let mut state = state();
    state.seal(TIME_MS, &[], NONE, 0, &epoch(), &quiet(101)).unwrap();
    let (sent, forced) = (of(0, 1), of(0, 2));
    let items = checked_envelopes(std::slice::from_ref(&sent));
    // Certified, opened and never posted: L1 makes a header in its place.
    let (_, displaced) = state.seal(TIME_MS + 1, &items, &raw(&items), 0, &epoch(), &quiet(101)).unwrap();
    assert_eq!(displaced.verdicts, [Verdict::Accepted { position: 0 }]);
    state.revert(displaced).unwrap();
    let before = state.clone();
    let applied = made_by_l1(&mut state, &[]);
    assert_eq!((before.head().generation, state.head().generation), (0, 1));

    // Neither forced nor sent; of the new generation both ways.
    let entry = |index, envelope: &Envelope| ForcedEntry::envelope(index, envelope.encode(), 103);
    let entries = [entry(0, &forced), entry(1, &of(1, 3))];
    let facts = L1Facts { forced: entries.to_vec(), ..quiet(103) };
    let items = checked_envelopes(&[forced, of(1, 3), sent.clone(), of(1, 4), of(2, 5)]);
    let seal =
        |state: &mut ChainState| state.seal(TIME_MS + 3, &items, &raw(&items), 2, &epoch(), &facts).unwrap();
    let (header, sealed) = seal(&mut state);
    let accepted = |position| Verdict::Accepted { position };
    assert_eq!(sealed.verdicts, [WRONG, accepted(0), WRONG, accepted(1), WRONG]);
    assert_eq!((WRONG.code(), WRONG.reason()), (18, Some("wrong_generation")));
    assert_eq!(state.head().generation, 1, "a header that L1 did not make leaves it");
    let payer = signing_key(1).address();
    assert_eq!(
        [1, 2, 3, 4, 5].map(|nonce| state.ledger().nonce(&payer, nonce)),
        [None, None, Some(100), Some(100), None]
    );
    state.revert(sealed).unwrap();
    // A header that accepts it is no header.
    let root = merkle::root(&[validity::item_leaf(&sent.id(), &keccak256(sent.encode()), 0)]);
    let wrong = BatchHeader { envelope_root: root, ..header };
    assert!(state.clone().apply(&wrong, &items, &raw(&items), &epoch(), &facts).is_err());
    state.revert(applied).unwrap();
    assert_eq!(state, before);
}

#[test]
fn l1_takes_a_forced_envelope_of_any_generation_unopened() {
    let mut state = state();
    let items = [of(0, 1).encode(), of(7, 2).encode()];
    let applied = made_by_l1(&mut state, &items);
    assert_eq!(applied.verdicts, [Verdict::Skipped(EnvelopeError::Void); 2]);
}

#[test]
fn other_faults_come_before_the_generation() {
    let state = state();
    let verdict = |fields: EnvelopeFields, payer: u8| {
        let items = checked_envelopes(&[envelope(&fields, &signing_key(payer), 1)]);
        state.preview(TIME_MS, &items, 0, &epoch(), &quiet(101)).unwrap()[0]
    };
    let late = EnvelopeFields { generation: 9, ..fields() };
    assert_eq!(verdict(late, 1), WRONG);
    for (fields, payer, fault) in [
        (EnvelopeFields { expiry: 0, ..late }, 1, EnvelopeError::Expired),
        (EnvelopeFields { expiry: 4_098, ..late }, 1, EnvelopeError::ExpiryTooFar),
        (EnvelopeFields { max_fee: 0, ..late }, 1, EnvelopeError::FeeTooLow),
        (late, 77, EnvelopeError::InsufficientFunds),
    ] {
        assert_eq!(verdict(fields, payer), Verdict::Skipped(fault));
    }
    let admissible = |fields: EnvelopeFields| {
        let item = checked_envelopes(&[envelope(&fields, &signing_key(1), 1)]).remove(0).unwrap();
        state.admissible(&item, TIME_MS / 1_000)
    };
    assert_eq!(admissible(late), Err(EnvelopeError::WrongGeneration));
    assert_eq!(admissible(fields()), Ok(()));
}

/// Rule G-2.
#[test]
fn generations_begin_again_after_the_last() {
    let mut state = state();
    let head = Head { generation: u16::MAX, ..*state.head() };
    state = ChainState::from_parts(config(), head, state.ledger().clone());
    made_by_l1(&mut state, &[]);
    assert_eq!(state.head().generation, 0);
    let items = checked_envelopes(&[of(u16::MAX, 1), of(0, 2)]);
    let verdicts = state.preview(TIME_MS + 2, &items, 0, &epoch(), &quiet(103)).unwrap();
    assert_eq!(verdicts, [WRONG, Verdict::Accepted { position: 0 }]);
}

static POOL: LazyLock<Vec<CheckedItem>> = LazyLock::new(|| {
    let envelopes: Vec<Envelope> = (0..24).map(|i| of((i % 4) as u16, i)).collect();
    checked_envelopes(&envelopes)
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(7), ..Default::default() })]

    #[test]
    fn an_expiry_is_a_generation_and_a_number(encoded: u64, generation: u16, number: u64, step: u16) {
        let expiry = Expiry::from_u64(encoded);
        prop_assert_eq!(Expiry::new(expiry.generation(), expiry.number()), expiry);
        prop_assert_eq!(expiry.to_u64(), encoded);
        let made = Expiry::new(generation, number);
        prop_assert_eq!((made.generation(), made.number()), (generation, number.min((1 << 48) - 1)));
        prop_assert_eq!(made.to_u64() >> 48, u64::from(generation));
        prop_assert_eq!(made.is_before(generation.wrapping_add(step)), (1..1 << 15).contains(&step));
        prop_assert_eq!(Expiry::new(0, number.min(Expiry::MAX_NUMBER)).to_u64(), number.min(Expiry::MAX_NUMBER));
    }

    /// G-1, whatever was sealed and taken back in between: accepted are those alone whose generation is the number of
    /// headers that L1 made before.
    #[test]
    fn g1_accepted_is_the_generation_of_the_parent(steps in vec((0u8..3, vec(0usize..24, 0..6)), 1..12)) {
        let mut state = state();
        let (mut made, mut used) = (0u16, BTreeSet::new());
        for ((step, places), time) in steps.into_iter().zip((TIME_MS + 1_000..).step_by(1_000)) {
            prop_assert_eq!(state.head().generation, made);
            if step == 0 {
                made_by_l1(&mut state, &[]);
                made += 1;
                continue;
            }
            let items: Vec<CheckedItem> = places.iter().map(|place| POOL[*place].clone()).collect();
            let (_, applied) = state.seal(time, &items, &raw(&items), 0, &epoch(), &quiet(103)).unwrap();
            let before = used.clone();
            for (place, verdict) in places.into_iter().zip(&applied.verdicts) {
                let generation = (place % 4) as u16;
                let free = !used.contains(&place);
                prop_assert_eq!(verdict.is_accepted(), free && generation == made);
                prop_assert_eq!(*verdict == WRONG, free && generation != made);
                used.extend(verdict.is_accepted().then_some(place));
            }
            if step == 1 {
                state.revert(applied).unwrap();
                used = before;
            }
            // What is stored is what goes on.
            prop_assert_eq!(&Head::decode(&state.head().encode()).unwrap(), state.head());
        }
    }
}

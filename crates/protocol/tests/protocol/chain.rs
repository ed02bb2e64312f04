//! Random chains: sealing and checking agree, undo is exact, nothing is created or lost.

use crate::common::*;
use blindfold_protocol::envelope_builder::EnvelopeFields;
use blindfold_protocol::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;

/// Envelopes of a few payers with few fee nonces, so that they collide, some of them spoilt.
static BYTES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut items = Vec::new();
    for i in 0..48u64 {
        let fields = EnvelopeFields {
            fee_nonce: i % 5,
            expiry: 1 + i % 11,
            max_fee: [900, 1_500, 5_000][i as usize % 3],
            max_gas_fee: [2, 3, 500][i as usize / 2 % 3],
            gas_limit: [0, 40_000, 1_000_000][i as usize / 5 % 3],
            priority_fee: [0, 7, 2_000][i as usize / 3 % 3],
            ..fields()
        };
        let payer = if i % 7 == 0 { sequencer() } else { signing_key(1 + (i % 4) as u8) };
        let mut envelope = envelope(&fields, &payer, i);
        match i {
            13 => envelope.fee_signature.0[3] ^= 1,
            17 => envelope.proof.s[31] ^= 1,
            19 => envelope.header.epoch += 1,
            _ => {}
        }
        items.push(envelope.encode());
    }
    items.push(vec![1, 2, 3]);
    items
});

static POOL: LazyLock<Vec<CheckedItem>> = LazyLock::new(|| checked(&BYTES));

#[derive(Clone, Debug)]
struct Batch {
    items: Vec<usize>,
    step_ms: u64,
    origin_step: u64,
    deposits: Vec<(u8, u64)>,
    withdrawals: Vec<(u8, u64)>,
    /// A settled run: its first batch, its length, whether it is void, an item claimed to be malformed.
    settled: Option<(u64, u64, bool, u32)>,
    /// Entries that come into the forced queue, and how many the header takes.
    forced: Vec<usize>,
    taken: usize,
}

fn batch() -> impl Strategy<Value = Batch> {
    let deposits = vec((0u8..6, 0u64..3_000_000), 0..3);
    let withdrawals = vec((0u8..6, 0u64..3_000_000), 0..3);
    let settled = prop::option::of((0u64..14, 0u64..4, any::<bool>(), 0u32..14));
    let forced = (vec(0usize..49, 0..3), 0usize..4);
    (vec(0usize..49, 0..14), 1u64..1_500, 0u64..2, deposits, withdrawals, settled, forced).prop_map(
        |(items, step_ms, origin_step, deposits, withdrawals, settled, (forced, taken))| Batch {
            items,
            step_ms,
            origin_step,
            deposits,
            withdrawals,
            settled,
            forced,
            taken,
        },
    )
}

fn total(ledger: &FeeLedger) -> u128 {
    let accounts = ledger.accounts().values();
    let balances: u128 = accounts.map(|account| account.balance + account.withdrawn).sum();
    balances + ledger.held().values().flatten().map(|held| held.amount).sum::<u128>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(6), ..Default::default() })]

    #[test]
    fn sealed_is_applied_and_undone(batches in vec(batch(), 1..14), surcharge in prop_oneof![Just(0u128), Just(1_000)]) {
        let config = ChainConfig { malformed_surcharge: surcharge, ..config() };
        let mut sequencer_state = ChainState::genesis(config.clone());
        let mut member = ChainState::genesis(config.clone());
        let (mut time, mut at, mut deposited) = (2_000_000, 101, 0u128);
        let mut past = Vec::new();
        let mut queue: Vec<(usize, ForcedEntry)> = Vec::new();
        for Batch { items, step_ms, origin_step, deposits, withdrawals, settled, forced, taken } in batches {
            let before_origin = sequencer_state.head().l1_origin;
            time += step_ms;
            at += origin_step;
            // Events only where the range has a block.
            let who = |payer: u8| signing_key(1 + payer % 4).address();
            let mut ledger: Vec<LedgerEvent> = Vec::new();
            if at > before_origin {
                for (payer, amount) in deposits {
                    deposited += u128::from(amount);
                    ledger.push(LedgerEvent::Deposit(Deposit { payer: who(payer), amount: amount.into(), l1_block: at }));
                }
                if let Some((first, length, void, item)) = settled {
                    let malformed = vec![(first, item)];
                    ledger.push(LedgerEvent::Settled(Settled { first, last: first + length, malformed, void, l1_block: at }));
                }
                for (payer, amount) in withdrawals {
                    ledger.push(LedgerEvent::Withdrawal(Withdrawal { payer: who(payer), amount: amount.into(), l1_block: at }));
                }
                for index in forced {
                    let entry = ForcedEntry::envelope(queue.len() as u64, BYTES[index].clone(), at);
                    queue.push((index, entry));
                }
            }
            let cursor = sequencer_state.head().forced_cursor as usize;
            let taken = taken.min(queue.len() - cursor);
            let places: Vec<usize> = queue[cursor..cursor + taken].iter().map(|(index, _)| *index).chain(items).collect();
            let items: Vec<CheckedItem> = places.into_iter().map(|index| POOL[index].clone()).collect();
            let entries = queue[cursor..].iter().take(17).map(|(_, entry)| entry.clone()).collect();
            let facts = L1Facts { ledger, forced: entries, ..quiet(at) };

            let previewed = sequencer_state.preview(time, &items, taken, &epoch(), &facts).unwrap();
            let (header, sealed) = sequencer_state.seal(time, &items, &raw(&items), taken, &epoch(), &facts).unwrap();
            prop_assert_eq!(&previewed, &sealed.verdicts);
            let before = member.clone();
            // A header that is wrong in its last field leaves no trace.
            let wrong = BatchHeader { fee_ledger_root: alloy_primitives::B256::repeat_byte(1), ..header };
            prop_assert!(member.apply(&wrong, &items, &raw(&items), &epoch(), &facts).is_err());
            prop_assert_eq!(&member, &before);
            let applied = member.apply(&header, &items, &raw(&items), &epoch(), &facts).unwrap();
            prop_assert_eq!(&applied, &sealed);
            prop_assert_eq!(&member, &sequencer_state);
            prop_assert_eq!(member.ledger().root(), header.fee_ledger_root);
            prop_assert_eq!(total(member.ledger()), deposited);
            // Base parts are out of the sequencer's reach: it earns tips, and what malformed envelopes leave.
            let fees = before.base_fees_at(time / 1_000);
            prop_assert_eq!((header.base_fee, header.gas_base_fee), (fees.base_fee, fees.gas_base_fee));
            let burnt = |state: &ChainState| {
                let account = state.ledger().account(&config.base_fee_recipient);
                account.map_or(0, |account| account.balance)
            };
            let paid = applied.verdicts.iter().zip(&items).skip(taken).filter(|(verdict, _)| verdict.is_accepted());
            let parts = paid.filter_map(|(_, item)| item.as_ref().ok()).map(|item| {
                fees.base_part(item.item_bytes, item.envelope.header.gas_limit).unwrap()
            });
            prop_assert_eq!(burnt(&member) - burnt(&before), parts.sum::<u128>());
            prop_assert_eq!(header.forced_cursor, (cursor + taken) as u64);
            // Nothing is held for what was forced.
            let held: u128 = applied.verdicts[taken..].iter().filter(|verdict| verdict.is_accepted()).map(|_| surcharge).sum();
            let there: u128 = member.ledger().held().get(&header.number).into_iter().flatten().map(|held| held.amount).sum();
            prop_assert_eq!(held, there);

            // What was stored is what goes on.
            let ledger = member.ledger();
            let ledger = FeeLedger::from_parts(ledger.accounts().clone(), ledger.nonces(), ledger.held().clone());
            let restored = ChainState::from_parts(config.clone(), *member.head(), ledger);
            prop_assert_eq!(&restored, &member);
            past.push((before, applied));
        }
        while let Some((before, applied)) = past.pop() {
            member.revert(applied).unwrap();
            prop_assert_eq!(&member, &before);
        }
    }
}

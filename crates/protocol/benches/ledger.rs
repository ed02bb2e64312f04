//! The fee ledger under a batch of 100 envelopes, however much it holds: one step forth, its root, and back.
//!
//! `cargo bench -p blindfold-protocol`.
#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use alloy_primitives::Address;
use blindfold_protocol::ledger::{Account, FeeLedger, LedgerDelta, LiveNonce};
use criterion::{Criterion, criterion_group, criterion_main};

const ENVELOPES: u64 = 100;
const SEQUENCER: Address = Address::repeat_byte(0x5e);

fn payer(index: u64) -> Address {
    Address::left_padding_from(&(index + 1).to_be_bytes())
}

/// Accounts with money, of which the first has live nonces, so many that each batch forgets `ENVELOPES` of them.
fn ledger(accounts: u64, nonces: u64) -> FeeLedger {
    let rich = Account { balance: 1 << 100, withdrawn: 0 };
    let live = |nonce| LiveNonce { payer: payer(0), nonce, expiry: nonce / ENVELOPES };
    FeeLedger::from_parts((0..accounts).map(|index| (payer(index), rich)), (0..nonces).map(live), [])
}

/// What a batch changes: a fee and a nonce for each envelope, of payers spread over all accounts, and nonces that go.
fn batch(ledger: &FeeLedger, accounts: u64) -> LedgerDelta {
    let mut changes = ledger.changes();
    changes.prune(1);
    for envelope in 0..ENVELOPES {
        let payer = payer(envelope * 7_919 % accounts);
        let fee = 622_000;
        assert!(
            changes.debit(payer, fee).and_then(|()| changes.credit(SEQUENCER, fee)).is_ok(),
            "it is rich"
        );
        changes.use_nonce(payer, (1 << 40) + envelope, 1 << 20);
    }
    changes.finish()
}

fn batches(criterion: &mut Criterion) {
    let cases = [
        ("1,000 accounts", 1_000, 0),
        ("100,000 accounts", 100_000, 0),
        ("one payer with 500,000 live nonces", 1, 500_000),
    ];
    for (name, accounts, nonces) in cases {
        let mut ledger = ledger(accounts, nonces);
        let before = ledger.root();
        criterion.bench_function(&format!("100 envelopes, {name}"), |bencher| {
            bencher.iter(|| {
                let delta = batch(&ledger, accounts);
                let applied = ledger.apply(&delta);
                let root = black_box(ledger.root());
                assert!(applied.is_ok() && ledger.revert(&delta).is_ok() && root != before);
            });
        });
    }
}

fn proofs(criterion: &mut Criterion) {
    let ledger = ledger(100_000, 0);
    criterion.bench_function("proof of one of 100,000 accounts", |bencher| {
        bencher.iter(|| black_box(ledger.prove(&payer(500))));
    });
}

criterion_group!(benches, batches, proofs);
criterion_main!(benches);

//! The fee ledger under batches of 128 envelopes, however much it holds: one step forth, its root, and back; a proof; the
//! whole of it from what was stored.
//!
//! `cargo bench -p blindfold-protocol --bench ledger`.
#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;

use alloy_primitives::{Address, keccak256};
use blindfold_protocol::ledger::{Account, FeeLedger, LedgerDelta, LiveNonce};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const ENVELOPES: u64 = 128;
/// Live nonces of a chain whose batches have had 128 envelopes for as long as a nonce may live.
const NONCES: u64 = 500_000;
const SEQUENCER: Address = Address::repeat_byte(0x5e);
const RICH: Account = Account { balance: 1 << 100, withdrawn: 0 };

fn payer(index: u64) -> Address {
    Address::from_slice(&keccak256(index.to_be_bytes())[..20])
}

/// What a ledger holds: payers with money, and live nonces that are spread over them.
#[derive(Clone, Copy)]
struct Holds {
    name: &'static str,
    payers: u64,
    nonces: u64,
}

const CASES: [Holds; 3] = [
    Holds { name: "an empty ledger", payers: 1, nonces: 0 },
    Holds { name: "500,000 payers with a live nonce each", payers: NONCES, nonces: NONCES },
    Holds { name: "one payer with 500,000 live nonces", payers: 1, nonces: NONCES },
];

impl Holds {
    /// So many nonces go with each batch as come with it.
    fn parts(self) -> (Vec<(Address, Account)>, Vec<LiveNonce>) {
        let live = |nonce| LiveNonce { payer: payer(nonce % self.payers), nonce, expiry: nonce / ENVELOPES };
        ((0..self.payers).map(|index| (payer(index), RICH)).collect(), (0..self.nonces).map(live).collect())
    }

    fn ledger(self) -> FeeLedger {
        let (accounts, nonces) = self.parts();
        FeeLedger::from_parts(accounts, nonces, [])
    }

    /// What a batch changes: a fee and a nonce for each envelope, of payers spread over all, and nonces that go.
    fn batch(self, ledger: &FeeLedger) -> LedgerDelta {
        let mut changes = ledger.changes();
        changes.prune(1);
        for envelope in 0..ENVELOPES {
            let payer = payer(envelope * 7_919 % self.payers);
            let fee = 622_000;
            assert!(
                changes.debit(payer, fee).and_then(|()| changes.credit(SEQUENCER, fee)).is_ok(),
                "it is rich"
            );
            changes.use_nonce(payer, (1 << 40) + envelope, 1 << 20);
        }
        changes.finish()
    }
}

fn batches(criterion: &mut Criterion) {
    for holds in CASES {
        let mut ledger = holds.ledger();
        let before = ledger.root();
        criterion.bench_function(&format!("128 envelopes, {}", holds.name), |bencher| {
            bencher.iter(|| {
                let delta = holds.batch(&ledger);
                let applied = ledger.apply(&delta);
                let root = black_box(ledger.root());
                assert!(applied.is_ok() && ledger.revert(&delta).is_ok() && root != before);
            });
        });
    }
}

fn proofs(criterion: &mut Criterion) {
    for holds in CASES {
        let ledger = holds.ledger();
        criterion.bench_function(&format!("proof, {}", holds.name), |bencher| {
            bencher.iter(|| black_box(ledger.prove(&payer(0))));
        });
    }
}

fn loads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    for holds in CASES {
        let parts = holds.parts();
        group.bench_function(holds.name, |bencher| {
            bencher.iter_batched(
                || parts.clone(),
                |(accounts, nonces)| FeeLedger::from_parts(accounts, nonces, []),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, batches, proofs, loads);
criterion_main!(benches);

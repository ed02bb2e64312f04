//! What a role does with each envelope before it looks at the ledger: the payer's key, and everything with the proof, for
//! groups of several sizes; and what it does to see that data on L1 is of an envelope that it has, or has not.
//!
//! `cargo bench -p blindfold-protocol --bench envelopes`.
#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a failed unwrap ends the benchmark

use std::hint::black_box;

use alloy_primitives::{Address, B256};
use blindfold_bte::{bls::SecretKey, dealer};
use blindfold_protocol::envelope_builder::{EnvelopeFields, build_with_key};
use blindfold_protocol::opened::{BatchTerms, OpenBatch, OpenedRun, RunTerms, encode};
use blindfold_protocol::signature::recover;
use blindfold_protocol::validity::check_items;
use blindfold_protocol::{
    Bundle, Canonical, ChainConfig, Deployment, Epoch, L1Timing, Signature65, SigningKey,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const CHAIN_ID: u64 = 42_069;
const SIZES: [usize; 6] = [1, 2, 4, 8, 32, 128];

fn chain() -> ChainConfig {
    ChainConfig {
        chain_id: CHAIN_ID,
        deployment: Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(1) },
        registry: Address::repeat_byte(0x11),
        fee_vault: Address::repeat_byte(0x22),
        forced_queue: Address::repeat_byte(0x23),
        hint_registry: Address::repeat_byte(0x24),
        hint_verifier: Address::repeat_byte(0x25),
        deposit_portal: Address::repeat_byte(0x26),
        output_registry: Address::repeat_byte(0x27),
        timing: L1Timing::default(),
        sequencer: Address::repeat_byte(0x28),
        fee_recipient: Address::repeat_byte(0x33),
        base_fee_recipient: Address::repeat_byte(0x34),
        block_gas_limit: 200_000_000,
        initial_base_fee: 1_000,
        min_base_fee: 10,
        initial_gas_base_fee: 3,
        min_gas_base_fee: 1,
        malformed_surcharge: 0,
        genesis_l1_origin: 100,
    }
}

fn envelopes(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let encryption_key = dealer::deal(4, 4, 3, &mut rng).unwrap().0.encryption_key();
    let (chain, payer) = (chain(), SigningKey::random(&mut rng));
    let member = |index: u8| SecretKey::generate(&[index; 32]).unwrap().public_key();
    let epoch = Epoch {
        epoch: 3,
        first: 1,
        last: 10_000,
        counts_from: 0,
        continues: 0,
        parameters_hash: B256::repeat_byte(0x44),
        encryption_key_hash: encryption_key.hash().into(),
        max_batch: 4,
        threshold: 3,
        members: (1..=4).map(member).collect(),
    };
    let fields = |fee_nonce| EnvelopeFields {
        chain_id: CHAIN_ID,
        deployment: chain.deployment,
        epoch: 3,
        fee_nonce,
        max_fee: 2_000,
        priority_fee: 5,
        max_gas_fee: 100,
        gas_limit: 21_000,
        expiry: 100,
        generation: 0,
    };
    let most = SIZES.into_iter().max().unwrap_or_default();
    let (items, keys): (Vec<Vec<u8>>, Vec<_>) = (0..most as u64)
        .map(|nonce| {
            let made = build_with_key(&encryption_key, &fields(nonce), &Bundle::default(), &payer, &mut rng);
            let (envelope, key) = made.unwrap();
            (envelope.encode(), Some(key))
        })
        .unzip();

    let (digest, signature) = (B256::repeat_byte(9), payer.sign(&B256::repeat_byte(9)));
    assert_eq!(recover(&digest, &signature), Ok(payer.address()));
    c.bench_function("payer's key", |b| b.iter(|| recover(black_box(&digest), &signature)));
    let mut group = c.benchmark_group("everything but the ledger");
    for size in SIZES {
        let items: Vec<&[u8]> = items.iter().take(size).map(Vec::as_slice).collect();
        assert!(check_items(&chain, &epoch, &items, &mut rng).iter().all(Result::is_ok));
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(format!("{size} together"), |b| {
            b.iter(|| check_items(&chain, &epoch, black_box(&items), &mut rng));
        });
    }
    group.finish();

    let run = RunTerms { chain_id: CHAIN_ID, deployment: chain.deployment };
    let terms = BatchTerms { number: 90, epoch: epoch.epoch, encryption_key_hash: epoch.encryption_key_hash };
    let (codes, signature) = (vec![0; most], Signature65::NONE);
    let own = OpenBatch { terms, signature: &signature, codes: &codes, items: &items, keys: &keys };
    let data = OpenedRun::decode(CHAIN_ID, &encode(&run, &[own])).unwrap().batches.remove(0);
    assert!(data.is_of(&run, &own, &keys));
    let mut group = c.benchmark_group("opened data");
    group.throughput(Throughput::Elements(most as u64));
    group.bench_function(format!("{most} encrypted again"), |b| {
        b.iter(|| black_box(&data).restore(&run, &terms, &encryption_key, &keys));
    });
    group.bench_function(format!("{most} compared"), |b| {
        b.iter(|| black_box(&data).is_of(&run, &own, &keys));
    });
    group.finish();
}

criterion_group!(benches, envelopes);
criterion_main!(benches);

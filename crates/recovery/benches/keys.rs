//! Keys one by one and in lanes.

use blindfold_recovery::{Signed, in_lanes, key};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use k256::ecdsa::SigningKey;
use std::hint::black_box;

fn signed(count: u8) -> Vec<Signed> {
    let one = |i: u8| {
        let key = SigningKey::from_slice(&[i + 1; 32]).expect("a key");
        let digest = [i; 32];
        let (signature, id) = key.sign_prehash_recoverable(&digest);
        Signed { digest, rs: signature.to_bytes().into(), odd: id.is_y_odd() }
    };
    (0..count).map(one).collect()
}

fn keys(c: &mut Criterion) {
    let mut group = c.benchmark_group("keys");
    for count in [1, 2, 3, 4, 8, 128] {
        let signed = signed(count);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_with_input(BenchmarkId::new("library", count), &signed, |b, signed| {
            b.iter(|| signed.iter().map(|signed| key(black_box(signed))).collect::<Vec<_>>());
        });
        if in_lanes(&[]).is_some() {
            group.bench_with_input(BenchmarkId::new("lanes", count), &signed, |b, signed| {
                b.iter(|| in_lanes(black_box(signed)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, keys);
criterion_main!(benches);

//! The operations of one small batch on one thread, in every backend that this machine has. Run with
//! `cargo bench -p blindfold-bte`; `-- portable` or `-- 'verify hints'` runs a part.

use blindfold_bte::{Backend, Ciphertext, CiphertextPoint, Proof, SessionKey, by_name, dealer};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const BATCH: usize = 32;
const AD: [u8; 32] = [1; 32];

fn backends() -> Vec<Box<dyn Backend>> {
    ["portable", "ifma"].into_iter().filter_map(|name| by_name(name, 1).ok()).collect()
}

fn batch(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (parameters, keys) = dealer::deal(BATCH as u32, 4, 3, &mut rng).expect("a valid shape");
    let ek = parameters.encryption_key();
    let made: Vec<(Ciphertext, Proof, SessionKey)> =
        (0..BATCH).map(|_| ek.encrypt(&AD, &[7; 200], b"", &mut rng).expect("a short message")).collect();
    let points: Vec<CiphertextPoint> = made.iter().map(|(c, ..)| c.header().expect("honest")).collect();
    let inputs: Vec<_> = made.iter().map(|(c, ..)| (&AD, c)).collect();
    let hints: Vec<_> = made.iter().map(|(c, _, key)| (&AD, c, key)).collect();
    let proofs: Vec<_> = made.iter().map(|(c, proof, _)| (&AD, c, proof)).collect();
    let shares: Vec<_> =
        keys.iter().map(|key| (key.index(), key.release_share(&points).expect("within limits"))).collect();
    let release = parameters.combine(&shares).expect("enough shares");

    c.bench_function("encrypt and prove", |b| {
        b.iter_batched_ref(|| rng.clone(), |rng| ek.encrypt(&AD, &[7; 200], b"", rng), BatchSize::SmallInput)
    });
    for backend in backends() {
        backend.prepare(&parameters, BATCH).expect("within limits");
        let predecrypted = backend.predecrypt(&parameters, &points).expect("within limits");
        let mut group = c.benchmark_group(format!("{}, batch of {BATCH}", backend.name()));
        group.sample_size(10);
        group.bench_function("predecrypt", |b| b.iter(|| backend.predecrypt(&parameters, &points)));
        group.bench_function("finalize", |b| {
            b.iter(|| backend.finalize(&parameters, &predecrypted, &release, &inputs))
        });
        group.bench_function("decrypt", |b| {
            b.iter(|| backend.decrypt(&parameters, &points, &release, &inputs))
        });
        group.bench_function("verify hints", |b| b.iter(|| backend.open_hints(&ek, &hints)));
        group.bench_function("verify proofs", |b| b.iter(|| backend.verify_proofs(&mut rng, &proofs)));
        group.bench_function("release share", |b| b.iter(|| backend.release_share(&keys[0], &points)));
        group.bench_function("verify share", |b| {
            b.iter(|| backend.invalid_shares(&mut rng, &parameters, &points, &shares[..1]))
        });
        group.bench_function("verify all shares", |b| {
            b.iter(|| backend.invalid_shares(&mut rng, &parameters, &points, &shares))
        });
        group.finish();
    }
}

criterion_group!(benches, batch);
criterion_main!(benches);

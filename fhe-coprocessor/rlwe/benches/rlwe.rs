//! What encryption to three recipients, opening, sums and one product cost.

use std::hint::black_box;

use blindfold_rlwe::rlwe::{Ciphertext, EncryptionWitness, Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_rlwe::schemes::compute::{Compute, ComputeCiphertext, RelinearizationKey};
use blindfold_rlwe::schemes::invoice::{Invoices, MAX_LINES};
use criterion::{Criterion, criterion_group, criterion_main};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

type Failure = Box<dyn std::error::Error>;

fn balances(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let public = PublicPolynomial::new(&Parameters::balance()?, &[0; 32])?;
    let secret = SecretKey::derive(&public, &[1; 32]);
    let keys: Vec<_> = (1..4).map(|i| SecretKey::derive(&public, &[i; 32]).public_key()).collect();
    let keys: Vec<_> = keys.iter().collect();
    let (multi, _) = balance::encrypt(&public, &keys, 77, &mut rng)?;
    let one = multi.for_recipient(0).ok_or("one recipient")?;
    let (zero, bytes) = (Ciphertext::zero(public.parameters()), one.encode());
    let mut group = criterion.benchmark_group("balance");
    group.bench_function("public key from a seed", |b| {
        b.iter(|| SecretKey::derive(&public, black_box(&[1; 32])).public_key());
    });
    group.bench_function("encrypt to 3", |b| b.iter(|| balance::encrypt(&public, &keys, 77, &mut rng)));
    group.bench_function("decrypt", |b| b.iter(|| balance::decrypt(&secret, black_box(&one))));
    let mut sum = zero.clone();
    group.bench_function("add", |b| {
        b.iter(|| {
            if sum.add(black_box(&one)).is_err() {
                sum = zero.clone();
            }
        });
    });
    group.bench_function("encode", |b| b.iter(|| black_box(&one).encode()));
    group.bench_function("decode", |b| b.iter(|| Ciphertext::decode(public.parameters(), black_box(&bytes))));
    group.finish();
    Ok(())
}

fn products(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let parameters = Parameters::compute()?;
    let public = PublicPolynomial::new(&parameters, &[0; 32])?;
    let secret = SecretKey::derive(&public, &[1; 32]);
    let (owner, key) = (secret.public_key(), RelinearizationKey::derive(&secret, &[1; 32]));
    let compute = Compute::new(&parameters)?;
    let message = vec![3; parameters.degree()];
    let mut encrypt = || -> Result<ComputeCiphertext, Failure> {
        let witness = EncryptionWitness::sample(&parameters, 1, &message, &mut rng)?;
        Ok(ComputeCiphertext::fresh(&witness.encrypt(&public, &[&owner])?, 0)?)
    };
    let (x, y) = (encrypt()?, encrypt()?);
    let mut group = criterion.benchmark_group("compute");
    group.bench_function("encrypt", |b| b.iter(|| encrypt().is_ok()));
    group.bench_function("multiply", |b| b.iter(|| compute.multiply(black_box(&x), &y, &key)));
    group.bench_function("decrypt", |b| b.iter(|| compute.open(&secret, black_box(&x)).is_ok()));
    group.finish();
    Ok(())
}

fn invoices(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let invoices = Invoices::new(&[0; 32])?;
    let secret = invoices.secret(&[1; 32]);
    let key = invoices.key(&secret);
    let quantities = invoices.encrypt_quantities(&key, &[u16::MAX; MAX_LINES], &mut rng)?;
    let prices = invoices.encrypt_prices(&key, &[u32::MAX; MAX_LINES], &mut rng)?;
    let total = invoices.total(&key, &quantities, &prices, &[2; 32])?;
    let (encoded_key, encoded_prices) = (key.encode(), prices.encode());
    let mut group = criterion.benchmark_group("invoice");
    group.bench_function("tables", |b| b.iter(|| Invoices::new(black_box(&[0; 32])).is_ok()));
    group.bench_function("key", |b| b.iter(|| invoices.key(black_box(&secret))));
    group.bench_function("encrypt prices", |b| {
        b.iter(|| invoices.encrypt_prices(&key, black_box(&[u32::MAX; MAX_LINES]), &mut rng).is_ok());
    });
    group.bench_function("decode key", |b| b.iter(|| invoices.decode_key(black_box(&encoded_key)).is_ok()));
    group.bench_function("decode prices", |b| {
        b.iter(|| invoices.decode_ciphertext(black_box(&encoded_prices)).is_ok());
    });
    group.bench_function("total", |b| {
        b.iter(|| invoices.total(&key, black_box(&quantities), &prices, &[2; 32]).is_ok());
    });
    group.bench_function("open", |b| b.iter(|| invoices.open(&secret, black_box(&quantities), &total)));
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for part in [balances, products, invoices] {
        if let Err(error) = part(criterion) {
            panic!("the benchmark's own input is refused: {error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);

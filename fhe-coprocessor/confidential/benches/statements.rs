//! What the proofs of confidential balances cost at N = 2048: sizes and medians, printed as a table.
//!
//! `cargo bench -p blindfold-confidential [-- transfer | registration | refresh | withdrawal]`; all four without a name.

#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::time::{Duration, Instant};

use ark_bls12_381::Bls12_381;
use ark_ff::Field;
use blindfold_confidential::circuits::{Refresh, Registration, Transfer, Withdrawal};
use blindfold_confidential::{Fr, Polynomial, Ring};
use blindfold_groth16::{BatchItem, Circuit, Proof, Prover, Stage, Statement, Verifier, setup, verify_batch};
use native::World;

#[path = "../testing/native.rs"]
mod native;

/// Proofs in a batch, and how many of them differ.
const BATCH: usize = 64;
const DISTINCT: usize = 2;

/// Processor time of all threads, where the system tells.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Prints the median elapsed time of `rounds`, and the mean processor time.
fn measure<T>(name: &str, rounds: usize, per: usize, mut task: impl FnMut() -> T) -> T {
    let before = processor();
    let mut last = None;
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            last = Some(task());
            start.elapsed()
        })
        .collect();
    times.sort();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / per as f64;
    let cpu = (processor() - before) / rounds as u32;
    println!("  {name:<28} median {:>9.3} ms  processor {:>9.3} ms", each(times[rounds / 2]), each(cpu));
    last.expect("at least one round")
}

fn bench<C>(
    name: &str,
    circuit: C,
    world: &mut World,
    instance: impl Fn(&mut World) -> (C::Statement, C::Witness),
) where
    C: Circuit<Fr>,
    C::Statement: Sync,
{
    println!("{name}");
    let key = measure("development set-up", 1, 1, || setup::development::<Bls12_381, _>(&circuit, &[7; 32]));
    let key = key.expect("the circuit is sound");
    let (proving, verifying) = (key.encode().len(), key.verifying().encode().len());
    let verifier = Verifier::new(key.verifying().clone());
    let prover = Prover::new(circuit, key).expect("its own key");
    let r1cs = prover.r1cs();
    println!(
        "  {} constraints, {} committed, {} private; proving key {proving} bytes, verifying key {verifying} bytes",
        r1cs.constraints(),
        r1cs.committed(),
        r1cs.private()
    );
    let instances: Vec<_> = (0..DISTINCT).map(|_| instance(world)).collect();
    let (statement, witness) = &instances[0];
    let proof = measure("prove", 5, 1, || prover.prove(statement, witness, &mut world.rng).expect("right"));
    let mut stages: Vec<(String, Instant)> = Vec::new();
    let mut stage = |stage: Stage| stages.push((format!("{stage:?}"), Instant::now()));
    prover.prove_with(statement, witness, &mut world.rng, &mut stage).expect("right");
    stages.push((String::new(), Instant::now()));
    for pair in stages.windows(2) {
        let took = pair[1].1 - pair[0].1;
        println!("    {:<26} once   {:>9.3} ms", pair[0].0.to_lowercase(), took.as_secs_f64() * 1e3);
    }
    measure("digest of a statement", 50, 1, || statement.digest());
    let challenges = [Fr::from(1u64 << 63).square(), Fr::ONE];
    measure("public values at τ", 50, 1, || statement.derived(&challenges));
    let encoded = proof.encode();
    measure("decode a proof", 50, 1, || Proof::<Bls12_381>::decode(&encoded).expect("it was just encoded"));
    measure("verify one", 50, 1, || verifier.verify(statement, &proof).expect("it holds"));
    let proofs: Vec<_> = instances
        .iter()
        .map(|(statement, witness)| prover.prove(statement, witness, &mut world.rng).expect("right"))
        .collect();
    let items: Vec<BatchItem<'_, Bls12_381>> = (0..BATCH)
        .map(|i| BatchItem {
            verifier: &verifier,
            statement: &instances[i % DISTINCT].0,
            proof: &proofs[i % DISTINCT],
        })
        .collect();
    let rng = &mut world.rng;
    measure("verify in a batch, each", 9, BATCH, || {
        assert!(verify_batch(rng, &items).iter().all(Result::is_ok));
    });
}

fn main() {
    let ring = Ring::BALANCE;
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    println!("threads {}", rayon::current_num_threads());
    let world = &mut World::new(ring, 1);
    let coefficients = world.a.coefficients().to_vec();
    measure("check a polynomial", 50, 1, || Polynomial::new(&ring, coefficients.clone()).expect("canonical"));
    if wants("transfer") {
        bench("transfer", Transfer(ring), world, |world| {
            let witness = world.transfer(1 << 50, 12_345_678, 10);
            (witness.statement.clone(), witness)
        });
    }
    if wants("refresh") {
        bench("refresh", Refresh(ring), world, |world| {
            let witness = world.refresh(1 << 50);
            (witness.statement.clone(), witness)
        });
    }
    if wants("registration") {
        bench("registration", Registration(ring), world, |world| {
            let witness = world.registration();
            (witness.statement.clone(), witness)
        });
    }
    if wants("withdrawal") {
        bench("withdrawal", Withdrawal(ring), world, |world| {
            let witness = world.withdrawal(1 << 50, 99);
            (witness.statement.clone(), witness)
        });
    }
}

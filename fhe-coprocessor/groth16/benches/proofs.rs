//! What proofs cost: medians over a synthetic circuit of 45,000 rows, printed as a table.
//!
//! `cargo bench -p blindfold-groth16 [-- small]`; `small` takes the circuit whose witness is mostly bits, else it is
//! shaped like a confidential transfer: of 25,000 committed values 10,000 small and 15,000 of 66 bits, and 35,000
//! private ones of full size (evaluations at a challenge, inverses of range checks).

#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::sync::Mutex;
use std::time::{Duration, Instant};

use ark_bls12_381::{Bls12_381, Fr};
use ark_ff::AdditiveGroup;
use blindfold_groth16::{
    BatchItem, Circuit, LinearCombination, Proof, Prover, ProvingKey, Shape, Statement, Synthesis,
    SynthesisError, Variable, Verifier, setup, verify_batch,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const BATCH: usize = 64;
const INPUTS: usize = 14;

/// Bits (one row each, and one of evaluation), values in a range (one row of evaluation, one of an inverse) and wide
/// values (one row of evaluation).
struct Synthetic {
    bits: usize,
    ranged: usize,
    wide: usize,
}

struct Public {
    digest: [u8; 32],
    values: Vec<u128>,
    /// The last challenge and its evaluation, so that verifying is measured without evaluating.
    known: Mutex<Option<(Fr, Fr)>>,
}

impl Public {
    fn evaluate(&self, point: Fr) -> Fr {
        self.values.iter().rev().fold(Fr::ZERO, |sum, value| sum * point + Fr::from(*value))
    }
}

impl Synthetic {
    fn values(&self, salt: u64) -> Vec<u128> {
        let mut state = u128::from(salt) << 64 | 0x9e37_79b9_7f4a_7c15;
        let mut next = move || {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1);
            state >> 64
        };
        let bits: Vec<u128> = (0..self.bits).map(|_| next() & 1).collect();
        let ranged: Vec<u128> = (0..self.ranged).map(|_| next() % 33).collect();
        let wide: Vec<u128> = (0..self.wide).map(|_| next() << 2).collect();
        [bits, ranged, wide].concat()
    }
}

impl Statement<Fr> for Public {
    fn digest(&self) -> [u8; 32] {
        self.digest
    }

    fn inputs(&self) -> Vec<Fr> {
        (0..INPUTS as u64).map(Fr::from).collect()
    }

    /// The sum of all values at τ: a stand-in for the evaluation of public polynomials of as many coefficients.
    fn derived(&self, challenges: &[Fr]) -> Vec<Fr> {
        let mut known = self.known.lock().expect("nobody panics with it");
        let (_, value) = match *known {
            Some((point, value)) if point == challenges[0] => (point, value),
            _ => *known.insert((challenges[0], self.evaluate(challenges[0]))),
        };
        vec![value]
    }
}

impl Circuit<Fr> for Synthetic {
    type Statement = Public;
    type Witness = Vec<u128>;
    type Committed = Vec<Variable>;

    fn shape(&self) -> Shape {
        Shape { id: [1; 32], inputs: INPUTS, challenges: 2, derived: 1 }
    }

    fn commit(
        &self,
        cs: &mut Synthesis<Fr>,
        witness: Option<&Vec<u128>>,
    ) -> Result<Vec<Variable>, SynthesisError> {
        let all = (0..self.bits + self.ranged + self.wide)
            .map(|i| cs.witness(witness.map(|values| Fr::from(values[i]))))
            .collect::<Result<Vec<_>, _>>()?;
        for bit in &all[..self.bits] {
            cs.enforce(*bit, *bit, *bit)?;
        }
        Ok(all)
    }

    fn constrain(
        &self,
        cs: &mut Synthesis<Fr>,
        all: Vec<Variable>,
        witness: Option<&Vec<u128>>,
    ) -> Result<(), SynthesisError> {
        let (tau, alpha) = (cs.challenge(0), cs.challenge(1));
        let mut value = LinearCombination::zero();
        for variable in all.iter().rev() {
            value = LinearCombination::from(cs.product(value, tau)?) + *variable;
        }
        cs.enforce(value, Variable::ONE, cs.derived(0))?;
        let ranged = self.bits..self.bits + self.ranged;
        let mut inverses: Vec<Fr> =
            ranged.clone().filter_map(|i| Some(cs.value(alpha)? + Fr::from(witness?[i]))).collect();
        ark_ff::batch_inversion(&mut inverses);
        for (place, i) in ranged.enumerate() {
            let inverse = cs.witness(inverses.get(place).copied())?;
            cs.enforce(inverse, LinearCombination::from(alpha) + all[i], Variable::ONE)?;
        }
        Ok(())
    }
}

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
    println!("{name:<28} median {:>9.3} ms  processor {:>9.3} ms", each(times[rounds / 2]), each(cpu));
    last.expect("at least one round")
}

fn main() {
    let small = std::env::args().any(|argument| argument == "small");
    let make = || {
        if small {
            Synthetic { bits: 22_000, ranged: 450, wide: 0 }
        } else {
            Synthetic { bits: 9_000, ranged: 5_000, wide: 15_000 }
        }
    };
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    println!("threads {}", rayon::current_num_threads());
    let key = measure("development set-up", 1, 1, || setup::development::<Bls12_381, _>(&make(), &[7; 32]));
    let key = key.expect("the circuit is sound");
    let (bytes, hash) = (key.encode(), key.hash());
    println!("proving key {} bytes, verifying key {} bytes", bytes.len(), key.verifying().encode().len());
    let key = measure("load a pinned proving key", 3, 1, || {
        ProvingKey::<Bls12_381>::decode_pinned(&bytes, &hash).expect("it was just encoded")
    });
    let verifier = Verifier::new(key.verifying().clone());
    let prover = measure("make a prover", 1, 1, || Prover::new(make(), key.clone()).expect("its own key"));
    println!(
        "{} constraints, {} committed, {} private",
        prover.r1cs().constraints(),
        prover.r1cs().committed(),
        prover.r1cs().private()
    );
    let instance = |salt: u64| {
        let values = make().values(salt);
        (Public { digest: [salt as u8; 32], values: values.clone(), known: Mutex::new(None) }, values)
    };
    let (statement, witness) = instance(0);
    let mut stages = Vec::new();
    let start = Instant::now();
    prover
        .prove_with(&statement, &witness, rng, &mut |stage| stages.push((stage, start.elapsed())))
        .expect("the witness is right");
    println!("stages began at {stages:?}, end {:?}", start.elapsed());
    let proof = measure("prove", 7, 1, || prover.prove(&statement, &witness, rng).expect("right"));
    let encoded = proof.encode();
    println!("proof {} bytes", encoded.len());
    measure("decode a proof", 50, 1, || Proof::<Bls12_381>::decode(&encoded).expect("it was just encoded"));
    measure("verify one", 50, 1, || verifier.verify(&statement, &proof).expect("it holds"));
    let distinct: Vec<(Public, Proof<Bls12_381>)> = (0..4)
        .map(|salt| {
            let (statement, witness) = instance(salt);
            let proof = prover.prove(&statement, &witness, rng).expect("right");
            (statement, proof)
        })
        .collect();
    let items: Vec<BatchItem<'_, Bls12_381>> = (0..BATCH)
        .map(|i| {
            let (statement, proof) = &distinct[i % distinct.len()];
            BatchItem { verifier: &verifier, statement, proof }
        })
        .collect();
    measure("verify in a batch, each", 9, BATCH, || {
        assert!(verify_batch(rng, &items).iter().all(Result::is_ok));
    });
}

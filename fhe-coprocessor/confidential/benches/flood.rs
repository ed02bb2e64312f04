//! What bad proofs cost an executor, against an honest batch of as many: processor time of both, taken in turns.
//!
//! `cargo bench -p blindfold-confidential --bench flood [-- N [full]]`: N withdrawals (64 by default), the smallest
//! transactions that carry a proof, on the toy ring or, with `full`, at N = 2048. Bad proofs are made of good ones, so they
//! decode and pass every check that is cheaper than a pairing. The target is a ratio of 2 at most.

#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::Address;
use ark_bls12_381::Bls12_381;
use blindfold_confidential::circuits::{Refresh, Registration, Transfer, Withdrawal, WithdrawalWitness};
use blindfold_confidential::executor::{Check, Groth16Proofs, Proofs, execute};
use blindfold_confidential::state::{Claim, Genesis, MemoryStorage, Premises, Settings, Storage};
use blindfold_confidential::statement::Domain;
use blindfold_confidential::transaction::{
    ConfidentialTransaction as T, Deposit, EncodedProof, PROOF_BYTES, Register, Rollover,
    Transfer as Payment, Withdraw,
};
use blindfold_confidential::{Fr, secret_commitment};
use blindfold_groth16::{Circuit, Prover, ProvingKey, Recent, Verifier, setup};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{EncryptionWitness, Parameters, PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use zeroize::Zeroizing;

const ROUNDS: usize = 12;
const AMOUNT: u64 = 5;
/// Bytes of C within a proof: after A (48) and B (96).
const C: Range<usize> = 144..192;
/// Those of the proof of knowledge of the opening: after C and D (48 each).
const KNOWLEDGE: Range<usize> = 240..288;

/// Processor time of all threads in seconds, where the system tells.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) as f64 / 100.0
}

/// Every proof passes.
struct Unverified;

impl Proofs for Unverified {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        vec![true; checks.len()]
    }
}

fn parameters(full: bool) -> Arc<Parameters> {
    if full { Parameters::balance() } else { Parameters::toy() }.expect("fixed numbers")
}

struct World {
    settings: Settings,
    storage: MemoryStorage,
    owners: Vec<(SigningKey, SecretKey)>,
    full: bool,
    public: Arc<PublicPolynomial>,
    auditor: PublicKey,
}

impl World {
    /// Owners with 1000 base units available each.
    fn new(owners: usize, full: bool) -> Self {
        let public = match full {
            true => PublicPolynomial::new(&parameters(full), &[7; 32]).expect("secure"),
            false => PublicPolynomial::insecure(&parameters(full), &[7; 32]),
        };
        let auditor = SecretKey::derive(&public, &[0xaa; 32]).public_key();
        let domain = Domain { l1_chain_id: 1, chain_id: 42, contract: Address::repeat_byte(0xcc) };
        let settings =
            Settings::new(domain, &public, &auditor, Address::repeat_byte(0x0f), 1).expect("they fit");
        let owners: Vec<_> = (0..owners as u64)
            .map(|owner| {
                let mut seed = [1; 32];
                seed[..8].copy_from_slice(&(owner + 1).to_be_bytes());
                (SigningKey::from_bytes(&seed).expect("a scalar"), SecretKey::derive(&public, &seed))
            })
            .collect();
        let allocations: Vec<_> = owners.iter().map(|(key, _)| (key.address(), 1_000_000)).collect();
        let storage = MemoryStorage::new(&Genesis::new(&allocations).expect("a small supply"));
        let mut world = Self { settings, storage, owners, full, public, auditor };
        let (proof, signature) = (EncodedProof([0; PROOF_BYTES]), Signature65([0; 65]));
        let mut batch = Vec::new();
        for (signing, secret) in &world.owners {
            let (owner, secret_commitment) = (signing.address(), secret_commitment(secret.coefficients()));
            let (key, proof) = (secret.public_key(), proof.clone());
            let register = Register { owner, key, secret_commitment, proof, signature };
            let deposit = Deposit { from: owner, account: owner, amount: 1000, nonce: 0, signature };
            let kinds = [
                T::Register(Box::new(register)),
                T::Deposit(deposit),
                T::Rollover(Rollover { account: owner, nonce: 0, signature }),
            ];
            for mut transaction in kinds {
                transaction.sign(world.settings.domain(), signing);
                batch.push(transaction.encode());
            }
        }
        world.apply(&batch);
        world
    }

    /// A withdrawal of this owner, proved.
    fn withdrawal(
        &self,
        prover: &Prover<Bls12_381, Withdrawal>,
        owner: usize,
        rng: &mut ChaCha20Rng,
    ) -> Withdraw {
        let (signing, secret) = &self.owners[owner];
        let account = signing.address();
        let Ok(Some(state)) = self.storage.account(&account) else { panic!("registered") };
        let proof = EncodedProof([0; PROOF_BYTES]);
        let mut withdraw =
            Withdraw { account, nonce: state.nonce, amount: AMOUNT, recipient: account, proof };
        let premises = Premises::Account(state);
        let claim = Claim::new(&self.settings, &T::Withdraw(Box::new(withdraw.clone())), &premises);
        let Ok(Some(Claim::Withdrawal(statement))) = claim else { panic!("a withdrawal's claim") };
        let secret = Zeroizing::new(secret.coefficients().to_vec());
        let witness = WithdrawalWitness { statement: *statement, secret };
        let proof = prover.prove(&witness.statement, &witness, rng).expect("a true statement");
        withdraw.proof.0.copy_from_slice(&proof.encode());
        withdraw
    }

    /// A withdrawal of each owner.
    fn withdrawals(&self, prover: &Prover<Bls12_381, Withdrawal>) -> Vec<Withdraw> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        (0..self.owners.len()).map(|owner| self.withdrawal(prover, owner, &mut rng)).collect()
    }

    /// Withdrawals of owner 0 that follow each other, after what is applied first.
    fn chain(
        &self,
        prover: &Prover<Bls12_381, Withdrawal>,
        first: &[Vec<u8>],
        count: usize,
    ) -> Vec<Withdraw> {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let mut ahead = Self::new(self.owners.len(), self.full);
        ahead.apply(first);
        let next = |_| {
            let withdraw = ahead.withdrawal(prover, 0, &mut rng);
            ahead.apply(&encoded([withdraw.clone()]));
            withdraw
        };
        (0..count).map(next).collect()
    }

    fn apply(&mut self, batch: &[Vec<u8>]) {
        let Ok(executed) = execute(&self.settings, &self.storage, &Unverified, *self.storage.head(), batch);
        assert!(executed.receipts.iter().all(|receipt| receipt.outcome.is_ok()));
        self.storage.commit(&executed);
    }

    /// A transfer of owner 1 to owner 0 with a proof of something else.
    fn bad_payment(&self, proof: EncodedProof) -> Vec<u8> {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let witness = EncryptionWitness::sample(&parameters(self.full), 3, &balance::limbs(AMOUNT), &mut rng)
            .expect("three");
        let [sender, receiver] = [1, 0].map(|owner: usize| self.owners[owner].0.address());
        let keys = [1, 0].map(|owner: usize| self.owners[owner].1.public_key());
        let amount = witness.encrypt(&self.public, &[&keys[0], &keys[1], &self.auditor]).expect("one set");
        let Ok(Some(state)) = self.storage.account(&sender) else { panic!("registered") };
        T::Transfer(Box::new(Payment { sender, receiver, nonce: state.nonce, fee: 1, amount, proof }))
            .encode()
    }

    /// Owner 0's rollover.
    fn rollover(&self) -> Vec<u8> {
        let (signing, _) = &self.owners[0];
        let account = signing.address();
        let Ok(Some(state)) = self.storage.account(&account) else { panic!("registered") };
        let mut rollover =
            T::Rollover(Rollover { account, nonce: state.nonce, signature: Signature65([0; 65]) });
        rollover.sign(self.settings.domain(), signing);
        rollover.encode()
    }

    /// Processor time of executing a batch, and how many were applied.
    fn execute(&self, proofs: &Groth16Proofs, batch: &[Vec<u8>]) -> (f64, usize) {
        let before = processor();
        let head = *self.storage.head();
        let Ok(executed) = execute(&self.settings, &self.storage, proofs, head, batch);
        let applied = executed.receipts.iter().filter(|receipt| receipt.outcome.is_ok()).count();
        (processor() - before, applied)
    }
}

fn verifier(circuit: impl Circuit<Fr>) -> Verifier<Bls12_381> {
    let key: ProvingKey<Bls12_381> = setup::development(&circuit, &[8; 32]).expect("the circuit is sound");
    Verifier::new(key.verifying().clone())
}

/// The proof with another one's C, or proof of knowledge.
fn broken(withdraw: &Withdraw, other: &Withdraw, part: Range<usize>) -> Withdraw {
    let mut broken = withdraw.clone();
    broken.proof.0[part.clone()].copy_from_slice(&other.proof.0[part]);
    broken
}

fn encoded(batch: impl IntoIterator<Item = Withdraw>) -> Vec<Vec<u8>> {
    batch.into_iter().map(|withdraw| T::Withdraw(Box::new(withdraw)).encode()).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(64).max(2);
    let world = World::new(count, arguments.iter().any(|argument| argument == "full"));
    let ring = *world.settings.ring();
    let key: ProvingKey<Bls12_381> =
        setup::development(&Withdrawal(ring), &[8; 32]).expect("the circuit is sound");
    // One executor sees the flood, another honest batches: what they saw lately steers how they look for bad proofs.
    let [of_flood, of_honest] = [(); 2].map(|()| Groth16Proofs {
        registration: verifier(Registration(ring)),
        transfer: verifier(Transfer(ring)),
        refresh: verifier(Refresh(ring)),
        withdrawal: Verifier::new(key.verifying().clone()),
        recent: Recent::default(),
    });
    let started = Instant::now();
    let prover = Prover::new(Withdrawal(ring), key).expect("its own key");
    let good = world.withdrawals(&prover);
    let chain = encoded(world.chain(&prover, &[], count));
    let rollover = world.rollover();
    let after = encoded(world.chain(&prover, std::slice::from_ref(&rollover), count));
    println!("{count} withdrawals proved in {:.1} s, N = {}", started.elapsed().as_secs_f64(), ring.degree());

    let honest = encoded(good.clone());
    let every = |step: usize| {
        let made = good.iter().enumerate().map(|(i, one)| match i % step {
            0 => broken(one, &good[(i + 1) % count], C),
            _ => one.clone(),
        });
        (encoded(made), count - count.div_ceil(step))
    };
    // No piece of 16 in which the openings' proofs hold together.
    let both = good.iter().enumerate().map(|(i, one)| {
        let part = if i % 16 == 5 { KNOWLEDGE } else { C };
        broken(one, &good[(i + 1) % count], part)
    });
    // As many for one account and nonce: the bytes differ by their amounts.
    let one_account = (0..count).map(|i| {
        let mut one = broken(&good[0], &good[1], C);
        one.amount += i as u64;
        one
    });
    let one_account: Vec<Withdraw> = one_account.collect();
    // All bad, and one bad opening, in turns: what was seen lately says the opposite of what comes.
    let turns = good.iter().enumerate().map(|(i, one)| match (i / 16 % 2, i % 16) {
        (0, 1 | 5 | 9 | 13) | (1, 5) => broken(one, &good[(i + 1) % count], KNOWLEDGE),
        (0, _) => broken(one, &good[(i + 1) % count], C),
        _ => one.clone(),
    });
    let turns: Vec<Withdraw> = turns.collect();
    let held = turns.iter().zip(&good).filter(|(one, good)| one == good).count();
    let mut alternative = broken(&good[0], &good[1], C);
    alternative.amount += 1;
    let contested = [encoded([alternative]), chain.clone()].concat();
    let credited = [vec![world.bad_payment(good[1].proof.clone()), rollover.clone()], after.clone()].concat();
    let rolled = [vec![rollover], after].concat();
    let floods = [
        ("all of them bad", &honest, every(1)),
        ("all bad in both ways", &honest, (encoded(both), 0)),
        ("every 2nd bad", &honest, every(2)),
        ("every 4th bad", &honest, every(4)),
        ("every 8th bad", &honest, every(8)),
        ("every 16th bad", &honest, every(16)),
        ("16 bad, 1 of 16, in turns", &honest, (encoded(turns), held)),
        ("all bad, one account", &honest, (encoded(one_account), 0)),
        ("a chain behind one bad", &chain, (contested, count)),
        ("the same, by a rollover", &rolled, (credited, count + 1)),
    ];
    for (name, honest, (flood, applied)) in floods {
        let (mut flooded, mut alone) = (0.0, 0.0);
        for _ in 0..ROUNDS {
            let (time, done) = world.execute(&of_honest, honest);
            assert_eq!(done, honest.len());
            alone += time;
            let (time, done) = world.execute(&of_flood, &flood);
            assert_eq!(done, applied, "{name}");
            flooded += time;
        }
        let each = |time: f64| time * 1e3 / (ROUNDS * honest.len()) as f64;
        println!(
            "  {name:<25} processor {:>6.3} ms each, honest {:>6.3} ms each: {:.2} times",
            each(flooded),
            each(alone),
            flooded / alone
        );
    }
}

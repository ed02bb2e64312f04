//! How many transfers an executor applies, at N = 2048: medians of elapsed and means of processor time, as a table.
//!
//! `cargo bench -p blindfold-confidential --bench executor [-- N [FILE]]`: without a number all but the proofs (every proof
//! passes), in batches of 512 from as many senders as there are. With one, N transfers are proved first and their proofs
//! verified; FILE keeps them, so that the next run need not prove.

#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::Address;
use ark_bls12_381::Bls12_381;
use blindfold_confidential::circuits::{
    Randomness, Refresh as RefreshCircuit, Registration, Transfer as TransferCircuit, TransferWitness,
    Withdrawal,
};
use blindfold_confidential::executor::{Check, Groth16Proofs, Proofs, execute};
use blindfold_confidential::state::{Claim, Genesis, MemoryStorage, Premises, Settings, Storage};
use blindfold_confidential::statement::Domain;
use blindfold_confidential::transaction::{
    ConfidentialTransaction, Deposit, EncodedProof, PROOF_BYTES, Register, Rollover, Transfer,
};
use blindfold_confidential::{Fr, secret_commitment};
use blindfold_groth16::{Circuit, Prover, ProvingKey, Recent, Verifier, setup};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{EncryptionWitness, Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::ThreadPoolBuilder;
use zeroize::Zeroizing;

const SENDERS: usize = 512;
const ROUNDS: usize = 5;
const AMOUNT: u64 = 5;
const FEE: u64 = 1;

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

struct World {
    settings: Settings,
    public: Arc<PublicPolynomial>,
    owners: Vec<(SigningKey, SecretKey)>,
    auditor: SecretKey,
    storage: MemoryStorage,
    rng: ChaCha20Rng,
}

impl World {
    /// Owners with 1000 base units available each.
    fn new(owners: usize) -> Self {
        let parameters = Parameters::balance().expect("fixed numbers");
        let public = PublicPolynomial::new(&parameters, &[7; 32]).expect("a secure set");
        let auditor = SecretKey::derive(&public, &[0xaa; 32]);
        let domain = Domain { l1_chain_id: 1, chain_id: 42, contract: Address::repeat_byte(0xcc) };
        let operator = Address::repeat_byte(0x0f);
        let settings =
            Settings::new(domain, &public, &auditor.public_key(), operator, FEE).expect("they fit");
        let seed = |owner: usize| {
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&(owner as u64 + 1).to_be_bytes());
            seed
        };
        let owners: Vec<_> = (0..owners)
            .map(|owner| {
                let signing = SigningKey::from_bytes(&seed(owner)).expect("a scalar");
                (signing, SecretKey::derive(&public, &seed(owner)))
            })
            .collect();
        let allocations: Vec<(Address, u64)> =
            owners.iter().map(|(signing, _)| (signing.address(), 1_000_000)).collect();
        let storage = MemoryStorage::new(&Genesis::new(&allocations).expect("a small supply"));
        let mut world =
            Self { settings, public, owners, auditor, storage, rng: ChaCha20Rng::seed_from_u64(1) };
        let (proof, signature) = (EncodedProof([0; PROOF_BYTES]), Signature65([0; 65]));
        let mut batch = Vec::new();
        for (signing, secret) in &world.owners {
            let owner = signing.address();
            let commitment = secret_commitment(secret.coefficients());
            let kinds = [
                ConfidentialTransaction::Register(Box::new(Register {
                    owner,
                    key: secret.public_key(),
                    secret_commitment: commitment,
                    proof: proof.clone(),
                    signature,
                })),
                ConfidentialTransaction::Deposit(Deposit {
                    from: owner,
                    account: owner,
                    amount: 1000,
                    nonce: 0,
                    signature,
                }),
                ConfidentialTransaction::Rollover(Rollover { account: owner, nonce: 0, signature }),
            ];
            for mut transaction in kinds {
                transaction.sign(world.settings.domain(), signing);
                batch.push(transaction.encode());
            }
        }
        let head = *world.storage.head();
        let Ok(executed) = execute(&world.settings, &world.storage, &Unverified, head, &batch);
        assert!(executed.receipts.iter().all(|receipt| receipt.outcome.is_ok()));
        world.storage.commit(&executed);
        world
    }

    /// A transfer to the next owner, and what its prover needs.
    fn transfer(&mut self, sender: usize) -> (Transfer, TransferWitness) {
        let receiver = (sender + 1) % self.owners.len();
        let keys = [sender, receiver].map(|owner| self.owners[owner].1.public_key());
        let auditor = self.auditor.public_key();
        let parameters = self.public.parameters();
        let limbs = balance::limbs(AMOUNT);
        let witness =
            EncryptionWitness::sample(parameters, 3, &limbs, &mut self.rng).expect("three recipients");
        let amount = witness.encrypt(&self.public, &[&keys[0], &keys[1], &auditor]).expect("one set");
        let [from, to] = [sender, receiver].map(|owner| self.owners[owner].0.address());
        let account = |address| self.storage.account(&address).expect("in memory").expect("registered");
        let (paying, paid) = (account(from), account(to));
        let transfer = Transfer {
            sender: from,
            receiver: to,
            nonce: paying.nonce,
            fee: FEE,
            amount,
            proof: EncodedProof([0; PROOF_BYTES]),
        };
        let premises = Premises::Payment(paying, paid.identity.key.clone());
        let transaction = ConfidentialTransaction::Transfer(Box::new(transfer.clone()));
        let Ok(Some(Claim::Transfer(statement))) = Claim::new(&self.settings, &transaction, &premises) else {
            panic!("a transfer's claim")
        };
        let mut e0 = witness.e0().map(|e0| Zeroizing::new(e0.try_into().expect("eight limbs")));
        let randomness = Randomness {
            u: Zeroizing::new(witness.u().to_vec()),
            e1: Zeroizing::new(witness.e1().to_vec()),
            e0: [(); 3].map(|()| e0.next().expect("three recipients")),
        };
        let secret = Zeroizing::new(self.owners[sender].1.coefficients().to_vec());
        let witness =
            TransferWitness { statement: *statement, secret, amount: Zeroizing::new(AMOUNT), randomness };
        (transfer, witness)
    }

    fn measure(&self, name: &str, proofs: &impl Proofs, batch: &[Vec<u8>]) {
        for threads in [1, 2] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let before = processor();
            let mut times: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let start = Instant::now();
                    let head = *self.storage.head();
                    let Ok(executed) =
                        pool.install(|| execute(&self.settings, &self.storage, proofs, head, batch));
                    let elapsed = start.elapsed().as_secs_f64();
                    assert!(executed.receipts.iter().all(|receipt| receipt.outcome.is_ok()));
                    elapsed
                })
                .collect();
            let cpu = (processor() - before) / (ROUNDS * batch.len()) as f64;
            times.sort_by(f64::total_cmp);
            let each = times[ROUNDS / 2] / batch.len() as f64;
            println!(
                "  {name:<24} {:>4} transfers, {threads} threads: median {:>7.3} ms each, {:>6.0} per second, processor {:>7.3} ms each",
                batch.len(),
                each * 1e3,
                1.0 / each,
                cpu * 1e3
            );
        }
    }
}

fn verifier(circuit: impl Circuit<Fr>) -> Verifier<Bls12_381> {
    let key: ProvingKey<Bls12_381> = setup::development(&circuit, &[8; 32]).expect("the circuit is sound");
    Verifier::new(key.verifying().clone())
}

/// A transfer of each sender, proved.
fn prove(world: &mut World, prover: &Prover<Bls12_381, TransferCircuit>) -> Vec<Vec<u8>> {
    (0..world.owners.len())
        .map(|sender| {
            let (mut transfer, witness) = world.transfer(sender);
            let proof = prover.prove(&witness.statement, &witness, &mut world.rng).expect("a true statement");
            transfer.proof.0.copy_from_slice(&proof.encode());
            encode(transfer)
        })
        .collect()
}

fn encode(transfer: Transfer) -> Vec<u8> {
    ConfidentialTransaction::Transfer(Box::new(transfer)).encode()
}

fn main() {
    let proved: usize = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(0);
    let mut world = World::new(if proved == 0 { SENDERS } else { proved.max(2) });
    let count = world.owners.len();
    if proved == 0 {
        let batch: Vec<Vec<u8>> = (0..count).map(|sender| encode(world.transfer(sender).0)).collect();
        world.measure("without proofs", &Unverified, &batch);
        return;
    }
    let ring = *world.settings.ring();
    let key: ProvingKey<Bls12_381> =
        setup::development(&TransferCircuit(ring), &[8; 32]).expect("the circuit is sound");
    let proofs = Groth16Proofs {
        registration: verifier(Registration(ring)),
        transfer: Verifier::new(key.verifying().clone()),
        refresh: verifier(RefreshCircuit(ring)),
        withdrawal: verifier(Withdrawal(ring)),
        recent: Recent::default(),
    };
    let prover = Prover::new(TransferCircuit(ring), key).expect("its own key");
    let kept = std::env::args().skip_while(|argument| argument.parse::<usize>().is_err()).nth(1);
    let batch = match kept.as_ref().and_then(|file| std::fs::read(file).ok()) {
        Some(bytes) => bytes.chunks(bytes.len() / count).map(<[u8]>::to_vec).collect(),
        None => prove(&mut world, &prover),
    };
    if let Some(file) = kept {
        std::fs::write(file, batch.concat()).expect("a file that can be written");
    }
    world.measure("with proofs", &proofs, &batch);
    world.measure("without proofs", &Unverified, &batch);
}

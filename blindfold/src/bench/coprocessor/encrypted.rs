//! The encrypted balances of the coprocessor, through the executor that the service runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::Address;
use anyhow::{Context, Result, anyhow, ensure};
use blindfold_confidential::executor::{Check, Executed, Proofs, Receipt, execute};
use blindfold_confidential::state::{
    Account, Claim, Genesis, Head, MemoryStorage, PublicAccount, Settings, Storage,
};
use blindfold_confidential::statement::Domain;
use blindfold_confidential::transaction::{ConfidentialTransaction, Deposit, EncodedProof, Rollover};
use blindfold_protocol::SigningKey;
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::plan::{FEE, Payment, Plan};
use super::prover::{Draft, Owner, Provers, UNSIGNED};
use super::report::{Figures, OnCores};
use super::{Measure, Progress, Times, timed};

const OPERATOR: Address = Address::repeat_byte(0xff);
const FUNDER: Address = Address::repeat_byte(0xfe);

/// A deployment in memory.
struct World {
    settings: Settings,
    public: Arc<PublicPolynomial>,
    owners: Vec<Owner>,
    auditor: SecretKey,
    storage: MemoryStorage,
    rng: StdRng,
}

/// A proved transfer, and what it was proved about.
struct Proved {
    bytes: Vec<u8>,
    claim: Claim,
    proof: EncodedProof,
}

/// Proofs that were just made, while the state is taken on to the next one.
struct Unverified;

impl Proofs for Unverified {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        vec![true; checks.len()]
    }
}

pub(super) fn run(plan: &Plan, measure: &Measure) -> Result<Figures> {
    let mut world = World::new(plan)?;
    eprintln!("encrypted balances: DEVELOPMENT set-up of four circuits");
    let provers = measure.pool.install(|| Provers::new(*world.settings.ring()))?;
    measure.pool.install(|| world.fund(plan, &provers))?;
    let start = world.storage.clone();
    let (prove, proved) = measure.pool.install(|| world.prove(plan, &provers))?;

    let checks: Vec<Check<'_>> =
        proved.iter().map(|proved| Check { claim: &proved.claim, proof: &proved.proof }).collect();
    let verify = |checks: &[Check<'_>]| {
        ensure!(provers.proofs.verify(checks).iter().all(|holds| *holds), "a proof does not hold");
        Ok(())
    };
    let (verify_one, ()) = measure.time_single(|| verify(&checks[..1]))?;
    let (verify_batch, ()) = measure.time(|| verify(&checks))?;

    let batch: Vec<&[u8]> = proved.iter().map(|proved| &proved.bytes[..]).collect();
    let (execution, executed) = measure.time(|| apply(&world.settings, &provers.proofs, &start, &batch))?;
    let first = Outcome::of(&start, &[executed]);
    let mut other = start.clone();
    let parts: Vec<Executed> = measure.other.install(|| {
        batch
            .chunks(batch.len().div_ceil(3))
            .map(|part| {
                let executed = apply(&world.settings, &provers.proofs, &other, part)?;
                other.commit(&executed);
                Ok(executed)
            })
            .collect::<Result<_>>()
    })?;
    let second = Outcome::of(&start, &parts);
    Ok(Figures {
        transfers: batch.len(),
        tps: 1e3 * batch.len() as f64 / execution.wall_ms,
        execute_ms: execution.wall_ms,
        proof_bytes: proved[0].proof.0.len(),
        constraints: Some(provers.transfer_constraints()),
        prove_ms: prove.wall_ms,
        verify_ms: verify_one.wall_ms,
        batch_verify_ms: verify_batch.each(batch.len()).wall_ms,
        cpu: OnCores::of(prove, verify_one, verify_batch.each(batch.len()), execution),
        bytes_per_transfer: batch[0].len(),
        executors_identical: first == second,
        conserved: world.conserved(plan, &first.storage)?,
    })
}

/// Executes a batch of which nothing may be refused.
fn apply(
    settings: &Settings,
    proofs: &impl Proofs,
    storage: &MemoryStorage,
    batch: &[impl AsRef<[u8]> + Sync],
) -> Result<Executed> {
    let executed = execute(settings, storage, proofs, *storage.head(), batch)?;
    for receipt in &executed.receipts {
        receipt.outcome.map_err(|refusal| anyhow!("{} was refused: {refusal}", receipt.id))?;
    }
    Ok(executed)
}

/// What executors must agree on: every receipt with its root, and the state, bit for bit.
struct Outcome {
    receipts: Vec<Receipt>,
    storage: MemoryStorage,
}

impl Outcome {
    fn of(start: &MemoryStorage, parts: &[Executed]) -> Self {
        let mut storage = start.clone();
        parts.iter().for_each(|executed| storage.commit(executed));
        let receipts = parts.iter().flat_map(|executed| executed.receipts.clone()).collect();
        Self { receipts, storage }
    }

    fn state(&self) -> (Head, BTreeMap<Address, &Account>, BTreeMap<Address, PublicAccount>) {
        let accounts = self.storage.accounts().map(|account| (account.identity.owner, &**account)).collect();
        let public = self.storage.public().map(|(address, account)| (*address, *account)).collect();
        (*self.storage.head(), accounts, public)
    }
}

impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        self.receipts == other.receipts && self.state() == other.state()
    }
}

impl World {
    /// Keys, and a public ledger that has everything.
    fn new(plan: &Plan) -> Result<Self> {
        let mut rng = StdRng::seed_from_u64(plan.seed);
        let mut seed = || rng.random::<[u8; 32]>();
        let public = PublicPolynomial::new(&Parameters::balance()?, &seed())?;
        let auditor = SecretKey::derive(&public, &seed());
        let owners = (0..plan.accounts())
            .map(|_| {
                let signing = SigningKey::from_bytes(&seed())?;
                Ok(Owner { signing, secret: SecretKey::derive(&public, &seed()) })
            })
            .collect::<Result<Vec<Owner>>>()?;
        let domain = Domain { l1_chain_id: 1, chain_id: 42, contract: Address::repeat_byte(0xcc) };
        let settings = Settings::new(domain, &public, &auditor.public_key(), OPERATOR, FEE)?;
        let mut allocations: Vec<(Address, u64)> =
            owners.iter().map(|owner| (owner.signing.address(), plan.deposit)).collect();
        // So that the first fee does not make a public account in the middle of the batch.
        allocations.extend([(OPERATOR, 0), (FUNDER, 0)]);
        let storage = MemoryStorage::new(&Genesis::new(&allocations)?);
        Ok(Self { settings, public, owners, auditor, storage, rng })
    }

    /// Registers everybody, with a proof, and makes the deposits available.
    fn fund(&mut self, plan: &Plan, provers: &Provers) -> Result<()> {
        let mut progress = Progress::new("encrypted balances, registrations proved", plan.accounts());
        let mut batch = Vec::new();
        for (index, owner) in self.owners.iter().enumerate() {
            batch.push(provers.register(&self.settings, owner, &mut self.rng)?);
            let account = owner.signing.address();
            let (amount, nonce, signature) = (plan.deposit, 0, UNSIGNED);
            for mut transaction in [
                ConfidentialTransaction::Deposit(Deposit {
                    from: account,
                    account,
                    amount,
                    nonce,
                    signature,
                }),
                ConfidentialTransaction::Rollover(Rollover { account, nonce, signature }),
            ] {
                transaction.sign(self.settings.domain(), &owner.signing);
                batch.push(transaction.encode());
            }
            progress.at(index + 1);
        }
        let executed = apply(&self.settings, &provers.proofs, &self.storage, &batch)?;
        self.storage.commit(&executed);
        Ok(())
    }

    fn account(&self, owner: usize) -> Result<Arc<Account>> {
        let address = self.owners[owner].signing.address();
        self.storage.account(&address)?.context("an owner without an account")
    }

    /// Proves every payment after the ones before it.
    fn prove(&mut self, plan: &Plan, provers: &Provers) -> Result<(Times, Vec<Proved>)> {
        let mut progress = Progress::new("encrypted balances, transfers proved", plan.payments.len());
        let (mut samples, mut all) = (vec![], vec![]);
        let auditor = self.auditor.public_key();
        for Payment { from, to, amount } in &plan.payments {
            let (sender, receiver) = (self.account(*from)?, self.account(*to)?);
            let [payer, payee] = [from, to].map(|owner| self.owners[*owner].secret.public_key());
            let draft = Draft {
                public: &self.public,
                owner: &self.owners[*from],
                sender: &sender,
                receiver: &receiver,
                keys: [&payer, &payee, &auditor],
                amount: *amount,
            };
            let (sample, made) = timed(|| provers.transfer(draft, &self.settings, &mut self.rng));
            let (transfer, claim) = made?;
            samples.push(sample);
            let proof = transfer.proof.clone();
            let bytes = ConfidentialTransaction::Transfer(Box::new(transfer)).encode();
            let executed = apply(&self.settings, &Unverified, &self.storage, &[&bytes])?;
            self.storage.commit(&executed);
            all.push(Proved { bytes, claim, proof });
            progress.at(all.len());
        }
        Ok((Times::median(&samples), all))
    }

    /// Whether every balance is the plain model's.
    fn conserved(&self, plan: &Plan, end: &MemoryStorage) -> Result<bool> {
        let mut held = 0;
        for (owner, expected) in self.owners.iter().zip(&plan.balances) {
            let account = end.account(&owner.signing.address())?.context("an owner without an account")?;
            for (sum, expected) in [&account.available, &account.pending].iter().zip(expected) {
                if balance::decrypt(&owner.secret, sum.ciphertext()) != Ok(*expected) {
                    return Ok(false);
                }
                held += expected;
            }
        }
        let public: u64 = end.public().map(|(_, account)| account.balance).sum();
        Ok(public == plan.fees() && end.head().confidential == held && public + held == plan.supply())
    }
}

//! The additive-only baseline: twisted ElGamal with range proofs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use blindfold_elgamal_baseline::{
    Address,
    decrypt::Table,
    elgamal::{Generators, SecretKey},
    ledger::{Ledger, Settings},
    registration::{Register, Rollover},
    spend::{Order, Premises, Spend, verify_together},
};
use blindfold_runtime::rng;
use rand::{SeedableRng, rngs::StdRng};

use super::plan::{FEE, Plan};
use super::report::{Figures, OnCores};
use super::{Measure, Progress, Times, timed};

const DOMAIN: &[u8] = b"blindfold bench coprocessor";
const OPERATOR: Address = [0xff; 20];
const FUNDER: Address = [0xfe; 20];

fn owner(index: usize) -> Address {
    let mut owner = [0; 20];
    owner[..8].copy_from_slice(&(index as u64).to_be_bytes());
    owner
}

/// A proved transfer, and what it was proved about.
struct Proved {
    bytes: Vec<u8>,
    spend: Spend,
    premises: Premises,
}

pub(super) fn run(plan: &Plan, measure: &Measure) -> Result<Figures> {
    let mut rng = StdRng::seed_from_u64(plan.seed);
    let (start, secrets) = funded(plan, &mut rng)?;
    let (prove, proved) = prove(plan, measure, &start, &secrets, &mut rng)?;
    let generators = &start.settings().generators;
    let first = proved.first().context("no transfer")?;
    let (verify_one, ()) = measure.time_single(|| {
        let claims = [(&first.spend, &first.premises)];
        ensure!(verify_together(generators, DOMAIN, &claims, &mut weights()), "a proof does not hold");
        Ok(())
    })?;
    let claims: Vec<(&Spend, Premises)> =
        proved.iter().map(|proved| (&proved.spend, proved.premises.clone())).collect();
    let (verify_batch, ()) = measure.time(|| {
        ensure!(start.verify(&claims, &mut weights()), "the batch does not verify");
        Ok(())
    })?;
    let batch: Vec<Vec<u8>> = proved.iter().map(|proved| proved.bytes.clone()).collect();
    let (execution, end) = measure.time(|| execute(&start, &[&batch]))?;
    let parts: Vec<&[Vec<u8>]> = batch.chunks(batch.len().div_ceil(3)).collect();
    let other = measure.other.install(|| execute(&start, &parts))?;
    Ok(Figures {
        transfers: batch.len(),
        tps: 1e3 * batch.len() as f64 / execution.wall_ms,
        execute_ms: execution.wall_ms,
        proof_bytes: first.spend.proof_bytes(),
        constraints: None,
        prove_ms: prove.wall_ms,
        verify_ms: verify_one.wall_ms,
        batch_verify_ms: verify_batch.each(batch.len()).wall_ms,
        cpu: OnCores::of(prove, verify_one, verify_batch.each(batch.len()), execution),
        bytes_per_transfer: first.bytes.len(),
        executors_identical: end.digest() == other.digest(),
        conserved: conserved(plan, &end, &secrets)?,
    })
}

/// Every account registered, with its deposit available.
fn funded(plan: &Plan, rng: &mut StdRng) -> Result<(Ledger, Vec<SecretKey>)> {
    let generators = Generators::new()?;
    let auditor = SecretKey::random(rng).public_key(&generators);
    let settings =
        Settings { generators, domain: DOMAIN.to_vec(), auditor, operator: OPERATOR, minimum_fee: FEE };
    let mut ledger = Ledger::new(settings, BTreeMap::from([(FUNDER, plan.supply())]));
    let secrets: Vec<SecretKey> = (0..plan.accounts()).map(|_| SecretKey::random(rng)).collect();
    for (index, secret) in secrets.iter().enumerate() {
        let generators = ledger.settings().generators.clone();
        let account = owner(index);
        ledger.register(&Register::new(&generators, DOMAIN, account, secret, rng), rng)?;
        ledger.deposit(&FUNDER, &account, plan.deposit)?;
        ledger.rollover(&Rollover::new(&generators, DOMAIN, account, 0, secret, rng), rng)?;
    }
    Ok((ledger, secrets))
}

/// Proves every payment after the ones before it.
fn prove(
    plan: &Plan,
    measure: &Measure,
    start: &Ledger,
    secrets: &[SecretKey],
    rng: &mut StdRng,
) -> Result<(Times, Vec<Proved>)> {
    let mut progress = Progress::new("baseline, transfers proved", plan.payments.len());
    let mut ledger = start.clone();
    let mut balances = vec![plan.deposit; plan.accounts()];
    let (mut samples, mut all) = (vec![], vec![]);
    for payment in &plan.payments {
        let (account, receiver) = (owner(payment.from), owner(payment.to));
        let order = Order {
            domain: DOMAIN.to_vec(),
            account,
            nonce: ledger.account(&account).context("registered")?.nonce,
            public: FEE,
            to: (receiver, Some(payment.amount)),
            balance: balances[payment.from],
        };
        balances[payment.from] -= payment.amount + FEE;
        let premises = ledger.premises(&account, Some(&receiver))?;
        let secret = &secrets[payment.from];
        let (sample, spend) = timed(|| {
            measure.pool.install(|| Spend::new(&start.settings().generators, &order, &premises, secret, rng))
        });
        let spend = spend?;
        let bytes = spend.encode();
        samples.push(sample);
        ledger = execute(&ledger, &[std::slice::from_ref(&bytes)])?;
        all.push(Proved { bytes, spend, premises });
        progress.at(all.len());
    }
    Ok((Times::median(&samples), all))
}

/// Where the weights of a verification come from: nobody must foresee them.
fn weights() -> StdRng {
    StdRng::from_rng(&mut rng())
}

/// The state after batches, none of whose transactions may be refused.
fn execute(start: &Ledger, batches: &[&[Vec<u8>]]) -> Result<Ledger> {
    let mut ledger = start.clone();
    let mut rng = weights();
    for batch in batches {
        for outcome in ledger.execute(batch, &mut rng) {
            outcome.context("refused")?;
        }
    }
    Ok(ledger)
}

fn conserved(plan: &Plan, end: &Ledger, secrets: &[SecretKey]) -> Result<bool> {
    let table = Table::new(&end.settings().generators);
    for (index, expected) in plan.balances.iter().enumerate() {
        let account = end.account(&owner(index)).context("registered")?;
        for (sum, expected) in [account.available, account.pending].iter().zip(expected) {
            if table.decrypt(&secrets[index], sum) != Ok(*expected) {
                return Ok(false);
            }
        }
    }
    Ok(end.public_balance(&OPERATOR) == plan.fees() && end.public_balance(&FUNDER) == 0)
}

//! The coprocessor's part of the development network, and a story of two accounts told as it happens.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::{Address, B256};
use anyhow::{Context, Result, bail, ensure};
use blindfold_client::confidential::provers::{self, Proving, ProvingKeys};
use blindfold_client::confidential::{Allocation, Auditor, ConfidentialWallet, Made, Outcome, VerifiedState};
use blindfold_client::{Wallet, WalletEndpoints, keys};
use blindfold_confidential::Ring;
use blindfold_protocol::ChainConfig;
use blindfold_rlwe::rlwe::PublicPolynomial;
use blindfold_rpc::confidential::ConfidentialApiClient;
use blindfold_rpc::{ClientConfig, HttpClient, http_client};
use blindfold_runtime::{Instant, now};
use tokio::time::{Duration, sleep};

use super::{
    Devnet, Progress,
    accounts::{SEQUENCER, account_key, named_key},
    ports::http,
};
use crate::{
    roles::{executed_here, load_deployment},
    setup::{auditor_seed, development_keys, made},
};

/// The process of the coprocessor.
pub const COPROCESSOR: &str = "coprocessor";
/// Who reads all amounts.
const AUDITOR: &str = "auditor";
/// The least fee of a transfer, in base units.
const MINIMUM_FEE: u64 = 10;
/// What each user account has in public, in base units.
const ALLOCATION: u64 = 1_000_000;
/// How long one transaction may take.
const TRANSACTION_TIMEOUT_MS: u128 = 60_000;
/// How often the story looks.
const LOOK_INTERVAL_MS: u64 = 50;

/// `confidential.json` of a run.
#[must_use]
pub fn deployment_file(dir: &Path) -> PathBuf {
    dir.join("confidential.json")
}

/// The circuits' keys stand beside the runs' folder: they are made once, which takes a while.
#[must_use]
pub fn keys_dir(dir: &Path) -> PathBuf {
    dir.parent().unwrap_or(dir).join("confidential-keys")
}

/// The auditor's key file of a run.
fn auditor_file(dir: &Path) -> PathBuf {
    dir.join("keys/auditor.json")
}

/// The keys of an earlier run. New ones where there are none, or where the circuits have changed since.
fn kept_keys(dir: &Path) -> Result<provers::Pinned> {
    let kept = provers::pinned_in(dir).and_then(|pinned| {
        provers::check_circuits(dir, Ring::BALANCE)?;
        Ok(pinned)
    });
    match kept {
        Ok(pinned) => Ok(pinned),
        Err(_) => {
            if dir.exists() {
                fs::remove_dir_all(dir)?;
            }
            development_keys(dir)
        }
    }
}

/// Makes the circuits' keys where they are missing, and the run's deployment, in which `accounts` accounts have something.
pub(super) fn prepare(dir: &Path, chain: &ChainConfig, accounts: usize) -> Result<()> {
    let pinned = kept_keys(&keys_dir(dir))?;
    let password = fs::read_to_string(dir.join("password"))?;
    keys::store(&named_key(AUDITOR), &auditor_file(dir), password.trim())?;
    let seed = auditor_seed(&auditor_file(dir), &dir.join("password"))?;
    let allocations = (0..accounts)
        .map(|index| Allocation { owner: account_key(index).address(), balance: ALLOCATION })
        .collect();
    let parties = (chain.deployment.inbox, named_key(SEQUENCER).address());
    let mut deployment = made(parties, MINIMUM_FEE, allocations, &seed)?;
    deployment.keys = pinned;
    fs::write(deployment_file(dir), serde_json::to_vec_pretty(&deployment)?)?;
    Ok(())
}

/// One user: the account's key in both worlds.
struct User {
    confidential: ConfidentialWallet,
    keys: ProvingKeys,
    wallet: Wallet,
}

/// What the story works with.
struct Story<'a> {
    public: Arc<PublicPolynomial>,
    state: VerifiedState,
    progress: &'a Progress,
}

impl Story<'_> {
    fn user(&self, devnet: &Devnet, index: usize) -> Result<User> {
        let deployment = load_deployment(&deployment_file(devnet.dir()))?;
        let key = || account_key(index);
        let keys = ProvingKeys::new(keys_dir(devnet.dir()), deployment.keys);
        let confidential = ConfidentialWallet::new(self.state.clone(), Arc::clone(&self.public), key());
        let endpoints =
            WalletEndpoints { node: http(devnet.ports.full_node.0), sequencers: devnet.sequencer_urls() };
        let source = Arc::new(devnet.l1.clone());
        let wallet = Wallet::new((*devnet.chain).clone(), key(), &endpoints, source, None)?;
        Ok(User { confidential, keys, wallet })
    }

    /// Sends a transaction and waits until it is applied.
    async fn applied(&self, user: &User, what: &str, made: Made) -> Result<Outcome> {
        let (started, id) = (now(), made.id);
        user.wallet.send_confidential(id, made.bytes).await.with_context(|| what.to_owned())?;
        let outcome = self.outcome(id, started).await.with_context(|| what.to_owned())?;
        if let Some(reason) = &outcome.reason {
            bail!("{what}: refused: {reason}");
        }
        let elapsed = started.elapsed().as_millis();
        self.progress.step(format!(
            "  +{elapsed:>5} ms  {what}: batch {}, version {}",
            outcome.number, outcome.version
        ));
        Ok(outcome)
    }

    async fn outcome(&self, id: B256, started: Instant) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.state.outcome(id).await? {
                return Ok(outcome);
            }
            ensure!(
                started.elapsed().as_millis() < TRANSACTION_TIMEOUT_MS,
                "{id} is not executed after {TRANSACTION_TIMEOUT_MS} ms"
            );
            sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
        }
    }
}

/// Tells that a proof is being made, which takes seconds.
fn proving(progress: &Progress, what: &'static str) -> provers::Progress {
    let progress = *progress;
    Box::new(move |part| {
        if part == Proving::Key {
            progress.step(format!("  proving {what}"));
        }
    })
}

/// Two accounts register, deposit, pay and withdraw; balances, the auditor's view and the supply are checked.
///
/// # Errors
/// When something is refused, or does not add up.
pub async fn confidential_transfer(devnet: &Devnet, progress: &Progress) -> Result<()> {
    progress.step("confidential balances: two accounts, proved on this machine");
    let coprocessor = http_client(&http(devnet.ports.coprocessor.0), &ClientConfig::default())?;
    // What the coprocessor executed, from its disk: nothing else is decrypted.
    let deployment = load_deployment(&deployment_file(devnet.dir()))?;
    let (public, state) = executed_here(&deployment, &devnet.chain, &devnet.store_of(COPROCESSOR)?).await?;
    let story = Story { public: Arc::clone(&public), state: state.clone(), progress };
    let (alice, bob) = (story.user(devnet, 1)?, story.user(devnet, 2)?);
    let (alices, bobs) = (alice.confidential.address(), bob.confidential.address());

    for (user, name) in [(&alice, "account 1 registers"), (&bob, "account 2 registers")] {
        let made = user.confidential.register(&user.keys, proving(progress, "a registration")).await?;
        story.applied(user, name, made).await?;
    }
    let made = alice.confidential.deposit(alices, 5_000).await?;
    story.applied(&alice, "account 1 deposits 5000, in public", made).await?;
    let made = alice.confidential.rollover().await?;
    story.applied(&alice, "account 1 rolls over", made).await?;
    let made =
        alice.confidential.send(bobs, 1_200, None, &alice.keys, proving(progress, "a transfer")).await?;
    let paid = story
        .applied(&alice, "account 1 pays account 2 an amount that only they and the auditor read", made)
        .await?;
    let made = bob.confidential.rollover().await?;
    story.applied(&bob, "account 2 rolls over", made).await?;
    let made = bob.confidential.withdraw(bobs, 200, &bob.keys, proving(progress, "a withdrawal")).await?;
    story.applied(&bob, "account 2 withdraws 200, in public", made).await?;
    let made = alice.confidential.refresh(&alice.keys, proving(progress, "a refresh")).await?;
    story.applied(&alice, "account 1 refreshes", made).await?;

    let (of_alice, of_bob) = (alice.confidential.balances().await?, bob.confidential.balances().await?);
    let held = [of_alice.available, of_alice.pending, of_bob.available, of_bob.pending];
    ensure!(held == [5_000 - 1_200 - MINIMUM_FEE, 0, 1_000, 0], "wrong balances: {held:?}");
    let history = bob.confidential.history().await?;
    let changes: Vec<i128> = history.iter().map(|entry| entry.change).collect();
    ensure!(changes == [0, 1_200, 0, -200], "wrong history: {history:?}");

    let seed = auditor_seed(&auditor_file(devnet.dir()), &devnet.dir().join("password"))?;
    let auditor = Auditor::new(state.settings(), &public, &seed)?;
    // A claim of the coprocessor's port, held against what was executed.
    let shown = coprocessor.get_transaction(paid.id).await?.context("a transaction")?;
    let audited = auditor.read(&state.confirm(&shown).await?)?.context("a transfer")?;
    ensure!((audited.amount, audited.fee) == (1_200, MINIMUM_FEE), "the auditor reads {audited:?}");

    let supply = conserved(&coprocessor, &deployment.allocations, deployment.operator).await?;
    progress.step(format!(
        "  balances, history and the auditor's view are right; {supply} base units in all, as at the start"
    ));
    Ok(())
}

/// The supply, if public and confidential balances still make it.
async fn conserved(coprocessor: &HttpClient, allocations: &[Allocation], operator: Address) -> Result<u64> {
    let supply: u64 = allocations.iter().map(|allocation| allocation.balance).sum();
    let mut public = coprocessor.get_public_balance(operator).await?.balance;
    for allocation in allocations {
        public += coprocessor.get_public_balance(allocation.owner).await?.balance;
    }
    let confidential = coprocessor.get_status().await?.confidential;
    ensure!(
        public + confidential == supply,
        "{public} public and {confidential} confidential base units are not the supply of {supply}"
    );
    Ok(supply)
}

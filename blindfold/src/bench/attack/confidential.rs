//! Confidential withdrawals, proved or not: they are the smallest transactions that carry a proof.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::B256;
use anyhow::{Result, bail, ensure};
use blindfold_client::{
    Wallet, WalletEndpoints,
    confidential::{
        ConfidentialWallet, Made, Outcome, VerifiedState,
        provers::{self, ProvingKeys},
    },
};
use blindfold_confidential::{state::Settings, transaction::ConfidentialTransaction};
use blindfold_runtime::{Instant, now};
use tokio::time::sleep;

use super::{
    Measured,
    floods::Flood,
    messages::REQUEST_BYTES,
    testbed::{LOOK_INTERVAL, PATIENCE, Tally, Testbed},
};
use crate::{
    devnet::{
        COPROCESSOR, Progress, accounts::account_key, confidential_deployment_file, confidential_keys_dir,
        ports::http,
    },
    roles::{executed_here, load_deployment},
};

/// What each account has to withdraw from, and what it withdraws at once.
const HELD: u64 = 100_000;
const AMOUNT: u64 = 5;
/// Bytes of C within a proof: after A (48) and B (96).
const C: std::ops::Range<usize> = 144..192;

struct User {
    account: ConfidentialWallet,
    wallet: Wallet,
}

/// Accounts with balances, and what is executed.
struct Crowd {
    users: Vec<User>,
    keys: ProvingKeys,
    settings: Arc<Settings>,
    state: VerifiedState,
}

/// Withdrawals that prove what they say, `count` of them, and as many that do not. Both are sent in rounds, one of each
/// account, so that they stand in batches alike.
pub(super) async fn measure(
    testbed: &mut Testbed,
    count: usize,
    progress: &Progress,
) -> Result<(Measured, Measured)> {
    testbed.idle(progress).await?;
    let crowd = Crowd::gathered(testbed, progress).await?;
    let rounds = count.div_ceil(testbed.accounts);
    progress.step(format!("{} × {}", rounds * testbed.accounts, Flood::Withdrawals.name()));
    let honest = crowd.flood(testbed, Flood::Withdrawals, rounds).await?;
    progress.step(format!("{} × {}", rounds * testbed.accounts, Flood::BadProofs.name()));
    let flood = crowd.flood(testbed, Flood::BadProofs, rounds).await?;
    Ok((honest, flood))
}

impl Crowd {
    /// All accounts registered and funded.
    async fn gathered(testbed: &Testbed, progress: &Progress) -> Result<Self> {
        let devnet = &testbed.devnet;
        let deployment = load_deployment(&confidential_deployment_file(devnet.dir()))?;
        let (public, settings) = deployment.settings(&devnet.chain)?;
        let (_, state) = executed_here(&deployment, &devnet.chain, &devnet.store_of(COPROCESSOR)?).await?;
        let endpoints = WalletEndpoints {
            node: http(devnet.ports.full_node.0),
            sequencers: http(devnet.ports.sequencer.0).into(),
        };
        let mut users = Vec::with_capacity(testbed.accounts);
        for key in (0..testbed.accounts).map(account_key) {
            let account = ConfidentialWallet::new(state.clone(), Arc::clone(&public), key.clone());
            let source = Arc::new(devnet.l1.clone());
            users.push(User {
                account,
                wallet: Wallet::new((*devnet.chain).clone(), key, &endpoints, source, None)?,
            });
        }
        let keys = ProvingKeys::new(confidential_keys_dir(devnet.dir()), deployment.keys);
        let crowd = Self { users, keys, settings, state };
        progress.step(format!("{} accounts: registrations, deposits", testbed.accounts));
        let mut made = Vec::new();
        for user in &crowd.users {
            made.push(user.account.register(&crowd.keys, silent()).await?);
        }
        crowd.sent(&made, None).await?;
        made.clear();
        for user in &crowd.users {
            made.push(user.account.deposit(user.account.address(), HELD).await?);
        }
        crowd.sent(&made, None).await?;
        made.clear();
        for user in &crowd.users {
            made.push(user.account.rollover().await?);
        }
        crowd.sent(&made, None).await?;
        Ok(crowd)
    }

    /// Rounds of withdrawals. What passes while proofs are made is not counted.
    async fn flood(&self, testbed: &mut Testbed, flood: Flood, rounds: usize) -> Result<Measured> {
        let (mut sent, mut bytes) = (0, 0);
        let mut good = self.withdrawals().await?;
        let mut meter = testbed.begin().await?;
        for round in 1..=rounds {
            bytes += match flood {
                Flood::BadProofs => {
                    let made = self.broken(&good, round as u64)?;
                    self.sent(&made, Some("invalid_proof")).await?
                }
                _ => self.sent(&good, None).await?,
            };
            sent += good.len();
            if flood != Flood::BadProofs && round < rounds {
                testbed.pause(&mut meter)?;
                good = self.withdrawals().await?;
                testbed.resume(&mut meter)?;
            }
        }
        testbed.end(meter, Tally { flood, sent, admitted: sent, refused: BTreeMap::new(), bytes }).await
    }

    /// One of each account, proved.
    async fn withdrawals(&self) -> Result<Vec<Made>> {
        let mut made = Vec::with_capacity(self.users.len());
        for user in &self.users {
            let to = user.account.address();
            made.push(user.account.withdraw(to, AMOUNT, &self.keys, silent()).await?);
        }
        Ok(made)
    }

    /// The same with another one's C, and with amounts of their own, for no bytes are looked at twice. They decode, and
    /// pass every check that is cheaper than a pairing.
    fn broken(&self, good: &[Made], round: u64) -> Result<Vec<Made>> {
        let parameters = self.settings.parameters();
        let decoded = |made: &Made| match ConfidentialTransaction::decode(parameters, &made.bytes)? {
            ConfidentialTransaction::Withdraw(withdraw) => Ok(withdraw),
            _ => bail!("a withdrawal was made"),
        };
        let all = good.iter().map(decoded).collect::<Result<Vec<_>>>()?;
        let others = all.iter().cycle().skip(1);
        let broken = all.iter().zip(others).map(|(one, other)| {
            let mut one = one.clone();
            one.proof.0[C].copy_from_slice(&other.proof.0[C]);
            one.amount += round;
            let transaction = ConfidentialTransaction::Withdraw(one);
            Made { id: transaction.id(), bytes: transaction.encode() }
        });
        Ok(broken.collect())
    }

    /// Sends one of each account and waits until all are executed, applied or refused as expected. Bytes of the requests.
    async fn sent(&self, made: &[Made], refusal: Option<&str>) -> Result<usize> {
        let mut bytes = 0;
        for (user, made) in self.users.iter().zip(made) {
            let sent = user.wallet.send_confidential(made.id, made.bytes.clone()).await?;
            bytes += REQUEST_BYTES + 2 * usize::try_from(sent.bytes)?;
        }
        let deadline = now() + PATIENCE;
        for made in made {
            let outcome = self.outcome(made.id, deadline).await?;
            let reason = outcome.reason.as_deref();
            ensure!(reason == refusal, "{}: expected {refusal:?}, seen {reason:?}", made.id);
        }
        Ok(bytes)
    }

    async fn outcome(&self, id: B256, deadline: Instant) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.state.outcome(id).await? {
                return Ok(outcome);
            }
            ensure!(now() < deadline, "{id} is not executed after {} s", PATIENCE.as_secs());
            sleep(LOOK_INTERVAL).await;
        }
    }
}

fn silent() -> provers::Progress {
    Box::new(|_| {})
}

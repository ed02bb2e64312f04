//! The network of the drills: several sequencers with their signer behind gateways and a relay, traffic without a break, and
//! Prometheus beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use blindfold::devnet::{
    Devnet, DevnetOptions, MEMBERS, Progress,
    accounts::account_key,
    ports::{Ports, http},
};
use blindfold_client::{CommitteeKey, Node};
use blindfold_l1::CommitteeSettings;
use blindfold_protocol::L1Timing;
use tokio::time::{Duration, Instant};
use toml::Table;

use crate::{
    adversary::COMMITTEES,
    alarms::Alarms,
    l1_relay::L1Relay,
    relay::now_ms,
    replicated::load::{self, Load},
    settings_file::change_settings,
    traffic::{Ordinary, Sender},
};

/// Deadlines, in L1 blocks of a second: an alarm at a quarter of one comes soon, and no drill lasts for a whole one. Nothing
/// becomes final meanwhile: a publisher sends one transaction for each L1 block, and after a drill has to catch up.
pub const TIMING: L1Timing = L1Timing {
    posting_deadline: 600,
    forced_delay: 60,
    answer_window: 200,
    hint_deadline: 100,
    challenge_window: 900,
    withdrawal_delay: 1_600,
    max_origin_age_seconds: 600,
};
/// L1 blocks of notice before an epoch ends at the head: a little longer than a withdrawal takes.
const EPOCH_NOTICE: u32 = 1_610;
/// Accounts that send, each one envelope after the other.
const SENDERS: usize = 6;
/// How long an alarm may take to fire, and to be quiet again.
const PATIENCE: Duration = Duration::from_secs(90);
/// Who is ready later than this is named.
const SLOW: Duration = Duration::from_secs(10);

/// A running network.
pub struct Network {
    /// The network.
    pub devnet: Devnet,
    /// Between all roles and L1.
    pub l1: L1Relay,
    alarms: Alarms,
    load: Load,
    progress: Progress,
    /// Settings files as they were, by role, of roles that run with others.
    saved: BTreeMap<String, String>,
    /// Roles whose environment is another.
    changed_environments: BTreeSet<String>,
}

impl Network {
    /// Starts it.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(dir: &Path, progress: Progress) -> Result<Self> {
        let binary = crate::program()?;
        let ports = Ports::free_replicated(MEMBERS)?;
        let l1 = L1Relay::start(&http(ports.l1)).await?;
        let options = DevnetOptions {
            ports,
            keep: true,
            max_batch: 32,
            timing: TIMING,
            committees: CommitteeSettings { epoch_notice: EPOCH_NOTICE, ..COMMITTEES },
            l1_url: Some(l1.url()),
            ..DevnetOptions::new(dir.to_owned(), binary)
        };
        let devnet = Devnet::start(options, &progress).await?;
        let alarms = Alarms::start(&devnet)
            .await?
            .context("the drills need Prometheus: apt-get install prometheus prometheus-blackbox-exporter")?;
        let load = Load::through(&devnet, SENDERS).await?;
        load.sealed_after(0, PATIENCE).await?;
        let (saved, changed_environments) = Default::default();
        Ok(Self { devnet, l1, alarms, load, progress, saved, changed_environments })
    }

    /// An account that sends through the gateways, for the epoch of this key.
    ///
    /// # Errors
    /// When the wallet cannot be made.
    pub async fn sender(&self, committee: CommitteeKey) -> Result<Sender> {
        load::sender(&self.devnet, SENDERS + 1, committee).await
    }

    /// An account whose wallet talks to the proxy.
    ///
    /// # Errors
    /// When the proxy's URL cannot be used.
    pub fn ordinary(&self) -> Result<Ordinary> {
        Ok(Ordinary {
            key: account_key(SENDERS),
            nonce: 0,
            proxy: Node::new(&http(self.devnet.ports.proxy.0))?,
            chain_id: self.devnet.chain.chain_id,
        })
    }

    /// Waits until none of these alarms fires.
    ///
    /// # Errors
    /// When one goes on.
    pub async fn quiet(&self, alarms: &[&str]) -> Result<()> {
        self.alarms.none_fires(alarms, PATIENCE).await
    }

    /// Waits until all of these alarms fire.
    ///
    /// # Errors
    /// When one does not.
    pub async fn fire(&self, alarms: &[&str]) -> Result<()> {
        let after = self.alarms.all_fire(alarms, PATIENCE).await?;
        self.progress.step(format!("  {} after {:.1} s", alarms.join(", "), after.as_secs_f64()));
        Ok(())
    }

    /// Whether all of these alarms fire now.
    ///
    /// # Errors
    /// When Prometheus does not answer.
    pub async fn fires(&self, alarms: &[&str]) -> Result<bool> {
        let firing = self.alarms.firing().await?;
        Ok(alarms.iter().all(|alarm| firing.contains(*alarm)))
    }

    /// The name of whoever leads, once somebody does.
    ///
    /// # Errors
    /// When nobody does.
    pub async fn leader(&self) -> Result<&'static str> {
        load::leader(&self.devnet, PATIENCE).await
    }

    /// The newest number that anybody announced.
    pub fn newest(&self) -> u64 {
        self.load.newest()
    }

    /// Sets up as before what was changed, starts whatever does not run, and waits until every role is ready and headers are sealed again.
    ///
    /// # Errors
    /// When one is not.
    pub async fn everybody_is_back(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.set_up_as_before().await?;
        let names: Vec<String> = self.devnet.processes().map(|process| process.name().to_owned()).collect();
        for name in &names {
            let process = self.devnet.process(name)?;
            // One that ended by itself has a process id no more, and a status.
            if process.ended()?.is_some() || process.pid().is_err() {
                process.start()?;
            }
        }
        for name in &names {
            let process = self.devnet.process(name)?;
            if let Err(error) = process.ready().await {
                // It may end once more where what it needs was not there yet.
                if process.ended()?.is_none() {
                    return Err(error);
                }
                process.start()?;
                process.ready().await?;
            }
            if begun.elapsed() > SLOW {
                self.progress.step(format!("  {name} is ready after {:.0} s", begun.elapsed().as_secs_f64()));
            }
        }
        self.load.sealed_after(now_ms(), PATIENCE).await.map(drop)
    }

    /// Kills a role, if it runs.
    ///
    /// # Errors
    /// When the system refuses.
    pub async fn kill(&mut self, name: &str) -> Result<()> {
        let process = self.devnet.process(name)?;
        if process.ended()?.is_none() && process.pid().is_ok() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Starts a role anew with other settings, until everybody is back.
    ///
    /// # Errors
    /// When they cannot be written, or it cannot be started.
    pub async fn restart_with(
        &mut self,
        role: &str,
        change: impl FnOnce(&mut Table) -> Result<()>,
    ) -> Result<()> {
        let dir = self.devnet.dir().to_owned();
        let text = fs::read_to_string(settings(&dir, role))?;
        self.kill(role).await?;
        self.saved.entry(role.to_owned()).or_insert(text);
        change_settings(&dir, role, role, change)?;
        self.devnet.process(role)?.start()
    }

    /// Starts a role anew with these variables, until everybody is back.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn restart_in(&mut self, role: &str, variables: BTreeMap<String, OsString>) -> Result<()> {
        self.kill(role).await?;
        self.changed_environments.insert(role.to_owned());
        let process = self.devnet.process(role)?;
        process.set_variables(variables);
        process.start()
    }

    /// Roles are set up as they were; those that were not run no more.
    async fn set_up_as_before(&mut self) -> Result<()> {
        for (role, text) in std::mem::take(&mut self.saved) {
            self.kill(&role).await?;
            fs::write(settings(self.devnet.dir(), &role), text)?;
        }
        for role in std::mem::take(&mut self.changed_environments) {
            self.kill(&role).await?;
            self.devnet.process(&role)?.set_variables(BTreeMap::new());
        }
        Ok(())
    }

    /// Ends everything. Gives the folder of its logs.
    ///
    /// # Errors
    /// When a part does not end.
    pub async fn stop(mut self) -> Result<PathBuf> {
        let logs = self.devnet.dir().join("logs");
        // Who is away is not waited for.
        let _ = tokio::time::timeout(Duration::from_secs(10), self.load.stop()).await;
        self.devnet.stop().await?;
        Ok(logs)
    }
}

fn settings(dir: &Path, role: &str) -> PathBuf {
    dir.join(format!("{role}.toml"))
}

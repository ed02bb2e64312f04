//! A development network with those who send to it, and what its roles use meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Result, bail};
use blindfold_bte::{EncryptionKey, dealer};
use blindfold_client::{CommitteeKey, Node};
use blindfold_protocol::ChainConfig;
use blindfold_rpc::{BlindApiClient, ClientConfig, HttpClient, http_client};
use blindfold_runtime::{Instant, now, rng};
use tokio::time::{Duration, sleep};

use super::{
    super::process::{cpu_ms, resident_kib},
    Measured, Usage,
    floods::Flood,
};
use crate::devnet::{
    COPROCESSOR, Devnet, DevnetOptions, MEMBERS, Progress, accounts::account_key, ports::http,
};

/// How long nobody sends anything, to see what the network uses by itself.
const IDLE: Duration = Duration::from_secs(10);
/// How long the network is watched after the last envelope is final: posting and its checks.
const SETTLING: Duration = Duration::from_secs(4);
/// How long the last envelope may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is asked for.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// A network with those who send to it.
pub(super) struct Testbed {
    pub(super) devnet: Devnet,
    pub(super) chain: Arc<ChainConfig>,
    pub(super) committee: CommitteeKey,
    /// A key that nobody has a share of.
    pub(super) foreign: EncryptionKey,
    pub(super) sequencer: HttpClient,
    pub(super) members: Vec<HttpClient>,
    pub(super) node: HttpClient,
    /// The execution layer, by the full node.
    pub(super) reads: Node,
    l1: Node,
    /// How many accounts pay.
    pub(super) accounts: usize,
    /// The processes that are counted.
    roles: Vec<String>,
    pub(super) idle_ms_per_second: BTreeMap<String, f64>,
}

/// What all payers have, in wei.
#[derive(Clone, Copy, Debug, Default)]
struct Funds {
    free: u128,
    held: u128,
    on_l1: u128,
}

impl Funds {
    const fn sum(&self) -> u128 {
        self.free + self.held + self.on_l1
    }
}

/// What is counted of a flood.
pub(super) struct Meter {
    paid: Funds,
    resident_kib: BTreeMap<String, u64>,
    /// What was used up to the last pause, in milliseconds, idle use included, and in how many seconds.
    cpu_ms: BTreeMap<String, f64>,
    seconds: f64,
    /// Since when it runs, and what had been used then.
    since: Instant,
    cpu_ms_before: BTreeMap<String, f64>,
}

/// What was sent, and what became of it.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) flood: Flood,
    pub(super) sent: usize,
    pub(super) admitted: usize,
    pub(super) refused: BTreeMap<String, usize>,
    /// Bytes of the requests.
    pub(super) bytes: usize,
}

impl Testbed {
    /// Starts a network whose accounts have what they pay with.
    pub(super) async fn start(options: DevnetOptions, progress: &Progress) -> Result<Self> {
        let accounts = options.paying;
        let coprocessor = options.confidential.then(|| COPROCESSOR.to_owned());
        let members = (1..=MEMBERS).map(|member| format!("member-{member}"));
        let roles = ["sequencer", "hint-publisher", "full-node"].map(str::to_owned);
        let devnet = Devnet::start(options, progress).await?;
        let committee = CommitteeKey::fetch(&devnet.l1, 1, None).await?;
        let (parameters, _) = dealer::deal(1, 1, 1, &mut rng())?;
        let config = ClientConfig::default();
        let testbed = Self {
            chain: Arc::clone(&devnet.chain),
            committee,
            foreign: parameters.encryption_key(),
            sequencer: http_client(&http(devnet.ports.sequencer.0), &config)?,
            members: devnet
                .ports
                .members
                .iter()
                .map(|(port, _)| http_client(&http(*port), &config))
                .collect::<Result<_, _>>()?,
            node: http_client(&http(devnet.ports.full_node.0), &config)?,
            reads: Node::new(&http(devnet.ports.full_node.0))?,
            accounts,
            l1: Node::new(devnet.l1_url())?,
            roles: roles.into_iter().chain(members).chain(coprocessor).collect(),
            idle_ms_per_second: BTreeMap::new(),
            devnet,
        };
        let deadline = now() + PATIENCE;
        for index in 0..accounts {
            let payer = account_key(index).address();
            while testbed.sequencer.get_fee_account(payer).await?.balance == 0 {
                if now() > deadline {
                    bail!("the deposit of {payer} does not count after {} s", PATIENCE.as_secs());
                }
                sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(testbed)
    }

    /// Processor time so far, in milliseconds, and resident memory, in KiB, of each role.
    fn usage(&mut self) -> Result<BTreeMap<String, (f64, u64)>> {
        let mut all = BTreeMap::new();
        for role in &self.roles {
            let pid = self.devnet.process(role)?.pid()?;
            all.insert(role.clone(), (cpu_ms(pid)?, resident_kib(pid)?));
        }
        Ok(all)
    }

    /// Looks what the network uses while nobody sends anything.
    pub(super) async fn idle(&mut self, progress: &Progress) -> Result<()> {
        progress.step("what the network uses by itself");
        let (before, started) = (self.usage()?, now());
        sleep(IDLE).await;
        let seconds = started.elapsed().as_secs_f64();
        for (role, (after, _)) in self.usage()? {
            let spent = (after - before[&role].0) / seconds;
            self.idle_ms_per_second.insert(role, spent);
        }
        Ok(())
    }

    /// Counts processor time and memory from now on.
    pub(super) async fn begin(&mut self) -> Result<Meter> {
        let paid = self.paid().await?;
        let (cpu_ms_before, resident_kib) = split(self.usage()?);
        let since = now();
        Ok(Meter { paid, resident_kib, cpu_ms: BTreeMap::new(), seconds: 0.0, since, cpu_ms_before })
    }

    /// Stops counting until [`Self::resume`].
    pub(super) fn pause(&mut self, meter: &mut Meter) -> Result<()> {
        meter.seconds += meter.since.elapsed().as_secs_f64();
        for (role, (cpu_ms, _)) in self.usage()? {
            let used = cpu_ms - meter.cpu_ms_before.get(&role).copied().unwrap_or_default();
            *meter.cpu_ms.entry(role).or_default() += used;
        }
        Ok(())
    }

    /// Counts again.
    pub(super) fn resume(&mut self, meter: &mut Meter) -> Result<()> {
        (meter.cpu_ms_before, _) = split(self.usage()?);
        meter.since = now();
        Ok(())
    }

    /// What a flood was, once everything of it has come to its end.
    pub(super) async fn end(&mut self, mut meter: Meter, tally: Tally) -> Result<Measured> {
        sleep(SETTLING).await;
        self.pause(&mut meter)?;
        let mut usage = Usage::default();
        for (role, cpu_ms) in &meter.cpu_ms {
            let idle = self.idle_ms_per_second.get(role).copied().unwrap_or_default() * meter.seconds;
            usage.cpu_ms.insert(role.clone(), (cpu_ms - idle).max(0.0));
        }
        for (role, (_, resident_kib)) in self.usage()? {
            let before = meter.resident_kib.get(&role).copied().unwrap_or_default();
            usage.grown_kib.insert(role, resident_kib.saturating_sub(before));
        }
        let now = self.paid().await?;
        // What is held returns, but for a malformed envelope's surcharge. Those before it are settled before it.
        let forfeited = match tally.flood {
            Flood::Malformed => now.held.min(self.chain.malformed_surcharge * tally.admitted as u128),
            _ => 0,
        };
        Ok(Measured::new(tally, meter.paid.sum().saturating_add(forfeited).saturating_sub(now.sum()), usage))
    }

    /// What all payers have.
    async fn paid(&self) -> Result<Funds> {
        let mut funds = Funds::default();
        for index in 0..self.accounts {
            let address = account_key(index).address();
            let account = self.sequencer.get_fee_account(address).await?;
            funds.free += account.balance;
            funds.held += account.held;
            funds.on_l1 += self.l1.balance(&address).await?.saturating_to::<u128>();
        }
        Ok(funds)
    }
}

/// Processor time and memory, each for itself.
fn split(usage: BTreeMap<String, (f64, u64)>) -> (BTreeMap<String, f64>, BTreeMap<String, u64>) {
    usage.into_iter().map(|(role, (cpu_ms, kib))| ((role.clone(), cpu_ms), (role, kib))).unzip()
}

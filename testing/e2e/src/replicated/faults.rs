//! What is done to sequencers and their database.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::{GATEWAYS, SIGNER, accounts::SECOND_HINT_PUBLISHER};
use blindfold_client::Node;
use blindfold_runtime::wall_ms;
use blindfold_servers::{PostgresCluster, Redis, ServerError};
use blindfold_store::StoreUrl;
use rand::{RngExt, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

use super::{LOOK, Run, SETTLE};

/// What is done to Redis.
type OfRedis = fn(&mut Redis) -> Result<(), ServerError>;

const FULL_NODE: &str = "full-node";
const HINT_PUBLISHERS: [&str; 2] = ["hint-publisher", SECOND_HINT_PUBLISHER];

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    /// `kill -9` of whoever leads, who starts again when another one leads.
    Kill,
    /// The same while the execution clients of those that stand by have lost up to 128 of their newest blocks.
    KillBehind,
    /// Whoever leads is stopped, and goes on when another one leads.
    Pause,
    /// The same for about as long as the lease, whoever leads then.
    ShortPause,
    /// Whoever leads is cut off from the database, and reaches it again when another one leads. Everybody else reaches it.
    Partition,
    /// Whoever leads is asked to let another one lead.
    HandOver,
    /// SIGTERM to whoever leads, who starts again when another one leads.
    Stop,
    /// The database's server that takes writes crashes, and another one takes them.
    DatabaseFailover,
    /// `kill -9` of a gateway, which starts again.
    GatewayKill,
    /// `kill -9` of a hint publisher, which starts again when the other one has opened a batch.
    HintPublisherKill,
    /// `kill -9` of the signer that all sequencers share, which starts again within seconds.
    SignerKill,
    /// `kill -9` of the full node, which goes on from a backup that was taken of it while it ran.
    NodeRestore,
    /// What gateways share is gone: Redis crashes and comes back empty, is emptied, or answers nobody for a while.
    RedisLoss,
}

impl Fault {
    /// The next one: each kind comes again and again, in an order that the seed draws.
    pub(super) fn draw(index: u64, random: &mut StdRng) -> Self {
        // What hits no sequencer comes less often.
        match index % 8 {
            3 => {
                return match random.random_range(0..3) {
                    0 => Self::GatewayKill,
                    1 => Self::HintPublisherKill,
                    _ => Self::NodeRestore,
                };
            }
            5 => return Self::SignerKill,
            7 => return Self::RedisLoss,
            _ => {}
        }
        // Half of all others are the ones that say nothing before they happen.
        match (index % 2, random.random_range(0..4)) {
            (0, 0) => Self::Kill,
            (0, 1) => Self::Pause,
            (0, 2) => Self::ShortPause,
            (0, _) => Self::Partition,
            (_, 0) => Self::KillBehind,
            (_, 1) => Self::HandOver,
            (_, 2) => Self::Stop,
            _ => Self::DatabaseFailover,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::KillBehind => "kill, the others far behind,",
            Self::Pause => "pause",
            Self::ShortPause => "short pause",
            Self::Partition => "partition",
            Self::HandOver => "hand-over",
            Self::Stop => "stop",
            Self::DatabaseFailover => "failover of the database",
            Self::GatewayKill => "kill of a gateway",
            Self::HintPublisherKill => "kill of a hint publisher",
            Self::SignerKill => "kill of the signer",
            Self::NodeRestore => "restored full node",
            Self::RedisLoss => "loss of Redis",
        }
    }
}

impl Run {
    /// Does it to whoever leads, and waits until headers are sealed again and everybody is back. Gives the longest time
    /// between two headers since, in milliseconds.
    pub(super) async fn inject(
        &mut self,
        fault: Fault,
        leader: &'static str,
        random: &mut StdRng,
    ) -> Result<u64> {
        // At any place of what a sequencer does.
        sleep(Duration::from_millis(random.random_range(200..1_200))).await;
        let from_ms = wall_ms();
        match fault {
            Fault::Kill => {
                self.devnet.process(leader)?.kill().await?;
                self.another_leads(leader).await?;
                self.devnet.process(leader)?.start()?;
            }
            Fault::KillBehind => {
                let all = self.devnet.sequencers();
                for (other, _) in all.iter().filter(|(name, _)| *name != leader) {
                    self.devnet.kill_and_restart_execution_of(other).await?;
                }
                self.devnet.process(leader)?.kill().await?;
                self.another_leads(leader).await?;
                self.devnet.process(leader)?.start()?;
            }
            Fault::Pause => {
                self.devnet.process(leader)?.pause()?;
                let led = self.another_leads(leader).await;
                sleep(Duration::from_millis(random.random_range(0..3_000))).await;
                self.devnet.process(leader)?.resume()?;
                led?;
            }
            Fault::ShortPause => {
                self.devnet.process(leader)?.pause()?;
                // About as long as the lease: it may go on leading, or be taken over while it wakes.
                sleep(Duration::from_millis(random.random_range(300..5_000))).await;
                self.devnet.process(leader)?.resume()?;
            }
            Fault::Partition => {
                self.devnet.way(leader).context("a way")?.cut();
                let led = self.another_leads(leader).await;
                sleep(Duration::from_millis(random.random_range(0..3_000))).await;
                self.devnet.way(leader).context("a way")?.heal();
                led?;
            }
            Fault::HandOver => {
                self.hand_over(leader).await?;
                self.another_leads(leader).await?;
            }
            Fault::Stop => {
                self.devnet.process(leader)?.stop().await;
                self.another_leads(leader).await?;
                self.devnet.process(leader)?.start()?;
            }
            Fault::DatabaseFailover => {
                let cluster = |run: &mut Self, what: fn(&mut PostgresCluster) -> Result<(), ServerError>| {
                    tokio::task::block_in_place(|| {
                        anyhow::Ok(what(run.devnet.cluster().context("a cluster")?)?)
                    })
                };
                cluster(self, PostgresCluster::fail_over)?;
                self.load.sealed_after(wall_ms(), SETTLE).await?;
                cluster(self, PostgresCluster::rejoin)?;
            }
            Fault::GatewayKill => {
                let gateway = GATEWAYS[random.random_range(0..GATEWAYS.len())];
                self.devnet.kill_and_restart(gateway).await?;
            }
            Fault::HintPublisherKill => {
                let publisher = HINT_PUBLISHERS[random.random_range(0..HINT_PUBLISHERS.len())];
                self.devnet.process(publisher)?.kill().await?;
                self.opened_after(self.load.newest()).await?;
                self.devnet.process(publisher)?.start()?;
                self.devnet.process(publisher)?.ready().await?;
            }
            Fault::SignerKill => {
                self.devnet.process(SIGNER)?.kill().await?;
                sleep(Duration::from_millis(random.random_range(0..3_000))).await;
                self.devnet.process(SIGNER)?.start()?;
            }
            Fault::NodeRestore => {
                self.devnet.process(FULL_NODE)?.kill().await?;
                self.restore_node().await?;
                self.devnet.process(FULL_NODE)?.start()?;
                self.opened_after(self.load.newest()).await?;
                self.back_up_node().await?;
            }
            Fault::RedisLoss => {
                let (kind, pause_ms) = (random.random_range(0..3), random.random_range(0..3_000));
                let redis = |run: &mut Self, what: OfRedis| {
                    tokio::task::block_in_place(|| {
                        anyhow::Ok(what(run.devnet.redis().context("a Redis server")?)?)
                    })
                };
                let (begin, end): (OfRedis, OfRedis) = match kind {
                    0 => (|redis| redis.flush(), |_| Ok(())),
                    1 => (|redis| redis.cut(), |redis| redis.heal()),
                    _ => (Redis::end, Redis::resume_start),
                };
                redis(self, begin)?;
                sleep(Duration::from_millis(pause_ms)).await;
                redis(self, end)?;
            }
        }
        self.load.sealed_after(wall_ms(), SETTLE).await?;
        let gap = self.load.longest_gap(from_ms);
        let sequencers = self.devnet.sequencers().into_iter().map(|(name, _)| name);
        for name in sequencers.chain(GATEWAYS).chain([SIGNER, FULL_NODE]) {
            self.devnet.process(name)?.ready().await?;
        }
        Ok(gap)
    }

    async fn another_leads(&self, than: &str) -> Result<()> {
        let deadline = Instant::now() + SETTLE;
        while self.leader().await? == than {
            ensure!(Instant::now() < deadline, "nobody leads in the place of {than}");
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until a batch above this number is executed at the full node: somebody has opened it.
    async fn opened_after(&self, number: u64) -> Result<()> {
        let (node, deadline) = (Node::new(&self.node)?, Instant::now() + SETTLE);
        loop {
            // It may be away itself.
            let status = node.call("blind_getStatus", &[]).await.unwrap_or_default();
            if status["hinted"].as_u64().unwrap_or(0) > number {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "no batch above {number} is opened");
            sleep(LOOK).await;
        }
    }

    /// Takes a backup of the full node's records while it runs; the one before it is gone then.
    pub(super) async fn back_up_node(&self) -> Result<()> {
        let (file, store) = (self.node_backup(), self.devnet.store_of(FULL_NODE)?.to_string());
        remove_if_there(&file)?;
        self.blindfold(&["store", "backup", "--store", &store, "--out"], &file).await
    }

    /// Makes the full node's records of that backup. What its execution client has stays, and is newer.
    async fn restore_node(&self) -> Result<()> {
        let store = self.devnet.store_of(FULL_NODE)?;
        let StoreUrl::Sqlite(database) = &store else {
            bail!("the full node's records are no file: {store}")
        };
        for suffix in ["", "-wal", "-shm"] {
            let mut file = database.clone().into_os_string();
            file.push(suffix);
            remove_if_there(Path::new(&file))?;
        }
        self.blindfold(&["store", "restore", "--store", &store.to_string()], &self.node_backup()).await
    }

    fn node_backup(&self) -> PathBuf {
        self.devnet.dir().join("full-node.backup")
    }

    /// Runs a command of the program, with a file as its last argument.
    async fn blindfold(&self, arguments: &[&str], file: &Path) -> Result<()> {
        let mut command = tokio::process::Command::new(crate::program()?);
        let output = command.args(arguments).arg(file).output().await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "blindfold {}: {}", arguments.join(" "), said.trim());
        Ok(())
    }

    async fn hand_over(&mut self, leader: &str) -> Result<()> {
        let found = self.devnet.sequencers().into_iter().find(|(name, _)| *name == leader);
        let (_, (_, admin)) = found.context("a sequencer")?;
        let mut stream = TcpStream::connect(("127.0.0.1", admin)).await?;
        stream
            .write_all(
                b"POST /hand-over HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            )
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        ensure!(answer.starts_with("HTTP/1.1 202"), "{leader} does not hand over: {answer}");
        Ok(())
    }
}

fn remove_if_there(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| file.display().to_string())
        }
        _ => Ok(()),
    }
}

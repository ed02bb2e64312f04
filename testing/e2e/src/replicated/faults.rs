//! What is done to sequencers and their database.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use blindfold_runtime::wall_ms;
use rand::{RngExt, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use super::{Run, SETTLE};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    /// `kill -9` of whoever leads, who starts again when another one leads.
    Kill,
    /// Whoever leads is stopped, and goes on when another one leads.
    Pause,
    /// Whoever leads is cut off from the database, and reaches it again when another one leads. Everybody else reaches it.
    Partition,
    /// Whoever leads is asked to let another one lead.
    HandOver,
    /// SIGTERM to whoever leads, who starts again when another one leads.
    Stop,
    /// The database's server that takes writes crashes, and another one takes them.
    DatabaseFailover,
}

/// How long nothing was sealed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    from_ms: u64,
    to_ms: u64,
}

impl Gap {
    pub(super) fn milliseconds(self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

impl Fault {
    /// The next one: each kind comes again and again, in an order that the seed draws.
    pub(super) fn draw(index: u64, random: &mut StdRng) -> Self {
        // Half of all are the two that say nothing before they happen.
        match (index % 2, random.random_range(0..4)) {
            (0, 0 | 1) => Self::Kill,
            (0, 2) => Self::Pause,
            (0, _) => Self::Partition,
            (_, 0) => Self::Kill,
            (_, 1) => Self::HandOver,
            (_, 2) => Self::Stop,
            _ => Self::DatabaseFailover,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Partition => "partition",
            Self::HandOver => "hand-over",
            Self::Stop => "stop",
            Self::DatabaseFailover => "failover of the database",
        }
    }
}

impl Run {
    /// Does it to whoever leads, and waits until headers are sealed again and everybody is back.
    pub(super) async fn inject(
        &mut self,
        fault: Fault,
        leader: &'static str,
        random: &mut StdRng,
    ) -> Result<Gap> {
        // At any place of what a sequencer does.
        sleep(Duration::from_millis(random.random_range(200..1_200))).await;
        let gap = match fault {
            Fault::Kill => {
                let from_ms = wall_ms();
                self.devnet.process(leader)?.kill().await?;
                let gap = self.gap(from_ms).await?;
                self.devnet.process(leader)?.start()?;
                gap
            }
            Fault::Pause => {
                self.devnet.process(leader)?.pause()?;
                let gap = self.gap(wall_ms()).await;
                sleep(Duration::from_millis(random.random_range(0..3_000))).await;
                self.devnet.process(leader)?.resume()?;
                gap?
            }
            Fault::Partition => {
                self.devnet.way(leader).context("a way")?.cut();
                let gap = self.gap(wall_ms()).await;
                sleep(Duration::from_millis(random.random_range(0..3_000))).await;
                self.devnet.way(leader).context("a way")?.heal();
                gap?
            }
            Fault::HandOver => {
                let from_ms = wall_ms();
                self.hand_over(leader).await?;
                self.gap(from_ms).await?
            }
            Fault::Stop => {
                let from_ms = wall_ms();
                self.devnet.process(leader)?.stop().await;
                let gap = self.gap(from_ms).await?;
                self.devnet.process(leader)?.start()?;
                gap
            }
            Fault::DatabaseFailover => {
                let from_ms = wall_ms();
                tokio::task::block_in_place(|| {
                    self.devnet.cluster().context("a cluster")?.fail_over().context("fail over")
                })?;
                let gap = self.gap(from_ms).await?;
                tokio::task::block_in_place(|| {
                    self.devnet.cluster().context("a cluster")?.rejoin().context("rejoin")
                })?;
                gap
            }
        };
        for (name, _) in self.devnet.sequencers() {
            self.devnet.process(name)?.ready().await?;
        }
        Ok(gap)
    }

    /// Waits for the first header that was sealed after what happened at this time and before which nothing was sealed for
    /// longer than slots take.
    async fn gap(&self, from_ms: u64) -> Result<Gap> {
        let (_, to_ms) = self.load.sealed_after(from_ms, SETTLE).await?;
        Ok(Gap { from_ms, to_ms })
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

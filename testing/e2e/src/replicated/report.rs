//! What a replicated run comes to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use blindfold_client::Node;
use blindfold_protocol::{B256, Canonical, Envelope, SealedBatch};
use blindfold_rpc::{BlindApiClient, ClientConfig, http_client};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{faults::Fault, load::Sent};

/// How long nothing was sealed, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Percentiles {
    p50: u64,
    p99: u64,
    max: u64,
}

/// `target/devnet/replicated.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) faults: u64,
    kills: u64,
    #[serde(default)]
    kills_behind: u64,
    pauses: u64,
    short_pauses: u64,
    partitions: u64,
    hand_overs: u64,
    stops: u64,
    database_failovers: u64,
    #[serde(default)]
    gateway_kills: u64,
    #[serde(default)]
    hint_publisher_kills: u64,
    #[serde(default)]
    signer_kills: u64,
    #[serde(default)]
    node_restores: u64,
    #[serde(default)]
    redis_losses: u64,
    /// The longest time between the stamps of two headers, from the fault until all is well again.
    failover_ms: BTreeMap<Fault, Percentiles>,
    pub(super) second_headers: u64,
    lost_promises: u64,
    lost_envelopes: u64,
    duplicated: u64,
    acknowledged: u64,
    promised: u64,
    /// All that `failover_ms` is computed from.
    samples_ms: BTreeMap<Fault, Vec<u64>>,
}

impl Report {
    /// The one that is there; an empty one where none is.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, self.text()?).with_context(|| path.display().to_string())
    }

    pub(super) fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    pub(super) fn add(&mut self, fault: Fault, gap_ms: u64) {
        self.faults += 1;
        *match fault {
            Fault::Kill => &mut self.kills,
            Fault::KillBehind => &mut self.kills_behind,
            Fault::Pause => &mut self.pauses,
            Fault::ShortPause => &mut self.short_pauses,
            Fault::Partition => &mut self.partitions,
            Fault::HandOver => &mut self.hand_overs,
            Fault::Stop => &mut self.stops,
            Fault::DatabaseFailover => &mut self.database_failovers,
            Fault::GatewayKill => &mut self.gateway_kills,
            Fault::HintPublisherKill => &mut self.hint_publisher_kills,
            Fault::SignerKill => &mut self.signer_kills,
            Fault::NodeRestore => &mut self.node_restores,
            Fault::RedisLoss => &mut self.redis_losses,
        } += 1;
        let samples = self.samples_ms.entry(fault).or_default();
        samples.push(gap_ms);
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        let at = |part: usize| sorted.get((sorted.len() * part / 100).min(sorted.len() - 1)).copied();
        let [p50, p99, max] = [50, 99, 100].map(|part| at(part).unwrap_or_default());
        self.failover_ms.insert(fault, Percentiles { p50, p99, max });
    }

    pub(super) fn take(&mut self, outcome: &Outcome, second_headers: u64) {
        self.second_headers = self.second_headers.max(second_headers);
        self.lost_promises += outcome.lost_promises;
        self.lost_envelopes += outcome.lost_envelopes;
        self.duplicated += outcome.duplicated;
        self.acknowledged += outcome.acknowledged;
        self.promised += outcome.promised;
    }

    /// What must not be.
    pub(super) fn broken(&self) -> Vec<String> {
        [
            (self.second_headers, "numbers with two headers"),
            (self.lost_promises, "promises that were not kept"),
            (self.lost_envelopes, "acknowledged envelopes that are lost"),
            (self.duplicated, "envelopes in two batches"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// What became of everything that was acknowledged.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    acknowledged: u64,
    promised: u64,
    lost_promises: u64,
    lost_envelopes: u64,
    duplicated: u64,
    /// Number and hash of every batch that the full node has.
    pub(super) certified: Vec<(u64, B256)>,
}

impl Outcome {
    /// Asks the full node, which executed what the committee certified.
    pub(super) async fn of(node_url: &str, sent: &[Sent], patience: Duration) -> Result<Self> {
        let node = Node::new(node_url)?;
        let mut outcome = Self { acknowledged: sent.len() as u64, ..Self::default() };
        let deadline = Instant::now() + patience;
        for Sent { id, seal_by } in sent {
            let number = loop {
                let receipt = node.call("blind_getReceipt", &[json!(id)]).await?;
                let state = receipt["state"].as_str().unwrap_or_default();
                if ["certified", "executed"].contains(&state) {
                    break receipt["number"].as_u64();
                }
                // What fell out of the mempool has an outcome, too; it was not promised.
                if state == "expired" || Instant::now() > deadline {
                    break None;
                }
                sleep(Duration::from_millis(100)).await;
            };
            outcome.promised += u64::from(seal_by.is_some());
            match (number, seal_by) {
                (None, Some(_)) => outcome.lost_promises += 1,
                (None, None) => outcome.lost_envelopes += 1,
                (Some(number), Some(seal_by)) if number > *seal_by => outcome.lost_promises += 1,
                (Some(_), _) => {}
            }
        }
        (outcome.duplicated, outcome.certified) = duplicated(node_url, sent).await?;
        Ok(outcome)
    }
}

/// How many envelopes two batches accepted, and the hash of every batch.
async fn duplicated(node: &str, sent: &[Sent]) -> Result<(u64, Vec<(u64, B256)>)> {
    let client = http_client(node, &ClientConfig::default())?;
    let ours: BTreeSet<B256> = sent.iter().map(|sent| sent.id).collect();
    let head = BlindApiClient::get_status(&client).await?.head.number;
    let (mut accepted, mut twice, mut certified) = (BTreeSet::new(), 0, Vec::new());
    for number in 1..=head {
        let batch = client.get_batch(number).await?.with_context(|| format!("batch {number}"))?;
        let sealed: SealedBatch = batch.sealed.decode()?;
        certified.push((number, sealed.header.hash()));
        for (item, _) in sealed.items.iter().zip(&batch.verdicts).filter(|(_, fault)| fault.is_none()) {
            let Ok(envelope) = Envelope::decode(item) else { continue };
            let id = envelope.id();
            if ours.contains(&id) && !accepted.insert(id) {
                twice += 1;
            }
        }
    }
    ensure!(!accepted.is_empty(), "no batch shows an envelope of this run");
    Ok((twice, certified))
}

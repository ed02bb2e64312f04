//! What the processes of the network use, and what their metrics say.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::super::process::{cpu_ms, resident_kib};
use crate::devnet::Devnet;

/// The counter of a role's durable writes: each is a sync, or a commit at a server.
const COMMITS: &str = "blindfold_store_commit_seconds_count";
/// Queues by the role that has them.
const QUEUES: [(&str, &str); 6] = [
    ("sequencer", "blindfold_envelopes_pending"),
    ("sequencer", "blindfold_store_queue_writes"),
    ("hint-publisher", "blindfold_hint_publisher_backlog_batches"),
    ("hint-publisher", "blindfold_hint_publisher_batches_in_work"),
    ("full-node", "blindfold_store_queue_writes"),
    ("member-1", "blindfold_store_queue_writes"),
];
/// Whoever is no role: the execution clients, L1, and the load itself.
const SEQUENCER_EXECUTION: &str = "sequencer-execution";
const FULL_NODE_EXECUTION: &str = "full-node-execution";
const L1: &str = "l1";
const LOAD: &str = "load";

/// Of each process, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    pub(super) cpu_ms: BTreeMap<String, f64>,
    pub(super) resident_kib: BTreeMap<String, u64>,
    /// Durable writes of those that count them.
    pub(super) commits: BTreeMap<String, f64>,
    /// Lengths of queues.
    pub(super) queues: BTreeMap<String, f64>,
}

/// The value of a metric without labels other than the role's.
fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
    })?;
    line.rsplit_once(' ')?.1.parse().ok()
}

impl Usage {
    /// Now.
    pub(super) async fn of(devnet: &mut Devnet) -> Result<Self> {
        let mut usage = Self::default();
        let mut pids = vec![(LOAD.to_owned(), std::process::id()), (L1.to_owned(), devnet.l1_pid())];
        let client = devnet.execution_of("sequencer")?.pid();
        pids.push((SEQUENCER_EXECUTION.to_owned(), client.context("no execution client")?));
        let client = devnet.full_node_execution().pid();
        pids.push((FULL_NODE_EXECUTION.to_owned(), client.context("no execution client")?));
        let mut shown = BTreeMap::new();
        for role in devnet.processes() {
            pids.push((role.name().to_owned(), role.pid()?));
            shown.insert(role.name().to_owned(), role.metrics().await?);
        }
        for (name, pid) in pids {
            usage.resident_kib.insert(name.clone(), resident_kib(pid)?);
            usage.cpu_ms.insert(name, cpu_ms(pid)?);
        }
        for (role, metrics) in &shown {
            if let Some(commits) = value(metrics, COMMITS) {
                usage.commits.insert(role.clone(), commits);
            }
        }
        for (role, name) in QUEUES {
            if let Some(length) = shown.get(role).and_then(|metrics| value(metrics, name)) {
                usage.queues.insert(format!("{role}.{}", name.trim_start_matches("blindfold_")), length);
            }
        }
        Ok(usage)
    }

    /// What was used since, of members the mean.
    pub(super) fn since(&self, before: &Self) -> (BTreeMap<String, f64>, BTreeMap<String, f64>) {
        (by_role(&self.cpu_ms, &before.cpu_ms), by_role(&self.commits, &before.commits))
    }

    /// Keeps the longest queues.
    pub(super) fn longest(&mut self, other: &Self) {
        for (name, length) in &other.queues {
            let longest = self.queues.entry(name.clone()).or_default();
            *longest = longest.max(*length);
        }
    }
}

fn by_role(after: &BTreeMap<String, f64>, before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, after) in after {
        let role = if name.starts_with("member-") { "member" } else { name };
        let (sum, count) = sums.entry(role.to_owned()).or_default();
        *sum += after - before.get(name).copied().unwrap_or_default();
        *count += 1.0;
    }
    sums.into_iter().map(|(role, (sum, count))| (role, sum / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let shown = "# HELP a_count x\na_count_more{role=\"x\"} 3\na_count{role=\"x\"} 2\nb 1.5\n";
        assert_eq!(value(shown, "a_count"), Some(2.0));
        assert_eq!(value(shown, "b"), Some(1.5));
        assert_eq!(value(shown, "c"), None);
    }

    #[test]
    fn of_members_the_mean_is_given() {
        let of =
            |one: f64, two: f64| BTreeMap::from([("member-1".to_owned(), one), ("member-2".to_owned(), two)]);
        assert_eq!(by_role(&of(5.0, 9.0), &of(1.0, 1.0)), BTreeMap::from([("member".to_owned(), 6.0)]));
    }
}

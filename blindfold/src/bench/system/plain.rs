//! The same transfers on the same execution client without Blindfold: they go to its pool in the clear, and a second client
//! checks each block. What a rollup has that reads what it orders, less its L1.

use std::{collections::HashMap, path::Path, sync::Arc};

use alloy_primitives::{B256, keccak256};
use anyhow::{Context, Result, ensure};
use blindfold_client::Node;
use blindfold_engine::{BlockInputs, ExecutionClient, L1Origin, ManagedNode, ManagedNodeConfig};
use blindfold_protocol::ChainConfig;
use blindfold_runtime::{Clock, Instant, SteadyClock, now};
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Duration, MissedTickBehavior, interval, sleep},
};

use super::{
    super::{data::transfer_on, observe::Latency, process::cpu_ms},
    supply::{FEE_MARGIN, POWERS},
};
use crate::devnet::accounts::account_key;

/// Where a client keeps the genesis that it was started with.
const GENESIS_FILE: &str = "genesis.json";
/// How long after the last transfer was sent blocks are still made.
const DRAIN_SECONDS: u64 = 30;

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct Plain {
    rate: f64,
    seconds: u64,
    sent: usize,
    /// Transfers in blocks that the second client has checked.
    executed: usize,
    /// Until the second client has the block.
    executed_ms: Latency,
    /// Processor time for a transfer of the client that fills blocks, and of the one that checks them.
    builder_cpu_us: f64,
    checker_cpu_us: f64,
}

impl std::fmt::Display for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "without Blindfold at {:.0} per second: executed {} of {}, p50 {:.0} p99 {:.0} ms; {:.0} µs a transfer where blocks are made, {:.0} µs where they are checked",
            self.rate,
            self.executed,
            self.sent,
            self.executed_ms.p50,
            self.executed_ms.p99,
            self.builder_cpu_us,
            self.checker_cpu_us
        )
    }
}

/// Sends so many transfers a second for so long, in folders below `dir`; the genesis is that of the network in `dir`.
pub(super) async fn measure(
    dir: &Path,
    chain: &ChainConfig,
    (accounts, seed, input_bytes): (usize, u64, usize),
    (rate, seconds): (f64, u64),
) -> Result<Plain> {
    let genesis: Value =
        serde_json::from_slice(&std::fs::read(dir.join("sequencer-execution").join(GENESIS_FILE))?)?;
    let binary = ManagedNodeConfig::default_binary(&std::env::current_dir()?);
    let start = |name: &str| {
        ManagedNode::start(ManagedNodeConfig::new(binary.clone(), dir.join(name), genesis.clone()))
    };
    let (mut builder, mut checker) = (start("plain-builder").await?, start("plain-checker").await?);
    let measured = on(&builder, &checker, chain, (accounts, seed, input_bytes), (rate, seconds)).await;
    builder.stop().await?;
    checker.stop().await?;
    measured
}

async fn on(
    builder: &ManagedNode,
    checker: &ManagedNode,
    chain: &ChainConfig,
    (accounts, seed, input_bytes): (usize, u64, usize),
    (rate, seconds): (f64, u64),
) -> Result<Plain> {
    let node = Arc::new(Node::new(builder.http_url())?);
    let base_fee = node.base_fee().await?.saturating_mul(FEE_MARGIN);
    let mut rng = StdRng::seed_from_u64(seed);
    let keys: Vec<_> = (0..accounts).map(account_key).collect();
    let count = (rate * seconds as f64).round() as usize;
    let transfers: Vec<_> = (0..count)
        .map(|index| {
            let (account, nonce) = (index % accounts, (index / accounts) as u64);
            let transfer =
                transfer_on(chain.chain_id, &mut rng, &keys[account], (nonce, POWERS, input_bytes), base_fee);
            (keccak256(&transfer.raw), transfer.raw)
        })
        .collect();
    let pids = [builder, checker].map(ManagedNode::pid);
    let used = || -> Result<[f64; 2]> {
        let [builder, checker] = pids.map(|pid| cpu_ms(pid.context("no execution client")?));
        Ok([builder?, checker?])
    };
    let before = used()?;
    let sent = Arc::new(Mutex::new(HashMap::<B256, Instant>::new()));
    let mut executed = HashMap::<B256, Instant>::new();
    let sending = {
        let sent = sent.clone();
        async move {
            let mut tick = interval(Duration::from_secs_f64(1.0 / rate));
            tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut calls = JoinSet::new();
            for (hash, raw) in transfers {
                tick.tick().await;
                while calls.try_join_next().is_some() {}
                sent.lock().insert(hash, now());
                let node = node.clone();
                // What it refuses is missing in the end.
                calls.spawn(async move {
                    drop(node.call("eth_sendRawTransaction", &[raw.to_string().into()]).await)
                });
            }
            while calls.join_next().await.is_some() {}
        }
    };
    let filling = blocks(builder, checker, chain, (count, seconds + DRAIN_SECONDS), &mut executed);
    let ((), filled) = tokio::join!(sending, filling);
    filled?;
    let after = used()?;
    let sent = sent.lock();
    let taken: Vec<f64> = sent
        .iter()
        .filter_map(|(hash, sent)| Some(executed.get(hash)?.duration_since(*sent).as_secs_f64() * 1e3))
        .collect();
    ensure!(!taken.is_empty(), "no transfer came into a block");
    let each = |index: usize| (after[index] - before[index]) * 1e3 / taken.len() as f64;
    Ok(Plain {
        rate,
        seconds,
        sent: sent.len(),
        executed: taken.len(),
        executed_ms: Latency::of(taken.clone()),
        builder_cpu_us: each(0),
        checker_cpu_us: each(1),
    })
}

/// A block each second, until so many transfers are executed or the time is over.
async fn blocks(
    builder: &ManagedNode,
    checker: &ManagedNode,
    chain: &ChainConfig,
    (count, seconds): (usize, u64),
    executed: &mut HashMap<B256, Instant>,
) -> Result<()> {
    let (builder, checker) = (builder.client(), checker.client());
    let clock = SteadyClock::system();
    let mut parent = builder.head().await?;
    for sequence_number in 0..seconds {
        let timestamp = (clock.now_ms() / 1_000 + 1).max(parent.timestamp + 1);
        let inputs = BlockInputs {
            timestamp,
            prev_randao: B256::ZERO,
            fee_recipient: chain.fee_recipient,
            gas_limit: chain.block_gas_limit,
            l1_origin: L1Origin {
                number: 1,
                hash: B256::ZERO,
                timestamp,
                base_fee: 1,
                blob_base_fee: 1,
                parent_beacon_block_root: B256::ZERO,
            },
            sequence_number,
            l1_deposits: Vec::new(),
        };
        // As a rollup's node does: started a second before its time, taken when that comes.
        let id = builder.start_from_pool(parent.hash, &inputs).await?;
        sleep(Duration::from_millis((timestamp * 1_000).saturating_sub(clock.now_ms()))).await;
        let (payload, transactions) = builder.take_from_pool(id, &inputs).await?;
        let (built, checked) = tokio::join!(builder.import(&payload), checker.import(&payload));
        built.and(checked)?;
        let at = now();
        executed.extend(transactions.into_iter().skip(1).map(|hash| (hash, at)));
        parent = payload.id();
        if executed.len() == count {
            break;
        }
    }
    Ok(())
}

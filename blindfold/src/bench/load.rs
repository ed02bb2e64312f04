//! An open-loop load of encrypted transfers: envelopes leave at a fixed rate whatever the system does, and what becomes
//! of them is read from the feeds, not from the sender's counters.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use alloy_primitives::{B256, Bytes, U256};
use anyhow::{Context, Result, bail};
use blindfold_client::{
    CommitteeKey, EnvelopeMaker, Node, Offer, SignedTransaction, TransactionFields, transaction::sign,
};
use blindfold_l1::{L1Client, L1Writer};
use blindfold_protocol::{Canonical, ChainConfig, Envelope, SigningKey};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, Encoded, HttpClient, SequencerApiClient, Topic, http_client,
};
use blindfold_runtime::{Instant, blocking, now, spawn};
use clap::Args;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::{
    sync::Semaphore,
    time::{Duration, MissedTickBehavior, interval, sleep},
};

use super::observe::{Latency, Observed, feed, watch};
use crate::{
    devnet::accounts::account_key,
    roles::{L1Settings, load_chain},
};

/// Envelopes in flight at most; beyond it they count as not admitted (`client_overloaded`).
const MAX_IN_FLIGHT: usize = 4_096;
/// How long after the last envelope the feeds are still watched, in milliseconds.
const DRAIN_MS: u64 = 5_000;
/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// How long a fee deposit may take to count, in milliseconds.
const DEPOSIT_TIMEOUT_MS: u64 = 60_000;

/// Options of `blindfold bench load`.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// The sequencer, or a gateway (HTTP; its feed is the same address with ws://). Given several times, they take turns
    #[arg(long, required = true)]
    rpc: Vec<String>,
    /// A full node (HTTP): nonces, and when blocks are executed
    #[arg(long, default_value = "http://127.0.0.1:9580")]
    node: String,
    /// L1, for the committee's key
    #[arg(long, default_value = "http://127.0.0.1:8545")]
    l1: String,
    /// The chain's settings, rollup.json
    #[arg(long, default_value = "target/devnet/run/rollup.json")]
    chain: PathBuf,
    /// How long envelopes are sent
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Envelopes per second
    #[arg(long, default_value_t = 50)]
    rate: u64,
    /// Accounts of the development network that send, from account 0 on
    #[arg(long, default_value_t = 20)]
    accounts: usize,
    /// Calls under way at most, at each front-end; with fewer than it could bear, what is sent beyond is not sent at all
    #[arg(long, default_value_t = MAX_IN_FLIGHT)]
    in_flight: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    seconds: u64,
    rate: u64,
    sent: usize,
    admitted: usize,
    refused: BTreeMap<String, usize>,
    certified: usize,
    executed: usize,
    admitted_per_second: f64,
    /// Of these what was admitted before the last one was sent: what the system bears, where more was sent than that.
    admitted_while_sending_per_second: f64,
    certified_per_second: f64,
    executed_per_second: f64,
    submit_to_admitted_ms: Latency,
    submit_to_certified_ms: Latency,
    submit_to_executed_ms: Latency,
}

/// Measures and prints.
///
/// # Errors
/// When the system cannot be reached, or the accounts have no fee deposits and cannot make them.
pub async fn run(args: LoadArgs) -> Result<()> {
    if args.rate == 0 || args.seconds == 0 || args.accounts == 0 {
        bail!("--rate, --seconds and --accounts must not be zero");
    }
    let chain = load_chain(&args.chain)?;
    let config = ClientConfig { max_concurrent_calls: MAX_IN_FLIGHT, ..Default::default() };
    let fronts = args.rpc.iter().map(|url| http_client(url, &config)).collect::<Result<Vec<_>, _>>()?;
    let ([sequencer, ..], [url, ..]) = (fronts.as_slice(), args.rpc.as_slice()) else {
        bail!("--rpc names nobody")
    };
    let node = Node::new(&args.node)?;
    let l1 = L1Settings::new(args.l1.as_str()).connect(&chain).await?;
    let keys: Vec<SigningKey> = (0..args.accounts).map(account_key).collect();
    fund(&keys, sequencer, &l1).await?;
    let envelopes = encrypted(&args, &chain, &keys, &node, sequencer, &l1).await?;

    let observed = Arc::new(Mutex::new(Observed::default()));
    let watchers = [
        spawn(watch(feed(url, &[Topic::Headers, Topic::Certificates]), observed.clone())),
        spawn(watch(feed(&args.node, &[Topic::Blocks]), observed.clone())),
    ];
    send(&args, envelopes, &fronts, &observed).await;
    sleep(Duration::from_millis(DRAIN_MS)).await;
    for watcher in watchers {
        watcher.abort();
    }
    let measured = measured(&args, &observed.lock());
    print(&measured, args.json)
}

/// Deposits for the accounts that have nothing to pay with, and waits until the deposits count.
async fn fund(keys: &[SigningKey], sequencer: &HttpClient, l1: &L1Client) -> Result<()> {
    let mut empty = Vec::new();
    for key in keys {
        if sequencer.get_fee_account(key.address()).await?.balance == 0 {
            empty.push(key);
        }
    }
    if empty.is_empty() {
        return Ok(());
    }
    eprintln!("{} accounts deposit into FeeVault", empty.len());
    for key in &empty {
        L1Writer::new(l1.clone(), (*key).clone())
            .deposit(key.address(), crate::devnet::FEE_DEPOSIT_WEI)
            .await?;
    }
    let deadline = now() + Duration::from_millis(DEPOSIT_TIMEOUT_MS);
    for key in empty {
        while sequencer.get_fee_account(key.address()).await?.balance == 0 {
            if now() > deadline {
                bail!("the deposit of {} does not count after {DEPOSIT_TIMEOUT_MS} ms", key.address());
            }
            sleep(Duration::from_millis(250)).await;
        }
    }
    Ok(())
}

/// Encrypts everything that will be sent, on all cores, before the clock starts.
async fn encrypted(
    args: &LoadArgs,
    chain: &Arc<ChainConfig>,
    keys: &[SigningKey],
    node: &Node,
    sequencer: &HttpClient,
    l1: &L1Client,
) -> Result<Vec<Envelope>> {
    let status = sequencer.get_status().await?;
    let committee = CommitteeKey::fetch(l1, status.head.number + 1, None).await?;
    let offer = Offer {
        base_fee: status.base_fee.saturating_mul(8),
        gas_base_fee: status.gas_base_fee.saturating_mul(8),
        priority_fee: 0,
        head: status.head.number,
        generation: status.head.generation,
        expiry_batches: blindfold_protocol::limits::EXPIRY_WINDOW,
        promise: false,
    };
    let mut nonces = Vec::with_capacity(keys.len());
    for key in keys {
        nonces.push(node.nonce(&key.address()).await?);
    }
    let base_fee = node.base_fee().await?;
    let count = usize::try_from(args.rate.saturating_mul(args.seconds))?;
    eprintln!("encrypting {count} envelopes");
    let (chain, keys) = (chain.clone(), keys.to_vec());
    blocking(move || {
        let one = |index: usize| -> Result<Envelope> {
            let account = index % keys.len();
            let fields = TransactionFields {
                chain_id: chain.chain_id,
                nonce: nonces[account] + (index / keys.len()) as u64,
                to: keys[(account + 1) % keys.len()].address(),
                value: U256::from(1),
                input: Bytes::new(),
                gas_limit: TRANSFER_GAS,
                max_fee_per_gas: base_fee.saturating_mul(16),
                max_priority_fee_per_gas: 0,
            };
            let (raw, _) = sign(&fields, &keys[account]);
            let transaction = SignedTransaction::decode(raw, chain.chain_id)?;
            let maker = EnvelopeMaker { chain: &chain, committee: &committee, payer: &keys[account] };
            Ok(maker.of_transactions(&[transaction], &offer)?)
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    let one = &one;
                    scope.spawn(move || {
                        (worker..count).step_by(threads).map(|i| Ok((i, one(i)?))).collect::<Result<Vec<_>>>()
                    })
                })
                .collect();
            let mut all = Vec::with_capacity(count);
            for worker in workers {
                all.extend(worker.join().map_err(|_| anyhow::anyhow!("an encrypting thread panicked"))??);
            }
            all.sort_by_key(|(index, _)| *index);
            Ok(all.into_iter().map(|(_, envelope)| envelope).collect())
        })
    })
    .await?
}

/// Sends at the rate, whatever the answers.
async fn send(
    args: &LoadArgs,
    envelopes: Vec<Envelope>,
    fronts: &[HttpClient],
    observed: &Arc<Mutex<Observed>>,
) {
    let slots: Vec<_> = fronts.iter().map(|_| Arc::new(Semaphore::new(args.in_flight.max(1)))).collect();
    let mut tick = interval(Duration::from_secs_f64(1.0 / args.rate as f64));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = tokio::task::JoinSet::new();
    for (envelope, (front, slots)) in envelopes.into_iter().zip(fronts.iter().zip(&slots).cycle()) {
        tick.tick().await;
        let id = envelope.id();
        observed.lock().sent.insert(id, now());
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            *observed.lock().refused.entry("client_overloaded".to_owned()).or_default() += 1;
            continue;
        };
        let (front, observed) = (front.clone(), observed.clone());
        calls.spawn(async move {
            let answer = front.send_envelope(Encoded::from_bytes(envelope.encode()), None).await;
            let mut observed = observed.lock();
            match answer {
                Ok(_) => {
                    observed.admitted.insert(id, now());
                }
                Err(error) => {
                    let error = blindfold_rpc::ReceivedError::from(error);
                    *observed.refused.entry(error.reason().to_owned()).or_default() += 1;
                }
            }
            drop(slot);
        });
    }
    while calls.join_next().await.is_some() {}
}

fn measured(args: &LoadArgs, observed: &Observed) -> Measured {
    let after = |later: &HashMap<B256, Instant>| {
        let sample = |(id, at): (&B256, &Instant)| {
            observed.sent.get(id).map(|sent| at.duration_since(*sent).as_secs_f64() * 1e3)
        };
        later.iter().filter_map(sample).collect::<Vec<f64>>()
    };
    let (admitted, certified, executed) =
        (after(&observed.admitted), after(&observed.certified), after(&observed.executed));
    let per_second = |count: usize| count as f64 / args.seconds as f64;
    let (first, last) = (observed.sent.values().min(), observed.sent.values().max());
    let while_sending = first.zip(last).map_or(0.0, |(first, last)| {
        let count = observed.admitted.values().filter(|at| *at <= last).count();
        count as f64 / last.duration_since(*first).as_secs_f64().max(f64::MIN_POSITIVE)
    });
    Measured {
        seconds: args.seconds,
        rate: args.rate,
        sent: observed.sent.len(),
        admitted: admitted.len(),
        refused: observed.refused.clone(),
        certified: certified.len(),
        executed: executed.len(),
        admitted_per_second: per_second(admitted.len()),
        admitted_while_sending_per_second: while_sending,
        certified_per_second: per_second(certified.len()),
        executed_per_second: per_second(executed.len()),
        submit_to_admitted_ms: Latency::of(admitted),
        submit_to_certified_ms: Latency::of(certified),
        submit_to_executed_ms: Latency::of(executed),
    }
}

fn print(measured: &Measured, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(measured).context("figures serialize")?);
        return Ok(());
    }
    let Measured { sent, admitted, certified, executed, .. } = measured;
    println!("sent {sent}, admitted {admitted}, certified {certified}, executed {executed}");
    println!(
        "per second: admitted {:.1}, certified {:.1}, executed {:.1}",
        measured.admitted_per_second, measured.certified_per_second, measured.executed_per_second
    );
    for (name, latency) in [
        ("admitted", &measured.submit_to_admitted_ms),
        ("certified", &measured.submit_to_certified_ms),
        ("executed", &measured.submit_to_executed_ms),
    ] {
        println!(
            "submit → {name:<9}  p50 {:.0} ms  p90 {:.0} ms  p99 {:.0} ms",
            latency.p50, latency.p90, latency.p99
        );
    }
    for (reason, count) in &measured.refused {
        println!("refused: {count} × {reason}");
    }
    Ok(())
}

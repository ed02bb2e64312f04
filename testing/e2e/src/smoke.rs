//! The smoke run: honest and dishonest traffic through the whole system, while parts of it are killed, and a verdict
//! from evidence that the senders cannot have made up.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, bail, ensure};
use blindfold::devnet::{
    Devnet, DevnetOptions, ExecutionSide, L1_NODE, MEMBERS, Progress,
    accounts::{PROXY, SEQUENCER, account_key, named_key},
    ports::{Ports, http, local},
};
use blindfold_client::{CommitteeKey, Node, WalletEndpoints};
use blindfold_protocol::{Canonical, L1Timing, SealedBatch};
use blindfold_rpc::{Feed, FeedConfig, FeedEvent, FeedItem, Topic};
use clap::Parser;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Duration, Instant, sleep},
};

use crate::{
    checker::{Evidence, count_plaintexts, submissions, summarize},
    collector::Collector,
    forge::Forgeries,
    relay::{Recorded, Relay, now_ms},
    traffic::{Ordinary, Sender},
    verdict::{MALFORMED, self_test, verdict},
};

/// Accounts that send through their own wallet, and accounts that send through the proxy: twenty together.
const WALLETS: usize = 10;
const ORDINARY: usize = 10;
/// How often a state that has no notification is looked up.
const LOOK_INTERVAL_MS: u64 = 100;
/// How often it is looked whether a claim was compared; an envelope goes out each time.
const CLAIM_LOOK_INTERVAL_MS: u64 = 500;
/// How long hints can be challenged in this run, in L1 blocks of a second: so short that some become final.
const CHALLENGE_WINDOW_BLOCKS: u32 = 10;
/// How long everything sent may take to have its outcome everywhere.
const SETTLE_TIMEOUT_MS: u64 = 180_000;

/// What the trace of an ordinary user's envelope tells, by role.
const PARTS: [(&str, &str); 14] = [
    ("proxy", "encrypt"),
    ("sequencer", "admit"),
    ("sequencer", "seal"),
    ("committee", "apply"),
    ("committee", "acknowledge"),
    ("sequencer", "certify"),
    ("committee", "share"),
    ("hint-publisher", "predecrypt"),
    ("hint-publisher", "open"),
    ("hint-publisher", "publish hints"),
    ("sequencer", "verify hints"),
    ("full-node", "verify hints"),
    ("full-node", "execute"),
    ("sequencer", "post"),
];

/// Options of the smoke run.
#[derive(Parser, Debug)]
#[command(
    name = "devnet --smoke",
    about = "Drive traffic and faults through the whole system and check the outcome"
)]
pub struct SmokeArgs {
    /// Folder for everything the run writes; removed when all is right, unless --keep
    #[arg(long, default_value = "target/devnet/smoke")]
    dir: PathBuf,
    /// Where the summary goes
    #[arg(long, default_value = "target/devnet/summary.json")]
    summary: PathBuf,
    /// Envelopes to be submitted at least
    #[arg(long, default_value_t = 300)]
    envelopes: u64,
    /// Leave the folder where it is
    #[arg(long)]
    keep: bool,
    /// Keep the records of all roles in a PostgreSQL server of the run; needs the package postgresql
    #[arg(long)]
    postgres: bool,
}

/// The network with its relay, its senders and what is seen of it.
struct Run {
    devnet: Devnet,
    relay: Relay,
    forgeries: Forgeries,
    wallets: Vec<Sender>,
    ordinary: Vec<Ordinary>,
    node: Node,
    l1_node: Node,
    sequencer: Node,
    committee: CommitteeKey,
    block_seen_ms: Arc<Mutex<BTreeMap<u64, u64>>>,
    collector: Collector,
    progress: Progress,
}

/// Runs it.
///
/// # Errors
/// When anything is not as it must be; the summary is written all the same where there is one.
pub async fn run(args: SmokeArgs) -> Result<()> {
    let progress = Progress::default();
    let mut run = Run::start(&args, progress).await?;
    let disk_plaintexts = run.traffic(args.envelopes).await?;
    run.compare_outputs().await?;
    run.settle().await?;
    run.settle_on_l1().await?;
    progress.step("is there an envelope whose trace tells of every role?");
    run.collector.wait_for_whole(&PARTS, Duration::from_millis(SETTLE_TIMEOUT_MS)).await?;
    run.join_from_a_snapshot().await?;
    let evidence = run.evidence(disk_plaintexts).await?;
    let summary = summarize(&evidence)?;
    if let Some(parent) = args.summary.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&args.summary, serde_json::to_vec_pretty(&summary)?)?;
    println!("{}", serde_json::to_string_pretty(&summary)?);

    let mut problems = verdict(&summary, args.envelopes);
    progress.step(
        "self-test: the checker has to find a plaintext, another block and a lost envelope put before it",
    );
    problems.extend(self_test(evidence));
    if problems.is_empty() {
        run.devnet.stop().await?;
        if !args.keep {
            fs::remove_dir_all(&args.dir)?;
        }
        progress.step(format!("smoke run passed; summary in {}", args.summary.display()));
        return Ok(());
    }
    let dir = run.devnet.dir().display().to_string();
    run.devnet.stop().await?;
    bail!("smoke run failed:\n  - {}\nlogs: {dir}/logs", problems.join("\n  - "));
}

/// Runs a command of the program; gives what it printed.
async fn blindfold(arguments: &[&str]) -> Result<String> {
    let output = Command::new(crate::program()?).args(arguments).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "blindfold {}: {}", arguments.join(" "), said.trim());
    Ok(String::from_utf8(output.stdout)?)
}

impl Run {
    async fn start(args: &SmokeArgs, progress: Progress) -> Result<Self> {
        let ports = Ports::free_with_l1_node(MEMBERS)?;
        let l1_node = Node::new(&http(ports.l1_node.context("a node from L1")?.node.0))?;
        let relay = Relay::start(local(0), local(ports.sequencer.0)).await?;
        let binary = crate::program()?;
        let address = relay.http_url("");
        let collector = Collector::start().await?;
        let options = DevnetOptions {
            ports,
            keep: true,
            postgres: args.postgres,
            traces_url: Some(collector.url.clone()),
            sequencer_urls: Some(Arc::new(move |role| format!("{address}{role}").into())),
            timing: L1Timing { challenge_window: CHALLENGE_WINDOW_BLOCKS, ..L1Timing::default() },
            ..DevnetOptions::new(args.dir.clone(), binary)
        };
        let devnet = Devnet::start(options, &progress).await?;
        let forgeries = Forgeries::default();
        relay.tamper(forgeries.tamper(named_key(SEQUENCER), devnet.chain.deployment));

        let l1 = Arc::new(devnet.l1.clone());
        let committee = CommitteeKey::fetch(&*l1, 1, None).await?;
        let mut wallets = Vec::new();
        for index in 0..WALLETS {
            let endpoints = WalletEndpoints {
                node: http(devnet.ports.full_node.0),
                sequencers: relay.http_url(&format!("wallet-{index}")).into(),
            };
            let (chain, key) = (devnet.chain.clone(), account_key(index));
            wallets.push(Sender::new(key, chain, l1.clone(), committee.clone(), &endpoints).await?);
        }
        let proxy = Node::new(&http(devnet.ports.proxy.0))?;
        let ordinary = (WALLETS..WALLETS + ORDINARY)
            .map(|index| Ordinary {
                key: account_key(index),
                nonce: 0,
                proxy: proxy.clone(),
                chain_id: devnet.chain.chain_id,
            })
            .collect();
        let block_seen_ms = Arc::default();
        tokio::spawn(watch_blocks(devnet.ports.full_node.0, Arc::clone(&block_seen_ms)));
        let node = Node::new(&http(devnet.ports.full_node.0))?;
        let sequencer = Node::new(&http(devnet.ports.sequencer.0))?;
        Ok(Self {
            devnet,
            relay,
            forgeries,
            wallets,
            ordinary,
            node,
            l1_node,
            sequencer,
            committee,
            block_seen_ms,
            collector,
            progress,
        })
    }

    /// Everything that is sent and everything that is broken, in order. Gives the plaintexts found on the disk.
    async fn traffic(&mut self, envelopes: u64) -> Result<u64> {
        self.wait_for_deposits().await?;
        self.progress.step("honest traffic: wallets and the proxy");
        self.both(3).await?;
        self.cast().await?;

        self.progress.step(
            "forgeries: a second header to every member, a wrong hint and a wrong certificate to the node",
        );
        self.forgeries.arm_second_header(&["member-1", "member-2", "member-3", "member-4"]);
        self.forgeries.arm_hint();
        self.both(2).await?;
        self.forgeries.arm_certificate();
        self.both(1).await?;

        self.progress.step("kill -9: the hint publisher");
        self.devnet.process("hint-publisher")?.kill().await?;
        self.both(2).await?;
        self.devnet.process("hint-publisher")?.start()?;

        self.progress.step("kill -9: member 2, and the node from L1");
        self.devnet.process(L1_NODE)?.kill().await?;
        self.devnet.process("member-2")?.kill().await?;
        self.both(2).await?;
        self.devnet.process("member-2")?.start()?;
        self.devnet.process(L1_NODE)?.start()?;
        self.devnet.process("member-2")?.ready().await?;

        self.progress.step("kill -9: the sequencer, while the proxy goes on taking transactions");
        self.devnet.process("sequencer")?.kill().await?;
        self.ordinary(1).await?;
        self.devnet.process("sequencer")?.start()?;
        self.devnet.process("sequencer")?.ready().await?;
        self.both(2).await?;

        self.progress.step("kill -9: the sequencer's execution client, then the full node's");
        self.devnet.kill_and_restart_execution(ExecutionSide::Sequencer).await?;
        self.both(1).await?;
        self.devnet.kill_and_restart_execution(ExecutionSide::FullNode).await?;
        self.both(1).await?;
        self.devnet.process("hint-publisher")?.ready().await?;

        self.progress.step("what users may do wrong");
        self.offences().await?;
        self.progress.step("sealed and not certified: does the sequencer's disk show a plaintext?");
        let found = self.disk_before_certificate().await?;

        self.progress.step(format!("more honest traffic, until {envelopes} envelopes are submitted"));
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        while (submissions(&self.relay.recording()).len() as u64) < envelopes {
            ensure!(Instant::now() < deadline, "the sequencer takes envelopes too slowly");
            self.both(1).await?;
        }
        Ok(found)
    }

    async fn both(&mut self, each: usize) -> Result<()> {
        for _ in 0..each {
            self.ordinary(1).await?;
            for wallet in &mut self.wallets {
                wallet.send().await?;
            }
        }
        Ok(())
    }

    async fn ordinary(&mut self, each: usize) -> Result<()> {
        for _ in 0..each {
            for account in &mut self.ordinary {
                account.send().await?;
            }
        }
        Ok(())
    }

    /// `cast send`, as a developer would.
    async fn cast(&mut self) -> Result<()> {
        self.progress.step("cast send through the proxy");
        let account = &mut self.ordinary[0];
        // cast asks for the nonce after the latest block.
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        while self.node.nonce(&account.key.address()).await? < account.nonce {
            ensure!(
                Instant::now() < deadline,
                "the first transactions of {} stay out",
                account.key.address()
            );
            sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
        }
        let cast = Path::new("contracts/node_modules/.bin/cast");
        let output = Command::new(cast)
            .args(["send", "--rpc-url", &http(self.devnet.ports.proxy.0), "--json", "--timeout", "60"])
            .args(["--private-key", &format!("0x{}", hex::encode(account.key.to_bytes()))])
            .args(["--value", "1wei", &Address::repeat_byte(0x78).to_string()])
            .output()
            .await
            .with_context(|| format!("{}", cast.display()))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cast send failed: {stderr}");
        let receipt: Value = serde_json::from_slice(&output.stdout)?;
        ensure!(receipt["status"] == "0x1", "cast send was not executed: {receipt}");
        account.nonce += 1;
        self.progress.step("eth_sendRawTransactionSync through the proxy");
        account.send_sync().await?;
        Ok(())
    }

    /// Everything a user can do wrong: some of it the sequencer refuses, the rest it cannot see.
    async fn offences(&mut self) -> Result<()> {
        let (first, rest) = self.wallets.split_first_mut().context("a wallet")?;
        for wallet in rest.iter().take(usize::try_from(MALFORMED)?) {
            wallet.send_malformed().await?;
        }
        // Ten inner transactions that no block can hold.
        let offender = &rest[rest.len() - 1];
        let ether = U256::from(10u128.pow(18));
        for item in [
            offender.transfer(0, U256::from(2)).0.to_vec(),
            rest[0].transfer(0, U256::from(2)).0.to_vec(),
            offender.transfer(offender.nonce + 1_000, U256::from(1)).0.to_vec(),
            rest[1].transfer(rest[1].nonce, ether * U256::from(1_000_000)).0.to_vec(),
            rest[2].transfer(rest[2].nonce, ether * U256::from(1_000_000)).0.to_vec(),
            b"\xf8this is no transaction at all, but long enough to look for".to_vec(),
            b"\x02neither is this one, although its type byte is right".to_vec(),
            deposit_type(),
            blob_type(0x01),
            blob_type(0x02),
        ] {
            offender.send_item(item).await?;
        }

        let (envelope, _) = first.send().await?;
        let copied = rest[0].copy_of(&envelope);
        rest[0].expect_refusal(&copied, "invalid_proof").await?;
        self.wait_for_state(envelope.id(), |state| state != "pending").await?;
        self.wallets[0].expect_refusal(&envelope, "already_known").await?;

        let endpoints = WalletEndpoints {
            node: http(self.devnet.ports.full_node.0),
            sequencers: self.relay.http_url("pauper").into(),
        };
        let (chain, l1) = (self.devnet.chain.clone(), Arc::new(self.devnet.l1.clone()));
        let pauper = Sender::new(named_key("pauper"), chain, l1, self.committee.clone(), &endpoints).await?;
        let unpaid = pauper.envelope(vec![1; 40]).await?;
        pauper.expect_refusal(&unpaid, "insufficient_funds").await
    }

    /// Seals envelopes while too few members run to certify them, and searches the sequencer's disk for what they hold.
    async fn disk_before_certificate(&mut self) -> Result<u64> {
        for member in ["member-1", "member-2"] {
            self.devnet.process(member)?.pause()?;
        }
        let mut needles = Vec::new();
        let mut ids = Vec::new();
        for wallet in self.wallets.iter_mut().take(3) {
            let (envelope, raw) = wallet.send().await?;
            ids.push(envelope.id());
            needles.push(raw[raw.len() - 32..].to_vec());
        }
        for id in &ids {
            self.wait_for_state(*id, |state| state == "sealed").await?;
        }
        let mut found = 0;
        for folder in ["sequencer", "sequencer-execution", "logs"] {
            found = scan(&self.devnet.dir().join(folder), &needles)?.saturating_add(found);
        }
        for id in &ids {
            let state = self.state(*id).await?;
            ensure!(state == "sealed", "envelope {id} is {state} although two of four members are stopped");
        }
        for member in ["member-1", "member-2"] {
            self.devnet.process(member)?.resume()?;
        }
        Ok(found)
    }

    async fn state(&self, id: B256) -> Result<String> {
        let receipt = self.sequencer.call("blind_getReceipt", &[json!(id)]).await?;
        Ok(receipt["state"].as_str().unwrap_or_default().to_owned())
    }

    async fn wait_for_state(&self, id: B256, reached: impl Fn(&str) -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        loop {
            let state = self.state(id).await?;
            if reached(&state) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "envelope {id} stays {state}");
            sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
        }
    }

    /// Deposits count once their L1 block is final and a header has credited them.
    async fn wait_for_deposits(&self) -> Result<()> {
        let sequencer = &self.sequencer;
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        let payers = (0..WALLETS).map(account_key).chain([named_key(PROXY)]);
        for payer in payers {
            while sequencer.call("blind_getFeeAccount", &[json!(payer.address())]).await?["balance"] == "0x0"
            {
                ensure!(Instant::now() < deadline, "the deposit of {} does not count", payer.address());
                sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
            }
        }
        Ok(())
    }

    /// Goes on sending until the full node has compared a claim of the sequencer's on L1: claims wait for the chain to go
    /// on.
    async fn compare_outputs(&mut self) -> Result<()> {
        self.progress.step("more traffic, until the full node has compared a claim of an L2 block on L1");
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        loop {
            let status = self.node.call("blind_getStatus", &[]).await?;
            if status["counters"]["watch_outputs_compared"].as_u64().is_some_and(|compared| compared > 0) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "no claim of an L2 block on L1 was compared: {status}");
            let (first, _) = self.wallets.split_first_mut().context("a wallet")?;
            first.send().await?;
            sleep(Duration::from_millis(CLAIM_LOOK_INTERVAL_MS)).await;
        }
    }

    /// Waits until the last block is safe at every node, the one that knows L1 alone among them, and some block is
    /// finalized.
    async fn settle_on_l1(&self) -> Result<()> {
        self.progress.step("waiting until the last block is safe everywhere, at the node from L1 alone, too");
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        loop {
            let last = tagged(&self.node, "latest").await?;
            let mut behind = Vec::new();
            for (name, node) in
                [("full node", &self.node), ("node from L1", &self.l1_node), ("sequencer", &self.sequencer)]
            {
                let safe = tagged(node, "safe").await?;
                if safe != last {
                    behind.push(format!("{name}: {safe:?} is safe"));
                }
            }
            let finalized = tagged(&self.node, "finalized").await?;
            if behind.is_empty() && finalized.is_some_and(|(number, _)| number > 0) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "the last block is {last:?}, finalized is {finalized:?}, {}; logs in {}/logs",
                behind.join(", "),
                self.devnet.dir().display()
            );
            sleep(Duration::from_millis(LOOK_INTERVAL_MS)).await;
        }
    }

    /// Waits until everything admitted has its outcome at the full node, every header is on L1, and nothing is held.
    async fn settle(&self) -> Result<()> {
        self.progress.step("waiting until everything has its outcome at the full node and on L1");
        let deadline = Instant::now() + Duration::from_millis(SETTLE_TIMEOUT_MS);
        loop {
            let mut open = Vec::new();
            for id in admitted(&self.relay.recording()) {
                let receipt = self.node.call("blind_getReceipt", &[json!(id)]).await?;
                let state = receipt["state"].as_str().unwrap_or("unknown").to_owned();
                if !matches!(state.as_str(), "executed" | "skipped" | "malformed" | "expired" | "void") {
                    open.push((id, state));
                }
            }
            let nonces_reached = self.nonces_reached().await?;
            let status = self.node.call("blind_getStatus", &[]).await?;
            let head = status["head"]["number"].as_u64().unwrap_or(u64::MAX);
            let posted = self.devnet.l1.final_posted_head().await?.number;
            if open.is_empty()
                && nonces_reached
                && posted >= head
                && status["certified"] == status["head"]["number"]
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "not settled after {SETTLE_TIMEOUT_MS} ms: {} envelopes open (first: {:?}), proxied transactions \
                     all executed: {nonces_reached}, L1 at {posted} of {head}; logs in {}/logs",
                    open.len(),
                    open.first(),
                    self.devnet.dir().display()
                );
            }
            sleep(Duration::from_millis(LOOK_INTERVAL_MS * 5)).await;
        }
    }

    /// A new node begins with a backup of the running one, verified by L1, and lacks nothing of it.
    async fn join_from_a_snapshot(&self) -> Result<()> {
        self.progress.step("a new node joins from a snapshot of the full node");
        let dir = self.devnet.dir();
        let (snapshot, joined) = (dir.join("snapshot.db"), dir.join("joined"));
        let (snapshot, joined) = (snapshot.display().to_string(), joined.display().to_string());
        let store = self.devnet.store_of("full-node")?.to_string();
        blindfold(&["store", "backup", "--store", &store, "--out", &snapshot]).await?;
        let settings = dir.join("full-node.toml").display().to_string();
        let [folder, records] =
            [format!("data_dir={joined}"), format!("store.url=sqlite:{joined}/chain.sqlite")];
        let of_the_new_one = ["--config", &settings, "--set", &folder, "--set", &records, "--json"];
        let told = blindfold(&[&["full-node", "join", &snapshot][..], &of_the_new_one].concat()).await?;
        let told: Value = serde_json::from_str(&told).context("what join printed")?;
        blindfold(&["store", "verify", "--store", &joined]).await?;
        let head = self.node.call("blind_getStatus", &[]).await?["certified"].clone();
        let (through, batches) = (told["through"].as_u64(), told["batches"].as_u64());
        // A batch more may have been certified meanwhile.
        ensure!(
            through.is_some() && through <= head.as_u64() && batches == through && told["hints"] != 0,
            "the new node joined with {told}, the running one has {head}"
        );
        Ok(())
    }

    /// Whether every transaction that the proxy answered for has been executed.
    async fn nonces_reached(&self) -> Result<bool> {
        for account in &self.ordinary {
            if self.node.nonce(&account.key.address()).await? < account.nonce {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Headers in L1's final `Posted` logs whose envelopes are on L1, with them or posted later, and match them.
    async fn headers_on_l1(&self) -> Result<u64> {
        let l1 = &self.devnet.l1;
        let newest = l1.finalized().await?.number;
        let mut headers = 0;
        for posting in l1.postings(self.devnet.chain.genesis_l1_origin, newest).await? {
            let lacking = posting.lacking();
            let later = l1.reposted_data(&lacking, posting.l1_block.saturating_sub(1), newest).await?;
            headers += (posting.headers.len() - lacking.len() + later.batches.len()) as u64;
        }
        Ok(headers)
    }

    async fn evidence(&self, disk_plaintexts: u64) -> Result<Evidence> {
        let recording = self.relay.recording();
        let status = self.node.call("blind_getStatus", &[]).await?;
        let head = status["head"]["number"].as_u64().context("the node's head")?;
        let mut batches = Vec::new();
        for number in 1..=head {
            batches.push(self.node.call("blind_getBatch", &[json!(number)]).await?);
        }
        let mut receipts = BTreeMap::new();
        for id in admitted(&recording) {
            receipts.insert(id, self.node.call("blind_getReceipt", &[json!(id)]).await?);
        }
        let last = status["block"]["number"].as_u64().context("the node's block")?;
        let (blocks, blocks_from_l1) = (blocks(&self.node, last).await?, blocks(&self.l1_node, last).await?);
        let number = async |node, tag| {
            let found = tagged(node, tag).await?;
            Ok::<_, anyhow::Error>(found.map_or(0, |(number, _)| number))
        };
        let safe = [
            number(&self.node, "safe").await?,
            number(&self.l1_node, "safe").await?,
            number(&self.sequencer, "safe").await?,
        ];
        let finalized = number(&self.node, "finalized").await?;
        let origin = batches
            .last()
            .and_then(|batch| batch["sealed"].as_str())
            .and_then(|text| SealedBatch::from_hex(text).ok())
            .context("the head's origin")?
            .header
            .l1_origin_number;
        let deposits = self.devnet.l1.deposits(self.devnet.chain.genesis_l1_origin, origin).await?;
        let mut owners: Vec<Address> = deposits.iter().map(|deposit| deposit.payer).collect();
        owners.extend([self.devnet.chain.sequencer, self.devnet.chain.base_fee_recipient]);
        owners.sort_unstable();
        owners.dedup();
        let mut accounts = Vec::new();
        for owner in owners {
            accounts.push(self.node.call("blind_getFeeAccount", &[json!(owner)]).await?);
        }
        let block_seen_ms = self.block_seen_ms.lock().clone();
        Ok(Evidence {
            recording,
            batches,
            receipts,
            status,
            blocks,
            blocks_from_l1,
            safe,
            finalized,
            block_seen_ms,
            accounts,
            headers_on_l1: self.headers_on_l1().await?,
            opened_postings: {
                let status = self.sequencer.call("blind_getStatus", &[]).await?;
                status["counters"]["opened_postings"].as_u64().unwrap_or_default()
            },
            l1_deposits: deposits.iter().map(|deposit| deposit.amount).sum(),
            disk_plaintexts,
            encryption_key: self.committee.key.clone(),
        })
    }
}

/// Number and hash of the block under a tag; `None` for one that the client has none for.
async fn tagged(node: &Node, tag: &str) -> Result<Option<(u64, B256)>> {
    // A client without such a block answers with an error, or with null.
    let Ok(block) = node.call("eth_getBlockByNumber", &[json!(tag), json!(false)]).await else {
        return Ok(None);
    };
    let (Some(number), Some(hash)) = (block["number"].as_str(), block["hash"].as_str()) else {
        return Ok(None);
    };
    Ok(Some((u64::from_str_radix(number.trim_start_matches("0x"), 16)?, hash.parse()?)))
}

/// The hashes of the blocks up to this one.
async fn blocks(node: &Node, last: u64) -> Result<BTreeMap<u64, B256>> {
    let mut blocks = BTreeMap::new();
    for number in 0..=last {
        let found =
            tagged(node, &format!("{number:#x}")).await?.with_context(|| format!("block {number}"))?;
        blocks.insert(found.0, found.1);
    }
    Ok(blocks)
}

/// Ids that the sequencer answered with, as the relay saw them.
fn admitted(recording: &[Recorded]) -> Vec<B256> {
    let mut ids: Vec<B256> =
        submissions(recording).into_iter().filter_map(|submission| submission.answer?.ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// A transaction of the type that mints, had it a place in a block: source hash, from, to, mint, value, gas, flag, data.
fn deposit_type() -> Vec<u8> {
    let mut raw = vec![0x7e, 0xf8, 0x44, 0xa0];
    raw.extend([0x11; 32]);
    raw.push(0x94);
    raw.extend([0x22; 20]);
    raw.push(0x80);
    raw.extend([0x88, 0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0x00, 0x00, 0x80, 0x80, 0x80]);
    raw
}

fn blob_type(fill: u8) -> Vec<u8> {
    [&[0x03, 0xf8, 0x40][..], &[fill; 64]].concat()
}

/// Searches every file below a folder.
fn scan(dir: &Path, needles: &[Vec<u8>]) -> Result<u64> {
    let mut found = 0;
    for entry in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let path = entry?.path();
        // Files of a running process come and go.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() {
            found = scan(&path, needles)?.saturating_add(found);
        } else if let Ok(bytes) = fs::read(&path) {
            found = count_plaintexts(&bytes, needles).saturating_add(found);
        }
    }
    Ok(found)
}

async fn watch_blocks(port: u16, seen: Arc<Mutex<BTreeMap<u64, u64>>>) {
    let mut feed = Feed::start(format!("ws://127.0.0.1:{port}"), [Topic::Blocks], FeedConfig::default());
    while let Some(item) = feed.next().await {
        if let FeedItem::Event(FeedEvent::Block(block)) = item {
            seen.lock().entry(block.number).or_insert_with(now_ms);
        }
    }
}

//! What floods cost their maker, and what they cost the roles: each beside honest transfers of the same number, on a
//! development network of its own.
//!
//! Every role is a process, so that its processor time and memory are the operating system's word. What the network
//! uses while nobody sends anything is taken off.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use alloy_primitives::{B256, Bytes, U256};
use anyhow::{Context, Result, bail};
use blindfold_bte::{EncryptionKey, dealer};
use blindfold_client::{
    CommitteeKey, EnvelopeMaker, Node, Offer, TransactionFields, transaction::sign, wallet::is_final,
};
use blindfold_protocol::{
    Acknowledgement, BatchHints, Bundle, BundleItem, Canonical, Certificate, ChainConfig, Envelope,
    HintEntry, Release, SigningKey, bte::bls::SecretKey,
};
use blindfold_rpc::{
    BlindApiClient, ClientConfig, CommitteeApiClient, Encoded, HttpClient, ReceivedError, SequencerApiClient,
    http_client,
    types::{EnvelopeState, SendOptions},
};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{Duration, Instant, MissedTickBehavior, interval, sleep},
};

use super::machine::Machine;
use crate::devnet::{
    Devnet, DevnetOptions, MEMBERS, Progress,
    accounts::{account_key, named_key},
    ports::{Ports, http},
};

/// Accounts that pay.
const ACCOUNTS: usize = 20;
/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// How long nobody sends anything, to see what the network uses by itself.
const IDLE: Duration = Duration::from_secs(10);
/// How long the network is watched after the last envelope is final: posting and its checks.
const SETTLING: Duration = Duration::from_secs(4);
/// How long the last envelope may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is asked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A flood that costs the roles so much more than honest transfers of the same price, or of the same bytes, is too cheap.
const TOO_CHEAP: f64 = 2.0;

/// What the smallest HTTP request takes around the parameters of a call.
const REQUEST_BYTES: usize = 150;

/// Processor time of a role below which a ratio says nothing, in milliseconds: ten times what the operating system counts by.
const LEAST_CPU_MS: f64 = 100.0;

/// Options of `blindfold bench attack`.
#[derive(Args, Debug)]
pub struct AttackArgs {
    /// Envelopes of each flood; ten times as many messages where there are no envelopes
    #[arg(long, default_value_t = 400)]
    envelopes: usize,
    /// Envelopes per second
    #[arg(long, default_value_t = 50)]
    rate: u64,
    /// Only this flood, beside the honest transfers. Repeatable
    #[arg(long = "flood", value_name = "NAME")]
    floods: Vec<Flood>,
    /// Folder for the network, removed in the end
    #[arg(long, default_value = "target/devnet/bench-attack")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Fail when a flood is too cheap for its maker
    #[arg(long)]
    check: bool,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Flood {
    /// Transfers.
    Honest,
    /// Transfers for which promises are asked.
    Promised,
    /// Paid envelopes that open to a message which is no bundle.
    Junk,
    /// Paid envelopes that open to nothing.
    Malformed,
    /// Envelopes whose proof of knowledge is damaged.
    DamagedProof,
    /// Envelopes of payers without a fee account.
    Unfunded,
    /// One honest envelope, again and again.
    Repeated,
    /// As many bytes that are no envelope.
    Undecodable,
    /// Acknowledgements of the newest header with a signature of nobody's, to the sequencer.
    Acknowledgements,
    /// Wrong hints of the newest batch that has some, to the sequencer.
    Hints,
    /// Calls for a release share against a forged certificate, to all members in turn.
    Shares,
    /// Calls for the singleton share of a good envelope, to all members in turn.
    Singletons,
}

impl Flood {
    const ALL: [Self; 11] = [
        Self::Promised,
        Self::Junk,
        Self::Malformed,
        Self::DamagedProof,
        Self::Unfunded,
        Self::Repeated,
        Self::Undecodable,
        Self::Acknowledgements,
        Self::Hints,
        Self::Shares,
        Self::Singletons,
    ];

    /// Messages in place of one envelope: small ones cost so little that fewer would be lost in what the system counts by.
    const fn messages(self) -> usize {
        match self {
            Self::Acknowledgements | Self::Hints | Self::Shares | Self::Singletons => 10,
            _ => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Promised => "promised",
            Self::Junk => "junk",
            Self::Malformed => "malformed",
            Self::DamagedProof => "damaged_proof",
            Self::Unfunded => "unfunded",
            Self::Repeated => "repeated",
            Self::Undecodable => "undecodable",
            Self::Acknowledgements => "acknowledgements",
            Self::Hints => "hints",
            Self::Shares => "shares",
            Self::Singletons => "singletons",
        }
    }
}

/// One message of a flood.
#[derive(Clone)]
enum Message {
    /// An envelope, and whether a promise is asked for it.
    Envelope {
        id: B256,
        bytes: Bytes,
        promise: bool,
    },
    Acknowledgement(Box<Acknowledgement>),
    Hints(Arc<(Release, BatchHints)>),
    Share {
        number: u64,
        certificate: Certificate,
    },
    Singleton {
        number: u64,
        index: u32,
    },
}

impl Message {
    /// Bytes on the way: parameters are hex.
    fn bytes(&self) -> usize {
        let parameters = match self {
            Self::Envelope { bytes, .. } => bytes.len(),
            Self::Acknowledgement(acknowledgement) => acknowledgement.encode().len(),
            Self::Hints(hints) => hints.0.encode().len() + hints.1.encode().len(),
            Self::Share { certificate, .. } => certificate.encode().len(),
            Self::Singleton { .. } => 0,
        };
        REQUEST_BYTES + 2 * parameters
    }
}

/// What the roles used.
#[derive(Clone, Debug, Default, Serialize)]
struct Usage {
    /// Processor time, in milliseconds, without what the network uses by itself.
    cpu_ms: BTreeMap<String, f64>,
    /// Memory more than before, in KiB.
    grown_kib: BTreeMap<String, u64>,
}

/// What a flood was and did.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    flood: Flood,
    sent: usize,
    admitted: usize,
    refused: BTreeMap<String, usize>,
    /// Bytes of the requests.
    bytes: usize,
    /// What left the payers' fee accounts, in wei. A malformed envelope's surcharge is counted in, for it never returns.
    paid_wei: u128,
    usage: Usage,
    /// Processor time of all roles for one envelope, in milliseconds.
    cpu_ms_per_envelope: f64,
    /// That, over an honest one's.
    times_honest: f64,
    /// The price of one, over an honest one's.
    price_times_honest: f64,
    /// Bytes of one, over an honest one's.
    bytes_times_honest: f64,
    /// `times_honest` over the larger of the two: what is refused is paid for in bytes alone.
    leverage: f64,
    /// The same of each role by itself.
    role_leverage: BTreeMap<String, f64>,
    verdict: Verdict,
}

/// Whether a flood costs the roles too little of its maker's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// No leverage, of all roles together or of one, is above [`TOO_CHEAP`].
    Within,
    TooCheap,
}

/// Everything.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    envelopes: usize,
    rate: u64,
    /// Processor time that the network uses by itself, in milliseconds a second.
    idle_ms_per_second: BTreeMap<String, f64>,
    floods: Vec<Measured>,
}

/// Measures and prints.
///
/// # Errors
/// When the network does not start, or an honest transfer does not become final.
pub async fn run(args: AttackArgs) -> Result<()> {
    if args.rate == 0 || args.envelopes == 0 {
        bail!("--rate and --envelopes must not be zero");
    }
    let options = DevnetOptions {
        ports: Ports::free(MEMBERS)?,
        accounts: ACCOUNTS,
        paying: ACCOUNTS,
        ..DevnetOptions::new(args.dir.clone(), std::env::current_exe()?)
    };
    let progress = Progress::default();
    let mut field = Field::start(options, &progress).await?;
    progress.step("what the network uses by itself");
    field.idle().await?;
    progress.step("transfers that are not counted: what is done once is done by then");
    field.flood(Flood::Honest, args.envelopes, args.rate).await?;
    let mut floods = vec![Flood::Honest];
    let wanted = |flood: &Flood| args.floods.is_empty() || args.floods.contains(flood);
    floods.extend(Flood::ALL.into_iter().filter(wanted));
    let mut measured: Vec<Measured> = Vec::new();
    for flood in floods {
        progress.step(format!("{} × {}", args.envelopes, flood.name()));
        let one = field.flood(flood, args.envelopes, args.rate).await?;
        let honest = measured.first().unwrap_or(&one).clone();
        measured.push(one.beside(&honest));
    }
    let report = Report {
        machine: Machine::this(),
        envelopes: args.envelopes,
        rate: args.rate,
        idle_ms_per_second: field.idle_ms_per_second.clone(),
        floods: measured,
    };
    field.devnet.stop().await?;
    print(&report, args.json)?;
    let cheap: Vec<String> = report.floods.iter().filter_map(Measured::too_cheap).collect();
    if args.check && !cheap.is_empty() {
        bail!("too cheap, at a leverage above {TOO_CHEAP}: {}", cheap.join("; "));
    }
    Ok(())
}

/// What is not a number is not within it either.
fn within(leverage: f64) -> bool {
    leverage <= TOO_CHEAP
}

impl Measured {
    fn beside(mut self, honest: &Self) -> Self {
        let each = |all: f64, of: &Self| all / of.sent as f64;
        self.times_honest = self.cpu_ms_per_envelope / honest.cpu_ms_per_envelope;
        self.price_times_honest = each(self.paid_wei as f64, &self) / each(honest.paid_wei as f64, honest);
        self.bytes_times_honest = each(self.bytes as f64, &self) / each(honest.bytes as f64, honest);
        let paid = self.price_times_honest.max(self.bytes_times_honest);
        self.leverage = self.times_honest / paid;
        for (role, cpu_ms) in &self.usage.cpu_ms {
            let of_honest = honest.usage.cpu_ms.get(role).copied().unwrap_or_default();
            let each = |cpu_ms: f64, of: &Self| cpu_ms.max(LEAST_CPU_MS) / of.sent as f64;
            let leverage = each(*cpu_ms, &self) / each(of_honest, honest) / paid;
            self.role_leverage.insert(role.clone(), leverage);
        }
        let mut all = std::iter::once(self.leverage).chain(self.role_leverage.values().copied());
        self.verdict = if all.all(within) { Verdict::Within } else { Verdict::TooCheap };
        self
    }

    /// Its name, and where its leverage is too high.
    fn too_cheap(&self) -> Option<String> {
        if self.verdict == Verdict::Within {
            return None;
        }
        let roles = self.role_leverage.iter().map(|(role, leverage)| (role.as_str(), *leverage));
        let places: Vec<String> = std::iter::once(("all", self.leverage))
            .chain(roles)
            .filter(|(_, leverage)| !within(*leverage))
            .map(|(role, leverage)| format!("{role} {leverage:.2}"))
            .collect();
        Some(format!("{} ({})", self.flood.name(), places.join(", ")))
    }
}

/// A network with those who send to it.
struct Field {
    devnet: Devnet,
    chain: Arc<ChainConfig>,
    committee: CommitteeKey,
    /// A key that nobody has a share of.
    foreign: EncryptionKey,
    sequencer: HttpClient,
    members: Vec<HttpClient>,
    node: HttpClient,
    reads: Node,
    idle_ms_per_second: BTreeMap<String, f64>,
}

impl Field {
    async fn start(options: DevnetOptions, progress: &Progress) -> Result<Self> {
        let devnet = Devnet::start(options, progress).await?;
        let committee = CommitteeKey::fetch(&devnet.l1, 1, None).await?;
        let (parameters, _) = dealer::deal(1, 1, 1, &mut rand::rng())?;
        let config = ClientConfig::default();
        let field = Self {
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
            idle_ms_per_second: BTreeMap::new(),
            devnet,
        };
        let deadline = Instant::now() + PATIENCE;
        for index in 0..ACCOUNTS {
            let payer = account_key(index).address();
            while field.sequencer.get_fee_account(payer).await?.balance == 0 {
                if Instant::now() > deadline {
                    bail!("the deposit of {payer} does not count after {} s", PATIENCE.as_secs());
                }
                sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(field)
    }

    /// Processor time so far, in milliseconds, and resident memory, in KiB, of each role.
    fn usage(&mut self) -> Result<BTreeMap<String, (f64, u64)>> {
        let mut all = BTreeMap::new();
        let members = (1..=MEMBERS).map(|member| format!("member-{member}"));
        for role in ["sequencer", "hint-publisher", "full-node"].map(str::to_owned).into_iter().chain(members)
        {
            let pid = self.devnet.process(&role)?.pid()?;
            all.insert(role, (cpu_ms(pid)?, resident_kib(pid)?));
        }
        Ok(all)
    }

    async fn idle(&mut self) -> Result<()> {
        let (before, started) = (self.usage()?, Instant::now());
        sleep(IDLE).await;
        let seconds = started.elapsed().as_secs_f64();
        for (role, (after, _)) in self.usage()? {
            let spent = (after - before[&role].0) / seconds;
            self.idle_ms_per_second.insert(role, spent);
        }
        Ok(())
    }

    async fn flood(&mut self, flood: Flood, count: usize, rate: u64) -> Result<Measured> {
        let (count, rate) = (count * flood.messages(), rate * flood.messages() as u64);
        let all = match flood {
            Flood::Acknowledgements | Flood::Hints | Flood::Shares | Flood::Singletons => {
                vec![self.forged(flood).await?; count]
            }
            _ => self.made(flood, count).await?,
        };
        let bytes = all.iter().map(Message::bytes).sum();
        let paid = self.fees().await?;
        let (before, started) = (self.usage()?, Instant::now());
        let (admitted, refused) = self.send(&all, rate).await?;
        let envelope = |message: &Message| match message {
            Message::Envelope { id, .. } => Some(*id),
            _ => None,
        };
        let last = all.iter().zip(&admitted).rev().find(|(_, admitted)| **admitted);
        if let Some(last) = last.and_then(|(message, _)| envelope(message)) {
            self.finished(last, flood).await?;
        }
        let admitted = admitted.iter().filter(|admitted| **admitted).count();
        sleep(SETTLING).await;
        let (after, seconds) = (self.usage()?, started.elapsed().as_secs_f64());
        let mut usage = Usage::default();
        for (role, (cpu, resident)) in after {
            let idle = self.idle_ms_per_second.get(&role).copied().unwrap_or_default() * seconds;
            usage.cpu_ms.insert(role.clone(), (cpu - before[&role].0 - idle).max(0.0));
            usage.grown_kib.insert(role.clone(), resident.saturating_sub(before[&role].1));
        }
        let now = self.fees().await?;
        // What is held returns, but for a malformed envelope's surcharge. Those before it are settled before it.
        let forfeited = match flood {
            Flood::Malformed => now.1.min(self.chain.malformed_surcharge * admitted as u128),
            _ => 0,
        };
        let paid_wei = (paid.0 + paid.1 + forfeited).saturating_sub(now.0 + now.1);
        let cpu_ms_per_envelope = usage.cpu_ms.values().sum::<f64>() / count as f64;
        Ok(Measured {
            flood,
            sent: count,
            admitted,
            refused,
            bytes,
            paid_wei,
            usage,
            cpu_ms_per_envelope,
            times_honest: 1.0,
            price_times_honest: 1.0,
            bytes_times_honest: 1.0,
            leverage: 1.0,
            role_leverage: BTreeMap::new(),
            verdict: Verdict::Within,
        })
    }

    /// Balances of all payers, and what is held of them.
    async fn fees(&self) -> Result<(u128, u128)> {
        let mut sum = (0u128, 0u128);
        for index in 0..ACCOUNTS {
            let account = self.sequencer.get_fee_account(account_key(index).address()).await?;
            sum = (sum.0 + account.balance, sum.1 + account.held);
        }
        Ok(sum)
    }

    /// Waits until an envelope's end, and with it that of those before it.
    async fn finished(&self, id: B256, flood: Flood) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let receipt = self.node.get_receipt(id).await?;
            match receipt.map(|receipt| receipt.state) {
                Some(state) if is_final(state) => {
                    let expected = match flood {
                        Flood::Malformed => EnvelopeState::Malformed,
                        Flood::Junk => EnvelopeState::Skipped,
                        _ => EnvelopeState::Executed,
                    };
                    if state != expected {
                        bail!("envelope {id} of {}: expected {expected:?}, seen {state:?}", flood.name());
                    }
                    return Ok(());
                }
                _ if Instant::now() > deadline => {
                    bail!("envelope {id} of {} is not final after {} s", flood.name(), PATIENCE.as_secs())
                }
                _ => sleep(LOOK_INTERVAL).await,
            }
        }
    }

    /// Certificate and hints of the newest batch with a good envelope.
    async fn newest_opened(&self) -> Result<(Certificate, BatchHints)> {
        let mut number = BlindApiClient::get_status(&self.node).await?.hinted;
        while number > 0 {
            let batch = self.node.get_batch(number).await?.with_context(|| format!("batch {number}"))?;
            let hints = batch.hints.context("hints")?.decode()?;
            if hints.entries.iter().any(|entry| matches!(entry, HintEntry::Key(_))) {
                return Ok((batch.certificate.context("a certificate")?.decode()?, hints));
            }
            number -= 1;
        }
        bail!("no batch has a good envelope")
    }

    /// What is refused without an envelope.
    async fn forged(&self, flood: Flood) -> Result<Message> {
        let (certificate, hints) = self.newest_opened().await?;
        let number = certificate.number;
        let nobody = SecretKey::generate(&[7; 32]).context("32 bytes")?;
        let signature = nobody.sign(&certificate.header_hash.0).to_bytes();
        Ok(match flood {
            Flood::Acknowledgements => Message::Acknowledgement(Box::new(Acknowledgement {
                epoch: certificate.epoch,
                number,
                header_hash: certificate.header_hash,
                member: 1,
                signature,
            })),
            Flood::Hints => {
                let wrong = |entry: &HintEntry| match entry {
                    HintEntry::Skipped => HintEntry::Skipped,
                    _ => HintEntry::Key([7; 16]),
                };
                let release = Release { number, header_hash: hints.header_hash, pds: vec![signature] };
                let entries = hints.entries.iter().map(wrong).collect();
                Message::Hints(Arc::new((release, BatchHints { entries, blindings: vec![], ..hints })))
            }
            Flood::Shares => Message::Share { number, certificate: Certificate { signature, ..certificate } },
            _ => {
                let good = hints.entries.iter().position(|entry| matches!(entry, HintEntry::Key(_)));
                Message::Singleton { number, index: good.context("a good envelope")?.try_into()? }
            }
        })
    }

    async fn made(&self, flood: Flood, count: usize) -> Result<Vec<Message>> {
        let status = BlindApiClient::get_status(&self.sequencer).await?;
        let offer = Offer {
            base_fee: status.base_fee.saturating_mul(8),
            gas_base_fee: status.gas_base_fee.saturating_mul(8),
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: blindfold_protocol::limits::EXPIRY_WINDOW,
        };
        let base_fee = self.reads.base_fee().await?;
        let mut nonces = Vec::with_capacity(ACCOUNTS);
        for index in 0..ACCOUNTS {
            nonces.push(self.reads.nonce(&account_key(index).address()).await?);
        }
        let distinct = if flood == Flood::Repeated { 1 } else { count };
        let mut made = Vec::with_capacity(count);
        for index in 0..distinct {
            let key = match flood {
                Flood::Unfunded => named_key(&format!("nobody-{index}")),
                _ => account_key(index % ACCOUNTS),
            };
            let fields = TransactionFields {
                chain_id: self.chain.chain_id,
                nonce: nonces[index % ACCOUNTS] + (index / ACCOUNTS) as u64,
                to: account_key((index + 1) % ACCOUNTS).address(),
                value: U256::from(1),
                input: Bytes::new(),
                gas_limit: TRANSFER_GAS,
                max_fee_per_gas: base_fee.saturating_mul(16),
                max_priority_fee_per_gas: 0,
            };
            let (raw, _) = sign(&fields, &key);
            let bundle = Bundle { items: vec![BundleItem::transaction(raw.to_vec())] };
            made.push(self.envelope(flood, &key, &bundle, &offer)?);
        }
        while made.len() < count {
            made.push(made[0].clone());
        }
        Ok(made)
    }

    fn envelope(&self, flood: Flood, key: &SigningKey, bundle: &Bundle, offer: &Offer) -> Result<Message> {
        let maker = EnvelopeMaker { chain: &self.chain, committee: &self.committee, payer: key };
        let honest = maker.of_bundle(bundle, TRANSFER_GAS, offer)?;
        // The header names the committee's key in any case.
        let encrypted = |to: &EncryptionKey, message: &[u8]| -> Result<Envelope> {
            let ad = honest.header.hash();
            let (ciphertext, proof, _) = to.encrypt(&ad.0, message, &[], &mut rand::rng())?;
            Ok(Envelope::sign(honest.header, ciphertext, proof, key))
        };
        let envelope = match flood {
            Flood::Malformed => encrypted(&self.foreign, &bundle.encode_padded()?)?,
            Flood::Junk => encrypted(&self.committee.key, &vec![0xff; bundle.encode_padded()?.len()])?,
            Flood::DamagedProof => {
                let mut proof = honest.proof;
                proof.s[31] ^= 1;
                Envelope::sign(honest.header, honest.ciphertext, proof, key)
            }
            _ => honest,
        };
        let mut bytes = envelope.encode();
        if flood == Flood::Undecodable {
            bytes.fill(0xff);
        }
        Ok(Message::Envelope { id: envelope.id(), bytes: bytes.into(), promise: flood == Flood::Promised })
    }

    /// Sends at the rate, whatever the answers. Which of them were taken, and the others' reasons.
    async fn send(&self, all: &[Message], rate: u64) -> Result<(Vec<bool>, BTreeMap<String, usize>)> {
        let mut tick = interval(Duration::from_secs_f64(1.0 / rate as f64));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut calls = JoinSet::new();
        for (place, message) in all.iter().cloned().enumerate() {
            tick.tick().await;
            let sequencer = self.sequencer.clone();
            let member =
                self.members.get(place % self.members.len().max(1)).cloned().context("no members")?;
            calls.spawn(async move {
                let answer = match message {
                    Message::Envelope { bytes, promise, .. } => {
                        let options = promise.then_some(SendOptions { promise });
                        sequencer.send_envelope(Encoded::from_bytes(bytes), options).await.map(drop)
                    }
                    Message::Acknowledgement(one) => {
                        sequencer.submit_acknowledgement(Encoded::new(&one)).await.map(drop)
                    }
                    Message::Hints(one) => {
                        sequencer.submit_hints(Encoded::new(&one.0), Encoded::new(&one.1)).await.map(drop)
                    }
                    Message::Share { number, certificate } => {
                        member.get_share(number, Encoded::new(&certificate)).await.map(drop)
                    }
                    Message::Singleton { number, index } => {
                        member.get_singleton(number, index).await.map(drop)
                    }
                };
                (place, answer.map_err(ReceivedError::from))
            });
        }
        let (mut admitted, mut refused) = (vec![false; all.len()], BTreeMap::new());
        while let Some(answer) = calls.join_next().await {
            match answer? {
                (place, Ok(())) => admitted[place] = true,
                (_, Err(error)) => *refused.entry(error.reason().to_owned()).or_default() += 1,
            }
        }
        Ok((admitted, refused))
    }
}

/// Processor time of a process, in milliseconds.
fn cpu_ms(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold anything.
    let (_, rest) = stat.rsplit_once(')').context("a line of /proc/…/stat")?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next().context("utime")??, fields.next().context("stime")??);
    // Linux shows it in hundredths of a second.
    Ok((user + system) as f64 * 10.0)
}

/// What a process has in memory, in KiB.
fn resident_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").trim().parse().context("VmRSS in kB")
}

fn print(report: &Report, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(report).context("figures serialize")?);
        return Ok(());
    }
    println!(
        "{:<16} {:>9} {:>8} {:>11} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "flood", "admitted", "refused", "ms each", "× honest", "× price", "leverage", "grown MiB", "most in"
    );
    for one in &report.floods {
        let grown: u64 = one.usage.grown_kib.values().sum();
        let most = one.usage.cpu_ms.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(role, _)| role);
        let mark = one.too_cheap().map_or_else(String::new, |cheap| format!("  too cheap: {cheap}"));
        println!(
            "{:<16} {:>9} {:>8} {:>11.2} {:>9.2} {:>9.2} {:>9.2} {:>9} {:>10}{mark}",
            one.flood.name(),
            one.admitted,
            one.refused.values().sum::<usize>(),
            one.cpu_ms_per_envelope,
            one.times_honest,
            one.price_times_honest,
            one.leverage,
            grown / 1024,
            most
        );
    }
    println!(
        "ms each: processor time of sequencer, members, helper and full node for one envelope, without what they use \
         idle.\nleverage: × honest over × price, or over × bytes where they are more: what is refused is paid for in bytes alone."
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(flood: Flood, paid_wei: u128, roles: &[(&str, f64)]) -> Measured {
        let cpu_ms: BTreeMap<String, f64> =
            roles.iter().map(|(role, ms)| ((*role).to_owned(), *ms)).collect();
        let cpu_ms_per_envelope = cpu_ms.values().sum::<f64>() / 100.0;
        Measured {
            flood,
            sent: 100,
            admitted: 100,
            refused: BTreeMap::new(),
            bytes: 50_000,
            paid_wei,
            usage: Usage { cpu_ms, grown_kib: BTreeMap::new() },
            cpu_ms_per_envelope,
            times_honest: 1.0,
            price_times_honest: 1.0,
            bytes_times_honest: 1.0,
            leverage: 1.0,
            role_leverage: BTreeMap::new(),
            verdict: Verdict::Within,
        }
    }

    /// What all roles use together hid what one of them did.
    #[test]
    fn a_flood_that_is_too_cheap_in_a_single_role_is_seen() {
        let honest =
            measured(Flood::Honest, 100, &[("sequencer", 400.0), ("full-node", 800.0), ("idle", 0.0)]);
        let judged = |flood| measured(flood, 0, &[]).beside(&honest).verdict;
        assert_eq!(judged(Flood::Undecodable), Verdict::Within);
        assert_eq!(honest.clone().beside(&honest).verdict, Verdict::Within);

        let one = measured(Flood::Junk, 100, &[("sequencer", 900.0), ("full-node", 10.0), ("idle", 90.0)]);
        let one = one.beside(&honest);
        assert!(one.leverage < 1.0);
        assert_eq!(one.role_leverage["idle"], 1.0, "a tick more or less is noise");
        assert_eq!(one.too_cheap().as_deref(), Some("junk (sequencer 2.25)"));
        let json = serde_json::to_value(&one).expect("figures serialize");
        assert_eq!(
            (&json["verdict"], &json["role_leverage"]["sequencer"]),
            (&"too_cheap".into(), &2.25.into())
        );

        // Three times the price for it.
        let paid = measured(Flood::Malformed, 300, &[("sequencer", 900.0), ("full-node", 2_000.0)]);
        assert_eq!(paid.beside(&honest).too_cheap(), None);
        let all =
            measured(Flood::Junk, 100, &[("sequencer", 1_200.0), ("full-node", 2_000.0)]).beside(&honest);
        assert_eq!(all.too_cheap().as_deref(), Some("junk (all 2.67, full-node 2.50, sequencer 3.00)"));
    }
}

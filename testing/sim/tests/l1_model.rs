//! The model of L1 beside the contracts on a real node: the same random calls, and what is taken, refused and stands then.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../crates/l1/tests/anvil/stage.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "helpers of tests; those of the L1 client use the rest")]
mod stage;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use alloy_primitives::{Address, B256, Bytes, U64, U256, hex};
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_bte::{EncryptionKey, Parameters, Portable, bls, bls::SecretKey, dealer};
use blindfold_chain::{EpochParameters, ParameterSet};
use blindfold_l1::{
    CommitteeSettings, DeployConfig, DisputeContract, HintData, HintEvent, HintEvidence, HintPosting,
    L1Client, L1Reader, ManagedAnvil, Output, PostedEntry, PostedLog, PostedRun, PostingState, PublisherBond,
    RegistryState, RunReference, challenge_evidence, commitment,
    contracts::{BlindedInbox, ForcedQueue, HintRegistry, OutputRegistry},
    deploy, equivocation_evidence, first_wrong_entry,
};
use blindfold_protocol::{
    BatchHeader, BatchHints, Bundle, Canonical, Envelope, EnvelopeError, Epochs, HintEntry, L1Timing,
    SealedBatch, SignedHeader,
    envelope_builder::{EnvelopeFields, build_with_key},
    validity::Verdict,
};
use blindfold_sim::l1::{
    Judge,
    model::{Model, Settings, Transaction},
};
use rand::{RngExt, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

use stage::{CHAIN_ID, GOVERNOR, POSTER, SEQUENCER, Stage, USER, anvil, deploy_config, key};

/// So short that a script comes to the end of each.
const TIMING: L1Timing = L1Timing {
    posting_deadline: 24,
    forced_delay: 6,
    answer_window: 6,
    hint_deadline: 20,
    challenge_window: 8,
    withdrawal_delay: 500,
    max_origin_age_seconds: 240,
};
/// As in the model.
const PUBLISHER_BOND: u128 = 1_000;
const CHALLENGE_STAKE: u128 = 10;
const BLOCK_SECONDS: u64 = 12;
/// More than any call here takes.
const GAS: u64 = 8_000_000;
const GWEI: u128 = 1_000_000_000;
/// Covers every price of forced gas that a script comes to.
const FORCED_FEE: u128 = 1_000_000_000_000_000_000;
/// Who calls.
const CALLERS: [usize; 4] = [SEQUENCER, POSTER, USER, 5];

/// Where the contracts stand.
struct Contracts {
    stage: Stage,
    client: L1Client,
    nonces: BTreeMap<usize, u64>,
}

/// A call that both get.
#[derive(Clone, Debug)]
struct Call {
    from: usize,
    what: &'static str,
    transaction: Transaction,
}

async fn number(anvil: &ManagedAnvil, method: &'static str, params: Value) -> u64 {
    let answer = anvil.call(method, params).await.unwrap();
    serde_json::from_value::<U64>(answer).unwrap().to()
}

impl Contracts {
    async fn new(encryption_key: &EncryptionKey, parameters: &Parameters) -> (Self, Epochs) {
        let base = deploy_config();
        let config = DeployConfig {
            timing: TIMING,
            committees: CommitteeSettings { epoch_notice: stage::EPOCH_NOTICE, ..base.committees },
            publisher_bond_wei: PUBLISHER_BOND,
            challenge_stake_wei: CHALLENGE_STAKE,
            ..base
        };
        let anvil = anvil().await;
        let addresses = deploy(anvil.url(), &key(0), config).await.unwrap();
        let members = (0..4u8).map(|j| SecretKey::generate(&[j + 1; 32]).unwrap()).collect();
        let stage = Stage { anvil, addresses, members };
        stage.anvil.mine(4).await.unwrap();
        let governor = stage.writer(GOVERNOR).await;
        let mut epoch = stage.epoch(1_000_000, encryption_key.clone());
        epoch.parameters_hash = B256::from(parameters.hash());
        epoch.h1 = bls::PublicKey::from_bytes(&parameters.h(1).unwrap()).unwrap();
        governor.register_epoch(&epoch).await.unwrap();
        stage.anvil.mine(4).await.unwrap();
        let client = governor.client().clone();
        let epochs = client.epochs().await.unwrap();
        stage.anvil.call("evm_setAutomine", json!([false])).await.unwrap();
        stage.anvil.call("anvil_setBlockTimestampInterval", json!([BLOCK_SECONDS])).await.unwrap();
        let mut nonces = BTreeMap::new();
        for caller in CALLERS {
            let params = json!([key(caller).address(), "latest"]);
            nonces.insert(caller, number(&stage.anvil, "eth_getTransactionCount", params).await);
        }
        (Self { stage, client, nonces }, epochs)
    }

    /// The newest block and its second.
    async fn newest(&self) -> (u64, u64) {
        let block = self.stage.anvil.call("eth_getBlockByNumber", json!(["latest", false])).await.unwrap();
        let of = |field: &str| serde_json::from_value::<U64>(block[field].clone()).unwrap().to::<u64>();
        (of("number"), of("timestamp"))
    }

    /// To whom a transaction of the model goes, with how much, and its input.
    async fn encoded(&self, transaction: &Transaction) -> (Address, u128, Vec<u8>) {
        let addresses = &self.stage.addresses;
        let (inbox, hints) = (addresses.inbox, addresses.hint_registry);
        match transaction {
            Transaction::Post { headers, certificate, .. } => {
                let signature = bls::Signature::from_bytes(&certificate.signature).unwrap();
                let certificate = BlindedInbox::Certificate {
                    signers: certificate.signers,
                    signature: Bytes::copy_from_slice(&signature.to_eip2537()),
                };
                let headers = headers.iter().map(Into::into).collect();
                (inbox, 0, BlindedInbox::postCall { headers, data: Bytes::new(), certificate }.abi_encode())
            }
            Transaction::PostData(batches) => {
                let call =
                    BlindedInbox::postDataCall { firstNumber: batches[0].header.number, data: Bytes::new() };
                (inbox, 0, call.abi_encode())
            }
            Transaction::MakeHeader(parent) => {
                (inbox, 0, BlindedInbox::postL1HeaderCall { parent: parent.as_ref().into() }.abi_encode())
            }
            Transaction::Propose(outputs) => {
                let output = |output: &Output| OutputRegistry::Output {
                    l2Block: output.l2_block,
                    batch: output.batch,
                    timestamp: output.timestamp,
                    blockHash: output.block_hash,
                    stateRoot: output.state_root,
                };
                let call = OutputRegistry::proposeCall { proposed: outputs.iter().map(output).collect() };
                (addresses.output_registry, 0, call.abi_encode())
            }
            Transaction::Force { gas_limit, raw } => {
                let call = ForcedQueue::forceCall { kind: 1, gasLimit: *gas_limit, item: raw.clone().into() };
                (addresses.forced_queue, FORCED_FEE, call.abi_encode())
            }
            Transaction::Bond(amount) => (hints, *amount, HintRegistry::depositBondCall {}.abi_encode()),
            Transaction::PostHints { run, hints: data } => {
                let call = HintRegistry::postHintsCall { run: run.into(), data: data.encode().into() };
                (hints, 0, call.abi_encode())
            }
            Transaction::FinalizeHints(id) => (hints, 0, HintRegistry::finalizeCall { id: *id }.abi_encode()),
            Transaction::ReleaseHints(id) => (hints, 0, HintRegistry::releaseCall { id: *id }.abi_encode()),
            Transaction::Void(run) => {
                (hints, 0, HintRegistry::voidUnreleasedCall { run: run.into() }.abi_encode())
            }
            Transaction::Commit(commitment) => {
                (hints, 0, HintRegistry::commitCall { commitment: *commitment }.abi_encode())
            }
            Transaction::Challenge { evidence, salt } => {
                let challenge = evidence.challenge().await.unwrap();
                let (id, given) = (evidence.posting.id, challenge.call().clone());
                let call = HintRegistry::challengeCall { id, given, salt: *salt };
                (hints, CHALLENGE_STAKE, call.abi_encode())
            }
            Transaction::ShowHeaders { pair, salt } => {
                let [first, second] = pair.as_ref();
                let signature = |header: &SignedHeader| Bytes::copy_from_slice(&header.signature.0);
                let call = BlindedInbox::slashEquivocationCall {
                    first: (&first.header).into(),
                    firstSignature: signature(first),
                    second: (&second.header).into(),
                    secondSignature: signature(second),
                    salt: *salt,
                };
                (inbox, 0, call.abi_encode())
            }
            Transaction::ClaimReward => (hints, 0, HintRegistry::claimRewardCall {}.abi_encode()),
        }
    }

    /// Sends a call that the next block is to hold, after those that were sent before.
    async fn send(&mut self, place: usize, from: usize, to: Address, value: u128, input: Vec<u8>) -> B256 {
        let nonce = self.nonces.get_mut(&from).unwrap();
        let transaction = json!({
            "from": key(from).address(),
            "to": to,
            "value": U256::from(value),
            "data": hex::encode_prefixed(input),
            "gas": U64::from(GAS),
            "nonce": U64::from(*nonce),
            "maxFeePerGas": U256::from(1_000 * GWEI),
            // Blocks are in the order of these.
            "maxPriorityFeePerGas": U256::from((100 - place as u128) * GWEI),
        });
        *nonce += 1;
        let hash = self.stage.anvil.call("eth_sendTransaction", json!([transaction])).await.unwrap();
        serde_json::from_value(hash).unwrap()
    }

    /// Whether the contracts took a transaction of the newest block, and the topics of what it emitted.
    async fn outcome(&self, place: usize, hash: B256) -> (bool, Vec<B256>) {
        let receipt = self.stage.anvil.call("eth_getTransactionReceipt", json!([hash])).await.unwrap();
        let index: U64 = serde_json::from_value(receipt["transactionIndex"].clone()).unwrap();
        assert_eq!(index.to::<usize>(), place, "the block is in another order");
        let topics = receipt["logs"].as_array().unwrap().iter();
        let topics = topics.map(|log| serde_json::from_value(log["topics"][0].clone()).unwrap()).collect();
        (receipt["status"] == "0x1", topics)
    }

    /// When two headers of this number were first shown, if that lets L1 make it.
    async fn equivocated_at(&self, number: u64) -> u64 {
        let data = hex::encode_prefixed(BlindedInbox::equivocatedAtCall { number }.abi_encode());
        let call = json!({ "to": self.stage.addresses.inbox, "data": data });
        let answer = self.stage.anvil.call("eth_call", json!([call, "latest"])).await.unwrap();
        serde_json::from_value::<U256>(answer).unwrap().to()
    }

    /// Whether the next block could hold this call.
    async fn would_take(&self, from: usize, transaction: &Transaction) -> bool {
        let (to, value, input) = self.encoded(transaction).await;
        let call = json!({
            "from": key(from).address(),
            "to": to,
            "value": U256::from(value),
            "data": hex::encode_prefixed(input),
            "gas": U64::from(GAS),
        });
        self.stage.anvil.call("eth_call", json!([call, "pending"])).await.is_ok()
    }
}

/// What is known of a header that somebody sealed, or L1 made.
#[derive(Clone)]
struct Known {
    batch: SealedBatch,
    verdicts: Vec<Verdict>,
    truth: BatchHints,
}

/// How the committee goes about its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Committee {
    Posts,
    /// With origins as old as they may be.
    Lags,
    IsSilent,
}

/// A commitment whose evidence is to be shown.
struct Committed {
    from: usize,
    show: Transaction,
}

struct Script {
    seed: u64,
    rng: ChaCha20Rng,
    contracts: Contracts,
    epochs: Epochs,
    encryption_key: EncryptionKey,
    model: Model,
    committee: Committee,
    /// By header hash.
    known: BTreeMap<B256, Known>,
    committed: Vec<Committed>,
    /// All that were shown or tried.
    shown: Vec<[SignedHeader; 2]>,
    commitments: Vec<B256>,
    fee_nonce: u64,
    /// Blocks in which data of posted headers came, by the contracts' events.
    reposted: Vec<u64>,
    events: Vec<HintEvent>,
    runs: Vec<RunReference>,
    read_through: u64,
    salt: u64,
    /// What was taken and refused, by kind.
    seen: BTreeMap<(&'static str, String), u32>,
}

impl Script {
    async fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (parameters, _) = dealer::deal(4, 4, 3, &mut rng).unwrap();
        let encryption_key = parameters.encryption_key();
        let (contracts, epochs) = Contracts::new(&encryption_key, &parameters).await;
        let epoch = epochs.by_epoch(1).unwrap().clone();
        let entry = EpochParameters::new(epoch, Arc::new(parameters), "file".to_owned()).unwrap();
        let judge = Judge {
            parameters: Arc::new(ParameterSet::new(vec![entry]).unwrap()),
            backend: Arc::new(Portable::new(1)),
        };
        let settings = Settings {
            deployment: contracts.stage.deployment(),
            timing: TIMING,
            sequencer: key(SEQUENCER).address(),
            epochs: epochs.clone(),
            judge,
        };
        let (newest, time) = contracts.newest().await;
        let deployed_at = contracts.client.standing().await.unwrap().last_certified_at;
        let model = Model::new(settings, newest, time, deployed_at);
        Self {
            seed,
            rng,
            contracts,
            epochs,
            encryption_key,
            model,
            committee: Committee::Posts,
            known: BTreeMap::new(),
            committed: Vec::new(),
            shown: Vec::new(),
            commitments: Vec::new(),
            fee_nonce: 0,
            reposted: Vec::new(),
            events: Vec::new(),
            runs: Vec::new(),
            read_through: newest,
            salt: 0,
            seen: BTreeMap::new(),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn caller(&mut self) -> usize {
        *CALLERS.choose(&mut self.rng).unwrap()
    }

    fn salt(&mut self) -> B256 {
        self.salt += 1;
        B256::from(U256::from(self.salt))
    }

    /// An envelope, or bytes that are none, with their verdicts and hints.
    fn items(&mut self) -> (Vec<Vec<u8>>, Vec<Verdict>, Vec<HintEntry>) {
        let (mut items, mut verdicts, mut entries) = (vec![], vec![], vec![]);
        if self.chance(30) {
            self.fee_nonce += 1;
            let fields = EnvelopeFields {
                chain_id: CHAIN_ID + 1,
                deployment: self.contracts.stage.deployment(),
                epoch: 1,
                fee_nonce: self.fee_nonce,
                max_fee: 1,
                priority_fee: 0,
                max_gas_fee: 1_000,
                gas_limit: 21_000,
                expiry: 1_000,
                generation: 0,
            };
            let built =
                build_with_key(&self.encryption_key, &fields, &Bundle::default(), &key(USER), &mut self.rng);
            let (envelope, opening): (Envelope, _) = built.unwrap();
            items.push(envelope.encode());
            verdicts.push(Verdict::Accepted { position: 0 });
            entries.push(HintEntry::Key(*opening.as_bytes()));
        }
        if self.chance(40) {
            items.push(vec![self.rng.random(); 9]);
            verdicts.push(Verdict::Skipped(EnvelopeError::from_code(1).unwrap()));
            entries.push(HintEntry::Skipped);
        }
        (items, verdicts, entries)
    }

    /// A header that follows `parent`, for a call in the block after the model's newest one; its cursor and origin as `cursor`
    /// and `origin` have it.
    fn seal(&mut self, parent: Option<&BatchHeader>, origin: u64, cursor: u64) -> BatchHeader {
        let (items, verdicts, entries) = self.items();
        let codes: Vec<u8> = verdicts.iter().map(Verdict::code).collect();
        let (newest, now) = self.now();
        let origin_time = now.saturating_sub((newest.saturating_sub(origin)) * BLOCK_SECONDS);
        let least = parent.map_or(0, |parent| parent.timestamp_ms) + 1;
        let lead = [0, 250, 4_000][self.rng.random_range(0..3)];
        let time = least.max(origin_time * 1_000 + lead);
        // Only a call that wants that is refused for how old its origin is.
        let edge = (time / 1_000).saturating_sub(u64::from(TIMING.max_origin_age_seconds));
        let origin_time = origin_time.max(edge);
        let batch = self.contracts.stage.coded(parent, items, &codes, |header| {
            header.l1_origin_number = origin;
            header.l1_origin_time = origin_time;
            header.timestamp_ms = time;
            header.forced_cursor = cursor;
        });
        let header = batch.header;
        let truth =
            BatchHints { number: header.number, header_hash: header.hash(), entries, blindings: vec![] };
        self.known.insert(header.hash(), Known { batch, verdicts, truth });
        header
    }

    /// The block that comes next and its second.
    fn now(&self) -> (u64, u64) {
        (self.model.newest() + 1, self.model.time() + BLOCK_SECONDS)
    }

    /// The cursor that a header of this origin must have at least.
    fn least_cursor(&self, from: u64, origin: u64) -> u64 {
        let forced = self.model.forced();
        let due = forced.iter().skip(from as usize).take(16);
        let due = due.take_while(|at| **at + u64::from(TIMING.forced_delay) <= origin);
        from + due.count() as u64
    }

    fn post(&mut self) -> Call {
        let (newest, _) = self.now();
        let what = *[
            "post",
            "post",
            "post",
            "post",
            "post",
            "post",
            "post without data",
            "stale origin",
            "new origin",
            "wrong parent",
            "held back",
            "greedy cursor",
            "due item ignored",
            "over again",
            "over all again",
            "another head",
            "wrong signers",
            "going back",
            "time ahead",
            "other epoch or rules",
        ]
        .choose(&mut self.rng)
        .unwrap();
        let mut parent = self.model.head_header();
        let known: Vec<PostedRun> = self.model.runs();
        let all: Vec<BatchHeader> = known.iter().flat_map(|run| run.headers.clone()).collect();
        let mut headers = Vec::new();
        if what.starts_with("over") {
            let from = self.rng.random_range(0..=all.len()).max(all.len().saturating_sub(4));
            headers.extend_from_slice(&all[from..]);
            if what == "over all again" {
                headers.truncate(self.rng.random_range(0..=headers.len()));
            }
        }
        if what == "another head" || what == "wrong parent" {
            // A sibling of the head, or one that follows its parent.
            parent = all.len().checked_sub(2).map(|place| all[place]);
        }
        let more =
            if what == "over all again" && !headers.is_empty() { 0 } else { self.rng.random_range(1..=3) };
        let deadline = u64::from(TIMING.posting_deadline);
        let mut origin = match what {
            "stale origin" => newest.saturating_sub(deadline + self.rng.random_range(0..=1)),
            "new origin" => newest - self.rng.random_range(0..=1),
            _ if self.committee == Committee::Lags => newest.saturating_sub(deadline),
            _ => newest - 1 - self.rng.random_range(0..4).min(newest / 2),
        };
        if let Some(parent) = &parent
            && what != "going back"
        {
            origin = origin.max(parent.l1_origin_number);
        }
        for place in 0..more {
            let from = parent.map_or(0, |parent| parent.forced_cursor);
            let least = self.least_cursor(from, origin);
            let length = self.model.forced().len() as u64;
            let cursor = match what {
                "due item ignored" => least.saturating_sub(1).max(from),
                "greedy cursor" => length.min(from + 16) + self.rng.random_range(0..=1),
                "going back" => least.saturating_sub(self.rng.random_range(0..=1)),
                _ if self.chance(20) => self.rng.random_range(least..=length.min(from + 16).max(least)),
                _ => least,
            };
            let mut header = self.seal(parent.as_ref(), origin, cursor);
            let changed = match what {
                "held back" => {
                    let edge = u64::from(TIMING.max_origin_age_seconds);
                    header.l1_origin_time =
                        (header.timestamp_ms / 1_000) - edge - self.rng.random_range(0..=1);
                    true
                }
                "time ahead" if place + 1 == more => {
                    let edge = (self.now().1 + 3_600) * 1_000;
                    header.timestamp_ms = edge + u64::from(self.rng.random_range(0..6) > 0);
                    header.l1_origin_time = header.timestamp_ms / 1_000;
                    true
                }
                "other epoch or rules" if place + 1 == more => {
                    header.rules = 2;
                    true
                }
                "other epoch or rules" if self.chance(50) => {
                    header.epoch = 2;
                    true
                }
                "going back" if self.chance(50) => {
                    header.timestamp_ms = parent.map_or(1, |parent| parent.timestamp_ms);
                    true
                }
                _ => false,
            };
            if changed {
                header = self.resealed(header);
            }
            headers.push(header);
            parent = Some(header);
        }
        let last = *headers.last().unwrap();
        let mut certificate = self.contracts.stage.certify(&self.epochs, &last);
        if what == "wrong signers" {
            certificate.signers = [7, 3, 13][self.rng.random_range(0..3)];
        }
        let batches = headers.iter().map(|header| self.known[&header.hash()].batch.clone()).collect();
        let batches = (what != "post without data").then(|| Arc::new(batches));
        let transaction =
            Transaction::Post { headers: Arc::new(headers), batches, certificate: Box::new(certificate) };
        Call { from: self.caller(), what, transaction }
    }

    /// The batch of the last sealed header under this changed one.
    fn resealed(&mut self, header: BatchHeader) -> BatchHeader {
        let signature = header.sign(&key(SEQUENCER), &self.contracts.stage.deployment()).signature;
        let same = |known: &&Known| known.batch.header.envelope_root == header.envelope_root;
        let mut known = self.known.values().find(same).unwrap().clone();
        (known.batch.header, known.batch.signature) = (header, signature);
        (known.truth.number, known.truth.header_hash) = (header.number, header.hash());
        self.known.insert(header.hash(), known);
        header
    }

    fn make_header(&mut self) -> Option<Call> {
        let all: Vec<BatchHeader> = self.model.runs().iter().flat_map(|run| run.headers.clone()).collect();
        let head = *all.last()?;
        let (what, parent) = match self.chance(15) {
            true => ("L1 header after another", *all.choose(&mut self.rng)?),
            false => ("L1 header", head),
        };
        Some(Call { from: self.caller(), what, transaction: Transaction::MakeHeader(Box::new(parent)) })
    }

    fn force(&mut self) -> Call {
        let gas_limit =
            *[50_000, 60_000, 21_000, 20_999, 10_000_000, 10_000_001].choose(&mut self.rng).unwrap();
        let raw = vec![7; [0, 1, 9, 30][self.rng.random_range(0..4)]];
        Call { from: self.caller(), what: "force", transaction: Transaction::Force { gas_limit, raw } }
    }

    fn post_data(&mut self) -> Option<Call> {
        let mut headers: Vec<BatchHeader> =
            self.model.runs().iter().flat_map(|run| run.headers.clone()).collect();
        let head = *headers.last()?;
        let beyond = self.model.newest();
        headers.push(self.seal(Some(&head), beyond, head.forced_cursor));
        let header = headers.choose(&mut self.rng)?;
        let batches = Arc::new(vec![self.known[&header.hash()].batch.clone()]);
        Some(Call { from: self.caller(), what: "data", transaction: Transaction::PostData(batches) })
    }

    /// One of the newest runs, maybe with another block.
    fn run(&mut self) -> Option<RunReference> {
        let mut runs: Vec<RunReference> = self.model.runs().iter().map(|run| run.run).collect();
        runs.drain(..runs.len().saturating_sub(8));
        if self.chance(85) {
            let state: RegistryState = self.model.hint_events().iter().collect();
            let unsettled = |run: &&RunReference| !state.is_settled(run.last);
            runs = runs.iter().filter(unsettled).copied().collect();
        }
        let mut run = *runs.choose(&mut self.rng)?;
        if self.chance(5) {
            run.posted_at -= 1;
        }
        Some(run)
    }

    fn truths(&self, run: &RunReference) -> Vec<BatchHints> {
        let runs = self.model.runs();
        let Some(posted) = runs.iter().find(|posted| posted.run.last == run.last) else { return vec![] };
        posted.headers.iter().map(|header| self.known[&header.hash()].truth.clone()).collect()
    }

    fn post_hints(&mut self) -> Option<Call> {
        let run = self.run()?;
        let mut hints = HintPosting::of(&self.truths(&run));
        let what = *["hints", "hints", "wrong hints", "hints of other batches"].choose(&mut self.rng)?;
        match what {
            "hints of other batches" if self.chance(50) => drop(hints.batches.pop()),
            "hints of other batches" => hints.batches.push(hints.batches[0].clone()),
            "wrong hints" => {
                let place = self.rng.random_range(0..hints.batches.len());
                let batch = &mut hints.batches[place];
                let entry = batch.entries.len().checked_sub(1).map(|last| self.rng.random_range(0..=last));
                match (entry, self.rng.random_range(0..3)) {
                    (Some(entry), 0 | 1) => batch.entries[entry].key[3] ^= 1,
                    (Some(_), _) => drop(batch.entries.pop()),
                    (None, _) => batch.entries.push(PostedEntry { kind: PostedEntry::SKIPPED, key: [0; 16] }),
                }
            }
            _ => {}
        }
        let transaction = Transaction::PostHints { run, hints: Arc::new(hints) };
        Some(Call { from: *[POSTER, POSTER, USER].choose(&mut self.rng)?, what, transaction })
    }

    /// A posting that is open, and now and then any other.
    fn posting(&mut self) -> Option<PostedLog> {
        let state: RegistryState = self.model.hint_events().iter().collect();
        let is_open = self.chance(80);
        let kept = state.postings().filter(|hints| !is_open || hints.state == PostingState::Open);
        let logs: Vec<PostedLog> = kept.map(|hints| hints.posted).collect();
        logs[logs.len().saturating_sub(6)..].choose(&mut self.rng).copied()
    }

    fn settle(&mut self) -> Option<Call> {
        let state: RegistryState = self.model.hint_events().iter().collect();
        let left = state.open().find(|posted| state.is_settled(posted.last)).map(|posted| posted.id);
        if let Some(id) = left.filter(|_| self.rng.random_range(0..2) == 0) {
            let transaction = Transaction::ReleaseHints(id);
            return Some(Call { from: self.caller(), what: "release", transaction });
        }
        let id = match self.chance(5) {
            true => self.rng.random_range(0..50),
            false => self.posting()?.id,
        };
        let (what, transaction) = match self.chance(60) {
            true => ("finalize", Transaction::FinalizeHints(id)),
            false => ("release", Transaction::ReleaseHints(id)),
        };
        Some(Call { from: self.caller(), what, transaction })
    }

    /// Evidence against a posting, and the commitment to it.
    fn commit_challenge(&mut self) -> Option<Call> {
        let posting = self.posting()?;
        let (run, hints) = self.model.hints(posting.id)?;
        let truths = self.truths(&run);
        let wrong = first_wrong_entry(&hints, &truths).filter(|_| self.rng.random_range(0..100) < 80);
        let (number, index) = match wrong {
            Some(wrong) => wrong,
            None => {
                let with_items: Vec<&BatchHints> =
                    truths.iter().filter(|truth| !truth.entries.is_empty()).collect();
                let truth = with_items.choose(&mut self.rng)?;
                (truth.number, self.rng.random_range(0..truth.entries.len() as u32))
            }
        };
        let posted = self.model.runs().into_iter().find(|posted| posted.run.last == run.last)?;
        let header = *posted.header(number)?;
        let known = self.known[&header.hash()].clone();
        let evidence = HintEvidence {
            posting,
            data: HintData { run, hints, blobs: None },
            headers: posted.headers,
            batch: known.batch,
            verdicts: known.verdicts,
            index,
            key: None,
        };
        let (from, salt) = (self.caller(), self.salt());
        let shown = challenge_evidence(posting.id, number, index);
        let show = Transaction::Challenge { evidence: Box::new(evidence), salt };
        self.commit(from, shown, salt, show, "commit to a challenge")
    }

    fn commit(
        &mut self,
        from: usize,
        shown: B256,
        salt: B256,
        show: Transaction,
        what: &'static str,
    ) -> Option<Call> {
        // Some commit and never show, some show what they never committed to.
        if self.chance(8) {
            return Some(Call { from, what: "no commitment", transaction: show });
        }
        let commitment = commitment(key(from).address(), shown, salt);
        self.commitments.push(commitment);
        if self.chance(90) {
            self.committed.push(Committed { from, show });
        }
        Some(Call { from, what, transaction: Transaction::Commit(commitment) })
    }

    /// Shows what was committed to.
    fn show(&mut self) -> Option<Call> {
        let place = self.rng.random_range(0..self.committed.len().max(1));
        let committed = self.committed.get(place)?;
        let (from, transaction) = (committed.from, committed.show.clone());
        let what = match &transaction {
            Transaction::Challenge { .. } => "challenge",
            _ => "show headers",
        };
        // A second time now and then: the commitment is used up.
        if self.chance(80) {
            self.committed.swap_remove(place);
        }
        Some(Call { from, what, transaction })
    }

    /// Two signed headers, and the commitment to them.
    fn commit_headers(&mut self) -> Option<Call> {
        let pair = match self.shown.last().copied().filter(|_| self.rng.random_range(0..100) < 20) {
            Some(pair) => pair,
            None => {
                let runs = self.model.runs();
                let all: Vec<BatchHeader> = runs.iter().flat_map(|run| run.headers.clone()).collect();
                let head = all.last().copied();
                let parent = match self.rng.random_range(0..10) {
                    0..5 => head,
                    5..8 => all.choose(&mut self.rng).copied().or(head),
                    _ => head.map(|head| BatchHeader { number: head.number + 1, ..head }),
                };
                let newest = self.model.newest();
                let least = parent.map_or(0, |parent| parent.l1_origin_number);
                let mut pair = Vec::new();
                for _ in 0..2 {
                    let origin = match self.rng.random_range(0..10) {
                        0..5 => newest.saturating_sub(self.rng.random_range(0..4)),
                        5..7 => self.rng.random_range(0..=newest + 1),
                        7..9 => self.rng.random_range(least.min(newest)..=newest + 8),
                        _ => newest.saturating_sub(u64::from(TIMING.posting_deadline)),
                    };
                    let header = self.seal(parent.as_ref(), origin, 0);
                    pair.push(self.known[&header.hash()].batch.signed_header());
                }
                let [one, two] = <[SignedHeader; 2]>::try_from(pair).ok()?;
                [one, two]
            }
        };
        self.shown.push(pair);
        let (from, salt) = (self.caller(), self.salt());
        let shown = equivocation_evidence(&pair[0], &pair[1]);
        let show = Transaction::ShowHeaders { pair: Box::new(pair), salt };
        self.commit(from, shown, salt, show, "commit to headers")
    }

    fn propose(&mut self) -> Option<Call> {
        let head = self.model.head_header()?;
        let claimed = self.model.claimed();
        let output = |l2_block: u64, batch: u64, timestamp: u64| Output {
            l2_block,
            batch,
            timestamp,
            block_hash: B256::repeat_byte(1),
            state_root: B256::repeat_byte(2),
        };
        let first = claimed + self.rng.random_range(1..=4) / 4 + u64::from(self.chance(80));
        let batch = self.rng.random_range(0..=head.number + 1);
        let timestamp = head.timestamp_ms / 1_000 - 9 - self.rng.random_range(0..4);
        let outputs =
            (0..self.rng.random_range(0..5).min(2)).map(|place| output(first + place, batch, timestamp));
        let transaction = Transaction::Propose(outputs.collect());
        Some(Call { from: SEQUENCER, what: "propose", transaction })
    }

    fn void(&mut self) -> Option<Call> {
        let mut run = self.run();
        // Invalidated hints in its way are dropped first.
        let state: RegistryState = self.model.hint_events().iter().collect();
        let runs = self.model.runs().into_iter().map(|posted| posted.run);
        let invalidated: Vec<RunReference> =
            runs.filter(|run| state.invalidated(run.last).next().is_some()).collect();
        if self.chance(60) {
            run = invalidated.choose(&mut self.rng).copied().or(run);
        }
        let run = run?;
        Some(Call { from: self.caller(), what: "void", transaction: Transaction::Void(run) })
    }

    fn bond(&mut self) -> Call {
        let amount = *[1_000, 1_000, 500, 1, 0].choose(&mut self.rng).unwrap();
        Call {
            from: *[POSTER, USER].choose(&mut self.rng).unwrap(),
            what: "bond",
            transaction: Transaction::Bond(amount),
        }
    }

    fn call(&mut self) -> Option<Call> {
        match self.rng.random_range(0..100) {
            0..22 if self.committee != Committee::IsSilent => Some(self.post()),
            0..22 => self.make_header(),
            22..26 => self.post_data(),
            26..34 => Some(self.force()),
            34..42 => self.make_header(),
            42..55 => self.post_hints(),
            55..60 => Some(self.bond()),
            60..68 => self.settle(),
            68..74 => self.void(),
            74..82 => self.commit_challenge(),
            82..86 => self.commit_headers(),
            86..95 => self.show(),
            95..98 => self.propose(),
            _ => Some(Call { from: self.caller(), what: "claim", transaction: Transaction::ClaimReward }),
        }
    }

    /// Blocks pass, and the next one holds some calls.
    async fn step(&mut self, step: usize) {
        if self.chance(if self.committee == Committee::Lags { 4 } else { 12 }) {
            let all = [Committee::Posts, Committee::Posts, Committee::Lags, Committee::IsSilent];
            self.committee = *all.choose(&mut self.rng).unwrap();
        }
        let gap = match self.committee {
            Committee::Lags => self.rng.random_range(0..3),
            _ => *[0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 5, 8, 13, 26].choose(&mut self.rng).unwrap(),
        };
        if gap > 0 {
            self.contracts.stage.anvil.mine(gap).await.unwrap();
            let (newest, time) = self.contracts.newest().await;
            self.model.begin(newest, time);
        }
        let count = self.rng.random_range(1..=3);
        let calls: Vec<Call> = (0..count).filter_map(|_| self.call()).collect();
        // What the model says of each, in order, and what goes to the contracts for it.
        let (block, time) = self.now();
        self.model.begin(block, time);
        let mut sent = Vec::new();
        for call in calls {
            let before = self.model.hint_events().len();
            let invalidated = self.invalidated_of(&call.transaction);
            let outcome = self.model.execute(key(call.from).address(), &call.transaction);
            let taken = outcome.is_ok();
            // Who wants a run void clears away first what is invalidated of it.
            if taken && !invalidated.is_empty() {
                for id in invalidated {
                    let input = HintRegistry::dropCall { id }.abi_encode();
                    let to = self.contracts.stage.addresses.hint_registry;
                    let hash = self.contracts.send(sent.len(), call.from, to, 0, input).await;
                    sent.push((hash, true, "drop", call.clone(), outcome.clone().err()));
                }
            }
            let taken = match &call.transaction {
                Transaction::Void(_) => {
                    let events = self.model.hint_events();
                    events[before..].iter().any(|event| matches!(event, HintEvent::Voided { .. }))
                }
                _ => taken,
            };
            let (mut to, value, input) = self.contracts.encoded(&call.transaction).await;
            if call.what == "commit to headers" {
                to = self.contracts.stage.addresses.inbox;
            }
            let hash = self.contracts.send(sent.len(), call.from, to, value, input).await;
            let what = call.what;
            sent.push((hash, taken, what, call, outcome.err()));
        }
        self.contracts.stage.anvil.mine(1).await.unwrap();
        assert_eq!(self.contracts.newest().await, (block, time), "step {step}: the next block");
        for (place, (hash, taken, what, call, why)) in sent.iter().enumerate() {
            let (really, topics) = self.contracts.outcome(place, *hash).await;
            let called = &call.transaction;
            assert_eq!(
                *taken, really,
                "seed {}, step {step}, block {block}: the model takes it (left), the contracts take it (right): {what} by {}: {why:?}\n{called:?}",
                self.seed, call.from
            );
            let outcome = match why {
                Some(why) => why.to_string(),
                None if really => "taken".to_owned(),
                None => "not yet void".to_owned(),
            };
            *self.seen.entry((what, outcome)).or_default() += 1;
            let again = [BlindedInbox::PostedAgain::SIGNATURE_HASH, BlindedInbox::DataPosted::SIGNATURE_HASH];
            let has_data = !matches!(called, Transaction::Post { batches: None, .. });
            if has_data && topics.iter().any(|topic| again.contains(topic)) {
                self.reposted.push(block);
            }
        }
        self.compare(step).await;
    }

    /// The invalidated postings of the run that a call would declare void.
    fn invalidated_of(&self, transaction: &Transaction) -> Vec<u64> {
        let Transaction::Void(run) = transaction else { return vec![] };
        let state: RegistryState = self.model.hint_events().iter().collect();
        state.invalidated(run.last).map(|posted| posted.id).collect()
    }

    /// What stands after a block, at both.
    async fn compare(&mut self, step: usize) {
        let at = format!("seed {}, step {step}, block {}", self.seed, self.model.newest());
        let client = self.contracts.client.clone();
        let standing = client.standing().await.unwrap();
        let (newest, head) = (self.model.newest(), self.model.head());
        assert_eq!(head, standing.head, "{at}: the head");
        assert_eq!(self.model.certified_at(), standing.last_certified_at, "{at}: the last certified posting");
        assert_eq!(self.model.forced().len() as u64, standing.forced_length, "{at}: the forced queue");
        assert_eq!(self.model.made().len() as u64, standing.l1_made, "{at}: headers made");
        assert_eq!(self.model.claimed(), standing.last_output, "{at}: blocks claimed");
        let equivocated = self.model.equivocated_at(head.number + 1).unwrap_or_default();
        assert_eq!(equivocated, standing.equivocated_at, "{at}: two headers of the next number");
        assert_eq!(self.model.reposted(), self.reposted, "{at}: data that came later");
        self.runs.extend(client.recent_runs(self.read_through, newest).await.unwrap());
        let runs: Vec<RunReference> = self.model.runs().iter().map(|run| run.run).collect();
        assert_eq!(runs, self.runs, "{at}: runs");
        self.events.extend(client.hint_events(self.read_through, newest).await.unwrap());
        self.read_through = newest;
        let plain =
            |events: &[HintEvent]| events.iter().map(|event| without_hash(*event)).collect::<Vec<_>>();
        assert_eq!(plain(&self.model.hint_events()), plain(&self.events), "{at}: hints");
        for caller in CALLERS {
            let account = key(caller).address();
            let bond: PublisherBond = client.publisher_bond(account).await.unwrap();
            assert_eq!(self.model.bond(account), bond, "{at}: the bond of {caller}");
            let reward = client.hint_reward(account).await.unwrap();
            assert_eq!(U256::from(self.model.reward(account)), reward, "{at}: the reward of {caller}");
        }
        let recent = self.commitments.iter().rev().take(6);
        for commitment in recent {
            let hints = client.committed_at(DisputeContract::Hints, *commitment).await.unwrap();
            let inbox = client.committed_at(DisputeContract::Inbox, *commitment).await.unwrap();
            assert_eq!(self.model.committed_at(*commitment), hints.or(inbox), "{at}: a commitment");
        }
        for pair in self.shown.iter().rev().take(3) {
            let shown = equivocation_evidence(&pair[0], &pair[1]);
            let really = L1Reader::are_shown(&client, pair, None).await.unwrap();
            assert_eq!(self.model.is_shown(shown), really, "{at}: two headers shown");
            let number = pair[0].header.number;
            let really = self.contracts.equivocated_at(number).await;
            let known = self.model.equivocated_at(number).unwrap_or_default();
            assert_eq!(known, really, "{at}: two headers of {number}");
        }
        // Headers that L1 made are batches, too.
        let made = self.model.made().last().cloned();
        if let Some(made) = made.filter(|made| !self.known.contains_key(&made.header.hash())) {
            let entries = vec![HintEntry::Skipped; made.items.len()];
            let verdicts = vec![Verdict::ForcedTransaction; made.items.len()];
            let (number, header_hash) = (made.header.number, made.header.hash());
            let truth = BatchHints { number, header_hash, entries, blindings: vec![] };
            self.known.insert(header_hash, Known { batch: made.batch(), verdicts, truth });
        }
        self.probe(&at).await;
    }

    /// What the next block could hold, at both.
    async fn probe(&mut self, at: &str) {
        let mut probes = Vec::new();
        if let Some(head) = self.model.head_header() {
            probes.push(Transaction::MakeHeader(Box::new(head)));
        }
        let runs = self.model.runs();
        let void = runs.iter().rev().take(3).map(|run| Transaction::Void(run.run));
        probes.extend(void.filter(|void| self.invalidated_of(void).is_empty()));
        let posted = self.model.hint_events();
        let ids = posted.iter().rev().filter_map(|event| match event {
            HintEvent::Posted(log) => Some(log.id),
            _ => None,
        });
        for id in ids.take(2) {
            probes.extend([Transaction::FinalizeHints(id), Transaction::ReleaseHints(id)]);
        }
        let (block, time) = self.now();
        for probe in probes {
            let mut model = self.model.clone();
            model.begin(block, time);
            let taken = model.execute(key(USER).address(), &probe);
            let really = self.contracts.would_take(USER, &probe).await;
            let what = match probe {
                Transaction::MakeHeader(_) if self.model.equivocated_at(model.head().number).is_some() => {
                    "next block: L1 header of which two were shown"
                }
                Transaction::MakeHeader(_) => "next block: L1 header",
                Transaction::Void(_) => "next block: void",
                _ => "next block: settle",
            };
            let outcome = taken.as_ref().err().map_or("taken".to_owned(), ToString::to_string);
            *self.seen.entry((what, outcome)).or_default() += 1;
            assert_eq!(
                taken.is_ok(),
                really,
                "{at}: the model's next block (left) and that of the contracts (right) could hold it: {taken:?}\n{probe:?}"
            );
        }
    }
}

/// The model names transactions in its own way, and knows no reasons.
fn without_hash(event: HintEvent) -> HintEvent {
    match event {
        HintEvent::Posted(log) => HintEvent::Posted(PostedLog { transaction: B256::ZERO, ..log }),
        HintEvent::Slashed { id, last, challenger, publisher, number, index, l1_block, .. } => {
            HintEvent::Slashed { id, last, challenger, publisher, number, index, reason: 0, l1_block }
        }
        event => event,
    }
}

/// Others: `L1_MODEL_SEEDS=13,14`.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;
/// Of each script.
const STEPS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_l1_takes_refuses_and_keeps_what_the_contracts_do() {
    let given = std::env::var("L1_MODEL_SEEDS").ok();
    let seeds: Vec<u64> = match &given {
        Some(given) => given.split(',').map(|seed| seed.parse().unwrap()).collect(),
        None => SEEDS.collect(),
    };
    let scripts = seeds.into_iter().map(async |seed| {
        println!("seed {seed}");
        let mut script = Script::new(seed).await;
        for step in 0..STEPS {
            script.step(step).await;
        }
        script.seen
    });
    let mut seen: BTreeMap<(&'static str, String), u32> = BTreeMap::new();
    for (kind, count) in futures::future::join_all(scripts).await.into_iter().flatten() {
        *seen.entry(kind).or_default() += count;
    }
    for ((what, outcome), count) in &seen {
        println!("{count:4} {what}: {outcome}");
    }
    if given.is_some() {
        return;
    }
    // What no script comes to is not compared.
    for what in TAKEN {
        assert!(seen.contains_key(&(what, "taken".to_owned())), "never taken: {what}");
    }
    let outcomes: BTreeSet<&str> = seen.keys().map(|(_, outcome)| outcome.as_str()).collect();
    for reason in REASONS {
        assert!(outcomes.iter().any(|outcome| outcome.ends_with(reason)), "never refused: {reason}");
    }
}

/// What is taken now and then.
const TAKEN: [&str; 26] = [
    "L1 header",
    "bond",
    "challenge",
    "claim",
    "commit to a challenge",
    "commit to headers",
    "data",
    "drop",
    "finalize",
    "force",
    "greedy cursor",
    "held back",
    "hints",
    "new origin",
    "next block: L1 header of which two were shown",
    "next block: settle",
    "over again",
    "over all again",
    "post",
    "post without data",
    "propose",
    "release",
    "show headers",
    "stale origin",
    "time ahead",
    "void",
];
/// Why the model refuses calls.
const REASONS: [&str; 34] = [
    "a committee posts",
    "a committee that is back posts undisturbed",
    "a forced item is ignored",
    "an empty proposal",
    "another head",
    "excused by L1's header",
    "excused: nothing was posted",
    "hints of other batches",
    "no commitment of an earlier block",
    "no header is due",
    "no output to be claimed",
    "no reward",
    "no such place in the forced queue",
    "no such run",
    "no transaction to be forced",
    "not posted",
    "not yet void",
    "not the next header",
    "not the posted header",
    "nothing is deposited",
    "nothing to include",
    "of another epoch or other rules",
    "shown already",
    "the bond is too low",
    "the certificate does not verify",
    "the headers go back",
    "the origin is ahead",
    "the origin is held back",
    "the origin is too old",
    "the posting is not open",
    "the run is final",
    "the run is void",
    "the same hints are open",
    "the time is ahead",
];

//! What sharing a batch brings: a batch opened by one hint publisher, by two that share it, and by two of which one is
//! killed in the middle.
//!
//! ```text
//! cargo run --release -p blindfold-hint-publisher --example share -- [items] [backend] [rounds]
//! ```
//!
//! Each publisher is a process of its own with one thread of the backend, kept to one core by `taskset`; the two have one
//! core each. Members, sequencer and Redis run beside them, on the same cores where there are but two: members have their
//! shares ready, and the sequencer's stand-in takes the hints without looking at them, so that they take little. Every batch is new, of 4,096 items in
//! sub-batches of 512 by default, certified already when the publishers hear of it. Time is from then to the hints, which are
//! verified afterwards. The three take turns; medians.

use std::{
    collections::BTreeMap,
    env,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use blindfold_bte::{Backend, CiphertextPoint};
use blindfold_chain::{EpochParameters, verify_hints};
use blindfold_hint_publisher::{HintPublisher, HintPublisherConfig, HintPublisherDeps, MemberUrl};
use blindfold_kit::{
    Committee, MemberAnswers, SequencerDouble, chain_config, fields, member_that_answers, payer,
    plain_header, sequencer_key, transaction,
};
use blindfold_protocol::{
    B256, BatchHeader, Bundle, Canonical, Certificate, Envelope, ReleaseShare, SealedBatch,
    envelope_builder::build,
    merkle,
    validity::{Verdict, item_leaf},
};
use blindfold_redis::{RedisOptions, RedisSettings};
use blindfold_rpc::{Encoded, RpcError, ServerConfig, ServerHandle, serve};
use blindfold_runtime::now;
use blindfold_servers::Redis as Server;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const MAX_BATCH: u32 = 512;
/// The first word of a process that is a publisher.
const PUBLISHER: &str = "--publisher";
const LEASE_MS: u64 = 1_000;

fn committee() -> Committee {
    Committee::deal(4, 3, MAX_BATCH, 7)
}

/// A member whose shares are made before anybody asks: every batch has the same ciphertexts.
struct Member {
    member: u16,
    pds: Vec<[u8; 48]>,
}

#[async_trait]
impl MemberAnswers for Member {
    async fn get_share(
        &self,
        number: u64,
        certificate: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        let header_hash = certificate.decode_param()?.header_hash;
        let (member, pds) = (self.member, self.pds.clone());
        Ok(Encoded::new(&ReleaseShare { number, header_hash, member, pds }))
    }
}

/// Everybody but the publishers.
struct Stage {
    committee: Committee,
    parameters: EpochParameters,
    items: Vec<Vec<u8>>,
    leaves: Vec<B256>,
    sequencer: SequencerDouble,
    members: Vec<ServerHandle>,
    server: Server,
    backend: String,
    number: u64,
}

impl Stage {
    async fn new(count: usize, backend: String) -> Self {
        let committee = committee();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let envelopes: Vec<Envelope> = (0..count as u64)
            .map(|nonce| {
                let bundle = Bundle::of_transactions([transaction(1, nonce)]);
                build(&committee.encryption_key, &fields(nonce), &bundle, &payer(1), &mut rng).expect("fits")
            })
            .collect();
        let items: Vec<Vec<u8>> = envelopes.iter().map(Canonical::encode).collect();
        let leaf = |(envelope, item): (&Envelope, &Vec<u8>)| {
            item_leaf(&envelope.id(), &blindfold_protocol::keccak256(item), 0)
        };
        let leaves = envelopes.iter().zip(&items).map(leaf).collect();
        let points: Vec<CiphertextPoint> =
            envelopes.iter().map(|envelope| envelope.ciphertext.header().expect("a point")).collect();
        let mut members = Vec::new();
        for (member, key) in (1..).zip(&committee.keys) {
            let share = |points: &[CiphertextPoint]| key.release_share(points).expect("a sub-batch");
            let pds = points.chunks(MAX_BATCH as usize).map(share).collect();
            let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
            members.push(
                serve(config, member_that_answers(Member { member, pds }), None).await.expect("listens"),
            );
        }
        let epochs = [committee.epoch(blindfold_kit::EPOCH, 1, u64::MAX)];
        let parameters = committee.parameter_set(&epochs).at(1).expect("one epoch");
        let server = Server::start().unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(2);
        });
        let sequencer = SequencerDouble::start().await;
        Self { committee, parameters, items, leaves, sequencer, members, server, backend, number: 0 }
    }

    /// A batch of all items, signed; the next one.
    fn batch(&mut self) -> SealedBatch {
        self.number += 1;
        let header = BatchHeader {
            timestamp_ms: 1_700_000_000_000 + self.number,
            l1_origin_number: 1,
            l1_origin_time: 1_700_000_000,
            envelope_root: merkle::root(&self.leaves),
            data_hash: B256::repeat_byte(1),
            envelope_count: self.items.len() as u32,
            envelope_bytes: self.items.iter().map(|item| item.len() as u32).sum(),
            ..plain_header(self.number)
        };
        let signature = header.sign(&sequencer_key(), &chain_config().deployment).signature;
        SealedBatch { header, signature, items: self.items.clone() }
    }

    /// Starts a publisher on a core of its own.
    fn publisher(&self, core: usize, shares: bool) -> Publisher {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).arg(env::current_exe().expect("this program"));
        command.arg(PUBLISHER).arg(&self.backend).arg(self.sequencer.url());
        command.arg(if shares { self.server.url() } else { String::new() });
        for member in &self.members {
            command.arg(format!("http://{}", member.local_addr()));
        }
        Publisher(command.stdin(Stdio::piped()).spawn().expect("taskset, of util-linux"))
    }

    /// The time from a certified batch to its hints, with so many publishers. `killed`: the last one is killed when two parts
    /// are there.
    async fn measure(&mut self, publishers: usize, killed: bool) -> Duration {
        let mut running: Vec<Publisher> =
            (0..publishers).map(|core| self.publisher(core, publishers > 1)).collect();
        self.sequencer.followed_by(publishers).await;
        // What they do at their start is over by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sealed = self.batch();
        let (number, hash) = (sealed.header.number, sealed.header.hash());
        let deployment = chain_config().deployment;
        let certificate = self.committee.certify(&deployment, &sealed.header, &[1, 2, 3]);
        let verdicts = (0..self.items.len()).map(|_| Verdict::Accepted { position: 0 }).collect::<Vec<_>>();
        self.sequencer.keep(&sealed, &verdicts);
        let started = now();
        self.sequencer.keep_certificate(&certificate);
        if killed {
            let deployment = "bench";
            let parts = self.items.len().div_ceil(MAX_BATCH as usize);
            let key = format!("blindfold:{deployment}:hint-parts:{number}:{hash:x}:{parts}");
            loop {
                let parts = self.server.run(&["HLEN", &key]).expect("it runs");
                if parts.parse::<usize>().is_ok_and(|parts| parts >= 2) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            drop(running.pop());
        }
        while !self.sequencer.double.state.lock().hints.contains_key(&number) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let took = started.elapsed();
        drop(running);
        let hints = self.sequencer.double.state.lock().hints[&number].1.clone();
        let backend = blindfold_bte::auto(2);
        verify_hints(backend.as_ref(), &self.parameters, &sealed, &verdicts, &hints).expect("they stand");
        // The next one's followers are counted from none.
        while self.sequencer.double.state.lock().batches.len() > 64 {
            self.sequencer.double.state.lock().batches.pop_first();
        }
        took
    }
}

/// A publisher's process; killed when it is dropped.
struct Publisher(Child);

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs as a publisher until it is killed, or its parent is gone.
async fn publish(words: Vec<String>) {
    let [backend, sequencer, redis, members @ ..] = words.as_slice() else { panic!("four words and more") };
    let committee = committee();
    let epochs = [committee.epoch(blindfold_kit::EPOCH, 1, u64::MAX)];
    let parameters = committee.parameter_set(&epochs);
    let backend: Arc<dyn Backend> = match backend.as_str() {
        "auto" => blindfold_bte::auto(1).into(),
        name => blindfold_bte::by_name(name, 1).expect("a backend of this machine").into(),
    };
    backend.prepare(&committee.parameters, MAX_BATCH as usize).expect("a size");
    let mut config = HintPublisherConfig {
        admin_addr: ([127, 0, 0, 1], 0).into(),
        sequencer_urls: sequencer.as_str().into(),
        members: (1..).zip(members).map(|(member, url)| MemberUrl { member, url: url.clone() }).collect(),
        ..HintPublisherConfig::default()
    };
    config.limits.sweep_ms = 20;
    config.limits.share_lease_ms = LEASE_MS;
    let deps = HintPublisherDeps {
        chain: chain_config(),
        parameters,
        backend,
        hello_key: None,
        redis: redis_at(redis),
        l1_posting: None,
    };
    let _running = HintPublisher::start(config, deps).await.expect("it starts");
    let end = blindfold_runtime::blocking(|| std::io::read_to_string(std::io::stdin()));
    let _ = end.await;
}

fn redis_at(url: &str) -> Option<RedisOptions> {
    let url = Some(url.to_owned()).filter(|url| !url.is_empty());
    RedisSettings { url, ..RedisSettings::default() }.options("bench").expect("a URL")
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == PUBLISHER) {
        words.remove(0);
        publish(words).await;
        return;
    }
    let number = |place: usize, default: usize| match words.get(place) {
        Some(word) => word.parse().expect("a number"),
        None => default,
    };
    let (items, rounds) = (number(0, 4_096), number(2, 3).max(1));
    let backend = words.get(1).cloned().unwrap_or_else(|| "auto".to_owned());
    eprintln!("making {items} envelopes");
    let mut stage = Stage::new(items, backend.clone()).await;
    let mut times = BTreeMap::<&str, Vec<Duration>>::new();
    for round in 1..=rounds {
        for (name, publishers, killed) in [("one", 1, false), ("two", 2, false), ("two, one killed", 2, true)]
        {
            let took = stage.measure(publishers, killed).await;
            eprintln!("round {round}, {name}: {took:.2?}");
            times.entry(name).or_default().push(took);
        }
    }
    let of = |name| median(times.get(name).map_or(&[][..], Vec::as_slice)).as_secs_f64();
    let (one, two, killed) = (of("one"), of("two"), of("two, one killed"));
    println!("{items} items, B = {MAX_BATCH}, backend {backend}, {rounds} rounds, medians");
    println!("one publisher: {one:.2} s; two: {two:.2} s, {:.2} times as fast", one / two);
    println!("two, one killed in the middle: {killed:.2} s, {:.2} of one's time", killed / one);
}

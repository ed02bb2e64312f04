//! What a batch costs beside a fee ledger that holds much, on both engines: to seal it, to check it, to certify it, to take it
//! back; what it writes; a proof of an account; a start.
//!
//! `cargo run --release -p blindfold-chain --example ledger`. A PostgreSQL server of its own runs on the same disk; without the
//! package it is left out. What is printed are medians, bytes by what the process wrote (SQLite) and by the server's log.

use std::{error::Error, path::Path, sync::Arc, time::Duration};

use blindfold_chain::{L1Reader, Tracker};
use blindfold_kit::{
    BASE_FEE, EPOCH, START_MS, ScriptedL1, certify, chain_config, check, committee, epoch, fields, l1,
    l1_block, signer_of, transaction,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Bundle, Canonical, Certificate, CheckedItem, Head, SealedBatch, Signature65,
    SigningKey,
    envelope_builder::build,
    keccak256,
    ledger::{Account, FeeLedger},
};
use blindfold_runtime::now;
use blindfold_servers::Postgres;
use blindfold_store::{SealedRecord, SqlStore, Store, StoreUrl};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const ENVELOPES: u64 = 128;
/// Live nonces of a chain whose batches have had 128 envelopes for as long as a nonce may live.
const NONCES: u64 = 500_000;
/// Batches that they come with.
const FILLING: u64 = 62;
/// Batches that are measured, after some that are not.
const BATCHES: u64 = 24;
const WARM_UP: u64 = 4;
const RICH: Account = Account { balance: 1 << 100, withdrawn: 0 };

/// What the ledger holds, and who pays for the batches.
#[derive(Clone, Copy)]
struct Holds {
    name: &'static str,
    nonces: u64,
    /// Whether each nonce, and each envelope of the batches, is another payer's.
    many: bool,
}

const CASES: [Holds; 4] = [
    Holds { name: "nothing; one payer", nonces: 0, many: false },
    Holds { name: "one payer with 500,000 live nonces", nonces: NONCES, many: false },
    Holds { name: "nothing; a payer for each envelope", nonces: 0, many: true },
    Holds { name: "500,000 payers with a live nonce each", nonces: NONCES, many: true },
];

impl Holds {
    fn key(self, envelope: u64) -> SigningKey {
        let seed = keccak256((if self.many { envelope } else { 0 }).to_be_bytes());
        SigningKey::from_bytes(&seed.0).expect("a scalar")
    }

    /// Envelopes of all batches, checked.
    fn envelopes(self) -> Vec<(Vec<u8>, CheckedItem)> {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let made = (0..(BATCHES + WARM_UP) * ENVELOPES).map(|envelope| {
            let bundle = Bundle::of_transactions([transaction(1, envelope)]);
            let key = self.key(envelope);
            let fields = fields((1 << 40) + envelope);
            build(&committee().encryption_key, &fields, &bundle, &key, &mut rng).expect("it fits").encode()
        });
        let bytes: Vec<_> = made.collect();
        let checked = check(&chain_config(), &epoch(), &bytes);
        bytes.into_iter().zip(checked).collect()
    }

    /// The payer of a stored nonce: some of them pay for the batches.
    fn payer(self, nonce: u64, paying: &[Address]) -> Address {
        let other = || Address::from_slice(&keccak256(nonce.to_be_bytes())[..20]);
        let at = if self.many { nonce as usize } else { 0 };
        paying.get(at).copied().unwrap_or_else(other)
    }

    /// Batches whose ledger holds all that, as many nonces of which go with each batch to come as come with it.
    async fn fill(self, store: &SqlStore, paying: &[Address]) -> Result<(), Box<dyn Error>> {
        store.bind(&chain_config().deployment, "sequencer").await?;
        let mut ledger = FeeLedger::default();
        let mut parent = chain_config().deployment.genesis_hash();
        let each = self.nonces.div_ceil(FILLING);
        for number in 1..=FILLING {
            let mut changes = ledger.changes();
            if number == 1 {
                for payer in paying {
                    changes.credit(*payer, RICH.balance)?;
                }
            }
            for nonce in (number - 1) * each..(number * each).min(self.nonces) {
                let payer = self.payer(nonce, paying);
                if changes.account(&payer).is_empty() {
                    changes.credit(payer, RICH.balance)?;
                }
                changes.use_nonce(payer, nonce, FILLING + nonce / ENVELOPES);
            }
            let delta = changes.finish();
            ledger.apply(&delta)?;
            let origin = l1_block(2);
            let header = BatchHeader {
                number,
                parent_hash: parent,
                timestamp_ms: START_MS - (FILLING - number) * 250,
                l1_origin_number: origin.number,
                l1_origin_hash: origin.hash,
                l1_origin_time: origin.timestamp,
                envelope_root: B256::ZERO,
                data_hash: B256::ZERO,
                envelope_count: 0,
                envelope_bytes: 0,
                gas: 0,
                base_fee: BASE_FEE,
                gas_base_fee: 1,
                fee_ledger_root: ledger.root(),
                forced_cursor: 0,
                epoch: EPOCH,
                rules: 1,
            };
            let hash = header.hash();
            let head = Head {
                number,
                hash,
                timestamp_ms: header.timestamp_ms,
                l1_origin: origin.number,
                l1_origin_hash: origin.hash,
                l1_origin_time: origin.timestamp,
                base_fee: BASE_FEE,
                gas_base_fee: 1,
                ..Head::genesis(&chain_config())
            };
            let sealed = SealedBatch { header, signature: Signature65([1; 65]), items: Vec::new() };
            let items = Vec::new();
            let (head, signed) = (head.encode(), true);
            store
                .put_sealed(SealedRecord { hash, sealed, items, ledger: delta, head, signed, made_at: None })
                .await?;
            let certificate =
                Certificate { epoch: EPOCH, number, header_hash: hash, signers: 7, signature: [1; 48] };
            store.put_certificate(&certificate).await?;
            parent = hash;
        }
        store.keep_ledgers_from(FILLING).await?;
        Ok(())
    }
}

/// Where a store lies, and what was written to it.
enum Place<'a> {
    File(&'a Path),
    Server(&'a Postgres, String),
}

impl Place<'_> {
    fn url(&self) -> Result<StoreUrl, Box<dyn Error>> {
        match self {
            Self::File(path) => Ok(StoreUrl::Sqlite(path.to_path_buf())),
            Self::Server(_, url) => Ok(url.parse()?),
        }
    }

    /// Bytes so far: of this process, or of the server's log.
    fn written(&self) -> Result<u64, Box<dyn Error>> {
        match self {
            Self::File(_) => {
                let io = std::fs::read_to_string("/proc/self/io")?;
                let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
                Ok(line.ok_or("no wchar")?.parse()?)
            }
            Self::Server(server, _) => {
                Ok(server.run("SELECT (pg_current_wal_lsn() - '0/0')::bigint")?.parse()?)
            }
        }
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1_000.0
}

async fn timed<T>(into: &mut Vec<Duration>, what: impl Future<Output = T>) -> T {
    let begun = now();
    let done = what.await;
    into.push(begun.elapsed());
    done
}

/// A line of `/proc/self/status`, in MiB.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    line.unwrap_or(0.0) / 1024.0
}

async fn open(place: &Place<'_>, l1: &Arc<ScriptedL1>) -> Result<Tracker, Box<dyn Error>> {
    let store = place.url()?.open().await?;
    Ok(Tracker::open(chain_config(), Arc::new(store), Arc::clone(l1) as Arc<dyn L1Reader>).await?)
}

async fn measure(holds: Holds, places: [Place<'_>; 2], engine: &str) -> Result<(), Box<dyn Error>> {
    let envelopes = holds.envelopes();
    let mut paying: Vec<Address> = (0..envelopes.len() as u64).map(|it| holds.key(it).address()).collect();
    paying.dedup();
    for place in &places {
        let store = place.url()?.open().await?;
        holds.fill(&store, &paying).await?;
        store.close().await;
    }
    let l1 = l1();
    let [here, there] = &places;
    // As a process that does nothing else.
    std::fs::write("/proc/self/clear_refs", "5").ok();
    let (before, mut starts) = (memory("VmRSS:"), Vec::new());
    let tracker = timed(&mut starts, open(here, &l1)).await?;
    let (held, peak) = (memory("VmRSS:") - before, memory("VmHWM:") - before);
    let node = open(there, &l1).await?;
    let signer = signer_of(&tracker);
    let (mut seal, mut apply, mut commit, mut back) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut proof, mut earlier) = (Vec::new(), Vec::new());
    let mut written = 0;
    let origin = l1_block(2);
    for (batch, items) in (1..).zip(envelopes.chunks(ENVELOPES as usize)) {
        let items = items.to_vec();
        let ms = START_MS + batch * 250;
        // A header that gives way, and the same again.
        tracker.seal(ms, 0, items.clone(), &origin, &signer).await?;
        timed(&mut back, tracker.give_up_from(FILLING + batch)).await?;
        let before = here.written()?;
        let sealed = timed(&mut seal, tracker.seal(ms, 0, items, &origin, &signer)).await?;
        let certificate = certify(&sealed.batch, &[1, 2, 4]);
        timed(&mut commit, tracker.accept_certificate(&certificate)).await?;
        if batch > WARM_UP {
            written += here.written()? - before;
        }
        timed(&mut apply, node.apply_sealed(&sealed.batch)).await?;
        node.accept_certificate(&certificate).await?;
        assert!(sealed.verdicts.iter().all(|verdict| verdict.is_accepted()), "paid for");
        let payer = &paying[0];
        let shown = timed(&mut proof, tracker.prove_account(payer, FILLING + batch)).await?;
        assert!(shown.is_some(), "it stands");
    }
    // The first of each is not at hand.
    let shown = timed(&mut earlier, tracker.prove_account(&paying[0], FILLING + 1)).await?;
    assert!(shown.is_some(), "it stands");
    let live = tracker.with_state(|state| state.ledger().nonces().count());
    let warm = |times: Vec<Duration>| median(times.into_iter().skip(WARM_UP as usize).collect());
    println!(
        "| {} | {engine} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.3} | {:.1} | {:.2} | {held:.0} | {peak:.0} | {live} |",
        holds.name,
        warm(seal),
        warm(apply),
        warm(commit),
        warm(back),
        written as f64 / BATCHES as f64 / 1024.0,
        warm(proof),
        median(earlier),
        median(starts) / 1_000.0,
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Postgres::start();
    println!(
        "| the ledger holds | engine | seal, ms | apply, ms | certificate, ms | take back, ms | written, KiB | proof, ms | proof {BATCHES} batches back, ms | start, s | memory, MiB | at most, MiB | live nonces |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for holds in CASES {
        let folder = tempfile::tempdir()?;
        let paths = ["here", "there"].map(|name| folder.path().join(name));
        measure(holds, [Place::File(&paths[0]), Place::File(&paths[1])], "SQLite").await?;
        match &server {
            Ok(server) => {
                let places = [Place::Server(server, server.fresh()?), Place::Server(server, server.fresh()?)];
                measure(holds, places, "PostgreSQL").await?;
            }
            Err(error) => eprintln!("PostgreSQL does not run: {error}"),
        }
    }
    Ok(())
}

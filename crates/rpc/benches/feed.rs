//! What the feed sends of a batch and what that costs, in both forms: bytes per envelope for each consumer, and the work of
//! server and consumer up to where the structures are decoded, which is the same in both.
//!
//! `cargo bench -p blindfold-rpc --bench feed`.
#![allow(missing_docs, clippy::unwrap_used)] // criterion's macros; a failed unwrap ends the benchmark

use blindfold_protocol::{
    B256, BatchHeader, BatchHints, Certificate, HintEntry, Release, SealedBatch, Signature65,
};
use blindfold_rpc::{
    Encoded, FeedEvent, FeedFrame, Topic,
    types::{
        BlockNotification, CertificateNotification, HeaderNotification, HintsNotification,
        ReleaseNotification,
    },
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// An envelope with a transfer.
const ITEM_BYTES: usize = 622;
/// Items that a committee releases by one point.
const SUB_BATCH: usize = 512;
/// Batches in a block: one second.
const BATCHES: usize = 4;
/// What JSON-RPC puts around a notification, and a WebSocket around a message.
const RPC_BYTES: usize = 104;
const FRAME_BYTES: usize = 10;

/// Everything that is published of one batch. The block is that of a second of such batches.
fn events(items: usize) -> Vec<FeedEvent> {
    let (number, hash) = (7, B256::repeat_byte(7));
    let header = BatchHeader {
        number,
        parent_hash: hash,
        timestamp_ms: 250,
        l1_origin_number: 7,
        l1_origin_hash: hash,
        l1_origin_time: 0,
        envelope_root: hash,
        data_hash: hash,
        envelope_count: items as u32,
        envelope_bytes: (items * ITEM_BYTES) as u32,
        gas: 0,
        base_fee: 1,
        gas_base_fee: 1,
        fee_ledger_root: hash,
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    };
    let sealed =
        SealedBatch { header, signature: Signature65([1; 65]), items: vec![vec![7; ITEM_BYTES]; items] };
    let certificate = Certificate { epoch: 1, number, header_hash: hash, signers: 7, signature: [1; 48] };
    let release = Release { number, header_hash: hash, pds: vec![[3; 48]; items.div_ceil(SUB_BATCH)] };
    let entries = vec![HintEntry::Key([9; 16]); items];
    let hints = BatchHints { number, header_hash: hash, entries, blindings: Vec::new() };
    vec![
        FeedEvent::Header(HeaderNotification {
            number,
            hash,
            sealed: Encoded::new(&sealed),
            verdicts: vec![None; items],
        }),
        FeedEvent::Certificate(CertificateNotification {
            number,
            hash,
            certificate: Encoded::new(&certificate),
        }),
        FeedEvent::Release(ReleaseNotification { number, hash, release: Encoded::new(&release) }),
        FeedEvent::Hints(HintsNotification { number, hash, hints: Encoded::new(&hints) }),
        FeedEvent::Block(BlockNotification {
            number: 2,
            hash,
            parent_hash: hash,
            state_root: hash,
            timestamp: 5,
            first_batch: 4,
            last_batch: 7,
            transactions: vec![hash; BATCHES * items],
            skipped: Vec::new(),
        }),
    ]
}

/// Bytes on the wire for each envelope, in both forms, of these topics.
fn bytes(items: usize, topics: &[Topic]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for event in events(items).into_iter().filter(|event| topics.contains(&event.topic())) {
        let share = if event.topic() == Topic::Blocks { BATCHES } else { 1 };
        let json = event.to_raw().unwrap().get().len() + RPC_BYTES + FRAME_BYTES;
        let binary = FeedFrame::Event(event).encode().len() + FRAME_BYTES;
        for (sum, bytes) in sums.iter_mut().zip([json, binary]) {
            *sum += bytes as f64 / (share * items) as f64;
        }
    }
    sums
}

fn measure(criterion: &mut Criterion) {
    for items in [16, 128, 512] {
        let order = [Topic::Headers, Topic::Certificates];
        for (consumer, topics) in
            [("member, hint publisher", &order[..]), ("full node, relay, gateway", &Topic::ALL[..])]
        {
            let [json, binary] = bytes(items, topics);
            println!("{consumer}, batches of {items}: JSON {json:.0}, binary {binary:.0} bytes per envelope");
        }
    }
    let items = 512;
    let [header, ..] = &events(items)[..] else { panic!("a header") };
    let frame = FeedFrame::Event(header.clone());
    let (json, binary) = (header.to_raw().unwrap(), frame.encode().into());
    let mut group = criterion.benchmark_group(format!("a batch of {items}"));
    group.throughput(Throughput::Elements(items as u64));
    group.bench_function("server, JSON", |bencher| bencher.iter(|| header.to_raw().unwrap()));
    group.bench_function("server, binary", |bencher| bencher.iter(|| frame.encode()));
    // Each further subscriber: the text is copied into its message, the bytes are shared.
    group.bench_function("each subscriber, JSON", |bencher| bencher.iter(|| json.clone()));
    group.bench_function("each subscriber, binary", |bencher| {
        let bytes: &axum::body::Bytes = &binary;
        bencher.iter(|| bytes.clone());
    });
    group.bench_function("consumer, JSON", |bencher| {
        bencher.iter(|| FeedEvent::parse(Topic::Headers, json.get()).unwrap());
    });
    group.bench_function("consumer, binary", |bencher| {
        bencher.iter(|| FeedFrame::decode(&binary).unwrap());
    });
    group.finish();
}

criterion_group!(benches, measure);
criterion_main!(benches);

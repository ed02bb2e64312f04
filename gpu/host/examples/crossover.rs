//! From how many items on a device is faster than the processor beside it, for the limits of `Limits`; and what a release
//! waits for while the device computes the next batch.
//!
//! Usage: crossover FILE ROUNDS PROCESSOR_MAX BATCH… — prints medians in ms and writes them to FILE as JSON, as `blindfold
//! bench bte --json` would; batches above PROCESSOR_MAX are computed on the device only. Backends are `cuda` as it is,
//! `cuda-large` and `cuda-small` with everything on the device, and all batches for its kernels for large or for small ones,
//! and that of the processor. Every opening, hint and proof is compared with what was encrypted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blindfold_bte::accelerator::Offload;
use blindfold_bte::{
    Backend, Ciphertext, CiphertextPoint, MemberKey, Opening, Parameters, Proof, Release, SessionKey, dealer,
};
use blindfold_gpu::{Cuda, Limits, Phase, Phases, devices};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Everything goes to the device, and all batches to the kernels for large ones.
const LARGE: Limits = Limits {
    batch_min: 2,
    powers_min: 1,
    sum_min: 1,
    domain_max_bytes: u64::MAX,
    tile: 16384,
    halves_from: 32768,
    in_lanes_max: 0,
    digits_apart_max: 0,
};
/// All to those for small ones.
const SMALL: Limits = Limits { in_lanes_max: usize::MAX, digits_apart_max: usize::MAX, ..LARGE };
/// Batches above this are not tried with the kernels for small ones.
const SMALL_MAX: usize = 16384;
const MESSAGE: [u8; 300] = [7; 300];
const AD: [u8; 32] = [3; 32];

/// A batch with its release.
struct Case {
    ciphertexts: Vec<(Ciphertext, Proof, SessionKey)>,
    points: Vec<CiphertextPoint>,
    release: Release,
}

impl Case {
    fn new(parameters: &Parameters, member: &MemberKey, processor: &dyn Backend, size: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = size.div_ceil(threads);
        let ciphertexts: Vec<_> = std::thread::scope(|scope| {
            let encrypt = |thread: usize| {
                let mut rng = ChaCha20Rng::seed_from_u64(thread as u64);
                let own = (thread * part).min(size)..((thread + 1) * part).min(size);
                let ek = parameters.encryption_key();
                own.map(|_| ek.encrypt(&AD, &MESSAGE, b"", &mut rng).expect("a short message"))
                    .collect::<Vec<_>>()
            };
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || encrypt(thread))).collect();
            running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let points: Vec<_> = ciphertexts.iter().map(|(c, ..)| c.header().expect("a point")).collect();
        let share = processor.release_share(member, &points).expect("within limits");
        let release = parameters.combine(&[(member.index(), share)]).expect("enough");
        Self { ciphertexts, points, release }
    }

    fn items(&self) -> Vec<(&'static [u8; 32], &Ciphertext)> {
        self.ciphertexts.iter().map(|(ciphertext, ..)| (&AD, ciphertext)).collect()
    }

    fn check(&self, openings: &[Opening]) {
        assert_eq!(openings.len(), self.ciphertexts.len());
        for (opening, (.., key)) in openings.iter().zip(&self.ciphertexts) {
            assert!(opening.key() == Some(key), "opened wrongly");
        }
    }
}

fn ms(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

/// Sorted.
#[derive(Clone)]
struct Spread(Vec<f64>);

impl Spread {
    fn of(mut of: Vec<f64>) -> Self {
        of.sort_by(f64::total_cmp);
        Self(of)
    }

    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
}

const OPERATIONS: [&str; 5] = ["predecrypt", "finalize", "decrypt", "verify-hints", "verify-proofs"];

/// One of each operation.
fn round(parameters: &Parameters, case: &Case, backend: &dyn Backend) -> [f64; 5] {
    let (ek, items) = (parameters.encryption_key(), case.items());
    let mut predecrypted = None;
    let before =
        ms(|| predecrypted = Some(backend.predecrypt(parameters, &case.points).expect("within limits")));
    let predecrypted = predecrypted.expect("made above");
    let mut openings = vec![];
    let after = ms(|| {
        openings = backend.finalize(parameters, &predecrypted, &case.release, &items).expect("valid");
    });
    case.check(&openings);
    let both =
        ms(|| openings = backend.decrypt(parameters, &case.points, &case.release, &items).expect("valid"));
    case.check(&openings);
    let hints: Vec<_> = case.ciphertexts.iter().map(|(ciphertext, _, key)| (&AD, ciphertext, key)).collect();
    let mut opened = vec![];
    let hinted = ms(|| opened = backend.open_hints(&ek, &hints));
    assert!(opened.iter().all(|message| message.as_deref() == Ok(&MESSAGE[..])), "a hint opened wrongly");
    let proofs: Vec<_> =
        case.ciphertexts.iter().map(|(ciphertext, proof, _)| (&AD, ciphertext, proof)).collect();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut verified = vec![];
    let proved = ms(|| verified = backend.verify_proofs(&mut rng, &proofs));
    assert!(verified.iter().all(Result::is_ok), "a right proof was refused");
    [before, after, both, hinted, proved]
}

fn rounds(count: usize, parameters: &Parameters, case: &Case, backend: &dyn Backend) -> [Spread; 5] {
    backend.prepare(parameters, case.points.len()).expect("within limits");
    round(parameters, case, backend); // tables and memory at first use
    let all: Vec<_> = (0..count).map(|_| round(parameters, case, backend)).collect();
    std::array::from_fn(|i| Spread::of(all.iter().map(|round| round[i]).collect()))
}

/// What was measured, as JSON.
#[derive(Default)]
struct Figures(Vec<String>);

impl Figures {
    fn add(&mut self, batch: usize, backend: &str, threads: usize, of: &[Spread; 5], phases: [&[Phase]; 5]) {
        let cells: String = of.iter().map(|spread| format!(" {:>10.2}", spread.median())).collect();
        println!("{backend:>12} {batch:>6}{cells}");
        for ((operation, spread), phases) in OPERATIONS.iter().zip(of).zip(phases) {
            let phase = |phase: &Phase| format!("{{\"name\": \"{}\", \"ms\": {:.3}}}", phase.name, phase.ms);
            let phases: Vec<_> = phases.iter().map(phase).collect();
            let (median, min) = (spread.median(), spread.0[0]);
            self.0.push(format!(
                "    {{\"batch\": {batch}, \"backend\": \"{backend}\", \"threads\": {threads}, \"operation\": \"{operation}\", \
                 \"wall_ms\": {{\"median\": {median:.3}, \"min\": {min:.3}}}, \"phases\": [{}]}}",
                phases.join(", ")
            ));
        }
    }

    fn write(&self, file: &str, device: &str, rounds: usize, overlap: [f64; 2]) {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        let cpu = cpu.trim_start_matches([':', ' ', '\t']);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let [alone, beside] = overlap;
        let json = format!(
            "{{\n  \"machine\": {{\"device\": \"{device}\", \"cpu\": \"{cpu}\", \"cores\": {cores}}},\n  \
             \"settings\": {{\"rounds\": {rounds}, \"message_bytes\": {}}},\n  \
             \"finalize_ms\": {{\"alone\": {alone:.3}, \"beside_predecryptions\": {beside:.3}}},\n  \
             \"figures\": [\n{}\n  ]\n}}\n",
            MESSAGE.len(),
            self.0.join(",\n")
        );
        std::fs::write(file, json).expect("the file can be written");
    }
}

/// Medians of finalizations, alone and while another thread has the device compute cross-terms.
fn overlap(count: usize, parameters: &Parameters, case: &Case, device: &dyn Backend) -> [f64; 2] {
    let predecrypted = device.predecrypt(parameters, &case.points).expect("within limits");
    let items = case.items();
    let one = || ms(|| drop(device.finalize(parameters, &predecrypted, &case.release, &items)));
    let finalize = || Spread::of((0..count).map(|_| one()).collect()).median();
    let alone = finalize();
    let stop = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(device.predecrypt(parameters, &case.points).expect("within limits"));
            }
        });
        std::thread::sleep(Duration::from_millis(30)); // the other is at work
        let beside = finalize();
        stop.store(true, Ordering::Relaxed);
        beside
    });
    [alone, beside]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("FILE ROUNDS PROCESSOR_MAX BATCH…");
    let numbers: Vec<usize> = arguments.map(|n| n.parse().expect("numbers")).collect();
    let [count, processor_max, batches @ ..] = &numbers[..] else { panic!("ROUNDS PROCESSOR_MAX BATCH…") };
    let fail = |operation, error: &_| panic!("{operation:?} failed: {error}");
    let limits = [("cuda", Limits::default()), ("cuda-large", LARGE), ("cuda-small", SMALL)];
    let contenders = limits.map(|(name, limits)| {
        let device = devices().expect("a device").remove(0);
        let device = Cuda::new(device, limits).expect("a device that can be used");
        (name, device.clone(), Offload::new(Arc::new(device), 0, fail))
    });
    let [(_, first, offload), ..] = &contenders;
    println!("on {}", first.device());
    println!("{:>12} {:>6}{}", "", "B", OPERATIONS.map(|operation| format!(" {operation:>10.10}")).concat());
    let processor = blindfold_bte::auto(0);
    let largest = batches.iter().max().copied().unwrap_or(2);
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let (parameters, members) = dealer::deal(largest as u32, 1, 1, &mut rng).expect("a valid shape");
    let (mut figures, mut overlapped) = (Figures::default(), [0.0; 2]);
    for size in batches {
        let case = Case::new(&parameters, &members[0], &*processor, *size);
        for (name, device, offload) in &contenders {
            if *name == "cuda-small" && *size > SMALL_MAX {
                continue;
            }
            let of = rounds(*count, &parameters, &case, offload);
            let Phases { batch, release } = device.phases();
            figures.add(*size, name, offload.threads(), &of, [&[], &release, &batch, &[], &[]]);
        }
        if size <= processor_max {
            let of = rounds(*count, &parameters, &case, &*processor);
            figures.add(*size, processor.name(), processor.threads(), &of, [&[]; 5]);
        }
        if *size == largest {
            overlapped = overlap(*count, &parameters, &case, offload);
            println!(
                "finalize alone {:.2} ms, beside pre-decryptions {:.2} ms",
                overlapped[0], overlapped[1]
            );
        }
    }
    figures.write(&file, &first.device().name, *count, overlapped);
}

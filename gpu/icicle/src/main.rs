//! Does an ICICLE device pay on this machine? Batches of proofs, checked by the processor alone and with the device's
//! sums, in turn; medians as a table, or as JSON with `--json`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use blindfold_bte::accelerator::{
    Accelerator, DeviceError, Domain, G1Limbs, Offload, Operation, ScalarLimbs, Setup,
};
use blindfold_bte::{Backend, Ciphertext, EncryptionKey, Proof, ProofItem, auto, dealer};
use blindfold_icicle::{Icicle, Settings};
use clap::Parser;
use nix::time::{ClockId, clock_gettime};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Seed of the ciphertexts and of the checks' weights.
const SEED: u64 = 0x1c1c1e;

#[derive(Parser)]
#[command(name = "blindfold-icicle", about = "Checks batches of proofs with and without an ICICLE device")]
struct Options {
    /// Kind of the device: CPU, CUDA, METAL, VULKAN
    #[arg(long, default_value = "CUDA")]
    device: String,
    /// Which of them
    #[arg(long, default_value_t = 0)]
    index: u32,
    /// Folder with the backends' libraries; without it ICICLE_BACKEND_INSTALL_DIR, or /opt/icicle/lib/backend
    #[arg(long)]
    backends: Option<std::path::PathBuf>,
    /// Proofs of a batch; may be given several times
    #[arg(long = "proofs", default_values_t = [1024, 4096, 16384])]
    proofs: Vec<usize>,
    /// Checks of each batch, of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Threads of the processor, 0 for one each core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A device with a clock.
struct Timed {
    device: Icicle,
    sums: AtomicUsize,
    ns: AtomicU64,
}

impl Accelerator for Timed {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn takes(&self, operation: Operation, items: usize) -> bool {
        self.device.takes(operation, items)
    }

    fn load(&self, setup: &Setup) -> Result<Arc<dyn Domain>, DeviceError> {
        self.device.load(setup)
    }

    fn sum(&self, points: &[G1Limbs], scalars: &[ScalarLimbs]) -> Result<G1Limbs, DeviceError> {
        let start = Instant::now();
        let sum = self.device.sum(points, scalars);
        self.ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.sums.fetch_add(1, Ordering::Relaxed);
        sum
    }
}

/// Medians in milliseconds: by the clock, and of all cores.
struct Row {
    proofs: usize,
    processor: Cost,
    icicle: Cost,
    /// What `icicle` has of both sums by the clock, one waiting for the other included.
    sums_ms: f64,
}

/// What a check takes.
struct Cost {
    ms: f64,
    cpu_ms: f64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let Options { device, index, backends, threads, .. } = &options;
    // Whatever is left to the device goes there.
    let settings = Settings { device: device.clone(), index: *index, backends: backends.clone(), sum_min: 1 };
    let icicle = Icicle::new(&settings)?;
    let timed = Arc::new(Timed { device: icicle, sums: AtomicUsize::new(0), ns: AtomicU64::new(0) });
    let failed = Arc::new(Mutex::new(None));
    let shared = Arc::clone(&failed);
    let offload = Offload::new(Arc::<Timed>::clone(&timed), *threads, move |operation, fault| {
        if let Ok(mut failed) = shared.lock() {
            *failed = Some(format!("{}: {fault}", operation.name()));
        }
    });
    // What does the rest beside the device is the same.
    let processor = auto(*threads);
    let mut rng = ChaCha20Rng::seed_from_u64(SEED);
    let (parameters, _) = dealer::deal(2, 1, 1, &mut rng).context("parameters")?;
    let key = parameters.encryption_key();
    let mut rows = Vec::new();
    for &count in &options.proofs {
        let proved = proved(&key, count, &mut rng)?;
        rows.push(measure(processor.as_ref(), &offload, &timed, &proved, options.rounds, &mut rng)?);
        if let Ok(Some(fault)) = failed.lock().map(|mut failed| failed.take()) {
            bail!("the device failed: {fault}");
        }
    }
    print(&options, processor.as_ref(), &rows);
    Ok(())
}

/// Associated data, ciphertext and proof.
type Proved = ([u8; 32], Ciphertext, Proof);

fn proved(key: &EncryptionKey, count: usize, rng: &mut ChaCha20Rng) -> Result<Vec<Proved>> {
    let encrypted = (0..count).map(|number| {
        let mut ad = [0; 32];
        ad[..8].copy_from_slice(&(number as u64).to_le_bytes());
        let (ciphertext, proof, _) = key.encrypt(&ad, b"measured", b"", rng)?;
        Ok((ad, ciphertext, proof))
    });
    encrypted.collect()
}

fn measure(
    processor: &dyn Backend,
    offload: &Offload,
    timed: &Timed,
    proved: &[Proved],
    rounds: usize,
    rng: &mut ChaCha20Rng,
) -> Result<Row> {
    let items: Vec<ProofItem<'_>> =
        proved.iter().map(|(ad, ciphertext, proof)| (ad, ciphertext, proof)).collect();
    let mut check = |backend: &dyn Backend| {
        let (start, cpu) = (Instant::now(), cpu_ms()?);
        let sound = backend.verify_proofs(rng, &items).iter().all(Result::is_ok);
        let cost = Cost { ms: start.elapsed().as_secs_f64() * 1e3, cpu_ms: cpu_ms()? - cpu };
        ensure!(sound, "{} finds a sound proof wrong", backend.name());
        Ok(cost)
    };
    let (mut alone, mut with, mut sums_ms) = (vec![], vec![], vec![]);
    // The first round warms up.
    for round in 0..=rounds {
        let one = check(processor)?;
        timed.ns.store(0, Ordering::Relaxed);
        timed.sums.store(0, Ordering::Relaxed);
        let other = check(offload)?;
        ensure!(items.len() < 2 || timed.sums.load(Ordering::Relaxed) == 2, "a check asks for two sums");
        if round > 0 {
            alone.push(one);
            with.push(other);
            sums_ms.push(timed.ns.load(Ordering::Relaxed) as f64 / 1e6);
        }
    }
    let costs = |costs: &[Cost]| Cost {
        ms: median(costs.iter().map(|cost| cost.ms).collect()),
        cpu_ms: median(costs.iter().map(|cost| cost.cpu_ms).collect()),
    };
    Ok(Row { proofs: items.len(), processor: costs(&alone), icicle: costs(&with), sums_ms: median(sums_ms) })
}

/// Of all threads of this process.
fn cpu_ms() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).context("the clock of the process")?;
    Ok(time.tv_sec() as f64 * 1e3 + time.tv_nsec() as f64 / 1e6)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn print(options: &Options, processor: &dyn Backend, rows: &[Row]) {
    let (device, index) = (&options.device, options.index);
    let (name, threads) = (processor.name(), processor.threads());
    if options.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "proofs": row.proofs,
                    "processor_ms": row.processor.ms,
                    "processor_cpu_ms": row.processor.cpu_ms,
                    "icicle_ms": row.icicle.ms,
                    "icicle_cpu_ms": row.icicle.cpu_ms,
                    "sums_ms": row.sums_ms,
                })
            })
            .collect();
        let all = serde_json::json!({
            "device": device, "index": index, "processor": name, "threads": threads, "rounds": options.rounds,
            "seed": SEED, "rows": rows,
        });
        println!("{all:#}");
        return;
    }
    println!(
        "checks of proofs, median of {} in ms; {name} with {threads} threads, {device} {index}",
        options.rounds
    );
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "proofs", "processor", "its CPU", "with ICICLE", "its CPU", "of it sums", "gain"
    );
    for Row { proofs, processor, icicle, sums_ms } in rows {
        println!(
            "{proofs:>8} {:>12.1} {:>12.1} {:>12.1} {:>12.1} {sums_ms:>12.1} {:>8.2}",
            processor.ms,
            processor.cpu_ms,
            icicle.ms,
            icicle.cpu_ms,
            processor.ms / icicle.ms
        );
    }
}

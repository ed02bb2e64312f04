//! The scheme's operations, every result checked. All contenders (backends, numbers of threads, the peer) take their
//! turn at one operation before the next begins, so that they see the same machine.

mod fixture;
mod operation;
mod own;
#[cfg(feature = "bench")]
mod peer;
mod report;

use std::collections::BTreeMap;

use anyhow::Result;
use blindfold_bte::{DEFAULT_LINES_MAX_BYTES, auto};
use blindfold_runtime::now;
use clap::{Args, ValueEnum};

use self::{
    fixture::Fixture,
    operation::{Operation, Sample, Samples},
    own::Own,
    report::{Memory, Phase, Report},
};
use super::machine::{PEER_ASSEMBLY, peak_mib, reset_peak};

/// Options of `blindfold bench bte`.
#[derive(Args, Debug)]
pub struct BteArgs {
    /// Ciphertexts in the batch, also B: one size or several
    #[arg(long, value_delimiter = ',', default_value = "128", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Vec<u32>,
    /// Threads of the backends, one number or several (0: one for each core); the peer has one
    #[arg(long, value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// Which implementations, timed in turn: auto, cuda, ifma, portable, reference
    #[arg(long, visible_alias = "backends", value_delimiter = ',', default_value = "auto")]
    backend: Vec<String>,
    /// Time the paper-shaped code in the same run (feature `bench`)
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Leave the peer out of batches above this size, which take it minutes
    #[arg(long, default_value_t = 2048)]
    peer_max_batch: u32,
    /// Only these operations; all of them otherwise
    #[arg(long, value_enum, value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Memory for each backend's Miller lines, in MiB
    #[arg(long, default_value_t = DEFAULT_LINES_MAX_BYTES >> 20)]
    lines_max_mib: usize,
    /// Committee members
    #[arg(long, default_value_t = 4)]
    members: u16,
    /// Rounds of each; medians and minima are told
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Reference,
}

/// One implementation on some number of threads.
trait Contender {
    fn name(&self) -> &str;

    fn threads(&self) -> usize;

    /// Is it what the others are compared with?
    fn is_peer(&self) -> bool {
        false
    }

    /// Makes what a running system would have made before the batch comes: not timed.
    fn prepare(&mut self, fixture: &Fixture) -> Result<()>;

    /// Drops what it made for the batch.
    fn forget(&mut self);

    /// Where the time of the last sample went, by the clock of the device that it ran on.
    fn phases(&self, _operation: Operation) -> Vec<Phase> {
        vec![]
    }

    /// One sample; `None` if it has no such operation. A wrong result is an error.
    fn run(&mut self, operation: Operation, fixture: &Fixture) -> Result<Option<Sample>>;
}

/// Samples by operation.
type Taken = BTreeMap<Operation, Samples>;

/// Measures and prints.
///
/// # Errors
/// A wrong result, or options that cannot be measured.
pub fn run(args: &BteArgs) -> Result<()> {
    let peer = args.peer.map(|Peer::Reference| new_peer()).transpose()?;
    let mut own = contenders(args)?;
    let mut report = Report::new(args, peer.is_some());
    eprintln!("{}", report.machine_line());
    if peer.is_some() && !PEER_ASSEMBLY {
        eprintln!("WARNING: {}", report::NO_ASSEMBLY);
    }
    let mut peer = peer;
    for batch in &args.batch {
        reset_peak();
        let fixture = Fixture::new(*batch, args.members, &*auto(0))?;
        let dealt_mib = peak_mib();
        let mut all: Vec<&mut dyn Contender> = own.iter_mut().map(|own| own as &mut dyn Contender).collect();
        if let Some(peer) = peer.as_deref_mut() {
            if *batch <= args.peer_max_batch {
                all.push(peer);
            } else {
                eprintln!("B = {batch}: without the peer (--peer-max-batch {})", args.peer_max_batch);
            }
        }
        let taken = measure(&fixture, &mut all, &operations(args), args.rounds.max(1))?;
        report.add(*batch, &all, &taken);
        report.add_memory(Memory { batch: *batch, dealt_mib, peak_mib: peak_mib() });
        all.iter_mut().for_each(|contender| contender.forget());
    }
    report.print(args.json)
}

fn operations(args: &BteArgs) -> Vec<Operation> {
    let mut chosen = args.operations.clone();
    if chosen.is_empty() {
        chosen = Operation::value_variants().to_vec();
    }
    // Pre-decryption before finalization, which uses it.
    chosen.sort();
    chosen.dedup();
    chosen
}

fn contenders(args: &BteArgs) -> Result<Vec<Own>> {
    let mut own = Vec::new();
    for backend in &args.backend {
        for threads in &args.threads {
            own.push(Own::new(backend, *threads, args.lines_max_mib << 20)?);
        }
    }
    Ok(own)
}

/// All rounds of one batch; samples in the order of `contenders`.
fn measure(
    fixture: &Fixture,
    contenders: &mut [&mut dyn Contender],
    operations: &[Operation],
    rounds: usize,
) -> Result<Vec<Taken>> {
    for contender in contenders.iter_mut() {
        let started = now();
        contender.prepare(fixture)?;
        let (name, seconds) = (contender.name(), started.elapsed().as_secs_f64());
        eprintln!("B = {}: {name} on {} prepared in {seconds:.1} s", fixture.batch(), contender.threads());
    }
    let mut taken = vec![Taken::new(); contenders.len()];
    for round in 1..=rounds {
        let started = now();
        for operation in operations {
            for (contender, taken) in contenders.iter_mut().zip(&mut taken) {
                if let Some(sample) = contender.run(*operation, fixture)? {
                    taken.entry(*operation).or_default().push(sample);
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("B = {}: round {round} of {rounds} in {seconds:.1} s", fixture.batch());
    }
    for taken in &mut taken {
        for (rest, sum) in
            [(Operation::Finalize, Operation::Helper), (Operation::Unblind, Operation::HelperUnchecked)]
        {
            if let (Some(predecrypt), Some(rest)) = (taken.get(&Operation::Predecrypt), taken.get(&rest)) {
                let together = predecrypt.then(rest);
                taken.insert(sum, together);
            }
        }
    }
    Ok(taken)
}

#[cfg(feature = "bench")]
fn new_peer() -> Result<Box<dyn Contender>> {
    Ok(Box::new(peer::Peer::default()))
}

#[cfg(not(feature = "bench"))]
fn new_peer() -> Result<Box<dyn Contender>> {
    anyhow::bail!("this binary has no peer: build it with `--features bench`")
}

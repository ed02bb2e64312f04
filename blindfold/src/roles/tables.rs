//! The tables of the public parameters on disk: a restart reads what the first start computed.
//!
//! One file for each parameter set and domain, `<data_dir>/tables/<parameter hash>-<points>.table`, in the format of
//! [`Parameters::export_table`]. Nothing depends on it: a file that is missing or refused is computed anew and replaced,
//! and one that cannot be written is done without. Written to `….table.tmp` beside it, flushed and renamed, so that a
//! kill at any instant leaves the old file, the new one, or none; what a kill left of a temporary file is overwritten.
//! Files of other parameters are left alone.
//!
//! Miller lines and the comb tables of the encryption key are not written: computing them is about as fast as reading
//! them (figures in docs/architecture.md).

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    sync::Arc,
    thread,
};

use blindfold_bte::{Backend, Parameters, TableError, UnknownBackend, auto, by_name};
use blindfold_chain::ParameterSet;
use blindfold_protocol::Epoch;
use blindfold_runtime::{Instant, now};

/// Folder below the role's own.
const FOLDER: &str = "tables";
/// Bytes of a point in a table; what reading is bounded by.
const POINT_BYTES: u64 = 192;
/// More than a table has beside its points.
const MAX_OVERHEAD_BYTES: u64 = 4_096;

/// Whether Miller lines are computed at the start, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Only when a batch needs them: they take up to `backend.max_lines_bytes`.
    AtFirstUse,
    /// For the newest parameters now.
    OfTheNewest,
}

/// Why a table did not come from disk.
#[derive(Debug)]
enum Absent {
    Missing,
    Unreadable(io::Error),
    Refused(TableError),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file yet"),
            Self::Unreadable(fault) => write!(f, "it cannot be read: {fault}"),
            Self::Refused(fault) => write!(f, "it is refused: {fault}"),
        }
    }
}

/// Where a table came from.
#[derive(Debug)]
enum Source {
    Disk,
    Computed { because: Absent, written: io::Result<()> },
}

/// The parameters of the epochs that `wants` names, each once, the newest first.
pub(super) fn wanted(parameters: &ParameterSet, wants: impl Fn(&Epoch) -> bool) -> Vec<Arc<Parameters>> {
    let mut sets: Vec<Arc<Parameters>> = Vec::new();
    for epoch in parameters.all().iter().filter(|epoch| wants(epoch.epoch())) {
        // An older epoch may have the same parameters.
        sets.retain(|set| *set != *epoch.parameters());
        sets.push(Arc::clone(epoch.parameters()));
    }
    sets.reverse();
    sets
}

/// Brings in the table for batches of B of each set, from disk or else computed and written, on a thread of its own
/// with a backend like `backend` but of one thread: batches that come meanwhile have the role's backend to themselves,
/// and the process can end at any time. A device is given what it keeps. Never fails; the log tells.
pub(super) fn provide_in_background(
    data_dir: &Path,
    sets: Vec<Arc<Parameters>>,
    backend: Arc<dyn Backend>,
    lines: Lines,
) {
    let folder = data_dir.join(FOLDER);
    let work = move || match by_name(backend.name(), 1) {
        Ok(own) => provide_all(&folder, &sets, own.as_ref(), own.as_ref(), lines),
        // The processor computes tables for a device, which makes its lines of them.
        Err(UnknownBackend::Feature { .. }) => {
            provide_all(&folder, &sets, auto(1).as_ref(), backend.as_ref(), lines);
        }
        Err(fault) => tracing::warn!(%fault, "no tables are prepared"),
    };
    // Not `spawn_blocking`: the runtime would wait for its end at a stop.
    if let Err(fault) = thread::Builder::new().name("tables".to_owned()).spawn(work) {
        tracing::warn!(%fault, "no tables are prepared");
    }
}

fn provide_all(
    folder: &Path,
    sets: &[Arc<Parameters>],
    points: &dyn Backend,
    batches: &dyn Backend,
    lines: Lines,
) {
    for (age, set) in sets.iter().enumerate() {
        provide(folder, set, points);
        if age == 0
            && lines == Lines::OfTheNewest
            && let Err(fault) = batches.prepare(set, set.max_batch())
        {
            tracing::warn!(%fault, "no lines are prepared");
        }
    }
}

/// One set's table for batches of B. `None` where there is none: B = 1.
fn provide(folder: &Path, parameters: &Parameters, backend: &dyn Backend) -> Option<Source> {
    let points = parameters.table_points(parameters.max_batch())?;
    let path = folder.join(format!("{}-{points}.table", hex::encode(parameters.hash())));
    let started = now();
    let source = match read(&path, points, parameters) {
        Ok(()) => Source::Disk,
        Err(because) => {
            tracing::debug!(table = %path.display(), why = %because, "computing a table");
            let bytes = computed(parameters, backend)?;
            if let Err(fault) = parameters.import_table(&bytes) {
                // Only a bug: it was exported a moment ago. The first batch computes its own.
                tracing::error!(%fault, "a computed table is refused");
            }
            Source::Computed { because, written: write(folder, &path, &bytes) }
        }
    };
    tell(&path, &source, ms(started));
    Some(source)
}

/// One line: which table, where it came from, and why.
fn tell(path: &Path, source: &Source, ms: u64) {
    let table = path.display();
    match source {
        Source::Disk => tracing::info!(%table, ms, "table read"),
        Source::Computed { because: Absent::Missing, written: Ok(()) } => {
            tracing::info!(%table, ms, why = %Absent::Missing, "table computed and written");
        }
        Source::Computed { because, written: Ok(()) } => {
            tracing::warn!(%table, ms, why = %because, "table computed anew and replaced");
        }
        Source::Computed { because, written: Err(fault) } => tracing::warn!(
            %table, ms, why = %because, %fault,
            "table computed, but not written: the next start computes it again"
        ),
    }
}

fn ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn read(path: &Path, points: usize, parameters: &Parameters) -> Result<(), Absent> {
    let file = File::open(path).map_err(|fault| match fault.kind() {
        io::ErrorKind::NotFound => Absent::Missing,
        _ => Absent::Unreadable(fault),
    })?;
    let limit = points as u64 * POINT_BYTES + MAX_OVERHEAD_BYTES;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(Absent::Unreadable)?;
    parameters.import_table(&bytes).map_err(Absent::Refused)
}

/// The table's file, computed under parameters of their own that keep no lines.
fn computed(parameters: &Parameters, backend: &dyn Backend) -> Option<Vec<u8>> {
    let batch = parameters.max_batch();
    let bare = parameters.clone().with_memory_limit(0);
    backend.prepare(&bare, batch).ok()?;
    bare.export_table(batch)
}

/// Replaces the file as a whole: what is there under its name is always complete.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary = path.with_extension("table.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;

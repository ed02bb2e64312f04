//! Files that several roles read.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use anyhow::{Context, Result, bail};
use blindfold_bte::Parameters;
use blindfold_chain::{EpochParameters, L1Reader, ParameterSet};
use blindfold_protocol::{ChainConfig, Epochs};
use blindfold_runtime::{now, rng, spawn};
use tokio::time::{Duration, sleep};

use super::BackendSettings;

/// How long a role waits at its start for a committee on L1: final blocks are minutes old on a real L1.
const EPOCH_TIMEOUT_MS: u64 = 30 * 60 * 1_000;
/// How often it looks.
const EPOCH_POLL_INTERVAL_MS: u64 = 1_000;
/// How often a running role looks whether an epoch's end has moved, which is known long before it matters.
const EPOCH_FOLLOW_INTERVAL_MS: u64 = 5_000;

/// Reads and checks the chain's settings, `rollup.json`.
///
/// # Errors
/// A file that cannot be read or is no chain's settings.
pub fn load_chain(path: &Path) -> Result<Arc<ChainConfig>> {
    let text = fs::read_to_string(path).with_context(|| format!("chain = {}", path.display()))?;
    let chain: ChainConfig =
        serde_json::from_str(&text).with_context(|| format!("{} is no rollup.json", path.display()))?;
    chain.validate().with_context(|| format!("{}", path.display()))?;
    Ok(Arc::new(chain))
}

/// Reads the committees' parameter files, checks each against itself and against the epoch that L1 registers for it.
/// The Miller lines of each may take `backend.max_lines_bytes`.
///
/// Cost: dominated by the pairing checks, about a second for B = 128 on one core.
///
/// # Errors
/// A file that cannot be read, fails its checks, or that no epoch on L1 names; an epoch on L1 without a file.
pub async fn load_parameters(
    paths: &[PathBuf],
    backend: &BackendSettings,
    l1: Arc<dyn L1Reader>,
) -> Result<Arc<ParameterSet>> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let parameters = read_parameters(path)?;
        parameters
            .check(&mut rng())
            .with_context(|| format!("{} fails its checks: do not use it", path.display()))?;
        files.push((path, Arc::new(parameters.with_memory_limit(backend.max_lines_bytes))));
    }
    let epochs = registered_epochs(&*l1).await?;
    let mut matched = Vec::new();
    for epoch in epochs.as_slice() {
        let Some((path, parameters)) =
            files.iter().find(|(_, parameters)| parameters.hash() == epoch.parameters_hash.0)
        else {
            bail!(
                "no parameter file has the hash {} that L1 registers for epoch {}; fetch it and add it to `parameters`",
                epoch.parameters_hash,
                epoch.epoch
            );
        };
        let location = path.display().to_string();
        matched.push(EpochParameters::new(epoch.clone(), parameters.clone(), location)?);
    }
    let set = Arc::new(ParameterSet::new(matched)?);
    set.adopt(&epochs);
    spawn(follow_epochs(Arc::downgrade(&set), l1));
    Ok(set)
}

/// Keeps up with epochs that end earlier than they were registered, for as long as somebody has the parameters.
async fn follow_epochs(set: Weak<ParameterSet>, l1: Arc<dyn L1Reader>) {
    loop {
        sleep(Duration::from_millis(EPOCH_FOLLOW_INTERVAL_MS)).await;
        let Some(set) = set.upgrade() else { return };
        match l1.epochs().await {
            Ok(epochs) => {
                if set.adopt(&epochs) {
                    tracing::warn!("L1 moved the end of an epoch");
                }
            }
            // Whoever needs L1 says so; what is known stands.
            Err(fault) => tracing::debug!(%fault, "the epochs on L1"),
        }
    }
}

/// Reads one parameter file; its equations are not checked.
pub(super) fn read_parameters(path: &Path) -> Result<Parameters> {
    let bytes = fs::read(path).with_context(|| format!("parameters: {}", path.display()))?;
    Parameters::decode(&bytes).with_context(|| format!("{} is no parameter file", path.display()))
}

/// The epochs on L1's newest final block. A committee that was just registered is waited for until it is final.
async fn registered_epochs(l1: &dyn L1Reader) -> Result<Epochs> {
    let deadline = now() + Duration::from_millis(EPOCH_TIMEOUT_MS);
    let mut warned = false;
    loop {
        let missing = match l1.epochs().await {
            Ok(epochs) if !epochs.as_slice().is_empty() => return Ok(epochs),
            Ok(_) => "L1 registers no committee on its newest final block".to_owned(),
            Err(fault) if fault.may_pass() => fault.to_string(),
            Err(fault) => return Err(fault).context("the epochs registered on L1"),
        };
        if now() > deadline {
            bail!("{missing}; register the committee first (docs/operate.md), then start again");
        }
        if !warned {
            tracing::warn!("{missing}; waiting");
            warned = true;
        }
        sleep(Duration::from_millis(EPOCH_POLL_INTERVAL_MS)).await;
    }
}

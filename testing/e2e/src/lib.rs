//! Tests in which the roles meet.
//!
//! - [`relay`]: a recording relay in front of the sequencer, which can also forge.
//! - [`l1_relay`]: a relay in front of L1, which can let it stand still or be away for one role.
//! - [`checker`]: what a run has to show, computed from evidence the sender cannot have made up.
//! - [`smoke`]: the run of `scripts/devnet --smoke`.
//! - [`alarms`]: Prometheus with our alarms beside a network, in time that runs faster.
//! - [`replicated`]: the run of `scripts/devnet --replicated --chaos`.
//! - [`drills`]: the run of `scripts/devnet --drills`.
//! - [`adversary`]: the run of `scripts/devnet --adversary`.

pub mod adversary;
pub mod alarms;
pub mod checker;
mod collector;
pub mod drills;
mod forge;
pub mod l1_relay;
mod preload;
pub mod relay;
pub mod replicated;
mod settings_file;
pub mod smoke;
mod traffic;
mod verdict;

use std::path::PathBuf;

use anyhow::{Result, ensure};

/// The program that roles run from, which is built beside this one.
///
/// # Errors
/// When it is not there.
pub(crate) fn program() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("blindfold");
    ensure!(binary.is_file(), "{} is missing: cargo build -p blindfold", binary.display());
    Ok(binary)
}

/// A client of plain HTTP.
///
/// # Panics
/// When there can be none, which is a bug.
pub(crate) fn http_client() -> reqwest::Client {
    let nobody = blindfold_tls::nothing_trusted().expect("ring has the protocol's versions");
    reqwest::Client::builder().tls_backend_preconfigured(nobody).build().expect("it has nothing to load")
}

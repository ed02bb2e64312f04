//! What the figures were measured on, and with what build.

use std::time::Duration;

use serde::Serialize;

/// Is arkworks' field assembly compiled in? It needs these instructions at compile time and falls back silently.
pub(in crate::bench) const PEER_ASSEMBLY: bool =
    cfg!(all(feature = "bench", target_arch = "x86_64", target_feature = "adx", target_feature = "bmi2"));

/// The machine and the build.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct Machine {
    /// Model name of the processor.
    cpu: String,
    /// Cores this process may use.
    cores: usize,
    /// Of the instruction sets that matter here, those found at run time.
    instructions: Vec<&'static str>,
    /// Of the same, those the compiler was allowed to use everywhere.
    compiled_for: Vec<&'static str>,
    /// `RUSTFLAGS` of the build; known in builds with the feature `bench`.
    rustflags: Option<&'static str>,
    /// Compiler; likewise.
    rustc: Option<&'static str>,
    os: &'static str,
    version: &'static str,
}

impl Machine {
    pub(in crate::bench) fn this() -> Self {
        Self {
            cpu: cpu().unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            instructions: instructions(),
            compiled_for: compiled_for(),
            rustflags: option_env!("BLINDFOLD_BUILD_RUSTFLAGS"),
            rustc: option_env!("BLINDFOLD_BUILD_RUSTC"),
            os: std::env::consts::OS,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// One line for people.
    pub(in crate::bench) fn line(&self) -> String {
        format!(
            "{}, {} cores, instructions {}; built for {}{}",
            self.cpu,
            self.cores,
            or_none(&self.instructions),
            or_none(&self.compiled_for),
            self.rustflags.map(|flags| format!(", RUSTFLAGS={flags:?}")).unwrap_or_default()
        )
    }
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() { "none of note".to_owned() } else { names.join(" ") }
}

fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(target_arch = "x86_64")]
fn instructions() -> Vec<&'static str> {
    let found = [
        ("adx", is_x86_feature_detected!("adx")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512ifma", is_x86_feature_detected!("avx512ifma")),
        ("sha", is_x86_feature_detected!("sha")),
    ];
    names(&found)
}

#[cfg(not(target_arch = "x86_64"))]
fn instructions() -> Vec<&'static str> {
    vec![]
}

fn compiled_for() -> Vec<&'static str> {
    names(&[
        ("adx", cfg!(target_feature = "adx")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("avx2", cfg!(target_feature = "avx2")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("avx512ifma", cfg!(target_feature = "avx512ifma")),
        ("sha", cfg!(target_feature = "sha")),
    ])
}

fn names(found: &[(&'static str, bool)]) -> Vec<&'static str> {
    found.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect()
}

/// The process's largest resident memory in MiB since [`reset_peak`], or since its start where that cannot be reset;
/// `None` where the system does not say.
pub(in crate::bench) fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// Starts a new peak (Linux). Where it is refused, peaks are those of the whole process.
pub(in crate::bench) fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Time of all threads of this process on their cores.
#[cfg(unix)]
pub(in crate::bench) fn cpu_time() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Unknown here.
#[cfg(not(unix))]
pub(in crate::bench) fn cpu_time() -> Duration {
    Duration::ZERO
}

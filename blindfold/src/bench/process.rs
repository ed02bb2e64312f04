//! What the operating system says of a process.

use std::fs;

use anyhow::{Context, Result};

/// Processor time of a process, in milliseconds.
pub(super) fn cpu_ms(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold anything.
    let (_, rest) = stat.rsplit_once(')').context("a line of /proc/…/stat")?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let (user, system) = (fields.next().context("utime")??, fields.next().context("stime")??);
    // Linux shows it in hundredths of a second.
    Ok((user + system) as f64 * 10.0)
}

/// What a process has in memory, in KiB.
pub(super) fn resident_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches(" kB").trim().parse().context("VmRSS in kB")
}

//! What is timed, and how one sample is taken.

use std::time::Duration;

use anyhow::Result;
use blindfold_runtime::now;
use clap::ValueEnum;
use serde::Serialize;

use super::super::{machine::cpu_time, median};

/// Quick operations are repeated until a sample has lasted so long.
const SAMPLE_MIN: Duration = Duration::from_millis(40);

/// One operation on a whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Operation {
    /// The helper's cross-terms, before the release is known
    Predecrypt,
    /// The helper's rest, once it is known
    Finalize,
    /// All the helper's work in one (fused), for throughput
    Decrypt,
    /// Verify 16-byte hints by encrypting again
    VerifyHints,
    /// Encrypt and prove knowledge; one thread, the same code in every backend
    Encrypt,
    /// A member's share of the release
    ReleaseShare,
    /// Verify one member's share
    VerifyShare,
    /// Verify all members' shares at once, all honest
    InvalidShares,
    /// Verify the proofs of knowledge
    VerifyProofs,
    /// The article's bandwidth-optimized hints of 32 bytes (reference only)
    RandomnessHints,
    /// The article's verification-optimized hints of 576 bytes (reference only)
    TargetHints,
    /// The blinding factors that finalization begins with, without its check (reference only)
    Unblind,
    /// Predecrypt and finalize together; computed, not chosen
    #[value(skip)]
    Helper,
    /// Predecrypt and unblind together; likewise
    #[value(skip)]
    HelperUnchecked,
}

impl Operation {
    /// What the peer does for the same end, where it has no such operation.
    pub(super) fn of_peer(self) -> Self {
        match self {
            Self::Decrypt => Self::Helper,
            other => other,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Predecrypt => "pre-decrypt",
            Self::Finalize => "finalize (after pd)",
            Self::Helper => "helper, pipelined",
            Self::Unblind => "unblind, unchecked",
            Self::HelperUnchecked => "helper, unchecked",
            Self::Decrypt => "helper, fused",
            Self::VerifyHints => "verify hints (16 B)",
            Self::Encrypt => "encrypt",
            Self::ReleaseShare => "release share",
            Self::VerifyShare => "verify share",
            Self::InvalidShares => "invalid shares (none)",
            Self::VerifyProofs => "verify proofs",
            Self::RandomnessHints => "article's 32 B hints",
            Self::TargetHints => "article's 576 B hints",
        }
    }
}

/// Mean of the calls of one sample, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    wall: f64,
    /// Of all threads of the process; beside `wall` it shows what the machine did meanwhile.
    cpu: f64,
}

/// Takes one sample of `work`; every result goes through `check`, off the clock.
pub(super) fn sample<T>(
    mut work: impl FnMut() -> Result<T>,
    check: impl Fn(&T) -> Result<()>,
) -> Result<Sample> {
    let (mut wall, mut cpu, mut calls) = (Duration::ZERO, Duration::ZERO, 0);
    while calls == 0 || wall < SAMPLE_MIN {
        let (started, cpu_started) = (now(), cpu_time());
        let result = work()?;
        wall += started.elapsed();
        cpu += cpu_time().saturating_sub(cpu_started);
        calls += 1;
        check(&result)?;
    }
    let calls = f64::from(calls);
    Ok(Sample { wall: wall.as_secs_f64() / calls, cpu: cpu.as_secs_f64() / calls })
}

/// Samples of one operation, one for each round.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    pub(super) fn push(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Round by round, one after the other.
    pub(super) fn then(&self, next: &Self) -> Self {
        let both = self.0.iter().zip(&next.0);
        Self(both.map(|(a, b)| Sample { wall: a.wall + b.wall, cpu: a.cpu + b.cpu }).collect())
    }

    pub(super) fn wall_ms(&self) -> Spread {
        Spread::of(self.0.iter().map(|sample| sample.wall * 1e3).collect())
    }

    pub(super) fn cpu_ms(&self) -> Spread {
        Spread::of(self.0.iter().map(|sample| sample.cpu * 1e3).collect())
    }
}

/// Median and minimum over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
}

impl Spread {
    fn of(samples: Vec<f64>) -> Self {
        let min = samples.iter().copied().fold(f64::INFINITY, f64::min);
        Self { median: median(samples), min }
    }
}

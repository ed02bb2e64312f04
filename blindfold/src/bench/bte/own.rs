//! The production code as a contender.

#[cfg(feature = "cuda")]
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use blindfold_bte::{Backend, Parameters, PreDecrypted};
use blindfold_runtime::rng;

use super::Contender;
use super::fixture::Fixture;
use super::operation::{Operation, Sample, sample};
#[cfg(feature = "cuda")]
use super::report::Phase;

/// A backend on some number of threads.
pub(super) struct Own {
    backend: Arc<dyn Backend>,
    threads: usize,
    lines_max_bytes: usize,
    /// Of the current batch.
    prepared: Option<Parameters>,
    /// What the last pre-decryption of the current batch gave.
    predecrypted: Option<PreDecrypted>,
    #[cfg(feature = "cuda")]
    devices: Vec<blindfold_gpu::Cuda>,
    /// Of the last round of each operation.
    #[cfg(feature = "cuda")]
    phases: BTreeMap<Operation, Vec<Phase>>,
}

impl Own {
    /// # Errors
    /// No such backend here.
    pub(super) fn new(name: &str, threads: usize, lines_max_bytes: usize) -> Result<Self> {
        let chosen = crate::backend::by_name(name, threads)?;
        eprintln!("{}: {}", chosen.backend.name(), chosen.why);
        Ok(Self {
            threads: chosen.backend.threads(),
            backend: chosen.backend,
            lines_max_bytes,
            prepared: None,
            predecrypted: None,
            #[cfg(feature = "cuda")]
            devices: chosen.devices,
            #[cfg(feature = "cuda")]
            phases: BTreeMap::new(),
        })
    }

    /// Keeps what the device says about the operation that has just run. One batch at a time is always on one device.
    #[cfg(feature = "cuda")]
    fn keep_phases(&mut self, operation: Operation) {
        let phases = self.devices.iter().map(|device| match operation {
            Operation::Predecrypt | Operation::Decrypt => device.phases().batch,
            Operation::Finalize => device.phases().release,
            _ => vec![],
        });
        if let Some(phases) = phases.into_iter().find(|phases| !phases.is_empty()) {
            let phase = |phase: &blindfold_gpu::Phase| Phase { name: phase.name, ms: f64::from(phase.ms) };
            self.phases.insert(operation, phases.iter().map(phase).collect());
        }
    }

    fn parameters(&self) -> Result<&Parameters> {
        self.prepared.as_ref().context("a backend is prepared before it runs")
    }

    fn finalize(&mut self, fixture: &Fixture) -> Result<Sample> {
        let taken = self.predecrypted.take();
        let parameters = self.parameters()?;
        let predecrypted = match taken {
            Some(predecrypted) => predecrypted,
            None => self.backend.predecrypt(parameters, &fixture.points)?,
        };
        let items = fixture.items();
        sample(
            || Ok(self.backend.finalize(parameters, &predecrypted, &fixture.release, &items)?),
            |openings| fixture.check_openings(openings),
        )
    }

    /// Verification of shares: with one it is the check of a member, with all the search for the invalid ones.
    fn invalid_shares(&self, fixture: &Fixture, shares: &[(u16, [u8; 48])]) -> Result<Sample> {
        let (mut rng, parameters) = (rng(), self.parameters()?);
        sample(
            || Ok(self.backend.invalid_shares(&mut rng, parameters, &fixture.points, shares)?),
            |invalid| {
                ensure!(invalid.is_empty(), "a right share was refused");
                Ok(())
            },
        )
    }

    fn verify_proofs(&self, fixture: &Fixture) -> Result<Sample> {
        let (mut rng, proofs) = (rng(), fixture.proofs());
        sample(
            || Ok(self.backend.verify_proofs(&mut rng, &proofs)),
            |results| {
                ensure!(
                    results.iter().zip(&fixture.points).all(|(result, point)| result.as_ref() == Ok(point))
                );
                Ok(())
            },
        )
    }
}

impl Contender for Own {
    fn name(&self) -> &str {
        self.backend.name()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn prepare(&mut self, fixture: &Fixture) -> Result<()> {
        let parameters = fixture.parameters(self.lines_max_bytes)?;
        self.backend.prepare(&parameters, fixture.batch())?;
        self.prepared = Some(parameters);
        // The tables of the encryption key are made at first use.
        let first = fixture.hints().into_iter().take(1).collect::<Vec<_>>();
        ensure!(self.backend.open_hints(&fixture.ek, &first).iter().all(Result::is_ok), "a hint was refused");
        Ok(())
    }

    fn forget(&mut self) {
        (self.prepared, self.predecrypted) = (None, None);
    }

    #[cfg(feature = "cuda")]
    fn phases(&self, operation: Operation) -> Vec<Phase> {
        self.phases.get(&operation).cloned().unwrap_or_default()
    }

    fn run(&mut self, operation: Operation, fixture: &Fixture) -> Result<Option<Sample>> {
        let (parameters, points) = (self.parameters()?, &fixture.points);
        let sample = match operation {
            Operation::Predecrypt => {
                let mut last = None;
                let taken = sample(
                    || {
                        last = Some(self.backend.predecrypt(parameters, points)?);
                        Ok(())
                    },
                    |()| Ok(()), // what it is worth shows when it is finalized
                )?;
                self.predecrypted = last;
                taken
            }
            Operation::Finalize => self.finalize(fixture)?,
            Operation::Decrypt => {
                let items = fixture.items();
                sample(
                    || Ok(self.backend.decrypt(parameters, points, &fixture.release, &items)?),
                    |openings| fixture.check_openings(openings),
                )?
            }
            Operation::VerifyHints => {
                let hints = fixture.hints();
                sample(
                    || Ok(self.backend.open_hints(&fixture.ek, &hints)),
                    |opened| fixture.check_messages(opened.iter().map(|result| result.as_deref().ok())),
                )?
            }
            Operation::Encrypt => encrypt(fixture)?,
            Operation::ReleaseShare => sample(
                || Ok(self.backend.release_share(&fixture.member, points)?),
                |share| fixture.check_share(share),
            )?,
            Operation::VerifyShare => self.invalid_shares(fixture, &fixture.shares[..1])?,
            Operation::InvalidShares => self.invalid_shares(fixture, &fixture.shares)?,
            Operation::VerifyProofs => self.verify_proofs(fixture)?,
            Operation::RandomnessHints
            | Operation::TargetHints
            | Operation::Unblind
            | Operation::Helper
            | Operation::HelperUnchecked => return Ok(None),
        };
        #[cfg(feature = "cuda")]
        self.keep_phases(operation);
        Ok(Some(sample))
    }
}

/// The same messages again, under other randomness: what comes out is checked by opening it.
fn encrypt(fixture: &Fixture) -> Result<Sample> {
    let mut rng = rng();
    sample(
        || {
            let encrypted = fixture
                .made
                .iter()
                .map(|made| fixture.ek.encrypt(&made.ad, &made.message, b"benchmark", &mut rng));
            Ok(encrypted.collect::<Result<Vec<_>, _>>()?)
        },
        |encrypted| {
            // One is enough: the code is the same for all.
            for ((ciphertext, _, key), made) in encrypted.iter().zip(&fixture.made).take(1) {
                ensure!(
                    fixture.ek.open_hint(&made.ad, ciphertext, key)? == made.message,
                    "encrypted wrongly"
                );
            }
            Ok(())
        },
    )
}

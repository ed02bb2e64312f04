//! Cross-terms that wait for their release in a device's memory.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{CrossTerms, DeviceError, Fallback, Operation, elements, point_limbs};
use crate::batch;
use crate::cpu::Cpu;
use crate::curve::Gt;
use crate::{CiphertextPoint, Parameters, Release};

/// The cross-terms of one batch, and what it takes to compute them again should the device fail.
pub(crate) struct Resident {
    parameters: Parameters,
    points: Vec<CiphertextPoint>,
    terms: Box<dyn CrossTerms>,
    fallback: Arc<Fallback>,
    /// A copy, once somebody other than the device needs them.
    host: OnceLock<Vec<Gt>>,
}

impl Resident {
    pub(super) fn new(
        parameters: &Parameters,
        points: &[CiphertextPoint],
        terms: Box<dyn CrossTerms>,
        fallback: Arc<Fallback>,
    ) -> Self {
        Self {
            parameters: parameters.clone(),
            points: points.to_vec(),
            terms,
            fallback,
            host: OnceLock::new(),
        }
    }

    /// The blinding factors of these ciphertexts as the device computes them.
    pub(super) fn blinding_factors(
        &self,
        release: &Release,
        of: Range<usize>,
        cpu: &Cpu,
    ) -> Result<Vec<Gt>, DeviceError> {
        let count = of.len();
        let returned = self.terms.blinding_factors(&point_limbs(&release.0), of)?;
        cpu.install(|| elements(&returned, count))
    }

    /// The cross-terms up to the hard part, from the device or, if it fails, computed again on the current pool.
    pub(crate) fn on_host(&self) -> &[Gt] {
        self.on_host_or(|| batch::cross_terms(&self.parameters, &self.points, None))
    }

    /// The same with another way to compute them again.
    pub(super) fn on_host_or(&self, again: impl FnOnce() -> Vec<Gt>) -> &[Gt] {
        if let Some(host) = self.host.get() {
            return host;
        }
        // Made outside the cell: a thread that waits in rayon may pick up another task that needs this cell.
        let downloaded = self.terms.download().and_then(|terms| elements(&terms, self.points.len()));
        let host = downloaded.unwrap_or_else(|error| {
            (self.fallback)(Operation::Batch, &error);
            again()
        });
        self.host.get_or_init(|| host)
    }
}

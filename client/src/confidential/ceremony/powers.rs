//! Phase 1.

use ark_bls12_381::Bls12_381;
use blindfold_confidential::Ring;
use blindfold_groth16::setup::{Powers, PowersCeremony};

use super::{Beacon, CeremonyError, Contributed, contributed, entropy};
use crate::confidential::provers::ConfidentialCircuit;

/// The powers of τ so far, and who made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowersState(PowersCeremony<Bls12_381>);

impl PowersState {
    /// A phase 1 without contributions, large enough for every circuit over the ring.
    ///
    /// # Errors
    /// [`CeremonyError::Keys`], a mistake of this program.
    pub fn new(ring: Ring) -> Result<Self, CeremonyError> {
        let mut log_rows = 1;
        for circuit in ConfidentialCircuit::ALL {
            let fault = |fault| CeremonyError::Keys { circuit: circuit.name(), fault };
            let rows = circuit.rows(ring).map_err(fault)?;
            let rows = rows.constraints() + rows.shape().public();
            log_rows = log_rows.max(rows.next_power_of_two().trailing_zeros());
        }
        // No circuit has more than 2^26 rows.
        Ok(Self(PowersCeremony::new(log_rows as u8)))
    }

    /// Reads a state and checks every point for curve and subgroup: five points and 576 bytes for each row.
    ///
    /// # Errors
    /// [`CeremonyError::Decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, CeremonyError> {
        Ok(Self(PowersCeremony::decode(bytes)?))
    }

    /// What contributors hand on.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    /// Rows of the largest circuit that it reaches.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.powers().rows()
    }

    /// The contributions so far.
    #[must_use]
    pub fn contributions(&self) -> Vec<Contributed> {
        contributed(self.0.transcript().entries())
    }

    /// Contributes factors that are forgotten at once. One multiplication for each element: four in the first group and
    /// one in the second for each row.
    ///
    /// # Errors
    /// [`CeremonyError::Powers`] after a beacon, [`CeremonyError::NoRandomness`].
    pub fn contribute(&mut self) -> Result<(), CeremonyError> {
        self.0.contribute(&mut entropy()?).map_err(CeremonyError::Powers)
    }

    /// Closes the phase with a beacon. Costs what a contribution does, and the beacon's hashes.
    ///
    /// # Errors
    /// [`CeremonyError::Powers`] after a beacon, or for one of too many iterations; [`CeremonyError::NoRandomness`].
    pub fn close(&mut self, beacon: Beacon) -> Result<(), CeremonyError> {
        let Beacon { value, log_iterations } = beacon;
        self.0.close(value.0, log_iterations, &mut entropy()?).map_err(CeremonyError::Powers)
    }

    /// Checks every contribution, and that the powers are what they lead to: two sums over each list, ten pairings.
    ///
    /// # Errors
    /// [`CeremonyError::Powers`], [`CeremonyError::NoRandomness`].
    pub fn verify(&self) -> Result<(), CeremonyError> {
        self.0.verify(&mut entropy()?).map_err(CeremonyError::Powers)
    }

    pub(super) fn powers(&self) -> &Powers<Bls12_381> {
        self.0.powers()
    }
}

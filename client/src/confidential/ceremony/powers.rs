//! Phase 1.

use std::io::{Read, Seek};

use alloy_primitives::B512;
use ark_bls12_381::Bls12_381;
use blindfold_confidential::Ring;
use blindfold_groth16::setup::{Imported, PowersCeremony, PowersTranscript};

use super::{Beacon, CeremonyError, Contributed, contributed, entropy};
use crate::confidential::provers::ConfidentialCircuit;

/// A published transcript of powers of τ, as it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPowers(Imported<Bls12_381>);

impl ImportedPowers {
    /// Its last hash, BLAKE2b: what its organisers published.
    #[must_use]
    pub fn hash(&self) -> B512 {
        B512::from(*self.0.hash())
    }

    /// How many contributions the powers have.
    #[must_use]
    pub fn contributions(&self) -> u32 {
        self.0.contributions()
    }
}

/// Log₂ of the rows of the largest circuit over the ring.
fn log_rows(ring: Ring) -> Result<u8, CeremonyError> {
    let mut log_rows = 1;
    for circuit in ConfidentialCircuit::ALL {
        let fault = |fault| CeremonyError::Keys { circuit: circuit.name(), fault };
        let rows = circuit.rows(ring).map_err(fault)?;
        let rows = rows.constraints() + rows.shape().public();
        log_rows = log_rows.max(rows.next_power_of_two().trailing_zeros());
    }
    // No circuit has more than 2^26 rows.
    Ok(log_rows as u8)
}

/// The powers of τ so far, and who made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowersState(PowersCeremony<Bls12_381>);

impl PowersState {
    /// A phase 1 without contributions, large enough for every circuit over the ring.
    ///
    /// # Errors
    /// [`CeremonyError::Keys`], a mistake of this program.
    pub fn new(ring: Ring) -> Result<Self, CeremonyError> {
        Ok(Self(PowersCeremony::new(log_rows(ring)?)))
    }

    /// A phase 1 that goes on from a published transcript for 2^log_size rows (Zcash's of 2018: 21), of which as many powers
    /// are kept as the circuits over the ring need. Checks it from its first round to its last and tells each; reads it
    /// twice.
    ///
    /// # Errors
    /// [`CeremonyError::Import`].
    pub fn import(
        transcript: impl Read + Seek,
        log_size: u8,
        ring: Ring,
        done: &mut dyn FnMut(u32),
    ) -> Result<Self, CeremonyError> {
        let transcript = PowersTranscript::new(transcript, log_size);
        Ok(Self(transcript.import(log_rows(ring)?, &mut entropy()?, done)?))
    }

    /// The transcript that it went on from, where there is one. Only [`import`](Self::import) has checked it.
    #[must_use]
    pub fn imported(&self) -> Option<ImportedPowers> {
        self.0.imported().cloned().map(ImportedPowers)
    }

    /// Reads a state and checks every point for curve and subgroup: five points and 576 bytes for each row.
    ///
    /// # Errors
    /// [`CeremonyError::Decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, CeremonyError> {
        Ok(Self(PowersCeremony::decode(bytes)?))
    }

    /// The bytes of the state that contributors hand on.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    /// Rows of the largest circuit that it reaches.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.powers().rows()
    }

    /// The contributions so far, in their order.
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

    /// Checks every contribution, and that the powers are what they lead to: two sums over each list, ten pairings. A phase
    /// that goes on from a published transcript needs that one, [imported](Self::import) here.
    ///
    /// # Errors
    /// [`CeremonyError::Powers`], [`CeremonyError::NoRandomness`].
    pub fn verify(&self, imported: Option<&ImportedPowers>) -> Result<(), CeremonyError> {
        let imported = imported.map(|imported| &imported.0);
        self.0.verify(imported, &mut entropy()?).map_err(CeremonyError::Powers)
    }

    /// Whether the phase is at its end: somebody contributed, and a beacon closed it. Without a contributor τ, α and β are
    /// 1, or follow from the beacon, and anybody can forge under every key that is made from them.
    ///
    /// # Errors
    /// [`CeremonyError::UnfinishedPowers`].
    pub fn finished(&self) -> Result<(), CeremonyError> {
        self.0.origin().require(1, 1).map_err(CeremonyError::UnfinishedPowers)
    }

    pub(super) fn ceremony(&self) -> &PowersCeremony<Bls12_381> {
        &self.0
    }
}

//! Phase 2 of all circuits.

use std::path::Path;

use ark_bls12_381::Bls12_381;
use blindfold_confidential::Ring;
use blindfold_groth16::setup::{KeyCeremony, LagrangePoints, SetupError};

use super::{
    Beacon, CeremonyError, Contributed, ImportedPowers, Key, Part, PowersState, contributed, entropy,
};
use crate::confidential::provers::{ConfidentialCircuit, Pinned, write_keys};

const MAGIC: &[u8; 8] = b"BFCKEYS1";

/// Phase 2 of every circuit so far, in the order of [`ConfidentialCircuit::ALL`].
///
/// Encoded: magic (8) ‖ for each circuit the length (4, big-endian) of its state ‖ its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysState([KeyCeremony<Bls12_381>; 4]);

/// Keys of a ceremony that was checked from its beginning, in the order of [`ConfidentialCircuit::ALL`].
pub struct VerifiedKeys([Key; 4]);

fn at(circuit: ConfidentialCircuit) -> impl Fn(SetupError) -> CeremonyError {
    move |fault| CeremonyError::Keys { circuit: circuit.name(), fault }
}

/// The keys with which phase 2 begins: minutes of processor time, the same for everybody.
pub(super) fn prepared(
    powers: &PowersState,
    ring: Ring,
    progress: &mut dyn FnMut(Part),
) -> Result<[Key; 4], CeremonyError> {
    let mut bases: Vec<LagrangePoints<Bls12_381>> = Vec::new();
    let mut keys = Vec::with_capacity(4);
    for circuit in ConfidentialCircuit::ALL {
        let rows = circuit.rows(ring).map_err(at(circuit))?;
        let size = (rows.constraints() + rows.shape().public()).next_power_of_two();
        let known = bases.iter().position(|points| points.rows() == size);
        let place = match known {
            Some(place) => place,
            None => {
                progress(Part::Lagrange(size));
                bases.push(LagrangePoints::new(powers.ceremony(), &rows).map_err(at(circuit))?);
                bases.len() - 1
            }
        };
        progress(Part::Circuit(circuit));
        keys.push(bases[place].prepare(&rows).map_err(at(circuit))?);
    }
    keys.try_into().map_err(|_| CeremonyError::Container("it has another number of circuits"))
}

impl KeysState {
    /// Checks phase 1, which must be at its end, and begins phase 2 of all circuits over the ring. Minutes of processor
    /// time: four transforms of points for each size of circuit.
    ///
    /// # Errors
    /// [`CeremonyError::UnfinishedPowers`], [`CeremonyError::Powers`], [`CeremonyError::Keys`] where phase 1 is too small.
    pub fn new(
        powers: &PowersState,
        imported: Option<&ImportedPowers>,
        ring: Ring,
        progress: &mut dyn FnMut(Part),
    ) -> Result<Self, CeremonyError> {
        progress(Part::Powers);
        powers.finished()?;
        powers.verify(imported)?;
        Ok(Self::of(&prepared(powers, ring, progress)?))
    }

    /// Phase 2 of prepared keys, without contributions.
    pub(super) fn of(prepared: &[Key; 4]) -> Self {
        Self(prepared.each_ref().map(KeyCeremony::new))
    }

    /// Reads a state and checks every point for curve and subgroup.
    ///
    /// # Errors
    /// [`CeremonyError::Decode`], [`CeremonyError::Container`].
    pub fn decode(bytes: &[u8]) -> Result<Self, CeremonyError> {
        let cut = CeremonyError::Container("it is cut short");
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return Err(CeremonyError::Container("it does not begin as phase 2 does"));
        };
        let mut states = Vec::with_capacity(4);
        for _ in ConfidentialCircuit::ALL {
            let Some((length, after)) = rest.split_first_chunk::<4>() else { return Err(cut) };
            let length = u32::from_be_bytes(*length) as usize;
            let Some((state, after)) = after.split_at_checked(length) else { return Err(cut) };
            states.push(KeyCeremony::decode(state)?);
            rest = after;
        }
        match (<[_; 4]>::try_from(states), rest) {
            (Ok(states), []) => Ok(Self(states)),
            _ => Err(CeremonyError::Container("bytes follow its end")),
        }
    }

    /// The bytes of the state that contributors hand on.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for state in &self.0 {
            let state = state.encode();
            bytes.extend((state.len() as u32).to_be_bytes());
            bytes.extend(state);
        }
        bytes
    }

    /// The contributions so far, of each circuit.
    #[must_use]
    pub fn contributions(&self) -> Vec<(ConfidentialCircuit, Vec<Contributed>)> {
        let entries = self.0.each_ref().map(|state| contributed(state.transcript().entries()));
        ConfidentialCircuit::ALL.into_iter().zip(entries).collect()
    }

    fn each(
        &mut self,
        mut change: impl FnMut(&mut KeyCeremony<Bls12_381>) -> Result<(), SetupError>,
    ) -> Result<(), CeremonyError> {
        for (circuit, state) in ConfidentialCircuit::ALL.into_iter().zip(&mut self.0) {
            change(state).map_err(at(circuit))?;
        }
        Ok(())
    }

    /// Contributes factors to each circuit that are forgotten at once. One multiplication for each element of a key that
    /// depends on δ or σ.
    ///
    /// # Errors
    /// [`CeremonyError::Keys`] after a beacon, [`CeremonyError::NoRandomness`].
    pub fn contribute(&mut self) -> Result<(), CeremonyError> {
        let mut rng = entropy()?;
        self.each(|state| state.contribute(&mut rng))
    }

    /// Closes the phase with a beacon. Costs what a contribution does, and the beacon's hashes for each circuit.
    ///
    /// # Errors
    /// [`CeremonyError::Keys`] after a beacon, or for one of too many iterations; [`CeremonyError::NoRandomness`].
    pub fn close(&mut self, beacon: Beacon) -> Result<(), CeremonyError> {
        let mut rng = entropy()?;
        self.each(|state| state.close(beacon.value.0, beacon.log_iterations, &mut rng))
    }

    /// Checks both phases from their beginnings against this program's circuits: every contribution, and that the keys
    /// are what all of them lead to. Costs what [`Self::new`] does, and two sums over each key.
    ///
    /// # Errors
    /// [`CeremonyError::Powers`] or [`CeremonyError::Keys`] for what does not hold.
    pub fn verify(
        &self,
        powers: &PowersState,
        imported: Option<&ImportedPowers>,
        ring: Ring,
        progress: &mut dyn FnMut(Part),
    ) -> Result<VerifiedKeys, CeremonyError> {
        progress(Part::Powers);
        powers.verify(imported)?;
        self.verify_on(prepared(powers, ring, progress)?)
    }

    /// Checks phase 2 from the keys that it must have begun with.
    pub(super) fn verify_on(&self, mut keys: [Key; 4]) -> Result<VerifiedKeys, CeremonyError> {
        let mut rng = entropy()?;
        for ((circuit, state), key) in ConfidentialCircuit::ALL.into_iter().zip(&self.0).zip(&mut keys) {
            state.verify(key, &mut rng).map_err(at(circuit))?;
            *key = state.key(key);
        }
        Ok(VerifiedKeys(keys))
    }
}

impl VerifiedKeys {
    /// Whether the ceremony is at its end: somebody contributed to each phase, and a beacon closed it. A coprocessor without
    /// `insecure_development_setup` takes no other keys.
    ///
    /// # Errors
    /// [`CeremonyError::Unfinished`].
    pub fn finished(&self) -> Result<(), CeremonyError> {
        for (circuit, key) in ConfidentialCircuit::ALL.into_iter().zip(&self.0) {
            let fault = |fault| CeremonyError::Unfinished { circuit: circuit.name(), fault };
            key.verifying().origin().require_ceremony(1).map_err(fault)?;
        }
        Ok(())
    }

    /// Writes the key files of a finished ceremony into a folder that is not there yet.
    ///
    /// # Errors
    /// [`CeremonyError::Unfinished`], [`CeremonyError::Files`].
    pub fn write(&self, dir: &Path) -> Result<Pinned, CeremonyError> {
        self.finished()?;
        Ok(write_keys(dir, &mut |circuit| Ok(self.0[circuit as usize].clone()))?)
    }
}

//! Key files: a `.proving` and a `.verifying` one for each circuit, and `keys.json` with their hashes.

use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use ark_bls12_381::Bls12_381;
use blindfold_confidential::Ring;
use blindfold_confidential::executor::Groth16Proofs;
use blindfold_groth16::{
    KeyError, OriginError, ProverError, ProvingKey, Recent, Verifier, VerifyingKey, setup,
};

use super::ConfidentialCircuit;
use super::fresh::{failed, new_folder, synced};
use crate::confidential::KeyHashes;

/// Keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// There is something already where a file or a folder is to be made.
    #[error("{0} is there already, and nothing is written over: name another, or move it away")]
    Exists(PathBuf),
    /// A file holds no key, or another than the deployment pins.
    #[error("{path}: {fault}; fetch the deployment's key file again")]
    Key {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with the key in it.
        fault: KeyError,
    },
    /// A verifying key is not the one that the deployment pins.
    #[error("{path} has hash {found}, the deployment pins {pinned}")]
    Hash {
        /// Path of the file.
        path: PathBuf,
        /// The hash of the file's key.
        found: B256,
        /// The hash that `confidential.json` names.
        pinned: B256,
    },
    /// `confidential.json` says nothing of a circuit.
    #[error("confidential.json pins no key of the circuit {0:?}")]
    NotPinned(&'static str),
    /// Keys that production settings refuse.
    #[error("{circuit}: {fault}")]
    Origin {
        /// Name of the circuit.
        circuit: &'static str,
        /// What the key's origin lacks.
        fault: OriginError,
    },
    /// A key of another circuit.
    #[error(transparent)]
    Prover(#[from] ProverError),
    /// A verifying key of another version of a circuit.
    #[error("{0} is for another version of its circuit: take keys that were made for this program")]
    Circuit(PathBuf),
    /// The development set-up failed.
    #[error(transparent)]
    Setup(#[from] setup::SetupError),
}

fn proving_file(dir: &Path, circuit: ConfidentialCircuit) -> PathBuf {
    dir.join(format!("{}.proving", circuit.name()))
}

fn verifying_file(dir: &Path, circuit: ConfidentialCircuit) -> PathBuf {
    dir.join(format!("{}.verifying", circuit.name()))
}

fn read(path: &Path) -> Result<Vec<u8>, KeysError> {
    std::fs::read(path).map_err(|error| failed(path, &error))
}

/// The keys that a deployment pins.
pub type Pinned = std::collections::BTreeMap<String, KeyHashes>;

fn pinned(keys: &Pinned, circuit: ConfidentialCircuit) -> Result<KeyHashes, KeysError> {
    keys.get(circuit.name()).copied().ok_or(KeysError::NotPinned(circuit.name()))
}

/// A circuit's proving key, as the deployment pins it; it holds the pinned verifying key.
pub(super) fn proving_key(
    dir: &Path,
    keys: &Pinned,
    circuit: ConfidentialCircuit,
) -> Result<ProvingKey<Bls12_381>, KeysError> {
    let path = proving_file(dir, circuit);
    let bytes = read(&path)?;
    let KeyHashes { proving, verifying: pinned } = pinned(keys, circuit)?;
    let key = ProvingKey::decode_pinned(&bytes, &proving.0);
    let key: ProvingKey<Bls12_381> = key.map_err(|fault| KeysError::Key { path: path.clone(), fault })?;
    // What executors verify with: proofs are held against this key, not against one that the file brings along.
    let found = B256::from(key.verifying().hash());
    if found == pinned { Ok(key) } else { Err(KeysError::Hash { path, found, pinned }) }
}

fn verifying_key(
    dir: &Path,
    circuit: ConfidentialCircuit,
) -> Result<(PathBuf, VerifyingKey<Bls12_381>), KeysError> {
    let path = verifying_file(dir, circuit);
    match VerifyingKey::decode(&read(&path)?) {
        Ok(key) => Ok((path, key)),
        Err(fault) => Err(KeysError::Key { path, fault }),
    }
}

/// Whether the keys in `dir` are for the circuits of this program. Records the rows of each.
///
/// # Errors
/// [`KeysError::Circuit`] for the first that is not; [`KeysError`].
pub fn check_circuits(dir: &Path, ring: Ring) -> Result<(), KeysError> {
    for circuit in ConfidentialCircuit::ALL {
        let (path, key) = verifying_key(dir, circuit)?;
        if key.circuit() != circuit.rows(ring)?.digest() {
            return Err(KeysError::Circuit(path));
        }
    }
    Ok(())
}

/// The verifying keys that a deployment pins. Development keys are refused unless `insecure` says that they may be used.
///
/// # Errors
/// [`KeysError`].
pub fn verifiers(dir: &Path, keys: &Pinned, insecure: bool) -> Result<Groth16Proofs, KeysError> {
    let verifier = |circuit: ConfidentialCircuit| -> Result<Verifier<Bls12_381>, KeysError> {
        let (path, key) = verifying_key(dir, circuit)?;
        let (found, pinned) = (B256::from(key.hash()), pinned(keys, circuit)?.verifying);
        if found != pinned {
            return Err(KeysError::Hash { path, found, pinned });
        }
        if !insecure {
            let refused = |fault| KeysError::Origin { circuit: circuit.name(), fault };
            key.origin().require_ceremony(1).map_err(refused)?;
        }
        Ok(Verifier::new(key))
    };
    let [registration, transfer, refresh, withdrawal] = ConfidentialCircuit::ALL;
    Ok(Groth16Proofs {
        registration: verifier(registration)?,
        transfer: verifier(transfer)?,
        refresh: verifier(refresh)?,
        withdrawal: verifier(withdrawal)?,
        recent: Recent::default(),
    })
}

/// The file beside the keys that names their hashes.
const HASHES_FILE: &str = "keys.json";

/// The hashes that were written beside the keys when they were made. The keys are held against them when they are read.
///
/// # Errors
/// [`KeysError`], also where a circuit's key is missing.
pub fn pinned_in(dir: &Path) -> Result<Pinned, KeysError> {
    let path = dir.join(HASHES_FILE);
    let pinned = serde_json::from_slice(&read(&path)?)
        .map_err(|error| KeysError::File { path: path.clone(), reason: error.to_string() })?;
    if complete(dir) {
        return Ok(pinned);
    }
    Err(KeysError::File { path, reason: "a circuit's key is missing beside it".to_owned() })
}

fn complete(dir: &Path) -> bool {
    ConfidentialCircuit::ALL
        .into_iter()
        .all(|circuit| proving_file(dir, circuit).is_file() && verifying_file(dir, circuit).is_file())
}

fn hashes_of(key: &ProvingKey<Bls12_381>) -> KeyHashes {
    KeyHashes { verifying: B256::from(key.verifying().hash()), proving: B256::from(key.hash()) }
}

/// Makes keys from a seed, which whoever knows it can forge proofs with: for development. Tells each circuit. The
/// folder appears when all of them are made.
///
/// # Errors
/// [`KeysError`].
pub fn development(
    dir: &Path,
    ring: Ring,
    seed: &[u8; 32],
    progress: &mut dyn FnMut(ConfidentialCircuit),
) -> Result<Pinned, KeysError> {
    write_keys(dir, &mut |circuit| {
        progress(circuit);
        Ok(circuit.development(ring, seed)?)
    })
}

/// Writes the key files of all circuits and the file of their hashes, into a folder that is not there yet.
pub(crate) fn write_keys(
    dir: &Path,
    key: &mut dyn FnMut(ConfidentialCircuit) -> Result<ProvingKey<Bls12_381>, KeysError>,
) -> Result<Pinned, KeysError> {
    new_folder(dir, |dir| {
        let stored =
            |path: PathBuf, bytes: &[u8]| synced(&path, bytes).map_err(|error| failed(&path, &error));
        let mut pinned = Pinned::new();
        for circuit in ConfidentialCircuit::ALL {
            let key = key(circuit)?;
            stored(proving_file(dir, circuit), &key.encode())?;
            stored(verifying_file(dir, circuit), &key.verifying().encode())?;
            pinned.insert(circuit.name().to_owned(), hashes_of(&key));
        }
        let path = dir.join(HASHES_FILE);
        let text = serde_json::to_vec_pretty(&pinned)
            .map_err(|error| KeysError::File { path: path.clone(), reason: error.to_string() })?;
        stored(path, &text)?;
        Ok(pinned)
    })
}

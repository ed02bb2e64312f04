//! The public file beside a key file: `{"version":2,"member":2,"keys":[{"parametersHash":…,"blsPublicKey":…,
//! "proofOfPossession":…}]}`, with the keys in the order in which they were added.

use std::path::{Path, PathBuf};

use alloy_primitives::FixedBytes;
use blindfold_protocol::B256;
use serde::{Deserialize, Serialize};

use super::{KeyFileError, KeyFilePublic, MAX_KEYS, sealed::VERSION};

/// Twice what the most keys take.
pub(super) const MAX_BYTES: u64 = 64 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublicFile {
    version: u8,
    member: u16,
    keys: Vec<PublicKeys>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublicKeys {
    parameters_hash: B256,
    bls_public_key: FixedBytes<96>,
    proof_of_possession: FixedBytes<48>,
}

/// Path of the public file beside this key file: the same with `.json` at its end.
pub fn path_of(key_file: &Path) -> PathBuf {
    let mut path = key_file.as_os_str().to_owned();
    path.push(".json");
    path.into()
}

/// The bytes of the public file of these keys, which are of one member.
pub(super) fn encode(keys: &[KeyFilePublic]) -> Vec<u8> {
    let file = PublicFile {
        version: VERSION,
        member: keys.first().map_or(0, |key| key.member),
        keys: keys
            .iter()
            .map(|key| PublicKeys {
                parameters_hash: key.parameters_hash,
                bls_public_key: key.bls_public_key.into(),
                proof_of_possession: key.proof_of_possession.into(),
            })
            .collect(),
    };
    let mut bytes =
        serde_json::to_vec_pretty(&file).expect("strings, numbers and lists always have a JSON form");
    bytes.push(b'\n');
    bytes
}

/// Reads what [`encode`] wrote; `path` is for errors only.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<KeyFilePublic>, KeyFileError> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(KeyFileError::TooLarge { limit_bytes: MAX_BYTES });
    }
    #[derive(Deserialize)]
    struct Versioned {
        version: u8,
    }
    let damaged = |reason: String| KeyFileError::PublicDamaged { path: path.to_owned(), reason };
    let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if version != VERSION {
        return Err(KeyFileError::UnsupportedVersion { found: version });
    }
    let file: PublicFile = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if !(1..=MAX_KEYS).contains(&file.keys.len()) {
        return Err(damaged(format!("it has {} keys, 1 to {MAX_KEYS} are right", file.keys.len())));
    }
    let mut keys: Vec<KeyFilePublic> = Vec::with_capacity(file.keys.len());
    for PublicKeys { parameters_hash, bls_public_key, proof_of_possession } in file.keys {
        if keys.iter().any(|key| key.parameters_hash == parameters_hash) {
            return Err(KeyFileError::Duplicate { parameters_hash });
        }
        keys.push(KeyFilePublic {
            member: file.member,
            parameters_hash,
            bls_public_key: bls_public_key.0,
            proof_of_possession: proof_of_possession.0,
        });
    }
    Ok(keys)
}

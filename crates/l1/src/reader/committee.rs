//! Committees as `CommitteeRegistry` has them, and the points in them.

use blindfold_bte::{
    EncryptionKey,
    bls::{PublicKey, Signature},
};
use blindfold_protocol::{B256, Epoch, Epochs};

use crate::{contracts::CommitteeRegistry, error::L1Error};

/// One coordinate as EIP-2537 has it: 16 zero bytes and 48 of the number.
const COORDINATE_BYTES: usize = 64;
const PADDING_BYTES: usize = 16;
/// (p − 1) / 2, in 48 bytes: a compressed point's flag says whether y is above it.
const HALF_MODULUS: [u8; 48] = alloy_primitives::hex!(
    "0d0088f51cbff34d258dd3db21a5d66bb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555"
);

/// An epoch as L1 registered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochRecord {
    /// What the validity rule needs of it.
    pub epoch: Epoch,
    /// Where the public parameters can be fetched; their hash decides.
    pub parameters_location: String,
}

/// What `CommitteeRegistry` held on a final block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// The contract's count of changes.
    pub(crate) revision: u64,
    /// The final L1 block that it was read at.
    pub(crate) block: u64,
    pub(crate) records: Vec<EpochRecord>,
    /// The same as the rules take it, checked once: whoever admits an envelope asks for it.
    pub(crate) epochs: Epochs,
    /// An announced end that is still in force. The count of changes leaves it out, so it is read for each block.
    pub(crate) ending: Option<AnnouncedEnd>,
}

/// A member of a committee to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its BLS key.
    pub key: PublicKey,
    /// Its proof of possession, `SecretKey::prove_possession`.
    pub possession: Signature,
}

/// An epoch to be registered. It begins where the one before ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEpoch {
    /// The epoch's last batch number.
    pub last: u64,
    /// B: the most ciphertexts in one sub-batch.
    pub max_batch: u32,
    /// t: acknowledgements of a certificate, and shares of a release.
    pub threshold: u16,
    /// Hash of the public parameters.
    pub parameters_hash: B256,
    /// The earlier epoch whose key it continues; 0 for a new key.
    pub continues: u64,
    /// The encryption key, which `CommitteeRegistry` checks to lie in GT.
    pub encryption_key: EncryptionKey,
    /// h₁ of the parameters, which is a point like a member's key.
    pub h1: PublicKey,
    /// Where the public parameters can be fetched.
    pub parameters_location: String,
    /// Members 1..n, in order of their indices.
    pub members: Vec<NewMember>,
}

/// An end of an epoch at the head that the governor announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedEnd {
    /// Number of the epoch that ends.
    pub epoch: u64,
    /// The block of the announcement.
    pub announced_at: u64,
    /// After this block the next header that L1 makes is its last.
    pub until: u64,
    /// Announced for silence: something certified since takes it back.
    pub for_silence: bool,
}

pub(crate) fn record(number: u64, read: CommitteeRegistry::Epoch) -> Result<EpochRecord, L1Error> {
    let members = read
        .memberKeys
        .iter()
        .enumerate()
        .map(|(index, key)| {
            decompress_key(key).ok_or(L1Error::MemberKey { epoch: number, member: index + 1 })
        })
        .collect::<Result<_, _>>()?;
    let epoch = Epoch {
        epoch: number,
        first: read.firstNumber,
        last: read.lastNumber,
        counts_from: read.countsFrom,
        continues: read.continues,
        parameters_hash: read.parametersHash,
        encryption_key_hash: read.encryptionKeyHash,
        max_batch: read.maxBatch,
        threshold: read.threshold,
        members,
    };
    epoch.validate()?;
    Ok(EpochRecord { epoch, parameters_location: read.parametersLocation })
}

/// A key from its EIP-2537 encoding (L-3).
pub(crate) fn decompress_key(bytes: &[u8]) -> Option<PublicKey> {
    let bytes: &[u8; 4 * COORDINATE_BYTES] = bytes.try_into().ok()?;
    let [x0, x1, y0, y1] = [0, 1, 2, 3].map(|slot| coordinate(bytes, slot));
    let mut compressed = [0u8; 96];
    compressed[..48].copy_from_slice(x1);
    compressed[48..].copy_from_slice(x0);
    let deciding = if y1.iter().any(|byte| *byte != 0) { y1 } else { y0 };
    compressed[0] |= flags(deciding);
    // The round trip refuses padding that is not zero and a y that is not on the curve.
    PublicKey::from_bytes(&compressed).ok().filter(|key| key.to_eip2537() == *bytes)
}

/// A signature from its EIP-2537 encoding.
pub(crate) fn decompress_signature(bytes: &[u8]) -> Option<Signature> {
    let bytes: &[u8; 2 * COORDINATE_BYTES] = bytes.try_into().ok()?;
    let mut compressed = [0u8; 48];
    compressed.copy_from_slice(coordinate(bytes, 0));
    compressed[0] |= flags(coordinate(bytes, 1));
    Signature::from_bytes(&compressed).ok().filter(|signature| signature.to_eip2537() == *bytes)
}

/// The 48 bytes of coordinate `slot`.
fn coordinate(bytes: &[u8], slot: usize) -> &[u8] {
    &bytes[slot * COORDINATE_BYTES + PADDING_BYTES..(slot + 1) * COORDINATE_BYTES]
}

/// Flags of a compressed point: compressed, and which of the two y it is.
fn flags(y: &[u8]) -> u8 {
    if y > HALF_MODULUS.as_slice() { 0xa0 } else { 0x80 }
}

#[cfg(test)]
#[path = "committee_tests.rs"]
mod tests;

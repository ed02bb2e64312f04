//! Blobs as data of a posting: bytes in field elements, sidecars with cell proofs, and the check of what a beacon
//! node gives back.
//!
//! Data is written with its length in front (u32, big-endian) into field elements of 32 bytes, 31 of them used: the
//! first byte of each is zero, so that every element is below the field's modulus. Elements fill blobs in order; what
//! is left of the last blob is zero. The form is canonical: one data has one sequence of blobs.

use std::sync::LazyLock;

use alloy_eips::{
    eip4844::{AsCkzg, BYTES_PER_BLOB, Blob, FIELD_ELEMENTS_PER_BLOB, kzg_to_versioned_hash},
    eip7594::{BlobTransactionSidecarEip7594, MAX_BLOBS_PER_TX_FUSAKA},
};
use blindfold_protocol::B256;

/// Blobs that one transaction may carry (EIP-7594).
pub const MAX_BLOBS: usize = MAX_BLOBS_PER_TX_FUSAKA as usize;
/// Bytes of data that one field element holds.
const USED_BYTES: usize = 31;
const ELEMENT_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;
/// Bytes, the length in front included, that one blob holds.
const BLOB_ROOM_BYTES: usize = FIELD_ELEMENTS_PER_BLOB as usize * USED_BYTES;
/// The longest data that fits the blobs of one transaction, in bytes.
pub const MAX_BLOB_DATA_BYTES: usize = MAX_BLOBS * BLOB_ROOM_BYTES - LENGTH_BYTES;
/// No table is computed beforehand: that takes seconds at the start and saves a third of the time of a sidecar.
const PRECOMPUTED_LEVELS: u64 = 0;

/// Mainnet's trusted setup, loaded when the first blob is made or checked.
static SETTINGS: LazyLock<&'static c_kzg::KzgSettings> =
    LazyLock::new(|| c_kzg::ethereum_kzg_settings(PRECOMPUTED_LEVELS));

/// Why blobs cannot be made, or hold no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobFault {
    /// More than one transaction can carry.
    #[error(
        "{bytes} bytes of data do not fit the blobs of one transaction, which hold {MAX_BLOB_DATA_BYTES}"
    )]
    TooLong {
        /// Length of the data.
        bytes: usize,
    },
    /// The bytes are not in the one form that data has.
    #[error("the blobs hold no data: {0}")]
    NotData(&'static str),
    /// A transaction with blobs cannot create a contract.
    #[error("a transaction with blobs cannot create a contract")]
    Creation,
    /// The library refused a blob, which ours never are.
    #[error("the blob's commitment cannot be computed: {0}")]
    Kzg(String),
}

/// Writes data into blobs, at least one and at most [`MAX_BLOBS`].
///
/// # Errors
/// [`BlobFault::TooLong`].
pub fn encode_blobs(data: &[u8]) -> Result<Vec<Blob>, BlobFault> {
    let too_long = BlobFault::TooLong { bytes: data.len() };
    if data.len() > MAX_BLOB_DATA_BYTES {
        return Err(too_long);
    }
    let length = u32::try_from(data.len()).map_err(|_| too_long)?;
    let content = [length.to_be_bytes().as_slice(), data].concat();
    // Filled where they stand: a blob is too large for moving it about on the stack.
    let mut blobs = vec![Blob::ZERO; content.len().div_ceil(BLOB_ROOM_BYTES)];
    let elements = blobs.iter_mut().flat_map(|blob| blob.0.chunks_exact_mut(ELEMENT_BYTES));
    for (element, used) in elements.zip(content.chunks(USED_BYTES)) {
        element[1..=used.len()].copy_from_slice(used);
    }
    Ok(blobs)
}

/// Reads data back from all blobs of a transaction, in order, each of 131,072 bytes.
///
/// # Errors
/// [`BlobFault::NotData`] for anything that [`encode_blobs`] does not write.
pub fn decode_blobs(blobs: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, BlobFault> {
    if blobs.iter().any(|blob| blob.as_ref().len() != BYTES_PER_BLOB) {
        return Err(BlobFault::NotData("a blob has another length"));
    }
    let mut content = Vec::with_capacity(blobs.len() * BLOB_ROOM_BYTES);
    for element in blobs.iter().flat_map(|blob| blob.as_ref().chunks_exact(ELEMENT_BYTES)) {
        let (first, used) = element.split_first().ok_or(BlobFault::NotData("an empty element"))?;
        if *first != 0 {
            return Err(BlobFault::NotData("the first byte of an element is not zero"));
        }
        content.extend_from_slice(used);
    }
    let (length, rest) =
        content.split_first_chunk::<LENGTH_BYTES>().ok_or(BlobFault::NotData("there is no blob"))?;
    let length = u32::from_be_bytes(*length) as usize;
    let (data, padding) = rest.split_at_checked(length).ok_or(BlobFault::NotData("the data is cut off"))?;
    if padding.iter().any(|byte| *byte != 0) {
        return Err(BlobFault::NotData("what follows the data is not zero"));
    }
    if (LENGTH_BYTES + length).div_ceil(BLOB_ROOM_BYTES) != blobs.len() {
        return Err(BlobFault::NotData("there is a blob more than the data needs"));
    }
    Ok(data.to_vec())
}

/// Commitments and cell proofs of these blobs, as transactions carry them since Osaka. Costs for each blob one
/// multi-scalar multiplication over 4,096 points and the proofs of 128 cells: call it where blocking is allowed.
///
/// # Errors
/// [`BlobFault::Kzg`] for a blob with an element above the modulus.
pub fn sidecar(blobs: Vec<Blob>) -> Result<BlobTransactionSidecarEip7594, BlobFault> {
    BlobTransactionSidecarEip7594::try_from_blobs_with_settings(blobs, &SETTINGS)
        .map_err(|error| BlobFault::Kzg(error.to_string()))
}

/// The versioned hash of a blob of 131,072 bytes, from its commitment: one multi-scalar multiplication over 4,096
/// points.
///
/// # Errors
/// [`BlobFault::NotData`] for another length; [`BlobFault::Kzg`] for a blob with an element above the modulus.
pub fn versioned_hash(blob: &[u8]) -> Result<B256, BlobFault> {
    let blob: &Blob = blob.try_into().map_err(|_| BlobFault::NotData("a blob has another length"))?;
    let commitment =
        SETTINGS.blob_to_kzg_commitment(blob.as_ckzg()).map_err(|error| BlobFault::Kzg(error.to_string()))?;
    Ok(kzg_to_versioned_hash(commitment.as_slice()))
}

#[cfg(test)]
#[path = "blobs_tests.rs"]
mod tests;

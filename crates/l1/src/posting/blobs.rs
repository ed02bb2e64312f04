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
use alloy_primitives::{Bytes, U256, uint};
use blindfold_protocol::B256;

/// Blobs that one transaction may carry (EIP-7594).
pub const MAX_BLOBS: usize = MAX_BLOBS_PER_TX_FUSAKA as usize;
/// Bytes of data that one field element holds.
const USED_BYTES: usize = 31;
const ELEMENT_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;
/// Generates the field's multiplicative group.
const PRIMITIVE_ROOT: u64 = 7;
/// The modulus of the field of elements.
const BLS_MODULUS: U256 = uint!(0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001_U256);
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
pub enum BlobError {
    /// More than one transaction can carry.
    #[error(
        "{bytes} bytes of data do not fit the blobs of one transaction, which hold {MAX_BLOB_DATA_BYTES}"
    )]
    TooLong {
        /// Length of the data, without the length in front of it.
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

/// Writes data into blobs, at least one and at most [`MAX_BLOBS`] (L-9).
///
/// # Errors
/// [`BlobError::TooLong`].
pub fn encode_blobs(data: &[u8]) -> Result<Vec<Blob>, BlobError> {
    let too_long = BlobError::TooLong { bytes: data.len() };
    if data.len() > MAX_BLOB_DATA_BYTES {
        return Err(too_long);
    }
    let length = u32::try_from(data.len()).map_err(|_| too_long)?;
    let content = [length.to_be_bytes().as_slice(), data].concat();
    // Filled where they stand: a blob is too large for moving it about on the stack.
    let mut blobs = vec![Blob::ZERO; blobs_of(data.len())];
    let elements = blobs.iter_mut().flat_map(|blob| blob.0.chunks_exact_mut(ELEMENT_BYTES));
    for (element, used) in elements.zip(content.chunks(USED_BYTES)) {
        element[1..=used.len()].copy_from_slice(used);
    }
    Ok(blobs)
}

/// How many blobs data of so many bytes takes.
pub(crate) const fn blobs_of(bytes: usize) -> usize {
    bytes.saturating_add(LENGTH_BYTES).div_ceil(BLOB_ROOM_BYTES)
}

/// Reads data back from all blobs of a transaction, in order, each of 131,072 bytes.
///
/// # Errors
/// [`BlobError::NotData`] for anything that [`encode_blobs`] does not write.
pub fn decode_blobs(blobs: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, BlobError> {
    if blobs.iter().any(|blob| blob.as_ref().len() != BYTES_PER_BLOB) {
        return Err(BlobError::NotData("a blob has another length"));
    }
    let mut content = Vec::with_capacity(blobs.len() * BLOB_ROOM_BYTES);
    for element in blobs.iter().flat_map(|blob| blob.as_ref().chunks_exact(ELEMENT_BYTES)) {
        let (first, used) = element.split_first().ok_or(BlobError::NotData("an empty element"))?;
        if *first != 0 {
            return Err(BlobError::NotData("the first byte of an element is not zero"));
        }
        content.extend_from_slice(used);
    }
    let (length, rest) =
        content.split_first_chunk::<LENGTH_BYTES>().ok_or(BlobError::NotData("there is no blob"))?;
    let length = u32::from_be_bytes(*length) as usize;
    let (data, padding) = rest.split_at_checked(length).ok_or(BlobError::NotData("the data is cut off"))?;
    if padding.iter().any(|byte| *byte != 0) {
        return Err(BlobError::NotData("what follows the data is not zero"));
    }
    if (LENGTH_BYTES + length).div_ceil(BLOB_ROOM_BYTES) != blobs.len() {
        return Err(BlobError::NotData("there is a blob more than the data needs"));
    }
    Ok(data.to_vec())
}

/// Commitments and cell proofs of these blobs, as transactions carry them since Osaka. Costs for each blob one
/// multi-scalar multiplication over 4,096 points and the proofs of 128 cells: call it where blocking is allowed.
///
/// # Errors
/// [`BlobError::Kzg`] for a blob with an element above the modulus.
pub fn sidecar(blobs: Vec<Blob>) -> Result<BlobTransactionSidecarEip7594, BlobError> {
    BlobTransactionSidecarEip7594::try_from_blobs_with_settings(blobs, &SETTINGS)
        .map_err(|error| BlobError::Kzg(error.to_string()))
}

/// The versioned hash of a blob of 131,072 bytes, from its commitment: one multi-scalar multiplication over 4,096
/// points.
///
/// # Errors
/// [`BlobError::NotData`] for another length; [`BlobError::Kzg`] for a blob with an element above the modulus.
pub fn versioned_hash(blob: &[u8]) -> Result<B256, BlobError> {
    let blob: &Blob = blob.try_into().map_err(|_| BlobError::NotData("a blob has another length"))?;
    let commitment =
        SETTINGS.blob_to_kzg_commitment(blob.as_ckzg()).map_err(|error| BlobError::Kzg(error.to_string()))?;
    Ok(kzg_to_versioned_hash(commitment.as_slice()))
}

/// Blobs read in place, wherever their elements are of our form.
pub(crate) struct BlobContent<'a> {
    blobs: &'a [Bytes],
}

impl<'a> BlobContent<'a> {
    /// All blobs of a transaction, in order, each of 131,072 bytes.
    pub fn new(blobs: &'a [Bytes]) -> Self {
        Self { blobs }
    }

    /// The elements, counted through all blobs, that hold `length` bytes of the data from byte `at` on.
    pub fn elements(at: u64, length: usize) -> std::ops::RangeInclusive<u64> {
        let first = at.saturating_add(LENGTH_BYTES as u64);
        let last = first.saturating_add(length as u64).saturating_sub(1);
        first / USED_BYTES as u64..=last / USED_BYTES as u64
    }

    /// Whether there are blobs for all these elements.
    pub fn holds(&self, elements: &std::ops::RangeInclusive<u64>) -> bool {
        *elements.end() / FIELD_ELEMENTS_PER_BLOB < self.blobs.len() as u64
    }

    /// N bytes of the data from byte `at` on; `None` where the blobs are over, or an element is not of our form.
    pub fn read<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let elements = Self::elements(at, N);
        let skipped = usize::try_from((at + LENGTH_BYTES as u64) % USED_BYTES as u64).ok()?;
        let mut bytes = Vec::with_capacity(N + 2 * USED_BYTES);
        for element in elements {
            match self.element(element)?.split_first()? {
                (0, used) => bytes.extend_from_slice(used),
                _ => return None,
            }
        }
        bytes.get(skipped..)?.first_chunk().copied()
    }

    fn element(&self, element: u64) -> Option<&[u8]> {
        let (blob, place) = split_element(element)?;
        self.blobs.get(blob)?.get(place * ELEMENT_BYTES..(place + 1) * ELEMENT_BYTES)
    }
}

/// The blob that holds an element, counted through all, and its place there.
fn split_element(element: u64) -> Option<(usize, usize)> {
    let blob = usize::try_from(element / FIELD_ELEMENTS_PER_BLOB).ok()?;
    Some((blob, (element % FIELD_ELEMENTS_PER_BLOB) as usize))
}

/// An element of a blob, with what shows it to the precompile of EIP-4844.
pub(crate) struct OpenedElement {
    pub value: [u8; ELEMENT_BYTES],
    /// The blob's KZG commitment, compressed.
    pub commitment: [u8; 48],
    /// That the blob's polynomial has this value where it must.
    pub proof: [u8; 48],
}

/// Opens an element of these blobs, counted through all. Two multi-scalar multiplications over 4,096
/// points: call it where blocking is allowed.
///
/// # Errors
/// [`BlobError::NotData`] for an element that no blob holds; [`BlobError::Kzg`] for a blob that is none.
pub(crate) fn open_element(blobs: &[Bytes], element: u64) -> Result<OpenedElement, BlobError> {
    let beyond = BlobError::NotData("the blobs are over before this element");
    let (blob, place) = split_element(element).ok_or_else(|| beyond.clone())?;
    let bytes = blobs.get(blob).ok_or(beyond)?;
    let blob: &Blob =
        bytes.as_ref().try_into().map_err(|_| BlobError::NotData("a blob has another length"))?;
    let kzg = |error: c_kzg::Error| BlobError::Kzg(error.to_string());
    let point = c_kzg::Bytes32::new(point_of(place).to_be_bytes());
    let (proof, value) = SETTINGS.compute_kzg_proof(blob.as_ckzg(), &point).map_err(kzg)?;
    let commitment = SETTINGS.blob_to_kzg_commitment(blob.as_ckzg()).map_err(kzg)?;
    let mut found = [0; ELEMENT_BYTES];
    found.copy_from_slice(value.as_slice());
    Ok(OpenedElement { value: found, commitment: *commitment.to_bytes(), proof: *proof.to_bytes() })
}

/// What the precompile of EIP-4844 says of an opening; for tests.
#[cfg(test)]
pub(crate) fn verify_element(
    element: u64,
    value: [u8; ELEMENT_BYTES],
    commitment: &[u8],
    proof: &[u8],
) -> Result<bool, c_kzg::Error> {
    let place = (element % FIELD_ELEMENTS_PER_BLOB) as usize;
    let point = c_kzg::Bytes32::new(point_of(place).to_be_bytes());
    let (commitment, proof) = (c_kzg::Bytes48::from_bytes(commitment)?, c_kzg::Bytes48::from_bytes(proof)?);
    SETTINGS.verify_kzg_proof(&commitment, &point, &c_kzg::Bytes32::new(value), &proof)
}

/// Where a blob's polynomial has the value of element `place`: the 4,096th root of unity to the power of the place with
/// its 12 bits reversed (EIP-4844).
fn point_of(place: usize) -> U256 {
    let bits = FIELD_ELEMENTS_PER_BLOB.trailing_zeros();
    let reversed = (place as u64).reverse_bits() >> (u64::BITS - bits);
    let exponent = (BLS_MODULUS - U256::ONE) / U256::from(FIELD_ELEMENTS_PER_BLOB) * U256::from(reversed);
    U256::from(PRIMITIVE_ROOT).pow_mod(exponent, BLS_MODULUS)
}

#[cfg(test)]
#[path = "blobs_tests.rs"]
mod tests;

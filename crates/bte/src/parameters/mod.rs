//! The public parameters: one validated, immutable value that everything else takes by reference.

mod check;
mod file;
mod table_file;
mod tables;

use std::sync::Arc;

pub use check::CheckError;
pub use table_file::TableError;
pub use tables::DEFAULT_LINES_MAX_BYTES;
use tables::Tables;

use crate::curve::{G1Affine, G2Affine, PointError};
use crate::key::EncryptionKey;
use crate::{G2_BYTES, KeyError};

/// The largest B that is supported.
pub const MAX_BATCH: usize = 1 << 16;
/// Largest supported number of members.
pub const MAX_MEMBERS: u16 = 256;

/// Why a parameter file was refused. Whoever supplied it is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// Does not start with the magic bytes of a parameter file.
    #[error("not a parameter file")]
    Magic,
    /// A version this build does not read.
    #[error("parameter file version {0} is not supported")]
    Version(u8),
    /// B is 0 or above [`MAX_BATCH`].
    #[error("batch limit {0} is outside 1..={MAX_BATCH}")]
    MaxBatch(u32),
    /// The number of members is 0 or above [`MAX_MEMBERS`].
    #[error("{0} members, allowed are 1..={MAX_MEMBERS}")]
    Members(u16),
    /// The threshold is 0 or above the number of members.
    #[error("threshold {threshold} of {members} members")]
    Threshold {
        /// t, how many members a release needs.
        threshold: u16,
        /// n, how many members there are.
        members: u16,
    },
    /// Not as long as its own header says.
    #[error("parameter file should have {expected} bytes, has {actual}")]
    Length {
        /// Bytes that B, n and the format imply.
        expected: usize,
        /// How many bytes were given.
        actual: usize,
    },
    /// A point is not one.
    #[error("{element} {index}: {source}")]
    Point {
        /// Which list it is in.
        element: Element,
        /// Which element of that list, in file order from 0.
        index: usize,
        /// What is wrong with it.
        source: PointError,
    },
    /// The encryption key is not one.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The elements are well-formed but do not fit together.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// The lists of a parameter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// \[τ\]₁ and \[τ²\]₁.
    PowersInG1,
    /// h₁ … h₂B without h_(B+1).
    Powers,
    /// v_1^1 … v_1^B, v_2^1 …
    VerificationKeys,
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PowersInG1 => "power in G1, index",
            Self::Powers => "power in G2, index",
            Self::VerificationKeys => "verification key, index",
        })
    }
}

/// Public parameters for n members, threshold t and at most B ciphertexts in one batch:
///
/// `h_i = [τ^i]₂` for i ∈ 1..2B, i ≠ B+1; `ek = [τ^(B+1)]_T`; `[τ]₁`, `[τ²]₁`; verification keys `v_j^i = [σ_j^i]₂`.
///
/// Cheap to clone: clones share the elements and the tables that are computed from them at first use.
/// [`Parameters::decode`] checks each element by itself; call [`Parameters::check`] before trusting a file whose
/// [`Parameters::hash`] is not already trusted.
///
/// h_(B+1) must never be known to anyone: with it single ciphertexts open without the committee. Hence one τ for one
/// B, ever.
#[derive(Clone)]
pub struct Parameters {
    elements: Arc<Elements>,
    hash: [u8; 32],
    tables: Arc<Tables>,
}

/// What a parameter file holds.
pub(crate) struct Elements {
    pub(crate) max_batch: usize,
    pub(crate) members: u16,
    pub(crate) threshold: u16,
    /// \[τ\]₁, \[τ²\]₁.
    pub(crate) powers_g1: [G1Affine; 2],
    pub(crate) ek: EncryptionKey,
    /// h_i in order of i, h_(B+1) left out.
    pub(crate) h: Vec<G2Affine>,
    /// v_j^i at (j−1)·B + (i−1).
    pub(crate) verification_keys: Vec<G2Affine>,
}

impl Elements {
    fn h_point(&self, i: usize) -> Option<&G2Affine> {
        match i.cmp(&(self.max_batch + 1)) {
            std::cmp::Ordering::Less => self.h.get(i.checked_sub(1)?),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => self.h.get(i - 2),
        }
    }
}

/// Checks the three numbers that shape everything else.
pub(crate) fn check_shape(max_batch: u32, members: u16, threshold: u16) -> Result<(), ParametersError> {
    if max_batch == 0 || max_batch as usize > MAX_BATCH {
        return Err(ParametersError::MaxBatch(max_batch));
    }
    if members == 0 || members > MAX_MEMBERS {
        return Err(ParametersError::Members(members));
    }
    if threshold == 0 || threshold > members {
        return Err(ParametersError::Threshold { threshold, members });
    }
    Ok(())
}

impl Parameters {
    /// Takes elements whose shape has been checked.
    pub(crate) fn from_elements(elements: Elements) -> Self {
        let file = file::encode(&elements);
        Self::with_hash(elements, file::hash(&file))
    }

    fn with_hash(elements: Elements, hash: [u8; 32]) -> Self {
        assert_eq!(elements.h.len(), 2 * elements.max_batch - 1);
        assert_eq!(elements.verification_keys.len(), elements.max_batch * usize::from(elements.members));
        let tables = Arc::new(Tables::new(DEFAULT_LINES_MAX_BYTES));
        Self { elements: Arc::new(elements), hash, tables }
    }

    /// Reads a parameter file and checks its structure and every point (curve, subgroup) and ek (membership in GT).
    /// Costs about 0.15 ms for each of the (2 + n)·B points, in parallel.
    ///
    /// # Errors
    /// [`ParametersError`]; the file's supplier is at fault.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParametersError> {
        file::decode(bytes).map(|elements| Self::with_hash(elements, file::hash(bytes)))
    }

    /// The one canonical encoding, as the parameter file holds it.
    pub fn encode(&self) -> Vec<u8> {
        file::encode(&self.elements)
    }

    /// SHA-256(`BLINDFOLD-V1-PARAMETERS` ‖ file): what L1 registers.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// B: the most ciphertexts in one batch.
    pub fn max_batch(&self) -> usize {
        self.elements.max_batch
    }

    /// n: members are numbered 1..=n.
    pub fn members(&self) -> u16 {
        self.elements.members
    }

    /// t: members needed to release a batch.
    pub fn threshold(&self) -> u16 {
        self.elements.threshold
    }

    /// ek, with tables shared by all clones.
    pub fn encryption_key(&self) -> EncryptionKey {
        self.elements.ek.clone()
    }

    pub(crate) fn ek(&self) -> &EncryptionKey {
        &self.elements.ek
    }

    /// h_i, compressed; `None` for i = 0, B+1 and above 2B.
    pub fn h(&self, i: usize) -> Option<[u8; G2_BYTES]> {
        self.h_point(i).map(G2Affine::encode)
    }

    /// \[τ\]₁, compressed.
    pub fn tau_g1(&self) -> [u8; 48] {
        self.elements.powers_g1[0].encode()
    }

    /// \[τ²\]₁, compressed.
    pub fn tau2_g1(&self) -> [u8; 48] {
        self.elements.powers_g1[1].encode()
    }

    /// v_member^i, compressed; `None` unless 1 ≤ member ≤ n and 1 ≤ i ≤ B.
    pub fn verification_key(&self, member: u16, i: usize) -> Option<[u8; G2_BYTES]> {
        let keys = self.verification_keys(member)?;
        keys.get(i.checked_sub(1)?).map(G2Affine::encode)
    }

    pub(crate) fn h_point(&self, i: usize) -> Option<&G2Affine> {
        self.elements.h_point(i)
    }

    /// All v_member^i in order of i.
    pub(crate) fn verification_keys(&self, member: u16) -> Option<&[G2Affine]> {
        if member == 0 || member > self.elements.members {
            return None;
        }
        self.elements.verification_keys.chunks_exact(self.elements.max_batch).nth(usize::from(member) - 1)
    }

    pub(crate) fn powers_g1(&self) -> &[G1Affine; 2] {
        &self.elements.powers_g1
    }
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Parameters {}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parameters")
            .field("max_batch", &self.max_batch())
            .field("members", &self.members())
            .field("threshold", &self.threshold())
            .finish_non_exhaustive()
    }
}

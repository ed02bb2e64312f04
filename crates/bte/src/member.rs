//! A committee member's secret: its shares σ_j^i of τ^i, i = 1..B.

use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

use crate::comb::generator_times_secret;
use crate::curve::straus::sum_secret;
use crate::curve::{G1, G1Affine, G2, Scalar};
use crate::hash::sha256;
use crate::parameters::{MAX_BATCH, MAX_MEMBERS};
use crate::tags::RELEASE_BLIND;
use crate::weights::{as_scalar, random_weights};
use crate::{BatchError, CiphertextPoint, G1_BYTES, Parameters, SCALAR_BYTES, par};

const MAGIC: &[u8; 8] = b"BFMEMBER";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 15;

/// Points that one task sums up at most.
const PIECE: usize = 4096;
/// Below this many points, what all share costs more than it saves.
const SHARED_MIN: usize = 4;

/// Why bytes are not a member key. The file's supplier is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemberKeyError {
    /// Does not start with the magic bytes of a member key.
    #[error("not a member key")]
    Magic,
    /// A version this build does not read.
    #[error("member key version {0} is not supported")]
    Version(u8),
    /// Not as long as its own header says.
    #[error("member key should have {expected} bytes, has {actual}")]
    Length {
        /// Bytes that B and the format imply.
        expected: usize,
        /// How many bytes were given.
        actual: usize,
    },
    /// The number is no member's index.
    #[error("member number {0} is outside 1..={MAX_MEMBERS}")]
    Index(u16),
    /// The number of shares is 0 or too large.
    #[error("{0} shares, allowed are 1..={MAX_BATCH}")]
    MaxBatch(u32),
    /// A share is not below r.
    #[error("share {0} is not a canonical scalar")]
    Share(usize),
    /// The key does not belong to these parameters: wrong B, wrong member or wrong epoch.
    #[error("member key {index} does not belong to these parameters")]
    Mismatch {
        /// Index of the member whose key it is.
        index: u16,
    },
}

/// The secret key of member j. Printed redacted, wiped on drop; multiplications by it run in constant time.
pub struct MemberKey {
    index: u16,
    shares: Zeroizing<Vec<Scalar>>,
}

impl MemberKey {
    /// From shares of τ^1 … τ^B, for ceremonies, the dealer and conformance vectors.
    ///
    /// # Errors
    /// [`MemberKeyError`].
    pub fn from_shares(index: u16, shares: &[[u8; SCALAR_BYTES]]) -> Result<Self, MemberKeyError> {
        let count = u32::try_from(shares.len()).unwrap_or(u32::MAX);
        if index == 0 || index > MAX_MEMBERS {
            return Err(MemberKeyError::Index(index));
        }
        if shares.is_empty() || shares.len() > MAX_BATCH {
            return Err(MemberKeyError::MaxBatch(count));
        }
        let mut scalars = Zeroizing::new(Vec::with_capacity(shares.len()));
        for (position, bytes) in shares.iter().enumerate() {
            scalars.push(Scalar::from_bytes(bytes).ok_or(MemberKeyError::Share(position + 1))?);
        }
        Ok(Self { index, shares: scalars })
    }

    pub(crate) fn from_scalars(index: u16, shares: Zeroizing<Vec<Scalar>>) -> Self {
        Self { index, shares }
    }

    /// The member's index j, from 1.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// B of the dealing that the key is of.
    pub fn max_batch(&self) -> usize {
        self.shares.len()
    }

    /// `BFMEMBER` ‖ version 1 ‖ j (u16) ‖ B (u32) ‖ B × 32 bytes, big-endian. Not encrypted.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(HEADER_BYTES + self.shares.len() * SCALAR_BYTES));
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(&(self.shares.len() as u32).to_be_bytes());
        for share in self.shares.iter() {
            out.extend_from_slice(&*Zeroizing::new(share.to_bytes()));
        }
        out
    }

    /// Reads what [`MemberKey::encode`] wrote.
    ///
    /// # Errors
    /// [`MemberKeyError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MemberKeyError> {
        let short = MemberKeyError::Length { expected: HEADER_BYTES, actual: bytes.len() };
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(MemberKeyError::Magic)?;
        if magic != MAGIC {
            return Err(MemberKeyError::Magic);
        }
        let ([version], rest) = rest.split_first_chunk().ok_or(short)?;
        if *version != VERSION {
            return Err(MemberKeyError::Version(*version));
        }
        let (index, rest) = rest.split_first_chunk().ok_or(short)?;
        let (count, rest) = rest.split_first_chunk().ok_or(short)?;
        let count = u32::from_be_bytes(*count);
        if count == 0 || count as usize > MAX_BATCH {
            return Err(MemberKeyError::MaxBatch(count));
        }
        let expected = HEADER_BYTES + count as usize * SCALAR_BYTES;
        if bytes.len() != expected {
            return Err(MemberKeyError::Length { expected, actual: bytes.len() });
        }
        let (shares, _) = rest.as_chunks::<SCALAR_BYTES>();
        Self::from_shares(u16::from_be_bytes(*index), shares)
    }

    /// 1 ≤ batch ≤ B?
    pub(crate) fn check_batch(&self, batch: usize) -> Result<(), BatchError> {
        match batch {
            0 => Err(BatchError::Empty),
            _ if batch > self.max_batch() => Err(BatchError::TooLarge { batch, max: self.max_batch() }),
            _ => Ok(()),
        }
    }

    /// The first `count` shares, big-endian.
    #[cfg(feature = "reference")]
    pub(crate) fn share_bytes(&self, count: usize) -> Zeroizing<Vec<[u8; SCALAR_BYTES]>> {
        Zeroizing::new(self.shares.iter().take(count).map(|share| share.to_bytes()).collect())
    }

    /// This key's part of the release of a batch: pd_j = Σ_i σ_j^i·C_i, positions in the order given. About 500 field
    /// products for each ciphertext, in constant time, in parallel on the current pool. Give it only against a
    /// certificate.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    pub fn release_share(&self, points: &[CiphertextPoint]) -> Result<[u8; G1_BYTES], BatchError> {
        self.release_with(points, SHARED_MIN, sum_secret)
    }

    /// The same, with a function that gives Σ kᵢ·Pᵢ in constant time from a blind ([`crate::curve::straus`]) where
    /// there are at least `least` points.
    pub(crate) fn release_with(
        &self,
        points: &[CiphertextPoint],
        least: usize,
        sum: impl Fn(&[G1Affine], &[Scalar], &G1) -> G1 + Sync + Send,
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.check_batch(points.len())?;
        let points: Vec<G1Affine> = points.iter().map(|point| point.0).collect();
        let mut sums = if points.len() < least {
            points.iter().zip(self.shares.iter()).map(|(point, k)| G1::from(point).mul_secret(k)).collect()
        } else {
            let blind = Zeroizing::new(self.blind());
            par::pieces(points.len(), PIECE, 1, |range| {
                vec![sum(&points[range.clone()], &self.shares[range], &blind)]
            })
        };
        let total = sums.iter().fold(G1::default(), |total, term| total.add(term));
        sums.zeroize();
        Ok(total.to_affine().encode())
    }

    /// A point that nobody else knows.
    fn blind(&self) -> G1 {
        let share = Zeroizing::new(self.shares[0].to_bytes());
        let seed = Zeroizing::new(sha256(&[RELEASE_BLIND, &*share]));
        generator_times_secret(&Zeroizing::new(Scalar::reduce(&*seed)))
    }

    /// This key's part of the singleton release of one ciphertext: σ_j^1·C, in constant time. Give at most one for each
    /// malformed ciphertext of a certified batch.
    pub fn singleton_share(&self, point: &CiphertextPoint) -> [u8; G1_BYTES] {
        G1::from(&point.0).mul_secret(&self.shares[0]).to_affine().encode()
    }

    /// Does this key belong to these parameters, v_j^i = \[σ_j^i\]₂ for all i? With random weights; a member runs it at
    /// start-up.
    ///
    /// # Errors
    /// [`MemberKeyError::Mismatch`].
    pub fn check(
        &self,
        parameters: &Parameters,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), MemberKeyError> {
        let mismatch = MemberKeyError::Mismatch { index: self.index };
        let keys = parameters.verification_keys(self.index).ok_or(mismatch)?;
        if keys.len() != self.shares.len() {
            return Err(mismatch);
        }
        let weights = random_weights(keys.len(), rng);
        let mut sum = Zeroizing::new(Scalar::ZERO);
        for (share, weight) in self.shares.iter().zip(&weights) {
            *sum = sum.add(&share.mul(&as_scalar(weight)));
        }
        if G2::generator().mul(&sum) == G2::multi_scalar(keys, &weights) { Ok(()) } else { Err(mismatch) }
    }
}

impl std::fmt::Debug for MemberKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemberKey({}, redacted)", self.index)
    }
}

//! The release of a batch: pd = Σ_i \[τ^i\]·C_i, combined from any t shares.

use rand_core::CryptoRng;

use crate::curve::weighted::{DigitWeight, weight_as_scalar, weighted_sums};
use crate::curve::{G1, G1Affine, G2Affine, Gt, PointError, miller_product};
use crate::lagrange::{CombineError, combine};
use crate::weights::{failing, random_digit_weights};
use crate::{BatchError, CiphertextPoint, G1_BYTES, Parameters, SCALAR_BYTES, par};

/// Pairs whose Miller loops share their squarings; `blst` takes 16 at a time.
const PAIRS_CHUNK: usize = 16;

/// The combined release of one batch: 48 bytes that, with the pre-decryption, open every well-formed ciphertext of the
/// batch. Not proved right by itself: one ciphertext that opens proves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Release(pub(crate) G1Affine);

impl Release {
    /// Decodes a compressed point of the subgroup.
    ///
    /// # Errors
    /// [`PointError`]: the sender's fault.
    pub fn from_bytes(bytes: &[u8; G1_BYTES]) -> Result<Self, PointError> {
        G1Affine::decode(bytes).map(Self)
    }

    /// The compressed encoding in G1, 48 bytes.
    pub fn to_bytes(&self) -> [u8; G1_BYTES] {
        self.0.encode()
    }
}

impl std::fmt::Debug for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Release(")?;
        for byte in self.to_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Why one member's share was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Not a member's number; the caller's fault.
    #[error("member {member} is not one of 1..={members}")]
    UnknownMember {
        /// The index that was given.
        member: u16,
        /// n, how many members there are.
        members: u16,
    },
    /// No ciphertexts, or more than B; the caller's fault.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Not a point: the member's fault.
    #[error("share of member {member}: {source}")]
    Point {
        /// Index of the member who sent it, from 1.
        member: u16,
        /// What is wrong with it.
        source: PointError,
    },
    /// A point, but not this member's share of this batch: the member lies.
    #[error("share of member {member} does not verify")]
    Mismatch {
        /// Index of the member who sent it, from 1.
        member: u16,
    },
}

impl Parameters {
    pub(crate) fn check_batch(&self, batch: usize) -> Result<(), BatchError> {
        match batch {
            0 => Err(BatchError::Empty),
            _ if batch > self.max_batch() => Err(BatchError::TooLarge { batch, max: self.max_batch() }),
            _ => Ok(()),
        }
    }

    /// Combines shares of distinct members into the release of their batch; takes the first t of those given. Cheap:
    /// the shares are not verified. If afterwards no ciphertext opens, [`Parameters::invalid_shares`] names the bad shares.
    ///
    /// # Errors
    /// [`CombineError`].
    pub fn combine(&self, shares: &[(u16, [u8; G1_BYTES])]) -> Result<Release, CombineError> {
        combine(self, shares).map(Release)
    }

    /// Verifies one member's share: e(pd_j, g2) = Π_i e(C_i, v_j^i). Costs one Miller loop for each ciphertext; one
    /// equation needs no randomness.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn verify_share(
        &self,
        member: u16,
        points: &[CiphertextPoint],
        share: &[u8; G1_BYTES],
    ) -> Result<(), ShareError> {
        self.check_batch(points.len())?;
        let share = self.decode_share(member, share)?;
        if self.shares_hold(points, &[(member, share)], &[]) {
            Ok(())
        } else {
            Err(ShareError::Mismatch { member })
        }
    }

    /// The members among `shares` whose share of the batch is wrong, including those with undecodable points and
    /// unknown numbers, in the order given. All honest costs one check: for each ciphertext a Miller loop, and in G2 33
    /// doublings and about 26 additions for each member but one. A faulty one among n members adds at most 2·log₂ n
    /// checks of ever fewer members.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    pub fn invalid_shares(
        &self,
        rng: &mut (impl CryptoRng + ?Sized),
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        self.check_batch(points.len())?;
        let decoded: Vec<Option<(u16, G1Affine)>> = shares
            .iter()
            .map(|(member, bytes)| self.decode_share(*member, bytes).ok().map(|share| (*member, share)))
            .collect();
        let sound: Vec<usize> = (0..shares.len()).filter(|i| decoded[*i].is_some()).collect();
        let candidates: Vec<(u16, G1Affine)> = decoded.iter().flatten().copied().collect();
        let wrong = failing(candidates.len(), |group| {
            let group: Vec<(u16, G1Affine)> = group.iter().map(|i| candidates[*i]).collect();
            self.shares_hold(points, &group, &random_digit_weights(group.len() - 1, rng))
        });
        let mut lies: Vec<bool> = decoded.iter().map(Option::is_none).collect();
        for index in wrong {
            lies[sound[index]] = true;
        }
        Ok(shares.iter().zip(lies).filter(|(_, lies)| *lies).map(|((member, _), _)| *member).collect())
    }

    pub(crate) fn decode_share(&self, member: u16, share: &[u8; G1_BYTES]) -> Result<G1Affine, ShareError> {
        if self.verification_keys(member).is_none() {
            return Err(ShareError::UnknownMember { member, members: self.members() });
        }
        G1Affine::decode(share).map_err(|source| ShareError::Point { member, source })
    }

    /// e(Σ_j w_j·pd_j, g2) = Π_i e(C_i, Σ_j w_j·v_j^i), members known, at least one; the first one's weight is 1.
    fn shares_hold(
        &self,
        points: &[CiphertextPoint],
        shares: &[(u16, G1Affine)],
        weights: &[DigitWeight],
    ) -> bool {
        let keys: Vec<&[G2Affine]> =
            shares.iter().filter_map(|(member, _)| self.verification_keys(*member)).collect();
        let positions: Vec<usize> = (0..points.len()).collect();
        let factors = par::map_chunks(&positions, PAIRS_CHUNK, |positions| {
            let row = |i: &usize| keys.iter().map(|keys| keys[*i]).collect();
            let keys = weighted_sums(&positions.iter().map(row).collect::<Vec<_>>(), weights);
            let pairs: Vec<_> = positions.iter().map(|i| points[*i].0).zip(keys).collect();
            vec![miller_product(&pairs)]
        });
        let scalars: Vec<[u8; SCALAR_BYTES]> =
            weights.iter().map(|weight| weight_as_scalar(weight).to_le_bytes()).collect();
        let weighted: Vec<G1Affine> = shares[1..].iter().map(|(_, share)| *share).collect();
        let sum = G1::multi_scalar(&weighted, &scalars).add_affine(&shares[0].1).to_affine();
        let start = miller_product(&[(sum.neg(), G2Affine::generator())]);
        factors.iter().fold(start, |product: Gt, factor| product.mul(factor)).easy_part().hard_part().is_one()
    }
}

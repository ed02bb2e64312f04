//! Checking the releases of batches that are open already.
//!
//! The message of a well-formed ciphertext gives its randomness k, and C = \[k\]₁. So the release pd = Σᵢ \[τ^i\]·Cᵢ of a batch
//! whose ciphertexts are open satisfies
//! ```text
//! e(pd, g2) = e(g1, Σᵢ kᵢ·h_i) · Πⱼ e(Cⱼ, h_j)      i: open, j: malformed
//! ```
//! and nothing else does. One sum in G2 takes the place of a Miller loop for each ciphertext. Several batches are checked
//! together, each to a random weight: the points h_i are the same, so that their scalars add up. A wrong release passes with
//! probability 2^−128.

use std::fmt;

use rand_core::CryptoRng;

use crate::curve::{G1, G1Affine, G2, G2Affine, Scalar, miller_product};
use crate::hash::randomness;
use crate::weights::{Weight, as_scalar, failing, random_weights};
use crate::{BatchError, CiphertextPoint, G1_BYTES, Parameters, Release, SessionKey, par};

/// Pairs whose Miller loops share their squarings.
const PAIRS_CHUNK: usize = 16;
/// Points that one task sums up at most.
const SUM_PIECE: usize = 4_096;

/// What is known of a ciphertext.
#[derive(Clone, Copy)]
pub enum KnownItem<'a> {
    /// It is well-formed: this hint opened it to this message ([`crate::Backend::open_hints`]). Nothing of that is checked again.
    Open {
        /// The associated data.
        ad: &'a [u8; 32],
        /// The hint.
        key: &'a SessionKey,
        /// The message, padding included.
        message: &'a [u8],
    },
    /// It is malformed, or whether it is does not matter.
    Closed(CiphertextPoint),
}

/// Without what it opened to: nobody's message gets into a log this way.
impl fmt::Debug for KnownItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open { .. } => "Open",
            Self::Closed(_) => "Closed",
        })
    }
}

/// A batch whose release is checked.
#[derive(Clone, Debug)]
pub struct KnownBatch<'a> {
    /// What is said to be its release.
    pub release: [u8; G1_BYTES],
    /// Its ciphertexts in order.
    pub items: Vec<KnownItem<'a>>,
}

/// The same, with what the check needs.
struct Batch {
    release: G1Affine,
    /// kᵢ, or 0 where it is not known.
    scalars: Vec<Scalar>,
    /// Position, from 0, and point of those where it is not.
    closed: Vec<(usize, G1Affine)>,
}

impl Batch {
    fn new(release: G1Affine, items: &[KnownItem<'_>]) -> Self {
        let scalar = |item: &KnownItem<'_>| match item {
            KnownItem::Open { ad, key, message } => randomness(key.as_bytes(), ad, message),
            KnownItem::Closed(_) => Scalar::ZERO,
        };
        let closed = items.iter().enumerate().filter_map(|(position, item)| match item {
            KnownItem::Open { .. } => None,
            KnownItem::Closed(point) => Some((position, point.0)),
        });
        Self { release, closed: closed.collect(), scalars: par::map(items.len(), |i| scalar(&items[i])) }
    }
}

impl Parameters {
    /// Which of these batches have another release than is said, by index. All right costs for the longest one a sum of
    /// products in G2, in all a hash for each message and a Miller loop for each position at which something is closed. A
    /// wrong one among n adds at most 2·log₂ n sums.
    ///
    /// # Errors
    /// [`BatchError::Empty`], [`BatchError::TooLarge`].
    pub fn wrong_releases(
        &self,
        rng: &mut (impl CryptoRng + ?Sized),
        batches: &[KnownBatch<'_>],
    ) -> Result<Vec<usize>, BatchError> {
        batches.iter().try_for_each(|batch| self.check_batch(batch.items.len()))?;
        let decoded: Vec<Option<Batch>> = batches
            .iter()
            .map(|batch| Some(Batch::new(Release::from_bytes(&batch.release).ok()?.0, &batch.items)))
            .collect();
        let sound: Vec<usize> = (0..batches.len()).filter(|i| decoded[*i].is_some()).collect();
        let candidates: Vec<&Batch> = decoded.iter().flatten().collect();
        let wrong = failing(candidates.len(), |group| {
            let group: Vec<&Batch> = group.iter().map(|i| candidates[*i]).collect();
            self.releases_hold(&group, &random_weights(group.len(), rng))
        });
        let mut lies: Vec<bool> = decoded.iter().map(Option::is_none).collect();
        for index in wrong {
            lies[sound[index]] = true;
        }
        Ok((0..batches.len()).filter(|i| lies[*i]).collect())
    }

    /// e(Σ w·pd, g2) = e(g1, Σᵢ (Σ w·kᵢ)·h_i) · Πᵢ e(Σ w·Cᵢ, h_i).
    fn releases_hold(&self, batches: &[&Batch], weights: &[Weight]) -> bool {
        let longest = batches.iter().map(|batch| batch.scalars.len()).max().unwrap_or(0);
        let mut scalars = vec![Scalar::ZERO; longest];
        let mut closed: Vec<(Vec<G1Affine>, Vec<Weight>)> = vec![Default::default(); longest];
        for (batch, weight) in batches.iter().zip(weights) {
            let factor = as_scalar(weight);
            for (sum, scalar) in scalars.iter_mut().zip(&batch.scalars) {
                *sum = sum.add(&factor.mul(scalar));
            }
            for (position, point) in &batch.closed {
                closed[*position].0.push(*point);
                closed[*position].1.push(*weight);
            }
        }
        let h: Vec<G2Affine> = (1..=longest).filter_map(|i| self.h_point(i).copied()).collect();
        let sums = par::pieces(longest, SUM_PIECE, 1, |range| {
            let scalars: Vec<[u8; 32]> = scalars[range.clone()].iter().map(|k| k.to_le_bytes()).collect();
            vec![G2::multi_scalar(&h[range], &scalars)]
        });
        let sum = sums.iter().fold(G2::default(), |total, sum| total.add(sum)).to_affine();
        let releases: Vec<G1Affine> = batches.iter().map(|batch| batch.release).collect();
        let release = G1::multi_scalar(&releases, weights).to_affine();
        let start = miller_product(&[(release.neg(), G2Affine::generator()), (G1Affine::generator(), sum)]);
        let positions: Vec<usize> = (0..longest).filter(|i| !closed[*i].0.is_empty()).collect();
        let factors = par::map_chunks(&positions, PAIRS_CHUNK, |positions| {
            let sum = |i: &usize| G1::multi_scalar(&closed[*i].0, &closed[*i].1);
            let points = G1::to_affine_batch(&positions.iter().map(sum).collect::<Vec<_>>());
            let pairs: Vec<_> = points.into_iter().zip(positions.iter().map(|i| h[*i])).collect();
            vec![miller_product(&pairs)]
        });
        factors.iter().fold(start, |product, factor| product.mul(factor)).easy_part().hard_part().is_one()
    }
}

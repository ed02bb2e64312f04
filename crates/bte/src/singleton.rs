//! Singleton releases: proof that a ciphertext is malformed.
//!
//! A helper may not simply claim that ciphertext m does not decrypt. The committee releases pd'_m = \[τ\]·C_m (the
//! release of a batch that holds m alone, which says nothing that the public release of its batch does not); anyone
//! checks e(pd'_m, g2) = e(C_m, h₁), computes z_m = e(pd'_m, h_B) and sees the decryption fail.

use rand_core::CryptoRng;

use crate::bulk::{Bulk, ScalarBulk};
use crate::curve::{G1Affine, G2Affine, PointError, Scalar, miller_product};
use crate::lagrange::{CombineError, combine};
use crate::opening::{Opening, open};
use crate::parameters::Parameters;
use crate::release::ShareError;
use crate::weights::{failing, random_weights};
use crate::{Ciphertext, CiphertextPoint, G1_BYTES, par};

/// Why a singleton release was refused; whoever published it is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SingletonError {
    /// Not a point of the group.
    #[error("singleton release: {0}")]
    Point(#[from] PointError),
    /// A point, but not \[τ\]·C.
    #[error("singleton release does not belong to this ciphertext")]
    Mismatch,
}

impl Parameters {
    /// Combines members' singleton shares of one ciphertext into pd' = \[τ\]·C; takes the first t of those given.
    ///
    /// # Errors
    /// [`CombineError`].
    pub fn combine_singletons(
        &self,
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<[u8; G1_BYTES], CombineError> {
        combine(self, shares).map(|point| point.encode())
    }

    /// Verifies one member's singleton share: e(share, g2) = e(C, v_j^1).
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn verify_singleton_share(
        &self,
        member: u16,
        point: &CiphertextPoint,
        share: &[u8; G1_BYTES],
    ) -> Result<(), ShareError> {
        let share = self.decode_share(member, share)?;
        let holds = self.verification_keys(member).is_some_and(|keys| relates(&share, &point.0, &keys[0]));
        if holds { Ok(()) } else { Err(ShareError::Mismatch { member }) }
    }

    /// Verifies a singleton release: e(pd', g2) = e(C, h₁). About 0.7 ms.
    ///
    /// # Errors
    /// [`SingletonError`].
    pub fn verify_singleton(
        &self,
        point: &CiphertextPoint,
        pd: &[u8; G1_BYTES],
    ) -> Result<(), SingletonError> {
        let pd = G1Affine::decode(pd)?;
        if relates(&pd, &point.0, self.first_power()) { Ok(()) } else { Err(SingletonError::Mismatch) }
    }

    /// Verifies many singleton releases with random weights, one result each in order; gives exactly what
    /// [`Parameters::verify_singleton`] gives for each. All right costs two pairings in all.
    pub fn verify_singletons(
        &self,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        self.verify_singletons_with(&ScalarBulk, rng, items)
    }

    /// The same with a backend's arithmetic.
    pub(crate) fn verify_singletons_with(
        &self,
        bulk: &impl Bulk,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        let encodings: Vec<&[u8; G1_BYTES]> = items.iter().map(|(_, pd)| pd).collect();
        let decoded = bulk.decode(&encodings);
        let sound: Vec<usize> = (0..items.len()).filter(|i| decoded[*i].is_ok()).collect();
        let releases: Vec<G1Affine> = decoded.iter().flatten().copied().collect();
        let wrong = failing(sound.len(), |group| {
            let weights = random_weights(group.len(), rng);
            let pds: Vec<G1Affine> = group.iter().map(|i| releases[*i]).collect();
            let headers: Vec<G1Affine> = group.iter().map(|i| items[sound[*i]].0.0).collect();
            let starts = [Scalar::random(rng), Scalar::random(rng)];
            let (pd, header) = par::join(
                || bulk.weighted_sum(&pds, &weights, &starts[0]).to_affine(),
                || bulk.weighted_sum(&headers, &weights, &starts[1]).to_affine(),
            );
            relates(&pd, &header, self.first_power())
        });
        let mut results: Vec<Result<(), SingletonError>> =
            decoded.into_iter().map(|point| point.map(|_| ()).map_err(SingletonError::from)).collect();
        for index in wrong {
            results[sound[index]] = Err(SingletonError::Mismatch);
        }
        results
    }

    /// Decrypts one ciphertext with its singleton release: z = e(pd', h_B).
    ///
    /// [`Opening::WellFormed`] proves itself. **[`Opening::Malformed`] means something only if the release has passed
    /// [`Parameters::verify_singleton`]**: any other point fails to decrypt, too.
    ///
    /// # Errors
    /// [`SingletonError::Point`].
    pub fn open_singleton(
        &self,
        ad: &[u8; 32],
        ciphertext: &Ciphertext,
        pd: &[u8; G1_BYTES],
    ) -> Result<Opening, SingletonError> {
        let pd = G1Affine::decode(pd)?;
        let blinding = self.miller_loop_h(self.max_batch(), &pd).easy_part().hard_part();
        Ok(open(self.ek(), ad, ciphertext, &blinding))
    }

    fn first_power(&self) -> &G2Affine {
        // Every parameter set has h₁: B ≥ 1, and h₂ is the first that can be missing.
        match self.h_point(1) {
            Some(point) => point,
            None => unreachable!("parameters without h₁"),
        }
    }
}

/// e(left, g2) = e(right, key)?
fn relates(left: &G1Affine, right: &G1Affine, key: &G2Affine) -> bool {
    miller_product(&[(left.neg(), G2Affine::generator()), (*right, *key)]).easy_part().hard_part().is_one()
}

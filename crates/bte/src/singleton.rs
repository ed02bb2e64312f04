//! Singleton releases: proof that a ciphertext is malformed.
//!
//! A helper may not simply claim that ciphertext m does not decrypt. The committee releases pd'_m = \[τ\]·C_m (the
//! release of a batch that holds m alone, which says nothing that the public release of its batch does not); anyone
//! checks e(pd'_m, g2) = e(C_m, h₁), computes z_m = e(pd'_m, h_B) and sees the decryption fail.

use rand_core::CryptoRng;

use crate::bulk::{Bulk, ScalarBulk};
use crate::curve::{G1Affine, G2Affine, Gt, PointError, Scalar, miller_product};
use crate::lagrange::{CombineError, combine};
use crate::opening::{Opening, open, open_all};
use crate::parameters::Parameters;
use crate::release::ShareError;
use crate::weights::{failing, random_weights};
use crate::{Ciphertext, CiphertextPoint, G1_BYTES, par};

/// A ciphertext that is claimed to be malformed: associated data, ciphertext, singleton release.
pub type SingletonItem<'a> = (&'a [u8; 32], &'a Ciphertext, &'a [u8; G1_BYTES]);

/// Releases that one task opens: they share field inversions.
const PIECE: usize = 64;

/// Why a singleton release was refused; whoever published it is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SingletonError {
    /// Not a point of the group.
    #[error("singleton release: {0}")]
    Point(#[from] PointError),
    /// A point, but not \[τ\]·C.
    #[error("singleton release does not belong to this ciphertext")]
    Mismatch,
    /// The ciphertext's header is no point; the sender's fault, and no accepted ciphertext's.
    #[error("ciphertext header: {0}")]
    Header(PointError),
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
        let pairs = items.iter().zip(decoded);
        let pairs: Vec<Pair> = pairs.map(|((point, _), pd)| Ok((point.0, pd?))).collect();
        self.related(bulk, rng, &pairs).into_iter().map(|result| result.map(|_| ())).collect()
    }

    /// The releases of the pairs that hold; with random weights, all right ones at once.
    fn related(
        &self,
        bulk: &impl Bulk,
        rng: &mut (impl CryptoRng + ?Sized),
        pairs: &[Pair],
    ) -> Vec<Result<G1Affine, SingletonError>> {
        let sound: Vec<usize> = (0..pairs.len()).filter(|i| pairs[*i].is_ok()).collect();
        let (headers, releases): (Vec<G1Affine>, Vec<G1Affine>) = pairs.iter().flatten().copied().unzip();
        let wrong = failing(sound.len(), |group| {
            let weights = random_weights(group.len(), rng);
            let pds: Vec<G1Affine> = group.iter().map(|i| releases[*i]).collect();
            let headers: Vec<G1Affine> = group.iter().map(|i| headers[*i]).collect();
            let starts = [Scalar::random(rng), Scalar::random(rng)];
            let (pd, header) = par::join(
                || bulk.weighted_sum(&pds, &weights, &starts[0]).to_affine(),
                || bulk.weighted_sum(&headers, &weights, &starts[1]).to_affine(),
            );
            relates(&pd, &header, self.first_power())
        });
        let mut results: Vec<Result<G1Affine, SingletonError>> =
            pairs.iter().map(|pair| pair.map(|(_, release)| release)).collect();
        for index in wrong {
            results[sound[index]] = Err(SingletonError::Mismatch);
        }
        results
    }

    /// Verifies singleton releases and decrypts what the right ones belong to, one result each in order: exactly what
    /// [`Parameters::verify_singleton`] and [`Parameters::open_singleton`] give for each. Every point is decoded once;
    /// a right release costs a pairing and, unless its header is the one encrypted to, no more than a share of an
    /// addition beside.
    pub fn open_singletons(
        &self,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[SingletonItem<'_>],
    ) -> Vec<Result<Opening, SingletonError>> {
        self.open_singletons_with(&ScalarBulk, rng, items, |releases, ciphertexts| {
            par::pieces(releases.len(), PIECE, 1, |range| {
                let of = |pd: &G1Affine| self.miller_loop_h(self.max_batch(), pd).easy_part().hard_part();
                let blindings: Vec<Gt> = releases[range.clone()].iter().map(of).collect();
                open_all(self.ek(), &ciphertexts[range], &blindings)
            })
        })
    }

    /// The same with a backend's arithmetic; `open` decrypts ciphertexts with their verified releases.
    pub(crate) fn open_singletons_with(
        &self,
        bulk: &impl Bulk,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[SingletonItem<'_>],
        open: impl FnOnce(&[G1Affine], &[(&[u8; 32], &Ciphertext)]) -> Vec<Opening>,
    ) -> Vec<Result<Opening, SingletonError>> {
        let encodings: Vec<&[u8; G1_BYTES]> =
            items.iter().flat_map(|(_, ciphertext, release)| [&ciphertext.c, *release]).collect();
        let points = bulk.decode(&encodings);
        let pair = |i: usize| {
            let header = points[2 * i].and_then(CiphertextPoint::new).map_err(SingletonError::Header)?;
            Ok((header.0, points[2 * i + 1]?))
        };
        let pairs: Vec<Pair> = (0..items.len()).map(pair).collect();
        let releases = self.related(bulk, rng, &pairs);
        let right = items.iter().zip(&releases).filter(|(_, release)| release.is_ok());
        let right: Vec<(&[u8; 32], &Ciphertext)> =
            right.map(|((ad, ciphertext, _), _)| (*ad, *ciphertext)).collect();
        let verified: Vec<G1Affine> = releases.iter().flatten().copied().collect();
        let mut openings = open(&verified, &right).into_iter();
        let mut next = || match openings.next() {
            Some(opening) => opening,
            None => unreachable!("every verified release opens its ciphertext"),
        };
        releases.into_iter().map(|release| release.map(|_| next())).collect()
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

/// A header and the release that is claimed to be its singleton's.
type Pair = Result<(G1Affine, G1Affine), SingletonError>;

/// e(left, g2) = e(right, key)?
fn relates(left: &G1Affine, right: &G1Affine, key: &G2Affine) -> bool {
    miller_product(&[(left.neg(), G2Affine::generator()), (*right, *key)]).easy_part().hard_part().is_one()
}

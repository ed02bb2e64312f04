//! Singleton releases: proof that a ciphertext is malformed.
//!
//! A hint publisher may not simply claim that ciphertext m does not decrypt. The committee releases pd'_m = \[τ\]·C_m (the
//! release of a batch that holds m alone, which says nothing that the public release of its batch does not); anyone
//! checks e(pd'_m, g2) = e(C_m, h₁), computes z_m = e(pd'_m, h_B) and sees the decryption fail.

use rand_core::CryptoRng;

use crate::bulk::{Bulk, ScalarBulk};
use crate::curve::{G1Affine, G2Affine, Gt, PointError, Scalar, miller_product};
use crate::lagrange::{CombineError, combine};
use crate::opening::{Opening, open, open_all};
use crate::parameters::Parameters;
use crate::release::ShareError;
use crate::stated::{self, Blinding, STATED_MIN};
use crate::weights::{Weight, failing, random_weights};
use crate::{Ciphertext, CiphertextPoint, G1_BYTES, par};

/// A ciphertext that is claimed to be malformed.
#[derive(Clone, Copy, Debug)]
pub struct SingletonItem<'a> {
    /// Associated data of the ciphertext: hash of its envelope header.
    pub ad: &'a [u8; 32],
    /// The ciphertext that is claimed to be malformed.
    pub ciphertext: &'a Ciphertext,
    /// pd' = τ·C, compressed.
    pub release: &'a [u8; G1_BYTES],
    /// e(pd', h_B) as the release's publisher states it. Right ones make many items several times as cheap: they are
    /// looked at where there are 128, all together.
    pub blinding: Option<&'a Blinding>,
}

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
    /// A blinding factor that is stated, of this release or another one, is not the release's.
    #[error("a stated blinding factor is not that of its singleton release")]
    Blinding,
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
        self.open_singletons_with(&ScalarBulk, rng, items, &ScalarOpener(self))
    }

    /// The same with a backend's arithmetic.
    pub(crate) fn open_singletons_with(
        &self,
        bulk: &impl Bulk,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[SingletonItem<'_>],
        opener: &impl Opener,
    ) -> Vec<Result<Opening, SingletonError>> {
        let encodings: Vec<&[u8; G1_BYTES]> =
            items.iter().flat_map(|item| [&item.ciphertext.c, item.release]).collect();
        let points = bulk.decode(&encodings);
        let pair = |i: usize| {
            let header = points[2 * i].and_then(CiphertextPoint::new).map_err(SingletonError::Header)?;
            Ok((header.0, points[2 * i + 1]?))
        };
        let pairs: Vec<Pair> = (0..items.len()).map(pair).collect();
        let releases = self.related(bulk, rng, &pairs);
        let right: Vec<(&SingletonItem<'_>, G1Affine)> =
            items.iter().zip(&releases).filter_map(|(item, release)| Some((item, release.ok()?))).collect();
        let (stated, others): (Vec<usize>, Vec<usize>) =
            (0..right.len()).partition(|i| right[*i].0.blinding.is_some());
        let checked = stated.len() >= STATED_MIN;
        let one_by_one: Vec<usize> = if checked { others } else { (0..right.len()).collect() };
        let (ciphertexts, verified): (Vec<_>, Vec<G1Affine>) =
            one_by_one.iter().map(|i| ((right[*i].0.ad, right[*i].0.ciphertext), right[*i].1)).unzip();
        let opened = opener.open(&verified, &ciphertexts).into_iter().map(Ok);
        let mut opened: Vec<(usize, Result<Opening, SingletonError>)> =
            one_by_one.into_iter().zip(opened).collect();
        if checked {
            let together: Vec<_> = stated.iter().map(|i| right[*i]).collect();
            match self.open_stated(bulk, rng, &together, opener) {
                Some(openings) => opened.extend(stated.into_iter().zip(openings.into_iter().map(Ok))),
                None => opened.extend(stated.into_iter().map(|i| (i, Err(SingletonError::Blinding)))),
            }
        }
        opened.sort_unstable_by_key(|(i, _)| *i);
        let mut openings = opened.into_iter().map(|(_, opening)| opening);
        let mut next = || match openings.next() {
            Some(opening) => opening,
            None => {
                unreachable!("every verified release opens its ciphertext, or its blinding factor is wrong")
            }
        };
        releases.into_iter().map(|release| release.and_then(|_| next())).collect()
    }

    /// Opens what has a verified release and a stated blinding factor; `None` where one of those is wrong.
    fn open_stated(
        &self,
        bulk: &impl Bulk,
        rng: &mut (impl CryptoRng + ?Sized),
        items: &[(&SingletonItem<'_>, G1Affine)],
        opener: &impl Opener,
    ) -> Option<Vec<Opening>> {
        let weights = random_weights(items.len(), rng);
        let releases: Vec<G1Affine> = items.iter().map(|(_, release)| *release).collect();
        let sum = bulk.weighted_sum(&releases, &weights, &Scalar::random(rng)).to_affine();
        let expected = self.singleton_blinding(&sum);
        let stated: Vec<&Blinding> = items.iter().filter_map(|(item, _)| item.blinding).collect();
        let ciphertexts: Vec<_> = items.iter().map(|(item, _)| (item.ad, item.ciphertext)).collect();
        opener.open_stated(&stated, &weights, &expected, &ciphertexts)
    }

    /// e(pd', h_B) of a singleton release, to be stated beside it. A pairing.
    ///
    /// # Errors
    /// [`SingletonError::Point`].
    pub fn blind_singleton(&self, pd: &[u8; G1_BYTES]) -> Result<Blinding, SingletonError> {
        Ok(Blinding::new(&self.singleton_blinding(&G1Affine::decode(pd)?)))
    }

    fn singleton_blinding(&self, pd: &G1Affine) -> Gt {
        self.miller_loop_h(self.max_batch(), pd).easy_part().hard_part()
    }

    /// [`Parameters::open_singleton`], and the blinding factor to be stated beside the release.
    ///
    /// # Errors
    /// [`SingletonError::Point`].
    pub fn open_and_blind_singleton(
        &self,
        ad: &[u8; 32],
        ciphertext: &Ciphertext,
        pd: &[u8; G1_BYTES],
    ) -> Result<(Opening, Blinding), SingletonError> {
        let blinding = self.singleton_blinding(&G1Affine::decode(pd)?);
        Ok((open(self.ek(), ad, ciphertext, &blinding), Blinding::new(&blinding)))
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
        let blinding = self.singleton_blinding(&pd);
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

/// How a backend decrypts ciphertexts, one after the other, with verified singleton releases.
pub(crate) trait Opener: Sync {
    /// A pairing each.
    fn open(&self, releases: &[G1Affine], ciphertexts: &[(&[u8; 32], &Ciphertext)]) -> Vec<Opening>;

    /// With stated blinding factors; `None` where they do not all lie in GT or, to these weights, give `expected`.
    fn open_stated(
        &self,
        stated: &[&Blinding],
        weights: &[Weight],
        expected: &Gt,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Option<Vec<Opening>>;
}

struct ScalarOpener<'a>(&'a Parameters);

impl Opener for ScalarOpener<'_> {
    fn open(&self, releases: &[G1Affine], ciphertexts: &[(&[u8; 32], &Ciphertext)]) -> Vec<Opening> {
        par::pieces(releases.len(), PIECE, 1, |range| {
            let of = |pd: &G1Affine| self.0.singleton_blinding(pd);
            let blindings: Vec<Gt> = releases[range.clone()].iter().map(of).collect();
            open_all(self.0.ek(), &ciphertexts[range], &blindings)
        })
    }

    fn open_stated(
        &self,
        stated: &[&Blinding],
        weights: &[Weight],
        expected: &Gt,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Option<Vec<Opening>> {
        let (elements, blindings) = stated::elements(stated)?;
        stated::holds(&elements, weights, expected).then(|| {
            par::pieces(blindings.len(), PIECE, 1, |range| {
                open_all(self.0.ek(), &ciphertexts[range.clone()], &blindings[range])
            })
        })
    }
}

/// A header and the release that is claimed to be its singleton's.
type Pair = Result<(G1Affine, G1Affine), SingletonError>;

/// e(left, g2) = e(right, key)?
fn relates(left: &G1Affine, right: &G1Affine, key: &G2Affine) -> bool {
    miller_product(&[(left.neg(), G2Affine::generator()), (*right, *key)]).easy_part().hard_part().is_one()
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{Backend, auto, dealer};

    type Owned = ([u8; 32], Ciphertext, [u8; G1_BYTES], Option<Blinding>);

    /// Right blinding factors, of all or of some, change no result; a wrong one is refused with all that are stated.
    #[test]
    fn stated_blindings_are_right_or_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let (parameters, keys) = dealer::deal(2, 1, 1, &mut rng).expect("a shape");
        let ek = parameters.encryption_key();
        let count = STATED_MIN + 5;
        let made: Vec<([u8; 32], Ciphertext, [u8; G1_BYTES])> = (0..count)
            .map(|i| {
                let ad = [i as u8; 32];
                let (mut ciphertext, ..) = ek.encrypt(&ad, &[7; 20], b"", &mut rng).expect("a message");
                let share = keys[0].singleton_share(&ciphertext.header().expect("a point"));
                let release = parameters.combine_singletons(&[(1, share)]).expect("enough");
                // One in ten is well-formed.
                ciphertext.d[0] ^= u8::from(i % 10 != 0);
                (ad, ciphertext, release)
            })
            .collect();
        let blindings: Vec<Blinding> =
            made.iter().map(|(.., release)| parameters.blind_singleton(release).expect("a point")).collect();
        let mut one_wrong = blindings.clone();
        one_wrong[1] = blindings[2];
        let mut not_read = blindings.clone();
        not_read[0] = Blinding::from_bytes([0xff; 288]);
        let items = |blindings: &[Blinding], some: bool, wrong_release: bool| -> Vec<Owned> {
            let item = |(i, (ad, ciphertext, release)): (usize, &(_, Ciphertext, [u8; G1_BYTES]))| {
                let release = if wrong_release && i == 7 { made[8].2 } else { *release };
                let blinding = blindings.get(i).copied().filter(|_| !some || i % 40 != 3);
                (*ad, ciphertext.clone(), release, blinding)
            };
            made.iter().enumerate().map(item).collect()
        };
        let open = |backend: &dyn Backend, rng: &mut ChaCha20Rng, items: &[Owned]| {
            let items: Vec<_> = items
                .iter()
                .map(|(ad, ciphertext, release, blinding)| SingletonItem {
                    ad,
                    ciphertext,
                    release,
                    blinding: blinding.as_ref(),
                })
                .collect();
            backend.open_singletons(rng, &parameters, &items)
        };
        for backend in [&crate::Portable::new(2) as &dyn Backend, &*auto(2)] {
            for wrong_release in [false, true] {
                let want = open(backend, &mut rng, &items(&[], false, wrong_release));
                assert_eq!(
                    want.iter().filter(|opened| **opened == Ok(Opening::Malformed)).count(),
                    count - 14 - usize::from(wrong_release)
                );
                let right = open(backend, &mut rng, &items(&blindings, false, wrong_release));
                assert!(right == want, "{} {wrong_release}", backend.name());
                for stated in [&one_wrong, &not_read] {
                    let refused = open(backend, &mut rng, &items(stated, false, wrong_release));
                    let refusals = refused.iter().zip(&want).filter(|(got, want)| **got != **want);
                    assert_eq!(refusals.count(), count - usize::from(wrong_release), "{}", backend.name());
                    assert!(refused.contains(&Err(SingletonError::Blinding)));
                }
                // Too few are stated to be looked at.
                let few = open(backend, &mut rng, &items(&one_wrong[..STATED_MIN - 1], true, wrong_release));
                assert!(few == want);
                let some = open(backend, &mut rng, &items(&blindings, true, wrong_release));
                assert!(some == want);
            }
        }
    }
}

//! Opening a batch in parts, and putting parts together that others may have opened.
//!
//! A part is some sub-batches that follow each other. What somebody else says of one is checked before it is used, and
//! proves itself: every key re-encrypts to its ciphertext, every malformed item has its singleton release, and with these
//! the releases are checked ([`Backend::wrong_releases`]). The members' shares of it are not needed. That takes a fortieth
//! of opening it, and for all parts that are checked together one sum in G2.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use blindfold_bte::{
    Backend, Blinding, CiphertextPoint, KnownBatch, KnownItem, Opening, PreDecrypted, STATED_MIN, SessionKey,
};
use blindfold_protocol::{BatchHints, Certificate, HintEntry, Release};
use blindfold_runtime::{now, rng};

use super::release::Releaser;
use super::{
    AcceptedItem, BatchView, Begun, DecryptError, Decryption, HeldShares, Step, singleton, view::points,
};
use crate::EpochParameters;
use crate::hints::{Claim, HintsError, check_malformed, open_keys};

/// What opening some sub-batches of a batch gave. Number and header hash of both are the batch's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The releases of these sub-batches, in order.
    pub release: Release,
    /// One entry for each of their accepted items, in order, and the blinding factors of all malformed ones.
    pub hints: BatchHints,
}

/// Why somebody's part is not that of the batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartFault {
    /// It is for another header, or has another number of releases, entries or blinding factors than the part.
    #[error("it has not the form of this part")]
    Form,
    /// A sub-batch has another release.
    #[error("its releases are not those of its ciphertexts")]
    Release,
    /// An entry is not the truth.
    #[error(transparent)]
    Hints(#[from] HintsError),
}

impl Decryption {
    /// Pre-decrypts some sub-batches of a batch.
    ///
    /// # Errors
    /// [`DecryptError::Point`], [`DecryptError::Batch`], [`DecryptError::Stopped`].
    pub async fn predecrypt_part(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        places: Range<usize>,
    ) -> Result<Vec<PreDecrypted>, DecryptError> {
        let (number, view, scheme) = (view.number, Arc::clone(view), Arc::clone(parameters.parameters()));
        let (backend, watch) = (Arc::clone(&self.backend), Arc::clone(&self.watch));
        let work = move || {
            let (started, sub_batches) = (now(), places.len());
            let predecrypt = |place| {
                let points = points(backend.as_ref(), view.sub_batch(place))?;
                backend.predecrypt(&scheme, &points).map_err(DecryptError::Batch)
            };
            let result = places.map(predecrypt).collect::<Result<Vec<_>, _>>();
            watch.took(Step::Predecrypt, sub_batches, started.elapsed());
            result
        };
        self.pool.run(number, work).await?
    }

    /// Opens some sub-batches of a certified batch. `begun` is of these sub-batches alone; members are asked for the shares
    /// that are not `held`.
    ///
    /// # Errors
    /// [`DecryptError`].
    pub async fn open_part(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        places: Range<usize>,
        begun: Begun,
        certificate: &Certificate,
        held: &HeldShares,
    ) -> Result<Part, DecryptError> {
        let releaser = self.releaser(view, parameters, places.clone(), held);
        let opened = releaser.release(begun, certificate).await?;
        let (number, header_hash) = (view.number, view.hash);
        let pds = opened.iter().map(|(pd, _)| *pd).collect();
        let openings: Vec<Opening> = opened.into_iter().flat_map(|(_, openings)| openings).collect();
        let (entries, blindings) = self.entries(view, parameters, places, openings).await?;
        let release = Release { number, header_hash, pds };
        Ok(Part { release, hints: BatchHints { number, header_hash, entries, blindings } })
    }

    /// Checks what somebody else's part says of each ciphertext.
    ///
    /// # Errors
    /// [`DecryptError::Stopped`].
    pub async fn check_entries(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        places: Range<usize>,
        part: Part,
    ) -> Result<Result<CheckedPart, PartFault>, DecryptError> {
        let (number, view, parameters) = (view.number, Arc::clone(view), parameters.clone());
        let backend = Arc::clone(&self.backend);
        let check = move || CheckedPart::new(&view, &parameters, backend.as_ref(), places, part);
        self.pool.run(number, check).await
    }

    /// Checks the releases of such parts, which is as cheap for all of them as for one: what is wrong with one says nothing
    /// of the others. Blinding factors that are too few to be looked at are left out.
    ///
    /// # Errors
    /// [`DecryptError::Batch`], [`DecryptError::Stopped`].
    pub async fn check_releases(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        parts: Vec<CheckedPart>,
    ) -> Result<Vec<Result<Part, PartFault>>, DecryptError> {
        let (number, view, parameters) = (view.number, Arc::clone(view), parameters.clone());
        let backend = Arc::clone(&self.backend);
        let check = move || {
            let known: Vec<KnownBatch<'_>> = parts.iter().flat_map(|part| part.known(&view)).collect();
            let wrong = backend.wrong_releases(&mut rng(), parameters.parameters(), &known)?;
            let wrong: BTreeSet<usize> = wrong.into_iter().collect();
            let mut before = 0;
            let judge = |CheckedPart { places, part, .. }: CheckedPart| {
                let own = before..before + places.len();
                before = own.end;
                if wrong.range(own).next().is_none() { Ok(part) } else { Err(PartFault::Release) }
            };
            Ok(parts.into_iter().map(judge).collect())
        };
        self.pool.run(number, check).await?.map_err(DecryptError::Batch)
    }

    fn releaser<'a>(
        &'a self,
        view: &'a Arc<BatchView>,
        parameters: &'a EpochParameters,
        places: Range<usize>,
        held: &'a HeldShares,
    ) -> Releaser<'a> {
        let (backend, members, pool, watch) = (&self.backend, &self.members, &*self.pool, &self.watch);
        Releaser { view, places, held, parameters, backend, members, pool, watch }
    }

    /// One entry for each accepted item of these sub-batches, and the blinding factors of all malformed ones.
    async fn entries(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        places: Range<usize>,
        openings: Vec<Opening>,
    ) -> Result<(Vec<HintEntry>, Vec<Blinding>), DecryptError> {
        let positions = view.positions(&places);
        let malformed = |(_, opening): &(usize, &Opening)| matches!(opening, Opening::Malformed);
        let unopened =
            positions.clone().zip(&openings).filter(malformed).map(|(position, _)| position).collect();
        let mut proofs =
            singleton::prove_malformed(view, unopened, parameters, &self.members, self.parallel_singletons)
                .await?;
        let mut entries = Vec::with_capacity(openings.len());
        let (mut blindings, mut overruled) = (Vec::new(), 0);
        for (position, opening) in positions.zip(&openings) {
            entries.push(match (opening, proofs.remove(&position)) {
                (Opening::WellFormed { key, .. }, _) => HintEntry::Key(*key.as_bytes()),
                (Opening::Malformed, Some((entry @ HintEntry::Key(_), _))) => {
                    overruled += 1;
                    entry
                }
                (Opening::Malformed, Some((entry, blinding))) => {
                    blindings.push(blinding);
                    entry
                }
                (Opening::Malformed, None) => return Err(DecryptError::Stopped),
            });
        }
        if overruled > 0 {
            self.watch.overruled(overruled);
        }
        Ok((entries, blindings))
    }
}

/// Somebody's part in which every entry is the truth ([`Decryption::check_entries`]); its releases are still to be checked.
#[derive(Debug)]
pub struct CheckedPart {
    places: Range<usize>,
    part: Part,
    /// One for each of its items.
    known: Vec<Known>,
}

/// What the entries show of a ciphertext.
enum Known {
    Open(SessionKey, Vec<u8>),
    Malformed(CiphertextPoint),
}

/// Without what it opened to: nobody's message gets into a log this way.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(..) => "Open",
            Self::Malformed(_) => "Malformed",
        })
    }
}

impl CheckedPart {
    fn new(
        view: &BatchView,
        parameters: &EpochParameters,
        backend: &dyn Backend,
        places: Range<usize>,
        mut part: Part,
    ) -> Result<Self, PartFault> {
        let ours = |of: (u64, _)| of == (view.number, view.hash);
        let items = view.part(&places);
        let Part { release, hints } = &mut part;
        let is_of_form = ours((release.number, release.header_hash))
            && ours((hints.number, hints.header_hash))
            && release.pds.len() == places.len()
            && hints.entries.len() == items.len();
        if !is_of_form {
            return Err(PartFault::Form);
        }
        let (mut keys, mut claims) = (Vec::new(), Vec::new());
        for (item, entry) in items.iter().zip(&hints.entries) {
            match entry {
                HintEntry::Skipped => return Err(PartFault::Form),
                HintEntry::Key(key) => keys.push((claim(item), SessionKey::from_bytes(*key))),
                HintEntry::Malformed(release) => claims.push((claim(item), *release)),
            }
        }
        let mut messages = open_keys(backend, parameters, &keys)?.into_iter();
        check_malformed(backend, parameters, &claims, &hints.blindings)?;
        if claims.len() < STATED_MIN {
            hints.blindings.clear();
        }
        let mut keys = keys.into_iter();
        let known = |(item, entry): (&AcceptedItem, &HintEntry)| {
            let undecodable = HintsError::Undecodable { index: item.index };
            match entry {
                HintEntry::Key(_) => {
                    let opened = keys.next().zip(messages.next());
                    opened.map(|((_, key), (_, message))| Known::Open(key, message)).ok_or(undecodable)
                }
                _ => item.point().map(Known::Malformed).map_err(|_| undecodable),
            }
        };
        let known = items.iter().zip(&hints.entries).map(known).collect::<Result<_, _>>()?;
        Ok(Self { places, part, known })
    }

    /// Its sub-batches, with what is known of their ciphertexts.
    fn known<'a>(&'a self, view: &'a BatchView) -> impl Iterator<Item = KnownBatch<'a>> {
        let mut known = self.known.iter();
        self.places.clone().zip(&self.part.release.pds).map(move |(place, release)| {
            let items = view.sub_batch(place).iter().zip(known.by_ref());
            let items = items.map(|(item, known)| match known {
                Known::Open(key, message) => KnownItem::Open { ad: &item.ad.0, key, message },
                Known::Malformed(point) => KnownItem::Closed(*point),
            });
            KnownBatch { release: *release, items: items.collect() }
        })
    }
}

fn claim(item: &AcceptedItem) -> Claim {
    Claim { index: item.index, ad: item.ad.0, ciphertext: item.ciphertext.clone() }
}

/// The release and the hints of a batch, of parts that follow each other from its first sub-batch to its last; `None` for
/// others. Blinding factors are left out where they are too few to save work, or not those of all malformed items.
pub fn assemble(view: &BatchView, parts: &[Part]) -> Option<(Release, BatchHints)> {
    let (number, header_hash) = (view.number, view.hash);
    let pds: Vec<_> = parts.iter().flat_map(|part| part.release.pds.iter().copied()).collect();
    let opened: Vec<_> = parts.iter().flat_map(|part| part.hints.entries.iter().copied()).collect();
    if pds.len() != view.places().len() || opened.len() != view.accepted.len() {
        return None;
    }
    let mut entries = vec![HintEntry::Skipped; view.items];
    for (item, entry) in view.accepted.iter().zip(opened) {
        *entries.get_mut(item.index as usize)? = entry;
    }
    let mut blindings: Vec<_> = parts.iter().flat_map(|part| part.hints.blindings.iter().copied()).collect();
    let malformed = entries.iter().filter(|entry| matches!(entry, HintEntry::Malformed(_))).count();
    if blindings.len() < STATED_MIN || blindings.len() != malformed {
        blindings.clear();
    }
    Some((Release { number, header_hash, pds }, BatchHints { number, header_hash, entries, blindings }))
}

//! Opening a batch in parts, and putting parts together that others may have opened.
//!
//! A part is some sub-batches that follow each other. What somebody else says of one is checked before it is used: its
//! releases are what the members' shares combine to, and these are right; every key re-encrypts to its ciphertext, and every
//! malformed item has its singleton release. That takes a fortieth of opening it, and once for a batch what verifying the
//! shares of a sub-batch does.

use std::ops::Range;
use std::sync::Arc;

use blindfold_bte::{Backend, BatchError, Blinding, Opening, PreDecrypted, STATED_MIN, SessionKey};
use blindfold_protocol::{BatchHints, Certificate, HintEntry, Release};
use blindfold_runtime::now;

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
    /// Some of the members' shares are wrong there, so that they show nothing: not the fault of whoever opened it. Opening it
    /// finds out whose they are.
    #[error("the members' shares of it are not right")]
    Shares,
    /// The members' shares combine to another release.
    #[error("its releases are not those of the members' shares")]
    Release,
    /// An entry is not the truth.
    #[error(transparent)]
    Hints(#[from] HintsError),
}

impl Decryption {
    /// Pre-decrypts some sub-batches of a batch.
    ///
    /// # Errors
    /// [`DecryptError::Batch`], [`DecryptError::Stopped`].
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
            let predecrypt = |place| backend.predecrypt(&scheme, &points(view.sub_batch(place)));
            let result = places.map(predecrypt).collect::<Result<Vec<_>, _>>();
            watch.took(Step::Predecrypt, sub_batches, started.elapsed());
            result
        };
        self.pool.run(number, work).await?.map_err(DecryptError::Batch)
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

    /// A part that somebody else opened, as far as it is right: its blinding factors are left out where they are too few to
    /// be looked at. Members are asked for shares where too few are held.
    ///
    /// # Errors
    /// [`DecryptError`]: it could not be checked.
    pub async fn check_part(
        &self,
        view: &Arc<BatchView>,
        parameters: &EpochParameters,
        places: Range<usize>,
        part: Part,
        certificate: &Certificate,
        held: &HeldShares,
    ) -> Result<Result<Part, PartFault>, DecryptError> {
        let (number, hash) = (view.number, view.hash);
        let ours = |of: (u64, _)| of == (number, hash);
        let Part { release, hints } = part;
        let is_of_form = ours((release.number, release.header_hash))
            && ours((hints.number, hints.header_hash))
            && release.pds.len() == places.len()
            && hints.entries.len() == view.part(&places).len();
        if !is_of_form {
            return Ok(Err(PartFault::Form));
        }
        if !held.suffice(parameters) {
            self.releaser(view, parameters, 0..0, held).hold(certificate).await?;
        }
        let mut chosen = held.chosen(parameters);
        let combined = places.clone().map(|place| chosen.combined(place, parameters));
        if !combined.zip(&release.pds).all(|(own, pd)| own.as_ref() == Some(pd)) {
            return Ok(Err(PartFault::Release));
        }
        let (view, parameters) = (Arc::clone(view), parameters.clone());
        let backend = Arc::clone(&self.backend);
        let check = move || -> Result<_, BatchError> {
            let right = match check_entries(&view, &parameters, backend.as_ref(), &places, hints) {
                Ok(right) => right,
                Err(fault) => return Ok((Err(fault), chosen)),
            };
            let hold = chosen.hold(backend.as_ref(), &parameters, &view, places)?;
            let part = Part { release, hints: right };
            Ok((if hold { Ok(part) } else { Err(PartFault::Shares) }, chosen))
        };
        let (checked, chosen) = self.pool.run(number, check).await?.map_err(DecryptError::Batch)?;
        held.remember(&chosen);
        Ok(checked)
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

/// The hints of some sub-batches, where every entry is the truth; without blinding factors that are too few to be looked at.
fn check_entries(
    view: &BatchView,
    parameters: &EpochParameters,
    backend: &dyn Backend,
    places: &Range<usize>,
    mut hints: BatchHints,
) -> Result<BatchHints, PartFault> {
    let (mut keys, mut claims) = (Vec::new(), Vec::new());
    for (item, entry) in view.part(places).iter().zip(&hints.entries) {
        match entry {
            HintEntry::Skipped => return Err(PartFault::Form),
            HintEntry::Key(key) => keys.push((claim(item), SessionKey::from_bytes(*key))),
            HintEntry::Malformed(release) => claims.push((claim(item), *release)),
        }
    }
    open_keys(backend, parameters, &keys)?;
    check_malformed(backend, parameters, &claims, &hints.blindings)?;
    if claims.len() < STATED_MIN {
        hints.blindings.clear();
    }
    Ok(hints)
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

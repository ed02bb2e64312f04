//! Combining the members' shares and opening the batch, and finding out whose are wrong when that fails.
//!
//! The cheap path: combine any t shares and open; one ciphertext that passes the full check proves the release right
//! for its whole sub-batch. Only a sub-batch in which none passes has its shares verified.
//!
//! A batch that was not pre-decrypted, because it was certified before its turn came, is opened at once, which is less
//! work in all. That work is lost if the release was wrong; the sub-batch is pre-decrypted then, so that members who are
//! faulty one after the other cost it once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use blindfold_bte::{self as bte, Backend, Ciphertext, G1_BYTES, Opening, PreDecrypted};
use blindfold_protocol::{Certificate, Release, ReleaseShare};
use blindfold_runtime::{now, rng};
use parking_lot::Mutex;

use super::view::points;
use super::{BatchView, Begun, DecryptError, DecryptionWatch, Pool, SHARES, ShareMembers, Step};
use crate::EpochParameters;

/// The release of a sub-batch, and what became of each of its envelopes, in order.
pub(super) type Opened = ([u8; G1_BYTES], Vec<Opening>);

/// How far a sub-batch is.
enum SubBatch {
    /// Untouched.
    Fresh,
    /// Opened at once, under a wrong release.
    Missed,
    /// Pre-decrypted.
    Waiting(PreDecrypted),
    /// Open.
    Open(Opened),
}

impl SubBatch {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open(..))
    }

    /// Most of the work is still to do.
    fn is_heavy(&self) -> bool {
        matches!(self, Self::Fresh | Self::Missed)
    }
}

/// The shares that were given, by member: one point per sub-batch.
type Shares = BTreeMap<u16, Vec<[u8; G1_BYTES]>>;

/// Shares of one batch that members gave, so that they are asked once for all of its parts.
#[derive(Debug, Default)]
pub struct HeldShares(Mutex<Shares>);

/// What became of the sub-batches with the shares so far, and whose are wrong.
struct Attempt {
    sub_batches: Vec<SubBatch>,
    faulty: BTreeSet<u16>,
}

pub(super) struct Releaser<'a> {
    pub(super) view: &'a Arc<BatchView>,
    /// The sub-batches that are opened.
    pub(super) places: Range<usize>,
    pub(super) held: &'a HeldShares,
    pub(super) parameters: &'a EpochParameters,
    pub(super) backend: &'a Arc<dyn Backend>,
    pub(super) members: &'a ShareMembers,
    pub(super) pool: &'a Pool,
    pub(super) watch: &'a Arc<dyn DecryptionWatch>,
}

impl Releaser<'_> {
    /// Its sub-batches, opened: under the release that was claimed where it proves itself, else with shares.
    pub(super) async fn release(
        &self,
        begun: Begun,
        certificate: &Certificate,
    ) -> Result<Vec<Opened>, DecryptError> {
        let fresh = || self.places.clone().map(|_| SubBatch::Fresh).collect::<Vec<_>>();
        let sub_batches = match begun {
            Begun::Nothing => fresh(),
            Begun::Predecrypted(predecrypted) => predecrypted.into_iter().map(SubBatch::Waiting).collect(),
            Begun::Claimed(release) if self.fits_places(&release) => self.claimed(release, fresh()).await?,
            Begun::Claimed(_) => fresh(),
        };
        match opened(sub_batches) {
            Ok(opened) => Ok(opened),
            Err(sub_batches) => self.collect(sub_batches, certificate).await,
        }
    }

    /// Collects shares until every sub-batch is open.
    ///
    /// A share that does not verify shows that its member is faulty, or that the verdicts that we were told are wrong, so
    /// that we verify against the wrong positions. More than n − t members are not faulty: when more shares than that
    /// fail, nobody is named.
    async fn collect(
        &self,
        sub_batches: Vec<SubBatch>,
        certificate: &Certificate,
    ) -> Result<Vec<Opened>, DecryptError> {
        let mut shares = self.held.0.lock().clone();
        let outcome = self.collect_to(&mut shares, sub_batches, certificate).await;
        *self.held.0.lock() = shares;
        outcome
    }

    async fn collect_to(
        &self,
        shares: &mut Shares,
        mut sub_batches: Vec<SubBatch>,
        certificate: &Certificate,
    ) -> Result<Vec<Opened>, DecryptError> {
        let epoch = self.parameters.epoch();
        let threshold = usize::from(epoch.threshold);
        let members = u16::try_from(epoch.members.len()).unwrap_or(u16::MAX);
        let bearable = epoch.members.len().saturating_sub(threshold);
        let number = self.view.number;
        let first = threshold.saturating_sub(shares.len());
        let held: BTreeSet<u16> = shares.keys().copied().collect();
        let mut answers =
            self.members.shares(number, certificate, members, first, |member| held.contains(&member));
        let mut suspects = BTreeSet::new();
        let mut named = BTreeSet::new();
        // What was held before is tried before anybody is asked.
        let mut asks = shares.len() < threshold;
        loop {
            if asks {
                let Some((member, answer)) = answers.next().await else { break };
                match answer {
                    Ok(share) if self.fits(member, &share) => {
                        shares.insert(member, share.pds);
                    }
                    Ok(_) => {
                        tracing::warn!(member, number, "a share of another form than the batch");
                        suspects.insert(member);
                        answers.ask_another();
                    }
                    Err(fault) => {
                        tracing::warn!(member, number, %fault, "no share from this member");
                        answers.ask_another();
                    }
                }
            }
            asks = true;
            if suspects.len() > bearable {
                return Err(DecryptError::VerdictsDisputed { failing: suspects.len() });
            }
            if shares.len() < threshold {
                continue;
            }
            let attempt = answers.meanwhile(self.attempt(shares.clone(), sub_batches)).await?;
            for member in &attempt.faulty {
                shares.remove(member);
                suspects.insert(*member);
                answers.ask_another();
            }
            if suspects.len() > bearable {
                return Err(DecryptError::VerdictsDisputed { failing: suspects.len() });
            }
            // Some share verified or opened something, so our positions are right and the others are wrong.
            for member in suspects.difference(&named) {
                self.members.faulty(*member, number, "wrong share");
            }
            named.clone_from(&suspects);
            sub_batches = match opened(attempt.sub_batches) {
                Ok(opened) => return Ok(opened),
                Err(sub_batches) => sub_batches,
            };
        }
        Err(DecryptError::TooFewShares { what: SHARES, given: shares.len(), needed: threshold })
    }

    fn fits(&self, member: u16, share: &ReleaseShare) -> bool {
        share.number == self.view.number
            && share.header_hash == self.view.hash
            && share.member == member
            && share.pds.len() == self.view.sub_batches().len()
    }

    fn fits_places(&self, claimed: &Release) -> bool {
        claimed.number == self.view.number
            && claimed.header_hash == self.view.hash
            && claimed.pds.len() == self.places.len()
    }

    /// Opens what a claimed release proves itself for.
    async fn claimed(
        &self,
        claimed: Release,
        mut sub_batches: Vec<SubBatch>,
    ) -> Result<Vec<SubBatch>, DecryptError> {
        let places = self.places.clone();
        let work = move |opener: Opener<'_>| {
            for ((place, sub_batch), pd) in places.zip(&mut sub_batches).zip(&claimed.pds) {
                let Ok(release) = bte::Release::from_bytes(pd) else { continue };
                let openings = opener.under(&release, place, sub_batch)?;
                if proves_itself(&openings) {
                    *sub_batch = SubBatch::Open((*pd, openings));
                }
            }
            Ok(sub_batches)
        };
        self.run(Step::Decrypt, work).await
    }

    /// Opens what is not open yet.
    async fn attempt(&self, shares: Shares, mut sub_batches: Vec<SubBatch>) -> Result<Attempt, DecryptError> {
        let heavy = sub_batches.iter().any(SubBatch::is_heavy);
        let places = self.places.clone();
        let work = move |opener: Opener<'_>| {
            let mut faulty = BTreeSet::new();
            for (place, sub_batch) in places.zip(&mut sub_batches).filter(|(_, it)| !it.is_open()) {
                let own = own_shares(&shares, place);
                faulty.extend(opener.open(place, sub_batch, &own)?);
            }
            Ok(Attempt { sub_batches, faulty })
        };
        self.run(if heavy { Step::Decrypt } else { Step::Finalize }, work).await
    }

    /// Does work on the blocking pool; in the pool of heavy work if it is that.
    async fn run<T: Send + 'static>(
        &self,
        step: Step,
        work: impl FnOnce(Opener<'_>) -> Result<T, DecryptError> + Send + 'static,
    ) -> Result<T, DecryptError> {
        let (view, parameters) = (Arc::clone(self.view), self.parameters.clone());
        let (backend, watch) = (Arc::clone(self.backend), Arc::clone(self.watch));
        let sub_batches = self.places.len();
        let work = move || {
            let started = now();
            let done = work(Opener { view: &view, parameters: &parameters, backend: backend.as_ref() })?;
            watch.took(step, sub_batches, started.elapsed());
            Ok(done)
        };
        match step {
            Step::Finalize => blindfold_runtime::blocking(work).await.map_err(|_| DecryptError::Stopped)?,
            Step::Predecrypt | Step::Decrypt => self.pool.run(self.view.number, work).await?,
        }
    }
}

/// What the sub-batches opened to, where all did.
fn opened(sub_batches: Vec<SubBatch>) -> Result<Vec<Opened>, Vec<SubBatch>> {
    if !sub_batches.iter().all(SubBatch::is_open) {
        return Err(sub_batches);
    }
    let open = |sub_batch| match sub_batch {
        SubBatch::Open(opened) => Some(opened),
        _ => None,
    };
    Ok(sub_batches.into_iter().filter_map(open).collect())
}

/// Whether a ciphertext opened: only the right release of its sub-batch does that.
fn proves_itself(openings: &[Opening]) -> bool {
    openings.iter().any(|opening| matches!(opening, Opening::WellFormed { .. }))
}

/// The members' shares of one sub-batch.
fn own_shares(shares: &Shares, place: usize) -> Vec<(u16, [u8; G1_BYTES])> {
    shares.iter().filter_map(|(member, pds)| Some((*member, *pds.get(place)?))).collect()
}

/// Opens sub-batches of one batch.
struct Opener<'a> {
    view: &'a BatchView,
    parameters: &'a EpochParameters,
    backend: &'a dyn Backend,
}

impl Opener<'_> {
    /// Opens the one at `place`, or gives the members whose shares are wrong.
    fn open(
        &self,
        place: usize,
        sub_batch: &mut SubBatch,
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, DecryptError> {
        let scheme = self.parameters.parameters();
        let chosen = shares.get(..usize::from(scheme.threshold())).unwrap_or(shares);
        let combined = scheme.combine(chosen);
        let opened = match &combined {
            Ok(release) => {
                let openings = self.under(release, place, sub_batch)?;
                Some((release.to_bytes(), openings))
            }
            Err(_) => None,
        };
        if !opened.as_ref().is_some_and(|(_, openings)| proves_itself(openings)) {
            let points = points(self.backend, self.view.sub_batch(place))?;
            let faulty = self
                .backend
                .invalid_shares(&mut rng(), scheme, &points, shares)
                .map_err(DecryptError::Batch)?;
            if !faulty.is_empty() {
                return Ok(faulty);
            }
        }
        match (opened, combined) {
            // It proves itself; or every share is right, so the release is, and every ciphertext is malformed.
            (Some(opened), _) => {
                *sub_batch = SubBatch::Open(opened);
                Ok(Vec::new())
            }
            (None, Err(fault)) => Err(DecryptError::Combine(fault)),
            (None, Ok(_)) => Err(DecryptError::Stopped),
        }
    }

    /// What the ciphertexts open to under a release, which may be wrong.
    fn under(
        &self,
        release: &bte::Release,
        place: usize,
        sub_batch: &mut SubBatch,
    ) -> Result<Vec<Opening>, DecryptError> {
        let (scheme, items) = (self.parameters.parameters(), self.view.sub_batch(place));
        let ciphertexts: Vec<(&[u8; 32], &Ciphertext)> =
            items.iter().map(|item| (&item.ad.0, &item.ciphertext)).collect();
        let openings = match sub_batch {
            SubBatch::Open((_, openings)) => Ok(openings.clone()),
            SubBatch::Waiting(predecrypted) => {
                self.backend.finalize(scheme, predecrypted, release, &ciphertexts)
            }
            SubBatch::Fresh => {
                let points = points(self.backend, items)?;
                *sub_batch = SubBatch::Missed; // until it turns out otherwise
                self.backend.decrypt(scheme, &points, release, &ciphertexts)
            }
            SubBatch::Missed => {
                let points = points(self.backend, items)?;
                let predecrypted = self.backend.predecrypt(scheme, &points).map_err(DecryptError::Batch)?;
                let openings = self.backend.finalize(scheme, &predecrypted, release, &ciphertexts);
                *sub_batch = SubBatch::Waiting(predecrypted);
                openings
            }
        };
        openings.map_err(DecryptError::Batch)
    }
}

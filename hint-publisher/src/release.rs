//! Combining the members' shares and opening the batch, and finding out who lied when that fails.
//!
//! The cheap path: combine any t shares and open; one ciphertext that passes the full check proves the release right
//! for its whole sub-batch. Only a sub-batch in which none passes has its shares verified.
//!
//! A batch that was not pre-decrypted, because it was certified before its turn came, is opened at once, which is less
//! work in all. That work is lost if the release was wrong; the sub-batch is pre-decrypted then, so that members who
//! lie one after the other cost it once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blindfold_bte::{Backend, BatchError, Ciphertext, G1_BYTES, Opening, PreDecrypted, Release};
use blindfold_chain::EpochParameters;
use blindfold_protocol::{Certificate, ReleaseShare};
use blindfold_runtime::{now, rng};

use crate::{BatchView, HintPublisherMetrics, WorkFault, members::Members, pool::Pool};

/// An opened batch.
pub(crate) struct Released {
    /// The release of each sub-batch.
    pub(crate) pds: Vec<[u8; G1_BYTES]>,
    /// What became of each accepted envelope, in order.
    pub(crate) openings: Vec<Opening>,
}

/// How far a sub-batch is.
enum SubBatch {
    /// Untouched.
    Fresh,
    /// Opened at once, under a wrong release.
    Missed,
    /// Pre-decrypted.
    Waiting(PreDecrypted),
    /// Open: release and openings.
    Open([u8; G1_BYTES], Vec<Opening>),
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

/// What became of the sub-batches with the shares so far, and whose are wrong.
struct Attempt {
    sub_batches: Vec<SubBatch>,
    liars: BTreeSet<u16>,
}

pub(crate) struct Releaser<'a> {
    pub(crate) view: &'a Arc<BatchView>,
    pub(crate) parameters: &'a EpochParameters,
    pub(crate) backend: &'a Arc<dyn Backend>,
    pub(crate) members: &'a Members,
    pub(crate) pool: &'a Pool,
    pub(crate) metrics: &'a HintPublisherMetrics,
}

impl Releaser<'_> {
    /// Collects shares until every sub-batch is open.
    ///
    /// A share that does not verify shows that its member lied, or that the sequencer told us wrong verdicts, so that
    /// we verify against the wrong positions. More than n − t members do not lie: when more shares than that fail,
    /// nobody is named, and the batch is fetched again.
    pub(crate) async fn release(
        &self,
        predecrypted: Option<Vec<PreDecrypted>>,
        certificate: &Certificate,
    ) -> Result<Released, WorkFault> {
        let epoch = self.parameters.epoch();
        let threshold = usize::from(epoch.threshold);
        let members = u16::try_from(epoch.members.len()).unwrap_or(u16::MAX);
        let bearable = epoch.members.len().saturating_sub(threshold);
        let number = self.view.number;
        let mut answers = self.members.shares(number, certificate, members, threshold);
        let mut shares = Shares::new();
        let mut suspects = BTreeSet::new();
        let mut named = BTreeSet::new();
        let mut sub_batches: Vec<SubBatch> = match predecrypted {
            Some(predecrypted) => predecrypted.into_iter().map(SubBatch::Waiting).collect(),
            None => (0..self.view.sub_batches()).map(|_| SubBatch::Fresh).collect(),
        };
        while let Some((member, answer)) = answers.next().await {
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
            if suspects.len() > bearable {
                return Err(WorkFault::VerdictsDisputed { failing: suspects.len() });
            }
            if shares.len() < threshold {
                continue;
            }
            let attempt = self.attempt(shares.clone(), sub_batches).await?;
            sub_batches = attempt.sub_batches;
            for liar in &attempt.liars {
                shares.remove(liar);
                suspects.insert(*liar);
                answers.ask_another();
            }
            if suspects.len() > bearable {
                return Err(WorkFault::VerdictsDisputed { failing: suspects.len() });
            }
            // Some share verified or opened something, so our positions are right and the others lied.
            for liar in suspects.difference(&named) {
                self.members.name_liar(*liar, number, "wrong share");
            }
            named.clone_from(&suspects);
            if sub_batches.iter().all(SubBatch::is_open) {
                let (mut pds, mut openings) = (Vec::new(), Vec::new());
                for sub_batch in sub_batches {
                    if let SubBatch::Open(pd, opened) = sub_batch {
                        pds.push(pd);
                        openings.extend(opened);
                    }
                }
                return Ok(Released { pds, openings });
            }
        }
        Err(WorkFault::TooFewShares { given: shares.len(), needed: threshold })
    }

    fn fits(&self, member: u16, share: &ReleaseShare) -> bool {
        share.number == self.view.number
            && share.header_hash == self.view.hash
            && share.member == member
            && share.pds.len() == self.view.sub_batches()
    }

    /// Opens what is not open yet, on the blocking pool; in the pool of heavy work if it is that.
    async fn attempt(&self, shares: Shares, mut sub_batches: Vec<SubBatch>) -> Result<Attempt, WorkFault> {
        let (view, parameters) = (Arc::clone(self.view), self.parameters.clone());
        let backend = Arc::clone(self.backend);
        let heavy = sub_batches.iter().any(SubBatch::is_heavy);
        let seconds = if heavy { &self.metrics.decrypt_seconds } else { &self.metrics.finalize_seconds };
        let seconds = seconds.clone();
        let work = move || {
            let started = now();
            let mut liars = BTreeSet::new();
            for (place, sub_batch) in sub_batches.iter_mut().enumerate().filter(|(_, it)| !it.is_open()) {
                let own = own_shares(&shares, place);
                let opener =
                    Opener { view: &view, place, parameters: &parameters, backend: backend.as_ref() };
                liars.extend(opener.open(sub_batch, &own)?);
            }
            seconds.observe_duration(started.elapsed());
            Ok(Attempt { sub_batches, liars })
        };
        if heavy {
            self.pool.run(self.view.number, work).await?
        } else {
            blindfold_runtime::blocking(work).await.map_err(|_| WorkFault::Stopped)?
        }
    }
}

/// The members' shares of one sub-batch.
fn own_shares(shares: &Shares, sub_batch: usize) -> Vec<(u16, [u8; G1_BYTES])> {
    shares.iter().filter_map(|(member, pds)| Some((*member, *pds.get(sub_batch)?))).collect()
}

/// Opens one sub-batch.
struct Opener<'a> {
    view: &'a BatchView,
    /// Which sub-batch.
    place: usize,
    parameters: &'a EpochParameters,
    backend: &'a dyn Backend,
}

impl Opener<'_> {
    /// Opens it, or gives the members whose shares are wrong.
    fn open(
        &self,
        sub_batch: &mut SubBatch,
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, WorkFault> {
        let scheme = self.parameters.parameters();
        let chosen = shares.get(..usize::from(scheme.threshold())).unwrap_or(shares);
        let combined = scheme.combine(chosen);
        let opened = match &combined {
            Ok(release) => {
                let openings = self.under(release, sub_batch).map_err(WorkFault::Batch)?;
                Some((release.to_bytes(), openings))
            }
            Err(_) => None,
        };
        let proves_itself = |openings: &[Opening]| {
            openings.iter().any(|opening| matches!(opening, Opening::WellFormed { .. }))
        };
        if !opened.as_ref().is_some_and(|(_, openings)| proves_itself(openings)) {
            let points = self.view.points(self.place);
            let found =
                self.backend.find_liars(&mut rng(), scheme, &points, shares).map_err(WorkFault::Batch)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        match (opened, combined) {
            // It proves itself; or every share is right, so the release is, and every ciphertext is malformed.
            (Some((release, openings)), _) => {
                *sub_batch = SubBatch::Open(release, openings);
                Ok(Vec::new())
            }
            (None, Err(fault)) => Err(WorkFault::Combine(fault)),
            (None, Ok(_)) => Err(WorkFault::Stopped),
        }
    }

    /// What the ciphertexts open to under a release, which may be wrong.
    fn under(&self, release: &Release, sub_batch: &mut SubBatch) -> Result<Vec<Opening>, BatchError> {
        let (scheme, items) = (self.parameters.parameters(), self.view.sub_batch(self.place));
        let ciphertexts: Vec<(&[u8; 32], &Ciphertext)> =
            items.iter().map(|item| (&item.ad.0, &item.ciphertext)).collect();
        let points = || self.view.points(self.place);
        match sub_batch {
            SubBatch::Open(_, openings) => Ok(openings.clone()),
            SubBatch::Waiting(predecrypted) => {
                self.backend.finalize(scheme, predecrypted, release, &ciphertexts)
            }
            SubBatch::Fresh => {
                *sub_batch = SubBatch::Missed; // until it turns out otherwise
                self.backend.decrypt(scheme, &points(), release, &ciphertexts)
            }
            SubBatch::Missed => {
                let predecrypted = self.backend.predecrypt(scheme, &points())?;
                let openings = self.backend.finalize(scheme, &predecrypted, release, &ciphertexts);
                *sub_batch = SubBatch::Waiting(predecrypted);
                openings
            }
        }
    }
}

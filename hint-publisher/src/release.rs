//! Combining the members' shares and opening the batch, and finding out who lied when that fails.
//!
//! The cheap path: combine any t shares and open; one ciphertext that passes the full check proves the release right
//! for its whole sub-batch. Only a sub-batch in which none passes has its shares verified.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use blindfold_bte::{Backend, Ciphertext, G1_BYTES, Opening};
use blindfold_chain::EpochParameters;
use blindfold_protocol::{Certificate, ReleaseShare};

use crate::{BatchView, HintPublisherMetrics, WorkFault, members::Members, pool::Predecrypted};

/// An opened batch.
pub(crate) struct Released {
    /// The release of each sub-batch.
    pub(crate) pds: Vec<[u8; G1_BYTES]>,
    /// What became of each accepted envelope, in order.
    pub(crate) openings: Vec<Opening>,
}

/// One opened sub-batch.
type Opened = ([u8; G1_BYTES], Vec<Opening>);
/// The shares that were given, by member: one point per sub-batch.
type Shares = BTreeMap<u16, Vec<[u8; G1_BYTES]>>;

/// What can be opened with the shares so far, and whose are wrong.
struct Attempt {
    opened: Vec<Option<Opened>>,
    liars: BTreeSet<u16>,
}

pub(crate) struct Releaser<'a> {
    pub(crate) view: &'a Arc<BatchView>,
    pub(crate) parameters: &'a EpochParameters,
    pub(crate) predecrypted: &'a Predecrypted,
    pub(crate) backend: &'a Arc<dyn Backend>,
    pub(crate) members: &'a Members,
    pub(crate) metrics: &'a HintPublisherMetrics,
}

impl Releaser<'_> {
    /// Collects shares until every sub-batch is open.
    ///
    /// A share that does not verify shows that its member lied, or that the sequencer told us wrong verdicts, so that
    /// we verify against the wrong positions. More than n − t members do not lie: when more shares than that fail,
    /// nobody is named, and the batch is fetched again.
    pub(crate) async fn release(&self, certificate: &Certificate) -> Result<Released, WorkFault> {
        let epoch = self.parameters.epoch();
        let threshold = usize::from(epoch.threshold);
        let members = u16::try_from(epoch.members.len()).unwrap_or(u16::MAX);
        let bearable = epoch.members.len().saturating_sub(threshold);
        let number = self.view.number;
        let mut answers = self.members.shares(number, certificate, members, threshold);
        let mut shares = Shares::new();
        let mut suspects = BTreeSet::new();
        let mut named = BTreeSet::new();
        let mut opened: Vec<Option<Opened>> = vec![None; self.view.sub_batches()];
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
            let attempt = self.attempt(shares.clone(), opened).await?;
            opened = attempt.opened;
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
            if opened.iter().all(Option::is_some) {
                let (pds, openings): (Vec<_>, Vec<_>) = opened.into_iter().flatten().unzip();
                return Ok(Released { pds, openings: openings.into_iter().flatten().collect() });
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

    /// Opens what is not open yet, on the blocking pool.
    async fn attempt(&self, shares: Shares, opened: Vec<Option<Opened>>) -> Result<Attempt, WorkFault> {
        let (view, parameters) = (Arc::clone(self.view), self.parameters.clone());
        let (predecrypted, backend) = (Arc::clone(self.predecrypted), Arc::clone(self.backend));
        let seconds = self.metrics.finalize_seconds.clone();
        tokio::task::spawn_blocking(move || {
            let started = Instant::now();
            let mut liars = BTreeSet::new();
            let mut result = Vec::with_capacity(opened.len());
            for (sub_batch, opened) in opened.into_iter().enumerate() {
                result.push(match opened {
                    Some(opened) => Some(opened),
                    None => {
                        let own = own_shares(&shares, sub_batch);
                        open(
                            &view,
                            sub_batch,
                            &parameters,
                            &predecrypted,
                            backend.as_ref(),
                            &own,
                            &mut liars,
                        )?
                    }
                });
            }
            seconds.observe_duration(started.elapsed());
            Ok(Attempt { opened: result, liars })
        })
        .await
        .map_err(|_| WorkFault::Stopped)?
    }
}

/// The members' shares of one sub-batch.
fn own_shares(shares: &Shares, sub_batch: usize) -> Vec<(u16, [u8; G1_BYTES])> {
    shares.iter().filter_map(|(member, pds)| Some((*member, *pds.get(sub_batch)?))).collect()
}

/// Opens one sub-batch; `None` and more `liars` if shares are wrong.
fn open(
    view: &BatchView,
    sub_batch: usize,
    parameters: &EpochParameters,
    predecrypted: &Predecrypted,
    backend: &dyn Backend,
    shares: &[(u16, [u8; G1_BYTES])],
    liars: &mut BTreeSet<u16>,
) -> Result<Option<Opened>, WorkFault> {
    let scheme = parameters.parameters();
    let chosen = shares.get(..usize::from(scheme.threshold())).unwrap_or(shares);
    let combined = scheme.combine(chosen);
    let opened = match (&combined, predecrypted.get(sub_batch)) {
        (Ok(release), Some(predecrypted)) => {
            let ciphertexts: Vec<(&[u8; 32], &Ciphertext)> =
                view.sub_batch(sub_batch).iter().map(|item| (&item.ad.0, &item.ciphertext)).collect();
            let openings =
                backend.finalize(scheme, predecrypted, release, &ciphertexts).map_err(WorkFault::Batch)?;
            Some((release.to_bytes(), openings))
        }
        _ => None,
    };
    if let Some((_, openings)) = &opened
        && openings.iter().any(|opening| matches!(opening, Opening::WellFormed { .. }))
    {
        return Ok(opened);
    }
    let found = backend
        .find_liars(&mut rand::rng(), scheme, &view.points(sub_batch), shares)
        .map_err(WorkFault::Batch)?;
    if !found.is_empty() {
        liars.extend(found);
        return Ok(None);
    }
    match (opened, combined) {
        // Every share is right, so the release is, and every ciphertext of this sub-batch is malformed.
        (Some(opened), _) => Ok(Some(opened)),
        (None, Err(fault)) => Err(WorkFault::Combine(fault)),
        (None, Ok(_)) => Err(WorkFault::Stopped),
    }
}

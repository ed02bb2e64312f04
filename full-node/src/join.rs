//! Joining from a snapshot: what a backup of somebody else's node holds becomes the records of this one.
//!
//! Nothing in a snapshot is believed. Headers, items, certificates and hints are verified as when a sequencer gives them, by
//! this node's own view of L1; blocks, fee accounts and whatever else follows from them are left out, and made here. What a
//! snapshot saves is asking for each batch, decrypting what has no hints, and anybody who still has the old batches.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_bte::Backend;
use blindfold_chain::{
    HintIntake, HintsIntakeError, L1Reader, NextStep, OpenError, OpenedBatches, ParameterSet, Tracker,
    TrackerError,
};
use blindfold_protocol::{
    BatchHints, Certificate, ChainConfig, Release, SealedBatch, limits::MAX_UNCERTIFIED_RUN,
};
use blindfold_runtime::{Backoff, now};
use blindfold_store::{BatchRecord, Store, StoreError};

/// Where it is noted that a join has begun and not ended; empty once it has.
const UNDER_WAY_KEY: &str = "join.under_way";
/// Pauses between two tries, in milliseconds.
const FIRST_PAUSE_MS: u64 = 250;
const LONGEST_PAUSE_MS: u64 = 10_000;

/// Somebody else's records.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The newest certified number.
    async fn certified(&self) -> Result<Option<u64>, StoreError>;

    /// A batch by its number.
    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError>;
}

#[async_trait]
impl<S: Store + ?Sized> Snapshot for S {
    async fn certified(&self) -> Result<Option<u64>, StoreError> {
        Ok(self.heads().await?.certified)
    }

    async fn batch(&self, number: u64) -> Result<Option<BatchRecord>, StoreError> {
        Store::batch(self, number).await
    }
}

/// What is joined with.
pub struct JoinDeps {
    /// The chain's settings.
    pub chain: Arc<ChainConfig>,
    /// This node's own records: empty, or those of a join that was interrupted.
    pub store: Arc<dyn Store>,
    /// This node's own view of L1.
    pub l1: Arc<dyn L1Reader>,
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// What encrypts hints again.
    pub backend: Arc<dyn Backend>,
    /// How long L1 may be away, or behind, before it gives up.
    pub patience: Duration,
}

/// How far a join has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The newest certified batch of the snapshot.
    pub last: u64,
    /// Up to which batch everything is verified and stored.
    pub through: u64,
    /// Batches taken.
    pub batches: u64,
    /// Batches of which hints were verified.
    pub hints: u64,
    /// Batches of which the snapshot's hints do not stand: the node gets others, or opens them itself.
    pub hints_refused: u64,
}

/// Why a join stops. What was taken before stands, and joining again goes on there.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// It has no certified batch.
    #[error("the snapshot has no certified batch")]
    Empty,
    /// It begins too late.
    #[error(
        "the snapshot lacks batch {0}, which was pruned there: take one of a node that keeps all batches"
    )]
    Pruned(u64),
    /// Batches follow for which there is no certificate.
    #[error("the snapshot has no certificate for batch {0}, nor for one that follows it closely")]
    NoCertificate(u64),
    /// The node followed the chain by itself: what it holds that the snapshot contradicts is evidence.
    #[error("this node ran already: start it, it goes on by itself")]
    RanAlready,
    /// A batch or its certificate is not the chain's.
    #[error("the snapshot is refused in the batches from {number} on: {refusal}")]
    Refused {
        /// Number of the first batch that was offered.
        number: u64,
        /// Why they are not taken.
        refusal: TrackerError,
    },
    /// Nothing is wrong with the snapshot: our own L1, disk or program does not let it be judged.
    #[error("the batches from {number} on cannot be judged now, join again later: {reason}")]
    NotNow {
        /// Number of the first batch that was offered.
        number: u64,
        /// Why not.
        reason: TrackerError,
    },
    /// The snapshot cannot be read.
    #[error("the snapshot cannot be read: {0}")]
    Snapshot(StoreError),
    /// This node's own records, or L1, cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The disk did not take something.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a snapshot says beside the batch itself.
struct Hinted {
    release: Option<Release>,
    hints: Option<BatchHints>,
}

/// Batches up to one that is certified by itself or by L1.
struct Run {
    first: u64,
    sealed: Vec<Arc<SealedBatch>>,
    /// None where L1 made the last of them.
    certificate: Option<Certificate>,
    hinted: Vec<Hinted>,
}

/// Takes what the snapshot holds and this node does not. `progress` is told after each certificate.
///
/// # Errors
/// [`JoinError`], at the first batch that does not stand.
pub async fn join(
    snapshot: &(impl Snapshot + ?Sized),
    deps: JoinDeps,
    mut progress: impl FnMut(&Joined),
) -> Result<Joined, JoinError> {
    let JoinDeps { chain, store, l1, parameters, backend, patience } = deps;
    let last = snapshot.certified().await.map_err(JoinError::Snapshot)?.ok_or(JoinError::Empty)?;
    store.bind(&chain.deployment, crate::ROLE).await?;
    // As a node does before its first batch: until it knows what L1 pays by, any header's ledger may be asked for.
    store.keep_ledgers_from(0).await?;
    let tracker = Tracker::open(chain, Arc::clone(&store), l1).await?;
    let heads = store.heads().await?;
    // A join that was killed left headers without their certificate; those of a node that ran are evidence.
    let goes_on = store.meta(UNDER_WAY_KEY).await?.is_some_and(|mark| !mark.is_empty());
    let is_ahead = tracker.head().number > tracker.certified().number;
    if heads.block.is_some() || (is_ahead && !goes_on) {
        return Err(JoinError::RanAlready);
    }
    store.put_meta(UNDER_WAY_KEY, &[1]).await?;
    let intake = HintIntake::new(tracker.clone(), parameters, backend, Arc::new(OpenedBatches::default()));
    let mut joined = Joined { last, through: tracker.certified().number, ..Joined::default() };
    // Where an earlier one was interrupted between a certificate and the hints.
    for number in heads.hinted_through.unwrap_or(0) + 1..=joined.through.min(last) {
        match batch(snapshot, number).await {
            Ok(BatchRecord { release, hints, .. }) => {
                take_hints(&intake, Hinted { release, hints }, &mut joined).await?;
            }
            Err(JoinError::Pruned(_)) => {}
            Err(error) => return Err(error),
        }
    }
    while joined.through < last {
        let Run { first, sealed, certificate, hinted } = next_run(snapshot, joined.through + 1, last).await?;
        joined.through = take_run(&tracker, first, sealed, certificate, patience).await?;
        joined.batches += joined.through + 1 - first;
        for hinted in hinted {
            take_hints(&intake, hinted, &mut joined).await?;
        }
        progress(&joined);
    }
    store.put_meta(UNDER_WAY_KEY, &[]).await?;
    Ok(joined)
}

async fn next_run(snapshot: &(impl Snapshot + ?Sized), first: u64, last: u64) -> Result<Run, JoinError> {
    let mut run = Run { first, sealed: Vec::new(), certificate: None, hinted: Vec::new() };
    for number in first..=last {
        let BatchRecord { sealed, certificate, release, hints, .. } = batch(snapshot, number).await?;
        let by_l1 = sealed.claims_l1();
        run.sealed.push(Arc::new(sealed));
        run.hinted.push(Hinted { release, hints });
        if certificate.is_some() || by_l1 {
            run.certificate = certificate;
            return Ok(run);
        }
        if run.sealed.len() >= MAX_UNCERTIFIED_RUN {
            break;
        }
    }
    Err(JoinError::NoCertificate(first))
}

async fn batch(snapshot: &(impl Snapshot + ?Sized), number: u64) -> Result<BatchRecord, JoinError> {
    match snapshot.batch(number).await {
        Ok(Some(record)) => Ok(record),
        // Below the newest one each number was there.
        Ok(None) => Err(JoinError::Pruned(number)),
        Err(error) if error.is_pruned() => Err(JoinError::Pruned(number)),
        Err(error) => Err(JoinError::Snapshot(error)),
    }
}

/// Takes a run; gives the number that is certified now. Waits for an L1 that is away or behind.
async fn take_run(
    tracker: &Tracker,
    first: u64,
    sealed: Vec<Arc<SealedBatch>>,
    certificate: Option<Certificate>,
    patience: Duration,
) -> Result<u64, JoinError> {
    let (began, mut pauses) = (now(), Backoff::new(FIRST_PAUSE_MS, LONGEST_PAUSE_MS));
    loop {
        let offered = match &certificate {
            Some(certificate) => tracker.accept_certified_run(&sealed, certificate).await.map(drop),
            None => made_by_l1(tracker, &sealed).await,
        };
        let Err(refusal) = offered else { break };
        match refusal.next_step() {
            NextStep::Retry if began.elapsed() < patience => {
                tracing::warn!(first, %refusal, "trying again");
                tokio::time::sleep(pauses.pause()).await;
            }
            NextStep::Retry | NextStep::Stop => {
                return Err(JoinError::NotNow { number: first, reason: refusal });
            }
            _ => return Err(JoinError::Refused { number: first, refusal }),
        }
    }
    let last = first + sealed.len() as u64 - 1;
    let certified = tracker.certified().number;
    if certified < last { Err(JoinError::NoCertificate(last)) } else { Ok(certified) }
}

/// Takes batches of which L1 made the last. Where it did not, none of them stays: nobody certified them.
async fn made_by_l1(tracker: &Tracker, sealed: &[Arc<SealedBatch>]) -> Result<(), TrackerError> {
    for batch in sealed {
        if let Err(refusal) = tracker.apply_sealed(batch).await {
            tracker.give_up_from(tracker.certified().number + 1).await?;
            return Err(refusal);
        }
    }
    Ok(())
}

async fn take_hints(intake: &HintIntake, hinted: Hinted, joined: &mut Joined) -> Result<(), JoinError> {
    let Hinted { release, hints: Some(hints) } = hinted else { return Ok(()) };
    let number = hints.number;
    let mut taken = intake.submit(release.clone(), hints.clone()).await;
    // Of a release only the form is known, and it keeps no true hints out.
    if release.is_some() && matches!(taken, Err(HintsIntakeError::Wrong { .. })) {
        taken = intake.submit(None, hints).await;
    }
    match taken {
        Ok(accepted) => joined.hints += u64::from(accepted.new),
        Err(HintsIntakeError::Store(error)) => return Err(JoinError::Store(error)),
        Err(refusal) => {
            tracing::warn!(number, %refusal, "hints of the snapshot are refused: the node gets others");
            joined.hints_refused += 1;
        }
    }
    Ok(())
}

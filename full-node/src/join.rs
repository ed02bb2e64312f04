//! Joining from a snapshot: what a backup of somebody else's node holds becomes the records of this one.
//!
//! Nothing in a snapshot is believed. Headers, items, certificates and hints are verified as when a sequencer gives them, by
//! this node's own view of L1; blocks, fee accounts and whatever else follows from them are left out, and made here. What a
//! snapshot saves is asking for each batch, decrypting what has no hints, and anybody who still has the old batches.

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_bte::Backend;
use blindfold_chain::{
    HintIntake, HintsIntakeError, L1Reader, OpenError, OpenedBatches, ParameterSet, Tracker, TrackerError,
};
use blindfold_protocol::{ChainConfig, SealedBatch, limits::MAX_UNCERTIFIED_RUN};
use blindfold_store::{BatchRecord, Store, StoreError};

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
    /// A batch or its certificate is not the chain's.
    #[error("batch {number} of the snapshot is refused: {refusal}")]
    Refused {
        /// Number of the batch.
        number: u64,
        /// Why it is not taken.
        refusal: TrackerError,
    },
    /// Hints are not the truth.
    #[error("hints of the snapshot are refused: {0}")]
    Hints(HintsIntakeError),
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

/// Takes what the snapshot holds and this node does not. `progress` is told after each certificate.
///
/// # Errors
/// [`JoinError`], at the first batch that does not stand.
pub async fn join(
    snapshot: &(impl Snapshot + ?Sized),
    deps: JoinDeps,
    mut progress: impl FnMut(&Joined),
) -> Result<Joined, JoinError> {
    let JoinDeps { chain, store, l1, parameters, backend } = deps;
    let last = snapshot.certified().await.map_err(JoinError::Snapshot)?.ok_or(JoinError::Empty)?;
    store.bind(&chain.deployment, crate::ROLE).await?;
    let tracker = Tracker::open(chain, Arc::clone(&store), l1).await?;
    let intake = HintIntake::new(tracker.clone(), parameters, backend, Arc::new(OpenedBatches::default()));
    let mut joined = Joined { last, through: tracker.certified().number, ..Joined::default() };
    // Where an earlier one was interrupted between a certificate and the hints.
    let hinted = store.heads().await?.hinted_through.unwrap_or(0);
    for number in hinted + 1..=joined.through.min(last) {
        take_hints(&intake, batch(snapshot, number).await?, &mut joined).await?;
    }
    while joined.through < last {
        let run = next_run(snapshot, joined.through + 1, last).await?;
        let before = joined.through;
        joined.through = take_run(&tracker, &run).await?;
        joined.batches += joined.through - before;
        for record in run {
            take_hints(&intake, record, &mut joined).await?;
        }
        progress(&joined);
    }
    Ok(joined)
}

/// The batches from a number on, up to one that is certified by itself or by L1.
async fn next_run(
    snapshot: &(impl Snapshot + ?Sized),
    from: u64,
    last: u64,
) -> Result<Vec<BatchRecord>, JoinError> {
    let mut run = Vec::new();
    for number in from..=last {
        let record = batch(snapshot, number).await?;
        let ends = record.certificate.is_some() || record.by_l1;
        run.push(record);
        if ends {
            return Ok(run);
        }
        if run.len() > MAX_UNCERTIFIED_RUN {
            break;
        }
    }
    Err(JoinError::NoCertificate(from))
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

/// Takes a run; gives the number that is certified now.
async fn take_run(tracker: &Tracker, run: &[BatchRecord]) -> Result<u64, JoinError> {
    let sealed: Vec<Arc<SealedBatch>> = run.iter().map(|record| Arc::new(record.sealed.clone())).collect();
    let certificate = run.last().and_then(|record| record.certificate);
    let number = run.first().map_or(0, |record| record.number);
    let refused = |refusal| JoinError::Refused { number, refusal };
    match certificate {
        Some(certificate) => {
            tracker.accept_certified_run(&sealed, &certificate).await.map_err(refused)?;
        }
        // L1 made the last of them, and says so itself.
        None => {
            for batch in &sealed {
                let number = batch.header.number;
                let refused = |refusal| JoinError::Refused { number, refusal };
                tracker.apply_sealed(batch).await.map_err(refused)?;
            }
        }
    }
    let last = run.last().map_or(0, |record| record.number);
    let certified = tracker.certified().number;
    if certified < last { Err(JoinError::NoCertificate(last)) } else { Ok(certified) }
}

async fn take_hints(intake: &HintIntake, record: BatchRecord, joined: &mut Joined) -> Result<(), JoinError> {
    let Some(hints) = record.hints else { return Ok(()) };
    match intake.submit(record.release, hints).await {
        Ok(accepted) => {
            joined.hints += u64::from(accepted.new);
            Ok(())
        }
        Err(HintsIntakeError::Store(error)) => Err(JoinError::Store(error)),
        Err(refusal) => Err(JoinError::Hints(refusal)),
    }
}

//! Going back to what L1 holds. A certificate that was kept from L1 until L1 made a header of its own leaves whoever took it
//! with a certified header that is void, and a certified header never gives way by itself.
//!
//! [`Fork::find`] reads L1 backwards until it meets a header that is here. [`Fork::go_back`] takes everything above it back
//! in one step of the disk, so that a crash leaves the disk as it was or as it should be. [`Fork::take_posted`] takes what
//! L1 has above it. Each may be repeated. What this process signed stays on disk throughout: nothing is signed twice.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use alloy_primitives::{Address, B256};
use blindfold_engine::{EngineError, ExecutionClient};
use blindfold_l1::{DataError, Posting};
use blindfold_protocol::{BatchHeader, Certificate, ChainConfig, EnvelopeError, SealedBatch, SignedHeader};
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

use crate::limits::{KEPT_POSTED_HEADERS, REBUILD_STEP_BLOCKS};
use crate::records::forget_ledgers;
use crate::{Applied, HeaderId, L1Error, L1Reader, NextStep, Tracker, TrackerError, made_by_l1};

/// Why a disk does not go back to what L1 holds. It is as it was, or has gone back already; trying again harms nothing.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// L1 failed, or tells a contradiction.
    #[error("L1 does not tell what was posted: {0}; start again when it answers")]
    L1(#[from] L1Error),
    /// The disk failed, or refused a step.
    #[error(transparent)]
    Store(StoreError),
    /// L1's chain does not begin where this one does.
    #[error(
        "no header of this disk leads to those that L1 holds: the disk, or l1.url, is of another deployment"
    )]
    OtherChain,
    /// What the ledger was at the fork is not on disk any more.
    #[error(
        "L1 and this disk part after batch {number}, and the fee ledger is kept from batch {kept_from} on only: move \
         data_dir away and start with an empty one, and with an execution client at its genesis"
    )]
    TooOld {
        /// The last batch on which both agree.
        number: u64,
        /// The first one that the disk can go back to.
        kept_from: u64,
    },
    /// Two headers were signed for one number, and nothing excuses them.
    #[error(
        "L1 holds header {posted} for number {number}, signed with this key, and this disk signed {ours}: two machines \
         used the key. Its bond answers for it; find the other machine, and go on with its disk, or with another key \
         (`blindfold l1 sequencer name`)"
    )]
    SignedTwo {
        /// Number of the batch in question.
        number: u64,
        /// Hash of the header that this disk signed.
        ours: B256,
        /// Hash of the header that L1 holds.
        posted: B256,
    },
    /// Two certificates exclude each other, and no header that L1 made explains it.
    #[error(
        "L1 holds header {posted} for number {number}, with a certificate, and {ours} is certified here: the committee \
         is broken. Keep this data_dir, it holds the proof; an empty one follows L1"
    )]
    TwoCertificates {
        /// Number of the batch in question.
        number: u64,
        /// Hash of the header that is certified here.
        ours: B256,
        /// Hash of the header that L1 holds.
        posted: B256,
    },
    /// The execution client takes no block back that it holds for final.
    #[error(
        "the execution client holds block {finalized} for final, and the last one that stands is {last}: stop it, give \
         it an empty data folder with the chain's genesis (`blindfold genesis`), start it and then this again; it gets \
         its blocks from here"
    )]
    ClientFinal {
        /// Number of the block that it holds for final.
        finalized: u64,
        /// The last block of which every batch stands.
        last: u64,
    },
    /// The execution client does not answer.
    #[error(
        "the execution client does not tell which block it holds for final: {0}; start again when it answers"
    )]
    Client(EngineError),
    /// What L1 holds is not taken.
    #[error("batches {first} to {last}, posted to L1, are refused here: {refusal}")]
    Refused {
        /// First number of the run.
        first: u64,
        /// Last number of the run.
        last: u64,
        /// Why the chain here refuses them.
        refusal: TrackerError,
    },
    /// The items of a header that L1 made are missing.
    #[error("what L1 forced into batch {number} is missing: {fault}")]
    Forced {
        /// Number of the batch in question.
        number: u64,
        /// Why L1 does not give it.
        fault: DataError,
    },
}

impl From<StoreError> for RebuildError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Forgotten { number, kept_from } => Self::TooOld { number, kept_from },
            error => Self::Store(error),
        }
    }
}

/// What L1 holds in place of a header here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherHeader {
    /// The header that L1 holds.
    pub header: BatchHeader,
    /// Whether L1 made it.
    pub by_l1: bool,
}

/// Where a disk and L1 part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The newest header that both hold.
    pub agreed: HeaderId,
    /// What L1 holds in place of the next one here; `None` where nothing here contradicts L1.
    pub other: Option<OtherHeader>,
    /// What L1 has above it was posted after this block.
    after: u64,
    /// L1 was read up to this block.
    finalized: u64,
}

impl Fork {
    /// Compares the disk with what was posted to final L1 blocks, the newest first. Changes nothing.
    ///
    /// # Errors
    /// [`RebuildError::L1`], [`RebuildError::Store`], [`RebuildError::OtherChain`].
    pub async fn find(
        config: &ChainConfig,
        store: &dyn Store,
        l1: &dyn L1Reader,
    ) -> Result<Self, RebuildError> {
        let (genesis, finalized) = (config.genesis_l1_origin, l1.finalized().await?.number);
        let head = store.heads().await?.sealed.map_or(0, |(number, _)| number);
        let ours = async |number: u64| -> Result<Option<B256>, StoreError> {
            match number {
                0 => Ok(Some(config.deployment.genesis_hash())),
                number if number > head => Ok(None),
                number => Ok(store.batch(number).await?.map(|record| record.hash)),
            }
        };
        let (mut other, mut posted_any) = (None, false);
        let mut through = finalized;
        while through > genesis {
            let before = through.saturating_sub(REBUILD_STEP_BLOCKS).max(genesis);
            for posting in l1.postings(before, through).await?.iter().rev() {
                let Some(first) = posting.headers.first() else { continue };
                posted_any = true;
                let after = posting.l1_block.saturating_sub(1);
                for header in posting.headers.iter().rev() {
                    let (number, hash) = (header.number, header.hash());
                    match ours(number).await? {
                        Some(ours) if ours == hash => {
                            return Ok(Self { agreed: HeaderId { number, hash }, other, after, finalized });
                        }
                        Some(_) => {
                            let by_l1 = posting.certificate.is_none();
                            other = Some(OtherHeader { header: *header, by_l1 });
                        }
                        None => {}
                    }
                }
                let (number, hash) = (first.number.saturating_sub(1), first.parent_hash);
                if ours(number).await? == Some(hash) {
                    return Ok(Self { agreed: HeaderId { number, hash }, other, after, finalized });
                }
            }
            through = before;
        }
        if posted_any {
            return Err(RebuildError::OtherChain);
        }
        let agreed = HeaderId { number: 0, hash: config.deployment.genesis_hash() };
        Ok(Self { agreed, other: None, after: finalized, finalized })
    }

    /// Whether the way back is open, before anything is changed.
    ///
    /// # Errors
    /// [`RebuildError::SignedTwo`] where the key signed what L1 holds and another header here; and
    /// [`RebuildError::ClientFinal`].
    pub async fn check(
        &self,
        config: &ChainConfig,
        store: &dyn Store,
        l1: &dyn L1Reader,
        client: &dyn ExecutionClient,
        key: Address,
    ) -> Result<(), RebuildError> {
        let Some(other) = &self.other else { return Ok(()) };
        if !other.by_l1 {
            let (number, posted) = (other.header.number, other.header.hash());
            let signer = l1.epochs().await?.sequencer_at(other.header.l1_origin_number);
            if signer.unwrap_or(config.sequencer) == key
                && let Some(ours) = store.acknowledged(number).await?.filter(|ours| *ours != posted)
            {
                return Err(RebuildError::SignedTwo { number, ours, posted });
            }
        }
        let last = store.block_through(self.agreed.number).await?.map_or(0, |(number, _)| number);
        match client.finalized().await.map_err(RebuildError::Client)? {
            Some(finalized) if finalized > last => Err(RebuildError::ClientFinal { finalized, last }),
            _ => Ok(()),
        }
    }

    /// Takes back what the disk holds above the fork, where L1 holds something else: all of it, or after a crash none.
    /// Rule O-2.
    ///
    /// # Errors
    /// [`RebuildError::TwoCertificates`], [`RebuildError::TooOld`] and the disk's.
    pub async fn go_back(&self, store: &dyn Store) -> Result<(), RebuildError> {
        let Some(other) = &self.other else {
            let agreed = self.agreed.number;
            tracing::info!(agreed, "nothing on this disk contradicts L1: nothing is taken back");
            return Ok(());
        };
        let heads = store.heads().await?;
        let (number, posted) = (other.header.number, other.header.hash());
        if !other.by_l1 && heads.certified.is_some_and(|certified| certified >= number) {
            let ours = store.batch(number).await?.map_or(B256::ZERO, |record| record.hash);
            return Err(RebuildError::TwoCertificates { number, ours, posted });
        }
        // Nothing of before a header that L1 made is accepted after it (G-1).
        let outcome = other.by_l1.then_some(EnvelopeError::WrongGeneration.as_str());
        store.rewind(self.agreed.number, outcome).await?;
        tracing::warn!(
            kept = self.agreed.number,
            dropped = heads.sealed.map_or(0, |(number, _)| number).saturating_sub(self.agreed.number),
            certified = heads.certified,
            %posted,
            by_l1 = other.by_l1,
            "went back to the last header that L1 holds, too"
        );
        Ok(())
    }

    /// The header here and the one on L1 of the fork's number, where L1 did not make the latter and one key signed both:
    /// the proof of a misdeed, which goes with what is taken back. `None` where L1 has no whole data beside that header.
    ///
    /// # Errors
    /// L1's and the disk's.
    pub async fn signed_twice(
        &self,
        config: &ChainConfig,
        store: &dyn Store,
        l1: &dyn L1Reader,
    ) -> Result<Option<(SignedHeader, SignedHeader)>, RebuildError> {
        let Some(other) = self.other.filter(|other| !other.by_l1) else { return Ok(None) };
        let number = other.header.number;
        let Some(ours) = store.batch(number).await? else { return Ok(None) };
        let ours = ours.sealed.signed_header();
        let mut after = self.after;
        while after < self.finalized {
            let through = self.finalized.min(after.saturating_add(REBUILD_STEP_BLOCKS));
            for posting in l1.postings(after, through).await? {
                let Ok(batches) = posting.data.whole() else { continue };
                let posted = batches.iter().map(SealedBatch::signed_header);
                let Some(posted) = posted.into_iter().find(|posted| posted.header == other.header) else {
                    continue;
                };
                let signer = ours.signer(&config.deployment);
                let twice = signer.is_ok() && signer == posted.signer(&config.deployment);
                return Ok(twice.then_some((ours, posted)));
            }
            after = through;
        }
        Ok(None)
    }

    /// Takes what L1 has above the fork: the headers that it made, certificates, and certified runs as far as their data
    /// came along. What lacks, members have. What a sequencer's `key` signed is on disk as signed before the header is, and
    /// `before` has seen each certificate before it is on disk.
    ///
    /// # Errors
    /// [`RebuildError::SignedTwo`], [`RebuildError::Refused`], L1's and the disk's.
    pub async fn take_posted(
        &self,
        tracker: &Tracker,
        l1: &dyn L1Reader,
        key: Option<Address>,
        before: impl AsyncFn(&Certificate),
    ) -> Result<(), RebuildError> {
        let mut after = self.after;
        while after < self.finalized {
            let through = self.finalized.min(after.saturating_add(REBUILD_STEP_BLOCKS));
            for posting in l1.postings(after, through).await? {
                if let Some(certificate) = &posting.certificate {
                    before(certificate).await;
                }
                if !take(tracker, &posting, key).await? {
                    let (first, last) = posting.numbers();
                    tracing::warn!(first, last, "L1 has no whole data of these batches beside their headers");
                    return Ok(());
                }
            }
            after = through;
        }
        Ok(())
    }
}

/// Takes one posting. False where its data is not whole.
async fn take(tracker: &Tracker, posting: &Posting, key: Option<Address>) -> Result<bool, RebuildError> {
    let (first, last) = posting.numbers();
    if last <= tracker.certified().number {
        return Ok(true);
    }
    let refused = |refusal| RebuildError::Refused { first, last, refusal };
    let made = made_by_l1(posting).map_err(|fault| RebuildError::Forced { number: first, fault })?;
    if let Some(made) = made {
        tracker.accept_l1_header(&made).await.map_err(refused)?;
        return Ok(true);
    }
    let Some(certificate) = &posting.certificate else { return Ok(true) };
    if last <= tracker.head().number {
        tracker.accept_certificate(certificate).await.map_err(refused)?;
        return Ok(true);
    }
    let Ok(batches) = posting.data.whole() else { return Ok(false) };
    if !batches.iter().all(|batch| tracker.is_signed(batch)) {
        return Ok(false);
    }
    if let Some(key) = key {
        for batch in &batches {
            note_signed(tracker, batch, key).await?;
        }
    }
    let run: Vec<Arc<SealedBatch>> = batches.into_iter().map(Arc::new).collect();
    match tracker.accept_certified_run(&run, certificate).await {
        Ok(_) => Ok(true),
        Err(refusal) if refusal.next_step() == NextStep::Reject => {
            tracing::warn!(first, last, %refusal, "posted data is not taken");
            Ok(false)
        }
        Err(refusal) => Err(refused(refusal)),
    }
}

/// What the key signed binds before the header is here.
async fn note_signed(tracker: &Tracker, batch: &SealedBatch, key: Address) -> Result<(), RebuildError> {
    let header = &batch.header;
    let (number, posted) = (header.number, header.hash());
    if batch.signed_header().signer(&tracker.config().deployment) != Ok(key) {
        return Ok(());
    }
    match tracker.store().put_acknowledged(number, posted, header.l1_origin_number).await {
        Err(StoreError::Conflict { stored, .. }) => {
            Err(RebuildError::SignedTwo { number, ours: stored, posted })
        }
        written => Ok(written?),
    }
}

/// Keeps on disk what it takes to go back to what L1 holds, and no more, where no [`Settlement`](crate::Settlement) does.
pub struct WayBack {
    tracker: Tracker,
    /// A header that was certified here when L1 was asked last: once it is posted, nobody goes back before it.
    next: Mutex<u64>,
    /// Whether there may be something on disk from before.
    forgets: AtomicBool,
}

impl WayBack {
    /// Begins to keep it.
    ///
    /// # Errors
    /// The disk's.
    pub async fn open(tracker: Tracker) -> Result<Self, StoreError> {
        tracker.store().keep_ledgers_from(0).await?;
        let next = Mutex::new(tracker.certified().number);
        Ok(Self { tracker, next, forgets: AtomicBool::new(true) })
    }

    /// [`Tracker::follow_l1`], and forgets the way back to before what is posted.
    ///
    /// # Errors
    /// As [`Tracker::follow_l1`]. Nothing is forgotten then: another header may be what is posted.
    pub async fn follow_l1(
        &self,
        l1: &dyn L1Reader,
    ) -> Result<Vec<(Arc<SealedBatch>, Applied)>, TrackerError> {
        let next = *self.next.lock();
        // Asked first: what L1 made up to there is final then, and contradicted by what comes next.
        let posted = matches!(l1.posted_at(next).await, Ok(Some(_)));
        let taken = self.tracker.follow_l1().await?;
        let mut from = None;
        if posted || next == 0 {
            *self.next.lock() = self.tracker.certified().number;
            from = Some(next.saturating_sub(KEPT_POSTED_HEADERS));
        }
        if let Err(error) = self.keep(from).await {
            tracing::warn!(%error, "what the ledger was before posted headers is not forgotten yet");
        }
        Ok(taken)
    }

    /// Keeps ledgers from a header on, and forgets some of those before.
    async fn keep(&self, from: Option<u64>) -> Result<(), StoreError> {
        let store = self.tracker.store();
        if let Some(from) = from {
            store.keep_ledgers_from(from).await?;
            self.forgets.store(true, Ordering::Relaxed);
        }
        if self.forgets.load(Ordering::Relaxed) {
            self.forgets.store(forget_ledgers(store.as_ref()).await?, Ordering::Relaxed);
        }
        Ok(())
    }
}

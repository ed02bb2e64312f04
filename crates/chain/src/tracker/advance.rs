//! Adding a header: one that came from outside, or one that we seal.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_protocol::validity::{
    self, AppliedBatch, CheckedItem, HeaderError, L1Facts, SealError, Verdict,
};
use blindfold_protocol::{BatchHeader, Epoch, SealedBatch, Signature65};
use blindfold_runtime::{now, rng};
use blindfold_store::StoreError;
use blindfold_telemetry::traces;
use tokio::time::{Duration, sleep, timeout};

use super::{Applied, HeaderId, Tracker, TrackerError, check_items};
use crate::l1::{L1Error, L1News, L1Origin, origin_facts};
use crate::limits::{EPOCHS_PATIENCE_MS, MAX_UNCERTIFIED_HEADERS, SIGNER_PATIENCE_MS, SIGNER_PAUSE_MS};
use crate::records::{Maker, sealed_record, verdicts};
use crate::{HeaderSigner, SignerError};

/// A header that this process sealed.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The signed header and its items: durable, ready to be announced.
    pub batch: Arc<SealedBatch>,
    /// Hash of the new header.
    pub hash: B256,
    /// One verdict for each item, in order.
    pub verdicts: Vec<Verdict>,
}

/// Why nothing was sealed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// As many headers wait for a certificate as may.
    #[error("{limit} headers wait for a certificate already")]
    TooManyUncertified {
        /// How many headers may wait.
        limit: u64,
    },
    /// No registered epoch contains the next number.
    #[error("no epoch is registered for number {number}")]
    NoEpoch {
        /// The number that was to be sealed.
        number: u64,
    },
    /// The next number's epoch does not certify yet: L1 has to get there.
    #[error("the epoch of number {number} counts from L1 block {counts_from} on, L1 is final up to {origin}")]
    EpochNotInForce {
        /// The number that was to be sealed.
        number: u64,
        /// The L1 block from which on the epoch counts.
        counts_from: u64,
        /// The origin that was to be sealed with.
        origin: u64,
    },
    /// Headers with this origin are signed with another key: our time is over, or has not come.
    #[error("headers with L1 origin {origin} are {sequencer}'s to sign")]
    NotOurs {
        /// The origin that was to be sealed with.
        origin: u64,
        /// Address of the key that counts there.
        sequencer: Address,
    },
    /// From the next number on the chain has other rules than this build knows.
    #[error("number {number} has the rule set {rules}, which this build does not know: install a newer one")]
    UnknownRules {
        /// The number that was to be sealed.
        number: u64,
        /// The rule set that L1 schedules.
        rules: u16,
    },
    /// L1 cannot be asked for what it said since the parent's origin.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The rule does not allow such a header: time, origin, sums over the second.
    #[error(transparent)]
    Rule(#[from] SealError),
    /// The disk did not take the header.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The header is stored and not signed: whoever seals next has it signed first.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The process is shutting down.
    #[error("shutting down")]
    Stopped,
}

/// What L1 said to a header: everything after a block up to the origin, and the forced queue as it stood there. All of it
/// is final, so it stays true.
pub(super) struct Said {
    origin: L1Origin,
    /// The key that signs headers with this origin.
    sequencer: Address,
    after: u64,
    /// The entry of the forced queue from which it was read: of those before, it knows nothing.
    cursor: u64,
    news: L1News,
}

impl Said {
    fn facts(&self) -> L1Facts {
        self.news.clone().into_facts(origin_facts(&self.origin), self.sequencer)
    }

    /// What it says to a header with this origin, if all is here.
    fn again(&self, after: u64, origin: u64, cursor: u64) -> Option<Self> {
        let covers = self.origin.number == origin && self.after <= after && after <= origin;
        let news = self.news.part(after, origin, cursor).filter(|_| covers && self.cursor <= cursor)?;
        Some(Self { origin: self.origin, sequencer: self.sequencer, after, cursor, news })
    }
}

/// The envelopes among these items, for traces.
fn ids(items: &[CheckedItem]) -> Vec<[u8; 32]> {
    items.iter().flatten().map(|envelope| envelope.id.0).collect()
}

impl Tracker {
    /// Checks everything about a header and its items, and adds it to the chain.
    ///
    /// Verifies the sequencer's signature, asks L1 for the origin and what it said since the parent's, recomputes every
    /// field, and has header, items, verdicts and accounts on disk before it returns. A header that is known already is
    /// answered with what was computed then. One that nobody signed is taken only if L1 says that it made it.
    pub async fn apply_sealed(&self, sealed: &Arc<SealedBatch>) -> Result<Applied, TrackerError> {
        let (tracker, sealed) = (self.clone(), Arc::clone(sealed));
        self.exclusively(async move { tracker.apply_sealed_locked(&sealed, MAX_UNCERTIFIED_HEADERS).await })
            .await
            .unwrap_or(Err(TrackerError::Stopped))
    }

    /// [`apply_sealed`](Self::apply_sealed) for a caller that holds the writer's lock, with its own limit of headers that
    /// wait for a certificate.
    pub(super) async fn apply_sealed_locked(
        &self,
        batch: &Arc<SealedBatch>,
        limit: u64,
    ) -> Result<Applied, TrackerError> {
        let header = &batch.header;
        let number = header.number;
        let offered = header.hash();
        if batch.claims_l1() {
            return self.apply_claimed_locked(batch).await;
        }
        // The signature first: nothing else about the header costs anyone but a sequencer. A key is named long before it
        // counts, so one that is not known signs nothing.
        let deployment = &self.shared.config.deployment;
        let invalid = |fault| TrackerError::Invalid { number, fault };
        let signed = batch.signed_header();
        let signer = signed.signer(deployment).map_err(|fault| invalid(HeaderError::Signature(fault)))?;
        if !self.is_sequencer(signer) {
            return Err(invalid(HeaderError::Signer(signer)));
        }
        let sequencer = self.sequencer_of(header).await?;
        validity::check_signature(&signed, deployment, &sequencer).map_err(invalid)?;
        if number <= self.head().number {
            if !self.is_left_over(header, offered).await? {
                return self.known(number, offered).await;
            }
            self.take_back(number).await?;
        }
        let head = self.head();
        if number > head.number + 1 {
            return Err(TrackerError::Behind { expected: head.number + 1, offered: number });
        }
        let certified = self.certified();
        if header.parent_hash != head.hash && head.number > certified.number {
            return Err(TrackerError::AncestorDiffers { number: head.number, parent: header.parent_hash });
        }
        if self.too_many_uncertified(header.l1_origin_number, limit).await? {
            return Err(TrackerError::TooManyUncertified { number, limit });
        }
        let epoch = Arc::new(self.epoch(number).await?);
        let (origin, counts_from) = (header.l1_origin_number, epoch.counts_from);
        if origin < counts_from {
            let epoch = epoch.epoch;
            return Err(TrackerError::EpochNotInForce { number, epoch, counts_from, origin });
        }
        let started = now();
        let said = self.said_to(header, sequencer).await?;
        self.follows_what_l1_made(header, offered).await?;
        let facts = said.facts();
        let items = check_items(&self.shared.config, &epoch, batch).await?;
        let applied = self
            .shared
            .state
            .write()
            .apply(header, &items, &batch.items, &epoch, &facts)
            .map_err(|fault| TrackerError::Invalid { number, fault })?;
        let verdicts = applied.verdicts.clone();
        self.make_durable(batch, &items, applied, Maker::Sequencer).await?;
        traces::batch_has(number, || ids(&items));
        traces::batch(number, "apply", started);
        *self.shared.said.write() = Some(said);
        Ok(Applied { number, hash: offered, verdicts, items: Some(Arc::new(items)) })
    }

    /// Seals the next header over `items`, signs it and makes it durable. The caller announces it.
    ///
    /// The first `forced` items are the next entries of the forced queue, as L1 gives them up to the origin. `items`
    /// come after them in the order to commit, checked for the epoch of the next number, each with its bytes; whatever
    /// the validity rule does not accept becomes a skipped item, so callers ask [`Tracker::admissible`] before.
    pub async fn seal(
        &self,
        timestamp_ms: u64,
        forced: usize,
        items: Vec<(Vec<u8>, CheckedItem)>,
        origin: &L1Origin,
        signer: &Arc<dyn HeaderSigner>,
    ) -> Result<Sealed, SealingError> {
        let (tracker, origin, signer) = (self.clone(), *origin, Arc::clone(signer));
        self.exclusively(async move {
            tracker.seal_locked(timestamp_ms, forced, items, &origin, signer.as_ref()).await
        })
        .await
        .unwrap_or(Err(SealingError::Stopped))
    }

    async fn seal_locked(
        &self,
        timestamp_ms: u64,
        forced: usize,
        items: Vec<(Vec<u8>, CheckedItem)>,
        origin: &L1Origin,
        signer: &dyn HeaderSigner,
    ) -> Result<Sealed, SealingError> {
        let started = now();
        let head = self.head();
        let number = head.number + 1;
        if self.too_many_uncertified(origin.number, MAX_UNCERTIFIED_HEADERS).await? {
            return Err(SealingError::TooManyUncertified { limit: MAX_UNCERTIFIED_HEADERS });
        }
        let epoch = self.epoch_at(number, origin.number).await.map_err(|refusal| match refusal {
            TrackerError::L1(fault) => SealingError::L1(fault),
            TrackerError::UnknownRules { rules, .. } => SealingError::UnknownRules { number, rules },
            _ => SealingError::NoEpoch { number },
        })?;
        if origin.number < epoch.counts_from {
            let counts_from = epoch.counts_from;
            return Err(SealingError::EpochNotInForce { number, counts_from, origin: origin.number });
        }
        let sequencer = self.sequencer_at(origin.number).await?;
        if sequencer != signer.address() {
            return Err(SealingError::NotOurs { origin: origin.number, sequencer });
        }
        let said = Said {
            origin: *origin,
            sequencer,
            after: head.l1_origin,
            cursor: head.forced_cursor,
            news: self.news_up_to(origin.number).await?,
        };
        let facts = said.facts();
        let entries = facts.forced.iter().take(forced);
        let first = self.check_forced(&epoch, entries.map(|entry| entry.item.to_vec()).collect()).await;
        let first = first.ok_or(SealingError::Stopped)?;
        let (bytes, checked): (Vec<_>, Vec<_>) = first.into_iter().chain(items).unzip();
        let (header, applied) =
            self.shared.state.write().seal(timestamp_ms, &checked, &bytes, forced, &epoch, &facts)?;
        let hash = header.hash();
        let digest = header.signing_digest(&self.shared.config.deployment);
        // What is sent to a server before it is durable may be kept and shown although it is never durable.
        let key = signer.key().filter(|_| !self.shared.store.shows_early());
        let signature = key.map_or(Signature65::NONE, |key| key.sign(&digest));
        let verdicts = applied.verdicts.clone();
        let mut batch = SealedBatch { header, signature, items: bytes };
        self.make_durable(&batch, &checked, applied, Maker::Us).await?;
        if signature == Signature65::NONE {
            batch.signature = self.sign_stored(&header, signer).await?;
            self.show_sealed();
        }
        traces::batch_has(number, || ids(&checked));
        traces::batch(number, "seal", started);
        *self.shared.said.write() = Some(said);
        Ok(Sealed { batch: Arc::new(batch), hash, verdicts })
    }

    /// Has the newest header signed, if whoever stored it ended before it was. Nothing is announced, nor sealed above it,
    /// before that.
    ///
    /// # Errors
    /// [`SealingError::Signer`], [`SealingError::Store`].
    pub async fn sign_newest(&self, signer: &dyn HeaderSigner) -> Result<(), SealingError> {
        let Some(record) = self.shared.store.batch(self.head().number).await? else { return Ok(()) };
        if record.is_signed() {
            return Ok(());
        }
        let origin = record.sealed.header.l1_origin_number;
        let sequencer = self.sequencer_at(origin).await?;
        if sequencer != signer.address() {
            return Err(SealingError::NotOurs { origin, sequencer });
        }
        self.sign_stored(&record.sealed.header, signer).await.map(drop)
    }

    async fn sign_stored(
        &self,
        header: &BatchHeader,
        signer: &dyn HeaderSigner,
    ) -> Result<Signature65, SealingError> {
        let deadline = now() + Duration::from_millis(SIGNER_PATIENCE_MS);
        let signature = loop {
            match signer.sign_header(header).await {
                Ok(signature) => break signature,
                Err(fault @ SignerError::Unavailable(_)) if now() < deadline => {
                    tracing::warn!(%fault, number = header.number, "a stored header is not signed yet");
                    sleep(Duration::from_millis(SIGNER_PAUSE_MS)).await;
                }
                Err(fault) => return Err(fault.into()),
            }
        };
        // Nothing may be sealed above it before: only the newest header is ever without its signature.
        loop {
            match self.shared.store.put_signature(header.number, signature).await {
                Ok(()) => return Ok(signature),
                Err(fault) if fault.retry() && now() < deadline => {
                    tracing::warn!(%fault, number = header.number, "a signature is not stored yet");
                    sleep(Duration::from_millis(SIGNER_PAUSE_MS)).await;
                }
                Err(fault) if fault.retry() => {
                    return Err(
                        SignerError::Unavailable(format!("the signature is not stored: {fault}")).into()
                    );
                }
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// [`Tracker::known`] for a batch that was pruned.
    async fn pruned(&self, number: u64, offered: B256) -> Result<Applied, TrackerError> {
        match self.shared.store.header_hash(number).await?.unwrap_or_default() {
            known if known == offered => {
                Ok(Applied { number, hash: offered, verdicts: Vec::new(), items: None })
            }
            known => Err(TrackerError::Second { number, known, offered }),
        }
    }

    /// Answers for a number that has a header already.
    async fn known(&self, number: u64, offered: B256) -> Result<Applied, TrackerError> {
        let record = match self.shared.store.batch(number).await {
            // Of a pruned batch the hash is here, and nobody asks for more.
            Err(pruned) if pruned.is_pruned() => return self.pruned(number, offered).await,
            record => record?,
        };
        let Some(record) = record else {
            // Genesis has no batch; every other number up to the head has one.
            return Err(TrackerError::Second { number, known: self.head().hash, offered });
        };
        if record.hash == offered {
            return Ok(Applied { number, hash: offered, verdicts: verdicts(&record)?, items: None });
        }
        Err(if record.by_l1 {
            TrackerError::ReplacedByL1 { number, made: record.hash, offered }
        } else {
            TrackerError::Second { number, known: record.hash, offered }
        })
    }

    /// What L1 says to a header: its origin, and everything since the parent's. An origin that did not change, or was
    /// read ahead, needs no L1, so that headers are checked while it is away.
    async fn said_to(&self, header: &BatchHeader, sequencer: Address) -> Result<Said, TrackerError> {
        let (number, origin) = (header.number, header.l1_origin_number);
        let (after, cursor) = (self.head().l1_origin, self.head().forced_cursor);
        let known = self.shared.said.read().as_ref().and_then(|said| said.again(after, origin, cursor));
        if let Some(said) = known {
            return Ok(said);
        }
        let found = match self.origin_at_hand(origin) {
            Some(found) => Some(found),
            None => self.shared.l1.origin(origin).await?,
        };
        let Some(found) = found else {
            return Err(TrackerError::OriginNotFinal { number, origin });
        };
        let news = match self.at_hand(after, origin, cursor) {
            Some(news) => news,
            None => self.news_up_to(origin).await?,
        };
        Ok(Said { origin: found, sequencer, after, cursor, news })
    }

    /// A header has to follow what L1 made up to its origin: else another one could be signed for its number that does, with
    /// as new an origin, and nothing would excuse the two. Asked where the origin is a new one, and not for long: an L1 that
    /// is away makes nothing known.
    async fn follows_what_l1_made(&self, header: &BatchHeader, offered: B256) -> Result<(), TrackerError> {
        if header.l1_origin_number == self.head().l1_origin {
            return Ok(());
        }
        let number = self.certified().number + 1;
        let asked = self.shared.l1.l1_header(number);
        match timeout(Duration::from_millis(EPOCHS_PATIENCE_MS), asked).await {
            Ok(Ok(Some(made))) if made.l1_block <= header.l1_origin_number => {
                Err(TrackerError::ReplacedByL1 { number, made: made.header.hash(), offered })
            }
            _ => Ok(()),
        }
    }

    /// What L1 says from the head's origin up to this one.
    async fn news_up_to(&self, origin: u64) -> Result<L1News, L1Error> {
        let head = self.head();
        if origin < head.l1_origin {
            // An origin before the parent's breaks the rule, which says so itself.
            return Ok(L1News::default());
        }
        self.shared.l1.facts(head.l1_origin, origin, head.forced_cursor).await
    }

    /// Checks forced items by themselves, off the async threads. `None` when the runtime shuts down.
    async fn check_forced(&self, epoch: &Epoch, items: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, CheckedItem)>> {
        if items.is_empty() {
            return Some(Vec::new());
        }
        let (config, epoch) = (Arc::clone(&self.shared.config), epoch.clone());
        let check = move || {
            let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
            let checked = validity::check_items(&config, &epoch, &slices, &mut rng());
            items.into_iter().zip(checked).collect()
        };
        blindfold_runtime::blocking(check).await.ok()
    }

    /// Shows the head, which is on disk, and its ledger. For whoever holds the writer's lock: nobody else's head is it.
    pub(super) fn show_sealed(&self) -> HeaderId {
        let (header, tree) = self.with_state(|state| {
            let head = state.head();
            (HeaderId { number: head.number, hash: head.hash }, state.ledger().tree().clone())
        });
        self.shared.ledgers.show(header, tree);
        self.shared.sealed.send_replace(header);
        header
    }

    /// Puts what was applied in memory on disk, or takes it back.
    pub(super) async fn make_durable(
        &self,
        batch: &SealedBatch,
        items: &[CheckedItem],
        applied: AppliedBatch,
        maker: Maker,
    ) -> Result<(), StoreError> {
        let record = sealed_record(batch, items, &applied, maker);
        let (number, hash) = (applied.number, applied.header_hash);
        match self.shared.store.put_sealed(record).await {
            Ok(()) => {
                let id = HeaderId { number, hash };
                // One that is still to be signed is not to be seen.
                if maker != Maker::Us || batch.signature != Signature65::NONE {
                    self.show_sealed();
                }
                if matches!(maker, Maker::L1(_)) {
                    self.shared.certified.send_replace(id);
                }
                Ok(())
            }
            Err(error) => {
                // Nothing came in between: the writer's lock is held.
                if let Err(fault) = self.shared.state.write().revert(applied) {
                    tracing::error!(%fault, "the state in memory is ahead of the disk: restart");
                }
                Err(error)
            }
        }
    }
}

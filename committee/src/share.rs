//! Releasing: a share against a certificate, a singleton share for one envelope of a certified batch.
//!
//! A share says what t members' shares together open, so it leaves this process only for the header that this
//! member validated itself and that a valid certificate covers: the certificate of the number or of a descendant on
//! our chain. It leaves it no more once L1 may soon declare the batch void (`unreleased`). Both kinds of share are a
//! function of key and ciphertexts alone; giving one twice says nothing new, and the bounded memory below only saves work.

use std::{hash::Hash, num::NonZeroUsize, sync::Arc};

use blindfold_bte::{Backend, CiphertextPoint};
use blindfold_chain::{NextStep, TrackerError};
use blindfold_protocol::{
    B256, Canonical, Certificate, CertifiedBatch, Envelope, Epoch, ReleaseShare, SingletonShare, certificate,
    validity::cut,
};
use blindfold_rpc::{Encoded, RpcError, types::HeldBatch};
use blindfold_runtime::now;
use blindfold_store::{BatchRecord, StoreError};
use blindfold_telemetry::traces;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::{
    member::Context,
    pace::{Pace, Turn},
};

/// Why no share is given. Stable names by [`ShareRequestError::as_str`].
#[derive(Debug, thiserror::Error)]
pub enum ShareRequestError {
    /// The certificate does not stand: forged, of another epoch or deployment, too few signers.
    #[error("the certificate does not stand: {0}")]
    BadCertificate(TrackerError),
    /// The certificate is for an earlier number and says nothing about this one.
    #[error("the certificate of {certificate} does not cover {number}")]
    DoesNotCover {
        /// Number of the batch that was asked for.
        number: u64,
        /// The number that the certificate names.
        certificate: u64,
    },
    /// The certificate stands, but this member does not have, or has not validated, its header yet.
    #[error("header {number} is not validated here yet")]
    NotValidatedHere {
        /// The number that the certificate names.
        number: u64,
    },
    /// Nothing certified under this number here.
    #[error("number {number} is not certified here")]
    NotCertified {
        /// Number of the batch that was asked for.
        number: u64,
    },
    /// The number belongs to another committee, or its key is another one.
    #[error("this member's key is not in the committee of number {number}")]
    NotAMember {
        /// Number of the batch that was asked for.
        number: u64,
    },
    /// The batch has fewer items.
    #[error("batch {number} has {count} items, there is no item {index}")]
    NoSuchItem {
        /// Number of the batch that was asked for.
        number: u64,
        /// The index that was asked for.
        index: u32,
        /// How many items the batch has.
        count: usize,
    },
    /// The item was skipped: it has no position and is not released.
    #[error("item {index} of batch {number} was skipped ({reason})")]
    ItemSkipped {
        /// Number of the batch that was asked for.
        number: u64,
        /// The index that was asked for.
        index: u32,
        /// Why it was skipped, by the validity rule.
        reason: String,
    },
    /// The batch was posted long ago, or may have been in a block that is not final yet, and no hints of it are on L1,
    /// so L1 may declare it void.
    #[error(
        "batch {number} was posted from L1 block {posted_at} on and has no hints on L1: it may become void"
    )]
    UnreleasedTooLong {
        /// Number of the batch that was asked for.
        number: u64,
        /// The L1 block of its posting, or the first that is not final.
        posted_at: u64,
    },
    /// The batch could have been posted long ago and is not, so L1 may make a header in its place.
    #[error("batch {number} with the L1 origin {origin} is not posted: L1 may make a header in its place")]
    UnpostedTooLong {
        /// Number of the batch that was asked for.
        number: u64,
        /// L1 origin of its header.
        origin: u64,
    },
    /// The end of the batch's epoch is about to be due, and L1 takes nothing certified of it then.
    #[error("batch {number} is not posted, and the end of its epoch is due after L1 block {until}")]
    EpochEnds {
        /// Number of the batch that was asked for.
        number: u64,
        /// The last L1 block before the end is due.
        until: u64,
    },
    /// L1 made a header, in a block that may not be final yet, in the place of this batch's or of one below it.
    #[error("L1 made header {made} for number {number}: nothing of the branch that it ended is opened")]
    OverruledByL1 {
        /// Number of the header that L1 made.
        number: u64,
        /// Hash of that header.
        made: B256,
    },
    /// Too many calls wait for the threads that compute shares.
    #[error("too many calls wait for shares")]
    Busy,
    /// L1 cannot be asked for the epoch, or the process is stopping.
    #[error("cannot judge now: {0}")]
    Unavailable(TrackerError),
    /// The disk failed, or holds damaged records.
    #[error("storage: {0}")]
    Store(#[from] StoreError),
    /// What is on disk contradicts itself, or the key does not fit the batch.
    #[error("the share cannot be computed: {0}")]
    Internal(String),
}

impl ShareRequestError {
    /// A stable name, in snake case.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BadCertificate(refusal) => refusal.as_str(),
            Self::DoesNotCover { .. } => "certificate_does_not_cover",
            Self::NotValidatedHere { .. } => "not_validated_here",
            Self::NotCertified { .. } => "not_certified",
            Self::NotAMember { .. } => "not_a_member",
            Self::NoSuchItem { .. } => "no_such_item",
            Self::ItemSkipped { .. } => "item_skipped",
            Self::UnreleasedTooLong { .. } => "unreleased_too_long",
            Self::UnpostedTooLong { .. } => "unposted_too_long",
            Self::EpochEnds { .. } => "epoch_ends",
            Self::OverruledByL1 { .. } => "overruled_by_l1",
            Self::Busy => "busy",
            Self::Unavailable(refusal) => refusal.as_str(),
            Self::Store(_) => "storage",
            Self::Internal(_) => "internal",
        }
    }
}

impl From<ShareRequestError> for RpcError {
    fn from(refusal: ShareRequestError) -> Self {
        let reason = refusal.as_str();
        match &refusal {
            ShareRequestError::BadCertificate(_)
            | ShareRequestError::DoesNotCover { .. }
            | ShareRequestError::NotAMember { .. }
            | ShareRequestError::NoSuchItem { .. }
            | ShareRequestError::UnreleasedTooLong { .. }
            | ShareRequestError::ItemSkipped { .. } => Self::refused(reason, refusal),
            ShareRequestError::NotValidatedHere { .. }
            | ShareRequestError::UnpostedTooLong { .. }
            | ShareRequestError::EpochEnds { .. }
            | ShareRequestError::OverruledByL1 { .. }
            | ShareRequestError::NotCertified { .. }
            | ShareRequestError::Unavailable(_) => Self::unavailable(reason, refusal),
            ShareRequestError::Busy => Self::busy(reason, refusal),
            ShareRequestError::Store(_) | ShareRequestError::Internal(_) => Self::internal(refusal),
        }
    }
}

/// Calls whose certificates wait to be verified at most: forged ones crowd out each other and nobody else, for what is
/// certified here needs no verifying.
const MAX_VERIFYING_CALLS: usize = 8;

type Once<T> = Arc<OnceCell<T>>;

/// Batches kept in memory for singletons: 8 MB each at most. For strangers there are fewer.
const SINGLETON_BATCHES: usize = 4;
const SINGLETON_BATCHES_OF_STRANGERS: usize = 1;
/// Shares of batches kept in memory that only strangers asked for.
const SHARES_OF_STRANGERS: usize = 8;

/// Computes shares on a bounded number of threads and remembers a bounded number of them.
pub(crate) struct ShareService {
    context: Arc<Context>,
    /// Everybody who asks for shares.
    open: Places,
    /// Hint publishers and other peers who proved who they are: nobody else takes their places.
    kept: Places,
    /// Everybody who reads what is held.
    readers: Arc<Semaphore>,
    /// Sequencer and members who read what is held.
    peer_readers: Arc<Semaphore>,
    /// One pairing at a time, beside the threads that compute shares.
    pairing: tokio::sync::Mutex<()>,
    /// Bounds how many compute at once, whoever asks.
    threads: Arc<Semaphore>,
    backend: Arc<dyn Backend>,
    singletons: Mutex<LruCache<(u64, u32), Once<SingletonShare>>>,
    /// Certificates that were accepted; the certified head never falls, so they stay good.
    accepted: Mutex<LruCache<Certificate, ()>>,
    missing: Notify,
}

/// A share, and the L1 origin of its batch.
#[derive(Clone)]
struct Kept {
    share: ReleaseShare,
    origin: u64,
}

/// Places of those who ask for shares, and what is kept in memory for them.
struct Places {
    /// Who is owed a share, waiting or computing.
    queue: Arc<Semaphore>,
    /// Who asks for single envelopes' shares: half as many, so that whole batches always find a place.
    singleton_queue: Arc<Semaphore>,
    /// Whose certificate has to be verified first.
    verifying: Arc<Semaphore>,
    /// How much work is done for what is not in memory; `None`: as much as is asked for. An old batch has to be read and
    /// its share computed anew, which is dear, and whoever asks pays a few hundred bytes.
    pace: Option<Pace>,
    shares: Mutex<LruCache<(u64, B256), Once<Kept>>>,
    /// Certified batches that singletons are asked of: of a flood of malformed envelopes each is decoded once.
    records: Mutex<LruCache<u64, Once<Arc<BatchRecord>>>>,
}

impl Places {
    fn new(calls: usize, pace: Option<Pace>, shares: usize, records: usize) -> Self {
        Self {
            queue: Arc::new(Semaphore::new(calls)),
            singleton_queue: Arc::new(Semaphore::new(calls.div_ceil(2))),
            verifying: Arc::new(Semaphore::new(MAX_VERIFYING_CALLS)),
            pace,
            shares: memory(shares),
            records: memory(records),
        }
    }

    /// Leave to work on what is not in memory.
    fn turn(&self) -> Result<Option<Turn>, ShareRequestError> {
        self.pace.as_ref().map(|pace| pace.turn().ok_or(ShareRequestError::Busy)).transpose()
    }
}

impl ShareService {
    pub(crate) fn new(context: Arc<Context>) -> Arc<Self> {
        let limits = &context.config.limits;
        let backend: Arc<dyn Backend> = Arc::from(blindfold_bte::auto(limits.share_threads));
        let overruled = context.metrics.overruled.clone();
        backend.on_overruled(Box::new(move |check| overruled.get(&[check.name()]).increment()));
        Arc::new(Self {
            open: Places::new(
                limits.share_queue_calls,
                Some(Pace::new()),
                SHARES_OF_STRANGERS.min(limits.share_cache_batches),
                SINGLETON_BATCHES_OF_STRANGERS,
            ),
            kept: Places::new(limits.share_queue_calls, None, limits.share_cache_batches, SINGLETON_BATCHES),
            readers: Arc::new(Semaphore::new(limits.share_queue_calls)),
            peer_readers: Arc::new(Semaphore::new(limits.share_queue_calls)),
            pairing: tokio::sync::Mutex::default(),
            threads: Arc::new(Semaphore::new(limits.share_threads)),
            backend,
            singletons: memory(limits.singleton_cache_entries),
            accepted: memory(limits.certificate_cache_entries),
            missing: Notify::new(),
            context,
        })
    }

    /// Resolves when somebody showed a valid certificate for a header that is not here.
    pub(crate) async fn missing_batch(&self) {
        self.missing.notified().await;
    }

    /// Computes the share of a header that was just validated, so that it is there when the certificate comes. It
    /// stays in memory. Does nothing when the threads are taken.
    pub(crate) fn prepare(self: &Arc<Self>, number: u64) {
        if self.threads.available_permits() == 0 {
            return;
        }
        let service = Arc::clone(self);
        self.context.spawner.run("shares", async move {
            let Ok(epoch) = service.context.tracker.epoch(number).await else { return };
            if !service.context.is_member_of(&epoch) {
                return;
            }
            if let Ok(Some(record)) = service.context.tracker.store().batch(number).await
                && let Err(refusal) = service.share_of(record, epoch, &service.kept).await
            {
                tracing::debug!(number, %refusal, "share not prepared");
            }
        });
    }

    /// With its places and its turn although whoever asked hangs up: else the work would be free, and lost.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ShareRequestError>> + Send + 'static,
    ) -> Result<T, ShareRequestError> {
        let ended = self.context.spawner.to_the_end("shares", work).await;
        ended.unwrap_or(Err(ShareRequestError::Unavailable(TrackerError::Stopped)))
    }

    /// The member's share of `number`, against a certificate for it or for a descendant on our chain.
    pub(crate) async fn share(
        self: &Arc<Self>,
        number: u64,
        certificate: &Certificate,
        to_peer: bool,
    ) -> Result<ReleaseShare, ShareRequestError> {
        let (service, certificate) = (Arc::clone(self), *certificate);
        self.to_the_end(async move { service.find_share(number, &certificate, to_peer).await }).await
    }

    async fn find_share(
        &self,
        number: u64,
        certificate: &Certificate,
        to_peer: bool,
    ) -> Result<ReleaseShare, ShareRequestError> {
        if certificate.number < number || number == 0 {
            return Err(ShareRequestError::DoesNotCover { number, certificate: certificate.number });
        }
        let epoch = self.epoch(number).await?;
        // Only who shows a certificate that stands takes a place.
        let places = self.places(to_peer);
        self.accept(certificate, places).await?;
        let _place = enter(&places.queue)?;
        let (kept, coming) = self.share_in_memory(number).await?;
        if let Some(kept) = kept {
            self.context.unreleased.check(number, kept.origin).await?;
            return Ok(kept.share);
        }
        // What is being computed already is waited for.
        let places = if coming { &self.kept } else { places };
        let _turn = places.turn()?;
        let record = self.certified_record(number).await?;
        self.context.unreleased.check(number, record.sealed.header.l1_origin_number).await?;
        self.share_of(record, epoch, places).await
    }

    /// The share of the header that is certified under this number, if it was computed already; and whether it is being
    /// computed for others than strangers.
    async fn share_in_memory(&self, number: u64) -> Result<(Option<Kept>, bool), ShareRequestError> {
        if number > self.context.tracker.certified().number {
            return Err(ShareRequestError::NotCertified { number });
        }
        let Some(hash) = self.context.tracker.store().header_hash(number).await? else {
            return Ok((None, false));
        };
        let of = |places: &Places| places.shares.lock().get(&(number, hash)).cloned();
        let (kept, open) = (of(&self.kept), of(&self.open));
        let computed = |once: &Once<Kept>| once.get().cloned();
        Ok((kept.as_ref().and_then(computed).or_else(|| open.as_ref().and_then(computed)), kept.is_some()))
    }

    /// The member's singleton share of an accepted item of a certified batch.
    pub(crate) async fn singleton(
        self: &Arc<Self>,
        number: u64,
        index: u32,
        to_peer: bool,
    ) -> Result<SingletonShare, ShareRequestError> {
        let service = Arc::clone(self);
        self.to_the_end(async move { service.find_singleton(number, index, to_peer).await }).await
    }

    async fn find_singleton(
        &self,
        number: u64,
        index: u32,
        to_peer: bool,
    ) -> Result<SingletonShare, ShareRequestError> {
        let places = self.places(to_peer);
        let _place = enter(&places.singleton_queue)?;
        self.epoch(number).await?;
        let record = self.kept_record(number, places).await?;
        let count = record.sealed.items.len();
        let item = usize::try_from(index).ok().and_then(|index| record.items.get(index));
        let Some(item) = item else { return Err(ShareRequestError::NoSuchItem { number, index, count }) };
        if let Some(fault) = &item.fault {
            return Err(ShareRequestError::ItemSkipped { number, index, reason: fault.clone() });
        }
        self.context.unreleased.check(number, record.sealed.header.l1_origin_number).await?;
        let once = once_of(&self.singletons, (number, index));
        let share = once
            .get_or_try_init(|| async {
                let member = self.context.member();
                let header_hash = record.hash;
                let backend = Arc::clone(&self.backend);
                let key = Arc::clone(&self.context.key);
                let share = self
                    .compute(move || {
                        let points = points(&*backend, &record, &[index])?;
                        let point = points.first().ok_or_else(|| internal("no point"))?;
                        Ok(key.member_key.singleton_share(point))
                    })
                    .await?;
                Ok::<_, ShareRequestError>(SingletonShare { number, header_hash, index, member, share })
            })
            .await?;
        Ok(*share)
    }

    fn places(&self, to_peer: bool) -> &Places {
        if to_peer { &self.kept } else { &self.open }
    }

    /// Sequencer and members need what is held to go on: nobody else takes their places.
    fn places_of_readers(&self, peer: bool) -> &Arc<Semaphore> {
        if peer { &self.peer_readers } else { &self.readers }
    }

    /// What this member holds certified under `number`, to serve to anyone.
    pub(crate) async fn certified(
        &self,
        number: u64,
        to_peer: bool,
    ) -> Result<Option<CertifiedBatch>, ShareRequestError> {
        let _place = enter(self.places_of_readers(to_peer))?;
        let record = self.context.tracker.store().batch(number).await?;
        Ok(record.and_then(|record| {
            Some(CertifiedBatch { certificate: record.certificate?, sealed: record.sealed })
        }))
    }

    /// What this member holds sealed under `number`, certified or not, to serve to anyone.
    pub(crate) async fn sealed(
        &self,
        number: u64,
        to_peer: bool,
    ) -> Result<Option<HeldBatch>, ShareRequestError> {
        let _place = enter(self.places_of_readers(to_peer))?;
        let record = self.context.tracker.store().batch(number).await?;
        Ok(record.map(|record| HeldBatch {
            sealed: Encoded::new(&record.sealed),
            certificate: record.certificate.as_ref().map(Encoded::new),
        }))
    }

    async fn epoch(&self, number: u64) -> Result<Epoch, ShareRequestError> {
        let epoch = match self.context.tracker.epoch(number).await {
            Ok(epoch) => epoch,
            Err(TrackerError::NoEpoch { .. }) => return Err(ShareRequestError::NotAMember { number }),
            Err(refusal) => return Err(ShareRequestError::Unavailable(refusal)),
        };
        if self.context.is_member_of(&epoch) {
            Ok(epoch)
        } else {
            Err(ShareRequestError::NotAMember { number })
        }
    }

    /// Whether the header that a certificate names is certified, and ours. What costs nothing is looked at first: a
    /// pairing is done only for a header that is here and not certified yet.
    async fn accept(&self, certificate: &Certificate, places: &Places) -> Result<(), ShareRequestError> {
        if self.accepted.lock().get(certificate).is_some() {
            return Ok(());
        }
        let number = certificate.number;
        let tracker = &self.context.tracker;
        let epoch = match tracker.epoch(number).await {
            Ok(epoch) => epoch,
            // No registered epoch contains the certificate's number: nobody could have certified it.
            Err(refusal @ TrackerError::NoEpoch { .. }) => {
                return Err(ShareRequestError::BadCertificate(refusal));
            }
            Err(refusal) => return Err(ShareRequestError::Unavailable(refusal)),
        };
        if let Err(fault) = certificate::check_form(certificate, &epoch) {
            self.context.metrics.bad_certificates.increment();
            return Err(ShareRequestError::BadCertificate(TrackerError::Certificate { number, fault }));
        }
        let ours = tracker.store().header_hash(number).await?;
        if ours != Some(certificate.header_hash) {
            // Perhaps it stands, and we lack its header: it is asked for, at most as often as anything is fetched.
            self.missing.notify_one();
            return Err(ShareRequestError::NotValidatedHere { number });
        }
        if number <= tracker.certified().number {
            return Ok(());
        }
        let _place = enter(&places.verifying)?;
        let _turn = self.pairing.lock().await;
        if number <= tracker.certified().number {
            return Ok(());
        }
        let own_vote = self.context.check_own_vote(certificate);
        match tracker.accept_certificate_after(certificate, own_vote).await {
            Ok(_) => {
                self.accepted.lock().put(*certificate, ());
                Ok(())
            }
            Err(refusal) => Err(match refusal.next_step() {
                NextStep::CatchUp => {
                    self.missing.notify_one();
                    ShareRequestError::NotValidatedHere { number: certificate.number }
                }
                NextStep::Reject => {
                    self.context.metrics.bad_certificates.increment();
                    ShareRequestError::BadCertificate(refusal)
                }
                NextStep::Retry | NextStep::Stop => ShareRequestError::Unavailable(refusal),
            }),
        }
    }

    async fn certified_record(&self, number: u64) -> Result<BatchRecord, ShareRequestError> {
        if number == 0 || number > self.context.tracker.certified().number {
            return Err(ShareRequestError::NotCertified { number });
        }
        let record = self.context.tracker.store().batch(number).await?;
        record.ok_or_else(|| internal(format!("batch {number} is certified and not on disk")))
    }

    /// The same, read and decoded once for all its items; what is certified does not change.
    async fn kept_record(&self, number: u64, places: &Places) -> Result<Arc<BatchRecord>, ShareRequestError> {
        let there = self.kept.records.lock().get(&number).and_then(|once| once.get().cloned());
        if let Some(record) = there {
            return Ok(record);
        }
        let once = once_of(&places.records, number);
        let read = async {
            let _turn = places.turn()?;
            self.certified_record(number).await.map(Arc::new)
        };
        once.get_or_try_init(|| read).await.cloned()
    }

    /// Computes the share of a validated batch, or remembers it. Gives it to nobody.
    async fn share_of(
        &self,
        record: BatchRecord,
        epoch: Epoch,
        places: &Places,
    ) -> Result<ReleaseShare, ShareRequestError> {
        let (number, origin) = (record.sealed.header.number, record.sealed.header.l1_origin_number);
        let once = once_of(&places.shares, (number, record.hash));
        let kept = once
            .get_or_try_init(|| async {
                let header_hash = record.hash;
                let key = Arc::clone(&self.context.key);
                let backend = Arc::clone(&self.backend);
                let seconds = self.context.metrics.share_seconds.clone();
                let pds = self
                    .compute(move || {
                        let started = now();
                        let pds = sub_batches(&record, epoch.max_batch)
                            .iter()
                            .map(|indices| {
                                backend
                                    .release_share(&key.member_key, &points(&*backend, &record, indices)?)
                                    .map_err(|fault| internal(fault.to_string()))
                            })
                            .collect::<Result<Vec<_>, ShareRequestError>>()?;
                        seconds.observe_duration(started.elapsed());
                        traces::batch(number, "share", started);
                        Ok(pds)
                    })
                    .await?;
                let member = self.context.member();
                let share = ReleaseShare { number, header_hash, member, pds };
                Ok::<_, ShareRequestError>(Kept { share, origin })
            })
            .await?;
        Ok(kept.share.clone())
    }

    /// Runs on a thread of the pool once one is free.
    async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ShareRequestError> + Send + 'static,
    ) -> Result<T, ShareRequestError> {
        let stopped = || ShareRequestError::Unavailable(TrackerError::Stopped);
        let permit = Arc::clone(&self.threads).acquire_owned().await.map_err(|_| stopped())?;
        let task = blindfold_runtime::blocking(move || {
            // Held until the work is done, even if the caller went away.
            let _permit = permit;
            work()
        });
        task.await.map_err(|_| stopped())?
    }
}

/// A bounded memory; what was not asked for longest goes first.
fn memory<K: Eq + Hash, V>(entries: usize) -> Mutex<LruCache<K, V>> {
    Mutex::new(LruCache::new(NonZeroUsize::new(entries).unwrap_or(NonZeroUsize::MIN)))
}

/// The place in memory for what belongs to a key, filled or not.
fn once_of<K: Eq + Hash, V>(memory: &Mutex<LruCache<K, Once<V>>>, key: K) -> Once<V> {
    let mut memory = memory.lock();
    Arc::clone(memory.get_or_insert(key, Once::default))
}

fn enter(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ShareRequestError> {
    Arc::clone(places).try_acquire_owned().map_err(|_| ShareRequestError::Busy)
}

/// The indices of the accepted items in committed order, cut into sub-batches.
fn sub_batches(record: &BatchRecord, max_batch: u32) -> Vec<Vec<u32>> {
    let accepted: Vec<u32> = (0u32..)
        .zip(&record.items)
        .filter(|(_, item)| item.fault.is_none())
        .map(|(index, _)| index)
        .collect();
    cut(&accepted, max_batch).map(<[u32]>::to_vec).collect()
}

/// The ciphertext points of accepted items. They were checked before the batch was stored, and are checked again, by the same
/// arithmetic, for what the disk gave back: a share over a point outside the subgroup would say something about the key.
fn points(
    backend: &dyn Backend,
    record: &BatchRecord,
    indices: &[u32],
) -> Result<Vec<CiphertextPoint>, ShareRequestError> {
    let headers = indices.iter().map(|index| {
        let item = usize::try_from(*index).ok().and_then(|index| record.sealed.items.get(index));
        let item = item.ok_or_else(|| internal(format!("no item {index}")))?;
        let envelope = Envelope::decode(item).map_err(|fault| internal(format!("item {index}: {fault}")))?;
        Ok(envelope.ciphertext.c)
    });
    let headers = headers.collect::<Result<Vec<_>, ShareRequestError>>()?;
    let decoded = backend.decode_headers(&headers.iter().collect::<Vec<_>>());
    let decoded = indices.iter().zip(decoded);
    decoded.map(|(index, point)| point.map_err(|fault| internal(format!("item {index}: {fault}")))).collect()
}

fn internal(what: impl Into<String>) -> ShareRequestError {
    ShareRequestError::Internal(what.into())
}

//! Headers that gave way to others, and the mempool taken back from the disk: at a start, and when what such headers had
//! taken waits again.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use blindfold_chain::{ParameterSet, TrackerError};
use blindfold_protocol::{
    Canonical, ChainConfig, Envelope, EnvelopeError, Epoch,
    validity::{CheckedEnvelope, Head, check_items},
};
use blindfold_runtime::{now, rng};
use blindfold_store::{PendingEnvelope, StoreError};

use crate::{
    backlog::Backlog,
    certifier::Certifier,
    context::Context,
    pool::{Pool, PoolItem},
    promises::LatePromises,
};

/// Envelopes of the mempool that are verified together.
const RESTORE_CHUNK_ITEMS: usize = 256;

/// What is to be done about headers that gave way.
pub(crate) struct Displaced {
    cx: Arc<Context>,
    parameters: Arc<ParameterSet>,
    pool: Arc<Pool>,
    certifier: Arc<Certifier>,
    backlog: Arc<Backlog>,
    /// The head is another than the sealer left: it looks anew at what its second needs.
    reopened: AtomicBool,
    /// What they had taken is not in the mempool again yet.
    waits: AtomicBool,
    /// Held while it is taken back.
    restoring: tokio::sync::Mutex<()>,
}

impl Displaced {
    pub(crate) fn new(
        cx: Arc<Context>,
        parameters: Arc<ParameterSet>,
        pool: Arc<Pool>,
        certifier: Arc<Certifier>,
        backlog: Arc<Backlog>,
    ) -> Self {
        let (reopened, waits) = (AtomicBool::new(false), AtomicBool::new(false));
        let restoring = tokio::sync::Mutex::default();
        Self { cx, parameters, pool, certifier, backlog, reopened, waits, restoring }
    }

    /// Tells the sealer that the head is another one.
    pub(crate) fn reopen(&self) {
        self.reopened.store(true, Ordering::SeqCst);
    }

    /// Whether it was told so since this was asked last.
    pub(crate) fn take_reopened(&self) -> bool {
        self.reopened.swap(false, Ordering::SeqCst)
    }

    /// Forgets headers from a number on; what they had taken waits again before anything is sealed.
    pub(crate) fn forget_from(&self, first: u64) {
        self.replaced_from(first);
        self.take_back();
    }

    /// Other headers stand from a number on.
    pub(crate) fn replaced_from(&self, first: u64) {
        self.certifier.forget_from(first);
        self.backlog.forget_from(first);
    }

    /// What headers had taken waits again.
    pub(crate) fn take_back(&self) {
        self.waits.store(true, Ordering::SeqCst);
    }

    /// Takes back into the mempool what displaced headers had taken; where the disk fails, at the next look.
    pub(crate) async fn restore(&self) -> Result<(), TrackerError> {
        // Whoever comes while another one is at it waits for the end of that.
        let _turn = self.restoring.lock().await;
        // Before it is read: what is displaced meanwhile waits for the next look.
        if !self.waits.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let restored = self.restore_mempool().await;
        if restored.is_err() {
            self.take_back();
        }
        Ok(restored?)
    }

    /// Takes the acknowledged envelopes back from the disk, verified anew.
    pub(crate) async fn restore_mempool(&self) -> Result<(), StoreError> {
        let _restoring = Restoring::begin(&self.pool);
        let pending = self.cx.store.pending_envelopes().await?;
        let late = LatePromises::load(self.cx.store.as_ref()).await?;
        let (mut restored, mut dropped) = (0usize, 0usize);
        let Head { number, generation, .. } = self.cx.tracker.head();
        let of_this = |envelope: &PendingEnvelope| {
            Envelope::decode(&envelope.bytes).is_ok_and(|it| it.header.expiry.generation() == generation)
        };
        let (pending, outdated): (Vec<_>, Vec<_>) = pending.into_iter().partition(of_this);
        let outdated: Vec<_> = outdated.into_iter().map(|envelope| envelope.id).collect();
        for ids in outdated.chunks(RESTORE_CHUNK_ITEMS) {
            self.cx.store.remove_envelopes(ids, EnvelopeError::WrongGeneration.as_str(), number).await?;
            dropped += ids.len();
        }
        // What is promised goes first: the disk may still hold another envelope of the same fee nonce, which a batch skipped
        // and which would take its place.
        let mut groups: BTreeMap<(bool, u64), Vec<PendingEnvelope>> = BTreeMap::new();
        for mut envelope in pending {
            envelope.seal_by = promised_for(envelope.seal_by, late.get(&envelope.id).copied(), number);
            let key = (envelope.seal_by.is_none(), epoch_of(&envelope));
            groups.entry(key).or_default().push(envelope);
        }
        for ((_, epoch), group) in groups {
            let found = self.parameters.by_epoch(epoch);
            let epoch = found
                .or_else(|| self.parameters.all().into_iter().next())
                .map(|entry| Arc::new(entry.epoch().clone()));
            let Some(epoch) = epoch else { continue };
            for chunk in group.chunks(RESTORE_CHUNK_ITEMS) {
                let (cx, epoch, moved) = (Arc::clone(&self.cx), Arc::clone(&epoch), chunk.to_vec());
                let checked =
                    blindfold_runtime::blocking(move || check_again(&cx.chain, &epoch, &moved)).await;
                let checked = checked.map_err(|_| StoreError::Closed)?;
                for (envelope, checked) in chunk.iter().zip(checked) {
                    match checked {
                        Ok(checked) => {
                            let bytes: Arc<[u8]> = envelope.bytes.as_slice().into();
                            let meta = self.pool.meta_of(
                                &checked.envelope,
                                envelope.id,
                                bytes.len(),
                                envelope.seal_by,
                            );
                            let item = PoolItem { bytes, checked: Arc::new(checked), arrived: now() };
                            {
                                let mut pool = self.pool.lock();
                                // What waited all the while is no competitor of itself, and what was sealed while it
                                // was verified waits for nothing.
                                if pool.get(&envelope.id).is_some() || pool.is_gone(&envelope.id) {
                                    continue;
                                }
                                if pool.restore(meta, item) {
                                    restored += 1;
                                    continue;
                                }
                            }
                            if let Some(seal_by) = envelope.seal_by {
                                tracing::error!(id = %envelope.id, seal_by, "two promised envelopes have one fee nonce");
                                continue;
                            }
                            let reason = EnvelopeError::FeeNonceUsed.as_str();
                            self.cx.store.remove_envelopes(&[envelope.id], reason, number).await?;
                            dropped += 1;
                        }
                        Err(reason) => {
                            tracing::error!(id = %envelope.id, reason, "an acknowledged envelope is no longer valid");
                            let number = self.cx.tracker.head().number;
                            self.cx.store.remove_envelopes(&[envelope.id], reason, number).await?;
                            dropped += 1;
                        }
                    }
                }
            }
        }
        if restored + dropped > 0 {
            tracing::info!(restored, dropped, "took the mempool back from disk");
        }
        self.pool.show(&self.pool.lock());
        Ok(())
    }
}

/// The number that an envelope is promised for: by its record, or late, where the one of the record went by before anybody was
/// told. A number up to the head is no promise: its header is there without it, so nobody was told, or L1 displaced it and
/// excuses that.
fn promised_for(recorded: Option<u64>, late: Option<u64>, head: u64) -> Option<u64> {
    [recorded, late].into_iter().flatten().filter(|seal_by| *seal_by > head).min()
}

/// While it lives, the pool remembers what leaves it.
struct Restoring<'a>(&'a Pool);

impl<'a> Restoring<'a> {
    fn begin(pool: &'a Pool) -> Self {
        pool.lock().begin_restoring();
        Self(pool)
    }
}

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        self.0.lock().end_restoring();
    }
}

/// Checks envelopes anew, as when they were admitted.
fn check_again(
    chain: &ChainConfig,
    epoch: &Epoch,
    group: &[PendingEnvelope],
) -> Vec<Result<CheckedEnvelope, &'static str>> {
    let items: Vec<&[u8]> = group.iter().map(|envelope| envelope.bytes.as_slice()).collect();
    let checked = check_items(chain, epoch, &items, &mut rng());
    checked.into_iter().map(|item| item.map_err(|rejected| rejected.fault.as_str())).collect()
}

fn epoch_of(envelope: &PendingEnvelope) -> u64 {
    Envelope::decode(&envelope.bytes).map(|envelope| envelope.header.epoch).unwrap_or_default()
}

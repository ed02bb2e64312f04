//! Admission: every check of an envelope with its precise refusal, then durable, then acknowledged.

use std::{net::IpAddr, ops::RangeInclusive, sync::Arc, time::Duration};

use blindfold_chain::{Closing, Office, ParameterSet, Verifier};
use blindfold_l1::GivenPromise;
use blindfold_protocol::{
    B256, Canonical, Envelope, EnvelopeError, Epoch, Promise,
    block::block_second,
    limits::{EXPIRY_WINDOW, HANDOVER_BLOCKS, MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS},
    validity::{ChainState, CheckedEnvelope, most_after},
};
use blindfold_rpc::{SourceLimits, limits::RETRY_AFTER_MS};
use blindfold_runtime::{Instant, now, spawn};
use blindfold_store::PendingEnvelope;
use blindfold_telemetry::traces;

use crate::{
    accusations::kept_in,
    backlog::Backlog,
    context::Context,
    l1_cache::L1Cache,
    mempool::{Mempool, Meta, PoolRefusal, Telling},
    pool::{Pool, PoolItem},
    promises::LatePromises,
    queue::{Entering, Queue},
    recover::Recovered,
    refusal::AdmissionRefusal,
    reservations::Demand,
};

/// What the store remembers of an envelope that gave its place in a full mempool to one that ranks higher.
pub(crate) const EVICTED_OUTCOME: &str = "evicted";

/// How often L1 has a block, about: what waits for one need not be asked for sooner.
const L1_BLOCK: Duration = Duration::from_secs(12);

/// An envelope that the sequencer answers for.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    /// Id of the admitted envelope.
    pub(crate) id: B256,
    /// The promise, if asked for.
    pub(crate) promise: Option<Promise>,
}

/// The way into the mempool.
pub(crate) struct Admission {
    pub(crate) cx: Arc<Context>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) l1: Arc<L1Cache>,
    pub(crate) parameters: Arc<ParameterSet>,
    pub(crate) recovered: Arc<Recovered>,
    pub(crate) sources: SourceLimits,
    pub(crate) verifier: Verifier,
    pub(crate) late_promises: LatePromises,
}

impl Admission {
    /// Admits an envelope: durable when this returns. The same envelope again gives the same answer. Once it has a place it
    /// is admitted to the end, even when the caller hangs up: one that is never offered to a batch would break promises.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        source: Option<IpAddr>,
        bytes: Vec<u8>,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        let started = now();
        let result = self.admit_checked(source, bytes, promise).await;
        match &result {
            Ok(_) => self.cx.metrics.admission_seconds.observe_duration(started.elapsed()),
            Err(refusal) => {
                self.cx.metrics.envelopes_refused.get(&[refusal.reason()]).increment();
                tracing::debug!(reason = refusal.reason(), %refusal, "envelope refused");
            }
        }
        result
    }

    /// When the same envelope may be taken, where anything is known of that (J-8).
    pub(crate) fn time_to_come_back(&self, refusal: &AdmissionRefusal) -> Option<Duration> {
        match refusal {
            AdmissionRefusal::QueueTooLong { time } => Some(*time),
            AdmissionRefusal::PoolFull | AdmissionRefusal::PayerLimit { .. } => {
                self.queue.time_to_come_back()
            }
            AdmissionRefusal::Overloaded => self.verifier.time_to_come_back(),
            AdmissionRefusal::SourceLimit => Some(self.sources.time_for_one()),
            AdmissionRefusal::Backlogged { behind } => {
                Some(self.backlog.time_to_come_back(behind).unwrap_or(L1_BLOCK))
            }
            AdmissionRefusal::PromiseCapacity { .. } => {
                Some(Duration::from_millis(self.cx.config.sealing.slot_ms))
            }
            AdmissionRefusal::NoEpoch | AdmissionRefusal::EpochEnds { .. } => Some(L1_BLOCK),
            AdmissionRefusal::Recovering
            | AdmissionRefusal::OutOfOffice
            | AdmissionRefusal::Storage
            | AdmissionRefusal::Signer
            | AdmissionRefusal::ShuttingDown => Some(Duration::from_millis(RETRY_AFTER_MS)),
            AdmissionRefusal::TooLarge { .. }
            | AdmissionRefusal::Fault { .. }
            | AdmissionRefusal::AlreadyKnown
            | AdmissionRefusal::PromiseTerms { .. } => None,
        }
    }

    async fn admit_checked(
        self: &Arc<Self>,
        source: Option<IpAddr>,
        bytes: Vec<u8>,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        if self.cx.stopping() {
            return Err(AdmissionRefusal::ShuttingDown);
        }
        let office = self.cx.office();
        if !office.admits() && !matches!(office, Office::Awaits { .. }) {
            return Err(AdmissionRefusal::OutOfOffice);
        }
        if !self.recovered.is_complete() {
            return Err(AdmissionRefusal::Recovering);
        }
        if let Some(Closing { epoch, until, .. }) = self.cx.tracker.closed(self.cx.tracker.head().number + 1)
        {
            return Err(AdmissionRefusal::EpochEnds { epoch, until });
        }
        if source.is_some_and(|source| !self.sources.allow(source, now())) {
            return Err(AdmissionRefusal::SourceLimit);
        }
        if bytes.len() > MAX_ENVELOPE_BYTES {
            return Err(AdmissionRefusal::TooLarge { bytes: bytes.len(), limit: MAX_ENVELOPE_BYTES });
        }
        let envelope = Envelope::decode(&bytes).map_err(|error| {
            fault(EnvelopeError::Undecodable, format!("the envelope does not decode: {error}"))
        })?;
        let id = envelope.id();
        let started = now();
        // The same envelope again is answered in any case, while it is pending.
        self.waits_not_too_long(&envelope, id, bytes.len())?;
        let entering = self.queue.enter();
        if let Some(pending) = self.pending(&id, promise).await? {
            return Ok(pending);
        }
        let bytes: Arc<[u8]> = bytes.into();
        let admitted = self.admit_new(&envelope, id, Arc::clone(&bytes), promise, started, entering).await;
        let Err(AdmissionRefusal::Fault { fault, .. }) = &admitted else { return admitted };
        let passes = fault.may_pass_later();
        // Maybe of itself: its nonce is used where a batch has it, and it has expired where it left the mempool for that.
        // So what came to an end here is refused in any case, and the disk is asked for no other.
        self.known(&id, &bytes, promise, passes).await?.map_or(admitted, Ok)
    }

    /// Admits an envelope that is not pending.
    async fn admit_new(
        self: &Arc<Self>,
        envelope: &Envelope,
        id: B256,
        bytes: Arc<[u8]>,
        promise: bool,
        started: Instant,
        entering: Entering,
    ) -> Result<Admitted, AdmissionRefusal> {
        // One that a batch has is refused for that, however much waits here.
        self.cx.tracker.with_state(|state| unspent(state, envelope))?;
        let pending = self.pool.lock().bytes() as u64;
        if let Some(behind) = self.backlog.behind(pending, bytes.len() as u64) {
            return Err(AdmissionRefusal::Backlogged { behind });
        }
        let meta = self.pool.meta_of(envelope, id, bytes.len(), None);
        // A full pool or a greedy payer costs no verification. The check that counts comes with the place itself.
        let room = self.pool.lock().check(&meta);
        if !matches!(room, Err(PoolRefusal::NoncePending)) {
            self.place(room)?;
        }
        {
            let pool = self.pool.lock();
            self.cx.tracker.with_state(|state| self.funded(&pool, state, &meta))?;
        }
        let (epoch, number) = self.epoch_for(envelope).await?;
        let checked = self
            .verifier
            .verify(Arc::clone(&bytes), epoch, number)
            .await?
            .map_err(|kind| explain(kind, envelope, number))?;
        let admission = Arc::clone(self);
        let item = PoolItem { bytes, checked: Arc::new(checked), arrived: started };
        to_end(async move {
            let taken = admission.take_place(meta, item, promise).await;
            drop(entering);
            taken
        })
        .await
    }

    /// Refuses an envelope that would wait longer for its certificate than envelopes may.
    fn waits_not_too_long(
        &self,
        envelope: &Envelope,
        id: B256,
        bytes: usize,
    ) -> Result<(), AdmissionRefusal> {
        let meta = self.pool.meta_of(envelope, id, bytes, None);
        // Those that came in another way than by the members' acknowledgements.
        self.queue.certified(self.cx.tracker.certified().number);
        let mut pool = self.pool.lock();
        if pool.get(&id).is_some() {
            return Ok(());
        }
        pool.set_next(self.pool.next_header());
        let time = self.queue.too_long(&pool, meta.rank);
        time.map_or(Ok(()), |time| Err(AdmissionRefusal::QueueTooLong { time }))
    }

    /// The epoch the envelope was encrypted for, if a batch of it can come (the next number's, or the one after),
    /// and the next number. For any other envelope the next number's epoch, against which it is wrong.
    async fn epoch_for(&self, envelope: &Envelope) -> Result<(Arc<Epoch>, u64), AdmissionRefusal> {
        let number = self.cx.tracker.head().number + 1;
        let header = &envelope.header;
        // Each header that is sealed has L1 asked anew.
        let read = self.cx.tracker.epoch_as_read(number).filter(|epoch| epoch.epoch == header.epoch);
        if let Some(epoch) = read {
            return Ok((Arc::new(epoch), number));
        }
        let current = self.cx.tracker.epoch(number).await.map_err(|refusal| {
            tracing::warn!(%refusal, number, "no epoch for the next batch");
            AdmissionRefusal::NoEpoch
        })?;
        if Some(header.epoch) == current.epoch.checked_add(1)
            && let Ok(following) = self.cx.tracker.epoch(current.last.saturating_add(1)).await
        {
            if header.expiry.number() < following.first {
                return Err(explain(EnvelopeError::Expired, envelope, following.first));
            }
            return Ok((Arc::new(following), number));
        }
        Ok((Arc::new(current), number))
    }

    /// Answers for an envelope that is pending already: with the same answer.
    async fn pending(
        self: &Arc<Self>,
        id: &B256,
        promise: bool,
    ) -> Result<Option<Admitted>, AdmissionRefusal> {
        let Some(meta) = self.pool.lock().get(id).cloned() else { return Ok(None) };
        let admission = Arc::clone(self);
        to_end(async move { admission.acknowledge_again(meta, promise).await }).await.map(Some)
    }

    /// Answers for an envelope that is here already: pending ones get the same answer, later ones a refusal. `passes`: what it
    /// is refused for may pass, and so one that a batch only skipped may stand later.
    async fn known(
        self: &Arc<Self>,
        id: &B256,
        bytes: &[u8],
        promise: bool,
        passes: bool,
    ) -> Result<Option<Admitted>, AdmissionRefusal> {
        if let Some(pending) = self.pending(id, promise).await? {
            return Ok(Some(pending));
        }
        let past = self.cx.tracker.for_caller(self.cx.store.envelope_pasts(vec![*id])).await;
        let (place, outcome) = past.map_err(|error| storage(&error))?.pop().unwrap_or_default();
        match place {
            None => {}
            Some(place) if place.fault.is_none() => return Err(AdmissionRefusal::AlreadyKnown),
            Some(_) if passes => {}
            Some(place) => {
                // Skipped there: maybe a copy with another proof or signature, which must not keep this one out.
                let record = self.cx.tracker.for_caller(self.cx.store.batch(place.number)).await;
                let record = record.map_err(|error| storage(&error))?;
                let there = record.as_ref().and_then(|record| record.sealed.items.get(place.index as usize));
                if there.is_some_and(|item| item.as_slice() == bytes) {
                    return Err(AdmissionRefusal::AlreadyKnown);
                }
            }
        }
        match outcome.as_deref() {
            None | Some(EVICTED_OUTCOME) => Ok(None),
            Some(_) => Err(AdmissionRefusal::AlreadyKnown),
        }
    }

    /// The same envelope again. Its first sender may still wait for the disk, so this call waits for it as well.
    async fn acknowledge_again(&self, meta: Meta, promise: bool) -> Result<Admitted, AdmissionRefusal> {
        let id = meta.id;
        let Some(item) = self.pool.lock().item(&id).cloned() else {
            // Sealed in this very moment.
            return Err(AdmissionRefusal::AlreadyKnown);
        };
        if !self.pool.lock().is_ready(&id) {
            self.make_durable(id, &item, meta.seal_by).await?;
        }
        if self.pool.lock().get(&id).is_none() {
            // Sealed meanwhile, or the first call failed at the disk and took it out.
            return Err(match self.cx.store.envelope_location(id).await {
                // What a batch skipped may be sent again.
                Ok(Some(place)) if place.fault.is_none() => AdmissionRefusal::AlreadyKnown,
                _ => AdmissionRefusal::Storage,
            });
        }
        self.pool.lock().ready(&id);
        // One that stands is asked for in the same way: it may be on its way to the disk.
        let seal_by = if promise { Some(self.promise_late(id).await?) } else { None };
        self.answer(&item, seal_by).await
    }

    /// Takes a place in the mempool, writes the envelope down, then offers it to batches.
    async fn take_place(
        self: &Arc<Self>,
        mut meta: Meta,
        item: PoolItem,
        promise: bool,
    ) -> Result<Admitted, AdmissionRefusal> {
        let id = meta.id;
        let reserved = {
            // The pool's lock comes before the tracker's, here and in the sealer.
            let mut pool = self.pool.lock();
            self.affordable(&pool, &meta, &item.checked)?;
            if promise && pool.check(&meta).is_ok() {
                let window = self.promise_window(&meta, pool.promised_capacity())?;
                let number = pool.reserve_number(window, meta.demand());
                meta.seal_by = Some(number.ok_or_else(|| self.no_room_for_promises())?);
            }
            let reserved = pool.reserve(meta.clone(), item.clone());
            if let (Err(_), Some(number)) = (&reserved, meta.seal_by) {
                pool.release_number(number, meta.demand());
            }
            self.pool.show(&pool);
            reserved
        };
        let seal_by = meta.seal_by;
        let evicted = match reserved {
            Ok(evicted) => evicted,
            Err(PoolRefusal::Known) => {
                // Another call brought it while this one verified.
                let known = self.known(&id, &item.bytes, promise, false).await?;
                return known.ok_or(AdmissionRefusal::AlreadyKnown);
            }
            Err(refusal) => {
                self.place(Err(refusal))?;
                Vec::new()
            }
        };
        self.forget_evicted(&evicted).await;
        if let Err(refusal) = self.make_durable(id, &item, seal_by).await {
            let mut pool = self.pool.lock();
            if pool.withdraw(&id) {
                self.pool.show(&pool);
                return Err(refusal);
            }
        }
        self.pool.lock().ready(&id);
        if self.pool.arrived.add(item.bytes.len(), &self.cx.config.sealing) {
            self.pool.full.notify_one();
        }
        self.cx.metrics.envelopes_admitted.increment();
        traces::root(&id.0, "admit", item.arrived);
        self.answer(&item, seal_by).await
    }

    /// Fee nonce, fee and funds after the last sealed header, less what the payer's pending envelopes will cost.
    fn affordable(
        &self,
        pool: &Mempool<PoolItem>,
        meta: &Meta,
        checked: &CheckedEnvelope,
    ) -> Result<(), AdmissionRefusal> {
        self.cx.tracker.with_state(|state| {
            let number = state.head().number + 1;
            state
                .admissible(checked, self.second(state))
                .map_err(|kind| explain(kind, &checked.envelope, number))?;
            self.funded(pool, state, meta)
        })
    }

    /// Funds after the last sealed header, less what the payer's pending envelopes will cost. Cheap: looked at once
    /// before signature and proof are verified, and once with the place itself.
    fn funded(
        &self,
        pool: &Mempool<PoolItem>,
        state: &ChainState,
        meta: &Meta,
    ) -> Result<(), AdmissionRefusal> {
        if pool.get(&meta.id).is_some() {
            // The same envelope, brought by another call meanwhile, is no competitor of itself.
            return Ok(());
        }
        let (fees, surcharge) = (state.base_fees_at(self.second(state)), self.cx.chain.malformed_surcharge);
        let balance = state.ledger().account(&meta.payer).map_or(0, |account| account.balance);
        let pending = self.pool.committed(pool, state, &meta.payer);
        let fee = meta.fee(fees).saturating_add(surcharge);
        let needed = pending.saturating_add(fee);
        if balance < needed {
            let detail = format!(
                "the payer has {balance} wei; this envelope costs {fee} wei and its pending ones {pending} wei"
            );
            return Err(fault(EnvelopeError::InsufficientFunds, detail));
        }
        Ok(())
    }

    /// The second it is now, or the head's, where that is ahead.
    fn second(&self, state: &ChainState) -> u64 {
        block_second(self.cx.clock.now_ms().max(state.head().timestamp_ms))
    }

    async fn make_durable(
        &self,
        id: B256,
        item: &PoolItem,
        seal_by: Option<u64>,
    ) -> Result<(), AdmissionRefusal> {
        let arrived_ms = self.cx.clock.now_ms();
        let record = PendingEnvelope { id, bytes: item.bytes.to_vec(), arrived_ms, seal_by };
        self.cx.store.put_envelope(record).await.map_err(|error| storage(&error))
    }

    /// The numbers that an envelope may be promised: neither so near that it may not come to it, nor so far that it may
    /// expire or its fee no longer suffice (G-3, P-1, P-2).
    pub(crate) fn promise_window(
        &self,
        meta: &Meta,
        capacity: Demand,
    ) -> Result<RangeInclusive<u64>, AdmissionRefusal> {
        let terms = |detail: String| AdmissionRefusal::PromiseTerms { detail };
        if !self.cx.office().promises(self.cx.tracker.newest_l1_block()) {
            return Err(terms("this sequencer's time ends soon: ask the next one".to_owned()));
        }
        let newest = self.cx.tracker.newest_l1_block();
        let closing = self.cx.tracker.closing(self.cx.tracker.head().number.saturating_add(1));
        if let Some(closing) = closing
            && newest.saturating_add(HANDOVER_BLOCKS) >= closing.closed_from()
        {
            return Err(terms(format!("epoch {} ends soon", closing.epoch)));
        }
        let sealing = &self.cx.config.sealing;
        let (head, generation) =
            self.cx.tracker.with_state(|state| (state.head().number, state.head().generation));
        if meta.generation != generation {
            // Pending, and about to be dropped.
            return Err(fault(EnvelopeError::WrongGeneration, of_another_generation(meta.generation)));
        }
        // An envelope of the next epoch counts from there, which is known here once its parameters are.
        let Some(entry) = self.parameters.by_epoch(meta.epoch) else {
            return Err(terms(format!("the parameters of epoch {} are not here yet", meta.epoch)));
        };
        // Until its certificates count it can be taken back, its first number being the next one or not.
        let (first_number, counts_from) = (entry.epoch().first, entry.epoch().counts_from);
        let final_block = self.cx.tracker.head().l1_origin.max(self.cx.tracker.epochs_read_at());
        if first_number > head && counts_from > final_block {
            return Err(terms(format!("epoch {} counts from L1 block {counts_from} on", meta.epoch)));
        }
        let begins = first_number.saturating_sub(1).max(head);
        let first = begins.saturating_add(sealing.promise_margin_batches);
        let mut last = begins.saturating_add(sealing.promise_batches).min(meta.expiry);
        if self.cx.config.posting.enabled {
            // A header that L1 makes bars what was promised (G-1), and excuses promises up to so far above L1's head.
            let posted = u64::try_from(self.cx.metrics.posted_number.get()).unwrap_or_default();
            let excused = posted.saturating_add(EXPIRY_WINDOW);
            if first > excused {
                return Err(self.no_room_for_promises());
            }
            last = last.min(excused);
        }
        if first > last {
            return Err(terms(format!("it expires with batch {}, promises begin at {first}", meta.expiry)));
        }
        if !meta.demand().fits(capacity) {
            return Err(terms("it takes more than half of a batch".to_owned()));
        }
        let fees = self.cx.tracker.next_base_fees();
        for (what, fee, offered) in
            [("byte", fees.base_fee, meta.max_fee), ("unit of gas", fees.gas_base_fee, meta.max_gas_fee)]
        {
            let covered = covered_steps(fee, offered, last - head);
            match covered.map(|steps| head.saturating_add(steps)).filter(|covered| first <= *covered) {
                Some(covered) => last = covered,
                None => {
                    let most = (head..first).fold(fee, |fee, _| most_after(fee));
                    let detail =
                        format!("a {what} may cost {most} wei at batch {first}, it offers {offered}");
                    return Err(terms(detail));
                }
            }
        }
        if self.l1.forced_waiting(self.cx.tracker.head().forced_cursor) > MAX_FORCED_ITEMS {
            // What L1 forces goes first, and more waits than one header takes.
            return Err(self.no_room_for_promises());
        }
        Ok(first..=last)
    }

    fn no_room_for_promises(&self) -> AdmissionRefusal {
        AdmissionRefusal::PromiseCapacity { batches: self.cx.config.sealing.promise_batches }
    }

    /// Envelopes that gave their places to one that ranks higher leave the disk as well. They may be sent again.
    async fn forget_evicted(&self, evicted: &[B256]) {
        if evicted.is_empty() {
            return;
        }
        let number = self.cx.tracker.head().number;
        // Should this fail, a restart takes them back.
        if let Err(error) = self.cx.store.remove_envelopes(evicted, EVICTED_OUTCOME, number).await {
            tracing::warn!(%error, "envelopes that gave their places to others are still on disk");
        }
        self.pool.lock().left(evicted);
        self.cx.metrics.envelopes_evicted.add(evicted.len() as u64);
        tracing::debug!(count = evicted.len(), "envelopes gave their places to one that ranks higher");
    }

    /// The answer, with the promise signed if its number can still be reached. The promise is for the bytes that are
    /// pending here, whatever copy was sent now.
    async fn answer(&self, item: &PoolItem, seal_by: Option<u64>) -> Result<Admitted, AdmissionRefusal> {
        let (id, item_hash) = (item.checked.id, item.checked.item_hash);
        self.pool.lock().acknowledge(&id);
        let Some(seal_by) = seal_by else { return Ok(Admitted { id, promise: None }) };
        let telling = self.pool.lock().tell(&id, self.cx.tracker.head().number);
        let kept = match telling {
            Telling::Tell(seal_by) => Some(seal_by),
            // The disk was so slow that its number went by before the envelope was there.
            Telling::TooLate => None,
            Telling::Gone => {
                // In a batch that keeps the promise, or there is none to give.
                let promise =
                    GivenPromise { sequencer: self.cx.signer.address(), envelope_id: id, item_hash, seal_by };
                let kept =
                    kept_in(self.cx.store.as_ref(), &promise).await.map_err(|error| storage(&error))?;
                kept.is_some().then_some(seal_by)
            }
        };
        let seal_by = kept.ok_or_else(|| self.no_room_for_promises())?;
        let promise = self.cx.signer.sign_promise(id, item_hash, seal_by).await.map_err(|fault| {
            // It is kept all the same.
            tracing::warn!(%fault, "a promise is not signed");
            AdmissionRefusal::Signer
        })?;
        self.cx.metrics.promises.increment();
        Ok(Admitted { id, promise: Some(promise) })
    }

    fn place(&self, result: Result<(), PoolRefusal>) -> Result<(), AdmissionRefusal> {
        match result {
            // The same id is answered before a place is asked for.
            Ok(()) | Err(PoolRefusal::Known) => Ok(()),
            Err(PoolRefusal::NoncePending) => Err(fault(
                EnvelopeError::FeeNonceUsed,
                "another pending envelope of the payer uses this fee nonce".to_owned(),
            )),
            Err(PoolRefusal::Full) => Err(AdmissionRefusal::PoolFull),
            Err(PoolRefusal::PayerLimit) => {
                Err(AdmissionRefusal::PayerLimit { limit: self.cx.config.mempool.max_per_payer })
            }
        }
    }
}

/// Goes on even when whoever waits for it is gone.
async fn to_end(
    step: impl Future<Output = Result<Admitted, AdmissionRefusal>> + Send + 'static,
) -> Result<Admitted, AdmissionRefusal> {
    blindfold_runtime::joined(spawn(step).await).unwrap_or(Err(AdmissionRefusal::ShuttingDown))
}

/// How many headers later, at most `limit`, the base fee is `max_fee` or less whatever comes; `None` if it is not now.
fn covered_steps(fee: u128, max_fee: u128, limit: u64) -> Option<u64> {
    if fee > max_fee {
        return None;
    }
    let (mut fee, mut steps) = (fee, 0);
    while steps < limit {
        fee = most_after(fee);
        if fee > max_fee {
            break;
        }
        steps += 1;
    }
    Some(steps)
}

fn fault(fault: EnvelopeError, detail: String) -> AdmissionRefusal {
    AdmissionRefusal::Fault { fault, detail }
}

/// Refuses an envelope whose fee nonce is in use after the last sealed header: no signature need be looked at for that.
fn unspent(state: &ChainState, envelope: &Envelope) -> Result<(), AdmissionRefusal> {
    let (header, number) = (&envelope.header, state.head().number + 1);
    let used = state.ledger().nonce(&header.payer, header.fee_nonce).is_some_and(|expiry| expiry >= number);
    if used { Err(explain(EnvelopeError::FeeNonceUsed, envelope, number)) } else { Ok(()) }
}

/// A fault with the fields that it is about.
fn explain(kind: EnvelopeError, envelope: &Envelope, number: u64) -> AdmissionRefusal {
    let header = &envelope.header;
    let detail = match kind {
        EnvelopeError::WrongChain => format!("the envelope is for chain {}", header.chain_id),
        EnvelopeError::WrongDeployment => {
            format!(
                "the envelope is for the inbox {} on L1 chain {}",
                header.deployment.inbox, header.deployment.l1_chain_id
            )
        }
        EnvelopeError::WrongEpoch => {
            format!("the envelope is for epoch {}, batch {number} is not", header.epoch)
        }
        EnvelopeError::Expired => {
            format!("the envelope expired with batch {}, the next is {number}", header.expiry.number())
        }
        EnvelopeError::ExpiryTooFar => {
            format!(
                "the envelope's expiry {} is too far ahead of batch {number} or after its epoch",
                header.expiry.number()
            )
        }
        EnvelopeError::GasLimitTooHigh => format!("the gas limit {} does not fit a block", header.gas_limit),
        EnvelopeError::FeeNonceUsed => format!("the fee nonce {} is used", header.fee_nonce),
        EnvelopeError::FeeTooLow => {
            format!(
                "max fee {} and priority fee {} do not pay the base fee",
                header.max_fee, header.priority_fee
            )
        }
        EnvelopeError::InsufficientFunds => {
            format!("the fee account of {} does not cover the fee", header.payer)
        }
        EnvelopeError::WrongGeneration => of_another_generation(header.expiry.generation()),
        other => format!("the envelope breaks the rule {}", other.as_str()),
    };
    fault(kind, detail)
}

fn of_another_generation(generation: u16) -> String {
    format!("the envelope is of generation {generation}, the chain is not: L1 makes a header between two")
}

fn storage(error: &blindfold_store::StoreError) -> AdmissionRefusal {
    tracing::error!(%error, "the store refused an envelope");
    AdmissionRefusal::Storage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_reaches_as_far_as_the_fee_covers_the_steepest_rise() {
        assert_eq!(covered_steps(1_000, 999, 9), None);
        assert_eq!(covered_steps(1_000, 1_000, 9), Some(0));
        assert_eq!(covered_steps(1_000, 1_125, 9), Some(1));
        assert_eq!(covered_steps(1_000, 10_000, 64), Some(19), "nine eighths to the nineteenth");
        assert_eq!(covered_steps(1_000, u128::MAX, 64), Some(64));
        assert_eq!(covered_steps(0, 3, 64), Some(3), "a wei at least");
    }
}

//! The sealing loop: once per slot, or when a batch is full, the waiting envelopes become the next header.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{
    ExecutionState, ExecutorStatus, L1News, L1Origin, Sealed, SealingError, announce, makes_block,
};
use blindfold_protocol::{
    B256, Canonical, ChainConfig, Envelope, EnvelopeError, Epoch, ForcedEntry,
    block::block_second,
    limits::{CLOCK_SKEW_MS, MAX_BATCH_ITEMS, MAX_FORCED_ITEMS, MAX_SECOND_BYTES},
    validity::{CheckedItem, Head, Verdict},
};
use blindfold_runtime::{Agreement, Backoff, Instant, Patience, now};
use blindfold_store::StoreError;
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    backlog::Backlog,
    certifier::Certifier,
    choice::{self, Capacity, Choice},
    context::Context,
    displaced::Displaced,
    l1_cache::L1Cache,
    mempool::{Mempool, Meta},
    pool::{Pool, PoolItem, done_in},
    queue::Queue,
    recover::Recovered,
    reservations::Demand,
};

/// Longest pause after failed seals, in milliseconds.
const MAX_RETRY_MS: u64 = 10_000;
/// Expired envelopes removed from mempool and disk in one step.
const EXPIRED_CHUNK_ITEMS: usize = 1_024;
/// What the store remembers of an envelope that expired in the mempool.
pub(crate) const EXPIRED_OUTCOME: &str = "expired";
/// A stamp may lie this far ahead of our clock: half of what members accept.
const MAX_LEAD_MS: u64 = CLOCK_SKEW_MS / 2;

/// Why a slot ended without a batch that should have been.
#[derive(Debug, Error)]
pub(crate) enum SealFailure {
    #[error(transparent)]
    Refused(#[from] SealingError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no epoch is known for batch {0}")]
    NoEpoch(u64),
}

/// What one attempt to seal did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealOutcome {
    /// A header was sealed and announced; `full` says that more envelopes are ready for another full batch.
    Sealed { full: bool },
    /// There is nothing to seal.
    Idle,
    /// The committee is behind: as many headers lack a certificate as may.
    AwaitingCertificates,
    /// The clocks do not agree: a stamp could lie where no member takes it for long.
    AwaitingClock,
    /// Another sequencer's key counts: ours does not yet, or not any more.
    OutOfOffice,
    /// A header that we signed for the next number, or a later one, is not in the chain here: what is known here is less than
    /// what was signed.
    SignedAbove,
    /// The end of the next number's epoch is near: what is sealed may not be posted by then.
    EpochEnds,
    /// L1 was never seen, or the block in which it made the last header is not final here yet.
    AwaitingL1,
}

/// What the sealer remembers between headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenBlock {
    /// The last second with something that makes a block and no header of a later second, if there is one.
    second: Option<u64>,
}

impl OpenBlock {
    pub(crate) fn sealed(&mut self, second: u64, makes_block: bool) {
        if self.second.is_some_and(|open| open < second) {
            self.second = None;
        }
        if makes_block {
            self.second = Some(second);
        }
    }

    fn must_close(&self, now_second: u64) -> bool {
        self.second.is_some_and(|open| open < now_second)
    }
}

/// Makes headers of what waits, one after another.
pub(crate) struct Sealer {
    pub(crate) cx: Arc<Context>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) l1: Arc<L1Cache>,
    pub(crate) agreement: Arc<Agreement>,
    pub(crate) certifier: Arc<Certifier>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) displaced: Arc<Displaced>,
    pub(crate) recovered: Arc<Recovered>,
    /// How far execution is.
    pub(crate) executed: watch::Receiver<ExecutorStatus>,
}

impl Sealer {
    /// Seals until the sequencer stops, or its time is over. Gives what it remembers between headers.
    pub(crate) async fn seal_loop(&self, mut open: OpenBlock) -> OpenBlock {
        let mut slots = interval(Duration::from_millis(self.cx.config.sealing.slot_ms));
        slots.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = self.cx.stop.clone();
        let limits = &self.cx.config.sealing;
        let mut pauses = Backoff::new(limits.retry_ms, MAX_RETRY_MS);
        let mut patience = Patience::new(limits.storage_exit_ms);
        let mut ending = false;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return open,
                _ = self.cx.spawner.failed() => return open,
                _ = slots.tick() => {}
                () = self.pool.full.notified() => slots.reset(),
            }
            match self.seal_once(&mut open).await {
                Ok(outcome) => {
                    pauses.reset();
                    patience.reset();
                    let ends = outcome == SealOutcome::EpochEnds;
                    match (std::mem::replace(&mut ending, ends), ends) {
                        (false, true) => tracing::warn!(
                            "the announced end of the epoch is near: nothing more is sealed for it"
                        ),
                        (true, false) => tracing::info!("sealing goes on"),
                        _ => {}
                    }
                    match outcome {
                        // Another one seals, or ours was taken back for what is not here yet: whoever seals again asks anew
                        // what was signed meanwhile.
                        SealOutcome::OutOfOffice | SealOutcome::SignedAbove => {
                            self.recovered.begin_again();
                            return open;
                        }
                        SealOutcome::Sealed { full: true } => self.pool.full.notify_one(),
                        SealOutcome::AwaitingCertificates => self.cx.metrics.seal_waits.increment(),
                        _ => {}
                    }
                }
                Err(failure) => {
                    self.cx.metrics.seal_failures.increment();
                    // A full disk may be emptied; one that stays full is the operator's.
                    let storage = matches!(
                        failure,
                        SealFailure::Store(_) | SealFailure::Refused(SealingError::Store(_))
                    );
                    if is_fatal(&failure) || storage && patience.failed() {
                        self.cx.fail("sealer", failure.to_string());
                        return open;
                    }
                    let pause = pauses.pause();
                    tracing::warn!(%failure, ?pause, "nothing sealed; trying again");
                    tokio::select! {
                        _ = stop.wait_for(|stop| *stop) => return open,
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    /// One attempt to seal the next header.
    pub(crate) async fn seal_once(&self, open: &mut OpenBlock) -> Result<SealOutcome, SealFailure> {
        let started = now();
        if self.displaced.take_reopened() {
            let looked = open_block(&self.cx).await;
            if looked.is_err() {
                // Not looked at yet.
                self.displaced.reopen();
            }
            *open = looked?;
        }
        if self.agreement.fault().is_some() {
            return Ok(SealOutcome::AwaitingClock);
        }
        let office = self.cx.office();
        let Some(term) = office.origins() else { return Ok(SealOutcome::OutOfOffice) };
        let head = self.cx.tracker.head();
        let number = head.number + 1;
        if self.cx.store.heads().await?.acknowledged > Some(head.number) {
            return Ok(SealOutcome::SignedAbove);
        }
        let in_flight = head.number.saturating_sub(self.cx.tracker.certified().number);
        let limit = u64::from(self.cx.config.sealing.max_uncertified_headers);
        if self.cx.tracker.too_many_uncertified(*term.start(), limit).await? {
            return Ok(SealOutcome::AwaitingCertificates);
        }
        self.drop_expired(number, head.generation).await?;
        if self.origins(&head).is_empty() {
            return Ok(SealOutcome::AwaitingL1);
        }
        let now_ms = self.cx.clock.now_ms();
        let Some(frame) = self.frame(&head, now_ms) else {
            // What L1 forces does not fit this second any more; the next one has room.
            return Ok(SealOutcome::Idle);
        };
        let Frame { origin, mut timestamp_ms, ref forced } = frame;
        let epoch = self.cx.tracker.epoch_at(number, origin.number).await;
        if self.cx.tracker.closed(number).is_some() {
            return Ok(SealOutcome::EpochEnds);
        }
        let begins =
            self.cx.tracker.rules_begin(number) || epoch.as_ref().is_ok_and(|epoch| number == epoch.first);
        if begins && in_flight > 0 {
            // A run posted to L1 lies in one epoch, is of one rule set and ends with a certificate of its own. The certified
            // head has one, so the last header before either changes gets it before that.
            return Ok(SealOutcome::AwaitingCertificates);
        }
        let epoch = epoch.map_err(|refusal| {
            tracing::warn!(%refusal, number, "no epoch");
            SealFailure::NoEpoch(number)
        })?;
        self.pool.arrived.clear();
        let mut choice = self.choose(&head, timestamp_ms, &epoch, frame.room(self.room(&head, timestamp_ms)));
        let overflows =
            choice.taken.is_empty() && forced.is_empty() && self.second_is_full(&head, timestamp_ms);
        if overflows || choice.due_left {
            // What overflows takes the next second's stamp, as long as members take it for now.
            let next_ms = (block_second(timestamp_ms) + 1).saturating_mul(1_000);
            if next_ms <= now_ms.saturating_add(MAX_LEAD_MS) {
                timestamp_ms = next_ms;
                choice = self.choose(&head, timestamp_ms, &epoch, frame.room(self.room(&head, timestamp_ms)));
            }
        }
        if choice.due_left && block_second(timestamp_ms) == block_second(head.timestamp_ms) {
            // No header takes this number without what was promised for it; the next second has room.
            return Ok(SealOutcome::Idle);
        }
        let Choice { taken, full, .. } = choice;
        let closing = taken.is_empty() && forced.is_empty();
        if closing
            && !self.deposits_left(&head, timestamp_ms)
            && !self.needs_empty_header(open, &head, &origin, &epoch, timestamp_ms)
        {
            return Ok(SealOutcome::Idle);
        }
        let Some((sealed, used)) = self.seal_with(timestamp_ms, forced.len(), &taken, origin, &head).await?
        else {
            return Ok(SealOutcome::AwaitingCertificates);
        };
        // From here on the header exists: nothing may fail.
        self.queue.sealed(sealed.batch.header.number, taken.iter().map(|(_, item)| item.arrived));
        {
            let mut pool = self.pool.lock();
            let number = sealed.batch.header.number;
            // What was chosen stands behind what L1 forces.
            let chosen = sealed.verdicts.len().saturating_sub(taken.len());
            for ((meta, _), verdict) in taken.iter().zip(sealed.verdicts.iter().skip(chosen)) {
                // As it stands now: it may have been promised since it was chosen.
                let waits = pool.get(&meta.id).is_some_and(|now| waits_for_its_number(now, verdict, number));
                if !waits {
                    pool.remove(&meta.id);
                }
            }
            done_in(&mut pool, number, &sealed.batch.items, &sealed.verdicts);
            self.pool.show(&pool);
        }
        let deposits = used.number > head.l1_origin && self.l1.bridge_waits(head.l1_origin);
        self.l1.sealed(used);
        let makes_block = deposits || sealed.verdicts.iter().any(Verdict::makes_block);
        open.sealed(sealed.batch.header.second(), makes_block);
        // Another number only if L1 made a header meanwhile; the tracker has sealed for that number's epoch.
        let number = sealed.batch.header.number;
        let epoch =
            if epoch.contains(number) { Some(epoch) } else { self.cx.tracker.epoch(number).await.ok() };
        if let Some(epoch) = epoch {
            self.certifier.begin(number, sealed.hash, Arc::new(epoch));
        }
        self.cx.hub.publish(&announce::header(&sealed.batch, sealed.hash, &sealed.verdicts));
        self.count_sealed(&sealed, closing, started);
        Ok(SealOutcome::Sealed { full })
    }

    /// Seals with this origin, or with the parent's when L1 cannot tell what it said. `None` when the committee is
    /// behind.
    async fn seal_with(
        &self,
        timestamp_ms: u64,
        forced: usize,
        taken: &[(Meta, PoolItem)],
        origin: L1Origin,
        head: &Head,
    ) -> Result<Option<(Sealed, L1Origin)>, SealFailure> {
        let items = || -> Vec<(Vec<u8>, CheckedItem)> {
            taken.iter().map(|(_, item)| (item.bytes.to_vec(), Ok(item.checked.as_ref().clone()))).collect()
        };
        let result = match self.cx.tracker.seal(timestamp_ms, forced, items(), &origin, &self.cx.signer).await
        {
            Err(SealingError::L1(fault)) => match self.l1.parent_origin(head.l1_origin) {
                Some(parent) if self.cx.tracker.too_late_for(parent.number).is_none() => {
                    tracing::warn!(%fault, "L1 does not tell what it said; sealing with the parent's origin");
                    let (at, cursor) = (head.l1_origin, head.forced_cursor);
                    let there = self.l1.at_hand(at, at, cursor).map_or(0, |news| news.forced.len());
                    let forced = forced.min(there);
                    let sealed =
                        self.cx.tracker.seal(timestamp_ms, forced, items(), &parent, &self.cx.signer).await;
                    sealed.map(|sealed| (sealed, parent))
                }
                _ => Err(SealingError::L1(fault)),
            },
            result => result.map(|sealed| (sealed, origin)),
        };
        match result {
            Ok(sealed) => Ok(Some(sealed)),
            // L1 gets there by itself.
            Err(
                SealingError::TooManyUncertified { .. }
                | SealingError::EpochNotInForce { .. }
                | SealingError::NotOurs { .. },
            ) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// The origins that the next header may have: those of our term, not too old to be posted, nor too near to the end of its
    /// epoch; after a header that L1 made, those that have seen it.
    fn origins(&self, head: &Head) -> Vec<L1Origin> {
        let office = self.cx.office();
        let ours = |origin: &L1Origin| office.origins().is_some_and(|term| term.contains(&origin.number));
        let closed_from =
            self.cx.tracker.closing(head.number + 1).map_or(u64::MAX, |closing| closing.closed_from());
        let mut origins = self.l1.origins(head.l1_origin);
        origins.retain(|origin| {
            origin.number >= head.made_at
                && origin.number < closed_from
                && ours(origin)
                && self.cx.tracker.too_late_for(origin.number).is_none()
        });
        origins
    }

    /// Origin, stamp and forced items of the next header: the newest origin at which everything that L1 forces fits, at
    /// this second or the next. `None` when nothing fits now.
    fn frame(&self, head: &Head, now_ms: u64) -> Option<Frame> {
        let lead_ms = now_ms.saturating_add(MAX_LEAD_MS);
        let due = self.pool.lock().due(head.number + 1);
        let mut last_resort = None;
        let mut origins = self.origins(head);
        // An origin whose time is ahead of ours waits, unless there is no other.
        let fits_clock = |origin: &L1Origin| {
            origin.timestamp.saturating_mul(1_000)
                <= now_ms.max(head.timestamp_ms).saturating_add(MAX_LEAD_MS)
        };
        if origins.iter().any(fits_clock) {
            origins.retain(fits_clock);
        }
        for origin in origins {
            let stamp =
                now_ms.max(head.timestamp_ms.saturating_add(1)).max(origin.timestamp.saturating_mul(1_000));
            let next = (block_second(stamp) + 1).saturating_mul(1_000);
            // What is not at hand yet comes with the next look at L1.
            let Some(news) = self.l1.at_hand(head.l1_origin, origin.number, head.forced_cursor) else {
                continue;
            };
            for timestamp_ms in [stamp, next] {
                if timestamp_ms == next && next > lead_ms {
                    continue;
                }
                let (gas, bytes) = self.cx.tracker.with_state(|state| state.room(block_second(timestamp_ms)));
                // Promises for this header first: what L1 forces can wait until it is due, and then for an older origin.
                let spared = (gas.checked_sub(due.gas), bytes.checked_sub(due.bytes));
                if let (Some(gas), Some(bytes)) = spared
                    && let Some(forced) = take_forced(&self.cx.chain, &news, origin.number, gas, bytes)
                {
                    return Some(Frame { origin, timestamp_ms, forced });
                }
                let fresh = block_second(timestamp_ms) > block_second(head.timestamp_ms);
                if fresh && let Some(forced) = take_forced(&self.cx.chain, &news, origin.number, gas, bytes) {
                    last_resort.get_or_insert(Frame { origin, timestamp_ms, forced });
                }
            }
        }
        // More is due in L1's queue than a header takes: it goes before what was promised.
        last_resort
    }

    /// What a batch stamped so may hold.
    fn room(&self, head: &Head, timestamp_ms: u64) -> Capacity {
        let same_second = block_second(timestamp_ms) == block_second(head.timestamp_ms);
        let (gas, bytes) = if same_second { (head.second_gas, head.second_bytes) } else { (0, 0) };
        let limits = &self.cx.config.sealing;
        let rule = Demand {
            bytes: MAX_SECOND_BYTES.saturating_sub(bytes),
            gas: self.cx.chain.second_gas_limit().saturating_sub(gas),
            items: MAX_BATCH_ITEMS as u32,
        };
        let bytes = rule.bytes.min(limits.max_batch_bytes.into());
        Capacity { rule, settings: Demand { bytes, items: limits.max_batch_items, ..rule } }
    }

    /// Whether envelopes wait that only the sums over the whole second keep out.
    fn second_is_full(&self, head: &Head, timestamp_ms: u64) -> bool {
        let same_second = block_second(timestamp_ms) == block_second(head.timestamp_ms);
        same_second && head.second_bytes > 0 && self.pool.lock().ready_len() > 0
    }

    /// Chooses the items of the next batch, each accepted by the validity rule after those before it.
    fn choose(&self, head: &Head, timestamp_ms: u64, epoch: &Epoch, room: Capacity) -> Choice<PoolItem> {
        // The pool's lock comes before the tracker's, here and at admission.
        let mut pool = self.pool.lock();
        let number = head.number + 1;
        pool.choosing(number);
        pool.set_next(self.pool.next_header());
        let second = block_second(timestamp_ms);
        let mut choice =
            choice::choose(&pool, (number, epoch.epoch, head.generation), room, |meta, spent| {
                self.cost_if_acceptable(&pool, meta, second, spent)
            });
        for (meta, item) in &mut choice.taken {
            pool.set_skipped(&meta.id, false);
            // Before, it kept nobody waiting, and waited for nobody.
            item.arrived = pool.waits_since(&meta.id, item.arrived);
        }
        for id in &choice.skipped {
            pool.set_skipped(id, true);
        }
        self.queue.look_at(&pool);
        choice
    }

    /// What an envelope costs its payer, if the next header, of this second, accepts it after the payer has spent `due`
    /// in it.
    fn cost_if_acceptable(
        &self,
        pool: &Mempool<PoolItem>,
        meta: &Meta,
        second: u64,
        due: u128,
    ) -> Option<u128> {
        let item = pool.item(&meta.id)?;
        self.cx.tracker.with_state(|state| {
            state.admissible(&item.checked, second).ok()?;
            let cost = meta.fee(state.base_fees_at(second)).saturating_add(self.cx.chain.malformed_surcharge);
            let balance = state.ledger().account(&meta.payer).map_or(0, |account| account.balance);
            (due.saturating_add(cost) <= balance).then_some(cost)
        })
    }

    /// Whether an empty header is due: it closes a second that has accepted items, credits deposits that are final,
    /// or leads to the epoch that waiting envelopes are encrypted for.
    fn needs_empty_header(
        &self,
        open: &OpenBlock,
        head: &Head,
        origin: &L1Origin,
        epoch: &Epoch,
        timestamp_ms: u64,
    ) -> bool {
        open.must_close(block_second(timestamp_ms))
            || (origin.number > head.l1_origin
                && (self.l1.deposits_wait(head.l1_origin) || self.l1.bridge_waits(head.l1_origin)))
            || self.pool.lock().waits_for_epoch_after(epoch.epoch)
            || self.heartbeat_due(head, timestamp_ms)
    }

    /// Whether envelopes wait and no header came for long: numbers go on, so that what nobody takes expires, and fees
    /// fall. Only while the committee is there.
    fn heartbeat_due(&self, head: &Head, timestamp_ms: u64) -> bool {
        timestamp_ms >= head.timestamp_ms.saturating_add(self.cx.config.sealing.heartbeat_ms)
            && self.cx.tracker.certified().number == head.number
            && self.pool.lock().ready_len() > 0
    }

    /// Whether execution waits for the next second to take L1 deposits that its last block had no room for. Only once it
    /// has executed all that is certified: while it waits for hints, more headers would not help it, and at most one
    /// header a second is sealed for them.
    fn deposits_left(&self, head: &Head, timestamp_ms: u64) -> bool {
        let status = self.executed.borrow();
        status.deposits_wait
            && status.state == ExecutionState::Waiting
            && self.cx.tracker.certified().number == head.number
            && block_second(timestamp_ms) > block_second(head.timestamp_ms)
    }

    /// Envelopes that no batch from `number` on takes leave the pool, with a record of it: those whose last number has
    /// passed, and all that are of another generation than the head.
    async fn drop_expired(&self, number: u64, generation: u16) -> Result<(), StoreError> {
        loop {
            let outdated = self.pool.lock().outdated(generation, EXPIRED_CHUNK_ITEMS);
            if outdated.is_empty() {
                break;
            }
            // All of them at once: one that was promised goes into its batch whatever the rule says of it.
            self.drop_with(&outdated, EnvelopeError::WrongGeneration.as_str(), number).await?;
        }
        let expired = self.pool.lock().expired(generation, number, EXPIRED_CHUNK_ITEMS);
        self.drop_with(&expired, EXPIRED_OUTCOME, number).await
    }

    async fn drop_with(&self, ids: &[B256], outcome: &str, number: u64) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.cx.store.remove_envelopes(ids, outcome, number).await?;
        let mut pool = self.pool.lock();
        for id in ids {
            pool.remove(id);
        }
        self.pool.show(&pool);
        self.cx.metrics.envelopes_expired.add(ids.len() as u64);
        tracing::info!(count = ids.len(), number, outcome, "envelopes expired");
        Ok(())
    }

    fn count_sealed(&self, sealed: &Sealed, closing: bool, started: Instant) {
        let header = &sealed.batch.header;
        self.cx.metrics.batches_sealed.increment();
        self.backlog.sealed(header.number, header.envelope_bytes);
        if closing {
            self.cx.metrics.closing_headers.increment();
        } else {
            self.cx.metrics.batch_items.observe(header.envelope_count.into());
            self.cx.metrics.batch_bytes.observe(header.envelope_bytes.into());
        }
        self.cx.metrics.seal_seconds.observe_duration(started.elapsed());
        self.cx.show_chain();
        tracing::info!(
            number = header.number, hash = %sealed.hash, items = header.envelope_count, bytes = header.envelope_bytes,
            "sealed"
        );
    }
}

/// The second that the stored chain leaves open.
pub(crate) async fn open_block(cx: &Context) -> Result<OpenBlock, StoreError> {
    let head = cx.tracker.head();
    let second = block_second(head.timestamp_ms);
    let mut open = OpenBlock::default();
    for number in (1..=head.number).rev() {
        let Some(record) = cx.store.batch(number).await? else { break };
        let header = &record.sealed.header;
        if header.second() != second {
            break;
        }
        // A header that advanced the origin may have brought L1 deposits; closing its second does no harm.
        let before = cx.store.batch(number - 1).await?.map(|record| record.sealed.header);
        let advanced = before.is_none_or(|before| before.l1_origin_number < header.l1_origin_number);
        if makes_block(&record) > 0 || advanced {
            open.sealed(second, true);
            break;
        }
    }
    Ok(open)
}

/// What L1 prescribes to the next header.
struct Frame {
    origin: L1Origin,
    timestamp_ms: u64,
    /// The entries of the forced queue that it takes.
    forced: Vec<ForcedEntry>,
}

impl Frame {
    /// What is left of a batch's room for ordinary envelopes.
    fn room(&self, mut room: Capacity) -> Capacity {
        let (gas, bytes) = self.forced.iter().fold((0u64, 0u64), |(gas, bytes), entry| {
            (gas.saturating_add(most_gas(entry, u64::MAX)), bytes.saturating_add(entry.item.len() as u64))
        });
        for room in [&mut room.rule, &mut room.settings] {
            room.gas = room.gas.saturating_sub(gas);
            room.bytes = room.bytes.saturating_sub(bytes);
            // At most `MAX_FORCED_ITEMS`.
            room.items = room.items.saturating_sub(self.forced.len() as u32);
        }
        room
    }
}

/// The most gas that an entry may take in a batch; an envelope that asks for more than `envelope_limit` is skipped.
fn most_gas(entry: &ForcedEntry, envelope_limit: u64) -> u64 {
    entry.transaction_gas().unwrap_or_else(|| {
        let asked = Envelope::decode(&entry.item).map_or(0, |envelope| envelope.header.gas_limit);
        if asked > envelope_limit { 0 } else { asked }
    })
}

/// As many entries as fit the second; `None` when something due would be left out.
fn take_forced(
    chain: &ChainConfig,
    news: &L1News,
    origin: u64,
    mut gas: u64,
    mut bytes: u64,
) -> Option<Vec<ForcedEntry>> {
    let mut taken = Vec::new();
    for entry in news.forced.iter().take(MAX_FORCED_ITEMS) {
        let costs = (most_gas(entry, chain.forced_envelope_gas_limit()), entry.item.len() as u64);
        let (Some(gas_left), Some(bytes_left)) = (gas.checked_sub(costs.0), bytes.checked_sub(costs.1))
        else {
            break;
        };
        (gas, bytes) = (gas_left, bytes_left);
        taken.push(entry.clone());
    }
    let left = news.forced.get(taken.len());
    let ignored = taken.len() < MAX_FORCED_ITEMS
        && left.is_some_and(|entry| entry.due_at(chain.timing.forced_delay) <= origin);
    (!ignored).then_some(taken)
}

/// What L1 forces stands in front of what was chosen, and its payer may have spoilt a promised envelope by it. That has to
/// stand in the batch that it is promised for, too.
fn waits_for_its_number(meta: &Meta, verdict: &Verdict, number: u64) -> bool {
    let spoilt = matches!(verdict, Verdict::Skipped(fault) if fault.spoilt_by_payer());
    spoilt && meta.seal_by.is_some_and(|seal_by| seal_by > number)
}

/// A second header for a number on our disk, or a damaged disk: going on could sign two headers for one number.
fn is_fatal(failure: &SealFailure) -> bool {
    match failure {
        SealFailure::Store(error) | SealFailure::Refused(SealingError::Store(error)) => !error.retry(),
        // A stored header is not signed, and nothing may be sealed above it.
        SealFailure::Refused(SealingError::Signer(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_closed_by_a_later_one_only() {
        let mut open = OpenBlock::default();
        assert!(!open.must_close(100));
        open.sealed(100, true);
        assert!(!open.must_close(100) && open.must_close(101));
        open.sealed(100, false);
        assert!(open.must_close(101));
        open.sealed(101, false);
        assert!(!open.must_close(200), "an empty second needs no closing");
        open.sealed(200, true);
        open.sealed(201, true);
        assert!(!open.must_close(201) && open.must_close(202));
    }
}

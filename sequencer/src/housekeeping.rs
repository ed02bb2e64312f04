//! What is looked after once in a while: headers announced again, certificates retried, old outcomes forgotten,
//! readiness told.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::{Json, Router, routing::get};
use blindfold_chain::{
    Closing, ExecutionState, Executor, ExecutorStatus, NewBlock, Office, announce, verdicts,
};
use blindfold_protocol::limits::EXPIRY_WINDOW;
use blindfold_rpc::Readiness;
use blindfold_runtime::{Agreement, Instant, now};
use blindfold_store::{BatchRecord, StoreError};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{MissedTickBehavior, interval},
};

use crate::{
    backlog::{Backlog, Stages},
    certifier::Certifier,
    context::Context,
    l1_cache::L1Cache,
    pool::Pool,
    recover::{Recovered, out_of_office},
};

/// How often housekeeping looks, in milliseconds.
const KEEP_INTERVAL_MS: u64 = 500;
/// Uncertified headers are announced again when no certificate came for this long.
const ANNOUNCE_AGAIN_MS: u64 = 3_000;
/// Outcomes of removed envelopes are forgotten this many batches later, once no copy could be admitted any more.
const KEEP_OUTCOMES_BATCHES: u64 = 2 * EXPIRY_WINDOW;
/// How often old outcomes are looked for, in batches.
const PRUNE_EVERY_BATCHES: u64 = 256;

/// What must hold before the sequencer is ready.
pub(crate) const CONDITIONS: &[&str] =
    &["l1", "clock", "recovery", "office", "epoch", "committee", "execution", "sealing"];

/// The task that looks after all that comes up once in a while.
pub(crate) struct Housekeeping {
    pub(crate) cx: Arc<Context>,
    pub(crate) l1: Arc<L1Cache>,
    pub(crate) agreement: Arc<Agreement>,
    pub(crate) certifier: Arc<Certifier>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) recovered: Arc<Recovered>,
    pub(crate) executor: Executor,
    pub(crate) readiness: Readiness,
}

impl Housekeeping {
    /// Looks after things until the sequencer stops.
    pub(crate) async fn run(self) {
        let mut ticks = interval(Duration::from_millis(KEEP_INTERVAL_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = self.cx.stop.clone();
        let mut progress = (self.cx.tracker.certified(), now());
        let mut arrived = VecDeque::new();
        let mut pruned = self.cx.tracker.head().number / PRUNE_EVERY_BATCHES;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                _ = ticks.tick() => {}
            }
            self.show_oldest(&mut arrived);
            self.show_readiness().await;
            self.certifier.retry_certifying().await;
            match stages(&self.cx, &self.executor.status()).await {
                Ok(stages) => self.backlog.advance(stages),
                Err(error) => tracing::warn!(%error, "how far the batches have come is not known"),
            }
            let certified = self.cx.tracker.certified();
            if certified != progress.0 {
                progress = (certified, now());
            } else if progress.1.elapsed() >= Duration::from_millis(ANNOUNCE_AGAIN_MS) {
                progress.1 = now();
                self.announce_again(certified.number).await;
            }
            let head = self.cx.tracker.head().number;
            if head / PRUNE_EVERY_BATCHES > pruned {
                pruned = head / PRUNE_EVERY_BATCHES;
                if let Err(error) =
                    self.cx.store.prune_outcomes(head.saturating_sub(KEEP_OUTCOMES_BATCHES)).await
                {
                    tracing::warn!(%error, "old outcomes are not forgotten");
                }
            }
        }
    }

    /// Headers that members may have missed.
    async fn announce_again(&self, certified: u64) {
        for number in certified + 1..=self.cx.tracker.head().number {
            if let Err(error) = self.announce_stored(number).await {
                tracing::warn!(%error, number, "header not announced again");
                return;
            }
        }
    }

    async fn announce_stored(&self, number: u64) -> Result<(), StoreError> {
        if let Some(record) = self.cx.store.batch(number).await?.filter(BatchRecord::is_signed) {
            self.cx.hub.publish(&announce::header(&record.sealed, record.hash, &verdicts(&record)?));
        }
        Ok(())
    }

    /// Shows for how long the oldest envelope has waited. `arrived` has how many had come at each look, newest last: the pool
    /// knows their order and no clock.
    fn show_oldest(&self, arrived: &mut VecDeque<(Instant, u64)>) {
        let (count, oldest) = self.pool.lock().arrivals();
        arrived.push_back((now(), count));
        let Some(oldest) = oldest else {
            arrived.clear();
            return self.cx.metrics.oldest_envelope_ms.set(0);
        };
        // Of the looks before which it had come, the first one dates it.
        while arrived.len() > 1 && arrived.front().is_some_and(|(_, count)| *count <= oldest) {
            arrived.pop_front();
        }
        let waited = arrived.front().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        self.cx.metrics.oldest_envelope_ms.set(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
    }

    async fn show_readiness(&self) {
        let head = self.cx.tracker.head();
        let tell = |condition, fault: Option<String>| match fault {
            None => self.readiness.set_ready(condition),
            Some(reason) => self.readiness.set_not_ready(condition, reason),
        };
        let oldest = (self.cx.clock.now_ms() / 1_000)
            .saturating_sub(self.cx.chain.timing.max_origin_age_seconds.into());
        tell(
            "l1",
            match self.l1.origins(head.l1_origin).first() {
                None => Some("L1 has not told a final block yet".to_owned()),
                Some(newest) if newest.timestamp < oldest => Some(format!(
                    "the newest final block of L1, {}, is too old for another header",
                    newest.number
                )),
                Some(newest) => self.cx.tracker.too_late_for(newest.number).map(|l1| {
                    format!(
                        "the newest final block of L1, {}, is so far behind its newest, {l1}, that a header with it \
                         could not be posted in time",
                        newest.number
                    )
                }),
            },
        );
        tell("clock", self.agreement.fault().map(|fault| fault.to_string()));
        let asking = || Some("the committee is asked what was signed before".to_owned());
        tell(
            "recovery",
            if self.recovered.is_complete() { None } else { self.recovered.blocked_by().or_else(asking) },
        );
        tell(
            "office",
            match self.cx.office() {
                Office::Leaves { term } => Some(format!(
                    "this key signs headers with L1 origins up to {} only: nothing is admitted any more",
                    term.end()
                )),
                office => out_of_office(&office),
            },
        );
        let epoch = self.cx.tracker.epoch(head.number + 1).await.err().map(|refusal| refusal.to_string());
        tell("epoch", epoch.or_else(|| self.cx.tracker.closed(head.number + 1).map(epoch_ends)));
        let waiting = head.number.saturating_sub(self.cx.tracker.certified().number);
        let limit = u64::from(self.cx.config.sealing.max_uncertified_headers);
        tell("committee", (waiting >= limit).then(|| format!("{waiting} headers wait for certificates")));
        let executed = self.executor.status();
        self.cx.metrics.blocks_taken_back.set(executed.taken_back_blocks);
        let halted = match executed.state {
            ExecutionState::Halted { reason } => Some(reason),
            _ => None,
        };
        tell("execution", halted);
        tell("sealing", self.cx.spawner.failure().map(|failure| failure.to_string()));
    }
}

/// How far posting, hints and execution have come.
pub(crate) async fn stages(cx: &Context, executed: &ExecutorStatus) -> Result<Stages, StoreError> {
    let heads = cx.store.heads().await?;
    let seen = u64::try_from(cx.metrics.posted_number.get()).unwrap_or_default();
    Ok(Stages {
        posted: cx.config.posting.enabled.then(|| heads.posted.unwrap_or_default().max(seen)),
        // What is executed needs no hints, or never gets any: L1 declared it void.
        hinted: heads.hinted_through.unwrap_or_default().max(executed.last_batch),
        executed: executed.last_batch,
    })
}

/// Announces blocks as they are executed.
pub(crate) async fn relay_blocks(cx: Arc<Context>, mut blocks: broadcast::Receiver<Arc<NewBlock>>) {
    let mut stop = cx.stop.clone();
    loop {
        let block = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            block = blocks.recv() => block,
        };
        match block {
            Ok(block) => {
                cx.metrics.blocks.increment();
                cx.metrics.block_number.set(block.record.number);
                cx.hub.publish(&announce::block(&block));
            }
            // Subscribers fetch what they missed.
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "blocks not announced"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Why nothing is sealed for an epoch any more.
fn epoch_ends(closing: Closing) -> String {
    let (epoch, from, until) = (closing.epoch, closing.closed_from(), closing.until);
    format!(
        "the end of epoch {epoch} is due after L1 block {until}: from L1 block {from} on nothing is sealed for it, so that \
         what is certified can be posted in time"
    )
}

/// `/refusals` of the admin server: what members refused lately.
pub(crate) fn refusals_route(certifier: Arc<Certifier>) -> Router {
    Router::new().route("/refusals", get(move || async move { Json(certifier.refusals()) }))
}

//! What is looked after once in a while: headers announced again, certificates retried, old outcomes forgotten,
//! readiness told.

use std::{sync::Arc, time::Duration};

use axum::{Json, Router, routing::get};
use blindfold_chain::{
    Closing, ExecutionState, Executor, ExecutorStatus, NewBlock, Office, announce, verdicts,
};
use blindfold_protocol::limits::EXPIRY_WINDOW;
use blindfold_rpc::Readiness;
use blindfold_runtime::now;
use blindfold_store::StoreError;
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{MissedTickBehavior, interval},
};

use crate::{backlog::Stages, core::Core, recover::out_of_office};

/// How often the keeper looks.
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

impl Core {
    /// Looks after things until the sequencer stops.
    pub(crate) async fn keep(self: Arc<Self>, executor: Executor, readiness: Readiness) {
        let mut ticks = interval(Duration::from_millis(KEEP_INTERVAL_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = self.stop.clone();
        let mut progress = (self.tracker.certified(), now());
        let mut pruned = self.tracker.head().number / PRUNE_EVERY_BATCHES;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                _ = ticks.tick() => {}
            }
            self.show_readiness(&executor, &readiness).await;
            self.retry_certifying().await;
            match self.stages(&executor.status()).await {
                Ok(stages) => self.backlog.advance(stages),
                Err(error) => tracing::warn!(%error, "how far the batches have come is not known"),
            }
            let certified = self.tracker.certified();
            if certified != progress.0 {
                progress = (certified, now());
            } else if progress.1.elapsed() >= Duration::from_millis(ANNOUNCE_AGAIN_MS) {
                progress.1 = now();
                self.announce_again(certified.number).await;
            }
            let head = self.tracker.head().number;
            if head / PRUNE_EVERY_BATCHES > pruned {
                pruned = head / PRUNE_EVERY_BATCHES;
                if let Err(error) =
                    self.store.prune_outcomes(head.saturating_sub(KEEP_OUTCOMES_BATCHES)).await
                {
                    tracing::warn!(%error, "old outcomes are not forgotten");
                }
            }
        }
    }

    /// How far posting, hints and execution have come.
    pub(crate) async fn stages(&self, executed: &ExecutorStatus) -> Result<Stages, StoreError> {
        let heads = self.store.heads().await?;
        let seen = u64::try_from(self.metrics.posted_number.get()).unwrap_or_default();
        Ok(Stages {
            posted: self.config.posting.enabled.then(|| heads.posted.unwrap_or_default().max(seen)),
            // What is executed needs no hints, or never gets any: L1 declared it void.
            hinted: heads.hinted_through.unwrap_or_default().max(executed.last_batch),
            executed: executed.last_batch,
        })
    }

    /// Headers that members may have missed.
    async fn announce_again(&self, certified: u64) {
        for number in certified + 1..=self.tracker.head().number {
            if let Err(error) = self.announce_stored(number).await {
                tracing::warn!(%error, number, "header not announced again");
                return;
            }
        }
    }

    async fn announce_stored(&self, number: u64) -> Result<(), StoreError> {
        if let Some(record) = self.store.batch(number).await? {
            self.hub.publish(&announce::header(&record.sealed, record.hash, &verdicts(&record)?));
        }
        Ok(())
    }

    async fn show_readiness(&self, executor: &Executor, readiness: &Readiness) {
        let head = self.tracker.head();
        let tell = |condition, fault: Option<String>| match fault {
            None => readiness.set_ready(condition),
            Some(reason) => readiness.set_not_ready(condition, reason),
        };
        let oldest =
            (self.clock.now_ms() / 1_000).saturating_sub(self.chain.timing.max_origin_age_seconds.into());
        tell(
            "l1",
            match self.l1.origins(head.l1_origin).first() {
                None => Some("L1 has not told a final block yet".to_owned()),
                Some(newest) if newest.timestamp < oldest => Some(format!(
                    "the newest final block of L1, {}, is too old for another header",
                    newest.number
                )),
                Some(newest) => self.tracker.too_late_for(newest.number).map(|l1| {
                    format!(
                        "the newest final block of L1, {}, is so far behind its newest, {l1}, that a header with it \
                         could not be posted in time",
                        newest.number
                    )
                }),
            },
        );
        tell("clock", self.agreement.fault().map(|fault| fault.to_string()));
        let hindrance = self.hindrance.lock().clone();
        let asking = || Some("the committee is asked what was signed before".to_owned());
        tell("recovery", if self.recovered() { None } else { hindrance.or_else(asking) });
        tell(
            "office",
            match self.office() {
                Office::Leaves { term } => Some(format!(
                    "this key signs headers with L1 origins up to {} only: nothing is admitted any more",
                    term.end()
                )),
                office => out_of_office(&office),
            },
        );
        let epoch = self.tracker.epoch(head.number + 1).await.err().map(|refusal| refusal.to_string());
        tell("epoch", epoch.or_else(|| self.tracker.closed(head.number + 1).map(epoch_ends)));
        let waiting = head.number.saturating_sub(self.tracker.certified().number);
        let limit = u64::from(self.config.sealing.max_uncertified_headers);
        tell("committee", (waiting >= limit).then(|| format!("{waiting} headers wait for certificates")));
        let halted = match executor.status().state {
            ExecutionState::Halted { reason } => Some(reason),
            _ => None,
        };
        tell("execution", halted);
        tell("sealing", self.spawner.failure().map(|failure| failure.to_string()));
    }

    /// Announces blocks as they are executed.
    pub(crate) async fn relay_blocks(self: Arc<Self>, mut blocks: broadcast::Receiver<Arc<NewBlock>>) {
        let mut stop = self.stop.clone();
        loop {
            let block = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                block = blocks.recv() => block,
            };
            match block {
                Ok(block) => {
                    self.metrics.blocks.increment();
                    self.metrics.block_number.set(block.record.number);
                    self.hub.publish(&announce::block(&block));
                }
                // Subscribers fetch what they missed.
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "blocks not announced"),
                Err(RecvError::Closed) => return,
            }
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
pub(crate) fn refusals_route(core: Arc<Core>) -> Router {
    Router::new().route("/refusals", get(move || async move { Json(core.certifier.refusals()) }))
}

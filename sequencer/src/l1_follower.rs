//! Following L1: what it says is offered to the sealer through the cache, what it made itself is taken.

use std::{sync::Arc, time::Duration};

use blindfold_chain::{L1Reader, NextStep, TrackerError, announce};
use blindfold_runtime::{Agreement, Instant, Patience, now, wall_ms};

use crate::{
    context::Context,
    displaced::Displaced,
    l1_cache::{L1Cache, Look},
};

/// How long a final block is held back after it was seen before a header names it, in polls.
const ORIGIN_HOLD_POLLS: u32 = 4;

/// Reads L1 for the sealer, and takes the headers that L1 made.
pub(crate) struct L1Follower {
    pub(crate) cx: Arc<Context>,
    pub(crate) l1: Arc<L1Cache>,
    /// Whether our clock, the wall's and L1's agree.
    pub(crate) agreement: Arc<Agreement>,
    pub(crate) displaced: Arc<Displaced>,
}

impl L1Follower {
    /// Refreshes the cache every `l1_poll_ms` until the sequencer stops, and takes the headers that L1 made.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut stop = self.cx.stop.clone();
        let mut reported = false;
        let mut patience = Patience::new(self.cx.config.l1_unusable_exit_ms);
        let poll = Duration::from_millis(self.cx.config.l1_poll_ms);
        let mut held: Option<(Instant, Look)> = None;
        loop {
            self.compare_clocks().await;
            if held.is_none() {
                let head = self.cx.tracker.head();
                match self.l1.look(head.l1_origin, head.forced_cursor).await {
                    Ok(look) => {
                        self.cx.metrics.l1_looked.set(wall_ms() / 1_000);
                        held = Some((now(), look));
                    }
                    Err(fault) => {
                        self.cx.metrics.l1_failures.increment();
                        if !std::mem::replace(&mut reported, true) {
                            tracing::warn!(%fault, "L1 cannot be read; sealing goes on with the origin at hand");
                        }
                    }
                }
            }
            match self.take_l1_headers().await {
                Ok(()) => {
                    patience.reset();
                    // Members and nodes see it meanwhile, and need no L1 for the header that names it.
                    let hold = ORIGIN_HOLD_POLLS * poll;
                    let due =
                        |(seen, look): &mut (Instant, Look)| seen.elapsed() >= hold || self.l1.offers(look);
                    if let Some((_, look)) = held.take_if(due) {
                        let origin = self.l1.offer(look);
                        self.cx.metrics.l1_final_number.set(origin.number);
                        if std::mem::take(&mut reported) {
                            tracing::info!(number = origin.number, "L1 answers again");
                        }
                    }
                }
                Err(TrackerError::L1(fault)) if fault.may_pass() => {
                    tracing::debug!(%fault, "L1 does not tell what it made");
                }
                // One answer that is not usable may be that of a server that lags behind the others; a full disk may be
                // emptied.
                Err(refusal) if passes(&refusal) && !patience.failed() => {
                    tracing::warn!(%refusal, "what L1 made cannot be taken yet");
                }
                Err(refusal) if refusal.next_step() == NextStep::Stop => {
                    // Sealing on would only make what L1 cannot take.
                    self.cx.fail("l1", refusal.to_string());
                    return;
                }
                Err(refusal) => tracing::warn!(%refusal, "what L1 made cannot be taken yet"),
            }
            tokio::select! {
                () = tokio::time::sleep(poll) => {}
                _ = stop.wait_for(|stop| *stop) => {
                    // Nobody looks from here on, and nobody has to.
                    self.cx.metrics.l1_looked.set(0);
                    return;
                }
            }
        }
    }

    /// Asks L1 for the time, and compares it with ours and the wall's.
    pub(crate) async fn compare_clocks(&self) {
        let l1 = self.l1.newest_time().await.ok().flatten();
        self.agreement.observe(l1.map(|seconds| seconds.saturating_mul(1_000)));
    }

    /// Goes on from the headers that L1 made: nobody sequenced for long, or two headers of one number were shown.
    pub(crate) async fn take_l1_headers(&self) -> Result<(), TrackerError> {
        self.displaced.restore().await?;
        let before = self.cx.tracker.head().number;
        let taken = self.cx.tracker.follow_l1().await;
        // What our own headers from there on took waits again, and nobody certifies them. Also where the disk failed once
        // they were taken back: the next look begins without them.
        let left = self.cx.tracker.head().number;
        if taken.is_err() && left < before {
            self.displaced.forget_from(left + 1);
        }
        let taken = taken?;
        let Some((_, first)) = taken.first() else { return Ok(()) };
        if first.number <= before {
            self.displaced.take_back();
        }
        self.displaced.replaced_from(first.number);
        for (sealed, applied) in &taken {
            tracing::error!(number = applied.number, hash = %applied.hash, "L1 made a header: going on from it");
            self.cx.hub.publish(&announce::header(sealed, applied.hash, &applied.verdicts));
        }
        self.cx.show_chain();
        self.displaced.reopen();
        self.displaced.restore().await?;
        Ok(())
    }
}

/// Whether it may be over at the next look.
fn passes(refusal: &TrackerError) -> bool {
    match refusal {
        TrackerError::L1(_) => true,
        TrackerError::Store(error) => error.retry(),
        _ => false,
    }
}

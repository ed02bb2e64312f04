//! Asking L1 for the headers that it made, beside a role's other work: an L1 that hangs holds nothing up.

use std::sync::Arc;

use blindfold_protocol::SealedBatch;
use tokio::{
    task::JoinSet,
    time::{Duration, timeout},
};

use crate::{Applied, Tracker, TrackerError, limits::L1_HEADERS_PATIENCE_MS};

/// What a round gave: the batches that are new, oldest first.
pub type L1Round = Result<Vec<(Arc<SealedBatch>, Applied)>, TrackerError>;

/// Rounds of [`Tracker::follow_l1`], one at a time. Dropping it ends the one under way.
pub struct L1Rounds {
    tracker: Tracker,
    under_way: JoinSet<L1Round>,
}

impl L1Rounds {
    /// None is under way yet.
    pub fn new(tracker: Tracker) -> Self {
        Self { tracker, under_way: JoinSet::new() }
    }

    /// Begins a round, if none is under way.
    pub fn begin(&mut self) {
        if self.under_way.is_empty() {
            let tracker = self.tracker.clone();
            self.under_way.spawn(async move { tracker.follow_l1().await });
        }
    }

    /// [Begins](Self::begin) a round and waits for it a moment. `None`: L1 has not answered yet, and what it says comes by
    /// [`ended`](Self::ended), or by the next call.
    pub async fn round(&mut self) -> Option<L1Round> {
        self.begin();
        timeout(Duration::from_millis(L1_HEADERS_PATIENCE_MS), self.ended()).await.ok()
    }

    /// The end of the round under way; for ever where there is none. Nothing is lost when the future is dropped.
    pub async fn ended(&mut self) -> L1Round {
        match self.under_way.join_next().await {
            Some(Ok(round)) => round,
            // It panicked, which ends the role, or the role stops.
            Some(Err(_)) => Err(TrackerError::Stopped),
            None => std::future::pending().await,
        }
    }
}

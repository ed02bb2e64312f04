//! L1 as the sealer sees it: looked up in the background, so that sealing never waits for L1 and goes on while it is
//! down (with the origin it has).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use blindfold_chain::{L1Fault, L1Origin, L1View};
use blindfold_protocol::{Deposit, Epochs};
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::metrics::SequencerMetrics;

/// A view of L1 in front of another one, which remembers the newest final block and the deposits up to it.
pub struct L1Cache {
    inner: Arc<dyn L1View>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Newest final block whose deposits are all here.
    newest: Option<L1Origin>,
    /// Origin of the last sealed header.
    parent: Option<L1Origin>,
    /// Deposits of blocks `after + 1 ..= newest`.
    deposits: Vec<Deposit>,
    after: u64,
}

impl L1Cache {
    /// A cache that knows nothing yet.
    pub fn new(inner: Arc<dyn L1View>) -> Self {
        Self { inner, known: RwLock::new(Known::default()) }
    }

    /// Looks L1 up once: the newest final block, then the deposits of blocks after `parent` (the origin of the last
    /// sealed header) up to it. Only then is the block offered as an origin.
    pub async fn refresh(&self, parent: u64) -> Result<L1Origin, L1Fault> {
        if self.known.read().parent.as_ref().is_none_or(|origin| origin.number != parent) {
            let origin = self.inner.origin(parent).await?;
            self.known.write().parent = origin;
        }
        let newest = self.inner.finalized().await?;
        let (after, have) = {
            let known = self.known.read();
            match &known.newest {
                Some(have) if known.after <= parent && have.number >= parent => (known.after, have.number),
                _ => (parent, parent),
            }
        };
        let fresh =
            if newest.number > have { self.inner.deposits(have, newest.number).await? } else { Vec::new() };
        let mut known = self.known.write();
        if have == parent && after == parent {
            known.deposits.clear();
        }
        if known.newest.as_ref().is_none_or(|old| old.number <= newest.number) {
            known.deposits.extend(fresh);
            known.deposits.retain(|deposit| deposit.l1_block > parent);
            known.after = parent;
            known.newest = Some(newest);
        }
        Ok(newest)
    }

    /// The origin for the next header after one with origin `parent`: the newest final block known, or the parent's
    /// own. `None` until L1 was seen once.
    pub fn best_origin(&self, parent: u64) -> Option<L1Origin> {
        let known = self.known.read();
        match &known.newest {
            Some(newest) if newest.number >= parent => Some(*newest),
            _ => known.parent.filter(|origin| origin.number == parent),
        }
    }

    /// The origin of the last sealed header, if L1 told it.
    pub fn parent_origin(&self, parent: u64) -> Option<L1Origin> {
        let known = self.known.read();
        known.parent.iter().chain(&known.newest).find(|origin| origin.number == parent).copied()
    }

    /// Whether final deposits wait for a header after one with origin `parent`.
    pub fn deposits_wait(&self, parent: u64) -> bool {
        self.known.read().deposits.iter().any(|deposit| deposit.l1_block > parent)
    }

    /// The origin of the header just sealed becomes the parent's.
    pub fn sealed(&self, origin: L1Origin) {
        self.known.write().parent = Some(origin);
    }
}

#[async_trait]
impl L1View for L1Cache {
    async fn finalized(&self) -> Result<L1Origin, L1Fault> {
        self.inner.finalized().await
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault> {
        {
            let known = self.known.read();
            if let Some(origin) =
                known.newest.iter().chain(&known.parent).find(|origin| origin.number == number)
            {
                return Ok(Some(*origin));
            }
        }
        self.inner.origin(number).await
    }

    async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Fault> {
        {
            let known = self.known.read();
            if known.newest.as_ref().is_some_and(|newest| known.after <= after && through <= newest.number) {
                let range = after.saturating_add(1)..=through;
                return Ok(known.deposits.iter().filter(|d| range.contains(&d.l1_block)).cloned().collect());
            }
        }
        self.inner.deposits(after, through).await
    }

    async fn epochs(&self) -> Result<Epochs, L1Fault> {
        self.inner.epochs().await
    }
}

/// Refreshes the cache every `poll_ms` until `stop` says so. `parent` gives the origin of the last sealed header.
pub async fn follow_l1(
    cache: Arc<L1Cache>,
    poll_ms: u64,
    parent: impl Fn() -> u64 + Send,
    metrics: Arc<SequencerMetrics>,
    mut stop: watch::Receiver<bool>,
) {
    let mut reported = false;
    loop {
        match cache.refresh(parent()).await {
            Ok(origin) => {
                metrics.l1_final_number.set(origin.number);
                if std::mem::take(&mut reported) {
                    tracing::info!(number = origin.number, "L1 answers again");
                }
            }
            Err(fault) => {
                metrics.l1_failures.increment();
                if !std::mem::replace(&mut reported, true) {
                    tracing::warn!(%fault, "L1 cannot be read; sealing goes on with the origin at hand");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(poll_ms)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

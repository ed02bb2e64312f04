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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use blindfold_protocol::{Address, B256};

    use super::*;

    /// Block n is final up to a number, and holds a deposit of n wei.
    struct Script {
        finalized: AtomicU64,
        down: AtomicBool,
        asked: AtomicU64,
    }

    fn block(number: u64) -> L1Origin {
        L1Origin {
            number,
            hash: B256::with_last_byte(number as u8),
            timestamp: number,
            base_fee: 0,
            blob_base_fee: 0,
            parent_beacon_block_root: B256::ZERO,
        }
    }

    impl Script {
        fn at(number: u64) -> Arc<Self> {
            let (finalized, down, asked) =
                (AtomicU64::new(number), AtomicBool::new(false), AtomicU64::new(0));
            Arc::new(Self { finalized, down, asked })
        }

        fn up(&self) -> Result<u64, L1Fault> {
            if self.down.load(Ordering::SeqCst) {
                return Err(L1Fault::Unavailable { reason: "down".to_owned() });
            }
            Ok(self.finalized.load(Ordering::SeqCst))
        }
    }

    #[async_trait]
    impl L1View for Script {
        async fn finalized(&self) -> Result<L1Origin, L1Fault> {
            self.up().map(block)
        }

        async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault> {
            Ok((number <= self.up()?).then(|| block(number)))
        }

        async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Fault> {
            self.up()?;
            self.asked.fetch_add(1, Ordering::SeqCst);
            let deposit = |l1_block: u64| Deposit { payer: Address::ZERO, amount: l1_block.into(), l1_block };
            Ok((after + 1..=through).map(deposit).collect())
        }

        async fn epochs(&self) -> Result<Epochs, L1Fault> {
            self.up()?;
            Ok(Epochs::default())
        }
    }

    fn blocks(deposits: &[Deposit]) -> Vec<u64> {
        deposits.iter().map(|deposit| deposit.l1_block).collect()
    }

    #[tokio::test]
    async fn an_origin_is_offered_with_its_deposits_and_outlives_l1() {
        let script = Script::at(5);
        let cache = L1Cache::new(script.clone());
        assert_eq!(cache.best_origin(2), None);
        cache.refresh(2).await.unwrap();
        assert_eq!(cache.best_origin(2), Some(block(5)));
        assert!(cache.deposits_wait(2) && !cache.deposits_wait(5));
        script.finalized.store(7, Ordering::SeqCst);
        cache.refresh(2).await.unwrap();
        script.down.store(true, Ordering::SeqCst);
        assert!(cache.refresh(2).await.is_err());
        assert_eq!(blocks(&cache.deposits(2, 7).await.unwrap()), [3, 4, 5, 6, 7]);
        assert_eq!(blocks(&cache.deposits(4, 5).await.unwrap()), [5]);
        assert_eq!(cache.origin(7).await, Ok(Some(block(7))));
        assert_eq!(cache.origin(2).await, Ok(Some(block(2))), "the parent's");
        assert!(cache.deposits(1, 7).await.is_err(), "what is not here is asked for");
        assert!(cache.deposits(2, 8).await.is_err());
        assert_eq!(script.asked.load(Ordering::SeqCst), 2, "each block was asked for once");
        // A header with origin 7 is sealed: nothing newer is known, its own origin stands.
        cache.sealed(block(7));
        assert_eq!((cache.best_origin(7), cache.parent_origin(7)), (Some(block(7)), Some(block(7))));
        assert!(!cache.deposits_wait(7));
        script.down.store(false, Ordering::SeqCst);
        script.finalized.store(8, Ordering::SeqCst);
        cache.refresh(7).await.unwrap();
        assert_eq!(blocks(&cache.deposits(7, 8).await.unwrap()), [8]);
    }

    #[tokio::test]
    async fn a_view_that_falls_back_is_not_followed() {
        let script = Script::at(5);
        let cache = L1Cache::new(script.clone());
        cache.refresh(2).await.unwrap();
        script.finalized.store(3, Ordering::SeqCst);
        cache.refresh(2).await.unwrap();
        assert_eq!(cache.best_origin(2), Some(block(5)));
        assert_eq!(cache.best_origin(6), None, "never older than the parent's");
    }
}

//! L1 as the sealer sees it: looked up in the background, so that sealing never waits for L1 and goes on while it is
//! down (with the origin it has).

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, FallbackHeader, HeaderId, L1Deposit, L1Error, L1News, L1Origin, L1Reader,
    PendingFallbackHeader, VoidRun, limits::DEPOSIT_READ_STEP_BLOCKS,
};
use blindfold_protocol::{B256, Epochs, LedgerEvent};
use parking_lot::RwLock;

/// A view of L1 in front of another one, which remembers the newest final block and what L1 said up to it.
pub struct L1Cache {
    inner: Arc<dyn L1Reader>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Newest final block up to which everything is here.
    newest: Option<L1Origin>,
    /// Origin of the last sealed header.
    parent: Option<L1Origin>,
    /// The newest block with L1 deposits, up to the newest.
    bridge: Option<u64>,
    /// What L1 said in blocks `after + 1 ..= newest`, and the forced queue from `cursor` on.
    news: L1News,
    after: u64,
    cursor: u64,
}

impl Known {
    fn part(&self, after: u64, through: u64, cursor: u64) -> Option<L1News> {
        let covers = self.newest.as_ref().is_some_and(|newest| through <= newest.number)
            && self.after <= after
            && self.cursor <= cursor;
        if covers { self.news.part(after, through, cursor) } else { None }
    }
}

/// What one look at L1 found, until it is offered.
pub struct Look {
    newest: L1Origin,
    parent: u64,
    after: u64,
    have: u64,
    cursor: u64,
    forward: bool,
    fresh: Option<(L1News, Option<u64>)>,
}

impl L1Cache {
    /// A cache that knows nothing yet.
    pub fn new(inner: Arc<dyn L1Reader>) -> Self {
        Self { inner, known: RwLock::new(Known::default()) }
    }

    /// [`look`](Self::look) and [`offer`](Self::offer), for when L1 made no header.
    pub async fn refresh(&self, parent: u64, cursor: u64) -> Result<L1Origin, L1Error> {
        let look = self.look(parent, cursor).await?;
        Ok(self.offer(look))
    }

    /// Looks L1 up once: the newest final block, then what L1 said after `parent` (the origin of the last sealed
    /// header) up to it, and the forced queue from `cursor` on.
    pub async fn look(&self, parent: u64, cursor: u64) -> Result<Look, L1Error> {
        if self.known.read().parent.as_ref().is_none_or(|origin| origin.number != parent) {
            let origin = self.inner.origin(parent).await?;
            self.known.write().parent = origin;
        }
        let newest = self.inner.finalized().await?;
        let (after, have, complete) = {
            let known = self.known.read();
            let complete = known.part(parent, newest.number, cursor).is_some();
            match &known.newest {
                Some(have) if known.after <= parent && have.number >= parent => {
                    (known.after, have.number, complete)
                }
                _ => (parent, parent, complete),
            }
        };
        // A view that falls back is not followed.
        let forward = newest.number >= have;
        let fresh = if forward && !complete {
            let bridge = self.newest_deposit(have, newest.number).await?;
            Some((self.inner.facts(have, newest.number, cursor).await?, bridge))
        } else {
            None
        };
        Ok(Look { newest, parent, after, have, cursor, forward, fresh })
    }

    /// Whether the block that was found is offered already: then what was found is more of the forced queue.
    pub fn offers(&self, look: &Look) -> bool {
        self.known.read().newest.is_some_and(|newest| newest.number == look.newest.number)
    }

    /// Offers what was found as an origin. What L1 made up to it must have been taken before: a header signed with that
    /// origin says that its maker knew of it.
    pub fn offer(&self, look: Look) -> L1Origin {
        let Look { newest, parent, after, have, cursor, forward, fresh } = look;
        {
            let mut known = self.known.write();
            if have == parent && after == parent {
                known.news.ledger.clear();
            }
            if let Some((fresh, bridge)) = fresh {
                known.news.ledger.extend(fresh.ledger);
                known.bridge = bridge.or(known.bridge);
                (known.news.forced, known.cursor) = (fresh.forced, cursor);
            }
            if forward {
                known.news.ledger.retain(|event| event.l1_block() > parent);
                known.after = parent;
                known.newest = Some(newest);
            }
        }
        newest
    }

    /// The newest block in (after, through] with L1 deposits. Their data is not kept: the executor reads it.
    async fn newest_deposit(&self, mut after: u64, through: u64) -> Result<Option<u64>, L1Error> {
        let mut newest = None;
        while after < through {
            let step = through.min(after.saturating_add(DEPOSIT_READ_STEP_BLOCKS));
            let deposits = self.inner.bridge_deposits(after, step).await?;
            newest = deposits.last().map(|deposit| deposit.l1_block).or(newest);
            after = step;
        }
        Ok(newest)
    }

    /// The origins that the next header after one with origin `parent` may have, the best first: the newest final block
    /// known, and the parent's own. Empty until L1 was seen once.
    pub fn origins(&self, parent: u64) -> Vec<L1Origin> {
        let known = self.known.read();
        let newest = known.newest.iter().filter(|newest| newest.number >= parent);
        let own = known.parent.iter().chain(&known.newest).find(|origin| origin.number == parent);
        let mut origins: Vec<L1Origin> = newest.chain(own).copied().collect();
        origins.dedup();
        origins
    }

    /// What L1 said between these blocks, if it is at hand.
    pub fn at_hand(&self, after: u64, through: u64, cursor: u64) -> Option<L1News> {
        self.known.read().part(after, through, cursor)
    }

    /// The origin of the last sealed header, if L1 told it.
    pub fn parent_origin(&self, parent: u64) -> Option<L1Origin> {
        let known = self.known.read();
        known.parent.iter().chain(&known.newest).find(|origin| origin.number == parent).copied()
    }

    /// Whether final deposits into fee accounts, or withdrawals from them, wait for a header after one with origin
    /// `parent`. Released surcharges wait for the next header whatever it is for: a header for each of them would
    /// release again, without end.
    pub fn deposits_wait(&self, parent: u64) -> bool {
        let known = self.known.read();
        known
            .news
            .ledger
            .iter()
            .any(|event| event.l1_block() > parent && !matches!(event, LedgerEvent::Settled(_)))
    }

    /// Entries of the forced queue from `cursor` on that are at hand: one more than a header takes, at most.
    pub fn forced_waiting(&self, cursor: u64) -> usize {
        self.known.read().news.forced.iter().filter(|entry| entry.index >= cursor).count()
    }

    /// Whether L1 deposits (of `DepositPortal`) wait for a header after one with origin `parent`.
    pub fn bridge_waits(&self, parent: u64) -> bool {
        self.known.read().bridge.is_some_and(|l1_block| l1_block > parent)
    }

    /// The origin of the header just sealed becomes the parent's.
    pub fn sealed(&self, origin: L1Origin) {
        self.known.write().parent = Some(origin);
    }
}

#[async_trait]
impl L1Reader for L1Cache {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.inner.finalized().await
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.inner.newest().await
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        {
            let known = self.known.read();
            let mut at_hand = known.newest.iter().chain(&known.parent);
            if let Some(origin) = at_hand.find(|origin| origin.number == number) {
                return Ok(Some(*origin));
            }
        }
        self.inner.origin(number).await
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        self.inner.epochs().await
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.inner.announced_end().await
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        match self.at_hand(after, through, cursor) {
            Some(news) => Ok(news),
            None => self.inner.facts(after, through, cursor).await,
        }
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        self.inner.bridge_deposits(after, through).await
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        self.inner.l1_header(number).await
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.inner.last_l1_header().await
    }

    async fn l1_headers_from(&self, number: u64) -> Result<Vec<HeaderId>, L1Error> {
        self.inner.l1_headers_from(number).await
    }

    async fn first_l1_header_after(&self, l1_block: u64) -> Result<Option<(u64, u64)>, L1Error> {
        self.inner.first_l1_header_after(l1_block).await
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        self.inner.l1_headers_not_final().await
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        self.inner.block_hash(number).await
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        self.inner.void_runs().await
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.inner.posted_at(number).await
    }

    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Error> {
        self.inner.hints_on_l1(number).await
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        self.inner.newest_time().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use blindfold_protocol::{Address, B256, Bytes, Deposit, ForcedEntry};

    use super::*;

    /// Block n is final up to a number, and holds a deposit of n wei.
    struct Script {
        finalized: AtomicU64,
        down: AtomicBool,
        asked: AtomicU64,
        /// The block with an L1 deposit.
        bridge: AtomicU64,
    }

    const ENDING: AnnouncedEnd = AnnouncedEnd { epoch: 1, announced_at: 2, until: 90, for_silence: false };

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
            Arc::new(Self { finalized, down, asked, bridge: AtomicU64::new(0) })
        }

        fn up(&self) -> Result<u64, L1Error> {
            if self.down.load(Ordering::SeqCst) {
                return Err(L1Error::no_answer("down"));
            }
            Ok(self.finalized.load(Ordering::SeqCst))
        }
    }

    #[async_trait]
    impl L1Reader for Script {
        async fn finalized(&self) -> Result<L1Origin, L1Error> {
            self.up().map(block)
        }

        async fn newest(&self) -> Result<u64, L1Error> {
            self.up()
        }

        async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
            Ok((number <= self.up()?).then(|| block(number)))
        }

        async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
            self.up()?;
            self.asked.fetch_add(1, Ordering::SeqCst);
            let deposit = |l1_block: u64| {
                LedgerEvent::Deposit(Deposit { payer: Address::ZERO, amount: l1_block.into(), l1_block })
            };
            // Entry n stands in block n + 1.
            let entry = |n: u64| ForcedEntry::transaction(n, 21_000, vec![n as u8], n + 1);
            Ok(L1News {
                ledger: (after + 1..=through).map(deposit).collect(),
                forced: (cursor..through).take(blindfold_chain::MAX_FORCED_ENTRIES).map(entry).collect(),
            })
        }

        async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
            self.up()?;
            let l1_block = self.bridge.load(Ordering::SeqCst);
            let there = l1_block > after && l1_block <= through;
            Ok(there.then_some(L1Deposit { raw: Bytes::new(), gas: 1, l1_block }).into_iter().collect())
        }

        async fn l1_header(&self, _number: u64) -> Result<Option<FallbackHeader>, L1Error> {
            self.up().map(|_| None)
        }

        async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
            self.up().map(|_| None)
        }

        async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
            self.up().map(|_| Vec::new())
        }

        async fn posted_at(&self, _number: u64) -> Result<Option<u64>, L1Error> {
            self.up().map(|_| None)
        }

        async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
            self.up().map(|_| false)
        }

        async fn epochs(&self) -> Result<Epochs, L1Error> {
            self.up()?;
            Ok(Epochs::default())
        }

        async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
            Ok(Some(ENDING))
        }
    }

    fn blocks(news: &L1News) -> Vec<u64> {
        news.ledger.iter().map(LedgerEvent::l1_block).collect()
    }

    fn indices(news: &L1News) -> Vec<u64> {
        news.forced.iter().map(|entry| entry.index).collect()
    }

    fn numbers(origins: &[L1Origin]) -> Vec<u64> {
        origins.iter().map(|origin| origin.number).collect()
    }

    #[tokio::test]
    async fn an_origin_is_offered_with_its_facts_and_outlives_l1() {
        let script = Script::at(5);
        let cache = L1Cache::new(script.clone());
        assert_eq!(cache.origins(2), []);
        cache.refresh(2, 1).await.unwrap();
        assert_eq!(cache.origins(2), [block(5), block(2)]);
        assert!(cache.deposits_wait(2) && !cache.deposits_wait(5));
        script.finalized.store(7, Ordering::SeqCst);
        cache.refresh(2, 1).await.unwrap();
        script.down.store(true, Ordering::SeqCst);
        assert!(cache.refresh(2, 1).await.is_err());
        let news = cache.facts(2, 7, 1).await.unwrap();
        assert_eq!((blocks(&news), indices(&news)), (vec![3, 4, 5, 6, 7], vec![1, 2, 3, 4, 5, 6]));
        let news = cache.facts(4, 5, 3).await.unwrap();
        assert_eq!((blocks(&news), indices(&news)), (vec![5], vec![3, 4]));
        assert_eq!(cache.origin(7).await, Ok(Some(block(7))));
        assert_eq!(cache.origin(2).await, Ok(Some(block(2))), "the parent's");
        assert!(cache.facts(1, 7, 1).await.is_err(), "what is not here is asked for");
        assert!(cache.facts(2, 8, 1).await.is_err() && cache.facts(2, 7, 0).await.is_err());
        assert_eq!(script.asked.load(Ordering::SeqCst), 2, "each block was asked for once");
        // A header with origin 7 is sealed: nothing newer is known, its own origin stands.
        cache.sealed(block(7));
        assert_eq!((cache.origins(7), cache.parent_origin(7)), (vec![block(7)], Some(block(7))));
        assert!(!cache.deposits_wait(7));
        script.down.store(false, Ordering::SeqCst);
        script.finalized.store(8, Ordering::SeqCst);
        cache.refresh(7, 6).await.unwrap();
        let news = cache.facts(7, 8, 6).await.unwrap();
        assert_eq!((blocks(&news), indices(&news)), (vec![8], vec![6, 7]));
    }

    #[tokio::test]
    async fn an_announced_end_is_told_through_it() {
        let cache = L1Cache::new(Script::at(5));
        assert_eq!(L1Reader::announced_end(&cache).await, Ok(Some(ENDING)));
    }

    #[tokio::test]
    async fn a_full_queue_is_read_on_as_it_is_taken() {
        let script = Script::at(100);
        let cache = L1Cache::new(script.clone());
        cache.refresh(100, 0).await.unwrap();
        assert_eq!(cache.at_hand(100, 100, 0).unwrap().forced.len(), blindfold_chain::MAX_FORCED_ENTRIES);
        assert_eq!(cache.at_hand(100, 100, 16), None, "there may be more");
        cache.refresh(100, 16).await.unwrap();
        assert_eq!(cache.at_hand(100, 100, 16).unwrap().forced[0].index, 16);
        let asked = script.asked.load(Ordering::SeqCst);
        cache.refresh(100, 16).await.unwrap();
        assert_eq!(script.asked.load(Ordering::SeqCst), asked);
    }

    #[tokio::test]
    async fn deposits_wait_for_an_origin_however_far_it_is() {
        let script = Script::at(5_000);
        script.bridge.store(40, Ordering::SeqCst);
        let cache = L1Cache::new(script.clone());
        cache.refresh(10, 0).await.unwrap();
        assert_eq!(numbers(&cache.origins(10)), [5_000, 10]);
        assert!(cache.bridge_waits(10) && cache.bridge_waits(39) && !cache.bridge_waits(40));
        script.finalized.store(5_010, Ordering::SeqCst);
        script.bridge.store(5_005, Ordering::SeqCst);
        cache.refresh(5_000, 0).await.unwrap();
        assert!(cache.bridge_waits(5_000) && !cache.bridge_waits(5_005));
    }

    #[tokio::test]
    async fn a_view_that_falls_back_is_not_followed() {
        let script = Script::at(5);
        let cache = L1Cache::new(script.clone());
        cache.refresh(2, 0).await.unwrap();
        script.finalized.store(3, Ordering::SeqCst);
        cache.refresh(2, 0).await.unwrap();
        assert_eq!(cache.origins(2)[0], block(5));
        assert_eq!(cache.origins(6), [], "never older than the parent's");
    }
}

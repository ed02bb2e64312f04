//! L1 is read ahead of the headers that will name it: one whose origin is new can then be checked, and its block made,
//! although L1 fell silent meanwhile. The sequencer names a block some time after it saw it, so that others have read it.

use tokio::sync::watch;
use tokio::time::{Duration, sleep};

use super::Tracker;
use crate::limits::{READ_AHEAD_BLOCKS, READ_AHEAD_INTERVAL_MS};
use crate::{L1Error, L1News, L1Origin};

/// What L1 says in blocks `after + 1 ..=` its newest final one, all of it final, so that it stays true.
#[derive(Default)]
pub(super) struct Ahead {
    after: u64,
    /// The entry of the forced queue from which it was read.
    cursor: u64,
    /// The blocks, oldest first, without a gap; the last is the newest final one.
    origins: Vec<L1Origin>,
    news: L1News,
}

impl Ahead {
    fn newest(&self) -> u64 {
        self.origins.last().map_or(0, |origin| origin.number)
    }

    fn origin(&self, number: u64) -> Option<L1Origin> {
        let place = self.origins.binary_search_by_key(&number, |origin| origin.number).ok()?;
        self.origins.get(place).copied()
    }

    /// The part of blocks `after + 1 ..= through`, if all is here.
    fn part(&self, after: u64, through: u64, cursor: u64) -> Option<L1News> {
        let covers = self.after <= after && self.cursor <= cursor && through <= self.newest();
        if covers { self.news.part(after, through, cursor) } else { None }
    }
}

impl Tracker {
    /// Reads ahead until told to stop. What cannot be read is asked for when a header names it.
    pub async fn run_ahead(self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                read = self.read_ahead() => if let Err(fault) = read {
                    tracing::debug!(%fault, "L1 is not read ahead");
                },
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = sleep(Duration::from_millis(READ_AHEAD_INTERVAL_MS)) => {}
            }
        }
    }

    /// Reads what L1 says from the head's origin up to its newest final block, if that is new. A tracker that is far
    /// behind reads nothing: it goes on header by header.
    ///
    /// # Errors
    /// L1's; what was read before stays.
    pub async fn read_ahead(&self) -> Result<(), L1Error> {
        let newest = self.shared.l1.finalized().await?;
        let head = self.head();
        let after = head.l1_origin;
        if newest.number <= self.shared.ahead.read().newest()
            || newest.number.saturating_sub(after) > READ_AHEAD_BLOCKS
        {
            return Ok(());
        }
        // A header may name any block between.
        let mut origins = Vec::new();
        for number in after + 1..newest.number {
            let known = self.origin_at_hand(number);
            let origin = match known {
                Some(origin) => Some(origin),
                None => self.shared.l1.origin(number).await?,
            };
            // One of several servers behind the endpoint lags behind: another time.
            let Some(origin) = origin else { return Ok(()) };
            origins.push(origin);
        }
        origins.push(newest);
        let news = self.shared.l1.facts(after, newest.number, head.forced_cursor).await?;
        // Whose signature headers with these origins bear.
        self.read_epochs(false).await?;
        *self.shared.ahead.write() = Ahead { after, cursor: head.forced_cursor, origins, news };
        Ok(())
    }

    /// What was read ahead of blocks `after + 1 ..= through`, if all is here.
    pub(super) fn at_hand(&self, after: u64, through: u64, cursor: u64) -> Option<L1News> {
        self.shared.ahead.read().part(after, through, cursor)
    }

    /// A final block that was read ahead.
    pub(crate) fn origin_at_hand(&self, number: u64) -> Option<L1Origin> {
        self.shared.ahead.read().origin(number)
    }
}

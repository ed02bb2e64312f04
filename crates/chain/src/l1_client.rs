//! The client of the contracts as a view of L1.

use async_trait::async_trait;
use blindfold_l1::{AnnouncedEnd, L1Client, L1Deposit, L1Error, Recovery, UnfinalL1Header};
use blindfold_protocol::{B256, Epochs};

use crate::l1::MAX_FORCED_ENTRIES;
use crate::{HeaderId, L1Fault, L1MadeHeader, L1News, L1Origin, L1View, PendingL1Header, VoidRun};

impl From<L1Error> for L1Fault {
    fn from(error: L1Error) -> Self {
        let reason = error.to_string();
        match error.recovery() {
            // Where L1 moved on, asking again looks anew.
            Recovery::Retry | Recovery::Refresh => Self::Unavailable { reason },
            Recovery::GiveUp => Self::Unusable { reason },
        }
    }
}

#[async_trait]
impl L1View for L1Client {
    async fn finalized(&self) -> Result<L1Origin, L1Fault> {
        Ok(L1Client::finalized(self).await?)
    }

    async fn newest(&self) -> Result<u64, L1Fault> {
        Ok(self.newest_block().await?)
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault> {
        Ok(L1Client::origin(self, number).await?)
    }

    async fn epochs(&self) -> Result<Epochs, L1Fault> {
        Ok(L1Client::epochs(self).await?)
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Fault> {
        Ok(self.final_end().await?)
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Fault> {
        Ok(L1News {
            ledger: self.ledger_events(after, through).await?,
            forced: self.forced_entries(cursor, MAX_FORCED_ENTRIES, through).await?,
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Fault> {
        Ok(L1Client::bridge_deposits(self, after, through).await?)
    }

    async fn l1_header(&self, number: u64) -> Result<Option<L1MadeHeader>, L1Fault> {
        let made = self.all_l1_headers().await?;
        let Some(made) = made.iter().find(|made| made.header.number == number) else { return Ok(None) };
        let (header, l1_block) = (made.header, made.l1_block);
        let count = u64::from(header.envelope_count);
        let items = if count == 0 {
            Vec::new()
        } else {
            // Its items are the entries up to its cursor. Too few of them show when it is applied.
            let from = header.forced_cursor.saturating_sub(count);
            let entries = self.forced_entries(from, header.envelope_count as usize, l1_block).await?;
            entries.into_iter().map(|entry| entry.item).collect()
        };
        Ok(Some(L1MadeHeader { header, items, l1_block }))
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Fault> {
        Ok(self.all_l1_headers().await?.last().map(|made| made.header.number))
    }

    async fn l1_headers_from(&self, number: u64) -> Result<Vec<HeaderId>, L1Fault> {
        let made = self.all_l1_headers().await?;
        let later = made.iter().map(|made| &made.header).filter(|header| header.number >= number);
        Ok(later.map(|header| HeaderId { number: header.number, hash: header.hash() }).collect())
    }

    async fn first_l1_header_after(&self, l1_block: u64) -> Result<Option<(u64, u64)>, L1Fault> {
        let made = self.all_l1_headers().await?;
        let after = made.iter().find(|made| made.l1_block > l1_block);
        Ok(after.map(|made| (made.header.number, made.l1_block)))
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingL1Header>, L1Fault> {
        let pending = |made: UnfinalL1Header| PendingL1Header {
            header: HeaderId { number: made.number, hash: made.hash },
            l1_block: made.l1_block,
            l1_hash: made.l1_hash,
        };
        Ok(L1Client::l1_headers_not_final(self).await?.into_iter().map(pending).collect())
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Fault> {
        Ok(L1Client::block_hash(self, number).await?)
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Fault> {
        let runs = self.all_void_runs().await?;
        Ok(runs.into_iter().map(|(first, last)| VoidRun { first, last }).collect())
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Fault> {
        Ok(L1Client::posted_at(self, number).await?)
    }

    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Fault> {
        Ok(L1Client::hints_on_l1(self, number).await?)
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Fault> {
        Ok(Some(L1Client::newest_time(self).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let away = L1Error::Timeout { method: "eth_getLogs".to_owned(), timeout_ms: 1 };
        assert!(
            matches!(L1Fault::from(away), L1Fault::Unavailable { reason } if reason.contains("eth_getLogs"))
        );
        let wrong = L1Fault::from(L1Error::WrongChain { expected: 1, given: 2 });
        assert!(matches!(&wrong, L1Fault::Unusable { .. }));
        assert!(!wrong.is_transient());
    }
}

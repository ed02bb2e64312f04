//! What was posted to L1, as a seam: the client of the contracts implements it, tests script it.

use async_trait::async_trait;
use blindfold_l1::{DataFault, FoundData, HintEvent, L1Client, PostedHints, Posting};
use blindfold_protocol::{BatchHeader, Bytes};

use crate::{L1Fault, L1MadeHeader};

/// What was posted to L1, in final blocks only, so that an answer never changes.
#[async_trait]
pub trait PostedChain: Send + Sync {
    /// Number of the newest final block.
    async fn finalized(&self) -> Result<u64, L1Fault>;

    /// The runs posted in blocks `after + 1 ..= through`, in order, with their data, and the headers that L1 made among
    /// them. `through` is final.
    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Fault>;

    /// The batches of these headers that were posted again in blocks `after + 1 ..= through`, as many as there are.
    /// `through` is final.
    async fn posted_again(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Fault>;

    /// The hints posted in blocks `after + 1 ..= through`, in order, right or wrong. `through` is final.
    async fn hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Fault>;
}

#[async_trait]
impl PostedChain for L1Client {
    async fn finalized(&self) -> Result<u64, L1Fault> {
        Ok(L1Client::finalized(self).await?.number)
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Fault> {
        Ok(L1Client::postings(self, after, through).await?)
    }

    async fn posted_again(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Fault> {
        Ok(self.reposted_data(headers, after, through).await?)
    }

    async fn hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Fault> {
        let events = self.hint_events(after, through).await?;
        let posted = events.into_iter().filter_map(|event| match event {
            HintEvent::Posted(posted) => Some(posted),
            _ => None,
        });
        Ok(posted.collect())
    }
}

/// The header that L1 made, with its items, where the posting is one; `None` for a certified run.
///
/// # Errors
/// Items of the forced queue that are missing.
pub fn made_by_l1(posting: &Posting) -> Result<Option<L1MadeHeader>, DataFault> {
    if posting.certificate.is_some() {
        return Ok(None);
    }
    Ok(posting.data.whole()?.into_iter().next().map(|batch| L1MadeHeader {
        header: batch.header,
        items: batch.items.into_iter().map(Bytes::from).collect(),
        l1_block: posting.l1_block,
    }))
}

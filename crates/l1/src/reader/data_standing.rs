//! Which posted headers lack data, for whoever supplies it.

use alloy_primitives::Address;
use alloy_sol_types::SolEvent;
use blindfold_protocol::BatchHeader;

use crate::{
    contracts::BlindedInbox,
    error::L1Error,
    events::logs::malformed_log,
    posting::parts::Search,
    reader::{
        client::L1Client,
        data::{BLOB_RETENTION_BLOCKS, DataError, InboxCall, inbox_calls, steps},
    },
};

/// Who asks for what is lacking, to supply it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supplier {
    /// The account that it posts from. What stands in blobs of its own and cannot be read is taken for what it should be.
    pub account: Address,
    /// Whether it posts in blobs: those that are older than beacon nodes keep them are taken for what they should have been.
    pub blobs_expire: bool,
}

/// Which posted headers lack data on L1, as far as final blocks tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataStanding {
    /// The number up to which headers were looked at.
    pub through: u64,
    /// The L1 block up to which they were posted.
    pub block: u64,
    /// First and last numbers of those whose data is not there, in order.
    pub lacking: Vec<(u64, u64)>,
    /// Data of others, which are not in `lacking`, stands in blocks up to this one that are not final: ask again when it is.
    pub awaited: Option<u64>,
}

/// Data that a beacon node does not give is taken for lacking this many L1 blocks after it was posted: an hour.
pub const UNREAD_PATIENCE_BLOCKS: u64 = 300;

/// Numbers whose data may be in what cannot be read just now.
#[derive(Default)]
struct Unread(Vec<(u64, u64)>);

impl Unread {
    fn note(&mut self, span: (u64, u64), fault: &DataError, posted_at: u64, finalized: u64) {
        if fault.may_pass(finalized) && finalized.saturating_sub(posted_at) < UNREAD_PATIENCE_BLOCKS {
            self.0.push(span);
        }
    }

    /// The first number that is looked for in vain and may be in one of them.
    fn first(&self, search: &Search) -> Option<u64> {
        self.0.iter().filter_map(|(first, last)| search.first_wanted(*first, *last)).min()
    }
}

impl L1Client {
    /// Which certified headers above number `above` lack data, among those of the first step of final blocks after `after`
    /// that has any: ask again from where the answer ends, until it says nothing new. Later blocks are read for data
    /// alone, and only until all is found.
    ///
    /// What cannot be read is lacking, but a beacon node has an hour, wherever the data stands.
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn data_standing(
        &self,
        above: u64,
        after: u64,
        supplier: Supplier,
    ) -> Result<DataStanding, L1Error> {
        let finalized = self.finalized().await?.number;
        let mut standing = DataStanding { through: above, block: after, ..DataStanding::default() };
        if self.posted_head_at(finalized).await?.number <= above {
            return Ok(standing);
        }
        let inbox = self.inner.config.deployment.inbox;
        let topics = [
            BlindedInbox::Posted::SIGNATURE_HASH,
            BlindedInbox::BlobsPosted::SIGNATURE_HASH,
            BlindedInbox::L1Header::SIGNATURE_HASH,
            BlindedInbox::PostedAgain::SIGNATURE_HASH,
            BlindedInbox::DataPosted::SIGNATURE_HASH,
        ];
        let (mut search, mut unread) = (Search::which_are_there(), Unread::default());
        // The last numbers of what was posted in the step.
        let mut ends: Vec<u64> = Vec::new();
        let mut step = (after, after);
        for (after, through) in steps(after, finalized) {
            let collecting = ends.is_empty();
            if !collecting && search.is_over() {
                break;
            }
            let logs = self.final_logs(inbox, &topics, after, through).await?;
            for call in inbox_calls(&logs)? {
                match call.last_posted().filter(|last| collecting && *last > above) {
                    Some(last) => {
                        // A server that lags behind may leave out logs: what they are of was not looked at.
                        let end = ends.last().copied().unwrap_or(above);
                        let first = call.posted_span().map_or(last, |(first, _)| first);
                        if first > end.saturating_add(1) {
                            return Err(malformed_log(&format!(
                                "what was posted between {end} and {first} is missing"
                            )));
                        }
                        ends.push(last);
                        self.judge_posting(&call, &mut search, &mut unread, (finalized, supplier)).await?;
                    }
                    None if call.made.is_none() && call.concerns(&search) => {
                        let fault = self.search_call(&call, &mut search).await?.fault;
                        if let (Some(fault), Some(span)) = (fault, call.others()) {
                            unread.note(span, &fault, call.log.block, finalized);
                        }
                    }
                    None => {}
                }
            }
            if collecting {
                step = (after, through);
            }
        }
        match unread.first(&search) {
            // The next answer begins with what a beacon node may give until then.
            Some(unread) => {
                standing.block = step.0;
                standing.through = ends.into_iter().rfind(|last| *last < unread).unwrap_or(above);
            }
            None => {
                standing.block = step.1;
                standing.through = ends.last().copied().unwrap_or(above);
            }
        }
        search.forget((standing.through.saturating_add(1), u64::MAX));
        if !search.is_over() {
            standing.awaited = self.search_not_final(&mut search, finalized, supplier).await?;
        }
        standing.lacking = search.wanted_spans();
        Ok(standing)
    }

    /// Which data of a posting is lacking: it is looked for.
    async fn judge_posting(
        &self,
        call: &InboxCall<'_>,
        search: &mut Search,
        unread: &mut Unread,
        (finalized, supplier): (u64, Supplier),
    ) -> Result<(), L1Error> {
        if call.made.is_some() {
            return Ok(());
        }
        let (post, posting) = self.read_posting(call).await?;
        let fault = self.search_post(&post, search).await?.fault;
        let own = post.sender == supplier.account;
        let (l1_block, numbers) = (posting.l1_block, posting.numbers());
        if let Some(fault) = fault {
            let expired = supplier.blobs_expire
                && matches!(fault, DataError::Pruned(_))
                && finalized.saturating_sub(l1_block) >= BLOB_RETENTION_BLOCKS;
            if own && fault.is_of_blobs() {
                call.others().into_iter().for_each(|others| search.forget(others));
            }
            if expired || (own && fault.is_of_blobs()) {
                return Ok(());
            }
            for span in call.others().into_iter().chain([numbers]) {
                unread.note(span, &fault, l1_block, finalized);
            }
        }
        search.want(posting.lacking());
        Ok(())
    }

    /// Whether these headers, which were posted in blocks that are not final, have no data there yet. Of headers that are
    /// final [`data_standing`](Self::data_standing) tells.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn lacks_new_data(&self, headers: &[BatchHeader], supplier: Supplier) -> Result<bool, L1Error> {
        let finalized = self.finalized().await?.number;
        let final_head = self.posted_head_at(finalized).await?.number;
        let mut search = Search::which_are_there();
        search.want(headers.iter().copied().filter(|header| header.number > final_head));
        self.search_not_final(&mut search, finalized, supplier).await?;
        Ok(!search.is_over())
    }

    /// Looks for data in blocks that are not final, which may still change: the newest block that was looked at, if it was
    /// there for some of what is looked for.
    async fn search_not_final(
        &self,
        search: &mut Search,
        finalized: u64,
        supplier: Supplier,
    ) -> Result<Option<u64>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let topics = [
            BlindedInbox::Posted::SIGNATURE_HASH,
            BlindedInbox::BlobsPosted::SIGNATURE_HASH,
            BlindedInbox::PostedAgain::SIGNATURE_HASH,
            BlindedInbox::DataPosted::SIGNATURE_HASH,
        ];
        let (wanted, newest) = (search.wanted_count(), self.newest_block().await?);
        for (after, through) in steps(finalized, newest) {
            if search.is_over() {
                break;
            }
            let logs = self.newest_logs(inbox, &topics, after, through).await?;
            for call in inbox_calls(&logs)? {
                let spans = || call.others().into_iter().chain(call.posted_span());
                if !spans().any(|(first, last)| search.wants(first, last)) {
                    continue;
                }
                let (unread, poster) = match self.search_call(&call, search).await {
                    Ok(searched) => {
                        (searched.fault.is_some_and(|fault| fault.is_elsewhere()), searched.poster)
                    }
                    Err(error) if error.is_transient() => return Err(error),
                    // A block that is gone meanwhile, or too new for its blobs.
                    Err(_) => (true, None),
                };
                if unread && poster.or(call.poster()) == Some(supplier.account) {
                    spans().for_each(|span| search.forget(span));
                }
            }
        }
        Ok((search.wanted_count() < wanted).then_some(newest))
    }
}

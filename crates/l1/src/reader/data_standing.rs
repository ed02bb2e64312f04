//! Which posted headers lack data, for whoever supplies it.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::Address;
use alloy_sol_types::SolEvent;
use blindfold_protocol::BatchHeader;

use crate::{
    contracts::BlindedInbox,
    error::L1Error,
    events::logs::malformed_log,
    posting::{parts::Search, run_data::PartName},
    reader::{
        client::L1Client,
        data::{BLOB_RETENTION_BLOCKS, DataError, InboxCall, Searched, inbox_calls, steps},
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

impl Supplier {
    /// Whether data that this account posted in that block is taken for what it should be, although it cannot be read.
    fn assumes(&self, poster: Address, fault: &DataError, (posted_at, finalized): (u64, u64)) -> bool {
        let is_old = finalized.saturating_sub(posted_at) >= BLOB_RETENTION_BLOCKS;
        let expired = self.blobs_expire && is_old && matches!(fault, DataError::Pruned(_));
        expired || (poster == self.account && fault.is_of_blobs())
    }
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

/// How long after a header was posted others' data is waited for at all: whoever posts what cannot be read, again each hour, puts
/// off what is supplied no longer.
const UNREAD_LIMIT_BLOCKS: u64 = 4 * UNREAD_PATIENCE_BLOCKS;

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

/// Parts of data some of which cannot be read, and are taken for what they should be: by poster, first and last number and
/// how many parts there are.
#[derive(Default)]
struct Assumed(BTreeMap<(Address, u64, u64, u16), SeenParts>);

#[derive(Default)]
struct SeenParts {
    seen: BTreeSet<u16>,
    any_unread: bool,
}

impl Assumed {
    /// One more part. The numbers of the data, if it is whole with this one and not all of it was read.
    fn note(&mut self, poster: Address, part: PartName, unread: bool) -> Option<(u64, u64)> {
        let span = (part.first, part.last);
        let parts = self.0.entry((poster, span.0, span.1, part.parts)).or_default();
        parts.seen.insert(part.part);
        parts.any_unread |= unread;
        (parts.any_unread && parts.seen.len() == usize::from(part.parts)).then_some(span)
    }
}

/// One look at what final blocks have.
struct Look {
    supplier: Supplier,
    /// The newest final block.
    finalized: u64,
    /// The block by which the headers were posted that are looked at.
    posted_by: u64,
    search: Search,
    unread: Unread,
    assumed: Assumed,
}

impl Look {
    fn new(supplier: Supplier, finalized: u64) -> Self {
        let (search, unread, assumed) = (Search::which_are_there(), Unread::default(), Assumed::default());
        Self { supplier, finalized, posted_by: 0, search, unread, assumed }
    }

    /// Takes what one call brought of headers that were there before it.
    fn note(&mut self, call: &InboxCall<'_>, Searched { fault, poster, part, .. }: Searched) {
        let poster = poster.or(call.poster()).unwrap_or_default();
        let posted_at = call.log.block;
        let assumes = |fault| self.supplier.assumes(poster, fault, (posted_at, self.finalized));
        let is_assumed = fault.as_ref().is_some_and(assumes);
        // Others' parts count where they expired, and no other part of theirs is remembered.
        let may_count = is_assumed || (fault.is_none() && poster == self.supplier.account);
        let part = part.filter(|part| may_count && part.is_possible());
        if let Some(span) = part.and_then(|part| self.assumed.note(poster, part, is_assumed)) {
            self.search.forget(span);
        }
        // Nobody knows which numbers are in blobs whose call does not say it.
        let is_late = self.finalized.saturating_sub(self.posted_by) >= UNREAD_LIMIT_BLOCKS;
        let is_waited_for = poster == self.supplier.account || !is_late;
        let left = fault.filter(|_| is_waited_for && (!is_assumed || part.is_none()));
        if let (Some(fault), Some(span)) = (left, call.others()) {
            self.unread.note(span, &fault, posted_at, self.finalized);
        }
    }
}

impl L1Client {
    /// Which certified headers above number `above` lack data, among those of the first step of final blocks after `after`
    /// that has any: ask again from where the answer ends, until it says nothing new. Later blocks are read for data
    /// alone, and only until all is found.
    ///
    /// What cannot be read is lacking, but a beacon node has an hour, wherever the data stands; and the supplier's own blobs, and
    /// those that expired, are what they should be.
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
        let mut look = Look::new(supplier, finalized);
        // The last numbers of what was posted in the step.
        let mut ends: Vec<u64> = Vec::new();
        let mut step = (after, after);
        for (after, through) in steps(after, finalized) {
            let collecting = ends.is_empty();
            if !collecting && look.search.is_over() {
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
                        self.judge_posting(&call, &mut look).await?;
                    }
                    None if call.made.is_none() && call.concerns(&look.search) => {
                        let searched = self.search_call(&call, &mut look.search).await?;
                        look.note(&call, searched);
                    }
                    None => {}
                }
            }
            if collecting {
                step = (after, through);
            }
        }
        let Look { mut search, unread, .. } = look;
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
    async fn judge_posting(&self, call: &InboxCall<'_>, look: &mut Look) -> Result<(), L1Error> {
        if call.made.is_some() {
            return Ok(());
        }
        look.posted_by = call.log.block;
        let (post, posting) = self.read_posting(call).await?;
        let fault = self.search_post(&post, &mut look.search).await?.fault;
        let (l1_block, numbers) = (posting.l1_block, posting.numbers());
        if let Some(fault) = fault {
            let others = call.others();
            if look.supplier.assumes(post.sender, &fault, (l1_block, look.finalized)) {
                others.into_iter().for_each(|others| look.search.forget(others));
                return Ok(());
            }
            for span in others.into_iter().chain([numbers]) {
                look.unread.note(span, &fault, l1_block, look.finalized);
            }
        }
        look.search.want(posting.lacking());
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
                let mut spans = call.others().into_iter().chain(call.posted_span());
                if !spans.any(|(first, last)| search.wants(first, last)) {
                    continue;
                }
                let (unread, poster, part) = match self.search_call(&call, search).await {
                    Ok(Searched { fault, poster, part, .. }) => {
                        (fault.is_some_and(|fault| fault.is_elsewhere()), poster, part)
                    }
                    Err(error) if error.is_transient() => return Err(error),
                    // A block that is gone meanwhile, or too new for its blobs.
                    Err(_) => (true, None, None),
                };
                if unread && poster.or(call.poster()) == Some(supplier.account) {
                    let others = part.map(|part| (part.first, part.last)).or_else(|| call.others());
                    others.into_iter().chain(call.posted_span()).for_each(|span| search.forget(span));
                }
            }
        }
        Ok((search.wanted_count() < wanted).then_some(newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Address = Address::repeat_byte(1);
    const OTHER: Address = Address::repeat_byte(2);

    fn beacon() -> DataError {
        DataError::Beacon(L1Error::no_answer("away"))
    }

    #[test]
    fn own_blobs_and_expired_ones_are_taken_for_what_they_should_be() {
        let (young, old) = ((7, 6 + BLOB_RETENTION_BLOCKS), (7, 7 + BLOB_RETENTION_BLOCKS));
        for blobs_expire in [false, true] {
            let supplier = Supplier { account: OWN, blobs_expire };
            for fault in [beacon(), DataError::Pruned(7), DataError::NoBeacon] {
                assert!(supplier.assumes(OWN, &fault, young), "{fault}");
                assert!(!supplier.assumes(OTHER, &fault, young), "{fault}");
            }
            assert_eq!(supplier.assumes(OTHER, &DataError::Pruned(7), old), blobs_expire);
            assert!(!supplier.assumes(OTHER, &beacon(), old), "it may come back");
            for fault in [DataError::Absent, DataError::Mismatch, DataError::NoArchive] {
                assert!(!supplier.assumes(OWN, &fault, old), "{fault}");
            }
        }
    }

    #[test]
    fn data_is_there_with_the_last_of_its_parts() {
        let name = |part| PartName { first: 3, last: 5, part, parts: 3 };
        let mut assumed = Assumed::default();
        assert_eq!(assumed.note(OWN, name(0), true), None);
        assert_eq!(assumed.note(OWN, name(0), true), None, "the same again");
        assert_eq!(assumed.note(OWN, name(2), false), None);
        assert_eq!(assumed.note(OTHER, name(1), true), None, "another's");
        assert_eq!(assumed.note(OWN, PartName { parts: 2, ..name(1) }, true), None, "cut otherwise");
        assert_eq!(assumed.note(OWN, PartName { last: 6, ..name(1) }, true), None, "of other numbers");
        assert_eq!(assumed.note(OWN, name(1), false), Some((3, 5)));
        // What was read as a whole says itself what it holds.
        assert_eq!(assumed.note(OWN, PartName { first: 9, last: 9, part: 0, parts: 1 }, false), None);
        assert_eq!(assumed.note(OWN, PartName::whole((7, 8)), true), Some((7, 8)));
    }
}

//! What following the chain needs from L1: [`L1Reader`], and what of its answers the rules look at.

use blindfold_l1::Posting;
use blindfold_protocol::{Bytes, validity::OriginFacts};

pub use blindfold_engine::L1Origin;
pub use blindfold_l1::{
    AnnouncedEnd, CodedBatch, DataError, FallbackHeader, L1Deposit, L1Error, L1News, L1Reader, L1Submitter,
    MAX_FORCED_ENTRIES, PendingFallbackHeader, VoidRun,
};

/// The part of an origin that the validity rule looks at.
pub fn origin_facts(origin: &L1Origin) -> OriginFacts {
    OriginFacts { number: origin.number, hash: origin.hash, timestamp: origin.timestamp }
}

/// The header that L1 made, with its items, where the posting is one; `None` for a certified run.
///
/// # Errors
/// Items of the forced queue that are missing.
pub fn made_by_l1(posting: &Posting) -> Result<Option<FallbackHeader>, DataError> {
    if posting.certificate.is_some() {
        return Ok(None);
    }
    Ok(posting.data.whole()?.into_iter().next().map(|batch| FallbackHeader {
        header: batch.header,
        items: batch.items.into_iter().map(Bytes::from).collect(),
        l1_block: posting.l1_block,
    }))
}

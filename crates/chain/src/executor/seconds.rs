//! Gathering certified batches into closed seconds.

use std::collections::VecDeque;

use blindfold_protocol::block::{OrderError, Second, Seconds};
use blindfold_store::BatchRecord;

use crate::records::makes_block;

/// The batches of a second that is closed.
#[derive(Debug)]
pub(super) struct BlockSlot {
    pub(super) second: Second,
    pub(super) batches: Vec<BatchRecord>,
}

/// Certified batches that wait for their second to close. Holds at most one second's items and one header more.
#[derive(Default)]
pub(super) struct BlockAssembler {
    seconds: Seconds,
    batches: VecDeque<BatchRecord>,
}

impl BlockAssembler {
    /// Takes the next certified batch; gives the second that it closes.
    pub(super) fn push(&mut self, record: BatchRecord) -> Result<Option<BlockSlot>, OrderError> {
        // A batch holds at most 4,096 items.
        let accepted = u32::try_from(makes_block(&record)).unwrap_or(u32::MAX);
        let closed = self.seconds.push(&record.sealed.header, record.hash, accepted)?;
        let closed = closed.map(|second| BlockSlot { second, batches: self.batches.drain(..).collect() });
        self.batches.push_back(record);
        Ok(closed)
    }
}

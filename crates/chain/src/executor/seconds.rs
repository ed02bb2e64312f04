//! Gathering certified batches into closed seconds.

use std::collections::VecDeque;

use blindfold_protocol::block::{OrderFault, Second, Seconds};
use blindfold_protocol::validity::Verdict;
use blindfold_store::BatchRecord;

/// The batches of a second that is closed.
#[derive(Debug)]
pub(super) struct ClosedSecond {
    pub(super) second: Second,
    pub(super) batches: Vec<BatchRecord>,
}

/// Certified batches that wait for their second to close. Holds at most one second's items and one header more.
#[derive(Default)]
pub(super) struct Gathering {
    seconds: Seconds,
    batches: VecDeque<BatchRecord>,
}

impl Gathering {
    /// Takes the next certified batch; gives the second that it closes.
    pub(super) fn push(&mut self, record: BatchRecord) -> Result<Option<ClosedSecond>, OrderFault> {
        let closed = self.seconds.push(&record.sealed.header, record.hash, accepted(&record))?;
        let closed = closed.map(|second| ClosedSecond { second, batches: self.batches.drain(..).collect() });
        self.batches.push_back(record);
        Ok(closed)
    }
}

/// Accepted items of a batch.
pub(super) fn accepted(record: &BatchRecord) -> u32 {
    let accepted = record.verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accepted { .. })).count();
    // A batch holds at most 4,096 items.
    u32::try_from(accepted).unwrap_or(u32::MAX)
}

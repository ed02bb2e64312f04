//! What happened to batches on L1 since the deployment: which numbers are posted, which headers L1 made, which runs have
//! hints, which are void.

use std::collections::BTreeMap;

use crate::{
    contracts::BlindedInbox,
    error::L1Error,
    events::{HintEvent, L1HeaderLog, PostedLog, logs::FinalLog, registry::RegistryState},
};

/// Numbers of consecutive batches, from and to.
type Span = (u64, u64);

/// What is known up to a final block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    /// The block up to which all is here; `None` before the first look.
    pub(crate) through: Option<u64>,
    /// Runs in order, each with the block that posted it. They follow each other without a gap.
    pub(crate) runs: Vec<(Span, u64)>,
    pub(crate) made: Vec<L1HeaderLog>,
    pub(crate) void: Vec<Span>,
    /// Runs with final hints; neighbours are joined.
    pub(crate) hinted: BTreeMap<u64, u64>,
    /// What the registry has of postings of hints.
    pub(crate) hints: RegistryState,
}

impl Journal {
    /// [`L1Error::Gone`] where a posting before this one is missing.
    pub(crate) fn apply_inbox(&mut self, log: &FinalLog) -> Result<(), L1Error> {
        if let Some(event) = log.event::<BlindedInbox::Posted>()? {
            let next = self.runs.last().map_or(1, |((_, last), _)| last.saturating_add(1));
            if event.firstNumber != next {
                return Err(L1Error::Gone { what: format!("the posting of batch {next}") });
            }
            self.runs.push(((event.firstNumber, event.lastNumber), event.postedAt));
        }
        Ok(())
    }

    pub(crate) fn apply_hints(&mut self, event: &HintEvent) {
        self.hints.apply(event);
        match *event {
            HintEvent::Finalized { first, last, .. } => self.join_hinted(first, last),
            HintEvent::Voided { first, last } => self.void.push((first, last)),
            _ => {}
        }
    }

    fn join_hinted(&mut self, first: u64, last: u64) {
        let (mut first, mut last) = (first, last);
        if let Some((&before, &end)) = self.hinted.range(..first).next_back()
            && end.saturating_add(1) == first
        {
            self.hinted.remove(&before);
            first = before;
        }
        if let Some(end) = self.hinted.remove(&last.saturating_add(1)) {
            last = end;
        }
        self.hinted.insert(first, last);
    }

    pub(crate) fn posted_at(&self, number: u64) -> Option<u64> {
        let place = self.runs.partition_point(|((_, last), _)| *last < number);
        self.runs.get(place).filter(|((first, _), _)| *first <= number).map(|(_, block)| *block)
    }

    pub(crate) fn has_hints(&self, number: u64) -> bool {
        let within = |posted: &PostedLog| (posted.first..=posted.last).contains(&number);
        let earlier = self.hinted.range(..=number).next_back();
        earlier.is_some_and(|(_, last)| number <= *last) || self.hints.open().any(within)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};

    use super::*;

    #[test]
    fn numbers_are_found_in_their_runs() {
        let journal = Journal { runs: vec![((1, 4), 10), ((5, 5), 12), ((6, 9), 15)], ..Journal::default() };
        for (number, block) in
            [(0, None), (1, Some(10)), (4, Some(10)), (5, Some(12)), (9, Some(15)), (10, None)]
        {
            assert_eq!(journal.posted_at(number), block, "{number}");
        }
    }

    #[test]
    fn neighbouring_runs_with_hints_are_joined() {
        let mut journal = Journal::default();
        for (first, last) in [(1, 4), (9, 9), (5, 6), (7, 8)] {
            journal.join_hinted(first, last);
        }
        assert_eq!(journal.hinted, BTreeMap::from([(1, 9)]));
        let posted = |id, first, last, publisher| {
            let (transaction, root) = (B256::ZERO, B256::ZERO);
            HintEvent::Posted(PostedLog { id, first, last, publisher, l1_block: 9, transaction, root })
        };
        journal.apply_hints(&posted(3, 12, 14, Address::ZERO));
        for (number, there) in [(0, false), (1, true), (9, true), (10, false), (13, true), (15, false)] {
            assert_eq!(journal.has_hints(number), there, "{number}");
        }
        let publisher = Address::ZERO;
        journal.apply_hints(&posted(4, 15, 15, Address::repeat_byte(1)));
        journal.apply_hints(&posted(5, 16, 16, publisher));
        let (challenger, number, index, reason, l1_block) = (Address::ZERO, 16, 0, 5, 9);
        journal.apply_hints(&HintEvent::Slashed {
            id: 5,
            last: 16,
            challenger,
            publisher,
            number,
            index,
            reason,
            l1_block,
        });
        assert_eq!([13, 15, 16].map(|number| journal.has_hints(number)), [false, true, false]);
        assert!(journal.has_hints(9), "what is final stays");
    }
}

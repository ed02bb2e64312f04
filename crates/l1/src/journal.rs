//! What happened to batches on L1 since the deployment, kept and brought up to the newest final block with each
//! question: which numbers are posted, which headers L1 made, which runs have hints, which are void.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use alloy_sol_types::SolEvent;
use blindfold_runtime::blocking;

use crate::{
    L1Client, L1Error, L1MadeHeader,
    contracts::{BlindedInbox, HintRegistry},
    journal_file::{JournalFile, SAVE_EVERY_BLOCKS},
    logs::FinalLog,
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
    pub(crate) made: Vec<L1MadeHeader>,
    pub(crate) void: Vec<Span>,
    /// Runs with final hints; neighbours are joined.
    pub(crate) hinted: BTreeMap<u64, u64>,
    /// Open postings of hints with their publishers, by id.
    pub(crate) open: BTreeMap<u64, (Span, Address)>,
}

impl Journal {
    fn apply_inbox(&mut self, log: &FinalLog) -> Result<(), L1Error> {
        if let Some(event) = log.event::<BlindedInbox::Posted>()? {
            self.runs.push(((event.firstNumber, event.lastNumber), event.postedAt));
        }
        Ok(())
    }

    fn apply_hints(&mut self, log: &FinalLog) -> Result<(), L1Error> {
        if let Some(event) = log.event::<HintRegistry::HintsPosted>()? {
            self.open.insert(event.id, ((event.first, event.runLast), event.publisher));
        } else if let Some(event) = log.event::<HintRegistry::HintsStruck>()? {
            self.strike(event.publisher);
        } else if let Some(event) = log.event::<HintRegistry::HintsReleased>()? {
            self.open.remove(&event.id);
        } else if let Some(event) = log.event::<HintRegistry::HintsFinalized>()? {
            self.open.remove(&event.id);
            self.join_hinted(event.first, event.runLast);
        } else if let Some(event) = log.event::<HintRegistry::Voided>()? {
            self.void.push((event.first, event.last));
        }
        Ok(())
    }

    /// Nothing that was open of this publisher's stands any more.
    fn strike(&mut self, publisher: Address) {
        self.open.retain(|_, (_, of)| *of != publisher);
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

    fn posted_at(&self, number: u64) -> Option<u64> {
        let place = self.runs.partition_point(|((_, last), _)| *last < number);
        self.runs.get(place).filter(|((first, _), _)| *first <= number).map(|(_, block)| *block)
    }

    fn has_hints(&self, number: u64) -> bool {
        let within = |((first, last), _): &(Span, Address)| (*first..=*last).contains(&number);
        let earlier = self.hinted.range(..=number).next_back();
        earlier.is_some_and(|(_, last)| number <= *last) || self.open.values().any(within)
    }
}

impl L1Client {
    /// The final L1 block in which this number was posted, certified or made by L1.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.journal(|journal| journal.posted_at(number)).await
    }

    /// Whether hints of this number stand on L1, open to challenges or final, after the newest final block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Error> {
        self.journal(|journal| journal.has_hints(number)).await
    }

    /// All headers that L1 made, in order.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn all_l1_headers(&self) -> Result<Vec<L1MadeHeader>, L1Error> {
        self.journal(|journal| journal.made.clone()).await
    }

    /// All runs that were declared void, as first and last number, in L1 order.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn all_void_runs(&self) -> Result<Vec<(u64, u64)>, L1Error> {
        self.journal(|journal| journal.void.clone()).await
    }

    /// Asks the journal, brought up to the newest final block. Costs three queries for logs per thousand new blocks.
    async fn journal<T>(&self, ask: impl FnOnce(&Journal) -> T) -> Result<T, L1Error> {
        let mut journal = self.inner.journal.lock().await;
        let newest = self.finalized().await?;
        let through = newest.number;
        if journal.through.is_none()
            && let Some(stored) = self.stored_journal(through).await?
        {
            *journal = stored;
        }
        let after = journal.through.unwrap_or(self.inner.config.start_block);
        if through > after {
            let inbox = self.inner.config.deployment.inbox;
            let topics = [BlindedInbox::Posted::SIGNATURE_HASH];
            let posted = self.final_logs(inbox, &topics, after, through).await?;
            let made = self.l1_headers(after, through).await?;
            let topics = [
                HintRegistry::HintsPosted::SIGNATURE_HASH,
                HintRegistry::HintsStruck::SIGNATURE_HASH,
                HintRegistry::HintsReleased::SIGNATURE_HASH,
                HintRegistry::HintsFinalized::SIGNATURE_HASH,
                HintRegistry::Voided::SIGNATURE_HASH,
            ];
            let registry = self.inner.config.contracts.hint_registry;
            let hints = self.final_logs(registry, &topics, after, through).await?;
            let mut next = journal.clone();
            posted.iter().try_for_each(|log| next.apply_inbox(log))?;
            hints.iter().try_for_each(|log| next.apply_hints(log))?;
            next.made.extend(made);
            next.through = Some(through);
            *journal = next;
            self.store_journal(&journal, &newest).await;
        }
        Ok(ask(&journal))
    }

    /// What the file says, where it speaks for final blocks of this L1.
    async fn stored_journal(&self, finalized: u64) -> Result<Option<Journal>, L1Error> {
        let Some(file) = self.inner.config.journal.clone().map(|path| JournalFile { path }) else {
            return Ok(None);
        };
        let (path, config) = (file.path.clone(), &self.inner.config);
        let (deployment, start) = (config.deployment, config.start_block);
        let aside = |reason: &dyn std::fmt::Display| {
            tracing::warn!(path = %path.display(), %reason, "L1 is read from the beginning: the journal is of no use");
            Ok(None)
        };
        let loaded = blocking(move || file.load(&deployment, start)).await;
        let (journal, hash) = match loaded {
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(Ok(found)))) => found,
            Ok(Ok(Some(Err(fault)))) => return aside(&fault),
            Ok(Err(fault)) => return aside(&fault),
            Err(fault) => return aside(&fault),
        };
        let through = journal.through.unwrap_or(start);
        // An L1 node that is still catching up says nothing against it, and nothing for it.
        if through > finalized {
            return Err(L1Error::NotFinal { number: through, finalized });
        }
        match self.origin(through).await? {
            Some(origin) if origin.hash == hash => {
                *self.inner.journal_saved.lock() = through;
                Ok(Some(journal))
            }
            _ => aside(&"L1 has another block where it ends"),
        }
    }

    /// Replaces the file now and then. What cannot be written costs the next start some time, and nothing else.
    async fn store_journal(&self, journal: &Journal, newest: &blindfold_engine::L1Origin) {
        let Some(file) = self.inner.config.journal.clone().map(|path| JournalFile { path }) else { return };
        if newest.number < self.inner.journal_saved.lock().saturating_add(SAVE_EVERY_BLOCKS) {
            return;
        }
        let (journal, hash) = (journal.clone(), newest.hash);
        let (deployment, start) = (self.inner.config.deployment, self.inner.config.start_block);
        let path = file.path.clone();
        let saved = blocking(move || file.save(&journal, hash, &deployment, start)).await;
        // Whether or not it went well: not again before as many blocks more.
        *self.inner.journal_saved.lock() = newest.number;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                tracing::warn!(path = %path.display(), %fault, "the journal of L1 cannot be written")
            }
            Err(fault) => {
                tracing::warn!(path = %path.display(), %fault, "the journal of L1 cannot be written")
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        journal.open.insert(3, ((12, 14), Address::ZERO));
        for (number, there) in [(0, false), (1, true), (9, true), (10, false), (13, true), (15, false)] {
            assert_eq!(journal.has_hints(number), there, "{number}");
        }
        let other = Address::repeat_byte(1);
        journal.open.insert(4, ((15, 15), other));
        journal.open.insert(5, ((16, 16), Address::ZERO));
        journal.strike(Address::ZERO);
        assert_eq!([13, 15, 16].map(|number| journal.has_hints(number)), [false, true, false]);
        assert!(journal.has_hints(9), "what is final stays");
    }
}

//! The journal, kept and brought up to the newest final block with each question.

use alloy_sol_types::SolEvent;
use blindfold_engine::L1Origin;
use blindfold_runtime::blocking;

use crate::{
    contracts::BlindedInbox,
    error::L1Error,
    events::{
        HINT_TOPICS, L1HeaderLog,
        journal::Journal,
        journal_file::{JournalFile, SAVE_EVERY_BLOCKS},
        logs::malformed_log,
    },
    reader::client::L1Client,
};

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
    pub async fn all_l1_headers(&self) -> Result<Vec<L1HeaderLog>, L1Error> {
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
        let start = self.inner.config.start_block;
        let after = journal.through.unwrap_or(start);
        if through > after {
            let inbox = self.inner.config.deployment.inbox;
            let topics = [BlindedInbox::Posted::SIGNATURE_HASH];
            let posted = self.final_logs(inbox, &topics, after, through).await?;
            let made = self.l1_headers(after, through).await?;
            let hints = self.final_hint_events(&HINT_TOPICS, after, through).await?;
            let mut next = journal.clone();
            match posted.iter().try_for_each(|log| next.apply_inbox(log)) {
                Ok(()) => {}
                Err(gone @ L1Error::Gone { .. }) if after > start => {
                    // One of several servers was behind, and left it out of an earlier answer.
                    tracing::warn!(%gone, "L1 is read from the beginning: the journal lacks something");
                    *journal = Journal { through: Some(start), ..Journal::default() };
                    *self.inner.journal_saved.lock() = 0;
                    return Err(gone);
                }
                Err(gone @ L1Error::Gone { .. }) => return Err(malformed_log(&gone)),
                Err(error) => return Err(error),
            }
            hints.iter().for_each(|(_, event)| next.apply_hints(event));
            next.hints.keep_open();
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
    async fn store_journal(&self, journal: &Journal, newest: &L1Origin) {
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

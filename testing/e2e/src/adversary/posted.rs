//! What is on L1, put together as an attacker or a watcher does: from the full node and from L1's events.

use alloy_primitives::Address;
use anyhow::{Context, Result};
use blindfold_l1::{Challenge, HintEvent, HintPosting, PostedLog, PostedRun};
use blindfold_protocol::{BatchHints, HintEntry, SealedBatch, Verdict, fault::CODE_ACCEPTED};

use super::arena::{Arena, until};

/// A run on L1 with everything that is true of it.
#[derive(Clone)]
pub struct Posted {
    /// The run with its headers.
    pub run: PostedRun,
    /// Its batches.
    pub batches: Vec<SealedBatch>,
    /// The verdict codes of each batch's items.
    pub codes: Vec<Vec<u8>>,
    /// The right hints.
    pub truth: Vec<BatchHints>,
}

impl Posted {
    /// The right hints in the form for L1.
    pub fn right(&self) -> HintPosting {
        HintPosting::of(&self.truth)
    }

    /// The place in the run of batch `number`.
    pub fn place(&self, number: u64) -> usize {
        (number - self.run.run.first) as usize
    }

    /// The first item of a batch with this code.
    ///
    /// # Errors
    /// When there is none.
    pub fn item(&self, number: u64, code: u8) -> Result<u32> {
        let codes = &self.codes[self.place(number)];
        let place = codes.iter().position(|given| *given == code);
        Ok(u32::try_from(place.with_context(|| format!("batch {number} has no item with code {code}"))?)?)
    }

    /// Whether the batch has exactly one item, which is accepted.
    pub fn accepted(&self, number: u64) -> Result<u32> {
        self.item(number, CODE_ACCEPTED)
    }

    /// A challenge of an entry of a posting.
    ///
    /// # Errors
    /// When the run has no such entry.
    pub fn challenge(&self, posting: &HintPosting, number: u64, index: u32) -> Result<Challenge> {
        let at = self.place(number);
        let (batch, codes, truth) = (&self.batches[at], &self.codes[at], &self.truth[at]);
        Ok(Challenge::new(&self.run, batch, codes, posting, truth, index)?)
    }
}

impl Arena {
    /// The final run that holds this batch, once the full node has the hints of all its batches.
    ///
    /// # Errors
    /// When it is not posted in time.
    pub async fn posted(&self, number: u64) -> Result<Posted> {
        let run = self.posted_run(number).await?;
        let (mut batches, mut codes, mut truth) = (Vec::new(), Vec::new(), Vec::new());
        for header in &run.headers {
            let (sealed, given) = self.sealed(header.number).await?;
            truth.push(self.hints(header.number, &given).await?);
            batches.push(sealed);
            codes.push(given);
        }
        Ok(Posted { run, batches, codes, truth })
    }

    /// The final run that holds this batch.
    ///
    /// # Errors
    /// When it is not posted in time.
    pub async fn posted_run(&self, number: u64) -> Result<PostedRun> {
        let l1 = &self.devnet.l1;
        let start = self.devnet.chain.genesis_l1_origin;
        until(&format!("batch {number} to be final on L1"), async || {
            if l1.final_posted_head().await?.number < number {
                return Ok(None);
            }
            let postings = l1.postings(start, l1.finalized().await?.number).await?;
            let run = postings.iter().flat_map(|posting| &posting.runs);
            let run = run.copied().find(|run| (run.first..=run.last).contains(&number));
            match run {
                Some(run) => Ok(l1.headers_of(&run).await?),
                None => Ok(None),
            }
        })
        .await
    }

    /// A batch with the codes of its verdicts, from the full node.
    ///
    /// # Errors
    /// When it has none, or cannot be read.
    pub async fn sealed(&self, number: u64) -> Result<(SealedBatch, Vec<u8>)> {
        let info = self.batch(number).await?;
        let codes = info.verdicts.iter().map(|verdict| {
            let code = Verdict::code_of_reason(verdict.as_deref());
            code.with_context(|| format!("batch {number}: verdict {verdict:?}"))
        });
        Ok((info.sealed.decode()?, codes.collect::<Result<_>>()?))
    }

    /// The hints that the full node verified, or those of a batch without an accepted item.
    async fn hints(&self, number: u64, codes: &[u8]) -> Result<BatchHints> {
        if !codes.contains(&CODE_ACCEPTED) {
            let header_hash = self.batch(number).await?.hash;
            return Ok(BatchHints {
                number,
                header_hash,
                entries: vec![HintEntry::Skipped; codes.len()],
                blindings: vec![],
            });
        }
        until(&format!("the hints of batch {number}"), async || {
            let hints = self.batch(number).await?.hints;
            Ok(hints.map(|hints| hints.decode()).transpose()?)
        })
        .await
    }

    /// The events of hints from a block on, final or not.
    ///
    /// # Errors
    /// When L1 does not answer.
    pub async fn hint_events(&self, after: u64) -> Result<Vec<HintEvent>> {
        let newest = self.raw.height().await?;
        Ok(self.devnet.l1.hint_events(after.min(newest), newest).await?)
    }

    /// The posting of a run by this account.
    ///
    /// # Errors
    /// When it does not come.
    pub async fn posting_by(&self, publisher: Address, run_last: u64) -> Result<PostedLog> {
        until(&format!("hints of the run up to {run_last} by {publisher}"), async || {
            let logs = self.hint_events(self.devnet.chain.genesis_l1_origin).await?;
            Ok(logs.into_iter().find_map(|log| match log {
                HintEvent::Posted(posted) if posted.publisher == publisher && posted.last == run_last => {
                    Some(posted)
                }
                _ => None,
            }))
        })
        .await
    }

    /// Waits until a posting is slashed.
    ///
    /// # Errors
    /// When that does not happen.
    pub async fn slashed(&self, posting: u64, after: u64) -> Result<()> {
        until(&format!("posting {posting} to be slashed"), async || {
            let logs = self.hint_events(after).await?;
            let slashed = |log: &HintEvent| matches!(log, HintEvent::Slashed { id, .. } if *id == posting);
            Ok(logs.iter().any(slashed).then_some(()))
        })
        .await
    }
}

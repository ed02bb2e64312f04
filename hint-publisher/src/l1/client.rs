//! The client of the contracts, as posting hints needs it.

use async_trait::async_trait;
use blindfold_l1::{
    HintLog, HintPosting as PostedData, L1Error, L1Writer, PostedBatch, PostedLog, Recovery, RunReference,
};
use blindfold_protocol::{Address, B256, BatchHints};

use super::seam::{HintEvent, HintPosting, HintRoots, HintTerms, HintsL1, L1Blocks, L1Trouble, PostedRun};

/// An account that posts hints.
pub struct HintsAccount {
    writer: L1Writer,
    first_block: u64,
}

impl HintsAccount {
    /// The account of `writer`. Before the L1 block `first_block` nothing was posted: the one after
    /// `genesis_l1_origin` of the chain.
    pub fn new(writer: L1Writer, first_block: u64) -> Self {
        Self { writer, first_block }
    }

    /// The posting's event in its block; `None` when it is not (any more) there.
    async fn log_of(
        &self,
        block: u64,
        wanted: impl Fn(&PostedLog) -> bool,
    ) -> Result<Option<PostedLog>, L1Trouble> {
        let logs = self.writer.client().hint_logs(block.saturating_sub(1), block).await?;
        Ok(logs.into_iter().find_map(|log| match log {
            HintLog::Posted(posted) if wanted(&posted) => Some(posted),
            _ => None,
        }))
    }
}

impl From<L1Error> for L1Trouble {
    fn from(error: L1Error) -> Self {
        match error.recovery() {
            Recovery::Retry => Self::Unavailable(error.to_string()),
            Recovery::Refresh | Recovery::GiveUp => Self::Refused(error.to_string()),
        }
    }
}

fn data_of(hints: &[BatchHints]) -> PostedData {
    PostedData { batches: hints.iter().map(PostedBatch::of).collect() }
}

fn posting(posted: &PostedLog) -> HintPosting {
    let PostedLog { id, last, publisher, l1_block, root, .. } = *posted;
    HintPosting { id, run_last: last, publisher, block: l1_block, root }
}

#[async_trait]
impl HintsL1 for HintsAccount {
    fn publisher(&self) -> Address {
        self.writer.address()
    }

    fn first_block(&self) -> u64 {
        self.first_block
    }

    async fn blocks(&self) -> Result<L1Blocks, L1Trouble> {
        let client = self.writer.client();
        let finalized = client.finalized().await?.number;
        let newest = client.newest_block().await?.max(finalized);
        Ok(L1Blocks { finalized, newest })
    }

    async fn terms(&self) -> Result<HintTerms, L1Trouble> {
        let (publisher_bond, _) = self.writer.client().hint_stakes().await?;
        let timing = self.writer.client().timing().await?;
        let (challenge_window, hint_deadline) = (timing.challenge_window.into(), timing.hint_deadline.into());
        Ok(HintTerms { publisher_bond, challenge_window, hint_deadline })
    }

    async fn runs(&self, after: u64, through: u64) -> Result<Vec<PostedRun>, L1Trouble> {
        let runs = self.writer.client().posted_runs(after, through).await?;
        let run = |(run, head_hash): (RunReference, B256)| {
            let RunReference { first, last, posted_at, header_root } = run;
            PostedRun { first, last, posted_at, head_hash, header_root }
        };
        Ok(runs.into_iter().map(run).collect())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Trouble> {
        let logs = self.writer.client().hint_logs(after, through).await?;
        let event = |log| match log {
            HintLog::Posted(posted) => HintEvent::Posted(posting(&posted)),
            HintLog::Struck { id, last, publisher } => HintEvent::Struck { id, run_last: last, publisher },
            HintLog::Finalized { id, last } => HintEvent::Finalized { id, run_last: last },
            HintLog::Released { id, last } => HintEvent::Released { id, run_last: last },
            HintLog::Voided { last, .. } => HintEvent::Voided { run_last: last },
        };
        Ok(logs.into_iter().map(event).collect())
    }

    async fn bond(&self) -> Result<u128, L1Trouble> {
        Ok(self.writer.client().publisher_bond(self.writer.address()).await?.total)
    }

    async fn deposit_bond(&self, amount: u128) -> Result<(), L1Trouble> {
        self.writer.deposit_publisher_bond(amount).await?;
        Ok(())
    }

    async fn roots(&self, first: u64, hints: &[BatchHints]) -> Result<HintRoots, L1Trouble> {
        let [own, other] = self.writer.hint_roots(first, &data_of(hints)).await?;
        Ok(HintRoots { own, other })
    }

    async fn post(&self, run: &PostedRun, hints: &[BatchHints]) -> Result<HintPosting, L1Trouble> {
        let PostedRun { first, last, posted_at, header_root, .. } = *run;
        let reference = RunReference { first, last, posted_at, header_root };
        let sent = self.writer.post_hints(&reference, &data_of(hints)).await?;
        let log = self.log_of(sent.block, |posted| posted.transaction == sent.transaction).await?;
        let missing = || L1Trouble::Unavailable(format!("the event of {} is not there", sent.transaction));
        Ok(posting(&log.ok_or_else(missing)?))
    }

    async fn posted(&self, wanted: &HintPosting) -> Result<Option<Vec<BatchHints>>, L1Trouble> {
        let same = |posted: &PostedLog| (posted.id, posted.root) == (wanted.id, wanted.root);
        let Some(log) = self.log_of(wanted.block, same).await? else { return Ok(None) };
        let data = match self.writer.client().hint_data(&log).await? {
            Some(Ok(data)) => data.hints,
            // The root says what the blobs hold.
            Some(Err(_)) | None => return Ok(None),
        };
        // A posting names numbers and no headers; entries that are no hints are none of ours.
        let hints = (log.first..).zip(&data.batches).map(|(number, batch)| {
            batch.to_hints(number, B256::ZERO).unwrap_or(BatchHints {
                number,
                header_hash: B256::ZERO,
                entries: Vec::new(),
                blindings: vec![],
            })
        });
        Ok(Some(hints.collect()))
    }

    async fn finalize(&self, id: u64) -> Result<(), L1Trouble> {
        self.writer.finalize_hints(id).await?;
        Ok(())
    }

    async fn release(&self, id: u64) -> Result<(), L1Trouble> {
        self.writer.release_hints(id).await?;
        Ok(())
    }
}

//! The client of the contracts, as watching needs it.

use alloy_primitives::{Address, B256, U256, keccak256};
use async_trait::async_trait;
use blindfold_chain::{PostFault, PostedHead, RunPoster};
use blindfold_l1::{
    Challenge, CodedBatch, HintBlobs, HintData, HintLog, HintPosting, L1Client, L1Error, L1Writer,
    PostedEntry, PostedLog, PostedRun, Recovery, challenge_evidence, commitment, equivocation_evidence,
};
use blindfold_protocol::{BatchHeader, BatchHints, Certificate, HintEntry, SignedHeader};

use super::seam::{
    Claim, Court, HintEvidence, PostedBatch, PostedHints, PostedOutput, PostingSeen, WatchBlocks, WatchEvent,
    WatchL1, WatchTrouble,
};

const NO_KEY: &str = "no key is set in watch.key";

/// L1 as a node watches it, with or without an account of its own.
pub struct L1Watch {
    client: L1Client,
    writer: Option<L1Writer>,
}

impl L1Watch {
    /// Only looks.
    pub fn looking(client: L1Client) -> Self {
        Self { client, writer: None }
    }

    /// Shows what it finds, and pays for it from the writer's account.
    pub fn showing(writer: L1Writer) -> Self {
        Self { client: writer.client().clone(), writer: Some(writer) }
    }

    fn writer(&self) -> Result<&L1Writer, WatchTrouble> {
        self.writer.as_ref().ok_or_else(|| WatchTrouble::Refused(NO_KEY.to_owned()))
    }

    fn poster(&self) -> Result<&L1Writer, PostFault> {
        self.writer.as_ref().ok_or_else(|| PostFault::Refused(NO_KEY.to_owned()))
    }

    async fn log_of(&self, posting: &PostingSeen) -> Result<Option<PostedLog>, WatchTrouble> {
        let logs = self.client.hint_logs(posting.block.saturating_sub(1), posting.block).await?;
        Ok(logs.into_iter().find_map(|log| match log {
            HintLog::Posted(posted) if (posted.id, posted.root) == (posting.id, posting.root) => Some(posted),
            _ => None,
        }))
    }
}

impl L1Watch {
    /// The blobs that a posting's hints are in; `None` for hints in calldata.
    async fn blobs_of(&self, posting: &PostingSeen) -> Result<Option<HintBlobs>, WatchTrouble> {
        let gone = || WatchTrouble::Unavailable(format!("posting {} is not there any more", posting.id));
        let log = self.log_of(posting).await?.ok_or_else(gone)?;
        let data = self.client.hint_data(&log).await?.ok_or_else(gone)?;
        let data = data.map_err(|fault| WatchTrouble::Unavailable(fault.to_string()))?;
        Ok(data.blobs)
    }
}

impl From<L1Error> for WatchTrouble {
    fn from(error: L1Error) -> Self {
        match error.recovery() {
            Recovery::Retry => Self::Unavailable(error.to_string()),
            Recovery::Refresh | Recovery::GiveUp => Self::Refused(error.to_string()),
        }
    }
}

#[async_trait]
impl RunPoster for L1Watch {
    async fn posted_head(&self) -> Result<PostedHead, PostFault> {
        self.poster()?.posted_head().await
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<u64, PostFault> {
        RunPoster::post(self.poster()?, batches, certificate).await
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<u64, PostFault> {
        RunPoster::post_headers(self.poster()?, headers, certificate).await
    }

    async fn post_data(&self, batch: &CodedBatch) -> Result<u64, PostFault> {
        RunPoster::post_data(self.poster()?, batch).await
    }

    async fn lacks_data(&self, header: &BatchHeader) -> Result<bool, PostFault> {
        self.poster()?.lacks_data(header).await
    }

    async fn end_at_head(&self, head: &BatchHeader) -> Result<Option<u64>, PostFault> {
        RunPoster::end_at_head(self.poster()?, head).await
    }
}

fn evidence_of(claim: &Claim) -> B256 {
    match *claim {
        Claim::Hint { id, number, index } => challenge_evidence(id, number, index),
        // abi.encode(number, smaller hash, larger hash)
        Claim::Headers { number, first, second } => {
            let number = B256::from(U256::from(number));
            keccak256([number, first.min(second), first.max(second)].concat())
        }
    }
}

#[async_trait]
impl WatchL1 for L1Watch {
    fn reporter(&self) -> Option<Address> {
        self.writer.as_ref().map(L1Writer::address)
    }

    async fn blocks(&self) -> Result<WatchBlocks, WatchTrouble> {
        let finalized = self.client.finalized().await?.number;
        let newest = self.client.newest_block().await?.max(finalized);
        Ok(WatchBlocks { finalized, newest })
    }

    async fn challenge_window(&self) -> Result<u64, WatchTrouble> {
        Ok(self.client.timing().await?.challenge_window.into())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<WatchEvent>, WatchTrouble> {
        let logs = self.client.hint_logs(after, through).await?;
        let event = |log| match log {
            HintLog::Posted(PostedLog { id, first, last, publisher, l1_block, root, .. }) => {
                let (run_last, block) = (last, l1_block);
                Some(WatchEvent::Posted(PostingSeen { id, first, run_last, publisher, block, root }))
            }
            HintLog::Struck { publisher, .. } => Some(WatchEvent::Struck { publisher }),
            HintLog::Finalized { id, .. } | HintLog::Released { id, .. } => Some(WatchEvent::Closed { id }),
            HintLog::Voided { .. } => None,
        };
        Ok(logs.into_iter().filter_map(event).collect())
    }

    async fn posting(&self, posting: &PostingSeen) -> Result<Option<PostedHints>, WatchTrouble> {
        let Some(log) = self.log_of(posting).await? else { return Ok(None) };
        let data = match self.client.hint_data(&log).await? {
            Some(Ok(data)) => data,
            Some(Err(fault)) => {
                let PostingSeen { id, first, run_last, .. } = *posting;
                tracing::error!(id, first, run_last, %fault, "hints on L1 cannot be compared");
                return Ok(None);
            }
            None => return Ok(None),
        };
        let HintData { run, hints, .. } = data;
        let batch = |batch: blindfold_l1::PostedBatch| PostedBatch {
            entries: batch.entries.iter().map(|entry| (entry.kind, entry.key)).collect(),
            singletons: batch.singletons,
        };
        let batches = hints.batches.into_iter().map(batch).collect();
        Ok(Some(PostedHints { run_posted_at: run.posted_at, header_root: run.header_root, batches }))
    }

    async fn outputs(&self, from: u64, limit: usize) -> Result<Vec<PostedOutput>, WatchTrouble> {
        let outputs = self.client.final_outputs(from, limit).await?;
        let output = |output: blindfold_l1::Output| PostedOutput {
            l2_block: output.l2_block,
            batch: output.batch,
            timestamp: output.timestamp,
            block_hash: output.block_hash,
            state_root: output.state_root,
        };
        Ok(outputs.into_iter().map(output).collect())
    }

    async fn shown(&self, pair: &[SignedHeader; 2], block: Option<u64>) -> Result<bool, WatchTrouble> {
        let [one, two] = pair;
        let signer = one
            .signer(&self.client.config().deployment)
            .map_err(|error| WatchTrouble::Refused(error.to_string()))?;
        Ok(self.client.shown_together(signer, equivocation_evidence(one, two), block).await?)
    }

    async fn committed_at(&self, claim: &Claim, salt: B256) -> Result<Option<u64>, WatchTrouble> {
        let commitment = commitment(self.writer()?.address(), evidence_of(claim), salt);
        Ok(self.client.committed_at(claim.court() == Court::Hints, commitment).await?)
    }

    async fn commit(&self, claim: &Claim, salt: B256) -> Result<(), WatchTrouble> {
        let (writer, evidence) = (self.writer()?, evidence_of(claim));
        match claim.court() {
            Court::Hints => writer.commit_challenge(evidence, salt).await?,
            Court::Inbox => writer.commit(evidence, salt).await?,
        };
        Ok(())
    }

    async fn challenge(&self, evidence: &HintEvidence, salt: B256) -> Result<(), WatchTrouble> {
        let unfit = |reason: String| WatchTrouble::Refused(reason);
        let HintEvidence { posting, posted, headers, batch, verdicts, index, key } = evidence;
        let run = PostedRun::new(headers.clone(), posted.run_posted_at)
            .filter(|run| run.run.header_root == posted.header_root)
            .ok_or_else(|| {
                unfit("L1 holds other headers than this node: its chain is another one".to_owned())
            })?;
        let data = HintPosting {
            batches: posted
                .batches
                .iter()
                .map(|batch| blindfold_l1::PostedBatch {
                    entries: batch
                        .entries
                        .iter()
                        .map(|(kind, key)| PostedEntry { kind: *kind, key: *key })
                        .collect(),
                    singletons: batch.singletons.clone(),
                })
                .collect(),
        };
        // Of the truth a challenge needs the key that opens an envelope called malformed, at its place.
        let mut entries = vec![HintEntry::Skipped; batch.items.len()];
        if let (Some(key), Some(entry)) =
            (key, usize::try_from(*index).ok().and_then(|at| entries.get_mut(at)))
        {
            *entry = HintEntry::Key(*key);
        }
        let (number, header_hash) = (batch.header.number, batch.header.hash());
        let truth = BatchHints { number, header_hash, entries, blindings: vec![] };
        let codes: Vec<u8> = verdicts.iter().map(|verdict| verdict.code()).collect();
        let challenge = Challenge::new(&run, batch, &codes, &data, &truth, *index)
            .map_err(|fault| unfit(fault.to_string()))?;
        let challenge = match self.blobs_of(posting).await? {
            Some(blobs) => {
                let made = blindfold_runtime::blocking(move || challenge.in_blobs(&blobs)).await;
                let made = made.map_err(|error| unfit(error.to_string()))?;
                made.map_err(|fault| unfit(fault.to_string()))?
            }
            None => challenge,
        };
        self.writer()?.challenge(posting.id, &challenge, salt).await?;
        Ok(())
    }

    async fn slash_equivocation(
        &self,
        first: &SignedHeader,
        second: &SignedHeader,
        salt: B256,
    ) -> Result<(), WatchTrouble> {
        self.writer()?.slash_equivocation(first, second, salt).await?;
        Ok(())
    }

    async fn reward(&self, court: Court) -> Result<u128, WatchTrouble> {
        let account = self.writer()?.address();
        let amount = match court {
            Court::Hints => self.client.hint_reward(account).await?,
            Court::Inbox => self.client.reward(account).await?,
        };
        Ok(amount.saturating_to())
    }

    async fn claim_reward(&self, court: Court) -> Result<(), WatchTrouble> {
        match court {
            Court::Hints => self.writer()?.claim_hint_reward().await?,
            Court::Inbox => self.writer()?.claim_reward().await?,
        };
        Ok(())
    }
}

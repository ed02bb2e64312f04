//! What roles send.

use async_trait::async_trait;
use blindfold_chain::{CertifiedRun, PostFault};
use blindfold_l1::{CodedBatch, DataStanding, OmissionAnswer, OpenAccusation, Output, PostedRun};
use blindfold_protocol::{B256, BatchHeader};
use blindfold_sequencer::{L1Accusations, L1Outputs, L1Poster, OutputStanding, PostedHead, Receipt};

use super::{Mined, Transaction, View};

impl From<Mined> for Receipt {
    fn from(Mined { transaction, block }: Mined) -> Self {
        Self { transaction, block }
    }
}

#[async_trait]
impl L1Poster for View {
    async fn posted_head(&self) -> Result<PostedHead, PostFault> {
        self.look(|state| {
            let (number, hash) = state.head(&self.l1.0.deployment);
            PostedHead { number, hash, block: state.newest }
        })
        .await
    }

    async fn final_block(&self) -> Result<u64, PostFault> {
        self.look(|state| state.finalized).await
    }

    async fn post(&self, run: &CertifiedRun) -> Result<Receipt, PostFault> {
        let certificate = Box::new(run.certificate);
        Ok(self.send(Transaction::Post { batches: run.batches.clone(), certificate }).await?.into())
    }

    async fn post_data(&self, _batches: &[CodedBatch]) -> Result<Receipt, PostFault> {
        // Headers and data go in one transaction here.
        self.look(|_| ()).await?;
        Err(PostFault::Refused("the data is there".to_owned()))
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, PostFault> {
        self.look(|state| headers.iter().any(|header| state.posting_of(header.number).is_none())).await
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, PostFault> {
        self.look(|state| {
            let last = state.posted.iter().rev().find(|posted| posted.run.run.posted_at <= state.finalized);
            let (through, block) =
                last.map_or((above, after), |posted| (posted.run.run.last, posted.run.run.posted_at));
            DataStanding { through: through.max(above), block: block.max(after), ..DataStanding::default() }
        })
        .await
    }

    async fn end_at_head(&self, _head: &BatchHeader) -> Result<Option<Receipt>, PostFault> {
        self.look(|_| None).await
    }
}

#[async_trait]
impl L1Accusations for View {
    async fn open(&self, _since: u64) -> Result<Vec<OpenAccusation>, PostFault> {
        self.look(|_| Vec::new()).await
    }

    async fn run_of(&self, number: u64, _since: u64) -> Result<Option<PostedRun>, PostFault> {
        self.look(|state| state.posting_of(number).map(|posted| posted.run.clone())).await
    }

    async fn answer(&self, _answer: &OmissionAnswer) -> Result<B256, PostFault> {
        self.look(|_| ()).await?;
        Err(PostFault::Refused("no open accusation".to_owned()))
    }
}

#[async_trait]
impl L1Outputs for View {
    async fn standing(&self) -> Result<OutputStanding, PostFault> {
        self.look(|state| {
            let head = state.posted.last().and_then(|posted| posted.run.headers.last());
            OutputStanding {
                last_block: state.outputs.last().map_or(0, |output| output.l2_block),
                head: head.map_or(0, |header| header.number),
                head_timestamp_ms: head.map_or(0, |header| header.timestamp_ms),
            }
        })
        .await
    }

    async fn propose(&self, outputs: &[Output]) -> Result<B256, PostFault> {
        Ok(self.send(Transaction::Propose(outputs.to_vec())).await?.transaction)
    }
}

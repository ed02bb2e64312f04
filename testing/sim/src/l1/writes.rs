//! What roles send.

use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Reader, L1Submitter};
use blindfold_l1::{CodedBatch, DataStanding, OmissionAnswer, Output, Sent};
use blindfold_protocol::{Address, BatchHeader, Certificate};

use super::{Mined, Transaction, View};

impl From<Mined> for Sent {
    fn from(Mined { transaction, block }: Mined) -> Self {
        Self { transaction, block, gas_used: 0 }
    }
}

#[async_trait]
impl L1Submitter for View {
    fn account(&self) -> Address {
        Address::ZERO
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        let certificate = Box::new(*certificate);
        Ok(self.send(Transaction::Post { batches: batches.to_vec(), certificate }).await?.into())
    }

    async fn post_data(&self, _batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        // Headers and data go in one transaction here.
        self.read(|_| ()).await?;
        Err(L1Error::refused("the data is there"))
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        self.read(|state| headers.iter().any(|header| state.posting_of(header.number).is_none())).await
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        self.read(|state| {
            let last = state.posted.iter().rev().find(|posted| posted.run.run.posted_at <= state.finalized);
            let (through, block) =
                last.map_or((above, after), |posted| (posted.run.run.last, posted.run.run.posted_at));
            DataStanding { through: through.max(above), block: block.max(after), ..DataStanding::default() }
        })
        .await
    }

    async fn end_at_head(&self, _head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        self.read(|_| None).await
    }

    async fn answer_omission(&self, _answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        self.read(|_| ()).await?;
        Err(L1Error::refused("no open accusation"))
    }

    async fn propose_outputs(&self, outputs: &[Output]) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::Propose(outputs.to_vec())).await?.into())
    }
}

//! Where batches come from: the sequencer, or the script of a test.

use async_trait::async_trait;
use blindfold_protocol::{BatchHints, SealedBatch};
use blindfold_rpc::{BlindApiClient, HttpClient, ReceivedError};

/// A batch as the sequencer gives it. Nothing of it is believed.
#[derive(Clone, Debug)]
pub struct SourcedBatch {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// One entry for each item: why it was skipped, `None` for accepted.
    pub verdicts: Vec<Option<String>>,
    /// Its hints, once the sequencer has them.
    pub hints: Option<BatchHints>,
}

/// Where the batches of posted runs come from.
#[async_trait]
pub trait BatchSource: Send + Sync {
    /// The batch of this number, `None` while it has none. An error says what did not work, and asking again may help.
    async fn batch(&self, number: u64) -> Result<Option<SourcedBatch>, String>;
}

#[async_trait]
impl BatchSource for HttpClient {
    async fn batch(&self, number: u64) -> Result<Option<SourcedBatch>, String> {
        let answer = self.get_batch(number).await.map_err(|error| ReceivedError::from(error).to_string())?;
        let Some(info) = answer else { return Ok(None) };
        let sealed = info.sealed.decode().map_err(|fault| format!("undecodable batch: {fault}"))?;
        let hints = info.hints.as_ref().map(|hints| hints.decode()).transpose();
        let hints = hints.map_err(|fault| format!("undecodable hints: {fault}"))?;
        Ok(Some(SourcedBatch { sealed, verdicts: info.verdicts, hints }))
    }
}

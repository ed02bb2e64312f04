//! The sequencer as a source of batches.

use async_trait::async_trait;
use blindfold_rpc::{BlindApiClient, HttpClient, ReceivedError};

use super::seam::{BatchSource, SourcedBatch};

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

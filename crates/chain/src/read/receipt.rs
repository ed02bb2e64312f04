//! Where an envelope stands.

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_rpc::RpcError;
use blindfold_rpc::types::{BatchState, EnvelopeState, Receipt, TransactionOutcome};

use super::ReadApi;
use crate::executor::parse_details;
use crate::{BlockDetails, EnvelopeOutcome, ExecutedEnvelope};

impl ReadApi {
    /// What `blind_getReceipt` answers; `None` for an id that is not known here (ST-1).
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        let tracker = &self.context.tracker;
        let location = tracker.for_caller(tracker.store().envelope_location(id)).await;
        let Some(location) = location.map_err(RpcError::internal)? else {
            return self.unsealed(id).await;
        };
        // A skipped item may be a copy with another proof or signature: what waits here is told first.
        if location.fault.is_some()
            && let Some((state, reason)) = self.context.role.unsealed(&id)
        {
            return Ok(Some(Receipt { reason, ..empty(id, state) }));
        }
        let (number, index) = (location.number, location.index);
        let Some(record) = self.stored_batch(number).await? else {
            // Taken back between the two reads: it is in no batch now.
            return self.unsealed(id).await;
        };
        let mut receipt = empty(id, EnvelopeState::Sealed);
        receipt.number = Some(number);
        receipt.index = Some(index);
        receipt.header_hash = Some(record.hash);
        receipt.state = match self.batch_state(&record) {
            BatchState::Sealed => EnvelopeState::Sealed,
            BatchState::Certified | BatchState::Executed => EnvelopeState::Certified,
            BatchState::Void => EnvelopeState::Void,
        };
        // Skipped by the validity rule: final with the certificate, whatever becomes of the rest of the batch.
        if let Some(fault) = location.fault {
            receipt.reason = Some(fault);
            if matches!(receipt.state, EnvelopeState::Certified | EnvelopeState::Void) {
                receipt.state = EnvelopeState::Skipped;
            }
        }
        if let Some((number, hash, details)) = self.details_of_batch(number).await? {
            receipt.block_number = Some(number);
            receipt.block_hash = Some(hash);
            if let Some(executed) = details.envelope(location.number, index) {
                fill(&mut receipt, executed);
            }
        }
        Ok(Some(receipt))
    }

    async fn unsealed(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        if let Some((state, reason)) = self.context.role.unsealed(&id) {
            return Ok(Some(Receipt { reason, ..empty(id, state) }));
        }
        let tracker = &self.context.tracker;
        let outcome = tracker.for_caller(tracker.store().envelope_outcome(id)).await;
        Ok(outcome.map_err(RpcError::internal)?.map(|outcome| match outcome.as_str() {
            "expired" => empty(id, EnvelopeState::Expired),
            // Gone like one that expired: an evicted one may be sent again, one that L1 made a header before may not.
            "evicted" | "wrong_generation" => {
                Receipt { reason: Some(outcome), ..empty(id, EnvelopeState::Expired) }
            }
            _ => Receipt { reason: Some(outcome), ..empty(id, EnvelopeState::Skipped) },
        }))
    }

    /// The block that holds a batch, if executed.
    async fn details_of_batch(
        &self,
        number: u64,
    ) -> Result<Option<(u64, B256, Arc<BlockDetails>)>, RpcError> {
        let tracker = &self.context.tracker;
        let record = tracker.for_caller(tracker.store().block_of_batch(number)).await;
        let Some(record) = record.map_err(RpcError::internal)? else { return Ok(None) };
        let details = match self.details.get(record.hash) {
            Some(details) => details,
            None => {
                let details = Arc::new(parse_details(&record).map_err(RpcError::internal)?);
                self.details.put(record.hash, Arc::clone(&details));
                details
            }
        };
        Ok(Some((record.number, record.hash, details)))
    }
}

fn empty(id: B256, state: EnvelopeState) -> Receipt {
    Receipt {
        id,
        state,
        reason: None,
        number: None,
        index: None,
        header_hash: None,
        block_number: None,
        block_hash: None,
        transactions: None,
    }
}

fn fill(receipt: &mut Receipt, executed: &ExecutedEnvelope) {
    receipt.state = match &executed.outcome {
        EnvelopeOutcome::Executed => EnvelopeState::Executed,
        EnvelopeOutcome::Skipped(reason) => {
            receipt.reason = Some(reason.clone());
            EnvelopeState::Skipped
        }
        EnvelopeOutcome::Malformed => EnvelopeState::Malformed,
        EnvelopeOutcome::Void => EnvelopeState::Void,
    };
    if executed.outcome == EnvelopeOutcome::Executed {
        let transactions = executed.transactions.iter().map(|inner| TransactionOutcome {
            hash: inner.hash,
            included: inner.skipped.is_none(),
            reason: inner.skipped.clone(),
        });
        receipt.transactions = Some(transactions.collect());
    }
}

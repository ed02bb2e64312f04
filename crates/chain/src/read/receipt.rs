//! Where an envelope stands.

use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_rpc::RpcError;
use blindfold_rpc::types::{EnvelopeState, Receipt, TransactionOutcome};
use blindfold_store::ItemLocation;

use super::ReadApi;
use crate::executor::parse_details;
use crate::{BlockDetails, EnvelopeOutcome, ExecutedEnvelope};

impl ReadApi {
    /// What `blind_getReceipt` answers; `None` for an id that is not known here (ST-1).
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, RpcError> {
        let tracker = &self.context.tracker;
        // Before and after: what L1 displaces in between may have come to be another batch of this number.
        let before = tracker.certified().number;
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
        let ItemLocation { number: batch, index, fault, header_hash, block } = location;
        let certified = batch <= before.min(tracker.certified().number);
        // What is not certified may still have to be signed: only its batch says so.
        if !certified && self.stored_batch(batch).await?.is_none_or(|record| record.hash != header_hash) {
            return self.unsealed(id).await;
        }
        let void_runs = self.context.executor.status().void_runs;
        let mut receipt = empty(id, EnvelopeState::Sealed);
        receipt.number = Some(batch);
        receipt.index = Some(index);
        receipt.header_hash = Some(header_hash);
        if certified {
            let is_void = fault.is_none() && void_runs.iter().any(|run| run.contains(batch));
            receipt.state = if is_void { EnvelopeState::Void } else { EnvelopeState::Certified };
        }
        // Skipped by the validity rule: final with the certificate, whatever becomes of the rest of the batch.
        if let Some(fault) = fault {
            receipt.reason = Some(fault);
            if certified {
                receipt.state = EnvelopeState::Skipped;
            }
        }
        if let Some((number, hash)) = block
            && let Some(details) = self.details_of(number, hash).await?
        {
            receipt.block_number = Some(number);
            receipt.block_hash = Some(hash);
            if let Some(executed) = details.envelope(batch, index) {
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

    /// What the block did; `None` where another has taken its place meanwhile.
    async fn details_of(&self, number: u64, hash: B256) -> Result<Option<Arc<BlockDetails>>, RpcError> {
        if let Some(details) = self.details.get(hash) {
            return Ok(Some(details));
        }
        let tracker = &self.context.tracker;
        let record = tracker.for_caller(tracker.store().block(number)).await.map_err(RpcError::internal)?;
        let Some(record) = record.filter(|record| record.hash == hash) else { return Ok(None) };
        let details = Arc::new(parse_details(&record).map_err(RpcError::internal)?);
        self.details.put(hash, Arc::clone(&details));
        Ok(Some(details))
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

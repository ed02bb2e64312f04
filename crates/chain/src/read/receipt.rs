//! Where an envelope stands.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_rpc::types::{EnvelopeState, Receipt, TransactionOutcome};
use blindfold_rpc::{ReceiptSource, RpcError};
use blindfold_store::ItemLocation;

use super::{ReadContext, cache::DetailsCache};
use crate::executor::parse_details;
use crate::{BlockDetails, EnvelopeOutcome, ExecutedEnvelope};

/// Receipts, read from the store.
#[derive(Clone)]
pub(super) struct Receipts {
    context: ReadContext,
    details: Arc<DetailsCache>,
}

#[async_trait]
impl ReceiptSource for Receipts {
    async fn receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        self.of(ids).await
    }
}

impl Receipts {
    pub(super) fn new(context: ReadContext) -> Self {
        Self { context, details: Arc::default() }
    }

    /// What `blind_getReceipts` answers, `None` for an id that is not known here (ST-1): one read of the store for all of them,
    /// and one of each batch among theirs that is not certified yet.
    pub(super) async fn of(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        // Zero is no id. Each other one is looked up once, however often it is asked for.
        let mut different: Vec<B256> = ids.iter().copied().filter(|id| !id.is_zero()).collect();
        different.sort_unstable();
        different.dedup();
        let receipts = match different.is_empty() {
            true => Vec::new(),
            false => self.of_different(different.clone()).await?,
        };
        let told: HashMap<B256, Option<Receipt>> = different.into_iter().zip(receipts).collect();
        Ok(ids.iter().map(|id| told.get(id).cloned().flatten()).collect())
    }

    async fn of_different(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        let waited: Vec<bool> = ids.iter().map(|id| self.context.role.unsealed(id).is_some()).collect();
        let mut receipts = self.read(ids.clone()).await?;
        // What waited before, and is nowhere now, was sealed while the store was read.
        let left = |(place, receipt): (usize, &Option<Receipt>)| {
            (receipt.is_none() && waited.get(place) == Some(&true)).then_some(place)
        };
        let places: Vec<usize> = receipts.iter().enumerate().filter_map(left).collect();
        if !places.is_empty() {
            let again = places.iter().filter_map(|place| ids.get(*place)).copied().collect();
            for (place, receipt) in places.into_iter().zip(self.read(again).await?) {
                if let Some(told) = receipts.get_mut(place) {
                    *told = receipt;
                }
            }
        }
        Ok(receipts)
    }

    async fn read(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
        let tracker = &self.context.tracker;
        // Before and after: what L1 displaces in between may have come to be another batch of this number.
        let before = tracker.certified().number;
        let pasts = tracker.for_caller(tracker.store().envelope_pasts(ids.clone())).await;
        let pasts = pasts.map_err(RpcError::internal)?;
        let certified = before.min(tracker.certified().number);
        let mut signed = HashMap::new();
        let mut receipts = Vec::with_capacity(ids.len());
        for (id, (location, outcome)) in ids.into_iter().zip(pasts) {
            let location = match location {
                // What is not certified may still have to be signed: only its batch says so.
                Some(location) if location.number > certified => {
                    let batch = location.number;
                    let hash = match signed.entry(batch) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(new) => {
                            *new.insert(self.context.stored_batch(batch).await?.map(|record| record.hash))
                        }
                    };
                    (hash == Some(location.header_hash)).then_some(location)
                }
                location => location,
            };
            receipts.push(match location {
                Some(location) => self.located(id, location, certified).await?,
                None => self.unsealed(id, outcome),
            });
        }
        Ok(receipts)
    }

    async fn located(
        &self,
        id: B256,
        location: ItemLocation,
        certified_through: u64,
    ) -> Result<Option<Receipt>, RpcError> {
        // A skipped item may be a copy with another proof or signature: what waits here is told first.
        if location.fault.is_some()
            && let Some((state, reason)) = self.context.role.unsealed(&id)
        {
            return Ok(Some(Receipt { reason, ..Receipt::new(id, state) }));
        }
        let ItemLocation { number: batch, index, fault, header_hash, block } = location;
        let certified = batch <= certified_through;
        let void_runs = self.context.executor.status().void_runs;
        let mut receipt = Receipt::new(id, EnvelopeState::Sealed);
        receipt.number = Some(batch);
        receipt.index = Some(index);
        receipt.header_hash = Some(header_hash);
        let is_void = certified && fault.is_none() && void_runs.iter().any(|run| run.contains(batch));
        if certified {
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
            let executed = details.envelope(batch, index);
            // A block that opened what is void now is about to be taken back (VR-2).
            let stands = |executed: &ExecutedEnvelope| !is_void || executed.outcome == EnvelopeOutcome::Void;
            if executed.is_none_or(stands) {
                receipt.block_number = Some(number);
                receipt.block_hash = Some(hash);
                if let Some(executed) = executed {
                    fill(&mut receipt, executed);
                }
            }
        }
        Ok(Some(receipt))
    }

    fn unsealed(&self, id: B256, outcome: Option<String>) -> Option<Receipt> {
        if let Some((state, reason)) = self.context.role.unsealed(&id) {
            return Some(Receipt { reason, ..Receipt::new(id, state) });
        }
        outcome.map(|outcome| match outcome.as_str() {
            "expired" => Receipt::new(id, EnvelopeState::Expired),
            // Gone like one that expired: an evicted one may be sent again, one that L1 made a header before may not.
            "evicted" | "wrong_generation" => {
                Receipt { reason: Some(outcome), ..Receipt::new(id, EnvelopeState::Expired) }
            }
            _ => Receipt { reason: Some(outcome), ..Receipt::new(id, EnvelopeState::Skipped) },
        })
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

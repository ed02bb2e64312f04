//! The transactions that post hints: in calldata, or an index with the data in blobs.

use alloy_consensus::Transaction as _;
use alloy_primitives::Bytes;
use alloy_rpc_types_eth::Transaction;
use alloy_sol_types::SolCall;
use blindfold_protocol::{B256, Canonical};

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    events::PostedLog,
    posting::{
        hint_blobs::{HintBlobs, HintData, HintIndex},
        hint_posting::HintPosting,
        hint_tree::HintTree,
        run::RunReference,
    },
    reader::{
        client::L1Client,
        data::{DataError, unfit},
    },
};

/// A call that posted hints, checked to have the root that its event names.
pub(crate) struct HintCall {
    run: RunReference,
    data: CallData,
}

enum CallData {
    Calldata(HintPosting),
    Blobs { index: HintIndex, hashes: Vec<B256> },
}

impl HintCall {
    fn decode(transaction: &Transaction, first: u64) -> Result<(Self, B256), L1Error> {
        let input = transaction.input();
        if input.starts_with(&HintRegistry::postHintsInBlobsCall::SELECTOR) {
            let call =
                HintRegistry::postHintsInBlobsCall::abi_decode(input).map_err(|error| unfit(&error))?;
            let batches = call.run.last.saturating_sub(call.run.first).saturating_add(1);
            let index = HintIndex::decode(&call.index, batches).map_err(|error| unfit(&error))?;
            let hashes = transaction.blob_versioned_hashes().unwrap_or_default().to_vec();
            let root = index.root(first, &hashes);
            return Ok((Self { run: run_of(&call.run), data: CallData::Blobs { index, hashes } }, root));
        }
        let call = HintRegistry::postHintsCall::abi_decode(input).map_err(|error| unfit(&error))?;
        // L1 took the data, so they are in order: if not, the endpoint shows another transaction.
        let hints = HintPosting::decode(&call.data).map_err(|error| unfit(&error))?;
        let root = HintTree::new(&hints, first).root();
        Ok((Self { run: run_of(&call.run), data: CallData::Calldata(hints) }, root))
    }

    /// The items that the posting calls malformed, as (batch number, item index). For hints in blobs the index says it,
    /// and L1 slashes a posting that contradicts it: nobody needs the blobs for this.
    pub fn malformed(&self) -> Vec<(u64, u32)> {
        match &self.data {
            CallData::Calldata(hints) => hints.malformed(self.run.first),
            CallData::Blobs { index, .. } => index.malformed(self.run.first),
        }
    }
}

fn run_of(run: &HintRegistry::RunReference) -> RunReference {
    RunReference { first: run.first, last: run.last, posted_at: run.postedAt, header_root: run.headerRoot }
}

impl L1Client {
    /// The run and the hints of a posting, checked to have its root; `None` when L1 has no such transaction (any more),
    /// or its block is the newest and the hints are in blobs, which are found through the next one. The inner error
    /// says why hints in blobs cannot be had.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] when event and transaction do not fit each other; the errors of a call, of the beacon
    /// node's too.
    pub async fn hint_data(
        &self,
        posted: &PostedLog,
    ) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        match self.hint_call(posted).await? {
            Some(call) => self.hints_of_call(call, posted.l1_block).await,
            None => Ok(None),
        }
    }

    /// The call that posted the hints of this event; `None` when L1 has no such transaction (any more).
    pub(crate) async fn hint_call(&self, posted: &PostedLog) -> Result<Option<HintCall>, L1Error> {
        let PostedLog { transaction, first, last, root, .. } = *posted;
        let registry = self.inner.config.contracts.hint_registry;
        let found = self.inner.rpc.transaction(transaction).await?;
        let Some(found) = found else { return Ok(None) };
        if found.to() != Some(registry) {
            return Err(unfit(&format!("transaction {transaction} does not go to HintRegistry")));
        }
        let (call, made) = HintCall::decode(&found, first)?;
        if (call.run.first, call.run.last, made) != (first, last, root) {
            return Err(unfit(&format!("transaction {transaction} is not what its event says")));
        }
        Ok(Some(call))
    }

    /// The hints of a call in this L1 block, or why they cannot be had; `None` while the next block is not there, by
    /// which a beacon node names this one.
    pub(crate) async fn hints_of_call(
        &self,
        call: HintCall,
        l1_block: u64,
    ) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        let run = call.run;
        let (index, hashes) = match call.data {
            CallData::Calldata(hints) => return Ok(Some(Ok(HintData { run, hints, blobs: None }))),
            CallData::Blobs { index, hashes } => (index, hashes),
        };
        let blobs: Vec<Bytes> = match self.blobs_of(l1_block, &hashes).await? {
            None => return Ok(None),
            Some(Err(fault)) => return Ok(Some(Err(fault))),
            Some(Ok(blobs)) => blobs,
        };
        let blobs = HintBlobs::shown(index, hashes, blobs);
        Ok(Some(Ok(HintData { run, hints: blobs.hints(), blobs: Some(blobs) })))
    }
}

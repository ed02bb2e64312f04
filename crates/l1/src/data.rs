//! The bytes that came with postings: in the transaction's input, or in its blobs.

use std::collections::BTreeMap;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, Bytes};
use alloy_rpc_types_eth::Transaction;
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{B256, BatchHeader, Canonical, DecodeError, SealedBatch};
use serde_json::json;

use crate::{
    L1Client, L1Error,
    blobs::{BlobFault, decode_blobs},
    contracts::BlindedInbox,
    run_data::{DataPart, RunData, join_parts},
};

/// Why the data that came with a run is of no use. Look for it in data that was posted again, or ask a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataFault {
    /// None came along.
    #[error("no data came with the headers")]
    Absent,
    /// It is no `RunData`.
    #[error("the data cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// It does not fit the headers.
    #[error("the data does not fit the envelope roots of the headers")]
    Mismatch,
    /// It came in blobs, and no beacon node is configured.
    #[error("the data is in blobs, and there is no beacon node to ask")]
    NoBeacon,
    /// The beacon node no longer has its blobs.
    #[error("the beacon node does not have the blobs of L1 block {0}")]
    Pruned(u64),
    /// Its blobs hold no data.
    #[error(transparent)]
    Blobs(#[from] BlobFault),
}

impl L1Client {
    /// Sealed batches from data that was posted again in blocks `after + 1 ..= through` for these consecutive
    /// headers: every list that fits, without those that are the same. Which one has the sequencer's signatures is for
    /// the caller to see. Parts of a run may be spread over the range.
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<Vec<Vec<SealedBatch>>, L1Error> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return Ok(Vec::new());
        };
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::DataPosted::SIGNATURE_HASH];
        let logs = self.final_logs(inbox, &topics, after, through).await?;
        // Grouped by poster too, so that one poster's garbage does not spoil another's parts.
        let mut found: BTreeMap<(Address, B256), Vec<DataPart>> = BTreeMap::new();
        for log in logs {
            let Some(event) = log.event::<BlindedInbox::DataPosted>()? else { continue };
            if event.firstNumber != first.number {
                continue;
            }
            let input = self.input_to(inbox, log.transaction).await?;
            let call = BlindedInbox::postDataCall::abi_decode(&input).map_err(|error| unfit(&error))?;
            // Nobody checked these bytes: what is no part of this run is passed over.
            let Ok(bytes) = self.posted_bytes(log.block, &call.data, &event.versionedHashes).await? else {
                continue;
            };
            let Ok(part) = DataPart::decode(&bytes) else { continue };
            if (part.first, part.last) == (first.number, last.number) {
                found.entry((event.poster, part.whole)).or_default().push(part);
            }
        }
        let mut fitting = Vec::new();
        for parts in found.values() {
            let Some(data) = join_parts(parts.iter()) else { continue };
            let Ok(data) = RunData::decode(&data) else { continue };
            if let Some(batches) = data.join(headers).filter(|batches| !fitting.contains(batches)) {
                fitting.push(batches);
            }
        }
        Ok(fitting)
    }

    /// The data of a posting in a final block: what its input has, or what its blobs hold.
    pub(crate) async fn posted_bytes(
        &self,
        l1_block: u64,
        input: &Bytes,
        blobs: &[B256],
    ) -> Result<Result<Bytes, DataFault>, L1Error> {
        if !input.is_empty() {
            return Ok(Ok(input.clone()));
        }
        if blobs.is_empty() {
            return Ok(Err(DataFault::Absent));
        }
        let found = self.blobs_of(l1_block, blobs).await?;
        let missing = || unfit(&format!("block {l1_block} or the next one is missing"));
        let blobs = found.ok_or_else(missing)?;
        Ok(blobs.and_then(|blobs| Ok(decode_blobs(&blobs).map(Bytes::from)?)))
    }

    /// The blobs with these versioned hashes, in order, of an L1 block, or why they cannot be had; `None` when there is
    /// no such block, or none after it. Neither need be final: a wrong one names other blobs, which do not count.
    pub(crate) async fn blobs_of(
        &self,
        l1_block: u64,
        hashes: &[B256],
    ) -> Result<Option<Result<Vec<Bytes>, DataFault>>, L1Error> {
        let Some(beacon) = &self.inner.beacon else { return Ok(Some(Err(DataFault::NoBeacon))) };
        let holder = self.block(&format!("{l1_block:#x}")).await?;
        let child = self.block(&format!("{:#x}", l1_block.saturating_add(1))).await?;
        let Some((holder, child)) = holder.zip(child) else { return Ok(None) };
        let found = beacon.blobs(&holder, &child, hashes).await?;
        Ok(Some(found.ok_or(DataFault::Pruned(l1_block))))
    }

    /// Input of a transaction to a contract.
    pub(crate) async fn input_to(&self, contract: Address, hash: B256) -> Result<Bytes, L1Error> {
        let found: Option<Transaction> =
            self.inner.rpc.call("eth_getTransactionByHash", json!([hash])).await?;
        let transaction = found.ok_or_else(|| unfit(&format!("transaction {hash} is missing")))?;
        if transaction.to() != Some(contract) {
            return Err(unfit(&format!("transaction {hash} does not go to {contract}")));
        }
        Ok(transaction.input().clone())
    }
}

pub(crate) fn unfit(reason: &impl std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: "eth_getTransactionByHash".to_owned(), reason: reason.to_string() }
}

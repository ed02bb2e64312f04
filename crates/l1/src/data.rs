//! The bytes that came with postings: in the transaction's input, or in its blobs.

use std::collections::{BTreeMap, BTreeSet};

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, Bytes};
use alloy_rpc_types_eth::Transaction;
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{B256, BatchHeader, Canonical, DecodeError, SealedBatch, validity::check_signature};
use serde_json::json;

use crate::{
    L1Client, L1Error,
    blobs::{BlobFault, decode_blobs},
    contracts::BlindedInbox,
    run_data::{DataPart, MAX_RUN_BATCHES, RunData, join_parts},
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

/// Parts of one poster's data, and where the last of them stands on L1.
#[derive(Default)]
struct Parts {
    end: (u64, u64),
    pieces: Vec<DataPart>,
}

/// What one transaction, or one poster's parts of data, brought for a list of headers.
struct Again {
    poster: Address,
    /// For each header its batch, where the data fits it.
    batches: Vec<Option<SealedBatch>>,
}

impl Again {
    /// What a `RunData` for the numbers from `from` on holds of these headers; `None` for other bytes.
    fn read(poster: Address, from: u64, data: &[u8], headers: &[BatchHeader]) -> Option<Self> {
        let mut batches: Vec<_> = RunData::decode(data).ok()?.batches.into_iter().map(Some).collect();
        let join = |header: &BatchHeader| {
            let place = usize::try_from(header.number.checked_sub(from)?).ok()?;
            batches.get_mut(place)?.take()?.join(header)
        };
        Some(Self { poster, batches: headers.iter().map(join).collect() })
    }
}

/// For each of `count` headers the first batch that there is.
fn pick<'a>(count: usize, again: impl Iterator<Item = &'a Again>) -> Vec<Option<&'a SealedBatch>> {
    let mut picked = vec![None; count];
    for again in again {
        for (place, batch) in picked.iter_mut().zip(&again.batches) {
            *place = place.or(batch.as_ref());
        }
    }
    picked
}

impl L1Client {
    /// Sealed batches from data that was posted again in blocks `after + 1 ..= through` for these consecutive headers,
    /// alone or with further headers (`postData`), or in a call of `post` that came when they were posted already: every
    /// list that fits and that one poster's data give, and one from everybody's, without those that are the same, all with
    /// the sequencer's signatures.
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<Vec<Vec<SealedBatch>>, L1Error> {
        let again = self.posted_again(headers, after, through).await?;
        let posters: BTreeSet<Address> = again.iter().map(|again| again.poster).collect();
        let mut picked = Vec::new();
        // One poster's garbage must not spoil another's data, nor what it posts later itself.
        for poster in posters {
            let own = again.iter().filter(|again| again.poster == poster);
            picked.push(pick(headers.len(), own.clone()));
            picked.push(pick(headers.len(), own.rev()));
        }
        picked.push(pick(headers.len(), again.iter()));
        let mut fitting = Vec::new();
        for list in picked {
            let list: Option<Vec<SealedBatch>> = list.into_iter().map(|batch| batch.cloned()).collect();
            fitting.extend(list.filter(|list| !list.is_empty() && !fitting.contains(list)));
        }
        Ok(fitting)
    }

    /// What was posted again for any of these headers, in L1's order. Parts of data may be spread over the range.
    async fn posted_again(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<Vec<Again>, L1Error> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return Ok(Vec::new());
        };
        let (first, last) = (first.number, last.number);
        let inbox = self.inner.config.deployment.inbox;
        let topics = [BlindedInbox::DataPosted::SIGNATURE_HASH, BlindedInbox::PostedAgain::SIGNATURE_HASH];
        let logs = self.final_logs(inbox, &topics, after, through).await?;
        // Nobody checked these bytes: what cannot be read is passed over.
        let mut found: Vec<((u64, u64), Again)> = Vec::new();
        let mut parts: BTreeMap<(Address, u64, B256), Parts> = BTreeMap::new();
        for log in logs {
            if let Some(event) = log.event::<BlindedInbox::PostedAgain>()? {
                if event.firstNumber > last || event.lastNumber < first {
                    continue;
                }
                let input = self.input_to(inbox, log.transaction).await?;
                let Ok(call) = BlindedInbox::postCall::abi_decode(&input) else { continue };
                let data = self.posted_bytes(log.block, &call.data, &event.versionedHashes).await?;
                let again =
                    data.ok().and_then(|data| Again::read(event.poster, event.firstNumber, &data, headers));
                found.extend(again.map(|again| (log.position(), again)));
            } else if let Some(event) = log.event::<BlindedInbox::DataPosted>()? {
                let longest = MAX_RUN_BATCHES as u64;
                if event.firstNumber > last || event.firstNumber.saturating_add(longest) <= first {
                    continue;
                }
                let input = self.input_to(inbox, log.transaction).await?;
                let Ok(call) = BlindedInbox::postDataCall::abi_decode(&input) else { continue };
                let bytes = self.posted_bytes(log.block, &call.data, &event.versionedHashes).await?;
                let Some(part) = bytes.ok().and_then(|bytes| DataPart::decode(&bytes).ok()) else { continue };
                if part.first == event.firstNumber && part.last >= first {
                    // Grouped by poster too, so that one poster's garbage does not spoil another's parts.
                    let group = parts.entry((event.poster, part.first, part.whole)).or_default();
                    group.end = log.position();
                    group.pieces.push(part);
                }
            }
        }
        for ((poster, from, _), parts) in &parts {
            let data = join_parts(parts.pieces.iter());
            let again = data.and_then(|data| Again::read(*poster, *from, &data, headers));
            found.extend(again.map(|again| (parts.end, again)));
        }
        found.sort_by_key(|(position, _)| *position);
        let mut found: Vec<Again> = found.into_iter().map(|(_, again)| again).collect();
        if !found.is_empty() {
            let sequencer = self.sequencer().await?;
            for batch in found.iter_mut().flat_map(|again| &mut again.batches) {
                *batch = batch.take().filter(|batch| self.is_signed(batch, &sequencer));
            }
        }
        Ok(found)
    }

    /// Whose signature stands under headers.
    async fn sequencer(&self) -> Result<Address, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        self.inner.rpc.view("sequencer", inbox, &BlindedInbox::sequencerCall {}, "latest").await
    }

    /// A header is certified by its hash, and posted without its signature: that comes with the data, from anybody.
    fn is_signed(&self, batch: &SealedBatch, sequencer: &Address) -> bool {
        check_signature(&batch.signed_header(), &self.inner.config.deployment, sequencer).is_ok()
    }

    /// First and last number of consecutive headers of one posting, in final blocks after `after`, whose data is not on
    /// L1 with the sequencer's signatures, neither beside the headers nor posted again. Where data is in blobs that cannot be read here, it is taken to be
    /// there.
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn postings_without_data(&self, after: u64) -> Result<Vec<(u64, u64)>, L1Error> {
        let through = self.finalized().await?.number;
        let mut lacking = Vec::new();
        let sequencer = self.sequencer().await?;
        for posting in self.postings(after, through).await? {
            let beside: Vec<bool> = match &posting.batches {
                Ok(batches) => batches.iter().map(|batch| self.is_signed(batch, &sequencer)).collect(),
                Err(DataFault::Absent | DataFault::Decode(_) | DataFault::Mismatch | DataFault::Blobs(_)) => {
                    vec![false; posting.headers.len()]
                }
                Err(DataFault::NoBeacon | DataFault::Pruned(_)) => continue,
            };
            if posting.certificate.is_none() || beside.iter().all(|signed| *signed) {
                continue;
            }
            let since = posting.l1_block.saturating_sub(1);
            let again = self.posted_again(&posting.headers, since, through).await?;
            let there = pick(posting.headers.len(), again.iter());
            let mut spans: Vec<(u64, u64)> = Vec::new();
            let missing = |(_, (beside, again)): &(_, (bool, Option<_>))| !beside && again.is_none();
            for (header, _) in posting.headers.iter().zip(beside.into_iter().zip(there)).filter(missing) {
                match spans.last_mut() {
                    Some((_, end)) if end.checked_add(1) == Some(header.number) => *end = header.number,
                    _ => spans.push((header.number, header.number)),
                }
            }
            lacking.extend(spans);
        }
        Ok(lacking)
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

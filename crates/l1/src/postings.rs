//! What `BlindedInbox` holds, and what was posted to it.

use std::collections::BTreeMap;

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, Bytes, U64, U256};
use alloy_rpc_types_eth::Transaction;
use alloy_sol_types::{SolCall, SolEvent};
use blindfold_protocol::{B256, BatchHeader, Canonical, Certificate, DecodeError, SealedBatch};
use serde_json::json;

use crate::{
    L1Client, L1Error,
    client::malformed_log,
    committee::decompress_signature,
    contracts::BlindedInbox,
    run_data::{DataPart, RunData, join_parts},
    writer::from_contract,
};

/// The last posted header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedHead {
    /// Its number; 0 before the first.
    pub number: u64,
    /// Its hash; the genesis hash before the first.
    pub hash: B256,
    /// Its time, in milliseconds; 0 before the first.
    pub timestamp_ms: u64,
    /// Its L1 origin; 0 before the first.
    pub l1_origin_number: u64,
}

/// The sequencer's bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond {
    /// In wei.
    pub amount: U256,
    /// Of it, what the sequencer announced to take out, in wei.
    pub withdrawal: u128,
    /// When it may, Unix seconds; 0 when nothing is announced.
    pub unlocks_at: u64,
}

/// A run as it was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The final L1 block.
    pub l1_block: u64,
    /// Hash of the transaction.
    pub transaction: B256,
    /// The headers, checked to be chained and to end in the hash of the event.
    pub headers: Vec<BatchHeader>,
    /// The certificate of the last header, which L1 verified.
    pub certificate: Certificate,
    /// The batches, when the run's data came along and fits the headers.
    pub batches: Result<Vec<SealedBatch>, DataFault>,
}

/// Why the data that came with a run is of no use. Look for it in data that was posted again, or ask a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
}

impl L1Client {
    /// Where the inbox stands after the newest block, which may not be final.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        let block: U64 = self.inner.rpc.call("eth_blockNumber", ()).await?;
        self.posted_head_at(block.to()).await
    }

    /// Where the inbox stands after the newest final block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn final_posted_head(&self) -> Result<PostedHead, L1Error> {
        self.posted_head_at(self.finalized().await?.number).await
    }

    async fn posted_head_at(&self, block: u64) -> Result<PostedHead, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let rpc = &self.inner.rpc;
        // Both of one block, so that number and hash belong together.
        let block = format!("{block:#x}");
        let head = rpc.view("head", inbox, &BlindedInbox::headCall {}, &block).await?;
        let hash = rpc.view("headHash", inbox, &BlindedInbox::headHashCall {}, &block).await?;
        Ok(PostedHead {
            number: head.number,
            hash,
            timestamp_ms: head.timestampMs,
            l1_origin_number: head.l1OriginNumber,
        })
    }

    /// The sequencer's bond after the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn bond(&self) -> Result<Bond, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let rpc = &self.inner.rpc;
        let amount = rpc.view("bond", inbox, &BlindedInbox::bondCall {}, "latest").await?;
        let announced = rpc.view("withdrawal", inbox, &BlindedInbox::withdrawalCall {}, "latest").await?;
        Ok(Bond { amount, withdrawal: announced.amount, unlocks_at: announced.unlocksAt })
    }

    /// What waits for `reporter` to be claimed, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn reward(&self, reporter: Address) -> Result<U256, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::rewardsCall { reporter };
        self.inner.rpc.view("rewards", inbox, &call, "latest").await
    }

    /// The runs posted in blocks `after + 1 ..= through`, in order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] when events and transactions do not fit each other; the errors
    /// of a call.
    pub async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let logs = self.final_logs(inbox, BlindedInbox::Posted::SIGNATURE_HASH, after, through).await?;
        let mut postings = Vec::with_capacity(logs.len());
        for log in logs {
            let event =
                BlindedInbox::Posted::decode_log(&log.log.inner).map_err(|error| malformed_log(&error))?;
            let input = self.input_to_inbox(log.transaction).await?.1;
            let call = BlindedInbox::postCall::abi_decode(&input).map_err(|error| unfit(&error))?;
            postings.push(read_posting(log.block, log.transaction, &event, call)?);
        }
        Ok(postings)
    }

    /// Sealed batches from data that was posted again in blocks `after + 1 ..= through` for these consecutive
    /// headers; `None` where none fits. Parts of a run may be spread over the range.
    ///
    /// # Errors
    /// As [`L1Client::postings`].
    pub async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<Option<Vec<SealedBatch>>, L1Error> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else { return Ok(None) };
        let inbox = self.inner.config.deployment.inbox;
        let logs = self.final_logs(inbox, BlindedInbox::DataPosted::SIGNATURE_HASH, after, through).await?;
        // Grouped by poster too, so that one poster's garbage does not spoil another's parts.
        let mut found: BTreeMap<(Address, B256), Vec<DataPart>> = BTreeMap::new();
        for log in logs {
            let event = BlindedInbox::DataPosted::decode_log(&log.log.inner)
                .map_err(|error| malformed_log(&error))?;
            if event.firstNumber != first.number {
                continue;
            }
            let input = self.input_to_inbox(log.transaction).await?.1;
            let call = BlindedInbox::postDataCall::abi_decode(&input).map_err(|error| unfit(&error))?;
            // Nobody checked these bytes: what is no part of this run is passed over.
            let Ok(part) = DataPart::decode(&call.data) else { continue };
            if (part.first, part.last) == (first.number, last.number) {
                found.entry((event.poster, part.whole)).or_default().push(part);
            }
        }
        for parts in found.values() {
            let Some(data) = join_parts(parts.iter()) else { continue };
            let Ok(data) = RunData::decode(&data) else { continue };
            if let Some(batches) = data.join(headers) {
                return Ok(Some(batches));
            }
        }
        Ok(None)
    }

    /// Sender and input of a transaction to the inbox.
    async fn input_to_inbox(&self, hash: B256) -> Result<(Address, Bytes), L1Error> {
        let found: Option<Transaction> =
            self.inner.rpc.call("eth_getTransactionByHash", json!([hash])).await?;
        let transaction = found.ok_or_else(|| unfit(&format!("transaction {hash} is missing")))?;
        if transaction.to() != Some(self.inner.config.deployment.inbox) {
            return Err(unfit(&format!("transaction {hash} does not go to the inbox")));
        }
        Ok((transaction.inner.signer(), transaction.input().clone()))
    }
}

fn read_posting(
    l1_block: u64,
    transaction: B256,
    event: &BlindedInbox::Posted,
    call: BlindedInbox::postCall,
) -> Result<Posting, L1Error> {
    let headers: Vec<BatchHeader> = call.headers.iter().map(from_contract).collect();
    let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
        return Err(unfit(&"a posting without headers"));
    };
    let chained = headers.iter().zip(headers.iter().skip(1)).all(|(a, b)| b.parent_hash == a.hash());
    let hash = last.hash();
    if !chained || (first.number, last.number, hash) != (event.firstNumber, event.lastNumber, event.headHash)
    {
        return Err(unfit(&format!("transaction {transaction} is not what its event says")));
    }
    let signature = decompress_signature(&call.certificate.signature)
        .ok_or_else(|| unfit(&"a posted signature that is no point"))?;
    let certificate = Certificate {
        epoch: last.epoch,
        number: last.number,
        header_hash: hash,
        signers: call.certificate.signers,
        signature: signature.to_bytes(),
    };
    let batches = read_data(&call.data, &headers);
    Ok(Posting { l1_block, transaction, headers, certificate, batches })
}

fn read_data(data: &[u8], headers: &[BatchHeader]) -> Result<Vec<SealedBatch>, DataFault> {
    if data.is_empty() {
        return Err(DataFault::Absent);
    }
    RunData::decode(data)?.join(headers).ok_or(DataFault::Mismatch)
}

fn unfit(reason: &impl std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: "eth_getTransactionByHash".to_owned(), reason: reason.to_string() }
}

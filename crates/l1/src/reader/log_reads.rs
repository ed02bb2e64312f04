//! Reading logs: checked to be complete in form and in order; those of final blocks also to be of the final chain.

use alloy_eips::BlockNumberOrTag;
use alloy_primitives::{Address, B256};
use alloy_provider::Provider;
use alloy_rpc_types_eth::{Block, Filter, Log};

use crate::{
    error::L1Error,
    events::logs::{FinalLog, malformed_log},
    reader::client::{L1Client, origin_of},
    transport::{RPC_BATCH_TOO_LARGE, failed},
};

const LOGS: &str = "eth_getLogs";

/// Blocks in one query for logs. Halved when the endpoint finds it too much.
const LOG_RANGE_BLOCKS: u64 = 1_000;
/// JSON-RPC code of "limit exceeded" (EIP-1474).
pub(crate) const RPC_LIMIT_EXCEEDED: i64 = -32005;
/// JSON-RPC code of "invalid parameters", which some endpoints give for a range they find too long.
const RPC_INVALID_PARAMS: i64 = -32602;
/// JSON-RPC code of a server's error without a code of its own.
const RPC_SERVER_ERROR: i64 = -32000;
/// JSON-RPC code of Geth for answers to a batch that are too long together.
const RPC_RESPONSE_TOO_LARGE: i64 = -32003;

/// What a server that answers for blocks has to have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Whatever it has: nothing that stays can be built on it.
    Any,
    /// The last block that it is asked for, final as it is: it leaves none of its logs out.
    Last,
}

impl L1Client {
    /// Logs of `address` whose first topic is one of `topics`, in blocks `after + 1 ..= through`, in order, each
    /// checked to be of the final block of its number, and each range of them answered by a server that has its last block:
    /// one that is behind leaves out what it does not have, and says nothing.
    pub(crate) async fn final_logs(
        &self,
        address: Address,
        topics: &[B256],
        after: u64,
        through: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        if after >= through {
            return Ok(Vec::new());
        }
        let finalized = self.finalized().await?.number;
        if through > finalized {
            return Err(L1Error::NotFinal { number: through, finalized });
        }
        let found = self.logs_of(Has::Last, address, topics, after, through).await?;
        // Asked once for each block, whatever happened in it.
        let mut last = None;
        for log in &found {
            let before = match last {
                Some((block, hash)) if block == log.block => hash,
                _ => self.origin(log.block).await?.map_or(B256::ZERO, |origin| origin.hash),
            };
            last = Some((log.block, before));
            if before != log.block_hash {
                return Err(L1Error::FinalityBroken { number: log.block, before, now: log.block_hash });
            }
        }
        Ok(found)
    }

    /// [`final_logs`](Self::final_logs) of blocks that need not be final: nothing that stays can be built on them.
    pub(crate) async fn newest_logs(
        &self,
        address: Address,
        topics: &[B256],
        after: u64,
        through: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        self.logs_of(Has::Any, address, topics, after, through).await
    }

    async fn logs_of(
        &self,
        has: Has,
        address: Address,
        topics: &[B256],
        after: u64,
        through: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        let mut found = Vec::new();
        let mut from = after.saturating_add(1);
        let mut range = LOG_RANGE_BLOCKS;
        while from <= through {
            let to = through.min(from.saturating_add(range - 1));
            match self.logs(has, address, topics, from, to).await {
                Ok(logs) => found.extend(logs),
                // One of several servers behind the endpoint is behind the one that told the newest block.
                Err(error) if is_ahead_of_server(&error, to > from) => {
                    return Err(L1Error::Gone { what: format!("block {to}") });
                }
                Err(error) if to > from && is_too_much(&error) => {
                    range = (range / 2).max(1);
                    continue;
                }
                Err(error) => return Err(error),
            }
            from = to.saturating_add(1);
        }
        let mut previous = None;
        for log in &found {
            let position = log.position();
            if previous >= Some(position) {
                return Err(malformed_log(&"logs out of order"));
            }
            previous = Some(position);
        }
        Ok(found)
    }

    /// [`final_logs`](Self::final_logs) where `through` is final, else [`newest_logs`](Self::newest_logs).
    pub(crate) async fn logs_through(
        &self,
        address: Address,
        topics: &[B256],
        after: u64,
        through: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        match through <= self.finalized().await?.number {
            true => self.final_logs(address, topics, after, through).await,
            false => self.newest_logs(address, topics, after, through).await,
        }
    }

    async fn logs(
        &self,
        has: Has,
        address: Address,
        topics: &[B256],
        from: u64,
        to: u64,
    ) -> Result<Vec<FinalLog>, L1Error> {
        let filter = Filter::new().address(address).event_signature(topics.to_vec());
        let filter = filter.from_block(from).to_block(to);
        let logs: Vec<Log> = match has {
            Has::Any => self.inner.rpc.provider.get_logs(&filter).await.map_err(failed(LOGS))?,
            Has::Last => {
                let header = ("eth_getBlockByNumber", (BlockNumberOrTag::Number(to), false));
                let (last, logs): (Option<Block>, _) =
                    self.inner.rpc.call_both(header, (LOGS, (filter,))).await?;
                let last = last.ok_or_else(|| L1Error::Gone { what: format!("block {to}") })?;
                self.keep_final(to, origin_of(last)?)?;
                logs?
            }
        };
        logs.into_iter()
            .map(|log| {
                let fits = log.inner.address == address
                    && log.inner.topics().first().is_some_and(|topic| topics.contains(topic))
                    && !log.removed;
                match (log.block_number, log.block_hash, log.transaction_hash, log.log_index) {
                    (Some(block), Some(block_hash), Some(transaction), Some(index))
                        if fits && (from..=to).contains(&block) =>
                    {
                        Ok(FinalLog { block, block_hash, transaction, index, log })
                    }
                    _ => Err(malformed_log(&"a log that was not asked for")),
                }
            })
            .collect()
    }
}

/// Whether the server that answered does not have the last block that was asked for: Geth and Reth say so, and from others it
/// is what they can mean by the parameters of one block.
fn is_ahead_of_server(error: &L1Error, several: bool) -> bool {
    let L1Error::Rpc { code: RPC_INVALID_PARAMS, message, .. } = error else { return false };
    !several || message.contains("beyond current head")
}

/// Whether a shorter range of blocks may do.
fn is_too_much(error: &L1Error) -> bool {
    // Of the block's header.
    if matches!(error, L1Error::Rpc { method, .. } if method != LOGS) {
        return false;
    }
    matches!(
        error,
        L1Error::ResponseTooLarge { .. }
            | L1Error::Timeout { .. }
            // Of a proxy: what it would have to pass on is too long, or takes too long.
            | L1Error::HttpStatus { status: 408 | 413 | 504, .. }
            | L1Error::Rpc {
                code: RPC_LIMIT_EXCEEDED
                    | RPC_INVALID_PARAMS
                    | RPC_SERVER_ERROR
                    | RPC_RESPONSE_TOO_LARGE
                    | RPC_BATCH_TOO_LARGE,
                ..
            }
    )
}

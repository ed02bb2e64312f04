//! Bringing a client that lost its head back to ours.

use async_trait::async_trait;

use crate::{BlockId, EngineError, ExecutionClient, Recovery, StoredPayload};

/// A payload source that could not answer.
#[derive(Debug, thiserror::Error)]
#[error("the stored payload of block {number} cannot be read: {source}")]
pub struct PayloadSourceError {
    /// Number of the block.
    pub number: u64,
    /// Why its payload cannot be had.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Where payloads are kept, by block number: one per number, of the chain that is to be restored.
#[async_trait]
pub trait PayloadSource: Send + Sync {
    /// The payload of block `number`, `None` if it is not kept.
    async fn payload(&self, number: u64) -> Result<Option<StoredPayload>, PayloadSourceError>;
}

/// A replay that did not reach its goal.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The execution client failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The payloads cannot be read from storage.
    #[error(transparent)]
    Source(#[from] PayloadSourceError),
    /// A payload is missing between what the client knows and our head.
    #[error("the payload of block {number} is not kept, the client cannot be brought to block {target}")]
    Missing {
        /// The block without a payload.
        number: u64,
        /// The number of our head.
        target: u64,
    },
    /// The payloads do not form one chain ending in our head: the storage is damaged.
    #[error("the payload kept for block {number} does not continue the chain of payloads")]
    BrokenChain {
        /// Number of the block that does not follow.
        number: u64,
    },
    /// The client was initialised with another genesis.
    #[error("the client has another genesis than the chain to be replayed")]
    DifferentGenesis,
}

impl ReplayError {
    /// What whoever asked for the replay does about it.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Engine(error) => error.recovery(),
            Self::Source(_) => Recovery::Retry,
            Self::Missing { .. } | Self::BrokenChain { .. } | Self::DifferentGenesis => Recovery::GiveUp,
        }
    }
}

/// What a replay gave back to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// The last block that the client already had in common with us.
    pub common: u64,
    /// How many payloads were imported.
    pub imported: u64,
}

/// Makes `head` a block of the client's canonical chain again. Walks back from the lower of the two heads to
/// the last block that both have, then imports every payload above it, each executed and checked by the
/// client. May be repeated after any failure.
///
/// A client that is ahead of us keeps its further blocks (op-geth does not go back to a canonical ancestor);
/// the next [`ExecutionClient::execute`] on `head` replaces them, or finds its own block among them.
pub async fn replay<C, S>(client: &C, source: &S, head: BlockId) -> Result<ReplayReport, ReplayError>
where
    C: ExecutionClient + ?Sized,
    S: PayloadSource + ?Sized,
{
    let theirs = client.head().await?;
    if theirs.hash == head.hash {
        return Ok(ReplayReport { common: head.number, imported: 0 });
    }
    let common = last_common(client, source, head, theirs.number.min(head.number)).await?;
    let mut imported = 0;
    let mut parent = None;
    for number in common + 1..=head.number {
        let payload = kept(source, number, head.number).await?;
        let broken = parent.is_some_and(|hash| hash != payload.parent_hash())
            || (number == head.number && payload.id().hash != head.hash);
        if broken {
            return Err(ReplayError::BrokenChain { number });
        }
        client.import(&payload).await?;
        parent = Some(payload.id().hash);
        imported += 1;
    }
    Ok(ReplayReport { common, imported })
}

/// The highest block, at most `from`, that client and source share.
async fn last_common<C, S>(client: &C, source: &S, head: BlockId, from: u64) -> Result<u64, ReplayError>
where
    C: ExecutionClient + ?Sized,
    S: PayloadSource + ?Sized,
{
    for number in (1..=from).rev() {
        let ours = kept(source, number, head.number).await?.id().hash;
        if client.block(number).await?.is_some_and(|theirs| theirs.hash == ours) {
            return Ok(number);
        }
    }
    let genesis =
        if head.number == 0 { head.hash } else { kept(source, 1, head.number).await?.parent_hash() };
    match client.block(0).await? {
        Some(theirs) if theirs.hash == genesis => Ok(0),
        _ => Err(ReplayError::DifferentGenesis),
    }
}

async fn kept<S>(source: &S, number: u64, target: u64) -> Result<StoredPayload, ReplayError>
where
    S: PayloadSource + ?Sized,
{
    let payload = source.payload(number).await?.ok_or(ReplayError::Missing { number, target })?;
    if payload.id().number != number {
        return Err(ReplayError::BrokenChain { number });
    }
    Ok(payload)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;

//! The seam.

use alloy_primitives::{B256, Bytes};
use async_trait::async_trait;
use serde_json::Value;

use crate::{BlockId, BlockInputs, EngineError, ExecutedBlock, ReadError, StoredPayload};

/// What Blindfold asks of an execution client.
///
/// A client has one driver: calls that move the head ([`execute`](Self::execute),
/// [`import`](Self::import), [`rewind`](Self::rewind), [`set_finality`](Self::set_finality)) are not made at the same time.
/// Reads may run beside them. Every error says what to do next ([`EngineError::recovery`]).
#[async_trait]
pub trait ExecutionClient: Send + Sync {
    /// Checks that the client is of this L2 chain and skips transactions by our rule. Asked before anything is executed,
    /// and from time to time: [`EngineError::IncompatibleClient`] says what differs.
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError>;

    /// The client's head. After a crash of the client it may lie several blocks back: see [`crate::replay`].
    async fn head(&self) -> Result<BlockId, EngineError>;

    /// The client's canonical block at `number`, `None` if it has none there.
    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError>;

    /// The number of the block that the client holds for final; `None` before there is one. Waits for no public read.
    async fn finalized(&self) -> Result<Option<u64>, EngineError>;

    /// Builds the block on `parent` from `inputs` and the committed `transactions`, imports it and makes
    /// it the head.
    ///
    /// Transactions that cannot execute where they stand are left out and reported; the rest keep their
    /// order. The same arguments give the same block on every node, and a repetition gives it again.
    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError>;

    /// Executes a block built before, checks it against its hash, and makes it the head.
    /// Its parent must be known to the client, else the error asks for a replay.
    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError>;

    /// Goes back to a canonical block: makes it the head, with its state, and forgets those above it, whatever their marks.
    ///
    /// For a driver whose records are far behind the client's: neither [`execute`](Self::execute) nor
    /// [`import`](Self::import) follows a block whose state the client keeps only as what was changed since. Where it cannot
    /// be had any more, and for the genesis, nothing changes, and a person has to look.
    async fn rewind(&self, to: B256) -> Result<(), EngineError>;

    /// Marks canonical blocks as safe and as finalised; a zero hash leaves that mark as it is.
    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError>;

    /// Passes a public read (see [`crate::is_public_read`]) through to the client and returns its `result`.
    /// `params` is the JSON-RPC parameter array; the answer is bounded in size and time.
    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError>;
}

//! Bugs put in on purpose, to see that they are found: parts of a role in whose place the simulation gives it another one.
//! The product has no switch for any of them.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Reader, L1Submitter};
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, StoredPayload,
};
use blindfold_l1::{Output, Sent};
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, Release,
    ledger::{Account, Held, LedgerEntry, LiveNonce},
};
use blindfold_runtime::TimeSource;
use blindfold_store::{
    BatchRecord, BlockRecord, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord, SealedRecord,
    Stopped, Store, StoreError,
};
use serde::Serialize;
use serde_json::Value;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Plant {
    /// The sequencer answers an envelope that is not on its disk.
    ForgetsPending,
    /// The execution client of the first node makes other blocks.
    ClientsDiffer,
    /// The execution client of the first node takes transactions in another order.
    OtherOrder,
    /// The sequencer claims blocks on L1 that it did not execute.
    ClaimsWrongBlock,
    /// The sequencer's clock stands still after some seconds.
    ClockStands,
}

/// A disk that says of waiting envelopes that they are stored.
pub struct ForgetsPending(pub Arc<dyn Store>);

macro_rules! hand_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for ForgetsPending {
            fn stopped(&self) -> Stopped {
                self.0.stopped()
            }

            async fn put_envelope(&self, _envelope: PendingEnvelope) -> Result<(), StoreError> {
                Ok(())
            }

            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                self.0.$name($($argument),*).await
            })*
        }
    };
}

hand_on! {
    fn bind(deployment: &Deployment, role: &str) -> ();
    fn remove_envelopes(ids: &[B256], outcome: &str, number: u64) -> ();
    fn pending_envelopes() -> Vec<PendingEnvelope>;
    fn envelope_outcome(id: B256) -> Option<String>;
    fn prune_outcomes(below_number: u64) -> ();
    fn put_sealed(record: SealedRecord) -> ();
    fn revert_sealed(number: u64) -> ();
    fn rewind(through_number: u64, outcome: Option<&str>) -> ();
    fn put_acknowledged(number: u64, hash: B256, origin: u64) -> ();
    fn acknowledged(number: u64) -> Option<B256>;
    fn was_acknowledged(number: u64, hash: B256) -> bool;
    fn put_certificate(certificate: &Certificate) -> ();
    fn put_release(release: &Release) -> ();
    fn put_hints(hints: &BatchHints) -> ();
    fn put_block(block: BlockRecord) -> ();
    fn revert_blocks(from_number: u64) -> ();
    fn put_posted(posted: PostedRecord) -> ();
    fn posted() -> Option<PostedRecord>;
    fn batch(number: u64) -> Option<BatchRecord>;
    fn header_hash(number: u64) -> Option<B256>;
    fn batches(from: u64, limit: usize) -> Vec<BatchRecord>;
    fn block(number: u64) -> Option<BlockRecord>;
    fn block_by_second(second: u64) -> Option<BlockRecord>;
    fn block_of_batch(number: u64) -> Option<BlockRecord>;
    fn block_through(batch: u64) -> Option<(u64, B256)>;
    fn blocks(from: u64, limit: usize) -> Vec<BlockRecord>;
    fn heads() -> Heads;
    fn envelope_location(id: B256) -> Option<ItemLocation>;
    fn account(payer: Address) -> Option<Account>;
    fn accounts() -> Vec<(Address, Account)>;
    fn nonces() -> Vec<LiveNonce>;
    fn held() -> Vec<(u64, Vec<Held>)>;
    fn ledger_head() -> Option<LedgerHead>;
    fn keep_ledgers_from(number: u64) -> ();
    fn ledger_floor() -> Option<u64>;
    fn entries_changed_after(number: u64, up_to: u64) -> Option<Vec<LedgerEntry>>;
    fn meta(key: &str) -> Option<Vec<u8>>;
    fn put_meta(key: &str, value: &[u8]) -> ();
}

/// How an execution client errs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errs {
    /// In something that blocks are made of.
    Inputs,
    /// In the order of transactions.
    Order,
}

/// An execution client that errs.
pub struct OtherClient<C>(pub C, pub Errs);

#[async_trait]
impl<C: ExecutionClient> ExecutionClient for OtherClient<C> {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        self.0.ensure_compatible(chain_id).await
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        self.0.head().await
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        self.0.block(number).await
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        match self.1 {
            Errs::Inputs => {
                let inputs = BlockInputs { prev_randao: B256::ZERO, ..inputs.clone() };
                self.0.execute(parent, &inputs, transactions).await
            }
            Errs::Order => {
                let reversed: Vec<Bytes> = transactions.iter().rev().cloned().collect();
                let mut block = self.0.execute(parent, inputs, &reversed).await?;
                for skipped in &mut block.skipped {
                    skipped.index = transactions.len() - 1 - skipped.index;
                }
                block.skipped.reverse();
                Ok(block)
            }
        }
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        self.0.import(payload).await
    }

    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError> {
        self.0.set_finality(safe, finalized).await
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        self.0.read(method, params).await
    }
}

/// Claims on L1 of other blocks than those given.
pub struct WrongClaims<T>(pub T);

#[async_trait]
impl<T: L1Submitter> L1Submitter for WrongClaims<T> {
    fn account(&self) -> Address {
        self.0.account()
    }

    fn reader(&self) -> &dyn L1Reader {
        self.0.reader()
    }

    async fn propose_outputs(&self, outputs: &[Output]) -> Result<Sent, L1Error> {
        let wrong = |output: &Output| Output {
            block_hash: output.state_root,
            state_root: output.block_hash,
            ..*output
        };
        self.0.propose_outputs(&outputs.iter().map(wrong).collect::<Vec<_>>()).await
    }
}

/// A time that stands still from some moment on, in milliseconds.
pub struct StandsStill<T>(pub T, pub u64);

impl<T: TimeSource> TimeSource for StandsStill<T> {
    fn wall_ms(&self) -> u64 {
        let past_ms = self.0.monotonic_ms().saturating_sub(self.1);
        self.0.wall_ms() - past_ms
    }

    fn monotonic_ms(&self) -> u64 {
        self.0.monotonic_ms().min(self.1)
    }
}

//! Bugs put in on purpose, to see that they are found: parts of a role in whose place the simulation gives it another one.
//! The product has no switch for any of them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_bte::{
    Backend, BatchError, Ciphertext, CiphertextPoint, EncryptionKey, G1_BYTES, HintError, HintItem,
    MemberKey, Opening, Parameters, PreDecrypted, ProofError, ProofItem, Release as ReleasePoint,
    SingletonError,
};
use blindfold_chain::{L1Error, L1Reader, L1Submitter};
use blindfold_coprocessor::{CommittedItem, Execution, Machine};
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, SkipReason,
    SkippedTransaction, StoredPayload,
};
use blindfold_l1::{Output, Sent};
use blindfold_protocol::{
    BatchHints, Certificate, Deployment, Release, Signature65,
    ledger::{Account, FeeLedger, LedgerBefore, LedgerEntry},
};
use blindfold_runtime::TimeSource;
use blindfold_store::{
    Acknowledged, BatchRecord, BlockRecord, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord,
    SealedRecord, Stopped, Store, StoreError,
};
use parking_lot::Mutex;
use rand::CryptoRng;
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
    /// Certificates and releases are of one member less than they should be.
    SmallQuorum,
    /// A member signs a second header for each number.
    VotesTwice,
    /// Members do not know after a start what they voted for, nor before.
    ForgetsVotes,
    /// The sequencer shows two headers of one number.
    ShowsTwoHeaders,
    /// A member answers with its share of another batch.
    OtherShare,
    /// The sequencer does not find, after a start, which envelopes wait.
    LosesPending,
    /// The sequencer promises a number that is over already.
    PromisesTooEarly,
    /// The first node does not keep its blocks.
    ForgetsBlocks,
    /// A member's disk ends the member, when there are certificates enough on it.
    Panics,
    /// The execution client of the first node hides that it lost its newest blocks.
    HidesLostHead,
    /// The execution client of the first node leaves out the last transaction.
    LeavesOutTransaction,
    /// The first node reads other messages out of envelopes than stand in them.
    Misreads,
    /// Two members use each other's keys.
    MixedUpKeys,
    /// Everybody counts each deposit twice.
    CountsDepositsTwice,
    /// The first node does not hear of deposits.
    MissesDeposits,
    /// The sequencer names origins that are not final.
    OriginNotFinal,
    /// What the sequencer posts does not reach L1.
    NeverPosts,
    /// The sequencer takes what was posted once for posted for ever.
    KeepsPostedHead,
    /// The sequencer does not hear of what L1 forces in.
    LeavesOutForced,
    /// The first hint publisher posts wrong hints to L1.
    PostsWrongHints,
    /// The first node does not hear of headers that L1 made.
    MissesL1Headers,
    /// The first node does not hear of void runs.
    MissesVoidRuns,
    /// The coprocessor takes the items of a batch in another order.
    CoprocessorOtherOrder,
    /// The coprocessor's state machine does not find, after a start, what it executed before.
    CoprocessorForgets,
    /// The coprocessor does not hear of void runs.
    CoprocessorMissesVoidRuns,
}

/// Certificates after which a member panics.
const CERTIFICATES: usize = 3;

/// A disk that does not keep what it should.
pub struct OtherDisk {
    /// What it is made of.
    pub disk: Arc<dyn Store>,
    /// How it errs.
    pub plant: Plant,
    /// Certificates that it was given.
    pub certificates: AtomicUsize,
}

macro_rules! hand_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[async_trait]
        impl Store for OtherDisk {
            fn stopped(&self) -> Stopped {
                self.disk.stopped()
            }

            async fn put_envelope(&self, envelope: PendingEnvelope) -> Result<(), StoreError> {
                if self.plant == Plant::ForgetsPending {
                    return Ok(());
                }
                self.disk.put_envelope(envelope).await
            }

            async fn pending_envelopes(&self) -> Result<Vec<PendingEnvelope>, StoreError> {
                if self.plant == Plant::LosesPending {
                    return Ok(Vec::new());
                }
                self.disk.pending_envelopes().await
            }

            async fn put_acknowledged(&self, number: u64, hash: B256, origin: u64) -> Result<(), StoreError> {
                if self.plant == Plant::ForgetsVotes {
                    return Ok(());
                }
                self.disk.put_acknowledged(number, hash, origin).await
            }

            async fn put_certificate(&self, certificate: &Certificate) -> Result<(), StoreError> {
                let before = self.certificates.fetch_add(1, Ordering::Relaxed);
                assert!(self.plant != Plant::Panics || before != CERTIFICATES, "a bug put in on purpose");
                self.disk.put_certificate(certificate).await
            }

            async fn put_block(&self, block: BlockRecord) -> Result<(), StoreError> {
                if self.plant == Plant::ForgetsBlocks {
                    return Ok(());
                }
                self.disk.put_block(block).await
            }

            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                self.disk.$name($($argument),*).await
            })*
        }
    };
}

hand_on! {
    fn bind(deployment: &Deployment, role: &str) -> ();
    fn remove_envelopes(ids: &[B256], outcome: &str, number: u64) -> ();
    fn envelope_outcome(id: B256) -> Option<String>;
    fn prune_outcomes(below_number: u64) -> ();
    fn put_sealed(record: SealedRecord) -> ();
    fn put_signature(number: u64, signature: Signature65) -> ();
    fn revert_sealed(number: u64) -> ();
    fn rewind(through_number: u64, outcome: Option<&str>) -> ();
    fn acknowledged(number: u64) -> Option<B256>;
    fn acknowledgement(number: u64) -> Option<Acknowledged>;
    fn displace_acknowledged(made: u64, made_at: u64) -> ();
    fn was_acknowledged(number: u64, hash: B256) -> bool;
    fn put_release(release: &Release) -> ();
    fn put_hints(hints: &BatchHints) -> ();
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
    fn ledger() -> FeeLedger;
    fn ledger_before(number: u64) -> LedgerBefore;
    fn ledger_head() -> Option<LedgerHead>;
    fn keep_ledgers_from(number: u64) -> ();
    fn forget_ledgers() -> bool;
    fn ledger_floor() -> Option<u64>;
    fn entries_changed_after(number: u64, up_to: u64) -> Option<Vec<LedgerEntry>>;
    fn meta(key: &str) -> Option<Vec<u8>>;
    fn put_meta(key: &str, value: &[u8]) -> ();
}

/// An execution client that errs.
pub struct OtherClient<C> {
    /// What it is made of.
    pub client: C,
    /// How it errs.
    pub plant: Plant,
    /// The newest block that it ever had.
    pub newest: Mutex<Option<BlockId>>,
}

#[async_trait]
impl<C: ExecutionClient> ExecutionClient for OtherClient<C> {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        self.client.ensure_compatible(chain_id).await
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        let head = self.client.head().await?;
        let mut newest = self.newest.lock();
        let hidden =
            newest.filter(|newest| self.plant == Plant::HidesLostHead && newest.number > head.number);
        Ok(*newest.insert(hidden.unwrap_or(head)))
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        let hidden =
            self.newest.lock().filter(|newest| self.plant == Plant::HidesLostHead && newest.number == number);
        Ok(hidden.or(self.client.block(number).await?))
    }

    async fn finalized(&self) -> Result<Option<u64>, EngineError> {
        self.client.finalized().await
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        match self.plant {
            Plant::ClientsDiffer => {
                let inputs = BlockInputs { prev_randao: B256::ZERO, ..inputs.clone() };
                self.client.execute(parent, &inputs, transactions).await
            }
            Plant::OtherOrder => {
                let reversed: Vec<Bytes> = transactions.iter().rev().cloned().collect();
                let mut block = self.client.execute(parent, inputs, &reversed).await?;
                for skipped in &mut block.skipped {
                    skipped.index = transactions.len() - 1 - skipped.index;
                }
                block.skipped.reverse();
                Ok(block)
            }
            Plant::LeavesOutTransaction if !transactions.is_empty() => {
                let index = transactions.len() - 1;
                let mut block = self.client.execute(parent, inputs, &transactions[..index]).await?;
                block.skipped.push(SkippedTransaction { index, reason: SkipReason::Duplicate });
                Ok(block)
            }
            _ => {
                let block = self.client.execute(parent, inputs, transactions).await?;
                let ExecutedBlock { number, hash, timestamp, .. } = block;
                *self.newest.lock() = Some(BlockId { number, hash, timestamp });
                Ok(block)
            }
        }
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        self.client.import(payload).await
    }

    async fn rewind(&self, to: B256) -> Result<(), EngineError> {
        self.client.rewind(to).await
    }

    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError> {
        self.client.set_finality(safe, finalized).await
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        self.client.read(method, params).await
    }
}

/// A state machine that takes the items of a batch from the last to the first.
pub struct OtherMachine<M>(pub M);

impl<M: Machine> Machine for OtherMachine<M> {
    fn genesis(&self) -> Execution {
        self.0.genesis()
    }

    fn execute(&mut self, items: &[CommittedItem]) -> Result<Execution, StoreError> {
        let reversed: Vec<CommittedItem> = items.iter().rev().cloned().collect();
        self.0.execute(&reversed)
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

/// A backend that errs.
pub struct OtherBackend(pub Arc<dyn Backend>, pub Plant);

impl Backend for OtherBackend {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn prepare(&self, parameters: &Parameters, batch: usize) -> Result<(), BatchError> {
        self.0.prepare(parameters, batch)
    }

    fn predecrypt(
        &self,
        parameters: &Parameters,
        points: &[CiphertextPoint],
    ) -> Result<PreDecrypted, BatchError> {
        self.0.predecrypt(parameters, points)
    }

    fn finalize(
        &self,
        parameters: &Parameters,
        predecrypted: &PreDecrypted,
        release: &ReleasePoint,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Opening>, BatchError> {
        self.0.finalize(parameters, predecrypted, release, ciphertexts)
    }

    fn open_hints(&self, key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        let mut opened = self.0.open_hints(key, items);
        if self.1 == Plant::Misreads {
            // What is behind the transactions has to be zeros.
            opened.iter_mut().flatten().filter_map(|message| message.last_mut()).for_each(|last| *last ^= 1);
        }
        opened
    }

    fn verify_proofs(
        &self,
        rng: &mut dyn CryptoRng,
        items: &[ProofItem<'_>],
    ) -> Vec<Result<CiphertextPoint, ProofError>> {
        self.0.verify_proofs(rng, items)
    }

    fn release_share(
        &self,
        key: &MemberKey,
        points: &[CiphertextPoint],
    ) -> Result<[u8; G1_BYTES], BatchError> {
        self.0.release_share(key, points)
    }

    fn invalid_shares(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        points: &[CiphertextPoint],
        shares: &[(u16, [u8; G1_BYTES])],
    ) -> Result<Vec<u16>, BatchError> {
        self.0.invalid_shares(rng, parameters, points, shares)
    }

    fn verify_singletons(
        &self,
        rng: &mut dyn CryptoRng,
        parameters: &Parameters,
        items: &[(CiphertextPoint, [u8; G1_BYTES])],
    ) -> Vec<Result<(), SingletonError>> {
        self.0.verify_singletons(rng, parameters, items)
    }
}

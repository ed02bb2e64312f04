//! A disk that hangs for ever before or after one of its writes, as if the process were killed there, or that refuses.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use blindfold_protocol::{
    Address, B256, BatchHints, Certificate, Deployment, Release, Signature65,
    ledger::{Account, FeeLedger, LedgerBefore, LedgerEntry},
};
use blindfold_store::{
    Acknowledged, BatchRecord, BlockRecord, ConfidentialAccountRecord, ConfidentialBatchRecord,
    ConfidentialHead, ConfidentialStore, Heads, ItemLocation, LedgerHead, PendingEnvelope, PostedRecord,
    PublicBalanceRecord, SealedRecord, SqlStore, Stopped, Store, StoreError, StoredConfidentialTransaction,
    TreeName,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Where it hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

/// Hands everything on to a file, except for the write that is to be the last.
pub struct Disk {
    /// Gone from the moment at which it hangs: the file is free for the next process.
    inner: Mutex<Option<SqlStore>>,
    /// Writes that still pass, and where the one after them hangs.
    left: Mutex<Option<(usize, Moment)>>,
    refusals: Mutex<Vec<StoreError>>,
    /// With what the next steps of forgetting are refused, and how many were asked for.
    forgetting: Mutex<(Vec<StoreError>, usize)>,
    /// The version before which everything is forgotten when an account is read next.
    forgets: Mutex<Option<u64>>,
    pub hangs: Notify,
}

impl Disk {
    pub async fn open(path: &Path, hang: Option<(usize, Moment)>) -> Arc<Self> {
        let inner = blindfold_kit::file(path).await;
        let (inner, left, refusals) = (Mutex::new(Some(inner)), Mutex::new(hang), Mutex::default());
        let (forgetting, forgets) = (Mutex::default(), Mutex::default());
        Arc::new(Self { inner, left, refusals, forgetting, forgets, hangs: Notify::new() })
    }

    /// The next writes of the coprocessor's state are refused with these errors, last first.
    pub fn refuse(&self, errors: Vec<StoreError>) {
        *self.refusals.lock() = errors;
    }

    /// The next step of forgetting is refused with this error.
    pub fn refuse_to_forget(&self, error: StoreError) {
        self.forgetting.lock().0.push(error);
    }

    /// Steps of forgetting that were asked for.
    pub fn steps(&self) -> usize {
        self.forgetting.lock().1
    }

    /// What is older than this version is forgotten after whoever reads an account next was told that it is kept.
    pub fn forget_at_next_account(&self, version: u64) {
        *self.forgets.lock() = Some(version);
    }

    async fn forget(&self) -> Result<(), StoreError> {
        let version = self.forgets.lock().take();
        if let Some(version) = version {
            while self.inner().await.prune_confidential(version).await? {}
        }
        Ok(())
    }

    async fn pass(&self, moment: Moment) {
        let hang = {
            let mut left = self.left.lock();
            match &mut *left {
                None => false,
                Some((0, at)) => *at == moment || moment == Moment::After,
                Some((count, _)) => {
                    *count -= usize::from(moment == Moment::After);
                    false
                }
            }
        };
        if hang {
            self.inner.lock().take();
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// The file; a process that was killed asks for nothing any more.
    async fn inner(&self) -> SqlStore {
        let inner = self.inner.lock().clone();
        match inner {
            Some(inner) => inner,
            None => std::future::pending().await,
        }
    }

    fn refused(&self) -> Result<(), StoreError> {
        self.refusals.lock().pop().map_or(Ok(()), Err)
    }
}

macro_rules! disk {
    ($trait:ident { $($own:tt)* } writes { $(fn $write:ident($($write_argument:ident: $write_type:ty),*);)* }
     reads { $(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)* }) => {
        #[async_trait]
        impl $trait for Disk {
            $($own)*
            $(async fn $write(&self, $($write_argument: $write_type),*) -> Result<(), StoreError> {
                self.pass(Moment::Before).await;
                if stringify!($write) == "put_confidential_batch" {
                    self.refused()?;
                }
                self.inner().await.$write($($write_argument),*).await?;
                self.pass(Moment::After).await;
                Ok(())
            })*
            $(async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
                if stringify!($name) == "confidential_account" {
                    self.forget().await?;
                }
                self.inner().await.$name($($argument),*).await
            })*
        }
    };
}

disk! { Store {
        fn stopped(&self) -> Stopped {
            // It hangs, or refuses what may be tried again.
            Box::pin(std::future::pending())
        }
    }
    writes {
        fn bind(deployment: &Deployment, role: &str);
        fn put_envelope(envelope: PendingEnvelope);
        fn remove_envelopes(ids: &[B256], outcome: &str, number: u64);
        fn prune_outcomes(below_number: u64);
        fn put_sealed(record: SealedRecord);
        fn put_signature(number: u64, signature: Signature65);
        fn revert_sealed(number: u64);
        fn rewind(through_number: u64, outcome: Option<&str>);
        fn put_acknowledged(number: u64, hash: B256, origin: u64);
        fn displace_acknowledged(made: u64, made_at: u64);
        fn put_certificate(certificate: &Certificate);
        fn put_release(release: &Release);
        fn put_hints(hints: &BatchHints);
        fn put_block(block: BlockRecord);
        fn revert_blocks(from_number: u64);
        fn put_posted(posted: PostedRecord);
        fn put_meta(key: &str, value: &[u8]);
        fn keep_ledgers_from(number: u64);
    }
    reads {
        fn pending_envelopes() -> Vec<PendingEnvelope>;
        fn envelope_outcome(id: B256) -> Option<String>;
        fn acknowledged(number: u64) -> Option<B256>;
        fn acknowledgement(number: u64) -> Option<Acknowledged>;
        fn was_acknowledged(number: u64, hash: B256) -> bool;
        fn posted() -> Option<PostedRecord>;
        fn batch(number: u64) -> Option<BatchRecord>;
        fn header_hash(number: u64) -> Option<B256>;
        fn batches(from: u64, limit: usize) -> Vec<BatchRecord>;
        fn block(number: u64) -> Option<BlockRecord>;
        fn block_by_second(second: u64) -> Option<BlockRecord>;
        fn block_of_batch(number: u64) -> Option<BlockRecord>;
        fn blocks(from: u64, limit: usize) -> Vec<BlockRecord>;
        fn heads() -> Heads;
        fn envelope_location(id: B256) -> Option<ItemLocation>;
        fn account(payer: Address) -> Option<Account>;
        fn ledger() -> FeeLedger;
        fn ledger_before(number: u64) -> LedgerBefore;
        fn block_through(batch: u64) -> Option<(u64, B256)>;
        fn ledger_floor() -> Option<u64>;
        fn entries_changed_after(number: u64, up_to: u64) -> Option<Vec<LedgerEntry>>;
        fn ledger_head() -> Option<LedgerHead>;
        fn meta(key: &str) -> Option<Vec<u8>>;
    }
}

disk! { ConfidentialStore {
        async fn prune_confidential(&self, version: u64) -> Result<bool, StoreError> {
            let refusal = {
                let (refusals, steps) = &mut *self.forgetting.lock();
                *steps += 1;
                refusals.pop()
            };
            match refusal {
                Some(error) => Err(error),
                None => self.inner().await.prune_confidential(version).await,
            }
        }
    }
    writes {
        fn put_confidential_batch(batch: Arc<ConfidentialBatchRecord>);
    }
    reads {
        fn confidential_head() -> Option<ConfidentialHead>;
        fn confidential_head_at(version: u64) -> Option<ConfidentialHead>;
        fn confidential_batch_end(version: u64) -> Option<u64>;
        fn confidential_index(owner: Address) -> Option<u32>;
        fn confidential_account(owner: Address, version: u64) -> Option<ConfidentialAccountRecord>;
        fn confidential_accounts(from: u32, limit: usize) -> Vec<ConfidentialAccountRecord>;
        fn confidential_nodes(tree: TreeName, places: &[(u8, u32)], version: u64) -> Vec<Option<B256>>;
        fn public_balances() -> Vec<PublicBalanceRecord>;
        fn public_balance(owner: Address) -> Option<PublicBalanceRecord>;
        fn confidential_transaction(id: B256) -> Option<StoredConfidentialTransaction>;
        fn confidential_transactions_of(party: Address, from: u64, limit: usize)
            -> Vec<StoredConfidentialTransaction>;
        fn confidential_transactions_from(from: u64, limit: usize) -> Vec<StoredConfidentialTransaction>;
        fn confidential_transactions_in(number: u64) -> u64;
        fn confidential_state_root(version: u64) -> Option<B256>;
    }
}

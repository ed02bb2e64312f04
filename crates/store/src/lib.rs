//! The storage seam: what a role must not lose.
//!
//! [`Store`] is the seam, [`SqlStore`] its implementation: in an embedded SQLite file, or in PostgreSQL. Every write is durable when its future
//! returns: what was acknowledged, signed or announced after that survives a kill at any instant. Writes queued at the
//! same time share one transaction and one fsync, and still fail one by one.
//!
//! [`ConfidentialStore`] is the coprocessor's part of the seam, in the same file.
//!
//! What a store refuses, whoever asks: a second header or a second signature for a number, a ledger change that does
//! not start from the stored balance, a gap in the chain of batches, and the files of another deployment.

mod confidential;
mod error;
mod lease;
mod metrics;
mod postgres;
mod prune;
mod records;
mod sql;
mod sqlite;
mod store;
mod transfer;
mod url;
mod verify;

pub use confidential::{
    ConfidentialAccountRecord, ConfidentialBatchRecord, ConfidentialHead, ConfidentialStore,
    ConfidentialTransactionRecord, PublicBalanceRecord, StoredConfidentialTransaction, TreeName,
    TreeNodeRecord,
};
pub use error::{StoreError, What};
pub use lease::{Attempt, Candidate, Leader, Standby};
pub use metrics::StoreMetrics;
pub use postgres::{FIRST_POSTGRES_SCHEMA, PostgresUrl, RESOLVE_TIMEOUT, SERVER_TIMEOUT};
pub use prune::{Horizon, KeptFor, PRUNE_STEP_BATCHES, PRUNE_STEP_BYTES, Pruned};
pub use records::{
    Acknowledged, BatchRecord, BlockRecord, Heads, ItemLocation, ItemRecord, LedgerHead, PendingEnvelope,
    PostedRecord, SealedRecord,
};
pub use sql::{
    FORGET_STEP_ROWS, MAX_GROUP_WRITES, MAX_META_VALUE_BYTES, MAX_PAGE_RECORDS, PRUNE_STEP_ROWS, READERS,
    SqlStore, WRITE_QUEUE_LIMIT,
};
pub use sqlite::{Condition, Disk, DiskFault, FIRST_SCHEMA, MAX_LOG_BYTES, SCHEMA_VERSION};
pub use store::{EnvelopePast, Stopped, Store};
pub use transfer::{Copied, Purpose, TABLES, Table, transfer};
pub use url::StoreUrl;
pub use verify::{Verified, verify};

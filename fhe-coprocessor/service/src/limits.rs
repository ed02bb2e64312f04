//! The coprocessor's limits, with their unit last in the name.

/// How long without news before the node is asked for batches, in milliseconds, unless set otherwise.
pub const DEFAULT_POLL_INTERVAL_MS: u64 = 2_000;
/// The shortest such interval that can be set, in milliseconds.
pub const MIN_POLL_INTERVAL_MS: u64 = 50;
/// The longest such interval that can be set, in milliseconds.
pub const MAX_POLL_INTERVAL_MS: u64 = 3_600_000;
/// Pause before something that could not be taken is fetched again, in milliseconds.
pub const SYNC_RETRY_MS: u64 = 250;
/// How many batches one run of catching up takes before the feed is looked at again.
pub const MAX_SYNC_BATCHES: u64 = 512;
/// How often an idle executor looks what L1 declared void, in milliseconds.
pub const VOID_CHECK_INTERVAL_MS: u64 = 2_000;
/// First pause after a failure that may pass, in milliseconds; it doubles.
pub const MIN_RETRY_PAUSE_MS: u64 = 100;
/// Longest pause between two attempts, in milliseconds.
pub const MAX_RETRY_PAUSE_MS: u64 = 5_000;
/// Execution that a fault stopped ends the role after so long, in milliseconds.
pub const HALTED_EXIT_MS: u64 = 600_000;
/// Versions whose accounts and proofs can be read, unless set otherwise.
pub const DEFAULT_KEPT_VERSIONS: u64 = 100_000;
/// How often old versions are forgotten, in versions.
pub const PRUNE_INTERVAL_VERSIONS: u64 = 1_024;
/// Steps of forgetting old versions that a batch is followed by at most; each is a transaction of its own.
pub const PRUNE_STEPS_PER_BATCH: usize = 4;
/// After a step that failed, old versions are forgotten again with the batch that comes so many later.
pub const PRUNE_RETRY_BATCHES: u64 = 64;
/// Most transactions of one `confidential_getTransfers` answer.
pub const MAX_TRANSFERS_PER_CALL: usize = 64;
/// How often readiness is brought up to date, in milliseconds.
pub const READINESS_INTERVAL_MS: u64 = 500;
/// Accounts kept in memory; about 50 KB each.
pub const MAX_CACHED_ACCOUNTS: usize = 1_024;
/// Public accounts kept in memory; about 100 bytes each.
pub const MAX_CACHED_PUBLIC_ACCOUNTS: usize = 262_144;
/// Nodes of both trees kept in memory; about 100 bytes each.
pub const MAX_CACHED_NODES: usize = 524_288;
/// Most totals of invoices that are computed at once. More are refused as `invoices_busy`.
pub const MAX_INVOICES_AT_ONCE: usize = 2;

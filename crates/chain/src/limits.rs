//! Limits of following and executing the chain.

use blindfold_bte::G1_BYTES;
use blindfold_protocol::limits::MAX_BATCH_ITEMS;

/// Headers that may wait for a certificate.
pub const MAX_UNCERTIFIED_HEADERS: u64 = blindfold_protocol::limits::MAX_UNCERTIFIED_HEADERS as u64;
/// Headers that may wait for one in all, those of earlier sequencers among them.
pub const MAX_UNCERTIFIED_RUN: u64 = blindfold_protocol::limits::MAX_UNCERTIFIED_RUN as u64;
/// Opened batches kept in memory between their verification and their execution; beyond it they are opened again.
pub const MAX_OPENED_BATCHES: usize = 64;
/// Message bytes kept in memory between verification and execution.
pub const MAX_OPENED_BYTES: usize = 64 * 1024 * 1024;
/// How often an idle executor looks whether the client still has our head, in milliseconds.
pub const CLIENT_CHECK_INTERVAL_MS: u64 = 2_000;
/// First pause after a failure of the execution client or of L1, in milliseconds; it doubles.
pub const MIN_RETRY_PAUSE_MS: u64 = 100;
/// Longest pause between two attempts, in milliseconds.
pub const MAX_RETRY_PAUSE_MS: u64 = 5_000;
/// First pause after a fault that stopped execution, in milliseconds; it doubles.
pub const HALTED_PAUSE_MS: u64 = 1_000;
/// Longest such pause, in milliseconds.
pub const HALTED_MAX_PAUSE_MS: u64 = 60_000;
/// Execution that comes no further for so long ends its role, in milliseconds.
pub const HALTED_EXIT_MS: u64 = 600_000;
/// L1 makes no more than a block in so long, as far as its own blocks do not show another pace, in milliseconds.
pub const LEAST_L1_BLOCK_MS: u64 = 1_000;
/// Replays of stored payloads in a row that do not help before execution stops.
pub const MAX_REPLAYS_IN_A_ROW: u32 = 5;
/// L1 blocks whose deposits are read in one step; they are read on while a block has room for more.
pub const DEPOSIT_READ_STEP_BLOCKS: u64 = 128;
/// Blocks behind L1's newest final one up to which L1 is read ahead of the headers that will name it.
pub const READ_AHEAD_BLOCKS: u64 = 64;
/// How often L1 is read ahead, in milliseconds.
pub const READ_AHEAD_INTERVAL_MS: u64 = 1_000;
/// How long the next block waits while L1 is read ahead, in milliseconds.
pub const READ_AHEAD_PATIENCE_MS: u64 = 250;
/// How long headers wait for L1's newest word on epochs that are known, in milliseconds.
pub const EPOCHS_PATIENCE_MS: u64 = 500;
/// How long known epochs are taken as they are after L1 did not answer in time, in milliseconds.
pub const EPOCHS_PAUSE_MS: u64 = 10_000;
/// How long a header that is stored waits for a signer that does not answer, in milliseconds. Then its process gives up, and
/// another one may try.
pub const SIGNER_PATIENCE_MS: u64 = 10_000;
/// The pause between two attempts to have it signed, in milliseconds.
pub const SIGNER_PAUSE_MS: u64 = 100;
/// How long votes and certificates wait for L1's newest word on the headers that it made, in milliseconds.
pub const L1_HEADERS_PATIENCE_MS: u64 = 500;
/// How long L1's word on the headers that it made is taken as it is, in milliseconds. Roles follow L1 more often.
pub const L1_HEADERS_AGE_MS: u64 = 3_000;
/// Headers that L1 made in blocks that are not final which are remembered at most.
pub const MAX_PENDING_L1_HEADERS: usize = 1_024;
/// How far above a header that L1 made certificates of the branch that it ended are expected, in numbers: what was certified
/// and not posted.
pub const DISPLACED_BRANCH_HEADERS: u64 = 4_096;
/// The part of `postingDeadline` that has to be left for posting when a header is voted for: one in so many.
pub const POSTING_MARGIN: u64 = 8;
/// The most of an announced end's notice that is kept for posting alone: one part in so many. The rest is for sealing.
pub const CLOSING_NOTICE_PART: u64 = 4;
/// First pause after a look for posted data that failed, in milliseconds; it doubles.
pub const DATA_RETRY_MS: u64 = 1_000;
/// Longest such pause, in milliseconds: each look may read much.
pub const DATA_MAX_RETRY_MS: u64 = 300_000;
/// L1 blocks of which postings are read at a time when a chain is rebuilt: what they hold is in memory at once.
pub const REBUILD_STEP_BLOCKS: u64 = 64;
/// How often L1 is asked what became of posted runs, in milliseconds.
pub const SETTLEMENT_INTERVAL_MS: u64 = 1_000;
/// Longest pause after trouble in asking, in milliseconds; it doubles.
pub const SETTLEMENT_MAX_PAUSE_MS: u64 = 60_000;
/// L1 blocks whose events about runs are read at a time.
pub const SETTLEMENT_STEP_BLOCKS: u64 = 1_000;
/// L1 blocks without news after which it is stored that they were read.
pub const SETTLEMENT_SAVE_BLOCKS: u64 = 1_000;
/// Headers whose fee ledgers are kept before the newest one that `FeeVault` pays out, or, where nobody is shown any, before
/// the last posted one.
pub const KEPT_POSTED_HEADERS: u64 = 256;
/// Steps of forgetting ledgers in each round of reading L1; each is a transaction of its own.
pub const FORGET_STEPS: usize = 16;
/// Announced blocks and topic events that a slow subscriber may lag behind.
pub const TOPIC_BUFFER_EVENTS: usize = 1_024;
/// Parsed block records kept for receipts.
pub const MAX_CACHED_BLOCKS: usize = 64;
/// How often as long as one answer a whole run of a member may take: mostly up to sixteen batches that are certified together.
/// It is also how long a round of asking members may take.
pub const MAX_RUN_TIMEOUTS: u32 = 4;
/// How long after one member the next is asked for the same run, at first and where an answer may take longer than four
/// times that, in milliseconds.
pub const MAX_ASK_STEP_MS: u64 = 1_000;
/// Members that are asked for the same run at a time.
pub const MAX_ASKED_AT_ONCE: usize = 4;
/// Item bytes after which a round ends, so that what is fetched and not yet applied stays bounded.
pub const MAX_ROUND_BYTES: usize = 16 * 1024 * 1024;
/// Longest pause before a member is asked again for a share that it could not give yet, in milliseconds.
pub const MAX_SHARE_PAUSE_MS: u64 = 5_000;
/// The largest answer of a member that is asked for a share, in bytes: at most one point for each envelope, in hexadecimal,
/// and what stands around them. Many are asked for at a time.
pub const MAX_SHARE_ANSWER_BYTES: u32 = (MAX_BATCH_ITEMS * G1_BYTES * 2) as u32 + 4_096;
/// Proofs of fee accounts that wait for one that goes about as far back; further ones are refused.
pub const MAX_WAITING_PROOFS: usize = 16;
/// Reads of the store that callers from outside have under way; the store has four readers.
pub const CALLERS_READS: usize = 2;

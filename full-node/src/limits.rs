//! A full node's limits, with their unit last in the name.

/// How long hints may take after the certificate, in milliseconds, unless set otherwise.
pub const DEFAULT_HINT_DEADLINE_MS: u64 = 5_000;
/// The longest deadline or interval that can be set, in milliseconds.
pub const MAX_HINT_DEADLINE_MS: u64 = 3_600_000;
/// How long a member may take for one answer, in milliseconds, unless set otherwise.
pub const DEFAULT_MEMBER_TIMEOUT_MS: u64 = 5_000;
/// Batches that one round of asking members brings at most.
pub const MAX_MEMBER_ROUND_BATCHES: u64 = 64;
/// Longest pause before a member is asked again that claimed to hold what it did not give, in milliseconds.
pub const MAX_MEMBER_PAUSE_MS: u64 = 300_000;
/// The longest time for a member's answer that can be set, in milliseconds.
pub const MAX_MEMBER_TIMEOUT_MS: u64 = 60_000;
/// How long without news before members are asked, in milliseconds, unless set otherwise.
pub const DEFAULT_MEMBER_POLL_INTERVAL_MS: u64 = 5_000;
/// The shortest such interval that can be set, in milliseconds.
pub const MIN_MEMBER_POLL_INTERVAL_MS: u64 = 50;
/// How long the node may be kept from going on by a fault of its own or of its L1, or by certificates that contradict
/// each other, before it ends, in milliseconds.
pub const STUCK_EXIT_MS: u64 = 300_000;
/// Pause before something that could not be taken is fetched again, in milliseconds.
pub const SYNC_RETRY_MS: u64 = 250;
/// Hints, releases and announced blocks kept for batches and blocks that are not here yet.
pub const MAX_PARKED_ENTRIES: usize = 64;
/// Announced blocks kept until the node has executed as far.
pub const MAX_ANNOUNCED_BLOCKS: usize = 1_024;
/// Batches without hints that are watched at a time; later ones follow.
pub const MAX_WATCHED_BATCHES: usize = 64;
/// How long a batch waits here for the sequencer to give its hints, in milliseconds. One that takes longer goes on giving
/// them beside what is opened here.
pub const HINTS_PATIENCE_MS: u64 = 2_000;
/// How long it may take in all, in milliseconds.
pub const MAX_HINTS_PATIENCE_MS: u64 = 25_000;
/// First pause before it is asked again when it took longer still, in milliseconds; it doubles.
pub const MIN_HINTS_PAUSE_MS: u64 = 10_000;
/// Longest such pause, in milliseconds.
pub const MAX_HINTS_PAUSE_MS: u64 = 300_000;
/// First pause before a failed local decryption is tried again, in milliseconds; it doubles.
pub const MIN_DECRYPTION_PAUSE_MS: u64 = 500;
/// Longest pause between two tries, in milliseconds.
pub const MAX_DECRYPTION_PAUSE_MS: u64 = 30_000;
/// How long the first t members may take to give their shares before the others are asked, too, in milliseconds.
pub const SHARE_HEDGE_MS: u64 = 300;
/// First pause before a member that could not give a singleton share yet is asked again, in milliseconds; it doubles.
pub const SHARE_RETRY_MS: u64 = 200;
/// Malformed items of one batch whose singleton shares are asked for at the same time.
pub const MAX_PARALLEL_SINGLETONS: usize = 16;
/// Fewest batches that a node may be set to keep.
pub const MIN_KEPT_BATCHES: u64 = 1_024;
/// How often a node that prunes looks for what it may prune, in milliseconds.
pub const PRUNE_INTERVAL_MS: u64 = 30_000;
/// Pause between two steps of pruning, so that what else is written is not held up, in milliseconds.
pub const PRUNE_PAUSE_MS: u64 = 50;
/// L1 blocks read in one step by a node that follows from L1 alone: what they hold is in memory at once.
pub const L1_STEP_BLOCKS: u64 = 64;
/// How often readiness is brought up to date, in milliseconds.
pub const READINESS_INTERVAL_MS: u64 = 500;

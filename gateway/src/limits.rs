//! Limits that are no settings, with their unit last in the name.

/// Batches that are asked of the source at the same time while the relay catches up.
pub const PARALLEL_FETCHES: usize = 4;
/// Hints that wait to be verified; more are asked for again at the next look.
pub const MAX_WAITING_HINTS: usize = 64;
/// How far above the newest batch a header of the feed may be. What lies further is fetched number by number.
pub const MAX_AHEAD_BATCHES: u64 = blindfold_protocol::limits::MAX_UNCERTIFIED_RUN as u64;
/// How old a status of the source may be that is told while the source does not answer, in milliseconds.
pub const MAX_STATUS_AGE_MS: u64 = 10_000;
/// Envelopes that wait to be forwarded, at most.
pub const MAX_WAITING_ENVELOPES: usize = 8_192;
/// Calls with envelopes that are under way at the same time.
pub const PARALLEL_FORWARDS: usize = 8;
/// First pause after a call to the sequencers that failed, in milliseconds; it doubles.
pub const FORWARD_RETRY_MS: u64 = 50;
/// Longest such pause, in milliseconds.
pub const MAX_FORWARD_RETRY_MS: u64 = 500;
/// Parameters that are longer are asked with by themselves: nobody else's call is answered with theirs.
pub const MAX_QUESTION_BYTES: usize = 4 << 10;
/// Answers that are longer are not kept.
pub const MAX_KEPT_BYTES: usize = 64 << 10;
/// How long Redis is left alone after it did not answer, in milliseconds.
pub const REDIS_PAUSE_MS: u64 = 1_000;

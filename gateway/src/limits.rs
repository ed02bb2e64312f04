//! Limits that are no settings, with their unit last in the name.

use std::num::NonZeroUsize;

/// Batches that are asked of the source at the same time while the relay catches up: as many of the largest as a server
/// lets one account have under way.
pub const PARALLEL_FETCHES: usize = 2;
/// Questions of users that are under way at the source at the same time: fewer than it lets one caller have, for what is
/// asked beside them.
pub const PARALLEL_QUESTIONS: usize = 56;
/// How often those are looked at who wait for the pace of questions alone, in milliseconds.
pub const PACE_MS: u64 = 10;
/// Hints that wait to be verified; more are asked for again.
pub const MAX_WAITING_HINTS: usize = 64;
/// Numbers whose hints are asked for in one round.
pub const MAX_HINTS_ASKED: usize = 8;
/// How long hints are waited for before they are asked for, in milliseconds; it doubles.
pub const HINTS_PAUSE_MS: u64 = 4_000;
/// Longest such pause, in milliseconds.
pub const MAX_HINTS_PAUSE_MS: u64 = 300_000;
/// How far a branch may go back that gives way, and how far a source may be behind.
pub const MAX_BRANCH_BATCHES: u64 = blindfold_protocol::limits::MAX_UNCERTIFIED_RUN as u64;
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
/// Batches that are verified at the same time because somebody asked for them; the feed's hints are verified beside them.
pub const PARALLEL_VERIFICATIONS: usize = 2;
/// Ids of envelopes that a sequencer took, remembered so that one that is sent again takes nothing from its payer.
pub const MAX_TAKEN_IDS: NonZeroUsize = NonZeroUsize::new(65_536).expect("not zero");
/// How far above the newest batch the sequencer may be when an envelope's expiry is judged here.
pub const MAX_HEAD_LAG_BATCHES: u64 = 256;
/// How long what waits for a sequencer may wait while the gateway stops, in milliseconds: less than its server does.
pub const STOP_WAIT_MS: u64 = 3_000;
/// Fewest batches that are kept: those without a certificate, and those whose hints are to come.
pub const MIN_WINDOW_BATCHES: u64 = 2 * MAX_BRANCH_BATCHES;
/// Fewest bytes that are kept: some of the largest batches.
pub const MIN_WINDOW_BYTES: u64 = 64 << 20;
/// Longest that an envelope may wait for a sequencer, in milliseconds: less than its caller's server lets a call take.
pub const MAX_LEADER_WAIT_MS: u64 = 50_000;

//! What tests share. A development dependency of the crates from `crates/chain` upwards.
//!
//! - [`committee()`] is four members of whom three certify, dealt from a fixed seed; [`Committee::deal`] deals others. Its
//!   [`epoch()`] and [`parameter_set`] go with [`chain_config`].
//! - [`envelope`] is signed, encrypted and accepted, [`malformed`] is accepted and opens to nothing.
//! - [`plain_header`] is the header of an empty batch, for tests that are about few fields of one.
//! - [`Sealer`] seals batches as a sequencer does; [`certify`], [`open_batch`] and [`singleton`] are what members and hint
//!   publishers make of one by hand.
//! - [`Machine`] follows and executes as a node does.
//! - [`SequencerDouble`] stands in for a sequencer over real sockets, [`Standby`] for one that stands by;
//!   [`member_that_answers`] for a member, of which a test writes the answers that it is about.
//! - [`ScriptedL1`], [`ScriptedExecution`], [`FaultyStore`], [`Watched`] and [`ManualClock`] stand in for L1, the execution client, the disk, the backend and the clock; tests steer them by their public fields.
//!
//! Everything is fixed: keys, seeds and the time [`START_MS`]. What the tests of one crate need alone stays with them.

mod backend;
mod clock;
mod committee;
mod envelopes;
mod execution;
mod flood;
mod header;
mod l1;
mod member;
mod node;
mod rpc;
mod sequencer;
mod store;

use std::{future::Future, time::Duration};

pub use backend::{Closed, Watched, backend};
pub use clock::ManualClock;
pub use committee::{
    Committee, acknowledge, certificate_of, certified, certify, committee, epoch, open_batch, parameter_set,
    points_of, resigned, singleton,
};
pub use envelopes::{
    chain_config, envelope, envelope_of, envelope_with, fields, malformed, payer, sequencer_key, transaction,
    transaction_on,
};
pub use execution::ScriptedExecution;
pub use flood::{FLOOD_BYTES, flood};
pub use header::plain_header;
pub use l1::{PostedRuns, ScriptedL1, l1, l1_block, posting};
pub use member::{MemberAnswers, member_that_answers};
pub use node::{Machine, Sealer, check, signer_of, tracker_on};
pub use rpc::{client, refused};
pub use sequencer::{Double, SequencerDouble, SequencerState, Standby};
pub use store::{FaultyStore, disk, file, memory};

/// The largest batch that one release of [`committee()`] opens.
pub const MAX_BATCH: u32 = 8;
/// Members of [`committee()`].
pub const MEMBERS: u16 = 4;
/// How many of them certify, and how many shares open a batch.
pub const THRESHOLD: u16 = 3;
/// The epoch of [`epoch()`].
pub const EPOCH: u64 = 1;
/// Its last number.
pub const LAST_NUMBER: u64 = 1_000_000;
/// The rollup's chain id.
pub const CHAIN_ID: u64 = 901;
/// Wei per byte, at the start and at least.
pub const BASE_FEE: u128 = 1_000;
/// A deposit that outlasts every test.
pub const RICH: u128 = 1_000_000_000_000_000;
/// When tests begin, in milliseconds since the Unix epoch.
pub const START_MS: u64 = 1_800_000_000_000;

/// Long enough, in milliseconds, that nothing in tests happens because of it.
pub const NEVER_MS: u64 = 3_000_000;
/// Nothing in tests takes this long; it only keeps a broken one from hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits, and panics with `what` if that takes longer than any test.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
}

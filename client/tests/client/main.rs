//! The proxy and the wallets over real HTTP, against scripted servers.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
mod confidential;
mod coprocessor;
mod envelopes;
mod fee_proof;
mod overload;
mod privacy;
mod recovery;
mod refusals;
#[path = "../../../crates/l1/tests/anvil/stage.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "helpers of tests; those of the L1 client use the rest")]
mod stage;
mod sync;
mod wallet;

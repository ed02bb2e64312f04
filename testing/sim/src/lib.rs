//! Every role in one process, on one seed, with faults.
//!
//! The roles are the product's own, whole: [`world`] starts them as the binary does, and puts what lies outside them in
//! place of sockets, disks, L1, execution clients, clocks and randomness, each behind the seam that the role already has.
//! Time is virtual: nothing waits. What a seed draws stands in its [`plan`].
//!
//! | module | stands for |
//! |---|---|
//! | [`net`] | sockets: calls and feeds are late, lost, doubled, cut off |
//! | [`l1`] | L1 and its contracts: a model, which says itself what it leaves out |
//! | [`execution`] | execution clients, which lose blocks |
//! | [`world`] | processes and disks (the real SQL on SQLite): killed at a write, before or after it is durable; slow, full, older than they were |
//! | [`users`] | wallets |
//! | [`operator`] | whoever takes roles back to what L1 holds, where they ask for it |
//! | [`faults`] | what goes wrong |
//! | [`byzantine`] | what dishonest roles say |
//! | [`checks`] | what must hold: looked at as messages pass |
//! | [`confidential`] | what the coprocessor executes, and what must hold of it |
//! | [`coverage`] | what was under way when something went wrong |
//! | [`trace`] | what happened, in order |
//! | [`plants`] | bugs put in on purpose, to see that they are found |
//!
//! Cryptography is real, on batches of at most eight.
//!
//! The model of L1 is compared with the contracts on anvil, call by call (`tests/l1_model.rs`).
//!
//! Not here yet: envelopes in the forced queue, hints and data in blobs, accusations, epochs that end, confidential
//! transactions as such (the coprocessor hashes items one after the other); the limits of servers on connections, which belong
//! to sockets.

pub mod byzantine;
pub mod checks;
pub mod confidential;
pub mod coverage;
pub mod execution;
pub mod faults;
pub mod l1;
pub mod net;
pub mod operator;
pub mod plan;
pub mod plants;
mod role;
pub mod run;
pub mod trace;
pub mod users;
pub mod world;

pub use role::{Life, Lives, Role};
pub use trace::Trace;

/// The time at which every run begins, in milliseconds.
pub const START_MS: u64 = 1_800_000_000_000;

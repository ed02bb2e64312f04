//! Reading and writing the L1 contracts: `CommitteeRegistry`, `BlindedInbox`, `FeeVault`.
//!
//! - [`L1Client`] reads. Whatever validity depends on (origins, deposits, epochs, postings) is read from **final**
//!   blocks only, so an answer never changes and is kept.
//! - [`L1Writer`] sends transactions: postings, deposits, evidence, epochs.
//! - [`deploy`] brings up a new deployment from the creation code in `contracts/abi`.
//! - [`RunData`] is how envelopes travel in calldata; [`Posting`] is what a reader gets back.
//! - [`ManagedAnvil`] runs a development L1 as a child process, for the devnet and for tests.
//!
//! The endpoint is trusted for what L1 says: answers are bounded, typed and checked against each other, but not
//! proved. Run your own.

mod anvil;
mod client;
mod committee;
pub mod contracts;
mod deploy;
mod error;
mod postings;
mod run_data;
mod sender;
#[cfg(test)]
mod test_server;
mod transport;
mod writer;

pub use anvil::{AnvilConfig, AnvilError, ManagedAnvil, dev_key};
pub use blindfold_engine::L1Origin;
pub use client::{L1Client, L1Config};
pub use committee::{EpochRecord, NewEpoch, NewMember};
pub use deploy::{Addresses, DeployConfig, deploy};
pub use error::{L1Error, Recovery, RunFault};
pub use postings::{Bond, DataFault, PostedHead, Posting};
pub use run_data::{BatchData, CodedBatch, DataPart, RunData, split_run_data};
pub use sender::Sent;
pub use writer::{L1Writer, MAX_TRANSACTION_BYTES};

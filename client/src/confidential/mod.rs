//! Confidential balances, the owner's side: secrets, proofs, and what to send.
//!
//! - [`ConfidentialDeployment`]: `confidential.json`, the constants that every party shares.
//! - [`VerifiedState`]: what this machine's coprocessor executed. Nothing else is decrypted.
//! - [`ConfidentialWallet`]: makes transactions, reads balances and histories.
//! - [`Auditor`]: reads the amounts of transfers with the auditor's key.
//! - [`invoice`]: totals of hidden prices and hidden quantities.
//! - [`provers`]: the circuits' keys, and proofs. [`ceremony`]: how keys are made that nobody can forge with.
//!
//! The account's secret follows from the wallet's key and the deployment alone ([`account_secret`]): who has the key
//! has the account, and nothing else needs a backup.

mod account;
mod auditor;
pub mod ceremony;
mod deployment;
pub mod invoice;
pub mod provers;
mod verified;
mod wallet;

pub use account::{AccountClaimError, checked};
pub use auditor::{Audited, Auditor};
pub use deployment::{Allocation, ConfidentialDeployment, DeploymentError, KeyHashes};
pub use verified::{Outcome, Public, VerifiedError, VerifiedState, VerifiedTransaction};
pub use wallet::{
    Balances, ConfidentialError, ConfidentialWallet, HistoryEntry, Made, OpenPayment, account_secret,
};

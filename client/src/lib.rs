//! The wallet side of Blindfold.
//!
//! - [`keys`]: key files.
//! - [`CommitteeKey`]: the key to encrypt to, from L1 and never on the sequencer's word.
//! - [`Wallet`]: deposits aside (see `blindfold_l1`), everything a user does: send, follow, check.
//! - [`FeeProof`]: what `FeeVault` on L1 pays a fee account against.
//! - [`confidential`]: confidential balances, from secrets to what is sent.
//! - [`inclusion`]: the checks of promise, certificate, place and hint.
//! - [`proxy`]: the encrypting proxy for wallets that know nothing of Blindfold.

pub mod committee_key;
pub mod confidential;
pub mod envelopes;
pub mod fee_proof;
pub mod inclusion;
pub mod keys;
pub mod node;
pub mod proxy;
pub mod transaction;
pub mod wallet;

pub use committee_key::{CommitteeKey, CommitteeKeyError, CommitteeSource};
pub use envelopes::{EnvelopeMaker, Offer};
pub use fee_proof::{FeeProof, FeeProofError};
pub use keys::{KeyError, KeySource};
pub use node::{Node, NodeError};
pub use proxy::{Proxy, ProxyConfig, ProxyError, Resend};
pub use transaction::{SignedTransaction, TransactionError, TransactionFields};
pub use wallet::{Call, Prepared, Promised, Sent, Wallet, WalletEndpoints, WalletError};

//! The state of confidential balances, and what one transaction does to it.
//!
//! Two indexed trees: accounts with encrypted balances, and the public ledger. A transaction is judged against the state
//! at its turn and either changes it in the one way its kind has, or is [refused](Refusal) and changes nothing: the
//! transition first makes the new accounts, then a proof is looked at, and only then are they put in place.
//!
//! Everything a proof is about is taken from the state, never from its sender: keys, nonce, commitment, the available
//! ciphertext. A credit touches only `pending`, which no proof reads, so nobody can spoil a proof by paying its maker.
//!
//! Counters count terms, of either sign, as [`blindfold_rlwe`] does: every ciphertext and every public amount is one.
//! `available` holds at most the set's limit; `pending` one less, so that an account whose owner refreshes can always roll
//! over, however much others have paid into it.

mod account;
mod claim;
mod ledger;
mod memory;
mod public;
mod refusal;
mod settings;
mod transition;

pub use account::{Account, AccountError, Identity, Sum};
pub use claim::{Claim, Premises};
pub(crate) use ledger::{Beneath, Ledger, NodesOf, Remembered};
pub use ledger::{Head, Storage, Tree};
pub use memory::{Genesis, GenesisError, MemoryStorage};
pub use public::PublicAccount;
pub use refusal::Refusal;
pub use settings::{Settings, SettingsError};
pub(crate) use transition::{Effects, Judged, Stop, judge};

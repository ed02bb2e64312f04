//! The validity rule: what every member and node recomputes for a header.
//!
//! Two halves. [`check_items`] is expensive and looks at each item by itself (decoding, fields, signature, proof); its
//! results may be cached within an epoch. [`ChainState`] is cheap and looks at the chain (numbers, times, fees); sealing
//! and checking share one computation there.

mod base_fee;
mod check;
mod facts;
mod faults;
mod head;
mod l1_made;
mod state;

pub use base_fee::{BaseFees, Load, most_after, next_fee};
pub use check::{
    CheckedEnvelope, CheckedItem, RejectedItem, StaticEnvelope, check_expiry, check_forced_expiry,
    check_items, check_items_parallel, check_proofs, check_static, check_static_all, item_leaf,
};
pub use facts::{
    AppliedBatch, Deposit, FORCED_TRANSACTION_REASON, L1Facts, LastBatchError, LedgerEvent, OriginFacts,
    Settled, Verdict, Withdrawal, check_signature, cut, sub_batches,
};
pub use faults::{HeaderError, InputError, SealError};
pub use head::Head;
pub use state::ChainState;

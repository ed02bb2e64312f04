//! What following the chain needs from L1, as a seam: the client of the contracts implements it, tests script it.

use async_trait::async_trait;
use blindfold_protocol::Epochs;
use blindfold_protocol::validity::{Deposit, OriginFacts};

pub use blindfold_engine::L1Origin;

/// Final facts of L1.
///
/// Everything here is about blocks that L1 holds for final, so an answer never changes: callers may keep it.
#[async_trait]
pub trait L1View: Send + Sync {
    /// The newest final block.
    async fn finalized(&self) -> Result<L1Origin, L1Fault>;

    /// The block of this number, `None` while it is not final here.
    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Fault>;

    /// Deposits of `FeeVault` in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    async fn deposits(&self, after: u64, through: u64) -> Result<Vec<Deposit>, L1Fault>;

    /// The epochs registered in `CommitteeRegistry`, in order.
    async fn epochs(&self) -> Result<Epochs, L1Fault>;
}

/// Why L1 gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum L1Fault {
    /// No connection, no answer in time, or the endpoint is overloaded: ask again after a pause.
    #[error("L1 did not answer: {reason}")]
    Unavailable {
        /// What the client reported, without secrets.
        reason: String,
    },
    /// The endpoint answered with something that its interface rules out, or is on another chain. Asking again will
    /// hardly help; the operator has to look.
    #[error("L1 endpoint gave an unusable answer: {reason}")]
    Unusable {
        /// What did not fit.
        reason: String,
    },
}

impl L1Fault {
    /// Whether asking again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

/// The part of an origin that the validity rule looks at.
pub fn origin_facts(origin: &L1Origin) -> OriginFacts {
    OriginFacts { number: origin.number, hash: origin.hash, timestamp: origin.timestamp }
}

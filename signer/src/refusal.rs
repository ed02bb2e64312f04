//! What the signer does not sign, why, and whether to ask again. Each has a stable snake_case reason.

use blindfold_chain::L1Error;
use blindfold_protocol::{Address, B256};
use blindfold_rpc::RpcError;
use blindfold_store::StoreError;
use thiserror::Error;

/// Every reason for which nothing is signed, for metrics and documentation.
pub const SIGNING_REASONS: &[&str] = &[
    "not_begun",
    "wrong_number",
    "below_first",
    "second_header",
    "does_not_follow",
    "older_than_l1",
    "not_ours",
    "older_term",
    "unknown_party",
    "l1_behind",
    "l1_unavailable",
    "storage",
    "undecodable",
];

/// Why nothing is signed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SigningRefusal {
    /// The database is empty, and may be what is left of a key that has signed.
    #[error(
        "this signer's database is fresh: it does not know what the key has signed. If all that it signed is below number \
         {number}, and no other sequencer or signer uses it, tell the signer once: `blindfold signer begin {number}`"
    )]
    NotBegun {
        /// The number that was asked for; for a promise, the one it names.
        number: u64,
    },
    /// No header has this number.
    #[error("no header has the number {0}")]
    WrongNumber(u64),
    /// The operator said that it may have been signed before.
    #[error("number {number} is below {first}, from which on this signer knows what the key has signed")]
    BelowFirst {
        /// The number that was asked for.
        number: u64,
        /// The first one that is signed here.
        first: u64,
    },
    /// Another header was signed for the number, and L1 does not excuse a second one.
    #[error(
        "header {signed} was signed for number {number}, and L1 made none below it that excuses another one ({offered})"
    )]
    SecondHeader {
        /// The number of both.
        number: u64,
        /// Hash of the one that was signed.
        signed: B256,
        /// Hash of the one that was asked for.
        offered: B256,
    },
    /// Its parent is nothing that was signed here, and nothing that L1 shows.
    #[error(
        "header {number} with the parent {parent} does not follow what was signed here (up to number {newest}), nor a header \
         that L1 made, nor does this key's term on L1 begin with it"
    )]
    DoesNotFollow {
        /// The number that was asked for.
        number: u64,
        /// Hash of its parent.
        parent: B256,
        /// The newest number that was signed here; 0 for none.
        newest: u64,
    },
    /// L1 holds this number, or later ones, and nothing was signed for it here.
    #[error(
        "this record is older than L1, which holds headers up to number {posted}, and has nothing for number {number}: it is a \
         copy, or was restored, and does not know what the key has signed. Sign with the newest one, or begin an empty one \
         (docs/operate.md, The signer)"
    )]
    OlderThanL1 {
        /// The number that was asked for.
        number: u64,
        /// The newest posted one.
        posted: u64,
    },
    /// L1 has another key sign headers with this origin.
    #[error("headers with L1 origin {origin} are {sequencer}'s to sign")]
    NotOurs {
        /// The header's origin.
        origin: u64,
        /// Address of the key that counts there.
        sequencer: Address,
    },
    /// Another sequencer took the database since.
    #[error(
        "term {offered} is older than {seen}, in which this signer was asked before: another sequencer has the database. If \
         it was restored from an older copy, or replaced: `blindfold signer forget-terms`"
    )]
    OlderTerm {
        /// The term of the request; 0 where it names none.
        offered: u64,
        /// The highest one seen.
        seen: u64,
    },
    /// The sequencer introduces itself to members only.
    #[error("a hello is signed for a member: member-1, member-2, …")]
    UnknownParty,
    /// L1, as the signer sees it, is not there yet.
    #[error("L1 is final here up to block {finalized} only, before origin {origin} of header {number}")]
    L1Behind {
        /// The number that was asked for.
        number: u64,
        /// The header's origin.
        origin: u64,
        /// The newest final block.
        finalized: u64,
    },
    /// L1 does not tell what it is asked.
    #[error("whether the header may be signed L1 has to tell: {0}")]
    L1(L1Error),
    /// The disk did not take, or not give, what was signed.
    #[error("storage: {0}")]
    Store(StoreError),
}

impl SigningRefusal {
    /// Its reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotBegun { .. } => "not_begun",
            Self::WrongNumber(_) => "wrong_number",
            Self::BelowFirst { .. } => "below_first",
            Self::SecondHeader { .. } => "second_header",
            Self::DoesNotFollow { .. } => "does_not_follow",
            Self::OlderThanL1 { .. } => "older_than_l1",
            Self::NotOurs { .. } => "not_ours",
            Self::OlderTerm { .. } => "older_term",
            Self::UnknownParty => "unknown_party",
            Self::L1Behind { .. } => "l1_behind",
            Self::L1(_) => "l1_unavailable",
            Self::Store(_) => "storage",
        }
    }
}

impl From<SigningRefusal> for RpcError {
    fn from(refusal: SigningRefusal) -> Self {
        let reason = refusal.reason();
        match refusal {
            SigningRefusal::SecondHeader { .. } => Self::conflict(reason, refusal),
            SigningRefusal::UnknownParty => Self::invalid_params(reason, refusal),
            SigningRefusal::L1Behind { .. } | SigningRefusal::L1(_) | SigningRefusal::Store(_) => {
                Self::unavailable(reason, refusal)
            }
            SigningRefusal::NotBegun { .. }
            | SigningRefusal::WrongNumber(_)
            | SigningRefusal::BelowFirst { .. }
            | SigningRefusal::DoesNotFollow { .. }
            | SigningRefusal::OlderThanL1 { .. }
            | SigningRefusal::NotOurs { .. }
            | SigningRefusal::OlderTerm { .. } => Self::refused(reason, refusal),
        }
    }
}

//! Why the store refuses or fails.

use std::fmt;

use alloy_primitives::{Address, B256};
use blindfold_protocol::DecodeError;
use rusqlite::ErrorCode;

/// The kind of record an error speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A sealed batch: header, signature and items.
    Batch,
    /// What this process signed for a number.
    Acknowledgement,
    /// The certificate of a batch.
    Certificate,
    /// The combined release of a batch.
    Release,
    /// The hints of a batch.
    Hints,
    /// An executed L2 block.
    Block,
    /// An envelope that waits to be sealed.
    Envelope,
    /// An account of the fee ledger.
    Account,
    /// A small value under a name.
    Meta,
    /// What a batch changed in the coprocessor's state.
    ConfidentialBatch,
    /// A confidential account, its place in the tree, or a public balance beside it.
    ConfidentialAccount,
    /// A confidential transaction.
    ConfidentialTransaction,
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Batch => "batch",
            Self::Acknowledgement => "acknowledgement",
            Self::Certificate => "certificate",
            Self::Release => "release",
            Self::Hints => "hints",
            Self::Block => "block",
            Self::Envelope => "envelope",
            Self::Account => "account",
            Self::Meta => "meta value",
            Self::ConfidentialBatch => "confidential batch",
            Self::ConfidentialAccount => "confidential account",
            Self::ConfidentialTransaction => "confidential transaction",
        })
    }
}

/// A refused or failed operation. After a refusal the store is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another record stands for this number; the stored one stays. For acknowledgements and sealed batches this is
    /// the rule that nothing is signed twice. Whoever made the second one is at fault; do not retry.
    #[error("{what} {number}: {stored} is stored, {offered} is refused")]
    Conflict {
        /// Which kind of record it is.
        what: What,
        /// Number of the batch or block.
        number: u64,
        /// The hash that is stored.
        stored: B256,
        /// The hash that was offered.
        offered: B256,
    },
    /// A record that this one belongs to is not stored. The caller's order is wrong, or it must fetch that first.
    #[error("{what} {number} is not stored")]
    Missing {
        /// The kind of record that is missing.
        what: What,
        /// Number of the batch or block.
        number: u64,
    },
    /// Batches are stored without gaps.
    #[error("batch {offered} does not follow the newest stored batch; {expected} would")]
    NotNext {
        /// The number that would be taken.
        expected: u64,
        /// The number that was offered.
        offered: u64,
    },
    /// Only the newest batch can be reverted.
    #[error("batch {number} is not the newest (that is {newest})")]
    NotNewest {
        /// The number that was asked for.
        number: u64,
        /// Number of the newest batch.
        newest: u64,
    },
    /// A certified batch is never reverted.
    #[error("batch {0} is certified and stays")]
    Certified(u64),
    /// What the ledger was after this batch is not kept any more.
    #[error(
        "what the fee ledger was after batch {number} is forgotten; it is kept from batch {kept_from} on"
    )]
    Forgotten {
        /// The number to go back to.
        number: u64,
        /// The first one that can be gone back to.
        kept_from: u64,
    },
    /// The ledger change does not start from what is stored: the caller computed on another state.
    #[error("the change of account {0} does not start from the stored account")]
    AccountMismatch(Address),
    /// The same for a fee nonce.
    #[error("the change of fee nonce {nonce} of {payer} does not start from the stored one")]
    NonceMismatch {
        /// The payer whose nonce it is.
        payer: Address,
        /// The fee nonce itself.
        nonce: u64,
    },
    /// The same for the surcharges held for a batch.
    #[error("the change of what is held for batch {0} does not start from what is stored")]
    HeldMismatch(u64),
    /// A record contradicts itself (item counts, numbers, hashes). The caller's fault.
    #[error("{what} {number} contradicts itself: {reason}")]
    Inconsistent {
        /// Which kind of record it is.
        what: What,
        /// Number of the batch or block.
        number: u64,
        /// What does not fit the rest of it.
        reason: &'static str,
    },
    /// A number does not fit the storage's 63 bits, or a value is longer than allowed.
    #[error("{0} is out of the range that can be stored")]
    OutOfRange(&'static str),
    /// The files belong to another deployment or role. The configuration's fault: give this process its own folder.
    #[error("{name} of this store is {stored}, not {offered}")]
    Foreign {
        /// `deployment` or `role`.
        name: &'static str,
        /// What the store was bound to.
        stored: String,
        /// What was asked for.
        offered: String,
    },
    /// A program of an earlier protocol version wrote the files. What they hold says nothing in this one.
    #[error(
        "the store has schema {found}, of an earlier protocol version; this program begins at {oldest}: start with an \
         empty folder"
    )]
    OlderSchema {
        /// The schema of the files.
        found: i64,
        /// The oldest that can be brought up to date.
        oldest: i64,
    },
    /// A newer version of this program wrote the files.
    #[error("the store has schema {found}; this program knows up to {known}: use the newer program")]
    NewerSchema {
        /// The schema of the files.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// Another process has these files open.
    #[error("{0} is in use by another process")]
    InUse(String),
    /// The store is not one to run on: a backup, what a copy left behind, or one that is not whole.
    #[error("{0}")]
    Retired(String),
    /// The batch was pruned: it is final on L1, and of it this store keeps the hash alone.
    #[error("batch {number} was pruned; batches are kept from {kept_from} on")]
    Pruned {
        /// The batch that was asked for.
        number: u64,
        /// The first batch that is kept whole.
        kept_from: u64,
    },
    /// Only a full node's records can be pruned.
    #[error(
        "the records of {role:?} are not pruned: a sequencer's promise can be accused on L1 at any time, and members are \
         asked for what they hold; full nodes prune"
    )]
    NotPruned {
        /// The role that the store is bound to.
        role: String,
    },
    /// The files cannot be opened or prepared.
    #[error("cannot open {store}: {reason}")]
    Open {
        /// Path of the database file, or the server's address, without a password.
        store: String,
        /// What the engine or the operating system said.
        reason: String,
    },
    /// A stored record does not decode: the files are damaged, or were changed from outside.
    #[error("stored {what} does not decode: {fault}")]
    Corrupt {
        /// Which kind of record it is.
        what: What,
        /// What is wrong with it.
        fault: String,
    },
    /// The disk or the database failed; nothing of this operation is stored. May succeed later (disk full).
    #[error("storage failed: {0}")]
    Failed(String),
    /// An earlier failure leaves open what is on the disk; restart the process, which reads it anew.
    #[error("storage stopped after an input/output error: {0}")]
    Stopped(String),
    /// Another process has taken the store since: this one writes nothing any more, whatever it was told before.
    #[error("another process has taken this store over")]
    Fenced,
    /// The store was closed or its writer is gone.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same operation may succeed later on this store.
    pub const fn retry(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Whether the record was there and is pruned.
    pub const fn is_pruned(&self) -> bool {
        matches!(self, Self::Pruned { .. })
    }

    pub(crate) fn corrupt(what: What, fault: &DecodeError) -> Self {
        Self::Corrupt { what, fault: fault.to_string() }
    }
}

impl From<rusqlite::Error> for StoreError {
    /// After an input/output error nobody knows what the disk holds, wherever in an operation it came: it is no
    /// failure that trying again mends.
    fn from(error: rusqlite::Error) -> Self {
        let fatal = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
        if fatal { Self::Stopped(error.to_string()) } else { Self::Failed(error.to_string()) }
    }
}

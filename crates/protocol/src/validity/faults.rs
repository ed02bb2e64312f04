//! Why a header is refused, or cannot be sealed.

use crate::ledger::LedgerDeltaError;
use crate::limits::{MAX_BATCH_ITEMS, MAX_ENVELOPE_BYTES, MAX_FORCED_ITEMS, MAX_SECOND_BYTES};
use crate::signature::SignatureError;
use alloy_primitives::{Address, B256};

/// The caller's facts contradict each other: our own fault, or L1's; says nothing of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A ledger event lies outside (parent's origin, this origin].
    #[error("a ledger event of L1 block {l1_block} does not belong to ({after}, {up_to}]")]
    Event {
        /// The L1 block of the event.
        l1_block: u64,
        /// L1 origin of the parent.
        after: u64,
        /// L1 origin of this header.
        up_to: u64,
    },
    /// The entries of the forced queue are not those from the cursor on, in L1 blocks up to the origin.
    #[error("entry {index} of the forced queue does not stand where the facts have it")]
    Forced {
        /// Index of the entry in the queue.
        index: u64,
    },
    /// The ledger refuses the deposits or fees.
    #[error("fee ledger: {0}")]
    Ledger(#[from] LedgerDeltaError),
    /// The bytes of an item are not those that were checked, or there are more or fewer.
    #[error("the bytes of item {index} are not those that were checked")]
    Bytes {
        /// Index of the item in the batch.
        index: usize,
    },
    /// The head has the last number that there is.
    #[error("batch numbers are exhausted")]
    Exhausted,
}

/// Why no header can be sealed from these inputs. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Time does not go forward. Take a later one.
    #[error("time {timestamp_ms} ms is not after the parent's {parent_ms} ms")]
    Time {
        /// Time of the header, in Unix milliseconds.
        timestamp_ms: u64,
        /// Time of its parent, in Unix milliseconds.
        parent_ms: u64,
    },
    /// The whole second is before the L1 origin. Take a later time or an older origin.
    #[error("second {second} is before the L1 origin's {origin}")]
    TimeBeforeOrigin {
        /// Second of the header, in Unix seconds.
        second: u64,
        /// Timestamp of the origin, in Unix seconds.
        origin: u64,
    },
    /// The whole second is too far ahead of the L1 origin: whoever holds origins back holds back what L1 forces. Take a
    /// newer origin.
    #[error("second {second} is more than {limit} s ahead of the L1 origin's {origin}")]
    OriginTooOld {
        /// Second of the header, in Unix seconds.
        second: u64,
        /// Timestamp of the origin, in Unix seconds.
        origin: u64,
        /// W: `timing.maxOriginAgeSeconds` of the chain's settings.
        limit: u32,
    },
    /// The L1 origin goes back.
    #[error("L1 origin {origin} is older than the parent's {parent}")]
    OriginBack {
        /// L1 origin of the header.
        origin: u64,
        /// L1 origin of the parent.
        parent: u64,
    },
    /// L1 made the parent, in a block that the origin does not reach: whoever made this header may not have known.
    #[error("L1 origin {origin} is before block {made_at}, in which L1 made the parent")]
    OriginBeforeL1Header {
        /// L1 origin of the header.
        origin: u64,
        /// The L1 block that made the parent.
        made_at: u64,
    },
    /// The number does not belong to the epoch given.
    #[error("batch {number} does not belong to epoch {epoch}")]
    Epoch {
        /// Number that the header would have.
        number: u64,
        /// The epoch that it was checked against.
        epoch: u64,
    },
    /// More items than a batch may hold.
    #[error("{0} items, at most {MAX_BATCH_ITEMS}")]
    TooManyItems(usize),
    /// An item is longer than the largest envelope.
    #[error("item {index} has {bytes} bytes, at most {MAX_ENVELOPE_BYTES}")]
    ItemTooLong {
        /// Index of the item in the batch.
        index: usize,
        /// Length of the item, in bytes.
        bytes: u32,
    },
    /// The whole second asks for too much gas. Seal into the next second.
    #[error("the second asks for {gas} gas, at most {limit}")]
    SecondGas {
        /// Gas of the second with this batch.
        gas: u64,
        /// Gas that a second may ask for.
        limit: u64,
    },
    /// The whole second holds too many bytes. Seal into the next second.
    #[error("the second holds {bytes} bytes, at most {MAX_SECOND_BYTES}")]
    SecondBytes {
        /// Item bytes of the second with this batch.
        bytes: u64,
    },
    /// More forced items than a header may take.
    #[error("{0} forced items, at most {MAX_FORCED_ITEMS}")]
    ForcedCap(u64),
    /// The cursor passes an entry that the forced queue does not have up to the origin.
    #[error("the forced queue has no entry {index} up to the L1 origin")]
    ForcedAhead {
        /// Index of the entry in the queue.
        index: u64,
    },
    /// An item is not the entry that stands at its place in the forced queue.
    #[error("item {item} is not entry {index} of the forced queue")]
    ForcedItem {
        /// Index of the item in the batch.
        item: u32,
        /// Index of the entry in the queue.
        index: u64,
    },
    /// An entry that is due is left out.
    #[error("entry {index} of the forced queue is left out, due since L1 block {due}")]
    ForcedIgnored {
        /// Index of the entry in the queue.
        index: u64,
        /// The first origin that must have taken it.
        due: u64,
    },
    /// The caller's facts are wrong.
    #[error("inputs: {0}")]
    Input(#[from] InputError),
}

/// Why a header is refused. Except for [`HeaderError::Input`], the sequencer's fault. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The sequencer's signature names no signer.
    #[error("sequencer signature: {0}")]
    Signature(SignatureError),
    /// Another key than the sequencer's signed.
    #[error("signed by {0}, not by the sequencer")]
    Signer(Address),
    /// Not the number after the parent's.
    #[error("number {got}, expected {expected}")]
    Number {
        /// Number that the header has.
        got: u64,
        /// The head's number + 1.
        expected: u64,
    },
    /// The parent hash is not the head's.
    #[error("parent {got}, expected {expected}")]
    Parent {
        /// Parent hash of the header.
        got: B256,
        /// Hash of the head here.
        expected: B256,
    },
    /// The origin is not the final L1 block of its number.
    #[error("L1 origin {number} with hash {hash} is not the final block")]
    Origin {
        /// Number of the header's origin.
        number: u64,
        /// Hash of the header's origin.
        hash: B256,
    },
    /// The origin has another timestamp.
    #[error("L1 origin's time {got}, expected {expected}")]
    OriginTime {
        /// Time that the header states.
        got: u64,
        /// Timestamp of the L1 block.
        expected: u64,
    },
    /// Not the rule set of the number. A newer program may know it.
    #[error("rule set {got}, expected {expected}")]
    Rules {
        /// Rule set of the header.
        got: u16,
        /// Rule set of the number.
        expected: u16,
    },
    /// Not the epoch of the number.
    #[error("epoch {got}, expected {expected}")]
    Epoch {
        /// Epoch that the header states.
        got: u64,
        /// Epoch that its number belongs to.
        expected: u64,
    },
    /// A rule that sealing obeys as well.
    #[error(transparent)]
    Rule(SealError),
    /// The count of items does not fit.
    #[error("{got} items, expected {expected}")]
    Count {
        /// In the header.
        got: u32,
        /// Recomputed.
        expected: u32,
    },
    /// The sum of the items' lengths does not fit.
    #[error("{got} item bytes, expected {expected}")]
    Bytes {
        /// In the header.
        got: u32,
        /// Recomputed.
        expected: u32,
    },
    /// The gas of accepted items and forced transactions does not fit.
    #[error("gas {got}, expected {expected}")]
    Gas {
        /// In the header.
        got: u64,
        /// Recomputed.
        expected: u64,
    },
    /// The base fee is not the one that follows from the parent.
    #[error("base fee {got}, expected {expected}")]
    BaseFee {
        /// In the header.
        got: u128,
        /// Recomputed.
        expected: u128,
    },
    /// The gas base fee is not the one that follows from the parent.
    #[error("gas base fee {got}, expected {expected}")]
    GasBaseFee {
        /// In the header.
        got: u128,
        /// Recomputed.
        expected: u128,
    },
    /// The root over the items does not fit.
    #[error("envelope root {got}, expected {expected}")]
    EnvelopeRoot {
        /// In the header.
        got: B256,
        /// Recomputed.
        expected: B256,
    },
    /// Commitment to the batch's data.
    #[error("data hash {got}, expected {expected}")]
    DataHash {
        /// In the header.
        got: B256,
        /// Recomputed.
        expected: B256,
    },
    /// Root of the fee ledger.
    #[error("fee ledger root {got}, expected {expected}")]
    FeeLedgerRoot {
        /// In the header.
        got: B256,
        /// Recomputed.
        expected: B256,
    },
    /// Cursor of the forced queue.
    #[error("forced cursor {got}, expected {expected}")]
    ForcedCursor {
        /// In the header.
        got: u64,
        /// Recomputed.
        expected: u64,
    },
    /// A header that L1 made names another origin than its parent.
    #[error("L1 origin {number} with hash {hash}, or its time, is not the parent's")]
    L1Origin {
        /// Number of the header's origin.
        number: u64,
        /// Hash of the header's origin.
        hash: B256,
    },
    /// Our own facts are wrong: says nothing of the header.
    #[error("inputs: {0}")]
    Input(InputError),
}

impl From<SealError> for HeaderError {
    fn from(fault: SealError) -> Self {
        match fault {
            SealError::Input(fault) => Self::Input(fault),
            rule => Self::Rule(rule),
        }
    }
}

impl SealError {
    /// The name of the fault, as it is told and counted; it never changes.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Time { .. } => "time_not_after_parent",
            Self::TimeBeforeOrigin { .. } => "time_before_origin",
            Self::OriginTooOld { .. } => "origin_too_old",
            Self::OriginBack { .. } => "origin_back",
            Self::OriginBeforeL1Header { .. } => "origin_before_l1_header",
            Self::Epoch { .. } => "wrong_epoch",
            Self::TooManyItems(_) => "too_many_items",
            Self::ItemTooLong { .. } => "item_too_long",
            Self::SecondGas { .. } => "second_gas",
            Self::SecondBytes { .. } => "second_bytes",
            Self::ForcedCap(_) => "forced_cap_exceeded",
            Self::ForcedAhead { .. } => "forced_cursor_ahead",
            Self::ForcedItem { .. } => "wrong_forced_item",
            Self::ForcedIgnored { .. } => "forced_item_ignored",
            Self::Input(_) => "inputs",
        }
    }
}

impl HeaderError {
    /// The stable name, for a member's refusal.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Signature(_) => "bad_signature",
            Self::Signer(_) => "wrong_signer",
            Self::Number { .. } => "wrong_number",
            Self::Parent { .. } => "wrong_parent",
            Self::Origin { .. } => "origin_not_final",
            Self::OriginTime { .. } => "wrong_origin_time",
            Self::Rules { .. } => "wrong_rules",
            Self::Epoch { .. } => "wrong_epoch",
            Self::Rule(fault) => fault.as_str(),
            Self::Count { .. } => "wrong_count",
            Self::Bytes { .. } => "wrong_bytes",
            Self::Gas { .. } => "wrong_gas",
            Self::BaseFee { .. } => "wrong_base_fee",
            Self::GasBaseFee { .. } => "wrong_gas_base_fee",
            Self::DataHash { .. } => "wrong_data_hash",
            Self::EnvelopeRoot { .. } => "wrong_envelope_root",
            Self::FeeLedgerRoot { .. } => "wrong_fee_ledger_root",
            Self::ForcedCursor { .. } => "wrong_forced_cursor",
            Self::L1Origin { .. } => "wrong_l1_origin",
            Self::Input(_) => "inputs",
        }
    }

    /// Whether the fault is ours, so that another try with right facts may pass.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Input(_))
    }
}

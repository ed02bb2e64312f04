//! What goes in and comes out.

use alloy_primitives::B256;
use blindfold_protocol::{BatchHints, Certificate, Release, SealedBatch, Signature65, ledger::LedgerDelta};

/// An admitted envelope that waits to be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEnvelope {
    /// Id of the envelope.
    pub id: B256,
    /// The envelope as it was sent.
    pub bytes: Vec<u8>,
    /// When it arrived, Unix milliseconds.
    pub arrived_ms: u64,
    /// The number the sequencer promised to seal it by.
    pub seal_by: Option<u64>,
}

/// One item of a sealed batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRecord {
    /// The envelope id; zero for an item that does not decode.
    pub id: B256,
    /// None if accepted, else why it was skipped, or what it is instead of an envelope.
    pub fault: Option<String>,
}

/// A sealed batch with everything that changes with it, stored in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRecord {
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// Hash of the header.
    pub hash: B256,
    /// One entry for each item, in order.
    pub items: Vec<ItemRecord>,
    /// Accounts and held surcharges that changed.
    pub ledger: LedgerDelta,
    /// The chain state's head after this batch, in the caller's encoding; comes back from
    /// [`Store::ledger_head`](crate::Store::ledger_head).
    pub head: Vec<u8>,
    /// This process signs this header (sequencer) or acknowledges it (member): also records, in the same step, what
    /// [`Store::put_acknowledged`](crate::Store::put_acknowledged) records.
    pub signed: bool,
    /// The L1 block that made this header, if L1 did: then it is certified without a certificate from the moment it is
    /// stored, and with it all before it.
    pub made_at: Option<u64>,
}

/// What this process signed for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Hash of the header.
    pub hash: B256,
    /// The header's L1 origin.
    pub origin: u64,
    /// Whether it gives way to one hash more, because L1 made a header below that it does not know of.
    pub displaced: bool,
}

/// A batch with all that is stored of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRecord {
    /// Number of the batch.
    pub number: u64,
    /// Hash of the header.
    pub hash: B256,
    /// Header, sequencer's signature and items.
    pub sealed: SealedBatch,
    /// One entry for each item, in order.
    pub items: Vec<ItemRecord>,
    /// The certificate of this very number, once there is one.
    pub certificate: Option<Certificate>,
    /// L1 made this header: it is certified and has no certificate.
    pub by_l1: bool,
    /// The combined release, once it is here.
    pub release: Option<Release>,
    /// The hints, once they are here.
    pub hints: Option<BatchHints>,
}

impl BatchRecord {
    /// Whether its header binds: it is signed, or L1 made it. One that was stored to be signed goes to nobody before.
    pub fn is_signed(&self) -> bool {
        self.by_l1 || self.sealed.signature != Signature65::NONE
    }
}

/// Where an envelope stands, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemLocation {
    /// Number of the batch.
    pub number: u64,
    /// The index in the batch.
    pub index: u32,
    /// None if accepted, else why it was skipped.
    pub fault: Option<String>,
    /// Hash of the batch's header.
    pub header_hash: B256,
    /// Number and hash of the block that holds the batch, if it is executed.
    pub block: Option<(u64, B256)>,
}

/// An executed L2 block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// Its second and timestamp, in Unix seconds.
    pub second: u64,
    /// Number of the L2 block.
    pub number: u64,
    /// Hash of the L2 block.
    pub hash: B256,
    /// Hash of the block before it.
    pub parent_hash: B256,
    /// State root after the block.
    pub state_root: B256,
    /// The first batch in it.
    pub first_batch: u64,
    /// The last batch in it.
    pub last_batch: u64,
    /// What became of the inner transactions, JSON of the caller's form.
    pub transactions: String,
    /// The execution payload, for replay when the execution client lost its head.
    pub payload: Vec<u8>,
}

/// The newest post on L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedRecord {
    /// The last batch number in it.
    pub up_to_number: u64,
    /// Hash of the L1 transaction that posted it.
    pub l1_transaction: B256,
}

/// Where the ledger stands: what a restart continues from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerHead {
    /// Number of the newest batch.
    pub number: u64,
    /// Hash of that batch's header.
    pub hash: B256,
    /// [`SealedRecord::head`] of it.
    pub head: Vec<u8>,
}

/// The newest of everything that is stored, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Number and hash of the newest sealed batch.
    pub sealed: Option<(u64, B256)>,
    /// The newest number signed or acknowledged by this process, but for what L1's headers displaced.
    pub acknowledged: Option<u64>,
    /// The newest certified number, by a certificate or by L1; certifies all before it.
    pub certified: Option<u64>,
    /// The newest number with a release.
    pub released: Option<u64>,
    /// The newest number with hints.
    pub hinted: Option<u64>,
    /// The newest number up to which every stored batch has hints.
    pub hinted_through: Option<u64>,
    /// Number and hash of the newest L2 block.
    pub block: Option<(u64, B256)>,
    /// The newest number on L1 as far as this process posted it.
    pub posted: Option<u64>,
}

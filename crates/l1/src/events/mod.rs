//! What L1 tells of hints, and of headers that it made: one event, whoever reads it, of final blocks and of the newest.

pub(crate) mod facts;
pub(crate) mod journal;
pub(crate) mod journal_file;
pub(crate) mod logs;
pub(crate) mod registry;

use alloy_primitives::{Address, B256};
use alloy_sol_types::SolEvent;
use blindfold_protocol::BatchHeader;

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    events::logs::{FinalLog, malformed_log},
};

/// First topics of the events that [`hint_event`] reads.
pub(crate) const HINT_TOPICS: [B256; 7] = [
    HintRegistry::HintsPosted::SIGNATURE_HASH,
    HintRegistry::HintsSlashed::SIGNATURE_HASH,
    HintRegistry::ChallengeFailed::SIGNATURE_HASH,
    HintRegistry::HintsFinalized::SIGNATURE_HASH,
    HintRegistry::HintsReleased::SIGNATURE_HASH,
    HintRegistry::HintsDropped::SIGNATURE_HASH,
    HintRegistry::Voided::SIGNATURE_HASH,
];

/// An event of `HintRegistry`, without the data of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintEvent {
    /// Hints were posted; their publisher's bond answers for them.
    Posted(PostedLog),
    /// A posting was wrong and is slashed. Its publisher's bond is gone, and all that were open of its own are
    /// invalidated: never final.
    Slashed {
        /// Id of the slashed posting.
        id: u64,
        /// Last batch of its run.
        last: u64,
        /// Who showed what was wrong.
        challenger: Address,
        /// Whose bond is gone.
        publisher: Address,
        /// The batch with the wrong entry.
        number: u64,
        /// Index of the wrong entry in that batch.
        index: u32,
        /// Why it was wrong: the contract's `REASON_…`.
        reason: u8,
        /// The L1 block of the event.
        l1_block: u64,
    },
    /// A challenge showed nothing wrong.
    ChallengeFailed {
        /// Id of the posting, which stands.
        id: u64,
        /// Who lost the stake to the publisher.
        challenger: Address,
    },
    /// These are a run's hints for good.
    Finalized {
        /// Id of the posting.
        id: u64,
        /// First batch of the run.
        first: u64,
        /// Last batch of the run.
        last: u64,
    },
    /// A posting was closed because its run has other hints for good.
    Released {
        /// Id of the closed posting.
        id: u64,
        /// Last batch of the run.
        last: u64,
    },
    /// An invalidated posting was cleared away.
    Dropped {
        /// Id of the dropped posting.
        id: u64,
        /// Last batch of the run.
        last: u64,
    },
    /// A run has no hints and will never have any.
    Voided {
        /// First batch of the run.
        first: u64,
        /// Last batch of the run.
        last: u64,
    },
}

/// Hints that somebody posted, as the event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedLog {
    /// Id that the registry gave the posting.
    pub id: u64,
    /// First batch of the run.
    pub first: u64,
    /// Last batch of the run.
    pub last: u64,
    /// Whose bond answers for them.
    pub publisher: Address,
    /// The L1 block of the posting.
    pub l1_block: u64,
    /// Hash of the transaction that posted them.
    pub transaction: B256,
    /// The posting root: a commitment to every entry.
    pub root: B256,
}

/// A header that L1 made itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L1HeaderLog {
    /// The header as L1 made it.
    pub header: BatchHeader,
    /// The final L1 block that made it.
    pub l1_block: u64,
    /// Hash of the transaction that had L1 make it.
    pub transaction: B256,
}

/// The log of a posting as its event.
pub(crate) fn posted_log(log: &FinalLog) -> Result<Option<PostedLog>, L1Error> {
    let event = log.event::<HintRegistry::HintsPosted>()?;
    Ok(event.map(|event| PostedLog {
        id: event.id,
        first: event.first,
        last: event.runLast,
        publisher: event.publisher,
        l1_block: log.block,
        transaction: log.transaction,
        root: event.root,
    }))
}

pub(crate) fn hint_event(log: &FinalLog) -> Result<HintEvent, L1Error> {
    if let Some(posted) = posted_log(log)? {
        return Ok(HintEvent::Posted(posted));
    }
    if let Some(event) = log.event::<HintRegistry::HintsSlashed>()? {
        return Ok(HintEvent::Slashed {
            id: event.id,
            last: event.runLast,
            challenger: event.challenger,
            publisher: event.publisher,
            number: event.number,
            index: event.index,
            reason: event.reason,
            l1_block: log.block,
        });
    }
    if let Some(event) = log.event::<HintRegistry::ChallengeFailed>()? {
        return Ok(HintEvent::ChallengeFailed { id: event.id, challenger: event.challenger });
    }
    if let Some(event) = log.event::<HintRegistry::HintsFinalized>()? {
        return Ok(HintEvent::Finalized { id: event.id, first: event.first, last: event.runLast });
    }
    if let Some(event) = log.event::<HintRegistry::HintsReleased>()? {
        return Ok(HintEvent::Released { id: event.id, last: event.runLast });
    }
    if let Some(event) = log.event::<HintRegistry::HintsDropped>()? {
        return Ok(HintEvent::Dropped { id: event.id, last: event.runLast });
    }
    match log.event::<HintRegistry::Voided>()? {
        Some(event) => Ok(HintEvent::Voided { first: event.first, last: event.last }),
        None => Err(malformed_log(&"a log that was not asked for")),
    }
}

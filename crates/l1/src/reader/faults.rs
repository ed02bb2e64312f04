//! What L1 heard against the sequencer, and what the sequencer claims of L2.

use alloy_primitives::Address;
use alloy_sol_types::SolEvent;
use blindfold_protocol::B256;

use crate::{
    contracts::BlindedInbox, error::L1Error, events::logs::FinalLog, posting::evidence::GivenPromise,
    reader::client::L1Client,
};

/// What happened between L1 and the sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencerEvent {
    /// Two headers of one number were shown.
    Equivocation {
        /// The batch number of both headers.
        number: u64,
        /// Whose key signed both.
        sequencer: Address,
        /// Who showed them to L1.
        reporter: Address,
        /// Hash of the one header.
        first: B256,
        /// Hash of the other header.
        second: B256,
        /// The final L1 block: `answerWindow` blocks later L1 makes this header, if none is posted.
        l1_block: u64,
    },
    /// A promise is said to be broken.
    Accused {
        /// The promise that is said to be broken.
        promise: GivenPromise,
        /// Who accused, and staked on it.
        accuser: Address,
        /// The L1 block after which the bond is lost without an answer.
        answer_until: u64,
    },
    /// The promised envelope was shown in a batch.
    Answered {
        /// Hash of the promise, which names the accusation.
        promise_id: B256,
        /// Who showed the envelope, and has the accuser's stake.
        answerer: Address,
        /// The batch that it was shown in.
        number: u64,
    },
    /// Nobody answered, and the bond is lost.
    Omission {
        /// Hash of the promise, which names the accusation.
        promise_id: B256,
        /// Who accused, and gets half of the bond.
        accuser: Address,
    },
}

/// First topics of the events that [`sequencer_event`] reads.
pub(crate) const SEQUENCER_TOPICS: [B256; 4] = [
    BlindedInbox::Equivocation::SIGNATURE_HASH,
    BlindedInbox::Accused::SIGNATURE_HASH,
    BlindedInbox::Answered::SIGNATURE_HASH,
    BlindedInbox::Omission::SIGNATURE_HASH,
];

/// What the sequencer claims of one L2 block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Number of the L2 block; the first is 1.
    pub l2_block: u64,
    /// The last batch that is in it.
    pub batch: u64,
    /// Timestamp of the block, in seconds.
    pub timestamp: u64,
    /// Hash of the L2 block.
    pub block_hash: B256,
    /// The root of the state after it.
    pub state_root: B256,
}

impl L1Client {
    /// What was reported about the sequencer in blocks `after + 1 ..= through`, in L1 order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; the errors of a call.
    pub async fn sequencer_events(&self, after: u64, through: u64) -> Result<Vec<SequencerEvent>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let logs = self.final_logs(inbox, &SEQUENCER_TOPICS, after, through).await?;
        logs.iter().filter_map(|log| sequencer_event(log).transpose()).collect()
    }
}

/// The log as what happened between L1 and the sequencer, if it is that.
pub(crate) fn sequencer_event(log: &FinalLog) -> Result<Option<SequencerEvent>, L1Error> {
    if let Some(event) = log.event::<BlindedInbox::Equivocation>()? {
        return Ok(Some(SequencerEvent::Equivocation {
            number: event.number,
            sequencer: event.sequencer,
            reporter: event.reporter,
            first: event.firstHash,
            second: event.secondHash,
            l1_block: log.block,
        }));
    }
    if let Some(event) = log.event::<BlindedInbox::Accused>()? {
        return Ok(Some(SequencerEvent::Accused {
            promise: GivenPromise {
                sequencer: event.sequencer,
                envelope_id: event.envelopeId,
                item_hash: event.itemHash,
                seal_by: event.sealBy,
            },
            accuser: event.accuser,
            answer_until: event.answerUntil.saturating_to(),
        }));
    }
    if let Some(event) = log.event::<BlindedInbox::Answered>()? {
        let BlindedInbox::Answered { promiseId, answerer, number, .. } = event;
        return Ok(Some(SequencerEvent::Answered { promise_id: promiseId, answerer, number }));
    }
    let event = log.event::<BlindedInbox::Omission>()?;
    Ok(event.map(|event| SequencerEvent::Omission { promise_id: event.promiseId, accuser: event.accuser }))
}

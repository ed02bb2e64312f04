//! Accusations of the sequencer that nobody answered yet, after the newest block.

use std::collections::BTreeMap;

use blindfold_protocol::B256;

use crate::{
    contracts::BlindedInbox,
    error::L1Error,
    posting::evidence::{GivenPromise, OmissionAnswer},
    reader::{client::L1Client, faults::SequencerEvent},
};

/// An accusation that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAccusation {
    /// The promise that is said to be broken.
    pub promise: GivenPromise,
    /// The L1 block after which the bond is lost without an answer.
    pub answer_until: u64,
}

/// The accusations that these events, in L1 order, leave open; in the order of their ids.
pub fn open_accusations(events: &[SequencerEvent]) -> Vec<OpenAccusation> {
    let mut open = BTreeMap::new();
    for event in events {
        match *event {
            SequencerEvent::Accused { promise, answer_until, .. } => {
                open.insert(promise.id(), OpenAccusation { promise, answer_until });
            }
            SequencerEvent::Answered { promise_id, .. } | SequencerEvent::Omission { promise_id, .. } => {
                open.remove(&promise_id);
            }
            SequencerEvent::Equivocation { .. } => {}
        }
    }
    open.into_values().collect()
}

impl L1Client {
    /// The accusations that wait for an answer after the newest block, none of which is older than block `since`. One
    /// call while there is none; else logs of two answer windows, and of more only when an older one is open.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn open_accusations(&self, since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::openAccusationsCall {};
        let count: u64 = self.inner.rpc.view("openAccusations", inbox, &call).await?.saturating_to();
        if count == 0 {
            return Ok(Vec::new());
        }
        let newest = self.newest_block().await?;
        let mut blocks = u64::from(self.timing().await?.answer_window).max(1).saturating_mul(2);
        loop {
            let after = newest.saturating_sub(blocks);
            let open = open_accusations(&self.recent_faults(after, newest).await?);
            if open.len() as u64 >= count || after <= since {
                return Ok(open);
            }
            // Nobody has to slash at once: an old one is open, and can be answered, until somebody does.
            blocks = blocks.saturating_mul(4);
        }
    }
}

impl OmissionAnswer {
    /// The envelope that it shows.
    pub fn envelope_id(&self) -> B256 {
        self.leaf.id
    }

    /// keccak256 of the item that it shows.
    pub fn item_hash(&self) -> B256 {
        self.leaf.item_hash
    }

    /// The promise that it shows to be kept.
    pub fn promise(&self) -> &GivenPromise {
        &self.promise
    }

    /// The batch in which it shows it.
    pub fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;

    use super::*;

    /// Promise `n`, of an envelope that all of them are about.
    fn promise(n: u64) -> GivenPromise {
        GivenPromise {
            sequencer: Address::repeat_byte(7),
            envelope_id: B256::repeat_byte(0xee),
            item_hash: B256::repeat_byte(0xaa),
            seal_by: n,
        }
    }

    fn accused(n: u64) -> SequencerEvent {
        SequencerEvent::Accused { promise: promise(n), accuser: Address::ZERO, answer_until: 9 }
    }

    fn answered(n: u64) -> SequencerEvent {
        SequencerEvent::Answered { promise_id: promise(n).id(), answerer: Address::ZERO, number: 3 }
    }

    /// The numbers of the promises that these events leave open.
    fn open(events: &[SequencerEvent]) -> Vec<u64> {
        let mut open: Vec<_> = open_accusations(events).iter().map(|open| open.promise.seal_by).collect();
        open.sort_unstable();
        open
    }

    #[test]
    fn what_is_answered_or_slashed_is_open_no_more() {
        let slashed = SequencerEvent::Omission { promise_id: promise(2).id(), accuser: Address::ZERO };
        assert_eq!(open(&[accused(1), accused(2), accused(3), answered(1), slashed]), [3]);
        // An accusation that was made before these events is closed by them, too.
        assert!(open(&[answered(1)]).is_empty());
    }

    #[test]
    fn promises_of_one_envelope_are_accused_of_and_answered_apart() {
        assert_eq!(open(&[accused(5), accused(4)]), [4, 5]);
        assert_eq!(open(&[accused(5), accused(4), answered(5)]), [4]);
    }

    #[test]
    fn two_sequencers_promises_of_the_same_are_two() {
        let other = GivenPromise { sequencer: Address::repeat_byte(8), ..promise(5) };
        let accuser = Address::ZERO;
        let theirs = SequencerEvent::Accused { promise: other, accuser, answer_until: 9 };
        assert_eq!(open(&[accused(5), theirs, answered(5)]), [5]);
        assert_eq!(open_accusations(&[accused(5), theirs, answered(5)])[0].promise, other);
    }
}

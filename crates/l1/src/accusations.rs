//! Accusations of the sequencer that nobody answered yet, after the newest block.

use std::collections::BTreeMap;

use blindfold_protocol::B256;

use crate::{L1Client, L1Error, OmissionAnswer, SequencerEvent, contracts::BlindedInbox};

/// An accusation that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAccusation {
    /// The promise's hash, which names the accusation.
    pub promise_hash: B256,
    /// The envelope that is said to be left out.
    pub envelope_id: B256,
    /// keccak256 of the item that was promised: no copy with other bytes will do.
    pub item_hash: B256,
    /// The number up to which it was to be sealed.
    pub seal_by: u64,
    /// The L1 block after which the bond is lost without an answer.
    pub answer_until: u64,
}

/// The accusations that these events, in L1 order, leave open; by promise.
pub fn open_accusations(events: &[SequencerEvent]) -> Vec<OpenAccusation> {
    let mut open = BTreeMap::new();
    for event in events {
        match *event {
            SequencerEvent::Accused {
                promise_hash, envelope_id, item_hash, seal_by, answer_until, ..
            } => {
                let accusation =
                    OpenAccusation { promise_hash, envelope_id, item_hash, seal_by, answer_until };
                open.insert(promise_hash, accusation);
            }
            SequencerEvent::Answered { promise_hash, .. } | SequencerEvent::Omission { promise_hash, .. } => {
                open.remove(&promise_hash);
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
        let count: u64 =
            self.inner.rpc.view("openAccusations", inbox, &call, "latest").await?.saturating_to();
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

    /// The number by which it was promised.
    pub fn seal_by(&self) -> u64 {
        self.seal_by
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

    const HASH: B256 = B256::repeat_byte(0xaa);

    fn id(n: u8) -> B256 {
        B256::repeat_byte(n)
    }

    /// The accusation over promise `n`, of an envelope that all of them are about.
    fn accused(n: u8, seal_by: u64) -> SequencerEvent {
        SequencerEvent::Accused {
            promise_hash: id(n),
            envelope_id: id(0xee),
            item_hash: HASH,
            accuser: Address::ZERO,
            seal_by,
            answer_until: 9,
        }
    }

    fn open(n: u8, seal_by: u64) -> OpenAccusation {
        OpenAccusation {
            promise_hash: id(n),
            envelope_id: id(0xee),
            item_hash: HASH,
            seal_by,
            answer_until: 9,
        }
    }

    #[test]
    fn what_is_answered_or_slashed_is_open_no_more() {
        let answered = SequencerEvent::Answered { promise_hash: id(1), answerer: Address::ZERO, number: 3 };
        let slashed = SequencerEvent::Omission { promise_hash: id(2), accuser: Address::ZERO };
        let events = [accused(1, 5), accused(2, 5), accused(3, 5), answered, slashed];
        assert_eq!(open_accusations(&events), [open(3, 5)]);
        // An accusation that was made before these events is closed by them, too.
        assert_eq!(open_accusations(&[answered]), []);
    }

    #[test]
    fn promises_of_one_envelope_are_accused_of_and_answered_apart() {
        let answered = SequencerEvent::Answered { promise_hash: id(1), answerer: Address::ZERO, number: 3 };
        let both = [accused(1, 5), accused(2, 4)];
        assert_eq!(open_accusations(&both), [open(1, 5), open(2, 4)]);
        assert_eq!(open_accusations(&[both[0], both[1], answered]), [open(2, 4)]);
    }
}

//! What the model does without roles, servers and time, call by call: for a test that compares it with the contracts.

use std::sync::Arc;

use blindfold_chain::FallbackHeader;
use blindfold_l1::{HintEvent, HintPosting, PostedHead, PostedRun, PublisherBond, RunReference};
use blindfold_protocol::{Address, B256, BatchHeader, Deployment, Epochs, L1Timing};

pub use super::Transaction;
use super::{
    L1Error,
    contracts::{Rules, State},
    hints::Judge,
};

/// What never changes.
pub struct Settings {
    /// The contracts.
    pub deployment: Deployment,
    /// Their deadlines.
    pub timing: L1Timing,
    /// Who signs headers.
    pub sequencer: Address,
    /// Registered epochs.
    pub epochs: Epochs,
    /// Judges hints.
    pub judge: Judge,
}

/// The contracts as the model has them. A clone goes its own way.
#[derive(Clone)]
pub struct Model {
    rules: Arc<Rules>,
    state: State,
}

impl Model {
    /// After this block and its second, with contracts of an earlier block.
    pub fn new(settings: Settings, newest: u64, time: u64, deployed_at: u64) -> Self {
        let Settings { deployment, timing, sequencer, epochs, judge } = settings;
        let rules = Arc::new(Rules { deployment, epochs, sequencer, timing, judge });
        Self { rules, state: State::new(newest, time, deployed_at) }
    }

    /// The deadlines.
    pub fn timing(&self) -> &L1Timing {
        &self.rules.timing
    }

    /// Begins a block.
    pub fn begin(&mut self, newest: u64, time: u64) {
        (self.state.newest, self.state.time) = (newest, time);
    }

    /// Executes a call in the newest block.
    ///
    /// # Errors
    /// When the contracts refuse it.
    pub fn execute(&mut self, account: Address, transaction: &Transaction) -> Result<(), L1Error> {
        self.state.execute(&self.rules, account, transaction).map(|_| ())
    }

    /// Whether the next block can hold a header of L1's.
    pub fn header_is_due(&self) -> bool {
        self.state.header_is_due(&self.rules)
    }

    /// The newest block.
    pub fn newest(&self) -> u64 {
        self.state.newest
    }

    /// Its second.
    pub fn time(&self) -> u64 {
        self.state.time
    }

    /// The head as the inbox tells of it.
    pub fn head(&self) -> PostedHead {
        let (number, hash) = self.state.head_id(&self.rules.deployment);
        let head = self.state.head();
        PostedHead {
            number,
            hash,
            timestamp_ms: head.map_or(0, |head| head.timestamp_ms),
            l1_origin_number: head.map_or(0, |head| head.l1_origin_number),
            forced_cursor: head.map_or(0, |head| head.forced_cursor),
            block: self.state.newest,
        }
    }

    /// The head itself.
    pub fn head_header(&self) -> Option<BatchHeader> {
        self.state.head().copied()
    }

    /// The block of the last certified posting.
    pub fn certified_at(&self) -> u64 {
        self.state.certified_at
    }

    /// What was posted and made, in order.
    pub fn runs(&self) -> Vec<PostedRun> {
        self.state.posted.iter().map(|posted| posted.run.clone()).collect()
    }

    /// The headers that L1 made.
    pub fn made(&self) -> &[FallbackHeader] {
        &self.state.made
    }

    /// The blocks in which data of posted headers came.
    pub fn reposted(&self) -> Vec<u64> {
        self.state.reposted.iter().map(|(block, _)| *block).collect()
    }

    /// How many items were forced, with the block of each.
    pub fn forced(&self) -> Vec<u64> {
        self.state.forced.iter().map(|entry| entry.enqueued_at).collect()
    }

    /// The last block that was claimed.
    pub fn claimed(&self) -> u64 {
        self.state.outputs.last().map_or(0, |(_, output)| output.l2_block)
    }

    /// What happened to hints, from the beginning.
    pub fn hint_events(&self) -> Vec<HintEvent> {
        self.state.hints.events(0, u64::MAX)
    }

    /// The run of a posting and what was posted.
    pub fn hints(&self, id: u64) -> Option<(RunReference, HintPosting)> {
        self.state.hints.data_of(id)
    }

    /// A publisher's bond.
    pub fn bond(&self, publisher: Address) -> PublisherBond {
        self.state.hints.bond(publisher)
    }

    /// What an account can claim.
    pub fn reward(&self, account: Address) -> u128 {
        self.state.hints.reward(account)
    }

    /// When there was committed to evidence, unless the commitment was used up.
    pub fn committed_at(&self, commitment: B256) -> Option<u64> {
        self.state.hints.committed_at(commitment)
    }

    /// Whether these two headers were shown.
    pub fn is_shown(&self, evidence: B256) -> bool {
        self.state.shown.iter().any(|(_, shown)| *shown == evidence)
    }

    /// When two headers of this number were first shown, if that lets L1 make it.
    pub fn equivocated_at(&self, number: u64) -> Option<u64> {
        self.state.equivocated.get(&number).copied()
    }
}

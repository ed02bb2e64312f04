//! `HintRegistry` and the dispute of two signed headers, by their rules, with the judge of a posting in place of what
//! `HintJudge` computes.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_bte::Backend;
use blindfold_chain::{ParameterSet, verify_hints};
use blindfold_l1::{
    HintEvent, HintEvidence, HintPosting, HintTree, L1Error, PostedBatch, PostedHints, PostedLog,
    PublisherBond, RunReference,
};
use blindfold_protocol::{Address, B256, L1Timing, SealedBatch, keccak256};

use super::contracts::refused;

/// The least bond of a publisher with open postings, in wei.
pub(super) const PUBLISHER_BOND: u128 = 1_000;
/// What a challenge stakes, in wei.
pub(super) const CHALLENGE_STAKE: u128 = 10;
/// Why a posting is slashed: the model has one reason.
const REASON: u8 = 5;

/// Says whether a posted entry is right.
#[derive(Clone)]
pub struct Judge {
    /// The committees' parameters.
    pub parameters: Arc<ParameterSet>,
    /// Does the cryptography.
    pub backend: Arc<dyn Backend>,
}

impl Judge {
    /// Whether the entry of this evidence is wrong; nothing is said where that cannot be told.
    fn is_wrong(&self, evidence: &HintEvidence) -> Result<bool, L1Error> {
        let header = &evidence.batch.header;
        let Some(parameters) = self.parameters.at(header.number) else { return refused("no epoch") };
        let Some(posted) = evidence.data.hints.batch(evidence.data.run.first, header.number) else {
            return refused("no such batch");
        };
        if posted.entries.len() != header.envelope_count as usize {
            return Ok(true);
        }
        let place = evidence.index as usize;
        let (Some(entry), Some(item), Some(verdict)) =
            (posted.entries.get(place), evidence.batch.items.get(place), evidence.verdicts.get(place))
        else {
            return refused("no such entry");
        };
        // It is judged as if there were no others.
        let alone = PostedBatch { entries: vec![*entry], singletons: posted.singletons.clone() };
        let Ok(hints) = alone.to_hints(header.number, header.hash()) else { return Ok(true) };
        let batch = SealedBatch { items: vec![item.clone()], ..evidence.batch.clone() };
        Ok(verify_hints(self.backend.as_ref(), &parameters, &batch, &[*verdict], &hints).is_err())
    }
}

#[derive(Clone, Copy, Default)]
struct Run {
    is_final: bool,
    open: u32,
    is_void: bool,
    slashed_at: u64,
}

#[derive(Clone, Copy, Default)]
struct Publisher {
    bond: u128,
    open: u32,
    slashed_below: u64,
    slashed_at: u64,
}

/// What stands in the registry after a block.
#[derive(Clone, Default)]
pub(super) struct Registry {
    count: u64,
    /// Postings that are open or invalidated, by id.
    unclosed: BTreeMap<u64, PostedLog>,
    runs: BTreeMap<u64, Run>,
    publishers: BTreeMap<Address, Publisher>,
    rewards: BTreeMap<Address, u128>,
    /// Each with its block.
    events: Vec<(u64, HintEvent)>,
    /// Every posting's run and data, by id.
    data: BTreeMap<u64, (RunReference, Arc<HintPosting>)>,
    /// Commitments to evidence, each with its block.
    commitments: BTreeMap<B256, u64>,
}

impl Registry {
    pub fn deposit_bond(&mut self, publisher: Address, amount: u128) {
        self.publishers.entry(publisher).or_default().bond += amount;
    }

    pub fn bond(&self, publisher: Address) -> PublisherBond {
        let Publisher { bond, open, .. } = self.publishers.get(&publisher).copied().unwrap_or_default();
        PublisherBond { total: bond, locked: if open == 0 { 0 } else { PUBLISHER_BOND }, open }
    }

    pub fn reward(&self, account: Address) -> u128 {
        self.rewards.get(&account).copied().unwrap_or_default()
    }

    pub fn claim_reward(&mut self, account: Address) -> Result<(), L1Error> {
        match self.rewards.remove(&account) {
            Some(amount) if amount > 0 => Ok(()),
            _ => refused("no reward"),
        }
    }

    /// Whether a posting is open, or invalidated and not cleared away.
    pub fn has_open(&self) -> bool {
        !self.unclosed.is_empty()
    }

    /// What happened in these blocks.
    pub fn events(&self, after: u64, through: u64) -> Vec<HintEvent> {
        let within = self.events.iter().filter(|(block, _)| (after + 1..=through).contains(block));
        within.map(|(_, event)| *event).collect()
    }

    /// Runs that were declared void in blocks up to this one: first and last batch.
    pub fn void_runs(&self, through: u64) -> Vec<(u64, u64)> {
        let void = self.events.iter().filter(|(block, _)| *block <= through);
        void.filter_map(|(_, event)| match event {
            HintEvent::Voided { first, last } => Some((*first, *last)),
            _ => None,
        })
        .collect()
    }

    /// Postings of these blocks, with their data.
    pub fn posted(&self, after: u64, through: u64) -> Vec<PostedHints> {
        let posted = |event: HintEvent| match event {
            HintEvent::Posted(log) => Some(PostedHints {
                id: log.id,
                first: log.first,
                last: log.last,
                publisher: log.publisher,
                l1_block: log.l1_block,
                transaction: log.transaction,
                hints: Ok(self.data.get(&log.id)?.1.as_ref().clone()),
            }),
            _ => None,
        };
        self.events(after, through).into_iter().filter_map(posted).collect()
    }

    /// The run and the hints of the posting of this id.
    pub fn data_of(&self, id: u64) -> Option<(RunReference, HintPosting)> {
        self.data.get(&id).map(|(run, hints)| (*run, hints.as_ref().clone()))
    }

    /// The run and the hints of a posting.
    pub fn data(&self, posted: &PostedLog) -> Option<(RunReference, HintPosting)> {
        let there = self.events.iter().any(|(_, event)| *event == HintEvent::Posted(*posted));
        let (run, hints) = self.data.get(&posted.id).filter(|_| there)?;
        Some((*run, hints.as_ref().clone()))
    }

    /// Whether hints of this number stand by blocks up to this one, open or final.
    pub fn has_hints(&self, number: u64, through: u64) -> bool {
        let mut open: BTreeMap<u64, PostedLog> = BTreeMap::new();
        for (_, event) in self.events.iter().filter(|(block, _)| *block <= through) {
            match *event {
                HintEvent::Posted(log) => drop(open.insert(log.id, log)),
                HintEvent::Slashed { publisher, .. } => open.retain(|_, log| log.publisher != publisher),
                HintEvent::Released { id, .. } | HintEvent::Dropped { id, .. } => drop(open.remove(&id)),
                HintEvent::Finalized { first, last, .. } if (first..=last).contains(&number) => return true,
                _ => {}
            }
        }
        open.values().any(|log| (log.first..=log.last).contains(&number))
    }

    pub fn commit(&mut self, commitment: B256, block: u64) {
        self.commitments.entry(commitment).or_insert(block);
    }

    pub fn committed_at(&self, commitment: B256) -> Option<u64> {
        self.commitments.get(&commitment).copied()
    }

    /// Uses up a commitment of an earlier block.
    pub fn reveal(&mut self, commitment: B256, block: u64) -> Result<(), L1Error> {
        match self.commitments.get(&commitment) {
            Some(committed_at) if *committed_at < block => {
                self.commitments.remove(&commitment);
                Ok(())
            }
            _ => refused("no commitment of an earlier block"),
        }
    }

    fn run(&self, last: u64) -> Result<Run, L1Error> {
        let run = self.runs.get(&last).copied().unwrap_or_default();
        match run {
            Run { is_final: true, .. } => refused("the run is final"),
            Run { is_void: true, .. } => refused("the run is void"),
            run => Ok(run),
        }
    }

    fn is_invalidated(&self, log: &PostedLog) -> bool {
        self.publishers.get(&log.publisher).is_some_and(|publisher| log.id < publisher.slashed_below)
    }

    /// `postHints`; that the run was posted was checked.
    pub fn post(
        &mut self,
        publisher: Address,
        run: RunReference,
        hints: &Arc<HintPosting>,
        block: u64,
    ) -> Result<u64, L1Error> {
        self.run(run.last)?;
        if hints.batches.len() as u64 != run.last - run.first + 1 {
            return refused("hints of other batches");
        }
        let root = HintTree::new(hints, run.first).root();
        let twin = self.unclosed.values().find(|log| (log.last, log.root) == (run.last, root));
        if let Some(twin) = twin.copied() {
            if !self.is_invalidated(&twin) {
                return refused("the same hints are open");
            }
            self.drop_invalidated(twin.id, block)?;
        }
        let known = self.publishers.entry(publisher).or_default();
        if known.bond < PUBLISHER_BOND {
            return refused("the bond is too low");
        }
        known.open += 1;
        self.count += 1;
        let id = self.count;
        let state = self.run(run.last)?;
        self.runs.insert(run.last, Run { open: state.open + 1, ..state });
        let transaction = keccak256(id.to_be_bytes());
        let log =
            PostedLog { id, first: run.first, last: run.last, publisher, l1_block: block, transaction, root };
        self.unclosed.insert(id, log);
        self.data.insert(id, (run, Arc::clone(hints)));
        self.events.push((block, HintEvent::Posted(log)));
        Ok(id)
    }

    fn opened(&self, id: u64) -> Result<PostedLog, L1Error> {
        match self.unclosed.get(&id) {
            Some(log) if !self.is_invalidated(log) => Ok(*log),
            _ => refused("the posting is not open"),
        }
    }

    /// Takes it from what is open or invalidated.
    fn close(&mut self, log: &PostedLog) {
        self.unclosed.remove(&log.id);
        if let Some(run) = self.runs.get_mut(&log.last) {
            run.open -= 1;
        }
    }

    fn is_over(log: &PostedLog, timing: &L1Timing, block: u64) -> Result<(), L1Error> {
        match block < log.l1_block + u64::from(timing.challenge_window) {
            true => refused("the window is not over"),
            false => Ok(()),
        }
    }

    pub fn finalize(&mut self, id: u64, timing: &L1Timing, block: u64) -> Result<PostedLog, L1Error> {
        let log = self.opened(id)?;
        Self::is_over(&log, timing, block)?;
        self.run(log.last)?;
        self.close(&log);
        self.freed(log.publisher);
        self.runs.entry(log.last).or_default().is_final = true;
        self.events.push((block, HintEvent::Finalized { id, first: log.first, last: log.last }));
        Ok(log)
    }

    pub fn release(&mut self, id: u64, timing: &L1Timing, block: u64) -> Result<(), L1Error> {
        let log = self.opened(id)?;
        Self::is_over(&log, timing, block)?;
        if !self.runs.get(&log.last).is_some_and(|run| run.is_final) {
            return refused("the run is not final");
        }
        self.close(&log);
        self.freed(log.publisher);
        self.events.push((block, HintEvent::Released { id, last: log.last }));
        Ok(())
    }

    fn freed(&mut self, publisher: Address) {
        if let Some(publisher) = self.publishers.get_mut(&publisher) {
            publisher.open -= 1;
        }
    }

    fn drop_invalidated(&mut self, id: u64, block: u64) -> Result<(), L1Error> {
        let Some(log) = self.unclosed.get(&id).copied().filter(|log| self.is_invalidated(log)) else {
            return refused("the posting is not invalidated");
        };
        self.close(&log);
        let slashed_at = self.publishers.get(&log.publisher).map_or(0, |publisher| publisher.slashed_at);
        if let Some(run) = self.runs.get_mut(&log.last) {
            run.slashed_at = run.slashed_at.max(slashed_at);
        }
        self.events.push((block, HintEvent::Dropped { id, last: log.last }));
        Ok(())
    }

    /// `challenge`: gives whether the posting was wrong.
    pub fn challenge(
        &mut self,
        judge: &Judge,
        challenger: Address,
        evidence: &HintEvidence,
        block: u64,
    ) -> Result<bool, L1Error> {
        let log = self.opened(evidence.posting.id)?;
        let id = log.id;
        if !self.data.get(&id).is_some_and(|(_, hints)| **hints == evidence.data.hints) {
            return refused("other hints than those posted");
        }
        if !judge.is_wrong(evidence)? {
            *self.rewards.entry(log.publisher).or_default() += CHALLENGE_STAKE;
            self.events.push((block, HintEvent::ChallengeFailed { id, challenger }));
            return Ok(false);
        }
        self.close(&log);
        if let Some(run) = self.runs.get_mut(&log.last) {
            run.slashed_at = block;
        }
        let slashed = Publisher { slashed_below: self.count + 1, slashed_at: block, ..Publisher::default() };
        let bond = self.publishers.insert(log.publisher, slashed).map_or(0, |before| before.bond);
        *self.rewards.entry(challenger).or_default() += bond / 2 + CHALLENGE_STAKE;
        self.events.push((
            block,
            HintEvent::Slashed {
                id,
                last: log.last,
                challenger,
                publisher: log.publisher,
                number: evidence.batch.header.number,
                index: evidence.index,
                reason: REASON,
                l1_block: block,
            },
        ));
        Ok(true)
    }

    /// What whoever wants a run void does: drops what is invalidated of it, and declares it so where that is due.
    pub fn void(&mut self, run: &RunReference, timing: &L1Timing, block: u64) -> Result<(), L1Error> {
        let invalidated =
            self.unclosed.values().filter(|log| log.last == run.last && self.is_invalidated(log));
        let invalidated: Vec<u64> = invalidated.map(|log| log.id).collect();
        let state = self.run(run.last)?;
        let due = run.posted_at.max(state.slashed_at) + u64::from(timing.hint_deadline);
        if block < due || state.open as usize != invalidated.len() {
            return refused("the run is not to be declared void");
        }
        for id in invalidated {
            self.drop_invalidated(id, block)?;
        }
        let state = self.run(run.last)?;
        if block < run.posted_at.max(state.slashed_at) + u64::from(timing.hint_deadline) {
            return Ok(());
        }
        self.runs.insert(run.last, Run { is_void: true, ..state });
        self.events.push((block, HintEvent::Voided { first: run.first, last: run.last }));
        Ok(())
    }
}

//! What `HintRegistry` holds: the fold of its events, for whoever challenges, publishes, settles or looks.

use std::collections::BTreeMap;

use crate::{
    events::{HintEvent, PostedLog},
    posting::run::RunReference,
};

/// A posting of hints, without the hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredHints {
    /// The posting as its event says.
    pub posted: PostedLog,
    /// What has become of it since.
    pub state: PostingState,
}

/// What became of a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostingState {
    /// It can be challenged, and become final.
    Open,
    /// It is its run's hints for good.
    Final,
    /// An entry was shown to be wrong, and its publisher's bond is gone.
    Slashed,
    /// It was open when another one of its publisher's was slashed: no bond answers for it, and it can be dropped.
    Invalidated,
    /// It was invalidated and is cleared away.
    Dropped,
    /// Its run has others for good, and no bond need answer for it.
    Released,
}

/// Postings of hints and the runs that they settle, as far as the events say that were taken in L1 order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryState {
    postings: BTreeMap<u64, RegisteredHints>,
    /// Runs with final hints, by last batch.
    final_runs: BTreeMap<u64, u64>,
    /// Runs declared void, by last batch, with their first.
    void: BTreeMap<u64, u64>,
    /// By last batch of a run, the block of the newest slashing that took hints of it away.
    slashed: BTreeMap<u64, u64>,
}

impl RegistryState {
    /// Takes the next event, in L1's order.
    pub fn apply(&mut self, event: &HintEvent) {
        match *event {
            HintEvent::Posted(posted) => {
                let state = PostingState::Open;
                self.postings.insert(posted.id, RegisteredHints { posted, state });
            }
            HintEvent::Slashed { id, publisher, l1_block, .. } => {
                for hints in self.postings.values_mut().filter(|hints| hints.posted.publisher == publisher) {
                    hints.state = match hints.state {
                        _ if hints.posted.id == id => PostingState::Slashed,
                        // An invalidated one takes the newest slashing with it when it is dropped.
                        PostingState::Open | PostingState::Invalidated => PostingState::Invalidated,
                        _ => continue,
                    };
                    self.slashed.insert(hints.posted.last, l1_block);
                }
            }
            HintEvent::ChallengeFailed { .. } => {}
            HintEvent::Finalized { id, first, last } => {
                self.end(id, PostingState::Final);
                self.final_runs.insert(last, first);
            }
            HintEvent::Released { id, .. } => self.end(id, PostingState::Released),
            HintEvent::Dropped { id, .. } => self.end(id, PostingState::Dropped),
            HintEvent::Voided { first, last } => {
                self.void.insert(last, first);
            }
        }
    }

    fn end(&mut self, id: u64, state: PostingState) {
        if let Some(hints) = self.postings.get_mut(&id) {
            hints.state = state;
        }
    }

    /// All postings that are kept, by id.
    pub fn postings(&self) -> impl Iterator<Item = &RegisteredHints> {
        self.postings.values()
    }

    /// The posting of this id.
    pub fn posting(&self, id: u64) -> Option<&RegisteredHints> {
        self.postings.get(&id)
    }

    /// Postings that can be challenged and become final, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &PostedLog> {
        self.postings().filter(|hints| hints.state == PostingState::Open).map(|hints| &hints.posted)
    }

    /// Those of them for the run that ends at `last`.
    pub fn open_for(&self, last: u64) -> impl Iterator<Item = &PostedLog> {
        self.open().filter(move |posted| posted.last == last)
    }

    /// The posting of this id, if it is open.
    pub fn open_posting(&self, id: u64) -> Option<&PostedLog> {
        let open = self.posting(id).filter(|hints| hints.state == PostingState::Open);
        open.map(|hints| &hints.posted)
    }

    /// Whether the run that ends at `last` has hints for good, or is void.
    pub fn is_settled(&self, last: u64) -> bool {
        self.final_runs.contains_key(&last) || self.void.contains_key(&last)
    }

    /// Runs declared void: first and last batch, in order.
    pub fn void_runs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.void.iter().map(|(last, first)| (*first, *last))
    }

    /// Whether the run that ends at `last` is settled, or has hints that may settle it, as far as the events show.
    pub fn covers(&self, last: u64) -> bool {
        let stands =
            |state| matches!(state, PostingState::Open | PostingState::Final | PostingState::Released);
        let posted = |hints: &RegisteredHints| hints.posted.last == last && stands(hints.state);
        self.is_settled(last) || self.postings().any(posted)
    }

    /// The block from which on a run without hints can be declared void, by the hint deadline in blocks: a slashing
    /// that took hints of it away gave the time for new ones (VR-1).
    pub fn void_from(&self, run: &RunReference, deadline: u64) -> u64 {
        let slashed = self.slashed.get(&run.last).copied().unwrap_or_default();
        run.posted_at.max(slashed).saturating_add(deadline)
    }

    /// The postings of the run that ends at `last` which have to be dropped before it can be declared void.
    pub fn invalidated(&self, last: u64) -> impl Iterator<Item = &PostedLog> {
        let invalidated = move |hints: &&RegisteredHints| {
            hints.posted.last == last && hints.state == PostingState::Invalidated
        };
        self.postings().filter(invalidated).map(|hints| &hints.posted)
    }

    /// Forgets all runs but those whose last batch is to be kept, with their postings.
    pub fn keep_runs(&mut self, keep: impl Fn(u64) -> bool) {
        self.postings.retain(|_, hints| keep(hints.posted.last));
        for runs in [&mut self.final_runs, &mut self.void, &mut self.slashed] {
            runs.retain(|last, _| keep(*last));
        }
    }

    /// Forgets everything but open postings.
    pub fn keep_open(&mut self) {
        let open = |hints: &RegisteredHints| hints.state == PostingState::Open;
        *self = Self {
            postings: std::mem::take(&mut self.postings)
                .into_iter()
                .filter(|(_, hints)| open(hints))
                .collect(),
            ..Self::default()
        };
    }
}

impl<'a> FromIterator<&'a HintEvent> for RegistryState {
    fn from_iter<I: IntoIterator<Item = &'a HintEvent>>(events: I) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|event| state.apply(event));
        state
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};

    use super::*;

    fn posted(id: u64, last: u64, publisher: u8) -> HintEvent {
        HintEvent::Posted(PostedLog {
            id,
            first: last,
            last,
            publisher: Address::repeat_byte(publisher),
            l1_block: 5,
            transaction: B256::ZERO,
            root: B256::repeat_byte(id as u8),
        })
    }

    fn slashed(id: u64, last: u64, publisher: u8) -> HintEvent {
        slashed_at(id, last, publisher, 9)
    }

    fn slashed_at(id: u64, last: u64, publisher: u8, l1_block: u64) -> HintEvent {
        HintEvent::Slashed {
            id,
            last,
            challenger: Address::ZERO,
            publisher: Address::repeat_byte(publisher),
            number: last,
            index: 0,
            reason: 5,
            l1_block,
        }
    }

    fn open(state: &RegistryState, last: u64) -> Vec<u64> {
        state.open_for(last).map(|posted| posted.id).collect()
    }

    #[test]
    fn a_slashing_invalidates_the_publishers_open_postings() {
        let finalized = HintEvent::Finalized { id: 1, first: 4, last: 4 };
        let events =
            [posted(1, 4, 1), finalized, posted(2, 5, 1), posted(3, 6, 1), posted(4, 5, 2), slashed(3, 6, 1)];
        let mut state: RegistryState = events.iter().collect();
        let states: Vec<PostingState> = state.postings().map(|hints| hints.state).collect();
        use PostingState::{Dropped, Final, Invalidated, Open, Slashed};
        assert_eq!(states, [Final, Invalidated, Slashed, Open]);
        assert_eq!([4, 5, 6].map(|last| state.covers(last)), [true, true, false]);
        assert_eq!(state.invalidated(5).map(|posted| posted.id).collect::<Vec<_>>(), [2]);
        let run = |last| RunReference { first: last, last, posted_at: 5, header_root: B256::ZERO };
        assert_eq!([5, 6, 7].map(|last| state.void_from(&run(last), 100)), [109, 109, 105]);
        // What comes after it stands.
        state.apply(&posted(5, 6, 1));
        state.apply(&HintEvent::Dropped { id: 2, last: 5 });
        assert_eq!((open(&state, 5), open(&state, 6)), (vec![4], vec![5]));
        assert_eq!(state.posting(2).map(|hints| hints.state), Some(Dropped));
        state.keep_open();
        assert_eq!(state.postings().map(|hints| hints.posted.id).collect::<Vec<_>>(), [4, 5]);
        assert!(!state.is_settled(4), "it is forgotten");
    }

    /// As `HintRegistry` has it: what is cleared away counts from the newest slashing of its publisher.
    #[test]
    fn another_slashing_gives_more_time_to_runs_whose_invalidated_hints_are_not_cleared_away() {
        let events = [posted(1, 4, 1), posted(2, 5, 1), slashed(2, 5, 1), posted(3, 6, 1)];
        let mut state: RegistryState = events.iter().collect();
        state.apply(&slashed_at(3, 6, 1, 20));
        let run = |last| RunReference { first: last, last, posted_at: 5, header_root: B256::ZERO };
        assert_eq!([4, 5, 6].map(|last| state.void_from(&run(last), 100)), [120, 109, 120]);
        state.apply(&HintEvent::Dropped { id: 1, last: 4 });
        assert_eq!(state.void_from(&run(4), 100), 120);
    }

    #[test]
    fn a_run_is_settled_for_good_and_its_other_postings_are_released() {
        let mut state: RegistryState = [posted(1, 4, 1), posted(2, 4, 2), posted(3, 5, 2)].iter().collect();
        assert_eq!((open(&state, 4), state.is_settled(4)), (vec![1, 2], false));
        state.apply(&HintEvent::Finalized { id: 2, first: 4, last: 4 });
        assert_eq!((open(&state, 4), state.is_settled(4)), (vec![1], true), "a bond answers for the first");
        state.apply(&HintEvent::Released { id: 1, last: 4 });
        assert_eq!((open(&state, 4), state.open_posting(1)), (vec![], None));
        state.apply(&HintEvent::Voided { first: 6, last: 9 });
        assert!(state.covers(9) && state.is_settled(9) && !state.is_settled(5));
        assert_eq!(state.void_runs().collect::<Vec<_>>(), [(6, 9)]);
        state.keep_runs(|last| last > 4);
        assert_eq!([4, 9].map(|last| state.is_settled(last)), [false, true]);
        assert_eq!(open(&state, 5), [3]);
    }
}

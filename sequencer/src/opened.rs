//! Posted hints by which data can be posted as what it was opened to.
//!
//! The session keys of such data stand in a posting of hints, so it waits for one that says what this sequencer's own hints
//! say. Only final blocks count: an id that L1 gave can change before that.

use std::{collections::BTreeMap, time::Duration};

use blindfold_l1::{HintEvent, HintPosting, HintRoots, HintsReference, L1Error, L1Reader, PostedLog};
use blindfold_runtime::{Instant, now};
use blindfold_store::Store;

use crate::poster::L1RoundError;

/// L1 blocks of which hints are asked for at once.
const STEP_BLOCKS: u64 = 1_000;
/// Postings that are kept at most; the oldest go first, and their data is then posted as it is.
const MAX_KNOWN: usize = 4_096;

/// Refusals after which data is posted as it is.
const MAX_FAILURES: u32 = 3;

/// A posting of hints, and the numbers that it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opens {
    pub hints: HintsReference,
    pub first: u64,
    pub last: u64,
}

/// What L1 was read for so far.
#[derive(Debug, Default)]
pub(crate) struct OpenedBy {
    /// The block up to which it was read; none before the first.
    through: Option<u64>,
    /// By id.
    known: BTreeMap<u64, PostedLog>,
    /// Whether they say what our own hints say, as far as that is known.
    judged: BTreeMap<u64, bool>,
    /// How often L1 refused data that was opened by them.
    failures: BTreeMap<u64, u32>,
    /// When members are asked again to read what these open: they were asked in vain.
    unheard: BTreeMap<u64, Instant>,
}

impl OpenedBy {
    /// Reads what was posted after this block at first, and after what was read since.
    pub async fn read(&mut self, l1: &dyn L1Reader, after: u64, finalized: u64) -> Result<(), L1Error> {
        let mut through = *self.through.get_or_insert(after);
        while through < finalized {
            let next = finalized.min(through.saturating_add(STEP_BLOCKS));
            for event in l1.hint_events(through, next).await? {
                match event {
                    HintEvent::Posted(posted) => {
                        self.known.insert(posted.id, posted);
                    }
                    // It was wrong somewhere: nothing more is opened by it.
                    HintEvent::Slashed { id, .. } => self.refuse(id),
                    _ => {}
                }
            }
            (through, self.through) = (next, Some(next));
        }
        if self.known.len() > MAX_KNOWN {
            // What anybody posted wrong goes before what data waits for.
            let judged = &self.judged;
            self.known.retain(|id, _| judged.get(id) != Some(&false));
        }
        while self.known.len() > MAX_KNOWN && self.known.pop_first().is_some() {}
        self.forget_unknown();
        Ok(())
    }

    /// Nothing below this number is looked for any more.
    pub fn forget_below(&mut self, number: u64) {
        self.known.retain(|_, posted| posted.last >= number);
        self.forget_unknown();
    }

    fn forget_unknown(&mut self) {
        let known = &self.known;
        self.judged.retain(|id, _| known.contains_key(id));
        self.failures.retain(|id, _| known.contains_key(id));
        self.unheard.retain(|id, _| known.contains_key(id));
    }

    /// Whether nothing speaks against it.
    pub fn may_open(&self, id: u64) -> bool {
        self.judged.get(&id) != Some(&false)
    }

    /// Posting by it failed. What may pass is tried again, but not for ever.
    pub fn failed(&mut self, id: u64, fault: &L1Error) {
        let is_final = matches!(
            fault,
            L1Error::TransactionTooLarge { .. }
                | L1Error::GasAboveLimit { .. }
                | L1Error::Blobs(_)
                | L1Error::Run(_)
        );
        let failures = self.failures.entry(id).or_default();
        *failures += u32::from(!fault.is_transient());
        if is_final || *failures >= MAX_FAILURES {
            self.refuse(id);
        }
    }

    /// Members did not say in time whether they can read what it opens: they are asked again after this pause. Nothing else
    /// waits for them meanwhile.
    pub fn not_heard(&mut self, id: u64, pause_ms: u64) {
        self.unheard.insert(id, now() + Duration::from_millis(pause_ms));
    }

    /// Members read what it opens.
    pub fn heard(&mut self, id: u64) {
        self.unheard.remove(&id);
    }

    /// When members are asked again to read what it opens; `None` if they were never asked in vain. Who was asked longest ago
    /// is first.
    pub fn ask_again_at(&self, id: u64) -> Option<Instant> {
        self.unheard.get(&id).copied()
    }

    /// Whether members can be asked now to read what it opens.
    pub fn may_ask(&self, id: u64) -> bool {
        self.ask_again_at(id).is_none_or(|at| at <= now())
    }

    /// It is of no use after all.
    pub fn refuse(&mut self, id: u64) {
        self.judged.insert(id, false);
    }

    /// The postings with our own hints of runs that have one of these numbers: those in calldata, and those in blobs where data
    /// may be in blobs itself.
    pub async fn of(
        &mut self,
        store: &dyn Store,
        in_blobs: bool,
        spans: &[(u64, u64)],
    ) -> Result<Vec<Opens>, L1RoundError> {
        let mut found: Vec<Opens> = Vec::new();
        for (id, posted) in &self.known {
            let PostedLog { first, last, .. } = *posted;
            let is_lacking = spans.iter().any(|(from, to)| first <= *to && *from <= last);
            // Another posting of the same run does as well, unless members did not read what it opens: anybody may have posted
            // the same hints where members do not find them.
            let unheard = &self.unheard;
            let does_as_well = |other: &Opens| {
                (other.first, other.last) == (first, last) && !unheard.contains_key(&other.hints.id)
            };
            if !is_lacking || found.iter().any(does_as_well) {
                continue;
            }
            let is_right = match self.judged.get(id) {
                Some(judged) => *judged,
                None => match is_own(store, in_blobs, posted).await? {
                    Some(judged) => {
                        self.judged.insert(*id, judged);
                        judged
                    }
                    // Our own hints are not all here yet.
                    None => false,
                },
            };
            if is_right {
                let hints = HintsReference { id: *id, l1_block: posted.l1_block };
                found.push(Opens { hints, first, last });
            }
        }
        Ok(found)
    }
}

/// Whether a posting has the hints that are stored here, in a place that lasts as long as the data may: what is to be in
/// calldata always does not depend on hints in blobs. `None` while there are none here.
async fn is_own(store: &dyn Store, in_blobs: bool, posted: &PostedLog) -> Result<Option<bool>, L1RoundError> {
    let mut hints = Vec::new();
    for number in posted.first..=posted.last {
        match store.batch(number).await?.and_then(|record| record.hints) {
            Some(own) => hints.push(own),
            None => return Ok(None),
        }
    }
    let own = HintPosting::of(&hints);
    if HintRoots::in_calldata(posted.first, &own).contain(posted.root) {
        return Ok(Some(true));
    }
    if !in_blobs {
        return Ok(Some(false));
    }
    let roots = HintRoots::of(posted.first, own).await.map_err(L1RoundError::L1)?;
    Ok(Some(roots.contain(posted.root)))
}

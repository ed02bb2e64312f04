//! What is known of data that L1 only names. Anybody can name any of it, as often as he pays for, in 38 bytes: a name must not
//! cost an answer of an archive for each call that has it, nor each time somebody looks (DA-4). The same of blobs, which cost a
//! beacon node's answer and their commitments.

use std::{collections::VecDeque, time::Duration};

use alloy_primitives::Bytes;
use blindfold_protocol::Canonical;
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;

use crate::{
    error::L1Error,
    posting::{
        archived::ArchivedData,
        place::DataName,
        run_data::{DataPart, PartName},
    },
    reader::remembered::Remembered,
};

/// Names that are remembered; the oldest go first.
const KEPT_NAMES: usize = 16_384;
/// Bytes that are kept of data in which nothing was found; the oldest go first.
const KEPT_BYTES: usize = 64 << 20;
/// What such data counts beside its bytes.
const DATA_COST_BYTES: usize = 1_024;
/// Pause before archives are asked once more for what none of them has, or in which nothing was found, in milliseconds.
const ABSENT_PAUSE_MS: u64 = 60_000;
/// The same for what one may have that does not answer.
const FAILED_PAUSE_MS: u64 = 500;
/// How often such a pause doubles.
const MAX_DOUBLINGS: u32 = 6;

/// What archives answered when they were asked for a name last.
enum Known {
    /// None gave it. Whoever had named it up to the block `through` ought to have put it there before.
    Withheld { asked: Instant, times: u32, fault: L1Error, through: u64 },
    /// It was fetched: which part of which data it is, if it is a part.
    Held(Option<PartName>),
}

/// A look through data of archives, or in blobs, that is no part of something longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataLook {
    /// The number that it is to begin with.
    pub from: u64,
    /// Whether it was read as a part, as `postData` brings one: the other kind of call may bring the same bytes in earnest.
    pub is_part: bool,
    pub named: DataName,
    /// What was looked for from there on: the first number, the last, and how many.
    pub wanted: Option<(u64, u64, usize)>,
}

#[derive(Default)]
struct Kept {
    names: Remembered<ArchivedData, Known, KEPT_NAMES>,
    /// When nothing was found, and how often before.
    looks: Remembered<DataLook, (Instant, u32), KEPT_NAMES>,
    /// Data in which nothing was found, the newest last.
    vain: VecDeque<(DataName, Bytes)>,
}

/// Not kept is data in which something was found: whether it is there still, the archives have to say.
#[derive(Default)]
pub(crate) struct Fetched(Mutex<Kept>);

impl Fetched {
    /// Why archives did not give what this L1 block names, where they are not to be asked again yet. What they did not have
    /// they may have been given since, by whoever names it in a later block.
    pub fn withheld(&self, named: &ArchivedData, l1_block: u64) -> Option<L1Error> {
        match self.0.lock().names.get(named) {
            Some(Known::Withheld { asked, times, fault, through })
                if asked.elapsed() < pause(fault, *times)
                    && (l1_block <= *through || fault.is_transient()) =>
            {
                Some(fault.clone())
            }
            _ => None,
        }
    }

    /// Remembers what the archives gave, or were given.
    pub fn note_held(&self, named: ArchivedData, bytes: &[u8]) {
        let part = DataPart::decode(bytes).ok().map(|part| part.name());
        self.0.lock().names.note(named, Known::Held(part));
    }

    /// Remembers that they did not give it when L1 had blocks up to this one.
    pub fn note_withheld(&self, named: ArchivedData, fault: &L1Error, through: u64) {
        let (times, fault) = (self.times_withheld(&named, fault), fault.clone());
        self.0.lock().names.note(named, Known::Withheld { asked: now(), times, fault, through });
    }

    /// How often it was withheld before in the same way.
    fn times_withheld(&self, named: &ArchivedData, by: &L1Error) -> u32 {
        match self.0.lock().names.get(named) {
            Some(Known::Withheld { times, fault, .. }) if fault.is_transient() == by.is_transient() => {
                times.saturating_add(1)
            }
            _ => 0,
        }
    }

    /// Whether it may be what is looked for, by which part it is, if any: yes, where that is not known.
    pub fn may_be(
        &self,
        named: &ArchivedData,
        is_looked_for: impl FnOnce(Option<&PartName>) -> bool,
    ) -> bool {
        match self.0.lock().names.get(named) {
            Some(Known::Held(part)) => is_looked_for(part.as_ref()),
            _ => true,
        }
    }

    /// Whether nothing was found by this look not long ago.
    pub fn was_vain(&self, look: &DataLook) -> bool {
        let kept = self.0.lock();
        kept.looks.get(look).is_some_and(|(at, times)| at.elapsed() < doubled(ABSENT_PAUSE_MS, *times))
    }

    /// Nothing was found by this look.
    pub fn note_vain(&self, look: DataLook) {
        let mut kept = self.0.lock();
        let times = kept.looks.get(&look).map_or(0, |(_, times)| times.saturating_add(1));
        kept.looks.note(look, (now(), times));
    }

    /// Data in which nothing was found before.
    pub fn vain(&self, named: &DataName) -> Option<Bytes> {
        let kept = self.0.lock();
        kept.vain.iter().find(|(of, _)| of == named).map(|(_, bytes)| bytes.clone())
    }

    /// Nothing was found in this data.
    pub fn keep_vain(&self, named: DataName, bytes: Bytes) {
        let mut kept = self.0.lock();
        let vain = &mut kept.vain;
        if vain.iter().any(|(of, _)| *of == named) {
            return;
        }
        vain.push_back((named, bytes));
        while held(vain) > KEPT_BYTES {
            vain.pop_front();
        }
    }

    /// Something was found in this data.
    pub fn forget_vain(&self, named: &DataName) {
        self.0.lock().vain.retain(|(of, _)| of != named);
    }
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").finish_non_exhaustive()
    }
}

fn held(vain: &VecDeque<(DataName, Bytes)>) -> usize {
    vain.iter().map(|(_, bytes)| bytes.len().saturating_add(DATA_COST_BYTES)).sum()
}

fn pause(fault: &L1Error, times: u32) -> Duration {
    doubled(if fault.is_transient() { FAILED_PAUSE_MS } else { ABSENT_PAUSE_MS }, times)
}

fn doubled(pause_ms: u64, times: u32) -> Duration {
    Duration::from_millis(pause_ms << times.min(MAX_DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(index: usize) -> ArchivedData {
        ArchivedData::of(&index.to_be_bytes()).unwrap()
    }

    fn data(index: usize) -> DataName {
        DataName::Archived(named(index))
    }

    fn absent() -> L1Error {
        L1Error::HttpStatus { method: "GET /data".to_owned(), status: 404 }
    }

    fn away() -> L1Error {
        L1Error::no_answer("away")
    }

    /// Rule DA-4.
    #[test]
    fn what_no_archive_has_is_asked_for_less_and_less_often() {
        let fetched = Fetched::default();
        assert_eq!(fetched.withheld(&named(1), 9), None);
        fetched.note_withheld(named(1), &absent(), 9);
        assert_eq!(fetched.withheld(&named(1), 9), Some(absent()));
        // The same bytes by another length are another name, which says nothing of this one.
        assert_eq!(fetched.withheld(&ArchivedData { length: 7, ..named(1) }, 9), None);
        assert_eq!(fetched.times_withheld(&named(1), &absent()), 1);
        assert_eq!(fetched.times_withheld(&named(1), &away()), 0);
        fetched.note_held(named(1), b"given");
        assert_eq!(fetched.withheld(&named(1), 9), None);
        assert_eq!(fetched.times_withheld(&named(1), &absent()), 0);
        let pause_ms = |fault: &L1Error, times| pause(fault, times).as_millis();
        assert_eq!((pause_ms(&absent(), 0), pause_ms(&absent(), 1)), (60_000, 120_000));
        assert_eq!(pause_ms(&absent(), u32::MAX), 60_000 << MAX_DOUBLINGS);
        assert_eq!(pause_ms(&away(), 0), 500);
    }

    /// Whoever knows what will be posted can name it before. Rule DA-4.
    #[test]
    fn who_names_data_too_early_has_nobody_miss_it_later() {
        let fetched = Fetched::default();
        fetched.note_withheld(named(1), &absent(), 9);
        assert_eq!(fetched.withheld(&named(1), 9), Some(absent()));
        assert_eq!(fetched.withheld(&named(1), 10), None, "it may have been put there since");
        fetched.note_withheld(named(1), &absent(), 10);
        assert_eq!(fetched.withheld(&named(1), 10), Some(absent()));
        // One that does not answer would not answer for the next block either.
        fetched.note_withheld(named(2), &away(), 9);
        assert_eq!(fetched.withheld(&named(2), 10), Some(away()));
    }

    #[test]
    fn what_a_name_is_of_is_remembered() {
        let fetched = Fetched::default();
        let part = DataPart {
            first: 3,
            last: 4,
            whole: blindfold_protocol::B256::ZERO,
            part: 0,
            parts: 1,
            bytes: vec![1],
        };
        assert!(fetched.may_be(&named(1), |_| false), "not known yet");
        fetched.note_held(named(1), &part.encode());
        fetched.note_held(named(2), b"something else");
        assert!(fetched.may_be(&named(1), |found| found == Some(&part.name())));
        assert!(!fetched.may_be(&named(1), |found| found.is_none()));
        assert!(fetched.may_be(&named(2), |found| found.is_none()));
        for index in 3..3 + KEPT_NAMES {
            fetched.note_withheld(named(index), &absent(), 9);
        }
        assert!(fetched.may_be(&named(1), |_| false), "forgotten");
    }

    #[test]
    fn a_vain_look_is_remembered_and_says_nothing_of_others() {
        let fetched = Fetched::default();
        let look = DataLook { from: 1, is_part: true, named: data(1), wanted: Some((3, 5, 2)) };
        assert!(!fetched.was_vain(&look));
        fetched.note_vain(look);
        assert!(fetched.was_vain(&look));
        for other in [
            DataLook { from: 2, ..look },
            DataLook { is_part: false, ..look },
            DataLook { named: data(2), ..look },
            DataLook { wanted: Some((3, 5, 3)), ..look },
        ] {
            assert!(!fetched.was_vain(&other));
        }
        for index in 2..2 + KEPT_NAMES {
            fetched.note_vain(DataLook { named: data(index), ..look });
        }
        assert!(!fetched.was_vain(&look), "forgotten");
    }

    #[test]
    fn so_much_data_is_kept_and_the_oldest_goes_first() {
        let fetched = Fetched::default();
        let bytes = Bytes::from(vec![7; 1 << 20]);
        for index in 0..64 {
            fetched.keep_vain(data(index), bytes.clone());
            fetched.keep_vain(data(index), bytes.clone());
        }
        assert!(held(&fetched.0.lock().vain) <= KEPT_BYTES);
        assert_eq!(fetched.vain(&data(0)), None);
        assert_eq!(fetched.vain(&data(1)), Some(bytes));
        fetched.forget_vain(&data(1));
        assert_eq!(fetched.vain(&data(1)), None);
    }
}

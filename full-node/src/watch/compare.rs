//! A posting against the node's own hints, entry by entry.

use blindfold_protocol::{BatchHints, HintEntry};

use super::seam::PostedBatch;

/// Kinds of entries in a posting.
const SKIPPED: u8 = 0;
const KEY: u8 = 1;
const MALFORMED: u8 = 2;
/// What stands in place of a key where there is none.
const NO_KEY: [u8; 16] = [0; 16];

/// What is wrong with an entry; the values are `HintRegistry`'s `REASON_…`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The batch has another number of items.
    WrongCount = 1,
    /// An entry of no known kind.
    UnknownKind = 2,
    /// Key bytes in an entry that has no key.
    StrayKey = 3,
    /// Skipped although the item was accepted, or not skipped although it was not.
    WrongVerdict = 4,
    /// The key does not open the envelope.
    WrongKey = 5,
    /// Called malformed although a key opens it.
    NotMalformed = 6,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::WrongCount,
        Self::UnknownKind,
        Self::StrayKey,
        Self::WrongVerdict,
        Self::WrongKey,
        Self::NotMalformed,
    ];

    /// A stable name, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WrongCount => "wrong_count",
            Self::UnknownKind => "unknown_kind",
            Self::StrayKey => "stray_key",
            Self::WrongVerdict => "wrong_verdict",
            Self::WrongKey => "wrong_key",
            Self::NotMalformed => "not_malformed",
        }
    }
}

/// Where a posting is wrong, and what shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The batch.
    pub number: u64,
    /// The entry.
    pub index: u32,
    /// What is wrong.
    pub kind: FaultKind,
    /// For [`FaultKind::NotMalformed`], the key that opens the envelope.
    pub key: Option<[u8; 16]>,
}

/// What a posting is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The same as ours, singleton releases included.
    Right,
    /// Every entry is right, but a malformed envelope's singleton release is missing or wrong, so nobody can use it
    /// without decrypting. L1 does not punish that.
    NotAccepted {
        /// The batch.
        number: u64,
    },
    /// An entry is wrong.
    Wrong(Fault),
}

/// Compares a posting with the node's own verified hints of the same batches, both in order.
///
/// Hints are unique: C fixes the session key and the singleton release, so whatever differs from verified ones is wrong.
/// Cost: one pass over the bytes.
pub fn compare(own: &[BatchHints], posted: &[PostedBatch]) -> Finding {
    let mut unaccepted = None;
    let nothing = PostedBatch::default();
    for (place, own) in own.iter().enumerate() {
        let posted = posted.get(place).unwrap_or(&nothing);
        if let Some((index, kind, key)) = first_fault(&own.entries, &posted.entries) {
            return Finding::Wrong(Fault { number: own.number, index, kind, key });
        }
        let releases = own.entries.iter().filter_map(|entry| match entry {
            HintEntry::Malformed(release) => Some(release),
            HintEntry::Key(_) | HintEntry::Skipped => None,
        });
        if !releases.eq(&posted.singletons) {
            unaccepted.get_or_insert(own.number);
        }
    }
    unaccepted.map_or(Finding::Right, |number| Finding::NotAccepted { number })
}

type EntryFault = (u32, FaultKind, Option<[u8; 16]>);

fn first_fault(own: &[HintEntry], posted: &[(u8, [u8; 16])]) -> Option<EntryFault> {
    if own.len() != posted.len() {
        return Some((0, FaultKind::WrongCount, None));
    }
    (0u32..).zip(own.iter().zip(posted)).find_map(|(index, (own, (kind, key)))| {
        let fault = |kind| Some((index, kind, None));
        match (own, *kind) {
            (_, kind) if kind > MALFORMED => fault(FaultKind::UnknownKind),
            (_, kind) if kind != KEY && *key != NO_KEY => fault(FaultKind::StrayKey),
            (HintEntry::Skipped, SKIPPED) => None,
            (HintEntry::Skipped, _) | (_, SKIPPED) => fault(FaultKind::WrongVerdict),
            (HintEntry::Key(right), KEY) if right == key => None,
            (_, KEY) => fault(FaultKind::WrongKey),
            (HintEntry::Key(right), _) => Some((index, FaultKind::NotMalformed, Some(*right))),
            (HintEntry::Malformed(_), _) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::B256;

    use super::*;

    fn own() -> Vec<BatchHints> {
        let batch = |number, entries| BatchHints { number, header_hash: B256::ZERO, entries };
        vec![
            batch(7, vec![HintEntry::Key([1; 16]), HintEntry::Skipped]),
            batch(8, vec![]),
            batch(9, vec![HintEntry::Malformed([3; 48]), HintEntry::Key([4; 16])]),
        ]
    }

    fn right() -> Vec<PostedBatch> {
        vec![
            PostedBatch { entries: vec![(1, [1; 16]), (0, NO_KEY)], singletons: vec![] },
            PostedBatch::default(),
            PostedBatch { entries: vec![(2, NO_KEY), (1, [4; 16])], singletons: vec![[3; 48]] },
        ]
    }

    #[test]
    fn what_is_right_is_left_alone() {
        assert_eq!(compare(&own(), &right()), Finding::Right);
    }

    #[test]
    fn every_difference_is_found_with_its_place_and_kind() {
        type Change = fn(&mut Vec<PostedBatch>);
        let cases: [(Change, u64, u32, FaultKind); 10] = [
            (|posted| posted[0].entries[0].1 = [2; 16], 7, 0, FaultKind::WrongKey),
            (|posted| posted[0].entries[0].0 = 3, 7, 0, FaultKind::UnknownKind),
            (|posted| posted[0].entries[1].1[15] = 1, 7, 1, FaultKind::StrayKey),
            (|posted| posted[0].entries[1] = (1, [1; 16]), 7, 1, FaultKind::WrongVerdict),
            (|posted| posted[0].entries[1] = (2, NO_KEY), 7, 1, FaultKind::WrongVerdict),
            (|posted| posted[2].entries[1] = (0, NO_KEY), 9, 1, FaultKind::WrongVerdict),
            (|posted| posted[2].entries[0] = (1, [9; 16]), 9, 0, FaultKind::WrongKey),
            (|posted| posted[1].entries.push((0, NO_KEY)), 8, 0, FaultKind::WrongCount),
            (|posted| posted[2].entries.truncate(1), 9, 0, FaultKind::WrongCount),
            (|posted| posted.truncate(2), 9, 0, FaultKind::WrongCount),
        ];
        for (change, number, index, kind) in cases {
            let mut posted = right();
            change(&mut posted);
            let fault = Fault { number, index, kind, key: None };
            assert_eq!(compare(&own(), &posted), Finding::Wrong(fault));
        }
        let mut posted = right();
        posted[2].entries[1] = (2, NO_KEY);
        let fault = Fault { number: 9, index: 1, kind: FaultKind::NotMalformed, key: Some([4; 16]) };
        assert_eq!(compare(&own(), &posted), Finding::Wrong(fault), "with the key that refutes it");
    }

    #[test]
    fn missing_wrong_and_needless_releases_are_not_accepted() {
        let changes: [fn(&mut Vec<PostedBatch>); 3] = [
            |posted| posted[2].singletons.clear(),
            |posted| posted[2].singletons[0] = [9; 48],
            |posted| posted[2].singletons.push([3; 48]),
        ];
        for change in changes {
            let mut posted = right();
            change(&mut posted);
            assert_eq!(compare(&own(), &posted), Finding::NotAccepted { number: 9 });
            // A wrong entry counts for more.
            posted[2].entries[1].1 = [9; 16];
            assert!(matches!(compare(&own(), &posted), Finding::Wrong(_)));
        }
    }
}

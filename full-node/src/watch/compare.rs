//! A posting against the node's own hints, entry by entry.

use blindfold_l1::{PostedBatch, PostedEntry};
use blindfold_protocol::{BatchHints, HintEntry};

/// Kinds of entries in a posting.
pub(super) const SKIPPED: u8 = PostedEntry::SKIPPED;
pub(super) const KEY: u8 = PostedEntry::KEY;
pub(super) const MALFORMED: u8 = PostedEntry::MALFORMED;
/// What stands in place of a key where there is none.
pub(super) const NO_KEY: [u8; 16] = [0; 16];

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
    /// Called malformed with no singleton release.
    NoRelease = 8,
    /// Called malformed with another singleton release than the ciphertext's.
    WrongRelease = 9,
}

impl FaultKind {
    /// All kinds, in order of their codes.
    pub const ALL: [Self; 8] = [
        Self::WrongCount,
        Self::UnknownKind,
        Self::StrayKey,
        Self::WrongVerdict,
        Self::WrongKey,
        Self::NotMalformed,
        Self::NoRelease,
        Self::WrongRelease,
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
            Self::NoRelease => "no_release",
            Self::WrongRelease => "wrong_release",
        }
    }
}

/// Where a posting is wrong, and what shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the batch.
    pub number: u64,
    /// Index of the entry in the batch, from 0.
    pub index: u32,
    /// What is wrong with the entry.
    pub kind: FaultKind,
    /// For [`FaultKind::NotMalformed`], the key that opens the envelope: what L1 needs unless the release is wrong, too.
    pub key: Option<[u8; 16]>,
}

/// What a posting is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Every key is right, and every malformed entry names the right singleton release.
    Right,
    /// This entry is wrong, the first that was found.
    Wrong(Fault),
}

/// Compares a posting with the node's own verified hints of the same batches, both in order.
///
/// Hints are unique: C fixes the session key and the singleton release, so whatever differs from verified ones is wrong.
/// Cost: one pass over the bytes.
pub fn compare(own: &[BatchHints], posted: &[PostedBatch]) -> Finding {
    let nothing = PostedBatch::default();
    let fault = own.iter().enumerate().find_map(|(place, own)| {
        let (index, kind, key) = first_fault(&own.entries, posted.get(place).unwrap_or(&nothing))?;
        Some(Fault { number: own.number, index, kind, key })
    });
    fault.map_or(Finding::Right, Finding::Wrong)
}

/// The entry, what is wrong with it, and the key that shows it where one is needed.
pub(super) type EntryFault = (u32, FaultKind, Option<[u8; 16]>);

/// The first entry that differs from our own.
pub(super) fn first_fault(own: &[HintEntry], posted: &PostedBatch) -> Option<EntryFault> {
    if own.len() != posted.entries.len() {
        return Some((0, FaultKind::WrongCount, None));
    }
    (0u32..).zip(own.iter().zip(&posted.entries)).find_map(|(index, (own, entry))| {
        let key = &entry.key;
        let fault = |kind| Some((index, kind, None));
        match (own, entry.kind) {
            (_, kind) if kind > MALFORMED => fault(FaultKind::UnknownKind),
            (_, SKIPPED) if *key != NO_KEY => fault(FaultKind::StrayKey),
            (HintEntry::Skipped, SKIPPED) => None,
            (HintEntry::Skipped, _) | (_, SKIPPED) => fault(FaultKind::WrongVerdict),
            (HintEntry::Key(right), KEY) if right == key => None,
            (_, KEY) => fault(FaultKind::WrongKey),
            (HintEntry::Key(right), _) => Some((index, FaultKind::NotMalformed, Some(*right))),
            (HintEntry::Malformed(right), _) => match posted.release(entry) {
                Some(release) if release == *right => None,
                Some(_) => fault(FaultKind::WrongRelease),
                None => fault(FaultKind::NoRelease),
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::B256;

    use super::*;

    fn entry(kind: u8, key: [u8; 16]) -> PostedEntry {
        PostedEntry { kind, key }
    }

    fn own() -> Vec<BatchHints> {
        let batch =
            |number, entries| BatchHints { number, header_hash: B256::ZERO, entries, blindings: vec![] };
        vec![
            batch(7, vec![HintEntry::Key([1; 16]), HintEntry::Skipped]),
            batch(8, vec![]),
            batch(9, vec![HintEntry::Malformed([3; 48]), HintEntry::Key([4; 16])]),
        ]
    }

    fn right() -> Vec<PostedBatch> {
        vec![
            PostedBatch { entries: vec![entry(1, [1; 16]), entry(0, NO_KEY)], singletons: vec![] },
            PostedBatch::default(),
            PostedBatch { entries: vec![entry(2, NO_KEY), entry(1, [4; 16])], singletons: vec![[3; 48]] },
        ]
    }

    #[test]
    fn what_is_right_is_left_alone() {
        assert_eq!(compare(&own(), &right()), Finding::Right);
    }

    #[test]
    fn every_difference_is_found_with_its_place_and_kind() {
        type Change = fn(&mut Vec<PostedBatch>);
        let disputes: [(Change, u64, u32, FaultKind); 13] = [
            (|posted| posted[0].entries[0].key = [2; 16], 7, 0, FaultKind::WrongKey),
            (|posted| posted[0].entries[0].kind = 3, 7, 0, FaultKind::UnknownKind),
            (|posted| posted[0].entries[1].key[15] = 1, 7, 1, FaultKind::StrayKey),
            (|posted| posted[0].entries[1] = entry(1, [1; 16]), 7, 1, FaultKind::WrongVerdict),
            (|posted| posted[0].entries[1] = entry(2, NO_KEY), 7, 1, FaultKind::WrongVerdict),
            (|posted| posted[2].entries[1] = entry(0, NO_KEY), 9, 1, FaultKind::WrongVerdict),
            (|posted| posted[2].entries[0] = entry(1, [9; 16]), 9, 0, FaultKind::WrongKey),
            (|posted| posted[1].entries.push(entry(0, NO_KEY)), 8, 0, FaultKind::WrongCount),
            (|posted| posted[2].entries.truncate(1), 9, 0, FaultKind::WrongCount),
            (|posted| posted.truncate(2), 9, 0, FaultKind::WrongCount),
            (|posted| posted[2].singletons.clear(), 9, 0, FaultKind::NoRelease),
            (|posted| posted[2].entries[0].key[15] = 1, 9, 0, FaultKind::NoRelease),
            (|posted| posted[2].singletons[0] = [9; 48], 9, 0, FaultKind::WrongRelease),
        ];
        for (change, number, index, kind) in disputes {
            let mut posted = right();
            change(&mut posted);
            let fault = Fault { number, index, kind, key: None };
            assert_eq!(compare(&own(), &posted), Finding::Wrong(fault));
        }
        let mut posted = right();
        posted[2].entries[1] = entry(2, NO_KEY);
        let fault = Fault { number: 9, index: 1, kind: FaultKind::NotMalformed, key: Some([4; 16]) };
        assert_eq!(compare(&own(), &posted), Finding::Wrong(fault), "with the key that refutes it");
    }
}

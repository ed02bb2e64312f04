#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use crate::{
    posting::{archived::ArchivedData, run_data::split_run_data},
    test_header::plain_header,
};

const LIMIT: usize = 1 << 20;

/// Data of this many parts.
fn parts(fill: u8, count: usize) -> (Vec<u8>, Vec<DataPart>) {
    let data = vec![fill; (count - 1) * (LIMIT - 57) + 1];
    let parts = split_run_data(1, 9, &data, LIMIT).unwrap();
    assert_eq!(parts.len(), count);
    (data, parts)
}

fn poster(byte: u8) -> Address {
    Address::repeat_byte(byte)
}

fn held(kept: &Parts) -> usize {
    kept.kept.values().map(|entry| entry.bytes).sum()
}

#[test]
fn parts_of_one_poster_join_in_any_order_and_others_do_not() {
    let (data, split) = parts(1, 3);
    let mut kept = Parts::default();
    for part in split.iter().rev().take(2) {
        assert_eq!(kept.complete(poster(1), part.clone()), None);
        assert_eq!(kept.complete(poster(1), part.clone()), None, "the same once more");
    }
    assert_eq!(kept.complete(poster(2), split[0].clone()), None, "another's");
    assert_eq!(kept.complete(poster(1), split[0].clone()), Some(data.clone()));
    // What turns out not to be what it claims is begun again.
    let mut garbage = split[1].clone();
    garbage.bytes[0] ^= 1;
    for part in [garbage, split[2].clone()] {
        assert_eq!(kept.complete(poster(2), part), None);
    }
    for part in &split[..2] {
        assert_eq!(kept.complete(poster(2), part.clone()), None);
    }
    assert_eq!(kept.complete(poster(2), split[2].clone()), Some(data));
    assert_eq!(held(&kept), 0);
}

/// Rule PD-4.
#[test]
fn what_is_kept_is_bounded_for_each_poster_and_for_all() {
    let mut kept = Parts::default();
    let (data, own) = parts(200, 2);
    assert_eq!(kept.complete(poster(1), own[0].clone()), None);
    // Somebody begins data and never ends it.
    for fill in 0..=40 {
        kept.complete(poster(2), parts(fill, 2).1[0].clone());
        assert!(held(&kept) <= MAX_POSTER_PART_BYTES + 2 * LIMIT);
    }
    assert_eq!(kept.complete(poster(1), own[1].clone()), Some(data));
    for by in 3..30 {
        for fill in 0..14 {
            kept.complete(poster(by), parts(fill, 2).1[0].clone());
        }
        assert!(held(&kept) <= MAX_PART_BYTES);
    }
    assert!(held(&kept) > MAX_PART_BYTES / 2);
    // Data that is longer than what is kept of one poster is never complete.
    for part in parts(7, 20).1 {
        assert_eq!(kept.complete(poster(99), part), None);
    }
}

/// Rule DA-4.
#[test]
fn what_one_look_fetches_in_vain_is_bounded() {
    let mut search = Search::default();
    for _ in 0..16 {
        assert!(search.may_fetch());
        search.note_vain(MAX_POSTER_PART_BYTES);
    }
    assert!(!search.may_fetch());
}

#[test]
fn data_is_looked_through_once_for_what_is_wanted() {
    let named = DataName::Archived(ArchivedData::of(b"some data").unwrap());
    let mut search = Search::default();
    assert!(!search.has_looked_at(4, true, named));
    search.note_look(4, true, named);
    assert!(search.has_looked_at(4, true, named) && !search.has_looked_at(5, true, named));
    assert!(!search.has_looked_at(4, false, named), "read otherwise");
    search.want([]);
    assert!(!search.has_looked_at(4, true, named), "more may be wanted now");
}

#[test]
fn what_is_wanted_of_data_is_told_by_its_numbers() {
    let mut search = Search::default();
    assert_eq!(search.wanted_of(1), None);
    search.want([3, 7, 8].map(plain_header));
    assert_eq!((search.wanted_of(1), search.wanted_of(8)), (Some((3, 8, 3)), Some((8, 8, 1))));
    search.want([MAX_RUN_BATCHES as u64 + 1].map(plain_header));
    assert_eq!((search.wanted_of(1), search.wanted_of(9)), (Some((3, 8, 3)), Some((4_097, 4_097, 1))));
}

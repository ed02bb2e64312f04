//! When L1 makes a header, against the contract's rule.

use alloy_primitives::{Address, U256};
use blindfold_protocol::B256;

use super::*;

fn standing(block: u64) -> Standing {
    Standing {
        block,
        timing: L1Timing {
            posting_deadline: 100,
            forced_delay: 10,
            answer_window: 20,
            hint_deadline: 30,
            challenge_window: 24,
            withdrawal_delay: 500,
            max_origin_age_seconds: 14_400,
        },
        sequencer: Address::ZERO,
        head: PostedHead {
            number: 7,
            hash: B256::ZERO,
            timestamp_ms: 0,
            l1_origin_number: 0,
            forced_cursor: 0,
            block: 0,
        },
        head_posted_at: 1_000,
        last_certified_at: 1_000,
        equivocated_at: 0,
        end_due: false,
        l1_made: 0,
        forced_length: 0,
        forced_next: Vec::new(),
        bond: Bond { amount: U256::ZERO, withdrawal: 0, unlocks_at: 0, expires_at: 0 },
        open_accusations: 0,
        hint_postings: 0,
        last_output: 0,
    }
}

fn item(index: u64, enqueued_at: u64) -> QueuedItem {
    QueuedItem { index, is_transaction: true, enqueued_at, gas_limit: 21_000, length: 100 }
}

#[test]
fn silence_is_answered_after_the_deadline_and_in_every_second_window() {
    let due = |block| standing(block).l1_header_due(1);
    assert_eq!(due(1_100), L1HeaderDue::From(1_101));
    assert_eq!(due(1_101), L1HeaderDue::Now { items: 0 });
    assert_eq!(due(1_120), L1HeaderDue::Now { items: 0 });
    assert_eq!(due(1_121), L1HeaderDue::From(1_141));
    assert_eq!(due(1_141), L1HeaderDue::Now { items: 0 });
}

#[test]
fn items_that_wait_too_long_are_taken_whatever_is_posted() {
    // Due at 1,010; the sequencer posts something now and then.
    let posted = |block, last_certified_at| Standing {
        head_posted_at: last_certified_at,
        last_certified_at,
        forced_next: (0..17).map(|index| item(index, 1_000)).collect(),
        ..standing(block)
    };
    assert_eq!(posted(1_110, 1_100).l1_header_due(0), L1HeaderDue::From(1_111));
    assert_eq!(posted(1_111, 1_100).l1_header_due(0), L1HeaderDue::Now { items: 16 });
    assert_eq!(posted(1_111, 1_101).l1_header_due(0), L1HeaderDue::From(1_112), "it posts");
    assert_eq!(posted(1_112, 1_101).l1_header_due(0), L1HeaderDue::Now { items: 16 });
    assert_eq!(posted(1_130, 1_119).l1_header_due(0), L1HeaderDue::Now { items: 16 });
    assert_eq!(posted(1_131, 1_110).l1_header_due(0), L1HeaderDue::From(1_151), "the committee's window");
    assert_eq!(
        posted(1_131, 1_131).l1_header_due(0),
        L1HeaderDue::From(1_142),
        "no shelter for one that posts"
    );
    assert_eq!(posted(1_142, 1_131).l1_header_due(0), L1HeaderDue::Now { items: 16 });
    // An item that was due later than the last posting changes nothing.
    assert_eq!(posted(1_111, 1_005).l1_header_due(0), L1HeaderDue::Now { items: 16 });
    assert_eq!(posted(1_105, 1_005).l1_header_due(0), L1HeaderDue::From(1_106));
}

#[test]
fn two_headers_of_a_number_shorten_the_wait() {
    let shown = |block| Standing { equivocated_at: 1_010, ..standing(block) };
    assert_eq!(shown(1_030).l1_header_due(0), L1HeaderDue::From(1_031));
    assert_eq!(shown(1_031).l1_header_due(0), L1HeaderDue::Now { items: 0 }, "even an empty one");
    let posted_later = Standing { head_posted_at: 1_050, last_certified_at: 1_050, ..shown(1_060) };
    assert_eq!(posted_later.l1_header_due(0), L1HeaderDue::From(1_071));
}

#[test]
fn only_due_items_count_and_no_more_than_a_header_takes() {
    let mut waiting = Standing { head_posted_at: 1_050, ..standing(1_101) };
    let nothing = L1HeaderDue::NothingToInclude { empty_from: 1_151 };
    assert_eq!(waiting.l1_header_due(0), nothing);
    waiting.forced_next = vec![item(0, 1_092)];
    assert_eq!((waiting.forced_due(), waiting.due_at(&item(0, 1_092))), (0, 1_102));
    assert_eq!(waiting.l1_header_due(0), nothing);
    waiting.forced_next = vec![item(0, 1_091), item(1, 1_092)];
    assert_eq!(waiting.l1_header_due(0), L1HeaderDue::Now { items: 1 });
    waiting.forced_next = (0..17).map(|index| item(index, 1_000)).collect();
    assert_eq!(waiting.l1_header_due(0), L1HeaderDue::Now { items: 16 });
}

#[test]
fn after_as_long_a_silence_l1_makes_an_empty_header() {
    assert_eq!(standing(1_101).l1_header_due(0), L1HeaderDue::Now { items: 0 });
    // One that L1 made at 1,110 begins the silence anew.
    let later = |block| Standing { head_posted_at: 1_110, ..standing(block) }.l1_header_due(0);
    assert_eq!(later(1_112), L1HeaderDue::NothingToInclude { empty_from: 1_211 });
    assert_eq!(later(1_219), L1HeaderDue::From(1_221));
    assert_eq!(later(1_221), L1HeaderDue::Now { items: 0 });
}

#[test]
fn the_due_end_of_an_epoch_makes_one_at_once() {
    let ends = |forced_next| Standing { end_due: true, forced_next, ..standing(1_002) };
    assert_eq!(ends(Vec::new()).l1_header_due(0), L1HeaderDue::Now { items: 0 });
    // What is due goes with it.
    assert_eq!(ends(vec![item(0, 900), item(1, 1_001)]).l1_header_due(0), L1HeaderDue::Now { items: 1 });
}

//! What is made of L1's answers.

use alloy_primitives::{Address, B256, U256};
use blindfold_l1::GivenPromise;

use super::*;
use crate::{doctor::finding::Level, l1_commands::status::tests::standing};

#[test]
fn each_reason_for_no_connection_has_its_remedy() {
    let timeout = L1Error::Timeout { method: "eth_chainId".to_owned(), timeout_ms: 5 };
    let away = L1Error::Unreachable { method: "eth_chainId".to_owned(), reason: "refused".to_owned() };
    let missing = L1Error::NoContract { name: "FeeVault", address: Address::ZERO };
    for (fault, remedy) in [
        (L1Error::Url { reason: "it is no URL" }, "correct `l1.url`"),
        (timeout, "start your L1 node"),
        (away, "start your L1 node"),
        (L1Error::WrongChain { expected: 1, given: 2 }, "deployment.l1ChainId"),
        (missing, "rollup.json of this deployment"),
        (L1Error::nonsense("no block"), "look at the L1 node"),
    ] {
        let findings = unconnected("http://a", &fault);
        let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Error, Level::NotChecked]);
        assert!(findings[0].next.as_ref().is_some_and(|next| next.contains(remedy)), "{findings:?}");
    }
}

#[test]
fn the_clock_is_judged_as_roles_judge_theirs() {
    let now_ms = wall_ms();
    let of = |newest_ms, max_age_ms| of_clock("this machine", newest_ms, max_age_ms);
    assert_eq!(of(now_ms, 120_000).level, Level::Ok);
    let behind = of(now_ms + 3_600_000, 120_000);
    assert!(
        behind.level == Level::Error && behind.found.contains("ahead of this machine's clock"),
        "{behind:?}"
    );
    let ahead = of(now_ms - 3_600_000, 120_000);
    assert!(ahead.level == Level::Error && ahead.found.contains("L1 stands still"), "{ahead:?}");
    assert_eq!(of(now_ms - 3_600_000, 0).level, Level::NotChecked);
}

#[test]
fn an_old_final_block_is_told_before_nothing_is_sealed() {
    let origin = |timestamp| L1Origin {
        number: 9,
        hash: B256::ZERO,
        timestamp,
        base_fee: 0,
        blob_base_fee: 0,
        parent_beacon_block_root: B256::ZERO,
    };
    let level = |age: u64| of_final(&origin(10_000 - age), 10_000, 1_800).level;
    assert_eq!(
        [899, 900, 1_799, 1_800].map(level),
        [Level::Ok, Level::Warning, Level::Warning, Level::Error]
    );
    assert_eq!(of_final(&origin(20_000), 10_000, 1_800).level, Level::Ok);
}

#[test]
fn a_bond_that_is_gone_or_going_is_told() {
    let calm = standing(1_050);
    assert_eq!(of_bond(&calm, &[]).level, Level::Ok);
    let mut going = calm.clone();
    going.bond.withdrawal = 5;
    assert_eq!(of_bond(&going, &[]).level, Level::Warning);
    let mut empty = calm.clone();
    empty.bond.amount = U256::ZERO;
    let none = of_bond(&empty, &[]);
    assert!(
        none.level == Level::Warning && none.next.is_some_and(|next| next.contains("bond sequencer deposit"))
    );
    let omission = SequencerEvent::Omission { promise_id: B256::ZERO, accuser: Address::ZERO };
    assert_eq!(of_bond(&calm, &[omission]).level, Level::Error);
}

#[test]
fn open_accusations_are_told_with_their_time() {
    let promise =
        GivenPromise { sequencer: Address::ZERO, envelope_id: B256::ZERO, item_hash: B256::ZERO, seal_by: 4 };
    let accused = SequencerEvent::Accused { promise, accuser: Address::ZERO, answer_until: 1_020 };
    let told = of_accusations(&standing(1_050), &[accused]);
    assert_eq!(
        (told.level, told.found.as_str()),
        (Level::Warning, "1 to be answered; the first until L1 block 1020")
    );
    let mut calm = standing(1_050);
    calm.open_accusations = 0;
    assert_eq!(of_accusations(&calm, &[]).level, Level::Ok);
}

#[test]
fn what_is_certified_and_not_posted_is_measured_by_the_deadline() {
    // The deadline is 100 blocks.
    let level = |waiting| of_posting(&standing(1_050), waiting).level;
    assert_eq!((level(None), level(Some((0, None)))), (Level::Ok, Level::Ok));
    assert_eq!(level(Some((3, None))), Level::Warning);
    let lag = |blocks: u64| level(Some((3, Some(1_050 - blocks))));
    assert_eq!([24, 25, 49, 50].map(lag), [Level::Ok, Level::Warning, Level::Warning, Level::Error]);
    let late = of_posting(&standing(1_050), Some((3, Some(1_000))));
    assert_eq!(
        late.found,
        "posted up to 7, 50 L1 blocks ago; 3 certified headers wait, the first for 50 of 100 L1 blocks"
    );
    let mut fresh = standing(1_050);
    fresh.head.number = 0;
    assert!(of_posting(&fresh, None).found.starts_with("nothing is posted yet"));
}

#[test]
fn runs_without_hints_are_told_from_half_their_deadline_on() {
    let of = |newest| of_runs(&[(6, 7, 1_130), (1, 4, 1_030)], newest, 30);
    assert_eq!(
        [1_014, 1_015, 1_029, 1_030].map(|newest| of(newest).level),
        [Level::Ok, Level::Warning, Level::Warning, Level::Error]
    );
    assert!(of(1_030).found.contains("batches 1–4 may be declared void from L1 block 1030 on"));
    assert_eq!(of_runs(&[], 5, 30).level, Level::Ok);
}

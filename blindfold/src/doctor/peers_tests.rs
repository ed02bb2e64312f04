//! What is made of other roles' answers.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use blindfold_rpc::{
    RpcError,
    types::{BatchHead, BlockHead},
};

use super::*;
use crate::test_chain::chain;

fn peer(kind: PeerKind) -> Peer {
    Peer { setting: "url".to_owned(), url: "http://user:secret@a:1".to_owned(), kind }
}

fn member_status() -> CommitteeStatus {
    CommitteeStatus {
        member: 2,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        epoch: 1,
        acknowledged: 7,
        certified: 6,
        refusals: Vec::new(),
        second_headers_refused: 0,
        votes_from: Some(1),
    }
}

fn status() -> Status {
    let chain = chain();
    Status {
        role: "sequencer".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        chain_id: chain.chain_id,
        l1_chain_id: chain.deployment.l1_chain_id,
        inbox: chain.deployment.inbox,
        head: BatchHead { number: 9, hash: B256::ZERO, timestamp_ms: 0, generation: 0 },
        certified: 8,
        hinted: 7,
        posted: None,
        block: BlockHead { number: 6, hash: B256::ZERO, timestamp: 0 },
        pending_envelopes: None,
        base_fee: 1,
        gas_base_fee: 1,
        counters: BTreeMap::new(),
    }
}

#[test]
fn a_member_answers_as_itself_in_this_version() {
    let of = |status| of_member(&peer(PeerKind::Member(2)), 2, Ok(status));
    let right = of(member_status());
    assert_eq!(right.level, Level::Ok);
    assert!(right.found.contains("certified 6") && !right.found.contains("secret"), "{right:?}");
    let other = of(CommitteeStatus { member: 3, ..member_status() });
    assert_eq!(other.level, Level::Error);
    assert!(other.found.ends_with("member 3 answers there, not 2"), "{other:?}");
    let older = of(CommitteeStatus { version: Some("0.0.1".to_owned()), ..member_status() });
    assert_eq!(older.level, Level::Warning);
    assert_eq!(of(CommitteeStatus { version: None, ..member_status() }).level, Level::Ok);
    assert_eq!(of(CommitteeStatus { second_headers_refused: 1, ..member_status() }).level, Level::Warning);
}

#[test]
fn a_signer_has_the_expected_key_for_this_deployment_and_signs() {
    let (us, Deployment { l1_chain_id, inbox }) = (Address::repeat_byte(7), chain().deployment);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let right = SignerStatus {
        address: us,
        l1_chain_id,
        inbox,
        version,
        first_number: Some(1),
        newest: None,
        term: 0,
    };
    let of = |status| of_signer(&peer(PeerKind::Signer(us)), us, Ok(status), Some(&chain()));
    assert_eq!(of(right.clone()).level, Level::Ok);
    assert!(of(right.clone()).found.ends_with("from number 1 on, newest none"), "{:?}", of(right.clone()));
    for (wrong, found) in [
        (SignerStatus { address: inbox, ..right.clone() }, "it signs with the key of"),
        (SignerStatus { l1_chain_id: 99, ..right.clone() }, "on L1 chain 99"),
        (SignerStatus { first_number: None, ..right }, "signs nothing"),
    ] {
        let finding = of(wrong);
        assert!(finding.level == Level::Error && finding.found.contains(found), "{finding:?}");
    }
}

#[test]
fn who_stands_by_is_told_from_who_is_away() {
    let of = |alone, fault: &ReceivedError| of_fault(&peer(PeerKind::Sequencer { alone }), fault);
    let stands_by = ReceivedError::Refused(RpcError::standing_by(Some("http://me:secret@b:1")));
    let one_of_two = of(false, &stands_by);
    assert_eq!(one_of_two.level, Level::Ok);
    assert!(one_of_two.found.ends_with("stands by; http://[redacted]@b:1 leads, it says"), "{one_of_two:?}");
    assert_eq!(of(true, &stands_by).level, Level::Error);
    let away = ReceivedError::NoAnswer("refused".to_owned());
    assert_eq!((of(false, &away).level, of(true, &away).level), (Level::Warning, Level::Error));
}

#[test]
fn a_sequencer_is_one_and_of_this_chain() {
    let of = |status| of_node(&peer(PeerKind::Sequencer { alone: true }), Ok(status), Some(&chain()));
    assert_eq!(of(status()).level, Level::Ok);
    let node = of(Status { role: "full_node".to_owned(), ..status() });
    assert!(node.level == Level::Error && node.found.ends_with("a full_node answers there"), "{node:?}");
    let as_node = of_node(
        &peer(PeerKind::Node),
        Ok(Status { role: "full_node".to_owned(), ..status() }),
        Some(&chain()),
    );
    assert_eq!(as_node.level, Level::Ok);
    let other = of(Status { chain_id: 1, ..status() });
    assert!(other.level == Level::Error && other.found.contains("serves another chain"), "{other:?}");
    let mut ahead = status();
    ahead.head.timestamp_ms = u64::MAX;
    assert_eq!(of(ahead).level, Level::Warning);
}

#[test]
fn no_answer_is_an_error_but_for_one_member_of_several() {
    let silent = ReceivedError::NoAnswer("http://user:secret@a:1 refused".to_owned());
    let sequencer = of_fault(&peer(PeerKind::Sequencer { alone: true }), &silent);
    assert_eq!(sequencer.level, Level::Error);
    assert!(!sequencer.found.contains("secret"), "{sequencer:?}");
    assert_eq!(of_fault(&peer(PeerKind::Member(2)), &silent).level, Level::Warning);
    let unknown = ReceivedError::Refused(RpcError::unknown_method("committee_getStatus"));
    assert_eq!(of_fault(&peer(PeerKind::Member(2)), &unknown).level, Level::Error);
    let busy = ReceivedError::Refused(RpcError::busy("busy", "later"));
    assert_eq!(of_fault(&peer(PeerKind::Sequencer { alone: true }), &busy).level, Level::Warning);
}

#[test]
fn clocks_that_differ_by_more_than_headers_may_are_told() {
    let agrees = |date_ms| {
        of_clock(&peer(PeerKind::Node), Told { date_ms, asked_ms: 100_000, answered_ms: 100_300 }).is_ok()
    };
    assert!(agrees(100_000));
    // Written a second before the answer, cut off to the second, and two seconds off.
    assert!(agrees(96_000) && !agrees(95_999));
    assert!(agrees(102_300) && !agrees(102_301));
    assert!(!agrees(0) && !agrees(u64::MAX));
    let told = Told { date_ms: 160_000, asked_ms: 100_000, answered_ms: 100_300 };
    let ahead = of_clock(&peer(PeerKind::Node), told).unwrap_err();
    assert_eq!(ahead.found, "its clock is 59700 ms ahead of this machine's");
    assert!(ahead.next.is_some_and(|next| next.contains("NTP")));
}

//! What a member attests of data that are about to be posted, and for whom (OD-6 to OD-8). How data are read:
//! `crates/l1/tests/anvil/opened.rs`.

mod common;

use std::sync::{Arc, atomic::Ordering::SeqCst};

use blindfold_bte::bls::Signature;
use blindfold_chain::{DataError, L1Error};
use blindfold_committee::MemberHandle;
use blindfold_kit::{
    SequencerDouble, certify, chain_config, client, envelope, refused, sequencer_key, within,
};
use blindfold_protocol::{
    AttestedData, Bytes, Canonical, DataAttestation, DecodeError, Hello, Party, certificate,
    data::KIND_OPENED, keccak256, limits::MAX_ATTESTED_DATA_BYTES,
};
use blindfold_rpc::{
    ClientConfig, CommitteeApiClient, HttpClient, Introduction, http_client, limits::MAX_PEER_REQUEST_BYTES,
};
use blindfold_runtime::{Clock, random};
use common::{Machine, certified, epochs, sealer};
use tokio::sync::Semaphore;

/// A member that holds two batches certified.
struct Stage {
    _sequencer: SequencerDouble,
    machine: Machine,
    member: MemberHandle,
    /// The sequencer's client, and a stranger's.
    own: HttpClient,
    stranger: HttpClient,
}

impl Stage {
    async fn new() -> Self {
        let sequencer = SequencerDouble::start().await;
        let machine = Machine::new(1, sequencer.url());
        let member = machine.start().await;
        sequencer.followed_by(1).await;
        let sealer = sealer().await;
        for number in 1..=2 {
            let batch = sealer.seal_next(vec![envelope(1, number).encode()]).await;
            sequencer.publish(&batch.batch, &batch.verdicts);
            sequencer.publish_certificate(&certify(&batch.batch, &[1, 2, 3]));
            certified(&member, number).await;
        }
        let clock = machine.clock.clone();
        let introduction = Introduction::new(move || {
            let (nonce, server) = (random::<[u8; 16]>().into(), Party::Member(1));
            Hello::of_sequencer(&sequencer_key(), &chain_config().deployment, server, clock.now_ms(), nonce)
        });
        let config = ClientConfig {
            introduction: Some(introduction),
            max_request_bytes: MAX_PEER_REQUEST_BYTES,
            ..ClientConfig::default()
        };
        let own = http_client(&format!("http://{}", member.rpc_addr()), &config).expect("a client");
        let stranger = client(member.rpc_addr());
        Self { _sequencer: sequencer, machine, member, own, stranger }
    }

    async fn attest(&self, first: u64, last: u64, data: &[u8]) -> Result<DataAttestation, (String, bool)> {
        attest(&self.own, first, last, data).await
    }

    fn readings(&self) -> u64 {
        self.machine.l1.readings.load(SeqCst)
    }
}

async fn attest(
    client: &HttpClient,
    first: u64,
    last: u64,
    data: &[u8],
) -> Result<DataAttestation, (String, bool)> {
    let given = client.attest_data(first, last, Bytes::copy_from_slice(data)).await.map_err(refused);
    let given = given.map_err(|error| (error.reason.into_owned(), error.retry))?;
    Ok(given.decode().expect("canonical"))
}

fn refusal(reason: &str) -> Result<DataAttestation, (String, bool)> {
    Err((reason.to_owned(), false))
}

fn later(reason: &str) -> Result<DataAttestation, (String, bool)> {
    Err((reason.to_owned(), true))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_gives_the_batches_back_is_attested_however_often_and_in_whatever_bytes() {
    let stage = Stage::new().await;
    let deployment = chain_config().deployment;
    let epoch = epochs().as_slice()[0].clone();
    let mut signatures = Vec::new();
    for data in [b"some bytes".as_slice(), b"the same content in others"] {
        let given = stage.attest(1, 2, data).await.expect("attested");
        let of = AttestedData {
            epoch: 1,
            first_number: 1,
            last_number: 2,
            kind: KIND_OPENED,
            data_hash: keccak256(data),
        };
        assert_eq!((given.data, given.member), (of, 1));
        assert_eq!(certificate::verify_attestation(&given, &epoch, &deployment), Ok(()));
        signatures.push(Signature::from_bytes(&given.signature).expect("a point"));
        // It is no word on a header, nor on other numbers.
        let other = AttestedData { last_number: 1, ..of };
        let other = DataAttestation { data: other, ..given };
        assert!(certificate::verify_attestation(&other, &epoch, &deployment).is_err());
        let readings = stage.readings();
        assert_eq!(stage.attest(1, 2, data).await, Ok(given), "the answer was lost, say");
        assert_eq!(stage.readings(), readings, "and costs nothing");
    }
    assert_eq!(stage.readings(), 2);
    let metrics = stage.member.metrics().registry.render();
    let line = r#"blindfold_committee_attestations_total{outcome="given",role="committee"} 4"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_for_others_or_of_what_it_does_not_hold() {
    let stage = Stage::new().await;
    assert_eq!(attest(&stage.stranger, 1, 2, b"data").await, refusal("not_the_sequencer"));
    for (first, last) in [(0, 1), (2, 1), (1, 4_097)] {
        assert_eq!(stage.attest(first, last, b"data").await, refusal("bad_range"), "{first} to {last}");
    }
    assert_eq!(stage.attest(2, 3, b"data").await, later("not_certified"));
    let long = vec![7; MAX_ATTESTED_DATA_BYTES + 1];
    assert_eq!(stage.attest(1, 2, &long).await, refusal("too_large"));
    assert_eq!(stage.readings(), 0);
    assert!(stage.attest(1, 2, &long[1..]).await.is_ok(), "the longest fits a request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_not_attested_and_says_why() {
    let stage = Stage::new().await;
    let cases = [
        (DataError::Decode(DecodeError::Compressed), refusal("data_undecodable")),
        (DataError::Decode(DecodeError::Version(9)), refusal("data_undecodable")),
        (DataError::Mismatch, refusal("data_mismatch")),
        (DataError::Unsigned, refusal("data_unsigned")),
        (DataError::Hints(7), later("no_such_hints")),
        (DataError::NoBeacon, later("hints_unreadable")),
        (DataError::Pruned(3), later("hints_unreadable")),
    ];
    for (fault, answer) in cases {
        *stage.machine.l1.unreadable.lock() = Some(fault.clone());
        assert_eq!(stage.attest(1, 2, b"data").await, answer, "{fault}");
    }
    // Nothing of that is remembered: it may be readable later.
    *stage.machine.l1.unreadable.lock() = None;
    *stage.machine.l1.fault.lock() = Some(L1Error::no_answer("scripted"));
    assert_eq!(stage.attest(1, 2, b"data").await, later("l1_unavailable"));
    *stage.machine.l1.fault.lock() = None;
    assert!(stage.attest(1, 2, b"data").await.is_ok());
}

/// OD-8: whoever has the sequencer's key chooses what is read, and not how much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_piece_is_read_at_a_time_and_to_its_end() {
    let stage = Stage::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *stage.machine.l1.reading_gate.lock() = Some(Arc::clone(&gate));
    let mut first = Box::pin(stage.attest(1, 2, b"data"));
    within("a reading", async {
        while stage.readings() == 0 {
            tokio::select! {
                answer = &mut first => panic!("the gate is shut: {answer:?}"),
                () = tokio::time::sleep(std::time::Duration::from_millis(2)) => {}
            }
        }
    })
    .await;
    assert_eq!(stage.attest(1, 2, b"others").await, later("busy"));
    // Who asked hangs up. What was read is there for whoever asks next.
    drop(first);
    gate.add_permits(1);
    within("the end of it", async {
        while stage.attest(1, 2, b"data").await == later("busy") {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(stage.readings(), 1);
}

/// A kill loses what is remembered, and nothing that anybody relies on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_was_killed_says_the_same_again() {
    let stage = Stage::new().await;
    let given = stage.attest(1, 2, b"data").await.expect("attested");
    let Stage { machine, member, _sequencer, own: _own, stranger: _stranger } = stage;
    drop(member);
    machine.close_disk().await;
    let member = machine.start().await;
    let clock = machine.clock.clone();
    let introduction = Introduction::new(move || {
        let (nonce, server) = (random::<[u8; 16]>().into(), Party::Member(1));
        Hello::of_sequencer(&sequencer_key(), &chain_config().deployment, server, clock.now_ms(), nonce)
    });
    let config = ClientConfig { introduction: Some(introduction), ..ClientConfig::default() };
    let own = http_client(&format!("http://{}", member.rpc_addr()), &config).expect("a client");
    assert_eq!(attest(&own, 1, 2, b"data").await, Ok(given));
}

//! Hellos of peers to servers.

use alloy_primitives::{Address, FixedBytes};
use blindfold_bte::bls::SecretKey;
use blindfold_protocol::{
    Deployment, Hello, HelloError, Party, PartyKey, SigningKey, hello::MAX_HELLO_CHARS,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn deployment() -> Deployment {
    Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(7) }
}

const NONCE: FixedBytes<16> = FixedBytes([9; 16]);

/// Rule H-1.
#[test]
fn a_hello_is_worth_something_at_its_server_only_and_from_its_peer_only() {
    let rng = &mut ChaCha20Rng::seed_from_u64(1);
    let (sequencer, other) = (SigningKey::random(rng), SigningKey::random(rng));
    let (member, stranger) = (SecretKey::generate(&[3; 32]).unwrap(), SecretKey::generate(&[4; 32]).unwrap());
    let of_sequencer = Hello::of_sequencer(&sequencer, &deployment(), Party::Member(2), 5, NONCE);
    let of_member = Hello::of_member(&member, 3, &deployment(), Party::Sequencer, 5, NONCE);
    let elsewhere = Deployment { l1_chain_id: 2, ..deployment() };
    for (hello, server, key, wrong) in [
        (
            of_sequencer,
            Party::Member(2),
            PartyKey::Address(sequencer.address()),
            PartyKey::Address(other.address()),
        ),
        (
            of_member,
            Party::Sequencer,
            PartyKey::Bls(member.public_key()),
            PartyKey::Bls(stranger.public_key()),
        ),
        (
            Hello::of_hint_publisher(&other, &deployment(), Party::Sequencer, 5, NONCE),
            Party::Sequencer,
            PartyKey::Address(other.address()),
            PartyKey::Address(sequencer.address()),
        ),
    ] {
        assert_eq!(hello.verify(&deployment(), server, &key), Ok(()));
        assert_eq!(hello.verify(&deployment(), Party::Member(1), &key), Err(HelloError::Signature));
        assert_eq!(hello.verify(&elsewhere, server, &key), Err(HelloError::Signature));
        assert_eq!(hello.verify(&deployment(), server, &wrong), Err(HelloError::Signature));
        let changed = |change: fn(&mut Hello)| {
            let mut changed = hello.clone();
            change(&mut changed);
            changed.verify(&deployment(), server, &key)
        };
        assert_eq!(changed(|hello| hello.timestamp_ms = 6), Err(HelloError::Signature));
        assert_eq!(changed(|hello| hello.nonce = FixedBytes::ZERO), Err(HelloError::Signature));
        assert_eq!(changed(|hello| hello.peer = Party::Member(4)), Err(HelloError::Signature));
        let text = hello.to_string();
        assert!(text.len() <= MAX_HELLO_CHARS, "{}", text.len());
        assert_eq!(text.parse(), Ok(hello));
        for bad in [
            text.to_uppercase(),
            format!("{text} "),
            format!(" {text}"),
            text.replace("0x", ""),
            text[1..].to_owned(),
        ] {
            assert_eq!(bad.parse::<Hello>(), Err(HelloError::Form), "{bad}");
        }
    }
    // A signature of the other kind.
    let confused = Hello::of_member(&member, 3, &deployment(), Party::Sequencer, 5, NONCE);
    let fault = confused.verify(&deployment(), Party::Sequencer, &PartyKey::Address(sequencer.address()));
    assert_eq!(fault, Err(HelloError::Form));
}

#[test]
fn parties_have_one_name_each() {
    let publisher = Party::HintPublisher(Address::repeat_byte(0xab));
    let gateway = Party::Gateway(Address::repeat_byte(0xab));
    for party in [Party::Sequencer, Party::Member(1), Party::Member(64), publisher, gateway] {
        assert_eq!(party.to_string().parse(), Ok(party));
    }
    let checksummed = format!("helper-{}", Address::repeat_byte(0xab));
    let bare = format!("helper-{}", "ab".repeat(20));
    for text in [
        "",
        "member-",
        "member-01",
        "member-+1",
        "member-70000",
        "Sequencer",
        "member",
        "member-1 ",
        "helper-",
        "helper-0x01",
        "gateway-",
        &checksummed,
        &bare,
    ] {
        assert_eq!(text.parse::<Party>(), Err(HelloError::Form), "{text}");
    }
}

//! Whether keys, parameters and settings are those of the registered epochs.

use blindfold_bte::bls::SecretKey;
use blindfold_protocol::SequencerChange;

use super::*;
use crate::{doctor::finding::Level, l1_commands::status::tests::epoch as registered, test_chain::chain};

fn epochs() -> Epochs {
    Epochs::new(vec![registered(1, 1, 100), registered(2, 101, 200)]).unwrap()
}

fn key(seed: u8) -> KeyFilePublic {
    let key = SecretKey::generate(&[seed; 32]).unwrap();
    KeyFilePublic {
        member: 2,
        parameters_hash: B256::ZERO,
        bls_public_key: key.public_key().to_bytes(),
        proof_of_possession: key.prove_possession().to_bytes(),
    }
}

#[test]
fn the_last_epoch_is_to_be_followed_by_another() {
    let level = |next| in_force(&epochs(), next).level;
    assert_eq!([1, 100, 101, 190].map(level), [Level::Ok; 4]);
    let ending = in_force(&epochs(), 191);
    assert!(
        ending.level == Level::Warning && ending.found.ends_with("9 numbers are left, no epoch follows"),
        "{ending:?}"
    );
    assert_eq!(level(201), Level::Error);
}

#[test]
fn a_members_key_is_the_registered_one_and_serves() {
    let of = |next| member(&epochs(), &key(7), next);
    assert_eq!((of(1).level, of(150).level, of(201).level), (Level::Ok, Level::Ok, Level::Warning));
    let later = Epochs::new(vec![registered(1, 1, 100), {
        let mut second = registered(2, 101, 200);
        second.parameters_hash = B256::repeat_byte(9);
        second
    }]);
    let later = later.unwrap();
    let waiting = KeyFilePublic { parameters_hash: B256::repeat_byte(9), ..key(7) };
    let found = member(&later, &waiting, 5);
    assert!(found.level == Level::Warning && found.found.ends_with("which has not begun"), "{found:?}");

    let other = member(&epochs(), &key(8), 1);
    assert_eq!((other.level, other.found.as_str()), (Level::Error, "epoch 1 has another key for member 2"));
    let foreign = KeyFilePublic { parameters_hash: B256::repeat_byte(1), ..key(7) };
    let unknown = member(&epochs(), &foreign, 1);
    assert!(unknown.level == Level::Error && unknown.found.starts_with("no epoch on L1"), "{unknown:?}");
}

#[test]
fn too_few_members_in_the_settings_are_told_for_epochs_to_come() {
    let named = |members: &[u16]| {
        let peer = |member: &u16| Peer {
            setting: "members".to_owned(),
            url: String::new(),
            kind: PeerKind::Member(*member),
        };
        members.iter().map(peer).collect::<Vec<_>>()
    };
    assert_eq!(thresholds(&epochs(), &named(&[1, 2, 4]), 1), []);
    assert_eq!(thresholds(&epochs(), &named(&[1, 2, 9]), 1).len(), 2);
    let second = thresholds(&epochs(), &named(&[1, 2]), 101);
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].found, "epoch 2 needs 3 members, the settings name 2");
}

#[test]
fn a_signing_key_is_the_named_one_or_told_who_is() {
    let (chain, other) = (chain(), Address::repeat_byte(77));
    let of = |epochs: &Epochs, key| signing_key(epochs, &chain, ("signing_key", key));
    assert_eq!(of(&epochs(), chain.sequencer).level, Level::Ok);
    let stranger = of(&epochs(), other);
    assert_eq!(stranger.level, Level::Error);
    assert!(stranger.found.ends_with(&format!("the sequencer is {}", chain.sequencer)), "{stranger:?}");
    assert!(
        stranger
            .next
            .is_some_and(|next| next.contains("signing_key.file") && next.contains("l1 sequencer name"))
    );

    let changes = vec![
        SequencerChange { from_block: 0, sequencer: chain.sequencer },
        SequencerChange { from_block: 1_000, sequencer: other },
    ];
    let at = |block| epochs().with_sequencers(changes.clone(), block).unwrap();
    assert_eq!((of(&at(900), chain.sequencer).level, of(&at(900), other).level), (Level::Ok, Level::Warning));
    let over = of(&at(1_200), chain.sequencer);
    assert!(over.level == Level::Warning && over.found.contains("ended with L1 block 999"), "{over:?}");
    assert_eq!(of(&at(1_200), other).level, Level::Ok);
}

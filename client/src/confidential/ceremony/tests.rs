//! A ceremony over a small ring, from the first power to a proof, and what is refused on the way.

use std::sync::OnceLock;

use blindfold_groth16::setup::{ChainError, Fault};
use blindfold_groth16::{Proof, Statement};

use super::keys::prepared;
use super::*;
use crate::confidential::provers::{
    ProvingError, ProvingKeys, Witness, check_circuits, development, pinned_in, verifiers,
};
use blindfold_confidential::Ring;
use blindfold_confidential::executor::{Groth16Proofs, Proofs};
use native::World;

#[path = "../../../../fhe-coprocessor/confidential/testing/native.rs"]
#[allow(dead_code, reason = "the circuits' own tests use the rest")]
mod native;

const SEED: u64 = 61;

fn ring() -> Ring {
    Ring::new(16, Ring::BALANCE.modulus()).unwrap()
}

fn beacon(byte: u8) -> Beacon {
    Beacon { value: B256::repeat_byte(byte), log_iterations: 4 }
}

/// Two contributors and a beacon, each handing the state on as bytes; with what each was told.
fn powers() -> &'static (PowersState, Vec<B256>) {
    static POWERS: OnceLock<(PowersState, Vec<B256>)> = OnceLock::new();
    POWERS.get_or_init(|| {
        let mut state = PowersState::new(ring()).unwrap();
        let mut published = Vec::new();
        for closing in [false, false, true] {
            state = PowersState::decode(&state.encode()).unwrap();
            if closing { state.close(beacon(1)) } else { state.contribute() }.unwrap();
            published.push(state.contributions().last().unwrap().hash);
        }
        (state, published)
    })
}

/// The keys with which phase 2 begins: what takes longest.
fn beginning() -> &'static [Key; 4] {
    static BEGINNING: OnceLock<[Key; 4]> = OnceLock::new();
    BEGINNING.get_or_init(|| prepared(&powers().0, ring(), &mut |_| ()).unwrap())
}

/// Phase 2 before its first contribution.
fn begun() -> KeysState {
    KeysState::of(beginning())
}

/// A holding proof of a withdrawal, as wallet and coprocessor make and take it.
fn proves(keys: &ProvingKeys, proofs: &Groth16Proofs) {
    let witness = World::new(ring(), SEED).withdrawal(100, 30);
    let statement = witness.statement.clone();
    let mut parts = Vec::new();
    let mut on_part = |part| parts.push(part);
    let proof = keys.prove(ring(), &Witness::Withdrawal(Box::new(witness)), &mut on_part).unwrap();
    assert_eq!(parts.len(), 6, "{parts:?}");
    let proof = Proof::decode(&proof.0).unwrap();
    assert_eq!(proofs.withdrawal.verify(&statement, &proof), Ok(()));
    assert!(proofs.refresh.verify(&statement, &proof).is_err(), "under the key of another circuit");
    assert!(proofs.verify(&[]).is_empty());
    assert_eq!(statement.digest().len(), 32);
}

#[test]
fn a_ceremony_of_three_makes_keys_that_production_takes() {
    let (powers, published) = powers();
    powers.verify(None).unwrap();
    let listed = powers.contributions();
    assert_eq!(listed.iter().map(|one| one.hash).collect::<Vec<_>>(), *published);
    assert_eq!(listed.iter().map(|one| one.place).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(listed.iter().map(|one| one.beacon).collect::<Vec<_>>(), [None, None, Some(beacon(1))]);

    let mut state = begun();
    let mut published = Vec::new();
    for closing in [false, false, false, true] {
        state = KeysState::decode(&state.encode()).unwrap();
        if closing { state.close(beacon(2)) } else { state.contribute() }.unwrap();
        published.push(state.contributions());
    }
    for (place, (circuit, listed)) in state.contributions().into_iter().enumerate() {
        let own: Vec<Contributed> = published.iter().map(|at| *at[place].1.last().unwrap()).collect();
        assert_eq!((listed.len(), listed), (4, own), "{}", circuit.name());
    }

    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let verified = state.verify_on(beginning().clone()).unwrap();
    let pinned = verified.write(&folder).unwrap();
    assert_eq!(pinned_in(&folder).unwrap(), pinned);
    check_circuits(&folder, ring()).unwrap();
    assert!(matches!(check_circuits(&folder, Ring::BALANCE), Err(KeysError::Circuit(_))));
    assert!(matches!(verified.write(&folder), Err(CeremonyError::Files(KeysError::Exists(_)))));
    let proofs = verifiers(&folder, &pinned, false).unwrap();
    proves(&ProvingKeys::new(folder, pinned), &proofs);
}

#[test]
fn a_development_set_up_is_refused_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let pinned = development(&folder, ring(), &[7; 32], &mut |_| ()).unwrap();
    assert!(matches!(
        verifiers(&folder, &pinned, false),
        Err(KeysError::Origin { circuit: "registration", fault: OriginError::Development })
    ));
    let proofs = verifiers(&folder, &pinned, true).unwrap();
    proves(&ProvingKeys::new(folder.clone(), pinned), &proofs);
    let again = development(&folder, ring(), &[7; 32], &mut |_| ());
    assert!(matches!(again, Err(KeysError::Exists(path)) if path == folder));
}

#[test]
fn an_unfinished_ceremony_makes_no_keys() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let unfinished = |state: &KeysState| {
        let verified = state.verify_on(beginning().clone()).unwrap();
        let error = verified.write(&folder).unwrap_err();
        assert!(!folder.exists());
        match error {
            CeremonyError::Unfinished { fault, .. } => fault,
            error => panic!("{error}"),
        }
    };
    let mut state = begun();
    assert_eq!(unfinished(&state), OriginError::Contributions { phase: 2, got: 0, want: 1 });
    state.contribute().unwrap();
    assert_eq!(unfinished(&state), OriginError::NoBeacon { phase: 2 });
}

/// With τ = α = β = 1, or with what follows from a public beacon alone, whoever likes can forge: phase 2 does not begin, and
/// keys that somebody made over it all the same are refused.
#[test]
fn a_phase_1_that_nobody_contributed_to_makes_no_keys() {
    let mut powers = PowersState::new(ring()).unwrap();
    powers.verify(None).unwrap();
    let none = OriginError::Contributions { phase: 1, got: 0, want: 1 };
    let does_not_begin = |powers: &PowersState| {
        let begun = KeysState::new(powers, None, ring(), &mut |_| ());
        assert!(matches!(begun, Err(CeremonyError::UnfinishedPowers(fault)) if fault == none));
    };
    does_not_begin(&powers);
    powers.close(beacon(1)).unwrap();
    does_not_begin(&powers);

    let dir = tempfile::tempdir().unwrap();
    let beginning = prepared(&powers, ring(), &mut |_| ()).unwrap();
    let mut state = KeysState::of(&beginning);
    state.contribute().unwrap();
    state.close(beacon(2)).unwrap();
    let verified = state.verify_on(beginning).unwrap();
    let error = verified.write(&dir.path().join("keys")).unwrap_err();
    assert!(matches!(error, CeremonyError::Unfinished { fault, .. } if fault == none), "{error}");

    let mut open = PowersState::new(ring()).unwrap();
    open.contribute().unwrap();
    let begun = KeysState::new(&open, None, ring(), &mut |_| ());
    let fault = OriginError::NoBeacon { phase: 1 };
    assert!(matches!(begun, Err(CeremonyError::UnfinishedPowers(found)) if found == fault));
}

#[test]
fn what_is_not_built_on_the_same_beginning_is_refused() {
    let mut state = begun();
    state.contribute().unwrap();
    // Powers that are too small for the program's circuits.
    let error = KeysState::new(&powers().0, None, Ring::BALANCE, &mut |_| ()).unwrap_err();
    assert!(matches!(error, CeremonyError::Keys { fault: SetupError::TooFewPowers { .. }, .. }));
    // Two circuits' states in each other's place: each transcript names phase 1 and its circuit.
    let swapped = KeysState::decode(&swapped(&state)).unwrap();
    let error = swapped.verify_on(beginning().clone()).map(drop).unwrap_err();
    let start = SetupError::Inconsistent("the transcript's start");
    assert!(matches!(error, CeremonyError::Keys { circuit: "transfer", fault } if fault == start));
}

/// The encoding with the second and the third circuit's states exchanged.
fn swapped(state: &KeysState) -> Vec<u8> {
    let bytes = state.encode();
    let (mut out, mut rest) = (bytes[..8].to_vec(), &bytes[8..]);
    let mut parts = Vec::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let (part, after) = rest.split_at(4 + u32::from_be_bytes(*length) as usize);
        parts.push(part);
        rest = after;
    }
    parts.swap(1, 2);
    out.extend(parts.concat());
    out
}

#[test]
fn nothing_follows_a_beacon() {
    let mut powers = powers().0.clone();
    let after = |error: CeremonyError| match error {
        CeremonyError::Powers(SetupError::Chain(ChainError { fault, .. }))
        | CeremonyError::Keys { fault: SetupError::Chain(ChainError { fault, .. }), .. } => fault,
        error => panic!("{error}"),
    };
    assert_eq!(after(powers.contribute().unwrap_err()), Fault::AfterBeacon);
    let mut keys = begun();
    keys.close(beacon(3)).unwrap();
    assert_eq!(after(keys.close(beacon(3)).unwrap_err()), Fault::AfterBeacon);
    let long = Beacon { log_iterations: 31, ..beacon(4) };
    let error = begun().close(long).unwrap_err();
    assert!(matches!(error, CeremonyError::Keys { fault: SetupError::Beacon(31), .. }));
}

#[test]
fn bytes_that_are_no_state_are_refused() {
    let bytes = begun().encode();
    for end in [0, 7, 8, 11, 12, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(KeysState::decode(&bytes[..end]).is_err(), "{end}");
    }
    let trailing = [&bytes[..], &[0]].concat();
    assert!(matches!(KeysState::decode(&trailing), Err(CeremonyError::Container("bytes follow its end"))));
    // A coefficient of the last point.
    let mut altered = bytes.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert!(matches!(KeysState::decode(&altered), Err(CeremonyError::Decode(_))));
    let powers = powers().0.encode();
    assert!(PowersState::decode(&powers[..powers.len() - 1]).is_err());
    assert!(matches!(PowersState::decode(&bytes), Err(CeremonyError::Decode(_))));
    assert!(matches!(KeysState::decode(&powers), Err(CeremonyError::Container(_))));
}

/// The points of A's sum exchanged: under such a key A is another combination of the witness than the one that hides it.
#[test]
fn a_proof_that_a_malformed_key_made_is_not_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let mut pinned = development(&folder, ring(), &[7; 32], &mut |_| ()).unwrap();
    let path = folder.join("withdrawal.proving");
    let mut bytes = std::fs::read(&path).unwrap();
    // Magic, origin's word, the verifying key with its length, [β]₁ and [δ]₁ with theirs, and the length of A's list.
    let length = u32::from_be_bytes(bytes[24..28].try_into().unwrap()) as usize;
    let points = 28 + length + 4 + 2 * 96 + 4;
    let list = &mut bytes[points..points + 40 * 96];
    let (first, second) = list.split_at_mut(20 * 96);
    first.swap_with_slice(second);
    std::fs::write(&path, &bytes).unwrap();
    let key = ProvingKey::<ark_bls12_381::Bls12_381>::decode(&bytes).unwrap();
    pinned.get_mut("withdrawal").unwrap().proving = B256::from(key.hash());
    let witness = World::new(ring(), SEED).withdrawal(100, 30);
    let keys = ProvingKeys::new(folder, pinned);
    let made = keys.prove(ring(), &Witness::Withdrawal(Box::new(witness)), &mut |_| ());
    assert!(matches!(made, Err(ProvingError::Malformed(_))), "{:?}", made.map(|_| ()));
}

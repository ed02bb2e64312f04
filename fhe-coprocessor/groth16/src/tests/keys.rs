//! Keys as bytes, and what production settings refuse.

use super::circuits::{Chain, Product};
use super::{Bls, Bn, DEGREE, instance, product, rng};
use crate::setup::development;
use crate::{
    KeyError, Origin, OriginError, PhaseOrigin, PointError, Prover, ProverError, ProvingKey, Verifier,
    VerifyingKey,
};

#[test]
fn keys_survive_their_encoding() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let bytes = prover.key().encode();
    assert!(bytes[8..].starts_with(b"development\0"), "the header says what it is");
    let hash = prover.key().hash();
    assert_eq!(&ProvingKey::<Bls>::decode(&bytes).unwrap(), prover.key());
    let key = ProvingKey::<Bls>::decode_pinned(&bytes, &hash).unwrap();
    assert_eq!(&key, prover.key());
    assert_eq!(ProvingKey::<Bls>::decode_pinned(&bytes, &[0; 32]), Err(KeyError::Hash));
    let verifying = VerifyingKey::<Bls>::decode(&key.verifying().encode()).unwrap();
    let (statement, witness) = instance(DEGREE, 1);
    let again = Prover::new(Product { name: "product", degree: DEGREE }, key).unwrap();
    let proof = again.prove(&statement, &witness, &mut rng(1)).unwrap();
    assert_eq!(Verifier::new(verifying).verify(&statement, &proof), Ok(()));
}

#[test]
fn malformed_keys_are_refused_by_name() {
    let (prover, _) = product::<Bls>("product", 2);
    let key = prover.key();
    let bytes = key.encode();
    let verifying = key.verifying().encode();
    for end in (0..bytes.len()).step_by(97) {
        assert!(ProvingKey::<Bls>::decode(&bytes[..end]).is_err(), "{end}");
    }
    for end in (0..verifying.len()).step_by(7) {
        assert_eq!(VerifyingKey::<Bls>::decode(&verifying[..end]).unwrap_err(), KeyError::Truncated, "{end}");
    }
    let longer = [&verifying[..], &[0]].concat();
    assert_eq!(VerifyingKey::<Bls>::decode(&longer), Err(KeyError::Trailing(1)));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(ProvingKey::<Bls>::decode(&longer), Err(KeyError::Trailing(1)));
    assert_eq!(VerifyingKey::<Bn>::decode(&verifying), Err(KeyError::Curve));
    assert_eq!(VerifyingKey::<Bls>::decode(&bytes), Err(KeyError::Magic("verifying key")));
    assert_eq!(ProvingKey::<Bls>::decode(&verifying), Err(KeyError::Magic("proving key")));
    let mut other = verifying.clone();
    other[16] ^= 1;
    assert_eq!(VerifyingKey::<Bls>::decode(&other), Err(KeyError::Header("unknown origin")));
    // [α]₁ at infinity, then off the curve.
    let alpha = 8 + 8 + 90 + 32 + 12 + 32;
    other = verifying.clone();
    other[alpha..alpha + 48].fill(0);
    other[alpha] = 0xc0;
    assert_eq!(VerifyingKey::<Bls>::decode(&other), Err(KeyError::Infinity("[α]₁")));
    other[alpha] = 0x80;
    other[alpha + 47] = 4;
    assert_eq!(VerifyingKey::<Bls>::decode(&other), Err(KeyError::Point("[α]₁", PointError::Subgroup)));
    // A large count of points in a short file.
    other = bytes.clone();
    let first_count = 8 + 16 + 4 + verifying.len();
    other[first_count..first_count + 4].fill(0xff);
    assert_eq!(ProvingKey::<Bls>::decode(&other), Err(KeyError::Truncated));
    // [β]₁ off the curve.
    other = bytes;
    other[first_count + 4 + 95] ^= 1;
    assert_eq!(ProvingKey::<Bls>::decode(&other), Err(KeyError::Point("[β]₁ or [δ]₁", PointError::Encoding)));
}

#[test]
fn a_prover_takes_the_key_of_its_circuit_only() {
    let (prover, _) = product::<Bls>("product", DEGREE);
    let other = Product { name: "product", degree: DEGREE + 1 };
    assert_eq!(Prover::new(other, prover.key().clone()).err(), Some(ProverError::Circuit));
    let mut key = prover.key().clone();
    key.specific.private.pop();
    let circuit = Product { name: "product", degree: DEGREE };
    assert_eq!(Prover::new(circuit, key).err(), Some(ProverError::Key("[K/δ]₁")));
}

#[test]
fn production_refuses_development_keys() {
    let key = development::<Bls, _>(&Chain(3), &[1; 32]).unwrap();
    assert_eq!(key.verifying().origin().require_ceremony(0), Err(OriginError::Development));
    let phase = |contributions, beacon| PhaseOrigin { contributions, beacon, transcript: [0; 32] };
    let good = phase(2, true);
    let few = |phase| OriginError::Contributions { phase, got: 1, want: 2 };
    for (other, fault) in [
        (phase(1, true), few as fn(u8) -> OriginError),
        (phase(2, false), |phase| OriginError::NoBeacon { phase }),
        (phase(0, true), |phase| OriginError::Contributions { phase, got: 0, want: 2 }),
    ] {
        for (origin, phase) in [
            (Origin::Ceremony { powers: other, keys: good }, 1),
            (Origin::Ceremony { powers: good, keys: other }, 2),
        ] {
            assert_eq!(origin.require_ceremony(2), Err(fault(phase)));
        }
    }
    assert_eq!(Origin::Ceremony { powers: good, keys: good }.require_ceremony(2), Ok(()));
    // At least one, whatever is asked for.
    let none = Origin::Ceremony { powers: phase(0, true), keys: good };
    let fault = OriginError::Contributions { phase: 1, got: 0, want: 1 };
    assert_eq!(none.require_ceremony(0), Err(fault));
}

#[test]
fn seeds_and_circuits_give_keys_of_their_own() {
    let hash = |length, seed| development::<Bls, _>(&Chain(length), &[seed; 32]).unwrap().hash();
    assert_eq!(hash(3, 1), hash(3, 1));
    assert_ne!(hash(3, 1), hash(3, 2));
    assert_ne!(hash(3, 1), hash(4, 1));
}

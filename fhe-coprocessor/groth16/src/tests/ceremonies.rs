//! Both phases of a set-up, and what must be refused.

use ark_ec::{AffineRepr, CurveGroup};

use super::circuits::Product;
use super::{Bls, Bn, instance, rng};
use crate::setup::{
    ChainError, Fault, KeyCeremony, Powers, PowersCeremony, SetupDecodeError, SetupError, prepare,
};
use crate::{
    Curve, KeyError, Origin, OriginError, PhaseOrigin, Proof, Prover, ProvingKey, R1cs, Verifier, challenge,
    qap,
};

const DEGREE: usize = 3;
const CIRCUIT: Product = Product { name: "ceremony", degree: DEGREE };

fn rows<E: Curve>() -> R1cs<E::ScalarField> {
    R1cs::of(&CIRCUIT).unwrap()
}

/// Phase 1 with two contributors and a beacon.
fn powers<E: Curve>() -> PowersCeremony<E> {
    let mut rng = rng(1);
    let mut ceremony = PowersCeremony::new(4);
    for _ in 0..2 {
        let mut next = PowersCeremony::decode(&ceremony.encode()).unwrap();
        next.contribute(&mut rng).unwrap();
        ceremony.accept(next, &mut rng).unwrap();
    }
    ceremony.close([5; 32], 4, &mut rng).unwrap();
    ceremony.verify(None, &mut rng).unwrap();
    ceremony
}

fn prepared<E: Curve>() -> ProvingKey<E> {
    prepare(&powers(), &rows::<E>()).unwrap()
}

fn whole<E: Curve>() {
    let mut rng = rng(2);
    let prepared = prepared::<E>();
    let mut ceremony = KeyCeremony::new(&prepared);
    for contributions in 1..=2 {
        let mut next = KeyCeremony::decode(&ceremony.encode()).unwrap();
        next.contribute(&mut rng).unwrap();
        ceremony.accept(next, &prepared, &mut rng).unwrap();
        let entries = ceremony.transcript().entries();
        assert_eq!(entries.len(), contributions);
        assert_eq!(entries[contributions - 1].hash, ceremony.transcript().hash());
    }
    ceremony.close([6; 32], 4, &mut rng).unwrap();
    let key = ceremony.key(&prepared);
    ceremony.verify_key(&prepared, &key, &mut rng).unwrap();
    let transcript = ceremony.transcript().hash();
    let entries = ceremony.transcript().entries();
    assert_eq!(entries.iter().map(|entry| entry.beacon.is_some()).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(entries[2].hash, transcript);
    assert_eq!(entries[2].beacon.map(|beacon| (beacon.value, beacon.log_iterations)), Some(([6; 32], 4)));
    let keys = PhaseOrigin { contributions: 2, beacon: true, transcript };
    let powers = PhaseOrigin { transcript: powers::<E>().transcript().hash(), ..keys };
    let origin = Origin::Ceremony { powers, keys };
    assert_eq!(*key.verifying().origin(), origin);
    assert_eq!(key.verifying().origin().require_ceremony(2), Ok(()));
    assert_eq!(ProvingKey::decode(&key.encode()).as_ref(), Ok(&key));

    let verifier = Verifier::new(key.verifying().clone());
    let prover = Prover::new(CIRCUIT, key).unwrap();
    let (statement, witness) = instance(DEGREE, 1);
    let proof = prover.prove(&statement, &witness, &mut rng).unwrap();
    assert_eq!(verifier.verify(&statement, &proof), Ok(()));
}

#[test]
fn a_whole_ceremony_makes_a_key_over_both_curves() {
    whole::<Bls>();
    whole::<Bn>();
}

/// With τ = α = β = 1 the logarithms of the public variables' points are known, and e(A, B) = e(α, β)·e(X, 1) can be met
/// without a witness, whatever phase 2 was. The statement is false: its sum is one too much.
#[test]
fn a_ceremony_without_a_contribution_to_phase_1_forges_and_is_refused() {
    let mut rng = rng(12);
    let r1cs = rows::<Bls>();
    let nobody = PowersCeremony::<Bls>::new(4);
    nobody.verify(None, &mut rng).unwrap();
    let mut only_a_beacon = nobody.clone();
    only_a_beacon.close([7; 32], 4, &mut rng).unwrap();
    for (phase_1, forgeable) in [(nobody, true), (only_a_beacon, false)] {
        let prepared = prepare(&phase_1, &r1cs).unwrap();
        let mut ceremony = KeyCeremony::new(&prepared);
        ceremony.contribute(&mut rng).unwrap();
        ceremony.close([6; 32], 4, &mut rng).unwrap();
        let key = ceremony.key(&prepared);
        ceremony.verify_key(&prepared, &key, &mut rng).unwrap();
        let none = OriginError::Contributions { phase: 1, got: 0, want: 1 };
        for least in [0, 1] {
            assert_eq!(key.verifying().origin().require_ceremony(least), Err(none));
        }
        let verifier = Verifier::new(key.verifying().clone());
        let (mut statement, _) = instance(DEGREE, 1);
        statement.sum += 1;
        let (g1, g2) = (ark_bls12_381::G1Affine::generator(), ark_bls12_381::G2Affine::generator());
        let nothing = ark_bls12_381::G1Affine::zero();
        let public =
            challenge::public(verifier.key_hash(), key.verifying().shape(), &statement, &nothing).unwrap();
        let domain = qap::domain(&r1cs).unwrap();
        let one = ark_bls12_381::Fr::from(1u64);
        let lagrange = ark_poly::EvaluationDomain::evaluate_all_lagrange_coefficients(&domain, one);
        let [u, v, w] = qap::at_point(&r1cs, &lagrange);
        let logarithm: ark_bls12_381::Fr =
            public.iter().enumerate().map(|(i, value)| (u[i] + v[i] + w[i]) * value).sum();
        let forged = Proof {
            a: g1,
            b: (g2 * (one + logarithm)).into_affine(),
            c: nothing,
            commitment: nothing,
            knowledge: nothing,
        };
        assert_eq!(verifier.verify(&statement, &forged).is_ok(), forgeable);
    }
}

#[test]
fn phase_1_checks_what_it_is_given() {
    let mut rng = rng(3);
    let good = powers::<Bls>();
    let two = |powers: &Powers<Bls>| (powers.tau_g1[2] + powers.tau_g1[0]).into_affine();
    let inconsistent = |alter: &dyn Fn(&mut Powers<Bls>), what: &'static str| {
        let mut powers = good.powers().clone();
        alter(&mut powers);
        assert_eq!(powers.check(&mut super::rng(4)), Err(SetupError::Inconsistent(what)));
    };
    inconsistent(&|powers| powers.tau_g1[2] = two(powers), "the powers of τ in G1");
    inconsistent(&|powers| powers.alpha_tau_g1[2] = two(powers), "the powers times α");
    inconsistent(&|powers| powers.beta_tau_g1[15] = two(powers), "the powers times β");
    inconsistent(&|powers| powers.tau_g2[3] = powers.tau_g2[4], "the powers of τ in G2");
    inconsistent(&|powers| powers.beta_g2 = powers.tau_g2[1], "the two points of β");
    inconsistent(&|powers| powers.tau_g1[0] = powers.tau_g1[1], "the zeroth powers");
    inconsistent(&|powers| powers.tau_g2[1] = AffineRepr::zero(), "secrets that are 0");
    inconsistent(&|powers| powers.tau_g2.truncate(15), "the lengths");

    // Powers of somebody's own, under the others' transcript.
    let mut own = PowersCeremony::<Bls>::new(4);
    own.contribute(&mut rng).unwrap();
    let mixed = PowersCeremony { powers: own.powers, ..good.clone() };
    assert_eq!(mixed.verify(None, &mut rng), Err(SetupError::Inconsistent("the secrets")));
    assert!(matches!(
        prepare(&PowersCeremony::<Bls>::new(2), &rows::<Bls>()),
        Err(SetupError::TooFewPowers { got: 4, want: 16 })
    ));
}

#[test]
fn a_contribution_without_knowledge_is_refused() {
    let mut rng = rng(4);
    let prepared = prepared::<Bls>();
    let mut last = KeyCeremony::new(&prepared);
    last.contribute(&mut rng).unwrap();
    let mut good = last.clone();
    good.contribute(&mut rng).unwrap();
    let refused = |alter: &dyn Fn(&mut KeyCeremony<Bls>), fault: Fault| {
        let (mut last, mut next) = (last.clone(), good.clone());
        alter(&mut next);
        let want = SetupError::Chain(ChainError { index: 1, fault });
        let before = last.clone();
        assert_eq!(last.accept(next, &prepared, &mut super::rng(5)), Err(want));
        assert_eq!(last, before, "a refused state changes nothing");
    };
    for which in 0..2 {
        // A secret replaced by one whose factor the contributor does not know.
        refused(
            &|next| {
                let secret = &mut next.transcript.contributions[1].secrets[which];
                *secret = (*secret + ark_bls12_381::G2Affine::generator()).into_affine();
            },
            Fault::Knowledge(which),
        );
        refused(
            &|next| {
                next.transcript.contributions[1].proofs[which].response += ark_bls12_381::Fr::from(1u64);
            },
            Fault::Knowledge(which),
        );
        refused(
            &|next| next.transcript.contributions[1].secrets[which] = AffineRepr::zero(),
            Fault::Zero(which),
        );
        refused(
            &|next| {
                let contributions = &mut next.transcript.contributions;
                contributions[1].secrets[which] = contributions[0].secrets[which];
            },
            Fault::One(which),
        );
    }
    // The two proofs swapped, the first contributor's proof taken again.
    refused(&|next| next.transcript.contributions[1].proofs.swap(0, 1), Fault::Knowledge(0));
    refused(
        &|next| {
            let contributions = &mut next.transcript.contributions;
            contributions[1].proofs = contributions[0].proofs;
        },
        Fault::Knowledge(0),
    );
}

#[test]
fn a_state_that_is_not_built_on_the_last_is_refused() {
    let mut rng = rng(6);
    let prepared = prepared::<Bls>();
    let mut last = KeyCeremony::new(&prepared);
    last.contribute(&mut rng).unwrap();

    let mut from_scratch = KeyCeremony::new(&prepared);
    from_scratch.contribute(&mut rng).unwrap();
    let unchanged = last.clone();
    let mut two_more = last.clone();
    two_more.contribute(&mut rng).unwrap();
    two_more.contribute(&mut rng).unwrap();
    let mut other_start = last.clone();
    other_start.contribute(&mut rng).unwrap();
    other_start.transcript.start[0] ^= 1;
    for state in [from_scratch.clone(), unchanged, two_more, other_start] {
        assert_eq!(last.accept(state, &prepared, &mut rng), Err(SetupError::NotBuiltOnLast));
    }
    // The same elements with the last contributor taken out of the transcript: its proof is for another hash.
    let mut next = last.clone();
    next.contribute(&mut rng).unwrap();
    next.transcript.contributions.remove(0);
    let error = KeyCeremony::new(&prepared).accept(next, &prepared, &mut rng);
    let fault = Fault::Knowledge(0);
    assert_eq!(error, Err(SetupError::Chain(ChainError { index: 0, fault })));
    // A contribution for another circuit's ceremony, moved here.
    let r1cs = R1cs::of(&Product { name: "another", degree: DEGREE }).unwrap();
    let other = prepare(&powers::<Bls>(), &r1cs).unwrap();
    let mut moved = KeyCeremony::new(&other);
    moved.contribute(&mut rng).unwrap();
    moved.transcript.start = KeyCeremony::new(&prepared).transcript.start;
    assert!(matches!(
        KeyCeremony::new(&prepared).accept(moved, &prepared, &mut rng),
        Err(SetupError::Chain(ChainError { index: 0, .. }))
    ));
}

#[test]
fn a_contribution_that_alters_other_elements_is_refused() {
    let mut rng = rng(7);
    let prepared = prepared::<Bls>();
    let last = KeyCeremony::new(&prepared);
    let mut good = last.clone();
    good.contribute(&mut rng).unwrap();
    let one = ark_bls12_381::G1Affine::generator();
    let refused = |alter: &dyn Fn(&mut KeyCeremony<Bls>), what: &'static str| {
        let mut next = good.clone();
        alter(&mut next);
        let error = last.clone().accept(next, &prepared, &mut super::rng(8));
        assert_eq!(error, Err(SetupError::Inconsistent(what)));
    };
    let shift = |point: &mut ark_bls12_381::G1Affine| *point = (*point + one).into_affine();
    let (over, times) = ("the elements over δ", "the elements times σ");
    refused(&|next| shift(&mut next.specific.quotient[0]), over);
    refused(&|next| shift(&mut next.specific.private[1]), over);
    refused(&|next| shift(&mut next.specific.unblind), over);
    refused(&|next| next.specific.private.swap(0, 1), over);
    refused(&|next| next.specific.quotient.truncate(9), "the numbers of elements over δ");
    // The same elements in the same order, with the boundary of the two lists elsewhere.
    refused(
        &|next| {
            let moved = next.specific.private.remove(0);
            next.specific.quotient.push(moved);
        },
        "the numbers of elements over δ",
    );
    refused(
        &|next| {
            next.specific.knowledge.pop();
        },
        "the numbers of elements times σ",
    );
    refused(&|next| shift(&mut next.specific.knowledge[0]), times);
    refused(&|next| shift(&mut next.specific.knowledge_blinding), times);
    refused(&|next| shift(&mut next.delta), "the two points of δ");

    let mut key = good.key(&prepared);
    assert_eq!(good.verify_key(&prepared, &key, &mut rng), Ok(()));
    shift(&mut key.verifying.public[1]);
    assert_eq!(good.verify_key(&prepared, &key, &mut rng), Err(SetupError::Foreign));
}

#[test]
fn a_beacon_is_checked_and_ends_the_ceremony() {
    let mut rng = rng(9);
    let prepared = prepared::<Bls>();
    let mut ceremony = KeyCeremony::new(&prepared);
    ceremony.contribute(&mut rng).unwrap();
    let mut closed = ceremony.clone();
    closed.close([1; 32], 3, &mut rng).unwrap();
    assert_eq!(closed.transcript().contributors(), 1);
    assert_eq!(closed.verify(&prepared, &mut rng), Ok(()));
    let after = SetupError::Chain(ChainError { index: 2, fault: Fault::AfterBeacon });
    assert_eq!(closed.contribute(&mut rng), Err(after));
    assert_eq!(ceremony.clone().close([1; 32], 31, &mut rng), Err(SetupError::Beacon(31)));

    // Called a beacon, but with factors of the contributor's own. The kind is no part of what is proved, so the
    // factors themselves must tell.
    let mut own = ceremony.clone();
    own.contribute(&mut rng).unwrap();
    own.transcript.contributions[1].beacon = closed.transcript.contributions[1].beacon;
    let fault = SetupError::Chain(ChainError { index: 1, fault: Fault::Beacon });
    assert_eq!(own.verify(&prepared, &mut rng), Err(fault));
}

#[test]
fn states_that_are_malformed_are_refused() {
    let mut rng = rng(10);
    let mut ceremony = KeyCeremony::new(&prepared::<Bls>());
    ceremony.contribute(&mut rng).unwrap();
    let bytes = ceremony.encode();
    assert_eq!(KeyCeremony::<Bls>::decode(&bytes).unwrap(), ceremony);
    for end in (0..bytes.len()).step_by(7) {
        assert!(KeyCeremony::<Bls>::decode(&bytes[..end]).is_err());
    }
    let kind = 16 + 32 + 4;
    let mut other = bytes.clone();
    other[kind] = 2;
    assert_eq!(KeyCeremony::<Bls>::decode(&other), Err(SetupDecodeError::Kind(2)));
    let response = kind + 1 + 2 * 192 + 192;
    other = bytes.clone();
    other[response..response + 32].fill(0xff);
    assert_eq!(KeyCeremony::<Bls>::decode(&other), Err(SetupDecodeError::Scalar));
    assert_eq!(KeyCeremony::<Bn>::decode(&bytes), Err(SetupDecodeError::Bytes(KeyError::Curve)));
    assert!(PowersCeremony::<Bls>::decode(&bytes).is_err());
}

/// Both ways to a key: a ceremony's elements are those of a key made from the same secrets.
#[test]
fn phase_1_and_2_meet_the_direct_computation() {
    use crate::setup::{Secrets, generate};
    let r1cs = rows::<Bls>();
    let n = ark_poly::EvaluationDomain::size(&qap::domain(&r1cs).unwrap());
    let scalar = |i: u64| ark_bls12_381::Fr::from(1_000_003 * i + 17);
    let (tau, alpha, beta) = (scalar(1), scalar(2), scalar(3));
    let g1 = ark_bls12_381::G1Affine::generator();
    let g2 = ark_bls12_381::G2Affine::generator();
    let power = |i: usize| ark_ff::Field::pow(&tau, [i as u64]);
    let powers = Powers::<Bls> {
        tau_g1: (0..2 * n - 1).map(|i| (g1 * power(i)).into_affine()).collect(),
        tau_g2: (0..n).map(|i| (g2 * power(i)).into_affine()).collect(),
        alpha_tau_g1: (0..n).map(|i| (g1 * (alpha * power(i))).into_affine()).collect(),
        beta_tau_g1: (0..n).map(|i| (g1 * (beta * power(i))).into_affine()).collect(),
        beta_g2: (g2 * beta).into_affine(),
    };
    powers.check(&mut rng(11)).unwrap();
    let prepared = prepare(&PowersCeremony::of(powers, None), &r1cs).unwrap();
    let one = ark_bls12_381::Fr::from(1u64);
    let secrets = Secrets { tau, alpha, beta, delta: one, sigma: one };
    assert_eq!(generate(&r1cs, &secrets, *prepared.verifying().origin()).unwrap(), prepared);
}

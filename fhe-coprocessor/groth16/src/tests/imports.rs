//! Powers of τ from a transcript that another program wrote: three rounds for 2^4 rows, made with the reference of Zcash's
//! ceremony (<https://github.com/ebfull/powersoftau> at 5429415, `TAU_POWERS_LENGTH` set to 2^4, each contributor's
//! generator seeded with `[0xb11d, round]`), which printed the last hash.

use std::io::Cursor;

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Field;
use ark_serialize::Compress;
use blake2::{Blake2b512, Digest};

use super::circuits::Product;
use super::{instance, rng};
use crate::points;
use crate::setup::hash_to_g2::hash_to_g2;
use crate::setup::{
    Beacon, ImportError, KeyCeremony, PowersCeremony, PowersTranscript, SetupError, TranscriptError, prepare,
};
use crate::{Prover, R1cs, Verifier};

const TRANSCRIPT: &[u8] = include_bytes!("../../testing/powersoftau.transcript");
const HASH: &str = "c900e54a93d8057597a5134cbdfdbf75b189c99d6dd1efbd6b9351496fd66899893a11a5f0bf0e02b728085e7682603202f9c3741f33fc23d07da2c0ed53268f";
const LOG_SIZE: u8 = 4;
/// Of one round: 31 + 32 points of G1 and 16 + 1 of G2, six and three of the contributor.
const ROUND_BYTES: usize = (31 + 32 + 6) * 96 + (17 + 3) * 192;

fn imported(bytes: &[u8], log_rows: u8) -> Result<PowersCeremony<Bls12_381>, ImportError> {
    PowersTranscript::new(Cursor::new(bytes), LOG_SIZE).import(log_rows, &mut rng(1), &mut |_| ())
}

#[test]
fn a_published_transcript_is_checked_and_counts() {
    let mut rounds = Vec::new();
    let mut ceremony = PowersTranscript::new(Cursor::new(TRANSCRIPT), LOG_SIZE)
        .import(LOG_SIZE, &mut rng(1), &mut |round| rounds.push(round))
        .unwrap();
    assert_eq!(rounds, [1, 2, 3]);
    let published = ceremony.imported().cloned();
    assert_eq!(published.as_ref().map(|one| hex::encode(one.hash())).as_deref(), Some(HASH));
    let fewer = imported(TRANSCRIPT, 3).unwrap();
    assert_eq!((ceremony.powers().rows(), fewer.powers().rows()), (16, 8));
    assert_eq!(fewer.powers().tau_g1[..], ceremony.powers().tau_g1[..15]);

    // Others go on from there, and a beacon closes.
    let mut rng = rng(2);
    let mut next = PowersCeremony::decode(&ceremony.encode()).unwrap();
    next.contribute(&mut rng).unwrap();
    ceremony.accept(next, &mut rng).unwrap();
    ceremony.close([5; 32], 4, &mut rng).unwrap();
    assert_eq!(ceremony.verify(published.as_ref(), &mut rng), Ok(()));
    assert_eq!(ceremony.verify(None, &mut rng), Err(SetupError::Imported));
    assert_eq!((ceremony.origin().contributions, ceremony.origin().beacon), (4, true));
    assert_eq!(ceremony.transcript().entries()[1].beacon, Some(Beacon { value: [5; 32], log_iterations: 4 }));

    let circuit = || Product { name: "imported", degree: 3 };
    let prepared = prepare(&ceremony, &R1cs::of(&circuit()).unwrap()).unwrap();
    let mut keys = KeyCeremony::new(&prepared);
    keys.contribute(&mut rng).unwrap();
    keys.close([6; 32], 4, &mut rng).unwrap();
    let key = keys.key(&prepared);
    assert_eq!(key.verifying().origin().require_ceremony(1), Ok(()));
    let verifier = Verifier::new(key.verifying().clone());
    let (statement, witness) = instance(3, 1);
    let proof = Prover::new(circuit(), key).unwrap().prove(&statement, &witness, &mut rng).unwrap();
    assert_eq!(verifier.verify(&statement, &proof), Ok(()));
}

#[test]
fn another_beginning_than_the_imported_one_is_refused() {
    let mut rng = rng(3);
    let two_rounds = imported(&TRANSCRIPT[..2 * ROUND_BYTES], LOG_SIZE).unwrap();
    let three = imported(TRANSCRIPT, LOG_SIZE).unwrap();
    assert_eq!(three.verify(two_rounds.imported(), &mut rng), Err(SetupError::Imported));
    // A state that claims more contributions than the transcript has.
    let mut claimed = three.clone();
    if let Some(imported) = &mut claimed.imported {
        imported.contributions = 100;
    }
    assert_eq!(claimed.verify(three.imported(), &mut rng), Err(SetupError::Imported));
    // One that is begun here, under an imported one's name.
    let mut own = PowersCeremony::<Bls12_381>::new(LOG_SIZE);
    own.imported = three.imported().cloned();
    let start = SetupError::Inconsistent("the transcript's start");
    assert_eq!(own.verify(three.imported(), &mut rng), Err(start));
    assert_eq!(
        PowersCeremony::<Bls12_381>::new(LOG_SIZE).verify(three.imported(), &mut rng),
        Err(SetupError::Imported)
    );
}

#[test]
fn a_transcript_that_was_altered_is_refused_with_its_round() {
    let fault = |bytes: &[u8]| match imported(bytes, LOG_SIZE) {
        Err(ImportError::Round { round, fault }) => (round, fault),
        other => panic!("{other:?}"),
    };
    let replaced = |at: usize, by: usize, length: usize| {
        let mut bytes = TRANSCRIPT.to_vec();
        bytes.copy_within(by..by + length, at);
        fault(&bytes)
    };
    let (g1, g2) = (96, 192);
    let (tau_g2, alpha, beta) = (31 * g1, 31 * g1 + 16 * g2, 47 * g1 + 16 * g2);
    let beta_g2 = 63 * g1 + 16 * g2;
    let key = beta_g2 + g2;
    let last = 2 * ROUND_BYTES;
    // Powers that are not looked at one by one are bound by the next contributor's challenge.
    assert_eq!(replaced(5 * g1, 6 * g1, g1), (2, TranscriptError::Knowledge(0)));
    assert_eq!(replaced(last, last + g1, g1), (3, TranscriptError::Generators));
    assert_eq!(replaced(last + tau_g2, last + tau_g2 + g2, g2), (3, TranscriptError::Generators));
    assert_eq!(replaced(last + g1, last + 2 * g1, g1), (3, TranscriptError::Secret(0)));
    assert_eq!(replaced(last + alpha, last + alpha + g1, g1), (3, TranscriptError::Secret(1)));
    assert_eq!(replaced(last + beta, last + beta + g1, g1), (3, TranscriptError::Secret(2)));
    assert_eq!(replaced(last + beta_g2, last + tau_g2, g2), (3, TranscriptError::Beta));
    for which in 0..3 {
        let pair = last + key + which * 2 * g1;
        assert_eq!(replaced(pair, pair + g1, g1), (3, TranscriptError::Knowledge(which)));
    }
    // A round taken again: its contributor proved his factor for another challenge.
    let again = [TRANSCRIPT, &TRANSCRIPT[last..]].concat();
    assert_eq!(fault(&again), (4, TranscriptError::Knowledge(0)));
    // A power of the last round that is kept, and the powers' own check.
    let mut bytes = TRANSCRIPT.to_vec();
    bytes.copy_within(last + 6 * g1..last + 7 * g1, last + 5 * g1);
    let error = imported(&bytes, LOG_SIZE).unwrap_err();
    assert!(matches!(error, ImportError::Powers(SetupError::Inconsistent("the powers of τ in G1"))));
}

#[test]
fn bytes_that_are_no_transcript_are_refused() {
    assert!(matches!(imported(&[], LOG_SIZE), Err(ImportError::Empty)));
    for cut in [1, 100, ROUND_BYTES - 1] {
        assert!(matches!(imported(&TRANSCRIPT[..cut], LOG_SIZE), Err(ImportError::Cut(1))));
    }
    let end = TRANSCRIPT.len() - 1;
    assert!(matches!(imported(&TRANSCRIPT[..end], LOG_SIZE), Err(ImportError::Cut(3))));
    for log_rows in [0, 5] {
        assert!(matches!(imported(TRANSCRIPT, log_rows), Err(ImportError::Size { .. })));
    }
    let mut bytes = TRANSCRIPT.to_vec();
    bytes[96] |= 0x80;
    let point = TranscriptError::Point;
    assert!(
        matches!(imported(&bytes, LOG_SIZE), Err(ImportError::Round { round: 1, fault }) if fault == point)
    );
    bytes = TRANSCRIPT.to_vec();
    bytes[2 * 96 - 1] ^= 1;
    assert!(
        matches!(imported(&bytes, LOG_SIZE), Err(ImportError::Round { round: 1, fault }) if fault == point)
    );
}

/// A transcript of one round, well formed, whose contributor multiplies by 1 wherever `factors` does; by 2 elsewhere.
fn one_round(factors: [u64; 3]) -> Vec<u8> {
    let (one, two) = (G1Affine::generator(), G2Affine::generator());
    let [tau, alpha, beta] = factors.map(Fr::from);
    let write = |bytes: &mut Vec<u8>, powers: [(usize, Fr, Fr); 5]| {
        for (list, (count, first, ratio)) in powers.into_iter().enumerate() {
            let elements = std::iter::successors(Some(first), |last| Some(*last * ratio)).take(count);
            elements.for_each(|element| match list {
                1 | 4 => points::write(bytes, &(two * element).into_affine(), Compress::No),
                _ => points::write(bytes, &(one * element).into_affine(), Compress::No),
            });
        }
    };
    let n = 1 << LOG_SIZE;
    let powers = |tau: Fr, alpha: Fr, beta: Fr| {
        let mut bytes = Vec::new();
        write(
            &mut bytes,
            [(2 * n - 1, Fr::ONE, tau), (n, Fr::ONE, tau), (n, alpha, tau), (n, beta, tau), (1, beta, tau)],
        );
        bytes
    };
    let blank: [u8; 64] = Blake2b512::digest([]).into();
    let first = powers(Fr::ONE, Fr::ONE, Fr::ONE);
    let challenge: [u8; 64] = Blake2b512::new_with_prefix(blank).chain_update(first).finalize().into();
    let mut transcript = powers(tau, alpha, beta);
    let (mut pairs, mut twins) = (Vec::new(), Vec::new());
    for (which, factor) in [tau, alpha, beta].into_iter().enumerate() {
        let mut pair = Vec::new();
        points::write(&mut pair, &one, Compress::No);
        points::write(&mut pair, &(one * factor).into_affine(), Compress::No);
        let hashed = Blake2b512::new_with_prefix([which as u8]).chain_update(challenge).chain_update(&pair);
        let twin = hash_to_g2(&hashed.finalize().into());
        points::write(&mut twins, &(twin * factor).into_affine(), Compress::No);
        pairs.extend(pair);
    }
    transcript.extend([pairs, twins].concat());
    assert_eq!(transcript.len(), ROUND_BYTES);
    transcript
}

/// Else keys whose secrets everybody knows, with nobody but the beacon behind them, would count a contributor.
#[test]
fn a_round_that_leaves_a_secret_as_it_was_is_no_contribution() {
    let ceremony = imported(&one_round([2, 3, 5]), LOG_SIZE).unwrap();
    assert_eq!(ceremony.origin().contributions, 1);
    for (which, factors) in [[1, 3, 5], [2, 1, 5], [2, 3, 1]].into_iter().enumerate() {
        let refused = imported(&one_round(factors), LOG_SIZE);
        let one = TranscriptError::One(which);
        assert!(
            matches!(refused, Err(ImportError::Round { round: 1, fault }) if fault == one),
            "{refused:?}"
        );
    }
    let refused = imported(&one_round([1, 1, 1]), LOG_SIZE);
    assert!(matches!(refused, Err(ImportError::Round { round: 1, fault: TranscriptError::One(0) })));
}

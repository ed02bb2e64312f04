//! Honest hints pass, forged ones do not; and what the membership test is for.

use super::*;
use crate::{Encrypted, release_share};
use ark_bls12_381::Bls12_381;
use ark_ec::pairing::Pairing;
use ark_ec::{AdditiveGroup, AffineRepr};
use ark_ff::One;

/// Smallest prime factor of the order of the cyclotomic subgroup.
const SMALL_ORDER: u64 = 4513;

/// (p⁴ − p² + 1)/4513, least significant limb first.
const CYCLOTOMIC_ORDER_OVER_SMALL: [u64; 24] = [
    0x55b163f39ac229d9,
    0xc92a0f0168e49bde,
    0xe8b45143a5e8da1a,
    0x3de271e9f30db60b,
    0x5e8587ab22ef0aad,
    0xe28cfd1a2a5f33ab,
    0x5ba756d010548081,
    0xeb5094f664d01f3d,
    0x0a2db1754d3ef43f,
    0xd5d4c600988f6c3b,
    0x1e3ef618ab612749,
    0xb0dc97447a3e9698,
    0xb74fc1c134a671f6,
    0x52a169b0cab754dc,
    0x28a00ecd6bdb4538,
    0x553cc486189e16a2,
    0xac88d6dd01f53279,
    0xb6263e26c181d1c6,
    0xf0b91e6e264e57de,
    0x0b366090e00227c1,
    0x77f7bbcfbd62c9ee,
    0xff34202c35e17458,
    0xe884792d56b767a0,
    0x0000006552a4bb30,
];

const BATCH: usize = 5;

struct Fixture {
    reference: Reference,
    ads: Vec<[u8; 32]>,
    messages: Vec<Vec<u8>>,
    ciphertexts: Vec<Ciphertext>,
    randomness: Vec<[u8; 32]>,
    targets: Vec<[u8; 576]>,
    weights: Vec<Weight>,
}

impl Fixture {
    fn new() -> Self {
        let tau = [7; 32];
        let reference = Reference::from_tau(BATCH, &tau).unwrap();
        let ads: Vec<[u8; 32]> = (0..BATCH).map(|i| [i as u8; 32]).collect();
        let messages: Vec<Vec<u8>> = (0..BATCH).map(|i| vec![i as u8 ^ 0x33; 20 * i]).collect();
        let (mut ciphertexts, mut randomness) = (vec![], vec![]);
        for (i, (ad, message)) in ads.iter().zip(&messages).enumerate() {
            let key = [0xa0 + i as u8; 16];
            let Encrypted { ciphertext, .. } = reference.encrypt(ad, message, &key, &[1; 32]).unwrap();
            ciphertexts.push(ciphertext);
            randomness.push(randomness_hint(ad, message, &key));
        }
        let weights = (0..BATCH).map(|i| std::array::from_fn(|j| (37 * i + 11 * j + 1) as u8)).collect();
        let mut fixture =
            Self { reference, ads, messages, ciphertexts, randomness, targets: vec![], weights };
        fixture.targets = fixture.decrypt(&tau);
        fixture
    }

    /// The zᵢ as a helper gets them; a committee of one releases.
    fn decrypt(&self, tau: &[u8; 32]) -> Vec<[u8; 576]> {
        let tau = encode::scalar(tau).unwrap();
        let powers: Vec<[u8; 32]> = (1..=BATCH as u64).map(|i| encode::scalar_bytes(&tau.pow([i]))).collect();
        let headers: Vec<[u8; 48]> = self.ciphertexts.iter().map(|ciphertext| ciphertext.c).collect();
        let pd = release_share(&powers, &headers).unwrap();
        let prepared = self.reference.prepare(BATCH);
        self.reference.unblind(&self.reference.cross_terms(&prepared, &headers).unwrap(), &pd).unwrap()
    }

    fn headers(&self) -> Headers {
        let headers: Vec<[u8; 48]> = self.ciphertexts.iter().map(|ciphertext| ciphertext.c).collect();
        Headers::decode(&headers).unwrap()
    }

    fn items<'a, const N: usize>(
        &'a self,
        hints: &'a [[u8; N]],
    ) -> Vec<(&'a [u8; 32], &'a Ciphertext, &'a [u8; N])> {
        let pairs = self.ads.iter().zip(&self.ciphertexts);
        pairs.zip(hints).map(|((ad, ciphertext), hint)| (ad, ciphertext, hint)).collect()
    }

    fn by_randomness(&self, hints: &[[u8; 32]]) -> Result<Vec<Vec<u8>>, HintError> {
        let batch =
            self.reference.verify_randomness_hints(&self.headers(), &self.items(hints), &self.weights);
        let each = self.items(hints).into_iter().map(|item| self.reference.verify_randomness_hint(item));
        assert_eq!(each.collect::<Result<Vec<_>, _>>().is_ok(), batch.is_ok());
        batch
    }

    fn by_target(&self, hints: &[[u8; 576]]) -> Result<Vec<Vec<u8>>, HintError> {
        self.reference.verify_target_hints(&self.headers(), &self.items(hints), &self.weights)
    }

    /// The equations alone, whatever the group the hints are in.
    fn by_equations(&self, hints: &[[u8; 576]]) -> Option<Vec<Vec<u8>>> {
        let factors: Vec<Gt> = hints.iter().map(|hint| encode::gt(hint).unwrap()).collect();
        self.reference.target_equations(&self.headers(), &self.items(hints), &factors, &self.weights)
    }
}

/// A cyclotomic element outside GT: a Miller value after the easy part of the final exponentiation.
fn cyclotomic() -> Fq12 {
    let miller =
        Bls12_381::multi_miller_loop([G1Affine::generator()], [ark_bls12_381::G2Affine::generator()]).0;
    let mut conjugate = miller;
    conjugate.conjugate_in_place();
    let unitary = conjugate * miller.inverse().unwrap();
    frobenius(&unitary, 2) * unitary
}

fn of_small_order() -> Fq12 {
    let element = cyclotomic().pow(CYCLOTOMIC_ORDER_OVER_SMALL);
    assert!(!element.is_one() && element.pow([SMALL_ORDER]).is_one());
    element
}

fn times(hint: &[u8; 576], factor: Fq12) -> [u8; 576] {
    let mut z = encode::gt(hint).unwrap();
    z.0 *= factor;
    encode::gt_bytes(&z)
}

#[test]
fn honest_hints_of_both_kinds_pass() {
    let fixture = Fixture::new();
    assert_eq!(fixture.by_randomness(&fixture.randomness).as_ref(), Ok(&fixture.messages));
    assert_eq!(fixture.by_target(&fixture.targets).as_ref(), Ok(&fixture.messages));
    for (k, z) in fixture.randomness.iter().zip(&fixture.targets) {
        assert_eq!(encode::gt_bytes(&(fixture.reference.ek * encode::scalar(k).unwrap())), *z);
    }
    let nothing = Headers::decode(&[]).unwrap();
    assert_eq!(fixture.reference.verify_randomness_hints(&nothing, &[], &[]), Ok(vec![]));
    assert_eq!(fixture.reference.verify_target_hints(&nothing, &[], &[]), Ok(vec![]));
}

#[test]
fn forged_randomness_is_refused() {
    let fixture = Fixture::new();
    for position in 0..BATCH {
        let mut hints = fixture.randomness.clone();
        hints[position] = [5; 32];
        assert_eq!(fixture.by_randomness(&hints), Err(HintError::Equation));
        hints[position] = [0xff; 32];
        let source = DecodeError::Scalar;
        assert_eq!(fixture.by_randomness(&hints), Err(HintError::Encoding { position, source }));
        let mut hints = fixture.randomness.clone();
        hints.swap(position, (position + 1) % BATCH);
        assert_eq!(fixture.by_randomness(&hints), Err(HintError::Equation));
    }
}

#[test]
fn forged_blinding_factors_are_refused() {
    let fixture = Fixture::new();
    for position in 0..BATCH {
        let mut hints = fixture.targets.clone();
        hints[position] = encode::gt_bytes(&encode::gt(&hints[position]).unwrap().double());
        assert_eq!(fixture.by_target(&hints), Err(HintError::Equation));
        for outside in [Fq12::zero(), -Fq12::one(), cyclotomic(), of_small_order()] {
            hints[position] = times(&fixture.targets[position], outside);
            assert_eq!(fixture.by_target(&hints), Err(HintError::NotInGroup { position }));
        }
        hints[position] = [0xff; 576];
        let source = DecodeError::Gt;
        assert_eq!(fixture.by_target(&hints), Err(HintError::Encoding { position, source }));
        let mut hints = fixture.targets.clone();
        hints.swap(position, (position + 1) % BATCH);
        assert_eq!(fixture.by_target(&hints), Err(HintError::Equation));
    }
}

#[test]
fn malformed_ciphertexts_have_no_hint_of_either_kind() {
    let mut fixture = Fixture::new();
    fixture.ciphertexts[2].d[0] ^= 1;
    assert_eq!(fixture.by_randomness(&fixture.randomness), Err(HintError::Randomness { position: 2 }));
    assert_eq!(fixture.by_target(&fixture.targets), Err(HintError::Equation));
}

/// A user masks K with z·ε, ε of order 4513: decryption gives nothing, but a helper who exhibits z·ε would have the
/// transaction exist, whenever the weight happens to be a multiple of 4513.
#[test]
fn a_factor_of_small_order_passes_the_equations_and_is_stopped_by_the_membership_test() {
    let mut fixture = Fixture::new();
    let forged = times(&fixture.targets[1], of_small_order());
    let honest_pad = crate::encryption::mask(&encode::gt(&fixture.targets[1]).unwrap());
    let forged_pad = crate::encryption::mask(&encode::gt(&forged).unwrap());
    for (i, byte) in fixture.ciphertexts[1].d.iter_mut().enumerate() {
        *byte ^= honest_pad[i] ^ forged_pad[i];
    }
    assert_eq!(fixture.by_target(&fixture.targets), Err(HintError::Equation), "decrypts to nothing");

    let mut hints = fixture.targets.clone();
    hints[1] = forged;
    assert_eq!(fixture.by_equations(&hints), None, "a weight that is no multiple of 4513");
    fixture.weights[1] = (u128::from(SMALL_ORDER) * 0x0123_4567_89ab_cdef_0123).to_le_bytes();
    assert_eq!(fixture.by_equations(&hints).as_ref(), Some(&fixture.messages), "the forgery passes");
    assert_eq!(fixture.by_target(&hints), Err(HintError::NotInGroup { position: 1 }));
}

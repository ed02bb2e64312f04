//! Checking many proofs at once, of one circuit or of several.
//!
//! With random weights rⱼ, sⱼ of 128 bits the equations of all proofs become one:
//!
//! ∏ e(rⱼ·Aⱼ, Bⱼ) = ∏ₖ e((Σ rⱼ)·αₖ, βₖ) · e(Σ rⱼ·Cⱼ, δₖ) · e(−Σ sⱼ·Dⱼ, σₖ) · e(Σ rⱼ·(Xⱼ + Dⱼ) + Σ sⱼ·πⱼ, 1)
//!
//! where k runs over the keys, j of each k over its proofs, and Xⱼ = Σ xᵢ·Kᵢ. A batch with a false proof passes with
//! probability 2^−128 at most: points of other order do not occur, because decoding a proof checks every one.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};
use rand_core::CryptoRng;

use crate::challenge;
use crate::circuit::Statement;
use crate::points::{msm, msm_128};
use crate::verifier::{Verifier, VerifyError, is_one};
use crate::{Proof, par};

/// A proof with what it is to prove.
pub struct BatchItem<'a, E: Pairing> {
    /// The circuit's verifier.
    pub verifier: &'a Verifier<E>,
    /// The statement.
    pub statement: &'a (dyn Statement<E::ScalarField> + Sync),
    /// The proof.
    pub proof: &'a Proof<E>,
}

/// An item whose public inputs are known, with its two weights.
struct Ready<'a, E: Pairing> {
    verifier: &'a Verifier<E>,
    proof: &'a Proof<E>,
    public: Vec<E::ScalarField>,
}

/// Verifies many proofs, one result each in order; gives what [`Verifier::verify`] gives for each.
///
/// For each proof the challenges, one Miller loop and six multiplications by 128 bits; for each circuit three Miller
/// loops and a multiplication for each public input; one final exponentiation. Where that fails, halving finds the bad
/// ones: about log₂ n more checks for each.
pub fn verify_batch<E: Pairing>(
    rng: &mut (impl CryptoRng + ?Sized),
    items: &[BatchItem<'_, E>],
) -> Vec<Result<(), VerifyError>> {
    let prepared = par::map(items.len(), |i| {
        let BatchItem { verifier, statement, proof } = &items[i];
        challenge::public(&verifier.key_hash, &verifier.key.shape, *statement, &proof.commitment)
            .map(|public| Ready { verifier, proof, public })
    });
    let mut results = Vec::with_capacity(items.len());
    let (mut ready, mut places) = (Vec::new(), Vec::new());
    for (place, item) in prepared.into_iter().enumerate() {
        match item {
            Ok(item) => {
                ready.push(item);
                places.push(place);
                results.push(Ok(()));
            }
            Err(error) => results.push(Err(error.into())),
        }
    }
    for bad in failing(ready.len(), |group| holds(rng, &ready, group)) {
        results[places[bad]] = Err(ready[bad].verifier.reason(ready[bad].proof));
    }
    results
}

/// The items of one key and what is summed over them.
struct KeySums<'a, E: Pairing> {
    verifier: &'a Verifier<E>,
    members: Vec<usize>,
}

/// The equation of a group of items.
fn holds<E: Pairing>(rng: &mut (impl CryptoRng + ?Sized), ready: &[Ready<'_, E>], group: &[usize]) -> bool {
    let weights: Vec<[u128; 2]> = group.iter().map(|_| [(); 2].map(|()| random_weight(rng))).collect();
    let mut keys: Vec<KeySums<'_, E>> = Vec::new();
    for (member, i) in group.iter().enumerate() {
        let verifier = ready[*i].verifier;
        match keys.iter_mut().find(|key| key.verifier.key_hash == verifier.key_hash) {
            Some(key) => key.members.push(member),
            None => keys.push(KeySums { verifier, members: vec![member] }),
        }
    }
    let proof = |member: usize| ready[group[member]].proof;
    let (own, shared) = par::join(
        || {
            par::pieces(group.len(), 2, 1, |range| {
                let scaled: Vec<E::G1> = range
                    .clone()
                    .map(|member| proof(member).a.mul_bigint(limbs(weights[member][0])))
                    .collect();
                let b = range.map(|member| proof(member).b);
                E::multi_miller_loop(E::G1::normalize_batch(&scaled), b).0
            })
        },
        || {
            par::map(keys.len(), |k| {
                let KeySums { verifier, members } = &keys[k];
                key_loops(verifier, members, &weights, |member| &ready[group[member]])
            })
        },
    );
    let mut product = E::TargetField::ONE;
    for part in own {
        product *= part;
    }
    let mut rest = E::G1::zero();
    for (loops, sum) in shared {
        product *= loops;
        rest -= sum;
    }
    product *= E::multi_miller_loop([rest.into_affine()], [E::G2Affine::generator()]).0;
    is_one::<E>(product)
}

/// The loops against one key's α, δ and σ, and the sum that meets 1.
fn key_loops<'a, E: Pairing>(
    verifier: &Verifier<E>,
    members: &[usize],
    weights: &[[u128; 2]],
    item: impl Fn(usize) -> &'a Ready<'a, E>,
) -> (E::TargetField, E::G1) {
    let column =
        |which: usize| -> Vec<u128> { members.iter().map(|member| weights[*member][which]).collect() };
    let (r, s) = (column(0), column(1));
    let points = |of: fn(&Proof<E>) -> E::G1Affine| -> Vec<E::G1Affine> {
        members.iter().map(|member| of(item(*member).proof)).collect()
    };
    let (c, commitments) = (points(|proof| proof.c), points(|proof| proof.commitment));
    let mut public = vec![E::ScalarField::ZERO; verifier.key.public.len()];
    for (member, weight) in members.iter().zip(&r) {
        let weight = E::ScalarField::from(*weight);
        for (sum, value) in public.iter_mut().zip(&item(*member).public) {
            *sum += weight * value;
        }
    }
    // The first public variable is the constant 1, so its sum is Σ rⱼ.
    let total = public.first().copied().unwrap_or_default();
    let scalars: Vec<_> = public.iter().map(|value| value.into_bigint()).collect();
    let against_one = msm(&verifier.key.public, &scalars)
        + msm_128(&commitments, &r)
        + msm_128(&points(|proof| proof.knowledge), &s);
    let against = [-(verifier.key.alpha.into_group() * total), -msm_128(&c, &r), msm_128(&commitments, &s)];
    let loops = E::multi_miller_loop(
        E::G1::normalize_batch(&against),
        [verifier.key.beta.into(), verifier.delta.clone(), verifier.sigma.clone()],
    );
    (loops.0, against_one)
}

fn random_weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    u128::from_le_bytes(bytes)
}

fn limbs(weight: u128) -> [u64; 2] {
    [weight as u64, (weight >> 64) as u64]
}

/// Which of the items 0..count fail, found by halving: `holds` checks a whole group at once and never fails one without
/// a failing item.
fn failing(count: usize, mut holds: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let all: Vec<usize> = (0..count).collect();
    let mut failing = Vec::new();
    if !all.is_empty() && !holds(&all) {
        search(&all, &mut holds, &mut failing);
    }
    failing
}

/// Adds the failing items of a group that has some. Where one half holds, the other must fail.
fn search(group: &[usize], holds: &mut impl FnMut(&[usize]) -> bool, failing: &mut Vec<usize>) {
    if let [single] = group {
        return failing.push(*single);
    }
    let (left, right) = group.split_at(group.len() / 2);
    let left_holds = holds(left);
    if !left_holds {
        search(left, holds, failing);
    }
    if left_holds || !holds(right) {
        search(right, holds, failing);
    }
}

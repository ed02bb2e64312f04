//! Checking many proofs at once, of one circuit or of several.
//!
//! With a random κ and random weights rⱼ of 128 bits the equations of all proofs become one:
//!
//! ∏ e(rⱼ·Aⱼ, Bⱼ) = ∏ₖ e((Σ rⱼ)·αₖ, βₖ) · e(Σ rⱼ·Cⱼ, δₖ) · e(−κ·Σ rⱼ·Dⱼ, σₖ) · e(Σ rⱼ·(Xⱼ + Dⱼ) + κ·Σ rⱼ·πⱼ, 1)
//!
//! where k runs over the keys, j of each k over its proofs, and Xⱼ = Σ xᵢ·Kᵢ. In logarithms this is Σ rⱼ·(Eⱼ + κ·Fⱼ) = 0,
//! with Eⱼ = 0 and Fⱼ = 0 the two equations of proof j. Points of other order do not occur, because decoding a proof
//! checks every one, so these are linear forms over F_r (small exponents: Bellare, Garay and Rabin, Eurocrypt 1998). If
//! Eⱼ or Fⱼ is not 0 for some j, then Eⱼ + κ·Fⱼ is 0 for at most one κ of the field, and else the sum is 0 for at most
//! one of 2^128 values of rⱼ, whatever the other weights: a batch with a false proof passes with probability
//! 2^−128 + 1/r at most.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};
use rand_core::CryptoRng;

use crate::challenge;
use crate::circuit::Statement;
use crate::verifier::{Verifier, VerifyError};
use crate::{Curve, Proof, hash, par};

/// Proofs whose Miller loops share their squarings, at most.
const LOOPS_MAX: usize = 16;

/// A proof with what it is to prove.
pub struct BatchItem<'a, E: Curve> {
    /// The circuit's verifier.
    pub verifier: &'a Verifier<E>,
    /// The statement.
    pub statement: &'a (dyn Statement<E::ScalarField> + Sync),
    /// The proof.
    pub proof: &'a Proof<E>,
}

/// An item whose public inputs are known.
struct Ready<'a, E: Curve> {
    verifier: &'a Verifier<E>,
    proof: &'a Proof<E>,
    public: Vec<E::ScalarField>,
}

/// Verifies many proofs, one result each in order; gives what [`Verifier::verify`] gives for each.
///
/// For each proof the challenges, one Miller loop, one multiplication by 128 bits and three terms of that length in sums;
/// for each circuit three Miller loops and a multiplication for each public input; one final exponentiation. Where that
/// fails, halving finds the bad ones: about log₂ n more checks for each.
pub fn verify_batch<E: Curve>(
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
struct KeySums<'a, E: Curve> {
    verifier: &'a Verifier<E>,
    members: Vec<usize>,
}

/// The equation of a group of items.
fn holds<E: Curve>(rng: &mut (impl CryptoRng + ?Sized), ready: &[Ready<'_, E>], group: &[usize]) -> bool {
    let kappa: E::ScalarField = hash::random(rng);
    let weights: Vec<u128> = group.iter().map(|_| random_weight(rng)).collect();
    let mut keys: Vec<KeySums<'_, E>> = Vec::new();
    for (member, i) in group.iter().enumerate() {
        let verifier = ready[*i].verifier;
        match keys.iter_mut().find(|key| key.verifier.key_hash == verifier.key_hash) {
            Some(key) => key.members.push(member),
            None => keys.push(KeySums { verifier, members: vec![member] }),
        }
    }
    let item = |member: usize| &ready[group[member]];
    let (own, shared) = par::join(
        || {
            // Pieces of one size, so that threads end together although each has few of them.
            par::map(group.len().div_ceil(LOOPS_MAX), |piece| {
                let range = piece * LOOPS_MAX..group.len().min((piece + 1) * LOOPS_MAX);
                let a: Vec<E::G1Affine> = range.clone().map(|member| item(member).proof.a).collect();
                let weighed = E::weigh(&a, &weights[range.clone()]);
                let b = range.map(|member| item(member).proof.b);
                E::miller_loops(&weighed.into_iter().zip(b).collect::<Vec<_>>())
            })
        },
        || {
            par::map(keys.len(), |k| {
                let KeySums { verifier, members } = &keys[k];
                let weights: Vec<u128> = members.iter().map(|member| weights[*member]).collect();
                let items: Vec<&Ready<'_, E>> = members.iter().map(|member| item(*member)).collect();
                key_loops(verifier, &items, &weights, kappa)
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
    product *= E::miller_loops(&[(rest.into_affine(), E::G2Affine::generator())]);
    E::is_one(product)
}

/// The loops against one key's β, δ and σ, and the sum that meets 1.
fn key_loops<E: Curve>(
    verifier: &Verifier<E>,
    items: &[&Ready<'_, E>],
    weights: &[u128],
    kappa: E::ScalarField,
) -> (E::TargetField, E::G1) {
    let sum = |of: fn(&Proof<E>) -> E::G1Affine| {
        let points: Vec<E::G1Affine> = items.iter().map(|item| of(item.proof)).collect();
        E::sum_weighted(&points, weights)
    };
    let ((c, commitments), knowledge) = par::join(
        || par::join(|| sum(|proof| proof.c), || sum(|proof| proof.commitment)),
        || sum(|proof| proof.knowledge),
    );
    let mut public = vec![E::ScalarField::ZERO; verifier.key.public.len()];
    for (item, weight) in items.iter().zip(weights) {
        let weight = E::ScalarField::from(*weight);
        for (sum, value) in public.iter_mut().zip(&item.public) {
            *sum += weight * value;
        }
    }
    // The first public variable is the constant 1, so its sum is Σ rⱼ.
    let total = public.first().copied().unwrap_or_default();
    let scalars: Vec<_> = public.iter().map(|value| value.into_bigint()).collect();
    let against_one = E::sum_g1(&verifier.key.public, &scalars) + commitments + knowledge * kappa;
    let against = [-(verifier.key.alpha.into_group() * total), -c, commitments * kappa];
    let against = E::G1::normalize_batch(&against);
    let key = &verifier.key;
    let loops = E::miller_loops(&[(against[0], key.beta), (against[1], key.delta), (against[2], key.sigma)]);
    (loops, against_one)
}

fn random_weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    u128::from_le_bytes(bytes)
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

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

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field, PrimeField, Zero};
use rand_core::CryptoRng;

use crate::challenge::{self, StatementError};
use crate::circuit::Statement;
use crate::verifier::{Verifier, VerifyError};
use crate::{Curve, Proof, hash, par};

/// Proofs whose Miller loops share their squarings, and that are looked at together where a batch does not hold.
const PIECE: usize = 16;
/// Up to so many proofs are checked one by one at once: together they would cost no less.
const SINGLY_MAX: usize = 3;
/// From one bad proof in so many on, proofs of a batch that does not hold are checked one by one.
const DENSE: usize = 12;

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
/// Costs what [`batch_verdicts`] does, and two pairings more for each bad proof.
pub fn verify_batch<E: Curve>(
    rng: &mut (impl CryptoRng + ?Sized),
    items: &[BatchItem<'_, E>],
) -> Vec<Result<(), VerifyError>> {
    let prepared = prepared(items);
    let (ready, places) = with_places(&prepared);
    let bad = failing(rng, &ready);
    let mut results: Vec<Result<(), VerifyError>> =
        prepared.iter().map(|item| item.as_ref().map(|_| ()).map_err(|error| (*error).into())).collect();
    for bad in bad {
        results[places[bad]] = Err(ready[bad].verifier.reason(ready[bad].proof));
    }
    results
}

/// Whether each of many proofs holds, in order.
///
/// For each proof the challenges, one Miller loop, one multiplication by 128 bits and three terms of that length in sums;
/// for each circuit three Miller loops and a multiplication for each public input; one final exponentiation.
///
/// Where that fails, proofs are looked at in pieces of 16, which are halved once; what is left, and everything once bad
/// proofs are frequent, is checked one by one: four Miller loops that share their squarings, two multiplications by 128
/// bits, 64 additions for each public input of full size and a final exponentiation. So no proof, good or bad, costs more
/// than about one such check beyond its share of the batch; `cargo bench -p blindfold-confidential --bench flood` holds
/// that against an honest batch.
pub fn batch_verdicts<E: Curve>(
    rng: &mut (impl CryptoRng + ?Sized),
    items: &[BatchItem<'_, E>],
) -> Vec<bool> {
    let prepared = prepared(items);
    let (ready, places) = with_places(&prepared);
    let mut verdicts: Vec<bool> = prepared.iter().map(Result::is_ok).collect();
    for bad in failing(rng, &ready) {
        verdicts[places[bad]] = false;
    }
    verdicts
}

fn prepared<'a, E: Curve>(items: &[BatchItem<'a, E>]) -> Vec<Result<Ready<'a, E>, StatementError>> {
    par::map(items.len(), |i| {
        let BatchItem { verifier, statement, proof } = &items[i];
        challenge::public(&verifier.key_hash, &verifier.key.shape, *statement, &proof.commitment)
            .map(|public| Ready { verifier, proof, public })
    })
}

/// The items that have public inputs, with their places.
fn with_places<'a, 'b, E: Curve>(
    prepared: &'b [Result<Ready<'a, E>, StatementError>],
) -> (Vec<&'b Ready<'a, E>>, Vec<usize>) {
    prepared.iter().enumerate().filter_map(|(place, item)| Some((item.as_ref().ok()?, place))).unzip()
}

/// Which items fail, in ascending order.
fn failing<E: Curve>(rng: &mut (impl CryptoRng + ?Sized), ready: &[&Ready<'_, E>]) -> Vec<usize> {
    let mut weights = || ready.iter().map(|_| random_weight(rng)).collect::<Vec<u128>>();
    let (weights, joins) = (weights(), weights());
    let single = |i: usize| ready[i].verifier.holds(&ready[i].public, ready[i].proof, joins[i]);
    if ready.len() <= SINGLY_MAX {
        let holds = par::map(ready.len(), single);
        return (0..ready.len()).filter(|i| !holds[*i]).collect();
    }
    let equation = Equation { ready, weights, kappa: hash::random(rng) };
    let pieces = ready.len().div_ceil(PIECE);
    let piece = |piece: usize| piece * PIECE..ready.len().min((piece + 1) * PIECE);
    let (own, shared) = par::join(
        // Pieces of one size, so that threads end together although each has few of them.
        || par::map(pieces, |i| equation.own_loops(piece(i))),
        || equation.shared_loops(0..ready.len()),
    );
    if E::is_one(own.iter().fold(shared, |product, own| product * own)) {
        return Vec::new();
    }
    let seen = Seen::default();
    let found = par::map(pieces, |i| {
        let range = piece(i);
        let mut suspects = vec![range.clone()];
        if !seen.dense() {
            let holds = E::is_one(own[i] * equation.shared_loops(range.clone()));
            suspects = if holds { vec![] } else { equation.failing_halves(range.clone()) };
        }
        let suspects: Vec<usize> = suspects.into_iter().flatten().collect();
        let holds = par::map(suspects.len(), |i| single(suspects[i]));
        let bad: Vec<usize> =
            suspects.into_iter().zip(holds).filter(|(_, holds)| !holds).map(|(place, _)| place).collect();
        seen.add(range.len(), bad.len());
        bad
    });
    found.concat()
}

/// How frequent bad proofs are in what was looked at. What is found does not depend on it, only what that costs.
#[derive(Default)]
struct Seen {
    all: AtomicUsize,
    bad: AtomicUsize,
}

impl Seen {
    fn add(&self, all: usize, bad: usize) {
        self.all.fetch_add(all, Ordering::Relaxed);
        self.bad.fetch_add(bad, Ordering::Relaxed);
    }

    fn dense(&self) -> bool {
        let bad = self.bad.load(Ordering::Relaxed);
        bad > 0 && bad * DENSE >= self.all.load(Ordering::Relaxed)
    }
}

/// The equation at the top of this file, of any of the items.
struct Equation<'a, 'b, E: Curve> {
    ready: &'a [&'a Ready<'b, E>],
    weights: Vec<u128>,
    kappa: E::ScalarField,
}

/// The items of one key and what is summed over them.
struct KeySums<'a, E: Curve> {
    verifier: &'a Verifier<E>,
    members: Vec<usize>,
}

impl<E: Curve> Equation<'_, '_, E> {
    /// ∏ e(rⱼ·Aⱼ, Bⱼ).
    fn own_loops(&self, range: Range<usize>) -> E::TargetField {
        let a: Vec<E::G1Affine> = self.ready[range.clone()].iter().map(|item| item.proof.a).collect();
        let weighed = E::weigh(&a, &self.weights[range.clone()]);
        let b = self.ready[range].iter().map(|item| item.proof.b);
        E::miller_loops(&weighed.into_iter().zip(b).collect::<Vec<_>>())
    }

    /// The loops against the keys' points, and against 1.
    fn shared_loops(&self, range: Range<usize>) -> E::TargetField {
        let mut keys: Vec<KeySums<'_, E>> = Vec::new();
        for member in range {
            let verifier = self.ready[member].verifier;
            match keys.iter_mut().find(|key| key.verifier.key_hash == verifier.key_hash) {
                Some(key) => key.members.push(member),
                None => keys.push(KeySums { verifier, members: vec![member] }),
            }
        }
        let shared = par::map(keys.len(), |k| {
            let KeySums { verifier, members } = &keys[k];
            let weights: Vec<u128> = members.iter().map(|member| self.weights[*member]).collect();
            let items: Vec<&Ready<'_, E>> = members.iter().map(|member| self.ready[*member]).collect();
            key_loops(verifier, &items, &weights, self.kappa)
        });
        let (mut product, mut rest) = (E::TargetField::ONE, E::G1::zero());
        for (loops, sum) in shared {
            product *= loops;
            rest -= sum;
        }
        product * E::miller_loops(&[(rest.into_affine(), E::G2Affine::generator())])
    }

    /// The halves with bad proofs, of a range that has some. Where the first half holds, the second must fail.
    fn failing_halves(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let middle = range.start + range.len() / 2;
        let (first, second) = (range.start..middle, middle..range.end);
        let holds =
            |half: &Range<usize>| E::is_one(self.own_loops(half.clone()) * self.shared_loops(half.clone()));
        match holds(&first) {
            true => vec![second],
            false if holds(&second) => vec![first],
            false => vec![range],
        }
    }
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

//! Checking many proofs at once, of one circuit or of several.
//!
//! With a random κ and random weights rⱼ, all of 128 bits, the equations of all proofs become one:
//!
//! ∏ e(rⱼ·Aⱼ, Bⱼ) = ∏ₖ e((Σ rⱼ)·αₖ, βₖ) · e(Σ rⱼ·Cⱼ, δₖ) · e(−κ·Σ rⱼ·Dⱼ, σₖ) · e(Σ rⱼ·(Xⱼ + Dⱼ) + κ·Σ rⱼ·πⱼ, 1)
//!
//! where k runs over the keys, j of each k over its proofs, and Xⱼ = Σ xᵢ·Kᵢ. In logarithms this is Σ rⱼ·(Eⱼ + κ·Fⱼ) = 0,
//! with Eⱼ = 0 and Fⱼ = 0 the two equations of proof j. Points of other order do not occur, because decoding a proof
//! checks every one, so these are linear forms over F_r (small exponents: Bellare, Garay and Rabin, Eurocrypt 1998). If
//! Eⱼ or Fⱼ is not 0 for some j, then Eⱼ + κ·Fⱼ is 0 for at most one of 2^128 values of κ, and else the sum is 0 for at most
//! one of 2^128 values of rⱼ, whatever the other weights: a batch with a false proof passes with probability 2^−127 at most.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field};
use rand_core::CryptoRng;

use crate::challenge::{self, StatementError};
use crate::circuit::Statement;
use crate::verifier::{Verifier, VerifyError};
use crate::{Curve, Proof, par};

/// Proofs whose Miller loops share their squarings, and that are looked at together where a batch does not hold.
const PIECE: usize = 16;
/// Up to so many proofs are checked one by one at once: together they would cost no less.
const SINGLY_MAX: usize = 3;
/// Both halves of so many proofs bad: each is checked by itself.
const HALVES_MAX: usize = 8;
/// From one bad proof in so many on, proofs are checked one by one without looking at them together first.
const FREQUENT: usize = 8;
/// While bad proofs are frequent, so many are checked one by one before the frequency is looked at again.
const WAVE: usize = 32;

/// A proof with what it is to prove.
pub struct BatchItem<'a, E: Curve> {
    /// The verifier of the circuit that the proof is for.
    pub verifier: &'a Verifier<E>,
    /// The statement that is proved.
    pub statement: &'a (dyn Statement<E::ScalarField> + Sync),
    /// The proof, not verified yet.
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
    let bad = failing(rng, &Recent::default(), &ready);
    let mut results: Vec<Result<(), VerifyError>> =
        prepared.iter().map(|item| item.as_ref().map(|_| ()).map_err(|error| (*error).into())).collect();
    for bad in bad {
        results[places[bad]] = Err(ready[bad].verifier.reason(ready[bad].proof));
    }
    results
}

/// Whether each of many proofs holds, in order. What is returned does not depend on `recent`.
///
/// For each proof the challenges, one Miller loop, one multiplication by 128 bits and three terms of that length in sums;
/// for each circuit three Miller loops with known lines and 64 additions for each public input; one final exponentiation.
///
/// Where that fails, proofs are looked at in pieces of 16, which are halved: a product for the first half says what the
/// second's is. Where both halves of 8 are bad, and everywhere while bad proofs are frequent (`recent`), each proof is
/// checked by itself: a Miller loop, two with known lines, 64 additions for each public input of full size and a final
/// exponentiation; where the openings of the commitments do not hold together either, two multiplications by 128 bits and
/// another loop. `cargo bench -p blindfold-confidential --bench flood` holds that against an honest batch.
pub fn batch_verdicts<E: Curve>(
    rng: &mut (impl CryptoRng + ?Sized),
    recent: &Recent,
    items: &[BatchItem<'_, E>],
) -> Vec<bool> {
    let prepared = prepared(items);
    let (ready, places) = with_places(&prepared);
    let mut verdicts: Vec<bool> = prepared.iter().map(Result::is_ok).collect();
    for bad in failing(rng, recent, &ready) {
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
fn failing<E: Curve>(
    rng: &mut (impl CryptoRng + ?Sized),
    recent: &Recent,
    ready: &[&Ready<'_, E>],
) -> Vec<usize> {
    let mut weights = || ready.iter().map(|_| random_weight(rng)).collect::<Vec<u128>>();
    let (weights, joins) = (weights(), weights());
    let equation = Equation { ready, weights, joins, kappa: random_weight(rng) };
    let mut bad = Vec::new();
    let mut from = 0;
    while from < ready.len() && (ready.len() - from <= SINGLY_MAX || recent.frequent()) {
        let wave = from..ready.len().min(from + WAVE);
        let found = equation.singly(wave.clone());
        recent.add(wave.len(), found.len());
        bad.extend(found);
        from = wave.end;
    }
    bad.extend(equation.together(recent, from..ready.len()));
    bad
}

/// How frequent bad proofs were among the last 16 or more that were looked at. Their sender decides that, so it steers
/// only how the next are looked for, and what that costs.
#[derive(Default)]
pub struct Recent(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    bad: usize,
}

impl Recent {
    fn add(&self, all: usize, bad: usize) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.all >= PIECE {
            *counts = Counts::default();
        }
        counts.all += all;
        counts.bad += bad;
    }

    fn frequent(&self) -> bool {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.bad > 0 && counts.bad * FREQUENT >= counts.all
    }
}

/// The equation at the top of this file, of any of the items.
struct Equation<'a, 'b, E: Curve> {
    ready: &'a [&'a Ready<'b, E>],
    weights: Vec<u128>,
    /// The weights of the second equation where a proof is checked by itself.
    joins: Vec<u128>,
    kappa: u128,
}

/// The items of one key.
struct OfKey<'a, E: Curve> {
    verifier: &'a Verifier<E>,
    members: Vec<usize>,
}

/// Sums over the items of one key.
struct KeySums<E: Curve> {
    /// −(Σ rⱼ)·α, −Σ rⱼ·Cⱼ and κ·Σ rⱼ·Dⱼ, which meet β, δ and σ.
    against_key: [E::G1; 3],
    /// What meets 1.
    against_one: E::G1,
}

impl<'b, E: Curve> Equation<'_, 'b, E> {
    /// The bad ones of a range that is looked at together first.
    fn together(&self, recent: &Recent, range: Range<usize>) -> Vec<usize> {
        if range.is_empty() {
            return Vec::new();
        }
        let pieces = range.len().div_ceil(PIECE);
        let piece = |piece: usize| {
            let start = range.start + piece * PIECE;
            start..range.end.min(start + PIECE)
        };
        let (own, shared) = par::join(
            // Pieces of one size, so that threads end together although each has few of them.
            || par::map(pieces, |i| self.own_loops(piece(i))),
            || self.shared_loops(range.clone()),
        );
        let one = E::TargetField::ONE;
        if E::finish(own.iter().fold(shared, |product, own| product * own)) == one {
            recent.add(range.len(), 0);
            return Vec::new();
        }
        let found = par::map(pieces, |i| {
            let found = match recent.frequent() {
                true => self.singly(piece(i)),
                false => match E::finish(own[i] * self.shared_loops(piece(i))) {
                    value if value == one => Vec::new(),
                    value => self.halved(piece(i), value),
                },
            };
            recent.add(piece(i).len(), found.len());
            found
        });
        found.concat()
    }

    /// The bad ones of a range, of which there are some: `value` is its product, and not 1.
    fn halved(&self, range: Range<usize>, value: E::TargetField) -> Vec<usize> {
        if range.len() <= SINGLY_MAX {
            let (last, others) = (range.end - 1, range.start..range.end - 1);
            let mut bad: Vec<usize> = others.filter(|i| !self.holds(*i)).collect();
            if bad.is_empty() || !self.holds(last) {
                bad.push(last);
            }
            return bad;
        }
        let middle = range.start + range.len() / 2;
        let (first, second) = (range.start..middle, middle..range.end);
        let of_first = E::finish(self.own_loops(first.clone()) * self.shared_loops(first.clone()));
        // A product of pairings is never 0.
        let of_second = of_first.inverse().map_or(value, |inverse| value * inverse);
        match (of_first == E::TargetField::ONE, of_second == E::TargetField::ONE) {
            (true, _) => self.halved(second, of_second),
            (_, true) => self.halved(first, of_first),
            _ if range.len() <= HALVES_MAX => self.singly(range),
            _ => {
                let (first, second) =
                    par::join(|| self.halved(first, of_first), || self.halved(second, of_second));
                [first, second].concat()
            }
        }
    }

    /// The bad ones of a range, each checked by itself; the second equations together, while they hold.
    fn singly(&self, range: Range<usize>) -> Vec<usize> {
        let holds = if range.len() > SINGLY_MAX && self.openings_hold(range.clone()) {
            par::map(range.len(), |i| {
                let Ready { verifier, proof, public } = self.ready[range.start + i];
                verifier.equation_holds(public, proof)
            })
        } else if range.len() > PIECE {
            let middle = range.start + (range.len() / 2).next_multiple_of(PIECE);
            return [self.singly(range.start..middle), self.singly(middle..range.end)].concat();
        } else {
            par::map(range.len(), |i| self.holds(range.start + i))
        };
        range.zip(holds).filter(|(_, holds)| !holds).map(|(place, _)| place).collect()
    }

    fn holds(&self, i: usize) -> bool {
        let Ready { verifier, proof, public } = self.ready[i];
        verifier.holds(public, proof, self.joins[i])
    }

    /// ∏ e(rⱼ·Aⱼ, Bⱼ).
    fn own_loops(&self, range: Range<usize>) -> E::TargetField {
        let a: Vec<E::G1Affine> = self.ready[range.clone()].iter().map(|item| item.proof.a).collect();
        let weighed = E::weigh(&a, &self.weights[range.clone()]);
        let b = self.ready[range].iter().map(|item| item.proof.b);
        E::miller_loops(&weighed.into_iter().zip(b).collect::<Vec<_>>())
    }

    /// The loops against the keys' points, and against 1.
    fn shared_loops(&self, range: Range<usize>) -> E::TargetField {
        let keys = self.by_key(range);
        let sums = par::map(keys.len(), |k| self.sums(&keys[k]));
        let against_one: E::G1 = sums.iter().map(|sums| sums.against_one).sum();
        let points = sums.iter().flat_map(|sums| sums.against_key).chain([-against_one]);
        let points = E::G1::normalize_batch(&points.collect::<Vec<_>>());
        let lines = keys.iter().flat_map(|key| {
            let lines = &key.verifier.lines;
            [&lines.beta, &lines.delta, &lines.sigma]
        });
        let one = keys.first().map(|key| &key.verifier.lines.one);
        E::prepared_loops(&[], &points.into_iter().zip(lines.chain(one)).collect::<Vec<_>>())
    }

    /// Whether the second equations of a range hold: ∏ₖ e(Σ rⱼ·Dⱼ, σₖ) = e(Σ rⱼ·πⱼ, 1).
    fn openings_hold(&self, range: Range<usize>) -> bool {
        let keys = self.by_key(range.clone());
        let knowledge = self.sum(range, |proof| proof.knowledge);
        let commitments =
            keys.iter().map(|key| self.sum(key.members.iter().copied(), |proof| proof.commitment));
        let points = E::G1::normalize_batch(&commitments.chain([-knowledge]).collect::<Vec<_>>());
        let lines = keys.iter().map(|key| &key.verifier.lines.sigma);
        let one = keys.first().map(|key| &key.verifier.lines.one);
        let pairs: Vec<_> = points.into_iter().zip(lines.chain(one)).collect();
        E::finish(E::prepared_loops(&[], &pairs)) == E::TargetField::ONE
    }

    fn by_key(&self, range: Range<usize>) -> Vec<OfKey<'b, E>> {
        let mut keys: Vec<OfKey<'b, E>> = Vec::new();
        for member in range {
            let verifier = self.ready[member].verifier;
            match keys.iter_mut().find(|key| key.verifier.key_hash == verifier.key_hash) {
                Some(key) => key.members.push(member),
                None => keys.push(OfKey { verifier, members: vec![member] }),
            }
        }
        keys
    }

    /// Σ rⱼ·point of proof j.
    fn sum(&self, members: impl Iterator<Item = usize>, point: fn(&Proof<E>) -> E::G1Affine) -> E::G1 {
        let (points, weights): (Vec<_>, Vec<_>) =
            members.map(|member| (point(self.ready[member].proof), self.weights[member])).unzip();
        E::sum_weighted(&points, &weights)
    }

    fn sums(&self, key: &OfKey<'_, E>) -> KeySums<E> {
        let OfKey { verifier, members } = key;
        let sum = |point| self.sum(members.iter().copied(), point);
        let ((c, commitments), knowledge) = par::join(
            || par::join(|| sum(|proof| proof.c), || sum(|proof| proof.commitment)),
            || sum(|proof| proof.knowledge),
        );
        let mut public = vec![E::ScalarField::ZERO; verifier.key.public.len()];
        for member in members {
            let weight = E::ScalarField::from(self.weights[*member]);
            for (sum, value) in public.iter_mut().zip(&self.ready[*member].public) {
                *sum += weight * value;
            }
        }
        // The first public variable is the constant 1, so its sum is Σ rⱼ.
        let total = &public[..public.len().min(1)];
        let alpha = E::add_all(&verifier.alpha.terms(total));
        let weighed = E::weigh(&E::G1::normalize_batch(&[commitments, knowledge]), &[self.kappa; 2]);
        KeySums {
            against_key: [-alpha, -c, weighed[0].into_group()],
            against_one: E::add_all(&verifier.public.terms(&public)) + commitments + weighed[1],
        }
    }
}

fn random_weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    u128::from_le_bytes(bytes)
}

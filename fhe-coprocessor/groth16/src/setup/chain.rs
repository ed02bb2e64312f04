//! The chain of contributions: who multiplied the secrets, and that each knew by what.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, PrimeField};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::SetupError;
use crate::key::PhaseOrigin;
use crate::{hash, points, tags};

/// Most iterations of a beacon's hash, as a power of two: what a transcript can make its verifier do.
pub(crate) const MAX_LOG_ITERATIONS: u8 = 30;

/// What is wrong with a contribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A secret would become 0.
    #[error("secret {0} is multiplied by 0")]
    Zero(usize),
    /// A secret stays what it was: this contributes nothing, and must not be counted.
    #[error("secret {0} is multiplied by 1")]
    One(usize),
    /// The factor is not proved known, or proved for another state than the last.
    #[error("the factor of secret {0} is not proved on top of the last contribution")]
    Knowledge(usize),
    /// The factors of a beacon are not the beacon's.
    #[error("its factors are not those of its beacon")]
    Beacon,
    /// A contribution follows a beacon, which closes.
    #[error("it follows a beacon, which is the last contribution")]
    AfterBeacon,
}

/// A contribution that is not one; its contributor is at fault and may try again from the last good state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("contribution {index}: {fault}")]
pub struct ChainError {
    /// Which one, counted from 0.
    pub index: usize,
    /// What is wrong with the contribution.
    pub fault: Fault,
}

/// Schnorr's proof that the factor between two points is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Knowledge<G: AffineRepr> {
    pub(crate) commitment: G,
    pub(crate) response: G::ScalarField,
}

/// A public value that nobody could choose, and how often (2^log_iterations) it is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beacon {
    /// The public value of the beacon.
    pub value: [u8; 32],
    /// Log₂ of the number of hashes.
    pub log_iterations: u8,
}

/// What a transcript says of one contribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The transcript's hash with this contribution as the last: what its contributor published.
    pub hash: [u8; 32],
    /// The beacon that made it; `None` where a person did.
    pub beacon: Option<Beacon>,
}

/// One contribution: the N secrets after it, and the proofs that their factors are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution<G: AffineRepr, const N: usize> {
    pub(crate) secrets: [G; N],
    pub(crate) proofs: [Knowledge<G>; N],
    pub(crate) beacon: Option<Beacon>,
}

/// All contributions to one phase, from secrets that are all 1, or that a transcript held elsewhere ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript<G: AffineRepr, const N: usize> {
    /// What the ceremony is for.
    pub(crate) start: [u8; 32],
    /// The secrets' points before the first contribution.
    pub(crate) first: [G; N],
    pub(crate) contributions: Vec<Contribution<G, N>>,
}

impl<G: AffineRepr, const N: usize> Transcript<G, N> {
    pub(crate) fn new(start: [u8; 32], first: [G; N]) -> Self {
        Self { start, first, contributions: Vec::new() }
    }

    /// What a key's origin tells of it.
    pub(crate) fn origin(&self) -> PhaseOrigin {
        PhaseOrigin {
            contributions: self.contributors() as u32,
            beacon: self.beacon(),
            transcript: self.hash(),
        }
    }

    /// How many contributions are not beacons.
    pub fn contributors(&self) -> usize {
        self.contributions.len() - usize::from(self.beacon())
    }

    /// Whether a beacon has closed it.
    pub fn beacon(&self) -> bool {
        self.contributions.last().is_some_and(|last| last.beacon.is_some())
    }

    /// Hash of the whole transcript: what contributors publish to say "mine is in there".
    pub fn hash(&self) -> [u8; 32] {
        self.contributions.iter().fold(self.start, |hash, contribution| contribution.extend(&hash))
    }

    /// All contributions, in order. One hash each.
    pub fn entries(&self) -> Vec<Entry> {
        let mut hash = self.start;
        let contributions = self.contributions.iter();
        contributions
            .map(|contribution| {
                hash = contribution.extend(&hash);
                Entry { hash, beacon: contribution.beacon }
            })
            .collect()
    }

    /// The secrets' points after all contributions.
    pub(crate) fn secrets(&self) -> [G; N] {
        self.contributions.last().map_or(self.first, |last| last.secrets)
    }

    /// Adds a contribution of random factors, and returns these.
    pub(crate) fn contribute(
        &mut self,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Zeroizing<[G::ScalarField; N]>, SetupError> {
        let mut factors = Zeroizing::new([G::ScalarField::ZERO; N]);
        for factor in factors.iter_mut() {
            *factor = nonzero(rng);
        }
        self.append(&factors, None, rng)?;
        Ok(factors)
    }

    /// Closes the transcript with a beacon, and returns its factors.
    pub(crate) fn close(
        &mut self,
        value: [u8; 32],
        log_iterations: u8,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<[G::ScalarField; N], SetupError> {
        if log_iterations > MAX_LOG_ITERATIONS {
            return Err(SetupError::Beacon(log_iterations));
        }
        let beacon = Beacon { value, log_iterations };
        let factors = beacon.factors(&self.hash());
        self.append(&factors, Some(beacon), rng)?;
        Ok(factors)
    }

    fn append(
        &mut self,
        factors: &[G::ScalarField; N],
        beacon: Option<Beacon>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        if self.beacon() {
            return Err(ChainError { index: self.contributions.len(), fault: Fault::AfterBeacon }.into());
        }
        let (last, hash) = (self.secrets(), self.hash());
        let secrets = std::array::from_fn(|i| (last[i] * factors[i]).into_affine());
        let proofs =
            std::array::from_fn(|i| Knowledge::prove(&hash, i, &last[i], &secrets[i], &factors[i], rng));
        self.contributions.push(Contribution { secrets, proofs, beacon });
        Ok(())
    }

    /// Checks every contribution against the one before. 3·N multiplications in the group for each.
    ///
    /// # Errors
    /// [`ChainError`] for the first bad one.
    pub fn verify(&self) -> Result<(), ChainError> {
        let (mut last, mut hash) = (self.first, self.start);
        for (index, contribution) in self.contributions.iter().enumerate() {
            let closed = index > 0 && self.contributions[index - 1].beacon.is_some();
            contribution.verify(&last, &hash, closed).map_err(|fault| ChainError { index, fault })?;
            last = contribution.secrets;
            hash = contribution.extend(&hash);
        }
        Ok(())
    }

    /// Whether the other transcript is this one with one contribution more.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        other.start == self.start
            && other.first == self.first
            && other.contributions.split_last().is_some_and(|(_, before)| before == self.contributions)
    }
}

impl<G: AffineRepr, const N: usize> Contribution<G, N> {
    fn verify(&self, last: &[G; N], hash: &[u8; 32], closed: bool) -> Result<(), Fault> {
        if closed {
            return Err(Fault::AfterBeacon);
        }
        for (i, proof) in self.proofs.iter().enumerate() {
            if self.secrets[i].is_zero() {
                return Err(Fault::Zero(i));
            }
            if self.secrets[i] == last[i] {
                return Err(Fault::One(i));
            }
            if !proof.holds(hash, i, &last[i], &self.secrets[i]) {
                return Err(Fault::Knowledge(i));
            }
        }
        let Some(beacon) = self.beacon else { return Ok(()) };
        if beacon.log_iterations > MAX_LOG_ITERATIONS {
            return Err(Fault::Beacon);
        }
        let factors: [G::ScalarField; N] = beacon.factors(hash);
        let matches = (0..N).all(|i| (last[i] * factors[i]).into_affine() == self.secrets[i]);
        if matches { Ok(()) } else { Err(Fault::Beacon) }
    }

    fn extend(&self, hash: &[u8; 32]) -> [u8; 32] {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        hash::sha256(&[tags::CONTRIBUTION, hash, &bytes])
    }
}

impl Beacon {
    /// The factors after `hash`: the value is hashed 2^log_iterations times, then expanded.
    fn factors<F: PrimeField, const N: usize>(&self, hash: &[u8; 32]) -> [F; N] {
        let mut value = self.value;
        for _ in 0..1u64 << self.log_iterations {
            value = hash::sha256(&[&value]);
        }
        let mut factors = [F::ONE; N];
        for (factor, scalar) in factors.iter_mut().zip(hash::to_field(tags::BEACON, &[hash, &value], N)) {
            *factor = scalar;
        }
        factors
    }
}

impl<G: AffineRepr> Knowledge<G> {
    fn prove(
        hash: &[u8; 32],
        which: usize,
        base: &G,
        target: &G,
        factor: &G::ScalarField,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Self {
        let nonce = Zeroizing::new(nonzero::<G::ScalarField>(rng));
        let commitment = (*base * *nonce).into_affine();
        let response = *nonce + challenge(hash, which, base, target, &commitment) * factor;
        Self { commitment, response }
    }

    /// response · base = commitment + challenge · target.
    fn holds(&self, hash: &[u8; 32], which: usize, base: &G, target: &G) -> bool {
        let challenge = challenge(hash, which, base, target, &self.commitment);
        *base * self.response == *target * challenge + self.commitment
    }
}

fn challenge<G: AffineRepr>(
    hash: &[u8; 32],
    which: usize,
    base: &G,
    target: &G,
    commitment: &G,
) -> G::ScalarField {
    let points = [base, target, commitment].map(points::compressed);
    let message: [&[u8]; 5] = [hash, &[which as u8], &points[0], &points[1], &points[2]];
    hash::to_field(tags::KNOWLEDGE, &message, 1).first().copied().unwrap_or_default()
}

pub(crate) fn nonzero<F: PrimeField>(rng: &mut (impl CryptoRng + ?Sized)) -> F {
    loop {
        let scalar: F = hash::random(rng);
        if !scalar.is_zero() {
            return scalar;
        }
    }
}

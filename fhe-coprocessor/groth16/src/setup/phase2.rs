//! Phase 2: δ and σ of one circuit.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::Field;
use rand_core::CryptoRng;

use super::powers::{random_weights, same_ratio};
use super::{SetupError, Transcript};
use crate::key::{Origin, ProvingKey, Specific};
use crate::par;
use crate::points::msm;

/// A phase-2 ceremony: who contributed, and the elements that contributions change. Everything else is in the key
/// that [`super::prepare`] computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCeremony<E: Pairing> {
    /// Chain of δ and σ in G2.
    pub(crate) transcript: Transcript<E::G2Affine, 2>,
    /// \[δ\]₁
    pub(crate) delta: E::G1Affine,
    pub(crate) specific: Specific<E>,
}

impl<E: Pairing> KeyCeremony<E> {
    /// A ceremony without contributions, for the key that [`super::prepare`] gave.
    pub fn new(prepared: &ProvingKey<E>) -> Self {
        Self {
            transcript: Transcript::new(start(prepared), [E::G2Affine::generator(); 2]),
            delta: prepared.delta,
            specific: prepared.specific.clone(),
        }
    }

    /// The contributions so far, in their order.
    pub fn transcript(&self) -> &Transcript<E::G2Affine, 2> {
        &self.transcript
    }

    /// Contributes random factors, which are forgotten at once. One multiplication for each element.
    ///
    /// # Errors
    /// [`SetupError::Chain`] after a beacon.
    pub fn contribute(&mut self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), SetupError> {
        let factors = self.transcript.contribute(rng)?;
        self.multiply(factors[0], factors[1]);
        Ok(())
    }

    /// Closes the ceremony with a public value, hashed 2^log_iterations times.
    ///
    /// # Errors
    /// [`SetupError::Chain`] after a beacon, [`SetupError::Beacon`] for more than 2^30 iterations.
    pub fn close(
        &mut self,
        value: [u8; 32],
        log_iterations: u8,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        let [delta, sigma] = self.transcript.close(value, log_iterations, rng)?;
        self.multiply(delta, sigma);
        Ok(())
    }

    fn multiply(&mut self, delta: E::ScalarField, sigma: E::ScalarField) {
        let inverse = delta.inverse().unwrap_or_default();
        let specific = &mut self.specific;
        self.delta = (self.delta * delta).into_affine();
        specific.quotient = times(&specific.quotient, inverse);
        specific.private = times(&specific.private, inverse);
        specific.unblind = (specific.unblind * inverse).into_affine();
        specific.knowledge = times(&specific.knowledge, sigma);
        specific.knowledge_blinding = (specific.knowledge_blinding * sigma).into_affine();
    }

    /// Checks every contribution, and that the elements are what they make of the prepared key's: random weights of
    /// 128 bits, two sums over each list and six pairings.
    ///
    /// # Errors
    /// [`SetupError`] naming the contribution or the elements.
    pub fn verify(
        &self,
        prepared: &ProvingKey<E>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        if self.transcript.start != start(prepared) {
            return Err(SetupError::Inconsistent("the transcript's start"));
        }
        self.transcript.verify()?;
        let [delta, sigma] = self.transcript.secrets();
        let (one, two) = (E::G1Affine::generator(), E::G2Affine::generator());
        if !same_ratio::<E>((self.delta, two), (one, delta)) {
            return Err(SetupError::Inconsistent("the two points of δ"));
        }
        self.specific.has_lengths_of(&prepared.specific)?;
        let (now, before) = sums(&self.specific.divided(), &prepared.specific.divided(), rng);
        if !same_ratio::<E>((now, delta), (before, two)) {
            return Err(SetupError::Inconsistent("the elements over δ"));
        }
        let (now, before) = sums(&self.specific.multiplied(), &prepared.specific.multiplied(), rng);
        if !same_ratio::<E>((now, two), (before, sigma)) {
            return Err(SetupError::Inconsistent("the elements times σ"));
        }
        Ok(())
    }

    /// Takes the state that a contributor sends back: this one with one contribution more.
    ///
    /// # Errors
    /// [`SetupError::NotBuiltOnLast`], or as [`Self::verify`]; this state is then unchanged.
    pub fn accept(
        &mut self,
        next: Self,
        prepared: &ProvingKey<E>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        if !self.transcript.precedes(&next.transcript) {
            return Err(SetupError::NotBuiltOnLast);
        }
        next.verify(prepared, rng)?;
        *self = next;
        Ok(())
    }

    /// The key so far; [`Self::verify`] should have passed.
    pub fn key(&self, prepared: &ProvingKey<E>) -> ProvingKey<E> {
        let mut key = prepared.clone();
        [key.verifying.delta, key.verifying.sigma] = self.transcript.secrets();
        if let Origin::Ceremony { keys, .. } = &mut key.verifying.origin {
            *keys = self.transcript.origin();
        }
        key.delta = self.delta;
        key.specific = self.specific.clone();
        key
    }

    /// Checks a whole key: that this ceremony holds, and that the key is its key.
    ///
    /// # Errors
    /// As [`Self::verify`]; [`SetupError::Foreign`] for a key with another element anywhere.
    pub fn verify_key(
        &self,
        prepared: &ProvingKey<E>,
        key: &ProvingKey<E>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        self.verify(prepared, rng)?;
        if self.key(prepared) == *key { Ok(()) } else { Err(SetupError::Foreign) }
    }
}

impl<E: Pairing> Specific<E> {
    /// List by list: what follows is checked over several lists in one, where an element that moved from the end of one to
    /// the beginning of the next would not be seen.
    fn has_lengths_of(&self, prepared: &Self) -> Result<(), SetupError> {
        let over_delta = |specific: &Self| [specific.quotient.len(), specific.private.len()];
        if over_delta(self) != over_delta(prepared) {
            return Err(SetupError::Inconsistent("the numbers of elements over δ"));
        }
        if self.knowledge.len() != prepared.knowledge.len() {
            return Err(SetupError::Inconsistent("the numbers of elements times σ"));
        }
        Ok(())
    }

    /// What a contribution divides by its factor of δ.
    fn divided(&self) -> Vec<E::G1Affine> {
        let mut all = [&self.quotient[..], &self.private].concat();
        all.push(self.unblind);
        all
    }

    /// What a contribution multiplies by its factor of σ.
    fn multiplied(&self) -> Vec<E::G1Affine> {
        let mut all = self.knowledge.clone();
        all.push(self.knowledge_blinding);
        all
    }
}

/// The transcript's start, which a prepared key carries in the place of its transcript's hash.
fn start<E: Pairing>(prepared: &ProvingKey<E>) -> [u8; 32] {
    match prepared.verifying.origin {
        Origin::Ceremony { keys, .. } => keys.transcript,
        Origin::Development => [0; 32],
    }
}

fn times<G: AffineRepr>(points: &[G], factor: G::ScalarField) -> Vec<G> {
    par::pieces(points.len(), 4, 16, |range| {
        let scaled: Vec<G::Group> = points[range].iter().map(|point| *point * factor).collect();
        G::Group::normalize_batch(&scaled)
    })
    .concat()
}

/// The same random combination of two lists of one length.
fn sums<G: AffineRepr>(now: &[G], before: &[G], rng: &mut (impl CryptoRng + ?Sized)) -> (G, G) {
    let weights = random_weights::<G::ScalarField>(now.len(), rng);
    let (now, before) = par::join(|| msm(now, &weights), || msm(before, &weights));
    (now.into_affine(), before.into_affine())
}

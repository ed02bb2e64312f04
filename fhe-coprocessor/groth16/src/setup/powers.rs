//! Phase 1: powers of τ, alone and times α and β, for every circuit up to a size.

use ark_ec::{AffineRepr, CurveGroup, pairing::Pairing};
use ark_ff::{Field, PrimeField};
use rand_core::CryptoRng;

use super::{SetupError, Transcript};
use crate::key::PhaseOrigin;
use crate::points::msm;
use crate::{hash, key, par, tags};

/// The powers for domains of up to n = 2^k rows. From a [`PowersCeremony`] or from one held elsewhere;
/// [`Self::check`] tells whether they hang together, and only a transcript whether anyone knows the secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Powers<E: Pairing> {
    /// \[τⁱ\]₁, i < 2n − 1
    pub tau_g1: Vec<E::G1Affine>,
    /// \[τⁱ\]₂, i < n
    pub tau_g2: Vec<E::G2Affine>,
    /// \[α·τⁱ\]₁, i < n
    pub alpha_tau_g1: Vec<E::G1Affine>,
    /// \[β·τⁱ\]₁, i < n
    pub beta_tau_g1: Vec<E::G1Affine>,
    /// \[β\]₂
    pub beta_g2: E::G2Affine,
}

impl<E: Pairing> Powers<E> {
    /// The powers with τ = α = β = 1, for domains of 2^log_size rows.
    pub fn initial(log_size: u8) -> Self {
        let n = 1usize << log_size.min(28);
        let one = E::G1Affine::generator();
        Self {
            tau_g1: vec![one; 2 * n - 1],
            tau_g2: vec![E::G2Affine::generator(); n],
            alpha_tau_g1: vec![one; n],
            beta_tau_g1: vec![one; n],
            beta_g2: E::G2Affine::generator(),
        }
    }

    /// Rows of the largest domain they reach.
    pub fn rows(&self) -> usize {
        let longest = [self.tau_g2.len(), self.alpha_tau_g1.len(), self.beta_tau_g1.len()];
        longest.into_iter().fold(self.tau_g1.len().div_ceil(2), usize::min)
    }

    /// Hash of all of them.
    pub fn hash(&self) -> [u8; 32] {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        hash::sha256(&[tags::POWERS, &key::curve_mark::<E>(), &bytes])
    }

    /// Multiplies τ, α and β. One multiplication for each element.
    fn multiply(&mut self, tau: E::ScalarField, alpha: E::ScalarField, beta: E::ScalarField) {
        self.tau_g1 = times_powers(&self.tau_g1, tau, E::ScalarField::ONE);
        self.tau_g2 = times_powers(&self.tau_g2, tau, E::ScalarField::ONE);
        self.alpha_tau_g1 = times_powers(&self.alpha_tau_g1, tau, alpha);
        self.beta_tau_g1 = times_powers(&self.beta_tau_g1, tau, beta);
        self.beta_g2 = (self.beta_g2 * beta).into_affine();
    }

    /// Checks that all elements are powers of one τ times one α and one β, none of which is 0, by random weights of
    /// 128 bits: two sums over each list and ten pairings. The points must be known to be in their groups.
    ///
    /// # Errors
    /// [`SetupError::Inconsistent`].
    pub fn check(&self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), SetupError> {
        let n = self.rows();
        let lengths = self.tau_g1.len() == (2 * n).saturating_sub(1)
            && [self.tau_g2.len(), self.alpha_tau_g1.len(), self.beta_tau_g1.len()] == [n; 3];
        if n < 2 || !lengths {
            return Err(SetupError::Inconsistent("the lengths"));
        }
        let (one, two) = (E::G1Affine::generator(), E::G2Affine::generator());
        let tau = self.tau_g2[1];
        if self.tau_g1[0] != one || self.tau_g2[0] != two {
            return Err(SetupError::Inconsistent("the zeroth powers"));
        }
        if tau.is_zero() || self.alpha_tau_g1[0].is_zero() || self.beta_g2.is_zero() {
            return Err(SetupError::Inconsistent("secrets that are 0"));
        }
        for (list, name) in [
            (&self.tau_g1, "the powers of τ in G1"),
            (&self.alpha_tau_g1, "the powers times α"),
            (&self.beta_tau_g1, "the powers times β"),
        ] {
            let (low, high) = shifted(list, rng);
            if !same_ratio::<E>((high, two), (low, tau)) {
                return Err(SetupError::Inconsistent(name));
            }
        }
        let (low, high) = shifted(&self.tau_g2, rng);
        if !same_ratio::<E>((one, high), (self.tau_g1[1], low)) {
            return Err(SetupError::Inconsistent("the powers of τ in G2"));
        }
        if !same_ratio::<E>((self.beta_tau_g1[0], two), (one, self.beta_g2)) {
            return Err(SetupError::Inconsistent("the two points of β"));
        }
        Ok(())
    }
}

/// A transcript of powers of τ that was held elsewhere, and with what it ended. Made by
/// [`import`](super::PowersTranscript) after every contribution was checked, or read from a state that rests on one: then
/// nothing is checked until it is compared with one that was imported here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported<E: Pairing> {
    /// The transcript's last hash, BLAKE2b: what was published.
    pub(crate) hash: [u8; 64],
    /// How many contributions the transcript has.
    pub(crate) contributions: u32,
    /// \[τ\]₁, \[α\]₁, \[β\]₁ at its end.
    pub(crate) secrets: [E::G1Affine; 3],
}

impl<E: Pairing> Imported<E> {
    /// The last hash of the transcript, BLAKE2b: what its organisers published.
    pub fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    /// How many contributions the transcript has.
    pub fn contributions(&self) -> u32 {
        self.contributions
    }
}

/// The secrets' points that a phase 1 begins with.
pub(crate) fn first_secrets<E: Pairing>(imported: Option<&Imported<E>>) -> [E::G1Affine; 3] {
    imported.map_or([E::G1Affine::generator(); 3], |imported| imported.secrets)
}

/// A phase-1 ceremony: the powers and who made them. It begins with secrets that are 1, or where an imported transcript
/// ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowersCeremony<E: Pairing> {
    pub(crate) powers: Powers<E>,
    /// Chain of τ, α and β in G1.
    pub(crate) transcript: Transcript<E::G1Affine, 3>,
    pub(crate) imported: Option<Imported<E>>,
}

impl<E: Pairing> PowersCeremony<E> {
    /// A ceremony for domains of 2^log_size rows, without contributions.
    pub fn new(log_size: u8) -> Self {
        Self::of(Powers::initial(log_size), None)
    }

    /// A ceremony that begins with these powers.
    pub(crate) fn of(powers: Powers<E>, imported: Option<Imported<E>>) -> Self {
        let start = Self::start(powers.rows() as u64, imported.as_ref());
        let transcript = Transcript::new(start, first_secrets::<E>(imported.as_ref()));
        Self { powers, transcript, imported }
    }

    fn start(rows: u64, imported: Option<&Imported<E>>) -> [u8; 32] {
        let mut before = Vec::new();
        if let Some(imported) = imported {
            imported.write(&mut before);
        }
        let rows = rows.to_be_bytes();
        hash::sha256(&[tags::TRANSCRIPT, b"powers", &key::curve_mark::<E>(), &rows, &before])
    }

    /// The transcript it began with, where that was held elsewhere.
    pub fn imported(&self) -> Option<&Imported<E>> {
        self.imported.as_ref()
    }

    /// What a key that is made from these powers says of them. An imported transcript's contributions count.
    pub fn origin(&self) -> PhaseOrigin {
        let own = self.transcript.origin();
        let before = self.imported.as_ref().map_or(0, |imported| imported.contributions);
        PhaseOrigin { contributions: own.contributions.saturating_add(before), ..own }
    }

    /// The powers after the last contribution.
    pub fn powers(&self) -> &Powers<E> {
        &self.powers
    }

    /// The contributions so far, in their order.
    pub fn transcript(&self) -> &Transcript<E::G1Affine, 3> {
        &self.transcript
    }

    /// Contributes random factors, which are forgotten at once.
    ///
    /// # Errors
    /// [`SetupError::Chain`] after a beacon.
    pub fn contribute(&mut self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), SetupError> {
        let factors = self.transcript.contribute(rng)?;
        self.powers.multiply(factors[0], factors[1], factors[2]);
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
        let factors = self.transcript.close(value, log_iterations, rng)?;
        self.powers.multiply(factors[0], factors[1], factors[2]);
        Ok(())
    }

    /// Checks every contribution, and that the powers are what they lead to. A ceremony that goes on from an imported
    /// transcript is held against `imported`, which is that transcript as it was checked here.
    ///
    /// # Errors
    /// [`SetupError`] naming the contribution or the elements; [`SetupError::Imported`] for another beginning than the one
    /// that was checked.
    pub fn verify(
        &self,
        imported: Option<&Imported<E>>,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(), SetupError> {
        if self.imported.as_ref() != imported {
            return Err(SetupError::Imported);
        }
        let first = first_secrets::<E>(imported);
        let start = Self::start(self.powers.rows() as u64, imported);
        if (self.transcript.start, self.transcript.first) != (start, first) {
            return Err(SetupError::Inconsistent("the transcript's start"));
        }
        self.transcript.verify()?;
        self.powers.check(rng)?;
        let powers = &self.powers;
        if self.transcript.secrets() != [powers.tau_g1[1], powers.alpha_tau_g1[0], powers.beta_tau_g1[0]] {
            return Err(SetupError::Inconsistent("the secrets"));
        }
        Ok(())
    }

    /// Takes the state that a contributor sends back: this one, whose beginning is taken as it is, with one contribution
    /// more.
    ///
    /// # Errors
    /// [`SetupError::NotBuiltOnLast`], or as [`Self::verify`]; this state is then unchanged.
    pub fn accept(&mut self, next: Self, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(), SetupError> {
        if !self.transcript.precedes(&next.transcript) || next.powers.rows() != self.powers.rows() {
            return Err(SetupError::NotBuiltOnLast);
        }
        next.verify(self.imported.as_ref(), rng)?;
        *self = next;
        Ok(())
    }
}

/// Pointᵢ · factor · baseⁱ.
fn times_powers<G: AffineRepr>(points: &[G], base: G::ScalarField, factor: G::ScalarField) -> Vec<G> {
    par::pieces(points.len(), 4, 16, |range| {
        let mut power = base.pow([range.start as u64]) * factor;
        let scaled: Vec<G::Group> = points[range]
            .iter()
            .map(|point| {
                let out = *point * power;
                power *= base;
                out
            })
            .collect();
        G::Group::normalize_batch(&scaled)
    })
    .concat()
}

/// Σ rᵢ·Pᵢ and Σ rᵢ·Pᵢ₊₁ with random rᵢ.
fn shifted<G: AffineRepr>(points: &[G], rng: &mut (impl CryptoRng + ?Sized)) -> (G, G) {
    let weights = random_weights::<G::ScalarField>(points.len() - 1, rng);
    let (low, high) =
        par::join(|| msm(&points[..points.len() - 1], &weights), || msm(&points[1..], &weights));
    (low.into_affine(), high.into_affine())
}

pub(crate) fn random_weights<F: PrimeField>(
    count: usize,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<F::BigInt> {
    (0..count).map(|_| hash::random_weight::<F>(rng).into_bigint()).collect()
}

/// e(a, b) = e(c, d).
pub(crate) fn same_ratio<E: Pairing>(
    (a, b): (E::G1Affine, E::G2Affine),
    (c, d): (E::G1Affine, E::G2Affine),
) -> bool {
    E::multi_pairing([a, (-c.into_group()).into_affine()], [b, d]).0 == E::TargetField::ONE
}

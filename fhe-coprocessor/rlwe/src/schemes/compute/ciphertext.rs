//! Ciphertexts with a bound of their noise, and what can be done without tables.

use std::sync::Arc;

use crate::ring::{DecodeError, Poly};
use crate::rlwe::{MultiCiphertext, OpenError, Parameters};
use crate::rlwe::{row_bytes, unpack_poly, unpack_rows};

/// Bytes of the number of coefficients and of the noise bound in an encoding.
const TRAILER_BYTES: usize = 2 + 16;

/// Why a computation was not made; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// The set does not fit this scheme.
    #[error(
        "the compute scheme needs all N coefficients, primes of one width, at most 108 bits of q, and a prime t ≡ 1 mod 2N below 2^20"
    )]
    Set,
    /// Operands are of different sets.
    #[error("the operands belong to different parameters")]
    Parameters,
    /// There is no such recipient.
    #[error("the ciphertext has no recipient {index}")]
    Recipient {
        /// The index that was asked for.
        index: usize,
    },
    /// The result could not be decrypted.
    #[error("the result's noise may reach q/2: multiply fresh ciphertexts only, once, or sum fewer")]
    Noise,
    /// Only some coefficients of an operand are left, or not the same as of the other.
    #[error("an operand keeps {kept} coefficients only: combine before cutting")]
    Kept {
        /// The coefficients that it still has.
        kept: usize,
    },
    /// The ciphertext did not open.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// (c0, c1) with the bound of its scaled noise W; of c0 only the first `kept` coefficients may be left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputeCiphertext {
    pub(super) parameters: Arc<Parameters>,
    pub(super) c0: Poly,
    pub(super) c1: Poly,
    pub(super) kept: usize,
    pub(super) noise: u128,
}

impl ComputeCiphertext {
    /// What recipient `index` of a fresh encryption gets. That it is one is the encryptor's word.
    ///
    /// # Errors
    /// [`ComputeError::Set`] if the set uses only some coefficients, [`ComputeError::Recipient`].
    pub fn fresh(ciphertext: &MultiCiphertext, index: usize) -> Result<Self, ComputeError> {
        let parameters = ciphertext.parameters();
        let c0 = ciphertext.c0(index).ok_or(ComputeError::Recipient { index })?.to_vec();
        let c0 = parameters.ring().from_residues(c0).ok_or(ComputeError::Set)?;
        Ok(Self {
            c0,
            c1: ciphertext.c1().clone(),
            kept: parameters.degree(),
            noise: fresh_noise(parameters),
            parameters: Arc::clone(parameters),
        })
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// c0; beyond the kept coefficients zero.
    #[must_use]
    pub const fn c0(&self) -> &Poly {
        &self.c0
    }

    /// The component c1, a whole polynomial.
    #[must_use]
    pub const fn c1(&self) -> &Poly {
        &self.c1
    }

    /// The bound of |W|.
    #[must_use]
    pub const fn noise_bound(&self) -> u128 {
        self.noise
    }

    /// Whether it is whole and claims the noise of a fresh encryption: neither more nor less.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.kept == self.parameters.degree() && self.noise == fresh_noise(&self.parameters)
    }

    /// How many coefficients of c0 are left.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.kept
    }

    /// log₂ of how often the noise could double before it reaches q/2, rounded down.
    #[must_use]
    pub fn budget_bits(&self) -> u32 {
        (self.parameters.modulus() / 2 / self.noise).ilog2()
    }

    /// self += other. Costs 2·N additions for each prime.
    ///
    /// # Errors
    /// [`ComputeError::Parameters`], [`ComputeError::Kept`], [`ComputeError::Noise`].
    pub fn add(&mut self, other: &Self) -> Result<(), ComputeError> {
        self.noise = self.noise_with(other)?;
        self.parameters.ring().add_assign(&mut self.c0, &other.c0);
        self.parameters.ring().add_assign(&mut self.c1, &other.c1);
        Ok(())
    }

    /// self −= other. Costs 2·N subtractions for each prime.
    ///
    /// # Errors
    /// [`ComputeError::Parameters`], [`ComputeError::Kept`], [`ComputeError::Noise`].
    pub fn sub(&mut self, other: &Self) -> Result<(), ComputeError> {
        self.noise = self.noise_with(other)?;
        self.parameters.ring().sub_assign(&mut self.c0, &other.c0);
        self.parameters.ring().sub_assign(&mut self.c1, &other.c1);
        Ok(())
    }

    fn noise_with(&self, other: &Self) -> Result<u128, ComputeError> {
        if *self.parameters != *other.parameters {
            return Err(ComputeError::Parameters);
        }
        if self.kept != other.kept {
            return Err(ComputeError::Kept { kept: self.kept.min(other.kept) });
        }
        bounded(&self.parameters, self.noise.checked_add(other.noise))
    }

    /// Forgets all but the first `count` coefficients of c0 (at least one): who holds the secret then learns these
    /// coefficients of the message and no others.
    pub fn keep(&mut self, count: usize) {
        self.kept = count.clamp(1, self.kept);
        let degree = self.parameters.degree();
        let mut residues = self.c0.residues().to_vec();
        residues.chunks_exact_mut(degree).for_each(|row| row[self.kept..].fill(0));
        // Zeros are below every prime.
        if let Some(c0) = self.parameters.ring().from_residues(residues) {
            self.c0 = c0;
        }
    }

    /// Length of an encoding with so many coefficients of c0 left.
    #[must_use]
    pub fn encoded_bytes(parameters: &Parameters, kept: usize) -> usize {
        row_bytes(parameters, parameters.degree()) + row_bytes(parameters, kept) + TRAILER_BYTES
    }

    /// c1 ‖ kept coefficients of c0, packed, ‖ their number, 2 bytes ‖ the noise bound, 16 bytes, least significant
    /// byte first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        crate::rlwe::pack_rows(&self.parameters, self.c1.residues(), &mut bytes);
        let rows = self.c0.residues().chunks(self.parameters.degree());
        let kept: Vec<u64> = rows.flat_map(|row| &row[..self.kept]).copied().collect();
        crate::rlwe::pack_rows(&self.parameters, &kept, &mut bytes);
        bytes.extend((self.kept as u16).to_le_bytes());
        bytes.extend(self.noise.to_le_bytes());
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else. The noise bound is the writer's word.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, DecodeError> {
        let degree = parameters.degree();
        let least = row_bytes(parameters, degree) + TRAILER_BYTES;
        let cut = DecodeError::Length { expected: least, found: bytes.len() };
        let (rest, noise) = bytes.split_last_chunk::<16>().ok_or(cut)?;
        let (rest, kept) = rest.split_last_chunk::<2>().ok_or(cut)?;
        let kept = usize::from(u16::from_le_bytes(*kept));
        let expected = least + row_bytes(parameters, kept.min(degree));
        if kept == 0 || kept > degree || bytes.len() != expected {
            return Err(DecodeError::Length { expected, found: bytes.len() });
        }
        let noise = u128::from_le_bytes(*noise);
        if noise == 0 || bounded(parameters, Some(noise)).is_err() {
            return Err(DecodeError::Noise);
        }
        let (c1, c0) = rest.split_at(row_bytes(parameters, degree));
        let c1 = unpack_poly(parameters, c1)?;
        let mut residues = Vec::with_capacity(degree * parameters.literal().primes.len());
        for row in unpack_rows(parameters, kept, c0)?.chunks(kept) {
            residues.extend(row);
            residues.resize(residues.len().next_multiple_of(degree), 0);
        }
        let c0 = parameters.ring().from_residues(residues).ok_or(DecodeError::Noise)?;
        Ok(Self { parameters: Arc::clone(parameters), c0, c1, kept, noise })
    }
}

/// t·B·(2N + 1) + ρ·t/2.
fn fresh_noise(parameters: &Parameters) -> u128 {
    let t = u128::from(parameters.literal().plaintext_modulus);
    // Below 2^64·2^23 + 2^127: t is below every prime, and q below 2^127.
    t * parameters.fresh_noise() + (parameters.modulus() % t) * (t / 2)
}

/// The bound if a ciphertext with it decrypts.
pub(super) fn bounded(parameters: &Parameters, noise: Option<u128>) -> Result<u128, ComputeError> {
    noise.filter(|&noise| noise < parameters.modulus() / 2).ok_or(ComputeError::Noise)
}

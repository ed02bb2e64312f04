//! Sums of ciphertexts of one recipient, counted.

use std::sync::Arc;

use super::Parameters;
use super::encryption::check_message;
use super::keys::{pack_rows, row_bytes, unpack_poly, unpack_rows};
use crate::ring::{DecodeError, Poly};

/// Bytes of the counter in an encoding.
const COUNTER_BYTES: usize = 2;

/// Why a sum was not made; neither side has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// The terms are of different sets.
    #[error("the ciphertexts belong to different parameters")]
    Parameters,
    /// The sum would have too many terms for its noise to be removed.
    #[error(
        "the sum would have {terms} terms and the limit is {limit}: let the owner refresh the ciphertext first"
    )]
    Limit {
        /// How many terms both sides have together.
        terms: u32,
        /// The most terms by the parameters.
        limit: u16,
    },
    /// The public message is of a wrong length or out of bound.
    #[error("a public message needs the set's number of coefficients, each within its bound")]
    Message,
}

/// c1 and the used coefficients of c0, with the number of terms that it is a sum of, debits included.
///
/// The counter bounds noise **and** message: ‖n‖ ≤ terms·B·(2N + 1) and |m_j| ≤ terms·(bound of a message), so public
/// messages count as well although they bring no noise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ciphertext {
    parameters: Arc<Parameters>,
    c0: Vec<u64>,
    c1: Poly,
    additions: u16,
}

impl Ciphertext {
    pub(super) fn from_parts(parameters: &Arc<Parameters>, c0: Vec<u64>, c1: Poly, additions: u16) -> Self {
        Self { parameters: Arc::clone(parameters), c0, c1, additions }
    }

    /// The sum of nothing: zero, for every key.
    #[must_use]
    pub fn zero(parameters: &Arc<Parameters>) -> Self {
        let literal = parameters.literal();
        let c0 = vec![0; literal.used * literal.primes.len()];
        Self::from_parts(parameters, c0, parameters.ring().zero(), 0)
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// The used residues of c0, prime after prime.
    #[must_use]
    pub fn c0(&self) -> &[u64] {
        &self.c0
    }

    /// The component c1, a whole polynomial.
    #[must_use]
    pub const fn c1(&self) -> &Poly {
        &self.c1
    }

    /// How many terms were added up in it.
    #[must_use]
    pub const fn additions(&self) -> u16 {
        self.additions
    }

    /// self += other. Costs N + used additions modulo each prime.
    ///
    /// # Errors
    /// [`SumError::Parameters`], [`SumError::Limit`].
    pub fn add(&mut self, other: &Self) -> Result<(), SumError> {
        self.additions = self.terms_with(other)?;
        self.parameters.ring().add_assign(&mut self.c1, &other.c1);
        self.combine_c0(&other.c0, false);
        Ok(())
    }

    /// self −= other. Costs N + used subtractions modulo each prime.
    ///
    /// # Errors
    /// [`SumError::Parameters`], [`SumError::Limit`].
    pub fn sub(&mut self, other: &Self) -> Result<(), SumError> {
        self.additions = self.terms_with(other)?;
        self.parameters.ring().sub_assign(&mut self.c1, &other.c1);
        self.combine_c0(&other.c0, true);
        Ok(())
    }

    /// self += message, public: c0 += Δ·m. One term, without noise.
    ///
    /// # Errors
    /// [`SumError::Message`], [`SumError::Limit`].
    pub fn add_public(&mut self, message: &[i64]) -> Result<(), SumError> {
        let scaled = self.scaled(message)?;
        self.additions = self.terms(1)?;
        self.combine_c0(&scaled, false);
        Ok(())
    }

    /// self −= message, public. One term, without noise.
    ///
    /// # Errors
    /// [`SumError::Message`], [`SumError::Limit`].
    pub fn sub_public(&mut self, message: &[i64]) -> Result<(), SumError> {
        let scaled = self.scaled(message)?;
        self.additions = self.terms(1)?;
        self.combine_c0(&scaled, true);
        Ok(())
    }

    fn terms_with(&self, other: &Self) -> Result<u16, SumError> {
        if *self.parameters != *other.parameters {
            return Err(SumError::Parameters);
        }
        self.terms(other.additions)
    }

    fn terms(&self, more: u16) -> Result<u16, SumError> {
        let (terms, limit) =
            (u32::from(self.additions) + u32::from(more), self.parameters.literal().max_additions);
        u16::try_from(terms).ok().filter(|&terms| terms <= limit).ok_or(SumError::Limit { terms, limit })
    }

    fn scaled(&self, message: &[i64]) -> Result<Vec<u64>, SumError> {
        check_message(&self.parameters, message).map_err(|_| SumError::Message)?;
        let rows = self.parameters.ring().moduli().flat_map(|modulus| {
            let delta = (self.parameters.delta() % u128::from(modulus.value())) as u64;
            message.iter().map(move |&m| modulus.mul(delta, modulus.lift(m)))
        });
        Ok(rows.collect())
    }

    fn combine_c0(&mut self, other: &[u64], subtract: bool) {
        let used = self.parameters.literal().used;
        let rows = self.c0.chunks_exact_mut(used).zip(other.chunks_exact(used));
        for ((row, other), modulus) in rows.zip(self.parameters.ring().moduli()) {
            for (x, &y) in row.iter_mut().zip(other) {
                *x = if subtract { modulus.sub(*x, y) } else { modulus.add(*x, y) };
            }
        }
    }

    /// Length of an encoding: 13,880 bytes for `balance`.
    #[must_use]
    pub fn encoded_bytes(parameters: &Parameters) -> usize {
        row_bytes(parameters, parameters.degree())
            + row_bytes(parameters, parameters.literal().used)
            + COUNTER_BYTES
    }

    /// c1 ‖ c0, packed, ‖ the counter, least significant byte first.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_bytes(&self.parameters));
        pack_rows(&self.parameters, self.c1.residues(), &mut bytes);
        pack_rows(&self.parameters, &self.c0, &mut bytes);
        bytes.extend(self.additions.to_le_bytes());
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else. The counter is the writer's word: take encodings
    /// from one's own state only.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (expected, found) = (Self::encoded_bytes(parameters), bytes.len());
        let Some((residues, counter)) =
            bytes.split_last_chunk::<COUNTER_BYTES>().filter(|_| found == expected)
        else {
            return Err(DecodeError::Length { expected, found });
        };
        let (count, limit) = (u16::from_le_bytes(*counter), parameters.literal().max_additions);
        if count > limit {
            return Err(DecodeError::Counter { count, limit });
        }
        let (c1, c0) = residues.split_at(row_bytes(parameters, parameters.degree()));
        let c1 = unpack_poly(parameters, c1)?;
        let c0 = unpack_rows(parameters, parameters.literal().used, c0)?;
        Ok(Self::from_parts(parameters, c0, c1, count))
    }
}

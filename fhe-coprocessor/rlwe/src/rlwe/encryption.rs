//! One encryption to several recipients, and what its prover knows.

use std::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::keys::{pack_rows, row_bytes, unpack_poly, unpack_rows, within};
use super::{Ciphertext, Parameters, PublicKey, PublicPolynomial, SEED_BYTES, Xof};
use crate::ring::{DecodeError, Poly, Ring};
use crate::tags;

/// Most recipients of one ciphertext.
pub const MAX_RECIPIENTS: usize = 16;

/// Why nothing was encrypted; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    /// No recipient, too many, or not as many keys as the witness has errors.
    #[error(
        "{recipients} recipients: choose between 1 and {MAX_RECIPIENTS}, as many as the witness was made for"
    )]
    Recipients {
        /// How many recipients were given.
        recipients: usize,
    },
    /// A key or the public polynomial is of another set than the witness.
    #[error("keys, public polynomial and witness belong to different parameters")]
    Parameters,
    /// Not one coefficient for each used one, or one out of its bound.
    #[error("a message needs the set's number of coefficients, each within its bound")]
    Message,
    /// u not ternary, or an error above the bound.
    #[error("a witness needs a ternary u and errors within the bound")]
    Witness,
}

/// The message with all randomness of one encryption: u, e1, and e0 for each recipient. Wiped, printed redacted.
///
/// **Used once**: two messages under one witness differ by a public amount.
pub struct EncryptionWitness {
    parameters: Arc<Parameters>,
    message: Zeroizing<Vec<i64>>,
    u: Zeroizing<Vec<i8>>,
    e1: Zeroizing<Vec<i8>>,
    e0: Vec<Zeroizing<Vec<i8>>>,
}

impl EncryptionWitness {
    /// Draws 32 bytes and expands them with the message, so that two messages have two witnesses even if the generator
    /// repeats itself; who encrypts with a secret at hand draws from a [`HedgedRng`](super::HedgedRng). About 2·N hashed
    /// bytes, and the used coefficients for each recipient.
    ///
    /// # Errors
    /// [`EncryptError::Recipients`], [`EncryptError::Message`].
    pub fn sample(
        parameters: &Arc<Parameters>,
        recipients: usize,
        message: &[i64],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, EncryptError> {
        check_recipients(recipients)?;
        check_message(parameters, message)?;
        let literal = parameters.literal();
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        rng.fill_bytes(&mut *seed);
        let bound: Zeroizing<Vec<u8>> =
            Zeroizing::new(message.iter().flat_map(|m| m.to_le_bytes()).collect());
        let mut xof = Xof::new(tags::ENCRYPTION, &[&parameters.fingerprint(), &*seed, &bound]);
        let u = xof.small(literal.degree, 1);
        let e1 = xof.small(literal.degree, literal.error_bound);
        let e0 = (0..recipients).map(|_| xof.small(literal.used, literal.error_bound)).collect();
        Ok(Self { parameters: Arc::clone(parameters), message: Zeroizing::new(message.to_vec()), u, e1, e0 })
    }

    /// A witness of given numbers, for tests of extreme ones.
    ///
    /// # Errors
    /// [`EncryptError::Recipients`], [`EncryptError::Message`], [`EncryptError::Witness`].
    pub fn from_parts(
        parameters: &Arc<Parameters>,
        message: &[i64],
        u: Vec<i8>,
        e1: Vec<i8>,
        e0: Vec<Vec<i8>>,
    ) -> Result<Self, EncryptError> {
        let (u, e1) = (Zeroizing::new(u), Zeroizing::new(e1));
        let e0: Vec<_> = e0.into_iter().map(Zeroizing::new).collect();
        check_recipients(e0.len())?;
        check_message(parameters, message)?;
        let literal = parameters.literal();
        let bounded = within(&u, literal.degree, 1)
            && within(&e1, literal.degree, literal.error_bound)
            && e0.iter().all(|e0| within(e0, literal.used, literal.error_bound));
        if !bounded {
            return Err(EncryptError::Witness);
        }
        Ok(Self { parameters: Arc::clone(parameters), message: Zeroizing::new(message.to_vec()), u, e1, e0 })
    }

    /// c1 = a·u + e1, and for each recipient the used coefficients of c0 = b·u + e0 + Δ·m. Costs two transforms for
    /// each prime, and for each recipient N products for each used coefficient, or two transforms if all are used.
    ///
    /// # Errors
    /// [`EncryptError::Parameters`], [`EncryptError::Recipients`].
    pub fn encrypt(
        &self,
        public: &PublicPolynomial,
        recipients: &[&PublicKey],
    ) -> Result<MultiCiphertext, EncryptError> {
        if recipients.len() != self.e0.len() {
            return Err(EncryptError::Recipients { recipients: recipients.len() });
        }
        let same = |parameters: &Arc<Parameters>| **parameters == *self.parameters;
        if !same(public.parameters()) || !recipients.iter().all(|key| same(key.parameters())) {
            return Err(EncryptError::Parameters);
        }
        let ring = self.parameters.ring();
        let mut c1 = ring.mul_small(public.spectrum(), &self.u);
        let e1 = Zeroizing::new(ring.from_small(&self.e1));
        ring.add_assign(&mut c1, &e1);
        let c0 = recipients.iter().zip(&self.e0).map(|(key, e0)| self.share(ring, key, e0)).collect();
        Ok(MultiCiphertext { parameters: Arc::clone(&self.parameters), c1, c0 })
    }

    fn share(&self, ring: &Ring, key: &PublicKey, e0: &[i8]) -> Vec<u64> {
        let used = self.parameters.literal().used;
        let mut c0 = if used == ring.degree() {
            // b·u alone would give u away.
            Zeroizing::new(ring.mul_small(&ring.forward(key.polynomial()), &self.u)).residues().to_vec()
        } else {
            ring.leading_of_product(key.polynomial(), &self.u, used)
        };
        for (row, modulus) in c0.chunks_exact_mut(used).zip(ring.moduli()) {
            let delta = (self.parameters.delta() % u128::from(modulus.value())) as u64;
            for ((c0, &error), &m) in row.iter_mut().zip(e0).zip(self.message.iter()) {
                let scaled = modulus.mul(delta, modulus.lift(m));
                *c0 = modulus.add(*c0, modulus.add(scaled, modulus.lift(error.into())));
            }
        }
        c0
    }

    /// m, the message's coefficients.
    #[must_use]
    pub fn message(&self) -> &[i64] {
        &self.message
    }

    /// u, the ternary randomness.
    #[must_use]
    pub fn u(&self) -> &[i8] {
        &self.u
    }

    /// e1, the error of c1.
    #[must_use]
    pub fn e1(&self) -> &[i8] {
        &self.e1
    }

    /// e0 of each recipient, used coefficients.
    pub fn e0(&self) -> impl ExactSizeIterator<Item = &[i8]> {
        self.e0.iter().map(|e0| e0.as_slice())
    }
}

impl fmt::Debug for EncryptionWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionWitness").field("recipients", &self.e0.len()).finish_non_exhaustive()
    }
}

fn check_recipients(recipients: usize) -> Result<(), EncryptError> {
    if (1..=MAX_RECIPIENTS).contains(&recipients) {
        Ok(())
    } else {
        Err(EncryptError::Recipients { recipients })
    }
}

/// Whether a message has its length and its bound: the set's, or t/2 if messages wrap.
pub(super) fn check_message(parameters: &Parameters, message: &[i64]) -> Result<(), EncryptError> {
    let literal = parameters.literal();
    let bound = literal.message_bound.unwrap_or(literal.plaintext_modulus / 2);
    let bounded = message.iter().fold(true, |all, m| all & (m.unsigned_abs() <= bound));
    if message.len() == literal.used && bounded { Ok(()) } else { Err(EncryptError::Message) }
}

/// One message to several recipients: c1 once, c0 for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultiCiphertext {
    parameters: Arc<Parameters>,
    c1: Poly,
    c0: Vec<Vec<u64>>,
}

impl MultiCiphertext {
    /// The component c1, which all recipients share.
    #[must_use]
    pub const fn c1(&self) -> &Poly {
        &self.c1
    }

    /// c0 of recipient `index`: the used residues, prime after prime.
    #[must_use]
    pub fn c0(&self, index: usize) -> Option<&[u64]> {
        self.c0.get(index).map(Vec::as_slice)
    }

    /// How many recipients there are.
    #[must_use]
    pub fn recipients(&self) -> usize {
        self.c0.len()
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// What recipient `index` adds to a sum: one term.
    #[must_use]
    pub fn for_recipient(&self, index: usize) -> Option<Ciphertext> {
        let c0 = self.c0.get(index)?.clone();
        Some(Ciphertext::from_parts(&self.parameters, c0, self.c1.clone(), 1))
    }

    /// Length of an encoding: 13,986 bytes for three recipients under `balance`.
    #[must_use]
    pub fn encoded_bytes(parameters: &Parameters, recipients: usize) -> usize {
        row_bytes(parameters, parameters.degree())
            + recipients * row_bytes(parameters, parameters.literal().used)
    }

    /// c1 ‖ c0 of each recipient, packed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_bytes(&self.parameters, self.c0.len()));
        pack_rows(&self.parameters, self.c1.residues(), &mut bytes);
        self.c0.iter().for_each(|c0| pack_rows(&self.parameters, c0, &mut bytes));
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote for so many recipients, and nothing else; the length is checked
    /// before anything is allocated.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(
        parameters: &Arc<Parameters>,
        recipients: usize,
        bytes: &[u8],
    ) -> Result<Self, DecodeError> {
        let expected = Self::encoded_bytes(parameters, recipients.min(MAX_RECIPIENTS));
        if recipients == 0 || bytes.len() != expected {
            return Err(DecodeError::Length { expected, found: bytes.len() });
        }
        let (c1, shares) = bytes.split_at(row_bytes(parameters, parameters.degree()));
        let used = parameters.literal().used;
        let shares = shares.chunks(row_bytes(parameters, used));
        Ok(Self {
            c1: unpack_poly(parameters, c1)?,
            c0: shares.map(|share| unpack_rows(parameters, used, share)).collect::<Result<_, _>>()?,
            parameters: Arc::clone(parameters),
        })
    }
}

//! The public polynomial, secret and public keys, opening.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::{Ciphertext, Parameters, Xof};
use crate::ring::{DecodeError, Poly, Spectrum, pack, packed_bytes, unpack};
use crate::tags;

/// Length of every seed, in bytes.
pub const SEED_BYTES: usize = 32;

/// Why keys were not made; the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A set marked insecure where money could be at stake.
    #[error(
        "parameter set {name} is marked insecure: use it in tests only, through PublicPolynomial::insecure"
    )]
    Insecure {
        /// Name of the set of parameters.
        name: &'static str,
    },
    /// Given coefficients of a wrong number, a secret that is not ternary, or an error above the bound.
    #[error("a secret needs N ternary coefficients and N errors within the bound")]
    Coefficients,
}

/// Why a ciphertext could not be opened; the holder's mistake, or a ciphertext that no honest executor makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Key and ciphertext are of different sets.
    #[error("the ciphertext belongs to other parameters than the key")]
    Parameters,
    /// The set has several primes; its scheme has a decryption of its own.
    #[error("a modulus of several primes is opened by the compute scheme")]
    Composite,
    /// The noise or the message is beyond what the counter allows.
    #[error(
        "the opened value is beyond what the ciphertext's counter allows: wrong secret, or not an honest sum"
    )]
    Beyond,
}

/// The polynomial a, uniform in R_q, expanded from a public seed and common to all accounts of a deployment.
///
/// For prime after prime, N residues from SHAKE256 under the tag `BLINDFOLD-V1-RLWE-PUBLIC` of the set's numbers and
/// the seed.
#[derive(Debug, PartialEq, Eq)]
pub struct PublicPolynomial {
    parameters: Arc<Parameters>,
    seed: [u8; SEED_BYTES],
    polynomial: Poly,
    spectrum: Spectrum,
}

impl PublicPolynomial {
    /// Expands a. Costs N·k residues of 8 hashed bytes and one transform for each prime.
    ///
    /// # Errors
    /// [`KeyError::Insecure`]: nothing of this crate works without a public polynomial, so a set for tests ends here.
    pub fn new(parameters: &Arc<Parameters>, seed: &[u8; SEED_BYTES]) -> Result<Arc<Self>, KeyError> {
        if parameters.literal().insecure {
            return Err(KeyError::Insecure { name: parameters.literal().name });
        }
        Ok(Self::insecure(parameters, seed))
    }

    /// [`new`](Self::new) for any set. **For tests only.**
    #[must_use]
    pub fn insecure(parameters: &Arc<Parameters>, seed: &[u8; SEED_BYTES]) -> Arc<Self> {
        let mut xof = Xof::new(tags::PUBLIC, &[&parameters.fingerprint(), seed]);
        let polynomial = uniform(parameters, &mut xof);
        let spectrum = parameters.ring().forward(&polynomial);
        Arc::new(Self { parameters: Arc::clone(parameters), seed: *seed, polynomial, spectrum })
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// The seed that a is expanded from.
    #[must_use]
    pub const fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    /// a, the public polynomial.
    #[must_use]
    pub const fn polynomial(&self) -> &Poly {
        &self.polynomial
    }

    pub(crate) const fn spectrum(&self) -> &Spectrum {
        &self.spectrum
    }

    /// Everything that a seed is hashed with: the set and this polynomial.
    pub(crate) fn context(&self) -> Vec<u8> {
        [self.parameters.fingerprint(), self.seed.to_vec()].concat()
    }
}

/// A uniform polynomial, prime after prime.
pub(crate) fn uniform(parameters: &Parameters, xof: &mut Xof) -> Poly {
    let ring = parameters.ring();
    let residues = ring.moduli().flat_map(|modulus| xof.residues(ring.degree(), modulus)).collect();
    // Every residue is below its prime.
    ring.from_residues(residues).unwrap_or_else(|| ring.zero())
}

/// The ternary secret s, with the error e of its public key, which the proof of registration needs. Both are wiped.
pub struct SecretKey {
    public: Arc<PublicPolynomial>,
    secret: Zeroizing<Vec<i8>>,
    error: Zeroizing<Vec<i8>>,
}

impl SecretKey {
    /// The key of a wallet's seed for one deployment: the same seed always gives it back. Costs about 2·N hashed bytes.
    #[must_use]
    pub fn derive(public: &Arc<PublicPolynomial>, seed: &[u8; SEED_BYTES]) -> Self {
        let literal = public.parameters.literal();
        let context = public.context();
        let secret = Xof::new(tags::SECRET, &[&context, seed]).small(literal.degree, 1);
        let error = Xof::new(tags::KEY_ERROR, &[&context, seed]).small(literal.degree, literal.error_bound);
        Self { public: Arc::clone(public), secret, error }
    }

    /// A key of given coefficients, for tests of extreme ones.
    ///
    /// # Errors
    /// [`KeyError::Coefficients`].
    pub fn from_coefficients(
        public: &Arc<PublicPolynomial>,
        secret: Vec<i8>,
        error: Vec<i8>,
    ) -> Result<Self, KeyError> {
        let (secret, error) = (Zeroizing::new(secret), Zeroizing::new(error));
        let literal = public.parameters.literal();
        if !within(&secret, literal.degree, 1) || !within(&error, literal.degree, literal.error_bound) {
            return Err(KeyError::Coefficients);
        }
        Ok(Self { public: Arc::clone(public), secret, error })
    }

    /// s, the ternary secret.
    #[must_use]
    pub fn coefficients(&self) -> &[i8] {
        &self.secret
    }

    /// e, the error of the key.
    #[must_use]
    pub fn error(&self) -> &[i8] {
        &self.error
    }

    /// The public polynomial that the key belongs to.
    #[must_use]
    pub const fn public_polynomial(&self) -> &Arc<PublicPolynomial> {
        &self.public
    }

    /// b = −a·s + e. Costs two transforms for each prime.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        let ring = self.public.parameters.ring();
        let mut b = ring.mul_small(&self.public.spectrum, &self.secret);
        ring.neg_assign(&mut b);
        let error = Zeroizing::new(ring.from_small(&self.error));
        ring.add_assign(&mut b, &error);
        PublicKey { parameters: Arc::clone(&self.public.parameters), b }
    }

    /// m and n of c0 + c1·s = Δ·m + n with |n| ≤ Δ/2, checked against the counter: |n| ≤ count·B·(2N + 1) and
    /// |m| ≤ count·(bound of a message). Costs N products for each used coefficient; its time depends on the outcome
    /// only, not on the secret or the message.
    ///
    /// Do not let others learn whether ciphertexts of their choice open.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(&self, ciphertext: &Ciphertext) -> Result<Opening, OpenError> {
        let parameters = &self.public.parameters;
        if **ciphertext.parameters() != **parameters {
            return Err(OpenError::Parameters);
        }
        let literal = parameters.literal();
        let mut moduli = parameters.ring().moduli();
        let (Some(modulus), None) = (moduli.next(), moduli.next()) else { return Err(OpenError::Composite) };
        let products =
            Zeroizing::new(parameters.ring().leading_of_product(ciphertext.c1(), &self.secret, literal.used));
        let delta = parameters.delta() as u64; // below the one prime
        let (half, reciprocal) = (delta / 2, ((1_u128 << 64) / u128::from(delta)) as u64);
        let offset = modulus.value() / 2 / delta + 1;
        let mut message = Zeroizing::new(Vec::with_capacity(literal.used));
        let mut noise = Zeroizing::new(Vec::with_capacity(literal.used));
        for (&c0, &product) in ciphertext.c0().iter().zip(products.iter()) {
            let phase = modulus.centre(modulus.add(c0, product));
            // Δ·(m + offset) + n + ⌊Δ/2⌋ is positive and below 2^63.
            let shifted = (phase + (offset * delta) as i64) as u64 + half;
            let estimate = ((u128::from(shifted) * u128::from(reciprocal)) >> 64) as u64;
            // The reciprocal is rounded down and shifted < 2^63: the estimate is right or one less.
            let short = u64::from(shifted - estimate * delta >= delta);
            let m = (estimate + short) as i64 - offset as i64;
            message.push(m);
            noise.push(phase - m * delta as i64);
        }
        let terms = u64::from(ciphertext.additions());
        let noise_bound = terms * parameters.fresh_noise() as u64;
        let message_bound = literal.message_bound.map_or(u64::MAX, |bound| terms * bound);
        let beyond =
            |values: &[i64], bound: u64| values.iter().fold(false, |any, x| any | (x.unsigned_abs() > bound));
        if beyond(&noise, noise_bound) | beyond(&message, message_bound) {
            return Err(OpenError::Beyond);
        }
        Ok(Opening { message, noise })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey")
            .field("parameters", &self.public.parameters.literal().name)
            .finish_non_exhaustive()
    }
}

/// Whether there are `count` numbers, none above `bound` in absolute value; looks at all of them.
pub(crate) fn within(numbers: &[i8], count: usize, bound: u8) -> bool {
    numbers.len() == count && numbers.iter().fold(true, |all, x| all & (x.unsigned_abs() <= bound))
}

/// An opened ciphertext: what it holds and the noise, which a proof of decryption needs. Wiped.
pub struct Opening {
    message: Zeroizing<Vec<i64>>,
    noise: Zeroizing<Vec<i64>>,
}

impl Opening {
    /// m, centred modulo t, used coefficients.
    #[must_use]
    pub fn message(&self) -> &[i64] {
        &self.message
    }

    /// n, the noise that decryption leaves beside the message.
    #[must_use]
    pub fn noise(&self) -> &[i64] {
        &self.noise
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

/// b = −a·s + e.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    parameters: Arc<Parameters>,
    b: Poly,
}

impl PublicKey {
    /// b = −a·s + e, the public key.
    #[must_use]
    pub const fn polynomial(&self) -> &Poly {
        &self.b
    }

    /// The set of parameters that it was made under.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }

    /// Length of an encoding: 13,824 bytes for `balance`.
    #[must_use]
    pub fn encoded_bytes(parameters: &Parameters) -> usize {
        row_bytes(parameters, parameters.degree())
    }

    /// b packed, each prime's residues by themselves.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_bytes(&self.parameters));
        pack_rows(&self.parameters, self.b.residues(), &mut bytes);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else. That b hides a small secret is not checked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(parameters: &Arc<Parameters>, bytes: &[u8]) -> Result<Self, DecodeError> {
        let b = unpack_poly(parameters, bytes)?;
        Ok(Self { parameters: Arc::clone(parameters), b })
    }
}

/// The packed bytes of `count` coefficients for each prime.
pub(crate) fn row_bytes(parameters: &Parameters, count: usize) -> usize {
    parameters.ring().moduli().map(|modulus| packed_bytes(count, modulus.bits())).sum()
}

/// Appends residues, prime after prime, each prime's starting on a byte.
pub(crate) fn pack_rows(parameters: &Parameters, residues: &[u64], out: &mut Vec<u8>) {
    let moduli = parameters.ring().moduli();
    let count = residues.len() / moduli.len();
    for (row, modulus) in residues.chunks(count).zip(moduli) {
        pack(row, modulus.bits(), out);
    }
}

/// Reads `count` residues for each prime.
pub(crate) fn unpack_rows(
    parameters: &Parameters,
    count: usize,
    bytes: &[u8],
) -> Result<Vec<u64>, DecodeError> {
    let expected = row_bytes(parameters, count);
    if bytes.len() != expected {
        return Err(DecodeError::Length { expected, found: bytes.len() });
    }
    let mut residues = Vec::with_capacity(count * parameters.literal().primes.len());
    let mut rest = bytes;
    for modulus in parameters.ring().moduli() {
        let (row, tail) = rest.split_at(packed_bytes(count, modulus.bits()));
        residues.extend(unpack(row, count, modulus)?);
        rest = tail;
    }
    Ok(residues)
}

/// Reads a whole polynomial.
pub(crate) fn unpack_poly(parameters: &Parameters, bytes: &[u8]) -> Result<Poly, DecodeError> {
    let residues = unpack_rows(parameters, parameters.degree(), bytes)?;
    // Unpacking has compared every residue with its prime.
    Ok(parameters.ring().from_residues(residues).unwrap_or_else(|| parameters.ring().zero()))
}

//! Parameter sets: an unchecked literal becomes a validated, immutable value.

use std::sync::Arc;

use crate::ring::{ModulusError, Ring};

/// The largest log₂ q for each N: ternary secret, σ ≥ 3.2, 128-bit security against classical attacks. Homomorphic
/// Encryption Standard (2018), table 1; ePrint 2019/939. `tests/security.rs` estimates the sets anew.
const STANDARD_128: [(usize, u32); 6] =
    [(1024, 27), (2048, 54), (4096, 109), (8192, 218), (16384, 438), (32768, 881)];
/// The least error bound B of a secure set: uniform on −B..=B has variance B·(B + 1)/3 ≥ 3.2².
const LEAST_SECURE_ERROR: u8 = 6;
/// The largest degree N that is taken.
const MAX_DEGREE: usize = 1 << 15;
/// Most primes of one modulus.
const MAX_PRIMES: usize = 8;

/// What a parameter set is made of, unchecked. [`Parameters::new`] is the only door to the rest of the crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParametersLiteral {
    /// Its name in logs and errors.
    pub name: &'static str,
    /// N, a power of two.
    pub degree: usize,
    /// The distinct primes whose product is q, each 1 modulo 2N.
    pub primes: Vec<u64>,
    /// t, the modulus of a message's coefficients.
    pub plaintext_modulus: u64,
    /// How many leading coefficients carry a message.
    pub used: usize,
    /// B: no error exceeds it in absolute value.
    pub error_bound: u8,
    /// The largest absolute value of one coefficient of one message; none if messages wrap modulo t.
    pub message_bound: Option<u64>,
    /// The most terms (fresh ciphertexts or public messages, of either sign) that a sum may have.
    pub max_additions: u16,
    /// Marks a set for tests: it may be small, and [`PublicPolynomial::new`](super::PublicPolynomial::new) refuses it.
    pub insecure: bool,
}

/// Why a literal is no parameter set; the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// N is not a power of two in range.
    #[error("the degree {degree} is not a power of two between 2 and {MAX_DEGREE}")]
    Degree {
        /// N, the degree of the ring.
        degree: usize,
    },
    /// No prime, too many, or one twice.
    #[error("q needs 1 to {MAX_PRIMES} different primes")]
    Primes,
    /// One of the primes is not usable.
    #[error(transparent)]
    Modulus(#[from] ModulusError),
    /// t < 2, or t is not below every prime.
    #[error("the plaintext modulus {plaintext_modulus} must be at least 2 and below every prime of q")]
    PlaintextModulus {
        /// t, the modulus of a message's coefficients.
        plaintext_modulus: u64,
    },
    /// No coefficient, or more than there are.
    #[error("{used} used coefficients: choose between 1 and the degree")]
    Used {
        /// The number that was asked for.
        used: usize,
    },
    /// Errors of 0 hide nothing; ones above 127 do not fit a byte.
    #[error("the error bound {error_bound} is not between 1 and 127")]
    ErrorBound {
        /// B, the bound of every error.
        error_bound: u8,
    },
    /// Nothing may be added, or the sum of so much noise cannot be decrypted.
    #[error(
        "{additions} terms of noise at most {fresh_noise} reach half of the scale {delta}: lower the limit"
    )]
    NoiseBudget {
        /// The limit that was asked for.
        additions: u16,
        /// B·(2N + 1).
        fresh_noise: u128,
        /// Δ = ⌊q/t⌋, by which messages are scaled.
        delta: u128,
    },
    /// The sum of so many messages wraps.
    #[error("{additions} messages of at most {message_bound} reach t/2: lower the limit or raise t")]
    MessageBudget {
        /// The limit that was asked for.
        additions: u16,
        /// The bound that was asked for.
        message_bound: u64,
    },
    /// Above the standard's table, and not marked insecure.
    #[error(
        "log q = {bits} with degree {degree} and error bound {error_bound} is outside the 128-bit table: raise N, or mark the set insecure for tests"
    )]
    Security {
        /// ⌈log₂ q⌉.
        bits: u32,
        /// N, the degree of the ring.
        degree: usize,
        /// B, the bound of every error.
        error_bound: u8,
    },
}

/// A validated parameter set with its ring. Two sets are equal if all their numbers are.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameters {
    literal: ParametersLiteral,
    ring: Ring,
    q: u128,
}

impl Parameters {
    /// Checks a literal and computes the tables of its ring: O(N) products for each prime.
    ///
    /// # Errors
    /// [`ParametersError`].
    pub fn new(literal: ParametersLiteral) -> Result<Arc<Self>, ParametersError> {
        let ParametersLiteral {
            degree, plaintext_modulus, used, error_bound, max_additions: additions, ..
        } = literal;
        if !degree.is_power_of_two() || !(2..=MAX_DEGREE).contains(&degree) {
            return Err(ParametersError::Degree { degree });
        }
        let primes = &literal.primes;
        let distinct = primes.iter().enumerate().all(|(i, q)| !primes[..i].contains(q));
        if primes.is_empty() || primes.len() > MAX_PRIMES || !distinct {
            return Err(ParametersError::Primes);
        }
        let ring = Ring::new(degree, primes)?;
        // Noise is accounted for in 127 bits.
        let product = primes.iter().try_fold(1_u128, |product, &q| product.checked_mul(q.into()));
        let q = product.filter(|q| q >> 127 == 0).ok_or(ParametersError::Primes)?;
        if plaintext_modulus < 2 || primes.iter().any(|&q| q <= plaintext_modulus) {
            return Err(ParametersError::PlaintextModulus { plaintext_modulus });
        }
        if used == 0 || used > degree {
            return Err(ParametersError::Used { used });
        }
        if !(1..=127).contains(&error_bound) {
            return Err(ParametersError::ErrorBound { error_bound });
        }
        let parameters = Self { ring, q, literal };
        parameters.check_budgets(additions)?;
        parameters.check_security()?;
        Ok(Arc::new(parameters))
    }

    fn check_budgets(&self, additions: u16) -> Result<(), ParametersError> {
        let (fresh_noise, delta) = (self.fresh_noise(), self.delta());
        if additions == 0 || 2 * u128::from(additions) * fresh_noise >= delta {
            return Err(ParametersError::NoiseBudget { additions, fresh_noise, delta });
        }
        match self.literal.message_bound {
            Some(message_bound)
                if 2 * u128::from(additions) * u128::from(message_bound)
                    >= self.literal.plaintext_modulus.into() =>
            {
                Err(ParametersError::MessageBudget { additions, message_bound })
            }
            _ => Ok(()),
        }
    }

    fn check_security(&self) -> Result<(), ParametersError> {
        let (degree, error_bound) = (self.literal.degree, self.literal.error_bound);
        let bits = 128 - self.q.leading_zeros();
        let listed = STANDARD_128.iter().any(|&(n, limit)| n == degree && bits <= limit);
        if self.literal.insecure || (listed && error_bound >= LEAST_SECURE_ERROR) {
            Ok(())
        } else {
            Err(ParametersError::Security { bits, degree, error_bound })
        }
    }

    /// Confidential balances: N = 2048, one prime of 54 bits that is 1 modulo t = 2^24, eight limbs of 8 bits, B = 16,
    /// at most 4096 terms in a sum.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub fn balance() -> Result<Arc<Self>, ParametersError> {
        Self::new(Self::balance_literal())
    }

    /// `balance` over N = 64, for tests of what is built on top: **no security at all**.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub fn toy() -> Result<Arc<Self>, ParametersError> {
        Self::new(ParametersLiteral { name: "toy", degree: 64, insecure: true, ..Self::balance_literal() })
    }

    /// Products: N = 4096, two primes of 54 bits (q ≈ 2^108), t = 65537 ≡ 1 mod 2N, B = 16. Messages wrap modulo t.
    ///
    /// # Errors
    /// None in practice: the numbers are fixed.
    pub fn compute() -> Result<Arc<Self>, ParametersError> {
        Self::compute_modulo(65_537)
    }

    /// `compute` with another t, for results that several t make whole.
    ///
    /// # Errors
    /// [`ParametersError::PlaintextModulus`], [`ParametersError::NoiseBudget`].
    pub fn compute_modulo(plaintext_modulus: u64) -> Result<Arc<Self>, ParametersError> {
        Self::new(ParametersLiteral {
            name: "compute",
            degree: 4096,
            primes: vec![18_014_398_492_704_769, 18_014_398_207_492_097],
            plaintext_modulus,
            used: 4096,
            error_bound: 16,
            message_bound: None,
            max_additions: 4096,
            insecure: false,
        })
    }

    fn balance_literal() -> ParametersLiteral {
        ParametersLiteral {
            name: "balance",
            degree: 2048,
            primes: vec![18_014_398_492_704_769],
            plaintext_modulus: 1 << 24,
            used: 8,
            error_bound: 16,
            message_bound: Some(255),
            max_additions: 4096,
            insecure: false,
        }
    }

    /// The numbers of the set.
    #[must_use]
    pub const fn literal(&self) -> &ParametersLiteral {
        &self.literal
    }

    /// The ring R_q = Z_q\[X\]/(X^N + 1).
    #[must_use]
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// N, the degree of the ring.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.literal.degree
    }

    /// q < 2^127.
    #[must_use]
    pub const fn modulus(&self) -> u128 {
        self.q
    }

    /// Δ = ⌊q/t⌋.
    #[must_use]
    pub const fn delta(&self) -> u128 {
        self.q / self.literal.plaintext_modulus as u128
    }

    /// The bound B·(2N + 1) of the noise of one encryption: ‖e·u‖ and ‖e1·s‖ are at most B·N, ‖e0‖ at most B.
    /// It is reached (see `tests/noise.rs`).
    #[must_use]
    pub const fn fresh_noise(&self) -> u128 {
        self.literal.error_bound as u128 * (2 * self.literal.degree as u128 + 1)
    }

    /// What names the set in hashes: every number that encryption depends on, 8 bytes each, least significant first.
    pub(crate) fn fingerprint(&self) -> Vec<u8> {
        let ParametersLiteral { degree, primes, plaintext_modulus, used, error_bound, .. } = &self.literal;
        let numbers = [*degree as u64, *plaintext_modulus, *used as u64, u64::from(*error_bound)];
        numbers.iter().chain(primes).flat_map(|number| number.to_le_bytes()).collect()
    }
}

//! The numbers of a parameter set that the circuits depend on.

use crate::{ERROR_BOUND, LIMBS};

/// t = 2^24: limbs are centred integers of 24 bits. Three looked-up bytes say so in the circuits.
const PLAINTEXT: u64 = 1 << 24;

/// Noise that a balance may have when it is proved: −33·2^23 ≤ n < 33·2^23. Above the 4096·16·(2N + 1) that N = 2048 and
/// the limit of additions allow, and below Δ/2.
pub(crate) const NOISE_BOUND: u64 = 33 << 23;

/// q is below 2^54.
const MODULUS_BITS: u32 = 54;
/// Quotients by q are below N + 3 and looked up in 16 bits with sign.
const MAX_DEGREE: usize = 1 << 14;

/// Degree, modulus and scale of a parameter set; nothing secret. Checked once, by [`Ring::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    degree: usize,
    modulus: u64,
}

/// Numbers for which the circuits do not prove what they say; take another parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// N.
    #[error("the degree {0} is not a power of two from 16 to {MAX_DEGREE}")]
    Degree(usize),
    /// q.
    #[error("the modulus {0} is not below 2^{MODULUS_BITS}, or leaves no room for the noise of a balance")]
    Modulus(u64),
}

impl Ring {
    /// The set of balances: N = 2048, q = 2^54 − 2^24 + 1.
    pub const BALANCE: Self = Self { degree: 2048, modulus: 18_014_398_492_704_769 };

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`RingError`].
    pub const fn new(degree: usize, modulus: u64) -> Result<Self, RingError> {
        if !degree.is_power_of_two() || degree < 2 * LIMBS || degree > MAX_DEGREE {
            return Err(RingError::Degree(degree));
        }
        // 2·NOISE_BOUND < Δ: two noises differ by less than Δ.
        if modulus >> MODULUS_BITS != 0 || modulus / PLAINTEXT <= 2 * NOISE_BOUND {
            return Err(RingError::Modulus(modulus));
        }
        Ok(Self { degree, modulus })
    }

    /// N, the number of coefficients.
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// q, the modulus of the coefficients.
    pub const fn modulus(&self) -> u64 {
        self.modulus
    }

    /// t, the modulus of a limb.
    pub const fn plaintext(&self) -> u64 {
        PLAINTEXT
    }

    /// Δ = ⌊q/t⌋.
    pub const fn delta(&self) -> u64 {
        self.modulus / PLAINTEXT
    }

    /// Bits of q: the width of a packed coefficient.
    pub const fn modulus_bits(&self) -> u32 {
        u64::BITS - self.modulus.leading_zeros()
    }

    /// Noise of a fresh ciphertext at most: |e·u + e1·s + e0| ≤ 16·(2N + 1).
    pub const fn fresh_noise(&self) -> u64 {
        ERROR_BOUND as u64 * (2 * self.degree as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use ark_ff::{BigInt, PrimeField};

    use super::*;
    use crate::Fr;
    use crate::gadgets::encryption::{PACKING_BITS, RECIPIENTS_MAX};
    use crate::gadgets::polynomial::QUOTIENT_BYTES;

    /// Additions that a ciphertext may be the sum of: the rule of the state.
    const ADDITIONS: u64 = 4096;

    /// Most that the two sides of an equation may differ by, in absolute value, for any witness whose looked-up values are
    /// in range: the sum of the bounds of its terms. The last equation concerns sums of limbs, the others coefficients.
    fn bounds(ring: &Ring) -> [(&'static str, u128); 4] {
        let (n, q, delta) = (ring.degree as u128, u128::from(ring.modulus), u128::from(ring.delta()));
        let word = 1u128 << 64;
        let error = ERROR_BOUND as u128;
        // A coefficient modulo X^N + 1 has N terms, each a coefficient below q times −1, 0 or 1.
        let product = n * (q - 1);
        let quotient = q << (8 * QUOTIENT_BYTES - 1);
        let limb = u128::from(PLAINTEXT / 2);
        [
            ("x·w + e − y = q·k modulo X^N + 1", product + error + q + quotient),
            ("c0 = P + e0 + Δ·v − q·k", word + product + error + delta * 255 + quotient),
            ("c0 + P = Δ·m + n + q·k", word + product + delta * limb + u128::from(NOISE_BOUND) + quotient),
            ("Σ m_j·2^(8j) = amount + fee + remainder", limb * (word / 255) + 3 * word),
        ]
    }

    #[test]
    fn what_holds_modulo_r_holds_over_the_integers() {
        let largest = Ring::new(MAX_DEGREE, (1 << MODULUS_BITS) - 1).unwrap();
        for ring in [Ring::BALANCE, largest] {
            for (equation, bound) in bounds(&ring) {
                println!("N = {}: {equation}: below 2^{:.1}", ring.degree, (bound as f64).log2());
                assert!(bound < 1 << 80 && Fr::MODULUS_BIT_SIZE == 255, "{equation}");
            }
            // The second one is for several recipients in one: each must stay in its own 80 bits, all of them below r/2.
            let (equation, bound) = bounds(&ring)[1];
            assert!(bound < 1 << (PACKING_BITS - 1), "{equation}");
            let upper = BigInt::<4>([0, 1 << (bound.ilog2() + 1 - 64), 0, 0]);
            assert!(upper << (PACKING_BITS * (RECIPIENTS_MAX as u32 - 1) + 2) < Fr::MODULUS, "{equation}");
            // Quotients of honest provers are in their range: |x·w + …| < (N + 2)·q.
            assert!(ring.degree + 2 < 1 << (8 * QUOTIENT_BYTES - 1));
        }
        let [first, second, third, sums] = bounds(&Ring::BALANCE).map(|(_, bound)| bound.ilog2());
        assert_eq!([first, second, third, sums], [69, 69, 69, 79]);
    }

    #[test]
    fn limb_and_noise_of_a_ciphertext_are_unique() {
        let ring = Ring::BALANCE;
        assert_eq!(ring.fresh_noise(), 65_552);
        let honest = ADDITIONS * ring.fresh_noise();
        assert_eq!(honest, 268_500_992);
        assert_eq!(NOISE_BOUND, 276_824_064);
        assert!(honest < NOISE_BOUND && 2 * NOISE_BOUND < ring.delta());
        // Δ·(m − m') + (n − n') = q·(k' − k) with the left side below q: k = k', then m = m' and n = n'.
        assert!(ring.delta() * (PLAINTEXT - 1) + 2 * NOISE_BOUND < ring.modulus());
        // Limbs of a sum do not wrap.
        const { assert!(ADDITIONS * 255 < PLAINTEXT / 2) };
    }

    #[test]
    fn rings_for_which_the_circuits_prove_nothing_are_refused() {
        let q = Ring::BALANCE.modulus();
        assert_eq!(Ring::new(2048, q), Ok(Ring::BALANCE));
        for degree in [0, 8, 48, 2 * MAX_DEGREE] {
            assert_eq!(Ring::new(degree, q), Err(RingError::Degree(degree)));
        }
        let small = 2 * NOISE_BOUND * PLAINTEXT;
        for modulus in [0, small, 1 << 54, u64::MAX] {
            assert_eq!(Ring::new(2048, modulus), Err(RingError::Modulus(modulus)));
        }
        assert_eq!(Ring::BALANCE.modulus_bits(), 54);
    }
}

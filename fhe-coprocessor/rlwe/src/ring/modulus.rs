//! Arithmetic modulo one prime, without branches on the values.

/// Primes are below 2^62, so that the transform may keep values below 4·q in a word.
pub const MAX_MODULUS_BITS: u32 = 62;

/// Why a number cannot be a modulus of the ring; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModulusError {
    /// Even, below 3, or 2^62 and above.
    #[error("the modulus {modulus} is even or outside 3..2^62: choose an odd prime of at most 62 bits")]
    Range {
        /// The number that was refused.
        modulus: u64,
    },
    /// The number is not prime.
    #[error("the modulus {modulus} is not prime")]
    Composite {
        /// The number that was refused.
        modulus: u64,
    },
    /// The ring's degree does not fit it: there is no primitive 2N-th root of unity.
    #[error("the modulus {modulus} is not 1 modulo 2N = {order}: the transform of degree N does not exist")]
    NotCyclotomic {
        /// The number that was refused.
        modulus: u64,
        /// 2N, which must divide the modulus less 1.
        order: u64,
    },
}

/// An odd prime q < 2^62, with Barrett's ratio ⌊2^128 / q⌋.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modulus {
    q: u64,
    ratio_high: u64,
    ratio_low: u64,
}

/// All ones if `condition`, else zero.
#[inline(always)]
const fn mask(condition: bool) -> u64 {
    (condition as u64).wrapping_neg()
}

impl Modulus {
    /// Checks that `q` is an odd prime below 2^62. Costs twelve exponentiations.
    ///
    /// # Errors
    /// [`ModulusError::Range`], [`ModulusError::Composite`].
    pub fn new(q: u64) -> Result<Self, ModulusError> {
        if q < 3 || q.is_multiple_of(2) || q >> MAX_MODULUS_BITS != 0 {
            return Err(ModulusError::Range { modulus: q });
        }
        let ratio = u128::MAX / u128::from(q);
        let modulus = Self { q, ratio_high: (ratio >> 64) as u64, ratio_low: ratio as u64 };
        if modulus.is_prime() { Ok(modulus) } else { Err(ModulusError::Composite { modulus: q }) }
    }

    /// Miller–Rabin with the bases 2..=37, which decides every 64-bit number (Sorenson and Webster 2015).
    fn is_prime(&self) -> bool {
        let twos = (self.q - 1).trailing_zeros();
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].into_iter().filter(|base| base % self.q != 0).all(
            |base| {
                let mut power = self.pow(self.reduce(base), (self.q - 1) >> twos);
                let mut witness = power != 1 && power != self.q - 1;
                for _ in 1..twos {
                    power = self.mul(power, power);
                    witness &= power != self.q - 1;
                }
                !witness
            },
        )
    }

    /// q, the modulus itself.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.q
    }

    /// ⌈log₂ q⌉: the width of a packed coefficient.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        64 - self.q.leading_zeros()
    }

    /// x − q if x ≥ q, for x < 2q.
    #[inline(always)]
    pub(crate) const fn reduce_once(&self, x: u64) -> u64 {
        let reduced = x.wrapping_sub(self.q);
        reduced.wrapping_add(self.q & mask(x < self.q))
    }

    /// x + y, for x, y < q.
    #[inline(always)]
    #[must_use]
    pub const fn add(&self, x: u64, y: u64) -> u64 {
        self.reduce_once(x + y)
    }

    /// x − y, for x, y < q.
    #[inline(always)]
    #[must_use]
    pub const fn sub(&self, x: u64, y: u64) -> u64 {
        self.reduce_once(x + self.q - y)
    }

    /// −x, for x < q.
    #[inline(always)]
    #[must_use]
    pub const fn neg(&self, x: u64) -> u64 {
        self.sub(0, x)
    }

    /// x mod q for any x < 2^128, by Barrett: six word products.
    ///
    /// ⌊x·⌊2^128/q⌋ / 2^128⌋ is ⌊x/q⌋ or one less, because x/q − x·⌊2^128/q⌋/2^128 < x/2^128 < 1.
    #[inline(always)]
    #[must_use]
    pub const fn reduce_wide(&self, x: u128) -> u64 {
        let (high, low) = ((x >> 64) as u64, x as u64);
        let carry = ((low as u128) * (self.ratio_low as u128)) >> 64;
        let first = (low as u128) * (self.ratio_high as u128);
        let second = (high as u128) * (self.ratio_low as u128);
        let middle = carry + (first as u64 as u128) + (second as u64 as u128);
        let quotient = high
            .wrapping_mul(self.ratio_high)
            .wrapping_add((first >> 64) as u64)
            .wrapping_add((second >> 64) as u64)
            .wrapping_add((middle >> 64) as u64);
        self.reduce_once(low.wrapping_sub(quotient.wrapping_mul(self.q)))
    }

    /// x mod q for any word.
    #[inline(always)]
    #[must_use]
    pub const fn reduce(&self, x: u64) -> u64 {
        self.reduce_wide(x as u128)
    }

    /// x·y, for x, y < q.
    #[inline(always)]
    #[must_use]
    pub const fn mul(&self, x: u64, y: u64) -> u64 {
        self.reduce_wide((x as u128) * (y as u128))
    }

    /// x^exponent; time depends on the exponent, which is public.
    #[must_use]
    pub const fn pow(&self, mut x: u64, mut exponent: u64) -> u64 {
        let mut result = 1;
        while exponent != 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, x);
            }
            x = self.mul(x, x);
            exponent >>= 1;
        }
        result
    }

    /// x^(−1) = x^(q−2); 0 for 0.
    #[must_use]
    pub const fn inverse(&self, x: u64) -> u64 {
        self.pow(x, self.q - 2)
    }

    /// The residue of a signed number with |x| < q.
    #[inline(always)]
    #[must_use]
    pub const fn lift(&self, x: i64) -> u64 {
        (x as u64).wrapping_add(self.q & ((x >> 63) as u64))
    }

    /// The representative in [−(q−1)/2, (q−1)/2], for x < q.
    #[inline(always)]
    #[must_use]
    pub const fn centre(&self, x: u64) -> i64 {
        x.wrapping_sub(self.q & mask(x > self.q / 2)) as i64
    }

    /// Shoup's companion ⌊w·2^64 / q⌋ of a constant factor w < q.
    pub(crate) const fn shoup(&self, w: u64) -> u64 {
        (((w as u128) << 64) / (self.q as u128)) as u64
    }

    /// x·w mod q, in [0, 2q), for any word x.
    #[inline(always)]
    pub(crate) const fn mul_shoup_lazy(&self, x: u64, w: u64, companion: u64) -> u64 {
        let quotient = (((x as u128) * (companion as u128)) >> 64) as u64;
        x.wrapping_mul(w).wrapping_sub(quotient.wrapping_mul(self.q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q: u64 = 18_014_398_492_704_769;

    #[test]
    fn only_odd_primes_below_the_limit_are_moduli() {
        for good in [3, 5, 65_537, Q, (1 << 61) - 1] {
            assert_eq!(Modulus::new(good).unwrap().value(), good);
        }
        for bad in [0, 1, 2, 4, 1 << 62, u64::MAX] {
            assert_eq!(Modulus::new(bad), Err(ModulusError::Range { modulus: bad }));
        }
        // A Carmichael number, a strong pseudoprime to the bases 2, 3, 5 and 7, and a square.
        for bad in [561, 3_215_031_751, 65_537 * 65_537] {
            assert_eq!(Modulus::new(bad), Err(ModulusError::Composite { modulus: bad }));
        }
    }

    #[test]
    fn reduction_is_right_at_its_edges() {
        for q in [3, 65_537, Q, 4_611_686_018_427_387_847] {
            let modulus = Modulus::new(q).unwrap();
            let wide = u128::from(q);
            for x in
                [0, 1, wide - 1, wide, wide + 1, wide * wide - 1, wide * wide, u128::MAX, u128::MAX - wide]
            {
                assert_eq!(u128::from(modulus.reduce_wide(x)), x % wide, "{x} mod {q}");
            }
            for x in [-1, 0, 1, (q / 2) as i64, -((q / 2) as i64)] {
                assert_eq!(modulus.centre(modulus.lift(x)), x);
            }
            assert_eq!(modulus.mul(q - 1, modulus.inverse(q - 1)), 1);
            assert_eq!(modulus.neg(0), 0);
        }
    }
}

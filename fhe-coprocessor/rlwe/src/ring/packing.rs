//! The one canonical form of residues: fixed width, least significant bit first, padding zero.

use super::Modulus;

/// Why bytes are no canonical encoding; the sender's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter or longer than the one length there is.
    #[error(
        "the encoding has {found} bytes and must have {expected}: it belongs to other parameters or is cut"
    )]
    Length {
        /// Bytes that the parameters ask for.
        expected: usize,
        /// How many bytes were given.
        found: usize,
    },
    /// A coefficient is not reduced.
    #[error("coefficient {index} is not below its modulus: encode the reduced residue")]
    Coefficient {
        /// Which coefficient it is, from 0.
        index: usize,
    },
    /// Bits after the last coefficient are set.
    #[error("padding bits after the last coefficient are not zero")]
    Padding,
    /// More additions than the parameters allow.
    #[error("the counter says {count} additions and the limit is {limit}")]
    Counter {
        /// The counter that was given.
        count: u16,
        /// The most terms by the parameters.
        limit: u16,
    },
    /// A noise bound with which nothing can be decrypted, or an unknown depth.
    #[error("the noise bound or the depth of the ciphertext is out of range")]
    Noise,
}

/// ⌈count·bits / 8⌉.
#[must_use]
pub const fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends `values`, each below 2^`bits`, `bits` ≤ 64, lowest bit first: value i takes the bits i·`bits` and up.
pub fn pack(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    out.reserve(packed_bytes(values.len(), bits));
    // Fewer than 64 bits wait, so that with a value they fit.
    let (mut pool, mut filled) = (0_u128, 0);
    for &value in values {
        debug_assert!(bits == 64 || value >> bits == 0, "the value fits its width");
        pool |= u128::from(value) << filled;
        filled += bits;
        if filled >= u64::BITS {
            out.extend_from_slice(&(pool as u64).to_le_bytes());
            pool >>= u64::BITS;
            filled -= u64::BITS;
        }
    }
    out.extend_from_slice(&(pool as u64).to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Reads `count` residues of the width of `modulus`. Costs a comparison for each.
///
/// # Errors
/// [`DecodeError::Length`], [`DecodeError::Coefficient`], [`DecodeError::Padding`].
pub fn unpack(bytes: &[u8], count: usize, modulus: &Modulus) -> Result<Vec<u64>, DecodeError> {
    let bits = modulus.bits();
    let expected = packed_bytes(count, bits);
    if bytes.len() != expected {
        return Err(DecodeError::Length { expected, found: bytes.len() });
    }
    let mut values = Vec::with_capacity(count);
    let (mut pool, mut filled) = (0_u128, 0);
    let mut words = bytes.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    });
    for index in 0..count {
        if filled < bits {
            // The length was checked: there is a word, the last one filled up with zeros.
            pool |= u128::from(words.next().unwrap_or(0)) << filled;
            filled += u64::BITS;
        }
        let value = (pool as u64) & ((1 << bits) - 1);
        if value >= modulus.value() {
            return Err(DecodeError::Coefficient { index });
        }
        values.push(value);
        pool >>= bits;
        filled -= bits;
    }
    if pool != 0 { Err(DecodeError::Padding) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const Q: u64 = 18_014_398_492_704_769;

    fn modulus() -> Modulus {
        Modulus::new(Q).unwrap()
    }

    #[test]
    fn eight_coefficients_of_54_bits_fill_54_bytes_lowest_bit_first() {
        let mut bytes = Vec::new();
        pack(&[1, 1, 0, 0, 0, 0, 0, Q - 1], 54, &mut bytes);
        assert_eq!(bytes.len(), 54);
        assert_eq!((bytes[0], bytes[6]), (1, 1 << 6));
        assert_eq!(unpack(&bytes, 8, &modulus()).unwrap(), [1, 1, 0, 0, 0, 0, 0, Q - 1]);
    }

    #[test]
    fn each_other_form_has_its_error() {
        let mut bytes = Vec::new();
        pack(&[1, Q - 1, 3], 54, &mut bytes);
        assert_eq!(bytes.len(), 21);
        assert_eq!(unpack(&bytes[1..], 3, &modulus()), Err(DecodeError::Length { expected: 21, found: 20 }));
        let mut padded = bytes.clone();
        padded[20] |= 0x80;
        assert_eq!(unpack(&padded, 3, &modulus()), Err(DecodeError::Padding));
        let mut raised = Vec::new();
        pack(&[1, Q, 3], 54, &mut raised);
        assert_eq!(unpack(&raised, 3, &modulus()), Err(DecodeError::Coefficient { index: 1 }));
        assert_eq!(unpack(&[], 0, &modulus()), Ok(vec![]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(2), ..Default::default() })]
        #[test]
        fn what_decodes_encodes_to_the_same_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..12, prime in 0_usize..3,
        ) {
            let modulus = Modulus::new([Q, 65_537, 3][prime]).unwrap();
            if let Ok(values) = unpack(&bytes, count, &modulus) {
                let mut again = Vec::new();
                pack(&values, modulus.bits(), &mut again);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn residues_survive(values in prop::collection::vec(0..Q, 0..40)) {
            let mut bytes = Vec::new();
            pack(&values, 54, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_bytes(values.len(), 54));
            prop_assert_eq!(unpack(&bytes, values.len(), &modulus()).unwrap(), values);
        }
    }
}

//! Exact sampling from SHAKE256 streams.
//!
//! Rejection makes the number of bytes read depend on rejected bytes only, never on what is kept.

use sha3::Shake256;
use sha3::digest::{ExtendableOutput, Update, XofReader};
use zeroize::Zeroizing;

use crate::ring::Modulus;

/// Bytes squeezed at a time: the rate of SHAKE256.
const BLOCK_BYTES: usize = 136;

/// A stream named by a domain tag and the parts hashed under it.
pub(crate) struct Xof {
    reader: <Shake256 as ExtendableOutput>::Reader,
    block: Zeroizing<[u8; BLOCK_BYTES]>,
    used: usize,
}

impl Xof {
    /// SHAKE256(len(tag) as a byte ‖ tag ‖ for each part: its length as 8 bytes, least significant first ‖ part).
    pub(crate) fn new(tag: &[u8], parts: &[&[u8]]) -> Self {
        let mut hash = Shake256::default();
        hash.update(&[tag.len() as u8]);
        hash.update(tag);
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self { reader: hash.finalize_xof(), block: Zeroizing::new([0; BLOCK_BYTES]), used: BLOCK_BYTES }
    }

    fn byte(&mut self) -> u8 {
        if self.used == BLOCK_BYTES {
            self.reader.read(&mut *self.block);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// The next bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = self.byte());
    }

    /// `count` numbers uniform in −`bound`..=`bound`, `bound` ≤ 127: the next byte below the largest multiple of the
    /// number of values, modulo that number.
    pub(crate) fn small(&mut self, count: usize, bound: u8) -> Zeroizing<Vec<i8>> {
        let values = 2 * u32::from(bound) + 1;
        let limit = 256 / values * values;
        // ⌊byte/values⌋ without a division, whose time could depend on the byte: exact, as the rounding of the
        // reciprocal moves the quotient by less than 2^8/2^16 < 1/values.
        let reciprocal = (1_u32 << 16).div_ceil(values);
        let mut numbers = Zeroizing::new(Vec::with_capacity(count));
        while numbers.len() < count {
            let byte = u32::from(self.byte());
            if byte < limit {
                let quotient = (byte * reciprocal) >> 16;
                numbers.push(((byte - quotient * values) as i16 - i16::from(bound)) as i8);
            }
        }
        numbers
    }

    /// `count` numbers uniform in 0..=`largest`: the next 16 bytes, least significant first, cut to the width of
    /// `largest`, if not above it.
    pub(crate) fn wide(&mut self, count: usize, largest: u128) -> Zeroizing<Vec<u128>> {
        let mask = u128::MAX.checked_shr(largest.leading_zeros()).unwrap_or(0);
        let mut numbers = Zeroizing::new(Vec::with_capacity(count));
        while numbers.len() < count {
            let number = u128::from_le_bytes(std::array::from_fn(|_| self.byte())) & mask;
            if number <= largest {
                numbers.push(number);
            }
        }
        numbers
    }

    /// `count` residues uniform below the prime: the next 8 bytes, least significant first, cut to its width, if below.
    pub(crate) fn residues(&mut self, count: usize, modulus: &Modulus) -> Vec<u64> {
        let mut residues = Vec::with_capacity(count);
        while residues.len() < count {
            let word = u64::from_le_bytes(std::array::from_fn(|_| self.byte()));
            let residue = word & ((1 << modulus.bits()) - 1);
            if residue < modulus.value() {
                residues.push(residue);
            }
        }
        residues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_in_their_range() {
        for bound in [1_u8, 16, 127] {
            let count = 200 * (2 * usize::from(bound) + 1);
            let numbers = Xof::new(b"test", &[&[bound]]).small(count, bound);
            assert_eq!(numbers.len(), count);
            for value in -(bound as i16)..=i16::from(bound) {
                let seen = numbers.iter().filter(|&&number| i16::from(number) == value).count();
                // 200 expected: six standard deviations either way.
                assert!((115..=285).contains(&seen), "{value} of ±{bound}: {seen}");
            }
        }
    }

    #[test]
    fn wide_numbers_reach_every_value_up_to_the_largest_and_none_above() {
        for largest in [0_u128, 1, 4, 6] {
            let numbers = Xof::new(b"test", &[]).wide(400, largest);
            assert!((0..=largest).all(|value| numbers.contains(&value)));
            assert!(numbers.iter().all(|&number| number <= largest));
        }
        let numbers = Xof::new(b"test", &[]).wide(100, u128::MAX);
        assert!(numbers.iter().any(|number| number >> 127 == 1));
    }

    #[test]
    fn every_byte_is_reduced_right() {
        for bound in 1..=127_u32 {
            let values = 2 * bound + 1;
            let reciprocal = (1_u32 << 16).div_ceil(values);
            assert!((0..256).all(|byte| (byte * reciprocal) >> 16 == byte / values));
        }
    }

    #[test]
    fn tags_and_parts_make_different_streams() {
        let stream = |tag: &[u8], parts: &[&[u8]]| Xof::new(tag, parts).small(40, 16).to_vec();
        let all = [
            stream(b"a", &[]),
            stream(b"ab", &[]),
            stream(b"a", &[b"b"]),
            stream(b"a", &[b""]),
            stream(b"a", &[b"bc"]),
            stream(b"a", &[b"b", b"c"]),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other != one));
        }
    }
}

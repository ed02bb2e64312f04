//! Recoding of public exponents of GT for the kernels.
//!
//! In GT the p-power Frobenius is exponentiation by x = −|x|, so an exponent becomes four digits of 64 bits in base |x|.
//! Each position of a digit gets a *code*: 0, or the number of a table's entry plus one, negative for its inverse.

/// |x|, x the curve parameter.
pub const X: u64 = 0xd201_0000_0001_0000;

/// Digits of an exponent in base |x|.
pub const DIGITS: usize = 4;

/// Positions of a recoded digit, for [`naf`] and [`windows`] alike: 64 bits and a carry.
pub const POSITIONS: usize = 65;

/// Entries of a table for [`naf`]: base^1, base^3, base^5, base^7.
pub const NAF_ENTRIES: u32 = 4;

/// Entries of a table for [`windows`]: base^1 … base^8.
pub const WINDOW_ENTRIES: u32 = 8;

const WINDOW_BITS: u32 = 4;

/// k = d₀ + d₁·|x| + d₂·|x|² + d₃·|x|³ for k below r, little-endian limbs; variable time.
pub fn base_x(k: [u64; 4]) -> [u64; DIGITS] {
    let mut limbs = k;
    std::array::from_fn(|_| {
        let mut remainder = 0;
        for limb in limbs.iter_mut().rev() {
            let value = u128::from(remainder) << 64 | u128::from(*limb);
            *limb = (value / u128::from(X)) as u64; // below 2^64, as the remainder is below |x|
            remainder = (value % u128::from(X)) as u64;
        }
        remainder
    })
}

/// Codes in non-adjacent form of width 4 over odd powers, the lowest position first, those of digit j in byte j: for
/// elements that share the exponent. 13 nonzero codes a digit on average.
pub fn naf(digits: [u64; DIGITS]) -> [u32; POSITIONS] {
    let mut words = [0; POSITIONS];
    for (j, digit) in digits.into_iter().enumerate() {
        let mut rest = u128::from(digit);
        for word in &mut words {
            if rest & 1 == 1 {
                let low = (rest & 15) as i8;
                let value = if low >= 8 { low - 16 } else { low };
                rest = rest.wrapping_add_signed(-i128::from(value));
                put(word, j, value.signum() * (value.abs() / 2 + 1));
            }
            rest >>= 1;
        }
    }
    words
}

/// Codes in signed windows of 4 bits over all powers up to the eighth, which stand at every fourth position whatever
/// the exponent: for elements with different exponents. Layout as in [`naf`].
pub fn windows(digits: [u64; DIGITS]) -> [u32; POSITIONS] {
    let mut words = [0; POSITIONS];
    for (j, digit) in digits.into_iter().enumerate() {
        let mut carry = 0;
        for (i, word) in words.iter_mut().step_by(WINDOW_BITS as usize).enumerate() {
            let bits = digit.checked_shr(WINDOW_BITS * i as u32).unwrap_or(0) & 15;
            let window = bits as i8 + carry;
            carry = i8::from(window > 8);
            put(word, j, window - (carry << WINDOW_BITS));
        }
    }
    words
}

/// Codes for a fixed-base table of `window_bits` (2 to 16): for each digit its windows from the lowest, signed but for
/// the last.
///
/// # Panics
/// With another width.
pub fn comb(digits: [u64; DIGITS], window_bits: u32) -> Vec<i32> {
    assert!((2..=16).contains(&window_bits), "windows of 2 to 16 bits");
    let rows = u64::BITS.div_ceil(window_bits);
    let half = 1 << (window_bits - 1);
    let mut codes = Vec::with_capacity(DIGITS * rows as usize);
    for digit in digits {
        let mut carry = 0;
        for row in 0..rows {
            let bits = (digit >> (window_bits * row)) as i32 & ((1 << window_bits) - 1);
            let window = bits + carry;
            carry = i32::from(window > half && row + 1 < rows);
            codes.push(window - (carry << window_bits));
        }
    }
    codes
}

fn put(word: &mut u32, digit: usize, code: i8) {
    *word |= u32::from(code as u8) << (8 * digit);
}

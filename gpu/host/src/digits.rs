//! Twiddles as the kernels of G1 walk them: signed digits at binary positions, the lowest first.

use blindfold_bte::accelerator::Twiddle;

/// Binary positions of a recoded half of a scalar.
pub const POSITIONS: usize = 129;

/// Halves of a scalar.
pub const HALVES: usize = 2;

/// Width of both forms: eight multiples of a point in a table.
const SPARSE_BITS: u32 = 5;
const ALIGNED_BITS: u32 = 4;

/// Where digits stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Non-adjacent form of width 5, odd digits up to ±15: fewest, for threads of a warp that share the scalar.
    Sparse,
    /// From −8 to 8 at every fourth position, whatever the scalar: for threads that do not.
    Aligned,
}

/// \[twiddle\]\[position\]\[half\].
pub fn point_digits(twiddles: &[Twiddle], form: Form) -> Vec<i8> {
    let mut out = vec![0; twiddles.len() * POSITIONS * HALVES];
    for (twiddle, out) in twiddles.iter().zip(out.chunks_exact_mut(POSITIONS * HALVES)) {
        for (half, number) in twiddle.halves.into_iter().enumerate() {
            let mut put = |position: usize, digit: i8| out[position * HALVES + half] = digit;
            match form {
                Form::Sparse => sparse(number, &mut put),
                Form::Aligned => aligned(number, &mut put),
            }
        }
    }
    out
}

/// Of a number below x² < 2^127.5.
fn sparse(number: u128, put: &mut impl FnMut(usize, i8)) {
    let (mut rest, mut position) = (number, 0);
    while rest != 0 {
        let zeros = rest.trailing_zeros();
        (rest, position) = (rest >> zeros, position + zeros as usize);
        let low = (rest & ((1 << SPARSE_BITS) - 1)) as i8;
        let digit = if low < 1 << (SPARSE_BITS - 1) { low } else { low - (1 << SPARSE_BITS) };
        rest = rest.wrapping_add_signed(-i128::from(digit));
        put(position, digit);
    }
}

fn aligned(number: u128, put: &mut impl FnMut(usize, i8)) {
    let mut carry = 0;
    for position in (0..POSITIONS).step_by(ALIGNED_BITS as usize) {
        let bits = number.checked_shr(position as u32).unwrap_or(0) & ((1 << ALIGNED_BITS) - 1);
        let window = bits as i8 + carry;
        carry = i8::from(window > 1 << (ALIGNED_BITS - 1));
        put(position, window - (carry << ALIGNED_BITS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x².
    const X_SQUARED: u128 = 0xd201_0000_0001_0000 * 0xd201_0000_0001_0000;

    fn recombined(digits: &[i8], half: usize) -> u128 {
        let terms = digits.iter().skip(half).step_by(HALVES).enumerate();
        // Modulo 2^128, which the number is below.
        terms.fold(0, |sum, (position, digit)| {
            let term = (i128::from(*digit) as u128).checked_shl(position as u32).unwrap_or(0);
            sum.wrapping_add(term)
        })
    }

    #[test]
    fn digits_add_up() {
        let mut number = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834u128;
        for i in 0..200 {
            number = number.wrapping_mul(0x2545_f491_4f6c_dd1d_2545_f491_4f6c_dd1d).wrapping_add(i);
            let halves = [number % X_SQUARED, X_SQUARED - 1 - (number >> (i % 128)) % 9];
            for form in [Form::Sparse, Form::Aligned] {
                let twiddle = Twiddle { halves, digits: [0; 4] };
                let digits = point_digits(&[Twiddle { halves: [0; 2], ..twiddle }, twiddle], form);
                let (zeros, digits) = digits.split_at(POSITIONS * HALVES);
                assert!(zeros.iter().all(|digit| *digit == 0));
                assert_eq!([0, 1].map(|half| recombined(digits, half)), halves);
                for (place, digit) in digits.iter().enumerate().filter(|(_, digit)| **digit != 0) {
                    match form {
                        Form::Sparse => assert!(digit % 2 != 0 && digit.unsigned_abs() < 16),
                        Form::Aligned => {
                            assert!(digit.unsigned_abs() <= 8 && (place / HALVES).is_multiple_of(4))
                        }
                    }
                }
            }
        }
    }
}

//! The commitment to an account's secret: Poseidon over F_r.
//!
//! Poseidon (Grassi and others, ePrint 2019/458) with S-box x^5, state of 9 elements (capacity 1, rate 8), 8 full and 57
//! partial rounds, which is what the paper's script gives for this width, this field and 128 bits, margin included.
//! Constants by the reference's Grain generator; the sponge is arkworks'. The wide state is for few rows: a ternary
//! secret of 2048 coefficients is 13 elements, with the tag two permutations.
//!
//! The commitment hides as the hash does: a secret has more than 2^3000 values, and no blinding is added.

use std::sync::OnceLock;

use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, PoseidonSponge, find_poseidon_ark_and_mds};
use ark_crypto_primitives::sponge::{CryptographicSponge, FieldBasedCryptographicSponge};
use ark_ff::PrimeField;

use crate::{Fr, tags};

const FULL_ROUNDS: usize = 8;
const PARTIAL_ROUNDS: usize = 57;
const RATE: usize = 8;
const CAPACITY: usize = 1;
/// Exponent of the S-box.
const ALPHA: u64 = 5;

/// Ternary coefficients in one field element: 3^160 < r.
pub(crate) const TRITS: usize = 160;

/// The parameters, generated at first use.
pub(crate) fn config() -> &'static PoseidonConfig<Fr> {
    static CONFIG: OnceLock<PoseidonConfig<Fr>> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let bits = u64::from(Fr::MODULUS_BIT_SIZE);
        let (full, partial) = (FULL_ROUNDS as u64, PARTIAL_ROUNDS as u64);
        let (ark, mds) = find_poseidon_ark_and_mds::<Fr>(bits, RATE, full, partial, 0);
        PoseidonConfig::new(FULL_ROUNDS, PARTIAL_ROUNDS, ALPHA, mds, ark, RATE, CAPACITY)
    })
}

/// The first element absorbed: separates this use of Poseidon from any other, and secrets of one length from those of
/// another.
pub(crate) fn tag(degree: usize) -> Fr {
    Fr::from_be_bytes_mod_order(&[tags::SECRET_COMMITMENT, &(degree as u64).to_be_bytes()].concat())
}

/// Poseidon of a ternary secret: of its coefficients plus one, 160 to an element as digits base 3, lowest first. Two
/// permutations for N = 2048.
pub fn secret_commitment(secret: &[i8]) -> Fr {
    let mut sponge = PoseidonSponge::new(config());
    sponge.absorb(&tag(secret.len()));
    for digits in secret.chunks(TRITS) {
        let packed = digits
            .iter()
            .rev()
            .fold(Fr::from(0u64), |sum, digit| sum * Fr::from(3u64) + Fr::from(i64::from(*digit) + 1));
        sponge.absorb(&packed);
    }
    sponge.squeeze_native_field_elements(1)[0]
}

#[cfg(test)]
mod tests {
    use ark_ff::{BigInt, BigInteger};

    use super::*;

    #[test]
    fn digits_of_a_secret_fill_an_element_without_wrapping() {
        // log2(3^160) = 253.6 and r > 2^254.
        let mut power = BigInt::<4>::from(1u64);
        for _ in 0..TRITS {
            let single = power;
            assert!(!power.mul2() && !power.add_with_carry(&single));
        }
        assert!(power < Fr::MODULUS);
        let mut one = vec![0; 2048];
        one[0] = 1;
        let commitments = [vec![0; 2048], one, vec![0; 1024]].map(|secret| secret_commitment(&secret));
        assert!(commitments[0] != commitments[1] && commitments[0] != commitments[2]);
    }
}

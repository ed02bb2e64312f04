//! Amounts as eight limbs of 8 bits, limb j in coefficient j, so that sums of ciphertexts are sums of amounts.
//!
//! Limbs of a sum are signed and carry nothing: after subtractions a limb may be negative, and the balance is
//! Σ m_j·2^(8j) over the integers. A sum of at most 4096 terms has |m_j| ≤ 4096·255 < 2^20, far below t/2 = 2^23.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::rlwe::{
    Ciphertext, EncryptError, EncryptionWitness, MultiCiphertext, OpenError, PublicKey, PublicPolynomial,
    SecretKey,
};

/// How many limbs an amount has.
pub const LIMBS: usize = 8;
/// How many bits of the amount a limb holds.
pub const LIMB_BITS: u32 = 8;

/// Why a ciphertext holds no balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BalanceError {
    /// The ciphertext did not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Not eight limbs, or one beyond 2^32: not a message of this scheme.
    #[error("a balance has {LIMBS} limbs below 2^32: the parameters are not those of balances")]
    Limbs,
    /// More was taken than was there; no proven transfer does that.
    #[error("the balance is negative: a debit without a valid proof was applied")]
    Negative,
    /// 2^64 or more; the supply is smaller.
    #[error("the balance is 2^64 or more, beyond the supply: a credit without a valid proof was applied")]
    Overflow,
}

/// The limbs of an amount, least significant first.
#[must_use]
pub fn limbs(amount: u64) -> [i64; LIMBS] {
    amount.to_le_bytes().map(i64::from)
}

/// Σ m_j·2^(8j), signed: a sum that is not yet a balance.
///
/// # Errors
/// [`BalanceError::Limbs`].
pub fn value(limbs: &[i64]) -> Result<i128, BalanceError> {
    if limbs.len() != LIMBS || limbs.iter().any(|m| m.unsigned_abs() >> 32 != 0) {
        return Err(BalanceError::Limbs);
    }
    // Below 2^(32 + 56 + 1).
    Ok(limbs.iter().rev().fold(0, |sum, &m| (sum << LIMB_BITS) + i128::from(m)))
}

/// [`value`] as an amount.
///
/// # Errors
/// [`BalanceError::Limbs`], [`BalanceError::Negative`], [`BalanceError::Overflow`].
pub fn balance(limbs: &[i64]) -> Result<u64, BalanceError> {
    let value = value(limbs)?;
    if value < 0 {
        return Err(BalanceError::Negative);
    }
    u64::try_from(value).map_err(|_| BalanceError::Overflow)
}

/// Encrypts one amount to several recipients; the witness is what a prover needs.
///
/// # Errors
/// [`EncryptError`].
pub fn encrypt(
    public: &PublicPolynomial,
    recipients: &[&PublicKey],
    amount: u64,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<(MultiCiphertext, EncryptionWitness), EncryptError> {
    let message = Zeroizing::new(limbs(amount));
    let witness = EncryptionWitness::sample(public.parameters(), recipients.len(), &*message, rng)?;
    let ciphertext = witness.encrypt(public, recipients)?;
    Ok((ciphertext, witness))
}

/// The balance that a sum holds.
///
/// # Errors
/// [`BalanceError`].
pub fn decrypt(secret: &SecretKey, ciphertext: &Ciphertext) -> Result<u64, BalanceError> {
    balance(secret.open(ciphertext)?.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_of_either_sign_make_one_integer() {
        for amount in [0, 1, 255, 256, u64::MAX, 1 << 63, 0x0102_0304_0506_0708] {
            assert_eq!(balance(&limbs(amount)), Ok(amount));
        }
        let difference: Vec<i64> = limbs(1 << 40).iter().zip(limbs(1)).map(|(x, y)| x - y).collect();
        assert_eq!(balance(&difference), Ok((1 << 40) - 1));
        let negative: Vec<i64> = difference.iter().map(|m| -m).collect();
        assert_eq!(value(&negative), Ok(1 - (1 << 40)));
        assert_eq!(balance(&negative), Err(BalanceError::Negative));
        assert_eq!(balance(&[0, 0, 0, 0, 0, 0, 0, 256]), Err(BalanceError::Overflow));
        assert_eq!(balance(&[0; 7]), Err(BalanceError::Limbs));
        assert_eq!(balance(&[1 << 32, 0, 0, 0, 0, 0, 0, 0]), Err(BalanceError::Limbs));
    }
}

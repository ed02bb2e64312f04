//! Verifying a hint: encrypt again and compare.
//!
//! The hint of a well-formed ciphertext is its session key K. C fixes k, k fixes ek^k, which with D fixes K: so no
//! hint publisher, even with the user's help, can make a verifier accept anything but what honest decryption gives. Both
//! comparisons are needed; without the one on D, user and hint publisher could choose after the fact whether the
//! transaction exists. No subgroup check, decompression or random weight is involved.

use crate::comb::{generator_times, generator_times_all};
use crate::curve::{Scalar, TorusProduct};
use crate::hash::{mask, randomness};
use crate::{Ciphertext, EncryptionKey, SESSION_KEY_BYTES, SessionKey, par};

/// Why a hint was refused: whoever published it is at fault (or the ciphertext is malformed and has no hint).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// \[k\]₁ is not the header C.
    #[error("the hint does not re-encrypt to the ciphertext's header")]
    Header,
    /// K ⊕ SHA-256(KEM ‖ ek^k) is not D.
    #[error("the hint does not re-encrypt to the ciphertext's masked key")]
    MaskedKey,
}

/// A hint with what it is verified against: associated data, ciphertext, hint.
pub type HintItem<'a> = (&'a [u8; 32], &'a Ciphertext, &'a SessionKey);

/// Items that share one field inversion.
const CHUNK_ITEMS: usize = 64;

/// Recovers M and k from K.
pub(crate) fn message_and_randomness(ad: &[u8; 32], e: &[u8], key: &SessionKey) -> (Vec<u8>, Scalar) {
    let message = key.message(ad, e);
    let k = randomness(key.as_bytes(), ad, &message);
    (message, k)
}

impl EncryptionKey {
    /// Verifies `hint` against the ciphertext and returns the message. Deterministic; two fixed-base exponentiations plus hashing.
    ///
    /// # Errors
    /// [`HintError`].
    pub fn open_hint(
        &self,
        ad: &[u8; 32],
        ciphertext: &Ciphertext,
        hint: &SessionKey,
    ) -> Result<Vec<u8>, HintError> {
        let (message, k) = message_and_randomness(ad, &ciphertext.e, hint);
        if generator_times(&k).to_affine().encode() != ciphertext.c {
            return Err(HintError::Header);
        }
        check_masked_key(ciphertext, hint, &mask(&self.product_public(&k).quotient()))?;
        Ok(message)
    }

    /// Verifies many hints, in parallel on the current pool, one result each in order.
    pub fn open_hints(&self, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        par::map_chunks(items, CHUNK_ITEMS, |items| self.open_chunk(items))
    }

    fn open_chunk(&self, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        let recovered =
            items.iter().map(|(ad, ciphertext, hint)| message_and_randomness(ad, &ciphertext.e, hint));
        let (messages, scalars): (Vec<_>, Vec<_>) = recovered.unzip();
        let headers = generator_times_all(&scalars);
        let blindings = TorusProduct::quotients(&self.products_public(&scalars));
        let checked = items.iter().zip(messages).zip(headers.iter().zip(&blindings));
        checked
            .map(|(((_, ciphertext, hint), message), (header, blinding))| {
                if header.encode() != ciphertext.c {
                    return Err(HintError::Header);
                }
                check_masked_key(ciphertext, hint, &mask(blinding))?;
                Ok(message)
            })
            .collect()
    }
}

/// Is D what `hint` is masked to by the pad of ek^k?
pub(crate) fn check_masked_key(
    ciphertext: &Ciphertext,
    hint: &SessionKey,
    pad: &[u8; SESSION_KEY_BYTES],
) -> Result<(), HintError> {
    let matches = (0..pad.len()).all(|i| hint.as_bytes()[i] ^ pad[i] == ciphertext.d[i]);
    if matches { Ok(()) } else { Err(HintError::MaskedKey) }
}

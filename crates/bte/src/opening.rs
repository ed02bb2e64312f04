//! From a blinding factor z = ek^k to the plaintext, with the check that makes decryption unambiguous.

use crate::comb::generator_times;
use crate::curve::Gt;
use crate::hash::mask;
use crate::hint::message_and_randomness;
use crate::{Ciphertext, EncryptionKey, SessionKey};

/// What one ciphertext of a batch decrypts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Made by the encryption algorithm: has a hint and a message.
    WellFormed {
        /// K: its hint.
        key: SessionKey,
        /// M.
        message: Vec<u8>,
    },
    /// Not made by the encryption algorithm (or the release was wrong): decrypts to nothing.
    Malformed,
}

impl Opening {
    /// The hint, if well-formed.
    pub fn key(&self) -> Option<&SessionKey> {
        match self {
            Self::WellFormed { key, .. } => Some(key),
            Self::Malformed => None,
        }
    }
}

/// K = D ⊕ SHA-256(KEM ‖ z)\[0..16\], then M and k; well-formed iff \[k\]₁ = C and ek^k = z. The second guards against
/// a D crafted for a predicted wrong release.
pub(crate) fn open(ek: &EncryptionKey, ad: &[u8; 32], ciphertext: &Ciphertext, blinding: &Gt) -> Opening {
    let pad = mask(blinding);
    let key = SessionKey::from_bytes(std::array::from_fn(|i| ciphertext.d[i] ^ pad[i]));
    let (message, k) = message_and_randomness(ad, &ciphertext.e, &key);
    let well_formed =
        generator_times(&k).to_affine().encode() == ciphertext.c && ek.product_public(&k).is(blinding);
    if well_formed { Opening::WellFormed { key, message } } else { Opening::Malformed }
}

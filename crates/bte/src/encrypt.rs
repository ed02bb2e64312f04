//! Encryption.
//!
//! ```text
//! K = SHA-256(wallet secret ‖ ad ‖ M ‖ fresh randomness)[0..16]
//! k = SHA-256(FO ‖ 00 ‖ K ‖ ad ‖ SHA-256(M)) ‖ SHA-256(FO ‖ 01 ‖ K ‖ ad ‖ SHA-256(M)) mod r
//! C = [k]₁     D = K ⊕ SHA-256(KEM ‖ ek^k)[0..16]     E = M ⊕ stream(K, ad)
//! ```
//! K is hedged: a weak random source alone does not repeat it. k follows from K, so whoever learns K can check the
//! whole ciphertext by encrypting again. Everything that depends on K, k or ρ runs in constant time.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::comb::generator_times_secret;
use crate::curve::Scalar;
use crate::hash::{challenge, mask, randomness, sha256, stream_xor};
use crate::{Ciphertext, EncryptionKey, Proof, SESSION_KEY_BYTES, SessionKey, tags};

/// Largest message in bytes. Far above any envelope; keeps the stream counter in range.
pub const MAX_MESSAGE_BYTES: usize = 1 << 30;

/// Why a message was not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    /// Longer than [`MAX_MESSAGE_BYTES`]; the caller's fault.
    #[error("message of {0} bytes, at most {MAX_MESSAGE_BYTES} are allowed")]
    MessageTooLong(usize),
}

impl EncryptionKey {
    /// Encrypts `message` under this key and the associated data `ad` (the hash of the envelope header), and proves
    /// knowledge of the randomness. `wallet_secret` is any long-lived secret of the user; it may be empty where the
    /// random source is trusted alone. Returns the session key too: exhibiting it refutes a false claim that the
    /// ciphertext is malformed.
    ///
    /// Two fixed-base exponentiations and the proof (`blindfold bench bte` tells the time); constant-time in all secrets but the lengths.
    ///
    /// # Errors
    /// [`EncryptError`].
    pub fn encrypt(
        &self,
        ad: &[u8; 32],
        message: &[u8],
        wallet_secret: &[u8],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<(Ciphertext, Proof, SessionKey), EncryptError> {
        check_length(message)?;
        let mut fresh = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *fresh);
        let seed = Zeroizing::new(sha256(&[wallet_secret, ad, message, &*fresh]));
        let key = SessionKey::from_bytes(std::array::from_fn(|i| seed[i]));
        let (ciphertext, k) = self.encrypt_with(ad, message, &key);
        let proof = prove(ad, &ciphertext, &k, wallet_secret, rng);
        Ok((ciphertext, proof, key))
    }

    /// Encryption with a given session key: a function of its arguments alone. For conformance vectors and for
    /// whoever derives K in another way; the same K for two messages under one `ad` reveals both.
    ///
    /// # Errors
    /// [`EncryptError`].
    pub fn encrypt_deterministic(
        &self,
        ad: &[u8; 32],
        message: &[u8],
        key: &SessionKey,
    ) -> Result<Ciphertext, EncryptError> {
        check_length(message)?;
        Ok(self.encrypt_with(ad, message, key).0)
    }

    fn encrypt_with(
        &self,
        ad: &[u8; 32],
        message: &[u8],
        key: &SessionKey,
    ) -> (Ciphertext, Zeroizing<Scalar>) {
        let k = Zeroizing::new(randomness(key.as_bytes(), ad, message));
        let c = generator_times_secret(&k).to_affine().encode();
        let blinding = Zeroizing::new(self.pow_secret(&k));
        let pad = Zeroizing::new(mask(&blinding));
        let d: [u8; SESSION_KEY_BYTES] = std::array::from_fn(|i| key.as_bytes()[i] ^ pad[i]);
        let mut e = message.to_vec();
        stream_xor(key.as_bytes(), ad, &mut e);
        (Ciphertext { c, d, e }, k)
    }
}

fn check_length(message: &[u8]) -> Result<(), EncryptError> {
    match message.len() {
        length if length > MAX_MESSAGE_BYTES => Err(EncryptError::MessageTooLong(length)),
        _ => Ok(()),
    }
}

/// R = \[ρ\]₁, c = challenge, s = ρ + c·k. ρ is hedged like K: derived from k, the ciphertext and fresh randomness.
fn prove(
    ad: &[u8; 32],
    ciphertext: &Ciphertext,
    k: &Scalar,
    wallet_secret: &[u8],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Proof {
    let mut fresh = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *fresh);
    let k_bytes = Zeroizing::new(k.to_bytes());
    let mut wide = Zeroizing::new([0; 64]);
    for (half, chunk) in [0u8, 1].into_iter().zip(wide.chunks_exact_mut(32)) {
        let parts: [&[u8]; 7] =
            [tags::POK_NONCE, &[half], &*fresh, &*k_bytes, ad, &ciphertext.c, wallet_secret];
        chunk.copy_from_slice(&sha256(&parts));
    }
    let rho = Zeroizing::new(Scalar::reduce(&*wide));
    let r = generator_times_secret(&rho).to_affine().encode();
    let c = Scalar::reduce(&challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, ad, &r));
    let s = rho.add(&c.mul(k)).to_bytes();
    Proof { r, s }
}

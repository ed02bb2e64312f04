//! Encryption.
//!
//! ```text
//! K = SHA-256(wallet secret ‖ ad ‖ M ‖ fresh randomness)[0..16]
//! k = SHA-256(FO ‖ 00 ‖ K ‖ ad ‖ SHA-256(M)) ‖ SHA-256(FO ‖ 01 ‖ K ‖ ad ‖ SHA-256(M)) mod r
//! C = [k]₁     D = K ⊕ SHA-256(KEM ‖ ek^k)[0..16]     E = M ⊕ stream(K, ad)
//! ρ = SHA-256(POK-DERIVED ‖ 00 ‖ K ‖ ad ‖ SHA-256(M)) ‖ SHA-256(POK-DERIVED ‖ 01 ‖ …) mod r     proof: [ρ]₁, ρ + c·k
//! ```
//! K is hedged: a weak random source alone does not repeat it. k and ρ follow from K, so whoever learns K can check the
//! whole ciphertext by encrypting again, and has its proof, too. Everything that depends on K, k or ρ runs in constant time.

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::comb::generator_times_secret;
use crate::curve::Scalar;
use crate::hash::{challenge, mask, proof_nonce, randomness, sha256, stream_xor};
use crate::{Ciphertext, EncryptionKey, Proof, SESSION_KEY_BYTES, SessionKey};

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
        let (ciphertext, proof) = self.encrypt_deterministic(ad, message, &key)?;
        Ok((ciphertext, proof, key))
    }

    /// Encryption and proof with a given session key: a function of its arguments alone. For conformance vectors and for
    /// whoever derives K in another way; the same K for two messages under one `ad` reveals both.
    ///
    /// # Errors
    /// [`EncryptError`].
    pub fn encrypt_deterministic(
        &self,
        ad: &[u8; 32],
        message: &[u8],
        key: &SessionKey,
    ) -> Result<(Ciphertext, Proof), EncryptError> {
        check_length(message)?;
        let (ciphertext, k) = self.encrypt_with(ad, message, key);
        let rho = Zeroizing::new(proof_nonce(key.as_bytes(), ad, message));
        let proof = prove(ad, &ciphertext, &k, &rho);
        Ok((ciphertext, proof))
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

/// R = \[ρ\]₁, c = challenge, s = ρ + c·k, with the ρ that follows from K, ad and M: the proof is a function of what will
/// be opened, and nobody has to keep it beside that.
fn prove(ad: &[u8; 32], ciphertext: &Ciphertext, k: &Scalar, rho: &Scalar) -> Proof {
    let r = generator_times_secret(rho).to_affine().encode();
    let c = Scalar::reduce(&challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, ad, &r));
    let s = rho.add(&c.mul(k)).to_bytes();
    Proof { r, s }
}

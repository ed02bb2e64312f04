//! Encryption, the proof of knowledge, and the naive verification of hints.

use ark_bls12_381::{Fr, G1Projective};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::PrimeField;
use sha2::{Digest, Sha256};

use crate::encode::{self, DecodeError};
use crate::{Gt, Reference};

/// C, D, E.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ciphertext {
    /// \[k\]₁, compressed.
    pub c: [u8; 48],
    /// The masked session key.
    pub d: [u8; 16],
    /// The message under the key stream.
    pub e: Vec<u8>,
}

/// A ciphertext and its proof of knowledge (R, s).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encrypted {
    /// The ciphertext.
    pub ciphertext: Ciphertext,
    /// R, compressed.
    pub r: [u8; 48],
    /// s, big-endian.
    pub s: [u8; 32],
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// SHA-256(KEM ‖ z)[0..16].
pub(crate) fn mask(z: &Gt) -> [u8; 16] {
    let hash = hash(&[b"BLINDFOLD-V1-KEM", &encode::gt_bytes(z)]);
    std::array::from_fn(|i| hash[i])
}

pub(crate) fn randomness(key: &[u8; 16], ad: &[u8; 32], message: &[u8]) -> Fr {
    scalar(b"BLINDFOLD-V1-FO", key, ad, message)
}

/// The ρ of a derived proof of knowledge, for [`Reference::encrypt`].
pub fn derived_nonce(key: &[u8; 16], ad: &[u8; 32], message: &[u8]) -> [u8; 32] {
    encode::scalar_bytes(&scalar(b"BLINDFOLD-V1-POK-DERIVED", key, ad, message))
}

fn scalar(tag: &[u8], key: &[u8; 16], ad: &[u8; 32], message: &[u8]) -> Fr {
    let message = hash(&[message]);
    let half = |counter: u8| hash(&[tag, &[counter], key, ad, &message]);
    Fr::from_be_bytes_mod_order(&[half(0), half(1)].concat())
}

pub(crate) fn stream(key: &[u8; 16], ad: &[u8; 32], data: &[u8]) -> Vec<u8> {
    let blocks = data.chunks(32).zip(0u32..).flat_map(|(chunk, counter)| {
        let block = hash(&[b"BLINDFOLD-V1-STREAM", key, &ad[..16], &counter.to_be_bytes()]);
        chunk.iter().zip(block).map(|(byte, pad)| byte ^ pad).collect::<Vec<u8>>()
    });
    blocks.collect()
}

/// What a blinding factor opens a ciphertext to: K, M, and the k that an encryption of M under K uses.
pub(crate) fn unmask(z: &Gt, ad: &[u8; 32], ciphertext: &Ciphertext) -> ([u8; 16], Vec<u8>, Fr) {
    let pad = mask(z);
    let key = std::array::from_fn(|i| ciphertext.d[i] ^ pad[i]);
    let message = stream(&key, ad, &ciphertext.e);
    let k = randomness(&key, ad, &message);
    (key, message, k)
}

fn challenge(ciphertext: &Ciphertext, ad: &[u8; 32], r: &[u8; 48]) -> Fr {
    let hash = hash(&[b"BLINDFOLD-V1-POK", &ciphertext.c, &ciphertext.d, &hash(&[&ciphertext.e]), ad, r]);
    Fr::from_be_bytes_mod_order(&hash[..16])
}

impl Reference {
    /// Encryption with a given session key K and proof randomness ρ.
    ///
    /// # Errors
    /// [`DecodeError::Scalar`] if ρ is not a scalar.
    pub fn encrypt(
        &self,
        ad: &[u8; 32],
        message: &[u8],
        key: &[u8; 16],
        rho: &[u8; 32],
    ) -> Result<Encrypted, DecodeError> {
        let rho = encode::scalar(rho)?;
        let k = randomness(key, ad, message);
        let ciphertext = self.encrypt_with(ad, message, key, k);
        let r = encode::g1_bytes(&(G1Projective::generator() * rho).into_affine());
        let s = encode::scalar_bytes(&(rho + challenge(&ciphertext, ad, &r) * k));
        Ok(Encrypted { ciphertext, r, s })
    }

    /// Encrypts again with the hint and compares C and D; returns the message if both agree.
    pub fn verify_hint(&self, ad: &[u8; 32], ciphertext: &Ciphertext, hint: &[u8; 16]) -> Option<Vec<u8>> {
        let (message, again) = self.re_encrypt(ad, &ciphertext.e, hint);
        (again == *ciphertext).then_some(message)
    }

    /// What E decrypts to under K, and the ciphertext that encrypting it under K gives: with the same E, and the C and
    /// D that a right hint must reproduce.
    pub fn re_encrypt(&self, ad: &[u8; 32], e: &[u8], key: &[u8; 16]) -> (Vec<u8>, Ciphertext) {
        let message = stream(key, ad, e);
        let ciphertext = self.encrypt_with(ad, &message, key, randomness(key, ad, &message));
        (message, ciphertext)
    }

    fn encrypt_with(&self, ad: &[u8; 32], message: &[u8], key: &[u8; 16], k: Fr) -> Ciphertext {
        let pad = mask(&(self.ek * k));
        Ciphertext {
            c: encode::g1_bytes(&(G1Projective::generator() * k).into_affine()),
            d: std::array::from_fn(|i| key[i] ^ pad[i]),
            e: stream(key, ad, message),
        }
    }
}

/// \[s\]₁ = R + c·C?
///
/// # Errors
/// [`DecodeError`].
pub fn verify_proof(ad: &[u8; 32], encrypted: &Encrypted) -> Result<bool, DecodeError> {
    let (c, r) = (encode::g1(&encrypted.ciphertext.c)?, encode::g1(&encrypted.r)?);
    let challenge = challenge(&encrypted.ciphertext, ad, &encrypted.r);
    Ok(G1Projective::generator() * encode::scalar(&encrypted.s)? == c * challenge + r)
}

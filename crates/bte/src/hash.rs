//! The hash functions of the scheme: SHA-256 with a domain tag in front.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::curve::{Gt, Scalar};
use crate::tags;
use crate::{GT_BYTES, SESSION_KEY_BYTES};

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// First 16 bytes of SHA-256(KEM ‖ ek^k): masks the session key in D.
pub(crate) fn mask(blinding: &Gt) -> [u8; SESSION_KEY_BYTES] {
    mask_encoded(&Zeroizing::new(blinding.encode()))
}

/// The same of an encoded blinding factor.
pub(crate) fn mask_encoded(blinding: &[u8; GT_BYTES]) -> [u8; SESSION_KEY_BYTES] {
    first_16(&Zeroizing::new(sha256(&[tags::KEM, blinding])))
}

/// k = SHA-256(FO ‖ 00 ‖ K ‖ ad ‖ SHA-256(M)) ‖ SHA-256(FO ‖ 01 ‖ …) mod r.
pub(crate) fn randomness(key: &[u8; SESSION_KEY_BYTES], ad: &[u8; 32], message: &[u8]) -> Scalar {
    scalar(tags::FO, key, ad, message)
}

/// The ρ of a derived proof: as k, under a tag of its own.
pub(crate) fn proof_nonce(key: &[u8; SESSION_KEY_BYTES], ad: &[u8; 32], message: &[u8]) -> Scalar {
    scalar(tags::POK_DERIVED, key, ad, message)
}

fn scalar(tag: &[u8], key: &[u8; SESSION_KEY_BYTES], ad: &[u8; 32], message: &[u8]) -> Scalar {
    let message_hash = Zeroizing::new(sha256(&[message]));
    let mut wide = Zeroizing::new([0; 64]);
    for (half, chunk) in [0u8, 1].into_iter().zip(wide.chunks_exact_mut(32)) {
        chunk.copy_from_slice(&sha256(&[tag, &[half], key, ad, &*message_hash]));
    }
    Scalar::reduce(&*wide)
}

/// M ⊕ S, S = SHA-256(STREAM ‖ K ‖ ad[0..16] ‖ be32(0)) ‖ …: 55 bytes in, so one compression each.
///
/// Encrypts and decrypts. 2^32 blocks would be 128 GiB, which no slice in an envelope reaches.
pub(crate) fn stream_xor(key: &[u8; SESSION_KEY_BYTES], ad: &[u8; 32], data: &mut [u8]) {
    for (counter, chunk) in (0u32..).zip(data.chunks_mut(32)) {
        let block = Zeroizing::new(sha256(&[tags::STREAM, key, &ad[..16], &counter.to_be_bytes()]));
        for (byte, pad) in chunk.iter_mut().zip(&*block) {
            *byte ^= pad;
        }
    }
}

/// c = first 16 bytes of SHA-256(POK ‖ C ‖ D ‖ SHA-256(E) ‖ ad ‖ R).
pub(crate) fn challenge(c: &[u8; 48], d: &[u8; 16], e: &[u8], ad: &[u8; 32], r: &[u8; 48]) -> [u8; 16] {
    first_16(&sha256(&[tags::POK, c, d, &sha256(&[e]), ad, r]))
}

fn first_16(hash: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| hash[i])
}

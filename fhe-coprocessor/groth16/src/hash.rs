//! SHA-256 with a tag in front, and hashing to the scalar field by `expand_message_xmd` (RFC 9380, section 5.3.1).

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::PrimeField;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::tags;

/// SHA-256 of the parts, one after the other. Callers put a tag first and a length before what varies in length.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// `count` uniform bytes (at most 8,160) from the message under the tag, as RFC 9380 defines them for SHA-256.
fn expand(tag: &[u8], message: &[&[u8]], count: usize) -> Zeroizing<Vec<u8>> {
    assert!(tag.len() <= 255 && count <= 255 * 32, "tags and lengths are chosen in this crate");
    let tag_length = [tag.len() as u8];
    let mut hasher = Sha256::new();
    hasher.update([0; 64]);
    for part in message {
        hasher.update(part);
    }
    hasher.update((count as u16).to_be_bytes());
    hasher.update([0]);
    hasher.update(tag);
    hasher.update(tag_length);
    let first: [u8; 32] = hasher.finalize().into();
    let mut out = Zeroizing::new(Vec::with_capacity(count + 31));
    let mut block = [0u8; 32];
    for i in 1..=count.div_ceil(32) {
        let mut mixed = first;
        for (byte, last) in mixed.iter_mut().zip(block) {
            *byte ^= last;
        }
        block = sha256(&[&mixed, &[i as u8], tag, &tag_length]);
        out.extend_from_slice(&block);
    }
    out.truncate(count);
    out
}

/// `count` scalars, each from 128 bits more than the field has, so that their bias is below 2^−128.
/// At most 170 scalars of a 255-bit field.
pub(crate) fn to_field<F: PrimeField>(tag: &[u8], message: &[&[u8]], count: usize) -> Vec<F> {
    let length = wide_bytes::<F>();
    expand(tag, message, count * length).chunks(length).map(F::from_be_bytes_mod_order).collect()
}

/// The most scalars one [`to_field`] gives.
pub(crate) fn most_scalars<F: PrimeField>() -> usize {
    255 * 32 / wide_bytes::<F>()
}

fn wide_bytes<F: PrimeField>() -> usize {
    (F::MODULUS_BIT_SIZE as usize + 128).div_ceil(8)
}

/// A uniform scalar.
pub(crate) fn random<F: PrimeField>(rng: &mut (impl CryptoRng + ?Sized)) -> F {
    let mut bytes = Zeroizing::new([0u8; 64]);
    rng.fill_bytes(&mut *bytes);
    F::from_le_bytes_mod_order(&*bytes)
}

/// A uniform weight of 128 bits.
pub(crate) fn random_weight<F: PrimeField>(rng: &mut (impl CryptoRng + ?Sized)) -> F {
    let mut bytes = [0u8; 16];
    rng.fill_bytes(&mut bytes);
    F::from(u128::from_le_bytes(bytes))
}

/// The base of the commitment's blinding: nobody knows its logarithm. The first x-coordinate out of a counted sequence
/// of hashes that lies on the curve, times the cofactor.
pub(crate) fn blinding_base<G: AffineRepr>() -> G {
    let length = G::zero().compressed_size();
    let mut counter = 0u32;
    loop {
        let bytes = expand(tags::BLINDING_BASE, &[&counter.to_be_bytes()], length);
        let point = G::from_random_bytes(&bytes).map(|point| point.mul_by_cofactor_to_group().into_affine());
        if let Some(point) = point.filter(|point| !point.is_zero()) {
            return point;
        }
        counter += 1;
    }
}

#[cfg(test)]
mod tests {
    use ark_serialize::Valid;

    use super::*;

    #[test]
    fn expansion_meets_the_vectors_of_rfc_9380() {
        let tag = b"QUUX-V01-CS02-with-expander-SHA256-128";
        for (message, want) in [
            ("", "68a985b87eb6b46952128911f2a4412bbc302a9d759667f87f7a21d803f07235"),
            ("abc", "d8ccab23b5985ccea865c6c97b6e5b8350e794e603b4b97902f53a8a0d605615"),
        ] {
            assert_eq!(hex::encode(&*expand(tag, &[message.as_bytes()], 32)), want, "{message}");
        }
        let long = expand(tag, &[b"abc"], 128);
        assert_eq!(
            hex::encode(&long[..32]),
            "abba86a6129e366fc877aab32fc4ffc70120d8996c88aee2fe4b32d6c7b6437a"
        );
    }

    #[test]
    fn the_blinding_base_is_a_point_of_the_group() {
        let base: ark_bls12_381::G1Affine = blinding_base();
        assert!(base.check().is_ok() && !base.is_zero());
        let twin: ark_bn254::G1Affine = blinding_base();
        assert!(twin.check().is_ok() && !twin.is_zero());
    }
}

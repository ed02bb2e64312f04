//! From a blinding factor z = ek^k to the plaintext, with the check that makes decryption unambiguous.

use crate::comb::generator_times_all;
use crate::curve::{Gt, Scalar};
use crate::hash::mask;
use crate::hint::message_and_randomness;
use crate::{Ciphertext, EncryptionKey, G1_BYTES, SESSION_KEY_BYTES, SessionKey};

/// What one ciphertext of a batch decrypts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Made by the encryption algorithm: has a hint and a message.
    WellFormed {
        /// K, which is its hint.
        key: SessionKey,
        /// The message M, as it was encrypted.
        message: Vec<u8>,
    },
    /// Not made by the encryption algorithm (or the release was wrong): decrypts to nothing.
    Malformed,
}

impl Opening {
    /// K, the hint, if the ciphertext is well-formed.
    pub fn key(&self) -> Option<&SessionKey> {
        match self {
            Self::WellFormed { key, .. } => Some(key),
            Self::Malformed => None,
        }
    }
}

/// Opens one ciphertext; see [`open_all`].
pub(crate) fn open(ek: &EncryptionKey, ad: &[u8; 32], ciphertext: &Ciphertext, blinding: &Gt) -> Opening {
    match open_all(ek, &[(ad, ciphertext)], &[*blinding]).pop() {
        Some(opening) => opening,
        None => unreachable!("one ciphertext has one opening"),
    }
}

/// Opens ciphertexts, each with its associated data and blinding factor, sharing inversions.
///
/// K = D ⊕ SHA-256(KEM ‖ z)\[0..16\], then M and k; well-formed iff \[k\]₁ = C and ek^k = z. The second guards against
/// a D crafted for a predicted wrong release, and is asked only where the first holds.
pub(crate) fn open_all(
    ek: &EncryptionKey,
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
    blindings: &[Gt],
) -> Vec<Opening> {
    let unmasked: Vec<_> =
        ciphertexts.iter().zip(blindings).map(|((ad, c), z)| unmask(ad, c, &mask(z))).collect();
    let scalars: Vec<Scalar> = unmasked.iter().map(|(.., k)| *k).collect();
    let headers: Vec<[u8; G1_BYTES]> =
        generator_times_all(&scalars).iter().map(|header| header.encode()).collect();
    let candidates: Vec<usize> = (0..headers.len()).filter(|i| headers[*i] == ciphertexts[*i].1.c).collect();
    let factors = ek.products_public(&candidates.iter().map(|i| scalars[*i]).collect::<Vec<_>>());
    let mut equal = vec![false; headers.len()];
    for (i, factor) in candidates.into_iter().zip(factors) {
        equal[i] = factor.is(&blindings[i]);
    }
    checked(ciphertexts, unmasked, &headers, equal.into_iter())
}

/// The openings, given what [`unmask`] gave, the encodings of \[k\]₁ and whether ek^k = z.
pub(crate) fn checked(
    ciphertexts: &[(&[u8; 32], &Ciphertext)],
    unmasked: Vec<(SessionKey, Vec<u8>, Scalar)>,
    headers: &[[u8; G1_BYTES]],
    equal: impl Iterator<Item = bool>,
) -> Vec<Opening> {
    let checked = ciphertexts.iter().zip(unmasked).zip(headers.iter().zip(equal));
    checked
        .map(|(((_, ciphertext), (key, message, _)), (header, equal))| {
            let well_formed = equal && *header == ciphertext.c;
            if well_formed { Opening::WellFormed { key, message } } else { Opening::Malformed }
        })
        .collect()
}

/// K, M and k as the pad of the blinding factor gives them, right or not.
pub(crate) fn unmask(
    ad: &[u8; 32],
    ciphertext: &Ciphertext,
    pad: &[u8; SESSION_KEY_BYTES],
) -> (SessionKey, Vec<u8>, Scalar) {
    let key = SessionKey::from_bytes(std::array::from_fn(|i| ciphertext.d[i] ^ pad[i]));
    let (message, k) = message_and_randomness(ad, &ciphertext.e, &key);
    (key, message, k)
}

#[cfg(test)]
pub(crate) mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::curve::G1Affine;
    use crate::dealer;

    /// Ciphertexts and blinding factors, of which those in [`MALFORMED`] do not fit or are not well-formed.
    pub(crate) struct Samples {
        pub(crate) ek: EncryptionKey,
        ads: Vec<[u8; 32]>,
        ciphertexts: Vec<Ciphertext>,
        pub(crate) blindings: Vec<Gt>,
    }

    const MALFORMED: [usize; 4] = [2, 3, 5, 6];

    impl Samples {
        pub(crate) fn inputs(&self) -> Vec<(&[u8; 32], &Ciphertext)> {
            self.ads.iter().zip(&self.ciphertexts).collect()
        }
    }

    pub(crate) fn samples() -> Samples {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (parameters, _) = dealer::deal(1, 1, 1, &mut rng).expect("a valid shape");
        let ek = parameters.encryption_key();
        let (mut ads, mut ciphertexts, mut blindings) = (vec![], vec![], vec![]);
        for number in 0..9u8 {
            let (mut ciphertext, _, key) = ek.encrypt(&[number; 32], &[7], b"", &mut rng).expect("short");
            let (_, k) = message_and_randomness(&[number; 32], &ciphertext.e, &key);
            let mut blinding = ek.product_public(&k).quotient();
            match number {
                2 => ciphertext.c = G1Affine::generator().encode(),
                3 => ciphertext.d[0] ^= 1,
                5 => blinding = blinding.square(),
                // D crafted for a wrong blinding factor: K and so k are right, the factor is not.
                6 => {
                    let (right, wrong) = (mask(&blinding), mask(&Gt::one()));
                    (0..16).for_each(|i| ciphertext.d[i] ^= right[i] ^ wrong[i]);
                    blinding = Gt::one();
                }
                _ => {}
            }
            ads.push([number; 32]);
            ciphertexts.push(ciphertext);
            blindings.push(blinding);
        }
        Samples { ek, ads, ciphertexts, blindings }
    }

    #[test]
    fn opening_together_is_opening_one_by_one() {
        let samples = samples();
        let (ek, inputs) = (&samples.ek, samples.inputs());
        let together = open_all(ek, &inputs, &samples.blindings);
        for (number, opening) in together.iter().enumerate() {
            let (ad, ciphertext) = inputs[number];
            assert_eq!(*opening, open(ek, ad, ciphertext, &samples.blindings[number]));
            assert_eq!(opening.key().is_none(), MALFORMED.contains(&number), "{number}");
        }
        assert!(open_all(ek, &[], &[]).is_empty());
    }
}

//! From what was opened back to the bytes that were sent.
//!
//! Encryption is a function of ad, K and M, so whoever has these has C, D and E, and a derived proof too. Of any other
//! right proof its challenge and response are enough, since `R = [s − c·k]₁`. So an opened ciphertext can be kept, or posted,
//! as its plaintext; whether it gives the right bytes is for whoever has a hash of them to say.

use crate::comb::generator_times_all;
use crate::curve::{Scalar, TorusProduct};
use crate::encrypt::MAX_MESSAGE_BYTES;
use crate::hash::{challenge, mask, proof_nonce, randomness, stream_xor};
use crate::{Ciphertext, EncryptionKey, Proof, SCALAR_BYTES, SESSION_KEY_BYTES, SessionKey, par};

/// Length of a proof's challenge, in bytes.
pub const CHALLENGE_BYTES: usize = 16;

/// Items that share one field inversion.
const CHUNK_ITEMS: usize = 64;

/// What is needed of a proof of knowledge beside what was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofForm {
    /// Nothing: its ρ follows from K, ad and M.
    Derived,
    /// Its ρ was drawn in another way.
    Stated {
        /// c, as the proof's hash gives it.
        challenge: [u8; CHALLENGE_BYTES],
        /// The response s, big-endian.
        s: [u8; SCALAR_BYTES],
    },
}

impl ProofForm {
    /// The form of a right proof. Hashes and a multiplication of numbers, no point is touched: what comes of a wrong proof
    /// gives another one when it is made again.
    pub fn of(
        ad: &[u8; 32],
        ciphertext: &Ciphertext,
        proof: &Proof,
        message: &[u8],
        key: &SessionKey,
    ) -> Self {
        let challenge = challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, ad, &proof.r);
        let k = randomness(key.as_bytes(), ad, message);
        let derived = response(&proof_nonce(key.as_bytes(), ad, message), &challenge, &k);
        if derived.to_bytes() == proof.s {
            return Self::Derived;
        }
        Self::Stated { challenge, s: proof.s }
    }
}

/// A ciphertext that was opened.
#[derive(Debug, Clone, Copy)]
pub struct ReencryptItem<'a> {
    /// Associated data.
    pub ad: &'a [u8; 32],
    /// The message M, as it was encrypted.
    pub message: &'a [u8],
    /// The session key K.
    pub key: &'a SessionKey,
    /// What is known of the proof.
    pub proof: ProofForm,
}

impl EncryptionKey {
    /// Encrypts opened messages again, in parallel on the current pool: ciphertext and proof of each, in order; `None` where
    /// a message is longer than [`MAX_MESSAGE_BYTES`] or a response is not below r. Nothing here is secret any more. Three
    /// fixed-base exponentiations each.
    pub fn reencrypt(&self, items: &[ReencryptItem<'_>]) -> Vec<Option<(Ciphertext, Proof)>> {
        par::map_chunks(items, CHUNK_ITEMS, |items| self.reencrypt_chunk(items))
    }

    fn reencrypt_chunk(&self, items: &[ReencryptItem<'_>]) -> Vec<Option<(Ciphertext, Proof)>> {
        let factors: Vec<Option<(Scalar, Scalar)>> = items.iter().map(factors).collect();
        // Every k, and then every ρ.
        let (mut scalars, nonces): (Vec<Scalar>, Vec<Scalar>) = factors.iter().flatten().copied().unzip();
        let blindings = TorusProduct::quotients(&self.products_public(&scalars));
        scalars.extend(nonces);
        let points = generator_times_all(&scalars);
        let (headers, commitments) = points.split_at(blindings.len());
        let mut made = headers.iter().zip(commitments).zip(&blindings);
        let of = |(item, factors): (&ReencryptItem<'_>, Option<(Scalar, Scalar)>)| {
            let (k, rho) = factors?;
            let ((header, commitment), blinding) = made.next()?;
            let pad = mask(blinding);
            let key = item.key.as_bytes();
            let d: [u8; SESSION_KEY_BYTES] = std::array::from_fn(|i| key[i] ^ pad[i]);
            let mut e = item.message.to_vec();
            stream_xor(key, item.ad, &mut e);
            let ciphertext = Ciphertext { c: header.encode(), d, e };
            let r = commitment.encode();
            let s = match item.proof {
                ProofForm::Stated { s, .. } => s,
                ProofForm::Derived => {
                    let c = challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, item.ad, &r);
                    response(&rho, &c, &k).to_bytes()
                }
            };
            Some((ciphertext, Proof { r, s }))
        };
        items.iter().zip(factors).map(of).collect()
    }
}

/// k and ρ.
fn factors(item: &ReencryptItem<'_>) -> Option<(Scalar, Scalar)> {
    if item.message.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let k = randomness(item.key.as_bytes(), item.ad, item.message);
    let rho = match &item.proof {
        ProofForm::Derived => proof_nonce(item.key.as_bytes(), item.ad, item.message),
        ProofForm::Stated { challenge, s } => Scalar::from_bytes(s)?.sub(&Scalar::reduce(challenge).mul(&k)),
    };
    Some((k, rho))
}

/// s = ρ + c·k.
fn response(rho: &Scalar, challenge: &[u8; CHALLENGE_BYTES], k: &Scalar) -> Scalar {
    rho.add(&Scalar::reduce(challenge).mul(k))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{Proof, dealer, verify_proof};

    /// Associated data, message, what was sent, and K.
    type Sent = ([u8; 32], Vec<u8>, Ciphertext, Proof, SessionKey);

    /// Encrypted, with derived proofs; every third has a proof whose ρ is another.
    fn encrypted(count: u8) -> (EncryptionKey, Vec<Sent>) {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let (parameters, _) = dealer::deal(1, 1, 1, &mut rng).expect("a valid shape");
        let ek = parameters.encryption_key().clone();
        let one = |number: u8| {
            let (ad, message) = ([number; 32], vec![number; usize::from(number) * 3]);
            let (ciphertext, mut proof, key) = ek.encrypt(&ad, &message, b"", &mut rng).expect("short");
            if number % 3 == 2 {
                let rho = Scalar::random(&mut rng);
                let k = randomness(key.as_bytes(), &ad, &message);
                let r = generator_times_all(&[rho])[0].encode();
                let c = challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, &ad, &r);
                proof = Proof { r, s: response(&rho, &c, &k).to_bytes() };
            }
            verify_proof(&ad, &ciphertext, &proof).expect("a right proof");
            (ad, message, ciphertext, proof, key)
        };
        let made = (0..count).map(one).collect();
        (ek, made)
    }

    #[test]
    fn what_was_opened_gives_what_was_sent() {
        let (ek, sent) = encrypted(70);
        let forms: Vec<_> =
            sent.iter().map(|(ad, m, ct, proof, key)| ProofForm::of(ad, ct, proof, m, key)).collect();
        for (number, form) in forms.iter().enumerate() {
            assert_eq!(*form == ProofForm::Derived, number % 3 != 2, "{number}");
        }
        let items: Vec<_> = sent
            .iter()
            .zip(&forms)
            .map(|((ad, message, _, _, key), proof)| ReencryptItem { ad, message, key, proof: *proof })
            .collect();
        for (again, (_, _, ciphertext, proof, _)) in ek.reencrypt(&items).into_iter().zip(&sent) {
            assert_eq!(again, Some((ciphertext.clone(), *proof)));
        }
        assert!(ek.reencrypt(&[]).is_empty());
    }

    #[test]
    fn a_wrong_key_gives_another_ciphertext_and_a_wrong_proof_another_proof() {
        let (ek, sent) = encrypted(2);
        let (ad, message, ciphertext, proof, key) = &sent[1];
        let of = |key, proof| ek.reencrypt(&[ReencryptItem { ad, message, key, proof }]).remove(0);
        let wrong = SessionKey::from_bytes([1; 16]);
        assert_ne!(of(&wrong, ProofForm::Derived).expect("made").0.c, ciphertext.c);
        let mut forged = *proof;
        forged.s[31] ^= 1;
        let form = ProofForm::of(ad, ciphertext, &forged, message, key);
        assert_ne!(of(key, form), Some((ciphertext.clone(), forged)));
        let too_large = ProofForm::Stated { challenge: [0; 16], s: [0xff; 32] };
        assert_eq!(of(key, too_large), None, "and nobody else is harmed");
        let pair = [
            ReencryptItem { ad, message, key, proof: too_large },
            ReencryptItem { ad, message, key, proof: ProofForm::Derived },
        ];
        assert_eq!(ek.reencrypt(&pair), [None, Some((ciphertext.clone(), *proof))]);
    }
}

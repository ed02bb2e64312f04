//! The checks of hints and openings in eight lanes: [`crate::hint`] and [`crate::opening`] but for hashing.

use super::comb::LaneComb;
use super::encode::{encode_gt, encode_points};
use super::field::{Fp, Packed};
use super::generator::generator_times;
use super::kept;
use super::target::quotients;
use super::tower::Fp12;
use super::vector::{LANES, lanes};
use crate::curve::Scalar;
use crate::hash::mask_encoded;
use crate::hint::{HintItem, check_masked_key, message_and_randomness};
use crate::opening::unmask;
use crate::{Ciphertext, EncryptionKey, G1_BYTES, HintError, Opening, SESSION_KEY_BYTES, par};

/// Items that share field inversions.
const PIECE: usize = 64;

/// See [`crate::Backend::open_hints`].
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests.
pub(super) unsafe fn open_hints(
    key: &EncryptionKey,
    items: &[HintItem<'_>],
) -> Vec<Result<Vec<u8>, HintError>> {
    par::pieces(items.len(), PIECE, LANES, |range| {
        // SAFETY: by this function's contract.
        unsafe { open_piece(key, &items[range]) }
    })
}

/// The encodings of \[k\]₁.
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests.
pub(super) unsafe fn headers(scalars: &[Scalar]) -> Vec<[u8; G1_BYTES]> {
    // SAFETY: by this function's contract.
    unsafe { encode_points(&generator_times(scalars), scalars.len()) }
}

/// Makes the tables of both checks.
///
/// # Safety
/// The machine must support what [`super::Ifma::new`] tests.
pub(super) unsafe fn prepare(key: &EncryptionKey) {
    // SAFETY: by this function's contract.
    unsafe {
        comb(key);
        generator_times(&[Scalar::one()]);
    }
}

lanes! {
    fn open_piece(key: &EncryptionKey, items: &[HintItem<'_>]) -> Vec<Result<Vec<u8>, HintError>> {
        let recovered =
            items.iter().map(|(ad, ciphertext, hint)| message_and_randomness(ad, &ciphertext.e, hint));
        let (messages, scalars): (Vec<_>, Vec<Scalar>) = recovered.unzip();
        let headers = encode_points(&generator_times(&scalars), items.len());
        let mut blindings = comb(key).products(&scalars);
        quotients(&mut blindings);
        let checked = items.iter().zip(messages).zip(headers.iter().zip(masks(&blindings)));
        checked
            .map(|(((_, ciphertext, hint), message), (header, pad))| {
                if *header != ciphertext.c {
                    return Err(HintError::Header);
                }
                check_masked_key(ciphertext, hint, &pad)?;
                Ok(message)
            })
            .collect()
    }

    /// Opens ciphertexts, blinding factors eight to a vector and below 1000·p; see [`crate::opening::open_all`].
    pub(super) fn open_all(
        key: &EncryptionKey,
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
        blindings: &[Fp12]
    ) -> Vec<Opening> {
        let unmasked: Vec<_> =
            ciphertexts.iter().zip(masks(blindings)).map(|((ad, c), pad)| unmask(ad, c, &pad)).collect();
        let scalars: Vec<Scalar> = unmasked.iter().map(|(.., k)| *k).collect();
        let headers = encode_points(&generator_times(&scalars), scalars.len());
        // Where no header is right, ek^k need not be known.
        let any = headers.iter().zip(ciphertexts).any(|(header, (_, ciphertext))| *header == ciphertext.c);
        let factors = if any { comb(key).products(&scalars) } else { Vec::new() };
        let mut equal: Vec<u8> = factors.iter().zip(blindings).map(|(factor, z)| quotient_is(factor, z)).collect();
        equal.resize(blindings.len(), 0);
        let checked = ciphertexts.iter().zip(unmasked).zip(headers).enumerate();
        checked
            .map(|(i, (((_, ciphertext), (key, message, _)), header))| {
                let equal = equal[i / LANES] >> (i % LANES) & 1 == 1;
                let well_formed = equal && header == ciphertext.c;
                if well_formed { Opening::WellFormed { key, message } } else { Opening::Malformed }
            })
            .collect()
    }

    fn comb(key: &EncryptionKey) -> &LaneComb {
        kept::comb(key, |portable| LaneComb::new(portable))
    }

    fn masks(blindings: &[Fp12]) -> impl Iterator<Item = [u8; SESSION_KEY_BYTES]> {
        blindings.iter().flat_map(|blinding| encode_gt(blinding).map(|encoded| mask_encoded(&encoded)))
    }

    /// Lanes where f/conj(f) = z: without an inversion, f = z·conj(f).
    fn quotient_is(f: &Fp12, z: &Fp12) -> u8 {
        let (one, product) = (Fp::splat(&Packed::ONE.0), z.mul(&f.conjugate()));
        let coefficients = f.coefficients().into_iter().zip(product.coefficients());
        coefficients.fold(0xff, |mask, (a, b)| mask & a.sub_n(b).mul(&one).zero_lanes())
    }
}

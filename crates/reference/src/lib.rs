//! The scheme written as the papers write it, on arkworks: oracle for tests, baseline for benchmarks.
//!
//! Formulas of Simple BTE (ePrint 2026/760) and of helper-aided decryption, one after another, on one thread: no
//! endomorphisms, no fixed-base tables, no shared final exponentiations beyond what arkworks does by itself. **Not for
//! production**: nothing is constant-time, nothing is wiped.
//!
//! It shares no code with `blindfold-bte`; both sides speak bytes. Inputs that are not canonical encodings are errors,
//! batches of a wrong size panic (the caller is a test or a benchmark).
//!
//! arkworks' field assembly is active only with `-C target-cpu=native` (or the ADX and BMI2 target features): state the
//! flags beside every figure.

mod batch;
mod encode;
mod encryption;
mod hints;

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{Field, One, Zero};

pub use batch::{CrossTerms, Opened, Prepared};
pub use encode::DecodeError;
pub use encryption::{Ciphertext, Encrypted, derived_nonce, verify_proof};
pub use hints::{Headers, HintError, RandomnessItem, TargetItem, Weight, randomness_hint};

type Gt = PairingOutput<Bls12_381>;

/// Public parameters: h_i and ek.
pub struct Reference {
    max_batch: usize,
    /// h_i at i; `None` for 0 and B+1.
    h: Vec<Option<G2Affine>>,
    ek: Gt,
}

impl Reference {
    /// From τ, for tests.
    ///
    /// # Errors
    /// [`DecodeError::Scalar`].
    pub fn from_tau(max_batch: usize, tau: &[u8; 32]) -> Result<Self, DecodeError> {
        let tau = encode::scalar(tau)?;
        let h = (0..=2 * max_batch)
            .map(|i| {
                let exists = i != 0 && i != max_batch + 1;
                exists.then(|| (G2Projective::generator() * tau.pow([i as u64])).into_affine())
            })
            .collect();
        let exponent = tau.pow([max_batch as u64 + 1]);
        Ok(Self {
            max_batch,
            h,
            ek: Bls12_381::pairing(G1Affine::generator(), G2Affine::generator()) * exponent,
        })
    }

    /// From the encodings of another implementation's parameters; `h` gives h_i.
    ///
    /// # Errors
    /// [`DecodeError`]; [`DecodeError::Missing`] if `h` lacks an exponent.
    pub fn from_bytes(
        max_batch: usize,
        h: impl Fn(usize) -> Option<[u8; 96]>,
        ek: &[u8; 576],
    ) -> Result<Self, DecodeError> {
        let mut points = vec![None];
        for i in 1..=2 * max_batch {
            points.push(if i == max_batch + 1 {
                None
            } else {
                Some(encode::g2(&h(i).ok_or(DecodeError::Missing(i))?)?)
            });
        }
        Ok(Self { max_batch, h: points, ek: encode::gt(ek)? })
    }

    /// From ek alone: encrypts and verifies hints, decrypts nothing.
    ///
    /// # Errors
    /// [`DecodeError::Gt`].
    pub fn from_key(ek: &[u8; 576]) -> Result<Self, DecodeError> {
        Self::from_bytes(0, |_| None, ek)
    }

    /// h_i, compressed; `None` where there is none.
    pub fn h(&self, i: usize) -> Option<[u8; 96]> {
        self.h.get(i).copied().flatten().map(|point| encode::g2_bytes(&point))
    }

    /// ek.
    pub fn ek(&self) -> [u8; 576] {
        encode::gt_bytes(&self.ek)
    }

    /// B.
    pub fn max_batch(&self) -> usize {
        self.max_batch
    }
}

/// pd_j = Σ_i σ_j^i·C_i.
///
/// # Errors
/// [`DecodeError`].
pub fn release_share(shares: &[[u8; 32]], headers: &[[u8; 48]]) -> Result<[u8; 48], DecodeError> {
    assert!(headers.len() <= shares.len(), "more ciphertexts than shares");
    let mut sum = G1Projective::zero();
    for (share, header) in shares.iter().zip(headers) {
        sum += encode::g1(header)? * encode::scalar(share)?;
    }
    Ok(encode::g1_bytes(&sum.into_affine()))
}

/// pd = Σ_j λ_j·pd_j over all given members, λ_j = Π_(l≠j) l/(l−j).
///
/// # Errors
/// [`DecodeError`].
pub fn combine(shares: &[(u16, [u8; 48])]) -> Result<[u8; 48], DecodeError> {
    let mut sum = G1Projective::zero();
    for (j, share) in shares {
        let mut coefficient = Fr::one();
        for (l, _) in shares.iter().filter(|(l, _)| l != j) {
            let (l, j) = (Fr::from(*l), Fr::from(*j));
            coefficient *= l * (l - j).inverse().ok_or(DecodeError::Scalar)?;
        }
        sum += encode::g1(share)? * coefficient;
    }
    Ok(encode::g1_bytes(&sum.into_affine()))
}

/// e(pd_j, g2) = Π_i e(C_i, v_j^i)?
///
/// # Errors
/// [`DecodeError`].
pub fn verify_share(
    verification_keys: &[[u8; 96]],
    headers: &[[u8; 48]],
    share: &[u8; 48],
) -> Result<bool, DecodeError> {
    assert!(headers.len() <= verification_keys.len(), "more ciphertexts than verification keys");
    let points = headers.iter().map(encode::g1).collect::<Result<Vec<_>, _>>()?;
    let keys = verification_keys.iter().take(points.len()).map(encode::g2).collect::<Result<Vec<_>, _>>()?;
    Ok(Bls12_381::pairing(encode::g1(share)?, G2Affine::generator())
        == Bls12_381::multi_pairing(points, keys))
}

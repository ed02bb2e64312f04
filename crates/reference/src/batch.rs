//! Decrypting a batch.

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G1Projective, G2Projective};
use ark_ec::pairing::Pairing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::Zero;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

use crate::encode::{self, DecodeError};
use crate::encryption::unmask;
use crate::{Ciphertext, Gt, Reference};

type Line = <Bls12_381 as Pairing>::G2Prepared;

/// The transform of the fixed h for one batch size, lines precomputed.
pub struct Prepared {
    batch: usize,
    domain: Radix2EvaluationDomain<Fr>,
    transformed: Vec<Line>,
}

/// The cross-terms X_i of one batch.
pub struct CrossTerms(Vec<Gt>);

impl CrossTerms {
    /// Cross-terms that another implementation computed; membership in GT is not checked.
    ///
    /// # Errors
    /// [`DecodeError::Gt`].
    pub fn from_bytes(cross: &[[u8; 576]]) -> Result<Self, DecodeError> {
        cross.iter().map(encode::gt).collect::<Result<_, _>>().map(Self)
    }

    /// In batch order.
    pub fn to_bytes(&self) -> Vec<[u8; 576]> {
        self.0.iter().map(encode::gt_bytes).collect()
    }
}

/// What a well-formed ciphertext decrypts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// K: the hint.
    pub key: [u8; 16],
    /// M.
    pub message: Vec<u8>,
}

fn decode_all(headers: &[[u8; 48]]) -> Result<Vec<G1Affine>, DecodeError> {
    headers.iter().map(encode::g1).collect()
}

impl Reference {
    fn h_point(&self, i: usize) -> Option<ark_bls12_381::G2Affine> {
        self.h.get(i).copied().flatten()
    }

    /// Transforms the h that batches of `batch` ciphertexts need.
    ///
    /// # Panics
    /// If `batch` is 0 or above B.
    pub fn prepare(&self, batch: usize) -> Prepared {
        assert!((1..=self.max_batch).contains(&batch), "a batch of {batch} of at most {}", self.max_batch);
        let Some(domain) = Radix2EvaluationDomain::<Fr>::new(2 * batch) else {
            panic!("no domain of size {}", 2 * batch)
        };
        // Coefficient i − l of X_i is h_(B+1−(i−l)); negative indices wrap around.
        let size = domain.size();
        let mut coefficients = vec![G2Projective::zero(); size];
        for distance in 1..batch {
            let at = |i: usize| self.h_point(i).map_or_else(G2Projective::zero, Into::into);
            coefficients[distance] = at(self.max_batch + 1 - distance);
            coefficients[size - distance] = at(self.max_batch + 1 + distance);
        }
        domain.fft_in_place(&mut coefficients);
        let transformed = G2Projective::normalize_batch(&coefficients).into_iter().map(Line::from).collect();
        Prepared { batch, domain, transformed }
    }

    /// All X_i = Π_(l≠i) e(C_l, h_(l+B+1−i)) by a convolution: forward transform of the C in G1, one pairing for each
    /// point of the transform, inverse transform in GT.
    ///
    /// # Errors
    /// [`DecodeError::G1`].
    ///
    /// # Panics
    /// If the batch is larger than what was prepared.
    pub fn cross_terms(&self, prepared: &Prepared, headers: &[[u8; 48]]) -> Result<CrossTerms, DecodeError> {
        assert!(headers.len() <= prepared.batch, "prepared for batches of up to {}", prepared.batch);
        let mut values: Vec<G1Projective> = decode_all(headers)?.into_iter().map(Into::into).collect();
        values.resize(prepared.domain.size(), G1Projective::zero());
        prepared.domain.fft_in_place(&mut values);
        let values = G1Projective::normalize_batch(&values);
        let mut products: Vec<Gt> =
            values.iter().zip(&prepared.transformed).map(|(c, h)| Bls12_381::pairing(c, h.clone())).collect();
        prepared.domain.ifft_in_place(&mut products);
        products.truncate(headers.len());
        Ok(CrossTerms(products))
    }

    /// All X_i by their definition: b·(b−1) pairings.
    ///
    /// # Errors
    /// [`DecodeError::G1`].
    pub fn cross_terms_direct(&self, headers: &[[u8; 48]]) -> Result<CrossTerms, DecodeError> {
        let points = decode_all(headers)?;
        let cross = (0..points.len()).map(|i| {
            let others = (0..points.len()).filter(|l| *l != i);
            let (c, h): (Vec<_>, Vec<_>) =
                others.filter_map(|l| Some((points[l], self.h_point(l + self.max_batch + 1 - i)?))).unzip();
            Bls12_381::multi_pairing(c, h)
        });
        Ok(CrossTerms(cross.collect()))
    }

    /// z_i = e(pd, h_(B+1−i)) / X_i.
    ///
    /// # Errors
    /// [`DecodeError::G1`].
    pub fn unblind(&self, cross: &CrossTerms, pd: &[u8; 48]) -> Result<Vec<[u8; 576]>, DecodeError> {
        Ok(self.blinding_factors(cross, pd)?.iter().map(encode::gt_bytes).collect())
    }

    fn blinding_factors(&self, cross: &CrossTerms, pd: &[u8; 48]) -> Result<Vec<Gt>, DecodeError> {
        let pd = encode::g1(pd)?;
        let factor = |(position, x): (usize, &Gt)| {
            let i = self.max_batch - position;
            let h = self.h_point(i).ok_or(DecodeError::Missing(i))?;
            Ok(Bls12_381::pairing(pd, h) - x)
        };
        cross.0.iter().enumerate().map(factor).collect()
    }

    /// Hint and message of each well-formed ciphertext, `None` for the others.
    ///
    /// # Errors
    /// [`DecodeError::G1`].
    pub fn finalize(
        &self,
        cross: &CrossTerms,
        pd: &[u8; 48],
        ciphertexts: &[(&[u8; 32], &Ciphertext)],
    ) -> Result<Vec<Option<Opened>>, DecodeError> {
        let factors = self.blinding_factors(cross, pd)?;
        let opened = ciphertexts.iter().zip(&factors).map(|((ad, ciphertext), z)| {
            let (key, message, k) = unmask(z, ad, ciphertext);
            let header = encode::g1_bytes(&(G1Projective::generator() * k).into_affine());
            (header == ciphertext.c && self.ek * k == *z).then_some(Opened { key, message })
        });
        Ok(opened.collect())
    }
}

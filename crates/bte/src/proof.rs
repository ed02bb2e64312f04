//! The proof of knowledge of k: Schnorr over C, D, E and the associated data, so that a copied ciphertext cannot be
//! wrapped again. Fiat–Shamir, extractable in the algebraic/random-oracle model, not straight-line.

use rand_core::CryptoRng;

use crate::bulk::{Bulk, ScalarBulk};
use crate::comb::generator_times;
use crate::curve::{G1, G1Affine, PointError, Scalar};
use crate::hash::challenge;
use crate::weights::{Weight, as_scalar, failing, random_weights};
use crate::{Ciphertext, CiphertextPoint, Proof, par, platform};

/// Why a ciphertext's proof of knowledge was refused; its sender is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The header C is not a point it may be.
    #[error("ciphertext header: {0}")]
    Header(PointError),
    /// The commitment R is not a point of the group.
    #[error("proof commitment: {0}")]
    Commitment(PointError),
    /// The response s is not below r.
    #[error("proof response is not a canonical scalar")]
    Response,
    /// \[s\]₁ ≠ R + c·C: not proved for this ciphertext and associated data.
    #[error("proof of knowledge does not verify")]
    Equation,
}

/// Below this many proofs the lanes, eight at a time, cost more than they save.
const LANES_MIN: usize = 4;

/// A proof with what it proves: associated data, ciphertext, proof.
pub type ProofItem<'a> = (&'a [u8; 32], &'a Ciphertext, &'a Proof);

struct Decoded {
    header: CiphertextPoint,
    commitment: G1Affine,
    response: Scalar,
    challenge: Scalar,
}

/// The item with its points decoded. Both points are checked for the subgroup one by one: a batch equation would let
/// components of order 3 or 11 pass at times, and members would disagree on what is valid.
fn decoded(
    (ad, ciphertext, proof): &ProofItem<'_>,
    header: Result<G1Affine, PointError>,
    commitment: Result<G1Affine, PointError>,
) -> Result<Decoded, ProofError> {
    let header = header.and_then(CiphertextPoint::new).map_err(ProofError::Header)?;
    let commitment = commitment.map_err(ProofError::Commitment)?;
    let response = Scalar::from_bytes(&proof.s).ok_or(ProofError::Response)?;
    let challenge = Scalar::reduce(&challenge(&ciphertext.c, &ciphertext.d, &ciphertext.e, ad, &proof.r));
    Ok(Decoded { header, commitment, response, challenge })
}

fn equation_holds(item: &Decoded) -> bool {
    let right = G1::from(&item.header.0).mul_public(&item.challenge).add_affine(&item.commitment);
    generator_times(&item.response) == right
}

/// Verifies one proof and returns the decoded header. Two point checks and two multiplications in G1.
///
/// # Errors
/// [`ProofError`].
pub fn verify_proof(
    ad: &[u8; 32],
    ciphertext: &Ciphertext,
    proof: &Proof,
) -> Result<CiphertextPoint, ProofError> {
    let item =
        decoded(&(ad, ciphertext, proof), G1Affine::decode(&ciphertext.c), G1Affine::decode(&proof.r))?;
    if equation_holds(&item) { Ok(item.header) } else { Err(ProofError::Equation) }
}

/// Verifies many proofs, one result each in order: one multi-scalar multiplication with random 128-bit weights, and
/// where it fails, halving to find the bad ones. Gives exactly what [`verify_proof`] gives for each. In lanes, on the current
/// pool, where the processor has them; what they refuse is looked at once more without.
pub fn verify_proofs(
    rng: &mut (impl CryptoRng + ?Sized),
    items: &[ProofItem<'_>],
) -> Vec<Result<CiphertextPoint, ProofError>> {
    let Some(lanes) = platform::bulk().filter(|_| items.len() >= LANES_MIN) else {
        return verify_proofs_with(&ScalarBulk, rng, items);
    };
    let mut results = verify_proofs_with(&*lanes, rng, items);
    for ((ad, ciphertext, proof), result) in items.iter().zip(&mut results) {
        if result.is_err() {
            *result = verify_proof(ad, ciphertext, proof);
        }
    }
    results
}

/// The same with a backend's arithmetic.
pub(crate) fn verify_proofs_with(
    bulk: &(impl Bulk + ?Sized),
    rng: &mut (impl CryptoRng + ?Sized),
    items: &[ProofItem<'_>],
) -> Vec<Result<CiphertextPoint, ProofError>> {
    let encodings: Vec<&[u8; 48]> =
        items.iter().flat_map(|(_, ciphertext, proof)| [&ciphertext.c, &proof.r]).collect();
    let points = bulk.decode(&encodings);
    let decoded = par::map(items.len(), |i| decoded(&items[i], points[2 * i], points[2 * i + 1]));
    let sound: Vec<usize> = (0..items.len()).filter(|i| decoded[*i].is_ok()).collect();
    let proofs: Vec<&Decoded> = decoded.iter().filter_map(|item| item.as_ref().ok()).collect();
    let bad = failing(proofs.len(), |group| match group {
        [single] => equation_holds(proofs[*single]),
        _ => {
            let weights = random_weights(group.len(), rng);
            batch_holds(bulk, group, &proofs, &weights, [Scalar::random(rng), Scalar::random(rng)])
        }
    });
    let mut results: Vec<Result<CiphertextPoint, ProofError>> =
        decoded.iter().map(|item| item.as_ref().map(|d| d.header).map_err(|e| *e)).collect();
    for position in bad {
        results[sound[position]] = Err(ProofError::Equation);
    }
    results
}

/// Σ wᵢsᵢ·g1 = Σ wᵢ·Rᵢ + Σ (wᵢcᵢ)·Cᵢ.
fn batch_holds(
    bulk: &(impl Bulk + ?Sized),
    group: &[usize],
    proofs: &[&Decoded],
    weights: &[Weight],
    starts: [Scalar; 2],
) -> bool {
    let mut response = Scalar::ZERO;
    let (mut commitments, mut headers, mut products) = (Vec::new(), Vec::new(), Vec::new());
    for (index, weight) in group.iter().zip(weights) {
        let (item, weight) = (proofs[*index], as_scalar(weight));
        response = response.add(&weight.mul(&item.response));
        commitments.push(item.commitment);
        headers.push(item.header.0);
        products.push(weight.mul(&item.challenge));
    }
    let (left, right) = par::join(
        || bulk.weighted_sum(&commitments, weights, &starts[0]),
        || bulk.multi_scalar(&headers, &products, &starts[1]),
    );
    generator_times(&response) == left.add(&right)
}

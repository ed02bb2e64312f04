//! Knowledge of scalars that satisfy linear equations between points: Maurer's generalised Schnorr protocol, made
//! non-interactive by a transcript that must have absorbed everything public before.

use curve25519_dalek::{
    RistrettoPoint, Scalar,
    ristretto::CompressedRistretto,
    traits::{Identity, VartimeMultiscalarMul},
};
use rand_core::CryptoRng;
use tari_bulletproofs_plus::Transcript;
use zeroize::Zeroizing;

/// image = Σ witness\[index\]·base.
#[derive(Debug, Clone)]
pub struct Equation {
    /// The left side.
    pub image: RistrettoPoint,
    /// The right side: which scalar, times which point.
    pub terms: Vec<(usize, RistrettoPoint)>,
}

/// A commitment for each equation, a response for each scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigmaProof {
    pub(crate) commitments: Vec<(CompressedRistretto, RistrettoPoint)>,
    pub(crate) responses: Vec<Scalar>,
}

impl SigmaProof {
    /// Proves: as many multiplications as the equations have terms.
    pub fn new(
        transcript: &mut Transcript,
        equations: &[Equation],
        witness: &[Scalar],
        rng: &mut impl CryptoRng,
    ) -> Self {
        let masks = Zeroizing::new(witness.iter().map(|_| Scalar::random(rng)).collect::<Vec<_>>());
        let commitments: Vec<(CompressedRistretto, RistrettoPoint)> = equations
            .iter()
            .map(|equation| {
                let point: RistrettoPoint =
                    equation.terms.iter().map(|(index, base)| base * masks[*index]).sum();
                (point.compress(), point)
            })
            .collect();
        let challenge = challenge(transcript, &commitments);
        let responses = masks.iter().zip(witness).map(|(mask, witness)| mask + challenge * witness).collect();
        Self { commitments, responses }
    }

    /// Its challenge and its equations with it put in, weighted: a sum that is the identity if all hold.
    ///
    /// `None` if the proof has not as many commitments as there are equations, or too few responses.
    pub(crate) fn collect(
        &self,
        transcript: &mut Transcript,
        equations: &[Equation],
        mut weight: impl FnMut() -> Scalar,
        sum: &mut WeightedSum,
    ) -> Option<()> {
        let responses = equations.iter().flat_map(|equation| &equation.terms).map(|(index, _)| index + 1);
        if self.commitments.len() != equations.len() || Some(self.responses.len()) != responses.max() {
            return None;
        }
        let challenge = challenge(transcript, &self.commitments);
        for (equation, (_, commitment)) in equations.iter().zip(&self.commitments) {
            let weight = weight();
            for (index, base) in &equation.terms {
                sum.add(weight * self.responses[*index], *base);
            }
            sum.add(-weight * challenge, equation.image);
            sum.add(-weight, *commitment);
        }
        Some(())
    }

    /// Whether it holds: one multiplication of many points.
    #[must_use]
    pub fn verify(
        &self,
        transcript: &mut Transcript,
        equations: &[Equation],
        rng: &mut impl CryptoRng,
    ) -> bool {
        let mut sum = WeightedSum::default();
        self.collect(transcript, equations, || Scalar::random(rng), &mut sum).is_some() && sum.is_zero()
    }
}

fn challenge(transcript: &mut Transcript, commitments: &[(CompressedRistretto, RistrettoPoint)]) -> Scalar {
    for (compressed, _) in commitments {
        transcript.append_message(b"commitment", compressed.as_bytes());
    }
    let mut wide = [0; 64];
    transcript.challenge_bytes(b"challenge", &mut wide);
    Scalar::from_bytes_mod_order_wide(&wide)
}

/// Σ scalar·point, not yet computed.
#[derive(Debug, Default)]
pub(crate) struct WeightedSum {
    scalars: Vec<Scalar>,
    points: Vec<RistrettoPoint>,
}

impl WeightedSum {
    fn add(&mut self, scalar: Scalar, point: RistrettoPoint) {
        self.scalars.push(scalar);
        self.points.push(point);
    }

    pub(crate) fn is_zero(&self) -> bool {
        RistrettoPoint::vartime_multiscalar_mul(&self.scalars, &self.points) == RistrettoPoint::identity()
    }
}

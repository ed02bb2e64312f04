//! Verifying proofs.

use ark_bls12_381::Bls12_381;
use blindfold_groth16::{BatchItem, Proof, Recent, Verifier, batch_verdicts};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use crate::state::Claim;
use crate::tags;
use crate::transaction::EncodedProof;
use alloy_primitives::Keccak256;

/// A proof and what it must prove.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    /// The statement, made from the state.
    pub claim: &'a Claim,
    /// The proof, as it came.
    pub proof: &'a EncodedProof,
}

/// Whoever verifies proofs. The results must not depend on what else is asked at the same time.
pub trait Proofs: Sync {
    /// Whether each proof holds, in order.
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool>;
}

/// The proof system, with a verifying key for each statement.
pub struct Groth16Proofs {
    /// Verifies proofs of registrations.
    pub registration: Verifier<Bls12_381>,
    /// Verifies proofs of transfers.
    pub transfer: Verifier<Bls12_381>,
    /// Verifies proofs of refreshes.
    pub refresh: Verifier<Bls12_381>,
    /// Verifies proofs of withdrawals.
    pub withdrawal: Verifier<Bls12_381>,
    /// How frequent bad proofs were lately.
    pub recent: Recent,
}

impl Groth16Proofs {
    const fn verifier(&self, claim: &Claim) -> &Verifier<Bls12_381> {
        match claim {
            Claim::Registration(_) => &self.registration,
            Claim::Transfer(_) => &self.transfer,
            Claim::Refresh(_) => &self.refresh,
            Claim::Withdrawal(_) => &self.withdrawal,
        }
    }
}

impl Proofs for Groth16Proofs {
    /// Decodes on all threads, then [`batch_verdicts`]. Its weights follow from all statements and proofs, so that executors
    /// agree without shared randomness, and nobody knows them before the proofs are fixed.
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        let decoded: Vec<Option<(Proof<Bls12_381>, [u8; 32])>> = checks
            .par_iter()
            .map(|check| Some((Proof::decode(&check.proof.0).ok()?, check.claim.statement().digest())))
            .collect();
        let mut seed = Keccak256::new();
        seed.update(tags::BATCH_WEIGHTS);
        let mut items = Vec::with_capacity(checks.len());
        for (check, decoded) in checks.iter().zip(&decoded) {
            let Some((proof, digest)) = decoded else { continue };
            let verifier = self.verifier(check.claim);
            seed.update(verifier.key_hash());
            seed.update(digest);
            seed.update(check.proof.0);
            items.push(BatchItem { verifier, statement: check.claim.statement(), proof });
        }
        let mut rng = ChaCha20Rng::from_seed(seed.finalize().0);
        let mut verdicts = batch_verdicts(&mut rng, &self.recent, &items).into_iter();
        // Proofs that do not decode had no place in the batch.
        decoded.iter().map(|proof| proof.is_some() && verdicts.next().unwrap_or(false)).collect()
    }
}

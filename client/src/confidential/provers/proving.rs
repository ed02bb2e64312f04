//! Making proofs with keys from a folder.

use std::path::PathBuf;

use ark_bls12_381::Bls12_381;
use blindfold_confidential::circuits::{
    Refresh, RefreshWitness, Registration, RegistrationWitness, Transfer, TransferWitness, Withdrawal,
    WithdrawalWitness,
};
use blindfold_confidential::transaction::{EncodedProof, PROOF_BYTES};
use blindfold_confidential::{Fr, Ring};
use blindfold_groth16::{Circuit, ProveError, Prover, Stage, Statement, Verifier, VerifyError};
use blindfold_rlwe::rlwe::HedgedRng;
use blindfold_runtime::rng;
use zeroize::Zeroizing;

use super::{ConfidentialCircuit, KeysError, Pinned, files};

/// Where proving stands: told before each part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proving {
    /// The circuit's proving key is read.
    Key,
    /// A part of the proof.
    Stage(Stage),
    /// Verifying the proof before it is handed out.
    Check,
}

/// Who is told where proving stands.
pub type Progress = Box<dyn FnMut(Proving) + Send>;

/// A witness with its statement.
pub enum Witness {
    /// The witness of a registration.
    Registration(Box<RegistrationWitness>),
    /// The witness of a transfer.
    Transfer(Box<TransferWitness>),
    /// The witness of a refresh.
    Refresh(Box<RefreshWitness>),
    /// The witness of a withdrawal.
    Withdrawal(Box<WithdrawalWitness>),
}

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProvingError {
    /// The circuit's key cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The statement or the witness.
    #[error("cannot prove: {0}")]
    Prove(#[from] ProveError),
    /// The proof that was made does not hold. It is not handed out: with a malformed key, what does not prove anything may
    /// carry the witness.
    #[error("the proof that was made does not hold ({0}): the proving key is malformed; nothing was sent")]
    Malformed(VerifyError),
}

/// The proving keys of a deployment: a folder of files, and their pinned hashes. A file is read when a proof needs it.
#[derive(Clone, Debug)]
pub struct ProvingKeys {
    dir: PathBuf,
    pinned: Pinned,
}

impl ProvingKeys {
    /// Keys in `dir` that must be the `pinned` ones. Reads nothing yet.
    #[must_use]
    pub fn new(dir: PathBuf, pinned: Pinned) -> Self {
        Self { dir, pinned }
    }

    /// Reads the circuit's key, some tens of megabytes, records the circuit's rows, proves, and verifies the proof: on this
    /// thread and rayon's, seconds of processor time.
    ///
    /// # Errors
    /// [`ProvingError`].
    pub fn prove(
        &self,
        ring: Ring,
        witness: &Witness,
        progress: &mut (dyn FnMut(Proving) + Send),
    ) -> Result<EncodedProof, ProvingError> {
        use ConfidentialCircuit as C;
        progress(Proving::Key);
        match witness {
            Witness::Registration(w) => {
                self.proved(C::Registration, Registration(ring), &w.statement, w, &w.secret, progress)
            }
            Witness::Transfer(w) => {
                self.proved(C::Transfer, Transfer(ring), &w.statement, w, &w.secret, progress)
            }
            Witness::Refresh(w) => {
                self.proved(C::Refresh, Refresh(ring), &w.statement, w, &w.secret, progress)
            }
            Witness::Withdrawal(w) => {
                self.proved(C::Withdrawal, Withdrawal(ring), &w.statement, w, &w.secret, progress)
            }
        }
    }

    fn proved<C: Circuit<Fr>>(
        &self,
        name: ConfidentialCircuit,
        circuit: C,
        statement: &C::Statement,
        witness: &C::Witness,
        secret: &[i8],
        progress: &mut (dyn FnMut(Proving) + Send),
    ) -> Result<EncodedProof, ProvingError> {
        let key = files::proving_key(&self.dir, &self.pinned, name)?;
        let verifier = Verifier::new(key.verifying().clone());
        let prover: Prover<Bls12_381, C> = Prover::new(circuit, key).map_err(KeysError::from)?;
        let mut on_stage = |stage| progress(Proving::Stage(stage));
        let secret: Zeroizing<Vec<u8>> = Zeroizing::new(secret.iter().map(|s| s.to_le_bytes()[0]).collect());
        let mut rng = HedgedRng::new(&secret, &[b"proof", &statement.digest()], &mut rng());
        let proof = prover.prove_with(statement, witness, &mut rng, &mut on_stage)?;
        progress(Proving::Check);
        verifier.verify(statement, &proof).map_err(ProvingError::Malformed)?;
        let mut bytes = [0; PROOF_BYTES];
        bytes.copy_from_slice(&proof.encode());
        Ok(EncodedProof(bytes))
    }
}

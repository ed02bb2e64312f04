//! The owners' side of the encrypted balances: keys, ciphertexts, proofs.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use ark_bls12_381::Bls12_381;
use blindfold_confidential::circuits::{
    Randomness, Refresh, Registration, RegistrationWitness, Transfer as TransferCircuit, TransferWitness,
    Withdrawal,
};
use blindfold_confidential::executor::Groth16Proofs;
use blindfold_confidential::state::{Account, Claim, Premises, Settings};
use blindfold_confidential::transaction::{
    ConfidentialTransaction, EncodedProof, PROOF_BYTES, Register, TRANSFER_RECIPIENTS, Transfer,
};
use blindfold_confidential::{Fr, LIMBS, Ring, secret_commitment};
use blindfold_groth16::{Circuit, Prover, Recent, Verifier, setup};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{EncryptionWitness, PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

use super::plan::FEE;

/// Seed of the development set-up: whoever knows it can forge proofs.
const SETUP_SEED: [u8; 32] = [0xde; 32];

/// Before there is a proof or a signature.
pub(super) const UNPROVED: EncodedProof = EncodedProof([0; PROOF_BYTES]);
pub(super) const UNSIGNED: Signature65 = Signature65([0; 65]);

/// An account's secrets.
pub(super) struct Owner {
    pub(super) signing: SigningKey,
    pub(super) secret: SecretKey,
}

/// Provers of what is proved here, verifiers of everything.
pub(super) struct Provers {
    registration: Prover<Bls12_381, Registration>,
    transfer: Prover<Bls12_381, TransferCircuit>,
    pub(super) proofs: Groth16Proofs,
}

fn prover<C: Circuit<Fr>>(circuit: C) -> Result<Prover<Bls12_381, C>> {
    let key = setup::development(&circuit, &SETUP_SEED)?;
    Ok(Prover::new(circuit, key)?)
}

fn verifier<C: Circuit<Fr>>(prover: &Prover<Bls12_381, C>) -> Verifier<Bls12_381> {
    Verifier::new(prover.key().verifying().clone())
}

impl Provers {
    /// The development set-up of all four statements: seconds each.
    pub(super) fn new(ring: Ring) -> Result<Self> {
        let registration = prover(Registration(ring))?;
        let transfer = prover(TransferCircuit(ring))?;
        let proofs = Groth16Proofs {
            registration: verifier(&registration),
            transfer: verifier(&transfer),
            refresh: verifier(&prover(Refresh(ring))?),
            withdrawal: verifier(&prover(Withdrawal(ring))?),
            recent: Recent::default(),
        };
        Ok(Self { registration, transfer, proofs })
    }

    /// Rows of a transfer's circuit.
    pub(super) fn transfer_constraints(&self) -> usize {
        self.transfer.r1cs().constraints()
    }

    /// A proved and signed registration.
    pub(super) fn register(&self, settings: &Settings, owner: &Owner, rng: &mut StdRng) -> Result<Vec<u8>> {
        let Owner { signing, secret } = owner;
        let mut register = Register {
            owner: signing.address(),
            key: secret.public_key(),
            secret_commitment: secret_commitment(secret.coefficients()),
            proof: UNPROVED,
            signature: UNSIGNED,
        };
        let unproved = ConfidentialTransaction::Register(Box::new(register.clone()));
        let Some(Claim::Registration(statement)) = Claim::new(settings, &unproved, &Premises::None)? else {
            bail!("a registration claims something else");
        };
        let witness = RegistrationWitness {
            statement: *statement,
            secret: coefficients(secret),
            error: Zeroizing::new(secret.error().to_vec()),
        };
        register.proof = prove(&self.registration, &witness.statement, &witness, rng)?;
        let mut transaction = ConfidentialTransaction::Register(Box::new(register));
        transaction.sign(settings.domain(), signing);
        Ok(transaction.encode())
    }

    /// A proved transfer of an account as it is, and what its proof is about.
    pub(super) fn transfer(
        &self,
        draft: Draft<'_>,
        settings: &Settings,
        rng: &mut StdRng,
    ) -> Result<(Transfer, Claim)> {
        let Draft { public, owner, sender, receiver, keys, amount } = draft;
        let limbs = balance::limbs(amount);
        let encryption = EncryptionWitness::sample(public.parameters(), TRANSFER_RECIPIENTS, &limbs, rng)?;
        let mut transfer = Transfer {
            sender: sender.identity.owner,
            receiver: receiver.identity.owner,
            nonce: sender.nonce,
            fee: FEE,
            amount: encryption.encrypt(public, &keys)?,
            proof: UNPROVED,
        };
        let premises = Premises::Payment(Arc::clone(sender), receiver.identity.key.clone());
        let unproved = ConfidentialTransaction::Transfer(Box::new(transfer.clone()));
        let claim = Claim::new(settings, &unproved, &premises)?.context("a transfer claims something")?;
        let Claim::Transfer(statement) = &claim else { bail!("a transfer claims something else") };
        let witness = TransferWitness {
            statement: (**statement).clone(),
            secret: coefficients(&owner.secret),
            amount: Zeroizing::new(amount),
            randomness: randomness(&encryption)?,
        };
        transfer.proof = prove(&self.transfer, &witness.statement, &witness, rng)?;
        Ok((transfer, claim))
    }
}

/// A transfer to be made.
pub(super) struct Draft<'a> {
    pub(super) public: &'a Arc<PublicPolynomial>,
    pub(super) owner: &'a Owner,
    pub(super) sender: &'a Arc<Account>,
    pub(super) receiver: &'a Arc<Account>,
    /// Sender's, receiver's, auditor's.
    pub(super) keys: [&'a PublicKey; TRANSFER_RECIPIENTS],
    pub(super) amount: u64,
}

fn prove<C: Circuit<Fr>>(
    prover: &Prover<Bls12_381, C>,
    statement: &C::Statement,
    witness: &C::Witness,
    rng: &mut StdRng,
) -> Result<EncodedProof> {
    let bytes = prover.prove(statement, witness, rng)?.encode();
    Ok(EncodedProof(<[u8; PROOF_BYTES]>::try_from(&bytes[..])?))
}

fn coefficients(secret: &SecretKey) -> Zeroizing<Vec<i8>> {
    Zeroizing::new(secret.coefficients().to_vec())
}

fn randomness(witness: &EncryptionWitness) -> Result<Randomness<TRANSFER_RECIPIENTS>> {
    let errors: Vec<Zeroizing<[i8; LIMBS]>> =
        witness.e0().map(|e0| Ok(Zeroizing::new(e0.try_into()?))).collect::<Result<_>>()?;
    Ok(Randomness {
        u: Zeroizing::new(witness.u().to_vec()),
        e1: Zeroizing::new(witness.e1().to_vec()),
        e0: errors.try_into().map_err(|_| anyhow!("a transfer has {TRANSFER_RECIPIENTS} recipients"))?,
    })
}

//! Opening an account, and what its owner signs.

use rand_core::CryptoRng;
use tari_bulletproofs_plus::Transcript;

use crate::elgamal::{Generators, PublicKey, SecretKey};
use crate::sigma::{Equation, SigmaProof};
use crate::{Address, tags};

fn knows(generators: &Generators, key: &PublicKey) -> [Equation; 1] {
    [Equation { image: key.0, terms: vec![(0, generators.blinding)] }]
}

fn transcript(tag: &'static [u8], domain: &[u8], owner: &Address, key: &PublicKey, nonce: u64) -> Transcript {
    let mut transcript = Transcript::new(tag);
    transcript.append_message(b"domain", domain);
    transcript.append_message(b"owner", owner);
    transcript.append_message(b"key", key.0.compress().as_bytes());
    transcript.append_u64(b"nonce", nonce);
    transcript
}

/// A key, and that its owner knows the secret.
#[derive(Debug, Clone)]
pub struct Register {
    /// Address of the account.
    pub owner: Address,
    /// The public key t·G.
    pub key: PublicKey,
    /// Proof of knowledge of t, the secret key.
    pub proof: SigmaProof,
}

impl Register {
    /// Two multiplications.
    pub fn new(
        generators: &Generators,
        domain: &[u8],
        owner: Address,
        secret: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let key = secret.public_key(generators);
        let mut transcript = transcript(tags::REGISTRATION, domain, &owner, &key, 0);
        let proof = SigmaProof::new(&mut transcript, &knows(generators, &key), &[secret.0], rng);
        Self { owner, key, proof }
    }

    pub(crate) fn verify(&self, generators: &Generators, domain: &[u8], rng: &mut impl CryptoRng) -> bool {
        let mut transcript = transcript(tags::REGISTRATION, domain, &self.owner, &self.key, 0);
        self.proof.verify(&mut transcript, &knows(generators, &self.key), rng)
    }
}

/// Adds the pending balance to the available one: a signature of the account's key.
#[derive(Debug, Clone)]
pub struct Rollover {
    /// Address of the account.
    pub account: Address,
    /// The account's nonce that it uses.
    pub nonce: u64,
    /// Proof of knowledge of t, the secret key.
    pub proof: SigmaProof,
}

impl Rollover {
    /// Two multiplications.
    pub fn new(
        generators: &Generators,
        domain: &[u8],
        account: Address,
        nonce: u64,
        secret: &SecretKey,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let key = secret.public_key(generators);
        let mut transcript = transcript(tags::ROLLOVER, domain, &account, &key, nonce);
        let proof = SigmaProof::new(&mut transcript, &knows(generators, &key), &[secret.0], rng);
        Self { account, nonce, proof }
    }

    pub(crate) fn verify(
        &self,
        generators: &Generators,
        domain: &[u8],
        key: &PublicKey,
        rng: &mut impl CryptoRng,
    ) -> bool {
        let mut transcript = transcript(tags::ROLLOVER, domain, &self.account, key, self.nonce);
        self.proof.verify(&mut transcript, &knows(generators, key), rng)
    }
}

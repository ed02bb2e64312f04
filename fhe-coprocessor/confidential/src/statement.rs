//! What statements are made of, and how they are bound.
//!
//! A statement's digest is Keccak-256 of its tag and of every public value in a fixed order, each with a fixed length;
//! polynomials enter by their hashes. The proof's challenges depend on that digest, on the verifying key (which names the
//! circuit and the ring) and on the commitment. So a proof is one for this deployment, account, nonce, key and
//! ciphertext, and nothing public can be chosen after the challenges are known.

use alloy_primitives::{Address, B256, Keccak256};
use ark_ff::{BigInteger, PrimeField};

use crate::evaluation::Powers;
use crate::gadgets::encryption::packing;
use crate::polynomial::Polynomial;
use crate::ring::Ring;
use crate::{Fr, LIMBS};

/// The deployment a statement is made for. A proof for another chain or contract is no proof here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain {
    /// Chain id of L1, in the signatures' domain.
    pub l1_chain_id: u64,
    /// Chain id of the rollup.
    pub chain_id: u64,
    /// The contract that holds the wrapped tokens.
    pub contract: Address,
}

/// A sum of ciphertexts of one account: c1, and c0 at the limbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ciphertext {
    /// The component c1, a whole polynomial.
    pub c1: Polynomial,
    /// The component c0, at the coefficients of the limbs alone.
    pub c0: [u64; LIMBS],
}

/// The account that a statement is about, as the state has it: never by the sender's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The deployment that it is for.
    pub domain: Domain,
    /// Address of the account's owner.
    pub account: Address,
    /// Its nonce: `available` changes only together with it.
    pub nonce: u64,
    /// Poseidon of its secret: [`crate::secret_commitment`].
    pub secret_commitment: Fr,
    /// What the account has available.
    pub available: Ciphertext,
}

/// A ciphertext that is claimed to be fresh, for K recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshCiphertext<const K: usize> {
    /// The common public polynomial a.
    pub a: Polynomial,
    /// The recipients' keys b, from the state.
    pub keys: [Polynomial; K],
    /// c1 = a·u + e1.
    pub c1: Polynomial,
    /// c0 of each recipient at the limbs.
    pub c0: [[u64; LIMBS]; K],
}

impl Holding {
    /// c1(τ), and Σ c0_j·τ^j.
    pub(crate) fn derived(&self, powers: &Powers) -> [Fr; 2] {
        [powers.evaluate(&self.available.c1), powers.evaluate_limbs(&self.available.c0)]
    }
}

impl<const K: usize> FreshCiphertext<K> {
    pub(crate) fn polynomials(&self) -> impl Iterator<Item = &Polynomial> {
        [&self.a, &self.c1].into_iter().chain(&self.keys)
    }

    /// a(τ), c1(τ), Σ_i P^i·b_i(τ) and Σ_i P^i·Σ_j c0_ij·τ^j with the packing factor P.
    pub(crate) fn derived(&self, powers: &Powers) -> [Fr; 4] {
        let keys = packing().zip(&self.keys).map(|(factor, key)| factor * powers.evaluate(key));
        let c0 = packing().zip(&self.c0).map(|(factor, limbs)| factor * powers.evaluate_limbs(limbs));
        let [a, c1] = [&self.a, &self.c1].map(|polynomial| powers.evaluate(polynomial));
        [a, c1, keys.sum(), c0.sum()]
    }
}

/// Collects what a statement binds, everything with a fixed length.
pub(crate) struct Binding(Keccak256);

impl Binding {
    pub(crate) fn new(tag: &[u8], domain: &Domain) -> Self {
        let mut hash = Keccak256::new();
        hash.update(tag);
        hash.update(domain.l1_chain_id.to_be_bytes());
        hash.update(domain.chain_id.to_be_bytes());
        hash.update(domain.contract);
        Self(hash)
    }

    /// A statement about an account's available balance.
    pub(crate) fn of_holding(tag: &[u8], holding: &Holding) -> Self {
        Self::new(tag, &holding.domain)
            .account(&holding.account)
            .word(holding.nonce)
            .element(&holding.secret_commitment)
            .polynomial(&holding.available.c1)
            .limbs(&holding.available.c0)
    }

    pub(crate) fn fresh<const K: usize>(self, ciphertext: &FreshCiphertext<K>) -> Self {
        let start = self.polynomial(&ciphertext.a).polynomial(&ciphertext.c1);
        ciphertext
            .keys
            .iter()
            .zip(&ciphertext.c0)
            .fold(start, |hash, (key, c0)| hash.polynomial(key).limbs(c0))
    }

    pub(crate) fn account(mut self, account: &Address) -> Self {
        self.0.update(account);
        self
    }

    pub(crate) fn word(mut self, word: u64) -> Self {
        self.0.update(word.to_be_bytes());
        self
    }

    pub(crate) fn element(mut self, element: &Fr) -> Self {
        self.0.update(element.into_bigint().to_bytes_be());
        self
    }

    pub(crate) fn polynomial(mut self, polynomial: &Polynomial) -> Self {
        self.0.update(polynomial.hash());
        self
    }

    pub(crate) fn limbs(self, limbs: &[u64; LIMBS]) -> Self {
        limbs.iter().fold(self, |hash, limb| hash.word(*limb))
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let hash: B256 = self.0.finalize();
        hash.0
    }
}

/// Identity of a circuit: its name and everything that its rows depend on.
pub(crate) fn circuit_id(tag: &[u8], ring: &Ring) -> [u8; 32] {
    let mut hash = Keccak256::new();
    hash.update(tag);
    for number in [ring.degree() as u64, ring.modulus(), ring.plaintext(), ring.delta()] {
        hash.update(number.to_be_bytes());
    }
    hash.finalize().0
}

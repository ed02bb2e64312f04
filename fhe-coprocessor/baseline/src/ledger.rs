//! Accounts, and batches of spends on them.

use std::collections::BTreeMap;

use curve25519_dalek::{RistrettoPoint, traits::Identity};
use rand_core::{CryptoRng, SeedableRng};
use rayon::prelude::*;
use tari_bulletproofs_plus::Transcript;

use crate::elgamal::{Ciphertext, Generators, PublicKey};
use crate::registration::{Register, Rollover};
use crate::spend::{MessageError, Outlay, Premises, Spend, verify_together};
use crate::{Address, tags};

/// One account of the baseline's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's public key.
    pub key: PublicKey,
    /// What can be spent, encrypted.
    pub available: Ciphertext,
    /// What came in since the last rollover.
    pub pending: Ciphertext,
    /// Spends and rollovers so far.
    pub nonce: u64,
}

/// Why a transaction changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The bytes are no transaction.
    #[error(transparent)]
    Malformed(#[from] MessageError),
    /// The account is registered already.
    #[error("the account is registered already")]
    Registered,
    /// There is no such account.
    #[error("the account is not registered")]
    Unregistered,
    /// The key is the identity.
    #[error("the key is the identity: its ciphertexts would be open")]
    Key,
    /// The nonce is not the account's.
    #[error("the nonce must be {expected}")]
    Nonce {
        /// The nonce that the account has.
        expected: u64,
    },
    /// The fee is below the minimum.
    #[error("the fee must be at least {minimum} base units")]
    Fee {
        /// The least fee, in base units.
        minimum: u64,
    },
    /// Sender and receiver are one account.
    #[error("sender and receiver are the same account")]
    Oneself,
    /// The public balance is smaller, or would pass 2^64.
    #[error("the public balance does not allow it")]
    Public,
    /// The proof does not hold.
    #[error("the proof does not hold")]
    Proof,
}

/// What all executors must agree on.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Generators.
    pub generators: Generators,
    /// The deployment, bound into every proof.
    pub domain: Vec<u8>,
    /// The auditor's public key.
    pub auditor: PublicKey,
    /// The account that gets the fees.
    pub operator: Address,
    /// The least fee, in base units.
    pub minimum_fee: u64,
}

/// The accounts of a deployment.
#[derive(Debug, Clone)]
pub struct Ledger {
    settings: Settings,
    accounts: BTreeMap<Address, Account>,
    public: BTreeMap<Address, u64>,
}

impl Ledger {
    /// Public balances, no account.
    #[must_use]
    pub fn new(settings: Settings, public: BTreeMap<Address, u64>) -> Self {
        Self { settings, accounts: BTreeMap::new(), public }
    }

    /// What the executors agree on.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// One account of the baseline's ledger.
    #[must_use]
    pub fn account(&self, owner: &Address) -> Option<&Account> {
        self.accounts.get(owner)
    }

    /// A public balance, in base units.
    #[must_use]
    pub fn public_balance(&self, address: &Address) -> u64 {
        self.public.get(address).copied().unwrap_or(0)
    }

    /// What a spend of an account is proved about.
    ///
    /// # Errors
    /// [`Refusal::Unregistered`].
    pub fn premises(&self, account: &Address, receiver: Option<&Address>) -> Result<Premises, Refusal> {
        let key = |owner| self.accounts.get(owner).map(|account| account.key).ok_or(Refusal::Unregistered);
        let account = self.accounts.get(account).ok_or(Refusal::Unregistered)?;
        Ok(Premises {
            sender: account.key,
            available: account.available,
            receiver: receiver.map(key).transpose()?,
            auditor: self.settings.auditor,
        })
    }

    /// Opens an account.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn register(&mut self, register: &Register, rng: &mut impl CryptoRng) -> Result<(), Refusal> {
        if self.accounts.contains_key(&register.owner) {
            return Err(Refusal::Registered);
        }
        if register.key.0 == RistrettoPoint::identity() {
            return Err(Refusal::Key);
        }
        if !register.verify(&self.settings.generators, &self.settings.domain, rng) {
            return Err(Refusal::Proof);
        }
        let zero = Ciphertext::zero();
        let account = Account { key: register.key, available: zero, pending: zero, nonce: 0 };
        self.accounts.insert(register.owner, account);
        Ok(())
    }

    /// Moves a public amount into an account's pending balance, on the caller's word.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn deposit(&mut self, from: &Address, to: &Address, amount: u64) -> Result<(), Refusal> {
        let account = self.accounts.get_mut(to).ok_or(Refusal::Unregistered)?;
        let balance = self.public.get_mut(from).ok_or(Refusal::Public)?;
        *balance = balance.checked_sub(amount).ok_or(Refusal::Public)?;
        account.pending = account.pending + Ciphertext::public(&self.settings.generators, amount);
        Ok(())
    }

    /// Adds the pending balance to the available one.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn rollover(&mut self, rollover: &Rollover, rng: &mut impl CryptoRng) -> Result<(), Refusal> {
        let Settings { generators, domain, .. } = &self.settings;
        let account = self.accounts.get_mut(&rollover.account).ok_or(Refusal::Unregistered)?;
        if rollover.nonce != account.nonce {
            return Err(Refusal::Nonce { expected: account.nonce });
        }
        if !rollover.verify(generators, domain, &account.key, rng) {
            return Err(Refusal::Proof);
        }
        account.available = account.available + account.pending;
        account.pending = Ciphertext::zero();
        account.nonce += 1;
        Ok(())
    }

    /// Executes encoded spends in order: decoded on all threads, assumed to be proved while their premises are collected,
    /// then verified together on all threads. Only if that fails, one by one.
    pub fn execute<R>(&mut self, batch: &[Vec<u8>], rng: &mut R) -> Vec<Result<(), Refusal>>
    where
        R: CryptoRng + SeedableRng<Seed = [u8; 32]> + Send,
    {
        let spends: Vec<Result<Spend, MessageError>> =
            batch.par_iter().map(|bytes| Spend::decode(bytes)).collect();
        let mut assumed = self.clone();
        let mut claims = vec![];
        let results: Vec<Result<(), Refusal>> = spends
            .iter()
            .map(|spend| {
                let spend = spend.as_ref().map_err(|fault| *fault)?;
                let premises = assumed.check(spend)?;
                assumed.apply(spend)?;
                claims.push((spend, premises));
                Ok(())
            })
            .collect();
        if self.verify(&claims, rng) {
            *self = assumed;
            return results;
        }
        spends.into_iter().map(|spend| self.execute_one(&spend?, rng)).collect()
    }

    /// Whether all spends are proved, each about its premises: in as many parts as there are threads.
    pub fn verify<R>(&self, claims: &[(&Spend, Premises)], rng: &mut R) -> bool
    where
        R: CryptoRng + SeedableRng<Seed = [u8; 32]>,
    {
        let part = claims.len().div_ceil(rayon::current_num_threads()).max(1);
        let mut seeds = vec![[0; 32]; claims.len().div_ceil(part)];
        seeds.iter_mut().for_each(|seed| rng.fill_bytes(seed));
        let Settings { generators, domain, .. } = &self.settings;
        claims.par_chunks(part).zip(seeds).all(|(claims, seed)| {
            let claims: Vec<(&Spend, &Premises)> =
                claims.iter().map(|(spend, premises)| (*spend, premises)).collect();
            verify_together(generators, domain, &claims, &mut R::from_seed(seed))
        })
    }

    fn execute_one(&mut self, spend: &Spend, rng: &mut impl CryptoRng) -> Result<(), Refusal> {
        let premises = self.check(spend)?;
        let Settings { generators, domain, .. } = &self.settings;
        if !verify_together(generators, domain, &[(spend, &premises)], rng) {
            return Err(Refusal::Proof);
        }
        self.apply(spend)
    }

    /// Everything but the proof.
    fn check(&self, spend: &Spend) -> Result<Premises, Refusal> {
        let receiver = match &spend.outlay {
            Outlay::Transfer { receiver, .. } => Some(receiver),
            Outlay::Withdraw { .. } => None,
        };
        let premises = self.premises(&spend.account, receiver)?;
        if let Some(receiver) = receiver {
            if *receiver == spend.account {
                return Err(Refusal::Oneself);
            }
            if spend.public < self.settings.minimum_fee {
                return Err(Refusal::Fee { minimum: self.settings.minimum_fee });
            }
        }
        let expected = self.accounts.get(&spend.account).map_or(0, |account| account.nonce);
        if spend.nonce == expected { Ok(premises) } else { Err(Refusal::Nonce { expected }) }
    }

    /// Changes the state, after [`check`](Self::check).
    fn apply(&mut self, spend: &Spend) -> Result<(), Refusal> {
        let paid = match &spend.outlay {
            Outlay::Transfer { .. } => self.settings.operator,
            Outlay::Withdraw { recipient } => *recipient,
        };
        let balance = self.public_balance(&paid).checked_add(spend.public).ok_or(Refusal::Public)?;
        let account = self.accounts.get_mut(&spend.account).ok_or(Refusal::Unregistered)?;
        account.available = spend.remainder(&self.settings.generators, &account.available);
        account.nonce += 1;
        if let Outlay::Transfer { receiver, amount } = &spend.outlay {
            let receiver = self.accounts.get_mut(receiver).ok_or(Refusal::Unregistered)?;
            let [_, (_, handle), _] = amount.handles;
            receiver.pending = receiver.pending + Ciphertext { handle, commitment: amount.commitment.1 };
        }
        self.public.insert(paid, balance);
        Ok(())
    }

    /// A digest of the whole state: equal for executors that agree.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new(tags::STATE);
        for (owner, account) in &self.accounts {
            transcript.append_message(b"owner", owner);
            transcript.append_message(b"key", account.key.0.compress().as_bytes());
            transcript.append_message(b"available", &account.available.encode());
            transcript.append_message(b"pending", &account.pending.encode());
            transcript.append_u64(b"nonce", account.nonce);
        }
        for (address, balance) in &self.public {
            transcript.append_message(b"address", address);
            transcript.append_u64(b"balance", *balance);
        }
        let mut digest = [0; 32];
        transcript.challenge_bytes(b"digest", &mut digest);
        digest
    }
}

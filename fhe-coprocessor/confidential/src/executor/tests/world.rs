//! A small deployment over the toy set, with owners who keep their secrets.
//!
//! Proofs are doubles: a proof is a hash of the statement that only [`World::prove`] makes, after it has looked at the
//! secrets and found the statement true. So every field that a statement binds is bound here as well.

use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{EncryptionWitness, Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::executor::{Check, Executed, Proofs, Receipt, execute};
use crate::secret_commitment;
use crate::state::{Account, Claim, Genesis, MemoryStorage, Premises, Refusal, Settings, Storage};
use crate::statement::Domain;
use crate::transaction::{
    ConfidentialTransaction as T, Deposit, EncodedProof, PROOF_BYTES, Refresh, Register, Rollover, Transfer,
    Withdraw,
};

pub(crate) const SUPPLY: u64 = 1 << 40;
pub(crate) const MINIMUM_FEE: u64 = 3;

pub(crate) struct Owner {
    pub(crate) signing: SigningKey,
    pub(crate) secret: SecretKey,
}

impl Owner {
    pub(crate) fn address(&self) -> Address {
        self.signing.address()
    }
}

/// A proof of the double for a statement.
pub(crate) fn honest(claim: &Claim) -> EncodedProof {
    let mut proof = [0; PROOF_BYTES];
    let digest = claim.statement().digest();
    proof[..32].copy_from_slice(&*keccak256([b"honest".as_slice(), &digest].concat()));
    EncodedProof(proof)
}

pub(crate) struct Double;

impl Proofs for Double {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        checks.iter().map(|check| *check.proof == honest(check.claim)).collect()
    }
}

pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) public: Arc<PublicPolynomial>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) auditor: SecretKey,
    pub(crate) operator: Address,
    pub(crate) storage: MemoryStorage,
    pub(crate) rng: ChaCha20Rng,
}

pub(crate) fn domain() -> Domain {
    Domain { l1_chain_id: 1, chain_id: 42, contract: Address::repeat_byte(0xcc) }
}

pub(crate) fn no_proof() -> EncodedProof {
    EncodedProof([0; PROOF_BYTES])
}

impl World {
    /// Owners with a public balance and no account yet; the first of them has what the others leave of [`SUPPLY`].
    pub(crate) fn new(owners: u8) -> Self {
        let parameters = Parameters::toy().unwrap();
        let public = PublicPolynomial::insecure(&parameters, &[7; 32]);
        let owners: Vec<Owner> = (1..=owners)
            .map(|seed| Owner {
                signing: SigningKey::from_bytes(&[seed; 32]).unwrap(),
                secret: SecretKey::derive(&public, &[seed; 32]),
            })
            .collect();
        let auditor = SecretKey::derive(&public, &[0xaa; 32]);
        let operator = Address::repeat_byte(0x0f);
        let settings =
            Settings::new(domain(), &public, &auditor.public_key(), operator, MINIMUM_FEE).unwrap();
        let share = SUPPLY / owners.len() as u64;
        let mut allocations: Vec<(Address, u64)> =
            owners.iter().map(|owner| (owner.address(), share)).collect();
        allocations[0].1 += SUPPLY - share * owners.len() as u64;
        let storage = MemoryStorage::new(&Genesis::new(&allocations).unwrap());
        Self { settings, public, owners, auditor, operator, storage, rng: ChaCha20Rng::seed_from_u64(5) }
    }

    /// All owners registered, with `amount` available to each.
    pub(crate) fn funded(owners: u8, amount: u64) -> Self {
        let mut world = Self::new(owners);
        for owner in 0..owners.into() {
            let register = world.register(owner);
            world.apply(register);
            let deposit = world.deposit(owner, owner, amount);
            world.apply(deposit);
            let rollover = world.rollover(owner);
            world.apply(rollover);
        }
        world
    }

    pub(crate) fn address(&self, owner: usize) -> Address {
        self.owners[owner].address()
    }

    pub(crate) fn account(&self, owner: usize) -> Arc<Account> {
        self.storage.account(&self.address(owner)).unwrap().unwrap()
    }

    pub(crate) fn public_balance(&self, address: &Address) -> u64 {
        self.storage.public_account(address).unwrap().map_or(0, |account| account.balance)
    }

    /// What an owner reads: available, pending.
    pub(crate) fn balances(&self, owner: usize) -> [u64; 2] {
        let account = self.account(owner);
        let secret = &self.owners[owner].secret;
        [&account.available, &account.pending].map(|sum| balance::decrypt(secret, sum.ciphertext()).unwrap())
    }

    pub(crate) fn execute(&self, batch: &[Vec<u8>]) -> Executed {
        let Ok(executed) = execute(&self.settings, &self.storage, &Double, *self.storage.head(), batch);
        executed
    }

    /// Executes and stores one transaction.
    pub(crate) fn submit(&mut self, transaction: &T) -> Receipt {
        let executed = self.execute(&[transaction.encode()]);
        self.storage.commit(&executed);
        executed.receipts[0]
    }

    pub(crate) fn apply(&mut self, transaction: T) {
        assert_eq!(self.submit(&transaction).outcome, Ok(()), "{}", transaction.kind_name());
    }

    /// Executes what must be refused, and finds the state as it was.
    pub(crate) fn refuse(&mut self, transaction: &T, refusal: Refusal) {
        self.refuse_bytes(&transaction.encode(), refusal);
    }

    pub(crate) fn refuse_bytes(&mut self, bytes: &[u8], refusal: Refusal) {
        let before = *self.storage.head();
        let executed = self.execute(&[bytes.to_vec()]);
        let receipt = Receipt {
            id: keccak256(bytes),
            outcome: Err(refusal),
            version: before.version,
            root: before.state_root(),
        };
        assert_eq!(executed.receipts, [receipt]);
        assert_eq!(executed.head, before);
        assert!(executed.accounts.is_empty() && executed.public.is_empty());
        assert!(executed.account_nodes.is_empty() && executed.public_nodes.is_empty());
    }

    fn signed(&self, mut transaction: T, owner: usize) -> T {
        transaction.sign(self.settings.domain(), &self.owners[owner].signing);
        transaction
    }

    pub(crate) fn register(&self, owner: usize) -> T {
        let Owner { signing, secret } = &self.owners[owner];
        let mut register = Register {
            owner: signing.address(),
            key: secret.public_key(),
            secret_commitment: secret_commitment(secret.coefficients()),
            proof: no_proof(),
            signature: Signature65([0; 65]),
        };
        let claim = self.claim(&T::Register(Box::new(register.clone())), &Premises::None);
        register.proof = honest(&claim);
        self.signed(T::Register(Box::new(register)), owner)
    }

    pub(crate) fn deposit(&self, from: usize, to: usize, amount: u64) -> T {
        let nonce =
            self.storage.public_account(&self.address(from)).unwrap().map_or(0, |public| public.nonce);
        self.deposit_at(from, to, amount, nonce)
    }

    pub(crate) fn deposit_at(&self, from: usize, to: usize, amount: u64, nonce: u64) -> T {
        let signature = Signature65([0; 65]);
        let (payer, account) = (self.address(from), self.address(to));
        self.signed(T::Deposit(Deposit { from: payer, account, amount, nonce, signature }), from)
    }

    pub(crate) fn rollover(&self, owner: usize) -> T {
        self.rollover_at(owner, self.account(owner).nonce)
    }

    pub(crate) fn rollover_at(&self, owner: usize, nonce: u64) -> T {
        let signature = Signature65([0; 65]);
        self.signed(T::Rollover(Rollover { account: self.address(owner), nonce, signature }), owner)
    }

    pub(crate) fn transfer(&mut self, from: usize, to: usize, amount: u64, fee: u64) -> T {
        self.transfer_to(from, to, amount, fee, &self.account(from))
    }

    /// A transfer from an account as the sender takes it to be.
    pub(crate) fn transfer_to(
        &mut self,
        from: usize,
        to: usize,
        amount: u64,
        fee: u64,
        sender: &Account,
    ) -> T {
        let (mut transfer, _) = self.unproved_transfer(from, to, amount, fee, sender.nonce);
        let held = balance::decrypt(&self.owners[from].secret, sender.available.ciphertext()).unwrap();
        if held.checked_sub(fee).is_some_and(|held| held >= amount) {
            let key = self.owners[to].secret.public_key();
            let key = self.settings.polynomial(key.polynomial()).unwrap();
            let premises = Premises::Payment(Arc::new(sender.clone()), key);
            let claim = self.claim(&T::Transfer(Box::new(transfer.clone())), &premises);
            transfer.proof = honest(&claim);
        }
        T::Transfer(Box::new(transfer))
    }

    /// A transfer without a proof, and the randomness of its ciphertext.
    pub(crate) fn unproved_transfer(
        &mut self,
        from: usize,
        to: usize,
        amount: u64,
        fee: u64,
        nonce: u64,
    ) -> (Transfer, EncryptionWitness) {
        let keys = [from, to].map(|owner| self.owners[owner].secret.public_key());
        let auditor = self.auditor.public_key();
        let recipients = [&keys[0], &keys[1], &auditor];
        let (ciphertext, witness) =
            balance::encrypt(&self.public, &recipients, amount, &mut self.rng).unwrap();
        let (sender, receiver) = (self.address(from), self.address(to));
        (Transfer { sender, receiver, nonce, fee, amount: ciphertext, proof: no_proof() }, witness)
    }

    pub(crate) fn refresh(&mut self, owner: usize) -> T {
        let (mut refresh, _) = self.unproved_refresh(owner);
        let premises = Premises::Account(self.account(owner));
        let claim = self.claim(&T::Refresh(Box::new(refresh.clone())), &premises);
        refresh.proof = honest(&claim);
        T::Refresh(Box::new(refresh))
    }

    /// A refresh without a proof, and the randomness of its ciphertext.
    pub(crate) fn unproved_refresh(&mut self, owner: usize) -> (Refresh, EncryptionWitness) {
        let account = self.account(owner);
        let secret = &self.owners[owner].secret;
        let held = balance::decrypt(secret, account.available.ciphertext()).unwrap();
        let key = secret.public_key();
        let (balance, witness) = balance::encrypt(&self.public, &[&key], held, &mut self.rng).unwrap();
        let owner = self.address(owner);
        (Refresh { account: owner, nonce: account.nonce, balance, proof: no_proof() }, witness)
    }

    pub(crate) fn withdraw(&self, owner: usize, recipient: Address, amount: u64) -> T {
        let account = self.account(owner);
        let mut withdraw = Withdraw {
            account: self.address(owner),
            nonce: account.nonce,
            amount,
            recipient,
            proof: no_proof(),
        };
        let held = balance::decrypt(&self.owners[owner].secret, account.available.ciphertext()).unwrap();
        if held >= amount {
            let claim = self.claim(&T::Withdraw(Box::new(withdraw.clone())), &Premises::Account(account));
            withdraw.proof = honest(&claim);
        }
        T::Withdraw(Box::new(withdraw))
    }

    pub(crate) fn claim(&self, transaction: &T, premises: &Premises) -> Claim {
        Claim::new(&self.settings, transaction, premises).unwrap().unwrap()
    }

    /// Nothing is made or lost, the turnstile counts right, and every account has its proof under the newest root.
    pub(crate) fn check_invariants(&self) {
        let head = *self.storage.head();
        let public: u64 = self.storage.public().map(|(_, account)| account.balance).sum();
        assert_eq!(public + head.confidential, SUPPLY);
        let registered = |owner: &usize| self.storage.account(&self.address(*owner)).unwrap().is_some();
        let held: u64 = (0..self.owners.len())
            .filter(registered)
            .map(|owner| self.balances(owner).iter().sum::<u64>())
            .sum();
        assert_eq!(held, head.confidential);
        for account in self.storage.accounts() {
            let index = account.identity.index;
            let proof = self.storage.prove(crate::state::Tree::Accounts, head.version, head.accounts, index);
            assert_eq!(proof.root(index, &account.leaf()), head.accounts_root);
        }
        for (address, account) in self.storage.public() {
            let proof = self.storage.prove(
                crate::state::Tree::Public,
                head.version,
                head.public_accounts,
                account.index,
            );
            assert_eq!(proof.root(account.index, &account.leaf(address)), head.public_root);
        }
        assert_ne!(head.state_root(), B256::ZERO);
    }
}

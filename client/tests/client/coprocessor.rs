//! A deployment of confidential balances, and a coprocessor's disk with what was executed here; it believes every proof.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use blindfold_client::confidential::{
    Allocation, ConfidentialDeployment, ConfidentialWallet, VerifiedState, VerifiedTransaction,
    account_secret,
};
use blindfold_confidential::executor::{Check, Proofs};
use blindfold_confidential::secret_commitment;
use blindfold_confidential::state::Settings;
use blindfold_confidential::transaction::{
    ConfidentialTransaction, EncodedProof, PROOF_BYTES, Register, Transfer,
};
use blindfold_coprocessor::{CommittedItem, Ledger, Machine, batch_record};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_runtime::{blocking, rng};
use blindfold_store::{ConfidentialStore, SqlStore};

use crate::common::{chain, key};

pub const MINIMUM_FEE: u64 = 10;
pub const ALLOCATION: u64 = 1_000;
pub const AUDITOR_SEED: [u8; 32] = [0xa0; 32];
pub const NO_PROOF: EncodedProof = EncodedProof([0; PROOF_BYTES]);
const UNSIGNED: Signature65 = Signature65([0; 65]);

pub fn deployment() -> ConfidentialDeployment {
    let parameters = blindfold_rlwe::rlwe::Parameters::balance().unwrap();
    let seed = [0x5e; 32];
    let public = PublicPolynomial::new(&parameters, &seed).unwrap();
    ConfidentialDeployment {
        contract: Address::repeat_byte(0x31),
        seed: B256::from(seed),
        auditor_key: Bytes::from(SecretKey::derive(&public, &AUDITOR_SEED).public_key().encode()),
        operator: Address::repeat_byte(0x32),
        minimum_fee: MINIMUM_FEE,
        allocations: vec![Allocation { owner: key(1).address(), balance: ALLOCATION }],
        keys: BTreeMap::new(),
    }
}

/// Proofs are the subject of other tests: every one holds but this.
pub struct Believed;

pub const DISBELIEVED: EncodedProof = EncodedProof([1; PROOF_BYTES]);

impl Proofs for Believed {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        checks.iter().map(|check| *check.proof != DISBELIEVED).collect()
    }
}

/// The coprocessor with its deployment.
pub struct Coprocessor {
    pub settings: Arc<Settings>,
    pub public: Arc<PublicPolynomial>,
    pub store: Arc<dyn ConfidentialStore>,
    pub state: VerifiedState,
}

impl Coprocessor {
    pub async fn start() -> Self {
        let deployment = deployment();
        let (public, settings) = deployment.settings(&chain()).unwrap();
        let store: Arc<dyn ConfidentialStore> = Arc::new(SqlStore::in_memory().unwrap());
        let genesis = deployment.genesis().unwrap();
        let ledger = ledger(&settings, &store).await;
        let first = batch_record((0, B256::ZERO), 0, Vec::new(), ledger.genesis());
        store.put_confidential_batch(first.into()).await.unwrap();
        let state = VerifiedState::open(Arc::clone(&settings), &genesis, Arc::clone(&store)).await.unwrap();
        Self { settings, public, store, state }
    }

    pub fn wallet(&self, key: SigningKey) -> ConfidentialWallet {
        ConfidentialWallet::new(self.state.clone(), Arc::clone(&self.public), key)
    }

    /// Executes a batch of one transaction; why it was refused.
    pub async fn execute(&self, bytes: &[u8]) -> Option<String> {
        let head = self.store.confidential_head().await.unwrap().unwrap();
        let mut ledger = ledger(&self.settings, &self.store).await;
        let items = vec![CommittedItem { item: 0, position: 0, bytes: bytes.to_vec() }];
        // It reads the store while it executes, on a thread that may block.
        let executed = blocking(move || {
            let execution = ledger.execute(&items).unwrap();
            (items, execution)
        });
        let (items, execution) = executed.await.unwrap();
        let refusal = execution.outcomes[0].refusal.clone();
        let number = head.number + 1;
        let batch =
            batch_record((number, B256::with_last_byte(number as u8)), head.sequence, items, execution);
        self.store.put_confidential_batch(batch.into()).await.unwrap();
        refusal
    }

    /// Executes one transaction, which must be applied.
    pub async fn apply(&self, bytes: &[u8]) -> VerifiedTransaction {
        assert_eq!(self.execute(bytes).await, None);
        let decoded = ConfidentialTransaction::decode(self.settings.parameters(), bytes).unwrap();
        self.state.confirm(&crate::confidential::shown(&decoded)).await.unwrap()
    }

    /// Registers an account with the secret of `secret`'s wallet.
    pub async fn register(&self, owner: &SigningKey, secret: &SigningKey) {
        let secret = account_secret(&self.settings, &self.public, secret);
        let mut register = ConfidentialTransaction::Register(Box::new(Register {
            owner: owner.address(),
            key: secret.public_key(),
            secret_commitment: secret_commitment(secret.coefficients()),
            proof: NO_PROOF,
            signature: UNSIGNED,
        }));
        register.sign(self.settings.domain(), owner);
        self.apply(&register.encode()).await;
    }

    /// A payment without a proof.
    pub async fn payment(&self, from: &SigningKey, to: &SigningKey, amount: u64) -> Transfer {
        let of = |key: &SigningKey| account_secret(&self.settings, &self.public, key).public_key();
        let auditor = SecretKey::derive(&self.public, &AUDITOR_SEED).public_key();
        let recipients: [&PublicKey; 3] = [&of(from), &of(to), &auditor];
        let (ciphertext, _) = balance::encrypt(&self.public, &recipients, amount, &mut rng()).unwrap();
        let sender = self.state.account(from.address()).await.unwrap().unwrap();
        Transfer {
            sender: from.address(),
            receiver: to.address(),
            nonce: sender.nonce,
            fee: MINIMUM_FEE,
            amount: ciphertext,
            proof: NO_PROOF,
        }
    }

    /// Pays.
    pub async fn pay(&self, from: &SigningKey, to: &SigningKey, amount: u64) -> VerifiedTransaction {
        let transfer = self.payment(from, to, amount).await;
        self.apply(&ConfidentialTransaction::Transfer(Box::new(transfer)).encode()).await
    }
}

async fn ledger(settings: &Arc<Settings>, store: &Arc<dyn ConfidentialStore>) -> Ledger<Believed> {
    let genesis = deployment().genesis().unwrap();
    let (settings, store) = (Arc::clone(settings), Arc::clone(store));
    Ledger::open(settings, genesis, Arc::new(Believed), store, 1).await.unwrap()
}

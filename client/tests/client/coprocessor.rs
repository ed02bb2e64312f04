//! A deployment of confidential balances, and a coprocessor that executes in memory, believes every proof, and can be
//! made to show something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use async_trait::async_trait;
use blindfold_client::confidential::{
    Allocation, ConfidentialDeployment, ConfidentialWallet, account_secret,
};
use blindfold_confidential::executor::{Check, Proofs, execute};
use blindfold_confidential::secret_commitment;
use blindfold_confidential::state::{Account, MemoryStorage, Settings, Storage, Sum, Tree};
use blindfold_confidential::transaction::{
    ConfidentialTransaction, EncodedProof, PROOF_BYTES, Register, Transfer,
};
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{PublicKey, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_rpc::confidential::{
    ConfidentialAccount, ConfidentialApiServer, ConfidentialCiphertext, ConfidentialParameters,
    ConfidentialStatus, ConfidentialTransactionInfo, PublicBalance,
};
use blindfold_rpc::{ClientConfig, RpcError, ServerConfig, ServerHandle, http_client, serve};
use parking_lot::Mutex;

use crate::common::{chain, key};

pub const MINIMUM_FEE: u64 = 10;
pub const ALLOCATION: u64 = 1_000;
pub const AUDITOR_SEED: [u8; 32] = [0xa0; 32];
const NO_PROOF: EncodedProof = EncodedProof([0; PROOF_BYTES]);
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

/// Proofs are the subject of other tests.
struct Believed;

impl Proofs for Believed {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        vec![true; checks.len()]
    }
}

type Alteration = Box<dyn Fn(&mut ConfidentialAccount) + Send>;

struct Book {
    settings: Arc<Settings>,
    storage: MemoryStorage,
    applied: Vec<(ConfidentialTransaction, ConfidentialTransactionInfo)>,
    alteration: Option<Alteration>,
}

/// The coprocessor with its deployment.
pub struct Coprocessor {
    pub settings: Arc<Settings>,
    pub public: Arc<PublicPolynomial>,
    book: Arc<Mutex<Book>>,
    server: ServerHandle,
}

impl Coprocessor {
    pub async fn start() -> Self {
        let deployment = deployment();
        let (public, settings) = deployment.settings(&chain()).unwrap();
        let storage = MemoryStorage::new(&deployment.genesis().unwrap());
        let (settings_of_book, applied) = (Arc::clone(&settings), Vec::new());
        let book = Book { settings: settings_of_book, storage, applied, alteration: None };
        let book = Arc::new(Mutex::new(book));
        let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        let server = serve(config, Api(Arc::clone(&book)).into_rpc(), None).await.unwrap();
        Self { settings, public, book, server }
    }

    pub fn wallet(&self, key: SigningKey) -> ConfidentialWallet {
        let url = format!("http://{}", self.server.local_addr());
        let client = http_client(&url, &ClientConfig::default()).unwrap();
        ConfidentialWallet::new(Arc::clone(&self.settings), Arc::clone(&self.public), key, client)
    }

    /// From now on accounts are shown like this.
    pub fn show(&self, alteration: impl Fn(&mut ConfidentialAccount) + Send + 'static) {
        self.book.lock().alteration = Some(Box::new(alteration));
    }

    /// Executes one transaction, which must be applied.
    pub fn apply(&self, bytes: &[u8]) -> ConfidentialTransactionInfo {
        let mut book = self.book.lock();
        let head = *book.storage.head();
        let Ok(executed) = execute(&book.settings, &book.storage, &Believed, head, &[bytes]);
        let receipt = executed.receipts[0];
        assert_eq!(receipt.outcome, Ok(()));
        book.storage.commit(&executed);
        let decoded = ConfidentialTransaction::decode(book.settings.parameters(), bytes).unwrap();
        let info = ConfidentialTransactionInfo {
            id: receipt.id,
            sequence: receipt.version,
            version: receipt.version,
            number: receipt.version,
            item: 0,
            position: 0,
            kind: Some(decoded.kind_name().to_owned()),
            applied: true,
            reason: None,
            transaction: Bytes::copy_from_slice(bytes),
            state_root: receipt.root,
        };
        book.applied.push((decoded, info.clone()));
        info
    }

    /// Registers an account with the secret of `secret`'s wallet.
    pub fn register(&self, owner: &SigningKey, secret: &SigningKey) {
        let secret = account_secret(&self.settings, &self.public, secret);
        let mut register = ConfidentialTransaction::Register(Box::new(Register {
            owner: owner.address(),
            key: secret.public_key(),
            secret_commitment: secret_commitment(secret.coefficients()),
            proof: NO_PROOF,
            signature: UNSIGNED,
        }));
        register.sign(self.settings.domain(), owner);
        self.apply(&register.encode());
    }

    /// Pays, without a proof.
    pub fn pay(&self, from: &SigningKey, to: &SigningKey, amount: u64) -> ConfidentialTransactionInfo {
        let of = |key: &SigningKey| account_secret(&self.settings, &self.public, key).public_key();
        let auditor = SecretKey::derive(&self.public, &AUDITOR_SEED).public_key();
        let recipients: [&PublicKey; 3] = [&of(from), &of(to), &auditor];
        let (ciphertext, _) = balance::encrypt(&self.public, &recipients, amount, &mut rand::rng()).unwrap();
        let Ok(sender) = self.book.lock().storage.account(&from.address());
        let transfer = Transfer {
            sender: from.address(),
            receiver: to.address(),
            nonce: sender.unwrap().nonce,
            fee: MINIMUM_FEE,
            amount: ciphertext,
            proof: NO_PROOF,
        };
        self.apply(&ConfidentialTransaction::Transfer(Box::new(transfer)).encode())
    }
}

#[derive(Clone)]
struct Api(Arc<Mutex<Book>>);

impl Book {
    fn shown(&self, account: &Account) -> ConfidentialAccount {
        let record = account.encode(&self.settings);
        let key_bytes = PublicKey::encoded_bytes(self.settings.parameters());
        let ciphertext = |sum: &Sum| {
            let record = sum.ciphertext().encode();
            ConfidentialCiphertext {
                c1: Bytes::copy_from_slice(&record[..key_bytes]),
                c0: Bytes::copy_from_slice(&record[key_bytes..record.len() - 2]),
                counter: sum.ciphertext().additions().into(),
            }
        };
        let head = *self.storage.head();
        let index = account.identity.index;
        let proof = self.storage.prove(Tree::Accounts, head.version, head.accounts, index);
        let mut shown = ConfidentialAccount {
            owner: account.identity.owner,
            index,
            nonce: account.nonce,
            public_key: Bytes::copy_from_slice(&record[65..65 + key_bytes]),
            secret_commitment: B256::from_slice(&record[33..65]),
            available: ciphertext(&account.available),
            pending: ciphertext(&account.pending),
            siblings: proof.0.to_vec(),
            version: head.version,
            accounts: head.accounts,
            accounts_root: head.accounts_root,
            public_accounts: head.public_accounts,
            public_root: head.public_root,
            state_root: head.state_root(),
        };
        if let Some(alter) = &self.alteration {
            alter(&mut shown);
        }
        shown
    }
}

fn concerns(transaction: &ConfidentialTransaction, owner: Address) -> bool {
    use ConfidentialTransaction as T;
    match transaction {
        T::Register(register) => register.owner == owner,
        T::Deposit(deposit) => [deposit.from, deposit.account].contains(&owner),
        T::Transfer(transfer) => [transfer.sender, transfer.receiver].contains(&owner),
        T::Rollover(rollover) => rollover.account == owner,
        T::Refresh(refresh) => refresh.account == owner,
        T::Withdraw(withdraw) => [withdraw.account, withdraw.recipient].contains(&owner),
    }
}

fn unasked<T>() -> Result<T, RpcError> {
    Err(RpcError::internal("no test asks for it"))
}

#[async_trait]
impl ConfidentialApiServer for Api {
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError> {
        unasked()
    }

    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError> {
        unasked()
    }

    async fn get_account(
        &self,
        owner: Address,
        _: Option<u64>,
    ) -> Result<Option<ConfidentialAccount>, RpcError> {
        let book = self.0.lock();
        let Ok(account) = book.storage.account(&owner);
        Ok(account.map(|account| book.shown(&account)))
    }

    async fn get_public_balance(&self, owner: Address) -> Result<PublicBalance, RpcError> {
        let Ok(account) = self.0.lock().storage.public_account(&owner);
        let (balance, nonce) = account.map_or((0, 0), |account| (account.balance, account.nonce));
        Ok(PublicBalance { owner, balance, nonce })
    }

    async fn get_transaction(&self, _: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError> {
        unasked()
    }

    /// Two at a time, so that a history has pages.
    async fn get_transfers(
        &self,
        owner: Address,
        from: u64,
        _: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError> {
        let book = self.0.lock();
        let of_owner = book.applied.iter().filter(|(transaction, _)| concerns(transaction, owner));
        Ok(of_owner.map(|(_, info)| info.clone()).filter(|info| info.sequence >= from).take(2).collect())
    }

    async fn get_state_root(&self, _: u64) -> Result<Option<B256>, RpcError> {
        unasked()
    }

    async fn get_invoice_total(&self, _: Bytes, _: Bytes, _: Bytes, _: B256) -> Result<Bytes, RpcError> {
        unasked()
    }
}

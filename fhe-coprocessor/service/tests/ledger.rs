//! Confidential transactions through the whole service, over the toy ring. Proofs are doubles: hashes of the statement.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use blindfold_confidential::executor::{Check, Proofs};
use blindfold_confidential::secret_commitment;
use blindfold_confidential::state::{Account, Claim, Genesis, Premises, Settings};
use blindfold_confidential::statement::Domain;
use blindfold_confidential::transaction::{
    ConfidentialTransaction as T, Deposit, EncodedProof, PROOF_BYTES, Register, Rollover, Transfer, Withdraw,
};
use blindfold_confidential::tree::Proof;
use blindfold_coprocessor::{Coprocessor, CoprocessorDeps, Ledger, LedgerError, LedgerView};
use blindfold_kit::*;
use blindfold_protocol::{Signature65, SigningKey};
use blindfold_rlwe::rlwe::{Parameters, PublicPolynomial, SecretKey};
use blindfold_rlwe::schemes::balance;
use blindfold_rpc::confidential::{ConfidentialAccount, ConfidentialApiClient};
use blindfold_rpc::{HttpClient, RunningRole};
use blindfold_store::ConfidentialStore;
use common::disk::Disk;
use common::*;
use rand_chacha::rand_core::SeedableRng;

const OPERATOR: Address = Address::repeat_byte(0x0f);
const FEE: u64 = 3;
const SHARE: u64 = 1_000_000;

struct Owner {
    signing: SigningKey,
    secret: SecretKey,
}

struct Deployment {
    settings: Arc<Settings>,
    public: Arc<PublicPolynomial>,
    auditor: SecretKey,
    owners: [Owner; 2],
}

fn honest(claim: &Claim) -> EncodedProof {
    let mut proof = [0; PROOF_BYTES];
    proof[..32].copy_from_slice(&*keccak256([b"honest".as_slice(), &claim.statement().digest()].concat()));
    EncodedProof(proof)
}

struct Double;

impl Proofs for Double {
    fn verify(&self, checks: &[Check<'_>]) -> Vec<bool> {
        checks.iter().map(|check| *check.proof == honest(check.claim)).collect()
    }
}

impl Deployment {
    fn new() -> Self {
        let parameters = Parameters::toy().unwrap();
        let public = PublicPolynomial::insecure(&parameters, &[7; 32]);
        let auditor = SecretKey::derive(&public, &[0xaa; 32]);
        let domain = Domain { l1_chain_id: 900, chain_id: CHAIN_ID, contract: Address::repeat_byte(0x31) };
        let settings = Settings::new(domain, &public, &auditor.public_key(), OPERATOR, FEE).unwrap();
        let owners = [41, 42].map(|seed| Owner {
            signing: SigningKey::from_bytes(&[seed; 32]).unwrap(),
            secret: SecretKey::derive(&public, &[seed; 32]),
        });
        Self { settings: Arc::new(settings), public, auditor, owners }
    }

    fn genesis(&self, share: u64) -> Genesis {
        Genesis::new(&[0, 1].map(|owner| (self.address(owner), share))).unwrap()
    }

    fn address(&self, owner: usize) -> Address {
        self.owners[owner].signing.address()
    }

    async fn ledger(&self, state: &Arc<Disk>, share: u64) -> Result<Ledger<Double>, LedgerError> {
        let state: Arc<dyn ConfidentialStore> = state.clone();
        Ledger::open(Arc::clone(&self.settings), self.genesis(share), Arc::new(Double), state, 1).await
    }

    async fn start(&self, world: &World, path: &Path) -> (Coprocessor, Arc<Disk>) {
        let disk = Disk::open(path, None).await;
        let deps = CoprocessorDeps {
            chain: chain_config(),
            store: disk.clone(),
            state: disk.clone(),
            l1: Arc::clone(&world.l1) as _,
            settlement: None,
            parameters: parameter_set(),
            backend: backend(),
            machine: Box::new(self.ledger(&disk, SHARE).await.unwrap()),
            view: Arc::new(LedgerView::new(Arc::clone(&self.settings))),
            deployment: deployment(),
        };
        (Coprocessor::start(world.config.clone(), deps).await.unwrap(), disk)
    }

    /// The account that the client is shown, after its proof is checked.
    async fn account(&self, client: &HttpClient, owner: usize) -> Arc<Account> {
        let claim = client.get_account(self.address(owner), None).await.unwrap().unwrap();
        let account = Account::decode(&self.settings, &record(&claim)).unwrap();
        let siblings = Proof(claim.siblings.clone().try_into().unwrap());
        assert_eq!(siblings.root(claim.index, &account.leaf()), claim.accounts_root);
        let counters = (claim.available.counter, claim.pending.counter);
        let terms = |sum: &blindfold_confidential::state::Sum| u32::from(sum.ciphertext().additions());
        assert_eq!(counters, (terms(&account.available), terms(&account.pending)));
        Arc::new(account)
    }

    fn balances(&self, account: &Account, owner: usize) -> [u64; 2] {
        [&account.available, &account.pending]
            .map(|sum| balance::decrypt(&self.owners[owner].secret, sum.ciphertext()).unwrap())
    }

    fn claim(&self, transaction: &T, premises: &Premises) -> Claim {
        Claim::new(&self.settings, transaction, premises).unwrap().unwrap()
    }

    fn signed(&self, owner: usize, mut transaction: T) -> Vec<u8> {
        transaction.sign(self.settings.domain(), &self.owners[owner].signing);
        transaction.encode()
    }

    fn register(&self, owner: usize) -> Vec<u8> {
        let secret = &self.owners[owner].secret;
        let mut register = Register {
            owner: self.address(owner),
            key: secret.public_key(),
            secret_commitment: secret_commitment(secret.coefficients()),
            proof: EncodedProof([0; PROOF_BYTES]),
            signature: Signature65([0; 65]),
        };
        register.proof = honest(&self.claim(&T::Register(Box::new(register.clone())), &Premises::None));
        self.signed(owner, T::Register(Box::new(register)))
    }

    fn deposit(&self, owner: usize, amount: u64, nonce: u64) -> Vec<u8> {
        let (from, signature) = (self.address(owner), Signature65([0; 65]));
        self.signed(owner, T::Deposit(Deposit { from, account: from, amount, nonce, signature }))
    }

    fn rollover(&self, owner: usize, nonce: u64) -> Vec<u8> {
        let signature = Signature65([0; 65]);
        self.signed(owner, T::Rollover(Rollover { account: self.address(owner), nonce, signature }))
    }

    fn transfer(&self, from: (usize, Arc<Account>), to: (usize, &Account), amount: u64) -> T {
        let keys = [&self.owners[from.0].secret, &self.owners[to.0].secret, &self.auditor]
            .map(SecretKey::public_key);
        let mut rng = rand_chacha::ChaCha20Rng::from_seed([9; 32]);
        let recipients = [&keys[0], &keys[1], &keys[2]];
        let (ciphertext, _) = balance::encrypt(&self.public, &recipients, amount, &mut rng).unwrap();
        let mut transfer = Transfer {
            sender: self.address(from.0),
            receiver: self.address(to.0),
            nonce: from.1.nonce,
            fee: FEE,
            amount: ciphertext,
            proof: EncodedProof([0; PROOF_BYTES]),
        };
        let premises = Premises::Payment(from.1, to.1.identity.key.clone());
        transfer.proof = honest(&self.claim(&T::Transfer(Box::new(transfer.clone())), &premises));
        T::Transfer(Box::new(transfer))
    }
}

/// The record that a shown account stands for.
fn record(claim: &ConfidentialAccount) -> Vec<u8> {
    let mut record = vec![1];
    record.extend(claim.index.to_be_bytes());
    record.extend(claim.owner);
    record.extend(claim.nonce.to_be_bytes());
    record.extend(claim.secret_commitment);
    record.extend(claim.public_key.iter());
    for sum in [&claim.available, &claim.pending] {
        record.extend(sum.c1.iter().chain(sum.c0.iter()));
        record.extend((sum.counter as u16).to_le_bytes());
    }
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_move_through_the_order_and_survive_a_restart() {
    let (world, deployment) = (World::new().await, Deployment::new());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (coprocessor, disk) = deployment.start(&world, &path).await;
    let items = [
        deployment.register(0),
        deployment.register(1),
        deployment.deposit(0, 500, 0),
        deployment.deposit(0, 1, 7),
        deployment.rollover(0, 0),
    ];
    let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    world.batch(0, &[confidential(1, &items[..2]), confidential(2, &items[2..])]).await;
    executed(&coprocessor, 1).await;
    let client = client(coprocessor.rpc_addr());
    let refused = client.get_transaction(keccak256(items[3])).await.unwrap().unwrap();
    assert_eq!(
        (refused.kind.as_deref(), refused.reason.as_deref()),
        (Some("deposit"), Some("nonce_too_high"))
    );
    let (alice, bob) = (deployment.account(&client, 0).await, deployment.account(&client, 1).await);
    assert_eq!((deployment.balances(&alice, 0), deployment.balances(&bob, 1)), ([500, 0], [0, 0]));
    coprocessor.shutdown().await;
    drop(disk);

    // Another process: everything comes from the disk.
    let (coprocessor, disk) = deployment.start(&world, &path).await;
    let client = blindfold_kit::client(coprocessor.rpc_addr());
    let transfer = deployment.transfer((0, Arc::clone(&alice)), (1, &bob), 200);
    let T::Transfer(mut forged) = transfer.clone() else { panic!("a transfer") };
    forged.fee = FEE + 1;
    let mut withdraw = Withdraw {
        account: deployment.address(1),
        nonce: 1,
        amount: 50,
        recipient: Address::repeat_byte(0x77),
        proof: EncodedProof([0; PROOF_BYTES]),
    };
    let forged = T::Transfer(forged).encode();
    world
        .batch(
            1_000,
            &[
                confidential(3, &[&forged, &transfer.encode()]),
                confidential(4, &[&deployment.rollover(1, 0)]),
            ],
        )
        .await;
    executed(&coprocessor, 2).await;
    assert_eq!(
        client.get_transaction(keccak256(&forged)).await.unwrap().unwrap().reason.as_deref(),
        Some("invalid_proof")
    );
    let bob = deployment.account(&client, 1).await;
    assert_eq!(deployment.balances(&bob, 1), [200, 0]);
    withdraw.proof =
        honest(&deployment.claim(&T::Withdraw(Box::new(withdraw.clone())), &Premises::Account(bob)));
    world.batch(2_000, &[confidential(5, &[&T::Withdraw(Box::new(withdraw)).encode()])]).await;
    executed(&coprocessor, 3).await;
    let (alice, bob) = (deployment.account(&client, 0).await, deployment.account(&client, 1).await);
    assert_eq!((deployment.balances(&alice, 0), deployment.balances(&bob, 1)), ([297, 0], [150, 0]));

    // Nothing is made and nothing lost.
    let mut public = 0;
    for (owner, balance) in [
        (deployment.address(0), SHARE - 500),
        (deployment.address(1), SHARE),
        (OPERATOR, FEE),
        (Address::repeat_byte(0x77), 50),
    ] {
        assert_eq!(client.get_public_balance(owner).await.unwrap().balance, balance);
        public += balance;
    }
    let status = client.get_status().await.unwrap();
    assert_eq!(status.confidential, 297 + 150);
    assert_eq!(public + status.confidential, 2 * SHARE);
    let bobs = client.get_transfers(deployment.address(1), 0, None).await.unwrap();
    let kinds: Vec<_> = bobs.iter().filter_map(|one| one.kind.as_deref()).collect();
    assert_eq!(kinds, ["register", "transfer", "rollover", "withdraw"]);
    coprocessor.shutdown().await;

    // Files of a deployment with other allocations are refused.
    let other = deployment.ledger(&disk, SHARE + 1).await;
    assert!(matches!(other.err(), Some(LedgerError::OtherGenesis { .. })));
    assert_ne!(status.state_root, B256::ZERO);
}

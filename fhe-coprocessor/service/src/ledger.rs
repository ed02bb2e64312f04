//! The machine of confidential balances: [`blindfold_confidential`] over what is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes};
use blindfold_confidential::executor::{Executed, Proofs, execute};
use blindfold_confidential::state::{Account, Genesis, Head, PublicAccount, Settings, Tree};
use blindfold_confidential::transaction::ConfidentialTransaction;
use blindfold_confidential::tree::{self, Written};
use blindfold_rlwe::rlwe::PublicKey;
use blindfold_rpc::confidential::{ConfidentialAccount, ConfidentialCiphertext};
use blindfold_store::{
    ConfidentialAccountRecord, ConfidentialHead, ConfidentialStore, PublicBalanceRecord, StoreError,
    TreeNodeRecord,
};
use tokio::runtime::Handle;

use crate::stored::{StoredState, tree_name};
use crate::{AccountView, CommittedItem, Execution, Machine, Outcome, Roots};

/// Why a ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The disk failed, or holds damaged records.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state on disk began with other allocations. The configuration's fault.
    #[error(
        "the stored state began with root {stored}, the deployment's allocations make {configured}: \
         give this coprocessor the deployment's own file, or an empty folder"
    )]
    OtherGenesis {
        /// The first state's root on disk.
        stored: B256,
        /// The first state's root by the configuration.
        configured: B256,
    },
    /// The operating system starts no threads.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        reason: String,
    },
}

/// Confidential balances, standing where the store ends.
pub struct Ledger<P> {
    settings: Arc<Settings>,
    proofs: Arc<P>,
    genesis: Genesis,
    head: Head,
    state: StoredState,
    pool: rayon::ThreadPool,
}

impl<P: Proofs + Send> Ledger<P> {
    /// A ledger at the store's head, or at the genesis of an empty one. Proofs are verified on `threads` threads, at
    /// least one. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn open(
        settings: Arc<Settings>,
        genesis: Genesis,
        proofs: Arc<P>,
        store: Arc<dyn ConfidentialStore>,
        threads: usize,
    ) -> Result<Self, LedgerError> {
        let configured = genesis.head.state_root();
        let stored = store.confidential_state_root(0).await?.unwrap_or(configured);
        if stored != configured {
            return Err(LedgerError::OtherGenesis { stored, configured });
        }
        let head = store.confidential_head().await?.map_or(genesis.head, |head| head_of(&head));
        let threads = threads.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("executor-{index}"))
            .build()
            .map_err(|error| LedgerError::Threads { threads, reason: error.to_string() })?;
        let state = StoredState::new(store, Arc::clone(&settings), Handle::current());
        Ok(Self { settings, proofs, genesis, head, state, pool })
    }
}

fn head_of(head: &ConfidentialHead) -> Head {
    Head {
        version: head.version,
        accounts: head.accounts,
        public_accounts: head.public_accounts,
        accounts_root: head.accounts_root,
        public_root: head.public_root,
        confidential: head.confidential,
    }
}

fn roots_of(head: &Head) -> Roots {
    Roots {
        version: head.version,
        accounts: head.accounts,
        public_accounts: head.public_accounts,
        accounts_root: head.accounts_root,
        public_root: head.public_root,
        confidential: head.confidential,
        state_root: head.state_root(),
    }
}

/// The nodes as the last version left them.
fn nodes_of<'a>(trees: impl IntoIterator<Item = (Tree, &'a [Written])>) -> Vec<TreeNodeRecord> {
    let mut last = BTreeMap::new();
    for (tree, nodes) in trees {
        // Versions ascend.
        last.extend(nodes.iter().map(|node| ((tree, node.place), node.hash)));
    }
    last.into_iter()
        .map(|((tree, place), hash)| TreeNodeRecord {
            tree: tree_name(tree),
            level: place.level,
            index: place.index,
            hash,
        })
        .collect()
}

fn balances_of(public: &[(Address, PublicAccount)]) -> Vec<PublicBalanceRecord> {
    let record = |(owner, account): &(Address, PublicAccount)| PublicBalanceRecord {
        owner: *owner,
        index: account.index,
        balance: account.balance,
        nonce: account.nonce,
    };
    public.iter().map(record).collect()
}

/// Whose histories an applied transaction belongs to.
fn parties(transaction: &ConfidentialTransaction) -> Vec<Address> {
    use ConfidentialTransaction as T;
    match transaction {
        T::Register(register) => vec![register.owner],
        T::Deposit(deposit) => vec![deposit.from, deposit.account],
        T::Transfer(transfer) => vec![transfer.sender, transfer.receiver],
        T::Rollover(rollover) => vec![rollover.account],
        T::Refresh(refresh) => vec![refresh.account],
        T::Withdraw(withdraw) => vec![withdraw.account, withdraw.recipient],
    }
}

impl<P: Proofs + Send> Ledger<P> {
    fn execution(&self, items: &[CommittedItem], executed: Executed) -> Execution {
        let outcomes = items.iter().zip(&executed.receipts).map(|(item, receipt)| {
            let transaction = ConfidentialTransaction::decode(self.settings.parameters(), &item.bytes).ok();
            let refusal = receipt.outcome.err().map(|refusal| refusal.as_str().to_owned());
            // Nobody vouches for the names in a refused one: it is found by its id alone.
            let named = transaction.as_ref().filter(|_| refusal.is_none());
            Outcome {
                id: receipt.id,
                kind: transaction.as_ref().map(ConfidentialTransaction::kind_name),
                refusal,
                version: receipt.version,
                state_root: receipt.root,
                parties: named.map(parties).unwrap_or_default(),
            }
        });
        let account = |account: Arc<Account>| ConfidentialAccountRecord {
            index: account.identity.index,
            owner: account.identity.owner,
            state: account.encode(&self.settings),
        };
        Execution {
            outcomes: outcomes.collect(),
            nodes: nodes_of([
                (Tree::Accounts, &executed.account_nodes[..]),
                (Tree::Public, &executed.public_nodes),
            ]),
            balances: balances_of(&executed.public),
            roots: roots_of(&executed.head),
            // Each is dropped when it is written: there may be many.
            accounts: executed.accounts.into_iter().map(account).collect(),
        }
    }
}

impl<P: Proofs + Send> Machine for Ledger<P> {
    fn genesis(&self) -> Execution {
        Execution {
            outcomes: Vec::new(),
            accounts: Vec::new(),
            nodes: nodes_of([(Tree::Public, &self.genesis.public_nodes[..])]),
            balances: balances_of(&self.genesis.public),
            roots: roots_of(&self.genesis.head),
        }
    }

    fn execute(&mut self, items: &[CommittedItem]) -> Result<Execution, StoreError> {
        let batch: Vec<&[u8]> = items.iter().map(|item| item.bytes.as_slice()).collect();
        let executed = self
            .pool
            .install(|| execute(&self.settings, &self.state, self.proofs.as_ref(), self.head, &batch))?;
        self.state.apply(&executed);
        self.head = executed.head;
        Ok(self.execution(items, executed))
    }
}

/// Shows the accounts of a [`Ledger`].
pub struct LedgerView {
    settings: Arc<Settings>,
}

impl LedgerView {
    /// For accounts of this deployment.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl AccountView for LedgerView {
    fn account(&self, record: &ConfidentialAccountRecord) -> Result<ConfidentialAccount, String> {
        let account = Account::decode(&self.settings, &record.state).map_err(|fault| fault.to_string())?;
        let polynomial_bytes = PublicKey::encoded_bytes(self.settings.parameters());
        let shown = |sum: &blindfold_confidential::state::Sum| {
            let ciphertext = sum.ciphertext();
            let encoded = ciphertext.encode();
            // c1 ‖ c0 ‖ counter u16.
            let (c1, rest) = encoded.split_at(polynomial_bytes);
            let c0 = &rest[..rest.len() - size_of::<u16>()];
            ConfidentialCiphertext {
                c1: Bytes::copy_from_slice(c1),
                c0: Bytes::copy_from_slice(c0),
                counter: u32::from(ciphertext.additions()),
            }
        };
        let identity = &account.identity;
        // version ‖ index ‖ owner ‖ nonce ‖ commitment ‖ b ‖ …
        let fixed = 1 + 4 + 20 + 8;
        let commitment = record.state.get(fixed..fixed + 32).map(B256::from_slice);
        let key = record.state.get(fixed + 32..fixed + 32 + polynomial_bytes);
        Ok(ConfidentialAccount {
            owner: identity.owner,
            index: identity.index,
            nonce: account.nonce,
            public_key: Bytes::copy_from_slice(key.unwrap_or_default()),
            secret_commitment: commitment.unwrap_or_default(),
            available: shown(&account.available),
            pending: shown(&account.pending),
            siblings: Vec::new(),
            version: 0,
            accounts: 0,
            accounts_root: B256::ZERO,
            public_accounts: 0,
            public_root: B256::ZERO,
            state_root: B256::ZERO,
        })
    }

    fn empty_root(&self, level: u8) -> B256 {
        tree::empty(level)
    }
}

//! What was executed on this machine, and nothing else.
//!
//! Decryption is an oracle: whoever sees the amounts that a key reads from ciphertexts of his choice reads the key (52
//! transfers that were never made give back all 2,048 coefficients of a secret). So wallets and auditors decrypt what a
//! coprocessor of their own wrote to its disk here: it executed certified batches, and what stands in its state is a sum of
//! ciphertexts whose proofs held. What any coprocessor says over a wire is a claim, to be [confirmed](VerifiedState::confirm)
//! here first.

use std::sync::Arc;

use alloy_primitives::{Address, B256};
use blindfold_confidential::state::{Account, AccountError, Genesis, Head, Settings};
use blindfold_confidential::transaction::{ConfidentialTransaction, InvalidTransaction};
use blindfold_confidential::tree::{self, DEPTH, Proof};
use blindfold_rpc::confidential::ConfidentialTransactionInfo;
use blindfold_store::{
    ConfidentialHead, ConfidentialStore, StoreError, StoredConfidentialTransaction, TreeName,
};
use serde::{Deserialize, Serialize};

/// Transactions read at a time.
const PAGE: usize = 64;

/// Why something is not known to be true. Nothing of it was decrypted.
#[derive(Debug, thiserror::Error)]
pub enum VerifiedError {
    /// The coprocessor's folder cannot be read.
    #[error("the coprocessor's folder: {0}")]
    Store(#[from] StoreError),
    /// A folder in which no coprocessor has executed anything.
    #[error("no coprocessor has executed anything in this folder yet: start one, `blindfold coprocessor`")]
    Empty,
    /// A folder of another deployment.
    #[error("the folder's state began with root {found}, the deployment's allocations make {expected}")]
    OtherDeployment {
        /// The root that the deployment's allocations make.
        expected: B256,
        /// The root in the folder.
        found: B256,
    },
    /// An account that is not under the root that was computed here, or is another one's: the disk is damaged.
    #[error(
        "the stored account of {0} is not under the root of its state: start the coprocessor from an empty folder"
    )]
    Damaged(Address),
    /// An account that does not decode.
    #[error("the stored account does not decode: {0}")]
    Account(#[from] AccountError),
    /// A transaction that does not decode, although it was applied.
    #[error("a stored transaction does not decode: {0}")]
    Transaction(#[from] InvalidTransaction),
    /// A transaction that no certified batch executed here applied, or that says something else there.
    #[error("{0} was not applied by any batch that was executed on this machine: it is not decrypted")]
    NotApplied(B256),
}

/// A transaction that was executed on this machine. Only [`VerifiedState`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedTransaction {
    id: B256,
    sequence: u64,
    number: u64,
    version: u64,
    refusal: Option<String>,
    transaction: ConfidentialTransaction,
}

impl VerifiedTransaction {
    /// Id of the transaction.
    #[must_use]
    pub const fn id(&self) -> B256 {
        self.id
    }

    /// Its place in the order of all confidential transactions.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The transaction itself, decoded.
    #[must_use]
    pub const fn transaction(&self) -> &ConfidentialTransaction {
        &self.transaction
    }

    /// Why it was refused; `None` where it was applied.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// What became of a transaction, as a wallet tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Id of the transaction.
    pub id: B256,
    /// Number of the batch that holds it.
    pub number: u64,
    /// The state's version after it.
    pub version: u64,
    /// Why it was refused; none where it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A balance of the public ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Public {
    /// The balance, in base units.
    pub balance: u64,
    /// How many deposits it has made.
    pub nonce: u64,
}

/// The state that the coprocessor of this machine has computed.
#[derive(Clone)]
pub struct VerifiedState {
    settings: Arc<Settings>,
    store: Arc<dyn ConfidentialStore>,
}

/// What the coprocessor stores of the outcome; the rest is not read.
#[derive(Deserialize)]
struct Receipt {
    #[serde(default)]
    reason: Option<String>,
}

impl VerifiedState {
    /// The state on a disk that a coprocessor of this deployment writes.
    ///
    /// # Errors
    /// [`VerifiedError::Empty`], [`VerifiedError::OtherDeployment`], [`VerifiedError::Store`].
    pub async fn open(
        settings: Arc<Settings>,
        genesis: &Genesis,
        store: Arc<dyn ConfidentialStore>,
    ) -> Result<Self, VerifiedError> {
        let expected = genesis.head.state_root();
        let found = store.confidential_state_root(0).await?.ok_or(VerifiedError::Empty)?;
        if found != expected {
            return Err(VerifiedError::OtherDeployment { expected, found });
        }
        Ok(Self { settings, store })
    }

    /// The settings of the deployment that the state is of.
    #[must_use]
    pub const fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    async fn head(&self) -> Result<ConfidentialHead, VerifiedError> {
        self.store.confidential_head().await?.ok_or(VerifiedError::Empty)
    }

    /// An account, held against the root of the newest state. Five hashes of 14 KB and 32 of 65 bytes.
    ///
    /// # Errors
    /// [`VerifiedError`].
    pub async fn account(&self, owner: Address) -> Result<Option<Arc<Account>>, VerifiedError> {
        let head = self.head().await?;
        let record = self.store.confidential_account(owner, head.version).await?;
        let Some(record) = record else { return Ok(None) };
        let account = Account::decode(&self.settings, &record.state)?;
        let index = account.identity.index;
        let places: Vec<(u8, u32)> = (0..DEPTH).map(|level| (level, (index >> level) ^ 1)).collect();
        let nodes = self.store.confidential_nodes(TreeName::Accounts, &places, head.version).await?;
        let filled = (0..).zip(nodes).map(|(level, node)| node.unwrap_or_else(|| tree::empty(level)));
        let siblings: Vec<B256> = filled.collect();
        let siblings = siblings.try_into().map_err(|_| VerifiedError::Damaged(owner))?;
        let under = Proof(siblings).root(index, &account.leaf()) == head.accounts_root;
        let roots = Head {
            version: head.version,
            accounts: head.accounts,
            public_accounts: head.public_accounts,
            accounts_root: head.accounts_root,
            public_root: head.public_root,
            confidential: head.confidential,
        };
        // The one that was asked for, whatever it was stored under.
        if account.identity.owner != owner || !under || roots.state_root() != head.state_root {
            return Err(VerifiedError::Damaged(owner));
        }
        Ok(Some(Arc::new(account)))
    }

    /// A public balance; zeros for one that never had any.
    ///
    /// # Errors
    /// [`VerifiedError::Store`].
    pub async fn public(&self, owner: Address) -> Result<Public, VerifiedError> {
        let record = self.store.public_balance(owner).await?;
        Ok(record
            .map_or_else(Public::default, |record| Public { balance: record.balance, nonce: record.nonce }))
    }

    /// What became of a transaction; `None` while it is in no executed batch.
    ///
    /// # Errors
    /// [`VerifiedError::Store`].
    pub async fn outcome(&self, id: B256) -> Result<Option<Outcome>, VerifiedError> {
        let found = self.store.confidential_transaction(id).await?;
        Ok(found.map(|stored| {
            let reason = refusal(&stored);
            Outcome { id, number: stored.number, version: stored.record.version, reason }
        }))
    }

    /// The transaction that somebody shows as applied, if it was applied here.
    ///
    /// # Errors
    /// [`VerifiedError::NotApplied`].
    pub async fn confirm(
        &self,
        shown: &ConfidentialTransactionInfo,
    ) -> Result<VerifiedTransaction, VerifiedError> {
        let stored = self.store.confidential_transaction(shown.id).await?;
        let same = |stored: &StoredConfidentialTransaction| {
            stored.record.applied && stored.record.bytes == *shown.transaction
        };
        let stored = stored.filter(same).ok_or(VerifiedError::NotApplied(shown.id))?;
        self.verified(&stored)
    }

    /// Everything that was applied and that an owner takes part in, oldest first.
    ///
    /// # Errors
    /// [`VerifiedError`].
    pub async fn transactions_of(&self, owner: Address) -> Result<Vec<VerifiedTransaction>, VerifiedError> {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = self.store.confidential_transactions_of(owner, from, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            from = last.record.sequence + 1;
            for stored in page.iter().filter(|stored| stored.record.applied) {
                found.push(self.verified(stored)?);
            }
        }
    }

    /// Everything that was refused and says that `owner` acts, oldest first, as far as it decodes. Nobody vouches for the
    /// names in it. Goes through all transactions.
    ///
    /// # Errors
    /// [`VerifiedError`].
    pub async fn refused_for(&self, owner: Address) -> Result<Vec<VerifiedTransaction>, VerifiedError> {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = self.store.confidential_transactions_from(from, PAGE).await?;
            let Some(last) = page.last() else { return Ok(found) };
            from = last.record.sequence + 1;
            for stored in page.iter().filter(|stored| !stored.record.applied) {
                let Ok(verified) = self.verified(stored) else { continue };
                if verified.transaction.turn().is_some_and(|(account, _)| account == owner) {
                    found.push(verified);
                }
            }
        }
    }

    fn verified(&self, stored: &StoredConfidentialTransaction) -> Result<VerifiedTransaction, VerifiedError> {
        let record = &stored.record;
        Ok(VerifiedTransaction {
            id: record.id,
            sequence: record.sequence,
            number: stored.number,
            version: record.version,
            refusal: refusal(stored),
            transaction: ConfidentialTransaction::decode(self.settings.parameters(), &record.bytes)?,
        })
    }
}

/// The name of the refusal.
fn refusal(stored: &StoredConfidentialTransaction) -> Option<String> {
    let read = || serde_json::from_str::<Receipt>(&stored.record.receipt).ok()?.reason;
    (!stored.record.applied).then(|| read().unwrap_or_default())
}

//! A state machine that counts: an item names an account by one byte and adds another to it. Overflow is refused, and
//! so is everything else. The account is its sum; leaves and nodes are hashes as in any tree, of two levels.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::keccak256;
use blindfold_coprocessor::{AccountView, CommittedItem, Execution, Machine, Outcome, Roots};
use blindfold_protocol::{Address, B256, Bytes};
use blindfold_rpc::confidential::{ConfidentialAccount, ConfidentialCiphertext};
use blindfold_store::{
    ConfidentialAccountRecord, ConfidentialStore, PublicBalanceRecord, StoreError, TreeName, TreeNodeRecord,
};

/// Whose public balance counts all transactions.
pub const COUNTER: Address = Address::repeat_byte(0xcc);

pub struct Tally {
    /// By name: index and sum.
    accounts: BTreeMap<u8, (u32, u8)>,
    applied: u64,
}

impl Tally {
    /// From what is stored.
    pub async fn open(store: &dyn ConfidentialStore) -> Self {
        let records = store.confidential_accounts(0, 256).await.expect("a disk");
        let accounts = records.iter().map(|record| (record.owner[0], (record.index, record.state[0])));
        let counted = store.public_balance(COUNTER).await.expect("a disk");
        Self { accounts: accounts.collect(), applied: counted.map_or(0, |record| record.balance) }
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<u8, String> {
        let [name, amount] = *bytes else { return Err("undecodable".to_owned()) };
        let next = self.accounts.len() as u32;
        let (index, sum) = self.accounts.get(&name).copied().unwrap_or((next, 0));
        let sum = sum.checked_add(amount).ok_or("overflow")?;
        self.accounts.insert(name, (index, sum));
        self.applied += 1;
        Ok(name)
    }

    fn roots(&self) -> Roots {
        let accounts: Vec<u8> =
            self.accounts.iter().flat_map(|(name, (index, sum))| [*name, *index as u8, *sum]).collect();
        let (accounts_root, public_root) = (keccak256(accounts), keccak256(self.applied.to_be_bytes()));
        Roots {
            accounts: self.accounts.len() as u32,
            version: self.applied,
            public_accounts: 1,
            accounts_root,
            public_root,
            confidential: 0,
            state_root: keccak256([accounts_root, public_root].concat()),
        }
    }

    fn counter(&self) -> PublicBalanceRecord {
        PublicBalanceRecord { owner: COUNTER, index: 0, balance: self.applied, nonce: 0 }
    }
}

impl Machine for Tally {
    fn genesis(&self) -> Execution {
        Execution {
            outcomes: Vec::new(),
            accounts: Vec::new(),
            nodes: Vec::new(),
            balances: vec![self.counter()],
            roots: self.roots(),
        }
    }

    fn execute(&mut self, items: &[CommittedItem]) -> Result<Execution, StoreError> {
        let mut changed = BTreeSet::new();
        let outcomes = items.iter().map(|item| {
            let applied = self.apply(&item.bytes);
            let parties = applied.iter().map(|name| Address::repeat_byte(*name)).collect();
            changed.extend(applied.iter().copied());
            let Roots { version, state_root, .. } = self.roots();
            Outcome {
                id: keccak256(&item.bytes),
                kind: Some("tally"),
                refusal: applied.err(),
                version,
                state_root,
                parties,
            }
        });
        let outcomes = outcomes.collect();
        let accounts: Vec<_> = changed
            .iter()
            .map(|name| {
                let (index, sum) = self.accounts[name];
                ConfidentialAccountRecord { index, owner: Address::repeat_byte(*name), state: vec![sum] }
            })
            .collect();
        let nodes = accounts.iter().map(|account| TreeNodeRecord {
            tree: TreeName::Accounts,
            level: 0,
            index: account.index,
            hash: keccak256(&account.state),
        });
        Ok(Execution {
            outcomes,
            nodes: nodes.collect(),
            accounts,
            balances: vec![self.counter()],
            roots: self.roots(),
        })
    }
}

pub struct TallyView;

impl AccountView for TallyView {
    fn account(&self, record: &ConfidentialAccountRecord) -> Result<ConfidentialAccount, String> {
        let [sum] = record.state[..] else { return Err("no account".to_owned()) };
        let ciphertext = ConfidentialCiphertext { c1: Bytes::new(), c0: Bytes::new(), counter: 0 };
        Ok(ConfidentialAccount {
            owner: record.owner,
            index: record.index,
            nonce: u64::from(sum),
            public_key: Bytes::new(),
            secret_commitment: B256::ZERO,
            available: ciphertext.clone(),
            pending: ciphertext,
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
        B256::repeat_byte(level)
    }
}

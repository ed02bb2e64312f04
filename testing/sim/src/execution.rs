//! An execution client without a virtual machine: accounts with balances and nonces, transfers, and blocks that are a
//! function of the same inputs as those of the real one.
//!
//! Gas costs nothing here and contracts do nothing; fees of L2, code and gas are for the tests over the real client. What
//! becomes of a transaction that cannot execute, how blocks follow each other, and that a client may lose its newest ones,
//! is the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use alloy_consensus::{Transaction, TxEnvelope, transaction::SignerRecoverable};
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{Address, B256, Bloom, Bytes, Keccak256, U256, keccak256};
use async_trait::async_trait;
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, SkipReason,
    SkippedTransaction, StoredPayload, TransportError,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::Life;

/// How long a block takes to execute, in milliseconds.
const EXECUTION_MS: u64 = 5;
/// What a transfer takes.
const TRANSFER_GAS: u64 = 21_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    nonce: u64,
    balance: U256,
}

type State = BTreeMap<Address, Account>;

/// What a client has: it outlives the role that drives it. Clones are the same.
#[derive(Clone)]
pub struct Chain(Arc<Mutex<Blocks>>);

struct Blocks {
    chain_id: u64,
    canonical: BTreeMap<u64, BlockId>,
    states: BTreeMap<B256, State>,
    /// The transactions of each block, by the block's hash.
    included: BTreeMap<B256, Vec<B256>>,
    finalized: B256,
    down: bool,
}

/// Everything that a block's hash is made of besides its parent.
#[derive(serde::Serialize, serde::Deserialize)]
struct Content {
    timestamp: u64,
    prev_randao: B256,
    fee_recipient: Address,
    gas_limit: u64,
    origin: u64,
    origin_hash: B256,
    sequence_number: u64,
    deposits: Vec<Bytes>,
    transactions: Vec<Bytes>,
}

impl Content {
    /// The attributes deposit, the L1 deposits, and the transactions.
    fn list(&self) -> Vec<Bytes> {
        let attributes = [
            &[0x7e][..],
            &self.origin.to_be_bytes(),
            self.origin_hash.as_slice(),
            &self.sequence_number.to_be_bytes(),
        ];
        let attributes = Bytes::from(attributes.concat());
        [attributes]
            .into_iter()
            .chain(self.deposits.iter().cloned())
            .chain(self.transactions.iter().cloned())
            .collect()
    }
}

impl Chain {
    /// A chain with its genesis block, in which these accounts have this much.
    pub fn new(chain_id: u64, rich: &[Address], balance: U256) -> Self {
        let genesis = BlockId { number: 0, hash: keccak256(b"genesis block"), timestamp: 0 };
        let state = rich.iter().map(|address| (*address, Account { nonce: 0, balance })).collect();
        Self(Arc::new(Mutex::new(Blocks {
            chain_id,
            canonical: BTreeMap::from([(0, genesis)]),
            states: BTreeMap::from([(genesis.hash, state)]),
            included: BTreeMap::new(),
            finalized: genesis.hash,
            down: false,
        })))
    }

    /// A client for one life of the role that drives it.
    pub fn client(&self, life: &Life) -> Client {
        Client { chain: self.clone(), life: life.clone() }
    }

    /// The client is away, or back again.
    pub fn set_down(&self, down: bool) {
        self.0.lock().down = down;
    }

    /// The client forgets its newest blocks.
    pub fn lose(&self, blocks: u64) {
        let mut chain = self.0.lock();
        let head = chain.canonical.last_key_value().map_or(0, |(number, _)| *number);
        chain.canonical.retain(|number, _| *number <= head.saturating_sub(blocks));
    }

    /// How many transactions of this account stand in the newest block and those below.
    pub fn nonce(&self, address: Address) -> u64 {
        let chain = self.0.lock();
        let state = chain.canonical.last_key_value().and_then(|(_, head)| chain.states.get(&head.hash));
        state.and_then(|state| state.get(&address)).map_or(0, |account| account.nonce)
    }

    /// The hash of a block.
    pub fn hash(&self, number: u64) -> Option<B256> {
        self.0.lock().canonical.get(&number).map(|block| block.hash)
    }
}

impl Blocks {
    fn known(&self, hash: B256) -> Result<BlockId, EngineError> {
        let found = self.canonical.values().find(|block| block.hash == hash);
        found.copied().ok_or(EngineError::UnknownBlock { hash })
    }

    /// Executes what can be executed and says why the rest cannot.
    fn transfer(&self, state: &mut State, list: &[Bytes]) -> (Vec<Bytes>, Vec<SkippedTransaction>) {
        let (mut seen, mut included, mut skipped) = (BTreeSet::new(), Vec::new(), Vec::new());
        for (index, raw) in list.iter().enumerate() {
            match self.apply(state, &mut seen, raw) {
                Ok(()) => included.push(raw.clone()),
                Err(reason) => skipped.push(SkippedTransaction { index, reason }),
            }
        }
        (included, skipped)
    }

    fn apply(&self, state: &mut State, seen: &mut BTreeSet<B256>, raw: &Bytes) -> Result<(), SkipReason> {
        let transaction = TxEnvelope::decode_2718_exact(raw).map_err(|_| SkipReason::Undecodable)?;
        if transaction.chain_id() != Some(self.chain_id) {
            return Err(SkipReason::WrongChainId);
        }
        let sender = transaction.recover_signer().map_err(|_| SkipReason::InvalidSignature)?;
        if !seen.insert(*transaction.tx_hash()) {
            return Err(SkipReason::Duplicate);
        }
        let account = state.get(&sender).copied().unwrap_or_default();
        match transaction.nonce() {
            nonce if nonce < account.nonce => return Err(SkipReason::NonceTooLow),
            nonce if nonce > account.nonce => return Err(SkipReason::NonceTooHigh),
            _ => {}
        }
        let Some(balance) = account.balance.checked_sub(transaction.value()) else {
            return Err(SkipReason::InsufficientFunds);
        };
        state.insert(sender, Account { nonce: account.nonce + 1, balance });
        if let Some(to) = transaction.to() {
            let receiver = state.entry(to).or_default();
            receiver.balance = receiver.balance.saturating_add(transaction.value());
        }
        Ok(())
    }

    fn adopt(&mut self, block: BlockId, state: State, transactions: &[Bytes]) {
        self.included.insert(block.hash, transactions.iter().map(keccak256).collect());
        self.canonical.retain(|number, _| *number < block.number);
        self.canonical.insert(block.number, block);
        self.states.insert(block.hash, state);
    }
}

fn state_root(state: &State) -> B256 {
    let mut hasher = Keccak256::new();
    for (address, account) in state {
        hasher.update(address);
        hasher.update(account.nonce.to_be_bytes());
        hasher.update(account.balance.to_be_bytes::<32>());
    }
    hasher.finalize()
}

fn block_hash(parent: B256, number: u64, state_root: B256, content: &Content) -> B256 {
    let mut hasher = Keccak256::new();
    hasher.update(parent);
    hasher.update(number.to_be_bytes());
    hasher.update(state_root);
    hasher.update(content.timestamp.to_be_bytes());
    hasher.update(content.prev_randao);
    hasher.update(content.fee_recipient);
    hasher.update(content.gas_limit.to_be_bytes());
    content.list().iter().for_each(|raw| hasher.update(keccak256(raw)));
    hasher.finalize()
}

/// The payload in the form that is stored. The inputs that only our hash is made of stand in its extra data.
fn payload(parent: B256, id: BlockId, state_root: B256, content: &Content) -> StoredPayload {
    let extra = serde_json::to_vec(content).expect("lists and numbers have a JSON form");
    let text = json!({
        "version": 1,
        "parentBeaconBlockRoot": B256::ZERO,
        "executionPayload": {
            "parentHash": parent, "feeRecipient": content.fee_recipient, "stateRoot": state_root,
            "receiptsRoot": B256::ZERO, "logsBloom": Bloom::ZERO, "prevRandao": content.prev_randao,
            "blockNumber": format!("{:#x}", id.number), "gasLimit": format!("{:#x}", content.gas_limit),
            "gasUsed": "0x0", "timestamp": format!("{:#x}", id.timestamp), "extraData": Bytes::from(extra),
            "baseFeePerGas": "0x0", "blockHash": id.hash, "transactions": content.list(), "withdrawals": [],
            "blobGasUsed": "0x0", "excessBlobGas": "0x0", "withdrawalsRoot": B256::ZERO,
        },
    });
    StoredPayload::decode(text.to_string().as_bytes()).expect("the payload above is one")
}

fn content_of(payload: &StoredPayload) -> Option<Content> {
    let text: Value = serde_json::from_slice(&payload.encode()).ok()?;
    let extra: Bytes = serde_json::from_value(text["executionPayload"]["extraData"].clone()).ok()?;
    serde_json::from_slice(&extra).ok()
}

/// One life's way to its client.
pub struct Client {
    chain: Chain,
    life: Life,
}

impl Client {
    async fn up(&self, method: &str) -> Result<(), EngineError> {
        self.life.check().await;
        sleep(Duration::from_millis(1)).await;
        self.life.check().await;
        if self.chain.0.lock().down {
            let reason = "away".to_owned();
            return Err(TransportError::Unreachable { method: method.to_owned(), reason }.into());
        }
        Ok(())
    }
}

#[async_trait]
impl ExecutionClient for Client {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        self.up("ensure_compatible").await?;
        let ours = self.chain.0.lock().chain_id;
        if ours != chain_id {
            return Err(EngineError::IncompatibleClient { reason: format!("chain {ours}") });
        }
        Ok(())
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        self.up("head").await?;
        let chain = self.chain.0.lock();
        let (_, head) = chain.canonical.last_key_value().expect("genesis is never lost");
        Ok(*head)
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        self.up("block").await?;
        Ok(self.chain.0.lock().canonical.get(&number).copied())
    }

    async fn finalized(&self) -> Result<Option<u64>, EngineError> {
        self.up("finalized").await?;
        let chain = self.chain.0.lock();
        Ok(Some(chain.known(chain.finalized).map_or(0, |block| block.number)))
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        self.up("execute").await?;
        sleep(Duration::from_millis(EXECUTION_MS)).await;
        self.life.check().await;
        let mut chain = self.chain.0.lock();
        let below = chain.known(parent)?;
        if inputs.timestamp <= below.timestamp {
            let reason = "its time is not after its parent's".to_owned();
            return Err(EngineError::InvalidInputs { parent, reason });
        }
        let mut state = chain.states.get(&parent).cloned().unwrap_or_default();
        let (included, skipped) = chain.transfer(&mut state, transactions);
        let content = Content {
            timestamp: inputs.timestamp,
            prev_randao: inputs.prev_randao,
            fee_recipient: inputs.fee_recipient,
            gas_limit: inputs.gas_limit,
            origin: inputs.l1_origin.number,
            origin_hash: inputs.l1_origin.hash,
            sequence_number: inputs.sequence_number,
            deposits: inputs.l1_deposits.clone(),
            transactions: included,
        };
        let state_root = state_root(&state);
        let number = below.number + 1;
        let hash = block_hash(parent, number, state_root, &content);
        let id = BlockId { number, hash, timestamp: inputs.timestamp };
        chain.adopt(id, state, &content.transactions);
        Ok(ExecutedBlock {
            number,
            hash,
            parent_hash: parent,
            state_root,
            timestamp: id.timestamp,
            transactions: content.list().iter().map(keccak256).collect(),
            skipped,
            gas_used: TRANSFER_GAS * content.transactions.len() as u64,
            payload: payload(parent, id, state_root, &content),
        })
    }

    async fn rewind(&self, to: B256) -> Result<(), EngineError> {
        self.up("rewind").await?;
        let mut chain = self.chain.0.lock();
        let below = chain.known(to)?;
        chain.canonical.retain(|number, _| *number <= below.number);
        Ok(())
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        self.up("import").await?;
        let (id, parent) = (payload.id(), payload.parent_hash());
        let invalid = |reason: &str| EngineError::InvalidBlock { hash: id.hash, reason: reason.to_owned() };
        let content = content_of(payload).ok_or_else(|| invalid("its content cannot be read"))?;
        let mut chain = self.chain.0.lock();
        let below = chain.known(parent)?;
        let mut state = chain.states.get(&parent).cloned().unwrap_or_default();
        let (_, skipped) = chain.transfer(&mut state, &content.transactions);
        let hash = block_hash(parent, below.number + 1, state_root(&state), &content);
        if !skipped.is_empty() || hash != id.hash {
            return Err(invalid("it executes to another block"));
        }
        chain.adopt(id, state, &content.transactions);
        Ok(())
    }

    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError> {
        self.up("set_finality").await?;
        let mut chain = self.chain.0.lock();
        let known = |hash: B256| hash.is_zero() || chain.known(hash).is_ok();
        if !known(safe) || !known(finalized) {
            let reason = "not a block of this client".to_owned();
            return Err(EngineError::UnknownFinality { safe, finalized, reason });
        }
        if !finalized.is_zero() {
            chain.finalized = finalized;
        }
        Ok(())
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        self.life.check().await;
        let chain = self.chain.0.lock();
        let head = chain.canonical.last_key_value().map(|(_, head)| *head);
        let account = || {
            let address: Address = serde_json::from_value(params[0].clone()).unwrap_or_default();
            let state = head.and_then(|head| chain.states.get(&head.hash));
            state.and_then(|state| state.get(&address)).copied().unwrap_or_default()
        };
        let including = || {
            let hash: B256 = serde_json::from_value(params[0].clone()).unwrap_or_default();
            let holds =
                |block: &&BlockId| chain.included.get(&block.hash).is_some_and(|list| list.contains(&hash));
            chain.canonical.values().find(holds).map(|block| (block, hash))
        };
        let place = |(block, hash): (&BlockId, B256), name: &str| json!({ name: hash, "blockHash": block.hash, "blockNumber": format!("{:#x}", block.number), "status": "0x1" });
        match method {
            "eth_chainId" => Ok(json!(format!("{:#x}", chain.chain_id))),
            "eth_getTransactionCount" => Ok(json!(format!("{:#x}", account().nonce))),
            "eth_getBalance" => Ok(json!(account().balance)),
            "eth_getTransactionReceipt" => {
                Ok(including().map_or(Value::Null, |found| place(found, "transactionHash")))
            }
            "eth_getTransactionByHash" => Ok(including().map_or(Value::Null, |found| place(found, "hash"))),
            _ => Err(ReadError::NotAllowed { method: method.to_owned() }),
        }
    }
}

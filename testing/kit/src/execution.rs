//! An execution client as a script.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, SkipReason,
    SkippedTransaction, StoredPayload, TransportError,
};
use blindfold_protocol::{Address, B256, Bytes, merkle};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// An execution client without a virtual machine: a block's hash is a function of parent, inputs and list.
#[derive(Default)]
pub struct ScriptedExecution {
    blocks: Mutex<BTreeMap<u64, BlockId>>,
    /// Transactions that cannot execute, by their bytes.
    pub refused: Mutex<BTreeSet<Bytes>>,
    /// Answers nothing.
    pub down: AtomicBool,
    /// Refuses to execute, whatever it is given.
    pub give_up: AtomicBool,
    /// Reports a skipped transaction that it was not given.
    pub skips_outside: AtomicBool,
    /// Is of another version than ours.
    pub other_rules: AtomicBool,
    /// How many blocks back it builds and imports, if not any number: of older ones it has no state at hand, until it goes
    /// back.
    pub states: Mutex<Option<u64>>,
    /// Knows no parent, whatever is imported.
    pub forgets: AtomicBool,
    /// Inputs of the blocks made with `execute`.
    pub executed: Mutex<Vec<BlockInputs>>,
    /// What each of them was to be made of.
    pub lists: Mutex<Vec<Vec<Bytes>>>,
    /// Blocks taken with `import`.
    pub imported: AtomicUsize,
    /// What is marked safe and finalized; a client that loses blocks forgets both.
    pub finality: Mutex<Option<(B256, B256)>>,
    /// The number of its final block for whoever asks, where none above it is marked.
    pub final_number: AtomicU64,
    /// Makes this client's blocks differ from everybody else's.
    pub salt: Mutex<Vec<u8>>,
}

impl ScriptedExecution {
    /// The genesis block alone.
    pub fn new() -> Arc<Self> {
        let client = Self::default();
        let genesis = BlockId { number: 0, hash: merkle::leaf(b"genesis block"), timestamp: 0 };
        client.blocks.lock().insert(0, genesis);
        Arc::new(client)
    }

    /// Forgets everything above a block, as a killed client does.
    pub fn lose_blocks_above(&self, number: u64) {
        self.blocks.lock().retain(|kept, _| *kept <= number);
        *self.finality.lock() = None;
    }

    /// Its newest block.
    pub fn head_now(&self) -> BlockId {
        *self.blocks.lock().last_key_value().expect("genesis").1
    }

    /// A block that it can build on.
    fn with_state(&self, blocks: &BTreeMap<u64, BlockId>, hash: B256) -> Result<BlockId, EngineError> {
        let newest = blocks.last_key_value().map_or(0, |(number, _)| *number);
        let oldest = self.states.lock().map_or(0, |states| newest.saturating_sub(states));
        let found = blocks.range(oldest..).map(|(_, block)| *block).find(|block| block.hash == hash);
        found.ok_or(EngineError::UnknownBlock { hash })
    }

    fn up(&self, method: &str) -> Result<(), EngineError> {
        if self.down.load(Ordering::SeqCst) {
            let reason = "scripted outage".to_owned();
            return Err(TransportError::Unreachable { method: method.to_owned(), reason }.into());
        }
        Ok(())
    }
}

fn payload(parent: B256, id: BlockId, list: &[Bytes]) -> StoredPayload {
    let text = json!({
        "version": 1,
        "parentBeaconBlockRoot": B256::ZERO,
        "executionPayload": {
            "parentHash": parent, "feeRecipient": Address::ZERO, "stateRoot": id.hash, "receiptsRoot": B256::ZERO,
            "logsBloom": alloy_primitives::Bloom::ZERO, "prevRandao": B256::ZERO, "blockNumber": format!("{:#x}", id.number),
            "gasLimit": "0x1", "gasUsed": "0x0", "timestamp": format!("{:#x}", id.timestamp), "extraData": "0x",
            "baseFeePerGas": "0x0", "blockHash": id.hash, "transactions": list, "withdrawals": [],
            "blobGasUsed": "0x0", "excessBlobGas": "0x0", "withdrawalsRoot": B256::ZERO,
        },
    });
    StoredPayload::decode(text.to_string().as_bytes()).expect("the payload above is one")
}

#[async_trait]
impl ExecutionClient for ScriptedExecution {
    async fn ensure_compatible(&self, chain_id: u64) -> Result<(), EngineError> {
        self.up("ensure_compatible")?;
        if self.other_rules.load(Ordering::SeqCst) {
            let reason = format!("scripted: not the rules of chain {chain_id}");
            return Err(EngineError::IncompatibleClient { reason });
        }
        Ok(())
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        self.up("head")?;
        Ok(self.head_now())
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        self.up("block")?;
        Ok(self.blocks.lock().get(&number).copied())
    }

    async fn finalized(&self) -> Result<Option<u64>, EngineError> {
        self.up("finalized")?;
        let marked = self.finality.lock().map(|(_, finalized)| finalized);
        let blocks = self.blocks.lock();
        let marked = blocks.values().find(|block| Some(block.hash) == marked).map(|block| block.number);
        Ok(marked.max(Some(self.final_number.load(Ordering::SeqCst))))
    }

    async fn execute(
        &self,
        parent: B256,
        inputs: &BlockInputs,
        transactions: &[Bytes],
    ) -> Result<ExecutedBlock, EngineError> {
        self.up("execute")?;
        if self.give_up.load(Ordering::SeqCst) {
            return Err(EngineError::PayloadMismatch { field: "transactions" });
        }
        if self.forgets.load(Ordering::SeqCst) {
            return Err(EngineError::UnknownBlock { hash: parent });
        }
        let mut blocks = self.blocks.lock();
        let below = self.with_state(&blocks, parent)?;
        let refused = self.refused.lock();
        let (mut included, mut skipped) = (Vec::new(), Vec::new());
        for (index, raw) in transactions.iter().enumerate() {
            if refused.contains(raw) {
                skipped.push(SkippedTransaction { index, reason: SkipReason::NonceTooLow });
            } else {
                included.push(raw.clone());
            }
        }
        if self.skips_outside.load(Ordering::SeqCst) {
            skipped.push(SkippedTransaction { index: transactions.len(), reason: SkipReason::NonceTooLow });
        }
        let mut data =
            [parent.as_slice(), inputs.prev_randao.as_slice(), &inputs.timestamp.to_be_bytes()].concat();
        data.extend(&inputs.sequence_number.to_be_bytes());
        data.extend(&*self.salt.lock());
        data.extend(included.iter().flat_map(|raw| raw.to_vec()));
        let id = BlockId { number: below.number + 1, hash: merkle::leaf(&data), timestamp: inputs.timestamp };
        blocks.retain(|number, _| *number <= below.number);
        blocks.insert(id.number, id);
        self.executed.lock().push(inputs.clone());
        self.lists.lock().push(transactions.to_vec());
        Ok(ExecutedBlock {
            number: id.number,
            hash: id.hash,
            parent_hash: parent,
            state_root: id.hash,
            timestamp: id.timestamp,
            transactions: included.iter().map(alloy_primitives::keccak256).collect(),
            skipped,
            gas_used: 21_000 * included.len() as u64,
            payload: payload(parent, id, &included),
        })
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        self.up("import")?;
        let mut blocks = self.blocks.lock();
        self.with_state(&blocks, payload.parent_hash())?;
        let id = payload.id();
        blocks.retain(|number, _| *number < id.number);
        blocks.insert(id.number, id);
        self.imported.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn rewind(&self, to: B256) -> Result<(), EngineError> {
        self.up("rewind")?;
        let mut blocks = self.blocks.lock();
        let found = blocks.values().find(|block| block.hash == to).copied();
        let head = found.ok_or(EngineError::UnknownBlock { hash: to })?;
        if head.number == 0 {
            let (method, message) = ("engine_rewindV1".to_owned(), "scripted: no records".to_owned());
            return Err(EngineError::Rpc { method, code: -39_004, message });
        }
        blocks.retain(|number, _| *number <= head.number);
        Ok(())
    }

    async fn set_finality(&self, safe: B256, finalized: B256) -> Result<(), EngineError> {
        self.up("set_finality")?;
        let blocks = self.blocks.lock();
        let known = |hash: B256| hash.is_zero() || blocks.values().any(|block| block.hash == hash);
        if !known(safe) || !known(finalized) {
            let reason = "scripted: not a block of this client".to_owned();
            return Err(EngineError::UnknownFinality { safe, finalized, reason });
        }
        *self.finality.lock() = Some((safe, finalized));
        Ok(())
    }

    async fn read(&self, method: &str, params: Value) -> Result<Value, ReadError> {
        match method {
            "eth_getBlockByHash" => Err(ReadError::Rpc {
                code: 3,
                message: "scripted error".to_owned(),
                data: Some(json!("0x08")),
            }),
            "eth_getLogs" => Err(ReadError::Busy { limit: 1 }),
            "eth_getCode" => Err(ReadError::Transport(TransportError::Timeout {
                method: method.to_owned(),
                timeout_ms: 1,
            })),
            "eth_newFilter" => Err(ReadError::NotAllowed { method: method.to_owned() }),
            _ => Ok(json!({ "method": method, "params": params })),
        }
    }
}

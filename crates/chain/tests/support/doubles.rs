//! Scripted stand-ins for what lies outside: L1 and the execution client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader, MAX_FORCED_ENTRIES,
    PendingFallbackHeader, VoidRun,
};
use blindfold_engine::{
    BlockId, BlockInputs, EngineError, ExecutedBlock, ExecutionClient, ReadError, SkipReason,
    SkippedTransaction, StoredPayload, TransportError,
};
use blindfold_protocol::{
    Address, B256, Bytes, Deposit, Epochs, ForcedEntry, LedgerEvent, SequencerChange, merkle,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::START_SECOND;

/// L1 as a script: blocks are final up to a number, deposits stand in a list.
pub struct ScriptedL1 {
    pub epochs: Mutex<Epochs>,
    /// Keys of sequencers; none for the chain's alone.
    pub sequencers: Mutex<Vec<SequencerChange>>,
    pub finalized: Mutex<u64>,
    pub events: Mutex<Vec<LedgerEvent>>,
    pub forced: Mutex<Vec<ForcedEntry>>,
    pub bridge: Mutex<Vec<L1Deposit>>,
    pub l1_headers: Mutex<Vec<FallbackHeader>>,
    /// Headers that L1 made and that are not final.
    pub not_final: Mutex<Vec<PendingFallbackHeader>>,
    /// Hashes of blocks that are not final.
    pub shown: Mutex<BTreeMap<u64, B256>>,
    pub void_runs: Mutex<Vec<VoidRun>>,
    /// The end of an epoch that is announced.
    pub ending: Mutex<Option<AnnouncedEnd>>,
    /// Up to which number headers are posted.
    pub posted: Mutex<u64>,
    pub fault: Mutex<Option<L1Error>>,
    /// The one question that is answered with an error, and that.
    pub fault_of: Mutex<Option<(&'static str, L1Error)>>,
    /// Shows another block for every number.
    pub reorganised: AtomicBool,
    /// Takes questions about epochs and answers none.
    pub hangs: AtomicBool,
    /// How long an answer about epochs takes, in milliseconds.
    pub slow_ms: AtomicU64,
}

impl ScriptedL1 {
    pub fn new(epochs: Epochs) -> Self {
        Self {
            epochs: Mutex::new(epochs),
            sequencers: Mutex::default(),
            finalized: Mutex::new(1),
            events: Mutex::default(),
            forced: Mutex::default(),
            bridge: Mutex::default(),
            l1_headers: Mutex::default(),
            not_final: Mutex::default(),
            shown: Mutex::default(),
            void_runs: Mutex::default(),
            ending: Mutex::default(),
            posted: Mutex::default(),
            fault: Mutex::default(),
            fault_of: Mutex::default(),
            reorganised: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            slow_ms: AtomicU64::new(0),
        }
    }

    /// A deposit in a new final block.
    pub fn deposit(&self, payer: Address, amount: u128) -> u64 {
        let mut finalized = self.finalized.lock();
        *finalized += 1;
        let deposit = Deposit { payer, amount, l1_block: *finalized };
        self.events.lock().push(LedgerEvent::Deposit(deposit));
        *finalized
    }

    /// A forced item in a new final block; gives its entry.
    pub fn force(&self, make: impl FnOnce(u64, u64) -> ForcedEntry) -> ForcedEntry {
        let mut finalized = self.finalized.lock();
        *finalized += 1;
        let mut forced = self.forced.lock();
        let entry = make(forced.len() as u64, *finalized);
        forced.push(entry.clone());
        entry
    }

    /// An L1 deposit in a new final block; gives its raw transaction.
    pub fn bridge(&self, gas: u64) -> Bytes {
        *self.finalized.lock() += 1;
        self.bridge_again(gas)
    }

    /// Another one in the newest final block.
    pub fn bridge_again(&self, gas: u64) -> Bytes {
        let l1_block = *self.finalized.lock();
        let mut bridge = self.bridge.lock();
        // What it mints stands in it: the sum of all is 1 + 2 + ….
        let wei = bridge.len() as u64 + 1;
        let raw = Bytes::from([[0x7e].as_slice(), &l1_block.to_be_bytes(), &wei.to_be_bytes()].concat());
        bridge.push(L1Deposit { raw: raw.clone(), gas, l1_block });
        raw
    }

    fn up(&self) -> Result<(), L1Error> {
        self.fault.lock().clone().map_or(Ok(()), Err)
    }

    fn up_for(&self, question: &str) -> Result<(), L1Error> {
        self.up()?;
        let fault = self.fault_of.lock().clone().filter(|(of, _)| *of == question);
        fault.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The L1 block of a number: always the same.
pub fn l1_block(number: u64) -> L1Origin {
    L1Origin {
        number,
        hash: merkle::leaf(&number.to_be_bytes()),
        timestamp: START_SECOND - 10_000 + number,
        base_fee: 7,
        blob_base_fee: 1,
        parent_beacon_block_root: B256::ZERO,
    }
}

#[async_trait]
impl L1Reader for ScriptedL1 {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        self.up()?;
        Ok(l1_block(*self.finalized.lock()))
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.up()?;
        Ok(*self.finalized.lock())
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        self.up_for("origin")?;
        let shown = if self.reorganised.load(Ordering::SeqCst) {
            L1Origin { hash: B256::repeat_byte(0xbb), ..l1_block(number) }
        } else {
            l1_block(number)
        };
        Ok((number <= *self.finalized.lock()).then_some(shown))
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.up()?;
        Ok(*self.ending.lock())
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        self.up()?;
        let within = |block: u64| (after + 1..=through).contains(&block);
        let entries = self.forced.lock();
        let queue = entries.iter().filter(|entry| entry.index >= cursor && entry.enqueued_at <= through);
        Ok(L1News {
            ledger: self.events.lock().iter().filter(|event| within(event.l1_block())).cloned().collect(),
            forced: queue.take(MAX_FORCED_ENTRIES).cloned().collect(),
        })
    }

    async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        self.up_for("bridge_deposits")?;
        let within = |deposit: &&L1Deposit| (after + 1..=through).contains(&deposit.l1_block);
        Ok(self.bridge.lock().iter().filter(within).cloned().collect())
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        self.up()?;
        Ok(self.l1_headers.lock().iter().find(|made| made.header.number == number).cloned())
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.up()?;
        Ok(self.l1_headers.lock().last().map(|made| made.header.number))
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        self.up()?;
        Ok(self.not_final.lock().clone())
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        self.up()?;
        Ok(self.shown.lock().get(&number).copied())
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        self.up()?;
        Ok(self.void_runs.lock().clone())
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.up()?;
        Ok((1..=*self.posted.lock()).contains(&number).then_some(1))
    }

    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        self.up().map(|()| false)
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(self.slow_ms.load(Ordering::SeqCst))).await;
        self.up()?;
        let epochs = self.epochs.lock().clone();
        let sequencers = self.sequencers.lock().clone();
        if sequencers.is_empty() {
            return Ok(epochs);
        }
        Ok(epochs.with_sequencers(sequencers, *self.finalized.lock()).expect("valid"))
    }
}

/// An execution client without a virtual machine: a block's hash is a function of parent, inputs and list.
#[derive(Default)]
pub struct ScriptedExecution {
    blocks: Mutex<BTreeMap<u64, BlockId>>,
    /// Transactions that cannot execute, by their bytes.
    pub refused: Mutex<BTreeSet<Bytes>>,
    pub down: AtomicBool,
    pub give_up: AtomicBool,
    /// Reports a skipped transaction that it was not given.
    pub skips_outside: AtomicBool,
    /// Is of another version than ours.
    pub other_rules: AtomicBool,
    /// Knows no parent, whatever is imported.
    pub forgets: AtomicBool,
    /// Blocks made with `execute`, and blocks taken with `import`.
    pub executed: Mutex<Vec<BlockInputs>>,
    pub imported: AtomicUsize,
    /// What is marked safe and finalized; a client that loses blocks forgets both.
    pub finality: Mutex<Option<(B256, B256)>>,
    /// How often it was told.
    pub told: AtomicUsize,
    /// Makes this client's blocks differ from everybody else's.
    pub salt: Mutex<Vec<u8>>,
}

impl ScriptedExecution {
    pub fn new() -> Self {
        let client = Self::default();
        client
            .blocks
            .lock()
            .insert(0, BlockId { number: 0, hash: merkle::leaf(b"genesis block"), timestamp: 0 });
        client
    }

    /// Forgets everything above a block, as a killed client does.
    pub fn lose_blocks_above(&self, number: u64) {
        self.blocks.lock().retain(|kept, _| *kept <= number);
        *self.finality.lock() = None;
    }

    pub fn head_now(&self) -> BlockId {
        *self.blocks.lock().last_key_value().expect("genesis").1
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
            "logsBloom": "0x", "prevRandao": B256::ZERO, "blockNumber": format!("{:#x}", id.number),
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
        let Some(below) = blocks.values().find(|block| block.hash == parent).copied() else {
            return Err(EngineError::UnknownBlock { hash: parent });
        };
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
        if !blocks.values().any(|block| block.hash == payload.parent_hash()) {
            return Err(EngineError::UnknownBlock { hash: payload.parent_hash() });
        }
        let id = payload.id();
        blocks.retain(|number, _| *number < id.number);
        blocks.insert(id.number, id);
        self.imported.fetch_add(1, Ordering::SeqCst);
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
        self.told.fetch_add(1, Ordering::SeqCst);
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

//! The forced queue, and what users deposit for L2: what L1 makes the rollup take.

use alloy_primitives::Bytes;
use alloy_sol_types::SolEvent;
use blindfold_engine::{BridgeDeposit, bridge_deposit};

use blindfold_protocol::ForcedEntry;

use crate::{
    contracts::{DepositPortal, ForcedQueue},
    error::L1Error,
    events::logs::malformed_log,
    reader::client::L1Client,
};

/// Kind of an entry that is an envelope.
pub(crate) const KIND_ENVELOPE: u8 = 0;
/// Kind of an entry that is a transaction in the clear.
pub(crate) const KIND_TRANSACTION: u8 = 1;

/// A deposit from L1 as a transaction of L2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct L1Deposit {
    /// Raw EIP-2718 bytes (0x7e ‖ RLP).
    pub raw: Bytes,
    /// Its gas limit, which counts in the gas that a block keeps for deposits.
    pub gas: u64,
    /// The final L1 block of the deposit.
    pub l1_block: u64,
}

impl L1Client {
    /// Entries of the forced queue from `from_index` on, in order, at most `limit`, that were enqueued in L1 blocks up
    /// to `through_block`, which is final. The queue's own record bounds the range of blocks that is searched.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] when the logs leave one out; the errors of a call.
    pub async fn forced_entries(
        &self,
        from_index: u64,
        limit: usize,
        through_block: u64,
    ) -> Result<Vec<ForcedEntry>, L1Error> {
        let finalized = self.finalized().await?.number;
        if through_block > finalized {
            return Err(L1Error::NotFinal { number: through_block, finalized });
        }
        let Some(last_index) = (limit as u64).checked_sub(1).map(|more| from_index.saturating_add(more))
        else {
            return Ok(Vec::new());
        };
        let first_block = self.enqueued_at(from_index).await?;
        if first_block == 0 || first_block > through_block {
            return Ok(Vec::new());
        }
        // Entries are in order of their blocks, so none that is asked for is later than the last one.
        let through = match self.enqueued_at(last_index).await? {
            0 => through_block,
            block => block.min(through_block),
        };
        let queue = self.inner.config.contracts.forced_queue;
        let topics = [ForcedQueue::Forced::SIGNATURE_HASH];
        let mut entries = Vec::new();
        for log in self.final_logs(queue, &topics, first_block.saturating_sub(1), through).await? {
            let Some(event) = log.event::<ForcedQueue::Forced>()? else { continue };
            if event.index < from_index || event.index > last_index {
                continue;
            }
            if event.index != from_index.saturating_add(entries.len() as u64) {
                return Err(malformed_log(&format!("forced entry {} is missing", event.index)));
            }
            entries.push(match event.kind {
                KIND_ENVELOPE => ForcedEntry::envelope(event.index, event.item, log.block),
                KIND_TRANSACTION => {
                    ForcedEntry::transaction(event.index, event.gasLimit, event.item, log.block)
                }
                other => return Err(malformed_log(&format!("a forced entry of kind {other}"))),
            });
        }
        if entries.is_empty() {
            return Err(malformed_log(&format!("forced entry {from_index} is missing")));
        }
        Ok(entries)
    }

    /// How many items were ever enqueued, after the newest final block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn forced_length(&self) -> Result<u64, L1Error> {
        let queue = self.inner.config.contracts.forced_queue;
        let length = self.final_view("length", queue, &ForcedQueue::lengthCall {}).await?;
        Ok(length.unwrap_or_default())
    }

    /// The L1 block of an entry, 0 while it is not there.
    async fn enqueued_at(&self, index: u64) -> Result<u64, L1Error> {
        let queue = self.inner.config.contracts.forced_queue;
        let block = self.final_view("enqueuedAt", queue, &ForcedQueue::enqueuedAtCall { index }).await?;
        Ok(block.unwrap_or_default())
    }

    /// What was deposited for L2 in blocks `after + 1 ..= through`, in L1 order, as transactions of L2. `through` is
    /// final (DP-1).
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; [`L1Error::Malformed`] for a deposit that the contract cannot have emitted; the errors
    /// of a call.
    pub async fn bridge_deposits(&self, after: u64, through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        let portal = self.inner.config.contracts.deposit_portal;
        let topics = [DepositPortal::TransactionDeposited::SIGNATURE_HASH];
        let mut deposits = Vec::new();
        for log in self.final_logs(portal, &topics, after, through).await? {
            let Some(event) = log.event::<DepositPortal::TransactionDeposited>()? else { continue };
            if !event.version.is_zero() {
                return Err(malformed_log(&"a deposit of another version"));
            }
            let deposit = BridgeDeposit {
                l1_block_hash: log.block_hash,
                log_index: log.index,
                from: event.from,
                to: event.to,
                opaque_data: &event.opaqueData,
            };
            let transaction = bridge_deposit(&deposit).map_err(|fault| malformed_log(&fault))?;
            deposits.push(L1Deposit { raw: transaction.raw, gas: transaction.gas, l1_block: log.block });
        }
        Ok(deposits)
    }
}

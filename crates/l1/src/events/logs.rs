//! Logs, one after another as L1 has them.

use alloy_primitives::B256;
use alloy_rpc_types_eth::Log;
use alloy_sol_types::SolEvent;

use crate::error::L1Error;

/// A log; of a final block unless it came from [`newest_logs`](crate::reader::client::L1Client::newest_logs).
#[derive(Clone, Debug)]
pub(crate) struct FinalLog {
    pub block: u64,
    pub block_hash: B256,
    pub transaction: B256,
    pub index: u64,
    pub log: Log,
}

impl FinalLog {
    /// Where it stands on L1.
    pub fn position(&self) -> (u64, u64) {
        (self.block, self.index)
    }

    /// The log as this event, if it is one.
    pub fn event<E: SolEvent>(&self) -> Result<Option<E>, L1Error> {
        if self.log.inner.topics().first() != Some(&E::SIGNATURE_HASH) {
            return Ok(None);
        }
        let event = E::decode_log(&self.log.inner).map_err(|error| malformed_log(&error))?;
        Ok(Some(event.data))
    }
}

pub(crate) fn malformed_log(reason: &impl std::fmt::Display) -> L1Error {
    L1Error::Malformed { method: "eth_getLogs".to_owned(), reason: reason.to_string() }
}

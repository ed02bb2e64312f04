//! The execution seam of Blindfold: everything the rollup asks of an execution client goes through
//! [`ExecutionClient`], so that another client can take op-geth's place without the callers noticing.
//!
//! - [`BlockInputs`]: what a block is made of, each field a function of batch headers and their L1 origin.
//! - [`OpGeth`]: the implementation over HTTP, for the node in `crates/engine/node`.
//! - [`replay`]: brings a client that lost its head back to ours from stored payloads.
//! - [`Genesis`], [`ManagedNode`]: a genesis file and a child process, for the devnet and for tests.
//!
//! One block is executed in one call where the client has it (`engine_executeV1`): it filters the committed list, makes the
//! block of what is included, imports it and makes it the head. Else it takes five steps: filter (`engine_filterV1`), build
//! (`engine_forkchoiceUpdatedV3`), fetch (`engine_getPayloadV5`), check that the payload's list is exactly the
//! one asked for, import and make it the head (`engine_newPayloadV4`, `engine_forkchoiceUpdatedV3`). Both give the same block.
//! No step has an effect that a repetition would change, so a caller may call again after any failure.

mod client;
mod deposit;
mod error;
mod genesis;
mod managed;
mod op_geth;
mod payload;
mod reads;
mod replay;
mod skip;
#[cfg(test)]
mod test_server;
mod transport;
mod types;
mod wire;

pub use client::ExecutionClient;
pub use deposit::{
    ATTRIBUTES_DEPOSIT_GAS, ATTRIBUTES_DEPOSITOR, BridgeDeposit, DepositError, DepositTransaction,
    L1_BLOCK_PREDEPLOY, attributes_deposit, bridge_deposit,
};
pub use error::{EngineError, Fault, ReadError, Recovery, TransportError};
pub use genesis::Genesis;
pub use managed::{ManagedNode, ManagedNodeConfig, ManagedNodeError};
pub use op_geth::{FilterInfo, OpGeth, OpGethConfig, TRANSACTIONS_LIMIT};
pub use payload::{PayloadError, StoredPayload};
pub use reads::{PUBLIC_READS, SIMULATION_READS, is_public_read};
pub use replay::{PayloadSource, PayloadSourceError, ReplayError, ReplayReport, replay};
pub use skip::{SkipReason, UnknownSkipReason};
pub use transport::{JwtSecret, JwtSecretError};
pub use types::{
    BlockId, BlockInputs, EIP1559_PARAMS, ExecutedBlock, L1Origin, MIN_BASE_FEE_WEI, SkippedTransaction,
};

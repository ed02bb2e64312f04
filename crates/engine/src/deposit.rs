//! Deposit transactions of the OP Stack: the L1-attributes deposit that every block begins with (Jovian format), and
//! what users deposit on L1.

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address};
use op_alloy_consensus::{L1InfoDepositSource, TxDeposit, UserDepositSource};

use crate::BlockInputs;

/// Sender of the attributes deposit; no key exists for it.
pub const ATTRIBUTES_DEPOSITOR: Address = address!("deaddeaddeaddeaddeaddeaddeaddeaddead0001");

/// The contract at which the OP Stack keeps L1 attributes. In the default genesis it has no logic: its
/// storage, from which the client reads fee scalars, never changes.
pub const L1_BLOCK_PREDEPLOY: Address = address!("4200000000000000000000000000000000000015");

/// Gas limit of the attributes deposit.
pub const ATTRIBUTES_DEPOSIT_GAS: u64 = 1_000_000;

/// Selector of `setL1BlockValuesJovian()`; its arguments are packed, not ABI-encoded.
const SELECTOR: [u8; 4] = [0x3d, 0xb6, 0xbe, 0x2b];

/// Length of the call data; the client refuses any other.
const CALL_DATA_BYTES: usize = 178;

/// What stands before the call data in the opaque data of a deposit event: mint, value, gas limit, creation flag.
const OPAQUE_HEAD_BYTES: usize = 32 + 32 + 8 + 1;

/// All fee scalars are zero: Blindfold charges for data by its own fee ledger. The client takes a zero
/// DA-footprint scalar as zero; only op-node, which is not in use here, replaces it by a default.
const BASE_FEE_SCALAR: u32 = 0;
const BLOB_BASE_FEE_SCALAR: u32 = 0;
const OPERATOR_FEE_SCALAR: u32 = 0;
const OPERATOR_FEE_CONSTANT: u64 = 0;
const DA_FOOTPRINT_GAS_SCALAR: u16 = 0;

/// The attributes deposit of the block with these inputs, as raw EIP-2718 bytes (0x7e ‖ RLP): the first of the list
/// . Its source hash is of the L1 origin and the sequence number (DP-1).
pub fn attributes_deposit(inputs: &BlockInputs) -> Bytes {
    let transaction = TxDeposit {
        source_hash: L1InfoDepositSource::new(inputs.l1_origin.hash, inputs.sequence_number).source_hash(),
        from: ATTRIBUTES_DEPOSITOR,
        to: TxKind::Call(L1_BLOCK_PREDEPLOY),
        mint: 0,
        value: U256::ZERO,
        gas_limit: ATTRIBUTES_DEPOSIT_GAS,
        is_system_transaction: false,
        input: call_data(inputs).into(),
    };
    transaction.encoded_2718().into()
}

/// What a user deposited on L1 with one event `TransactionDeposited` of version 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeDeposit<'a> {
    /// Hash of the L1 block of the event.
    pub l1_block_hash: B256,
    /// Index of the event's log in that block.
    pub log_index: u64,
    /// The event's `from`: the sender on L2.
    pub from: Address,
    /// The event's `to`; of no meaning for a creation.
    pub to: Address,
    /// The event's `opaqueData`: mint u256 ‖ value u256 ‖ gas limit u64 ‖ creation u8 ‖ call data.
    pub opaque_data: &'a [u8],
}

/// A deposit as a transaction of L2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositTransaction {
    /// Raw EIP-2718 bytes (0x7e ‖ RLP).
    pub raw: Bytes,
    /// Gas limit of the deposit.
    pub gas: u64,
}

/// A deposit event that the contract cannot have emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DepositError {
    /// The opaque data ends before the call data begins.
    #[error("the opaque data has {0} bytes, at least {OPAQUE_HEAD_BYTES} are needed")]
    Short(usize),
    /// More is minted than 128 bits hold.
    #[error("the deposit mints more than 128 bits hold")]
    Mint,
    /// The creation flag is neither 0 nor 1.
    #[error("the creation flag is {0}")]
    Creation(u8),
}

/// The transaction of a deposit on L1, as every client of the OP Stack derives it: its source hash is of the L1 block and
/// the index of the log (DP-1). One hash over 64 bytes, twice.
///
/// # Errors
/// [`DepositError`] for opaque data of another form.
pub fn bridge_deposit(deposit: &BridgeDeposit<'_>) -> Result<DepositTransaction, DepositError> {
    let short = DepositError::Short(deposit.opaque_data.len());
    let (mint, rest) = deposit.opaque_data.split_first_chunk::<32>().ok_or(short)?;
    let (value, rest) = rest.split_first_chunk::<32>().ok_or(short)?;
    let (gas, rest) = rest.split_first_chunk::<8>().ok_or(short)?;
    let (creation, data) = rest.split_first().ok_or(short)?;
    let to = match creation {
        0 => TxKind::Call(deposit.to),
        1 => TxKind::Create,
        other => return Err(DepositError::Creation(*other)),
    };
    let gas = u64::from_be_bytes(*gas);
    let transaction = TxDeposit {
        source_hash: UserDepositSource::new(deposit.l1_block_hash, deposit.log_index).source_hash(),
        from: deposit.from,
        to,
        mint: u128::try_from(U256::from_be_bytes(*mint)).map_err(|_| DepositError::Mint)?,
        value: U256::from_be_bytes(*value),
        gas_limit: gas,
        is_system_transaction: false,
        input: Bytes::copy_from_slice(data),
    };
    Ok(DepositTransaction { raw: transaction.encoded_2718().into(), gas })
}

fn call_data(inputs: &BlockInputs) -> Vec<u8> {
    let origin = &inputs.l1_origin;
    let mut data = Vec::with_capacity(CALL_DATA_BYTES);
    data.extend_from_slice(&SELECTOR);
    data.extend_from_slice(&BASE_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&BLOB_BASE_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&inputs.sequence_number.to_be_bytes());
    data.extend_from_slice(&origin.timestamp.to_be_bytes());
    data.extend_from_slice(&origin.number.to_be_bytes());
    data.extend_from_slice(&U256::from(origin.base_fee).to_be_bytes::<32>());
    data.extend_from_slice(&U256::from(origin.blob_base_fee).to_be_bytes::<32>());
    data.extend_from_slice(origin.hash.as_slice());
    data.extend_from_slice(B256::ZERO.as_slice()); // batcher hash: there is no batcher
    data.extend_from_slice(&OPERATOR_FEE_SCALAR.to_be_bytes());
    data.extend_from_slice(&OPERATOR_FEE_CONSTANT.to_be_bytes());
    data.extend_from_slice(&DA_FOOTPRINT_GAS_SCALAR.to_be_bytes());
    assert_eq!(data.len(), CALL_DATA_BYTES, "layout of the attributes call data");
    data
}

#[cfg(test)]
#[path = "deposit_tests.rs"]
mod tests;

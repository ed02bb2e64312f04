//! Settings of a chain, for tests.

use alloy_primitives::{Address, B256};
use blindfold_protocol::{BatchHeader, ChainConfig, Deployment, L1Timing, limits::DEFAULT_BLOCK_GAS};

pub fn chain() -> ChainConfig {
    let address = Address::repeat_byte;
    ChainConfig {
        chain_id: 42_069,
        deployment: Deployment { l1_chain_id: 900, inbox: address(1) },
        registry: address(2),
        fee_vault: address(3),
        forced_queue: address(4),
        hint_registry: address(5),
        hint_verifier: address(6),
        deposit_portal: address(7),
        output_registry: address(8),
        timing: L1Timing::default(),
        sequencer: address(9),
        fee_recipient: address(10),
        base_fee_recipient: Address::ZERO,
        block_gas_limit: DEFAULT_BLOCK_GAS,
        initial_base_fee: 1_000_000,
        min_base_fee: 1_000_000,
        initial_gas_base_fee: 1,
        min_gas_base_fee: 1,
        malformed_surcharge: 0,
        genesis_l1_origin: 0,
    }
}

/// An empty header.
pub fn header() -> BatchHeader {
    BatchHeader {
        number: 1,
        parent_hash: B256::ZERO,
        timestamp_ms: 0,
        l1_origin_number: 0,
        l1_origin_hash: B256::ZERO,
        l1_origin_time: 0,
        envelope_root: B256::ZERO,
        data_hash: B256::ZERO,
        envelope_count: 0,
        envelope_bytes: 0,
        gas: 0,
        base_fee: 0,
        gas_base_fee: 0,
        fee_ledger_root: B256::ZERO,
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    }
}

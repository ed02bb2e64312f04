//! Settings of a chain, for tests.

use alloy_primitives::Address;
use blindfold_protocol::{ChainConfig, Deployment, L1Timing, limits::DEFAULT_BLOCK_GAS};

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

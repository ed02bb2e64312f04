//! A header for tests that are about few fields of one, as the kit has it for the crates above this one.

use blindfold_protocol::{B256, BatchHeader};

/// The header of an empty batch that follows nothing: what a test is about it lays over it.
pub(crate) fn plain_header(number: u64) -> BatchHeader {
    BatchHeader {
        number,
        parent_hash: B256::ZERO,
        timestamp_ms: 1_000,
        l1_origin_number: 0,
        l1_origin_hash: B256::ZERO,
        l1_origin_time: 0,
        envelope_root: B256::ZERO,
        data_hash: B256::ZERO,
        envelope_count: 0,
        envelope_bytes: 0,
        gas: 0,
        base_fee: 1,
        gas_base_fee: 1,
        fee_ledger_root: B256::ZERO,
        forced_cursor: 0,
        epoch: 1,
        rules: 1,
    }
}

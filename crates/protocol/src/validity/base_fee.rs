//! The ordering fee's base: EIP-1559 over item bytes.

use crate::limits::{BASE_FEE_CHANGE_DENOMINATOR, TARGET_BATCH_BYTES};
use alloy_primitives::U256;

/// The base fee after a batch with this base fee and this many item bytes, not below the chain's minimum.
///
/// Above the target it rises by at least 1 wei; an empty batch leaves it where it is.
pub fn next_base_fee(base_fee: u128, envelope_bytes: u32, minimum: u128) -> u128 {
    let bytes = u64::from(envelope_bytes);
    if bytes == 0 || bytes == TARGET_BATCH_BYTES {
        return base_fee.max(minimum);
    }
    let distance = bytes.abs_diff(TARGET_BATCH_BYTES);
    let delta = U256::from(base_fee) * U256::from(distance)
        / U256::from(TARGET_BATCH_BYTES)
        / U256::from(BASE_FEE_CHANGE_DENOMINATOR);
    // Saturating: a fee of 2^128 wei per byte lets nothing in, and from there it is the same number for everyone.
    let delta: u128 = delta.saturating_to();
    let next = if bytes > TARGET_BATCH_BYTES {
        base_fee.saturating_add(delta.max(1))
    } else {
        // Below the target the distance is less than the target, so delta ≤ base fee / 8.
        base_fee.saturating_sub(delta)
    };
    next.max(minimum)
}

//! The ordering fees' base: EIP-1559 over what was accepted in a second, second by second.
//!
//! Both base fees are constant within one L2 second and follow time and accepted load only, never what is skipped: a
//! second full of garbage moves no fee.

use crate::config::ChainConfig;
use crate::limits::{BASE_FEE_CHANGE_DENOMINATOR, TARGET_SECOND_BYTES};
use alloy_primitives::U256;

/// The two base fees of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseFees {
    /// For each byte of an item, in wei.
    pub base_fee: u128,
    /// Wei per unit of gas that an envelope reserves.
    pub gas_base_fee: u128,
}

/// What the batches of one second took up: of their accepted envelopes and forced transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes of accepted envelopes and forced transactions.
    pub bytes: u64,
    /// Their gas limits, summed up.
    pub gas: u64,
}

impl BaseFees {
    /// The fees `seconds` after a second with these fees and this load; the seconds between are empty.
    pub fn after(self, load: Load, seconds: u64, config: &ChainConfig) -> Self {
        let target_gas = config.second_gas_limit() / 2;
        let fee = |fee, load, target, minimum| match seconds {
            0 => fee,
            // An empty second is a step at load 0. Each takes an eighth, so it is soon where it stays.
            _ => (1..seconds)
                .try_fold(next_fee(fee, load, target, minimum), |fee, _| {
                    let next = next_fee(fee, 0, target, minimum);
                    if next == fee { Err(fee) } else { Ok(next) }
                })
                .unwrap_or_else(|settled| settled),
        };
        Self {
            base_fee: fee(self.base_fee, load.bytes, TARGET_SECOND_BYTES, config.min_base_fee),
            gas_base_fee: fee(self.gas_base_fee, load.gas, target_gas, config.min_gas_base_fee),
        }
    }

    /// What an item of this length and gas limit pays of the base fees; `None` above 128 bits (F-1).
    pub fn base_part(&self, item_bytes: u32, gas_limit: u64) -> Option<u128> {
        let bytes = u128::from(item_bytes).checked_mul(self.base_fee)?;
        bytes.checked_add(u128::from(gas_limit).checked_mul(self.gas_base_fee)?)
    }
}

/// The most that a base fee can be a header later, whatever is accepted: more than a step of [`next_fee`] ever gives. What
/// a sequencer promises, and what is offered for a promise, counts on it for each header.
pub fn most_after(fee: u128) -> u128 {
    fee.saturating_add(fee.div_ceil(u128::from(BASE_FEE_CHANGE_DENOMINATOR)).max(1))
}

/// The fee a second later, not below the minimum: by EIP-1559, but never by more than an eighth. Above the target it
/// rises by at least 1 wei (F-3).
pub fn next_fee(fee: u128, load: u64, target: u64, minimum: u128) -> u128 {
    let distance = load.abs_diff(target).min(target);
    // A chain without room for any load has no fee that follows it.
    let eighths = U256::from(fee) * U256::from(distance) / U256::from(target.max(1));
    let delta: u128 = (eighths / U256::from(BASE_FEE_CHANGE_DENOMINATOR)).saturating_to();
    let next = match load.cmp(&target) {
        // Saturating: a fee of 2^128 wei lets nothing in, and from there it is the same number for everyone.
        std::cmp::Ordering::Greater => fee.saturating_add(delta.max(1)),
        std::cmp::Ordering::Equal => fee,
        // The distance is at most the target, so delta ≤ fee / 8.
        std::cmp::Ordering::Less => fee.saturating_sub(delta),
    };
    next.max(minimum)
}

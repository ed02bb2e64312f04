//! What transactions offer: from the newest block, and more than what is stuck.

use alloy_eips::{BlockId, eip4844::DATA_GAS_PER_BLOB};
use alloy_provider::Provider;

use crate::{
    error::L1Error,
    transport::{Rpc, failed},
};

/// Gas of a transaction that does nothing.
pub(crate) const PLAIN_GAS: u64 = 21_000;
/// How much more a replacement pays, in percent; nodes ask for at least 10.
const REPLACEMENT_PERCENT: u128 = 25;
/// The same for a transaction with blobs; nodes ask for at least 100.
const BLOB_REPLACEMENT_PERCENT: u128 = 100;

/// What a transaction offers for its gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fees {
    pub nonce: u64,
    /// The most for a unit of gas, in wei.
    pub max_fee: u128,
    /// The tip for a unit of gas, in wei.
    pub tip: u128,
    /// In wei per blob gas, for a transaction with blobs.
    pub blob_fee: Option<u128>,
}

/// What L1 asks for now, in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prices {
    /// For a unit of gas in the newest block.
    pub base_fee: u128,
    /// What the node takes for the usual tip, for a unit of gas.
    pub tip: u128,
    /// For a unit of blob gas; `None` where it was not asked for.
    pub blob_base_fee: Option<u128>,
}

impl Prices {
    pub async fn now(rpc: &Rpc, with_blobs: bool) -> Result<Self, L1Error> {
        let block = rpc.block(BlockId::latest()).await?;
        let base_fee = block.and_then(|block| block.header.base_fee_per_gas).ok_or_else(|| {
            let reason = "the newest block has no base fee".to_owned();
            L1Error::Malformed { method: "eth_getBlockByNumber".to_owned(), reason }
        })?;
        let tip = rpc.provider.get_max_priority_fee_per_gas().await;
        let tip = tip.map_err(failed("eth_maxPriorityFeePerGas"))?;
        let blob_base_fee = if with_blobs {
            // The node knows L1's blob schedule.
            Some(rpc.provider.get_blob_base_fee().await.map_err(failed("eth_blobBaseFee"))?)
        } else {
            None
        };
        Ok(Self { base_fee: u128::from(base_fee), tip, blob_base_fee })
    }

    /// For a unit of gas, the tip with it.
    pub fn gas_price(&self) -> u128 {
        self.base_fee.saturating_add(self.tip)
    }
}

impl Fees {
    /// Twice the newest base fees and the node's tip.
    pub async fn fresh(rpc: &Rpc, nonce: u64, with_blobs: bool) -> Result<Self, L1Error> {
        let Prices { base_fee, tip, blob_base_fee } = Prices::now(rpc, with_blobs).await?;
        let max_fee = base_fee.saturating_mul(2).saturating_add(tip);
        let blob_fee = blob_base_fee.map(|fee| fee.saturating_mul(2));
        Ok(Self { nonce, max_fee, tip, blob_fee })
    }

    /// These, or more than those of a transaction of the same nonce and kind that is stuck: never less than nodes ask for, each
    /// fee for itself. What that may cost in all, [`Fees::cost`] is held to.
    pub fn over(self, stuck: Option<Self>) -> Self {
        let Some(before) = stuck.filter(|before| before.nonce == self.nonce) else { return self };
        let percent = if self.blob_fee.is_some() { BLOB_REPLACEMENT_PERCENT } else { REPLACEMENT_PERCENT };
        Self {
            nonce: self.nonce,
            max_fee: replacement(self.max_fee, before.max_fee, percent),
            tip: replacement(self.tip, before.tip, percent),
            blob_fee: self
                .blob_fee
                .map(|fee| before.blob_fee.map_or(fee, |before| replacement(fee, before, percent))),
        }
    }

    /// What is in the way of the next transaction where this one was offered and may not have been taken: no less than what
    /// stood there before.
    pub fn at_least(self, before: Option<Self>) -> Self {
        let is_alike = |before: &Self| {
            before.nonce == self.nonce && before.blob_fee.is_some() == self.blob_fee.is_some()
        };
        let Some(before) = before.filter(is_alike) else { return self };
        Self {
            nonce: self.nonce,
            max_fee: self.max_fee.max(before.max_fee),
            tip: self.tip.max(before.tip),
            blob_fee: self.blob_fee.max(before.blob_fee),
        }
    }

    /// The most that a transaction with so much gas and so many blobs costs, in wei.
    pub fn cost(&self, gas_limit: u64, blobs: usize) -> u128 {
        let blob_gas = (blobs as u128).saturating_mul(DATA_GAS_PER_BLOB.into());
        let for_blobs = blob_gas.saturating_mul(self.blob_fee.unwrap_or_default());
        u128::from(gas_limit).saturating_mul(self.max_fee).saturating_add(for_blobs)
    }
}

/// The fresh fee, or more than the stuck one where that is higher.
fn replacement(fresh: u128, stuck: u128, percent: u128) -> u128 {
    fresh.max(stuck.saturating_add(stuck.saturating_mul(percent) / 100).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_pay_no_less_than_nodes_ask_for() {
        assert_eq!(replacement(100, 10, 25), 100);
        assert_eq!(replacement(100, 100, 25), 126);
        assert_eq!(replacement(100, 1_000, 25), 1_251);
        assert_eq!(replacement(100, 5_000, 25), 6_251, "whatever a fresh one would offer");
        assert_eq!(replacement(u128::MAX, u128::MAX, 25), u128::MAX);
        assert_eq!(replacement(100, 100, 100), 201);
    }

    #[test]
    fn all_fees_of_a_blob_transaction_are_doubled() {
        let fresh = Fees { nonce: 4, max_fee: 100, tip: 10, blob_fee: Some(2) };
        let over = fresh.over(Some(fresh));
        assert_eq!(over, Fees { nonce: 4, max_fee: 201, tip: 21, blob_fee: Some(5) });
        assert_eq!(fresh.over(Some(Fees { nonce: 3, ..over })), fresh, "that one is in a block");
        assert_eq!(fresh.over(None), fresh);
    }

    #[test]
    fn what_stands_is_never_taken_for_less() {
        let stands = Fees { nonce: 4, max_fee: 100, tip: 10, blob_fee: Some(2) };
        let offered = Fees { nonce: 4, max_fee: 90, tip: 20, blob_fee: Some(1) };
        assert_eq!(offered.at_least(Some(stands)), Fees { max_fee: 100, tip: 20, ..stands });
        for other in [Fees { nonce: 3, ..stands }, Fees { blob_fee: None, ..stands }] {
            assert_eq!(offered.at_least(Some(other)), offered);
        }
        assert_eq!(offered.at_least(None), offered);
    }

    #[test]
    fn a_transaction_costs_its_gas_and_its_blobs() {
        let fees = Fees { nonce: 4, max_fee: 100, tip: 10, blob_fee: Some(2) };
        assert_eq!(fees.cost(21_000, 3), 21_000 * 100 + 3 * 131_072 * 2);
        assert_eq!(Fees { blob_fee: None, ..fees }.cost(21_000, 0), 2_100_000);
        assert_eq!(Fees { max_fee: u128::MAX, ..fees }.cost(2, 1), u128::MAX);
    }
}

//! What data costs on L1 in either place, and which place it goes to.
//!
//! Calldata costs 16 gas for a byte that is not zero and 4 for one that is, and at least 40 and 10 where a transaction computes
//! little (EIP-7623). A blob costs 131,072 units of blob gas, whatever is in it, at a price of their own.

use alloy_eips::eip4844::DATA_GAS_PER_BLOB;

use crate::{
    posting::{
        blobs::{MAX_BLOB_DATA_BYTES, blobs_of},
        place::{DataPlace, LayerName, POST_DATA_OVERHEAD_BYTES, POST_DATA_ROOM_BYTES},
    },
    submitter::fees::{Fees, PLAIN_GAS, Prices},
};

/// Tokens of a byte that is not zero; one that is zero is one (EIP-7623).
const TOKENS_PER_BYTE: u64 = 4;
/// Gas of a token beside what a transaction computes.
const TOKEN_GAS: u64 = 4;
/// The least gas of a token, with all that a transaction computes.
const TOKEN_FLOOR_GAS: u64 = 10;
/// What `post` computes for a run of one header: certificate, root, storage (docs/l1.md has the figures).
const POST_GAS: u64 = 200_000;
/// What it computes for each header.
const POST_HEADER_GAS: u64 = 4_000;
/// What `postData` computes.
const POST_DATA_GAS: u64 = 4_000;
/// What both compute for each blob: its hash, in an event.
const BLOB_HASH_GAS: u64 = 400;
/// Calldata has to be cheaper by this part of what blobs cost, in percent: an account has transactions of one kind only on
/// their way, so that changing from one to the other costs time.
const CALLDATA_SAVES_PERCENT: u128 = 20;

/// What a transaction takes of L1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Of its input.
    pub tokens: u64,
    /// Gas of what it computes.
    pub computed: u64,
    pub blobs: u64,
}

impl Load {
    pub fn gas(self) -> u64 {
        let usual = self.tokens.saturating_mul(TOKEN_GAS).saturating_add(self.computed);
        PLAIN_GAS.saturating_add(usual.max(self.tokens.saturating_mul(TOKEN_FLOOR_GAS)))
    }

    /// `None` for blobs without a price.
    fn wei(self, prices: &Prices) -> Option<u128> {
        let blob_gas = u128::from(self.blobs).saturating_mul(DATA_GAS_PER_BLOB.into());
        let for_blobs = match self.blobs {
            0 => 0,
            _ => blob_gas.saturating_mul(prices.blob_base_fee?),
        };
        Some(u128::from(self.gas()).saturating_mul(prices.gas_price()).saturating_add(for_blobs))
    }
}

pub(crate) fn tokens(input: &[u8]) -> u64 {
    input.iter().map(|byte| if *byte == 0 { 1 } else { TOKENS_PER_BYTE }).sum()
}

/// The transactions that bring data, in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan(Vec<Load>);

impl Plan {
    /// `post` with its data; without them, where they do not fit, and parts of `postData`.
    pub fn of_post(place: DataPlace, head: &[u8], headers: usize, data: &[u8]) -> Self {
        let alone = Load {
            tokens: tokens(head),
            computed: POST_GAS.saturating_add(POST_HEADER_GAS.saturating_mul(headers as u64)),
            blobs: 0,
        };
        let fits = match place {
            DataPlace::Calldata => head.len().saturating_add(data.len()) <= POST_DATA_ROOM_BYTES,
            DataPlace::Blobs => data.len() <= MAX_BLOB_DATA_BYTES,
        };
        if !fits {
            let Self(parts) = Self::of_data(place, data);
            return Self([vec![alone], parts].concat());
        }
        Self(vec![with_data(alone, place, data)])
    }

    /// Parts of `postData`.
    pub fn of_data(place: DataPlace, data: &[u8]) -> Self {
        let room = match place {
            DataPlace::Calldata => POST_DATA_ROOM_BYTES,
            DataPlace::Blobs => MAX_BLOB_DATA_BYTES,
        };
        // What stands beside the data is no more than that in all.
        let tokens = POST_DATA_OVERHEAD_BYTES as u64;
        let alone = Load { tokens, computed: POST_DATA_GAS, blobs: 0 };
        Self(data.chunks(room).map(|part| with_data(alone, place, part)).collect())
    }

    /// What all of them cost; `None` for blobs without a price.
    pub fn wei(&self, prices: &Prices) -> Option<u128> {
        let costs = self.0.iter().map(|load| load.wei(prices));
        costs.sum::<Option<u128>>()
    }
}

fn with_data(alone: Load, place: DataPlace, data: &[u8]) -> Load {
    match place {
        DataPlace::Calldata => Load { tokens: alone.tokens.saturating_add(tokens(data)), ..alone },
        DataPlace::Blobs => {
            let blobs = blobs_of(data.len()) as u64;
            let computed = alone.computed.saturating_add(blobs.saturating_mul(BLOB_HASH_GAS));
            Load { computed, blobs, ..alone }
        }
    }
}

/// What the same data would cost in calldata and in blobs, in wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataEstimate {
    /// In the transactions' input.
    pub calldata_wei: u128,
    /// In their blobs; `None` where L1 names no price.
    pub blobs_wei: Option<u128>,
}

impl DataEstimate {
    /// By prices as they are, where this transaction is in the way of the next one: one of the other kind is replaced by one
    /// that does nothing first, and that is paid for.
    pub(crate) fn of(calldata: &Plan, blobs: &Plan, prices: &Prices, stuck: Option<&Fees>) -> Self {
        let nothing = |blobs| Load { tokens: 0, computed: 0, blobs }.wei(prices).unwrap_or_default();
        let with_blobs = stuck.map(|fees| fees.blob_fee.is_some());
        let before_calldata = if with_blobs == Some(true) { nothing(1) } else { 0 };
        let before_blobs = if with_blobs == Some(false) { nothing(0) } else { 0 };
        Self {
            calldata_wei: calldata.wei(prices).unwrap_or(u128::MAX).saturating_add(before_calldata),
            blobs_wei: blobs.wei(prices).map(|wei| wei.saturating_add(before_blobs)),
        }
    }

    /// Blobs, unless they have no price or calldata is much cheaper (DC-2).
    pub(crate) fn cheaper(&self) -> DataPlace {
        let Some(blobs) = self.blobs_wei else { return DataPlace::Calldata };
        let most = blobs.saturating_mul(100 - CALLDATA_SAVES_PERCENT) / 100;
        if self.calldata_wei <= most { DataPlace::Calldata } else { DataPlace::Blobs }
    }
}

/// What posted data cost so far, by the receipts of its transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCosts {
    /// In calldata.
    pub calldata: PlaceCosts,
    /// In blobs.
    pub blobs: PlaceCosts,
    /// In archives: what it cost to name it on L1.
    pub archive: PlaceCosts,
    /// By which the place was chosen last; `None` while nothing was to be chosen.
    pub estimate: Option<DataEstimate>,
    /// Transactions with blobs that L1's node refused for being such.
    pub blob_refusals: u64,
}

/// The same for one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCosts {
    /// Transactions with data.
    pub transactions: u64,
    /// Bytes of the data.
    pub bytes: u64,
    /// What the transactions cost, headers and certificate beside the data and the blobs with them, in wei.
    pub wei: u128,
}

impl DataCosts {
    pub(crate) fn add(&mut self, layer: LayerName, bytes: usize, wei: u128) {
        let costs = match layer {
            LayerName::Calldata => &mut self.calldata,
            LayerName::Blobs => &mut self.blobs,
            LayerName::Archive => &mut self.archive,
        };
        costs.transactions = costs.transactions.saturating_add(1);
        costs.bytes = costs.bytes.saturating_add(bytes as u64);
        costs.wei = costs.wei.saturating_add(wei);
    }
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;

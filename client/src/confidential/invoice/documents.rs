//! What the parties of an invoice send each other, as files and as hashes.

use std::fmt;

use alloy_primitives::{B256, Bytes, Keccak256};
use serde::{Deserialize, Serialize};

/// What each hash begins with.
const KEY_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-KEY";
const QUANTITIES_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-QUANTITIES";
const PRICES_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-PRICES";
const ORDER_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-ORDER";
const TOTAL_TAG: &[u8] = b"BLINDFOLD-V1-INVOICE-TOTAL";

/// keccak256(tag ‖ for each part: its length as 8 bytes, big-endian ‖ part).
fn hash<'a>(tag: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> B256 {
    let mut hash = Keccak256::new();
    hash.update(tag);
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize()
}

/// A payer's order, for the supplier. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Order {
    /// What the wallet's key is hashed with: a new secret for each order. Public.
    pub salt: B256,
    /// The payer's key for this order.
    pub key: Bytes,
    /// The names of the lines, in their order.
    pub lines: Vec<String>,
    /// The quantities, encrypted to the payer's key.
    pub quantities: Bytes,
}

impl Order {
    /// Hash over salt and key.
    #[must_use]
    pub fn key_hash(&self) -> B256 {
        hash(KEY_TAG, [self.salt.as_slice(), &self.key[..]])
    }

    /// Of the encrypted quantities and the names.
    #[must_use]
    pub fn quantities_hash(&self) -> B256 {
        let names = self.lines.iter().map(String::as_bytes);
        hash(QUANTITIES_TAG, std::iter::once(&self.quantities[..]).chain(names))
    }

    /// Hash over both hashes: it names the order.
    #[must_use]
    pub fn hash(&self) -> B256 {
        hash(ORDER_TAG, [self.key_hash().as_slice(), self.quantities_hash().as_slice()])
    }
}

/// A supplier's prices for one order. **Keep it from the payer**, who could decrypt it, and take the mask off a total.
/// Printed redacted; unknown keys are refused.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceList {
    /// The order that they are for.
    pub order_hash: B256,
    /// The prices, encrypted to the payer's key.
    pub prices: Bytes,
    /// The seed of the mask.
    pub mask_seed: B256,
}

impl PriceList {
    /// Of prices and seed: of 32 random bytes, so that it tells nothing.
    #[must_use]
    pub fn hash(&self) -> B256 {
        hash(PRICES_TAG, [&self.prices[..], self.mask_seed.as_slice()])
    }
}

impl fmt::Debug for PriceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriceList").field("order_hash", &self.order_hash).finish_non_exhaustive()
    }
}

/// A masked total with the hashes of what it was made of, for the payer. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Total {
    /// Hash over the order's salt and key.
    pub key_hash: B256,
    /// The quantities and their names.
    pub quantities_hash: B256,
    /// The prices and the seed of the mask.
    pub prices_hash: B256,
    /// The masked total, encrypted to the payer.
    pub total: Bytes,
}

impl Total {
    pub(super) fn of(order: &Order, prices: &PriceList, total: Bytes) -> Self {
        Self {
            key_hash: order.key_hash(),
            quantities_hash: order.quantities_hash(),
            prices_hash: prices.hash(),
            total,
        }
    }

    /// Hash of the masked total.
    #[must_use]
    pub fn hash(&self) -> B256 {
        hash(TOTAL_TAG, [&self.total[..]])
    }
}

//! Bytes on L1, by what they are for.

use alloy_primitives::{Address, Bytes};
use alloy_sol_types::SolCall;
use anyhow::{Context, Result};
use blindfold_client::Node;
use blindfold_l1::contracts::{BlindedInbox, HintRegistry};
use blindfold_protocol::ChainConfig;
use serde::Serialize;
use serde_json::{Value, json};

/// Bytes of a blob.
const BLOB_BYTES: usize = 131_072;

/// Inputs of transactions, and whole blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct PostedBytes {
    pub(super) data: usize,
    pub(super) hints: usize,
    pub(super) headers: usize,
}

/// What was found up to a block of L1.
#[derive(Debug, Default)]
pub(super) struct Posted {
    pub(super) bytes: PostedBytes,
    /// The last block that was looked at, and the last one with data or hints.
    pub(super) looked: u64,
    pub(super) last: u64,
}

impl Posted {
    /// Looks through the blocks since the last look.
    pub(super) async fn look(&mut self, l1: &Node, chain: &ChainConfig, registry: Address) -> Result<()> {
        let number = |value: &Value| -> Option<u64> {
            u64::from_str_radix(value.as_str()?.trim_start_matches("0x"), 16).ok()
        };
        let head = number(&l1.call("eth_blockNumber", &[]).await?).context("L1's number")?;
        while self.looked < head {
            let next = self.looked + 1;
            let block = l1.call("eth_getBlockByNumber", &[json!(format!("{next:#x}")), json!(true)]).await?;
            let transactions = block.get("transactions").and_then(Value::as_array);
            for transaction in transactions.context("an L1 block without a list of transactions")? {
                let to: Option<Address> =
                    transaction.get("to").and_then(Value::as_str).and_then(|to| to.parse().ok());
                let input: Bytes =
                    transaction.get("input").and_then(Value::as_str).unwrap_or("0x").parse()?;
                let blobs =
                    transaction.get("blobVersionedHashes").and_then(Value::as_array).map_or(0, Vec::len);
                let bytes = if to == Some(chain.deployment.inbox) {
                    of_inbox(&input, blobs * BLOB_BYTES)
                } else if to == Some(registry) {
                    of_registry(&input, blobs * BLOB_BYTES)
                } else {
                    continue;
                };
                if bytes.data + bytes.hints > 0 {
                    self.last = next;
                }
                self.bytes.data += bytes.data;
                self.bytes.hints += bytes.hints;
                self.bytes.headers += bytes.headers;
            }
            self.looked = next;
        }
        Ok(())
    }
}

fn of_inbox(input: &[u8], blobs: usize) -> PostedBytes {
    if let Ok(call) = BlindedInbox::postCall::abi_decode(input) {
        let data = call.data.len();
        return PostedBytes { data: data + blobs, hints: 0, headers: input.len().saturating_sub(data) };
    }
    match BlindedInbox::postDataCall::abi_decode(input) {
        Ok(_) => PostedBytes { data: input.len() + blobs, ..PostedBytes::default() },
        Err(_) => PostedBytes::default(),
    }
}

fn of_registry(input: &[u8], blobs: usize) -> PostedBytes {
    let hints = [HintRegistry::postHintsCall::SELECTOR, HintRegistry::postHintsInBlobsCall::SELECTOR];
    match input.first_chunk::<4>() {
        Some(selector) if hints.contains(selector) => {
            PostedBytes { hints: input.len() + blobs, ..PostedBytes::default() }
        }
        _ => PostedBytes::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart() {
        let data = BlindedInbox::postDataCall { firstNumber: 1, data: vec![1; 64].into() }.abi_encode();
        assert_eq!(of_inbox(&data, 0), PostedBytes { data: data.len(), hints: 0, headers: 0 });
        assert_eq!(of_inbox(&[1, 2, 3, 4], 0), PostedBytes::default());
        let mut hints = HintRegistry::postHintsCall::SELECTOR.to_vec();
        hints.extend([0; 96]);
        assert_eq!(of_registry(&hints, 7), PostedBytes { hints: 107, ..PostedBytes::default() });
        assert_eq!(of_registry(&[], 7), PostedBytes::default());
    }
}

//! From opened batches to the list of a block, and from the executed block back to the envelopes.

use alloy_primitives::{B256, Bytes, keccak256};
use blindfold_engine::ExecutedBlock;
use blindfold_protocol::{Bundle, Canonical, Envelope, EnvelopeError, ForcedTransaction, StaticSkip, skip};

use super::details::{BlockDetails, DepositCursor, EnvelopeOutcome, ExecutedEnvelope, InnerTransaction};
use crate::ItemOutcome;

/// The committed list of one block, before the execution client's own checks, and where each entry came from.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Raw transactions in committed order.
    pub(super) transactions: Vec<Bytes>,
    envelopes: Vec<ExecutedEnvelope>,
    /// For each entry of the list: index into `envelopes`, index into its transactions.
    origins: Vec<(usize, usize)>,
}

/// Whether what was left out is a transaction, with a hash that somebody may ask for. A confidential one's is its id
/// at the coprocessor.
fn names_transaction(reason: StaticSkip) -> bool {
    !matches!(reason, StaticSkip::ReservedKind | StaticSkip::Undecodable)
}

/// The execution client reported something outside the list it was given: it is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the execution client skipped transaction {index} of a list of {len}")]
pub struct SkippedOutside {
    /// The index that the client named.
    pub index: usize,
    /// Length of the list that it was given.
    pub len: usize,
}

impl Plan {
    /// Adds the items of batch `number`: the static half of the skip rule decides what enters the list.
    pub(super) fn add_batch(
        &mut self,
        chain_id: u64,
        number: u64,
        items: &[Vec<u8>],
        outcomes: &[ItemOutcome],
    ) {
        for ((index, item), outcome) in (0u32..).zip(items).zip(outcomes) {
            self.add_item(chain_id, number, index, item, outcome);
        }
    }

    fn add_item(&mut self, chain_id: u64, number: u64, index: u32, item: &[u8], outcome: &ItemOutcome) {
        // Nothing of a header that L1 made has an id.
        let unnamed = matches!(outcome, ItemOutcome::Skipped(EnvelopeError::Void));
        let envelope = Envelope::decode(item).ok().filter(|_| !unnamed);
        let id = envelope.as_ref().map_or(B256::ZERO, Envelope::id);
        let mut entry = ExecutedEnvelope {
            id,
            number,
            index,
            outcome: EnvelopeOutcome::Executed,
            transactions: Vec::new(),
        };
        match outcome {
            ItemOutcome::Skipped(EnvelopeError::Void) => entry.outcome = EnvelopeOutcome::Void,
            ItemOutcome::Skipped(fault) => {
                entry.outcome = EnvelopeOutcome::Skipped(fault.as_str().to_owned())
            }
            ItemOutcome::Void => entry.outcome = EnvelopeOutcome::Void,
            ItemOutcome::ForcedTransaction => match ForcedTransaction::decode(item) {
                Ok(forced) => {
                    let candidate = skip::forced_candidate(chain_id, &forced);
                    self.add_candidates(vec![candidate], &[&forced.transaction], &mut entry);
                }
                // The verdict was ours, so it decodes.
                Err(_) => entry.outcome = EnvelopeOutcome::Skipped("undecodable".to_owned()),
            },
            ItemOutcome::Malformed => entry.outcome = EnvelopeOutcome::Malformed,
            ItemOutcome::Message(message) => {
                let gas_limit = envelope.map_or(0, |envelope| envelope.header.gas_limit);
                match skip::candidates(chain_id, gas_limit, message) {
                    Ok(candidates) => {
                        // Read a second time for the hashes of transactions that the static half leaves out.
                        let bundle = Bundle::decode(message).unwrap_or_default();
                        let items: Vec<&[u8]> =
                            bundle.items.iter().map(|item| item.bytes.as_slice()).collect();
                        self.add_candidates(candidates, &items, &mut entry);
                    }
                    Err(fault) => entry.outcome = EnvelopeOutcome::Skipped(fault.as_str().to_owned()),
                }
            }
        }
        self.envelopes.push(entry);
    }

    fn add_candidates(
        &mut self,
        candidates: Vec<skip::Candidate>,
        items: &[&[u8]],
        entry: &mut ExecutedEnvelope,
    ) {
        for candidate in candidates {
            let inner = match candidate.outcome {
                Ok(raw) => {
                    self.origins.push((self.envelopes.len(), entry.transactions.len()));
                    let hash = keccak256(&raw);
                    self.transactions.push(raw);
                    InnerTransaction { hash: Some(hash), skipped: None }
                }
                Err(reason) => {
                    let item = items.get(usize::from(candidate.index));
                    let hash = item.filter(|_| names_transaction(reason)).map(keccak256);
                    InnerTransaction { hash, skipped: Some(reason.as_str().to_owned()) }
                }
            };
            entry.transactions.push(inner);
        }
    }

    /// Joins what the client did to the list with the envelopes that it came from.
    pub(super) fn finish(
        mut self,
        block: &ExecutedBlock,
        (l1_origin_number, sequence_number): (u64, u64),
        deposits: DepositCursor,
    ) -> Result<BlockDetails, SkippedOutside> {
        for skipped in &block.skipped {
            let len = self.origins.len();
            let outside = SkippedOutside { index: skipped.index, len };
            let (envelope, transaction) = *self.origins.get(skipped.index).ok_or(outside)?;
            // Both indices were made together with the entry.
            self.envelopes[envelope].transactions[transaction].skipped =
                Some(skipped.reason.as_str().to_owned());
        }
        Ok(BlockDetails {
            transactions: block.transactions.clone(),
            l1_origin_number,
            sequence_number,
            gas_used: block.gas_used,
            deposits,
            envelopes: self.envelopes,
        })
    }
}

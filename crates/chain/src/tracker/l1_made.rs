//! Headers that L1 made: its word moves the certified head, and no certificate stands against it.

use std::sync::Arc;

use alloy_primitives::{B256, keccak256};
use blindfold_protocol::validity::{CheckedItem, RejectedItem};
use blindfold_protocol::{EnvelopeError, SealedBatch};

use super::{Applied, Tracker, TrackerError};
use crate::records::{Maker, verdicts};
use crate::{FallbackHeader, L1Error};

impl Tracker {
    /// Takes a header that L1 made, with the items it took from the forced queue, and moves the certified head to it.
    /// Rules O-7, O-8.
    ///
    /// The caller has it from L1. Uncertified headers here give way to it. Every field is recomputed; the record on
    /// disk says in the same step that the header is certified, so a crash leaves both or neither.
    ///
    /// # Errors
    /// [`TrackerError::VoidedByL1`] when another header is certified here; [`TrackerError::Behind`] and
    /// [`TrackerError::AncestorDiffers`] when what L1 built on has to come first.
    pub async fn accept_l1_header(&self, made: &FallbackHeader) -> Result<Applied, TrackerError> {
        let (tracker, batch, made_at) = (self.clone(), Arc::new(made.batch()), made.l1_block);
        self.exclusively(async move { tracker.accept_l1_header_locked(&batch, made_at).await })
            .await
            .unwrap_or(Err(TrackerError::Stopped))
    }

    /// Takes what L1 made on top of the certified head here, and finds out whether L1 contradicts it. Gives the batches
    /// that are new, oldest first. Finds out, too, what L1 made in blocks that are not final yet: nothing else is
    /// certified in its place. Cheap while L1 made nothing: callers ask every few seconds.
    ///
    /// # Errors
    /// As [`accept_l1_header`](Self::accept_l1_header), and [`TrackerError::L1`].
    pub async fn follow_l1(&self) -> Result<Vec<(Arc<SealedBatch>, Applied)>, TrackerError> {
        if let Err(fault) = self.look_for_l1_headers().await {
            tracing::debug!(%fault, "L1 does not tell which headers it made that are not final");
        }
        let mut taken = Vec::new();
        let Some(last) = self.shared.l1.last_l1_header().await? else { return Ok(taken) };
        self.look_for_final_l1_headers().await?;
        let certified = self.certified();
        if let Some(made) = self.overruled_at(certified.number).await?
            && let Some(made) = self.shared.l1.l1_header(made.number).await?
        {
            // However far L1 is: nothing that it has above that one fits here.
            self.accept_l1_header(&made).await?;
        }
        if last <= certified.number {
            return Ok(taken);
        }
        loop {
            match self.next_of_l1().await {
                Ok(Some(next)) => taken.push(next),
                Ok(None) => return Ok(taken),
                // The caller has to know what is here; the trouble comes again with the next call.
                Err(refusal) if taken.is_empty() => return Err(refusal),
                Err(refusal) => {
                    tracing::warn!(%refusal, "not all that L1 made can be taken yet");
                    return Ok(taken);
                }
            }
        }
    }

    async fn next_of_l1(&self) -> Result<Option<(Arc<SealedBatch>, Applied)>, TrackerError> {
        let next = self.certified().number.saturating_add(1);
        let Some(made) = self.shared.l1.l1_header(next).await? else { return Ok(None) };
        let applied = self.accept_l1_header(&made).await?;
        Ok(applied.is_new().then(|| (Arc::new(made.batch()), applied)))
    }

    /// Whether two headers that the sequencer signed for `number`, with these origins, are no misdeed: L1 made a header
    /// below it in between, of which the first knows nothing and which the second follows. The rule of `BlindedInbox`.
    pub async fn excused_by_l1(&self, number: u64, origins: (u64, u64)) -> Result<bool, L1Error> {
        let (origin, later) = (origins.0.min(origins.1), origins.0.max(origins.1));
        // The oldest one after the first origin, as the contract looks for it.
        let made = self.shared.l1.first_l1_header_after(origin).await?;
        Ok(made.is_some_and(|(made, l1_block)| made < number && l1_block <= later))
    }

    /// A header that nobody signed, from somebody who is not L1: L1 is asked.
    pub(super) async fn apply_claimed_locked(
        &self,
        batch: &Arc<SealedBatch>,
    ) -> Result<Applied, TrackerError> {
        let (number, offered) = (batch.header.number, batch.header.hash());
        match self.shared.l1.l1_header(number).await? {
            None => Err(TrackerError::NotMadeByL1 { number }),
            Some(made) if made.header.hash() == offered => {
                self.accept_l1_header_locked(&Arc::new(made.batch()), made.l1_block).await
            }
            Some(made) => Err(TrackerError::ReplacedByL1 { number, made: made.header.hash(), offered }),
        }
    }

    async fn accept_l1_header_locked(
        &self,
        batch: &Arc<SealedBatch>,
        made_at: u64,
    ) -> Result<Applied, TrackerError> {
        let header = &batch.header;
        let (number, made) = (header.number, header.hash());
        let (head, certified) = (self.head(), self.certified());
        if number == 0 || number > head.number.saturating_add(1) {
            return Err(TrackerError::Behind { expected: head.number + 1, offered: number });
        }
        if number <= certified.number {
            let record = match self.shared.store.batch(number).await {
                Err(pruned) if pruned.is_pruned() => {
                    let known = self.hash_at(number).await?;
                    return match known == made {
                        true => Ok(Applied { number, hash: made, verdicts: Vec::new(), items: None }),
                        false => Err(TrackerError::VoidedByL1 { number, known, made }),
                    };
                }
                record => record?,
            };
            let known = record.as_ref().map_or(B256::ZERO, |record| record.hash);
            return match record {
                Some(record) if known == made => {
                    Ok(Applied { number, hash: made, verdicts: verdicts(&record)?, items: None })
                }
                _ => Err(TrackerError::VoidedByL1 { number, known, made }),
            };
        }
        let (below, parent) = (number - 1, header.parent_hash);
        let known = self.hash_at(below).await?;
        if known != parent {
            return Err(if below <= certified.number {
                TrackerError::VoidedByL1 { number: below, known, made: parent }
            } else {
                TrackerError::AncestorDiffers { number: below, parent }
            });
        }
        // Whether it stands is known before anything here gives way, but for what the head has to say.
        let epoch = self.epoch_by_l1(header.epoch).await?;
        if number <= head.number {
            tracing::error!(number, %made, "L1 made a header: giving way to it");
            self.take_back(number).await?;
        }
        let applied = self
            .shared
            .state
            .write()
            .apply_l1_header(header, &batch.items, &epoch, made_at)
            .map_err(|fault| TrackerError::Invalid { number, fault })?;
        let verdicts = applied.verdicts.clone();
        let items: Vec<CheckedItem> = batch.items.iter().map(|item| unopened(item)).collect();
        self.make_durable(batch, &items, applied, Maker::L1(made_at)).await?;
        tracing::warn!(number, %made, items = items.len(), "L1 made this header");
        Ok(Applied { number, hash: made, verdicts, items: Some(Arc::new(items)) })
    }
}

/// An item of a header that L1 made, as far as the store asks: it has no id.
fn unopened(item: &[u8]) -> CheckedItem {
    let (fault, id, item_hash) = (EnvelopeError::Void, B256::ZERO, keccak256(item));
    // A header with an item as long as that does not pass.
    let item_bytes = u32::try_from(item.len()).unwrap_or(u32::MAX);
    Err(RejectedItem { fault, id, item_bytes, item_hash, expiry: None, gas_limit: 0 })
}

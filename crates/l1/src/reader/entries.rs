//! From posted bytes to the batches of headers, by whichever kind of data they are.
//!
//! Data of kind 2 are batches as what their envelopes were opened to. The session keys stand in a posting of hints that the
//! data name; nothing says that they are right, and nothing has to: what does not give the header's data hash is no data of
//! it. Before anything is encrypted again, count, length and the sequencer's signature are compared, which costs nothing.

use std::{collections::BTreeMap, sync::Arc};

use alloy_sol_types::SolEvent as _;
use blindfold_bte::{EncryptionKey, SessionKey};
use blindfold_protocol::{
    BatchHeader, Epochs, SealedBatch,
    opened::{BatchTerms, OpenedBatch, RunTerms},
};
use blindfold_runtime::blocking;

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    events::posted_log,
    posting::{
        hint_posting::{KEY, PostedEntry},
        opened_data::{HintsReference, OpenedData, PostedRunData},
        run_data::BatchData,
    },
    reader::{client::L1Client, data::DataError, hints::PostedHints},
};

/// Encryption keys that are kept, each with its tables: of epochs that follow each other.
const KEPT_KEYS: usize = 2;

/// By number, what posted data hold of the headers that were asked for.
pub(crate) type Entries = BTreeMap<u64, BatchData>;

impl L1Client {
    /// What a `RunData` for the numbers from `from` on, posted in this L1 block, holds of these headers. A header whose
    /// entry cannot be one has none.
    ///
    /// # Errors
    /// The errors of a call. The inner ones: why nothing of the data can be read.
    pub(crate) async fn entries(
        &self,
        from: u64,
        l1_block: u64,
        data: &[u8],
        wanted: &[BatchHeader],
    ) -> Result<Result<Entries, DataError>, L1Error> {
        match PostedRunData::decode(data) {
            Err(error) => Ok(Err(error.into())),
            Ok(PostedRunData::Raw(data)) => {
                let numbered = (from..=u64::MAX).zip(data.batches);
                let is_wanted =
                    |(number, _): &(u64, BatchData)| wanted.iter().any(|header| header.number == *number);
                Ok(Ok(numbered.filter(is_wanted).collect()))
            }
            Ok(PostedRunData::Opened(data)) => self.opened_entries(from, l1_block, data, wanted).await,
        }
    }

    async fn opened_entries(
        &self,
        from: u64,
        l1_block: u64,
        data: OpenedData,
        wanted: &[BatchHeader],
    ) -> Result<Result<Entries, DataError>, L1Error> {
        let epochs = self.epochs().await?;
        let numbered = (from..=u64::MAX).zip(data.run.batches);
        let possible: Vec<(BatchHeader, OpenedBatch)> = numbered
            .filter_map(|(number, batch)| {
                let header = wanted.iter().find(|header| header.number == number)?;
                self.may_fit(header, &batch, &epochs).then_some((*header, batch))
            })
            .collect();
        if possible.is_empty() {
            return Ok(Ok(Entries::new()));
        }
        let hints = match self.hints_at(data.hints, l1_block).await? {
            Some(hints) => hints,
            None => return Ok(Err(DataError::Hints(data.hints.id))),
        };
        let posting = match &hints.hints {
            Ok(posting) => posting,
            Err(fault) => return Ok(Err(fault.clone())),
        };
        let run = RunTerms { chain_id: data.chain_id, deployment: self.inner.config.deployment };
        let mut entries = Entries::new();
        for (header, batch) in possible {
            let place = header.number.checked_sub(hints.first).and_then(|place| usize::try_from(place).ok());
            let Some(posted) = place.and_then(|place| posting.batches.get(place)) else { continue };
            let Some(epoch) = epochs.by_epoch(header.epoch) else { continue };
            let terms = BatchTerms {
                number: header.number,
                epoch: epoch.epoch,
                encryption_key_hash: epoch.encryption_key_hash,
            };
            let encryption_key = self.kept_encryption_key(epoch.epoch).await?;
            let keys: Vec<Option<SessionKey>> = posted.entries.iter().map(key).collect();
            let signature = batch.signature;
            let restored = blocking(move || batch.restore(&run, &terms, &encryption_key, &keys)).await;
            // One that is cancelled belongs to a process that ends.
            let Ok(Ok(items)) = restored else { continue };
            entries.insert(header.number, BatchData { signature, items });
        }
        Ok(Ok(entries))
    }

    /// Whether it can be the header's batch, by what is seen without opening anything.
    fn may_fit(&self, header: &BatchHeader, batch: &OpenedBatch, epochs: &Epochs) -> bool {
        let sealed = SealedBatch { header: *header, signature: batch.signature, items: Vec::new() };
        batch.count() as u64 == u64::from(header.envelope_count)
            && batch.item_bytes() == u64::from(header.envelope_bytes)
            && self.is_signed(&sealed, epochs)
    }

    /// The posting of hints that data posted in this block name. Whatever became of it since, its hints are readable.
    async fn hints_at(&self, named: HintsReference, l1_block: u64) -> Result<Option<PostedHints>, L1Error> {
        let HintsReference { id, l1_block: at } = named;
        if at > l1_block {
            return Ok(None);
        }
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [HintRegistry::HintsPosted::SIGNATURE_HASH];
        for log in self.logs_through(registry, &topics, at.saturating_sub(1), at).await? {
            if let Some(posted) = posted_log(&log)?.filter(|posted| posted.id == id) {
                return self.with_hints(posted).await.map(Some);
            }
        }
        Ok(None)
    }

    /// The epoch's encryption key, with its tables.
    pub(crate) async fn kept_encryption_key(&self, epoch: u64) -> Result<Arc<EncryptionKey>, L1Error> {
        let mut kept = self.inner.encryption_keys.lock().await;
        if let Some((_, key)) = kept.iter().find(|(of, _)| *of == epoch) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(self.encryption_key(epoch).await?);
        if kept.len() >= KEPT_KEYS {
            kept.remove(0);
        }
        kept.push((epoch, Arc::clone(&key)));
        Ok(key)
    }
}

fn key(entry: &PostedEntry) -> Option<SessionKey> {
    (entry.kind == KEY).then(|| SessionKey::from_bytes(entry.key))
}

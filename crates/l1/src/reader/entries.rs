//! From posted bytes to the batches of headers, by whichever kind of data they are.
//!
//! Data of kind 2 are batches as what their envelopes were opened to. The session keys stand in a posting of hints that the
//! data name (OD-4); nothing says that they are right, and nothing has to: what does not give the header's data hash is no data of
//! it. Count, length and the sequencer's signature are compared before anything is encrypted again, and the first batch that
//! then does not fit ends the reading: whoever posts what only looks right has one batch encrypted again, once. What is of no
//! use is remembered, and not decompressed again.

use std::sync::Arc;

use alloy_primitives::keccak256;
use alloy_sol_types::SolEvent as _;
use blindfold_bte::{EncryptionKey, SessionKey};
use blindfold_protocol::{
    B256, BatchHeader, Canonical, Epochs, SealedBatch,
    data::KIND_OPENED,
    opened::{BatchTerms, OpenBatch, OpenedBatch, RunTerms},
};
use blindfold_runtime::blocking;

use crate::{
    contracts::HintRegistry,
    error::L1Error,
    events::posted_log,
    posting::{
        hint_posting::{HintPosting, KEY, PostedEntry},
        opened_data::{HintsReference, KeyedBatch, OpenedData, RunKeys},
        parts::OwnBatches,
        run_data::{BatchData, CodedBatch, Entries, RunData},
    },
    reader::{
        client::L1Client,
        compared::Useless,
        data::{DataError, PostedData},
    },
};

/// Encryption keys that are kept, each with its tables: of epochs that follow each other.
const KEPT_KEYS: usize = 2;
/// Postings of hints that are kept: data of one run may come in several pieces.
const KEPT_HINTS: usize = 4;

/// By which keys data is compared with batches that somebody has already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Those that come with the batches, which open them rightly.
    OfOwn,
    /// Those of the posting that the data name, as if they did: whoever posted a wrong one loses a bond.
    OfThePosting,
}

impl L1Client {
    /// The batches that a `RunData` for the numbers from `from` on, posted in this L1 block, holds of these headers. What is
    /// seen to be of one's `own` is not encrypted again.
    ///
    /// # Errors
    /// The errors of a call. The inner ones: why nothing of the data can be read.
    pub(crate) async fn entries(
        &self,
        from: u64,
        l1_block: u64,
        data: &[u8],
        wanted: &[BatchHeader],
        own: &OwnBatches,
    ) -> Result<Result<Entries, DataError>, L1Error> {
        if data.get(1) == Some(&KIND_OPENED) {
            return self.opened_entries((from, l1_block), data, wanted, (own, Keys::OfOwn)).await;
        }
        let data = match RunData::decode(data) {
            Ok(data) => data,
            Err(error) => return Ok(Err(error.into())),
        };
        let numbered = (from..=u64::MAX).zip(data.batches);
        let batch = |(number, entry): (u64, BatchData)| {
            let header = wanted.iter().find(|header| header.number == number)?;
            Some((number, entry.join(header)?))
        };
        Ok(Ok(numbered.filter_map(batch).collect()))
    }

    /// Whether data of kind 2, were they posted now, would give all these batches, of consecutive numbers, to whoever reads
    /// them (OD-6): from hints in a final block, of a posting that was not slashed since, whose keys are taken for right. The
    /// inner error says why not. Hashes and signatures where it would; what it takes to encrypt again where it would not.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn would_give(
        &self,
        data: &[u8],
        batches: Vec<CodedBatch>,
    ) -> Result<Result<(), DataError>, L1Error> {
        let hints = match OpenedData::named_hints(data) {
            Ok(hints) => hints,
            Err(error) => return Ok(Err(error.into())),
        };
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.sealed.header).collect();
        let Some(from) = headers.first().map(|header| header.number) else {
            return Ok(Err(DataError::Mismatch));
        };
        let standing = self.posting_log(hints.id).await?;
        if standing.is_none_or(|posted| posted.l1_block != hints.l1_block) {
            return Ok(Err(DataError::Hints(hints.id)));
        }
        let finalized = self.finalized().await?.number;
        let keyless = |batch| Arc::new(KeyedBatch { batch, keys: Vec::new() });
        let hashes = headers.iter().map(BatchHeader::hash);
        let own: OwnBatches = hashes.zip(batches.into_iter().map(keyless)).collect();
        let entries =
            self.opened_entries((from, finalized), data, &headers, (&own, Keys::OfThePosting)).await?;
        let entries = match entries {
            Ok(entries) => entries,
            Err(fault) => return Ok(Err(fault)),
        };
        let epochs = self.epochs().await?;
        let given = PostedData::of_entries(entries, &headers, |batch| self.is_signed(batch, &epochs));
        Ok(given.whole().map(drop))
    }

    async fn opened_entries(
        &self,
        (from, l1_block): (u64, u64),
        bytes: &[u8],
        wanted: &[BatchHeader],
        (own, by): (&OwnBatches, Keys),
    ) -> Result<Result<Entries, DataError>, L1Error> {
        let hash = keccak256(bytes);
        let compared = &self.inner.compared;
        // The batch that did not fit before ends the reading again, and takes nothing from those in front of it.
        let goes_on = |header: &B256| compared.holds(from, &hash, header) != Some(false);
        let hashes: Vec<B256> = wanted.iter().map(BatchHeader::hash).take_while(goes_on).collect();
        let wanted = wanted.get(..hashes.len()).unwrap_or_default();
        if wanted.is_empty() {
            return Ok(Ok(Entries::new()));
        }
        let together = keccak256(hashes.iter().flat_map(|header| header.0).collect::<Vec<u8>>());
        match compared.useless(from, &hash).filter(|_| by == Keys::OfOwn) {
            Some(Useless::Undecodable(error)) => return Ok(Err(error.into())),
            Some(Useless::Unfit(of)) if of == together => return Ok(Ok(Entries::new())),
            _ => {}
        }
        match OpenedData::named_hints(bytes) {
            Ok(named) if self.has_no_hints(named, l1_block) => return Ok(Err(DataError::Hints(named.id))),
            Ok(_) => {}
            Err(error) => return Ok(Err(error.into())),
        }
        let owned = bytes.to_vec();
        // One that is cancelled belongs to a process that ends.
        let Ok(data) = blocking(move || OpenedData::decode(&owned)).await else {
            return Ok(Ok(Entries::new()));
        };
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                compared.note_useless(from, hash, Useless::Undecodable(error));
                return Ok(Err(error.into()));
            }
        };
        let epochs = self.epochs().await?;
        let named = data.hints;
        let numbered = (from..=u64::MAX).zip(data.run.batches);
        let possible: Vec<(BatchHeader, OpenedBatch)> = numbered
            .filter_map(|(number, batch)| {
                let header = wanted.iter().find(|header| header.number == number)?;
                // Hints come after their headers, and a header after its L1 origin.
                let has_hints = header.l1_origin_number < named.l1_block;
                (has_hints && self.may_fit(header, &batch, &epochs)).then_some((*header, batch))
            })
            .collect();
        // Of headers before data in a final block nothing changes any more, nor who was to sign them.
        let stays = by == Keys::OfOwn && l1_block <= self.finalized().await?.number;
        if possible.is_empty() {
            if stays {
                compared.note_useless(from, hash, Useless::Unfit(together));
            }
            return Ok(Ok(Entries::new()));
        }
        if let Some(entries) = self.compared_before((from, hash), &possible, own) {
            return Ok(Ok(entries));
        }
        let (hints, is_final) = match self.hints_at(named, l1_block).await? {
            Some(found) => found,
            None => return Ok(Err(DataError::Hints(named.id))),
        };
        let hints = match hints {
            Ok(hints) => hints,
            Err(fault) => return Ok(Err(fault)),
        };
        let run = RunTerms { chain_id: data.chain_id, deployment: self.inner.config.deployment };
        let mut entries = Entries::new();
        for (header, batch) in possible {
            let place = header.number.checked_sub(hints.first).and_then(|place| usize::try_from(place).ok());
            let Some(keys) = place.and_then(|place| hints.keys.get(place)).cloned() else { continue };
            let Some(epoch) = epochs.by_epoch(header.epoch) else { continue };
            let terms = BatchTerms {
                number: header.number,
                epoch: epoch.epoch,
                encryption_key_hash: epoch.encryption_key_hash,
            };
            let encryption_key = self.kept_encryption_key(&terms).await?;
            let own = own.get(&header.hash()).cloned();
            let restored = blocking(move || {
                let is_of = |own: &Arc<KeyedBatch>| match by {
                    Keys::OfOwn => batch.is_of(&run, &own.open(terms), &keys),
                    Keys::OfThePosting => {
                        batch.is_of(&run, &OpenBatch { keys: &keys, ..own.open(terms) }, &keys)
                    }
                };
                if let Some(own) = own.filter(is_of) {
                    return Some(SealedBatch { signature: batch.signature, ..own.batch.sealed.clone() });
                }
                let items = batch.restore(&run, &terms, &encryption_key, &keys).ok()?;
                BatchData { signature: batch.signature, items }.join(&header)
            });
            let Ok(restored) = restored.await else { break };
            let holds = restored.is_some();
            if is_final && by == Keys::OfOwn {
                self.inner.compared.note(from, hash, [(header.hash(), holds)]);
            }
            match restored {
                Some(batch) => entries.insert(header.number, batch),
                None => break,
            };
        }
        if entries.is_empty() && stays {
            compared.note_useless(from, hash, Useless::Unfit(together));
        }
        Ok(Ok(entries))
    }

    /// The batches themselves, where it is known already that the data hold them, and the caller has them whole.
    fn compared_before(
        &self,
        (from, hash): (u64, B256),
        possible: &[(BatchHeader, OpenedBatch)],
        own: &OwnBatches,
    ) -> Option<Entries> {
        let entry = |(header, batch): &(BatchHeader, OpenedBatch)| {
            let header_hash = header.hash();
            let own = &own.get(&header_hash)?.batch;
            if self.inner.compared.holds(from, &hash, &header_hash) != Some(true) {
                return None;
            }
            let items = own.codes.iter().copied().zip(own.sealed.items.iter().cloned()).collect();
            Some((header.number, BatchData { signature: batch.signature, items }.join(header)?))
        };
        possible.iter().map(entry).collect()
    }

    /// Whether it can be the header's batch, by what is seen without opening anything.
    fn may_fit(&self, header: &BatchHeader, batch: &OpenedBatch, epochs: &Epochs) -> bool {
        let sealed = SealedBatch { header: *header, signature: batch.signature, items: Vec::new() };
        batch.count() as u64 == u64::from(header.envelope_count)
            && batch.item_bytes() == u64::from(header.envelope_bytes)
            && self.is_signed(&sealed, epochs)
    }

    /// The posting of hints that data posted in this block name, and whether its block is final. Whatever became of it
    /// since, its hints are readable. What of it L1 does not give, or nobody can read, is not there: it is named by whoever
    /// posted the data, and must not stop those who read a header.
    async fn hints_at(
        &self,
        named: HintsReference,
        l1_block: u64,
    ) -> Result<Option<(Result<RunKeys, DataError>, bool)>, L1Error> {
        if self.has_no_hints(named, l1_block) {
            return Ok(None);
        }
        let HintsReference { id, l1_block: at } = named;
        let mut kept = self.inner.posted_hints.lock().await;
        if let Some(hints) = kept.iter().find(|hints| hints.posting == named) {
            return Ok(Some((Ok(hints.clone()), true)));
        }
        let is_final = at <= self.finalized().await?.number;
        let registry = self.inner.config.contracts.hint_registry;
        let topics = [HintRegistry::HintsPosted::SIGNATURE_HASH];
        let logs = of_named(self.logs_through(registry, &topics, at.saturating_sub(1), at).await)?;
        let Some(logs) = logs else { return Ok(None) };
        for log in logs {
            if let Some(posted) = posted_log(&log)?.filter(|posted| posted.id == id) {
                let Some(read) = of_named(self.with_hints(posted).await)? else { return Ok(None) };
                let first = read.first;
                let keys = |hints: HintPosting| {
                    hints.batches.iter().map(|batch| batch.entries.iter().map(key).collect()).collect()
                };
                let hints = read.hints.map(|hints| RunKeys { posting: named, first, keys: keys(hints) });
                if let Ok(hints) = &hints
                    && is_final
                {
                    if kept.len() >= KEPT_HINTS {
                        kept.remove(0);
                    }
                    kept.push(hints.clone());
                }
                return Ok(Some((hints, is_final)));
            }
        }
        if is_final {
            self.inner.compared.note_absent(named);
        }
        Ok(None)
    }

    /// Whether data that was posted in this block names hints that are not there, by what needs no question.
    fn has_no_hints(&self, named: HintsReference, l1_block: u64) -> bool {
        // Before the contracts there were none, and the server may know nothing of such a block that is of use here.
        let is_outside = named.l1_block > l1_block || named.l1_block <= self.inner.config.start_block;
        is_outside || self.inner.compared.is_absent(named)
    }

    /// The encryption key of these terms, with its tables.
    pub(crate) async fn kept_encryption_key(
        &self,
        terms: &BatchTerms,
    ) -> Result<Arc<EncryptionKey>, L1Error> {
        let hash = terms.encryption_key_hash;
        let mut kept = self.inner.encryption_keys.lock().await;
        if let Some((_, key)) = kept.iter().find(|(of, _)| *of == hash) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(self.encryption_key(terms.epoch).await?);
        if kept.len() >= KEPT_KEYS {
            kept.remove(0);
        }
        kept.push((B256::from(key.hash()), Arc::clone(&key)));
        Ok(key)
    }
}

/// What L1 gave of what a poster names; `None` for a fault that stays, which is then the poster's: a block whose history the
/// server does not have, say. What says nothing of the name, or speaks against the server, is passed on.
fn of_named<T>(given: Result<T, L1Error>) -> Result<Option<T>, L1Error> {
    match given {
        Ok(given) => Ok(Some(given)),
        Err(fault) if fault.is_transient() || matches!(fault, L1Error::FinalityBroken { .. }) => Err(fault),
        Err(fault) => {
            tracing::debug!(%fault, "L1 does not give the hints that posted data name");
            Ok(None)
        }
    }
}

fn key(entry: &PostedEntry) -> Option<SessionKey> {
    (entry.kind == KEY).then(|| SessionKey::from_bytes(entry.key))
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;

//! Between what the store keeps and what the rules speak of.

use blindfold_protocol::validity::{AppliedBatch, CheckedItem, FORCED_TRANSACTION_REASON, Verdict};
use blindfold_protocol::{BatchHints, Canonical, EnvelopeError, HintEntry, SealedBatch};
use blindfold_store::{BatchRecord, ItemRecord, SealedRecord, Store, StoreError, What};

use crate::limits::FORGET_STEPS;

/// The verdicts of a stored batch.
///
/// An error means that the record is damaged, or was written by a program with other reasons.
pub fn verdicts(record: &BatchRecord) -> Result<Vec<Verdict>, StoreError> {
    verdicts_named(record.items.iter().map(|item| item.fault.as_deref()))
        .map_err(|fault| StoreError::Corrupt { what: What::Batch, fault })
}

/// Verdicts by their names, as they travel; an error for a name that no verdict has.
pub(crate) fn verdicts_named<'n>(
    names: impl Iterator<Item = Option<&'n str>>,
) -> Result<Vec<Verdict>, String> {
    let mut position = 0;
    let verdict = |name| match name {
        None => {
            position += 1;
            Ok(Verdict::Accepted { position: position - 1 })
        }
        Some(FORCED_TRANSACTION_REASON) => Ok(Verdict::ForcedTransaction),
        Some(name) => EnvelopeError::from_name(name)
            .map(Verdict::Skipped)
            .ok_or_else(|| format!("unknown reason {name:.64?}")),
    };
    names.map(verdict).collect()
}

/// Accepted items of a stored batch: how many hints it needs.
pub fn accepted(record: &BatchRecord) -> usize {
    record.items.iter().filter(|item| item.fault.is_none()).count()
}

/// The verified hints of a stored batch; all skipped where nothing was accepted, which nobody has to say. `None` while
/// they are not here.
pub fn own_hints(record: BatchRecord) -> Option<BatchHints> {
    if record.hints.is_some() || accepted(&record) > 0 {
        return record.hints;
    }
    let entries = vec![HintEntry::Skipped; record.items.len()];
    Some(BatchHints { number: record.number, header_hash: record.hash, entries, blindings: vec![] })
}

/// Items of a stored batch for which its second has a block: accepted envelopes and forced transactions.
pub fn makes_block(record: &BatchRecord) -> usize {
    let makes = |item: &&ItemRecord| matches!(item.fault.as_deref(), None | Some(FORCED_TRANSACTION_REASON));
    record.items.iter().filter(makes).count()
}

/// Forgets some of the ledgers that are kept no more. Whether there are more.
pub(crate) async fn forget_ledgers(store: &dyn Store) -> Result<bool, StoreError> {
    for _ in 0..FORGET_STEPS {
        if !store.forget_ledgers().await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where a header that was just applied comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// This process seals and signs it.
    Us,
    /// A sequencer that runs somewhere else.
    Sequencer,
    /// L1 in this block, whose word certifies it.
    L1(u64),
}

/// What the store keeps of a header that was just applied.
pub(crate) fn sealed_record(
    sealed: &SealedBatch,
    items: &[CheckedItem],
    applied: &AppliedBatch,
    maker: Maker,
) -> SealedRecord {
    let item = |(item, verdict): (&CheckedItem, &Verdict)| ItemRecord {
        id: match item {
            Ok(checked) => checked.id,
            Err(rejected) => rejected.id,
        },
        fault: verdict.reason().map(str::to_owned),
    };
    SealedRecord {
        sealed: sealed.clone(),
        hash: applied.header_hash,
        items: items.iter().zip(&applied.verdicts).map(item).collect(),
        ledger: applied.ledger_delta.clone(),
        head: applied.head.encode(),
        signed: maker == Maker::Us,
        made_at: match maker {
            Maker::L1(block) => Some(block),
            Maker::Us | Maker::Sequencer => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::B256;
    use blindfold_protocol::Signature65;

    fn record(faults: &[Option<&str>]) -> BatchRecord {
        let header = blindfold_kit::plain_header(1);
        let items = faults.iter().map(|fault| ItemRecord { id: B256::ZERO, fault: fault.map(str::to_owned) });
        BatchRecord {
            number: 1,
            hash: header.hash(),
            items: items.collect(),
            sealed: SealedBatch { header, signature: Signature65([0; 65]), items: Vec::new() },
            certificate: None,
            by_l1: false,
            release: None,
            hints: None,
        }
    }

    #[test]
    fn verdicts_come_back_with_their_positions() {
        let record = record(&[None, Some("expired"), None]);
        let expected = vec![
            Verdict::Accepted { position: 0 },
            Verdict::Skipped(EnvelopeError::Expired),
            Verdict::Accepted { position: 1 },
        ];
        assert_eq!(verdicts(&record), Ok(expected));
        assert_eq!((accepted(&record), makes_block(&record)), (2, 2));
    }

    #[test]
    fn forced_transactions_make_a_block_and_need_no_hint() {
        let record = record(&[Some("forced_transaction"), Some("void"), None]);
        let expected = vec![
            Verdict::ForcedTransaction,
            Verdict::Skipped(EnvelopeError::Void),
            Verdict::Accepted { position: 0 },
        ];
        assert_eq!(verdicts(&record), Ok(expected));
        assert_eq!((accepted(&record), makes_block(&record)), (1, 2));
    }

    #[test]
    fn an_unknown_reason_is_damage() {
        assert!(matches!(
            verdicts(&record(&[Some("fashion")])),
            Err(StoreError::Corrupt { what: What::Batch, .. })
        ));
    }
}

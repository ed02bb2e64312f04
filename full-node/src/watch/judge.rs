//! A posting's batch that this node has not opened, judged entry by entry. Nothing is needed but the ciphertexts: a key
//! proves itself, and of a malformed claim the singleton release does, even where the committee released nothing.

use std::sync::Arc;

use blindfold_bte::{Backend, Opening};
use blindfold_chain::{EpochParameters, HintsError, ParameterSet, verdicts, verify_hints};
use blindfold_l1::{PostedBatch, PostedEntry};
use blindfold_protocol::validity::Verdict;
use blindfold_protocol::{BatchHints, Canonical, Envelope, HintEntry};
use blindfold_store::{BatchRecord, StoreError};

use super::compare::{EntryFault, FaultKind, KEY, MALFORMED, NO_KEY, SKIPPED};

/// What hints are checked with.
#[derive(Clone)]
pub struct Judge {
    /// The committees' public parameters, checked.
    pub parameters: Arc<ParameterSet>,
    /// Checks keys by encrypting again.
    pub backend: Arc<dyn Backend>,
}

/// What a batch of a posting is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Nothing is wrong with it.
    Right,
    /// This entry is wrong, the first that was found.
    Wrong(EntryFault),
    /// This node cannot tell: it lacks the epoch's parameters, or it stops.
    Undecided,
}

impl Judge {
    /// Judges the hints that were posted for a certified batch. Off the async threads; cost: [`verify_hints`].
    ///
    /// # Errors
    /// A damaged record.
    pub(super) async fn judge(
        &self,
        record: BatchRecord,
        posted: PostedBatch,
    ) -> Result<Judgement, StoreError> {
        let verdicts = verdicts(&record)?;
        let Some(parameters) = self.parameters.at(record.number) else { return Ok(Judgement::Undecided) };
        let backend = Arc::clone(&self.backend);
        let judged = blindfold_runtime::blocking(move || match entries(&posted, &verdicts) {
            Ok(entries) => verified(backend.as_ref(), &parameters, &record, &verdicts, entries),
            Err(fault) => Judgement::Wrong(fault),
        });
        Ok(judged.await.unwrap_or(Judgement::Undecided))
    }
}

/// The hints that a posting means, or the first entry that is wrong whatever the ciphertexts are.
fn entries(posted: &PostedBatch, verdicts: &[Verdict]) -> Result<Vec<HintEntry>, EntryFault> {
    if posted.entries.len() != verdicts.len() {
        return Err((0, FaultKind::WrongCount, None));
    }
    let judged = |(index, (entry, verdict)): (u32, (&PostedEntry, &Verdict))| {
        let PostedEntry { kind, key } = entry;
        let fault = |kind| Err((index, kind, None));
        match (verdict, *kind) {
            (_, kind) if kind > MALFORMED => fault(FaultKind::UnknownKind),
            (_, SKIPPED) if *key != NO_KEY => fault(FaultKind::StrayKey),
            (Verdict::Accepted { .. }, KEY) => Ok(HintEntry::Key(*key)),
            (Verdict::Accepted { .. }, MALFORMED) => match posted.release(entry) {
                Some(release) => Ok(HintEntry::Malformed(release)),
                None => fault(FaultKind::NoRelease),
            },
            (Verdict::Skipped(_) | Verdict::ForcedTransaction, SKIPPED) => Ok(HintEntry::Skipped),
            _ => fault(FaultKind::WrongVerdict),
        }
    };
    (0u32..).zip(posted.entries.iter().zip(verdicts)).map(judged).collect()
}

fn verified(
    backend: &dyn Backend,
    parameters: &EpochParameters,
    record: &BatchRecord,
    verdicts: &[Verdict],
    entries: Vec<HintEntry>,
) -> Judgement {
    let hints = BatchHints { number: record.number, header_hash: record.hash, entries, blindings: vec![] };
    match verify_hints(backend, parameters, &record.sealed, verdicts, &hints) {
        Ok(_) => Judgement::Right,
        Err(HintsError::WrongKey { index }) => Judgement::Wrong((index, FaultKind::WrongKey, None)),
        Err(HintsError::WrongSingleton { index }) => Judgement::Wrong((index, FaultKind::WrongRelease, None)),
        Err(HintsError::FalseMalformed { index }) => match opened(parameters, record, &hints, index) {
            Some(key) => Judgement::Wrong((index, FaultKind::NotMalformed, Some(key))),
            None => Judgement::Undecided,
        },
        Err(fault) => {
            tracing::error!(number = record.number, %fault, "hints on L1 cannot be judged");
            Judgement::Undecided
        }
    }
}

/// The key of a well-formed envelope, by the right singleton release that calls it malformed.
fn opened(
    parameters: &EpochParameters,
    record: &BatchRecord,
    hints: &BatchHints,
    index: u32,
) -> Option<[u8; 16]> {
    let place = usize::try_from(index).ok()?;
    let envelope = Envelope::decode(record.sealed.items.get(place)?).ok()?;
    let HintEntry::Malformed(release) = hints.entries.get(place)? else { return None };
    let ad = envelope.header.hash().0;
    match parameters.parameters().open_singleton(&ad, &envelope.ciphertext, release) {
        Ok(Opening::WellFormed { key, .. }) => Some(*key.as_bytes()),
        _ => None,
    }
}

//! The newest batches, as far as they were verified. Pure data: no clock, no network, no locks.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_protocol::{B256, BatchHints, Certificate, Release, SealedBatch, validity::Verdict};
use blindfold_rpc::{
    Encoded,
    types::{BatchInfo, BatchState},
};

/// A batch whose header stands: signed by the sequencer in office, or made by L1.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) hash: B256,
    pub(crate) sealed: Arc<SealedBatch>,
    pub(crate) verdicts: Arc<[Verdict]>,
    /// L1 made it: then it is certified, and nothing of it is ever opened.
    pub(crate) by_l1: bool,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) release: Option<Release>,
    pub(crate) hints: Option<Arc<BatchHints>>,
}

impl Held {
    pub(crate) fn new(sealed: SealedBatch, verdicts: Vec<Verdict>) -> Self {
        let (hash, by_l1) = (sealed.header.hash(), sealed.claims_l1());
        let (sealed, verdicts) = (Arc::new(sealed), verdicts.into());
        Self { hash, sealed, verdicts, by_l1, certificate: None, release: None, hints: None }
    }

    pub(crate) fn number(&self) -> u64 {
        self.sealed.header.number
    }

    /// Whether anything of it is ever opened.
    fn opens(&self) -> bool {
        !self.by_l1 && self.verdicts.iter().any(Verdict::is_accepted)
    }

    /// What it takes of memory, about.
    fn bytes(&self) -> usize {
        let items: usize = self.sealed.items.iter().map(|item| item.len() + 64).sum();
        items + 1_024
    }
}

/// What a header is to what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    New,
    /// It is here already.
    Known,
    /// Another one is held under its number, and stays.
    Second,
    /// It is older than what is kept.
    Old,
}

#[derive(Debug)]
pub(crate) struct Window {
    batches: BTreeMap<u64, Held>,
    bytes: usize,
    max_batches: usize,
    max_bytes: usize,
    certified: u64,
    executed: u64,
}

impl Window {
    /// Keeps at most so many batches, and at most so many bytes of them; one batch at least.
    pub(crate) fn new(max_batches: usize, max_bytes: usize) -> Self {
        Self { batches: BTreeMap::new(), bytes: 0, max_batches, max_bytes, certified: 0, executed: 0 }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Held> {
        self.batches.get(&number)
    }

    pub(crate) fn len(&self) -> usize {
        self.batches.len()
    }

    /// Number of the newest header.
    pub(crate) fn head(&self) -> Option<u64> {
        self.batches.last_key_value().map(|(number, _)| *number)
    }

    /// The newest number that is known to be certified.
    pub(crate) fn certified(&self) -> u64 {
        self.certified
    }

    /// Takes a header that stands. One that L1 made takes the place of others, and of all after them.
    pub(crate) fn put(&mut self, held: Held) -> Taken {
        let number = held.number();
        if self.batches.first_key_value().is_some_and(|(first, _)| number < *first) {
            return Taken::Old;
        }
        match self.batches.get(&number) {
            Some(known) if known.hash == held.hash => return Taken::Known,
            Some(known) if !held.by_l1 || known.by_l1 => return Taken::Second,
            _ => {}
        }
        if held.by_l1 {
            self.forget_from(number);
            self.certified = self.certified.max(number);
        }
        self.bytes += held.bytes();
        self.batches.insert(number, held);
        self.shrink();
        Taken::New
    }

    /// Forgets a header that is not the certified one, and all after it.
    pub(crate) fn forget_from(&mut self, number: u64) {
        for held in self.batches.split_off(&number).values() {
            self.bytes = self.bytes.saturating_sub(held.bytes());
        }
        self.certified = self.certified.min(number.saturating_sub(1));
    }

    /// Takes a certificate that verifies. False where the header that it names is not the one here.
    pub(crate) fn certify(&mut self, certificate: Certificate) -> bool {
        let Some(held) = self.batches.get_mut(&certificate.number) else { return false };
        if held.hash != certificate.header_hash {
            return false;
        }
        held.certificate.get_or_insert(certificate);
        self.certified = self.certified.max(certificate.number);
        true
    }

    /// Takes a release of the form that it has to have; true where it is new.
    pub(crate) fn release(&mut self, release: Release) -> bool {
        let held = self.batches.get_mut(&release.number).filter(|held| held.hash == release.header_hash);
        let Some(held) = held else { return false };
        let new = held.release.is_none();
        held.release.get_or_insert(release);
        new
    }

    /// Takes hints that are right; true where they are new.
    pub(crate) fn hint(&mut self, hints: Arc<BatchHints>) -> bool {
        let held = self.batches.get_mut(&hints.number).filter(|held| held.hash == hints.header_hash);
        let Some(held) = held else { return false };
        let new = held.hints.is_none();
        if new {
            self.bytes += hints.entries.len() * 64;
        }
        held.hints.get_or_insert(hints);
        new
    }

    /// The source says that everything up to this batch is executed.
    pub(crate) fn executed(&mut self, through: u64) {
        self.executed = self.executed.max(through);
    }

    /// Certified numbers for which something is still to come: a certificate of their own is not among it.
    pub(crate) fn incomplete(&self) -> Vec<u64> {
        let lacks = |held: &Held| held.opens() && held.hints.is_none();
        self.batches
            .range(..=self.certified)
            .filter(|(_, held)| lacks(held))
            .map(|(number, _)| *number)
            .collect()
    }

    /// Whether nothing more is said of a batch: it is executed, as far as the source told.
    pub(crate) fn is_settled(&self, number: u64) -> bool {
        number <= self.executed
    }

    /// A batch as its readers get it, where all of it is here.
    pub(crate) fn info(&self, number: u64) -> Option<BatchInfo> {
        let held = self.batches.get(&number)?;
        if number > self.certified || held.opens() && (held.hints.is_none() || held.certificate.is_none()) {
            // Something may have come that is not here yet.
            return None;
        }
        let state = if self.is_settled(number) { BatchState::Executed } else { BatchState::Certified };
        Some(BatchInfo {
            number,
            hash: held.hash,
            timestamp_ms: held.sealed.header.timestamp_ms,
            state,
            sealed: Encoded::new(&*held.sealed),
            certificate: held.certificate.as_ref().map(Encoded::new),
            release: held.release.as_ref().map(Encoded::new),
            hints: held.hints.as_deref().map(Encoded::new),
            verdicts: blindfold_chain::announce::verdict_names(&held.verdicts),
        })
    }

    fn shrink(&mut self) {
        while self.batches.len() > 1 && (self.batches.len() > self.max_batches || self.bytes > self.max_bytes)
        {
            let Some((_, oldest)) = self.batches.pop_first() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

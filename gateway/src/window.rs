//! The newest batches, as far as they were verified: one unbroken chain, each header on top of the one before. Pure data: no
//! clock, no network, no locks.

use std::{collections::BTreeMap, sync::Arc};

use blindfold_protocol::{B256, BatchHints, Certificate, Release, SealedBatch, validity::Verdict};
use blindfold_rpc::{
    Encoded,
    types::{BatchInfo, BatchState},
};

/// Second headers that are remembered, so that each is handed on once.
const MAX_SECOND_HEADERS: usize = 64;
/// What a batch takes of memory beside what it holds, and each item and each hint beside its bytes.
const BATCH_BYTES: usize = 1_024;
const ITEM_BYTES: usize = 64;
const HINT_BYTES: usize = 320;

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

    fn parent_hash(&self) -> B256 {
        self.sealed.header.parent_hash
    }

    /// Whether anything of it is ever opened.
    fn opens(&self) -> bool {
        !self.by_l1 && self.verdicts.iter().any(Verdict::is_accepted)
    }

    /// What it takes of memory, about.
    fn bytes(&self) -> usize {
        let items: usize = self.sealed.items.iter().map(|item| item.len() + ITEM_BYTES).sum();
        let points = self.release.as_ref().map_or(0, |release| release.pds.len() * ITEM_BYTES);
        let hints =
            self.hints.as_ref().map_or(0, |hints| (hints.entries.len() + hints.blindings.len()) * HINT_BYTES);
        BATCH_BYTES + items + points + hints
    }
}

/// What became of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    New,
    /// It is here already.
    Known,
    /// Another one is held under its number, and stays. `new`: it was not told of before.
    Second {
        new: bool,
    },
    /// It is older than what is kept.
    Old,
    /// Numbers between the newest one and it are missing: they come first.
    Gap,
    /// It does not stand on the header before it that is held: one of the two is of another branch.
    Detached,
}

/// What became of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certified {
    New,
    Known,
    /// Its header is not here.
    Missing,
    /// Another header is held under its number, which therefore had to give way.
    Other,
    /// Its header gave way to one that is certified here, or that L1 made: it counts no more.
    Overruled,
}

#[derive(Debug)]
pub(crate) struct Window {
    batches: BTreeMap<u64, Held>,
    bytes: usize,
    max_batches: usize,
    max_bytes: usize,
    certified: u64,
    executed: u64,
    seconds: Vec<B256>,
}

impl Window {
    /// Keeps at most so many batches, and at most so many bytes of them; one batch at least.
    pub(crate) const fn new(max_batches: usize, max_bytes: usize) -> Self {
        Self {
            batches: BTreeMap::new(),
            bytes: 0,
            max_batches,
            max_bytes,
            certified: 0,
            executed: 0,
            seconds: Vec::new(),
        }
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

    /// The newest number that is known to be certified. All that is held up to it is, since each stands on the one before.
    pub(crate) const fn certified(&self) -> u64 {
        self.certified
    }

    /// Takes a header that stands. One that L1 made takes the place of another, and of all after it.
    pub(crate) fn put(&mut self, held: Held) -> Taken {
        let number = held.number();
        if self.batches.first_key_value().is_some_and(|(first, _)| number < *first) {
            return Taken::Old;
        }
        match self.batches.get(&number) {
            Some(known) if known.hash == held.hash => return Taken::Known,
            Some(known) if !held.by_l1 || known.by_l1 => return self.second(held.hash),
            _ => {}
        }
        if held.by_l1 {
            self.forget_from(number);
        }
        if self.head().is_some_and(|head| number > head + 1) {
            return Taken::Gap;
        }
        let before = number.checked_sub(1).and_then(|before| self.batches.get(&before));
        if before.is_some_and(|before| before.hash != held.parent_hash()) {
            return Taken::Detached;
        }
        if held.by_l1 {
            self.certified = self.certified.max(number);
        }
        self.bytes += held.bytes();
        self.batches.insert(number, held);
        self.shrink();
        Taken::New
    }

    fn second(&mut self, hash: B256) -> Taken {
        let new = !self.seconds.contains(&hash);
        if new {
            if self.seconds.len() >= MAX_SECOND_HEADERS {
                self.seconds.remove(0);
            }
            self.seconds.push(hash);
        }
        Taken::Second { new }
    }

    /// Forgets a header that had to give way, and all after it.
    pub(crate) fn forget_from(&mut self, number: u64) {
        for held in self.batches.split_off(&number).values() {
            self.bytes = self.bytes.saturating_sub(held.bytes());
        }
        let last = number.saturating_sub(1);
        (self.certified, self.executed) = (self.certified.min(last), self.executed.min(last));
    }

    /// Forgets everything: what comes next need not follow.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.max_batches, self.max_bytes);
    }

    /// Takes a certificate that verifies.
    pub(crate) fn certify(&mut self, certificate: Certificate) -> Certified {
        let Some(held) = self.batches.get_mut(&certificate.number) else { return Certified::Missing };
        if held.by_l1 {
            return Certified::Overruled;
        }
        if held.hash != certificate.header_hash {
            // Members may sign a second header above one that L1 made: the certificate of the first is void.
            let stands = certificate.number <= self.certified;
            return if stands { Certified::Overruled } else { Certified::Other };
        }
        let new = held.certificate.is_none();
        held.certificate.get_or_insert(certificate);
        self.certified = self.certified.max(certificate.number);
        if new { Certified::New } else { Certified::Known }
    }

    /// Takes a release of the form that it has to have; true where it is new.
    pub(crate) fn release(&mut self, release: Release) -> bool {
        let number = release.number;
        self.change(number, |held| {
            let new = held.hash == release.header_hash && held.release.is_none();
            if new {
                held.release = Some(release);
            }
            new
        })
    }

    /// Takes hints that are right; true where they are new.
    pub(crate) fn hint(&mut self, hints: Arc<BatchHints>) -> bool {
        let number = hints.number;
        self.change(number, |held| {
            let new = held.hash == hints.header_hash && held.hints.is_none();
            if new {
                held.hints = Some(hints);
            }
            new
        })
    }

    /// Changes what is held of a number, and keeps account of the memory.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut Held) -> bool) -> bool {
        let Some(held) = self.batches.get_mut(&number) else { return false };
        let before = held.bytes();
        let changed = change(held);
        let after = held.bytes();
        self.bytes = (self.bytes + after).saturating_sub(before);
        self.shrink();
        changed
    }

    /// The source says that everything up to this batch is executed. More than is certified cannot be.
    pub(crate) fn executed(&mut self, through: u64) {
        self.executed = self.executed.max(through.min(self.certified));
    }

    /// Another source follows: what the one before said is executed is nobody's word any more.
    pub(crate) fn forget_executed(&mut self) {
        self.executed = 0;
    }

    /// Whether nothing more is said of a batch: it is executed, as far as the source told.
    pub(crate) const fn is_settled(&self, number: u64) -> bool {
        number <= self.executed
    }

    /// Certified numbers whose hints are still to come.
    pub(crate) fn without_hints(&self) -> Vec<u64> {
        let lacks = |held: &Held| held.opens() && held.hints.is_none();
        self.batches
            .range(self.executed + 1..=self.certified.max(self.executed + 1))
            .filter(|(number, held)| **number <= self.certified && lacks(held))
            .map(|(number, _)| *number)
            .collect()
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

#[cfg(test)]
mod tests {
    use blindfold_kit::{RICH, Sealer, certificate_of, envelope, l1, open_batch, payer};

    use super::*;

    /// A chain of so many headers, each with an envelope but the first.
    async fn chain(count: u64) -> Vec<blindfold_chain::Sealed> {
        let l1 = l1();
        l1.advance(1);
        l1.deposit(payer(1).address(), RICH);
        let sealer = Sealer::new(&l1).await;
        let mut chain = vec![sealer.seal_next(Vec::new()).await];
        for nonce in 1..count {
            sealer.certify(&chain[chain.len() - 1]).await;
            chain.push(sealer.seal_next_envelopes(&[envelope(1, nonce)]).await);
        }
        chain
    }

    fn held(sealed: &blindfold_chain::Sealed) -> Held {
        Held::new((*sealed.batch).clone(), sealed.verdicts.clone())
    }

    /// What hints took was never given back: after hours a relay kept one batch.
    #[tokio::test]
    async fn the_memory_of_what_is_gone_is_given_back() {
        let chain = chain(40).await;
        let mut window = Window::new(8, usize::MAX);
        for sealed in &chain {
            assert_eq!(window.put(held(sealed)), Taken::New);
            assert_eq!(window.certify(certificate_of(&sealed.batch)), Certified::New);
            let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
            assert!(window.release(release) && window.hint(Arc::new(hints)));
        }
        assert_eq!(window.len(), 8);
        assert_eq!(window.bytes, window.batches.values().map(Held::bytes).sum::<usize>());
        window.forget_from(36);
        assert_eq!(window.bytes, window.batches.values().map(Held::bytes).sum::<usize>());
        assert_eq!((window.head(), window.certified()), (Some(35), 35));
    }

    #[tokio::test]
    async fn a_chain_is_unbroken() {
        let (ours, others) = (chain(6).await, {
            let l1 = l1();
            l1.advance(1);
            let sealer = Sealer::new(&l1).await;
            let mut chain = Vec::new();
            for _ in 0..6 {
                chain.push(sealer.seal_next(Vec::new()).await);
            }
            chain
        });
        let mut window = Window::new(100, usize::MAX);
        assert_eq!(window.put(held(&ours[1])), Taken::New, "the first may be any");
        assert_eq!(window.put(held(&ours[0])), Taken::Old);
        assert_eq!(window.put(held(&ours[3])), Taken::Gap);
        assert_eq!(window.put(held(&others[2])), Taken::Detached);
        assert_eq!(window.put(held(&ours[2])), Taken::New);
        assert_eq!(window.put(held(&ours[2])), Taken::Known);
        assert_eq!(window.put(held(&others[2])), Taken::Second { new: true });
        assert_eq!(window.put(held(&others[2])), Taken::Second { new: false });
        assert_eq!(window.certify(certificate_of(&ours[4].batch)), Certified::Missing);
        assert_eq!(window.certify(certificate_of(&others[2].batch)), Certified::Other);
        assert_eq!(window.certified(), 0);
        assert_eq!(window.certify(certificate_of(&ours[2].batch)), Certified::New);
        assert_eq!((window.without_hints(), window.certified()), (vec![2, 3], 3));
        // What is executed needs nothing more, and is never more than is certified.
        window.executed(u64::MAX);
        assert!(window.without_hints().is_empty() && window.is_settled(3) && !window.is_settled(4));
    }

    /// A certificate of a header that gave way to L1's is void, and took L1's place.
    #[tokio::test]
    async fn what_l1_made_stays() {
        let l1 = l1();
        l1.advance(1);
        let sealer = Sealer::new(&l1).await;
        let first = sealer.seal_next(Vec::new()).await;
        let made = sealer.l1_header(500, Vec::new());
        let void = sealer.seal_next(Vec::new()).await;
        let mut window = Window::new(100, usize::MAX);
        window.put(held(&first));
        window.put(held(&void));
        window.certify(certificate_of(&void.batch));
        let of_l1 = Held::new(made.batch(), Vec::new());
        assert_eq!(window.put(of_l1.clone()), Taken::New);
        assert_eq!(window.get(2).map(|held| held.hash), Some(of_l1.hash));
        assert_eq!(window.certify(certificate_of(&void.batch)), Certified::Overruled);
        assert_eq!(window.put(held(&void)), Taken::Second { new: true });
        assert_eq!((window.get(2).map(|held| held.hash), window.certified()), (Some(of_l1.hash), 2));
        // A certificate of what gave way, above what is certified here, is no reason to forget that.
        let mut displaced = certificate_of(&void.batch);
        displaced.number = 1;
        assert_eq!(window.certify(displaced), Certified::Overruled);
        assert_eq!((window.head(), window.certified()), (Some(2), 2));
    }
}

//! Sharing the batches with other hint publishers, over Redis.
//!
//! A batch is cut into parts: its sub-batches one by one where they are many, else the whole. Whoever works on it claims a
//! part, opens it, puts what came of it where the others find it, and claims the next. Whoever finds no part left first checks
//! the others' while the last ones are worked on, puts the batch together and publishes; the others see that the sequencer
//! has it.
//!
//! Nothing here can keep a batch from its hints:
//! - Without an answer of Redis, or with one that makes no sense, a publisher does the rest of the batch alone.
//! - Others' parts are checked before they are used; one that does not stand is opened here.
//! - For each batch, whoever waits for others does so for a bounded time in all, whatever they say meanwhile. Then it does the
//!   rest of the batch alone, whoever claims to be at it; and it publishes itself where it is said to be done and is not.
//! - Whoever waited in vain, or was given a part that does not stand, does the next batches alone, and more of them each time.
//!
//! So two publishers may do the same work, and the sequencer takes the same hints twice.

mod jobs;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use blindfold_bte::PreDecrypted;
use blindfold_chain::{BatchView, Begun, CheckedPart, EpochParameters, HeldShares, Part, Step, assemble};
use blindfold_protocol::{BatchHints, Certificate, Release};
use blindfold_redis::{Redis, RedisError};
use blindfold_rpc::BlindApiClient;
use blindfold_runtime::{Instant, now};
use blindfold_telemetry::traces;
use parking_lot::Mutex;
use tokio::{sync::watch, time::sleep};

pub(crate) use jobs::Jobs;
use jobs::{BatchJobs, Job};

use crate::{HintPublisherLimits, WorkError, metrics::ShareMetrics, work::Workshop};

/// How often Redis is asked for what others did while there is nothing to do here.
const POLL: Duration = Duration::from_millis(25);
/// The same for whoever puts the batch together, and is waited for.
const ASSEMBLER_POLL: Duration = Duration::from_millis(5);
/// Others are waited for as long as this many parts take here, for each batch.
const PATIENCE_PARTS: u32 = 3;
/// The same in leases, at least.
const PATIENCE_LEASES: u32 = 3;
/// A part counts for no more than this many leases, however long it takes here.
const PART_LEASES: u32 = 10;
/// Jobs of one batch that are claimed for each of its parts before Redis is not asked any more for it.
const MAX_CLAIMS_PER_PART: usize = 4;
/// Batches that are not shared any more which are remembered.
const MAX_ALONE: usize = 1_024;
/// Batches that are done alone at most after one in which the others were no help.
const MAX_DISTRUST: u32 = 64;

/// Sharing, for all batches of a process.
pub(crate) struct Sharing {
    jobs: Jobs,
    min_sub_batches: usize,
    lease: Duration,
    pace: Arc<Pace>,
    /// Batches whose hints the sequencer refused: they are done without the others.
    alone: Mutex<BTreeSet<u64>>,
    trust: Mutex<Trust>,
    metrics: ShareMetrics,
}

/// How long the work on a sub-batch takes here.
#[derive(Default)]
pub(crate) struct Pace {
    /// Of the last ones at most, in microseconds.
    sub_batch_us: AtomicU64,
}

impl Pace {
    /// The work on so many sub-batches took so long.
    pub(crate) fn took(&self, step: Step, sub_batches: usize, time: Duration) {
        if step == Step::Finalize {
            return; // The small rest of what was pre-decrypted.
        }
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / sub_batches.max(1) as u64;
        // Falls slowly, so that one quick part says little.
        let before = self.sub_batch_us.load(Relaxed);
        self.sub_batch_us.store(us.max(before - before / 8), Relaxed);
    }

    fn of(&self, sub_batches: usize) -> Duration {
        let sub_batches = u32::try_from(sub_batches).unwrap_or(u32::MAX);
        Duration::from_micros(self.sub_batch_us.load(Relaxed)).saturating_mul(sub_batches)
    }
}

/// Whether the others are worth their while: after a batch in which they were no help the next ones are done alone, twice as
/// many each time.
#[derive(Default)]
struct Trust {
    /// Batches that are still done alone.
    left: u32,
    /// How many there were the last time.
    last: u32,
}

impl Trust {
    /// Whether the next batch is shared.
    fn shares(&mut self) -> bool {
        let shares = self.left == 0;
        self.left = self.left.saturating_sub(1);
        shares
    }

    /// Of several batches at the same time one counts.
    fn ended(&mut self, well: bool) {
        if self.left == 0 {
            self.last = if well { 0 } else { (self.last * 2).clamp(1, MAX_DISTRUST) };
            self.left = self.last;
        }
    }
}

impl Sharing {
    pub(crate) fn new(
        redis: Redis,
        limits: &HintPublisherLimits,
        pace: Arc<Pace>,
        metrics: ShareMetrics,
    ) -> Self {
        let lease = Duration::from_millis(limits.share_lease_ms);
        Self {
            jobs: Jobs::new(redis, limits.share_lease_ms),
            min_sub_batches: limits.share_min_sub_batches,
            lease,
            pace,
            alone: Mutex::default(),
            trust: Mutex::default(),
            metrics,
        }
    }

    /// Whether this batch, which is about to be worked on, is shared.
    pub(crate) fn shares(&self, view: &BatchView) -> bool {
        if view.accepted.is_empty() || self.alone.lock().contains(&view.number) {
            return false;
        }
        let shares = self.trust.lock().shares();
        if !shares {
            self.metrics.alone.increment();
        }
        shares
    }

    /// The sequencer refused what was put together of this batch: the next attempt is made alone.
    pub(crate) fn refused(&self, number: u64) {
        let mut alone = self.alone.lock();
        if alone.len() >= MAX_ALONE {
            alone.pop_first();
        }
        alone.insert(number);
    }

    fn cut(&self, view: &BatchView) -> Vec<Range<usize>> {
        let places = view.places();
        if places.len() < self.min_sub_batches {
            return vec![places];
        }
        places.map(|place| place..place + 1).collect()
    }

    /// How long others are waited for in all, in a batch whose largest part has so many sub-batches.
    fn patience(&self, sub_batches: usize) -> Duration {
        patience(self.pace.of(sub_batches), self.lease)
    }
}

fn patience(part: Duration, lease: Duration) -> Duration {
    let part = part.min(lease.saturating_mul(PART_LEASES));
    part.saturating_mul(PATIENCE_PARTS).max(lease.saturating_mul(PATIENCE_LEASES))
}

/// What came of a batch.
pub(crate) enum Shared {
    /// It is to be published; since when it is certified.
    Opened(Release, BatchHints, Instant),
    /// Another publisher did that.
    Published,
}

/// How far a part is.
enum Progress {
    Untouched,
    /// Pre-decrypted here.
    Begun(Vec<PreDecrypted>),
    /// Others say what it opens to; of that the releases are still to be checked.
    Checked(CheckedPart),
    /// Opened here, or checked.
    Open(Part),
}

/// One batch that is shared.
pub(crate) struct SharedBatch<'a> {
    shop: &'a Workshop,
    sharing: &'a Sharing,
    view: &'a Arc<BatchView>,
    parameters: &'a EpochParameters,
    certificate: watch::Receiver<Option<Certificate>>,
    jobs: BatchJobs<'a>,
    parts: Vec<Range<usize>>,
    progress: Vec<Progress>,
    /// What others say that is not checked yet.
    said: BTreeMap<usize, Part>,
    /// Parts of which somebody said what does not stand: they are opened here.
    refused: BTreeSet<usize>,
    /// Jobs that are ours and not done.
    ours: BTreeMap<usize, Job>,
    held: HeldShares,
    claims: usize,
    certified: Option<Instant>,
    /// How long there was work since then; the rest of the time is waiting.
    worked: Duration,
    /// Others were waited for in vain, or said what does not stand.
    let_down: bool,
    /// Redis is not asked any more.
    is_alone: bool,
    /// Until when putting it together is ours, and nobody else's.
    assembles_until: Option<Instant>,
    /// Somebody said that the sequencer has the hints, and it has not.
    done_is_false: bool,
}

impl<'a> SharedBatch<'a> {
    pub(crate) fn new(
        shop: &'a Workshop,
        sharing: &'a Sharing,
        view: &'a Arc<BatchView>,
        parameters: &'a EpochParameters,
        certificate: watch::Receiver<Option<Certificate>>,
    ) -> Self {
        let parts = sharing.cut(view);
        Self {
            shop,
            sharing,
            view,
            parameters,
            certificate,
            jobs: sharing.jobs.of(view, &parts),
            progress: parts.iter().map(|_| Progress::Untouched).collect(),
            parts,
            said: BTreeMap::new(),
            refused: BTreeSet::new(),
            ours: BTreeMap::new(),
            held: HeldShares::default(),
            claims: 0,
            certified: None,
            worked: Duration::ZERO,
            let_down: false,
            is_alone: false,
            assembles_until: None,
            done_is_false: false,
        }
    }

    /// Works on the batch until it is open here, or published by another.
    pub(crate) async fn open(mut self) -> Result<Shared, WorkError> {
        let done = self.work().await;
        // Without Redis it shows nothing of the others.
        if self.let_down || (done.is_ok() && !self.is_alone) {
            self.sharing.trust.lock().ended(!self.let_down);
        }
        done
    }

    async fn work(&mut self) -> Result<Shared, WorkError> {
        let opened = self.jobs.open().await;
        self.answer(opened);
        loop {
            let certificate = *self.certificate.borrow();
            if let Some(certificate) = &certificate {
                self.certified.get_or_insert_with(now);
                self.open_begun(certificate).await?;
            }
            if let Some(part) = self.next().await {
                self.begin(part, certificate.as_ref()).await?;
                continue;
            }
            if certificate.is_none() {
                self.wait_for_certificate().await?;
                continue;
            }
            if self.missing().is_empty() {
                if let Some(shared) = self.put_together().await? {
                    return Ok(shared);
                }
                continue;
            }
            if self.is_published().await {
                return Ok(Shared::Published);
            }
            if self.assembles().await {
                self.check_said().await?;
            }
            self.listen().await;
            if self.out_of_patience() {
                self.give_up();
            }
        }
    }

    /// An answer of Redis, or from now on none.
    fn answer<T>(&mut self, answer: Result<T, RedisError>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(fault) => {
                if !self.is_alone {
                    tracing::debug!(number = self.view.number, %fault, "the rest of the batch is done alone");
                    self.shop.metrics.share.alone.increment();
                }
                self.is_alone = true;
                None
            }
        }
    }

    /// Parts that are neither open nor begun here, and of which nobody says anything.
    fn missing(&self) -> Vec<usize> {
        let is_missing = |(part, progress): &(usize, &Progress)| {
            matches!(progress, Progress::Untouched) && !self.said.contains_key(part)
        };
        self.progress.iter().enumerate().filter(is_missing).map(|(part, _)| part).collect()
    }

    fn is_untouched(&self, part: usize) -> bool {
        self.progress.get(part).is_some_and(|progress| matches!(progress, Progress::Untouched))
    }

    /// The next part to do here.
    async fn next(&mut self) -> Option<usize> {
        while let Some(part) = self.refused.pop_first() {
            if self.is_untouched(part) {
                self.said.remove(&part);
                return Some(part);
            }
        }
        while !self.is_alone {
            let claimed = match self.claims >= MAX_CLAIMS_PER_PART * self.parts.len() {
                true => Err(RedisError::Unreadable { reason: "there is no end of jobs".to_owned() }),
                false => self.jobs.claim().await,
            };
            let Some(job) = self.answer(claimed) else { break };
            let job = job?;
            self.claims += 1;
            let metrics = &self.shop.metrics.share;
            if job.taken_over { &metrics.taken_over } else { &metrics.claimed }.increment();
            let part = job.part;
            // What is done already is put there again: its entry may have been lost.
            if let Some(Progress::Open(done)) = self.progress.get(part) {
                let finished = self.jobs.finish(&job, done).await;
                self.finished(finished);
                continue;
            }
            self.ours.insert(part, job);
            if self.is_untouched(part) {
                return Some(part);
            }
        }
        let alone = self.is_alone.then(|| self.missing().first().copied());
        alone.flatten()
    }

    /// Does a part, or as much of it as can be done without a certificate.
    async fn begin(&mut self, part: usize, certificate: Option<&Certificate>) -> Result<(), WorkError> {
        let Some(places) = self.parts.get(part).cloned() else { return Ok(()) };
        match certificate {
            Some(certificate) => self.open_part(part, Begun::Nothing, certificate).await,
            None => {
                let decryption = &self.shop.decryption;
                let work = decryption.predecrypt_part(self.view, self.parameters, places);
                let started = now();
                let begun = self.renewing(work).await?;
                traces::batch(self.view.number, "predecrypt", started);
                if let Some(progress) = self.progress.get_mut(part) {
                    *progress = Progress::Begun(begun);
                }
                Ok(())
            }
        }
    }

    async fn open_begun(&mut self, certificate: &Certificate) -> Result<(), WorkError> {
        for part in 0..self.progress.len() {
            let Some(progress) = self.progress.get_mut(part) else { break };
            let Progress::Begun(begun) = progress else { continue };
            let begun = std::mem::take(begun);
            *progress = Progress::Untouched;
            self.open_part(part, Begun::Predecrypted(begun), certificate).await?;
        }
        Ok(())
    }

    /// Opens a part and puts what came of it where the others find it.
    async fn open_part(
        &mut self,
        part: usize,
        begun: Begun,
        certificate: &Certificate,
    ) -> Result<(), WorkError> {
        let Some(places) = self.parts.get(part).cloned() else { return Ok(()) };
        let started = now();
        let decryption = &self.shop.decryption;
        let work = decryption.open_part(self.view, self.parameters, places, begun, certificate, &self.held);
        let opened = self.renewing(work).await?;
        self.worked += started.elapsed();
        let unclaimed = Job { id: String::new(), part, taken_over: false };
        let job = self.ours.remove(&part).unwrap_or(unclaimed);
        if !self.is_alone {
            let finished = self.jobs.finish(&job, &opened).await;
            self.finished(finished);
        }
        if let Some(progress) = self.progress.get_mut(part) {
            *progress = Progress::Open(opened);
        }
        self.said.remove(&part);
        Ok(())
    }

    /// Does work that may take longer than a lease.
    async fn renewing<T>(&self, work: impl Future<Output = T>) -> T {
        let ids: Vec<String> = self.ours.values().map(|job| job.id.clone()).collect();
        let mut work = std::pin::pin!(work);
        let mut lost_before = 0;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep(self.jobs.renewal()), if !ids.is_empty() && !self.is_alone => {
                    // Where it fails, the next call notices it as well; the work goes on in any case.
                    if let Ok(lost) = self.jobs.renew(&ids).await {
                        self.shop.metrics.share.lost.add(lost.saturating_sub(lost_before));
                        lost_before = lost.max(lost_before);
                    }
                }
            }
        }
    }

    /// Keeps what is ours, until there is a certificate or it is time to look for jobs again.
    async fn wait_for_certificate(&mut self) -> Result<(), WorkError> {
        let mut certificate = self.certificate.clone();
        let look = async {
            if self.is_alone {
                std::future::pending().await
            } else {
                sleep(self.sharing.lease).await;
            }
        };
        let wait = async {
            tokio::select! {
                certified = certificate.wait_for(Option::is_some) => certified.map(drop).map_err(|_| WorkError::Stopped),
                () = look => Ok(()),
            }
        };
        self.renewing(wait).await
    }

    /// Hears what others did meanwhile.
    async fn listen(&mut self) {
        let missing = self.missing();
        let found = self.jobs.parts(&missing).await;
        let Some(found) = self.answer(found) else { return };
        if found.is_empty() {
            sleep(if self.is_assembler() { ASSEMBLER_POLL } else { POLL }).await;
            return;
        }
        for (part, said) in found {
            match said {
                Some(said) => {
                    self.said.insert(part, said);
                }
                None => self.refuse(part, "it does not decode"),
            }
        }
    }

    fn refuse(&mut self, part: usize, reason: &str) {
        tracing::warn!(number = self.view.number, part, reason, "another publisher's part does not stand");
        self.shop.metrics.share.refused.increment();
        self.let_down = true;
        self.said.remove(&part);
        self.refused.insert(part);
    }

    /// Whether there was no work for too long since the batch was certified. What others say does not make it less, nor do
    /// jobs that are done already; a Redis that is slow makes it more.
    fn out_of_patience(&self) -> bool {
        let largest = self.parts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        let waited =
            self.certified.map_or(Duration::ZERO, |since| since.elapsed().saturating_sub(self.worked));
        waited >= self.sharing.patience(largest)
    }

    /// Does the rest of the batch alone.
    fn give_up(&mut self) {
        tracing::debug!(number = self.view.number, "others are waited for in vain");
        self.shop.metrics.share.gave_up.increment();
        self.let_down = true;
        self.is_alone = true;
    }

    /// Whether the sequencer has the hints, where somebody says so.
    async fn is_published(&mut self) -> bool {
        if self.is_alone || self.done_is_false {
            return false;
        }
        let said = self.jobs.is_done().await;
        if self.answer(said) != Some(true) {
            return false;
        }
        let known = match self.shop.sequencer.get_hints(self.view.number).await {
            Ok(known) => known.and_then(|hints| hints.decode().ok()),
            Err(_) => None,
        };
        let is_there = known.is_some_and(|known| known.header_hash == self.view.hash);
        self.done_is_false = !is_there;
        is_there
    }

    /// What putting a part where others find it told: whether putting the batch together is ours.
    fn finished(&mut self, answer: Result<bool, RedisError>) {
        if self.answer(answer) == Some(true) {
            self.assembles_until = Some(now() + self.sharing.lease);
        }
    }

    fn is_assembler(&self) -> bool {
        self.assembles_until.is_some_and(|until| now() < until)
    }

    /// Whether putting the batch together is ours, or nobody's so far. Whoever has nothing to do takes it, and looks at the
    /// others' parts while the last ones are worked on.
    async fn assembles(&mut self) -> bool {
        if self.is_alone || self.is_assembler() {
            return true;
        }
        let ours = self.jobs.assemble().await;
        self.finished(ours);
        self.is_alone || self.is_assembler()
    }

    /// Looks at what others say of the ciphertexts.
    async fn check_said(&mut self) -> Result<(), WorkError> {
        while let Some((part, said)) = self.said.pop_first() {
            let Some(places) = self.parts.get(part).cloned() else { continue };
            let check = self.shop.decryption.check_entries(self.view, self.parameters, places, said);
            let started = now();
            let checked = self.renewing(check).await?;
            self.worked += started.elapsed();
            match (checked, self.progress.get_mut(part)) {
                (Ok(checked), Some(progress)) => *progress = Progress::Checked(checked),
                (Ok(_), None) => {}
                (Err(fault), _) => self.refuse(part, &fault.to_string()),
            }
        }
        Ok(())
    }

    /// Looks at the releases of what was checked, all of them together.
    async fn check_releases(&mut self) -> Result<(), WorkError> {
        let (mut numbers, mut checked) = (Vec::new(), Vec::new());
        for (part, progress) in self.progress.iter_mut().enumerate() {
            match std::mem::replace(progress, Progress::Untouched) {
                Progress::Checked(part_checked) => {
                    numbers.push(part);
                    checked.push(part_checked);
                }
                other => *progress = other,
            }
        }
        if checked.is_empty() {
            return Ok(());
        }
        let check = self.shop.decryption.check_releases(self.view, self.parameters, checked);
        let started = now();
        let judged = self.renewing(check).await?;
        self.worked += started.elapsed();
        for (part, judged) in numbers.into_iter().zip(judged) {
            match (judged, self.progress.get_mut(part)) {
                (Ok(right), Some(progress)) => {
                    self.shop.metrics.share.used.increment();
                    *progress = Progress::Open(right);
                }
                (Ok(_), None) => {}
                (Err(fault), _) => self.refuse(part, &fault.to_string()),
            }
        }
        Ok(())
    }

    /// Every part is open or said: one publisher checks what was said and puts it together, the others wait for that. `None`
    /// where a part has to be opened here first.
    async fn put_together(&mut self) -> Result<Option<Shared>, WorkError> {
        while !self.done_is_false && !self.is_assembler() && !self.is_alone {
            if self.is_published().await {
                return Ok(Some(Shared::Published));
            }
            if self.assembles().await {
                break;
            }
            if self.out_of_patience() {
                self.give_up();
            } else {
                sleep(POLL).await;
            }
        }
        self.check_said().await?;
        if self.refused.is_empty() {
            self.check_releases().await?;
        }
        if !self.refused.is_empty() {
            return Ok(None);
        }
        let open = self.progress.iter().filter_map(|progress| match progress {
            Progress::Open(part) => Some(part.clone()),
            Progress::Untouched | Progress::Begun(_) | Progress::Checked(_) => None,
        });
        let (release, hints) = assemble(self.view, &open.collect::<Vec<_>>()).ok_or(WorkError::Stopped)?;
        Ok(Some(Shared::Opened(release, hints, self.certified.unwrap_or_else(now))))
    }
}

impl Sharing {
    /// Tells the others that the sequencer has the hints of a batch.
    pub(crate) async fn published(&self, view: &BatchView) {
        // Whoever does not hear it finds out.
        let _ = self.jobs.of(view, &self.cut(view)).set_done().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_that_of_the_work_and_has_an_end() {
        let seconds = Duration::from_secs;
        let pace = Pace::default();
        let of = |sub_batches| patience(pace.of(sub_batches), seconds(1));
        assert_eq!(of(1), seconds(3));
        pace.took(Step::Decrypt, 8, seconds(16));
        assert_eq!((of(1), of(3)), (seconds(6), seconds(18)));
        // What is left after pre-decryption says nothing, nor does one quick part.
        pace.took(Step::Finalize, 1, seconds(9));
        pace.took(Step::Predecrypt, 1, seconds(1));
        assert_eq!(of(1), Duration::from_millis(5_250));
        for time in [seconds(11), seconds(3_600), Duration::MAX] {
            pace.took(Step::Predecrypt, 1, time);
            assert_eq!((of(1), of(usize::MAX)), (seconds(30), seconds(30)), "{time:?}");
        }
    }

    #[test]
    fn distrust_doubles_up_to_its_end_and_is_over_with_a_batch_that_went_well() {
        let mut trust = Trust::default();
        let alone = |trust: &mut Trust| (0..).take_while(|_| !trust.shares()).count();
        for expected in [1, 2, 4, 8, 16, 32, 64, 64] {
            trust.ended(false);
            // Those that were begun before say nothing new.
            trust.ended(false);
            trust.ended(true);
            assert_eq!(alone(&mut trust), expected);
        }
        trust.ended(true);
        assert_eq!(alone(&mut trust), 0);
        trust.ended(false);
        assert_eq!(alone(&mut trust), 1);
    }
}

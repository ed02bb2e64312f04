//! Following the sequencer: which batches are worked on, and in what order those without hints are caught up with.
//!
//! Live batches come from the feed and begin at their seal. Everything certified that has no hints and is not in work
//! stands in the backlog and is fetched, a few at a time beside the live ones. A sweep compares with the sequencer's
//! status, so a lost notification costs time and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use blindfold_chain::{BatchView, DecryptError, EpochParameters};
use blindfold_protocol::{
    B256, Canonical, Certificate, ChainConfig, Envelope, SealedBatch, certificate,
    limits::{MAX_UNCERTIFIED_HEADERS, MAX_UNCERTIFIED_RUN},
};
use blindfold_rpc::{
    BlindApiClient, Feed, FeedEvent, FeedItem, HttpClient, Readiness, ReceivedError, Topic, types::BatchInfo,
};
use blindfold_runtime::{Cancelled, Patience, Spawner, joined, now, until};
use blindfold_telemetry::traces;
use tokio::{
    sync::watch,
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{MissedTickBehavior, sleep_until},
};

use crate::{WorkError, backlog::Backlog, status::SharedStatus, work::Workshop};

/// The topics that the hint publisher follows.
pub(crate) const TOPICS: [Topic; 2] = [Topic::Headers, Topic::Certificates];
/// Name of the readiness condition.
pub(crate) const SEQUENCER: &str = "sequencer";

/// How far above what is certified a header may be to be worked on: further ones nobody seals.
const MAX_AHEAD: u64 = MAX_UNCERTIFIED_RUN as u64;

/// Name of the task that coordinates all batches.
pub(crate) const COORDINATOR: &str = "coordinator";

/// A batch that is worked on.
struct Entry {
    hash: B256,
    parent_hash: B256,
    certificate: watch::Sender<Option<Certificate>>,
    abort: AbortHandle,
    live: bool,
}

/// A batch as fetched, with the certificate that covers it if there is one.
struct FetchedBatch {
    sealed: SealedBatch,
    verdicts: Vec<Option<String>>,
    certificate: Option<Certificate>,
}

enum Fetched {
    /// The sequencer has hints of it already.
    Hinted,
    /// L1 made its header: nothing of it is opened.
    MadeByL1,
    /// The sequencer has no hints of it yet.
    Batch(Box<FetchedBatch>),
}

/// What a batch that is tried again failed for.
#[derive(Clone, Copy)]
enum Failure {
    /// The sequencer did not give it.
    ToAsk,
    /// What it gave cannot be opened now.
    OfBatch,
}

enum Done {
    Fetched(u64, Result<Fetched, String>),
    Worked(u64, Result<bool, WorkError>),
}

pub(crate) struct Coordinator {
    shop: Arc<Workshop>,
    chain: Arc<ChainConfig>,
    status: Arc<SharedStatus>,
    readiness: Readiness,
    entries: BTreeMap<u64, Entry>,
    backlog: Backlog,
    fetching: BTreeSet<u64>,
    /// Every number up to this has hints, or never gets any; unknown until the first status.
    complete: Option<u64>,
    /// The newest number that is known to be certified.
    certified: u64,
    /// What was complete when the sequencer said last up to where all have hints.
    known: u64,
    /// Numbers above it that have hints.
    done: BTreeSet<u64>,
    spawner: Spawner,
    patience: Patience,
    tasks: JoinSet<Done>,
    numbers: HashMap<Id, u64>,
}

impl Coordinator {
    pub(crate) fn new(
        shop: Arc<Workshop>,
        chain: Arc<ChainConfig>,
        status: Arc<SharedStatus>,
        readiness: Readiness,
        spawner: Spawner,
    ) -> Self {
        let patience = Patience::new(shop.config.limits.stuck_exit_ms);
        Self {
            shop,
            chain,
            status,
            readiness,
            entries: BTreeMap::new(),
            backlog: Backlog::default(),
            fetching: BTreeSet::new(),
            complete: None,
            certified: 0,
            known: 0,
            done: BTreeSet::new(),
            spawner,
            patience,
            tasks: JoinSet::new(),
            numbers: HashMap::new(),
        }
    }

    pub(crate) async fn run(mut self, mut feed: Feed, mut stop: watch::Receiver<bool>) {
        let mut sweep = tokio::time::interval(Duration::from_millis(self.shop.config.limits.sweep_ms));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let places = self.shop.config.limits.catch_up_batches;
            let retry = self.backlog.due_at(places).filter(|_| self.free_places() > 0);
            tokio::select! {
                () = until(&mut stop) => return,
                item = feed.next() => match item {
                    Some(FeedItem::Connected | FeedItem::Reconnected) => self.sweep().await,
                    Some(FeedItem::Event(event)) => self.on_event(event).await,
                    Some(FeedItem::Invalid { topic, reason }) => {
                        tracing::warn!(topic = topic.as_str(), reason, "invalid notification from the feed");
                    }
                    None => return,
                },
                Some(done) = self.tasks.join_next_with_id() => self.on_done(done).await,
                _ = sweep.tick() => self.sweep().await,
                () = sleep_until(retry.unwrap_or_else(now)), if retry.is_some() => {}
            }
            self.fetch_backlog();
            self.report();
        }
    }

    async fn on_event(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Header(notification) => match notification.sealed.decode() {
                Ok(sealed) => self.on_header(sealed, notification.verdicts),
                Err(fault) => {
                    tracing::warn!(number = notification.number, %fault, "undecodable header from the feed")
                }
            },
            FeedEvent::Certificate(notification) => match notification.certificate.decode() {
                Ok(certificate) => self.on_certificate(certificate).await,
                Err(fault) => {
                    self.shop.metrics.bad_certificates.increment();
                    tracing::warn!(number = notification.number, %fault, "undecodable certificate from the feed");
                }
            },
            FeedEvent::Release(_) | FeedEvent::Hints(_) | FeedEvent::Block(_) => {}
        }
    }

    /// A sealed batch: pre-decryption begins now.
    fn on_header(&mut self, sealed: SealedBatch, verdicts: Vec<Option<String>>) {
        let number = sealed.header.number;
        if self.is_done(number) || number > self.certified.saturating_add(MAX_AHEAD) {
            return;
        }
        if sealed.claims_l1() {
            self.never_opened(number);
            return;
        }
        if let Some(entry) = self.entries.get(&number) {
            if entry.hash != sealed.header.hash() {
                tracing::warn!(number, "second header for a number in work; the certificate will decide");
            }
            return;
        }
        let live = self.entries.values().filter(|entry| entry.live).count();
        if live >= self.shop.config.limits.live_batches {
            tracing::warn!(number, live, "too many batches in work; this one is caught up with later");
            return;
        }
        self.start(FetchedBatch { sealed, verdicts, certificate: None }, true);
    }

    async fn on_certificate(&mut self, certificate: Certificate) {
        let number = certificate.number;
        if self.is_done(number) || !self.verify(&certificate).await {
            return;
        }
        self.certified = self.certified.max(number);
        self.take_certificate(number, certificate);
    }

    /// Hands a verified certificate to its batch and to the ancestors in work.
    fn take_certificate(&mut self, number: u64, certificate: Certificate) {
        match self.entries.get(&number) {
            Some(entry) if entry.hash == certificate.header_hash => {}
            Some(_) => {
                tracing::warn!(number, "another header than the one in work was certified: beginning again");
                self.give_up(number);
                self.backlog.add_anew(number);
                return;
            }
            None => {
                if !self.fetching.contains(&number) {
                    self.backlog.add(number);
                }
                return;
            }
        }
        let mut expected = certificate.header_hash;
        for entry in self
            .entries
            .range(..=number)
            .rev()
            .zip((0..=number).rev())
            .map_while(|((at, entry), number)| (*at == number).then_some(entry))
        {
            if entry.hash != expected {
                break;
            }
            entry
                .certificate
                .send_if_modified(|known| known.is_none() && known.replace(certificate).is_none());
            expected = entry.parent_hash;
        }
    }

    async fn verify(&self, certificate: &Certificate) -> bool {
        let Some(parameters) = self.shop.parameters.at(certificate.number) else {
            tracing::warn!(number = certificate.number, "certificate of an epoch without parameters here");
            return false;
        };
        let valid = verify(certificate, parameters, &self.chain).await;
        if let Err(fault) = &valid {
            self.shop.metrics.bad_certificates.increment();
            tracing::warn!(number = certificate.number, fault, "certificate refused");
        }
        valid.is_ok()
    }

    fn is_done(&self, number: u64) -> bool {
        self.complete.is_some_and(|complete| number <= complete) || self.done.contains(&number)
    }

    fn start(&mut self, batch: FetchedBatch, live: bool) {
        let header = &batch.sealed.header;
        let (number, hash, parent_hash) = (header.number, header.hash(), header.parent_hash);
        let Some(parameters) = self.shop.parameters.at(number) else {
            let fault = "no parameters are configured for this batch's epoch".to_owned();
            tracing::error!(number, fault);
            self.stuck(number, &fault);
            self.again(number, Failure::OfBatch, fault);
            return;
        };
        let (sender, receiver) = watch::channel(batch.certificate);
        let (shop, chain) = (Arc::clone(&self.shop), Arc::clone(&self.chain));
        let abort = self.tasks.spawn(async move {
            Done::Worked(number, read_and_work(&shop, &chain, batch, parameters, receiver).await)
        });
        self.numbers.insert(abort.id(), number);
        self.entries.insert(number, Entry { hash, parent_hash, certificate: sender, abort, live });
    }

    /// Whether it is in work, and will end.
    fn is_certified(&self, number: u64) -> bool {
        self.entries.get(&number).is_some_and(|entry| entry.certificate.borrow().is_some())
    }

    fn give_up(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            entry.abort.abort();
        }
    }

    async fn on_done(&mut self, done: Result<(Id, Done), JoinError>) {
        match done {
            Ok((id, Done::Fetched(number, result))) => {
                self.numbers.remove(&id);
                self.fetching.remove(&number);
                self.on_fetched(number, result).await;
            }
            Ok((id, Done::Worked(number, result))) => {
                self.numbers.remove(&id);
                let current = self.entries.get(&number).is_some_and(|entry| entry.abort.id() == id);
                if current {
                    self.entries.remove(&number);
                    self.on_worked(number, result);
                }
            }
            Err(error) => {
                self.numbers.remove(&error.id());
                // Only a batch that was given up is cancelled, and it is in the backlog already.
                let (Ok(()) | Err(Cancelled)) = joined(Err(error));
            }
        }
    }

    fn on_worked(&mut self, number: u64, result: Result<bool, WorkError>) {
        match result {
            Ok(false) => self.finished(number),
            Ok(true) => {
                self.finished(number);
                self.status.update(|status| {
                    status.published += 1;
                    status.last_published = status.last_published.max(Some(number));
                });
            }
            Err(fault) => {
                tracing::warn!(number, %fault, "batch failed; beginning it again");
                // Members that are away come back, whoever asks them.
                if !matches!(fault, WorkError::Decrypt(DecryptError::TooFewShares { .. })) {
                    self.stuck(number, &fault.to_string());
                }
                self.again(number, Failure::OfBatch, fault.to_string());
            }
        }
    }

    /// Notes what keeps a batch from being opened. What lasts may be mended by a new start.
    fn stuck(&mut self, number: u64, fault: &str) {
        if self.patience.failed() {
            self.spawner.fail(COORDINATOR, format!("batch {number}: {fault}"));
        }
    }

    /// Nothing of a header that L1 made is opened, nor of one that had to give way to it.
    fn never_opened(&mut self, number: u64) {
        self.give_up(number);
        self.finished(number);
    }

    fn finished(&mut self, number: u64) {
        self.patience.reset();
        self.done.insert(number);
        self.backlog.remove(number);
        self.status.update(|status| {
            status.failing.remove(&number);
        });
        while let Some(complete) = self.complete
            && self.done.remove(&(complete + 1))
        {
            self.complete = Some(complete + 1);
        }
    }

    fn again(&mut self, number: u64, failure: Failure, fault: String) {
        self.shop.metrics.failures.increment();
        // What is not certified comes again with its certificate.
        let expected = !self.is_done(number) && number <= self.certified.saturating_add(MAX_AHEAD);
        let pause_ms = self.shop.config.limits.batch_retry_ms;
        let remembered = match failure {
            _ if !expected => false,
            Failure::OfBatch => self.backlog.fail(number, now(), pause_ms),
            Failure::ToAsk => self.backlog.put_off(number, now(), pause_ms),
        };
        if !remembered {
            self.backlog.remove(number);
            return;
        }
        self.status.update(|status| {
            status.failing.insert(number, fault);
        });
    }

    /// Compares with the sequencer: what is certified and has no hints goes to the backlog, what is sealed begins.
    async fn sweep(&mut self) {
        let status = match BlindApiClient::get_status(&self.shop.sequencer).await {
            Ok(status) => status,
            Err(error) => {
                let error = ReceivedError::from(error);
                self.readiness.set_not_ready(SEQUENCER, error.to_string());
                tracing::debug!(%error, "the sequencer gives no status");
                return;
            }
        };
        if let Err(other) = status.check_chain(self.chain.chain_id, &self.chain.deployment) {
            self.readiness.set_not_ready(SEQUENCER, other.to_string());
            tracing::error!("the sequencer {other}");
            return;
        }
        self.readiness.set_ready(SEQUENCER);
        self.certified = self.certified.max(status.certified);
        // Up to `hinted` no batch lacks hints that can have any. Where it lacks what was published before it was asked the last
        // time, its disk was restored from an older one: all of that is published again.
        let hinted = status.hinted.min(status.certified);
        if hinted < self.known {
            tracing::warn!(hinted, "the sequencer went back: it gets its hints again");
            self.complete = None;
            self.done.clear();
        }
        let complete = self.complete.map_or(hinted, |complete| complete.max(hinted));
        self.complete = Some(complete);
        self.known = complete;
        self.done = self.done.split_off(&(complete + 1));
        self.backlog.remove_through(complete);
        // What waits for a certificate there had to give way.
        let waits = |entry: &Entry| entry.certificate.borrow().is_none();
        let ended = self.entries.range(..=complete).filter(|(_, entry)| waits(entry));
        for number in ended.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.give_up(number);
        }
        self.status.update(|status| status.failing = status.failing.split_off(&(complete + 1)));
        for number in complete + 1..=status.certified {
            if !self.backlog.has_place() {
                break;
            }
            let waits = self.entries.get(&number).is_none_or(|entry| entry.certificate.borrow().is_none());
            if waits && !self.done.contains(&number) && !self.fetching.contains(&number) {
                self.backlog.add(number);
            }
        }
        let newest = status.head.number.min(status.certified.saturating_add(MAX_UNCERTIFIED_HEADERS as u64));
        for number in status.certified.saturating_add(1)..=newest {
            let taken = self.entries.contains_key(&number) || self.fetching.contains(&number);
            if !taken && !self.done.contains(&number) {
                self.backlog.add(number);
            }
        }
    }

    /// How many batches more may be caught up with now.
    fn free_places(&self) -> usize {
        let caught_up =
            self.entries.values().filter(|entry| !entry.live && entry.certificate.borrow().is_some());
        let taken = self.fetching.len() + caught_up.count();
        self.shop.config.limits.catch_up_batches.saturating_sub(taken)
    }

    /// Fetches from the backlog as many as may be caught up with at the same time.
    fn fetch_backlog(&mut self) {
        let mut free = self.free_places();
        while free > 0 {
            let next = self.backlog.take(now(), self.shop.config.limits.catch_up_batches);
            let Some(number) = next else { return };
            if self.is_done(number) {
                self.backlog.remove(number);
                continue;
            }
            if !self.fetching.insert(number) {
                continue;
            }
            let sequencer = self.shop.sequencer.clone();
            let handle =
                self.tasks.spawn(async move { Done::Fetched(number, fetch(&sequencer, number).await) });
            self.numbers.insert(handle.id(), number);
            free -= 1;
        }
    }

    async fn on_fetched(&mut self, number: u64, result: Result<Fetched, String>) {
        let batch = match result {
            // What is certified and in work may have given these hints itself, and is ended by its own word.
            Ok(Fetched::Hinted) if self.is_certified(number) => return,
            Ok(Fetched::Hinted) => {
                self.give_up(number);
                self.finished(number);
                return;
            }
            Ok(Fetched::MadeByL1) => {
                self.never_opened(number);
                return;
            }
            Ok(Fetched::Batch(batch)) => batch,
            Err(fault) => {
                tracing::debug!(number, fault, "batch not fetched; asking again");
                self.again(number, Failure::ToAsk, fault);
                return;
            }
        };
        if let Some(certificate) = batch.certificate
            && !self.verify(&certificate).await
        {
            let fault = "the certificate does not stand".to_owned();
            self.stuck(number, &fault);
            self.again(number, Failure::OfBatch, fault);
            return;
        }
        if batch.certificate.is_none() {
            // It is asked for again once it is certified, as one that never failed: until then nothing of it is tried.
            self.backlog.remove(number);
        }
        let hash = batch.sealed.header.hash();
        match self.entries.get(&number) {
            None => {
                let live = batch.certificate.is_none();
                self.start(*batch, live);
            }
            Some(entry) if entry.hash == hash => {
                if let Some(certificate) = batch.certificate {
                    entry
                        .certificate
                        .send_if_modified(|known| known.is_none() && known.replace(certificate).is_none());
                }
            }
            Some(_) if batch.certificate.is_some() => {
                tracing::warn!(number, "another header than the one in work was certified: beginning again");
                self.give_up(number);
                self.start(*batch, false);
            }
            Some(_) => {}
        }
    }

    fn report(&self) {
        self.shop.metrics.in_work.set(self.entries.len() as u64);
        self.shop.metrics.backlog.set(self.backlog.len() as u64);
        self.status.update(|status| {
            status.in_work = self.entries.keys().copied().collect();
            status.backlog = self.backlog.numbers();
        });
    }
}

/// Checks that the sequencer signed the batch, reads it and works on it.
async fn read_and_work(
    shop: &Workshop,
    chain: &Arc<ChainConfig>,
    batch: FetchedBatch,
    parameters: EpochParameters,
    certificate: watch::Receiver<Option<Certificate>>,
) -> Result<bool, WorkError> {
    let max_batch = parameters.epoch().max_batch;
    let origin = batch.sealed.header.l1_origin_number;
    let sequencer = shop.parameters.sequencer_at(origin).unwrap_or(chain.sequencer);
    let chain = Arc::clone(chain);
    let view = blindfold_runtime::blocking(move || {
        let FetchedBatch { sealed, verdicts, .. } = &batch;
        if sealed.signed_header().signer(&chain.deployment) != Ok(sequencer) {
            return Err(WorkError::NotTheSequencer);
        }
        let view = BatchView::read(sealed, verdicts, max_batch)?;
        traces::batch_has(view.number, || {
            let accepted = view.accepted.iter().filter_map(|item| sealed.items.get(item.index as usize));
            accepted.filter_map(|item| id_of(item))
        });
        Ok(view)
    })
    .await
    .map_err(|_| WorkError::Stopped)??;
    shop.work(Arc::new(view), parameters, certificate).await
}

/// The id of an item that is an envelope, for traces.
fn id_of(item: &[u8]) -> Option<[u8; 32]> {
    Envelope::decode(item).ok().map(|envelope| envelope.id().0)
}

/// Verifies a certificate off the async threads.
async fn verify(
    certificate: &Certificate,
    parameters: EpochParameters,
    chain: &ChainConfig,
) -> Result<(), String> {
    let (certificate, deployment) = (*certificate, chain.deployment);
    blindfold_runtime::blocking(move || certificate::verify(&certificate, parameters.epoch(), &deployment))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|fault| fault.to_string())
}

/// Fetches a batch that may have hints already. A batch that is certified through a descendant alone comes with the
/// descendant's certificate.
async fn fetch(sequencer: &HttpClient, number: u64) -> Result<Fetched, String> {
    let refused = |error| ReceivedError::from(error).to_string();
    if sequencer.get_hints(number).await.map_err(refused)?.is_some() {
        return Ok(Fetched::Hinted);
    }
    let absent = || format!("the sequencer has no batch {number}");
    let info = sequencer.get_batch(number).await.map_err(refused)?.ok_or_else(absent)?;
    let sealed = read(number, &info)?;
    if sealed.claims_l1() {
        return Ok(Fetched::MadeByL1);
    }
    let mut certificate = own_certificate(&info)?;
    let mut hash = sealed.header.hash();
    if certificate.is_some_and(|certificate| certificate.number != number || certificate.header_hash != hash)
    {
        return Err("the certificate is for another header".to_owned());
    }
    for descendant in (number + 1..).take(MAX_UNCERTIFIED_RUN) {
        if certificate.is_some() {
            break;
        }
        let Some(info) = sequencer.get_batch(descendant).await.map_err(refused)? else { break };
        let header = read(descendant, &info)?.header;
        if header.parent_hash != hash {
            return Err(format!("batch {descendant} is no child of batch {}", descendant - 1));
        }
        hash = header.hash();
        certificate = own_certificate(&info)?
            .filter(|certificate| certificate.number == descendant && certificate.header_hash == hash);
    }
    Ok(Fetched::Batch(Box::new(FetchedBatch { sealed, verdicts: info.verdicts, certificate })))
}

fn read(number: u64, info: &BatchInfo) -> Result<SealedBatch, String> {
    let sealed = info.sealed.decode().map_err(|fault| format!("undecodable batch: {fault}"))?;
    if sealed.header.number != number {
        return Err(format!("batch {} instead of {number}", sealed.header.number));
    }
    Ok(sealed)
}

fn own_certificate(info: &BatchInfo) -> Result<Option<Certificate>, String> {
    let certificate = info.certificate.as_ref().map(|certificate| certificate.decode()).transpose();
    certificate.map_err(|fault| format!("undecodable certificate: {fault}"))
}

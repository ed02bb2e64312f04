//! Following the sequencer: every header checked, acknowledged once, and given up for the certified one.
//!
//! The loop looks at what it holds after every event, so a lost event costs time and nothing else: headers wait in
//! order of number, certificates wait for their header, and whatever is missing is fetched.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blindfold_chain::{Applied, CLOCK_SKEW_MS, CertificateOutcome, NextStep, TrackerError};
use blindfold_protocol::{
    B256, BatchHeader, Certificate, SealedBatch, SignedHeader,
    limits::{MAX_UNCERTIFIED_HEADERS, MAX_UNCERTIFIED_RUN},
};
use blindfold_rpc::{Feed, FeedEvent, FeedItem, Topic};
use blindfold_runtime::{Backoff, Instant, Patience, Pauses, joined, now, until};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{
    Evidence,
    acknowledge::{Acknowledger, NotAcknowledged, sleep_until},
    catch_up::{CertifiedRun, PeerRound, Round, ServedBatch, Source, Sources, Survey, Wanted, WantedOfPeers},
    member::Context,
    share::ShareService,
    voting::Abstains,
};

/// Headers and certificates held while the one before them is missing; what is further ahead is fetched later.
const MAX_WAITING: u64 = MAX_UNCERTIFIED_RUN as u64;
/// Longest pause before a member is asked again that claimed to hold what it did not give, and before the others are asked
/// again for what is not certified, in milliseconds.
const MAX_PEER_PAUSE_MS: u64 = 300_000;
/// How often L1 is asked for headers that it made, in milliseconds.
const L1_CHECK_INTERVAL_MS: u64 = 2_000;
/// Name of the readiness condition.
pub(crate) const FOLLOWING: &str = "following";
/// Readiness condition: our clock, the wall's and L1's agree.
pub(crate) const CLOCK: &str = "clock";

/// Asks L1 how late it is and how far it is, until the member stops. A header from the future is refused by the clock that
/// is kept.
pub(crate) async fn watch_clock(context: Arc<Context>) {
    let mut stop = context.spawner.stop();
    loop {
        let l1 = tokio::select! {
            () = until(&mut stop) => return,
            l1 = context.l1.newest_time() => l1.ok().flatten(),
        };
        context.agreement.observe(l1.map(|seconds| seconds.saturating_mul(1_000)));
        match context.agreement.fault() {
            None => context.readiness.set_ready(CLOCK),
            Some(fault) => context.readiness.set_not_ready(CLOCK, fault.to_string()),
        }
        tokio::select! {
            () = until(&mut stop) => return,
            () = context.unreleased.refresh() => {}
        }
        tokio::select! {
            () = until(&mut stop) => return,
            () = tokio::time::sleep(Duration::from_millis(L1_CHECK_INTERVAL_MS)) => {}
        }
    }
}

/// What became of a header or certificate.
enum Taken {
    /// The chain is longer, or the header was known.
    Done,
    /// It is refused, and dropped for good.
    Refused,
    /// Look at it again after a pause.
    Later,
    /// Something before it has to be fetched.
    CatchUp,
}

/// A certificate that another member showed when it was asked what it holds.
#[derive(Clone)]
struct Shown {
    certificate: Certificate,
    /// With the header and its items, unless they were refused.
    run: Option<CertifiedRun>,
    /// The last number that L1 had made a header for then: it is not of a branch that L1 ended with one of these.
    made: u64,
}

/// A certified run that was not taken.
struct Untaken {
    reason: String,
    /// Whether somebody else may have what can be taken.
    rejected: bool,
}

/// The headers that L1 made, as far as they were new here.
type L1Round = Result<Vec<(Arc<SealedBatch>, Applied)>, TrackerError>;

pub(crate) struct Follower {
    context: Arc<Context>,
    acknowledger: Arc<Acknowledger>,
    shares: Arc<ShareService>,
    sources: Arc<Sources>,
    waiting: BTreeMap<u64, Arc<SealedBatch>>,
    certificates: BTreeMap<u64, Certificate>,
    /// Something is missing that no event will bring.
    behind: bool,
    /// The sequencer may be withholding: the other members are asked, too.
    ask_peers: bool,
    /// It did not say where it stands when it was asked last.
    silent: bool,
    /// The round that asks the sequencer, at most one.
    rounds: JoinSet<Round>,
    /// The round that asks the other members, at most one.
    peer_rounds: JoinSet<PeerRound>,
    /// Whose answers came to nothing: not asked for what is certified for a while.
    pauses: Pauses<Source>,
    /// No round asks the other members before this.
    peers_at: Instant,
    /// Nor for what is not certified before this.
    held_at: Instant,
    held_pauses: Backoff,
    /// The question to L1 that is under way, at most one.
    l1_rounds: JoinSet<L1Round>,
    /// The question where the others stand, at most one.
    surveys: JoinSet<Survey>,
    /// The highest certificate that one of them showed then, above what is certified here. It is not asked for again.
    shown: Option<Shown>,
    /// The others are asked where they stand, while that decides whether we vote, at this time.
    survey_at: Instant,
    /// A header was not acknowledged because we had to catch up or to ask first.
    held_back: bool,
    /// The other members are asked next at this time, whatever the sequencer says.
    peer_check_at: Instant,
    /// No round begins before this.
    fetch_at: Instant,
    /// L1 is asked for headers that it made at this time.
    l1_at: Instant,
    /// Headers are to be looked at, or missing things to be fetched, again at this time.
    retry_at: Option<Instant>,
    /// How long nothing went on for a fault of ours.
    patience: Patience,
    /// How long L1 gave no usable answer about the headers that it made. It counts by itself: on a quiet chain nothing else
    /// goes on, and where something else is stuck, a good answer of L1 does not help.
    l1_patience: Patience,
    /// Since when the number after this certified one waits for its certificate.
    uncertified_since: Option<(u64, Instant)>,
    /// Headers in a row, up to the last one acknowledged, whose origin was more than W behind our clock.
    stale_origins: u64,
}

impl Follower {
    pub(crate) fn new(
        context: Arc<Context>,
        acknowledger: Arc<Acknowledger>,
        shares: Arc<ShareService>,
        sources: Arc<Sources>,
    ) -> Self {
        let limits = &context.config.limits;
        let pause = Duration::from_millis(limits.header_retry_ms);
        let [patience, l1_patience] = [Patience::new(limits.stuck_exit_ms); 2];
        let pauses = Pauses::new(limits.peer_check_ms, MAX_PEER_PAUSE_MS);
        let held_pauses = Backoff::new(limits.peer_check_ms, MAX_PEER_PAUSE_MS);
        Self {
            context,
            acknowledger,
            shares,
            sources,
            waiting: BTreeMap::new(),
            certificates: BTreeMap::new(),
            behind: true,
            ask_peers: false,
            silent: false,
            rounds: JoinSet::new(),
            peer_rounds: JoinSet::new(),
            pauses,
            peers_at: now(),
            held_at: now(),
            held_pauses,
            l1_rounds: JoinSet::new(),
            surveys: JoinSet::new(),
            shown: None,
            survey_at: now(),
            held_back: false,
            peer_check_at: now() + pause,
            fetch_at: now(),
            l1_at: now(),
            retry_at: None,
            patience,
            l1_patience,
            uncertified_since: None,
            stale_origins: 0,
        }
    }

    pub(crate) async fn run(mut self, mut feed: Feed, mut stop: watch::Receiver<bool>) {
        self.survey();
        self.acknowledge_again().await;
        // A sequencer that is not there sends no event to begin with.
        self.advance().await;
        loop {
            tokio::select! {
                biased;
                () = until(&mut stop) => return,
                Some(survey) = self.surveys.join_next() => self.on_survey(survey).await,
                Some(round) = self.rounds.join_next() => self.on_round(round).await,
                Some(round) = self.peer_rounds.join_next() => self.on_peer_round(round).await,
                Some(round) = self.l1_rounds.join_next() => self.on_l1(round).await,
                item = feed.next() => match item {
                    Some(item) => self.on_item(item).await,
                    None => return,
                },
                // Anybody may ask for shares of what is not here: after what brings it.
                () = self.shares.missing_batch() => (self.behind, self.ask_peers) = (true, true),
                () = sleep_until(self.retry_at) => {}
            }
            self.advance().await;
        }
    }

    /// What was on disk when the process died: headers that were checked and not acknowledged, or acknowledged and
    /// perhaps not sent.
    async fn acknowledge_again(&mut self) {
        self.held_back = false;
        let tracker = self.context.tracker.clone();
        for number in tracker.certified().number + 1..=tracker.head().number {
            match tracker.store().batch(number).await {
                Ok(Some(record)) => self.acknowledge(&record.sealed.header).await,
                Ok(None) => tracing::error!(number, "the store has no batch below its head"),
                Err(error) => tracing::error!(number, %error, "the store gave no batch"),
            }
        }
    }

    fn survey(&mut self) {
        let limits = &self.context.config.limits;
        self.survey_at = now() + Duration::from_millis(limits.peer_check_ms);
        let limit = Duration::from_millis(limits.first_look_ms);
        self.surveys.spawn(Arc::clone(&self.sources).survey(limit));
    }

    async fn on_survey(&mut self, survey: Result<Survey, JoinError>) {
        if let Ok(survey) = joined(survey) {
            self.context.take_survey(&survey).await;
            let known = self.shown.as_ref().map(|shown| shown.certificate.number);
            if let Some(run) = survey.shown
                && Some(run.certificate.number) > known
            {
                let made = survey.made.unwrap_or_default();
                self.shown = Some(Shown { certificate: run.certificate, run: Some(run), made });
            }
        }
    }

    /// Takes what a member showed, once what is below it is here: until its certificate stands here this member is silent
    /// (C-3), and nobody else may have it.
    async fn take_shown(&mut self) {
        let Some(Shown { certificate, run, .. }) = self.shown.clone() else { return };
        let (number, head) = (certificate.number, self.head());
        if number <= self.context.tracker.certified().number {
            self.shown = None;
            return;
        }
        if number > head && number <= head + MAX_WAITING {
            // For the header, whoever brings it.
            self.on_certificate(certificate);
        }
        if number <= head + 1
            && let Some(run) = run
            && matches!(self.take_certified(&run).await, Taken::Refused)
            && let Some(shown) = &mut self.shown
        {
            // Its items may be others than the header's.
            shown.run = None;
        }
    }

    /// Votes for what had to wait, and asks the others while that decides whether we vote.
    async fn vote_late(&mut self) {
        let (head, certified) = (self.context.tracker.head().number, self.context.tracker.certified().number);
        if self.held_back && self.context.may_vote(head).is_ok() {
            self.acknowledge_again().await;
        }
        if self.context.voting.wants_survey(certified) && self.surveys.is_empty() {
            if now() >= self.survey_at {
                self.survey();
            } else {
                self.retry_by(self.survey_at);
            }
        }
        self.context.show_voting();
    }

    async fn on_item(&mut self, item: FeedItem) {
        match item {
            FeedItem::Connected | FeedItem::Reconnected => {
                self.behind = true;
                // Whoever answers now may be another process, or another sequencer, that was told nothing yet.
                self.acknowledger.send_again();
                // The sequencer first, and the others a moment later: one that does not answer shall not delay it.
                let pause = Duration::from_millis(self.context.config.limits.header_retry_ms);
                self.peer_check_at = now() + pause;
            }
            FeedItem::Event(FeedEvent::Header(notification)) => match notification.sealed.decode() {
                Ok(sealed) => self.on_header(Arc::new(sealed)).await,
                Err(fault) => {
                    self.refuse(notification.number, notification.hash, "undecodable");
                    tracing::warn!(number = notification.number, %fault, "undecodable header from the feed");
                }
            },
            FeedItem::Event(FeedEvent::Certificate(notification)) => {
                match notification.certificate.decode() {
                    Ok(certificate) => self.on_certificate(certificate),
                    Err(fault) => {
                        self.context.metrics.bad_certificates.increment();
                        tracing::warn!(number = notification.number, %fault, "undecodable certificate from the feed");
                    }
                }
            }
            FeedItem::Event(_) => {}
            FeedItem::Invalid { topic, reason } => {
                tracing::warn!(topic = topic.as_str(), reason, "invalid notification from the feed");
                self.behind = true;
            }
        }
    }

    /// A header from the feed. Ahead of our head it waits; at or below it is known, or a second one.
    async fn on_header(&mut self, sealed: Arc<SealedBatch>) {
        if sealed.claims_l1() {
            // What L1 makes, L1 tells.
            self.l1_at = now();
            return;
        }
        let number = sealed.header.number;
        let head = self.context.tracker.head().number;
        if number <= head {
            self.take_header(&sealed).await;
            return;
        }
        if number > head + MAX_WAITING {
            self.behind = true;
            return;
        }
        if !self.is_signed(&sealed.signed_header()) {
            self.refuse(number, sealed.header.hash(), "wrong_signer");
            return;
        }
        let first = self.waiting.entry(number).or_insert_with(|| Arc::clone(&sealed)).signed_header();
        if first.header != sealed.header {
            self.refuse_second(first, sealed.signed_header()).await;
        }
    }

    fn on_certificate(&mut self, certificate: Certificate) {
        let number = certificate.number;
        let head = self.context.tracker.head().number;
        if number > head + MAX_WAITING {
            self.behind = true;
        } else if number > self.context.tracker.certified().number {
            self.certificates.insert(number, certificate);
        }
    }

    /// Asks L1 now and then for headers that it made. It may take long to answer; what the sequencer sends goes on.
    fn ask_l1(&mut self) {
        let now = now();
        if self.l1_rounds.is_empty() {
            if now >= self.l1_at {
                self.l1_at = now + Duration::from_millis(L1_CHECK_INTERVAL_MS);
                let (way_back, l1) = (Arc::clone(&self.context.way_back), Arc::clone(&self.context.l1));
                self.l1_rounds.spawn(async move { way_back.follow_l1(l1.as_ref()).await });
            }
            self.retry_by(self.l1_at);
        }
    }

    /// The headers that L1 made were taken, from L1 alone. None is acknowledged: nobody asks for it.
    async fn on_l1(&mut self, round: Result<L1Round, JoinError>) {
        let round = joined(round).unwrap_or(Ok(Vec::new()));
        if round.is_ok() {
            self.l1_patience.reset();
        }
        match round {
            Ok(taken) if taken.is_empty() => {}
            Ok(taken) => {
                for (_, applied) in &taken {
                    let number = applied.number;
                    tracing::error!(number, hash = %applied.hash, "L1 made a header: following it");
                    self.acknowledger.forget_from(number);
                }
                // What waits may belong to the branch that L1 ended; what follows L1's headers comes again.
                self.waiting.clear();
                self.certificates.clear();
                let made = taken.last().map_or(0, |(_, applied)| applied.number);
                self.shown.take_if(|shown| shown.made < made);
                // Nor did those fail who could show L1's headers alone, and what gave way may be right now.
                self.pauses.clear();
                self.context.metrics.certified.set(self.context.tracker.certified().number);
                self.behind = true;
                // What follows L1's headers may have come before this round told of them.
                self.acknowledge_again().await;
            }
            Err(refusal) if refusal.next_step() == NextStep::Stop => {
                let lasts = self.l1_patience.failed();
                self.cannot_go_on(&refusal, lasts);
            }
            Err(refusal) => {
                tracing::warn!(%refusal, "what L1 made cannot be taken yet");
                self.behind |= refusal.next_step() == NextStep::CatchUp;
            }
        }
    }

    /// Takes everything that can be taken now.
    async fn advance(&mut self) {
        self.retry_at = None;
        self.ask_l1();
        loop {
            self.take_shown().await;
            self.take_certificates().await;
            let next = self.context.tracker.head().number + 1;
            self.waiting = self.waiting.split_off(&next);
            let Some(sealed) = self.waiting.get(&next).cloned() else {
                self.behind |= !self.waiting.is_empty();
                break;
            };
            match self.take_header(&sealed).await {
                Taken::Done => {}
                Taken::Refused => {
                    self.waiting.remove(&next);
                }
                Taken::Later => {
                    self.retry_in(self.context.config.limits.header_retry_ms);
                    break;
                }
                Taken::CatchUp => {
                    self.behind = true;
                    break;
                }
            }
        }
        self.acknowledge_what_is_owed().await;
        self.vote_late().await;
        self.watch_for_withheld_certificate();
        self.fetch_when_behind();
    }

    /// Tries again what failed for a reason that passes, as long as it stands on our chain.
    async fn acknowledge_what_is_owed(&mut self) {
        let certified = self.context.tracker.certified().number;
        let (due, _) = self.acknowledger.owed(certified);
        for (number, hash) in due {
            match self.context.tracker.store().batch(number).await {
                Ok(Some(record)) if record.hash == hash => self.acknowledge(&record.sealed.header).await,
                Ok(_) => self.acknowledger.settle(number),
                Err(error) => {
                    tracing::error!(number, %error, "the store gave no batch");
                    self.acknowledger.owe(number, hash);
                }
            }
        }
        if let Some(next) = self.acknowledger.owed(certified).1 {
            self.retry_by(next);
        }
    }

    fn retry_in(&mut self, pause_ms: u64) {
        self.retry_by(now() + Duration::from_millis(pause_ms));
    }

    fn retry_by(&mut self, at: Instant) {
        self.retry_at = Some(self.retry_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// A certificate that does not come may be withheld: after a while, ask the others for it.
    fn watch_for_withheld_certificate(&mut self) {
        let tracker = &self.context.tracker;
        let (head, certified) = (tracker.head().number, tracker.certified().number);
        self.context.metrics.certified.set(certified);
        self.certificates = self.certificates.split_off(&(certified + 1));
        if head == certified {
            self.uncertified_since = None;
            return;
        }
        let wait = Duration::from_millis(self.context.config.limits.certificate_wait_ms);
        let since = match self.uncertified_since {
            Some((number, since)) if number == certified => since,
            _ => now(),
        };
        if since.elapsed() >= wait {
            self.behind = true;
            self.ask_peers = true;
            self.uncertified_since = Some((certified, now()));
            self.retry_in(self.context.config.limits.certificate_wait_ms);
        } else {
            self.uncertified_since = Some((certified, since));
            let left = wait.saturating_sub(since.elapsed()).as_millis();
            self.retry_in(u64::try_from(left).unwrap_or(u64::MAX).max(1));
        }
    }

    /// Checks, applies and acknowledges one header.
    async fn take_header(&mut self, sealed: &Arc<SealedBatch>) -> Taken {
        let header = &sealed.header;
        let (number, hash) = (header.number, header.hash());
        if let Some(run) = self.certified_while_waiting(sealed) {
            // Our clock, our acknowledgement, and how many wait for a certificate do not matter any more.
            self.certificates.remove(&run.certificate.number);
            return self.take_certified(&run).await;
        }
        let head = self.context.tracker.head().number;
        // Only ahead: a header may have waited long for a committee that was down, and is still the right one.
        if number == head + 1
            && header.timestamp_ms > self.context.clock.now_ms().saturating_add(CLOCK_SKEW_MS)
        {
            self.refuse(number, hash, "clock_ahead");
            return Taken::Later;
        }
        // What was in flight when the committee went away it may finish; nobody crawls along with old origins.
        let stale = self.origin_is_stale(header);
        if number == head + 1 && stale && self.stale_origins >= MAX_UNCERTIFIED_HEADERS as u64 {
            self.refuse(number, hash, "origin_stale");
            return Taken::Later;
        }
        let started = now();
        match self.context.tracker.apply_sealed(sealed).await {
            Ok(applied) if applied.is_new() => {
                self.patience.reset();
                self.stale_origins = if stale { self.stale_origins.saturating_add(1) } else { 0 };
                self.context.metrics.check_seconds.observe_duration(started.elapsed());
                self.acknowledge(header).await;
                self.shares.prepare(applied.number);
                Taken::Done
            }
            Ok(_) => Taken::Done,
            Err(refusal) => self.refused(refusal, sealed.signed_header()).await,
        }
    }

    /// The run from this header to the first that waits here, too, and that a certificate here names.
    fn certified_while_waiting(&self, sealed: &Arc<SealedBatch>) -> Option<CertifiedRun> {
        let (last, certificate) = self.certificates.range(sealed.header.number..).next()?;
        let mut batches = vec![Arc::clone(sealed)];
        let mut expected = sealed.header.hash();
        for number in sealed.header.number + 1..=*last {
            let next = self.waiting.get(&number).filter(|next| next.header.parent_hash == expected)?;
            expected = next.header.hash();
            batches.push(Arc::clone(next));
        }
        let covers = certificate.header_hash == expected;
        covers.then_some(CertifiedRun { source: Source::Sequencer, batches, certificate: *certificate })
    }

    /// Whether the header's L1 origin is more than W behind our clock. Its time need not be: a sequencer whose time lags
    /// holds back what L1 forces as well (V-9).
    fn origin_is_stale(&self, header: &BatchHeader) -> bool {
        let limit = u64::from(self.context.tracker.config().timing.max_origin_age_seconds);
        let now = self.context.clock.now_ms() / 1_000;
        now > header.l1_origin_time.saturating_add(limit)
    }

    async fn acknowledge(&mut self, header: &BatchHeader) {
        let (number, hash) = (header.number, header.hash());
        match self.acknowledger.acknowledge(header).await {
            Ok(()) => self.acknowledger.settle(number),
            Err(NotAcknowledged::Abstains(Abstains::CatchingUp)) => self.held_back = true,
            Err(NotAcknowledged::Abstains(abstains)) => {
                self.held_back = true;
                self.refuse(number, hash, "abstains");
                tracing::warn!(number, %hash, %abstains, "not acknowledged");
            }
            Err(fault) if fault.retry() => {
                self.acknowledger.owe(number, hash);
                self.refuse(number, hash, fault.as_str());
                tracing::warn!(number, %hash, %fault, "not acknowledged yet; trying again");
            }
            Err(NotAcknowledged::AlreadyAcknowledged { .. }) => {
                self.acknowledger.settle(number);
                self.refuse(number, hash, "already_acknowledged");
                tracing::error!(number, %hash, "not acknowledged: this member acknowledged another header before");
            }
            Err(fault) => {
                self.acknowledger.settle(number);
                self.refuse(number, hash, fault.as_str());
                tracing::warn!(number, %hash, %fault, "not acknowledged");
            }
        }
    }

    async fn refused(&mut self, refusal: TrackerError, offered: SignedHeader) -> Taken {
        let (number, hash) = (offered.header.number, offered.header.hash());
        if let TrackerError::Second { .. } = refusal {
            match self.context.tracker.store().batch(number).await {
                Ok(Some(record)) => self.refuse_second(record.sealed.signed_header(), offered).await,
                // A second genesis: nothing was signed for number 0, so there is no pair.
                Ok(None) => self.refuse(number, hash, "second_header"),
                Err(error) => tracing::error!(number, %error, "the store gave no batch"),
            }
            return Taken::Refused;
        }
        let step = refusal.next_step();
        if step != NextStep::CatchUp {
            self.refuse(number, hash, refusal.as_str());
        }
        match step {
            NextStep::Retry => Taken::Later,
            NextStep::CatchUp => Taken::CatchUp,
            NextStep::Reject => {
                tracing::warn!(number, %hash, %refusal, "header refused");
                Taken::Refused
            }
            NextStep::Stop => {
                self.stuck(&refusal);
                Taken::Later
            }
        }
    }

    /// Notes a fault of ours, or of our L1, that keeps us from going on. One that lasts may be mended by a new start.
    fn stuck(&mut self, refusal: &TrackerError) {
        let lasts = self.patience.failed();
        self.cannot_go_on(refusal, lasts);
    }

    fn cannot_go_on(&self, refusal: &TrackerError, lasts: bool) {
        tracing::error!(%refusal, "cannot go on; trying again");
        self.context.readiness.set_not_ready(FOLLOWING, refusal.to_string());
        // A store that has to be opened anew does not mend itself.
        let hopeless = matches!(refusal, TrackerError::Store(error) if !error.retry());
        if hopeless || lasts {
            self.context.spawner.fail(FOLLOWING, refusal.to_string());
        }
    }

    fn is_signed(&self, header: &SignedHeader) -> bool {
        self.context.tracker.is_signed_header(header)
    }

    /// Keeps the pair of headers and refuses the second. A header that the sequencer did not sign proves nothing, nor do
    /// headers of two sequencers.
    async fn refuse_second(&self, first: SignedHeader, second: SignedHeader) {
        let signed = self.is_signed(&second);
        let proof = self.context.tracker.signed_by_one(&first, &second);
        let origins = (first.header.l1_origin_number, second.header.l1_origin_number);
        let excused = self.context.tracker.excused_by_l1(second.header.number, origins).await;
        let excused = excused.unwrap_or_else(|fault| {
            // Kept: whether L1 excuses it, L1 says in the end.
            tracing::warn!(%fault, "cannot tell whether L1 excuses a second header");
            false
        });
        if proof && !excused {
            self.keep_pair(first, second).await;
        }
        let reason = match (signed, excused) {
            (true, false) => "second_header",
            (true, true) => "replaced_by_l1",
            (false, _) => "wrong_signer",
        };
        self.refuse(second.header.number, second.header.hash(), reason);
    }

    /// Keeps two headers that the sequencer signed for one number, durably, and says so once.
    async fn keep_pair(&self, first: SignedHeader, second: SignedHeader) {
        let number = second.header.number;
        match self.context.evidence.keep(Evidence { first, second }).await {
            Ok(true) => {
                self.context.metrics.second_headers.increment();
                tracing::error!(
                    number,
                    first = %first.header.hash(),
                    second = %second.header.hash(),
                    "the sequencer signed a second header for one number: both are kept as evidence"
                );
            }
            Ok(false) => {}
            Err(error) => tracing::error!(number, %error, "evidence of a second header could not be stored"),
        }
    }

    /// Notes a refusal in status, metrics and at the sequencer, once for each header and reason.
    fn refuse(&self, number: u64, hash: B256, reason: &str) {
        if self.context.refusals.note(number, hash, reason) {
            self.context.metrics.refusals.get(&[reason]).increment();
            self.acknowledger.report(number, hash, reason);
        }
    }

    /// Gives the certificates whose headers are here to the tracker.
    async fn take_certificates(&mut self) {
        let head = self.context.tracker.head().number;
        let ready: Vec<Certificate> =
            self.certificates.range(..=head).map(|(_, certificate)| *certificate).collect();
        for certificate in ready {
            self.take_certificate(&certificate).await;
        }
    }

    async fn take_certificate(&mut self, certificate: &Certificate) {
        let number = certificate.number;
        let own_vote = self.context.check_own_vote(certificate);
        match self.context.tracker.accept_certificate_after(certificate, own_vote).await {
            Ok(outcome) => {
                self.certificates.remove(&number);
                if outcome == CertificateOutcome::Advanced {
                    self.patience.reset();
                    self.context.metrics.certified.set(number);
                }
            }
            Err(refusal) => match refusal.next_step() {
                NextStep::Retry => self.retry_in(self.context.config.limits.header_retry_ms),
                NextStep::CatchUp => {
                    // It comes again with its batch.
                    self.certificates.remove(&number);
                    (self.behind, self.ask_peers) = (true, true);
                }
                NextStep::Reject => {
                    self.certificates.remove(&number);
                    self.context.metrics.bad_certificates.increment();
                    tracing::warn!(number, %refusal, "certificate refused");
                }
                NextStep::Stop => {
                    self.stuck(&refusal);
                    self.retry_in(self.context.config.limits.header_retry_ms);
                }
            },
        }
    }

    /// Takes a run with its certificate, giving up our own headers of its numbers if they are others.
    async fn take_certified(&mut self, run: &CertifiedRun) -> Taken {
        let Some(last) = run.batches.last() else { return Taken::Done };
        let number = last.header.number;
        let mut given_up = None;
        for batch in &run.batches {
            let second = batch.signed_header();
            let ours = match self.context.tracker.store().batch(second.header.number).await {
                Ok(record) => record.filter(|record| record.hash != second.header.hash()),
                Err(error) => {
                    tracing::error!(number = second.header.number, %error, "the store gave no batch");
                    return Taken::Later;
                }
            };
            let Some(ours) = ours else { continue };
            let first = ours.sealed.signed_header();
            given_up = given_up.or(Some((first.header, second.header)));
            if self.context.tracker.signed_by_one(&first, &second) {
                // Before our own header gives way: a kill in between must not lose the proof.
                self.keep_pair(first, second).await;
            }
        }
        let own_vote = self.context.check_own_vote(&run.certificate);
        match self.context.tracker.accept_certified_run_after(&run.batches, &run.certificate, own_vote).await
        {
            Ok((applied, _)) => {
                self.pauses.succeeded(&run.source);
                if let Some((ours, certified)) = given_up {
                    self.context.metrics.followed_other_certificate.increment();
                    self.acknowledger.forget_from(ours.number);
                    tracing::error!(
                        number = ours.number,
                        acknowledged = %ours.hash(),
                        certified = %certified.hash(),
                        "the committee certified another header than the one acknowledged here: following it"
                    );
                }
                for applied in applied.iter().filter(|applied| applied.is_new()) {
                    self.shares.prepare(applied.number);
                }
                Taken::Done
            }
            Err(refusal) => match refusal.next_step() {
                NextStep::Reject => {
                    self.context.metrics.bad_certificates.increment();
                    let (hash, source) = (last.header.hash(), run.source);
                    tracing::warn!(number, %hash, ?source, %refusal, "certified batch refused: asking others");
                    // The same may come again on another way: it fails once.
                    if self.pauses.is_over(&source) {
                        self.pauses.failed(source);
                    }
                    (self.behind, self.ask_peers) = (true, true);
                    Taken::Refused
                }
                _ => self.refused(refusal, last.signed_header()).await,
            },
        }
    }

    /// Begins to fetch what is missing, unless that is under way or was tried a moment ago.
    fn fetch_when_behind(&mut self) {
        if self.sources.has_peers() {
            let now = now();
            if now >= self.peer_check_at {
                (self.behind, self.ask_peers) = (true, true);
                self.peer_check_at = now + Duration::from_millis(self.context.config.limits.peer_check_ms);
            }
            self.retry_by(self.peer_check_at);
            self.fetch_from_peers(now);
        }
        if !self.behind || !self.rounds.is_empty() {
            return;
        }
        if now() < self.fetch_at {
            self.retry_by(self.fetch_at);
            return;
        }
        self.behind = false;
        let wanted = Wanted {
            from: self.context.tracker.certified().number + 1,
            limit: self.context.config.limits.catch_up_batches,
            // Where there is nobody else, it may give what is right next time.
            refused: self.sources.has_peers() && !self.pauses.is_over(&Source::Sequencer),
        };
        self.rounds.spawn(Arc::clone(&self.sources).fetch(wanted));
    }

    /// Begins to ask the other members, beside the sequencer.
    fn fetch_from_peers(&mut self, now: Instant) {
        if !self.ask_peers || !self.peer_rounds.is_empty() {
            return;
        }
        if now < self.peers_at {
            self.retry_by(self.peers_at);
            return;
        }
        self.ask_peers = false;
        // One that keeps back what is certified may keep back what is below it, too.
        let missing = self.shown.as_ref().is_some_and(|shown| shown.certificate.number > self.head());
        let uncertified = (self.silent || missing) && now >= self.held_at;
        if uncertified {
            self.held_at = now + self.held_pauses.pause();
        }
        let left_out = |member: &u16| !self.pauses.is_over(&Source::Member(*member));
        let wanted = WantedOfPeers {
            from: self.context.tracker.certified().number + 1,
            limit: self.context.config.limits.catch_up_batches,
            without: self.sources.members().filter(left_out).collect(),
            uncertified,
        };
        self.peer_rounds.spawn(Arc::clone(&self.sources).fetch_from_peers(wanted));
    }

    async fn on_round(&mut self, round: Result<Round, JoinError>) {
        let before = self.place();
        let round = joined(round).unwrap_or_default();
        let is_new = |served: &ServedBatch| !self.waiting.contains_key(&served.sealed.header.number);
        let news = !round.certified.is_empty() || round.uncertified.iter().any(is_new);
        let untaken = self.take_runs(round.certified).await;
        self.take_served(round.uncertified).await;
        self.silent = round.silent;
        self.ask_peers |= round.withheld;
        // What cannot be taken is not asked for again while somebody else may have it.
        let other_to_ask = self.sources.has_peers() && untaken.as_ref().is_some_and(|run| run.rejected);
        // What was given and has to wait, for L1 that lags for one, would be given again.
        let goes_on = round.more && news && untaken.is_none();
        let stuck = untaken.map(|run| run.reason).or(round.stuck);
        let readiness = &self.context.readiness;
        match &stuck {
            None => readiness.set_ready(FOLLOWING),
            Some(reason) => readiness.set_not_ready(FOLLOWING, reason.as_str()),
        }
        self.behind |= round.more || stuck.is_some();
        // What brought nothing is not tried again at once, unless there is somebody else to ask.
        if self.place() == before && !goes_on && !other_to_ask {
            self.fetch_at = self.after_a_pause();
        }
    }

    async fn on_peer_round(&mut self, round: Result<PeerRound, JoinError>) {
        let before = self.place();
        let round = joined(round).unwrap_or_default();
        let untaken = self.take_runs(round.certified).await;
        self.take_served(round.uncertified).await;
        // Whoever gave something and was slow with the next counts as slow.
        for member in round.failed {
            self.pauses.failed(Source::Member(member));
        }
        if self.place() != before {
            self.held_pauses.reset();
            self.held_at = now();
        }
        // The sequencer may have what follows, or the same once it can be taken.
        self.behind |= self.place() != before || untaken.is_some();
        self.ask_peers |= round.more && untaken.is_none();
        if self.place() == before && !untaken.is_some_and(|run| run.rejected) {
            self.peers_at = self.after_a_pause();
        }
    }

    fn after_a_pause(&self) -> Instant {
        now() + Duration::from_millis(self.context.config.limits.header_retry_ms)
    }

    /// Takes consecutive certified runs, or says which one cannot be taken.
    async fn take_runs(&mut self, runs: Vec<CertifiedRun>) -> Option<Untaken> {
        for run in runs {
            let number = run.certificate.number;
            // The feed may have been faster.
            if number > self.context.tracker.certified().number {
                let rejected = match self.take_certified(&run).await {
                    Taken::Done => continue,
                    taken => matches!(taken, Taken::Refused),
                };
                let reason = format!("certified batch {number} cannot be taken");
                return Some(Untaken { reason, rejected });
            }
        }
        None
    }

    /// Takes what follows the certified head as it comes from the feed.
    async fn take_served(&mut self, batches: Vec<ServedBatch>) {
        for served in batches {
            if let Some(certificate) = served.certificate {
                self.on_certificate(certificate);
            }
            self.on_header(Arc::new(served.sealed)).await;
        }
    }

    fn head(&self) -> u64 {
        self.context.tracker.head().number
    }

    /// Hash of the head, and the newest certified number.
    fn place(&self) -> (B256, u64) {
        (self.context.tracker.head().hash, self.context.tracker.certified().number)
    }
}

/// The topics that a member follows.
pub(crate) const TOPICS: [Topic; 2] = [Topic::Headers, Topic::Certificates];

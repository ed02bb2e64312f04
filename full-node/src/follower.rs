//! Following the sequencer's feed. Nothing of it is believed: every header, certificate and hint is verified, and what
//! does not stand is refused, counted, and fetched elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blindfold_chain::{HintsIntakeError, L1Rounds, NextStep, TrackerError, announce};
use blindfold_protocol::{BatchHints, Canonical, Certificate, SealedBatch};
use blindfold_rpc::types::BlockNotification;
use blindfold_rpc::{Encoded, Feed, FeedConfig, FeedEvent, FeedItem, Topic, Wire};
use blindfold_runtime::{Instant, Patience, joined, now, until};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::hint_fetcher::Wake;
use crate::limits::{MAX_PARKED_ENTRIES, STUCK_EXIT_MS, SYNC_RETRY_MS};
use crate::member_rounds::MemberRounds;
use crate::node::Node;
use crate::sequencer_round::SequencerRound;
use crate::sync::SyncEnd;

pub(crate) struct Follower {
    pub(crate) node: Arc<Node>,
    /// Hints that came before their certificate.
    parked: BTreeMap<u64, BatchHints>,
    poll_interval: Duration,
    /// When to ask the sequencer next, whatever the feed says.
    sync_at: Instant,
    /// Something is missing that a round under way may have passed already.
    again: bool,
    /// The feed began anew after the last round: hints that it would have brought may be at the sequencer.
    missed: bool,
    /// Where the last round ended.
    progress: u64,
    /// The certified head as the loop saw it last.
    certified: u64,
    /// When to ask members beside the sequencer, unless anybody brings something certified before.
    members_at: Instant,
    /// When members are asked next, whatever anybody brings: a sequencer that gives a little now and then keeps no node behind.
    claims_at: Instant,
    /// When to ask L1 next, while the sequencer is asked, for headers that it made.
    l1_at: Instant,
    /// Whether the feed stands and everything it spoke of is taken.
    pub(crate) in_sync: watch::Sender<bool>,
    l1_rounds: L1Rounds,
    pub(crate) sequencer_round: SequencerRound,
    pub(crate) member_rounds: MemberRounds,
    /// The question where a sequencer whose feed began stands, at most one.
    standing: JoinSet<()>,
    /// How long L1 gave no usable answer about the headers that it made. It counts by itself: on a quiet chain nothing else
    /// goes on, and where something else is stuck, a good answer of L1 does not help.
    pub(crate) l1_patience: Patience,
}

impl Follower {
    pub(crate) fn new(node: Arc<Node>, poll_interval_ms: u64, in_sync: watch::Sender<bool>) -> Self {
        let poll_interval = Duration::from_millis(poll_interval_ms);
        let progress = node.tracker.certified().number;
        let next_at = now() + poll_interval;
        let l1_rounds = L1Rounds::new(node.tracker.clone());
        let sequencer_round = SequencerRound::new(Arc::clone(&node));
        let member_rounds = MemberRounds::new(Arc::clone(&node), poll_interval_ms);
        Self {
            node,
            parked: BTreeMap::new(),
            poll_interval,
            sync_at: next_at,
            again: false,
            missed: false,
            progress,
            certified: progress,
            members_at: next_at,
            claims_at: next_at,
            l1_at: next_at,
            in_sync,
            l1_rounds,
            sequencer_round,
            member_rounds,
            standing: JoinSet::new(),
            l1_patience: Patience::new(STUCK_EXIT_MS),
        }
    }

    /// Follows until told to stop.
    pub(crate) async fn run(mut self, feeds: Vec<String>, mut stop: watch::Receiver<bool>) {
        let mut feed = Feed::start_at_any(feeds, Topic::ALL.to_vec(), FeedConfig::default());
        loop {
            self.note_progress();
            let asked = self.sequencer_round.is_under_way();
            let step = async {
                tokio::select! {
                    item = feed.next() => match item {
                        Some(item) => self.item(item).await,
                        None => return false,
                    },
                    answer = self.sequencer_round.answer() => self.on_answer(answer).await,
                    round = self.member_rounds.ended() => self.on_members(round).await,
                    round = self.l1_rounds.ended() => self.on_l1(round),
                    Some(heard) = self.standing.join_next() => {
                        let _ = joined(heard);
                    }
                    () = sleep_until(self.sync_at), if !asked => self.catch_up().await,
                    () = sleep_until(self.members_at), if asked => self.ask_members(),
                    () = sleep_until(self.claims_at) => self.ask_what_members_hold(),
                    () = sleep_until(self.l1_at), if asked => self.ask_l1(),
                }
                true
            };
            // What a step has begun on disk ends by itself; nothing else of it is worth waiting for.
            let goes_on = tokio::select! {
                () = until(&mut stop) => return,
                goes_on = step => goes_on,
            };
            if !goes_on {
                return;
            }
        }
    }

    async fn item(&mut self, item: FeedItem) {
        match item {
            FeedItem::Connected => self.connected(),
            FeedItem::Reconnected => {
                self.node.counters.feed_reconnections.increment();
                self.connected();
            }
            FeedItem::Event(event) => self.event(event).await,
            FeedItem::Invalid { topic, reason } => {
                self.node.counters.invalid_notifications.increment();
                tracing::warn!(
                    topic = topic.as_str(),
                    reason,
                    "the sequencer sent no notification of this topic"
                );
            }
        }
    }

    fn connected(&mut self) {
        (self.again, self.missed, self.sync_at) = (true, true, now());
        self.wake_hint_fetcher(Wake::Missed);
        if self.standing.is_empty() {
            let node = Arc::clone(&self.node);
            self.standing.spawn(async move { node.hear_standing().await });
        }
    }

    async fn event(&mut self, event: FeedEvent) {
        let number = event.number();
        match event {
            FeedEvent::Header(header) => match decoded(&header.sealed) {
                Some(sealed) => self.header(Arc::new(sealed)).await,
                None => self.node.counters.headers_rejected.add("undecodable"),
            },
            FeedEvent::Certificate(notification) => match decoded(&notification.certificate) {
                Some(certificate) => self.certificate(certificate).await,
                None => {
                    self.node.counters.bad_certificates_rejected.add("undecodable");
                    self.soon();
                }
            },
            FeedEvent::Release(notification) => match decoded(&notification.release) {
                Some(release) => self.node.park_release(release),
                None => self.node.counters.bad_releases_rejected.increment(),
            },
            FeedEvent::Hints(notification) => match decoded(&notification.hints) {
                Some(hints) => self.hints(hints).await,
                None => {
                    self.node.counters.bad_hints_rejected.add("undecodable");
                    self.wake_hint_fetcher(Wake::Wrong(number));
                }
            },
            FeedEvent::Block(BlockNotification { number, hash, .. }) => {
                self.node.heard_of_block(number, hash).await
            }
        }
    }

    async fn header(&mut self, sealed: Arc<SealedBatch>) {
        let number = sealed.header.number;
        match self.node.tracker.apply_sealed(&sealed).await {
            Ok(applied) if applied.is_new() => {
                self.node.counters.headers_verified.increment();
                self.node.hub.publish(&announce::header(&sealed, applied.hash, &applied.verdicts));
            }
            Ok(_) => {}
            Err(refusal) => {
                self.node.header_refused(number, &refusal);
                // A second header changes nothing; anything else may be a copy gone bad or something missing.
                if matches!(refusal, TrackerError::Second { .. }) {
                    self.node.differs_from_ours(sealed.signed_header()).await;
                } else {
                    self.soon();
                }
            }
        }
    }

    async fn certificate(&mut self, certificate: Certificate) {
        match self.node.tracker.accept_certificate(&certificate).await {
            Ok(outcome) => {
                self.node.certificate_taken(&certificate, outcome);
                self.take_parked().await;
            }
            Err(refusal) => {
                self.node.certificate_refused(certificate.number, &refusal);
                if certificate.number > self.node.tracker.certified().number {
                    self.soon();
                }
            }
        }
    }

    async fn hints(&mut self, hints: BatchHints) {
        let number = hints.number;
        if number > self.node.tracker.certified().number {
            self.park(hints);
            return;
        }
        match self.node.take_hints(hints.clone()).await {
            Ok(()) => {}
            Err(HintsIntakeError::Wrong { .. }) => self.wake_hint_fetcher(Wake::Wrong(number)),
            Err(refusal) if refusal.retry() => self.park(hints),
            Err(refusal) => tracing::error!(number, %refusal, "hints cannot be taken"),
        }
    }

    /// Hints whose certificate has come meanwhile.
    pub(crate) async fn take_parked(&mut self) {
        let certified = self.node.tracker.certified().number;
        let later = self.parked.split_off(&(certified + 1));
        for (_, hints) in std::mem::replace(&mut self.parked, later) {
            self.hints(hints).await;
        }
    }

    fn park(&mut self, hints: BatchHints) {
        self.parked.insert(hints.number, hints);
        while self.parked.len() > MAX_PARKED_ENTRIES {
            // The oldest are needed first; the newest can be fetched when their turn comes.
            self.parked.pop_last();
        }
    }

    fn wake_hint_fetcher(&self, wake: Wake) {
        // Full only while many wait already; the deadline covers this one, too.
        let _ = self.node.wakes.try_send(wake);
    }

    /// Catches up shortly, unless that is due earlier anyway.
    pub(crate) fn soon(&mut self) {
        self.in_sync.send_replace(false);
        self.again = true;
        self.sync_at = self.sync_at.min(now() + Duration::from_millis(SYNC_RETRY_MS));
    }

    /// Begins to fetch what is missing, beside what follows: from the sequencer, and from members when it does not give it,
    /// or takes its time.
    async fn catch_up(&mut self) {
        self.again = false;
        // What L1 made comes before what the sequencer has in its place.
        self.l1_at = now() + self.poll_interval;
        if let Some(round) = self.l1_rounds.round().await {
            self.on_l1(round);
        }
        self.members_at = self.after_a_step();
        self.sequencer_round.ask(self.node.tracker.certified().number.saturating_add(1));
    }

    /// The round over the sequencer's batches has ended.
    pub(crate) async fn caught_up(&mut self, end: SyncEnd) {
        let certified = self.node.tracker.certified().number;
        let stalled = certified == self.progress;
        self.progress = certified;
        let withheld = matches!(end, SyncEnd::Unavailable | SyncEnd::Rejected);
        if withheld || stalled {
            self.member_rounds.begin(certified);
        }
        self.take_parked().await;
        if std::mem::take(&mut self.missed) {
            self.wake_hint_fetcher(Wake::Missed);
        }
        let retry = Duration::from_millis(SYNC_RETRY_MS);
        let by_clock = if self.again { retry.min(self.poll_interval) } else { self.poll_interval };
        let pause = match end {
            SyncEnd::More if !stalled => Duration::ZERO,
            SyncEnd::More | SyncEnd::Later => retry,
            SyncEnd::Done | SyncEnd::Unavailable | SyncEnd::Rejected => by_clock,
        };
        self.in_sync.send_replace(matches!(end, SyncEnd::Done) && !self.again);
        self.sync_at = now() + pause;
    }

    /// Gives the sequencer its time anew, whoever brought something certified.
    fn note_progress(&mut self) {
        let certified = self.node.tracker.certified().number;
        if certified > self.certified {
            self.certified = certified;
            self.members_at = self.after_a_step();
        }
    }

    /// Asks members beside a sequencer that is slow to bring anything.
    fn ask_members(&mut self) {
        self.member_rounds.begin(self.node.tracker.certified().number);
        self.members_at = self.after_a_step().max(now() + self.poll_interval);
    }

    fn ask_what_members_hold(&mut self) {
        self.member_rounds.begin(self.node.tracker.certified().number);
        self.claims_at = now() + self.poll_interval;
    }

    fn ask_l1(&mut self) {
        self.l1_rounds.begin();
        self.l1_at = now() + self.poll_interval;
    }

    /// When the next is asked beside one that was asked now.
    fn after_a_step(&self) -> Instant {
        now() + self.node.fetcher.hedge().step
    }
}

/// The structure, if the bytes are one.
pub(crate) fn decoded<T: Wire + Canonical>(encoded: &Encoded<T>) -> Option<T> {
    match encoded.decode() {
        Ok(structure) => Some(structure),
        Err(fault) => {
            tracing::warn!(structure = T::NAME, %fault, "what the peer sent does not decode");
            None
        }
    }
}

/// What a refusal means for catching up.
pub(crate) fn end_of(refusal: &TrackerError) -> SyncEnd {
    match refusal.next_step() {
        NextStep::Retry | NextStep::Stop => SyncEnd::Later,
        NextStep::CatchUp => SyncEnd::More,
        NextStep::Reject => SyncEnd::Rejected,
    }
}

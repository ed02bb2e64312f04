//! The steps of the worker that are under way: each runs by itself, and one that failed waits by itself, longer each time
//! and with full jitter, so that a server that comes back, or takes a part only, is not met by everybody at once.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use alloy_primitives::{Address, B256};
use blindfold_runtime::{Backoff, Instant};
use parking_lot::Mutex;
use tokio::task::{Id, JoinError, JoinSet};

use super::worker::RoundError;

/// Steps of one kind at once.
const MAX_CONCURRENT_STEPS: usize = 16;
/// Longest pause before what failed is tried again, in milliseconds.
const MAX_PAUSE_MS: u64 = 30_000;

/// What a step is about; one step about it at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// How far the user's node is.
    Node,
    /// The envelope of this id, which is under way.
    Envelope(B256),
    /// A sender with something to send.
    Sender(Address),
}

/// How far the user's node knows the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The newest batch that it has as certified.
    pub(super) certified: u64,
    /// The chain's generation at that batch.
    pub(super) generation: u16,
}

struct Paused {
    until: Instant,
    pauses: Backoff,
}

/// The steps under way, and those that wait after a failure.
pub(super) struct Steps {
    running: JoinSet<Result<(), RoundError>>,
    subjects: HashMap<Id, Subject>,
    paused: HashMap<Subject, Paused>,
    /// When each was begun last, counted in steps.
    begun: HashMap<Subject, u64>,
    steps: u64,
    pause_ms: u64,
    /// How far the user's node was when it was asked last.
    pub(super) reached: Arc<Mutex<Option<Reached>>>,
}

impl Steps {
    /// The first pause after a failure is `pause_ms`.
    pub(super) fn new(pause_ms: u64) -> Self {
        Self {
            running: JoinSet::new(),
            subjects: HashMap::new(),
            paused: HashMap::new(),
            begun: HashMap::new(),
            steps: 0,
            pause_ms,
            reached: Arc::default(),
        }
    }

    /// Begins a step, unless one about the same is under way or waits, or too many of its kind are under way.
    pub(super) fn begin(
        &mut self,
        subject: Subject,
        now: Instant,
        step: impl Future<Output = Result<(), RoundError>> + Send + 'static,
    ) {
        let kind = std::mem::discriminant(&subject);
        let alike = self.subjects.values().filter(|other| std::mem::discriminant(*other) == kind).count();
        let under_way = self.subjects.values().any(|other| *other == subject);
        let waits = self.paused.get(&subject).is_some_and(|paused| now < paused.until);
        if alike < MAX_CONCURRENT_STEPS && !under_way && !waits {
            let id = self.running.spawn(step).id();
            self.subjects.insert(id, subject);
            self.steps += 1;
            self.begun.insert(subject, self.steps);
        }
    }

    /// Whose turn it is: first what was begun the longest time ago, or never. There may be more than begin in a round.
    pub(super) fn in_turn<T: Copy>(&self, mut all: Vec<T>, subject: impl Fn(T) -> Subject) -> Vec<T> {
        all.sort_by_key(|one| self.begun.get(&subject(*one)).copied().unwrap_or_default());
        all
    }

    /// The next step that ends; `None` while none is under way.
    pub(super) async fn join_next(&mut self) -> Option<Ended> {
        self.running.join_next_with_id().await
    }

    /// Takes note of how a step ended.
    pub(super) fn ended(&mut self, ended: Ended, now: Instant) -> Result<(), RoundError> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(error.into())),
        };
        let Some(subject) = self.subjects.remove(&id) else { return result };
        let told = result.as_ref().err().and_then(RoundError::retry_after);
        match &result {
            Ok(()) => {
                self.paused.remove(&subject);
            }
            // Its sender did all that there was to do; what is tried again is the envelope.
            Err(RoundError::NotSent { envelope, .. }) => {
                if subject != Subject::Envelope(*envelope) {
                    self.paused.remove(&subject);
                }
                self.pause(Subject::Envelope(*envelope), now, told);
            }
            // It did not fail: nothing was tried.
            Err(RoundError::Held { until }) => {
                self.paused(subject, now).until = *until;
                return Ok(());
            }
            Err(_) => self.pause(subject, now, told),
        }
        result
    }

    fn paused(&mut self, subject: Subject, now: Instant) -> &mut Paused {
        let pauses = || Backoff::new(self.pause_ms, MAX_PAUSE_MS).with_full_jitter();
        self.paused.entry(subject).or_insert_with(|| Paused { until: now, pauses: pauses() })
    }

    /// Has it wait, longer than the last time, and not less than it was told.
    fn pause(&mut self, subject: Subject, now: Instant, told: Option<Duration>) {
        let paused = self.paused(subject, now);
        paused.until = now + paused.pauses.pause_after(told);
    }

    /// Forgets the failures of what is over.
    pub(super) fn forget_all_but(&mut self, envelopes: &[B256], senders: &[Address]) {
        let envelopes: HashSet<&B256> = envelopes.iter().collect();
        let senders: HashSet<&Address> = senders.iter().collect();
        let goes_on = |subject: &Subject| match subject {
            Subject::Node => true,
            Subject::Envelope(id) => envelopes.contains(id),
            Subject::Sender(sender) => senders.contains(sender),
        };
        self.paused.retain(|subject, _| goes_on(subject));
        self.begun.retain(|subject, _| goes_on(subject));
    }
}

/// A step's task and its result.
pub(super) type Ended = Result<(Id, Result<(), RoundError>), JoinError>;

#[cfg(test)]
mod tests {
    use blindfold_rpc::{ReceivedError, RpcError};
    use blindfold_runtime::now;

    use super::*;
    use crate::node::NodeError;

    const PAUSE_MS: u64 = 1_000;

    fn sender(n: u8) -> Subject {
        Subject::Sender(Address::repeat_byte(n))
    }

    async fn failing() -> Result<(), RoundError> {
        Err(RoundError::Node(NodeError::Answer { method: "m".to_owned(), answer: "scripted".to_owned() }))
    }

    /// All that failed came again with every round, as often as rounds came.
    #[tokio::test]
    async fn what_failed_waits_longer_each_time() {
        let mut steps = Steps::new(PAUSE_MS);
        let mut now = now();
        let mut tries = 0;
        for _ in 0..240 {
            steps.begin(sender(1), now, failing());
            if !steps.subjects.is_empty() {
                tries += 1;
                let ended = steps.join_next().await.unwrap();
                assert!(steps.ended(ended, now).is_err());
            }
            now += Duration::from_millis(250);
        }
        // A minute: pauses of up to 1, 2, 4 s and so on, and of up to 30 s in the end. Without any it would be 240.
        assert!((4..=40).contains(&tries), "{tries}");
        now += Duration::from_millis(MAX_PAUSE_MS);
        steps.begin(sender(1), now, async { Ok(()) });
        let ended = steps.join_next().await.unwrap();
        assert!(steps.ended(ended, now).is_ok() && steps.paused.is_empty());
    }

    /// A server takes a third of what is tried at first, and refuses the rest: everything gets in, and no envelope is tried
    /// often.
    #[tokio::test]
    async fn three_times_the_capacity_makes_no_storm() {
        const ENVELOPES: u16 = 480;
        const TICK_MS: u64 = 250;
        // Of the 16 that are begun in each tick.
        const CAPACITY_PER_TICK: usize = MAX_CONCURRENT_STEPS / 3;
        let id = |n: u16| B256::left_padding_from(&n.to_be_bytes());
        let mut steps = Steps::new(PAUSE_MS);
        let mut now = now();
        let mut waiting: Vec<B256> = (0..ENVELOPES).map(id).collect();
        let mut tries: HashMap<B256, usize> = HashMap::new();
        let (mut ticks, mut all_tries) = (0, 0);
        while !waiting.is_empty() {
            let mut places = CAPACITY_PER_TICK;
            for envelope in steps.in_turn(waiting.clone(), Subject::Envelope) {
                steps.begin(Subject::Envelope(envelope), now, std::future::pending());
            }
            let begun: Vec<(Id, Subject)> =
                steps.subjects.iter().map(|(id, subject)| (*id, *subject)).collect();
            steps.running.abort_all();
            while steps.join_next().await.is_some() {}
            assert!(begun.len() <= MAX_CONCURRENT_STEPS);
            for (step, subject) in begun {
                let Subject::Envelope(envelope) = subject else { panic!("an envelope") };
                *tries.entry(envelope).or_default() += 1;
                all_tries += 1;
                let refusal = RpcError::busy("pool_full", "later");
                let refused = RoundError::NotSent { envelope, cause: ReceivedError::Refused(refusal) };
                let result = if places == 0 { Err(refused) } else { Ok(()) };
                if result.is_ok() {
                    places -= 1;
                    waiting.retain(|waits| *waits != envelope);
                }
                drop(steps.ended(Ok((step, result)), now));
            }
            steps.forget_all_but(&waiting, &[]);
            now += Duration::from_millis(TICK_MS);
            ticks += 1;
            assert!(ticks < 10_000, "everything gets in");
        }
        let most = tries.values().copied().max().unwrap_or_default();
        assert!(most <= 16, "{most} tries of one envelope");
        let each = f64::from(all_tries) / f64::from(ENVELOPES);
        assert!(each < 3.0, "{each} tries for an envelope");
    }

    /// What a sender's first try left is paused, not tried again with the next round.
    #[tokio::test]
    async fn an_envelope_that_was_refused_at_first_waits_as_any_other() {
        let mut steps = Steps::new(PAUSE_MS);
        let (now, envelope) = (now(), B256::repeat_byte(7));
        steps.begin(sender(1), now, async move {
            let cause = ReceivedError::Refused(RpcError::busy("pool_full", "later"));
            Err(RoundError::NotSent { envelope, cause })
        });
        let ended = steps.join_next().await.unwrap();
        assert!(steps.ended(ended, now).is_err());
        assert_eq!(steps.paused.keys().collect::<Vec<_>>(), [&Subject::Envelope(envelope)]);
        steps.begin(Subject::Envelope(envelope), now, async { panic!("it waits") });
        assert!(steps.subjects.is_empty());
    }

    /// What says when there is room again is not asked before.
    #[tokio::test]
    async fn who_is_told_when_to_come_back_does_not_come_before() {
        const TOLD: Duration = Duration::from_secs(20);
        let mut steps = Steps::new(PAUSE_MS);
        let (now, envelope) = (now(), B256::repeat_byte(7));
        let busy = || ReceivedError::Refused(RpcError::busy("queue_too_long", "later").after(TOLD));
        for (subject, error) in [
            (sender(1), RoundError::NotSent { envelope, cause: busy() }),
            (sender(2), RoundError::Sequencer(busy())),
            (Subject::Node, RoundError::NodeRpc(busy())),
        ] {
            steps.begin(subject, now, async { Err(error) });
            let ended = steps.join_next().await.unwrap();
            assert!(steps.ended(ended, now).is_err());
        }
        for subject in [Subject::Envelope(envelope), sender(2), Subject::Node] {
            let until = steps.paused[&subject].until;
            assert!((now + TOLD..=now + TOLD * 3 / 2).contains(&until), "{subject:?}");
        }
    }

    #[tokio::test]
    async fn a_step_that_hangs_delays_no_other() {
        let mut steps = Steps::new(PAUSE_MS);
        let now = now();
        steps.begin(sender(1), now, std::future::pending());
        steps.begin(sender(1), now, async { panic!("it is under way") });
        steps.begin(sender(2), now, async { Ok(()) });
        let ended = steps.join_next().await.unwrap();
        assert!(steps.ended(ended, now).is_ok());
        assert_eq!(steps.subjects.values().collect::<Vec<_>>(), [&sender(1)]);
        // Only so many of a kind, and another kind is not concerned.
        for n in 2..=100 {
            steps.begin(sender(n), now, std::future::pending());
        }
        assert_eq!(steps.subjects.len(), MAX_CONCURRENT_STEPS);
        steps.begin(Subject::Node, now, std::future::pending());
        assert_eq!(steps.subjects.len(), MAX_CONCURRENT_STEPS + 1);
    }

    /// The first sixteen in the order of their addresses took all places in each round.
    #[tokio::test]
    async fn everybody_has_a_turn() {
        let mut steps = Steps::new(PAUSE_MS);
        let (now, all) = (now(), (1..=3 * MAX_CONCURRENT_STEPS as u8).collect::<Vec<u8>>());
        for _ in 0..3 {
            for n in steps.in_turn(all.clone(), sender) {
                steps.begin(sender(n), now, async { Ok(()) });
            }
            while let Some(ended) = steps.join_next().await {
                steps.ended(ended, now).unwrap();
            }
        }
        assert_eq!(steps.begun.len(), all.len());
        steps.forget_all_but(&[], &[]);
        assert!(steps.begun.is_empty());
    }

    #[tokio::test]
    async fn a_step_that_panics_is_one_that_failed() {
        let mut steps = Steps::new(PAUSE_MS);
        let now = now();
        steps.begin(Subject::Node, now, async { panic!("a bug") });
        let ended = steps.join_next().await.unwrap();
        assert!(matches!(steps.ended(ended, now), Err(RoundError::Step(_))));
        steps.begin(Subject::Node, now, async { Ok(()) });
        assert!(steps.subjects.is_empty(), "it waits");
        steps.forget_all_but(&[], &[]);
        assert_eq!(steps.paused.len(), 1);
    }
}

//! Who may take the places that are kept for peers: whoever shows a signed hello ([`Hello`]) of a party whose key this
//! server knows. And the other side: clients that show one.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, Request};
use blindfold_protocol::{Deployment, Hello, Party, PartyKey, hello::MAX_HELLO_CHARS};
use blindfold_runtime::{Instant, blocking, joined, now, spawn};
use futures::future::BoxFuture;
use tower::{Layer, Service};

use crate::limits::{
    HELLO_PAUSE_MS, HELLO_RENEWAL_MS, HELLO_WAIT_MS, HELLO_WINDOW_MS, MAX_BAD_HELLOS, MAX_HELLOS_PER_PEER,
    MAX_TRACKED_ADDRESSES,
};
use crate::peers::group;

/// The HTTP header with a hello.
pub const HELLO_HEADER: &str = "blindfold-hello";

/// The party whose hello came with a call, in the call's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPeer(pub Party);

type KeyOf = Arc<dyn Fn(Party) -> BoxFuture<'static, Option<PartyKey>> + Send + Sync>;
type Now = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Judges hellos to one server.
#[derive(Clone)]
pub struct Doorkeeper(Arc<Shared>);

struct Shared {
    deployment: Deployment,
    server: Party,
    key_of: KeyOf,
    now_ms: Now,
    judged: Mutex<Judged>,
    /// Signatures are checked one after the other, whatever comes: those from addresses that nobody is known at.
    turn: tokio::sync::Mutex<()>,
    /// The same for those from addresses that a peer has shown a hello from.
    known_turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Judged {
    /// Good ones, oldest first, with the address that showed each first: somebody else who has read it gets nothing.
    good: HashMap<Party, VecDeque<(String, IpAddr)>>,
    /// What addresses showed that proves nothing, or is not verified yet. An IPv6 network is one address, as everywhere.
    doubtful: HashMap<IpAddr, Doubtful>,
}

impl Judged {
    /// Whether a peer has shown a good hello from there.
    fn is_known(&self, of: IpAddr) -> bool {
        self.good.values().flatten().any(|(_, shown_by)| group(*shown_by) == of)
    }
}

/// The hellos of one address that count against it.
struct Doubtful {
    /// How many bad ones it showed since then.
    since: Instant,
    bad: u32,
    /// Those that wait for their turn, and how many calls wait with each.
    waiting: HashMap<String, Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: u32,
    found_bad: bool,
}

impl Doubtful {
    /// Bad ones of the last [`HELLO_PAUSE_MS`].
    fn lately(&self) -> u32 {
        if self.since.elapsed() < Duration::from_millis(HELLO_PAUSE_MS) { self.bad } else { 0 }
    }

    /// How many could be bad, should none of those that wait be good.
    fn at_worst(&self) -> usize {
        self.lately() as usize + self.waiting.values().filter(|waiting| !waiting.found_bad).count()
    }
}

/// A call's place among those whose hello waits for its turn; dropping it gives it up.
struct Place {
    doorkeeper: Doorkeeper,
    group: IpAddr,
    text: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut judged = self.doorkeeper.judged();
        let Some(of_group) = judged.doubtful.get_mut(&self.group) else { return };
        if let Some(waiting) = of_group.waiting.get_mut(&self.text) {
            waiting.calls = waiting.calls.saturating_sub(1);
            if waiting.calls == 0 {
                of_group.waiting.remove(&self.text);
            }
        }
        if of_group.at_worst() == 0 && of_group.waiting.is_empty() {
            judged.doubtful.remove(&self.group);
        }
    }
}

impl Doorkeeper {
    /// For the server of a party. `key_of` says by which key a party is known now, if it is; `now_ms` is the role's
    /// clock, in Unix milliseconds.
    pub fn new(
        deployment: Deployment,
        server: Party,
        key_of: impl Fn(Party) -> BoxFuture<'static, Option<PartyKey>> + Send + Sync + 'static,
        now_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            deployment,
            server,
            key_of: Arc::new(key_of),
            now_ms: Arc::new(now_ms),
            judged: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            known_turn: tokio::sync::Mutex::default(),
        }))
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.0.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls from `address`, if a request's headers prove it. What costs nothing is looked at first, a signature
    /// last, and once for each hello.
    ///
    /// A hello that waits for its turn is judged to the end although its caller hangs up, and counts until then; with
    /// `held`, which bounds the number of those that wait.
    pub(crate) async fn judge(
        &self,
        headers: &HeaderMap,
        address: IpAddr,
        held: impl Send + 'static,
    ) -> Option<Party> {
        let text = headers.get(HELLO_HEADER)?.to_str().ok().filter(|text| text.len() <= MAX_HELLO_CHARS)?;
        let hello: Hello = text.parse().ok()?;
        let age = (self.0.now_ms)().abs_diff(hello.timestamp_ms);
        if age > HELLO_WINDOW_MS {
            return None;
        }
        if let Some(remembered) = self.remembered(hello.peer, text, address) {
            return remembered;
        }
        let place = self.enter(group(address), text)?;
        let doorkeeper = self.clone();
        let judging = spawn(async move {
            let _held = held;
            doorkeeper.judge_in_turn(hello, address, place).await
        });
        joined(judging.await).ok()?
    }

    async fn judge_in_turn(&self, hello: Hello, address: IpAddr, place: Place) -> Option<Party> {
        let key = (self.0.key_of)(hello.peer).await?;
        let turn = if self.judged().is_known(place.group) { &self.0.known_turn } else { &self.0.turn };
        let _turn = tokio::time::timeout(Duration::from_millis(HELLO_WAIT_MS), turn.lock()).await.ok()?;
        if let Some(remembered) = self.remembered(hello.peer, &place.text, address) {
            return remembered;
        }
        if self.was_found_bad(&place) {
            return None;
        }
        let (shared, peer) = (Arc::clone(&self.0), hello.peer);
        let verified = blocking(move || hello.verify(&shared.deployment, shared.server, &key));
        let good = verified.await.ok()?.is_ok();
        let mut judged = self.judged();
        if !good {
            tracing::debug!(%address, %peer, "a hello that proves nothing");
            if let Some(of_group) = judged.doubtful.get_mut(&place.group) {
                of_group.bad = of_group.lately() + 1;
                if of_group.bad == 1 {
                    of_group.since = now();
                }
                if let Some(waiting) = of_group.waiting.get_mut(&place.text) {
                    waiting.found_bad = true;
                }
            }
            return None;
        }
        let kept = judged.good.entry(peer).or_default();
        if kept.len() >= MAX_HELLOS_PER_PEER {
            kept.pop_front();
        }
        kept.push_back((place.text.clone(), address));
        Some(peer)
    }

    /// Lets a hello wait for its turn, unless its address could have shown too many bad ones by then. The same hello
    /// counts once, however many calls show it.
    fn enter(&self, group: IpAddr, text: &str) -> Option<Place> {
        let mut judged = self.judged();
        let crowded = judged.doubtful.len() >= MAX_TRACKED_ADDRESSES && !judged.doubtful.contains_key(&group);
        // Strangers, however many, take no room from where a peer is known to be: of those addresses there are few.
        if crowded && !judged.is_known(group) {
            judged.doubtful.retain(|_, of_group| of_group.lately() > 0 || !of_group.waiting.is_empty());
            if judged.doubtful.len() >= MAX_TRACKED_ADDRESSES {
                return None;
            }
        }
        let of_group = judged.doubtful.entry(group).or_insert_with(|| Doubtful {
            since: now(),
            bad: 0,
            waiting: HashMap::new(),
        });
        if !of_group.waiting.contains_key(text) && of_group.at_worst() >= MAX_BAD_HELLOS as usize {
            return None;
        }
        of_group.waiting.entry(text.to_owned()).or_default().calls += 1;
        Some(Place { doorkeeper: self.clone(), group, text: text.to_owned() })
    }

    /// Whether another call's turn has shown meanwhile that this hello proves nothing.
    fn was_found_bad(&self, place: &Place) -> bool {
        let judged = self.judged();
        let waiting =
            judged.doubtful.get(&place.group).and_then(|of_group| of_group.waiting.get(&place.text));
        waiting.is_some_and(|waiting| waiting.found_bad)
    }

    /// What was found out about a hello before.
    fn remembered(&self, peer: Party, text: &str, address: IpAddr) -> Option<Option<Party>> {
        let judged = self.judged();
        let (_, shown_by) = judged.good.get(&peer)?.iter().find(|(known, _)| known == text)?;
        Some((*shown_by == address).then_some(peer))
    }
}

impl fmt::Debug for Doorkeeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Doorkeeper").field("server", &self.0.server).finish_non_exhaustive()
    }
}

/// How a client shows who it is to one server: a hello, made anew before the last one is too old.
#[derive(Clone)]
pub struct Introduction(Arc<Introducing>);

struct Introducing {
    make: Make,
    kept: Mutex<Kept>,
    /// One asks for a new hello at a time; whoever waits takes that one.
    asking: tokio::sync::Mutex<()>,
}

enum Make {
    Here(Box<dyn Fn() -> Hello + Send + Sync>),
    Elsewhere { party: Party, ask: Box<dyn Fn() -> BoxFuture<'static, Option<Hello>> + Send + Sync> },
}

/// The last hello, and when none was to be had.
#[derive(Default)]
struct Kept {
    hello: Option<(Instant, HeaderValue)>,
    missed: Option<Instant>,
}

impl Kept {
    fn younger_than(&self, ms: u64) -> Option<HeaderValue> {
        let (since, value) = self.hello.as_ref()?;
        (since.elapsed() < Duration::from_millis(ms)).then(|| value.clone())
    }
}

impl Introduction {
    /// `make` signs a hello with the present time and a fresh nonce.
    pub fn new(make: impl Fn() -> Hello + Send + Sync + 'static) -> Self {
        Self::of(Make::Here(Box::new(make)))
    }

    /// The same where the key is in another process: `ask` has it sign a hello of this party, and gives `None` where it cannot
    /// be asked. It ends in time: calls wait for it. Without a hello they are made all the same.
    pub fn from_elsewhere(
        party: Party,
        ask: impl Fn() -> BoxFuture<'static, Option<Hello>> + Send + Sync + 'static,
    ) -> Self {
        Self::of(Make::Elsewhere { party, ask: Box::new(ask) })
    }

    fn of(make: Make) -> Self {
        let (kept, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Introducing { make, kept, asking }))
    }

    /// The party that introduces itself.
    pub(crate) fn party(&self) -> Party {
        match &self.0.make {
            Make::Here(make) => make().peer,
            Make::Elsewhere { party, .. } => *party,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is at hand: a hello that is young enough, or that none is to be had now.
    fn at_hand(&self) -> Option<Option<HeaderValue>> {
        let kept = self.kept();
        if let Some(value) = kept.younger_than(HELLO_RENEWAL_MS) {
            return Some(Some(value));
        }
        let missed = kept.missed?;
        // An older one is good for a while longer.
        (missed.elapsed() < Duration::from_millis(HELLO_PAUSE_MS))
            .then(|| kept.younger_than(HELLO_WINDOW_MS / 2))
    }

    /// The value of the hello header at this moment.
    pub(crate) async fn header(&self) -> Option<HeaderValue> {
        if let Some(at_hand) = self.at_hand() {
            return at_hand;
        }
        let _turn = self.0.asking.lock().await;
        if let Some(at_hand) = self.at_hand() {
            return at_hand;
        }
        let hello = match &self.0.make {
            Make::Here(make) => Some(make()),
            Make::Elsewhere { ask, .. } => ask().await,
        };
        let made = hello.and_then(|hello| HeaderValue::try_from(hello.to_string()).ok());
        let mut kept = self.kept();
        match made {
            Some(value) => {
                *kept = Kept { hello: Some((now(), value.clone())), missed: None };
                Some(value)
            }
            None => {
                kept.missed = Some(now());
                kept.younger_than(HELLO_WINDOW_MS / 2)
            }
        }
    }
}

impl fmt::Debug for Introduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Introduction")
    }
}

impl PartialEq for Introduction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Introduction {}

/// Puts the hello into every request of a client.
#[derive(Clone, Debug)]
pub struct Introduce<S> {
    service: S,
    introduction: Option<Introduction>,
}

/// Puts an [`Introduce`] in front of a client's service.
#[derive(Clone, Debug)]
pub(crate) struct IntroduceLayer(pub(crate) Option<Introduction>);

impl<S> Layer<S> for IntroduceLayer {
    type Service = Introduce<S>;

    fn layer(&self, service: S) -> Introduce<S> {
        Introduce { service, introduction: self.0.clone() }
    }
}

impl<S, B> Service<Request<B>> for Introduce<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(introduction) = self.introduction.clone() else {
            return Box::pin(self.service.call(request));
        };
        // The one that was polled ready goes along.
        let next = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, next);
        Box::pin(async move {
            if let Some(value) = introduction.header().await {
                request.headers_mut().insert(HELLO_HEADER, value);
            }
            service.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        net::Ipv4Addr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use blindfold_protocol::{Address, SigningKey};
    use futures::future::join_all;

    use super::*;

    const NOW_MS: u64 = 1_000_000;
    const SERVER: Party = Party::Member(1);

    fn deployment() -> Deployment {
        Deployment { l1_chain_id: 1, inbox: Address::repeat_byte(7) }
    }

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_bytes(&[byte; 32]).expect("a key")
    }

    /// The sequencer's key is `key(1)`. Counts the hellos that get as far as being verified.
    fn doorkeeper() -> (Doorkeeper, Arc<AtomicUsize>) {
        let judged = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&judged);
        let key_of = move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Box::pin(ready(Some(PartyKey::Address(key(1).address())))) as BoxFuture<'static, _>
        };
        (Doorkeeper::new(deployment(), SERVER, key_of, || NOW_MS), judged)
    }

    fn headers(signed_by: u8, nonce: u8) -> HeaderMap {
        let hello = Hello::of_sequencer(&key(signed_by), &deployment(), SERVER, NOW_MS, [nonce; 16].into());
        let value = HeaderValue::try_from(hello.to_string()).expect("printable");
        HeaderMap::from_iter([(HELLO_HEADER.parse().expect("a name"), value)])
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    async fn all(doorkeeper: &Doorkeeper, shown: &[HeaderMap], from: IpAddr) -> Vec<Option<Party>> {
        join_all(shown.iter().map(|headers| doorkeeper.judge(headers, from, ()))).await
    }

    /// As [`all`], of an unknown address: none is verified before all wait.
    async fn all_at_once(doorkeeper: &Doorkeeper, shown: &[HeaderMap], from: IpAddr) -> Vec<Option<Party>> {
        let busy = doorkeeper.0.turn.lock().await;
        let waiting = || {
            let judged = doorkeeper.judged();
            let of_group = judged.doubtful.get(&from);
            of_group.map_or(0, |of_group| of_group.waiting.values().map(|waiting| waiting.calls).sum::<u32>())
        };
        let release = async {
            while (waiting() as usize) < shown.len() {
                tokio::task::yield_now().await;
            }
            drop(busy);
        };
        tokio::join!(all(doorkeeper, shown, from), release).0
    }

    /// When nothing of what holds this is judged any more.
    async fn end_of(held: Arc<()>) {
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn bad_hellos_that_come_at_once_are_not_all_verified() {
        let (doorkeeper, verified) = doorkeeper();
        let bad: Vec<_> = (0..200).map(|nonce| headers(9, nonce)).collect();
        assert!(all(&doorkeeper, &bad, address(1)).await.iter().all(Option::is_none));
        assert_eq!(verified.load(Ordering::Relaxed), MAX_BAD_HELLOS as usize);
        assert_eq!(doorkeeper.judge(&headers(1, 1), address(1), ()).await, None, "that address has to pause");
        assert_eq!(doorkeeper.judge(&headers(1, 2), address(2), ()).await, Some(Party::Sequencer));
    }

    /// Whoever hung up while his hello was verified gave its place back: it was verified all the same, and counted never.
    #[tokio::test]
    async fn bad_hellos_of_callers_that_hang_up_count_too() {
        let (doorkeeper, verified) = doorkeeper();
        let held = Arc::new(());
        for nonce in 0..200 {
            let shown = headers(9, nonce);
            let judging = doorkeeper.judge(&shown, address(1), Arc::clone(&held));
            tokio::select! {
                biased;
                _ = judging => {}
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(verified.load(Ordering::Relaxed), MAX_BAD_HELLOS as usize);
        end_of(held).await;
        let judged = doorkeeper.judged();
        let counted = judged.doubtful.values().map(|of_group| (of_group.bad, of_group.waiting.len()));
        assert_eq!(counted.collect::<Vec<_>>(), [(MAX_BAD_HELLOS, 0)]);
    }

    #[tokio::test]
    async fn one_hello_on_many_connections_counts_once() {
        let (doorkeeper, _) = doorkeeper();
        let good = vec![headers(1, 1); 32];
        let judged = all_at_once(&doorkeeper, &good, address(1)).await;
        assert!(judged.iter().all(|party| *party == Some(Party::Sequencer)), "{judged:?}");
        assert_eq!(doorkeeper.judged().doubtful.len(), 0);
        let bad = vec![headers(9, 1); 32];
        assert!(all_at_once(&doorkeeper, &bad, address(2)).await.iter().all(Option::is_none));
        let judged = doorkeeper.judged();
        let counted = judged.doubtful.values().map(|of_group| (of_group.bad, of_group.waiting.len()));
        assert_eq!(counted.collect::<Vec<_>>(), [(1, 0)]);
    }

    #[tokio::test]
    async fn a_known_peer_does_not_wait_behind_strangers() {
        let (doorkeeper, _) = doorkeeper();
        assert_eq!(doorkeeper.judge(&headers(1, 1), address(1), ()).await, Some(Party::Sequencer));
        let _busy = doorkeeper.0.turn.lock().await;
        assert_eq!(doorkeeper.judge(&headers(1, 2), address(1), ()).await, Some(Party::Sequencer));
    }

    #[tokio::test]
    async fn a_crowd_of_strangers_keeps_no_known_peer_out() {
        let (doorkeeper, _) = doorkeeper();
        assert_eq!(doorkeeper.judge(&headers(1, 1), address(1), ()).await, Some(Party::Sequencer));
        let stranger = |n: usize| IpAddr::from(Ipv4Addr::from(0x0a00_0000 + n as u32));
        let crowd = (0..MAX_TRACKED_ADDRESSES).map(|n| {
            (
                stranger(n),
                Doubtful {
                    since: now(),
                    bad: 1,
                    waiting: HashMap::from([(String::new(), Waiting::default())]),
                },
            )
        });
        doorkeeper.judged().doubtful.extend(crowd);
        assert_eq!(doorkeeper.judge(&headers(1, 2), address(2), ()).await, None);
        assert_eq!(doorkeeper.judge(&headers(1, 3), address(1), ()).await, Some(Party::Sequencer));
        assert_eq!(doorkeeper.judged().doubtful.len(), MAX_TRACKED_ADDRESSES);
    }

    #[tokio::test]
    async fn who_hangs_up_waiting_leaves_nothing_behind() {
        let (doorkeeper, _) = doorkeeper();
        let busy = doorkeeper.0.turn.lock().await;
        let (shown, held) = (headers(1, 1), Arc::new(()));
        let waiting = doorkeeper.judge(&shown, address(1), Arc::clone(&held));
        assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
        drop(busy);
        end_of(held).await;
        assert_eq!(doorkeeper.judged().doubtful.len(), 0);
    }
}

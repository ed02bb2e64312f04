//! Who may take the places that are kept for peers: whoever shows a signed hello ([`Hello`]) of a party whose key this
//! server knows. And the other side: clients that show one.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderValue, Request};
use blindfold_protocol::{Deployment, Hello, Party, PartyKey, hello::MAX_HELLO_CHARS};
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
    /// Signatures are checked one after the other, whatever comes.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Judged {
    /// Good ones, oldest first, with the address that showed each first: somebody else who has read it gets nothing.
    good: HashMap<Party, VecDeque<(String, IpAddr)>>,
    /// How many bad ones an address showed since then.
    bad: HashMap<IpAddr, (Instant, u32)>,
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
        let (judged, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        let (key_of, now_ms) = (Arc::new(key_of), Arc::new(now_ms));
        Self(Arc::new(Shared { deployment, server, key_of, now_ms, judged, turn }))
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        self.0.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls from `address`, if a request's headers prove it. What costs nothing is looked at first, a signature
    /// last, and once for each hello.
    pub(crate) async fn judge(&self, headers: &HeaderMap, address: IpAddr) -> Option<Party> {
        let text = headers.get(HELLO_HEADER)?.to_str().ok().filter(|text| text.len() <= MAX_HELLO_CHARS)?;
        let hello: Hello = text.parse().ok()?;
        let age = (self.0.now_ms)().abs_diff(hello.timestamp_ms);
        if age > HELLO_WINDOW_MS {
            return None;
        }
        if let Some(remembered) = self.remembered(hello.peer, text, address) {
            return remembered;
        }
        let pause = Duration::from_millis(HELLO_PAUSE_MS);
        let tired = |(since, count): &(Instant, u32)| *count >= MAX_BAD_HELLOS && since.elapsed() < pause;
        // As everywhere, an IPv6 network is one caller.
        let group = group(address);
        if self.judged().bad.get(&group).is_some_and(tired) {
            return None;
        }
        let key = (self.0.key_of)(hello.peer).await?;
        let turn = tokio::time::timeout(Duration::from_millis(HELLO_WAIT_MS), self.0.turn.lock());
        let _turn = turn.await.ok()?;
        if let Some(remembered) = self.remembered(hello.peer, text, address) {
            return remembered;
        }
        let (shared, peer) = (Arc::clone(&self.0), hello.peer);
        let verified =
            blindfold_runtime::blocking(move || hello.verify(&shared.deployment, shared.server, &key));
        let good = verified.await.ok()?.is_ok();
        let mut judged = self.judged();
        if !good {
            tracing::debug!(%address, %peer, "a hello that proves nothing");
            if judged.bad.len() >= MAX_TRACKED_ADDRESSES {
                judged.bad.retain(|_, (since, _)| since.elapsed() < pause);
            }
            if judged.bad.len() < MAX_TRACKED_ADDRESSES || judged.bad.contains_key(&group) {
                let (since, count) = judged.bad.entry(group).or_insert((Instant::now(), 0));
                if since.elapsed() >= pause {
                    (*since, *count) = (Instant::now(), 0);
                }
                *count += 1;
            }
            return None;
        }
        let kept = judged.good.entry(peer).or_default();
        if kept.len() >= MAX_HELLOS_PER_PEER {
            kept.pop_front();
        }
        kept.push_back((text.to_owned(), address));
        Some(peer)
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
    make: Box<dyn Fn() -> Hello + Send + Sync>,
    kept: Mutex<Option<(Instant, HeaderValue)>>,
}

impl Introduction {
    /// `make` signs a hello with the present time and a fresh nonce.
    pub fn new(make: impl Fn() -> Hello + Send + Sync + 'static) -> Self {
        Self(Arc::new(Introducing { make: Box::new(make), kept: Mutex::default() }))
    }

    /// The header's value now.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, value)) = &*kept
            && since.elapsed() < Duration::from_millis(HELLO_RENEWAL_MS)
        {
            return Some(value.clone());
        }
        let value = HeaderValue::try_from((self.0.make)().to_string()).ok()?;
        *kept = Some((Instant::now(), value.clone()));
        Some(value)
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

/// Makes [`Introduce`]s.
#[derive(Clone, Debug)]
pub(crate) struct IntroduceLayer(pub(crate) Option<Introduction>);

impl<S> Layer<S> for IntroduceLayer {
    type Service = Introduce<S>;

    fn layer(&self, service: S) -> Introduce<S> {
        Introduce { service, introduction: self.0.clone() }
    }
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Introduce<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(value) = self.introduction.as_ref().and_then(Introduction::header) {
            request.headers_mut().insert(HELLO_HEADER, value);
        }
        self.service.call(request)
    }
}

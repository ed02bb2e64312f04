//! The network: carries calls between roles, late, never or twice as the faults of the moment say.
//!
//! A call is drawn its fate when it is made. Whoever is killed answers nothing any more, and nothing that it had sent
//! and that is still on its way is called back. A partition swallows calls and answers, and breaks the feeds that cross it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use blindfold_rpc::{
    Topic,
    carrier::{Answer, Call, Carrier, NotCarried, Server},
};
use blindfold_runtime::{now, spawn};
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use rand::RngExt;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, sleep_until},
};

use crate::{
    Life, Lives, Role, Trace,
    byzantine::{Byzantine, Said},
    checks::Checks,
    faults::{Fault, Faults},
};

/// Notifications under way to one subscriber.
const NOTIFICATIONS: usize = 1_024;
/// How long a message takes at least and at most while nothing is wrong, in milliseconds.
const DELAY_MS: (u64, u64) = (1, 20);
/// Within so long after a fault is over it is heard of what was lost, in milliseconds.
const HEARD_MS: u64 = 1_000;
/// A subscription is asked for by this method.
const SUBSCRIBE: &str = "blind_subscribe";

/// The network of a run. Clones are the same network.
#[derive(Clone)]
pub struct Net(Arc<Shared>);

struct Shared {
    lives: Lives,
    faults: Faults,
    trace: Trace,
    checks: Checks,
    byzantine: Byzantine,
    rng: Mutex<ChaCha20Rng>,
    servers: Mutex<BTreeMap<SocketAddr, Server>>,
}

/// What becomes of a call.
struct Fate {
    there_ms: u64,
    back_ms: u64,
    request: Loss,
    answer: Loss,
    twice: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    None,
    /// The connection breaks, and the caller hears of it.
    Broken,
    /// Nobody hears of anything before this moment, in milliseconds.
    Silent(u64),
}

/// A call as far as the network reads it.
#[derive(serde::Deserialize)]
struct Request<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Net {
    /// A network in which these roles live and these faults happen.
    pub fn new(
        seed: u64,
        lives: Lives,
        faults: Faults,
        trace: Trace,
        checks: Checks,
        byzantine: Byzantine,
    ) -> Self {
        let (rng, servers) = (Mutex::new(ChaCha20Rng::seed_from_u64(seed)), Mutex::default());
        Self(Arc::new(Shared { lives, faults, trace, checks, byzantine, rng, servers }))
    }

    /// Whether somebody serves there.
    pub fn is_bound(&self, role: Role) -> bool {
        self.0.servers.lock().contains_key(&role.addr())
    }

    fn fate(&self, from: Role, to: Role) -> Fate {
        let mut rng = self.0.rng.lock();
        let now_ms = self.0.trace.elapsed_ms();
        let (mut most_ms, mut requests, mut answers, mut twice, mut until_ms) = (DELAY_MS.1, 0, 0, 0, now_ms);
        self.0.faults.each(|fault, to_ms| match fault {
            Fault::Slow { at, up_to_ms } if at.is_none_or(|at| at == from || at == to) => {
                most_ms = most_ms.max((*up_to_ms).min(to_ms.saturating_sub(now_ms)));
            }
            Fault::Loss { at, requests_permille, answers_permille, twice_permille }
                if at.is_none_or(|at| at == from || at == to) =>
            {
                requests = requests.max(*requests_permille);
                answers = answers.max(*answers_permille);
                twice = twice.max(*twice_permille);
                until_ms = until_ms.max(to_ms);
            }
            _ => {}
        });
        let mut loss = |permille: u32| match rng.random_range(0..1_000) < permille {
            false => Loss::None,
            true if rng.random() => Loss::Broken,
            true => Loss::Silent(until_ms + rng.random_range(0..=HEARD_MS)),
        };
        let (request, answer) = (loss(requests), loss(answers));
        let twice = rng.random_range(0..1_000) < twice;
        let mut delay_ms = || rng.random_range(DELAY_MS.0..=most_ms);
        Fate { there_ms: delay_ms(), back_ms: delay_ms(), request, answer, twice }
    }

    fn lie(&self, from: Role, request: &str) -> Said {
        let Ok(Request { method, params }) = serde_json::from_str::<Request<'_>>(request) else {
            return Said::default();
        };
        self.0.byzantine.call(from, method, params.map_or("[]", RawValue::get))
    }

    fn sends(&self, from: Role, to: Role, request: &str) {
        let Ok(Request { method, params }) = serde_json::from_str::<Request<'_>>(request) else { return };
        let params = params.map_or("[]", RawValue::get);
        self.0.checks.sent(from, method, params);
        let shown = if params.len() > 24 { "[…]" } else { params };
        self.0.trace.event(from, format_args!("asks {to} {method} {shown}"));
    }

    fn delay(&self, from: Role, to: Role) -> Duration {
        Duration::from_millis(self.fate(from, to).there_ms)
    }

    /// What is lost because these two are parted now.
    fn parted(&self, one: Role, other: Role) -> Loss {
        let mut until_ms = None;
        self.0.faults.each(|fault, to_ms| match fault {
            Fault::Partition { roles } if roles.contains(&one) != roles.contains(&other) => {
                until_ms = until_ms.max(Some(to_ms));
            }
            _ => {}
        });
        match until_ms {
            Some(until_ms) => Loss::Silent(until_ms + self.0.rng.lock().random_range(0..=HEARD_MS)),
            None => Loss::None,
        }
    }

    async fn lose(&self, what: &str, from: Role, to: Role, loss: Loss) -> Result<Answer, NotCarried> {
        self.0.trace.event(from, format_args!("{what} to {to} is lost"));
        if let Loss::Silent(until_ms) = loss {
            sleep(Duration::from_millis(until_ms.saturating_sub(self.0.trace.elapsed_ms()))).await;
        }
        Err(NotCarried("the connection broke"))
    }

    async fn carry(
        self,
        caller: Life,
        addr: SocketAddr,
        call: Call,
        fate: Fate,
    ) -> Result<Answer, NotCarried> {
        let from = caller.role;
        let Some(to) = self.0.lives.at(addr).map(|life| life.role) else {
            return Err(NotCarried("no such host"));
        };
        let request: Request<'_> =
            serde_json::from_str(&call.request).map_err(|_| NotCarried("no JSON-RPC request"))?;
        sleep(Duration::from_millis(fate.there_ms)).await;
        for loss in [self.parted(from, to), fate.request] {
            if loss != Loss::None {
                return self.lose("a call", from, to, loss).await;
            }
        }
        let server = self.0.servers.lock().get(&addr).cloned();
        let (Some(server), Some(life)) = (server, self.0.lives.at(addr)) else {
            return Err(NotCarried("nobody listens"));
        };
        if fate.twice {
            self.0.trace.event(from, format_args!("{} reaches {to} twice", request.method));
            let (again, server, life) = (call.clone(), server.clone(), life.clone());
            let pause = self.delay(from, to);
            spawn(async move {
                sleep(pause).await;
                tokio::select! {
                    biased;
                    () = life.over() => {}
                    _ = server.answer(&again, from.addr()) => {}
                }
            });
        }
        let answered = tokio::select! {
            biased;
            () = life.over() => return Err(NotCarried("the connection broke")),
            answered = server.answer(&call, from.addr()) => answered,
        };
        let mut answer = answered?;
        let params = request.params.map_or("[]", RawValue::get);
        if request.method == SUBSCRIBE {
            self.0.trace.event(to, format_args!("feeds {from} {params}"));
        } else {
            if let Some(lie) = self.0.byzantine.answer(to, from, request.method, params, &answer.response) {
                answer.response = lie;
            }
            self.0.checks.answered(to, request.method, params, answer.response.get());
            let digest = alloy_primitives::keccak256(answer.response.get());
            let digest = alloy_primitives::hex::encode(&digest[..4]);
            self.0.trace.event(to, format_args!("answers {from} {} {digest}", request.method));
        }
        if fate.answer != Loss::None {
            return self.lose("an answer", to, from, fate.answer).await;
        }
        sleep(Duration::from_millis(fate.back_ms)).await;
        let loss = self.parted(from, to);
        if loss != Loss::None {
            return self.lose("an answer", to, from, loss).await;
        }
        if request.method == SUBSCRIBE {
            let topic = Topic::ALL.into_iter().find(|topic| params.contains(topic.as_str()));
            let (sender, notifications) = mpsc::channel(NOTIFICATIONS);
            let feed = std::mem::replace(&mut answer.notifications, notifications);
            let server = answer.server.clone();
            spawn(self.clone().feed(Feed { from: life, to: caller, topic, server }, feed, sender));
        }
        Ok(answer)
    }

    /// Carries the notifications of one subscription in order until one of the two is no more, or is cut off.
    async fn feed(
        self,
        ends: Feed,
        mut feed: mpsc::Receiver<Box<RawValue>>,
        sender: mpsc::Sender<Box<RawValue>>,
    ) {
        let Feed { from, to, topic, mut server } = ends;
        let mut on_the_way = VecDeque::new();
        let mut last = now();
        loop {
            let due = on_the_way.front().map_or(last, |(due, _)| *due);
            tokio::select! {
                biased;
                () = from.over() => return,
                () = to.over() => return,
                () = sender.closed() => return,
                Err(_) = server.changed() => return,
                () = sleep_until(due), if !on_the_way.is_empty() => {
                    let Some((_, notification)) = on_the_way.pop_front() else { continue };
                    if self.parted(from.role, to.role) != Loss::None {
                        self.0.trace.event(from.role, format_args!("the feed to {} breaks", to.role));
                        return;
                    }
                    if sender.try_send(notification).is_err() {
                        return;
                    }
                }
                notification = feed.recv() => {
                    let Some(notification) = notification else { return };
                    let notification = match topic {
                        Some(topic) => {
                            let lie = self.0.byzantine.notification(from.role, to.role, topic, &notification);
                            lie.unwrap_or(notification)
                        }
                        None => notification,
                    };
                    if let Some(topic) = topic {
                        let seen = self.0.checks.notified(from.role, topic, notification.get());
                        self.0.trace.event(from.role, format_args!("tells {} {seen}", to.role));
                    }
                    last = last.max(now() + self.delay(from.role, to.role));
                    on_the_way.push_back((last, notification));
                }
            }
        }
    }
}

/// Both ends of a subscription.
struct Feed {
    from: Life,
    to: Life,
    topic: Option<Topic>,
    server: watch::Receiver<()>,
}

impl Carrier for Net {
    fn bind(&self, addr: SocketAddr, server: Server) -> io::Result<()> {
        match self.0.servers.lock().entry(addr) {
            std::collections::btree_map::Entry::Occupied(_) => Err(io::ErrorKind::AddrInUse.into()),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(server);
                Ok(())
            }
        }
    }

    fn unbind(&self, addr: SocketAddr) {
        self.0.servers.lock().remove(&addr);
    }

    fn call(&self, mut call: Call) -> BoxFuture<'static, Result<Answer, NotCarried>> {
        let net = self.clone();
        async move {
            let Some((caller, addr)) = net.0.lives.of_url(&call.url) else {
                return Err(NotCarried("no such host"));
            };
            caller.check().await;
            let to = net.0.lives.at(addr).map_or(Role::World, |life| life.role);
            let said = net.lie(caller.role, &call.request);
            if let Some(lie) = said.instead {
                call.request = lie;
            }
            net.sends(caller.role, to, &call.request);
            if let Some(also) = said.also {
                net.sends(caller.role, to, &also);
                let call = Call { request: also, ..call.clone() };
                let fate = net.fate(caller.role, to);
                spawn(net.clone().carry(caller.clone(), addr, call, fate).map(|_| ()));
            }
            let fate = net.fate(caller.role, to);
            net.carry(caller, addr, call, fate).await
        }
        .boxed()
    }
}

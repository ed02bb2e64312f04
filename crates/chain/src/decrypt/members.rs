//! Asking the members: t at first, another for each that fails, all of them after a while.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use blindfold_protocol::{Certificate, ReleaseShare, SingletonShare};
use blindfold_rpc::jsonrpsee::core::ClientError;
use blindfold_rpc::{CommitteeApiClient, Encoded, HttpClient, ReceivedError};
use blindfold_runtime::{Backoff, Instant, now};
use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::sleep_until;

use crate::limits::MAX_SHARE_PAUSE_MS;

/// Who wants to know how the members do.
pub trait MemberWatch: Send + Sync {
    /// A member gave something wrong.
    fn faulty(&self, member: u16);

    /// A call to a member brought nothing usable; it may be made again.
    fn failed(&self, member: u16);
}

/// How members are asked.
#[derive(Clone, Copy, Debug)]
pub struct MemberLimits {
    /// How long the first t members may take before the others are asked, too.
    pub hedge: Duration,
    /// How long members that are away, or cannot give a share yet, are asked again; nobody is where it is zero.
    pub wait: Duration,
    /// The same for singleton shares: whoever is asked for them has given shares of the batch, and what opening it cost
    /// would be lost.
    pub singleton_wait: Duration,
    /// First pause before a member that did not answer, or could not yet, is asked again; it grows.
    pub retry: Duration,
}

/// Why a member gave nothing usable, and will not for this request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MemberError {
    #[error("refused: {0}")]
    Refused(String),
    #[error("gave none in time: {0}")]
    Late(String),
    #[error("sent something that does not decode: {0}")]
    Undecodable(String),
}

/// How a member did lately; the better ones are asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    faulty: bool,
    failed_last: bool,
}

/// The members, as those who give shares.
pub struct ShareMembers {
    clients: BTreeMap<u16, HttpClient>,
    standing: Mutex<BTreeMap<u16, Standing>>,
    limits: MemberLimits,
    watch: Arc<dyn MemberWatch>,
}

impl ShareMembers {
    /// Asks through `clients`, by index of the member; their time-outs bound each call.
    pub fn new(
        clients: BTreeMap<u16, HttpClient>,
        limits: MemberLimits,
        watch: Arc<dyn MemberWatch>,
    ) -> Self {
        Self { clients, standing: Mutex::default(), limits, watch }
    }

    /// Members 1..=n of an epoch that have a client, the most promising first. `spread` rotates equals, so that load
    /// spreads over the members.
    fn order(&self, members: u16, spread: u64) -> VecDeque<u16> {
        let standing = self.standing.lock();
        let mut order: Vec<u16> = self.clients.keys().copied().filter(|member| *member <= members).collect();
        if let Ok(shift) = usize::try_from(spread % order.len().max(1) as u64) {
            order.rotate_left(shift);
        }
        order.sort_by_key(|member| standing.get(member).copied().unwrap_or_default());
        order.into()
    }

    /// A member gave something wrong: it is asked last from now on.
    pub(super) fn faulty(&self, member: u16, number: u64, what: &str) {
        self.standing.lock().entry(member).or_default().faulty = true;
        self.watch.faulty(member);
        tracing::error!(member, number, what, "a member is faulty; going on with others");
    }

    /// Asks for shares of a batch, of members that are not `held` already.
    pub(super) fn shares<'a>(
        &'a self,
        number: u64,
        certificate: &'a Certificate,
        members: u16,
        first: usize,
        held: impl Fn(u16) -> bool,
    ) -> Answers<'a, ReleaseShare> {
        let until = now() + self.limits.wait;
        let ask = move |member| {
            self.until_answered(member, until, move |client: HttpClient| async move {
                client.get_share(number, Encoded::new(certificate)).await.map(|answer| answer.decode())
            })
        };
        let mut order = self.order(members, number);
        order.retain(|member| !held(*member));
        Answers::new(self, Box::new(ask), order, first)
    }

    /// Asks for singleton shares of one item.
    pub(super) fn singletons(
        &self,
        number: u64,
        index: u32,
        members: u16,
        first: usize,
    ) -> Answers<'_, SingletonShare> {
        let until = now() + self.limits.singleton_wait;
        let ask = move |member| {
            self.until_answered(member, until, move |client: HttpClient| async move {
                client.get_singleton(number, index).await.map(|answer| answer.decode())
            })
        };
        let spread = number.wrapping_add(u64::from(index));
        Answers::new(self, Box::new(ask), self.order(members, spread), first)
    }

    /// Calls until there is an answer or a refusal for good. A member that is away or not so far yet is asked again until
    /// the time is over.
    fn until_answered<'a, T, E, F, Fut>(&'a self, member: u16, until: Instant, call: F) -> Ask<'a, T>
    where
        T: Send + 'a,
        E: std::fmt::Display + Send + 'a,
        F: Fn(HttpClient) -> Fut + Send + Sync + 'a,
        Fut: Future<Output = Result<Result<T, E>, ClientError>> + Send + 'a,
    {
        Box::pin(async move {
            let Some(client) = self.clients.get(&member) else {
                return Err(MemberError::Refused("no address is configured".to_owned()));
            };
            let retry_ms = u64::try_from(self.limits.retry.as_millis()).unwrap_or(u64::MAX);
            let mut pauses = Backoff::new(retry_ms, MAX_SHARE_PAUSE_MS);
            loop {
                match call(client.clone()).await {
                    Ok(Ok(answer)) => {
                        self.standing.lock().entry(member).or_default().failed_last = false;
                        return Ok(answer);
                    }
                    Ok(Err(fault)) => {
                        self.failed(member);
                        return Err(MemberError::Undecodable(fault.to_string()));
                    }
                    Err(error) => {
                        self.failed(member);
                        let error = ReceivedError::from(error);
                        if !error.retry() {
                            return Err(MemberError::Refused(error.to_string()));
                        }
                        let pause = pauses.pause();
                        if now() + pause >= until {
                            return Err(MemberError::Late(error.to_string()));
                        }
                        tracing::debug!(member, %error, "no share yet; asking again");
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        })
    }

    /// A call to a member brought nothing usable: it is asked after those that did better.
    pub(super) fn failed(&self, member: u16) {
        self.late(member);
        self.watch.failed(member);
    }

    /// A member lets us wait: it is asked after the others until it has answered again.
    fn late(&self, member: u16) {
        self.standing.lock().entry(member).or_default().failed_last = true;
    }
}

type Ask<'a, T> = Pin<Box<dyn Future<Output = Result<T, MemberError>> + Send + 'a>>;
type Asking<'a, T> = Pin<Box<dyn Future<Output = (u16, Result<T, MemberError>)> + Send + 'a>>;

/// Answers of members as they come.
pub(super) struct Answers<'a, T> {
    members: &'a ShareMembers,
    ask: Box<dyn Fn(u16) -> Ask<'a, T> + Send + Sync + 'a>,
    running: FuturesUnordered<Asking<'a, T>>,
    /// Who has not answered yet.
    awaited: BTreeSet<u16>,
    /// What came while nobody waited for it.
    come: VecDeque<(u16, Result<T, MemberError>)>,
    rest: VecDeque<u16>,
    hedge_at: Instant,
}

impl<'a, T: Send + 'a> Answers<'a, T> {
    fn new(
        members: &'a ShareMembers,
        ask: Box<dyn Fn(u16) -> Ask<'a, T> + Send + Sync + 'a>,
        order: VecDeque<u16>,
        first: usize,
    ) -> Self {
        let mut answers = Self {
            members,
            ask,
            running: FuturesUnordered::new(),
            awaited: BTreeSet::new(),
            come: VecDeque::new(),
            rest: order,
            hedge_at: now() + members.limits.hedge,
        };
        for _ in 0..first {
            answers.ask_another();
        }
        answers
    }

    /// Asks the next member, if there is one that was not asked.
    pub(super) fn ask_another(&mut self) {
        if let Some(member) = self.rest.pop_front() {
            let answer = (self.ask)(member);
            self.awaited.insert(member);
            self.running.push(Box::pin(async move { (member, answer.await) }));
        }
    }

    /// The next answer; `None` when everybody asked has answered and nobody is left. After the hedge delay everybody is
    /// asked.
    pub(super) async fn next(&mut self) -> Option<(u16, Result<T, MemberError>)> {
        loop {
            if let Some((member, answer)) = self.come.pop_front() {
                self.awaited.remove(&member);
                return Some((member, answer));
            }
            if self.running.is_empty() {
                if self.rest.is_empty() {
                    return None;
                }
                self.ask_another();
            }
            tokio::select! {
                biased;
                answer = self.running.next() => self.come.extend(answer),
                () = sleep_until(self.hedge_at), if !self.rest.is_empty() => {
                    // Else one that never answers, and is given up each time, would delay each batch by as much.
                    self.awaited.iter().for_each(|member| self.members.late(*member));
                    while !self.rest.is_empty() {
                        self.ask_another();
                    }
                }
            }
        }
    }

    /// Waits for work on what came. The members are listened to meanwhile: it may take longer than their answers may.
    pub(super) async fn meanwhile<W: Future>(&mut self, work: W) -> W::Output {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(answer) = self.running.next() => self.come.push_back(answer),
            }
        }
    }
}

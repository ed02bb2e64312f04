//! Asking the members: t at first, another for each that fails, all of them after a while.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use blindfold_protocol::{Certificate, Party, ReleaseShare, SingletonShare};
use blindfold_rpc::{
    ClientBuildError, ClientConfig, CommitteeApiClient, Encoded, HttpClient, ReceivedError, http_client,
};
use blindfold_runtime::{Backoff, Instant, now};
use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::sleep_until;

use crate::{
    HintPublisherConfig, HintPublisherMetrics, introduce::Introductions, metrics::member_label,
    status::SharedStatus,
};

/// Longest pause before a member, or the sequencer, is called again, in milliseconds.
pub(crate) const MAX_PAUSE_MS: u64 = 5_000;

/// Why a member gave nothing usable, and will not for this request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemberFault {
    #[error("refused: {0}")]
    Refused(String),
    #[error("sent something that does not decode: {0}")]
    Undecodable(String),
}

/// How a member did lately; the better ones are asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    lied: bool,
    failed_last: bool,
}

/// Clients of all members.
pub(crate) struct Members {
    clients: BTreeMap<u16, HttpClient>,
    standing: Mutex<BTreeMap<u16, Standing>>,
    hedge: Duration,
    wait: Duration,
    retry_ms: u64,
    metrics: HintPublisherMetrics,
    status: Arc<SharedStatus>,
}

impl Members {
    pub(crate) fn new(
        config: &HintPublisherConfig,
        introductions: &Introductions,
        metrics: HintPublisherMetrics,
        status: Arc<SharedStatus>,
    ) -> Result<Self, ClientBuildError> {
        let request_timeout_ms = config.limits.member_timeout_ms;
        let client =
            |member| ClientConfig { request_timeout_ms, ..introductions.client(Party::Member(member)) };
        let clients = config
            .members
            .iter()
            .map(|entry| Ok((entry.member, http_client(&entry.url, &client(entry.member))?)))
            .collect::<Result<_, ClientBuildError>>()?;
        Ok(Self {
            clients,
            standing: Mutex::default(),
            hedge: Duration::from_millis(config.limits.hedge_ms),
            wait: Duration::from_millis(config.limits.members_wait_ms),
            retry_ms: config.limits.member_retry_ms,
            metrics,
            status,
        })
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

    /// Says which member lied, everywhere.
    pub(crate) fn name_liar(&self, member: u16, number: u64, what: &str) {
        self.standing.lock().entry(member).or_default().lied = true;
        self.metrics.lying_members.get(&[member_label(member)]).increment();
        self.status.update(|status| *status.lying_members.entry(member).or_default() += 1);
        tracing::error!(member, number, what, "a member lied; going on with others");
    }

    /// Asks for shares of a batch.
    pub(crate) fn shares<'a>(
        &'a self,
        number: u64,
        certificate: &'a Certificate,
        members: u16,
        first: usize,
    ) -> Answers<'a, ReleaseShare> {
        let ask = move |member| {
            self.until_answered(member, move |client: HttpClient| async move {
                client.get_share(number, Encoded::new(certificate)).await.map(|answer| answer.decode())
            })
        };
        Answers::new(Box::new(ask), self.order(members, number), first, (self.hedge, self.wait))
    }

    /// Asks for singleton shares of one item.
    pub(crate) fn singletons(
        &self,
        number: u64,
        index: u32,
        members: u16,
        first: usize,
    ) -> Answers<'_, SingletonShare> {
        let ask = move |member| {
            self.until_answered(member, move |client: HttpClient| async move {
                client.get_singleton(number, index).await.map(|answer| answer.decode())
            })
        };
        let spread = number.wrapping_add(u64::from(index));
        Answers::new(Box::new(ask), self.order(members, spread), first, (self.hedge, self.wait))
    }

    /// Calls until there is an answer or a refusal for good. A member that is away or not so far yet is asked again
    /// for as long as somebody waits for it ([`Answers::next`]).
    fn until_answered<'a, T, E, F, Fut>(&'a self, member: u16, call: F) -> Ask<'a, T>
    where
        T: Send + 'a,
        E: std::fmt::Display + Send + 'a,
        F: Fn(HttpClient) -> Fut + Send + Sync + 'a,
        Fut: Future<Output = Result<Result<T, E>, blindfold_rpc::jsonrpsee::core::ClientError>> + Send + 'a,
    {
        Box::pin(async move {
            let Some(client) = self.clients.get(&member) else {
                return Err(MemberFault::Refused("no address is configured".to_owned()));
            };
            let mut pauses = Backoff::new(self.retry_ms, MAX_PAUSE_MS);
            loop {
                match call(client.clone()).await {
                    Ok(Ok(answer)) => {
                        self.standing.lock().entry(member).or_default().failed_last = false;
                        return Ok(answer);
                    }
                    Ok(Err(fault)) => {
                        self.failed(member);
                        return Err(MemberFault::Undecodable(fault.to_string()));
                    }
                    Err(error) => {
                        self.failed(member);
                        let error = ReceivedError::from(error);
                        if !error.retry() {
                            return Err(MemberFault::Refused(error.to_string()));
                        }
                        tracing::debug!(member, %error, "no share yet; asking again");
                        tokio::time::sleep(pauses.pause()).await;
                    }
                }
            }
        })
    }

    fn failed(&self, member: u16) {
        self.standing.lock().entry(member).or_default().failed_last = true;
        self.metrics.member_failures.get(&[member_label(member)]).increment();
    }
}

type Ask<'a, T> = Pin<Box<dyn Future<Output = Result<T, MemberFault>> + Send + 'a>>;
type Asking<'a, T> = Pin<Box<dyn Future<Output = (u16, Result<T, MemberFault>)> + Send + 'a>>;

/// Answers of members as they come.
pub(crate) struct Answers<'a, T> {
    ask: Box<dyn Fn(u16) -> Ask<'a, T> + Send + Sync + 'a>,
    running: FuturesUnordered<Asking<'a, T>>,
    rest: VecDeque<u16>,
    hedge_at: Instant,
    until: Instant,
}

impl<'a, T: Send + 'a> Answers<'a, T> {
    fn new(
        ask: Box<dyn Fn(u16) -> Ask<'a, T> + Send + Sync + 'a>,
        order: VecDeque<u16>,
        first: usize,
        (hedge, wait): (Duration, Duration),
    ) -> Self {
        let (hedge_at, until) = (now() + hedge, now() + wait);
        let mut answers = Self { ask, running: FuturesUnordered::new(), rest: order, hedge_at, until };
        for _ in 0..first {
            answers.ask_another();
        }
        answers
    }

    /// Asks the next member, if there is one that was not asked.
    pub(crate) fn ask_another(&mut self) {
        if let Some(member) = self.rest.pop_front() {
            let answer = (self.ask)(member);
            self.running.push(Box::pin(async move { (member, answer.await) }));
        }
    }

    /// The next answer; `None` when everybody asked has answered and nobody is left. Members that are away keep it
    /// waiting, until the wait is over. After the hedge delay everybody is asked.
    pub(crate) async fn next(&mut self) -> Option<(u16, Result<T, MemberFault>)> {
        loop {
            if self.running.is_empty() {
                if self.rest.is_empty() {
                    return None;
                }
                self.ask_another();
            }
            tokio::select! {
                biased;
                answer = self.running.next() => if answer.is_some() { return answer },
                () = sleep_until(self.hedge_at), if !self.rest.is_empty() => {
                    while !self.rest.is_empty() {
                        self.ask_another();
                    }
                }
                () = sleep_until(self.until) => return None,
            }
        }
    }
}

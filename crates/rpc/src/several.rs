//! Calls to servers that stand for one another, of which one leads.
//!
//! The server that answered last is asked first. When a call fails at the connection, or the server stands by, the next
//! one is asked at once; when there is no answer for [`SEVERAL_STEP_MS`], the next one is asked beside it, so that a
//! machine that hangs costs one step and a server that is merely slow still answers. While one hangs, those that stand
//! by are asked again each step: one of them may lead by then.
//!
//! So a call may reach several servers, or one server twice. Every method of [`crate::api`] bears that (J-5).

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use blindfold_runtime::{Instant, now};
use blindfold_telemetry::redact_url;
use futures::{StreamExt, stream::FuturesUnordered};
use jsonrpsee::{
    core::ClientError,
    types::{ErrorObject, ErrorObjectOwned},
};
use tokio::time::sleep_until;

use crate::{RpcError, limits::SEVERAL_STEP_MS, turned_away::turned_away, urls::same_server};

/// The clients of several servers.
pub(crate) struct Several<C> {
    servers: Vec<(String, C)>,
    /// Who is asked first.
    first: AtomicUsize,
}

/// Where one server stands in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Untried,
    Asked,
    StandsBy,
    /// It had no place for the connection.
    Full,
    Silent,
}

/// One call, over as many servers as it takes.
struct Round {
    places: Vec<Place>,
    first: usize,
    /// Whom a server that stands by named, among ours.
    leader: Option<usize>,
    /// Nobody is asked beside another one before this.
    next_at: Instant,
    last: Option<ClientError>,
}

/// No server answered as the one that leads.
#[derive(Debug, thiserror::Error)]
#[error("none of {} answered as the sequencer that leads; the last one: {last}", .tried.join(", "))]
struct NobodyAnswered {
    tried: Vec<String>,
    last: String,
}

impl<C> fmt::Debug for Several<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.servers.iter().map(|(url, _)| redact_url(url))).finish()
    }
}

impl<C> Several<C> {
    /// Clients of servers, by URL; at least one.
    pub(crate) fn new(servers: Vec<(String, C)>) -> Self {
        Self { servers, first: AtomicUsize::new(0) }
    }

    /// Makes a call at whoever leads. `call` is made once for each server that is asked.
    pub(crate) async fn ask<'a, R, F>(&'a self, call: impl Fn(&'a C) -> F) -> Result<R, ClientError>
    where
        F: Future<Output = Result<R, ClientError>>,
    {
        let mut round = Round::new(self.servers.len(), self.first.load(Ordering::Relaxed));
        let mut answers = FuturesUnordered::new();
        loop {
            if let Some(server) = round.next()
                && let Some((_, client)) = self.servers.get(server)
            {
                let answer = call(client);
                answers.push(async move { (server, answer.await) });
                continue;
            }
            let (server, answer) = tokio::select! {
                biased;
                answered = answers.next() => match answered {
                    Some(answered) => answered,
                    None => break,
                },
                () = sleep_until(round.next_at), if round.has_more() => continue,
            };
            let error = match answer {
                Ok(answer) => {
                    self.first.store(server, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            match Failure::of(&error) {
                // The one that leads has refused, or the call is wrong.
                None => {
                    self.first.store(server, Ordering::Relaxed);
                    return Err(error);
                }
                Some(Failure::NoAnswer) => round.failed(server, Place::Silent, error),
                Some(Failure::Full) => round.failed(server, Place::Full, error),
                Some(Failure::StandsBy(leader)) => {
                    round.leader = leader.and_then(|leader| self.place_of(&leader)).or(round.leader);
                    round.failed(server, Place::StandsBy, error);
                }
            }
        }
        self.first.store(round.first_of_next(), Ordering::Relaxed);
        Err(self.nobody(round))
    }

    /// Which of ours is meant. A server says no more than whom of those to ask first.
    fn place_of(&self, url: &str) -> Option<usize> {
        self.servers.iter().position(|(own, _)| same_server(own, url))
    }

    /// A refusal only where each server refused: from one that did not answer, nobody knows what became of the call.
    fn nobody(&self, round: Round) -> ClientError {
        let tried: Vec<String> = self.servers.iter().map(|(url, _)| redact_url(url)).collect();
        let refused = round.places.iter().all(|place| matches!(place, Place::StandsBy | Place::Full));
        match round.last {
            Some(ClientError::Call(object)) if refused => {
                let message = format!("{} (asked: {})", object.message(), tried.join(", "));
                let data = object.data().map(ToOwned::to_owned);
                ClientError::Call(ErrorObject::owned(object.code(), message, data))
            }
            Some(last) if refused && turned_away(&last).is_some() => last,
            last => {
                let said = last.map_or_else(|| "no server is known".to_owned(), |error| error.to_string());
                let shown =
                    |said: String, (url, _): &(String, C)| said.replace(url.as_str(), &redact_url(url));
                let last = self.servers.iter().fold(said, shown);
                ClientError::Transport(Box::new(NobodyAnswered { tried, last }))
            }
        }
    }
}

impl Round {
    fn new(servers: usize, first: usize) -> Self {
        let places = vec![Place::Untried; servers];
        Self { places, first, leader: None, next_at: now(), last: None }
    }

    /// Whom to ask now. The one that is said to lead comes first, then the others in turn; once all were asked and one
    /// keeps silent, those that stand by once more.
    fn next(&mut self) -> Option<usize> {
        let asking = self.is_asking();
        if asking && now() < self.next_at {
            return None;
        }
        let leader = self.leader.filter(|leader| self.places.get(*leader) == Some(&Place::Untried));
        let next = leader.or_else(|| self.in_turn(Place::Untried));
        let next = next.or_else(|| self.in_turn(Place::StandsBy).filter(|_| asking))?;
        *self.places.get_mut(next)? = Place::Asked;
        self.next_at = now() + Duration::from_millis(SEVERAL_STEP_MS);
        Some(next)
    }

    /// The next server that is at this place, from the one that was asked first on.
    fn in_turn(&self, place: Place) -> Option<usize> {
        let mut turn = (0..self.places.len()).map(|step| (self.first + step) % self.places.len());
        turn.find(|server| self.places.get(*server) == Some(&place))
    }

    fn is_asking(&self) -> bool {
        self.places.contains(&Place::Asked)
    }

    /// Whether somebody may be asked beside those who are.
    fn has_more(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Untried | Place::StandsBy))
    }

    fn failed(&mut self, server: usize, place: Place, error: ClientError) {
        if let Some(at) = self.places.get_mut(server) {
            *at = place;
        }
        if self.places.contains(&Place::Untried) {
            self.next_at = now();
        }
        self.last = Some(error);
    }

    /// Whoever stands by may lead soon; of those that keep silent the next in turn is begun with.
    fn first_of_next(&self) -> usize {
        let next = (self.first + 1) % self.places.len().max(1);
        self.places.iter().position(|place| *place == Place::StandsBy).unwrap_or(next)
    }
}

/// Why another server is asked.
enum Failure {
    NoAnswer,
    Full,
    /// It may say who leads.
    StandsBy(Option<Box<str>>),
}

impl Failure {
    fn of(error: &ClientError) -> Option<Self> {
        match error {
            ClientError::Call(object) => standing_by(object).map(Self::StandsBy),
            ClientError::Transport(_) if turned_away(error).is_some() => Some(Self::Full),
            ClientError::Transport(_)
            | ClientError::RestartNeeded(_)
            | ClientError::ParseError(_)
            | ClientError::InvalidRequestId(_)
            | ClientError::RequestTimeout
            | ClientError::ServiceDisconnect => Some(Self::NoAnswer),
            _ => None,
        }
    }
}

fn standing_by(object: &ErrorObjectOwned) -> Option<Option<Box<str>>> {
    let refusal = RpcError::from(object.clone());
    refusal.is_standing_by().then_some(refusal.leader)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::{FutureExt, future::BoxFuture};

    use super::*;
    use crate::ReceivedError;

    type Answer = Result<u64, ClientError>;
    /// Answers its first, second, … call.
    type Script = Box<dyn Fn(usize) -> BoxFuture<'static, Answer>>;

    struct Scripted {
        script: Script,
        calls: AtomicUsize,
    }

    impl Scripted {
        fn call(&self) -> BoxFuture<'static, Answer> {
            (self.script)(self.calls.fetch_add(1, Ordering::Relaxed))
        }
    }

    const STEP: Duration = Duration::from_millis(SEVERAL_STEP_MS);

    fn servers<const N: usize>(scripts: [Script; N]) -> Several<Scripted> {
        let server = |(place, script)| {
            (format!("http://server-{place}"), Scripted { script, calls: AtomicUsize::new(0) })
        };
        Several::new(scripts.into_iter().enumerate().map(server).collect())
    }

    impl Several<Scripted> {
        async fn number(&self) -> Answer {
            self.ask(Scripted::call).await
        }

        fn calls(&self) -> Vec<usize> {
            self.servers.iter().map(|(_, server)| server.calls.load(Ordering::Relaxed)).collect()
        }
    }

    fn leads(number: u64) -> Script {
        Box::new(move |_| ready(Ok(number)).boxed())
    }

    fn dead() -> Script {
        Box::new(|_| ready(Err(ClientError::Transport("connection refused".into()))).boxed())
    }

    fn hangs() -> Script {
        Box::new(|_| pending().boxed())
    }

    fn slow(number: u64, steps: u32) -> Script {
        Box::new(move |_| tokio::time::sleep(STEP * steps).map(move |()| Ok(number)).boxed())
    }

    fn stands_by(leader: Option<&'static str>) -> Script {
        leads_after(usize::MAX, leader)
    }

    /// Stands by for so many calls.
    fn leads_after(calls: usize, leader: Option<&'static str>) -> Script {
        Box::new(move |call| {
            let refusal = || ClientError::Call(RpcError::standing_by(leader).into());
            ready(if call < calls { Err(refusal()) } else { Ok(7) }).boxed()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_costs_a_step_once() {
        let servers = servers([hangs(), leads(5)]);
        let started = now();
        assert_eq!(servers.number().await.unwrap(), 5);
        assert_eq!(started.elapsed(), STEP);
        assert_eq!(servers.number().await.unwrap(), 5);
        assert_eq!((started.elapsed(), servers.calls()), (STEP, vec![1, 2]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_slow_is_waited_for_and_asked_first_again() {
        let servers = servers([slow(5, 3), stands_by(None)]);
        let started = now();
        assert_eq!(servers.number().await.unwrap(), 5);
        assert_eq!((started.elapsed(), servers.calls()[0]), (3 * STEP, 1));
        assert_eq!(servers.number().await.unwrap(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_over_while_another_hangs_is_found() {
        let servers = servers([hangs(), leads_after(3, Some("http://server-0"))]);
        let started = now();
        assert_eq!(servers.number().await.unwrap(), 7);
        assert_eq!((started.elapsed(), servers.calls()), (4 * STEP, vec![1, 4]));
        // While the machine hangs it is named still, and not asked any more.
        assert_eq!(servers.number().await.unwrap(), 7);
        assert_eq!((started.elapsed(), servers.calls()), (4 * STEP, vec![1, 5]));
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_asked_once_where_all_answer_and_the_next_call_begins_at_one_that_stands_by() {
        let servers = servers([dead(), dead(), stands_by(Some("http://server-1"))]);
        let nobody = servers.number().await.unwrap_err().to_string();
        assert!(nobody.contains("http://server-0, http://server-1, http://server-2"), "{nobody}");
        assert_eq!(servers.calls(), [1, 1, 1]);
        assert!(servers.number().await.is_err());
        assert_eq!(servers.calls(), [2, 2, 2]);
        assert_eq!(servers.first.load(Ordering::Relaxed), 2);
    }

    fn full(ms: u64) -> Script {
        Box::new(move |_| {
            let refusal = RpcError::busy("connections_full", "full").after(Duration::from_millis(ms));
            ready(Err(ClientError::Transport(Box::new(refusal)))).boxed()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn one_without_a_place_is_passed_over_and_where_none_has_one_the_caller_hears_when() {
        let one = servers([full(900), leads(5)]);
        assert_eq!((one.number().await.unwrap(), one.calls()), (5, vec![1, 1]));
        let received = |error| ReceivedError::from(error).retry_after();
        let all = servers([stands_by(None), full(900)]).number().await.unwrap_err();
        assert_eq!(received(all), Some(Duration::from_millis(900)));
        // From a dead one nobody knows what became of the call.
        let dead = servers([dead(), full(900)]).number().await.unwrap_err();
        assert_eq!(received(dead), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_ends_the_call_only_where_it_is_the_leaders() {
        let refuses: Script = Box::new(|_| {
            let refusal = RpcError::refused("expired", "too late");
            ready(Err(ClientError::Call(refusal.into()))).boxed()
        });
        let servers = servers([stands_by(None), refuses, leads(1)]);
        let refused = servers.number().await.unwrap_err();
        assert!(refused.to_string().contains("too late"), "{refused}");
        assert_eq!(servers.calls(), [1, 1, 0]);
    }
}

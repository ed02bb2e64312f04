//! The connection that a process's tasks share.

use std::{sync::Arc, time::Duration};

use blindfold_runtime::{Backoff, Spawner, Stop, now, until};
use redis::{Cmd, FromRedisValue, RedisResult, ScriptInvocation, aio::MultiplexedConnection};
use tokio::{sync::watch, time::timeout};

use crate::{RedisError, RedisMetrics, RedisOptions, connection};

/// First and longest pause before a connection is tried again, in milliseconds.
const FIRST_PAUSE_MS: u64 = 50;
const MAX_PAUSE_MS: u64 = 2_000;

/// A Redis server, by one connection that all tasks share. Clones share it.
///
/// A call is answered or fails within the time that the settings give; while there is no connection it fails at once. A call
/// that fails may have been carried out.
///
/// Commands that wait at the server (`BLOCK`) keep all others waiting: they are for a connection of their own, started by
/// another call of [`start`](Self::start).
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

struct Shared {
    options: RedisOptions,
    metrics: RedisMetrics,
    link: watch::Sender<Link>,
    /// The newest connection that somebody found not to answer.
    silent: watch::Sender<u64>,
}

/// What there is of a connection.
#[derive(Clone)]
enum Link {
    /// The first attempt is under way.
    Beginning,
    /// How many there were before it, and the connection.
    Open(u64, MultiplexedConnection),
    Down,
}

impl Redis {
    /// Connects, and goes on to do so as long as these tasks run. Does not wait for the server, which need not be there.
    pub fn start(options: RedisOptions, metrics: RedisMetrics, tasks: &Spawner) -> Self {
        let (link, silent) = (watch::Sender::new(Link::Beginning), watch::Sender::new(0));
        let redis = Self(Arc::new(Shared { options, metrics, link, silent }));
        let (driven, stop) = (redis.clone(), tasks.stop());
        tasks.spawn("redis", async move { driven.drive(stop).await });
        redis
    }

    /// The name of a key, or of anything else at the server, as this deployment calls it.
    pub fn key(&self, name: impl std::fmt::Display) -> String {
        format!("{}:{name}", self.0.options.prefix)
    }

    /// Whether there is a connection.
    pub fn is_up(&self) -> bool {
        matches!(&*self.0.link.borrow(), Link::Open(..))
    }

    /// Resolves when there is a connection.
    pub async fn up(&self) {
        // The sender lives in `self`.
        let _ = self.0.link.subscribe().wait_for(|link| matches!(link, Link::Open(..))).await;
    }

    /// Runs one command. What it gives is input from outside: `T` says what is expected.
    ///
    /// # Errors
    /// [`RedisError::Down`], [`RedisError::Slow`], [`RedisError::Lost`], [`RedisError::Refused`], [`RedisError::Unreadable`].
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        self.within(self.0.options.answer_timeout, async |connection| command.query_async(connection).await)
            .await
    }

    /// The same for a command that waits at the server for so long beside.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn query_waiting<T: FromRedisValue>(
        &self,
        command: &Cmd,
        wait: Duration,
    ) -> Result<T, RedisError> {
        let within = self.0.options.answer_timeout.saturating_add(wait);
        self.within(within, async |connection| command.query_async(connection).await).await
    }

    /// Runs a script, which the server is sent where it does not know it.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, RedisError> {
        self.within(self.0.options.answer_timeout, async |connection| script.invoke_async(connection).await)
            .await
    }

    async fn within<T>(
        &self,
        time: Duration,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, RedisError> {
        let begin = now();
        let result = timeout(time, async {
            let (generation, mut connection) = self.connection().await?;
            Ok((generation, call(&mut connection).await.map_err(|fault| RedisError::of(&fault))))
        });
        let outcome = match result.await {
            Ok(Ok((_, Ok(value)))) => Ok(value),
            Ok(Ok((generation, Err(fault)))) => {
                if matches!(fault, RedisError::Lost { .. }) {
                    self.is_silent(generation);
                }
                Err(fault)
            }
            Ok(Err(fault)) => Err(fault),
            Err(_) => {
                let generation = match &*self.0.link.borrow() {
                    Link::Open(generation, _) => Some(*generation),
                    Link::Beginning | Link::Down => None,
                };
                match generation {
                    Some(generation) => {
                        self.is_silent(generation);
                        Err(RedisError::Slow {
                            within_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
                        })
                    }
                    None => Err(RedisError::Down),
                }
            }
        };
        match &outcome {
            Ok(_) => self.0.metrics.seconds.observe_duration(begin.elapsed()),
            Err(fault) => self.0.metrics.errors.get(&[fault.kind()]).increment(),
        }
        outcome
    }

    /// The connection. Only while the first is being opened there is something to wait for.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        let mut link = self.0.link.subscribe();
        let link = link.wait_for(|link| !matches!(link, Link::Beginning)).await;
        match link.map_err(|_| RedisError::Down)?.clone() {
            Link::Open(generation, connection) => Ok((generation, connection)),
            Link::Beginning | Link::Down => Err(RedisError::Down),
        }
    }

    /// A connection did not answer: it is opened anew, so that nobody else waits for it.
    fn is_silent(&self, generation: u64) {
        self.0.silent.send_if_modified(|silent| {
            let newer = *silent < generation;
            *silent = generation.max(*silent);
            newer
        });
        self.0.link.send_if_modified(|link| {
            let open = matches!(link, Link::Open(open, _) if *open == generation);
            if open {
                *link = Link::Down;
            }
            open
        });
    }

    async fn drive(&self, mut stop: Stop) {
        let shared = &self.0;
        let mut pauses = Backoff::new(FIRST_PAUSE_MS, MAX_PAUSE_MS);
        let (mut generation, mut told) = (0u64, false);
        let mut silent = shared.silent.subscribe();
        loop {
            let opened = tokio::select! {
                biased;
                () = until(&mut stop) => return,
                opened = timeout(shared.options.connect_timeout, connection::open(&shared.options)) => opened,
            };
            let late = RedisError::Lost { reason: "it was not opened in time".to_owned() };
            match opened.unwrap_or(Err(late)) {
                Ok((connection, driver)) => {
                    generation += 1;
                    shared.metrics.connects.increment();
                    shared.metrics.connections.change(1);
                    tracing::info!(url = %shared.options.url, "connected to Redis");
                    let answered = shared.metrics.seconds.count();
                    shared.link.send_replace(Link::Open(generation, connection));
                    let reason = tokio::select! {
                        biased;
                        () = until(&mut stop) => None,
                        () = driver => Some("it was closed"),
                        _ = silent.wait_for(|silent| *silent >= generation) => Some("it did not answer"),
                    };
                    shared.metrics.connections.change(-1);
                    shared.link.send_replace(Link::Down);
                    let Some(reason) = reason else { return };
                    tracing::warn!(url = %shared.options.url, reason, "the connection to Redis is lost; going on without it");
                    told = true;
                    // One that opens and never answers is not tried without end.
                    if shared.metrics.seconds.count() > answered {
                        pauses.reset();
                    }
                }
                Err(fault) => {
                    shared.metrics.errors.get(&[fault.kind()]).increment();
                    if !told {
                        tracing::warn!(url = %shared.options.url, %fault, "Redis cannot be reached; going on without it");
                    }
                    told = true;
                    shared.link.send_replace(Link::Down);
                }
            }
            tokio::select! {
                biased;
                () = until(&mut stop) => return,
                () = tokio::time::sleep(pauses.pause()) => {}
            }
        }
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("options", &self.0.options).finish_non_exhaustive()
    }
}

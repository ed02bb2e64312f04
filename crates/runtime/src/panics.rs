//! Panics: none ends unseen.
//!
//! A panic is a bug, and whoever runs on after it runs on half-changed memory. So it ends the role. Work that is awaited
//! elsewhere than where it runs passes its panic on ([`blocking`], [`joined`]), until it reaches a task that
//! [`Tasks`](crate::Tasks) watches. A process watches over every thread besides: [`watch_panics`].

use std::{
    any::Any,
    fmt,
    panic::{PanicHookInfo, resume_unwind},
    sync::{LazyLock, Once},
    thread,
    time::Duration,
};

use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use crate::{Failure, environment::simulated};

/// Work was cancelled: the runtime ends, or whoever had it gave it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cancelled: the role ends")
    }
}

impl std::error::Error for Cancelled {}

/// Runs work that blocks, or computes for long, off the async threads. Its panic goes on in the caller.
///
/// # Errors
/// When the runtime ends before it.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Cancelled> {
    if simulated() {
        return Ok(work());
    }
    #[expect(clippy::disallowed_methods, reason = "this is where everybody else asks")]
    let task = tokio::task::spawn_blocking(work);
    joined(task.await)
}

/// [`blocking`] as one task among several. What has not begun when the set is dropped never does.
pub fn blocking_among<T: Send + 'static>(tasks: &mut JoinSet<T>, work: impl FnOnce() -> T + Send + 'static) {
    if simulated() {
        tasks.spawn(std::future::ready(work()));
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "this is where everybody else asks")]
    tasks.spawn_blocking(work);
}

/// What a task came to. Its panic goes on in the caller.
///
/// # Errors
/// When it was cancelled.
pub fn joined<T>(ended: Result<T, JoinError>) -> Result<T, Cancelled> {
    ended.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Cancelled,
    })
}

/// The words that a panic was raised with, if they are text.
pub fn panic_words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}

static PANICKED: LazyLock<watch::Sender<Option<Failure>>> = LazyLock::new(|| watch::Sender::new(None));

/// From now on a panic of any thread of this process, after the usual report, resolves [`panicked`]; a process that
/// still runs `limit_ms` later exits with `exit_code`. Only the first call counts.
pub fn watch_panics(limit_ms: u64, exit_code: i32) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            report(info);
            on_panic(info, limit_ms, exit_code);
        }));
    });
}

fn on_panic(info: &PanicHookInfo<'_>, limit_ms: u64, exit_code: i32) {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let words = info.payload_as_str().unwrap_or("without words");
    let failure = Failure { part: "process", cause: format!("panicked at {place}: {words}") };
    let first = PANICKED.send_if_modified(|panicked| {
        let first = panicked.is_none();
        if first {
            *panicked = Some(failure);
        }
        first
    });
    if !first {
        return;
    }
    let end = move || {
        thread::sleep(Duration::from_millis(limit_ms));
        std::process::exit(exit_code);
    };
    if thread::Builder::new().name("after-panic".to_owned()).spawn(end).is_err() {
        std::process::exit(exit_code);
    }
}

/// Waits for a panic anywhere in a process that [watches](watch_panics) for them; for ever when there is none.
pub async fn panicked() -> Failure {
    let mut panicked = PANICKED.subscribe();
    match panicked.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone()) {
        Some(failure) => failure,
        // The sender is static.
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tasks;

    /// Callers took the panic of such work for the end of the runtime, and went on.
    #[tokio::test]
    async fn a_panic_in_blocking_work_is_the_roles_failure() {
        let tasks = Tasks::new();
        tasks.spawn("verifier", async {
            let done: Result<u8, Cancelled> = blocking(|| panic!("a bug in the work")).await;
            assert_eq!(done, Err(Cancelled), "a panic is no end of the runtime");
        });
        let failure = tasks.spawner().failed().await;
        assert_eq!((failure.part, failure.cause.as_str()), ("verifier", "panicked: a bug in the work"));
        assert_eq!(blocking(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_cancelled_task_is_no_bug() {
        let task = crate::spawn(std::future::pending::<()>());
        task.abort();
        assert_eq!(joined(task.await), Err(Cancelled));
    }
}

//! Tasks that are watched: none ends unseen.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
};

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use crate::{Cancelled, panics::panic_words};

/// True once the role is to stop.
pub type Stop = watch::Receiver<bool>;

/// Resolves when the role is to stop, or is gone.
pub async fn until(stop: &mut Stop) {
    // An error means that the sender, and with it the role, is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Why a role ends: one of its parts cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the part that failed.
    pub part: &'static str,
    /// What happened, in words.
    pub cause: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.part, self.cause)
    }
}

impl std::error::Error for Failure {}

type Set = Mutex<JoinSet<()>>;

/// The tasks of a role. Dropping it ends them where they stand, as a kill would.
pub struct Tasks {
    set: Arc<Set>,
    spawner: Spawner,
}

/// A way to more tasks beside those there, and to their failure. Cheap to clone; holding it keeps no task alive.
#[derive(Clone, Debug)]
pub struct Spawner {
    set: Weak<Set>,
    stop: watch::Sender<bool>,
    failure: watch::Sender<Option<Failure>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// A set of tasks that has none yet.
    pub fn new() -> Self {
        Self::with(watch::Sender::new(None))
    }

    /// Tasks that are stopped by themselves, and whose failure is that of these: what serves the others ends after them.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self::with(self.spawner.failure.clone())
    }

    fn with(failure: watch::Sender<Option<Failure>>) -> Self {
        let set = Arc::new(Set::default());
        let spawner = Spawner { set: Arc::downgrade(&set), stop: watch::Sender::new(false), failure };
        Self { set, spawner }
    }

    /// Starts a task, as [`Spawner::spawn`] does.
    pub fn spawn(&self, part: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner.spawn(part, task);
    }

    /// Watches for an end, as [`Spawner::guard`] does.
    pub fn guard(&self, part: &'static str, end: impl Future<Output = String> + Send + 'static) {
        self.spawner.guard(part, end);
    }

    /// A way to spawn and to fail from within tasks.
    pub fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// The signal to stop.
    pub fn stop(&self) -> Stop {
        self.spawner.stop()
    }

    /// Tells the tasks to stop, and does not wait for them.
    pub fn begin_shutdown(&self) {
        self.spawner.stop.send_replace(true);
    }

    /// Tells the tasks to stop and waits until all have ended.
    pub async fn shutdown(&self) {
        self.begin_shutdown();
        self.join().await;
    }

    /// Ends the tasks where they stand, as a kill would, and waits until they are gone.
    pub async fn abort(&self) {
        self.begin_shutdown();
        self.set.lock().abort_all();
        self.join().await;
    }

    async fn join(&self) {
        loop {
            let mut set = std::mem::take(&mut *self.set.lock());
            if set.is_empty() {
                return;
            }
            // How each ended, its wrapper has told.
            while set.join_next().await.is_some() {}
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.begin_shutdown();
        self.set.lock().abort_all();
    }
}

impl Spawner {
    /// Runs a task that is to go on until the role stops: that it ends before, or panics at any time, is a failure of
    /// the role. Once the role is to stop, nothing is spawned any more.
    pub fn spawn(&self, part: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.watch(part, task, true);
    }

    /// Runs a task that may end when it has done its work; that it panics is a failure of the role.
    pub fn run(&self, part: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.watch(part, task, false);
    }

    /// Runs work that goes on to its end although its caller stops waiting: what was begun for somebody who hangs up is
    /// paid for, and not lost. That it panics is a failure of the role.
    ///
    /// # Errors
    /// When the role ends before it.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        part: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Cancelled> {
        let (done, outcome) = oneshot::channel();
        self.run(part, async move {
            // Perhaps nobody waits any more.
            let _ = done.send(work.await);
        });
        outcome.await.map_err(|_| Cancelled)
    }

    /// Watches over a part that runs elsewhere: when `end` resolves before the role stops, that part has failed, and
    /// what it resolves to says why.
    pub fn guard(&self, part: &'static str, end: impl Future<Output = String> + Send + 'static) {
        let (guarding, mut stop) = (self.clone(), self.stop());
        self.run(part, async move {
            tokio::select! {
                biased;
                () = until(&mut stop) => {}
                cause = end => guarding.fail(part, cause),
            }
        });
    }

    fn watch(&self, part: &'static str, task: impl Future<Output = ()> + Send + 'static, lasting: bool) {
        let Some(set) = self.set.upgrade().filter(|_| !self.stopping()) else { return };
        let watching = self.clone();
        let mut set = set.lock();
        // Those that have ended; how, each has told.
        while set.try_join_next().is_some() {}
        set.spawn(async move {
            match AssertUnwindSafe(task).catch_unwind().await {
                Ok(()) if lasting && !watching.stopping() => {
                    watching.fail(part, "ended by itself".to_owned())
                }
                Ok(()) => {}
                Err(panic) => watching.fail(part, format!("panicked: {}", panic_words(panic.as_ref()))),
            }
        });
    }

    /// Gives up: a part cannot go on. The first failure stands.
    pub fn fail(&self, part: &'static str, cause: String) {
        tracing::error!(part, %cause, "a part of this role cannot go on: the role ends");
        self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            if first {
                *failure = Some(Failure { part, cause });
            }
            first
        });
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.borrow().clone()
    }

    /// Waits for a failure; for ever when there is none.
    pub async fn failed(&self) -> Failure {
        let mut failure = self.failure.subscribe();
        // The sender lives in `self`.
        match failure.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone()) {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// The signal to stop.
    pub fn stop(&self) -> Stop {
        self.stop.subscribe()
    }

    /// Whether the role is to stop.
    pub fn stopping(&self) -> bool {
        *self.stop.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(part: &'static str, cause: &str) -> Failure {
        Failure { part, cause: cause.to_owned() }
    }

    #[tokio::test]
    async fn a_task_that_panics_is_the_roles_failure() {
        let tasks = Tasks::new();
        let mut stop = tasks.stop();
        tasks.spawn("steady", async move { until(&mut stop).await });
        tasks.spawn("broken", async { panic!("index {} of {}", 3, 2) });
        assert_eq!(tasks.spawner().failed().await, failure("broken", "panicked: index 3 of 2"));
        tasks.shutdown().await;
        assert_eq!(tasks.spawner().failure(), Some(failure("broken", "panicked: index 3 of 2")));
    }

    #[tokio::test]
    async fn a_task_that_ends_before_the_stop_is_a_failure_and_after_it_is_none() {
        let tasks = Tasks::new();
        let mut stop = tasks.stop();
        tasks.spawn("steady", async move { until(&mut stop).await });
        tasks.spawner().run("work", async {});
        tasks.shutdown().await;
        assert_eq!(tasks.spawner().failure(), None);

        let tasks = Tasks::new();
        tasks.spawn("short", async {});
        assert_eq!(tasks.spawner().failed().await, failure("short", "ended by itself"));
    }

    #[tokio::test]
    async fn work_goes_on_to_its_end_although_nobody_waits_for_it() {
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        assert_eq!(spawner.to_the_end("work", async { 7 }).await, Ok(7));
        let (begun, mut going) = oneshot::channel();
        let (go_on, gate) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let call = spawner.to_the_end("work", async move {
            begun.send(()).expect("the test listens");
            gate.await.expect("the test sends");
            ended.send(()).expect("the test listens");
        });
        tokio::select! {
            biased;
            _ = call => panic!("the gate is shut"),
            begun = &mut going => begun.expect("it began"),
        }
        go_on.send(()).expect("it goes on");
        assert_eq!(end.await, Ok(()));
        tasks.shutdown().await;
        assert_eq!(spawner.to_the_end("late", async {}).await, Err(Cancelled));
    }

    #[tokio::test]
    async fn a_part_that_runs_elsewhere_is_guarded_until_the_stop() {
        let tasks = Tasks::new();
        tasks.guard("store", std::future::pending());
        tasks.shutdown().await;
        assert_eq!(tasks.spawner().failure(), None);

        let tasks = Tasks::new();
        tasks.guard("store", async { "the disk is gone".to_owned() });
        assert_eq!(tasks.spawner().failed().await, failure("store", "the disk is gone"));
    }

    #[tokio::test]
    async fn those_beside_end_later_and_share_the_failure() {
        let tasks = Tasks::new();
        let beside = tasks.beside();
        let mut stop = beside.stop();
        beside.spawn("server", async move { until(&mut stop).await });
        tasks.shutdown().await;
        assert!(!beside.spawner().stopping() && beside.spawner().failure().is_none());
        beside.spawn("broken", async {});
        assert_eq!(tasks.spawner().failed().await.part, "broken");
        beside.shutdown().await;
    }

    #[tokio::test]
    async fn work_that_panics_is_a_failure_too_and_the_first_stands() {
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        spawner.fail("disk", "is full".to_owned());
        spawner.run("work", async { panic!("later") });
        tasks.shutdown().await;
        assert_eq!(spawner.failed().await, failure("disk", "is full"));
    }

    #[tokio::test]
    async fn tasks_spawned_from_tasks_are_joined_and_none_outlives_the_role() {
        let tasks = Tasks::new();
        let (spawner, mut stop) = (tasks.spawner(), tasks.stop());
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        tasks.spawn("parent", async move {
            let (sender, mut of_child) = (sender.clone(), spawner.stop());
            spawner.clone().spawn("child", async move {
                until(&mut of_child).await;
                tokio::task::yield_now().await;
                sender.send(()).expect("the test listens");
            });
            until(&mut stop).await;
        });
        tokio::task::yield_now().await;
        let spawner = tasks.spawner();
        tasks.shutdown().await;
        assert_eq!(receiver.recv().await, Some(()), "the child ended in order");

        let (held, released) = tokio::sync::oneshot::channel::<()>();
        let tasks = Tasks::new();
        tasks.spawn("held", async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        drop(tasks);
        assert!(released.await.is_err(), "dropping the tasks ends them");
        spawner.spawn("late", async { panic!("never runs") });
        assert_eq!(spawner.failure(), None);
    }
}

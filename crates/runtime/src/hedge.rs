//! Asking several peers for the same thing.

use std::{future::Future, pin::pin, time::Duration};

use futures::{Stream, StreamExt, stream::FuturesUnordered};
use tokio::time::sleep_until;

use crate::{Instant, now};

/// Asks one peer first, and the next beside it as soon as one fails or none has answered for a while: a slow one holds
/// nobody up, and while the first one is quick no other is asked.
#[derive(Clone, Copy, Debug)]
pub struct Hedge {
    /// How long after one peer the next is asked.
    pub step: Duration,
    /// How many are asked at a time, and so how many answers are in memory at most.
    pub at_most: usize,
    /// When asking ends, whoever has answered.
    pub deadline: Instant,
}

/// What came of asking one after another.
#[derive(Debug)]
pub struct Hedged<K, T> {
    /// Who answered first, and what.
    pub first: Option<(K, T)>,
    /// Whose answers came to nothing.
    pub failed: Vec<K>,
    /// Who had a whole step, and was overtaken by one that was asked later, or did not answer before the deadline.
    pub slow: Vec<K>,
}

impl Hedge {
    /// Asks these peers in the order in which they come, each by its own future, until one answers.
    pub async fn first<K, T>(
        self,
        peers: impl Stream<Item = (K, impl Future<Output = Option<T>>)>,
    ) -> Hedged<K, T> {
        let mut peers = pin!(peers.fuse());
        let mut answers = FuturesUnordered::new();
        // Who is asked, by place, and since when.
        let mut asked: Vec<(usize, K, Instant)> = Vec::new();
        let mut hedged = Hedged { first: None, failed: Vec::new(), slow: Vec::new() };
        let (mut places, mut next_at, mut more) = (0, now(), true);
        while more || !answers.is_empty() {
            let room = more && answers.len() < self.at_most.max(1);
            let due = answers.is_empty() || now() >= next_at;
            tokio::select! {
                biased;
                Some((place, answer)) = answers.next() => {
                    let Some(at) = asked.iter().position(|(other, ..)| *other == place) else { continue };
                    let (_, peer, _) = asked.remove(at);
                    if let Some(answer) = answer {
                        hedged.first = Some((peer, answer));
                        // Those asked later were not overtaken.
                        asked.truncate(at);
                        break;
                    }
                    hedged.failed.push(peer);
                    next_at = now();
                }
                peer = peers.next(), if room && due => match peer {
                    Some((peer, answer)) => {
                        let (place, now) = (places, now());
                        places += 1;
                        asked.push((place, peer, now));
                        answers.push(async move { (place, answer.await) });
                        next_at = now + self.step;
                    }
                    None => more = false,
                },
                () = sleep_until(next_at), if room && !due => {}
                () = sleep_until(self.deadline) => break,
            }
        }
        let had_a_step = |since: Instant| since.elapsed() >= self.step;
        let slow = asked.into_iter().filter(|(.., since)| had_a_step(*since));
        hedged.slow = slow.map(|(_, peer, _)| peer).collect();
        hedged
    }
}

/// How long after one peer the next is asked. It doubles when none was quick enough, for then the own line may be slow,
/// and asking more of them at a time would make it slower; and it halves when one was.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    step: Duration,
}

impl Pace {
    /// Begins with the shortest step.
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest: longest.max(shortest), step: shortest }
    }

    /// How long after one peer the next is asked now.
    pub const fn step(&self) -> Duration {
        self.step
    }

    /// Somebody gave what was asked for.
    pub fn succeeded(&mut self) {
        self.step = (self.step / 2).max(self.shortest);
    }

    /// Nobody did, before the deadline.
    pub fn failed(&mut self) {
        self.step = self.step.saturating_mul(2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::{FutureExt, future::BoxFuture, stream};
    use tokio::sync::oneshot;

    use super::*;

    const NEVER: Duration = Duration::from_secs(3_000);

    fn hedge(step: Duration, at_most: usize, until: Duration) -> Hedge {
        Hedge { step, at_most, deadline: now() + until }
    }

    fn gives(peer: u16) -> (u16, BoxFuture<'static, Option<u16>>) {
        (peer, ready(Some(peer)).boxed())
    }

    fn fails(peer: u16) -> (u16, BoxFuture<'static, Option<u16>>) {
        (peer, ready(None).boxed())
    }

    fn hangs(peer: u16) -> (u16, BoxFuture<'static, Option<u16>>) {
        (peer, pending().boxed())
    }

    #[tokio::test]
    async fn while_the_first_is_quick_no_other_is_asked() {
        let peers = stream::iter([gives(1), gives(2)]).inspect(|(peer, _)| assert_eq!(*peer, 1));
        let hedged = hedge(NEVER, 4, NEVER).first(peers).await;
        assert_eq!((hedged.first, hedged.slow.len()), (Some((1, 1)), 0));
    }

    #[tokio::test]
    async fn who_fails_gives_way_at_once() {
        let peers = stream::iter([hangs(1), fails(2), gives(3), gives(4)]);
        // The second is asked after the first has had its step, and the third after the second has failed.
        let hedged = hedge(Duration::from_millis(5), 4, NEVER).first(peers).await;
        assert_eq!((hedged.first, hedged.failed), (Some((3, 3)), vec![2]));
        let hedged = hedge(NEVER, 4, NEVER).first(stream::iter([fails(1), fails(2), gives(3)])).await;
        assert_eq!((hedged.first, hedged.failed, hedged.slow), (Some((3, 3)), vec![1, 2], vec![]));
    }

    #[tokio::test]
    async fn who_is_overtaken_is_slow_and_who_was_asked_later_is_not() {
        let (asked, third_is_asked) = oneshot::channel();
        let second = (2, third_is_asked.map(Result::ok).boxed());
        let third = async move {
            asked.send(2).ok()?;
            pending().await
        };
        let peers = stream::iter([hangs(1), second, (3, third.boxed())]);
        let hedged = hedge(Duration::from_millis(5), 4, NEVER).first(peers).await;
        assert_eq!((hedged.first, hedged.failed, hedged.slow), (Some((2, 2)), vec![], vec![1]));
    }

    #[tokio::test]
    async fn so_many_are_asked_at_a_time_and_until_the_deadline() {
        let step = Duration::from_millis(1);
        let peers = || stream::iter([hangs(1), hangs(2), gives(3)]);
        let hedged = hedge(step, 2, Duration::from_millis(50)).first(peers()).await;
        assert_eq!((hedged.first, hedged.failed, hedged.slow), (None, vec![], vec![1, 2]));
        assert_eq!(hedge(step, 3, NEVER).first(peers()).await.first, Some((3, 3)));
        let nobody = stream::empty::<(u16, BoxFuture<'static, Option<u16>>)>();
        assert!(hedge(step, 2, NEVER).first(nobody).await.first.is_none());
    }

    #[test]
    fn a_step_doubles_while_nobody_is_quick_enough() {
        let mut pace = Pace::new(Duration::from_millis(1_000), Duration::from_millis(3_000));
        let mut steps = Vec::new();
        for success in [false, false, true, true, true] {
            steps.push(pace.step().as_millis());
            if success { pace.succeeded() } else { pace.failed() }
        }
        assert_eq!(steps, [1_000, 2_000, 3_000, 1_500, 1_000]);
    }
}

//! Which of its servers a feed asks next, and when: each once before there is a pause, and none before the time that it told
//! (J-8).

use std::time::Duration;

use blindfold_runtime::{Backoff, Instant, now};

/// The servers of one feed.
pub(super) struct Round {
    places: Vec<Place>,
    /// How much later than it is told one comes back.
    late: Backoff,
}

#[derive(Clone, Copy)]
struct Place {
    /// Since the last pause.
    tried: bool,
    not_before: Instant,
}

impl Round {
    /// So many servers, none of them tried yet.
    pub(super) fn new(servers: usize) -> Self {
        let place = Place { tried: false, not_before: now() };
        Self { places: vec![place; servers], late: Backoff::new(1, 1) }
    }

    /// The others have not been tried for long.
    pub(super) fn begin_again(&mut self) {
        self.places.iter_mut().for_each(|place| place.tried = false);
    }

    /// A server gave no feed, or its feed was lost; it may have told when to come back.
    pub(super) fn lost(&mut self, server: usize, told: Option<Duration>) {
        let Some(place) = self.places.get_mut(server) else { return };
        place.tried = true;
        if let Some(told) = told {
            place.not_before = now() + self.late.pause_after(Some(told));
        }
    }

    /// Whom to ask after this one, and whether there is a pause before: the one that is said to lead, then the others in turn,
    /// but for those that want to be left alone, as long as there is another.
    pub(super) fn next(&mut self, last: usize, leader: Option<usize>) -> (usize, bool) {
        let servers = self.places.len();
        let turn: Vec<(usize, Place)> = leader
            .into_iter()
            .chain((1..=servers).map(|step| (last + step) % servers))
            .filter_map(|server| self.places.get(server).map(|place| (server, *place)))
            .collect();
        let now = now();
        let mut free = turn.iter().filter(|(_, place)| place.not_before <= now);
        if let Some((server, _)) = free.clone().find(|(_, place)| !place.tried) {
            return (*server, false);
        }
        let soonest = turn.iter().min_by_key(|(_, place)| place.not_before);
        let server = free.next().or(soonest).map_or(last, |(server, _)| *server);
        self.begin_again();
        (server, true)
    }

    /// How long this one wants to be left alone.
    pub(super) fn left(&self, server: usize) -> Duration {
        let until = self.places.get(server).map(|place| place.not_before);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_tried_once_before_a_pause_and_the_leader_first() {
        let mut round = Round::new(3);
        round.lost(0, None);
        assert_eq!(round.next(0, Some(2)), (2, false));
        round.lost(2, None);
        assert_eq!(round.next(2, Some(0)), (1, false));
        round.lost(1, None);
        assert_eq!(round.next(1, Some(0)), (0, true));
        round.lost(0, None);
        assert_eq!(round.next(0, None), (1, false));
        round.lost(1, None);
        round.begin_again();
        round.lost(1, None);
        assert_eq!(round.next(1, None), (2, false));
        let mut alone = Round::new(1);
        alone.lost(0, None);
        assert_eq!((alone.next(0, Some(0)), alone.left(0)), ((0, true), Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_to_be_left_alone_is_while_there_are_others() {
        let told = Duration::from_secs(30);
        let mut round = Round::new(2);
        round.lost(0, Some(told));
        assert!((told..=told * 3 / 2).contains(&round.left(0)));
        assert_eq!(round.next(0, None), (1, false));
        for _ in 0..3 {
            round.lost(1, None);
            assert_eq!(round.next(1, Some(0)), (1, true), "even if it is said to lead");
        }
        round.lost(1, Some(told * 2));
        assert_eq!(round.next(1, None), (0, true), "none is left: whoever comes first");
        assert!(round.left(0) >= told);
        advance(told * 3 / 2).await;
        assert_eq!((round.next(1, None).0, round.left(0)), (0, Duration::ZERO));
    }
}

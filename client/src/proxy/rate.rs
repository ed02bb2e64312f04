//! How many envelopes are offered to the sequencer in an interval. While it takes them all there is no limit. Once it says that
//! it is busy, half as many are offered, and each one that it takes makes room for a little more: many proxies share what
//! it can take without telling each other, and a backlog of whatever length makes no more calls than a short one.

use std::time::Duration;

use blindfold_runtime::Instant;

/// With so many in an interval there is no limit any more.
const NO_LIMIT: f64 = 256.0;

/// The limit, and what was offered in the interval under way and in the one before.
pub(super) struct SendRate {
    interval: Duration,
    began: Instant,
    offered: u32,
    /// In the interval before: refusals come after it as well.
    offered_before: u32,
    /// Whether the limit was lowered in this interval: what it is was offered before that was known.
    lowered: bool,
    /// None while the sequencer takes everything.
    most: Option<f64>,
}

impl SendRate {
    /// Without a limit.
    pub(super) fn new(interval_ms: u64, now: Instant) -> Self {
        let interval = Duration::from_millis(interval_ms);
        Self { interval, began: now, offered: 0, offered_before: 0, lowered: false, most: None }
    }

    /// Counts one that is about to be offered.
    ///
    /// # Errors
    /// When the next interval begins, where this one has no room.
    pub(super) fn offer(&mut self, now: Instant) -> Result<(), Instant> {
        if now >= self.began + self.interval {
            self.offered_before = self.offered;
            (self.began, self.offered, self.lowered) = (now, 0, false);
        }
        if self.most.is_some_and(|most| f64::from(self.offered) + 1.0 > most) {
            return Err(self.began + self.interval);
        }
        self.offered += 1;
        Ok(())
    }

    /// The sequencer took one.
    pub(super) fn taken(&mut self) {
        let more = self.most.map(|most| most + 1.0 / most);
        self.most = more.filter(|most| *most < NO_LIMIT);
    }

    /// The sequencer is busy, or gave no answer.
    pub(super) fn refused(&mut self) {
        if !self.lowered {
            self.lowered = true;
            let most = self.most.unwrap_or_else(|| f64::from(self.offered.max(self.offered_before)));
            self.most = Some((most / 2.0).max(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use blindfold_runtime::now;

    use super::*;

    const INTERVAL_MS: u64 = 250;

    fn offers(rate: &mut SendRate, at: Instant) -> u32 {
        (0..1_000).filter(|_| rate.offer(at).is_ok()).count() as u32
    }

    #[test]
    fn there_is_no_limit_until_the_sequencer_is_busy_and_none_when_it_is_not_any_more() {
        let mut now = now();
        let mut rate = SendRate::new(INTERVAL_MS, now);
        assert_eq!(offers(&mut rate, now), 1_000);
        for _ in 0..600 {
            rate.refused();
        }
        now += Duration::from_millis(INTERVAL_MS);
        assert_eq!(offers(&mut rate, now), 500, "half, however many were refused");
        assert_eq!(rate.offer(now), Err(now + Duration::from_millis(INTERVAL_MS)));
        for _ in 0..20 {
            rate.refused();
            now += Duration::from_millis(INTERVAL_MS);
            rate.offer(now).expect("one is always offered, or nobody would see that it is over");
        }
        for _ in 0..300 {
            now += Duration::from_millis(INTERVAL_MS);
            for _ in 0..offers(&mut rate, now) {
                rate.taken();
            }
        }
        assert_eq!(rate.most, None);
    }

    /// What was refused, and not what came meanwhile, is halved.
    #[test]
    fn a_refusal_that_comes_in_the_next_interval_halves_what_was_offered_in_its_own() {
        let mut now = now();
        let mut rate = SendRate::new(INTERVAL_MS, now);
        for _ in 0..16 {
            rate.offer(now).expect("no limit");
        }
        now += Duration::from_millis(INTERVAL_MS);
        rate.offer(now).expect("no limit");
        for _ in 0..16 {
            rate.refused();
        }
        now += Duration::from_millis(INTERVAL_MS);
        assert_eq!(offers(&mut rate, now), 8);
    }

    /// 25 proxies with a backlog that never ends, at a server that takes a third of what they begin with.
    #[test]
    fn proxies_at_a_server_that_is_too_slow_offer_about_what_it_takes() {
        const PROXIES: u32 = 25;
        const WANTED: u32 = 12;
        const CAPACITY: u32 = PROXIES * WANTED / 3;
        let mut now = now();
        let mut rates: Vec<SendRate> = (0..PROXIES).map(|_| SendRate::new(INTERVAL_MS, now)).collect();
        let (mut offered, mut taken) = (Vec::new(), Vec::new());
        for round in 0..400_usize {
            now += Duration::from_millis(INTERVAL_MS);
            // Whoever comes first is served first, and nobody always is.
            let begin = round % rates.len();
            let (mut all, mut places) = (0, CAPACITY);
            for turn in 0..rates.len() {
                let rate = &mut rates[(begin + turn) % PROXIES as usize];
                for _ in 0..WANTED {
                    if rate.offer(now).is_err() {
                        break;
                    }
                    all += 1;
                    if places == 0 {
                        rate.refused();
                    } else {
                        places -= 1;
                        rate.taken();
                    }
                }
            }
            offered.push(all);
            taken.push(CAPACITY - places);
        }
        assert!(offered[0] > CAPACITY, "more is offered at first than there is room for: {}", offered[0]);
        let settled =
            |values: &[u32]| f64::from(values[40..].iter().sum::<u32>()) / (values.len() - 40) as f64;
        let (offered_each, taken_each) = (settled(&offered), settled(&taken));
        assert!(offered_each < 1.4 * f64::from(CAPACITY), "{offered_each} offered of {CAPACITY}");
        assert!(taken_each > 0.7 * f64::from(CAPACITY), "{taken_each} taken of {CAPACITY}");
        let most = offered[40..].iter().max().copied().unwrap_or_default();
        assert!(most < 2 * CAPACITY, "no wave comes up to what they began with: {most}");
    }
}

//! A bound on log lines, so that whoever can provoke one cannot fill the disk with them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use blindfold_runtime::{Instant, now};
use tracing::{Event, Level, Metadata, Subscriber, callsite::Identifier};
use tracing_subscriber::{Layer, layer::Context};

/// Warnings and errors that one place in the program writes in a [`LINE_WINDOW_SECONDS`].
pub const MAX_LINES_PER_WINDOW: u32 = 30;
/// The same for `info`: ten lines a second, more than any place writes while nobody provokes it.
pub const MAX_INFO_LINES_PER_WINDOW: u32 = 600;
/// How long the lines of a place are counted together, in seconds.
pub const LINE_WINDOW_SECONDS: u64 = 60;

/// Lets each place in the program write at most [`MAX_LINES_PER_WINDOW`] warnings or errors, or
/// [`MAX_INFO_LINES_PER_WINDOW`] lines of `info`, in a window. What it suppresses is counted, and told with the first
/// line of any level after the window. Places are a fixed set, so memory and lines are bounded whatever comes in.
/// `debug` and `trace` are not bounded: who asks for them wants to see every line.
#[derive(Debug)]
pub(crate) struct LineLimit {
    window: Duration,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    counts: HashMap<Identifier, Count>,
    /// When the earliest window of which lines were suppressed is over.
    tell_at: Option<Instant>,
}

#[derive(Debug)]
struct Count {
    began: Instant,
    written: u32,
    suppressed: u64,
    metadata: &'static Metadata<'static>,
}

/// How many lines of a place were suppressed.
#[derive(Debug, PartialEq, Eq)]
struct Suppressed {
    target: &'static str,
    line: u32,
    lines: u64,
}

impl LineLimit {
    pub(crate) fn new(window: Duration) -> Self {
        Self { window, places: Mutex::default() }
    }

    /// Whether a line may be written now.
    fn admit(&self, metadata: &'static Metadata<'static>, now: Instant) -> bool {
        let max_lines = match *metadata.level() {
            Level::ERROR | Level::WARN => MAX_LINES_PER_WINDOW,
            Level::INFO => MAX_INFO_LINES_PER_WINDOW,
            Level::DEBUG | Level::TRACE => return true,
        };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Count { began: now, written: 0, suppressed: 0, metadata };
        let count = places.counts.entry(metadata.callsite()).or_insert(fresh);
        // What was suppressed is told first.
        if count.suppressed == 0 && now.duration_since(count.began) >= self.window {
            (count.began, count.written) = (now, 0);
        }
        if count.written < max_lines {
            count.written += 1;
            return true;
        }
        count.suppressed += 1;
        let over = count.began + self.window;
        places.tell_at = Some(places.tell_at.map_or(over, |at| at.min(over)));
        false
    }

    /// What was suppressed in windows that are over; those places begin anew.
    fn over(&self, now: Instant) -> Vec<Suppressed> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.tell_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let mut suppressed = Vec::new();
        let mut next = None;
        for count in places.counts.values_mut().filter(|count| count.suppressed > 0) {
            let over = count.began + self.window;
            if now < over {
                next = Some(next.map_or(over, |at: Instant| at.min(over)));
                continue;
            }
            let (target, line) = (count.metadata.target(), count.metadata.line().unwrap_or_default());
            suppressed.push(Suppressed { target, line, lines: count.suppressed });
            (count.began, count.written, count.suppressed) = (now, 0, 0);
        }
        places.tell_at = next;
        suppressed
    }
}

impl<S: Subscriber> Layer<S> for LineLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let now = now();
        for Suppressed { target, line, lines } in self.over(now) {
            // Comes back here as a line of its own, with nothing more to tell.
            tracing::warn!(place = target, line, lines, "lines like earlier ones were suppressed");
        }
        self.admit(event.metadata(), now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Counts the lines that come through.
    #[derive(Clone, Default)]
    struct Lines(Arc<AtomicU64>);

    impl<S: Subscriber> Layer<S> for Lines {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn garbage() {
        tracing::warn!("garbage");
    }

    #[test]
    fn one_warning_per_garbage_call_does_not_fill_the_disk() {
        let lines = Lines::default();
        let limit = LineLimit::new(Duration::from_secs(3_600));
        let subscriber = tracing_subscriber::registry().with(lines.clone()).with(limit);
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..10_000 {
                garbage();
            }
            assert_eq!(lines.0.load(Ordering::Relaxed), u64::from(MAX_LINES_PER_WINDOW));
            // Other places are heard, and so is the day's work.
            tracing::error!("another place");
            for _ in 0..100 {
                tracing::info!("what it does");
            }
            assert_eq!(lines.0.load(Ordering::Relaxed), u64::from(MAX_LINES_PER_WINDOW) + 101);
        });
    }

    #[test]
    fn lines_at_the_default_level_do_not_fill_the_disk_either() {
        let lines = Lines::default();
        let limit = LineLimit::new(Duration::from_secs(3_600));
        let subscriber = tracing_subscriber::registry().with(lines.clone()).with(limit);
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..10_000 {
                tracing::info!("what a stranger provokes");
            }
        });
        assert_eq!(lines.0.load(Ordering::Relaxed), u64::from(MAX_INFO_LINES_PER_WINDOW));
    }

    #[test]
    fn what_was_suppressed_is_counted_and_told() {
        struct Callsite;
        static CALLSITE: Callsite = Callsite;
        static METADATA: Metadata<'static> = tracing::metadata! {
            name: "test", target: "here", level: Level::WARN, fields: &[], callsite: &CALLSITE,
            kind: tracing::metadata::Kind::EVENT
        };
        impl tracing::callsite::Callsite for Callsite {
            fn set_interest(&self, _: tracing::subscriber::Interest) {}
            fn metadata(&self) -> &Metadata<'_> {
                &METADATA
            }
        }
        let window = Duration::from_secs(60);
        let (limit, begin) = (LineLimit::new(window), now());
        let admitted = (0..100).filter(|_| limit.admit(&METADATA, begin)).count();
        assert_eq!(admitted, MAX_LINES_PER_WINDOW as usize);
        assert_eq!(limit.over(begin + window / 2), []);
        let suppressed = limit.over(begin + window);
        let lines = 100 - u64::from(MAX_LINES_PER_WINDOW);
        assert_eq!(
            suppressed.iter().map(|line| (line.target, line.lines)).collect::<Vec<_>>(),
            [("here", lines)]
        );
        assert_eq!(limit.over(begin + window), [], "once");
        assert!(limit.admit(&METADATA, begin + window), "a new window");
        // Without suppressed lines a window ends by itself.
        assert!((0..100).all(|minute| limit.admit(&METADATA, begin + (minute + 2) * window)));
    }
}

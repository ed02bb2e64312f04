//! Traces: what every role did with one envelope, and when.
//!
//! Nothing is handed on between roles for it. An envelope's id names its trace ([`TraceId`]), so all roles tell of the same
//! one; and whether an envelope is traced follows from its id as well, so all roles with the same share choose the same
//! envelopes. Whoever makes an envelope can look for an id that is chosen, or is not: a share is no secret, and no limit.
//! Nobody between two roles has a say. Where a role does something with a batch, each of its traced envelopes has a span of
//! that.
//!
//! A process without a sink, and so without settings for it, pays for one load of a pointer at each place.

use std::{
    collections::BTreeMap,
    sync::OnceLock,
    time::{Duration, UNIX_EPOCH},
};

use blindfold_runtime::{Instant, wall_ms};
use parking_lot::Mutex;

/// Batches of which a process knows which envelopes are traced; older ones are traced no longer.
const KEPT_BATCHES: usize = 1_024;

/// The wall clock's time, as spans have it.
pub use std::time::SystemTime;

/// The trace of an envelope: the first 16 bytes of its id. Its root span is named by the eight bytes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId {
    /// The trace.
    pub trace: [u8; 16],
    /// Its root span.
    pub root: [u8; 8],
}

impl TraceId {
    /// The trace of the envelope with this id.
    #[must_use]
    pub fn of(envelope: &[u8; 32]) -> Self {
        let (mut trace, mut root) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&envelope[..16]);
        root.copy_from_slice(&envelope[16..24]);
        Self { trace, root }
    }

    /// What the choice is made by: the 56 random bits of a trace id in W3C's Trace Context, level 2.
    fn randomness(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[1..].copy_from_slice(&self.trace[9..]);
        u64::from_be_bytes(bytes)
    }
}

/// What a role did with an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whose trace it is in.
    pub id: TraceId,
    /// Whether it is the root span, of which all others are parts.
    pub is_root: bool,
    /// What was done.
    pub name: &'static str,
    /// When it began, by this machine's clock.
    pub start: SystemTime,
    /// When it was done.
    pub end: SystemTime,
    /// The batch that it was done with, if it was one.
    pub number: Option<u64>,
}

/// Who takes spans on. It does not block: what it cannot take it drops.
pub trait SpanSink: Send + Sync {
    /// Takes a span.
    fn take(&self, span: Span);
}

/// The traces of a process.
pub struct Traces {
    sink: Box<dyn SpanSink>,
    /// An envelope is traced if its randomness is below this.
    below: u64,
    batches: Mutex<BTreeMap<u64, Vec<TraceId>>>,
}

static OF_THE_PROCESS: OnceLock<Traces> = OnceLock::new();

impl Traces {
    /// Traces this share of all envelopes, between 0 and 1.
    #[must_use]
    pub fn new(sink: Box<dyn SpanSink>, share: f64) -> Self {
        // A share outside becomes the nearest one; NaN becomes none.
        let below = (share.clamp(0.0, 1.0) * (1u64 << 56) as f64) as u64;
        Self { sink, below, batches: Mutex::default() }
    }

    /// Makes these the traces of the process, for as long as it runs. False where it has some already.
    pub fn install(self) -> bool {
        OF_THE_PROCESS.set(self).is_ok()
    }

    fn chosen(&self, envelope: &[u8; 32]) -> Option<TraceId> {
        let id = TraceId::of(envelope);
        (id.randomness() < self.below).then_some(id)
    }

    /// Tells which envelopes a batch has; what was known of this number is forgotten.
    fn know<'a>(&self, number: u64, envelopes: impl IntoIterator<Item = &'a [u8; 32]>) {
        let chosen: Vec<TraceId> = envelopes.into_iter().filter_map(|id| self.chosen(id)).collect();
        let mut batches = self.batches.lock();
        batches.insert(number, chosen);
        while batches.len() > KEPT_BATCHES {
            batches.pop_first();
        }
    }

    fn forget_from(&self, number: u64) {
        self.batches.lock().split_off(&number);
    }

    fn of_envelope(&self, envelope: &[u8; 32], name: &'static str, started: Instant) {
        if let Some(id) = self.chosen(envelope) {
            self.tell(&[id], name, started, None, false);
        }
    }

    fn of_batch(&self, number: u64, name: &'static str, started: Instant) {
        let chosen = self.batches.lock().get(&number).cloned().unwrap_or_default();
        self.tell(&chosen, name, started, Some(number), false);
    }

    fn tell(
        &self,
        ids: &[TraceId],
        name: &'static str,
        started: Instant,
        number: Option<u64>,
        is_root: bool,
    ) {
        let end = UNIX_EPOCH + Duration::from_millis(wall_ms());
        let start = end.checked_sub(started.elapsed()).unwrap_or(UNIX_EPOCH);
        for &id in ids {
            self.sink.take(Span { id, is_root, name, start, end, number });
        }
    }
}

/// A role did this with an envelope, since `started`.
pub fn envelope(id: &[u8; 32], name: &'static str, started: Instant) {
    if let Some(traces) = OF_THE_PROCESS.get() {
        traces.of_envelope(id, name, started);
    }
}

/// The root span of an envelope's trace. One role tells it once: the sequencer, when it has taken the envelope.
pub fn root(id: &[u8; 32], name: &'static str, started: Instant) {
    if let Some(traces) = OF_THE_PROCESS.get()
        && let Some(id) = traces.chosen(id)
    {
        traces.tell(&[id], name, started, None, true);
    }
}

/// Which envelopes a batch has. `envelopes` is asked only where there are traces.
pub fn batch_has<I: IntoIterator<Item = [u8; 32]>>(number: u64, envelopes: impl FnOnce() -> I) {
    if let Some(traces) = OF_THE_PROCESS.get() {
        let envelopes: Vec<[u8; 32]> = envelopes().into_iter().collect();
        traces.know(number, &envelopes);
    }
}

/// Batches from a number on gave way to others, of which nothing is known yet.
pub fn forget_from(number: u64) {
    if let Some(traces) = OF_THE_PROCESS.get() {
        traces.forget_from(number);
    }
}

/// A role did this with a batch, since `started`: with each traced envelope that [`batch_has`] named.
pub fn batch(number: u64, name: &'static str, started: Instant) {
    if let Some(traces) = OF_THE_PROCESS.get() {
        traces.of_batch(number, name, started);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blindfold_runtime::now;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Span>>>);

    impl SpanSink for Kept {
        fn take(&self, span: Span) {
            self.0.lock().push(span);
        }
    }

    fn id(randomness: u8) -> [u8; 32] {
        let mut id = [7; 32];
        id[9] = randomness;
        id
    }

    #[test]
    fn all_roles_choose_the_same_envelopes_by_their_ids() {
        let (one, other) = (Kept::default(), Kept::default());
        let roles = [&one, &other].map(|kept| Traces::new(Box::new(kept.clone()), 0.25));
        let started = now();
        for role in &roles {
            for randomness in 0..=u8::MAX {
                role.of_envelope(&id(randomness), "verify", started);
            }
        }
        let chosen = |kept: &Kept| kept.0.lock().iter().map(|span| span.id).collect::<Vec<_>>();
        assert_eq!(chosen(&one).len(), 64);
        assert_eq!(chosen(&one), chosen(&other));
        assert!(one.0.lock().iter().all(|span| span.start <= span.end && !span.is_root));
    }

    #[test]
    fn no_share_is_nobody_and_more_than_all_is_all() {
        let started = now();
        for (share, told) in [(f64::NAN, 0), (-1.0, 0), (0.0, 0), (1.0, 2), (7.5, 2)] {
            let kept = Kept::default();
            let traces = Traces::new(Box::new(kept.clone()), share);
            traces.of_envelope(&[0; 32], "verify", started);
            traces.of_envelope(&[255; 32], "verify", started);
            assert_eq!(kept.0.lock().len(), told, "{share}");
        }
    }

    #[test]
    fn what_is_done_with_a_batch_is_done_with_its_envelopes() {
        let kept = Kept::default();
        let traces = Traces::new(Box::new(kept.clone()), 0.5);
        let started = now();
        traces.know(3, &[id(0), id(255), id(1)]);
        traces.of_batch(3, "seal", started);
        traces.of_batch(4, "seal", started);
        let told: Vec<_> = kept.0.lock().iter().map(|span| (span.id, span.number)).collect();
        assert_eq!(told, [0, 1].map(|randomness| (TraceId::of(&id(randomness)), Some(3))));

        // Another header has taken the number.
        traces.know(3, &[id(2)]);
        traces.of_batch(3, "seal", started);
        assert_eq!(kept.0.lock().last().map(|span| span.id), Some(TraceId::of(&id(2))));
        assert_eq!(kept.0.lock().len(), 3);
        // And another one, which nobody has told of.
        traces.forget_from(3);
        traces.of_batch(3, "execute", started);
        assert_eq!(kept.0.lock().len(), 3);
    }

    #[test]
    fn of_many_batches_the_newest_are_known() {
        let traces = Traces::new(Box::new(Kept::default()), 1.0);
        for number in 0..2 * KEPT_BATCHES as u64 {
            traces.know(number, &[id(0)]);
        }
        assert_eq!(traces.batches.lock().len(), KEPT_BATCHES);
        let oldest = traces.batches.lock().first_key_value().map(|(number, _)| *number);
        assert_eq!(oldest, Some(KEPT_BATCHES as u64));
    }
}

//! What happened, in order: two runs of one seed give the same lines.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use alloy_primitives::{B256, Keccak256};
use blindfold_runtime::{Instant, now};
use parking_lot::Mutex;

use crate::Role;

/// Events of each role that are kept for the report.
const LAST_EVENTS: usize = 24;

/// The trace of a run. Clones are the same trace.
#[derive(Clone)]
pub struct Trace(Arc<Shared>);

struct Shared {
    start: Instant,
    print: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hasher: Keccak256,
    events: u64,
    last: BTreeMap<Role, VecDeque<String>>,
}

impl Trace {
    /// An empty trace that begins now. With `print` every line goes to standard error, too.
    pub fn new(print: bool) -> Self {
        Self(Arc::new(Shared { start: now(), print, state: Mutex::default() }))
    }

    /// Something happened at a role.
    pub fn event(&self, role: Role, what: fmt::Arguments<'_>) {
        let line = format!("{:>9.3} {role} {what}", self.0.start.elapsed().as_secs_f64());
        if self.0.print {
            eprintln!("{line}");
        }
        let mut state = self.0.state.lock();
        state.events += 1;
        state.hasher.update(line.as_bytes());
        state.hasher.update(b"\n");
        let last = state.last.entry(role).or_default();
        if last.len() == LAST_EVENTS {
            last.pop_front();
        }
        last.push_back(line);
    }

    /// Milliseconds since the beginning.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How many events there were, and a hash over all of them.
    pub fn digest(&self) -> (u64, B256) {
        let state = self.0.state.lock();
        (state.events, state.hasher.clone().finalize())
    }

    /// The last events of each role.
    pub fn last(&self) -> BTreeMap<String, Vec<String>> {
        let state = self.0.state.lock();
        state.last.iter().map(|(role, lines)| (role.to_string(), lines.iter().cloned().collect())).collect()
    }
}

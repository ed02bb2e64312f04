//! Who of several processes writes to one store.
//!
//! A lease lets another process go on soon after one that died, was stopped or was cut off. It gives nothing else: that
//! nothing is signed twice rests on the row that every transaction changes and on what the tables refuse, however long a
//! process that lost the store goes on believing that it has it. No two clocks are compared: whoever waits sees by its own how
//! long the row has not changed.

use std::time::Duration;

use crate::{PostgresUrl, SqlStore, postgres::Watch};

/// A process that may take a store which others take, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where clients reach it, as the others tell them.
    pub url: String,
    /// How long it keeps the store without a sign of life. Then another may take it, although nobody gave it back.
    pub lease: Duration,
}

impl Candidate {
    pub(crate) fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Who took a store last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leader {
    /// How often the store was taken; 0 for never.
    pub term: u64,
    /// Where clients reach it; `None` where it did not say.
    pub url: Option<String>,
    /// How long it may give no sign of life before another takes the store; `None` where it took it without a lease.
    pub lease: Option<Duration>,
}

/// What came of one attempt to take a store.
#[derive(Debug)]
pub enum Attempt {
    /// It is this process's now, in the store's [`term`](SqlStore::term).
    Taken(SqlStore),
    /// Another process has it.
    Led(Leader),
}

/// A process that waits for a store. It takes it as soon as the server sees the connection of whoever has it end, and
/// otherwise once the lease has run out.
#[derive(Debug)]
pub struct Standby {
    pub(crate) server: PostgresUrl,
    pub(crate) candidate: Candidate,
    pub(crate) watch: Option<Watch>,
}

impl Standby {
    /// Nothing is connected yet.
    #[must_use]
    pub const fn new(server: PostgresUrl, candidate: Candidate) -> Self {
        Self { server, candidate, watch: None }
    }

    /// Where the store is.
    pub fn server(&self) -> PostgresUrl {
        self.server.clone()
    }

    /// How long this process keeps the store without a sign of life.
    pub const fn lease(&self) -> Duration {
        self.candidate.lease
    }
}

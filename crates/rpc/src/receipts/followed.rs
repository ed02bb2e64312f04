//! Which ids are followed, for whom, and who gives way when there are too many.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, OnceLock},
    time::Duration,
};

use alloy_primitives::B256;
use blindfold_runtime::Instant;
use tokio::sync::{mpsc, oneshot};

use crate::{
    limits::{
        MAX_AWAITED_RECEIPTS, MAX_FOLLOWED_RECEIPTS, MAX_FOLLOWED_RECEIPTS_PER_ADDRESS, NEW_RECEIPT_MS,
        UNKNOWN_RECEIPT_MS,
    },
    peers::Account,
    types::Receipt,
};

/// What a receipt is followed for. Each has room of its own: whoever subscribes keeps nobody from waiting for an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is told as long as somebody listens.
    Subscription,
    /// One call waits for it, for a bounded time.
    Call,
}

impl Purpose {
    /// Most ids that are followed for it.
    const fn most(self) -> usize {
        match self {
            Self::Subscription => MAX_FOLLOWED_RECEIPTS,
            Self::Call => MAX_AWAITED_RECEIPTS,
        }
    }
}

/// Why nothing more is told, where the server goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    TooSlow,
    GaveWay,
    UnknownIds,
}

impl End {
    /// What the subscriber is told.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::TooSlow => "too slow: too many changes wait unread; ask again",
            Self::GaveWay => {
                "gave_way: no address followed more receipts here, and there was no room for another's; ask again"
            }
            Self::UnknownIds => {
                "unknown_ids: nobody has known one of the ids for a minute; ask again once it was sent"
            }
        }
    }
}

/// Is told once what is known of an id.
pub(super) type Found = oneshot::Sender<Option<Arc<Receipt>>>;

/// All that is followed.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) ids: HashMap<B256, Entry>,
    /// Read before all others.
    pub(super) fresh: HashSet<B256>,
    /// By key.
    followings: HashMap<u64, Held>,
    subscriptions: Room,
    calls: Room,
    next: u64,
    /// Reads so far.
    pub(super) reads: u64,
    /// Nothing is read any more.
    pub(super) closed: bool,
}

/// What is known of an id.
#[derive(Default)]
pub(super) struct Entry {
    /// What was read last.
    pub(super) told: Option<Arc<Receipt>>,
    /// Since when reads have found nothing, and nobody has come anew.
    unknown_since: Option<Instant>,
    /// By key.
    pub(super) followers: BTreeMap<u64, Follower>,
}

pub(super) struct Follower {
    /// It hears of reads from this one on: what was read before says nothing of what it waits for.
    pub(super) since: u64,
    /// Whether it has heard of any.
    pub(super) heard: bool,
    pub(super) purpose: Purpose,
    pub(super) changes: mpsc::Sender<Arc<Receipt>>,
    /// Is told what the first such read gave, even if that is nothing; dropped where it failed.
    pub(super) found: Option<Found>,
}

/// Some ids that one caller follows.
struct Held {
    purpose: Purpose,
    account: Option<Account>,
    ids: Arc<[B256]>,
    end: Arc<OnceLock<End>>,
}

/// Who has how much of the room for one purpose.
#[derive(Default)]
struct Room {
    taken: usize,
    shares: HashMap<Option<Account>, Share>,
}

#[derive(Default)]
struct Share {
    ids: usize,
    /// The oldest first.
    keys: BTreeSet<u64>,
}

impl Entry {
    /// Notes whether a read found it, and says whether nobody has known it for so long that subscriptions to it end.
    pub(super) fn was_read(&mut self, receipt: Option<Receipt>, at: Instant) -> bool {
        self.told = receipt.map(Arc::new);
        if self.told.is_some() {
            self.unknown_since = None;
            return false;
        }
        let since = *self.unknown_since.get_or_insert(at);
        at.saturating_duration_since(since) >= Duration::from_millis(UNKNOWN_RECEIPT_MS)
    }

    /// Whether it may change when the chain moves. What came to an end does so where L1 takes it back; what nobody has known
    /// for some time may never have been sent.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        if let Some(told) = &self.told {
            return !told.state.has_ended() || self.followers.values().any(|follower| !follower.heard);
        }
        let is_new =
            |since: Instant| now.saturating_duration_since(since) < Duration::from_millis(NEW_RECEIPT_MS);
        self.unknown_since.is_none_or(is_new)
            || self.followers.values().any(|follower| follower.purpose == Purpose::Call)
    }

    /// Somebody waits for it from now on.
    pub(super) fn is_awaited(&mut self) {
        self.unknown_since = None;
    }
}

impl Followed {
    const fn room(&mut self, purpose: Purpose) -> &mut Room {
        match purpose {
            Purpose::Subscription => &mut self.subscriptions,
            Purpose::Call => &mut self.calls,
        }
    }

    /// Makes room for so many ids of an account. Whoever has the most gives way, as long as that is more than this account
    /// would have then. False, and nobody has given way, where that is not enough.
    fn make_room(&mut self, purpose: Purpose, account: Option<Account>, count: usize) -> bool {
        let room = self.room(purpose);
        let share = room.shares.get(&account).map_or(0, |share| share.ids).saturating_add(count);
        if account.is_some() && share > MAX_FOLLOWED_RECEIPTS_PER_ADDRESS {
            return false;
        }
        let missing = room.taken.saturating_add(count).saturating_sub(purpose.most());
        let above: usize = room.shares.values().map(|other| other.ids.saturating_sub(share)).sum();
        if above < missing {
            return false;
        }
        while self.room(purpose).taken.saturating_add(count) > purpose.most() {
            let largest = self.room(purpose).shares.values().max_by_key(|share| share.ids);
            let Some(oldest) = largest.and_then(|share| share.keys.first().copied()) else { return false };
            self.end(oldest, Some(End::GaveWay));
        }
        true
    }

    /// Follows some ids, each named once. Gives its key, and where to look why it ended; none where there is no room.
    pub(super) fn follow(
        &mut self,
        account: Option<Account>,
        purpose: Purpose,
        ids: &Arc<[B256]>,
        changes: &mpsc::Sender<Arc<Receipt>>,
        mut found: Option<Found>,
    ) -> Option<(u64, Arc<OnceLock<End>>)> {
        if !self.make_room(purpose, account, ids.len()) {
            return None;
        }
        let key = self.next;
        self.next += 1;
        let room = self.room(purpose);
        room.taken += ids.len();
        let share = room.shares.entry(account).or_default();
        share.ids += ids.len();
        share.keys.insert(key);
        let since = self.reads + 1;
        for id in ids.iter() {
            let (changes, found) = (changes.clone(), found.take());
            let follower = Follower { since, heard: false, purpose, changes, found };
            let entry = self.ids.entry(*id).or_default();
            entry.is_awaited();
            entry.followers.insert(key, follower);
            self.fresh.insert(*id);
        }
        let end: Arc<OnceLock<End>> = Arc::default();
        let held = Held { purpose, account, ids: Arc::clone(ids), end: Arc::clone(&end) };
        self.followings.insert(key, held);
        Some((key, end))
    }

    /// Ends what somebody follows, if it has not ended: its channel closes when what is in it was taken.
    pub(super) fn end(&mut self, key: u64, end: Option<End>) {
        let Some(held) = self.followings.remove(&key) else { return };
        if let Some(end) = end {
            // Nobody has set it: what ended is no longer held.
            let _ = held.end.set(end);
        }
        for id in held.ids.iter() {
            let Some(entry) = self.ids.get_mut(id) else { continue };
            entry.followers.remove(&key);
            if entry.followers.is_empty() {
                self.ids.remove(id);
                self.fresh.remove(id);
            }
        }
        let room = self.room(held.purpose);
        room.taken = room.taken.saturating_sub(held.ids.len());
        if let Some(share) = room.shares.get_mut(&held.account) {
            share.ids = share.ids.saturating_sub(held.ids.len());
            share.keys.remove(&key);
            if share.keys.is_empty() {
                room.shares.remove(&held.account);
            }
        }
    }

    /// Ends all of them, and takes no more.
    pub(super) fn close(&mut self) {
        let reads = self.reads;
        *self = Self { closed: true, reads, ..Self::default() };
    }
}

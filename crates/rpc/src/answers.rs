//! Memory for answers. What is being answered, and what is answered and not written to its connection yet, counts
//! against a budget of the whole server and against a share of it for each account; notifications too.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    limits::{
        LARGE_ANSWERS_OF_SHARE_EIGHTHS, LARGE_PART_OF_ANSWERS, MAX_CALLS_PER_CONNECTION,
        NOTIFICATIONS_PART_OF_SHARE, PEERS_PART_OF_ANSWERS, SMALL_ANSWER_BYTES, SMALL_PART_OF_ANSWERS,
    },
    peers::Account,
    turns::Turns,
};

/// Methods whose answers have the size of a batch. They are refused over WebSocket.
pub const BULK_METHODS: &[&str] =
    &["blind_getBatch", "blind_getHints", "committee_getCertified", "committee_getSealed"];
/// Other methods whose answers may be as large: receipts of bundles of 512 transactions, and blocks of the execution client.
const LARGE_READS: &[&str] = &[
    "blind_getReceipts",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getLogs",
];

/// What a method's answer may take at most, as far as one knows before it is there.
pub(crate) fn reservation(method: &str, max_response_bytes: u32) -> u64 {
    if BULK_METHODS.contains(&method) || LARGE_READS.contains(&method) {
        u64::from(max_response_bytes)
    } else {
        SMALL_ANSWER_BYTES
    }
}

/// Bytes of answers that one server holds. A part of it, and of each account's share, is only for small answers: few
/// slow calls with large ones would leave nobody his small one else. A part is for notifications, and not for large
/// answers: their slow readers would cut the feeds of all others.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    max_bytes_of_address: u64,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    of_accounts: HashMap<Account, Taken>,
    of_all_addresses: Taken,
    /// Given back, and not told to those who wait.
    unannounced: u64,
}

/// What bytes are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Answer,
    Notification,
}

/// Bytes that somebody took, and those among them that are for answers and for notifications beyond
/// [`SMALL_ANSWER_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    bytes: u64,
    large: u64,
    notifications: u64,
}

impl Taken {
    /// For one answer or notification of so many bytes.
    const fn of(purpose: Purpose, bytes: u64) -> Self {
        let beyond = if bytes > SMALL_ANSWER_BYTES { bytes } else { 0 };
        match purpose {
            Purpose::Answer => Self { bytes, large: beyond, notifications: 0 },
            Purpose::Notification => Self { bytes, large: 0, notifications: beyond },
        }
    }

    /// What is left of it once it has shrunk to so many bytes.
    fn shrunk_to(self, bytes: u64) -> Self {
        let beyond = if bytes > SMALL_ANSWER_BYTES { bytes } else { 0 };
        Self { bytes, large: beyond.min(self.large), notifications: beyond.min(self.notifications) }
    }

    const fn with(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            large: self.large.saturating_add(more.large),
            notifications: self.notifications.saturating_add(more.notifications),
        }
    }

    const fn without(self, less: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(less.bytes),
            large: self.large.saturating_sub(less.large),
            notifications: self.notifications.saturating_sub(less.notifications),
        }
    }

    /// All that is not small.
    const fn beyond_small(self) -> u64 {
        self.large.saturating_add(self.notifications)
    }

    const fn fits(self, room: Capacity) -> bool {
        self.bytes <= room.bytes
            && self.large <= room.large
            && self.notifications <= room.notifications
            && self.beyond_small() <= room.beyond_small
    }
}

/// How much may be taken.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    bytes: u64,
    large: u64,
    notifications: u64,
    beyond_small: u64,
}

impl Capacity {
    const fn of_all(bytes: u64) -> Self {
        let beyond_small = bytes - bytes / SMALL_PART_OF_ANSWERS;
        Self { bytes, large: bytes / LARGE_PART_OF_ANSWERS, notifications: beyond_small, beyond_small }
    }

    const fn of_account(bytes: u64) -> Self {
        Self {
            bytes,
            large: bytes.saturating_mul(LARGE_ANSWERS_OF_SHARE_EIGHTHS) / 8,
            notifications: bytes / NOTIFICATIONS_PART_OF_SHARE,
            beyond_small: bytes - bytes / SMALL_PART_OF_ANSWERS,
        }
    }

    /// For one answer or notification of so many bytes.
    const fn for_one(self, purpose: Purpose, bytes: u64) -> u64 {
        match purpose {
            _ if bytes <= SMALL_ANSWER_BYTES => self.bytes,
            Purpose::Answer => self.large,
            Purpose::Notification => self.notifications,
        }
    }
}

/// Bytes taken from a [`Budget`]; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Lease {
    budget: Arc<Budget>,
    account: Account,
    taken: Taken,
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, max_bytes_of_address: u64) -> Arc<Self> {
        Arc::new(Self { max_bytes, max_bytes_of_address, held: Mutex::default(), freed: Notify::new() })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while the lock is held, and the counts stay usable if something did.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all addresses together may hold: a part is kept for peers.
    const fn room_of_addresses(&self) -> Capacity {
        Capacity::of_all(self.max_bytes - self.max_bytes / PEERS_PART_OF_ANSWERS)
    }

    const fn room_of_account(&self) -> Capacity {
        Capacity::of_account(self.max_bytes_of_address)
    }

    fn add(&self, account: Account, more: Taken) -> bool {
        let mut held = self.held();
        let of_account = held.of_accounts.get(&account).copied().unwrap_or_default().with(more);
        let of_address = matches!(account, Account::Address(_));
        let of_all_addresses =
            if of_address { held.of_all_addresses.with(more) } else { held.of_all_addresses };
        if held.bytes.saturating_add(more.bytes) > self.max_bytes
            || !of_account.fits(self.room_of_account())
            || of_address && !of_all_addresses.fits(self.room_of_addresses())
        {
            return false;
        }
        held.bytes += more.bytes;
        held.of_all_addresses = of_all_addresses;
        held.of_accounts.insert(account, of_account);
        true
    }

    fn subtract(&self, account: Account, less: Taken) {
        let mut held = self.held();
        held.bytes = held.bytes.saturating_sub(less.bytes);
        if matches!(account, Account::Address(_)) {
            held.of_all_addresses = held.of_all_addresses.without(less);
        }
        if let Some(of_account) = held.of_accounts.get_mut(&account) {
            *of_account = of_account.without(less);
            if *of_account == Taken::default() {
                held.of_accounts.remove(&account);
            }
        }
        // Only what is not small is waited for. Large answers come back in pieces as they are read, however small.
        held.unannounced = held.unannounced.saturating_add(less.beyond_small());
        let tell = held.unannounced >= SMALL_ANSWER_BYTES;
        if tell {
            held.unannounced = 0;
        }
        drop(held);
        if tell {
            self.freed.notify_waiters();
        }
    }

    /// Bytes for something to an account, if there are so many. More than its share counts as the whole share.
    pub(crate) fn take(self: &Arc<Self>, account: Account, purpose: Purpose, bytes: u64) -> Option<Lease> {
        let [of_all, of_account] = [self.room_of_addresses(), self.room_of_account()];
        let share = of_all.for_one(purpose, bytes).min(of_account.for_one(purpose, bytes));
        let taken = Taken::of(purpose, bytes.min(share));
        self.add(account, taken).then(|| Lease { budget: Arc::clone(self), account, taken })
    }

    /// The same, waiting until others give back what they hold.
    pub(crate) async fn take_within(
        self: &Arc<Self>,
        account: Account,
        purpose: Purpose,
        bytes: u64,
        patience: Duration,
    ) -> Option<Lease> {
        let mut patience = pin!(tokio::time::sleep(patience));
        loop {
            let mut freed = pin!(self.freed.notified());
            // Before looking: what is given back from here on is seen.
            freed.as_mut().enable();
            if let Some(lease) = self.take(account, purpose, bytes) {
                return Some(lease);
            }
            tokio::select! {
                () = freed => {}
                // What was given back last may be too little to be told.
                () = &mut patience => return self.take(account, purpose, bytes),
            }
        }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.held().bytes
    }
}

impl Lease {
    /// One lease of several of the same address.
    pub(crate) fn of_all(leases: Vec<Self>) -> Option<Self> {
        leases.into_iter().reduce(|mut all, mut one| {
            all.taken = all.taken.with(std::mem::take(&mut one.taken));
            all
        })
    }

    /// Makes it as large as the answer has become. False when the budget has not so much.
    pub(crate) fn resize(&mut self, bytes: u64) -> bool {
        if bytes > self.taken.bytes {
            let taken = Taken::of(Purpose::Answer, bytes);
            if !self.budget.add(self.account, taken.without(self.taken)) {
                return false;
            }
            self.taken = taken;
        } else {
            self.shrink(bytes);
        }
        true
    }

    /// Gives back what is more than so many bytes.
    fn shrink(&mut self, bytes: u64) {
        if bytes < self.taken.bytes {
            let taken = self.taken.shrunk_to(bytes);
            self.budget.subtract(self.account, self.taken.without(taken));
            self.taken = taken;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.subtract(self.account, self.taken);
    }
}

/// What one connection was answered and has not taken yet. Its writing side gives back the leases, its reading side
/// waits while too many calls are under way or not written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<Unwritten>,
    websocket: AtomicBool,
}

#[derive(Debug, Default)]
struct Unwritten {
    answers: VecDeque<Answer>,
    calls: usize,
    reader: Option<Waker>,
}

impl Unwritten {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[derive(Debug)]
struct Answer {
    bytes: u64,
    /// The memory that it holds; none for a refusal.
    lease: Option<Lease>,
}

/// One call under way on a connection.
#[derive(Debug)]
pub(crate) struct CallPlace(Arc<Outbox>);

impl Outbox {
    fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on the connection is a WebSocket.
    pub(crate) fn upgrade(&self) {
        self.websocket.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_websocket(&self) -> bool {
        self.websocket.load(Ordering::Relaxed)
    }

    /// Counts an answer that is about to be written, and keeps its lease.
    pub(crate) fn push(&self, bytes: usize, lease: Option<Lease>) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.unwritten().answers.push_back(Answer { bytes, lease });
    }

    /// So many bytes left for the network. What is written beside answers (headers, frames) counts too, which is little
    /// and only while answers wait.
    pub(crate) fn written(&self, bytes: usize) {
        let mut bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut unwritten = self.unwritten();
        while bytes > 0 {
            let Some(answer) = unwritten.answers.front_mut() else { return };
            if answer.bytes > bytes {
                answer.bytes -= bytes;
                answer.lease.iter_mut().for_each(|lease| lease.shrink(answer.bytes));
                return;
            }
            bytes -= answer.bytes;
            unwritten.answers.pop_front();
            unwritten.wake_reader();
        }
    }

    /// Counts a call until the place is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> CallPlace {
        self.unwritten().calls += 1;
        CallPlace(Arc::clone(self))
    }

    /// Ready when the connection may be read.
    pub(crate) fn poll_may_read(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut unwritten = self.unwritten();
        if unwritten.calls + unwritten.answers.len() < MAX_CALLS_PER_CONNECTION {
            return Poll::Ready(());
        }
        unwritten.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let mut unwritten = self.0.unwritten();
        unwritten.calls = unwritten.calls.saturating_sub(1);
        unwritten.wake_reader();
    }
}

/// Who is answered, in the extensions of every call.
#[derive(Clone, Debug)]
pub(crate) struct Recipient {
    pub(crate) budget: Arc<Budget>,
    pub(crate) outbox: Arc<Outbox>,
    /// Of all calls that do not wait for the chain.
    pub(crate) turns: Arc<Turns>,
    /// Whose share of the budget, and whose allowance of calls, is used.
    pub(crate) account: Account,
    pub(crate) websocket: bool,
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use blindfold_protocol::Party;

    use super::{Purpose::*, *};

    fn address(last: u8) -> Account {
        Account::of(Ipv4Addr::new(192, 0, 2, last).into())
    }

    #[test]
    fn no_address_takes_the_budget_and_what_is_given_back_can_be_taken() {
        let budget = Budget::new(134, 40);
        let mut first = budget.take(address(1), Answer, 30).expect("room");
        assert!(budget.take(address(1), Answer, 11).is_none(), "its share is 40");
        assert!(!first.resize(41));
        assert!(first.resize(40));
        let _second = budget.take(address(2), Answer, 1_000).expect("as much as a share");
        assert!(budget.take(address(3), Answer, 22).is_none(), "101 for all addresses");
        assert!(budget.take(Account::Peer(Party::Sequencer), Answer, 40).is_some(), "the rest is for peers");
        assert_eq!(budget.bytes(), 80);
        drop(first);
        assert!(budget.take(address(3), Answer, 22).is_some());
        assert_eq!((budget.bytes(), budget.held().of_accounts.len()), (40, 1));
    }

    #[test]
    fn large_answers_leave_room_for_small_ones() {
        let mib = 1 << 20;
        let budget = Budget::new(512 * mib, 128 * mib);
        let mut large = Vec::new();
        for last in 1..=u8::MAX {
            while let Some(lease) = budget.take(address(last), Answer, 24 * mib) {
                large.push(lease);
            }
        }
        assert_eq!(large.len(), 8, "192 of the 384 MiB that strangers have");
        let mut small: Vec<_> = (1..=200)
            .map(|last| budget.take(address(last), Answer, SMALL_ANSWER_BYTES).expect("room"))
            .collect();
        // Who holds large ones has small ones, too; what grows beyond a small one counts with the large.
        let last = small.last_mut().expect("some");
        assert!(!last.resize(SMALL_ANSWER_BYTES + 1));
        large.pop();
        assert!(last.resize(mib) && last.resize(SMALL_ANSWER_BYTES));
        drop(large);
        let expected = Taken { bytes: 200 * SMALL_ANSWER_BYTES, ..Taken::default() };
        assert_eq!(budget.held().of_all_addresses, expected);
        drop(small);
        // Small answers in one message are no large one.
        let of_one = (0..200).map(|_| budget.take(address(1), Answer, SMALL_ANSWER_BYTES).expect("room"));
        let mut all = Lease::of_all(of_one.collect()).expect("some");
        assert!(all.resize(150 * SMALL_ANSWER_BYTES));
        let expected = Taken { bytes: 150 * SMALL_ANSWER_BYTES, ..Taken::default() };
        assert_eq!(budget.held().of_all_addresses, expected);
        drop(all);
        assert_eq!((budget.bytes(), budget.held().of_accounts.len()), (0, 0));
    }

    /// Three addresses that read full batches slowly took all that notifications beyond a small answer had.
    #[test]
    fn slow_readers_of_large_answers_cut_no_feed() {
        let mib = 1 << 20;
        let budget = Budget::new(512 * mib, 128 * mib);
        let mut slow = Vec::new();
        for last in 1..=u8::MAX {
            while let Some(lease) = budget.take(address(last), Answer, 16 * mib) {
                slow.push((last, lease));
            }
        }
        assert_eq!(slow.len(), 12, "192 of the 384 MiB that strangers have");
        assert_eq!(slow.last().map(|(last, _)| *last), Some(4), "48 MiB of each");
        // Full nodes, each at an address of its own, and one of them where large answers are read as well.
        let of_full_batches: Vec<_> =
            (4..=9).map(|last| budget.take(address(last), Notification, 16 * mib).expect("room")).collect();
        assert!(budget.take(address(12), Notification, 5_000).is_none(), "288 MiB");
        assert!(budget.take(address(12), Answer, SMALL_ANSWER_BYTES).is_some());
        drop(of_full_batches);
        // No address takes what all subscribers have.
        let _unread: Vec<_> =
            (0..2).map(|_| budget.take(address(7), Notification, 16 * mib).expect("room")).collect();
        assert!(budget.take(address(7), Notification, 5_000).is_none());
        assert!(budget.take(address(8), Notification, 5_000).is_some());
        drop(slow);
        assert!(budget.take(address(7), Answer, 24 * mib).is_some());
    }

    /// Whoever waited was not told of pieces below a small answer.
    #[tokio::test]
    async fn who_waits_gets_what_is_given_back_in_pieces() {
        let kib = 1 << 10;
        let budget = Budget::new(1 << 20, 1 << 20);
        let mut held: Vec<_> =
            (1..=2).map(|last| budget.take(address(last), Answer, 128 * kib).expect("room")).collect();
        let patience = Duration::from_secs(60);
        let waiting = budget.take_within(address(3), Answer, 256 * kib, patience);
        let (taken, ()) = tokio::join!(waiting, async {
            for left in (0..128).rev() {
                held.iter_mut().for_each(|lease| assert!(lease.resize(left * kib)));
                tokio::task::yield_now().await;
            }
        });
        assert!(taken.is_some());
    }

    #[tokio::test]
    async fn what_is_too_little_to_be_told_is_found_at_the_end_of_the_wait() {
        let kib = 1 << 10;
        let budget = Budget::new(1 << 20, 1 << 20);
        let _first = budget.take(address(1), Answer, 256 * kib).expect("room");
        let mut second = budget.take(address(2), Answer, 125 * kib).expect("room");
        let waiting = budget.take_within(address(3), Answer, 5 * kib, Duration::from_millis(10));
        let (taken, resized) = tokio::join!(waiting, async { second.resize(123 * kib) });
        assert!(taken.is_some() && resized);
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_given_back() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let held = budget.take(address(1), Answer, 1 << 20).expect("room");
        let patience = Duration::from_secs(60);
        let waiting = budget.take_within(address(2), Answer, 1 << 20, patience);
        let (taken, ()) = tokio::join!(waiting, async { drop(held) });
        assert!(taken.is_some());
        assert!(budget.take_within(address(3), Answer, 1 << 20, Duration::ZERO).await.is_none());
    }

    #[test]
    fn bytes_are_given_back_as_they_are_written() {
        let budget = Budget::new(100, 100);
        let outbox = Outbox::default();
        outbox.push(10, budget.take(address(1), Answer, 10));
        outbox.push(20, budget.take(address(1), Answer, 20));
        outbox.written(4);
        assert_eq!(budget.bytes(), 26);
        outbox.written(7);
        assert_eq!(budget.bytes(), 19);
        outbox.written(1_000);
        assert_eq!(budget.bytes(), 0);
        // One that counts as a whole share gives back what that is more than its rest.
        outbox.push(80_000, budget.take(address(1), Notification, 80_000));
        assert_eq!(budget.bytes(), 25);
        outbox.written(79_960);
        assert_eq!(budget.bytes(), 25);
        outbox.written(30);
        assert_eq!(budget.bytes(), 10);
        outbox.written(10);
        assert_eq!((budget.bytes(), budget.held().of_accounts.len()), (0, 0));
        outbox.push(10, budget.take(address(1), Answer, 10));
        drop(outbox);
        assert_eq!(budget.bytes(), 0, "a connection that ends gives everything back");
    }

    #[test]
    fn a_connection_is_not_read_while_its_calls_are_under_way() {
        let outbox = Arc::new(Outbox::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut places: Vec<_> = (0..MAX_CALLS_PER_CONNECTION).map(|_| outbox.enter()).collect();
        assert!(outbox.poll_may_read(&mut context).is_pending());
        places.pop();
        assert!(outbox.poll_may_read(&mut context).is_ready());
        outbox.push(50, None);
        assert!(outbox.poll_may_read(&mut context).is_pending(), "answered and not written");
        outbox.written(50);
        assert!(outbox.poll_may_read(&mut context).is_ready());
    }
}

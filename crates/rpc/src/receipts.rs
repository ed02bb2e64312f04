//! Receipts that are told as they change: who waits for an envelope asks once, and not again and again.
//!
//! A [`ReceiptBoard`] has the ids that somebody follows. When the chain moves, it reads the receipts of those that may go on,
//! many in one read, and tells each that differs to those who follow it. No address keeps the others from following theirs, and
//! ids that nobody knows are not followed for ever. It believes its [`ReceiptSource`]: the store, or the
//! server behind a gateway. One task reads, one read after the other: what is told last is what was read last.

mod followed;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use alloy_primitives::B256;
use blindfold_protocol::{Canonical, Envelope};
use blindfold_runtime::{Instant, Stop, now, until};
use followed::{End, Followed, Found, Purpose};
use jsonrpsee::{
    Extensions, PendingSubscriptionSink, SendTimeoutError, SubscriptionMessage,
    core::{SubscriptionError, SubscriptionResult, async_trait},
};
use serde_json::value::to_raw_value;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{sleep_until, timeout_at},
};

use crate::{
    Encoded, RawEnvelope, RpcError,
    answers::Recipient,
    hub::room,
    limits::{
        ENDED_RECEIPTS_INTERVAL_MS, MAX_RECEIPTS, MAX_SYNC_TIMEOUT_MS, RECEIPTS_RETRY_MS, REFUSED_RECEIPT_MS,
        SLOW_CONSUMER_MS, SYNC_TIMEOUT_MS,
    },
    middleware::turn_of,
    types::{EnvelopeState, Receipt, SentEnvelope, SyncOptions, SyncedEnvelope},
};

/// Changes of one follower's receipts that may wait for it: several for each id.
const CHANGES_PER_ID: usize = 8;
/// The reason of an envelope that is in a batch, or came to an end.
const ALREADY_KNOWN: &str = "already_known";

/// Where receipts are read.
#[async_trait]
pub trait ReceiptSource: Send + Sync {
    /// The receipt of each id, in order; at most [`MAX_RECEIPTS`].
    async fn receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError>;
}

/// The ids that are followed. Clones share them.
#[derive(Clone)]
pub struct ReceiptBoard(Arc<Shared>);

struct Shared {
    source: Arc<dyn ReceiptSource>,
    followed: Mutex<Followed>,
    /// The chain moved: what has not ended may have changed.
    moved: Notify,
    /// There are ids that were not read yet.
    fresh: Notify,
}

impl Shared {
    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some ids that one caller follows, until it is dropped.
struct Following {
    shared: Weak<Shared>,
    key: u64,
    ids: Arc<[B256]>,
    changes: mpsc::Receiver<Arc<Receipt>>,
    /// Why there are no more of them, but for the end of the server.
    end: Arc<OnceLock<End>>,
}

/// What came of waiting.
struct Waited {
    /// The last receipt that was told.
    receipt: Option<Arc<Receipt>>,
    /// The server ends.
    is_cut: bool,
}

impl Following {
    /// Until the envelope has come so far, or cannot any more, or the time is over; or until it gives way to others.
    async fn wait(mut self, state: EnvelopeState, deadline: Instant) -> Waited {
        let mut receipt: Option<Arc<Receipt>> = None;
        loop {
            match timeout_at(deadline, self.changes.recv()).await {
                Ok(Some(told)) => {
                    let is_there = told.state.has_reached(state);
                    receipt = Some(told);
                    if is_there {
                        return Waited { receipt, is_cut: false };
                    }
                }
                Ok(None) => return Waited { receipt, is_cut: self.end.get().is_none() },
                Err(_) => return Waited { receipt, is_cut: false },
            }
        }
    }

    /// Forgets what was read so far, and has all of it read again: what it follows has changed by the caller's own hand.
    fn begin_again(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut followed = shared.followed();
        let since = followed.reads + 1;
        for id in self.ids.iter() {
            let Some(entry) = followed.ids.get_mut(id) else { continue };
            if let Some(follower) = entry.followers.get_mut(&self.key) {
                (follower.since, follower.heard) = (since, false);
                entry.is_awaited();
                followed.fresh.insert(*id);
            }
        }
        while self.changes.try_recv().is_ok() {}
        drop(followed);
        shared.fresh.notify_one();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.followed().end(self.key, None);
        }
    }
}

impl std::fmt::Debug for ReceiptBoard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReceiptBoard").field("followed", &self.followed()).finish_non_exhaustive()
    }
}

impl ReceiptBoard {
    /// A board that reads there. Nothing is told before it [runs](Self::run).
    pub fn new(source: Arc<dyn ReceiptSource>) -> Self {
        let (followed, moved, fresh) = (Mutex::default(), Notify::new(), Notify::new());
        Self(Arc::new(Shared { source, followed, moved, fresh }))
    }

    /// How many ids are followed.
    pub fn followed(&self) -> usize {
        self.0.followed().ids.len()
    }

    /// Says that receipts may have changed. Costs nothing where nobody follows any.
    pub fn moved(&self) {
        self.0.moved.notify_one();
    }

    /// Reads and tells until it is to stop. Then whoever waits is told so, and nobody follows anything any more.
    pub async fn run(self, mut stop: Stop) {
        tokio::select! {
            biased;
            () = until(&mut stop) => {}
            () = self.read_on() => {}
        }
        self.0.followed().close();
    }

    async fn read_on(&self) {
        // What is still to be read since the chain moved.
        let mut due: VecDeque<B256> = VecDeque::new();
        let interval = Duration::from_millis(ENDED_RECEIPTS_INTERVAL_MS);
        let mut ended_read_at = now();
        // Since the chain moved last, what has ended was not read.
        let mut skipped_ended = false;
        // After a failure.
        let mut again_at: Option<Instant> = None;
        loop {
            let is_idle = due.is_empty() && self.0.followed().fresh.is_empty();
            // While there is something to read, only looked at.
            let patience =
                async { if is_idle { std::future::pending().await } else { std::future::ready(()).await } };
            let ended_at = skipped_ended.then(|| ended_read_at + interval);
            let begins = tokio::select! {
                biased;
                () = self.0.moved.notified(), if due.is_empty() => true,
                () = at(again_at), if due.is_empty() => true,
                () = at(ended_at), if due.is_empty() => true,
                () = self.0.fresh.notified(), if is_idle => false,
                () = patience => false,
            };
            if begins {
                again_at = None;
                skipped_ended = ended_read_at.elapsed() < interval;
                if !skipped_ended {
                    ended_read_at = now();
                }
                due = self.open(!skipped_ended);
            }
            let ids = self.next(&mut due);
            if !ids.is_empty()
                && let Err(error) = self.read(&ids).await
            {
                tracing::warn!(%error, ids = ids.len(), "receipts that are followed could not be read");
                again_at.get_or_insert(now() + Duration::from_millis(RECEIPTS_RETRY_MS));
            }
        }
    }

    /// What is read next: new ones first, and always some of the others, so that neither waits for ever.
    fn next(&self, due: &mut VecDeque<B256>) -> Vec<B256> {
        let mut followed = self.0.followed();
        let for_fresh = MAX_RECEIPTS - due.len().min(MAX_RECEIPTS / 2);
        let mut ids: Vec<B256> = followed.fresh.iter().take(for_fresh).copied().collect();
        for id in &ids {
            followed.fresh.remove(id);
        }
        let others = due.len().min(MAX_RECEIPTS - ids.len());
        ids.extend(due.drain(..others));
        ids
    }

    /// The ids that may change; with those of which that is hardly to be expected.
    fn open(&self, all: bool) -> VecDeque<B256> {
        let (followed, now) = (self.0.followed(), now());
        let open = followed.ids.iter().filter(|(_, entry)| all || entry.is_open(now));
        open.map(|(id, _)| *id).collect()
    }

    async fn read(&self, ids: &[B256]) -> Result<(), RpcError> {
        let read = {
            let mut followed = self.0.followed();
            followed.reads += 1;
            followed.reads
        };
        let receipts = self.0.source.receipts(ids.to_vec()).await;
        let mut followed = self.0.followed();
        let receipts = match receipts {
            Ok(receipts) => receipts,
            Err(error) => {
                for id in ids {
                    let Some(entry) = followed.ids.get_mut(id) else { continue };
                    let waiting = entry.followers.values_mut().filter(|follower| follower.since <= read);
                    waiting.for_each(|follower| follower.found = None);
                }
                return Err(error);
            }
        };
        let (mut ended, at) = (Vec::new(), now());
        for (id, receipt) in ids.iter().zip(receipts) {
            let Some(entry) = followed.ids.get_mut(id) else { continue };
            let differs = entry.told.as_deref() != receipt.as_ref();
            let is_forgotten = entry.was_read(receipt, at);
            let told = entry.told.clone();
            for (key, follower) in &mut entry.followers {
                if is_forgotten && follower.purpose == Purpose::Subscription {
                    ended.push((*key, End::UnknownIds));
                }
                if read < follower.since {
                    continue;
                }
                if let Some(found) = follower.found.take() {
                    // Most do not wait for it.
                    let _ = found.send(told.clone());
                }
                // Of one that is not known, or not any more, there is nothing to tell.
                let Some(told) = told.as_ref().filter(|_| differs || !follower.heard) else { continue };
                follower.heard = true;
                if follower.changes.try_send(Arc::clone(told)).is_err() {
                    ended.push((*key, End::TooSlow));
                }
            }
        }
        // They are told so by their end: of none of their ids anything comes any more.
        for (key, end) in ended {
            followed.end(key, Some(end));
        }
        Ok(())
    }

    /// Follows these ids: each receipt that is known comes at once, then whenever it changes. `found` is told of the first.
    fn follow(
        &self,
        caller: &Extensions,
        mut ids: Vec<B256>,
        purpose: Purpose,
        found: Option<Found>,
    ) -> Result<Following, RpcError> {
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() || ids.len() > MAX_RECEIPTS {
            return Err(too_many(ids.len()));
        }
        let ids: Arc<[B256]> = ids.into();
        let account = caller.get::<Recipient>().map(|recipient| recipient.account);
        let (sender, changes) = mpsc::channel(ids.len().saturating_mul(CHANGES_PER_ID));
        let mut followed = self.0.followed();
        if followed.closed {
            return Err(RpcError::unavailable("shutting_down", "the server is stopping"));
        }
        let Some((key, end)) = followed.follow(account, purpose, &ids, &sender, found) else {
            return Err(RpcError::busy(
                "overloaded",
                "as many receipts are followed here as may be, by this address or by all",
            ));
        };
        drop(followed);
        self.0.fresh.notify_one();
        Ok(Following { shared: Arc::downgrade(&self.0), key, ids, changes, end })
    }

    /// Serves one `blind_sendEnvelopeSync`: `sending` admits the envelope.
    ///
    /// # Errors
    /// As it is documented there.
    pub async fn send_sync(
        &self,
        caller: &Extensions,
        envelope: &Encoded<RawEnvelope>,
        options: SyncOptions,
        sending: impl Future<Output = Result<SentEnvelope, RpcError>>,
    ) -> Result<SyncedEnvelope, RpcError> {
        let timeout_ms = options.timeout_ms.unwrap_or(SYNC_TIMEOUT_MS);
        if timeout_ms > MAX_SYNC_TIMEOUT_MS {
            let message = format!("{timeout_ms} ms; a call waits {MAX_SYNC_TIMEOUT_MS} ms at most");
            return Err(RpcError::invalid_params("invalid_timeout", message));
        }
        let deadline = now() + Duration::from_millis(timeout_ms);
        let sending = in_turn(caller, sending);
        let Ok(id) = Envelope::decode(envelope.bytes()).map(|envelope| envelope.id()) else {
            // Its admission says what is wrong with it.
            let SentEnvelope { id, promise } = sending.await?;
            return Ok(SyncedEnvelope { id, promise, receipt: None });
        };
        // A place to wait is had first: an admitted envelope is not refused afterwards.
        let (sender, found) = oneshot::channel();
        let mut following = self.follow(caller, vec![id], Purpose::Call, Some(sender))?;
        let promise = match sending.await {
            Ok(sent) => sent.promise,
            // It came to an end, or is on its way: that is what is asked for.
            Err(refusal) if refusal.reason == ALREADY_KNOWN => None,
            // Who is too busy to take it may not have looked whether it is there.
            Err(refusal) => {
                let patience = now() + Duration::from_millis(REFUSED_RECEIPT_MS);
                match timeout_at(deadline.min(patience), found).await {
                    Ok(Ok(Some(receipt))) if is_in_batch(receipt.state) => None,
                    _ => return Err(refusal),
                }
            }
        };
        // One that was evicted, or skipped with another proof, waits again now.
        following.begin_again();
        match following.wait(options.until.into(), deadline).await {
            Waited { is_cut: true, .. } => {
                Err(RpcError::unavailable("shutting_down", "the server is stopping; the envelope goes on"))
            }
            Waited { receipt, .. } => {
                Ok(SyncedEnvelope { id, promise, receipt: receipt.as_deref().cloned() })
            }
        }
    }

    /// Serves one subscription until it ends.
    pub async fn serve(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        ids: Vec<B256>,
    ) -> SubscriptionResult {
        let mut following = match self.follow(extensions, ids, Purpose::Subscription, None) {
            Ok(following) => following,
            Err(refusal) => {
                pending.reject(refusal).await;
                return Ok(());
            }
        };
        let Ok(sink) = pending.accept().await else { return Ok(()) };
        let patience = Duration::from_millis(SLOW_CONSUMER_MS);
        let recipient = extensions.get::<Recipient>();
        loop {
            let change = tokio::select! {
                () = sink.closed() => return Ok(()),
                change = following.changes.recv() => change,
            };
            let Some(receipt) = change else {
                let why = following.end.get().map_or("the server is stopping: ask again", |end| end.words());
                return Err(SubscriptionError::from(why));
            };
            let raw = to_raw_value(&*receipt).map_err(|error| SubscriptionError::from(error.to_string()))?;
            if !room(recipient, raw.get().len(), patience).await {
                return Err(SubscriptionError::from("too slow: too many answers wait unread"));
            }
            match sink.send_timeout(SubscriptionMessage::from(raw.clone()), patience).await {
                Ok(()) => {}
                Err(SendTimeoutError::Closed(_)) => return Ok(()),
                Err(SendTimeoutError::Timeout(_)) => {
                    recipient.inspect(|recipient| recipient.outbox.written(raw.get().len()));
                    return Err(SubscriptionError::from("too slow: its connection does not drain"));
                }
            }
        }
    }
}

/// Admits an envelope in its caller's turn, as any other call would: more of his may wait for the chain than work.
async fn in_turn(
    caller: &Extensions,
    sending: impl Future<Output = Result<SentEnvelope, RpcError>>,
) -> Result<SentEnvelope, RpcError> {
    let _turn = match caller.get::<Recipient>() {
        Some(recipient) => turn_of(&recipient.turns, recipient.account).await?,
        None => None,
    };
    sending.await
}

/// Whether a batch has the envelope itself, and not a copy that was skipped.
const fn is_in_batch(state: EnvelopeState) -> bool {
    match state {
        EnvelopeState::Sealed
        | EnvelopeState::Certified
        | EnvelopeState::Executed
        | EnvelopeState::Malformed => true,
        EnvelopeState::Pending | EnvelopeState::Skipped | EnvelopeState::Expired | EnvelopeState::Void => {
            false
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// A list of ids that nobody answers for.
pub fn too_many(ids: usize) -> RpcError {
    RpcError::invalid_params("too_many_ids", format!("{ids} ids; one call has 1 to {MAX_RECEIPTS}"))
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, collections::HashMap, net::Ipv4Addr};

    use blindfold_runtime::spawn;
    use tokio::{sync::watch, task::JoinHandle, time::sleep};

    use super::*;
    use crate::{
        answers::Budget,
        limits::{
            MAX_AWAITED_RECEIPTS, MAX_CALLS_PER_ADDRESS, MAX_FOLLOWED_RECEIPTS,
            MAX_FOLLOWED_RECEIPTS_PER_ADDRESS, NEW_RECEIPT_MS, UNKNOWN_RECEIPT_MS,
        },
        peers::Account,
        turns::Turns,
    };

    /// Says of each id what it was told to.
    #[derive(Default)]
    struct Told {
        receipts: Mutex<HashMap<B256, Receipt>>,
        /// How many ids each read had.
        reads: Mutex<Vec<usize>>,
        failures: Mutex<usize>,
    }

    #[async_trait]
    impl ReceiptSource for Told {
        async fn receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
            self.reads.lock().unwrap().push(ids.len());
            let mut failures = self.failures.lock().unwrap();
            if *failures > 0 {
                *failures -= 1;
                return Err(RpcError::unavailable("source_unavailable", "scripted"));
            }
            let told = self.receipts.lock().unwrap();
            Ok(ids.iter().map(|id| told.get(id).cloned()).collect())
        }
    }

    impl Told {
        fn set(&self, number: u32, state: EnvelopeState) {
            self.receipts.lock().unwrap().insert(id(number), Receipt::new(id(number), state));
        }
    }

    fn id(number: u32) -> B256 {
        B256::left_padding_from(&number.to_be_bytes())
    }

    struct Running {
        board: ReceiptBoard,
        told: Arc<Told>,
        stop: watch::Sender<bool>,
        task: JoinHandle<()>,
    }

    impl Running {
        fn start() -> Self {
            let told = Arc::new(Told::default());
            let board = ReceiptBoard::new(Arc::clone(&told) as Arc<dyn ReceiptSource>);
            let stop = watch::Sender::new(false);
            let task = spawn(board.clone().run(stop.subscribe()));
            Self { board, told, stop, task }
        }

        fn follow(&self, ids: impl IntoIterator<Item = u32>) -> Following {
            self.follow_for(Purpose::Subscription, &Extensions::new(), ids).unwrap()
        }

        fn follow_for(
            &self,
            purpose: Purpose,
            caller: &Extensions,
            ids: impl IntoIterator<Item = u32>,
        ) -> Result<Following, RpcError> {
            self.board.follow(caller, ids.into_iter().map(id).collect(), purpose, None)
        }

        /// Until everything that is due was read.
        async fn moved(&self) {
            self.board.moved();
            self.settled().await;
        }

        async fn settled(&self) {
            sleep(Duration::from_millis(20)).await;
        }

        fn reads(&self) -> Vec<usize> {
            std::mem::take(&mut self.told.reads.lock().unwrap())
        }

        async fn wait(&self, number: u32, state: EnvelopeState) -> Option<EnvelopeState> {
            let deadline = now() + Duration::from_secs(5);
            let waited = self.follow([number]).wait(state, deadline).await;
            waited.receipt.map(|receipt| receipt.state)
        }
    }

    /// Somebody at an address of his own.
    fn caller(last: u8) -> Extensions {
        let account = Account::of(Ipv4Addr::new(192, 0, 2, last).into());
        let mut extensions = Extensions::new();
        let (budget, outbox) = (Budget::new(1, 1), Arc::default());
        let turns = Turns::new(MAX_CALLS_PER_ADDRESS);
        extensions.insert(Recipient { budget, outbox, turns, account, websocket: true });
        extensions
    }

    fn states(following: &mut Following) -> Vec<EnvelopeState> {
        let mut states = Vec::new();
        while let Ok(receipt) = following.changes.try_recv() {
            states.push(receipt.state);
        }
        states
    }

    use EnvelopeState::{Certified, Executed, Expired, Pending, Sealed, Skipped};

    #[tokio::test(start_paused = true)]
    async fn each_change_is_told_once_and_to_everybody_who_follows() {
        let running = Running::start();
        let mut first = running.follow([1, 1]);
        running.settled().await;
        assert_eq!(states(&mut first), [], "it is not known yet");
        running.told.set(1, Pending);
        running.moved().await;
        running.moved().await;
        assert_eq!(states(&mut first), [Pending]);
        let mut second = running.follow([1, 2]);
        running.settled().await;
        assert_eq!(states(&mut second), [Pending], "what is known comes at once");
        running.told.set(1, Certified);
        running.told.set(2, Skipped);
        running.moved().await;
        assert_eq!(states(&mut first), [Certified]);
        let mut seen = states(&mut second);
        seen.sort_unstable();
        assert_eq!(seen, [Certified, Skipped]);
        // One that gave way is not known for a while, and then waits again.
        running.told.receipts.lock().unwrap().remove(&id(1));
        running.moved().await;
        assert_eq!(states(&mut first), []);
        running.told.set(1, Certified);
        running.moved().await;
        assert_eq!(states(&mut first), [Certified]);
        drop(first);
        assert_eq!(running.board.followed(), 2);
        drop(second);
        assert_eq!(running.board.followed(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_read_at_once_new_ones_alone_and_those_that_ended_seldom() {
        let running = Running::start();
        let most = MAX_RECEIPTS as u32;
        let first = running.follow(0..most);
        running.settled().await;
        let _second = running.follow([1_000]);
        running.settled().await;
        assert_eq!(running.reads(), [MAX_RECEIPTS, 1]);
        running.moved().await;
        assert_eq!(running.reads(), [MAX_RECEIPTS, 1]);
        (0..most).for_each(|number| running.told.set(number, Executed));
        running.moved().await;
        running.reads();
        running.moved().await;
        assert_eq!(running.reads(), [1], "only what may go on");
        sleep(Duration::from_millis(ENDED_RECEIPTS_INTERVAL_MS)).await;
        assert_eq!(
            running.reads(),
            [MAX_RECEIPTS, 1],
            "L1 may take back what has ended, and nothing else moves"
        );
        drop(first);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_and_none_are_refused_and_nothing_is_left_of_them() {
        let running = Running::start();
        let caller = Extensions::new();
        let follow =
            |from: u32, count: u32| running.follow_for(Purpose::Subscription, &caller, from..from + count);
        for count in [0, MAX_RECEIPTS as u32 + 1] {
            assert_eq!(follow(0, count).err().unwrap().reason, "too_many_ids");
        }
        let mut all = Vec::new();
        let refused = loop {
            match follow(MAX_RECEIPTS as u32 * all.len() as u32, MAX_RECEIPTS as u32) {
                Ok(following) => all.push(following),
                Err(refusal) => break refusal,
            }
        };
        assert!(refused.retry && refused.reason == "overloaded");
        assert_eq!(running.board.followed(), MAX_FOLLOWED_RECEIPTS);
        drop(all);
        assert_eq!(running.board.followed(), 0);
    }

    /// Sixteen addresses took all there was from everybody.
    #[tokio::test(start_paused = true)]
    async fn whoever_follows_most_gives_way() {
        let (running, most) = (Running::start(), MAX_RECEIPTS as u32);
        let mut blocks = (1..).map(|block: u32| block * most..(block + 1) * most);
        let mut follow =
            |last: u8| running.follow_for(Purpose::Subscription, &caller(last), blocks.next().unwrap());
        let mut theirs: Vec<Following> = Vec::new();
        for last in (1..=16).flat_map(|last| [last; 16]) {
            theirs.push(follow(last).unwrap());
        }
        assert_eq!(running.board.followed(), MAX_FOLLOWED_RECEIPTS);
        let one = running.follow_for(Purpose::Subscription, &caller(17), [1]).unwrap();
        assert_eq!(running.board.followed(), MAX_FOLLOWED_RECEIPTS - MAX_RECEIPTS + 1);
        let gave_way = theirs.iter().position(|theirs| theirs.end.get() == Some(&End::GaveWay)).unwrap();
        assert_eq!(gave_way % 16, 0, "the oldest of its address");
        assert!(theirs[gave_way].changes.recv().await.is_none());
        // As much as the others have, and no more.
        let mine: Vec<Following> = std::iter::from_fn(|| follow(17).ok()).collect();
        assert_eq!(mine.len(), MAX_FOLLOWED_RECEIPTS_PER_ADDRESS / MAX_RECEIPTS - 1);
        assert!(one.end.get().is_none() && mine.iter().all(|mine| mine.end.get().is_none()));
        drop((one, mine, theirs));
        assert_eq!(running.board.followed(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn subscriptions_keep_no_call_from_waiting_and_one_that_gives_way_is_answered() {
        let running = Running::start();
        let mut subscriptions = Vec::new();
        for block in 1..=(MAX_FOLLOWED_RECEIPTS / MAX_RECEIPTS) as u32 {
            subscriptions
                .push(running.follow(block * MAX_RECEIPTS as u32..(block + 1) * MAX_RECEIPTS as u32));
        }
        let call = |last: u8| running.follow_for(Purpose::Call, &caller(last), [1]);
        let mut calls: Vec<Following> = Vec::new();
        for (last, count) in [(1, 4_096), (2, 4_095), (3, 4_095), (4, 4_095), (5, 3)] {
            calls.extend((0..count).map(|_| call(last).unwrap()));
        }
        assert_eq!(calls.len(), MAX_AWAITED_RECEIPTS);
        let newcomer = call(6).unwrap();
        let first = calls.remove(0);
        running.told.set(1, Pending);
        let waited = first.wait(Sealed, now() + Duration::from_secs(5)).await;
        assert!(!waited.is_cut && waited.receipt.is_none(), "answered with what is known");
        let waited = newcomer.wait(Pending, now() + Duration::from_secs(5)).await;
        assert_eq!(waited.receipt.map(|receipt| receipt.state), Some(Pending));
        assert!(calls.iter().chain(&subscriptions).all(|other| other.end.get().is_none()));
    }

    /// Calls that wait for the chain are many, and one address's filled a quarter of the queue of verification.
    #[tokio::test(start_paused = true)]
    async fn of_those_who_wait_no_more_are_admitted_at_a_time_than_of_others() {
        let running = Running::start();
        let (caller, envelope) = (caller(1), Encoded::from_bytes(vec![1]));
        let (under_way, most) = (Cell::new(0), Cell::new(0));
        let calls = (0..2 * MAX_CALLS_PER_ADDRESS).map(|_| {
            let sending = async {
                under_way.set(under_way.get() + 1);
                most.set(under_way.get().max(most.get()));
                sleep(Duration::from_millis(100)).await;
                under_way.set(under_way.get() - 1);
                Ok(SentEnvelope { id: id(1), promise: None })
            };
            running.board.send_sync(&caller, &envelope, SyncOptions::default(), sending)
        });
        let answers = futures::future::join_all(calls).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(most.get(), MAX_CALLS_PER_ADDRESS);
    }

    #[tokio::test(start_paused = true)]
    async fn ids_that_nobody_knows_are_looked_for_seldom_and_not_for_ever() {
        let running = Running::start();
        let caller = caller(1);
        running.told.set(1, Pending);
        let mut known = running.follow([1]);
        let mut with_unknown = running.follow([1, 2]);
        let call = running.follow_for(Purpose::Call, &caller, [3]).unwrap();
        running.settled().await;
        running.moved().await;
        running.reads();
        running.moved().await;
        assert_eq!(running.reads(), [3], "it may have been sent in this moment");
        sleep(Duration::from_millis(NEW_RECEIPT_MS)).await;
        running.moved().await;
        running.reads();
        running.moved().await;
        assert_eq!(running.reads(), [2], "the one that is known, and the one that a call waits for");
        sleep(Duration::from_millis(UNKNOWN_RECEIPT_MS)).await;
        running.moved().await;
        assert_eq!(states(&mut with_unknown), [Pending]);
        assert!(with_unknown.changes.recv().await.is_none());
        assert_eq!(with_unknown.end.get(), Some(&End::UnknownIds));
        running.told.set(1, Sealed);
        running.moved().await;
        assert_eq!(states(&mut known), [Pending, Sealed]);
        assert!(call.end.get().is_none());
        drop(with_unknown);
        // Whoever asks again has as long again.
        let again = running.follow([2]);
        running.settled().await;
        running.moved().await;
        assert!(again.end.get().is_none());
        assert_eq!(running.board.followed(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_dropped_and_harms_nobody() {
        let running = Running::start();
        let mut slow = running.follow([1]);
        let flip = [Pending, Sealed];
        for round in 0..=CHANGES_PER_ID {
            running.told.set(1, flip[round % 2]);
            running.moved().await;
        }
        let mut quick = running.follow([1]);
        running.settled().await;
        assert_eq!(states(&mut quick), [flip[CHANGES_PER_ID % 2]]);
        for _ in 0..CHANGES_PER_ID {
            assert!(slow.changes.recv().await.is_some());
        }
        assert!(slow.changes.recv().await.is_none(), "then it ends");
        drop(slow);
        running.told.set(1, Executed);
        running.moved().await;
        assert_eq!(states(&mut quick), [Executed]);
    }

    /// Of one of several ids there is no room: all of them end, so that whoever reads on knows it.
    #[tokio::test(start_paused = true)]
    async fn who_follows_several_and_does_not_read_hears_of_none_any_more() {
        let running = Running::start();
        let mut slow = running.follow([1, 2]);
        for round in 0..=2 * CHANGES_PER_ID {
            running.told.set(1, if round % 2 == 0 { Pending } else { Sealed });
            running.moved().await;
        }
        running.told.set(2, Certified);
        running.moved().await;
        let mut told = 0;
        while slow.changes.recv().await.is_some() {
            told += 1;
        }
        assert_eq!(told, 2 * CHANGES_PER_ID);
    }

    /// However many come anew, those who wait are told that the chain moved.
    #[tokio::test(start_paused = true)]
    async fn new_ones_do_not_keep_the_others_waiting() {
        let running = Running::start();
        let mut waiting = running.follow([1]);
        running.settled().await;
        let mut others = Vec::new();
        for round in 0..20 {
            others.push(running.follow(1_000 * (round + 1)..1_000 * (round + 1) + 200));
        }
        running.told.set(1, Sealed);
        running.board.moved();
        let told = async {
            for round in 20..60 {
                others.push(running.follow(1_000 * (round + 1)..1_000 * (round + 1) + 200));
                tokio::task::yield_now().await;
                if let Some(state) = states(&mut waiting).first() {
                    return *state;
                }
            }
            panic!("it was never told");
        };
        assert_eq!(told.await, Sealed);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_what_is_waited_for_or_with_time() {
        let running = Running::start();
        running.told.set(1, Sealed);
        assert_eq!(running.wait(1, Certified).await, Some(Sealed), "as it stands");
        assert_eq!(running.wait(2, Sealed).await, None);
        let moving = async {
            running.settled().await;
            running.told.set(1, Skipped);
            running.board.moved();
        };
        let (found, ()) = tokio::join!(running.wait(1, Certified), moving);
        assert_eq!(found, Some(Skipped), "it ends there");
        assert_eq!(running.board.followed(), 0);
    }

    /// What was read before an envelope was admitted again says nothing of it.
    #[tokio::test(start_paused = true)]
    async fn an_end_before_is_no_answer_to_who_sends_anew() {
        let running = Running::start();
        running.told.set(1, Expired);
        let _other = running.follow([1]);
        let mut following = running.follow([1]);
        running.settled().await;
        running.told.set(1, Pending);
        following.begin_again();
        let sealing = async {
            running.settled().await;
            running.told.set(1, Sealed);
            running.board.moved();
        };
        let deadline = now() + Duration::from_secs(5);
        let (waited, ()) = tokio::join!(following.wait(Sealed, deadline), sealing);
        assert_eq!(waited.receipt.map(|receipt| receipt.state), Some(Sealed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_fails_is_asked_again_although_nothing_moves() {
        let running = Running::start();
        running.told.set(1, Certified);
        *running.told.failures.lock().unwrap() = 2;
        assert_eq!(running.wait(1, Certified).await, Some(Certified));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_read_says_whether_an_envelope_is_known() {
        let running = Running::start();
        running.told.set(1, Certified);
        let _known_before = running.follow([1]);
        running.settled().await;
        let ask = async |number: u32| {
            let (sender, found) = oneshot::channel();
            let caller = Extensions::new();
            let following = running.board.follow(&caller, vec![id(number)], Purpose::Call, Some(sender));
            let _following = following.unwrap();
            found.await.map(|found| found.map(|receipt| receipt.state))
        };
        assert_eq!(ask(1).await, Ok(Some(Certified)));
        assert_eq!(ask(2).await, Ok(None));
        *running.told.failures.lock().unwrap() = 1;
        assert!(ask(1).await.is_err(), "nobody waits for a source that fails");
        assert_eq!(ask(1).await, Ok(Some(Certified)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_when_the_server_ends() {
        let mut running = Running::start();
        let following = running.follow([1]);
        running.stop.send_replace(true);
        let waited = following.wait(Sealed, now() + Duration::from_secs(5)).await;
        assert!(waited.is_cut && waited.receipt.is_none());
        (&mut running.task).await.unwrap();
        let refused = running.follow_for(Purpose::Subscription, &Extensions::new(), [1]).err().unwrap();
        assert_eq!(refused.reason, "shutting_down");
    }
}

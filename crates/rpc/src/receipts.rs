//! Receipts that are told as they change: who waits for an envelope asks once, and not again and again.
//!
//! A [`ReceiptBoard`] has the ids that somebody follows. When the chain moves, it reads the receipts of all of them, many in
//! one read, and tells each that differs to those who follow it. It believes its [`ReceiptSource`]: the store, or the server
//! behind a gateway.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use alloy_primitives::B256;
use blindfold_protocol::{Canonical, Envelope};
use blindfold_runtime::{Instant, Stop, until};
use jsonrpsee::{
    Extensions, PendingSubscriptionSink, SendTimeoutError, SubscriptionMessage,
    core::{SubscriptionError, SubscriptionResult, async_trait},
};
use serde_json::value::to_raw_value;
use tokio::{
    sync::{Notify, mpsc},
    time::timeout_at,
};

use crate::{
    Encoded, RawEnvelope, RpcError,
    answers::Recipient,
    hub::room,
    limits::{MAX_FOLLOWED_RECEIPTS, MAX_RECEIPTS, MAX_SYNC_TIMEOUT_MS, SLOW_CONSUMER_MS, SYNC_TIMEOUT_MS},
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
    /// The chain moved: everything may have changed.
    moved: Notify,
    /// There are ids that were not read yet.
    fresh: Notify,
}

impl Shared {
    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Followed {
    ids: HashMap<B256, Entry>,
    fresh: Vec<B256>,
    next: u64,
}

#[derive(Default)]
struct Entry {
    /// What was told last.
    told: Option<Receipt>,
    followers: Vec<(u64, mpsc::Sender<Receipt>)>,
}

/// Some ids that one caller follows, until it is dropped.
struct Following {
    shared: Weak<Shared>,
    key: u64,
    ids: Vec<B256>,
    changes: mpsc::Receiver<Receipt>,
}

impl Following {
    /// The last receipt, once it has come so far or the time is over.
    async fn wait(mut self, state: EnvelopeState, deadline: Instant) -> Option<Receipt> {
        let mut last = None;
        while let Ok(Some(receipt)) = timeout_at(deadline, self.changes.recv()).await {
            let is_there = receipt.state.has_reached(state);
            last = Some(receipt);
            if is_there {
                break;
            }
        }
        last
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut followed = shared.followed();
        for id in &self.ids {
            if let Some(entry) = followed.ids.get_mut(id) {
                entry.followers.retain(|(key, _)| *key != self.key);
                if entry.followers.is_empty() {
                    followed.ids.remove(id);
                }
            }
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

    /// Reads and tells until it is to stop.
    pub async fn run(self, mut stop: Stop) {
        loop {
            let all = tokio::select! {
                biased;
                () = until(&mut stop) => return,
                () = self.0.moved.notified() => true,
                () = self.0.fresh.notified() => false,
            };
            self.look(all).await;
        }
    }

    async fn look(&self, all: bool) {
        let ids: Vec<B256> = {
            let mut followed = self.0.followed();
            let fresh = std::mem::take(&mut followed.fresh);
            if all { followed.ids.keys().copied().collect() } else { fresh }
        };
        for ids in ids.chunks(MAX_RECEIPTS) {
            match self.0.source.receipts(ids.to_vec()).await {
                Ok(receipts) => self.tell(ids, receipts),
                // They are read again when the chain moves.
                Err(error) => {
                    tracing::warn!(%error, ids = ids.len(), "receipts that are followed could not be read")
                }
            }
        }
    }

    fn tell(&self, ids: &[B256], receipts: Vec<Option<Receipt>>) {
        let mut followed = self.0.followed();
        for (id, receipt) in ids.iter().zip(receipts) {
            let Some(entry) = followed.ids.get_mut(id) else { continue };
            // One that is not known any more waits again, or is known elsewhere: nothing is told of it.
            if receipt.is_none() || entry.told == receipt {
                continue;
            }
            if let Some(receipt) = &receipt {
                // Who has no room any more is told so by its end.
                entry.followers.retain(|(_, changes)| changes.try_send(receipt.clone()).is_ok());
            }
            entry.told = receipt;
        }
    }

    /// Follows these ids: each receipt that is known comes at once, then whenever it changes.
    fn follow(&self, mut ids: Vec<B256>) -> Result<Following, RpcError> {
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() || ids.len() > MAX_RECEIPTS {
            return Err(too_many(ids.len()));
        }
        let (sender, changes) = mpsc::channel(ids.len().saturating_mul(CHANGES_PER_ID));
        let mut followed = self.0.followed();
        if followed.ids.len() + ids.len() > MAX_FOLLOWED_RECEIPTS {
            return Err(RpcError::busy("overloaded", "as many receipts are followed here as may be"));
        }
        let key = followed.next;
        followed.next += 1;
        for id in &ids {
            let entry = followed.ids.entry(*id).or_default();
            if let Some(told) = &entry.told {
                // There is room for the first one of each.
                let _ = sender.try_send(told.clone());
            }
            entry.followers.push((key, sender.clone()));
        }
        followed.fresh.extend_from_slice(&ids);
        drop(followed);
        self.0.fresh.notify_one();
        Ok(Following { shared: Arc::downgrade(&self.0), key, ids, changes })
    }

    /// Waits until the envelope has come so far, or cannot any more, at most for this long. Gives its receipt as it is then,
    /// if it is known here.
    ///
    /// # Errors
    /// `overloaded` where too many are followed.
    pub async fn wait(
        &self,
        id: B256,
        state: EnvelopeState,
        patience: Duration,
    ) -> Result<Option<Receipt>, RpcError> {
        Ok(self.follow(vec![id])?.wait(state, blindfold_runtime::now() + patience).await)
    }

    /// Serves one `blind_sendEnvelopeSync`: `sending` admits the envelope.
    ///
    /// # Errors
    /// As it is documented there.
    pub async fn send_sync(
        &self,
        envelope: &Encoded<RawEnvelope>,
        options: SyncOptions,
        sending: impl Future<Output = Result<SentEnvelope, RpcError>>,
    ) -> Result<SyncedEnvelope, RpcError> {
        let timeout_ms = options.timeout_ms.unwrap_or(SYNC_TIMEOUT_MS);
        if timeout_ms > MAX_SYNC_TIMEOUT_MS {
            let message = format!("{timeout_ms} ms; a call waits {MAX_SYNC_TIMEOUT_MS} ms at most");
            return Err(RpcError::invalid_params("invalid_timeout", message));
        }
        let deadline = blindfold_runtime::now() + Duration::from_millis(timeout_ms);
        let Ok(id) = Envelope::decode(envelope.bytes()).map(|envelope| envelope.id()) else {
            // Its admission says what is wrong with it.
            let SentEnvelope { id, promise } = sending.await?;
            return Ok(SyncedEnvelope { id, promise, receipt: None });
        };
        // A place to wait is had first: an admitted envelope is not refused afterwards.
        let following = self.follow(vec![id])?;
        let promise = match sending.await {
            Ok(sent) => sent.promise,
            // It came to an end, or is on its way: that is what is asked for.
            Err(refusal) if refusal.reason == ALREADY_KNOWN => None,
            Err(refusal) => return Err(refusal),
        };
        self.read_anew(id);
        let receipt = following.wait(options.until.into(), deadline).await;
        Ok(SyncedEnvelope { id, promise, receipt })
    }

    fn read_anew(&self, id: B256) {
        self.0.followed().fresh.push(id);
        self.0.fresh.notify_one();
    }

    /// Serves one subscription until it ends.
    pub async fn serve(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        ids: Vec<B256>,
    ) -> SubscriptionResult {
        let mut following = match self.follow(ids) {
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
                return Err(SubscriptionError::from("too slow: too many changes wait unread"));
            };
            let raw = to_raw_value(&receipt).map_err(|error| SubscriptionError::from(error.to_string()))?;
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

/// A list of ids that nobody answers for.
pub fn too_many(ids: usize) -> RpcError {
    RpcError::invalid_params("too_many_ids", format!("{ids} ids; one call has 1 to {MAX_RECEIPTS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says of each id what it was told to.
    #[derive(Default)]
    struct Told(Mutex<HashMap<B256, Receipt>>, Mutex<Vec<usize>>);

    #[async_trait]
    impl ReceiptSource for Told {
        async fn receipts(&self, ids: Vec<B256>) -> Result<Vec<Option<Receipt>>, RpcError> {
            self.1.lock().unwrap().push(ids.len());
            let told = self.0.lock().unwrap();
            Ok(ids.iter().map(|id| told.get(id).cloned()).collect())
        }
    }

    fn id(number: u16) -> B256 {
        B256::left_padding_from(&number.to_be_bytes())
    }

    impl Told {
        fn set(&self, number: u16, state: EnvelopeState) {
            self.0.lock().unwrap().insert(id(number), Receipt::new(id(number), state));
        }
    }

    fn board() -> (ReceiptBoard, Arc<Told>) {
        let told = Arc::new(Told::default());
        (ReceiptBoard::new(Arc::clone(&told) as Arc<dyn ReceiptSource>), told)
    }

    async fn states(following: &mut Following) -> Vec<EnvelopeState> {
        let mut states = Vec::new();
        while let Ok(receipt) = following.changes.try_recv() {
            states.push(receipt.state);
        }
        states
    }

    #[tokio::test]
    async fn each_change_is_told_once_and_to_everybody_who_follows() {
        let (board, told) = board();
        let mut first = board.follow(vec![id(1), id(1)]).unwrap();
        board.look(false).await;
        assert_eq!(states(&mut first).await, [], "it is not known yet");
        told.set(1, EnvelopeState::Pending);
        board.look(true).await;
        board.look(true).await;
        assert_eq!(states(&mut first).await, [EnvelopeState::Pending]);
        let mut second = board.follow(vec![id(1), id(2)]).unwrap();
        told.set(1, EnvelopeState::Certified);
        told.set(2, EnvelopeState::Skipped);
        board.look(true).await;
        assert_eq!(states(&mut first).await, [EnvelopeState::Certified]);
        let expected = [EnvelopeState::Pending, EnvelopeState::Certified, EnvelopeState::Skipped];
        let mut seen = states(&mut second).await;
        seen.sort_unstable();
        assert_eq!(seen, expected, "what was told before comes at once");
        drop(first);
        assert_eq!(board.followed(), 2);
        drop(second);
        assert_eq!(board.followed(), 0);
    }

    #[tokio::test]
    async fn many_are_read_at_once_and_new_ones_alone() {
        let (board, told) = board();
        let first: Vec<B256> = (0..MAX_RECEIPTS as u16).map(id).collect();
        let _first = board.follow(first).unwrap();
        let _second = board.follow(vec![id(1_000)]).unwrap();
        board.look(false).await;
        let _third = board.follow(vec![id(1_001)]).unwrap();
        board.look(false).await;
        board.look(false).await;
        assert_eq!(*told.1.lock().unwrap(), [MAX_RECEIPTS, 1, 1]);
        board.look(true).await;
        assert_eq!(told.1.lock().unwrap().split_off(3), [MAX_RECEIPTS, 2]);
    }

    #[tokio::test]
    async fn too_many_and_none_are_refused_and_nothing_is_left_of_them() {
        let (board, _told) = board();
        let many: Vec<B256> = (0..=MAX_RECEIPTS as u16).map(id).collect();
        for ids in [vec![], many] {
            assert_eq!(board.follow(ids).err().unwrap().reason, "too_many_ids");
        }
        let mut all = Vec::new();
        let mut next = 0u32;
        let refused = loop {
            let ids = (next..next + MAX_RECEIPTS as u32).map(|n| B256::left_padding_from(&n.to_be_bytes()));
            match board.follow(ids.collect()) {
                Ok(following) => all.push(following),
                Err(refusal) => break refusal,
            }
            next += MAX_RECEIPTS as u32;
        };
        assert!(refused.retry && refused.reason == "overloaded");
        assert_eq!(board.followed(), MAX_FOLLOWED_RECEIPTS);
        drop(all);
        assert_eq!(board.followed(), 0);
    }

    #[tokio::test]
    async fn who_does_not_read_is_dropped_and_harms_nobody() {
        let (board, told) = board();
        let mut slow = board.follow(vec![id(1)]).unwrap();
        let flip = [EnvelopeState::Pending, EnvelopeState::Sealed];
        for round in 0..=CHANGES_PER_ID {
            told.set(1, flip[round % 2]);
            board.look(true).await;
        }
        let mut quick = board.follow(vec![id(1)]).unwrap();
        assert_eq!(states(&mut quick).await, [flip[CHANGES_PER_ID % 2]]);
        for _ in 0..CHANGES_PER_ID {
            assert!(slow.changes.recv().await.is_some());
        }
        assert!(slow.changes.recv().await.is_none(), "then it ends");
        drop(slow);
        told.set(1, EnvelopeState::Executed);
        board.look(true).await;
        assert_eq!(states(&mut quick).await, [EnvelopeState::Executed]);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_what_is_waited_for_or_with_time() {
        let (board, told) = board();
        let stop = tokio::sync::watch::Sender::new(false);
        let running = blindfold_runtime::spawn(board.clone().run(stop.subscribe()));
        told.set(1, EnvelopeState::Sealed);
        let patience = Duration::from_secs(5);
        let late = board.wait(id(1), EnvelopeState::Certified, patience).await.unwrap();
        assert_eq!(late.map(|receipt| receipt.state), Some(EnvelopeState::Sealed), "as it stands");
        assert_eq!(board.wait(id(2), EnvelopeState::Sealed, patience).await, Ok(None));
        let waiting = board.wait(id(1), EnvelopeState::Certified, patience);
        let moving = async {
            tokio::task::yield_now().await;
            told.set(1, EnvelopeState::Skipped);
            board.moved();
        };
        let (found, ()) = tokio::join!(waiting, moving);
        assert_eq!(
            found.unwrap().map(|receipt| receipt.state),
            Some(EnvelopeState::Skipped),
            "it ends there"
        );
        assert_eq!(board.followed(), 0);
        stop.send_replace(true);
        running.await.unwrap();
    }
}

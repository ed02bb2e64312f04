//! Hints are verified beside the feed: a header never waits for them.

use std::sync::Arc;

use blindfold_protocol::BatchHints;
use blindfold_runtime::{Stop, until};
use tokio::sync::mpsc;

use crate::{limits::MAX_WAITING_HINTS, source::Followed};

/// Where hints wait.
#[derive(Clone)]
pub(crate) struct HintQueue(mpsc::Sender<Arc<BatchHints>>);

impl HintQueue {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Arc<BatchHints>>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_HINTS);
        (Self(sender), receiver)
    }

    /// Queues hints. Where too many wait they are left: the next look at the source brings them again.
    pub(crate) fn offer(&self, hints: BatchHints) {
        drop(self.0.try_send(Arc::new(hints)));
    }
}

/// Verifies what waits, one batch after the other, and hands it on.
pub(crate) async fn verify_all(
    followed: Arc<Followed>,
    mut waiting: mpsc::Receiver<Arc<BatchHints>>,
    mut stop: Stop,
) {
    loop {
        tokio::select! {
            () = until(&mut stop) => return,
            hints = waiting.recv() => match hints {
                Some(hints) => followed.take_hints(hints).await,
                None => return,
            },
        }
    }
}

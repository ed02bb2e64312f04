//! Asking the sequencer for what the feed did not bring, beside following: one that is slow holds nothing up.

use std::sync::Arc;

use blindfold_rpc::types::BatchInfo;
use blindfold_rpc::{BlindApiClient, HttpClient, ReceivedError};
use blindfold_runtime::joined;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::node::Node;
use crate::sync::SyncEnd;

/// The batch of a number, or why there is none.
pub(crate) type RoundAnswer = Result<(u64, BatchInfo), SyncEnd>;

/// A round over the sequencer's batches, number by number. One question is under way at a time, so that one answer is in
/// memory and the next question asks for what is still missing then. Nothing is taken here. Dropping it ends the question
/// under way.
pub(crate) struct SequencerRound {
    node: Arc<Node>,
    question: JoinSet<RoundAnswer>,
}

impl SequencerRound {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, question: JoinSet::new() }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        !self.question.is_empty()
    }

    /// Asks for the batch of this number, unless a question is under way.
    pub(crate) fn ask(&mut self, number: u64) {
        if !self.is_under_way() {
            let node = Arc::clone(&self.node);
            self.question.spawn(async move { batch_of(&node, number).await });
        }
    }

    /// The answer to the question under way; for ever where there is none. Nothing is lost when the future is dropped.
    pub(crate) async fn answer(&mut self) -> RoundAnswer {
        match self.question.join_next().await {
            Some(answer) => joined(answer).unwrap_or(Err(SyncEnd::Unavailable)),
            None => std::future::pending().await,
        }
    }
}

async fn batch_of(node: &Node, number: u64) -> RoundAnswer {
    let Some(sequencer) = &node.sequencer else { return Err(SyncEnd::Unavailable) };
    if has_no_more(node, sequencer, number).await {
        return Err(SyncEnd::Done);
    }
    match sequencer.get_batch(number).await {
        Ok(Some(info)) => Ok((number, info)),
        Ok(None) => Err(SyncEnd::Done),
        Err(error) => {
            let error = ReceivedError::from(error);
            tracing::debug!(number, %error, "the sequencer gives no batch");
            Err(SyncEnd::Unavailable)
        }
    }
}

/// Whether the feed has brought all that the sequencer has, so that asking for the batch would bring it a second time. Only a
/// batch that is here already is worth the question. Its word is as good as that it has no such batch.
async fn has_no_more(node: &Node, sequencer: &HttpClient, number: u64) -> bool {
    let head = node.tracker.head();
    if head.number < number {
        return false;
    }
    let step = node.fetcher.hedge().step;
    match timeout(step, BlindApiClient::get_status(sequencer)).await {
        Ok(Ok(status)) => {
            (status.head.number, status.head.hash) == (head.number, head.hash) && status.certified < number
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

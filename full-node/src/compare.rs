//! Holding our blocks against those that the sequencer announces. The node follows its own computation; a difference
//! is reported loudly.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_chain::{NewBlock, announce};
use blindfold_runtime::until;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};

use crate::limits::MAX_ANNOUNCED_BLOCKS;
use crate::node::Node;

pub(crate) struct Comparison {
    node: Arc<Node>,
    /// What the sequencer announced and we have not executed yet.
    announced: BTreeMap<u64, B256>,
}

impl Comparison {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, announced: BTreeMap::new() }
    }

    /// Tells subscribers of our blocks, and compares, until told to stop.
    pub(crate) async fn run(
        mut self,
        mut ours: broadcast::Receiver<Arc<NewBlock>>,
        mut theirs: mpsc::Receiver<(u64, B256)>,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            tokio::select! {
                () = until(&mut stop) => return,
                block = ours.recv() => match block {
                    Ok(block) => self.executed(&block),
                    Err(RecvError::Lagged(_)) => self.sweep().await,
                    Err(RecvError::Closed) => return,
                },
                block = theirs.recv() => match block {
                    Some((number, hash)) => self.announced(number, hash).await,
                    None => return,
                },
            }
        }
    }

    fn executed(&mut self, block: &NewBlock) {
        self.node.counters.blocks_executed.increment();
        self.node.hub.publish(&announce::block(block));
        if let Some(theirs) = self.announced.remove(&block.record.number) {
            self.compare(block.record.number, block.record.hash, theirs);
        }
    }

    async fn announced(&mut self, number: u64, hash: B256) {
        match self.node.tracker.store().block(number).await {
            Ok(Some(ours)) => self.compare(number, ours.hash, hash),
            Ok(None) => {
                self.announced.insert(number, hash);
                while self.announced.len() > MAX_ANNOUNCED_BLOCKS {
                    // A later block stands for its ancestors.
                    self.announced.pop_first();
                }
            }
            Err(error) => tracing::error!(number, %error, "the disk does not give the block"),
        }
    }

    /// Compares everything that was announced with what is on disk.
    async fn sweep(&mut self) {
        for (number, hash) in std::mem::take(&mut self.announced) {
            self.announced(number, hash).await;
        }
    }

    fn compare(&self, number: u64, ours: B256, theirs: B256) {
        self.node.counters.blocks_compared.increment();
        if ours != theirs {
            self.node.counters.block_divergences.increment();
            tracing::error!(
                number, %ours, %theirs,
                "the sequencer announced another block than the one its headers and hints give; following ours"
            );
        }
    }
}

//! What a coprocessor tells of how far the chain stands on L1.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use blindfold_rpc::RunningRole;
use std::sync::Arc;

use alloy_primitives::keccak256;
use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Origin, L1Reader, Sealed, VoidRun};
use blindfold_coprocessor::ExecutionState;
use blindfold_kit::*;
use blindfold_l1::{
    HintEvent, HintPosting, HintTree, KeyedBatch, PostedData, PostedLog, PostedRun, RunReference,
};
use blindfold_protocol::{Address, B256};
use blindfold_rpc::confidential::{ConfidentialApiClient, Standing};
use blindfold_store::{SqlStore, Store};
use common::*;

/// L1 as it stands from the start: three runs of one batch each. The first has final hints, or is void; the second has hints,
/// that are ours, and its data; the third is posted.
struct Posted {
    sealed: Vec<Sealed>,
    void: bool,
}

/// The L1 block of a run: after that of the genesis.
fn posted_at(index: usize) -> u64 {
    chain_config().genesis_l1_origin + 1 + index as u64
}

impl Posted {
    fn run(&self, index: usize) -> PostedRun {
        PostedRun::new(vec![self.sealed[index].batch.header], posted_at(index)).expect("a header")
    }
}

#[async_trait]
impl L1Reader for Posted {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        Ok(l1_block(10))
    }

    async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        let within = |index: &usize| (after + 1..=through).contains(&posted_at(*index));
        let posted = |index: usize| (self.run(index).run, self.sealed[index].batch.header.hash());
        Ok((0..3).filter(within).map(posted).collect())
    }

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        let second = &self.sealed[1];
        let hints = vec![open_batch(&second.batch, &second.verdicts).1];
        let root = HintTree::new(&HintPosting::of(&hints), 2).root();
        let (publisher, transaction) = (Address::repeat_byte(1), B256::ZERO);
        let posted = PostedLog { id: 1, first: 2, last: 2, publisher, l1_block: 5, transaction, root };
        let settled = match self.void {
            true => HintEvent::Voided { first: 1, last: 1 },
            false => HintEvent::Finalized { id: 2, first: 1, last: 1 },
        };
        let events = [(5, HintEvent::Posted(posted)), (6, settled)];
        let within = |block: &u64| (after + 1..=through).contains(block);
        Ok(events.into_iter().filter(|(block, _)| within(block)).map(|(_, event)| event).collect())
    }

    async fn claim_delay(&self) -> Result<u64, L1Error> {
        Ok(0)
    }

    async fn posted_data(
        &self,
        run: &RunReference,
        _: Vec<KeyedBatch>,
        _: u64,
    ) -> Result<PostedData, L1Error> {
        Ok(PostedData::of(vec![(*self.sealed[run.last as usize - 1].batch).clone()]))
    }
}

#[tokio::test]
async fn statuses_tell_what_is_safe_and_what_is_final() {
    let mut world = World::new().await;
    let mut sealed = Vec::new();
    for number in 1..=4 {
        let amount = number as u8;
        sealed.push(world.batch((number - 1) * 250, &[confidential(number, &[&[1, amount]])]).await);
    }
    world.settlement = Some(Arc::new(Posted { sealed, void: false }));
    // Execution sees no less of L1 than what tells the marks.
    world.l1.advance(1_000);
    let store = Arc::new(SqlStore::in_memory().unwrap());
    let coprocessor = world.try_start(store.clone(), store).await.unwrap();
    executed(&coprocessor, 4).await;
    let client = client(coprocessor.rpc_addr());
    // The marks follow the batches: they are looked at again until they are there, no more often than callers may ask.
    let marks = async || {
        let status = client.get_status().await.unwrap();
        (status.batch, status.safe, status.finalized)
    };
    within("the marks", async {
        while marks().await != (4, 2, 1) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    for (amount, standing) in
        [(1, Standing::Finalized), (2, Standing::Safe), (3, Standing::Latest), (4, Standing::Latest)]
    {
        let info = client.get_transaction(keccak256([1, amount])).await.unwrap().unwrap();
        assert_eq!(info.standing, standing, "batch {amount}");
    }
    coprocessor.shutdown().await;
}

/// A run that L1 declared void is settled for good as well: a transaction of it that was executed here, which no other
/// coprocessor has, was told to be final.
#[tokio::test]
async fn nothing_that_was_executed_of_a_void_batch_is_told_to_be_final() {
    let mut world = World::new().await;
    let mut sealed = Vec::new();
    for number in 1..=4 {
        let amount = number as u8;
        sealed.push(world.batch((number - 1) * 250, &[confidential(number, &[&[1, amount]])]).await);
    }
    let store = Arc::new(SqlStore::in_memory().unwrap());
    let coprocessor = world.try_start(store.clone(), store.clone()).await.unwrap();
    executed(&coprocessor, 4).await;
    coprocessor.shutdown().await;

    world.settlement = Some(Arc::new(Posted { sealed, void: true }));
    world.l1.advance(1_000);
    world.l1.void_runs.lock().push(VoidRun { first: 1, last: 1 });
    let coprocessor = world.try_start(store.clone(), store.clone()).await.unwrap();
    within("the marks", async {
        while store.meta("settlement").await.unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut status = coprocessor.watch_status();
    let halted = status.wait_for(|status| matches!(status.state, ExecutionState::Halted(_)));
    within("the halt", halted).await.unwrap();
    let client = client(coprocessor.rpc_addr());
    let info = client.get_transaction(keccak256([1, 1])).await.unwrap().unwrap();
    assert_eq!((info.applied, info.standing), (true, Standing::Latest));
    assert_eq!(client.get_status().await.unwrap().finalized, 0);
    coprocessor.shutdown().await;
}

use std::{collections::HashMap, sync::Mutex};

use alloy_primitives::{B256, Bytes};
use serde_json::Value;

use super::*;
use crate::{BlockInputs, ExecutedBlock, ReadError, payload::tests::sample};

/// A client that knows blocks by hash and has one canonical chain, ending in its head.
struct FakeClient {
    known: Mutex<HashMap<B256, BlockId>>,
    canonical: Mutex<Vec<BlockId>>,
    imports: Mutex<u64>,
}

fn hash(branch: u8, number: u64) -> B256 {
    let mut hash = B256::repeat_byte(branch);
    hash[..8].copy_from_slice(&number.to_be_bytes());
    hash
}

fn id(branch: u8, number: u64) -> BlockId {
    BlockId { number, hash: hash(branch, number), timestamp: number + 100 }
}

impl FakeClient {
    /// Knows `branch` up to `head`, all of it on top of one genesis.
    fn new(branch: u8, head: u64) -> Self {
        let chain: Vec<_> =
            (0..=head).map(|number| id(if number == 0 { 0 } else { branch }, number)).collect();
        Self {
            known: Mutex::new(chain.iter().map(|block| (block.hash, *block)).collect()),
            canonical: Mutex::new(chain),
            imports: Mutex::new(0),
        }
    }
}

#[async_trait]
impl ExecutionClient for FakeClient {
    async fn ensure_compatible(&self, _chain_id: u64) -> Result<(), EngineError> {
        Ok(())
    }

    async fn head(&self) -> Result<BlockId, EngineError> {
        Ok(*self.canonical.lock().unwrap().last().unwrap())
    }

    async fn block(&self, number: u64) -> Result<Option<BlockId>, EngineError> {
        Ok(self.canonical.lock().unwrap().get(number as usize).copied())
    }

    async fn finalized(&self) -> Result<Option<u64>, EngineError> {
        unreachable!("a replay asks for no mark")
    }

    async fn execute(&self, _: B256, _: &BlockInputs, _: &[Bytes]) -> Result<ExecutedBlock, EngineError> {
        unreachable!("a replay builds nothing")
    }

    async fn import(&self, payload: &StoredPayload) -> Result<(), EngineError> {
        *self.imports.lock().unwrap() += 1;
        let mut known = self.known.lock().unwrap();
        let Some(parent) = known.get(&payload.parent_hash()).copied() else {
            return Err(EngineError::UnknownBlock { hash: payload.id().hash });
        };
        known.insert(payload.id().hash, payload.id());
        let mut canonical = self.canonical.lock().unwrap();
        canonical.truncate(parent.number as usize + 1);
        assert_eq!(canonical.last().unwrap().hash, parent.hash, "imports go from parent to child");
        canonical.push(payload.id());
        Ok(())
    }

    async fn rewind(&self, _: B256) -> Result<(), EngineError> {
        unreachable!("a replay goes back by importing")
    }

    async fn set_finality(&self, _: B256, _: B256) -> Result<(), EngineError> {
        unreachable!("a replay marks nothing")
    }

    async fn read(&self, _: &str, _: Value) -> Result<Value, ReadError> {
        unreachable!("a replay reads nothing")
    }
}

/// Payloads of branch 1, except what a test takes away.
struct FakeSource(HashMap<u64, StoredPayload>);

impl FakeSource {
    fn up_to(head: u64) -> Self {
        let parent = |number: u64| hash(if number == 1 { 0 } else { 1 }, number - 1);
        Self((1..=head).map(|n| (n, sample(n, hash(1, n), parent(n), Vec::new()))).collect())
    }
}

#[async_trait]
impl PayloadSource for FakeSource {
    async fn payload(&self, number: u64) -> Result<Option<StoredPayload>, PayloadSourceError> {
        if number == 666 {
            return Err(PayloadSourceError { number, source: "disk on fire".into() });
        }
        Ok(self.0.get(&number).cloned())
    }
}

async fn run(client: &FakeClient, source: &FakeSource, head: u64) -> Result<ReplayReport, ReplayError> {
    let target = id(if head == 0 { 0 } else { 1 }, head);
    let report = replay(client, source, target).await?;
    assert_eq!(client.block(head).await.unwrap(), Some(target));
    assert_eq!(report.imported, *client.imports.lock().unwrap());
    Ok(report)
}

#[tokio::test]
async fn brings_the_missing_blocks() {
    for (theirs, ours) in [(0, 0), (0, 1), (0, 9), (4, 9), (8, 9), (9, 9)] {
        let report = run(&FakeClient::new(1, theirs), &FakeSource::up_to(ours), ours).await.unwrap();
        assert_eq!(report, ReplayReport { common: theirs, imported: ours - theirs });
    }
}

#[tokio::test]
async fn leaves_a_client_alone_that_is_ahead() {
    let report = run(&FakeClient::new(1, 12), &FakeSource::up_to(9), 9).await.unwrap();
    assert_eq!(report, ReplayReport { common: 9, imported: 0 });
}

#[tokio::test]
async fn leaves_another_branch() {
    for theirs in [1, 5, 9, 12] {
        let report = run(&FakeClient::new(2, theirs), &FakeSource::up_to(9), 9).await.unwrap();
        assert_eq!(report, ReplayReport { common: 0, imported: 9 });
    }
}

#[tokio::test]
async fn says_what_is_missing_or_broken() {
    let mut source = FakeSource::up_to(9);
    source.0.remove(&6);
    let error = run(&FakeClient::new(1, 3), &source, 9).await.unwrap_err();
    assert!(matches!(error, ReplayError::Missing { number: 6, target: 9 }), "{error}");
    assert_eq!(error.recovery(), Recovery::GiveUp);

    let mut source = FakeSource::up_to(9);
    source.0.insert(6, sample(6, hash(1, 6), hash(3, 5), Vec::new()));
    let error = run(&FakeClient::new(1, 3), &source, 9).await.unwrap_err();
    assert!(matches!(error, ReplayError::BrokenChain { number: 6 }), "{error}");

    let mut source = FakeSource::up_to(9);
    source.0.insert(5, sample(6, hash(1, 6), hash(1, 5), Vec::new()));
    let error = run(&FakeClient::new(1, 3), &source, 9).await.unwrap_err();
    assert!(matches!(error, ReplayError::BrokenChain { number: 5 }), "{error}");

    let mut source = FakeSource::up_to(9);
    source.0.insert(9, sample(9, hash(4, 9), hash(1, 8), Vec::new()));
    let error = run(&FakeClient::new(1, 3), &source, 9).await.unwrap_err();
    assert!(matches!(error, ReplayError::BrokenChain { number: 9 }), "{error}");
}

#[tokio::test]
async fn refuses_another_genesis_and_passes_failures_on() {
    let client = FakeClient::new(1, 0);
    client.canonical.lock().unwrap()[0] = id(8, 0);
    let error = replay(&client, &FakeSource::up_to(3), id(1, 3)).await.unwrap_err();
    assert!(matches!(error, ReplayError::DifferentGenesis), "{error}");
    let error = replay(&client, &FakeSource::up_to(0), id(0, 0)).await.unwrap_err();
    assert!(matches!(error, ReplayError::DifferentGenesis), "{error}");

    let client = FakeClient::new(1, 3);
    client.known.lock().unwrap().clear();
    let error = replay(&client, &FakeSource::up_to(5), id(1, 5)).await.unwrap_err();
    assert!(matches!(error, ReplayError::Engine(EngineError::UnknownBlock { .. })), "{error}");
    assert_eq!(error.recovery(), Recovery::Replay);

    let error = replay(&FakeClient::new(2, 700), &FakeSource::up_to(5), id(1, 666)).await.unwrap_err();
    assert!(matches!(error, ReplayError::Source(PayloadSourceError { number: 666, .. })), "{error}");
    assert_eq!(error.recovery(), Recovery::Retry);
}

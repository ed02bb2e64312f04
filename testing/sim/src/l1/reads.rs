//! What roles read.

use std::{iter, sync::Arc};

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader, MAX_FORCED_ENTRIES, VoidRun,
};
use blindfold_client::{CommitteeKeyError, CommitteeSource};
use blindfold_l1::{
    DataError, FoundData, HintEvent, OpenAccusation, OutputStanding, PostedData, PostedHead, PostedHints,
    PostedRun, Posting, RunReference,
};
use blindfold_protocol::{B256, BatchHeader, Epochs, ForcedEntry};

use super::{Posted, View};
use crate::{Role, plants::Plant};

/// Blocks between a header's posting and what is paid out by its ledger.
const CLAIM_DELAY: u64 = 64;

#[async_trait]
impl L1Reader for View {
    async fn finalized(&self) -> Result<L1Origin, L1Error> {
        let not_final = self.has(Plant::OriginNotFinal, Role::Sequencer);
        self.read(|state| self.l1.block(state, if not_final { state.newest } else { state.finalized })).await
    }

    async fn newest(&self) -> Result<u64, L1Error> {
        self.read_newest(|state| state.newest).await
    }

    async fn origin(&self, number: u64) -> Result<Option<L1Origin>, L1Error> {
        let not_final = self.has(Plant::OriginNotFinal, Role::Sequencer);
        self.read(|state| {
            let last = if not_final { state.newest } else { state.finalized };
            (number <= last).then(|| self.l1.block(state, number))
        })
        .await
    }

    async fn epochs(&self) -> Result<Epochs, L1Error> {
        self.read(|_| self.l1.0.epochs.clone()).await
    }

    async fn announced_end(&self) -> Result<Option<AnnouncedEnd>, L1Error> {
        self.read(|_| None).await
    }

    async fn facts(&self, after: u64, through: u64, cursor: u64) -> Result<L1News, L1Error> {
        self.read(|state| {
            let within = |l1_block: u64| (after + 1..=through).contains(&l1_block);
            let within = state.ledger.iter().filter(|event| within(event.l1_block()));
            let times = match self.l1.0.plant {
                Some(Plant::CountsDepositsTwice) => 2,
                Some(Plant::MissesDeposits) if self.life.role == Role::Node(1) => 0,
                _ => 1,
            };
            let ledger = within.flat_map(|event| iter::repeat_n(event.clone(), times)).collect();
            let waits = |entry: &&ForcedEntry| entry.index >= cursor && entry.enqueued_at <= through;
            let most = if self.has(Plant::LeavesOutForced, Role::Sequencer) { 0 } else { MAX_FORCED_ENTRIES };
            let forced = state.forced.iter().filter(waits).take(most).cloned().collect();
            L1News { ledger, forced }
        })
        .await
    }

    async fn bridge_deposits(&self, _after: u64, _through: u64) -> Result<Vec<L1Deposit>, L1Error> {
        self.read(|_| Vec::new()).await
    }

    async fn l1_header(&self, _number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        self.read(|_| None).await
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        self.read(|_| None).await
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        self.read_newest(|state| (number <= state.newest).then(|| self.l1.block(state, number).hash)).await
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        self.read(|_| Vec::new()).await
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.read(|state| {
            let posted = state.posting_of(number).map(|posted| posted.run.run.posted_at);
            posted.filter(|block| *block <= state.finalized)
        })
        .await
    }

    async fn hints_on_l1(&self, _number: u64) -> Result<bool, L1Error> {
        self.read(|_| false).await
    }

    async fn newest_time(&self) -> Result<Option<u64>, L1Error> {
        self.read_newest(|state| Some(self.l1.block(state, state.newest).timestamp)).await
    }

    async fn posted_runs(&self, after: u64, through: u64) -> Result<Vec<(RunReference, B256)>, L1Error> {
        self.read(|state| {
            let runs = state.posted.iter().map(|posted| &posted.run);
            let within = runs.filter(|run| (after + 1..=through).contains(&run.run.posted_at));
            let head_hash = |run: &PostedRun| run.headers.last().map_or(B256::ZERO, BatchHeader::hash);
            within.map(|run| (run.run, head_hash(run))).collect()
        })
        .await
    }

    async fn hint_events(&self, _after: u64, _through: u64) -> Result<Vec<HintEvent>, L1Error> {
        self.read(|_| Vec::new()).await
    }

    async fn claim_delay(&self) -> Result<u64, L1Error> {
        self.read(|_| CLAIM_DELAY).await
    }

    async fn posted_data(&self, run: &RunReference, _through: u64) -> Result<PostedData, L1Error> {
        self.read(|state| match state.posted.iter().find(|posted| posted.run.run == *run) {
            Some(posted) => PostedData::of(posted.batches.clone()),
            None => PostedData::missing((run.last - run.first + 1) as usize, DataError::Absent),
        })
        .await
    }

    async fn postings(&self, after: u64, through: u64) -> Result<Vec<Posting>, L1Error> {
        self.read(|state| {
            let within = |posted: &&Arc<Posted>| (after + 1..=through).contains(&posted.run.run.posted_at);
            let posting = |posted: &Arc<Posted>| Posting {
                l1_block: posted.run.run.posted_at,
                transaction: posted.transaction,
                runs: vec![posted.run.run],
                headers: posted.run.headers.clone(),
                certificate: Some(posted.certificate),
                data: PostedData::of(posted.batches.clone()),
            };
            state.posted.iter().filter(within).map(posting).collect()
        })
        .await
    }

    async fn reposted_data(&self, _: &[BatchHeader], _: u64, _: u64) -> Result<FoundData, L1Error> {
        self.read(|_| FoundData { batches: Vec::new(), unread: None }).await
    }

    async fn posted_hints(&self, _after: u64, _through: u64) -> Result<Vec<PostedHints>, L1Error> {
        self.read(|_| Vec::new()).await
    }

    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        let head = self
            .read_newest(|state| {
                let (number, hash) = state.head(&self.l1.0.deployment);
                PostedHead { number, hash, block: state.newest, ..PostedHead::default() }
            })
            .await?;
        if !self.has(Plant::KeepsPostedHead, Role::Sequencer) {
            return Ok(head);
        }
        let mut kept = self.l1.0.kept_head.lock();
        let newest = kept.filter(|kept| kept.number > head.number);
        Ok(*kept.insert(newest.map_or(head, |kept| PostedHead { block: head.block, ..kept })))
    }

    async fn open_accusations(&self, _since: u64) -> Result<Vec<OpenAccusation>, L1Error> {
        self.read(|_| Vec::new()).await
    }

    async fn run_of(&self, number: u64, _since: u64) -> Result<Option<PostedRun>, L1Error> {
        self.read(|state| state.posting_of(number).map(|posted| posted.run.clone())).await
    }

    async fn output_standing(&self) -> Result<OutputStanding, L1Error> {
        self.read_newest(|state| {
            let head = state.posted.last().and_then(|posted| posted.run.headers.last());
            OutputStanding {
                last_block: state.outputs.last().map_or(0, |(_, output)| output.l2_block),
                head: head.map_or(0, |header| header.number),
                head_timestamp_ms: head.map_or(0, |header| header.timestamp_ms),
            }
        })
        .await
    }
}

#[async_trait]
impl CommitteeSource for View {
    async fn epochs(&self) -> Result<Epochs, CommitteeKeyError> {
        L1Reader::epochs(self).await.map_err(|fault| CommitteeKeyError::L1(fault.to_string()))
    }

    async fn encryption_key(&self, epoch: u64) -> Result<Vec<u8>, CommitteeKeyError> {
        let key = self.read(|_| self.l1.0.keys.get(&epoch).cloned()).await;
        let key = key.map_err(|fault| CommitteeKeyError::L1(fault.to_string()))?;
        key.ok_or_else(|| CommitteeKeyError::L1(format!("no epoch {epoch}")))
    }
}

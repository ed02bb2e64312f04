//! What roles read.

use std::{iter, sync::Arc};

use async_trait::async_trait;
use blindfold_chain::{
    AnnouncedEnd, FallbackHeader, L1Deposit, L1Error, L1News, L1Origin, L1Reader, MAX_FORCED_ENTRIES,
    PendingFallbackHeader, VoidRun,
};
use blindfold_client::{CommitteeKeyError, CommitteeSource};
use blindfold_l1::{
    DataError, DisputeContract, FoundData, HintData, HintEvent, KeyedBatch, OpenAccusation, Output,
    OutputStanding, PostedData, PostedHead, PostedHints, PostedLog, PostedRun, Posting, PublisherBond,
    RunReference, equivocation_evidence,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Epochs, ForcedEntry, HeaderId, L1Timing, SealedBatch, SignedHeader,
};

use super::{
    View,
    contracts::Posted,
    hints::{CHALLENGE_STAKE, PUBLISHER_BOND},
};
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
        self.read(|_| self.l1.0.rules.epochs.clone()).await
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

    async fn timing(&self) -> Result<L1Timing, L1Error> {
        self.read(|_| self.l1.0.rules.timing).await
    }

    async fn l1_header(&self, number: u64) -> Result<Option<FallbackHeader>, L1Error> {
        let misses = self.has(Plant::MissesL1Headers, Role::Node(1));
        self.read(|state| state.final_made().find(|made| made.header.number == number && !misses).cloned())
            .await
    }

    async fn last_l1_header(&self) -> Result<Option<u64>, L1Error> {
        let misses = self.has(Plant::MissesL1Headers, Role::Node(1));
        self.read(|state| state.final_made().last().map(|made| made.header.number).filter(|_| !misses)).await
    }

    async fn l1_headers_not_final(&self) -> Result<Vec<PendingFallbackHeader>, L1Error> {
        self.read_newest(|state| {
            let not_final = state.made.iter().filter(|made| made.l1_block > state.finalized);
            let pending = |made: &FallbackHeader| PendingFallbackHeader {
                header: HeaderId { number: made.header.number, hash: made.header.hash() },
                l1_block: made.l1_block,
                l1_hash: self.l1.block(state, made.l1_block).hash,
            };
            not_final.map(pending).collect()
        })
        .await
    }

    async fn block_hash(&self, number: u64) -> Result<Option<B256>, L1Error> {
        self.read_newest(|state| (number <= state.newest).then(|| self.l1.block(state, number).hash)).await
    }

    async fn void_runs(&self) -> Result<Vec<VoidRun>, L1Error> {
        let misses = self.has(Plant::MissesVoidRuns, Role::Node(1))
            || self.has(Plant::CoprocessorMissesVoidRuns, Role::Coprocessor);
        self.read(|state| {
            let runs = if misses { Vec::new() } else { state.hints.void_runs(state.finalized) };
            runs.into_iter().map(|(first, last)| VoidRun { first, last }).collect()
        })
        .await
    }

    async fn posted_at(&self, number: u64) -> Result<Option<u64>, L1Error> {
        self.read(|state| {
            let posted = state.posting_of(number).map(|posted| posted.run.run.posted_at);
            posted.filter(|block| *block <= state.finalized)
        })
        .await
    }

    async fn hints_on_l1(&self, number: u64) -> Result<bool, L1Error> {
        self.read(|state| state.hints.has_hints(number, state.finalized)).await
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

    async fn hint_events(&self, after: u64, through: u64) -> Result<Vec<HintEvent>, L1Error> {
        self.read(|state| state.hints.events(after, through)).await
    }

    async fn claim_delay(&self) -> Result<u64, L1Error> {
        self.read(|_| CLAIM_DELAY).await
    }

    async fn posted_data(
        &self,
        run: &RunReference,
        _: Vec<KeyedBatch>,
        through: u64,
    ) -> Result<PostedData, L1Error> {
        let posting =
            self.read(|state| state.posted.iter().find(|posted| posted.run.run == *run).cloned()).await?;
        let posting = posting.ok_or_else(|| L1Error::nonsense("the run is not in its block"))?;
        self.read(|state| {
            let held = |header: &BatchHeader| state.data_of(header, through).cloned();
            let batches: Vec<_> = posting.run.headers.iter().map(held).collect();
            let fault = batches.iter().any(Option::is_none).then_some(DataError::Absent);
            PostedData { batches, fault }
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
                certificate: posted.certificate,
                data: match &posted.batches {
                    Some(batches) => PostedData::of(batches.clone()),
                    None => PostedData::missing(posted.run.headers.len(), DataError::Absent),
                },
            };
            state.posted.iter().filter(within).map(posting).collect()
        })
        .await
    }

    async fn reposted_data(
        &self,
        headers: &[BatchHeader],
        after: u64,
        through: u64,
    ) -> Result<FoundData, L1Error> {
        self.read(|state| {
            let within = state.reposted.iter().filter(|(block, _)| (after + 1..=through).contains(block));
            let there: Vec<&SealedBatch> = within.flat_map(|(_, batches)| batches.iter()).collect();
            let found =
                |header: &BatchHeader| there.iter().find(|batch| batch.header == *header).copied().cloned();
            FoundData { batches: headers.iter().filter_map(found).collect(), unread: None }
        })
        .await
    }

    async fn posted_hints(&self, after: u64, through: u64) -> Result<Vec<PostedHints>, L1Error> {
        self.read(|state| state.hints.posted(after, through)).await
    }

    async fn hint_data(&self, posted: &PostedLog) -> Result<Option<Result<HintData, DataError>>, L1Error> {
        self.read(|state| {
            let (run, hints) = state.hints.data(posted)?;
            Some(Ok(HintData { run, hints, blobs: None }))
        })
        .await
    }

    async fn hint_stakes(&self) -> Result<(u128, u128), L1Error> {
        self.read(|_| (PUBLISHER_BOND, CHALLENGE_STAKE)).await
    }

    async fn publisher_bond(&self, publisher: Address) -> Result<PublisherBond, L1Error> {
        self.read_newest(|state| state.hints.bond(publisher)).await
    }

    async fn are_shown(&self, [one, two]: &[SignedHeader; 2], block: Option<u64>) -> Result<bool, L1Error> {
        let shown = equivocation_evidence(one, two);
        let through = block.unwrap_or(u64::MAX);
        self.read_newest(|state| {
            state.shown.iter().any(|(block, other)| *block <= through && *other == shown)
        })
        .await
    }

    async fn committed_at(&self, _: DisputeContract, commitment: B256) -> Result<Option<u64>, L1Error> {
        self.read_newest(|state| state.hints.committed_at(commitment)).await
    }

    async fn reward_of(&self, contract: DisputeContract, account: Address) -> Result<u128, L1Error> {
        self.read_newest(|state| match contract {
            DisputeContract::Hints => state.hints.reward(account),
            DisputeContract::Inbox => 0,
        })
        .await
    }

    async fn final_outputs(&self, from: u64, limit: usize) -> Result<Vec<Output>, L1Error> {
        self.read(|state| {
            let outputs = state.outputs.iter().filter(|(block, _)| *block <= state.finalized);
            outputs.map(|(_, output)| *output).filter(|output| output.l2_block >= from).take(limit).collect()
        })
        .await
    }

    async fn posted_head(&self) -> Result<PostedHead, L1Error> {
        let head = self
            .read_newest(|state| {
                let (number, hash) = state.head_id(&self.l1.0.rules.deployment);
                let head = state.head();
                PostedHead {
                    number,
                    hash,
                    timestamp_ms: head.map_or(0, |head| head.timestamp_ms),
                    l1_origin_number: head.map_or(0, |head| head.l1_origin_number),
                    forced_cursor: head.map_or(0, |head| head.forced_cursor),
                    block: state.newest,
                }
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
            let head = state.head();
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

//! What roles send.

use std::sync::Arc;

use async_trait::async_trait;
use blindfold_chain::{L1Error, L1Reader, L1Submitter};
use blindfold_l1::{
    CodedBatch, DataStanding, DisputeContract, HintEvent, HintEvidence, HintPosting, HintTree,
    HintsReference, KeyedBatch, OmissionAnswer, OpenedPiece, Output, RunReference, Sent, commitment,
};
use blindfold_protocol::{Address, B256, BatchHeader, Bytes, Certificate, SealedBatch, SignedHeader};

use super::{
    Mined, Transaction, View,
    contracts::{Posted, State, account},
};

/// What was posted in final blocks, oldest first.
fn final_postings(state: &State) -> impl Iterator<Item = &Posted> {
    let postings = state.posted.iter().map(|posted| &**posted);
    postings.filter(|posted| posted.run.run.posted_at <= state.finalized)
}

/// Whether readers get these batches by the hints that their data names: those are final, and have the same keys.
fn gives_back(state: &State, batches: &[KeyedBatch], named: HintsReference) -> bool {
    let HintsReference { id, l1_block } = named;
    let is_final = l1_block <= state.finalized
        && state
            .hints
            .events(l1_block.saturating_sub(1), l1_block)
            .iter()
            .any(|event| matches!(event, HintEvent::Posted(posted) if posted.id == id));
    let Some((run, posting)) = state.hints.data_of(id).filter(|_| is_final) else { return false };
    batches.iter().all(|keyed| {
        let place = keyed.batch.sealed.header.number.checked_sub(run.first);
        let posted = place.and_then(|place| posting.batches.get(place as usize));
        posted.is_some_and(|posted| {
            let keys = posted.entries.iter().map(|entry| (entry.kind == 1).then_some(entry.key));
            keys.eq(keyed.keys.iter().map(|key| key.as_ref().map(|key| *key.as_bytes())))
        })
    })
}

impl From<Mined> for Sent {
    fn from(Mined { transaction, block }: Mined) -> Self {
        Self { transaction, block, gas_used: 0 }
    }
}

#[async_trait]
impl L1Submitter for View {
    fn account(&self) -> Address {
        account(self.life.role)
    }

    fn reader(&self) -> &dyn L1Reader {
        self
    }

    async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        let batches: Vec<SealedBatch> = batches.iter().map(|batch| batch.sealed.clone()).collect();
        let headers = batches.iter().map(|batch| batch.header).collect();
        let (headers, batches) = (Arc::new(headers), Some(Arc::new(batches)));
        let certificate = Box::new(*certificate);
        Ok(self.send(Transaction::Post { headers, batches, certificate }).await?.into())
    }

    async fn post_headers(
        &self,
        headers: &[BatchHeader],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        let (headers, certificate) = (Arc::new(headers.to_vec()), Box::new(*certificate));
        Ok(self.send(Transaction::Post { headers, batches: None, certificate }).await?.into())
    }

    async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let batches = batches.iter().map(|batch| batch.sealed.clone()).collect();
        Ok(self.send(Transaction::PostData(Arc::new(batches))).await?.into())
    }

    async fn opened_data(
        &self,
        _chain_id: u64,
        batches: &[KeyedBatch],
        hints: HintsReference,
    ) -> Result<Vec<OpenedPiece>, L1Error> {
        if !self.read(|state| gives_back(state, batches, hints)).await? {
            return Err(L1Error::refused("opened data that nobody can read"));
        }
        Ok(vec![OpenedPiece { batches: batches.to_vec(), hints, data: Bytes::new() }])
    }

    async fn post_opened_data(&self, piece: &OpenedPiece) -> Result<Sent, L1Error> {
        let batches = piece.batches.iter().map(|keyed| keyed.batch.sealed.clone()).collect();
        Ok(self.send(Transaction::PostData(Arc::new(batches))).await?.into())
    }

    async fn lacks_data(&self, header: &BatchHeader) -> Result<bool, L1Error> {
        self.read(|state| state.data_of(header, state.newest).is_none()).await
    }

    async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        self.read(|state| {
            let final_head = final_postings(state).last().map_or(0, |posted| posted.run.run.last);
            let lacks = |header: &BatchHeader| state.data_of(header, state.newest).is_none();
            headers.iter().filter(|header| header.number > final_head).any(lacks)
        })
        .await
    }

    async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        self.read(|state| {
            let mut standing = DataStanding { through: above, block: after, ..DataStanding::default() };
            for posted in final_postings(state).filter(|posted| posted.run.run.last > above) {
                let run = &posted.run.run;
                (standing.through, standing.block) = (run.last, run.posted_at.max(after));
                for header in posted.run.headers.iter().filter(|header| header.number > above) {
                    if state.data_of(header, state.finalized).is_some() {
                        continue;
                    }
                    if state.data_of(header, state.newest).is_some() {
                        standing.awaited = Some(state.newest);
                        continue;
                    }
                    match standing.lacking.last_mut() {
                        Some((_, last)) if *last + 1 == header.number => *last = header.number,
                        _ => standing.lacking.push((header.number, header.number)),
                    }
                }
            }
            standing
        })
        .await
    }

    async fn end_at_head(&self, _head: &BatchHeader) -> Result<Option<Sent>, L1Error> {
        self.read(|_| None).await
    }

    async fn answer_omission(&self, _answer: &OmissionAnswer) -> Result<Sent, L1Error> {
        self.read(|_| ()).await?;
        Err(L1Error::refused("no open accusation"))
    }

    async fn propose_outputs(&self, outputs: &[Output]) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::Propose(outputs.to_vec())).await?.into())
    }

    async fn deposit_publisher_bond(&self, amount: u128) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::Bond(amount)).await?.into())
    }

    async fn hint_roots(&self, first: u64, hints: &HintPosting) -> Result<[Option<B256>; 2], L1Error> {
        Ok([Some(HintTree::new(hints, first).root()), None])
    }

    async fn post_hints(&self, run: &RunReference, hints: &HintPosting) -> Result<Sent, L1Error> {
        let hints = Arc::new(self.posted_hints_of(run.first, hints));
        Ok(self.send(Transaction::PostHints { run: *run, hints }).await?.into())
    }

    async fn finalize_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::FinalizeHints(posting)).await?.into())
    }

    async fn release_hints(&self, posting: u64) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::ReleaseHints(posting)).await?.into())
    }

    async fn commit(&self, _: DisputeContract, evidence: B256, salt: B256) -> Result<Sent, L1Error> {
        Ok(self
            .send(Transaction::Commit(commitment(L1Submitter::account(self), evidence, salt)))
            .await?
            .into())
    }

    async fn challenge(&self, evidence: &HintEvidence, salt: B256) -> Result<Sent, L1Error> {
        let evidence = Box::new(evidence.clone());
        Ok(self.send(Transaction::Challenge { evidence, salt }).await?.into())
    }

    async fn slash_equivocation(&self, pair: &[SignedHeader; 2], salt: B256) -> Result<Sent, L1Error> {
        let pair = Box::new(*pair);
        Ok(self.send(Transaction::ShowHeaders { pair, salt }).await?.into())
    }

    async fn claim_reward(&self, _: DisputeContract) -> Result<Sent, L1Error> {
        Ok(self.send(Transaction::ClaimReward).await?.into())
    }
}

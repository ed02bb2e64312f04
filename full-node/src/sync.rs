//! Catching up: what the feed did not bring, number by number.

use std::sync::Arc;

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_chain::{Applied, HeaderSource, L1Round, NextStep, Refusal, announce};
use blindfold_protocol::{Certificate, SealedBatch};
use blindfold_rpc::types::BatchInfo;
use blindfold_rpc::{BlindApiClient, ReceivedError};

use crate::follower::{Follower, decoded, end_of};
use crate::keeper::Wake;
use crate::limits::MAX_SYNC_BATCHES;
use crate::node::Node;

/// How a run of catching up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncEnd {
    /// Everything the peer has is here.
    Done,
    /// There is more to fetch at once.
    More,
    /// Something has to come first, by itself: try again after a pause.
    Later,
    /// The peer does not answer.
    Unavailable,
    /// What the peer gives does not stand.
    Rejected,
}

impl Follower {
    /// The headers that L1 made were taken, from L1 alone.
    pub(crate) fn on_l1(&mut self, round: L1Round) {
        match round {
            Ok(taken) => {
                for (sealed, applied) in taken {
                    tracing::error!(number = applied.number, hash = %applied.hash, "L1 made a header: following it");
                    self.tell(&sealed, &applied);
                }
            }
            Err(refusal) if refusal.next_step() == NextStep::Stop => {
                self.node.stuck(self.node.tracker.certified().number, &refusal);
            }
            Err(refusal) => tracing::debug!(%refusal, "what L1 made cannot be taken yet"),
        }
    }

    /// Asks the sequencer for each batch above the certified head.
    pub(crate) async fn sync_with_sequencer(&mut self) -> SyncEnd {
        let first = self.node.tracker.certified().number + 1;
        let Some(sequencer) = self.node.sequencer.clone() else { return SyncEnd::Unavailable };
        for number in first..first + MAX_SYNC_BATCHES {
            let info = match sequencer.get_batch(number).await {
                Ok(Some(info)) => info,
                Ok(None) => return SyncEnd::Done,
                Err(error) => {
                    let error = ReceivedError::from(error);
                    tracing::debug!(number, %error, "the sequencer gives no batch");
                    return SyncEnd::Unavailable;
                }
            };
            if let Err(end) = self.take_batch(number, info).await {
                return end;
            }
        }
        SyncEnd::More
    }

    async fn take_batch(&mut self, number: u64, info: BatchInfo) -> Result<(), SyncEnd> {
        let Some(sealed) = decoded(&info.sealed).filter(|sealed| sealed.header.number == number) else {
            self.node.counters.headers_rejected.add("undecodable");
            return Err(SyncEnd::Rejected);
        };
        let sealed = Arc::new(sealed);
        match info.certificate.as_ref().map(decoded) {
            Some(Some(certificate)) => {
                self.take_certified(vec![sealed], certificate).await.map_err(|refusal| {
                    self.node.certificate_refused(number, &refusal);
                    end_of(&refusal)
                })?
            }
            Some(None) => {
                self.node.counters.bad_certificates_rejected.add("undecodable");
                return Err(SyncEnd::Rejected);
            }
            None => match self.node.tracker.apply_sealed(&sealed).await {
                Ok(applied) => self.tell(&sealed, &applied),
                // Ours may be the one that gives way, which the certificate of a later number will say.
                Err(refusal @ Refusal::Second { .. }) => {
                    self.node.header_refused(number, &refusal);
                    self.node.differs_from_ours(sealed.signed_header()).await;
                }
                Err(refusal) => {
                    self.node.header_refused(number, &refusal);
                    return Err(end_of(&refusal));
                }
            },
        }
        if number > self.node.tracker.certified().number {
            return Ok(());
        }
        if let Some(release) = info.release.as_ref().and_then(decoded) {
            self.node.park_release(release);
        }
        if let Some(hints) = info.hints.as_ref().and_then(decoded)
            && let Err(refusal) = self.node.take_hints(hints).await
        {
            tracing::debug!(number, %refusal, "hints not taken");
            // The keeper of hints gets another copy, or opens the batch itself.
            let _ = self.node.wakes.try_send(Wake::Wrong(number));
        }
        Ok(())
    }

    /// Takes batches up to a certified one, and with them ancestors that differ from ours.
    async fn take_certified(
        &mut self,
        run: Vec<Arc<SealedBatch>>,
        certificate: Certificate,
    ) -> Result<(), Refusal> {
        let taken = self.node.tracker.accept_with_ancestors(self.node.as_ref(), run, &certificate).await?;
        for (sealed, applied) in &taken.batches {
            self.tell(sealed, applied);
        }
        self.node.certificate_taken(&certificate, taken.outcome);
        Ok(())
    }

    fn tell(&self, sealed: &SealedBatch, applied: &Applied) {
        if applied.is_new() {
            self.node.counters.headers_verified.increment();
            self.node.hub.publish(&announce::header(sealed, applied.hash, &applied.verdicts));
        }
    }

    /// Asks members for certified batches that the sequencer does not give.
    pub(crate) async fn sync_with_members(&mut self) {
        for _ in 0..MAX_SYNC_BATCHES {
            let number = self.node.tracker.certified().number + 1;
            if !self.certified_from_members(number).await {
                return;
            }
        }
    }

    /// The batches from a number to the next certificate from whichever member has them. Whether any were taken.
    async fn certified_from_members(&mut self, number: u64) -> bool {
        let node = Arc::clone(&self.node);
        for member in node.members.iter() {
            let run = match member.certified_run(number).await {
                Ok(Some(run)) => run,
                Ok(None) => continue,
                Err(fault) => {
                    tracing::debug!(number, member = member.index(), %fault, "the member gives no certified batch");
                    continue;
                }
            };
            let last = run.certificate.number;
            match self.take_certified(run.batches, run.certificate).await {
                Ok(()) => {
                    node.counters.batches_from_members.add(last - number + 1);
                    tracing::warn!(
                        number,
                        last,
                        member = member.index(),
                        "a member gave what the sequencer withholds"
                    );
                    return true;
                }
                Err(refusal) => node.certificate_refused(last, &refusal),
            }
        }
        false
    }
}

#[async_trait]
impl HeaderSource for Node {
    async fn header(&self, number: u64, hash: B256) -> Option<Arc<SealedBatch>> {
        let fits = |sealed: &SealedBatch| sealed.header.number == number && sealed.header.hash() == hash;
        if let Some(sequencer) = &self.sequencer
            && let Ok(Some(info)) = sequencer.get_batch(number).await
            && let Some(sealed) = decoded(&info.sealed).filter(fits)
        {
            return Some(Arc::new(sealed));
        }
        for member in self.members.iter() {
            if let Ok(Some(held)) = member.held(number).await
                && fits(&held.sealed)
            {
                return Some(Arc::new(held.sealed));
            }
        }
        None
    }

    /// Ours would be forgotten when it gives way.
    async fn about_to_offer(&self, sealed: &SealedBatch) {
        self.differs_from_ours(sealed.signed_header()).await;
    }
}

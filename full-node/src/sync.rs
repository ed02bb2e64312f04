//! Catching up: what the feed did not bring, number by number.

use std::sync::Arc;

use alloy_primitives::B256;
use async_trait::async_trait;
use blindfold_chain::{Applied, HeaderSource, L1Round, NextStep, TrackerError, announce};
use blindfold_protocol::{Certificate, SealedBatch};
use blindfold_rpc::BlindApiClient;
use blindfold_rpc::types::BatchInfo;
use futures::{StreamExt, stream};

use crate::follower::{Follower, decoded, end_of};
use crate::hint_fetcher::Wake;
use crate::member_rounds::MemberRound;
use crate::members::CertifiedRun;
use crate::node::{AncestorSource, Node};
use crate::sequencer_round::RoundAnswer;

/// How a round over the sequencer's batches ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncEnd {
    /// Everything the peer has is here.
    Done,
    /// Something else is missing first: ask anew.
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
                self.l1_patience.reset();
                if !taken.is_empty() {
                    self.member_rounds.forgive();
                }
                for (sealed, applied) in taken {
                    tracing::error!(number = applied.number, hash = %applied.hash, "L1 made a header: following it");
                    self.tell(&sealed, &applied);
                }
            }
            Err(refusal) if refusal.next_step() == NextStep::Stop => {
                let lasts = self.l1_patience.failed();
                self.node.cannot_go_on(self.node.tracker.certified().number, &refusal, lasts);
            }
            Err(refusal) => tracing::debug!(%refusal, "what L1 made cannot be taken yet"),
        }
    }

    /// Takes what the sequencer told, and asks for the next number, until it has no more.
    pub(crate) async fn on_answer(&mut self, answer: RoundAnswer) {
        let (number, end) = match answer {
            Ok((number, info)) => (number, self.take_batch(number, info).await.err()),
            Err(end) => return self.caught_up(end).await,
        };
        let certified = self.node.tracker.certified().number;
        match end {
            Some(end) if number > certified => self.caught_up(end).await,
            // What was not taken, somebody else has brought meanwhile.
            _ => {
                self.take_parked().await;
                self.sequencer_round.ask(number.max(certified).saturating_add(1));
            }
        }
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
                Err(refusal @ TrackerError::Second { .. }) => {
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
            // The fetcher of hints gets another copy, or opens the batch itself.
            let _ = self.node.wakes.try_send(Wake::Wrong(number));
        }
        Ok(())
    }

    /// Takes batches up to a certified one, and with them ancestors that differ from ours.
    async fn take_certified(
        &mut self,
        run: Vec<Arc<SealedBatch>>,
        certificate: Certificate,
    ) -> Result<(), TrackerError> {
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

    /// Takes what members gave before the sequencer did, and goes on asking where there may be more.
    pub(crate) async fn on_members(&mut self, round: MemberRound) {
        let left_alone: Vec<u16> = round.left_alone().collect();
        let mut more = !round.runs.is_empty() || !round.slow.is_empty();
        for (member, run) in round.runs {
            match self.take_given(member, run).await {
                Ok(()) => {}
                Err(NextStep::Reject) => {
                    self.member_rounds.pause(member);
                    break;
                }
                Err(_) => {
                    more = false;
                    break;
                }
            }
        }
        // Whoever gave something and was slow with the next counts as slow.
        left_alone.iter().for_each(|member| self.member_rounds.pause(*member));
        if more {
            self.member_rounds.begin(self.node.tracker.certified().number);
        }
    }

    /// Takes one run, or says what to do next.
    async fn take_given(&mut self, member: u16, run: CertifiedRun) -> Result<(), NextStep> {
        let (before, last) = (self.node.tracker.certified().number, run.certificate.number);
        // The feed may have been faster.
        if last <= before {
            return Ok(());
        }
        if let Err(refusal) = self.take_certified(run.batches, run.certificate).await {
            self.node.certificate_refused(last, &refusal);
            return Err(refusal.next_step());
        }
        self.member_rounds.trust(member);
        self.node.counters.batches_from_members.add(last - before);
        tracing::info!(
            first = before + 1,
            last,
            member,
            "a member gave what the sequencer has not given yet"
        );
        self.take_parked().await;
        Ok(())
    }
}

impl Node {
    /// The batch of this number as the sequencer or a member has it.
    async fn batch_of(&self, source: AncestorSource, number: u64) -> Option<SealedBatch> {
        match source {
            AncestorSource::Sequencer => {
                let info = self.sequencer.as_ref()?.get_batch(number).await.ok()??;
                decoded(&info.sealed)
            }
            AncestorSource::Member(member) => {
                let held = self.members.by_index(member)?.held(number).await.ok()?;
                held.map(|held| held.sealed)
            }
        }
    }

    /// Whom to ask for an ancestor, in this order: last those that were slow or did not have one a moment ago.
    fn ancestor_sources(&self) -> Vec<AncestorSource> {
        let sequencer = self.sequencer.as_ref().map(|_| AncestorSource::Sequencer);
        let members = self.members.iter().map(|member| AncestorSource::Member(member.index()));
        let mut sources: Vec<_> = sequencer.into_iter().chain(members).collect();
        let pauses = self.ancestor_pauses.lock();
        sources.sort_by_key(|source| !pauses.is_over(source));
        sources
    }
}

#[async_trait]
impl HeaderSource for Node {
    async fn header(&self, number: u64, hash: B256) -> Option<Arc<SealedBatch>> {
        let fits = |sealed: &SealedBatch| sealed.header.number == number && sealed.header.hash() == hash;
        // Each may be large: the next is asked beside one that is slow.
        let asked = stream::iter(self.ancestor_sources()).map(|source| {
            let batch = self.batch_of(source, number);
            (source, async move { batch.await.filter(fits) })
        });
        let hedged = self.fetcher.hedge().first(asked).await;
        let mut pauses = self.ancestor_pauses.lock();
        for source in hedged.failed.into_iter().chain(hedged.slow) {
            pauses.failed(source);
        }
        let (source, sealed) = hedged.first?;
        pauses.succeeded(&source);
        Some(Arc::new(sealed))
    }

    /// Ours would be forgotten when it gives way.
    async fn about_to_offer(&self, sealed: &SealedBatch) {
        self.differs_from_ours(sealed.signed_header()).await;
    }
}

//! Fetching what a member missed: from the sequencer, and from the other members what the sequencer withholds.
//!
//! A round runs beside the feed and changes nothing, so that a peer that does not answer holds up nobody.

use std::sync::Arc;

use blindfold_chain::Tracker;
use blindfold_protocol::{Certificate, CertifiedBatch, SealedBatch, limits::MAX_UNCERTIFIED_HEADERS};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError,
    http_client,
    types::{BatchInfo, Status},
};
use futures::{StreamExt, stream::FuturesUnordered};

use crate::MemberConfig;

/// Item bytes after which a round ends, so that what is fetched and not yet applied stays bounded.
const MAX_ROUND_BYTES: usize = 16 * 1024 * 1024;

/// A batch as the sequencer tells it.
pub(crate) struct ToldBatch {
    pub(crate) sealed: SealedBatch,
    pub(crate) certificate: Option<Certificate>,
}

/// What a round brought.
#[derive(Default)]
pub(crate) struct Round {
    /// Consecutive batches whose certificates stand; the batches themselves are not checked.
    pub(crate) certified: Vec<CertifiedBatch>,
    /// What follows of the sequencer's chain.
    pub(crate) uncertified: Vec<ToldBatch>,
    /// There is more certified to be fetched.
    pub(crate) more: bool,
    /// What is missing and nobody gave.
    pub(crate) stuck: Option<String>,
}

/// What to fetch.
pub(crate) struct Wanted {
    /// The first number that is not certified here.
    pub(crate) from: u64,
    /// Batches in one round.
    pub(crate) limit: u64,
    /// Whether the other members are asked even if the sequencer claims that there is no certificate.
    pub(crate) ask_peers: bool,
}

/// Clients of everybody who may have a batch.
pub(crate) struct Sources {
    tracker: Tracker,
    sequencer: HttpClient,
    peers: Vec<(u16, HttpClient)>,
}

impl Sources {
    pub(crate) fn new(config: &MemberConfig, tracker: Tracker) -> Result<Self, ClientBuildError> {
        let client =
            ClientConfig { request_timeout_ms: config.limits.fetch_timeout_ms, ..ClientConfig::default() };
        let peers = config
            .peers
            .iter()
            .map(|peer| Ok((peer.member, http_client(&peer.url, &client)?)))
            .collect::<Result<_, ClientBuildError>>()?;
        Ok(Self { tracker, sequencer: http_client(&config.sequencer_url, &client)?, peers })
    }

    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    pub(crate) async fn fetch(self: Arc<Self>, wanted: Wanted) -> Round {
        let mut round = Round::default();
        let status = self.status().await;
        let (mut number, mut bytes) = (wanted.from, 0);
        let mut next = None;
        loop {
            let fetched = round.certified.len() as u64;
            if fetched >= wanted.limit || bytes > MAX_ROUND_BYTES {
                round.more = true;
                return round;
            }
            // A sequencer that gives no status is not asked again: each question may take a whole timeout.
            let told = if status.is_ok() { self.sealed(number).await } else { None };
            let mut certified = self.standing(number, told.as_ref().and_then(ToldBatch::certified)).await;
            if certified.is_none() {
                next = told;
                let withheld = status.as_ref().map_or(true, |status| status.certified >= number);
                if wanted.ask_peers || withheld {
                    certified = self.ask_peers(number).await;
                }
            }
            let Some(batch) = certified else { break };
            bytes += batch.sealed.items.iter().map(Vec::len).sum::<usize>();
            round.certified.push(batch);
            number += 1;
        }
        match status {
            Ok(status) => self.fetch_uncertified(&mut round, number, status.head.number, next).await,
            Err(error) => round.stuck = Some(format!("the sequencer gives no status: {error}")),
        }
        round
    }

    async fn fetch_uncertified(&self, round: &mut Round, first: u64, head: u64, mut next: Option<ToldBatch>) {
        let last = head.min(first.saturating_add(MAX_UNCERTIFIED_HEADERS as u64));
        for number in first..=last {
            let told = match next.take() {
                Some(told) => Some(told),
                None => self.sealed(number).await,
            };
            let Some(told) = told else {
                round.stuck = Some(format!("the sequencer does not give batch {number}"));
                return;
            };
            round.uncertified.push(told);
        }
    }

    async fn status(&self) -> Result<Status, ReceivedError> {
        Ok(BlindApiClient::get_status(&self.sequencer).await?)
    }

    /// A batch from the sequencer, certified or not.
    async fn sealed(&self, number: u64) -> Option<ToldBatch> {
        match self.sequencer.get_batch(number).await {
            Ok(info) => told(number, &info?),
            Err(error) => {
                let error = ReceivedError::from(error);
                tracing::debug!(number, %error, "the sequencer gave no batch");
                None
            }
        }
    }

    /// Asks all other members at once; the first answer that stands wins.
    async fn ask_peers(&self, number: u64) -> Option<CertifiedBatch> {
        let mut answers: FuturesUnordered<_> = self
            .peers
            .iter()
            .map(|(member, client)| async move {
                match client.get_certified(number).await {
                    Ok(batch) => {
                        let fault =
                            |fault: &_| tracing::warn!(member, number, %fault, "a member sent an undecodable batch");
                        let batch = batch?.decode().inspect_err(fault).ok();
                        self.standing(number, batch).await
                    }
                    Err(error) => {
                        let error = ReceivedError::from(error);
                        tracing::debug!(member, number, %error, "a member gave no certified batch");
                        None
                    }
                }
            })
            .collect();
        while let Some(answer) = answers.next().await {
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    /// The batch, if it is the one asked for and its certificate stands.
    async fn standing(&self, number: u64, batch: Option<CertifiedBatch>) -> Option<CertifiedBatch> {
        let batch = batch?;
        let header = &batch.sealed.header;
        let named = (batch.certificate.number, batch.certificate.header_hash);
        if header.number != number || named != (number, header.hash()) {
            tracing::warn!(number, "another batch than the one asked for");
            return None;
        }
        let verified = self.tracker.verify_certificate(&batch.certificate).await;
        verified.inspect_err(|refusal| tracing::warn!(number, %refusal, "certified batch refused")).ok()?;
        Some(batch)
    }
}

impl ToldBatch {
    fn certified(&self) -> Option<CertifiedBatch> {
        let certificate = self.certificate?;
        Some(CertifiedBatch { sealed: self.sealed.clone(), certificate })
    }
}

fn told(number: u64, info: &BatchInfo) -> Option<ToldBatch> {
    let fault = |fault| tracing::warn!(number, %fault, "the sequencer sent an undecodable batch");
    let sealed = info.sealed.decode().map_err(fault).ok()?;
    let certificate = match &info.certificate {
        Some(certificate) => Some(certificate.decode().map_err(fault).ok()?),
        None => None,
    };
    if sealed.header.number != number {
        tracing::warn!(
            number,
            told = sealed.header.number,
            "the sequencer gave another batch than the one asked for"
        );
        return None;
    }
    Some(ToldBatch { sealed, certificate })
}

//! Fetching what a member missed: from the sequencer, and from the other members what the sequencer withholds.
//!
//! A round runs beside the feed and changes nothing, so that a peer that does not answer holds up nobody.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use blindfold_chain::Tracker;
use blindfold_protocol::{Certificate, Party, SealedBatch, limits::MAX_UNCERTIFIED_HEADERS};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError,
    http_client,
    types::{BatchInfo, HeldBatch, Status},
};
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use tokio::time::timeout;

use crate::{MemberConfig, introduce::Introductions};

/// Item bytes after which a round ends, so that what is fetched and not yet applied stays bounded.
const MAX_ROUND_BYTES: usize = 16 * 1024 * 1024;

/// A batch as the sequencer tells it.
pub(crate) struct ToldBatch {
    pub(crate) sealed: SealedBatch,
    pub(crate) certificate: Option<Certificate>,
}

/// Who gives batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Sequencer,
    Member(u16),
}

/// Consecutive batches up to the next certificate, which names the last of them and so certifies all.
pub(crate) struct CertifiedRun {
    pub(crate) source: Source,
    /// Oldest first, at least one.
    pub(crate) batches: Vec<Arc<SealedBatch>>,
    /// The certificate of the last.
    pub(crate) certificate: Certificate,
}

/// What a round brought.
#[derive(Default)]
pub(crate) struct Round {
    /// Consecutive runs whose certificates stand. The items are not checked: they may be others than the header's.
    pub(crate) certified: Vec<CertifiedRun>,
    /// What follows, of the sequencer's chain or, while it does not answer, as another member holds it.
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
    /// Who gave what cannot be taken: others are asked for what is certified.
    pub(crate) without: BTreeSet<Source>,
}

/// What the others say of the chain; what a member claims counts only with a header that the sequencer signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Other members that answered.
    pub(crate) answers: usize,
    /// The highest number that one of them acknowledged or holds certified.
    pub(crate) highest: u64,
    /// The highest number that one of them holds certified.
    pub(crate) certified: u64,
    /// The certified number that the sequencer tells, if it answers.
    pub(crate) sequencer: Option<u64>,
}

/// Clients of everybody who may have a batch.
pub(crate) struct Sources {
    tracker: Tracker,
    sequencer: HttpClient,
    peers: Vec<(u16, HttpClient)>,
}

impl Sources {
    pub(crate) fn new(
        config: &MemberConfig,
        tracker: Tracker,
        introductions: &Introductions,
    ) -> Result<Self, ClientBuildError> {
        let client = |server| ClientConfig {
            request_timeout_ms: config.limits.fetch_timeout_ms,
            ..introductions.client(server)
        };
        let peers = config
            .peers
            .iter()
            .map(|peer| Ok((peer.member, http_client(&peer.url, &client(Party::Member(peer.member)))?)))
            .collect::<Result<_, ClientBuildError>>()?;
        Ok(Self { tracker, sequencer: http_client(&config.sequencer_url, &client(Party::Sequencer))?, peers })
    }

    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// How many there are that can be asked.
    pub(crate) fn count(&self) -> usize {
        self.peers.len() + 1
    }

    pub(crate) async fn fetch(self: Arc<Self>, wanted: Wanted) -> Round {
        let mut round = Round::default();
        let status = self.status().await;
        let (mut number, mut bytes) = (wanted.from, 0);
        let mut next = None;
        let mut held = Vec::new();
        loop {
            if number - wanted.from >= wanted.limit || bytes > MAX_ROUND_BYTES {
                round.more = true;
                return round;
            }
            // A sequencer that gives no status is not asked again: each question may take a whole timeout.
            let told = if status.is_ok() { self.sealed(number).await } else { None };
            let refused = wanted.without.contains(&Source::Sequencer);
            let run = told.as_ref().filter(|_| !refused).and_then(ToldBatch::certified);
            let mut certified = self.standing(number, run).await;
            if certified.is_none() {
                next = told;
                let withheld = status.as_ref().map_or(true, |status| status.certified >= number);
                if wanted.ask_peers || withheld || refused {
                    (certified, held) = self.ask_peers(number, &wanted.without).await;
                }
            }
            let Some(run) = certified else { break };
            let items = run.batches.iter().flat_map(|batch| &batch.items);
            bytes += items.map(Vec::len).sum::<usize>();
            number = run.certificate.number + 1;
            round.certified.push(run);
        }
        match status {
            Ok(status) => self.fetch_uncertified(&mut round, number, status.head.number, next).await,
            Err(error) => {
                round.uncertified = held;
                round.stuck = Some(format!("the sequencer gives no status: {error}"));
            }
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

    /// Asks the sequencer and all other members, at most for `limit`, where the chain stands.
    pub(crate) async fn survey(self: Arc<Self>, limit: Duration) -> Survey {
        let sequencer =
            async { timeout(limit, self.status()).await.ok()?.ok().map(|status| status.certified) };
        let members =
            self.peers.iter().map(|(member, client)| timeout(limit, self.standing_of(*member, client)));
        let members = join_all(members);
        let (sequencer, members) = tokio::join!(sequencer, members);
        let mut survey = Survey { sequencer, ..Survey::default() };
        for (highest, certified) in members.into_iter().filter_map(|answer| answer.ok().flatten()) {
            survey.answers += 1;
            survey.highest = survey.highest.max(highest);
            survey.certified = survey.certified.max(certified);
        }
        survey
    }

    /// The highest number that a member acknowledged or holds certified, and the highest that it holds certified.
    async fn standing_of(&self, member: u16, client: &HttpClient) -> Option<(u64, u64)> {
        let status = CommitteeApiClient::get_status(client).await.ok()?;
        let mut highest = status.acknowledged.max(status.certified);
        if highest > 0 {
            let held = match held_by(member, client, highest).await {
                // It acknowledged a header that gave way to another one.
                None if highest > status.certified && status.certified > 0 => {
                    highest = status.certified;
                    held_by(member, client, highest).await
                }
                held => held,
            };
            let sealed = held?.sealed;
            if !self.tracker.is_signed(&sealed) && !sealed.claims_l1() {
                tracing::warn!(
                    member,
                    number = highest,
                    "a member claims a header that the sequencer did not sign"
                );
                return None;
            }
        }
        Some((highest, status.certified))
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

    /// Asks all other members at once for the run from `number` to the next certificate; the first that stands wins.
    /// Where nobody has one, gives the longest run without a certificate that somebody holds.
    async fn ask_peers(
        &self,
        number: u64,
        without: &BTreeSet<Source>,
    ) -> (Option<CertifiedRun>, Vec<ToldBatch>) {
        let peers = self.peers.iter().filter(|(member, _)| !without.contains(&Source::Member(*member)));
        let mut answers: FuturesUnordered<_> =
            peers.map(|(member, client)| self.run_of(*member, client, number)).collect();
        let mut held = Vec::new();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(run) => return (Some(run), Vec::new()),
                Err(longer) if longer.len() > held.len() => held = longer,
                Err(_) => {}
            }
        }
        (None, held)
    }

    /// A member's run from `number` to the first number that has a certificate of its own there: a member stops
    /// sending an acknowledgement once a descendant is certified, so not every number has one. Without a certificate
    /// that stands, what it holds.
    async fn run_of(
        &self,
        member: u16,
        client: &HttpClient,
        number: u64,
    ) -> Result<CertifiedRun, Vec<ToldBatch>> {
        let mut held: Vec<ToldBatch> = Vec::new();
        // No more headers ever wait for a certificate, so it comes within as many.
        for number in (number..).take(MAX_UNCERTIFIED_HEADERS) {
            let Some(batch) = held_by(member, client, number).await else { break };
            let follows = held
                .last()
                .is_none_or(|before| batch.sealed.header.parent_hash == before.sealed.header.hash());
            if !follows {
                tracing::warn!(member, number, "a member's headers do not follow each other");
                return Err(Vec::new());
            }
            let certificate = batch.certificate;
            held.push(batch);
            let Some(certificate) = certificate else { continue };
            let batches: Vec<_> = held.into_iter().map(|batch| Arc::new(batch.sealed)).collect();
            return self
                .standing(number, Some(CertifiedRun { source: Source::Member(member), batches, certificate }))
                .await
                .ok_or_else(Vec::new);
        }
        Err(held)
    }

    /// The run, if it ends with the number asked for and its certificate stands.
    async fn standing(&self, number: u64, run: Option<CertifiedRun>) -> Option<CertifiedRun> {
        let run = run?;
        let last = &run.batches.last()?.header;
        let named = (run.certificate.number, run.certificate.header_hash);
        if last.number != number || named != (number, last.hash()) {
            tracing::warn!(number, "another batch than the one asked for");
            return None;
        }
        let verified = self.tracker.verify_certificate(&run.certificate).await;
        verified.inspect_err(|refusal| tracing::warn!(number, %refusal, "certified batch refused")).ok()?;
        Some(run)
    }
}

impl ToldBatch {
    /// What the sequencer tells, if it comes with its certificate.
    fn certified(&self) -> Option<CertifiedRun> {
        let certificate = self.certificate?;
        let batches = vec![Arc::new(self.sealed.clone())];
        Some(CertifiedRun { source: Source::Sequencer, batches, certificate })
    }
}

/// What a member holds under a number.
async fn held_by(member: u16, client: &HttpClient, number: u64) -> Option<ToldBatch> {
    let fault = |fault| tracing::warn!(member, number, %fault, "a member sent an undecodable batch");
    let answer = client.get_sealed(number).await.map_err(ReceivedError::from);
    let held: HeldBatch = answer
        .inspect_err(|error| tracing::debug!(member, number, %error, "a member gave no batch"))
        .ok()??;
    let sealed = held.sealed.decode().map_err(fault).ok()?;
    let certificate =
        held.certificate.map(|certificate| certificate.decode()).transpose().map_err(fault).ok()?;
    if sealed.header.number != number {
        tracing::warn!(
            member,
            number,
            told = sealed.header.number,
            "a member gave another batch than asked for"
        );
        return None;
    }
    Some(ToldBatch { sealed, certificate })
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

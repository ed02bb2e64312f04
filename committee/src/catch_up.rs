//! Fetching what a member missed: from the sequencer, and from the other members what the sequencer withholds.
//!
//! Rounds run beside the feed and change nothing, so that a peer that does not answer holds up nobody. Those that ask the
//! sequencer and those that ask the other members run beside each other: what one gives does not wait for the others.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use blindfold_chain::{
    GivenRun, L1Error, L1Reader, RunFetcher, Tracker,
    limits::{MAX_ROUND_BYTES, MAX_RUN_TIMEOUTS},
};
use blindfold_protocol::{B256, Certificate, Party, SealedBatch, limits::MAX_UNCERTIFIED_RUN};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, CommitteeApiClient, HttpClient, ReceivedError,
    http_client, http_client_of,
    types::{BatchInfo, HeldBatch, Status},
};
use blindfold_runtime::now;
use futures::{StreamExt, future::join_all, stream, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::{timeout, timeout_at};

use crate::{MemberConfig, introduce::Introductions};

/// A batch as the sequencer or a member serves it.
pub(crate) struct ServedBatch {
    pub(crate) sealed: SealedBatch,
    pub(crate) certificate: Option<Certificate>,
}

/// Whom missed batches are fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Sequencer,
    Member(u16),
}

/// Consecutive batches up to the next certificate, which names the last of them and so certifies all.
#[derive(Clone)]
pub(crate) struct CertifiedRun {
    pub(crate) source: Source,
    /// Oldest first, at least one.
    pub(crate) batches: Vec<Arc<SealedBatch>>,
    /// The certificate of the last.
    pub(crate) certificate: Certificate,
}

/// What a round brought from the sequencer.
#[derive(Default)]
pub(crate) struct Round {
    /// Consecutive runs whose certificates stand. The items are not checked: they may be others than the header's.
    pub(crate) certified: Vec<CertifiedRun>,
    /// What follows, of the sequencer's chain.
    pub(crate) uncertified: Vec<ServedBatch>,
    /// There is more certified to be fetched.
    pub(crate) more: bool,
    /// What is missing and was not given.
    pub(crate) stuck: Option<String>,
    /// It did not say where it stands.
    pub(crate) silent: bool,
    /// It says that certified batches are there that it did not give, or says nothing.
    pub(crate) withheld: bool,
}

/// What a round brought from the other members.
#[derive(Default)]
pub(crate) struct PeerRound {
    /// What was certified, as in [`Round`].
    pub(crate) certified: Vec<CertifiedRun>,
    /// What a member holds, where that was wanted and nobody has a certificate: the longest run that the sequencer signed.
    pub(crate) uncertified: Vec<ServedBatch>,
    /// Whether other members may have more.
    pub(crate) more: bool,
    /// Members that claimed to hold more than they gave, or took too long to give it.
    pub(crate) failed: Vec<u16>,
}

/// What to fetch from the sequencer.
pub(crate) struct Wanted {
    /// The first number that is not certified here.
    pub(crate) from: u64,
    /// The most batches of one round.
    pub(crate) limit: u64,
    /// Whether it gave what cannot be taken a moment ago: it is not asked for what is certified.
    pub(crate) refused: bool,
}

/// What to fetch from the other members.
pub(crate) struct WantedOfPeers {
    /// The first number that is not certified here.
    pub(crate) from: u64,
    /// The most batches of one round.
    pub(crate) limit: u64,
    /// Members that are not asked.
    pub(crate) without: BTreeSet<u16>,
    /// Whether they are asked for what is not certified, too.
    pub(crate) uncertified: bool,
}

/// What the others say of the chain. What a member claims to hold certified counts with its certificate, or where L1 made
/// it; what it acknowledged beyond that with a header that the sequencer signed.
#[derive(Default)]
pub(crate) struct Survey {
    /// Other members that were asked.
    pub(crate) asked: usize,
    /// How many of them answered.
    pub(crate) answers: usize,
    /// What shows the highest number that one of them holds certified, with its certificate. Whoever shows it may give
    /// nothing more.
    pub(crate) shown: Option<CertifiedRun>,
    /// The highest number that one of them acknowledged or holds certified.
    pub(crate) highest: u64,
    /// The highest number that one of them holds certified.
    pub(crate) certified: u64,
    /// The certified number that the sequencer tells, if it answers.
    pub(crate) sequencer: Option<u64>,
    /// The highest epoch of what one of them holds certified.
    pub(crate) epoch: u64,
    /// The last number that L1 made a header for, 0 for none, if it tells.
    pub(crate) made: Option<u64>,
    /// A member says that L1 made what it holds, and L1 does not tell.
    pub(crate) unjudged: bool,
}

/// What one member shows of the chain.
enum Standing {
    Shown {
        /// The highest number that it acknowledged or holds certified.
        highest: u64,
        /// The highest that it holds certified on a branch that L1 did not end.
        certified: u64,
        /// The epoch of what it holds certified.
        epoch: u64,
        /// The same, where it is on a branch that L1 did not end and has a certificate.
        shown: Option<CertifiedRun>,
    },
    /// It cannot be told, for L1 does not answer.
    Unjudged,
}

/// A header that L1 made.
#[derive(Clone, Copy)]
struct Made {
    number: u64,
    hash: B256,
    l1_block: u64,
}

/// Clients of everybody who may have a batch.
pub(crate) struct Sources {
    tracker: Tracker,
    l1: Arc<dyn L1Reader>,
    sequencer: HttpClient,
    peers: Vec<(u16, HttpClient)>,
    run_timeout: Duration,
    fetcher: RunFetcher,
}

impl Sources {
    pub(crate) fn new(
        config: &MemberConfig,
        tracker: Tracker,
        l1: Arc<dyn L1Reader>,
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
        let sequencer = http_client_of(&config.sequencer_urls, &client(Party::Sequencer))?;
        let fetch_timeout = Duration::from_millis(config.limits.fetch_timeout_ms);
        let run_timeout = fetch_timeout.saturating_mul(MAX_RUN_TIMEOUTS);
        Ok(Self { tracker, l1, sequencer, peers, run_timeout, fetcher: RunFetcher::new(fetch_timeout) })
    }

    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// Indices of the other members.
    pub(crate) fn members(&self) -> impl Iterator<Item = u16> + '_ {
        self.peers.iter().map(|(member, _)| *member)
    }

    /// Asks the sequencer for what is missing.
    pub(crate) async fn fetch(self: Arc<Self>, wanted: Wanted) -> Round {
        let mut round = Round::default();
        let status = match self.status().await {
            Ok(status) => status,
            Err(error) => {
                round.stuck = Some(format!("the sequencer gives no status: {error}"));
                (round.silent, round.withheld) = (true, true);
                return round;
            }
        };
        let chain = self.tracker.config();
        if let Err(other) = status.check_chain(chain.chain_id, &chain.deployment) {
            round.stuck = Some(format!("the sequencer {other}"));
            (round.silent, round.withheld) = (true, true);
            return round;
        }
        // What is here, and waits for its certificate, would come a second time.
        let head = self.tracker.head();
        let same_head = (status.head.number, status.head.hash) == (head.number, head.hash);
        if same_head && head.number >= wanted.from && status.certified < wanted.from {
            return round;
        }
        let (mut number, mut bytes) = (wanted.from, 0);
        loop {
            if number - wanted.from >= wanted.limit || bytes > MAX_ROUND_BYTES {
                round.more = true;
                return round;
            }
            let served = self.sealed(number).await;
            let run = served.as_ref().filter(|_| !wanted.refused).and_then(ServedBatch::certified);
            let Some(run) = self.standing(number, run).await else {
                round.withheld = status.certified >= number;
                self.fetch_uncertified(&mut round, number, status.head.number, served).await;
                return round;
            };
            bytes += run.bytes();
            number = run.certificate.number + 1;
            round.certified.push(run);
        }
    }

    /// Asks the other members for certified batches from a number on, and, where nobody gives one, for the longest run that
    /// somebody holds, if that is wanted. All say what they hold; those that hold what is wanted are asked for it one
    /// beside the other, as far as they are slow.
    pub(crate) async fn fetch_from_peers(self: Arc<Self>, wanted: WantedOfPeers) -> PeerRound {
        let holders = Mutex::new(Vec::new());
        let peers = self.peers.iter().filter(|(member, _)| !wanted.without.contains(member));
        let claims: FuturesUnordered<_> = peers.map(|(member, client)| claim_of(*member, client)).collect();
        let claims = claims.filter_map(|claim| {
            let claim = claim.map(|Claim { member, certified, acknowledged }| {
                holders.lock().push((member, acknowledged));
                (member, certified)
            });
            std::future::ready(claim)
        });
        let run_of = |member, number| self.run_or_nothing(member, number);
        let fetched = self.fetcher.runs(claims, run_of, wanted.from, wanted.limit).await;
        let mut round = PeerRound {
            more: !fetched.runs.is_empty() || !fetched.slow.is_empty(),
            failed: fetched.left_alone().collect(),
            certified: fetched.runs.into_iter().map(|(_, run)| run).collect(),
            uncertified: Vec::new(),
        };
        if round.certified.is_empty() && wanted.uncertified {
            self.fetch_held(&mut round, wanted.from, holders.into_inner()).await;
        }
        round
    }

    async fn run_or_nothing(&self, member: u16, number: u64) -> Option<CertifiedRun> {
        let run = self.run_of(member, number).await.ok();
        if run.is_none() {
            tracing::warn!(member, number, "a member claims to hold more than it gives");
        }
        run
    }

    /// The longest run without a certificate that one of these members holds, of those up to the number that they
    /// acknowledged; the next one is asked beside those that are slow.
    async fn fetch_held(&self, round: &mut PeerRound, from: u64, mut holders: Vec<(u16, u64)>) {
        holders.retain(|(member, _)| !round.failed.contains(member));
        let (longest, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let held_by = async |member: u16, acknowledged: u64| {
            let longer = from.saturating_add(longest.lock().len() as u64);
            if acknowledged < longer {
                return None;
            }
            let held = match self.run_of(member, from).await {
                Ok(run) => return Some(run),
                Err(held) => held,
            };
            let mut longest = longest.lock();
            if held.len() > longest.len() {
                *longest = held;
            } else {
                failed.lock().push(member);
            }
            None
        };
        let asked =
            stream::iter(holders).map(|(member, acknowledged)| (member, held_by(member, acknowledged)));
        let hedged = self.fetcher.hedge().first(asked).await;
        round.failed.extend(hedged.slow);
        if let Some((_, run)) = hedged.first {
            round.certified.push(run);
            round.more = true;
        } else {
            round.uncertified = longest.into_inner();
        }
        round.failed.extend(failed.into_inner());
    }

    async fn fetch_uncertified(
        &self,
        round: &mut Round,
        first: u64,
        head: u64,
        mut next: Option<ServedBatch>,
    ) {
        let last = head.min(first.saturating_add(MAX_UNCERTIFIED_RUN as u64));
        let mut bytes = 0;
        for number in first..=last {
            let served = match next.take() {
                Some(served) => Some(served),
                None => self.sealed(number).await,
            };
            let Some(served) = served else {
                round.stuck = Some(format!("the sequencer does not give batch {number}"));
                return;
            };
            // Of what is here its certificate alone counts, and no room is taken from what is not.
            let ours = self.tracker.store().header_hash(number).await;
            if served.certificate.is_none() && ours == Ok(Some(served.sealed.header.hash())) {
                continue;
            }
            if bytes > MAX_ROUND_BYTES {
                round.more = true;
                return;
            }
            bytes += served.sealed.items.iter().map(Vec::len).sum::<usize>();
            round.uncertified.push(served);
        }
    }

    /// Asks the sequencer and all other members, at most for `limit`, where the chain stands.
    pub(crate) async fn survey(self: Arc<Self>, limit: Duration) -> Survey {
        let sequencer =
            async { timeout(limit, self.status()).await.ok()?.ok().map(|status| status.certified) };
        let made = timeout(limit, self.last_made()).await.ok().and_then(Result::ok);
        let ended = made.flatten();
        let members = self
            .peers
            .iter()
            .map(|(member, client)| timeout(limit, self.standing_of(*member, client, ended)));
        let members = join_all(members);
        let (sequencer, members) = tokio::join!(sequencer, members);
        let made = made.map(|made| made.map_or(0, |made| made.number));
        let mut survey = Survey { sequencer, made, asked: self.peers.len(), ..Survey::default() };
        for standing in members.into_iter().filter_map(|answer| answer.ok().flatten()) {
            match standing {
                Standing::Shown { highest, certified, epoch, shown } => {
                    survey.answers += 1;
                    if certified > survey.certified {
                        survey.shown = shown;
                    }
                    survey.highest = survey.highest.max(highest);
                    survey.certified = survey.certified.max(certified);
                    survey.epoch = survey.epoch.max(epoch);
                }
                Standing::Unjudged => survey.unjudged = true,
            }
        }
        survey
    }

    /// The last header that L1 made, if it made one.
    async fn last_made(&self) -> Result<Option<Made>, L1Error> {
        let Some(number) = self.l1.last_l1_header().await? else { return Ok(None) };
        let made = self.l1.l1_header(number).await?;
        Ok(made.map(|made| Made { number, hash: made.header.hash(), l1_block: made.l1_block }))
    }

    /// Where a member stands. `None` for one that does not answer, or does not show what it claims.
    async fn standing_of(&self, member: u16, client: &HttpClient, made: Option<Made>) -> Option<Standing> {
        let status = CommitteeApiClient::get_status(client).await.ok()?;
        let (mut certified, mut epoch, mut shown) = (status.certified, 0, None);
        if certified > 0 {
            let held = held_by(member, client, certified).await?;
            match self.is_certified(&held).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(
                        member,
                        number = certified,
                        "a member claims what it does not show a certificate of"
                    );
                    return None;
                }
                Err(fault) => {
                    tracing::debug!(member, number = certified, %fault, "L1 does not tell whether it made this header");
                    return Some(Standing::Unjudged);
                }
            }
            let header = &held.sealed.header;
            epoch = header.epoch;
            // A header above one that L1 made has an origin that knows of it, or it is of the branch that L1 ended.
            let is_ended = |made: Made| {
                let another = made.number == certified && made.hash != header.hash();
                another || made.number < certified && header.l1_origin_number < made.l1_block
            };
            if let Some(made) = made.filter(|made| is_ended(*made)) {
                certified = made.number.saturating_sub(1);
            } else if let Some(certificate) = held.certificate {
                let (source, batches) = (Source::Member(member), vec![Arc::new(held.sealed)]);
                shown = Some(CertifiedRun { source, batches, certificate });
            }
        }
        let mut highest = status.certified;
        // Nobody votes further ahead of a certificate than headers may wait for one.
        let most = highest.saturating_add(MAX_UNCERTIFIED_RUN as u64);
        if status.acknowledged > highest {
            match held_by(member, client, status.acknowledged).await {
                Some(held) if self.tracker.is_signed(&held.sealed) => highest = status.acknowledged.min(most),
                Some(_) => {
                    let number = status.acknowledged;
                    tracing::warn!(
                        member,
                        number,
                        "a member claims a header that the sequencer did not sign"
                    );
                    return None;
                }
                // It acknowledged a header that gave way to another one.
                None if highest > 0 => {}
                None => return None,
            }
        }
        Some(Standing::Shown { highest, certified, epoch, shown })
    }

    /// Whether what a member holds is certified by what it shows, or was made by L1 (C-6).
    async fn is_certified(&self, held: &ServedBatch) -> Result<bool, L1Error> {
        let (number, hash) = (held.sealed.header.number, held.sealed.header.hash());
        if let Some(certificate) = held.certificate {
            let named = (certificate.number, certificate.header_hash) == (number, hash);
            return Ok(named && self.tracker.verify_certificate(&certificate).await.is_ok());
        }
        if !held.sealed.claims_l1() {
            return Ok(false);
        }
        Ok(self.l1.l1_header(number).await?.is_some_and(|made| made.header.hash() == hash))
    }

    async fn status(&self) -> Result<Status, ReceivedError> {
        Ok(BlindApiClient::get_status(&self.sequencer).await?)
    }

    /// A batch from the sequencer, certified or not.
    async fn sealed(&self, number: u64) -> Option<ServedBatch> {
        match self.sequencer.get_batch(number).await {
            Ok(info) => served(number, &info?),
            Err(error) => {
                let error = ReceivedError::from(error);
                tracing::debug!(number, %error, "the sequencer gave no batch");
                None
            }
        }
    }

    /// A member's run from `number` to the first number that has a certificate of its own there: a member stops
    /// sending an acknowledgement once a descendant is certified, so not every number has one. Without a certificate
    /// that stands, what it holds. Nothing is asked for beyond a header that the sequencer did not sign: anybody makes up
    /// headers that follow each other. Those that L1 made, L1 tells.
    async fn run_of(&self, member: u16, number: u64) -> Result<CertifiedRun, Vec<ServedBatch>> {
        let mut held: Vec<ServedBatch> = Vec::new();
        let client = self.peers.iter().find(|(peer, _)| *peer == member).map(|(_, client)| client);
        let Some(client) = client else { return Err(held) };
        let deadline = now() + self.run_timeout;
        // No more headers ever wait for a certificate, so it comes within as many.
        for number in (number..).take(MAX_UNCERTIFIED_RUN) {
            let Ok(Some(batch)) = timeout_at(deadline, held_by(member, client, number)).await else { break };
            if !self.tracker.is_signed(&batch.sealed) {
                tracing::warn!(member, number, "a member gives a header that the sequencer did not sign");
                break;
            }
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

impl GivenRun for CertifiedRun {
    fn last(&self) -> u64 {
        self.certificate.number
    }

    fn bytes(&self) -> usize {
        self.batches.iter().flat_map(|batch| &batch.items).map(Vec::len).sum()
    }
}

impl ServedBatch {
    /// What the sequencer tells, if it comes with its certificate.
    fn certified(&self) -> Option<CertifiedRun> {
        let certificate = self.certificate?;
        let batches = vec![Arc::new(self.sealed.clone())];
        Some(CertifiedRun { source: Source::Sequencer, batches, certificate })
    }
}

/// What a member says that it holds.
struct Claim {
    member: u16,
    certified: u64,
    acknowledged: u64,
}

async fn claim_of(member: u16, client: &HttpClient) -> Option<Claim> {
    match CommitteeApiClient::get_status(client).await.map_err(ReceivedError::from) {
        Ok(status) => Some(Claim { member, certified: status.certified, acknowledged: status.acknowledged }),
        Err(error) => {
            tracing::debug!(member, %error, "a member does not say what it holds");
            None
        }
    }
}

/// What a member holds under a number.
async fn held_by(member: u16, client: &HttpClient, number: u64) -> Option<ServedBatch> {
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
            received = sealed.header.number,
            "a member gave another batch than asked for"
        );
        return None;
    }
    Some(ServedBatch { sealed, certificate })
}

fn served(number: u64, info: &BatchInfo) -> Option<ServedBatch> {
    let fault = |fault| tracing::warn!(number, %fault, "the sequencer sent an undecodable batch");
    let sealed = info.sealed.decode().map_err(fault).ok()?;
    let certificate = match &info.certificate {
        Some(certificate) => Some(certificate.decode().map_err(fault).ok()?),
        None => None,
    };
    if sealed.header.number != number {
        tracing::warn!(
            number,
            received = sealed.header.number,
            "the sequencer gave another batch than the one asked for"
        );
        return None;
    }
    Some(ServedBatch { sealed, certificate })
}

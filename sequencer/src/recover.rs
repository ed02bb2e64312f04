//! Before the first header: whether anything was signed that this disk does not know. An empty or older disk would sign
//! a second header for a number at once, and that costs the bond.
//!
//! - nothing is sealed until L1's head is ours and, of the committee of the next number, at least t members have
//!   answered and hold nothing newer. Any t signers of a certificate and any t that answer have an honest member in
//!   common. All are waited for during `recovery.patience_ms`: a header that too few have acknowledged for a certificate
//!   may be held by one of them alone.
//! - what we signed and this disk lacks is adopted, and what was signed for its number is on disk before it.
//! - two headers of ours for one number are proof of a second one. Nothing is sealed then. A header of ours where
//!   the one here is another sequencer's is none: it binds, and the certified of the two counts. Of two of an earlier
//!   sequencer, none of them certified, the one counts that t members show.
//! - nothing is sealed while something that we signed binds for a number above the head: it gave way to what the
//!   committee certified in its place or below, and another header of ours would be a second one. L1 makes that header.
//!
//! A claim without a header that we signed is no answer: nobody can hold us up by naming a number, nor by a header of ours
//! with other items, nor by leaving certificates out that others show.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use blindfold_chain::{L1Error, L1Submitter, NextStep, Office, TrackerError, verdicts};
use blindfold_l1::PostedHead;
use blindfold_protocol::{B256, BatchHeader, Certificate, SealedBatch, SignedHeader, limits::CLOCK_SKEW_MS};
use blindfold_runtime::{Cancelled, Instant, joined, now};
use blindfold_store::StoreError;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::task::JoinSet;

use crate::{
    backlog::Backlog,
    certifier::Certifier,
    context::Context,
    displaced::Displaced,
    l1_follower::L1Follower,
    members::{Committee, HeldBatch},
    pool::{Pool, done_in},
    sealer::{OpenBlock, Sealer},
};

/// Why nothing is sealed yet.
#[derive(Debug, Error)]
pub(crate) enum L1RoundError {
    /// Too few members answer to be sure what was signed.
    #[error(
        "{answered} of {needed} members needed tell what they hold; a header that this disk does not know may have \
         been signed (silent: {silent:?})"
    )]
    TooFewMembers { answered: usize, needed: usize, silent: Vec<u16> },
    /// L1 does not tell its head.
    #[error("L1 does not tell which header was posted last: {0}")]
    L1(#[from] L1Error),
    /// L1 is ahead and no member has given what is missing.
    #[error("L1 holds header {posted}, this disk ends at {head}, and no member has given what lies between")]
    Behind { posted: u64, head: u64 },
    /// L1 holds another header than this disk.
    #[error("L1 holds header {hash} at {number}, which is not the one on this disk")]
    OtherChain { number: u64, hash: B256 },
    /// A header of ours cannot be taken yet.
    #[error("what was signed before cannot be taken yet: {0}")]
    NotTaken(#[from] TrackerError),
    /// No epoch contains the next number.
    #[error("no epoch is registered for batch {0}")]
    NoEpoch(u64),
    /// A header of ours gave way, and its number is free again only when L1 makes a header.
    #[error(
        "this key signed a header for number {signed}, and the certified chain ends at {head} without it: another one \
         would cost the bond. L1 makes the next header after its posting deadline (`blindfold l1 post-header`), and sealing goes on above it"
    )]
    SignedAbove { signed: u64, head: u64 },
    /// Another sequencer is at work, or may be.
    #[error("{0}")]
    OutOfOffice(String),
    /// The disk failed, or refused a step.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// We signed two headers, or are about to: an operator has to look.
    #[error(
        "member {member} holds header {theirs} for number {number}, signed with this sequencer's key, and this disk has \
         {ours}: this disk is not the one that signed last. Move the data folder away and start with an empty one: what \
         the members hold is adopted from them"
    )]
    TwoHeaders { member: u16, number: u64, theirs: B256, ours: B256 },
}

impl L1RoundError {
    /// Whether waiting cannot help, so that the sequencer stops.
    pub(crate) fn is_fatal(&self) -> bool {
        match self {
            Self::TwoHeaders { .. } => true,
            Self::Store(error) => !error.retry(),
            _ => false,
        }
    }
}

/// Why this sequencer is not the one that seals, if it is not.
pub(crate) fn out_of_office(office: &Office) -> Option<String> {
    match office {
        Office::Left { until } => Some(format!(
            "this key signs headers with L1 origins up to {until} only, and L1 is past that: another sequencer seals"
        )),
        Office::Awaits { from, begins } => Some(format!(
            "this key counts for L1 origins from block {from} on, and begins to seal when L1 block {begins} is final"
        )),
        Office::Stranger => Some("L1 does not name this key any more".to_owned()),
        Office::Holds { .. } | Office::Leaves { .. } => None,
    }
}

/// Headers of a member that are looked at for the certificate that decides between two, and for what binds on a branch
/// that gave way.
const MAX_CONTESTED_HEADERS: u64 = 64;

/// What became of a header that a member holds.
enum Adopted {
    /// It stands in our chain.
    Ours,
    /// L1 made a header below it that it knows nothing of: it can never be posted, and what follows it neither.
    Displaced,
    /// It is ours and gave way to what the committee certified. It binds, and so does what we signed above it.
    GaveWay,
    /// Neither we nor L1 made it, or L1 does not show it yet.
    No,
    /// This disk has another header, and not both are of our key.
    Contested,
}

/// Who holds which header, by number and hash, in the place of one here.
type Contested = BTreeMap<(u64, B256), BTreeSet<u16>>;

/// What the members that answered say.
struct Answers {
    answered: BTreeSet<u16>,
    silent: Vec<u16>,
}

/// Whether everything that was signed before is known here: nothing is sealed before that.
#[derive(Default)]
pub(crate) struct Recovered {
    complete: AtomicBool,
    /// What keeps it from being complete, for `/readyz`.
    blocked_by: Mutex<Option<String>>,
}

impl Recovered {
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst)
    }

    /// Something may have been signed that is not known here.
    pub(crate) fn begin_again(&self) {
        self.complete.store(false, Ordering::SeqCst);
    }

    pub(crate) fn blocked_by(&self) -> Option<String> {
        self.blocked_by.lock().clone()
    }

    fn complete(&self) {
        self.blocked_by.lock().take();
        self.complete.store(true, Ordering::SeqCst);
    }

    /// Notes what stands in the way; true when it is something else than before.
    fn set_blocked_by(&self, error: &L1RoundError) -> bool {
        let reason = error.to_string();
        self.blocked_by.lock().replace(reason.clone()) != Some(reason)
    }
}

/// Asks the committee and L1 what was signed before.
pub(crate) struct Recovery {
    pub(crate) cx: Arc<Context>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) certifier: Arc<Certifier>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) displaced: Arc<Displaced>,
    pub(crate) l1: Arc<L1Follower>,
    pub(crate) recovered: Arc<Recovered>,
    pub(crate) committee: Arc<dyn Committee>,
    pub(crate) poster: Option<Arc<dyn L1Submitter>>,
    /// Acknowledgements of headers that were adopted are not collected yet.
    pub(crate) adopted: AtomicBool,
}

impl Recovery {
    /// Has the sealer seal, as soon as it may, until the sequencer stops.
    pub(crate) async fn recover_and_seal(self, sealer: Sealer, open: OpenBlock) {
        let (mut open, mut stop) = (open, self.cx.stop.clone());
        while self.recover_loop().await {
            open = sealer.seal_loop(open).await;
            if *stop.borrow_and_update() || self.cx.spawner.failure().is_some() {
                return;
            }
        }
    }

    /// Tries until it may seal or the sequencer stops. False if it stops.
    async fn recover_loop(&self) -> bool {
        let mut since = now();
        let mut stop = self.cx.stop.clone();
        while !self.recovered.is_complete() {
            let outcome = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return false,
                _ = self.cx.spawner.failed() => return false,
                outcome = self.recover(since) => outcome,
            };
            let Err(error) = outcome else { break };
            if matches!(error, L1RoundError::OutOfOffice(_)) {
                // Only then all are waited for.
                since = now();
            }
            if error.is_fatal() {
                self.cx.fail("recovery", error.to_string());
                return false;
            }
            if self.recovered.set_blocked_by(&error) {
                tracing::warn!(%error, "nothing is sealed yet");
            }
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return false,
                () = tokio::time::sleep(Duration::from_millis(self.cx.config.recovery.retry_ms)) => {}
            }
        }
        true
    }

    /// One attempt, Q-1 to Q-3.
    pub(crate) async fn recover(&self, since: Instant) -> Result<(), L1RoundError> {
        // As it was before anybody was asked: what a member answers counts from then on.
        let office = self.cx.office();
        let before = self.cx.tracker.head();
        let answers = self.adopt_from().await;
        if self.cx.tracker.head() != before {
            self.adopted.store(true, Ordering::SeqCst);
            self.displaced.reopen();
            self.cx.show_chain();
        }
        if self.adopted.load(Ordering::SeqCst) {
            // Also when the attempt fails later: what was adopted is certified like any other header.
            self.certifier.resume_certifying().await?;
            self.adopted.store(false, Ordering::SeqCst);
        }
        let answers = answers?;
        if let Some(reason) = out_of_office(&office) {
            return Err(L1RoundError::OutOfOffice(reason));
        }
        let head = self.cx.tracker.head();
        let number = head.number + 1;
        let epoch = self.cx.tracker.epoch(number).await.map_err(|_| L1RoundError::NoEpoch(number))?;
        let needed = usize::from(epoch.threshold);
        let answered = answers.answered.iter().filter(|member| epoch.member(**member).is_some()).count();
        let patient = since.elapsed() < Duration::from_millis(self.cx.config.recovery.patience_ms);
        if answered < needed || patient && !answers.silent.is_empty() {
            return Err(L1RoundError::TooFewMembers { answered, needed, silent: answers.silent });
        }
        let signed = self.cx.store.heads().await?.acknowledged;
        if let Some(signed) = signed.filter(|signed| *signed > head.number) {
            return Err(L1RoundError::SignedAbove { signed, head: head.number });
        }
        if let Some(poster) = &self.poster {
            self.check_l1_head(poster.reader().posted_head().await?).await?;
        }
        if !answers.silent.is_empty() {
            tracing::warn!(silent = ?answers.silent, "sealing begins without having asked these members");
        }
        // A header that is sealed without what was promised for its number breaks the promise.
        self.displaced.restore().await?;
        self.recovered.complete();
        tracing::info!(head = head.number, answered, "nothing newer was signed than this disk knows");
        Ok(())
    }

    /// L1's head is one of our headers.
    async fn check_l1_head(&self, posted: PostedHead) -> Result<(), L1RoundError> {
        let PostedHead { number, hash, .. } = posted;
        let head = self.cx.tracker.head().number;
        if number > head {
            return Err(L1RoundError::Behind { posted: number, head });
        }
        let ours = match number {
            0 => Some(self.cx.chain.deployment.genesis_hash()),
            number => self.cx.store.batch(number).await?.map(|record| record.hash),
        };
        if ours == Some(hash) { Ok(()) } else { Err(L1RoundError::OtherChain { number, hash }) }
    }

    /// Asks every member and adopts, header by header, what is newer than our head.
    async fn adopt_from(&self) -> Result<Answers, L1RoundError> {
        let mut answers = Answers { answered: BTreeSet::new(), silent: Vec::new() };
        let mut asked = JoinSet::new();
        for member in self.committee.members() {
            let committee = Arc::clone(&self.committee);
            asked.spawn(async move { (member, committee.highest(member).await) });
        }
        let mut standing = Vec::new();
        while let Some(answer) = asked.join_next().await {
            match joined(answer) {
                Ok((member, Ok(highest))) => standing.push((member, highest)),
                Ok((member, Err(fault))) => {
                    tracing::debug!(member, %fault, "a member does not tell what it holds");
                    answers.silent.push(member);
                }
                Err(Cancelled) => {}
            }
        }
        standing.sort_unstable();
        let mut contested = Contested::new();
        for (member, highest) in standing {
            if self.adopt_of((member, highest), &mut contested).await? {
                answers.answered.insert(member);
            } else {
                answers.silent.push(member);
            }
        }
        answers.silent.sort_unstable();
        Ok(answers)
    }

    /// Adopts what one member holds up to `highest`. False when it does not show what it claims.
    async fn adopt_of(
        &self,
        (member, highest): (u16, u64),
        contested: &mut Contested,
    ) -> Result<bool, L1RoundError> {
        let head = self.cx.tracker.head().number;
        // What is here and not certified first: theirs must be the same, also where it ends below ours, and may have the
        // certificates that ours lack.
        let first = (self.cx.tracker.certified().number + 1).min(head.max(1));
        let mut number = first;
        while number <= highest {
            let held = match self.committee.sealed(member, number).await {
                Ok(Some(held)) => held,
                Ok(None) if number < head => {
                    number += 1;
                    continue;
                }
                // A member may have taken a header back for a certified one of a lower number meanwhile.
                Ok(None) => return Ok(false),
                Err(fault) => {
                    tracing::warn!(member, number, %fault, "a member does not show what it claims to hold");
                    return Ok(false);
                }
            };
            let theirs = held.sealed.header.hash();
            match self.adopt(member, held).await? {
                Adopted::Ours => {}
                Adopted::Displaced => return Ok(true),
                // Nothing on that branch is adopted.
                Adopted::GaveWay => return self.bind_branch(member, (number, highest)).await,
                Adopted::No => return Ok(false),
                Adopted::Contested => {
                    let shown = contested.entry((number, theirs)).or_default();
                    shown.insert(member);
                    if !self.adopt_decided(member, (number, highest)).await? {
                        if self.give_way_to_many(number, shown).await? {
                            // There is nothing in its place any more.
                            continue;
                        }
                        self.bind_branch(member, (number, highest)).await?;
                        return Ok(false);
                    }
                }
            }
            number += 1;
        }
        Ok(true)
    }

    /// Takes back what an earlier sequencer left here, without a certificate, where t members hold another header of that
    /// number: nothing else can be certified any more, and whoever has that sequencer's key could show another one to the
    /// member that is asked first.
    async fn give_way_to_many(&self, number: u64, shown: &BTreeSet<u16>) -> Result<bool, L1RoundError> {
        let (head, certified) = (self.cx.tracker.head().number, self.cx.tracker.certified().number);
        if number <= certified || number > head {
            return Ok(false);
        }
        let epoch = self.cx.tracker.epoch(number).await.map_err(|_| L1RoundError::NoEpoch(number))?;
        let members = shown.iter().filter(|member| epoch.member(**member).is_some()).count();
        if members < usize::from(epoch.threshold) {
            return Ok(false);
        }
        for number in number..=head {
            // None where the disk failed in the middle of this before.
            let record = self.cx.store.batch(number).await?;
            // What we signed gives way to nothing but a certificate.
            if record.is_some_and(|record| record.by_l1 || self.is_ours(&record.sealed.signed_header())) {
                return Ok(false);
            }
        }
        tracing::warn!(
            number,
            members,
            "giving an earlier sequencer's header up for the one that most members hold"
        );
        let given_up = self.cx.tracker.give_up_from(number).await;
        // Also where the disk failed: it may have been taken back.
        self.displaced.forget_from(number);
        match given_up {
            Err(TrackerError::Store(error)) => Err(error.into()),
            given_up => Ok(given_up.map(|()| true)?),
        }
    }

    /// Adopts one header that a member shows, if it is ours to adopt.
    async fn adopt(&self, member: u16, held: HeldBatch) -> Result<Adopted, L1RoundError> {
        let HeldBatch { sealed, certificate } = held;
        let sealed = Arc::new(sealed);
        let (number, theirs) = (sealed.header.number, sealed.header.hash());
        if sealed.claims_l1() {
            // Final L1 blocks say so as well, sooner or later.
            self.l1.take_l1_headers().await?;
            // Another one here may be the branch that L1 ended, and this view of L1 lags.
            let there = self.cx.store.batch(number).await?.is_some_and(|ours| ours.hash == theirs);
            return Ok(if there { Adopted::Ours } else { Adopted::No });
        }
        let signed = sealed.signed_header();
        if !self.is_a_sequencers(&signed) {
            tracing::warn!(member, number, "a member holds a header that no sequencer signed in its time");
            return Ok(Adopted::No);
        }
        let head = self.cx.tracker.head();
        let conflict = if number > head.number {
            (sealed.header.parent_hash != head.hash).then_some((
                head.number,
                sealed.header.parent_hash,
                head.hash,
            ))
        } else {
            let ours = self.cx.store.batch(number).await?.map_or(B256::ZERO, |ours| ours.hash);
            (ours != theirs).then_some((number, theirs, ours))
        };
        if let Some((number, theirs, ours)) = conflict {
            let here = self.cx.store.batch(number).await?;
            if here.as_ref().is_some_and(|record| record.by_l1) {
                // L1 made ours: theirs was signed before, and is no second one.
                return Ok(Adopted::Displaced);
            }
            if self.is_displaced(&sealed.header).await? {
                return Ok(Adopted::Displaced);
            }
            if !self.is_ours(&signed) {
                return Ok(Adopted::Contested);
            }
            self.bind(member, &sealed).await?;
            let second = number == sealed.header.number
                && here.is_some_and(|record| self.is_ours(&record.sealed.signed_header()));
            if second {
                return Err(L1RoundError::TwoHeaders { member, number, theirs, ours });
            }
            if number <= self.cx.tracker.certified().number {
                return Ok(Adopted::GaveWay);
            }
            // What an earlier sequencer left without a certificate gives way to what we signed in a later time.
            let before = self.cx.tracker.head().hash;
            let taken = self.cx.tracker.apply_sealed(&sealed).await;
            if self.cx.tracker.head().hash != before {
                self.displaced.forget_from(sealed.header.number);
            }
            match taken {
                Ok(_) => {}
                Err(TrackerError::Store(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::debug!(member, number, %refusal, "a header of ours is not taken in the place of another one");
                    return Ok(Adopted::Contested);
                }
            }
            self.adopt_certificate(member, sealed.header.number, certificate).await;
            self.adopted(member, &sealed).await?;
            return Ok(Adopted::Ours);
        }
        if number <= head.number {
            self.adopt_certificate(member, number, certificate).await;
            return Ok(Adopted::Ours);
        }
        self.bind(member, &sealed).await?;
        let ours = self.is_ours(&signed);
        let ahead = sealed.header.timestamp_ms > self.cx.clock.now_ms().saturating_add(CLOCK_SKEW_MS);
        if !ours && ahead && !self.is_certified(certificate.as_ref(), number, theirs).await {
            // No member votes for it before that time, and so for nothing above it.
            tracing::warn!(member, number, "a member holds a header of an earlier sequencer from the future");
            return Ok(Adopted::No);
        }
        match self.cx.tracker.apply_sealed(&sealed).await {
            Ok(_) => {}
            // What another key signed binds nobody here: a member alone must not hold us up with it.
            Err(refusal)
                if !ours
                    && (refusal.next_step() == NextStep::Reject
                        || matches!(refusal, TrackerError::OriginNotFinal { .. })) =>
            {
                tracing::warn!(member, number, %refusal, "a header of an earlier sequencer is not taken");
                return Ok(Adopted::No);
            }
            // The header is ours, and the items under it are not, or certificates were left out: others may do better.
            Err(refusal @ (TrackerError::Invalid { .. } | TrackerError::TooManyUncertified { .. })) => {
                tracing::warn!(member, number, %refusal, "a member's copy of a header of ours is not taken");
                return Ok(Adopted::No);
            }
            Err(refusal) => return Err(refusal.into()),
        }
        self.adopt_certificate(member, number, certificate).await;
        self.adopted(member, &sealed).await?;
        Ok(Adopted::Ours)
    }

    /// Makes room for a header that was adopted, and announces it.
    async fn adopted(&self, member: u16, sealed: &SealedBatch) -> Result<(), L1RoundError> {
        let (number, hash) = (sealed.header.number, sealed.header.hash());
        self.backlog.sealed(number, sealed.header.envelope_bytes);
        tracing::warn!(member, number, %hash, "adopted a header that this disk did not know");
        if let Some(record) = self.cx.store.batch(number).await? {
            let verdicts = verdicts(&record)?;
            {
                let mut pool = self.pool.lock();
                done_in(&mut pool, sealed.header.number, &sealed.items, &verdicts);
                self.pool.show(&pool);
            }
            let announced = blindfold_chain::announce::header(sealed, hash, &verdicts);
            self.cx.hub.publish(&announced);
        }
        Ok(())
    }

    /// Adopts a member's headers from a contested one on if one of them has a certificate: the committee has decided, and
    /// what this disk has gives way. False where it shows none.
    async fn adopt_decided(&self, member: u16, (first, highest): (u64, u64)) -> Result<bool, L1RoundError> {
        let mut run = Vec::new();
        for number in first..=highest.min(first.saturating_add(MAX_CONTESTED_HEADERS - 1)) {
            let Ok(Some(HeldBatch { sealed, certificate })) = self.committee.sealed(member, number).await
            else {
                break;
            };
            let hash = sealed.header.hash();
            if sealed.header.number != number || sealed.claims_l1() {
                break;
            }
            self.bind_unless_displaced(member, &sealed).await?;
            run.push(Arc::new(sealed));
            let Some(certificate) = certificate.filter(|of| (of.number, of.header_hash) == (number, hash))
            else {
                continue;
            };
            let before = self.cx.tracker.head().hash;
            let taken = self.cx.tracker.accept_certified_run(&run, &certificate).await;
            if self.cx.tracker.head().hash != before {
                // Also where theirs are not taken in the end.
                self.displaced.forget_from(first);
            }
            match taken {
                Ok(_) => {}
                Err(TrackerError::Store(error)) => return Err(error.into()),
                Err(refusal) => {
                    tracing::warn!(member, number, %refusal, "a member's certified headers are not taken");
                    return Ok(false);
                }
            }
            for sealed in &run {
                self.adopted(member, sealed).await?;
            }
            return Ok(true);
        }
        tracing::warn!(member, first, "a member holds another header of an earlier sequencer than this disk");
        Ok(false)
    }

    /// What we signed binds before the header is here.
    async fn bind(&self, member: u16, sealed: &SealedBatch) -> Result<(), L1RoundError> {
        if !self.is_ours(&sealed.signed_header()) {
            return Ok(());
        }
        let (number, theirs) = (sealed.header.number, sealed.header.hash());
        match self.cx.store.put_acknowledged(number, theirs, sealed.header.l1_origin_number).await {
            Err(StoreError::Conflict { stored, .. }) => {
                Err(L1RoundError::TwoHeaders { member, number, theirs, ours: stored })
            }
            written => Ok(written?),
        }
    }

    /// Binds what we signed of a member's branch. False where it ends before `highest`: what does not follow, or what no
    /// sequencer signed, is no branch, and headers without end hold nobody up.
    async fn bind_branch(&self, member: u16, (first, highest): (u64, u64)) -> Result<bool, L1RoundError> {
        let last = highest.min(first.saturating_add(MAX_CONTESTED_HEADERS - 1));
        let mut parent = None;
        for number in first..=last {
            let Ok(Some(HeldBatch { sealed, .. })) = self.committee.sealed(member, number).await else {
                return Ok(false);
            };
            let header = &sealed.header;
            let follows = parent.is_none_or(|parent| header.parent_hash == parent);
            if header.number != number || !follows || !self.is_a_sequencers(&sealed.signed_header()) {
                return Ok(false);
            }
            parent = Some(header.hash());
            self.bind_unless_displaced(member, &sealed).await?;
        }
        Ok(last == highest)
    }

    /// The same for what may be displaced.
    async fn bind_unless_displaced(&self, member: u16, sealed: &SealedBatch) -> Result<(), L1RoundError> {
        if self.is_displaced(&sealed.header).await? { Ok(()) } else { self.bind(member, sealed).await }
    }

    /// Whether L1 made a header below it that it knows nothing of. What another one of ours has taken the place of is known
    /// to be displaced while L1 is away or lags.
    async fn is_displaced(&self, header: &BatchHeader) -> Result<bool, L1RoundError> {
        let (number, hash) = (header.number, header.hash());
        let binds = self.cx.store.acknowledged(number).await?;
        if binds != Some(hash) && self.cx.store.was_acknowledged(number, hash).await? {
            return Ok(true);
        }
        let origins = (header.l1_origin_number, u64::MAX);
        Ok(self.cx.tracker.excused_by_l1(header.number, origins).await.map_err(TrackerError::L1)?)
    }

    /// Whether this certificate shows that a committee voted for this header.
    async fn is_certified(&self, certificate: Option<&Certificate>, number: u64, hash: B256) -> bool {
        let Some(certificate) = certificate.filter(|of| (of.number, of.header_hash) == (number, hash)) else {
            return false;
        };
        self.cx.tracker.verify_certificate(certificate).await.is_ok()
    }

    /// Takes the certificate that a member holds of a number, where ours lacks it.
    async fn adopt_certificate(&self, member: u16, number: u64, certificate: Option<Certificate>) {
        let Some(certificate) = certificate.filter(|_| number > self.cx.tracker.certified().number) else {
            return;
        };
        // A forged one leaves the header uncertified.
        if let Err(refusal) = self.cx.tracker.accept_certificate(&certificate).await {
            tracing::warn!(member, number, %refusal, "a member's certificate is not taken");
        }
    }

    /// Whether we signed it, or another sequencer in its time.
    fn is_a_sequencers(&self, header: &SignedHeader) -> bool {
        self.cx.tracker.is_signed_header(header)
    }

    fn is_ours(&self, header: &SignedHeader) -> bool {
        header.signer(&self.cx.chain.deployment) == Ok(self.cx.signer.address())
    }
}

//! Collects the members' acknowledgements and makes certificates of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use blindfold_chain::{TrackerError, accepted, announce};
use blindfold_protocol::{
    Acknowledgement, B256, Certificate, Deployment, Epoch,
    certificate::{self, CertificateError, VerifiedAcknowledgement, VerifiedCertificate},
};
use blindfold_rpc::types::Refusal;
use blindfold_runtime::{Cancelled, Instant, blocking, now};
use blindfold_telemetry::traces;
use parking_lot::Mutex;

use crate::{context::Context, gate::Gate, metrics::MEMBERS, queue::Queue, refusal::SubmissionError};

/// Certified numbers for which late acknowledgements are still checked and answered.
const KEPT_CERTIFIED_NUMBERS: usize = 64;

/// Acknowledgements on their way to certificates, and what members refuse. None of it is on disk: a member sends what it
/// acknowledged until it sees its certificate, and at once to a sequencer that comes back.
pub(crate) struct Certifier {
    cx: Arc<Context>,
    queue: Arc<Queue>,
    collection: Collection,
    refusals: Mutex<VecDeque<Refusal>>,
    /// Members, each of an epoch, of which an acknowledgement that they brought did not stand.
    doubted: Mutex<BTreeSet<(u64, u16)>>,
    /// For what comes from anybody.
    gate: Gate,
    /// For each member that proved who it is, a thread and a queue: neither a flood from others nor one member's own
    /// delays the rest.
    of_members: Mutex<BTreeMap<u16, Arc<Gate>>>,
}

struct Collected {
    hash: B256,
    epoch: Arc<Epoch>,
    sealed: Instant,
    acknowledgements: BTreeMap<u16, Collect>,
    /// They are made a certificate in this moment.
    under_way: bool,
    certified: bool,
}

/// An acknowledgement that is collected.
#[derive(Clone, Copy)]
enum Collect {
    /// Its signature stands.
    Verified(VerifiedAcknowledgement),
    /// The member itself brought it. It is verified with the others of its header.
    Brought(Acknowledgement),
}

impl Collect {
    const fn acknowledgement(&self) -> Acknowledgement {
        match self {
            Self::Verified(verified) => verified.acknowledgement(),
            Self::Brought(brought) => *brought,
        }
    }
}

/// Acknowledgements that wait for a certificate, by batch number.
#[derive(Default)]
struct Collection(Mutex<BTreeMap<u64, Collected>>);

/// All acknowledgements of a header that are enough for its certificate. Nobody else makes one of them meanwhile.
struct Complete<'a> {
    collection: &'a Collection,
    number: u64,
    hash: B256,
    epoch: Arc<Epoch>,
    all: Vec<Collect>,
}

impl Drop for Complete<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.collection.0.lock().get_mut(&self.number)
            && entry.hash == self.hash
        {
            entry.under_way = false;
        }
    }
}

impl Collection {
    /// Begins collecting for a header, before it is announced.
    fn begin(&self, number: u64, hash: B256, epoch: Arc<Epoch>) {
        let (acknowledgements, under_way, certified) = (BTreeMap::new(), false, false);
        let entry = Collected { hash, epoch, sealed: now(), acknowledgements, under_way, certified };
        let mut numbers = self.0.lock();
        numbers.insert(number, entry);
        let certified = numbers.values().filter(|entry| entry.certified).count();
        for _ in KEPT_CERTIFIED_NUMBERS..certified {
            let oldest = numbers.iter().find(|(_, entry)| entry.certified).map(|(number, _)| *number);
            oldest.map(|number| numbers.remove(&number));
        }
    }

    /// How long ago a header was sealed.
    fn sealed_before(&self, number: u64) -> Option<Duration> {
        self.0.lock().get(&number).map(|entry| entry.sealed.elapsed())
    }

    /// Forgets the headers from a number on: others take their places.
    fn forget_from(&self, number: u64) {
        self.0.lock().split_off(&number);
    }

    /// Checks an acknowledgement against what is collected, all but its signature. One that stands in the place of another
    /// which nobody has verified is none that is here already.
    fn check(&self, ack: &Acknowledgement, certified: u64) -> Result<Arc<Epoch>, SubmissionError> {
        let number = ack.number;
        let numbers = self.0.lock();
        let entry = numbers.get(&number).ok_or_else(|| not_collected(number, certified))?;
        if ack.epoch != entry.epoch.epoch {
            return Err(SubmissionError::WrongEpoch { number, known: entry.epoch.epoch, offered: ack.epoch });
        }
        if ack.header_hash != entry.hash {
            return Err(SubmissionError::WrongHeader { number, known: entry.hash, offered: ack.header_hash });
        }
        let members = entry.epoch.members.len();
        if ack.member == 0 || usize::from(ack.member) > members {
            return Err(SubmissionError::UnknownMember { member: ack.member, members });
        }
        match entry.acknowledgements.get(&ack.member) {
            Some(Collect::Brought(brought)) if brought != ack => {}
            Some(_) => return Err(SubmissionError::DuplicateAcknowledgement { number, member: ack.member }),
            None => {}
        }
        Ok(Arc::clone(&entry.epoch))
    }

    /// Counts an acknowledgement. One that was verified takes the place of one that was not. False where one that the member
    /// brought finds another one of its own: it is to be verified.
    fn count(&self, collect: Collect) -> Result<bool, SubmissionError> {
        let mut numbers = self.0.lock();
        let ack = collect.acknowledgement();
        let (number, member) = (ack.number, ack.member);
        let entry = numbers.get_mut(&number).ok_or(SubmissionError::AlreadyCertified { number })?;
        // Another header may have taken the place of the one that it was checked against.
        if ack.header_hash != entry.hash {
            return Err(SubmissionError::WrongHeader { number, known: entry.hash, offered: ack.header_hash });
        }
        match (entry.acknowledgements.get(&member), collect) {
            (None, _) | (Some(Collect::Brought(_)), Collect::Verified(_)) => {}
            (Some(Collect::Brought(brought)), Collect::Brought(ack)) if *brought != ack => return Ok(false),
            _ => return Err(SubmissionError::DuplicateAcknowledgement { number, member }),
        }
        entry.acknowledgements.insert(member, collect);
        Ok(true)
    }

    /// All acknowledgements of a number, where they are enough for the certificate that it does not have.
    fn complete(&self, number: u64) -> Option<Complete<'_>> {
        let mut numbers = self.0.lock();
        let entry = numbers.get_mut(&number)?;
        let enough = entry.acknowledgements.len() >= usize::from(entry.epoch.threshold);
        if entry.certified || entry.under_way || !enough {
            return None;
        }
        entry.under_way = true;
        let (hash, epoch) = (entry.hash, Arc::clone(&entry.epoch));
        let all = entry.acknowledgements.values().copied().collect();
        drop(numbers);
        Some(Complete { collection: self, number, hash, epoch, all })
    }

    /// The numbers with acknowledgements enough for a certificate, and without one.
    fn complete_numbers(&self) -> Vec<u64> {
        let numbers = self.0.lock();
        let waiting = numbers.iter().filter(|(_, entry)| {
            !entry.certified && entry.acknowledgements.len() >= usize::from(entry.epoch.threshold)
        });
        waiting.map(|(number, _)| *number).collect()
    }

    /// Forgets acknowledgements that do not stand, as long as they are those that were looked at.
    fn forget_wrong(&self, complete: &Complete<'_>, wrong: &[Acknowledgement]) {
        let mut numbers = self.0.lock();
        let Some(entry) = numbers.get_mut(&complete.number).filter(|entry| entry.hash == complete.hash)
        else {
            return;
        };
        for ack in wrong {
            let is_it = |kept: &Collect| matches!(kept, Collect::Brought(brought) if brought == ack);
            if entry.acknowledgements.get(&ack.member).is_some_and(is_it) {
                entry.acknowledgements.remove(&ack.member);
            }
        }
    }

    /// Marks a number certified; gives the moment it was sealed the first time.
    fn finish(&self, number: u64) -> Option<Instant> {
        let mut numbers = self.0.lock();
        let entry = numbers.get_mut(&number)?;
        (!std::mem::replace(&mut entry.certified, true)).then_some(entry.sealed)
    }
}

impl Certifier {
    pub(crate) fn new(cx: Arc<Context>, queue: Arc<Queue>) -> Self {
        let limits = &cx.config.peers;
        let gate = Gate::new(limits.verify_threads, limits.verify_queue_items);
        let (refusals, doubted, of_members) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { cx, queue, collection: Collection::default(), refusals, doubted, gate, of_members }
    }

    /// Begins collecting for a header, before it is announced.
    pub(crate) fn begin(&self, number: u64, hash: B256, epoch: Arc<Epoch>) {
        self.collection.begin(number, hash, epoch);
    }

    /// Forgets the headers from a number on: others take their places.
    pub(crate) fn forget_from(&self, number: u64) {
        self.collection.forget_from(number);
        self.queue.forget_from(number);
    }

    /// What members refused, newest last.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        self.refusals.lock().iter().cloned().collect()
    }

    /// The way to a verifying thread for a member's own acknowledgement; only who proved to be that member comes here.
    fn gate_of(&self, member: u16) -> Arc<Gate> {
        let mut gates = self.of_members.lock();
        let queue_items = self.cx.config.peers.verify_queue_items;
        Arc::clone(gates.entry(member).or_insert_with(|| Arc::new(Gate::new(1, queue_items))))
    }

    /// A member's acknowledgement: checked and counted; with the threshold it becomes the certificate. `own`: the
    /// member itself brings it, as it has proved, and its signature is verified with the others'.
    pub(crate) async fn take_acknowledgement(
        &self,
        ack: Acknowledgement,
        own: bool,
    ) -> Result<(), SubmissionError> {
        let result = self.take_acknowledgement_checked(ack, own).await;
        match &result {
            Ok(()) => self.cx.metrics.acknowledgements.increment(),
            Err(refusal) => {
                self.cx.metrics.acknowledgements_refused.get(&[refusal.reason()]).increment();
                tracing::debug!(number = ack.number, member = ack.member, %refusal, "acknowledgement refused");
            }
        }
        result
    }

    async fn take_acknowledgement_checked(
        &self,
        ack: Acknowledgement,
        own: bool,
    ) -> Result<(), SubmissionError> {
        if self.cx.stopping() {
            return Err(SubmissionError::ShuttingDown);
        }
        let epoch = self.collection.check(&ack, self.cx.tracker.certified().number)?;
        let counted = if own && !self.doubted.lock().contains(&(ack.epoch, ack.member)) {
            self.collection.count(Collect::Brought(ack))?
        } else {
            false
        };
        if !counted {
            let (deployment, member) = (self.cx.chain.deployment, ack.member);
            let verify = move || certificate::verify_acknowledgement(&ack, &epoch, &deployment);
            let verified =
                if own { self.gate_of(member).run(verify).await } else { self.gate.run(verify).await };
            let verified = verified?.map_err(|_| SubmissionError::InvalidSignature { member })?;
            self.collection.count(Collect::Verified(verified))?;
            if own {
                self.doubted.lock().remove(&(ack.epoch, member));
            }
        }
        self.show_member(&ack);
        self.certify(ack.number).await;
        Ok(())
    }

    /// Shows how a member keeps up.
    fn show_member(&self, ack: &Acknowledgement) {
        let Some(member) = MEMBERS.get(usize::from(ack.member.wrapping_sub(1))) else { return };
        if let Some(after) = self.collection.sealed_before(ack.number) {
            let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            self.cx.metrics.acknowledged_after_ms.get(&[member]).set(after);
        }
        self.cx.metrics.acknowledged_number.get(&[member]).set(ack.number);
    }

    /// Makes the certificate of a number, keeps it and announces it, once there are acknowledgements enough. A failure is
    /// logged: the next acknowledgement, or a restart, tries again.
    async fn certify(&self, number: u64) {
        while let Some(complete) = self.collection.complete(number) {
            if let Err(refusal) = self.cx.tracker.may_be_certified(number).await {
                tracing::warn!(number, %refusal, "acknowledged, and not certified");
                return;
            }
            let (all, epoch) = (complete.all.clone(), Arc::clone(&complete.epoch));
            let deployment = self.cx.chain.deployment;
            // One at a time for each header that members acknowledge, so it needs no gate.
            let added = blocking(move || add_up(&all, &epoch, &deployment)).await;
            let certificate = match added {
                Err(Cancelled) => return,
                Ok(Ok(certificate)) => certificate,
                Ok(Err((error, wrong))) if wrong.is_empty() => {
                    tracing::error!(number, %error, "acknowledgements do not aggregate");
                    return;
                }
                Ok(Err((_, wrong))) => {
                    self.doubt(&wrong);
                    self.collection.forget_wrong(&complete, &wrong);
                    // The others may be enough, or one came meanwhile.
                    continue;
                }
            };
            match self.cx.tracker.accept_own_certificate(certificate).await {
                Ok(_) => self.certified(&certificate).await,
                Err(refusal @ TrackerError::ConflictingCertificates { .. }) => {
                    self.cx.fail("certifier", refusal.to_string());
                }
                Err(refusal) => tracing::error!(number, %refusal, "certificate not taken"),
            }
            return;
        }
    }

    /// Members that brought what does not stand are told so from now on: each of theirs is verified before it is answered,
    /// until one stands.
    fn doubt(&self, wrong: &[Acknowledgement]) {
        let mut doubted = self.doubted.lock();
        for ack in wrong {
            // Of older epochs nobody acknowledges anything any more.
            doubted.retain(|(epoch, _)| epoch.saturating_add(1) >= ack.epoch);
            doubted.insert((ack.epoch, ack.member));
            let refusal = SubmissionError::InvalidSignature { member: ack.member };
            self.cx.metrics.acknowledgements_refused.get(&[refusal.reason()]).increment();
            tracing::warn!(
                number = ack.number,
                member = ack.member,
                "the signature of an acknowledgement does not stand: is the member's key the registered one?"
            );
        }
    }

    async fn certified(&self, certificate: &Certificate) {
        let number = certificate.number;
        self.queue.certified(number);
        if let Some(sealed) = self.collection.finish(number) {
            self.cx.metrics.certificates.increment();
            self.cx.metrics.certify_seconds.observe_duration(sealed.elapsed());
            traces::batch(number, "certify", sealed);
            tracing::info!(number, hash = %certificate.header_hash, "certified");
            self.cx.hub.publish(&announce::certificate(certificate));
        }
        self.cx.show_chain();
    }

    /// Tries again for numbers that have their acknowledgements and yet no certificate (our disk failed then).
    pub(crate) async fn retry_certifying(&self) {
        for number in self.collection.complete_numbers() {
            if self.cx.tracker.may_be_certified(number).await.is_ok() {
                self.certify(number).await;
            }
            // Else it was said when the last acknowledgement came.
        }
    }

    /// A member says why it does not acknowledge: kept for the operator, never acted upon.
    pub(crate) fn take_refusal(&self, refusal: Refusal) -> Result<(), SubmissionError> {
        let (number, member) = (refusal.number, refusal.member);
        let certified = self.cx.tracker.certified().number;
        let (hash, members) = {
            let numbers = self.collection.0.lock();
            let entry = numbers.get(&number).ok_or_else(|| not_collected(number, certified))?;
            (entry.hash, entry.epoch.members.len())
        };
        if member == 0 || usize::from(member) > members {
            return Err(SubmissionError::UnknownMember { member, members });
        }
        // A refusal of another header than ours is what a second header, signed with our key, would cause.
        tracing::warn!(
            number, member, reason = %refusal.reason, ours = refusal.header_hash == hash, "a member refuses a header"
        );
        self.cx.metrics.member_refusals.increment();
        let mut refusals = self.refusals.lock();
        refusals.retain(|kept| (kept.number, kept.member) != (number, member));
        if refusals.len() >= self.cx.config.peers.max_refusals {
            refusals.pop_front();
        }
        refusals.push_back(refusal);
        Ok(())
    }

    /// After a restart: collects again for every header without a certificate.
    pub(crate) async fn resume_certifying(&self) -> Result<(), blindfold_store::StoreError> {
        for number in self.cx.tracker.certified().number + 1..=self.cx.tracker.head().number {
            let Some(record) = self.cx.store.batch(number).await? else { continue };
            let Ok(epoch) = self.cx.tracker.epoch(number).await.map(Arc::new) else {
                tracing::error!(number, "no epoch for a sealed header");
                continue;
            };
            self.queue.found(number, accepted(&record) as u64);
            self.begin(number, record.hash, epoch);
        }
        Ok(())
    }
}

/// Makes a certificate of acknowledgements, and verifies what nobody has verified: together, and one by one only where that
/// fails. Then those that do not stand are named.
fn add_up(
    all: &[Collect],
    epoch: &Epoch,
    deployment: &Deployment,
) -> Result<VerifiedCertificate, (CertificateError, Vec<Acknowledgement>)> {
    let (mut verified, mut brought) = (Vec::new(), Vec::new());
    for collect in all {
        match collect {
            Collect::Verified(of) => verified.push(*of),
            Collect::Brought(of) => brought.push(*of),
        }
    }
    if brought.is_empty() {
        return certificate::certify(epoch, &verified).map_err(|error| (error, Vec::new()));
    }
    let acknowledgements: Vec<Acknowledgement> = all.iter().map(Collect::acknowledgement).collect();
    certificate::certify_together(epoch, deployment, &acknowledgements).map_err(|error| {
        brought.retain(|ack| certificate::verify_acknowledgement(ack, epoch, deployment).is_err());
        (error, brought)
    })
}

/// Nothing is collected for a number: it was certified long ago, or its header is not here, or was sealed just now.
fn not_collected(number: u64, certified: u64) -> SubmissionError {
    if number == 0 || number > certified {
        SubmissionError::UnknownBatch { number, newest: certified }
    } else {
        SubmissionError::AlreadyCertified { number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header is at the head a moment before acknowledgements of it are collected. Who is so fast is told to try again.
    #[test]
    fn who_acknowledges_a_header_that_was_just_sealed_is_told_to_try_again() {
        let collection = Collection::default();
        let ack = |number| Acknowledgement {
            epoch: 1,
            number,
            header_hash: B256::ZERO,
            member: 1,
            signature: [0; 48],
        };
        let refused = |number| collection.check(&ack(number), 4).unwrap_err();
        assert_eq!(refused(4), SubmissionError::AlreadyCertified { number: 4 });
        for number in [0, 5] {
            let refusal = refused(number);
            assert_eq!(refusal, SubmissionError::UnknownBatch { number, newest: 4 });
            assert!(blindfold_rpc::RpcError::from(refusal).retry);
        }
    }

    /// An acknowledgement is verified while L1 makes a header below: another header
    /// of its number is sealed meanwhile, whose certificate it is no part of.
    #[test]
    fn an_acknowledgement_of_a_header_that_gave_way_counts_for_no_other() {
        let epoch = Arc::new(blindfold_kit::epoch());
        let (gave_way, stands) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let deployment = blindfold_kit::chain_config().deployment;
        let ack = |header_hash, member| {
            let key = blindfold_bte::bls::SecretKey::generate(&[member as u8; 32]).expect("as the kit's");
            certificate::sign_acknowledgement(&key, &deployment, epoch.epoch, 5, header_hash, member)
        };
        let collection = Collection::default();
        collection.begin(5, gave_way, Arc::clone(&epoch));
        let late = ack(gave_way, 1);
        assert!(collection.check(&late, 4).is_ok());
        let late = certificate::verify_acknowledgement(&late, &epoch, &deployment).expect("it stands");
        collection.forget_from(4);
        collection.begin(5, stands, Arc::clone(&epoch));
        let refused = SubmissionError::WrongHeader { number: 5, known: stands, offered: gave_way };
        assert_eq!(collection.count(Collect::Verified(late)), Err(refused));
        for member in [1, 2] {
            assert!(
                collection.check(&ack(stands, member), 4).is_ok(),
                "member {member} did not vote for it yet"
            );
        }
    }

    fn kit_epoch() -> (Arc<Epoch>, Deployment) {
        (Arc::new(blindfold_kit::epoch()), blindfold_kit::chain_config().deployment)
    }

    /// What a member brings counts before its signature is looked at: all of a header are verified together.
    #[test]
    fn what_members_bring_is_verified_together_and_what_is_wrong_is_named() {
        let (epoch, deployment) = kit_epoch();
        let hash = B256::repeat_byte(2);
        let committee = blindfold_kit::committee();
        let ack = |member| {
            let key = &committee.bls[usize::from(member) - 1];
            certificate::sign_acknowledgement(key, &deployment, epoch.epoch, 5, hash, member)
        };
        let collection = Collection::default();
        collection.begin(5, hash, Arc::clone(&epoch));
        let mut wrong = ack(2);
        wrong.signature = ack(1).signature;
        for ack in [ack(1), wrong] {
            assert_eq!(collection.count(Collect::Brought(ack)), Ok(true));
            assert!(collection.complete(5).is_none(), "two of four are not enough");
        }
        assert_eq!(collection.count(Collect::Brought(ack(3))), Ok(true));
        let complete = collection.complete(5).expect("three");
        assert!(collection.complete(5).is_none(), "nobody else makes one meanwhile");
        let (_, found) = add_up(&complete.all, &epoch, &deployment).expect_err("one is wrong");
        assert_eq!(found, [wrong]);
        // The right one came meanwhile: it is not the one that was looked at.
        let right = certificate::verify_acknowledgement(&ack(2), &epoch, &deployment).expect("it stands");
        assert_eq!(collection.count(Collect::Verified(right)), Ok(true));
        collection.forget_wrong(&complete, &found);
        drop(complete);
        let complete = collection.complete(5).expect("three that stand");
        let certificate = add_up(&complete.all, &epoch, &deployment).expect("a certificate");
        assert_eq!(certificate.signers, 0b111);
        assert_eq!(certificate::verify(&certificate, &epoch, &deployment), Ok(()));
    }

    /// What was brought in a member's name does not keep out what it really signed.
    #[test]
    fn another_acknowledgement_of_a_member_is_verified_by_itself() {
        let (epoch, deployment) = kit_epoch();
        let hash = B256::repeat_byte(2);
        let key = &blindfold_kit::committee().bls[0];
        let ack = certificate::sign_acknowledgement(key, &deployment, epoch.epoch, 5, hash, 1);
        let collection = Collection::default();
        collection.begin(5, hash, Arc::clone(&epoch));
        let mut other = ack;
        other.signature[0] ^= 1;
        assert_eq!(collection.count(Collect::Brought(other)), Ok(true));
        assert!(collection.check(&ack, 4).is_ok());
        assert_eq!(collection.count(Collect::Brought(ack)), Ok(false), "it is to be verified");
        let verified = certificate::verify_acknowledgement(&ack, &epoch, &deployment).expect("it stands");
        assert_eq!(collection.count(Collect::Verified(verified)), Ok(true));
        let known = SubmissionError::DuplicateAcknowledgement { number: 5, member: 1 };
        for again in [ack, other] {
            assert_eq!(collection.check(&again, 4).err(), Some(known.clone()));
            assert_eq!(collection.count(Collect::Brought(again)), Err(known.clone()));
        }
    }
}

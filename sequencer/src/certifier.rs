//! Collects the members' acknowledgements and makes certificates of them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use blindfold_chain::{TrackerError, announce};
use blindfold_protocol::{
    Acknowledgement, B256, Certificate, Epoch,
    certificate::{self, VerifiedAcknowledgement},
};
use blindfold_rpc::types::Refusal;
use blindfold_runtime::{Instant, now};
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
    acknowledgements: BTreeMap<u16, VerifiedAcknowledgement>,
    certified: bool,
}

/// Acknowledgements that wait for a certificate, by batch number.
#[derive(Default)]
struct Collection(Mutex<BTreeMap<u64, Collected>>);

impl Collection {
    /// Begins collecting for a header, before it is announced.
    fn begin(&self, number: u64, hash: B256, epoch: Arc<Epoch>) {
        let entry =
            Collected { hash, epoch, sealed: now(), acknowledgements: BTreeMap::new(), certified: false };
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

    /// Checks an acknowledgement against what is collected. `None` when it is here already and counted.
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
        if entry.acknowledgements.contains_key(&ack.member) {
            return Err(SubmissionError::DuplicateAcknowledgement { number, member: ack.member });
        }
        Ok(Arc::clone(&entry.epoch))
    }

    /// Counts a verified acknowledgement. Gives the list of all of the number when it is not certified yet.
    fn count(
        &self,
        ack: VerifiedAcknowledgement,
    ) -> Result<Option<Vec<VerifiedAcknowledgement>>, SubmissionError> {
        let mut numbers = self.0.lock();
        let (number, member) = (ack.number, ack.member);
        let entry = numbers.get_mut(&number).ok_or(SubmissionError::AlreadyCertified { number })?;
        // Another header may have taken the place of the one that it was checked against.
        if ack.header_hash != entry.hash {
            return Err(SubmissionError::WrongHeader { number, known: entry.hash, offered: ack.header_hash });
        }
        if entry.acknowledgements.insert(member, ack).is_some() {
            return Err(SubmissionError::DuplicateAcknowledgement { number, member });
        }
        Ok((!entry.certified).then(|| entry.acknowledgements.values().copied().collect()))
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
        let (refusals, of_members) = (Mutex::default(), Mutex::default());
        Self { cx, queue, collection: Collection::default(), refusals, gate, of_members }
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
    /// member itself brings it, as it has proved.
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
        let deployment = self.cx.chain.deployment;
        let moved = Arc::clone(&epoch);
        let verify = move || certificate::verify_acknowledgement(&ack, &moved, &deployment);
        let verified =
            if own { self.gate_of(ack.member).run(verify).await } else { self.gate.run(verify).await };
        let verified = verified?.map_err(|_| SubmissionError::InvalidSignature { member: ack.member })?;
        self.show_member(&ack);
        if let Some(all) = self.collection.count(verified)?
            && all.len() >= usize::from(epoch.threshold)
        {
            self.certify(ack.number, &epoch, all).await;
        }
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

    /// Makes the certificate of a number, keeps it and announces it. A failure is logged: the next acknowledgement,
    /// or a restart, tries again.
    async fn certify(&self, number: u64, epoch: &Arc<Epoch>, all: Vec<VerifiedAcknowledgement>) {
        if let Err(refusal) = self.cx.tracker.may_be_certified(number).await {
            tracing::warn!(number, %refusal, "acknowledged, and not certified");
            return;
        }
        let certificate = match certificate::certify(epoch, &all) {
            Ok(certificate) => certificate,
            Err(error) => {
                tracing::error!(number, %error, "acknowledgements do not aggregate");
                return;
            }
        };
        match self.cx.tracker.accept_own_certificate(certificate).await {
            Ok(_) => self.certified(&certificate).await,
            Err(refusal @ TrackerError::ConflictingCertificates { .. }) => {
                self.cx.fail("certifier", refusal.to_string());
            }
            Err(refusal) => tracing::error!(number, %refusal, "certificate not taken"),
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
        let complete: Vec<_> = {
            let numbers = self.collection.0.lock();
            let waiting = numbers.iter().filter(|(_, entry)| {
                !entry.certified && entry.acknowledgements.len() >= usize::from(entry.epoch.threshold)
            });
            let copied = waiting.map(|(number, entry)| {
                (
                    *number,
                    Arc::clone(&entry.epoch),
                    entry.acknowledgements.values().copied().collect::<Vec<_>>(),
                )
            });
            copied.collect()
        };
        for (number, epoch, all) in complete {
            if self.cx.tracker.may_be_certified(number).await.is_err() {
                // Said when the last acknowledgement came.
                continue;
            }
            self.certify(number, &epoch, all).await;
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
            self.begin(number, record.hash, epoch);
        }
        Ok(())
    }
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
        assert_eq!(collection.count(late), Err(refused));
        for member in [1, 2] {
            assert!(
                collection.check(&ack(stands, member), 4).is_ok(),
                "member {member} did not vote for it yet"
            );
        }
    }
}
